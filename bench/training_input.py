#!/usr/bin/env python3
"""Measures how fast an ImageNet-like set feeds a training: l3.Loader beside torchvision, DALI and raw pixels.

    PYTHONPATH=build/release/python bench/training_input.py CACHE [FOLDER...] [--l3 COMMAND] [--out FILE]

CACHE is a folder for the set, about 1.7 GB for each 1000 images. The first run makes it from the photographs in each
FOLDER: PNG files, JPEG files, lossless WebP files, raw pixels in one file, and data sets of l3 (fast and dense) with
the pixels of the PNG files; and "small" ones, which `l3 convert --resize shorter=256` makes of the JPEG files. Later
runs use it again. The images have different sizes, around 500 x 375.

Each way delivers batches of random resized crops of 224 x 224, half of them mirrored, normalised, as float16 planes in
the memory of the CPU, with two threads or two worker processes on two processors. In each round the ways take turns,
each in a process of its own. A turn reads all its files once, so that they are in the page cache, takes some batches
that are not counted, and then counts the given number of batches. The results are medians over the rounds. *ms* is the
processor time for an image, of all threads and worker processes. The last columns say how many times less of it that
is than in the better of torchvision's ways for PNG, JPEG and WebP: other work on a machine changes images/s, but hardly
the processor time.

    --ways l3-fast png-pil      measures only these. A way whose packages are missing is named and left out
    --make                      makes the set and measures nothing

Packages: torch torchvision pillow numpy; nvidia-dali-cuda120 and opencv-python-headless if they are to be measured.
Each turn also checks shape, type, mean and deviation of what it delivers.
"""

from __future__ import annotations

import argparse
import collections
import functools
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from training_images import CONVERTED, MEAN, STD, Folder, photographs, record_of, say, versions

SIDE = 224
WARM = 8  # batches: more than any way prepares ahead, so that both ends of what is timed find it equally far ahead
TICKS = os.sysconf("SC_CLK_TCK")
Batches = Iterator[Any]


def endlessly(epochs: Any) -> Batches:
    while True:
        yield from epochs


# ------------------------------------------------------------------------------------------------------------ l3


def with_l3(path: Path, given: argparse.Namespace) -> Batches:
    import l3
    import torch
    loader = l3.Loader(path, given.batch_size, shuffle=True, seed=1, random_resized_crop=SIDE, flip=True,
                       dtype="float16", mean=MEAN, std=STD, layout="CHW", threads=given.threads, last_batch="drop")
    return (torch.from_numpy(images) for images, _, _ in endlessly(loader))


# -------------------------------------------------------------------------------------------------- torchvision


@functools.cache
def constants() -> tuple[Any, Any]:
    import torch
    return (torch.tensor([1 / (255 * s) for s in STD]).view(3, 1, 1),
            torch.tensor([-m / s for m, s in zip(MEAN, STD, strict=True)]).view(3, 1, 1))


def normalised(image: Any) -> Any:
    """uint8 planes as float16. One image at a time stays in the processor's cache, which batches do not. A CPU is
    faster in float32 than in half precision."""
    scale, bias = constants()
    return image.float().mul_(scale).add_(bias).half()


def read_tensor(path: str) -> Any:
    from torchvision import io
    file = io.read_file(path)
    return io.decode_image(file, mode=io.ImageReadMode.RGB)


def torch_batches(data: Any, given: argparse.Namespace) -> Batches:
    import torch
    loader = torch.utils.data.DataLoader(data, given.batch_size, shuffle=True, num_workers=given.threads,
                                         persistent_workers=True, drop_last=True)
    return (images for images, _ in endlessly(loader))


def with_pil(path: Path, given: argparse.Namespace) -> Batches:
    """As in the tutorials: ImageFolder with its own loader, and all transforms for one image at a time."""
    import torch
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2
    transform = v2.Compose([v2.RandomResizedCrop(SIDE), v2.RandomHorizontalFlip(), v2.ToImage(),
                            v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD), v2.ToDtype(torch.float16)])
    return torch_batches(ImageFolder(path, transform), given)


