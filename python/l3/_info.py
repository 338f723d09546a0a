"""What a file says about itself: its head, palette, profile, EXIF, text and other chunks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from . import _arguments as arguments
from . import _chunks, _native
from ._arguments import Source
from ._chunks import Chunk
from ._errors import Error

_HEAD_BYTES = 4096
_HEADER_BYTES, _ENTRY_BYTES = 64, 16
# `info` reads no more than this for what lies before the pixels. A hostile head may claim more.
_MOST_BEFORE_PIXELS = 2**28
Value = TypeVar("Value")

_MODELS = ("none", "own", "named", "default")


@dataclass(frozen=True)
class Info:
    """The properties of a file; see :func:`info`.

    Those of the head are verified when the file is read. The others (`palette` and what follows) are read and verified
    when they are first used, and raise :class:`l3.Error` if they are damaged.
    """

    width: int
    height: int
    channels: int
    bits: int
    """bits per sample, 1 to 16"""
    colour: str
    """'gray', 'gray_alpha', 'rgb', 'rgb_alpha' or 'palette'"""
    premultiplied: bool
    """whether the colours are multiplied by alpha"""
    dtype: str
    """type of the decoded samples: 'uint8' or 'uint16'"""
    tile_width: int
    tile_height: int
    tiles: int
    size: int
    """size of the file in bytes"""
    model: str
    """where the model of its dense tiles comes from: 'none', 'own' (in the file), 'named' (``models=``) or 'default'"""
    model_name: str | None
    """name of a named or default model, in hexadecimal digits"""
    digest: str
    """digest of the file, in hexadecimal digits"""
    version: int
    """version of the format"""
    _before_pixels: bytes = field(default=b"", repr=False, compare=False)
    """the start of the file, if it has a palette or other sections"""
    _payload_start: int = field(default=0, repr=False, compare=False)
    _name: bytes = field(default=b"", repr=False, compare=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(height, width, channels)"""
        return self.height, self.width, self.channels

    @cached_property
    def palette(self) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
        """The colours of the indices: uint8 of shape (N, 3), or (N, 4) with alpha; None if there is no palette."""
        colours = np.frombuffer(self._section("palette"), np.uint8).reshape(-1, 3)
        if not len(colours):
            return None
        alpha = np.frombuffer(self._section("transparency"), np.uint8)
        table = np.full((len(colours), 4 if len(alpha) else 3), 255, np.uint8)
        table[:, :3] = colours
        if len(alpha):
            table[:len(alpha), 3] = alpha
        return table

    @cached_property
    def transparent(self) -> int | tuple[int, int, int] | None:
        """The one transparent colour of an image without alpha: its sample or its three samples; usually None."""
        if self.colour not in ("gray", "rgb"):
            return None
        # Higher bits of the key take no part in it.
        key = [int(number) & (2**self.bits - 1) for number in np.frombuffer(self._section("transparency"), "<u2")]
        return None if not key else key[0] if len(key) == 1 else (key[0], key[1], key[2])

    @cached_property
    def icc(self) -> bytes | None:
        """The ICC profile, or None."""
        section = self._section("icc")
        return self._named(lambda: _chunks.profile_in(section)) if section else None

    @cached_property
    def exif(self) -> bytes | None:
        """The EXIF data, which begin with a TIFF header, or None."""
        return self._section("exif") or None

    @cached_property
    def text(self) -> dict[str, str]:
        """The texts of a PNG by their keywords, such as 'Title', 'Comment' or 'XML:com.adobe.xmp'."""
        return self._named(lambda: _chunks.text_in(self.chunks))

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        """All ancillary PNG chunks as they are, including those of the ICC profile, EXIF and text, but not 'tRNS'."""
        return tuple(_chunks.chunks_of(self._section))

    def _section(self, name: str) -> bytes:
        if not self._before_pixels:
            return b""
        if len(self._before_pixels) < self._payload_start:
            raise Error(f"the file is cut off, or has more before its pixels than l3.info reads: "
                        f"{len(self._before_pixels)} of {self._payload_start} bytes", None, self._file())
        return _native.read_section(self._before_pixels, name, self._name)

    def _file(self) -> str | None:
        return os.fsdecode(self._name) if self._name else None

    def _named(self, read: Callable[[], Value]) -> Value:
        """Calls `read`, and adds the name of the file to its error."""
        try:
            return read()
        except Error as error:
            raise Error(error.reason, error.offset, error.file or self._file()) from None


def info_fields(head: object, size: int, name: bytes, before_pixels: Callable[[int], bytes]) -> dict[str, Any]:
    """Returns the fields of an Info. `before_pixels` returns the start of the file, this many bytes."""
    found = _native.read_info(head, name)
    origin = _MODELS[found["model_origin"]]
    # Beside the header, the head has entries: one for a named model, and one for each section. Not so a tiny file.
    sections = (found["head_bytes"] - _HEADER_BYTES) // _ENTRY_BYTES - (origin in ("own", "named"))
    return {
        "width": found["width"], "height": found["height"], "channels": found["channels"], "bits": found["bits"],
        "colour": found["colour"], "premultiplied": found["premultiplied"],
        "dtype": "uint16" if found["bits"] > 8 else "uint8",
        "tile_width": found["tile_width"], "tile_height": found["tile_height"], "tiles": found["tiles"], "size": size,
        "model": origin, "model_name": found["model_name"].hex() if origin in ("named", "default") else None,
        "digest": found["digest"].hex(), "version": found["version"],
        "_before_pixels": before_pixels(found["payload_start"]) if sections else b"",
        "_payload_start": found["payload_start"], "_name": name}


def fields_of_contents(contents: Any, name: bytes) -> dict[str, Any]:
    """Returns the fields of an Info for an object with the contents of a file, or with the start of one."""
    view = memoryview(contents).cast("B")
    return info_fields(view[:_HEAD_BYTES], view.nbytes, name, lambda end: bytes(view[:end]))


def _fields_of_stream(stream: Any, name: bytes) -> dict[str, Any]:
    """The same for a file object, whose position stays."""
    if not arguments.is_seekable(stream):
        return fields_of_contents(arguments.read_stream(stream), name)
    start = stream.tell()
    try:
        head = arguments.read_stream(stream, _HEAD_BYTES)
        size = stream.seek(0, os.SEEK_END) - start

        def before_pixels(end: int) -> bytes:
            stream.seek(start + len(head))
            missing = min(end, size, _MOST_BEFORE_PIXELS) - len(head)
            return head[:end] + (arguments.read_stream(stream, missing) if missing > 0 else b"")

        return info_fields(head, size, name, before_pixels)
    finally:
        stream.seek(start)


def info(source: Source) -> Info:
    """Returns the properties of a file. Reads what lies before the pixels, and verifies the head.

    >>> l3.info("photo.l3").shape
    (480, 640, 3)
    >>> l3.info("photo.l3").text
    {'Title': 'A photo'}

    The position of a file object stays, unless it cannot seek.
    """
    if arguments.is_path(source):
        path: Any = source
        with open(path, "rb") as file:
            return Info(**_fields_of_stream(file, arguments.path_bytes(path)))
    if arguments.is_stream(source):
        return Info(**_fields_of_stream(source, arguments.stream_name(source)))
    return Info(**fields_of_contents(*arguments.contents_of(source)))
