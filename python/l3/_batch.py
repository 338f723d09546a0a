"""A batch: arrays, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from . import _native
from ._coding import Array
from ._reports import BatchTimes

Images = Union[Array, _native.Tensor]


class _Arrays(NamedTuple):
    images: Any
    """an array in the loader's layout, units first; with ``batch="list"`` a list of arrays; with ``roles`` a dict of
    these"""
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
    sizes: Any = None
    """with ``batch="list"`` or ``"pad"``: the (height, width) of each image, int64; with ``roles`` a dict of these"""
    _set: _native.DataSet | None = None
    _names: list[str] | None = None
    _layouts: Any = None  # with roles a dict of them

    @property
    def names(self) -> list[str]:
        """The names of the samples in `ids`."""
        if self._set is None:
            raise AttributeError("this batch is a copy, as torch's DataLoader makes it, with arrays only: "
                                 "loader.data[number].name is the name for each number in ids")
        if self._names is None:
            self._names = [self._set.name_of(int(number)) for number in self.ids]
        return list(self._names)

    def _each(self) -> list[Any]:
        """The image of each unit without padding; a dict of them with roles."""
        def each(images: Any, sizes: Any, layout: str) -> list[Any]:
            if sizes is None or not isinstance(images, np.ndarray):
                return [images[i] for i in range(len(self.ids))]
            return [image[:, :height, :width] if layout == "CHW" else image[:height, :width]
                    for image, (height, width) in zip(images, sizes)]  # noqa: B905 (Python 3.9)

        if not isinstance(self.images, dict):
            return each(self.images, self.sizes, self._layouts)
        columns = {role: each(images, self.sizes and self.sizes[role], self._layouts[role])
                   for role, images in self.images.items()}
        return [{role: column[i] for role, column in columns.items()} for i in range(len(self.ids))]

    def __repr__(self) -> str:
        return f"l3.Batch({len(self.ids)} units, epoch {self.epoch}, position {self.position})"


def batch_of(native: _native.Batch, roles: Sequence[str] | None, layouts: Sequence[str], batching: str,
           data_set: _native.DataSet) -> Batch:
    def of_role(arrays: list[Any]) -> Any:
        return dict(zip(roles, arrays)) if roles is not None else arrays[0]  # noqa: B905 (Python 3.9)

    arrays: list[Any] = []
    sizes: list[Any] = []
    tensors = native.tensors(len(layouts)) if batching != "list" else []
    for i, layout in enumerate(layouts):
        found: Any = [_array(tensor) for tensor in native.units(i)] if batching == "list" else _array(tensors[i])
        if layout == "HW":
            found = [one[..., 0] for one in found] if batching == "list" else found[..., 0]
        arrays.append(found)
        if batching != "stack":
            sizes.append(np.asarray(native.sizes(i, layout == "CHW")))
    batch = Batch(of_role(arrays), _array(native.labels()), np.asarray(native.ids()))
    batch.sizes = of_role(sizes) if sizes else None
    batch._layouts = of_role(list(layouts))
    batch.repeats, batch.failed = native.repeats, native.failed
    batch.epoch, batch.number, batch.position = native.epoch, native.number, native.position
    batch.times = BatchTimes(**native.times())
    batch._set = data_set
    return batch


def _array(tensor: _native.Tensor) -> Images:
    # NumPy has neither bfloat16 nor arrays on a GPU.
    return tensor if tensor.device != "cpu" or tensor.dtype == "bfloat16" else np.asarray(tensor)
