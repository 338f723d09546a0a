#!/usr/bin/env python3
"""Tests the sources of l3 convert: folders, lists, pairs, groups, and names of every kind.

Usage: command_sets_sources_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from pathlib import Path

from command_testing import APPLE_DOUBLE, DONE, FAILED, USAGE, l3_command, main, pgm, png
from sets_testing import SetTest, contents

SMALL = png(8, 8)


def tiff(*pages: tuple[int, int, bytes], orientation: int = 1) -> bytes:
    """Gray pages of 8 bits: width, height and samples of each."""
    data, link = b"II*\0" + bytes(4), 4
    for width, height, samples in pages:
        strip = len(data)
        data += samples + bytes(len(samples) % 2)
        tags = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, strip), (274, orientation), (277, 1),
                (278, height), (279, len(samples))]
        data = data[:link] + struct.pack("<I", len(data)) + data[link + 4:]
        data += struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
        link = len(data)
        data += bytes(4)
    return data


class Pages(SetTest):
    def setUp(self) -> None:
        super().setUp()
        self.pages = [(4, 3, bytes(range(12))), (2, 2, b"abcd"), (1, 5, b"vwxyz")]
        self.write("src/a.tif", tiff(*self.pages))
        self.write("src/b.tiff", tiff(self.pages[0], orientation=6))
        self.write("src/c.png", SMALL)

    def test_several_pages_are_refused(self) -> None:
        self.assertRegex(self.refused(), r"a\.tif: offset \d+: a TIFF of 3 pages instead of one .*--pages")
        for words in (("--files", "--pages"), ("--pages", "--group", "stem"), ("--pages", "--pair", "x={}.tif")):
            self.convert(*words, code=USAGE, to=self.folder / "x")

    def test_pages_are_samples(self) -> None:
        self.convert("--pages")
        self.assertEqual(self.names(), ["a#1.tif", "a#2.tif", "a#3.tif", "b.tiff", "c.png"])
        for number, (width, height, samples) in enumerate(self.pages, 1):
            self.l3("cat", self.set, f"a#{number}.tif", self.folder / "x.l3")
            self.l3("decode", self.folder / "x.l3", self.folder / "x.pgm")
            expected = b"P5\n%d %d\n255\n" % (width, height) + samples
            self.assertEqual((self.folder / "x.pgm").read_bytes(), expected)
        self.l3("verify", self.set, "--against", self.source)
        self.assert_whole()

    def test_verify_tells_pages_that_changed(self) -> None:
        self.convert("--pages")
        self.write("src/a.tif", tiff(*self.pages, (1, 1, b"x")))
        said = self.l3("verify", self.set, "--against", self.source, code=FAILED).stderr.decode()
        self.assertRegex(said, r"a\.tif: page 4 is not in the data set")
        self.write("src/a.tif", tiff(self.pages[0], (2, 2, b"abcX"), self.pages[2]))
        said = self.l3("verify", self.set, "--against", self.source, code=FAILED).stderr.decode()
        self.assertRegex(said, r"a#2\.tif: differs from .*a\.tif")

    def test_a_page_does_not_take_the_name_of_a_file(self) -> None:
        self.write("src/a#2.tif", tiff(self.pages[0]))
        self.assert_one_line(self.refused("--pages"), "has the same name as a page of another file")


class Labels(SetTest):
    def test_folders_become_classes(self) -> None:
        for name in ("cat/1.png", "dog/2.png", "dog/deep/3.png", "4.png"):
            self.write(f"src/{name}", SMALL)
        self.write("src/empty/notes.txt", b"no class, for it has no image")
        self.convert()
        self.assertEqual(self.classes(), ["cat", "dog"])
        self.assertEqual([entry.get("class") for entry in self.entries()], [None, "cat", "dog", "dog"])
        self.convert("--labels", "none", "--force")
        self.assertEqual(self.classes(), [])
        self.assertEqual([entry.get("label") for entry in self.entries()], [None] * 4)

    def test_a_single_folder_tells_nothing_apart(self) -> None:
        self.write("src/only/1.png", SMALL)
        self.convert()
        self.assertEqual(self.classes(), [])
        self.convert("--labels", "folder", "--force")
        self.assertEqual(self.classes(), ["only"])

    def test_a_class_behind_the_others_is_accepted(self) -> None:
        for name in ("a/1.png", "b/1.png"):
            self.write(f"src/{name}", SMALL)
        self.write("src/c/1.png", b"corrupt")
        self.convert(code=FAILED)
        (self.source / "c" / "1.png").unlink()
        self.write("src/d/1.png", SMALL)
        self.convert("--resume")
        self.assertEqual(self.classes(), ["a", "b", "d"])

    def test_a_label_without_a_name(self) -> None:
        self.write("src/a/1.png", SMALL)
        self.write("src/a/1.cls", b"7\n")
        self.write("src/b/2.png", SMALL)
        result = subprocess.run([l3_command(), "convert", self.source, self.set, "--group", "stem", "-q"],
                                capture_output=True, timeout=60)
        if result.returncode == DONE:
            self.l3("verify", self.set)

    def test_classes_that_are_no_utf8(self) -> None:
        for name in (b"\xff", b"b"):
            folder = os.fsencode(self.source) + b"/" + name
            os.makedirs(folder)
            Path(os.fsdecode(folder + b"/1.png")).write_bytes(SMALL)
        self.assert_one_line(self.refused(), "must be UTF-8 \(--labels none")
        self.convert("--labels", "none")
        self.assert_whole()


class Lists(SetTest):
    def setUp(self) -> None:
        super().setUp()
        self.images(4)
        self.write("src/sub/x.pgm", pgm(3, 3))
        self.write("src/note.txt", b"no image")
        self.list = self.folder / "list.txt"

    def test_order_and_classes(self) -> None:
        text = "sub/x.pgm\tz\n0002.png\ta b\r\n\n0000.png\n0003.png\tz"
        self.list.write_text(text)
        self.convert("--list", self.list)
        self.assertEqual([(entry["name"], entry.get("class")) for entry in self.entries()],
                         [("sub/x.pgm", "z"), ("0002.png", "a b"), ("0000.png", None), ("0003.png", "z")])
        self.assertEqual(self.classes(), ["a b", "z"])
        self.l3("verify", self.set, "--against", self.source, "--subset")
        self.l3("verify", self.set, "--against", self.source, code=FAILED)
        self.convert("--list", "-", to=self.folder / "other", input=text.encode())
        self.assertEqual(contents(self.set), contents(self.folder / "other"))
        self.list.write_text("0001.png\n0000.png\n")
        self.convert("--list", self.list, "--force")
        self.assertEqual(self.names(), ["0001.png", "0000.png"])
        self.assertEqual(self.classes(), [])

    def test_what_is_wrong_with_a_list(self) -> None:
        for line, reason in (("../x.png", "line 2: not a path below"), ("/etc/x.png", "line 2: not a path below"),
                             ("./0001.png", "line 2: not a path below"), ("0000.png", "occurs twice"),
                             ("none.png", r"none\.png: cannot open"), ("none", "none: cannot open"),
                             ("sub", "sub: is a folder, but the list must"), ("n" * 5000, "longer than 4096 bytes"),
                             ("0001.png 7", "No such file or directory; 0001.png exists: write a tab, not a space"),
                             ("note.txt", "note.txt: offset 0: unknown image format")):
            self.list.write_text(f"0000.png\n{line}\n")
            self.assertRegex(self.refused("--list", self.list, "--force"), reason)
        self.list.write_bytes(b"")
        self.assert_one_line(self.refused("--list", self.list, to=self.folder / "new"), "list.txt: names no images")
        self.assert_one_line(self.refused("--list", self.folder / "nowhere", to=self.folder / "new"), "cannot open")
        self.assertFalse((self.folder / "new").exists())

    def test_what_a_list_names_is_never_left_out_in_silence(self) -> None:
        self.write("src/odd", SMALL)
        self.write("src/scan.dcm", png(5, 5))
        self.list.write_text("odd\nscan.dcm\n0000.png\n")
        for group in ("none", "stem"):
            self.convert("--list", self.list, "--group", group, "--force")
            self.assertEqual(self.names(), ["odd", "scan.dcm", "0000.png"])
            self.l3("verify", self.set, "--against", self.source, "--subset")
        self.list.write_text("gone1.png\n0000.png\ngone2\n0001.png\n")
        said = self.refused("--list", self.list, "--force")
        self.assertEqual(said.count("cannot open: No such file"), 2)
        said = self.convert("--list", self.list, "--force", "--on-error", "skip", code=FAILED).stderr
        self.assertEqual(said.count(b"cannot open: No such file"), 2)
        self.assertEqual(self.names(), ["0000.png", "0001.png"])
        self.list.write_text("0000.png\n0001.png\n")
        said = self.refused("--list", self.list, "--pair", "image={}0.png", to=self.folder / "other")
        self.assertIn("0001.png: matches no pattern of --pair", said)

    def test_byte_order_marks(self) -> None:
        self.list.write_bytes(b"\xef\xbb\xbf0001.png\tcat\n0002.png\n")
        self.convert("--list", self.list)
        self.assertEqual(self.names(), ["0001.png", "0002.png"])
        self.list.write_bytes("0001.png\n".encode("utf-16"))
        self.assert_one_line(self.refused("--list", self.list, "--force"), "is in UTF-16; save it as UTF-8")

    def test_thousands_of_duplicates_are_few_lines(self) -> None:
        self.list.write_text("0000.png\n" * 3000)
        said = self.refused("--list", self.list)
        self.assertIn("occurs twice", said)
        self.assertLess(said.count("\n"), 50)

    def test_a_pipe_in_a_list_keeps_nobody_waiting(self) -> None:
        os.mkfifo(self.source / "pipe.png")
        self.list.write_text("0000.png\npipe.png\n")
        process = subprocess.Popen([l3_command(), "convert", self.source, self.set, "--list", self.list, "-q"],
                                   stderr=subprocess.PIPE)
        try:
            said = process.communicate(timeout=10)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail("it waits")
        self.assertEqual(process.returncode, FAILED)
        self.assertIn(b"pipe.png", said)


class Groups(SetTest):
    def cityscapes(self) -> None:
        for city, number in (("aachen", 1), ("aachen", 2), ("bonn", 1)):
            stem = f"train/{city}/{city}_{number:06}"
            self.write(f"src/leftImg8bit/{stem}_leftImg8bit.png", png(20, 10, seed=number))
            self.write(f"src/gtFine/{stem}_gtFine_labelIds.png", png(20, 10, 8, 0, seed=number))
            self.write(f"src/gtFine/{stem}_gtFine_polygons.json", b"{}")

    PAIR = ("--pair", "image=leftImg8bit/{}_leftImg8bit.png", "--pair", "labels=gtFine/{}_gtFine_labelIds.png")

    def test_pairs(self) -> None:
        self.cityscapes()
        said = self.convert(*self.PAIR).stdout.decode()
        self.assertRegex(said, r"(?s)\A6 files converted: .*; 3 other files ignored: 3 that match no pattern\n"
                               r"the data set contains 3 samples of 6 ")
        found = [(entry["group"], entry["role"], str(entry["name"]).rsplit("/", 1)[1]) for entry in self.entries()]
        self.assertEqual(found[:3], [(0, "image", "aachen_000001_leftImg8bit.png"),
                                     (0, "labels", "aachen_000001_gtFine_labelIds.png"),
                                     (1, "image", "aachen_000002_leftImg8bit.png")])
        self.assertEqual(self.classes(), [])
        self.l3("verify", self.set, "--against", self.source)
        self.assertRegex(self.l3("info", self.set).stdout.decode(), r"(?m)^samples +6 in 3 groups$")
        polygons = ("--pair", "polygons=gtFine/{}_gtFine_polygons.json")
        self.convert(*self.PAIR, *polygons, "--force")
        self.assertEqual([(entry["role"], entry["kind"]) for entry in self.entries()][:3],
                         [("image", "image"), ("labels", "image"), ("polygons", "bytes")])

    def test_a_missing_partner(self) -> None:
        self.cityscapes()
        gone = "gtFine/train/aachen/aachen_000002_gtFine_labelIds.png"
        (self.source / gone).unlink()
        said = self.refused(*self.PAIR)
        self.assertRegex(said, rf"\Al3: [^\n]*aachen_000002_leftImg8bit\.png: has no labels: {gone} is missing\nl3: ")
        self.assertFalse(self.set.exists())
        done = self.convert(*self.PAIR, "--on-error", "skip", code=FAILED)
        self.assertIn(b"; 1 failed", done.stdout)
        self.assertIn("has no labels", (self.set / "errors.tsv").read_text())
        self.assertEqual(len(self.names()), 4)

    def test_patterns_of_which_one_fits_the_others_files(self) -> None:
        self.write("src/a.png", SMALL)
        self.write("src/a_mask.png", SMALL)
        self.convert("--pair", "image={}.png", "--pair", "mask={}_mask.png")
        self.assertEqual([entry["role"] for entry in self.entries()], ["image", "mask"])

    def test_usage(self) -> None:
        self.images(1)
        for words in (["--pair", "a=b"], ["--pair", "a={}{}"], ["--pair", "=x{}"], ["--pair", "{}"],
                      ["--pair", "a={}.png", "--pair", "a={}.pgm"], ["--pair", "a={}", "--group", "stem"],
                      ["--files", "--group", "stem"], ["--part", "0/3"], ["--part", "4/3"], ["--part", "1"],
                      ["--resume", "--force"], ["--shard-size", "many"]):
            self.convert(*words, code=USAGE)
        self.assert_one_line(self.refused("--pair", "a=nothing/{}"), "no file matches a pattern")
        self.l3("convert", self.source / "0000.png", self.set, "--part", "1/2", code=USAGE)

    def test_stems(self) -> None:
        files = {"x/1.png": SMALL, "x/1.json": b'{"of": 1}\n', "x/1.txt": b"a caption\0",
                 "x/1.depth.png": png(4, 4, 16, 0), "2.pgm": pgm(5, 4), "2.cls": b"41\r\n", "2.vec": b"",
                 "alone.txt": b"ignored", ".hidden.png": SMALL}
        for name, data in files.items():
            self.write(f"src/{name}", data)
        said = self.convert("--group", "stem").stdout
        self.assertIn(b"1 other file ignored", said)
        entries = {entry["name"]: entry for entry in self.entries()}
        self.assertEqual(sorted(entries), [".hidden.png", "2.pgm", "2.vec", "x/1.depth.png", "x/1.png", "x/1.txt"])
        self.assertEqual({name: entry["role"] for name, entry in entries.items()},
                         {".hidden.png": "png", "2.pgm": "pgm", "2.vec": "vec", "x/1.depth.png": "depth.png",
                          "x/1.png": "png", "x/1.txt": "txt"})
        self.assertEqual(entries["2.pgm"]["label"], 41)
        out = self.folder / "out"
        self.l3("export", self.set, out)
        back = contents(out)
        self.assertEqual(sorted(back), sorted([".hidden.png", "2.png", "2.vec", "x/1.depth.png", "x/1.json", "x/1.png",
                                               "x/1.txt"]))
        for name in ("x/1.json", "x/1.txt", "2.vec"):
            self.assertEqual(back[name], files[name])
        self.assertEqual(self.l3("cat", self.set, "x/1.txt").stdout, files["x/1.txt"])
        self.write("src/2.cls", b"forty-one")
        self.assertIn("2.cls: the label is not a number", self.refused("--group", "stem", "--force"))


class Trees(SetTest):
    def test_odd_names_and_files(self) -> None:
        names = ["new\nline.png", "ta\tb.png", "back\\slash.png", "-q.png", "n" * 251 + ".png", "\u00fc.PNG",
                 "folder.png/in.png", " .png", os.fsdecode(b"\xc3\x28.png")]
        for name in names:
            self.write(f"src/{name}", SMALL)
        self.convert("--labels", "none")
        self.assert_whole()
        self.l3("verify", self.set, "--against", self.source)
        self.l3("export", self.set, self.folder / "out")
        self.assertEqual(sorted(contents(self.folder / "out")), sorted(names))
        self.assertEqual(self.l3("ls", self.set).stdout.count(b"\n"), len(names))
        self.write("src/ta\tbs.png", b"bad\tfile")
        self.convert("--labels", "none", "--force", "--on-error", "skip", code=FAILED)
        self.assertEqual([line.count("\t") for line in (self.set / "errors.tsv").read_text().splitlines()], [2, 2])

    def test_what_is_no_file(self) -> None:
        self.images(1)
        os.mkfifo(self.source / "pipe.png")
        os.mkfifo(self.source / "pipe")
        (self.source / "loop").symlink_to(self.source)
        (self.source / "nowhere.png").symlink_to("gone")
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(os.path.relpath(self.source / "socket.png"))
        said = self.convert("--on-error", "skip", code=FAILED).stderr
        self.assertIn(b"nowhere.png: cannot open", said)
        self.assertEqual(said.count(b"note: skipped"), 4)
        self.assertEqual(self.names(), ["0000.png"])

    def test_deep_folders(self) -> None:
        here = os.open(self.folder, os.O_RDONLY)
        os.mkdir("src", dir_fd=here)
        depth, name = 0, "d" * 50
        folder = os.open("src", os.O_RDONLY, dir_fd=here)
        for depth in range(90):
            if depth in (3, 60):
                with os.fdopen(os.open("a.png", os.O_CREAT | os.O_WRONLY, dir_fd=folder), "wb") as file:
                    file.write(SMALL)
            os.mkdir(name, dir_fd=folder)
            inner = os.open(name, os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = inner
        os.close(folder)
        os.close(here)
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", self.source]))
        self.assertIn("File name too long", self.refused())
        said = self.convert("--on-error", "skip", code=FAILED).stderr.decode()
        self.assertIn("File name too long", said)
        self.assertEqual(len(self.names()), 2)
        self.assert_whole()

    def test_target_in_source_and_source_in_target(self) -> None:
        self.images(3)
        inside = self.source / "set"
        self.convert(to=inside)
        before = contents(inside)
        self.convert("--force", to=inside)
        self.assertEqual(contents(inside), before)
        self.l3("verify", inside, "--against", self.source)
        self.l3("convert", self.source, self.folder, "--method", "fast", "--force")
        self.l3("verify", self.folder / "shard-00000.l3s")

    def test_targets_that_are_not_empty(self) -> None:
        self.images(2)
        self.write("file", b"x")
        before = contents(self.folder)
        for words in ((), ("--force",), ("--resume",)):
            self.assert_one_line(self.refused(*words, to=self.source), "is both SRC and DST; use another folder")
        self.assert_one_line(self.refused(to=self.folder / "file"), "file: is not a folder; DST must be the folder")
        self.write("set/thesis.txt", b"mine")
        for words in ((), ("--resume",)):
            self.assert_one_line(self.refused(*words), r"set: contains other files, such as thesis\.txt; use a new")
        (self.set / "thesis.txt").unlink()
        self.set.rmdir()
        self.assertEqual(contents(self.folder), before)
        self.write("set/.DS_Store", b"harmless")
        self.convert()
        self.write("set/thesis.txt", b"mine")
        self.convert("--force")
        self.assertEqual((self.set / "thesis.txt").read_bytes(), b"mine")

    def test_images_that_are_not_read(self) -> None:
        self.images(2)
        for name in ("a.dcm", "b/c.EXR", "b/d.avif", "b/e.heic", "b/f.exr"):
            self.write(f"src/{name}", b"x")
        self.write("src/boxes.npy", b"an array may be anything")
        kinds = "5 images or archives of unsupported types: 2 .exr, 1 .avif, 1 .dcm, 1 .heic, such as a.dcm"
        for words in ((), ("--group", "stem")):
            said = self.refused(*words)
            self.assertIn(kinds, said)
            self.assertIn("nothing was converted", said)
            self.assertFalse(self.set.exists())
        self.convert("--on-error", "skip", code=FAILED)
        self.assertIn(kinds, (self.set / "errors.tsv").read_text())
        self.assertEqual(len(self.names()), 2)
        done = self.convert("--ignore-unsupported", "--force").stdout.decode()
        self.assertIn("; 5 files of unsupported types ignored: 2 .exr, 1 .avif, 1 .dcm, 1 .heic; "
                      "1 other file ignored: 1 .npy\n", done)
        done = self.convert("--ignore-unsupported", "--force", "--json").stdout.decode()
        self.assertIn('"ignored":1,"unsupported":5,', done)
        self.assertIn(kinds, self.l3("verify", self.set, "--against", self.source, code=FAILED).stderr.decode())
        self.l3("verify", self.set, "--against", self.source, "--ignore-unsupported")
        self.l3("verify", self.set, "--against", self.source, "--subset")
        (self.source / "0000.png").unlink()
        (self.source / "0001.png").unlink()
        said = self.refused("--ignore-unsupported", to=self.folder / "other")
        self.assert_one_line(said, "has no images; 5 files of unsupported types")

    def test_what_belongs_to_a_group_is_not_lost(self) -> None:
        self.write("src/a.png", SMALL)
        self.write("src/a.depth.exr", b"kept as it is")
        self.convert("--group", "stem")
        self.assertEqual(self.names(), ["a.png", "a.depth.exr"])
        self.l3("verify", self.set, "--against", self.source)

    def test_what_systems_keep_beside_images(self) -> None:
        self.images(1)
        for name in ("._0000.png", "__MACOSX/sub/._x.png"):
            self.write(f"src/{name}", APPLE_DOUBLE)
        self.write("src/Thumbs.db", b"x")
        done = self.convert("--labels", "none").stdout
        self.assertIn(b"; 3 other files ignored: 2 ._ files of macOS, 1 .db\n", done)
        self.l3("verify", self.set, "--against", self.source)

    def test_a_folder_that_cannot_be_read(self) -> None:
        if os.geteuid() == 0:
            self.skipTest("root reads every folder")
        self.images(1)
        (self.source / "closed").mkdir(mode=0)
        self.assertIn("/closed: cannot read this folder", self.refused())
        self.assertFalse(self.set.exists())
        self.convert("--on-error", "skip", code=FAILED)
        self.assertEqual(self.names(), ["0000.png"])

    def test_nothing_to_convert(self) -> None:
        self.source.mkdir()
        self.assert_one_line(self.refused(), "has no images")
        self.assertFalse(self.set.exists())
        (self.source / "a.png").mkdir()
        self.assert_one_line(self.refused(), "has no images")
        self.assert_one_line(self.l3("convert", self.folder / "none", self.set, code=FAILED).stderr.decode(), "none")
        self.write("src/empty.png", b"")
        self.assertIn("empty.png: ", self.refused())


if __name__ == "__main__":
    main()
