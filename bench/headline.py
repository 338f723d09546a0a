#!/usr/bin/env python3
"""Measures the tables of README.md and docs/performance.md, and keeps documents and record the same.

    bench/headline.py FOLDER... [--kinds FOLDER...]
                                   measures, writes bench/results/headline.json, adds lines to history.tsv next to it,
                                   and updates the documents. --kinds: folders of other kinds of images, each of them
                                   a row of its own; left out, the record keeps the rows that it has
    bench/headline.py --write      updates the documents from the record
    bench/headline.py --check      exit status 1 if a document differs from the record
    bench/headline.py --tsv        the figures of the picture, for l3_plot_figures
    bench/headline.py --plot PROGRAM   draws docs/size-and-speed.svg with l3_plot_figures

`./run bench --headline` builds the command, measures, and draws the picture. Measure at a clean commit and on a
quiet machine. The record was made of the folders photo8 and street, and of all other kinds of images, of the corpus.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "bench" / "results" / "headline.json"
HISTORY = ROOT / "bench" / "results" / "history.tsv"
PICTURE = ROOT / "docs" / "size-and-speed.svg"
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "performance.md")
# The tables of documents. Those of efforts are written by efforts.py.
BLOCK = re.compile(r"(<!-- bench/(?:headline|efforts)\.py: ([a-z0-9-]+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)
HISTORY_HEAD = "date\tcommit\tmachine\tcompiler\ttarget\timages\tMP\tcodec=size/encode MP/s/decode MP/s\n"

# The processor's own target measures all codecs. The others measure what depends on the target, and PNG again.
NATIVE_CODECS = "png,spng,stb,jpeg90,webp,webp90,jxl1,jxl3,jxl7,jpegls,qoi,zstd,l3-paper,l3-fast,l3-dense1,l3-dense5"
OTHER_CODECS = "png,webp,l3-fast,l3-dense1"
KIND_CODECS = "png,webp,jxl3,jxl7,jpegls,zstd,l3-fast,l3-dense1,l3-dense5"
OTHER_TARGETS = ("vnni", "avx2", "sse4", "portable")
TARGETS = {"avx512": "AVX-512 with VBMI", "vnni": "AVX-512 with VNNI", "avx2": "AVX2", "sse4": "SSE4.2",
           "portable": "any x86-64"}
NAMES = {
    "png": "PNG (libpng)", "spng": "PNG (libspng)", "stb": "PNG (stb_image)", "jpeg90": "JPEG, quality 90",
    "webp": "WebP, lossless", "webp90": "WebP, quality 90", "jxl1": "JPEG XL, effort 1", "jxl3": "JPEG XL, effort 3",
    "jxl7": "JPEG XL, effort 7", "jpegls": "JPEG-LS", "qoi": "QOI", "zstd": "Zstandard, bare samples",
    "l3-paper": "the paper's L3", "l3-fast": "**l3 fast**", "l3-dense1": "**l3 dense, effort 1**",
    "l3-dense5": "**l3 dense, effort 5**",
}
SUMMARY = ("png", "webp", "jxl7", "l3-fast", "l3-dense5")
KINDS = {
    "depth16": "depth, 16 bits", "jpegderived": "photographs that were JPEG", "labels": "label maps",
    "medical": "medical", "render": "renderings", "rgb16": "3 × 16 bits", "satellite": "satellite",
    "screen": "screens, scanned pages", "small": "tiny images",
}
Codec = dict[str, Any]


def say(text: str) -> None:
    print(f"headline: {text}", file=sys.stderr, flush=True)


def commit() -> str:
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def without_paths(report: dict[str, Any]) -> dict[str, Any]:
    """The report without the names of folders of this machine."""
    words = report["command"].split()
    return {**{key: value for key, value in report.items() if key not in ("folder", "command", "memory_image")},
            "arguments": " ".join(["FOLDER", *words[3:]])}


def measure(l3: Path, folders: Sequence[Path], codecs: str, target: str, *options: str) -> dict[str, Any]:
    environment = dict(os.environ)
    if target:
        environment["L3_CPU"] = target
    with tempfile.TemporaryDirectory(prefix="l3-headline-") as folder:
        for source in folders:
            (Path(folder) / source.name).symlink_to(source.resolve())
        words = [str(l3), "bench", folder, "--codecs", codecs, "--threads", "1", "--no-memory", *options]
        done = subprocess.run([*words, "--json", "--quiet"], capture_output=True, text=True, env=environment,
                              check=False)
    if done.returncode != 0:
        raise RuntimeError(f"l3 bench ended with {done.returncode}: {done.stderr.strip()}")
    return without_paths(json.loads(done.stdout))


def measured(run: dict[str, Any]) -> dict[str, Codec]:
    return {codec["codec"]: codec for codec in run["codecs"] if "absent" not in codec}


def short(value: float) -> str:
    """With two or three digits."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"


