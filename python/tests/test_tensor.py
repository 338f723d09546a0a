"""DLPack and array interfaces, to and from NumPy, torch and JAX."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import threading
import unittest
from types import ModuleType

import l3
import numpy as np
from support import Folder, picture, python

HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_JAX = importlib.util.find_spec("jax") is not None


def torch_module() -> ModuleType:
    import torch

    return torch


def capsule_name(capsule: object) -> bytes:
    get = ctypes.pythonapi.PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return bytes(get(capsule))


class OldLibrary:
    """A tensor of a library older than DLPack 1.0, without max_version."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, stream: object = None) -> object:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class Capsules(unittest.TestCase):
    def setUp(self) -> None:
        self.pixels = picture(1)
        self.file = l3.encode(self.pixels, method="fast")
        self.tensor = l3.decode(self.file, dtype="bfloat16")

    def test_names(self) -> None:
        for version, name in ((None, b"dltensor"), ((0, 8), b"dltensor"), ((1, 0), b"dltensor_versioned"),
                              ((1, 3), b"dltensor_versioned"), ((2, 0), b"dltensor_versioned")):
            self.assertEqual(capsule_name(self.tensor.__dlpack__(max_version=version)), name)
        self.assertEqual(self.tensor.__dlpack_device__(), (1, 0))

    def test_arguments(self) -> None:
        for how, error in (
            ({"stream": 1}, ValueError),
            ({"dl_device": (2, 0)}, BufferError),
            ({"dl_device": 1}, TypeError),
            ({"max_version": 1}, TypeError),
            ({"max_version": ("1", 0)}, TypeError),
        ):
            with self.subTest(how=how), self.assertRaises(error):
                self.tensor.__dlpack__(**how)
        self.tensor.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=False)

    def test_unused_capsules_are_freed(self) -> None:
        for version in (None, (1, 0)):
            for _ in range(1000):
                self.tensor.__dlpack__(max_version=version)

    def test_interfaces(self) -> None:
        for name in ("__array_interface__", "__cuda_array_interface__"):
            with self.assertRaises(AttributeError):
                getattr(self.tensor, name)
        with self.assertRaises(TypeError):
            l3.Tensor()


class Outputs(unittest.TestCase):
    def test_old_and_new_capsules(self) -> None:
        pixels = picture(2)
        file = l3.encode(pixels, method="fast")
        array = np.zeros_like(pixels)
        given = OldLibrary(array)
        self.assertIs(l3.decode(file, out=given), given)
        np.testing.assert_array_equal(array, pixels)
        tensor = l3.decode(file, dtype="bfloat16")
        self.assertIs(l3.decode(file, out=tensor), tensor)

    def test_what_cannot_be(self) -> None:
        file = l3.encode(picture(2), method="fast")
        with self.assertRaisesRegex(ValueError, "out is a tensor that is not C-contiguous"):
            l3.decode(file, out=OldLibrary(np.zeros((24, 32, 6), np.uint8)[:, :, ::2]))
        with self.assertRaisesRegex(ValueError, "out is a tensor of a type"):
            l3.decode(file, out=OldLibrary(np.zeros((24, 32, 3), np.int8)))

    def test_references_are_given_back(self) -> None:
        file = l3.encode(picture(2), method="fast")
        freed = []

        class Watched(np.ndarray):
            def __del__(self) -> None:
                freed.append(1)

        array = np.zeros((24, 32, 3), np.uint8).view(Watched)
        l3.decode(file, out=array)
        l3.decode(file, out=OldLibrary(array))
        del array
        gc.collect()
        self.assertEqual(len(freed), 1)


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class Torch(unittest.TestCase):
    def setUp(self) -> None:
        self.torch = torch_module()
        self.pixels = picture(3)
        self.file = l3.encode(self.pixels, method="fast")

    def test_takes_and_keeps(self) -> None:
        values = l3.decode(self.file, dtype="float32")
        tensor = self.torch.from_dlpack(l3.decode(self.file, dtype="bfloat16"))
        gc.collect()
        self.assertEqual(tensor.dtype, self.torch.bfloat16)
        expected = self.torch.from_numpy(values).to(self.torch.bfloat16)
        self.assertTrue(self.torch.equal(tensor, expected))

    def test_freed_in_another_thread(self) -> None:
        for _ in range(20):
            held = [self.torch.from_dlpack(l3.decode(self.file, dtype="bfloat16"))]
            thread = threading.Thread(target=held.clear)
            thread.start()
            thread.join()

    def test_writable_both_ways(self) -> None:
        source = l3.decode(self.file, dtype="bfloat16")
        first, second = self.torch.from_dlpack(source), self.torch.from_dlpack(source)
        first.zero_()
        self.assertEqual(float(second.abs().max()), 0)

    def test_copies(self) -> None:
        source = l3.decode(self.file, dtype="bfloat16")
        copied = self.torch.utils.dlpack.from_dlpack(source.__dlpack__(copy=True, max_version=(1, 0)))
        copied.zero_()
        self.assertGreater(float(self.torch.from_dlpack(source).max()), 0)

    def test_out(self) -> None:
        for dtype in ("uint8", "float16", "bfloat16", "float32"):
            out = self.torch.zeros((2, 3, 24, 32), dtype=getattr(self.torch, dtype))
            self.assertIs(l3.decode([self.file, self.file], out=out, layout="CHW"), out)
            if dtype == "uint8":
                np.testing.assert_array_equal(out[1].numpy(), self.pixels.transpose(2, 0, 1))
            self.assertTrue(self.torch.equal(out[0], out[1]))
            self.assertGreater(float(out.float().max()), 0)
        with self.assertRaisesRegex(ValueError, "C-contiguous"):
            l3.decode(self.file, out=self.torch.zeros((3, 24, 32), dtype=self.torch.uint8).permute(1, 2, 0))

    def test_dtype_of_torch(self) -> None:
        self.assertEqual(l3.decode(self.file, dtype=self.torch.float16).dtype, np.float16)

    def test_encodes_tensors(self) -> None:
        self.assertEqual(l3.encode(self.torch.from_numpy(self.pixels), method="fast"), self.file)

    def test_end_of_interpreter(self) -> None:
        ended = python("import sys, torch, l3\n"
                       "file = l3.encode(torch.zeros((9, 9, 3), dtype=torch.uint8))\n"
                       "kept = [torch.from_dlpack(l3.decode(file, dtype='bfloat16')), l3.decode(file), file]\n"
                       "sys.kept = kept\n"
                       "l3.kept = kept[0].view(torch.int16)\n")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))