def with_tensors(path: Path, given: argparse.Namespace) -> Batches:
    """The decoders of torchvision, transforms of uint8 tensors, and a faster normalisation than torchvision's."""
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2
    transform = v2.Compose([v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip(), normalised])
    return torch_batches(ImageFolder(path, transform, loader=read_tensor), given)


# -------------------------------------------------------------------------------------------------- raw pixels


def drawn_box(draw: random.Random, width: int, height: int) -> tuple[int, int, int, int]:
    """x, y, width and height, as torchvision draws them but without its tensors, which take longer."""
    for _ in range(10):
        area = width * height * draw.uniform(0.08, 1.0)
        aspect = (4 / 3) ** draw.uniform(-1, 1)
        w, h = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            return draw.randint(0, width - w), draw.randint(0, height - h), w, h
    edge = min(width, height)
    return (width - edge) // 2, (height - edge) // 2, edge, edge


class RawCrops:
    """Crops of the raw file, which is mapped into memory."""

    def __init__(self, folder: Folder, opencv: bool = False) -> None:
        self.index = np.load(folder.index)
        self.memory = np.memmap(folder.raw, np.uint8, "c")  # private: torch wants memory that may be written
        self.opencv = opencv

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        import torch
        offset, height, width, label = (int(value) for value in self.index[number])
        pixels = self.memory[offset:offset + height * width * 3].reshape(height, width, 3)
        x, y, w, h = drawn_box(random, width, height)  # type: ignore[arg-type]  # the module acts as a Random
        crop = pixels[y:y + h, x:x + w]
        mirrored = random.random() < 0.5
        if self.opencv:
            import cv2
            how = cv2.INTER_AREA if w >= SIDE and h >= SIDE else cv2.INTER_LINEAR
            image = torch.from_numpy(cv2.resize(crop, (SIDE, SIDE), interpolation=how)).permute(2, 0, 1)
        else:
            from torchvision.transforms.v2 import functional
            view = torch.from_numpy(crop).permute(2, 0, 1)  # channels last, which the resize is fastest with
            image = functional.resize(view, [SIDE, SIDE], antialias=True)
        return normalised(image.flip(-1) if mirrored else image), label


def with_raw_threads(folder: Folder, given: argparse.Namespace, opencv: bool = False) -> Batches:
    import torch
    torch.set_num_threads(1)
    crops = RawCrops(folder, opencv)

    def fill(batch: Any, numbers: list[int]) -> Any:
        for image, number in zip(batch, numbers, strict=True):
            image.copy_(crops[number][0])
        return batch

    def orders() -> Iterator[list[int]]:
        while True:
            order = torch.randperm(len(crops)).tolist()
            for start in range(0, len(order) - given.batch_size + 1, given.batch_size):
                yield order[start:start + given.batch_size]

    def batches() -> Batches:
        wanted = orders()
        with ThreadPoolExecutor(given.threads) as pool:
            coming = collections.deque(
                pool.submit(fill, torch.empty(given.batch_size, 3, SIDE, SIDE, dtype=torch.float16), next(wanted))
                for _ in range(2 * given.threads))
            while True:
                ready = coming.popleft().result()
                yield ready
                coming.append(pool.submit(fill, ready, next(wanted)))  # its memory again

    if opencv:
        import cv2
        cv2.setNumThreads(1)
    else:
        import torchvision  # noqa: F401 (says here that it is missing)
    return batches()


def with_raw_workers(folder: Folder, given: argparse.Namespace) -> Batches:
    import torchvision  # noqa: F401 (says here that it is missing)
    return torch_batches(RawCrops(folder), given)


# -------------------------------------------------------------------------------------------------------- DALI


def with_dali(path: Path, given: argparse.Namespace) -> Batches:
    import torch
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def
    def pipeline() -> Any:
        files, labels = fn.readers.file(file_root=str(path), random_shuffle=True, name="files")
        images = fn.decoders.image_random_crop(files, device="cpu", output_type=types.RGB, random_area=[0.08, 1.0],
                                               random_aspect_ratio=[3 / 4, 4 / 3])
        images = fn.resize(images, size=[SIDE, SIDE], interp_type=types.INTERP_LINEAR, antialias=True)
        return fn.crop_mirror_normalize(images, dtype=types.FLOAT16, output_layout="CHW",
                                        mean=[255 * m for m in MEAN], std=[255 * s for s in STD],
                                        mirror=fn.random.coin_flip(probability=0.5)), labels

    built = pipeline(batch_size=given.batch_size, num_threads=given.threads, device_id=None, seed=1)
    built.build()

    def batches() -> Batches:
        while True:
            images, _ = built.run()
            yield torch.from_numpy(np.array(images.as_tensor()))  # DALI uses its memory again

    return batches()


