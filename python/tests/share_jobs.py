"""Processes with loaders that share batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from support import Sets, child_environment

# Runs epochs, and writes a line for each batch, then one for what it has done. Arguments: a JSON object.
JOB = """
import hashlib, json, os, sys, time
import l3
job = json.loads(sys.argv[1])

class Counting:
    reads = 0
    def size(self, key):
        return os.stat(os.path.join(job["set"], key)).st_size
    def read(self, key, offset, size):
        Counting.reads += 1
        with open(os.path.join(job["set"], key), "rb") as file:
            file.seek(offset)
            return file.read(size)

data = l3.Dataset(Counting() if job.get("counts") else job["set"])
opened = Counting.reads
loader = l3.Loader(data, **job["options"])
if "state" in job:
    loader.load_state_dict(job["state"])
if job.get("forks") and os.fork() == 0:
    time.sleep(60)
    os._exit(0)
state = None
with open(job["out"], "w") as out:
    print("begun", flush=True)
    batches = 0
    for _ in range(job["epochs"]):
        for batch in loader:
            found = hashlib.sha256(batch.images.tobytes()).hexdigest()[:16]
            print(batch.epoch, batch.position, batch.ids.tolist(), batch.labels.tolist(), found, file=out, flush=True)
            if job.get("forks") and batches == 4 and os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            batches += 1
            state = loader.state_dict()
            if batches == job.get("stops_after"):
                break
            time.sleep(job.get("pause", 0))
        if batches == job.get("stops_after"):
            break
print(json.dumps({"reads": Counting.reads - opened, "state": state, **vars(loader.sharing)}), flush=True)
loader.close()
"""


class Job:
    """A process that runs JOB."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.out = Path(job["out"])
        self.process = subprocess.Popen([sys.executable, "-c", JOB, json.dumps(job)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=child_environment())

    def wait_begun(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "begun\n"

    def wait_batches(self, count: int) -> None:
        until = time.monotonic() + 60
        while len(self.batches()) < count:
            assert time.monotonic() < until, "it has not that many batches"
            time.sleep(0.002)

    def end(self) -> dict[str, Any]:
        """Waits for its end, and returns what it has done."""
        output, errors = self.process.communicate(timeout=90)
        assert self.process.returncode == 0, f"ended with {self.process.returncode}: {errors}"
        return dict(json.loads(output.splitlines()[-1]))

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def batches(self) -> list[str]:
        return self.out.read_text().splitlines() if self.out.exists() else []


class Jobs(Sets):
    COUNT = 60
    EPOCHS = 3

    def setUp(self) -> None:
        super().setUp()
        self.name = f"{os.getpid()} {self.id().split('.')[-1]}"
        self.jobs: list[Job] = []
        self.memory = self.shared_memory()

    @staticmethod
    def shared_memory() -> set[str]:
        return {name for name in os.listdir("/dev/shm") if "share" in name or "batch" in name}

    def tearDown(self) -> None:
        """Nothing is left behind, whatever happened."""
        for job in self.jobs:
            if job.process.poll() is None:
                job.kill()
            for stream in (job.process.stdout, job.process.stderr):
                if stream is not None:
                    stream.close()
        self.assertNotIn(self.name, Path("/proc/net/unix").read_text())
        self.assertEqual(self.shared_memory(), self.memory)

    def options(self, **changes: Any) -> dict[str, Any]:
        return {"batch_size": 4, "seed": 3, "flip": True, "crop": 20, "threads": 2, "share": self.name, "jobs": 4,
                **changes}

    def start(self, options: dict[str, Any], **job: Any) -> Job:
        made = Job({"set": self.classes_set(), "options": options, "epochs": self.EPOCHS,
                    "out": str(self.folder / str(len(self.jobs))), **job})
        self.jobs.append(made)
        return made

    def expected(self, **changes: Any) -> list[str]:
        """The lines of a job that shares nothing."""
        options = self.options(**changes)
        for name in ("share", "jobs", "share_timeout"):
            options.pop(name, None)
        job = self.start(options)
        job.end()
        self.assertEqual(len(job.batches()), 15 * self.EPOCHS)
        return job.batches()
