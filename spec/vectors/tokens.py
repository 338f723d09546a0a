"""The token model and its tiles in recipes (sections 14 and 15 of spec/format.md), as dense.py does what is before it:
from the text alone, and as it is told, right or wrong. README.md beside this file has the lines."""

from __future__ import annotations

import struct
from operator import mul

from dense import NAMES, Channel, Dense, Encoder, Model, Table, drawn, put_bits, put_row, repeated, spoiled, where
from pieces import BitString, Noise, RecipeError, numbers

MATCH, LITERAL, HOLE, STILL, FOLLOW, ROWS = 1, 2, 4, 32, 64, 128
LISTINGS = {"ranks": 1, "colours": 2}
PAIRS = (("W", "N"), ("N", "NE"), ("N", "NW"), ("W", "NW"), ("WW", "W"), ("NN", "N"), ("NNE", "NE"), ("NWW", "NW"))


# Of each engine channel: the factors of W, N, NW and NE.
FACTORS = ((40503, 34283, 49843, 10197), (31161, 51819, 44605, 60207), (5719, 54179, 64881, 46427),
           (26545, 25709, 18117, 20233))
TRAIL_FACTORS = (0xC2B2AE3D, 0x27D4EB2F, 0x165667B1, 0xD3A2646D)


class TokenModel(Model):
    def __init__(self, classes: list[int], channels: int, bits: int) -> None:
        super().__init__(classes, channels)
        for channel in self.channels:
            channel.levels, channel.row_widths = 84, (7, 6)
            channel.most_of_pair, channel.most_of_activity = 256, 1000
        self.image_channels, self.bits = channels, bits
        self.flags = 0
        self.hole = 0
        self.literal: list[str] = []
        self.still: list[int] = []  # the frequencies of still blocks
        self.rows_still: list[int] = []  # those of still rows
        self.mask = 0
        self.pattern_rows: list[str] = []
        self.match_rows: list[list[str]] = []
        self.listing = 0
        self.listed: list[list[int]] = []  # ranks: of each channel; colours: the samples of each
        self.width_of_gaps: int | None = None
        self.least_gap: int | None = None
        self.given: dict[str, list[str]] = {}  # parts that are given in fields

    def line(self, name: str, times: int, words: list[str]) -> bool:
        if name in ("literal", "match"):
            self.flags |= LITERAL if name == "literal" else MATCH
        if name in ("literal", "match", "ranks", "colours") and words[0] == "bits":
            self.given[name] = words[1:]
            self.listing = LISTINGS.get(name, self.listing)
        elif name == "literal":
            self.literal = repeated(words)
        elif name == "match":
            self.mask = int(words[0], 0)
            self.pattern_rows = repeated(words[1:])
        elif name == "still":
            self.flags |= STILL
            self.still = numbers(words)
        elif name == "still_rows":
            self.flags |= ROWS
            self.rows_still = numbers(words)
        elif name == "follow":
            self.flags |= FOLLOW
        elif name == "match_row":
            self.match_rows += [repeated(words)] * times
        elif name == "hole":
            self.flags |= HOLE
            self.hole = int(words[0], 0)
        elif name == "ranks":
            self.listing = LISTINGS[name]
            self.listed.append(drawn_ranks(words, self.bits))
        elif name == "gaps":
            self.least_gap, self.width_of_gaps = map(int, words)
        elif name == "colour":
            self.listing = LISTINGS["colours"]
            self.listed.append(drawn(words, 1 << self.bits, self.image_channels))
        elif name == "colours" and words[0].startswith("noise:"):
            self.listing = LISTINGS["colours"]
            noise = Noise(int(words[0][6:]))
            self.listed += [[noise.below(1 << self.bits) for _ in self.channels] for _ in range(int(words[1]))]
        else:
            return super().line(name, times, words)
        return True

    @property
    def widths(self) -> list[int]:
        """`D` of each engine channel."""
        if self.listing == 0:
            return [self.bits] * len(self.channels)
        lists = self.listed if self.listing == 1 else [self.listed]
        return [max(1, (len(values) - 1).bit_length()) for values in lists]

    def all_match_rows(self) -> list[list[str]]:
        greatest = max([0, *(int(word.lstrip("=")) for word in self.pattern_rows)])
        return self.match_rows + [["0"]] * (greatest + 1 - len(self.match_rows))

    def row_of_pattern(self, pattern: int) -> int:
        rows = ["0", *self.pattern_rows]
        return int(rows[min(pattern, len(rows) - 1)].lstrip("="))

    def literal_part(self) -> bytes:
        out = BitString()
        put_row(out, self.literal, (8, 6))
        return out.bytes()

    def match_part(self) -> bytes:
        out = BitString()
        for frequency in self.still + self.rows_still:
            out.put(frequency, 12)
        out.put(self.mask, 8)
        greatest = before = 0
        for pattern in range(1, 1 << self.mask.bit_count()):
            word = self.pattern_rows[pattern - 1] if pattern <= len(self.pattern_rows) else str(before)
            row = int(word.lstrip("="))
            if word[0] != "=" and row == before:
                out.put(0, 1)
            elif word[0] != "=" and row == greatest + 1:
                out.put(0b01, 2)
            else:
                out.put(0b11, 2)
                out.put(row, 5)
            greatest = max(greatest, row)
            before = row
        for row_names in self.all_match_rows():
            put_row(out, row_names, (5, 6))
        return out.bytes()

    def values_part(self) -> bytes:
        out = BitString()
        if self.listing == 2:
            out.put(len(self.listed), 16)
            for colour in self.listed:
                for sample in colour:
                    out.put(sample, self.bits)
        elif self.listing == 1:
            for values in self.listed:
                gaps = [b - a for a, b in zip(values, values[1:], strict=False)]
                least = self.least_gap if self.least_gap is not None else min([65535, *gaps])
                out.put(len(values), 16)
                out.put(values[0], 16)
                out.put(least, 16)
                for i in range(0, len(gaps), 32):
                    block = [gap - least for gap in gaps[i : i + 32]]
                    width = self.width_of_gaps if self.width_of_gaps is not None else max(block).bit_length()
                    out.put(width, 5)
                    for value in block:
                        out.put(value, width)
        return out.bytes()

    def part_or_given(self, name: str) -> bytes:
        if name in self.given:
            out = BitString()
            put_bits(out, self.given[name])
            return out.bytes()
        return {
            "literal": self.literal_part, "match": self.match_part, "ranks": self.values_part,
            "colours": self.values_part,
        }[name]()

    def contents(self) -> bytes:
        if self.listing == 2:
            del self.channels[1:]
        if self.flags & LITERAL:
            parts = [self.part_or_given("literal")]
        else:
            parts = [channel.part(len(self.tables)) for channel in self.channels]
        parts.append(self.part_or_given("match") if self.flags & MATCH else b"")
        parts += [table.part() for table in self.tables + self.class_tables]
        parts.append(self.part_or_given(("", "ranks", "colours")[self.listing]) if self.listing else b"")
        for i, more in self.more.items():
            parts[i] = parts[i] + bytes(more) if more > 0 else parts[i][:more]
        classes = [channel.classes for channel in self.channels]
        out = struct.pack("<4BH6B", 1, self.image_channels, self.bits, self.flags | self.listing << 3, self.hole,
                          len(self.tables), len(self.class_tables), *classes, *[0] * (4 - len(classes)))
        sizes = [len(part) for part in parts[:-1]]
        long_sizes = len(self.channels) + 1
        self.begins = [len(out) + 2 * long_sizes + len(sizes) - long_sizes]
        for part in parts:
            self.begins.append(self.begins[-1] + len(part))
        return out + struct.pack(f"<{long_sizes}H{len(sizes) - long_sizes}B", *sizes) + b"".join(parts)

    def place(self, name: str) -> tuple[int, int]:
        part, _, rest = name.partition(".")
        fields = {
            "kind": (0, 1), "channels": (1, 1), "bits": (2, 1), "flags": (3, 1), "hole": (4, 2), "tables": (6, 1),
            "class_tables": (7, 1),
        }
        if part in fields:
            return fields[part]
        if part == "classes":
            return 8 + int(rest), 1
        if part == "size":
            i, long_sizes = int(rest), len(self.channels) + 1
            return (12 + 2 * i, 2) if i < long_sizes else (12 + long_sizes + i, 1)
        if part == "part":
            return super().place(name)
        raise RecipeError(f"no field model.{name}")


