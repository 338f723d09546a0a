#!/usr/bin/env python3
"""Trains a classifier with Flax on images of mixed sizes, with random resized crops.

    l3 convert photos/train/ train/                                    # folders in photos/train/ are classes
    pip install . jax flax optax
    python3 examples/classify_flax.py train/
"""

from __future__ import annotations

import argparse
import sys

try:
    import jax
    import jax.numpy as jnp
    import optax
    from flax import nnx
except ImportError:
    sys.exit("classify_flax.py: a package is missing: pip install jax flax optax")
try:
    import l3
except ImportError:
    sys.exit("classify_flax.py: l3 is missing: pip install . in its repository")


class Network(nnx.Module):
    def __init__(self, classes: int, rngs: nnx.Rngs) -> None:
        self.first = nnx.Conv(3, 16, (3, 3), strides=2, rngs=rngs)
        self.second = nnx.Conv(16, 32, (3, 3), strides=2, rngs=rngs)
        self.third = nnx.Conv(32, 64, (3, 3), strides=2, rngs=rngs)
        self.scores = nnx.Linear(64, classes, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        for layer in (self.first, self.second, self.third):
            images = nnx.relu(layer(images))
        return self.scores(images.mean(axis=(1, 2)))


@nnx.jit
def step(network: Network, optimizer: nnx.Optimizer[Network], images: jax.Array, labels: jax.Array) -> jax.Array:
    def loss_of(network: Network) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(network(images), labels).mean()

    loss, slopes = nnx.value_and_grad(loss_of)(network)
    optimizer.update(network, slopes)
    return loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", help="a data set with classes, which `l3 convert` made")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--side", type=int, default=224)
    given = parser.parse_args()
    if given.device == "cuda" and jax.default_backend() != "gpu":
        sys.exit("classify_flax.py: JAX finds no GPU; run without --device cuda")

    data = l3.Dataset(given.set)
    if not data.classes:
        sys.exit(f"classify_flax.py: {given.set} has no classes")
    # Flax wants channels last. With last_batch="drop" all batches have the same size, so JAX compiles the step once.
    loader = l3.Loader(data, given.batch_size, random_resized_crop=given.side, flip=True, seed=1, layout="HWC",
                       dtype="float32", mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225], channels="rgb",
                       alpha="drop", bits=8, device=given.device, last_batch="drop")
    if len(loader) == 0:
        sys.exit(f"classify_flax.py: {loader.units} images do not fill a batch: choose a smaller --batch-size")
    network = Network(len(data.classes), nnx.Rngs(1))
    optimizer = nnx.Optimizer(network, optax.adam(1e-3), wrt=nnx.Param)
    for epoch in range(given.epochs):
        losses = [step(network, optimizer, jnp.from_dlpack(images), jnp.from_dlpack(labels))
                  for images, labels, _ids in loader]
        print(f"epoch {epoch}: {len(losses)} batches, loss {jnp.stack(losses).mean():.3f}")
    loader.close()


if __name__ == "__main__":
    main()
