#!/usr/bin/env python3
"""A decoder of the L3 image format, version 1, written from spec/format.md alone and in its order and words.

    l3_decode.py [--verify] IN.l3 OUT.pam     decode to a PAM file (section 11); `-` is stdin or stdout
    l3_decode.py --model FILE ...             with a model that files may name; as often as there are models
    l3_decode.py [--verify] --batch           lines `IN<TAB>OUT` on stdin; a line `ok`, `reject<TAB>offset N: reason`
                                              or `error<TAB>reason` (a file that cannot be read or written) for each

A file that is refused gives one line `l3_decode: FILE: offset N: reason` on stderr and exit status 1; wrong usage
gives 2. OUT is written under another name and moved into place when it is whole; if that fails, what was there stays.

`--verify` does section 9: every section is checked, and the digest. The standard library has no Zstandard, so of the
metadata it checks the structure of the frame (header, dictionary, content size, blocks, end) but not the contents of
compressed blocks nor the frame's own checksum; the records are checked where all blocks are stored or repeated bytes.

Plain rather than fast: it is there to be read and to be compared with.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import struct
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import mul
from pathlib import Path
from typing import BinaryIO

# ---------------------------------------------------------------------------------------------------------------------
# 1. Conventions


class Refusal(Exception):
    """A file that is not decoded: `offset` in the file and the `reason`."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"offset {offset}: {reason}")
        self.offset = offset
        self.reason = reason


class Violation(Refusal):
    """The file is not L3."""


class MissingModel(Refusal):
    """The file's named model was not supplied: not a verdict about the file."""


