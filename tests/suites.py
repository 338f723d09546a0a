#!/usr/bin/env python3
"""Compares what l3 reads with what Pillow reads, pixel by pixel, over folders of image suites.

    python3 tests/suites.py [--l3 COMMAND] FOLDER...

It runs each file below the folders through `l3 encode` and `l3 decode`, and opens it with Pillow too. If neither
can read a file, it is only counted. The exit status is 1 if a pixel differs and no rule in ALLOWED permits it.

Useful suites: Pillow's Tests/images, the tests of image-rs, libpng's contrib/testpngs, bmpsuite (after its
`make`), libwebp's test data. Needs Pillow and NumPy.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing.pool
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

# Where Pillow is known to read a file otherwise than the format says: a rule, and why. Keep it small.
ALLOWED = {
    "upper 8 bits": "Pillow has no colours of more than 8 bits and keeps the upper 8",
    "min-is-white of 16 bits": "Pillow does not turn such TIFFs over, libtiff does",
    "alpha of a 16-bit BMP": "Pillow leaves out alpha that the masks of 16-bit BMP name; bmpsuite's page shows it",
}

# Of an image: suites hold bombs, and arrays of them would not fit into memory.
MOST_PIXELS = 1 << 25

TRANSPOSED = {
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: a.swapaxes(0, 1)[:, ::-1],
    7: lambda a: a.swapaxes(0, 1)[::-1, ::-1],
    8: lambda a: a.swapaxes(0, 1)[::-1],
}


@dataclass
class Verdict:
    kind: str  # equal, allowed, wrong, refused, only_l3, neither
    path: Path
    text: str = ""


def read_pam(data: bytes) -> tuple[np.ndarray, int]:
    """Samples as rows, columns, channels, and the greatest that there may be."""
    head, _, body = data.partition(b"ENDHDR\n")
    fields = dict(line.split(b" ", 1) for line in head.splitlines()[1:] if b" " in line)
    width, height, depth, most = (int(fields[name]) for name in (b"WIDTH", b"HEIGHT", b"DEPTH", b"MAXVAL"))
    samples = np.frombuffer(body, np.uint8 if most < 256 else np.dtype(">u2"))
    return samples.reshape(height, width, depth).astype(np.int64), most


def reason_of(stderr: str, path: Path) -> str:
    lines = [line for line in stderr.splitlines() if line.strip() and "note:" not in line]
    text = lines[-1] if lines else "no reason"
    text = text.replace(str(path), "FILE").replace("l3: ", "", 1)
    return re.sub(r"\d+", "N", re.sub(r"^(error: )?FILE: (byte \d+: |at byte \d+: )?", "", text))


def read_with_l3(l3: str, path: Path, folder: Path) -> tuple[np.ndarray, int] | str:
    encoded = folder / "image.l3"
    encode = [l3, "encode", "-q", "--effort", "1", "--max-pixels", str(MOST_PIXELS), path, encoded]
    done = subprocess.run(encode, capture_output=True, check=False)
    if done.returncode != 0:
        return reason_of(done.stderr.decode(errors="replace"), path)
    decode = [l3, "decode", "-q", "--format", "pam", "--palette", "colours", encoded, "-"]
    done = subprocess.run(decode, capture_output=True, check=False)
    encoded.unlink()
    if done.returncode != 0:
        raise RuntimeError(f"{path}: encoded, but not decoded: {done.stderr.decode(errors='replace')}")
    return read_pam(done.stdout)


def read_with_pillow(path: Path) -> tuple[np.ndarray, int, Image.Image] | None:
    """Samples as above. None where Pillow refuses the file or has no such samples either."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(path)
            image.orientation = getattr(image, "tag_v2", {}).get(274, 1)
            image.photometric = getattr(image, "tag_v2", {}).get(262)
            image.load()
            shown = image
            if image.mode in ("P", "PA"):
                has_alpha = image.mode == "PA" or "transparency" in image.info
                shown = image.convert("RGBA" if has_alpha else "RGB")
            elif image.mode == "CMYK":
                shown = image.convert("RGB")
            elif image.mode == "1":
                shown = image.convert("L")
            samples = np.asarray(shown)
    except Exception:  # whatever Pillow's plugins raise
        return None
    if samples.dtype.kind == "f":
        return None
    if samples.ndim == 2:
        samples = samples[:, :, None]
    return samples.astype(np.int64), 65535 if image.mode.startswith("I") else 255, image


def widened(samples: np.ndarray, channels: int) -> np.ndarray:
    """Gray as RGB, and opaque alpha where there is none; the caller has scaled samples to 8 bits."""
    colours = samples[:, :, : (1 if samples.shape[2] < 3 else 3)]
    alpha = samples[:, :, -1:] if samples.shape[2] in (2, 4) else np.full_like(samples[:, :, :1], 255)
    if channels >= 3:
        colours = np.broadcast_to(colours, (*samples.shape[:2], 3))
    return np.concatenate([colours, alpha], axis=2)


