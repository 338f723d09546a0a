#!/usr/bin/env python3
"""Measures what batches of torch cost with ImageFolder, WebDataset, MosaicML's MDS, DALI, FFCV and l3, on equal images.

    PYTHONPATH=build/release/python bench/migration.py CACHE [FOLDER...] [--l3 COMMAND] [--extension FILE] [--out FILE]

CACHE is a folder for the images. The first run writes them: centre crops of the photographs in each FOLDER, or drawn
images with noise if no FOLDER is given. All ways store the same samples without loss, and deliver shuffled batches of
uint8 tensors, whole images, without workers. A way whose package is missing is named and left out. DALI and FFCV give
tensors whose channels lie last in memory, as is their custom.

The result is images per second of processor time, of all threads: other work on the machine changes it little. Each way
runs in a process of its own. In each round the ways take turns, and the result is the median over the rounds; files are
in the page cache. Each turn also checks that the sum of all samples is that of the sources.

Packages: torch torchvision pillow numpy; webdataset, mosaicml-streaming, nvidia-dali-cuda120 and ffcv if they are to be
measured. DALI reads L3 files with libl3_ext.so (--extension; docs/nvimagecodec.md). FFCV has no wheel: its source needs
pkg-config, and libopencv-dev and libturbojpeg0-dev of Debian.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from training_images import photographs, record_of, say, versions

SIDE, BATCH, CLASSES = 256, 32, 4
Batches = Any  # a function that begins an epoch: Callable[[], Iterator]


def drawn(seed: int) -> np.ndarray[Any, Any]:
    """Waves and noise, which PNG compresses about as well as a photograph."""
    random = np.random.default_rng(seed)
    y, x, c = np.ogrid[:SIDE, :SIDE, :3]
    waves = np.sin(x / (20 + seed % 7) + seed) + np.cos(y / (15 + seed % 5) - seed * 2) + c / 3
    return np.clip(np.round((waves + 3) / 7 * 255 + random.normal(0, 5, (SIDE, SIDE, 3))), 0, 255).astype(np.uint8)


def centre(path: Path) -> np.ndarray[Any, Any]:
    with Image.open(path) as image:
        left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
        return np.asarray(image.crop((left, top, left + SIDE, top + SIDE)))


def make(cache: Path, folders: list[Path], count: int, command: str) -> None:
    """Writes the images as a folder, a tar, MDS and data sets of l3."""
    files = photographs(folders, SIDE)
    if folders and not files:
        raise SystemExit("migration: the folders have no RGB images of 8 bits that are large enough")
    total = 0
    for i in range(min(count, len(files)) if files else count):
        pixels = centre(files[i]) if files else drawn(i)
        total += int(pixels.sum())
        path = cache / "png" / f"class{i % CLASSES}" / f"{i:05}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    for method in ("fast", "dense"):
        subprocess.run([command, "convert", "-q", "--method", method, cache / "png", cache / method], check=True)
    subprocess.run([command, "convert", "-q", "--files", "--method", "fast", cache / "png", cache / "l3"], check=True)
    for name, form in (("png", "png"), ("l3", "l3")):
        subprocess.run([command, "export", "--tar", "-q", "--as", form, cache / "fast", cache / f"{name}.tar"],
                       check=True)
    sources = sorted((cache / "png").rglob("*.png"))
    if has("streaming"):
        from streaming import MDSWriter  # type: ignore[import-not-found,unused-ignore]

        with MDSWriter(out=str(cache / "mds"), columns={"image": "png", "label": "int"}) as writer:
            for path in sources:
                with Image.open(path) as image:
                    writer.write({"image": image, "label": label_of(path)})
    if has("ffcv"):
        from ffcv.fields import IntField, RGBImageField  # type: ignore[import-not-found,unused-ignore]
        from ffcv.writer import DatasetWriter  # type: ignore[import-not-found,unused-ignore]

        fields = {"image": RGBImageField(write_mode="raw"), "label": IntField()}
        DatasetWriter(str(cache / "raw.beton"), fields, num_workers=1).from_indexed_dataset(Labelled(sources))
    about = {"images": len(sources), "sum": total, "kind": "photographs" if files else "drawn"}
    (cache / "made.json").write_text(json.dumps(about))


def has(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # the package that contains it
        return False


def label_of(path: Path) -> int:
    return int(path.parent.name[5:])


class Labelled:
    """Images and labels, as FFCV's writer takes them."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, at: int) -> tuple[np.ndarray[Any, Any], int]:
        with Image.open(self.paths[at]) as image:
            return np.asarray(image), label_of(self.paths[at])


