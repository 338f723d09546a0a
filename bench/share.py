#!/usr/bin/env python3
"""Compares jobs that share batches with the same jobs that do not: images per second and processor time.

    bench/share.py SET [--jobs N] [--epochs N] [--batch-size N] [--crop N] [--threads N]

SET is a data set of l3. The jobs are processes that only take batches. Each line is one run: the images that all jobs
together took per second, from the first batch of the first job to the last of the last one, and the processor time of
all jobs for each image, in microseconds, without their start. The first two lines are not counted: they fill caches.

Needs the Python package: PYTHONPATH=build/dev/python.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import statistics
import time
from typing import Any

import l3


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def work(path: str, options: dict[str, Any], epochs: int, start: Any, results: Any) -> None:
    with l3.Loader(path, **options) as loader:
        start.wait()
        used, begun, images = processor_seconds(), time.monotonic(), 0
        for _ in range(epochs):
            images += sum(len(batch.ids) for batch in loader)
        results.put((begun, time.monotonic(), processor_seconds() - used, images, vars(loader.sharing)))


def run(path: str, options: dict[str, Any], jobs: int, epochs: int) -> tuple[float, float, int]:
    """Returns images per second, microseconds of processor time per image, and how many batches were prepared."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(jobs), context.Queue()
    processes = [context.Process(target=work, args=(path, options, epochs, start, results)) for _ in range(jobs)]
    for process in processes:
        process.start()
    done = [results.get(timeout=3600) for _ in processes]
    for process in processes:
        process.join()
    images = sum(one[3] for one in done)
    seconds = max(one[1] for one in done) - min(one[0] for one in done)
    prepared = sum(one[4]["prepared_for_all"] + one[4]["prepared_alone"] for one in done)
    return images / seconds, sum(one[2] for one in done) / images * 1e6, prepared


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("set")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--crop", type=int)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    options = {"batch_size": wanted.batch_size, "crop": wanted.crop, "threads": wanted.threads}
    kinds = {"alone": options, "shared": {**options, "share": f"bench {os.getpid()}", "jobs": wanted.jobs}}
    found: dict[str, list[tuple[float, float, int]]] = {kind: [] for kind in kinds}
    for round_number in range(wanted.rounds + 1):
        for kind, chosen in kinds.items():
            rate, used, prepared = run(wanted.set, chosen, wanted.jobs, wanted.epochs)
            note = f", {prepared} batches prepared" if kind == "shared" else ""
            print(f"{kind:7} {rate:9.0f} images/s {used:9.1f} us of processor time per image{note}", flush=True)
            if round_number > 0:
                found[kind].append((rate, used, prepared))
    middle = {kind: [statistics.median(column) for column in zip(*runs)]  # noqa: B905 (Python 3.9)
              for kind, runs in found.items()}
    print(json.dumps({"jobs": wanted.jobs, "times faster": round(middle["shared"][0] / middle["alone"][0], 2),
                      "times less processor time": round(middle["alone"][1] / middle["shared"][1], 2)}))


if __name__ == "__main__":
    main()
