"""The bit model and its tiles in recipes (section 24 of spec/format.md), as dense.py does what is before it: from the
text alone, and as it is told, right or wrong. README.md beside this file has the lines."""

from __future__ import annotations

import re
import struct

from dense import Dense, Encoder, Model, drawn, put_bits, spoiled
from pieces import BitString, Noise, RecipeError, numbers, pad

COLOURS, SHAPES = 1, 2  # flags
FREQUENCIES = (
    *(1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 51, 64),
    *(81, 102, 128, 161, 203, 256, 323, 406, 512, 645, 813, 1024, 1218, 1448, 1722, 1930),
)
RUN = re.compile(r"(\d*)([.x])")
ROW = re.compile(rf"({RUN.pattern})+")
LEVELS = [*FREQUENCIES, *(4096 - frequency for frequency in reversed(FREQUENCIES))]

Tree = int | tuple["Tree", "Tree"]  # a level, or what is below a neighbour of 0 and of 1


def given_tree(words: list[str], left: int) -> Tree:
    """The next tree of the words, which are taken away; `left` neighbours may split it."""
    if not words:
        raise RecipeError("the tree ends too early")
    word = words.pop(0)
    if word != "/":
        return int(word)
    if left == 0:
        raise RecipeError("no neighbour is left for a split")
    below = given_tree(words, left - 1)
    return below, given_tree(words, left - 1)


def drawn_tree(noise: Noise, of_64: int, left: int) -> Tree:
    """A tree in which a node is split in so many of 64 cases."""
    if left == 0 or noise.below(64) >= of_64:
        return noise.below(64)
    below = drawn_tree(noise, of_64, left - 1)
    return below, drawn_tree(noise, of_64, left - 1)


def put_tree(out: BitString, tree: Tree, left: int) -> None:
    if left > 0:
        out.put(int(isinstance(tree, tuple)), 1)
    if isinstance(tree, tuple):
        put_tree(out, tree[0], left - 1)
        put_tree(out, tree[1], left - 1)
    else:
        out.put(tree, 6)


Picture = list[list[int]]  # rows of bits


class Shape:
    def __init__(self, words: list[str]) -> None:
        """`.xx. x..x`, and `bits` with the fields of its rows; or `noise:SEED 8x4`."""
        at_bits = words.index("bits") if "bits" in words else len(words)
        self.fields = words[at_bits + 1 :]
        if words[0].startswith("noise:"):
            noise = Noise(int(words[0][6:]))
            width, height = map(int, words[1].split("x"))
            self.rows: Picture = [[noise.below(2) for _ in range(width)] for _ in range(height)]
        else:
            self.rows = [[".x".index(bit) for bit in row] for word in words[:at_bits] for row in repeated(word)]
        self.width, self.height = len(self.rows[0]), len(self.rows)
        if any(len(row) != self.width for row in self.rows):
            raise RecipeError("rows of a shape differ in their width")

    def put(self, out: BitString) -> None:
        out.put(self.width - 1, 6)
        out.put(self.height - 1, 6)
        if self.fields:
            put_bits(out, self.fields)
            return
        above = [0] * self.width
        for row in self.rows:
            put_row_of_shape(out, row, above)
            above = row


def repeated(word: str) -> list[str]:
    """`9.2x` is a row of runs of 9 and 2 pixels; `..x*3` is a row three times."""
    row, _, times = word.partition("*")
    if not ROW.fullmatch(row):
        raise RecipeError(f"no row of a shape: {word}")
    return ["".join(int(run[1] or 1) * run[2] for run in RUN.finditer(row))] * int(times or 1)


