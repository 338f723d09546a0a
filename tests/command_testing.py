"""Shared by the tests of the l3 command: drawn PNG files and their parts; a folder and a runner for each test."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

_l3 = "l3"

DONE, FAILED, USAGE = 0, 1, 2
APPLE_DOUBLE = b"\0\5\x16\7\0\2\0\0Mac OS X        " + bytes(96)  # how ._x.png begins
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
        kind, _, _, units, _ = struct.unpack_from("<HHIII", data, 64 + 16 * i)
        if kind == wanted:
            return 16 * units
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
        result = subprocess.run([_l3, *map(str, words)], capture_output=True, timeout=300, **options)
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


def l3_command() -> str:
    """The command to test."""
    return _l3


def main() -> None:
    global _l3
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--l3", required=True, help="the command to test")
    options, rest = parser.parse_known_args()
    _l3 = str(Path(options.l3).resolve())
    unittest.main(argv=[sys.argv[0], *rest])
