"""Opened files."""

from __future__ import annotations

import os
from typing import Any

from . import _arguments as arguments
from . import _native
from ._arguments import Source
from ._coding import decode
from ._info import Info, fields_of_contents
from ._pillow import to_pillow


class Image(Info):
    """An opened file: an :class:`l3.Info` that also decodes; see :func:`open`."""

    _contents: Any
    """an object with the buffer protocol; None after closing"""

    def __init__(self, source: Source) -> None:
        contents, name = arguments.contents_of(source)
        # The fields of a frozen dataclass cannot be set otherwise.
        for field, value in (*fields_of_contents(contents, name).items(), ("_contents", contents)):
            object.__setattr__(self, field, value)
        _native.check_file(memoryview(contents).cast("B"), name)

    def decode(self, **options: Any) -> Any:
        """Decodes the pixels. Takes the options of :func:`l3.decode`, with which parts can be decoded one by one.

        >>> corner = image.decode(region=(0, 0, 64, 64))
        """
        if self._contents is None:
            raise ValueError("the image is closed")
        return decode(arguments.Named(self._name, self._contents), **options)

    def to_pil(self, **options: Any) -> Any:
        """Returns a Pillow image with the palette, transparency, ICC profile, EXIF and text. Needs Pillow.

        Gray samples of 2 to 7 bits are scaled to 8 bits, as Pillow does it when it reads a PNG. Pillow has no mode for
        several channels of more than 8 bits: ValueError. The options are `region`, `flip`, `threads`, `models`,
        `max_pixels` and `max_bytes` of :func:`l3.decode`.
        """
        allowed = ("region", "flip", "threads", "models", "max_pixels", "max_bytes")
        for name in options:
            if name not in allowed:
                raise TypeError(f"to_pil has no option {name!r}, but has {arguments.either(allowed)}")
        return to_pillow(self, lambda: self.decode(**options))

    def close(self) -> None:
        """Lets go of the bytes of the file. Everything but the pixels stays usable."""
        object.__setattr__(self, "_contents", None)

    @property
    def closed(self) -> bool:
        return self._contents is None

    def __enter__(self) -> Image:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        name = f"{os.fsdecode(self._name)!r}, " if self._name else ""
        return (f"l3.Image({name}{self.width}x{self.height}, {self.colour} of {self.bits} bits"
                + (", closed)" if self.closed else ")"))


def open(source: Source) -> Image:
    """Opens a file: a path, bytes or a file object.

    >>> with l3.open("photo.l3") as image:
    ...     print(image.shape, image.dtype, image.text)
    ...     pixels = image.decode()

    Reads the whole file, and verifies everything except the pixels, which ``decode()`` verifies. To look at many files
    without decoding them, use :func:`l3.info`, which reads less. The bytes of an object with the buffer protocol are
    not copied, and must not change before the image is closed.
    """
    return Image(source)