def drawn_ranks(words: list[str], bits: int) -> list[int]:
    """The values, or `noise:SEED COUNT`: so many of all that there are; `FIRST+GAP*COUNT` is a sequence."""
    if words[0].startswith("noise:"):
        noise = Noise(int(words[0][6:]))
        wanted = int(words[1])
        values: list[int] = []
        for v in range(1 << bits):
            if noise.below((1 << bits) - v) < wanted - len(values):
                values.append(v)
        return values
    values = []
    for word in words:
        first, _, rest = word.partition("+")
        if rest:
            gap, _, count = rest.partition("*")
            values += [int(first) + int(gap) * i for i in range(int(count))]
        else:
            values += numbers([word])
    return values


# ------------------------------------------------------------------------------------------------------------- tiles


class TokenEncoder(Encoder):
    model: TokenModel

    def __init__(self, model: TokenModel, parameters: int, width: int, height: int) -> None:
        super().__init__(model, parameters, width, height)
        self.held = [0] * self.lanes
        self.has_hole = model.flags & HOLE != 0
        self.is_literal = model.flags & LITERAL != 0
        self.kept: dict[tuple[int, int], tuple[int, int]] = {}  # of a pixel, the place that it keeps
        self.trails: dict[tuple[int, int], int] = {}
        self.scenes: dict[tuple[int, int], int] = {}
        self.tables: dict[tuple[str, int], tuple[int, int, int]] = {}  # of an entry: row, column, tag
        self.asked: list[tuple[tuple[str, int], tuple[int, int, int]]] = []  # in this step
        # Of a row of a block (block, row): whether it is still.
        self.rows_still: dict[tuple[int, int], bool] = {}

    def put_still(self, given: list[int], noise: Noise | None) -> None:
        row = self.blocks_across
        for block in range(self.blocks):
            i, lane = divmod(block, self.lanes)
            above = lane < row <= block and self.still[block - row]
            frequency = self.model.still[int(above)]
            still = given[block] if given else noise is not None and noise.below(4096) < frequency
            self.still[block] = int(still)
            self.events.append(((0, i, -17, lane), list(range(frequency) if still else range(frequency, 4096))))

    def put_rows(self, given: list[int], noise: Noise | None) -> None:
        """`given`: of each block that is not still, the bits of its rows."""
        left = list(given)
        for first in range(0, self.blocks, self.lanes):
            blocks = range(first, min(first + self.lanes, self.blocks))
            for block in blocks:
                if self.still[block]:
                    self.rows_still.update({(block, k): True for k in range(16)})
            coded = [block for block in blocks if not self.still[block]]
            bits = {block: left.pop(0) for block in coded} if given else {}
            for k in range(16):
                found = {}
                for block in coded:
                    if block // self.blocks_across * 16 + k >= self.height:
                        continue
                    frequency = self.model.rows_still[self.row_context(block, k)]
                    still = bits[block] >> k & 1 if given else noise is not None and noise.below(4096) < frequency
                    found[block, k] = bool(still)
                    self.events.append(((0, first // self.lanes, k - 16, block - first),
                                        list(range(frequency) if still else range(frequency, 4096))))
                self.rows_still.update(found)

    def row_context(self, block: int, k: int) -> int:
        across = self.blocks_across
        row, column = divmod(block, across)
        context = 0
        for bit, (dx, dy) in enumerate(((0, 1), (0, 2), (1, 1), (-1, 1))):
            y = row * 16 + k - dy
            inside = y >= 0 and 0 <= column + dx < across
            context |= int(not inside or self.rows_still.get((y // 16 * across + column + dx, y % 16), True)) << bit
        return context

    def is_still(self, x: int, y: int) -> bool:
        block = y // 16 * self.blocks_across + x // 16
        return bool(self.still[block]) or self.rows_still.get((block, y % 16), False)

    def places(self, x: int, y: int) -> dict[str, tuple[int, int] | None]:
        return {name: where(name, x, y, self.width - 1) for name in NAMES}

    def around(self, e: int, x: int, y: int) -> dict[str, int]:
        return {name: self.samples[e][place] for name, place in self.places(x, y).items()}

    def held_around(self, e: int, x: int, y: int) -> dict[str, int]:
        around = self.around(e, x, y)
        if self.has_hole:
            held = self.held[y % self.lanes]
            return {name: held if value == self.model.hole else value for name, value in around.items()}
        return around

    def put_pixel(self, x: int, y: int, values: list[int] | None, match: int | None, noise: Noise | None) -> list[int]:
        """The pixel at this place; where it is not given its symbols are drawn."""
        model, lane = self.model, y % self.lanes
        arounds = [self.around(e, x, y) for e in range(len(model.widths))]
        if self.has_hole:
            self.held[lane] = self.held[lane] if x > 0 else 0
            choices = [arounds[0][name] for name in ("W", "N") if arounds[0][name] != model.hole]
            self.held[lane] = choices[0] if choices else self.held[lane]
        if self.is_still(x, y):
            level = all(around["N"] == around["NW"] for around in arounds)
            known = [around["W" if level else "N"] for around in arounds]
            if values is not None and known != values:
                raise RecipeError("a pixel of a still block or row is another one")
            for e, value in enumerate(known):
                self.samples[e][x, y], self.errors[e][x, y] = value, 0
            self.leave_trail(x, y, known)
            return known
        at, number = self.followed(x, y, arounds) if model.flags & FOLLOW else (None, 0)
        pixel = self.put_coded(x, y, values, match, noise, arounds, at, number)
        if at is not None and pixel == [samples[at] for samples in self.samples]:
            self.kept[x, y] = at
        self.leave_trail(x, y, pixel)
        return pixel

    def put_coded(self, x: int, y: int, values: list[int] | None, match: int | None, noise: Noise | None,
                  arounds: list[dict[str, int]], at: tuple[int, int] | None, number: int) -> list[int]:
        model, lane, step = self.model, y % self.lanes, self.step(x, y)
        if model.flags & MATCH:
            table = self.match_table(x, y, arounds, number)
            symbol = self.match_symbol(table, arounds, values, match, noise, at)
            self.event((1, step, 0, lane), table, 64, symbol)
            known = self.matched(symbol, arounds, at)
            if known is not None:
                if values is not None and known != values:
                    raise RecipeError(f"symbol {symbol} is another pixel")
                for e, value in enumerate(known):
                    self.samples[e][x, y], self.errors[e][x, y] = value, 0
                return known
        return [
            self.put_value(e, x, y, values[e] if values is not None else None, noise) for e in range(len(model.widths))
        ]

    # Following.

    def followed(self, x: int, y: int, arounds: list[dict[str, int]]) -> tuple[tuple[int, int] | None, int]:
        """The place that a pixel follows, and the number."""
        of_n, of_w = self.kept.get((x, y - 1)), self.kept.get((x - 1, y))
        below = (of_n[0], of_n[1] + 1) if of_n else None
        beside = (of_w[0] + 1, of_w[1]) if of_w else None
        at, source = below or beside, 2 if below and below == beside else 1
        if any(around[name] != around["W"] for around in arounds for name in ("N", "NW", "NE")):
            wide, tag = self.ask_wide(x, y)
            if wide is not None and wide[2] == tag:
                source = 4 if at == (wide[1], wide[0]) else 3
                at = wide[1], wide[0]
        if at is None:
            total = sum(
                around[name] * factor
                for around, factors in zip(arounds, FACTORS, strict=False)
                for name, factor in zip(("W", "N", "NW", "NE"), factors, strict=True)
            )
            near = self.ask(("near", total % 65536 // 16), (y, x, 0))
            at, source = (near[1], near[0]) if near is not None else None, 0
        if at is None or at[0] >= self.width or at[1] >= self.height or self.step(*at) >= self.step(x, y):
            return None, 0
        pixel = [samples[at] for samples in self.samples]
        equal = [name for name in ("W", "N", "NE", "NW") if pixel == [around[name] for around in arounds]]
        relation = {"W": 0, "N": 1, "NE": 2, "NW": 2}[equal[0]] if equal else 3
        return at, 1 + 5 * relation + source

    def ask(self, entry: tuple[str, int], own: tuple[int, int, int]) -> tuple[int, int, int] | None:
        self.asked.append((entry, own))
        return self.tables.get(entry)

    def ask_wide(self, x: int, y: int) -> tuple[tuple[int, int, int] | None, int]:
        """What the entry of the wide table has, and the pixel's own tag."""
        sum_of = 0x9E3779B1 * self.trails.get((x - 1, y), 0) + 0x85EBCA6B * self.scenes.get((x + 1, y - 1), 0)
        sum_of &= 0xFFFFFFFF
        key = (sum_of ^ sum_of >> 15) * 0x2C1B3C6D & 0xFFFFFFFF
        tag = key >> 6 & 0xFFF
        return self.ask(("wide", key >> 18), (y, x, tag)), tag

    def leave_trail(self, x: int, y: int, pixel: list[int]) -> None:
        trail = 0xE3779B10 * self.trails.get((x - 1, y), 0)
        trail += sum(value * factor for value, factor in zip(pixel, TRAIL_FACTORS, strict=False))
        self.trails[x, y] = trail & 0xFFFFFFFF
        self.scenes[x, y] = (trail + 0xEBCA7700 * self.scenes.get((x + 1, y - 1), 0)) & 0xFFFFFFFF

    def end_step(self) -> None:
        for entry, own in self.asked:
            self.tables[entry] = max(own, self.tables.get(entry, own))
        self.asked.clear()

    # Match.

    def match_table(self, x: int, y: int, arounds: list[dict[str, int]], number: int) -> Table:
        pattern = bit = 0
        for i, (a, b) in enumerate(PAIRS):
            if self.model.mask >> i & 1:
                pattern |= all(around[a] == around[b] for around in arounds) << bit
                bit += 1
        row = self.model.all_match_rows()[self.model.row_of_pattern(pattern)]
        octave = number
        if not self.is_literal and not self.model.flags & FOLLOW:
            octave = self.activity(0, x, y).bit_length() - 4
        return self.model.tables[int(row[min(octave, len(row) - 1)].lstrip("="))]

    def matched(self, symbol: int, arounds: list[dict[str, int]], at: tuple[int, int] | None) -> list[int] | None:
        if symbol < 4:
            return [around[("W", "N", "NE", "NW")[symbol]] for around in arounds]
        if symbol == 6 and at is not None:
            return [samples[at] for samples in self.samples]
        return [self.model.hole] if symbol == 5 and self.has_hole else None

    def match_symbol(self, table: Table, arounds: list[dict[str, int]], values: list[int] | None, match: int | None,
                     noise: Noise | None, at: tuple[int, int] | None) -> int:
        if match is not None:
            return match
        if values is None:
            assert noise is not None
            return table.draw(noise)
        for symbol, frequency in enumerate(table.frequencies):  # the first one that fits
            if frequency > 0 and self.matched(symbol, arounds, at) in (None, values):
                return symbol
        raise RecipeError("no symbol of a match fits")

    # Tokens.

    def activity(self, e: int, x: int, y: int) -> int:
        places, around = self.places(x, y), self.held_around(e, x, y)
        errors = [abs(self.errors[e][places[name]]) for name in NAMES[:6]]
        differences = [min(32767, abs(around[a] - around[b])) for a, b in (("W", "NW"), ("N", "NW"), ("N", "NE"))]
        earlier = [abs(self.errors[e - i][x, y]) for i in (1, 2) if i <= min(e, 2)]
        weights = self.model.channels[e].activity
        return min(8 + sum(map(mul, weights, [*errors, *differences, *earlier])), (1 << 24) - 1)

    def prediction(self, e: int, x: int, y: int) -> tuple[Table, int, int]:
        """The table of the token, p and up."""
        channel: Channel = self.model.channels[e]
        places, around = self.places(x, y), self.held_around(e, x, y)
        errors = [self.errors[e][places[name]] for name in NAMES[:6]]
        earlier = [e - i for i in (1, 2) if i <= channel.earlier]
        taps = [around[name] for name in NAMES] + errors
        taps += [self.errors[c][x, y] for c in earlier] + [0] * (2 - len(earlier))
        for c in earlier:
            taps += [self.samples[c][places[name]] for name in ("W", "N", "NW")] + [self.samples[c][x, y]]
        weights = self.weights[e][self.classes[e][y // 16 * self.blocks_across + x // 16]]
        most = (1 << self.model.widths[e]) - 1
        a = 32 + sum(map(mul, weights, taps))
        p = min(most, max(0, a >> 6))
        up = int(a - 64 * p >= 32)
        activity = self.activity(e, x, y)
        octave = activity.bit_length() - 1
        level = 4 * (octave - 3) + (activity >> octave - 2) % 4
        zone = min(15, (most - p if up else p).bit_length())
        signs = [error < 0 for error in errors[:4]] + [around["W"] >= p, around["N"] >= p]
        pattern = sum((sign != bool(up)) << i for i, sign in enumerate(signs))
        zones, groups = channel.all_groups()
        row = self.rows[e][zones[zone] * (max(groups) + 1) + groups[pattern]]
        return self.model.tables[row[min(level, len(row) - 1)]], p, up

    def put_value(self, e: int, x: int, y: int, value: int | None, noise: Noise | None) -> int:
        size = 1 << self.model.widths[e]
        p = up = 0
        if self.is_literal:
            names = self.model.literal
            w = self.around(e, x, y)["W"]
            table = self.model.tables[int(names[min(w, len(names) - 1)].lstrip("="))]
        else:
            table, p, up = self.prediction(e, x, y)
        if value is None:
            assert noise is not None
            token, raw, width = table.draw(noise), 0, 0
            z = token
            if token >= 32:
                width = (token - 32) // 2 + 4
                raw = noise.below(1 << width)
                z = (2 + token % 2 << width) + raw
            way = 1 if z % 2 == up else -1
            value = z % size if self.is_literal else (p + way * ((z + 1) // 2)) % size
        else:
            z = value
            if not self.is_literal:
                away = (value - p if up else p - value) % size  # in the direction of odd symbols
                z = 2 * away - 1 if 1 <= away <= size // 2 else -2 * away % (2 * size)
            token, raw, width = z, 0, 0
            if z >= 32:
                width = z.bit_length() - 2
                token, raw = 32 + 2 * (width - 4) + (z >> width) % 2, z % (1 << width)
        step, lane = self.step(x, y), y % self.lanes
        self.event((1, step, 1 + 2 * e, lane), table, 64, token)
        if token >= 32:
            self.events.append(((1, step, 2 + 2 * e, lane), (raw, width)))
        self.samples[e][x, y] = value
        self.errors[e][x, y] = max(-32767, min(32767, value - p))
        return value


def values_of(model: TokenModel, pixel: list[int]) -> list[int]:
    if model.listing == 1:
        return [values.index(sample) for values, sample in zip(model.listed, pixel, strict=True)]
    return [model.listed.index(pixel)] if model.listing == 2 else pixel


def write_tokens(model: TokenModel, parameters: int, shape: tuple[int, int], dense: Dense, samples: list[int],
                 noise: Noise | None) -> bytes:
    """The payload, not padded."""
    width, height = shape
    channels = model.image_channels
    if not noise and len(samples) != width * height * channels:
        raise RecipeError(f"a dense tile of {width * height * channels} samples has {len(samples)}")
    encoder = TokenEncoder(model, parameters, width, height)
    if model.flags & STILL:
        encoder.put_still(dense.still, noise)
    if model.flags & ROWS:
        encoder.put_rows(dense.rows_still, noise)
    encoder.put_classes(dense.classes, noise)
    places = [(x, y) for y in range(height) for x in range(width)]
    if model.flags & FOLLOW:
        places.sort(key=lambda place: encoder.step(*place))
    before = 0
    for x, y in places:
        if encoder.step(x, y) != before:
            encoder.end_step()
            before = encoder.step(x, y)
        i = y * width + x
        pixel = None if noise else values_of(model, samples[i * channels : (i + 1) * channels])
        match = dense.matches[i] if i < len(dense.matches) else None
        encoder.put_pixel(x, y, pixel, match, noise)
    return spoiled(encoder.payload(dense.states), dense)
