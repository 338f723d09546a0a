"""Data sets: a folder of shards with an index, or a single shard."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, Union, overload

import numpy as np

from . import _arguments as arguments
from . import _native
from ._arguments import Cache
from ._coding import decode
from ._errors import Error, SampleError
from ._store import Runner, Store, is_store, name_of

Numbers = Union[range, "np.ndarray[Any, np.dtype[Any]]"]
Several = Union[slice, range, Sequence[int], Sequence[bool], "np.ndarray[Any, np.dtype[Any]]"]
Item = TypeVar("Item", covariant=True)


class Sample:
    """A sample of a data set. Its attributes come from the index; ``bytes()`` and ``decode()`` read the sample itself.

    It stays usable after its data set is closed.
    """

    __slots__ = ("_read", "_set", "bits", "channels", "class_name", "colour", "group", "height", "is_image", "label",
                 "name", "number", "role", "shard", "size", "width")

    def __init__(self, native: _native.DataSet, number: int, classes: list[str],
                 read: Callable[[int], bytes]) -> None:
        entry = native.describe_sample(number)
        self._set = native
        self._read = read
        self.number = number
        self.name: str = entry["name"]
        """the path of the file that it was made from, relative to the source folder"""
        self.role: str = entry["role"]
        """what it is in its group, such as 'labels'; 'image' if the group has nothing else"""
        self.label: int | None = entry["label"]
        self.class_name: str | None = None
        """the name of its label, or None"""
        if self.label is not None and self.label < len(classes):
            self.class_name = classes[self.label]
        self.group: int = entry["group"]
        self.width: int = entry["width"]
        self.height: int = entry["height"]
        self.channels: int = entry["channels"]
        self.bits: int = entry["bits"]
        self.colour: str | None = entry["colour"]
        self.size: int = entry["size"]
        """size of the sample in bytes"""
        self.is_image: bool = entry["is_image"]
        """whether it is an L3 image; if not, it is another file, unchanged"""
        self.shard: int = entry["shard"]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(height, width, channels) of the decoded image; (0, 0, 0) if it is not an image"""
        return self.height, self.width, self.channels

    @property
    def metadata(self) -> Any:
        """The metadata of the sample, parsed from JSON; None if it has none. Raises ValueError if it is not JSON."""
        text = self._set.metadata_of(self.number)
        return json.loads(text) if text else None

    def bytes(self) -> bytes:
        """Reads the sample. Verifies its check, and for an image that its head matches the index."""
        return self._read(self.number)

    def decode(self, **options: Any) -> Any:
        """Decodes the pixels. Takes the options of :func:`l3.decode`. The models of the data set are known already."""
        if not self.is_image:
            raise ValueError(f"sample {self.number} {self.name!r} is not an image; use bytes()")
        options["models"] = [self._set, *_listed(options.get("models", ()))]
        try:
            return decode(self.bytes(), **options)
        except SampleError:
            raise
        except Error as error:
            raise SampleError(error.reason, error.offset, error.file, self.number, self.name) from None

    def __repr__(self) -> str:
        what = f"{self.width}x{self.height}x{self.channels}" if self.is_image else f"{self.size} bytes"
        return f"l3.Sample({self.number}, {self.name!r}, {what})"


def _listed(models: Any) -> list[Any]:
    return list(models) if isinstance(models, (list, tuple)) else [models]


def _is_several(which: object) -> bool:
    """Returns whether `which` selects several samples: a slice, or numbers or a mask in a list or an array."""
    return isinstance(which, (slice, list, range)) or (hasattr(which, "__array__") and getattr(which, "ndim", 0) > 0)


def _selected(numbers: Numbers, which: Any) -> Numbers:
    """Returns those of the numbers that a slice, a mask or positions select."""
    if isinstance(which, slice):
        return numbers[which]
    if isinstance(which, range):
        which = np.arange(which.start, which.stop, which.step)
    places = np.asarray(which)
    if places.size == 0 and not isinstance(which, np.ndarray):
        places = places.astype(np.int64)
    if places.ndim != 1 or places.dtype.kind not in "biu":
        raise TypeError("samples are selected by a slice, by a mask of bool, or by a list of numbers, not by "
                        f"{type(which).__name__} of {places.dtype} with {places.ndim} dimensions")
    count = len(numbers)
    if places.dtype == bool:
        if len(places) != count:
            raise IndexError(f"the mask has {len(places)} entries, but there are {count} samples")
        places = np.flatnonzero(places)
    elif places.size:
        if int(places.min()) < -count or int(places.max()) >= count:
            wrong = next(int(place) for place in places if not -count <= place < count)
            raise IndexError(f"sample {wrong} is out of range: there are {count} samples")
        places = places.astype(np.int64)
        places = np.where(places < 0, places + count, places)
    if isinstance(numbers, range):
        return np.asarray(places * numbers.step + numbers.start)
    selected: Numbers = numbers[places]
    return selected


