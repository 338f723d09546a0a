#!/usr/bin/env python3
"""Tests tars as sources of l3 convert.

Usage: command_sets_tars_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import gzip
import os
import subprocess
import tarfile
from pathlib import Path

from command_testing import APPLE_DOUBLE, DONE, FAILED, l3_command, main, png
from sets_testing import SetTest, contents, write_tar

SMALL = png(8, 8)


class Tars(SetTest):
    def tar(self, members: list[tuple[str, bytes]], form: int = tarfile.USTAR_FORMAT, name: str = "x.tar") -> Path:
        return write_tar(self.folder / name, members, form)

    def take(self, tar: Path, *words: object, code: int = DONE) -> str:
        done = self.l3("convert", tar, self.set, "--method", "fast", "--force", *words, code=code)
        return done.stderr.decode(errors="replace")

    def test_web_data_set(self) -> None:
        members = []
        for i in range(4):
            members += [(f"{i:03}.png", png(9, 9, seed=i)), (f"{i:03}.json", b'{"i": %d}' % i),
                        (f"{i:03}.cls", b"%d" % i)]
        tar = self.tar(members)
        self.take(tar)
        self.assertEqual([(entry["name"], entry["label"], entry["metadata"]) for entry in self.entries()],
                         [(f"{i:03}.png", i, f'{{"i": {i}}}') for i in range(4)])
        self.l3("verify", self.set, "--against", tar)
        self.assert_whole()
        # Several of them in a folder, beside files.
        for i in range(2):
            self.tar(members, name=f"src/deep/{i}.tar")
        self.write("src/a.png", SMALL)
        self.convert(to=self.folder / "all")
        self.assertEqual(len(self.names(self.folder / "all")), 9)
        self.assertEqual(self.names(self.folder / "all")[1], "deep/0/000.png")
        self.l3("verify", self.folder / "all", "--against", self.source)

    def test_long_names(self) -> None:
        long = "folder/" * 30 + "n" * 180 + ".png"
        for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
            self.take(self.tar([(long, SMALL), ("./b.png", SMALL)], form))
            self.assertEqual(self.names(), [long, "b.png"])
        half = "p" * 90 + "/" + "n" * 90 + ".png"
        self.take(self.tar([(half, SMALL)], tarfile.USTAR_FORMAT))
        self.assertEqual(self.names(), [half])
        # A role takes 255 bytes.
        said = self.take(self.tar([("a.png", SMALL), ("a." + "r" * 300, b"x")], tarfile.PAX_FORMAT), code=FAILED)
        self.assertIn("a.rrr", said)

    def test_names_of_any_bytes(self) -> None:
        names = ["a\nb.png", "-x.png", "\udcff\udcfe.png", "\u00e9.png"]
        with tarfile.open(self.folder / "x.tar", "w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
            for name in names:
                (self.folder / "small").write_bytes(SMALL)
                tar.add(self.folder / "small", name)
        self.take(self.folder / "x.tar")
        self.assertEqual(self.l3("ls", self.set).stdout.count(b"\n"), 4)
        self.l3("export", self.set, self.folder / "out")
        self.assertEqual(sorted(os.listdir(self.folder / "out")), sorted(names))
        self.l3("cat", self.set, "--", "-x.png", self.folder / "x.l3")
        self.l3("verify", self.folder / "x.l3")

    def test_hostile_names(self) -> None:
        for name in ("../a.png", "/a.png", "b/../../a.png", "a//b.png"):
            tar = self.tar([("ok.png", SMALL), (name, SMALL)])
            self.assert_one_line(self.take(tar, code=FAILED), "has a part that is empty, . or ..")
        tar = self.tar([("n" * 5000 + ".png", SMALL)], tarfile.PAX_FORMAT)
        said = self.take(tar, code=FAILED)
        self.assert_one_line(said, "the name of a tar member is longer than 4096 bytes: n")
        self.assertLess(len(said), 500)
        self.assertEqual(list(contents(self.folder)), ["x.tar"])
        self.assert_one_line(self.take(self.tar([("a.png", SMALL), ("a.png", SMALL)]), code=FAILED), "occurs twice")

    def test_damaged(self) -> None:
        tar = self.tar([("a.png", SMALL), ("b.png", SMALL)])
        whole = tar.read_bytes()
        second = 1024  # the header of b.png
        cases = {"ends within a header": whole[:second + 100], "beyond the end of the file": whole[:second + 520],
                 "has no end mark": whole[:second], "checksum of the tar header": None,
                 "not a tar: the checksum": b"not a tar at all" * 64, "shorter than a header": b"short"}
        for reason, data in cases.items():
            broken = bytearray(whole)
            broken[second + 1] ^= 1
            tar.write_bytes(bytes(broken) if data is None else data)
            self.assert_one_line(self.take(tar, code=FAILED), reason)
        for size in (b"77777777777\0", b"\x80" + b"\xff" * 11, b"\x80\0\0\0\x7f" + b"\xff" * 7, b"-1\0" + bytes(9)):
            info = bytearray(whole[:512])
            info[124:136] = size
            info[148:156] = b" " * 8
            info[148:156] = b"%06o\0 " % sum(info)
            tar.write_bytes(bytes(info) + whole[512:])
            self.assert_one_line(self.take(tar, code=FAILED), "beyond the end of the file|is not a number")
        tar.write_bytes(b"")
        self.assert_one_line(self.take(tar, code=FAILED), "tar")

    def test_pax_that_lies(self) -> None:
        for header in ({"size": "99999999999999"}, {"size": "-5"}, {"size": "1e3"}, {"path": "../x.png"},
                       {"path": "x\0y"}, {"GNU.sparse.major": "1"}):
            with tarfile.open(self.folder / "x.tar", "w", format=tarfile.PAX_FORMAT) as tar:
                info = tarfile.TarInfo("a.png")
                info.pax_headers = header
                tar.addfile(info)
            said = self.take(self.folder / "x.tar", code=FAILED)
            self.assertEqual(said.count("\n"), 1, said)

    def with_links(self, *links: tuple[str, bytes, str], form: int = tarfile.GNU_FORMAT) -> Path:
        """A tar of a.png and of what is no regular file: name, type and target."""
        with tarfile.open(self.folder / "x.tar", "w", format=form) as tar:
            (self.folder / "small").write_bytes(SMALL)
            tar.add(self.folder / "small", "a.png")
            for name, kind, target in links:
                info = tarfile.TarInfo(name)
                info.type, info.linkname = kind, target
                tar.addfile(info)
        return self.folder / "x.tar"

    def test_what_is_no_file_is_skipped(self) -> None:
        said = self.take(self.with_links(("device", tarfile.CHRTYPE, ""), ("pipe", tarfile.FIFOTYPE, ""),
                                         ("folder", tarfile.DIRTYPE, ""), ("label", b"V", ""),
                                         ("elsewhere", tarfile.SYMTYPE, "/etc")))
        self.assertEqual(said.count(": note: skipped"), 4)
        self.assertEqual(self.names(), ["a.png"])
        self.assert_one_line(self.take(self.with_links(("b.png", b"M", "")), code=FAILED),
                             "the unknown type M: b.png")

    def test_links(self) -> None:
        long = "deep/" * 30 + "hard.png"
        for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            tar = self.with_links(("x/to.link.png", tarfile.SYMTYPE, "../x/soft.png"),
                                  ("x/soft.png", tarfile.SYMTYPE, "../a.png"), (long, tarfile.LNKTYPE, "./a.png"),
                                  ("again.png", tarfile.LNKTYPE, long), form=form)
            self.take(tar)
            self.assertEqual(self.names(), ["a.png", "x/to.link.png", "x/soft.png", long, "again.png"])
            self.assertEqual(len({entry["digest"] for entry in self.entries()}), 1)
            self.l3("verify", self.set, "--against", tar)
        self.assert_one_line(self.take(self.with_links(("h.png", tarfile.LNKTYPE, "gone.png")), code=FAILED),
                             "a hard link in the tar leads to no member: h.png")
        for target in ("gone.png", "../a.png", "/a.png", "s.png"):
            said = self.take(self.with_links(("s.png", tarfile.SYMTYPE, target)), code=FAILED)
            self.assertIn("x.tar: s.png: broken link: it leads to no member", said)

    def test_tars_behind_a_tar(self) -> None:
        first = self.tar([("a.png", SMALL)]).read_bytes()
        both = first + self.tar([("b.png", png(5, 5))]).read_bytes()
        tar = self.write("x.tar", both)
        self.take(tar)
        self.assertEqual(self.names(), ["a.png", "b.png"])
        self.l3("verify", self.set, "--against", tar)
        self.write("x.tar", first)
        self.assertIn(b"b.png", self.l3("verify", self.set, "--against", tar, code=FAILED).stderr)
        for rest in (b"x", b"no tar" * 512, both[-512:] + b"\1"):
            self.write("x.tar", first + rest)
            self.assert_one_line(self.take(tar, code=FAILED), "the bytes after the end mark are not another tar")
        self.write("x.tar", first + bytes(100))
        self.take(tar)

    def test_sparse_members_of_old_gnu_tars(self) -> None:
        self.assert_one_line(self.take(self.with_links(("s.png", b"S", "")), code=FAILED),
                             "cannot read sparse tar members: s.png")

    def test_verify_compares_with_all_that_a_tar_holds(self) -> None:
        members = [("img/1.png", SMALL), ("boxes/1.txt", b"1 2 3 4")]
        tar = self.tar(members)
        self.take(tar, "--pair", "image=img/{}.png", "--pair", "boxes=boxes/{}.txt")
        self.l3("verify", self.set, "--against", tar)
        self.tar([members[0], ("boxes/1.txt", b"4 3 2 1")])
        said = self.l3("verify", self.set, "--against", tar, code=FAILED).stderr
        self.assertIn(b"differs from boxes/1.txt", said)
        for label, names in ((b"3", ("1.json", "1.cls")), (b"3\n", ("1.JSON", "1.CLS")), (b"4", ("1.json", "1.cls"))):
            tar = self.tar([("1.png", SMALL), (names[0], b"{}"), (names[1], label)])
            if label != b"4":
                self.take(tar)
                self.l3("verify", self.set, "--against", tar)
        said = self.l3("verify", self.set, "--against", tar, code=FAILED).stderr
        self.assertIn(b"its label differs from 1.cls", said)

    def test_what_macos_keeps_in_tars(self) -> None:
        tar = self.tar([("._a.png", APPLE_DOUBLE), ("a.png", SMALL), ("._real.png", SMALL)])
        done = self.l3("convert", tar, self.set, "--method", "fast")
        self.assertIn(b"; 1 other file ignored: 1 ._ files of macOS", done.stdout)
        self.assertEqual(self.names(), ["a.png", "._real.png"])
        self.l3("verify", self.set, "--against", tar)

    def test_archives_that_are_not_read(self) -> None:
        for name, how in (("x.tar.gz", "tar -xf"), ("x.TGZ", "tar -xf"), ("x.zip", "unzip")):
            path = self.write(name, b"x")
            said = self.l3("convert", path, self.set, code=FAILED).stderr.decode()
            self.assert_one_line(said, rf"unpack it into a new folder \({how} .*{name}\)")
        for size in (9, 9999):
            self.assert_one_line(self.take(self.write("x.tar", gzip.compress(bytes(size))), code=FAILED),
                                 "is not a tar but a compressed file; unpack it first")
        self.take(self.tar([("BZh.png", SMALL)]))  # begins as a file of bzip2 does
        self.write("src/a.tar.gz", b"x")
        self.images(1)
        self.assertIn("1 image or archive of an unsupported type: 1 .tar.gz", self.refused())

    def test_a_tar_of_nothing(self) -> None:
        self.assert_one_line(self.take(self.tar([("a.txt", b"x")]), code=FAILED), "has no images")

    def test_more_roles_than_a_shard_may_have(self) -> None:
        tar = self.tar([("a.png", SMALL)] + [(f"a.r{i}", b"") for i in range(65536)])
        result = subprocess.run([l3_command(), "convert", tar, self.set, "-q"], capture_output=True, timeout=60)
        if result.returncode == DONE:
            self.l3("ls", self.set)


if __name__ == "__main__":
    main()
