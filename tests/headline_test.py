#!/usr/bin/env python3
"""Tests that README.md agrees with bench/results/, and that bench/headline.py formats a record correctly."""

from __future__ import annotations

import json
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
import headline


def codec(name: str, ratio: float, decode: float, **more: object) -> dict[str, object]:
    return {"codec": name, "ratio": ratio, "encode_mpps": 1.234, "decode_mpps": decode, "lossy": False, **more}


def record() -> dict[str, object]:
    lossy = codec("jpeg90", 0.2, 160, lossy=True, psnr_db=38.25)
    decoder = codec("stb", 1, 25)
    del decoder["encode_mpps"]
    runs = [{"cpu": "avx512", "files": 62, "pixels": 36_500_000,
             "codecs": [codec("png", 1, 50), decoder, lossy, codec("l3-fast", 0.85, 500),
                        {"codec": "qoi", "absent": "x"}]},
            {"cpu": "portable", "files": 62, "pixels": 36_500_000,
             "codecs": [codec("png", 1, 40), codec("l3-fast", 0.85, 200)]}]
    return {"date": "2026-01-02", "commit": "abc", "machine": "a machine", "compiler": "a compiler",
            "folders": ["a", "b"], "runs": runs}


class Headline(unittest.TestCase):
    def test_rows(self) -> None:
        self.assertEqual(headline.rows(record()), [
            ["png", "1.000", "1.23", "50.0", "1.00"],
            ["stb", "1.000", "\u2013", "25.0", "0.50"],
            ["jpeg90 (lossy, 38.2 dB)", "0.200", "1.23", "160", "3.20"],
            ["**l3-fast**, AVX-512", "0.850", "1.23", "500", "10.00"],
            ["**l3-fast**, any x86-64", "0.850", "1.23", "200", "5.00"]])

    def test_table(self) -> None:
        table = headline.table(record())
        self.assertIn("62 files of a and b, 36.5 million pixels", table)
        self.assertEqual(len({line.count("|") for line in table.splitlines() if line.startswith("|")}), 1)

    def test_history(self) -> None:
        line = headline.history_line(record(), record()["runs"][1])
        self.assertEqual(line, "2026-01-02\tabc\ta machine\ta compiler\tportable\t62 of a+b\t36.5\t"
                               "png=1.0000/1.23/40.0 l3-fast=0.8500/1.23/200\n")
        self.assertEqual(line.count("\t"), headline.HISTORY_HEAD.count("\t"))

    def test_readme_is_replaced_between_its_marks(self) -> None:
        text = f"before\n{headline.BEGIN}old\n{headline.END}after\n"
        self.assertEqual(headline.put_into_readme(text, "new\n"),
                         f"before\n{headline.BEGIN}new\n{headline.END}after\n")

    def test_readme_says_what_was_measured(self) -> None:
        kept = json.loads(headline.RECORD.read_text())
        text = headline.README.read_text()
        self.assertIn(headline.table(kept), text)
        self.assertEqual(headline.put_into_readme(text, headline.table(kept)), text)
        history = headline.HISTORY.read_text()
        self.assertTrue(history.startswith(headline.HISTORY_HEAD))
        for run in kept["runs"]:
            self.assertIn(headline.history_line(kept, run), history)

    def test_the_record_names_no_folders_of_a_machine(self) -> None:
        text = headline.RECORD.read_text()
        for part in ('"folder"', '"command"', "/tmp", "/home", "/root"):
            self.assertNotIn(part, text)


if __name__ == "__main__":
    unittest.main()
