"""Arguments: Pillow images, overlapping memory, paths; and the type of batches."""

from __future__ import annotations

import array
import copy
import io
import sys
import types
import unittest
from collections import deque
from collections.abc import Iterable
from typing import Any

import l3
import numpy as np
from support import Folder, Sets, picture

try:
    from PIL import Image
except ImportError:
    Image = None  # type: ignore[assignment]

FAST = {"method": "fast"}


class PillowImage:
    """The parts of a Pillow image that l3 uses."""

    def __init__(self, mode: str, pixels: np.ndarray, palette: list[int] | None = None, **info: object) -> None:
        self.mode, self.info = mode, info
        self._pixels, self._palette = pixels, palette

    def getpalette(self, rawmode: str = "RGB") -> list[int] | None:
        if self._palette is None or rawmode == "RGB":
            return self._palette
        return np.insert(np.reshape(self._palette, (-1, 3)), 3, 255, axis=1).reshape(-1).tolist()

    def convert(self, mode: str) -> PillowImage:
        return PillowImage(mode, self._pixels)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self._pixels if dtype is None else self._pixels.astype(dtype)


class Pillow(unittest.TestCase):
    def test_palettes_are_kept(self) -> None:
        indices = np.array([[0, 1], [2, 1]], np.uint8)
        image = PillowImage("P", indices, [1, 2, 3, 4, 5, 6])  # Pillow omits entries that it considers unused
        file = l3.encode(image, **FAST)
        self.assertEqual(l3.info(file).colour, "palette")
        np.testing.assert_array_equal(l3.decode(file)[:, :, 0], indices)
        np.testing.assert_array_equal(l3.decode(file, colours=True)[:, :, 0], [[1, 4], [0, 4]])
        for transparency, alpha in ((1, [[255, 0], [255, 0]]), (b"\x07\x08", [[7, 8], [255, 8]])):
            shown = PillowImage("P", indices, [1, 2, 3, 4, 5, 6], transparency=transparency)
            colours = l3.decode(l3.encode(shown, **FAST), colours=True)
            np.testing.assert_array_equal(colours[:, :, 3], alpha)
        self.assertEqual(l3.info(l3.encode(image, colour="gray", **FAST)).colour, "gray")
        # The transparent entry is in no pixel and not in the palette.
        absent = PillowImage("P", indices, [1, 2, 3, 4, 5, 6], transparency=250)
        self.assertEqual(l3.decode(l3.encode(absent, **FAST), colours=True).shape[2], 3)

    @unittest.skipIf(Image is None, "Pillow is not installed")
    def test_images_of_pillow_itself(self) -> None:
        pixels = picture(5, channels=4)
        opaque = Image.fromarray(pixels[:, :, :3])
        images = {"alpha in the palette": Image.fromarray(pixels).quantize(16), "opaque": opaque.quantize(200),
                  "gray": opaque.convert("L").convert("P"), "no palette": Image.new("P", (5, 4), 3)}
        for transparency in (3, b"\1\2\3", 250):
            for palette in ("alpha in the palette", "opaque"):
                image = images[palette].copy()
                image.info["transparency"] = transparency
                images[f"{palette}, transparency {transparency!r}"] = image
        few = opaque.quantize(8)
        few.info["transparency"] = 250
        file = io.BytesIO()
        few.save(file, "GIF")
        images["GIF"] = Image.open(file)
        for name, image in images.items():
            with self.subTest(name):
                wanted = np.asarray(image.convert("RGBA"))
                colours = l3.decode(l3.encode(image, **FAST), colours=True)
                if colours.shape[2] == 3:
                    colours = np.insert(colours, 3, 255, axis=2)
                np.testing.assert_array_equal(colours, wanted)
        for mode in ("L", "LA", "RGB", "RGBA"):
            image = Image.fromarray(pixels).convert(mode)
            np.testing.assert_array_equal(np.squeeze(l3.decode(l3.encode(image, layout="CHW", **FAST))),
                                          np.asarray(image))

    def test_modes(self) -> None:
        bits = np.array([[True, False]])
        self.assertEqual(l3.info(l3.encode(PillowImage("1", bits), **FAST)).bits, 1)
        rgba = picture(1, channels=4)
        np.testing.assert_array_equal(l3.decode(l3.encode(PillowImage("RGBA", rgba), **FAST)), rgba)
        for mode, write in (("CMYK", r"image\.convert\('RGB'\)"), ("YCbCr", "'RGB'"), ("LAB", "'RGB'"),
                            ("HSV", "'RGB'"), ("RGBa", "'RGBA'"), ("PA", "'RGBA'"), ("F", "an array"),
                            ("I", "'I;16'")):
            with self.subTest(mode), self.assertRaisesRegex(ValueError, f"mode '{mode}'.*{write}"):
                l3.encode(PillowImage(mode, rgba))

    def test_indices_have_entries(self) -> None:
        indices = np.zeros((4, 5), np.uint8)
        indices[2, 3] = 2
        palette = np.zeros((2, 3), np.uint8)
        with self.assertRaisesRegex(ValueError, "index 2 at row 2, column 3, but the palette has 2 entries"):
            l3.encode(indices, palette=palette)


