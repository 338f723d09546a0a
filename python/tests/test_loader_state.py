"""Each unit comes exactly once, despite interruptions: states, breaks, and failing samples."""

from __future__ import annotations

import json
import unittest

import l3
import numpy as np
from support import Sets

BROKEN = ("dogs/004.png", "cats/011.png")


def ids_of(loader: l3.Loader) -> list[list[int]]:
    return [[int(i) for i in batch.ids] for batch in loader]


class States(Sets):
    def make(self, batch_size: int = 4, **how: object) -> l3.Loader:
        return l3.Loader(self.classes_set(), batch_size, seed=7, **how)

    def test_every_cut(self) -> None:
        for ending in ("even", "pad", "drop", "uneven"):
            with self.make(last_batch=ending) as loader:
                whole = [ids_of(loader), ids_of(loader)]
            for cut in range(len(whole[0]) + 1):
                with self.subTest(ending=ending, cut=cut), self.make(last_batch=ending) as first:
                    loop = iter(first)
                    for _ in range(cut):
                        next(loop)
                    state = json.loads(json.dumps(first.state_dict()))
                    with self.make(last_batch=ending) as second:
                        second.load_state_dict(state)
                        self.assertEqual(second.state_dict(), state)
                        if cut < len(whole[0]):
                            self.assertEqual(second.epoch, 0)
                            self.assertEqual(ids_of(second), whole[0][cut:])
                        self.assertEqual(second.state_dict()["epoch"], 1)
                        self.assertEqual(ids_of(second), whole[1])

    def test_unordered(self) -> None:
        with self.make() as loader:
            whole = ids_of(loader)
        for cut in range(len(whole) + 1):
            with self.subTest(cut=cut), self.make(ordered=False) as first, self.make(ordered=False) as second:
                loop = iter(first)
                found = [[int(i) for i in next(loop).ids] for _ in range(cut)]
                state = json.loads(json.dumps(first.state_dict()))
                second.load_state_dict(state)
                self.assertEqual(second.state_dict(), state)
                if cut < len(whole):
                    found += ids_of(second)
                self.assertEqual(sorted(found), sorted(whole))
                self.assertEqual(second.state_dict()["epoch"], 1)
                with self.make() as other, self.assertRaisesRegex(ValueError, "ordered=False"):
                    other.load_state_dict(state)
                with self.make(3, ordered=False) as other, self.assertRaisesRegex(ValueError, "with batch_size 4"):
                    other.load_state_dict(state)

    def test_other_batches_and_ranks(self) -> None:
        with self.make() as loader:
            order = [i for batch in ids_of(loader) for i in batch]
        for world_size, batch_size in ((1, 5), (2, 3), (3, 4), (5, 1)):
            for cut in range(6):
                with self.subTest(world_size=world_size, cut=cut):
                    with self.make() as first:
                        loop = iter(first)
                        for _ in range(cut):
                            next(loop)
                        state = first.state_dict()
                    rest = []
                    for rank in range(world_size):
                        with self.make(batch_size, rank=rank, world_size=world_size) as loader:
                            loader.load_state_dict(state)
                            for batch in loader:
                                rest += [int(i) for i in batch.ids[:len(batch.ids) - batch.repeats]]
                    self.assertEqual(sorted(rest), sorted(order[4 * cut:]))

    def test_between_and_within(self) -> None:
        with self.make() as loader:
            self.assertEqual((loader.state_dict()["epoch"], loader.state_dict()["position"]), (0, 0))
            for number, batch in enumerate(loader):
                state = loader.state_dict()
                expected = (0, batch.position) if number < 5 else (1, 0)
                self.assertEqual((state["epoch"], state["position"]), expected)
            self.assertEqual((loader.state_dict()["epoch"], loader.state_dict()["position"]), (1, 0))

    def test_early_break(self) -> None:
        with self.make() as whole:
            epochs = [ids_of(whole) for _ in range(3)]
        with self.make() as loader:
            for batch in loader:
                if batch.number == 1:
                    break
            self.assertEqual(loader.state_dict()["position"], 8)
            self.assertEqual(ids_of(loader), epochs[1])
            for _ in loader:
                break
            state = loader.state_dict()
            self.assertEqual((state["epoch"], state["position"]), (2, 4))
            loader.load_state_dict(state)
            self.assertEqual(ids_of(loader), epochs[2][1:])

    def test_one_loop_at_a_time(self) -> None:
        with self.make() as loader:
            first = iter(loader)
            next(first)
            second = iter(loader)
            next(second)
            with self.assertRaisesRegex(RuntimeError, "another loop"):
                next(first)
            rest = list(second)
            self.assertEqual(len(rest), 5)
            self.assertEqual(list(second), [])

    def test_what_does_not_fit(self) -> None:
        state = self.make().state_dict()
        for how, name in (({"seed": 8}, "seed"), ({"shuffle": False}, "order"), ({"samples": [1, 2]}, "units"),
                          ({"samples": list(range(self.COUNT))}, "samples")):
            loader = l3.Loader(self.classes_set(), 4, **{"seed": 7, **how})
            with self.subTest(name), self.assertRaisesRegex(ValueError, f"was taken with {name}"):
                loader.load_state_dict(state)
        with self.assertRaisesRegex(ValueError, "window"):
            self.make(shuffle="windows", window=2).load_state_dict(self.make(shuffle="windows", window=3).state_dict())
        with self.assertRaisesRegex(ValueError, "no 'version'"):
            self.make().load_state_dict({})
        with self.assertRaisesRegex(ValueError, "position"):
            self.make().load_state_dict({**state, "position": self.COUNT + 1})