class OverLimit(Refusal):
    """The file is over a limit of this decoder (section 10): not a verdict about the file."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(offset, f"over a limit of this decoder: {reason}")


def require(condition: bool, offset: int, reason: str) -> None:
    if not condition:
        raise Violation(offset, reason)


def require_zero(part: bytes, offset: int, reason: str) -> None:
    """The `part` of the file that begins at `offset` is zero."""
    for i, byte in enumerate(part):
        require(byte == 0, offset + i, reason)


def ceil(a: int, b: int) -> int:
    return (a + b - 1) // b


def pad(a: int) -> int:
    return 16 * ceil(a, 16)


def number(data: bytes, offset: int, width: int) -> int:
    """The unsigned number of `width` bytes at `offset`."""
    return int.from_bytes(data[offset : offset + width], "little")


def fields(string: bytes, width: int, count: int) -> list[int]:
    """The first `count` fields of `width` bits of a bit string."""
    if width == 0:
        return [0] * count
    mask = (1 << width) - 1
    shifts = range(0, 8 * width, width)
    values: list[int] = []
    for start in range(0, ceil(count * width, 8), width):  # eight fields are `width` whole bytes
        eight = number(string, start, width)
        values += [(eight >> shift) & mask for shift in shifts]
    return values[:count]


# ---------------------------------------------------------------------------------------------------------------------
# 2. Layout of a file

HEADER_SIZE = 64
ENTRY_SIZE = 16
INDEX_ENTRY_SIZE = 12
MAX_FILE_SIZE = 1 << 36

# 2.1 The check

K1 = 0x9E3779B1
K2 = 0x85EBCA77
LANES = 32
U32 = 0xFFFFFFFF


def check(part: bytes) -> int:
    words = array("I", part)
    if sys.byteorder == "big":
        words.byteswap()
    total = len(words) * K1
    for lane in range(LANES):
        h = K2 * (lane + 1) & U32
        for word in words[lane::LANES]:
            h ^= word
            h = (h << 15 | h >> 17) * K1 & U32  # what the rotation leaves above bit 31 does not reach the low 32 bits
        h ^= h >> 15
        h = h * K2 & U32
        h ^= h >> 13
        total += h
    return total & U32


# ---------------------------------------------------------------------------------------------------------------------
# 3. The header

SIGNATURE = bytes.fromhex("8B4C33490D0A1A0A")
AT_HEAD_CHECK = 44
AT_DIGEST = 48
NAME_SIZE = 16
NAMED_MODEL, BIT_MODEL, CHANNEL_MAP_FEATURE, SHAPES = 1, 2, 4, 8  # of the required features

GRAY, GRAY_ALPHA, RGB, RGB_ALPHA, PALETTE_INDEX = range(5)
CHANNELS_OF_COLOUR = (1, 2, 3, 4, 1)


@dataclass(frozen=True)
class Header:
    section_count: int
    model_name: bytes | None
    may_have_bit_model: bool
    may_have_channel_map: bool
    may_have_shapes: bool
    default_model: int
    width: int
    height: int
    channels: int
    bits: int
    colour: int
    tile_width: int  # in pixels
    tile_height: int  # in pixels
    index_check: int
    digest: bytes
    is_tiny: bool = False  # section 18

    @property
    def max_sample(self) -> int:
        return (1 << self.bits) - 1

    @property
    def sample_size(self) -> int:
        """Bytes of a decoded sample."""
        return 1 if self.bits <= 8 else 2

    @property
    def at_entries(self) -> int:
        return HEADER_SIZE if self.model_name is None else HEADER_SIZE + NAME_SIZE

    @property
    def head_size(self) -> int:
        return self.at_entries + ENTRY_SIZE * self.section_count

    @property
    def index_end(self) -> int:
        tiles = ceil(self.width, self.tile_width) * ceil(self.height, self.tile_height)
        return self.head_size + INDEX_ENTRY_SIZE * tiles


def read_header(data: bytes) -> Header:
    if data[:4] == TINY_SIGNATURE:
        return read_tiny_header(data)
    require(len(data) <= MAX_FILE_SIZE, MAX_FILE_SIZE, "V1: the file is longer than 2^36 bytes")
    require(len(data) >= HEADER_SIZE, len(data), "V2: the file ends within the header")
    (
        signature,
        version,
        section_count,
        required_features,
        default_model,
        _optional_features,
        width,
        height,
        frames,
        channels,
        sample_type,
        bits,
        colour,
        alpha,
        tile_width,
        tile_height,
        index_check,
        head_check,
        digest,
    ) = struct.unpack("<8s HH HH IIII H 6B II 16s", data[:HEADER_SIZE])
    require(signature == SIGNATURE, 0, "V13: not the signature of L3")
    require(version == 1, 8, f"V14: version {version} is not known")
    require(section_count <= 16, 10, "V15: more than 16 sections")
    known_features = NAMED_MODEL | BIT_MODEL | CHANNEL_MAP_FEATURE | SHAPES
    require(required_features & ~known_features == 0, 12, "V16: requires features that are not known")
    require(default_model <= len(DEFAULT_MODELS), 14, f"V17: default model {default_model} is not known")
    named = required_features & NAMED_MODEL != 0
    require(not named or default_model == 0, 14, "V30: both a named model and a default one")
    require(1 <= width <= 1 << 20, 20, "V18: width is outside 1 to 2^20")
    require(1 <= height <= 1 << 20, 24, "V19: height is outside 1 to 2^20")
    require(frames == 1, 28, "V20: frames is not 1")
    require(colour <= PALETTE_INDEX, 36, "V25: colour is above 4")
    require(channels == CHANNELS_OF_COLOUR[colour], 32, "V21: channels does not fit colour")
    require(sample_type <= 1, 34, "V22: sample type is above 1")
    require(sample_type == 0 or colour != PALETTE_INDEX, 34, "V23: sample type of a palette image is not u8")
    low, high = ((1, 8), (9, 16))[sample_type]
    require(low <= bits <= high, 35, f"V24: bits is outside {low} to {high}")
    require(alpha <= 2, 37, "V26: alpha is above 2")
    require((alpha != 0) == (colour in (GRAY_ALPHA, RGB_ALPHA)), 37, "V27: alpha does not fit colour")
    require(1 <= tile_width <= 32, 38, "V28: tile width is outside 1 to 32")
    require(1 <= tile_height <= 32, 39, "V29: tile height is outside 1 to 32")
    header = Header(
        section_count=section_count,
        model_name=data[HEADER_SIZE : HEADER_SIZE + NAME_SIZE] if named else None,
        may_have_bit_model=required_features & BIT_MODEL != 0,
        may_have_channel_map=required_features & CHANNEL_MAP_FEATURE != 0,
        may_have_shapes=required_features & SHAPES != 0,
        default_model=default_model,
        width=width,
        height=height,
        channels=channels,
        bits=bits,
        colour=colour,
        tile_width=32 * tile_width,
        tile_height=32 * tile_height,
        index_check=index_check,
        digest=digest,
    )
    require(len(data) >= header.head_size, len(data), "V3: the file ends within the head")
    head = data[:AT_HEAD_CHECK] + bytes(4) + data[AT_HEAD_CHECK + 4 : header.head_size]
    require(check(head) == head_check, AT_HEAD_CHECK, "V10: head check does not match")
    return header


# 3.1 Section entries


@dataclass(frozen=True)
class Section:
    type: int
    check: int | None  # of a tiny file's sections None
    at_check: int  # offset of the check in the file
    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


def read_section_entries(data: bytes, header: Header) -> list[Section]:
    sections: list[Section] = []
    type_before = -1
    begin = pad(header.index_end)
    for at in range(header.at_entries, header.head_size, ENTRY_SIZE):
        section_type, flags, section_check, units, size = struct.unpack("<HHIII", data[at : at + ENTRY_SIZE])
        known = section_type >= ASIDE or section_type in IMAGE_SECTIONS
        known = known and (section_type != CHANNEL_MAP or header.may_have_channel_map)
        require(known, at, f"V32: section type {section_type} is not known")
        require(section_type > type_before, at, "V33: section types do not rise")
        require(flags == 0, at + 2, "V34: flags of a section are not zero")
        require(16 * units == begin, at + 8, "V35: the section does not begin where what comes before ends")
        require(1 <= size <= 1 << 30, at + 12, "V36: size of a section is outside 1 to 2^30")
        sections.append(Section(section_type, section_check, at + 4, begin, size))
        type_before = section_type
        begin = pad(begin + size)
    return sections


def payload_start(header: Header, sections: list[Section]) -> int:
    return pad(sections[-1].end if sections else header.index_end)


# ---------------------------------------------------------------------------------------------------------------------
# 4. Sections

PALETTE, TRANSPARENCY, COLOUR_SPACE, ICC_PROFILE, EXIF, MODEL, CHANNEL_MAP = IMAGE_SECTIONS = range(1, 8)
ASIDE = 0x8000  # the first of the types that decoding never reads
METADATA = 0x8001
KEY_SIZE = {GRAY: 2, RGB: 6}
REPEAT, CLASS_COLOURS, GRAYS = range(3)  # the rules of palettes
PART_SIZES = (4, 4, 1, 32)  # of a colour space: code points, gamma, rendering intent, chromaticities


def class_colour(entry: int) -> bytes:
    colour = bytearray(3)
    for j in range(8):
        for c in range(3):
            colour[c] |= (entry >> 3 * j + c & 1) << 7 - j
    return bytes(colour)


def read_palette(section: bytes, at: int, at_size: int, bits: int) -> list[bytes]:
    """All entries of the palette whose section begins at `at`."""
    require(len(section) >= 2, at_size, "V39: the palette is below 2 bytes")
    rule, count = section[0], section[1] + 1
    require(rule <= GRAYS, at, f"V40: rule {rule} of palettes is not known")
    require(count <= 1 << bits, at + 1, "V41: the palette has more than 2^bits entries")
    each = 1 if rule == GRAYS else 3
    given, rest = divmod(len(section) - 2, each)
    require(rest == 0 and given <= count, at_size, "V42: size of the palette is not that of k entries with k up to n")
    entries = [section[2 + each * i : 2 + each * (i + 1)] * (3 // each) for i in range(given)]
    for i in range(given, count):
        before = entries[-1] if entries else bytes(3)
        entries.append(class_colour(i) if rule == CLASS_COLOURS else before)
    return entries


def check_colour_space(section: bytes, at: int, at_size: int) -> None:
    parts = section[0]
    require(parts & ~15 == 0, at, "V46: reserved bits of the colour space are set")
    require(parts != 0, at, "V47: a colour space without parts")
    size = 1 + sum(size for bit, size in enumerate(PART_SIZES) if parts >> bit & 1)
    require(len(section) == size, at_size, f"V48: size of the colour space is not {size}")


ONE_SAMPLE = 255  # the source of a channel that has one sample everywhere


@dataclass(frozen=True)
class ChannelMap:
    coded: int  # channels
    sources: list[int]  # of each channel: a coded one, or ONE_SAMPLE
    samples: list[int]  # of those with one sample


def read_channel_map(section: bytes, at: int, at_size: int, header: Header) -> ChannelMap:
    require(len(section) == 4 * header.channels, at_size, "V49: the channel map does not have 4 bytes for each channel")
    sources: list[int] = []
    samples: list[int] = []
    coded = 0
    for c, (source, reserved, sample) in enumerate(struct.iter_unpack("<BBH", section)):
        known = source == ONE_SAMPLE or source <= coded
        require(known, at + 4 * c, "V50: a source of the channel map is not there yet")
        require(reserved == 0, at + 4 * c + 1, "V51: a reserved byte of the channel map is not zero")
        highest = header.max_sample if source == ONE_SAMPLE else 0
        require(sample <= highest, at + 4 * c + 2, f"V52: a sample of the channel map is above {highest}")
        coded += source == coded
        sources.append(source)
        samples.append(sample)
    require(0 < coded < header.channels, at, "V53: no channel is coded, or all are")
    return ChannelMap(coded, sources, samples)


def all_channels(row: bytes, header: Header, channel_map: ChannelMap) -> bytes:
    """A row as decoded samples, from those of the coded channels."""
    size = header.sample_size
    pixels = len(row) // (size * channel_map.coded)
    planes: list[list[bytes]] = []
    for source, sample in zip(channel_map.sources, channel_map.samples, strict=True):
        if source == ONE_SAMPLE:
            planes.append([sample.to_bytes(size, "big")] * pixels)
        else:
            starts = range(source * size, len(row), size * channel_map.coded)
            planes.append([row[start : start + size] for start in starts])
    return b"".join(sample for pixel in zip(*planes, strict=True) for sample in pixel)


def read_section(data: bytes, section: Section) -> bytes:
    """The contents of a section whose check and padding are right."""
    if section.check is None:
        return data[section.offset : section.end]
    end = pad(section.end)
    require(end <= len(data), len(data), "V5: the file ends within a section")
    matches = check(data[section.offset : end]) == section.check
    require(matches, section.at_check, "V11: check of a section does not match")
    require_zero(data[section.end : end], section.end, "V8: padding of a section is not zero")
    return data[section.offset : section.end]


def read_image_sections(
    data: bytes, header: Header, sections: list[Section]
) -> tuple[dict[int, bytes], list[bytes] | None, ChannelMap | None]:
    """The sections below 0x8000, by type, the entries of the palette, and the channel map."""
    contents: dict[int, bytes] = {}
    palette: list[bytes] | None = None
    channel_map: ChannelMap | None = None
    for section in sections:
        if section.type >= ASIDE:
            continue
        contents[section.type] = read_section(data, section)
        at_size = section.at_check + 8
        if section.type == PALETTE:
            require(header.colour == PALETTE_INDEX, section.at_check - 4, "V37: a palette where colour is not 4")
            palette = read_palette(contents[PALETTE], section.offset, at_size, header.bits)
        elif section.type == TRANSPARENCY and header.colour == PALETTE_INDEX:
            require(section.size <= len(palette or ()), at_size, "V43: transparency is longer than the palette")
        elif section.type == TRANSPARENCY:
            require(header.colour in KEY_SIZE, section.at_check - 4, "V44: transparency in an image with alpha")
            fits = section.size == KEY_SIZE[header.colour]
            require(fits, at_size, "V45: size of the transparency does not fit colour")
        elif section.type == COLOUR_SPACE:
            check_colour_space(contents[COLOUR_SPACE], section.offset, at_size)
        elif section.type == MODEL:
            elsewhere = header.model_name is not None or header.default_model != 0
            require(not elsewhere, section.at_check - 4, "V31: a model beside a named or default one")
        elif section.type == CHANNEL_MAP:
            channel_map = read_channel_map(contents[CHANNEL_MAP], section.offset, at_size, header)
    has_palette = header.colour != PALETTE_INDEX or palette is not None
    require(has_palette, HEADER_SIZE, "V38: palette indices without a palette")
    return contents, palette, channel_map


def zstandard_stored(data: bytes, begin: int, end: int, size: int) -> bytes | None:
    """What the one Zstandard frame in `begin .. end` unpacks to; None where only its structure could be checked."""
    require(end - begin >= 5, begin, "F5: the Zstandard frame is cut short")
    require(number(data, begin, 4) == 0xFD2FB528, begin, "F4: not a Zstandard frame")
    descriptor = data[begin + 4]
    require(descriptor & 8 == 0, begin + 4, "F6: reserved bit of the Zstandard frame is set")
    single_segment = descriptor >> 5 & 1
    at_dictionary = begin + 5 + (1 - single_segment)
    at_content_size = at_dictionary + (0, 1, 2, 4)[descriptor & 3]
    content_size_width = (single_segment, 2, 4, 8)[descriptor >> 6]
    at = at_content_size + content_size_width
    require(at <= end, begin, "F5: the Zstandard frame is cut short")
    dictionary = number(data, at_dictionary, at_content_size - at_dictionary)
    require(dictionary == 0, at_dictionary, "F7: the Zstandard frame wants a dictionary")
    window = size
    if not single_segment:
        exponent, mantissa = data[begin + 5] >> 3, data[begin + 5] & 7
        window = (8 + mantissa) << exponent + 7
    require(window <= 1 << 23, begin + 5, "F8: the Zstandard frame wants a window above 2^23")
    if content_size_width:
        content_size = number(data, at_content_size, content_size_width) + (256 if content_size_width == 2 else 0)
        require(content_size == size, at_content_size, "F12: the Zstandard frame is not of the unpacked size")
    stored = bytearray()
    all_stored = True
    last = 0
    blocks = 0
    while not last:
        blocks += 1
        require(blocks <= 16 + size // 1024, at, "F11: the Zstandard frame has too many blocks")
        require(end - at >= 3, at, "F5: the Zstandard frame is cut short")
        block = number(data, at, 3)
        last, kind, block_size = block & 1, block >> 1 & 3, block >> 3
        require(kind != 3, at, "F9: reserved type of a Zstandard block")
        require(block_size <= min(window, 1 << 17), at, "F10: a Zstandard block is above the window or 128 KiB")
        length = 1 if kind == 1 else block_size
        require(length <= end - at - 3, at, "F5: the Zstandard frame is cut short")
        if kind == 2:
            all_stored = False
        else:
            require(len(stored) + block_size <= size, at, "F12: the Zstandard frame is not of the unpacked size")
            stored += data[at + 3 : at + 3 + length] * (block_size if kind == 1 else 1)
        at += 3 + length
    at += 4 * (descriptor >> 2 & 1)  # its checksum
    require(at == end, min(at, end), "F13: the Zstandard frame does not end with the section")
    if not all_stored:
        return None
    require(len(stored) == size, begin, "F12: the Zstandard frame is not of the unpacked size")
    return bytes(stored)


def verify_metadata(data: bytes, section: Section, limits: Limits) -> None:
    require(section.size >= 13, section.at_check + 8, "F2: metadata is below 13 bytes")
    size = number(data, section.offset, 4)
    if size > limits.metadata:
        raise OverLimit(section.offset, f"{size} bytes of unpacked metadata")
    require(size > 0, section.offset, "F3: metadata without a record")
    records = zstandard_stored(data, section.offset + 4, section.end, size)
    at = 0
    while records is not None and at < len(records):
        # Offsets within what is packed mean nothing in the file: the section's stands for them.
        require(len(records) - at >= 12, section.offset, "F15: a record of the metadata is cut short")
        require(records[at + 4] <= 2, section.offset, "F16: place of a metadata record is above 2")
        is_reserved = any(records[at + 5 : at + 8])
        require(not is_reserved, section.offset, "F17: reserved bytes of a metadata record are not zero")
        at += 12 + number(records, at + 8, 4)
        require(at <= len(records), section.offset, "F15: a record of the metadata is cut short")


# ---------------------------------------------------------------------------------------------------------------------
# 5. The index

CONSTANT, RAW, FAST, DENSE = range(4)


@dataclass(frozen=True, slots=True)
class Tile:
    x: int
    y: int
    w: int
    h: int
    at: int  # offset of the index entry
    method: int
    parameters: int
    offset: int = 0  # of the payload, in bytes
    size: int = 0  # in bytes
    check: int | None = 0  # of a tiny file's tile None
    constant: tuple[int, ...] = ()


def read_index(data: bytes, header: Header, first_payload: int) -> list[Tile]:
    end = pad(header.index_end)
    require(end <= len(data), len(data), "V4: the file ends within the index")
    require(check(data[header.head_size : end]) == header.index_check, 40, "V9: index check does not match")
    require_zero(data[header.index_end : end], header.index_end, "V7: bytes after the index are not zero")
    tiles: list[Tile] = []
    at = header.head_size
    payload_end = first_payload
    for y in range(0, header.height, header.tile_height):
        for x in range(0, header.width, header.tile_width):
            w = min(header.tile_width, header.width - x)
            h = min(header.tile_height, header.height - y)
            method, parameters, size, offset, payload_check = struct.unpack("<BBHII", data[at : at + INDEX_ENTRY_SIZE])
            if method == CONSTANT:
                require(size == 0, at + 2, "V56: a constant tile has a payload")
                samples = struct.unpack("<4H", data[at + 4 : at + INDEX_ENTRY_SIZE])
                tiles.append(Tile(x, y, w, h, at, method, parameters, constant=samples))
            else:
                require(method <= DENSE, at, f"V55: method {method} is not known")
                require(size != 0, at + 2, "V57: a tile without payload")
                require(16 * offset == payload_end, at + 4, "V58: the payload is not where the one before ends")
                tiles.append(Tile(x, y, w, h, at, method, parameters, 16 * offset, 16 * size, payload_check))
                payload_end += 16 * size
            at += INDEX_ENTRY_SIZE
    require(len(data) >= payload_end, len(data), "V5: the file is shorter than its parts")
    require(len(data) <= payload_end, payload_end, "V6: the file is longer than its parts")
    return tiles


# ---------------------------------------------------------------------------------------------------------------------
# 6. Tile methods


def decode_tile(data: bytes, header: Header, tile: Tile, model: AnyModel | None) -> list[bytes]:
    """The rows of the tile, as they stand in the decoded samples."""
    if tile.method == CONSTANT:
        return constant_rows(header, tile)
    payload = data[tile.offset : tile.offset + tile.size]
    require(tile.check is None or check(payload) == tile.check, tile.at + 8, "V12: check of a payload does not match")
    if tile.method == DENSE:
        return dense_rows(header, tile, payload, model)
    return raw_rows(header, tile, payload) if tile.method == RAW else fast_rows(header, tile, payload)


def pack(header: Header, samples: Sequence[int]) -> bytes:
    """Samples as section 11 stores them."""
    return bytes(samples) if header.sample_size == 1 else struct.pack(f">{len(samples)}H", *samples)


# 6.1 Constant


def constant_rows(header: Header, tile: Tile) -> list[bytes]:
    require(tile.parameters == 0, tile.at + 1, "V59: parameters of a constant tile are not zero")
    for c, sample in enumerate(tile.constant):
        highest = header.max_sample if c < header.channels else 0
        require(sample <= highest, tile.at + 4 + 2 * c, f"V60: sample of a constant tile is above {highest}")
    return [pack(header, tile.constant[: header.channels]) * tile.w] * tile.h


# 6.2 Raw


def raw_rows(header: Header, tile: Tile, payload: bytes) -> list[bytes]:
    require(tile.parameters == 0, tile.at + 1, "V61: parameters of a raw tile are not zero")
    row = tile.w * header.channels
    count = row * tile.h
    bits = count * header.bits
    unit = 4 if header.is_tiny else 16
    require(tile.size == unit * ceil(bits, 8 * unit), tile.at + 2, "V62: size of a raw payload does not fit the tile")
    reason = "V63: bits after the last sample are not zero"
    if bits % 8:
        last = bits // 8
        require(payload[last] >> bits % 8 == 0, tile.offset + last, reason)
    require_zero(payload[ceil(bits, 8) :], tile.offset + ceil(bits, 8), reason)
    samples = fields(payload, header.bits, count)
    return [pack(header, samples[start : start + row]) for start in range(0, count, row)]


# 6.3 Fast

BAND = 8
STRIP = 32


def fast_rows(header: Header, tile: Tile, payload: bytes) -> list[bytes]:
    """Blocks in the order of the payload, then the colour transform."""
    channels, bits, maximum = header.channels, header.bits, header.max_sample
    transform = tile.parameters & 7
    require(tile.parameters >> 3 == 0, tile.at + 1, "V64: reserved parameters of a fast tile are not zero")
    require(transform <= 4, tile.at + 1, "V65: colour transform is above 4")
    require(transform == 0 or channels >= 3, tile.at + 1, "V66: colour transform of fewer than three channels")
    origins = struct.unpack_from(f"<{channels}H", payload)  # a unit at least is there
    for c, origin in enumerate(origins):
        require(origin <= maximum, tile.offset + 2 * c, "V67: origin is above 2^bits - 1")
    position = 2 * channels
    planes: list[list[list[int]]] = [[[] for _ in range(tile.h)] for _ in range(channels)]
    for band in range(0, tile.h, BAND):
        rows = min(BAND, tile.h - band)
        for strip in range(0, tile.w, STRIP):
            columns = min(STRIP, tile.w - strip)
            for plane, origin in zip(planes, origins, strict=True):
                block = read_block(payload, position, tile.offset, rows, columns, bits)
                position = block.end
                for y, residuals in enumerate(block.residuals, band):
                    above = plane[y - 1] if y > 0 else [origin] * tile.w
                    predict(plane[y], above, block.predictor, residuals, maximum)
    require(len(payload) - position <= 15, tile.offset + position, "V68: more than 15 bytes after the last block")
    require_zero(payload[position:], tile.offset + position, "V69: bytes after the last block are not zero")
    result: list[bytes] = []
    samples = [0] * (tile.w * channels)
    for y in range(tile.h):
        row = [plane[y] for plane in planes]
        if transform:
            row[:3] = untransform(transform, row, bits)
        for c in range(channels):
            samples[c::channels] = row[c]
        result.append(pack(header, samples))
    return result


# 6.4 Dense


def dense_rows(header: Header, tile: Tile, payload: bytes, model: AnyModel | None) -> list[bytes]:
    g = tile.parameters & 7
    require(g <= 5, tile.at + 1, "V73: a dense tile of more than 2^5 lanes")
    require(tile.parameters >> 3 <= 30, tile.at + 1, "V74: the ending of a dense tile is above 30")
    require(tile.w * tile.h <= 1 << 15 + g, tile.at + 1, "V75: a lane of a dense tile has more than 2^15 pixels")
    require(tile.size >= 4 << g, tile.at + 2, "V76: size of a dense payload is below that of its states")
    if model is None:
        raise Violation(tile.at, "V106: a dense tile without a model")
    if isinstance(model, TokenModel):
        planes = decode_tokens(tile, model, Lanes(payload, tile, 1 << g))
    elif isinstance(model, BitModel):
        planes = decode_bits(tile, model, payload, 1 << g)
    else:
        planes = decode_dense(tile, model, Lanes(payload, tile, 1 << g))
    samples = [0] * (tile.w * header.channels)
    result: list[bytes] = []
    for row in zip(*planes, strict=True):
        for c in range(header.channels):
            samples[c :: header.channels] = row[c]
        result.append(pack(header, samples))
    return result


# ---------------------------------------------------------------------------------------------------------------------
# 7. A block of the fast method

GROUP = 4
GROUPS_OF_ROW = 8


@dataclass(frozen=True, slots=True)
class Block:
    predictor: int
    residuals: list[list[int]]  # rows and columns inside the tile
    end: int  # position in the payload of the byte after the block


def read_block(payload: bytes, position: int, offset: int, rows: int, columns: int, bits: int) -> Block:
    """The block at `position` of the payload at `offset`; `rows` and `columns` of it lie inside the tile."""
    at = offset + position
    require(len(payload) - position >= 2, at, "V70: the payload ends within a block header")
    header = number(payload, position, 2)
    predictor = header & 7
    base_width = header >> 3 & 31
    width_bits = header >> 8 & 7
    require(predictor <= 6, at, "V77: predictor is above 6")
    require(base_width <= bits, at, "V78: base width is above bits")
    require(width_bits <= 4, at, "V79: width bits is above 4")
    require(header >> 11 == 0, at, "V80: reserved bits of a block header are not zero")
    position += 2

    require(len(payload) - position >= 8 * width_bits, offset + position, "V71: the payload ends within the widths")
    added = fields(payload[position : position + 8 * width_bits], width_bits, BAND * GROUPS_OF_ROW)
    groups = ceil(columns, GROUP)  # that are present in a row
    widths = [[base_width + a for a in added[g : g + groups]] for g in range(0, GROUPS_OF_ROW * rows, GROUPS_OF_ROW)]
    require(max(map(max, widths)) <= bits, offset + position, "V81: width of a group is above bits")
    position += 8 * width_bits

    end = position + ceil(GROUP * sum(map(sum, widths)), 8)
    require(end <= len(payload), offset + position, "V72: the payload ends within the codes")
    bit = 8 * position
    residuals: list[list[int]] = []
    for widths_of_row in widths:
        row: list[int] = []
        for b in widths_of_row:
            if b == 0:
                row += (0, 0, 0, 0)
                continue
            codes = number(payload, bit >> 3, 9) >> (bit & 7)  # 4 * 16 bits from any bit of the first byte: 9 bytes
            mask = (1 << b) - 1
            half_range = 1 << (b - 1)
            row += (
                (codes & mask) - half_range,
                (codes >> b & mask) - half_range,
                (codes >> 2 * b & mask) - half_range,
                (codes >> 3 * b & mask) - half_range,
            )
            bit += GROUP * b
        residuals.append(row[:columns])
    return Block(predictor, residuals, end)


# 7.1 Prediction


def avg(a: int, b: int) -> int:
    return (a + b + 1) >> 1


PREDICTORS: tuple[Callable[[int, int, int, int], int], ...] = (
    lambda w, n, nw, ne: w,
    lambda w, n, nw, ne: n,
    lambda w, n, nw, ne: w + n - nw,
    lambda w, n, nw, ne: avg(n, avg(nw, ne)),
    lambda w, n, nw, ne: w + avg(n, avg(n, nw)) - nw,
    lambda w, n, nw, ne: w + avg(n, avg(ne, nw)) - nw,
    lambda w, n, nw, ne: w + avg(n, nw) - nw,
)


def predict(row: list[int], above: list[int], predictor: int, residuals: list[int], maximum: int) -> None:
    """Append the samples of one row of a block to the `row` of the tile; `above` is the origin in its first row."""
    prediction = PREDICTORS[predictor]
    x = len(row)
    norths = above[x : x + len(residuals)]
    nw = above[x - 1] if x > 0 else norths[0]
    w = row[x - 1] if x > 0 else norths[0]
    north_easts = norths[1:] + norths[-1:]
    for n, ne, residual in zip(norths, north_easts, residuals, strict=True):
        w = (prediction(w, n, nw, ne) + residual) & maximum
        row.append(w)
        nw = n


# 7.2 Colour transforms


def untransform(transform: int, row: list[list[int]], bits: int) -> tuple[list[int], list[int], list[int]]:
    """The red, green and blue of a row from its channels c0, c1, c2."""
    m = (1 << bits) - 1

    def half(v: int) -> int:
        return (v if v <= m >> 1 else v - m - 1) >> 1

    reds: list[int] = []
    greens: list[int] = []
    blues: list[int] = []
    for c0, c1, c2 in zip(row[0], row[1], row[2], strict=True):
        if transform == 1:
            g = c1
            r = (c0 + g) & m
            b = (c2 + g) & m
        elif transform == 2:
            g = c1
            r = (c0 + g) & m
            b = (c2 + avg(r, g)) & m
        elif transform == 3:
            g = c1
            b = (c2 + g) & m
            r = (c0 + avg(b, g)) & m
        else:
            t = c1 - half(c2)
            g = (c2 + t) & m
            b = (t - half(c0)) & m
            r = (c0 + b) & m
        reds.append(r)
        greens.append(g)
        blues.append(b)
    return reds, greens, blues


# ---------------------------------------------------------------------------------------------------------------------
# 9. Verifying


def verify_more(data: bytes, header: Header, sections: list[Section], limits: Limits) -> None:
    """What verifying asks for beyond decoding."""
    if not header.is_tiny:
        digest = hashlib.sha256(data[:AT_HEAD_CHECK])
        digest.update(bytes(HEADER_SIZE - AT_HEAD_CHECK))  # head check and digest, as zero
        digest.update(data[HEADER_SIZE : payload_start(header, sections)])
        require(digest.digest()[:16] == header.digest, AT_DIGEST, "F1: digest does not match")
    for section in sections:
        if section.type >= ASIDE:
            read_section(data, section)
        if section.type == METADATA:
            verify_metadata(data, section, limits)


# ---------------------------------------------------------------------------------------------------------------------
# 10. Limits


@dataclass(frozen=True)
class Limits:
    pixels: int = 1 << 28
    sample_bytes: int = 1 << 30
    metadata: int = 64 << 20


DEFAULT_LIMITS = Limits()


def require_limits(header: Header, limits: Limits) -> None:
    pixels = header.width * header.height
    if pixels > limits.pixels:
        raise OverLimit(20, f"{pixels} pixels")
    sample_bytes = pixels * header.channels * header.sample_size
    if sample_bytes > limits.sample_bytes:
        raise OverLimit(20, f"{sample_bytes} bytes of decoded samples")


# ---------------------------------------------------------------------------------------------------------------------
# The whole decoder


@dataclass
class Image:
    width: int
    height: int
    channels: int
    bits: int
    colour: int
    samples: bytearray  # as in PAM: where bits is above 8 two bytes each, most significant first
    palette: list[bytes] | None  # red, green, blue of each entry
    transparency: bytes | None

    def values(self) -> Sequence[int]:
        """The samples as numbers."""
        if self.bits <= 8:
            return self.samples
        values = array("H", bytes(self.samples))
        if sys.byteorder == "little":
            values.byteswap()
        return values


Models = Mapping[bytes, bytes]  # by their names
NO_MODELS: Models = {}


def decode(data: bytes, limits: Limits = DEFAULT_LIMITS, models: Models = NO_MODELS) -> Image:
    """The image of a file; raises Violation, OverLimit or MissingModel."""
    return decode_file(data, limits, models, verifying=False)


def verify(data: bytes, limits: Limits = DEFAULT_LIMITS, models: Models = NO_MODELS) -> Image:
    """Decode, and whatever else section 9 asks for."""
    return decode_file(data, limits, models, verifying=True)


def decode_file(data: bytes, limits: Limits, models: Models, verifying: bool) -> Image:
    header = read_header(data)
    require_limits(header, limits)
    if header.is_tiny:
        sections, tiles = read_tiny(data, header)
    else:
        sections = read_section_entries(data, header)
        tiles = read_index(data, header, payload_start(header, sections))
    contents, palette, channel_map = read_image_sections(data, header, sections)
    coded = header if channel_map is None else replace(header, channels=channel_map.coded)
    model = find_model(data, coded, sections, models)
    pixel_size = header.channels * header.sample_size
    try:
        samples = bytearray(header.width * header.height * pixel_size)
    except MemoryError:
        raise OverLimit(20, "memory for the decoded samples") from None
    for tile in tiles:
        for y, coded_row in enumerate(decode_tile(data, coded, tile, model), tile.y):
            row = coded_row if channel_map is None else all_channels(coded_row, header, channel_map)
            start = (y * header.width + tile.x) * pixel_size
            samples[start : start + len(row)] = row
    if verifying:
        verify_more(data, header, sections, limits)
    return Image(
        width=header.width,
        height=header.height,
        channels=header.channels,
        bits=header.bits,
        colour=header.colour,
        samples=samples,
        palette=palette,
        transparency=contents.get(TRANSPARENCY),
    )


# ---------------------------------------------------------------------------------------------------------------------
# 11. PAM

TUPLE_TYPES = ("GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA", "PALETTE_INDICES")


def pam(image: Image) -> Iterator[bytes | bytearray]:
    """The parts of a PAM file."""
    tuple_type = TUPLE_TYPES[image.colour]
    if image.bits == 1:
        tuple_type = tuple_type.replace("GRAYSCALE", "BLACKANDWHITE")
    lines = (
        "P7",
        f"WIDTH {image.width}",
        f"HEIGHT {image.height}",
        f"DEPTH {image.channels}",
        f"MAXVAL {(1 << image.bits) - 1}",
        f"TUPLTYPE {tuple_type}",
        "ENDHDR",
    )
    yield "".join(line + "\n" for line in lines).encode("ascii")
    yield image.samples


# ---------------------------------------------------------------------------------------------------------------------
# 12. The model


@dataclass
class Part:
    """A part of the model, a bit string, and how far it is read."""

    string: int  # the bits, the first one lowest
    offset: int  # in the file
    size: int
    bit: int = 0

    def require(self, condition: bool, reason: str) -> None:
        require(condition, self.offset + self.bit // 8, reason)

    def field(self, width: int) -> int:
        self.require(self.bit + width <= 8 * self.size, "V91: a part of the model is too short")
        value = self.string >> self.bit & (1 << width) - 1
        self.bit += width
        return value

    def end(self) -> None:
        self.require(ceil(self.bit, 8) == self.size, "V92: a part of the model is too long")
        self.require(self.string >> self.bit == 0, "V93: bits after the end of a part are not zero")


@dataclass
class ModelChannel:
    weights: list[tuple[int, ...]]  # of each class: those of the taps
    activity_weights: list[int]
    zone_groups: list[int]
    sign_groups: list[int]
    rows: list[list[list[int]]]  # by group of zones and group of sign patterns: the table of each level
    class_tables: int  # how many
    class_contexts: list[int]  # for each class of the channel before: which one


@dataclass
class Model:
    channels: list[ModelChannel]
    tables: list[Table]
    class_tables: list[list[Table]]  # of each channel


def name_of(model: bytes) -> bytes:
    return hashlib.sha256(model).digest()[:NAME_SIZE]


def find_model(data: bytes, header: Header, sections: list[Section], models: Models) -> AnyModel | None:
    """The file's model, from wherever."""
    for section in sections:
        if section.type == MODEL:
            return read_model(data, section.offset, section.size, section.at_check - 4, header)
    if header.default_model != 0:
        at_name = 14
        supplied = DEFAULT_MODELS[header.default_model - 1].read_bytes()
    elif header.model_name is not None:
        at_name = HEADER_SIZE
        if header.model_name not in models:
            raise MissingModel(HEADER_SIZE, f"its model was not supplied: {header.model_name.hex()}")
        supplied = models[header.model_name]
    else:
        return None
    return read_model(supplied, 0, len(supplied), at_name, header)


