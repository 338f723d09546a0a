"""Batches for training."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from . import _arguments as arguments
from . import _native
from . import _steps as steps
from . import _units as units
from ._arguments import Cache
from ._batch import Batch, batch_of
from ._dataset import CacheInfo, Dataset, Samples, cache_of
from ._reports import BatchTimes, Explanation, Failure, Request, Sharing
from ._store import Store, is_store
from ._transform import Transforms, together

_ORDERS = {False: "stored", True: "shuffled", "windows": "windows"}
_ORDER_NAMES = ("stored", "shuffled", "windows")
_ENDINGS = ("even", "pad", "drop", "uneven")
_ON_ERROR = ("raise", "skip", "zero")
_READING = ("auto", "uring", "threads")
_STATE_VERSION = 1


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
    orient
        True: turn images upright, as their EXIF data says.
    random_resized_crop, scale, ratio
        (height, width), or one number for both: resize a random box to this size, as torchvision's RandomResizedCrop
        does. `scale` is the smallest and the largest part of the area (None: 0.08 and 1), `ratio` those of width to
        height (None: 3/4 and 4/3).
    boxes
        an array of (x, y, width, height), one row for each unit, in the order of `samples` or of the data set: use
        this part of each image, which is upright if `orient` is set.
    resize, longest
        `resize` is (height, width), or one number for the shorter side. `longest` is for the longer side.
    crop, crop_mode
        (height, width) of the crop, or one number for both. `crop_mode` is ``"random"``, also for evaluation unless you
        say ``"centre"``. It comes after resizing.
    pad, letterbox, pad_mode, pad_value
        `pad` is the (height, width) that padding on all sides gives. `letterbox` resizes images first, so that they
        just fit. `pad_mode` is ``"value"``, ``"edge"`` or ``"reflect"``. `pad_value` is a number, or one per channel,
        in samples (0 to 255 for 8 bits), before `mean` and `std`; or ``"mean"``, which they make 0. Integers may be
        padded with any number of their type, such as -100.
    interpolation
        ``"nearest"``, ``"nearest-exact"``, ``"bilinear"``, ``"bicubic"`` or ``"area"``, with antialiasing, as
        torchvision.transforms.v2 defines them. None: nearest for what may be labels (int16, int32, int64, palette
        indices, all roles after the first), else bilinear.
    flip, flip_vertical, rotate90
        True: mirror half of the units, left to right or top to bottom, and turn them by a random multiple of 90
        degrees. `rotate90` may also be a number of turns, counterclockwise.
    dtype, mean, std
        as in :func:`l3.decode`, and ``"int16"``, ``"int32"`` or ``"int64"``. With `roles` they apply to the first role,
        and the others are delivered as stored. A mapping from roles to values sets them per role. So it is for
        `interpolation`, `pad_value`, `channels`, `alpha`, `bits` and `background`.
    channels, alpha, background, bits
        For images of several kinds write ``channels="rgb", alpha="drop", bits=8``. `channels` is ``"rgb"`` or
        ``"gray"`` (0.299 red + 0.587 green + 0.114 blue); None: as stored. `alpha` is ``"keep"`` (the default),
        ``"drop"``, or ``"blend"``, which blends colours with the `background`. `bits=8` scales samples of any depth to
        0 to 255; None: as stored.
    brightness, contrast, saturation, hue
        change the colours of the first role at random: multiply by a number from 1 - x to 1 + x; turn the hue by at
        most this part of a circle (0.5 at most).
    batch, pad_multiple
        ``"stack"``: one array, so all images must have one size. ``"list"``: a list of arrays of any size. ``"pad"``:
        one array with the size of the largest image of the batch, rounded up to multiples of `pad_multiple`. Images
        are in the upper left corner, and ``batch.sizes`` tells their sizes.
    bucket_by
        ``"aspect"``: make batches of images with similar ratios of width to height.
    transform
        a function that is called for each image on threads: a NumPy array in this `layout`, without padding; a dict of
        them with `roles`; an :class:`l3.Tensor` for bfloat16. Its results become ``batch.images``: an array if they are
        arrays of one shape, else a list. Random numbers in it are its own. If it raises an exception, that comes in
        place of the batch, whatever `on_error` says.
    layout
        ``"CHW"`` or ``"HWC"``; ``"HW"`` for images of one channel on a CPU. A mapping from roles sets it per role.
    roles
        the roles to deliver, if groups have more than one image: ``["image", "labels"]``. ``batch.images`` is then a
        dict.
    colours
        True: palette images become colours. False: they stay indices. A list of roles: only these become colours.
        None: where `channels` is given.
    device, stream
        ``"cuda"`` or ``"cuda:1"``: decode on that GPU. `stream` is the stream that uses a batch if DLPack does not name
        one.
    rank, world_size
        the number of this process, and how many processes share each epoch.
    last_batch
        what to do if the number of units is not a multiple of ``batch_size * world_size``. ``"even"``: the last batch
        is smaller, with at most one repeat per rank. ``"pad"``: repeats fill it. ``"drop"``: it is left out.
        ``"uneven"``: no repeats; ranks may differ by one unit and by one batch. ``drop_last=True`` means ``"drop"``.
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
        numbers or names of samples, a view such as ``data[10:]``, or a mask of all samples: train on the groups that
        contain them. Each group counts once, in the order of the list if `shuffle` is False.
    max_pixels, max_bytes
        limits for each image, as in :func:`l3.decode`.
    cache
        as in :class:`l3.Dataset`, if `data` is a path, a URL or a store.
    """

    def __init__(self, data: str | os.PathLike[str] | Dataset | Store, batch_size: int, *,
                 shuffle: bool | str = True, seed: int = 0, window: int = 8,
                 orient: bool = False, random_resized_crop: int | Sequence[int] | None = None,
                 scale: Sequence[float] | None = None, ratio: Sequence[float] | None = None, boxes: object = None,
                 resize: int | Sequence[int] | None = None, longest: int | None = None,
                 crop: int | Sequence[int] | None = None, crop_mode: str | None = None,
                 pad: int | Sequence[int] | None = None, letterbox: int | Sequence[int] | None = None,
                 pad_mode: str | None = None, pad_value: object = None, interpolation: object = None,
                 flip: bool = False, flip_vertical: bool = False, rotate90: bool | int = False,
                 channels: object = None, alpha: object = None, background: object = None, bits: object = None,
                 brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0,
                 batch: str = "stack", pad_multiple: int | None = None, bucket_by: str | None = None,
                 transform: Callable[[Any], Any] | None = None,
                 dtype: object = None, layout: str | Mapping[str, str] = "CHW", mean: object = None, std: object = None,
                 roles: Sequence[str] | None = None, colours: bool | Sequence[str] | None = None,
                 device: object = "cpu", stream: object = None, rank: int = 0, world_size: int = 1,
                 last_batch: str = "even", drop_last: bool = False, on_error: str = "raise", ordered: bool = True,
                 threads: int = 0, prefetch: int | None = None, reading: str = "auto",
                 max_bytes_in_flight: int | None = None,
                 share: str | None = None, jobs: int | None = None, share_timeout: float | None = None,
                 samples: Sequence[int | str] | np.ndarray[Any, Any] | Samples | None = None,
                 max_pixels: int | None = None, max_bytes: int | None = None, cache: Cache = None) -> None:
        if not isinstance(shuffle, (bool, np.bool_)) and not (isinstance(shuffle, str) and shuffle == "windows"):
            raise ValueError(f"shuffle is {shuffle!r}, but must be True, False or 'windows'")
        if arguments.truth("drop_last", drop_last):
            if last_batch not in ("even", "drop"):
                raise ValueError(f"drop_last and last_batch={last_batch!r} exclude each other: leave one of them out")
            last_batch = "drop"
        of_images = steps.options_of(
            orient=orient, boxes=boxes, random_resized_crop=random_resized_crop, scale=scale, ratio=ratio,
            resize=resize, longest=longest, crop=crop, crop_mode=crop_mode, pad=pad, letterbox=letterbox,
            pad_mode=pad_mode, pad_value=pad_value, flip=flip, flip_vertical=flip_vertical, rotate90=rotate90,
            batch=batch, pad_multiple=pad_multiple, bucket_by=bucket_by, brightness=brightness, contrast=contrast,
            saturation=saturation, hue=hue)
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
        self._batching = batch
        self._bucket_by = bucket_by
        options: dict[str, Any] = {
            **of_images,
            "batch_size": self._batch_size,
            "seed": self._seed,
            "rank": self._rank,
            "world_size": world_size,
            "order": _ORDER_NAMES.index(self._order),
            "window": self._window,
            "ending": _ENDINGS.index(self._last_batch),
            "on_error": _ON_ERROR.index(arguments.one_of("on_error", on_error, _ON_ERROR)),
            "delivery": int(not self._ordered),
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
        of_roles = steps.tensor_options(
            names, interpolation=interpolation, channels=channels, alpha=alpha, bits=bits, pad_value=pad_value,
            background=background, jitters=any(x != 0 for x in (brightness, contrast, saturation, hue)))
        wanted, scalings = units.wanted(self._set, self._roles, groups, self._layouts, dtype, mean, std, colours,
                                        of_roles)
        try:
            self._native = _native.Loader(self._set, options, wanted, groups)
        except ValueError as error:
            raise ValueError(steps.in_python_words(str(error))) from None
        for (shape, kind), numbers, one in zip(self._native.tensors(), scalings, self._layouts):  # noqa: B905
            count = shape[1 if one == "CHW" else 3]
            for name, values in numbers.items():
                arguments.check_channels(name, values, count)
            if one == "HW" and (count != 1 or number is not None or kind == "bfloat16"):
                self._native.close()
                raise ValueError(f"layout 'HW' is for NumPy arrays of one channel, but these images have {count}"
                                 if count != 1 else "layout 'HW' is for NumPy arrays: use 'CHW' or 'HWC' here")
        self._transforms = None if transform is None else self._make_transforms(transform, threads, prefetch, number)
        described = self._native.describe()
        self._units: int = described["units"]
        self._batches: int = described["batches"]
        self._described = described
        if self._batches == 0:
            warnings.warn(f"an epoch has no batch: {self._units} units do not fill batch_size * world_size = "
                          f"{self._batch_size * world_size}, and incomplete batches are dropped", stacklevel=2)
        # The epoch of the running loop, or of the next one if `_begun` is not set.
        self._epoch = 0
        self._position = 0
        self._ahead: list[int] = []  # where the next loop leaves out batches
        self._begun = False
        self._loops = 0
        _loaders.add(self)
        _be_iterable_for_torch()

    def _make_transforms(self, transform: Callable[[Any], Any], threads: int, prefetch: int | None,
                         number: int | None) -> Transforms:
        if not callable(transform):
            raise TypeError(f"transform is {transform!r}, but must be a function of an image")
        if number is not None:
            raise ValueError("transform is for device='cpu': on a GPU, change the whole batch in the loop")
        if not self._ordered:
            raise ValueError("transform needs ordered=True")
        return Transforms(transform, threads, 2 if prefetch is None else prefetch)

    # -------------------------------------------------------------------------------------------------------- loops

    def __iter__(self) -> Iterator[Batch]:
        """Begins the next epoch, or continues at the position of load_state_dict."""
        if self._begun:
            self._epoch, self._position, self._ahead = self._epoch + 1, 0, []
        if self._transforms is not None:
            self._transforms.clear()
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
        if self._transforms is not None:
            batch = self._next_transformed(self._transforms)
        else:
            try:
                batch = self._take()
            finally:
                self._position = self._native.position
        if batch is None:
            self._go_to(self._epoch + 1, 0)
            raise StopIteration
        return batch

    def _take(self) -> Batch | None:
        native = self._native.next()
        return None if native is None else batch_of(native, self._roles, self._layouts, self._batching, self._set)

    def _next_transformed(self, transforms: Transforms) -> Batch | None:
        try:
            found = transforms.next(self._take, lambda: self._native.position)
            if found is None:
                return None
            batch, results, spent = found
            made = Batch(together(results), batch.labels, batch.ids)
            made.__dict__.update(batch.__dict__)
            made.times = replace(batch.times, transforming=spent)
            transforms.end_first(batch, spent)
            return made
        finally:
            if transforms.position is not None:
                self._position = transforms.position

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
        if self._bucket_by is not None:  # what is in a bucket depends on how ranks share the epoch
            state["bucket_by"] = self._bucket_by
            state["sharing"] = [self._batch_size, None, self._world_size, self._last_batch]
        if not self._ordered:  # which batches came ahead depends on how ranks share the epoch
            ahead = self._native.ahead() if self._begun else self._ahead
            state["ahead"] = ahead if epoch == self._epoch else []
            state["sharing"] = [self._batch_size, self._rank, self._world_size, self._last_batch]
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next loop continue at the position of a state.

        Data set, seed, order and samples must be the same as when the state was taken. ValueError names what differs,
        except that another data set with as many units is not noticed. Batch size and number of ranks may differ, but
        not with ``ordered=False`` or ``bucket_by``: the units that follow are the same, in the same order.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"state is {type(state).__name__}, but must be a dict from l3.Loader.state_dict()")
        own = self.state_dict()
        missing = [name for name in own if name not in state]
        if missing:
            raise ValueError(f"state has no {missing[0]!r}: it is not from l3.Loader.state_dict()")
        if "ahead" in state and self._ordered:
            raise ValueError("the state was taken with ordered=False, but this loader has ordered=True")
        names = ("batch_size", "rank", "world_size", "last_batch")
        pairs = [(name, state.get(name), own.get(name))
                 for name in ("version", "units", "seed", "order", "window", "samples", "bucket_by")]
        pairs += zip(names, state.get("sharing") or [None] * 4, own.get("sharing") or [None] * 4)  # noqa: B905
        for name, then, now in pairs:
            if then != now:
                raise ValueError(f"the state was taken with {name} {then!r}, but this loader has {now!r}")
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
        found, _ = self._native.failures()
        return [Failure(epoch, sample, name or None, reason, file or None, offset)
                for epoch, sample, name, reason, file, offset in found]

    @property
    def failure_count(self) -> int:
        """The number of units that failed since the loader was made."""
        return self._native.failures()[1]

    @property
    def sharing(self) -> Sharing:
        """How many loaders share batches now, and where the batches came from."""
        told = self._native.describe()
        return Sharing(**{name: told[name] for name in Sharing.__dataclass_fields__})

    def timeline(self) -> list[BatchTimes]:
        """Returns the times of the last delivered batches, at most 4096, oldest first."""
        times = [BatchTimes(**times) for times in self._native.timeline()]
        if self._transforms is not None:
            spent = self._transforms.times
            times = [replace(one, transforming=spent.get(one.given, 0)) for one in times]
        return times

    def requests(self) -> list[Request]:
        """Returns the last reads from the store, at most 65,536, oldest first. Local files that the system has in
        memory need none."""
        return [Request(**request) for request in self._native.requests()]

    def explain(self, sample: int | str, epoch: int | None = None) -> Explanation:
        """Tells what happens to a sample in an epoch (None: the current one), whether it was delivered or not.

        Random choices depend only on the seed, the epoch and the sample's group, not on ranks, threads or devices.
        """
        if isinstance(sample, str):
            found = self._data.find(sample)
            if found is None:
                raise ValueError(f"the data set has no sample {sample!r}")
            sample = found
        epoch = self._epoch if epoch is None else arguments.whole_number("epoch", epoch, 0, 2**63 - 1)
        return Explanation(**self._native.explain(epoch, arguments.whole_number("sample", sample, 0, 2**63 - 1)))

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the timeline and the requests to a file for chrome://tracing and ui.perfetto.dev."""
        self._native.write_trace(arguments.path_bytes(path))

    def close(self) -> None:
        """Ends the threads. Delivered batches stay valid, and ``failures`` can still be read."""
        if not self._native.closed:
            self._native.close()
            if self._transforms is not None:
                self._transforms.close()

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
    if isinstance(data, Samples):
        raise TypeError("data is a view of samples: write l3.Loader(data, batch_size, samples=view)")
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