WAYS: dict[str, tuple[str, str, Callable[[Folder, argparse.Namespace], Batches]]] = {
    **{form: (f"l3.Loader, {form[3:].replace('-', ', ')}", form,
              lambda folder, given, form=form: with_l3(folder.of(form), given))  # type: ignore[misc]
       for form in CONVERTED},
    "raw-threads": ("raw, mapped, torchvision, threads", "raw", with_raw_threads),
    "raw-workers": ("raw, mapped, torchvision, workers", "raw", with_raw_workers),
    "raw-opencv": ("raw, mapped, OpenCV, threads", "raw", lambda folder, given: with_raw_threads(folder, given, True)),
    **{f"{form}-{name}": (f"{title}, {what}", form,
                          lambda folder, given, form=form, run=run: run(folder.of(form), given))  # type: ignore[misc]
       for form, title in (("png", "PNG"), ("jpeg", "JPEG"), ("webp", "WebP"))
       for name, what, run in (("pil", "torchvision, Pillow", with_pil),
                               ("tensor", "torchvision, tensors", with_tensors), ("dali", "DALI", with_dali))},
}
PEERS = {"png": ("png-pil", "png-tensor"), "jpeg": ("jpeg-pil", "jpeg-tensor"), "webp": ("webp-pil", "webp-tensor")}


# -------------------------------------------------------------------------------------------------------- turns


def processor_seconds() -> float:
    """Of this process and of the workers that it has now."""
    total = time.process_time()
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def read_all(path: Path) -> None:
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file():
            with file.open("rb") as opened:
                while opened.read(1 << 22):
                    pass


def check(images: Any, batch_size: int) -> None:
    import torch
    mean, spread = float(images.float().mean()), float(images.float().std())
    if tuple(images.shape) != (batch_size, 3, SIDE, SIDE) or images.dtype != torch.float16:
        raise RuntimeError(f"batches are {tuple(images.shape)} of {images.dtype}")
    if not (abs(mean) < 1.0 and 0.5 < spread < 2.0):
        raise RuntimeError(f"values have the mean {mean:.2f} and the deviation {spread:.2f}")


def turn(given: argparse.Namespace) -> dict[str, float]:
    """One turn of one way, in this process."""
    import torch
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:given.threads])
    torch.set_num_threads(1)
    torch.manual_seed(given.seed)
    random.seed(given.seed)
    folder = Folder(given.cache)
    _, form, begin = WAYS[given.turn]
    read_all(folder.of(form))
    batches = begin(folder, given)
    for number in range(WARM):
        images = next(batches)
        if number < 2:  # the rest of them undoes the lead that the checks give
            check(images, given.batch_size)
    used, begun = processor_seconds(), time.perf_counter()
    for _ in range(given.batches):
        next(batches)
    seconds, used = time.perf_counter() - begun, processor_seconds() - used
    count = given.batches * given.batch_size
    return {"images_per_second": count / seconds, "processor_ms_per_image": 1000 * used / count}


def missing(way: str) -> str:
    """The package that a way needs and that is not installed, or an empty string."""
    import importlib.util
    needed = ["torch"]
    needed += ["l3"] if way.startswith("l3") else ["nvidia.dali"] if way.endswith("dali") else ["torchvision"]
    needed += ["cv2"] if way.endswith("opencv") else []
    for name in needed:
        try:
            if importlib.util.find_spec(name) is None:
                return name
        except ModuleNotFoundError:
            return name
    return ""


