#!/usr/bin/env python3
"""Tests l3 bench: measurements, images that a codec cannot store, and reports.

Usage: command_bench_test.py --l3 PATH"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from command_testing import FAILED, USAGE, CommandTest, chunk, l3_command, main, pgm, png

QUICK = "png,png9,spng,stb,jpeg90,jpeg100,webp,webp90,jxl1,jpegls,qoi,zstd,l3-paper,l3-fast,l3-dense1"
LOSSY = {"jpeg90", "jpeg100", "webp90"}
VOID = {"meta", "input", "br", "hr", "img"}
SVG = "{http://www.w3.org/2000/svg}"


class Page(HTMLParser):
    """The tags of a page, which must be closed in order, and the texts of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.links: list[str] = []
        self.targets: set[str] = set()
        self.title = ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        self.targets |= {value or "" for name, value in attrs if name == "id"}
        if tag in VOID:
            return
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass  # of SVG

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h1":
            self.title += data
        if self.tables and "table" in self.open and self.tables[-1] and self.tables[-1][-1]:
            self.tables[-1][-1][-1] += data


def palette_png(depth: int, text: bytes = b"") -> bytes:
    colours = bytes(range(3 << depth)) if depth < 8 else bytes(i & 255 for i in range(768))
    after = [(b"tEXt", b"k\0" + text)] if text else []
    return png(40, 30, depth, 3, before=[(b"PLTE", colours)], after=after)


def coloured_noise(width: int, height: int) -> bytes:
    rows = [bytes((x * y * 7 + x * 13) & 255 for x in range(3 * width)) for y in range(height)]
    return png(width, height, rows=rows)


