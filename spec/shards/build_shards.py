#!/usr/bin/env python3
"""Builds the shards and data sets of recipes.py: those that a reader must take, and those that it must refuse.

    build_shards.py OUT             OUT/NAME of every recipe but the sparse ones, and OUT/MANIFEST.txt
    build_shards.py --sparse OUT    the sparse ones alone: files of up to 64 GiB that are nearly all holes
    build_shards.py --manifest      MANIFEST.txt to stdout

Follows spec/shard.md and uses nothing but Python's standard library. README.md beside this file says more.
"""

from __future__ import annotations

import argparse
import hashlib
import struct
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEAD_SIGNATURE = b"\x8bL3S\r\n\x1a\n"
FOOTER_SIGNATURE = b"\x8bL3E\r\n\x1a\n"
FIRST_SAMPLE = 4096
IMAGE, OTHER_BYTES = range(2)
NO_MODEL = 65535
NO_LABEL = 0xFFFFFFFF

# Where fields stand: name -> (offset, width in bytes).
HEAD = {"signature": (0, 8), "version": (8, 2), "reserved": (10, 54)}
FOOTER = {
    "signature": (0, 8), "version": (8, 2), "models": (10, 2), "roles": (12, 2), "reserved": (14, 2), "begin": (16, 8),
    "size": (24, 8), "entries": (32, 4), "groups": (36, 4), "texts": (40, 4), "index_check": (44, 4),
    "reserved_end": (48, 12), "footer_check": (60, 4),
}
ENTRY = {
    "begin": (0, 8), "size": (8, 8), "digest": (16, 16), "check": (32, 4), "width": (36, 4), "height": (40, 4),
    "channels": (44, 2), "bits": (46, 1), "colour": (47, 1), "kind": (48, 1), "reserved": (49, 1), "role": (50, 2),
    "model": (52, 2), "name_length": (54, 2), "name_place": (56, 4), "metadata_place": (60, 4),
    "metadata_length": (64, 4), "label": (68, 4), "group": (72, 4), "reserved_end": (76, 4),
}
ENTRY_SIZE, PLACE_SIZE, FOOTER_SIZE = 80, 8, 64
PLACE = {"place": (0, 4), "length": (4, 4)}


class RecipeError(Exception):
    pass


def pad(n: int) -> int:
    return (n + 63) // 64 * 64


def digest(data: bytes | bytearray) -> bytes:
    return hashlib.sha256(data).digest()[:16]


# ------------------------------------------------------------------------------------------------------- descriptions


@dataclass(frozen=True)
class Zeros:
    """Zero bytes that are a hole of the file; their check and digest are known."""

    size: int
    check: int
    digest: bytes


@dataclass
class Sample:
    name: bytes
    data: bytes | Zeros
    kind: int = IMAGE
    role: int = 0
    model: int = NO_MODEL
    metadata: bytes = b""
    label: int = NO_LABEL
    joins: bool = False  # the group of the sample before


@dataclass
class Shard:
    samples: list[Sample] = field(default_factory=list)
    roles: list[bytes] = field(default_factory=lambda: [b"image"])
    models: list[bytes] = field(default_factory=list)
    unused_texts: bytes = b""  # before all others


# -------------------------------------------------------------------------------------------------------------- files


