"""The bit model and its tiles in recipes (section 24 of spec/format.md), as dense.py does what is before it: from the
text alone, and as it is told, right or wrong. README.md beside this file has the lines."""

from __future__ import annotations

import struct

from dense import Dense, Encoder, Model, drawn, put_bits, spoiled
from pieces import BitString, Noise, RecipeError

COLOURS = 1  # flag
FREQUENCIES = (
    *(1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 51, 64),
    *(81, 102, 128, 161, 203, 256, 323, 406, 512, 645, 813, 1024, 1218, 1448, 1722, 1930),
)
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


class BitModel(Model):
    def __init__(self, neighbours: list[int], channels: int, bits: int) -> None:
        super().__init__([], channels)
        self.neighbours = neighbours
        self.bits = bits
        self.colours: list[list[int]] = []
        self.tree: Tree = 32
        self.given: list[str] = []  # the bit string, where it is given in fields

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
        return out.bytes()

    def contents(self) -> bytes:
        flags = COLOURS if self.colours else 0
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


def write_bits(
    model: BitModel, parameters: int, shape: tuple[int, int], dense: Dense, samples: list[int], noise: Noise | None
) -> bytes:
    """The payload, not padded."""
    width, height = shape
    channels = len(model.channels)
    if not noise and len(samples) != width * height * channels:
        raise RecipeError(f"a dense tile of {width * height * channels} samples has {len(samples)}")
    encoder = BitEncoder(model, parameters, width, height)
    places = [(x, y) for y in range(height) for x in range(width)]
    for x, y in sorted(places, key=lambda place: encoder.step(*place)):
        i = (y * width + x) * channels
        bit = None if noise else model.bit_of(samples[i : i + channels])
        encoder.put_bit(x, y, bit, noise)
    return spoiled(encoder.payload(dense.states), dense)
