"""Data sets and batches as torch's DataLoader, Lightning and Accelerate want them. Needs torch.

>>> import l3.torch
>>> images = l3.torch.Images("train/", transform=augment)                # a map-style data set: (image, label)
>>> loader = torch.utils.data.DataLoader(images, 64, shuffle=True, num_workers=8)
>>> batches = l3.torch.Batches("train/", 64, crop=224, dtype="float32")  # an l3.Loader: (images, labels, ids)
>>> loader = torch.utils.data.DataLoader(batches, batch_size=None)

`Batches` decodes in its own threads, or on a GPU, and is the faster way. `Images` is for code that needs single images,
a sampler of its own, or workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypedDict

import numpy as np
import torch
import torch.utils.data

from ._dataset import Dataset, Numbers, Samples
from ._loader import Loader
from ._store import Store

__all__ = ["Batches", "Images", "Ranks", "ranks", "tensors"]


class Ranks(TypedDict):
    """Arguments of :class:`l3.Loader`."""

    rank: int
    world_size: int


def ranks() -> Ranks:
    """The arguments `rank` and `world_size` of :class:`l3.Loader` for this process.

    They are those of torch.distributed after init_process_group(), else those that torchrun sets in the environment,
    else 0 and 1. A DistributedSampler is not needed: a loader takes its rank's part of each epoch.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return {"rank": torch.distributed.get_rank(), "world_size": torch.distributed.get_world_size()}
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return {"rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])}
    return {"rank": 0, "world_size": 1}


def tensors(arrays: Any) -> Any:
    """Turns arrays and l3.Tensors into torch's tensors, without a copy; also those in dicts and lists."""
    if isinstance(arrays, torch.Tensor):
        return arrays
    if isinstance(arrays, Mapping):
        return {key: tensors(value) for key, value in arrays.items()}
    if isinstance(arrays, (list, tuple)):
        return [tensors(value) for value in arrays]
    return torch.from_dlpack(arrays) if hasattr(arrays, "__dlpack__") else arrays


class Images(torch.utils.data.Dataset):
    """The images of a data set, one by one: ``image, label = images[3]``.

    It can be pickled and survives a fork, so DataLoader may have workers, forked or spawned. Each image is decoded when
    it is used, by the thread that uses it. A label is -1 if there is none.

    data
        a path, a URL, an :class:`l3.Dataset` or an :class:`l3.Store`.
    samples
        numbers or names of samples, a mask, or a view such as ``data[10:]``. None: all images.
    role
        only images with this role, if groups have several images.
    transform
        a function that is called for each tensor, such as torchvision.transforms.v2. It must be picklable for workers
        that are spawned.
    options
        as in :func:`l3.decode`; without them, uint8 or uint16 of shape (C, H, W).
    """

    def __init__(self, data: str | os.PathLike[str] | Dataset | Store, *, samples: object = None,
                 role: str | None = None, transform: Callable[[Any], Any] | None = None, **options: Any) -> None:
        self.data = data if isinstance(data, Dataset) else Dataset(data)
        self.transform = transform
        self.options = {"layout": "CHW", "threads": 1, **options}
        self._numbers = self._select(samples, role)

    def _select(self, samples: Any, role: str | None) -> Numbers:
        data = self.data
        if role is not None and role not in data.roles:
            raise ValueError(f"role is {role!r}, but the data set has {data.roles}")
        numbers: Numbers = range(len(data))
        if isinstance(samples, Samples):
            numbers = samples.numbers
        elif samples is not None:
            if isinstance(samples, (list, tuple)):
                samples = [data[one].number if isinstance(one, str) else one for one in samples]
            numbers = data[samples].numbers
        if role is None and data.groups == len(data):  # a group has an image
            return numbers
        return np.array([number for number in map(int, numbers) if data[number].is_image
                         and role in (None, data[number].role)], np.int64)

    @property
    def classes(self) -> list[str]:
        """The names of the labels, beginning with label 0. Empty if labels have no names."""
        return self.data.classes

    @property
    def labels(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The labels of the images; -1 if one has none. For samplers that weigh classes."""
        labels: np.ndarray[Any, np.dtype[np.int64]] = self.data.labels[np.asarray(self._numbers)]
        return labels

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"image {index} is out of range: there are {len(self)} images")
        sample = self.data[int(self._numbers[index])]
        image = tensors(sample.decode(**self.options))
        return image if self.transform is None else self.transform(image), -1 if sample.label is None else sample.label

    def __repr__(self) -> str:
        return f"l3.torch.Images({len(self)} of {self.data!r})"


class Batches(torch.utils.data.IterableDataset):
    """The batches of an :class:`l3.Loader` as torch's tensors: ``for images, labels, ids in batches``.

    Takes the arguments of l3.Loader. `rank` and `world_size` come from :func:`ranks` unless they are given. The loader
    is made when it is first used, so that torch.distributed knows the ranks by then. Each loop is one epoch.

    ``DataLoader(batches, batch_size=None)`` is for code that needs a DataLoader. It must not have workers, because the
    loader has threads. The tensors share the memory of the batch, which is not pinned, and keep it as long as they
    exist. ``DataLoader(..., pin_memory=True)`` copies them to pinned memory. With ``device="cuda"`` they are on the GPU
    already.
    """

    def __init__(self, data: str | os.PathLike[str] | Dataset | Store, batch_size: int, **options: Any) -> None:
        self._arguments = (data, batch_size)
        self._options = options
        self._loader: Loader | None = None
        self._state: Mapping[str, Any] | None = None  # for the loader when it is made

    @property
    def loader(self) -> Loader:
        """The loader. Made when it is first used."""
        if self._loader is None:
            if torch.utils.data.get_worker_info() is not None:
                raise RuntimeError("l3.torch.Batches has threads of its own: use DataLoader(batches, batch_size=None) "
                                   "without num_workers, or l3.torch.Images with workers")
            self._loader = Loader(*self._arguments, **{**ranks(), **self._options})
            if self._state is not None:
                self._loader.load_state_dict(self._state)
        return self._loader

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        for images, labels, ids in self.loader:
            yield tensors(images), tensors(labels), tensors(ids)

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """As :meth:`l3.Loader.set_epoch`."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """As :meth:`l3.Loader.state_dict`. It counts the batches that the loop over this object has received."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """As :meth:`l3.Loader.load_state_dict`."""
        self.loader.load_state_dict(state)

    def close(self) -> None:
        """Ends the threads of the loader."""
        if self._loader is not None:
            self._loader.close()

    def __getstate__(self) -> dict[str, Any]:
        state = None if self._loader is None else self._loader.state_dict()
        return {**self.__dict__, "_loader": None, "_state": self._state if state is None else state}
