"""l3.pillow: Pillow opens and saves L3 files, and what is built on Pillow reads them."""

from __future__ import annotations

import io
import subprocess
import unittest
from pathlib import Path

import l3
import numpy as np
from support import L3_COMMAND, NEEDS_COMMAND, Folder, picture, python, write_png

try:
    import l3.pillow
    from PIL import Image, UnidentifiedImageError
except ImportError:
    Image = None  # type: ignore[assignment]
try:
    import torchvision
except ImportError:
    torchvision = None
try:
    import datasets
except ImportError:
    datasets = None

EXIF = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"  # orientation 6
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><a>K\xc3\xa4fer</a></x:xmpmeta>'


@unittest.skipIf(Image is None, "Pillow 10.1 or later is not installed")
class Plugin(Folder):
    def setUp(self) -> None:
        super().setUp()
        self.path = self.folder / "a.l3"

    def images(self) -> dict[str, Image.Image]:
        pixels = picture(5, height=70, width=150, channels=4)
        whole = Image.fromarray(pixels)
        found = {"1": Image.fromarray(pixels[:, :, 0] > 99), "I;16": Image.fromarray(picture(1, bits=16)[:, :, 0]),
                 "P": Image.fromarray(pixels[:, :, :3]).quantize(200), "P with alpha": whole.quantize(16),
                 **{mode: whole.convert(mode) for mode in ("L", "LA", "RGB", "RGBA")}}
        for mode, key in (("1", 255), ("L", 3), ("RGB", (1, 2, 3)), ("I;16", 999)):
            found[f"{mode} with a key"] = found[mode].copy()
            found[f"{mode} with a key"].info["transparency"] = key
        found["one pixel"] = Image.new("RGB", (1, 1), (1, 2, 3))
        return found

    def test_every_mode(self) -> None:
        for name, image in self.images().items():
            with self.subTest(name):
                image.save(self.path, effort=1)
                with Image.open(self.path) as read:
                    self.assertEqual((read.format, read.mode, read.size), ("L3", image.mode, image.size))
                    self.assertEqual(read.tobytes(), image.tobytes())
                    if not image.mode.startswith("I"):
                        self.assertEqual(read.convert("RGBA").tobytes(), image.convert("RGBA").tobytes())
                    if name.endswith("a key"):
                        self.assertEqual(read.info["transparency"], image.info["transparency"])
                stream = io.BytesIO()
                image.save(stream, "L3", effort=1)
                self.assertEqual(stream.getvalue(), self.path.read_bytes())
                self.assertEqual(Image.open(stream).tobytes(), image.tobytes())

    def test_other_depths(self) -> None:
        pixels = picture(1, channels=1, bits=12)
        l3.encode(pixels, self.path, bits=12)
        np.testing.assert_array_equal(np.asarray(Image.open(self.path)), pixels[:, :, 0])
        l3.encode(picture(1, channels=1, bits=4), self.path, bits=4)
        with Image.open(self.path) as few, l3.open(self.path) as opened:
            self.assertEqual(few.tobytes(), opened.to_pil().tobytes())
        l3.encode(picture(1, channels=4), self.path, premultiplied=True)
        with Image.open(self.path) as premultiplied:
            self.assertEqual(premultiplied.mode, "RGBa")
            np.testing.assert_array_equal(np.asarray(premultiplied), picture(1, channels=4))
        l3.encode(picture(1, bits=12), self.path, bits=12)
        with self.assertRaisesRegex(UnidentifiedImageError, "no mode for rgb of 12 bits"):
            Image.open(self.path)

    def test_metadata(self) -> None:
        image = Image.fromarray(picture(2))
        profile = bytes(range(256))
        image.info.update(icc_profile=profile, exif=b"Exif\0\0" + EXIF, xmp=XMP, dpi=(300, 150.5))
        image.save(self.path, text={"Title": "Ein Käfer"})
        with Image.open(self.path) as read:
            self.assertEqual(read.info["icc_profile"], profile)
            self.assertEqual(read.getexif()[0x0112], 6)
            self.assertEqual(read.info["xmp"], XMP)
            self.assertAlmostEqual(read.info["dpi"][0], 300, delta=0.02)
            self.assertAlmostEqual(read.info["dpi"][1], 150.5, delta=0.02)
            self.assertEqual(read.text["Title"], "Ein Käfer")
            read.save(self.folder / "b.l3")
            self.assertEqual((self.folder / "b.l3").read_bytes(), l3.encode(read))
            for name in ("icc", "exif", "text", "chunks"):
                self.assertEqual(getattr(l3.info(self.folder / "b.l3"), name), getattr(l3.info(self.path), name))
            # What save is given counts, and the image stays as it was.
            read.save(self.folder / "c.l3", icc_profile=None, exif=b"", dpi=(72, 72), xmp=None, text={})
            self.assertEqual(read.info["icc_profile"], profile)
        other = l3.info(self.folder / "c.l3")
        self.assertEqual((other.icc, other.exif, other.text, len(other.chunks)), (None, None, {}, 1))
        with Image.open(self.folder / "c.l3") as read:
            self.assertAlmostEqual(read.info["dpi"][0], 72, delta=0.02)

    def test_strange_metadata(self) -> None:
        for dpi in (5, None, (0, 0), (1, 2, 3), ("a", "b"), (float("nan"), 1), (1e30, 1)):
            image = Image.fromarray(picture(2))
            image.info.update(dpi=dpi, xmp=b"\xff\xfe")
            image.save(self.path)
            self.assertEqual(l3.info(self.path).chunks, (), dpi)
        # A text that cannot be read costs nobody the pixels.
        l3.encode(picture(2), self.path, chunks=[l3.Chunk("iTXt", b"Title")])
        with self.assertWarnsRegex(UserWarning, "iTXt chunk 'Title' is damaged.*left out"):
            read = Image.open(self.path)
        with read:
            np.testing.assert_array_equal(np.asarray(read), picture(2))

    def test_as_pillow_reads_a_png(self) -> None:
        """What comes of a PNG and of the same as L3, made by Pillow, is the same."""
        for name, image in self.images().items():
            with self.subTest(name):
                image.info.update(dpi=(72, 72), icc_profile=b"profile" * 9, xmp=XMP)
                image.save(self.folder / "a.png", dpi=(72, 72))
                with Image.open(self.folder / "a.png") as png:
                    if png.mode == "I":
                        continue  # Pillow 10 opens 16 bits so
                    png.save(self.path)
                    ours = Image.open(self.path)
                    self.assertEqual((ours.mode, ours.tobytes(), ours.getpalette()),
                                     (png.mode, png.tobytes(), png.getpalette()))
                    self.assertEqual(set(ours.info) - {"transparency"}, set(png.info) - {"transparency"})
                    self.assertEqual(ours.info["dpi"], png.info["dpi"])

    def test_opening_reads_the_head(self) -> None:
        """A file whose pixels are missing opens, and fails when they are needed."""
        Image.fromarray(picture(3, 300, 300)).save(self.path, effort=1)
        whole = self.path.read_bytes()
        stream = io.BytesIO(whole[:5000])
        image = Image.open(stream)
        self.assertEqual(image.size, (300, 300))
        with self.assertRaisesRegex(OSError, "offset|size|cut|short"):
            image.load()
        # Pixels are decoded when they are first needed, and the file is closed then.
        with Image.open(self.path) as image:
            self.assertIsNotNone(image.fp)
            image.load()
            self.assertIsNone(image.fp)

    def test_damage(self) -> None:
        for edges in ((24, 32), (300, 300)):  # a tiny file and another
            Image.fromarray(picture(3, *edges)).save(self.path, effort=1)
            whole = self.path.read_bytes()
            self.assertEqual(whole[3:4], b"t" if edges[0] == 24 else b"I")
            changed = bytearray(whole)
            changed[-9] ^= 1
            self.path.write_bytes(changed)
            if edges[0] == 24:  # all of it is verified at once
                with self.assertRaisesRegex(UnidentifiedImageError, "a.l3: offset 4: .*check"):
                    Image.open(self.path)
            else:
                with Image.open(self.path) as image, self.assertRaisesRegex(OSError, "a.l3: offset .*check"):
                    image.load()
                with Image.open(self.path) as image, self.assertRaisesRegex(OSError, "a.l3: offset .*check"):
                    image.verify()
            for size in (4, 15, 20, 64, 80):
                with self.assertRaises(OSError, msg=f"{size} bytes"):  # UnidentifiedImageError is one
                    Image.open(io.BytesIO(whole[:size])).load()
            head = bytearray(whole)
            head[11] ^= 0x80
            with self.assertRaises(OSError):
                Image.open(io.BytesIO(head)).load()
            self.path.write_bytes(whole)
            with Image.open(self.path) as image:
                image.verify()
        self.path.write_bytes(b"\x8bL3X" + whole[4:])
        with self.assertRaisesRegex(UnidentifiedImageError, "cannot identify"):
            Image.open(self.path)
        head = bytearray(whole)
        head[20] ^= 1
        self.path.write_bytes(head)
        with self.assertRaisesRegex(UnidentifiedImageError, "a.l3: offset 44: .*check"):
            Image.open(self.path)

    def test_other_formats_stay(self) -> None:
        write_png(self.folder / "a.png", picture(4))
        with Image.open(self.folder / "a.png") as image:
            self.assertEqual(image.format, "PNG")
        with self.assertRaises(UnidentifiedImageError):
            Image.open(io.BytesIO(b"not an image"))
        with self.assertRaises(UnidentifiedImageError):
            Image.open(io.BytesIO(l3.encode(picture(4))), formats=["PNG"])
        self.assertEqual((Image.registered_extensions()[".l3"], Image.MIME["L3"]), ("L3", "image/x-l3"))

    def test_what_cannot_be_saved(self) -> None:
        with self.assertRaisesRegex(OSError, "cannot write mode CMYK as L3: .*convert"):
            Image.new("CMYK", (4, 4)).save(self.path)
        with self.assertRaisesRegex(ValueError, "effort is 11"):
            Image.new("L", (4, 4)).save(self.path, effort=11)
        self.assertFalse(self.path.exists())

    def test_options(self) -> None:
        image = Image.fromarray(picture(3, 300, 300))
        for options in ({"method": "fast"}, {"effort": 9}, {"tile": 64}):
            image.save(self.path, **options, quality=95)  # what other formats have is ignored, as by Pillow's own
            self.assertEqual(self.path.read_bytes(), l3.encode(image, **options))

    def test_operations(self) -> None:
        pixels = picture(6, 200, 200)
        Image.fromarray(pixels).save(self.path)
        np.testing.assert_array_equal(np.asarray(Image.open(self.path).crop((10, 20, 60, 90))), pixels[20:90, 10:60])
        small = Image.open(self.path)
        small.thumbnail((50, 50))
        self.assertEqual(small.size, (50, 50))
        self.assertEqual(np.asarray(Image.open(self.path).convert("L")).shape, (200, 200))

    @unittest.skipUnless(L3_COMMAND, NEEDS_COMMAND)
    def test_named_models(self) -> None:
        icons = self.folder / "icons"
        for i in range(4):
            write_png(icons / f"{i}.png", picture(i, 64, 64))
        model = self.folder / "icons.l3model"
        subprocess.run([L3_COMMAND, "train", "-q", icons, model], check=True)
        subprocess.run([L3_COMMAND, "encode", "-q", "--method", "dense", "--model", model, icons / "0.png", self.path],
                       check=True)
        self.addCleanup(l3.pillow.use_models, [])
        with Image.open(self.path) as image, self.assertRaisesRegex(OSError, "model"):
            image.load()
        for models in (model, [l3.Model(model)], model.read_bytes()):
            l3.pillow.use_models(models)
            np.testing.assert_array_equal(np.asarray(Image.open(self.path)), picture(0, 64, 64))

    def test_without_the_import(self) -> None:
        """`import l3` alone changes nothing, and loads little."""
        done = python("import sys, l3; assert not {'PIL', 'asyncio'} & set(sys.modules); from PIL import Image; "
                      "Image.init(); assert 'L3' not in Image.OPEN; import l3.pillow; assert 'L3' in Image.OPEN")
        self.assertEqual(done.returncode, 0, done.stderr)