def read_model(data: bytes, at: int, size: int, at_name: int, header: Header) -> AnyModel:
    """A model of `size` bytes at `at`, which the file says at `at_name` to have."""
    kind = data[at]
    if kind == TOKEN_MODEL:
        return read_token_model(data, at, size, header)
    if kind == BIT_KIND:
        require(header.may_have_bit_model, at, "V82: a bit model without its required feature")
        return read_bit_model(data, at, size, header)
    require(kind == 0, at, f"V82: kind {kind} of a model is not known")
    require(header.bits == 8, at_name, "V54: a model of kind 0 where bits is not 8")
    return read_dense_model(data, at, size, header)


# 12.1 Its parts


def read_dense_model(data: bytes, at: int, size: int, header: Header) -> Model:
    require(size >= 8, at, "V87: the model ends within its fields")
    _, channels, tables, class_tables, *classes = data[at : at + 8]
    require(channels == header.channels, at + 1, "V83: the model is not for this number of channels")
    require(1 <= tables <= 24, at + 2, "V84: tables of the model are outside 1 to 24")
    for c, count in enumerate(classes):
        low, high = (1, 32) if c < channels else (0, 0)
        require(low <= count <= high, at + 4 + c, f"V86: classes of a channel are outside {low} to {high}")
    count = channels + tables + class_tables
    first = 8 + 2 * count
    require(size >= first, at, "V87: the model ends within its fields")
    begins = [*struct.unpack_from(f"<{count}H", data, at + 8), size]
    require(begins[0] == first, at + 8, "V88: the first part of the model is not behind the fields")
    parts: list[Part] = []
    for i in range(count):
        begin, end = begins[i], begins[i + 1]
        require(end >= begin, at + 8 + 2 * i, "V89: a part of the model ends before it begins")
        require(end <= size, at + 8 + 2 * i, "V90: a part of the model ends behind its end")
        parts.append(Part(number(data, at + begin, end - begin), at + begin, end - begin))

    model = Model([], [], [])
    for c in range(channels):
        model.channels.append(read_channel(parts.pop(0), c, tables, classes, CHANNELS))
    for _ in range(tables):
        model.tables.append(read_table(parts.pop(0), 255, 256))
    require_class_tables(class_tables, model.channels, at + 3)
    model.class_tables = read_class_tables(parts, model.channels, classes)
    return model


