#!/usr/bin/env python3
"""Tests that folders include, import and build only what docs/inside.md lets them use.

Usage: layers_test.py
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
import unittest
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Room:
    """A folder. Its files may include each other, and the public headers of the rooms that it uses."""

    folder: str
    public: str = ""  # the folder of the headers for others
    private: tuple[str, ...] = ()  # where its own files look for headers, besides their own folder
    uses: tuple[str, ...] = ()


# A folder inside a room comes before the room. tests/ and examples/ may use everything, and nobody may use them.
ROOMS = (
    Room("base", "base/include"),
    Room("codec", "codec/include", ("codec/src",)),
    Room("formats", "formats/include", uses=("base",)),
    Room("bridge", "bridge/include", uses=("base", "codec", "formats")),
    Room("kernels", "kernels/include", ("codec/src",), uses=("base", "codec")),  # it compiles templates of codec/src
    Room("loader/cuda", uses=("base", "codec", "kernels", "loader")),
    Room("loader/net", uses=("base", "codec", "loader")),
    Room("loader/writer", uses=("base", "codec", "loader")),
    Room("loader", "loader/include", uses=("base", "codec")),
    Room("python", uses=("base", "bridge", "codec", "formats", "loader")),
    Room("extensions/nvimgcodec", uses=("base", "codec", "kernels")),
    Room("bench/paper", "bench/paper"),
    Room("bench/micro", uses=("codec",)),
    Room("bench", "bench/include", ("bench", "bench/codecs", "bench/report"),
         uses=("base", "bench/paper", "bridge", "codec", "formats", "kernels", "loader")),
    Room("tools", uses=("base", "bench", "bridge", "codec", "formats", "kernels", "loader")),
)
# The only users of a room, where its name in Room.uses says too much.
ONLY = {("tools", "bench"): r"tools/(bench|layouts|stalls|training)\w*\.(cpp|h)",
        ("extensions/nvimgcodec", "kernels"): r"extensions/nvimgcodec/src/cuda_decoder\.cpp",
        ("tools", "kernels"): r"tools/cuda_decoder\.cpp", ("bench", "kernels"): r"bench/(gpu\.cpp|gpu/.*)"}
# Folders of codec/src: each may include itself and those before it.
LAYERS = ("api", "container", "models", "engine", "targets", "decode", "encode")
GENERATED = {"default_models.inc"}
USES_TESTS = ("bench/cache.py", "bench/far.py")  # they measure behind the servers of the tests
SOURCES = {".c", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".in"}


@dataclass
class Tree:
    root: Path
    faults: list[str] = field(default_factory=list)
    modules: dict[str, list[str]] = field(default_factory=dict)  # where each name of a Python file is

    def check(self) -> list[str]:
        for folder in {room.folder.split("/")[0] for room in ROOMS} | {"examples", "spec", "tests"}:
            for path in sorted((self.root / folder).rglob("*.py")):
                if (path.parent / "__init__.py").exists():
                    continue  # a module of a package has another name: `import torch` is not l3.torch
                self.modules.setdefault(path.stem, []).append(self.name(path))
        for room in ROOMS:
            for path in self.files_of(room):
                if path.suffix in SOURCES:
                    self.check_includes(room, path)
                if path.name == "CMakeLists.txt" or path.suffix == ".cmake":
                    self.check_build(room, path)
                if path.suffix == ".py":
                    self.check_imports(room, path)
        self.check_package()
        return self.faults

    def files_of(self, room: Room) -> Iterator[Path]:
        for path in sorted((self.root / room.folder).rglob("*")):
            if path.is_file() and room_of(self.name(path)) == room:
                yield path

    def name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def fault(self, path: Path, what: str) -> None:
        self.faults.append(f"{self.name(path)}: {what}")

    # ------------------------------------------------------------------------------------------------- C++ and CUDA

    def check_includes(self, room: Room, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        for kind, header in re.findall(r'^\s*#\s*include\s*(["<])([^">]+)[">]', text, re.MULTILINE):
            found = self.resolve(room, path, header)
            if found is None:
                if kind == '"' and header not in GENERATED:
                    self.fault(path, f"includes {header}, which {room.folder} may not use or which does not exist")
                continue
            self.check_use(room, path, self.name(found))
            above = layer_of(self.name(path)), layer_of(self.name(found))
            if None not in above and above[0] < above[1]:
                self.fault(path, f"includes {header}, which is in a higher layer")

    def resolve(self, room: Room, path: Path, header: str) -> Path | None:
        public = [other.public for other in ROOMS if other.public and (other == room or other.folder in room.uses)]
        for folder in (path.parent, *(self.root / name for name in (*room.private, *public))):
            if (folder / header).is_file():
                return (folder / header).resolve()
        return None

    def check_use(self, room: Room, path: Path, used: str) -> None:
        """Checks that the room may use this file of the tree."""
        other = room_of(used)
        if other == room:
            return
        open_to_it = (*room.private, *([other.public] if other and other.folder in room.uses else []))
        if other is None or not any((used + "/").startswith(folder + "/") for folder in open_to_it):
            self.fault(path, f"uses {used}, but {room.folder} may not")
            return
        only = ONLY.get((room.folder, other.folder))
        if only and path.suffix in SOURCES and not re.fullmatch(only, self.name(path)):
            self.fault(path, f"uses {used}, but only {only} may")

    # -------------------------------------------------------------------------------------------------------- builds

    def check_build(self, room: Room, path: Path) -> None:
        text = re.sub(r"#[^\n]*", "", path.read_text(encoding="utf-8"))
        for used in re.findall(r"\$\{PROJECT_SOURCE_DIR\}/([\w./-]+)", text):
            if not used.startswith("spec/"):
                self.check_use(room, path, used)
        if re.search(r"(?<![\w.])\.\./", text):
            self.fault(path, "names a folder above its own")

    # -------------------------------------------------------------------------------------------------------- Python

    def check_imports(self, room: Room, path: Path) -> None:
        """Checks that a program imports no module of another folder. Modules of the tree are found by their names."""
        if self.name(path).startswith("python/tests/") or self.name(path) in USES_TESTS:
            return
        for name in imports(path):
            known = self.modules.get(name.split(".")[0], [])
            if known and not any(room_of(found) == room for found in known):
                self.fault(path, f"imports {known[0]}")

    def check_package(self) -> None:
        """Checks that no module of the package imports itself through others, not even in a function."""
        folder = self.root / "python" / "l3"
        graph = {path.stem: {name.rsplit(".", 1)[-1] for name in imports(path, package="l3")}
                 for path in sorted(folder.glob("*.py"))}
        below: set[str] = set()
        while left := set(graph) - below:
            free = {name for name in left if not (graph[name] & set(graph)) - below}
            if not free:
                self.faults.append("python/l3: modules that import each other: " + ", ".join(sorted(left)))
                return
            below |= free


def room_of(name: str) -> Room | None:
    return next((room for room in ROOMS if name.startswith(room.folder + "/")), None)


def layer_of(name: str) -> int | None:
    found = re.match(r"codec/src/(\w+)/", name)
    return LAYERS.index(found[1]) if found else None


def imports(path: Path, package: str = "") -> set[str]:
    """The modules that a file imports anywhere; with a package only those of the package."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names if not package or name.name.split(".")[0] == package}
        elif isinstance(node, ast.ImportFrom):
            inside = node.level > 0 or (node.module or "").split(".")[0] == package
            if package and inside:
                whole = node.module in (None, package)
                found |= {name.name for name in node.names} if whole else {str(node.module)}
            elif not package and node.level == 0:
                found.add(str(node.module))
    return {"__init__" if name == package and package else name for name in found}


