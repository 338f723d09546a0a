"""Makes Pillow read and write L3 files, and so what is built on Pillow. Needs Pillow 10.1 or later.

>>> import l3.pillow
>>> from PIL import Image
>>> image = Image.open("photo.l3")                      # reads what lies before the pixels
>>> image.crop((0, 0, 64, 64)).save("corner.l3", effort=3)
"""

from __future__ import annotations

from typing import Any

from PIL import Image, ImageFile, ImagePalette, UnidentifiedImageError

from . import _arguments as arguments
from . import _pillow
from ._coding import Model, decode, encode
from ._errors import Error
from ._files import L3_SIGNATURES
from ._info import info

__all__ = ["use_models"]

_OPTIONS = ("method", "effort", "bits", "tile", "threads", "chunks")
# What Pillow's options say in place of image.info.
_KEPT = ("icc_profile", "exif", "xmp", "dpi", "transparency")
_models: list[Model] = []


def use_models(models: Any) -> None:
    """Names the models for all files that Pillow opens in this process: as `models` of :func:`l3.decode`.

    Replaces those of the last call. ``use_models([])`` forgets them.
    """
    if arguments.is_source(models):
        models = [models]
    _models[:] = [model if isinstance(model, Model) else Model(model) for model in models]


def _accept(prefix: bytes) -> bool:
    return prefix.startswith(L3_SIGNATURES)


class L3ImageFile(ImageFile.ImageFile):
    format = "L3"
    format_description = "L3, lossless images that a GPU decodes"

    def _open(self) -> None:
        # Pillow drops the words of a SyntaxError, but not those of an UnidentifiedImageError.
        try:
            found = info(self.fp)
            self._mode = _pillow.mode_of(found)
            _pillow.describe(self, found)
        except (Error, ValueError) as error:
            raise UnidentifiedImageError(str(error)) from error
        self._size = found.width, found.height
        if found.palette is not None:
            self.palette = ImagePalette.raw("RGB", found.palette[:, :3].tobytes())
        self.tile = [("l3", (0, 0, *self._size), 0, ())]

    def verify(self) -> None:
        """Decodes the pixels, which compares all checks, and forgets them. Raises OSError if the file is damaged."""
        if self.fp is None:
            raise RuntimeError("verify must be called directly after open")
        self.fp.seek(0)
        _decoded(self.fp)
        super().verify()


class _Decoder(ImageFile.PyDecoder):
    _pulls_fd = True

    def decode(self, buffer: Any) -> tuple[int, int]:
        self.set_as_raw(_pillow.raw_of(*_decoded(self.fd)))
        return -1, 0


def _decoded(stream: Any) -> tuple[Any, Any]:
    """Returns the Info and the samples of a file. As Pillow's own decoders do it, on one thread."""
    try:
        pixels, found = decode(stream, threads=1, models=_models, return_info=True)
    except Error as error:
        raise OSError(str(error)) from error
    return found, pixels


def _save(image: Any, stream: Any, filename: Any) -> None:
    given = image.encoderinfo
    try:
        _pillow.check_mode(image.mode)
    except ValueError as error:
        raise OSError(f"cannot write mode {image.mode} as L3: {error}") from error
    before = image.info
    image.info = {**before, **{name: given[name] for name in _KEPT if name in given}}
    options = {name: given[name] for name in _OPTIONS if name in given}
    try:
        if "text" in given:
            options["text"] = _pillow.with_xmp(given["text"], image.info.get("xmp"))
        stream.write(encode(image, **options))
    finally:
        image.info = before


Image.register_open("L3", L3ImageFile, _accept)
Image.register_save("L3", _save)
Image.register_extension("L3", ".l3")
Image.register_mime("L3", "image/x-l3")
Image.register_decoder("l3", _Decoder)
