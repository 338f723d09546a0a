"""decode, encode, info: single images and lists of them."""

from __future__ import annotations

import os
import threading
import unittest
from pathlib import Path

import l3
import numpy as np
from support import Folder, picture

FAST = {"method": "fast"}


def scaled(pixels: np.ndarray, bits: int, mean: object = 0.0, std: object = 1.0) -> np.ndarray:
    return ((pixels.astype(np.float64) / (2**bits - 1) - mean) / std).astype(np.float32)


class RoundTrips(unittest.TestCase):
    def test_all_depths_and_channels(self) -> None:
        for bits in range(1, 17):
            for channels in range(1, 5):
                pixels = picture(bits, 19, 37, channels, bits)
                for method in ("fast", "auto"):
                    with self.subTest(bits=bits, channels=channels, method=method):
                        file = l3.encode(pixels, bits=bits, method=method, effort=1)
                        self.assertIsInstance(file, bytes)
                        decoded = l3.decode(file)
                        self.assertEqual(decoded.dtype, pixels.dtype)
                        np.testing.assert_array_equal(decoded, pixels)
                        told = l3.info(file)
                        self.assertEqual((told.bits, told.shape, told.size), (bits, pixels.shape, len(file)))
                        self.assertEqual(told.dtype, str(pixels.dtype))

    def test_shapes_of_one_channel(self) -> None:
        flat = picture(1, channels=1)[:, :, 0]
        file = l3.encode(flat, **FAST)
        self.assertEqual(l3.decode(file).shape, (24, 32, 1))
        self.assertEqual(l3.decode(file, layout="CHW").shape, (1, 24, 32))

    def test_what_arrays_can_be(self) -> None:
        pixels = picture(2, bits=16)
        file = l3.encode(pixels, **FAST)
        self.assertEqual(l3.encode(pixels.astype(">u2"), **FAST), file)
        self.assertEqual(l3.encode(pixels.transpose(2, 0, 1), layout="CHW", **FAST), file)
        self.assertEqual(l3.encode(np.repeat(pixels, 2, 1)[:, ::2], **FAST), file)
        self.assertEqual(l3.encode(pixels.tolist() and pixels, threads=2, **FAST), file)
        locked = pixels.copy()
        locked.flags.writeable = False
        self.assertEqual(l3.encode(locked, **FAST), file)

    def test_palette(self) -> None:
        labels = picture(3, channels=1)[:, :, 0] // 64
        palette = np.array([[0, 0, 0], [10, 20, 30], [40, 50, 60], [255, 0, 255]], np.uint8)
        file = l3.encode(labels, palette=palette)
        self.assertEqual(l3.info(file).colour, "palette")
        np.testing.assert_array_equal(l3.decode(file)[:, :, 0], labels)
        np.testing.assert_array_equal(l3.decode(file, colours=True), palette[labels])
        with_alpha = np.column_stack([palette, [255, 128, 0, 7]]).astype(np.uint8)
        file = l3.encode(labels, palette=with_alpha)
        np.testing.assert_array_equal(l3.decode(file, colours=True), with_alpha[labels])
        self.assertEqual(l3.decode(file).shape, (24, 32, 1))

    def test_options(self) -> None:
        pixels = picture(4, 100, 100)
        self.assertEqual(l3.info(l3.encode(pixels, tile=32, **FAST)).tiles, 16)
        self.assertEqual(l3.info(l3.encode(pixels, tile=(64, 32), **FAST)).tiles, 8)
        self.assertTrue(l3.info(l3.encode(picture(4, channels=4), premultiplied=True, **FAST)).premultiplied)
        self.assertEqual(l3.info(l3.encode(pixels, method="dense", effort=1)).model in ("own", "default"), True)


