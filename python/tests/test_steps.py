"""What a loader does to images: sizes, boxes, padding, turns, colours, and batches of images of any size."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import time
import unittest
from pathlib import Path
from typing import Any

import l3
import numpy as np
from support import Sets, picture, write_png

SIZES = [(24, 32), (40, 20), (33, 33), (17, 60), (50, 48)]  # height, width


def exif(orientation: int) -> bytes:
    return b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0" + bytes([orientation, 0, 0, 0]) + bytes(4)


def upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    turned = {1: pixels, 2: pixels[:, ::-1], 3: pixels[::-1, ::-1], 4: pixels[::-1], 5: pixels.swapaxes(0, 1),
              6: np.rot90(pixels, 3), 7: np.rot90(pixels, 2).swapaxes(0, 1), 8: np.rot90(pixels)}
    return turned[orientation]


def nearest(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    def places(size: int, wanted: int) -> np.ndarray:
        scale = np.float32(size) / np.float32(wanted)
        return np.minimum(np.floor(np.arange(wanted, dtype=np.float32) * scale).astype(int), size - 1)
    return pixels[places(pixels.shape[0], height)][:, places(pixels.shape[1], width)]


def follow(pixels: np.ndarray, told: l3.Explanation) -> np.ndarray:
    """Does with nearest interpolation what an explanation says."""
    x, y, width, height = told.box
    found = nearest(upright(pixels, told.orientation)[y:y + height, x:x + width], *told.resized)
    x, y, width, height = told.crop
    found = found[y:y + height, x:x + width]
    found = found[::-1 if told.flip_vertical else 1, ::-1 if told.flip else 1]
    return np.rot90(found, told.turns)


class Mixed(Sets):
    """A data set of images of several sizes, with the pixels beside it."""

    COUNT = 20

    def mixed(self) -> str:
        def draw(png: Path) -> list[str]:
            for i in range(self.COUNT):
                write_png(png / ("cats" if i % 2 else "dogs") / f"{i:03}.png", self.pixels(i))
            return ["--shard-size", "16K"]
        return self._make("mixed", draw)

    @staticmethod
    def pixels(i: int) -> np.ndarray:
        height, width = SIZES[i % len(SIZES)]
        return picture(i, height, width)


class Geometry(Mixed):
    def test_explains_what_it_did(self) -> None:
        for how in ({"random_resized_crop": 16, "flip": True}, {"resize": (20, 30), "crop": (10, 12), "rotate90": 1},
                    {"resize": 20, "crop": 20, "flip": True, "flip_vertical": True, "rotate90": True},
                    {"resize": (9, 9), "boxes": [(i % 5, i % 3, 10, 11) for i in range(self.COUNT)]},
                    {"random_resized_crop": (31, 7), "scale": (0.5, 1), "ratio": (1, 1)}):
            with self.subTest(how=how), l3.Loader(self.mixed(), 4, layout="HWC", interpolation="nearest", seed=3,
                                                  **how) as loader:
                for epoch in range(2):
                    for images, _, ids in loader:
                        for image, i in zip(images, ids):  # noqa: B905 (Python 3.9)
                            told = loader.explain(int(i), epoch)
                            self.assertEqual(told.size, image.shape[:2])
                            np.testing.assert_array_equal(image, follow(loader.data[int(i)].decode(), told))
                            self.assertEqual(told, loader.explain(loader.data[int(i)].name, epoch))

    def test_choices_depend_on_nothing_else(self) -> None:
        how: dict[str, Any] = {"random_resized_crop": 12, "flip": True, "brightness": 0.3, "seed": 9}
        with l3.Loader(self.mixed(), 20, **how) as one:
            whole = {int(i): image for images, _, ids in one for image, i in zip(images, ids)}  # noqa: B905
            told = [one.explain(i, 0) for i in range(self.COUNT)]
            self.assertNotEqual(told, [one.explain(i, 1) for i in range(self.COUNT)])
        seen = 0
        for rank in range(3):
            with l3.Loader(self.mixed(), 3, rank=rank, world_size=3, threads=1, shuffle="windows",
                           last_batch="uneven", **how) as loader:
                self.assertEqual(told, [loader.explain(i, 0) for i in range(self.COUNT)])
                for images, _, ids in loader:
                    for image, i in zip(images, ids):  # noqa: B905 (Python 3.9)
                        np.testing.assert_array_equal(image, whole[int(i)])
                        seen += 1
        self.assertEqual(seen, self.COUNT)

    def test_orients(self) -> None:
        pixels = [picture(i, 20, 31) for i in range(9)]

        def draw(folder: Path) -> list[str]:
            folder.mkdir(parents=True)
            for i, image in enumerate(pixels):
                l3.encode(image, folder / f"{i}.l3", **({"exif": exif(i)} if i else {}))
                l3_to_png(folder / f"{i}.l3")
            return []
        with l3.Loader(self._make("oriented", draw), 3, orient=True, batch="stack", crop=(18, 17), crop_mode="centre",
                       layout="HWC") as loader:
            for images, _, ids in loader:
                for image, i in zip(images, ids):  # noqa: B905 (Python 3.9)
                    number = int(Path(loader.data[int(i)].name).stem)
                    told = loader.explain(int(i))
                    self.assertEqual(told.orientation, number or 1)
                    np.testing.assert_array_equal(image, follow(pixels[number], told))
        with self.assertRaisesRegex(ValueError, "only its file says.*l3 convert --orient"):
            l3.Loader(self._make("oriented", draw), 3, orient=True)
        # Lists have room for both ways.
        with l3.Loader(self._make("oriented", draw), 9, orient=True, batch="list", layout="HWC", resize=10,
                       interpolation="nearest", rotate90=1) as loader:
            images, _, ids = batch = next(iter(loader))
            for image, i, size in zip(images, ids, batch.sizes):  # noqa: B905 (Python 3.9)
                number = int(Path(loader.data[int(i)].name).stem)
                np.testing.assert_array_equal(image, follow(pixels[number], loader.explain(int(i), 0)))
                self.assertEqual(tuple(size), image.shape[:2])

    def test_orientations_that_decide_whether_an_image_fits(self) -> None:
        """A crop that fits only images that lie on their side. Those that do not, fail."""
        pixels = [picture(i, 30, 60) for i in range(6)]

        def draw(folder: Path) -> list[str]:
            folder.mkdir(parents=True)
            for i, image in enumerate(pixels):
                l3.encode(image, folder / f"{i}.l3", **({"exif": exif(6)} if i % 3 else {}))  # type: ignore[arg-type]
                l3_to_png(folder / f"{i}.l3")
            return []
        for batching in ("list", "pad", "stack"):
            for how in ({"crop": (50, 25)}, {"boxes": [[2, 5, 25, 50]] * 6}, {"pad": (70, 40), "crop": (60, 30)}):
                options: dict[str, Any] = {"orient": True, "batch": batching, "layout": "HWC", "shuffle": False, **how}
                with self.subTest(**options):
                    with l3.Loader(self._make("lying", draw), 6, on_error="skip", **options) as loader:
                        images, _, ids = batch = next(iter(loader))
                        self.assertEqual((ids.tolist(), batch.failed), ([1, 2, 4, 5], 2))
                        for image, i in zip(images, ids):  # noqa: B905 (Python 3.9)
                            told = loader.explain(int(i), 0)
                            self.assertEqual(told.size, image.shape[:2])
                            expected = follow(pixels[i], told)
                            top, left = told.padding[::-1]
                            inside = image[top:top + expected.shape[0], left:left + expected.shape[1]]
                            np.testing.assert_array_equal(inside, expected)
                    with l3.Loader(self._make("lying", draw), 1, **options) as loader:
                        loop = iter(loader)
                        with self.assertRaisesRegex(l3.SampleError, "0.png"):
                            next(loop)
                        next(loop)

    def test_sizes_that_no_image_may_have(self) -> None:
        def draw(folder: Path) -> list[str]:
            write_png(folder / "thin.png", np.zeros((1, 65536, 1), np.uint8))
            return []
        for how in ({"resize": 65536}, {"resize": 65537, "crop": 16}, {"resize": 2**20}):
            with self.subTest(**how), self.assertRaisesRegex(ValueError, "larger than 2.20 pixels along an edge"):
                l3.Loader(self._make("thin", draw), 1, **how)
        with self.assertRaisesRegex(ValueError, "which become 32 x 24: random turns .* batch='list'"):
            l3.Loader(self.classes_set(), 4, rotate90=True)
        with l3.Loader(self._make("thin", draw), 2**19, batch="pad", pad_multiple=2**20, dtype="int64",
                       last_batch="pad") as loader, self.assertRaisesRegex(l3.Error, "larger than 2.40 bytes"):
            next(iter(loader))

    def test_orientations_that_disagree(self) -> None:
        """An image that says how it lies, and a mask that does not."""
        def draw(folder: Path) -> list[str]:
            for i in range(4):
                for role in ("image", "mask"):
                    (folder / role).mkdir(parents=True, exist_ok=True)
                    with_exif = {"exif": exif(3)} if i == 2 and role == "image" else {}
                    l3.encode(picture(i, 20, 31), folder / role / f"{i}.l3", **with_exif)  # type: ignore[arg-type]
                    l3_to_png(folder / role / f"{i}.l3")
            return ["--pair", "image=image/{}.png", "--pair", "mask=mask/{}.png"]
        path = self._make("disagreeing", draw)
        with l3.Loader(path, 2, orient=True, roles=["image", "mask"], shuffle=False, crop=9) as loader:
            next(loop := iter(loader))
            with self.assertRaisesRegex(l3.SampleError, "EXIF orientation is 1, that of the first image .* 3: leave"):
                next(loop)
        with l3.Loader(path, 4, orient=True, roles=["image", "mask"], shuffle=False, batch="list",
                       on_error="skip") as loader:
            batch = next(iter(loader))
            self.assertEqual((len(batch.ids), batch.failed, len(batch.sizes["mask"])), (3, 1, 3))
        with l3.Loader(path, 4, roles=["image", "mask"]) as loader:
            next(iter(loader))

    def test_pads(self) -> None:
        with l3.Loader(self.mixed(), 5, pad=(64, 70), pad_value=[1, 2, 3], layout="HWC", shuffle=False) as loader:
            for images, _, ids in loader:
                for image, i in zip(images, ids):  # noqa: B905 (Python 3.9)
                    whole = loader.data[int(i)].decode()
                    top, left = (64 - whole.shape[0]) // 2, (70 - whole.shape[1]) // 2
                    expected = np.tile(np.array([1, 2, 3], np.uint8), (64, 70, 1))
                    expected[top:top + whole.shape[0], left:left + whole.shape[1]] = whole
                    np.testing.assert_array_equal(image, expected)
        for mode, name in (("edge", "edge"), ("reflect", "reflect")):
            with l3.Loader(self.mixed(), 5, pad=70, pad_mode=mode, layout="HWC", dtype="float32") as loader:
                batch = next(iter(loader))
                for image, i in zip(batch.images, batch.ids):  # noqa: B905 (Python 3.9)
                    whole = loader.data[int(i)].decode(dtype="float32")
                    top, left = (70 - whole.shape[0]) // 2, (70 - whole.shape[1]) // 2
                    rest = ((top, 70 - whole.shape[0] - top), (left, 70 - whole.shape[1] - left), (0, 0))
                    np.testing.assert_allclose(image, np.pad(whole, rest, mode=name), atol=1e-6)
        with l3.Loader(self.mixed(), 5, letterbox=(32, 48), dtype="float32", mean=0.5, std=0.5,
                       pad_value="mean") as loader:
            for images, _, ids in loader:
                for image, i in zip(images, ids):  # noqa: B905 (Python 3.9)
                    height, width = loader.explain(int(i)).resized
                    self.assertTrue((height, width)[int(width * 32 < height * 48) - 1] in (32, 48))
                    self.assertEqual(np.abs(image[:, 0, 0]).max() < 1e-6, (height, width) != (32, 48))

    def test_groups_share_the_geometry(self) -> None:
        with l3.Loader(self.pairs_set(), 3, roles=["image", "labels"], random_resized_crop=14, flip=True,
                       dtype={"labels": "int64"}, layout="HWC", batch="stack") as loader:
            for images, _, ids in loader:
                self.assertEqual(images["labels"].dtype, np.int64)
                for image, labels, i in zip(images["image"], images["labels"], ids):  # noqa: B905 (Python 3.9)
                    told = loader.explain(int(i))
                    group = [one for one in loader.data if one.group == loader.data[int(i)].group]
                    whole = next(one.decode() for one in group if one.role == "labels")
                    np.testing.assert_array_equal(labels, follow(whole, told))
                    self.assertEqual(image.shape, (14, 14, 3))


class Colours(Mixed):
    def test_of_all_kinds(self) -> None:
        rng = np.random.default_rng(1)
        kinds = {"gray": (12, 9, 1), "rgb": (12, 9, 3), "rgba": (12, 9, 4), "both": (12, 9, 2)}
        pixels = {name: rng.integers(0, 256, shape, np.uint8) for name, shape in kinds.items()}

        def draw(folder: Path) -> list[str]:
            for name, image in pixels.items():
                if name != "both":
                    write_png(folder / f"{name}.png", image)
            return []
        path = self._make("kinds", draw)
        with self.assertRaisesRegex(ValueError, "channels.*write channels='rgb'"):
            l3.Loader(path, 3)
        for images, _, ids in l3.Loader(path, 3, channels="rgb", alpha="drop", layout="HWC"):
            for image, i in zip(images, ids):  # noqa: B905 (Python 3.9)
                whole = pixels[Path(l3.Dataset(path)[int(i)].name).stem]
                np.testing.assert_array_equal(image, np.repeat(whole, 3, 2) if whole.shape[2] == 1 else whole[..., :3])
        for images, _, ids in l3.Loader(path, 3, channels="gray", alpha="blend", background=255, dtype="float32"):
            for image, i in zip(images, ids):  # noqa: B905 (Python 3.9)
                whole = pixels[Path(l3.Dataset(path)[int(i)].name).stem].astype(float)
                if whole.shape[2] == 4:
                    alpha = whole[..., 3:] / 255
                    whole = np.round(whole[..., :3] * alpha + 255 * (1 - alpha))
                gray = whole[..., 0] if whole.shape[2] == 1 else whole @ [0.299, 0.587, 0.114]
                np.testing.assert_allclose(image[0], gray / 255, atol=1e-5)

    def test_bits(self) -> None:
        with l3.Loader(self.pairs_set(), 10, roles=["image"], bits=8, layout="HWC", shuffle=False) as loader:
            images = next(iter(loader)).images["image"]
            for i in range(10):
                expected = np.rint(picture(i, bits=16) * (255 / 65535)).astype(np.uint8)
                np.testing.assert_array_equal(images[i], expected)
        for dtype in ("int32", "int64", "uint16"):
            with l3.Loader(self.pairs_set(), 10, roles=["image"], dtype=dtype, layout="HWC", shuffle=False) as loader:
                np.testing.assert_array_equal(next(iter(loader)).images["image"][3], picture(3, bits=16))

    def test_change_at_random(self) -> None:
        how: dict[str, Any] = {"dtype": "float32", "brightness": 0.5, "contrast": 0.5, "saturation": 0.5, "hue": 0.2}
        with l3.Loader(self.classes_set(), 8, **how) as loader:
            batch = next(iter(loader))
            for image, i in zip(batch.images, batch.ids):  # noqa: B905 (Python 3.9)
                told, whole = loader.explain(int(i)), loader.data[int(i)].decode(dtype="float32", layout="CHW")
                self.assertTrue(0.5 <= told.brightness <= 1.5 and 0.5 <= told.contrast <= 1.5 and abs(told.hue) <= 0.2)
                expected = (whole * told.brightness - 0.5) * told.contrast + 0.5
                # Neither saturation nor hue change the brightness.
                luma = np.array([0.299, 0.587, 0.114])
                inside = np.all((image > 0) & (image < 1), axis=0)
                self.assertGreater(inside.sum(), 0)
                np.testing.assert_allclose(np.tensordot(luma, image, 1)[inside],
                                           np.tensordot(luma, expected, 1)[inside], atol=2e-3)


class Batches(Mixed):
    def test_lists(self) -> None:
        for dtype in (None, "float16"):
            with l3.Loader(self.mixed(), 6, batch="list", layout="HWC", dtype=dtype) as loader:
                for batch in loader:
                    self.assertEqual(len(batch.images), len(batch.ids))
                    for image, size, i in zip(batch.images, batch.sizes, batch.ids):  # noqa: B905 (Python 3.9)
                        np.testing.assert_array_equal(image, loader.data[int(i)].decode(dtype=dtype))
                        self.assertEqual(image.shape[:2], tuple(size))
        kept = [image for batch in l3.Loader(self.mixed(), 6, batch="list") for image in batch.images]
        self.assertEqual(len(kept), self.COUNT)  # they outlive their batches and the loader
        self.assertEqual(sum(int(image.sum()) for image in kept),
                         sum(int(self.pixels(i).sum()) for i in range(self.COUNT)))

    def test_pads_to_the_largest(self) -> None:
        with l3.Loader(self.mixed(), 6, batch="pad", pad_multiple=16, pad_value=7, layout="HWC") as loader:
            for batch in loader:
                height, width = batch.sizes.max(axis=0)
                self.assertEqual(batch.images.shape[1:3], (-(-height // 16) * 16, -(-width // 16) * 16))
                for image, (height, width), i in zip(batch.images, batch.sizes, batch.ids):  # noqa: B905
                    np.testing.assert_array_equal(image[:height, :width], loader.data[int(i)].decode())
                    self.assertTrue((image[height:] == 7).all() and (image[:, width:] == 7).all())

    def test_buckets(self) -> None:
        def padding(**how: Any) -> tuple[float, list[int]]:
            added, order = 0, []
            for batch in l3.Loader(self.mixed(), 4, batch="pad", **how):
                added += batch.images.size - 3 * int((batch.sizes[:, 0] * batch.sizes[:, 1]).sum())
                order.extend(batch.ids.tolist())
            return added, order
        plain, order = padding()
        bucketed, other = padding(bucket_by="aspect")
        self.assertLess(bucketed, plain)
        self.assertEqual(sorted(order), sorted(other))
        self.assertNotEqual(order, other)
        with self.assertRaisesRegex(ValueError, "shuffle"):
            l3.Loader(self.mixed(), 4, batch="list", bucket_by="aspect", shuffle=False)
        loader = l3.Loader(self.mixed(), 4, batch="list", bucket_by="aspect")
        with self.assertRaisesRegex(ValueError, "batch_size 4, but this loader has 5"):
            l3.Loader(self.mixed(), 5, batch="list", bucket_by="aspect").load_state_dict(loader.state_dict())
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
        rest = [batch.ids.tolist() for batch in batches]
        again = l3.Loader(self.mixed(), 4, batch="list", bucket_by="aspect")
        again.load_state_dict(state)
        self.assertEqual([batch.ids.tolist() for batch in again], rest)

    def test_drop_last_and_masks(self) -> None:
        self.assertEqual(len(l3.Loader(self.mixed(), 6, batch="list", drop_last=True)), 3)
        mask = np.zeros(self.COUNT, bool)
        mask[[3, 5]] = True
        ids = [i for batch in l3.Loader(self.mixed(), 6, batch="list", samples=mask) for i in batch.ids]
        self.assertEqual(sorted(ids), [3, 5])
        with self.assertRaisesRegex(ValueError, "one value for each of the 20 samples"):
            l3.Loader(self.mixed(), 6, batch="list", samples=mask[:3])

    def test_broken_images(self) -> None:
        names = ["cats/003.png", "dogs/004.png"]
        for on_error, count in (("skip", self.COUNT_OF_CLASSES - 2), ("zero", self.COUNT_OF_CLASSES)):
            for batch in ("list", "pad"):
                loader = l3.Loader(self.broken_set_of(names), 4, batch=batch, on_error=on_error, layout="HWC")
                seen = 0
                for images, _, ids in loader:
                    for image, i in zip(images, ids):  # noqa: B905 (Python 3.9)
                        name = loader.data[int(i)].name
                        number = int(Path(name).stem)
                        np.testing.assert_array_equal(image, picture(number) * (name not in names))
                        seen += 1
                self.assertEqual(seen, count)

    COUNT_OF_CLASSES = 20

    def broken_set_of(self, names: list[str]) -> str:
        import shutil
        shutil.rmtree(self.folder / "broken", ignore_errors=True)
        return self.broken_set(*names)


class Transforms(Mixed):
    def test_on_threads(self) -> None:
        threads = set()

        def double(image: np.ndarray) -> np.ndarray:
            threads.add(threading.current_thread().name)
            return image.astype(np.int32) * 2

        with l3.Loader(self.mixed(), 4, resize=(8, 8), transform=double, shuffle=False) as loader, \
                l3.Loader(self.mixed(), 4, resize=(8, 8), shuffle=False) as plain:
            for batch, other in zip(loader, plain):  # noqa: B905 (Python 3.9)
                np.testing.assert_array_equal(batch.images, other.images.astype(np.int32) * 2)
                self.assertEqual(batch.names, other.names)
                self.assertGreater(batch.times.transforming, 0)
            self.assertEqual(len(loader.timeline()), 5)
            self.assertTrue(all(times.transforming > 0 for times in loader.timeline()))
        self.assertTrue(all(name.startswith("l3-transform") for name in threads))

    def test_any_results(self) -> None:
        with l3.Loader(self.mixed(), 4, batch="list", transform=lambda image: image.shape) as loader:
            for batch in loader:
                self.assertEqual([shape[1:] for shape in batch.images], [tuple(size) for size in batch.sizes])
        with l3.Loader(self.mixed(), 4, batch="list",
                       transform=lambda image: {"mean": image.mean((1, 2)), "size": image.shape[1:]}) as loader:
            for batch in loader:
                self.assertEqual(batch.images["mean"].shape, (4, 3))
                self.assertEqual(len(batch.images["size"]), 4)

    def test_interruptions_lose_nothing(self) -> None:
        # A shell that starts a job in the background makes it ignore SIGINT, and Python then installs no handler.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        interrupts = [8]
        calls = itertools.count()

        def interrupted(image: np.ndarray) -> float:
            if next(calls) in interrupts:
                time.sleep(0.2)  # now the loop waits for this image
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.1)
            return float(image.sum())

        with l3.Loader(self.mixed(), 3, batch="list", shuffle=False, transform=interrupted, threads=1) as loader:
            loop, ids, seen = iter(loader), [], 0
            while True:
                try:
                    batch = next(loop)
                except KeyboardInterrupt:
                    seen += 1
                    self.assertEqual(loader.state_dict()["position"], len(ids))
                    continue
                except StopIteration:
                    break
                ids += batch.ids.tolist()
                self.assertEqual(loader.state_dict()["position"], len(ids) % 20)
            self.assertEqual((ids, seen), (list(range(20)), 1))

        def stops(image: np.ndarray) -> float:
            raise StopIteration
        with l3.Loader(self.mixed(), 3, batch="list", transform=stops) as loader:
            with self.assertRaisesRegex(RuntimeError, "transform raised StopIteration"):
                next(iter(loader))

    def test_sees_no_padding(self) -> None:
        for layout in ("CHW", "HWC"):
            with l3.Loader(self.mixed(), 4, batch="pad", layout=layout, transform=np.copy) as loader, \
                    l3.Loader(self.mixed(), 4, batch="list", layout=layout) as plain:
                for batch, other in zip(loader, plain):  # noqa: B905 (Python 3.9)
                    for image, expected in zip(batch.images, other.images):  # noqa: B905 (Python 3.9)
                        np.testing.assert_array_equal(image, expected)

    def test_errors_and_positions(self) -> None:
        def picky(image: np.ndarray) -> np.ndarray:
            if image.shape[1] == 40:
                raise KeyError("not forty")
            return image.mean()

        with l3.Loader(self.mixed(), 5, batch="list", shuffle=False, transform=picky) as loader:
            batches, failed, done = iter(loader), 0, []
            while True:
                try:
                    done.append(next(batches).position)
                except KeyError as error:
                    failed += 1
                    if sys.version_info >= (3, 11):
                        self.assertRegex(error.__notes__[0], "in transform, for the sample '.*png'")
                    self.assertEqual(loader.state_dict()["position"] % 20, 5 * (failed + len(done)) % 20)
                except StopIteration:
                    break
            self.assertEqual((failed, done), (4, []))
        with l3.Loader(self.mixed(), 3, batch="list", transform=np.sum) as loader:
            batches = iter(loader)
            first = [next(batches) for _ in range(2)]
            self.assertEqual(loader.state_dict()["position"], 6)
            again = l3.Loader(self.mixed(), 3, batch="list", transform=np.sum)
            again.load_state_dict(loader.state_dict())
            rest = [i for batch in again for i in batch.ids.tolist()]
            self.assertEqual(sorted(rest + [i for batch in first for i in batch.ids.tolist()]), list(range(20)))


class Kinds(Sets):
    """Images of several kinds in one data set."""

    def kinds(self) -> str:
        def draw(png: Path) -> list[str]:
            palette = np.array([[255, 0, 0], [0, 255, 0]], np.uint8)
            write_png(png / "0.png", np.full((8, 8, 1), 200, np.uint8))
            write_png(png / "1.png", np.ones((8, 8, 1), np.uint8), palette)
            l3.encode(np.ones((8, 8, 1), np.uint8), png / "2.l3", bits=1)
            l3_to_png(png / "2.l3")
            l3.encode(np.full((8, 8, 2), (200, 51), np.uint8), png / "3.l3")
            l3_to_png(png / "3.l3")
            write_png(png / "4.png", np.full((8, 8, 3), 40000, np.uint16))
            return []
        return self._make("kinds", draw)

    def test_become_one_kind(self) -> None:
        with l3.Loader(self.kinds(), 5, channels="rgb", alpha="drop", bits=8, layout="HWC", shuffle=False) as loader:
            images, _, _ = next(iter(loader))
            self.assertEqual(images[:, 0, 0].tolist(), [[200] * 3, [0, 255, 0], [255] * 3, [200] * 3, [156] * 3])
        with l3.Loader(self.kinds(), 2, samples=["0.png", "3.png"], channels="rgb", alpha="blend", background=100,
                       shuffle=False) as loader:
            images, _, _ = next(iter(loader))
            self.assertEqual(images[:, 0, 0, 0].tolist(), [200, 120])

    def test_are_not_mixed_unnoticed(self) -> None:
        for samples, how, text in (
            ([0, 1], {}, "palette indices, the images before it have none: write colours=True"),
            ([1, 0], {"dtype": "float32"}, "no palette, the images before it have palette indices: write colours=True"),
            ([0, 2], {"channels": "rgb"}, "1 bits, the images before it of 8: write bits=8"),
            ([0, 2], {"dtype": "float32"}, "write bits=8"),
            ([3], {"channels": "rgb", "alpha": "blend", "background": [255, 0, 0]}, "background in colour: write"),
        ):
            with self.subTest(samples, **how), self.assertRaisesRegex(ValueError, text):
                l3.Loader(self.kinds(), 1, samples=samples, shuffle=False, **how)
        with l3.Loader(self.kinds(), 3, samples=[0, 1, 2], dtype="int64", shuffle=False) as loader:  # labels
            images, _, _ = next(iter(loader))
            self.assertEqual(images[:, 0, 0, 0].tolist(), [200, 1, 1])

    def test_pads_labels_with_what_no_label_is(self) -> None:
        for dtype, value in (("int64", -100), ("int32", -(2**24)), ("int16", -1), ("uint8", 255), ("uint16", 65535)):
            with self.subTest(dtype), l3.Loader(self.kinds(), 1, samples=["2.png"], dtype=dtype, pad=10,
                                                pad_value=value, rotate90=1) as loader:
                images, _, _ = next(iter(loader))
                self.assertEqual(sorted(set(images.ravel().tolist())), sorted({1, value}))
                self.assertEqual(int((images == value).sum()), 36)


class Words(Mixed):
    def test_wrong_combinations(self) -> None:
        mixed, pairs = self.mixed(), self.pairs_set()
        for path, how, text in (
            (mixed, {}, r"pixels, the images before it have .*: write crop=, resize=, .* or batch='list'"),
            (mixed, {"crop": 30}, "less than the crop of 30 x 30"),
            (mixed, {"random_resized_crop": 8, "resize": 9}, "random_resized_crop and resize exclude each other"),
            (mixed, {"letterbox": 8, "crop": 9}, "crop and letterbox exclude each other"),
            (mixed, {"resize": 8, "longest": 9}, "resize and longest exclude each other"),
            (mixed, {"resize": 20}, "batch='list'"),
            (mixed, {"resize": 20, "interpolation": "lanczos"}, "interpolation is 'lanczos', but must be"),
            (mixed, {"resize": (20, 30), "rotate90": True}, "square"),
            (mixed, {"pad": 64, "dtype": "float32"}, "pad_value=.*'edge'"),
            (mixed, {"batch": "pad", "dtype": "float16"}, "pad_value="),
            (mixed, {"pad": 64, "pad_value": "mean"}, "'mean' is for floats"),
            (mixed, {"pad": 30}, "more than the pad of 30 x 30"),
            (mixed, {"pad_multiple": 8, "resize": 9}, "pad_multiple is for batch='pad'"),
            (mixed, {"batch": "ragged"}, "batch is 'ragged', but must be 'stack', 'list' or 'pad'"),
            (mixed, {"batch": "list", "share": "x"}, "share"),
            (mixed, {"boxes": [[0, 0, 5, 5]], "resize": (8, 8)}, "1 boxes for 20 units"),
            (mixed, {"boxes": [[0, 0, 500, 5]] * 20, "resize": (8, 8)}, "reaches outside the image"),
            (mixed, {"boxes": [[0, 0, 5]], "resize": (8, 8)}, "boxes has the shape"),
            (mixed, {"resize": (8, 8), "hue": 0.7}, "hue is 0.7, but must be from 0 to 0.5"),
            (mixed, {"resize": (8, 8), "bits": 16}, "bits is 16, but must be 8 or None"),
            (mixed, {"random_resized_crop": 8, "scale": (1, 0.1)}, "scale is .* the smaller one first"),
            (mixed, {"random_resized_crop": 8, "scale": (0.5, 2)}, "scale must be two parts"),
            (mixed, {"random_resized_crop": 8, "scale": (0, 0)}, "scale is .* above 0"),
            (mixed, {"pad": 99, "pad_value": [1, 2]}, "pad_value has 2 numbers, but the image has 3 channels"),
            (mixed, {"resize": (9, 9), "dtype": "float32", "std": 1e300}, "at most 1e30"),
            (mixed, {"batch": "list", "drop_last": True, "last_batch": "pad"}, "exclude each other"),
            (mixed, {"batch": "list", "transform": np.sum, "ordered": False}, "transform needs ordered=True"),
            (pairs, {"roles": ["labels"], "interpolation": "bilinear", "resize": (9, 9)},
             "palette indices, .* write colours=True or interpolation='nearest'"),
            (pairs, {"roles": ["labels"], "channels": "rgb", "colours": False}, "palette .* write colours=True"),
            (pairs, {"roles": ["labels"], "brightness": 0.5}, "palette indices"),
            (pairs, {"roles": ["image"], "dtype": "uint8"}, "16 bits, which do not fit 8: write bits=8"),
            (pairs, {"roles": ["image"], "pad": 99, "dtype": "int32", "pad_value": 1e9}, "-2.24 to 2.24"),
            (mixed, {"pad": 99, "pad_value": 256}, "pad_value must be a whole number from 0 to 255 for uint8"),
            (mixed, {"pad": 99, "pad_value": 0.5}, "pad_value must be a whole number"),
            (mixed, {"resize": 9, "batch": "list", "pad_value": 5}, "pad_value is for pad, letterbox and batch='pad'"),
            (mixed, {"batch": "pad", "pad_mode": "edge"}, "pad_mode is for pad and letterbox; batch='pad' fills"),
            (mixed, {"batch": "list", "scale": (0.5, 1)}, "scale is for random_resized_crop"),
            (mixed, {"batch": "list", "crop_mode": "centre"}, "crop_mode is for crop"),
            (mixed, {"batch": "list", "background": 5}, "background is for alpha='blend'"),
            (mixed, {"batch": "list", "alpha": "blend", "background": [1, 2]}, "background is .* a number, or three"),
            (mixed, {"batch": "list", "alpha": "blend", "background": -1}, "background must be from 0 to 65535"),
            (mixed, {"batch": "list", "dtype": "float32", "mean": [123.7], "std": [58.4]}, "divide both by 255"),
            (mixed, {"crop": 50, "resize": 20}, r"resized to \d+ x \d+: this is less than the crop of 50 x 50"),
            (pairs, {"roles": ["image"], "dtype": "int16"}, "do not fit 15: write dtype='int32'"),
        ):
            with self.subTest(how=how), self.assertRaisesRegex(ValueError, text):
                l3.Loader(path, **{"batch_size": 4, **how})
        with l3.Dataset(mixed) as data, self.assertRaisesRegex(TypeError, r"l3.Loader\(data, batch_size, samples=view"):
            l3.Loader(data[3:], 4, batch="list")  # type: ignore[arg-type]
        with self.assertWarnsRegex(UserWarning, "20 units do not fill batch_size . world_size = 64"):
            l3.Loader(mixed, 64, batch="list", drop_last=True)
        with self.assertRaisesRegex(TypeError, "transform is 5"):
            l3.Loader(mixed, 4, batch="list", transform=5)  # type: ignore[arg-type]
        with l3.Loader(mixed, 4, batch="list", samples=[1]) as loader:
            with self.assertRaisesRegex(ValueError, "does not deliver"):
                loader.explain(0)
            with self.assertRaisesRegex(ValueError, "no sample"):
                loader.explain(99)


def l3_to_png(path: Path) -> None:
    """Replaces a file by a PNG of it, since sets are made of PNG files."""
    import subprocess

    from support import L3_COMMAND
    subprocess.run([L3_COMMAND, "decode", "-q", str(path), str(path.with_suffix(".png"))], check=True)
    path.unlink()


if __name__ == "__main__":
    unittest.main()
