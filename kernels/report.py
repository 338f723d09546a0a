#!/usr/bin/env python3
"""Compiles the kernels and reports what each needs: registers, spills, shared memory, and the time of its loops.

It reads the machine code itself, so it needs no GPU and no disassembler. model.py says where predictions come from.
"""

import argparse
import json
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import latency
import model

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("stage_files.cu", "open_images.cu", "change_images.cu", "build_models.cu", "list_tiles.cu",
           "decode_dense.cu", "decode_tokens.cu", "decode_rows.cu", "decode_follow.cu", "decode_bits.cu",
           "decode_bytes.cu", "decode_words.cu", "encode_tiles.cu", "encode_files.cu")
EVERY_ARCHITECTURE = "80,86,89,90,100,120"
LIMITS = {"registers": 64, "spill_bytes": 0}
# Wavefronts of look-ups, on average of kodim05 and kodim20: tests/bank_conflicts.cpp. Of loads of 16 bytes, half are
# for weights of blocks, 4.1 each, and half for what all lanes share. A group of pixels goes to eight rows at once.
DENSE_ACCESSES = {"LDS 1": 1.9, "LDS 2": 3.1, "LDS 4": 2, "LDS 8": 6.3, "LDS 16": 2.6, "LDG 2": 1.3, "STG 8": 8,
                  "STG 16": 8}


@dataclass
class Kind:
    """The loops of a kernel that are modelled."""

    instruction: str  # which they have, at least so often
    least: int
    channels: str  # what they have once for each channel
    use: model.Use
    warps: int  # of a scheduler
    samples: int  # of a channel in a turn


# Of a step of a dense tile 128 pixels wide, half have a lane that enters a block, one at an edge, one that writes.
# Rows are aligned, so pixels leave as words of eight or sixteen bytes.
WORDS = Kind("IDP", 9, "LDG 2", model.Use(0.5, DENSE_ACCESSES, ("STG 4", "STG 1")), 8, 32)
KINDS = {"dense_kernel": WORDS}
# Strips of fast tiles. Lanes of 16 bytes are for eight lanes at once, and a store goes to four rows. That loads of the
# payload have three wavefronts is assumed: codes of three or four blocks lie apart, headers and widths do not.
STRIPS = model.Use(1, {"LDG 4": 3, "LDS 8": 2, "LDS 16": 4, "STS 16": 4, "STG 4": 4})
STRIP_WARPS = 10  # of a scheduler
# A turn decodes four blocks and writes the strips that are done: each turn the same, or with three channels one strip,
# one, and two. These are told from the others by the words that a lane writes. Of the others, the fewer channels, the
# more of a turn's blocks wait for one to their left, and shuffle for it.
BLOCKS, ROWS = 4, 8
WORDS_OF_THREE, STRIPS_OF_THREE = 6, (1, 1, 2)
OTHER_NAMES = ("4 channels", "2 channels", "1 channel")
BLOCK_SAMPLES, BLOCK_BYTES = 256, 128  # a payload has four bits a sample


@dataclass
class Steps:
    """What images ask of the steps of token tiles."""

    name: str
    # In how many steps votes say yes: a lane is at an edge; one is to be decoded; of these steps, one has numbers; of
    # these, one has raw bits, by channel.
    votes: tuple[float, ...]
    matches: bool
    sample_bytes: int  # of all channels of a pixel
    lanes: int
    wavefronts: dict[str, float]
    shuffles: int  # of a loop for these images
    store: str  # of a group of pixels
    place: int  # among such loops, the shortest one first
    warps: int  # of a scheduler

    def is_loop(self, body: list[model.Instruction]) -> bool:
        """Whether it writes samples in order, and so reads nothing of the output's type."""
        return (all(one.name != "LD" for one in body) and any(one.access() == self.store for one in body)
                and sum(one.name == "SHFL" for one in body) == self.shuffles)


