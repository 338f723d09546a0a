#!/usr/bin/env python3
"""The fenced blocks of the Markdown pages. Tests compile or run every block; readers can copy them.

    docs_blocks.py PAGE NAME    print the block of that name, such as crop.cpp of docs/cpp.md
    docs_blocks.py PAGE         list the names of all named blocks of the page

The words after the three backticks say what a block is:

    cpp NAME.cpp, c NAME.c    a complete program. tests/install_test.sh compiles it against the installed library
    cmake NAME                a file for CMake, which the same test uses
    python                    run by python/tests/test_docs.py, after the earlier blocks of its page
    python needs=MODULE       the same, where that module is installed; otherwise only checked
    python norun              not run: its syntax, and the names and arguments of l3, are checked
    sh                        run by tests/docs_test.py in a scratch folder, after the earlier blocks of its page
    sh norun                  not run: commands, options and paths are checked
    text                      output, or a picture of a layout. Not run
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What may follow the kind in an info string: a name, or one of these words.
_NAMES = {"cpp": r"[\w-]+\.cpp", "c": r"[\w-]+\.c", "cmake": r"[\w.-]+"}
_WORDS = {"python": r"norun|needs=\w+", "sh": r"norun", "text": r"(?!)"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int  # of its first fence, counted from 1
    info: str  # the words after the backticks
    text: str

    @property
    def kind(self) -> str:
        return self.info.split(" ")[0]

    @property
    def name(self) -> str:
        """Of a program or a file for CMake; of other blocks empty."""
        return self.info.partition(" ")[2] if self.kind in _NAMES else ""

    @property
    def flag(self) -> str:
        """'norun', 'needs=...' or nothing."""
        return self.info.partition(" ")[2] if self.kind in _WORDS else ""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def fault(self) -> str:
        """What is wrong with the info string, or nothing."""
        kind, _, rest = self.info.partition(" ")
        if kind in _NAMES:
            return "" if re.fullmatch(_NAMES[kind], rest) else f"a block of {kind} needs a name: {self.info!r}"
        if kind in _WORDS:
            return "" if not rest or re.fullmatch(_WORDS[kind], rest) else f"unknown words: {self.info!r}"
        return f"an unknown kind of block: {self.info!r}"


def split(page: Path) -> tuple[list[tuple[int, str]], list[Block]]:
    """A page's lines outside of blocks, with their numbers from 1, and its blocks."""
    prose: list[tuple[int, str]] = []
    blocks: list[Block] = []
    inside: list[str] = []
    fence, begin, info = "", 0, ""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if not fence:
            found = re.match(r" {0,3}(`{3,}|~{3,})(.*)$", line)
            if found:
                fence, begin, info, inside = found[1], number, found[2].strip(), []
            else:
                prose.append((number, line))
        elif line.strip() == fence:
            blocks.append(Block(page, begin, info, "".join(each + "\n" for each in inside)))
            fence = ""
        else:
            inside.append(line)
    if fence:
        raise ValueError(f"{page}:{begin}: the block has no end")
    return prose, blocks


def blocks_of(page: Path, kind: str = "") -> Iterator[Block]:
    """The blocks of a page, or those of one kind."""
    return (block for block in split(page)[1] if kind in ("", block.kind))


def main() -> int:
    if not 2 <= len(sys.argv) <= 3:
        print("usage: docs_blocks.py PAGE [NAME]", file=sys.stderr)
        return 2
    page = Path(sys.argv[1]).resolve()
    named = [block for block in blocks_of(page) if block.name]
    if len(sys.argv) == 2:
        print("".join(f"{block.name}\n" for block in named), end="")
        return 0
    found = [block for block in named if block.name == sys.argv[2]]
    if len(found) != 1:
        print(f"docs_blocks: {page} has {len(found)} blocks of the name {sys.argv[2]}", file=sys.stderr)
        return 1
    print(found[0].text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
