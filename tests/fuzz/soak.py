#!/usr/bin/env python3
"""Runs the fuzz targets, each for a given processor time, two or more in parallel.

    soak.py BUILD                        60 s for each target of BUILD (the build folder of the preset fuzz, or of asan,
                                         whose targets run blindly)
    soak.py BUILD --minutes 30 decode    for one target, or several
    soak.py BUILD --keep                 afterwards add a few small new inputs to tests/fuzz/corpus

A target starts with the vectors of spec/vectors (or with drawn images, if it does not read L3 files), with
tests/fuzz/corpus, and with the inputs that earlier runs found (BUILD/fuzz/TARGET). It prints executions and coverage.
For a finding it prints the input, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import re
import resource
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "spec" / "vectors"), str(ROOT / "spec" / "shards"), str(ROOT / "tests")]
import foreign_seeds
from build_shards import DataSet
from command_testing import CHANNELS, pgm, png
from recipes import all_recipes

import build

TARGETS = ("info", "decode", "region", "round_trip", "model", "formats", "shard")
MAX_INPUT = {"round_trip": 4096, "formats": 4096}  # bytes; of the others 16 KiB
KEPT_INPUTS, KEPT_BYTES = 120, 64 << 10  # the most of each target's corpus in the tree


@dataclass
class Run:
    target: str
    executions: int = 0
    edges: str = "?"
    seconds: float = 0
    corpus: str = "?"
    finding: str = ""

    def line(self) -> str:
        rate = self.executions / max(self.seconds, 1)
        return (f"{self.target:<12}{self.executions:>12} executions {self.seconds:>8.0f} s of processor time "
                f"{rate:>8.0f}/s {self.edges:>6} edges {self.corpus:>6} inputs  {self.finding or 'no finding'}")


def max_input(target: str) -> int:
    return MAX_INPUT.get(target, 16 << 10)


@functools.cache
def vectors() -> dict[str, bytes]:
    return {name: build.build_text(text) for name, text in build.recipes()}


def seeds_of(target: str) -> dict[str, bytes]:
    """Inputs to begin with."""
    seeds: dict[str, bytes] = {}
    if target == "formats":
        for colour, channels in CHANNELS.items():
            for depth in (1, 2, 4, 8, 16):
                allowed = {0: (1, 2, 4, 8, 16), 3: (1, 2, 4, 8)}.get(colour, (8, 16))
                if depth not in allowed:
                    continue
                before = [(b"gAMA", bytes(2) + b"\xb1\x8f"), (b"tEXt", b"Title\0x")]
                if colour == 3:
                    before += [(b"PLTE", bytes(range(3 * (1 << min(depth, 4))))), (b"tRNS", b"\0\x80")]
                elif channels in (1, 3) and colour != 3:
                    before += [(b"tRNS", bytes(2 * channels))]
                seeds[f"png_{colour}_{depth}"] = png(9, 5, depth, colour, before, [(b"tIME", bytes(7))])
        seeds["pgm"] = pgm(9, 4)
        seeds["pbm"] = b"P4\n9 3\n" + bytes(6)
        seeds["ppm"] = b"P6\n2 2\n255\n" + bytes(range(12))
        seeds["plain"] = b"P3\n# comment\n1 2\n15\n1 2 3\n4 5 6\n"
        seeds["pam"] = b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 4\nMAXVAL 65535\nTUPLTYPE RGB_ALPHA\nENDHDR\n" + bytes(16)
        return seeds | foreign_seeds.seeds()
    if target == "round_trip":
        noise = random.Random(1)
        for i in range(60):
            shape = noise.randbytes(8)
            smooth = bytes((x // 3 + noise.randrange(3)) & 0xFF for x in range(400))
            seeds[f"shape_{i}"] = shape + (noise.randbytes(300) if i % 2 else smooth)
        return seeds
    if target == "model":
        for i, model in enumerate(build.models()):
            seeds[f"model_{i}"] = len(model).to_bytes(2, "little") + model + bytes((i, *range(200)))
        return seeds
    if target == "shard":
        for recipe in all_recipes():
            name = recipe.name.replace("/", "_")
            if isinstance(recipe.made_of, DataSet):
                seeds[name] = b"j" + recipe.made_of.files().get("index.json", b"")
            elif not recipe.is_sparse:
                seeds[name] = b"s" + recipe.file().whole()[4096:]
        return {name: data for name, data in seeds.items() if len(data) <= max_input(target)}
    for name, data in vectors().items():
        if len(data) <= max_input(target) - 8:
            prefix = bytes((31 * len(seeds) + 17 * i) & 0xFF for i in range(8)) if target == "region" else b""
            seeds[name.replace("/", "_")] = prefix + data
    return seeds


def run(folder: Path, target: str, seconds: float) -> Run:
    found = folder / "fuzz" / target
    seeds = folder / "fuzz" / f"{target}_seeds"
    found.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(seeds, ignore_errors=True)
    seeds.mkdir()
    for name, data in seeds_of(target).items():
        (seeds / name).write_bytes(data)
    kept = HERE / "corpus" / target
    folders = [str(found), str(seeds)] + ([str(kept)] if kept.is_dir() else [])
    artifacts = folder / "fuzz" / f"finding_{target}_"
    done = Run(target)
    # libFuzzer counts the clock; what counts here is work, however busy the machine is.
    while done.seconds < seconds and not done.finding:
        left = max(1, round(seconds - done.seconds))  # 0 would be for ever
        command = [str(folder / "tests" / "fuzz" / f"{target}_fuzz"), f"-max_total_time={left}",
                   f"-max_len={max_input(target)}", f"-artifact_prefix={artifacts}", "-print_final_stats=1",
                   "-timeout=25", "-rss_limit_mb=4096", "-reload=0", *folders]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        done.seconds += max(used.ru_utime + used.ru_stime, 1)
        if executions := re.search(r"stat::number_of_executed_units:\s*(\d+)", said):
            done.executions += int(executions[1])
        if progress := re.findall(r"cov: (\d+) .*?corp: (\d+)", said):
            done.edges, done.corpus = progress[-1]
        if status != 0:
            wrote = re.findall(r"Test unit written to (\S+)", said)
            done.finding = f"FINDING {wrote[-1] if wrote else ''}\n{said[-3000:]}"
    return done


def keep(folder: Path, target: str) -> None:
    """Puts a small set of inputs that together reach what all reach into the tree: as many of the smallest as fit."""
    kept = HERE / "corpus" / target
    merged = folder / "fuzz" / f"{target}_merged"
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir()
    sources = [folder / "fuzz" / target, kept] if kept.is_dir() else [folder / "fuzz" / target]
    program = str(folder / "tests" / "fuzz" / f"{target}_fuzz")
    subprocess.run([program, "-set_cover_merge=1", f"-max_len={max_input(target)}", str(merged), *map(str, sources)],
                   check=True, capture_output=True)
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    total = 0
    for path in sorted(merged.iterdir(), key=lambda path: (path.stat().st_size, path.name))[:KEPT_INPUTS]:
        total += path.stat().st_size
        if total > KEPT_BYTES:
            break
        shutil.copyfile(path, kept / path.name[:16])
    print(f"{target}: {len(list(kept.iterdir()))} of {len(list(merged.iterdir()))} inputs kept")


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak.py", description="Run the fuzz targets.")
    parser.add_argument("build", type=Path, metavar="BUILD")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=60, help="of processor time for each target (default: 60)")
    parser.add_argument("--minutes", type=float, help="the same in minutes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets to run side by side")
    parser.add_argument("--keep", action="store_true", help="put what was found into tests/fuzz/corpus")
    options = parser.parse_args()
    targets = options.targets or list(TARGETS)
    if unknown := set(targets) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}: there are {', '.join(TARGETS)}")
    seconds = 60 * options.minutes if options.minutes else options.seconds
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    findings = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for done in pool.map(lambda target: run(options.build.resolve(), target, seconds), targets):
            print(done.line(), flush=True)
            findings += bool(done.finding)
    if options.keep:
        for target in targets:
            keep(options.build.resolve(), target)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