def take_turns(given: argparse.Namespace, ways: list[str]) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for number in range(given.rounds):
        for way in ways if number % 2 == 0 else ways[::-1]:
            words = [sys.executable, __file__, str(given.cache), "--turn", way, "--threads", str(given.threads),
                     "--batch-size", str(given.batch_size), "--batches", str(given.batches), "--seed", str(number)]
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"{way} ended with {done.returncode}")
            figures = json.loads(done.stdout.splitlines()[-1])
            say(f"round {number + 1} of {given.rounds}: {way:12} {figures['images_per_second']:8.1f} images/s, "
                f"{figures['processor_ms_per_image']:.2f} ms")
            found[way].append(figures)
    return found


def medians(turns: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, Any]]:
    ways: dict[str, dict[str, Any]] = {}
    for way, figures in turns.items():
        speeds = [one["images_per_second"] for one in figures]
        ways[way] = {"title": WAYS[way][0], "form": WAYS[way][1], "images_per_second": statistics.median(speeds),
                     "least": min(speeds), "most": max(speeds),
                     "processor_ms_per_image": statistics.median(one["processor_ms_per_image"] for one in figures)}
    for form, peers in PEERS.items():
        best = min((ways[peer]["processor_ms_per_image"] for peer in peers if peer in ways), default=None)
        for row in ways.values():
            row[f"times_{form}"] = best / row["processor_ms_per_image"] if best else None
    return ways


def table(record: dict[str, Any]) -> str:
    size, count = record["bytes"], record["images"]
    lines = [f"{record['machine']}, {record['threads']} of {record['processors']} processors; commit "
             f"{record['commit']}, {record['date']}.",
             f"{count} images, {record['pixels'] / 1e6:.0f} million pixels; batches of {record['batch_size']}, "
             f"{record['batches']} in a turn, {record['rounds']} rounds; "
             + ", ".join(f"{name} {version}" for name, version in record["versions"].items()) + ".", "",
             "| way | kB/image | images/s | least to most | ms | / PNG | / JPEG | / WebP |",
             "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for row in record["ways"].values():
        ratios = [f"{row[f'times_{form}']:.2f}" if row[f"times_{form}"] else "\u2013" for form in PEERS]
        lines.append(f"| {row['title']} | {size[row['form']] / count / 1000:.1f} | {row['images_per_second']:.0f} | "
                     f"{row['least']:.0f} to {row['most']:.0f} | {row['processor_ms_per_image']:.2f} | "
                     f"{' | '.join(ratios)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--l3", default="l3", help="the command")
    parser.add_argument("--out", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--count", type=int, default=10_000, help="images to make")
    parser.add_argument("--effort", type=int, default=5, help="of the dense data set; decoding takes the same time")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS), metavar="WAY",
                        help=f"of {', '.join(WAYS)}")
    parser.add_argument("--make", action="store_true", help="make the set and measure nothing")
    parser.add_argument("--threads", type=int, default=2, help="threads or worker processes, and processors")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--batches", type=int, default=40, help="counted in each turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", choices=list(WAYS), metavar="WAY", help="one turn in this process, as JSON")
    parser.add_argument("--seed", type=int, default=0, help="of a turn")
    given = parser.parse_args()
    if given.turn:
        print(json.dumps(turn(given)), flush=True)
        os._exit(0)  # some ways have threads that wait for more batches to be taken

    folder = Folder(given.cache)
    made = folder.make(photographs(given.folders), given.count)
    ways = []
    for way in given.ways:
        if without := missing(way):
            say(f"{way} is left out: {without} is not installed")
        else:
            ways.append(way)
    if given.make or any(way.startswith("l3") for way in ways):
        folder.convert(given.l3, given.effort)
    if given.make:
        print(json.dumps({**made, "bytes": folder.sizes()}, indent=1))
        return
    if made["count"] < given.batch_size:
        sys.exit("the set has less than a batch of images")
    record = record_of("training_input.py", images=made["count"], pixels=made["pixels"], classes=made["classes"],
                       side=SIDE, effort=given.effort, threads=given.threads, batch_size=given.batch_size,
                       batches=given.batches, rounds=given.rounds, bytes=folder.sizes(),
                       versions=versions("torch", "torchvision", "pillow", "numpy", "nvidia-dali-cuda120",
                                         "opencv-python-headless", "l3"))
    record["ways"] = medians(take_turns(given, ways))
    print(table(record))
    if given.out:
        given.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
