"""Converts the arguments of users to those of the extension. Error messages name the valid values."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Union

import numpy as np


class Readable(Protocol):
    """A file object, opened for reading bytes."""

    def read(self, size: int = ..., /) -> Any: ...


class Writable(Protocol):
    """A file object, opened for writing bytes."""

    def write(self, data: Any, /) -> Any: ...


class Named:
    """The contents of a file, which have a name in messages."""

    def __init__(self, name: bytes, contents: Any) -> None:
        self.name = name
        self.contents = contents


# A file: its bytes, its path, or a file object.
Source = Union[bytes, bytearray, memoryview, "np.ndarray[Any, Any]", str, "os.PathLike[str]", Readable,
               Named]
Numbers = Union[float, Sequence[float], "np.ndarray[Any, Any]"]
# Places of a cache and their sizes: a mapping, or "PLACE=SIZE,PLACE=SIZE".
Cache = Union[str, Mapping[Union[str, "os.PathLike[str]"], Union[str, int]], None]

DTYPES = ("uint8", "uint16", "float16", "bfloat16", "float32")
LOADER_DTYPES = ("uint8", "uint16", "int16", "int32", "int64", "float16", "bfloat16", "float32")
FLOATS = ("float16", "bfloat16", "float32")
LAYOUTS = ("CHW", "HWC", "HW")


def either(names: Sequence[str]) -> str:
    """Lists names for a message: 'a', 'b' or 'c'."""
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]


def one_of(name: str, value: object, possible: Sequence[str]) -> str:
    """Returns `value`, which must be one of `possible`."""
    if not isinstance(value, str) or value not in possible:
        raise ValueError(f"{name} is {value!r}, but must be {either(possible)}")
    return value


def whole_number(name: str, value: object, least: int = 0, most: int = 2**32 - 1) -> int:
    """Returns `value` as an int from `least` to `most`."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}, but must be a whole number")
    number = int(value.__index__())
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}, but must be from {least} to {most}")
    return number


def milliseconds(name: str, value: object) -> int:
    """Returns a number of seconds as milliseconds, at least 1; 0 for None."""
    if value is None:
        return 0
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} is {value!r}, but must be a number of seconds")
    if not 0 < value <= 10**6:
        raise ValueError(f"{name} is {value!r}, but must be above 0 and at most a million seconds")
    return max(round(float(value) * 1000), 1)


def whole_numbers(name: str, value: object, count: int, meaning: str, least: int = 0) -> list[int]:
    """Returns `value` as a list of `count` ints; `meaning` describes them for messages."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise TypeError(f"{name} is {value!r}, but must be {meaning}")
    if len(value) != count:
        raise ValueError(f"{name} is {value!r}, but must be {meaning}")
    return [whole_number(name, number, least) for number in value]


def two_edges(name: str, value: object, meaning: str, least: int = 0) -> list[int]:
    """Returns two ints, from one number for both or from two; `meaning` describes them for messages."""
    if hasattr(value, "__index__") and not isinstance(value, np.ndarray):
        return [whole_number(name, value, least)] * 2
    return whole_numbers(name, value, 2, f"a whole number or {meaning}", least)


def truth(name: str, value: object) -> bool:
    """Returns `value` as a bool."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise TypeError(f"{name} is {value!r}, but must be True or False")


