"""Writing data sets of the bytes of image files."""

from __future__ import annotations

import filecmp
import struct
import sys
import unittest
import warnings
import zlib
from typing import Any

import l3
import numpy as np
from support import L3_COMMAND, NEEDS_COMMAND, Folder, convert, picture, png_chunk, png_of

GRAY, RGB, PALETTE, GRAY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGB_ALPHA: 4}


def drawn(seed: int, colour: int, bits: int, before: bytes = b"", after: bytes = b"") -> bytes:
    return png_of(picture(seed, channels=CHANNELS[colour], bits=bits), bits, colour, before, after)


def interlaced(pixels: np.ndarray) -> bytes:
    """A PNG of 8-bit colours in the seven passes of Adam7."""
    height, width, _ = pixels.shape
    rows = b""
    passes = (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)
    for x, y, dx, dy in passes:
        rows += b"".join(b"\0" + row.tobytes() for row in pixels[y::dy, x::dx])
    header = struct.pack(">IIBBBBB", width, height, 8, RGB, 0, 0, 1)
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(rows))
            + png_chunk(b"IEND", b""))


def every_kind() -> dict[str, bytes]:
    """A PNG of each colour and depth, and others with all that a PNG can say about itself."""
    files = {}
    for colour, depths in ((GRAY, (1, 2, 4, 8, 16)), (RGB, (8, 16)), (GRAY_ALPHA, (8, 16)), (RGB_ALPHA, (8, 16))):
        for bits in depths:
            files[f"kind-{colour}-{bits:02}.png"] = drawn(bits, colour, bits)
    for bits in (1, 2, 4, 8):
        colours = png_chunk(b"PLTE", bytes(range(3 * 2**bits))[:3 * 2**bits] if bits < 7 else bytes(range(256)) * 3)
        files[f"palette-{bits}.png"] = drawn(bits, PALETTE, bits, colours)
        files[f"palette-{bits}-alpha.png"] = drawn(bits, PALETTE, bits, colours + png_chunk(b"tRNS", b"\0\x80"))
    files["palette-short.png"] = png_of(picture(1, channels=1) // 64, 8, PALETTE, png_chunk(b"PLTE", bytes(12)))
    files["palette-beyond.png"] = png_of(picture(1, channels=1) // 64, 8, PALETTE, png_chunk(b"PLTE", bytes(6)))
    files["interlaced.png"] = interlaced(picture(9))
    files["key-gray.png"] = drawn(1, GRAY, 16, png_chunk(b"tRNS", b"\x12\x34"))
    files["key-rgb.png"] = drawn(1, RGB, 8, png_chunk(b"tRNS", b"\0\1\0\2\0\3"))
    chunks = [
        (b"gAMA", struct.pack(">I", 45455)), (b"cHRM", struct.pack(">8I", *range(31270, 31278))), (b"sRGB", b"\1"),
        (b"cICP", b"\1\r\0\1"), (b"iCCP", b"a profile\0\0" + zlib.compress(b"no real profile")),
        (b"eXIf", b"II*\0\x08\0\0\0\0\0\0\0\0\0"), (b"tEXt", b"Title\0A\xe4"),
        (b"zTXt", b"Title\0\0" + zlib.compress(b"B")),
        (b"iTXt", b"Title\0\0\0en\0T\0" + "Κίχλη".encode()), (b"pHYs", struct.pack(">IIB", 2835, 2835, 1)),
        (b"tIME", b"\x07\xea\1\2\3\4\5"), (b"bKGD", bytes(6)), (b"sBIT", b"\5\6\5"), (b"prVt", b"private"),
    ]
    for kind, data in chunks:
        files[f"chunk-{kind.decode()}.png"] = drawn(3, RGB, 8, png_chunk(kind, data))
    every = b"".join(png_chunk(kind, data) for kind, data in chunks)
    text = png_chunk(b"tEXt", b"Title\0after") + png_chunk(b"tEXt", b"Title\0again")
    files["chunks.png"] = drawn(4, RGB, 8, every, text)
    files["chunks-twice.png"] = drawn(5, RGB, 16, every + every)
    files["gray.pgm"] = b"P5\n3 2\n255\n" + bytes(range(6))
    files["gray.pam"] = b"P7\nWIDTH 3\nHEIGHT 2\nDEPTH 1\nMAXVAL 4095\nTUPLTYPE GRAYSCALE\nENDHDR\n" + bytes(12)
    files["bits.pbm"] = b"P4\n9 2\n" + bytes(4)
    files["colours.ppm"] = b"P3\n1 1\n255\n1 2 3\n"
    rows = bytes(range(12)) * 2
    files["blue.bmp"] = struct.pack("<2sIIIIiiHHIIiiII", b"BM", 54 + len(rows), 0, 54, 40, 4, 2, 1, 24, 0, len(rows),
                                    2835, 2835, 0, 0) + rows
    return files


class Files(Folder):
    def setUp(self) -> None:
        super().setUp()
        self.set = self.folder / "set"

    def write(self, files: dict[str, Any], **options: Any) -> None:
        with l3.DatasetWriter(self.set, **{"threads": 2, **options}) as writer:
            for name in sorted(files):
                writer.write(files[name], name=name)

    def assert_as_converted(self, files: dict[str, bytes], *words: str, **options: Any) -> None:
        if not L3_COMMAND:
            self.skipTest(NEEDS_COMMAND)
        source, other = self.folder / "source", self.folder / f"other{len(words)}"
        source.mkdir(exist_ok=True)
        for name, data in files.items():
            (source / name).write_bytes(data)
        convert(source, other, "--shared-model", "off", *words)
        self.write(files, overwrite=True, **options)
        names = sorted(path.name for path in other.iterdir())
        self.assertEqual(sorted(path.name for path in self.set.iterdir()), names)
        self.assertEqual(filecmp.cmpfiles(self.set, other, names, shallow=False), (names, [], []))

    def test_same_bytes_as_the_command(self) -> None:
        files = every_kind()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assert_as_converted(files)
            self.assert_as_converted(files, "--method", "fast", method="fast", threads=5)
            self.assert_as_converted(files, "--effort", "1", "--shard-size", "8K", effort=1, shard_size=8000, threads=1)
        data = l3.Dataset(self.set)
        self.assertEqual(len(data), len(files))
        info = l3.info(data["chunks.png"].bytes())
        self.assertEqual((info.text, info.bits), ({"Title": "again"}, 8))
        self.assertEqual([l3.info(data[f"kind-0-{bits:02}.png"].bytes()).bits for bits in (1, 2, 4, 8, 16)],
                         [1, 2, 4, 8, 16])
        np.testing.assert_array_equal(data["kind-2-16.png"].decode(), picture(16, channels=3, bits=16))
        np.testing.assert_array_equal(data["interlaced.png"].decode(), picture(9))
        palette = l3.info(data["palette-4-alpha.png"].bytes()).palette
        self.assertEqual(palette[:3].tolist(), [[0, 1, 2, 0], [3, 4, 5, 128], [6, 7, 8, 255]])

    def test_bytes_of_any_kind(self) -> None:
        file = drawn(0, RGB, 8)
        spaced = np.frombuffer(file, np.uint8).repeat(2)[::2].copy()
        with l3.DatasetWriter(self.set, threads=2) as writer:
            for data in (file, bytearray(file), memoryview(file), memoryview(spaced)):
                writer.write(data, group=1, role=f"as{writer.samples}")
            writer.write(picture(0))
            writer.write(l3.encode(picture(0)))
        stored = [sample.bytes() for sample in l3.Dataset(self.set)]
        self.assertEqual(stored, stored[:1] * 6)

    def test_bytes_may_change_after_the_call(self) -> None:
        files = [drawn(i, RGB, 8) for i in range(40)]
        buffer = bytearray(max(map(len, files)))
        with l3.DatasetWriter(self.set, threads=1) as writer:
            for file in files:
                buffer[:len(file)] = file
                writer.write(memoryview(buffer)[:len(file)])
                buffer[:] = bytes(len(buffer))
        for i, sample in enumerate(l3.Dataset(self.set)):
            np.testing.assert_array_equal(sample.decode(), picture(i))

    def test_damaged_files(self) -> None:
        good = drawn(0, RGB, 8)
        crc = bytearray(good)
        crc[-20] ^= 1
        huge, side = bytearray(good), bytearray(good)
        huge[16:24] = struct.pack(">II", 2**15, 2**15)
        side[16:24] = struct.pack(">II", 2**21, 1)
        lying = bytearray(good)
        lying[16:24] = struct.pack(">II", 2**13, 2**13)
        for damaged in (huge, side, lying):
            damaged[29:33] = struct.pack(">I", zlib.crc32(damaged[12:29]))
        short = good[:33] + png_of(picture(0, height=23), 8, RGB)[33:]  # a row is missing
        for data, offset, reason in (
            (good[:-20], 33, "the file ends inside chunk IDAT"),
            (good[:-12], len(good) - 12, "the file ends before IEND"),
            (good[:20], 8, "the file ends inside chunk IHDR"), (good[:8], 8, "the file ends before IEND"),
            (bytes(crc), 33, "the CRC of chunk IDAT is wrong"),
            (bytes(huge), 8, "32768 x 32768 pixels are more than the limit of 268435456"),
            (bytes(side), 16, "a width of 2097152 pixels exceeds the limit of 1048576"),
            (bytes(lying), 33, "the IDAT chunks are too short for the size of the image"),
            (short, None, "pixel data: "), (b"P5\n3 2\n255\n123", None, "ends"), (good + b"x", None, None),
        ):
            with self.subTest(reason=reason), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if reason is None:
                    self.write({"a": good, "b": data}, overwrite=True)
                    continue
                with self.assertRaisesRegex(l3.SampleError, reason) as caught:
                    self.write({"a": good, "bad": data, "c": good})
                self.assertEqual((caught.exception.sample, caught.exception.name), (1, "bad"))
                if offset is None:
                    self.assertIsNotNone(caught.exception.offset)
                else:
                    self.assertEqual(caught.exception.offset, offset)
                self.assertRegex(str(caught.exception), r"^sample 1 'bad' \(offset \d+\): ")
                self.assertFalse(self.set.exists())

    def test_a_failure_stays(self) -> None:
        writer = l3.DatasetWriter(self.set, threads=2)
        writer.write(drawn(0, RGB, 8)[:-12], name="cut")
        for _ in range(2):
            with self.assertRaisesRegex(l3.SampleError, "sample 0 'cut'"):
                for _ in range(1000):
                    writer.write(picture(0))
        with self.assertRaisesRegex(l3.SampleError, "sample 0 'cut'"):
            writer.close()
        self.assertFalse(self.set.exists())

    def test_each_damaged_byte_is_refused_or_noticed(self) -> None:
        """A PNG with a changed byte is refused, or has the same pixels and a warning says what is wrong."""
        good = drawn(0, GRAY, 2, png_chunk(b"tEXt", b"a\0b"))
        refused = 0
        for at in range(0, len(good), 3):
            bad = bytearray(good)
            bad[at] ^= 0x10
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                try:
                    self.write({"a": bytes(bad)}, overwrite=True, threads=1)
                except l3.SampleError:
                    refused += 1
                    continue
            self.assertEqual(len(said), 1)
            np.testing.assert_array_equal(l3.Dataset(self.set)[0].decode(), picture(0, channels=1, bits=2))
        self.assertGreater(refused, len(good) // 6)

    # ------------------------------------------------------------------------------------------------------ warnings

    def noticed(self) -> dict[str, bytes]:
        control = struct.pack(">IIIIIHHBB", 0, 32, 24, 0, 0, 1, 1, 0, 0)
        frames = (png_chunk(b"acTL", struct.pack(">II", 2, 0)) + png_chunk(b"fcTL", control),
                  png_chunk(b"fcTL", b"\0\0\0\1" + control[4:]) + png_chunk(b"fdAT", b"\0\0\0\2" + bytes(9)))
        text = bytearray(png_chunk(b"tEXt", b"a\0b"))
        text[-1] ^= 1
        turned = b"II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0"
        good = drawn(0, RGB, 8)
        return {"0-good.png": good, "1-frames.png": drawn(1, RGB, 8, *frames), "2-more.png": good + b"more",
                "3-more.png": good + b"even more", "4-crc.png": drawn(4, RGB, 8, bytes(text)),
                "5-turned.png": drawn(5, RGB, 8, png_chunk(b"eXIf", turned)), "6-more.png": good + bytes(77)}

    def test_what_is_left_out_is_told(self) -> None:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.assert_as_converted(self.noticed(), threads=1)
        told = sorted(str(warning.message) for warning in said)
        self.assertEqual([line.split("'")[1] for line in told],
                         ["1-frames.png", "2-more.png", "4-crc.png", "5-turned.png"])
        self.assertIn("animated PNG: only the default image is read, 1 frame is left out", told[0])
        self.assertIn("4 bytes after IEND are left out", told[1])
        self.assertEqual({(warning.filename, warning.category) for warning in said}, {(__file__, UserWarning)})

    def test_warnings_as_errors(self) -> None:
        with warnings.catch_warnings(), self.assertRaisesRegex(UserWarning, "sample '2-more.png': 4 bytes"):
            warnings.simplefilter("error")
            self.write({"2-more.png": self.noticed()["2-more.png"]})
        self.assertFalse(self.set.exists())

    # ------------------------------------------------------------------------------------------------------ l3.encode

    def test_encode(self) -> None:
        files = every_kind()
        self.write(files, effort=2)
        for name, sample in zip(sorted(files), l3.Dataset(self.set)):  # noqa: B905 (Python 3.9)
            self.assertEqual(l3.encode(files[name], effort=2, threads=3), sample.bytes())
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            l3.encode(bytearray(self.noticed()["1-frames.png"]), self.folder / "first.l3", method="fast", tile=64)
        self.assertEqual([(str(warning.message)[:12], warning.filename) for warning in said],
                         [("animated PNG", __file__)])
        np.testing.assert_array_equal(l3.decode(self.folder / "first.l3"), picture(1))

    def test_encode_what_is_wrong(self) -> None:
        good = drawn(0, RGB, 8)
        for data, options, kind, says in (
            (good[:-12], {}, l3.Error, f"^offset {len(good) - 12}: the file ends before IEND$"),
            (b"what is this", {}, l3.Error, "not an image in a known format"), (b"", {}, l3.Error, "the file is empty"),
            (b"\xff\xd8\xff\xe0" + bytes(20), {}, ValueError, "array is a JPEG file: decode it first"),
            (good, {"bits": 8}, ValueError, "bits is for arrays"), (good, {"tile": 33}, ValueError, "tile"),
            (good, {"premultiplied": True}, ValueError, "premultiplied is for arrays"),
            (good, {"device": "cuda"}, TypeError, "array is bytes, but must be a tensor"),
            (l3.encode(picture(0)), {}, ValueError, "array is an L3 file already"),
        ):
            with self.subTest(says=says), self.assertRaisesRegex(kind, says):
                l3.encode(data, self.folder / "a.l3", **options)
        self.assertEqual(list(self.folder.iterdir()), [])

    # ------------------------------------------------------------------------------------------------- other formats

    def test_formats_that_must_be_decoded(self) -> None:
        good = drawn(0, RGB, 8)
        with l3.DatasetWriter(self.set) as writer:
            for data, kind in ((b"\xff\xd8\xff\xe0" + bytes(20), "JPEG"),
                               (b"RIFF\x0c\0\0\0WEBPVP8L" + bytes(9), "WebP"),
                               (b"II*\0" + bytes(20), "TIFF"), (b"MM\0*" + bytes(20), "TIFF"),
                               (b"\xff\x0a" + bytes(20), "JPEG XL"), (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL")):
                with self.assertRaisesRegex(ValueError, rf"sample \d .*image is a {kind} file: decode it first"):
                    writer.write(data)
                writer.write(good)
        self.assertEqual(len(l3.Dataset(self.set)), 6)


if __name__ == "__main__":
    sys.exit(unittest.main())
