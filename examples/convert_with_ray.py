#!/usr/bin/env python3
"""Converts a folder of images to a data set with Ray Data: Ray converts the parts, then `l3 merge` joins them.

    convert_with_ray.py SRC DST [--parts N] [--l3 COMMAND] [-- options of l3 convert]

SRC and DST must have the same paths on all machines. To continue after an interruption, run it again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys


def convert(row: dict[str, str], words: list[str]) -> dict[str, object]:
    done = subprocess.run([*words, f"--part={row['part']}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return {"part": row["part"], "code": done.returncode, "said": done.stderr.decode(errors="replace")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="SRC")
    parser.add_argument("destination", metavar="DST")
    parser.add_argument("--parts", type=int, default=16, help="number of parts, more than machines (default: 16)")
    parser.add_argument("--processors", type=int, default=1, help="processors for each part (default: 1)")
    parser.add_argument("--l3", default="l3", help="the l3 command on all machines (default: l3)")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:end])
    import ray  # here, so that --help needs no Ray

    words = [options.l3, "convert", options.source, options.destination, *words[end + 1 :]]
    rows = [{"part": f"{i + 1}/{options.parts}"} for i in range(options.parts)]

    words += ["--resume", "--quiet", f"--jobs={options.processors}"]
    # One block per part, so that Ray schedules each part separately.
    results = ray.data.from_items(rows, override_num_blocks=options.parts).map(
        convert, fn_kwargs={"words": words}, num_cpus=options.processors)
    failed = 0
    for result in results.iter_rows():
        if result["code"] != 0:
            failed += 1
            print(f"part {result['part']}:\n{result['said']}", end="", file=sys.stderr)
    # A part that skipped broken files is complete but returns 1. `l3 merge` fails if a part is missing.
    return subprocess.run([options.l3, "merge", options.destination]).returncode or (1 if failed else 0)


if __name__ == "__main__":
    sys.exit(main())
