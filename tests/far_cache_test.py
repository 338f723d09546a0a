#!/usr/bin/env python3
"""Tests a cache that the nodes of a job share: three processes, the ranks of one job, and three Redis servers.

What is read from the data set's store is counted. The servers are killed, stopped, cut off and filled up in the middle
of an epoch. Imports the package l3.

Usage: far_cache_test.py --l3 COMMAND --link SLOW_LINK [names of tests, or options of unittest]
"""

from __future__ import annotations

import collections
import hashlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import far_testing
import l3
from far_servers import Redis, SlowLink
from far_testing import convert, epoch_of, main, noise

NODES, COUNT, BATCH, EPOCHS = 3, 900, 10, 3
STALL = 1.5  # seconds: longer than any wait for a place that does not answer at all
TIMEOUT = 2  # seconds that a place may be silent (loader/src/cache_remote.cpp)


def nodes_set() -> Path:
    """COUNT images of about 6 kB in about twenty shards."""
    return convert("nodes", ((f"{i:04}.png", noise(i, 48, 40)) for i in range(COUNT)),
                   "--method", "fast", "--shard-size", "256K")


class CountingStore:
    """A folder. Counts the bytes of samples that are read. Opening reads the ends of shards, which are not counted."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.bytes_read = 0
        self._lock = threading.Lock()
        self._ends = {path.name: path.stat().st_size for path in self.folder.glob("*.l3s")}

    def size(self, key: str) -> int:
        return (self.folder / key).stat().st_size

    def read(self, key: str, offset: int, size: int) -> bytes:
        if key in self._ends and offset + size < self._ends[key]:
            with self._lock:
                self.bytes_read += size
        time.sleep(0.002)
        with open(self.folder / key, "rb") as file:
            file.seek(offset)
            return file.read(size)


def work(folder: str, cache: str, rank: int, epochs: int, step: float) -> None:
    """A rank of the job. Prints a line of JSON for each batch, and one for the whole."""
    store = CountingStore(folder)
    # Little is read ahead, so that what happens to a place happens in the middle of reading.
    with l3.Loader(store, BATCH, rank=rank, world_size=NODES, last_batch="uneven", threads=1, prefetch=2, seed=9,
                   max_bytes_in_flight=200_000, cache=cache or None) as loader:
        for epoch in range(epochs):
            begun = time.monotonic()
            for images, _, ids in loader:
                waited = time.monotonic() - begun
                found = [(int(number), hashlib.sha256(image.tobytes()).hexdigest()[:16])
                         for number, image in zip(ids, images, strict=True)]
                print(json.dumps({"epoch": epoch, "waited": waited, "bytes": store.bytes_read,
                                  "found": found}), flush=True)
                time.sleep(step)
                begun = time.monotonic()
        counts = None if loader.cache is None else vars(loader.cache)
        cached = sum(request.cached for request in loader.requests())
        print(json.dumps({"bytes": store.bytes_read, "cache": counts, "failed": loader.failure_count,
                          "cached_requests": cached}), flush=True)


class Job:
    """The ranks of a job, in processes of their own."""

    def __init__(self, cache: str, epochs: int = EPOCHS, step: float = 0.01) -> None:
        self.lines: queue.Queue[tuple[int, Any]] = queue.Queue()
        self.batches: list[list[Any]] = [[] for _ in range(NODES)]
        self.ends: list[Any] = [None] * NODES
        code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import far_cache_test; " \
               "far_cache_test.work(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))"
        self.processes = [
            subprocess.Popen([sys.executable, "-c", code, str(nodes_set()), cache, str(rank), str(epochs), str(step)],
                             stdout=subprocess.PIPE, text=True) for rank in range(NODES)]
        self.readers = [threading.Thread(target=self._read, args=(rank,)) for rank in range(NODES)]
        for reader in self.readers:
            reader.start()

    def _read(self, rank: int) -> None:
        output = self.processes[rank].stdout
        assert output is not None
        for line in output:
            self.lines.put((rank, json.loads(line)))
        self.lines.put((rank, None))

    def run(self, events: dict[int, Callable[[], None]]) -> None:
        """To the end. Calls what is to happen when all ranks together have got so many batches."""
        running, count = NODES, 0
        pending = sorted(events.items(), reverse=True)
        while running:
            rank, line = self.lines.get(timeout=60)
            if line is None:
                running -= 1
            elif "found" in line:
                self.batches[rank].append(line)
                count += 1
                while pending and count >= pending[-1][0]:
                    pending.pop()[1]()
            else:
                self.ends[rank] = line
        for process, reader in zip(self.processes, self.readers, strict=True):
            reader.join()
            assert process.stdout is not None
            process.stdout.close()
            if process.wait(30) != 0:
                raise AssertionError(f"a rank ended with {process.returncode}")

    @property
    def bytes(self) -> int:
        return sum(end["bytes"] for end in self.ends)

    def count(self, name: str) -> int:
        return sum(end["cache"][name] for end in self.ends)

    def waits(self) -> list[float]:
        """Of all ranks, without the first batch."""
        return [batch["waited"] for batches in self.batches for batch in batches[1:]]


class Nodes(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        if missing := Redis.missing():
            raise unittest.SkipTest(missing)
        cls.expected = sorted(epoch_of(nodes_set()))
        with l3.Dataset(nodes_set()) as data:
            cls.size = sum(sample.size for sample in data)

    def setUp(self) -> None:
        self.servers = [self.enterContext(Redis()) for _ in range(NODES)]

    def cache(self, size: str = "34%", ports: list[int] | None = None) -> str:
        return ",".join(f"redis://127.0.0.1:{port}={size}" for port in ports or [one.port for one in self.servers])

    def run_job(self, cache: str, events: dict[int, Callable[[], None]] | None = None, **options: Any) -> Job:
        job = Job(cache, **options)
        job.run(events or {})
        for epoch in range(options.get("epochs", EPOCHS)):
            found = [tuple(one) for batches in job.batches for batch in batches if batch["epoch"] == epoch
                     for one in batch["found"]]
            self.assertEqual(sorted(found), self.expected, "each sample once, and right")
        self.assertEqual([end["failed"] for end in job.ends], [0] * NODES)
        return job

    def report(self, job: Job, what: str) -> None:
        waits = sorted(job.waits())
        print(f"{what}: {job.bytes / self.size:.2f} times the data set from the store; longest wait {waits[-1]:.2f} s, "
              f"{sum(wait > 0.3 for wait in waits)} over 0.3 s" +
              (f"; {job.count('hits')} hits, {job.count('misses')} misses, {job.count('failures')} failures, "
               f"{job.count('damaged')} damaged" if job.ends[0]["cache"] else ""), file=sys.stderr)

    def test_the_store_is_read_once(self) -> None:
        alone = self.run_job("")
        self.report(alone, "without a cache")
        self.assertGreater(alone.bytes, 2.9 * self.size)
        shared = self.run_job(self.cache())
        self.report(shared, "with it")
        self.assertGreaterEqual(shared.bytes, self.size)
        # A sample that is needed again before it was written is read again.
        self.assertLess(shared.bytes, 1.05 * self.size)
        self.assertEqual((shared.count("failures"), shared.count("damaged"), shared.count("others")), (0, 0, 0))
        self.assertGreater(sum(end["cached_requests"] for end in shared.ends), COUNT)
        keys = [int(server.ask("DBSIZE")) for server in self.servers]
        self.assertEqual(sum(keys), COUNT)
        self.assertLess(max(keys) - min(keys), COUNT / 5)
        again = self.run_job(self.cache(), epochs=1)
        self.assertEqual((again.bytes, again.count("misses")), (0, 0))

    def test_a_part_is_cached(self) -> None:
        """Hits equal the cached share, as soon as it is full."""
        self.run_job(self.cache("22%"), epochs=1)
        job = self.run_job(self.cache("22%"))
        share = job.ends[0]["cache"]["samples"] / COUNT
        self.report(job, f"{share:.2f} cached")
        self.assertEqual(job.count("misses"), 0)
        self.assertAlmostEqual(job.count("hits") / (job.count("hits") + job.count("others")), share, delta=0.01)
        self.assertLess(job.bytes, (EPOCHS * (1 - share) + 0.1) * self.size)

    def test_a_node_that_is_killed_and_comes_back(self) -> None:
        epoch, epochs = COUNT // BATCH, 8
        events = {epoch + epoch // 2: self.servers[1].kill, 2 * epoch + epoch // 2: self.servers[1].start}
        job = self.run_job(self.cache(), events, epochs=epochs, step=0.03)
        self.report(job, "a node killed")
        self.assertGreater(job.count("failures"), 0)
        self.assertGreater(job.count("misses"), COUNT + COUNT // 10)
        self.assertLess(max(job.waits()), STALL)
        # It is asked again some seconds after it came back.
        of_last = [[batch["bytes"] for batch in batches if batch["epoch"] == epochs - 1] for batches in job.batches]
        self.assertLess(sum(numbers[-1] - numbers[0] for numbers in of_last), 0.05 * self.size)

    def test_a_node_that_stands_still(self) -> None:
        """Whoever waits for it, waits once, and then leaves it alone for longer and longer."""
        epoch = COUNT // BATCH
        process = self.servers[2].process
        assert process is not None
        self.addCleanup(process.send_signal, signal.SIGCONT)
        events: dict[int, Callable[[], None]] = {
            epoch + epoch // 2: lambda: os.kill(process.pid, signal.SIGSTOP),
            3 * epoch: lambda: os.kill(process.pid, signal.SIGCONT)}
        job = self.run_job(self.cache(), events, epochs=4, step=0.03)
        self.report(job, "a node stopped")
        self.assertGreater(job.count("failures"), 0)
        waits = collections.Counter(wait > STALL for wait in job.waits())
        self.assertLess(max(job.waits()), 3 * TIMEOUT)
        self.assertLessEqual(waits[True], 4 * NODES)

    def test_nodes_without_memory(self) -> None:
        for server in self.servers:
            server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
            used = int(re.search(r"used_memory:(\d+)", server.ask("INFO", "memory"))[1])  # type: ignore[index]
            server.ask("CONFIG", "SET", "maxmemory", used + 600_000)
        job = self.run_job(self.cache())
        self.report(job, "little memory")
        self.assertGreater(job.count("failures"), 0)
        self.assertGreater(job.count("hits"), 0)
        self.assertLess(job.bytes, EPOCHS * self.size)
        self.assertLess(max(job.waits()), STALL)

    def test_no_node_at_all(self) -> None:
        for server in self.servers:
            server.kill()
        job = self.run_job(self.cache())
        self.report(job, "no node")
        self.assertEqual(job.count("hits"), 0)
        self.assertLess(max(job.waits()), STALL)

    def test_damaged_answers(self) -> None:
        self.run_job(self.cache(), epochs=1)
        links = [self.enterContext(SlowLink(far_testing._link, server.port)) for server in self.servers]
        for link in links:
            link.set(corrupt_every=20)
        # The same servers by other ways: what they hold is found there.
        job = self.run_job(self.cache(ports=[link.port for link in links]))
        self.report(job, "damaged answers")
        self.assertGreater(job.count("damaged"), 10)
        self.assertGreater(job.count("hits"), COUNT)


if __name__ == "__main__":
    main()