def bytes_of(path: Path) -> int:
    return sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())


# ----------------------------------------------------------------------------------------------------------- the ways


def folder_batches(root: Path, extension: str) -> Batches:
    import torch
    import torchvision  # type: ignore[import-untyped,import-not-found,unused-ignore]

    if extension == ".l3":
        import l3.pillow  # noqa: F401
    data = torchvision.datasets.ImageFolder(root, transform=torchvision.transforms.PILToTensor(),
                                            is_valid_file=lambda name: name.endswith(extension))
    return torch.utils.data.DataLoader(data, BATCH, shuffle=True).__iter__


def tar_batches(tar: Path, member: str) -> Batches:
    import l3
    import torch
    import webdataset  # type: ignore[import-untyped,import-not-found,unused-ignore]
    from torchvision.transforms import PILToTensor  # type: ignore[import-untyped,import-not-found,unused-ignore]

    data = webdataset.WebDataset(str(tar), shardshuffle=False).shuffle(100)
    if member == "l3":
        data = data.decode(lambda key, file: l3.webdataset_decoder(key, file, layout="CHW")).to_tuple("l3", "cls")
    else:
        data = data.decode("pil").to_tuple("png", "cls").map_tuple(PILToTensor(), int)
    return torch.utils.data.DataLoader(data, BATCH).__iter__


def mds_batches(folder: Path) -> Batches:
    import torch
    from streaming import StreamingDataset
    from torchvision.transforms import PILToTensor

    class Streamed(StreamingDataset):  # type: ignore[misc,unused-ignore]
        def __getitem__(self, at: Any) -> Any:
            sample = super().__getitem__(at)
            return PILToTensor()(sample["image"]), sample["label"]

    return torch.utils.data.DataLoader(Streamed(local=str(folder), shuffle=True, batch_size=BATCH), BATCH).__iter__


def dali_batches(folder: Path, extension: str) -> Batches:
    """Each next() of the iterator decodes one batch, the next one, so that an epoch takes what its batches take."""
    from nvidia.dali import fn, pipeline_def  # type: ignore[import-not-found,unused-ignore]
    from nvidia.dali.plugin.pytorch import (  # type: ignore[import-not-found,unused-ignore]
        DALIGenericIterator,
        LastBatchPolicy,
    )

    files = sorted(folder.rglob(f"*{extension}"))

    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, exec_pipelined=False, exec_async=False,
                  prefetch_queue_depth=1)  # type: ignore[untyped-decorator,unused-ignore]
    def pipeline() -> Any:
        encoded, label = fn.readers.file(files=[str(file) for file in files], labels=[label_of(file) for file in files],
                                         shuffle_after_epoch=True, name="files")
        return fn.decoders.image(encoded, device="cpu"), label

    iterator = DALIGenericIterator(pipeline(), ["image", "label"], reader_name="files", auto_reset=True,
                                   last_batch_policy=LastBatchPolicy.PARTIAL)
    return lambda: ((batch[0]["image"].permute(0, 3, 1, 2), batch[0]["label"]) for batch in iterator)


def ffcv_batches(file: Path) -> Batches:
    from ffcv.fields.decoders import IntDecoder, SimpleRGBImageDecoder  # type: ignore[import-not-found,unused-ignore]
    from ffcv.loader import Loader, OrderOption  # type: ignore[import-not-found,unused-ignore]
    from ffcv.transforms import ToTensor, ToTorchImage  # type: ignore[import-not-found,unused-ignore]

    pipelines = {"image": [SimpleRGBImageDecoder(), ToTensor(), ToTorchImage()], "label": [IntDecoder(), ToTensor()]}
    return Loader(str(file), BATCH, num_workers=1, os_cache=True, order=OrderOption.RANDOM, drop_last=False,
                  pipelines=pipelines).__iter__


def image_batches(folder: Path) -> Batches:
    import l3.torch
    import torch

    return torch.utils.data.DataLoader(l3.torch.Images(folder), BATCH, shuffle=True).__iter__


def loader_batches(folder: Path) -> Batches:
    import l3.torch

    return l3.torch.Batches(folder, BATCH, last_batch="uneven").__iter__


STORED = ("png", "png.tar", "mds", "raw.beton", "l3", "l3.tar", "fast", "dense")  # what make() writes

