"""Pillow images: what L3 takes from them, and how it makes them. Pillow itself is needed only to make them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ._info import Info

_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16", "I;16L", "I;16B", "I;16N")
_CONVERTED = {"CMYK": "RGB", "YCbCr": "RGB", "LAB": "RGB", "HSV": "RGB", "RGBX": "RGB", "PA": "RGBA", "RGBa": "RGBA",
              "La": "LA", "I": "I;16"}


def check_mode(mode: str) -> None:
    """Raises ValueError for modes that L3 lacks."""
    if mode not in _MODES:
        write = f"image.convert({_CONVERTED[mode]!r})" if mode in _CONVERTED else "an array of uint8 or uint16"
        clips = ", which clips samples above 65535" if mode == "I" else ""
        raise ValueError(f"L3 has no equivalent of Pillow's mode {mode!r}: encode {write} instead{clips}")


def palette_of(image: Any) -> np.ndarray[Any, Any]:
    """Returns the palette of an image of mode P."""
    indices = np.asarray(image)
    given = np.asarray(image.getpalette("RGBA") or [], np.uint8).reshape(-1, 4)
    # Pillow omits entries that it considers unused, and treats them as black.
    entries = np.zeros((max(len(given), int(indices.max(initial=0)) + 1), 4), np.uint8)
    entries[:, 3] = 255
    entries[:len(given)] = given
    # Alpha is in the palette or in image.info. A GIF may name a transparent entry that does not exist.
    transparency = image.info.get("transparency")
    if isinstance(transparency, bytes):
        count = min(len(transparency), len(entries))
        entries[:count, 3] = np.frombuffer(transparency, np.uint8)[:count]
    elif transparency is not None and transparency < len(entries):
        entries[transparency, 3] = 0
    return entries if np.any(entries[:, 3] != 255) else entries[:, :3]


def transparent_of(image: Any, mode: str, bits: int) -> int | tuple[int, ...] | None:
    """Returns the transparent colour of an image without alpha, or None."""
    key: Any = image.info.get("transparency")
    if mode == "1" and isinstance(key, int):
        return int(key != 0)
    most = (1 << bits) - 1
    if (mode == "L" or mode.startswith("I;16")) and isinstance(key, int):
        return int(key) & most
    if mode == "RGB" and isinstance(key, tuple) and len(key) == 3:
        return tuple(int(number) & most for number in key)
    return None


def to_pillow(info: Info, decode: Callable[[], np.ndarray[Any, Any]]) -> Any:
    """Makes a Pillow image with everything that an Info has. `decode` returns the samples."""
    try:
        module = importlib.import_module("PIL.Image")
    except ImportError:
        raise ImportError("to_pil needs Pillow: pip install pillow") from None
    most = 2**info.bits - 1
    if info.bits > 8 and info.colour != "gray":
        raise ValueError(f"Pillow has no mode for {info.colour} of {info.bits} bits: use "
                         f"PIL.Image.fromarray((image.decode() >> {info.bits - 8}).astype('uint8')), which loses bits")
    pixels = decode()
    size = pixels.shape[1], pixels.shape[0]
    transparent: Any = info.transparent
    if info.colour == "palette":
        made = module.frombytes("P", size, pixels.tobytes())
        palette = info.palette
        assert palette is not None
        made.putpalette(palette[:, :3].tobytes())
        if palette.shape[1] == 4:
            made.info["transparency"] = palette[:, 3].tobytes()
    elif info.bits > 8:
        made = module.frombytes("I;16", size, pixels.astype("<u2").tobytes())
    elif info.colour == "gray" and info.bits == 1:
        made = module.frombytes("1", size, np.packbits(pixels[:, :, 0], axis=1).tobytes())
        transparent = 255 if transparent else transparent
    else:
        def scaled(samples: Any) -> Any:
            return (np.asarray(samples, np.uint16) * 255 + most // 2) // most

        modes = {"gray": "L", "gray_alpha": "LA", "rgb": "RGB", "rgb_alpha": "RGBA"}
        mode = modes[info.colour][:-1] + "a" if info.premultiplied else modes[info.colour]
        made = module.frombytes(mode, size, (pixels if most == 255 else scaled(pixels).astype(np.uint8)).tobytes())
        if transparent is not None:
            transparent = scaled(transparent).tolist()
            transparent = tuple(transparent) if isinstance(transparent, list) else transparent
    if transparent is not None:
        made.info["transparency"] = transparent
    if info.icc is not None:
        made.info["icc_profile"] = info.icc
    if info.exif is not None:
        made.info["exif"] = b"Exif\0\0" + info.exif
    if info.text:
        made.text = dict(info.text)  # as in a PNG that Pillow has opened
    return made


def metadata_of(image: Any) -> tuple[Any, Any, Any]:
    """Returns the ICC profile, EXIF and text of an image."""
    text = getattr(image, "text", None)  # of a PNG that Pillow opened
    return image.info.get("icc_profile"), image.info.get("exif"), text if isinstance(text, dict) else None