@unittest.skipIf(Image is None, "Pillow 10.1 or later is not installed")
class BuiltOnPillow(Folder):
    """Folders of classes, read as programs do that know Pillow only."""

    def setUp(self) -> None:
        super().setUp()
        for i in range(6):
            name = self.folder / "set" / ("dogs" if i % 2 else "cats") / f"{i}.l3"
            name.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture(i)).save(name, effort=1)

    def test_a_folder(self) -> None:
        """A loop as that of torchvision's ImageFolder, which needs torch."""
        extensions = Image.registered_extensions()
        found = [path for path in sorted(Path(self.folder / "set").rglob("*")) if path.suffix in extensions]
        self.assertEqual(len(found), 6)
        for path in found:
            with open(path, "rb") as file:
                pixels = np.asarray(Image.open(file).convert("RGB"))
            np.testing.assert_array_equal(pixels, picture(int(path.stem)))

    @unittest.skipIf(torchvision is None, "torchvision is not installed")
    def test_torchvision(self) -> None:
        folder = torchvision.datasets.ImageFolder(self.folder / "set", is_valid_file=lambda name: name.endswith(".l3"))
        self.assertEqual((len(folder), folder.classes), (6, ["cats", "dogs"]))
        for i, (image, label) in zip((0, 2, 4, 1, 3, 5), folder):  # noqa: B905 (Python 3.9)
            np.testing.assert_array_equal(np.asarray(image), picture(i))
            self.assertEqual(label, i % 2)

    @unittest.skipIf(datasets is None, "datasets is not installed")
    def test_hugging_face(self) -> None:
        names = sorted(str(path) for path in (self.folder / "set").rglob("*.l3"))
        data = datasets.Dataset.from_dict({"image": names}).cast_column("image", datasets.Image())
        for name, row in zip(names, data):  # noqa: B905 (Python 3.9)
            np.testing.assert_array_equal(np.asarray(row["image"]), picture(int(Path(name).stem)))
        # Written into the table as the bytes of an L3 file.
        kept = datasets.Dataset.from_dict({"image": [Image.open(io.BytesIO(Path(names[0]).read_bytes()))]},
                                          features=datasets.Features(image=datasets.Image()))
        stored = kept.cast_column("image", datasets.Image(decode=False))[0]["image"]["bytes"]
        np.testing.assert_array_equal(l3.decode(stored), picture(int(Path(names[0]).stem)))


if __name__ == "__main__":
    unittest.main()