def put_row_of_shape(out: BitString, row: list[int], above: list[int]) -> None:
    """Each change in the code that takes the fewest bits."""
    width = len(row)
    colour, last = 0, -1
    while last < width:
        change = next((x for x in range(last + 1, width) if row[x] != colour), width)
        b = last + 1
        while b < width and (above[b] == colour or (above[b - 1] if b > 0 else 0) != colour):
            b += 1
        if change == b:
            out.put(1, 1)
        elif abs(change - b) <= 2:
            far = abs(change - b) - 1
            out.put(0b10 << far, 2 + far)
            out.put(int(change > b), 1)
        else:
            out.put(0, 3)
            out.put(change, 7)
        colour, last = 1 - colour, change


def put_number(out: BitString, v: int, k: int) -> None:
    high = (v >> k) + 1
    zeros = high.bit_length() - 1
    out.put(0, zeros)
    out.put(1, 1)
    out.put(high - (1 << zeros), zeros)
    out.put(v & (1 << k) - 1, k)


def unsigned(v: int) -> int:
    """The number that `signed` makes this of."""
    return 2 * v - 1 if v > 0 else -2 * v


class BitModel(Model):
    def __init__(self, neighbours: list[int], channels: int, bits: int) -> None:
        super().__init__([], channels)
        self.neighbours = neighbours
        self.bits = bits
        self.colours: list[list[int]] = []
        self.tree: Tree = 32
        self.given: list[str] = []  # the bit string, where it is given in fields
        self.has_shapes = False
        self.k = [0, 0, 0]  # of the numbers of shapes, of columns and of rows
        self.shapes: list[Shape] = []

    def line(self, name: str, times: int, words: list[str]) -> bool:
        if name == "colour":
            self.colours.append(drawn(words, 1 << self.bits, len(self.channels)))
        elif name == "tree" and words[0] == "bits":
            self.given = words[1:]
        elif name == "tree" and words[0].startswith("noise:"):
            self.tree = drawn_tree(Noise(int(words[0][6:])), int(words[1]), len(self.neighbours))
        elif name == "tree":
            left = list(words)
            self.tree = given_tree(left, len(self.neighbours))
            if left:
                raise RecipeError("words behind the tree")
        elif name == "leaves":
            self.tree = leaves(drawn(words, 64, 1 << len(self.neighbours)))
        elif name == "shape":
            self.has_shapes = True
            self.shapes += [Shape(words)] * times
        elif name == "shapes":
            self.has_shapes = True
            self.k = numbers(words)
        elif name == "longer":
            return super().line(name, times, words)
        else:
            return False
        return True

    def frequency(self, bits: list[int]) -> int:
        """Of the bit 1, where the neighbours are these bits."""
        tree = self.tree
        for bit in bits:
            if isinstance(tree, tuple):
                tree = tree[bit]
        assert isinstance(tree, int)
        return LEVELS[tree]

    def string(self) -> bytes:
        out = BitString()
        if self.given:
            put_bits(out, self.given)
            return out.bytes()
        for colour in self.colours:
            for sample in colour:
                out.put(sample, self.bits)
        put_tree(out, self.tree, len(self.neighbours))
        if self.has_shapes:
            for k in self.k:
                out.put(k, 3)
            out.put(len(self.shapes) - 1, 10)
            for shape in self.shapes:
                shape.put(out)
        return out.bytes()

    def contents(self) -> bytes:
        flags = COLOURS * bool(self.colours) + SHAPES * self.has_shapes
        out = struct.pack("<5B", 2, len(self.channels), self.bits, flags, len(self.neighbours))
        out += bytes(self.neighbours)
        begin = len(out)
        out += self.string()
        more = self.more.get(0, 0)
        out = out + bytes(more) if more >= 0 else out[:more]
        self.begins = [begin, len(out)]
        return out

    def place(self, name: str) -> tuple[int, int]:
        part, _, rest = name.partition(".")
        fields = ("kind", "channels", "bits", "flags", "count")
        if part in fields:
            return fields.index(part), 1
        if part == "neighbour":
            return len(fields) + int(rest), 1
        if part == "part":
            return super().place(name)
        raise RecipeError(f"no field model.{name}")

    def bit_of(self, pixel: list[int]) -> int:
        bits = self.colours or [[0], [1]]
        if pixel not in bits:
            raise RecipeError(f"no bit stands for {pixel}")
        return bits.index(pixel)


