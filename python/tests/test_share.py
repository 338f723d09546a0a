"""Loaders that share batches: each batch is prepared once. test_share_lives.py kills and stops some."""

from __future__ import annotations

import unittest
from pathlib import Path

import l3
import numpy as np
from share_jobs import Jobs


class Share(Jobs):
    def test_four(self) -> None:
        expected = self.expected()
        jobs = [self.start(self.options()) for _ in range(4)]
        done = [job.end() for job in jobs]
        for job in jobs:
            self.assertEqual(job.batches(), expected)
        # Each batch was decoded once, by all jobs together.
        self.assertEqual(sum(one["prepared_for_all"] for one in done), len(expected))
        self.assertEqual(sum(one["from_other_jobs"] for one in done), 3 * len(expected))
        self.assertEqual([one["prepared_alone"] for one in done], [0] * 4)

    def test_store_is_read_once(self) -> None:
        """One epoch, because a loader of a far store reads ahead of the next one."""
        expected = self.expected()[:15]
        jobs = [self.start(self.options(), counts=True, epochs=1) for _ in range(4)]
        done = [job.end() for job in jobs]
        for job in jobs:
            self.assertEqual(job.batches(), expected)
        self.assertEqual(sum(one["reads"] for one in done), self.COUNT)

    def test_few_come(self) -> None:
        expected = self.expected()
        jobs = [self.start(self.options(share_timeout=1)) for _ in range(2)]
        for job in jobs:
            job.end()
            self.assertEqual(job.batches(), expected)


class InOneProcess(Jobs):
    def test_other_options(self) -> None:
        with l3.Loader(self.classes_set(), **self.options()) as one:
            next(iter(one))
            with l3.Loader(self.classes_set(), **self.options(seed=4)) as other, self.assertRaises(ValueError) as error:
                next(iter(other))
            self.assertEqual(str(error.exception),
                             f'the jobs that share "{self.name}" have another seed: 3, not 4')

    def test_arguments(self) -> None:
        for wrong, reason in (({"share": ""}, "1 to 64"), ({"jobs": 0}, "jobs"), ({"share": None}, "with share"),
                              ({"ordered": False}, "order")):
            with self.assertRaisesRegex(ValueError, reason):
                l3.Loader(self.classes_set(), **self.options(**wrong))
        with self.assertRaisesRegex(TypeError, "share"):
            l3.Loader(self.classes_set(), **self.options(share=3))
        with l3.Loader(self.classes_set(), 4) as loader:
            self.assertEqual(loader.sharing, l3.Sharing(0, 0, 0, 0))

    def test_memory_is_bounded(self) -> None:
        with l3.Loader(self.classes_set(), **self.options(jobs=1, prefetch=2)) as loader:
            for _ in range(20):
                for _ in loader:
                    pass
            buffers = {line.split()[4] for line in Path("/proc/self/maps").read_text().splitlines()
                       if "memfd:l3-batch" in line}
            self.assertEqual(loader.sharing, l3.Sharing(1, 0, 300, 0))
        # What the leader prepares, its window, and the one between.
        self.assertLessEqual(len(buffers), 2 + 4 + 1)
        self.assertNotIn("memfd:l3-batch", Path("/proc/self/maps").read_text())

    def test_batches_are_private(self) -> None:
        with l3.Loader(self.classes_set(), **self.options(jobs=1)) as loader:
            kept = list(loader)
            copies = [batch.images.copy() for batch in kept]
            for batch in loader:
                batch.images[:] = 7
        for batch, copy in zip(kept, copies):  # noqa: B905 (Python 3.9)
            np.testing.assert_array_equal(batch.images, copy)
            batch.images[:] = 1

    def test_requests_and_times(self) -> None:
        with l3.Loader(self.classes_set(), **self.options(jobs=1, reading="threads")) as loader:
            batches = list(loader)
            times = [batch.times for batch in batches]
            for one in times:
                self.assertTrue(0 < one.begun <= one.fetched <= one.decoded <= one.given)
            loader.write_trace(self.folder / "trace.json")
            self.assertEqual(len(loader.requests()), self.COUNT)


if __name__ == "__main__":
    unittest.main()
