"""l3.torch with torch itself: workers, ranks, pickling, and the examples for Lightning and Accelerate."""

from __future__ import annotations

import importlib.util
import os
import pickle
import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import l3
import numpy as np
from support import Sets, child_environment, number_of, picture, write_png

try:
    import l3.torch
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

EXAMPLES = Path(__file__).parents[2] / "examples"


def inverted(image: Any) -> Any:
    """A transform that spawned workers can import."""
    return 255 - image


@unittest.skipIf(torch is None, "torch is not installed")
class Images(Sets):
    def assert_all(self, loader: Any, change: Any = lambda pixels: pixels) -> None:
        names = list(l3.Dataset(self.classes_set()).names)
        images = [(image.numpy(), int(label)) for batch in loader for image, label in zip(*batch)]  # noqa: B905
        self.assertEqual(len(images), self.COUNT)
        for name, (image, label) in zip(names, images):  # noqa: B905
            np.testing.assert_array_equal(image.transpose(1, 2, 0), change(picture(number_of(name))))
            self.assertEqual(label, ["cats", "dogs"].index(name.split("/")[0]))

    def test_items(self) -> None:
        images = l3.torch.Images(self.classes_set())
        image, label = images[-1]
        self.assertEqual((len(images), image.shape, image.dtype, label),
                         (self.COUNT, (3, 24, 32), torch.uint8, 1))
        self.assertEqual(images.classes, ["cats", "dogs"])
        np.testing.assert_array_equal(images.labels, [images[i][1] for i in range(self.COUNT)])
        for index in (self.COUNT, -self.COUNT - 1):
            with self.assertRaisesRegex(IndexError, "there are 23 images"):
                images[index]
        half = l3.torch.Images(self.classes_set(), dtype="bfloat16", layout="HWC")[0][0]
        self.assertEqual((half.dtype, half.shape), (torch.bfloat16, (24, 32, 3)))

    def test_selections(self) -> None:
        data = l3.Dataset(self.classes_set())
        cats = data[data.labels == 0]
        for samples in (cats, data.labels == 0, list(cats.numbers), list(cats.names)):
            images = l3.torch.Images(data, samples=samples)
            self.assertEqual(images.labels.tolist(), [0] * len(cats))
            self.assertTrue(torch.equal(images[2][0], l3.torch.Images(data)[int(cats.numbers[2])][0]))
        pairs = l3.Dataset(self.pairs_set())
        self.assertEqual(len(l3.torch.Images(pairs)), 20)
        labels = l3.torch.Images(pairs, role="labels")
        self.assertEqual((len(labels), labels[3][0].shape[0], labels[3][1]), (10, 1, -1))
        with self.assertRaisesRegex(ValueError, "role is 'x'"):
            l3.torch.Images(pairs, role="x")
        with l3.DatasetWriter(self.folder / "mixed") as writer:
            writer.write(picture(1), group=0, role="image")
            writer.write_bytes(b"text", group=0, role="txt")
        self.assertEqual(len(l3.torch.Images(self.folder / "mixed")), 1)

    def test_without_workers(self) -> None:
        self.assert_all(torch.utils.data.DataLoader(l3.torch.Images(self.classes_set()), 4))

    def test_forked_workers(self) -> None:
        images = l3.torch.Images(self.classes_set(), transform=lambda image: 255 - image)
        _ = images[0]  # the data set is in use before the fork
        loader = torch.utils.data.DataLoader(images, 4, num_workers=2, multiprocessing_context="fork")
        for _ in range(2):
            self.assert_all(loader, inverted)

    def test_spawned_workers(self) -> None:
        images = l3.torch.Images(self.classes_set(), transform=inverted)
        self.assert_all(torch.utils.data.DataLoader(images, 4, num_workers=2, multiprocessing_context="spawn"),
                        inverted)

    def test_pickle(self) -> None:
        images = l3.torch.Images(l3.Dataset(self.classes_set()), samples=[3, 1, 4], transform=inverted)
        again = pickle.loads(pickle.dumps(images))
        self.assertEqual(len(again), 3)
        for i in range(3):
            self.assertTrue(torch.equal(again[i][0], images[i][0]))


