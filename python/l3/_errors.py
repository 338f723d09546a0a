"""The exceptions of l3. Wrong arguments raise ValueError or TypeError, and unreadable files raise OSError."""

from __future__ import annotations

# Values of l3_status in l3.h.
_ARGUMENT, _MEMORY, _FILE = 1, 8, 11


class Error(Exception):
    """A file is damaged, or cannot be decoded on this machine.

    ``reason`` is the cause in words, ``offset`` the byte of the file at which it was found (or None), and ``file`` the
    path (or None).
    """

    def __init__(self, reason: str, offset: int | None = None, file: str | None = None) -> None:
        super().__init__(reason, offset, file)
        self.reason = reason
        self.offset = offset
        self.file = file

    def __str__(self) -> str:
        place = [self.file] if self.file is not None else []
        if self.offset is not None:
            place.append(f"offset {self.offset}")
        return ": ".join([*place, self.reason])


class SampleError(Error):
    """A sample of a data set cannot be read or decoded.

    ``sample`` is its number and ``name`` its name. Both are None if no single sample failed.
    """

    def __init__(self, reason: str, offset: int | None = None, file: str | None = None,
                 sample: int | None = None, name: str | None = None) -> None:
        super().__init__(reason, offset, file)
        self.args = (reason, offset, file, sample, name)
        self.sample = sample
        self.name = name

    def __str__(self) -> str:
        if self.sample is None:
            return super().__str__()
        place = [self.file] if self.file is not None else []
        if self.offset is not None:
            place.append(f"offset {self.offset}")
        named = f"sample {self.sample}" + (f" {self.name!r}" if self.name is not None else "")
        return named + (f" ({', '.join(place)})" if place else "") + f": {self.reason}"


def error_of(status: int, reason: str, offset: int | None, file: str | None, system_error: int) -> Exception:
    """Makes the exception for an error of the library."""
    if status == _ARGUMENT:
        return ValueError(f"{file}: {reason}" if file is not None else reason)
    if status == _MEMORY:
        return MemoryError(reason)
    if status == _FILE and system_error != 0:
        import os

        return OSError(system_error, reason or os.strerror(system_error), file)
    return Error(reason, offset, file)


def sample_error_of(reason: str, offset: int | None, file: str | None, sample: int | None,
                    name: str | None) -> Exception:
    """Makes the exception for a sample that failed."""
    return SampleError(reason, offset, file, sample, name)
