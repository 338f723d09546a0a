#!/usr/bin/env python3
"""Trains a small network with Lightning on a data set, on CPUs or GPUs.

    ./run demo && pip install . lightning
    python3 examples/train_lightning.py build/demo/set

The network learns to remove noise, so any data set of RGB images works. Each process takes its rank's part of every
epoch, so there is no DistributedSampler. --resume FILE continues from a checkpoint that was written after an epoch.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

try:
    import lightning
    import torch
except ImportError as error:
    sys.exit(f"train_lightning.py: {error.name} is missing: pip install lightning")
try:
    import l3
    import l3.torch
except ImportError:
    sys.exit("train_lightning.py: l3 is missing: pip install . in its repository")


class Denoiser(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(),
                                           torch.nn.Conv2d(16, 3, 3, padding=1))

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        images, _labels, _ids = batch
        loss = torch.nn.functional.mse_loss(self.network(images + 0.1 * torch.randn_like(images)), images)
        self.log("loss", loss, on_epoch=True, on_step=False, batch_size=len(images))
        return loss

    def on_train_epoch_end(self) -> None:
        if self.trainer.is_global_zero:
            print(f"epoch {self.current_epoch}: loss {float(self.trainer.callback_metrics['loss']):.4f}")

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Images(lightning.LightningDataModule):
    """Lightning saves the state of the loader with each checkpoint, and restores it."""

    def __init__(self, path: str, batch_size: int, crop: int) -> None:
        super().__init__()
        data = l3.Dataset(path)
        wanted = [sample.number for sample in data if sample.is_image and (sample.channels, sample.bits) == (3, 8)
                  and min(sample.width, sample.height) >= crop]
        if not wanted:
            sys.exit(f"train_lightning.py: {path} has no RGB images of 8 bits and {crop} x {crop} pixels")
        # "drop" gives all ranks the same number of batches.
        self.batches = l3.torch.Batches(data, batch_size, samples=wanted, crop=crop, flip=True, seed=1,
                                        dtype="float32", last_batch="drop")

    def train_dataloader(self) -> torch.utils.data.DataLoader[Any]:
        return torch.utils.data.DataLoader(self.batches, batch_size=None)

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = self.batches.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.batches.load_state_dict(state_dict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", help="a folder that `l3 convert` made")
    parser.add_argument("--accelerator", default="cpu", help="cpu, gpu or auto")
    parser.add_argument("--devices", type=int, default=1, help="processes, one for each GPU")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--crop", type=int, default=128)
    parser.add_argument("--save", help="a checkpoint to write at the end")
    parser.add_argument("--resume", help="a checkpoint to continue from")
    given = parser.parse_args()
    lightning.seed_everything(1)
    trainer = lightning.Trainer(accelerator=given.accelerator, devices=given.devices, max_epochs=given.epochs,
                                strategy="ddp" if given.devices > 1 else "auto", logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Denoiser(), Images(given.set, given.batch_size, given.crop), ckpt_path=given.resume)
    if given.save:
        trainer.save_checkpoint(given.save)


if __name__ == "__main__":
    main()