class File:
    """A shard's bytes and where its fields are; `changes` are lines `FIELD VALUE`.

    Fields are `head.version`, `footer.groups`, `entry.1.width`, `model.0.place`, `role.0.length`, and single bytes or
    more from there on: `name.1.0` of the name of an entry, `metadata.1.0`, `model_bytes.0.8`, `role_name.0.0`,
    `sample.1.0`, `file.4095`. Negative numbers count from the end. A value is a number, `+N` and `-N`, which add,
    `^N`, which flips bits, `=FIELD`, what stands in another field, or `x:HEX`, bytes. Afterwards all checks are made,
    and the digests of other bytes, but for those that are set themselves.

    Besides: `shift.1 64` moves a sample, and what is behind it, by so many bytes; `shift.index 64` the index; `cut N`
    leaves N bytes of the file, `append x:HEX` adds some. `shift.footer 64` puts zero bytes before the footer.
    """

    def __init__(self, shard: Shard, changes: Sequence[str] = ()) -> None:
        lines = [line.split() for line in changes]
        shifts = {name[6:]: int(value) for name, value in lines if name.startswith("shift.")}
        self.samples = [each.data if isinstance(each.data, Zeros) else bytearray(each.data) for each in shard.samples]
        self.kinds = [each.kind for each in shard.samples]
        self.head = bytearray(struct.pack("<8sH54x", HEAD_SIGNATURE, 1)).ljust(FIRST_SAMPLE, b"\0")
        self.begins: list[int] = []
        end = FIRST_SAMPLE
        for i, each in enumerate(shard.samples):
            self.begins.append(pad(end) + shifts.get(str(i), 0))
            end = self.begins[i] + (each.data.size if isinstance(each.data, Zeros) else len(each.data))
        self.begin = pad(end) + shifts.get("index", 0)
        self.before_footer = bytes(shifts.get("footer", 0))
        self.write_index(shard)
        self.file_changes = [(name, value) for name, value in lines if name.startswith("file.")]
        self.ends = [(name, value) for name, value in lines if name in ("cut", "append")]
        set_fields = [(name, value) for name, value in lines
                      if not name.startswith(("file.", "shift.")) and name not in ("cut", "append")]
        self.seal(set_fields)

    def write_index(self, shard: Shard) -> None:
        texts = bytearray(shard.unused_texts)

        def place(text: bytes) -> int:
            at = len(texts)
            texts.extend(text)
            return at if text else 0

        entries, models, roles = bytearray(), bytearray(), bytearray()
        group = -1
        for begin, sample in zip(self.begins, shard.samples, strict=True):
            group += not sample.joins
            size = sample.data.size if isinstance(sample.data, Zeros) else len(sample.data)
            shape = (0, 0, 0, 0, 0)
            own_digest = sample.data.digest if isinstance(sample.data, Zeros) else bytes(16)
            if sample.kind == IMAGE and not isinstance(sample.data, Zeros):
                header = struct.unpack_from("<8s 6x 6x II 4x H x BB 11x 16s", sample.data)
                shape, own_digest = header[1:6], header[6]
            entries += struct.pack(
                "<QQ16sI IIHBB BBHHH IIIIII", begin, size, own_digest, 0, *shape, sample.kind, 0, sample.role,
                sample.model, len(sample.name), place(sample.name), place(sample.metadata), len(sample.metadata),
                sample.label, group, 0)
        for part, named in ((models, shard.models), (roles, shard.roles)):
            known: dict[bytes, int] = {}  # models that are alike share their bytes
            for text in named:
                known[text] = known[text] if text in known else place(text)
                part += struct.pack("<II", known[text], len(text))
        self.counts = len(shard.samples), len(shard.models), len(shard.roles)
        self.index = entries + models + roles + texts
        self.footer = bytearray(struct.pack(
            "<8sHHHHQQIIII12xI", FOOTER_SIGNATURE, 1, len(shard.models), len(shard.roles), 0, self.begin,
            len(self.index), len(shard.samples), group + 1, len(texts), 0, 0))

    @property
    def at_models(self) -> int:
        return ENTRY_SIZE * self.counts[0]

    @property
    def at_roles(self) -> int:
        return self.at_models + PLACE_SIZE * self.counts[1]

    @property
    def at_texts(self) -> int:
        return self.at_roles + PLACE_SIZE * self.counts[2]

    @property
    def size(self) -> int:
        return self.begin + len(self.index) + len(self.before_footer) + FOOTER_SIZE

    def get(self, name: str) -> int:
        part, offset, width = self.place(name)
        return int.from_bytes(part[offset : offset + width], "little")

    def place(self, name: str) -> tuple[bytearray, int, int]:
        """The part that a field is in, its offset there and its width."""
        part, _, rest = name.partition(".")
        if part == "head":
            return self.head, *HEAD[rest]
        if part == "footer":
            return self.footer, *FOOTER[rest]
        number, _, rest = rest.partition(".")
        i = int(number)
        tables = {"entry": (0, ENTRY_SIZE, ENTRY), "model": (self.at_models, PLACE_SIZE, PLACE),
                  "role": (self.at_roles, PLACE_SIZE, PLACE)}
        if part in tables:
            begin, size, fields = tables[part]
            offset, width = fields[rest]
            return self.index, begin + size * i + offset, width
        if part == "sample":
            sample = self.samples[i]
            if isinstance(sample, Zeros):
                raise RecipeError("a hole has no bytes")
            return sample, int(rest) % len(sample), 1
        prefixes = {"name": f"entry.{i}.name_", "metadata": f"entry.{i}.metadata_", "model_bytes": f"model.{i}.",
                    "role_name": f"role.{i}."}
        if part not in prefixes:
            raise RecipeError(f"no field {name}")
        length = self.get(prefixes[part] + "length")
        return self.index, self.at_texts + self.get(prefixes[part] + "place") + int(rest) % length, 1

    def change(self, name: str, value: str) -> None:
        part, offset, width = self.place(name)
        if value.startswith("x:"):
            given = bytes.fromhex(value[2:])
            part[offset : offset + len(given)] = given
            return
        now = int.from_bytes(part[offset : offset + width], "little")
        if value[0] in "+-":
            now += int(value, 0)
        elif value[0] == "^":
            now ^= int(value[1:], 0)
        else:
            now = self.get(value[1:]) if value[0] == "=" else int(value, 0)
        part[offset : offset + width] = (now % (1 << 8 * width)).to_bytes(width, "little")

    def seal(self, changes: list[tuple[str, str]]) -> None:
        def is_made(name: str) -> bool:
            """Whether it is made of other fields, and so set after them."""
            if name.endswith(".digest"):
                return self.kinds[int(name.split(".")[1])] == OTHER_BYTES
            return name.endswith(".check") or name in ("footer.index_check", "footer.footer_check")

        for name, value in changes:
            if not is_made(name):
                self.change(name, value)

        def settle(name: str, made: bytes) -> None:
            part, offset, width = self.place(name)
            part[offset : offset + width] = made
            for changed, value in changes:
                if changed == name:
                    self.change(name, value)

        for i, sample in enumerate(self.samples):
            check = sample.check if isinstance(sample, Zeros) else zlib.crc32(sample)
            settle(f"entry.{i}.check", check.to_bytes(4, "little"))
            if self.kinds[i] == OTHER_BYTES:
                settle(f"entry.{i}.digest", sample.digest if isinstance(sample, Zeros) else digest(sample))
        settle("footer.index_check", zlib.crc32(self.index).to_bytes(4, "little"))
        settle("footer.footer_check", zlib.crc32(self.footer[:60]).to_bytes(4, "little"))

    def whole(self) -> bytes:
        data = bytearray(self.size)
        data[: len(self.head)] = self.head
        for begin, sample in zip(self.begins, self.samples, strict=True):
            if isinstance(sample, Zeros):
                raise RecipeError("a shard with holes is written to a file")
            data[begin : begin + len(sample)] = sample
        data[self.begin :] = self.index + self.before_footer + self.footer
        for name, value in self.file_changes:
            at = int(name[5:]) % len(data)
            data[at] = int(value, 0)
        for keyword, value in self.ends:
            data = data[: int(value)] if keyword == "cut" else data + bytearray.fromhex(value[2:])
        return bytes(data)

    def write_sparse(self, path: Path) -> None:
        """Only what is not zero; what is between is left to the file system."""
        with path.open("wb") as file:
            file.write(self.head)
            for begin, sample in zip(self.begins, self.samples, strict=True):
                if not isinstance(sample, Zeros):
                    file.seek(begin)
                    file.write(sample)
            file.seek(self.begin)
            file.write(self.index + self.footer)


