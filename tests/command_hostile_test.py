#!/usr/bin/env python3
"""Tests the l3 command with hostile files: the test vectors, and headers that claim more than the file contains.

    command_hostile_test.py --l3 COMMAND
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "spec" / "vectors"))
from command_testing import DONE, FAILED, CommandTest, chunk, l3_command, main, png

import build

# What a run takes that has nothing to do: sanitizers and libraries. Compared with, so that both may grow.
SLACK_KIB = 24 << 10
LINE = re.compile(r"^l3: (?P<file>[^:]+): offset \d+: \S")

BIG = """# 2^28 pixels in 3 KiB.
spec 10
image 16384x16384 gray 8
tiles 31x32
constant*272 7
"""


def manifest() -> dict[str, tuple[str, str]]:
    """What decoding and verifying give, by the name of the vector."""
    lines = (build.HERE / "MANIFEST.txt").read_text().splitlines()
    return {name: (decoded, verified) for name, _, decoded, verified, _ in
            (line.split("\t") for line in lines if not line.startswith("#"))}


class Hostile(CommandTest):
    def peak_kib(self, *words: object, code: int) -> int:
        """The most memory that a run of the command had at once."""
        process = subprocess.Popen([l3_command(), *map(str, words)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, code, words)
        return used.ru_maxrss

    def test_every_vector_has_the_verdict_of_the_manifest(self) -> None:
        wanted = manifest()
        for name, text in build.recipes():
            data = build.build_text(text)
            if len(data) < 100_000 and "pixels_most" not in name:  # the others take their time
                self.write(f"{name}.l3", data)
        paths = sorted(self.folder.rglob("*.l3"))
        self.assertGreater(len(paths), 300)
        models = [word for path in build.write_models(self.folder) for word in ("--model", path)]
        done = self.l3("verify", "-q", *models, self.folder, code=FAILED)
        said: dict[str, str] = {}
        for line in done.stderr.decode().splitlines():
            found = LINE.match(line)
            self.assertIsNotNone(found, f"file, offset and reason: {line}")
            assert found is not None
            said[found["file"]] = line
        for path in paths:
            name = str(path.relative_to(self.folder).with_suffix(""))
            refused = wanted[name][1] != "ok"
            self.assertEqual(str(path) in said, refused, f"{name}: {said.get(str(path))}")

    def test_nothing_is_written_of_what_is_refused(self) -> None:
        for name in ("invalid/index_check", "invalid/block_codes_cut", "limits/pixels_above", "invalid/file_empty"):
            data = build.build_text((build.HERE / f"{name}.txt").read_text())
            image = self.write("image.l3", data)
            for out in ("out.png", "out.pam"):
                self.l3("decode", image, self.folder / out, code=FAILED)
                self.assertFalse((self.folder / out).exists())
            done = self.l3("decode", image, "-", "--format", "pam", code=FAILED)
            self.assertEqual(done.stdout, b"")
            self.assert_no_temporaries()

    def test_memory_follows_the_limit_and_not_the_header(self) -> None:
        small = self.write("small.l3", build.build_text((build.HERE / "valid/one_pixel.txt").read_text()))
        least = self.peak_kib("decode", small, self.folder / "small.pam", code=DONE)
        big = bytearray(build.build_text(BIG))
        image = self.write("big.l3", bytes(big))
        out = self.folder / "big.pam"
        self.assertLess(self.peak_kib("decode", image, out, "--max-bytes", "1MiB", code=FAILED), least + SLACK_KIB)
        self.assertLess(self.peak_kib("info", image, code=DONE), least + SLACK_KIB)
        # A header alone, and one whose index was cut off: there is no file behind it.
        for cut in (64, 64 + 12 * 100, len(big) - 1):
            image = self.write("cut.l3", bytes(big[:cut]))
            for words in (("decode", image, out), ("verify", image), ("info", image)):
                self.assertLess(self.peak_kib(*words, code=FAILED), least + SLACK_KIB, (cut, words))

    def test_a_png_that_claims_too_much_takes_no_memory(self) -> None:
        small = self.write("small.png", png(4, 4))
        least = self.peak_kib("encode", small, self.folder / "small.l3", code=DONE)
        head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1 << 30, 1 << 30, 8, 6, 0, 0, 0))
        bomb = self.write("bomb.png", head + chunk(b"IDAT", bytes(10)) + chunk(b"IEND", b""))
        self.assertLess(self.peak_kib("encode", bomb, self.folder / "bomb.l3", code=FAILED), least + SLACK_KIB)
        self.assertFalse((self.folder / "bomb.l3").exists())


if __name__ == "__main__":
    main()
