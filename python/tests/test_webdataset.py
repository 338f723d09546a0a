"""l3.webdataset_decoder, and tars of l3 export --tar in the real WebDataset."""

from __future__ import annotations

import functools
import json
import subprocess
import tarfile
import unittest

import l3
import numpy as np
from support import L3_COMMAND, NEEDS_COMMAND, Folder, picture

try:
    import webdataset
except ImportError:
    webdataset = None


class Decoder(unittest.TestCase):
    def test_what_it_decodes(self) -> None:
        pixels = picture(1)
        file = l3.encode(pixels)
        for key in (".l3", ".labels.l3", ".L3"):
            np.testing.assert_array_equal(l3.webdataset_decoder(key, file), pixels)
        for key in (".png", ".l3.txt", ".xl3", ".cls"):
            self.assertIsNone(l3.webdataset_decoder(key, file), key)
        planes = functools.partial(l3.webdataset_decoder, layout="CHW", dtype="float32")(".l3", file)
        np.testing.assert_allclose(planes, pixels.transpose(2, 0, 1) / np.float32(255), rtol=1e-6)
        with self.assertRaises(l3.Error):
            l3.webdataset_decoder(".l3", b"damaged")


@unittest.skipIf(webdataset is None, "webdataset is not installed")
@unittest.skipUnless(L3_COMMAND, NEEDS_COMMAND)
class RealPackage(Folder):
    COUNT = 9

    def setUp(self) -> None:
        super().setUp()
        with l3.DatasetWriter(self.folder / "set", classes=["cat", "dog"]) as writer:
            for i in range(self.COUNT):
                about = {"group": i, "label": i % 2}
                writer.write(picture(i), name=f"a.b/{i}.x.png", role="image", metadata={"number": i}, **about)
                writer.write(picture(i, channels=1), name=f"maps/{i}.png", role="labels", **about)
                writer.write_bytes(b"text %d" % i, name=f"{i}.txt", role="text", **about)

    def export(self, *options: str) -> str:
        tar = self.folder / "set.tar"
        subprocess.run([L3_COMMAND, "export", "--tar", "-q", *options, self.folder / "set", tar], check=True)
        return str(tar)

    def test_l3_members(self) -> None:
        data = webdataset.WebDataset(self.export("--as", "l3"), shardshuffle=False).decode(l3.webdataset_decoder)
        samples = list(data)
        self.assertEqual([sample["__key__"] for sample in samples], [f"a.b/{i}_x" for i in range(self.COUNT)])
        for i, sample in enumerate(samples):
            np.testing.assert_array_equal(sample["image.l3"], picture(i))
            np.testing.assert_array_equal(sample["labels.l3"], picture(i, channels=1))
            self.assertEqual((sample["cls"], sample["json"], sample["text.txt"]),
                             (i % 2, {"number": i}, f"text {i}"))

    def test_png_members(self) -> None:
        try:
            import PIL  # noqa: F401
        except ImportError:
            self.skipTest("Pillow is not installed")
        samples = list(webdataset.WebDataset(self.export(), shardshuffle=False).decode("rgb8"))
        self.assertEqual(len(samples), self.COUNT)
        for i, sample in enumerate(samples):
            np.testing.assert_array_equal(sample["image.png"], picture(i))
            self.assertEqual(sample["cls"], i % 2)

    def test_names_of_classes(self) -> None:
        """They are the first member of a tar, which webdataset leaves out. l3 convert takes them back."""
        tar = self.export()
        with tarfile.open(tar) as file:
            names = file.getnames()
        self.assertEqual((names[0], len(names)), ("__classes__", 1 + 5 * self.COUNT))
        samples = list(webdataset.WebDataset(tar, shardshuffle=False))
        self.assertEqual(sum(not key.startswith("__") for sample in samples for key in sample), 5 * self.COUNT)
        # With and without what skips members of this form
        for skip in (None, r"__[^/]*__($|/)"):
            with open(tar, "rb") as stream:
                files = list(webdataset.tariterators.tar_file_iterator(stream, skip_meta=skip))
            self.assertEqual(len(files), 5 * self.COUNT)
        subprocess.run([L3_COMMAND, "convert", "-q", tar, self.folder / "again"], check=True)
        with l3.Dataset(self.folder / "set") as before, l3.Dataset(self.folder / "again") as after:
            self.assertEqual(after.classes, ["cat", "dog"])
            self.assertEqual([sample.label for sample in after], [sample.label for sample in before])

    def test_a_set_again(self) -> None:
        """The loop of examples/write_dataset.py makes an equal data set of a tar with L3 files."""
        again = self.folder / "again"
        tar = self.export("--as", "l3")
        with tarfile.open(tar) as file:
            classes = json.load(file.extractfile("__classes__"))
        with l3.DatasetWriter(again, classes=classes) as writer:
            for sample in webdataset.WebDataset(tar, shardshuffle=False):
                about = {"group": sample["__key__"], "label": int(sample["cls"])}
                writer.write(sample["image.l3"], role="image", metadata=sample["json"], **about)
                writer.write(sample["labels.l3"], role="labels", **about)
                writer.write_bytes(sample["text.txt"], role="text", **about)
        with l3.Dataset(self.folder / "set") as before, l3.Dataset(again) as after:
            self.assertEqual([(one.role, one.label, one.metadata, one.bytes()) for one in after],
                             [(one.role, one.label, one.metadata, one.bytes()) for one in before])
            self.assertEqual(after.classes, before.classes)


if __name__ == "__main__":
    unittest.main()