# ---------------------------------------------------------------------------------------------------------- data sets


@dataclass
class DataSet:
    """Shards by their file names, and what is done to their folder.

    `members` sets members of index.json to texts of JSON, or takes them away: `{"shards.0.bytes": "1e3"}`. `changes`
    are lines for File, of the shard of that name. `replace` is done to the text of index.json, then `index_bytes`.
    """

    shards: dict[str, Shard]
    classes: list[str] = field(default_factory=list)
    members: dict[str, str | None] = field(default_factory=dict)
    changes: dict[str, list[str]] = field(default_factory=dict)
    replace: tuple[bytes, bytes] = (b"", b"")
    index: bytes | None = None  # instead of all that
    without: str = ""  # a file that is not there
    other_files: dict[str, bytes] = field(default_factory=dict)

    def files(self) -> dict[str, bytes]:
        made: dict[str, bytes] = {}
        top: dict[str, object] = {"format": '"l3 data set"', "version": "1", "samples": "", "groups": ""}
        top["classes"] = [text_of_json(name) for name in self.classes]
        described: list[object] = []
        samples = groups = 0
        for name, shard in self.shards.items():
            file = File(shard, self.changes.get(name, []))
            made[name] = file.whole()
            samples += file.get("footer.entries")
            groups += file.get("footer.groups")
            described.append({
                "file": text_of_json(name), "bytes": str(len(made[name])), "samples": str(file.get("footer.entries")),
                "groups": str(file.get("footer.groups")), "index_check": str(file.get("footer.index_check")),
                "digest": text_of_json(digest(made[name][file.begin :]).hex())})
        top |= {"samples": str(samples), "groups": str(groups), "shards": described}
        for path, value in self.members.items():
            put(top, path.split("."), value)
        index = (render(top) + "\n").encode() if self.index is None else self.index
        if self.replace[0]:
            if index.count(self.replace[0]) != 1:
                raise RecipeError(f"index.json has not one {self.replace[0]!r}")
            index = index.replace(*self.replace)
        made |= {"index.json": index} | self.other_files
        made.pop(self.without, None)
        return made


