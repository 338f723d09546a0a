"""What callers may hand in: images of Pillow's, memory that overlaps, paths; and what batches are."""

from __future__ import annotations

import sys
import types
import unittest
from collections.abc import Iterable
from typing import Any

import l3
import numpy as np
from support import Folder, Sets, picture

FAST = {"method": "fast"}


class PillowImage:
    """What l3 looks at in an image of Pillow's."""

    def __init__(self, mode: str, pixels: np.ndarray, palette: list[int] | None = None, **info: object) -> None:
        self.mode, self.info = mode, info
        self._pixels, self._palette = pixels, palette

    def getpalette(self, rawmode: str = "RGB") -> list[int] | None:
        return self._palette

    def convert(self, mode: str) -> PillowImage:
        return PillowImage(mode, self._pixels)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self._pixels if dtype is None else self._pixels.astype(dtype)


class Pillow(unittest.TestCase):
    def test_palettes_are_kept(self) -> None:
        indices = np.array([[0, 1], [2, 1]], np.uint8)
        image = PillowImage("P", indices, [1, 2, 3, 4, 5, 6])  # Pillow leaves out what it takes for unused
        file = l3.encode(image, **FAST)
        self.assertEqual(l3.info(file).colour, "palette")
        np.testing.assert_array_equal(l3.decode(file)[:, :, 0], indices)
        np.testing.assert_array_equal(l3.decode(file, colours=True)[:, :, 0], [[1, 4], [0, 4]])
        for transparency, alpha in ((1, [[255, 0], [255, 0]]), (b"\x07\x08", [[7, 8], [255, 8]])):
            shown = PillowImage("P", indices, [1, 2, 3, 4, 5, 6], transparency=transparency)
            colours = l3.decode(l3.encode(shown, **FAST), colours=True)
            np.testing.assert_array_equal(colours[:, :, 3], alpha)
        self.assertEqual(l3.info(l3.encode(image, colour="gray", **FAST)).colour, "gray")

    def test_modes(self) -> None:
        bits = np.array([[True, False]])
        self.assertEqual(l3.info(l3.encode(PillowImage("1", bits), **FAST)).bits, 1)
        rgba = picture(1, channels=4)
        np.testing.assert_array_equal(l3.decode(l3.encode(PillowImage("RGBA", rgba), **FAST)), rgba)
        for mode, write in (("CMYK", r"image\.convert\('RGB'\)"), ("YCbCr", "'RGB'"), ("LAB", "'RGB'"),
                            ("HSV", "'RGB'"), ("RGBa", "'RGBA'"), ("PA", "'RGBA'"), ("F", "an array"),
                            ("I", "an array")):
            with self.subTest(mode), self.assertRaisesRegex(ValueError, f"mode '{mode}'.*{write}"):
                l3.encode(PillowImage(mode, rgba))

    def test_indices_have_entries(self) -> None:
        indices = np.zeros((4, 5), np.uint8)
        indices[2, 3] = 2
        palette = np.zeros((2, 3), np.uint8)
        with self.assertRaisesRegex(ValueError, "index 2 at row 2, column 3, and the palette 2 entries"):
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
        with self.assertRaisesRegex(TypeError, r"region is 5, and must be \(x, y, width, height\)"):
            l3.decode(file, region=5)
        with self.assertRaisesRegex(TypeError, r"source\.tolist\(\)"):
            l3.decode(np.array(["a.l3"]))
        with self.assertRaisesRegex(TypeError, "threads is .*True"):
            l3.decode(file, threads=np.bool_(True))

    def test_two_dimensions(self) -> None:
        gray, colours = picture(1, channels=1), picture(1)
        file = l3.encode(gray, **FAST)
        np.testing.assert_array_equal(l3.decode(file, layout="HW"), gray[:, :, 0])
        out = np.zeros(gray.shape[:2], np.uint8)
        self.assertIs(l3.decode(file, layout="HW", out=out), out)
        np.testing.assert_array_equal(out, gray[:, :, 0])
        with self.assertRaisesRegex(ValueError, "layout 'HW' is for images of one channel, and this one has 3"):
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
            # As torch's default_convert and pin_memory make them anew.
            again = type(batch)(*(np.array(one) for one in batch))
            self.assertEqual((again.ids.tolist(), again.repeats), (ids.tolist(), 0))

    def test_crops_and_selections(self) -> None:
        path = self.classes_set()
        with l3.Loader(path, 2, crop=16) as loader:
            self.assertEqual(next(iter(loader)).images.shape, (2, 3, 16, 16))
        for samples in ([np.bool_(True)], np.ones(3, bool)):
            with self.assertRaisesRegex(TypeError, "samples is .*True_?, and must be a whole number"):
                l3.Loader(path, 2, samples=samples)
        with l3.Dataset(path) as data, self.assertRaisesRegex(TypeError, "bool"):
            data[np.bool_(True)]

    def test_write_trace_to_a_path_with_nul(self) -> None:
        with l3.Loader(self.classes_set(), 2) as loader, self.assertRaisesRegex(ValueError, "embedded null"):
            loader.write_trace(f"{self.folder}/trace\0.json")

    def test_torch_iterates(self) -> None:
        """torch's DataLoader looks whether a data set is an IterableDataset; torch itself is not needed to be one."""
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