@unittest.skipIf(torch is None, "torch is not installed")
class Batches(Sets):
    def test_tensors(self) -> None:
        batches = l3.torch.Batches(self.classes_set(), 5, shuffle=False)
        loader = torch.utils.data.DataLoader(batches, batch_size=None)
        self.assertEqual((len(batches), len(loader)), (5, 5))
        seen = []
        for images, labels, ids in loader:
            self.assertEqual((images.dtype, labels.dtype, ids.dtype), (torch.uint8, torch.int64, torch.int64))
            for image, number in zip(images, ids):  # noqa: B905
                seen.append(int(number))
                expected = picture(number_of(batches.loader.data.names[int(number)]))
                np.testing.assert_array_equal(image.numpy().transpose(1, 2, 0), expected)
        self.assertEqual(seen, list(range(self.COUNT)))
        batches.close()
        with l3.Loader(self.pairs_set(), 2, roles=["image", "labels"], dtype="bfloat16") as loader:
            both = l3.torch.tensors(next(iter(loader)).images)
            self.assertEqual((both["image"].dtype, both["labels"].dtype), (torch.bfloat16, torch.uint8))
        with l3.Loader(self.classes_set(), 2, batch="list") as loader:
            self.assertEqual([one.shape for one in l3.torch.tensors(next(iter(loader)).images)], [(3, 24, 32)] * 2)

    def test_no_copy(self) -> None:
        with l3.Loader(self.classes_set(), 2) as loader:
            batch = next(iter(loader))
            self.assertEqual(l3.torch.tensors(batch.images).data_ptr(), batch.images.ctypes.data)

    def test_ranks_of_the_environment(self) -> None:
        seen: list[int] = []
        for rank in range(3):
            with mock.patch.dict(os.environ, {"RANK": str(rank), "WORLD_SIZE": "3"}):
                self.assertEqual(l3.torch.ranks(), {"rank": rank, "world_size": 3})
                batches = l3.torch.Batches(self.classes_set(), 2, last_batch="uneven")
                seen += [int(number) for _, _, ids in batches for number in ids]
                batches.close()
        self.assertEqual(sorted(seen), list(range(self.COUNT)))
        self.assertEqual(l3.torch.ranks(), {"rank": 0, "world_size": 1})
        with mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "2"}):
            batches = l3.torch.Batches(self.classes_set(), 2, rank=0, world_size=1)
            self.assertEqual(sum(len(ids) for _, _, ids in batches), self.COUNT)
            batches.close()

    def test_ranks_of_torch(self) -> None:
        """Two processes with gloo. The ranks are known only after Batches was made."""
        program = ("import sys, torch, l3, l3.torch\n"
                   "batches = l3.torch.Batches(sys.argv[1], 2, last_batch='uneven')\n"
                   "torch.distributed.init_process_group('gloo', init_method='file://' + sys.argv[2],\n"
                   "                                     rank=int(sys.argv[3]), world_size=2)\n"
                   "print(*[int(number) for _, _, ids in batches for number in ids])\n"
                   "torch.distributed.destroy_process_group()\n")
        processes = [subprocess.Popen([sys.executable, "-c", program, self.classes_set(),
                                       str(self.folder / "meeting"), str(rank)], stdout=subprocess.PIPE, text=True,
                                      env=child_environment()) for rank in range(2)]
        parts = [[int(number) for number in process.communicate(timeout=120)[0].split()] for process in processes]
        self.assertEqual([process.returncode for process in processes], [0, 0])
        self.assertEqual(sorted(parts[0] + parts[1]), list(range(self.COUNT)))
        self.assertLessEqual(abs(len(parts[0]) - len(parts[1])), 1)

    def test_states(self) -> None:
        def numbers(batches: Any) -> list[list[int]]:
            return [ids.tolist() for _, _, ids in batches]

        batches = l3.torch.Batches(self.classes_set(), 5, seed=7)
        whole = [numbers(batches), numbers(batches)]
        self.assertNotEqual(whole[0], whole[1])
        batches.set_epoch(0)
        loop = iter(batches)
        first = [next(loop)[2].tolist() for _ in range(2)]
        copy = pickle.loads(pickle.dumps(batches))  # at this position
        state = batches.state_dict()
        loop.close()
        other = l3.torch.Batches(self.classes_set(), 5, seed=7)
        other.load_state_dict(state)
        for one in (copy, other):
            self.assertEqual(first + numbers(one), whole[0])
            self.assertEqual(numbers(one), whole[1])
            one.close()
        batches.close()

    def test_workers_are_refused(self) -> None:
        loader = torch.utils.data.DataLoader(l3.torch.Batches(self.classes_set(), 2), batch_size=None, num_workers=1,
                                             multiprocessing_context="fork")
        with self.assertRaisesRegex(RuntimeError, "without num_workers"):
            list(loader)


@unittest.skipIf(torch is None, "torch is not installed")
class Examples(Sets):
    def run_example(self, name: str, *options: str, code: int = 0) -> str:
        def draw(png: Path) -> list[str]:
            for i in range(8):
                write_png(png / f"{i}.png", picture(i, 40, 40))
            return []

        done = subprocess.run([sys.executable, str(EXAMPLES / name), "--crop", "32", *options,
                               self._make("squares", draw)], capture_output=True, text=True, timeout=240,
                              env=child_environment())
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def assert_losses(self, said: str, epochs: list[int]) -> None:
        found = re.findall(r"^epoch (\d+): .*loss ([\d.]+)$", said, re.MULTILINE)
        self.assertEqual([int(epoch) for epoch, _ in found], epochs, said)
        self.assertLess(float(found[-1][1]), float(found[0][1]))

    def test_torch(self) -> None:
        state = str(self.folder / "state")
        self.assert_losses(self.run_example("train_torch.py", "--epochs", "2", "--state", state), [0, 1])
        self.assert_losses(self.run_example("train_torch.py", "--epochs", "4", "--state", state), [2, 3])

    @unittest.skipUnless(importlib.util.find_spec("lightning"), "lightning is not installed")
    def test_lightning(self) -> None:
        saved = str(self.folder / "saved.ckpt")
        self.assert_losses(self.run_example("train_lightning.py", "--epochs", "2", "--save", saved), [0, 1])
        self.assert_losses(self.run_example("train_lightning.py", "--epochs", "4", "--resume", saved), [2, 3])

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "accelerate is not installed")
    def test_accelerate(self) -> None:
        self.assert_losses(self.run_example("train_accelerate.py", "--cpu", "--epochs", "3"), [0, 1, 2])


if __name__ == "__main__":
    unittest.main()