# Shares and wavefronts are averages of what tests/bank_conflicts.cpp counts. Labels: CamVid 0006R0 (two) and COCO 139
# (instances); with 8 lanes two of COCO, ADE20K, DAVIS and VOC. Depth: TSDF 150 and 180, and Redwood 4 of Open3D. RGB:
# HeLa cells and Intel-TAU field 1. How many rows a store goes to follows from the lanes. Assumed: 1.3 wavefronts for
# words of payloads and for listed samples.
LABELS = {"LDS 1": 1, "LDS 2": 1.5, "LDS 8": 5.1, "LDG 2": 1.3, "STG 4": 16}
LABELS_OF_8 = {"LDS 1": 1, "LDS 2": 1.1, "LDS 8": 3.2, "LDG 2": 1.3, "STG 4": 4}
DEPTH = {"LDS 1": 2.1, "LDS 2": 1.6, "LDS 8": 5.8, "LDS 16": 3, "LDG 2": 1.3, "STG 8": 16}
COLOURS = {"LDS 1": 2.2, "LDS 2": 1, "LDS 8": 5.8, "LDS 16": 4.2, "LDG 2": 1.3, "STG 8": 16}
STEPS = {
    "tokens_kernel": (
        Steps("labels", (0.2, 0.63, 0.21, 0), True, 1, 32, LABELS, 2, "STG 4", 0, 8),
        Steps("labels, 8 lanes", (0.09, 0.36, 0.03, 0), True, 1, 8, LABELS_OF_8, 2, "STG 4", 0, 8),
        Steps("depth", (0.4, 1, 0.74, 0.05), True, 2, 32, DEPTH, 4, "STG 8", 0, 8),
        Steps("depth with holes", (0.4, 1, 0.74, 0.05), True, 2, 32, DEPTH, 4, "STG 8", 1, 8)),
    "wide_tokens_kernel": (
        Steps("RGB of 16 bits", (0.62, 1, 1, 0.8, 0.9, 0.65), False, 6, 32, COLOURS, 8, "STG 8", 0, 6),),
}
# Tiles of bit models, written whole and in order. All of it is assumed: 3 wavefronts for a look-up of a frequency, and
# that in every fourth step some lane takes a word. In every second step groups of eight pixels are stored, in 8 rows.
BITS = model.Use(1, {"LDS 2": 3, "LDS 4": 1, "LDG 2": 1.3, "STG 8": 8})
BIT_WARPS, BIT_STEPS = 8, 8
MIXED_STEPS = 32  # so many steps are modelled one after the other
COUNTED = ("dense_kernel", "tokens_kernel", "wide_tokens_kernel", "rows_kernel", "follow_kernel")
EXPLANATION = """\
Loops (of bytes_kernel: turns of four blocks; of token tiles: steps of an image): cycles of a scheduler for a turn of
one warp, by what is busy; "simulated" with as many warps as there is room for; GB/s of a GPU that does nothing else,
also with the lanes that work in tiles of 128 x 128 and 256 x 256. Figures of fast tiles of three channels are for a
strip, a fourth of three turns. All of it is predicted. Steps: instructions of all loops over steps, whether a turn runs
them or not."""


