"""What a loader does to each image: converts the arguments to the numbers of the extension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _arguments as arguments

INTERPOLATIONS = ("auto", "nearest", "nearest-exact", "bilinear", "bicubic", "area")
PAD_MODES = ("value", "edge", "reflect")
CHANNELS = ("stored", "gray", "rgb")
ALPHA = ("keep", "drop", "blend")
BATCHING = ("stack", "list", "pad")
CROPS = {"centre": 1, "center": 1, "random": 2}
_EXACT, _SHORTER, _LONGEST = 1, 2, 3
_GIVEN, _RANDOM = 1, 2
_CENTRE, _LETTERBOX = 1, 2
_MOST_EDGE = 2**20


def _edges(name: str, value: object) -> list[int]:
    return arguments.two_edges(name, value, "(height, width)", 1)


def _range(name: str, value: object) -> list[float]:
    numbers = arguments.numbers(name, value)  # type: ignore[arg-type]
    if len(numbers) != 2 or numbers[0] > numbers[1] or numbers[1] <= 0:
        raise ValueError(f"{name} is {value!r}, but must be two numbers above 0, the smaller one first")
    return numbers


def _amount(name: str, value: object, most: float) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} is {value!r}, but must be a number")
    if not 0 <= value <= most:
        raise ValueError(f"{name} is {value!r}, but must be from 0 to {most:g}")
    return float(value)


def _boxes(boxes: object) -> list[int]:
    array = np.asarray(boxes)
    if array.ndim != 2 or array.shape[1] != 4 or array.dtype.kind not in "iu":
        raise ValueError(f"boxes has the shape {array.shape} and the type {array.dtype}, but must be whole numbers "
                         "(x, y, width, height), one row for each unit")
    if array.size and (array.min() < 0 or array.max() > _MOST_EDGE):
        raise ValueError(f"boxes must have numbers from 0 to {_MOST_EDGE}")
    return [int(number) for number in array.ravel()]


def options_of(*, orient: bool, boxes: object, random_resized_crop: object, scale: object, ratio: object,
               resize: object, longest: object, crop: object, crop_mode: str | None, pad: object, letterbox: object,
               pad_mode: str | None, pad_value: object, flip: bool, flip_vertical: bool, rotate90: object, batch: str,
               pad_multiple: object, bucket_by: object, brightness: object, contrast: object, saturation: object,
               hue: object) -> dict[str, Any]:
    """Returns the options of the extension. Messages name the arguments that do not go together."""
    given = {"random_resized_crop": random_resized_crop, "boxes": boxes, "resize": resize, "longest": longest,
             "pad": pad, "letterbox": letterbox, "crop": crop}
    alone = [("random_resized_crop", "boxes"), ("random_resized_crop", "resize"), ("random_resized_crop", "longest"),
             ("random_resized_crop", "letterbox"), ("resize", "longest"), ("resize", "letterbox"),
             ("longest", "letterbox"), ("pad", "letterbox"), ("crop", "letterbox")]
    for one, other in alone:
        if given[one] is not None and given[other] is not None:
            raise ValueError(f"{one} and {other} exclude each other: leave one of them out")
    for name, word, words in (("crop_mode", crop_mode, tuple(CROPS)), ("pad_mode", pad_mode, PAD_MODES)):
        if word is not None:
            arguments.one_of(name, word, words)
    arguments.one_of("batch", batch, BATCHING)
    is_padded = pad is not None or letterbox is not None
    for name, value, has_use, use in (
            ("scale", scale, random_resized_crop is not None, "random_resized_crop"),
            ("ratio", ratio, random_resized_crop is not None, "random_resized_crop"),
            ("crop_mode", crop_mode, crop is not None, "crop"),
            ("pad_mode", pad_mode, is_padded, "pad and letterbox; batch='pad' fills with pad_value"),
            ("pad_value", pad_value, is_padded or batch == "pad", "pad, letterbox and batch='pad'")):
        if value is not None and not has_use:
            raise ValueError(f"{name} is for {use}")
    options: dict[str, Any] = {
        "orient": int(arguments.truth("orient", orient)),
        "flip": int(arguments.truth("flip", flip)),
        "flip_vertical": int(arguments.truth("flip_vertical", flip_vertical)),
        "pad_mode": PAD_MODES.index(pad_mode or "value"),
        "batching": BATCHING.index(batch),
        "pad_multiple": 0 if pad_multiple is None else arguments.whole_number("pad_multiple", pad_multiple, 1),
        "brightness": _amount("brightness", brightness, 16),
        "contrast": _amount("contrast", contrast, 16),
        "saturation": _amount("saturation", saturation, 16),
        "hue": _amount("hue", hue, 0.5),
        "box": 0, "resize": 0, "resize_width": 0, "resize_height": 0, "pad": 0, "pad_width": 0, "pad_height": 0,
        "crop": 0, "crop_width": 0, "crop_height": 0, "scale": [0.0, 0.0], "ratio": [0.0, 0.0], "boxes": [],
    }
    if bucket_by not in (None, "aspect"):
        raise ValueError(f"bucket_by is {bucket_by!r}, but must be 'aspect' or None")
    options["bucket_by"] = int(bucket_by is not None)
    if pad_multiple is not None and batch != "pad":
        raise ValueError("pad_multiple is for batch='pad'")
    if isinstance(rotate90, (bool, np.bool_)):
        options["turn"] = 4 if rotate90 else 0
    else:
        options["turn"] = arguments.whole_number("rotate90", rotate90, -3, 3) % 4
    if random_resized_crop is not None:
        height, width = _edges("random_resized_crop", random_resized_crop)
        options.update(box=_RANDOM, resize=_EXACT, resize_width=width, resize_height=height,
                       scale=_range("scale", (0.08, 1.0) if scale is None else scale),
                       ratio=_range("ratio", (3 / 4, 4 / 3) if ratio is None else ratio))
    if boxes is not None:
        options.update(box=_GIVEN, boxes=_boxes(boxes))
    if resize is not None:
        if hasattr(resize, "__index__"):
            size = arguments.whole_number("resize", resize, 1, _MOST_EDGE)
            options.update(resize=_SHORTER, resize_width=size)
        else:
            height, width = _edges("resize", resize)
            options.update(resize=_EXACT, resize_width=width, resize_height=height)
    if longest is not None:
        options.update(resize=_LONGEST, resize_width=arguments.whole_number("longest", longest, 1, _MOST_EDGE))
    if crop is not None:
        height, width = _edges("crop", crop)
        options.update(crop=CROPS[crop_mode or "random"], crop_width=width, crop_height=height)
    if pad is not None:
        height, width = _edges("pad", pad)
        options.update(pad=_CENTRE, pad_width=width, pad_height=height)
    if letterbox is not None:
        height, width = _edges("letterbox", letterbox)
        options.update(pad=_LETTERBOX, pad_width=width, pad_height=height)
    return options


def tensor_options(roles: Sequence[str | None], *, interpolation: object, channels: object, alpha: object,
                   bits: object, pad_value: object, background: object, jitters: bool) -> list[dict[str, Any]]:
    """Returns what the extension needs to know of each role. Values that are no mapping are for the first role."""
    found = []
    rows = zip(roles, *(arguments.by_role(name, value, roles) for name, value in (  # noqa: B905 (Python 3.9)
        ("interpolation", interpolation), ("channels", channels), ("alpha", alpha), ("bits", bits),
        ("pad_value", pad_value), ("background", background))))
    for i, (role, how, wanted, transparency, depth, pad, behind) in enumerate(rows):
        of_role = "" if role is None else f" of role {role!r}"
        row: dict[str, Any] = {
            "interpolation": 0 if how is None else INTERPOLATIONS.index(
                arguments.one_of("interpolation" + of_role, how, INTERPOLATIONS)),
            "channels": 0 if wanted is None else CHANNELS.index(
                arguments.one_of("channels" + of_role, wanted, CHANNELS)),
            "alpha": 0 if transparency is None else ALPHA.index(
                arguments.one_of("alpha" + of_role, transparency, ALPHA)),
            "bits": 0, "jitter": int(jitters and i == 0), "pad_value": None, "pad_numbers": [],
            "background": [0.0] * 4,
        }
        if depth is not None:
            if depth != 8 or isinstance(depth, (bool, np.bool_)):
                raise ValueError(f"bits{of_role} is {depth!r}, but must be 8 or None, which keeps the samples")
            row["bits"] = 8
        if isinstance(pad, str):
            row["pad_value"] = arguments.one_of("pad_value" + of_role, pad, ("mean",))
        elif pad is not None:
            numbers = arguments.numbers("pad_value" + of_role, pad)
            row["pad_value"] = [numbers[c % len(numbers)] for c in range(4)]
            row["pad_numbers"] = numbers
        if behind is not None:
            numbers = arguments.numbers("background" + of_role, behind)
            if row["alpha"] != ALPHA.index("blend"):
                raise ValueError(f"background{of_role} is for alpha='blend'")
            if len(numbers) not in (1, 3):
                raise ValueError(f"background{of_role} is {behind!r}, but must be a number, or three for red, green "
                                 "and blue")
            row["background"] = [numbers[c % len(numbers)] for c in range(4)]
        found.append(row)
    return found


# What the library asks for, as arguments of Python.
_WORDS = (
    ("ask for colours (as_colours), or for interpolation nearest", "write colours=True or interpolation='nearest'"),
    ("ask for colours (as_colours)", "write colours=True"),
    ("ask for bits 8", "write bits=8"),
    ("ask for int32", "write dtype='int32'"),
    ("ask for channels rgb or gray, and for alpha drop", "write channels='rgb' or 'gray', and alpha='drop'"),
    ("such images need a crop, a resize, a pad, or batches as lists",
     "write crop=, resize=, random_resized_crop=, letterbox=, pad= or batch='list'"),
    ("or make batches as lists", "or write batch='list'"),
    ("padding floats needs pad_value, in samples before scale and bias: 0 for black",
     "padding floats needs a value: write pad_value=0 for black, or pad_value='mean' for what becomes 0"),
    ("or choose pad_mode edge or reflect", "or pad_mode='edge' or 'reflect'"),
    ("ask for an exact resize, a crop, a letterbox or a pad, or apply",
     "write resize=(height, width), random_resized_crop=, crop=, letterbox=, pad= or batch='list', or apply"),
    ("give it one gray value", "write background=128, for example"),
    ("buckets change the order of units: ask for a shuffled order", "buckets change the order: write shuffle=True"),
)


def in_python_words(text: str) -> str:
    for ours, theirs in _WORDS:
        text = text.replace(ours, theirs)
    return text
