#!/usr/bin/env python3
"""A reader of shards and data sets of L3 images, version 1, written from spec/shard.md alone, in its order and words.

    l3_shard.py list PATH             the samples: number, kind, size, group, role, label, name
    l3_shard.py read PATH NAME        the bytes of a sample to stdout, of an image its L3 file
    l3_shard.py verify PATH           everything section 4 asks for, and of a data set section 5

PATH is a shard, or the folder of a data set. What is refused gives one line `l3_shard: FILE: offset N: reason` on
stderr and exit status 1; wrong usage gives 2. Images are verified by l3_decode.py, which says what it cannot see.

Plain rather than fast: it is there to be read and to be compared with.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import l3_decode

# ---------------------------------------------------------------------------------------------------------------------
# 1. Conventions


class Refusal(Exception):
    """What is not read: the `file`, an `offset` in it, and the `reason`."""

    def __init__(self, file: Path, offset: int, reason: str) -> None:
        super().__init__(f"{file}: offset {offset}: {reason}")
        self.file = file
        self.offset = offset
        self.reason = reason


class Violation(Refusal):
    """This is no shard, or the data set is damaged, or a sample is not what its entry says."""


class OverLimit(Refusal):
    """Over a limit of this reader (section 6), or of l3_decode.py: not a verdict."""


ALIGNMENT = 64
NAME_SIZE = 16
CHUNK = 1 << 20


def pad(n: int) -> int:
    return (n + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:NAME_SIZE]


def is_name(name: bytes) -> bool:
    parts = name.split(b"/")
    return 1 <= len(name) <= 4096 and b"\0" not in name and not any(part in (b"", b".", b"..") for part in parts)


class File:
    """A file, of which pieces are read. It is open no longer than that: a data set may have many."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self.size = file.seek(0, os.SEEK_END)

    def require(self, condition: bool, offset: int, reason: str) -> None:
        if not condition:
            raise Violation(self.path, offset, reason)

    def pieces(self, offset: int, size: int) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            file.seek(offset)
            while size > 0:
                piece = file.read(min(size, CHUNK))
                self.require(piece != b"", offset, "the file ends sooner than it said")
                yield piece
                offset += len(piece)
                size -= len(piece)

    def read(self, offset: int, size: int) -> bytes:
        return b"".join(self.pieces(offset, size))

    def require_zero(self, begin: int, end: int, reason: str) -> None:
        for piece in self.pieces(begin, end - begin):
            left = piece.lstrip(b"\0")
            self.require(left == b"", begin + len(piece) - len(left), reason)
            begin += len(piece)


# ---------------------------------------------------------------------------------------------------------------------
# 2. Layout of a shard

HEAD_SIZE = 64
FIRST_SAMPLE = 4096
HEAD_SIGNATURE = bytes.fromhex("8B 4C 33 53 0D 0A 1A 0A")
FOOTER_SIGNATURE = bytes.fromhex("8B 4C 33 45 0D 0A 1A 0A")
FOOTER_SIZE = 64

# 2.1 The head


def read_head(file: File) -> None:
    head = file.read(0, HEAD_SIZE)
    signature, version, reserved = struct.unpack("<8s H 54s", head)
    file.require(signature == HEAD_SIGNATURE, 0, "not the signature of a shard")
    file.require(version == 1, 8, f"version {version} is not known")
    file.require(not any(reserved), 10, "reserved bytes of the head are not zero")


# 2.2 The footer


@dataclass(frozen=True)
class Footer:
    models: int
    roles: int
    begin: int
    size: int
    entries: int
    groups: int
    texts: int
    index_check: int


