#!/usr/bin/env python3
"""Compares the sizes of lossless coders on PNG files: L3, JPEG XL and WebP. Needs only the standard library.

    bench/sizes.py [options] DIR_OR_PNG...      folders are searched recursively

Peers (one that is not installed is listed as absent):

    cjxlE     `cjxl -d 0 -e E` (Debian: libjxl-tools)
    cwebpZ    `cwebp -lossless -exact -z Z`, 6 without a number (Debian: webp)
    newjxlE   the libjxl within the PyPI package imagecodecs (pip install imagecodecs numpy), of --imagecodecs PYTHON

If a peer cannot store an image (such as 16 bits in WebP), only that peer's figures leave it out. Peers store the
pixels; L3 and PNG also store palettes and all ancillary chunks. Every L3 file is compared with its source sample by
sample.

A time is the processor time of the whole command with one thread, including reading the PNG. For newjxl it is the time
of the encoding only. Cached times are from the run that wrote the cache. A ratio is L3's size divided by the other
coder's, for the images that both can store: of the totals, and as the geometric mean over the images.

Exit status: 0; 1 if L3 refused or changed an image, or a PNG could not be read; 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

NEWJXL_VERSION = "import imagecodecs as i, numpy; print(i.jpegxl_version(), 'in imagecodecs', i.__version__)"
NEWJXL = """
import sys, time, imagecodecs as codecs
pixels = codecs.png_decode(open(sys.argv[2], "rb").read())
start = time.process_time()
data = codecs.jpegxl_encode(pixels, lossless=True, effort=int(sys.argv[1]), numthreads=1)
print(time.process_time() - start)
assert (codecs.jpegxl_decode(data) == pixels).all(), "not lossless"
open(sys.argv[3], "wb").write(data)
"""


def say(text: str) -> None:
    print(f"sizes: {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Image:
    path: Path
    digest: str
    size: int
    pixels: int
    edge: int  # the longer one
    bits: int


@dataclass(frozen=True)
class Result:
    size: int  # 0: no file, and `why`
    seconds: float = 0.0
    why: str = ""


@dataclass
class Coder:
    name: str
    words: Callable[[str, str], list[str]] = lambda source, out: []  # the command
    identity: str = ""  # version and options: the cache's key
    absent: str = ""  # why there is no such coder here
    ours: bool = False
    cannot_hold: Callable[[Image], str] = lambda image: ""
    says_time: bool = False  # stdout is the seconds
    results: dict[str, Result] = field(default_factory=dict)  # by the image's digest

    def size(self, image: Image) -> int:
        return self.results[image.digest].size


def read_image(path: Path) -> Image:
    data = path.read_bytes()
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR" or len(data) < 33:
        raise ValueError("not a PNG file")
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    return Image(path, hashlib.sha256(data).hexdigest(), len(data), width * height, max(width, height), data[24])


def run(words: Sequence[str]) -> tuple[int, float, list[str]]:
    """Exit status, seconds of the processor, and the lines that were said on stdout and stderr."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        said = child.stdout.read().decode(errors="replace")
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return child.returncode, usage.ru_utime + usage.ru_stime, lines or [f"exit status {child.returncode}"]


def webp_cannot_hold(image: Image) -> str:
    return "16 bits" if image.bits > 8 else "an edge beyond 16383" if image.edge > 16383 else ""


