#!/usr/bin/env python3
"""Tests what the specifications show: the annotated files of format.md decode to what the text says, with the states
that it lists; the slots of its section 12.4 are those of the oracle; the program of its section 19 gives what the test
vectors' manifest says; and the annotated shard of shard.md is sound.

    spec_example_test.py L3_COMMAND       all of it
    spec_example_test.py --trace FILE     print the table of states that section 20 has of a file
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

SPEC = Path(__file__).resolve().parent.parent / "spec"
sys.path[:0] = [str(SPEC), str(SPEC / "vectors")]
import l3_decode
import l3_shard

import build

TEXT = (SPEC / "format.md").read_text()


def section(number: int) -> str:
    (text,) = re.findall(rf"^## {number}\. .*?(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    return text


def blocks_of(text: str) -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


# ---------------------------------------------------------------------------------------------- annotated files


def bytes_of(dump: str) -> bytes:
    data = bytearray()
    after_zeros = False
    for offset, pairs, about in re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?){1,8})(.*)", dump, re.MULTILINE):
        if after_zeros:
            data += bytes(int(offset, 16) - len(data))
        assert int(offset, 16) == len(data), f"offset {offset} follows {len(data):04x}"
        data += bytes.fromhex(pairs)
        after_zeros = "zeros up to offset" in about
    return bytes(data)


def expect_file(image: str, dump: str, command: str) -> bytes:
    data = bytes_of(dump)
    values = [int(word) for word in image.split()]
    decoded = l3_decode.verify(data)
    assert list(decoded.values()) == values, "the oracle decodes other samples"
    done = subprocess.run([command, "decode", "-", "-", "--format", "pam"], input=data, capture_output=True, check=True)
    assert done.stdout == b"".join(l3_decode.pam(decoded)), "l3 decodes other samples"
    return data


class Trace:
    """What lanes do with their states while a file is decoded."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.step = -1  # no step yet
        self.places: dict[int, str] = {}  # of the lanes
        self.about = self.symbol = ""

    def of(self, data: bytes) -> list[str]:
        lanes, token_tile = l3_decode.Lanes, l3_decode.TokenTile
        plain_steps, plain_table = l3_decode.steps, l3_decode.table_of
        plain_match, plain_token, plain_number = token_tile.match, token_tile.token, token_tile.number_of

        def steps(*arguments: Any) -> Any:
            for self.step, places in enumerate(plain_steps(*arguments)):
                self.places = {lane: f"({x}, {y})" for lane, x, y in places}
                yield places

        def table_of(channel: Any, taps: Any, p: int, up: int) -> int:
            table = plain_table(channel, taps, p, up)
            self.about = f"table {table}, p {p}, up {up}"
            return table

        def match(tile: Any, place: Any, source: Any) -> bool:
            self.about = "match"
            return plain_match(tile, place, source)

        def token(tile: Any, place: Any, context: Any) -> int:
            self.about = f"table {context.table}, p {context.p}, up {context.up}"
            return plain_token(tile, place, context)

        def number_of(tile: Any, token: int, lane: int) -> int:
            self.about = "raw bits"
            return plain_number(tile, token, lane)

        def symbol(of: Any, lane: int, table: Any) -> int:
            z, f, n = table.slots[of.states[lane] % 4096]
            self.symbol = f"symbol {z}, f {f}, n {n}"
            of.set_state(lane, f * (of.states[lane] // 4096) + n)
            return z

        def either(of: Any, lane: int, frequency: int) -> bool:
            still = of.states[lane] % 4096 < frequency
            self.about, self.symbol = f"block, f {frequency}", "still" if still else "not still"
            return plain_either(of, lane, frequency)

        def set_state(of: Any, lane: int, x: int) -> None:
            before, at = of.states[lane], of.position
            plain_set_state(of, lane, x)
            word = f"word {of.payload[at] + 256 * of.payload[at + 1]:04x}" if of.position > at else ""
            step, place = ("-", "") if self.step < 0 else (self.step, self.places[lane])
            slot, what = ("", "") if self.about == "raw bits" else (before % 4096, self.symbol)
            line = f"{step:>4} {lane:4}  {place:8} {self.about:19} {before:08x} {slot:4}  {what:24} {x:08x}  {word}"
            self.lines.append(line.rstrip())

        plain_either, plain_set_state = lanes.either, lanes.set_state
        with mock.patch.multiple(l3_decode, steps=steps, table_of=table_of), \
             mock.patch.multiple(lanes, symbol=symbol, either=either, set_state=set_state), \
             mock.patch.multiple(token_tile, match=match, token=token, number_of=number_of):
            l3_decode.decode(data)
        return self.lines


# ---------------------------------------------------------------------------------------- the example of section 12.4


def rows_of(table: str, columns: int) -> list[list[str]]:
    """The cells of each row of a table, whose first cell is a number."""
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if re.match(r"\| \d", line)]
    return [row for row in rows if len(row) == columns]


def expect_slots() -> None:
    (example,) = re.findall(r"^\*\*Example\.\*\*.*", section(12), re.MULTILINE | re.DOTALL)
    (found,) = re.findall(r"it has (\d+) slots .*`Q = (\d+)` .*`S = (\d+)` slots.*are `([\d ]+)`", example, re.DOTALL)
    slots, buckets, size = (int(number) for number in found[:3])
    f = [int(word) for word in found[3].split()]
    assert slots == buckets * size == sum(f) and len(f) == buckets
    with mock.patch.object(l3_decode, "SLOTS", slots):
        of_oracle = l3_decode.slots_of(f)
    assert all(frequency == f[symbol] for symbol, frequency, _ in of_oracle)

    stated = []
    for row in rows_of(example, 6):
        assert row[1] == f"{size * int(row[0])} to {size * int(row[0]) + size - 1}"
        stated += [tuple(map(int, cell.split("."))) for cell in row[2:]]
    assert stated == [(symbol, k) for symbol, _, k in of_oracle], "section 12.4 has other slots"

    # What each turn of the loop does follows from the slots of the bucket that it fills.
    left = list(f)
    turns = rows_of(example, 8)
    for row in turns:
        b, left_of_b, q, own, a, before, after = (int(cell) for i, cell in enumerate(row) if i != 2)
        bucket = [(symbol, k) for symbol, _, k in of_oracle[size * q : size * (q + 1)]]
        assert b == (q if left[b] < size else a) and left_of_b == left[b] and before == left[a]
        assert bucket == [(q, k) for k in range(own)] + [(a, after + k) for k in range(size - own)]
        left[a] = after
    filled = {int(row[3]) for row in turns}
    assert len(filled) == len(turns)
    for q in set(range(buckets)) - filled:  # it is all its own
        assert left[q] == size and [symbol for symbol, _, _ in of_oracle[size * q : size * (q + 1)]] == [q] * size


# ------------------------------------------------------------------------------------- the program of section 19


def program() -> Callable[..., list[list[list[int]]]]:
    (source,) = blocks_of(section(19))

    def violation() -> None:
        raise l3_decode.Violation(0, "of the program")

    names: dict[str, Any] = {
        "u16": lambda data, at: int.from_bytes(data[at : at + 2], "little"),
        "u32": lambda data, at: int.from_bytes(data[at : at + 4], "little"),
        "ceil": l3_decode.ceil,
        "violation": violation,
        "FACTORS": list(zip(*l3_decode.NEAR_FACTORS, strict=True)),
        "F": l3_decode.TRAIL_FACTORS,
    }
    exec(source, names)
    return names["decode_tile"]


def as_the_program_has_it(model: l3_decode.AnyModel) -> SimpleNamespace:
    names = dict(vars(model))
    of_tokens = isinstance(model, l3_decode.TokenModel)
    names["kind"] = int(of_tokens)
    names["D"] = model.widths if of_tokens else [8] * len(model.channels)
    # What the program does not decode classes for has one.
    names["K"] = [1 + (channel.class_tables > 0) for channel in model.channels] or [1] * len(names["D"])
    names["tables"] = [table.slots for table in model.tables]
    names["class_tables"] = [[table.slots for table in tables] for tables in model.class_tables]
    return SimpleNamespace(**names)


def expect_program_decodes_vectors() -> int:
    decode_tile = program()
    converted: dict[int, tuple[l3_decode.AnyModel, SimpleNamespace]] = {}

    def planes(tile: Any, model: l3_decode.AnyModel, lanes: Any) -> list[list[list[int]]]:
        _, names = converted.setdefault(id(model), (model, as_the_program_has_it(model)))
        values = decode_tile(tile.w, tile.h, tile.parameters & 7, tile.parameters >> 3, lanes.payload, names)
        return l3_decode.samples_of(model, values) if isinstance(model, l3_decode.TokenModel) else values

    models = {l3_decode.name_of(model): model for model in build.models()}
    recipes = dict(build.recipes())
    count = 0
    with mock.patch.multiple(l3_decode, decode_dense=planes, decode_tokens=planes):
        for line in (SPEC / "vectors" / "MANIFEST.txt").read_text().splitlines():
            if line.startswith(("#", "limits/")):
                continue
            name, about, wanted, _, _ = line.split("\t")
            if int(about.split(".")[0]) not in ((13, 15) if wanted == "REJECT" else (12, 13, 14, 15, 16)):
                continue  # it has no dense tile, or is refused before one is decoded
            count += 1
            try:
                image = l3_decode.decode(build.build_text(recipes[name]), models=models)
                found = hashlib.sha256(b"".join(l3_decode.pam(image))).hexdigest()[:32]
            except l3_decode.Violation:
                found = "REJECT"
            assert found == wanted, f"the program of section 19 has other samples of {name}"
    return count


def main() -> int:
    if sys.argv[1] == "--trace":
        print("\n".join(Trace().of(Path(sys.argv[2]).read_bytes())))
        return 0
    (of_colours,) = re.findall(r"of all 256 of them, 768 bytes, is `0x([0-9A-F]{8})`", TEXT)
    colours = b"".join(l3_decode.class_colour(entry) for entry in range(256))
    assert l3_decode.check(colours) == int(of_colours, 16), "the oracle has other class colours"
    for model, digest in zip(l3_decode.DEFAULT_MODELS, re.findall(r"`([0-9a-f]{64})`", section(16)), strict=True):
        assert hashlib.sha256(model.read_bytes()).hexdigest() == digest, model

    expect_slots()
    image, dump = blocks_of(section(17))
    expect_file(image, dump, sys.argv[1])
    of_dense = blocks_of(section(20))
    assert len(of_dense) == 6
    for image, dump, trace in (of_dense[:3], of_dense[3:]):
        data = expect_file(image, dump, sys.argv[1])
        lines = [line for line in trace.splitlines() if line[:4].strip().isdigit() or line.startswith("   - ")]
        assert lines == Trace().of(data), "section 20 has other states"
    (dump,) = blocks_of((SPEC / "shard.md").read_text().split("## 7. ")[1])
    with tempfile.TemporaryDirectory() as folder:
        shard = Path(folder, "annotated.l3s")
        shard.write_bytes(bytes_of(dump))
        assert l3_shard.main(["verify", str(shard)]) == 0
        subprocess.run([sys.argv[1], "verify", shard], check=True, capture_output=True)
    count = expect_program_decodes_vectors()
    print(f"three annotated files and a shard; {count} vectors with the program of section 19")
    return 0


if __name__ == "__main__":
    sys.exit(main())