class Memory(Folder):
    def test_input_and_output_overlap(self) -> None:
        pixels = picture(3)
        file = l3.encode(pixels, **FAST)
        memory = np.zeros(len(file) + 2 * pixels.size, np.uint8)
        for at in (0, len(file) - 1, pixels.size, len(file)):
            memory[pixels.size:pixels.size + len(file)] = np.frombuffer(file, np.uint8)
            source = memory[pixels.size:pixels.size + len(file)]
            out = memory[at:at + pixels.size].reshape(pixels.shape)
            overlaps = at + pixels.size > pixels.size
            for sources, to in ((source, out), ([source], out[None])):
                if overlaps:
                    with self.subTest(at), self.assertRaisesRegex(ValueError, "out shares memory with a source"):
                        l3.decode(sources, out=to)
                else:
                    np.testing.assert_array_equal(np.squeeze(l3.decode(sources, out=to)), pixels)

    def test_paths_with_nul(self) -> None:
        path = self.folder / "a.l3"
        l3.encode(picture(1), path, **FAST)
        hidden = f"{path}\0.png"
        for call in (l3.decode, l3.info, l3.Dataset, l3.Model, lambda name: l3.encode(picture(1), name, **FAST)):
            with self.assertRaisesRegex(ValueError, "embedded null"):
                call(hidden)


class Words(Folder):
    def test_arguments_of_wrong_kinds(self) -> None:
        file = l3.encode(picture(1, channels=1), **FAST)
        with self.assertRaisesRegex(TypeError, r"region is 5, but must be \(x, y, width, height\)"):
            l3.decode(file, region=5)
        with self.assertRaisesRegex(TypeError, r"source\.tolist\(\)"):
            l3.decode(np.array(["a.l3"]))
        with self.assertRaisesRegex(TypeError, "threads is .*True"):
            l3.decode(file, threads=np.bool_(True))
        with self.assertRaisesRegex(TypeError, "region is {.*, but must be"):
            l3.decode(file, region={"x": 0, "y": 0, "width": 1, "height": 1})
        with self.assertRaisesRegex(ValueError, "source is not contiguous"):
            l3.decode(np.frombuffer(file + file, np.uint8)[::2])
        for models in (5, [5]):
            with self.assertRaisesRegex(TypeError, "source is int"):
                l3.decode(file, models=models)
        with self.assertRaisesRegex(TypeError, "source is int"):
            l3.Model(5)

    def test_sequences_of_sources(self) -> None:
        file = l3.encode(picture(1, channels=1), **FAST)
        self.assertEqual(len(l3.decode(deque([file, file]))), 2)
        self.assertEqual(l3.decode(array.array("B", file)).shape, (24, 32, 1))

    def test_encode(self) -> None:
        pixels = picture(1)
        self.assertEqual(l3.encode(pixels, tile=[64, 32], **FAST), l3.encode(pixels, tile=(64, 32), **FAST))
        with self.assertRaisesRegex(TypeError, r"tile is '64', but must be a whole number or \(width, height\)"):
            l3.encode(pixels, tile="64")
        with self.assertRaisesRegex(ValueError, "layout 'HW' needs two dimensions"):
            l3.encode(pixels, layout="HW")
        path = self.folder / "a.l3"
        l3.encode(pixels, bytes(path), **FAST)
        np.testing.assert_array_equal(l3.decode(path), pixels)

    def test_two_dimensions(self) -> None:
        gray, colours = picture(1, channels=1), picture(1)
        file = l3.encode(gray, **FAST)
        np.testing.assert_array_equal(l3.decode(file, layout="HW"), gray[:, :, 0])
        out = np.zeros(gray.shape[:2], np.uint8)
        self.assertIs(l3.decode(file, layout="HW", out=out), out)
        np.testing.assert_array_equal(out, gray[:, :, 0])
        with self.assertRaisesRegex(ValueError, "layout 'HW' is for images of one channel, but this image has 3"):
            l3.decode(l3.encode(colours, **FAST), layout="HW")


