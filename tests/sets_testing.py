"""Shared by the tests of data sets: sources, comparison of folders, PNG samples, and a conversion that is paused."""

from __future__ import annotations

import array
import fcntl
import io
import json
import os
import struct
import subprocess
import tarfile
import termios
import threading
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from command_testing import CHANNELS, DONE, CommandTest, l3_command, png

Members = Iterable[tuple[str, bytes]]
WORK = ".l3-convert"


def rows_of_png(data: bytes) -> tuple[tuple[int, int, int, int], bytes]:
    """Width, height, depth and colour type, and the packed samples without filters. No interlacing."""
    width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    if interlaced:
        raise ValueError("interlaced")
    packed, at = b"", 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        if data[at + 4:at + 8] == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    raw = zlib.decompress(packed)
    row_bytes = (width * depth * CHANNELS[colour] + 7) // 8
    back = max(1, depth * CHANNELS[colour] // 8)
    above, samples = bytearray(row_bytes), b""
    for y in range(height):
        start = y * (row_bytes + 1)
        kind, row = raw[start], bytearray(raw[start + 1:start + 1 + row_bytes])
        for x in range(row_bytes if kind else 0):
            a, b, c = row[x - back] if x >= back else 0, above[x], above[x - back] if x >= back else 0
            if kind == 4:
                nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            else:
                nearest = (0, a, b, (a + b) // 2)[kind]
            row[x] = (row[x] + nearest) & 0xFF
        samples += row
        above = row
    return (width, height, depth, colour), samples


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_tar(path: Path, members: Members, form: int = tarfile.USTAR_FORMAT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=form) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def is_sanitized() -> bool:
    """Whether the command was built with a sanitizer, which takes memory and threads of its own."""
    program = Path(l3_command()).read_bytes()
    return any(name in program for name in (b"__asan_init", b"__tsan_init", b"__msan_init"))


class SetTest(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.source, self.set = self.folder / "src", self.folder / "set"

    def images(self, count: int, first: int = 0, side: int = 12) -> None:
        for i in range(first, first + count):
            self.write(f"src/{i:04}.png", png(side, side, seed=i))

    def convert(self, *words: object, code: int = DONE, to: Path | None = None,
                **options: Any) -> subprocess.CompletedProcess[bytes]:
        """Of self.source, to self.set where nothing else is said."""
        return self.l3("convert", self.source, to or self.set, "--method", "fast", *words, code=code, **options)

    def refused(self, *words: object, to: Path | None = None, **options: Any) -> str:
        """What a conversion says that must fail."""
        return self.convert(*words, code=1, to=to, **options).stderr.decode(errors="replace")

    def entries(self, of: Path | None = None) -> list[dict[str, Any]]:
        lines = self.l3("ls", "--json", of or self.set).stdout.decode().splitlines()
        return [json.loads(line) for line in lines]

    def names(self, of: Path | None = None) -> list[str]:
        return [str(entry["name"]) for entry in self.entries(of)]

    def what_is_in(self, of: Path | None = None) -> list[dict[str, Any]]:
        """Entries without where they are."""
        where = ("shard", "offset")
        return [{key: value for key, value in entry.items() if key not in where} for entry in self.entries(of)]

    def classes(self, of: Path | None = None) -> list[str]:
        return json.loads(((of or self.set) / "index.json").read_text())["classes"]

    def assert_whole(self, of: Path | None = None) -> None:
        """It verifies, and nothing unfinished is left."""
        folder = of or self.set
        self.l3("verify", folder)
        self.assertEqual([path.name for path in folder.iterdir() if path.name.startswith(".")], [])

    def assert_one_line(self, said: str, pattern: str) -> None:
        self.assertRegex(said, rf"\Al3: [^\n]*{pattern}[^\n]*\n\Z")


class Held:
    """A conversion that stands still in its middle, because nobody reads what it says of its corrupt files.

    Its source gets good images, corrupt ones with long names, and good ones again, more than are read ahead.
    """

    GOOD_BEFORE, CORRUPT, GOOD_AFTER = 6, 40, 110

    def __init__(self, test: SetTest, *words: object) -> None:
        for i in range(self.GOOD_BEFORE):
            test.write(f"src/a{i:03}.png", png(16, 16, seed=i, after=[(b"tEXt", b"k\0v")]))
        for i in range(self.CORRUPT):
            test.write(f"src/m{i:03}{'-' * 190}.png", b"corrupt")
        for i in range(self.GOOD_AFTER):
            test.write(f"src/z{i:03}.png", png(8, 8, seed=i))
        self.options = ("--on-error", "skip", "-j1", *words)
        self.read_end, write_end = os.pipe()
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
        command = [l3_command(), "convert", test.source, test.set, "--method", "fast", *self.options]
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=write_end)
        os.close(write_end)
        test.addCleanup(self.end)
        deadline = time.monotonic() + 50
        while self.waiting() < 3400:
            test.assertIsNone(self.process.poll(), "the conversion waits")
            test.assertLess(time.monotonic(), deadline)
            time.sleep(0.005)

    def waiting(self) -> int:
        """Bytes that were said and not read."""
        count = array.array("i", [0])
        fcntl.ioctl(self.read_end, termios.FIONREAD, count)
        return count[0]

    def release(self) -> tuple[int, str]:
        """Lets it go on; its exit status, and all that it says."""
        said: list[bytes] = []

        def read() -> None:
            while block := os.read(self.read_end, 65536):
                said.append(block)

        reader = threading.Thread(target=read)
        reader.start()
        code = self.process.wait(60)
        reader.join()
        return code, b"".join(said).decode()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.read_end)
