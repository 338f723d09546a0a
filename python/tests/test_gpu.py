"""The GPU part of the package, with a fake device in host memory (L3_FAKE_DEVICE).

What a GPU computes is not tested here, but what the package asks of it: which memory is alive, and which streams wait.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
from support import Folder, Sets, picture, python

FAKE = os.environ.get("L3_FAKE_DEVICE", "")
LIBRARY = "libl3_data_cuda.so"
IN_CHILD = "L3_IN_FAKE" in os.environ


@unittest.skipUnless(FAKE, "L3_FAKE_DEVICE is not set: it names a library that stands for libl3_data_cuda.so")
@unittest.skipIf(IN_CHILD, "this is the child")
class Outside(Folder):
    def test_all_of_it(self) -> None:
        import l3
        # A copy of the package, with the fake device next to the extension, in place of the true one.
        package = self.folder / "l3"
        package.mkdir()
        for part in Path(l3.__file__).parent.iterdir():
            if part.name != LIBRARY:
                (package / part.name).symlink_to(part.resolve())
        (package / LIBRARY).symlink_to(FAKE)
        with (mock.patch.object(sys, "path", [str(self.folder), *sys.path]),
              mock.patch.dict(os.environ, L3_IN_FAKE="1")):
            ended = python("import sys, unittest; unittest.main('test_gpu', argv=['test_gpu', *sys.argv[1:]])", "-v")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("test_stream_rules", ended.stderr)


class Array:
    """Memory of the fake device, as another library would own it."""

    def __init__(self, values: np.ndarray, device: int = 0) -> None:
        self.values = values
        self.device = device
        self.streams: list[object] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.device)

    def __dlpack__(self, *, stream: object = None, max_version: object = None) -> object:
        self.streams.append(stream)
        capsule = self.values.__dlpack__()
        # DLTensor begins with its data pointer, followed by the device.
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        ctypes.cast(pointer(capsule, b"dltensor") + 8, ctypes.POINTER(ctypes.c_int32))[0] = 2
        return capsule


@unittest.skipUnless(IN_CHILD, "test_all_of_it runs these in a process that has the fake device")
class Inside(Sets):
    def setUp(self) -> None:
        super().setUp()
        self.device = ctypes.CDLL(FAKE)
        self.device.fake_log.restype = ctypes.c_char_p
        self.assertNotIn("torch", sys.modules)
        self.pixels = picture(1)
        import l3
        self.l3 = l3
        self.file = l3.encode(self.pixels, method="fast")
        self.log()

    def log(self) -> list[str]:
        gc.collect()
        return str(self.device.fake_log().decode()).splitlines()

    def values(self, tensor: object) -> np.ndarray:
        told = tensor.__cuda_array_interface__  # type: ignore[attr-defined]
        self.assertEqual((told["version"], told["strides"], told["stream"]), (3, None, None))
        array = type("Host", (), {"__array_interface__": {**told, "version": 3}})()
        return np.array(array)

    def test_decodes(self) -> None:
        for how in ({}, {"layout": "CHW", "dtype": "float32", "mean": [0.1, 0.2, 0.3], "std": 0.5},
                    {"flip": True, "region": (3, 4, 20, 10), "dtype": "float16"}, {"dtype": "uint16"}):
            tensor = self.l3.decode(self.file, device="cuda:1", **how)
            self.assertEqual((tensor.device, tensor.__dlpack_device__()), ("cuda:1", (2, 1)))
            np.testing.assert_array_equal(self.values(tensor), self.l3.decode(self.file, **how))
            self.assertFalse(hasattr(tensor, "__array_interface__"))
        self.assertEqual(self.l3.decode(self.file, device="cuda", dtype="bfloat16").dtype, "bfloat16")
        images = [picture(i, 10 + i, 20, 1 + i % 4) for i in range(300)]
        tensors = self.l3.decode([self.l3.encode(image, method="fast") for image in images], device="cuda")
        for tensor, image in zip(tensors, images):  # noqa: B905 (Python 3.9)
            np.testing.assert_array_equal(self.values(tensor), image)
        palette = np.arange(12, dtype=np.uint8).reshape(4, 3)
        file = self.l3.encode(self.pixels[:, :, 0] // 64, palette=palette)
        np.testing.assert_array_equal(self.values(self.l3.decode(file, device="cuda", colours=True)),
                                      palette[self.pixels[:, :, 0] // 64])

    def test_encodes(self) -> None:
        l3, fast = self.l3, self.file
        planes = np.ascontiguousarray(self.pixels.transpose(2, 0, 1))
        self.assertEqual(l3.encode(Array(self.pixels), device="cuda", stream=5), fast)
        self.assertEqual(self.log(), ["encode 1 after 5"])
        self.assertEqual(l3.encode(Array(planes), device="cuda", layout="CHW"), fast)
        self.assertEqual(l3.encode(l3.decode(fast, device="cuda:1"), device="cuda:1", method="fast"), fast)
        self.assertEqual(l3.encode([Array(self.pixels)], device="cuda"), [fast])
        batch = np.stack([planes, 255 - planes])
        files = l3.encode(Array(batch), device="cuda", layout="CHW", tile=(32, 64))
        self.assertEqual(files, [l3.encode(image, method="fast", layout="CHW", tile=(32, 64)) for image in batch])
        gray = self.pixels[:, :, 0].astype(np.uint16) * 9
        for layout in ("HWC", "CHW", "HW"):
            self.assertEqual(l3.encode(Array(gray), device="cuda", layout=layout, bits=12),
                             l3.encode(gray, method="fast", bits=12))
        alpha = np.zeros((5, 7, 2), np.uint8)
        self.assertEqual(l3.encode(Array(alpha), device="cuda", premultiplied=True),
                         l3.encode(alpha, method="fast", premultiplied=True))
        self.assertEqual(l3.encode([], device="cuda"), [])
        many = np.zeros((700, 3, 4, 1), np.uint8)
        self.log()
        self.assertEqual(len(set(l3.encode(Array(many), device="cuda"))), 1)
        self.assertEqual(self.log(), ["encode 256 after 0"] * 2 + ["encode 188 after 0"])
        path = self.folder / "a.l3"
        self.assertIsNone(l3.encode(Array(self.pixels), path, device="cuda"))
        self.assertEqual(path.read_bytes(), fast)

    def test_what_cannot_be_encoded(self) -> None:
        tensor = Array(self.pixels)
        for error, text, array, how in (
                (ValueError, "method is 'dense', but a GPU encodes with 'fast' only", tensor, {"method": "dense"}),
                (ValueError, "icc is for device='cpu'", tensor, {"icc": b"x"}),
                (ValueError, "palette is for device='cpu'", tensor, {"palette": np.zeros((4, 3), np.uint8)}),
                (ValueError, "array is on cuda:0, but device is 'cuda:1'", tensor, {"device": "cuda:1"}),
                (ValueError, "array is on cpu", self.pixels, {}),
                (TypeError, "array is bytes, but must be a tensor", b"abc", {}),
                (TypeError, "dtype 'float32'", Array(self.pixels.astype(np.float32)), {}),
                (ValueError, "32 channels, but at most 4 are possible; layout is 'HWC'",
                 Array(self.pixels.transpose(2, 0, 1).copy()), {}),
                (ValueError, r"must have \(H, W\)", tensor, {"layout": "HW"}),
                (ValueError, r"must have \(C, H, W\) or a dimension", Array(self.pixels[0, 0]), {"layout": "CHW"}),
                (ValueError, "not C-contiguous", Array(self.pixels[:, ::2]), {}),
                (ValueError, "bits is 12, but the array has dtype uint8", tensor, {"bits": 12}),
                (ValueError, "premultiplied is for images with alpha", tensor, {"premultiplied": True}),
                (ValueError, r"2\^bits - 1", tensor, {"bits": 3}),
                (ValueError, r"image 1: .*2\^bits - 1", [Array(self.pixels // 64), tensor], {"bits": 3}),
                (ValueError, "path is for a single image", [tensor], {"path": "a.l3"}),
        ):
            with self.assertRaisesRegex(error, text):
                self.l3.encode(array, **{"device": "cuda", **how})
        with self.assertRaises(ValueError):
            self.l3.encode(self.pixels, device="tpu")

    def test_errors(self) -> None:
        with self.assertRaisesRegex(self.l3.Error, "CUDA device 7: there is no such device"):
            self.l3.decode(self.file, device="cuda:7")
        broken = bytearray(self.file)
        broken[-9] ^= 1
        with self.assertRaisesRegex(self.l3.Error, "check"):
            self.l3.decode([self.file, broken], device="cuda")
        self.log()
        self.assertEqual(self.device.fake_outputs(), 0)
        with self.assertRaisesRegex(ValueError, "out is on cuda:0, but device is 'cpu'"):
            self.l3.decode(self.file, out=Array(np.zeros_like(self.pixels)))
        with self.assertRaisesRegex(ValueError, "out is on cuda:0, but device is 'cuda:1'"):
            self.l3.decode(self.file, out=Array(np.zeros_like(self.pixels)), device="cuda:1")

    def test_out_and_streams(self) -> None:
        for stream, seen, ordered in ((None, 1, 0), (77, 77, 77), (type("S", (), {"cuda_stream": 5})(), 5, 5),
                                      (type("S", (), {"__cuda_stream__": lambda self: (0, 6)})(), 6, 6)):
            out = Array(np.zeros((2, 24, 32, 3), np.uint8))
            self.log()
            self.assertIs(self.l3.decode([self.file] * 2, out=out, device="cuda", stream=stream), out)
            self.assertEqual(out.streams, [seen])
            self.assertIn(f"ordered {ordered}", self.log())
            np.testing.assert_array_equal(out.values[1], self.pixels)
        for stream in (-1, "x", True, 1.5):
            with self.assertRaisesRegex(TypeError, "stream is"):
                self.l3.decode(self.file, device="cuda", stream=stream)

    def test_stream_rules(self) -> None:
        tensor = self.l3.decode(self.file, device="cuda", stream=99)
        for stream, error in ((0, ValueError), (-2, ValueError), ("1", TypeError)):
            with self.assertRaises(error):
                tensor.__dlpack__(stream=stream)
        with self.assertRaises(BufferError):
            tensor.__dlpack__(copy=True)
        with self.assertRaises(BufferError):
            tensor.__dlpack__(dl_device=(1, 0))
        self.log()
        capsules = [tensor.__dlpack__(stream=stream, max_version=(1, 0)) for stream in (None, 1, 2, 55, 55, -1)]
        del tensor
        self.assertEqual(self.log(), [])
        del capsules[2:]
        self.assertEqual(self.log(), [])
        capsules.clear()
        said = self.log()
        self.assertEqual([line.split()[0] for line in said], ["use"] * 4 + ["free"])
        self.assertEqual([line.split()[2] for line in said[:-1]], ["1", "2", "55", "99"])

    def test_memory_is_freed(self) -> None:
        for _ in range(5):
            self.l3.decode([self.file] * 3, device="cuda")
        said = self.log()
        self.assertEqual(self.device.fake_outputs(), 0)
        self.assertLessEqual(said.count("slot"), 1)

    def test_loader(self) -> None:
        how = {"dtype": "float32", "layout": "HWC", "mean": 0.5, "std": 0.25, "crop": (16, 16), "flip": True, "seed": 3}
        with self.l3.Loader(self.classes_set(), 4, **how) as host, \
                self.l3.Loader(self.classes_set(), 4, device="cuda", stream=9, **how) as loader:
            for expected, batch in zip(host, loader):  # noqa: B905 (Python 3.9)
                self.assertIsInstance(batch.images, self.l3.Tensor)
                self.assertIsInstance(batch.labels, self.l3.Tensor)
                np.testing.assert_array_equal(self.values(batch.images), expected.images)
                np.testing.assert_array_equal(self.values(batch.labels), expected.labels)
                np.testing.assert_array_equal(batch.ids, expected.ids)
                self.assertEqual(batch.labels.dtype, "int64")

    def test_batches_and_streams(self) -> None:
        with self.l3.Loader(self.classes_set(), 4, device="cuda", stream=9, prefetch=1) as loader:
            loop = iter(loader)
            batch = next(loop)
            self.log()
            images, labels = batch.images, batch.labels
            kept = [images.__dlpack__(stream=31), labels.__dlpack__(stream=32)]
            del batch, images, labels
            self.assertFalse(any(line.endswith((" 31", " 32")) for line in self.log()))
            kept.pop()
            self.assertFalse(any(line.endswith((" 31", " 32")) for line in self.log()))
            kept.pop()
            used = [line.split() for line in self.log() if line.startswith("use")]
            self.assertEqual(sorted(line[2] for line in used), ["31", "32"])
            self.assertEqual(len({line[1] for line in used}), 1)
            self.assertNotIn("unknown", used[0])
            del loop
            # No library took the tensors, so the stream of the loader counts.
            next(iter(loader))
            self.assertIn("9", [line.split()[2] for line in self.log() if line.startswith("use")])


if __name__ == "__main__":
    unittest.main()
