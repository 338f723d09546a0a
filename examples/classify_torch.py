#!/usr/bin/env python3
"""Trains a classifier with torch on images of mixed sizes, as is usual for ImageNet: random resized crops.

    l3 convert photos/train/ train/ && l3 convert photos/val/ val/     # folders in photos/train/ are classes
    pip install . torch
    python3 examples/classify_torch.py train/ val/

The loader crops, resizes, mirrors and normalises in its own threads: no workers, and no transforms in Python. For ranks
and saved states see train_torch.py.
"""

from __future__ import annotations

import argparse
import sys

try:
    import torch
except ImportError:
    sys.exit("classify_torch.py: torch is missing: pip install torch")
try:
    import l3
except ImportError:
    sys.exit("classify_torch.py: l3 is missing: pip install . in its repository")

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def network_for(classes: int) -> torch.nn.Module:
    """A small one. Use torchvision.models.resnet50(num_classes=classes) for a real training."""
    layers: list[torch.nn.Module] = []
    for channels_in, channels in ((3, 16), (16, 32), (32, 64), (64, 128)):
        layers += [torch.nn.Conv2d(channels_in, channels, 3, stride=2, padding=1, bias=False),
                   torch.nn.BatchNorm2d(channels), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                               torch.nn.Linear(128, classes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", help="a data set with classes, which `l3 convert` made")
    parser.add_argument("val", help="another one, with the same classes")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--side", type=int, default=224)
    given = parser.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available():
        sys.exit("classify_torch.py: torch finds no GPU; run without --device cuda")

    train_set, val_set = l3.Dataset(given.train), l3.Dataset(given.val)
    if not train_set.classes or train_set.classes != val_set.classes:
        sys.exit("classify_torch.py: the data sets must have classes, and the same ones")
    common = {"batch_size": given.batch_size, "dtype": "float32", "mean": MEAN, "std": STD, "channels": "rgb",
              "alpha": "drop", "bits": 8, "device": given.device}
    train = l3.Loader(train_set, random_resized_crop=given.side, flip=True, seed=1, last_batch="drop", **common)
    val = l3.Loader(val_set, resize=given.side * 8 // 7, crop=given.side, crop_mode="centre", shuffle=False,
                    last_batch="uneven", **common)

    if len(train) == 0:
        sys.exit(f"classify_torch.py: {train.units} images do not fill a batch: choose a smaller --batch-size")

    torch.manual_seed(1)
    network = network_for(len(train_set.classes)).to(given.device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    for epoch in range(given.epochs):
        network.train()
        for images, labels, _ids in train:
            scores = network(torch.from_dlpack(images))
            loss = torch.nn.functional.cross_entropy(scores, torch.from_dlpack(labels))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        network.eval()
        right = count = 0
        with torch.no_grad():
            for images, labels, _ids in val:
                right += int((network(torch.from_dlpack(images)).argmax(1) == torch.from_dlpack(labels)).sum())
                count += len(labels)
        print(f"epoch {epoch}: {right} of {count} right")
    train.close()
    val.close()


if __name__ == "__main__":
    main()
