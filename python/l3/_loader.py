"""Batches for training."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Optional, Union

import numpy as np

from . import _arguments as arguments
from . import _native
from . import _units as units
from ._arguments import Cache
from ._coding import Array
from ._dataset import CacheInfo, Dataset, cache_of
from ._store import Store, is_store

Images = Union[Array, _native.Tensor]

_ORDERS = {False: "stored", True: "shuffled", "windows": "windows"}
_ORDER_NAMES = ("stored", "shuffled", "windows")
_ENDINGS = ("even", "pad", "drop", "uneven")
_ON_ERROR = ("raise", "skip", "zero")
_READING = ("auto", "uring", "threads")
_CROPS = {"centre": 1, "center": 1, "random": 2}
_STATE_VERSION = 1
_Failures = tuple[list[tuple[int, Optional[int], str, str, str, Optional[int]]], int]


@dataclass(frozen=True)
class BatchTimes:
    """When the steps of a batch happened, in nanoseconds since the loader was made; 0 if a step did not happen."""

    begun: int
    """its files were requested"""
    fetched: int
    """the last file had arrived"""
    copy_begun: int
    """the copy to a GPU began"""
    copied: int
    """the copy to a GPU ended"""
    decode_begun: int
    """decoding of the first image began"""
    decoded: int
    """decoding of the last image ended"""
    asked: int
    """the loop asked for the batch"""
    given: int
    """the loop received the batch; ``given - asked`` is the time for which it waited"""
    reading: int
    """time that threads spent reading, summed"""
    decoding: int
    """time that threads spent decoding, summed"""
    converting: int
    """the part of it that made values of the wanted type of the samples"""
    bytes_read: int
    """bytes of files"""
    bytes_out: int
    """bytes of arrays"""


@dataclass(frozen=True)
class Request:
    """A read from a store. Times are in nanoseconds since the loader was made; 0 if a step did not happen."""

    batch: int
    """the number of its batch"""
    sample: int
    """the number of its sample in the data set"""
    offset: int
    """in the sample"""
    bytes: int
    queued: int
    """the loader asked for it"""
    sent: int
    """it was sent; the last time if it was repeated"""
    answered: int
    """the first byte arrived"""
    finished: int
    attempts: int
    """how often it was sent"""
    shared: int
    """how many other reads the same request served"""
    hedged: bool
    """it was slow, so a second one was sent"""
    failed: bool
    cached: bool
    """a cache answered it"""


@dataclass(frozen=True)
class Sharing:
    """What became of sharing batches (``share``) since the loader was made."""

    jobs: int
    """how many loaders are attached now, with this one"""
    from_other_jobs: int
    """batches that came from another loader"""
    prepared_for_all: int
    """batches that this loader prepared for all"""
    prepared_alone: int
    """batches that this loader prepared for itself, because they did not come"""


@dataclass(frozen=True)
class Failure:
    """A unit that could not be read or decoded."""

    epoch: int
    sample: int | None
    name: str | None
    reason: str
    file: str | None
    offset: int | None


class _Arrays(NamedTuple):
    images: Any
    """an array in the loader's layout, units first; with ``roles`` a dict of arrays"""
    labels: Any
    """the label of each unit, int64; -1 if it has none"""
    ids: Any
    """the sample number of each unit (of its first role), int64"""


