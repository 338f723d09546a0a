#!/usr/bin/env python3
"""Measures what efforts give and cost, and keeps docs/performance.md, the command's help and the record the same.

    bench/efforts.py FOLDER... [--kinds FOLDER...]
                              measures, writes bench/results/efforts.json, and updates document and help
    bench/efforts.py --write  updates document and help from the record
    bench/efforts.py --check  exit status 1 if one of them differs from the record

`./run bench --efforts` builds the command and measures. Measure at a clean commit and on a quiet machine. It takes
less than 12 minutes: images that no longer fit into the given seconds are left out, and the record says so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import headline
from headline import ROOT

RECORD = ROOT / "bench" / "results" / "efforts.json"
DOCUMENT = ROOT / "docs" / "performance.md"
HELP = ROOT / "tools" / "effort_figures.h"

EFFORTS = range(1, 10)
CODECS = ("png", "jxl1", "jxl7", "l3-fast", *(f"l3-dense{effort}" for effort in EFFORTS))
NAMES = {**headline.NAMES, **{f"l3-dense{effort}": f"l3 dense, effort {effort}" for effort in EFFORTS}}
EDGE = 10_000  # of the image whose memory is measured: 100 MP


def large_image(l3: Path, source: Path, folder: Path) -> Path:
    """A PPM file of 100 MP: copies of an image side by side."""
    file, small, large = folder / "small.l3", folder / "small.ppm", folder / "large.ppm"
    subprocess.run([l3, "encode", "-q", "-1", source, file], check=True)
    subprocess.run([l3, "decode", "-q", file, small], check=True)
    magic, size, _, pixels = small.read_bytes().split(b"\n", 3)
    width, height = map(int, size.split())
    row = 3 * width
    assert magic == b"P6" and len(pixels) == row * height
    rows = [(pixels[y * row:(y + 1) * row] * (EDGE // width + 1))[:3 * EDGE] for y in range(height)]
    with large.open("wb") as out:
        out.write(b"P6\n%d %d\n255\n" % (EDGE, EDGE))
        for y in range(EDGE):
            out.write(rows[y % height])
    return large


def peak_memory(words: Sequence[str | Path], seconds: int) -> int | None:
    """The most memory that a command takes, in bytes, or None if it takes longer."""
    process = subprocess.Popen(["timeout", str(seconds), *words])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 124):
        raise RuntimeError(f"{words[0]} ended with {process.returncode}")
    return usage.ru_maxrss * 1024 if process.returncode == 0 else None


def measure_memory(l3: Path, source: Path, threads: int, seconds: int) -> dict[str, Any]:
    """Of the command with each effort. An effort that takes too long, and all above it, have none."""
    with tempfile.TemporaryDirectory(prefix="l3-efforts-") as name:
        folder = Path(name)
        image = large_image(l3, source, folder)
        words = [l3, "encode", "-q", "--no-verify", "--threads", str(threads)]
        peaks: dict[str, int | None] = {
            "l3-fast": peak_memory([*words, "--method", "fast", image, folder / "large.l3"], seconds)}
        peak: int | None = 0
        for effort in EFFORTS:
            if peak is not None:
                headline.say(f"measuring memory at effort {effort}")
                peak = peak_memory([*words, f"-{effort}", "--method", "dense", image, folder / "large.l3"], seconds)
            peaks[f"l3-dense{effort}"] = peak
    return {"pixels": EDGE * EDGE, "sample_bytes": 3 * EDGE * EDGE, "threads": threads, "peaks": peaks}


def run_all(options: argparse.Namespace) -> dict[str, Any]:
    at = headline.commit()
    if at.endswith("-dirty"):
        headline.say("the tree has uncommitted changes: the record will say so")

    def measured(folders: Sequence[Path], seconds: int) -> dict[str, Any]:
        headline.say(f"measuring {' '.join(folder.name for folder in folders)}")
        return headline.measure(options.l3, folders, ",".join(CODECS), "", "--rounds", "1", "--seconds", str(seconds))

    runs = [measured(options.folders, options.seconds)]
    if options.kinds:
        runs.append(measured(options.kinds, options.kinds_seconds))
    record = headline.assembled([folder.name for folder in options.folders], runs, at)
    source = sorted(options.folders[0].glob("*.png"))[0]
    return {**record, "memory": measure_memory(options.l3, source, 2, options.memory_seconds)}


def table(record: dict[str, Any]) -> str:
    photographs = headline.measured(record["runs"][0])
    kinds = headline.measured(record["runs"][1])
    memory = record["memory"]
    rows = []
    for name in CODECS:
        photograph, kind, peak = photographs[name], kinds[name], memory["peaks"].get(name)
        rows.append([NAMES[name], f"{photograph['ratio']:.3f}", headline.speed(photograph, "encode_mpps"),
                     headline.times(photograph, photographs["png"], "encode_mpps"), f"{kind['ratio']:.3f}",
                     headline.speed(kind, "encode_mpps"), "\u2013" if peak is None else f"{peak / 1e6:.0f}"])
    head = ["codec", "size / PNG", "encode MP/s", "encode / PNG", "other kinds: size / PNG", "encode MP/s",
            "MB for 100 MP"]

    def files(run: dict[str, Any]) -> str:
        of_all = f" of {run['listed_files']}" if run["sampled"] else ""
        return f"{run['files']}{of_all} files, {run['pixels'] / 1e6:.1f} million pixels"

    return headline.table(head, rows) + "\n" + headline.paragraph(
        f"Photographs and street scenes: {files(record['runs'][0])}. Other kinds: {files(record['runs'][1])}.",
        f"Memory: the most that `l3 encode` takes for {memory['pixels'] / 1e6:.0f} million RGB pixels on "
        f"{memory['threads']} threads, of which the samples are {memory['sample_bytes'] / 1e6:.0f} MB.",
        f"One core of {headline.source(record)} Command: `./run bench --efforts`")


def help_lines(record: dict[str, Any]) -> list[str]:
    codecs = headline.measured(record["runs"][0])

    def line(title: str, cells: Sequence[str]) -> str:
        return f"  {title:<11}" + "".join(f"{cell:>7}" for cell in cells)

    efforts = [codecs[f"l3-dense{effort}"] for effort in EFFORTS]
    png, jxl = codecs["png"], codecs["jxl7"]
    return ["Efforts on photographs, with one core of a server:",
            line("effort", [str(effort) for effort in EFFORTS]),
            line("size / PNG", [f"{codec['ratio']:.3f}" for codec in efforts]),
            line("MP/s", [headline.speed(codec, "encode_mpps") for codec in efforts]),
            f"  libpng encodes {headline.speed(png, 'encode_mpps')} MP/s. JPEG XL at effort 7 makes "
            f"{jxl['ratio']:.3f} of PNG, {headline.speed(jxl, 'encode_mpps')} MP/s."]


def help_header(record: dict[str, Any]) -> str:
    lines = "\n".join(f'    "{line}\\n"' for line in help_lines(record))
    return ("// What efforts give, for help texts. Written by bench/efforts.py from bench/results/efforts.json.\n"
            "#pragma once\n\nnamespace tools {\n\n"
            f"inline constexpr const char* kEffortFigures =\n{lines};\n\n}}  // namespace tools\n")


def updated(record: dict[str, Any]) -> dict[Path, str]:
    """The document and the help as the record wants them."""
    document = headline.BLOCK.sub(
        lambda found: found[1] + table(record) + found[4] if found[2] == "efforts" else found[0], DOCUMENT.read_text())
    return {DOCUMENT: document, HELP: help_header(record)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--kinds", nargs="+", type=Path, default=[], help="folders of other kinds of images")
    parser.add_argument("--l3", type=Path, default=ROOT / "build" / "release" / "bin" / "l3", help="the command")
    parser.add_argument("--seconds", type=int, default=300, help="for the images of FOLDER together")
    parser.add_argument("--kinds-seconds", type=int, default=150, help="for the other kinds of images together")
    parser.add_argument("--memory-seconds", type=int, default=60, help="for the large image at one effort, at most")
    parser.add_argument("--write", action="store_true", help="update document and help from the record")
    parser.add_argument("--check", action="store_true", help="whether document and help agree with the record")
    options = parser.parse_args()
    if options.folders:
        RECORD.write_text(json.dumps(run_all(options), indent=1, ensure_ascii=False) + "\n")
        options.write = True
    elif not (options.write or options.check):
        parser.error("name the folders to measure")
    result = 0
    for path, text in updated(json.loads(RECORD.read_text())).items():
        if path.exists() and path.read_text() == text:
            continue
        if options.write:
            path.write_text(text)
        else:
            headline.say(f"{path.name} differs from bench/results/efforts.json: run bench/efforts.py --write")
            result = 1
    return result


if __name__ == "__main__":
    sys.exit(main())
