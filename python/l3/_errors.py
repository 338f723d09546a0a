"""What l3 raises, beside ValueError and TypeError for wrong arguments and OSError for files that cannot be read."""

from __future__ import annotations

# As l3_status of l3.h numbers them.
_ARGUMENT, _MEMORY, _FILE = 1, 8, 11


class Error(Exception):
    """A file is not as it must be, or cannot be decoded here.

    ``reason`` says what is wrong, ``offset`` at which byte of the file (or None), ``file`` is its path (or None).
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

    ``sample`` is its number and ``name`` its name; both are None where no single sample failed.
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
    """The exception for an error of the library."""
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
    """The exception for a sample that failed."""
    return SampleError(reason, offset, file, sample, name)
