#!/usr/bin/env python3
"""Tests the l3 command with data sets: how images are converted and reported, and the output of ls, cat, info, export.

Usage: command_sets_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import re
import struct
import subprocess
import zlib
from pathlib import Path

from command_testing import DONE, FAILED, USAGE, chunk, l3_command, main, pgm, png, png_chunks
from sets_testing import SetTest, contents, rows_of_png

HEAD, FOOTER = 4096, 64


def photograph(width: int, height: int) -> bytes:
    """Smooth, with the noise of a sensor."""
    source = random.Random(7)
    return png(width, height, rows=[bytes((x // 3 + y + source.randrange(5)) & 0xFF for x in range(3 * width))
                                    for y in range(height)])


def instances(width: int, height: int) -> bytes:
    """Numbers of objects above 255, as Cityscapes has them."""
    numbers = (0, 7, 24000, 24001, 26013)
    return png(width, height, 16, 0, rows=[b"".join(struct.pack(">H", numbers[(x // 9 + y // 7) % 5])
                                                    for x in range(width)) for y in range(height)])


def mask(width: int, height: int) -> bytes:
    palette = bytes(range(63)) + b"\xff\xff\xff"
    return png(width, height, 8, 3, [(b"gAMA", struct.pack(">I", 45455)), (b"PLTE", palette), (b"tRNS", b"\0\x80")],
               [(b"tEXt", b"Title\0a mask"), (b"zTXt", b"Note\0\0" + zlib.compress(b"long"))],
               rows=[bytes((x // 5 + y // 6) % 22 for x in range(width)) for y in range(height)])


GOOD = {
    "a/photo.png": photograph(61, 45),
    "a/instances.png": instances(50, 41),
    "b/mask.png": mask(52, 33),
    "b/depth.png": png(40, 30, 16, 0, [(b"pHYs", struct.pack(">IIB", 1, 2, 0))]),
    "c/deep/er/alpha.png": png(33, 21, 8, 6),
    "c/bits.png": png(64, 19, 1, 0, after=[(b"tEXt", b"k\0v")]),
    "c/gray alpha.PNG": png(16, 9, 8, 4),
    "top.png": png(5, 3, 16, 2),
}
CORRUPT = {
    "a/cut.png": GOOD["a/photo.png"][:-300],
    "b/empty.png": b"",
    "c/text.png": b"no image at all",
    "c/wrong check.png": GOOD["b/mask.png"][:29] + bytes(4) + GOOD["b/mask.png"][33:],
    "d/size.png": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 0, 1, 8, 0, 0, 0, 0)),
}


class Contents(SetTest):
    def good(self) -> None:
        for name, data in GOOD.items():
            self.write(f"src/{name}", data)

    def both(self) -> None:
        self.good()
        for name, data in CORRUPT.items():
            self.write(f"src/{name}", data)
        self.write("src/readme.txt", b"ignored")

    def assert_comes_back(self, count: int = len(GOOD)) -> None:
        out = self.folder / "out"
        self.l3("export", self.set, out)
        self.assertEqual(len(contents(out)), count)
        for name, data in GOOD.items():
            back = (out / name).read_bytes()
            self.assertEqual(rows_of_png(back), rows_of_png(data), name)
            self.assertEqual(sorted(png_chunks(back)), sorted(png_chunks(data)), name)

    def test_a_mixed_tree_comes_back(self) -> None:
        self.good()
        said = self.convert().stdout.decode()
        self.assertRegex(said, r"\A8 files converted: [\d.]+ kB -> [\d.]+ kB, ratio [\d.]+, [\d.]+ MP/s\n"
                               r"the data set contains 8 samples in 1 shard: [\d.]+ kB\n")
        self.assertEqual(sorted(contents(self.set)), ["index.json", "shard-00000.l3s"])
        self.assert_whole()
        self.l3("verify", self.set, "--against", self.source)
        self.assert_comes_back()
        self.assertEqual(self.names(), sorted(GOOD))
        self.assertEqual(self.classes(), ["a", "b", "c"])
        labels = {entry["name"]: (entry.get("label"), entry.get("class")) for entry in self.entries()}
        self.assertEqual(labels["c/deep/er/alpha.png"], (2, "c"))
        self.assertEqual(labels["top.png"], (None, None))

    def test_corrupt_files_are_skipped_and_named(self) -> None:
        self.both()
        done = self.convert("--on-error", "skip", code=FAILED)
        self.assertRegex(done.stdout.decode(), r"\A8 files converted: .*; 1 other file ignored: 1 \.txt; 5 failed\n")
        said = done.stderr.decode().splitlines()
        table = [line.split("\t") for line in (self.set / "errors.tsv").read_text().splitlines()]
        self.assertEqual(table[0], ["file", "offset", "reason"])
        self.assertEqual([row[0] for row in table[1:]], [str(self.source / name) for name in sorted(CORRUPT)])
        self.assertEqual(len(said), len(CORRUPT))
        for line, (file, offset, reason) in zip(said, table[1:], strict=True):
            self.assertEqual(line, f"l3: {file}: " + (f"offset {offset}: " if offset else "") + reason)
        self.assert_whole()
        self.l3("verify", self.set, "--against", self.source, "--subset")
        missing = self.l3("verify", self.set, "--against", self.source, code=FAILED).stderr
        self.assertEqual(missing.count(b"is not in the data set"), len(CORRUPT))
        self.assert_comes_back()
        report = self.folder / "report.tsv"
        self.convert("--on-error", "skip", "--report", report, "--force", code=FAILED)
        self.assertEqual(report.read_bytes(), (self.set / "errors.tsv").read_bytes())

    def test_stops_at_the_first_failure_and_goes_on(self) -> None:
        self.both()
        for name in sorted(CORRUPT):
            self.assertIn(f"{name}: ", self.refused("--resume", "-j3"))
            self.l3("ls", self.set, code=FAILED)
            if "text" in name or "size" in name:
                self.write(f"src/{name}", png(3, 3))
            else:
                (self.source / name).unlink()
        self.convert("--resume")
        self.assert_whole()
        self.l3("verify", self.set, "--against", self.source)
        self.assert_comes_back(len(GOOD) + 2)

    def test_the_first_failure_is_counted(self) -> None:
        self.both()
        self.assertIn(b"; 1 failed", self.convert(code=FAILED).stdout)
        events = [json.loads(line) for line in self.convert("--resume", "--json", code=FAILED).stdout.splitlines()]
        self.assertEqual((events[-1]["finished"], events[-1]["failed"]), (False, 1))

    def test_a_report_that_cannot_be_written_is_a_failure(self) -> None:
        self.images(2)
        said = self.refused("--report", self.folder / "none" / "report.tsv")
        self.assertIn("report.tsv: cannot create", said)

    def test_an_old_report_goes(self) -> None:
        self.images(2)
        bad = self.write("src/bad.png", b"bad")
        self.convert("--on-error", "skip", code=FAILED)
        bad.unlink()
        self.convert("--force")
        self.assertEqual(sorted(contents(self.set)), ["index.json", "shard-00000.l3s"])

    def test_json_events(self) -> None:
        self.both()
        lines = self.convert("--on-error", "skip", "--json", code=FAILED).stdout.decode().splitlines()
        events = [json.loads(line) for line in lines]
        self.assertEqual(events[0], {"event": "begin", "groups": 13, "files": 13, "kept_groups": 0,
                                     "bytes": sum(map(len, (GOOD | CORRUPT).values()))})
        self.assertEqual([event["file"] for event in events if event["event"] == "failure"],
                         [str(self.source / name) for name in sorted(CORRUPT)])
        end = events[-1]
        keys = ("event", "finished", "files", "failed", "ignored", "not_begun", "shards")
        self.assertEqual([end[key] for key in keys], ["end", True, 8, 5, 1, 0, 1])
        self.assertEqual(end["bytes"], (self.set / "shard-00000.l3s").stat().st_size)

    def test_json_of_what_is_whole(self) -> None:
        self.images(2)
        self.convert()
        for line in self.convert("--resume", "--json").stdout.splitlines():
            json.loads(line)

    def test_bytes_do_not_depend_on_threads(self) -> None:
        self.good()
        self.images(40)
        seen = []
        for i, jobs in enumerate((1, 2, 5)):
            out = self.folder / f"set{i}"
            self.convert(f"-j{jobs}", "--shard-size", 10000, to=out)
            seen.append(contents(out))
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])
        self.assertGreater(len(seen[0]), 3)
        self.convert()
        self.assertEqual(self.what_is_in(), self.what_is_in(self.folder / "set0"))
        shards = json.loads((self.folder / "set0" / "index.json").read_text())["shards"]
        self.assertEqual([shard["file"] for shard in shards], sorted(name for name in seen[0] if name != "index.json"))
        self.assertTrue(all(shard["bytes"] <= 10000 for shard in shards if shard["samples"] > 1))

    def test_a_shard_for_each_sample(self) -> None:
        self.images(7)
        self.convert("--shard-size", 1)
        self.assertEqual(len(contents(self.set)), 8)
        self.assert_whole()
        self.l3("verify", self.set / "shard-00003.l3s")
        self.assertEqual(self.names(self.set / "shard-00003.l3s"), ["0003.png"])


class Reading(SetTest):
    def alike(self) -> None:
        """Small images that a model helps."""
        for i in range(36):
            noise = random.Random(i)
            rows = [bytes((x * y + i) % 7 * 9 + 40 + noise.randrange(4) for x in range(64)) for y in range(64)]
            self.write(f"src/{i % 2}/{i:02}.png", png(64, 64, 8, 0, rows=rows))
        self.l3("convert", self.source, self.set, "--method", "dense", "--effort", 1, "--shared-model", "on")

    def test_models_are_shared_where_they_pay(self) -> None:
        # Columns in an order that no default model knows.
        for i in range(64):
            noise = random.Random(i)
            pixels = bytes((x + i) * 37 % 11 * 20 + (y * x & 3) * 3 + noise.randrange(3)
                           for y in range(28) for x in range(28))
            self.write(f"src/{i:03}.pgm", b"P5\n28 28\n255\n" + pixels)
        sizes = {}
        for shared in ("auto", "off"):
            self.l3("convert", self.source, self.set, "--effort", 1, "--shared-model", shared, "--force")
            info = json.loads(self.l3("info", "--json", self.set).stdout)
            self.assertEqual(info["models"] > 0, shared == "auto")
            sizes[shared] = info["bytes"]
            self.l3("verify", self.set, "--against", self.source)
        self.assertLess(sizes["auto"], sizes["off"])

    def test_verifying_shows_no_ratio(self) -> None:
        picture = png(1200, 1200)
        for i in range(20):
            self.write(f"in/{i}.png", picture)
        self.l3("convert", "-q", self.folder / "in", self.set, "--method", "fast", "--no-verify")
        try:
            ours, its = pty.openpty()
        except OSError as error:
            self.skipTest(f"there are no terminals here: {error}")
        subprocess.run([l3_command(), "verify", "-j1", self.set], stdout=subprocess.DEVNULL, stderr=its, check=True)
        os.close(its)
        said = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(ours, 4096):
                said += part
        os.close(ours)
        self.assertIn(b"/20 files", said)
        self.assertNotIn(b"ratio", said)

    def test_shared_models_and_cat(self) -> None:
        self.alike()
        self.l3("verify", self.set, "--against", self.source)
        info = json.loads(self.l3("info", "--json", self.set).stdout)
        self.assertEqual([info[key] for key in ("samples", "groups", "shards", "models")], [36, 36, 1, 1])
        with_model = info["samples_with_model"]
        self.assertGreater(with_model, 20)
        self.assertEqual(info["classes"], ["0", "1"])
        text = self.l3("info", self.set).stdout.decode()
        self.assertRegex(text, rf"(?m)^models +1, shared by {with_model} samples$")
        self.assertRegex(text, r"(?m)^labels +2 with names, of 36 samples: 18 to 18 each$")
        self.assertRegex(text, r"(?m)^layouts +gray 8: 36 samples, ")
        # A sample that names the model grows by it.
        grown = [entry for entry in self.entries()
                 if len(self.l3("cat", self.set, entry["name"]).stdout) > entry["size"]]
        self.assertEqual(len(grown), with_model)
        name = str(grown[-1]["name"])
        out = self.folder / "one.l3"
        self.l3("cat", self.set, name, out)
        self.assertEqual(self.l3("cat", self.set, name).stdout, out.read_bytes())
        self.l3("verify", out, "--against", self.source / name)
        self.l3("decode", out, self.folder / "one.png")
        self.assertEqual(rows_of_png((self.folder / "one.png").read_bytes()),
                         rows_of_png((self.source / name).read_bytes()))
        said = self.l3("cat", self.set, name, self.folder / "two.png", code=USAGE).stderr
        self.assertIn(b"cat writes images as L3 files: write .l3, or use a pipe: l3 cat SET NAME | l3 decode", said)
        self.assertFalse((self.folder / "two.png").exists())
        self.assertRegex(self.l3("verify", self.set).stdout, rb"^OK .+: 36 samples OK\n$")
        self.assertEqual(self.l3("verify", "-q", self.set).stdout, b"")
        self.assertIn(b"no sample has the name 1/70.png", self.l3("cat", self.set, "1/70.png", code=FAILED).stderr)
        self.l3("export", self.set, self.folder / "out")
        self.assertEqual(len(contents(self.folder / "out")), 36)
        before = contents(self.set)
        self.l3("convert", self.source, self.set, "--method", "dense", "--effort", 1, "--shared-model", "on", "--force",
                "-j1")
        self.assertEqual(contents(self.set), before)

    def test_images_of_another_set_are_refused(self) -> None:
        """Of two sets whose samples have equal sizes, the samples of one in the other: an interrupted copy."""
        shards = []
        for name in ("ours", "theirs"):
            for i in range(3):
                rows = [random.Random(f"{name} {i} {y}").randbytes(40) for y in range(30)]
                self.write(f"{name}-png/{i}.png", png(40, 30, 8, 0, rows=rows))
            self.l3("convert", self.folder / f"{name}-png", self.folder / name, "--method", "fast")
            shards.append(self.folder / name / "shard-00000.l3s")
        ours, theirs = (bytearray(shard.read_bytes()) for shard in shards)
        end = int.from_bytes(ours[-48:-40], "little")
        self.assertEqual(end, int.from_bytes(theirs[-48:-40], "little"))
        ours[HEAD:end] = theirs[HEAD:end]

        def expect_refused(reason: str) -> None:
            shards[0].write_bytes(ours)
            out = self.folder / "out"
            for words in (["cat", shards[0], "1.png", out], ["verify", shards[0]],
                          ["export", "--on-error", "skip", shards[0], out]):
                said = self.l3(*words, code=FAILED).stderr.decode()
                self.assertRegex(said, rf"{shards[0]}: ([^ ]+\.png: )?offset")
                self.assertIn(reason, said)
                self.assertFalse(out.is_file() or list(out.rglob("*.png")))

        expect_refused("the check of a sample does not match")
        # Even where the index has the checks of the wrong samples.
        for entry in range(end, end + 3 * 80, 80):
            ours[entry + 32:entry + 36] = theirs[entry + 32:entry + 36]
        ours[-20:-16] = zlib.crc32(ours[end:-64]).to_bytes(4, "little")
        ours[-4:] = zlib.crc32(ours[-64:-4]).to_bytes(4, "little")
        expect_refused("the digest of an image differs from the index")

    def test_ls(self) -> None:
        self.write("src/x/a.png", png(7, 5))
        self.write("src/y/b.pgm", pgm(6, 4))
        self.convert()
        self.assertEqual(self.l3("ls", self.set).stdout, b"x/a.png\ny/b.pgm\n")
        rows = [line.split("\t") for line in self.l3("ls", "-l", self.set).stdout.decode().splitlines()]
        self.assertEqual([row[:1] + row[2:] for row in rows],
                         [["x/a.png", "7x5 rgb 8", "image", "x"], ["y/b.pgm", "6x4 gray 8", "image", "y"]])
        first, second = self.entries()
        self.assertEqual([int(row[1]) for row in rows], [first["size"], second["size"]])
        self.assertEqual((first["offset"], first["shard"], second["group"], second["class"]), (HEAD, 0, 1, "y"))
        self.assertEqual(self.l3("ls", self.set / "shard-00000.l3s").stdout, b"x/a.png\ny/b.pgm\n")

    def test_export_keeps_and_replaces(self) -> None:
        self.images(3)
        self.convert()
        out = self.folder / "out"
        self.l3("export", self.set, out)
        before = contents(out)
        said = self.l3("export", self.set, out, code=FAILED).stderr.decode()
        self.assert_one_line(said, r"0000\.png: exists already, and so do others; ")
        (out / "0001.png").write_bytes(b"mine")
        (out / "0002.png").unlink()
        self.assertRegex(self.l3("export", "--resume", self.set, out).stdout, rb"^1 file exported: .*; 2 already done")
        self.assertEqual(contents(out), before | {"0001.png": b"mine"})
        self.l3("export", "--force", self.set, out)
        self.assertEqual(contents(out), before)

    def test_export_finds_names_for_other_formats(self) -> None:
        for name in ("a.pgm", "b.png", "b.pgm"):
            self.write(f"src/{name}", pgm(4, 4) if name.endswith("pgm") else png(4, 4))
        self.convert()
        self.l3("export", self.set, self.folder / "out")
        self.assertEqual(sorted(contents(self.folder / "out")), ["a.png", "b.pgm.png", "b.png"])

    def test_export_of_depths_that_png_has_not(self) -> None:
        def samples(count: int, most: int) -> bytes:
            values = [37 * i % (most + 1) for i in range(count)]
            return b"".join(value.to_bytes(2 if most > 255 else 1, "big") for value in values)

        sources = {
            "a.pgm": b"P5\n4 3\n4095\n" + samples(12, 4095),
            "b.ppm": b"P6\n4 3\n511\n" + samples(36, 511),
            "c.pam": b"P7\nWIDTH 4\nHEIGHT 3\nDEPTH 4\nMAXVAL 16383\nTUPLTYPE RGB_ALPHA\nENDHDR\n" + samples(48, 16383),
            "d.ppm": b"P6\n4 3\n31\n" + samples(36, 31),
            "e.pgm": b"P5\n4 3\n255\n" + samples(12, 255),
        }
        for name, data in sources.items():
            self.write(f"src/{name}", data)
        self.convert()
        mirror = self.folder / "mirror"
        self.l3("convert", "--files", self.source, mirror)
        for source, out in ((self.set, self.folder / "out"), (mirror, self.folder / "out of files")):
            self.l3("export", source, out)
            exported = contents(out)
            self.assertEqual(sorted(exported), ["a.pgm", "b.ppm", "c.pam", "d.ppm", "e.png"])
            for name in ("a.pgm", "b.ppm", "c.pam", "d.ppm"):
                self.assertEqual(exported[name], sources[name], name)
            self.assertRegex(self.l3("export", "--resume", source, out).stdout, rb"^0 files .*; 5 already done")

    def test_export_where_a_folder_has_the_name_of_a_file(self) -> None:
        self.write("src/a.pgm", pgm(4, 4))
        self.write("src/a.png/b.pgm", pgm(4, 4))
        self.convert()
        self.l3("export", self.set, self.folder / "out")
        self.assertEqual(len(contents(self.folder / "out")), 2)

    def test_export_into_the_set_itself(self) -> None:
        self.write("src/index.png", png(4, 4))
        self.write("src/index.json", b"{}")
        self.convert("--group", "stem")
        self.l3("export", self.set, self.set, code=FAILED)
        subprocess.run([l3_command(), "export", "--force", self.set, self.set], capture_output=True, timeout=60)
        self.assert_whole()

    def test_against_compares_what_is_no_image(self) -> None:
        self.write("src/a.png", png(4, 4))
        text = self.write("src/a.txt", b"as it was")
        self.convert("--group", "stem")
        self.l3("verify", self.set, "--against", self.source)
        text.write_bytes(b"different")
        said = self.l3("verify", self.set, "--against", self.source, code=FAILED).stderr
        self.assertIn(b"a.txt", said)


class Damage(SetTest):
    def setUp(self) -> None:
        super().setUp()
        for i in range(3):
            self.write(f"src/{i}/{i}.png", png(9 + i, 9, seed=i))
            self.write(f"src/{i}/{i}.txt", b"text %d" % i)
        self.convert("--group", "stem")
        self.shard, self.index = self.set / "shard-00000.l3s", self.set / "index.json"

    def verdict(self, *words: object) -> int:
        """0 or 1; anything else is a crash. It must not take long."""
        result = subprocess.run([l3_command(), *map(str, words)], capture_output=True, timeout=30)
        self.assertIn(result.returncode, (DONE, FAILED), (words, result.stderr))
        if result.returncode == FAILED:
            self.assertTrue(result.stderr.startswith(b"l3: "))
        return result.returncode

    def assert_refused(self, data: bytes, path: Path, what: str) -> None:
        good = path.read_bytes()
        path.write_bytes(data)
        self.assertEqual(self.verdict("verify", self.set), FAILED, what)
        for words in (["ls"], ["info"], ["cat", "0/0.png"]):
            self.verdict(words[0], self.set, *words[1:])
        path.write_bytes(good)

    def test_every_region_of_a_shard(self) -> None:
        data = self.shard.read_bytes()
        begin, size = struct.unpack_from("<QQ", data, len(data) - FOOTER + 16)
        entries = self.entries()
        places = {"signature": 2, "version": 8, "reserved": 20, "head": 100, "end of head": HEAD - 1,
                  "first sample": HEAD + 8, "in a sample": HEAD + entries[0]["size"] - 9,
                  "gap": entries[0]["offset"] + entries[0]["size"],
                  "text": entries[1]["offset"] + 1, "last gap": begin - 1}
        source = random.Random(1)
        places |= {f"index {i}": begin + source.randrange(size) for i in range(6)}
        places |= {f"footer {i}": len(data) - FOOTER + 4 * i for i in range(0, 16, 2)}
        for what, at in places.items():
            broken = bytearray(data)
            broken[at] ^= 1 << source.randrange(8)
            self.assert_refused(bytes(broken), self.shard, f"{what} at {at}")
        for what, other in (("empty", b""), ("cut", data[:-1]), ("longer", data + b"\0"), ("short", data[:5000]),
                            ("head only", data[:HEAD])):
            self.assert_refused(other, self.shard, what)
        self.shard.unlink()
        self.assertEqual(self.verdict("ls", self.set), FAILED)

    def test_index(self) -> None:
        text = self.index.read_text()
        for pattern, other in ((r'"l3 data set"', '"l3 data sets"'), (r'"version": ?1', '"version": 2'),
                               (r'"samples": ?6', '"samples": 7'), (r'"groups": ?3', '"groups": 18446744073709551619'),
                               (r'"index_check": ?\d', '"index_check": -1'), (r'"digest": ?"..', '"digest": "zz'),
                               (r"shard-00000", "../shard-0000"), (r'"bytes": ?\d', '"bytes": 1e3'),
                               (r'"0"', '"\\ud800"'), (r"\}\s*\Z", ""), (r"\A\{", "[" * 5000), (r"\}\s*\Z", "} x")):
            changed, count = re.subn(pattern, other.replace("\\", r"\\"), text, count=1)
            self.assertEqual(count, 1, pattern)
            self.assert_refused(changed.encode(), self.index, pattern)
        self.assert_refused(b"", self.index, "empty")
        self.assert_refused(text.encode()[:len(text) // 2], self.index, "cut")


if __name__ == "__main__":
    main()
