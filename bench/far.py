#!/usr/bin/env python3
"""Measures the loader on far stores: images per second from a local folder, and from servers 1, 20 and 150 ms away.

    bench/far.py [FOLDER] [--l3 COMMAND] [--link PROGRAM] [--out FILE]

FOLDER has PNG files of one size. `l3 convert` makes a data set of them; without FOLDER, it draws some. The servers run
on this machine: nginx and Redis, behind the tests' slow_link. It delays what it passes on, and limits throughput only
by --window: the bytes on the way in one direction of one connection, as TCP does. It does not imitate the slow start of
TCP. Servers, link and loader share the processors; the last columns say how many each kept busy. All decoding is on one
thread, and the local epochs take turns with the far ones.

Needs the Python package: PYTHONPATH=build/dev/python. --out writes the figures as JSON.

What the columns mean: *images/s* counts an epoch from its first batch to its last, *second half* from its middle, and
*with start* all of it, which begins with at least one round trip. *one by one* is a loader that waits for each image
before it asks for the next one. *of the ceiling* is for a loader that may have only --in-flight bytes on the way: no
program can read more than that in each round trip.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import l3
import numpy as np
from far_servers import Http, Redis, RedisCluster, SlowLink

TICKS = os.sysconf("SC_CLK_TCK")
SIDE, BATCH = 256, 32


def say(text: str) -> None:
    print(f"{Path(sys.argv[0]).stem}: {text}", file=sys.stderr, flush=True)


def draw(folder: Path, count: int, side: int = SIDE) -> None:
    """Smooth images with the noise of a sensor."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(1)
    y, x, c = np.ogrid[:side, :side, :3]
    for i in range(count):
        waves = np.sin(x / random.uniform(9, 60) + i) + np.cos(y / random.uniform(9, 60) - i) + c / 3
        noisy = (waves + 3) * 36 + random.normal(0, 3, (side, side, 3))
        pixels = np.clip(noisy, 0, 255).astype(np.uint8)
        (folder / f"{i:05}.ppm").write_bytes(b"P6\n%d %d\n255\n" % (side, side) + pixels.tobytes())


def busy_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@dataclass
class Way:
    """A data set on a store."""

    name: str
    delay: float
    path: str
    links: list[SlowLink] = field(default_factory=list)
    servers: list[int] = field(default_factory=list)  # processes
    rounds: list[dict[str, float]] = field(default_factory=list)

    def processes(self) -> dict[str, list[int]]:
        links = [link.process.pid for link in self.links if link.process is not None]
        return {"loader": [os.getpid()], "link": links, "server": self.servers}

    def measure(self, batch_size: int = BATCH, epochs: int = 2, **options: Any) -> dict[str, float]:
        """The figures of the last epoch. Those before it warm up: the loader finds out how far ahead it must read."""
        for link in self.links:
            link.set(delay=self.delay)
        with l3.Loader(self.path, batch_size, threads=1, last_batch="drop", **options) as loader:
            for _ in range(epochs):
                before = {name: sum(map(busy_seconds, ids)) for name, ids in self.processes().items()}
                begun = time.monotonic()
                arrivals, read = [], 0
                for batch in loader:
                    arrivals.append(time.monotonic())
                    read += batch.times.bytes_read
                count = len(arrivals) * batch_size
            first, middle, end = arrivals[0], len(arrivals) // 2, arrivals[-1]
            found = {
                "images_per_second": (count - batch_size) / (end - first),
                "second_half": (len(arrivals) - 1 - middle) * batch_size / (end - arrivals[middle]),
                "with_start": count / (end - begun),
                "first_batch_seconds": first - begun,
                "bytes_per_second": read * (1 - 1 / len(arrivals)) / (end - first),
                "connections": sum(link.counters()["open"] for link in self.links)}
            for name, ids in self.processes().items():
                found["busy_" + name] = (sum(map(busy_seconds, ids)) - before[name]) / (end - begun)
        return found

    def row(self) -> dict[str, float]:
        return {key: statistics.median(each[key] for each in self.rounds) for key in self.rounds[0]}


def upload(l3_command: str, data: Path, url: str) -> None:
    subprocess.run([l3_command, "upload", "-q", str(data), url], check=True)


def ways_of(options: argparse.Namespace, data: Path, stack: ExitStack) -> Iterator[Way]:
    yield Way("local", 0, str(data))
    for name, kind in (("http", Http), ("redis", Redis), ("redis cluster", RedisCluster)):
        if name not in options.stores:
            continue
        if missing := kind.missing():
            say(f"without {name}: {missing}")
            continue
        server = stack.enter_context(kind())
        nodes = server.nodes if isinstance(server, RedisCluster) else [server]
        links = [stack.enter_context(SlowLink(options.link, node.port, connect_delay=1, window=options.window))
                 for node in nodes]
        if isinstance(server, RedisCluster):
            server.announce([link.port for link in links])
        url = server.url("set", links[0].port)
        upload(options.l3, data, url)
        for delay in options.delays:
            yield Way(name, delay, url, links, [node.process.pid for node in nodes])


