"""Batches for training."""

from __future__ import annotations

import atexit
import hashlib
import os
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Optional, Union

import numpy as np

from . import _arguments as arguments
from . import _native
from ._coding import Array
from ._dataset import Dataset

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
    """When things happened to a batch, in nanoseconds since the loader was made; 0 where they did not."""

    begun: int
    """its files were asked for"""
    fetched: int
    """the last file was there"""
    copy_begun: int
    copied: int
    """to a GPU"""
    decode_begun: int
    decoded: int
    asked: int
    """by the loop"""
    given: int
    """to the loop"""
    reading: int
    """how long threads read, added up"""
    decoding: int
    """how long threads decoded, added up"""
    bytes_read: int
    bytes_out: int


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
    """an array of the loader's layout, units first; with ``roles`` a dict of them"""
    labels: Any
    """int64; -1 where there is none"""
    ids: Any
    """for each unit the number of the sample that it is made of (of the first role): an array of int64"""


class Batch(_Arrays):
    """What a loop gets: ``images, labels, ids = batch``, a tuple with names.

    On a CPU these are NumPy arrays, on a GPU images and labels are :class:`l3.Tensor`. A batch may be kept: its memory
    goes back to the loader with the last of its arrays, and of what other libraries made of them.
    """

    repeats: int = 0
    """how many units at the end are there for the second time in this epoch"""
    failed: int = 0
    """how many were skipped, or are zero"""
    epoch: int = 0
    number: int = 0
    position: int = 0
    """units that all ranks have taken with this batch, since the epoch began"""
    times: BatchTimes
    _set: _native.DataSet | None = None
    _names: list[str] | None = None

    @property
    def names(self) -> list[str]:
        """The names of the samples of `ids`."""
        if self._set is None:
            raise AttributeError("this batch was made of another one, as torch's DataLoader does, and has the arrays "
                                 "alone: loader.data[number].name is the name of each number in ids")
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
    # NumPy has no bfloat16, and nothing on a GPU.
    return tensor if tensor.device != "cpu" or tensor.dtype == "bfloat16" else np.asarray(tensor)


