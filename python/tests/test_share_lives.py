"""Jobs that share batches do not depend on each other: some are killed, stopped, or started again.

L3_KILLS says how many are killed (default 20).
"""

from __future__ import annotations

import os
import random
import signal
import time
import unittest
from pathlib import Path

from share_jobs import Jobs

KILLS = int(os.environ.get("L3_KILLS", "20"))


class Lives(Jobs):
    def test_killed(self) -> None:
        expected = self.expected()
        seed = int.from_bytes(os.urandom(4), "little")
        rng = random.Random(seed)
        for kill in range(KILLS):
            # The first one leads. The others come once it does.
            jobs = [self.start(self.options(share_timeout=5), pause=0.01)]
            jobs[0].wait_begun()
            jobs += [self.start(self.options(share_timeout=5), pause=0.01) for _ in range(3)]
            time.sleep(rng.uniform(0, 1.2))
            killed = jobs[kill % 4]
            killed.kill()
            for job in jobs:
                if job is killed:
                    self.assertEqual(job.batches()[:-1], expected[:max(len(job.batches()) - 1, 0)])
                    continue
                job.end()
                self.assertEqual(job.batches(), expected, f"seed {seed}, kill {kill}")
            self.assertNotIn(self.name, Path("/proc/net/unix").read_text())

    def test_killed_with_children(self) -> None:
        """Children that live on do not keep the group waiting for their parent."""
        expected = self.expected()
        leader = self.start(self.options(jobs=2), forks=True, pause=0.02)
        leader.wait_batches(1)
        other = self.start(self.options(jobs=2), pause=0.01)
        leader.wait_batches(10)
        children = Path(f"/proc/{leader.process.pid}/task/{leader.process.pid}/children").read_text().split()
        leader.process.kill()
        leader.process.wait()
        begun = time.monotonic()
        other.end()
        self.assertLess(time.monotonic() - begun, 20)
        self.assertEqual(other.batches(), expected)
        self.assertEqual(len(children), 2)
        for child in children:
            os.kill(int(child), signal.SIGKILL)

    def test_stopped(self) -> None:
        expected = self.expected()
        for stopped in (0, 1):
            with self.subTest(stopped=stopped):
                options = self.options(jobs=3, share_timeout=1)
                jobs = [self.start(options, pause=0.01)]
                jobs[0].wait_batches(1)
                jobs += [self.start(options, pause=0.01) for _ in range(2)]
                for job in jobs:
                    job.wait_batches(7)
                jobs[stopped].process.send_signal(signal.SIGSTOP)
                for i, job in enumerate(jobs):
                    if i != stopped:
                        job.end()
                        self.assertEqual(job.batches(), expected)
                self.assertLess(len(jobs[stopped].batches()), len(expected))
                jobs[stopped].process.send_signal(signal.SIGCONT)
                jobs[stopped].end()
                self.assertEqual(jobs[stopped].batches(), expected)

    def test_started_again(self) -> None:
        """A job that ends in the middle of an epoch, and another one that goes on with its state."""
        expected = self.expected()
        others = [self.start(self.options(jobs=2, share_timeout=5), pause=0.02)]
        others[0].wait_batches(1)
        first = self.start(self.options(jobs=2, share_timeout=5), stops_after=19)
        state = first.end()["state"]
        again = self.start(self.options(jobs=2, share_timeout=5), state=state, epochs=2)
        again.end()
        others[0].end()
        self.assertEqual(first.batches() + again.batches(), expected)
        self.assertEqual(others[0].batches(), expected)


if __name__ == "__main__":
    unittest.main()
