#!/usr/bin/env python3
"""Builds the test vectors of the L3 format from their recipes. README.md beside this file says how recipes are written.

    build.py OUT                  every recipe: OUT/valid/NAME.l3, OUT/limits/NAME.l3, OUT/invalid/NAME.l3, and the
                                  models that they name: OUT/models/NAME.l3model
    build.py --controls OUT       of each recipe with `+` or `-` lines its control: OUT/controls/NAME.l3
    build.py --one RECIPE OUT.l3  one recipe, wherever it is

Follows spec/format.md and uses nothing but Python's standard library.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bits import BitModel, write_bits
from dense import Dense, Model, write_dense
from fast import Block, write_fast
from pieces import BitString, Noise, RecipeError, contents, numbers, pad
from tokens import TokenModel, write_tokens

HERE = Path(__file__).resolve().parent
GROUPS = ("valid", "limits", "invalid")
U32 = 0xFFFFFFFF
COLOURS = {"gray": 0, "gray_alpha": 1, "rgb": 2, "rgb_alpha": 3, "palette": 4}
CHANNELS = (1, 2, 3, 4, 1)
SECTIONS = {"palette": 1, "transparency": 2, "colour_space": 3, "icc": 4, "exif": 5, "model": 6, "channel_map": 7,
            "metadata": 0x8001}

# Where fields stand: name -> (offset, width in bytes).
HEADER = {
    "signature": (0, 8), "version": (8, 2), "section_count": (10, 2), "required_features": (12, 2),
    "default_model": (14, 2),
    "optional_features": (16, 4), "width": (20, 4), "height": (24, 4), "frames": (28, 4), "channels": (32, 2),
    "sample_type": (34, 1), "bits": (35, 1), "colour": (36, 1), "alpha": (37, 1), "tile_width": (38, 1),
    "tile_height": (39, 1), "index_check": (40, 4), "head_check": (44, 4), "digest": (48, 16),
}
TINY_HEADER = {"signature": (0, 4), "check": (4, 4), "width": (8, 1), "height": (9, 1), "kind": (10, 1),
               "coding": (11, 1), "sizes": (12, 4)}
SECTION_ENTRY_SIZE = 16
SECTION_ENTRY = {"type": (0, 2), "flags": (2, 2), "check": (4, 4), "offset": (8, 4), "size": (12, 4)}
INDEX_ENTRY = {
    "method": (0, 1), "parameters": (1, 1), "size": (2, 2), "offset": (4, 4), "check": (8, 4),
    "value.0": (4, 2), "value.1": (6, 2), "value.2": (8, 2), "value.3": (10, 2),
}


# ------------------------------------------------------------------------------------------------- numbers and bytes


def check(part: bytes) -> int:
    words = struct.unpack(f"<{len(part) // 4}I", part)
    total = len(words) * 0x9E3779B1
    for lane in range(32):
        h = 0x85EBCA77 * (lane + 1) & U32
        for word in words[lane::32]:
            h ^= word
            h = ((h << 15 | h >> 17) & U32) * 0x9E3779B1 & U32
        h ^= h >> 15
        h = h * 0x85EBCA77 & U32
        h ^= h >> 13
        total += h
    return total & U32


# ----------------------------------------------------------------------------------------------------------- recipes


@dataclass
class Tile:
    method: int
    parameters: int = 0
    values: list[int] = field(default_factory=list)  # of constant tiles; samples of raw and dense ones
    noise: Noise | None = None
    origins: list[int] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    payload: bytes | None = None  # where it is given as bytes
    dense: Dense = field(default_factory=Dense)
    claimed: int | None = None  # units of a payload that is not in the file


@dataclass
class Recipe:
    reason: str = ""
    spec: str = ""
    width: int = 0
    height: int = 0
    colour: int = 0
    bits: int = 0
    alpha: int | None = None
    tile_width: int = 1
    tile_height: int = 1
    sections: list[tuple[int, bytes]] = field(default_factory=list)
    model: Model | None = None
    at_model: int = 0  # among the sections
    elsewhere: bool = False  # the model: the file has its name
    name: bytes = b""  # of a model that is not in the file
    tiles: list[Tile] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)
    truncate: int | None = None
    append: bytes = b""
    samples: list[int] | None = None  # what a decoder must give
    entries: bytes | int | None = None  # of the palette, all of them, or their check
    tiny: bytes | None = None  # section 18; bytes behind the last section
    map: list[tuple[int, int]] = field(default_factory=list)  # of each channel: its source, and its one sample

    @property
    def channels(self) -> int:
        return CHANNELS[self.colour]

    @property
    def coded(self) -> int:
        """How many channels are coded."""
        sources = {source for source, _ in self.map if source != 255}
        return len(sources) if self.map else self.channels

    def tile_shapes(self) -> Iterator[tuple[int, int]]:
        """Width and height of each tile."""
        for y in range(0, self.height, 32 * self.tile_height):
            for x in range(0, self.width, 32 * self.tile_width):
                yield min(32 * self.tile_width, self.width - x), min(32 * self.tile_height, self.height - y)


def lines_of(text: str, control: bool) -> Iterator[list[str]]:
    """The words of each line that counts; indented lines continue the one before."""
    joined: list[str] = []
    for line in text.splitlines()[1:]:
        line = re.sub(r"(^|\s)#.*", "", line).rstrip()
        if line.startswith((" ", "\t")) and joined:
            joined[-1] += line
        elif line:
            joined.append(line)
    for line in joined:
        words = line.split()
        if words[0] == ("+" if control else "-"):
            continue
        yield words[1:] if words[0] in "+-" else words


def parse(text: str, control: bool = False) -> Recipe:
    first = text.splitlines()[0]
    if not first.startswith("# "):
        raise RecipeError("the first line is `# ` and the reason")
    recipe = Recipe(reason=first[2:].strip())
    for words in lines_of(text, control):
        parse_line(recipe, words[0], words[1:])
    if recipe.model and recipe.elsewhere:
        recipe.sections.pop(recipe.at_model)
        recipe.name = name_of(recipe.model.contents())
    elif recipe.model:
        recipe.sections[recipe.at_model] = (SECTIONS["model"], recipe.model.contents())
    if recipe.map:
        place = sum(section_type <= SECTIONS["model"] for section_type, _ in recipe.sections)
        entries = b"".join(struct.pack("<BBH", source, 0, sample) for source, sample in recipe.map)
        recipe.sections.insert(place, (SECTIONS["channel_map"], entries))
    if not recipe.spec:
        raise RecipeError("no line `spec SECTION`")
    return recipe


def name_of(model: bytes) -> bytes:
    return hashlib.sha256(model).digest()[:16]


def parse_line(recipe: Recipe, keyword: str, words: list[str]) -> None:
    name, _, times = keyword.partition("*")
    tile = recipe.tiles[-1] if recipe.tiles else None
    if name == "spec":
        (recipe.spec,) = words
    elif name == "image":
        size, colour, bits = words
        recipe.width, recipe.height = map(int, size.split("x"))
        recipe.colour, recipe.bits = COLOURS[colour], int(bits)
    elif name == "alpha":
        recipe.alpha = int(words[0])
    elif name == "tiles":
        recipe.tile_width, recipe.tile_height = map(int, words[0].split("x"))
    elif name == "section":
        recipe.sections.append((SECTIONS.get(words[0]) or int(words[0], 0), contents(words[1:])))
    elif name == "map":
        recipe.map = [(255, int(word[1:])) if word[0] == "=" else (int(word), 0) for word in words]
    elif name in ("model", "token_model", "bit_model"):
        if name == "model":
            recipe.model = Model(numbers(words), recipe.coded)
        elif name == "token_model":
            recipe.model = TokenModel(numbers(words), recipe.coded, recipe.bits)
        else:
            recipe.model = BitModel(numbers(words), recipe.coded, recipe.bits)
        recipe.at_model = len(recipe.sections)
        recipe.sections.append((SECTIONS["model"], b""))
    elif name == "elsewhere":
        recipe.elsewhere = True
    elif name == "name" and words[0].startswith("default:"):
        recipe.name = name_of(default_model(int(words[0][8:])).read_bytes())
    elif name == "name":
        recipe.name = contents(words)
    elif recipe.model and recipe.model.line(name, int(times or 1), words):
        pass
    elif name == "constant":
        recipe.tiles += [Tile(0, values=numbers(words))] * (int(times) if times else 1)
    elif name == "raw" and words[0].startswith("noise:"):
        recipe.tiles.append(Tile(1, noise=Noise(int(words[0][6:]))))
    elif name == "raw":
        recipe.tiles.append(Tile(1, values=numbers(words)))
    elif name == "fast":
        recipe.tiles.append(Tile(2, int(words[0])))
    elif name == "dense":
        noise = Noise(int(words[1][6:])) if words[1].startswith("noise:") else None
        recipe.tiles.append(Tile(3, int(words[0]), [] if noise else numbers(words[1:]), noise))
    elif name == "classes" and tile:
        tile.dense.classes[int(words[0])] = numbers(words[1:])
    elif name == "ending" and tile:
        tile.parameters |= int(words[0]) << 3
    elif name == "state" and tile:
        tile.dense.states[int(words[0])] = int(words[1], 0)
    elif name == "matches" and tile:
        tile.dense.matches = numbers(words)
    elif name == "still_blocks" and tile:
        tile.dense.still = numbers(words)
    elif name == "rows_of_blocks" and tile:
        tile.dense.rows_still = numbers(words)
    elif name == "put" and tile:
        tile.dense.puts += [words] * int(times or 1)
    elif name == "list" and tile:
        tile.dense.units = int(words[0])
    elif name == "tail" and tile:
        tile.dense.tail = contents(words)
    elif name == "cut" and tile:
        tile.dense.cut = int(words[0])
    elif name == "payload":
        recipe.tiles.append(Tile(int(words[0]), int(words[1]), payload=contents(words[2:])))
    elif name == "absent":
        method, units = map(int, words)
        recipe.tiles += [Tile(method, claimed=units)] * (int(times) if times else 1)
    elif name == "origin" and tile:
        tile.origins = numbers(words)
    elif name == "block" and tile:
        tile.blocks += [Block(*map(int, words)) for _ in range(int(times) if times else 1)]
    elif name == "fields" and tile:
        tile.blocks[-1].fields = numbers(words)
    elif name == "codes" and tile:
        tile.blocks[-1].codes = numbers(words)
    elif name == "unused" and tile:
        tile.blocks[-1].unused = int(words[0], 0)
    elif name == "noise" and tile:
        tile.noise = Noise(int(words[0]))
    elif name == "set":
        recipe.changes.append((words[0], words[1]))
    elif name == "tiny":
        recipe.tiny = contents(words)
    elif name == "truncate":
        recipe.truncate = int(words[0], 0)
    elif name == "append":
        recipe.append = contents(words)
    elif name == "samples":
        recipe.samples = numbers(words)
    elif name == "entries":
        recipe.entries = int(words[0][6:], 0) if words[0].startswith("check:") else contents(words)
    else:
        raise RecipeError(f"no such line: {keyword} {' '.join(words)}")


# ---------------------------------------------------------------------------------------------------------- payloads


def write_payload(tile: Tile, width: int, height: int, recipe: Recipe) -> bytes:
    if tile.payload is not None:
        out = tile.payload
    elif tile.method == 1:
        count = width * height * recipe.coded
        noise = tile.noise
        values = [noise.below(1 << recipe.bits) for _ in range(count)] if noise else tile.values
        if len(values) != count:
            raise RecipeError(f"a raw tile of {count} samples has {len(values)}")
        bits = BitString()
        for value in values:
            bits.put(value, recipe.bits)
        out = bits.bytes()
    elif tile.method == 3 and isinstance(recipe.model, TokenModel):
        out = write_tokens(recipe.model, tile.parameters, (width, height), tile.dense, tile.values, tile.noise)
    elif tile.method == 3 and isinstance(recipe.model, BitModel):
        out = write_bits(recipe.model, tile.parameters, (width, height), tile.dense, tile.values, tile.noise)
    elif tile.method == 3:
        out = write_dense(recipe.model, tile.parameters, (width, height), tile.dense, tile.values, tile.noise)
    else:
        out = write_fast((width, height), recipe.coded, recipe.bits, tile.origins, tile.blocks, tile.noise)
    if recipe.tiny is not None:
        return out + bytes(-len(out) % 4 or 4 * (tile.payload is None and tile.method == 2 and len(out) == 4))
    return out + bytes(pad(len(out)) - len(out))


# ------------------------------------------------------------------------------------------------------------- files


class File:
    """The bytes of a recipe's file, and where its parts are."""

    def __init__(self, recipe: Recipe) -> None:
        shapes = list(recipe.tile_shapes())
        if len(shapes) != len(recipe.tiles):
            raise RecipeError(f"an image of {len(shapes)} tiles has {len(recipe.tiles)}")
        self.model, self.at_model = recipe.model, recipe.at_model
        self.at_entries = 64 + len(recipe.name)
        self.head_size = self.at_entries + SECTION_ENTRY_SIZE * len(recipe.sections)
        self.index_end = pad(self.head_size + 12 * len(shapes))
        self.data = bytearray(self.index_end)
        self.section_offsets = []
        for i, (section_type, section) in enumerate(recipe.sections):
            offset = len(self.data)
            self.section_offsets.append(offset)
            self.data += section + bytes(pad(len(section)) - len(section))
            struct.pack_into("<HHIII", self.data, self.at_entries + SECTION_ENTRY_SIZE * i, section_type, 0, 0,
                             offset // 16, len(section))
        self.payload_start = len(self.data)
        self.payloads: list[tuple[int, int]] = []  # offset and size
        next_unit = self.payload_start // 16
        for i, (tile, (width, height)) in enumerate(zip(recipe.tiles, shapes, strict=True)):
            at = self.head_size + 12 * i
            if tile.method == 0:
                values = tile.values + [0] * (4 - len(tile.values))
                struct.pack_into("<BBH4H", self.data, at, 0, tile.parameters, 0, *values)
                self.payloads.append((0, 0))
                continue
            payload = b"" if tile.claimed is not None else write_payload(tile, width, height, recipe)
            units = len(payload) // 16 if tile.claimed is None else tile.claimed
            self.payloads.append((len(self.data), len(payload)))
            struct.pack_into("<BBHII", self.data, at, tile.method, tile.parameters, units, next_unit & U32,
                             check(payload))
            self.data += payload
            next_unit += units
        self.write_header(recipe)

    def write_header(self, recipe: Recipe) -> None:
        alpha = recipe.alpha if recipe.alpha is not None else int(recipe.colour in (1, 3))
        required = int(recipe.name != b"") | int(isinstance(recipe.model, BitModel)) << 1
        required |= int(bool(recipe.map)) << 2
        required |= int(isinstance(recipe.model, BitModel) and recipe.model.has_shapes) << 3
        self.data[:self.at_entries] = recipe.name.join([struct.pack(
            "<8sHHHHIIIIHBBBBBBII16s", b"\x8bL3I\r\n\x1a\n", 1, len(recipe.sections), required, 0, 0,
            recipe.width, recipe.height, 1, recipe.channels, int(recipe.bits > 8), recipe.bits, recipe.colour, alpha,
            recipe.tile_width, recipe.tile_height, 0, 0, bytes(16)), b""])

    def place(self, name: str) -> tuple[int, int]:
        """Offset and width of a field."""
        part, _, rest = name.partition(".")
        if part == "header":
            return HEADER[rest]
        if part == "byte":
            return int(rest, 0), 1
        if part == "model" and self.model:
            offset, width = self.model.place(rest)
            return self.section_offsets[self.at_model] + offset, width
        number, _, rest = rest.partition(".")
        i = int(number)
        if part == "section":
            begin, fields = self.at_entries + SECTION_ENTRY_SIZE * i, SECTION_ENTRY
        elif part == "index":
            begin, fields = self.head_size + 12 * i, INDEX_ENTRY
        elif part == "contents":  # of a section, and the bytes after them
            return self.section_offsets[i] + int(rest), 1
        elif part == "payload":
            return self.payloads[i][0] + int(rest), 1
        else:
            raise RecipeError(f"no field {name}")
        offset, width = fields[rest]
        return begin + offset, width

    def change(self, name: str, value: str) -> None:
        """To a number; `+N` and `-N` add to what is there, `^N` flips bits of it."""
        offset, width = self.place(name)
        now = int.from_bytes(self.data[offset : offset + width], "little")
        if value[0] in "+-":
            now += int(value, 0)
        elif value[0] == "^":
            now ^= int(value[1:], 0)
        else:
            now = int(value, 0)
        self.data[offset : offset + width] = (now & (1 << 8 * width) - 1).to_bytes(width, "little")

    def seal(self, recipe: Recipe) -> None:
        """All changes and all checks: one that was changed stays so, and those over it are right."""
        checks = re.compile(r"section\.\d+\.check|index\.\d+\.check|header\.(index_check|digest|head_check)")
        last = dict.fromkeys(name for name, _ in recipe.changes if checks.fullmatch(name))
        for name, value in recipe.changes:
            if name not in last:
                self.change(name, value)

        def settle(name: str, value: int) -> None:
            offset, width = self.place(name)
            self.data[offset : offset + width] = value.to_bytes(width, "little")
            for changed, change in recipe.changes:
                if changed == name:
                    self.change(name, change)

        for i, (offset, (_, section)) in enumerate(zip(self.section_offsets, recipe.sections, strict=True)):
            settle(f"section.{i}.check", check(self.data[offset : offset + pad(len(section))]))
        for i, (offset, size) in enumerate(self.payloads):
            if size:
                settle(f"index.{i}.check", check(self.data[offset : offset + size]))
        settle("header.index_check", check(self.data[self.head_size : self.index_end]))
        digest = hashlib.sha256(self.data[: self.payload_start]).digest()[:16]
        settle("header.digest", int.from_bytes(digest, "little"))
        settle("header.head_check", check(self.data[: self.head_size]))


class TinyFile(File):
    """A tiny file (section 18), which is laid out in another way."""

    def __init__(self, recipe: Recipe) -> None:
        (tile,) = recipe.tiles
        self.model, self.at_model = recipe.model, recipe.at_model
        self.data = bytearray(16) + recipe.name
        self.section_offsets = [0] * len(recipe.sections)
        sections = list(enumerate(recipe.sections))
        model = 31 if recipe.name else 0
        if recipe.model and not recipe.elsewhere:
            _, (_, own) = sections.pop(self.at_model)
            model = len(own)
            self.section_offsets[self.at_model] = len(self.data)
            self.data += own + bytes(pad(len(own)) - len(own))
        if tile.method == 0 and tile.payload is None:
            payload = struct.pack("<4H", *tile.values, *[0] * (4 - len(tile.values)))
        else:
            payload = write_payload(tile, recipe.width, recipe.height, recipe)
        self.payloads = [(len(self.data), len(payload))]
        self.data += payload
        for i, (section_type, section) in sections:
            code = section_type if section_type < 8 else section_type - 0x8000 + 8
            self.data += struct.pack("<H", code << 12 | len(section))
            self.section_offsets[i] = len(self.data)
            self.data += section
        self.data += recipe.tiny or b""
        self.data += bytes(-len(self.data) % 4)
        kind = recipe.colour if recipe.alpha != 2 else 5 + recipe.colour // 3
        coding = tile.parameters if tile.method == 3 else 6 | (tile.method + tile.parameters) << 3
        struct.pack_into("<4sIBBBBI", self.data, 0, b"\x8bL3t", 0, recipe.width - 1, recipe.height - 1,
                         kind | recipe.bits - 1 << 3, coding,
                         len(self.data) // 4 - 1 | len(payload) // 4 << 10 | model << 20)

    def place(self, name: str) -> tuple[int, int]:
        part, _, rest = name.partition(".")
        if part == "tiny":
            return TINY_HEADER[rest]
        if part == "section":  # the u16 before the contents
            return self.section_offsets[int(rest)] - 2, 2
        return super().place(name)

    def seal(self, recipe: Recipe) -> None:
        for name, value in recipe.changes:
            if name != "tiny.check":
                self.change(name, value)
        self.data[4:8] = check(self.data[8:]).to_bytes(4, "little")
        for name, value in recipe.changes:
            if name == "tiny.check":
                self.change(name, value)


def build(recipe: Recipe) -> bytes:
    file = File(recipe) if recipe.tiny is None else TinyFile(recipe)
    file.seal(recipe)
    return bytes(file.data[: recipe.truncate]) + recipe.append


def build_text(text: str, control: bool = False) -> bytes:
    return build(parse(text, control))


def entries_fit(recipe: Recipe, palette: list[bytes] | None) -> bool:
    """Whether the entries of a palette are those that the recipe states."""
    entries = b"".join(palette or ())
    return recipe.entries is None or recipe.entries in (entries, check(entries) if len(entries) % 16 == 0 else None)


def has_control(text: str) -> bool:
    return re.search(r"^[+-] ", text, re.MULTILINE) is not None


def recipes() -> Iterator[tuple[str, str]]:
    """Name, such as valid/one_pixel, and text of every recipe."""
    for group in GROUPS:
        for path in sorted((HERE / group).glob("*.txt")):
            yield f"{group}/{path.stem}", path.read_text(encoding="ascii")


def default_model(number: int) -> Path:
    return HERE.parent / "models" / f"{number:02}.l3model"


def models() -> Iterator[bytes]:
    """All models that files of recipes and controls may name."""
    for path in sorted((HERE.parent / "models").glob("*.l3model")):
        yield path.read_bytes()
    for name, text in recipes():
        if "elsewhere" not in text:
            continue
        for control in (False, True):
            recipe = parse(text, control)
            if recipe.model and recipe.elsewhere and not name.startswith("limits/"):
                yield recipe.model.contents()


def write_models(out: Path) -> list[Path]:
    paths = []
    for model in models():
        path = out / "models" / f"{name_of(model).hex()}.l3model"
        write(path, model)
        paths.append(path)
    return paths


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def main() -> int:
    parser = argparse.ArgumentParser(prog="build.py", description="Build L3 test vectors from their recipes.")
    parser.add_argument("--controls", action="store_true",
                        help="build the controls instead: the files in which nothing is wrong")
    parser.add_argument("--one", metavar="RECIPE", type=Path, help="build this recipe to the file OUT")
    parser.add_argument("out", metavar="OUT", type=Path)
    options = parser.parse_args()
    name = str(options.one)
    try:
        if options.one:
            write(options.out, build_text(options.one.read_text(encoding="ascii"), options.controls))
            return 0
        write_models(options.out)
        for name, text in recipes():
            if not options.controls:
                write(options.out / f"{name}.l3", build_text(text))
            elif has_control(text):
                write(options.out / "controls" / f"{Path(name).name}.l3", build_text(text, control=True))
    except (RecipeError, ValueError, LookupError, TypeError, OSError) as error:
        print(f"build.py: {name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
