#!/usr/bin/env python3
"""Feeds batches of a data set into an NVIDIA DALI pipeline.

    ./run demo && pip install . nvidia-dali-cuda120
    python3 examples/dali_source.py build/demo/set --device cuda
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

try:
    from nvidia.dali import fn, pipeline_def, types
except ImportError:
    sys.exit("dali_source.py: DALI is missing: pip install nvidia-dali-cuda120")
try:
    import l3
except ImportError:
    sys.exit("dali_source.py: l3 is missing: pip install . in its repository")


class Source:
    """Yields one batch at a time. DALI copies it, so the loader can use its memory again."""

    def __init__(self, loader: l3.Loader) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for images, labels, _ in self.loader:
            yield images, labels


@pipeline_def
def pipeline(source: Source, device: str) -> tuple[Any, Any]:
    images, labels = fn.external_source(source=source, num_outputs=2, batch=True, cycle="raise", device=device,
                                        layout=["HWC", ""], dtype=[types.FLOAT, types.INT64])
    return fn.rotate(images, angle=fn.random.uniform(range=(-10.0, 10.0)), keep_size=True, fill_value=0), labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", help="a folder that `l3 convert` made")
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--crop", type=int, default=128)
    given = parser.parse_args()

    data = l3.Dataset(given.set)
    wanted = [sample.number for sample in data if sample.is_image and (sample.channels, sample.bits) == (3, 8)
              and min(sample.width, sample.height) >= given.crop]
    if not wanted:
        sys.exit(f"dali_source.py: {given.set} has no RGB images of 8 bits and {given.crop} x {given.crop} pixels")
    loader = l3.Loader(data, given.batch_size, samples=wanted, crop=(given.crop, given.crop), flip=True, seed=1,
                       layout="HWC", dtype="float32", mean=0.5, std=0.25, device=given.device)
    built = pipeline(Source(loader), "gpu" if given.device == "cuda" else "cpu", batch_size=given.batch_size,
                     num_threads=2, device_id=0 if given.device == "cuda" else None)
    built.build()
    for epoch in range(2):
        batches = 0
        while True:
            try:
                images, _labels = built.run()
            except StopIteration:
                built.reset()  # start the next epoch
                break
            batches += 1
        print(f"epoch {epoch}: {batches} batches, the last of {len(images)} images")
    loader.close()


if __name__ == "__main__":
    main()
