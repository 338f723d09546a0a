#!/usr/bin/env python3
"""Compares l3.Loader with torch's DataLoader on PNG files: images per second into normalised torch tensors.

Usage: loader_torch.py SET PNG_FOLDER [--device cuda] [--workers 16] [--batch-size 16] [--rounds 5]

Make SET from PNG_FOLDER with `l3 convert`. Only the images of the most common shape are used, uncropped. Pillow and
OpenCV, if installed, decode the PNG files in worker processes. The device then converts each batch to normalised
float16 planes (float32 on a CPU, where torch is slow at half precision). The first round, which is not counted, loads
all files into the page cache. The ways take turns, and the results are medians.
"""

from __future__ import annotations

import argparse
import collections
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import l3
import numpy as np
import torch

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def read_with_pillow(path: str) -> np.ndarray:
    from PIL import Image
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def read_with_opencv(path: str) -> np.ndarray:
    import cv2
    return cv2.cvtColor(cv2.imread(path, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)


class Files(torch.utils.data.Dataset):  # type: ignore[type-arg]
    def __init__(self, paths: list[str], read: Callable[[str], np.ndarray]) -> None:
        self.paths, self.read = paths, read

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(self.read(self.paths[index]).transpose(2, 0, 1)))


def png_batches(loader: Any, device: torch.device, dtype: torch.dtype) -> Iterator[torch.Tensor]:
    mean = torch.tensor(MEAN, device=device, dtype=torch.float32).view(1, 3, 1, 1) * 255
    std = torch.tensor(STD, device=device, dtype=torch.float32).view(1, 3, 1, 1) * 255
    for batch in loader:
        yield batch.to(device, non_blocking=True).float().sub_(mean).div_(std).to(dtype)


def l3_batches(loader: l3.Loader) -> Iterator[torch.Tensor]:
    for images, _, _ in loader:
        yield torch.from_dlpack(images)


def drain(batches: Iterator[torch.Tensor], device: torch.device) -> float:
    """Returns the seconds of an epoch, from the request for the first batch to the arrival of the last one."""
    begun = time.perf_counter()
    count = sum(len(batch) for batch in batches)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - begun) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set")
    parser.add_argument("png_folder", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=1, help="how often each file appears in an epoch")
    given = parser.parse_args()
    device = torch.device(given.device)
    dtype = torch.float16 if device.type == "cuda" else torch.float32

    data = l3.Dataset(given.set)
    shapes = collections.defaultdict(list)
    for sample in data:
        if sample.is_image and (sample.channels, sample.bits) == (3, 8):
            shapes[sample.width, sample.height].append(sample)
    if not shapes:
        parser.error(f"{given.set} has no RGB images of 8 bits")
    (width, height), samples = max(shapes.items(), key=lambda item: len(item[1]))
    paths = [str(given.png_folder / sample.name) for sample in samples] * given.repeat

    ways: dict[str, Callable[[], Iterator[torch.Tensor]]] = {}
    for name, read in (("png, Pillow", read_with_pillow), ("png, OpenCV", read_with_opencv)):
        try:
            read(paths[0])
        except ImportError:
            print(f"{name}: not installed")
            continue
        png = torch.utils.data.DataLoader(Files(paths, read), given.batch_size, shuffle=True, num_workers=given.workers,
                                          pin_memory=device.type == "cuda", persistent_workers=given.workers > 0)
        ways[f"{name}, {given.workers} workers"] = lambda png=png: png_batches(png, device, dtype)  # type: ignore[misc]
    loader = l3.Loader(data, given.batch_size, samples=[sample.number for sample in samples], seed=1, mean=MEAN,
                       std=STD, dtype="float16" if dtype == torch.float16 else "float32", device=given.device)

    def epochs() -> Iterator[torch.Tensor]:
        for _ in range(given.repeat):
            yield from l3_batches(loader)

    ways["l3.Loader"] = epochs
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for round_ in range(given.rounds + 1):
        for name, begin in ways.items():
            taken = drain(begin(), device)
            if round_:
                seconds[name].append(taken)

    print(f"{len(samples)} images of {width} x {height} x 3, batches of {given.batch_size}, {given.rounds} rounds, "
          f"torch {torch.__version__}, {torch.cuda.get_device_name(device) if device.type == 'cuda' else 'CPU'}")
    l3_median = statistics.median(seconds["l3.Loader"])
    for name, taken in seconds.items():
        median = statistics.median(taken)
        print(f"{name:28} {1 / median:10.1f} images/s   l3 / this {median / l3_median:6.2f}")
    times = loader.timeline()[-given.rounds * given.repeat * len(loader):]
    busy = sum(of.decoded - of.copied for of in times if of.copied)
    if busy:
        wall = l3_median * len(samples) * given.repeat * given.rounds * 1e9
        print(f"the GPU decodes {100 * busy / wall:.1f} % of that time")


if __name__ == "__main__":
    main()