class Batch(_Arrays):
    """A batch of units, as a named tuple: ``images, labels, ids = batch``.

    On a CPU these are NumPy arrays. On a GPU images and labels are :class:`l3.Tensor`. You may keep a batch as long as
    you like: its memory returns to the loader when the last array that uses it is gone, including arrays that other
    libraries made of it.
    """

    repeats: int = 0
    """how many of the last units appear for the second time in this epoch"""
    failed: int = 0
    """how many units were skipped or are zero (``on_error``)"""
    epoch: int = 0
    number: int = 0
    position: int = 0
    """units that all ranks together have taken since the epoch began, including this batch"""
    times: BatchTimes
    _set: _native.DataSet | None = None
    _names: list[str] | None = None

    @property
    def names(self) -> list[str]:
        """The names of the samples in `ids`."""
        if self._set is None:
            raise AttributeError("this batch is a copy, as torch's DataLoader makes it, with arrays only: "
                                 "loader.data[number].name is the name for each number in ids")
        if self._names is None:
            self._names = [self._set.name_of(int(number)) for number in self.ids]
        return list(self._names)

    def __repr__(self) -> str:
        return f"l3.Batch({len(self.ids)} units, epoch {self.epoch}, position {self.position})"


def _batch(native: _native.Batch, roles: Sequence[str] | None, layouts: Sequence[str],
           data_set: _native.DataSet) -> Batch:
    arrays: list[Any] = [_array(tensor) for tensor in native.tensors(len(layouts))]
    for i, layout in enumerate(layouts):
        if layout == "HW":
            arrays[i] = arrays[i][..., 0]
    images = dict(zip(roles, arrays)) if roles is not None else arrays[0]  # noqa: B905 (Python 3.9)
    batch = Batch(images, _array(native.labels()), np.asarray(native.ids()))
    batch.repeats, batch.failed = native.repeats, native.failed
    batch.epoch, batch.number, batch.position = native.epoch, native.number, native.position
    batch.times = BatchTimes(**native.times())
    batch._set = data_set
    return batch


def _array(tensor: _native.Tensor) -> Images:
    # NumPy has neither bfloat16 nor arrays on a GPU.
    return tensor if tensor.device != "cpu" or tensor.dtype == "bfloat16" else np.asarray(tensor)


