#!/usr/bin/env python3
"""Kills l3 convert at random moments and continues with --resume. The data set must equal that of an uninterrupted run.

Usage: resume_soak.py --l3 COMMAND [--kills N] [--seed S] [--images N]

It draws a set of images, small and large, similar and different, some of them corrupt, and converts it once. Then it
starts the same conversion N times. Each time it kills and resumes the conversion, perhaps repeatedly, until it is done.
The kills are spread over the time of a conversion. Some come at its very start, and some just after a shard is done.
Every second round uses a shared model. It prints a line for each round. The exit status is 1 if a folder differs in any
name or byte.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from command_testing import png
from sets_testing import contents

SECONDS = 600  # that a conversion may take, however slow the build
MOST_KILLS = 6  # of one round


@dataclass
class Way:
    """Options, and what an uninterrupted run with them made."""

    name: str
    options: list[str]
    whole: dict[str, bytes]
    code: int
    seconds: float


def draw_images(folder: Path, count: int, source: random.Random) -> None:
    for i in range(count):
        path = folder / f"class{i * 4 // count}" / f"{i:05}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        seed = source.randrange(1 << 30)
        if i % 13 == 5:
            path.write_bytes(png(20, 20, seed=seed)[:-source.randrange(13, 90)])
        elif i % 17 == 3:
            path.write_bytes(png(source.randrange(60, 200), source.randrange(60, 200), seed=seed))
        else:
            noise = random.Random(seed)
            rows = [bytes((x * y + i) % 7 * 9 + 40 + noise.randrange(4) for x in range(24)) for y in range(24)]
            path.write_bytes(png(24, 24, 8, 0, rows=rows))


class Soak:
    def __init__(self, l3: str, folder: Path, source: random.Random) -> None:
        self.l3, self.folder, self.source, self.kills = l3, folder, source, 0

    def command(self, to: Path, options: list[str], *more: str) -> list[str]:
        return [self.l3, "convert", str(self.folder / "src"), str(to), "-q", "--on-error", "skip", *options, *more]

    def way(self, name: str, options: list[str]) -> Way:
        to = self.folder / name
        seconds = float(SECONDS)
        for _ in range(2):  # the first one finds its sources on a disk
            began = time.monotonic()
            done = subprocess.run(self.command(to, options, "--force"), capture_output=True, timeout=SECONDS)
            seconds = min(seconds, time.monotonic() - began)
        if done.returncode != 1 or not (to / "errors.tsv").exists():
            raise SystemExit(f"the uninterrupted run: exit status {done.returncode}\n{done.stderr.decode()}")
        return Way(name, options, contents(to), done.returncode, seconds)

    def wait_and_kill(self, process: subprocess.Popen[bytes], to: Path, way: Way) -> str:
        """Says when; empty where the run ended before."""
        kind = self.source.randrange(10)
        if kind < 2:
            after = self.source.uniform(0, 0.02)
            when = f"{after:.3f} s"
        elif kind < 5:
            wanted = self.source.randrange(1, len(way.whole))
            when, after = f"{wanted} shards", 0
            while process.poll() is None and len(list(to.glob("shard-*.l3s"))) < wanted:
                pass
            after = self.source.choice((0, 0, 0.0005, 0.002))
        else:
            after = self.source.uniform(0, way.seconds)
            when = f"{after:.3f} s"
        try:
            process.wait(after)
            return ""
        except subprocess.TimeoutExpired:
            if process.poll() is not None:
                return ""
        process.kill()
        process.wait()
        return when

    def round(self, way: Way, number: int) -> bool:
        """Interrupts and resumes; whether the outcome is wrong."""
        to = self.folder / f"round{number}"
        whens: list[str] = []
        kills = self.source.randint(1, MOST_KILLS)
        more: tuple[str, ...] = ()
        while True:
            process = subprocess.Popen(self.command(to, way.options, *more), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE)
            when = self.wait_and_kill(process, to, way) if len(whens) < kills else ""
            said = process.communicate(timeout=SECONDS)[1]
            code = process.returncode
            more = ("--resume",)
            if when:
                whens.append(when)
            elif whens:
                break
            else:
                shutil.rmtree(to)  # done before it was killed
                more = ()
        problems = []
        if code != way.code:
            problems.append(f"exit status {code}, not {way.code}: {said.decode()!r}")
        found = contents(to)
        problems += [f"{name} is missing" for name in sorted(way.whole.keys() - found.keys())]
        problems += [f"{name} is too much" for name in sorted(found.keys() - way.whole.keys())]
        both = sorted(found.keys() & way.whole.keys())
        problems += [f"{name} differs" for name in both if found[name] != way.whole[name]]
        problems += [f"the folder {path.name} is left" for path in to.iterdir() if path.is_dir()]
        self.kills += len(whens)
        verdict = "; ".join(problems) or "the same"
        print(f"{number:4} {way.name:12} killed after {', '.join(whens)}: {verdict}", flush=True)
        if not problems:
            shutil.rmtree(to)
        return bool(problems)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--l3", required=True, help="the command to test")
    parser.add_argument("--kills", type=int, default=50, help="rounds of killing and resuming (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--images", type=int, default=400, help="of the set (default: %(default)s)")
    options = parser.parse_args()
    source = random.Random(options.seed)
    folder = Path(tempfile.mkdtemp(prefix="l3-resume-soak-"))
    try:
        draw_images(folder / "src", options.images, source)
        soak = Soak(str(Path(options.l3).resolve()), folder, source)
        ways = [soak.way("plain", ["--method", "fast", "--shard-size", "24000", "-j2"]),
                soak.way("shared-model", ["--method", "dense", "--effort", "1", "--shared-model", "on", "--shard-size",
                                          "40000", "-j2"])]
        for way in ways:
            print(f"     {way.name:12} {len(way.whole) - 2} shards, {way.seconds:.2f} s uninterrupted", flush=True)
        wrong = 0
        for number in range(options.kills):
            wrong += soak.round(ways[number % len(ways)], number)
        print(f"{options.kills} rounds with {soak.kills} kills, {wrong} rounds wrong")
        return 1 if wrong else 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