def read_footer(file: File) -> Footer:
    file.require(file.size >= FOOTER_SIZE, file.size, "the file ends within the footer")
    at = file.size - FOOTER_SIZE
    footer = file.read(at, FOOTER_SIZE)
    (
        signature,
        version,
        models,
        roles,
        reserved,
        begin,
        size,
        entries,
        groups,
        texts,
        index_check,
        reserved_too,
        footer_check,
    ) = struct.unpack("<8s HHHH QQ IIII 12s I", footer)
    file.require(signature == FOOTER_SIGNATURE, at, "not the signature of a footer")
    file.require(zlib.crc32(footer[:60]) == footer_check, at + 60, "footer check does not match")
    file.require(version == 1, at + 8, f"version {version} is not known")
    file.require(models <= 1024, at + 10, "more than 1024 models")
    file.require(roles > 0 or entries == 0, at + 12, "entries without roles")
    file.require(reserved == 0, at + 14, "reserved bytes of the footer are not zero")
    file.require(not any(reserved_too), at + 48, "reserved bytes of the footer are not zero")
    parts = ENTRY_SIZE * entries + MODEL_SIZE * models + ROLE_SIZE * roles + texts
    file.require(size == parts, at + 24, "size of the index is not that of its parts")
    file.require(begin + size + FOOTER_SIZE == file.size, at + 16, "index and footer do not end where the file ends")
    return Footer(models, roles, begin, size, entries, groups, texts, index_check)


# ---------------------------------------------------------------------------------------------------------------------
# 3. The index

ENTRY_SIZE, MODEL_SIZE, ROLE_SIZE = 80, 8, 8
IMAGE, OTHER_BYTES = range(2)
CHANNELS_OF_COLOUR = (1, 2, 3, 4, 1)
PALETTE = 4
NO_MODEL = 65535
NO_LABEL = 0xFFFFFFFF


@dataclass(frozen=True)
class Entry:
    at: int  # offset of the entry in the file
    begin: int
    size: int
    digest: bytes
    check: int
    width: int
    height: int
    channels: int
    bits: int
    colour: int
    kind: int
    role: int
    model: int
    name: bytes
    metadata: bytes
    label: int
    group: int

    @property
    def end(self) -> int:
        return self.begin + self.size


