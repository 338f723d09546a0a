"""Shards that a reader takes, of which recipes make others, and where their images come from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from build_shards import NO_LABEL, OTHER_BYTES, REFUSE, UNTRIED, Recipe, Sample, Shard, Zeros

sys.path.append(str(Path(__file__).resolve().parent.parent / "vectors"))
import build

# What no program computes in a test. Of N zero bytes: `head -c N /dev/zero | sha256sum`, and the same for CRC-32.
ZEROS_5_GIB = Zeros(5 << 30, 0x193838C3, bytes.fromhex("7f06c62352aebd8125b2a1841e2b9e1f"))
ZEROS_64_GIB = Zeros(1 << 36, 0xECBB4B55, bytes.fromhex("57b295ba06757c81edca2d1e299133b2"))


@cache
def vector(name: str) -> bytes:
    """An L3 file of spec/vectors."""
    return build.build_text((build.HERE / f"{name}.txt").read_text(encoding="ascii"))


@cache
def model_of(name: str) -> bytes:
    """The model that a vector names."""
    model = build.parse((build.HERE / f"{name}.txt").read_text(encoding="ascii")).model
    assert model is not None
    return model.contents()


@cache
def default_model(number: int) -> bytes:
    return build.default_model(number).read_bytes()


def one() -> Shard:
    return Shard([Sample(b"one.png", vector("valid/one_pixel"))])


def mixed() -> Shard:
    """Two groups of an image and what belongs to it, and one of other bytes alone."""
    rgb, mask, pixel = (vector(f"valid/{name}") for name in ("raw_rgb_5_bits", "palette_indices", "one_pixel"))
    return Shard(
        [
            Sample(b"train/dog/0001.png", rgb, role=0, label=3, metadata=b'{"caption": "a dog"}'),
            Sample(b"train/dog/0001.mask.png", mask, role=1, label=3, joins=True),
            Sample(b"train/dog/0001.txt", b"a dog\n", OTHER_BYTES, role=2, label=3, joins=True),
            Sample(b"train/cat/0002.png", pixel, role=0, label=0),
            Sample(b"train/cat/0002.mask", b"", OTHER_BYTES, role=1, label=0, joins=True),
            Sample(b"a/b.bin", bytes(range(200)), OTHER_BYTES, role=2, metadata=b"\xff\0any bytes"),
        ],
        [b"image", b"mask", b"text"],
    )


def modelled() -> Shard:
    """Models that samples share; one that none needs; images with none, with one inside, and with a default one."""
    named = vector("valid/named_model")
    return Shard(
        [
            Sample(b"0.png", named, model=1),
            Sample(b"1.png", vector("valid/one_pixel")),
            Sample(b"2.png", named, model=1),
            Sample(b"3.png", vector("valid/default_model_1")),
            Sample(b"4.png", vector("valid/dense_gray")),
            Sample(b"5.txt", b"text", OTHER_BYTES),
        ],
        models=[default_model(3), model_of("valid/named_model"), token_model()],
    )


def modelled_by_bits() -> Shard:
    """A bit model that an image names, and one that none needs."""
    return Shard(
        [Sample(b"0.png", vector("valid/bit_named_model"), model=1)],
        models=[model_of("valid/bit_of_two_neighbours"), model_of("valid/bit_named_model")],
    )


def modelled_by_shapes() -> Shard:
    """A bit model with shapes that an image names, and one that none needs."""
    return Shard(
        [Sample(b"0.png", vector("valid/shape_named_model"), model=1)],
        models=[model_of("valid/shape_of_one_pixel"), model_of("valid/shape_named_model")],
    )


@cache
def token_model() -> bytes:
    model = build.parse((build.HERE / "valid/token_gray_8.txt").read_text(encoding="ascii")).model
    assert model is not None
    return model.contents()


def named(*names: bytes) -> Shard:
    return Shard([Sample(name, bytes([i]) * i, OTHER_BYTES) for i, name in enumerate(names)])


def many(count: int, group: int = 1) -> Shard:
    """Empty samples, in groups of so many."""
    samples = [Sample(b"%d" % i, b"", OTHER_BYTES, role=i % group, joins=i % group > 0) for i in range(count)]
    return Shard(samples, [b"r%d" % i for i in range(group)])


def roles(count: int) -> Shard:
    return Shard([Sample(b"a", b"", OTHER_BYTES, role=count - 1)], [b"%x" % i for i in range(count)])


def long_name(length: int) -> Shard:
    return named(b"a/" * (length // 2 - 1) + b"b" * (length - length // 2 * 2 + 2))


def long_role(length: int) -> Shard:
    return Shard(one().samples, [b"r" * length])


def long_model(length: int) -> Shard:
    """A model that none needs, and that is none."""
    return Shard(one().samples, models=[token_model().ljust(length, b"\0")])


def many_models(count: int) -> Shard:
    return Shard([Sample(b"0.png", vector("valid/named_model"), model=count - 1)],
                 models=[model_of("valid/named_model")] * count)


def with_image(name: str) -> Shard:
    """`one`, with another image."""
    return Shard([Sample(b"one.png", vector(name))])


def valid_shards() -> Iterator[Recipe]:
    def valid(name: str, section: str, reason: str, shard: Shard, *changes: str) -> Recipe:
        return Recipe(f"valid/{name}", section, reason, shard, changes=changes)

    yield valid("empty", "2", "No sample, no model, no role: 4160 bytes.", Shard(roles=[]))
    yield valid("empty_with_more", "2", "No sample, but models and roles.", Shard(models=modelled().models))
    yield valid("one", "2", "One image.", one())
    yield valid("mixed", "3.1", "Groups of image, mask and text; an empty sample; labels; metadata.", mixed())
    yield valid("modelled", "3.2", "A model that two images share, and models that none names.", modelled())
    yield valid("modelled_by_bits", "3.2", "A bit model that an image names, and one that none names.",
                modelled_by_bits())
    yield valid("modelled_by_shapes", "3.2", "A bit model with shapes that an image names, and one that none names.",
                modelled_by_shapes())
    yield valid("models_1024", "2.2", "As many models as there may be, all at the same place.", many_models(1024))
    yield valid("roles_65535", "2.2", "As many roles as there may be, and an entry with the last one.", roles(65535))
    yield valid("entries_3000", "3.1", "Many entries, all of no bytes and at the same place.", many(3000))
    yield valid("group_of_300", "3.1", "Groups of 300 entries.", many(600, 300))
    yield valid("name_of_4096_bytes", "1", "The longest name, with as many parts as it can have.", long_name(4096))
    yield valid("name_of_1_byte", "1", "The shortest name.", named(b"a"))
    yield valid("names_of_any_bytes", "1", "Names that are not UTF-8 or look like what they are not.", named(
        b"\xff\xfe/\x80.png", b"...", b".a/..b/c..", b" ", b"a\nb\tc", b"a\\..\\b", b"C:a", b"~", b"-", b"%2e%2e/a",
        "\u00e4/\u540d.png".encode()))
    yield valid("names_of_case", "1", "Names are bytes: those that differ in case or form are two.", named(
        b"a.png", b"A.png", b"\xc3\xa4", b"a\xcc\x88"))
    yield valid("name_is_a_folder_of_another", "1", "A name that is how another one begins.", named(b"a", b"a/b"))
    yield valid("role_of_255_bytes", "3.3", "The longest name of a role.", long_role(255))
    yield valid("texts_overlap", "3", "A name within another one, and metadata that is all texts.", named(
        b"a/b/c.png", b"b/c.png"), "entry.1.name_place =entry.0.name_place", "entry.1.name_place +2",
        "entry.0.metadata_length =footer.texts")
    yield valid("texts_unused", "3", "Texts that nothing names.",
                Shard(one().samples, unused_texts=b"\0/../" * 9))
    yield valid("metadata_of_70000_bytes", "3.1", "Metadata beyond 65535 bytes.", Shard(
        [replace(one().samples[0], metadata=bytes(70000))]))
    yield valid("label_most", "3.1", "The greatest label.", Shard([replace(one().samples[0], label=NO_LABEL - 1)]))
    yield valid("sizes_at_multiples", "2", "Samples that end before, at and behind a multiple of 64.", Shard(
        [Sample(b"%d" % size, b"\1" * size, OTHER_BYTES) for size in (63, 64, 65, 0, 128, 1)]))
    yield valid("same_bytes_twice", "3.1", "Samples that are alike but for their names.", Shard(
        [replace(one().samples[0], name=name) for name in (b"a", b"b")]))
    yield valid("other_bytes_that_are_l3", "3.1", "An L3 file as other bytes.", Shard(
        [replace(one().samples[0], kind=OTHER_BYTES)]))
    yield valid("image_of_16_bits", "3.1", "An image of 16 bits with four channels.",
                with_image("valid/constant_rgb_alpha_16"))
    yield valid("image_of_a_palette", "3.1", "An image of a palette of 8 bits.", with_image("valid/palette_full"))
    yield valid("image_wide", "3.1", "An image of the greatest width.", with_image("limits/width_most"))
    yield valid("image_high", "3.1", "An image of the greatest height.", with_image("limits/height_most"))


def sparse_shards() -> Iterator[Recipe]:
    pixel = Sample(b"pixel.png", vector("valid/one_pixel"))
    yield Recipe("sparse/5_gib", "3.1", "An image behind 5 GiB of zeros.",
                 Shard([Sample(b"zeros", ZEROS_5_GIB, OTHER_BYTES), pixel]), verifying=UNTRIED)
    yield Recipe("sparse/64_gib", "3.1", "The longest sample there is, and an image behind it.",
                 Shard([Sample(b"zeros", ZEROS_64_GIB, OTHER_BYTES), pixel]), verifying=UNTRIED)
    above = Zeros(ZEROS_64_GIB.size + 1, 0, bytes(16))
    yield Recipe("sparse/64_gib_and_a_byte", "3.1", "A sample of 2^36 + 1 bytes, which are there.",
                 Shard([Sample(b"zeros", above, OTHER_BYTES), pixel]), REFUSE, REFUSE, control="sparse/64_gib")
