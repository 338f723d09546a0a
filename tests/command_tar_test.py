#!/usr/bin/env python3
"""Tests l3 export --tar: members, round trips, determinism, and what happens when it fails.

Usage: command_tar_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import resource
import signal
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

from command_testing import FAILED, USAGE, flip, l3_command, main, pgm, png
from sets_testing import SetTest, rows_of_png, write_tar

# How WebDataset divides the name of a member.
KEY = re.compile(r"((?:.*/|)[^.]+)[.]([^/]*)")


def groups_of(tar: bytes) -> dict[str, dict[str, bytes]]:
    """The members by key and extension. Those of a key must come in a row."""
    groups: dict[str, dict[str, bytes]] = {}
    last = None
    with tarfile.open(fileobj=io.BytesIO(tar)) as file:
        for number, member in enumerate(file):
            if (number, member.name) == (0, "__classes__"):
                continue
            match = KEY.fullmatch(member.name)
            assert match is not None and not member.name.startswith("__"), member.name
            key, extension = match[1], match[2].lower()
            assert key == last or key not in groups, f"the members of {key} are not together"
            assert extension not in groups.setdefault(key, {}), f"{member.name} comes twice"
            assert (member.mtime, member.uid, member.gid, member.mode) == (0, 0, 0, 0o644)
            groups[key][extension], last = file.extractfile(member).read(), key
    return groups


def names_in(tar: Path) -> list[str]:
    """The names of classes in a tar."""
    with tarfile.open(tar) as file:
        member = file.extractfile("__classes__")
        return json.loads(member.read())


class Tars(SetTest):
    def setUp(self) -> None:
        super().setUp()
        self.tar = self.folder / "out" / "set.tar"

    def export(self, *words: object, code: int = 0, **options: Any) -> dict[str, dict[str, bytes]]:
        self.l3("export", "--tar", *words, self.set, self.tar, code=code, **options)
        return groups_of(self.tar.read_bytes()) if code == 0 else {}

    def from_tar(self) -> Path:
        """A data set of groups with images, labels, metadata and another file."""
        members = []
        for i in range(7):
            members += [(f"{i:02}.cls", b"%d" % (i % 3)), (f"{i:02}.json", b'{"number": %d}' % i),
                        (f"{i:02}.png", png(20, 16, seed=i)), (f"{i:02}.txt", b"text %d" % i)]
            if i == 3:
                members.append((f"{i:02}.seg.png", png(20, 16, 8, 0, seed=9)))
        source = write_tar(self.folder / "source.tar", members)
        self.l3("convert", source, self.set)
        return source

    def test_a_tar_comes_back(self) -> None:
        self.from_tar()
        groups = self.export()
        self.assertEqual(list(groups), [f"{i:02}" for i in range(7)])
        for i, (key, group) in enumerate(groups.items()):
            self.assertEqual(list(group), ["png", *(["seg.png"] if i == 3 else []), "txt", "cls", "json"])
            self.assertEqual((group["cls"], group["json"], group["txt"]),
                             (b"%d" % (i % 3), b'{"number": %d}' % i, b"text %d" % i), key)
            self.assertEqual(rows_of_png(group["png"]), rows_of_png(png(20, 16, seed=i)))
        again = self.folder / "again"
        self.l3("convert", self.tar, again)
        self.assertEqual(self.what_is_in(again), self.what_is_in())
        # The same set gives the same tar, and so does the set that was made of it.
        second = self.folder / "second.tar"
        self.l3("export", "--tar", "-j1", again, second)
        self.assertEqual(second.read_bytes(), self.tar.read_bytes())

    def test_l3_members(self) -> None:
        self.images(4)
        self.l3("convert", self.source, self.set, "--method", "dense", "--shared-model", "on")
        for key, group in self.export("--as", "l3").items():
            self.assertEqual(list(group), ["l3"])
            file = self.write("x.l3", group["l3"])
            self.l3("decode", file, self.folder / "x.png")
            self.assertEqual(rows_of_png((self.folder / "x.png").read_bytes()),
                             rows_of_png((self.source / f"{key}.png").read_bytes()))

    def test_stdout(self) -> None:
        self.from_tar()
        self.export()
        done = self.l3("export", "--tar", self.set, "-")
        self.assertEqual(done.stdout, self.tar.read_bytes())
        self.assertRegex(done.stderr, rb"^l3: 15 files exported: ")
        self.assertEqual(self.l3("export", "--tar", "-q", self.set, "-").stderr, b"")
        self.assertEqual(len(done.stdout) % 10240, 0)

    def test_names(self) -> None:
        long = "d" * 120 + "/" + "n" * 150
        names = ["a.b.png", "a.c.png", "a.png", ".hidden.png", "__x__/y.png", "\u00e4.png", f"{long}.png",
                 "folder.x/z.png"]
        for i, name in enumerate(names):
            self.write(f"src/{name}", png(9, 9, seed=i))
        self.convert("--labels", "none")
        groups = self.export()
        self.assertEqual(set(groups), {"a_b", "a_c", "a", "_hidden", "_x__/y", "\u00e4", long, "folder.x/z"})
        self.l3("convert", self.tar, self.folder / "again", "--labels", "none")
        self.assertEqual(len(self.entries(self.folder / "again")), len(names))
        self.l3("verify", self.folder / "again")

    def test_equal_keys(self) -> None:
        for i, name in enumerate(("a.png", "a.pgm", "a_2.png", "b.x.png", "b_x.png")):
            self.write(f"src/{name}", pgm(9, 9, seed=i) if name.endswith("pgm") else png(9, 9, seed=i))
        self.convert()
        self.assertEqual(sorted(self.export()), ["a", "a_2", "a_2_2", "b_x", "b_x_2"])

    def test_pairs_and_classes(self) -> None:
        for i in range(3):
            self.write(f"src/images/{i}.png", png(16, 16, seed=i))
            self.write(f"src/maps/{i}.pgm", b"P5\n16 16\n4095\n" + bytes(512))
        self.l3("convert", self.source, self.set, "--pair", "image=images/{}.png", "--pair", "labels=maps/{}.pgm")
        for group in self.export().values():
            self.assertEqual(list(group), ["image.png", "labels.pgm"])

    def with_classes(self, name: str, classes: list[str]) -> Path:
        """The tar of a set with these classes."""
        lines = []
        for i, of_class in enumerate(classes):
            self.write(f"{name}-images/{name}{i}.png", png(8, 8, seed=i))
            lines.append(f"{name}{i}.png\t{of_class}\n")
        made = self.write(f"{name}.txt", "".join(lines).encode())
        self.l3("convert", "--list", made, self.folder / f"{name}-images", self.folder / f"{name}-set")
        done = self.l3("export", "--tar", self.folder / f"{name}-set", self.folder / f"tars/{name}.tar")
        self.assertEqual(done.stderr, b"")
        return self.folder / f"tars/{name}.tar"

    def test_names_of_classes(self) -> None:
        names = ["a \"quoted\" cat", "dog\u00e9", "z\tz"]
        self.tar = self.with_classes("x", names)
        self.assertEqual(names_in(self.tar), names)
        groups = groups_of(self.tar.read_bytes())
        self.assertEqual({key: group["cls"] for key, group in groups.items()}, {f"x{i}": b"%d" % i for i in range(3)})
        self.l3("convert", self.tar, self.set)
        self.assertEqual(self.classes(), names)
        without_roles = [[{**entry, "role": ""} for entry in self.what_is_in(folder)]
                         for folder in (self.set, self.folder / "x-set")]
        self.assertEqual(*without_roles)
        self.l3("verify", self.set, "--against", self.tar)
        self.l3("export", "--tar", self.set, self.folder / "again.tar")
        self.assertEqual((self.folder / "again.tar").read_bytes(), self.tar.read_bytes())
        # Without names, the numbers stay.
        bare = self.folder / "bare"
        self.l3("convert", "--labels", "none", self.tar, bare)
        self.assertEqual((self.classes(bare), [entry["label"] for entry in self.entries(bare)]), ([], [0, 1, 2]))
        self.l3("verify", bare, "--against", self.tar)
        self.l3("export", "--tar", bare, self.folder / "bare.tar")
        with tarfile.open(self.folder / "bare.tar") as tar:
            self.assertNotIn("__classes__", tar.getnames())
        # Names without labels
        tar = write_tar(self.folder / "plain.tar", [("a.png", png(8, 8)), ("__classes__", b'["one"]')])
        self.l3("convert", tar, self.folder / "plain")
        self.assertEqual((self.classes(self.folder / "plain"), self.names(self.folder / "plain")), (["one"], ["a.png"]))

    def test_classes_of_several_tars(self) -> None:
        self.with_classes("a", ["cat", "dog"])
        self.with_classes("b", ["cat", "dog"])
        self.l3("convert", self.folder / "tars", self.set)
        self.assertEqual((self.classes(), self.names()),
                         (["cat", "dog"], ["a/a0.png", "a/a1.png", "b/b0.png", "b/b1.png"]))
        self.l3("verify", self.set, "--against", self.folder / "tars")
        other = self.with_classes("c", ["cat", "fox"])
        for _with_names in (True, False):
            said = self.l3("convert", self.folder / "tars", self.folder / "none", code=FAILED).stderr.decode()
            self.assertIn("c.tar: has other names of classes than ", said)
            other = write_tar(other, [("c.png", png(8, 8)), ("c.cls", b"0")])  # and no names
        self.l3("convert", "--labels", "none", self.folder / "tars", self.folder / "numbers")
        self.assertEqual([entry["label"] for entry in self.entries(self.folder / "numbers")], [0, 1, 0, 1, 0])
        # Folders as classes come before .cls files.
        self.l3("convert", "--labels", "folder", self.folder / "tars", self.folder / "folders")
        self.assertEqual(self.classes(self.folder / "folders"), ["a", "b", "c"])
        self.l3("verify", self.folder / "folders", "--against", self.folder / "tars")

    def test_wrong_classes(self) -> None:
        def tar(*members: tuple[str, bytes]) -> Path:
            return write_tar(self.tar, [("0.png", png(8, 8)), ("0.cls", b"1"), *members])

        for text, reason in ((b"", "expected an array"), (b"cat\ndog\n", "expected an array"),
                             (b'{"cat": 0}', "expected an array"), (b'["a", 2]', "expected"),
                             (b'["a", "b"', "expected"), (b'["a", "b"] 1', "after"),
                             (b'["a", "\xff"]', "UTF-8"), (b'["a", "b\\u0000"]', "zero")):
            said = self.l3("convert", tar(("__classes__", text)), self.set, code=FAILED).stderr.decode()
            self.assertIn("__classes__ is not a JSON list of names: ", said)
            self.assertIn(reason, said)
            self.assertFalse(self.set.exists())
        numbers = self.folder / "numbers"
        self.l3("convert", "--labels", "none", tar(("__classes__", b"no JSON")), numbers)
        self.assertEqual((self.classes(numbers), [entry["label"] for entry in self.entries(numbers)]), ([], [1]))
        said = self.l3("convert", tar(("__classes__", b'["a"]')), self.set, code=FAILED).stderr.decode()
        self.assertIn("0.cls: the label is 1, but __classes__ has the names of only 1\n", said)
        self.l3("convert", "--force", tar(("__classes__", b'["a", "b"]')), self.set)
        self.l3("verify", self.set, "--against", self.tar)
        said = self.l3("verify", self.set, "--against", tar(("__classes__", b'["a", "c"]')), code=FAILED)
        self.assertIn(b"its names of classes differ from those of the data set", said.stdout + said.stderr)
        write_tar(self.tar, [("0.png", png(8, 8)), ("0.cls", b"0"), ("__classes__", b'["a", "b"]')])
        said = self.l3("verify", self.set, "--against", self.tar, code=FAILED)
        self.assertIn(b"its label differs from 0.cls", said.stdout + said.stderr)
        # A name below a folder is any other name.
        self.l3("convert", tar(("x/__classes__", b"no JSON")), self.folder / "below")
        self.assertEqual(self.classes(self.folder / "below"), [])

    def test_existing_files(self) -> None:
        self.images(2)
        self.convert()
        self.tar.parent.mkdir()
        self.tar.write_bytes(b"as it was")
        said = self.l3("export", "--tar", self.set, self.tar, code=FAILED).stderr
        self.assertIn(b"exists already; --force replaces it", said)
        self.assertEqual(self.tar.read_bytes(), b"as it was")
        self.assertEqual(len(self.export("--force")), 2)
        shard = self.set / "shard-00000.l3s"
        before = shard.read_bytes()
        self.l3("export", "--tar", "--force", self.set, shard, code=FAILED)
        self.assertEqual(shard.read_bytes(), before)
        self.l3("export", "--tar", self.source, self.folder / "no.tar", code=FAILED)
        self.l3("export", "--tar", "--resume", self.set, self.tar, code=USAGE)
        self.l3("export", "--as", "l3", self.set, self.folder / "x", code=USAGE)
        self.l3("export", "--tar", self.set, "/dev/null")

    def test_damage(self) -> None:
        self.images(5)
        self.convert()
        entry = self.entries()[2]
        flip(self.set / "shard-00000.l3s", entry["offset"] + entry["size"] - 3)
        said = self.l3("export", "--tar", self.set, self.tar, code=FAILED)
        self.assertIn(b"no complete tar was written", said.stdout)
        self.assertEqual(list(self.tar.parent.iterdir()), [])
        cut = self.l3("export", "--tar", self.set, "-", code=FAILED).stdout
        self.assertFalse(cut.endswith(bytes(1024)), "no end mark")
        said = self.l3("export", "--tar", "--on-error", "skip", self.set, self.tar, code=FAILED)
        self.assertRegex(said.stdout, rb"^4 files exported: .*; 1 group failed\n")
        self.assertEqual(list(groups_of(self.tar.read_bytes())), ["0000", "0001", "0003", "0004"])

    def test_full_disk(self) -> None:
        self.images(3, side=60)
        self.convert()
        self.tar.parent.mkdir()
        self.tar.write_bytes(b"as it was")

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))

        said = self.l3("export", "--tar", "--force", self.set, self.tar, code=FAILED, preexec_fn=limit).stderr
        self.assertIn(b"set.tar: cannot write: File too large", said)
        self.assertEqual([(path.name, path.read_bytes()) for path in self.tar.parent.iterdir()],
                         [("set.tar", b"as it was")])
        with open("/dev/full", "wb") as full:
            done = subprocess.run([l3_command(), "export", "--tar", self.set, "-"], stdout=full,
                                  stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn(b"stdout: cannot write: No space left on device", done.stderr)

    def test_reader_that_leaves(self) -> None:
        self.images(40, side=100)
        self.convert()
        process = subprocess.Popen([l3_command(), "export", "--tar", self.set, "-"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        process.stdout.read(10)
        process.stdout.close()
        self.assertEqual((process.stderr.read(), process.wait(30)), (b"", FAILED))
        process.stderr.close()

    def test_interruption(self) -> None:
        for i in range(30):
            self.write(f"src/{i:02}.pgm", b"P5\n1024 512\n255\n" + random.Random(i).randbytes(1 << 19))
        self.convert()
        self.tar.parent.mkdir()
        for how in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([l3_command(), "export", "--tar", "-q", "-j1", self.set, self.tar],
                                       stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 30
            while process.poll() is None and not os.listdir(self.tar.parent) and time.monotonic() < deadline:
                time.sleep(0.001)
            process.send_signal(how)
            self.assertEqual(process.wait(30), -how)
            self.assertEqual(os.listdir(self.tar.parent), [])


if __name__ == "__main__":
    main()
