"""The model and the dense tiles of recipes (sections 12 and 13 of spec/format.md): an encoder that looks at nothing but
the text. It does what it is told, right or wrong; README.md beside this file has the lines."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import mul

from pieces import BitString, Noise, RecipeError, numbers

TAPS = 24
NAMES = ("W", "N", "NW", "NE", "WW", "NN", "NNE", "NWW")
PAIRS = ((0, 8), (1, 9), (2, 10), (3, 11), (4, 12), (5, 13), (19, 14), (23, 15))  # taps of a sample and of its error


def drawn(words: list[str], limit: int, count: int) -> list[int]:
    """Numbers, or `noise:SEED`: as many below the limit."""
    if words and words[0].startswith("noise:"):
        noise = Noise(int(words[0][6:]))
        return [noise.below(limit) for _ in range(count)]
    return numbers(words)


# ------------------------------------------------------------------------------------------------------------ tables


def rounded(frequency: int) -> int:
    """The greatest frequency up to this one that a table can hold."""
    shift = max(0, frequency.bit_length() - 4)
    return frequency >> shift << shift


@dataclass
class Table:
    rest: int
    mode: int
    frequencies: list[int]
    bits: list[str] = field(default_factory=list)  # the whole part, where it is given so
    _slots: list[list[int]] = field(default_factory=list)

    def part(self) -> bytes:
        out = BitString()
        if self.bits:
            put_bits(out, self.bits)
            return out.bytes()
        if sum(self.frequencies) != 4096:
            raise RecipeError(f"frequencies of a table add up to {sum(self.frequencies)}")
        out.put(len(self.frequencies) - 1, 8)
        out.put(self.rest, 5)
        out.put(self.mode, 2)
        before = [9, 9]
        for symbol, frequency in enumerate(self.frequencies):
            if symbol == self.rest:
                continue
            if rounded(frequency) != frequency:
                raise RecipeError(f"{frequency} is not a frequency with at most four bits that count")
            n = frequency.bit_length()
            expected = (before[0], before[1], (before[0] + before[1] + 1) // 2)[self.mode]
            for _ in range(abs(n - expected)):
                out.put(1, 1)
            out.put(0, 1)
            if n != expected:
                out.put(int(n < expected), 1)
            if n > 0:
                t = min(n - 1, 3)
                out.put((frequency >> n - 1 - t) - (1 << t), t)
            before = [n, before[0]]
        return out.bytes()

    def slots(self, buckets: int) -> list[list[int]]:
        """For each symbol the slot of each of its numbers (12.4)."""
        if self._slots:
            return self._slots
        size = 4096 // buckets
        f = self.frequencies + [0] * (buckets - len(self.frequencies))
        left = list(f)
        small = [z for z in range(buckets) if f[z] < size]
        large = [z for z in range(buckets) if f[z] >= size]
        slots = [[-1] * count for count in f]

        def fill(bucket: int, own: int, filler: int) -> None:
            left[filler] -= size - own
            for k in range(size):
                symbol, number = (bucket, k) if k < own else (filler, left[filler] + k - own)
                slots[symbol][number] = bucket * size + k

        while small or (len(large) > 1 and left[large[0]] < size):
            if left[large[0]] < size:
                bucket = large.pop(0)
                fill(bucket, left[bucket], large[0])
            else:
                bucket = small.pop(0)
                fill(bucket, f[bucket], large[0])
        for bucket in large:
            fill(bucket, size, bucket)
        self._slots = slots
        return slots

    def draw(self, noise: Noise) -> int:
        """A symbol, as likely as its frequency says."""
        number = noise.below(4096)
        for symbol, frequency in enumerate(self.frequencies):
            number -= frequency
            if number < 0:
                return symbol
        raise RecipeError("frequencies of a table are below 4096")


def noise_table(noise: Noise, last: int) -> Table:
    """Any valid table with this last symbol."""
    rest, mode = noise.below(min(last, 31) + 1), noise.below(3)
    f = [0] * (last + 1)
    left = 4095
    coded = [z for z in range(last + 1) if z != rest]
    for i, z in enumerate(coded):
        most = 2 * left // (len(coded) - i)
        f[z] = rounded(min(left - 1, noise.below(most + 1)) if i + 1 < len(coded) else min(left, 1 + noise.below(most)))
        left -= f[z]
    f[rest] = left + 1
    return Table(rest, mode, f)


def put_bits(out: BitString, words: list[str]) -> None:
    """`WIDTH:VALUE`, `WIDTH:VALUE*TIMES`."""
    for word in words:
        width, _, value = word.partition(":")
        for each in numbers([value]):
            out.put(each, int(width))


# ------------------------------------------------------------------------------------------------------------- model


def all_weights(coded: dict[int, int]) -> list[int]:
    """Of all taps."""
    w = [coded.get(tap, 0) for tap in range(TAPS)]
    w[0] = 64 - sum(w[1:8])
    w[16] = -sum(w[17:20])
    w[20] = -sum(w[21:24])
    return w


@dataclass
class Channel:
    c: int
    classes: int
    taps: dict[int, list[int]] = field(default_factory=dict)  # weight of each class
    widths: dict[int, int] = field(default_factory=dict)  # of taps that are coded with more bits than they need
    activity: list[int] = field(default_factory=list)
    zones: list[int] = field(default_factory=list)
    signs: list[int] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    rows_noise: Noise | None = None
    class_tables: int = 1
    contexts: list[int] = field(default_factory=list)
    levels: int = 64  # of a row
    row_widths: tuple[int, int] = (6, 5)  # of the fields that end a row and that name a table
    most_of_pair: int = 128  # of what is drawn: the sum of two weights, and of activity weights
    most_of_activity: int = 128

    @property
    def earlier(self) -> int:
        return min(self.c, 2)

    def coded_taps(self) -> list[int]:
        taps = list(range(1, 14))
        if self.earlier >= 1:
            taps += [14, 17, 18, 19]
        if self.earlier >= 2:
            taps += [15, 21, 22, 23]
        return sorted(taps)

    def draw_weights(self, noise: Noise, spread: int) -> None:
        """Any that are valid, from -spread to spread - 1."""
        coded = self.coded_taps()
        for _ in range(self.classes):
            weights: dict[int, int] = {}
            for taps in (range(1, 8), range(8, 16), range(17, 20), range(21, 24)):
                while True:
                    weights |= {tap: noise.below(2 * spread) - spread for tap in taps if tap in coded}
                    w = all_weights(weights)
                    pairs = [abs(w[a] + w[b]) for a, b in PAIRS]
                    if -128 <= min(w) and max(w) <= 127 and max(pairs) <= self.most_of_pair:
                        break
            for tap, weight in weights.items():
                self.taps.setdefault(tap, []).append(weight)

    def draw_activity(self, noise: Noise) -> None:
        most = 91 if self.most_of_activity > 128 else 25
        while not self.activity or sum(self.activity) > self.most_of_activity:
            self.activity = [noise.below(most) for _ in range(9 + self.earlier)]

    def weights(self, of_class: int) -> list[int]:
        """Of all taps, for one class."""
        return all_weights({tap: weights[of_class] for tap, weights in self.taps.items()})

    def all_groups(self) -> tuple[list[int], list[int]]:
        return self.zones or [0] * 16, self.signs or [0] * 64

    def all_rows(self, tables: int) -> list[list[str]]:
        zones, signs = self.all_groups()
        count = (max(zones) + 1) * (max(signs) + 1)
        if self.rows_noise:
            noise = self.rows_noise
            self.rows = [noise_row(noise, tables, self.levels) for _ in range(count)]
            self.rows_noise = None
        return self.rows + [["0"]] * (count - len(self.rows))

    def part(self, tables: int) -> bytes:
        out = BitString()
        coded = []
        for tap in self.coded_taps():
            weights = self.taps.get(tap, [0] * self.classes)
            least = max(-128, min([127, *weights]))
            added = [weight - least for weight in weights]
            width = self.widths.get(tap, max(added).bit_length())
            out.put(width, 4)
            out.put(least & 0xFF, 8)
            coded.append((width, added))
        if not set(self.taps) <= set(self.coded_taps()):
            raise RecipeError("a tap that is not coded")
        for width, added in coded:
            for value in added:
                out.put(value, width)
        for weight in self.activity + [0] * (9 + self.earlier - len(self.activity)):
            out.put(weight, 7)
        out.put(int(bool(self.zones or self.signs)), 1)
        zones, signs = self.all_groups()
        if self.zones or self.signs:
            for group in zones:
                out.put(group, 2)
            for group in signs:
                out.put(group, 3)
        for row in self.all_rows(tables):
            put_row(out, row, self.row_widths)
        if self.classes > 1:
            out.put(self.class_tables - 1, 3)
            for context in self.contexts if self.class_tables > 1 else []:
                out.put(context, 3)
        return out.bytes()


def noise_row(noise: Noise, tables: int, levels: int) -> list[str]:
    row = [str(noise.below(tables))]
    for _ in range(noise.below(levels)):
        before = int(row[-1].lstrip("="))
        kind = noise.below(8)
        table = before if kind < 4 else min(before + 1, tables - 1) if kind < 7 else noise.below(tables)
        row.append(("=" if kind == 7 else "") + str(table))
    return row


def put_row(out: BitString, row: list[str], widths: tuple[int, int]) -> None:
    """The table of each level; `=` before it means that it is coded in a field where fewer bits would do."""
    out.put(len(row) - 1, widths[0])
    before = int(row[0])
    out.put(before, widths[1])
    for word in row[1:]:
        table = int(word.lstrip("="))
        if word[0] != "=" and table == before:
            out.put(0, 1)
        elif word[0] != "=" and table == before + 1:
            out.put(0b01, 2)
        else:
            out.put(0b11, 2)
            out.put(table, widths[1])
        before = table


class Model:
    def __init__(self, classes: list[int], channels: int) -> None:
        classes = classes + [1] * (channels - len(classes))
        self.channels = [Channel(c, count) for c, count in enumerate(classes)]
        self.channel = self.channels[0]  # of the lines that follow
        self.tables: list[Table] = []
        self.class_tables: list[Table] = []
        self.more: dict[int, int] = {}  # bytes at the end of a part that are too many, or too few
        self.begins: list[int] = []

    def line(self, name: str, times: int, words: list[str]) -> bool:
        """A line of the recipe; False where it is not one of the model's."""
        channel = self.channel
        if name == "channel":
            self.channel = self.channels[int(words[0])]
        elif name == "tap":
            tap, _, width = words[0].partition(":")
            weights = numbers(words[1:])
            channel.taps[int(tap)] = weights * channel.classes if len(weights) == 1 else weights
            if width:
                channel.widths[int(tap)] = int(width)
        elif name == "weights":
            channel.draw_weights(Noise(int(words[0][6:])), int(words[1]))
        elif name == "activity":
            if words[0].startswith("noise:"):
                channel.draw_activity(Noise(int(words[0][6:])))
            else:
                channel.activity = numbers(words)
        elif name == "zones":
            channel.zones = drawn(words, 4, 16)
        elif name == "signs":
            channel.signs = drawn(words, 8, 64)
        elif name == "row":
            channel.rows += [repeated(words)] * times
        elif name == "rows":
            channel.rows_noise = Noise(int(words[0][6:]))
        elif name == "contexts":
            channel.class_tables = int(words[0])
            before = self.channels[channel.c - 1].classes if channel.c > 0 else 1
            channel.contexts = drawn(words[1:], channel.class_tables, before)
        elif name in ("table", "class_table"):
            tables = self.tables if name == "table" else self.class_tables
            if words[0] == "bits":
                tables += [Table(0, 0, [], words[1:]) for _ in range(times)]
            elif words[0].startswith("noise:"):
                noise = Noise(int(words[0][6:]))
                tables += [noise_table(noise, int(words[1])) for _ in range(times)]
            else:
                rest, mode, *frequencies = numbers(words)
                if frequencies[rest] == 0:  # what the others leave
                    frequencies[rest] = 4096 - sum(frequencies)
                tables += [Table(rest, mode, frequencies) for _ in range(times)]
        elif name == "longer":
            self.more[int(words[0])] = int(words[1])
        else:
            return False
        return True

    def contents(self) -> bytes:
        parts = [channel.part(len(self.tables)) for channel in self.channels]
        parts += [table.part() for table in self.tables + self.class_tables]
        for i, more in self.more.items():
            parts[i] = parts[i] + bytes(more) if more > 0 else parts[i][:more]
        classes = [channel.classes for channel in self.channels]
        out = struct.pack("<8B", 0, len(self.channels), len(self.tables), len(self.class_tables),
                          *classes, *[0] * (4 - len(classes)))
        begin = len(out) + 2 * len(parts)
        self.begins = [begin]
        for part in parts:
            self.begins.append(self.begins[-1] + len(part))
        return out + struct.pack(f"<{len(parts)}H", *self.begins[:-1]) + b"".join(parts)

    def place(self, name: str) -> tuple[int, int]:
        """Offset, from the start of the section, and width of a field."""
        part, _, rest = name.partition(".")
        if part in ("kind", "channels", "tables", "class_tables"):
            return ("kind", "channels", "tables", "class_tables").index(part), 1
        if part == "classes":
            return 4 + int(rest), 1
        if part == "begin":
            return 8 + 2 * int(rest), 2
        if part == "part":  # a byte of it; negative ones count from its end
            i, byte = map(int, rest.split("."))
            return (self.begins[i] if byte >= 0 else self.begins[i + 1]) + byte, 1
        raise RecipeError(f"no field model.{name}")

    def class_table(self, c: int, context: int) -> Table:
        channel = self.channels[c]
        earlier = sum(channel.class_tables for channel in self.channels[:c] if channel.classes > 1)
        chosen = channel.contexts[context] if channel.class_tables > 1 else 0
        return self.class_tables[earlier + chosen]


