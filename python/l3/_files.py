"""The bytes of image files in other formats."""

from __future__ import annotations

from typing import Union

from . import _native
from ._errors import Error

FileBytes = Union[bytes, bytearray, memoryview]

_UNREAD = {"jpeg": "JPEG", "webp": "WebP", "tiff": "TIFF", "jxl": "JPEG XL"}
# Of a usual file and of a tiny one: section 21 of spec/format.md.
L3_SIGNATURES = (b"\x8bL3I", b"\x8bL3t", b"\x8bL3T")


def is_l3(data: FileBytes, called: str) -> bool:
    """Returns whether the bytes are an L3 file, and raises an error unless they are a file that can be read.

    `called` is the name of the argument for messages.
    """
    contents = memoryview(data).cast("B")
    if bytes(contents[:4]) in L3_SIGNATURES:
        _native.check_file(contents, b"")  # all except the pixels
        return True
    known = _native.file_format(contents)
    if known in _UNREAD:
        raise ValueError(f"{called} is a {_UNREAD[known]} file: decode it first, such as with PIL.Image.open")
    if not known:
        raise Error("not an image in a known format (L3, PNG, PBM, PGM, PPM, PAM, BMP, GIF, PSD, TGA)" if contents
                    else "the file is empty", 0)
    return False
