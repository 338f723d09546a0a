#!/usr/bin/env python3
"""Writes an l3 data set of a data set of Hugging Face, torch or WebDataset.

    pip install . datasets pillow
    python3 examples/write_dataset.py huggingface cifar10 train cifar/ --image img --label label
    pip install . torchvision
    python3 examples/write_dataset.py torch photos/train/ train/        # a folder with a folder for each class
    pip install . webdataset pillow
    python3 examples/write_dataset.py webdataset 'shards/{000..009}.tar' set/

PNG files are written from their bytes, so that nothing of them is lost: chunks, palettes, 16 bits. Pillow decodes JPEG
and other formats that DatasetWriter does not take. Copy the function that you need: each is a loop over samples.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

try:
    import l3
except ImportError:
    sys.exit("write_dataset.py: l3 is missing: pip install . in its repository")


def decoded_unless_known(data: bytes) -> Any:
    """The bytes of an image file as they are, or a Pillow image if DatasetWriter cannot read the format."""
    others = b"\xff\xd8\xff", b"RIFF", b"II*\0", b"MM\0*"  # JPEG, WebP, TIFF
    if not data.startswith(others):
        return data
    from PIL import Image

    return Image.open(io.BytesIO(data))


def write_huggingface(data: Any, path: str, image: str = "image", label: str | None = "label") -> None:
    """`data` is a datasets.Dataset, or a streaming one. `image` and `label` are names of columns."""
    import datasets

    data = data.cast_column(image, datasets.Image(decode=False))  # the bytes of files instead of Pillow images
    names = getattr(data.features[label], "names", None) if label else None  # of a ClassLabel
    rest = [column for column in data.features if column not in (image, label)]
    with l3.DatasetWriter(path, classes=names or []) as writer:
        for row in data:
            metadata = {column: row[column] for column in rest}
            file = row[image]  # its bytes, or the path of a file
            contents = Path(file["path"]).read_bytes() if file["bytes"] is None else file["bytes"]
            writer.write(decoded_unless_known(contents), label=row[label] if label else None, metadata=metadata or None)


def write_torch(data: Sequence[tuple[Any, int]], path: str) -> None:
    """`data` is a map-style data set of images and labels: Pillow images, or tensors of uint8 in the order CHW."""
    with l3.DatasetWriter(path, classes=getattr(data, "classes", [])) as writer:
        for i in range(len(data)):
            image, label = data[i]
            layout = {} if hasattr(image, "getpalette") else {"layout": "CHW"}
            writer.write(image, label=label, **layout)


def write_webdataset(samples: Iterable[dict[str, Any]], path: str) -> None:
    """`samples` is a webdataset.WebDataset without decode(), so that files come as bytes."""
    images = ("png", "jpg", "jpeg", "webp", "l3")
    with l3.DatasetWriter(path) as writer:
        for sample in samples:
            key = sample["__key__"]
            label = int(sample["cls"]) if "cls" in sample else None
            metadata = sample.get("json")  # of the first file of the group
            for role, data in sample.items():
                if role.startswith("__") or role in ("cls", "json"):
                    continue
                about = {"name": f"{key}.{role}", "group": key, "role": role, "label": label, "metadata": metadata}
                metadata = None
                if role.rsplit(".", 1)[-1] in images:
                    writer.write(decoded_unless_known(data), **about)
                else:
                    writer.write_bytes(data, **about)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    huggingface = kinds.add_parser("huggingface")
    huggingface.add_argument("source", help="a name on the hub, or a folder")
    huggingface.add_argument("split")
    huggingface.add_argument("set")
    huggingface.add_argument("--image", default="image", help="the column of the images")
    huggingface.add_argument("--label", help="the column of the labels")
    for kind, source in (("torch", "a folder with a folder for each class"),
                         ("webdataset", "tars, such as 'shards/{000..009}.tar'")):
        sub = kinds.add_parser(kind)
        sub.add_argument("source", help=source)
        sub.add_argument("set")
    options = parser.parse_args()
    try:
        if options.kind == "huggingface":
            import datasets

            data = datasets.load_dataset(options.source, split=options.split)
            write_huggingface(data, options.set, options.image, options.label)
        elif options.kind == "torch":
            from torchvision.datasets import ImageFolder

            write_torch(ImageFolder(options.source), options.set)
        else:
            import webdataset

            write_webdataset(webdataset.WebDataset(options.source, shardshuffle=False), options.set)
    except ImportError as error:
        sys.exit(f"write_dataset.py: {error.name} is missing: pip install {error.name}")
    print(l3.Dataset(options.set))


if __name__ == "__main__":
    main()