def dtype_name(name: str, value: object, possible: Sequence[str] = DTYPES) -> str:
    """Returns the name of a type, which may be a str, a NumPy or a torch type; '' for None (as stored)."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else str(value)
    if text.startswith("torch."):
        text = text[len("torch."):]
    elif not isinstance(value, str):
        try:
            text = np.dtype(value).name  # type: ignore[call-overload]
        except TypeError:
            pass
    if text not in possible:
        raise ValueError(f"{name} is {value!r}, but must be None, {either(possible)}")
    return str(text)


def numbers(name: str, value: Numbers | None) -> list[float]:
    """Returns `value` as a list: empty for None, one number for all channels, or one number per channel."""
    if value is None:
        return []
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}, but must be a number or one number per channel") from None
    if found.ndim > 1 or not 1 <= found.size <= 4 or not np.all(np.isfinite(found)):
        raise ValueError(f"{name} is {value!r}, but must be a number or one number per channel (at most 4)")
    if np.any(np.abs(found) > 1e30):
        raise ValueError(f"{name} is {value!r}, but must be at most 1e30")
    if name.startswith("std") and np.any(np.abs(found) < 1e-30):
        raise ValueError(f"{name} is {value!r}, but must not contain a zero")
    return [float(number) for number in found.reshape(-1)]


def check_scaling(dtype: str, mean: list[float], std: list[float]) -> None:
    """Checks that mean and std are given only for floating-point types."""
    if any(m > 1 for m in mean) and any(s > 1 for s in std):
        raise ValueError(f"mean is {mean} and std is {std}, but values are from 0 to 1: divide both by 255")
    if (mean or std) and dtype not in FLOATS:
        raise ValueError(f"mean and std need dtype {either(FLOATS)}, but dtype is {dtype or None!r}")


def check_channels(name: str, values: list[float], channels: int) -> None:
    """Checks that there is one number per channel, or one for all."""
    if len(values) > 1 and len(values) != channels:
        raise ValueError(f"{name} has {len(values)} numbers, but the image has {channels} "
                         f"channel{'s' if channels != 1 else ''}")


def is_source(value: object) -> bool:
    """Returns whether `value` is a single file and not a list of files."""
    if isinstance(value, (str, os.PathLike)) or not isinstance(value, Sequence):
        return True
    try:
        memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def path_bytes(path: str | os.PathLike[str]) -> bytes:
    """Returns a path as bytes for the system."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError(f"embedded null character in path {os.fspath(path)!r}")
    return name


def cache_places(cache: Cache) -> str:
    """Returns the places of a cache as "PLACE=SIZE,PLACE=SIZE", with absolute paths; '' for None."""
    if cache is None or cache == "":
        return ""
    if isinstance(cache, str):
        # Whatever has no size is refused by the library.
        pairs = [one.rpartition("=")[::2] if "=" in one else (one, "") for one in cache.split(",")]
    elif isinstance(cache, Mapping):
        pairs = []
        for place, size in cache.items():
            name = os.fsdecode(place)
            if "," in name or not name:
                raise ValueError(f"cache has the place {name!r}, but a place must have a name without a comma")
            pairs.append((name, size if isinstance(size, str) else str(whole_number("cache", size, 0, 2**63))))
    else:
        raise TypeError(f"cache is {cache!r}, but must be a dict of places and sizes, or 'PLACE=SIZE'")
    if any("\0" in name for name, _ in pairs):
        raise ValueError("cache has a place with a null character")
    return ",".join(f"{name if '://' in name or not name else os.path.abspath(name)}={size}" for name, size in pairs)


def without_secrets(path: str) -> str:
    """Returns a path for messages; a URL without user, password and query."""
    scheme, is_url, rest = path.partition("://")
    if not is_url:
        return path
    authority, slash, name = rest.partition("?")[0].partition("/")
    return scheme + is_url + authority.rpartition("@")[2] + slash + name


def is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


def is_stream(value: object) -> bool:
    """Returns whether `value` is a file object: it has read() and neither a path nor a buffer."""
    if is_path(value) or not callable(getattr(value, "read", None)):
        return False
    try:
        memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        return True
    return False


def stream_name(stream: object) -> bytes:
    """Returns the name of a file object for messages, or nothing."""
    name = getattr(stream, "name", None)
    return os.fsencode(name) if isinstance(name, (str, bytes)) else b""


