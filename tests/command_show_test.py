#!/usr/bin/env python3
"""Tests `l3 show`: the pixels that each protocol draws, the choice of the protocol, and that the terminal stays whole.

Usage: command_show_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import base64
import fcntl
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "spec" / "vectors"))
from command_sets_sources_test import tiff
from command_testing import (
    FAILED,
    METADATA_SECTION,
    USAGE,
    CommandTest,
    flip,
    l3_command,
    main,
    png,
    section_offset,
)

import build

Pixel = tuple[int, ...]
Rows = list[list[Pixel]]

KITTY_KEYS = "a=T,f=24,q=2,"
SIXEL_HEAD = re.compile(rb'\x1bP0;1;0q"1;1;(\d+);(\d+)')
QUESTION = b"\x1b[c"
WITH_SIXEL, WITHOUT_SIXEL = b"\x1b[?62;4;6;22c", b"\x1b[?64;14;24;40;41c"
LIGHT, DARK = 160, 96  # of the checkerboard
VARIABLES = ("COLORTERM", "KITTY_WINDOW_ID", "TERM", "TERM_PROGRAM", "TMUX")


def rows_of(width: int, pixels: bytes, channels: int = 3) -> Rows:
    flat = [tuple(pixels[i:i + channels]) for i in range(0, len(pixels), channels)]
    return [flat[i:i + width] for i in range(0, len(flat), width)]


def from_kitty(output: bytes) -> Rows:
    chunks = re.findall(rb"\x1b_G([^;]*);([^\x1b]*)\x1b\\", output)
    assert output == b"".join(b"\x1b_G%s;%s\x1b\\" % each for each in chunks) + b"\n", "nothing else"
    first = re.fullmatch(KITTY_KEYS + r"s=(\d+),v=(\d+),m=[01]", chunks[0][0].decode())
    assert first, chunks[0][0]
    for keys, _ in chunks[1:]:
        assert keys in (b"q=2,m=0", b"q=2,m=1"), keys
    assert [keys[-1:] for keys, _ in chunks] == [b"1"] * (len(chunks) - 1) + [b"0"]
    assert all(len(text) == 4096 for _, text in chunks[:-1]) and len(chunks[-1][1]) <= 4096
    rows = rows_of(int(first[1]), b"".join(base64.b64decode(text, validate=True) for _, text in chunks))
    assert len(rows) == int(first[2])
    return rows


def from_sixel(output: bytes) -> Rows:
    """A pixel that is not drawn, or drawn twice, fails."""
    head = SIXEL_HEAD.match(output)
    assert head and output.endswith(b"\x1b\\\n"), output[:40]
    assert not output.endswith(b"-\x1b\\\n"), "an empty band"
    width, height = int(head[1]), int(head[2])
    colours: dict[int, Pixel] = {}
    drawn: dict[tuple[int, int], Pixel] = {}
    x = top = colour = 0
    token = re.compile(rb"#(\d+)(?:;2;(\d+);(\d+);(\d+))?|!(\d+)([?-~])|([?-~])|([$-])")
    at, end = head.end(), len(output) - 3
    while at < end:
        found = token.match(output, at, end)
        assert found, output[at:at + 20]
        at = found.end()
        if found[1]:
            colour = int(found[1])
            if found[2]:
                colours[colour] = tuple(int(found[i]) for i in (2, 3, 4))
        elif found[8]:
            x, top = 0, top + (6 if found[8] == b"-" else 0)
        else:
            bits = (found[6] or found[7])[0] - ord("?")
            for _ in range(int(found[5] or 1)):
                for y in range(6):
                    if bits >> y & 1:
                        assert (x, top + y) not in drawn, "drawn twice"
                        drawn[x, top + y] = colours[colour]
                x += 1
    assert len(colours) <= 256
    assert len(drawn) == width * height, "drawn"
    return [[drawn[x, y] for x in range(width)] for y in range(height)]


def from_blocks(output: bytes, full: bool = True) -> Rows:
    """With 24 bits the colours, else one-tuples with their numbers."""
    rows: Rows = []
    lines = output.decode().split("\n")
    assert lines.pop() == ""
    colour = r"2;\d+;\d+;\d+" if full else r"5;\d+"
    for line in lines:
        assert line.endswith("\x1b[0m")
        upper: list[Pixel] = []
        lower: list[Pixel] = []
        foreground = background = None
        for found in re.finditer(rf"\x1b\[38;({colour})(?:;48;({colour}))?m|(▀)|(.)", line.removesuffix("\x1b[0m")):
            assert not found[4], f"unexpected {found[4]!r}"
            if found[3]:
                upper.append(foreground)
                lower.append(background)
            else:
                foreground, background = [tuple(map(int, each.split(";")[1:])) if each else None
                                          for each in (found[1], found[2])]
        rows.append(upper)
        if lower[0] is not None:
            rows.append(lower)
    return rows


def number_to_colour(number: int) -> Pixel:
    if number >= 232:
        return (8 + 10 * (number - 232),) * 3
    levels = (0, 95, 135, 175, 215, 255)
    return levels[(number - 16) // 36], levels[(number - 16) // 6 % 6], levels[(number - 16) % 6]


def distance(a: Pixel, b: Pixel) -> int:
    return sum((x - y) ** 2 for x, y in zip(a, b))


def checker(x: int, y: int) -> int:
    return LIGHT if (x // 8 + y // 8) % 2 == 0 else DARK


def over(colour: Pixel, alpha: float, x: int, y: int) -> Pixel:
    return tuple(int(value * alpha + checker(x, y) * (1 - alpha) + 0.5) for value in colour)


def bytes_of(rows: Rows) -> list[bytes]:
    return [bytes(value for pixel in row for value in pixel) for row in rows]


def noise(width: int, height: int, channels: int = 3, seed: int = 1) -> Rows:
    source = random.Random(seed)
    return [[tuple(source.randbytes(channels)) for _ in range(width)] for _ in range(height)]


@dataclass
class Said:
    output: bytes
    code: int
    asked: bool
    modes_kept: bool


class ShowTest(CommandTest):
    def image(self, name: str, rows: Rows, **how: object) -> Path:
        colour = {1: 0, 2: 4, 3: 2, 4: 6}[len(rows[0][0])]
        return self.encoded(name, png(len(rows[0]), len(rows), colour=colour, rows=bytes_of(rows), **how))

    def shown(self, *words: object, **variables: str) -> bytes:
        environment = {name: value for name, value in os.environ.items() if name not in VARIABLES} | variables
        return self.l3("show", *words, env=environment).stdout

    def kitty(self, *words: object) -> Rows:
        return from_kitty(self.shown("--as", "kitty", *words))

    def on_terminal(self, *words: object, answer: bytes = b"", columns: int = 80, rows: int = 24,
                    cell: tuple[int, int] = (0, 0), typed: bytes = b"", while_busy: bool = False,
                    stdin: int | None = None, **variables: str) -> Said:
        """Runs l3 show on a terminal that gives this answer. `typed`: instead of the answer; with `while_busy` when the
        terminal has not read anything for a while."""
        try:
            ours, its = pty.openpty()
        except OSError as error:
            self.skipTest(f"there are no terminals here: {error}")
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, its)
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, cell[0] * columns, cell[1] * rows))
        before = termios.tcgetattr(its)
        environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        child = subprocess.Popen([l3_command(), "show", *map(str, words)], stdin=stdin or its, stdout=its, stderr=its,
                                 env=environment | {"TERM": "xterm"} | variables, start_new_session=True,
                                 preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0))
        output, asked, deadline = b"", False, time.monotonic() + 60
        if while_busy:
            self.assertTrue(select.select([ours], [], [], 30)[0])
            time.sleep(0.1)
            os.write(ours, typed)
        while child.poll() is None or select.select([ours], [], [], 0)[0]:
            self.assertLess(time.monotonic(), deadline)
            if select.select([ours], [], [], 0.01)[0]:
                output += os.read(ours, 65536)
            if QUESTION in output:
                asked, output = True, output.replace(QUESTION, b"")
                # The last byte comes late.
                os.write(ours, answer[:-1] or typed)
                time.sleep(0.02)
                os.write(ours, answer[-1:])
        return Said(output.replace(b"\r\n", b"\n"), child.returncode, asked, termios.tcgetattr(its) == before)


class Pixels(ShowTest):
    def test_are_exact_in_kitty_and_blocks(self) -> None:
        for width, height in ((1, 1), (7, 1), (5, 6), (70, 31)):
            with self.subTest(size=(width, height)):
                rows = noise(width, height)
                file = self.image("a.png", rows)
                self.assertEqual(self.kitty(file), rows)
                self.assertEqual(from_blocks(self.shown("--as", "blocks", file, COLORTERM="truecolor")), rows)
                self.assertEqual(self.kitty(self.folder / "a.png"), rows, "of a PNG, too")

    def test_equal_colours_are_set_once(self) -> None:
        file = self.image("a.png", [[(1, 2, 3)] * 6] * 4)
        line = b"\x1b[38;2;1;2;3;48;2;1;2;3m" + "▀".encode() * 6 + b"\x1b[0m\n"
        self.assertEqual(self.shown("--as", "blocks", file, COLORTERM="24bit"), line * 2)

    def test_of_256_colours_are_the_nearest(self) -> None:
        rows = noise(40, 20)
        rows[0][:3] = [(0, 0, 0), (255, 255, 255), (8, 8, 8)]
        file = self.image("a.png", rows)
        known = {number: number_to_colour(number) for number in range(16, 256)}
        numbers = from_blocks(self.shown("--as", "blocks", file), full=False)
        self.assertEqual([number for number, in numbers[0][:3]], [16, 231, 232])
        for row, its in zip(rows, numbers, strict=True):
            for pixel, (number,) in zip(row, its, strict=True):
                least = min(distance(pixel, colour) for colour in known.values())
                self.assertEqual(distance(pixel, known[number]), least)

    def test_of_few_colours_are_exact_in_sixel(self) -> None:
        # Sixel has percents.
        for width, height in ((1, 1), (3, 7), (50, 13)):
            rows = [[(x // 4 * 20, y * 19, (x // 9 + y) % 2 * 255) for x in range(width)] for y in range(height)]
            expected = [[tuple((value * 100 + 127) // 255 for value in pixel) for pixel in row] for row in rows]
            self.assertEqual(from_sixel(self.shown("--as", "sixel", self.image("a.png", rows))), expected)

    def test_of_many_colours_are_mixed_in_sixel(self) -> None:
        rows = [[(x * 4, y * 5, 255 - x * 2 - y) if x < 36 else (20, 130, 235) for x in range(60)] for y in range(48)]
        seen = from_sixel(self.shown("--as", "sixel", self.image("a.png", rows)))
        self.assertEqual({value for row in seen for pixel in row for value in pixel}, {0, 20, 40, 60, 80, 100})
        for y in range(0, 48, 12):
            for x in range(0, 60, 12):
                for c in range(3):
                    mean = sum(rows[j][i][c] for j in range(y, y + 12) for i in range(x, x + 12)) / 144
                    its = sum(seen[j][i][c] for j in range(y, y + 12) for i in range(x, x + 12)) * 2.55 / 144
                    self.assertAlmostEqual(mean, its, delta=5 if x < 36 else 2)

    def test_of_all_depths_are_scaled(self) -> None:
        for bits in (1, 2, 4, 8, 16):
            with self.subTest(bits=bits):
                count = min(2 ** bits, 256)
                values = [i * ((1 << bits) - 1) // (count - 1) for i in range(count)]
                packed = (b"".join(value.to_bytes(2, "big") for value in values) if bits == 16 else
                          bytes(sum(value << 8 - bits - k * bits for k, value in enumerate(values[i:i + 8 // bits]))
                                for i in range(0, count, 8 // bits)))
                file = self.encoded("a.png", png(count, 1, depth=bits, colour=0, rows=[packed]))
                most = (1 << bits) - 1
                self.assertEqual(self.kitty(file), [[((value * 255 + most // 2) // most,) * 3 for value in values]])

    def test_of_12_bits_are_scaled_by_them(self) -> None:
        data = b"P5\n3 1\n4095\n" + struct.pack(">HHH", 0, 2048, 4095)
        self.assertEqual(self.kitty(self.encoded("a.pgm", data)), [[(0,) * 3, (128,) * 3, (255,) * 3]])

    def test_show_alpha_on_a_checkerboard(self) -> None:
        for channels in (2, 4):
            rows = noise(20, 20, channels)
            rows[0][0], rows[9][9] = (9,) * (channels - 1) + (0,), (9,) * (channels - 1) + (255,)
            expected = [[over(pixel[:-1] * (3 if channels == 2 else 1), pixel[-1] / 255, x, y)
                         for x, pixel in enumerate(row)] for y, row in enumerate(rows)]
            seen = self.kitty(self.image("a.png", rows))
            self.assertEqual(seen, expected)
            self.assertEqual((seen[0][0], seen[9][9]), ((LIGHT,) * 3, (9,) * 3))

    def test_of_premultiplied_alpha_are_weighted_once(self) -> None:
        recipe = "# Two pixels.\nspec 3\nimage 2x1 rgb_alpha 8\nalpha 2\nraw 40 100 0 128  5 6 7 255\n"
        seen = self.kitty(self.write("a.l3", build.build_text(recipe)))
        for value, its in zip((40, 100, 0), seen[0][0]):
            self.assertAlmostEqual(its, value + LIGHT * 127 / 255, delta=1)
        self.assertEqual(seen[0][1], (5, 6, 7))

    def test_are_those_of_the_first_page(self) -> None:
        pages = [(3, 1, bytes([1, 2, 3])), (2, 1, bytes([4, 5]))]
        self.assertEqual(self.kitty(self.write("a.tif", tiff(*pages))), [[(1,) * 3, (2,) * 3, (3,) * 3]])

    def test_of_palettes_are_colours(self) -> None:
        palette, indices = noise(4, 1)[0], [bytes([0, 1, 2, 3, 0])]
        chunks = [(b"PLTE", bytes(value for colour in palette for value in colour)), (b"tRNS", bytes([255, 0, 51]))]
        expected = [palette[0], (LIGHT,) * 3, over(palette[2], 0.2, 2, 0), palette[3], palette[0]]
        data = png(5, 1, colour=3, before=chunks, rows=indices)
        self.assertEqual(self.kitty(self.encoded("a.png", data)), [expected])
        self.assertEqual(self.kitty(self.folder / "a.png"), [expected])
        file = self.encoded("b.png", png(5, 1, colour=3, before=chunks[:1], rows=indices))
        self.assertEqual(self.kitty(file), [[palette[i] for i in indices[0]]])

    def test_of_the_transparent_colour_are_transparent(self) -> None:
        transparent = struct.pack(">HHH", 1, 2, 3)
        rows = [[(1, 2, 3), (1, 2, 4), (3, 2, 1)]]
        self.assertEqual(self.kitty(self.image("a.png", rows, before=[(b"tRNS", transparent)])),
                         [[(LIGHT,) * 3, (1, 2, 4), (3, 2, 1)]])

    def test_are_stretched(self) -> None:
        file = self.image("a.png", [[(0,), (100,), (150,), (200,)]])
        self.assertEqual(self.kitty(file)[0][1], (100,) * 3)
        self.assertEqual([pixel[0] for pixel in self.kitty(file, "--stretch")[0]], [0, 128, 191, 255])
        self.assertEqual(self.kitty(self.image("b.png", [[(9,), (9,)]]), "--stretch"), [[(9,) * 3] * 2])
        depth = self.encoded("depth.png", png(4, 1, depth=16, colour=0, rows=[struct.pack(">4H", 0, 1000, 1100, 1200)]))
        self.assertEqual([pixel[0] for pixel in self.kitty(depth, "--stretch")[0]], [0, 0, 128, 255])
        alpha = self.image("c.png", [[(10, 255), (20, 255), (20, 51)]])
        self.assertEqual(self.kitty(alpha, "--stretch"), [[(0,) * 3, (255,) * 3, over((255,) * 3, 0.2, 2, 0)]])

    def test_are_turned_upright(self) -> None:
        rows = noise(6, 4)
        entry = struct.pack(">HHIHH", 0x0112, 3, 1, 6, 0)
        exif = b"MM\0*" + struct.pack(">IH", 8, 1) + entry + bytes(4)
        file = self.image("a.png", rows, before=[(b"eXIf", exif)])
        self.assertEqual(self.kitty(file), [list(row) for row in zip(*rows[::-1])])

    def test_of_a_file_that_names_its_model(self) -> None:
        pictures = [self.write(f"in/m{i}.png", png(300, 200, seed=i)) for i in range(3)]
        model = self.folder / "m.l3model"
        self.l3("train", self.folder / "in", model, "--effort", 1)
        file = self.folder / "m0.l3"
        self.l3("encode", pictures[0], file, "--model", model)
        self.assertIn(b"needs a model", self.l3("show", "--as", "kitty", file, code=FAILED).stderr)
        self.assertEqual(self.kitty(file, "--model", model), self.kitty(pictures[0]))


class Sizes(ShowTest):
    def reference(self, name: str, width: int, height: int) -> Rows:
        """What l3 convert --resize makes of the image."""
        self.l3("convert", "-q", "--files", "--force", "--resize", f"exact={width}x{height}", self.folder / name,
                self.folder / "resized")
        fields, pixels = self.samples(next((self.folder / "resized").glob("*.l3")))
        return rows_of(width, pixels, int(fields["DEPTH"]))

    def test_fit_the_columns(self) -> None:
        self.write("in/a.png", png(200, 100, rows=bytes_of(noise(200, 100))))
        file = self.folder / "in/a.png"
        for protocol, width, size in (("blocks", 40, (40, 20)), ("kitty", 5, (50, 25)), ("kitty", 20, (200, 100)),
                                      ("kitty", 21, (200, 100)), ("blocks", 1, (1, 1))):
            with self.subTest(protocol=protocol, width=width):
                output = self.shown("--as", protocol, "--width", width, file, COLORTERM="truecolor")
                seen = from_kitty(output) if protocol == "kitty" else from_blocks(output)
                self.assertEqual((len(seen[0]), len(seen)), size)
                self.assertEqual(seen, self.reference("in", *size))
        self.assertEqual(len(from_blocks(self.shown("--as", "blocks", file), full=False)[0]), 80, "without a terminal")

    def test_fit_the_terminal(self) -> None:
        file = self.image("a.png", noise(300, 200))
        tall = self.image("b.png", noise(10, 300))
        for image, how, size in ((file, {"columns": 30, "rows": 50}, (30, 20)),
                                 (file, {"columns": 90, "rows": 11}, (30, 20)),
                                 (tall, {"columns": 90, "rows": 11}, (1, 20)),
                                 (file, {"columns": 20, "rows": 50, "cell": (6, 13)}, (120, 80)),
                                 (file, {"columns": 90, "rows": 11, "cell": (6, 14)}, (210, 140)),
                                 (file, {"columns": 10, "rows": 50}, (100, 67)),
                                 (file, {"columns": 90, "rows": 50, "cell": (9, 18)}, (300, 200))):
            protocol = "kitty" if "cell" in how or size[0] == 100 else "blocks"
            with self.subTest(size=size, protocol=protocol):
                output = self.on_terminal("--as", protocol, image, COLORTERM="truecolor", **how).output
                seen = from_kitty(output) if protocol == "kitty" else from_blocks(output)
                self.assertEqual((len(seen[0]), len(seen)), size)
        seen = from_blocks(self.on_terminal("--as", "blocks", "--width", 60, file, rows=11).output, full=False)
        self.assertEqual((len(seen[0]), len(seen)), (60, 40), "as wide as wanted")

    def test_transparent_colours_do_not_shine_through(self) -> None:
        rows = [[(255, 0, 0, 0) if x < 40 else (0, 0, 255, 255) for x in range(81)] for _ in range(2)]
        seen = self.kitty("--width", 2, self.image("a.png", rows))
        edge = seen[0][9]
        self.assertEqual(edge[0], edge[1], "no red")


class Choices(ShowTest):
    def setUp(self) -> None:
        super().setUp()
        self.rows = noise(8, 6)
        self.file = self.image("a.png", self.rows)

    def protocol(self, said: Said) -> str:
        self.assertEqual((said.code, said.modes_kept), (0, True), said.output)
        if said.output.startswith(b"\x1b_G"):
            self.assertEqual(from_kitty(said.output), self.rows)
            return "kitty"
        if said.output.startswith(b"\x1bP"):
            self.assertEqual(len(from_sixel(said.output)), len(self.rows))
            return "sixel"
        self.assertEqual(len(from_blocks(said.output, full=False)), len(self.rows))
        return "blocks"

    def test_come_from_the_environment(self) -> None:
        for variables in ({"KITTY_WINDOW_ID": "1"}, {"TERM": "xterm-kitty"}, {"TERM_PROGRAM": "WezTerm"},
                          {"TERM_PROGRAM": "ghostty"}):
            with self.subTest(variables=variables):
                said = self.on_terminal(self.file, answer=WITH_SIXEL, **variables)
                self.assertEqual((self.protocol(said), said.asked), ("kitty", False))

    def test_come_from_the_answer(self) -> None:
        for answer, protocol in ((WITH_SIXEL, "sixel"), (b"\x1b[?4c", "sixel"), (WITHOUT_SIXEL, "blocks"),
                                 (b"xc\x1b[?62;4c", "sixel"), (b"\x1b[?6c", "blocks")):
            with self.subTest(answer=answer):
                said = self.on_terminal(self.file, answer=answer)
                self.assertEqual((self.protocol(said), said.asked), (protocol, True))

    def test_within_tmux_ask(self) -> None:
        for variables in ({"TMUX": "/tmp/x,1,0"}, {"TERM": "screen-256color"}):
            said = self.on_terminal(self.file, answer=WITHOUT_SIXEL, KITTY_WINDOW_ID="1", **variables)
            self.assertEqual((self.protocol(said), said.asked), ("blocks", True))

    def test_without_an_answer_are_blocks(self) -> None:
        begin = time.monotonic()
        said = self.on_terminal(self.file)
        self.assertEqual((self.protocol(said), said.asked), ("blocks", True))
        self.assertGreater(time.monotonic() - begin, 0.4)
        said = self.on_terminal(self.file, TERM="dumb")
        self.assertEqual((self.protocol(said), said.asked), ("blocks", False))

    def test_without_a_terminal_to_read_are_blocks(self) -> None:
        said = self.on_terminal(self.file, answer=WITH_SIXEL, stdin=subprocess.DEVNULL)
        self.assertEqual((self.protocol(said), said.asked), ("blocks", False))

    def test_that_are_named_ask_nothing(self) -> None:
        for protocol in ("kitty", "sixel", "blocks"):
            said = self.on_terminal("--as", protocol, self.file, KITTY_WINDOW_ID="1")
            self.assertEqual((self.protocol(said), said.asked), (protocol, False))

    def test_without_a_terminal_must_be_named(self) -> None:
        for words in ((), ("--as", "auto")):
            said = self.l3("show", *words, self.file, code=USAGE)
            self.assertIn(b"stdout is not a terminal", said.stderr)
            self.assertEqual(said.stdout, b"")
        self.assertIn(b"not one of", self.l3("show", "--as", "png", self.file, code=USAGE).stderr)

    def test_from_stdin(self) -> None:
        output = self.l3("show", "--as", "kitty", "-", input=self.file.read_bytes()).stdout
        self.assertEqual(from_kitty(output), self.rows)


class Samples(ShowTest):
    def test_of_a_data_set_have_names(self) -> None:
        rows = noise(9, 5)
        self.write("in/a.png", png(9, 5, rows=bytes_of(rows)))
        self.write("in/b\n.png", png(9, 5))
        chosen = self.folder / "set"
        self.l3("convert", "-q", self.folder / "in", chosen)
        self.assertEqual(self.kitty(chosen, "a.png"), rows)
        self.assertEqual(self.kitty(chosen / "shard-00000.l3s", "a.png"), rows)
        self.assertIn(b"no sample has the name c\\x1B[2J", self.l3("show", "--as", "kitty", chosen, "c\x1b[2J",
                                                                    code=FAILED).stderr)
        self.assertIn(b"name one of its samples", self.l3("show", "--as", "kitty", chosen, code=USAGE).stderr)
        self.assertIn(b"not a data set", self.l3("show", "--as", "kitty", self.image("a.png", rows), "a.png",
                                                 code=FAILED).stderr)


class Failures(ShowTest):
    def test_draw_nothing(self) -> None:
        file = self.image("\x1b[31m.png", noise(30, 30))
        flip(file, file.stat().st_size - 9)
        for path in (file, self.write("text\x07", b"no image"), self.folder / "absent\x1b[2J"):
            said = self.l3("show", "--as", "kitty", path, code=FAILED)
            self.assertEqual(said.stdout, b"")
            self.assertNotRegex(said.stderr, rb"[\x00-\x09\x0b-\x1f\x7f]")
        self.assertIn(b"more pixels than the limit", self.l3("show", "--as", "kitty", "--max-pixels", 10,
                                                     self.image("b.png", noise(9, 9)), code=FAILED).stderr)

    def test_of_metadata_cost_no_pixels(self) -> None:
        rows = noise(30, 30)
        data = png(30, 30, rows=bytes_of(rows), after=[(b"tEXt", b"key\0value")])
        file = self.encoded("a.png", data, "--method", "fast")  # not tiny
        flip(file, section_offset(file.read_bytes(), METADATA_SECTION) + 9)
        said = self.l3("show", "--as", "kitty", file, code=FAILED)
        self.assertEqual(from_kitty(said.stdout), rows)
        self.assertIn(b": offset ", said.stderr)

    def test_a_full_disk(self) -> None:
        if not Path("/dev/full").exists():
            self.skipTest("there is no /dev/full")
        with open("/dev/full", "wb") as full:
            said = subprocess.run([l3_command(), "show", "--as", "blocks", self.image("a.png", noise(9, 9))],
                                  stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(said.returncode, FAILED)
        self.assertIn(b"l3: stdout: cannot write", said.stderr)


class Interruptions(ShowTest):
    def test_of_a_question_restore_the_modes(self) -> None:
        said = self.on_terminal(self.image("a.png", noise(9, 9)), typed=b"\x03")
        self.assertEqual((said.code, said.asked, said.modes_kept), (-signal.SIGINT, True, True))

    def test_of_a_picture_end_it(self) -> None:
        file = self.image("a.png", noise(400, 300))
        for protocol, end in (("kitty", b"\x1b\\\x1b_Gq=2,m=0;\x1b\\\n"), ("sixel", b"\x1b\\\x1b[0m\n"),
                              ("blocks", b"\x1b\\\x1b[0m\n")):
            with self.subTest(protocol=protocol):
                said = self.on_terminal("--as", protocol, file, columns=400, rows=200, typed=b"\x03", while_busy=True,
                                        COLORTERM="truecolor")
                self.assertEqual((said.code, said.modes_kept), (-signal.SIGINT, True))
                self.assertTrue(said.output.endswith(end), said.output[-60:])


if __name__ == "__main__":
    main()
