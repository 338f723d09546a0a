#!/usr/bin/env python3
"""Draws the small set of PNG files that `./run demo` converts: photograph-like, depth, labels, alpha, screen, gray.

Usage: draw_demo.py FOLDER. Needs only Python's standard library, and draws the same files every time.
"""

from __future__ import annotations

import math
import random
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

GRAY, RGB, PALETTE, RGBA = 0, 2, 3, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, RGBA: 4}

Pixel = tuple[int, ...]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def filtered(row: bytes, above: bytes, step: int) -> bytes:
    """The row under the PNG filter with the least sum of absolute differences, as libpng chooses."""
    left = bytes(step) + row[:-step] if len(row) > step else bytes(len(row))
    candidates = [
        row,
        bytes((a - b) & 255 for a, b in zip(row, left)),  # noqa: B905 (Python 3.9)
        bytes((a - b) & 255 for a, b in zip(row, above)),  # noqa: B905 (Python 3.9)
        bytes((a - (b + c) // 2) & 255 for a, b, c in zip(row, left, above)),  # noqa: B905 (Python 3.9)
    ]
    best = min(range(4), key=lambda i: sum(min(v, 256 - v) for v in candidates[i]))
    return bytes([best]) + candidates[best]


def write_png(path: Path, size: tuple[int, int], colour: int, bits: int, pixel: Callable[[int, int], Pixel],
              extra: bytes = b"") -> None:
    width, height = size
    step = max(1, CHANNELS[colour] * bits // 8)
    above = bytes(width * CHANNELS[colour] * bits // 8)
    rows = []
    for y in range(height):
        samples = [s for x in range(width) for s in pixel(x, y)]
        row = struct.pack(f">{len(samples)}H", *samples) if bits == 16 else bytes(samples)
        rows.append(filtered(row, above, step) if colour != PALETTE else b"\0" + row)
        above = row
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra
                     + chunk(b"IDAT", zlib.compress(b"".join(rows), 6)) + chunk(b"IEND", b""))
    print(f"  {path.name}: {width}x{height}, {path.stat().st_size} bytes")


def clamp(value: float, most: int = 255) -> int:
    return max(0, min(most, round(value)))


def scene(seed: int, noise: float) -> Callable[[int, int], Pixel]:
    """Soft light, a few shapes with edges, and sensor noise that the three channels share in part."""
    rng = random.Random(seed)
    shapes = [(rng.uniform(0, 640), rng.uniform(0, 480), rng.uniform(20, 140), rng.uniform(-60, 60)) for _ in range(9)]
    waves = [
        (rng.uniform(0.005, 0.05), rng.uniform(0.005, 0.05), rng.uniform(0, 6), rng.uniform(3, 14)) for _ in range(5)
    ]

    def pixel(x: int, y: int) -> Pixel:
        light = 60 + 0.18 * y + sum(a * math.sin(u * x + v * y + p) for u, v, p, a in waves)
        for cx, cy, radius, step in shapes:
            if (x - cx) ** 2 + (y - cy) ** 2 < radius * radius:
                light += step
        shared = rng.gauss(0, noise)
        return (clamp(1.1 * light + shared + rng.gauss(0, noise / 3)), clamp(light + shared),
                clamp(0.8 * light + 25 + shared + rng.gauss(0, noise / 3)))

    return pixel


def depth(x: int, y: int) -> Pixel:
    if (x * 7 + y * 13) % 97 < 2:
        return (0,)
    if (x - 300) ** 2 + (y - 260) ** 2 < 120**2:
        return (clamp(9000 + 40 * math.hypot(x - 300, y - 260), 65535),)
    return (clamp(60000 - 80 * y + 3 * x, 65535),)


def labels(x: int, y: int) -> Pixel:
    horizon = 200 + 20 * math.sin(x / 90)
    if y < horizon:
        return (1 if (x // 120) % 2 else 2,)
    return (3 + (x // 160 + int(y > 360)) % 4,)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: draw_demo.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    print(f"drawing into {folder}")
    for i, noise in enumerate((1.0, 2.5, 4.0)):
        write_png(folder / f"scene_{i}.png", (640, 480), RGB, 8, scene(i, noise),
                  chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(b"tEXt", b"Title\0A drawn scene"))
    gray = scene(7, 2.0)
    write_png(folder / "gray.png", (640, 480), GRAY, 8, lambda x, y: gray(x, y)[1:2])
    write_png(folder / "depth.png", (640, 480), GRAY, 16, depth)
    colours = bytes(v for i in range(8) for v in (i * 36, 255 - i * 30, (i * 85) % 256))
    write_png(folder / "labels.png", (640, 480), PALETTE, 8, labels, chunk(b"PLTE", colours))
    cut = scene(3, 1.5)
    write_png(folder / "cutout.png", (400, 300), RGBA, 8,
              lambda x, y: (*cut(x, y), 255 if (x - 200) ** 2 + (y - 150) ** 2 < 120**2 else 0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
