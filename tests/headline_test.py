#!/usr/bin/env python3
"""README.md, docs/, help and bench/results/ have the same figures; bench/headline.py and efforts.py format them right.

With --plot PROGRAM (l3_plot_figures): the picture in docs/ is the one that the program draws from the record.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
import efforts
import headline

PLOT: list[str] = []

# A figure of size, speed or time in prose: "0.65", "12.8 times", "200 MP/s". Versions and dates do not match.
FIGURE = re.compile(r"(?<![\w.\-/])(?<!version )\d+\.\d+(?![\w.]*\d)(?!\.\d)|\b\d+ ?(?:times|MP/s|GB/s|images/s|%)")


def codec(name: str, ratio: float, decode: float, **more: object) -> dict[str, object]:
    return {"codec": name, "title": name, "files": 62, "pixels": 9, "bytes": 5, "supplied_bytes": 10, "ratio": ratio,
            "encode_mpps": 1.25, "decode_mpps": decode, "lossy": False, **more}


def record() -> dict[str, object]:
    lossy = codec("jpeg90", 0.2, 160, lossy=True, psnr_db=38.25)
    decoder = codec("stb", 1, 25)
    del decoder["encode_mpps"]
    runs = [{"cpu": "avx512", "files": 62, "pixels": 36_500_000, "arguments": "FOLDER --rounds 2",
             "codecs": [codec("png", 1, 50), decoder, lossy, codec("webp", 0.7, 55), codec("jxl7", 0.6, 5),
                        codec("l3-fast", 0.85, 500), codec("l3-dense5", 0.6, 100, encode_mpps=0.125),
                        {"codec": "qoi", "absent": "x"}]}]
    runs += [{"cpu": target, "files": 62, "pixels": 36_500_000, "arguments": "FOLDER --rounds 2",
              "codecs": [codec("png", 1, 40), codec("l3-fast", 0.85, fast), codec("l3-dense1", 0.6, fast / 5)]}
             for target, fast in (("avx2", 300), ("portable", 100))]
    return {"date": "2026-01-02", "commit": "abc", "machine": "a machine", "compiler": "a compiler",
            "folders": ["a", "b"], "runs": runs}


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"][2:]


class Headline(unittest.TestCase):
    def test_table_of_a_target(self) -> None:
        table = headline.target_table(record(), "avx512")
        self.assertEqual(rows(table)[:3], [
            ["PNG (libpng)", "1.000", "1.00", "1.00", "1.25", "50.0"],
            ["PNG (stb_image)", "1.000", "\u2013", "0.50", "\u2013", "25.0"],
            ["JPEG, quality 90 (lossy, 38.2 dB)", "0.200", "1.00", "3.20", "1.25", "160"]])
        self.assertEqual(len(rows(table)), 7)
        self.assertIn("62 files of a and b, 36.5 million pixels", table)
        self.assertIn("Command: `l3 bench FOLDER --rounds 2`", " ".join(table.split()))
        self.assertIn("`L3_CPU=avx2 l3 bench", " ".join(headline.target_table(record(), "avx2").split()))
        self.assertEqual(rows(headline.target_table(record(), "avx2"))[1],
                         ["**l3 fast**", "0.850", "1.00", "7.50", "1.25", "300"])

    def test_summary(self) -> None:
        summary = headline.summary(record())
        self.assertEqual(rows(summary)[-1], ["**l3 dense**", "0.60", "0.10", "2.00"])
        self.assertEqual(len(rows(summary)), 5)
        self.assertIn("Fast and dense (effort 1) decode at 7.50 and 1.50 with AVX2, and at 2.50 and 0.50 on any "
                      "x86-64.", " ".join(summary.split()))
        self.assertLessEqual(max(map(len, summary.splitlines())), 120)

    def test_history(self) -> None:
        line = headline.history_line(record(), record()["runs"][1])
        self.assertEqual(line, "2026-01-02\tabc\ta machine\ta compiler\tavx2\t62 of a+b\t36.5\t"
                               "png=1.0000/1.25/40.0 l3-fast=0.8500/1.25/300 l3-dense1=0.6000/1.25/60.0\n")
        self.assertEqual(line.count("\t"), headline.HISTORY_HEAD.count("\t"))

    def test_documents_are_updated_between_their_marks(self) -> None:
        text = "before\n<!-- bench/headline.py: avx2 -->\nold\n<!-- end -->\nafter\n"
        new = headline.updated(text, record())
        self.assertEqual(new, text.replace("old\n", headline.target_table(record(), "avx2")))
        self.assertEqual(headline.updated(new, record()), new)


class Efforts(unittest.TestCase):
    def record(self) -> dict[str, Any]:
        codecs = [codec(name, 0.5 + place / 100, 10, encode_mpps=20 - place)
                  for place, name in enumerate(efforts.CODECS)]
        run = {"files": 2, "pixels": 1_500_000, "listed_files": 3, "sampled": True, "codecs": codecs}
        memory = {"pixels": 10**8, "sample_bytes": 3 * 10**8, "threads": 2, "peaks": {"l3-dense1": 707_200_000}}
        return {**record(), "runs": [run, run], "memory": memory}

    def test_table(self) -> None:
        table = efforts.table(self.record())
        self.assertEqual(rows(table)[0], ["PNG (libpng)", "0.500", "20.0", "1.00", "0.500", "20.0", "\u2013"])
        self.assertEqual(rows(table)[4], ["l3 dense, effort 1", "0.540", "16.0", "0.80", "0.540", "16.0", "707"])
        self.assertEqual(len(rows(table)), 13)
        self.assertIn("2 of 3 files, 1.5 million pixels", table)

    def test_help(self) -> None:
        lines = efforts.help_lines(self.record())
        self.assertEqual(lines[1].split(), ["effort", *"123456789"])
        self.assertEqual(lines[2].split()[:5], ["size", "/", "PNG", "0.540", "0.550"])
        self.assertEqual(lines[3].split()[:3], ["MP/s", "16.0", "15.0"])
        self.assertLessEqual(max(map(len, lines)), 110)

    def test_document_and_help_are_those_of_the_record(self) -> None:
        kept = json.loads(efforts.RECORD.read_text())
        for path, text in efforts.updated(kept).items():
            self.assertEqual(path.read_text(), text, f"{path.name}: run bench/efforts.py --write")
        self.assertNotIn("dirty", kept["commit"])


class Documents(unittest.TestCase):
    def test_generated_tables_are_those_of_the_record(self) -> None:
        kept = json.loads(headline.RECORD.read_text())
        blocks = []
        for document in headline.DOCUMENTS:
            text = document.read_text()
            self.assertEqual(headline.updated(text, kept), text, f"{document.name}: run bench/headline.py --write")
            blocks += [found[2] for found in headline.BLOCK.finditer(text)]
        self.assertEqual(blocks, ["summary", "avx512", "vnni", "avx2", "sse4", "portable", "efforts", "kinds"])
        history = headline.HISTORY.read_text()
        self.assertTrue(history.startswith(headline.HISTORY_HEAD))
        for run in kept["runs"]:
            self.assertIn(headline.history_line(kept, run), history)
        self.assertNotIn("dirty", kept["commit"])

    def test_the_record_names_no_folders_of_a_machine(self) -> None:
        text = headline.RECORD.read_text() + efforts.RECORD.read_text()
        for part in ('"folder"', '"command"', "/tmp", "/home", "/root"):
            self.assertNotIn(part, text)

    def test_other_figures_stand_in_a_record_that_their_section_links(self) -> None:
        documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
        for document in documents:
            text = headline.BLOCK.sub("", document.read_text())
            text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
            for section in re.split(r"^#+ ", text, flags=re.MULTILINE):
                linked = re.findall(r"\(((?:\.\./)?bench/results/[\w.-]+\.(?:md|json))\)", section)
                records = "".join((document.parent / link).read_text() for link in linked)
                prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", section)
                for figure in FIGURE.findall(prose):
                    if document.name not in ("README.md", "performance.md") and not linked:
                        continue  # other pages: a number that is no measurement
                    number = re.match(r"[\d.]+", figure)
                    assert number is not None
                    with self.subTest(document=document.name, section=section.split("\n")[0], figure=figure):
                        self.assertRegex(records, rf"(?<![\d.]){re.escape(number[0])}(?![\d.]*\d)")

    def test_picture(self) -> None:
        if not PLOT:
            self.skipTest("no --plot PROGRAM")
        figures = headline.tsv(json.loads(headline.RECORD.read_text()))
        drawn = subprocess.run(PLOT, input=figures, capture_output=True, text=True, check=True).stdout
        self.assertEqual((ROOT / "docs" / "size-and-speed.svg").read_text(), drawn, "run bench/headline.py --plot")


if __name__ == "__main__":
    if "--plot" in sys.argv:
        at = sys.argv.index("--plot")
        PLOT = [sys.argv[at + 1]]
        del sys.argv[at : at + 2]
    unittest.main()
