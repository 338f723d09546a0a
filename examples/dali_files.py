#!/usr/bin/env python3
"""Decodes .l3 files in an NVIDIA DALI pipeline, with the extension of nvImageCodec. Other formats may be among them.

    l3 convert --files pngs/ l3s/ && pip install nvidia-dali-cuda120
    NVIMGCODEC_EXTENSIONS_PATH=FOLDER python3 examples/dali_files.py l3s/

FOLDER contains libl3_ext.so, and the other extensions that you need: docs/nvimagecodec.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

try:
    from nvidia.dali import fn, pipeline_def
except ImportError:
    sys.exit("dali_files.py: DALI is missing: pip install nvidia-dali-cuda120")


@pipeline_def
def pipeline(files: list[str], labels: list[int], device: str, side: int) -> tuple[Any, Any]:
    encoded, label = fn.readers.file(files=files, labels=labels, random_shuffle=True, seed=1, name="files")
    images = fn.decoders.image_random_crop(encoded, device=device, seed=2)  # reads only the tiles of the crop
    return fn.resize(images, resize_x=side, resize_y=side), label


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a folder of .l3 files; folders in it are classes")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--side", type=int, default=64)
    given = parser.parse_args()

    files = sorted(given.folder.rglob("*.l3"))
    if not files:
        sys.exit(f"dali_files.py: {given.folder} has no .l3 files")
    classes = sorted({path.parent for path in files})
    on_gpu = given.device == "cuda"
    built = pipeline([str(path) for path in files], [classes.index(path.parent) for path in files],
                     "mixed" if on_gpu else "cpu", given.side, batch_size=given.batch_size, num_threads=2,
                     device_id=0 if on_gpu else None)
    built.build()
    size = built.epoch_size("files")
    batches = -(-size // given.batch_size)
    for _ in range(batches):
        images, _labels = built.run()
    print(f"{size} images of {len(classes)} classes: {batches} batches, the last of shape {images[0].shape()}")


if __name__ == "__main__":
    main()
