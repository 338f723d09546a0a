#!/usr/bin/env python3
"""Tests `l3 convert --resize` and `--orient`: pixels, records, groups, resuming, and what is refused.

Usage: command_resize_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import functools
import json
import random
import struct
from fractions import Fraction
from pathlib import Path

from command_testing import CHANNELS, DONE, FAILED, USAGE, main, pam_samples, png, png_chunks
from sets_testing import Held, SetTest, contents, write_tar

REACH = {"bilinear": Fraction(1), "bicubic": Fraction(2)}
RESIZED, ORIENTED = b"l3:resized-from\0", b"l3:oriented\0"

Plane = list[list[int]]


def exif(orientation: int, order: str = ">", entries: int = 1) -> bytes:
    head = b"MM\0*" if order == ">" else b"II*\0"
    entry = struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)
    return head + struct.pack(order + "IH", 8, entries) + entry * entries + bytes(4)


def weight(kind: str, x: Fraction) -> float:
    x = abs(x)
    if kind == "bilinear":
        return float(max(0, 1 - x))
    if x < 1:
        return float((3 * x - 5) * x * x / 2 + 1)
    return float(((5 - x) * x - 8) * x / 2 + 2) if x < 2 else 0.0


@functools.cache
def taps(length: int, size: int, kind: str) -> list[tuple[int, list[float]]]:
    """For each sample of a resized row: the first sample that counts, and the weights of it and those after it."""
    scale = Fraction(length, size)
    if kind == "nearest-exact":
        return [(int((2 * i + 1) * scale / 2), [1.0]) for i in range(size)]
    stretch = max(scale, Fraction(1))
    result: list[tuple[int, list[float]]] = []
    for i in range(size):
        if kind == "area":  # in floats, whose rounding errors decide about samples at the edges
            middle, width = (i + 0.5) * (length / size), float(stretch)
            first, end = max(int(middle - 0.5 * width + 0.5), 0), min(int(middle + 0.5 * width + 0.5), length)
            inside = [-0.5 < (x - middle + 0.5) * (1 / width) <= 0.5 for x in range(first, end)]
            result.append((first, [one / sum(inside) for one in inside]))
            continue
        centre = (2 * i + 1) * scale / 2
        first = max(int(centre - REACH[kind] * stretch + Fraction(1, 2)), 0)
        end = min(int(centre + REACH[kind] * stretch + Fraction(1, 2)), length)
        weights = [weight(kind, (Fraction(2 * x + 1, 2) - centre) / stretch) for x in range(first, end)]
        result.append((first, [one / sum(weights) for one in weights]))
    return result


def resize_row(row: list[float], size: int, kind: str) -> list[float]:
    """One axis, as Pillow resizes it."""
    if kind == "nearest-exact":
        return [row[first] for first, _ in taps(len(row), size, kind)]
    return [sum(w * v for w, v in zip(weights, row[first:first + len(weights)]))
            for first, weights in taps(len(row), size, kind)]


def resized(plane: list[list[float]], width: int, height: int, kind: str, most: int = 0) -> list[list[float]]:
    """With `most`, bicubic rounds and limits samples between its passes."""
    if kind == "bicubic" and most:
        plane = [[min(max(round(x), 0), most) for x in resize_row(row, width, kind)] for row in plane]
    rows = [list(row) for row in zip(*[resize_row(list(column), height, kind) for column in zip(*plane)])]
    return rows if kind == "bicubic" and most else [resize_row(row, width, kind) for row in rows]


def turned(plane: Plane, orientation: int) -> Plane:
    """The upright image of a stored one."""
    if orientation in (2, 3):
        plane = [row[::-1] for row in plane]
    if orientation in (3, 4):
        plane = plane[::-1]
    if orientation >= 5:
        plane = [list(row) for row in zip(*plane)]  # transposed
    if orientation in (6, 7):
        plane = [row[::-1] for row in plane]
    if orientation in (7, 8):
        plane = plane[::-1]
    return plane


class Picture:
    """Planes of samples, and the PNG with them."""

    def __init__(self, width: int, height: int, depth: int = 8, colour: int = 2, seed: int = 1) -> None:
        source = random.Random(seed)
        self.width, self.height, self.depth, self.colour = width, height, depth, colour
        most = (1 << depth) - 1
        self.planes = [[[(x * (3 + c) * most // 200 + y * most // 90 + source.randrange(most // 3 + 2)) % (most + 1)
                         for x in range(width)] for y in range(height)] for c in range(CHANNELS[colour])]

    def png(self, before: list[tuple[bytes, bytes]] = ()) -> bytes:
        rows = []
        for y in range(self.height):
            samples = [plane[y][x] for x in range(self.width) for plane in self.planes]
            if self.depth == 16:
                rows.append(struct.pack(f">{len(samples)}H", *samples))
            elif self.depth == 8:
                rows.append(bytes(samples))
            else:
                bits = "".join(format(sample, f"0{self.depth}b") for sample in samples)
                bits += "0" * (-len(bits) % 8)
                rows.append(bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8)))
        return png(self.width, self.height, self.depth, self.colour, list(before), rows=rows)


def planes_of(pam: bytes) -> list[Plane]:
    head, data = pam_samples(pam)
    width, height, channels = int(head["WIDTH"]), int(head["HEIGHT"]), int(head["DEPTH"])
    wide = int(head["MAXVAL"]) > 255
    samples = struct.unpack(f">{len(data) // 2}H", data) if wide else data
    return [[[samples[(y * width + x) * channels + c] for x in range(width)] for y in range(height)]
            for c in range(channels)]


class ResizeTest(SetTest):
    def one(self, data: bytes, *words: object, name: str = "x.png", code: int = DONE) -> Path:
        out = self.folder / "x.l3"
        out.unlink(missing_ok=True)
        self.l3("convert", self.write(name, data), out, "--method", "fast", *words, code=code)
        return out

    def planes(self, image: Path) -> list[Plane]:
        return planes_of(self.l3("decode", "-q", image, "-", "--format", "pam").stdout)

    def records(self, image: Path) -> list[str]:
        return [str(one["text"]) for one in self.info(image)["chunks"] if "text" in one]

    def size(self, image: Path) -> tuple[int, int]:
        found = self.info(image)
        return int(found["width"]), int(found["height"])

    def assert_near(self, got: list[Plane], expected: list[list[list[float]]], most: int, by: float) -> None:
        for mine, theirs in zip(got, expected, strict=True):
            self.assertEqual((len(mine), len(mine[0])), (len(theirs), len(theirs[0])))
            for row, other in zip(mine, theirs):
                for a, b in zip(row, other):
                    self.assertLessEqual(abs(a - min(max(b, 0), most)), by)


class Pixels(ResizeTest):
    def test_filters(self) -> None:
        for depth, colour in ((8, 2), (8, 0), (1, 0), (2, 0), (4, 0), (16, 0), (16, 2)):
            picture = Picture(61, 45, depth, colour, seed=depth)
            for kind in ("bilinear", "bicubic", "area", "nearest-exact"):
                for width, height in ((20, 13), (61, 9), (80, 50), (1, 1))[:4 if depth == 8 and colour == 0 else 2]:
                    with self.subTest(depth=depth, colour=colour, kind=kind, size=(width, height)):
                        out = self.one(picture.png(), "--resize", f"exact={width}x{height}", "--interpolation", kind)
                        most = (1 << depth) - 1
                        expected = [resized(plane, width, height, kind, most if depth <= 8 else 0)
                                    for plane in picture.planes]
                        by = 0 if kind == "nearest-exact" else 0.51 + most / (300 if kind == "bicubic" else 900)
                        self.assert_near(self.planes(out), expected, most, by)
                        self.assertEqual(self.info(out)["bits"], depth)
                        self.assertEqual(self.records(out), [f"l3:resized-from = 61x45 {kind}"])

    def test_sizes(self) -> None:
        data = Picture(50, 40).png()
        for rule, size in (("shorter=16", (20, 16)), ("longest=20", (20, 16)), ("max-pixels=320", (20, 16)),
                           ("max-pixels=500", (25, 20)), ("exact=7x9", (7, 9)), ("exact=60x41", (60, 41)),
                           ("shorter=1", (1, 1)), ("max-pixels=1", (1, 1))):
            with self.subTest(rule):
                self.assertEqual(self.size(self.one(data, "--resize", rule)), size)
        tall = Picture(375, 500).png()
        self.assertEqual(self.size(self.one(tall, "--resize", "shorter=256")), (256, 341), "as torchvision rounds")

    def test_small_images_stay_as_they_are(self) -> None:
        data = Picture(50, 40).png()
        plain = self.one(data).read_bytes()
        for rule in ("shorter=40", "longest=50", "max-pixels=2000", "exact=50x40", "shorter=1048576",
                     "longest=1048576", "max-pixels=1099511627776"):
            with self.subTest(rule):
                self.assertEqual(self.one(data, "--resize", rule, "--orient").read_bytes(), plain)

    def test_flat_areas_stay_flat(self) -> None:
        for depth in (1, 8, 16):
            rows = [b"\xff" * (301 * depth // 8 + 1)] * 200
            out = self.one(png(301 * 8 // 8, 200, depth, 0, rows=[row[:(301 * depth + 7) // 8] for row in rows]),
                           "--resize", "shorter=33")
            self.assertEqual({sample for row in self.planes(out)[0] for sample in row}, {(1 << depth) - 1})

    def test_palettes_and_transparent_colours_are_picked(self) -> None:
        picture = Picture(50, 40, 8, 0)
        nearest = [resized(plane, 20, 16, "nearest-exact") for plane in picture.planes]
        palette = Picture(50, 40, 8, 3)
        entries = bytes(random.Random(3).randbytes(768))
        out = self.one(palette.png([(b"PLTE", entries), (b"tRNS", b"\0\x80")]), "--resize", "shorter=16",
                       "--interpolation", "bicubic")
        back = self.folder / "back.png"
        self.l3("decode", out, back)
        self.assertIn((b"PLTE", entries), png_chunks(back.read_bytes()))
        self.assertIn((b"tRNS", b"\0\x80"), png_chunks(back.read_bytes()))
        indices = planes_of(self.l3("decode", "-q", "--palette", "indices", out, "-", "--format", "pam").stdout)
        self.assertEqual(indices, [resized(plane, 20, 16, "nearest-exact") for plane in palette.planes])
        self.assertEqual(self.records(out), ["l3:resized-from = 50x40 nearest-exact"])
        out = self.one(picture.png([(b"tRNS", b"\0\x07")]), "--resize", "shorter=16")
        self.assertEqual(self.planes(out), nearest)

    def test_alpha_weights_colours(self) -> None:
        for depth in (8, 16):
            for colour in (4, 6):
                with self.subTest(depth=depth, colour=colour):
                    most = (1 << depth) - 1
                    picture = Picture(60, 44, depth, colour)
                    alpha = picture.planes[-1]
                    for y in range(44):
                        for x in range(60):
                            alpha[y][x] = 0 if x < 25 else most if x > 40 else alpha[y][x]
                    got = self.planes(self.one(picture.png(), "--resize", "exact=17x11"))
                    weights = resized(alpha, 17, 11, "bilinear")
                    self.assert_near(got[-1:], [weights], most, 0.6 + most / 900)
                    for c, plane in enumerate(picture.planes[:-1]):
                        mixed = resized([[a * b for a, b in zip(*rows)] for rows in zip(plane, alpha)], 17, 11,
                                        "bilinear")
                        for y in range(11):
                            for x in range(17):
                                if weights[y][x] > most / 10:
                                    self.assertLessEqual(abs(got[c][y][x] - mixed[y][x] / weights[y][x]),
                                                         1 + most / 400)
                    opaque = Picture(60, 44, depth, colour)
                    opaque.planes[-1] = [[most] * 60] * 44
                    got = self.planes(self.one(opaque.png(), "--resize", "exact=17x11"))
                    plain = Picture(60, 44, depth, colour - 4)
                    plain.planes = opaque.planes[:-1]
                    self.assertEqual(got[:-1], self.planes(self.one(plain.png(), "--resize", "exact=17x11")))
                    self.assertEqual({sample for row in got[-1] for sample in row}, {most})

    def test_bands_make_the_whole(self) -> None:
        """An image of more bytes than are resized at a time."""
        row = bytes((x * x // 7) & 0xFF for x in range(9000 * 3))
        data = png(9000, 1500, rows=[bytes([(y * 5) & 0xFF]) * 3 + row[3:] for y in range(1500)])
        got = self.planes(self.one(data, "--resize", "exact=40x300", "--no-verify"))
        column = resize_row([(y * 5) & 0xFF for y in range(1500)], 300, "bilinear")
        single = resize_row(list(row[0::3]), 40, "bilinear")
        share = (resize_row([1.0] + [0.0] * 8999, 40, "bilinear"))[0]
        for y in range(300):
            expected = single[0] + share * (column[y] - row[0])
            self.assertLessEqual(abs(got[0][y][0] - expected), 1)
            for x in range(1, 40):
                self.assertLessEqual(abs(got[0][y][x] - single[x]), 1.5)

    def test_long_edges(self) -> None:
        edge = 1 << 20
        row = bytes(x * 255 // edge for x in range(edge))
        wide = png(edge, 2, 8, 0, rows=[row, row])
        for size in ((1, 1), (edge // 2, 1), (3, 5)):
            with self.subTest(size=size):
                got = self.planes(self.one(wide, "--resize", f"exact={size[0]}x{size[1]}"))[0]
                self.assertEqual((len(got[0]), len(got)), size)
                for x in range(0, size[0], max(size[0] // 7, 1)):
                    self.assertLessEqual(abs(got[0][x] - (x + 0.5) * 255 / size[0]), 24 if size[0] < 9 else 2)


class Orientation(ResizeTest):
    def test_every_orientation(self) -> None:
        for depth, colour in ((8, 0), (8, 2), (16, 4), (16, 2), (16, 6), (1, 0)):
            picture = Picture(35, 40, depth, colour)
            for orientation in range(1, 9):
                for order in "<>":
                    with self.subTest(depth=depth, colour=colour, orientation=orientation, order=order):
                        data = picture.png([(b"pHYs", struct.pack(">IIB", 7, 9, 1)),
                                            (b"eXIf", exif(orientation, order))])
                        out = self.one(data, "--orient")
                        self.assertEqual(self.planes(out), [turned(plane, orientation) for plane in picture.planes])
                        back = self.folder / "back.png"
                        self.l3("decode", out, back)
                        chunks = dict(png_chunks(back.read_bytes()))
                        self.assertEqual(chunks[b"eXIf"], exif(1, order))
                        density = (9, 7) if orientation >= 5 else (7, 9)
                        self.assertEqual(chunks[b"pHYs"], struct.pack(">IIB", *density, 1))
                        record = [f"l3:oriented = {orientation}"] if orientation > 1 else []
                        self.assertEqual(self.records(out), record)
                        self.l3("verify", out, "--against", self.folder / "x.png")

    def test_notes(self) -> None:
        data = Picture(5, 4).png([(b"eXIf", exif(6))])
        for words, says in (((), True), (("--orient",), False)):
            out = self.folder / "x.l3"
            out.unlink(missing_ok=True)
            said = self.l3("convert", self.write("x.png", data), out, *words).stderr
            self.assertEqual(b"not rotated" in said, says)

    def test_damaged_exif(self) -> None:
        whole = exif(6)
        entries = b"MM\0*" + struct.pack(">IH", 8, 0xFFFF) + bytes(24)
        for bad in (b"", b"M", whole[:7], whole[:9], whole[:20], exif(9), exif(0), exif(65535), entries,
                    b"MM\0*\xff\xff\xff\xff" + whole[8:], b"MM\0*" + struct.pack(">I", len(whole) - 1) + whole[8:]):
            with self.subTest(bad):
                data = Picture(5, 4).png([(b"eXIf", bad)])
                self.assertEqual(self.one(data, "--orient").read_bytes(), self.one(data).read_bytes())

    def test_comes_before_resizing(self) -> None:
        picture = Picture(60, 30)
        out = self.one(picture.png([(b"eXIf", exif(6))]), "--orient", "--resize", "exact=10x20",
                       "--interpolation", "nearest-exact")
        expected = [resized(turned(plane, 6), 10, 20, "nearest-exact") for plane in picture.planes]
        self.assertEqual(self.planes(out), expected)
        self.assertEqual(self.records(out), ["l3:oriented = 6", "l3:resized-from = 30x60 nearest-exact"])
        out = self.one(picture.png([(b"eXIf", exif(6))]), "--resize", "longest=20")
        self.assertEqual(self.size(out), (20, 10), "without --orient")


class Records(ResizeTest):
    def test_survive_and_are_shown(self) -> None:
        out = self.one(Picture(50, 40).png(), "--resize", "shorter=16")
        said = self.l3("info", out).stdout.decode()
        self.assertIn(": l3:resized-from = 50x40 bilinear\n", said)
        back = self.folder / "back.png"
        self.l3("decode", out, back)
        self.assertIn((b"tEXt", RESIZED + b"50x40 bilinear"), png_chunks(back.read_bytes()))
        self.assertIn("l3:resized-from = 50x40 bilinear\n", self.l3("info", back).stdout.decode())
        again = self.one(back.read_bytes(), "--resize", "shorter=8", "--interpolation", "area")
        self.assertEqual(self.records(again), ["l3:resized-from = 50x40 bilinear", "l3:resized-from = 20x16 area"])
        self.l3("verify", again, "--against", self.folder / "x.png")
        self.assertEqual(self.records(self.one(back.read_bytes())), ["l3:resized-from = 50x40 bilinear"])
        self.l3("verify", self.folder / "x.l3", "--against", self.folder / "x.png")

    def test_hostile_records(self) -> None:
        for text in (b"", b"\0", b"\x1b[31m red", b"x" * 1000, b"50x40", b"50x40 cubist", b" ", b"\xff"):
            for key in (RESIZED, ORIENTED):
                data = png(9, 8, before=[(b"tEXt", key + text)])
                out = self.one(data)
                self.assertNotIn(b"\x1b", self.l3("info", out).stdout)
                self.assertNotIn(b"\x1b", self.l3("info", "--json", out).stdout)
                self.l3("verify", out, "--against", self.folder / "x.png")
                other = self.write("other.png", png(19, 18))
                self.l3("verify", out, "--against", other, code=FAILED)

    def test_verify_finds_other_sources(self) -> None:
        out = self.one(Picture(50, 40).png(), "--resize", "shorter=16")
        self.l3("verify", out, "--against", self.folder / "x.png")
        for other in (Picture(50, 40, seed=2), Picture(51, 40)):
            said = self.l3("verify", out, "--against", self.write("y.png", other.png()), code=FAILED).stderr
            self.assertIn(b"differs from", said)


class Sets(ResizeTest):
    def shapes(self) -> dict[str, tuple[int, int]]:
        return {str(one["name"]): (int(one["width"]), int(one["height"])) for one in self.entries()}

    def test_a_set(self) -> None:
        for i in range(5):
            self.write(f"src/{i}.png", Picture(30 + 10 * i, 40, seed=i).png([(b"eXIf", exif(1 + 2 * i % 8))]))
        said = self.convert("--orient", "--resize", "shorter=32", "-j3").stdout.decode()
        self.assertRegex(said, r"decoding [\d.]+ %, resizing [\d.]+ %, encoding")
        self.assertEqual(self.shapes()["4.png"], (70 * 32 // 40, 32))
        self.assertEqual(self.shapes()["0.png"], (30, 40))
        self.l3("verify", "--against", self.source, self.set)
        one = self.folder / "one"
        end = json.loads(self.convert("--orient", "--resize", "shorter=32", "-j1", "--json", to=one)
                         .stdout.splitlines()[-1])
        self.assertIn("reshape", end["thread_seconds"])
        self.assertEqual(contents(one), contents(self.set), "with any number of threads")
        plain = self.folder / "plain"
        self.assertNotIn(b"resizing", self.convert(to=plain).stdout)

    def test_shared_models_are_made_of_resized_images(self) -> None:
        for i in range(30):
            self.write(f"src/{i}.png", Picture(90, 80, seed=i).png())
        self.l3("convert", self.source, self.set, "-1", "--resize", "longest=32", "--shared-model", "on")
        self.l3("verify", "--against", self.source, self.set)

    def test_files(self) -> None:
        self.write("src/a/b.png", Picture(50, 40).png())
        out = self.folder / "out"
        self.convert("--files", "--resize", "longest=20", to=out)
        self.assertEqual(self.size(out / "a/b.l3"), (20, 16))
        self.l3("verify", "--against", self.source, out)

    def test_pairs(self) -> None:
        image, mask = Picture(50, 40), Picture(50, 40, 16, 0)
        self.write("src/img/a.png", image.png())
        self.write("src/gt/a.png", mask.png())
        pairs = ("--pair", "image=img/{}.png", "--pair", "mask=gt/{}.png", "--resize", "shorter=16")
        self.convert(*pairs)
        self.assertEqual(self.shapes(), {"img/a.png": (20, 16), "gt/a.png": (20, 16)})
        self.l3("cat", self.set, "gt/a.png", self.folder / "m.l3")
        self.assertEqual(self.planes(self.folder / "m.l3"), [resized(mask.planes[0], 20, 16, "nearest-exact")])
        self.l3("cat", self.set, "img/a.png", self.folder / "i.l3")
        self.assertEqual(self.records(self.folder / "i.l3"), ["l3:resized-from = 50x40 bilinear"])
        self.l3("verify", "--against", self.source, self.set)
        other = self.folder / "other"
        self.convert(*pairs, "--interpolation", "mask=area", "--interpolation", "image=nearest-exact", to=other)
        self.l3("cat", other, "gt/a.png", self.folder / "n.l3")
        self.assertEqual(self.records(self.folder / "n.l3"), ["l3:resized-from = 50x40 area"])
        said = self.refused(*pairs, "--interpolation", "masks=area", to=self.folder / "x")
        self.assert_one_line(said, "no file has the role masks of --interpolation")

    def test_images_of_a_group_have_one_size(self) -> None:
        self.write("src/img/a.png", Picture(50, 40).png([(b"eXIf", exif(6))]))
        self.write("src/gt/a.png", Picture(50, 40, 8, 0).png())
        pairs = ("--pair", "image=img/{}.png", "--pair", "mask=gt/{}.png")
        self.convert(*pairs, "--resize", "shorter=16")
        for number, words in enumerate((("--orient",), ("--orient", "--resize", "longest=20"))):
            said = self.refused(*pairs, *words, to=self.folder / f"x{number}")
            self.assertIn("has 50 x 40 pixels, but ", said)
        self.write("src/gt/a.png", Picture(40, 50, 8, 0).png())
        self.convert(*pairs, "--orient", to=self.folder / "y")

    def test_groups_of_tars(self) -> None:
        tar = write_tar(self.folder / "a.tar", [("1.cls", b"3"), ("1.png", Picture(50, 40).png()),
                                                ("1.seg.png", Picture(50, 40, 8, 0).png())])
        words = ("convert", tar, self.set, "--method", "fast", "--resize", "shorter=16")
        said = self.l3(*words, code=FAILED).stderr.decode()
        self.assert_one_line(said, "--interpolation png=bilinear for pictures or --interpolation png=nearest-exact")
        said = self.l3(*words, "--interpolation", "png=bilinear", code=FAILED).stderr.decode()
        self.assert_one_line(said, "--interpolation seg.png=bilinear for pictures")
        self.assertFalse(self.set.exists())
        self.l3(*words, "--interpolation", "png=bilinear", "--interpolation", "seg.png=nearest-exact")
        self.assertEqual(set(self.shapes().values()), {(20, 16)})
        self.l3("verify", "--against", tar, self.set)

    def test_resumed_with_other_options(self) -> None:
        held = Held(self, "--resize", "shorter=9")
        held.process.kill()
        held.process.wait()
        for words, what in ((("--resize", "shorter=10"), "--resize=shorter=9, now --resize=shorter=10"),
                            ((), "--resize=shorter=9, now --resize=none"),
                            (("--resize", "shorter=9", "--orient"), "--orient=off, now --orient=on"),
                            (("--resize", "shorter=9", "--interpolation", "area"), "--interpolation=area")):
            said = self.refused("--resume", "--on-error", "skip", *words)
            self.assertIn("was begun with other options", said)
            self.assertIn(what, said)
        self.convert("--resume", *held.options, code=FAILED)
        self.assertEqual(self.shapes()["a000.png"], (9, 9))
        whole = self.folder / "whole"
        self.convert(*held.options, code=FAILED, to=whole)
        self.assertEqual(contents(whole), contents(self.set))

    def test_parts(self) -> None:
        for i in range(6):
            self.write(f"src/{i}.png", Picture(30 + i, 40, seed=i).png())
        self.convert("--part", "1/2", "--resize", "shorter=16")
        self.convert("--part", "2/2", "--resize", "shorter=17")
        self.assertIn(b"other options", self.l3("merge", self.set, code=FAILED).stderr)
        self.convert("--part", "2/2", "--resize", "shorter=16", "--force")
        self.l3("merge", self.set)
        self.l3("verify", "--against", self.source, self.set)


class Refusals(ResizeTest):
    def test_words(self) -> None:
        self.write("src/a.png", png(9, 8))
        for word in ("foo", "", "256", "shorter", "shorter=", "shorter=0", "shorter=-1", "shorter=1e3", "shorter=2x3",
                     "exact=0x0", "exact=5x0", "exact=5", "exact=x5", "exact=5x5x5", "exact=1048577x1",
                     "shorter=1048577", "longest=18446744073709551617", "max-pixels=0", "max-pixels=1099511627777",
                     "Shorter=5", "shorter=5 ", "exact=5X5"):
            with self.subTest(word):
                said = self.convert("--resize", word, code=USAGE).stderr.decode()
                self.assertIn("is not shorter=N, longest=N, exact=WxH or max-pixels=N", said)
        for word in ("cubist", "", "=nearest-exact", "mask=", "Nearest"):
            with self.subTest(word):
                said = self.convert("--resize", "shorter=5", "--interpolation", word, code=USAGE).stderr.decode()
                self.assertIn("is not bilinear, bicubic, area or nearest-exact", said)
        self.assertIn(b"--resize", self.convert("--interpolation", "area", code=USAGE).stderr)
        for words in (("--files",), ()):
            source = self.source if words else self.source / "a.png"
            said = self.l3("convert", source, self.folder / "x", *words, "--resize", "shorter=5", "--interpolation",
                           "a=area", code=USAGE).stderr
            self.assertIn(b"--interpolation ROLE= works only for data sets", said)

    def test_too_large(self) -> None:
        data = Picture(5, 4).png()
        for size, words in (("1048576x1048576", ()), ("16385x16385", ()), ("30000x1000", ("--max-pixels", "20000000")),
                            ("1000x1000", ("--max-bytes", "2MiB"))):
            with self.subTest(size):
                out = self.folder / "x.l3"
                said = self.l3("convert", self.write("x.png", data), out, "--resize", f"exact={size}", *words,
                               code=FAILED).stderr.decode()
                self.assertRegex(said, r"x\.png: resized to \d+ x \d+ pixels it would be over the limit of \d+ ")
                self.assertFalse(out.exists())


if __name__ == "__main__":
    main()
