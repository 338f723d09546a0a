"""Shared by the tests: images, PNG files, and data sets, which the l3 command makes (L3_COMMAND)."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

L3_COMMAND = os.environ.get("L3_COMMAND", "")
NEEDS_COMMAND = "L3_COMMAND is not set: it names the l3 command, which makes the data sets of these tests"
_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}


def picture(seed: int, height: int = 24, width: int = 32, channels: int = 3, bits: int = 8) -> np.ndarray:
    """A smooth image with a little noise, different for each seed."""
    random = np.random.default_rng(seed)
    y, x, c = np.ogrid[:height, :width, :channels]
    waves = np.sin(x / 5 + seed) + np.cos(y / 7 - seed * 2) + c / 3
    noisy = (waves + 3) / 7 + random.normal(0, 0.02, (height, width, channels))
    most = 2**bits - 1
    return np.clip(np.round(noisy * most), 0, most).astype(np.uint16 if bits > 8 else np.uint8)


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(pixels: np.ndarray, bits: int, colour: int, before: bytes = b"", after: bytes = b"") -> bytes:
    """A PNG of pixels of shape (height, width, channels), with chunks before and after its IDAT."""
    height, width, channels = pixels.shape
    if bits == 16:
        rows = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    elif bits == 8:
        rows = pixels.reshape(height, -1)
    else:
        digits = np.unpackbits(pixels.reshape(height, -1, 1), axis=2)[:, :, 8 - bits:]
        rows = np.packbits(digits.reshape(height, -1), axis=1)
    packed = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), 1)
    return (b"\x89PNG\r\n\x1a\n"
            + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)) + before
            + png_chunk(b"IDAT", packed) + after + png_chunk(b"IEND", b""))


def write_png(path: Path, pixels: np.ndarray, palette: np.ndarray | None = None) -> None:
    """Writes a PNG of 8 or 16 bits with 1 to 4 channels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = b"" if palette is None else png_chunk(b"PLTE", palette.tobytes())
    path.write_bytes(png_of(pixels, 8 * pixels.itemsize, _COLOURS[pixels.shape[2]] if palette is None else 3, before))


def convert(source: Path, target: Path, *options: str) -> None:
    subprocess.run([L3_COMMAND, "convert", "-q", *options, str(source), str(target)], check=True)


class Folder(unittest.TestCase):
    """A test with its own folder."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="l3-python-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)


class Sets(Folder):
    """Tests with data sets, which are made once per class."""

    COUNT = 23
    _made: dict[str, Path] = {}
    shared: Path

    @classmethod
    def setUpClass(cls) -> None:
        if not L3_COMMAND:
            raise unittest.SkipTest(NEEDS_COMMAND)
        cls.shared = Path(tempfile.mkdtemp(prefix="l3-python-sets-"))
        cls._made = {}

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(cls.shared, ignore_errors=True)

    def _make(self, name: str, draw: Callable[[Path], list[str]]) -> str:
        if name not in self._made:
            options = draw(self.shared / (name + "-png"))
            convert(self.shared / (name + "-png"), self.shared / name, *options)
            self._made[name] = self.shared / name
        return str(self._made[name])

    def classes_set(self) -> str:
        """COUNT images of one size in two classes and several shards. The digits of a name are its number."""
        def draw(png: Path) -> list[str]:
            for i in range(self.COUNT):
                write_png(png / ("cats" if i % 2 else "dogs") / f"{i:03}.png", picture(i))
            return ["--shard-size", "16K"]
        return self._make("classes", draw)

    def pairs_set(self) -> str:
        """Ten images of 16 bits, each with a label map."""
        def draw(png: Path) -> list[str]:
            palette = np.arange(24, dtype=np.uint8).reshape(8, 3) * 10
            for i in range(10):
                write_png(png / "images" / f"{i}.png", picture(i, bits=16))
                write_png(png / "maps" / f"{i}.png", picture(i, channels=1) // 32, palette)
            return ["--pair", "image=images/{}.png", "--pair", "labels=maps/{}.png"]
        return self._make("pairs", draw)

    def broken_set(self, *names: str) -> str:
        """A copy of classes_set in which the bytes of these samples are damaged."""
        import l3
        copy = self.folder / "broken"
        shutil.copytree(self.classes_set(), copy)
        data = l3.Dataset(copy)
        for name in names:
            sample = data[name]
            shard = sorted(copy.glob("*.l3s"))[sample.shard]
            whole = bytearray(shard.read_bytes())
            at = whole.find(data[name].bytes())
            whole[at + sample.size - 5] ^= 0x55
            shard.write_bytes(whole)
        return str(copy)


def number_of(name: str) -> int:
    """The image of a sample of classes_set."""
    return int(name.split("/")[-1].split(".")[0])


def python(code: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The environment for another interpreter that imports the same package."""
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120,
                          env=child_environment(), **options)


def child_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