def peer(name: str, python: str) -> Coder:
    parts = re.fullmatch(r"(cjxl|newjxl|cwebp)(\d*)", name)
    if parts is None or (not parts[2] and parts[1] != "cwebp"):
        raise ValueError(f"{name}: no such peer; there are cjxlE, newjxlE and cwebpZ, E and Z being numbers")
    kind, level = parts[1], parts[2] or "6"
    if kind == "cjxl":
        about, options = [kind, "--version"], ["-d", "0", "-e", level, "--num_threads=0"]
        coder = Coder(name, words=lambda source, out: [kind, *options, source, out])
    elif kind == "cwebp":
        about, options = [kind, "-version"], ["-lossless", "-exact", "-z", level]
        coder = Coder(name, words=lambda source, out: [kind, *options, source, "-o", out],
                      cannot_hold=webp_cannot_hold)
    else:
        about, options = [python, "-c", NEWJXL_VERSION], ["lossless,", "effort", level]
        coder = Coder(name, words=lambda source, out: [python, "-c", NEWJXL, level, source, out], says_time=True)
    status, _, lines = run(about) if shutil.which(about[0]) else (1, 0, [])
    if status == 0:
        version = lines[0].split("[")[0].strip()  # cjxl's is followed by instruction sets
        coder.identity = f"{version if kind in version else f'{kind} {version}'}, {' '.join(options)}"
    else:
        coder.absent = "see --imagecodecs" if kind == "newjxl" else f"no {kind} here"
    return coder


def l3_coders(l3: Path, methods: str, efforts: str) -> list[Coder]:
    names: list[str] = []
    for method in filter(None, methods.split(",")):
        names += [f"dense{effort}" for effort in efforts.split(",")] if method == "dense" else [method]
    coders, version = [], run([str(l3), "--version"])[2][0] if names else ""
    for name in dict.fromkeys(names):
        parts = re.fullmatch(r"fast|dense([1-9])", name)
        if parts is None:
            raise ValueError(f"{name}: no such method; there are fast, dense and dense1 to dense9")
        options = ["--method", "dense", "--effort", parts[1]] if parts[1] else ["--method", "fast"]
        # The command's own check of its result is left out, since it is compared with its source here, untimed.
        words = [str(l3), "encode", "-q", "-j", "1", "--no-verify", *options]
        coders.append(Coder(name, lambda source, out, words=words: [*words, source, out],
                            f"{version}, {' '.join(options)}", ours=True))
    return coders


class Cache:
    """JSON lines, one for each image and peer; read at once, added to as results come."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[tuple[str, str], Result] = {}
        for line in path.read_text().splitlines() if path and path.exists() else []:
            entry = json.loads(line)
            self.known[entry["png"], entry["coder"]] = Result(entry["size"], entry["seconds"])

    def add(self, image: Image, coder: Coder, result: Result) -> None:
        if self.path is None or coder.ours or not result.size:
            return
        with self.path.open("a") as stream:
            entry = {"png": image.digest, "coder": coder.identity, "size": result.size, "seconds": result.seconds}
            stream.write(json.dumps(entry) + "\n")


def encode(image: Image, coder: Coder, folder: Path, l3: Path, verify: bool) -> Result:
    out = folder / f"{image.digest}.{coder.name}"
    try:
        status, seconds, lines = run(coder.words(str(image.path), str(out)))
        if status != 0 or not out.exists():
            return Result(0, why=lines[-1])
        if coder.ours and verify:
            status, _, lines = run([str(l3), "verify", "-q", "-j", "1", "--against", str(image.path), str(out)])
            if status != 0:
                return Result(0, why=f"not the same image again: {lines[-1]}")
        return Result(out.stat().st_size, float(lines[-1]) if coder.says_time else seconds)
    finally:
        out.unlink(missing_ok=True)


def encode_all(images: Sequence[Image], coder: Coder, cache: Cache, options: argparse.Namespace) -> None:
    """Fills the coder's results."""
    waiting: dict[str, Image] = {}  # by digest: the same file twice is encoded once
    for image in images:
        why = coder.cannot_hold(image)
        known = None if coder.ours else cache.known.get((image.digest, coder.identity))
        if why or known:
            coder.results[image.digest] = known or Result(0, why=why)
        else:
            waiting[image.digest] = image
    if waiting:
        say(f"{coder.name}: {len(waiting)} images to encode")
    with tempfile.TemporaryDirectory(prefix="l3-sizes-") as folder, ThreadPoolExecutor(max(1, options.jobs)) as pool:
        work = {pool.submit(encode, image, coder, Path(folder), options.l3, options.verify): image
                for image in waiting.values()}
        for future in as_completed(work):
            coder.results[work[future].digest] = future.result()
            cache.add(work[future], coder, future.result())


