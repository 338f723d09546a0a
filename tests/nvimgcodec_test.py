#!/usr/bin/env python3
"""Tests the extension of nvImageCodec with the real package, on the CPU. Ends with 77 if the package is not there.

Tests it in DALI, too, if that is there.

Usage: nvimgcodec_test.py EXTENSION [names of tests, or options of unittest]
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "spec" / "vectors"), str(ROOT / "spec")]
FOLDER = tempfile.mkdtemp()
atexit.register(shutil.rmtree, FOLDER)
shutil.copy(sys.argv.pop(1), FOLDER)
os.environ["NVIMGCODEC_EXTENSIONS_PATH"] = FOLDER
try:
    import numpy as np
    from nvidia import nvimgcodec
except ImportError as missing:
    print(f"nvimgcodec_test: {missing}")
    sys.exit(77)
try:
    from nvidia import dali
    from nvidia.dali import fn
except ImportError as missing:
    dali = None
    WITHOUT_DALI = f"DALI is not installed: {missing}"
else:
    WITHOUT_DALI = ""
import l3_decode

import build

CPU = -99999
PLAIN = nvimgcodec.ColorSpec.UNCHANGED
DECODER = nvimgcodec.Decoder(device_id=CPU)
# From the stored pixels to the upright ones, for the orientations 1 to 8 of EXIF.
TURNS = (lambda a: a, lambda a: a[:, ::-1], lambda a: a[::-1, ::-1], lambda a: a[::-1], lambda a: a.T,
         lambda a: np.rot90(a, -1), lambda a: a[::-1, ::-1].T, lambda a: np.rot90(a))
FEWEST = 50  # vectors of a kind, so that no loop is empty
Region = tuple[int, int, int, int]  # first row and column, and the ends of both


def decode(files: Sequence[bytes], colour: Any = PLAIN, any_depth: bool = True, region: Region | None = None,
           channels: int = 0) -> list[Any]:
    """The pixels of each file, as an array of height, width and channels; None if it is refused.

    The package allocates results only if there is a driver of CUDA, so the arrays are ours. They begin with what no
    image has everywhere.
    """
    params = nvimgcodec.DecodeParams(color_spec=colour, allow_any_depth=any_depth, apply_exif_orientation=False)
    results: list[Any] = [None] * len(files)
    streams, images, places = [], [], []
    for i, data in enumerate(files):
        try:
            stream = nvimgcodec.CodeStream(data)
            height, width, depth, bits = stream.height, stream.width, stream.num_channels, stream.precision
        except RuntimeError:
            continue
        if region:
            stream = stream.get_sub_code_stream(0, nvimgcodec.Region(*region))
            height, width = region[2] - region[0], region[3] - region[1]
        kind = np.uint16 if bits > 8 and any_depth else np.uint8
        results[i] = np.full((height, width, channels or depth), 77, kind)
        images.append(nvimgcodec.as_image(results[i]))
        streams.append(stream)
        places.append(i)
    for i, image in zip(places, DECODER.decode(streams, images=images, params=params) if streams else [], strict=True):
        if image is None:
            results[i] = None
    return results


def oracle(data: bytes) -> tuple[Any, int] | None:
    """Pixels and bits as the decoder of the specification has them, palettes as colours; None if it refuses."""
    try:
        image = l3_decode.decode(data)
    except (l3_decode.Violation, l3_decode.OverLimit, l3_decode.MissingModel):
        return None
    pixels = np.array(image.values()).reshape(image.height, image.width, image.channels)
    if image.palette is None:
        return pixels, image.bits
    colours = np.zeros((256, 4), np.uint8)
    colours[:, 3] = 255  # an index without entry is opaque black
    for i, entry in enumerate(image.palette):
        colours[i, :3] = list(entry)
    if image.transparency is None:
        return colours[pixels[..., 0], :3], 8
    colours[: len(image.transparency), 3] = list(image.transparency)
    return colours[pixels[..., 0]], 8


def scaled(pixels: Any, bits: int) -> Any:
    greatest = 2**bits - 1
    return (pixels.astype(np.int64) * 255 + greatest // 2) // greatest


@functools.cache
def valid_vectors(folder: Path) -> dict[str, tuple[bytes, Any, int]]:
    """Makes the vectors. Returns file, pixels and bits of each valid one."""
    subprocess.run([sys.executable, ROOT / "spec/vectors/build.py", folder], check=True, stdout=subprocess.DEVNULL)
    files = {path.stem: path.read_bytes() for path in sorted(folder.glob("valid/*.l3"))}
    return {name: (data, *found) for name, data in files.items() if (found := oracle(data)) is not None}


def turned(orientation: int, stored: Any) -> bytes:
    """An image of 8-bit gray with this orientation in its EXIF."""
    exif = f"text:II 2a00 08000000 0100 1201 0300 01000000 0{orientation}000000 00000000"
    samples = " ".join(map(str, stored.ravel()))
    size = f"{stored.shape[1]}x{stored.shape[0]}"
    return build.build_text(f"# x\nspec 4\nimage {size} gray 8\nsection exif {exif}\nraw {samples}\n")


class Extension(unittest.TestCase):
    vectors = Path(FOLDER, "vectors")

    @property
    def valid(self) -> dict[str, tuple[bytes, Any, int]]:
        return valid_vectors(self.vectors)

    def files(self) -> list[bytes]:
        return [data for data, _, _ in self.valid.values()]

    def test_unchanged(self) -> None:
        """All samples of all kinds of images, in one batch, with palettes as colours."""
        kinds = set()
        results = decode(self.files())
        for (name, (_, pixels, bits)), result in zip(self.valid.items(), results, strict=True):
            self.assertIsNotNone(result, name)
            np.testing.assert_array_equal(result, pixels, name)
            kinds.add((result.shape[2], bits))
        self.assertLessEqual({(1, 1), (1, 8), (1, 16), (2, 8), (2, 16), (3, 8), (3, 16), (4, 8), (4, 16)}, kinds)

    def test_8_bits(self) -> None:
        results = decode(self.files(), any_depth=False)
        for (name, (_, pixels, bits)), result in zip(self.valid.items(), results, strict=True):
            np.testing.assert_array_equal(result, scaled(pixels, bits), name)

    def test_rgb(self) -> None:
        """Gray is repeated, alpha is dropped."""
        results = decode(self.files(), nvimgcodec.ColorSpec.SRGB, any_depth=False, channels=3)
        for (name, (_, pixels, bits)), result in zip(self.valid.items(), results, strict=True):
            wanted = pixels[..., :3] if pixels.shape[2] >= 3 else pixels[..., [0, 0, 0]]
            np.testing.assert_array_equal(result, scaled(wanted, bits), name)

    def test_gray(self) -> None:
        results = decode(self.files(), nvimgcodec.ColorSpec.GRAY, any_depth=False, channels=1)
        for (name, (_, pixels, bits)), result in zip(self.valid.items(), results, strict=True):
            if pixels.shape[2] < 3:
                np.testing.assert_array_equal(result, scaled(pixels[..., :1], bits), name)
            else:
                luma = pixels[..., :3] @ np.array([0.299, 0.587, 0.114]) * 255 / (2**bits - 1)
                # Samples are rounded before they are scaled.
                self.assertLessEqual(np.abs(result[..., 0] - luma).max(), 0.51 + 255 / (2**bits - 1) / 2, name)

    def test_regions(self) -> None:
        tested = 0
        for name, (data, pixels, _) in self.valid.items():
            height, width, _ = pixels.shape
            if height < 9 or width < 9:
                continue
            tested += 1
            region = height // 3, width // 4, height - 2, width - 1
            (result,) = decode([data], region=region)
            np.testing.assert_array_equal(result, pixels[region[0] : region[2], region[1] : region[3]], name)
            self.assertIsNone(decode([data], region=(0, 0, height + 1, width))[0], name)
        self.assertGreater(tested, FEWEST)

    def test_layouts(self) -> None:
        data, pixels, _ = self.valid["noise_palette_4"]
        layouts = nvimgcodec.SampleFormat
        for layout, wanted in ((layouts.P_RGB, pixels.transpose(2, 0, 1)), (layouts.I_BGR, pixels[..., ::-1]),
                               (layouts.P_BGR, pixels[..., ::-1].transpose(2, 0, 1))):
            params = nvimgcodec.DecodeParams(color_spec=nvimgcodec.ColorSpec.SRGB, sample_format=layout)
            result = np.full(wanted.shape, 77, np.uint8)
            image = nvimgcodec.as_image(result, sample_format=layout)
            self.assertIsNotNone(DECODER.decode(nvimgcodec.CodeStream(data), image=image, params=params), layout)
            np.testing.assert_array_equal(result, wanted, str(layout))

    def test_orientations(self) -> None:
        """What EXIF says is applied if that is asked for, to regions of the upright image, too."""
        height, width = 7, 12
        for orientation, turn in enumerate(TURNS, 1):
            stored = np.arange(height * width, dtype=np.uint8).reshape(height, width)
            data = turned(orientation, stored)
            upright = turn(stored)
            for region in (None, (1, 2, 5, 6)):
                stream = nvimgcodec.CodeStream(data)
                wanted = upright
                if region:
                    stream = stream.get_sub_code_stream(0, nvimgcodec.Region(*region))
                    wanted = upright[region[0] : region[2], region[1] : region[3]]
                result = np.full((*wanted.shape, 1), 200, np.uint8)
                params = nvimgcodec.DecodeParams(color_spec=PLAIN, apply_exif_orientation=True)
                image = DECODER.decode(stream, image=nvimgcodec.as_image(result), params=params)
                self.assertIsNotNone(image, (orientation, region))
                np.testing.assert_array_equal(result[..., 0], wanted, str((orientation, region)))

    def test_invalid(self) -> None:
        """Files that break a rule are refused, and so are files of models that are not there."""
        valid_vectors(self.vectors)
        paths = [path for path in self.vectors.glob("*valid/*.l3") if oracle(path.read_bytes()) is None]
        self.assertGreater(len(paths), FEWEST)
        for path, result in zip(paths, decode([path.read_bytes() for path in paths]), strict=True):
            self.assertIsNone(result, path.name)

    def test_truncated(self) -> None:
        for name in ("all_sections", "tiny_all_sections", "dense_palette"):
            data = self.valid[name][0]
            for result in decode([data[:size] for size in range(1, len(data))]):
                self.assertIsNone(result, name)

    def test_other_files(self) -> None:
        for data in (b"L3", b"\x8bL3", b"\x8bL3I\r\n\n\n" + bytes(100), bytes(100)):
            self.assertEqual(decode([data]), [None])


@unittest.skipUnless(dali, WITHOUT_DALI)
class Dali(unittest.TestCase):
    """The same files in pipelines on the CPU."""

    vectors = Path(FOLDER, "vectors")

    def run_pipeline(self, files: Sequence[bytes], operator: str = "image", **options: Any) -> list[Any]:
        paths = []
        for i, data in enumerate(files):
            paths.append(Path(FOLDER, f"{i}.l3"))
            paths[-1].write_bytes(data)

        @dali.pipeline_def(batch_size=len(files), num_threads=2, device_id=None)
        def pipeline() -> Any:
            encoded, _ = fn.readers.file(files=[str(path) for path in paths])
            return getattr(fn.decoders, operator)(encoded, device="cpu", **options)

        built = pipeline()
        built.build()
        (results,) = built.run()
        return [np.asarray(results[i]) for i in range(len(files))]

    def test_images(self) -> None:
        for bits, dtype in ((8, dali.types.UINT8), (16, dali.types.UINT16)):
            vectors = {name: found for name, found in valid_vectors(self.vectors).items() if found[2] == bits}
            self.assertGreater(len(vectors), FEWEST // 5)
            files = [data for data, _, _ in vectors.values()]
            results = self.run_pipeline(files, output_type=dali.types.ANY_DATA, dtype=dtype)
            for (name, (_, pixels, _)), result in zip(vectors.items(), results, strict=True):
                np.testing.assert_array_equal(result, pixels, name)

    def test_crops(self) -> None:
        data, pixels, _ = valid_vectors(self.vectors)["noise_palette_4"]
        height, width, _ = pixels.shape
        (result,) = self.run_pipeline([data], "image_slice", start=(2, 3), end=(height - 1, width - 2), axes=(0, 1))
        np.testing.assert_array_equal(result, pixels[2 : height - 1, 3 : width - 2])

    def test_orientations(self) -> None:
        stored = np.arange(84, dtype=np.uint8).reshape(7, 12)
        for orientation, turn in enumerate(TURNS, 1):
            (result,) = self.run_pipeline([turned(orientation, stored)], output_type=dali.types.GRAY)
            np.testing.assert_array_equal(result[..., 0], turn(stored), str(orientation))

    def test_damage_is_an_error(self) -> None:
        data, _, _ = valid_vectors(self.vectors)["noise_palette_4"]
        with self.assertRaises(RuntimeError):
            self.run_pipeline([data[:-1]])

    def test_the_example(self) -> None:
        folder = Path(FOLDER, "files")
        samples = " ".join(str(i % 251) for i in range(30 * 20 * 3))
        text = f"# x\nspec 4\nimage 30x20 rgb 8\nraw {samples}\n"
        for name in ("a/1.l3", "a/2.l3", "b/3.l3"):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(build.build_text(text))
        command = [sys.executable, ROOT / "examples/dali_files.py", folder, "--batch-size", "2", "--side", "20"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.assertEqual(said, "3 images of 2 classes: 2 batches, the last of shape [20, 20, 3]\n")


if __name__ == "__main__":
    unittest.main()
