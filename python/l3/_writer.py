"""Writes data sets."""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Hashable, Sequence
from types import TracebackType
from typing import Any

from . import _arguments as arguments
from . import _native
from ._coding import METHODS, Model, image_to_encode
from ._errors import Error, SampleError
from ._files import FileBytes, is_l3

_IMAGE_OPTIONS = ("layout", "colour", "bits", "palette", "premultiplied", "transparent", "icc", "exif", "text",
                  "chunks")


class DatasetWriter:
    """Writes a data set, sample by sample. Use it in a ``with`` block.

    >>> with l3.DatasetWriter("set/", classes=["cat", "dog"]) as writer:
    ...     for image, label in source:             # pixels, or the bytes of PNG files
    ...         writer.write(image, label=label)

    The data set appears at the end of the block. If the block ends by an exception, nothing is left, and a data set
    that was to be replaced stays. The samples have the order of the calls of :meth:`write`.

    path
        the folder of the data set. It is made if it does not exist.
    method, effort, tile
        how images are encoded: as in :func:`l3.encode`.
    classes
        the names of the labels: the first is that of label 0.
    models
        :class:`l3.Model` objects that small images share, as ``l3 train`` makes them, at most one for each number of
        channels and bits. The data set contains them.
    threads
        the number of threads that encode; 0: one per processor. The files do not depend on it.
    shard_size
        the largest size of a shard in bytes. Only a single group may exceed it.
    verify
        whether each image is decoded again and compared before it counts.
    overwrite
        True: replace a data set that is there already, at the end. False: raise FileExistsError.

    Images wait in memory until they are encoded: up to 192 MiB, then :meth:`write` waits. Several threads may call
    :meth:`write`; one at a time is served. A writer does not survive a fork, and cannot be pickled.
    """

    def __init__(self, path: str | os.PathLike[str], *, method: str = "auto", effort: int = 5,
                 tile: None | int | Sequence[int] = None, classes: Sequence[str] = (),
                 models: Model | Sequence[Model] = (), threads: int = 0, shard_size: int = 256_000_000,
                 verify: bool = True, overwrite: bool = False) -> None:
        self._closed = True  # until there is something to close
        arguments.one_of("method", method, METHODS)
        tile_width, tile_height = (0, 0) if tile is None else arguments.two_edges("tile", tile, "(width, height)")
        self._classes = _class_names(classes)
        self._numbers = {name: number for number, name in enumerate(self._classes)}
        self.path = os.fspath(path)
        if "://" in os.fsdecode(self.path):
            raise ValueError("path is a URL: write to a folder, and copy it with l3 upload")
        self._native = _native.Writer(
            arguments.path_bytes(os.path.abspath(path)), arguments.truth("overwrite", overwrite),
            arguments.whole_number("shard_size", shard_size, 1, 2**63),
            arguments.whole_number("threads", threads, 0, 1024), arguments.truth("verify", verify),
            METHODS.index(method), arguments.whole_number("effort", effort, 1, 9), tile_width, tile_height,
            _native_models(models))
        self._lock = threading.Lock()
        self._names: set[bytes] = set()
        self._groups: set[Hashable] = set()
        self._group: Hashable = None
        self._label: int | None = None
        self._roles: set[str] = set()
        self._closed = False
        self._finalizer = weakref.finalize(self, self._native.abandon)

    def write(self, image: Any, *, label: int | str | None = None, name: str | None = None,
              group: Hashable = None, role: str = "image", metadata: Any = None, **options: Any) -> None:
        """Adds an image. It is encoded later, on other threads; the array may be changed after the call.

        >>> writer.write(pixels, label=3, name="cats/00.png", metadata={"camera": 7})
        >>> writer.write(pixels, group=17)                          # an image and its label map
        >>> writer.write(classes, group=17, role="labels", palette=palette)

        image
            an array, a tensor on the CPU or a Pillow image, as :func:`l3.encode` takes them. Or the bytes of an image
            file: PNG, PBM, PGM, PPM, PAM, BMP, GIF, PSD or TGA, of which everything is kept as ``l3 convert`` keeps it.
            The bytes of an L3 file are stored as they are. JPEG, WebP, TIFF and JPEG XL must be decoded first.
        label
            a number, or one of the names in `classes`; None: no label. The later samples of a group may leave it out.
        name
            the unique name of the sample, such as the path of its source; None: its number, in eight digits.
        group
            anything hashable: calls in a row with an equal value make a group. None: the sample is a group of its own.
        role
            what the sample is in its group. The samples of a group have different roles.
        metadata
            bytes, which are stored as they are, or anything that JSON can express, such as a dict.
        options
            for pixels: those of :func:`l3.encode` that describe an image: `layout`, `bits`, `colour`, `palette`,
            `premultiplied`, `transparent`, `icc`, `exif`, `text`, `chunks`.

        Wrong arguments raise ValueError or TypeError, and the sample does not count; the writer can go on. If an image
        cannot be decoded, encoded or written, this call or a later one, or :meth:`close`, raises
        :class:`l3.SampleError` or OSError. The writer is broken then, and raises it again and again. What cannot be
        kept of an image file, such as the later frames of an animation, is left out with a warning, one for each kind.
        """
        self._check_open()
        try:
            for option in options:
                if option not in _IMAGE_OPTIONS:
                    raise TypeError(f"write has no option {option!r}, but has {arguments.either(_IMAGE_OPTIONS)}")
            if isinstance(image, (bytes, bytearray, memoryview)):
                if options:
                    raise ValueError(f"{next(iter(options))} is for arrays, but image is an encoded file")
                kind = "l3" if is_l3(image, "image") else "other"
                prepared = None
            else:
                if isinstance(image, (str, os.PathLike)):
                    raise TypeError("image is a path: pass the bytes of the file")
                prepared = image_to_encode(image, **options)
        except (ValueError, TypeError, Error) as error:
            raise self._named(error, name) from None

        def add(name: bytes, label: int | None, extra: bytes, opens_group: bool) -> None:
            if prepared is None:
                self._native.add_file(image, kind, name, role, label, extra, opens_group)
            else:
                self._native.add_image(*prepared, name, role, label, extra, opens_group)
        self._add(add, label, name, group, role, metadata)
        self._warn()

    def write_bytes(self, data: FileBytes, *, role: str, label: int | str | None = None, name: str | None = None,
                    group: Hashable = None, metadata: Any = None) -> None:
        """Adds a sample that is not an image, such as the text that belongs to one. The bytes are stored as they are.

        >>> writer.write(pixels, group=17)
        >>> writer.write_bytes("a red square".encode(), group=17, role="caption")
        """
        self._check_open()

        def add(name: bytes, label: int | None, extra: bytes, opens_group: bool) -> None:
            if not isinstance(data, (bytes, bytearray, memoryview)):
                raise TypeError(f"data is {type(data).__name__}, but must be bytes")
            self._native.add_file(data, "bytes", name, role, label, extra, opens_group)
        self._add(add, label, name, group, role, metadata)

    def _add(self, add: Any, label: int | str | None, name: str | None, group: Hashable, role: str,
             metadata: Any) -> None:
        with self._lock:
            self._check_open()
            try:
                if not isinstance(role, str):
                    raise TypeError(f"role is {role!r}, but must be a str")
                stored_name = self._stored_name(name)
                opens_group = group is None or group != self._group
                if opens_group and group is not None and group in self._groups:
                    raise ValueError(f"group is {group!r}, but samples of other groups came after that group")
                number = self._label_number(label)
                if not opens_group:
                    if role in self._roles:
                        raise ValueError(f"role is {role!r}, but the group {group!r} has such a sample already")
                    if number not in (None, self._label):
                        raise ValueError(f"label is {label!r}, but the group {group!r} has the label {self._label}")
                    number = self._label
                extra = _metadata_bytes(metadata)
                add(stored_name, number, extra, opens_group)
            except (ValueError, TypeError) as error:
                raise self._named(error, name) from None
            self._names.add(stored_name)
            if opens_group:
                self._group, self._label = group, number
                self._roles = set()
                if group is not None:
                    self._groups.add(group)
            self._roles.add(role)

    def _named(self, error: ValueError | TypeError | Error, name: object) -> Exception:
        """Returns an error that names the sample of the call."""
        sample = self.samples
        name = name if isinstance(name, str) else _default_name(sample)
        if isinstance(error, Error):
            return SampleError(error.reason, error.offset, error.file, sample, name)
        made = TypeError if isinstance(error, TypeError) else ValueError
        return made(f"sample {sample} {name!r}: {error}")

    def _stored_name(self, name: str | None) -> bytes:
        if name is None:
            name = _default_name(self._native.samples)
        if not isinstance(name, str):
            raise TypeError(f"name is {name!r}, but must be a str")
        stored = name.encode("utf-8", "surrogateescape")
        if stored in self._names:
            raise ValueError("another sample has this name")
        return stored

    def _label_number(self, label: int | str | None) -> int | None:
        if label is None:
            return None
        if isinstance(label, str):
            if label not in self._numbers:
                raise ValueError(f"label is {label!r}, but classes=" + (f"{self._classes!r} lacks it" if self._classes
                                 else " is not given: use numbers, or give the names of all classes"))
            return self._numbers[label]
        most = len(self._classes) - 1 if self._classes else 2**32 - 2
        return arguments.whole_number("label", label, 0, most)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the writer is closed")
        if not self._native.is_here:
            raise RuntimeError("a DatasetWriter does not survive a fork: make it in the process that uses it")

    def close(self) -> None:
        """Writes what is left, and makes the data set complete. After that it does nothing.

        Raises what :meth:`write` would raise. Then nothing is left of the data set.
        """
        if self._closed:
            return
        self._check_open()
        with self._lock:
            if self._closed:
                return
            try:
                self._native.wait()
                self._warn()
                self._native.finish(self._classes)
            finally:
                self._end()

    def abort(self) -> None:
        """Removes everything that was written, and closes the writer. Does nothing after closing."""
        if self._closed:
            return
        if self._native.is_here:
            with self._lock:
                self._end()

    def _warn(self) -> None:
        """Warns of what could not be kept of image files, at the line that called this module."""
        notices = self._native.take_notices()
        if notices:
            frame, level = sys._getframe(), 1
            while frame.f_back is not None and frame.f_globals is globals():
                frame, level = frame.f_back, level + 1
            for name, notice in notices:
                warnings.warn(f"sample {os.fsdecode(name)!r}: {notice}", stacklevel=level)

    def _end(self) -> None:
        self._closed = True
        self._finalizer()  # removes what was not finished
        self._names, self._groups = set(), set()

    @property
    def closed(self) -> bool:
        """whether the writer was closed or aborted"""
        return self._closed

    @property
    def samples(self) -> int:
        """the number of samples so far"""
        return self._native.samples

    def __enter__(self) -> DatasetWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __reduce__(self) -> Any:
        raise TypeError("a DatasetWriter cannot be pickled: make it in the process that uses it")

    def __del__(self) -> None:
        if not self._closed and self._native.is_here:
            warnings.warn(f"{self!r} was not closed, so nothing was written", ResourceWarning, stacklevel=2,
                          source=self)

    def __repr__(self) -> str:
        return (f"l3.DatasetWriter({os.fsdecode(self.path)!r}, {self.samples} samples"
                + (", closed)" if self._closed else ")"))


def _default_name(number: int) -> str:
    return f"{number:08}"


def _class_names(classes: Sequence[str]) -> list[str]:
    if isinstance(classes, str) or not all(isinstance(name, str) for name in classes):
        raise TypeError(f"classes is {classes!r}, but must be a list of str")
    names = list(classes)
    if len(set(names)) != len(names):
        raise ValueError(f"classes has a name twice: {next(name for name in names if names.count(name) > 1)!r}")
    for name in names:
        name.encode("utf-8")
    return names


def _native_models(models: object) -> list[_native.Model]:
    listed = [models] if isinstance(models, Model) else list(models)  # type: ignore[call-overload]
    for model in listed:
        if not isinstance(model, Model):
            raise TypeError(f"models has {type(model).__name__}, but must have l3.Model objects")
    return [model._native for model in listed]


def _metadata_bytes(metadata: Any) -> bytes:
    if metadata is None:
        return b""
    if isinstance(metadata, (bytes, bytearray, memoryview)):
        return bytes(metadata)
    return json.dumps(metadata, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