class BenchTest(CommandTest):
    def bench(self, *words: Any, code: int = 0) -> dict[str, Any]:
        said = self.l3("bench", self.folder / "src", "--json", "--quiet", *words, code=code)
        self.said = said.stderr.decode()
        return json.loads(said.stdout)

    def by_name(self, report: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Of the codecs whose libraries are there."""
        return {codec["codec"]: codec for codec in report["codecs"] if "absent" not in codec}


class Measuring(BenchTest):
    def test_json(self) -> None:
        for i in range(3):
            self.write(f"src/{i}.png", png(200, 100, seed=i, after=[(b"tEXt", b"k\0v")]))
        self.write("src/g.pgm", pgm(100, 100))
        supplied = sum(path.stat().st_size for path in (self.folder / "src").iterdir())
        for threads in (1, 2):
            report = self.bench("--codecs", "png,l3-fast", "--threads", threads, "--rounds", 2)
            self.assertEqual([codec["codec"] for codec in report["codecs"]], ["png", "l3-fast"])
            for codec in report["codecs"]:
                self.assertTrue(codec["lossless"])
                speeds = ["encode_mpps", "decode_mpps"]
                if threads > 1:
                    speeds += ["encode_all_mpps", "decode_all_mpps"]
                for speed in speeds:
                    least, most = codec[f"{speed}_spread"]
                    self.assertGreater(least, 0)
                    self.assertLessEqual(least, codec[speed])
                    self.assertLessEqual(codec[speed], most)
                self.assertEqual("decode_all_mpps" in codec, threads > 1)
                self.assertAlmostEqual(codec["ratio"], codec["bytes"] / supplied, places=5)
                self.assertAlmostEqual(codec["bits_per_pixel"], 8 * codec["bytes"] / 70000, places=3)
                self.assertRegex(codec["version"], r"^lib(png|l3) \d")
            self.assertEqual((report["files"], report["pixels"], report["threads"]), (4, 70000, threads))
            self.assertEqual((report["sampled"], report["categories"], report["failed"]), (False, [], 0))
            self.assertEqual(report["sample_bytes"], 3 * 60000 + 10000)

    def test_every_codec_gives_back_what_it_holds(self) -> None:
        kinds = {"gray8": png(70, 50, 8, 0), "rgb8": png(70, 50), "rgba8": png(70, 50, 8, 6),
                 "ga8": png(70, 50, 8, 4), "gray1": png(70, 50, 1, 0), "gray2": png(71, 50, 2, 0),
                 "gray4": png(71, 50, 4, 0), "gray16": png(70, 50, 16, 0), "rgb16": png(70, 50, 16, 2),
                 "ga16": png(70, 50, 16, 4), "rgba16": png(70, 50, 16, 6), "p1": palette_png(1), "p4": palette_png(4),
                 "p8": palette_png(8, b"text"), "one": png(1, 1), "noise": coloured_noise(60, 40)}
        eight = {"gray8", "rgb8", "rgba8", "ga8", "one", "noise"}
        deep = {"gray16", "rgb16", "ga16", "rgba16"}
        few = {"gray1", "gray2", "gray4"}
        palettes = {"p1", "p4", "p8"}
        holds = {"stb": eight | deep, "jpeg90": {"gray8", "rgb8", "one", "noise"}, "webp": eight | few | palettes,
                 "webp90": eight | few, "qoi": eight | few | palettes, "l3-paper": eight}
        holds["jpegls"] = set(kinds) - {"ga8", "ga16"}
        holds["jpeg100"] = holds["jpeg90"]
        for kind, data in kinds.items():
            source = self.write(f"{kind}.png", data)
            with self.subTest(kind=kind):
                said = self.l3("bench", source, "--codecs", QUICK, "--rounds", 1, "--threads", 1, "--json",
                               "--no-memory")
                codecs = self.by_name(json.loads(said.stdout))
                self.assertLessEqual({"png", "png9", "jpeg90", "webp", "zstd", "l3-fast", "l3-dense1"}, set(codecs))
                for name, codec in codecs.items():
                    held = kind in holds.get(name, kinds)
                    self.assertEqual(codec["files"], int(held), name)
                    self.assertEqual(sum(codec["not_held"].values()), int(not held), name)
                    self.assertEqual(codec["lossy"], name in LOSSY)
                    if name not in LOSSY:
                        self.assertTrue(codec["lossless"], name)
                    if held:
                        self.assertGreater(codec["bytes"], 0)
                        self.assertGreater(codec["decode_mpps"], 0)
                        self.assertEqual("encode_mpps" in codec, name != "stb")

    def test_what_is_lossy_says_how_much(self) -> None:
        self.write("src/a.png", coloured_noise(200, 100))
        codecs = self.by_name(self.bench("--codecs", "jpeg90,jpeg100,png", "--no-memory"))
        self.assertLess(codecs["jpeg90"]["psnr_db"], codecs["jpeg100"]["psnr_db"])
        self.assertTrue(5 < codecs["jpeg90"]["psnr_db"] < 60)
        self.assertNotIn("psnr_db", codecs["png"])
        self.assertFalse(codecs["jpeg90"]["lossless"])

    def test_a_folder_of_everything(self) -> None:
        self.write("src/a.png", png(60, 40))
        bad = {"cut.png": png(40, 40)[:300], "empty.png": b"", "text.png": b"no image",
               "crc.png": png(20, 20)[:60] + b"\0\0" + png(20, 20)[62:],
               "large.png": b"\x89PNG\r\n\x1a\n"
               + chunk(b"IHDR", struct.pack(">IIBBBBB", 1 << 30, 1 << 30, 8, 2, 0, 0, 0))
               + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")}
        for name, data in bad.items():
            self.write(f"src/{name}", data)
        self.write("src/tiny.png", png(1, 1))
        self.write("src/wide.png", png(17000, 3))
        self.write("src/high.png", png(3, 66000))
        self.write("src/deep.png", png(40, 40, 16, 2))
        self.write("src/twelve.pgm", b"P5 2 1 4095\n\0\1\2\3")
        report = self.bench("--codecs", QUICK, "--rounds", 1, "--no-memory", code=FAILED)
        self.assertEqual((report["files"], report["failed"], report["listed_files"]), (6, len(bad), 11))
        for name in bad:
            self.assertRegex(self.said, rf"l3: \S*src/{name}: offset \d+: ")
        codecs = self.by_name(report)
        self.assertEqual(codecs["webp"]["not_held"], {"16 bits": 1, "12 bits": 1, "an edge beyond 16383": 2})
        self.assertEqual(codecs["webp"]["files"], 2)
        self.assertEqual(codecs["jpeg90"]["not_held"], {"16 bits": 1, "12 bits": 1, "an edge beyond 65500": 1})
        self.assertEqual(codecs["png"]["not_held"], {"12 bits": 1})
        self.assertEqual(codecs["zstd"]["files"], 6)
        table = self.l3("bench", self.folder / "src", "--codecs", "webp", "--rounds", 1, code=FAILED).stdout.decode()
        self.assertIn("webp*", table)
        self.assertIn("an edge beyond 16383", table)

    def test_broken_files_are_named(self) -> None:
        self.write("src/a.png", png(20, 20))
        bad = self.write("src/bad.png", b"x")
        self.assertEqual(self.bench("--rounds", 1, code=FAILED)["files"], 1)
        self.assertIn(f"l3: {bad}: offset 0", self.said)

    def test_nothing_to_measure(self) -> None:
        said = self.l3("bench", self.folder / "none", "--json", code=FAILED)
        self.assertEqual((said.stdout, said.stderr.count(b"\n")), (b"", 1))
        (self.folder / "empty").mkdir()
        said = self.l3("bench", self.folder / "empty", "--out", self.folder / "report", code=FAILED)
        self.assertEqual((said.stdout, said.stderr.count(b"\n")), (b"", 1))

    def test_codecs_come_once_and_in_one_order(self) -> None:
        source = self.write("a.png", png(20, 20))
        said = self.l3("bench", source, "--codecs", "l3-fast,png,png", "--rounds", 1, "--json").stdout
        self.assertEqual([codec["codec"] for codec in json.loads(said)["codecs"]], ["png", "l3-fast"])
        said = self.l3("bench", source, "--codecs", "all", "--rounds", 1, "--json").stdout
        everything = [codec["codec"] for codec in json.loads(said)["codecs"]]
        self.assertLessEqual(set(QUICK.split(",")) | {"jxl3", "jxl7", "l3-dense5", "l3-dense9"}, set(everything))
        self.assertEqual(len(everything), len(set(everything)))
        self.l3("bench", source, "--codecs", "gif", code=USAGE)

    def test_a_model_that_images_share(self) -> None:
        for i in range(30):
            self.write(f"src/{i}.pgm", pgm(28, 28, seed=i % 3))
        self.write("src/rgb.png", png(28, 28))  # the model is not for this one
        model = self.folder / "gray.l3model"
        self.l3("train", self.folder / "src", model, "--colour", "gray")
        words = ("--codecs", "l3-dense5", "--rounds", 1, "--no-memory")
        alone, shared = (self.bench(*words, *more)["codecs"][0] for more in ((), ("--model", model)))
        self.assertTrue(shared["lossless"])
        self.assertLess(shared["bytes"], alone["bytes"])
        said = self.l3("bench", self.folder / "src", "--model", self.folder / "src/0.pgm", code=FAILED)
        self.assertIn(b"0.pgm: offset 1: not a model", said.stderr)

    def test_a_busy_machine(self) -> None:
        self.write("src/a.png", coloured_noise(300, 200))
        processor = {min(os.sched_getaffinity(0))}

        def pin() -> None:
            os.sched_setaffinity(0, processor)

        def measure(others: int) -> tuple[str, dict[str, Any]]:
            words = ("bench", self.folder / "src", "--codecs", "png,qoi,l3-fast", "--threads", 1, "--no-memory",
                     "--rounds", 5)
            spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=pin)
                        for _ in range(others)]
            try:
                table = self.l3(*words, preexec_fn=pin).stdout.decode()
                return table, json.loads(self.l3(*words, "--json", preexec_fn=pin).stdout)
            finally:
                for each in spinning:
                    each.kill()
                    each.wait()

        _, alone = measure(0)
        said, busy = measure(3)
        self.assertRegex(said, r"the machine was busy: work on one thread took \d+\.\d times its processor time")
        self.assertGreater(busy["clock_seconds"], 1.25 * busy["processor_seconds"])
        # A quarter of the processor does not make codecs four times as slow.
        # What shares the caches, or the core, costs something all the same: hence the median and the wide bound.
        shares = [other["decode_mpps"] / one["decode_mpps"]
                  for one, other in zip(alone["codecs"], busy["codecs"], strict=True) if "absent" not in one]
        self.assertGreater(statistics.median(shares), 0.4, shares)

    def test_says_what_brings_codecs_that_are_absent(self) -> None:
        packages = {"spng": "libspng-dev", "stb": "libstb-dev", "jxl1": "libjxl-dev", "jpegls": "libcharls-dev",
                    "qoi": "libqoi-dev"}
        self.write("src/a.png", png(40, 30))
        codecs = self.bench("--codecs", ",".join(packages))["codecs"]
        absent = {codec["codec"]: codec["package"] for codec in codecs if "absent" in codec}
        self.assertEqual(absent, {name: packages[name] for name in absent})
        said = self.l3("bench", self.folder / "src", "--codecs", ",".join(["png", *packages])).stdout.decode()
        self.assertEqual("built without their libraries" in said, bool(absent))
        for name, package in absent.items():
            self.assertRegex(said, rf"without their libraries: .*{name}.* \(on Debian: apt-get install .*{package}")

    def test_a_sample_when_time_is_up(self) -> None:
        data = coloured_noise(100, 100)
        for i in range(1000):
            self.write(f"src/{i}.png", data)
        report = self.bench("--codecs", "png,l3-dense1", "--seconds", 1, "--rounds", 2, "--no-memory")
        self.assertTrue(report["sampled"])
        self.assertTrue(0 < report["files"] < 1000, report["files"])
        self.assertEqual(report["listed_files"], 1000)
        report = self.bench("--codecs", "l3-fast", "--seconds", 0, "--rounds", 1, "--no-memory")
        self.assertEqual((report["files"], report["sampled"]), (1000, False))

    def test_no_image_that_takes_longer_than_there_is_time(self) -> None:
        for i in range(6):
            self.write(f"src/{i}.png", coloured_noise(200, 200))
        row = bytes((x * x * 7 + x * 13) & 255 for x in range(3 * 6000))
        self.write("src/huge.png", png(6000, 4000, rows=[row] * 4000))
        began = time.monotonic()
        report = self.bench("--codecs", "l3-dense1", "--seconds", 1, "--rounds", 1, "--no-memory")
        self.assertTrue(report["sampled"])
        self.assertTrue(1 <= report["files"] <= 6, report["files"])
        self.assertEqual(report["pixels"], report["files"] * 200 * 200)
        self.assertLess(time.monotonic() - began, 60)

    def test_categories(self) -> None:
        self.write("src/b/1.png", png(30, 30))
        self.write("src/b/deep/2.png", png(30, 30, seed=2))
        self.write("src/a/3.png", png(30, 31, seed=3))
        self.write("src/4.png", png(30, 32, seed=4))
        report = self.bench("--codecs", "png,l3-fast", "--rounds", 1, "--no-memory")
        found = [(one["category"], one["files"]) for one in report["categories"]]
        self.assertEqual(found, [(".", 1), ("a", 1), ("b", 2)])
        for key in ("files", "pixels", "bytes", "supplied_bytes"):
            for i, codec in enumerate(report["codecs"]):
                self.assertEqual(codec[key], sum(one["codecs"][i][key] for one in report["categories"]), key)
        self.assertEqual(self.bench("--codecs", "png", "--rounds", 1, "--by", "none")["categories"], [])

    def test_memory(self) -> None:
        self.write("src/a.png", coloured_noise(1000, 700))
        report = self.bench("--codecs", "png,zstd,l3-fast,l3-dense1", "--rounds", 1)
        if not all("decode_memory" in codec for codec in report["codecs"]):
            self.skipTest("this system does not tell")
        self.assertIn("1000 x 700, RGB of 8 bits", report["memory_image"])
        for codec in report["codecs"]:
            # At least the samples that it makes, and not a hundred times as much.
            self.assertTrue(2_000_000 < codec["decode_memory"] < 210_000_000, codec)
            self.assertLess(codec["encode_memory"], 500_000_000)
        self.assertNotIn("decode_memory", self.bench("--codecs", "png", "--rounds", 1, "--no-memory")["codecs"][0])

    def test_the_command_measures_the_same_again(self) -> None:
        for name in ("x y", "b"):
            self.write(f"src/it's {name}/1.png", coloured_noise(50, 50))
        first = self.bench("--codecs", "webp,l3-fast", "--rounds", 2, "--seconds", 0, "--threads", 2, "--no-memory")
        words = shlex.split(first["command"])
        self.assertEqual(words[:2], ["l3", "bench"])
        again = json.loads(self.l3(*words[1:], "--json").stdout)
        self.assertEqual(again["command"], first["command"])
        for a, b in zip(first["codecs"], again["codecs"], strict=True):
            self.assertEqual((a["bytes"], a["files"], a["version"]), (b["bytes"], b["files"], b["version"]))


class Reports(BenchTest):
    def report(self, *words: Any) -> tuple[dict[str, Any], Path]:
        self.write("src/<i>photos&/1.png", coloured_noise(90, 60))
        self.write("src/<i>photos&/2.png", coloured_noise(91, 60))
        self.write("src/labels/3.png", palette_png(4))
        self.write("src/deep/4.png", png(60, 60, 16, 0))
        out = self.folder / "some" / "report"
        return self.bench("--codecs", QUICK, "--rounds", 2, "--threads", 2, "--out", out, *words), out

    def test_the_page_says_what_was_measured(self) -> None:
        results, out = self.report()
        self.assertEqual(json.loads((out / "results.json").read_text()), results)
        text = (out / "report.html").read_text()
        page = Page(text)
        self.assertEqual(page.title, "Image codecs on src")
        for link in page.links:
            self.assertTrue(link.startswith("#"), link)
            self.assertIn(link[1:], page.targets)
        self.assertNotRegex(text.replace("http://www.w3.org/2000/svg", ""), r"https?://|@import|url\(")
        self.assertIn("&lt;i&gt;photos&amp;", text)
        self.assertNotIn("<i>photos", text)
        tables = [table for table in page.tables if table and table[0][:2] == ["codec", "size"]]
        sets = [results, *results["categories"]]
        self.assertEqual(len(tables), len(sets))
        for table, one in zip(tables, sets, strict=True):
            head, *rows = table
            measured = [codec for codec in one["codecs"] if codec.get("files", 0) > 0]
            self.assertEqual(len(rows), len(measured))
            for cells, codec in zip(rows, measured, strict=True):
                row = dict(zip(head, cells, strict=True))
                name, *part = row["codec"].split(" ", 1)
                self.assertEqual(name, codec["codec"])
                self.assertEqual(bool(part), codec["files"] < one["files"], row)
                self.assertAlmostEqual(float(row["size"]), codec["ratio"], delta=0.00011)
                for column, key in (("encode", "encode_mpps"), ("decode", "decode_mpps"),
                                    ("encode, 2 cores", "encode_all_mpps"), ("decode, 2 cores", "decode_all_mpps")):
                    shown = row[column].split(" ")[0]
                    if key in codec:
                        self.assertAlmostEqual(float(shown), codec[key], delta=max(0.006 * codec[key], 0.0006))
                    else:
                        self.assertEqual(shown, "\u2013")
                self.assertTrue(row["lossless"].startswith("lossy" if codec["lossy"] else "yes"), row)
        self.assertIn("16 bits", text)  # what WebP cannot hold
        data = re.search(r'id="figures">(.*?)</script>', text)
        self.assertEqual(json.loads(data[1])["files"], results["files"])

    def test_wide_tables_say_that_they_scroll(self) -> None:
        self.write("src/a.png", png(40, 30))
        out = self.folder / "report"
        self.l3("bench", "-q", self.folder / "src", "--codecs", "png,l3-fast", "--no-memory", "--out", out)
        page = (out / "report.html").read_text()
        self.assertEqual(page.count("<table"), page.count('<div class="wide"><table'))
        for part in ("Scroll sideways for more columns", 'classList.toggle("cut"'):
            self.assertTrue(part in page, part)

    def test_plots(self) -> None:
        results, out = self.report("--no-memory")
        plots = sorted(out.glob("*.svg"))
        self.assertEqual(len(plots), 3 * (1 + len(results["categories"])))
        for path in plots:
            root = ElementTree.fromstring(path.read_text())
            _, _, width, height = map(float, root.get("viewBox").split())
            boxes = []
            for text in root.iter(f"{SVG}text"):
                if not text.get("class").startswith("label") or text.get("text-anchor") != "start":
                    continue
                x, y = float(text.get("x")), float(text.get("y"))
                boxes.append((x, y - 11, x + 7 * len(text.text), y + 4, text.text))
            for i, a in enumerate(boxes):
                self.assertTrue(a[0] >= 0 and a[2] <= width and a[1] >= 0 and a[3] <= height, (path.name, a))
                for b in boxes[:i]:
                    apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
                    self.assertTrue(apart, (path.name, a, b))
            if path.name == "all-decode.svg":
                self.assertEqual({box[4] for box in boxes}, set(self.by_name(results)))

    def test_csv(self) -> None:
        results, out = self.report("--no-memory")
        rows = list(csv.DictReader(io.StringIO((out / "results.csv").read_text())))
        expected = [(name, codec) for name, one in
                    [*((one["category"], one) for one in results["categories"]), ("all", results)]
                    for codec in one["codecs"]]
        self.assertEqual(len(rows), len(expected))
        for row, (category, codec) in zip(rows, expected, strict=True):
            self.assertEqual((row["category"], row["codec"]), (category, codec["codec"]))
            if "absent" in codec:
                continue
            self.assertEqual((int(row["bytes"]), int(row["files"])), (codec["bytes"], codec["files"]))
            if codec["files"] > 0:
                self.assertEqual(float(row["decode_mpps"]), codec["decode_mpps"])

    def test_where_no_report_can_be_written(self) -> None:
        self.write("src/1.png", png(20, 20))
        self.write("file", b"")
        said = self.l3("bench", self.folder / "src", "--codecs", "png", "--out", self.folder / "file", code=FAILED)
        self.assertIn(b"file", said.stderr)


class Training(BenchTest):
    def test_feeds(self) -> None:
        for i in range(9):
            self.write(f"src/{i}.png", coloured_noise(96, 64))
        self.write("src/other.png", png(20, 20))
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            report = self.bench("--codecs", "png", "--rounds", 1, "--training", "--step-ms", 2, "--threads", 2,
                                "--no-memory", "--scratch", scratch, "--out", self.folder / "report")
            self.assertEqual(list(Path(scratch).iterdir()), [])
        training = report["training"]
        self.assertIn("9 images of 96 x 64, RGB of 8 bits", training["about"])
        self.assertEqual((training["images"], training["threads"], training["step_seconds"]), (9, 2, 0.002))
        names = [feed["feed"] for feed in training["feeds"] if "GPU" not in feed["feed"]]
        self.assertEqual(names, ["PNG files", "JPEG files, quality 90", "WebP files, lossless", "l3 files, fast",
                                 "l3 files, dense", "l3 shards, fast", "l3 shards, dense"])
        for feed in training["feeds"]:
            self.assertGreater(feed["warm"], 0)
            self.assertGreater(feed["cold"], 0)
            self.assertTrue(0 <= feed["stalled"] <= 1)
            self.assertEqual(feed["lossy"], "JPEG" in feed["feed"])
        page = Page((self.folder / "report" / "report.html").read_text())
        self.assertIn("training", page.targets)

    def test_what_jpeg_cannot_hold_is_no_feed(self) -> None:
        for i in range(4):
            self.write(f"src/{i}.png", png(64, 64, 16, 0, seed=i))
        report = self.bench("--codecs", "png", "--rounds", 1, "--training", "--threads", 2, "--no-memory")
        names = [feed["feed"] for feed in report["training"]["feeds"]]
        self.assertNotIn("JPEG files, quality 90", names)
        self.assertNotIn("WebP files, lossless", names)
        self.assertIn("l3 shards, dense", names)

    def test_no_folder_to_write_to(self) -> None:
        self.write("src/1.png", png(20, 20))
        report = self.bench("--codecs", "png", "--rounds", 1, "--training", "--scratch", self.folder / "none",
                            code=FAILED)
        self.assertNotIn("training", report)
        self.assertIn("none", self.said)

    def test_a_signal_leaves_no_files(self) -> None:
        for i in range(30):
            self.write(f"src/{i}.png", coloured_noise(300, 200))
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            words = ["bench", str(self.folder / "src"), "--codecs", "png", "--rounds", "9", "--training", "--no-memory",
                     "--scratch", scratch]
            with subprocess.Popen([l3_command(), *words], stdout=subprocess.DEVNULL) as process:
                deadline = time.monotonic() + 60
                while not list(Path(scratch).rglob("*.l3")) and time.monotonic() < deadline:
                    time.sleep(0.05)
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(60), -signal.SIGTERM)
            self.assertEqual([path for path in Path(scratch).rglob("*") if path.is_file()], [])


if __name__ == "__main__":
    unittest.TestCase.maxDiff = None
    main()