def repeated(words: list[str]) -> list[str]:
    """`3`, `=3`, `3*20`."""
    result: list[str] = []
    for word in words:
        value, _, times = word.partition("*")
        result += [value] * (int(times) if times else 1)
    return result


# ------------------------------------------------------------------------------------------------------- dense tiles


@dataclass
class Dense:
    """A dense tile, beyond its parameters and samples."""

    classes: dict[int, list[int]] = field(default_factory=dict)  # of a channel: the class of each block
    states: dict[int, int] = field(default_factory=dict)  # of lanes that do not end with 65536
    tail: bytes = b""  # after the last word
    cut: int = 0  # bytes that are missing in the end
    matches: list[int] = field(default_factory=list)  # with a token model: the symbol of the match of each pixel
    still: list[int] = field(default_factory=list)  # with a token model: whether each block is still
    rows_still: list[int] = field(default_factory=list)  # of each block that is not still, the bits of its still rows
    puts: list[list[str]] = field(default_factory=list)  # with a bit model: where shapes are put
    units: int | None = None  # of their list, where it is not as long as it needs to be


def where(name: str, x: int, y: int, last: int) -> tuple[int, int] | None:
    """Column and row of a neighbour."""
    if name == "W":
        if y == 0:
            return (x - 1, 0) if x > 0 else None
        return (x - 1, y) if x > 0 else where("N", x, y, last)
    if name == "WW":
        if y == 0:
            return (x - 2, 0) if x > 1 else None
        if x <= 1:
            return where("N", x, y, last) if x == 0 else where("W", 0, y, last)
        return x - 2, y
    if y == 0:
        return where("W", x, y, last)
    if name == "N":
        return x, y - 1
    if name == "NW":
        return where("N", x, y, last) if x == 0 else (x - 1, y - 1)
    if name == "NE":
        return where("N", x, y, last) if x == last else (x + 1, y - 1)
    if name == "NN":
        return where("N", x, y, last) if y == 1 else (x, y - 2)
    if name == "NWW":
        if x <= 1:
            return where("N" if x == 0 else "NW", x, y, last)
        return x - 2, y - 1
    if y == 1:
        return where("NE", x, y, last)
    return where("NN", x, y, last) if x == last else (x + 1, y - 2)


