#!/usr/bin/env python3
"""Trains the same small network through torchvision over PNG files and through l3.Loader, and compares accuracies.

    PYTHONPATH=build/release/python bench/training_accuracy.py FOLDER... [--l3 COMMAND] [--out FILE]

Takes eight photographs of the folders. Images to train with are large parts of them, images to test with are small
parts, both of many sizes, with changed colours and noise; which photograph an image comes from is to be learned. So a
training needs random crops of other scales. Each way trains with --seeds seeds, once with random resized crops and once
with whole images resized; mirrored in both cases. It tests with the shorter side resized and a crop in the centre,
through its own code. Exit status 1 if the mean accuracies of the two ways differ by more than three standard errors and
one percent. Takes some minutes on two processors.

Packages: torch torchvision pillow numpy.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import l3
import numpy as np
import torch
from PIL import Image
from torch import nn
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2
from training_images import MEAN, STD, photographs, record_of, say, versions

CLASSES, SIDE, RESIZED, BATCH = 8, 48, 54, 32
Batches = Iterator[tuple[torch.Tensor, torch.Tensor]]


# ------------------------------------------------------------------------------------------------------- images


def make_images(to: Path, photographs_: Sequence[Path], each: int, part: tuple[float, float], seed: int) -> None:
    """`each` images of each photograph. `part` is how much of its area an image shows."""
    draw = np.random.default_rng(seed)
    for number, path in enumerate(photographs_):
        folder = to / f"class{number}"
        folder.mkdir(parents=True)
        with Image.open(path) as image:
            photograph = image.convert("RGB")
        for i in range(each):
            share = draw.uniform(*part) ** 0.5
            width, height = photograph.width * share, photograph.height * share
            left, top = draw.uniform(0, photograph.width - width), draw.uniform(0, photograph.height - height)
            longer = draw.uniform(80, 200)
            size = [max(round(edge * longer / max(width, height)), 24) for edge in (width, height)]
            reduced = photograph.resize((size[0], size[1]), Image.Resampling.BICUBIC,
                                        box=(left, top, left + width, top + height))
            values = np.asarray(reduced, np.float64)
            values = (values - 128) * draw.uniform(0.5, 1.3) + 128 + draw.uniform(-40, 40)  # contrast, brightness
            values = values * draw.uniform(0.6, 1.4, 3) + draw.normal(0, 12, values.shape)  # colours, noise
            Image.fromarray(np.clip(values, 0, 255).astype(np.uint8)).save(folder / f"{i:04}.png")


# --------------------------------------------------------------------------------------------------------- ways


class Torchvision:
    name = "torchvision, PNG"

    def __init__(self, work: Path) -> None:
        self.work = work

    def batches(self, folder: str, transforms: list[Any], shuffle: bool, epochs: int) -> Iterator[Batches]:
        values = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
        data = ImageFolder(self.work / folder, v2.Compose([*transforms, *values]))
        loader = torch.utils.data.DataLoader(data, BATCH, shuffle=shuffle, num_workers=2, drop_last=shuffle,
                                             persistent_workers=True)
        for _ in range(epochs):
            yield iter(loader)

    def train(self, crops: bool, seed: int, epochs: int) -> Iterator[Batches]:
        first = v2.RandomResizedCrop(SIDE, antialias=True) if crops else v2.Resize((SIDE, SIDE), antialias=True)
        return self.batches("train", [first, v2.RandomHorizontalFlip()], True, epochs)

    def test(self) -> Batches:
        return next(self.batches("test", [v2.Resize(RESIZED, antialias=True), v2.CenterCrop(SIDE)], False, 1))


class L3:
    name = "l3.Loader"

    def __init__(self, work: Path) -> None:
        self.work = work

    def batches(self, folder: str, epochs: int, **options: Any) -> Iterator[Batches]:
        with l3.Loader(self.work / folder, BATCH, dtype="float32", mean=MEAN, std=STD, threads=2,
                       **options) as loader:
            for _ in range(epochs):
                yield ((torch.from_numpy(images), torch.from_numpy(labels)) for images, labels, _ in loader)

    def train(self, crops: bool, seed: int, epochs: int) -> Iterator[Batches]:
        first: dict[str, Any] = {"random_resized_crop": SIDE} if crops else {"resize": (SIDE, SIDE)}
        return self.batches("train-l3", epochs, flip=True, seed=seed, last_batch="drop", **first)

    def test(self) -> Batches:
        for epoch in self.batches("test-l3", 1, resize=RESIZED, crop=SIDE, crop_mode="centre", shuffle=False,
                                  last_batch="uneven"):
            yield from epoch


# ----------------------------------------------------------------------------------------------------- training


class Block(nn.Module):
    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels))
        self.beside = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu(self.main(images) + self.beside(images))


def small_resnet() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), Block(16, 16, 1),
                         Block(16, 32, 2), Block(32, 64, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, CLASSES))


def accuracy(way: Torchvision | L3, crops: bool, seed: int, epochs: int, steps: int) -> float:
    torch.manual_seed(seed)
    network = small_resnet()
    optimizer = torch.optim.SGD(network.parameters(), 0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, epochs * steps)
    for batches in way.train(crops, seed, epochs):
        for images, labels in batches:
            loss = nn.functional.cross_entropy(network(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()
    right = count = 0
    with torch.no_grad():
        for images, labels in way.test():
            right += int((network(images).argmax(1) == labels).sum())
            count += len(labels)
    return right / count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--l3", default="l3", help="the command")
    parser.add_argument("--out", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--train", type=int, default=64, help="images of each class")
    parser.add_argument("--test", type=int, default=60, help="images of each class")
    given = parser.parse_args()
    if given.seeds < 3:
        parser.error("--seeds must be at least 3: the standard error comes from their spread")
    found = photographs(given.folders, 500)
    if len(found) < CLASSES:
        parser.error(f"the folders have {len(found)} RGB images of at least 500 x 500 pixels, but {CLASSES} are needed")
    chosen = found[::len(found) // CLASSES][:CLASSES]
    torch.set_num_threads(1)  # more only wait for each other, beside two that load
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="l3-accuracy-") as folder:
        work = Path(folder)
        make_images(work / "train", chosen, given.train, (0.5, 1.0), 1)
        make_images(work / "test", chosen, given.test, (0.08, 0.5), 2)
        for name in ("train", "test"):
            subprocess.run([given.l3, "convert", "-q", work / name, work / f"{name}-l3"], check=True)
        ways: list[Torchvision | L3] = [Torchvision(work), L3(work)]
        steps = CLASSES * given.train // BATCH
        for crops in (True, False):
            results: dict[str, list[float]] = {way.name: [] for way in ways}
            seconds = dict.fromkeys(results, 0.0)
            for seed in range(given.seeds):
                for way in ways:
                    begun = time.monotonic()
                    results[way.name].append(accuracy(way, crops, seed, given.epochs, steps))
                    seconds[way.name] += time.monotonic() - begun
                    say(f"{'random resized crops' if crops else 'whole images'}, seed {seed}, {way.name}: "
                        f"{results[way.name][-1]:.1%}")
            rows += [{"input": "random resized crops" if crops else "whole images", "way": name,
                      "accuracies": values, "mean": statistics.mean(values),
                      "deviation": statistics.stdev(values),
                      "seconds": seconds[name] / len(values)} for name, values in results.items()]
    print("| input | way | accuracy | deviation | seconds |\n|---|---|--:|--:|--:|")
    for row in rows:
        print(f"| {row['input']} | {row['way']} | {row['mean']:.1%} | {row['deviation']:.1%} | {row['seconds']:.0f} |")
    agree = True
    for theirs, ours in zip(rows[::2], rows[1::2], strict=True):
        error = math.sqrt((theirs["deviation"] ** 2 + ours["deviation"] ** 2) / given.seeds)
        difference = ours["mean"] - theirs["mean"]
        within = abs(difference) <= 3 * error + 0.01
        agree = agree and within
        print(f"{ours['input']}: l3 - torchvision = {difference:+.2%}, standard error {error:.2%}: "
              f"{'agree' if within else 'DIFFER'}")
    if given.out:
        record = record_of("training_accuracy.py", classes=CLASSES, side=SIDE, seeds=given.seeds, epochs=given.epochs,
                           train=given.train * CLASSES, test=given.test * CLASSES, agree=agree, rows=rows,
                           versions=versions("torch", "torchvision", "pillow", "numpy", "l3"))
        given.out.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