def compare(ours: np.ndarray, most: int, theirs: np.ndarray, their_most: int, image: Image.Image) -> tuple[str, str]:
    if image.format == "TIFF" and image.orientation in TRANSPOSED:  # Pillow turns TIFFs upright
        ours = TRANSPOSED[image.orientation](ours)
    if ours.shape[:2] != theirs.shape[:2]:
        return "wrong", f"{ours.shape[1]} x {ours.shape[0]} pixels, not {theirs.shape[1]} x {theirs.shape[0]}"
    if their_most == 65535 and most > 255:
        if np.array_equal(ours, theirs):
            return "equal", ""
        if image.format == "TIFF" and image.photometric == 0 and np.array_equal(ours, most - theirs):
            return "allowed", "min-is-white of 16 bits"
        if np.array_equal((ours * 65535 + most // 2) // most, theirs):  # scaled, as Pillow does to some PNMs
            return "equal", ""
        return "wrong", "samples of 16 bits differ"
    rule = ""
    if their_most == 65535:
        theirs = theirs if theirs.max(initial=0) <= 255 else theirs >> 8
    if most > 255:
        rule = "upper 8 bits"
        ours = ours >> (most.bit_length() - 8)
    elif most != 255:
        ours = (ours * 255 * 2 + most) // (2 * most)
    channels = max(ours.shape[2], theirs.shape[2])
    a, b = widened(ours, channels), widened(theirs, channels)
    if np.array_equal(a, b):
        return ("allowed", rule) if rule else ("equal", "")
    if image.format == "BMP" and Path(image.filename).read_bytes()[28:30] == b"\x10\0" and theirs.shape[2] == 3:
        if np.array_equal(a[:, :, :3], b[:, :, :3]):
            return "allowed", "alpha of a 16-bit BMP"
    differing = np.argwhere((a != b).any(axis=2))
    y, x = differing[0]
    return "wrong", (
        f"{len(differing)} pixels differ by up to {np.abs(a - b).max()}, first ({x}, {y}): "
        f"{a[y, x].tolist()}, Pillow {b[y, x].tolist()}"
    )


def judge(l3: str, path: Path, folder: Path) -> Verdict:
    mine = Path(tempfile.mkdtemp(dir=folder))
    ours = read_with_l3(l3, path, mine)
    shutil.rmtree(mine)
    theirs = read_with_pillow(path)
    if isinstance(ours, str):
        return Verdict("neither" if theirs is None else "refused", path, ours)
    if theirs is None:
        return Verdict("only_l3", path)
    kind, text = compare(*ours, *theirs)
    return Verdict(kind, path, text)


def report(folder: Path, verdicts: list[Verdict], by_name: bool) -> int:
    counts = collections.Counter(v.kind for v in verdicts)
    print(
        f"{folder}: {counts['equal'] + counts['allowed']} equal ({counts['allowed']} by a stated rule), "
        f"{counts['wrong']} wrong, {counts['refused']} refused that Pillow reads, {counts['only_l3']} that l3 alone "
        f"reads, {counts['neither']} that neither reads"
    )
    for kind, title in (("refused", "refused"), ("allowed", "equal by rule")):
        groups: dict[str, list[Path]] = collections.defaultdict(list)
        for verdict in verdicts:
            if verdict.kind == kind:
                groups[verdict.text].append(verdict.path)
        for text, paths in sorted(groups.items(), key=lambda group: -len(group[1])):
            why = f" ({ALLOWED[text]})" if kind == "allowed" else ""
            print(f"  {title}: {len(paths)} x {text}{why}")
            for path in paths if by_name else []:
                print(f"      {path.relative_to(folder)}")
    for verdict in verdicts:
        if verdict.kind == "wrong":
            print(f"  WRONG {verdict.path.relative_to(folder)}: {verdict.text}")
    return counts["wrong"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--l3", default=shutil.which("l3") or "l3", help="the command (default: the one in PATH)")
    parser.add_argument("--names", action="store_true", help="name each file that is refused")
    parser.add_argument("-j", type=int, default=os.cpu_count(), help="files to look at side by side")
    options = parser.parse_args()
    Image.MAX_IMAGE_PIXELS = MOST_PIXELS // 2  # Pillow refuses from twice as many on
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # Pillow's libraries write there
    wrong = 0
    for folder in options.folders:
        files = sorted(path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
        if not files:
            print(f"{folder}: there are no files")
            return 2
        with tempfile.TemporaryDirectory() as work, multiprocessing.pool.ThreadPool(options.j) as pool:
            verdicts = pool.map(lambda path, work=work: judge(options.l3, path, Path(work)), files, chunksize=1)
        wrong += report(folder, verdicts, options.names)
    print(f"{wrong} files with wrong pixels")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