def _place(which: object, count: int, what: str) -> int:
    """Returns the place that an index means, from 0 on. `what` says in which object it is."""
    if isinstance(which, np.ndarray):
        which = which[()]
    if isinstance(which, (bool, np.bool_)) or not hasattr(which, "__index__"):
        raise TypeError(f"a sample is found by its number{' or its name' if what == 'data set' else ''}, and several "
                        f"samples by a slice, a mask or a list of numbers, not by {type(which).__name__}")
    number: int = which.__index__()
    if not -count <= number < count:
        raise IndexError(f"sample {number} is out of range: the {what} has {count} samples")
    return number % count


class View(Sequence[Item]):
    """Some samples of a data set, or their names: a sequence that reads nothing before it is asked for an item."""

    __slots__ = ("_data", "_numbers")

    def __init__(self, data: Dataset, numbers: Numbers) -> None:
        self._data = data
        self._numbers = numbers

    def _item(self, number: int) -> Item:
        raise NotImplementedError

    def _place_of(self, value: object) -> int | None:
        """Returns the first place of an item, or None."""
        number = None
        if isinstance(value, str):
            number = self._data.find(value)
        elif isinstance(value, Sample) and value._set is self._data._open():
            number = value.number
        if number is None:
            return None
        if isinstance(self._numbers, range):
            return self._numbers.index(number) if number in self._numbers else None
        found = np.flatnonzero(self._numbers == number)
        return int(found[0]) if len(found) else None

    @property
    def numbers(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The numbers of the samples in the data set."""
        if isinstance(self._numbers, range):
            return np.arange(self._numbers.start, self._numbers.stop, self._numbers.step, dtype=np.int64)
        return np.array(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, which: int) -> Item: ...
    @overload
    def __getitem__(self, which: Several) -> View[Item]: ...
    def __getitem__(self, which: int | Several) -> Item | View[Item]:
        if _is_several(which):
            return type(self)(self._data, _selected(self._numbers, which))
        return self._item(int(self._numbers[_place(which, len(self), "view")]))

    def __iter__(self) -> Iterator[Item]:
        for number in self._numbers:
            yield self._item(int(number))

    def __contains__(self, value: object) -> bool:
        return self._place_of(value) is not None

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """Returns the place of a sample or a name. Raises ValueError if it is not in the view."""
        found = self._place_of(value)
        if found is None or found not in range(*slice(start, stop).indices(len(self))):
            raise ValueError(f"{value!r} is not in {self!r}")
        return found

    def __repr__(self) -> str:
        return f"l3.{type(self).__name__}({len(self)} of {self._data!r})"


class Samples(View[Sample]):
    """Some samples of a :class:`Dataset`: ``data[10:20]``, ``data[mask]`` or ``data[[3, 1, 4]]``.

    Nothing is read or decoded before an item is used. Ranges take no memory, other selections 8 bytes per sample.
    """

    __slots__ = ()

    def _item(self, number: int) -> Sample:
        return self._data._sample(self._data._open(), number)

    @overload
    def __getitem__(self, which: int) -> Sample: ...
    @overload
    def __getitem__(self, which: Several) -> Samples: ...
    def __getitem__(self, which: int | Several) -> Sample | Samples:
        return super().__getitem__(which)  # type: ignore[return-value]

    @property
    def names(self) -> Names:
        """The names of the samples."""
        return Names(self._data, self._numbers)

    @property
    def labels(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The labels of the samples; -1 if one has none."""
        whole = self._data.labels
        if isinstance(self._numbers, range):
            return whole[self.numbers] if self._numbers.step != 1 else whole[self._numbers.start:self._numbers.stop]
        return whole[self._numbers]


class Names(View[str]):
    """Names of samples: ``data.names``, ``data[10:20].names``."""

    __slots__ = ()

    def _item(self, number: int) -> str:
        return self._data._open().name_of(number)


@dataclass(frozen=True)
class CacheInfo:
    """What the cache of a data set is to hold, and what it did since the data set was opened.

    A crop of a large image may take several reads.
    """

    places: int
    samples: int
    """that it is to hold"""
    bytes: int
    hits: int
    """reads of these samples that it answered"""
    hit_bytes: int
    misses: int
    """reads of these samples that the store answered"""
    miss_bytes: int
    others: int
    """reads of samples that it is not to hold"""
    other_bytes: int
    kept: int
    """samples that were written to it"""
    damaged: int
    """samples that were damaged, in the cache or in the store, and were read once more"""
    failures: int
    """how often a place could not be read or written"""
    last_failure: str | None
    """the place and the reason"""

    @property
    def hit_rate(self) -> float:
        """The share of all reads that the cache answered, from 0 to 1."""
        return self.hits / max(self.hits + self.misses + self.others, 1)


def cache_of(native: _native.DataSet) -> CacheInfo | None:
    described = native.describe_cache()
    return None if described is None else CacheInfo(**described)


class Dataset:
    """A data set (a folder with index.json) or a single shard: a sequence of :class:`l3.Sample`.

    It may be on a web server, on S3 or in Redis (docs/stores.md), or in any :class:`l3.Store`.

    >>> with l3.Dataset("set/") as data:
    ...     print(len(data), data.classes)
    ...     pixels = data[0].decode()
    ...     pixels = data["a/b.png"].decode(layout="CHW")
    ...     cats = data[data.labels == 3]                              # also data[-100:] and data[[3, 1, 4]]

    Opening reads and verifies the indexes, but no sample. Any number of threads may use a data set at once. It survives
    a fork, and can be pickled: the copy opens the same path, or a copy of the store. It starts no threads, except one
    for a far store, and those that call the methods of an l3.Store.

    path
        the folder of a data set, a shard, a URL that begins with http, https, s3, redis or rediss, or an l3.Store.
    max_open_files
        how many shards stay open; 0: half of the files that the process may open.
    timeout, attempts, connections, hedge, certificates
        for a far store: the seconds that a request may make no progress; how often a request is sent until it fails;
        requests in progress at once; whether to send a second request if the first one takes much longer than others
        do; and a PEM file with the authorities to trust. None: the environment variables L3_TIMEOUT, L3_ATTEMPTS,
        L3_CONNECTIONS, L3_HEDGE and L3_CERTIFICATES, and without them 30 seconds, 6, 256, no, and those of the system.
        For an l3.Store only `timeout` and `connections` count. It has its own number of connections.
    cache
        where to keep samples, so that each one is read from its store only once (docs/cache.md): a dict from places
        to sizes, ``{"/dev/shm/l3": "8GB", "redis://node1": "65%"}``. A place is a folder or the URL of a store. A size
        is a text, or a number of bytes. None: no cache.
    """

    def __init__(self, path: str | os.PathLike[str] | Store, *, max_open_files: int = 0, timeout: float | None = None,
                 attempts: int | None = None, connections: int | None = None, hedge: bool | None = None,
                 certificates: str | os.PathLike[str] | None = None, cache: Cache = None) -> None:
        self._store = path if is_store(path) else None
        self._path = name_of(path) if self._store is not None else os.fsdecode(path)  # type: ignore[arg-type]
        places = arguments.cache_places(cache)
        self._options: dict[str, Any] = {
            "max_open_files": max_open_files, "timeout": timeout, "attempts": attempts, "connections": connections,
            "hedge": hedge, "certificates": certificates, "cache": places or None}
        native_options = {
            "max_open_files": arguments.whole_number("max_open_files", max_open_files),
            "timeout_ms": arguments.milliseconds("timeout", timeout),
            "attempts": 0 if attempts is None else arguments.whole_number("attempts", attempts, 1),
            "connections": 0 if connections is None else arguments.whole_number("connections", connections, 1),
            "hedge": int(hedge is not None and arguments.truth("hedge", hedge))}
        self._runner: Runner | None = None
        self._native: _native.DataSet | None = None
        if self._store is not None:
            self._runner = Runner(self._store, connections)
            self._native = self._runner.open(native_options, os.fsencode(places))
        else:
            self._native = _native.DataSet.open(
                arguments.path_bytes(self._path), native_options,
                b"" if certificates is None else arguments.path_bytes(certificates), os.fsencode(places))
        described = self._native.describe()
        self._count: int = described["samples"]
        self._classes: list[str] = described["classes"]
        self._group_count: int = described["groups"]
        self._shards: int = described["shards"]
        self._size: int = described["bytes"]
        self._roles: list[str] | None = None
        self._labels: np.ndarray[Any, np.dtype[np.int64]] | None = None

    @property
    def path(self) -> str:
        """The path or URL, or the name of the store."""
        return self._path

    @property
    def classes(self) -> list[str]:
        """The names of the labels, beginning with label 0. Empty if labels have no names."""
        return list(self._classes)

    @property
    def groups(self) -> int:
        """The number of groups. A group is a set of samples that belong together, such as an image and its labels."""
        return self._group_count

    @property
    def shards(self) -> int:
        return self._shards

    @property
    def size(self) -> int:
        """The size of all shards in bytes."""
        return self._size

    @property
    def roles(self) -> list[str]:
        """The roles of the samples, in the order of their first use."""
        if self._roles is None:
            self._roles = self._open().roles()
        return list(self._roles)

    @property
    def names(self) -> Names:
        """The names of all samples. A sequence; each name is read from the index when it is used."""
        return Names(self, range(self._count))

    @property
    def labels(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The labels of all samples, read-only; -1 for a sample without one."""
        if self._labels is None:
            self._labels = np.frombuffer(self._open().labels(), np.int64)
        return self._labels

    @property
    def cache(self) -> CacheInfo | None:
        """What the cache did; None if the data set has none."""
        return cache_of(self._open())

    def group(self, number: int) -> list[Sample]:
        """Returns the samples of a group."""
        number = arguments.whole_number("group", number, -2**63, 2**64 - 1)
        if not 0 <= number < self._group_count:
            raise IndexError(f"group {number} is out of range: the data set has {self._group_count} groups")
        first, count = self._open().group(number)
        return [self[i] for i in range(first, first + count)]

    def find(self, name: str) -> int | None:
        """Returns the number of the sample with this name, or None."""
        if not isinstance(name, str):
            raise TypeError(f"name is {name!r}, but must be a str")
        return self._open().find(name.encode("utf-8", "surrogateescape"))

    def close(self) -> None:
        """Closes this object. Samples and loaders that use the data set continue; the last one closes its files."""
        self._native = None

    @property
    def closed(self) -> bool:
        return self._native is None

    def _open(self) -> _native.DataSet:
        if self._native is None:
            raise ValueError(f"the data set {arguments.without_secrets(self._path)!r} is closed")
        if self._runner is not None:
            self._runner.ensure_started()
        return self._native

    def _sample(self, native: _native.DataSet, number: int) -> Sample:
        runner = self._runner
        return Sample(native, number, self._classes,
                      native.read if runner is None else lambda number: runner.run(lambda: native.read(number)))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, which: int | str) -> Sample: ...
    @overload
    def __getitem__(self, which: Several) -> Samples: ...
    def __getitem__(self, which: int | str | Several) -> Sample | Samples:
        native = self._open()
        if isinstance(which, str):
            found = self.find(which)
            if found is None:
                raise KeyError(which)
            return self._sample(native, found)
        if _is_several(which):
            return Samples(self, _selected(range(self._count), which))
        return self._sample(native, _place(which, self._count, "data set"))

    def __iter__(self) -> Iterator[Sample]:
        for number in range(self._count):
            yield self[number]

    def __contains__(self, which: object) -> bool:
        return isinstance(which, str) and self.find(which) is not None

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> tuple[Any, dict[str, Any]]:
        if self._store is not None:
            return self._store, self._options
        return self._path if "://" in self._path else os.path.abspath(self._path), self._options

    def __setstate__(self, state: tuple[Any, dict[str, Any]]) -> None:
        self.__init__(state[0], **state[1])  # type: ignore[misc]

    def __repr__(self) -> str:
        name = arguments.without_secrets(self._path)
        return f"l3.Dataset({name!r}, {self._count} samples" + (", closed)" if self.closed else ")")
