#!/usr/bin/env python3
"""Tests with real images: converts, verifies and compares every PNG below the folder in L3_CORPUS.

Usage: corpus_test.py --l3 COMMAND --work FOLDER [--most-pixels N]. Without L3_CORPUS it exits with 77, which ctest
counts as skipped. --most-pixels leaves out larger images, which take a command with sanitizers long.
PngSuite's files are compared with a separate PNG reader in this file, so that libpng is not compared with itself.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import subprocess
import sys
import time
import unittest
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "spec"))
import l3_decode

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
ORACLE_PIXELS = 40_000  # larger images would take the oracle too long

COMMAND = Path()
WORK = Path()
CORPUS = Path()


def l3(*arguments: object, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != expect:
        raise AssertionError(f"l3 {arguments}: exit status {done.returncode}\n{done.stderr}")
    return done


def unfilter(data: bytes, rows: int, row_bytes: int, step: int) -> list[bytes]:
    result = []
    above = bytes(row_bytes)
    for y in range(rows):
        kind, row = data[y * (row_bytes + 1)], bytearray(data[y * (row_bytes + 1) + 1 : (y + 1) * (row_bytes + 1)])
        for i in range(row_bytes):
            a = row[i - step] if i >= step else 0
            b = above[i]
            c = above[i - step] if i >= step else 0
            if kind == 4:
                p = a + b - c
                guess = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            else:
                guess = (0, a, b, (a + b) // 2)[kind]
            row[i] = (row[i] + guess) & 255
        above = bytes(row)
        result.append(above)
    return result


def samples(row: bytes, count: int, bits: int) -> list[int]:
    if bits == 16:
        return list(struct.unpack(f">{count}H", row[: 2 * count]))
    return [row[i * bits // 8] >> (8 - bits - i * bits % 8) & ((1 << bits) - 1) for i in range(count)]


def read_png(path: Path) -> tuple[tuple[int, ...], dict[tuple[int, int], tuple[int, ...]], list[tuple[bytes, bytes]]]:
    """Size, depth and colour type; the pixels; all chunks but IHDR, IDAT and IEND, sorted."""
    data = path.read_bytes()
    at, idat, chunks = 8, b"", []
    header: tuple[int, ...] = ()
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        at += 12 + length
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", body)
        elif kind == b"IDAT":
            idat += body
        elif kind != b"IEND":
            chunks.append((kind, body))
    width, height, bits, colour, _, _, interlace = header
    channels = CHANNELS[colour]
    step = max(1, channels * bits // 8)
    plain = zlib.decompress(idat)
    pixels = {}
    at = 0
    for x0, y0, dx, dy in ADAM7 if interlace else [(0, 0, 1, 1)]:
        columns, rows = (width - x0 + dx - 1) // dx, (height - y0 + dy - 1) // dy
        if columns <= 0 or rows <= 0:
            continue
        row_bytes = (columns * channels * bits + 7) // 8
        part = plain[at : at + rows * (row_bytes + 1)]
        at += len(part)
        for j, row in enumerate(unfilter(part, rows, row_bytes, step)):
            values = samples(row, columns * channels, bits)
            for i in range(columns):
                pixels[x0 + i * dx, y0 + j * dy] = tuple(values[i * channels : (i + 1) * channels])
    return header[:4], pixels, sorted(chunks)


def pixels_of(path: Path) -> int:
    with path.open("rb") as file:
        start = file.read(24)
    if len(start) < 24:
        return 0
    width, height = struct.unpack_from(">II", start, 16)
    return int(width * height)


def copy_small_images(source: Path, to: Path, most_pixels: int) -> None:
    """Of images whose header lies about their size those that claim to be small."""
    for path in source.rglob("*.png"):
        if pixels_of(path) <= most_pixels:
            copy = to / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


class Corpus(unittest.TestCase):
    converted = Path()

    @classmethod
    def setUpClass(cls) -> None:
        cls.converted = WORK / "l3"
        cls.outcome = subprocess.run([COMMAND, "convert", "--files", CORPUS, cls.converted, "--on-error", "skip"],
                                     capture_output=True, text=True, check=False)

    def test_only_the_corrupt_files_of_pngsuite_are_refused_each_by_name(self) -> None:
        corrupt = sorted(p.name for p in (CORPUS / "pngsuite").glob("x*.png"))
        self.assertEqual(self.outcome.returncode, 1 if corrupt else 0, self.outcome.stderr)
        for name in corrupt:
            lines = [line for line in self.outcome.stderr.splitlines() if name in line]
            self.assertTrue(any("offset" in line for line in lines), f"{name}: {lines}")
            self.assertFalse((self.converted / "pngsuite" / name).with_suffix(".l3").exists())
        sources = {p.relative_to(CORPUS).with_suffix("") for p in CORPUS.rglob("*.png") if p.name not in corrupt}
        results = {p.relative_to(self.converted).with_suffix("") for p in self.converted.rglob("*.l3")}
        self.assertEqual(sources, results)
        self.assertGreater(len(results), 0)

    def test_every_file_is_the_same_image_as_its_source(self) -> None:
        corrupt = sorted(p.name for p in (CORPUS / "pngsuite").glob("x*.png"))
        done = l3("verify", self.converted, "--against", CORPUS, expect=1 if corrupt else 0)
        # Sources without a counterpart are named; there must be no other complaint.
        complaints = [line for line in done.stderr.splitlines() if line.startswith("l3: ")]  # the others are progress
        self.assertEqual(len(complaints), len(corrupt), done.stderr)
        for name in corrupt:
            self.assertIn(name, done.stderr)

    def test_pngsuite_comes_back_by_an_independent_reader(self) -> None:
        for path in sorted((self.converted / "pngsuite").glob("*.l3")):
            back = WORK / "back.png"
            l3("decode", path, back)
            with self.subTest(path.name):
                source = read_png(CORPUS / "pngsuite" / f"{path.stem}.png")
                self.assertEqual(source, read_png(back))

    def test_the_oracle_decodes_small_files_to_the_same_pam(self) -> None:
        compared = 0
        started = time.monotonic()
        for path in sorted(self.converted.rglob("*.l3")):
            data = path.read_bytes()
            width, height = struct.unpack_from("<II", data, 20)
            if width * height > ORACLE_PIXELS or time.monotonic() - started > 60:
                continue
            pam = WORK / "back.pam"
            l3("decode", path, pam, "--palette", "indices")
            with self.subTest(path.name):
                image = l3_decode.decode(data)
                self.assertEqual(pam.read_bytes().split(b"ENDHDR\n", 1)[1], bytes(image.samples))
                l3_decode.verify(data)
            compared += 1
        self.assertGreater(compared, 0)

    def test_photographs_and_street_scenes_are_no_larger_than_the_png_files(self) -> None:
        sources = [p for c in ("photo8", "street") for p in (CORPUS / c).rglob("*.png")]
        if not sources:
            self.skipTest("no photographs")
        png = sum(p.stat().st_size for p in sources)
        ours = sum((self.converted / p.relative_to(CORPUS)).with_suffix(".l3").stat().st_size for p in sources)
        print(f"photo8 + street: {ours} bytes, {ours / png:.4f} of the PNG files")
        self.assertLessEqual(ours, png)


def main() -> None:
    global COMMAND, WORK, CORPUS
    parser = argparse.ArgumentParser()
    parser.add_argument("--l3", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--most-pixels", type=int)
    options = parser.parse_args()
    if not os.environ.get("L3_CORPUS"):
        print("L3_CORPUS is not set: skipped")
        sys.exit(77)
    COMMAND, WORK, CORPUS = options.l3.resolve(), options.work.resolve(), Path(os.environ["L3_CORPUS"]).resolve()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    if options.most_pixels is not None:
        copy_small_images(CORPUS, WORK / "small", options.most_pixels)
        CORPUS = WORK / "small"
    result = unittest.main(argv=["corpus_test"], exit=False).result
    shutil.rmtree(WORK, ignore_errors=True)
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
