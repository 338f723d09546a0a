"""Pillow images: what L3 takes from them, and how it makes them. Pillow itself is needed only to make them."""

from __future__ import annotations

import importlib
import struct
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ._chunks import XMP, Chunk
from ._errors import Error
from ._info import Info

_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16", "I;16L", "I;16B", "I;16N")
_CONVERTED = {"CMYK": "RGB", "YCbCr": "RGB", "LAB": "RGB", "HSV": "RGB", "RGBX": "RGB", "PA": "RGBA", "RGBa": "RGBA",
              "La": "LA", "I": "I;16"}
_DENSITY = struct.Struct(">IIB")


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


def mode_of(info: Info) -> str:
    """Returns the mode of the Pillow image that holds the samples of a file."""
    if info.bits > 8 and info.colour != "gray":
        raise ValueError(f"Pillow has no mode for {info.colour} of {info.bits} bits: use "
                         f"PIL.Image.fromarray((image.decode() >> {info.bits - 8}).astype('uint8')), which loses bits")
    if info.colour == "gray":
        return "I;16" if info.bits > 8 else "1" if info.bits == 1 else "L"
    mode = {"palette": "P", "gray_alpha": "LA", "rgb": "RGB", "rgb_alpha": "RGBA"}[info.colour]
    return mode[:-1] + "a" if info.premultiplied else mode


def raw_of(info: Info, pixels: np.ndarray[Any, Any]) -> bytes:
    """Returns samples as Pillow's decoder "raw" takes them."""
    if info.bits > 8:
        return pixels.astype("<u2").tobytes()
    if mode_of(info) == "1":
        return np.packbits(pixels[:, :, 0], axis=1).tobytes()
    return pixels.tobytes() if info.bits == 8 or info.colour == "palette" else _scaled(pixels, info.bits).tobytes()


def _scaled(samples: Any, bits: int) -> np.ndarray[Any, Any]:
    most = 2**bits - 1
    return np.asarray((np.asarray(samples, np.uint16) * 255 + most // 2) // most, np.uint8)


def describe(made: Any, info: Info) -> None:
    """Gives a Pillow image everything that an Info has, but for samples and palette."""
    transparent: Any = info.transparent
    chunks = info.chunks  # verifies the sections, so that only what is in them can be damaged below
    if info.palette is not None and info.palette.shape[1] == 4:
        made.info["transparency"] = info.palette[:, 3].tobytes()
    if transparent is not None:
        if info.bits <= 8:
            transparent = _scaled(transparent, info.bits).tolist()
        made.info["transparency"] = tuple(transparent) if isinstance(transparent, list) else transparent
    icc, text = _read(lambda: info.icc), _read(lambda: info.text)
    if icc is not None:
        made.info["icc_profile"] = icc
    if info.exif is not None:
        made.info["exif"] = b"Exif\0\0" + info.exif
    for chunk in chunks:
        if chunk.tag == "pHYs" and len(chunk.data) == 9 and chunk.data[8] == 1:  # per metre
            made.info["dpi"] = tuple(number * 0.0254 for number in _DENSITY.unpack(chunk.data)[:2])
    if text:
        made.text = dict(text)  # as in a PNG that Pillow has opened
        if XMP in text:
            made.info["xmp"] = text[XMP].encode("utf-8")


def _read(read: Callable[[], Any]) -> Any:
    """Calls `read`. What cannot be unpacked keeps nobody from the pixels: it is left out, with a warning."""
    try:
        return read()
    except Error as error:
        warnings.warn(f"{error}; it is left out", stacklevel=2)
        return None


def to_pillow(info: Info, decode: Callable[[], np.ndarray[Any, Any]]) -> Any:
    """Makes a Pillow image with everything that an Info has. `decode` returns the samples."""
    try:
        module = importlib.import_module("PIL.Image")
    except ImportError:
        raise ImportError("to_pil needs Pillow: pip install pillow") from None
    mode = mode_of(info)
    pixels = decode()
    made = module.frombytes(mode, (pixels.shape[1], pixels.shape[0]), raw_of(info, pixels))
    if info.palette is not None:
        made.putpalette(info.palette[:, :3].tobytes())
    describe(made, info)
    return made


def metadata_of(image: Any) -> tuple[Any, Any, Any, list[Chunk] | None]:
    """Returns the ICC profile, EXIF, text and other chunks of an image."""
    text = getattr(image, "text", None)  # of a PNG that Pillow opened
    text = with_xmp(text if isinstance(text, dict) else None, image.info.get("xmp"))
    return image.info.get("icc_profile"), image.info.get("exif"), text, _density_of(image.info.get("dpi"))


def with_xmp(text: Any, xmp: Any) -> Any:
    """Returns the text of an image together with the XMP that it has by itself, if there is any."""
    if isinstance(xmp, bytes):
        try:
            packet = xmp.decode("utf-8").rstrip("\0")
        except UnicodeDecodeError:
            return text
        if packet and "\0" not in packet and (text or {}).get(XMP) != packet:
            return {**(text or {}), XMP: packet}
    return text


def _density_of(dpi: Any) -> list[Chunk] | None:
    try:
        per_metre = [int(float(number) / 0.0254 + 0.5) for number in dpi]
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        return None  # none, or what some reader of Pillow made of a strange file
    if len(per_metre) != 2 or not all(0 < number < 2**31 for number in per_metre):
        return None
    return [Chunk("pHYs", _DENSITY.pack(*per_metre, 1))]