class Loader:
    """Reads, decodes and delivers a data set in batches, epoch after epoch.

    >>> loader = l3.Loader("train/", 64, crop=(512, 1024), dtype="float16", mean=[0.5] * 3, std=[0.25] * 3)
    >>> for epoch in range(90):
    ...     for images, labels, ids in loader:
    ...         ...

    Each loop is one epoch, beginning with epoch 0. A *unit* is what an epoch delivers once: a group of the data set. In
    a data set of single images, each image is a group.

    The order of units depends only on seed, order, epoch and position. It does not depend on threads or on the number
    of ranks.

    Use one process per GPU and no worker processes: a loader has its own threads, cannot be pickled, and does not
    survive a fork. If your code needs torch's DataLoader, write ``DataLoader(loader, batch_size=None)`` without
    workers, and import torch before you make the loader.

    A loader allows one loop at a time. ``close()`` ends its threads, and so do ``with``, the garbage collector and the
    end of the interpreter.

    data
        a path, a URL, an :class:`l3.Dataset` or an :class:`l3.Store`.
    batch_size
        units per batch on each rank.
    shuffle
        True: a random order of all units. False: the stored order. ``"windows"``: a random order of the shards, and of
        the units within each `window` consecutive shards, for storage with slow random access.
    seed
        the seed of order, crops and mirroring.
    crop, crop_mode
        (height, width) of the crop, or one number for both. `crop_mode` is ``"random"`` or ``"centre"``. All roles of a
        unit get the same crop. None: whole images, which must all have the same size.
    flip
        True: mirror half of the units, left to right.
    dtype, mean, std
        as in :func:`l3.decode`. With `roles` they apply to the first role, and the others are delivered as stored. A
        mapping from roles to values sets them per role.
    layout
        ``"CHW"`` or ``"HWC"``; ``"HW"`` for images of one channel on a CPU. A mapping from roles sets it per role.
    roles
        the roles to deliver, if groups have more than one image: ``["image", "labels"]``. ``batch.images`` is then a
        dict.
    colours
        True: palette images become colours. False: they stay indices. A list of roles: only these become colours.
    device, stream
        ``"cuda"`` or ``"cuda:1"``: decode on that GPU. `stream` is the stream that uses a batch if DLPack does not name
        one.
    rank, world_size
        the number of this process, and how many processes share each epoch.
    last_batch
        what to do if the number of units is not a multiple of the batches of all ranks. ``"even"``: the last batch is
        smaller, with at most one repeat per rank. ``"pad"``: repeats fill it. ``"drop"``: it is left out.
        ``"uneven"``: no repeats; ranks may differ by one unit and by one batch.
    on_error
        what to do if a unit cannot be read or decoded. ``"raise"``: raise :class:`l3.SampleError` instead of delivering
        its batch; ``next`` continues with the batch after it. ``"skip"``: leave the unit out. ``"zero"``: deliver
        zeros and label -1. ``failures`` lists all failures.
    ordered
        False: deliver each batch as soon as it is complete, so that one slow file delays only its own batch. The
        batches are the same, each comes once, and their ids say what they contain.
    threads, prefetch
        the number of threads that read and decode, and of batches to prepare ahead; 0 and None choose. More batches of
        a far store are on their way while batches come late.
    reading
        ``"auto"``, ``"uring"`` (io_uring) or ``"threads"``.
    max_bytes_in_flight
        limit for the bytes of files that are requested and not yet decoded; None: 256 MiB.
    share, jobs, share_timeout
        `share` is a name: the loaders of this machine with this name, such as those of a hyper-parameter search, share
        batches. Each batch is read and decoded once, and each loader gets it once. `jobs` is how many there will be
        (None: 2). `share_timeout` is for how many seconds they wait for one that does not start or takes nothing
        (None: 60). All options that change a batch must be the same: otherwise the first ``next`` raises ValueError.
    samples
        numbers or names of samples. Only the groups that contain them are units.
    max_pixels, max_bytes
        limits for each image, as in :func:`l3.decode`.
    cache
        as in :class:`l3.Dataset`, if `data` is a path, a URL or a store.
    """

    def __init__(self, data: str | os.PathLike[str] | Dataset | Store, batch_size: int, *,
                 shuffle: bool | str = True, seed: int = 0, window: int = 8,
                 crop: int | Sequence[int] | None = None, crop_mode: str = "random", flip: bool = False,
                 dtype: object = None, layout: str | Mapping[str, str] = "CHW", mean: object = None, std: object = None,
                 roles: Sequence[str] | None = None, colours: bool | Sequence[str] = False,
                 device: object = "cpu", stream: object = None, rank: int = 0, world_size: int = 1,
                 last_batch: str = "even", on_error: str = "raise", ordered: bool = True, threads: int = 0,
                 prefetch: int | None = None, reading: str = "auto", max_bytes_in_flight: int | None = None,
                 share: str | None = None, jobs: int | None = None, share_timeout: float | None = None,
                 samples: Sequence[int | str] | None = None, max_pixels: int | None = None,
                 max_bytes: int | None = None, cache: Cache = None) -> None:
        if not isinstance(shuffle, (bool, np.bool_)) and not (isinstance(shuffle, str) and shuffle == "windows"):
            raise ValueError(f"shuffle is {shuffle!r}, but must be True, False or 'windows'")
        arguments.one_of("crop_mode", crop_mode, tuple(_CROPS))
        cut = [0, 0] if crop is None else arguments.two_edges("crop", crop, "(height, width)", 1)
        world_size = arguments.whole_number("world_size", world_size, 1)
        number = arguments.is_gpu(device)
        self._order = _ORDERS["windows" if shuffle == "windows" else bool(shuffle)]
        self._seed = arguments.whole_number("seed", seed, 0, 2**64 - 1)
        self._window = arguments.whole_number("window", window, 1)
        self._batch_size = arguments.whole_number("batch_size", batch_size, 1)
        self._world_size = world_size
        self._rank = arguments.whole_number("rank", rank, 0, world_size - 1)
        self._last_batch = arguments.one_of("last_batch", last_batch, _ENDINGS)
        self._ordered = arguments.truth("ordered", ordered)
        options: dict[str, Any] = {
            "batch_size": self._batch_size,
            "seed": self._seed,
            "rank": self._rank,
            "world_size": world_size,
            "order": _ORDER_NAMES.index(self._order),
            "window": self._window,
            "ending": _ENDINGS.index(self._last_batch),
            "on_error": _ON_ERROR.index(arguments.one_of("on_error", on_error, _ON_ERROR)),
            "delivery": int(not self._ordered),
            "crop": 0 if crop is None else _CROPS[crop_mode],
            "crop_width": cut[1],
            "crop_height": cut[0],
            "flip": int(arguments.truth("flip", flip)),
            "device": int(number is not None),
            "device_number": number or 0,
            "threads": arguments.whole_number("threads", threads, 0, 1024),
            "prefetch": 0 if prefetch is None else arguments.whole_number("prefetch", prefetch, 0, 1024),
            "reading": _READING.index(arguments.one_of("reading", reading, _READING)),
            "max_bytes_in_flight": 0 if max_bytes_in_flight is None else arguments.whole_number(
                "max_bytes_in_flight", max_bytes_in_flight, 1, 2**64 - 1),
            "max_pixels": 0 if max_pixels is None else arguments.whole_number("max_pixels", max_pixels, 1, 2**64 - 1),
            "max_bytes": 0 if max_bytes is None else arguments.whole_number("max_bytes", max_bytes, 1, 2**64 - 1),
            "stream": arguments.stream_address(stream, number) if number is not None else 0,
        }
        if share is not None:
            if not isinstance(share, str):
                raise TypeError(f"share is {share!r}, but must be a name")
            options["share"] = share
            options["jobs"] = 0 if jobs is None else arguments.whole_number("jobs", jobs, 1, 1024)
            options["share_timeout_ms"] = arguments.milliseconds("share_timeout", share_timeout)
        elif jobs is not None or share_timeout is not None:
            raise ValueError("jobs and share_timeout are for loaders with share")
        if roles is not None:
            listed = [] if isinstance(roles, str) or not hasattr(roles, "__iter__") else list(roles)
            if not listed or not all(isinstance(role, str) for role in listed):
                raise ValueError(f"roles is {roles!r}, but must be a list of role names")
            roles = listed
            if len(set(roles)) != len(roles):
                raise ValueError(f"roles is {roles!r}, but must not name a role twice")
        self._roles = None if roles is None else list(roles)

        self._data = _open_data(data, cache)
        self._set = self._data._open()
        groups = None if samples is None else units.groups_of(self._data, samples)
        self._selection = None if groups is None else units.digest(groups)
        names: list[str | None] = [None] if self._roles is None else list(self._roles)
        self._layouts = units.layouts_of(layout, names)
        wanted, scalings = units.wanted(self._set, self._roles, groups, self._layouts, dtype, mean, std, colours)
        self._native = _native.Loader(self._set, options, wanted, groups)
        for (shape, kind), numbers, one in zip(self._native.tensors(), scalings, self._layouts):  # noqa: B905
            channels = shape[1 if one == "CHW" else 3]
            for name, values in numbers.items():
                arguments.check_channels(name, values, channels)
            if one == "HW" and (channels != 1 or number is not None or kind == "bfloat16"):
                self._native.close()
                raise ValueError(f"layout 'HW' is for NumPy arrays of one channel, but these images have {channels}"
                                 if channels != 1 else "layout 'HW' is for NumPy arrays: use 'CHW' or 'HWC' here")
        described = self._native.describe()
        self._units: int = described["units"]
        self._batches: int = described["batches"]
        self._described = described
        # The epoch of the running loop, or of the next one if `_begun` is not set.
        self._epoch = 0
        self._position = 0
        self._ahead: list[int] = []  # where the next loop leaves out batches
        self._begun = False
        self._loops = 0
        self._last_failures: _Failures = ([], 0)
        _loaders.add(self)
        _be_iterable_for_torch()

    # -------------------------------------------------------------------------------------------------------- loops

    def __iter__(self) -> Iterator[Batch]:
        """Begins the next epoch, or continues at the position of load_state_dict."""
        if self._begun:
            self._epoch, self._position, self._ahead = self._epoch + 1, 0, []
        self._native.start(self._epoch, self._position, self._ahead)
        self._begun = True
        self._loops += 1
        return _Loop(self, self._loops)

    def __len__(self) -> int:
        """The number of batches in a whole epoch on this rank."""
        return self._batches

    def __getitem__(self, which: object) -> NoReturn:
        raise TypeError("an l3.Loader cannot be indexed: loop over it. For torch's DataLoader, import torch "
                        "before making the loader, and write DataLoader(loader, batch_size=None)")

    def set_epoch(self, epoch: int) -> None:
        """Makes the next loop run this epoch from its beginning. Call it between
        loops: a loop that is running raises RuntimeError at its next step.
        """
        epoch = arguments.whole_number("epoch", epoch, 0, 2**63 - 1)
        self._go_to(epoch, 0)

    def _go_to(self, epoch: int, position: int, ahead: Sequence[int] = ()) -> None:
        self._loops += 1  # a loop that runs ends
        self._epoch, self._position, self._ahead, self._begun = epoch, position, list(ahead), False

    def _next(self, loop: int) -> Batch:
        if loop != self._loops:
            raise RuntimeError("another loop over this loader has begun: a loader allows one loop at a time")
        try:
            native = self._native.next()
        finally:
            self._position = self._native.position
        if native is None:
            self._go_to(self._epoch + 1, 0)
            raise StopIteration
        return _batch(native, self._roles, self._layouts, self._set)

    # -------------------------------------------------------------------------------------------------------- state

    @property
    def epoch(self) -> int:
        """The number of the running epoch, or of the next one."""
        return self._epoch

    @property
    def units(self) -> int:
        """The number of units in an epoch, on all ranks together."""
        return self._units

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the loop as a small dict, which JSON and torch.save can store.

        It counts the batches that the loop has received. It is the same on all ranks, but not with ``ordered=False``.
        At the end of an epoch it is the beginning of the next one.
        """
        epoch, position = self._epoch, self._position
        left = self._units - position
        if left <= 0 or (self._last_batch == "drop" and position and left < self._batch_size * self._world_size):
            epoch, position = epoch + 1, 0
        state = {"version": _STATE_VERSION, "epoch": epoch, "position": position, "units": self._units,
                 "seed": self._seed, "order": self._order,
                 "window": self._window if self._order == "windows" else None, "samples": self._selection}
        if not self._ordered:  # which batches came ahead depends on how ranks share the epoch
            ahead = self._native.ahead() if self._begun else self._ahead
            state["ahead"] = ahead if epoch == self._epoch else []
            state["sharing"] = [self._batch_size, self._rank, self._world_size, self._last_batch]
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next loop continue at the position of a state.

        Data set, seed, order and samples must be the same as when the state was taken; otherwise ValueError names the
        difference. Batch size and number of ranks may differ, but not with ``ordered=False``: the units that follow
        are the same, in the same order.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"state is {type(state).__name__}, but must be a dict from l3.Loader.state_dict()")
        own = self.state_dict()
        missing = [name for name in own if name not in state]
        if missing:
            raise ValueError(f"state has no {missing[0]!r}: it is not from l3.Loader.state_dict()")
        if "ahead" in state and self._ordered:
            raise ValueError("the state was taken with ordered=False, but this loader has ordered=True")
        for name in ("version", "units", "seed", "order", "window", "samples", "sharing"):
            if state.get(name) != own.get(name):
                raise ValueError(f"the state was taken with {name} {state[name]!r}, but this loader has {own[name]!r}")
        epoch = arguments.whole_number("state['epoch']", state["epoch"], 0, 2**63 - 1)
        position = arguments.whole_number("state['position']", state["position"], 0, self._units)
        self._go_to(epoch, position, [arguments.whole_number("state['ahead']", begin, position, self._units)
                                      for begin in state.get("ahead", [])])

    # ------------------------------------------------------------------------------------------------------ reports

    @property
    def data(self) -> Dataset:
        return self._data

    @property
    def cache(self) -> CacheInfo | None:
        """What the cache of the data set did; None if it has none."""
        return cache_of(self._set)

    @property
    def failures(self) -> list[Failure]:
        """The failures since the loader was made, at most the first 1000."""
        found, _ = self._failures()
        return [Failure(epoch, sample, name or None, reason, file or None, offset)
                for epoch, sample, name, reason, file, offset in found]

    @property
    def failure_count(self) -> int:
        """The number of units that failed since the loader was made."""
        return self._failures()[1]

    @property
    def sharing(self) -> Sharing:
        """How many loaders share batches now, and where the batches came from."""
        told = self._native.describe()
        return Sharing(**{name: told[name] for name in Sharing.__dataclass_fields__})

    def timeline(self) -> list[BatchTimes]:
        """Returns the times of the last delivered batches, at most 4096, oldest first."""
        return [BatchTimes(**times) for times in self._native.timeline()]

    def requests(self) -> list[Request]:
        """Returns the last reads from the store, at most 65,536, oldest first. Local files that the system has in
        memory need none."""
        return [Request(**request) for request in self._native.requests()]

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the timeline and the requests to a file for chrome://tracing and ui.perfetto.dev."""
        self._native.write_trace(arguments.path_bytes(path))

    def close(self) -> None:
        """Ends the threads. Delivered batches stay valid, and ``failures`` can still be read."""
        if not self._native.closed:
            self._last_failures = self._native.failures()
            self._native.close()

    def _failures(self) -> _Failures:
        return self._last_failures if self._native.closed else self._native.failures()

    @property
    def closed(self) -> bool:
        return self._native.closed

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("an l3.Loader cannot be pickled, because it has threads: make it in the process that uses "
                        "it. torch.utils.data.DataLoader can use it only without workers")

    def __repr__(self) -> str:
        name = arguments.without_secrets(self._data.path)
        return (f"l3.Loader({name!r}, {self._units} units in {self._batches} batches of {self._batch_size}"
                + (", closed)" if self.closed else ")"))


