"""Shared by the tests of epochs from far stores: data sets, epochs, and a server with a slow link in front of it."""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import l3
from command_testing import png
from far_servers import S3, RedisCluster, Server, SlowLink

COUNT = 240  # images of the data set that most tests use
SIDE = (48, 40)  # their height and width
DELAYS = (1, 20, 150)  # milliseconds that a link adds to a round trip
HANG = 120  # seconds after which a test is taken to hang, and the program ends with the stacks of all threads

Epoch = list[tuple[int, str]]  # the samples in their order, and the digests of their pixels

_l3 = ""
_link = ""
_folder = Path()
_sets: dict[str, Path] = {}


def convert(name: str, images: Iterable[tuple[str, bytes]], *options: str) -> Path:
    """Makes a data set of PNG files, once."""
    if name not in _sets:
        for file, data in images:
            path = _folder / (name + "-png") / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        subprocess.run([_l3, "convert", "-q", *options, _folder / (name + "-png"), _folder / name], check=True)
        _sets[name] = _folder / name
    return _sets[name]


def noise(seed: int, height: int, width: int) -> bytes:
    """A PNG that nothing makes smaller, so that sizes are known."""
    source = random.Random(seed)
    return png(width, height, 8, 2, rows=[source.randbytes(3 * width) for _ in range(height)])


def small_set() -> Path:
    """COUNT images in two classes and about twenty shards."""
    return convert("small", ((f"{'ab'[i % 2]}/{i:04}.png", noise(i, *SIDE)) for i in range(COUNT)),
                   "--method", "fast", "--shard-size", "64K")


def many_shards() -> Path:
    """500 shards of one sample each."""
    return convert("many", ((f"{i:04}.png", noise(i, 16, 16)) for i in range(500)),
                   "--method", "fast", "--shard-size", "1")


def large_set() -> Path:
    """160 images of about 590 kB each."""
    return convert("large", ((f"{i:04}.png", noise(i, 384, 512)) for i in range(160)),
                   "--method", "fast", "--shard-size", "16M", "--no-verify")


def read(batches: Iterable[l3.Batch]) -> Epoch:
    """Reads batches, to the end or one for each step of an iterator."""
    found = []
    for images, _, ids in batches:
        found += [(int(number), hashlib.sha256(image.tobytes()).hexdigest()[:16])
                  for number, image in zip(ids, images, strict=True)]
    return found


def epoch_of(data: Any, batch_size: int = 16, **options: Any) -> Epoch:
    with l3.Loader(data, batch_size, **options) as loader:
        return read(loader)


@contextlib.contextmanager
def environment(**values: str) -> Any:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class FarCase(unittest.TestCase):
    """A server for all tests of a class, with a slow link in front of it."""

    SERVER: ClassVar[Any]
    server: ClassVar[Any]
    links: ClassVar[list[SlowLink]]
    uploaded: ClassVar[dict[Path, str]]

    @classmethod
    def setUpClass(cls) -> None:
        if missing := cls.SERVER.missing():
            raise unittest.SkipTest(missing)
        cls.server = cls.enterClassContext(cls.SERVER())
        cls.uploaded = {}
        nodes: list[Server] = cls.server.nodes if isinstance(cls.server, RedisCluster) else [cls.server]
        cls.links = [cls.enterClassContext(SlowLink(_link, node.port, connect_delay=1)) for node in nodes]
        if isinstance(cls.server, RedisCluster):
            cls.server.announce([link.port for link in cls.links])
        values = cls.server.environment()
        if isinstance(cls.server, S3):
            values["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{cls.links[0].port}"
        cls.enterClassContext(environment(**values))

    def setUp(self) -> None:
        faulthandler.dump_traceback_later(HANG, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        self.addCleanup(self.set_links, delay=0, lose=0, cut_every=0, corrupt_every=0, status_every=0)

    def set_links(self, **options: object) -> list[dict[str, int]]:
        return [link.set(**options) for link in self.links]

    def published(self, data: Path) -> str:
        """The URL of a data set by way of the link. Uploads it once."""
        if data not in self.uploaded:
            url = self.server.url(data.name)
            via = self.server.url(data.name, self.links[0].port)
            self.upload(data, via if isinstance(self.server, RedisCluster) else url)
            self.uploaded[data] = via
        return self.uploaded[data]

    def upload(self, data: Path, url: str) -> None:
        subprocess.run([_l3, "upload", "-q", str(data), url], check=True, timeout=HANG)

    def assert_plain(self, error: BaseException, *parts: str, secrets: Iterable[str] = ()) -> str:
        """The message is one line, has these parts, and no secret."""
        said = str(error)
        self.assertNotIn("\n", said)
        self.assertLess(len(said), 1000)
        for part in parts:
            self.assertIn(part, said)
        for secret in secrets:
            self.assertNotIn(secret, said + repr(error))
        return said


def main() -> None:
    global _l3, _link, _folder
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--l3", default=os.environ.get("L3_COMMAND"), help="the l3 command")
    parser.add_argument("--link", default=os.environ.get("L3_SLOW_LINK"), help="the program slow_link")
    options, rest = parser.parse_known_args()
    if not options.l3 or not options.link:
        parser.error("--l3 and --link are needed")
    _l3, _link = str(Path(options.l3).resolve()), str(Path(options.link).resolve())
    for name in [name for name in os.environ if name.lower().endswith("_proxy") or name.startswith(("AWS_", "L3_"))]:
        del os.environ[name]
    _folder = Path(tempfile.mkdtemp(prefix="l3-far-test-"))
    try:
        unittest.main(argv=[sys.argv[0], *rest])
    finally:
        shutil.rmtree(_folder, ignore_errors=True)
