"""The units of a loader: which groups, and which tensors of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _arguments as arguments
from . import _native
from ._dataset import Dataset, Samples


def groups_of(data: Dataset, samples: Sequence[int | str] | np.ndarray[Any, Any] | Samples) -> list[int]:
    """Returns the groups of the samples, each once."""
    if isinstance(samples, (str, bytes)) or not hasattr(samples, "__iter__"):
        raise TypeError(f"samples is {samples!r}, but must be a list of numbers or names")
    native = data._open()
    if isinstance(samples, Samples):
        samples = samples.numbers
    if isinstance(samples, np.ndarray) and samples.dtype == np.bool_:
        if samples.shape != (len(data),):
            raise ValueError(f"samples is a mask of shape {samples.shape}, but must have one value for each of the "
                             f"{len(data)} samples")
        samples = [int(number) for number in np.flatnonzero(samples)]
    groups: dict[int, None] = {}
    for which in samples:
        if isinstance(which, str):
            found = data.find(which)
            if found is None:
                raise ValueError(f"samples has {which!r}, but the data set has no sample of that name")
            number = found
        else:
            number = arguments.whole_number("samples", which, 0, len(data) - 1)
        groups[native.group_of(number)] = None
    if not groups:
        raise ValueError("samples is empty")
    return list(groups)


def digest(groups: Sequence[int]) -> str:
    return hashlib.sha256(np.asarray(groups, "<u8").tobytes()).hexdigest()[:32]


def layouts_of(layout: str | Mapping[str, str], roles: Sequence[str | None]) -> list[str]:
    """Returns the layout of each role. Roles that a mapping does not name have "CHW"."""
    found = arguments.by_role("layout", layout, roles) if isinstance(layout, Mapping) else [layout] * len(roles)
    return [arguments.one_of("layout", "CHW" if one is None else one, arguments.LAYOUTS) for one in found]


def wanted(data_set: _native.DataSet, roles: list[str] | None, groups: list[int] | None, layouts: list[str],
            dtype: object, mean: object, std: object, colours: bool | Sequence[str] | None,
            steps: list[dict[str, Any]]) -> tuple[list[Any], list[dict[str, list[float]]]]:
    """Returns the arguments of the extension per role, and the numbers for each channel in them, by name."""
    names: list[str | None] = [None] if roles is None else list(roles)
    found = []
    scalings = []
    if isinstance(colours, str):
        colours = [colours]
    if isinstance(colours, Sequence):
        # by_role refuses roles that were not requested.
        arguments.by_role("colours", dict.fromkeys(colours), names)
    for role, layout, row, one_dtype, one_mean, one_std in zip(  # noqa: B905 (Python 3.9)
            names, layouts, steps, arguments.by_role("dtype", dtype, names), arguments.by_role("mean", mean, names),
            arguments.by_role("std", std, names)):
        of_role = "" if role is None else f" of role {role!r}"
        if colours is None:
            as_colours = row["channels"] != 0
        else:
            as_colours = role in colours if isinstance(colours, Sequence) else arguments.truth("colours", colours)
        name = arguments.dtype_name("dtype" + of_role, one_dtype, arguments.LOADER_DTYPES)
        means = arguments.numbers("mean" + of_role, one_mean)
        stds = arguments.numbers("std" + of_role, one_std)
        arguments.check_scaling(name, means, stds)
        scales, biases = [0.0] * 4, [0.0] * 4
        if name in arguments.FLOATS:
            # If values are scaled, all images of a role have the same bits; otherwise the loader refuses them.
            bits = row["bits"] or data_set.bits_of(role, groups[0] if groups else 0, as_colours)
            most = 2 ** bits - 1
            if row["pad_value"] == "mean":
                row["pad_value"] = [most * (means[i % len(means)] if means else 0.0) for i in range(4)]
            for i in range(4):
                m = means[i % len(means)] if means else 0.0
                s = stds[i % len(stds)] if stds else 1.0
                scales[i], biases[i] = 1 / (most * s), -m / s
        elif row["pad_value"] == "mean":
            raise ValueError(f"pad_value{of_role} 'mean' is for floats: write a number instead")
        found.append((role, name, layout == "CHW", as_colours, scales, biases, row))
        scalings.append({"mean" + of_role: means, "std" + of_role: stds, "pad_value" + of_role: row.pop("pad_numbers")})
    return found, scalings
