#!/usr/bin/env python3
"""Tests the l3 command with data sets in far stores: upload, download, convert to a URL, and reading.

Tests of a store whose server is not installed are skipped, and say so.

Usage: command_far_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from command_testing import DONE, FAILED, USAGE, flip, l3_command, main, png
from far_servers import S3, Http, Redis, Server
from sets_testing import SetTest, contents, write_tar

SECRET = "pass-w0rd"
HEAD, FOOTER = 4096, 64


def amount(said: bytes) -> float:
    """The bytes that the last line says were moved."""
    found = re.search(rb": ([\d.]+) (bytes|kB|MB)", said)
    return float(found[1]) * {b"bytes": 1, b"kB": 1e3, b"MB": 1e6}[found[2]] if found else 0


class FarTest(SetTest):
    """A server for all tests of a class, and a URL for each test."""

    SERVER: ClassVar[type[Server]]
    server: ClassVar[Any]

    @classmethod
    def setUpClass(cls) -> None:
        if missing := cls.SERVER.missing():
            raise unittest.SkipTest(missing)
        super().setUpClass()
        cls.server = cls.enterClassContext(cls.SERVER())

    def setUp(self) -> None:
        super().setUp()
        self.name = self.id().split(".")[-1]
        self.url = self.server.url(self.name)
        self.back = self.folder / "back"
        changed = {**self.server.environment(), "L3_ATTEMPTS": "2", "L3_TIMEOUT": "20", "TMPDIR": str(self.folder)}
        before = {name: os.environ.get(name) for name in changed}
        os.environ.update(changed)

        def restore() -> None:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

        self.addCleanup(restore)

    def shards(self, count: int) -> None:
        """Makes a data set with a shard for each image."""
        self.images(count, side=40)
        self.convert("--shard-size", 1)

    def said(self, *words: object, code: int = DONE, **options: Any) -> str:
        done = self.l3(*words, code=code, **options)
        text = (done.stdout + done.stderr).decode(errors="replace")
        self.assertNotIn(SECRET, text)
        return text

    def upload(self, *words: object, code: int = DONE, **options: Any) -> str:
        return self.said("upload", self.set, self.url, *words, code=code, **options)

    def download(self, *words: object, code: int = DONE, **options: Any) -> str:
        return self.said("download", self.url, self.back, *words, code=code, **options)

    def assert_same(self) -> None:
        self.assertEqual(contents(self.back), contents(self.set))

    def kill_when(self, ready: Callable[[], bool], *words: object) -> None:
        """Starts a command and kills it at a moment in its middle."""
        process = subprocess.Popen([l3_command(), *map(str, words)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not ready():
            self.assertIsNone(process.poll(), "it is still at work")
            self.assertLess(time.monotonic(), deadline)
        process.send_signal(signal.SIGKILL)
        self.assertEqual(process.wait(30), -signal.SIGKILL, "it is killed in its middle")


class Everywhere(FarTest):
    """What works with every store."""

    def test_a_round_trip(self) -> None:
        self.shards(12)
        said = self.upload("--verify")
        self.assertRegex(said, r"\A12 shards uploaded: ")
        self.assertIn(f"OK {self.url}: 12 samples OK", said)
        self.assertEqual(self.upload(), "all 12 shards are there already\n")
        self.assertRegex(self.download(), r"\A12 shards downloaded: ")
        self.assert_same()
        self.assertEqual(self.download(), "all 12 shards are there already\n")
        self.assert_whole(self.back)

    def test_every_kind_of_sample_comes_back(self) -> None:
        """Groups with metadata, labels, texts and an empty file; gaps of all sizes; a sample that takes many reads."""
        members = []
        for i in range(20):
            members += [(f"{i:03}.png", png(5 + 3 * i, 7 + i, seed=i)), (f"{i:03}.json", b'{"x": %d}' % i),
                        (f"{i:03}.cls", b"%d" % (i % 3)), (f"{i:03}.txt", b"t" * i)]
        members.append(("010.bin", os.urandom(20_000_001)))
        write_tar(self.source / "a.tar", members)
        self.convert("--shard-size", 12000)
        self.upload()
        self.download()
        self.assert_same()
        self.assertEqual(self.said("ls", "--json", self.url), self.said("ls", "--json", self.set))

    def test_commands_read_it(self) -> None:
        self.images(6)
        self.convert()
        self.upload()
        self.assertEqual(self.said("ls", self.url), self.said("ls", self.set))
        self.assertIn(self.url, self.said("info", self.url))
        self.assertIn("6 samples OK", self.said("verify", self.url, "--against", self.source))
        one, other = self.folder / "one.l3", self.folder / "other.l3"
        self.said("cat", self.url, "0003.png", one)
        self.said("cat", self.set, "0003.png", other)
        self.assertEqual(one.read_bytes(), other.read_bytes())
        shown = ("show", "--as", "kitty")
        self.assertEqual(self.said(*shown, self.url, "0003.png"), self.said(*shown, one))
        self.said("export", self.url, self.folder / "far")
        self.said("export", self.set, self.folder / "near")
        self.assertEqual(contents(self.folder / "far"), contents(self.folder / "near"))
        self.assertIn("no sample has the name nothing", self.said("cat", self.url, "nothing", one, code=FAILED))

    def test_a_data_set_of_nothing_there(self) -> None:
        for words in (("info", self.url), ("ls", self.url), ("verify", self.url), ("download", self.url, self.back)):
            said = self.said(*words, code=FAILED)
            self.assertIn("index.json is missing", said)
            self.assertNotIn("folder", said)
        self.assertFalse(self.back.exists())

    def test_a_damaged_sample_is_not_uploaded(self) -> None:
        self.shards(6)
        damaged = self.set / "shard-00003.l3s"
        flip(damaged, HEAD + 700)
        self.assertRegex(self.upload(code=FAILED), r"shard-00003.l3s: \S+: offset \d+: the check of a sample does not")
        self.assertIn("index.json is missing", self.said("info", self.url, code=FAILED))
        flip(damaged, HEAD + 700)
        self.assertRegex(self.upload(), r"\A1 shard uploaded: .*; \d+ already there")
        self.said("verify", self.url)

    def test_another_data_set_is_not_replaced(self) -> None:
        self.images(6)
        self.convert()
        self.upload()
        self.images(2, first=6)
        self.convert("--force")
        self.assertIn("has another data set; --force replaces it", self.upload(code=FAILED))
        self.assertEqual(len(self.names(self.url)), 6)
        self.upload("--force")
        self.assertIn("8 samples OK", self.said("verify", self.url))

    def test_force_uploads_everything(self) -> None:
        self.shards(3)
        self.upload()
        self.assertRegex(self.upload("--force"), r"\A\d shards uploaded: [^;]*\n\Z")

    def test_another_data_set_in_the_folder(self) -> None:
        self.shards(4)
        self.upload()
        self.write("back/index.json", b"{}")
        self.assertIn("has another data set; --force replaces it", self.download(code=FAILED))
        (self.back / "index.json").unlink()
        self.write("back/shard-00001.l3s", b"something else")
        self.assertIn("is not this shard; --force replaces it", self.download("-j1", code=FAILED))
        self.assertFalse((self.back / "index.json").exists())
        self.download("--force")
        self.assert_same()

    def test_a_partial_shard_goes_on(self) -> None:
        self.images(2, side=120)
        self.convert()
        self.upload()
        whole = (self.set / "shard-00000.l3s").read_bytes()
        second = self.entries()[1]["offset"]
        partial = whole[:second] + bytes(100) + whole[second + 100:]
        self.write("back/.l3-download/shard-00000.l3s", partial)
        self.assertLess(amount(self.download().encode()), 0.7 * len(whole))
        self.assert_same()
        # What an earlier run left of something else does not count.
        shutil.rmtree(self.back)
        self.write("back/.l3-download/shard-00000.l3s", whole[:-1])
        self.download()
        self.assert_same()

    def test_a_disk_that_is_full(self) -> None:
        self.shards(5)
        self.write("src/9999.png", png(300, 300, rows=[os.urandom(900) for _ in range(300)]))
        self.convert("--force", "--shard-size", 1)
        self.upload()
        largest = max(path.stat().st_size for path in self.set.iterdir())
        limit = largest - 1000
        said = self.download("-j2", code=FAILED,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(said.count("cannot write: File too large"), 1)
        self.assertIn("not complete", said)
        kept = [path.name for path in self.back.glob("*.l3s")]
        self.assertGreater(len(kept), 0)
        self.assertRegex(self.download(), rf"\A{6 - len(kept)} shards? downloaded: .*; {len(kept)} already there")
        self.assert_same()

    def test_convert_to_a_url(self) -> None:
        self.images(8)
        said = self.said("convert", self.source, self.url, "--method", "fast", "--shard-size", 1)
        self.assertIn("8 shards uploaded", said)
        self.assertIn("8 samples OK", self.said("verify", self.url, "--against", self.source))
        self.assertEqual(list(self.folder.glob("l3-spool-*")), [])
        self.assertIn("has a data set already", self.said("convert", self.source, self.url, code=FAILED))
        self.assertIn("complete already", self.said("convert", self.source, self.url, "--resume"))
        self.images(1, first=8)
        self.said("convert", self.source, self.url, "--method", "fast", "--force", "--spool", self.folder / "spool")
        self.assertIn("9 samples OK", self.said("verify", self.url, "--against", self.source))
        self.assertFalse((self.folder / "spool").exists())

    def test_convert_goes_on_after_an_upload_that_failed(self) -> None:
        self.images(6)
        words = ("convert", self.source, self.url, "--method", "fast", "--shard-size", 1, "--on-error", "skip")
        bad = self.write("src/bad.png", b"no image")
        self.kill_when(lambda: any(self.folder.glob("l3-spool-*/index.json")), *words)
        said = self.said(*words, code=FAILED)
        self.assertIn("continue it with --resume", said)
        said = self.said(*words, "--resume", code=FAILED)
        self.assertIn("errors.tsv lists the files that failed", said)
        self.assertIn("6 samples OK", self.said("verify", self.url))
        bad.unlink()
        self.said(*words, "--force")
        self.assertEqual(list(self.folder.glob("l3-spool-*")), [])


class Files(Everywhere):
    """What works with stores whose objects are the files."""

    def damage(self, name: str, change: Callable[[bytes], bytes]) -> None:
        self.server.put(f"{self.name}/{name}", change(self.server.get(f"{self.name}/{name}")))

    def test_an_upload_that_was_killed(self) -> None:
        self.shards(150)
        self.kill_when(lambda: len(self.server.names(self.name)) > 2, "upload", "-j1", self.set, self.url)
        self.assertNotIn("index.json", self.server.names(self.name))
        self.assertRegex(self.upload("--verify"), r"; \d+ already there")
        self.download()
        self.assert_same()

    def test_a_download_that_was_killed(self) -> None:
        self.shards(150)
        self.upload("-q")
        self.kill_when(lambda: any(self.back.glob("*.l3s")), "download", "-j1", self.url, self.back)
        self.assertFalse((self.back / "index.json").exists())
        self.assertIn("index.json is missing", self.said("info", self.back, code=FAILED))
        self.assertRegex(self.download(), r"; \d+ already there")
        self.assert_same()

    def test_a_truncated_shard_is_uploaded_again(self) -> None:
        self.shards(4)
        self.upload()
        self.damage("shard-00001.l3s", lambda data: data[:-100])
        said = self.download(code=FAILED)
        self.assertIn("shard-00001.l3s", said)
        self.assertRegex(self.upload(), r"\A1 shard uploaded: .*; 3 already there")
        self.said("verify", self.url)
        self.damage("shard-00002.l3s", lambda data: data[:-100] + b"damaged!" + data[-92:])
        self.assertRegex(self.upload(), r"\A1 shard uploaded: .*; 3 already there")
        self.download()
        self.assert_same()

    def test_damage_between_index_and_head_is_found(self) -> None:
        self.shards(4)
        self.upload()
        self.damage("shard-00002.l3s", lambda data: data[:HEAD + 500] + b"damaged!" + data[HEAD + 508:])
        self.assertRegex(self.upload("--verify", code=FAILED), r"shard-00002.l3s.*check of a sample does not match")
        said = self.download(code=FAILED)
        self.assertRegex(said, r"shard-00002.l3s: \S+.png: offset \d+: the check of a sample does not match")
        self.assertEqual(sorted(path.name for path in self.back.glob("*.l3s")),
                         [f"shard-0000{i}.l3s" for i in (0, 1, 3)])
        self.upload("--force")
        self.assertRegex(self.download(), r"\A1 shard downloaded: .*; 3 already there")
        self.assert_same()

    def test_hostile_names_of_shards(self) -> None:
        self.images(2)
        self.convert()
        self.upload()
        index = self.server.get(f"{self.name}/index.json")
        for name in (b".l3-download", b"index.json", b"../x", b"/etc/x", b".."):
            self.server.put(f"{self.name}/index.json", index.replace(b"shard-00000.l3s", name))
            self.said("download", self.url, self.back, code=FAILED)
            self.assertFalse(self.back.exists())


class HttpTest(Files):
    SERVER = Http

    def test_no_secrets(self) -> None:
        """In messages about what works, and about what does not."""
        self.images(2)
        self.convert()
        self.url = self.url.replace("://", f"://user:{SECRET}@")
        self.said("info", self.url, code=FAILED)
        self.upload("--verify")
        self.said("info", self.url)
        self.said("info", "--json", self.url)
        self.download()
        self.said("cat", self.url, "nothing", self.folder / "x", code=FAILED)
        self.said("encode", self.url, self.folder / "x.l3", code=USAGE)
        self.said("convert", self.source, self.url, code=FAILED)
        self.said("info", f"ftp://user:{SECRET}@127.0.0.1/x", code=FAILED)

    def test_a_server_that_takes_nothing(self) -> None:
        self.images(2)
        self.convert()
        in_the_way = self.server.root / self.name
        in_the_way.write_bytes(b"a file, not a folder")
        said = self.upload(code=FAILED)
        self.assertIn("index.json was not written", said)
        said = self.said("convert", self.source, self.url, "--method", "fast", code=FAILED)
        self.assertIn("repeat the command with --resume", said)
        in_the_way.unlink()
        self.said("convert", self.source, self.url, "--method", "fast", "--resume")
        self.assertIn("2 samples OK", self.said("verify", self.url))
        self.assertEqual(list(self.folder.glob("l3-spool-*")), [])

    def test_a_server_that_ends_and_comes_back(self) -> None:
        self.shards(150)
        process = subprocess.Popen([l3_command(), "upload", "-j1", str(self.set), self.url], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        while len(self.server.names(self.name)) < 3:
            self.assertIsNone(process.poll(), "it is still at work")
        self.server.kill()
        said = process.communicate(timeout=60)[1]
        self.server.restart()
        self.assertEqual(process.returncode, FAILED, said)
        # One failure says it all. (If all shards had been sent, it names index.json.)
        self.assertLessEqual(said.count(b"shard-"), 1, said)
        self.assertRegex(said, rb"shard-|index\.json")
        self.assertRegex(self.upload("--verify"), r"; \d+ already there")

    def test_nobody_listens(self) -> None:
        self.images(2)
        self.convert()
        self.url = "http://127.0.0.1:1/set"
        self.upload(code=FAILED)
        self.download(code=FAILED)
        self.said("info", self.url, code=FAILED)

    def test_spools_of_others(self) -> None:
        self.images(2)
        spool = self.folder / "spool"
        spool.mkdir()
        (spool / "precious").write_bytes(b"1")
        words = ("convert", self.source, self.url, "--method", "fast", "--spool", spool)
        self.assertIn("is not empty", self.said(*words, "--force", code=FAILED))
        (spool / "precious").unlink()
        (spool / ".l3-spool").write_text("http://elsewhere/set\n")
        self.assertIn("another URL", self.said(*words, "--force", code=FAILED))

    def test_a_temporary_folder_that_others_can_write_to(self) -> None:
        self.images(2)
        words = ("convert", self.source, self.url, "--method", "fast")
        self.kill_when(lambda: any(self.folder.glob("l3-spool-*")), *words)
        spool = next(iter(self.folder.glob("l3-spool-*")))
        self.assertEqual(spool.stat().st_mode & 0o777, 0o700)
        shutil.rmtree(spool)
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        spool.symlink_to(elsewhere)
        self.assertIn("only this user can write to", self.said(*words, code=FAILED))
        spool.unlink()
        spool.mkdir()
        spool.chmod(0o777)
        self.assertIn("only this user can write to", self.said(*words, code=FAILED))


class S3Test(Files):
    SERVER = S3


class RedisTest(Everywhere):
    SERVER = Redis

    def has(self, key: str) -> bool:
        return self.server.ask("EXISTS", f"{self.name}/{key}") == "1"

    def test_an_upload_and_a_download_that_were_killed(self) -> None:
        self.shards(150)
        self.kill_when(lambda: self.has("shard-00002.l3s/index"), "upload", "-j1", self.set, self.url)
        self.assertFalse(self.has("index.json"))
        self.assertRegex(self.upload("--verify"), r"; \d+ already there")
        self.kill_when(lambda: any(self.back.glob("*.l3s")), "download", "-j1", self.url, self.back)
        self.assertFalse((self.back / "index.json").exists())
        self.assertRegex(self.download(), r"; \d+ already there")
        self.assert_same()

    def test_a_sample_that_is_gone(self) -> None:
        """As after an eviction."""
        self.shards(3)
        self.upload()
        self.server.ask("DEL", f"{self.name}/shard-00001.l3s/0")
        self.assertIn("shard-00001.l3s", self.said("verify", self.url, code=FAILED))
        self.assertIn("shard-00001.l3s", self.download(code=FAILED))
        self.assertEqual(sorted(path.name for path in self.back.glob("*.l3s")), ["shard-00000.l3s", "shard-00002.l3s"])
        self.upload("--force")
        self.download()
        self.assert_same()


class WithoutServers(SetTest):
    """What needs no server."""

    def test_paths_that_must_be_local(self) -> None:
        image = self.write("a.png", png(5, 4))
        for words in (("encode", "s3://x/a.png", "b.l3"), ("encode", image, "http://x/b.l3"),
                      ("decode", "s3://x/a.l3", "b.png"), ("train", "s3://x/a", "b"), ("merge", "s3://x/a"),
                      ("export", "s3://x/a", "s3://x/b"), ("verify", "s3://x/a", "--against", "s3://x/b"),
                      ("upload", "s3://x/a", "s3://x/b"), ("download", "s3://x/a", "s3://x/b"),
                      ("convert", "s3://x/a", self.set)):
            with self.subTest(words):
                said = self.l3(*words, code=USAGE).stderr.decode()
                self.assertIn("is a URL, but must be a local path", said)

    def test_urls_that_are_none(self) -> None:
        self.images(2)
        self.convert()
        self.assertIn(b"is not a URL", self.l3("upload", self.set, self.folder / "x", code=USAGE).stderr)
        self.assertIn(b"is not a URL", self.l3("download", self.set, self.folder / "x", code=USAGE).stderr)
        said = self.l3("info", "gopher://x/y", code=FAILED).stderr
        self.assertIn(b"l3: gopher://x/y: unknown kind of store", said)

    def test_what_cannot_be_uploaded(self) -> None:
        self.images(2)
        self.convert()
        shard = self.set / "shard-00000.l3s"
        self.assertIn(b"is not the folder of a data set", self.l3("upload", shard, "s3://x/y", code=FAILED).stderr)
        self.assertIn(b"is not the folder of a data set",
                      self.l3("upload", self.folder / "none", "s3://x/y", code=FAILED).stderr)
        self.assertIn(b"index.json is missing", self.l3("upload", self.source, "s3://x/y", code=FAILED).stderr)

    def test_convert_options_that_do_not_fit_a_url(self) -> None:
        self.images(2)
        for words in (("--files",), ("--part", "1/2")):
            self.assertIn(b"works only for a whole data set",
                          self.l3("convert", self.source, "s3://x/y", *words, code=USAGE).stderr)
        self.assertIn(b"works only for a whole data set",
                      self.l3("convert", self.source / "0000.png", "s3://x/y", code=USAGE).stderr)
        self.assertIn(b"--spool needs a URL", self.convert("--spool", self.folder / "x", code=USAGE).stderr)
        self.assertFalse(Path("s3:").exists())


del Everywhere, Files  # unittest would run them as well

if __name__ == "__main__":
    main()