class Layers(unittest.TestCase):
    def test_the_tree(self) -> None:
        self.assertEqual(Tree(ROOT).check(), [])
        for room in ROOMS:
            self.assertTrue(any(Tree(ROOT).files_of(room)), f"{room.folder}: no files")
        self.assertEqual({path.name for path in (ROOT / "codec/src").iterdir() if path.is_dir()}, set(LAYERS))

    def test_what_is_found(self) -> None:
        for name, text in {
            "codec/src/engine/a.h": '#include "decode/b.h"\n',
            "base/src/a.cpp": '#include "l3/l3.h"\n',
            "bench/a.cpp": '#include "../tools/a.h"\n',
            "loader/writer/a.cpp": '#include "../src/b.h"\n',
            "python/src/a.cpp": '#include "b.h"\n',
            "tools/a.cpp": '#include "bench/a.h"\n',
            "bench/gpu/CMakeLists.txt": "add_executable(a ${PROJECT_SOURCE_DIR}/tools/a.cpp)\n",
            "bench/a.py": "import helper\n",
            "python/l3/_a.py": "def f():\n    from . import _b\n",
        }.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                root = Path(folder)
                others = {"codec/src/decode/b.h": "", "codec/include/l3/l3.h": "", "loader/src/b.h": "",
                          "tools/a.h": "", "bench/include/bench/a.h": "", "tests/helper.py": "",
                          "python/l3/_b.py": "import l3._a\n"}
                for path, contents in {**others, name: text}.items():
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (root / path).write_text(contents)
                faults = Tree(root.resolve()).check()
                self.assertEqual(len(faults), 1, faults)


if __name__ == "__main__":
    sys.exit(unittest.main())
