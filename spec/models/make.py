#!/usr/bin/env python3
"""Makes the default models from folders of images, by crops as small as the images that the models are for.

    make.py L3 OUT FOLDER...     L3 is the command; OUT/01.l3model to OUT/04.l3model, for 1 to 4 channels of 8 bits

Only images of 8 bits without a palette are looked at. Those of fewer channels than they have are made from them: gray
is green, and alpha is left out or kept. The crops depend on the images and their names alone.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
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


def crop_all(command: str, folder: Path, out: Path) -> None:
    for source in sorted(folder.rglob("*.png")):
        with tempfile.TemporaryDirectory() as scratch:
            told = subprocess.run([command, "info", "--json", source], check=True, capture_output=True).stdout
            info = json.loads(told)
            if info["bits"] != 8 or info["colour"] == "palette":
                continue
            packed, pam = Path(scratch, "image.l3"), Path(scratch, "image.pam")
            subprocess.run([command, "encode", "-q", "--method", "fast", source, packed], check=True)
            subprocess.run([command, "decode", "-q", packed, pam], check=True)
            width, height, channels, samples = read_pam(pam)
        for i, (x, y, w, h) in enumerate(places(source.name, width, height)):
            rows = [samples[((y + k) * width + x) * channels:][: w * channels] for k in range(h)]
            crop = b"".join(rows)
            for wanted, of in TAKEN.items():
                if channels not in of:
                    continue
                part = bytearray(w * h * wanted)
                for to, c in enumerate(of[channels]):
                    part[to::wanted] = crop[c::channels]
                name = f"{folder.name}-{source.stem}-{i}.pam"
                write_pam(out / str(wanted) / name, w, h, wanted, bytes(part))


def main() -> int:
    command, out, *folders = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        for channels in TAKEN:
            Path(scratch, str(channels)).mkdir()
        for folder in folders:
            crop_all(command, Path(folder), Path(scratch))
        for channels in TAKEN:
            subprocess.run([command, "train", "--complete", "--effort", EFFORT, "--max-images", "100000",
                            Path(scratch, str(channels)), Path(out, f"{channels:02}.l3model")], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