def ratios(images: Sequence[Image], ours: Coder, other: Coder) -> dict[str, float] | None:
    """Of the totals, and the geometric mean of the images' own; None without an image that both hold."""
    pairs = [(ours.size(i), other.size(i)) for i in images if ours.size(i) and other.size(i)]
    if not pairs:
        return None
    return {"total": sum(a for a, _ in pairs) / sum(b for _, b in pairs),
            "geometric": math.exp(sum(math.log(a / b) for a, b in pairs) / len(pairs))}


def figures(images: Sequence[Image], coders: Sequence[Coder]) -> list[dict[str, Any]]:
    """What a group's table says, a row for each coder."""
    rows: list[dict[str, Any]] = []
    for coder in coders:
        held = [image for image in images if coder.size(image)]
        rows.append({"coder": coder.name, "images": len(held), "pixels": sum(i.pixels for i in held),
                     "bytes": sum(map(coder.size, held)), "seconds": sum(coder.results[i.digest].seconds for i in held),
                     "ratios": {ours.name: ratios(images, ours, coder) for ours in coders if ours.ours}})
    return rows


def table(rows: Sequence[Sequence[str]], markdown: bool) -> str:
    """The first row is the head; the first column is flush left, the others are flush right."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(widths[c]) if c else cell.ljust(widths[c]) for c, cell in enumerate(row)]
        lines.append(f"| {' | '.join(cells)} |" if markdown else "  ".join(cells).rstrip())
    if markdown:
        lines.insert(1, "|" + "|".join("-" * (w + 1) + (":" if c else "-") for c, w in enumerate(widths)) + "|")
    return "\n".join(lines)


def group_text(name: str, images: Sequence[Image], coders: Sequence[Coder], markdown: bool) -> str:
    rows = [["coder", "images", "bytes", "bits/pixel", "MP/s"]]
    rows[0] += [word for coder in coders if coder.ours for word in (f"{coder.name}/it", "geo")]
    for row in figures(images, coders):
        pixels, seconds = row["pixels"], row["seconds"]
        cells = [row["coder"], str(row["images"]), f"{row['bytes']:,}"]
        cells += [f"{8 * row['bytes'] / pixels:.4f}" if pixels else "-"]
        cells += [f"{pixels / seconds / 1e6:.2f}" if seconds else "-"]
        for pair in row["ratios"].values():
            cells += [f"{pair['total']:.4f}", f"{pair['geometric']:.4f}"] if pair else ["-", "-"]
        rows.append(cells)
    heading = f"{name}: {len(images)} images, {sum(i.pixels for i in images):,} pixels"
    return f"{'### ' if markdown else ''}{heading}\n\n{table(rows, markdown)}\n"


def each_text(images: Sequence[Image], coders: Sequence[Coder], markdown: bool) -> str:
    rows = [["image", "pixels", *(coder.name for coder in coders)]]
    for image in images:
        sizes = [f"{coder.size(image):,}" if coder.size(image) else "-" for coder in coders]
        rows.append([image.path.name, f"{image.pixels:,}", *sizes])
    return f"{'### ' if markdown else ''}bytes of each image\n\n{table(rows, markdown)}\n"


def notes(images: Sequence[Image], coders: Sequence[Coder], absent: Sequence[Coder]) -> list[str]:
    lines = [f"{coder.name}: {coder.identity}" for coder in coders if coder.identity]
    lines += [f"{coder.name}: absent, {coder.absent}" for coder in absent]
    for coder in coders:
        out = [f"{image.path.name}: {coder.results[image.digest].why}" for image in images if not coder.size(image)]
        if out:
            lines.append(f"{coder.name}: {len(out)} left out: {'; '.join(out if coder.ours else out[:2])}")
    return lines


def parsed() -> tuple[argparse.Namespace, list[Coder]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=Path, metavar="DIR_OR_PNG")
    parser.add_argument("--l3", type=Path, default=ROOT / "build/release/bin/l3", help="the l3 command")
    parser.add_argument("--l3-methods", default="fast,dense", metavar="LIST",
                        help="L3's columns: fast, dense (at each of --efforts), dense1 to dense9; empty for none")
    parser.add_argument("--efforts", default="1,5,9", metavar="LIST")
    parser.add_argument("--peers", default="cwebp,cjxl7,newjxl7,cjxl9", metavar="LIST", help="in the order to run them")
    parser.add_argument("--imagecodecs", default=sys.executable, metavar="PYTHON",
                        help="a Python that has imagecodecs and numpy, such as VENV/bin/python (default: this one)")
    parser.add_argument("--cache", type=Path, metavar="FILE", help="keep the peers' results as JSON lines")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE too")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="commands to run in parallel (default: 1)")
    parser.add_argument("--group", action="append", default=[], metavar="PREFIX",
                        help="a table for the images whose names begin with this; may be repeated")
    parser.add_argument("--verify", action=argparse.BooleanOptionalAction, default=True,
                        help="compare each L3 file with its source")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--each", action="store_true", help="also a row for each image")
    options = parser.parse_args()
    if options.l3_methods and not os.access(options.l3, os.X_OK):
        parser.error(f"{options.l3}: no such command; build it with ./run build, or see --l3")
    try:
        ours = l3_coders(options.l3.resolve(), options.l3_methods, options.efforts)
        return options, [*ours, *(peer(name, options.imagecodecs) for name in filter(None, options.peers.split(",")))]
    except ValueError as wrong:
        parser.error(str(wrong))


def main() -> int:
    options, asked = parsed()
    found: dict[Path, Image] = {}
    groups: list[tuple[str, list[Image]]] = []
    failed = False
    for source in options.sources:
        paths = [source] if source.is_file() else sorted(p for p in source.rglob("*") if p.suffix.lower() == ".png")
        here = []
        for path in (path.resolve() for path in paths):
            try:
                found[path] = found.get(path) or read_image(path)
                here.append(found[path])
            except (OSError, ValueError) as wrong:
                say(f"{path}: {wrong}")
                failed = True
        if not here:
            say(f"{source}: no PNG files")
            failed = True
        elif source.is_dir():
            groups.append((source.resolve().name, here))
    images = list(found.values())
    groups += [(f"{prefix}*", [i for i in images if i.path.name.startswith(prefix)]) for prefix in options.group]
    if all(len(of) < len(images) for _, of in groups):
        groups.append(("all", images))

    png = Coder("png", results={i.digest: Result(i.size) for i in images})
    coders, absent = [png, *(c for c in asked if not c.absent)], [c for c in asked if c.absent]
    cache = Cache(options.cache)
    for coder in coders[1:]:
        encode_all(images, coder, cache, options)
    failed |= any(coder.ours and not coder.size(image) for coder in coders for image in images)

    if options.each:
        print(each_text(images, coders, options.markdown))
    for name, of in groups:
        print(group_text(name, of, coders, options.markdown))
    for line in notes(images, coders, absent):
        print(f"- {line}" if options.markdown else line)
    if options.json:
        options.json.write_text(json.dumps({
            "coders": [{"name": c.name, "identity": c.identity, "absent": c.absent} for c in [*coders, *absent]],
            "images": [{"path": str(i.path), "sha256": i.digest, "pixels": i.pixels,
                        "results": {c.name: vars(c.results[i.digest]) for c in coders}} for i in images],
            "groups": [{"name": name, "images": len(of), "coders": figures(of, coders)} for name, of in groups],
        }, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