def sections(cubin: bytes):
    """The sections of an ELF file: name and contents."""
    start = struct.unpack_from("<Q", cubin, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", cubin, start + i * size) for i in range(count)]
    for name, kind, _, _, at, length in heads:
        first = heads[names][4] + name
        text = cubin[first : cubin.index(b"\0", first)].decode()
        yield text, b"" if kind == 8 else cubin[at : at + length]


def worth_in_strip(one: model.Instruction) -> int:
    """What leads the way through a turn: four whole blocks, no fault, lanes that are together, the longest transform of
    colours (it has most of this constant), and words in order, for which no type is read from memory."""
    if one.name in ("FLO", "ENDCOLLECTIVE"):
        return -5000
    if one.name == "REDUX":
        return 1000
    if one.name in ("SHFL", "POPC") or (one.pipe == "alu" and one.constant == 0x7F7F7F7F):
        return 100
    if one.access() == "STG 4":
        return 150
    return {"LDG": -100, "BRA": -30}.get(one.name, -1)


def predict_strips(code: list[model.Instruction], architecture: int) -> dict[str, dict[str, object]]:
    """All that strips take: headers, widths, rows, colours, stores, and their share of the payload's check. Of three
    channels a strip, which is a fourth of three turns; otherwise all strips of a turn."""
    ways = model.Ways(code)
    of_check = max(([code[i] for i in sorted(part)] for part in ways.loops.values()
                    if all(code[i].name not in ("STG", "STS", "SHFL") for i in part)),
                   key=lambda body: sum(one.access() == "LD 4" for one in body))
    loads = sum(one.access() == "LD 4" for one in of_check)

    def turn_of(first: int, strips: int) -> list[model.Instruction]:
        return ways.way(first, worth_in_strip, lambda _: strips)  # the only loop inside writes a strip

    turns: dict[int, model.Loop] = {}  # by where they begin
    for first in ways.smallest_loop(lambda body: {"REDUX", "POPC", "STG"} <= {one.name for one in body}):
        turn = model.straight(turn_of(first, 1))
        # The last row is stored once more.
        if (turn.count("REDUX"), turn.count("STS 4")) == (BLOCKS, ROWS + 1):
            turns[first] = turn
    of_three = [first for first, turn in turns.items() if turn.count("STG 4") == WORDS_OF_THREE]
    others = sorted((first for first in turns if first not in of_three), key=lambda first: turns[first].count("SHFL"))
    names = dict(zip(others, OTHER_NAMES)) if len(others) == len(OTHER_NAMES) else {}  # noqa: B905 (Python 3.9)
    names.update({first: "3 channels" for first in of_three})
    found: dict[str, dict[str, object]] = {}
    for first, name in names.items():
        body, parts = turns[first].body, 1
        if first in of_three:
            body = [one for strips in STRIPS_OF_THREE for one in turn_of(first, strips)]
            parts = sum(STRIPS_OF_THREE)
        blocks = sum(one.name == "REDUX" for one in body)
        check = of_check * blocks
        loop = model.straight(body + check[: len(of_check) * blocks * BLOCK_BYTES // (4 * 32 * loads)])
        cycles = model.simulate(loop, STRIPS, STRIP_WARPS, 3 * BLOCKS // blocks)
        found[name] = {
            "instructions": round(len(loop.body) / parts),
            "busy": {what: round(time / parts, 1) for what, time in model.busy(loop, STRIPS).items()},
            "simulated": round(cycles / parts, 1),
            "rate": round(model.rate(architecture, blocks * BLOCK_SAMPLES, cycles))}
    return dict(sorted(found.items()))


def worth_in_step(of: Steps, writes: bool, activity_of_numbers: list[model.Instruction]) -> Callable[
        [model.Instruction], int]:
    """What leads the way through a step: look-ups of matches if the images have them, of contexts and activities (but
    not once more if a match has needed it), samples that are listed, and in every second step a group of pixels that
    are stored, else the test whether one ends here."""
    def worth(one: model.Instruction) -> int:
        if one.name == "STG":
            return 9000 if writes and one.access() == of.store else -9000
        if any(one is skipped for skipped in activity_of_numbers):
            return -5000
        if one.access() in ("LDS 1", "LDS 2", "LDS 16", "LDG 2") or (one.name == "LOP3" and one.constant == 3):
            return 1000
        return {"POPC": 2000 if of.matches else -9000, "LD": -100, "BRA": -30}.get(one.name, -1)
    return worth


def steps_of(ways: model.Ways, first: int, of: Steps) -> list[model.Instruction]:
    """The instructions of steps that differ as votes do."""
    branches = ways.votes(first)
    if len(branches) != len(of.votes):
        return []
    activities = [ways.code[i] for i in sorted(ways.loops[first])
                  if ways.code[i].access() == "LDS 16" and ways.code[i].constant >> 8 != 0]  # others have an address
    again = activities[1:2] if of.matches else []
    ways_of: dict[tuple[bool, ...], list[model.Instruction]] = {}
    asked = [0] * len(branches)
    body: list[model.Instruction] = []
    for step in range(MIXED_STEPS):
        said = []
        for vote, share in enumerate(of.votes):
            # After the first one, a vote is asked where those before it said yes. Raw bits are asked in each channel.
            is_asked = all(said[1:3][: vote - 1]) if vote > 1 else True
            said.append(is_asked and int((asked[vote] + 1) * share) > int(asked[vote] * share))
            asked[vote] += is_asked
        writes = step % 2 == 1
        if (*said, writes) not in ways_of:
            chosen = {i: i + 1 if yes else ways.code[i].target for i, yes in zip(branches, said)}  # noqa: B905
            ways_of[(*said, writes)] = ways.way(first, worth_in_step(of, writes, again), lambda _: 1, chosen)
        body += ways_of[(*said, writes)]
    return body


def predict_steps(kernel: str, code: list[model.Instruction], architecture: int) -> dict[str, dict[str, object]]:
    ways = model.Ways(code)
    loops = ways.smallest_loop(lambda body: sum(one.name == "SHFL" for one in body) >= 2)
    loops.sort(key=lambda first: len(ways.loops[first]))
    found: dict[str, dict[str, object]] = {}
    for of in STEPS[kernel]:
        of_kind = [first for first in loops if of.is_loop([code[i] for i in ways.loops[first]])]
        body = steps_of(ways, of_kind[of.place], of) if of.place < len(of_kind) else []
        if not body:
            continue
        loop, use = model.straight(body), model.Use(1, of.wavefronts)
        cycles = round(model.simulate(loop, use, of.warps, 1) / MIXED_STEPS, 1)
        busy = {what: round(all_cycles / MIXED_STEPS, 1) for what, all_cycles in model.busy(loop, use).items()}
        found[of.name] = {"instructions": len(body) // MIXED_STEPS, "busy": busy, "simulated": cycles,
                          "rate": round(model.rate(architecture, of.lanes * of.sample_bytes, cycles))}
    return found


def predict_bits(code: list[model.Instruction], architecture: int) -> dict[str, dict[str, object]]:
    """Steps of the loop for near neighbours that writes whole tiles of one channel, in order: the shortest one."""
    ways = model.Ways(code)
    loops = ways.smallest_loop(lambda body: any(one.access() == "STG 8" for one in body)
                               and any(one.name == "VOTE" for one in body))
    first = min((first for first in loops if all(code[i].name != "LD" for i in ways.loops[first])),
                key=lambda first: len(ways.loops[first]), default=None)
    if first is None:
        return {}

    def worth_in(step: int) -> Callable[[model.Instruction], int]:
        """What leads the way: a delay that is not empty, words if some are taken, groups if they are stored."""
        chosen = {"STS": 500, "POPC": 2000 if step % 4 == 3 else -2000}
        stores = {"STG 8": 9000 if step % 2 == 1 else -9000, "STG 1": -9000}
        return lambda one: stores.get(one.access(), chosen.get(one.name, 1))

    body = [one for step in range(BIT_STEPS) for one in ways.way(first, worth_in(step), lambda _: 1)]
    loop = model.straight(body)
    cycles = round(model.simulate(loop, BITS, BIT_WARPS, 3) / BIT_STEPS, 1)
    busy = {what: round(all_cycles / BIT_STEPS, 1) for what, all_cycles in model.busy(loop, BITS).items()}
    return {"bits": {"instructions": len(body) // BIT_STEPS, "busy": busy, "simulated": cycles,
                     "rate": round(model.rate(architecture, 32, cycles))}}


def predict(kernel: str, code: list[model.Instruction], architecture: int) -> dict[str, dict[str, object]]:
    of_near = architecture if architecture in model.MULTIPROCESSORS else architecture // 10 * 10
    if kernel == "bytes_kernel":
        return predict_strips(code, of_near)
    if kernel == "bits_kernel":
        return predict_bits(code, of_near)
    if kernel in STEPS:
        return predict_steps(kernel, code, of_near)
    kind = KINDS.get(kernel)
    if kind is None:
        return {}
    loops: dict[str, model.Loop] = {}
    for loop in model.loops_with(code, kind.instruction, kind.least):
        name = f"{loop.count(kind.channels)} words"
        # The loop that writes any type and layout is longer.
        if name not in loops or len(loop.body) < len(loops[name].body):
            loops[name] = loop
    found: dict[str, dict[str, object]] = {}
    for name, loop in sorted(loops.items()):
        cycles = model.simulate(loop, kind.use, kind.warps)
        samples = kind.samples * loop.count(kind.channels)
        found[name] = {"instructions": len(loop.body), "busy": model.busy(loop, kind.use), "simulated": cycles,
                       "rate": round(model.rate(of_near, samples, cycles))}
    return found


def count_steps(kernel: str, code: list[model.Instruction]) -> dict[str, int]:
    """The instructions of loops over steps, in the order of their length."""
    lengths = sorted(len(loop.body) for loop in model.loops_with(code, "IDP", 9)) if kernel in COUNTED else []
    return {str(number): length for number, length in enumerate(lengths, start=1)}


def compile_kernels(nvcc: str, generated: Path, architecture: str, source: str) -> tuple[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "kernels.cubin"
        command = [nvcc, "-std=c++20", "-O3", f"-arch=sm_{architecture}", "-cubin", "-Xptxas=-v",
                   "--expt-relaxed-constexpr", "--Werror=all-warnings", f"-I{ROOT / 'codec/src'}",
                   f"-I{ROOT / 'codec/include'}", f"-I{ROOT / 'kernels/include'}",
                   f"-I{ROOT / 'base/include'}", f"-I{generated}",
                   str(ROOT / "kernels/src" / source), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            sys.exit(f"report: {source} does not compile for sm_{architecture}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr, out.read_bytes()


def read_kernel(sections_of_file: dict[str, bytes], symbol: str, architecture: str) -> list[model.Instruction]:
    tables = model.read_tables(sections_of_file[f".nv.info.{symbol}"])
    return model.read_code(sections_of_file[f".text.{symbol}"], int(architecture), tables)


def kernels(nvcc: str, generated: Path, architecture: str):
    for source in SOURCES:
        said, cubin = compile_kernels(nvcc, generated, architecture, source)
        code = dict(sections(cubin))
        functions = re.findall(
            r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
            r"(\d+) bytes spill loads.*?Used (\d+) registers([^\n]*)", said, re.DOTALL)
        for symbol, stack, stores, loads, registers, rest in functions:
            shared = re.search(r"(\d+) bytes smem", rest)
            machine_code = code[f".text.{symbol}"]
            kernel = re.sub(r"^_ZN2l3\d+(\w+?)E.*", r"\1", symbol)
            is_read = kernel in KINDS or kernel in COUNTED or kernel in ("bytes_kernel", "bits_kernel")
            instructions = read_kernel(code, symbol, architecture) if is_read else []
            yield {
                "kernel": kernel,
                "architecture": f"sm_{architecture}",
                "registers": int(registers),
                "spill_bytes": int(stores) + int(loads),
                "stack_bytes": int(stack),
                "static_shared_bytes": int(shared[1]) if shared else 0,
                "instructions": len(machine_code) // model.INSTRUCTION,
                "loops": predict(kernel, instructions, int(architecture)),
                "steps": count_steps(kernel, instructions),
            }


MODEL_WARPS, MODEL_BLOCKS = 24, 1  # of models_kernel: warps of a block, and blocks of a multiprocessor


def predict_latency(nvcc: str, generated: Path, architecture: str) -> str:
    codes = {}
    for source in ("build_models.cu", "decode_dense.cu"):
        _, cubin = compile_kernels(nvcc, generated, architecture, source)
        code = dict(sections(cubin))
        symbol = next(name for name in code if name.startswith(".text.")).removeprefix(".text.")
        codes[source] = read_kernel(code, symbol, architecture)
    chains = latency.chains_of_models(codes["build_models.cu"])
    step = min((loop for loop in model.loops_with(codes["decode_dense.cu"], WORDS.instruction, WORDS.least)
                if loop.count(WORDS.channels) == 3), key=lambda loop: len(loop.body))
    found = [(case, latency.predict(case, chains, step, WORDS.use, MODEL_WARPS, MODEL_BLOCKS, int(architecture)))
             for case in latency.CASES]
    return f"{chains}\n{latency.table(found)}"


def version_of(nvcc: str) -> str:
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"release (\S+),", said)
    return found[1] if found else "unknown"


def compare(record: list[dict], rows: list[dict]) -> list[str]:
    """What is worse than in the record: a loop that is lost, spills and stack at all, other numbers by a 50th."""
    before = {(row["kernel"], row["architecture"]): row for row in record}
    worse = []
    for row in rows:
        name = f"{row['kernel']} {row['architecture']}"
        old = before.get((row["kernel"], row["architecture"]))
        if old is None:
            worse.append(f"{name}: not in the record")
            continue
        worse += [f"{name}: the loop of {loop} is not found" for loop in old["loops"] if loop not in row["loops"]]
        numbers = {key: (old[key], row[key]) for key in ("registers", "spill_bytes", "stack_bytes", "instructions")}
        for step, now in row["steps"].items():
            numbers[f"step {step}"] = (old["steps"].get(step, 0), now)
        for loop, now in row["loops"].items():
            then = old["loops"].get(loop, {"simulated": 0, "busy": {}})
            numbers[f"{loop}, simulated"] = (then["simulated"], now["simulated"])
            longest = max(now["busy"], key=now["busy"].get)
            numbers[f"{loop}, {longest}"] = (max(then["busy"].values(), default=0), now["busy"][longest])
        for key, (then, now) in numbers.items():
            allowed = then if key in ("spill_bytes", "stack_bytes") else then + then / 50
            if now > allowed:
                worse.append(f"{name}: {key}: {now}, was {then}")
    return worse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--generated", type=Path, default=ROOT / "build/cuda/codec/generated", metavar="DIR",
                        help="where a build has made default_models.inc; build/cuda/codec/generated unless told")
    parser.add_argument("--architectures", default="90", help="comma-separated, or all; 90 unless told")
    parser.add_argument("--check", action="store_true",
                        help="fail where the kernel for dense tiles on sm_90 is over its limits")
    parser.add_argument("--against", type=Path, metavar="FILE",
                        help="fail where a kernel needs more than in this record, which --json wrote")
    parser.add_argument("--latency", action="store_true", help="predict how long calls take that have little to do")
    options = parser.parse_args()
    if options.latency:
        print(predict_latency(options.nvcc, options.generated, "90"))
        return
    wanted = EVERY_ARCHITECTURE if options.architectures == "all" else options.architectures
    rows = [row for architecture in wanted.split(",")
            for row in kernels(options.nvcc, options.generated, architecture)]
    if options.json:
        print(json.dumps({"nvcc": version_of(options.nvcc), "limits": LIMITS, "kernels": rows}, indent=1))
    else:
        print(f"{'kernel':18} {'arch':7} {'registers':>9} {'spills':>6} {'stack':>6} {'shared':>6} {'code':>6}")
        for row in rows:
            print(f"{row['kernel']:18} {row['architecture']:7} {row['registers']:9} {row['spill_bytes']:6} "
                  f"{row['stack_bytes']:6} {row['static_shared_bytes']:6} {row['instructions']:6}")
            for name, loop in row["loops"].items():
                busy = ", ".join(f"{what} {cycles:g}" for what, cycles in loop["busy"].items())
                print(f"  {name}: {busy}; simulated {loop['simulated']:g}, {loop['rate']} GB/s", end="")
                working = [loop["rate"] * model.lanes_that_work(edge, edge, 32) for edge in (128, 256)]
                print(f"; {working[0]:.0f} and {working[1]:.0f}" if row["kernel"] in KINDS else "")
            if row["steps"]:
                print(f"  steps: {', '.join(str(length) for length in row['steps'].values())}")
        print(EXPLANATION)
    if options.check:
        dense = next((r for r in rows if r["kernel"] == "dense_kernel" and r["architecture"] == "sm_90"), None)
        if dense is None or list(dense["loops"]) != ["1 words", "2 words", "3 words", "4 words"]:
            sys.exit("report: the kernel's loops were not found")
        if any(dense[name] > limit for name, limit in LIMITS.items()):
            sys.exit("report: the kernel for dense tiles is over its limits")
    if options.against:
        record = json.loads(options.against.read_text())
        if record["nvcc"] != version_of(options.nvcc):
            print(f"report: the record is of nvcc {record['nvcc']}: not compared")
            sys.exit(77)
        worse = compare(record["kernels"], rows)
        if worse:
            sys.exit("\n".join(["report: more than in the record", *worse]))


if __name__ == "__main__":
    main()