class Shard:
    """A shard that was opened: all that section 4 asks for is tested."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.footer = read_footer(file)
        read_head(file)
        index = file.read(self.footer.begin, self.footer.size)
        at_check = file.size - FOOTER_SIZE + 44
        file.require(zlib.crc32(index) == self.footer.index_check, at_check, "index check does not match")
        self.index = index
        self.at_models = ENTRY_SIZE * self.footer.entries
        self.at_roles = self.at_models + MODEL_SIZE * self.footer.models
        self.at_texts = self.at_roles + ROLE_SIZE * self.footer.roles
        self.roles = self.read_roles()
        self.models = self.read_models()
        self.entries = self.read_entries()

    def text(self, at: int, place: int, length: int) -> bytes:
        """What a place and a length name, which stand at `at` of the file."""
        self.file.require(place + length <= self.footer.texts, at, "what is named lies beyond the texts")
        begin = self.at_texts + place
        return self.index[begin : begin + length]

    # 3.1 An entry

    def read_entries(self) -> list[Entry]:
        entries: list[Entry] = []
        names: set[bytes] = set()
        roles: set[int] = set()  # of the group
        end = FIRST_SAMPLE
        for number in range(self.footer.entries):
            entry = self.read_entry(number)
            require, at = self.file.require, entry.at
            require(entry.begin == pad(end), at, "a sample does not begin where the one before ends, padded")
            require(entry.name not in names, at + 56, "a name that another entry has")
            names.add(entry.name)
            if not entries:
                require(entry.group == 0, at + 72, "the first group is not 0")
            elif entry.group == entries[-1].group:
                require(entry.role not in roles, at + 50, "a role that another entry of the group has")
                require(entry.label == entries[-1].label, at + 68, "labels of a group differ")
            else:
                require(entry.group == entries[-1].group + 1, at + 72, "groups do not count up")
                roles.clear()
            roles.add(entry.role)
            end = entry.end
            entries.append(entry)
        at_footer = self.file.size - FOOTER_SIZE
        self.file.require(
            self.footer.begin == pad(end), at_footer + 16, "the index does not begin where the last sample ends, padded"
        )
        groups = entries[-1].group + 1 if entries else 0
        self.file.require(self.footer.groups == groups, at_footer + 36, "number of groups is not that of the entries")
        return entries

    def read_entry(self, number: int) -> Entry:
        at = self.footer.begin + ENTRY_SIZE * number
        require = self.file.require
        (
            begin,
            size,
            digest_of_sample,
            check,
            width,
            height,
            channels,
            bits,
            colour,
            kind,
            reserved,
            role,
            model,
            name_length,
            name_place,
            metadata_place,
            metadata_length,
            label,
            group,
            reserved_too,
        ) = struct.unpack_from("<QQ 16s III H BBBB HHH IIIIII", self.index, ENTRY_SIZE * number)
        require(kind <= OTHER_BYTES, at + 48, "kind is above 1")
        require(reserved == 0, at + 49, "a reserved byte of an entry is not zero")
        require(reserved_too == 0, at + 76, "reserved bytes of an entry are not zero")
        require(size <= 1 << 36, at + 8, "a sample is above 2^36 bytes")
        if kind == IMAGE:
            require(size > 0, at + 8, "an image of 0 bytes")
            require(1 <= width <= 1 << 20, at + 36, "width is outside 1 to 2^20")
            require(1 <= height <= 1 << 20, at + 40, "height is outside 1 to 2^20")
            require(colour <= PALETTE, at + 47, "colour is above 4")
            require(channels == CHANNELS_OF_COLOUR[colour], at + 44, "channels does not fit colour")
            most = 8 if colour == PALETTE else 16
            require(1 <= bits <= most, at + 46, f"bits is outside 1 to {most}")
        else:
            for value, place, what in (
                (width, 36, "width"),
                (height, 40, "height"),
                (channels, 44, "channels"),
                (bits, 46, "bits"),
                (colour, 47, "colour"),
            ):
                require(value == 0, at + place, f"{what} of other bytes is not 0")
            require(model == NO_MODEL, at + 52, "other bytes with a model")
        require(role < self.footer.roles, at + 50, "a role that is not there")
        require(model < self.footer.models or model == NO_MODEL, at + 52, "a model that is not there")
        name = self.text(at + 56, name_place, name_length)
        require(is_name(name), at + 56, "not a name")
        metadata = self.text(at + 60, metadata_place, metadata_length)
        require(metadata_length > 0 or metadata_place == 0, at + 60, "a place of no metadata")
        return Entry(
            at=at,
            begin=begin,
            size=size,
            digest=digest_of_sample,
            check=check,
            width=width,
            height=height,
            channels=channels,
            bits=bits,
            colour=colour,
            kind=kind,
            role=role,
            model=model,
            name=name,
            metadata=metadata,
            label=label,
            group=group,
        )

    # 3.2 A model

    def read_models(self) -> list[bytes]:
        models: list[bytes] = []
        for i in range(self.footer.models):
            at = self.at_models + MODEL_SIZE * i
            place, length = struct.unpack_from("<II", self.index, at)
            at += self.footer.begin
            self.file.require(1 <= length <= 1 << 17, at + 4, "bytes of a model are outside 1 to 2^17")
            models.append(self.text(at, place, length))
        return models

    # 3.3 A role

    def read_roles(self) -> list[bytes]:
        roles: dict[bytes, int] = {}
        for i in range(self.footer.roles):
            at = self.at_roles + ROLE_SIZE * i
            place, length = struct.unpack_from("<II", self.index, at)
            at += self.footer.begin
            self.file.require(1 <= length <= 255, at + 4, "length of a role's name is outside 1 to 255")
            role = self.text(at, place, length)
            self.file.require(is_name(role) and b"/" not in role, at, "not a name of a role")
            self.file.require(role not in roles, at, "a role that was named already")
            roles[role] = i
        return list(roles)

    # -----------------------------------------------------------------------------------------------------------------
    # 4. Reading and verifying

    def sample(self, entry: Entry) -> Iterator[bytes]:
        """The pieces of a sample; what does not match is refused at the end."""
        check = 0
        sha = hashlib.sha256()
        for piece in self.file.pieces(entry.begin, entry.size):
            check = zlib.crc32(piece, check)
            sha.update(piece)
            yield piece
        self.file.require(check == entry.check, entry.at + 32, "check of a sample does not match")
        same = entry.kind == IMAGE or sha.digest()[:NAME_SIZE] == entry.digest
        self.file.require(same, entry.at + 16, "digest of other bytes does not match")

    def image(self, entry: Entry) -> bytes:
        """The L3 file, whose header agrees with its entry."""
        data = b"".join(self.sample(entry))
        try:
            header = l3_decode.read_header(data)
        except l3_decode.Violation as violation:
            self.refuse_image(entry, violation)
        require, at = self.file.require, entry.at
        require(header.width == entry.width, at + 36, "width is not that of the image")
        require(header.height == entry.height, at + 40, "height is not that of the image")
        require(header.channels == entry.channels, at + 44, "channels are not those of the image")
        require(header.bits == entry.bits, at + 46, "bits are not those of the image")
        require(header.colour == entry.colour, at + 47, "colour is not that of the image")
        require(header.digest == entry.digest, at + 16, "digest is not that of the image")
        model = None if entry.model == NO_MODEL else l3_decode.name_of(self.models[entry.model])
        require(header.model_name == model, at + 52, "model is not that of the image")
        return data

    def refuse_image(self, entry: Entry, refusal: l3_decode.Refusal) -> NoReturn:
        kind = Violation if isinstance(refusal, l3_decode.Violation) else OverLimit
        raise kind(self.file.path, entry.begin + refusal.offset, refusal.reason) from None

    def read(self, entry: Entry) -> bytes:
        return self.image(entry) if entry.kind == IMAGE else b"".join(self.sample(entry))

    def verify(self) -> None:
        self.file.require_zero(HEAD_SIZE, FIRST_SAMPLE, "bytes after the head are not zero")
        for i, model in enumerate(self.models):
            self.verify_model(model, self.footer.begin + self.at_models + MODEL_SIZE * i)
        named = {l3_decode.name_of(model): model for model in self.models}
        for entry in self.entries:
            if entry.kind == IMAGE:
                try:
                    l3_decode.verify(self.image(entry), models=named)
                except l3_decode.Refusal as refusal:
                    self.refuse_image(entry, refusal)
            else:
                for _ in self.sample(entry):
                    pass
            self.file.require_zero(entry.end, pad(entry.end), "bytes after a sample are not zero")

    def verify_model(self, model: bytes, at: int) -> None:
        """That it is one, for whatever images."""
        kind, channels, bits = l3_decode.number(model, 0, 1), l3_decode.number(model, 1, 1), 8
        if kind in (l3_decode.TOKEN_MODEL, l3_decode.BIT_KIND):
            bits = l3_decode.number(model, 2, 1)
        self.file.require(1 <= channels <= 4 and 1 <= bits <= 16, at, "a model for no images")
        header = l3_decode.Header(
            section_count=0,
            model_name=None,
            may_have_bit_model=True,
            may_have_channel_map=True,
            may_have_shapes=True,
            default_model=0,
            width=1,
            height=1,
            channels=channels,
            bits=bits,
            colour=channels - 1,
            tile_width=32,
            tile_height=32,
            index_check=0,
            digest=bytes(NAME_SIZE),
        )
        try:
            l3_decode.read_model(model, 0, len(model), 0, header)
        except l3_decode.Violation as violation:
            raise Violation(self.file.path, at, violation.reason) from None


# ---------------------------------------------------------------------------------------------------------------------
# 5. A data set

INDEX = "index.json"
MOST_BYTES = 1 << 30
MOST_NUMBER = 1 << 53


@dataclass(frozen=True)
class Object:
    """A JSON object, in which names may stand twice."""

    members: list[tuple[str, object]]


@dataclass(frozen=True)
class Number:
    """A JSON number as it is written."""

    text: str

    def whole(self) -> int | None:
        """Its value if it is written in digits alone, and at most 2^53."""
        if not self.text.isdigit() or len(self.text) > 16:
            return None
        value = int(self.text)
        return value if value <= MOST_NUMBER else None


@dataclass(frozen=True)
class Described:
    """A shard as index.json has it."""

    file: str
    size: int
    samples: int
    groups: int
    index_check: int
    digest: bytes
    index_size: int | None


class DataSet:
    """A data set that was opened: the shards are as described, but for their digests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / INDEX
        if not self.path.is_file():
            raise Violation(folder, 0, f"no {INDEX}: not a data set, or not a whole one")
        self.read_index(self.parse())
        self.shards = [self.open_shard(described) for described in self.described]
        self.require_labels_and_names()

    def require(self, condition: bool, reason: str, offset: int = 0) -> None:
        if not condition:
            raise Violation(self.path, offset, reason)

    def parse(self) -> object:
        self.require(self.path.stat().st_size <= MOST_BYTES, "longer than 2^30 bytes", MOST_BYTES)
        data = self.path.read_bytes()

        def refuse_constant(name: str) -> NoReturn:
            self.require(False, f"{name} is no number of JSON")
            raise AssertionError

        try:
            text = data.decode("utf-8")
            parsed: object = json.loads(
                text, object_pairs_hook=Object, parse_int=Number, parse_float=Number, parse_constant=refuse_constant
            )
        except UnicodeDecodeError as error:
            self.require(False, "not UTF-8", error.start)
        except json.JSONDecodeError as error:
            self.require(False, f"not JSON: {error.msg}", len(text[: error.pos].encode()))
        except RecursionError:
            raise OverLimit(self.path, 0, "over a limit of this reader: nested too deeply") from None
        return parsed

    def members(self, value: object, names: tuple[str, ...], what: str, optional: str = "") -> dict[str, object]:
        """Those of the object that have these names, or the optional one."""
        if not isinstance(value, Object):
            raise Violation(self.path, 0, f"{what} is not an object")
        found: dict[str, object] = {}
        for name, member in value.members:
            if name in names or name == optional:
                self.require(name not in found, f'{what} has "{name}" twice')
                found[name] = member
        for name in names:
            self.require(name in found, f'{what} has no "{name}"')
        return found

    def text(self, value: object, name: str) -> str:
        if not isinstance(value, str):
            raise Violation(self.path, 0, f'"{name}" is not a text')
        return value

    def number(self, value: object, name: str) -> int:
        whole = value.whole() if isinstance(value, Number) else None
        if whole is None:
            raise Violation(self.path, 0, f'"{name}" is not a whole number up to 2^53')
        return whole

    def items(self, value: object, name: str) -> list[object]:
        if not isinstance(value, list):
            raise Violation(self.path, 0, f'"{name}" is not a list')
        return value

    def read_index(self, value: object) -> None:
        names = ("format", "version", "samples", "groups", "classes", "shards")
        index = self.members(value, names, "the index")
        self.require(self.text(index["format"], "format") == "l3 data set", "not the format of a data set")
        self.require(self.number(index["version"], "version") == 1, "its version is not known")
        samples = self.number(index["samples"], "samples")
        groups = self.number(index["groups"], "groups")
        self.classes = [self.text(each, "classes") for each in self.items(index["classes"], "classes")]
        self.described = [self.read_described(each) for each in self.items(index["shards"], "shards")]
        self.require(samples == sum(each.samples for each in self.described), "samples are not those of the shards")
        self.require(groups == sum(each.groups for each in self.described), "groups are not those of the shards")

    def read_described(self, value: object) -> Described:
        names = ("file", "bytes", "samples", "groups", "index_check", "digest")
        shard = self.members(value, names, "a shard", optional="index_bytes")
        file = self.text(shard["file"], "file")
        self.require("/" not in file and file not in (".", ".."), '"file" is not the name of a file in the folder')
        hexadecimal = self.text(shard["digest"], "digest")
        found = re.fullmatch("[0-9A-Fa-f]{32}", hexadecimal)
        self.require(found is not None, '"digest" is not 32 hexadecimal digits')
        return Described(
            file=file,
            size=self.number(shard["bytes"], "bytes"),
            samples=self.number(shard["samples"], "samples"),
            groups=self.number(shard["groups"], "groups"),
            index_check=self.number(shard["index_check"], "index_check"),
            digest=bytes.fromhex(hexadecimal),
            index_size=self.number(shard["index_bytes"], "index_bytes") if "index_bytes" in shard else None,
        )

    def open_shard(self, described: Described) -> Shard:
        path = self.folder / described.file
        # False, too, of a name that no file can have.
        self.require(os.path.isfile(path), f"its shard {described.file[:255]!r} is not there")
        file = File(path)
        file.require(file.size == described.size, 0, f"{INDEX} says another number of bytes")
        shard = Shard(file)
        at_footer = file.size - FOOTER_SIZE
        footer = shard.footer
        file.require(footer.entries == described.samples, at_footer + 32, f"{INDEX} says another number of samples")
        file.require(footer.groups == described.groups, at_footer + 36, f"{INDEX} says another number of groups")
        file.require(footer.index_check == described.index_check, at_footer + 44, f"{INDEX} says another index check")
        same_size = described.index_size is None or described.index_size == footer.size
        file.require(same_size, at_footer + 24, f"{INDEX} says another size of the index")
        return shard

    def require_labels_and_names(self) -> None:
        names: set[bytes] = set()
        for shard in self.shards:
            for entry in shard.entries:
                has_name = not self.classes or entry.label == NO_LABEL or entry.label < len(self.classes)
                shard.file.require(has_name, entry.at + 68, "a label without a name")
                shard.file.require(entry.name not in names, entry.at + 56, "a name that another shard has")
                names.add(entry.name)

    def verify(self) -> None:
        for described, shard in zip(self.described, self.shards, strict=True):
            index_and_footer = shard.file.read(shard.footer.begin, shard.file.size - shard.footer.begin)
            shard.file.require(digest(index_and_footer) == described.digest, 0, f"{INDEX} says another digest")
            shard.verify()


