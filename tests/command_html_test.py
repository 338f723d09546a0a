#!/usr/bin/env python3
"""Tests `l3 info --html`: what the page says, its pictures, how tiles are stored, and that names do no harm.

Usage: command_html_test.py --l3 COMMAND [names of tests, or options of unittest]
"""

from __future__ import annotations

import base64
import random
import re
import struct
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser

sys.dont_write_bytecode = True
from command_testing import DONE, FAILED, USAGE, flip, main, png, png_chunks
from sets_testing import SetTest, rows_of_png

EVIL = "<script>alert('1')</script> & \"x\".png".replace("/", "")
KINDS = ("constant", "raw", "fast", "dense, own model", "dense, named model", "dense, default model")
CONSTANT, RAW, FAST, OWN, NAMED, DEFAULT = range(6)
CONTENTLESS = {"meta", "img", "input", "!doctype"}


def exif(orientation: int) -> tuple[bytes, bytes]:
    entry = struct.pack(">HHIHH", 0x112, 3, 1, orientation, 0)
    return b"eXIf", b"MM\0*" + struct.pack(">IH", 8, 1) + entry + bytes(4)


def flat(width: int, height: int, value: int) -> list[bytes]:
    return [bytes([value]) * width * 3] * height


def noise(width: int, height: int) -> list[bytes]:
    source = random.Random(5)
    return [source.randbytes(width * 3) for _ in range(height)]


@dataclass
class Picture:
    width: int
    height: int
    pixels: list[tuple[int, ...]]
    palette: list[tuple[int, ...]]
    opacity: list[int]

    def at(self, x: float, y: float) -> tuple[int, ...]:
        """The pixel at these parts of width and height."""
        return self.pixels[int(y * self.height) * self.width + int(x * self.width)]

    @staticmethod
    def of(data: bytes) -> Picture:
        (width, height, depth, colour), samples = rows_of_png(data)
        assert depth == 8 and colour in (2, 3), (depth, colour)
        step = 3 if colour == 2 else 1
        chunks = dict(png_chunks(data))
        palette = chunks.get(b"PLTE", b"")
        return Picture(width, height, [tuple(samples[i:i + step]) for i in range(0, len(samples), step)],
                       [tuple(palette[i:i + 3]) for i in range(0, len(palette), 3)], list(chunks.get(b"tRNS", b"")))


@dataclass
class Card:
    lines: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    alt: str = ""
    title: str = ""
    wrong: str = ""

    @property
    def name(self) -> str:
        return self.lines[0]

    def kind(self, x: float, y: float) -> int:
        """Of the tile that the page shows there, without lines."""
        (index,) = self.pictures[1].at(x, y)
        return index % len(KINDS)


