"""Caches of samples: what is read from the store, by one job and by several, and what damaged caches cost."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path
from typing import Any

import l3
import numpy as np
from support import Sets, child_environment, write_png
from test_store import FolderStore

COUNT, SIDE = 300, 64
EPOCHS = 3
JOB = """
import sys, l3
sys.path.insert(0, sys.argv[1])
from test_cache import CountingStore, digest_of
store = CountingStore(sys.argv[2])
with l3.Loader(store, 16, seed=int(sys.argv[4]), cache=sys.argv[3]) as loader:
    found = sorted(digest_of(loader))
print(store.bytes_read, hash(tuple(found)), len(found))
"""


def written(loader: l3.Loader | l3.Dataset, samples: int) -> Any:
    """What the cache of a loader did, after so many samples are written, which may be after they are delivered."""
    end = time.monotonic() + 30
    while loader.cache.kept < samples and time.monotonic() < end:
        time.sleep(0.002)
    return loader.cache


def at_rest(loader: l3.Loader) -> Any:
    """What the cache of a loader did, once that has read ahead as far as it may. Whole epochs lie between two such
    moments, however busy the machine is."""
    found, before = loader.cache, None
    while before is None or (found.hits, found.others) != (before.hits, before.others):
        time.sleep(0.2)
        found, before = loader.cache, found
    return found


class CountingStore(FolderStore):
    """Counts the bytes of samples that are read. Opening reads the ends of shards, which are not counted."""

    def __init__(self, folder: str) -> None:
        super().__init__(Path(folder))
        self.bytes_read = 0
        self.reads = 0
        self._lock = threading.Lock()
        self.size_of_all = sum(path.stat().st_size for path in self.folder.glob("*.l3s"))
        self._ends = {path.name: path.stat().st_size for path in self.folder.glob("*.l3s")}

    def read(self, key: str, offset: int, size: int) -> Any:
        if key in self._ends and offset + size < self._ends[key]:
            with self._lock:
                self.bytes_read += size
                self.reads += 1
        return super().read(key, offset, size)

    def __getstate__(self) -> str:
        return str(self.folder)

    def __setstate__(self, folder: str) -> None:
        self.__init__(folder)  # type: ignore[misc]


def digest_of(batches: Any) -> list[tuple[int, bytes]]:
    """The samples in their order, and their pixels."""
    return [(int(number), image.tobytes()) for images, _, ids in batches
            for number, image in zip(ids, images)]  # noqa: B905 (Python 3.9)


class Cached(Sets):
    def noisy_set(self) -> str:
        """COUNT images of about 12 kB, which nothing makes smaller, in several shards."""
        def draw(png: Path) -> list[str]:
            random = np.random.default_rng(7)
            for i in range(COUNT):
                write_png(png / f"{i:03}.png", random.integers(0, 256, (SIDE, SIDE, 3), np.uint8))
            return ["--shard-size", "1M", "--method", "fast"]
        return self._make("noisy", draw)

    def large_set(self) -> str:
        """24 images of several tiles."""
        def draw(png: Path) -> list[str]:
            random = np.random.default_rng(8)
            for i in range(24):
                write_png(png / f"{i:03}.png", random.integers(0, 256, (256, 384, 3), np.uint8))
            return ["--shard-size", "1M", "--method", "fast", "--tile", "64"]
        return self._make("large", draw)

    def place(self, name: str = "cache") -> str:
        return str(self.folder / name)

    def cached_files(self, name: str = "cache") -> list[Path]:
        return sorted(Path(self.place(name)).glob("*.l3cache/*.l3s"))


class HitRates(Cached):
    def test_equal_the_cached_share_in_every_order(self) -> None:
        expected = {number: pixels for number, pixels in digest_of(l3.Loader(self.noisy_set(), 16))}
        for share in (25, 65, 100):
            for order in (True, "windows", False):
                with self.subTest(share=share, order=order):
                    store = CountingStore(self.noisy_set())
                    place = self.place(f"{share}-{order}")
                    with l3.Loader(store, 16, shuffle=order, cache={place: f"{share}%"}) as loader:
                        self.assertEqual(sorted(digest_of(loader)), sorted(expected.items()))
                        written(loader, loader.cache.samples)
                        before, from_store = at_rest(loader), store.bytes_read
                        for _ in range(EPOCHS):
                            self.assertEqual(sorted(digest_of(loader)), sorted(expected.items()))
                        after = at_rest(loader)
                    self.assertEqual(before.kept, after.samples)
                    self.assertAlmostEqual(after.samples / COUNT, share / 100, delta=0.08)
                    hits, others = after.hits - before.hits, after.others - before.others
                    # On a busy machine more or less of the next epoch has been read than before the first one.
                    ahead = abs(hits + others - EPOCHS * COUNT)
                    self.assertAlmostEqual(hits / (hits + others), after.samples / COUNT,
                                           delta=0.01 + ahead / (hits + others))
                    self.assertEqual((after.misses, after.failures, after.damaged), (before.misses, 0, 0))
                    # The next epoch may be on its way, and this one was perhaps before `from_store` was read.
                    epoch = (1 - after.samples / COUNT) * store.size_of_all
                    self.assertGreaterEqual(store.bytes_read - from_store, 0.9 * (EPOCHS - 1) * epoch)
                    self.assertLessEqual(store.bytes_read - from_store, 1.1 * (EPOCHS + 1) * epoch)

    def test_crops(self) -> None:
        """Parts of samples. The cache keeps whole ones, however small the first crop."""
        for mode in ("centre", "random"):
            with self.subTest(mode):
                options: dict[str, Any] = {"crop": 48, "crop_mode": mode, "seed": 5}
                expected = l3.Loader(self.large_set(), 4, **options)
                store = CountingStore(self.large_set())
                with l3.Loader(store, 4, cache={self.place(mode): "50%"}, **options) as loader:
                    for epoch in range(1 + EPOCHS):
                        self.assertEqual(digest_of(loader), digest_of(expected))
                        if epoch == 0:
                            before = loader.cache
                    after = loader.cache
                hits, others = after.hits - before.hits, after.others - before.others
                self.assertAlmostEqual(hits / (hits + others), after.samples / 24, delta=0.05)
                self.assertEqual(after.misses, before.misses)

    def test_counters(self) -> None:
        with l3.Dataset(self.noisy_set(), cache={self.place(): "100%"}) as data:
            self.assertEqual(data.cache, l3.CacheInfo(1, COUNT, data.cache.bytes, *[0] * 9, None))
            self.assertEqual(data.cache.hit_rate, 0)
            first = data[5].bytes()
            self.assertEqual(data[5].bytes(), first)
            found = data.cache
            self.assertEqual((found.hits, found.misses, found.kept, found.hit_rate), (1, 1, 1, 0.5))
            self.assertEqual((found.hit_bytes, found.miss_bytes), (len(first), len(first)))
            with self.assertRaises(dataclasses.FrozenInstanceError):
                found.hits = 5  # type: ignore[misc]
            with l3.Loader(data, 16) as loader:
                self.assertEqual(loader.cache, found)
        with l3.Dataset(self.noisy_set()) as data:
            self.assertIsNone(data.cache)


class Jobs(Cached):
    def jobs(self, place: str, seeds: list[int]) -> list[tuple[int, ...]]:
        words = [sys.executable, "-c", JOB, str(Path(__file__).parent), self.noisy_set(), f"{place}=100%"]
        running = [subprocess.Popen([*words, str(seed)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env={**child_environment(), "PYTHONHASHSEED": "0"}) for seed in seeds]
        found = []
        for job in running:
            said, wrong = job.communicate(timeout=120)
            self.assertEqual((job.returncode, wrong), (0, ""))
            found.append(tuple(map(int, said.split())))
        return found

    def test_share_a_place(self) -> None:
        """Several jobs at once: whoever needs a sample first, keeps it for all. Those after them read nothing."""
        with l3.Dataset(self.noisy_set()) as data:
            size = sum(sample.size for sample in data)
        together = self.jobs(self.place(), [1, 2, 3])
        self.assertEqual({job[1:] for job in together}, {together[0][1:]})
        self.assertEqual(together[0][2], COUNT)
        total = sum(job[0] for job in together)
        self.assertGreaterEqual(total, size)
        # Without a cache it would be 3. Jobs that need a sample at the same moment both read it.
        self.assertLess(total, 2 * size)
        self.assertEqual(self.jobs(self.place(), [4]), [(0, *together[0][1:])])

    def test_restart(self) -> None:
        for round_number in range(2):
            store = CountingStore(self.noisy_set())
            with l3.Loader(store, 16, cache={self.place(): "65%"}) as loader:
                digest_of(loader)
                found = written(loader, 0 if round_number else loader.cache.samples)
            self.assertEqual(found.kept, 0 if round_number else found.samples)
            self.assertEqual(store.bytes_read, found.other_bytes + found.miss_bytes)
        self.assertEqual(found.misses, 0)

    def test_places_and_a_data_set_that_is_shared(self) -> None:
        """Two places, also in a child after a fork, and in a copy."""
        cache = {self.place("a"): "30%", Path(self.place("b")): "30%"}
        with l3.Dataset(self.noisy_set(), cache=cache) as data:
            digest_of(l3.Loader(data, 16))
            self.assertEqual(written(data, data.cache.samples).kept, data.cache.samples)
            self.assertEqual(data.cache.places, 2)
            copy = pickle.loads(pickle.dumps(data))
            digest_of(l3.Loader(copy, 16))
            self.assertEqual((copy.cache.hits, copy.cache.misses), (data.cache.samples, 0))
            child = os.fork()
            if child == 0:
                before = data.cache
                data[0].bytes()
                os._exit(int(data.cache.hits + data.cache.others != before.hits + before.others + 1))
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        store = pickle.loads(pickle.dumps(l3.Dataset(CountingStore(self.noisy_set()), cache=cache)))
        self.assertEqual(store.cache.samples, data_samples(copy))


def data_samples(data: l3.Dataset) -> int:
    found = data.cache
    assert found is not None
    return found.samples


class Damage(Cached):
    def test_damaged_samples_are_read_again(self) -> None:
        expected = digest_of(l3.Loader(self.noisy_set(), 16, seed=3))
        with l3.Loader(self.noisy_set(), 16, cache={self.place(): "100%"}) as loader:
            digest_of(loader)
        for path in self.cached_files():
            whole = bytearray(path.read_bytes())
            for at in range(5000, len(whole), 50_000):
                whole[at:at + 16] = bytes(16)
            path.write_bytes(whole)
        store = CountingStore(self.noisy_set())
        with l3.Loader(store, 16, seed=3, cache={self.place(): "100%"}) as loader:
            self.assertEqual(digest_of(loader), expected)
            found = loader.cache
            self.assertGreater(found.damaged, 10)
            self.assertLess(found.damaged, COUNT // 2)
            self.assertEqual(loader.failure_count, 0)
        self.assertGreater(store.bytes_read, 0)
        store = CountingStore(self.noisy_set())
        with l3.Loader(store, 16, seed=3, cache={self.place(): "100%"}) as loader:
            self.assertEqual(digest_of(loader), expected)
            self.assertEqual((loader.cache.hits, loader.cache.damaged), (COUNT, 0))
        self.assertEqual(store.bytes_read, 0)

    def test_cut_and_removed_files(self) -> None:
        expected = digest_of(l3.Loader(self.noisy_set(), 16))
        with l3.Loader(self.noisy_set(), 16, cache={self.place(): "100%"}) as loader:
            digest_of(loader)
            files = self.cached_files()
            os.truncate(files[0], files[0].stat().st_size // 2)
            files[1].unlink()
            loader.set_epoch(0)
            self.assertEqual(digest_of(loader), expected)
            self.assertEqual(loader.failure_count, 0)
        with l3.Loader(self.noisy_set(), 16, cache={self.place(): "100%"}) as loader:
            digest_of(loader)
            self.assertEqual(digest_of(l3.Loader(self.noisy_set(), 16, cache={self.place(): "100%"})), expected)

    def test_cleared_while_in_use(self) -> None:
        with l3.Loader(self.noisy_set(), 16, cache={self.place(): "100%"}) as loader:
            digest_of(loader)
            loop = iter(loader)
            first = digest_of([next(loop)])
            subprocess.run([os.environ["L3_COMMAND"], "cache", "clear", "-q", self.place()], check=True)
            found = first + digest_of(loop)
            self.assertEqual(sorted(number for number, _ in found), list(range(COUNT)))
            self.assertEqual(loader.failure_count, 0)

    def test_places_that_cannot_be_used(self) -> None:
        file = self.folder / "file"
        file.write_bytes(b"")
        with self.assertRaisesRegex(OSError, "file/cache"):
            l3.Dataset(self.noisy_set(), cache={file / "cache": "1GB"})
        with self.assertRaises(OSError):
            l3.Loader(self.noisy_set(), 16, cache={"/proc/l3": "1GB"})
        if os.geteuid() != 0:
            locked = self.folder / "locked"
            locked.mkdir(mode=0o500)
            with self.assertRaises(PermissionError):
                l3.Dataset(self.noisy_set(), cache={locked: "1GB"})

    def test_another_size(self) -> None:
        """A larger one adds samples. A smaller one is refused, because others may use the place."""
        with l3.Loader(self.noisy_set(), 16, cache={self.place(): "30%"}) as loader:
            digest_of(loader)
            kept = written(loader, loader.cache.samples).kept
        with l3.Loader(self.noisy_set(), 16, cache={self.place(): "60%"}) as loader:
            digest_of(loader)
            found = written(loader, loader.cache.samples - kept)
            self.assertEqual((found.hits, found.kept), (kept, found.samples - kept))
        with self.assertRaisesRegex((ValueError, l3.Error), "l3 cache clear"):
            l3.Dataset(self.noisy_set(), cache={self.place(): "30%"})


class Arguments(Cached):
    def test_forms(self) -> None:
        wanted = [({self.place("a"): "100kB"}, 1), ({self.place("a"): 100_000}, 1), (f"{self.place('a')}=100kB", 1),
                  (f"{self.place('a')}=100kB,{self.place('b')}=20%", 2), (None, 0), ({}, 0), ("", 0)]
        samples = set()
        for cache, places in wanted:
            with self.subTest(cache=cache), l3.Dataset(self.noisy_set(), cache=cache) as data:
                found = data.cache
                self.assertEqual(0 if found is None else found.places, places)
                if places == 1:
                    samples.add(found.samples)
        self.assertEqual(len(samples), 1)

    def test_relative_places(self) -> None:
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        data = l3.Dataset(self.noisy_set(), cache="here=10%")
        os.chdir(before)
        self.assertTrue((self.folder / "here").is_dir())
        self.assertEqual(pickle.loads(pickle.dumps(data)).cache.samples, data.cache.samples)
        self.assertFalse(Path("here").exists())

    def test_wrong_ones(self) -> None:
        path = self.noisy_set()
        for cache, error in ((5, TypeError), ([self.place()], TypeError), ({self.place(): 1.5}, TypeError),
                             ({self.place(): -1}, ValueError), ({self.place() + ",b": "1GB"}, ValueError),
                             ({"": "1GB"}, ValueError), ("a\0b=1GB", ValueError), (self.place(), ValueError),
                             ({self.place(): "1XB"}, ValueError), ({self.place(): "101%"}, ValueError)):
            with self.subTest(cache=cache), self.assertRaises(error):
                l3.Dataset(path, cache=cache)  # type: ignore[arg-type]
        with l3.Dataset(path) as data, self.assertRaisesRegex(ValueError, "l3.Dataset"):
            l3.Loader(data, 16, cache={self.place(): "1GB"})


if __name__ == "__main__":
    unittest.main()
