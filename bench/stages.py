#!/usr/bin/env python3
"""Counts the instructions of a hot loop of libl3 by function. The stages of dense decoding are functions.

    bench/stages.py                             decode_opened_photo, for avx2 and sse4
    bench/stages.py decode_dense_photo --target portable

Like bench/gate.py it runs a loop of `l3_loops` under valgrind with one turn and with two, and prints the difference.
It needs a build in which the stages are not inlined:

    cmake --preset release -B build/stages -DCMAKE_CXX_FLAGS=-DL3_KEEP_STAGES
    cmake --build build/stages --target l3_loops
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def name_of(function: str) -> str:
    """Without the types of templates and arguments: only numbers, which are channels."""
    while "<" in function:
        shorter = re.sub(r"<([^<>]*)>", lambda m: f"[{m[1][:-1]}]" if re.fullmatch(r"\d+u", m[1]) else "", function)
        if shorter == function:
            break
        function = shorter
    return function.split("(")[0].split("::")[-1].split(" ")[-1]


def by_function(loops: Path, loop: str, target: str, turns: int) -> collections.Counter[str]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind"
        words = ["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no",
                 f"--callgrind-out-file={out}", str(loops), loop, str(turns)]
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "L3_CPU": target})
        if done.returncode != 0:
            raise ValueError(f"{loop} ({target}): {(done.stderr.strip().splitlines() or ['no answer'])[-1]}")
        counts: collections.Counter[str] = collections.Counter()
        function, is_call = "", False
        for line in out.read_text().splitlines():
            if line.startswith("fn="):
                function = name_of(line[3:])
            elif line.startswith("calls="):
                is_call = True  # what the next line counts belongs to the function that is called
            elif re.match(r"\d", line):
                if not is_call:
                    counts[function] += int(line.split()[1])
                is_call = False
        return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loop", nargs="?", default="decode_opened_photo", metavar="LOOP")
    parser.add_argument("--target", action="append", metavar="NAME", help="default: avx2 and sse4")
    parser.add_argument("--loops", type=Path, default=ROOT / "build/stages/bench/micro/l3_loops", metavar="PROGRAM")
    options = parser.parse_args()
    try:
        for target in options.target or ["avx2", "sse4"]:
            once, twice = (by_function(options.loops, options.loop, target, turns) for turns in (1, 2))
            turn = twice - once
            total = sum(turn.values())
            print(f"{options.loop}, {target}: {total:,} instructions")
            for function, count in turn.most_common():
                if count * 200 >= total:
                    print(f"  {100 * count / total:5.1f} %  {count:>11,}  {function}")
    except (OSError, ValueError) as wrong:
        print(f"stages: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