# For each way: what it is called in tables, the package it needs, and its batches.
WAYS: dict[str, tuple[str, str, Callable[[Path], Batches]]] = {
    "imagefolder": ("ImageFolder, PNG", "torchvision", lambda cache: folder_batches(cache / "png", ".png")),
    "webdataset": ("WebDataset, PNG", "webdataset", lambda cache: tar_batches(cache / "png.tar", "png")),
    "mds": ("MDS, PNG", "streaming", lambda cache: mds_batches(cache / "mds")),
    "dali": ("DALI, PNG", "nvidia.dali", lambda cache: dali_batches(cache / "png", ".png")),
    "ffcv": ("FFCV, raw", "ffcv", lambda cache: ffcv_batches(cache / "raw.beton")),
    "imagefolder-l3": ("ImageFolder, l3 fast", "torchvision", lambda cache: folder_batches(cache / "l3", ".l3")),
    "webdataset-l3": ("WebDataset, l3 fast", "webdataset", lambda cache: tar_batches(cache / "l3.tar", "l3")),
    "dali-l3": ("DALI, l3 fast", "nvidia.dali", lambda cache: dali_batches(cache / "l3", ".l3")),
    "images-fast": ("l3.torch.Images, fast", "torch", lambda cache: image_batches(cache / "fast")),
    "images-dense": ("l3.torch.Images, dense", "torch", lambda cache: image_batches(cache / "dense")),
    "batches-fast": ("l3.torch.Batches, fast", "torch", lambda cache: loader_batches(cache / "fast")),
    "batches-dense": ("l3.torch.Batches, dense", "torch", lambda cache: loader_batches(cache / "dense")),
}


def measure(way: str, cache: Path) -> float:
    """Images per second of processor time in the second epoch."""
    import torch

    torch.set_num_threads(1)
    made = json.loads((cache / "made.json").read_text())
    batches = WAYS[way][2](cache)
    for timed in (False, True):
        seconds, total, count = 0.0, 0, 0
        begun = time.process_time()
        for batch in batches():
            if not timed:  # the first epoch is not timed, so that it can be checked
                total += int(batch[0].to(torch.int64).sum())
            count += len(batch[0])
        seconds = time.process_time() - begun
        if count != made["images"] or (not timed and total != made["sum"]):
            raise SystemExit(f"migration: {way} delivers other images: {count}, sum {total}")
    return float(made["images"]) / seconds


def write_record(out: Path, cache: Path, rounds: int, found: dict[str, list[float]]) -> None:
    made = json.loads((cache / "made.json").read_text())
    record = record_of("migration.py", images=made["images"], kind=made["kind"], side=SIDE, rounds=rounds,
                       versions=versions("torch", "torchvision", "pillow", "numpy", "webdataset",
                                         "mosaicml-streaming", "nvidia-dali-cuda120", "ffcv"),
                       bytes={name: bytes_of(cache / name) for name in STORED if (cache / name).exists()},
                       images_per_processor_second={way: [round(value, 1) for value in values]
                                                    for way, values in found.items()})
    out.write_text(json.dumps(record, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--l3", default="build/release/bin/l3", help="the command")
    parser.add_argument("--extension", type=Path, default="build/release/extensions/nvimgcodec/libl3_ext.so",
                        help="with which DALI reads L3 files")
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--out", type=Path, help="a file for the record; written after each round")
    parser.add_argument("--turn", choices=list(WAYS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.turn:
        print(measure(given.turn, given.cache))
        return
    if not (given.cache / "made.json").exists():
        make(given.cache, given.folders, given.images, given.l3)
    missing = {way: WAYS[way][1] for way in given.ways if not has(WAYS[way][1])}
    if "dali-l3" in given.ways and not given.extension.exists():
        missing.setdefault("dali-l3", str(given.extension))
    for way, what in missing.items():
        say(f"{way} is left out: {what} is missing")
    ways = [way for way in given.ways if way not in missing]
    found: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(given.rounds):
        say(f"round {number + 1} of {given.rounds}")
        for way in ways:
            extensions = {"NVIMGCODEC_EXTENSIONS_PATH": str(given.extension.parent)} if way == "dali-l3" else {}
            done = subprocess.run([sys.executable, __file__, str(given.cache), "--turn", way], check=True,
                                  stdout=subprocess.PIPE, text=True, env={**os.environ, **extensions})
            found[way].append(float(done.stdout.split()[-1]))
        if given.out:
            write_record(given.out, given.cache, number + 1, found)
    results = {way: statistics.median(values) for way, values in found.items()}
    first = next(iter(results.values()))
    print(f"| way | images per processor-second | {WAYS[ways[0]][0]} = 1 |\n|---|--:|--:|")
    for way, value in results.items():
        print(f"| {WAYS[way][0]} | {value:,.0f} | {value / first:.1f} |")


if __name__ == "__main__":
    main()
