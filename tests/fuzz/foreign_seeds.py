"""Makes seeds for the fuzz target `formats`: small files of the formats that l3 only reads."""

from __future__ import annotations

import random
import struct

# libwebp's own, of drawn pixels: a lossless image with alpha, a lossy one, and a lossy one with alpha and a profile.
WEBP = {
    "webp_lossless": bytes.fromhex(
        "524946464c000000574542505650384c3f0000002f038000105f40266071aec4d0bfa71004d9b6a1816c3f41b66dca6004db"
        "6f206ddb94846d7f8a0044a552edf75781208044219658669965964923fa1f98ee00"
    ),
    "webp_lossy": bytes.fromhex(
        "524946463a00000057454250565038202e000000b001009d012a0500030002c04c259c027400f487fa5c00feadbde7d5b07f"
        "e9b172ba2864dffc022708ac83000000"
    ),
    "webp_alpha": bytes.fromhex(
        "524946467a00000057454250565038580a00000038000000030000020000494343500400000069636320414c50480d000000"
        "000f23374b5f73879bafc3d7eb00565038202a000000b001009d012a0400030002c04c259c0274010ef69e4000fec0bcfa7d"
        "8bc92897d8bdcf75d0a4da1b600045584946080000004d4d002a00000008"
    ),
}


def bmp(width: int, height: int, bits: int, compression: int = 0, header: int = 40) -> bytes:
    noise = random.Random(bits)
    masks = struct.pack("<4I", 0xF800, 0x7E0, 0x1F, 0) if bits == 16 else struct.pack("<4I", 255, 65280, 255 << 16, 0)
    second = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, 0, 2835, 2835, 0, 0)
    if header > 40:
        second = (second + masks).ljust(header, b"\0")
    elif compression == 3:
        second += masks[:12]
    palette = noise.randbytes(4 << bits) if bits < 16 else b""
    rows = noise.randbytes((width * bits + 31) // 32 * 4 * abs(height))
    return struct.pack("<2sIII", b"BM", 0, 0, 14 + len(second) + len(palette)) + second + palette + rows


def gif(interlaced: bool, frames: int) -> bytes:
    """8 x 4 pixels of 4 colours, by codes of 3 bits that are cleared before they grow."""
    codes = [4, 0, 1, 4, 2, 3] + [4, 1, 6, 4, 2, 6] * 5 + [4, 3, 3, 3, 5]
    bits = sum(code << 3 * i for i, code in enumerate(codes))
    packed = bits.to_bytes((3 * len(codes) + 7) // 8, "little")
    frame = b"\x21\xf9\4\1\0\0\2\0" + struct.pack("<BHHHHBB", 0x2C, 0, 0, 8, 4, 0x40 * interlaced, 2)
    frame += bytes([len(packed)]) + packed + b"\0"
    loop = b"\x21\xff\x0bNETSCAPE2.0\3\1\0\0\0\x21\xfe\1c\0"
    return b"GIF89a" + struct.pack("<HHBBB", 8, 4, 0x81, 0, 0) + bytes(range(12)) + loop + frames * frame + b"\x3b"


def psd(bits: int, planes: int, packed: bool) -> bytes:
    width, height = 5, 3
    resources = struct.pack(">4sHHI4s", b"8BIM", 1039, 0, 4, b"icc ")
    out = struct.pack(">4sH6xHIIHH", b"8BPS", 1, planes, height, width, bits, 1 if planes < 3 else 3)
    out += struct.pack(">II", 0, len(resources)) + resources + struct.pack(">IH", 0, packed)
    row = b"\xff" * (width * bits // 8)
    if not packed:
        return out + row * height * planes
    row = struct.pack("bB", 1 - len(row), 255)
    return out + struct.pack(">H", len(row)) * height * planes + row * height * planes


def tga(kind: int, bits: int, descriptor: int, entries: int = 0) -> bytes:
    width, height = 5, 3
    size = (bits + 7) // 8
    pixels = b"\x8e" + bytes(size) if kind & 8 else bytes(i % (entries or 200) for i in range(15 * size))
    header = struct.pack("<BBBHHBHHHHBB", 0, entries > 0, kind, 0, entries, 24 * (entries > 0), 0, 0, width, height,
                         bits, descriptor)
    return header + bytes(3 * entries) + pixels + bytes(8) + b"TRUEVISION-XFILE.\0"


def jpeg(components: int, progressive: bool = False) -> bytes:
    """16 x 8 pixels by tables of two codes, "00" for 0 and "01" for 1: all blocks flat."""

    def segment(marker: int, data: bytes) -> bytes:
        return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data

    def scan(of: int, first: int, last: int, codes: int) -> bytes:
        """Of so many components, with so many codes for each."""
        which = b"".join(bytes([i + 1, 0]) for i in range(of))
        bits = "00" * of * codes
        bits = bits.ljust((len(bits) + 7) // 8 * 8, "1")
        data = segment(0xDA, bytes([of]) + which + bytes([first, last, 0]))
        return data + bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))

    table = bytes([0, 2] + [0] * 14 + [0, 1])
    parts = b"".join(bytes([i + 1, 0x11, 0]) for i in range(components))
    out = b"\xff\xd8" + segment(0xE0, b"JFIF\0\1\1\1\0\x48\0\x48\0\0")
    out += segment(0xE1, b"Exif\0\0MM\0*\0\0\0\x08\0\0") + segment(0xE2, b"ICC_PROFILE\0\1\1icc") + segment(0xFE, b"c")
    out += segment(0xDB, b"\0" + b"\1" * 64) + segment(0xC4, b"\0" + table) + segment(0xC4, b"\x10" + table)
    out += segment(0xC2 if progressive else 0xC0, struct.pack(">BHHB", 8, 8, 16, components) + parts)
    if not progressive:
        return out + scan(components, 0, 63, 2 * 2) + b"\xff\xd9"
    return out + scan(components, 0, 0, 2) + scan(1, 1, 63, 2) + b"\xff\xd9"


def seeds() -> dict[str, bytes]:
    found = {f"bmp_{bits}": bmp(5, 3, bits) for bits in (1, 2, 4, 8, 16, 24, 32)}
    found["bmp_fields"] = bmp(5, -3, 16, 3)
    found["bmp_5"] = bmp(5, 3, 32, 3, 124)
    found |= {"gif": gif(False, 1), "gif_interlaced": gif(True, 2)}
    for bits, planes in ((8, 1), (8, 3), (8, 4), (16, 2), (16, 3)):
        for packed in (False, True):
            found[f"psd_{bits}_{planes}_{int(packed)}"] = psd(bits, planes, packed)
    for kind, bits in ((2, 16), (2, 24), (2, 32), (3, 8), (3, 16)):
        for packed in (0, 8):
            found[f"tga_{kind + packed}_{bits}"] = tga(kind + packed, bits, 8 if bits == 32 else 0x30)
    found |= {"tga_map": tga(1, 8, 0x20, 4), "tga_packed_map": tga(9, 8, 0, 4)}
    for components in (1, 3, 4):
        found[f"jpeg_{components}"] = jpeg(components)
        found[f"jpeg_progressive_{components}"] = jpeg(components, progressive=True)
    return found | WEBP