# 12.2 Channels

TAPS = 24


PAIRS = ((0, 8), (1, 9), (2, 10), (3, 11), (4, 12), (5, 13), (19, 14), (23, 15))  # taps of a sample and of its error


@dataclass(frozen=True)
class RowFormat:
    levels: int
    last_width: int  # of the field `last`
    table_width: int  # of a field that names a table


@dataclass(frozen=True)
class ChannelFormat:
    most_of_pair: int  # that the weights of a pair may add up to, or minus them
    most_of_activity: int  # that activity weights may add up to
    rows: RowFormat


CHANNELS = ChannelFormat(128, 128, RowFormat(levels=64, last_width=6, table_width=5))


def read_channel(part: Part, c: int, tables: int, classes: list[int], form: ChannelFormat) -> ModelChannel:
    earlier = min(c, 2)
    channel = ModelChannel(
        weights=read_weights(part, earlier, classes[c], form.most_of_pair),
        activity_weights=[part.field(7) for _ in range(9 + earlier)],
        zone_groups=[0] * 16,
        sign_groups=[0] * 64,
        rows=[],
        class_tables=0,
        class_contexts=[0] * (classes[c - 1] if c > 0 else 1),
    )
    most = form.most_of_activity
    part.require(sum(channel.activity_weights) <= most, f"V97: activity weights add up to more than {most}")
    if part.field(1) == 1:
        channel.zone_groups = [part.field(2) for _ in range(16)]
        channel.sign_groups = [part.field(3) for _ in range(64)]
    for _ in range(max(channel.zone_groups) + 1):
        channel.rows.append([read_row(part, tables, form.rows) for _ in range(max(channel.sign_groups) + 1)])
    if classes[c] > 1:
        channel.class_tables = part.field(3) + 1
        if channel.class_tables > 1:
            channel.class_contexts = [part.field(3) for _ in channel.class_contexts]
        part.require(max(channel.class_contexts) < channel.class_tables, "V99: a class table that is not there")
    part.end()
    return channel


def read_weights(part: Part, earlier: int, classes: int, most_of_pair: int) -> list[tuple[int, ...]]:
    """The weights of each class."""
    coded = [*range(1, 14), *(14, 15)[:earlier], *(17, 18, 19, 21, 22, 23)[: 3 * earlier]]
    widths: list[int] = []
    least_weights: list[int] = []
    for _ in coded:
        widths.append(part.field(4))
        part.require(widths[-1] <= 8, "V94: width of a weight is above 8")
        least = part.field(8)
        least_weights.append(least - 256 if least >= 128 else least)
    weights = [[0] * TAPS for _ in range(classes)]
    for tap, width, least in zip(coded, widths, least_weights, strict=True):
        for of_class in weights:
            of_class[tap] = least + part.field(width)
    for of_class in weights:
        of_class[0] = 64 - sum(of_class[1:8])
        of_class[16] = -sum(of_class[17:20])
        of_class[20] = -sum(of_class[21:24])
        part.require(-128 <= min(of_class) and max(of_class) <= 127, "V95: a weight is outside -128 to 127")
        for sample, error in PAIRS:
            in_range = abs(of_class[sample] + of_class[error]) <= most_of_pair
            part.require(in_range, f"V96: weights of a sample and its error add up to more than {most_of_pair}")
    return [tuple(of_class) for of_class in weights]


def read_row(part: Part, tables: int, rows: RowFormat) -> list[int]:
    """The table of each level."""
    last = part.field(rows.last_width)
    part.require(last < rows.levels, f"V131: last of a row is above {rows.levels - 1}")
    row = read_tables_of(part, last, tables, rows.table_width)
    return row + row[-1:] * (rows.levels - len(row))


def read_tables_of(part: Part, last: int, tables: int, width: int) -> list[int]:
    """The tables of 0 to `last`: the same as the one before, the next higher one, or one in a field of `width` bits."""
    row = [part.field(width)]
    for _ in range(last):
        if part.field(1) == 0:
            row.append(row[-1])
        elif part.field(1) == 0:
            row.append(row[-1] + 1)
        else:
            row.append(part.field(width))
    part.require(max(row) < tables, "V98: a table that is not there")
    return row


# 12.3 Tables

SLOTS = 4096


@dataclass
class Table:
    frequencies: list[int]
    buckets: int

    @cached_property
    def slots(self) -> list[tuple[int, int, int]]:
        """Of each slot its symbol, the frequency of that, and which number of it the slot is."""
        return slots_of(self.frequencies + [0] * (self.buckets - len(self.frequencies)))


