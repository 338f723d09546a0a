#!/usr/bin/env python3
"""Tests that encoded bytes do not depend on the processor target, the number of threads or their order.

Usage: encoded_digests_test.py ENCODED_DIGESTS
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys

LACKS_TARGET = 3  # what ENCODED_DIGESTS ends with where the processor does not have what L3_CPU names
# What is compared with the portable target, one thread, forward.
SCHEDULES = {
    "portable": ((7, "interleaved"),),
    "avx2": ((3, "interleaved"),),
    "avx512": ((2, "reverse"),),
}


def digests(program: str, target: str, threads: int, order: str) -> subprocess.CompletedProcess[str]:
    words = [program, str(threads), order]
    return subprocess.run(words, capture_output=True, text=True, env={**os.environ, "L3_CPU": target})


def main() -> int:
    program = sys.argv[1]
    first = digests(program, "portable", 1, "forward")
    if first.returncode != 0 or not first.stdout:
        print(first.stderr, file=sys.stderr)
        return 1
    tried = []
    for target, schedules in SCHEDULES.items():
        for threads, order in schedules:
            found = digests(program, target, threads, order)
            if found.returncode == LACKS_TARGET:
                break
            name = f"{target}, {threads} threads, {order}"
            if found.returncode != 0 or found.stdout != first.stdout:
                print(f"{name}: not what portable, one thread, forward gives", file=sys.stderr)
                print(found.stderr[:2000], file=sys.stderr)
                changes = difflib.unified_diff(first.stdout.splitlines(), found.stdout.splitlines(), lineterm="", n=0)
                print("\n".join(list(changes)[:20]), file=sys.stderr)
                return 1
            tried.append(name)
    print(f"{first.stdout.count(chr(10))} files, the same in {len(tried)} ways: {'; '.join(tried)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