def text_of_json(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def render(value: object) -> str:
    """JSON of dictionaries and lists, at whose ends is JSON already."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text_of_json(name)}: {render(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(render, value)) + "]"
    return str(value)


def put(tree: object, path: list[str], value: str | None) -> None:
    for name in path[:-1]:
        tree = tree[int(name)] if isinstance(tree, list) else tree[name] if isinstance(tree, dict) else None
    if not isinstance(tree, dict):
        raise RecipeError(f"no member {path}")
    if value is None:
        del tree[path[-1]]
    else:
        tree[path[-1]] = value


# ------------------------------------------------------------------------------------------------------------ recipes

ACCEPT, REFUSE, EITHER, UNTRIED = "accept", "refuse", "either", "-"


@dataclass
class Recipe:
    name: str
    section: str
    reason: str
    made_of: Shard | DataSet
    opening: str = ACCEPT
    verifying: str = ACCEPT
    changes: Sequence[str] = ()  # of a shard
    control: str = "-"  # the recipe in which nothing is wrong
    reads: bool = True  # whether its samples are for tests of reading

    @property
    def is_sparse(self) -> bool:
        return self.name.startswith("sparse/")

    def file(self) -> File:
        if not isinstance(self.made_of, Shard):
            raise RecipeError(f"{self.name} is no shard")
        return File(self.made_of, self.changes)

    def path(self, out: Path) -> Path:
        return out / self.name if isinstance(self.made_of, DataSet) else out / f"{self.name}.l3s"

    def write(self, out: Path) -> Path:
        path = self.path(out)
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(self.made_of, DataSet):
            path.mkdir()
            for name, data in self.made_of.files().items():
                (path / name).write_bytes(data)
        elif self.is_sparse:
            self.file().write_sparse(path)
        else:
            path.write_bytes(self.file().whole())
        return path

    def manifest_line(self) -> str:
        return "\t".join((self.name, self.section, self.opening, self.verifying, self.control, self.reason)) + "\n"


MANIFEST_HEAD = """\
# Shards and data sets: what a reader says of each that build_shards.py makes.
#
# NAME, the SECTION of shard.md it is about, what OPENING and what VERIFYING gives, the CONTROL, in which the one thing
# is not wrong, and the reason. `either` is left to a reader (its limits, section 6, or what RFC 8259 leaves open), but
# it must say so orderly; `-` is not tried, because it reads 64 GiB of zeros. sparse/* are made by --sparse alone.
"""


def manifest(recipes: Sequence[Recipe]) -> str:
    return MANIFEST_HEAD + "".join(recipe.manifest_line() for recipe in recipes)


def main() -> int:
    from recipes import all_recipes

    parser = argparse.ArgumentParser(prog="build_shards.py", description="Build shards and data sets for tests.")
    parser.add_argument("--sparse", action="store_true", help="build the sparse ones instead")
    parser.add_argument("--manifest", action="store_true", help="write the manifest to stdout")
    parser.add_argument("out", metavar="OUT", type=Path, nargs="?")
    options = parser.parse_args()
    if (options.out is None) != options.manifest:
        parser.error("wants OUT, or --manifest alone")
    recipes = all_recipes()
    text = manifest(recipes)
    if options.manifest:
        sys.stdout.write(text)
        return 0
    name = ""
    try:
        for recipe in recipes:
            name = recipe.name
            if recipe.is_sparse == options.sparse:
                recipe.write(options.out)
        (options.out / "MANIFEST.txt").write_text(text)
    except (RecipeError, ValueError, LookupError, OSError, struct.error) as error:
        print(f"build_shards.py: {name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.modules["build_shards"] = sys.modules["__main__"]  # recipes.py imports it by this name
    sys.exit(main())
