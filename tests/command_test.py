#!/usr/bin/env python3
"""The l3 command from outside: files, messages, exit codes, pipes, interruptions.

Run as: python3 tests/command_test.py --l3 build/dev/bin/l3 [unittest options]
Python's standard library only; every image is drawn here.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib
from pathlib import Path

L3 = "l3"

DONE, FAILED, USAGE = 0, 1, 2
METADATA_SECTION = 0x8001
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of PNG's colour types

Chunks = list[tuple[bytes, bytes]]


def chunk(tag: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))


def draw_rows(width: int, height: int, bits_per_pixel: int, seed: int) -> list[bytes]:
    """Smooth in some places and noisy in others, so that tiles differ."""
    source = random.Random(seed)
    length = (width * bits_per_pixel + 7) // 8
    rows = []
    for y in range(height):
        if y % 40 < 25:
            rows.append(bytes((x // 3 + y) & 0xFF for x in range(length)))
        else:
            rows.append(source.randbytes(length))
    return rows


def png(width: int, height: int, depth: int = 8, colour: int = 2, before: Chunks = (), after: Chunks = (),
        seed: int = 1, rows: list[bytes] | None = None) -> bytes:
    """A PNG with chunks between header and pixels and between pixels and end."""
    if rows is None:
        rows = draw_rows(width, height, depth * CHANNELS[colour], seed)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 1)
    parts = [b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))]
    parts += [chunk(*each) for each in before]
    parts += [chunk(b"IDAT", pixels)]
    parts += [chunk(*each) for each in after]
    return b"".join(parts) + chunk(b"IEND", b"")


def png_chunks(data: bytes) -> Chunks:
    """All chunks but the pixels."""
    found, at = [], 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        tag = data[at + 4:at + 8]
        if tag not in (b"IHDR", b"IDAT", b"IEND"):
            found.append((tag, data[at + 8:at + 8 + length]))
        at += 12 + length
    return found


def pgm(width: int, height: int, seed: int = 1) -> bytes:
    return b"P5\n%d %d\n255\n" % (width, height) + b"".join(draw_rows(width, height, 8, seed))


def pam_samples(data: bytes) -> tuple[dict[str, str], bytes]:
    head, samples = data.split(b"ENDHDR\n", 1)
    fields = dict(line.split(" ", 1) for line in head.decode().splitlines()[1:])
    return fields, samples


def section_offset(data: bytes, wanted: int) -> int:
    (count,) = struct.unpack_from("<H", data, 10)
    for i in range(count):
        kind, _, _, offset, _ = struct.unpack_from("<HHIQQ", data, 64 + 24 * i)
        if kind == wanted:
            return offset
    raise LookupError(f"no section {wanted:#x}")


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


class CommandTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="l3-command-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def l3(self, *words: object, code: int = DONE, **options: object) -> subprocess.CompletedProcess[bytes]:
        result = subprocess.run([L3, *map(str, words)], capture_output=True, timeout=60, **options)
        said = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, code, f"l3 {' '.join(map(str, words))}\n{said}")
        if code != DONE:
            self.assertRegex(said, r"(?m)^l3: ", "a failure says something")
        for line in said.splitlines():
            self.assertRegex(line, r"^l3: ", "every line names its speaker")
        return result

    def write(self, name: str, data: bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def encoded(self, name: str, data: bytes, *options: object) -> Path:
        out = (self.folder / name).with_suffix(".l3")
        self.l3("encode", self.write(name, data), out, *options)
        return out

    def info(self, image: Path) -> dict[str, object]:
        return json.loads(self.l3("info", "--json", image).stdout)

    def samples(self, image: Path) -> tuple[dict[str, str], bytes]:
        return pam_samples(self.l3("decode", "-q", image, "-", "--format", "pam").stdout)

    def assert_no_temporaries(self) -> None:
        self.assertEqual([str(path) for path in self.folder.rglob("*l3tmp*")], [])


class RoundTrips(CommandTest):
    def assert_comes_back(self, data: bytes) -> bytes:
        source = self.write("source.png", data)
        self.l3("encode", source, self.folder / "x.l3")
        self.l3("verify", self.folder / "x.l3", "--against", source)
        self.l3("decode", self.folder / "x.l3", self.folder / "back.png")
        back = (self.folder / "back.png").read_bytes()
        self.assertEqual(sorted(png_chunks(back)), sorted(png_chunks(data)))
        self.assertEqual(back[16:26], data[16:26], "size, depth and colour type")
        # The same samples: what comes back has the same contents as its source.
        self.l3("encode", self.folder / "back.png", self.folder / "y.l3")
        self.assertEqual(self.info(self.folder / "x.l3")["digest"], self.info(self.folder / "y.l3")["digest"])
        return back

    def test_every_type_and_depth(self) -> None:
        for colour, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 4: (8, 16), 6: (8, 16)}.items():
            for depth in depths:
                with self.subTest(colour=colour, depth=depth):
                    self.assert_comes_back(png(131, 45, depth, colour))

    def test_palettes(self) -> None:
        for depth in (1, 2, 4, 8):
            with self.subTest(depth=depth):
                palette = bytes(range(3 << depth if depth < 7 else 255))
                self.assert_comes_back(png(67, 35, depth, 3, [(b"PLTE", palette), (b"tRNS", b"\x00\x80")]))

    def test_transparent_colours(self) -> None:
        self.assert_comes_back(png(9, 9, 2, 0, [(b"tRNS", b"\xab\x01")]))  # with bits that have no meaning
        self.assert_comes_back(png(9, 9, 16, 2, [(b"tRNS", bytes(range(6)))]))

    def test_chunks(self) -> None:
        self.assert_comes_back(png(40, 40, before=[
            (b"gAMA", struct.pack(">I", 45455)), (b"cHRM", bytes(range(32))), (b"sRGB", b"\x01"),
            (b"cICP", b"\x09\x10\x00\x01"), (b"iCCP", b"name\0\0" + zlib.compress(b"profile")),
            (b"eXIf", b"MM\0*data"), (b"pHYs", struct.pack(">IIB", 3000, 2000, 1)), (b"tEXt", b"Title\0one"),
            (b"prVt", b""), (b"bKGD", b"\0\1\0\2\0\3")],
            after=[(b"tEXt", b"Title\0two"), (b"tEXt", b"Title\0two"), (b"tIME", bytes(7))]))

    def test_chunks_that_no_section_holds(self) -> None:
        gamma = (b"gAMA", struct.pack(">I", 45455))
        palette = (b"PLTE", bytes(range(30)))
        for before in ([gamma, gamma], [(b"gAMA", b"\1\2")], [(b"cHRM", bytes(31))], [(b"sRGB", b"\1\2")],
                       [(b"iCCP", b"")], [(b"eXIf", b"")], [(b"eXIf", b"II"), (b"eXIf", b"MM")], [(b"cICP", bytes(5))],
                       [palette, gamma, (b"iCCP", b"late")], [gamma, palette]):
            with self.subTest(before=before):
                self.assert_comes_back(png(20, 20, before=before))
        self.assert_comes_back(png(20, 20, after=[gamma, (b"eXIf", b"II*\0")]))

    def test_many_chunks(self) -> None:
        began = time.monotonic()
        self.assert_comes_back(png(8, 8, before=[(b"gAMA", bytes(4))] * 20000 + [(b"tEXt", b"a\0b")] * 20000))
        self.assertLess(time.monotonic() - began, 10)

    def test_pnm_and_pam(self) -> None:
        source = self.write("gray.pgm", pgm(77, 33))
        self.l3("encode", source, self.folder / "gray.l3")
        self.l3("decode", self.folder / "gray.l3", self.folder / "back.pgm")
        self.assertEqual((self.folder / "back.pgm").read_bytes(), source.read_bytes())
        crlf = self.write("crlf.pgm", b"P5\r\n2 2\r\n255\r\nabcd")
        self.assertEqual(self.samples(self.encoded("crlf.pgm", crlf.read_bytes()))[1], b"abcd")
        lf_first = b"P5 2 2 255\r\nabc"
        self.assertEqual(self.samples(self.encoded("lf.pgm", lf_first))[1], b"\nabc")
        dos = b"P7\r\nWIDTH 1\r\nHEIGHT 1\r\nDEPTH 3\r\nMAXVAL 255\r\nTUPLTYPE RGB\r\nENDHDR\r\nabc"
        self.assertEqual(self.samples(self.encoded("dos.pam", dos))[1], b"abc")
        odd = b"P7\nWIDTH 5\nHEIGHT 3\nDEPTH 2\nMAXVAL 1023\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n" + b"\x01\x02" * 30
        self.assertEqual(self.samples(self.encoded("odd.pam", odd)), pam_samples(odd))
        self.l3("decode", self.folder / "odd.l3", self.folder / "odd.png", code=FAILED)

    def test_result_depends_on_nothing_else(self) -> None:
        source = self.write("a.png", png(300, 200))
        first = self.l3("encode", source, "-", "-j1").stdout
        self.assertEqual(self.l3("encode", source, "-", "-j7").stdout, first)
        portable = self.l3("encode", source, "-", env={**os.environ, "L3_CPU": "portable"}).stdout
        self.assertEqual(portable, first)


class Decoding(CommandTest):
    def test_region_is_a_crop(self) -> None:
        image = self.encoded("a.png", png(200, 150), "--tile", 64)
        _, whole = self.samples(image)
        for x, y, width, height in ((0, 0, 200, 150), (0, 0, 1, 1), (199, 149, 1, 1), (60, 63, 70, 3), (5, 0, 10, 150)):
            with self.subTest(x=x, y=y, width=width, height=height):
                cut = self.l3("decode", image, "-", "--format", "pam", "--roi", f"{x},{y},{width},{height}").stdout
                rows = [whole[3 * (200 * row + x):3 * (200 * row + x + width)] for row in range(y, y + height)]
                self.assertEqual(pam_samples(cut)[1], b"".join(rows))

    def test_wrong_regions(self) -> None:
        image = self.encoded("a.png", png(20, 20))
        for region in ("0,0,21,1", "20,0,1,1", "0,19,1,2", "4294967295,0,2,1", "1,2,3", "0,0,0,1", "-1,0,1,1",
                       "a,b,c,d", "0,0,1,1,1", "0,0,4294967297,1"):
            with self.subTest(region=region):
                self.l3("decode", image, self.folder / "x.png", f"--roi={region}", code=USAGE)
                self.assertFalse((self.folder / "x.png").exists())

    def test_region_keeps_palette_and_chunks(self) -> None:
        chunks = [(b"PLTE", bytes(range(48))), (b"tRNS", b"\1"), (b"tEXt", b"k\0v")]
        image = self.encoded("a.png", png(50, 50, 4, 3, chunks))
        self.l3("decode", image, self.folder / "x.png", "--roi", "1,2,3,4")
        self.assertEqual(sorted(png_chunks((self.folder / "x.png").read_bytes())), sorted(chunks))

    def test_palettes_as_asked(self) -> None:
        palette = bytes([1, 2, 3, 40, 50, 60, 7, 8, 9])
        plain = self.encoded("a.png", png(2, 2, 8, 3, [(b"PLTE", palette)], rows=[b"\0\1", b"\2\3"]))
        alpha = (b"tRNS", b"\x80")
        clear = self.encoded("b.png", png(2, 2, 8, 3, [(b"PLTE", palette), alpha], rows=[b"\0\1", b"\2\0"]))
        colours = bytes([1, 2, 3, 40, 50, 60, 7, 8, 9])

        def decoded(image: Path, *words: str) -> bytes:
            return self.l3("decode", "-q", image, "-", *words).stdout

        # The last index points past the palette: opaque black.
        self.assertEqual(decoded(plain, "--format", "ppm"), b"P6\n2 2\n255\n" + colours + b"\0\0\0")
        self.assertEqual(decoded(plain, "--format", "pgm"), b"P5\n2 2\n255\n\0\1\2\3")
        self.assertEqual(self.samples(plain), ({"WIDTH": "2", "HEIGHT": "2", "DEPTH": "1", "MAXVAL": "255",
                                               "TUPLTYPE": "PALETTE_INDICES"}, b"\0\1\2\3"))
        rgba = pam_samples(decoded(clear, "--format", "pam", "--palette", "colours"))
        self.assertEqual(rgba[0]["TUPLTYPE"], "RGB_ALPHA")
        self.assertEqual(rgba[1], b"\1\2\3\x80\x28\x32\x3c\xff\7\x08\x09\xff\1\2\3\x80")
        noted = self.l3("decode", clear, self.folder / "b.ppm")
        self.assertIn(b"transparency is left out", noted.stderr)
        self.assertEqual((self.folder / "b.ppm").read_bytes()[-12:], colours + b"\1\2\3")
        self.l3("decode", clear, self.folder / "rgba.png", "--palette", "colours")
        self.assertEqual((self.folder / "rgba.png").read_bytes()[25], 6)
        self.l3("decode", clear, "-", "--format", "ppm", "--palette", "indices", code=USAGE)

    def test_damaged_metadata_costs_the_metadata(self) -> None:
        image = self.encoded("a.png", png(30, 30, after=[(b"tEXt", b"key\0value")]))
        _, samples = self.samples(image)
        offset = section_offset(image.read_bytes(), METADATA_SECTION)
        flip(image, offset + 9)
        out = self.folder / "x.png"
        said = self.l3("decode", image, out, code=FAILED).stderr.decode()
        self.assertRegex(said, rf"^l3: {re.escape(str(image))}: offset \d+: .*without metadata\n$")
        self.assertEqual(png_chunks(out.read_bytes()), [])
        self.assertEqual(self.samples(self.encoded("x.png", out.read_bytes()))[1], samples)
        self.l3("verify", image, code=FAILED)
        self.l3("info", image, code=FAILED)

        # Formats that have no room for metadata are told of the damage as well.
        said = self.l3("decode", image, self.folder / "x.ppm", code=FAILED).stderr
        self.assertIn(b"without metadata", said)
        self.assertTrue((self.folder / "x.ppm").exists())

    def test_chunks_of_palettes_that_become_colours(self) -> None:
        chunks = [(b"sBIT", b"\5\6\5"), (b"PLTE", bytes(range(9))), (b"hIST", bytes(6)), (b"bKGD", b"\2"),
                  (b"tEXt", b"k\0v")]
        image = self.encoded("a.png", png(2, 2, 8, 3, chunks, rows=[b"\0\1", b"\2\1"]))
        noted = self.l3("decode", image, self.folder / "b.png", "--palette", "colours").stderr
        self.assertEqual(sorted(png_chunks((self.folder / "b.png").read_bytes())),
                         sorted([chunks[0], (b"bKGD", b"\0\6\0\7\0\x08"), chunks[4]]))
        self.assertIn(b"note: chunk hIST is left out", noted)
        self.assertIn(b"note: chunk bKGD is written as a colour", noted)

    def test_damaged_pixels_are_not_written(self) -> None:
        image = self.encoded("a.png", png(100, 100))
        out = self.write("x.png", b"as it was")
        whole = image.read_bytes()
        for at in (0, 9, 20, 50, 70, len(whole) - 40):
            flip(image, at)
            said = self.l3("decode", image, out, code=FAILED).stderr.decode()
            self.assertRegex(said, r"^l3: .*: offset \d+: .+\n$")
            self.assertEqual(out.read_bytes(), b"as it was")
            self.l3("verify", image, code=FAILED)
            image.write_bytes(whole)
        image.write_bytes(whole[:-1])
        self.l3("decode", image, out, code=FAILED)
        self.assert_no_temporaries()

    def test_limits(self) -> None:
        source = self.write("a.png", png(100, 100))
        self.l3("encode", source, self.folder / "a.l3", "--max-pixels", 9999, code=FAILED)
        self.l3("encode", source, self.folder / "a.l3", "--max-bytes", "29KB", code=FAILED)
        self.l3("encode", source, self.folder / "a.l3", "--max-pixels", 10000, "--max-bytes", "30KB")
        self.l3("decode", self.folder / "a.l3", self.folder / "b.png", "--max-pixels", 9999, code=FAILED)
        self.l3("decode", self.folder / "a.l3", self.folder / "b.png", "--max-pixels", 9999, "--roi", "0,0,100,99")
        self.l3("decode", self.folder / "a.l3", self.folder / "b.png", "--max-pixels", 9999, "--roi", "0,0,100,100",
                code=FAILED)


class Messages(CommandTest):
    def test_wrong_usage(self) -> None:
        source = self.write("a.png", png(4, 4))
        for words in ([], ["nonsense"], ["--nonsense"], ["encode"], ["encode", source],
                      ["encode", source, "b.l3", "c.l3"], ["encode", source, "b.l3", "--tile", 100],
                      ["encode", source, "b.l3", "--tile", 2048],
                      ["encode", source, "b.l3", "--effort", 10], ["encode", source, "b.l3", "--method", "dense"],
                      ["encode", source, "b.l3", "--method", "x"], ["encode", source, source],
                      ["encode", source, "b.l3", "--threads", 0], ["decode", "a.l3", "x.tiff"], ["decode", "a.l3", "-"],
                      ["decode", "a.l3", "x.png", "--palette", "x"], ["verify"], ["convert", source],
                      ["convert", source, "x", "--resume", "--force"], ["bench", source, "--codecs", "gif"],
                      ["verify", source, source, "--against", source], ["verify", "-", "-"],
                      ["convert", source, "-"], ["convert", "-", "out"],
                      *(["encode", source, "b.l3", f"{limit}={value}"] for value in ("-1", "0", "x", "")
                        for limit in ("--max-pixels", "--max-bytes", "--max-metadata"))):
            with self.subTest(words=words):
                said = self.l3(*words, code=USAGE).stderr.decode()
                self.assertEqual(said.count("\n"), 1, said)
        self.assertIn(b"not in this version", self.l3("encode", source, "b.l3", "--method", "dense", code=USAGE).stderr)

    def test_largest_tiles(self) -> None:
        cases = {(8, 0): 992, (8, 2): 576, (8, 6): 480, (16, 2): 416, (16, 6): 352, (4, 0): 1024}
        for (depth, colour), edge in cases.items():
            with self.subTest(depth=depth, colour=colour):
                source = self.write("a.png", png(40, 40, depth, colour))
                self.l3("encode", source, self.folder / "a.l3", "--tile", edge)
                if edge == 1024:
                    continue
                said = self.l3("encode", source, self.folder / "b.l3", "--tile", edge + 32, code=FAILED).stderr
                self.assertIn(f"a.png: tiles of {edge + 32} x {edge + 32}".encode(), said)
                self.assertIn(f"--tile {edge}\n".encode(), said)

    def test_what_no_l3_file_can_hold(self) -> None:
        wide = self.write("wide.png", png((1 << 20) + 1, 1, 1, 0))
        self.assertIn(b"wide.png: offset 16: ", self.l3("encode", wide, "x.l3", code=FAILED).stderr)
        high = self.write("high.png", png(1, (1 << 20) + 1, 1, 0, rows=[b"\0"] * ((1 << 20) + 1)))
        self.assertIn(b"high.png: offset 20: ", self.l3("encode", high, "x.l3", code=FAILED).stderr)
        self.l3("encode", self.write("fits.png", png(1 << 20, 1, 1, 0)), self.folder / "x.l3")
        texts = self.write("texts.png", png(4, 4, before=[(b"tEXt", bytes(40))] * 2))
        self.l3("encode", texts, self.folder / "x.l3", "--max-metadata", 104)
        said = self.l3("encode", texts, self.folder / "x.l3", "--max-metadata", 103, code=FAILED).stderr
        self.assertIn(b"texts.png: offset 85: with chunk tEXt the metadata is over the limit of 103 bytes", said)

    def test_help_teaches(self) -> None:
        self.assertIn(b"Exit codes", self.l3("--help").stdout)
        self.assertRegex(self.l3("--version").stdout, rb"^l3 \d+\.\d+\.\d+\n$")
        for command in ("encode", "decode", "info", "verify", "convert", "bench"):
            text = self.l3(command, "--help").stdout.decode()
            self.assertIn("Examples:", text)
            self.assertLessEqual(max(map(len, text.splitlines())), 120, command)

    def test_broken_inputs(self) -> None:
        whole = png(30, 30)
        cases = {"empty.png": b"", "text.png": b"no image", "cut.png": whole[:100],
                 "crc.png": whole[:60] + b"\0\0" + whole[62:], "cut.pgm": b"P5\n4 4\n255\nabc",
                 "l3.png": b"\x8bL3I\r\n\x1a\n"}
        for name, data in cases.items():
            with self.subTest(name=name):
                source = self.write(name, data)
                said = self.l3("encode", source, self.folder / "x.l3", code=FAILED).stderr.decode()
                self.assertRegex(said, rf"^l3: {re.escape(str(source))}: offset \d+: .+\n$")
                self.assertFalse((self.folder / "x.l3").exists())
                said = self.l3("verify", source, code=FAILED).stderr.decode()
                self.assertRegex(said, rf"^l3: {re.escape(str(source))}: offset \d+: .+\n$")

    def test_files_that_cannot_be_opened(self) -> None:
        source = self.write("a.png", png(4, 4))
        said = self.l3("encode", self.folder / "none.png", "x.l3", code=FAILED).stderr.decode()
        self.assertRegex(said, r"none\.png: cannot open: No such file or directory\n$")
        said = self.l3("encode", source, self.folder / "none" / "x.l3", code=FAILED).stderr.decode()
        self.assertRegex(said, r"x\.l3: cannot create: No such file or directory\n$")
        self.l3("encode", self.folder, "x.l3", code=FAILED)
        self.l3("encode", source, self.folder, code=FAILED)
        self.l3("convert", self.folder / "none", self.folder / "out", code=FAILED)
        self.l3("bench", self.folder / "none", code=FAILED)

    def test_messages_are_one_line(self) -> None:
        said = self.l3("encode", self.write("a\nb.png", b"x"), "x.l3", code=FAILED).stderr
        self.assertIn(rb"a\x0Ab.png: offset 0", said)

    def test_cuda_is_refused(self) -> None:
        image = self.encoded("a.png", png(4, 4))
        self.assertIn(b"no CUDA decoder", self.l3("decode", image, "x.png", "--device", "cuda", code=FAILED).stderr)

    def test_unknown_processor(self) -> None:
        self.l3("info", self.write("a.png", png(4, 4)), code=USAGE, env={**os.environ, "L3_CPU": "abacus"})

    def test_notes_and_quiet(self) -> None:
        source = self.write("a.png", png(4, 4) + b"more")
        self.assertIn(b"note: 4 bytes after IEND", self.l3("encode", source, self.folder / "a.l3").stderr)
        self.assertEqual(self.l3("encode", "-q", source, self.folder / "a.l3").stderr, b"")

    def test_info(self) -> None:
        image = self.encoded("a.png", png(300, 200, before=[(b"gAMA", bytes(4)), (b"tEXt", b"k\0v")]), "--tile", 64)
        info = self.info(image)
        wanted = {"format": "l3", "width": 300, "height": 200, "channels": 3, "bits": 8, "colour": "rgb",
                  "alpha": "none", "tile_width": 64, "tile_height": 64, "tiles": 20, "file_bytes": image.stat().st_size,
                  "raw_bytes": 180000, "chunks": [{"tag": "tEXt", "place": 0, "bytes": 3}]}
        self.assertEqual({key: info[key] for key in wanted}, wanted)
        self.assertEqual([each["name"] for each in info["sections"]], ["colour space", "metadata"])
        self.assertRegex(info["digest"], r"^[0-9a-f]{32}$")
        self.assertIn(b"300 x 200", self.l3("info", image).stdout)
        foreign = self.info(self.folder / "a.png")
        self.assertEqual((foreign["format"], foreign["width"], len(foreign["chunks"])), ("png", 300, 2))
        self.assertEqual(self.info(self.write("b.pgm", pgm(3, 2)))["format"], "pgm")


class Pipes(CommandTest):
    def test_stdin_to_stdout(self) -> None:
        source = pgm(90, 70)
        image = self.l3("encode", "-", "-", input=source).stdout
        self.assertEqual(self.l3("decode", "-", "-", "--format", "pgm", input=image).stdout, source)
        self.l3("verify", "-", input=image)
        self.l3("verify", "-", input=image[:-1], code=FAILED)
        self.assertEqual(json.loads(self.l3("info", "-", "--json", input=image).stdout)["file"], "stdin")
        self.assertRegex(self.l3("encode", "-", "-", input=b"x", code=FAILED).stderr, rb"^l3: stdin: offset 0: ")

    def test_reader_that_leaves(self) -> None:
        image = self.encoded("a.png", png(1000, 1000))
        process = subprocess.Popen([L3, "decode", image, "-", "--format", "ppm"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        process.stdout.read(10)
        process.stdout.close()
        self.assertEqual((process.stderr.read(), process.wait(30)), (b"", FAILED))
        process.stderr.close()

    def test_full_devices(self) -> None:
        source = self.write("a.png", png(4, 4))
        with open("/dev/full", "wb") as full:
            for words in (["encode", source, "-"], ["info", source], ["encode", source, "/dev/full"]):
                result = subprocess.run([L3, *words], stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(result.returncode, FAILED)
                self.assertIn(b"No space left on device", result.stderr)
        self.l3("encode", source, "/dev/null")
        self.assertTrue(Path("/dev/null").is_char_device())


class Atomicity(CommandTest):
    def big(self) -> Path:
        noise = random.Random(5).randbytes(1 << 20)
        return self.write("big.pgm", b"P5\n8192 4096\n255\n" + noise * 32)

    def end(self, source: Path, out: Path, how: int, after: float | None) -> int:
        """Ends an encoder after some seconds, or once its temporary file is there."""
        process = subprocess.Popen([L3, "encode", source, out, "-j1", "--no-verify"], stderr=subprocess.DEVNULL)
        began = time.monotonic()
        while process.poll() is None:
            elapsed = time.monotonic() - began
            if elapsed >= after if after is not None else any(".l3tmp-" in name for name in os.listdir(out.parent)):
                process.send_signal(how)
                break
        return process.wait(30)

    def test_nothing_half(self) -> None:
        source = self.big()
        for how in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for after in (None, None, 0.005, 0.02, 0.05, 0.1):
                with self.subTest(how=how.name, after=after):
                    out = self.folder / "out" / "big.l3"
                    shutil.rmtree(out.parent, ignore_errors=True)
                    out.parent.mkdir()
                    code = self.end(source, out, how, after)
                    self.assertIn(code, (DONE, -how))
                    if code == DONE or out.exists():
                        self.l3("verify", out)
                    if how != signal.SIGKILL:
                        self.assert_no_temporaries()

    def test_waiting_for_input(self) -> None:
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = subprocess.Popen([L3, "encode", "-", self.folder / "x.l3"], stdin=subprocess.PIPE)
            process.stdin.write(b"P5\n")
            process.stdin.flush()
            time.sleep(0.05)
            process.send_signal(how)
            self.assertEqual(process.wait(30), -how)
            process.stdin.close()
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_interrupted_conversion(self) -> None:
        for i in range(40):
            self.write(f"src/{i}.pgm", b"P5\n1024 512\n255\n" + random.Random(i).randbytes(1 << 19))
        process = subprocess.Popen([L3, "convert", self.folder / "src", self.folder / "dst", "-j2"],
                                   stdout=subprocess.DEVNULL)
        while process.poll() is None and len(list((self.folder / "dst").glob("*.l3"))) < 5:
            pass
        process.send_signal(signal.SIGINT)
        process.wait(30)
        self.assert_no_temporaries()
        self.l3("verify", self.folder / "dst")
        self.l3("convert", self.folder / "src", self.folder / "dst", "--resume")
        self.l3("verify", self.folder / "dst", "--against", self.folder / "src")

    def limited(self, size: int) -> dict[str, object]:
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))}

    def test_file_size_limit(self) -> None:
        source = self.write("a.png", png(200, 200))
        out = self.write("a.l3", b"as it was")
        for command in (["encode", source, out], ["convert", "--force", source, out]):
            said = self.l3(*command, code=FAILED, **self.limited(1000)).stderr
            self.assertIn(b"a.l3: cannot write: File too large", said)
            self.assertEqual(out.read_bytes(), b"as it was")
        self.assert_no_temporaries()

    def test_full_disk(self) -> None:
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("no right to mount a small disk")
        self.addCleanup(subprocess.run, ["umount", disk])
        said = self.l3("encode", self.write("a.png", png(300, 300)), disk / "a.l3", code=FAILED).stderr
        self.assertIn(b"a.l3: cannot write: No space left on device", said)
        self.assertEqual(list(disk.iterdir()), [])

    def test_what_is_replaced_keeps_its_ways(self) -> None:
        source = self.write("a.png", png(4, 4))
        out = self.write("real/a.l3", b"old")
        out.chmod(0o640)
        link = self.folder / "link.l3"
        link.symlink_to(out)
        self.l3("encode", source, link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(out.stat().st_mode & 0o777, 0o640)
        self.l3("verify", out)


class Verifying(CommandTest):
    def test_folders(self) -> None:
        for name in ("src/a.png", "src/deep/b.png", "src/deep/c.pgm"):
            self.write(name, png(20, 20) if name.endswith("png") else pgm(20, 20))
        source, out = self.folder / "src", self.folder / "dst"
        self.l3("convert", source, out)
        self.assertEqual(self.l3("verify", out).stdout, b"")
        self.assertEqual(self.l3("verify", "-v", out).stdout.count(b"OK "), 3)
        self.l3("verify", out, "--against", source)

        self.write("src/deep/c.pgm", b"P5\n20 20\n255\n" + bytes(400))
        said = self.l3("verify", out, "--against", source, code=FAILED).stderr.decode()
        self.assertRegex(said, r"^l3: .*c\.l3: differs from .*c\.pgm: .*\n$")
        (source / "a.png").rename(source / "z.png")
        said = self.l3("verify", out, "--against", source, code=FAILED).stderr.decode()
        self.assertIn("a.l3: no image of this name", said)
        self.assertRegex(said, r"z\.png: no .*z\.l3")
        flip(out / "deep" / "b.l3", 20)
        self.assertEqual(self.l3("verify", out, code=FAILED).stderr.count(b"\n"), 1)

    def test_nothing_to_verify_is_a_failure(self) -> None:
        self.l3("verify", self.folder, code=FAILED)
        self.l3("verify", self.folder / "none", code=FAILED)


class Converting(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.source, self.out = self.folder / "src", self.folder / "dst"
        for name in ("a.png", "b/c.PNG", "b/d.e.png"):
            self.write(f"src/{name}", png(40, 30, seed=len(name)))
        self.write("src/notes.txt", b"text")
        self.write("src/b/f.pgm", pgm(10, 10))

    def outputs(self) -> list[str]:
        return sorted(str(path.relative_to(self.out)) for path in self.out.rglob("*") if path.is_file())

    def test_mirrors_the_tree(self) -> None:
        said = self.l3("convert", self.source, self.out, "--tile", 32).stdout.decode()
        self.assertEqual(self.outputs(), ["a.l3", "b/c.l3", "b/d.e.l3", "b/f.l3"])
        self.assertRegex(said, r"^4 files converted: .* ratio .* MP/s; 1 other files ignored\n$")
        self.l3("verify", self.out, "--against", self.source)
        self.assertEqual(self.l3("convert", "-q", "--force", self.source, self.out).stdout, b"")

    def test_corrupt_among_good(self) -> None:
        self.write("src/b/bad.png", png(40, 30)[:-30])
        said = self.l3("convert", "--on-error", "skip", self.source, self.out, code=FAILED)
        self.assertRegex(said.stderr.decode(), r"^l3: .*/b/bad\.png: offset \d+: .+\n$")
        self.assertIn(b"1 failed", said.stdout)
        self.assertEqual(self.outputs(), ["a.l3", "b/c.l3", "b/d.e.l3", "b/f.l3"])
        shutil.rmtree(self.out)
        self.write("src/0.png", b"bad")
        said = self.l3("convert", "-j1", self.source, self.out, code=FAILED)
        self.assertIn(b"5 not begun", said.stdout)
        self.assertEqual(self.outputs(), [])

    def test_resume(self) -> None:
        for path in self.source.rglob("*"):
            os.utime(path, (1e9, 1e9))
        self.l3("convert", self.source, self.out)
        before = {name: (self.out / name).stat().st_mtime_ns for name in self.outputs()}
        said = self.l3("convert", self.source, self.out, code=FAILED).stderr
        self.assertIn(b"exists already, and so do 3 more", said)
        (self.out / "a.l3").write_bytes(b"not whole")
        os.utime(self.source / "b" / "f.pgm", (4e9, 4e9))
        said = self.l3("convert", "--resume", self.source, self.out).stdout
        self.assertRegex(said, rb"^2 files converted.*; 2 kept from before")
        after = {name: (self.out / name).stat().st_mtime_ns for name in self.outputs()}
        self.assertEqual([name for name in before if before[name] == after[name]], ["b/c.l3", "b/d.e.l3"])
        self.l3("verify", self.out, "--against", self.source)
        self.assertRegex(self.l3("convert", "--force", self.source, self.out).stdout, rb"^4 files converted")

    def test_two_sources_for_one_output(self) -> None:
        self.write("src/a.pgm", pgm(4, 4))
        said = self.l3("convert", self.source, self.out, code=FAILED).stderr.decode()
        self.assertRegex(said, r"^l3: .*a\.png: would become .*a\.l3, as .*a\.pgm would\n$")
        self.assertFalse(self.out.exists())

    def test_single_files(self) -> None:
        self.l3("convert", self.source / "a.png", self.out)
        self.l3("convert", self.source / "a.png", self.folder / "named.l3")
        self.l3("verify", self.out / "a.l3", self.folder / "named.l3")

    def test_what_is_no_file(self) -> None:
        os.mkfifo(self.source / "pipe.png")
        (self.source / "b" / "circle").symlink_to(self.source)
        self.write("elsewhere/x.pgm", pgm(4, 4))
        (self.source / "linked").symlink_to(self.folder / "elsewhere")
        said = self.l3("convert", self.source, self.out)
        self.assertEqual(self.outputs(), ["a.l3", "b/c.l3", "b/d.e.l3", "b/f.l3", "linked/x.l3"])
        self.assertEqual(said.stderr.count(b"note: skipped"), 2)
        self.assertIn(b"2 skipped", said.stdout)
        self.l3("verify", "-q", self.out, "--against", self.source)

    def test_folder_that_cannot_be_read(self) -> None:
        if os.geteuid() == 0:
            self.skipTest("root reads every folder")
        (self.source / "closed").mkdir(mode=0)
        said = self.l3("convert", self.source, self.out, code=FAILED).stderr
        self.assertIn(b"/closed: cannot read this folder", said)
        self.assertFalse(self.out.exists())
        self.l3("convert", "--on-error", "skip", self.source, self.out, code=FAILED)
        self.assertEqual(self.outputs(), ["a.l3", "b/c.l3", "b/d.e.l3", "b/f.l3"])

    def test_sources_are_never_overwritten(self) -> None:
        self.out.mkdir()
        (self.out / "a.l3").symlink_to(self.source / "a.png")
        before = (self.source / "a.png").read_bytes()
        for words in ([self.source, self.out], [self.source / "a.png", self.out]):
            said = self.l3("convert", "--force", *words, code=FAILED).stderr
            self.assertIn(b"is the same file as the source", said)
        self.assertEqual((self.source / "a.png").read_bytes(), before)
        self.assertEqual(self.outputs(), ["a.l3"])

    def test_what_a_killed_run_left_behind_is_removed(self) -> None:
        self.l3("convert", self.source, self.out)
        for name in (".a.l3.l3tmp-123-4", ".a.l3.l3tmp-1-0-0123456789abcdef", ".other.l3.l3tmp-1-0", ".a.l3.l3tmp-x"):
            (self.out / name).write_bytes(b"left")
        self.l3("convert", "--force", self.source, self.out)
        self.assertEqual(self.outputs()[:2], [".a.l3.l3tmp-x", ".other.l3.l3tmp-1-0"])
        self.assertEqual(len(self.outputs()), 6)

    def test_folder_in_the_way(self) -> None:
        self.write("dst/b", b"a file where a folder should be")
        said = self.l3("convert", "--on-error", "skip", self.source, self.out, code=FAILED)
        self.assertEqual(said.stderr.count(b"cannot create"), 3)
        self.assertTrue((self.out / "a.l3").exists())

    def test_long_names(self) -> None:
        name = "\u00e9" * 124 + "a.png"
        self.write(f"src/{name}", png(4, 4))
        self.l3("convert", self.source, self.out)
        self.assertTrue((self.out / (name[:-4] + ".l3")).exists())

    def test_nothing_to_convert(self) -> None:
        (self.folder / "empty").mkdir()
        self.l3("convert", self.folder / "empty", self.out, code=FAILED)


class Benchmarks(CommandTest):
    def test_json(self) -> None:
        for i in range(3):
            self.write(f"src/{i}.png", png(200, 100, seed=i, after=[(b"tEXt", b"k\0v")]))
        self.write("src/g.pgm", pgm(100, 100))
        supplied = sum(path.stat().st_size for path in (self.folder / "src").iterdir())
        for threads in (1, 2):
            said = self.l3("bench", self.folder / "src", "--codecs", "png,l3-fast", "--threads", threads, "--rounds", 2,
                           "--json")
            report = json.loads(said.stdout)
            self.assertEqual([codec["codec"] for codec in report["codecs"]], ["png", "l3-fast"])
            for codec in report["codecs"]:
                self.assertLessEqual({"codec", "bytes", "ratio", "encode_mpps", "decode_mpps"}, set(codec))
                self.assertTrue(codec["lossless"])
                self.assertGreater(codec["encode_mpps"], 0)
                self.assertGreater(codec["decode_mpps"], 0)
                self.assertAlmostEqual(codec["ratio"], codec["bytes"] / supplied, places=5)
            self.assertEqual((report["files"], report["pixels"], report["threads"]), (4, 70000, threads))
        self.assertIn(b"l3-fast", self.l3("bench", self.folder / "src", "--rounds", 1).stdout)

    def test_broken_files_are_named(self) -> None:
        self.write("src/a.png", png(20, 20))
        bad = self.write("src/bad.png", b"x")
        said = self.l3("bench", self.folder / "src", "--rounds", 1, "--json", code=FAILED)
        self.assertIn(f"l3: {bad}: offset 0".encode(), said.stderr)
        self.assertEqual(json.loads(said.stdout)["files"], 1)

    def test_nothing_to_measure(self) -> None:
        said = self.l3("bench", self.folder / "none", "--json", code=FAILED)
        self.assertEqual(said.stdout, b"")
        self.assertEqual(said.stderr.count(b"\n"), 1)

    def test_a_codec_twice(self) -> None:
        source = self.write("a.png", png(20, 20))
        said = self.l3("bench", source, "--codecs", "png,png", "--rounds", 1, "--json").stdout
        self.assertEqual([codec["codec"] for codec in json.loads(said)["codecs"]], ["png"])


def main() -> None:
    global L3
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--l3", required=True, help="the command to test")
    options, rest = parser.parse_known_args()
    L3 = str(Path(options.l3).resolve())
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