class Loader:
    """Reads, decodes and delivers a data set in batches, epoch after epoch.

    >>> loader = l3.Loader("train/", 64, crop=(512, 1024), dtype="float16", mean=[0.5] * 3, std=[0.25] * 3)
    >>> for epoch in range(90):
    ...     for images, labels, ids in loader:
    ...         ...

    Each loop is an epoch: the first one is epoch 0. A *unit* is what an epoch has once: a group of the data set, which
    is a single image unless the data set has more. What comes is a pure function of seed, order, epoch and position,
    never of threads, and does not depend on how many ranks share it. One process for each GPU, and no workers: a
    loader has threads of its own, cannot be pickled, and does not survive a fork. Where a program wants a DataLoader
    of torch, ``DataLoader(loader, batch_size=None)`` is one, without workers (import torch before making the loader).

    data
        a path or an :class:`l3.Dataset`.
    batch_size
        units of a batch, on each rank.
    shuffle
        True: any unit anywhere; False: as stored; ``"windows"``: shards in any order, and the units of `window` shards
        in a row in any order among them, for stores where reading here and there is slow.
    seed
        of order, crops and mirroring.
    crop, crop_mode
        (height, width) of what is cut out of each image, or a number for both, at random or in the ``"centre"``: alike
        for all roles. None: whole images, which must have one size.
    flip
        mirrors half of the units, left to right.
    dtype, mean, std
        as for :func:`l3.decode`. With `roles` they are those of the first role, and others come as stored; a mapping
        from roles says it for each.
    layout
        ``"CHW"``, ``"HWC"``, or ``"HW"`` for images of one channel on a CPU; a mapping from roles says it for each.
    roles
        for groups of more than an image: ``["image", "labels"]``. ``batch.images`` is then a dict.
    colours
        palette images become colours; otherwise they are indices. A list of roles: of these.
    device, stream
        ``"cuda"`` or ``"cuda:1"`` decodes there. `stream` is the one that a batch's user is taken to have where DLPack
        does not say.
    rank, world_size
        of several processes that share each epoch.
    last_batch
        where units are no multiple of all ranks' batches: ``"even"``: the last one is smaller, with at most one repeat
        on each rank; ``"pad"``: it is filled with repeats; ``"drop"``: it is left out; ``"uneven"``: no repeats, and
        ranks may differ by a unit, and by a batch.
    on_error
        what becomes of a unit that fails: ``"raise"`` an :class:`l3.SampleError` in place of its batch (``next`` goes
        on behind it), ``"skip"`` it, or give ``"zero"`` with label -1. ``failures`` has them all.
    threads, prefetch
        that read and decode, and batches that are made ahead; 0 and None choose.
    reading
        ``"auto"``, ``"uring"`` or ``"threads"``.
    max_bytes_in_flight
        of files that are asked for and not yet decoded; None: 256 MiB.
    samples
        numbers or names of samples: units are the groups that they are in, and no others.
    max_pixels, max_bytes
        of each image, as for :func:`l3.decode`.
    """

    def __init__(self, data: str | os.PathLike[str] | Dataset, batch_size: int, *,
                 shuffle: bool | str = True, seed: int = 0, window: int = 8,
                 crop: int | Sequence[int] | None = None, crop_mode: str = "random", flip: bool = False,
                 dtype: object = None, layout: str | Mapping[str, str] = "CHW", mean: object = None, std: object = None,
                 roles: Sequence[str] | None = None, colours: bool | Sequence[str] = False,
                 device: object = "cpu", stream: object = None, rank: int = 0, world_size: int = 1,
                 last_batch: str = "even", on_error: str = "raise", threads: int = 0, prefetch: int | None = None,
                 reading: str = "auto", max_bytes_in_flight: int | None = None,
                 samples: Sequence[int | str] | None = None, max_pixels: int | None = None,
                 max_bytes: int | None = None) -> None:
        if not isinstance(shuffle, (bool, np.bool_)) and not (isinstance(shuffle, str) and shuffle == "windows"):
            raise ValueError(f"shuffle is {shuffle!r}, and must be True, False or 'windows'")
        arguments.one_of("crop_mode", crop_mode, tuple(_CROPS))
        cut = [0, 0] if crop is None else arguments.two_edges("crop", crop, "(height, width)", 1)
        world_size = arguments.whole_number("world_size", world_size, 1)
        number = arguments.is_gpu(device)
        self._order = _ORDERS["windows" if shuffle == "windows" else bool(shuffle)]
        self._seed = arguments.whole_number("seed", seed, 0, 2**64 - 1)
        self._window = arguments.whole_number("window", window, 1)
        self._batch_size = arguments.whole_number("batch_size", batch_size, 1)
        self._world_size = world_size
        self._last_batch = arguments.one_of("last_batch", last_batch, _ENDINGS)
        options = {
            "batch_size": self._batch_size,
            "seed": self._seed,
            "rank": arguments.whole_number("rank", rank, 0, world_size - 1),
            "world_size": world_size,
            "order": _ORDER_NAMES.index(self._order),
            "window": self._window,
            "ending": _ENDINGS.index(self._last_batch),
            "on_error": _ON_ERROR.index(arguments.one_of("on_error", on_error, _ON_ERROR)),
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
        if roles is not None:
            listed = [] if isinstance(roles, str) or not hasattr(roles, "__iter__") else list(roles)
            if not listed or not all(isinstance(role, str) for role in listed):
                raise ValueError(f"roles is {roles!r}, and must be a list of the names of roles")
            roles = listed
            if len(set(roles)) != len(roles):
                raise ValueError(f"roles is {roles!r}, and has one twice")
        self._roles = None if roles is None else list(roles)

        self._data = arguments.open_data(data)
        self._set = self._data._open()
        groups = None if samples is None else _groups_of(self._data, samples)
        self._selection = None if groups is None else _digest(groups)
        names: list[str | None] = [None] if self._roles is None else list(self._roles)
        self._layouts = _layouts_of(layout, names)
        wanted, scalings = _wanted(self._set, self._roles, groups, self._layouts, dtype, mean, std, colours)
        self._native = _native.Loader(self._set, options, wanted, groups)
        for (shape, kind), numbers, one in zip(self._native.tensors(), scalings, self._layouts):  # noqa: B905
            channels = shape[1 if one == "CHW" else 3]
            for name, values in numbers.items():
                arguments.check_channels(name, values, channels)
            if one == "HW" and (channels != 1 or number is not None or kind == "bfloat16"):
                self._native.close()
                raise ValueError(f"layout 'HW' is for NumPy arrays of one channel, and these images have {channels}"
                                 if channels != 1 else "layout 'HW' is for NumPy arrays: take 'CHW' or 'HWC' here")
        described = self._native.describe()
        self._units: int = described["units"]
        self._batches: int = described["batches"]
        self._described = described
        # The epoch of the running loop, or of the next one where `_begun` is not set.
        self._epoch = 0
        self._position = 0
        self._begun = False
        self._loops = 0
        self._last_failures: _Failures = ([], 0)
        _loaders.add(self)
        _be_iterable_for_torch()

    # -------------------------------------------------------------------------------------------------------- loops

    def __iter__(self) -> Iterator[Batch]:
        """Begins the next epoch, or goes on where load_state_dict said."""
        if self._begun:
            self._epoch, self._position = self._epoch + 1, 0
        self._native.start(self._epoch, self._position)
        self._begun = True
        self._loops += 1
        return _Loop(self, self._loops)

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank."""
        return self._batches

    def __getitem__(self, which: object) -> NoReturn:
        raise TypeError("an l3.Loader has no batches by number: loop over it. For torch's DataLoader, import torch "
                        "before making the loader, and write DataLoader(loader, batch_size=None)")

    def set_epoch(self, epoch: int) -> None:
        """Lets the next loop run that epoch, from its beginning. A loop that runs is not changed."""
        epoch = arguments.whole_number("epoch", epoch, 0, 2**63 - 1)
        self._go_to(epoch, 0)

    def _go_to(self, epoch: int, position: int) -> None:
        self._loops += 1  # a loop that runs ends
        self._epoch, self._position, self._begun = epoch, position, False

    def _next(self, loop: int) -> Batch:
        if loop != self._loops:
            raise RuntimeError("another loop over this loader has begun, and a loader has one at a time")
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
        """Of the running loop, or of the next one."""
        return self._epoch

    @property
    def units(self) -> int:
        """Of an epoch, on all ranks together."""
        return self._units

    def state_dict(self) -> dict[str, Any]:
        """How far the loop has come, in the batches that it has received: a dict that JSON and torch.save take.

        All ranks have the same. At the end of an epoch it says the beginning of the next one.
        """
        epoch, position = self._epoch, self._position
        left = self._units - position
        if left <= 0 or (self._last_batch == "drop" and position and left < self._batch_size * self._world_size):
            epoch, position = epoch + 1, 0
        return {"version": _STATE_VERSION, "epoch": epoch, "position": position, "units": self._units,
                "seed": self._seed, "order": self._order,
                "window": self._window if self._order == "windows" else None, "samples": self._selection}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Lets the next loop go on where a state was taken.

        Data set, seed, order and samples must be as they were (ValueError names what differs); batch size and number of
        ranks need not: the units that follow are the same, in the same order.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"state is {type(state).__name__}, and must be a dict of l3.Loader.state_dict()")
        own = self.state_dict()
        missing = [name for name in own if name not in state]
        if missing:
            raise ValueError(f"state has no {missing[0]!r}: it is none of l3.Loader.state_dict()")
        for name in ("version", "units", "seed", "order", "window", "samples"):
            if state[name] != own[name]:
                raise ValueError(f"the state was taken with {name} {state[name]!r}, and this loader has {own[name]!r}")
        epoch = arguments.whole_number("state['epoch']", state["epoch"], 0, 2**63 - 1)
        self._go_to(epoch, arguments.whole_number("state['position']", state["position"], 0, self._units))

    # ------------------------------------------------------------------------------------------------------ reports

    @property
    def data(self) -> Dataset:
        return self._data

    @property
    def failures(self) -> list[Failure]:
        """What failed since the loader was made, the first thousand."""
        found, _ = self._failures()
        return [Failure(epoch, sample, name or None, reason, file or None, offset)
                for epoch, sample, name, reason, file, offset in found]

    @property
    def failure_count(self) -> int:
        """How many units failed since the loader was made."""
        return self._failures()[1]

    def timeline(self) -> list[BatchTimes]:
        """The times of the last batches that were delivered (up to 4096), oldest first."""
        return [BatchTimes(**times) for times in self._native.timeline()]

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the timeline as a file for chrome://tracing and ui.perfetto.dev."""
        self._native.write_trace(arguments.path_bytes(path))

    def close(self) -> None:
        """Ends the threads. Batches that are there stay as they are, and failures can still be asked for."""
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
        raise TypeError("an l3.Loader cannot be pickled, since it has threads: make it in the process that uses it. "
                        "With torch.utils.data.DataLoader it is used without workers, or on its own")

    def __repr__(self) -> str:
        return (f"l3.Loader({self._data.path!r}, {self._units} units in {self._batches} batches of {self._batch_size}"
                + (", closed)" if self.closed else ")"))


class _Loop(Iterator[Batch]):
    """One loop over a loader. It goes on after an exception."""

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


def _groups_of(data: Dataset, samples: Sequence[int | str]) -> list[int]:
    """The groups of samples, each once."""
    if isinstance(samples, (str, bytes)) or not hasattr(samples, "__iter__"):
        raise TypeError(f"samples is {samples!r}, and must be a list of numbers or names")
    native = data._open()
    groups: dict[int, None] = {}
    for which in samples:
        if isinstance(which, str):
            found = data.find(which)
            if found is None:
                raise ValueError(f"samples has {which!r}, and the data set no such name")
            number = found
        else:
            number = arguments.whole_number("samples", which, 0, len(data) - 1)
        groups[native.group_of(number)] = None
    if not groups:
        raise ValueError("samples is empty")
    return list(groups)


def _digest(groups: Sequence[int]) -> str:
    return hashlib.sha256(np.asarray(groups, "<u8").tobytes()).hexdigest()[:32]


def _layouts_of(layout: str | Mapping[str, str], roles: Sequence[str | None]) -> list[str]:
    """The layout of each role: one for all, or by name; those that are not named have "CHW"."""
    found = arguments.by_role("layout", layout, roles) if isinstance(layout, Mapping) else [layout] * len(roles)
    return [arguments.one_of("layout", "CHW" if one is None else one, arguments.LAYOUTS) for one in found]


def _wanted(data_set: _native.DataSet, roles: list[str] | None, groups: list[int] | None, layouts: list[str],
            dtype: object, mean: object, std: object,
            colours: bool | Sequence[str]) -> tuple[list[Any], list[dict[str, list[float]]]]:
    """What the extension takes for each role, and the means and deviations that are in it, by their names."""
    names: list[str | None] = [None] if roles is None else list(roles)
    wanted = []
    scalings = []
    if isinstance(colours, str):
        colours = [colours]
    if isinstance(colours, Sequence):
        # A role that nobody asked for is a mistake, and by_role says so.
        arguments.by_role("colours", dict.fromkeys(colours), names)
    for role, layout, one_dtype, one_mean, one_std in zip(  # noqa: B905 (Python 3.9)
            names, layouts, arguments.by_role("dtype", dtype, names), arguments.by_role("mean", mean, names),
            arguments.by_role("std", std, names)):
        of_role = "" if role is None else f" of role {role!r}"
        as_colours = role in colours if isinstance(colours, Sequence) else arguments.truth("colours", colours)
        name = arguments.dtype_name("dtype" + of_role, one_dtype)
        means = arguments.numbers("mean" + of_role, one_mean)  # type: ignore[arg-type]
        stds = arguments.numbers("std" + of_role, one_std)  # type: ignore[arg-type]
        arguments.check_scaling(name, means, stds)
        scales, biases = [0.0] * 4, [0.0] * 4
        if name in arguments.FLOATS:
            # All images of a role have as many bits where values are scaled, or the loader refuses them.
            most = 2 ** data_set.bits_of(role, groups[0] if groups else 0, as_colours) - 1
            for i in range(4):
                m = means[i % len(means)] if means else 0.0
                s = stds[i % len(stds)] if stds else 1.0
                scales[i], biases[i] = 1 / (most * s), -m / s
        wanted.append((role, name, layout == "CHW", as_colours, scales, biases))
        scalings.append({"mean" + of_role: means, "std" + of_role: stds})
    return wanted, scalings


def _be_iterable_for_torch() -> None:
    """torch's DataLoader iterates over an IterableDataset, and asks anything else for its items by number."""
    data_set = getattr(sys.modules.get("torch.utils.data"), "IterableDataset", None)
    if data_set is not None and not issubclass(Loader, data_set):
        data_set.register(Loader)


_loaders: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for loader in list(_loaders):
        loader._native.close_at_end()
