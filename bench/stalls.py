#!/usr/bin/env python3
"""Compares what l3 stalls predicts with what it then measures, on three set-ups.

    bench/stalls.py [FOLDER] [--l3 COMMAND] [--seconds N] [--rounds N] [--out FILE]

FOLDER has PNG files of one size. `l3 convert` makes data sets of them, fast and dense; without FOLDER, it draws some.
All predictions come from measurements behind a link of 20 MB/s and 5 ms. What is predicted:

*Disk-bound*: half of the data set in a cache, and a link that is twice as fast. *Decode-bound*: everything in a cache.
*Consumer-bound*: a training whose steps take twice as long as the loader needs for a batch.

Each row is the round with the median error. Exit status 1: an error is above 10 %. --out writes the figures as JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LINK = "20MB/s,5ms"
CASES = (("disk-bound", "cache:50"), ("disk-bound", "link:40MB/s"), ("decode-bound", "cache:100"),
         ("consumer-bound", "step"))
LIMIT = 0.10


def say(text: str) -> None:
    print(f"{Path(sys.argv[0]).stem}: {text}", file=sys.stderr, flush=True)


def draw(folder: Path, count: int, side: int = 256) -> None:
    """Smooth images with the noise of a sensor, as PNM files."""
    import random

    folder.mkdir(parents=True)
    dice = random.Random(1)
    for i in range(count):
        slope = [dice.uniform(-0.4, 0.4) for _ in range(6)]
        rows = bytearray()
        for y in range(side):
            for x in range(side):
                for c in range(3):
                    rows.append(int(128 + slope[c] * x + slope[c + 3] * y + dice.gauss(0, 2)) & 255)
        (folder / f"{i:05}.ppm").write_bytes(b"P6 %d %d 255\n" % (side, side) + bytes(rows))


def measure(command: Path, made: Path, check: str, seconds: float) -> dict[str, Any]:
    said = subprocess.run([command, "stalls", "--json", "-q", "--link", LINK, "--check", check, "--seconds",
                           str(seconds), made], check=True, capture_output=True, text=True)
    return json.loads(said.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--l3", type=Path, default=ROOT / "build/release/bin/l3", help="made by ./run build")
    parser.add_argument("--seconds", type=float, default=15, help="of each run of l3 stalls")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    about = ""
    with tempfile.TemporaryDirectory(prefix="l3-bench-") as name:
        scratch = Path(name)
        folder = options.folder
        if folder is None:
            folder = scratch / "drawn"
            draw(folder, 200)
        for method in ("fast", "dense"):
            made = scratch / method
            subprocess.run([options.l3, "convert", "-q", "--method", method, folder, made], check=True)
            for what, check in CASES:
                found = []
                for number in range(options.rounds):
                    say(f"{method}, {what}, {check}: round {number + 1} of {options.rounds}")
                    found.append(measure(options.l3, made, check, options.seconds))
                about = f"{found[0]['about']}; {found[0]['machine']['library']}, {found[0]['machine']['processor']}"
                checks = [one["checks"][0] for one in found]
                middle = sorted(checks, key=lambda one: one["error"])[len(checks) // 2]
                rows.append({"set_up": what, "method": method, "check": check, **middle,
                             "errors": [one["error"] for one in checks]})
    print(about)
    print("| set-up | shards | changed to | predicted | measured | error |\n|---|---|---|--:|--:|--:|")
    for row in rows:
        print(f"| {row['set_up']} | {row['method']} | {row['case']} | {row['predicted']:.0f} | {row['measured']:.0f} | "
              f"{row['error']:+.1%} |")
    if options.out:
        options.out.write_text(json.dumps({"link": LINK, "about": about, "rows": rows}, indent=1) + "\n")
    return 1 if any(abs(row["error"]) > LIMIT for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
