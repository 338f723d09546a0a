#!/usr/bin/env python3
"""Trains a small network with torch on a data set, on a CPU or a GPU. Use it as a template for your own training.

    ./run demo && pip install . torch
    python3 examples/train_torch.py build/demo/set
    torchrun --nproc-per-node 8 examples/train_torch.py --device cuda SET     # one rank per GPU

The network learns to remove noise, so any data set of RGB images works. --state FILE saves the state after each epoch,
and continues from it if FILE exists.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

try:
    import torch
except ImportError:
    sys.exit("train_torch.py: torch is missing: pip install torch")
try:
    import l3
    import l3.torch
except ImportError:
    sys.exit("train_torch.py: l3 is missing: pip install . in its repository")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", help="a folder that `l3 convert` made")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--crop", type=int, default=128)
    parser.add_argument("--state", help="a file to continue from if it exists; written after each epoch")
    given = parser.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available():
        sys.exit("train_torch.py: torch finds no GPU; run without --device cuda")
    place = l3.torch.ranks()
    rank, ranks = place["rank"], place["world_size"]
    device = torch.device(given.device)
    if given.device == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    if ranks > 1:
        torch.distributed.init_process_group()

    data = l3.Dataset(given.set)
    wanted = [sample.number for sample in data if sample.is_image and (sample.channels, sample.bits) == (3, 8)
              and min(sample.width, sample.height) >= given.crop]
    if not wanted:
        sys.exit(f"train_torch.py: {given.set} has no RGB images of 8 bits and {given.crop} x {given.crop} pixels")
    # An l3.Loader of this rank. Code that needs a DataLoader: torch.utils.data.DataLoader(batches, batch_size=None).
    batches = l3.torch.Batches(data, given.batch_size, samples=wanted, crop=(given.crop, given.crop), flip=True, seed=1,
                               dtype="float32", mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225], device=device)

    torch.manual_seed(1)
    network: torch.nn.Module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 3, 3, padding=1)).to(device)
    if ranks > 1:
        network = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    if given.state and os.path.exists(given.state):
        state: dict[str, Any] = torch.load(given.state, map_location=device)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        batches.load_state_dict(state["loader"])

    while batches.loader.epoch < given.epochs:
        epoch, losses = batches.loader.epoch, []
        for images, _labels, _ids in batches:
            loss = torch.nn.functional.mse_loss(network(images + 0.1 * torch.randn_like(images)), images)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        if rank == 0:
            print(f"epoch {epoch}: {len(losses)} batches, loss {torch.stack(losses).mean():.4f}")
            if given.state:
                torch.save({"network": network.state_dict(), "optimizer": optimizer.state_dict(),
                            "loader": batches.state_dict()}, given.state)
    batches.close()
    if ranks > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
