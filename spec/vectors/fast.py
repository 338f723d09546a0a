"""Payloads of the fast method in recipes (sections 6.3 and 7 of spec/format.md). For build.py."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from pieces import BitString, Noise, RecipeError


@dataclass
class Block:
    """A block of the fast method whose header is given; `fields` and `codes` follow."""

    predictor: int
    base: int
    width_bits: int
    fields: list[int] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    unused: int = 0  # the bits after the last code


def noise_block(noise: Noise, bits: int) -> Block:
    """Any valid header; fields and codes are drawn where they are written."""
    return Block(noise.below(7), noise.below(bits + 1), noise.below(5))


def write_block(block: Block, rows: int, columns: int, bits: int, noise: Noise | None) -> bytes:
    out = BitString()
    out.put(block.predictor | block.base << 3 | block.width_bits << 8, 16)
    present = [g // 8 < rows and 4 * (g % 8) < columns for g in range(64)]
    span = 1 << block.width_bits
    fields = block.fields + [0] * (64 - len(block.fields))
    if noise:
        room = min(span, bits - block.base + 1)
        fields = [noise.below(room if here else span) for here in present]
    for value in fields:
        out.put(value, block.width_bits)
    widths = [block.base + value for value, here in zip(fields, present, strict=True) if here]
    codes = block.codes
    if noise:
        codes = [noise.below(1 << width) for width in widths for _ in range(4)]
    elif not codes:
        codes = [1 << width >> 1 for width in widths for _ in range(4)]  # residuals of 0
    if len(codes) != 4 * len(widths):
        raise RecipeError(f"a block of {4 * len(widths)} codes has {len(codes)}")
    for i, code in enumerate(codes):
        out.put(code, widths[i // 4])
    left = -out.count % 8
    out.put(noise.below(1 << left) if noise else block.unused, left)
    return out.bytes()


def write_fast(
    size: tuple[int, int], channels: int, bits: int, origins: list[int], given: list[Block], noise: Noise | None
) -> bytes:
    width, height = size
    if noise:
        origins = [noise.below(1 << bits) for _ in range(channels)]
    out = struct.pack(f"<{len(origins)}H", *origins)
    blocks = iter(given)
    for y in range(0, height, 8):
        for x in range(0, width, 32):
            for _ in range(channels):
                block = noise_block(noise, bits) if noise else next(blocks, None)
                if block is None:
                    raise RecipeError("too few blocks")
                out += write_block(block, min(8, height - y), min(32, width - x), bits, noise)
    if next(blocks, None):
        raise RecipeError("too many blocks")
    return out
