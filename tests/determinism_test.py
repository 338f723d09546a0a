#!/usr/bin/env python3
"""Tests that the l3 command writes the same files with any number of threads and jobs, on every processor target.

Usage: determinism_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

from command_testing import DONE, CommandTest, l3_command, main, pgm, png

THREADS = (1, 2, 5)


def targets() -> list[str]:
    """What this processor has; the command refuses the others."""
    found = []
    for name in ("portable", "avx2", "vnni", "avx512"):
        tried = subprocess.run([l3_command(), "encode", "-", "-"], input=pgm(1, 1), capture_output=True,
                               env=forced(name))
        if tried.returncode == DONE:
            found.append(name)
    return found


def forced(target: str) -> dict[str, str]:
    return {**os.environ, "L3_CPU": target}


class Determinism(CommandTest):
    def draw_sources(self) -> Path:
        chunks = [(b"gAMA", struct.pack(">I", 45455)), (b"eXIf", b"MM\0*data"), (b"tEXt", b"Title\0" + b"text " * 300)]
        self.write("src/colours.png", png(300, 200, before=chunks))
        self.write("src/deep.png", png(150, 90, 16, 6, seed=2))
        self.write("src/labels.png", png(257, 129, 4, 3, [(b"PLTE", bytes(range(48))), (b"tRNS", b"\0\x80")], seed=3))
        self.write("src/bits.png", png(700, 35, 1, 0, seed=4))
        self.write("src/more/gray.pgm", pgm(400, 300, seed=5))
        self.write("src/more/tiny.png", png(1, 1, seed=6))
        return self.folder / "src"

    def encoded_as(self, source: Path, threads: int, target: str) -> bytes:
        return self.l3("encode", source, "-", "--tile", 64, "--effort", 1, "--threads", threads,
                       env=forced(target)).stdout

    def converted_as(self, source: Path, jobs: int, target: str, *options: str) -> dict[str, bytes]:
        out = self.folder / "-".join(("out", target, str(jobs), *options))
        self.l3("convert", source, out, "--effort", 1, "--jobs", jobs, "--quiet", *options, env=forced(target))
        return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}

    def test_encode(self) -> None:
        for source in sorted(path for path in self.draw_sources().rglob("*") if path.is_file()):
            first = self.encoded_as(source, 1, "portable")
            for target in targets():
                for threads in THREADS:
                    with self.subTest(source=source.name, target=target, threads=threads):
                        self.assertEqual(self.encoded_as(source, threads, target), first)

    def test_convert(self) -> None:
        source = self.draw_sources()
        for options, files in ((["--files"], 6), (["--shared-model", "on", "--shard-size", "100kB"], 4)):
            first: dict[str, bytes] = {}
            for target in targets():
                for jobs in THREADS:
                    # Of data sets each target and each number of threads once: their images are encoded as files are.
                    if options != ["--files"] and target != targets()[0] and jobs != THREADS[-1]:
                        continue
                    with self.subTest(target=target, jobs=jobs, options=options):
                        found = self.converted_as(source, jobs, target, *options)
                        first = first or found
                        self.assertEqual(len(found), files, sorted(found))
                        self.assertEqual(found, first)


if __name__ == "__main__":
    main()