class Values(unittest.TestCase):
    def test_layout_type_region_flip(self) -> None:
        for bits, channels in ((8, 3), (8, 1), (12, 3), (16, 4), (5, 2)):
            pixels = picture(bits, 40, 50, channels, bits)
            file = l3.encode(pixels, bits=bits, tile=32, **FAST)
            mean, std = [0.1 * (c + 1) for c in range(channels)], [0.5 + 0.1 * c for c in range(channels)]
            for layout in ("HWC", "CHW"):
                for flip in (False, True):
                    for region in (None, (7, 3, 20, 30), (49, 39, 1, 1)):
                        part = pixels
                        if region:
                            x, y, width, height = region
                            part = part[y:y + height, x:x + width]
                        part = part[:, ::-1] if flip else part
                        part = part if layout == "HWC" else part.transpose(2, 0, 1)
                        how = {"layout": layout, "flip": flip, "region": region}
                        with self.subTest(bits=bits, channels=channels, **how):
                            np.testing.assert_array_equal(l3.decode(file, **how), part)
                            np.testing.assert_allclose(l3.decode(file, dtype="float32", **how), scaled(part, bits),
                                                       rtol=1e-6, atol=1e-7)
                            order = (slice(None), None, None) if layout == "CHW" else ...
                            expected = scaled(part, bits, np.array(mean)[order], np.array(std)[order])
                            given = l3.decode(file, dtype=np.float32, mean=mean, std=std, **how)
                            np.testing.assert_allclose(given, expected, rtol=1e-5, atol=1e-6)
                            half = l3.decode(file, dtype=np.dtype("float16"), mean=mean, std=std, **how)
                            np.testing.assert_array_equal(half, given.astype(np.float16))

    def test_whole_numbers(self) -> None:
        pixels = picture(5)
        file = l3.encode(pixels, **FAST)
        wide = l3.decode(file, dtype="uint16")
        self.assertEqual(wide.dtype, np.uint16)
        np.testing.assert_array_equal(wide, pixels)
        with self.assertRaisesRegex(ValueError, "16 bits do not fit dtype 'uint8'"):
            l3.decode(l3.encode(picture(5, bits=16), **FAST), dtype="uint8")

    def test_bfloat16(self) -> None:
        pixels = picture(6)
        tensor = l3.decode(l3.encode(pixels, **FAST), dtype="bfloat16")
        self.assertIsInstance(tensor, l3.Tensor)
        self.assertEqual((tensor.shape, tensor.dtype, tensor.device), (pixels.shape, "bfloat16", "cpu"))
        self.assertFalse(hasattr(tensor, "__array_interface__"))


