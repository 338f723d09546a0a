#!/usr/bin/env python3
"""Tests that a program linked with a static libl3 gets the encoder only if it encodes, and prints both sizes.

Usage: decode_only_test.py --decoder PROGRAM --encoder PROGRAM --source CODEC_FOLDER
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

PUBLIC = {"l3_encode", "l3_encode_bound", "l3_start_training", "l3_add_to_training", "l3_finish_training",
          "l3_close_training"}
# Of each part of the encoder: the public calls, search, tiles, models of both kinds, and the loops of each target.
PARTS = ["l3_encode", "l3_finish_training", "l3::write_best", "l3::write_tiles", "l3::write_file", "l3::DenseEncoder",
         "l3::fit_predictors", "l3::write_model", "l3::TokenEncoder", "l3::write_token_model", "l3::encode_target",
         "l3::EncodeTargetBody", "l3::FitKernels"]


def output(*words: object) -> str:
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def symbols(program: Path) -> list[str]:
    return [line.split(maxsplit=2)[2] for line in output("nm", "-C", "--defined-only", program).splitlines()]


def text_bytes(program: Path) -> int:
    return int(output("size", program).splitlines()[1].split()[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decoder", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    options = parser.parse_args()

    decoder, encoder = symbols(options.decoder), symbols(options.encoder)
    public = set(re.findall(r"\b(l3_\w+);", (options.source / "l3.map").read_text()))
    wrong = [f"{name}: in l3.map, but decode_only.c does not take it" for name in sorted(public - set(encoder))]
    wrong += [f"{name}: the program that only decodes does not have it"
              for name in sorted(public - PUBLIC - set(decoder))]
    for part in PARTS:
        pattern = re.compile(re.escape(part) + r"\b")
        found = [name for name in decoder if pattern.search(name)]
        wrong += [f"{name}: the program that only decodes has it" for name in found]
        if not any(pattern.search(name) for name in encoder):
            wrong.append(f"{part}: the encoder does not have it, so this test must learn its new name")
    small, large = text_bytes(options.decoder), text_bytes(options.encoder)
    if small >= large:
        wrong.append("the program that only decodes is not smaller")

    for line in wrong:
        print(line)
    print(f"code and constants: {small} bytes without the encoder, {large} bytes with it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