class Page(HTMLParser):
    """The page. Fails where something is not closed, or comes from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cards: list[Card] = []
        self.text: dict[str, list[str]] = {}
        self.is_wrong = False
        self.feed(text)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        assert tag not in ("script", "link", "iframe", "object"), tag
        assert not any(name.startswith("on") or name in ("href", "srcset") for name in named), named
        if tag not in CONTENTLESS:
            self.open.append(tag)
        if tag == "figure":
            self.cards.append(Card())
        if tag == "b":
            self.cards[-1].title = named["title"] or ""
        self.is_wrong = named.get("class") == "wrong"
        if tag != "img":
            return
        head = "data:image/png;base64,"
        source = named["src"] or ""
        assert source.startswith(head), source[:40]
        card = self.cards[-1]
        card.pictures.append(Picture.of(base64.b64decode(source[len(head):], validate=True)))
        card.sizes.append((int(named["width"] or 0), int(named["height"] or 0)))
        card.alt = card.alt or named["alt"] or ""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if not data.strip() or not self.open:
            return
        self.text.setdefault(self.open[-1], []).append(data)
        if "figcaption" in self.open:
            if self.is_wrong:
                self.cards[-1].wrong = data
            self.cards[-1].lines.append(data)


class Pages(SetTest):
    def page(self, of: object, *words: object, code: int = DONE) -> Page:
        out = self.folder / "page.html"
        said = self.l3("info", "--html", out, of, *words, code=code).stdout.decode()
        self.assertRegex(said, rf"\A{re.escape(str(out))}: \d+ of \d+ images?, [\d.]+ (bytes|kB|MB)\n\Z")
        self.assert_no_temporaries()
        text = out.read_text()
        self.assertNotRegex(re.sub(r"base64,[^\"]*", "", text), r"https?:|url\(|@import")
        return Page(text)

    def test_what_it_says_of_a_set(self) -> None:
        self.write("src/cats/a.png", png(40, 30, rows=flat(40, 30, 200)))
        self.write(f"src/dogs & cows/{EVIL}", png(300, 200, depth=8, colour=0))
        self.convert()
        sizes = [entry["size"] for entry in self.entries()]
        page = self.page(self.set)
        cat, dog = page.cards
        self.assertEqual(page.text["h1"], [str(self.set)])
        bits = 8 * sum(sizes) / (40 * 30 + 300 * 200)
        self.assertRegex(page.text["p"][0], rf"\A2 images, .*, {bits:.2f} bits a pixel\.\Z")
        self.assertEqual(cat.lines, ["cats/a.png", "label cats", "40 x 30, RGB, 8 bits", f"{sizes[0]} bytes",
                                     f"{8 * sizes[0] / 1200:.2f} bits a pixel", "tiles: 1 constant"])
        name = f"dogs & cows/{EVIL}"
        self.assertEqual((dog.name, dog.title, dog.alt), (name, name, name))
        self.assertEqual(dog.lines[1:4], ["label dogs & cows", "300 x 200, gray, 8 bits", f"{sizes[1]} bytes"])
        # A small image is enlarged by a whole factor, a large one made smaller.
        self.assertEqual(cat.sizes, [(160, 120)] * 2)
        self.assertEqual(set(cat.pictures[0].pixels), {(200, 200, 200)})
        self.assertEqual((cat.pictures[0].width, cat.pictures[0].height), (40, 30))
        self.assertEqual(dog.sizes, [(192, 128)] * 2)
        self.assertEqual([(each.width, each.height) for each in dog.pictures], [(192, 128)] * 2)

    def test_tiles_of_all_methods(self) -> None:
        # The left tile is constant, the middle one cannot be compressed, the right one has a little noise.
        rows = [left + middle + bytes(40 + b % 4 for b in right) for left, middle, right in
                zip(flat(64, 64, 9), noise(64, 64), noise(64, 64), strict=True)]
        options = ("--tile", 64)
        whole = png(192, 64, rows=rows)
        images = [self.encoded("fast.png", whole, *options, "--method", "fast"),
                  self.encoded("own.png", whole, *options, "--method", "dense")]
        self.assertEqual(self.info(images[1])["model_origin"], "own")
        for image, kind in zip(images, (FAST, OWN), strict=True):
            with self.subTest(image.name):
                page = self.page(image)
                (card,) = page.cards
                self.assertEqual([card.kind(x, 0.5) for x in (0.16, 0.5, 0.84)], [CONSTANT, RAW, kind])
                self.assertEqual(card.lines[-1], f"tiles: 1 constant; 1 raw; 1 {KINDS[kind]}")
                tiles = card.pictures[1]
                # The ends of tiles have lines of the same colour, but they are opaque.
                self.assertEqual(tiles.palette[:6], tiles.palette[6:])
                self.assertEqual(tiles.opacity[:6], [120] * 6)
                self.assertTrue(all(opacity == 255 for opacity in tiles.opacity[6:]))
                lines = [x for x in range(192) if tiles.pixels[32 * 192 + x][0] >= 6]
                self.assertEqual(lines, [0, 64, 128, 191])
                self.assertEqual(page.text["span"], ["constant", "raw", KINDS[kind]])
        (card,) = self.page(self.encoded("small.png", png(16, 16), "--method", "dense")).cards
        self.assertEqual(card.kind(0.5, 0.5), DEFAULT)

    def test_named_models(self) -> None:
        for i in range(6):
            self.write(f"src/{i}.png", png(40, 30, seed=i))
        model = self.folder / "shared.l3model"
        self.l3("train", self.source, model, "--effort", 1)
        files = self.folder / "files"
        self.l3("convert", "--files", "--method", "dense", "--model", model, self.source, files)
        name = self.info(files / "1.l3")["model_name"]
        for card in self.page(files, "--model", model).cards:
            self.assertEqual((card.kind(0.5, 0.5), card.wrong, card.lines[-1]), (NAMED, "", f"model {name}"))
        for card in self.page(files, code=FAILED).cards:
            self.assertIn("needs a model that was not supplied", card.wrong)
            self.assertEqual(card.pictures, [])
        # A data set has its models.
        self.l3("convert", "--method", "dense", "--model", model, self.source, self.set)
        for card in self.page(self.set).cards:
            self.assertEqual((card.kind(0.5, 0.5), card.wrong), (NAMED, ""))

    def test_turned_images(self) -> None:
        # A white and constant corner at the upper left.
        rows = [b"\xff" * 96 + row[96:] if y < 32 else row for y, row in enumerate(noise(96, 64))]
        corners = {1: (0, 0), 2: (1, 0), 3: (1, 1), 4: (0, 1), 5: (0, 0), 6: (1, 0), 7: (1, 1), 8: (0, 1)}
        for orientation, corner in corners.items():
            with self.subTest(orientation):
                file = self.encoded(f"{orientation}.png", png(96, 64, rows=rows, before=[exif(orientation)]),
                                    "--tile", 32)
                (card,) = self.page(file).cards
                self.assertEqual(card.sizes, [(192, 128) if orientation < 5 else (128, 192)] * 2)
                for x in (0, 1):
                    for y in (0, 1):
                        expected = CONSTANT if (x, y) == corner else RAW
                        self.assertEqual(card.kind(0.1 + 0.8 * x, 0.1 + 0.8 * y), expected, (x, y))
                self.assertEqual(card.pictures[0].at(0.1 + 0.8 * corner[0], 0.1 + 0.8 * corner[1]), (255, 255, 255))

    def test_dark_images_are_brightened(self) -> None:
        depth = [b"".join(struct.pack(">H", 500 + x if x else 0) for x in range(101))] * 10
        labels = [bytes(x // 10 for x in range(100))] * 10
        bright = [bytes(100 + x for x in range(100))] * 10
        cases = [(png(101, 10, 16, 0, rows=depth), True, 0, 255), (png(100, 10, 8, 0, rows=labels), True, 0, 255),
                 (png(100, 10, 8, 0, rows=bright), False, 100, 199),
                 (png(10, 10, 8, 0, rows=[bytes(10)] * 10), True, 0, 0)]
        for number, (image, brightened, least, greatest) in enumerate(cases):
            with self.subTest(number):
                (card,) = self.page(self.encoded(f"{number}.png", image)).cards
                self.assertEqual(card.lines[1].endswith(", brightened"), brightened)
                values = [pixel[0] for pixel in card.pictures[0].pixels]
                self.assertEqual((min(values), max(values)), (least, greatest))

    def test_groups_and_what_is_left_out(self) -> None:
        for i in range(20):
            self.write(f"src/{i:02}.jpg.png", png(12, 12, seed=i))
            self.write(f"src/{i:02}_mask.png", png(12, 12, 8, 0, seed=i))
            self.write(f"src/{i:02}.txt", b"text")
        self.convert("--pair", "image={}.jpg.png", "--pair", "mask={}_mask.png", "--pair", "text={}.txt")
        page = self.page(self.set, "--images", 8)
        self.assertEqual([card.name for card in page.cards],
                         [f"{i:02}{rest}" for i in (0, 5, 10, 15) for rest in (".jpg.png", "_mask.png")])
        self.assertEqual([card.lines[1] for card in page.cards[2:4]], ["group 5 (image)", "group 5 (mask)"])
        said = page.text["p"][0]
        self.assertIn("8 images, ", said)
        self.assertIn(" 32 of 40 images were left out", said)
        self.assertIn(" 20 samples are not an image.", said)
        self.assertEqual(len(self.page(self.set, "--images", 3).cards), 2)
        self.assertEqual(len(self.page(self.set, "--images", 1).cards), 1)
        whole = self.page(self.set)
        self.assertEqual(len(whole.cards), 40)
        self.assertNotIn("left out", whole.text["p"][0])

    def test_damage_is_shown(self) -> None:
        for i in range(3):
            self.encoded(f"files/{i}.png", png(40, 30, seed=i))
        damaged = self.folder / "files/1.l3"
        flip(damaged, damaged.stat().st_size - 8)
        for path in (self.folder / "files").glob("*.png"):
            path.unlink()
        self.write("files/3.l3", b"no L3 file")
        cards = self.page(self.folder / "files", code=FAILED).cards
        self.assertEqual([(card.name, len(card.pictures)) for card in cards],
                         [("0.l3", 2), ("1.l3", 0), ("2.l3", 2), ("3.l3", 0)])
        self.assertIn("check", cards[1].wrong)
        self.assertIn("not an L3 file", cards[3].wrong)
        self.assertEqual(cards[0].wrong, "")

    def test_pipes(self) -> None:
        file = self.encoded("a.png", png(40, 30))
        out = self.l3("info", "--html", "-", "-", input=file.read_bytes()).stdout.decode()
        (card,) = Page(out).cards
        self.assertEqual(card.name, "stdin")

    def test_what_is_refused(self) -> None:
        file, page = self.encoded("a.png", png(40, 30)), self.folder / "page.html"
        for words in (["--html", page, "--json"], ["--html", page, "--sizes"], ["--images", 3],
                      ["--html", page, "--images", 0], ["--html", file]):
            self.l3("info", file, *words, code=USAGE)
        empty = self.folder / "empty"
        empty.mkdir()
        said = self.l3("info", "--html", page, empty, code=FAILED).stderr.decode()
        self.assertIn("neither a data set nor a folder of .l3 files", said)
        self.l3("info", "--html", page, self.folder / "absent.l3", code=FAILED)
        self.l3("info", "--html", page, self.write("b.l3", b"no L3 file"), code=FAILED)
        self.l3("info", "--html", self.folder / "absent/page.html", file, code=FAILED)
        self.assertTrue(file.read_bytes().startswith(b"\x8bL3"))
        self.assertFalse(page.exists())


if __name__ == "__main__":
    main()