def leaves(levels: list[int]) -> Tree:
    """The full tree of these levels."""
    half = len(levels) // 2
    return (leaves(levels[:half]), leaves(levels[half:])) if half else levels[0]


class BitEncoder(Encoder):
    model: BitModel

    def __init__(self, model: BitModel, parameters: int, width: int, height: int) -> None:
        super().__init__(model, parameters, width, height)
        self.bits: dict[tuple[int, int], int] = {}  # by lane and step

    def history(self, lane: int, step: int) -> int:
        if lane < 0:
            pitch = max(self.width, 2 * self.lanes)
            return self.history(lane + self.lanes, step - pitch + 2 * self.lanes)
        return self.bits.get((lane, step), 0)

    def put_bit(self, x: int, y: int, bit: int | None, noise: Noise | None) -> None:
        """The bit of the pixel at this place; where it is not given it is drawn."""
        lane, step = y % self.lanes, self.step(x, y)
        around = [self.history(lane - (q >> 4), step - (q & 15) - 1) for q in self.model.neighbours]
        frequency = self.model.frequency(around)
        if bit is None:
            assert noise is not None
            bit = int(noise.below(4096) < frequency)
        self.bits[lane, step] = bit
        self.events.append(((1, step, 0, lane), range(frequency) if bit else range(frequency, 4096)))


def write_list(model: BitModel, dense: Dense) -> bytes:
    """Where shapes are put."""
    out = BitString()
    x_before = y_before = 0
    for words in dense.puts:
        if words[0] == "bits":
            put_bits(out, words[1:])
            continue
        i, x, y = numbers(words)
        put_number(out, i, model.k[0])
        put_number(out, unsigned(x - x_before), model.k[1])
        put_number(out, unsigned(y - y_before), model.k[2])
        x_before, y_before = x + (model.shapes[i].width if i < len(model.shapes) else 0), y
    string = out.bytes()
    units = pad(4 + len(string)) // 16 if dense.units is None else dense.units
    return (struct.pack("<HH", units, len(dense.puts)) + string + bytes(16 * units))[: 16 * units]


def places_of_shapes(model: BitModel, dense: Dense) -> set[tuple[int, int]]:
    """Column and row of each 1 that a shape has."""
    ones: set[tuple[int, int]] = set()
    for words in dense.puts:
        i, x, y = numbers(words) if words[0] != "bits" else (len(model.shapes), 0, 0)
        rows = model.shapes[i].rows if i < len(model.shapes) else []
        ones |= {(x + c, y - len(rows) + r) for r, row in enumerate(rows) for c, bit in enumerate(row) if bit}
    return ones


def write_bits(
    model: BitModel, parameters: int, shape: tuple[int, int], dense: Dense, samples: list[int], noise: Noise | None
) -> bytes:
    """The payload, not padded. Where a shape has a 1 and samples are given, the bit that is decoded is 0."""
    width, height = shape
    ones = places_of_shapes(model, dense)
    channels = len(model.channels)
    if not noise and len(samples) != width * height * channels:
        raise RecipeError(f"a dense tile of {width * height * channels} samples has {len(samples)}")
    encoder = BitEncoder(model, parameters, width, height)
    places = [(x, y) for y in range(height) for x in range(width)]
    for x, y in sorted(places, key=lambda place: encoder.step(*place)):
        i = (y * width + x) * channels
        bit = None if noise else model.bit_of(samples[i : i + channels])
        if bit is not None and (x, y) in ones:
            if bit == 0:
                raise RecipeError(f"a shape has a 1 at {x}, {y}, where the samples have the colour of 0")
            bit = 0
        encoder.put_bit(x, y, bit, noise)
    before = write_list(model, dense) if model.has_shapes else b""
    return spoiled(before + encoder.payload(dense.states), dense)
