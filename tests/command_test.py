#!/usr/bin/env python3
"""Tests the l3 command with single files: round trips, messages and pipes.

Usage: command_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import struct
import subprocess
import zlib
from pathlib import Path

from command_testing import (
    FAILED,
    METADATA_SECTION,
    USAGE,
    CommandTest,
    flip,
    l3_command,
    main,
    pam_samples,
    pgm,
    png,
    png_chunks,
    section_offset,
)


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

    def test_palettes_that_a_rule_has(self) -> None:
        bits_of = [[(entry >> 3 * j & 7, 7 - j) for j in range(8)] for entry in range(256)]
        classes = bytes(sum((three >> c & 1) << j for three, j in bits) for bits in bits_of for c in range(3))
        for name, colours in {"all": classes, "some": classes[:63], "grey": classes[:30] + b"\x80" * 600}.items():
            with self.subTest(name):
                source = png(67, 35, 8, 3, [(b"PLTE", colours)])
                self.assert_comes_back(source)
                info = self.info(self.encoded(f"{name}.png", source))
                self.assertEqual(info["palette_entries"], len(colours) // 3)
                self.assertEqual(info["sections"][0], {"name": "palette", "bytes": 35 if name == "grey" else 2})

    def test_colour_spaces(self) -> None:
        chunks = [(b"cICP", b"\x09\x10\0\1"), (b"gAMA", struct.pack(">I", 45455)), (b"sRGB", b"\1"),
                  (b"cHRM", bytes(range(32)))]
        for parts in range(1, 16):
            with self.subTest(parts=parts):
                self.assert_comes_back(png(9, 9, before=[c for bit, c in enumerate(chunks) if parts >> bit & 1]))

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
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        self.assert_comes_back(png(8, 8, before=[(b"gAMA", bytes(4))] * 20000 + [(b"tEXt", b"a\0b")] * 20000))
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 10)

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

    def test_methods_and_efforts(self) -> None:
        noise = random.Random(3)
        samples = bytes((x // 3 + y + noise.randrange(4)) & 0xFF for y in range(200) for x in range(300))
        source = self.write("a.pgm", b"P5\n300 200\n255\n" + samples)
        bytes_by = {}
        for words in (("fast",), ("dense",), ("auto",), ("dense", "--effort", 1), ("dense", "--effort", 9)):
            image = self.folder / "a.l3"
            self.l3("encode", source, image, "--method", *words)
            with self.subTest(words=words):
                self.assertEqual(self.samples(image)[1], samples)
                info = self.info(image)
                dense = words[0] != "fast"
                self.assertEqual(info["tiles_dense"], info["tiles"] if dense else 0)
                self.assertEqual([each["name"] for each in info["sections"]], ["model"] if dense else [])
                self.assertEqual(b" dense" in self.l3("info", image).stdout, dense)
                bytes_by[words[0]] = info["file_bytes"]
        self.assertLess(bytes_by["auto"], bytes_by["fast"])
        deep = self.write("deep.png", png(60, 40, 16, 2))
        fast = self.l3("encode", deep, "-", "--method", "fast").stdout
        self.assertLessEqual(len(self.l3("encode", deep, "-", "--method", "auto").stdout), len(fast))
        self.l3("encode", deep, image, "--method", "dense")
        self.assertEqual(self.info(image)["tiles_dense"], self.info(image)["tiles"])
        # A ramp of 16 bits is what its model expects.
        ramp = b"".join((37 * x + 5 * y).to_bytes(2, "big") for y in range(100) for x in range(120))
        ramp_file = self.write("ramp.pgm", b"P5\n120 100\n65535\n" + ramp)
        sizes = [len(self.l3("encode", ramp_file, "-", "--method", method).stdout) for method in ("auto", "fast")]
        self.assertLess(sizes[0], sizes[1])

    def test_result_depends_on_nothing_else(self) -> None:
        source = self.write("a.png", png(300, 200))
        first = self.l3("encode", source, "-", "-j1").stdout
        self.assertEqual(self.l3("encode", source, "-", "-j7").stdout, first)
        portable = self.l3("encode", source, "-", env={**os.environ, "L3_CPU": "portable"}).stdout
        self.assertEqual(portable, first)


class Decoding(CommandTest):
    def test_short_efforts(self) -> None:
        source = self.write("a.png", png(100, 80))
        for effort in (1, 9):
            self.l3("encode", "--effort", effort, source, self.folder / "long.l3")
            self.l3("encode", f"-{effort}", source, self.folder / "short.l3")
            self.assertEqual((self.folder / "long.l3").read_bytes(), (self.folder / "short.l3").read_bytes())
        self.l3("convert", source, self.folder / "last.l3", "-9")
        self.assertEqual((self.folder / "long.l3").read_bytes(), (self.folder / "last.l3").read_bytes())
        self.assertNotEqual(self.l3("encode", "-1", source, "-").stdout, (self.folder / "last.l3").read_bytes())

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
        self.assertIn(b"the transparency of the palette is left out", noted.stderr)
        self.assertEqual((self.folder / "b.ppm").read_bytes()[-12:], colours + b"\1\2\3")
        self.l3("decode", clear, self.folder / "rgba.png", "--palette", "colours")
        self.assertEqual((self.folder / "rgba.png").read_bytes()[25], 6)
        self.l3("decode", clear, "-", "--format", "ppm", "--palette", "indices", code=USAGE)

    def test_damaged_metadata_costs_the_metadata(self) -> None:
        image = self.encoded("a.png", png(30, 30, after=[(b"tEXt", b"key\0value")]), "--method", "fast")  # not tiny
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
        self.assertIn(b"note: chunk bKGD is converted from a palette index to a colour", noted)

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
                      ["encode", source, "b.l3", "--effort", 10], ["encode", source, "b.l3", "--effort", 0],
                      ["encode", source, "b.l3", "--method", "x"], ["encode", source, source],
                      ["encode", source, "b.l3", "--threads", 0], ["decode", "a.l3", "x.tiff"],
                      ["encode", source, "b.l3", "-9", "--effort", 9], ["encode", "-0", source, "b.l3"],
                      ["decode", "a.l3", "x.png", "--palette", "x"], ["verify"], ["convert", source],
                      ["convert", source, "x", "--resume", "--force"], ["bench", source, "--codecs", "gif"],
                      ["verify", source, source, "--against", source], ["verify", "-", "-"],
                      ["convert", source, "-"], ["convert", "-", "out"],
                      *(["encode", source, "b.l3", f"{limit}={value}"] for value in ("-1", "0", "x", "")
                        for limit in ("--max-pixels", "--max-bytes", "--max-metadata"))):
            with self.subTest(words=words):
                said = self.l3(*words, code=USAGE).stderr.decode()
                self.assertEqual(said.count("\n"), 1, said)

    def test_encode_does_not_overwrite_an_image(self) -> None:
        first, second = self.write("1.png", png(3, 3)), self.write("2.png", png(4, 4))
        said = self.l3("encode", first, second, code=USAGE).stderr.decode()
        self.assertIn("2.png, the name of another format; an L3 file ends in .l3", said)
        self.assertEqual(second.read_bytes(), png(4, 4))

    def test_commands_for_a_file_name_those_for_a_folder(self) -> None:
        for words, meant in ((["encode", self.folder, "a.l3"], "l3 convert"),
                             (["decode", self.folder, "a.png"], "l3 export")):
            said = self.l3(*words, code=USAGE).stderr.decode()
            self.assertIn(f"{self.folder} is a folder; {meant} ", said)

    def test_did_you_mean(self) -> None:
        source = self.write("a.png", png(4, 4))
        for meant, words in {"encode": ["encod"], "decode": ["dceode"], "convert": ["conv"], "ls": ["list"],
                             "help": ["hlep"], "--effort": ["encode", source, "b.l3", "--efort", 3],
                             "--no-verify": ["convert", source, "b.l3", "--noverify"],
                             "--roi": ["decode", "--rio=1,1,1,1", source, "b.png"],
                             "dense": ["encode", source, "b.l3", "--method", "dens"],
                             "jpegls": ["bench", source, "--codecs", "png,jpgls"]}.items():
            with self.subTest(words=words):
                said = self.l3(*words, code=USAGE).stderr.decode()
                self.assertIn(f"; did you mean {meant}? (see l3 ", said)
        for words in (["frobnicate"], ["x"], ["encode", source, "b.l3", "--quux"], ["verify", source, "-z"]):
            with self.subTest(words=words):
                self.assertNotIn(b"did you mean", self.l3(*words, code=USAGE).stderr)
        image = self.encoded("b.png", png(4, 4))
        for path, meant in {source: b"encode", image: b"decode", self.folder: b"convert"}.items():
            self.assertIn(b"; did you mean " + meant + b"? (", self.l3(path, code=USAGE).stderr)
        for words in (["ls", image], ["cat", image, "x"]):
            said = self.l3(*words, code=FAILED).stderr
            self.assertEqual(said, f"l3: {image}: this is an L3 file, not a data set\n".encode())
        self.assertEqual(self.l3("nonsense", "--help", code=USAGE).stdout, b"", "help of no command")
        self.assertIn(b"l3: no option --versoin; did you mean --version? (see l3 --help)",
                      self.l3("--versoin", code=USAGE).stderr)
        self.assertEqual(self.l3(code=USAGE).stderr, b"l3: no command given (see l3 --help)\n")
        self.assertIn(b"encode: one argument too many: c.l3 (", self.l3("encode", "a", "b", "c.l3", code=USAGE).stderr)

    def test_wrong_values(self) -> None:
        cases = {"encode a b --tile": "--tile needs a value",
                 "encode a b -9 --effort 3": "--effort is given more than once",
                 "encode a b -0": "--effort: 0 is not a whole number from 1 to 9",
                 "encode a b -j x": "--threads: x is not a whole number from 1 to 1024",
                 "bench a --codecs": "--codecs needs a value",
                 "bench a --step-ms 0": "--step-ms: 0 is not a number above 0",
                 "convert a b --shard-size 5x": "--shard-size: 5x is not a size such as 1000000, 500kB, 64MiB or 2GB"}
        for words, said in cases.items():
            with self.subTest(words=words):
                command = words.split()[0]
                self.assertEqual(self.l3(*words.split(), code=USAGE).stderr.decode(),
                                 f"l3: {command}: {said} (see l3 {command} --help)\n")

    def test_names_that_begin_with_a_dash(self) -> None:
        self.write("-d.png", png(4, 4))
        said = self.l3("encode", "-d.png", "d.l3", code=USAGE, cwd=self.folder).stderr
        self.assertEqual(said, b"l3: encode: no option -d.png; for the file of this name write ./-d.png "
                               b"(see l3 encode --help)\n")
        self.l3("encode", "--", "-d.png", "d.l3", cwd=self.folder)
        self.assertIn(b"no option --oops (", self.l3("encode", "--oops", code=USAGE).stderr)

    def test_help_of_a_command(self) -> None:
        for words in (["help"], ["help", "help"], ["help", "--help"]):
            self.assertEqual(self.l3(*words).stdout, self.l3("--help").stdout)
        self.assertEqual(self.l3("help", "convert").stdout, self.l3("convert", "--help").stdout)
        self.assertIn(b"did you mean convert?", self.l3("help", "convrt", code=USAGE).stderr)

    def test_formats_in_help(self) -> None:
        for name in (b"PNG", b"PAM", b"JPEG", b"WebP", b"BMP", b"GIF", b"PSD", b"TGA"):
            self.assertIn(name, self.l3("encode", "--help").stdout)

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
        self.assertIn(b"Exit status", self.l3("--help").stdout)
        self.assertRegex(self.l3("--version").stdout, rb"^l3 \d+\.\d+\.\d+\n"
                         rb"commit: ([0-9a-f]{40}|unknown)\nprocessor targets: (\w+, )*\w+ \(in use: \w+\)\n"
                         rb"CUDA: (yes|no)\n$")
        for command in ("encode", "decode", "info", "verify", "convert", "merge", "export", "ls", "cat", "bench",
                        "completion", "manual"):
            text = self.l3(command, "--help").stdout.decode()
            self.assertRegex(text, "Examples?:")
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

    def test_l3_file_in_place_of_an_image(self) -> None:
        image = self.encoded("a.png", png(4, 4))
        said = self.l3("encode", image, self.folder / "b.l3", code=FAILED).stderr
        self.assertEqual(said, f"l3: {image}: offset 0: this is already an L3 file\n".encode())

    def test_files_that_cannot_be_opened(self) -> None:
        source = self.write("a.png", png(4, 4))
        said = self.l3("encode", self.folder / "none.png", "x.l3", code=FAILED).stderr.decode()
        self.assertRegex(said, r"none\.png: cannot open: No such file or directory\n$")
        said = self.l3("encode", source, self.folder / "none" / "x.l3", code=FAILED).stderr.decode()
        self.assertRegex(said, r"x\.l3: cannot create: No such file or directory\n$")
        self.l3("encode", source, self.folder, code=FAILED)
        self.l3("convert", self.folder / "none", self.folder / "out", code=FAILED)
        self.l3("bench", self.folder / "none", code=FAILED)

    def test_messages_are_one_line(self) -> None:
        said = self.l3("encode", self.write("a\nb.png", b"x"), "x.l3", code=FAILED).stderr
        self.assertIn(rb"a\x0Ab.png: offset 0", said)

    def test_cuda(self) -> None:
        image = self.encoded("a.png", png(4, 4))
        wanted, written = self.folder / "cpu.ppm", self.folder / "cuda.ppm"
        self.l3("decode", image, wanted)
        done = subprocess.run([l3_command(), "decode", image, written, "--device", "cuda"],
                              capture_output=True, timeout=60, check=False)
        if done.returncode == 0:
            self.assertEqual(written.read_bytes(), wanted.read_bytes())
        else:
            self.assertEqual(done.returncode, FAILED)
            self.assertRegex(done.stderr, rb"^l3: decode: --device cuda: (this l3 was built without CUDA|"
                                          rb"no usable CUDA device: .+); use --device cpu\n$")
            self.assertFalse(written.exists())

    def test_unknown_processor(self) -> None:
        self.l3("info", self.write("a.png", png(4, 4)), code=USAGE, env={**os.environ, "L3_CPU": "abacus"})

    def test_notes_and_quiet(self) -> None:
        source = self.write("a.png", png(4, 4) + b"more")
        self.assertIn(b"note: 4 bytes after IEND", self.l3("encode", source, self.folder / "a.l3").stderr)
        self.assertEqual(self.l3("encode", "-q", source, self.folder / "a.l3").stderr, b"")

    def test_info(self) -> None:
        image = self.encoded("a.png", png(300, 200, before=[(b"gAMA", bytes(4)), (b"tEXt", b"k\0v")]), "--tile", 64,
                             "--method", "fast")
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

    def test_info_reads_no_pixels(self) -> None:
        chunks = [(b"PLTE", bytes(range(96))), (b"tRNS", b"\0\1"), (b"gAMA", bytes(4))]
        whole = png(50, 20, 8, 3, before=chunks, after=[(b"tEXt", b"k\0v")])
        broken = png(50, 20, 8, 3, before=chunks, after=[(b"tEXt", b"k\0v")], rows=[])  # no row of pixels
        told = [self.info(self.write("a.png", data)) for data in (whole, broken)]
        for key in ("width", "height", "bits", "colour", "palette_entries", "sections", "chunks", "raw_bytes"):
            self.assertEqual(told[0][key], told[1][key], key)
        self.l3("encode", self.folder / "a.png", self.folder / "a.l3", code=FAILED)

    def test_sizes(self) -> None:
        for method in ("fast", "dense"):
            image = self.encoded("a.png", png(300, 200), "--method", method)
            sizes = json.loads(self.l3("info", "--sizes", "--json", image).stdout)["sizes"]
            parts = ("head", "index", "model", "sections", "payloads")
            self.assertEqual(sum(sizes[part] for part in parts), image.stat().st_size)
            self.assertEqual(sizes["model"] > 0, method == "dense")
            self.assertIn(b"payloads", self.l3("info", "--sizes", image).stdout)


class Pipes(CommandTest):
    def test_stdin_to_stdout(self) -> None:
        source = pgm(90, 70)
        image = self.l3("encode", "-", "-", input=source).stdout
        self.assertEqual(self.l3("decode", "-", "-", "--format", "pgm", input=image).stdout, source)
        self.l3("verify", "-", input=image)
        self.l3("verify", "-", input=image[:-1], code=FAILED)
        self.assertEqual(json.loads(self.l3("info", "-", "--json", input=image).stdout)["file"], "stdin")
        self.assertRegex(self.l3("encode", "-", "-", input=b"x", code=FAILED).stderr, rb"^l3: stdin: offset 0: ")

    def test_png_to_stdout(self) -> None:
        image = self.encoded("a.png", png(30, 20, after=[(b"tEXt", b"k\0v")]))
        self.l3("decode", image, self.folder / "b.png")
        self.assertEqual(self.l3("decode", image, "-").stdout, (self.folder / "b.png").read_bytes())
        deep = self.l3("encode", "-", "-", input=b"P5\n2 1\n1023\n" + bytes(4)).stdout
        self.assertIn(b"write .pam", self.l3("decode", "-", "-", input=deep, code=FAILED).stderr)

    def test_readers_that_leave_at_once(self) -> None:
        # Some of it is more than a buffer holds, so that it is not the last flush that meets the closed pipe.
        pictures = self.folder / "set"
        for i in range(3):
            self.write(f"src/{i}{'x' * 200}.png", png(4, 4, seed=i))
        self.l3("convert", "-q", self.folder / "src", pictures)
        many = self.encoded("many.png", png(4, 4, after=[(b"tEXt", b"k\0v")] * 2000))
        for words in (["--help"], ["help", "convert"], ["manual"], ["completion", "bash"], ["ls", pictures],
                      ["ls", "--json", pictures], ["info", many],
                      ["verify", "-v", pictures, many],
                      ["cat", pictures, f"0{'x' * 200}.png"], ["decode", many, "-"]):
            with self.subTest(words=words[0]):
                reading, writing = os.pipe()
                os.close(reading)
                done = subprocess.run([l3_command(), *map(str, words)], stdout=writing, stderr=subprocess.PIPE,
                                      timeout=60)
                os.close(writing)
                self.assertEqual((done.stderr, done.returncode), (b"", FAILED))

    def test_reader_that_leaves(self) -> None:
        image = self.encoded("a.png", png(1000, 1000), "--method", "fast")
        process = subprocess.Popen([l3_command(), "decode", image, "-", "--format", "ppm"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        process.stdout.read(10)
        process.stdout.close()
        self.assertEqual((process.stderr.read(), process.wait(30)), (b"", FAILED))
        process.stderr.close()

    def test_full_devices(self) -> None:
        source = self.write("a.png", png(4, 4))
        with open("/dev/full", "wb") as full:
            for words in (["encode", source, "-"], ["info", source], ["encode", source, "/dev/full"]):
                result = subprocess.run([l3_command(), *words], stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(result.returncode, FAILED)
                self.assertIn(b"No space left on device", result.stderr)
        self.l3("encode", source, "/dev/null")
        self.assertTrue(Path("/dev/null").is_char_device())


if __name__ == "__main__":
    main()
