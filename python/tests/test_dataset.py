"""Data sets and their samples."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import pickle
import threading
import unittest
import zlib
from pathlib import Path

import l3
import numpy as np
from support import Sets, convert, number_of, picture, python, write_png


def decode_in_child(data: l3.Dataset, number: int) -> bytes:
    return data[number].decode().tobytes()


class Datasets(Sets):
    def test_what_it_says(self) -> None:
        path = self.classes_set()
        with l3.Dataset(path) as data:
            self.assertEqual((len(data), data.path, data.groups), (self.COUNT, path, self.COUNT))
            self.assertEqual((data.classes, data.roles), (["cats", "dogs"], ["image"]))
            self.assertGreater(data.shards, 1)
            self.assertIn(path, repr(data))
            for sample in data:
                i = number_of(sample.name)
                self.assertEqual(sample.class_name, "cats" if i % 2 else "dogs")
                self.assertEqual(data.classes[sample.label], sample.class_name)
                self.assertEqual((sample.width, sample.height, sample.channels, sample.bits), (32, 24, 3, 8))
                self.assertEqual((sample.role, sample.metadata, sample.is_image), ("image", None, True))
                self.assertEqual(len(sample.bytes()), sample.size)
                np.testing.assert_array_equal(sample.decode(), picture(i))
                self.assertEqual(l3.info(sample.bytes()).shape, (24, 32, 3))

    def test_finding(self) -> None:
        data = l3.Dataset(Path(self.classes_set()))
        self.assertEqual(data[-1].name, data[len(data) - 1].name)
        self.assertEqual(data["cats/001.png"].number, data.find("cats/001.png"))
        self.assertIsNone(data.find("cats/000.png"))
        self.assertTrue("cats/001.png" in data and "cats" not in data and 1 not in data)
        self.assertEqual(data[np.int64(3)].number, 3)
        for wrong, error in ((len(data), IndexError), (-len(data) - 1, IndexError), ("none", KeyError),
                             ((1, 2), TypeError), (1.5, TypeError)):
            with self.subTest(wrong), self.assertRaises(error):
                data[wrong]
        with self.assertRaises(IndexError):
            data.group(self.COUNT)

    def test_views(self) -> None:
        data = l3.Dataset(self.classes_set())
        every = [sample.name for sample in data]
        mask = np.arange(self.COUNT) % 3 == 1
        for which, expected in (
            (slice(10, 20), every[10:20]), (slice(None), every), (slice(-4, None), every[-4:]),
            (slice(None, None, -2), every[::-2]), (slice(90, 99), []), (mask, every[1::3]),
            (mask.tolist(), every[1::3]),
            ([5, -1, 5], [every[5], every[-1], every[5]]), (np.int8([-1, 2]), [every[-1], every[2]]),
            (np.uint64([2]), [every[2]]), (range(3, 9, 2), every[3:9:2]), ([], []), (np.zeros(self.COUNT, bool), []),
        ):
            with self.subTest(which=which):
                view = data[which]
                self.assertIsInstance(view, l3.Samples)
                self.assertEqual((len(view), [sample.name for sample in view]), (len(expected), expected))
                self.assertEqual((len(view.names), list(view.names)), (len(expected), expected))
                self.assertEqual(view.numbers.tolist(), [every.index(name) for name in expected])
                self.assertEqual(view.labels.tolist(), [data[name].label for name in expected])
                self.assertEqual([sample.name for sample in reversed(view)], expected[::-1])
                for i in range(-len(expected), len(expected)):
                    self.assertEqual((view[i].name, view.names[i]), (expected[i], expected[i]))
                self.assertEqual(list(view[1:-1].names), expected[1:-1])
                self.assertEqual(list(view[::-2].names), expected[::-2])
                self.assertEqual(list(view.names[np.arange(len(view)) % 2 == 0]), expected[::2])
                for place, name in enumerate(expected):
                    self.assertEqual(view.names.index(name), expected.index(name))
                    self.assertTrue(name in view.names and name in view and view[place] in view)
                self.assertNotIn("none", view.names)
                self.assertEqual(list(pickle.loads(pickle.dumps(view)).names), expected)
        with self.assertRaisesRegex(ValueError, "'none' is not in l3.Names"):
            data.names.index("none")
        self.assertRegex(repr(data[2:5]), r"^l3\.Samples\(3 of l3\.Dataset\(")
        np.testing.assert_array_equal(data[mask][2].decode(), picture(number_of(every[7])))
        cats = data[data.labels == data.classes.index("cats")]
        self.assertEqual({sample.class_name for sample in cats}, {"cats"})
        self.assertEqual(list(data[mask][[False, True] + 6 * [False]].names), [every[4]])
        with l3.Loader(data, 1, samples=data[mask].numbers, shuffle=False) as loader:
            self.assertEqual([batch.names[0] for batch in loader], every[1::3])
        self.assertEqual(data[3].shape, (24, 32, 3))

    def test_wrong_selections(self) -> None:
        data = l3.Dataset(self.classes_set())
        for which, error, text in (
            (np.ones(3, bool), IndexError, "the mask has 3 entries, but there are 23 samples"),
            ([0, 23], IndexError, "sample 23 is out of range: there are 23 samples"),
            ([-24], IndexError, "sample -24 is out of range"), (np.uint64([2**63]), IndexError, "out of range"),
            ([1.5], TypeError, "by a slice, by a mask of bool, or by a list of numbers, not by list of float64"),
            (["a"], TypeError, "not by list of <U1"), (np.zeros((2, 2), int), TypeError, "with 2 dimensions"),
            ((1, 2), TypeError, "by its number or its name, and several samples by a slice, .*, not by tuple"),
            (True, TypeError, "not by bool"), (np.array(True), TypeError, "not by bool"),
        ):
            with self.subTest(which=which), self.assertRaisesRegex(error, text):
                data[which]
        view = data[3:5]
        with self.assertRaisesRegex(IndexError, "sample 2 is out of range: the view has 2 samples"):
            view[2]
        with self.assertRaises(ValueError):
            data.labels[0] = 1
        data.close()
        with self.assertRaisesRegex(ValueError, "is closed"):
            view[0]

    def test_groups_and_metadata(self) -> None:
        png = self.folder / "png"
        for i in range(3):
            write_png(png / f"{i}.png", picture(i))
            (png / f"{i}.json").write_text(json.dumps({"number": i, "text": "é"}))
            (png / f"{i}.txt").write_text(f"text {i}")
        convert(png, self.folder / "set", "--group", "stem")
        data = l3.Dataset(self.folder / "set")
        self.assertEqual((len(data), data.groups), (6, 3))
        for group in range(3):
            samples = data.group(group)
            self.assertEqual({sample.group for sample in samples}, {group})
            image = next(sample for sample in samples if sample.is_image)
            text = next(sample for sample in samples if not sample.is_image)
            self.assertEqual(image.metadata, {"number": number_of(image.name), "text": "é"})
            self.assertEqual(text.bytes().decode(), f"text {number_of(text.name)}")
            self.assertEqual((text.colour, text.width, text.shape), (None, 0, (0, 0, 0)))
            with self.assertRaisesRegex(ValueError, "is not an image; use bytes"):
                text.decode()

    def test_label_maps_and_depth(self) -> None:
        data = l3.Dataset(self.pairs_set())
        self.assertEqual(sorted(data.roles), ["image", "labels"])
        for sample in data:
            i = number_of(sample.name)
            if sample.role == "image":
                np.testing.assert_array_equal(sample.decode(), picture(i, bits=16))
            else:
                np.testing.assert_array_equal(sample.decode(), picture(i, channels=1) // 32)
                self.assertEqual(sample.decode(colours=True, layout="CHW").shape, (3, 24, 32))

    def test_models_of_the_set(self) -> None:
        png = self.folder / "png"
        for i in range(40):
            write_png(png / f"{i}.png", picture(i, 20, 20))
        convert(png, self.folder / "set", "--shared-model", "on", "--effort", "1", "--method", "dense")
        data = l3.Dataset(self.folder / "set")
        named = [sample for sample in data if l3.info(sample.bytes()).model == "named"]
        if not named:
            self.skipTest("no sample of this set names a model")
        sample = named[0]
        np.testing.assert_array_equal(sample.decode(), picture(number_of(sample.name), 20, 20))
        with self.assertRaisesRegex(l3.Error, "model"):
            l3.decode(sample.bytes())


class Lives(Sets):
    def test_closing(self) -> None:
        data = l3.Dataset(self.classes_set())
        sample = data[4]
        data.close()
        data.close()
        self.assertTrue(data.closed)
        self.assertEqual(sample.decode().shape, (24, 32, 3))
        with self.assertRaisesRegex(ValueError, "is closed"):
            data[0]

    def test_files_are_closed(self) -> None:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            data = l3.Dataset(self.classes_set())
            samples = list(data)
            for sample in samples:
                sample.bytes()
            self.assertGreater(len(os.listdir("/proc/self/fd")), before)
            data.close()
            del data, samples, sample
            gc.collect()
            self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_pickling(self) -> None:
        data = pickle.loads(pickle.dumps(l3.Dataset(self.classes_set(), max_open_files=2)))
        self.assertEqual(len(data), self.COUNT)
        np.testing.assert_array_equal(data[3].decode(), picture(number_of(data[3].name)))

    def test_fork_and_spawn(self) -> None:
        data = l3.Dataset(self.classes_set())
        data[0].bytes()
        expected = [decode_in_child(data, i) for i in range(6)]
        for method in ("fork", "spawn"):
            with self.subTest(method), multiprocessing.get_context(method).Pool(2) as pool:
                self.assertEqual(pool.starmap(decode_in_child, [(data, i) for i in range(6)]), expected)

    def test_threads(self) -> None:
        data = l3.Dataset(self.classes_set(), max_open_files=1)
        wrong = []

        def read_all() -> None:
            for sample in data:
                if not np.array_equal(sample.decode(), picture(number_of(sample.name))):
                    wrong.append(sample.name)

        threads = [threading.Thread(target=read_all) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_end_of_interpreter(self) -> None:
        ended = python("import sys, l3\nsys.kept = [l3.Dataset(sys.argv[1])]\n"
                       "sys.kept += sys.kept[0][1], iter(sys.kept[0])\n"
                       "next(sys.kept[2])\n", self.classes_set())
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))


class Errors(Sets):
    def test_no_set(self) -> None:
        with self.assertRaises(FileNotFoundError) as caught:
            l3.Dataset(self.folder / "none")
        self.assertIn("none", str(caught.exception))
        with self.assertRaises(OSError):
            l3.Dataset(self.folder)
        (self.folder / "index.json").write_text("{")
        with self.assertRaises(l3.Error) as wrong:
            l3.Dataset(self.folder)
        self.assertIn("index.json", str(wrong.exception))

    def test_broken_sample(self) -> None:
        data = l3.Dataset(self.broken_set("dogs/004.png"))
        sample = data["dogs/004.png"]
        with self.assertRaises(l3.SampleError) as caught:
            sample.decode()
        error = caught.exception
        self.assertEqual((error.sample, error.name), (sample.number, "dogs/004.png"))
        self.assertTrue(error.file and error.file.endswith(".l3s"))
        self.assertRegex(str(error), rf"^sample {sample.number} 'dogs/004.png' \(.*\.l3s, offset \d+\): the check")
        same = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(same), same.sample), (str(error), error.sample))
        data["dogs/002.png"].decode()

    def test_images_of_another_shard(self) -> None:
        """Two sets with samples of equal sizes: replaces the samples of one by those of the other."""
        rng = np.random.default_rng(3)
        sets = []
        for name in ("ours", "theirs"):
            for i in range(4):
                write_png(self.folder / f"{name}-png/{i}.png", rng.integers(0, 256, (30, 40, 3), np.uint8))
            convert(self.folder / f"{name}-png", self.folder / name)
            sets.append(self.folder / name / "shard-00000.l3s")
        ours, theirs = (bytearray(shard.read_bytes()) for shard in sets)
        end = int.from_bytes(ours[-48:-40], "little")
        self.assertEqual(end, int.from_bytes(theirs[-48:-40], "little"))
        ours[4096:end] = theirs[4096:end]
        sets[0].write_bytes(ours)

        def expect_refused(reason: str) -> None:
            data = l3.Dataset(sets[0])
            for sample in data:
                for read in (sample.decode, sample.bytes):
                    with self.assertRaisesRegex(l3.SampleError, reason):
                        read()
            for crop in ({}, {"crop": (8, 8)}):
                with l3.Loader(data, 2, on_error="skip", **crop) as loader:
                    self.assertEqual(list(loader), [])
                    self.assertEqual(loader.failure_count, 4)
                    for failure in loader.failures:
                        self.assertRegex(failure.reason, "the digest of an image differs from the index")

        expect_refused("the check of a sample does not match")
        # Even if the index has the checks of the wrong samples.
        for i in range(4):
            entry = end + 80 * i
            ours[entry + 32:entry + 36] = theirs[entry + 32:entry + 36]
        ours[-20:-16] = zlib.crc32(ours[end:-64]).to_bytes(4, "little")
        ours[-4:] = zlib.crc32(ours[-64:-4]).to_bytes(4, "little")
        sets[0].write_bytes(ours)
        expect_refused("the digest of an image differs from the index")


if __name__ == "__main__":
    unittest.main()
