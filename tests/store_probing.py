"""Shared by the tests of far stores: runs the probe, and takes apart what it prints."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

_probe = "store_probe"
ENOENT, EACCES, EPROTO, ETIMEDOUT, ECONNREFUSED = 2, 13, 71, 110, 111
FILE, TRUNCATED, ARGUMENT = 11, 5, 1  # of l3_status


def run(*words: object, env: dict[str, str] | None = None, timeout: float = 60) -> tuple[int, str]:
    """The probe's exit status and output. Nothing of the caller's own settings reaches it."""
    clean = {name: value for name, value in os.environ.items()
             if not name.upper().startswith("AWS_") and "PROXY" not in name.upper() and name != "SSL_CERT_FILE"}
    with tempfile.TemporaryDirectory() as home:
        result = subprocess.run([_probe, *map(str, words)], stdout=subprocess.PIPE, text=True, timeout=timeout,
                                env={**clean, "HOME": home, "AWS_EC2_METADATA_DISABLED": "true",
                                     "TSAN_OPTIONS": "die_after_fork=0", **(env or {})})
    return result.returncode, result.stdout


class FarTest(unittest.TestCase):
    def good(self, *words: object, **more: object) -> list[dict[str, str]]:
        """The lines that the probe prints, as names and values."""
        status, text = run(*words, **more)
        self.assertEqual(status, 0, text)
        return [dict(word.split("=", 1) for word in line.split()) for line in text.splitlines()]

    def fault(self, *words: object, **more: object) -> tuple[int, int, str]:
        status, text = run(*words, **more)
        found = re.match(r"fault status=(\d+) errno=(\d+) offset=-?\d+ reason=(.*)\n", text)
        self.assertIsNotNone(found, text)
        self.assertEqual(status, 1, text)
        return int(found[1]), int(found[2]), found[3]

    def assert_bytes(self, line: dict[str, str], expected: bytes) -> None:
        self.assertEqual((int(line["size"]), int(line["crc32"])), (len(expected), zlib.crc32(expected)))


def main(description: str | None) -> int:
    global _probe
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--probe", required=True)
    options, rest = parser.parse_known_args()
    _probe = str(Path(options.probe).resolve())
    return not unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful()
