"""Writing data sets."""

from __future__ import annotations

import filecmp
import io
import json
import pickle
import resource
import signal
import subprocess
import sys
import threading
import unittest
import warnings
from pathlib import Path
from typing import Any

import l3
import numpy as np
from support import L3_COMMAND, NEEDS_COMMAND, Folder, convert, picture, python, write_png

try:
    from PIL import Image
except ImportError:
    Image = None  # type: ignore[assignment]


def files_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def deep(number: int) -> np.ndarray:
    """An image for which the format has no default model."""
    return picture(number, channels=1, bits=16)


class Writers(Folder):
    def setUp(self) -> None:
        super().setUp()
        self.set = self.folder / "set"

    def writer(self, **options: Any) -> l3.DatasetWriter:
        return l3.DatasetWriter(self.set, **{"threads": 2, **options})

    def filled(self, count: int = 5, **options: Any) -> None:
        with self.writer(**options) as writer:
            for i in range(count):
                writer.write(picture(i))

    def test_round_trip(self) -> None:
        kinds = [dict(channels=channels, bits=bits) for channels in (1, 2, 3, 4) for bits in (8, 16)]
        with self.writer(classes=["cat", "dog"], shard_size=20_000, method="fast") as writer:
            self.assertFalse(writer.closed)
            for i in range(40):
                writer.write(picture(i, **kinds[i % 8]), label=i % 2 if i % 3 else ["cat", "dog"][i % 2],
                             name=f"ä/{i}.png", metadata={"number": i, "text": "Κίχλη"})
            self.assertEqual(writer.samples, 40)
        self.assertTrue(writer.closed)
        data = l3.Dataset(self.set)
        self.assertEqual((len(data), data.classes, data.roles), (40, ["cat", "dog"], ["image"]))
        self.assertGreater(data.shards, 2)
        for i, sample in enumerate(data):
            np.testing.assert_array_equal(sample.decode(), picture(i, **kinds[i % 8]))
            self.assertEqual((sample.name, sample.label, sample.group), (f"ä/{i}.png", i % 2, i))
            self.assertEqual(sample.metadata, {"number": i, "text": "Κίχλη"})
        self.assertEqual(files_in(self.set),
                         ["index.json", *(f"shard-{i:05}.l3s" for i in range(data.shards))])
        for shard in self.set.glob("*.l3s"):
            self.assertLessEqual(shard.stat().st_size, 20_000)

    def test_what_loaders_get(self) -> None:
        with self.writer() as writer:
            for i in range(12):
                writer.write(picture(i), label=i)
        with l3.Loader(self.set, batch_size=4, shuffle=False) as loader:
            batches = [(batch.images.copy(), batch.labels.tolist()) for batch in loader]
        self.assertEqual(sum((labels for _, labels in batches), []), list(range(12)))
        got = np.concatenate([images for images, _ in batches])
        np.testing.assert_array_equal(got, [picture(i).transpose(2, 0, 1) for i in range(12)])

    def test_groups(self) -> None:
        palette = np.arange(24, dtype=np.uint8).reshape(8, 3)
        with self.writer(shard_size=9000) as writer:
            for i in range(6):
                writer.write(picture(i), group=("street", i), label=i)
                writer.write(picture(i, channels=1) // 32, group=("street", i), role="labels", palette=palette)
                writer.write_bytes(f"text {i}".encode(), group=("street", i), role="caption", metadata=b"not JSON")
            writer.write(picture(9))
        data = l3.Dataset(self.set)
        self.assertEqual((data.groups, data.roles, len(data)), (7, ["image", "labels", "caption"], 19))
        self.assertGreater(data.shards, 1)
        for i in range(6):
            image, labels, caption = data.group(i)
            self.assertEqual([sample.label for sample in (image, labels, caption)], [i] * 3)
            self.assertEqual({sample.shard for sample in (image, labels, caption)}, {image.shard})
            np.testing.assert_array_equal(labels.decode()[:, :, 0], picture(i, channels=1)[:, :, 0] // 32)
            self.assertEqual((labels.colour, caption.is_image, caption.bytes()),
                             ("palette", False, f"text {i}".encode()))
            with self.assertRaises(ValueError):
                _ = caption.metadata
        with l3.Loader(self.set, batch_size=2, roles=["image", "labels"], samples=range(0, 18, 3)) as loader:
            self.assertEqual(next(iter(loader)).images["labels"].shape, (2, 1, 24, 32))

    def test_files_are_stored_as_they_are(self) -> None:
        files = [l3.encode(picture(i), effort=1, text={"Title": str(i)}) for i in range(4)]
        with self.writer() as writer:
            for i, file in enumerate(files):
                writer.write([bytes, bytearray, memoryview][i % 3](file))
        self.assertEqual([sample.bytes() for sample in l3.Dataset(self.set)], files)

    def test_sections(self) -> None:
        with self.writer() as writer:
            writer.write(picture(0), icc=b"", exif=b"II*\0" + bytes(9), text={"Title": "A"})
            writer.write(picture(1).transpose(2, 0, 1), layout="CHW", transparent=(1, 2, 3))
            writer.write(picture(2, bits=12, channels=1)[:, :, 0], bits=12)
        first, second, third = (l3.info(sample.bytes()) for sample in l3.Dataset(self.set))
        self.assertEqual((first.text, first.exif), ({"Title": "A"}, b"II*\0" + bytes(9)))
        self.assertEqual((second.shape, second.transparent, third.bits), ((24, 32, 3), (1, 2, 3), 12))

    def test_arrays_may_change_after_the_call(self) -> None:
        array = np.zeros((300, 300, 3), np.uint8)
        with self.writer(threads=1) as writer:
            for i in range(20):
                array[:] = i
                writer.write(array)
        for i, sample in enumerate(l3.Dataset(self.set)):
            self.assertEqual(np.unique(sample.decode()).tolist(), [i])

    def test_models(self) -> None:
        path = self.trained()
        model = l3.Model(path)
        convert(self.folder / "png", self.folder / "files", "--files", "--effort", "1", "--model", path)
        file = (self.folder / "files" / "000.l3").read_bytes()
        self.assertEqual(l3.info(file).model_name, model.name)
        with self.assertRaisesRegex(ValueError, "two models are for images of 1 channels and 16 bits"):
            self.writer(models=[model, model])
        with self.writer(models=model, effort=1) as writer:
            for i in range(30):
                writer.write(deep(i))
            writer.write(file)
        data = l3.Dataset(self.set)
        self.assertTrue(any(l3.info(sample.bytes()).model_name == model.name for sample in data[:-1]))
        for i in (0, 29):
            np.testing.assert_array_equal(data[i].decode(), deep(i))
        np.testing.assert_array_equal(data[-1].decode(), deep(0))
        with self.assertRaisesRegex(l3.SampleError, "sample 0 'x'.*" + model.name):
            with self.writer(overwrite=True) as writer:
                writer.write(file, name="x")
        self.assertEqual(len(l3.Dataset(self.set)), 31)

    def trained(self) -> str:
        if not L3_COMMAND:
            self.skipTest(NEEDS_COMMAND)
        for i in range(30):
            write_png(self.folder / "png" / f"{i:03}.png", deep(i))
        path = str(self.folder / "small.l3model")
        subprocess.run([L3_COMMAND, "train", "-q", str(self.folder / "png"), path], check=True)
        return path

    # ------------------------------------------------------------------------------------------------- like l3 convert

    def assert_same_sets(self, other: Path) -> None:
        self.assertEqual(files_in(self.set), files_in(other))
        names = files_in(other)
        self.assertEqual(filecmp.cmpfiles(self.set, other, names, shallow=False), (names, [], []))

    def test_same_bytes_as_the_command(self) -> None:
        if not L3_COMMAND:
            self.skipTest(NEEDS_COMMAND)
        png = self.folder / "png"
        images = {f"{'cats' if i % 2 else 'dogs'}/{i:03}.png": picture(i, channels=1 + i % 4, bits=8 + 8 * (i % 3 > 1))
                  for i in range(40)}
        for name, pixels in images.items():
            write_png(png / name, pixels)
        for number, (options, words) in enumerate((
            ({}, []),
            ({"method": "fast", "tile": 64}, ["--method", "fast", "--tile", "64"]),
            ({"effort": 1, "shard_size": 16_000}, ["--effort", "1", "--shard-size", "16K"]),
        )):
            with self.subTest(options=options):
                other = self.folder / f"other{number}"
                convert(png, other, "--shared-model", "off", *words)
                with self.writer(overwrite=True, classes=["cats", "dogs"], **options) as writer:
                    for name in sorted(images):
                        writer.write(images[name], name=name, label=name.split("/")[0])
                self.assert_same_sets(other)

    def test_same_bytes_with_a_model(self) -> None:
        path = self.trained()
        convert(self.folder / "png", self.folder / "other", "--model", path, "--shared-model", "off")
        with self.writer(models=[l3.Model(path)]) as writer:
            for i in range(30):
                writer.write(deep(i), name=f"{i:03}.png")
        self.assert_same_sets(self.folder / "other")
        self.assertEqual(l3.info(l3.Dataset(self.set)[0].bytes()).model_name, l3.Model(path).name)

    def test_same_bytes_of_pillow_images(self) -> None:
        if Image is None or not L3_COMMAND:
            self.skipTest("needs Pillow and the command")
        png = self.folder / "png"
        png.mkdir()
        for i in range(4):
            Image.fromarray(picture(i)).save(png / f"{i}.png")
        Image.fromarray(picture(5, height=64)).quantize(200).save(png / "p.png")
        Image.fromarray(picture(6, channels=1, bits=16)[:, :, 0]).save(png / "s.png")
        convert(png, self.folder / "other", "--shared-model", "off")
        with self.writer() as writer:
            for path in sorted(png.iterdir()):
                writer.write(Image.open(path), name=path.name)
        self.assert_same_sets(self.folder / "other")

    # ------------------------------------------------------------------------------------------------- wrong arguments

    def test_wrong_arguments_leave_the_writer_usable(self) -> None:
        image = picture(0)
        with self.writer(classes=["cat", "dog"]) as writer:
            writer.write(image, name="a")
            writer.write(image, group=1, label=0)
            for wrong, kind, says in (
                ((image, dict(name="a")), ValueError, "sample 2 'a': another sample has this name"),
                ((image, dict(name="")), ValueError, "sample 2 '': a name must have"),
                ((image, dict(name="a/../b")), ValueError, "a name must have"),
                ((image, dict(name=b"a")), TypeError, "must be a str"),
                ((image, dict(label="cow")), ValueError, "label is 'cow', but classes=.*lacks it"),
                ((image, dict(label=2)), ValueError, "label is 2, but must be from 0 to 1"),
                ((image, dict(label=1.0)), TypeError, "whole number"),
                ((image, dict(role="a/b")), ValueError, "a role must have"),
                ((image, dict(role=3)), TypeError, "role is 3"),
                ((image, dict(group=1)), ValueError, "role is 'image', but the group 1 has such a sample"),
                ((image, dict(group=1, role="b", label=1)), ValueError, "label is 1, but the group 1 has the label 0"),
                ((image, dict(metadata={1, 2})), TypeError, "sample 2 '00000002': .*set"),
                ((image, dict(metadata=float("nan"))), ValueError, "sample 2"),
                ((image, dict(quality=3)), TypeError, "write has no option 'quality', but has 'layout'"),
                ((image.astype(np.float32), {}), TypeError, "sample 2 '00000002': array has dtype float32"),
                ((np.zeros((2, 2, 5), np.uint8), {}), ValueError, "has shape"),
                (("a.png", {}), TypeError, "image is a path"),
                ((b"\xff\xd8\xff\xe0", {}), ValueError, "image is a JPEG file: decode it first"),
                ((b"\x8bL3I", dict(bits=8)), ValueError, "bits is for arrays"),
                ((b"\x89PNG\r\n\x1a\n", dict(bits=8)), ValueError, "bits is for arrays"),
                ((b"what is this", {}), l3.SampleError, "sample 2 '00000002'.*not an image in a known format"),
                ((b"\x8bL3I", {}), l3.SampleError, "sample 2 '00000002'"),
                ((b"", {}), l3.SampleError, "sample 2 '00000002'.*the file is empty"),
            ):
                with self.subTest(says=says), self.assertRaisesRegex(kind, says):
                    writer.write(wrong[0], **wrong[1])
            with self.assertRaisesRegex(TypeError, "data is str"):
                writer.write_bytes("text", role="caption")  # type: ignore[arg-type]
            writer.write(image, group=2)
            with self.assertRaisesRegex(ValueError, "group is 1, but samples of other groups came after"):
                writer.write(image, group=1, role="labels")
            writer.write(image)
        self.assertEqual(list(l3.Dataset(self.set).names), ["a", "00000001", "00000002", "00000003"])

    def test_wrong_options(self) -> None:
        for options, kind, says in (
            (dict(method="best"), ValueError, "method is 'best'"), (dict(effort=10), ValueError, "effort is 10"),
            (dict(shard_size=0), ValueError, "shard_size is 0"), (dict(threads=-1), ValueError, "threads is -1"),
            (dict(classes="cats"), TypeError, "classes is 'cats'"), (dict(classes=["a", "a"]), ValueError, "'a'"),
            (dict(models=["a.l3model"]), TypeError, "models has str"), (dict(overwrite=1), TypeError, "overwrite"),
        ):
            with self.subTest(options=options), self.assertRaisesRegex(kind, says):
                self.writer(**options)
        with self.assertRaisesRegex(ValueError, "l3 upload"):
            l3.DatasetWriter("s3://bucket/set")
        self.assertEqual(files_in(self.folder), [])

    def test_labels_need_names(self) -> None:
        with self.writer() as writer:
            with self.assertRaisesRegex(ValueError, "classes= is not given"):
                writer.write(picture(0), label="cat")

    # ---------------------------------------------------------------------------------------- nothing half is ever left

    def test_an_exception_leaves_nothing(self) -> None:
        with self.assertRaises(ZeroDivisionError), self.writer(shard_size=2000) as writer:
            for i in range(10):
                writer.write(picture(i))
            raise ZeroDivisionError
        self.assertTrue(writer.closed)
        self.assertEqual(files_in(self.folder), [])

    def test_the_old_set_stays_until_the_end(self) -> None:
        self.filled(7, shard_size=2000)
        before = {name: (self.set / name).read_bytes() for name in files_in(self.set)}
        self.assertGreater(len(before), 3)
        with self.assertRaisesRegex(FileExistsError, "contains a data set already; .*overwrite=True"):
            self.writer()
        with self.assertRaises(ZeroDivisionError), self.writer(overwrite=True) as writer:
            writer.write(picture(3))
            raise ZeroDivisionError
        self.assertEqual(before, {name: (self.set / name).read_bytes() for name in files_in(self.set)})
        (self.set / "notes.txt").write_text("keep me")
        (self.set / "errors.tsv").write_text("of the old data set")
        with self.writer(overwrite=True) as writer:
            writer.write(picture(3))
            self.assertEqual(len(l3.Dataset(self.set)), 7)
        self.assertEqual(files_in(self.set), ["index.json", "notes.txt", "shard-00000.l3s"])
        np.testing.assert_array_equal(l3.Dataset(self.set)[0].decode(), picture(3))

    def test_folders_of_others(self) -> None:
        self.set.mkdir()
        (self.set / "notes.txt").write_text("keep me")
        with self.assertRaisesRegex(FileExistsError, "other files, such as notes.txt"):
            self.writer()
        self.assertEqual(files_in(self.set), ["notes.txt"])
        (self.set / "notes.txt").rename(self.set / "shard-00000.l3s")
        with self.assertRaisesRegex(FileExistsError, "without an index"):
            self.writer()
        (self.folder / "file").write_text("a file")
        with self.assertRaises(OSError):
            l3.DatasetWriter(self.folder / "file")

    def test_two_at_once(self) -> None:
        with self.writer() as writer:
            for _ in range(2):
                with self.assertRaisesRegex(FileExistsError, "is writing to this folder"):
                    self.writer(overwrite=True)
            if L3_COMMAND:
                write_png(self.folder / "png" / "a.png", picture(0))
                ran = subprocess.run([L3_COMMAND, "convert", str(self.folder / "png"), str(self.set)],
                                     capture_output=True, text=True)
                self.assertIn("is writing to this folder", ran.stderr)
            writer.write(picture(0))
        self.assertEqual(len(l3.Dataset(self.set)), 1)

    def test_after_a_kill(self) -> None:
        code = ("import l3, os, numpy as np\n"
                "writer = l3.DatasetWriter('set', threads=1, shard_size=3000, method='fast')\n"
                "random = np.random.default_rng(0)\n"
                "for i in range(99): writer.write(random.integers(0, 256, (24, 32, 3), np.uint8))\n"
                "os.kill(os.getpid(), 9)\n")
        self.assertEqual(python(code, cwd=self.folder).returncode, -signal.SIGKILL)
        left = files_in(self.set)
        self.assertIn(".l3-convert/shard-00001.l3s", left)
        self.assertNotIn("index.json", left)
        with self.assertRaisesRegex(FileNotFoundError, "an unfinished one"):
            l3.Dataset(self.set)
        self.filled()
        self.assertEqual(files_in(self.set), ["index.json", "shard-00000.l3s"])

    def test_the_command_after_a_kill(self) -> None:
        if not L3_COMMAND:
            self.skipTest(NEEDS_COMMAND)
        (self.set / ".l3-convert").mkdir(parents=True)
        (self.set / ".l3-convert" / "shard-00000.l3s").write_bytes(b"rest")
        write_png(self.folder / "png" / "a.png", picture(0))
        convert(self.folder / "png", self.set)
        self.assertEqual(files_in(self.set), ["index.json", "shard-00000.l3s"])

    def test_an_unfinished_set_of_the_command(self) -> None:
        (self.set / ".l3-convert").mkdir(parents=True)
        (self.set / ".l3-convert" / "state").write_bytes(b"state")
        with self.assertRaisesRegex(FileExistsError, "unfinished data set of l3 convert"):
            self.writer()
        self.assertEqual((self.set / ".l3-convert" / "state").read_bytes(), b"state")
        self.filled(overwrite=True)
        self.assertEqual(files_in(self.set), ["index.json", "shard-00000.l3s"])

    def test_damaged_file(self) -> None:
        whole = bytearray(l3.encode(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)))
        whole[-9] ^= 1
        with self.assertRaisesRegex(l3.SampleError, "sample 1 'bad': ") as caught:
            with self.writer() as writer:
                writer.write(picture(0))
                writer.write(bytes(whole), name="bad")
        self.assertEqual((caught.exception.sample, caught.exception.name), (1, "bad"))
        self.assertEqual(files_in(self.folder), [])

    def test_a_failure_stays(self) -> None:
        writer = self.writer()
        writer.write(np.full((40, 40), 5000, np.uint16), bits=12, name="too bright")
        for _ in range(2):
            with self.assertRaisesRegex(l3.SampleError, "sample 0 'too bright'"):
                for _ in range(1000):
                    writer.write(picture(0))
        with self.assertRaisesRegex(l3.SampleError, "sample 0 'too bright'"):
            writer.close()
        writer.close()
        self.assertEqual(files_in(self.folder), [])

    def test_full_disk(self) -> None:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))
        try:
            with self.assertRaises(OSError) as caught, self.writer() as writer:
                noise = np.random.default_rng(0)
                for _ in range(100):
                    writer.write(noise.integers(0, 256, (100, 100, 3), np.uint8))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        self.assertIn("shard-00000.l3s", str(caught.exception.filename))
        self.assertEqual(files_in(self.folder), [])

    # A shell that starts a job in the background makes it ignore SIGINT, and Python then installs no handler.
    def test_interrupt(self) -> None:
        code = ("import l3, os, signal, threading, numpy as np\n"
                "image = np.random.default_rng(0).integers(0, 256, (500, 500, 3), np.uint8)\n"
                "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                "try:\n"
                "    with l3.DatasetWriter('set', threads=1, effort=9) as writer:\n"
                "        while True: writer.write(image)\n"
                "except KeyboardInterrupt:\n"
                "    print(os.listdir('.'))\n")
        self.assertEqual(python(code, cwd=self.folder).stdout, "[]\n")

    def test_interrupt_while_closing(self) -> None:
        code = ("import l3, os, signal, threading, numpy as np\n"
                "image = np.random.default_rng(0).integers(0, 256, (700, 700, 3), np.uint8)\n"
                "writer = l3.DatasetWriter('set', threads=1, effort=9)\n"
                "for i in range(60): writer.write(image)\n"
                "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                "try:\n"
                "    writer.close()\n"
                "except KeyboardInterrupt:\n"
                "    print(writer.closed, os.listdir('.'))\n")
        self.assertEqual(python(code, cwd=self.folder).stdout, "True []\n")

    # ------------------------------------------------------------------------------------------------------------ lives

    def test_closing(self) -> None:
        writer = self.writer()
        writer.write(picture(0))
        writer.close()
        writer.close()
        writer.abort()
        self.assertEqual((writer.samples, writer.closed), (1, True))
        for call in (lambda: writer.write(picture(0)), lambda: writer.write_bytes(b"a", role="b")):
            with self.assertRaisesRegex(ValueError, "the writer is closed"):
                call()
        self.assertEqual(len(l3.Dataset(self.set)), 1)

    def test_abort(self) -> None:
        with self.writer() as writer:
            writer.write(picture(0))
            writer.abort()
        self.assertEqual(files_in(self.folder), [])

    def test_no_samples(self) -> None:
        self.filled(0)
        self.assertEqual((len(l3.Dataset(self.set)), files_in(self.set)), (0, ["index.json"]))

    def test_forgotten(self) -> None:
        writer = self.writer()
        writer.write(picture(0))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del writer
        self.assertEqual([each.category for each in caught], [ResourceWarning])
        caught.clear()  # a recorded warning keeps its writer
        self.assertEqual(files_in(self.folder), [])
        code = "import l3\nwriter = l3.DatasetWriter('set')\nwriter.write_bytes(b'a', role='b')\n"
        self.assertEqual(python(code, cwd=self.folder).returncode, 0)
        self.assertEqual(files_in(self.folder), [])

    def test_fork(self) -> None:
        code = ("import l3, os, sys, numpy as np\n"
                "writer = l3.DatasetWriter('set', threads=2)\n"
                "writer.write(np.zeros((9, 9), np.uint8))\n"
                "child = os.fork()\n"
                "if child == 0:\n"
                "    for call in (lambda: writer.write(np.zeros((9, 9), np.uint8)), writer.close):\n"
                "        try:\n"
                "            call()\n"
                "        except RuntimeError as error:\n"
                "            print(error, flush=True)\n"
                "    writer.abort()\n"
                "    sys.exit(3)\n"
                "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3\n"
                "writer.write(np.zeros((9, 9), np.uint8))\n"
                "writer.close()\n"
                "print(len(l3.Dataset('set')))\n")
        ran = python(code, cwd=self.folder)
        says = "a DatasetWriter does not survive a fork: make it in the process that uses it\n"
        self.assertEqual((ran.stdout, ran.returncode), (says * 2 + "2\n", 0), ran.stderr)

    def test_pickle(self) -> None:
        with self.writer() as writer, self.assertRaisesRegex(TypeError, "cannot be pickled"):
            pickle.dumps(writer)

    def test_several_threads(self) -> None:
        with self.writer() as writer:
            def fill(first: int) -> None:
                for i in range(first, first + 50):
                    writer.write(picture(i), name=str(i), group=i)
            threads = [threading.Thread(target=fill, args=(first,)) for first in range(0, 200, 50)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        data = l3.Dataset(self.set)
        self.assertEqual(sorted(map(int, data.names)), list(range(200)))
        for first in range(0, 200, 50):  # each thread's samples keep their order
            numbers = [int(name) for name in data.names if first <= int(name) < first + 50]
            self.assertEqual(numbers, list(range(first, first + 50)))
        for sample in data:
            np.testing.assert_array_equal(sample.decode(), picture(int(sample.name)))

    def test_memory_is_bounded(self) -> None:
        code = ("import l3, re, numpy as np\n"
                "image = np.zeros((4000, 4000, 3), np.uint8)\n"
                "with l3.DatasetWriter('set', threads=1, method='fast') as writer:\n"
                "    for i in range(24):\n"
                "        image[:] = i\n"
                "        writer.write(image)\n"
                "print(re.search('VmHWM: *([0-9]+)', open('/proc/self/status').read().replace('\\t', ' '))[1])\n")
        # (Not ru_maxrss, which counts what this process had when it started the other one.)
        ran = python(code, cwd=self.folder)
        self.assertLess(int(ran.stdout), 700_000, ran.stderr)  # KiB; all images have 1.1 million

    def test_the_bytes_do_not_depend_on_threads(self) -> None:
        for threads in (1, 7):
            with l3.DatasetWriter(self.folder / str(threads), threads=threads, shard_size=10_000) as writer:
                for i in range(60):
                    writer.write(picture(i, height=8 + i))
        self.set = self.folder / "1"
        self.assert_same_sets(self.folder / "7")

    def test_verified_by_the_command(self) -> None:
        if not L3_COMMAND:
            self.skipTest(NEEDS_COMMAND)
        with self.writer(classes=["a"], verify=False) as writer:
            writer.write(picture(0), label="a", group=0)
            writer.write_bytes(json.dumps({"a": 1}).encode(), group=0, role="json")
        subprocess.run([L3_COMMAND, "verify", "-q", str(self.set)], check=True)

    def test_pillow_images(self) -> None:
        if Image is None:
            self.skipTest("needs Pillow")
        stream = io.BytesIO()
        Image.fromarray(picture(0)).save(stream, "PNG")
        with self.writer() as writer:
            writer.write(Image.open(io.BytesIO(stream.getvalue())))
            with self.assertRaisesRegex(ValueError, "sample 1 '00000001': .* Pillow's mode 'CMYK'"):
                writer.write(Image.new("CMYK", (4, 4)))
        np.testing.assert_array_equal(l3.Dataset(self.set)[0].decode(), picture(0))


if __name__ == "__main__":
    sys.exit(unittest.main())