def speed(codec: Codec, name: str) -> str:
    value = codec.get(name)
    return "\u2013" if value is None else short(value)


def times(codec: Codec, png: Codec, name: str) -> str:
    value = codec.get(name)
    return "\u2013" if value is None else short(value / png[name])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def paragraph(*sentences: str) -> str:
    """Lines of at most 110 characters."""
    lines = [""]
    for word in " ".join(sentences).split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > 110:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return "\n".join(lines) + "\n"


def source(record: dict[str, Any]) -> str:
    return f"{record['machine']}, {record['compiler']}; commit {record['commit']}, {record['date']}."


def run_of(record: dict[str, Any], target: str) -> dict[str, Any]:
    return next(run for run in record["runs"] if run["cpu"] == target)


def summary(record: dict[str, Any]) -> str:
    run = record["runs"][0]
    codecs = measured(run)
    png = codecs["png"]
    rows = [[NAMES[name].replace(", effort 5", ""), f"{codecs[name]['ratio']:.2f}",
             times(codecs[name], png, "encode_mpps"), times(codecs[name], png, "decode_mpps")] for name in SUMMARY]
    others = []
    for other in record["runs"][1:]:
        if other["cpu"] == "vnni":
            continue  # decodes as AVX-512 does
        of = measured(other)
        fast, dense = (times(of[name], of["png"], "decode_mpps") for name in ("l3-fast", "l3-dense1"))
        others.append(f"at {fast} and {dense} {'on' if other['cpu'] == 'portable' else 'with'} {TARGETS[other['cpu']]}")
    return table(["PNG = 1", "size (lower is better)", "encoding speed", "decoding speed (higher is better)"], rows) + \
        "\n" + paragraph(f"{run['files']} photographs and street scenes, {run['pixels'] / 1e6:.1f} million pixels, one "
                         f"core with {TARGETS[run['cpu']]}. Fast and dense (effort 1) decode {', '.join(others[:-1])}, "
                         f"and {others[-1]}.", source(record))


def target_table(record: dict[str, Any], target: str) -> str:
    run = run_of(record, target)
    codecs = measured(run)
    png = codecs["png"]
    rows = []
    for name, codec in codecs.items():
        title = NAMES[name] + (f" (lossy, {codec['psnr_db']:.1f} dB)" if codec["lossy"] else "")
        rows.append([title, f"{codec['ratio']:.3f}", times(codec, png, "encode_mpps"), times(codec, png, "decode_mpps"),
                     speed(codec, "encode_mpps"), speed(codec, "decode_mpps")])
    return table(["codec", "size / PNG", "encode / PNG", "decode / PNG", "encode MP/s", "decode MP/s"], rows) + "\n" + \
        paragraph(f"{run['files']} files of {' and '.join(record['folders'])}, {run['pixels'] / 1e6:.1f} million "
                  f"pixels; one core of {source(record)}",
                  f"Command: `{'' if run is record['runs'][0] else 'L3_CPU=' + target + ' '}l3 bench "
                  f"{run['arguments']}`")


def kinds(record: dict[str, Any]) -> str:
    run = record["kinds"]
    columns = ("webp", "jxl3", "jxl7", "zstd", "l3-fast", "l3-dense1", "l3-dense5")
    rows = []
    for category in run["categories"]:
        codecs = measured(category)
        cells = []
        for name in columns:
            codec = codecs[name]
            if codec["files"] == 0:
                cells.append("\u2013")
                continue
            star = "*" if codec["files"] < category["files"] else ""
            cells.append(f"{codec['ratio']:.3f}{star}, {times(codec, codecs['png'], 'decode_mpps')}")
        rows.append([KINDS.get(category["category"], category["category"]),
                     f"{category['files']}, {category['pixels'] / 1e6:.1f}", *cells])
    head = ["kind", "files, MP", *(NAMES[name].replace("**", "") for name in columns)]
    return table(head, rows) + "\n" + paragraph(
        "Each cell: size / PNG, decoding speed / PNG. With a star: only of the images that the codec can hold.",
        f"One core with {TARGETS[run['cpu']]} of {run['source']} Command: `l3 bench {run['arguments']}`, which "
        "measures as many images of each kind as fit into its share of the time.")


def block(record: dict[str, Any], name: str) -> str:
    if name == "summary":
        return summary(record)
    if name == "kinds":
        return kinds(record)
    return target_table(record, name)