class _Loop(Iterator[Batch]):
    """One loop over a loader. It can continue after an exception."""

    def __init__(self, loader: Loader, number: int) -> None:
        self._loader = loader
        self._number = number
        self._ended = False

    def __next__(self) -> Batch:
        if self._ended:
            raise StopIteration
        try:
            return self._loader._next(self._number)
        except StopIteration:
            self._ended = True
            raise

    def __length_hint__(self) -> int:
        return 0 if self._ended else self._loader._native.batches_from(self._loader._position)


def _open_data(data: object, cache: Cache) -> Dataset:
    """Returns a data set, opened if `data` is a path or a store."""
    if isinstance(data, Dataset):
        if cache is not None:
            raise ValueError("cache is for a path, a URL or a store: give the cache to l3.Dataset instead")
        return data
    if isinstance(data, (str, os.PathLike)) or is_store(data):
        return Dataset(data, cache=cache)  # type: ignore[arg-type]
    raise TypeError(f"data is {type(data).__name__}, but must be a path, an l3.Dataset or an l3.Store")


def _be_iterable_for_torch() -> None:
    """Registers the loader as IterableDataset, because torch's DataLoader indexes everything else."""
    data_set = getattr(sys.modules.get("torch.utils.data"), "IterableDataset", None)
    if data_set is not None and not issubclass(Loader, data_set):
        data_set.register(Loader)


_loaders: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for loader in list(_loaders):
        loader._native.close_at_end()