def read_stream(stream: Any, size: int = -1) -> bytes:
    """Reads up to `size` bytes of a file object, or all that are left."""
    if isinstance(stream, io.TextIOBase):
        raise TypeError('source is opened as text: open it with the mode "rb"')
    parts = []
    left = size
    while left != 0:
        part = stream.read() if size < 0 else stream.read(left)
        if not isinstance(part, (bytes, bytearray, memoryview)):
            raise TypeError(f"source.read() returned {type(part).__name__}, but must return bytes")
        if not part:
            break
        parts.append(bytes(part))
        left -= min(len(part), left) if size > 0 else 0
    if not parts and size != 0 and is_seekable(stream) and stream.tell() > 0:
        raise ValueError("source is at its end: call source.seek(0) first")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def write_stream(stream: Any, data: bytes) -> None:
    """Writes to a file object."""
    if not callable(getattr(stream, "write", None)):
        raise TypeError(f"path is {type(stream).__name__}, but must be a path, a file object, or None to return bytes")
    if isinstance(stream, io.TextIOBase):
        raise TypeError('path is opened as text: open it with the mode "wb"')
    left = memoryview(data)
    while len(left):
        written = stream.write(left)
        # Raw files may write less. Whatever returns no number has written everything.
        left = left[written if isinstance(written, int) else len(left):]


def is_seekable(stream: Any) -> bool:
    return bool(getattr(stream, "seekable", bool)())


def native_source(value: object) -> object:
    """Returns a source for the extension: a tuple with a path, the object itself if it has the buffer protocol, or a
    tuple with the name and the contents of a file object."""
    if isinstance(value, (str, os.PathLike)):
        return (path_bytes(value),)
    if isinstance(value, Named):
        return value.name, value.contents
    if isinstance(value, np.ndarray) and value.dtype.kind in "UO":
        raise TypeError("source is an array of strings or objects; pass a list instead: source.tolist()")
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        if is_stream(value):
            return stream_name(value), read_stream(value)
        raise TypeError(f"source is {type(value).__name__}, but must be bytes, a path, a file object, or a list of "
                        "these") from None
    if not view.c_contiguous:
        raise ValueError("source is not contiguous; pass source.tobytes() instead")
    return value


def contents_of(source: Any) -> tuple[Any, bytes]:
    """Returns an object with the contents of a source, and the name of the source for messages."""
    native = native_source(source)
    if not isinstance(native, tuple):
        return native, b""
    if len(native) == 2:
        return native[1], native[0]
    with open(source, "rb") as file:
        return file.read(), native[0]


def pillow_mode(value: object) -> str | None:
    """Returns the mode of a Pillow image; None for anything else."""
    mode = getattr(value, "mode", None)
    return mode if isinstance(mode, str) and hasattr(value, "getpalette") and hasattr(value, "convert") else None


def is_gpu(device: object) -> int | None:
    """Returns None for a CPU, else the number of the GPU; without a number, torch's current one or 0."""
    text = str(device)
    if text == "cpu":
        return None
    kind, colon, number = text.partition(":")
    if kind == "cuda" and (number.isdecimal() if colon else True) and len(number) < 6:
        if colon:
            return int(number)
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            return int(torch.cuda.current_device())
        return 0
    raise ValueError(f"device is {device!r}, but must be 'cpu', 'cuda' or 'cuda:' and a number")


def stream_address(stream: object, device: int) -> int:
    """Returns the address of a stream, which may be a number or an object; None: torch's current one if loaded."""
    if stream is None:
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            return int(torch.cuda.current_stream(device).cuda_stream)
        return 0
    if hasattr(stream, "cuda_stream"):
        stream = stream.cuda_stream
    elif hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    if not isinstance(stream, int) or isinstance(stream, bool) or stream < 0:
        raise TypeError(f"stream is {stream!r}, but must be None, the address of a stream or a stream object")
    return stream


def by_role(name: str, value: object, roles: Sequence[str | None]) -> list[object]:
    """Returns an argument per role. A mapping names roles; any other value applies to the first role only."""
    if not isinstance(value, Mapping):
        return [value] + [None] * (len(roles) - 1)
    for role in value:
        if role not in roles:
            known = [known for known in roles if known is not None]
            raise ValueError(f"{name} names the role {role!r}, but roles "
                             + ("are " + ", ".join(map(repr, known)) if known else "is not given"))
    return [value.get(role) for role in roles]
