#!/usr/bin/env python3
"""Measures the table of the main README, and keeps README and records the same.

    bench/headline.py FOLDER...    measures: writes bench/results/headline.json, adds lines to history.tsv beside it,
                                   and puts the table into README.md
    bench/headline.py --print      the table of the record
    bench/headline.py --check      exit status 1 where README.md says something else than the record

Folders are categories of their own in the record. `./run bench --headline` does the first after a build, with the
folders photo8 and street of the corpus beside this one, which the record was made of.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "bench" / "results" / "headline.json"
HISTORY = ROOT / "bench" / "results" / "history.tsv"
README = ROOT / "README.md"
BEGIN, END = "<!-- bench/headline.py: begin -->\n", "<!-- bench/headline.py: end -->\n"
HISTORY_HEAD = "date\tcommit\tmachine\tcompiler\ttarget\timages\tMP\tcodec=size/encode MP/s/decode MP/s\n"

# By processor target; those behind the first one are measured beside PNG again, for codecs that depend on it.
NATIVE_CODECS = ("png,spng,stb,jpeg90,webp,webp90,jxl1,jxl3,jxl7,jpegls,qoi,zstd,l3-paper,l3-fast,l3-dense1,l3-dense5")
OTHER_CODECS = "png,l3-fast,l3-dense1"
OTHER_TARGETS = ("avx2", "portable")
TARGET_NAMES = {"avx512": "AVX-512", "vnni": "AVX2 and VNNI", "avx2": "AVX2", "portable": "any x86-64"}
BOLD = ("l3-fast", "l3-dense")


def say(text: str) -> None:
    print(f"headline: {text}", file=sys.stderr, flush=True)


def commit() -> str:
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    return said.stdout.strip() or "unknown"


def measure(l3: Path, folder: Path, codecs: str, rounds: int, target: str) -> dict[str, Any]:
    environment = dict(os.environ)
    if target:
        environment["L3_CPU"] = target
    words = [str(l3), "bench", str(folder), "--codecs", codecs, "--threads", "1", "--rounds", str(rounds), "--seconds",
             "0", "--no-memory", "--json", "--quiet"]
    said = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    if said.returncode != 0:
        raise RuntimeError(f"l3 bench ended with {said.returncode}: {said.stderr.strip()}")
    report = json.loads(said.stdout)
    del report["folder"], report["command"], report["memory_image"]  # of this machine's folders
    report["arguments"] = " ".join(["FOLDER", *words[3:-1]])
    return report


def speed(codec: dict[str, Any], name: str) -> str:
    value = codec.get(name)
    if value is None:
        return "\u2013"
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def rows(record: dict[str, Any]) -> list[list[str]]:
    """Of the table: name, size, encode, decode, decode beside libpng's in the same run, the last two as numbers."""
    result = []
    for number, run in enumerate(record["runs"]):
        png = next(codec for codec in run["codecs"] if codec["codec"] == "png")
        for codec in run["codecs"]:
            if "absent" in codec or (number > 0 and codec["codec"] == "png"):
                continue
            name = codec["codec"]
            title = f"**{name}**" if name.startswith(BOLD) else name
            if name.startswith(BOLD):
                title += f", {TARGET_NAMES.get(run['cpu'], run['cpu'])}"
            if codec["lossy"]:
                title += f" (lossy, {codec['psnr_db']:.1f} dB)"
            result.append([title, f"{codec['ratio']:.3f}", speed(codec, "encode_mpps"), speed(codec, "decode_mpps"),
                           f"{codec['decode_mpps'] / png['decode_mpps']:.2f}"])
    return result


def table(record: dict[str, Any]) -> str:
    first = record["runs"][0]
    lines = ["| codec | size / PNG | encode MP/s | decode MP/s | decode / libpng |", "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows(record)]
    folders = " and ".join(record["folders"])
    lines += ["", f"{first['files']} files of {folders}, {first['pixels'] / 1e6:.1f} million pixels; one core of "
              f"{record['machine']}, {record['compiler']}; commit {record['commit']}, {record['date']}."]
    return "\n".join(lines) + "\n"


def put_into_readme(text: str, contents: str) -> str:
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:begin] + contents + text[end:]


def history_line(record: dict[str, Any], run: dict[str, Any]) -> str:
    figures = [(codec["codec"], f"{codec['ratio']:.4f}", speed(codec, "encode_mpps"), speed(codec, "decode_mpps"))
               for codec in run["codecs"] if "absent" not in codec]
    codecs = " ".join(f"{name}={size}/{encode}/{decode}" for name, size, encode, decode in figures)
    return "\t".join([record["date"], record["commit"], record["machine"], record["compiler"], run["cpu"],
                      f"{run['files']} of {'+'.join(record['folders'])}", f"{run['pixels'] / 1e6:.1f}", codecs]) + "\n"


def run_all(options: argparse.Namespace) -> int:
    runs = []
    with tempfile.TemporaryDirectory(prefix="l3-headline-") as folder:
        for source in options.folders:
            (Path(folder) / source.name).symlink_to(source.resolve())
        for target in ("", *OTHER_TARGETS):
            say(f"measuring, processor target {target or 'of this machine'}")
            codecs = OTHER_CODECS if target else NATIVE_CODECS
            runs.append(measure(options.l3, Path(folder), codecs, options.rounds, target))
    machine = runs[0]["machine"]
    record = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "commit": commit(),
              "machine": f"{machine['processor']}, {machine['processors']} processors, {machine['memory']}",
              "compiler": machine["compiler"], "folders": [source.name for source in options.folders], "runs": runs}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    if not HISTORY.exists():
        HISTORY.write_text(HISTORY_HEAD)
    with HISTORY.open("a") as history:
        history.writelines(history_line(record, run) for run in runs)
    README.write_text(put_into_readme(README.read_text(), table(record)))
    print(table(record), end="")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--l3", type=Path, default=ROOT / "build" / "release" / "bin" / "l3", help="the command")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--print", action="store_true", help="the table of the record")
    parser.add_argument("--check", action="store_true", help="whether README.md has the table of the record")
    options = parser.parse_args()
    if not options.print and not options.check:
        if not options.folders:
            parser.error("which folders?")
        return run_all(options)
    record = json.loads(RECORD.read_text())
    if options.print:
        print(table(record), end="")
        return 0
    text = README.read_text()
    if put_into_readme(text, table(record)) == text:
        return 0
    say("README.md has another table than bench/results/headline.json: bench/headline.py --print")
    return 1


if __name__ == "__main__":
    sys.exit(main())
