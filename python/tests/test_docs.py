"""The Python of README.md and docs/, as written there. tests/docs_blocks.py describes how blocks are marked."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import operator
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

import l3
import numpy as np
from support import L3_COMMAND, NEEDS_COMMAND, Folder, child_environment, convert, picture, write_png

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import docs_blocks  # noqa: E402

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]


def blocks_that_run(page: Path) -> list[docs_blocks.Block]:
    """Without those that need a module that is not installed."""
    return [block for block in docs_blocks.blocks_of(page, "python") if block.flag != "norun"
            and (not block.flag or importlib.util.find_spec(block.flag.removeprefix("needs=")))]


def of_l3(name: str) -> Any:
    """What `l3.` and this name mean, also in a module such as l3.torch. None if the module needs what is not there."""
    module, _, rest = name.partition(".")
    if module in ("pillow", "stores", "torch"):
        try:
            found = importlib.import_module(f"l3.{module}")
        except ImportError:
            return None
        return operator.attrgetter(rest)(found) if rest else found
    return operator.attrgetter(name)(l3)


class Written(unittest.TestCase):
    def test_syntax_and_names(self) -> None:
        """Also of what does not run here: attributes of l3 exist, and its functions have these arguments."""
        for page in PAGES:
            for block in docs_blocks.blocks_of(page, "python"):
                with self.subTest(block.place):
                    for node in ast.walk(ast.parse(block.text)):
                        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "l3":
                            of_l3(node.attr)  # raises AttributeError if there is no such name
                        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("l3."):
                            function = of_l3(ast.unparse(node.func)[3:])
                            if function is None:
                                continue
                            known = inspect.signature(function).parameters
                            if any(one.kind is one.VAR_KEYWORD for one in known.values()):
                                continue
                            named = {word.arg for word in node.keywords if word.arg is not None}
                            self.assertLessEqual(named, set(known), ast.unparse(node))


@unittest.skipUnless(L3_COMMAND, NEEDS_COMMAND)
class Pages(Folder):
    """Each page's blocks are one program. It finds images and data sets in its folder."""

    def prepare(self) -> None:
        for name in ("photo", "a", "b"):
            l3.encode(picture(len(name), 480, 640), self.folder / f"{name}.l3", method="fast")
        palette = np.arange(24, dtype=np.uint8).reshape(8, 3) * 10
        l3.encode(picture(1, 480, 640, channels=1) // 32, self.folder / "labels.l3", method="fast", palette=palette)
        (self.folder / "folder/cats").mkdir(parents=True)
        l3.encode(picture(1), self.folder / "folder/cats/1.l3")
        for i in range(12):
            write_png(self.folder / "pngs" / ("dogs" if i % 2 else "cats") / f"{i:02}.png", picture(i, 144, 160))
        convert(self.folder / "pngs", self.folder / "set", "--method", "fast")
        (self.folder / "training").symlink_to("set")
        for i in range(4):
            write_png(self.folder / "both/images" / f"{i}.png", picture(i, 96, 96))
            write_png(self.folder / "both/labels" / f"{i}.png", picture(i, 96, 96, channels=1) // 32, palette)
        convert(self.folder / "both", self.folder / "pairs", "--pair", "image=images/{}.png", "--pair",
                "labels=labels/{}.png", "--method", "fast")

    def run_text(self, text: str) -> str:
        done = subprocess.run([sys.executable, "-c", text], cwd=self.folder, env=child_environment(),
                              text=True, capture_output=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_docs(self) -> None:
        self.prepare()
        for page in PAGES[1:]:
            blocks = blocks_that_run(page)
            if blocks:
                with self.subTest(page.name):
                    # Each block at its line, so that an error names the line.
                    text = ""
                    for block in blocks:
                        text += "\n" * (block.line - text.count("\n")) + block.text
                    self.run_text(text)

    def test_readme(self) -> None:
        """One short example, over what ./run demo makes."""
        blocks = blocks_that_run(ROOT / "README.md")
        self.assertEqual(len(blocks), 1)
        self.assertLessEqual(len(blocks[0].text.splitlines()), 10)
        demo = self.folder / "build/demo"
        subprocess.run([sys.executable, ROOT / "bench/draw_demo.py", demo / "png"], check=True, env=os.environ,
                       stdout=subprocess.DEVNULL)
        convert(demo / "png", demo / "set", "--method", "fast")
        l3.encode(picture(1, 480, 640), self.folder / "photo.l3", method="fast")
        said = self.run_text(blocks[0].text)
        self.assertNotEqual(said, "")