class Failures(Sets):
    def test_raise(self) -> None:
        path = self.broken_set(*BROKEN)
        with l3.Loader(path, 4, seed=1) as loader:
            loop, seen, failed = iter(loader), [], []
            while True:
                try:
                    seen += next(loop).names
                except StopIteration:
                    break
                except l3.SampleError as error:
                    failed.append(error.name)
                    self.assertEqual(loader.data[error.sample].name, error.name)
                    self.assertRegex(str(error), rf"^sample {error.sample} '{error.name}' \(.*\.l3s")
            self.assertEqual(sorted(failed), sorted(BROKEN))
            self.assertEqual(len(seen), len(set(seen)))
            self.assertGreaterEqual(len(seen), self.COUNT - 8)
            self.assertFalse(set(seen) & set(BROKEN))
            self.check_failures(loader)
            with self.assertRaises(l3.SampleError):
                list(loader)
            self.assertEqual(loader.epoch, 1)
            count = loader.failure_count
        self.assertEqual(loader.failure_count, count)
        self.assertEqual(len(loader.failures), count)

    def check_failures(self, loader: l3.Loader) -> None:
        failures = loader.failures
        self.assertEqual(sorted(str(failure.name) for failure in failures), sorted(BROKEN))
        self.assertEqual(loader.failure_count, 2)
        for failure in failures:
            self.assertEqual(failure.epoch, 0)
            self.assertEqual(loader.data[failure.sample].name, failure.name)
            self.assertTrue(failure.file.endswith(".l3s") and failure.reason and failure.offset > 0)

    def test_skip(self) -> None:
        with l3.Loader(self.broken_set(*BROKEN), 4, on_error="skip") as loader:
            batches = list(loader)
            names = [name for batch in batches for name in batch.names]
            self.assertEqual(len(names), self.COUNT - 2)
            self.assertEqual(len(set(names)), self.COUNT - 2)
            self.assertEqual(sum(batch.failed for batch in batches), 2)
            for batch in batches:
                self.assertEqual(len(batch.images), len(batch.names))
            self.check_failures(loader)

    def test_zero(self) -> None:
        with l3.Loader(self.broken_set(*BROKEN), 4, on_error="zero", dtype="float32", mean=0.5) as loader:
            count = 0
            for batch in loader:
                count += len(batch.ids)
                for image, label, name in zip(batch.images, batch.labels, batch.names):  # noqa: B905 (Python 3.9)
                    self.assertEqual(label == -1, name in BROKEN)
                    self.assertEqual(not np.any(image), name in BROKEN)
            self.assertEqual(count, self.COUNT)
            self.check_failures(loader)


if __name__ == "__main__":
    unittest.main()
