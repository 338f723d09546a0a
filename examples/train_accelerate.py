#!/usr/bin/env python3
"""Trains a small network with Accelerate on a data set, on CPUs or GPUs.

    ./run demo && pip install . accelerate
    python3 examples/train_accelerate.py --cpu build/demo/set
    accelerate launch --num_processes 8 examples/train_accelerate.py SET     # one process per GPU

The network learns to remove noise, so any data set of RGB images works. Give network and optimizer to prepare(), but
not the loader: it takes its rank's part of each epoch already, and decodes on the device.
"""

from __future__ import annotations

import argparse
import sys

try:
    import accelerate
    import torch
except ImportError as error:
    sys.exit(f"train_accelerate.py: {error.name} is missing: pip install accelerate")
try:
    import l3
    import l3.torch
except ImportError:
    sys.exit("train_accelerate.py: l3 is missing: pip install . in its repository")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", help="a folder that `l3 convert` made")
    parser.add_argument("--cpu", action="store_true", help="use no GPU")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--crop", type=int, default=128)
    given = parser.parse_args()
    accelerator = accelerate.Accelerator(cpu=given.cpu)

    data = l3.Dataset(given.set)
    wanted = [sample.number for sample in data if sample.is_image and (sample.channels, sample.bits) == (3, 8)
              and min(sample.width, sample.height) >= given.crop]
    if not wanted:
        sys.exit(f"train_accelerate.py: {given.set} has no RGB images of 8 bits and {given.crop} x {given.crop} pixels")
    # "drop" gives all ranks the same number of batches.
    batches = l3.torch.Batches(data, given.batch_size, samples=wanted, crop=given.crop, flip=True, seed=1,
                               dtype="float32", last_batch="drop", device=accelerator.device)

    torch.manual_seed(1)
    network: torch.nn.Module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 3, 3, padding=1))
    network, optimizer = accelerator.prepare(network, torch.optim.Adam(network.parameters(), lr=1e-3))
    for epoch in range(given.epochs):
        losses = []
        for images, _labels, _ids in batches:
            loss = torch.nn.functional.mse_loss(network(images + 0.1 * torch.randn_like(images)), images)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            losses.append(loss.detach())
        mean = accelerator.reduce(torch.stack(losses).mean(), "mean")
        accelerator.print(f"epoch {epoch}: {len(losses)} batches, loss {float(mean):.4f}")
    batches.close()
    accelerator.end_training()


if __name__ == "__main__":
    main()