Plane = dict[tuple[int, int] | None, int]  # by column and row; 0 at None
Slots = list[int] | range | tuple[int, int]  # of a symbol; or raw bits and how many they are


def limit_of(slots: Slots) -> int:
    """A state from here on gives a word first."""
    return 1 << 32 - slots[1] if isinstance(slots, tuple) else len(slots) << 20


def put(x: int, slots: Slots) -> int:
    if isinstance(slots, tuple):
        return x << slots[1] | slots[0]
    return (x // len(slots) << 12) + slots[x % len(slots)]


def end_of_lane(in_ending: list[Slots], lasts: list[int]) -> int:
    """The state of a lane before the ending, where it ends with the first of some states that gives one."""
    for last in lasts:
        x = last
        for slots in in_ending:
            if x >= limit_of(slots):
                raise RecipeError("the ending holds more than a state can")
            x = put(x, slots)
        if x >= 65536 or len(lasts) == 1:
            return x
    raise AssertionError


class Encoder:
    """One tile: its symbols and the table of each, then the payload."""

    def __init__(self, model: Model, parameters: int, width: int, height: int) -> None:
        self.model = model
        self.lanes = 1 << (parameters & 7)
        self.ending = parameters >> 3
        self.width, self.height = width, height
        self.blocks_across = (width + 15) // 16
        self.blocks = self.blocks_across * ((height + 15) // 16)
        self.classes: list[list[int]] = []
        self.still: list[int] = [0] * self.blocks  # whether each block is; those have no classes
        self.samples: list[Plane] = [{None: 0} for _ in model.channels]
        self.errors: list[Plane] = [{None: 0} for _ in model.channels]
        # (classes or samples, step, round, lane), and what is coded
        self.events: list[tuple[tuple[int, int, int, int], Slots]] = []
        # The table of each level, by channel, group of zones, group of sign patterns.
        self.rows = [
            [[int(word.lstrip("=")) for word in row] for row in channel.all_rows(len(model.tables))]
            for channel in model.channels
        ]
        self.weights = [[channel.weights(k) for k in range(channel.classes)] for channel in model.channels]

    def event(self, key: tuple[int, int, int, int], table: Table, buckets: int, symbol: int) -> None:
        slots = table.slots(buckets)[symbol] if symbol < buckets else []
        if not slots:
            raise RecipeError(f"symbol {symbol} is not in its table")
        self.events.append((key, slots))

    def put_classes(self, given: dict[int, list[int]], noise: Noise | None) -> None:
        for c, channel in enumerate(self.model.channels):
            of_blocks = given.get(c, [] if noise else [0] * self.blocks)
            for block in range(self.blocks if channel.classes > 1 else 0):
                table = self.model.class_table(c, self.classes[c - 1][block] if c > 0 else 0)
                if self.still[block]:
                    of_blocks += [0] * (block + 1 - len(of_blocks))
                    continue
                if noise and c not in given:
                    of_blocks.append(table.draw(noise))
                self.event((0, block // self.lanes, c, block % self.lanes), table, 32, of_blocks[block])
            self.classes.append(of_blocks or [0] * self.blocks)

    def put_sample(self, x: int, y: int, c: int, sample: int | None, noise: Noise | None) -> int:
        """The sample at this place; where it is not given its symbol is drawn."""
        channel = self.model.channels[c]
        samples, errors = self.samples[c], self.errors[c]
        places = [where(name, x, y, self.width - 1) for name in NAMES]
        around = [samples[place] for place in places]
        errors_around = [errors[place] for place in places[:6]]
        earlier = [c - i for i in (1, 2) if i <= channel.earlier]
        errors_here = [self.errors[e][x, y] for e in earlier]
        taps = around + errors_around + errors_here + [0] * (2 - len(earlier))
        for e in earlier:
            taps += [self.samples[e][place] for place in (*places[:3], (x, y))]
        weights = self.weights[c][self.classes[c][y // 16 * self.blocks_across + x // 16]]
        a = (32 + sum(map(mul, weights, taps)) + 32768) % 65536 - 32768
        p = min(255, max(0, a >> 6))
        up = a - 64 * p >= 32

        w, n, nw, ne = around[:4]
        terms = [*errors_around, w - nw, n - nw, n - ne, *errors_here]
        activity = 8 + sum(weight * abs(term) for weight, term in zip(channel.activity, terms, strict=False))
        octave = len(f"{activity:b}") - 1
        level = 4 * (octave - 3) + (activity >> (octave - 2)) % 4
        zone = (3613 * (255 - p if up else p) + 61923) // 65536
        signs = [error < 0 for error in errors_around[:4]] + [w >= p, n >= p]
        pattern = sum((sign != up) << i for i, sign in enumerate(signs))
        zones, groups = channel.all_groups()
        row = self.rows[c][zones[zone] * (max(groups) + 1) + groups[pattern]]
        table = self.model.tables[row[min(level, len(row) - 1)]]

        if sample is None:
            if noise is None:
                raise RecipeError("a dense tile without samples")
            symbol = table.draw(noise)
            sample = (p + (symbol + 1) // 2 * (-1 if (symbol % 2 == 1) != up else 1)) % 256
        else:
            away = (sample - p if up else p - sample) % 256  # in the direction of odd symbols
            symbol = 2 * away - 1 if 1 <= away <= 128 else -2 * away % 512
        samples[x, y] = sample
        errors[x, y] = max(-128, min(127, sample - p))
        self.event((1, self.step(x, y), c, y % self.lanes), table, 256, symbol)
        return sample

    def step(self, x: int, y: int) -> int:
        return max(self.width, 2 * self.lanes) * (y // self.lanes) + x + 2 * (y % self.lanes)

    def ending_starts(self) -> dict[int, int]:
        """The first step of each lane that is in the ending."""
        t = self.ending
        if t == 0:
            return {}
        columns = (2 + t % 2 << t // 2) // 2 if t <= 20 else 1024
        rows = self.lanes << max(t - 20, 0)
        first: dict[int, int] = {}
        for y in range(max(self.height - rows, 0), self.height):
            first.setdefault(y % self.lanes, self.step(max(self.width - columns, 0), y))
        return first

    def payload(self, last_states: dict[int, int]) -> bytes:
        starts = self.ending_starts()
        events = sorted(self.events, key=lambda event: event[0], reverse=True)
        in_ending: list[list[Slots]] = [[] for _ in range(self.lanes)]
        before_it: list[tuple[int, Slots]] = []
        for (kind, step, _, lane), slots in events:
            if kind == 1 and step >= starts.get(lane, step + 1):
                in_ending[lane].append(slots)
            else:
                before_it.append((lane, slots))
        states = [
            end_of_lane(in_ending[lane], [last_states[lane]] if lane in last_states else [1 << i for i in range(17)])
            for lane in range(self.lanes)
        ] if starts else [last_states.get(lane, 65536) for lane in range(self.lanes)]
        words: list[int] = []
        for lane, slots in before_it:
            x = states[lane]
            while x >= limit_of(slots):
                words.append(x & 0xFFFF)
                x >>= 16
            states[lane] = put(x, slots)
        return struct.pack(f"<{self.lanes}I{len(words)}H", *states, *reversed(words))


def write_dense(model: Model | None, parameters: int, shape: tuple[int, int], dense: Dense, values: list[int],
                noise: Noise | None) -> bytes:
    """The payload, not padded. Samples that are drawn are left in `values`."""
    if model is None:
        raise RecipeError("a dense tile without a model")
    width, height = shape
    channels = len(model.channels)
    if not noise and len(values) != width * height * channels:
        raise RecipeError(f"a dense tile of {width * height * channels} samples has {len(values)}")
    encoder = Encoder(model, parameters, width, height)
    encoder.put_classes(dense.classes, noise)
    given: Iterator[int | None] = iter([None] * (width * height * channels) if noise else list(values))
    values[:] = [
        encoder.put_sample(x, y, c, next(given), noise)
        for y in range(height)
        for x in range(width)
        for c in range(channels)
    ]
    return spoiled(encoder.payload(dense.states), dense)


def spoiled(payload: bytes, dense: Dense) -> bytes:
    return payload[: len(payload) - dense.cut] + dense.tail
