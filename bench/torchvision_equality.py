#!/usr/bin/env python3
"""Compares the geometry of l3.Loader with torchvision.transforms.v2 (on a CPU, antialias=True) and with Pillow.

    PYTHONPATH=build/release/python bench/torchvision_equality.py [FOLDER...] [--l3 COMMAND] [--out FILE] [--quick]

Draws images (noise, gradients, edges, checkerboards) of many sizes, and takes a few PNG files of the folders. Makes
data sets of them and reads these with a loader. Compares resizing to exact sizes and by the shorter and the longest
side, the crop in the centre, padding, letterboxes, and random resized crops. Then it draws 100,000 boxes of random
resized crops and compares the distributions of area, shape and place with torchvision's (two-sample
Kolmogorov-Smirnov tests).

Each row is one kind of comparison with its largest difference: in levels for stored samples of 8 bits, in parts of the
range for others. Limits: 1 level (2 for bicubic beside Pillow), 0.001 of the range, nothing for nearest and for pixels
that are only moved. Exit status 1 if a limit is exceeded.

Alpha is a channel like the others, as in torchvision. Pillow, which multiplies colours with it first, gets one channel
at a time. Floats beyond the range, which bicubic gives at edges, are limited to it before they are compared.

Packages: torch torchvision pillow numpy.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import l3
import numpy as np
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode, RandomResizedCrop
from torchvision.transforms.v2 import functional
from training_images import record_of, say, versions

MODES = {"nearest": InterpolationMode.NEAREST, "nearest-exact": InterpolationMode.NEAREST_EXACT,
         "bilinear": InterpolationMode.BILINEAR, "bicubic": InterpolationMode.BICUBIC}
PILLOW = {"nearest-exact": Image.Resampling.NEAREST, "bilinear": Image.Resampling.BILINEAR,
          "bicubic": Image.Resampling.BICUBIC, "area": Image.Resampling.BOX}
SHAPES = [(1, 1), (1, 4096), (4096, 1), (2, 1500), (5, 7), (37, 53), (64, 64), (200, 300), (301, 199), (768, 1024)]
TARGETS = [(1, 1), (1, 77), (77, 1), (2, 3), (31, 64), (64, 31), (224, 224), (300, 200), (640, 480), (3, 2048),
           (2048, 2)]
PIXELS = 3 << 20  # results are not larger
LEVEL, PART = 1.0, 1e-3


# ------------------------------------------------------------------------------------------------------- images


def drawn(pattern: str, shape: tuple[int, int], channels: int, bits: int, seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    most = 2**bits - 1
    y, x, c = np.ogrid[:shape[0], :shape[1], :channels]
    if pattern == "noise":
        values = draw.random((*shape, channels))
    elif pattern == "gradient":
        values = (x / max(shape[1] - 1, 1) + y / max(shape[0] - 1, 1) + c / 4) % 1.75 / 1.75
    elif pattern == "edges":
        values = ((x // 7 + c) % 3 == 0) ^ (y * 3 > x + 11 * c)
    else:
        values = (x + y + c) % 2
    return np.round(np.broadcast_to(values, (*shape, channels)) * most).astype(np.uint16 if bits > 8 else np.uint8)


def write_pam(path: Path, pixels: np.ndarray) -> None:
    height, width, channels = pixels.shape
    kind = ["GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"][channels - 1]
    head = (f"P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {channels}\nMAXVAL {256**pixels.itemsize - 1}\n"
            f"TUPLTYPE {kind}\nENDHDR\n")
    path.write_bytes(head.encode() + pixels.astype(">u2" if pixels.itemsize == 2 else np.uint8).tobytes())


class Images:
    """A data set of l3, and the images that it was made of."""

    def __init__(self, work: Path, name: str, pixels: Sequence[np.ndarray], command: str) -> None:
        self.name, self.pixels, self.path = name, list(pixels), work / name
        sources = work / f"{name}-images"
        sources.mkdir()
        for i, image in enumerate(self.pixels):
            write_pam(sources / f"{i:05}.pam", image)
        subprocess.run([command, "convert", "-q", "--method", "fast", sources, self.path], check=True)
        self.data = l3.Dataset(self.path)
        self.bits = 8 * self.pixels[0].itemsize
        self.channels = self.pixels[0].shape[2]

    def loaded(self, numbers: Sequence[int], epochs: int = 1, **options: Any) -> Iterator[tuple[int, int, np.ndarray]]:
        """Number, epoch and result (HWC) of each image."""
        if not numbers:
            return
        with l3.Loader(self.data, 4, shuffle=False, samples=list(numbers), layout="HWC", batch="list", threads=2,
                       last_batch="uneven", **options) as loader:
            for epoch in range(epochs):
                for images, _, ids in loader:
                    for image, number in zip(images, ids, strict=True):
                        yield int(number), epoch, np.asarray(image)


def real(folders: Sequence[Path], count: int) -> list[np.ndarray]:
    found = []
    for path in sorted(path for folder in folders for path in folder.rglob("*.png")):
        with Image.open(path) as image:
            if image.mode == "RGB" and min(image.size) >= 200 and image.width * image.height < 1 << 20:
                found.append(np.asarray(image))
    return found[::max(len(found) // count, 1)][:count]


# ---------------------------------------------------------------------------------------------------- references


def planes(pixels: np.ndarray, as_float: bool) -> torch.Tensor:
    values = pixels.astype(np.float32) / (256**pixels.itemsize - 1) if as_float else pixels
    return torch.from_numpy(np.array(values)).permute(2, 0, 1)


def by_torchvision(pixels: np.ndarray, size: list[int] | None, mode: str, as_float: bool,
                   longest: int | None = None) -> np.ndarray:
    """Samples of 16 bits, which torch does not resize, come as parts of the range.

    Images of one channel are resized as three: torch 2.15 makes one row of an image of one channel and one column.
    """
    if pixels.shape[2] == 1:
        return by_torchvision(np.repeat(pixels, 3, 2), size, mode, as_float, longest)[:, :, :1]
    if mode.startswith("nearest"):  # the samples themselves
        image = torch.from_numpy(pixels.astype(np.float32)).permute(2, 0, 1)
        resized = functional.resize(image, size, MODES[mode], max_size=longest)  # type: ignore[arg-type]
        samples = resized.permute(1, 2, 0).numpy().astype(pixels.dtype)
        return samples.astype(np.float32) / (256**pixels.itemsize - 1) if as_float else samples
    image = planes(pixels, as_float or pixels.itemsize == 2)
    resized = functional.resize(image, size, MODES[mode], max_size=longest,  # type: ignore[arg-type]
                                antialias=True)
    return resized.permute(1, 2, 0).numpy()


def by_pillow(pixels: np.ndarray, size: Sequence[int], mode: str, as_float: bool) -> np.ndarray:
    """One channel at a time; floats in Pillow's mode F.

    Pillow rounds bytes between its passes, and chooses the order of the passes by the sizes. Two calls make it resize
    along the rows first, as torchvision always does; in the other order bicubic differs by up to 19 levels. In the same
    order it differs from torchvision by one, because its weights have more bits, and so from l3 by up to two.
    """
    fine = as_float or pixels.itemsize == 2
    values = pixels.astype(np.float32) / (256**pixels.itemsize - 1) if fine else pixels
    channels = [Image.fromarray(np.ascontiguousarray(values[:, :, c])).resize((size[1], pixels.shape[0]), PILLOW[mode])
                .resize((size[1], size[0]), PILLOW[mode]) for c in range(pixels.shape[2])]
    return np.stack([np.asarray(channel) for channel in channels], axis=2)


def pixels_by_torchvision(shape: Sequence[int], size: list[int] | None, longest: int | None) -> int:
    """0 if torchvision refuses, because a side would have no pixel. l3 gives it one."""
    meta = torch.empty((1, *shape[:2]), dtype=torch.uint8, device="meta")
    try:
        return functional.resize(meta, size, MODES["nearest"], max_size=longest).numel()  # type: ignore[arg-type]
    except RuntimeError:
        return 0


# -------------------------------------------------------------------------------------------------------- report


class Report:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, str, str], dict[str, Any]] = {}

    def row(self, what: str, mode: str, against: str, limit: float | None) -> dict[str, Any]:
        return self.rows.setdefault((what, mode, against), {
            "what": what, "mode": mode, "against": against, "cases": 0, "most": 0.0, "limit": limit, "worst": ""})

    def compare(self, what: str, mode: str, against: str, found: np.ndarray, wanted: np.ndarray, case: str,
                exact: bool = False, judged: bool = True, level: float = LEVEL) -> None:
        """In levels if both are samples of 8 bits, else in parts of the range."""
        levels = found.dtype == np.uint8 and wanted.dtype == np.uint8
        # Samples that are not changed are scaled to floats, which may differ in the last bit.
        equal = 2e-7 if found.dtype == np.float32 else 0.0
        limit = (equal if exact else level if levels else PART) if judged else None
        row = self.row(what, mode, against, limit)
        row["cases"] += 1
        if found.shape != wanted.shape:
            difference = math.inf
            case += f": {found.shape[:2]} instead of {wanted.shape[:2]}"
        else:
            difference = float(np.abs(in_range(found, levels) - in_range(wanted, levels)).max())
        if difference > row["most"] or not row["worst"]:
            row["most"], row["worst"] = difference, case

    def failed(self) -> list[dict[str, Any]]:
        return [row for row in self.rows.values() if row["limit"] is not None and row["most"] > row["limit"]]

    def table(self) -> str:
        lines = ["| what | mode | against | cases | largest difference | limit | where |",
                 "|---|---|---|--:|--:|--:|---|"]
        for row in self.rows.values():
            limit = "\u2013" if row["limit"] is None else f"{row['limit']:g}"
            bad = " **exceeded**" if row in self.failed() else ""
            lines.append(f"| {row['what']} | {row['mode']} | {row['against']} | {row['cases']} | {row['most']:.4g} | "
                         f"{limit}{bad} | {row['worst']} |")
        return "\n".join(lines)


def in_range(values: np.ndarray, levels: bool) -> np.ndarray:
    if levels or values.dtype.kind == "u":
        return values.astype(np.float64) / (1 if levels else 256**values.itemsize - 1)
    return np.clip(values.astype(np.float64), 0, 1)


# ---------------------------------------------------------------------------------------------------- comparisons


def kind(images: Images, dtype: str | None) -> str:
    names = {1: "gray", 2: "gray, alpha", 3: "RGB", 4: "RGBA"}
    return f"{names[images.channels]} {images.bits}" + (f" as {dtype}" if dtype else "")


def resize_exactly(images: Images, report: Report, targets: Sequence[tuple[int, int]],
                   numbers: Sequence[int] | None = None) -> None:
    chosen = list(range(len(images.pixels))) if numbers is None else list(numbers)
    for size in targets:
        for mode in [*MODES, "area"]:
            for dtype in (None, "float32"):
                what = f"resize, {kind(images, dtype)}"
                for number, _, found in images.loaded(chosen, resize=size, interpolation=mode, dtype=dtype):
                    pixels = images.pixels[number]
                    case = f"image {number}, {pixels.shape[:2]} to {size}"
                    exact = mode.startswith("nearest")
                    if mode in MODES:
                        report.compare(what, mode, "torchvision", found,
                                       by_torchvision(pixels, list(size), mode, dtype is not None), case, exact)
                    if mode in PILLOW:
                        # Pillow and torchvision choose other samples for nearest-exact where two are equally near.
                        report.compare(what, mode, "Pillow", found, by_pillow(pixels, size, mode, dtype is not None),
                                       case, judged=not exact, level=2 * LEVEL if mode == "bicubic" else LEVEL)


def resize_sides(images: Images, report: Report) -> None:
    for edge in (1, 3, 17, 64, 256):
        for side in ("resize", "longest"):
            size, longest = ([edge], None) if side == "resize" else (None, edge)
            numbers = [i for i, pixels in enumerate(images.pixels)
                       if 0 < pixels_by_torchvision(pixels.shape, size, longest) <= PIXELS]
            options: dict[str, Any] = {side: edge}
            for number, _, found in images.loaded(numbers, interpolation="bilinear", **options):
                pixels = images.pixels[number]
                wanted = by_torchvision(pixels, size, "bilinear", False, longest)
                report.compare("shorter side" if side == "resize" else "longest side", "bilinear", "torchvision", found,
                               wanted, f"{pixels.shape[:2]} to {edge}")


def crop_centre(images: Images, report: Report) -> None:
    for size in ((1, 1), (5, 3), (36, 50), (37, 51), (33, 48)):
        numbers = [i for i, p in enumerate(images.pixels) if p.shape[0] >= size[0] and p.shape[1] >= size[1]]
        for number, _, found in images.loaded(numbers, crop=size, crop_mode="centre"):
            pixels = images.pixels[number]
            wanted = functional.center_crop(planes(pixels, False), list(size)).permute(1, 2, 0).numpy()
            report.compare("crop in the centre", "", "torchvision", found, wanted, f"{pixels.shape[:2]} to {size}",
                           True)
    numbers = [i for i, p in enumerate(images.pixels) if min(p.shape[:2]) >= 37]
    for number, _, found in images.loaded(numbers, resize=256, crop=224, crop_mode="centre", interpolation="bilinear"):
        resized = functional.resize(planes(images.pixels[number], False), [256], antialias=True)
        wanted = functional.center_crop(resized, [224, 224]).permute(1, 2, 0).numpy()
        report.compare("resize 256 and crop 224", "bilinear", "torchvision", found, wanted,
                       f"{images.pixels[number].shape[:2]}")


def pad(images: Images, report: Report) -> None:
    size = (320, 311)
    numbers = [i for i, p in enumerate(images.pixels) if p.shape[0] <= size[0] and p.shape[1] <= size[1]]
    for mode, torch_mode in (("value", "constant"), ("edge", "edge"), ("reflect", "reflect")):
        for value in (0, 17) if mode == "value" else (0,):
            more: dict[str, Any] = {"pad_value": value} if value else {}
            for number, _, found in images.loaded(numbers, pad=size, pad_mode=mode, **more):
                pixels = images.pixels[number]
                height, width = pixels.shape[:2]
                top, left = (size[0] - height) // 2, (size[1] - width) // 2
                bottom, right = size[0] - height - top, size[1] - width - left
                case = f"{pixels.shape[:2]} to {size}, value {value}"
                if mode != "reflect" or (bottom < height and right < width):
                    wanted = functional.pad(planes(pixels, False), [left, top, right, bottom], value, torch_mode)
                    report.compare("pad", mode, "torchvision", found, wanted.permute(1, 2, 0).numpy(), case, True)
                edges = ((top, bottom), (left, right), (0, 0))
                again = np.pad(pixels, edges, constant_values=value) if mode == "value" else \
                    np.pad(pixels, edges, mode=mode)  # type: ignore[call-overload]
                report.compare("pad", mode, "NumPy", found, again, case, True)


def letterbox(images: Images, report: Report) -> None:
    for size in ((64, 64), (100, 37), (31, 200)):
        for number, _, found in images.loaded(range(len(images.pixels)), letterbox=size, interpolation="bilinear"):
            pixels = images.pixels[number]
            height, width = pixels.shape[:2]
            if size[1] * height <= size[0] * width:  # the width decides
                inner = [min(max((2 * height * size[1] + width) // (2 * width), 1), size[0]), size[1]]
            else:
                inner = [size[0], min(max((2 * width * size[0] + height) // (2 * height), 1), size[1])]
            top, left = (size[0] - inner[0]) // 2, (size[1] - inner[1]) // 2
            resized = functional.resize(planes(pixels, False), inner, antialias=True)
            wanted = functional.pad(resized, [left, top, size[1] - inner[1] - left, size[0] - inner[0] - top])
            report.compare("letterbox", "bilinear", "torchvision", found, wanted.permute(1, 2, 0).numpy(),
                           f"{pixels.shape[:2]} to {size}")


def random_resized_crops(images: Images, report: Report, epochs: int) -> None:
    options: dict[str, Any] = {"random_resized_crop": (48, 64), "flip": True, "seed": 5}
    with l3.Loader(images.data, 1, **options) as loader:
        for number, epoch, found in images.loaded(range(len(images.pixels)), epochs, **options):
            told = loader.explain(number, epoch)
            x, y, width, height = told.box
            pixels = images.pixels[number]
            wanted = functional.resized_crop(planes(pixels, False), y, x, height, width, [48, 64], antialias=True)
            wanted = wanted.flip(-1) if told.flip else wanted
            report.compare("random resized crop", "bilinear", "torchvision", found, wanted.permute(1, 2, 0).numpy(),
                           f"{pixels.shape[:2]}, box {tuple(told.box)}, flip {told.flip}, epoch {epoch}")


# ------------------------------------------------------------------------------------------------- distributions


def kolmogorov_smirnov(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """The largest distance of the distributions, and how likely one at least as large is if they are the same."""
    both = np.sort(np.concatenate([a, b]))
    distance = float(np.abs(np.searchsorted(np.sort(a), both, "right") / len(a)
                            - np.searchsorted(np.sort(b), both, "right") / len(b)).max())
    size = math.sqrt(len(a) * len(b) / (len(a) + len(b)))
    x = (size + 0.12 + 0.11 / size) * distance
    if x < 0.3:
        return distance, 1.0  # the sum below converges slowly there
    terms = (2 * (-1) ** (k - 1) * math.exp(-2 * k * k * x * x) for k in range(1, 101))
    return distance, min(max(sum(terms), 0.0), 1.0)


def measures(boxes: np.ndarray, height: int, width: int, draw: np.random.Generator) -> dict[str, np.ndarray]:
    """Of boxes x, y, width, height. Places are parts of the room that there is; uniform noise fills the steps."""
    def place(at: np.ndarray, room: np.ndarray) -> np.ndarray:
        return (at + draw.random(len(at))) / (room + 1)

    return {"area": boxes[:, 2] * boxes[:, 3] / (width * height), "width / height": boxes[:, 2] / boxes[:, 3],
            "x": place(boxes[:, 0], width - boxes[:, 2]), "y": place(boxes[:, 1], height - boxes[:, 3])}


def distributions(work: Path, command: str, count: int) -> list[dict[str, Any]]:
    shapes = [(375, 500), (500, 333), (224, 224), (64, 48), (100, 800), (600, 120)]
    ways: list[dict[str, Any]] = [{}, {"scale": (0.3, 0.9), "ratio": (0.5, 1.0)}]
    images = Images(work, "boxes", [drawn("gradient", shape, 3, 8, 1) for shape in shapes], command)
    draw = np.random.default_rng(1)
    torch.manual_seed(1)
    rows = []
    each = max(count // (len(shapes) * len(ways)), 1)
    for options in ways:
        crop = RandomResizedCrop(32, **options)
        with l3.Loader(images.data, 1, random_resized_crop=32, seed=3, flip=True, **options) as loader:
            for number, (height, width) in enumerate(shapes):
                told = [loader.explain(number, epoch) for epoch in range(each)]
                ours = np.array([one.box for one in told], np.float64)
                meta = torch.empty((1, height, width), dtype=torch.uint8, device="meta")
                drawn_boxes = [crop.get_params(meta, list(crop.scale), list(crop.ratio)) for _ in range(each)]
                theirs = np.array([(x, y, w, h) for y, x, h, w in drawn_boxes], np.float64)
                mirrored = sum(bool(one.flip) for one in told) / each
                rows.append({"shape": [height, width], "options": str(options), "of": "flip", "boxes": each,
                             "distance": abs(mirrored - 0.5),
                             "likely": math.erfc(abs(mirrored - 0.5) * math.sqrt(2 * each))})
                wanted = measures(theirs, height, width, draw)
                for name, values in measures(ours, height, width, draw).items():
                    distance, likely = kolmogorov_smirnov(values, wanted[name])
                    rows.append({"shape": [height, width], "options": str(options), "of": name, "boxes": each,
                                 "distance": distance, "likely": likely})
    return rows


# ----------------------------------------------------------------------------------------------------------- main


def all_images(work: Path, given: argparse.Namespace) -> Iterator[Images]:
    patterns = ("noise", "gradient", "edges", "checkers")
    for channels, bits in ((3, 8), (1, 8), (4, 8), (2, 8), (3, 16), (1, 16), (4, 16)):
        pixels = [drawn(pattern, shape, channels, bits, seed) for seed, (shape, pattern) in
                  enumerate((shape, pattern) for shape in SHAPES for pattern in patterns)]
        if given.quick or (channels, bits) not in ((3, 8), (3, 16)):
            pixels = pixels[::3]
        if (channels, bits) == (3, 8):
            pixels += real(given.folders, 4 if given.quick else 12)
        yield Images(work, f"{channels}x{bits}", pixels, given.l3)


def any_sizes(work: Path, given: argparse.Namespace, report: Report, count: int) -> None:
    """Sizes drawn from 1 to 4096, with ratios that may be extreme."""
    draw = random.Random(7)

    def size() -> tuple[int, int]:
        while True:
            height, width = (round(math.exp(draw.uniform(0, math.log(4096)))) for _ in range(2))
            if height * width <= PIXELS // 4:
                return height, width

    pixels = [drawn(draw.choice(("noise", "gradient", "edges", "checkers")), size(), 3, 8, i) for i in range(count)]
    images = Images(work, "any", pixels, given.l3)
    for number in range(count):
        resize_exactly(images, report, [size()], [number])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--l3", default="l3", help="the command")
    parser.add_argument("--out", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--boxes", type=int, default=100_000, help="to draw for the distributions")
    parser.add_argument("--quick", action="store_true", help="fewer images and sizes")
    given = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="l3-equality-") as folder:
        work = Path(folder)
        for images in all_images(work, given):
            say(f"{images.name}: {len(images.pixels)} images")
            resize_exactly(images, report, TARGETS[::3] if given.quick else TARGETS)
            if images.bits == 8:
                resize_sides(images, report)
                letterbox(images, report)
                crop_centre(images, report)
                pad(images, report)
                random_resized_crops(images, report, 2 if given.quick else 5)
        say("any sizes")
        any_sizes(work, given, report, 20 if given.quick else 150)
        say("boxes")
        rows = distributions(work, given.l3, given.boxes)
    print(report.table())
    unlikely = min(rows, key=lambda row: row["likely"])
    print(f"\n{given.boxes} boxes, {len(rows)} comparisons of distributions. The least likely: {unlikely['of']} in "
          f"images of {unlikely['shape']}, options {unlikely['options']}: distance {unlikely['distance']:.4f}, "
          f"probability {unlikely['likely']:.3g}")
    if given.out:
        record = record_of("torchvision_equality.py", rows=list(report.rows.values()), distributions=rows,
                           versions=versions("torch", "torchvision", "pillow", "numpy", "l3"))
        given.out.write_text(json.dumps(record, indent=1) + "\n")
    # With some sixty comparisons, one below 1e-5 is no accident.
    return 1 if report.failed() or unlikely["likely"] < 1e-5 else 0


if __name__ == "__main__":
    sys.exit(main())
