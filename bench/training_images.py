"""What the benchmarks of training input share: photographs, an ImageNet-like set made of them, and their record."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import math
import multiprocessing
import os
import platform
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SHORTEST, LONGEST = 250, 800  # of the longer side
QUALITY = 90  # of the JPEG files
LEAST_REDUCTION = 1.1  # so that no image has the noise of single sensor cells, as in ImageNet


def say(text: str) -> None:
    print(f"{Path(sys.argv[0]).stem}: {text}", file=sys.stderr, flush=True)


def photographs(folders: Sequence[Path], least: int = 300) -> list[Path]:
    """The RGB images of 8 bits with no side below `least`."""
    found = []
    for path in sorted(path for folder in folders for path in folder.rglob("*.png")):
        with Image.open(path) as image:
            if image.mode == "RGB" and min(image.size) >= least:
                found.append(path)
    return found


@dataclass(frozen=True)
class Piece:
    """An image of the set: a part of a photograph, reduced."""

    number: int
    source: int  # of the photographs; also its class
    box: tuple[float, float, float, float]
    width: int
    height: int
    offset: int  # in the raw file

    @property
    def name(self) -> str:
        return f"{self.source:03}/{self.number:06}"

    @property
    def size(self) -> int:
        return self.width * self.height * 3


def planned(sizes: Sequence[tuple[int, int]], count: int, seed: int = 1) -> list[Piece]:
    """Sizes are around 500 x 375, in both orientations, with a logarithmic normal distribution."""
    draw = random.Random(seed)
    pieces: list[Piece] = []
    offset = 0
    while len(pieces) < count:
        longer = min(max(draw.lognormvariate(math.log(500), 0.25), SHORTEST), LONGEST)
        aspect = min(max(draw.lognormvariate(math.log(4 / 3), 0.15), 1.0), 2.0)
        edges = round(longer), round(longer / aspect)
        width, height = edges if draw.random() < 0.7 else edges[::-1]
        fitting = [i for i, (w, h) in enumerate(sizes) if min(w / width, h / height) >= LEAST_REDUCTION]
        if not fitting:
            continue
        source = draw.choice(fitting)
        most = min(sizes[source][0] / width, sizes[source][1] / height)
        reduction = math.exp(draw.uniform(math.log(LEAST_REDUCTION), math.log(most)))
        left = draw.uniform(0, sizes[source][0] - width * reduction)
        top = draw.uniform(0, sizes[source][1] - height * reduction)
        box = (left, top, left + width * reduction, top + height * reduction)
        pieces.append(Piece(len(pieces), source, box, width, height, offset))
        offset += pieces[-1].size
    return pieces


# Files of images: how Pillow writes each kind.
SAVED: dict[str, dict[str, Any]] = {"png": {}, "jpeg": {"quality": QUALITY}, "webp": {"lossless": True}}
# Data sets of l3: from which files, and how. Those named "small" are what a training on crops needs of an image.
CONVERTED = {
    "l3-fast": ("png", ["--method", "fast"]),
    "l3-dense": ("png", ["--method", "dense"]),
    "l3-fast-small": ("jpeg", ["--method", "fast", "--resize", "shorter=256"]),
    "l3-dense-small": ("jpeg", ["--method", "dense", "--resize", "shorter=256"]),
}


class Folder:
    """Where the set is kept: a folder for each of SAVED, with class folders, raw.bin with raw.npy, and CONVERTED."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.raw = path / "raw.bin"
        self.index = path / "raw.npy"  # a row for each image: offset, height, width, class

    def of(self, form: str) -> Path:
        return self.raw if form == "raw" else self.path / form

    def sizes(self) -> dict[str, int]:
        """Bytes of each form."""
        found = {}
        for form in (*SAVED, "raw", *CONVERTED):
            path = self.of(form)
            files = [self.raw, self.index] if form == "raw" else path.rglob("*")
            if path.exists():
                found[form] = sum(file.stat().st_size for file in files if file.is_file())
        return found

    def make(self, sources: Sequence[Path], count: int) -> dict[str, Any]:
        """Makes the files of SAVED and the raw file, unless they are there. Returns what is known about them."""
        wanted = {"count": count, "sources": [f"{path.parent.name}/{path.name}" for path in sources]}
        head = self.path / "made.json"
        if head.exists():
            made: dict[str, Any] = json.loads(head.read_text())
            if sources and any(made[key] != wanted[key] for key in wanted):
                sys.exit(f"{self.path} has a set of other photographs or another count: name another folder")
            return made
        if not sources:
            sys.exit(f"{self.path} has no images yet: name folders of photographs")
        sizes = []
        for path in sources:
            with Image.open(path) as image:
                sizes.append(image.size)
        pieces = planned(sizes, count)
        for piece in pieces:
            for form in SAVED:
                (self.of(form) / piece.name).parent.mkdir(parents=True, exist_ok=True)
        with self.raw.open("wb") as file:
            file.truncate(sum(piece.size for piece in pieces))
        np.save(self.index, np.array([(p.offset, p.height, p.width, p.source) for p in pieces], np.int64))
        # By source, so that each process opens a photograph once.
        parts = [(self, path, [p for p in pieces if p.source == i]) for i, path in enumerate(sources)]
        with multiprocessing.get_context("spawn").Pool(len(os.sched_getaffinity(0))) as pool:
            done = said = 0
            for made_now in pool.imap_unordered(make_part, parts):
                done += made_now
                if done >= said + count / 10 or done == count:
                    said = done
                    say(f"{done} of {count} images")
        made = {**wanted, "classes": len({p.source for p in pieces}), "pixels": sum(p.size for p in pieces) // 3}
        head.write_text(json.dumps(made, indent=1) + "\n")
        return made

    def convert(self, command: str, effort: int) -> None:
        """Makes the data sets of l3, unless they are there."""
        for form, (source, how) in CONVERTED.items():
            target = self.of(form)
            if not target.exists() or (target / ".l3-convert").exists():
                options = [*how, *(["--effort", str(effort)] if "dense" in how else [])]
                say(f"l3 convert {' '.join(options)}")
                resume = ["--resume"] if target.exists() else []
                subprocess.run([command, "convert", "-q", *options, *resume, self.of(source), target], check=True)


def make_part(part: tuple[Folder, Path, list[Piece]]) -> int:
    folder, source, pieces = part
    with Image.open(source) as image:
        photograph = image.convert("RGB")
    file = os.open(folder.raw, os.O_WRONLY)
    for piece in pieces:
        reduced = photograph.resize((piece.width, piece.height), Image.Resampling.BICUBIC, box=piece.box)
        for form, options in SAVED.items():
            reduced.save(folder.of(form) / f"{piece.name}.{form}", **options)
        os.pwrite(file, reduced.tobytes(), piece.offset)
    os.close(file)
    return len(pieces)


def versions(*packages: str) -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def record_of(script: str, **more: Any) -> dict[str, Any]:
    """The beginning of a record: machine, commit and command, without the folders of this machine."""
    model = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    describe = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"],
                              capture_output=True, text=True, check=False)
    words = [word if "/" not in word else "FOLDER" for word in sys.argv[1:]]
    return {"date": datetime.date.today().isoformat(), "machine": model[0] if model else platform.machine(),
            "processors": len(os.sched_getaffinity(0)), "commit": describe.stdout.strip() or "unknown",
            "command": " ".join([f"bench/{script}", *words]), **more}
