#!/usr/bin/env python3
"""Trains a small network with JAX on a data set, on a CPU or a GPU.

    ./run demo && pip install . jax
    python3 examples/train_jax.py build/demo/set
"""

from __future__ import annotations

import argparse
import sys

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    sys.exit("train_jax.py: jax is missing: pip install jax")
try:
    import l3
except ImportError:
    sys.exit("train_jax.py: l3 is missing: pip install . in its repository")

Weights = list[jax.Array]


def remove_noise(weights: Weights, images: jax.Array) -> jax.Array:
    for i, weight in enumerate(weights):
        images = jax.lax.conv_general_dilated(images if i == 0 else jax.nn.relu(images), weight, (1, 1), "SAME",
                                              dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return images


@jax.jit
def step(weights: Weights, images: jax.Array, key: jax.Array) -> tuple[Weights, jax.Array]:
    noisy = images + 0.1 * jax.random.normal(key, images.shape)
    loss, slopes = jax.value_and_grad(lambda w: jnp.mean((remove_noise(w, noisy) - images) ** 2))(weights)
    return [weight - 0.05 * slope for weight, slope in zip(weights, slopes, strict=True)], loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", help="a folder that `l3 convert` made")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--crop", type=int, default=128)
    given = parser.parse_args()
    if given.device == "cuda" and jax.default_backend() != "gpu":
        sys.exit("train_jax.py: JAX finds no GPU; run without --device cuda")

    data = l3.Dataset(given.set)
    wanted = [sample.number for sample in data if sample.is_image and (sample.channels, sample.bits) == (3, 8)
              and min(sample.width, sample.height) >= given.crop]
    if not wanted:
        sys.exit(f"train_jax.py: {given.set} has no RGB images of 8 bits and {given.crop} x {given.crop} pixels")
    # With last_batch="pad" all batches have the same size, so JAX compiles the step only once.
    loader = l3.Loader(data, given.batch_size, samples=wanted, crop=(given.crop, given.crop), flip=True, seed=1,
                       layout="HWC", dtype="float32", mean=0.5, std=0.25, device=given.device, last_batch="pad")
    key = jax.random.key(1)
    weights = [0.1 * jax.random.normal(key, shape) for shape in ((3, 3, 3, 16), (3, 3, 16, 3))]
    for epoch in range(given.epochs):
        losses = []
        for images, _labels, _ids in loader:
            key, used = jax.random.split(key)
            weights, loss = step(weights, jnp.from_dlpack(images), used)
            losses.append(float(loss))
        print(f"epoch {epoch}: {len(losses)} batches, loss {sum(losses) / len(losses):.4f}")
    loader.close()


if __name__ == "__main__":
    main()