def read_table(part: Part, highest: int, buckets: int) -> Table:
    last = part.field(8)
    part.require(1 <= last <= highest, f"V100: last symbol of a table is outside 1 to {highest}")
    rest = part.field(5)
    part.require(rest <= last, "V101: rest symbol of a table is above its last one")
    mode = part.field(2)
    part.require(mode <= 2, "V102: mode of a table is 3")
    frequencies = [0] * (last + 1)
    p1 = p2 = 9
    for i in range(last + 1):
        if i == rest:
            continue
        expected = (p1, p2, (p1 + p2 + 1) // 2)[mode]
        difference = 0
        while part.field(1) == 1:
            difference += 1
            part.require(difference <= 12, "V103: a frequency of less than 0 or more than 12 bits")
        if difference and part.field(1) == 1:
            difference = -difference
        n = expected + difference
        part.require(0 <= n <= 12, "V103: a frequency of less than 0 or more than 12 bits")
        if n > 0:
            t = min(n - 1, 3)
            frequencies[i] = ((1 << t) + part.field(t)) << n - 1 - t
        p1, p2 = n, p1
    total = sum(frequencies)
    part.require(1 <= total < SLOTS, "V104: frequencies of a table add up to 0, or to 4096 or more without the rest")
    frequencies[rest] = SLOTS - total
    part.require(frequencies[last] > 0, "V105: the last symbol of a table has the frequency 0")
    part.end()
    return Table(frequencies, buckets)


def require_class_tables(class_tables: int, channels: list[ModelChannel], at: int) -> None:
    wanted = sum(channel.class_tables for channel in channels)
    require(class_tables == wanted, at, "V85: class tables of the model are not those of its channels")


def read_class_tables(parts: list[Part], channels: list[ModelChannel], classes: list[int]) -> list[list[Table]]:
    """Those of each channel, from the front of `parts`."""
    return [
        [read_table(parts.pop(0), count - 1, 32) for _ in range(channel.class_tables)]
        for channel, count in zip(channels, classes, strict=False)
    ]


# 12.4 From frequencies to slots


def slots_of(f: list[int]) -> list[tuple[int, int, int]]:
    q_count = len(f)
    s = SLOTS // q_count
    r = list(f)
    small = [symbol for symbol in range(q_count) if f[symbol] < s]
    large = [symbol for symbol in range(q_count) if f[symbol] >= s]
    own = [s] * q_count
    other = [0] * q_count
    first = [0] * q_count
    i = j = 0
    while i < len(small) or (j + 1 < len(large) and r[large[j]] < s):
        b = large[j]
        if r[b] < s:
            a = large[j + 1]
            q = b
            own[q] = r[b]
            j += 1
        else:
            a = b
            q = small[i]
            own[q] = f[q]
            i += 1
        other[q] = a
        r[a] -= s - own[q]
        first[q] = r[a]
    slots: list[tuple[int, int, int]] = []
    for q in range(q_count):
        slots += [(q, f[q], k) for k in range(own[q])]
        a = other[q]
        slots += [(a, f[a], first[q] + k - own[q]) for k in range(own[q], s)]
    return slots


# ---------------------------------------------------------------------------------------------------------------------
# 13. A dense tile

STATE = 65536  # of a lane that has decoded all its symbols; below it, one takes a word

Place = tuple[int, int, int]  # lane, column, row

# 13.1 Symbols


class Lanes:
    def __init__(self, payload: bytes, tile: Tile, lanes: int) -> None:
        self.offset = tile.offset  # of the payload
        self.ending = Ending(tile, lanes)
        self.takes_words = [True] * lanes
        self.states = list(struct.unpack_from(f"<{lanes}I", payload))
        self.payload = payload
        self.position = 4 * lanes  # of the next word

    def symbol(self, lane: int, table: Table) -> int:
        """Decodes one. Called in order of lanes in each round, so a lane can take its word at once."""
        x = self.states[lane]
        symbol, frequency, n = table.slots[x & SLOTS - 1]
        self.set_state(lane, frequency * (x >> 12) + n)
        return symbol

    def either(self, lane: int, frequency: int) -> bool:
        """One of two: whether it is the one that has this frequency."""
        x = self.states[lane]
        v = x & SLOTS - 1
        if v < frequency:
            self.set_state(lane, frequency * (x >> 12) + v)
        else:
            self.set_state(lane, (SLOTS - frequency) * (x >> 12) + v - frequency)
        return v < frequency

    def set_state(self, lane: int, x: int) -> None:
        if x < STATE and self.takes_words[lane]:
            at = self.position
            require(at < len(self.payload), self.offset + at, "V107: the payload ends within the words")
            x = x << 16 | self.payload[at] | self.payload[at + 1] << 8
            self.position = at + 2
        self.states[lane] = x

    def end(self) -> None:
        for lane, x in enumerate(self.states):
            if self.ending.columns > 0:
                require(x <= STATE, self.offset + 4 * lane, "V109: state of a lane is above 65536 in the end")
            else:
                require(x == STATE, self.offset + 4 * lane, "V108: state of a lane is not 65536 in the end")
        left = self.offset + self.position
        require(len(self.payload) - self.position <= 15, left, "V110: more than 15 bytes after the last word")
        require_zero(self.payload[self.position :], left, "V111: bytes after the last word are not zero")


# 13.6 The ending


class Ending:
    """Which pixels are in it: the last columns of the last rows."""

    def __init__(self, tile: Tile, lanes: int) -> None:
        t = tile.parameters >> 3
        self.columns = 0 if t == 0 else (2 + t % 2) * 2 ** (t // 2) // 2 if t <= 20 else 1024
        self.rows = lanes if t <= 20 else lanes * 2 ** (t - 20)
        self.w, self.h = tile.w, tile.h

    def __contains__(self, place: Place) -> bool:
        _, x, y = place
        return self.columns > 0 and x + self.columns >= self.w and y + self.rows >= self.h


# 13.2 Classes

BLOCK = 16


def decode_classes(
    lanes: Lanes, model: Model | TokenModel, blocks: int, decode_still: Callable[[range], list[bool]] | None = None
) -> list[list[int]]:
    """Of each channel, the class of each block. `decode_still` says which of some blocks have none (15.4)."""
    classes = [[0] * blocks for _ in model.channels]
    lane_count = len(lanes.states)
    for i in range(0, blocks, lane_count):
        of_round = range(i, min(i + lane_count, blocks))
        still = decode_still(of_round) if decode_still is not None else [False] * len(of_round)
        for c, channel in enumerate(model.channels):
            if channel.class_tables == 0:
                continue
            for block in of_round:
                if still[block - i]:
                    continue
                context = classes[c - 1][block] if c > 0 else 0
                table = model.class_tables[c][channel.class_contexts[context]]
                classes[c][block] = lanes.symbol(block - i, table)
    return classes


# 13.3 Samples

def steps(tile: Tile, lanes: Lanes) -> Iterator[list[Place]]:
    """The places of the active lanes of each step, in which those within the ending take no words."""
    w, h, lane_count = tile.w, tile.h, len(lanes.states)
    pitch = max(w, 2 * lane_count)
    last_step = pitch * ((h - 1) // lane_count) + w - 1 + 2 * ((h - 1) % lane_count)
    for step in range(last_step + 1):
        places: list[Place] = []
        for lane in range(min(lane_count, step // 2 + 1)):
            turn, x = divmod(step - 2 * lane, pitch)
            y = lane + lane_count * turn
            if x < w and y < h:
                places.append((lane, x, y))
                lanes.takes_words[lane] = places[-1] not in lanes.ending
        yield places


def neighbours(rows: list[list[int]], x: int, y: int) -> tuple[int, int, int, int, int, int, int, int]:
    """W, N, NW, NE, WW, NN, NNE, NWW of column x, row y."""
    row = rows[y]
    if y == 0:
        w = row[x - 1] if x > 0 else 0
        ww = row[x - 2] if x > 1 else 0
        return w, w, w, w, ww, w, w, w
    above = rows[y - 1]
    not_last = x + 1 < len(row)
    n = above[x]
    ne = above[x + 1] if not_last else n
    if y == 1:
        nn, nne = n, ne
    else:
        nn = rows[y - 2][x]
        nne = rows[y - 2][x + 1] if not_last else nn
    if x == 0:
        return n, n, n, ne, n, nn, nne, n
    nw = above[x - 1]
    if x == 1:
        return row[0], n, nw, ne, nw, nn, nne, nw
    return row[x - 1], n, nw, ne, row[x - 2], nn, nne, above[x - 2]


Seen = tuple[int, int, int, int, int]  # what later channels look at: error, W, N, NW, sample
NOT_LOOKED_AT = (0, 0, 0, 0, 0)


def decode_dense(tile: Tile, model: Model, lanes: Lanes) -> list[list[list[int]]]:
    """The rows of each channel."""
    w, h = tile.w, tile.h
    blocks_of_row = ceil(w, BLOCK)
    classes = decode_classes(lanes, model, blocks_of_row * ceil(h, BLOCK))
    samples = [[[0] * w for _ in range(h)] for _ in model.channels]
    errors = [[[0] * w for _ in range(h)] for _ in model.channels]
    for places in steps(tile, lanes):
        one_before = two_before = [NOT_LOOKED_AT] * len(places)
        for c, channel in enumerate(model.channels):
            seen: list[Seen] = []
            for (lane, x, y), one, two in zip(places, one_before, two_before, strict=True):
                weights = channel.weights[classes[c][y // BLOCK * blocks_of_row + x // BLOCK]]
                around = neighbours(samples[c], x, y)
                errors_around = neighbours(errors[c], x, y)[:6]
                taps = (*around, *errors_around, one[0], two[0], *one[1:], *two[1:])
                p, up = split_sum(signed_16(sum_of(weights, taps)), 255)
                symbol = lanes.symbol(lane, model.tables[table_of(channel, taps, p, up)])
                samples[c][y][x] = sample = sample_of(symbol, p, up)
                errors[c][y][x] = error = max(-128, min(sample - p, 127))
                seen.append((error, *around[:3], sample))
            one_before, two_before = seen, one_before
    lanes.end()
    return samples


def sum_of(weights: Sequence[int], taps: Sequence[int]) -> int:
    return 32 + sum(map(mul, weights, taps))


def signed_16(a: int) -> int:
    """Modulo 2^16."""
    return (a + 32768) % 65536 - 32768


def split_sum(a: int, maximum: int) -> tuple[int, int]:
    """The prediction p and `up`."""
    p = max(0, min(a // 64, maximum))
    return p, 1 if a - 64 * p >= 32 else 0


# 13.4 The table of a sample


def table_of(channel: ModelChannel, taps: Sequence[int], p: int, up: int) -> int:
    w, n, nw, ne = taps[:4]
    errors = taps[8:14]
    terms = (*errors, w - nw, n - nw, n - ne, taps[14], taps[15])  # the last ones may have no weight
    activity = 8 + sum(map(mul, channel.activity_weights, map(abs, terms)))
    d = 255 - p if up else p
    zone = (3613 * d + 61923) // 65536
    pattern = sign_pattern(w, n, errors, p, up)
    return channel.rows[channel.zone_groups[zone]][channel.sign_groups[pattern]][level_of(activity)]


def level_of(activity: int) -> int:
    o = activity.bit_length() - 1
    return 4 * (o - 3) + (activity >> o - 2) % 4


def sign_pattern(w: int, n: int, errors: Sequence[int], p: int, up: int) -> int:
    signs = (errors[0] < 0, errors[1] < 0, errors[2] < 0, errors[3] < 0, w >= p, n >= p)
    pattern = sum(map(mul, signs, (1, 2, 4, 8, 16, 32)))
    return pattern ^ 63 if up else pattern


# 13.5 From symbol to sample


def sample_of(z: int, p: int, up: int, values: int = 256) -> int:
    m = (z + 1) // 2
    subtracted = z % 2 != up
    return (p - m if subtracted else p + m) % values


# ---------------------------------------------------------------------------------------------------------------------
# 14. The token model

TOKEN_MODEL = 1  # its kind
MAX_MODEL = 1 << 17
MATCH, LITERAL, HOLE, STILL, FOLLOW, ROWS = 1, 2, 4, 32, 64, 128  # flags
NO_LISTING, RANKS, COLOURS = range(3)


@dataclass
class Match:
    mask: int
    rows: list[int]  # of each pattern
    tables: list[list[int]]  # of each row: the table of each octave


@dataclass
class TokenModel:
    widths: list[int]  # `D` of each engine channel
    channels: list[ModelChannel]  # none with the flag literal
    literal: list[int] | None  # with the flag literal: the table of W = 0, 1, ... and of all above
    still: tuple[int, int] | None  # the frequencies of still blocks
    still_rows: list[int] | None  # those of still rows
    match: Match | None
    follow: bool
    hole: int | None
    tables: list[Table]
    class_tables: list[list[Table]]  # of each engine channel
    listing: int
    listed: list[list[int]]  # ranks: the values of each channel; colours: the samples of each colour


# 14.1 Its parts


def read_token_model(data: bytes, at: int, size: int, header: Header) -> TokenModel:
    require(size <= MAX_MODEL, at + MAX_MODEL, "V125: the model is above 2^17 bytes")
    require(size >= 12, at, "V87: the model ends within its fields")
    _, channels, bits, flags, hole, tables, class_tables, *classes = struct.unpack_from("<4BH6B", data, at)
    require(channels == header.channels, at + 1, "V83: the model is not for this number of channels")
    require(bits == header.bits, at + 2, "V112: the model is not for this number of bits")
    listing = flags >> 3 & 3
    engine_channels = 1 if listing == COLOURS else channels
    require(listing <= COLOURS, at + 3, "V113: listing of the model is 3")
    require(not flags & LITERAL or engine_channels == 1, at + 3, "V114: literal with more than one engine channel")
    can_have_hole = engine_channels == 1 and flags & (MATCH | LITERAL) == MATCH
    reason = "V115: hole without match, with literal or more channels than one"
    require(not flags & HOLE or can_have_hole, at + 3, reason)
    require(not flags & STILL or flags & MATCH != 0, at + 3, "V116: still without match")
    require(not flags & FOLLOW or flags & MATCH != 0, at + 3, "V117: follow without match")
    require(not flags & ROWS or flags & STILL != 0, at + 3, "V118: rows without still")
    require(1 <= tables <= 64, at + 6, "V120: tables of the model are outside 1 to 64")
    require(class_tables <= 32, at + 7, "V121: class tables of the model are above 32")
    most_classes = 1 if flags & LITERAL else 32
    for e, count in enumerate(classes):
        low, high = (1, most_classes) if e < engine_channels else (0, 0)
        require(low <= count <= high, at + 8 + e, f"V122: classes of an engine channel are outside {low} to {high}")

    first = 12 + 2 * (engine_channels + 1) + tables + class_tables
    require(size >= first, at, "V87: the model ends within its fields")
    sizes = [*struct.unpack_from(f"<{engine_channels + 1}H{tables + class_tables}B", data, at + 12)]
    has_match = flags & MATCH != 0
    require(has_match or sizes[engine_channels] == 0, at + 12 + 2 * engine_channels, "V123: a match without its flag")
    require(first + sum(sizes) <= size, at, "V124: the parts of the model are longer than it")
    sizes.append(size - first - sum(sizes))
    parts: list[Part] = []
    begin = at + first
    for size in sizes:
        parts.append(Part(number(data, begin, size), begin, size))
        begin += size

    widths, listed = read_listing(parts.pop(), listing, channels, bits)
    require(hole < (1 << widths[0] if flags & HOLE else 1), at + 4, "V119: the hole is not a value")
    channel_parts = [parts.pop(0) for _ in range(engine_channels)]
    match_part = parts.pop(0)
    model_channels: list[ModelChannel] = []
    literal = None
    if flags & LITERAL:
        literal = read_literal(channel_parts[0], tables)
    else:
        for e, part in enumerate(channel_parts):
            model_channels.append(read_channel(part, e, tables, classes, TOKEN_CHANNELS))
    require_class_tables(class_tables, model_channels, at + 7)
    still = read_still(match_part) if flags & STILL else None
    still_rows = read_still_rows(match_part) if flags & ROWS else None
    match = read_match(match_part, tables) if has_match else None
    return TokenModel(
        widths=widths,
        channels=model_channels,
        literal=literal,
        still=still,
        still_rows=still_rows,
        match=match,
        follow=flags & FOLLOW != 0,
        hole=hole if flags & HOLE else None,
        tables=[read_table(parts.pop(0), 53, 64) for _ in range(tables)],
        class_tables=read_class_tables(parts, model_channels, classes),
        listing=listing,
        listed=listed,
    )


# 14.2 Values

MOST_LISTED = 32768


def read_listing(part: Part, listing: int, channels: int, bits: int) -> tuple[list[int], list[list[int]]]:
    """`D` of each engine channel, and what is listed."""
    if listing == RANKS:
        listed = read_ranks(part, channels, bits)
        widths = [width_of(len(values)) for values in listed]
    elif listing == COLOURS:
        listed = read_colours(part, channels, bits)
        widths = [width_of(len(listed))]
    else:
        listed = []
        widths = [bits] * channels
    part.end()
    return widths, listed


def width_of(count: int) -> int:
    return max(1, (count - 1).bit_length())


def read_ranks(part: Part, channels: int, bits: int) -> list[list[int]]:
    """The listed values of each channel."""
    listed: list[list[int]] = []
    left = MOST_LISTED
    for _ in range(channels):
        count = part.field(16)
        part.require(1 <= count <= left, "V126: listed values are none, or more than 32768 in all")
        left -= count
        values = [part.field(16)]
        least_gap = part.field(16)
        part.require(least_gap >= 1, "V127: least gap is 0")
        for i in range(count - 1):
            if i % 32 == 0:
                width = part.field(5)
                part.require(width <= 16, "V128: width of gaps is above 16")
            values.append(values[-1] + least_gap + part.field(width))
        part.require(values[-1] < 1 << bits, "V129: a listed value is above 2^bits - 1")
        listed.append(values)
    return listed


def read_colours(part: Part, channels: int, bits: int) -> list[list[int]]:
    """The samples of each colour."""
    count = part.field(16)
    part.require(1 <= count and count * channels <= MOST_LISTED, "V130: colours are none, or above 32768 samples")
    return [[part.field(bits) for _ in range(channels)] for _ in range(count)]


def samples_of(model: TokenModel, rows: list[list[list[int]]]) -> list[list[list[int]]]:
    """The rows of each channel, of those of each engine channel."""

    def listed(v: int, values: list[int]) -> int:
        return values[v] if v < len(values) else 0

    if model.listing == RANKS:
        pairs = zip(rows, model.listed, strict=True)
        return [[[listed(v, values) for v in row] for row in plane] for plane, values in pairs]
    if model.listing == COLOURS:
        values_of_channels = [list(values) for values in zip(*model.listed, strict=True)]
        return [[[listed(v, values) for v in row] for row in rows[0]] for values in values_of_channels]
    return rows


# 14.3 Channels

TOKEN_CHANNELS = ChannelFormat(256, 1000, RowFormat(levels=84, last_width=7, table_width=6))


def read_literal(part: Part, tables: int) -> list[int]:
    """The tables of W = 0, 1, ..., the last one that of all above too."""
    last = part.field(8)
    row = read_tables_of(part, last, tables, 6)
    part.end()
    return row


# 14.4 Match

OCTAVES = RowFormat(levels=21, last_width=5, table_width=6)


def read_still(part: Part) -> tuple[int, int]:
    frequencies = part.field(12), part.field(12)
    part.require(min(frequencies) >= 1, "V132: a frequency of still blocks is 0")
    return frequencies


def read_still_rows(part: Part) -> list[int]:
    frequencies = [part.field(12) for _ in range(16)]
    part.require(min(frequencies) >= 1, "V133: a frequency of still rows is 0")
    return frequencies


def read_match(part: Part, tables: int) -> Match:
    mask = part.field(8)
    rows = [0]
    greatest = 0
    for _ in range(1, 1 << mask.bit_count()):
        row = rows[-1]
        if part.field(1) == 1:
            if part.field(1) == 0:
                greatest += 1
                row = greatest
            else:
                row = part.field(5)
        part.require(row <= min(greatest, 31), "V134: a row of the match is above 31, or not there yet")
        rows.append(row)
    match = Match(mask, rows, [read_row(part, tables, OCTAVES) for _ in range(greatest + 1)])
    part.end()
    return match


# ---------------------------------------------------------------------------------------------------------------------
# 15. A tile of a token model


def decode_tokens(tile: Tile, model: TokenModel, lanes: Lanes) -> list[list[list[int]]]:
    """The rows of each channel."""
    state = TokenTile(tile, lanes, model)
    for step, places in enumerate(steps(tile, lanes)):
        state.hold(places)
        coded = [place for place in places if not state.stay(place)] if model.still else places
        sources = [state.source(place, step) for place in coded] if model.follow else [NO_SOURCE for _ in coded]
        if model.match:
            pairs = zip(coded, sources, strict=True)
            escaped = [place for place, source in pairs if not state.match(place, source)]
        else:
            escaped = coded
        seen: list[list[Seen]] = [[] for _ in escaped]  # of each pixel, in each engine channel so far
        for e in range(len(model.widths)):
            contexts = [state.context(e, place, *of) for place, of in zip(escaped, seen, strict=True)]
            tokens = [state.token(place, context) for place, context in zip(escaped, contexts, strict=True)]
            for place, token, context, of in zip(escaped, tokens, contexts, seen, strict=True):
                of.append(state.take(e, place, token, context))
        if model.follow:
            state.leave_trails(places)
            state.keep(coded, sources)
        for _, x, y in places:
            state.step_of[y][x] = step
    lanes.end()
    return samples_of(model, state.values)


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of a value before its token is."""

    table: int
    p: int = 0
    up: int = 0
    around: tuple[int, ...] = (0, 0, 0)  # W, N, NW and more


MOST_ERROR = 32767
MOST_ACTIVITY = (1 << 24) - 1


# Of W, N, NW and NE: the factors of the engine channels (15.6); and those of a trail.
NEAR_FACTORS = (
    (40503, 31161, 5719, 26545),
    (34283, 51819, 54179, 25709),
    (49843, 44605, 64881, 18117),
    (10197, 60207, 46427, 20233),
)
TRAIL_FACTORS = (3266489917, 668265263, 374761393, 3550635117)
NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Source:
    """What a pixel follows."""

    near: int  # the entry of the near table that was asked, or -1
    key: int  # of the wide table, or -1 if the pixel is flat
    at: tuple[int, int] | None  # the place
    number: int


NO_SOURCE = Source(-1, -1, None, 0)


class TokenTile:
    def __init__(self, tile: Tile, lanes: Lanes, model: TokenModel) -> None:
        self.lanes = lanes
        self.model = model
        self.blocks_of_row = ceil(tile.w, BLOCK)
        blocks = self.blocks_of_row * ceil(tile.h, BLOCK)
        self.still = [False] * blocks
        self.height = tile.h
        self.still_rows = [[False] * self.blocks_of_row for _ in range(ceil(tile.h, BLOCK) * BLOCK)]
        self.known_rows = [[False] * self.blocks_of_row for _ in range(ceil(tile.h, BLOCK) * BLOCK)]
        decode_still = self.decode_still if model.still is not None else None
        self.classes = decode_classes(lanes, model, blocks, decode_still)
        self.values = [[[0] * tile.w for _ in range(tile.h)] for _ in model.widths]
        self.errors = [[[0] * tile.w for _ in range(tile.h)] for _ in model.widths]
        self.held = [0] * len(lanes.states)
        self.step_of = [[NEVER] * tile.w for _ in range(tile.h)]
        self.kept: dict[tuple[int, int], tuple[int, int]] = {}  # of a pixel (x, y)
        self.trails = [[0] * tile.w for _ in range(tile.h)]
        self.scenes = [[0] * tile.w for _ in range(tile.h)]
        # Places as (row, column); in the wide table with a tag.
        self.near: dict[int, tuple[int, int]] = {}
        self.wide: dict[int, tuple[int, int, int]] = {}

    # With the flag hole, a held value takes the place of neighbours that are the hole.

    def hold(self, places: list[Place]) -> None:
        if self.model.hole is None:
            return
        for lane, x, y in places:
            if x == 0:
                self.held[lane] = 0
            w, n = neighbours(self.values[0], x, y)[:2]
            if w != self.model.hole:
                self.held[lane] = w
            elif n != self.model.hole:
                self.held[lane] = n

    def values_around(self, e: int, place: Place) -> tuple[int, ...]:
        lane, x, y = place
        around = neighbours(self.values[e], x, y)
        return tuple(self.held[lane] if value == self.model.hole else value for value in around)

    def errors_around(self, e: int, place: Place) -> tuple[int, ...]:
        return neighbours(self.errors[e], *place[1:])[:6]

    # 15.4 Still blocks

    def decode_still(self, blocks: range) -> list[bool]:
        """Which of the blocks of a round are still."""
        assert self.model.still is not None
        row = self.blocks_of_row
        for lane, block in enumerate(blocks):
            above = lane < row <= block and self.still[block - row]
            self.still[block] = self.lanes.either(lane, self.model.still[above])
        if self.model.still_rows is not None:
            self.decode_still_rows(blocks)
        return self.still[blocks.start : blocks.stop]

    # 15.5 Still rows

    def decode_still_rows(self, blocks: range) -> None:
        assert self.model.still_rows is not None
        for block in blocks:
            row, column = divmod(block, self.blocks_of_row)
            for y in range(row * BLOCK, row * BLOCK + BLOCK):
                self.still_rows[y][column] = self.known_rows[y][column] = self.still[block]
        for k in range(BLOCK):
            decoded: list[tuple[int, int, bool]] = []
            for lane, block in enumerate(blocks):
                row, column = divmod(block, self.blocks_of_row)
                y = row * BLOCK + k
                if self.still[block] or y >= self.height:
                    continue
                around = (column, y - 1), (column, y - 2), (column + 1, y - 1), (column - 1, y - 1)
                context = sum(1 << i for i, (at, of) in enumerate(around) if self.is_still_row(at, of))
                decoded.append((y, column, self.lanes.either(lane, self.model.still_rows[context])))
            for y, column, still in decoded:
                self.still_rows[y][column] = still
                self.known_rows[y][column] = True

    def is_still_row(self, column: int, y: int) -> bool:
        inside = 0 <= column < self.blocks_of_row and y >= 0
        return not inside or not self.known_rows[y][column] or self.still_rows[y][column]

    def stay(self, place: Place) -> bool:
        """Whether the block or the row is still; then the pixel is found."""
        _, x, y = place
        if not self.still[y // BLOCK * self.blocks_of_row + x // BLOCK] and not self.still_rows[y][x // BLOCK]:
            return False
        of_channels = [neighbours(plane, x, y) for plane in self.values]
        w, n, nw = list(zip(*of_channels, strict=True))[:3]
        for plane, value in zip(self.values, w if n == nw else n, strict=True):
            plane[y][x] = value
        return True

    # 15.6 Following

    def source(self, place: Place, step: int) -> Source:
        """What a pixel follows."""
        _, x, y = place
        around = list(zip(*[neighbours(plane, x, y) for plane in self.values], strict=True))
        w, n, nw, ne = around[:4]
        at, found = self.kept_beside(x, y)
        key = near = -1
        if not w == n == nw == ne:
            key = self.key(x, y)
            row, column, tag = self.wide.get(key >> 18, (0, 0, -1))
            if tag == (key >> 6) % 4096:
                at, found = (column, row), 4 if at == (column, row) else 3
        if at is None:
            total = sum(
                value * factor
                for pixel, factors in zip((w, n, nw, ne), NEAR_FACTORS, strict=True)
                for value, factor in zip(pixel, factors)
            )
            near = total % 65536 // 16
            if near in self.near:
                row, column = self.near[near]
                at, found = (column, row), 0
        is_there = at is not None and at[0] < len(self.step_of[0]) and at[1] < len(self.step_of)
        if at is None or not is_there or self.step_of[at[1]][at[0]] >= step:
            return Source(near, key, None, 0)
        followed = tuple(plane[at[1]][at[0]] for plane in self.values)
        relation = 0 if followed == w else 1 if followed == n else 2 if followed in (ne, nw) else 3
        return Source(near, key, at, 1 + 5 * relation + found)

    def kept_beside(self, x: int, y: int) -> tuple[tuple[int, int] | None, int]:
        """The place that what N or W keeps gives, and the source."""
        of_n, of_w = self.kept.get((x, y - 1)), self.kept.get((x - 1, y))
        beside = None if of_w is None else (of_w[0] + 1, of_w[1])
        if of_n is None:
            return beside, 1
        below = (of_n[0], of_n[1] + 1)
        return below, 2 if beside == below else 1

    def scene_of_ne(self, x: int, y: int) -> int:
        return self.scenes[y - 1][x + 1] if y > 0 and x + 1 < len(self.scenes[0]) else 0

    def key(self, x: int, y: int) -> int:
        a = (self.trails[y][x - 1] if x > 0 else 0) * 2654435761 + self.scene_of_ne(x, y) * 2246822507
        a %= 1 << 32
        return (a ^ a >> 15) * 739982445 % (1 << 32)

    def leave_trails(self, places: list[Place]) -> None:
        """The trails and scenes of a step's pixels."""
        for _, x, y in places:
            own = sum(plane[y][x] * factor for plane, factor in zip(self.values, TRAIL_FACTORS))
            trail = own + (self.trails[y][x - 1] if x > 0 else 0) * 3816266512
            self.trails[y][x] = trail % (1 << 32)
            self.scenes[y][x] = (trail + self.scene_of_ne(x, y) * 3955914496) % (1 << 32)

    def keep(self, places: list[Place], sources: list[Source]) -> None:
        """What is kept of a step, once its pixels are known."""
        for (_, x, y), source in zip(places, sources, strict=True):
            at = source.at
            if at is not None and all(plane[y][x] == plane[at[1]][at[0]] for plane in self.values):
                self.kept[x, y] = at
            if source.near >= 0:
                self.near[source.near] = max((y, x), self.near.get(source.near, (0, 0)))
            if source.key >= 0:
                entry, tag = source.key >> 18, (source.key >> 6) % 4096
                self.wide[entry] = max((y, x, tag), self.wide.get(entry, (0, 0, 0)))

    # 15.1 Match

    def match(self, place: Place, source: Source) -> bool:
        """Decodes what the pixel is; whether that says it."""
        model, (lane, x, y) = self.model, place
        assert model.match is not None
        of_channels = [neighbours(plane, x, y) for plane in self.values]
        pixels = list(zip(*of_channels, strict=True))  # of each neighbour, all its values
        w, n, nw, ne = pixels[:4]
        octave = source.number
        if model.literal is None and not model.follow:
            octave = self.activity(0, self.values_around(0, place), self.errors_around(0, place)).bit_length() - 4
        table = model.match.tables[model.match.rows[pattern_of(pixels, model.match.mask)]][octave]
        symbol = self.lanes.symbol(lane, model.tables[table])
        if symbol < 4:
            pixel = (w, n, ne, nw)[symbol]
        elif symbol == 5 and model.hole is not None:
            pixel = (model.hole,)
        elif symbol == 6 and source.at is not None:
            pixel = tuple(plane[source.at[1]][source.at[0]] for plane in self.values)
        else:
            return False
        for plane, errors, value in zip(self.values, self.errors, pixel, strict=True):
            plane[y][x] = value
            errors[y][x] = 0
        return True

    # 15.2 Tokens

    def context(self, e: int, place: Place, *before: Seen) -> Context:
        """`before`: what was decoded of the pixel in each engine channel so far."""
        around = self.values_around(e, place)
        if self.model.literal is not None:
            return Context(self.model.literal[min(around[0], len(self.model.literal) - 1)])
        channel = self.model.channels[e]
        one = before[-1] if e > 0 else NOT_LOOKED_AT
        two = before[-2] if e > 1 else NOT_LOOKED_AT
        errors = self.errors_around(e, place)
        _, x, y = place
        weights = channel.weights[self.classes[e][y // BLOCK * self.blocks_of_row + x // BLOCK]]
        maximum = (1 << self.model.widths[e]) - 1
        p, up = split_sum(sum_of(weights, (*around, *errors, one[0], two[0], *one[1:], *two[1:])), maximum)

        level = level_of(self.activity(e, around, errors, one[0], two[0]))
        zone = min((maximum - p if up else p).bit_length(), 15)
        signs = sign_pattern(around[0], around[1], errors, p, up)
        return Context(channel.rows[channel.zone_groups[zone]][channel.sign_groups[signs]][level], p, up, around)

    def activity(self, e: int, around: Sequence[int], errors: Sequence[int], *errors_before: int) -> int:
        w, n, nw, ne = around[:4]
        differences = (min(abs(difference), MOST_ERROR) for difference in (w - nw, n - nw, n - ne))
        terms = (*map(abs, errors), *differences, *map(abs, errors_before))  # the last ones may have no weight
        return min(8 + sum(map(mul, self.model.channels[e].activity_weights, terms)), MOST_ACTIVITY)

    def token(self, place: Place, context: Context) -> int:
        return self.lanes.symbol(place[0], self.model.tables[context.table])

    def take(self, e: int, place: Place, token: int, context: Context) -> Seen:
        """The value of a token. Called in order of lanes."""
        lane, x, y = place
        z = self.number_of(token, lane)
        size = 1 << self.model.widths[e]
        value = z % size if self.model.literal is not None else sample_of(z, context.p, context.up, size)
        error = max(-MOST_ERROR, min(value - context.p, MOST_ERROR))
        self.values[e][y][x] = value
        self.errors[e][y][x] = error
        return (error, *context.around[:3], value)

    # 15.3 Raw bits

    def number_of(self, token: int, lane: int) -> int:
        if token < 32:
            return token
        n = (token - 32) // 2 + 4
        x = self.lanes.states[lane]
        self.lanes.set_state(lane, x >> n)
        return (2 + token % 2) * (1 << n) + x % (1 << n)


def pattern_of(pixels: list[tuple[int, ...]], mask: int) -> int:
    """Which of the equalities that count hold."""
    w, n, nw, ne, ww, nn, nne, nww = pixels
    equalities = (w == n, n == ne, n == nw, w == nw, ww == w, nn == n, nne == ne, nww == nw)
    pattern = 0
    bit = 1
    for i, equal in enumerate(equalities):
        if mask >> i & 1:
            pattern += bit * equal
            bit *= 2
    return pattern


# ---------------------------------------------------------------------------------------------------------------------
# 16. The default models

DEFAULT_MODELS = sorted((Path(__file__).resolve().parent / "models").glob("*.l3model"))


# ---------------------------------------------------------------------------------------------------------------------
# 18. Tiny files

TINY_SIGNATURE = bytes.fromhex("8B4C3374")
TINY_HEADER_SIZE = 16
COLOUR_OF_KIND = (GRAY, GRAY_ALPHA, RGB, RGB_ALPHA, PALETTE_INDEX, GRAY_ALPHA, RGB_ALPHA)
NAMED, LEAST_OWN_MODEL = 31, 32


def tiny_sizes(data: bytes) -> tuple[int, int, int]:
    """Of the file and of the payload, and the number that says the model."""
    sizes = number(data, 12, 4)
    return 4 * (sizes & 1023) + 4, 4 * (sizes >> 10 & 1023), sizes >> 20


def read_tiny_header(data: bytes) -> Header:
    require(len(data) >= TINY_HEADER_SIZE, len(data), "V2: the file ends within the header")
    size, _, model = tiny_sizes(data)
    require(len(data) == size, 12, "V135: the file has another size than it says")
    require(check(data[8:]) == number(data, 4, 4), 4, "V136: check of the file does not match")
    width, height, kind = data[8] + 1, data[9] + 1, data[10] & 7
    bits = (data[10] >> 3 & 15) + 1
    require(kind <= 6, 10, "V137: kind of the image is 7")
    require(data[10] >> 7 == 0, 10, "V138: reserved bit of the kind is set")
    colour = COLOUR_OF_KIND[kind]
    require(colour != PALETTE_INDEX or bits <= 8, 10, "V139: palette indices of more than 8 bits")
    default_model = model if model < NAMED else 0
    require(default_model <= len(DEFAULT_MODELS), 12, f"V17: default model {default_model} is not known")
    name = data[TINY_HEADER_SIZE : TINY_HEADER_SIZE + NAME_SIZE] if model == NAMED else None
    require(name is None or len(name) == NAME_SIZE, 12, "V141: the name of the model does not lie in the file")
    return Header(
        section_count=0,
        model_name=name,
        may_have_bit_model=False,
        may_have_channel_map=False,
        may_have_shapes=False,
        default_model=default_model,
        width=width,
        height=height,
        channels=CHANNELS_OF_COLOUR[colour],
        bits=bits,
        colour=colour,
        tile_width=32 * ceil(width, 32),
        tile_height=32 * ceil(height, 32),
        index_check=0,
        digest=hashlib.sha256(data).digest()[:16],
        is_tiny=True,
    )


def read_tiny(data: bytes, header: Header) -> tuple[list[Section], list[Tile]]:
    _, payload_size, model = tiny_sizes(data)
    sections: list[Section] = []
    begin = TINY_HEADER_SIZE
    if model == NAMED:
        begin += NAME_SIZE
    elif model >= LEAST_OWN_MODEL:
        sections.append(Section(MODEL, None, 12, begin, model))
        begin = pad(begin + model)
        require(begin <= len(data), 12, "V142: the model does not lie in the file")
        require_zero(data[sections[0].end : begin], sections[0].end, "V143: bytes behind the model are not zero")
    end = begin + payload_size
    require(end <= len(data), 12, "V144: the payload does not lie in the file")
    tile = read_tiny_tile(data, header, begin, payload_size)
    code_before = 0
    while end + 2 <= len(data) and number(data, end, 2) != 0:
        code, size = number(data, end, 2) >> 12, number(data, end, 2) & 4095
        section_type = code if code < 8 else ASIDE + code - 8
        require(code > code_before, end, "V147: codes of sections do not rise")
        require(code not in (6, 7), end, f"V148: code {code} of a section")
        require(1 <= size <= len(data) - end - 2, end, "V149: a section is empty, or does not lie in the file")
        sections.append(Section(section_type, None, end, end + 2, size))
        code_before = code
        end += 2 + size
    require(len(data) - end < 4, end, "V150: 4 bytes or more behind the last section")
    require_zero(data[end:], end, "V151: bytes behind the last section are not zero")
    return sections, [tile]


def read_tiny_tile(data: bytes, header: Header, at: int, size: int) -> Tile:
    lanes, rest = data[11] & 7, data[11] >> 3
    require(lanes < 6 or (lanes == 6 and rest <= 6), 11, f"V140: coding {data[11]} is not known")
    method, parameters = (DENSE, data[11]) if lanes < 6 else (min(rest, FAST), max(rest - FAST, 0))
    require(method != CONSTANT or size == 8, 12, "V145: the payload of a constant tile does not have 8 bytes")
    require(method != FAST or size >= 8, 12, "V146: the payload of a fast tile is below 8 bytes")
    constant = struct.unpack_from("<4H", data, at) if method == CONSTANT else ()
    return Tile(0, 0, header.width, header.height, 11, method, parameters, at, size, None, constant)


# ---------------------------------------------------------------------------------------------------------------------
# 24. The bit model

BIT_KIND = 2
BIT_FIELDS = 5  # bytes before the neighbours
FEWEST_NEIGHBOURS, MOST_NEIGHBOURS = 2, 14
NEWEST = (0, 16)  # the neighbours of the step before
TOO_NEW = (32, 48)  # no neighbours
HAS_COLOURS, HAS_SHAPES = 1, 2  # flags
LEVELS = 64
FREQUENCIES = (
    *(1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 51, 64),
    *(81, 102, 128, 161, 203, 256, 323, 406, 512, 645, 813, 1024, 1218, 1448, 1722, 1930),
)


@dataclass
class BitModel:
    colours: list[list[int]]  # the samples of the bit 0, and those of the bit 1
    neighbours: list[int]
    frequencies: list[int]  # of each context
    shapes: Shapes | None


AnyModel = Model | TokenModel | BitModel

# 24.1 Its parts


def read_bit_model(data: bytes, at: int, size: int, header: Header) -> BitModel:
    require(size <= MAX_MODEL, at + MAX_MODEL, "V125: the model is above 2^17 bytes")
    require(size >= BIT_FIELDS, at + size, "V87: the model ends within its fields")
    _, channels, bits, flags, count = data[at : at + BIT_FIELDS]
    require(channels == header.channels, at + 1, "V83: the model is not for this number of channels")
    require(bits == header.bits, at + 2, "V112: the model is not for this number of bits")
    require(flags & ~(HAS_COLOURS | HAS_SHAPES) == 0, at + 3, "V152: a reserved flag of a bit model is set")
    needs_colours = channels > 1 or bits > 1
    require(not needs_colours or flags & HAS_COLOURS != 0, at + 3, "V153: no colours where samples are not bits")
    has_shapes = flags & HAS_SHAPES != 0
    require(not has_shapes or header.may_have_shapes, at + 3, "V158: shapes without their required feature")
    require(FEWEST_NEIGHBOURS <= count <= MOST_NEIGHBOURS, at + 4, "V154: count of neighbours is outside 2 to 14")
    first = BIT_FIELDS + count
    require(size >= first, at + size, "V87: the model ends within its fields")
    q = list(data[at + BIT_FIELDS : at + first])
    for i, neighbour in enumerate(q):
        require(neighbour <= 63 and neighbour not in TOO_NEW, at + BIT_FIELDS + i,
                f"V155: {neighbour} is not a neighbour")
        require(neighbour not in q[:i], at + BIT_FIELDS + i, f"V156: neighbour {neighbour} is listed before")
    require(all(neighbour in q for neighbour in NEWEST), at + BIT_FIELDS, "V157: neighbour 0 or 16 is missing")
    part = Part(number(data, at + first, size - first), at + first, size - first)
    colours = [[0], [1]]
    if flags & HAS_COLOURS:
        colours = [[part.field(bits) for _ in range(channels)] for _ in range(2)]
    frequencies = read_tree(part, count)
    shapes = read_shapes(part) if has_shapes else None
    part.end()
    return BitModel(colours, q, frequencies, shapes)


def read_tree(part: Part, left: int) -> list[int]:
    """The frequencies of all contexts that differ in the last `left` neighbours only."""
    if left > 0 and part.field(1) == 1:
        return read_tree(part, left - 1) + read_tree(part, left - 1)
    return [frequency_of(part.field(6))] * (1 << left)


def frequency_of(level: int) -> int:
    return FREQUENCIES[level] if level < len(FREQUENCIES) else SLOTS - FREQUENCIES[LEVELS - 1 - level]


# 24.2 A tile of a bit model


def decode_bits(tile: Tile, model: BitModel, payload: bytes, lane_count: int) -> list[list[list[int]]]:
    """The rows of each channel."""
    put = [[0] * tile.w for _ in range(tile.h)]
    if model.shapes is not None:
        begin = put_shapes(put, tile, model.shapes, payload, lane_count)
        tile, payload = replace(tile, offset=tile.offset + begin), payload[begin:]
    lanes = Lanes(payload, tile, lane_count)
    pitch = max(tile.w, 2 * lane_count)
    history: list[list[int]] = [[] for _ in range(lane_count)]  # of each lane: the bit of each step

    def bit_of(lane: int, step: int) -> int:
        while lane < 0:
            lane += lane_count
            step -= pitch - 2 * lane_count
        return history[lane][step] if step >= 0 else 0

    bits = [[0] * tile.w for _ in range(tile.h)]
    for step, places in enumerate(steps(tile, lanes)):
        for lane, x, y in places:
            context = 0
            for q in model.neighbours:
                context = 2 * context + bit_of(lane - q // 16, step - 1 - q % 16)
            bits[y][x] = int(lanes.either(lane, model.frequencies[context]))
        for of_lane in history:
            of_lane.append(0)
        for lane, x, y in places:
            history[lane][step] = bits[y][x]
    lanes.end()
    for row, of_shapes in zip(bits, put, strict=True):
        row[:] = map(max, row, of_shapes)
    return [[[samples[bit] for bit in row] for row in bits] for samples in zip(*model.colours, strict=True)]


# 24.3 The shapes of a model

MOST_ROWS = 8192  # of all shapes

Picture = list[list[int]]  # rows of bits


@dataclass
class Shapes:
    k: list[int]  # of the numbers of shapes, of columns and of rows
    pictures: list[Picture]


def read_shapes(part: Part) -> Shapes:
    shapes = Shapes([part.field(3) for _ in range(3)], [])
    count = part.field(10) + 1
    rows = 0
    for _ in range(count):
        width, height = part.field(6) + 1, part.field(6) + 1
        rows += height
        part.require(rows <= MOST_ROWS, f"V160: heights of shapes add up to more than {MOST_ROWS}")
        picture: Picture = []
        for _ in range(height):
            picture.append(read_row_of_shape(part, width, picture[-1] if picture else [0] * width))
        shapes.pictures.append(picture)
    return shapes


def read_row_of_shape(part: Part, width: int, above: list[int]) -> list[int]:
    bits: list[int] = []
    colour, last = 0, -1
    while True:
        b = last + 1
        while b < width and not (above[b] != colour and (above[b - 1] if b > 0 else 0) == colour):
            b += 1
        if part.field(1) == 1:
            change = b
        elif part.field(1) == 1:
            change = b - 1 + 2 * part.field(1)
        elif part.field(1) == 1:
            change = b - 2 + 4 * part.field(1)
        else:
            change = part.field(7)
        part.require(last < change, "V159: a change in a row is not behind the one before")
        part.require(change <= width, "V159: a change in a row is behind the width")
        bits += [colour] * (change - len(bits))
        if change == width:
            return bits
        colour, last = 1 - colour, change


# 24.4 Where a tile has shapes

MOST_ZEROS = 12


class ListPart(Part):
    """The bit string of a list."""

    def field(self, width: int) -> int:
        self.require(self.bit + width <= 8 * self.size, "V167: what is put does not end within its list")
        return super().field(width)

    def number(self, k: int) -> int:
        zeros = 0
        while self.field(1) == 0:
            zeros += 1
            self.require(zeros <= MOST_ZEROS, f"V163: a number with more than {MOST_ZEROS} zeros")
        high = (1 << zeros) - 1 + self.field(zeros)
        return (high << k) + self.field(k)

    def signed_number(self, k: int) -> int:
        v = self.number(k)
        return (v + 1) // 2 if v % 2 == 1 else -v // 2

    def end(self) -> None:
        self.require(self.string >> self.bit == 0, "V168: a bit behind what is put is not zero")


def put_shapes(put: Picture, tile: Tile, shapes: Shapes, payload: bytes, lane_count: int) -> int:
    """Puts what the list of a tile says into the rows of the tile. Returns the bytes that the list takes."""
    size = 16 * number(payload, 0, 2)
    require(size > 0, tile.offset, "V161: units of a list are 0")
    require(len(payload) - size >= 4 * lane_count, tile.offset, "V161: a list does not leave the bytes of the states")
    part = ListPart(number(payload, 4, size - 4), tile.offset + 4, size - 4)
    k_shape, k_column, k_row = shapes.k
    x = y = width = area = 0
    count = number(payload, 2, 2)
    require(count <= 8 + tile.w * tile.h // 128, tile.offset + 2, "V162: more shapes than 8 + w * h / 128")
    for _ in range(count):
        i = part.number(k_shape)
        part.require(i < len(shapes.pictures), "V164: a shape that the model does not have")
        picture = shapes.pictures[i]
        x += width + part.signed_number(k_column)
        y += part.signed_number(k_row)
        width, height = len(picture[0]), len(picture)
        is_inside = -width < x < tile.w and 0 < y < tile.h + height
        part.require(is_inside, "V165: a shape that is put outside the tile")
        area += width * height
        part.require(area <= tile.w * tile.h, "V166: shapes of more area than the tile")
        for row, bits in enumerate(picture, y - height):
            for column, bit in enumerate(bits, x):
                if 0 <= row < tile.h and 0 <= column < tile.w:
                    put[row][column] |= bit
    part.end()
    return size


# ---------------------------------------------------------------------------------------------------------------------
# The program


def read_file(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    with open(name, "rb") as file:
        return file.read()


def write_to(file: BinaryIO, image: Image) -> None:
    file.writelines(pam(image))
    file.flush()


def write_file(name: str, image: Image) -> None:
    if name == "-":
        write_to(sys.stdout.buffer, image)
        return
    if os.path.exists(name) and not os.path.isfile(name):  # a device or a pipe is not replaced
        with open(name, "wb") as file:
            write_to(file, image)
        return
    part = f"{name}.{os.getpid()}.part"
    with open(part, "xb") as file:
        try:
            write_to(file, image)
            os.replace(part, name)
        except BaseException:
            os.unlink(part)
            raise


def convert(source: str, target: str, models: Models, verifying: bool) -> None:
    try:
        data = read_file(source)
    except MemoryError:
        raise OverLimit(0, "memory for the file") from None
    image = decode_file(data, DEFAULT_LIMITS, models, verifying)
    write_file(target, image)


def batch(models: Models, verifying: bool) -> None:
    for line in sys.stdin.buffer:
        source, tab, target = os.fsdecode(line.rstrip(b"\r\n")).partition("\t")
        try:
            if not tab or "-" in (source, target):
                raise OSError("not a line IN<TAB>OUT of two files")
            convert(source, target, models, verifying)
            verdict = "ok"
        except Refusal as refusal:
            verdict = f"reject\t{refusal}"
        except (OSError, ValueError) as error:  # ValueError: a name that no file can have
            verdict = f"error\t{error}"
        print(verdict, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="l3_decode", description="Decode an L3 image to PAM.")
    parser.add_argument("--model", action="append", default=[], help="a model that a file may name; repeatable")
    parser.add_argument("--verify", action="store_true", help="check what decoding does not need, too")
    parser.add_argument("--batch", action="store_true", help="read lines IN<TAB>OUT from stdin")
    parser.add_argument("files", nargs="*", metavar="IN OUT", help="`-` is stdin or stdout")
    options = parser.parse_args(arguments)
    if len(options.files) != (0 if options.batch else 2):
        parser.error("wants IN and OUT, or --batch alone")
    models = {}
    for name in options.model:
        try:
            model = read_file(name)
        except OSError as reason:
            print(f"l3_decode: {name}: {reason}", file=sys.stderr)
            return 1
        models[name_of(model)] = model
    if options.batch:
        batch(models, options.verify)
        return 0
    source, target = options.files
    try:
        convert(source, target, models, options.verify)
    except (Refusal, OSError, ValueError) as reason:
        print(f"l3_decode: {source}: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
