"""Batches: values, labels, roles, orders, and the errors for wrong arguments."""

from __future__ import annotations

import json
import pickle
import unittest

import l3
import numpy as np
from support import Sets, number_of, picture


def planes(pixels: np.ndarray) -> np.ndarray:
    return pixels.transpose(2, 0, 1)


class Values(Sets):
    def test_unpacks(self) -> None:
        loader = l3.Loader(self.classes_set(), 4)
        self.assertEqual(len(loader), 6)
        data = loader.data
        for batch in loader:
            images, labels, ids = batch
            self.assertIs(images, batch.images)
            self.assertEqual((images.dtype, labels.dtype, ids.dtype), (np.uint8, np.int64, np.int64))
            self.assertEqual(images.shape, (len(batch.ids), 3, 24, 32))
            self.assertEqual(batch.names, [data[int(i)].name for i in ids])
            for image, label, name in zip(images, labels, batch.names):  # noqa: B905 (Python 3.9)
                np.testing.assert_array_equal(image, planes(picture(number_of(name))))
                self.assertEqual(data.classes[label], name.split("/")[0])
            self.assertTrue(images.flags.writeable)
            images[:] = 0

    def test_types(self) -> None:
        mean, std = np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.5, 0.6])
        for dtype in ("float32", "float16", "uint16"):
            for layout in ("CHW", "HWC"):
                scaling = {} if dtype == "uint16" else {"mean": mean, "std": std}
                with l3.Loader(self.classes_set(), 5, dtype=dtype, layout=layout, **scaling) as loader:
                    for images, _, ids in loader:
                        for image, i in zip(images, ids):  # noqa: B905 (Python 3.9)
                            expected = loader.data[int(i)].decode(dtype=dtype, layout=layout, **scaling)
                            np.testing.assert_array_equal(image, expected)

    def test_bfloat16(self) -> None:
        with l3.Loader(self.classes_set(), 5, dtype="bfloat16") as loader:
            batch = next(iter(loader))
            self.assertIsInstance(batch.images, l3.Tensor)
            self.assertEqual(batch.images.shape, (5, 3, 24, 32))
            self.assertIsInstance(batch.labels, np.ndarray)

    def test_crops_and_mirroring(self) -> None:
        for mode in ("centre", "center"):
            for images, _, ids in l3.Loader(self.classes_set(), 4, crop=(10, 12), crop_mode=mode, layout="HWC"):
                for image, i in zip(images, ids):  # noqa: B905 (Python 3.9)
                    whole = l3.Dataset(self.classes_set())[int(i)].decode()
                    np.testing.assert_array_equal(image, whole[7:17, 10:22])
        places, mirrored = set(), 0
        for images, _, ids in l3.Loader(self.classes_set(), 4, crop=(20, 30), flip=True, layout="HWC", seed=5):
            for image, i in zip(images, ids):  # noqa: B905 (Python 3.9)
                whole = l3.Dataset(self.classes_set())[int(i)].decode()
                found = [(x, y, flip) for x in range(3) for y in range(5) for flip in (1, -1)
                         if np.array_equal(whole[y:y + 20, x:x + 30][:, ::flip], image)]
                self.assertEqual(len(found), 1)
                places.add(found[0][:2])
                mirrored += found[0][2] < 0
        self.assertGreater(len(places), 5)
        self.assertTrue(0 < mirrored < self.COUNT)

    def test_roles(self) -> None:
        roles = ["image", "labels"]
        loader = l3.Loader(self.pairs_set(), 3, roles=roles, crop=(8, 8), flip=True, dtype="float32", mean=0.5, std=0.5)
        for batch in loader:
            self.assertEqual(list(batch.images), roles)
            images, maps = batch.images["image"], batch.images["labels"]
            self.assertEqual((images.dtype, maps.dtype), (np.float32, np.uint8))
            self.assertEqual((images.shape[1:], maps.shape[1:]), ((3, 8, 8), (1, 8, 8)))
            self.assertTrue(all(name.startswith("images/") for name in batch.names))
            for image, labels, name in zip(images, maps, batch.names):  # noqa: B905 (Python 3.9)
                i = number_of(name)
                whole = (planes(picture(i, bits=16)) / 65535 - 0.5) / 0.5
                # The same crop of both.
                found = [(y, x, flip) for y in range(17) for x in range(25) for flip in (1, -1)
                         if np.allclose(whole[:, y:y + 8, x:x + 8][:, :, ::flip], image, atol=1e-5)]
                self.assertEqual(len(found), 1)
                y, x, flip = found[0]
                expected = planes(picture(i, channels=1) // 32)[:, y:y + 8, x:x + 8][:, :, ::flip]
                np.testing.assert_array_equal(labels, expected)

    def test_types_by_role(self) -> None:
        loader = l3.Loader(self.pairs_set(), 3, roles=["labels", "image"], dtype={"image": "float16"},
                           mean={"image": [0.1, 0.2, 0.3]}, colours=["labels"])
        batch = next(iter(loader))
        self.assertEqual(batch.images["image"].dtype, np.float16)
        self.assertEqual(batch.images["labels"].shape, (3, 3, 24, 32))
        self.assertTrue(all(name.startswith("maps/") for name in batch.names))


class Orders(Sets):
    def ids(self, **how: object) -> list[int]:
        with l3.Loader(self.classes_set(), 4, **how) as loader:
            return [int(i) for batch in loader for i in batch.ids]

    def test_orders(self) -> None:
        every = list(range(self.COUNT))
        self.assertEqual(self.ids(shuffle=False), every)
        for shuffle in (True, "windows"):
            shuffled = self.ids(shuffle=shuffle, seed=1)
            self.assertEqual(sorted(shuffled), every)
            self.assertNotEqual(shuffled, every)
            self.assertEqual(self.ids(shuffle=shuffle, seed=1, threads=1, prefetch=1, reading="threads"), shuffled)
            self.assertNotEqual(self.ids(shuffle=shuffle, seed=2), shuffled)

    def test_epochs(self) -> None:
        loader = l3.Loader(self.classes_set(), 4, seed=3)
        epochs = [[int(i) for batch in loader for i in batch.ids] for _ in range(3)]
        self.assertEqual([sorted(ids) for ids in epochs], [list(range(self.COUNT))] * 3)
        self.assertEqual(len(set(map(tuple, epochs))), 3)
        loader.set_epoch(1)
        self.assertEqual([int(i) for batch in loader for i in batch.ids], epochs[1])
        self.assertEqual(loader.epoch, 2)
        self.assertEqual([int(i) for batch in loader for i in batch.ids], epochs[2])

    def test_ranks(self) -> None:
        for ending, repeats in (("even", 1), ("pad", 1), ("drop", 0), ("uneven", 0)):
            batches = []
            for rank in range(3):
                with l3.Loader(self.classes_set(), 4, rank=rank, world_size=3, last_batch=ending) as loader:
                    batches.append(list(loader))
                    self.assertEqual(len(batches[-1]), len(loader))
            ids = [int(i) for rank in batches for batch in rank
                   for i in batch.ids[:len(batch.ids) - batch.repeats]]
            self.assertEqual(len(set(ids)), len(ids))
            self.assertEqual(len(ids), 12 if ending == "drop" else self.COUNT)
            self.assertEqual(sum(batch.repeats for rank in batches for batch in rank), repeats)
            if ending != "uneven":
                self.assertEqual(len({tuple(map(len, rank)) for rank in batches}), 1)

    def test_samples(self) -> None:
        data = l3.Dataset(self.classes_set())
        wanted = ["cats/003.png", 4, "cats/003.png", 0]
        with l3.Loader(data, 2, samples=wanted, shuffle=False) as loader:
            ids = [int(i) for batch in loader for i in batch.ids]
        self.assertEqual(ids, [data.find("cats/003.png"), 4, 0])
        for samples in ([], ["none"], [len(data)], [-1]):
            with self.subTest(samples), self.assertRaisesRegex(ValueError, "samples"):
                l3.Loader(data, 2, samples=samples)


class Arguments(Sets):
    def test_wrong_ones(self) -> None:
        path = self.classes_set()
        for how, error, text in (
            ({"batch_size": 0}, ValueError, "batch_size is 0, but must be from 1"),
            ({"batch_size": 2.5}, TypeError, "batch_size is 2.5"),
            ({"shuffle": "yes"}, ValueError, "shuffle is 'yes', but must be True, False or 'windows'"),
            ({"crop": "5"}, TypeError, r"crop is '5', but must be a whole number or \(height, width\)"),
            ({"crop": (5, 0)}, ValueError, "crop is 0"),
            ({"crop": (25, 5)}, ValueError, "crop"),
            ({"crop_mode": "left"}, ValueError, "crop_mode is 'left', but must be 'centre', 'center' or 'random'"),
            ({"dtype": "int8"}, ValueError, "dtype is 'int8'"),
            ({"dtype": {"mask": "uint8"}}, ValueError, "dtype names the role 'mask'"),
            ({"mean": 0.5}, ValueError, "mean and std need dtype"),
            ({"mean": [1, 2], "dtype": "float32"}, ValueError, "mean has 2 numbers"),
            ({"layout": "NCHW"}, ValueError, "layout is 'NCHW'"),
            ({"roles": ["mask"]}, ValueError, "mask"),
            ({"roles": "image"}, ValueError, "roles is 'image'"),
            ({"roles": ["image", "image"]}, ValueError, "twice"),
            ({"rank": 1}, ValueError, "rank is 1"),
            ({"last_batch": "keep"}, ValueError, "last_batch is 'keep', but must be 'even', 'pad', 'drop' or 'uneven'"),
            ({"on_error": "ignore"}, ValueError, "on_error is 'ignore'"),
            ({"reading": "mmap"}, ValueError, "reading is 'mmap'"),
            ({"seed": -1}, ValueError, "seed is -1"),
            ({"flip": "x"}, TypeError, "flip is 'x'"),
            ({"device": "tpu"}, ValueError, "device is 'tpu'"),
        ):
            with self.subTest(how=how), self.assertRaisesRegex(error, text):
                l3.Loader(path, **{"batch_size": 2, **how})
        with self.assertRaisesRegex(TypeError, "data is int"):
            l3.Loader(5, 2)  # type: ignore[arg-type]
        with self.assertRaises(FileNotFoundError):
            l3.Loader(self.folder / "none", 2)

    def test_whole_images_of_other_sizes(self) -> None:
        data = l3.Dataset(self.pairs_set())
        with self.assertRaisesRegex(ValueError, "name the wanted roles"):
            l3.Loader(data, 2)
        data.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            l3.Loader(data, 2)

    def test_not_pickled(self) -> None:
        with self.assertRaisesRegex(TypeError, "make it in the process that uses it"):
            pickle.dumps(l3.Loader(self.classes_set(), 2))


class Reports(Sets):
    def test_timeline_and_trace(self) -> None:
        with l3.Loader(self.classes_set(), 4) as loader:
            batches = list(loader)
            timeline = loader.timeline()
            self.assertEqual([batch.times for batch in batches], timeline)
            for times in timeline:
                self.assertGreaterEqual(times.given, times.asked)
                self.assertGreaterEqual(times.given, times.decoded)
                self.assertGreater(times.bytes_out, 0)
            self.assertEqual(sum(times.bytes_out for times in timeline), self.COUNT * 24 * 32 * 3)
            path = self.folder / "trace.json"
            loader.write_trace(path)
            trace = json.loads(path.read_text())
            self.assertTrue(trace)
            with self.assertRaises(FileNotFoundError):
                loader.write_trace(self.folder / "none" / "trace.json")

    def test_words(self) -> None:
        loader = l3.Loader(self.classes_set(), 4)
        self.assertIn(f"{self.COUNT} units in 6 batches of 4", repr(loader))
        self.assertEqual(loader.units, self.COUNT)
        self.assertRegex(repr(next(iter(loader))), r"4 units, epoch 0, position 4")
        loader.close()
        self.assertIn("closed", repr(loader))


if __name__ == "__main__":
    unittest.main()
