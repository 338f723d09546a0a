#!/usr/bin/env python3
"""Tests l3 train and --model: files that share a model, and errors for a missing or unsuitable model.

    command_models_test.py --l3 COMMAND
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
from pathlib import Path

from command_testing import DONE, FAILED, USAGE, CommandTest, l3_command, main, pgm, png
from sets_testing import SetTest, contents, is_sanitized


def labels(width: int, height: int, seed: int) -> bytes:
    """A PGM of areas with a few values, which depend on the seed."""
    rows = (bytes((x // 20 + y // 15 * 3) % 5 + 2 * seed for x in range(width)) for y in range(height))
    return b"P5 %d %d 255\n" % (width, height) + b"".join(rows)


class Models(CommandTest):
    def images(self, count: int = 8) -> Path:
        for i in range(count):
            self.write(f"images/{i}.png", png(40, 30, seed=i))
        return self.folder / "images"

    def trained(self, images: Path, *options: object) -> Path:
        model = self.folder / "shared.l3model"
        self.l3("train", images, model, "--effort", 1, *options)
        return model

    def test_files_share_a_model(self) -> None:
        images = self.images()
        model = self.trained(images)
        out = self.folder / "out"
        self.l3("convert", "--files", "--method", "dense", "--model", model, images, out)
        self.l3("verify", "--model", model, "--against", images, out)
        info = self.info(out / "1.l3")
        self.assertEqual((info["model_origin"], info["model_bytes"]), ("named", 0))
        self.assertNotIn("model_kind", info)
        said = self.l3("verify", out / "1.l3", code=FAILED).stderr.decode()
        self.assertRegex(said, f"offset (12|64): the file needs a model that was not supplied: {info['model_name']}")
        self.l3("decode", out / "1.l3", self.folder / "no.png", code=FAILED)
        self.assertFalse((self.folder / "no.png").exists())
        self.l3("decode", "--model", model, out / "1.l3", self.folder / "yes.png")
        known = json.loads(self.l3("info", "--json", "--sizes", "--model", model, out / "1.l3").stdout)
        self.assertEqual((known["model_bytes"], known["model_kind"]), (model.stat().st_size, 0))
        self.assertIn(b"model", self.l3("info", out / "1.l3").stdout)
        self.assert_no_temporaries()

    def test_small_images_use_the_default_model(self) -> None:
        info = self.info(self.encoded("a.png", png(16, 16), "--method", "dense"))
        self.assertEqual(info["model_origin"], "default")
        self.assertIn(info["default_model"], (3, 7))
        self.assertEqual(info["model_kind"], 0)

    def test_info_names_kinds_of_models(self) -> None:
        dice = random.Random(1)
        blots = bytearray(90300)  # pixels like the one above or to the left
        for at in range(300, len(blots)):
            blots[at] = dice.choice((blots[at - 300], blots[at - 1])) ^ 255 * (dice.random() < 0.05)
        for name, image, kind in (("two.pgm", b"P5\n300 300\n255\n" + blots[300:], b"2 (bit model)"),
                                  ("deep.png", png(150, 150, 16), b"1 (token model)")):
            self.assertIn(b"own, kind " + kind, self.l3("info", self.encoded(name, image)).stdout)

    def test_the_most_frequent_colour_is_taken(self) -> None:
        images = self.images(3)
        self.write("images/gray.pgm", pgm(20, 20))
        self.write("images/deep.png", png(9, 9, 16))
        said = self.l3("train", images, self.folder / "m", "--effort", 1).stdout.decode()
        self.assertRegex(said, r"for RGB of 8 bits, made from 3 images; ignored: 1 gray of 8 bits, 1 RGB of 16 bits")
        said = self.l3("train", images, self.folder / "m", "--effort", 1, "--colour", "gray").stdout.decode()
        self.assertRegex(said, r"for gray of 8 bits, made from 1 image; ignored: 3 RGB of 8 bits, 1 RGB of 16 bits")
        said = self.l3("train", images, self.folder / "m", "--effort", 1, "--max-images", 2).stdout.decode()
        self.assertRegex(said, r"not read: 3")

    def test_what_is_no_model(self) -> None:
        image = self.write("a.png", png(40, 30))
        wrong = self.write("wrong", b"no model at all, but long enough")
        for words in (("encode", image, self.folder / "a.l3"), ("convert", image, self.folder / "b.l3")):
            said = self.l3(*words, "--model", wrong, code=FAILED).stderr.decode()
            self.assertIn("not a model", said)
        self.l3("encode", image, self.folder / "a.l3", "--model", self.folder / "absent", code=FAILED)
        model = self.trained(self.images())
        said = self.l3("encode", image, self.folder / "a.l3", "--model", model, "--model", model, code=FAILED)
        self.assertIn(b"another --model is for images with 3 channels of 8 bits, too; name only one", said.stderr)
        # Images of other channels do without.
        gray = self.write("gray.pgm", pgm(40, 30))
        self.l3("encode", gray, self.folder / "gray.l3", "--model", model)
        self.assertNotEqual(self.info(self.folder / "gray.l3")["model_origin"], "named")

    def test_nothing_to_learn_from(self) -> None:
        (self.folder / "empty").mkdir()
        self.l3("train", self.folder / "empty", self.folder / "m", code=FAILED)
        self.l3("train", self.folder / "absent", self.folder / "m", code=USAGE)
        self.write("deep/deep.png", png(9, 9, 16))
        said = self.l3("train", self.folder / "deep", self.folder / "m", "--bits", 8, code=FAILED).stderr.decode()
        self.assertIn("no image of 8 bits to learn from", said)
        self.assertFalse((self.folder / "m").exists())

    def test_images_of_other_bits_and_of_labels(self) -> None:
        """Each kind of image by its own model, and the way back."""
        for i in range(3):
            self.write(f"deep/{i}.png", png(30 + i, 20, 16))
            self.write(f"labels/{i}.pgm", labels(64 + i, 50, i))
        models = []
        for folder, bits in (("deep", 16), ("labels", 8)):
            models.append(self.folder / f"{folder}.l3model")
            said = self.l3("train", self.folder / folder, models[-1], "--effort", 2).stdout.decode()
            self.assertIn(f"of {bits} bits, made from 3 images", said)
        named = [word for model in models for word in ("--model", model)]
        for folder in ("deep", "labels"):
            out = self.folder / f"{folder}_l3"
            self.l3("convert", "--files", "--effort", 2, *named, self.folder / folder, out)
            self.l3("verify", *named, "--against", self.folder / folder, out)
            origins = [self.info(file)["model_origin"] for file in sorted(out.iterdir())]
            self.assertIn("named", origins)  # where it is smaller than an own one
        # A value that was in no image that it learnt from.
        self.write("other.pgm", labels(70, 40, 99))
        self.l3("encode", "--model", models[1], self.folder / "other.pgm", self.folder / "other.l3")
        self.l3("verify", "--model", models[1], self.folder / "other.l3")
        self.assertEqual(self.info(self.folder / "other.l3")["tiles_dense"], 1)

    def test_broken_images_are_named_and_left_out(self) -> None:
        images = self.images(3)
        self.write("images/broken.png", png(9, 9)[:60])
        said = self.l3("train", images, self.folder / "m", "--effort", 1, code=FAILED).stderr.decode()
        self.assertIn("broken.png", said)
        self.assertTrue((self.folder / "m").exists())


class SharedModels(SetTest):
    """Models that l3 convert makes for a data set."""

    def alike(self, count: int) -> None:
        for i in range(count):
            noise = random.Random(i)
            rows = [bytes((x * y + i) % 7 * 9 + 40 + noise.randrange(4) for x in range(64)) for y in range(64)]
            self.write(f"src/{i:02}.png", png(64, 64, 8, 0, rows=rows))

    def test_without_memory_there_is_no_other_data_set(self) -> None:
        """Out of memory is not "no model pays": what --resume then makes has the same bytes."""
        if is_sanitized():
            self.skipTest("a sanitizer takes memory of its own")
        self.alike(24)
        options = ["--method", "dense", "--effort", "1", "--shared-model", "on", "-j1", "-q"]
        self.l3("convert", self.source, self.set, *options)
        expected = contents(self.set)
        failed = 0
        for mebibytes in range(24, 60, 8):
            out, most = self.folder / str(mebibytes), mebibytes << 20
            run = subprocess.run([l3_command(), "convert", self.source, out, *options], capture_output=True,
                                 preexec_fn=lambda most=most: resource.setrlimit(resource.RLIMIT_AS, (most, most)))
            if b"loading shared libraries" in run.stderr:
                continue  # the command did not begin
            if run.returncode != DONE:
                failed += 1
                # An error, on whatever thread, and not a signal's end.
                self.assertEqual(run.returncode, FAILED, run.stderr.decode(errors="replace"))
                self.assertRegex(run.stderr, b"memory|threads")
                self.l3("convert", self.source, out, *options, "--resume")
            # (assertEqual would take minutes to show how they differ.)
            same = contents(out) == expected
            self.assertTrue(same, f"{mebibytes} MiB: other bytes after {run.stderr.decode(errors='replace')}")
        self.assertGreater(failed, 0)

    def test_no_thread_ends_the_program_for_want_of_memory(self) -> None:
        if is_sanitized():
            self.skipTest("a sanitizer takes memory of its own")
        self.alike(60)
        ends = set()
        for mebibytes in range(60, 150, 6):
            command = [l3_command(), "convert", self.source, self.set, "--effort", "1", "-j2", "-q", "--force"]
            run = subprocess.run(command, capture_output=True, timeout=60, preexec_fn=lambda most=mebibytes << 20:
                                 resource.setrlimit(resource.RLIMIT_AS, (most, most)))
            self.assertIn(run.returncode, (DONE, FAILED), f"{mebibytes} MiB: {run.stderr.decode(errors='replace')}")
            ends.add(run.returncode)
        self.assertIn(FAILED, ends)

    def test_on_is_never_off(self) -> None:
        self.write("src/a.png", b"\x89PNG\r\n\x1a\nno image")
        words = ["convert", self.source, self.set, "--shared-model", "on", "--on-error", "skip"]
        said = self.l3(*words, code=FAILED).stderr.decode()
        self.assertIn("none of the images to make it from can be read", said)
        said = self.l3(*words, "--method", "fast", code=USAGE).stderr.decode()
        self.assertIn("--shared-model on is not for --method fast", said)


if __name__ == "__main__":
    main()