class Sources(Folder):
    def test_paths_and_buffers(self) -> None:
        pixels = picture(7)
        path = self.folder / "a.l3"
        self.assertIsNone(l3.encode(pixels, path, **FAST))
        file = path.read_bytes()
        self.assertEqual([entry.name for entry in self.folder.iterdir()], ["a.l3"])
        for source in (file, bytearray(file), memoryview(file), np.frombuffer(file, np.uint8), str(path), path):
            with self.subTest(type(source)):
                np.testing.assert_array_equal(l3.decode(source), pixels)
                self.assertEqual(l3.info(source).size, len(file))

    def test_file_is_replaced_whole(self) -> None:
        path = self.folder / "a.l3"
        l3.encode(picture(1), path, **FAST)
        before = path.read_bytes()
        with self.assertRaises(ValueError):
            l3.encode(picture(2), path, bits=20)
        self.assertEqual(path.read_bytes(), before)
        with self.assertRaises(FileNotFoundError):
            l3.encode(picture(2), self.folder / "none" / "a.l3", **FAST)

    def test_lists(self) -> None:
        images = [picture(i, 10 + i, 20, 1 + i % 4) for i in range(40)]
        files: list[object] = [l3.encode(image, **FAST) for image in images]
        path = self.folder / "b.l3"
        path.write_bytes(files[1])  # type: ignore[arg-type]
        files[1] = path
        for threads in (0, 1, 3):
            for decoded, image in zip(l3.decode(files, threads=threads), images):  # noqa: B905 (Python 3.9)
                np.testing.assert_array_equal(decoded, image)
        self.assertEqual(l3.decode([]), [])
        np.testing.assert_array_equal(l3.decode(tuple(files[:1]))[0], images[0])  # type: ignore[arg-type]

    def test_large_image_on_threads(self) -> None:
        pixels = picture(8, 800, 900)
        np.testing.assert_array_equal(l3.decode(l3.encode(pixels, threads=2, **FAST), threads=3), pixels)

    def test_threads_of_python(self) -> None:
        pixels = picture(9, 100, 100)
        file = l3.encode(pixels, **FAST)
        wrong = []

        def decode_often() -> None:
            for _ in range(50):
                if not np.array_equal(l3.decode(file), pixels):
                    wrong.append(1)

        threads = [threading.Thread(target=decode_often) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Outputs(unittest.TestCase):
    def setUp(self) -> None:
        self.pixels = picture(10)
        self.file = l3.encode(self.pixels, **FAST)

    def test_one(self) -> None:
        for dtype in ("uint8", "uint16", "float16", "float32"):
            out = np.empty((24, 32, 3), dtype)
            self.assertIs(l3.decode(self.file, out=out), out)
            np.testing.assert_array_equal(out, l3.decode(self.file, dtype=dtype))

    def test_batch(self) -> None:
        other = picture(11)
        out = np.zeros((2, 3, 24, 32), np.float32)
        self.assertIs(l3.decode([self.file, l3.encode(other, **FAST)], out=out, layout="CHW", mean=0.5, std=0.5), out)
        for given, pixels in zip(out, (self.pixels, other)):  # noqa: B905 (Python 3.9)
            np.testing.assert_allclose(given, scaled(pixels.transpose(2, 0, 1), 8, 0.5, 0.5), rtol=1e-5, atol=1e-6)

    def test_part_of_a_larger_one(self) -> None:
        out = np.zeros((5, 24, 32, 3), np.uint8)
        l3.decode(self.file, out=out[2])
        np.testing.assert_array_equal(out[2], self.pixels)
        self.assertEqual(out[1].max() + out[3].max(), 0)

    def test_what_cannot_be(self) -> None:
        locked = np.zeros((24, 32, 3), np.uint8)
        locked.flags.writeable = False
        right = np.zeros((24, 32, 3), np.uint8)
        for out, how, error, text in (
            (np.zeros((24, 32), np.uint8), {}, ValueError, r"has shape \(24, 32\), but must have \(24, 32, 3\)"),
            (np.zeros((3, 24, 32), np.uint8), {}, ValueError, r"\(3, 24, 32\), but must have \(24, 32, 3\)"),
            (right, {"dtype": "float32"}, ValueError, "has dtype uint8, but dtype is 'float32'"),
            (np.zeros((24, 32, 3)), {}, ValueError, "has dtype float64"),
            (np.zeros((24, 32, 6), np.uint8)[:, :, ::2], {}, ValueError, "C-contiguous"),
            (right.astype(">u2"), {}, ValueError, "byte order"),
            (locked, {}, ValueError, "read-only"),
            ([1], {}, TypeError, "out is list"),
            (right, {"device": "cuda:0", "stream": 0}, ValueError, "out is on cpu, but device is 'cuda:0'"),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                l3.decode(self.file, out=out, **how)
        with self.assertRaisesRegex(ValueError, r"must have \(2, 24, 32, 3\)"):
            l3.decode([self.file, self.file], out=right)
        with self.assertRaisesRegex(ValueError, "different shapes"):
            l3.decode([self.file, l3.encode(picture(1, 9, 9), **FAST)], out=np.zeros((2, 24, 32, 3), np.uint8))


class Errors(Folder):
    def setUp(self) -> None:
        super().setUp()
        self.file = l3.encode(picture(12), **FAST)

    def test_files(self) -> None:
        broken = bytearray(self.file)
        broken[-9] ^= 1
        with self.assertRaisesRegex(l3.Error, "check") as caught:
            l3.decode(broken)
        self.assertEqual(caught.exception.file, None)
        self.assertIsInstance(caught.exception.offset, int)
        path = self.folder / "x.l3"
        path.write_bytes(self.file[:-1])
        with self.assertRaisesRegex(l3.Error, "x.l3: offset [0-9]+: ") as caught:
            l3.decode([self.file, path])
        self.assertEqual(caught.exception.file, str(path))
        with self.assertRaises(l3.Error):
            l3.decode(b"")
        with self.assertRaises(l3.Error):
            l3.info(b"PNG")
        with self.assertRaises(FileNotFoundError) as missing:
            l3.decode(self.folder / "none.l3")
        self.assertEqual(missing.exception.filename, str(self.folder / "none.l3"))
        with self.assertRaises(IsADirectoryError):
            l3.decode(self.folder)

    def test_limits(self) -> None:
        with self.assertRaisesRegex(l3.Error, "limit"):
            l3.decode(self.file, max_pixels=24 * 32 - 1)
        with self.assertRaisesRegex(l3.Error, "limit"):
            l3.decode(self.file, max_bytes=24 * 32 * 3 - 1)
        with self.assertRaisesRegex(l3.Error, "limit"):
            l3.decode(self.file, max_pixels=99, region=(0, 0, 10, 10))
        self.assertEqual(l3.decode(self.file, max_pixels=100, region=(0, 0, 10, 10)).shape, (10, 10, 3))

    def test_arguments(self) -> None:
        for how, error, text in (
            ({"layout": "NHWC"}, ValueError, "layout is 'NHWC', but must be 'CHW', 'HWC' or 'HW'"),
            ({"dtype": "float64"}, ValueError, "dtype is 'float64', but must be None, 'uint8'"),
            ({"dtype": np.float64}, ValueError, "dtype"),
            ({"mean": 0.5}, ValueError, "mean and std need dtype 'float16', 'bfloat16' or 'float32'"),
            ({"mean": [1, 2], "dtype": "float32"}, ValueError, "mean has 2 numbers, but the image has 3 channels"),
            ({"std": 0, "dtype": "float32"}, ValueError, "zero"),
            ({"mean": "x", "dtype": "float32"}, TypeError, "mean is 'x'"),
            ({"region": (0, 0, 1)}, ValueError, "region"),
            ({"region": (0, 0, 33, 1)}, ValueError, "region is empty or not inside"),
            ({"region": (2**32 - 1, 0, 2, 1)}, ValueError, "region is empty or not inside"),
            ({"region": (0, 0, 0, 1)}, ValueError, "at least 1"),
            ({"region": (0, -1, 1, 1)}, ValueError, "region is -1"),
            ({"region": (0, 0.5, 1, 1)}, TypeError, "region is 0.5"),
            ({"flip": 1}, TypeError, "flip is 1"),
            ({"device": "gpu"}, ValueError, "device is 'gpu'"),
            ({"threads": -1}, ValueError, "threads is -1"),
            ({"max_pixels": 0}, ValueError, "max_pixels is 0"),
            ({"models": [b"no model"]}, l3.Error, ""),
        ):
            with self.subTest(how=how), self.assertRaisesRegex(error, text):
                l3.decode(self.file, **how)
        with self.assertRaisesRegex(TypeError, "source is int"):
            l3.decode([1])  # type: ignore[list-item]
        pixels = picture(1)
        for array, how, error, text in (
            (pixels.astype(float), {}, TypeError, "float64"),
            (pixels[0, 0], {}, ValueError, r"has shape \(3,\)"),
            (np.zeros((4, 4, 5), np.uint8), {}, ValueError, "1 to 4 channels"),
            (np.zeros((0, 4), np.uint8), {}, ValueError, "shape"),
            (pixels, {"bits": 9}, ValueError, "uint8 is for 1 to 8 bits"),
            (pixels, {"bits": 4}, ValueError, ""),
            (pixels, {"colour": "gray"}, ValueError, "with 3 channels must be 'rgb'"),
            (pixels, {"effort": 10}, ValueError, "effort is 10, but must be from 1 to 9"),
            (pixels, {"method": "best"}, ValueError, "'auto', 'fast' or 'dense'"),
            (pixels, {"tile": 33}, ValueError, ""),
            (pixels[:, :, :1], {"colour": "palette"}, ValueError, "needs the argument palette"),
            (pixels[:, :, :1], {"palette": [[1, 2, 3]]}, ValueError, "palette"),
        ):
            with self.subTest(how=how), self.assertRaisesRegex(error, text):
                l3.encode(array, **how)

    def test_no_gpu_is_said(self) -> None:
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is a GPU")
        with self.assertRaisesRegex((l3.Error, OSError, ValueError), "."):
            l3.decode(self.file, device="cuda", stream=0)


class TypeInformation(unittest.TestCase):
    def test_package_is_typed(self) -> None:
        folder = Path(l3.__file__).parent
        self.assertTrue((folder / "py.typed").exists())
        self.assertTrue((folder / "_native.pyi").exists())
        self.assertRegex(l3.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main()
