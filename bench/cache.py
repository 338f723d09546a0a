#!/usr/bin/env python3
"""Measures the cache of samples: hit rates, speed beside an LRU of the same size, three nodes, and what it costs.

    PYTHONPATH=build/dev/python bench/cache.py [FOLDER] [--l3 COMMAND] [--out FILE]

FOLDER has PNG files of one size. `l3 convert` makes a data set of them; without FOLDER, it draws some. Takes about four
minutes. --out writes the figures as JSON.

*Hit rates*: a shuffled loader with a cache of a part of the data set, and one with an LRU of the same number of bytes.
Both have two epochs to fill; three more are counted. A new random order in each epoch gives an LRU that holds the
share f of the data set f + (1 - f) ln(1 - f) hits, and a part that stays gives f.

*Speed*: the same two, and no cache, in turns, over one store that gives --rate bytes per second in all. The store is a
local folder behind an l3.Store in Python, which waits as long as the bytes would take. The LRU is an l3.Store in front
of it. Predicted is the ratio of the bytes that are left to read.

*Nodes*: three loaders share each epoch, with and without a cache on three Redis servers of this machine. Counted are
the bytes that the three read from the data set's store.

*Overhead*: processor time of epochs from a local folder without a cache, and with one that has no room for anything, in
turns.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import l3
from far import ROOT, draw, say
from far_servers import Redis

BATCH, EPOCHS, NODES = 32, 3, 3
WARM = 2  # epochs that are not counted: the first fills, and from the second on a loader reads ahead across epochs
# A loader may have this much on the way. The usual 256 MiB would be more than these small data sets.
IN_FLIGHT = 8 << 20


class SlowStore:
    """A folder whose reads share so many bytes per second; 0: as fast as they are. Counts the bytes of samples."""

    concurrency = 32

    def __init__(self, folder: Path, rate: float = 0) -> None:
        self.folder = folder
        self.rate = rate
        self.bytes_read = 0
        self._ends = {path.name: path.stat().st_size for path in folder.glob("*.l3s")}
        self._files = {path.name: os.open(path, os.O_RDONLY) for path in folder.iterdir()}
        self._lock = threading.Lock()
        self._free_at = 0.0

    def is_sample(self, key: str, offset: int, size: int) -> bool:
        """Opening a data set reads the ends of its shards."""
        return key in self._ends and offset + size < self._ends[key]

    def size(self, key: str) -> int:
        return (self.folder / key).stat().st_size

    def read(self, key: str, offset: int, size: int) -> bytes:
        if self.is_sample(key, offset, size):
            with self._lock:
                self.bytes_read += size
                now = time.monotonic()
                self._free_at = max(self._free_at, now) + (size / self.rate if self.rate else 0)
                wait = self._free_at - now
            if self.rate:
                time.sleep(max(wait, 0))
        return os.pread(self._files[key], size, offset)


class LruStore:
    """Keeps what was read last, up to so many bytes, with those that are on their way."""

    concurrency = SlowStore.concurrency

    def __init__(self, behind: SlowStore, capacity: int) -> None:
        self.behind = behind
        self.capacity = capacity
        self.hits = self.misses = 0
        self._held = 0
        self._entries: OrderedDict[tuple[str, int, int], bytes] = OrderedDict()
        self._lock = threading.Lock()

    def size(self, key: str) -> int:
        return self.behind.size(key)

    def read(self, key: str, offset: int, size: int) -> bytes:
        if not self.behind.is_sample(key, offset, size):
            return self.behind.read(key, offset, size)
        entry = (key, offset, size)
        with self._lock:
            found = self._entries.get(entry)
            if found is not None:
                self._entries.move_to_end(entry)
                self.hits += 1
                return found
            self.misses += 1
            self._held += size
            while self._held > self.capacity and self._entries:
                self._held -= self._entries.popitem(last=False)[0][2]
        data = self.behind.read(key, offset, size)
        with self._lock:
            if entry in self._entries:
                self._held -= size
            self._entries[entry] = data
        return data


def lru_hits(share: float) -> float:
    """What a new random order in each epoch gives an LRU."""
    return share + (1 - share) * math.log(1 - share) if share < 1 else 1.0


def epoch(loader: l3.Loader) -> int:
    return sum(len(ids) for _, _, ids in loader)


class Way:
    """A store with a cache, an LRU or nothing in front of it."""

    def __init__(self, kind: str, folder: Path, place: Path, size: int, rate: float) -> None:
        self.store = SlowStore(folder, rate)
        self.lru = LruStore(self.store, size) if kind == "lru" else None
        cache = {place: size} if kind == "cache" else None
        self.data = l3.Dataset(self.lru or self.store, cache=cache)

    def counts(self) -> tuple[int, int]:
        """Hits, and all reads."""
        if self.lru is not None:
            return self.lru.hits, self.lru.hits + self.lru.misses
        found = self.data.cache
        return (found.hits, found.hits + found.misses + found.others) if found is not None else (0, 1)

    def measure(self) -> dict[str, float]:
        with l3.Loader(self.data, BATCH, max_bytes_in_flight=IN_FLIGHT) as loader:
            for _ in range(WARM):
                epoch(loader)
            hits, reads = self.counts()
            from_store, begun = self.store.bytes_read, time.monotonic()
            images = sum(epoch(loader) for _ in range(EPOCHS))
            seconds = time.monotonic() - begun
            hits_after, reads_after = self.counts()
            return {"images_per_second": images / seconds, "store_bytes": self.store.bytes_read - from_store,
                    "hit_rate": (hits_after - hits) / max(reads_after - reads, 1)}


def chosen(folder: Path, place: Path, size: str | int) -> tuple[float, int]:
    """The share of the samples that a cache of this size holds, and the size in bytes."""
    with l3.Dataset(folder, cache={place: size}) as data:
        found = data.cache
        assert found is not None
        return found.samples / len(data), found.bytes


def hit_rates(folder: Path, work: Path, shares: list[int]) -> list[dict[str, float]]:
    rows = []
    for percent in shares:
        place = work / f"hits-{percent}"
        share, size = chosen(folder, place, f"{percent}%")
        say(f"hit rate with {percent} % cached")
        row = {"wanted": percent / 100, "cached": share, "lru_predicted": lru_hits(share)}
        for kind in ("cache", "lru"):
            row[kind] = Way(kind, folder, work / f"{place.name}-{kind}", size, 0).measure()["hit_rate"]
        rows.append(row)
    return rows


def speeds(folder: Path, work: Path, percent: int, rate: float, rounds: int) -> dict[str, Any]:
    share, size = chosen(folder, work / "speed", f"{percent}%")
    found: dict[str, list[dict[str, float]]] = {"none": [], "lru": [], "cache": []}
    for number in range(rounds):
        for kind, rows in found.items():
            if kind == "none" and number > 0:
                continue
            say(f"speed, round {number + 1} of {rounds}: {kind}")
            rows.append(Way(kind, folder, work / f"speed-{number}", size, rate).measure())
    middle = {kind: {name: statistics.median(row[name] for row in rows) for name in rows[0]}
              for kind, rows in found.items()}
    return {"cached": share, "rate": rate, **middle,
            "speed_up": middle["cache"]["images_per_second"] / middle["lru"]["images_per_second"],
            "predicted": (1 - lru_hits(share)) / (1 - share)}


def nodes(folder: Path, rate: float) -> dict[str, float]:
    """How many times the three read the data set from a slow store."""
    with l3.Dataset(folder) as data:
        size = sum(sample.size for sample in data)

    def job(cache: dict[str, str] | None) -> float:
        store = SlowStore(folder, rate)

        def work(rank: int) -> None:
            with l3.Loader(store, BATCH, rank=rank, world_size=NODES, last_batch="uneven", threads=1,
                           max_bytes_in_flight=IN_FLIGHT // NODES, cache=cache) as loader:
                for _ in range(EPOCHS):
                    epoch(loader)
                    together.wait()

        together = threading.Barrier(NODES)
        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(NODES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return store.bytes_read / size

    if missing := Redis.missing():
        say(f"without nodes: {missing}")
        return {}
    with ExitStack() as stack:
        servers = [stack.enter_context(Redis()) for _ in range(NODES)]
        say("three nodes")
        return {"without": job(None), "with": job({f"redis://127.0.0.1:{one.port}": "34%" for one in servers})}


def overhead(folder: Path, work: Path, rounds: int, least: float) -> dict[str, float]:
    """Processor time with a cache that holds nothing, divided by that without one: the median of pairs."""
    ways = [l3.Dataset(folder), l3.Dataset(folder, cache={work / "nothing": "1B"})]
    loaders = [l3.Loader(data, BATCH, threads=1) for data in ways]
    for loader in loaders:
        epoch(loader)
    begun = time.monotonic()
    epoch(loaders[0])
    epochs = max(round(least / (time.monotonic() - begun)), 1)
    pairs = []
    for number in range(rounds):
        spent = {}
        for which in (0, 1) if number % 2 else (1, 0):
            before = time.process_time()
            for _ in range(epochs):
                epoch(loaders[which])
            spent[which] = time.process_time() - before
        pairs.append(spent[1] / spent[0])
    for loader in loaders:
        loader.close()
    pairs.sort()
    return {"ratio": statistics.median(pairs), "least": pairs[0], "most": pairs[-1], "rounds": rounds}


def record_of(options: argparse.Namespace, data: l3.Dataset) -> dict[str, Any]:
    model = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    describe = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"],
                              capture_output=True, text=True, check=False)
    return {"date": datetime.date.today().isoformat(), "machine": model[0] if model else platform.machine(),
            "processors": len(os.sched_getaffinity(0)), "commit": describe.stdout.strip() or "unknown",
            "command": " ".join(["bench/cache.py", *(word for word in sys.argv[1:] if "/" not in word)]),
            "images": len(data), "bytes_per_image": data.size / len(data), "batch_size": BATCH, "epochs": EPOCHS}


def table(record: dict[str, Any]) -> str:
    lines = [f"{record['machine']}, {record['processors']} processors; commit {record['commit']}, {record['date']}. "
             f"{record['images']} images of {record['bytes_per_image'] / 1000:.0f} kB, {record['epochs']} epochs "
             f"after {WARM} others.", "",
             "| cached | hit rate | difference | LRU of the same size | predicted for it |", "|--:|--:|--:|--:|--:|"]
    for row in record["hit_rates"]:
        lines.append(f"| {row['cached']:.1%} | {row['cache']:.1%} | {row['cache'] - row['cached']:+.2%} | "
                     f"{row['lru']:.1%} | {row['lru_predicted']:.1%} |")
    found = record["speeds"]
    lines += ["", f"A store of {found['rate'] / 1e6:g} MB/s, {found['cached']:.1%} cached:", "",
              "| in front of it | images/s | hit rate | MB read from the store |", "|---|--:|--:|--:|"]
    for kind, name in (("none", "nothing"), ("lru", "an LRU"), ("cache", "the cache")):
        row = found[kind]
        lines.append(f"| {name} | {row['images_per_second']:.0f} | {row['hit_rate']:.1%} | "
                     f"{row['store_bytes'] / 1e6:.0f} |")
    lines += ["", f"The cache is {found['speed_up']:.2f} times as fast as the LRU; "
                  f"predicted: {found['predicted']:.2f}."]
    if record["nodes"]:
        lines += ["", "| three nodes, three epochs | the store is read |", "|---|--:|",
                  f"| without a cache | {record['nodes']['without']:.2f} times |",
                  f"| a cache on the nodes | {record['nodes']['with']:.2f} times |"]
    lines += ["", "| nothing is cached | processor time, ratio | least | most |", "|---|--:|--:|--:|"]
    for name, row in record["overhead"].items():
        lines.append(f"| {name} | {row['ratio']:.4f} | {row['least']:.4f} | {row['most']:.4f} |")
    return "\n".join(lines)


def convert(options: argparse.Namespace, images: Path, to: Path) -> Path:
    subprocess.run([options.l3, "convert", "-q", "--method", options.method, "--shard-size", "16M", images, to],
                   check=True)
    return to


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--l3", default=str(ROOT / "build/dev/bin/l3"), help="the l3 command")
    parser.add_argument("--out", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--count", type=int, default=1200, help="images to draw without FOLDER")
    parser.add_argument("--rounds", type=int, default=2, help="of the speeds")
    parser.add_argument("--pairs", type=int, default=15, help="rounds of the overhead")
    parser.add_argument("--method", default="fast", help="auto, fast or dense, as for l3 convert")
    parser.add_argument("--rate", type=float, default=24e6, help="bytes per second of the slow store")
    parser.add_argument("--shares", type=int, nargs="+", default=[25, 50, 65, 80], help="percent")
    options = parser.parse_args()
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="l3-cache-bench-", dir="/dev/shm")))
        if options.folder is None:
            say(f"draws {options.count} images")
            options.folder = work / "images"
            draw(options.folder, options.count)
        say("converts them")
        folder = convert(options, options.folder, work / "set")
        draw(work / "small-images", 4000, 32)
        small = convert(options, work / "small-images", work / "small")
        record = record_of(options, l3.Dataset(folder))
        say("overhead")
        record["overhead"] = {"the same images": overhead(folder, work, options.pairs, 0.5),
                              "4000 images of 32 x 32": overhead(small, work / "tiny", options.pairs, 0.5)}
        record["hit_rates"] = hit_rates(folder, work, options.shares)
        record["speeds"] = speeds(folder, work, 65, options.rate, options.rounds)
        record["nodes"] = nodes(folder, options.rate)
    print(table(record))
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
