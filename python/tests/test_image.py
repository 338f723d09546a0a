"""open, info and return_info: palettes, ICC profiles, EXIF, text and other chunks; file objects."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import subprocess
import unittest
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import l3
import numpy as np
from support import L3_COMMAND, NEEDS_COMMAND, Folder, picture

try:
    from PIL import Image, ImageCms, PngImagePlugin
except ImportError:
    Image = None  # type: ignore[assignment]

FAST = {"method": "fast"}
PROFILE = bytes(range(256)) * 5
EXIF = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"  # orientation 6
TEXT = {"Title": "Ein Käfer", "Comment": "line\nline", "Name": "Σ 写真 🙂"}
CHUNKS = [l3.Chunk("gAMA", struct.pack(">I", 45455)), l3.Chunk("sRGB", b"\0"),
          l3.Chunk("cHRM", struct.pack(">8I", *range(1, 9))), l3.Chunk("cICP", b"\1\r\0\1"),
          l3.Chunk("pHYs", struct.pack(">IIB", 2835, 2835, 1)), l3.Chunk("tIME", b"\x07\xe6\1\2\3\4\5", 2),
          l3.Chunk("teSt", b""), l3.Chunk("teSt", b"again", 1)]


def chunks_of_png(file: bytes) -> list[tuple[str, bytes]]:
    found, at = [], 8
    while at < len(file):
        size, = struct.unpack_from(">I", file, at)
        found.append((file[at + 4:at + 8].decode(), file[at + 8:at + 8 + size]))
        at += 12 + size
    return found


class Reads(io.RawIOBase):
    """A file object that cannot seek and returns few bytes at a time."""

    def __init__(self, contents: bytes) -> None:
        self._left = contents

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        part, self._left = self._left[:7], self._left[7:]
        return part[:size] if size >= 0 else part


class Opened(Folder):
    def setUp(self) -> None:
        super().setUp()
        self.pixels = picture(1, 100, 90)
        self.path = self.folder / "a.l3"
        l3.encode(self.pixels, self.path, tile=32, icc=PROFILE, exif=EXIF, text=TEXT, chunks=CHUNKS, **FAST)
        self.file = self.path.read_bytes()

    def check(self, image: l3.Info) -> None:
        self.assertEqual((image.shape, image.width, image.height, image.channels), ((100, 90, 3), 90, 100, 3))
        self.assertEqual((image.dtype, image.bits, image.colour, image.size), ("uint8", 8, "rgb", len(self.file)))
        self.assertEqual((image.icc, image.exif, image.text), (PROFILE, EXIF, TEXT))
        self.assertEqual((image.palette, image.transparent), (None, None))
        others = [chunk for chunk in image.chunks if chunk.tag not in ("iCCP", "eXIf", "tEXt", "iTXt")]
        self.assertEqual(sorted(others), sorted(CHUNKS))

    def test_all_sources_and_ways(self) -> None:
        sources: dict[str, Callable[[], object]] = {
            "path": lambda: self.path, "str": lambda: str(self.path), "bytes": lambda: self.file,
            "array": lambda: np.frombuffer(self.file, np.uint8), "BytesIO": lambda: io.BytesIO(self.file),
            "file": lambda: self.enter(self.path.open("rb")), "raw": lambda: self.enter(open(self.path, "rb", 0)),
            "small reads": lambda: Reads(self.file)}
        for name, source in sources.items():
            with self.subTest(name):
                with l3.open(source()) as image:
                    self.check(image)
                    np.testing.assert_array_equal(image.decode(), self.pixels)
                    part = image.decode(region=(40, 50, 10, 20), layout="CHW", dtype="float32")
                    np.testing.assert_allclose(part, self.pixels[50:70, 40:50].transpose(2, 0, 1) / 255, rtol=1e-6)
                self.check(l3.info(source()))
                pixels, info = l3.decode(source(), return_info=True, region=(1, 2, 3, 4))
                np.testing.assert_array_equal(pixels, self.pixels[2:6, 1:4])
                self.check(info)
                self.assertIs(type(info), l3.Info)
        several = l3.decode([self.path, io.BytesIO(self.file)], return_info=True)
        self.assertEqual(len(several[0]), 2)
        for pixels, info in zip(*several):  # noqa: B905 (Python 3.9)
            np.testing.assert_array_equal(pixels, self.pixels)
            self.check(info)
        out = np.zeros((1, 100, 90, 3), np.uint8)
        batch, infos = l3.decode([self.file], out=out, return_info=True)
        self.assertIs(batch, out)
        self.check(infos[0])

    def enter(self, file: io.IOBase) -> io.IOBase:
        self.addCleanup(file.close)
        return file

    def test_closing_and_copies(self) -> None:
        image = l3.open(self.path)
        self.assertEqual(repr(image), f"l3.Image({str(self.path)!r}, 90x100, rgb of 8 bits)")
        os.remove(self.path)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(image)).decode(), self.pixels)
        self.assertFalse(image.closed)
        image.close()
        image.close()
        self.assertTrue(image.closed)
        self.check(image)
        with self.assertRaisesRegex(ValueError, "the image is closed"):
            image.decode()
        self.check(pickle.loads(pickle.dumps(l3.info(self.file))))

    def test_an_image_without_any(self) -> None:
        file = l3.encode(self.pixels, **FAST)
        with l3.open(file) as image:
            self.assertEqual((image.palette, image.transparent, image.icc, image.exif, image.text, image.chunks),
                             (None, None, None, None, {}, ()))

    def test_samples_of_all_kinds(self) -> None:
        for bits in (1, 4, 8, 11, 16):
            for channels in range(1, 5):
                pixels = picture(bits, 9, 7, channels, bits)
                with l3.open(l3.encode(pixels, bits=bits, text=TEXT, **FAST)) as image:
                    self.assertEqual((image.shape, image.dtype, image.bits), (pixels.shape, str(pixels.dtype), bits))
                    np.testing.assert_array_equal(image.decode(), pixels)
                    self.assertEqual(image.text, TEXT)

    def test_palettes(self) -> None:
        indices = picture(2, channels=1)[:, :, 0] // 64
        for columns in (3, 4):
            palette = np.arange(4 * columns, dtype=np.uint8).reshape(4, columns)
            for bits in (2, 8):
                image = l3.open(l3.encode(indices, palette=palette, bits=bits, exif=EXIF, **FAST))
                np.testing.assert_array_equal(image.palette, palette)
                np.testing.assert_array_equal(image.decode(layout="HW"), indices)
                self.assertEqual((image.colour, image.exif), ("palette", EXIF))
                again = l3.encode(image.decode(), palette=image.palette, bits=image.bits, chunks=image.chunks, **FAST)
                self.assertEqual(l3.info(again).digest, image.digest)

    def test_transparent_colours(self) -> None:
        for bits in (1, 8, 16):
            most = 2**bits - 1
            image = l3.open(l3.encode(picture(1, channels=1, bits=bits), bits=bits, transparent=most, **FAST))
            self.assertEqual(image.transparent, most)
            image = l3.open(l3.encode(picture(1, bits=bits), bits=bits, transparent=(0, 1, most), **FAST))
            self.assertEqual(image.transparent, (0, 1, most))

    def test_chunks_replaced(self) -> None:
        image = l3.open(self.file)
        again = l3.encode(image.decode(), tile=32, chunks=image.chunks, **FAST)
        self.check(l3.open(again))
        other = l3.open(l3.encode(self.pixels, chunks=image.chunks, icc=b"other", exif=b"", text={"A": "b"}, **FAST))
        self.assertEqual((other.icc, other.exif, other.text), (b"other", None, {"A": "b"}))
        self.assertEqual(sorted(chunk for chunk in other.chunks if chunk.tag not in ("iCCP", "tEXt")), sorted(CHUNKS))
        shown = l3.encode(self.pixels, exif=b"Exif\0\0" + EXIF, **FAST)
        self.assertEqual(l3.info(shown).exif, EXIF)


class Streams(Folder):
    def test_positions(self) -> None:
        pixels = picture(1)
        file = l3.encode(pixels, text=TEXT, **FAST)
        stream = io.BytesIO(b"before" + file)
        stream.seek(6)
        self.assertEqual((l3.info(stream).size, l3.info(stream).text, stream.tell()), (len(file), TEXT, 6))
        np.testing.assert_array_equal(l3.decode(stream), pixels)
        for call in (l3.decode, l3.info, l3.open):
            with self.assertRaisesRegex(ValueError, r"source is at its end: call source\.seek\(0\) first"):
                call(stream)
            with self.assertRaises(l3.Error):
                call(io.BytesIO())

    def test_wrong_ones(self) -> None:
        path = self.folder / "a.l3"
        l3.encode(picture(1), path, **FAST)

        class Lies:
            def read(self, size: int = -1) -> int:
                return 5

        for call in (l3.decode, l3.info, l3.open):
            with path.open() as text, self.assertRaisesRegex(TypeError, 'open it with the mode "rb"'):
                call(text)
            with self.assertRaisesRegex(TypeError, r"source\.read\(\) returned int, but must return bytes"):
                call(Lies())
            with self.assertRaisesRegex(TypeError, "source is int, but must be bytes, a path, a file object"):
                call(5)
        with self.assertRaisesRegex(TypeError, 'open it with the mode "wb"'):
            l3.encode(picture(1), io.StringIO(), **FAST)
        with self.assertRaisesRegex(TypeError, "path is int, but must be a path, a file object, or None"):
            l3.encode(picture(1), 5, **FAST)  # type: ignore[call-overload]

    def test_writing(self) -> None:
        class Slow(io.RawIOBase):
            written = b""

            def write(self, data: bytes) -> int:
                self.written += bytes(data[:100])
                return min(len(data), 100)

        file = l3.encode(picture(1), **FAST)
        whole, slow = io.BytesIO(), Slow()
        for stream in (whole, slow):
            self.assertIsNone(l3.encode(picture(1), stream, **FAST))
        self.assertEqual((whole.getvalue(), slow.written), (file, file))

    def test_errors_have_the_name(self) -> None:
        path = self.folder / os.fsdecode(b"\xff.l3")
        path.write_bytes(l3.encode(picture(1), **FAST)[:-1])
        for source in (path, path.open("rb")):
            for call in (l3.decode, l3.open):
                with self.subTest(call), self.assertRaises(l3.Error) as caught:
                    call(source)
                self.assertEqual(caught.exception.file, str(path))
                if not isinstance(source, Path):
                    source.seek(0)
        source.close()
        self.assertEqual(l3.info(path).shape, (24, 32, 3))


class Damage(unittest.TestCase):
    PROFILE = np.random.default_rng(0).bytes(5000)  # too large for a tiny file
    FILE = l3.encode(picture(1, channels=1) // 32, palette=np.zeros((8, 4), np.uint8), icc=PROFILE, exif=EXIF,
                     text=TEXT, chunks=CHUNKS, **FAST)

    @staticmethod
    def look(image: l3.Info) -> list[object]:
        found: list[object] = []
        for name in ("palette", "transparent", "icc", "exif", "text", "chunks"):
            try:
                found.append(getattr(image, name))
            except l3.Error as error:
                found.append(str(error))
        return found

    def test_cut_off(self) -> None:
        before_pixels = l3.info(self.FILE)._payload_start
        for size in range(len(self.FILE)):
            with self.assertRaises(l3.Error):
                l3.open(self.FILE[:size])
            if size >= before_pixels:
                self.assertEqual(l3.info(self.FILE[:size]).text, TEXT)
                continue
            with self.assertRaises(l3.Error):
                l3.info(self.FILE[:size]).text  # noqa: B018
        with self.assertRaisesRegex(l3.Error, "is cut off, .*: 4096 of [0-9]+ bytes"):
            l3.info(io.BytesIO(self.FILE[:4096])).palette  # noqa: B018

    def test_each_byte(self) -> None:
        for at in range(len(self.FILE)):
            damaged = bytearray(self.FILE)
            damaged[at] ^= 0x11
            try:
                self.look(l3.info(damaged))
            except l3.Error:
                pass
            try:
                with l3.open(damaged) as image:
                    self.look(image)
                    image.decode()
            except l3.Error:
                pass

    def test_damaged_metadata_leaves_the_rest(self) -> None:
        """The section of the metadata is the last one before the pixels."""
        damaged = bytearray(self.FILE)
        with l3.open(self.FILE) as image:
            damaged[image._payload_start - 40] ^= 1
        with l3.open(damaged) as image:
            self.assertEqual((image.icc, image.exif), (self.PROFILE, EXIF))
            self.assertEqual(image.decode().shape, (24, 32, 1))
            for name in ("text", "chunks"):
                with self.assertRaises(l3.Error):
                    getattr(image, name)

    def test_chunks_that_lie(self) -> None:
        packed = zlib.compress(b"text")
        bomb = zlib.compress(bytes(2**26 + 1))
        for tag, data, reason in (
            ("iCCP", b"x", "the ICC profile is damaged: it does not begin"),
            ("iCCP", b"a\0\1" + packed, "does not begin"),
            ("iCCP", b"\0\0" + packed, "does not begin"), ("iCCP", b"a\0\0", "ends too early"),
            ("iCCP", b"a\0\0" + packed[:-1], "ends too early"), ("iCCP", b"a\0\0no", "zlib cannot unpack it"),
            ("iCCP", b"a\0\0" + bomb, "more than 67108864 bytes"), ("tEXt", b"no end", "'no end' is damaged"),
            ("zTXt", b"a", "damaged"), ("zTXt", b"a\0", "damaged"), ("zTXt", b"a\0\1" + packed, "damaged"),
            ("zTXt", b"a\0\0" + packed[:-3], "'a' is damaged: it ends too early"),
            ("zTXt", b"a\0\0" + bomb, "67108864"),
            ("iTXt", b"a\0", "damaged"), ("iTXt", b"a\0\0\0", "damaged"), ("iTXt", b"a\0\0\0\0", "damaged"),
            ("iTXt", b"a\0\2\0\0\0x", "damaged"), ("iTXt", b"a\0\1\1\0\0" + packed, "damaged"),
            ("iTXt", b"a\0\0\0\0\0\xff", "damaged"), ("iTXt", b"a\0\1\0\0\0no", "zlib cannot"),
        ):
            with self.subTest(tag=tag, data=data[:20]):
                image = l3.open(l3.encode(picture(1), chunks=[l3.Chunk(tag, data)], **FAST))
                with self.assertRaisesRegex(l3.Error, reason):
                    image.icc if tag == "iCCP" else image.text  # noqa: B018
                self.assertEqual(image.chunks, (l3.Chunk(tag, data),))
                self.assertEqual(image.decode().shape, (24, 32, 3))
        for tag, data in (("zTXt", b"a\0\0" + packed), ("iTXt", b"a\0\1\0de\0b\0" + packed), ("tEXt", b"a\0text")):
            image = l3.open(l3.encode(picture(1), chunks=[l3.Chunk(tag, data)], **FAST))
            self.assertEqual(image.text, {"a": "text"})


class Words(unittest.TestCase):
    def test_arguments_of_encode(self) -> None:
        pixels, gray = picture(1), picture(1, channels=1)
        palette = np.zeros((256, 3), np.uint8)
        for array, how, error, text in (
            (pixels, {"palette": palette}, ValueError, "palette is for indices.* has 3 channels; leave palette out"),
            (gray.astype(np.uint16), {"palette": palette}, ValueError, r"use array\.astype\('uint8'\)"),
            (gray // 128, {"palette": palette, "bits": 1}, ValueError, "256 entries, but with bits=1 can have 2"),
            (gray, {"palette": palette, "transparent": 1}, ValueError, r"use a palette of shape \(N, 4\)"),
            (picture(1, channels=4), {"transparent": (1, 2, 3)}, ValueError, "'rgb_alpha': use its alpha"),
            (gray, {"transparent": 256}, ValueError, "transparent is 256, but samples of 8 bits are at most 255"),
            (pixels, {"transparent": 5}, TypeError, r"transparent is 5, but must be \(red, green, blue\)"),
            (gray, {"transparent": (1, 2, 3)}, TypeError, "transparent is .*, but must be a whole number"),
            (pixels, {"icc": "a.icc"}, TypeError, r"the bytes of a profile: Path\(name\)\.read_bytes\(\)"),
            (pixels, {"icc": 5}, TypeError, "icc is int, but must be bytes"),
            (pixels, {"exif": "Exif"}, TypeError, "exif is str, but must be bytes"),
            (pixels, {"exif": {}}, TypeError, "exif is dict, but must be bytes"),
            (pixels, {"exif": b"JFIF"}, ValueError, r"exif begins with b'JFIF', but must begin with b'II\*"),
            (pixels, {"text": "Title"}, TypeError, "text is str, but must be a dict of str"),
            (pixels, {"text": {"Title": b"x"}}, TypeError, "'Title': bytes, but keys and values must be str"),
            (pixels, {"text": {5: "x"}}, TypeError, "text has 5"),
            (pixels, {"text": {"x" * 80: ""}}, ValueError, "a key of 80 characters .*, but keys must have 1 to 79"),
            (pixels, {"text": {"": ""}}, ValueError, "a key of 0 characters"),
            (pixels, {"text": {"写": ""}}, ValueError, "keys must be Latin-1"),
            (pixels, {"text": {" a": ""}}, ValueError, "neither spaces at the ends nor two in a row"),
            (pixels, {"text": {"a\nb": ""}}, ValueError, "printable"),
            (pixels, {"text": {"a": "\0"}}, ValueError, "null character"),
            (pixels, {"text": {"a": "\udc80"}}, ValueError, "UTF-8 cannot encode"),
            (pixels, {"text": {"a": "x" * 2**26}}, ValueError, "text and chunks have .* at most 67108864"),
            (pixels, {"chunks": {"a": b""}}, TypeError, r"chunks is dict, but must be a list of l3\.Chunk"),
            (pixels, {"chunks": ["tEXt"]}, TypeError, r"but must be a list of l3\.Chunk"),
            (pixels, {"chunks": [("tEXt", "a")]}, TypeError, "data of a chunk is str"),
            (pixels, {"chunks": [("tEXt", b"a", 3)]}, ValueError, "the place must be 0, 1 or 2"),
            (pixels, {"chunks": [("tEX", b"")]}, ValueError, "four ASCII letters"),
            (pixels, {"chunks": [("tRNS", b"")]}, ValueError, "the argument transparent"),
            (gray, {"chunks": [("PLTE", b"abc")]}, ValueError, "'PLTE', which must be one suggested palette"),
            (pixels, {"chunks": [("PLTE", b"ab")]}, ValueError, "with 3 to 768 bytes, before the pixels: leave it out"),
            (pixels, {"chunks": [("IDAT", b"")]}, ValueError, "only ancillary chunks"),
            (pixels, {"chunks": [("acTL", b"")]}, ValueError, "without animations"),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                l3.encode(array, **how, **FAST)  # type: ignore[call-overload]
        with self.assertRaisesRegex(TypeError, "return_info is 1"):
            l3.decode(l3.encode(pixels, **FAST), return_info=1)  # type: ignore[call-overload]


@unittest.skipUnless(L3_COMMAND, NEEDS_COMMAND)
class Command(Folder):
    """The command writes the same sections, and reads those of this package."""

    def run_l3(self, *arguments: object) -> str:
        done = subprocess.run([L3_COMMAND, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_there_and_back(self) -> None:
        l3_file, png, back = (self.folder / name for name in ("a.l3", "a.png", "b.l3"))
        palette = np.arange(32, dtype=np.uint8).reshape(8, 4)
        images = {"palette": (picture(1, channels=1) // 32, {"palette": palette}),
                  "gray": (picture(1, channels=1), {"transparent": 7}),
                  "rgb": (picture(1, bits=16), {"transparent": (1, 2, 65535)}), "alpha": (picture(1, channels=4), {}),
                  "suggested": (picture(1), {"chunks": [*CHUNKS, l3.Chunk("PLTE", b"abcdef", 1)]})}
        for name, (pixels, how) in images.items():
            with self.subTest(name):
                l3.encode(pixels, l3_file, icc=PROFILE, exif=EXIF, text=TEXT, **{"chunks": CHUNKS, **how}, **FAST)
                self.run_l3("verify", l3_file)
                told = json.loads(self.run_l3("info", "--json", l3_file))
                self.assertLessEqual({"colour space", "icc", "exif", "metadata"},
                                     {section["name"] for section in told["sections"]})
                self.assertEqual([chunk["tag"] for chunk in told["chunks"]],
                                 ["tEXt", "tEXt", "iTXt", "pHYs", "tIME", "teSt", "teSt"]
                                 + (["PLTE"] if name == "suggested" else []))
                self.run_l3("decode", l3_file, png)
                written = chunks_of_png(png.read_bytes())
                by_tag = dict(written)
                self.assertEqual(by_tag["eXIf"], EXIF)
                self.assertEqual(zlib.decompress(by_tag["iCCP"].split(b"\0", 2)[2]), PROFILE)
                self.assertLessEqual({(chunk.tag, chunk.data) for chunk in CHUNKS}, set(written))
                self.assertIn(("tEXt", "Title\0Ein Käfer".encode("latin-1")), written)
                self.assertIn(("iTXt", b"Name\0\0\0\0\0" + TEXT["Name"].encode()), written)
                if name == "palette":
                    self.assertEqual(by_tag["PLTE"], palette[:, :3].tobytes())
                    self.assertEqual(by_tag["tRNS"], palette[:, 3].tobytes())
                # The command makes the same of the PNG.
                self.run_l3("encode", png, back)
                ours, theirs = l3.open(l3_file), l3.open(back)
                np.testing.assert_array_equal(ours.decode(), theirs.decode())
                np.testing.assert_array_equal(ours.palette, theirs.palette)
                for what in ("transparent", "icc", "exif", "text"):
                    self.assertEqual(getattr(ours, what), getattr(theirs, what))
                # Without a palette, the places before and after it are one.
                part = 1 if name in ("palette", "suggested") else 2
                kept = [[(chunk.tag, chunk.data, chunk.place // part) for chunk in each.chunks]
                        for each in (ours, theirs)]
                self.assertEqual(sorted(kept[0]), sorted(kept[1]))


@unittest.skipIf(Image is None, "Pillow is not installed")
class Pillow(Folder):
    def images(self) -> dict[str, Image.Image]:
        pixels = picture(5, channels=4)
        whole = Image.fromarray(pixels)
        palette = whole.quantize(16)
        opaque = Image.fromarray(pixels[:, :, :3]).quantize(200)
        transparent = opaque.copy()
        transparent.info["transparency"] = bytes(range(100))
        found = {"1": Image.fromarray(pixels[:, :, 0] > 99), "I;16": Image.fromarray(picture(1, bits=16)[:, :, 0]),
                 "P with alpha": palette, "P": opaque, "P with transparency": transparent,
                 **{mode: whole.convert(mode) for mode in ("L", "LA", "RGB", "RGBA")}}
        for mode, key in (("1", 255), ("L", 3), ("RGB", (1, 2, 3)), ("I;16", 999)):
            found[f"{mode} with a key"] = found[mode].copy()
            found[f"{mode} with a key"].info["transparency"] = key
        return found

    def assert_same(self, made: Image.Image, image: Image.Image) -> None:
        self.assertEqual((made.mode, made.size), (image.mode, image.size))
        np.testing.assert_array_equal(np.asarray(made), np.asarray(image))
        if not image.mode.startswith("I"):
            self.assertEqual(made.convert("RGBA").tobytes(), image.convert("RGBA").tobytes())
        else:
            self.assertEqual(made.info.get("transparency"), image.info.get("transparency"))

    def test_there_and_back(self) -> None:
        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        for name, image in self.images().items():
            with self.subTest(name), warnings.catch_warnings():
                warnings.simplefilter("error")
                image.info.update(icc_profile=profile, exif=b"Exif\0\0" + EXIF)
                texts = PngImagePlugin.PngInfo()
                for key, value in TEXT.items():
                    texts.add_itxt(key, value, "de", "x")
                for save in (False, True):
                    read = image
                    if save:
                        # Pillow writes the alpha of a palette only from image.info.
                        image.save(self.folder / "a.png", pnginfo=texts, icc_profile=profile, exif=EXIF)
                        read = Image.open(self.folder / "a.png")
                    with l3.open(l3.encode(read, **FAST)) as opened:
                        self.assertEqual((opened.icc, opened.exif), (profile, EXIF))
                        self.assertEqual(opened.text, TEXT if save else {})
                        made = opened.to_pil()
                        if save:
                            self.assertIn(b"Title\0\0\0de\0x\0", b"".join(chunk.data for chunk in opened.chunks))
                    self.assert_same(made, read)
                    self.assertEqual(made.getexif()[0x0112], 6)
                    again = l3.open(l3.encode(made, **FAST))
                    self.assertEqual((again.icc, again.exif, again.text, again.transparent),
                                     (opened.icc, opened.exif, opened.text, opened.transparent))
                    np.testing.assert_array_equal(again.palette, opened.palette)
                    plain = l3.open(l3.encode(read, icc=b"", exif=b"", text={}, **FAST))
                    self.assertEqual(plain.chunks, ())

    def test_few_bits_and_many(self) -> None:
        for bits in range(2, 8):
            pixels = picture(1, channels=1, bits=bits)
            made = l3.open(l3.encode(pixels, bits=bits, transparent=1, **FAST)).to_pil()
            self.assertEqual((made.mode, np.asarray(made).max() <= 255), ("L", True))
            scaled = np.round(pixels[:, :, 0].astype(float) * 255 / (2**bits - 1))
            np.testing.assert_array_equal(np.asarray(made), scaled)
            self.assertEqual(made.info["transparency"], round(255 / (2**bits - 1)))
        with self.assertRaisesRegex(ValueError, r"no mode for rgb of 12 bits: use .*>> 4\)"):
            l3.open(l3.encode(picture(1, bits=12), bits=12, **FAST)).to_pil()
        premultiplied = l3.open(l3.encode(picture(1, channels=4), premultiplied=True, **FAST))
        self.assertEqual(premultiplied.to_pil().mode, "RGBa")
        np.testing.assert_array_equal(np.asarray(premultiplied.to_pil(region=(1, 2, 3, 4), flip=True)),
                                      picture(1, channels=4)[2:6, 1:4][:, ::-1])
        with self.assertRaisesRegex(TypeError, "to_pil has no option 'layout', but has 'region'"):
            premultiplied.to_pil(layout="CHW")

    def test_arguments_come_first(self) -> None:
        image = self.images()["L with a key"]
        table = np.zeros((256, 3), np.uint8)
        np.testing.assert_array_equal(l3.info(l3.encode(image, palette=table, **FAST)).palette, table)
        self.assertEqual(l3.info(l3.encode(image, transparent=9, **FAST)).transparent, 9)
        image.text = "not a dict"
        self.assertEqual(l3.info(l3.encode(image, **FAST)).text, {})
        image.info["exif"] = b"other"
        with self.assertRaisesRegex(ValueError, "exif=b'' writes none"):
            l3.encode(image, **FAST)
        self.assertIsNone(l3.info(l3.encode(image, exif=b"", **FAST)).exif)

    def test_exif_objects(self) -> None:
        exif = Image.Exif()
        self.assertIsNone(l3.info(l3.encode(picture(1), exif=exif, **FAST)).exif)
        exif[0x0112] = 3
        self.assertEqual(l3.open(l3.encode(picture(1), exif=exif, **FAST)).to_pil().getexif()[0x0112], 3)
        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
        self.assertEqual(l3.info(l3.encode(picture(1), icc=profile, **FAST)).icc, profile.tobytes())


if __name__ == "__main__":
    unittest.main()