# ---------------------------------------------------------------------------------------------------------------------
# The program


def open_path(path: Path) -> Shard | DataSet:
    return DataSet(path) if path.is_dir() else Shard(File(path))


def shards_of(opened: Shard | DataSet) -> list[Shard]:
    return opened.shards if isinstance(opened, DataSet) else [opened]


def list_samples(shards: list[Shard]) -> None:
    number = 0
    for shard in shards:
        for entry in shard.entries:
            kind = "image" if entry.kind == IMAGE else "bytes"
            label = "-" if entry.label == NO_LABEL else entry.label
            role, name = (repr(text)[2:-1] for text in (shard.roles[entry.role], entry.name))
            print(number, kind, entry.size, entry.group, role, label, name, sep="\t")
            number += 1


def read_sample(shards: list[Shard], name: bytes) -> bytes | None:
    for shard in shards:
        for entry in shard.entries:
            if entry.name == name:
                return shard.read(entry)
    return None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="l3_shard", description="Read shards and data sets of L3 images.")
    commands = parser.add_subparsers(dest="command", required=True)
    for command, what in (
        ("list", "the samples"),
        ("read", "a sample, to stdout"),
        ("verify", "whether all is as it was"),
    ):
        subparser = commands.add_parser(command, help=what)
        subparser.add_argument("path", metavar="PATH", type=Path, help="a shard or the folder of a data set")
        if command == "read":
            subparser.add_argument("name", metavar="NAME", help="of the sample")
    options = parser.parse_args(arguments)

    try:
        opened = open_path(options.path)
        if options.command == "list":
            list_samples(shards_of(opened))
        elif options.command == "verify":
            opened.verify()
        else:
            data = read_sample(shards_of(opened), os.fsencode(options.name))
            if data is None:
                raise OSError("no sample of this name")
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
    except Refusal as refusal:
        print(f"l3_shard: {refusal}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"l3_shard: {options.path}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
