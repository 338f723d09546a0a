#!/usr/bin/env python3
"""Tests that the oracle, spec/l3_decode.py, and libl3 accept the same files and decode them to the same bytes.

    oracle_test.py ORACLE_SAMPLES          a program that writes files, and the results of libl3 for them
    oracle_test.py --good TOKEN_SAMPLES    a program that writes valid files, and their samples
    oracle_test.py --no-oracle PROGRAM     run only the program (for a build with sanitizers)
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import ModuleType


def load_oracle() -> ModuleType:
    path = Path(__file__).resolve().parent.parent / "spec" / "l3_decode.py"
    spec = importlib.util.spec_from_file_location("l3_decode", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Blindness:
    """Notes whether the oracle could see all of a file's metadata: the standard library has no Zstandard."""

    def __init__(self, oracle: ModuleType) -> None:
        self.blind = False
        self.look = oracle.zstandard_stored
        oracle.zstandard_stored = self

    def __call__(self, data: bytes, begin: int, end: int, size: int) -> bytes | None:
        contents: bytes | None = self.look(data, begin, end, size)
        has_checksum = data[begin + 4] & 4 != 0
        self.blind = contents is None or has_checksum
        return contents


def compare(
    oracle: ModuleType, blindness: Blindness, directory: Path, line: str, seen: Counter[str]
) -> list[str]:
    """What the two do not agree on, for the file of one line of the list."""
    name, decoded, verified = line.split("\t")
    data = (directory / f"{name}.l3").read_bytes()
    image = None
    verdict, reason = "ok", ""
    try:
        image = oracle.decode(data)
    except oracle.Refusal as refusal:
        verdict, reason = "reject", str(refusal)
    seen[f"decode {decoded}"] += 1
    seen[f"verify {verified}"] += 1
    if decoded != verdict:
        return [f"{name}: libl3 decode says {decoded}, the oracle {verdict} {reason}"]
    if image is None:
        return [] if verified == "reject" else [f"{name}: libl3 verify says {verified} of what does not decode"]
    if b"".join(oracle.pam(image)) != (directory / f"{name}.pam").read_bytes():
        return [f"{name}: different pixels"]
    blindness.blind = False
    try:
        oracle.verify(data)
    except oracle.Refusal as refusal:
        verdict, reason = "reject", str(refusal)
    if verified == "reject-metadata" and verdict == "ok" and blindness.blind:
        seen["not seen by the oracle"] += 1
    elif verified.removesuffix("-metadata") != verdict:
        return [f"{name}: libl3 verify says {verified}, the oracle {verdict} {reason}"]
    return []


def main() -> int:
    oracle = load_oracle()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        subprocess.run([sys.argv[-1], name], check=True)
        if "--no-oracle" in sys.argv:
            return 0
        seen: Counter[str] = Counter()
        lines = (directory / "list.tsv").read_text().splitlines()
        blindness = Blindness(oracle)
        complaints = [c for line in lines for c in compare(oracle, blindness, directory, line, seen)]
        print(", ".join(f"{count} {what}" for what, count in sorted(seen.items())))
        for complaint in complaints:
            print(complaint)
        rejected = seen["decode reject"] == 0 if "--good" in sys.argv else seen["decode reject"] > 200
        enough = len(lines) > 500 and seen["decode ok"] > 200 and rejected
        if not enough:
            print("too few files of each kind to prove anything")
        return 0 if enough and not complaints else 1


if __name__ == "__main__":
    sys.exit(main())
