#!/usr/bin/env python3
"""Tests l3 convert: data sets in parts, interrupted and resumed runs, full disks, two runs at once, and files that must
not be replaced.

Usage: command_sets_runs_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import fcntl
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from command_testing import DONE, FAILED, flip, l3_command, main, png
from sets_testing import WORK, Held, SetTest, contents, is_sanitized


class Parts(SetTest):
    def setUp(self) -> None:
        super().setUp()
        for folder in ("a", "b", "c"):
            for i in range(5):
                self.write(f"src/{folder}/{i}.png", png(10 + 7 * i, 10, seed=i))

    def part(self, which: str, *words: object) -> None:
        self.convert("--part", which, "--shard-size", 6000, *words)

    def test_parts_make_the_whole(self) -> None:
        self.convert(to=self.folder / "whole")
        for number in (3, 1, 2):
            self.part(f"{number}/3")
        self.assertIn("part-2of3.json", contents(self.set))
        self.l3("ls", self.set, code=FAILED)
        self.assertIn(b"3 parts merged: 15 samples in", self.l3("merge", self.set).stdout)
        self.assertEqual(self.what_is_in(), self.what_is_in(self.folder / "whole"))
        self.assertEqual(self.classes(), ["a", "b", "c"])
        self.assert_whole()
        self.l3("verify", self.set, "--against", self.source)
        self.assertFalse([name for name in contents(self.set) if name.startswith("part-")])
        before = contents(self.set)
        self.assertIn(b"nothing to do", self.l3("merge", self.set).stdout)
        self.assertIn("exists already", self.refused("--part", "1/3"))
        self.assertEqual(contents(self.set), before)

    def test_side_by_side(self) -> None:
        processes = [subprocess.Popen([l3_command(), "convert", self.source, self.set, "--part", f"{i}/4", "-q",
                                       "--method", "fast"]) for i in range(1, 5)]
        self.assertEqual([process.wait(60) for process in processes], [DONE] * 4)
        self.l3("merge", self.set)
        self.l3("verify", self.set, "--against", self.source)

    def test_a_part_is_missing(self) -> None:
        self.part("1/3")
        self.part("3/3")
        said = self.l3("merge", self.set, code=FAILED).stderr.decode()
        self.assert_one_line(said, "these of the 3 parts are missing: 2")
        self.assertNotIn("index.json", contents(self.set))
        self.part("2/3")
        self.l3("merge", self.set)
        self.assert_whole()

    def test_parts_of_different_options(self) -> None:
        self.part("1/2")
        self.part("2/2", "--labels", "none")
        said = self.l3("merge", self.set, code=FAILED).stderr.decode()
        self.assert_one_line(said, r"part-2of2\.json: was made from other sources or with other options")
        self.part("2/2", "--force")
        self.part("3/3")
        self.assert_one_line(self.l3("merge", self.set, code=FAILED).stderr.decode(), "one of 3 parts, but")
        self.assertNotIn("index.json", contents(self.set))

    def test_other_sources(self) -> None:
        self.part("1/2")
        self.write("src/d/new.png", png(3, 3))
        self.part("2/2")
        self.assert_one_line(self.l3("merge", self.set, code=FAILED).stderr.decode(), "other sources")

    def test_more_parts_than_groups(self) -> None:
        shutil.rmtree(self.source)
        self.images(2)
        for number in range(1, 5):
            self.part(f"{number}/4")
        self.l3("merge", self.set)
        self.assertEqual(len(self.names()), 2)
        self.l3("verify", self.set, "--against", self.source)

    def test_damaged_parts(self) -> None:
        self.part("1/2")
        self.part("2/2")
        index = self.set / "part-1of2.json"
        good = index.read_bytes()
        for data in (b"", good[:-20], good.replace(b'"part": 1', b'"part": 2'), b"[]", b'{"part": 1, "parts": 2}'):
            index.write_bytes(data)
            said = self.l3("merge", self.set, code=FAILED).stderr.decode()
            self.assertEqual(said.count("\n"), 1)
            self.assertIn("part-1of2.json", said)
        index.write_bytes(good)
        flip(self.set / "shard-1of2-00000.l3s", -10)
        self.l3("merge", self.set, code=FAILED)
        self.assertNotIn("index.json", contents(self.set))
        flip(self.set / "shard-1of2-00000.l3s", -10)
        self.l3("merge", self.set)
        self.assert_whole()

    def test_so_many_parts(self) -> None:
        self.part("1/2")
        text = (self.set / "part-1of2.json").read_text().replace('"parts": 2', '"parts": 4294967295')
        (self.set / "part-1of2.json").unlink()
        (self.set / "part-1of4294967295.json").write_text(text)
        process = subprocess.Popen([l3_command(), "merge", self.set], stderr=subprocess.DEVNULL)
        try:
            self.assertEqual(process.wait(10), FAILED)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.fail("it counts for ever")


class Existing(SetTest):
    def setUp(self) -> None:
        super().setUp()
        self.images(8)

    def test_nothing_is_replaced_unasked(self) -> None:
        self.convert()
        before = contents(self.set)
        self.assert_one_line(self.refused(), "contains a data set already; to replace it, use --force")
        self.assertEqual(contents(self.set), before)
        self.assertIn(b"nothing to do", self.convert("--resume").stdout)
        self.assertEqual(contents(self.set), before)
        (self.set / "mine.txt").write_bytes(b"stays")
        self.images(1, first=8)
        self.assert_one_line(self.refused("--resume"), "is complete, but was made without .* --force")
        self.convert("--force")
        self.assertEqual(len(self.names()), 9)
        self.assertEqual((self.set / "mine.txt").read_bytes(), b"stays")
        (self.set / "index.json").unlink()
        for words in ((), ("--resume",)):
            self.assert_one_line(self.refused(*words),
                                 r"shard-00000\.l3s: exists already, without an index; start over with --force")
        self.assertEqual(sorted(os.listdir(self.set)), ["mine.txt", "shard-00000.l3s"])

    def test_resume_where_nothing_is(self) -> None:
        self.convert("--resume")
        self.assertEqual(len(self.names()), 8)
        self.assert_whole()

    def test_whole_with_failures_is_still_a_failure(self) -> None:
        self.write("src/0004.png", b"corrupt")
        self.convert("--on-error", "skip", code=FAILED)
        whole = contents(self.set)
        (self.set / ".errors.tsv.l3tmp-123-4").write_bytes(b"left")
        self.convert("--on-error", "skip", "--resume", code=FAILED)
        self.assertEqual(contents(self.set), whole)

    def test_target_that_is_no_folder(self) -> None:
        self.set.write_bytes(b"a file")
        self.assertRegex(self.refused(), r"set(/\.l3-convert)?: ")
        self.assertRegex(self.refused("--force"), r"set(/\.l3-convert)?: ")
        self.assertEqual(self.set.read_bytes(), b"a file")
        self.set.unlink()
        self.set.symlink_to("nowhere")
        self.refused()
        self.set.unlink()
        (self.folder / "real").mkdir()
        self.set.symlink_to("real")
        self.convert()
        self.assert_whole(self.folder / "real")

    def test_target_that_cannot_be_written(self) -> None:
        self.set.mkdir(mode=0o500)
        if os.access(self.set, os.W_OK):
            self.skipTest("root writes everywhere")
        self.assert_one_line(self.refused(), "set.*: Permission denied")
        self.set.chmod(0o700)
        self.assertEqual(contents(self.set), {})

    def test_links_in_the_target(self) -> None:
        self.set.mkdir()
        precious = self.write("precious", b"not to be lost")
        for name in ("shard-00000.l3s", "index.json"):
            (self.set / name).symlink_to(precious)
            self.refused()
            self.convert("--force")
            self.assertEqual(precious.read_bytes(), b"not to be lost", name)
            self.assert_whole()
            shutil.rmtree(self.set)
            self.set.mkdir()


class Interrupted(SetTest):
    def uninterrupted(self, *words: object, code: int = DONE) -> dict[str, bytes]:
        self.convert(*words, to=self.folder / "whole", code=code)
        return contents(self.folder / "whole")

    def assert_same(self, whole: dict[str, bytes], what: object) -> None:
        found = contents(self.set)
        self.assertEqual(sorted(found), sorted(whole), what)
        self.assertEqual([name for name in whole if found[name] != whole[name]], [], what)

    def test_what_the_end_of_power_took(self) -> None:
        held = Held(self)
        held.process.kill()
        held.process.wait()
        kept = self.folder / "kept"
        shutil.copytree(self.set, kept)
        whole = self.uninterrupted(*held.options, code=FAILED)
        ends = [entry["offset"] + entry["size"] for entry in self.entries(self.folder / "whole")]
        gap = next(end for end in ends[:Held.GOOD_BEFORE - 1] if end % 64 != 0)
        for what, at, data in (("head", 0, bytes(4096)), ("gap", gap, b"\1")):
            with self.subTest(what):
                shutil.rmtree(self.set)
                shutil.copytree(kept, self.set)
                with open(self.set / WORK / "growing.l3s", "r+b") as file:
                    file.seek(at)
                    file.write(data)
                self.convert("--resume", *held.options, code=FAILED)
                self.assert_same(whole, what)

    def test_every_way_to_end(self) -> None:
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how=how.name):
                shutil.rmtree(self.set, ignore_errors=True)
                held = Held(self)
                held.process.send_signal(how)
                self.assertEqual(held.process.wait(30), -how)
                self.assertEqual(sorted(os.listdir(self.set)), [WORK])
                self.assertEqual([name for name in os.listdir(self.set / WORK) if "tmp" in name], [])
                self.assert_one_line(self.refused(*held.options),
                                     "contains an unfinished data set; continue it with --resume")
                done = self.convert("--resume", *held.options, code=FAILED)
                self.assertRegex(done.stdout, rb"^110 files converted: .*; 6 already done; 40 failed\n")
                self.assertEqual(contents(self.set), self.uninterrupted("--force", *held.options, code=FAILED))

    def test_an_interruption_says_how_to_go_on(self) -> None:
        for i in range(8):
            self.write(f"src/{i:02}.pgm", b"P5\n512 512\n255\n" + random.Random(i).randbytes(1 << 18))
        journal = self.set / WORK / "journal"
        for words, how_on in (((), "--resume"), (("--force",), "--resume instead of --force"), (("-q", "--force"), "")):
            shutil.rmtree(self.set, ignore_errors=True)
            command = [l3_command(), "convert", self.source, self.set, "-j1", "--shared-model", "off", *words]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            while process.poll() is None and not (journal.exists() and journal.stat().st_size > 0):
                time.sleep(0.002)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=30)[1].decode()
            self.assertEqual(process.returncode, -signal.SIGINT)
            wanted = "l3: Interrupted. All work so far is kept. To continue, repeat the command with "
            self.assertEqual(said, f"{wanted}{how_on}\n" if how_on else "")
        self.l3("convert", self.source, self.set, "--shared-model", "off", "--resume")
        self.l3("verify", self.set, "--against", self.source)

    def test_two_at_one_target(self) -> None:
        held = Held(self)
        for words in ((), ("--resume",), ("--force",)):
            self.assert_one_line(self.refused(*held.options, *words),
                                 "another l3 convert, or an l3.DatasetWriter, is writing to this folder")
        code, said = held.release()
        self.assertEqual((code, said.count("\n")), (FAILED, 40))
        self.assert_whole()
        self.assertEqual(contents(self.set), self.uninterrupted(*held.options, code=FAILED))

    def test_sources_that_change_underneath(self) -> None:
        held = Held(self)
        self.write("src/z105.png", png(9, 9))
        self.write("src/z106.png", png(8, 8, seed=106))
        os.utime(self.source / "z106.png", (1e9, 1e9))
        (self.source / "z107.png").unlink()
        self.write("src/z108.png", b"")
        code, said = held.release()
        self.assertEqual(code, FAILED)
        for number in (105, 106, 108):
            self.assertRegex(said, rf"z{number}\.png: changed during the conversion")
        self.assertRegex(said, r"z107\.png: cannot open")
        self.assert_whole()
        self.assertEqual(len(self.names()), 116 - 4)

    def test_resume_with_other_options(self) -> None:
        held = Held(self)
        held.process.kill()
        held.process.wait()
        before = contents(self.set / WORK)
        for words, name in ((["--shard-size", 9999], "shard-size"), (["--tile", 64], "tile"),
                            (["--effort", 2], "effort"), (["--shared-model", "off"], "shared-model")):
            said = self.refused("--resume", *held.options, *words)
            self.assert_one_line(said, rf"was begun with other options: --{name}=")
        said = self.l3("convert", self.source, self.set, "--resume", "--method", "dense", code=FAILED).stderr.decode()
        self.assert_one_line(said, r"other options: --method=fast, now --method=dense")
        for words, name in ((["--labels", "folder"], "--labels"), (["--group", "stem"], "--group")):
            said = self.refused("--resume", *held.options, *words)
            self.assertEqual(contents(self.set / WORK), before)
            with self.subTest(name):
                self.assertIn(name, said)
        self.convert("--resume", *held.options, code=FAILED)

    def test_resume_with_other_sources(self) -> None:
        held = Held(self)
        held.process.kill()
        held.process.wait()
        source = self.source / "a003.png"
        good, when = source.read_bytes(), source.stat().st_mtime_ns

        def mend() -> None:
            source.write_bytes(good)
            os.utime(source, ns=(when, when))

        source.write_bytes(png(5, 5))
        self.assert_one_line(self.refused("--resume", *held.options), "a003.png: was converted already")
        mend()
        os.utime(source, (1e9, 1e9))
        self.assert_one_line(self.refused("--resume", *held.options), "a003.png: was converted already")
        source.unlink()
        self.assert_one_line(self.refused("--resume", *held.options), "was converted already")
        mend()
        new = self.write("src/a0021.png", good)
        self.assert_one_line(self.refused("--resume", *held.options), "was converted already")
        new.unlink()
        # Behind those that are done, all may change.
        self.write("src/zz.png", png(4, 4))
        (self.source / "z100.png").unlink()
        self.convert("--resume", *held.options, code=FAILED)
        self.assertEqual(contents(self.set), self.uninterrupted(*held.options, code=FAILED))

    def test_other_sources_in_shards_that_are_done(self) -> None:
        held = Held(self, "--shard-size", 4600)
        held.process.kill()
        held.process.wait()
        self.assertIn("shard-00001.l3s", os.listdir(self.set))
        source = self.source / "a000.png"
        good, when = source.read_bytes(), source.stat().st_mtime_ns
        source.write_bytes(png(5, 5))
        self.assert_one_line(self.refused("--resume", *held.options), "that were converted already have changed")
        source.write_bytes(good)
        os.utime(source, ns=(when, when))
        shard = self.set / "shard-00001.l3s"
        data = shard.read_bytes()
        shard.write_bytes(data[:-1])
        self.assert_one_line(self.refused("--resume", *held.options), r"shard-00001\.l3s: is missing or has changed")
        shard.unlink()
        self.assert_one_line(self.refused("--resume", *held.options), r"shard-00001\.l3s: is missing or has changed")
        shard.write_bytes(data)
        self.convert("--resume", *held.options, code=FAILED)
        self.assertEqual(contents(self.set), self.uninterrupted(*held.options, code=FAILED))

    def test_damaged_notes_of_what_is_unfinished(self) -> None:
        """Whatever stands in .l3-convert: it is refused, or what becomes of it is right (but for the finding above)."""
        held = Held(self, "--shard-size", 5200)
        held.process.kill()
        held.process.wait()
        self.assertIn("shard-00000.l3s", os.listdir(self.set))
        kept = self.folder / "kept"
        shutil.copytree(self.set, kept)
        whole = self.uninterrupted(*held.options, code=FAILED)
        source = random.Random(3)
        verdicts: set[str] = set()
        for name in ("state", "journal", "growing.l3s") * 5:
            shutil.rmtree(self.set)
            shutil.copytree(kept, self.set)
            path = self.set / WORK / name
            data = bytearray(path.read_bytes())
            way = source.randrange(5)
            if way == 0 and data:
                data[source.randrange(len(data))] ^= 1 << source.randrange(8)
            elif way == 1:
                del data[source.randrange(len(data) + 1):]
            elif way == 2:
                data += source.randbytes(50)
            elif way == 3:
                data = bytearray(source.randbytes(len(data)))
            path.write_bytes(data)
            if way == 4:
                path.unlink()
            result = subprocess.run([l3_command(), "convert", self.source, self.set, "--method", "fast", "--resume",
                                     *map(str, held.options)], capture_output=True, timeout=60)
            self.assertEqual(result.returncode, FAILED)
            if (self.set / "index.json").exists():
                self.assert_same(whole, f"{name}, way {way}")
                verdicts.add("went on")
            else:
                self.assert_one_line(result.stderr.decode(), "(is damaged|without an index)")
                verdicts.add("refused")
        self.assertEqual(verdicts, {"went on", "refused"})

    def test_short_soak(self) -> None:
        script = Path(__file__).with_name("resume_soak.py")
        result = subprocess.run([sys.executable, script, "--l3", l3_command(), "--kills", "5", "--images", "40"],
                                capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


class Limits(SetTest):
    def test_file_size_limit(self) -> None:
        self.images(30, side=40)
        whole = self.folder / "whole"
        self.convert(to=whole)
        too_large = r"growing\.l3s: cannot write: File too large"
        limit = (whole / "shard-00000.l3s").stat().st_size // 2

        def limited() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        for words in ((), ("--resume",)):
            said = self.refused(*words, preexec_fn=limited)
            self.assertRegex(said, rf"\Al3: [^\n]*{too_large}\nl3: [^\n]*continue with --resume\n\Z")
        done = self.convert("--resume").stdout.decode()
        self.assertRegex(done, r"; \d+ already done\n")
        self.assertEqual(contents(self.set), contents(whole))
        for limit in (0, 10, 300, 4000):
            shutil.rmtree(self.set)
            said = self.refused(preexec_fn=limited)
            self.assertIn("File too large", said, limit)
            self.convert("--resume")
            self.assertEqual(contents(self.set), contents(whole))

    def test_full_disk(self) -> None:
        self.images(40, side=48)
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", disk], capture_output=True).returncode:
            self.skipTest("no right to mount a small disk")
        self.addCleanup(lambda: subprocess.run(["umount", disk]))
        words = ("--shard-size", 30000)
        whole = self.folder / "whole"
        self.convert(*words, to=whole)
        for again in ((), ("--resume",)):
            said = self.refused(*words, *again, to=disk / "set")
            self.assertRegex(said, r"\Al3: [^\n]*cannot (write|create): No space left on device\nl3: [^\n]*--resume")
        subprocess.run(["mount", "-o", "remount,size=16m", disk], check=True)
        done = self.convert(*words, "--resume", to=disk / "set").stdout.decode()
        self.assertRegex(done, r"; \d+ already done\n")
        self.assertEqual(contents(disk / "set"), contents(whole))
        shutil.rmtree(disk / "set")

    def test_few_threads(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("no right to become a user who has no other process")
        if is_sanitized():
            self.skipTest("a sanitizer needs threads of its own")
        self.images(6)
        command = self.folder / "l3"
        shutil.copy(l3_command(), command)
        if subprocess.run([command, "--version"], capture_output=True).returncode != 0:
            self.skipTest("the command cannot be copied")
        for path in (self.folder, command):
            path.chmod(0o755)
        for most in range(2, 12):
            target = self.folder / str(most)
            target.mkdir()
            os.chown(target, 54321, 54321)

            def become(most: int = most) -> None:
                resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
                os.setgid(54321)
                os.setuid(54321)

            process = subprocess.Popen([command, "convert", self.source, target, "--method", "fast", "-q", "-j4"],
                                       preexec_fn=become, stderr=subprocess.PIPE)
            try:
                said = process.communicate(timeout=10)[1]
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                self.fail(f"with {most} threads it waits for ever")
            self.assertIn((process.returncode, bool(said)), ((DONE, False), (FAILED, True)))

    def test_events_come_when_they_happen(self) -> None:
        self.images(2)
        self.write("src/0000.png", b"corrupt")
        read_end, write_end = os.pipe()
        full_end, full = os.pipe()
        for end in (read_end, full_end):
            self.addCleanup(os.close, end)
        # It stands still where it says what is wrong with the first file.
        os.write(full, bytes(fcntl.fcntl(full, fcntl.F_SETPIPE_SZ, 4096)))
        command = [l3_command(), "convert", str(self.source), str(self.set), "--json", "--on-error", "skip"]
        process = subprocess.Popen(command, stdout=write_end, stderr=full)
        os.close(write_end)
        os.close(full)
        try:
            self.assertTrue(select.select([read_end], [], [], 10)[0], "nothing within ten seconds")
            self.assertTrue(os.read(read_end, 1000).startswith(b'{"event":"begin"'))
        finally:
            process.kill()
            process.wait()

    def test_how_far_it_is_in_a_log(self) -> None:
        """No terminal: a line every ten seconds."""
        held = Held(self)
        time.sleep(10.5)
        code, said = held.release()
        self.assertEqual(code, FAILED)
        self.assertRegex(said, r"(?m)^l3: \d+/156 files, \d+\.\d MP/s, ")
        for line in said.splitlines():
            self.assertRegex(line, r"^l3: ")

    def test_memory_and_time_grow_with_the_set(self) -> None:
        """Ten times as many files take about ten times as long, and little more memory."""
        if is_sanitized():
            self.skipTest("a sanitizer keeps what is freed")
        image = png(4, 4)
        said = []
        for count in (300, 3000):
            for i in range(count):
                path = self.folder / str(count) / f"{i:05}.png"
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(image)
            command = [l3_command(), "convert", str(path.parent), str(self.set), "-q", "--method", "fast", "--force"]
            measure = (f"import resource, subprocess, time; began = time.monotonic(); "
                       f"subprocess.run({command!r}, check=True); "
                       f"print(time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
            out = subprocess.check_output([sys.executable, "-c", measure], text=True, timeout=120)
            said.append([float(word) for word in out.split()])
        (few_seconds, few_kib), (many_seconds, many_kib) = said
        self.assertLess(many_seconds, 40 * few_seconds + 2)
        self.assertLess(many_kib, few_kib + (24 << 10))


if __name__ == "__main__":
    main()
