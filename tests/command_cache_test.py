#!/usr/bin/env python3
"""Tests `l3 cache`: fill, status and clear, with interruptions, full disks, damage, and several processes at once.

Usage: command_cache_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path
from typing import Any

from command_testing import DONE, FAILED, USAGE, l3_command, main, png
from far_servers import Http, Redis
from sets_testing import SetTest

KILLS = 20
SIDE = 64


def noise(seed: int) -> bytes:
    """A PNG of about 12 kB, which nothing makes smaller."""
    source = random.Random(seed)
    return png(SIDE, SIDE, rows=[source.randbytes(3 * SIDE) for _ in range(SIDE)])


class CacheTest(SetTest):
    def setUp(self) -> None:
        super().setUp()
        self.place = self.folder / "cache"

    def make(self, count: int = 120, shard_size: str = "400K") -> None:
        for i in range(count):
            self.write(f"src/{i:04}.png", noise(i))
        self.convert("--shard-size", shard_size)

    def fill(self, *places: object, code: int = DONE, source: object = None, **options: Any) -> str:
        done = self.l3("cache", "fill", source or self.set, *(places or (f"{self.place}=100%",)), code=code, **options)
        return (done.stdout + done.stderr).decode(errors="replace")

    def status(self, *places: object, code: int = DONE) -> list[dict[str, Any]]:
        said = self.l3("cache", "status", "--json", *(places or (self.place,)), code=code).stdout.decode()
        return [json.loads(line) for line in said.splitlines()]

    def state(self) -> tuple[int, int]:
        """Samples that are there, and that are to be there."""
        found = self.status()
        self.assertEqual(len(found), 1)
        return found[0]["present"], found[0]["samples"]

    def cached_files(self) -> list[Path]:
        return sorted(self.place.glob("*.l3cache/*.l3s"))

    def assert_cached_bytes_are_right(self) -> None:
        """What is marked as present equals the data set, in every byte of every sample."""
        entries = self.entries()
        present = next(self.place.glob("*.l3cache/present")).read_bytes()
        self.assertEqual(len(present), len(entries))
        shards = sorted(self.set.glob("*.l3s"))
        for entry, is_there in zip(entries, present, strict=True):
            if is_there != 1:
                continue
            begin, end = entry["offset"], entry["offset"] + entry["size"]
            shard = shards[entry["shard"]]
            cached = (next(self.place.glob("*.l3cache")) / shard.name).read_bytes()[begin:end]
            self.assertEqual(cached, shard.read_bytes()[begin:end], entry["name"])


class Filling(CacheTest):
    def test_fill_status_clear(self) -> None:
        self.make()
        said = self.fill(f"{self.place}=50%")
        present, wanted = self.state()
        self.assertRegex(said, rf"\A{wanted} of {wanted} samples are cached \([\d.]+ % of the data set\), {wanted} of")
        self.assertEqual(present, wanted)
        self.assertGreater(wanted, 30)
        self.assertLess(wanted, 80)
        self.assert_cached_bytes_are_right()
        found = self.status()[0]
        self.assertEqual((found["data_set"], found["of_samples"]), (str(self.set), 120))
        self.assertGreaterEqual(found["disk_bytes"], found["bytes"])
        self.assertLessEqual(found["bytes"], found["size"])
        table = self.l3("cache", "status", self.place).stdout.decode().splitlines()
        self.assertEqual(re.split(r" {2,}", table[0]), ["PLACE", "DATA SET", "SIZE", "PRESENT", "SHARE", "ON DISK"])
        self.assertEqual(re.split(r" {2,}", table[1])[:2], [str(self.place), str(self.set)])
        self.assertIn(f"{wanted} of {wanted}", table[1])
        self.assertIn("0 of them new: 0 bytes", self.fill(f"{self.place}=50%"))
        said = self.l3("cache", "clear", self.place).stdout.decode()
        self.assertRegex(said, r"\Aremoved 1 data set, [\d.]+ kB\n\Z")
        self.assertEqual(list(self.place.iterdir()), [])
        self.assertEqual(self.l3("cache", "status", self.place).stdout, b"nothing is cached there\n")

    def test_two_places(self) -> None:
        self.make()
        other = self.folder / "other"
        self.fill(f"{self.place}=30%", f"{other}=40%")
        found = self.status(self.place, other)
        self.assertEqual([one["place"] for one in found], [str(self.place), str(other)])
        self.assertEqual([one["present"] for one in found], [one["samples"] for one in found])
        self.assertLessEqual(sum(one["samples"] for one in found), 0.75 * 120)
        # Each place may lack nearly a run, of 256 KiB or 21 samples.
        self.assertGreaterEqual(sum(one["samples"] for one in found), 0.7 * 120 - 2 * 21)

    def test_clear_one_of_two_data_sets(self) -> None:
        self.make(20)
        second = self.folder / "second"
        self.convert("--shard-size", "100K", to=second)
        self.fill()
        self.fill(source=second)
        self.assertEqual({one["data_set"] for one in self.status()}, {str(self.set), str(second)})
        self.l3("cache", "clear", "--set", "second/", self.place, cwd=self.folder)
        self.assertEqual([one["data_set"] for one in self.status()], [str(self.set)])
        said = self.l3("cache", "clear", "--set", second, self.place, code=FAILED).stderr.decode()
        self.assert_one_line(said, "is not cached there")
        self.assertEqual(self.state(), (20, 20))

    def test_wrong_usage(self) -> None:
        self.make(4)
        for words in (("fill", self.set), ("fill", self.set, self.place), ("fill", self.set, f"{self.place}=5XB"),
                      ("fill", self.set, f"{self.place}=0%"), ("fill", self.set, f"{self.place}=101%"),
                      ("fill", self.set, f"{self.place}=1%", f"{self.place}=2%"), ("drop", self.place), ("status",),
                      ("fill", self.set, f"{self.place}=80%", "-j0"), ()):
            with self.subTest(words=words):
                self.assert_one_line(self.l3("cache", *words, code=USAGE).stderr.decode(), "")
        for words in (("status", self.folder / "none"), ("clear", self.folder / "none"), ("status", "redis://host/a"),
                      ("fill", self.folder / "none", f"{self.place}=1%"), ("fill", self.set, "/proc/l3=1%"),
                      ("fill", self.set, f"{self.place}=100B")):
            with self.subTest(words=words):
                self.assert_one_line(self.l3("cache", *words, code=FAILED).stderr.decode(), "")

    def test_another_size(self) -> None:
        self.make()
        self.fill(f"{self.place}=30%")
        few = self.state()
        self.fill(f"{self.place}=60%")
        more = self.state()
        self.assertGreater(more[0], few[0])
        self.assert_cached_bytes_are_right()
        self.assertIn("l3 cache clear", self.fill(f"{self.place}=30%", code=FAILED))
        self.assertEqual(self.state(), more)

    def test_a_changed_data_set_is_another_one(self) -> None:
        self.make(30)
        self.fill()
        self.write("src/0003.png", noise(1003))
        shutil.rmtree(self.set)
        self.convert("--shard-size", "400K")
        self.fill()
        found = self.status()
        self.assertEqual([(one["data_set"], one["present"]) for one in found], [(str(self.set), 30)] * 2)
        self.l3("cache", "clear", "--set", self.set, self.place)
        self.fill()
        self.assert_cached_bytes_are_right()

    def test_a_damaged_data_set(self) -> None:
        self.make(30)
        entry = self.entries()[7]
        shard = sorted(self.set.glob("*.l3s"))[entry["shard"]]
        whole = bytearray(shard.read_bytes())
        whole[entry["offset"] + entry["size"] - 9] ^= 1
        shard.write_bytes(whole)
        said = self.fill(code=FAILED)
        self.assertRegex(said, r"(?m)^l3: \S*shard-00000.l3s: 0007.png: offset \d+: the check of a sample does not "
                               r"match$")
        self.assertIn("1 sample is not cached", said)
        self.assertEqual(self.state(), (29, 30))

    def test_damaged_caches_are_shown(self) -> None:
        self.make(20)
        self.fill()
        about = next(self.place.glob("*.l3cache/about.json"))
        about.write_bytes(b"{")
        found = self.status(code=FAILED)
        self.assertIn("damaged", found[0]["problem"])
        self.fill()  # writes it again
        self.assertEqual(self.state(), (20, 20))
        next(self.place.glob("*.l3cache/present")).write_bytes(b"")
        self.fill()
        self.assertEqual(self.state(), (20, 20))
        self.assert_cached_bytes_are_right()

    def test_clear_follows_no_link(self) -> None:
        self.make(4)
        self.fill()
        treasure = self.write("treasure/present", b"gold")
        (self.place / ("0" * 32 + ".l3cache")).symlink_to(treasure.parent)
        self.l3("cache", "clear", self.place, code=FAILED)
        self.assertEqual(treasure.read_bytes(), b"gold")

    @unittest.skipIf(os.geteuid() != 0, "only root can make files of another user")
    def test_the_place_of_another_user(self) -> None:
        self.make(10)
        self.fill()
        folder = next(self.place.glob("*.l3cache"))
        os.chown(folder, 12345, 12345)
        self.assertIn("belongs to another user", self.fill(code=FAILED))
        os.chown(folder, 0, 0)
        self.fill()


class Interruptions(CacheTest):
    def test_kills(self) -> None:
        """Killed at random moments and repeated, it ends with all samples, and never with a wrong one."""
        self.make(300, "1M")
        source = random.Random(5)
        interrupted = 0
        begun = time.monotonic()
        self.fill()
        whole = time.monotonic() - begun
        self.l3("cache", "clear", "-q", self.place)
        for number in range(KILLS):
            process = subprocess.Popen([l3_command(), "cache", "fill", "-q", "-j2", self.set, f"{self.place}=100%"])
            time.sleep(source.uniform(0, whole))
            process.send_signal(signal.SIGKILL if number % 4 else signal.SIGINT)
            process.wait(30)
            if next(self.place.glob("*.l3cache/about.json"), None) is None:
                continue
            self.assert_cached_bytes_are_right_or_absent()
            present, wanted = self.state()
            interrupted += present < wanted
            if present == wanted:
                self.l3("cache", "clear", "-q", self.place)
        self.assertGreater(interrupted, 0, "at least one was in its middle")
        self.fill()
        self.assertEqual(self.state(), (300, 300))
        self.assert_cached_bytes_are_right()

    def assert_cached_bytes_are_right_or_absent(self) -> None:
        present = next(self.place.glob("*.l3cache/present"), None)
        if present is not None and present.stat().st_size > 0:
            self.assert_cached_bytes_are_right()

    def test_two_fill_at_once(self) -> None:
        self.make(200)
        words = [l3_command(), "cache", "fill", self.set, f"{self.place}=80%"]
        running = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
        for process in running:
            said, wrong = process.communicate(timeout=60)
            self.assertEqual((process.returncode, wrong), (0, b""))
            self.assertRegex(said.decode(), r"\A(\d+) of \1 samples are cached")
        present, wanted = self.state()
        self.assertEqual(present, wanted)
        self.assert_cached_bytes_are_right()


class FullDisks(CacheTest):
    def test_no_room(self) -> None:
        """It is said before anything is read, and a smaller size is not refused afterwards."""
        self.make(60)
        disk = self.disk("200k")
        said = self.fill(f"{disk}/cache=100%", code=FAILED)
        self.assertRegex(said, r"\Al3: \S+/cache: needs [\d.]+ kB, but only [\d.]+ kB are free there; choose a smaller")
        self.place = disk / "cache"
        self.assertEqual(self.status(), [])
        shutil.rmtree(self.source)
        shutil.rmtree(self.set)
        self.make(10, "60K")
        self.fill(f"{self.place}=60%")
        self.assert_cached_bytes_are_right()

    def test_the_disk_becomes_full(self) -> None:
        self.make()
        disk = self.disk("2m")
        self.place = disk / "cache"
        filler = disk / "filler"
        self.fill(f"{self.place}=30%")
        filler.write_bytes(bytes(1_400_000))
        said = self.fill(f"{self.place}=60%", code=FAILED)
        self.assertIn("are free there", said)
        self.assert_cached_bytes_are_right()
        filler.unlink()
        self.fill(f"{self.place}=60%")
        self.assert_cached_bytes_are_right()

    def disk(self, size: str) -> Path:
        """A file system of this size."""
        if os.geteuid() != 0:
            self.skipTest("only root can mount a small file system")
        disk = self.folder / "disk"
        disk.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "l3-test", disk], capture_output=True)
        if done.returncode != 0:
            self.skipTest(f"a small file system cannot be mounted: {done.stderr.decode(errors='replace').strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        return disk

    def test_a_limit_of_the_size_of_files(self) -> None:
        """As a quota does, it stops the writing in the middle."""
        self.make(60, "1G")
        most = 300_000

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        said = self.fill(code=FAILED, preexec_fn=limit)
        self.assertRegex(said, r"(?m)^l3: \S+cache: cannot write to a cache: File too large$")
        self.assertRegex(said, r"(?m)^l3: \d+ samples are not cached; repeat the command to continue$")
        present, wanted = self.state()
        self.assertGreater(present, 5)
        self.assertLess(present, wanted)
        self.assert_cached_bytes_are_right()
        self.fill()
        self.assertEqual(self.state(), (60, 60))
        self.assert_cached_bytes_are_right()


class FromHttp(CacheTest):
    def setUp(self) -> None:
        super().setUp()
        if missing := Http.missing():
            self.skipTest(missing)
        self.server = self.enterContext(Http())

    def publish(self) -> None:
        for path in self.set.iterdir():
            self.server.put(f"set/{path.name}", path.read_bytes())

    def test_fill(self) -> None:
        self.make()
        self.publish()
        url = self.server.url("set")
        self.fill(f"{self.place}=70%", source=url)
        self.assertEqual(self.status()[0]["data_set"], url)
        self.assert_cached_bytes_are_right()
        # The same data set has the same cache, wherever it is.
        self.assertIn("0 of them new", self.fill(f"{self.place}=70%"))
        self.l3("cache", "clear", "--set", url, self.place)

    def test_the_store_changes(self) -> None:
        """Samples of a data set that was replaced meanwhile are not kept."""
        self.make(40)
        self.publish()
        entry = self.entries()[3]
        name = sorted(self.set.glob("*.l3s"))[entry["shard"]].name
        whole = bytearray((self.set / name).read_bytes())
        whole[entry["offset"]:entry["offset"] + entry["size"]] = bytes(entry["size"])
        self.server.put(f"set/{name}", bytes(whole))
        self.fill(source=self.server.url("set"), code=FAILED)
        self.assertEqual(self.state(), (39, 40))
        self.publish()
        self.fill(source=self.server.url("set"))
        self.assert_cached_bytes_are_right()

    def test_the_store_is_gone(self) -> None:
        self.make()
        self.publish()
        url = self.server.url("set")
        self.fill(f"{self.place}=40%", source=url)
        self.server.kill()
        said = self.fill(f"{self.place}=40%", source=url, code=FAILED, env={**os.environ, "L3_ATTEMPTS": "1"})
        self.assertIn(url, said)


class InRedis(CacheTest):
    def setUp(self) -> None:
        super().setUp()
        if missing := Redis.missing():
            self.skipTest(missing)
        self.server = self.enterContext(Redis())
        self.at = f"redis://127.0.0.1:{self.server.port}"

    def keys(self) -> list[str]:
        return self.server.ask("KEYS", "l3cache/*").split()

    def test_fill(self) -> None:
        self.make(80)
        said = self.fill(f"{self.at}=50%")
        new = int(re.search(r"(\d+) of them new", said)[1])  # type: ignore[index]
        self.assertEqual(len(self.keys()), new)
        self.assertIn("0 of them new", self.fill(f"{self.at}=50%"))
        self.server.ask("DEL", *self.keys()[:5])
        self.assertIn("5 of them new", self.fill(f"{self.at}=50%"))

    def test_no_memory(self) -> None:
        self.make(120)
        self.server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        used = int(re.search(r"used_memory:(\d+)", self.server.ask("INFO", "memory"))[1])  # type: ignore[index]
        self.server.ask("CONFIG", "SET", "maxmemory", used + 300_000)
        said = self.fill(f"{self.at}=100%", code=FAILED)
        self.assertRegex(said, r"(?m)^l3: redis://127\S*: .*(no space|No space|memory)")
        self.assertRegex(said, r"(?m)^l3: \d+ samples are not cached")
        self.server.ask("CONFIG", "SET", "maxmemory", 0)
        self.fill(f"{self.at}=100%")
        self.assertEqual(len(self.keys()), 120)

    def test_nobody_answers(self) -> None:
        self.make(40)
        self.server.kill()
        said = self.fill(f"{self.at}=100%", code=FAILED)
        self.assertIn("40 samples are not cached", said)


if __name__ == "__main__":
    main()