class Batches(Sets):
    def test_are_tuples_with_names(self) -> None:
        with l3.Loader(self.classes_set(), 4, shuffle=False) as loader:
            batch = next(iter(loader))
            images, labels, ids = batch
            self.assertIsInstance(batch, tuple)
            self.assertEqual(batch._fields, ("images", "labels", "ids"))
            for i, one in enumerate((images, labels, ids)):
                self.assertIs(batch[i], one)
            self.assertIs(batch.images, images)
            self.assertEqual(len(batch.names), 4)
            self.assertEqual(copy.copy(batch).names, batch.names)
            self.assertIs(batch._replace(labels=None).images, images)
            # As torch's default_convert and pin_memory copy them.
            again = type(batch)(*(np.array(one) for one in batch))
            self.assertEqual((again.ids.tolist(), again.repeats), (ids.tolist(), 0))
            with self.assertRaisesRegex(AttributeError, "is a copy"):
                again.names  # noqa: B018
            with self.assertRaisesRegex(TypeError, r"batch_size=None"):
                loader[0]
            with self.assertRaisesRegex(TypeError, "state is int"):
                loader.load_state_dict(5)

    def test_crops_and_selections(self) -> None:
        path = self.classes_set()
        for crop in (16, np.int64(16), [16, 16], np.array([16, 16])):
            with l3.Loader(path, 2, crop=crop) as loader:
                self.assertEqual(next(iter(loader)).images.shape, (2, 3, 16, 16))
        for how, error, text in (
            ({"crop": True}, TypeError, "crop is True"),
            ({"crop": {0: 1, 1: 2}}, TypeError, "crop is {.*whole number or"),
            ({"samples": 5}, TypeError, "samples is 5, but must be a list"),
            ({"samples": "cats"}, TypeError, "samples is 'cats', but must be a list"),
            ({"roles": 5}, ValueError, "roles is 5"),
            ({"colours": ["image"]}, ValueError, "colours names the role 'image', but roles is not given"),
            ({"roles": ["image"], "colours": ["labels"]}, ValueError, "colours names the role 'labels'"),
            ({"shuffle": np.ones(2, bool)}, ValueError, "shuffle is array"),
            ({"crop_mode": []}, ValueError, "crop_mode is"),
        ):
            with self.subTest(**how), self.assertRaisesRegex(error, text):
                l3.Loader(path, 2, **how)
        for samples in ([np.bool_(True)], [True] * 3):
            with self.assertRaisesRegex(TypeError, "samples is .*True_?, but must be a whole number"):
                l3.Loader(path, 2, samples=samples)
        with l3.Dataset(path) as data, self.assertRaisesRegex(TypeError, "bool"):
            data[np.bool_(True)]

    def test_data_sets(self) -> None:
        path = self.classes_set()
        with l3.Dataset(path.encode() if isinstance(path, str) else bytes(path)) as data:
            self.assertEqual(data.path, str(path))
            for call, text in ((lambda: data.group("a"), "group is 'a'"), (lambda: data.group(1.0), "group is 1.0"),
                               (lambda: data.group(True), "group is True"), (lambda: data.find(5), "name is 5")):
                with self.assertRaisesRegex(TypeError, text):
                    call()
        with self.assertRaisesRegex(ValueError, "max_open_files is -1"):
            l3.Dataset(path, max_open_files=-1)

    def test_write_trace_to_a_path_with_nul(self) -> None:
        with l3.Loader(self.classes_set(), 2) as loader, self.assertRaisesRegex(ValueError, "embedded null"):
            loader.write_trace(f"{self.folder}/trace\0.json")

    def test_torch_iterates(self) -> None:
        """torch's DataLoader checks for IterableDataset. A fake torch is enough to test that."""
        data = types.ModuleType("torch.utils.data")
        data.IterableDataset = type("IterableDataset", (Iterable,), {})  # type: ignore[attr-defined]
        before = sys.modules.get("torch.utils.data")
        sys.modules["torch.utils.data"] = data
        try:
            with l3.Loader(self.classes_set(), 2) as loader:
                self.assertIsInstance(loader, data.IterableDataset)
        finally:
            del sys.modules["torch.utils.data"]
            if before is not None:
                sys.modules["torch.utils.data"] = before


if __name__ == "__main__":
    unittest.main()