def record_of(options: argparse.Namespace, data: l3.Dataset) -> dict[str, Any]:
    model = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    describe = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"],
                              capture_output=True, text=True, check=False)
    return {"date": datetime.date.today().isoformat(), "machine": model[0] if model else platform.machine(),
            "processors": len(os.sched_getaffinity(0)), "commit": describe.stdout.strip() or "unknown",
            "command": " ".join(["bench/far.py", *(word for word in sys.argv[1:] if "/" not in word)]),
            "images": len(data), "bytes_per_image": data.size / len(data), "batch_size": BATCH,
            "rounds": options.rounds, "method": options.method, "window": options.window,
            "rows": [], "one_by_one": [], "ceilings": []}


def table(record: dict[str, Any]) -> str:
    lines = [f"{record['machine']}, {record['processors']} processors; commit {record['commit']}, {record['date']}. "
             f"{record['images']} images of {record['bytes_per_image'] / 1000:.0f} kB, method {record['method']}.", "",
             "| store | round trip | images/s | of local | second half | with start | MB/s | connections | loader "
             "| link | server |", "|---|---|---|---|---|---|---|---|---|---|---|"]
    local = record["rows"][0]["images_per_second"]
    for row in record["rows"]:
        lines.append("| {store} | {delay:g} ms | {images_per_second:.0f} | {share:.2f} | {second_half:.0f} | "
                     "{with_start:.0f} | {mb:.0f} | {connections:.0f} | "
                     "{busy_loader:.2f} | {busy_link:.2f} | {busy_server:.2f} |".format(
                         **row, share=row["images_per_second"] / local, mb=row["bytes_per_second"] / 1e6))
    lines += ["", "| one by one | round trip | images/s | the loader is faster by |", "|---|---|---|---|"]
    for row in record["one_by_one"]:
        lines.append(f"| {row['store']} | {row['delay']:g} ms | {row['images_per_second']:.1f} | {row['gain']:.1f} |")
    lines += ["", "| in flight | store | round trip | MB/s | ceiling | of the ceiling |", "|---|---|---|---|---|---|"]
    for row in record["ceilings"]:
        lines.append(f"| {row['in_flight'] / 2**20:g} MiB | {row['store']} | {row['delay']:g} ms | "
                     f"{row['bytes_per_second'] / 1e6:.1f} | {row['ceiling'] / 1e6:.1f} | {row['share']:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--l3", default=str(ROOT / "build/release/bin/l3"), help="the l3 command")
    parser.add_argument("--link", default=str(ROOT / "build/dev/tests/slow_link"), help="the program slow_link")
    parser.add_argument("--out", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--count", type=int, default=3000, help="images to draw without FOLDER")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--method", default="auto", help="auto, fast or dense, as for l3 convert")
    parser.add_argument("--window", type=int, default=4 << 20, help="bytes on the way of each connection")
    parser.add_argument("--delays", type=float, nargs="+", default=[1, 20, 150], help="milliseconds")
    parser.add_argument("--stores", nargs="+", default=["http", "redis", "redis cluster"])
    parser.add_argument("--in-flight", type=int, default=4 << 20, help="bytes, for the share of the ceiling")
    options = parser.parse_args()
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="l3-far-bench-")))
        if options.folder is None:
            say(f"draws {options.count} images")
            options.folder = work / "images"
            draw(options.folder, options.count)
        say("converts them")
        subprocess.run([options.l3, "convert", "-q", "--method", options.method, "--shard-size", "64M", options.folder,
                        work / "set"], check=True)
        data = l3.Dataset(work / "set")
        record = record_of(options, data)
        ways = list(ways_of(options, work / "set", stack))
        for number in range(options.rounds):
            say(f"round {number + 1} of {options.rounds}")
            for way in ways:
                way.rounds.append(way.measure())
        for way in ways:
            record["rows"].append({"store": way.name, "delay": way.delay, **way.row()})
        few = work_of(len(data))
        for way, row in zip(ways[1:], record["rows"][1:], strict=True):
            say(f"one by one and ceiling: {way.name}, {way.delay:g} ms")
            alone = way.measure(1, 1, prefetch=1, max_bytes_in_flight=1, samples=range(few(way.delay)))
            record["one_by_one"].append({"store": way.name, "delay": way.delay, **alone,
                                         "gain": row["images_per_second"] / alone["images_per_second"]})
            if way.delay >= 100:
                ceiling = options.in_flight / (way.delay / 1000)
                found = way.measure(max_bytes_in_flight=options.in_flight)
                record["ceilings"].append({"store": way.name, "delay": way.delay, "in_flight": options.in_flight,
                                           **found, "ceiling": ceiling, "share": found["bytes_per_second"] / ceiling})
    print(table(record))
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")


def work_of(images: int) -> Any:
    """How many images to read one by one: some seconds of them."""
    return lambda delay: min(images, max(20, int(5000 / max(delay, 1))))


if __name__ == "__main__":
    main()