def updated(text: str, record: dict[str, Any]) -> str:
    return BLOCK.sub(lambda found: found[0] if found[2] == "efforts" else found[1] + block(record, found[2]) + found[4],
                     text)


def tsv(record: dict[str, Any]) -> str:
    """A line for each codec: name, title, lossy, decodes only, files, pixels, bytes, supplied bytes, MP/s."""
    lines = []
    for codec in measured(record["runs"][0]).values():
        values = (codec["codec"], codec["title"], int(codec["lossy"]), int("encode_mpps" not in codec), codec["files"],
                  codec["pixels"], codec["bytes"], codec["supplied_bytes"], codec.get("encode_mpps", 0),
                  codec["decode_mpps"])
        lines.append("\t".join(str(value) for value in values) + "\n")
    return "".join(lines)


def history_line(record: dict[str, Any], run: dict[str, Any]) -> str:
    figures = [(codec["codec"], f"{codec['ratio']:.4f}", speed(codec, "encode_mpps"), speed(codec, "decode_mpps"))
               for codec in measured(run).values()]
    codecs = " ".join(f"{name}={size}/{encode}/{decode}" for name, size, encode, decode in figures)
    return "\t".join([record["date"], record["commit"], record["machine"], record["compiler"], run["cpu"],
                      f"{run['files']} of {'+'.join(record['folders'])}", f"{run['pixels'] / 1e6:.1f}", codecs]) + "\n"


def assembled(folders: Sequence[str], runs: list[dict[str, Any]], at: str) -> dict[str, Any]:
    machine = runs[0]["machine"]
    return {"date": machine["date"], "commit": at,
            "machine": f"{machine['processor']}, {machine['processors']} processors, {machine['memory']}",
            "compiler": machine["compiler"], "folders": list(folders), "runs": runs}


def with_kinds(record: dict[str, Any], kinds_run: dict[str, Any] | None) -> dict[str, Any]:
    if kinds_run is not None:
        record["kinds"] = {**kinds_run, "source": source({**record, "date": kinds_run["machine"]["date"]})}
    elif RECORD.exists() and "kinds" in (old := json.loads(RECORD.read_text())):
        record["kinds"] = old["kinds"]
    return record


def keep(record: dict[str, Any]) -> None:
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    if not HISTORY.exists():
        HISTORY.write_text(HISTORY_HEAD)
    with HISTORY.open("a") as history:
        history.writelines(history_line(record, run) for run in record["runs"])


def run_all(options: argparse.Namespace) -> None:
    at = commit()
    if at.endswith("-dirty"):
        say("the tree has uncommitted changes: the record will say so")
    every_image = ("--rounds", str(options.rounds), "--seconds", "0")
    runs = []
    for target in ("", *OTHER_TARGETS):
        say(f"measuring, processor target {target or 'of this machine'}")
        codecs = OTHER_CODECS if target else NATIVE_CODECS
        runs.append(measure(options.l3, options.folders, codecs, target, *every_image))
    kinds_run = None
    if options.kinds:
        say("measuring other kinds of images")
        kinds_run = measure(options.l3, options.kinds, KIND_CODECS, "", "--rounds", str(options.rounds), "--seconds",
                            str(options.seconds))
    keep(with_kinds(assembled([folder.name for folder in options.folders], runs, at), kinds_run))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--kinds", nargs="+", type=Path, default=[], help="folders of other kinds of images")
    parser.add_argument("--l3", type=Path, default=ROOT / "build" / "release" / "bin" / "l3", help="the command")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=600, help="for the other kinds of images together")
    parser.add_argument("--write", action="store_true", help="update the documents from the record")
    parser.add_argument("--check", action="store_true", help="whether the documents agree with the record")
    parser.add_argument("--tsv", action="store_true", help="the figures of the picture")
    parser.add_argument("--plot", type=Path, metavar="PROGRAM", help="draw the picture with l3_plot_figures")
    options = parser.parse_args()
    if options.folders:
        run_all(options)
        options.write = True
    elif not (options.write or options.check or options.tsv or options.plot):
        parser.error("name the folders to measure")
    record = json.loads(RECORD.read_text())
    if options.tsv:
        print(tsv(record), end="")
    if options.plot:
        drawn = subprocess.run([options.plot], input=tsv(record), capture_output=True, text=True, check=True)
        PICTURE.write_text(drawn.stdout)
    result = 0
    for document in DOCUMENTS:
        text = document.read_text()
        new = updated(text, record)
        if options.check and new != text:
            say(f"{document.name} differs from bench/results/headline.json: run bench/headline.py --write")
            result = 1
        if options.write and new != text:
            document.write_text(new)
    return result


if __name__ == "__main__":
    sys.exit(main())