@unittest.skipUnless(HAS_JAX, "jax is not installed")
class Jax(Folder):
    def test_takes(self) -> None:
        import jax.numpy as jnp

        pixels = picture(4)
        file = l3.encode(pixels, method="fast")
        array = jnp.from_dlpack(l3.decode(file, dtype="bfloat16"))
        self.assertEqual((array.shape, str(array.dtype)), (pixels.shape, "bfloat16"))
        np.testing.assert_array_equal(np.asarray(jnp.asarray(l3.decode(file))), pixels)

    def test_batches(self) -> None:
        """Batches that jax keeps stay as they were, whatever the loader delivers after them."""
        import jax
        import jax.numpy as jnp

        pictures = np.stack([picture(i) for i in range(13)])
        with l3.DatasetWriter(self.folder / "set") as writer:
            for i, pixels in enumerate(pictures):
                writer.write(pixels, label=i % 3)
        mean = jax.jit(lambda images: images.astype(jnp.float32).mean(axis=(1, 2, 3)))
        for dtype in ("uint8", "float32", "float16", "bfloat16"):
            kept, means = [], []
            with l3.Loader(self.folder / "set", batch_size=4, shuffle=True, seed=1, layout="HWC", dtype=dtype,
                           last_batch="uneven") as loader:
                for _epoch in range(2):
                    for images, labels, ids in loader:
                        array = jnp.from_dlpack(images)
                        kept.append((array, jnp.asarray(labels), np.array(ids)))
                        means.append(np.asarray(mean(array)))
            self.assertEqual(sorted(np.concatenate([ids for _, _, ids in kept])), sorted([*range(13)] * 2))
            for (array, labels, ids), of_images in zip(kept, means, strict=True):
                self.assertEqual((array.shape, str(array.dtype)), ((len(ids), 24, 32, 3), dtype))
                expected = pictures[ids].astype(np.float32) / (1 if dtype == "uint8" else 255)
                np.testing.assert_allclose(np.asarray(array.astype(jnp.float32)), expected, atol=2e-3, rtol=4e-3)
                np.testing.assert_allclose(of_images, expected.mean(axis=(1, 2, 3)), rtol=4e-3)
                np.testing.assert_array_equal(np.asarray(labels), ids % 3)


if __name__ == "__main__":
    unittest.main()
