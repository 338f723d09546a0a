#!/usr/bin/env python3
"""Tests the l3 command and the file system: it writes whole files or none; verify; convert.

Usage: command_files_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

from command_testing import APPLE_DOUBLE, DONE, FAILED, CommandTest, flip, l3_command, main, pgm, png


class Atomicity(CommandTest):
    def big(self) -> Path:
        noise = random.Random(5).randbytes(1 << 20)
        return self.write("big.pgm", b"P5\n8192 4096\n255\n" + noise * 32)

    def end(self, source: Path, out: Path, how: int, after: float | None) -> int:
        """Ends an encoder after some seconds, or once its temporary file is there."""
        words = [l3_command(), "encode", source, out, "-j1", "--no-verify", "--method", "fast"]
        process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        began = time.monotonic()
        while process.poll() is None:
            elapsed = time.monotonic() - began
            if elapsed >= after if after is not None else any(".l3tmp-" in name for name in os.listdir(out.parent)):
                process.send_signal(how)
                break
        return process.wait(30)

    def test_nothing_half(self) -> None:
        source = self.big()
        for how in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for after in (None, None, 0.005, 0.02, 0.05, 0.1):
                with self.subTest(how=how.name, after=after):
                    out = self.folder / "out" / "big.l3"
                    shutil.rmtree(out.parent, ignore_errors=True)
                    out.parent.mkdir()
                    code = self.end(source, out, how, after)
                    self.assertIn(code, (DONE, -how))
                    if code == DONE or out.exists():
                        self.l3("verify", out)
                    if how != signal.SIGKILL:
                        self.assert_no_temporaries()

    def test_waiting_for_input(self) -> None:
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = subprocess.Popen([l3_command(), "encode", "-", self.folder / "x.l3"], stdin=subprocess.PIPE)
            process.stdin.write(b"P5\n")
            process.stdin.flush()
            time.sleep(0.05)
            process.send_signal(how)
            self.assertEqual(process.wait(30), -how)
            process.stdin.close()
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_interrupted_conversion(self) -> None:
        for i in range(40):
            self.write(f"src/{i}.pgm", b"P5\n1024 512\n255\n" + random.Random(i).randbytes(1 << 19))
        process = subprocess.Popen([l3_command(), "convert", "--files", self.folder / "src", self.folder / "dst", "-j2",
                                    "--method", "fast"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None and len(list((self.folder / "dst").glob("*.l3"))) < 5:
            pass
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertEqual(said, b"l3: Interrupted. All work so far is kept. To continue, repeat the command with "
                               b"--resume\n")
        self.assert_no_temporaries()
        self.l3("verify", self.folder / "dst")
        self.l3("convert", "--files", self.folder / "src", self.folder / "dst", "--resume", "--method", "fast")
        self.l3("verify", self.folder / "dst", "--against", self.folder / "src")

    def limited(self, size: int) -> dict[str, object]:
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))}

    def test_file_size_limit(self) -> None:
        source = self.write("a.png", png(200, 200))
        out = self.write("a.l3", b"as it was")
        for command in (["encode", source, out], ["convert", "--files", "--force", source, out]):
            said = self.l3(*command, code=FAILED, **self.limited(1000)).stderr
            self.assertIn(b"a.l3: cannot write: File too large", said)
            self.assertEqual(out.read_bytes(), b"as it was")
        self.assert_no_temporaries()

    def test_full_disk(self) -> None:
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("no right to mount a small disk")
        self.addCleanup(subprocess.run, ["umount", disk])
        said = self.l3("encode", self.write("a.png", png(300, 300)), disk / "a.l3", code=FAILED).stderr
        self.assertIn(b"a.l3: cannot write: No space left on device", said)
        self.assertEqual(list(disk.iterdir()), [])

    def test_what_is_replaced_keeps_its_ways(self) -> None:
        source = self.write("a.png", png(4, 4))
        out = self.write("real/a.l3", b"old")
        out.chmod(0o640)
        link = self.folder / "link.l3"
        link.symlink_to(out)
        self.l3("encode", source, link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(out.stat().st_mode & 0o777, 0o640)
        self.l3("verify", out)


class Verifying(CommandTest):
    def test_folders(self) -> None:
        for name in ("src/a.png", "src/deep/b.png", "src/deep/c.pgm"):
            self.write(name, png(20, 20) if name.endswith("png") else pgm(20, 20))
        source, out = self.folder / "src", self.folder / "dst"
        self.l3("convert", "--files", source, out)
        self.assertEqual(self.l3("verify", out).stdout, b"3 files OK\n")
        self.assertEqual(self.l3("verify", "-q", out).stdout, b"")
        self.assertEqual(self.l3("verify", "-v", out).stdout.count(b"OK "), 3)
        self.l3("verify", out, "--against", source)

        self.write("src/deep/c.pgm", b"P5\n20 20\n255\n" + bytes(400))
        said = self.l3("verify", out, "--against", source, code=FAILED).stderr.decode()
        self.assertRegex(said, r"^l3: .*c\.l3: differs from .*c\.pgm: .*\n$")
        (source / "a.png").rename(source / "z.png")
        said = self.l3("verify", out, "--against", source, code=FAILED).stderr.decode()
        self.assertIn("a.l3: the image of this name is missing", said)
        self.assertRegex(said, r"z\.png: its L3 file .*z\.l3 is missing")
        flip(out / "deep" / "b.l3", 20)
        self.assertEqual(self.l3("verify", out, code=FAILED).stderr.count(b"\n"), 1)

    def test_nothing_to_verify_is_a_failure(self) -> None:
        self.l3("verify", self.folder, code=FAILED)
        self.l3("verify", self.folder / "none", code=FAILED)


class Converting(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.source, self.out = self.folder / "src", self.folder / "dst"
        for name in ("a.png", "b/c.PNG", "b/d.e.png"):
            self.write(f"src/{name}", png(40, 30, seed=len(name)))
        self.write("src/notes.txt", b"text")
        self.write("src/b/f.pgm", pgm(10, 10))

    def outputs(self) -> list[str]:
        return sorted(str(path.relative_to(self.out)) for path in self.out.rglob("*") if path.is_file())

    def test_mirrors_the_tree(self) -> None:
        said = self.l3("convert", "--files", self.source, self.out, "--tile", 32).stdout.decode()
        self.assertEqual(self.outputs(), ["a.l3", "b/c.l3", "b/d.e.l3", "b/f.l3"])
        self.assertRegex(said, r"^4 files converted: .* ratio .* MP/s; 1 other file ignored: 1 \.txt\n$")
        self.l3("verify", self.out, "--against", self.source)
        self.assertEqual(self.l3("convert", "--files", "-q", "--force", self.source, self.out).stdout, b"")

    def test_images_that_are_not_read(self) -> None:
        self.write("src/b/scan.dcm", b"DICOM")
        self.write("src/more.tar", b"read only where a data set is made")
        said = self.l3("convert", "--files", self.source, self.out, code=FAILED).stderr.decode()
        self.assertIn("unsupported types: 1 .dcm, 1 .tar, such as b/scan.dcm (to leave them out, use", said)
        self.assertFalse(self.out.exists())
        said = self.l3("convert", "--files", "--on-error", "skip", self.source, self.out, code=FAILED)
        self.assertIn(b"4 files converted", said.stdout)
        said = self.l3("convert", "--files", "--force", "--ignore-unsupported", self.source, self.out).stdout
        self.assertIn(b"; 2 files of unsupported types ignored: 1 .dcm, 1 .tar; 1 other file", said)
        said = self.l3("verify", self.out, "--against", self.source, code=FAILED).stderr
        self.assertIn(b"1 .dcm, 1 .tar", said)
        self.l3("verify", self.out, "--against", self.source, "--ignore-unsupported")

    def test_what_systems_keep_beside_images(self) -> None:
        for name in ("._a.png", "__MACOSX/b/._c.PNG"):
            self.write(f"src/{name}", APPLE_DOUBLE)
        self.write("src/Thumbs.db", b"x")
        self.write("src/.DS_Store", b"x")
        said = self.l3("convert", "--files", self.source, self.out).stdout
        self.assertIn(b"; 5 other files ignored: 2 ._ files of macOS, 1 .DS_Store, 1 .db, 1 .txt\n", said)
        self.write("dst/._a.l3", APPLE_DOUBLE)
        self.l3("verify", self.out, "--against", self.source)

    def test_corrupt_among_good(self) -> None:
        self.write("src/b/bad.png", png(40, 30)[:-30])
        said = self.l3("convert", "--files", "--on-error", "skip", self.source, self.out, code=FAILED)
        self.assertRegex(said.stderr.decode(), r"^l3: .*/b/bad\.png: offset \d+: .+\n$")
        self.assertIn(b"1 failed", said.stdout)
        self.assertEqual(self.outputs(), ["a.l3", "b/c.l3", "b/d.e.l3", "b/f.l3"])
        shutil.rmtree(self.out)
        self.write("src/0.png", b"bad")
        said = self.l3("convert", "--files", "-j1", self.source, self.out, code=FAILED)
        self.assertIn(b"5 not started", said.stdout)
        self.assertEqual(self.outputs(), [])

    def test_resume(self) -> None:
        for path in self.source.rglob("*"):
            os.utime(path, (1e9, 1e9))
        self.l3("convert", "--files", self.source, self.out)
        before = {name: (self.out / name).stat().st_mtime_ns for name in self.outputs()}
        said = self.l3("convert", "--files", self.source, self.out, code=FAILED).stderr
        self.assertIn(b"exists already, and so do 3 more", said)
        (self.out / "a.l3").write_bytes(b"not whole")
        os.utime(self.source / "b" / "f.pgm", (4e9, 4e9))
        said = self.l3("convert", "--files", "--resume", self.source, self.out).stdout
        self.assertRegex(said, rb"^2 files converted.*; 2 already done")
        after = {name: (self.out / name).stat().st_mtime_ns for name in self.outputs()}
        self.assertEqual([name for name in before if before[name] == after[name]], ["b/c.l3", "b/d.e.l3"])
        self.l3("verify", self.out, "--against", self.source)
        self.assertRegex(self.l3("convert", "--files", "--force", self.source, self.out).stdout, rb"^4 files converted")

    def test_two_sources_for_one_output(self) -> None:
        self.write("src/a.pgm", pgm(4, 4))
        said = self.l3("convert", "--files", self.source, self.out, code=FAILED).stderr.decode()
        self.assertRegex(said, r"^l3: .*a\.png: has the same output as .*a\.pgm: .*a\.l3\n$")
        self.assertFalse(self.out.exists())

    def test_single_files(self) -> None:
        self.l3("convert", "--files", self.source / "a.png", self.out)
        self.l3("convert", "--files", self.source / "a.png", self.folder / "named.l3")
        self.l3("verify", self.out / "a.l3", self.folder / "named.l3")

    def test_what_is_no_file(self) -> None:
        os.mkfifo(self.source / "pipe.png")
        (self.source / "b" / "circle").symlink_to(self.source)
        self.write("elsewhere/x.pgm", pgm(4, 4))
        (self.source / "linked").symlink_to(self.folder / "elsewhere")
        said = self.l3("convert", "--files", self.source, self.out)
        self.assertEqual(self.outputs(), ["a.l3", "b/c.l3", "b/d.e.l3", "b/f.l3", "linked/x.l3"])
        self.assertEqual(said.stderr.count(b"note: skipped"), 2)
        self.assertIn(b"2 skipped", said.stdout)
        self.l3("verify", "-q", self.out, "--against", self.source)

    def test_folder_that_cannot_be_read(self) -> None:
        if os.geteuid() == 0:
            self.skipTest("root reads every folder")
        (self.source / "closed").mkdir(mode=0)
        said = self.l3("convert", "--files", self.source, self.out, code=FAILED).stderr
        self.assertIn(b"/closed: cannot read this folder", said)
        self.assertFalse(self.out.exists())
        self.l3("convert", "--files", "--on-error", "skip", self.source, self.out, code=FAILED)
        self.assertEqual(self.outputs(), ["a.l3", "b/c.l3", "b/d.e.l3", "b/f.l3"])

    def test_sources_are_never_overwritten(self) -> None:
        self.out.mkdir()
        (self.out / "a.l3").symlink_to(self.source / "a.png")
        before = (self.source / "a.png").read_bytes()
        for words in ([self.source, self.out], [self.source / "a.png", self.out]):
            said = self.l3("convert", "--files", "--force", *words, code=FAILED).stderr
            self.assertIn(b"is the same file as the source", said)
        self.assertEqual((self.source / "a.png").read_bytes(), before)
        self.assertEqual(self.outputs(), ["a.l3"])

    def test_what_a_killed_run_left_behind_is_removed(self) -> None:
        self.l3("convert", "--files", self.source, self.out)
        for name in (".a.l3.l3tmp-123-4", ".a.l3.l3tmp-1-0-0123456789abcdef", ".other.l3.l3tmp-1-0", ".a.l3.l3tmp-x"):
            (self.out / name).write_bytes(b"left")
        self.l3("convert", "--files", "--force", self.source, self.out)
        self.assertEqual(self.outputs()[:2], [".a.l3.l3tmp-x", ".other.l3.l3tmp-1-0"])
        self.assertEqual(len(self.outputs()), 6)

    def test_folder_in_the_way(self) -> None:
        self.write("dst/b", b"a file where a folder should be")
        said = self.l3("convert", "--files", "--on-error", "skip", self.source, self.out, code=FAILED)
        self.assertEqual(said.stderr.count(b"cannot create"), 3)
        self.assertTrue((self.out / "a.l3").exists())

    def test_long_names(self) -> None:
        name = "\u00e9" * 124 + "a.png"
        self.write(f"src/{name}", png(4, 4))
        self.l3("convert", "--files", self.source, self.out)
        self.assertTrue((self.out / (name[:-4] + ".l3")).exists())

    def test_nothing_to_convert(self) -> None:
        (self.folder / "empty").mkdir()
        self.l3("convert", "--files", self.folder / "empty", self.out, code=FAILED)


if __name__ == "__main__":
    main()
