#!/usr/bin/env python3
"""Makes the default models from folders of images, by crops as small as the images that the models are for.

    make.py L3 OUT FOLDER...          OUT/01.l3model to OUT/04.l3model, for 1 to 4 channels of 8 bits; L3 is the command
    make.py --icons L3 OUT FOLDER...  OUT/05.l3model to OUT/08.l3model, the same for drawings, from icons with alpha

Only images of 8 bits without a palette are looked at. Those of fewer channels than they have are made from them: gray
is green, and alpha is left out or kept. Of icons, gray is also their alpha alone, and their green before black; their
colours alone are those before white. The crops depend on the images and their names alone.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

EDGES = (16, 24, 32, 48, 64, 96, 128)
CROPS = 24  # of an image, at most
EFFORT = "5"
TUPLES = ("GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA")
# For each number of channels: which samples of an image of 1 to 4 channels it takes, where it can.
TAKEN = {1: {1: [0], 2: [0], 3: [1], 4: [1]}, 2: {2: [0, 1], 4: [1, 3]}, 3: {3: [0, 1, 2], 4: [0, 1, 2]},
         4: {4: [0, 1, 2, 3]}}


def read_pam(path: Path) -> tuple[int, int, int, bytes]:
    head, _, samples = path.read_bytes().partition(b"ENDHDR\n")
    fields = dict(line.split(None, 1) for line in head.decode().splitlines()[1:] if " " in line)
    return int(fields["WIDTH"]), int(fields["HEIGHT"]), int(fields["DEPTH"]), samples


def write_pam(path: Path, width: int, height: int, channels: int, samples: bytes) -> None:
    head = f"P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {channels}\nMAXVAL 255\nTUPLTYPE {TUPLES[channels - 1]}\n"
    path.write_bytes(head.encode() + b"ENDHDR\n" + samples)


def places(name: str, width: int, height: int) -> list[tuple[int, int, int, int]]:
    """Column, row, width and height of the crops of an image."""
    if width <= EDGES[-1] and height <= EDGES[-1]:
        return [(0, 0, width, height)]
    result = []
    for i in range(min(CROPS, max(1, width * height // 4096))):
        drawn = hashlib.sha256(f"{name} {i}".encode()).digest()
        w, h = (min(EDGES[drawn[0] % len(EDGES)], edge) for edge in (width, height))
        result.append((int.from_bytes(drawn[1:5], "little") % (width - w + 1),
                       int.from_bytes(drawn[5:9], "little") % (height - h + 1), w, h))
    return result


def of_photograph(channels: int, samples: bytes) -> Iterator[tuple[str, int, bytes]]:
    """A name, the number of channels, and the samples of each image that is made from one."""
    for wanted, of in TAKEN.items():
        if channels in of:
            yield "", wanted, bytes(samples[i + c] for i in range(0, len(samples), channels) for c in of[channels])


def of_icon(channels: int, samples: bytes) -> Iterator[tuple[str, int, bytes]]:
    if channels != 4:
        return
    green, alpha = samples[1::4], samples[3::4]
    if len(set(alpha)) > 2:
        yield "a", 1, alpha
    yield "g", 1, bytes(g * a // 255 for g, a in zip(green, alpha, strict=True))
    yield "", 2, bytes(value for pixel in zip(green, alpha, strict=True) for value in pixel)
    yield "", 3, bytes((samples[i + c] * samples[i + 3] + 255 * (255 - samples[i + 3]) + 127) // 255
                       for i in range(0, len(samples), 4) for c in range(3))
    yield "", 4, samples


def crop_all(command: str, folder: Path, out: Path, parts_of: Callable) -> None:
    for source in sorted(folder.rglob("*.png")):
        with tempfile.TemporaryDirectory() as scratch:
            told = subprocess.run([command, "info", "--json", source], check=True, capture_output=True).stdout
            info = json.loads(told)
            if info["bits"] != 8 or info["colour"] == "palette":
                continue
            packed, pam = Path(scratch, "image.l3"), Path(scratch, "image.pam")
            subprocess.run([command, "encode", "-q", "--no-verify", "--method", "fast", source, packed], check=True)
            subprocess.run([command, "decode", "-q", packed, pam], check=True)
            width, height, channels, samples = read_pam(pam)
        for i, (x, y, w, h) in enumerate(places(source.name, width, height)):
            rows = [samples[((y + k) * width + x) * channels:][: w * channels] for k in range(h)]
            for which, wanted, part in parts_of(channels, b"".join(rows)):
                name = f"{folder.name}-{source.stem}-{i}{which}.pam"
                write_pam(out / str(wanted) / name, w, h, wanted, part)


def main() -> int:
    icons = sys.argv[1] == "--icons"
    command, out, *folders = sys.argv[1 + icons :]
    with tempfile.TemporaryDirectory() as scratch:
        for channels in TAKEN:
            Path(scratch, str(channels)).mkdir()
        for folder in folders:
            crop_all(command, Path(folder), Path(scratch), of_icon if icons else of_photograph)
        for channels in TAKEN:
            subprocess.run([command, "train", "--complete", "--effort", EFFORT, "--max-images", "100000",
                            Path(scratch, str(channels)), Path(out, f"{channels + 4 * icons:02}.l3model")], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
