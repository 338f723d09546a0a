"""Single images: decode, encode, info."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, overload

import numpy as np

from . import _arguments as arguments
from . import _native
from ._arguments import Numbers, Source

Array = np.ndarray[Any, np.dtype[Any]]
Sources = Sequence[Source]
Decoded = Union[Array, _native.Tensor]

_HEAD_BYTES = 336
_COLOURS = {1: "gray", 2: "gray_alpha", 3: "rgb", 4: "rgb_alpha"}
_METHODS = ("auto", "fast", "dense")
_MODELS = ("none", "own", "named", "default")


@dataclass(frozen=True)
class Info:
    """The properties of a file, from its head; see :func:`info`."""

    width: int
    height: int
    channels: int
    bits: int
    """bits per sample, 1 to 16"""
    colour: str
    """'gray', 'gray_alpha', 'rgb', 'rgb_alpha' or 'palette'"""
    premultiplied: bool
    """whether the colours are multiplied by alpha"""
    dtype: str
    """type of the decoded samples: 'uint8' or 'uint16'"""
    tile_width: int
    tile_height: int
    tiles: int
    size: int
    """size of the file in bytes"""
    model: str
    """where the model of its dense tiles comes from: 'none', 'own' (in the file), 'named' (``models=``) or 'default'"""
    model_name: str | None
    """name of a named or default model, in hexadecimal digits"""
    digest: str
    """digest of the file, in hexadecimal digits"""
    version: int
    """version of the format"""

    @property
    def shape(self) -> tuple[int, int, int]:
        """(height, width, channels)"""
        return self.height, self.width, self.channels


class Model:
    """A model that files need for decoding: ``l3.decode(files, models=[l3.Model("icons.l3model")])``.

    Opening a model takes longer than decoding a tiny image. Open it once if you decode many.
    """

    def __init__(self, source: Source) -> None:
        if isinstance(source, (str, os.PathLike)):
            with open(source, "rb") as file:
                source = file.read()
        self._native = _native.Model.open(bytes(arguments.native_source(source)))  # type: ignore[call-overload]

    @property
    def name(self) -> str:
        """The name by which files refer to it, in hexadecimal digits."""
        return self._native.name.hex()

    def __reduce__(self) -> tuple[type[Model], tuple[bytes]]:
        return Model, (self._native.contents,)

    def __repr__(self) -> str:
        return f"l3.Model({self.name})"


def _native_models(models: object | Sequence[object]) -> list[_native.Model | _native.DataSet]:
    """Converts models for the extension."""
    if isinstance(models, (Model, _native.DataSet)) or arguments.is_source(models):
        models = [models]
    found: list[_native.Model | _native.DataSet] = []
    for model in models:  # type: ignore[attr-defined]
        if isinstance(model, _native.DataSet):
            found.append(model)
        else:
            found.append((model if isinstance(model, Model) else Model(model))._native)
    return found


def info(source: Source) -> Info:
    """Returns the properties of a file. Reads and verifies only its head.

    >>> l3.info("photo.l3").shape
    (480, 640, 3)
    """
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        with open(source, "rb") as file:
            head: Any = file.read(_HEAD_BYTES)
            size = os.fstat(file.fileno()).st_size
    else:
        name = ""
        head = memoryview(arguments.native_source(source)).cast("B")  # type: ignore[arg-type]
        size = head.nbytes
    found = _native.read_info(head, name)
    origin = _MODELS[found["model_origin"]]
    return Info(
        width=found["width"], height=found["height"], channels=found["channels"], bits=found["bits"],
        colour=found["colour"], premultiplied=found["premultiplied"],
        dtype="uint16" if found["bits"] > 8 else "uint8",
        tile_width=found["tile_width"], tile_height=found["tile_height"], tiles=found["tiles"], size=size,
        model=origin, model_name=found["model_name"].hex() if origin in ("named", "default") else None,
        digest=found["digest"].hex(), version=found["version"])


# ----------------------------------------------------------------------------------------------------------- decode


@overload  # a str is a sequence of str too, but it is a path here
def decode(  # type: ignore[overload-overlap]
        source: Source, *, layout: str = ..., dtype: object = ..., mean: Numbers | None = ...,
           std: Numbers | None = ..., region: Sequence[int] | None = ..., colours: bool = ..., flip: bool = ...,
           out: None = ..., device: Literal["cpu"] = ..., stream: object = ..., threads: int = ...,
           models: object = ..., max_pixels: int | None = ..., max_bytes: int | None = ...) -> Array: ...


@overload
def decode(source: Sources, *, layout: str = ..., dtype: object = ..., mean: Numbers | None = ...,
           std: Numbers | None = ..., region: Sequence[int] | None = ..., colours: bool = ..., flip: bool = ...,
           out: None = ..., device: Literal["cpu"] = ..., stream: object = ..., threads: int = ...,
           models: object = ..., max_pixels: int | None = ..., max_bytes: int | None = ...) -> list[Array]: ...


@overload
def decode(source: Source | Sources, *, layout: str = ..., dtype: object = ..., mean: Numbers | None = ...,
           std: Numbers | None = ..., region: Sequence[int] | None = ..., colours: bool = ..., flip: bool = ...,
           out: Any = ..., device: object = ..., stream: object = ..., threads: int = ...,
           models: object = ..., max_pixels: int | None = ..., max_bytes: int | None = ...) -> Any: ...


def decode(source: Source | Sources, *, layout: str = "HWC", dtype: object = None,
           mean: Numbers | None = None, std: Numbers | None = None, region: Sequence[int] | None = None,
           colours: bool = False, flip: bool = False, out: Any = None, device: object = "cpu", stream: object = None,
           threads: int = 0, models: object = (), max_pixels: int | None = None,
           max_bytes: int | None = None) -> Any:
    """Decodes a file or a list of files. Verifies every check.

    >>> l3.decode("a.l3").shape
    (480, 640, 3)
    >>> l3.decode("a.l3", layout="CHW", dtype="float32", mean=0.5, std=0.5)          # from -1 to 1
    >>> l3.decode(["a.l3", "b.l3"], out=batch)                                       # of shape (2, 480, 640, 3)
    >>> l3.decode("a.l3", region=(100, 200, 64, 64), device="cuda")                  # an l3.Tensor

    source
        bytes, any object with the buffer protocol, or a path. A single source returns an array, and a list returns a
        list of arrays. The bytes must not change during the call: the pixels would be wrong, or the call would report
        damage.
    layout
        ``"HWC"`` or ``"CHW"``: three dimensions, so an image of one channel has shape (H, W, 1) or (1, H, W).
        ``"HW"``: two dimensions, for images of one channel, as ``PIL.Image.fromarray`` and matplotlib expect.
    dtype
        None: as stored, which is uint8 up to 8 bits and uint16 above (with ``out``: its type). For ``"float16"``,
        ``"float32"`` and ``"bfloat16"``, samples are divided by the largest value of their bits, so that they are
        from 0 to 1, and then become ``(value - mean) / std``. NumPy has no bfloat16, so it is returned as an
        :class:`l3.Tensor`.
    mean, std
        a number, or one number per channel.
    region
        (x, y, width, height), which must lie inside the image. Only the tiles that it touches are decoded.
    colours
        True: palette images become red, green, blue (and alpha if they have transparency). False: they stay indices,
        as label maps need.
    flip
        True: mirror left to right.
    out
        a contiguous array of the right shape and type to decode into: a NumPy array or a tensor with DLPack. With a
        list of sources it is a batch of shape (N, ...). The call returns it. It must not share memory with a source.
    device, stream
        ``"cuda"`` or ``"cuda:1"``: decode on that GPU and return an :class:`l3.Tensor`. The work is ordered after the
        work in `stream`, which is the address of a stream or a stream object. None: torch's current stream if torch is
        loaded, else the default stream.
    threads
        the number of threads; 0: one per processor.
    models
        models that the files name: :class:`l3.Model` objects, paths or bytes.
    max_pixels, max_bytes
        limits for each image; None: 2^28 pixels, 2^30 bytes.

    Raises :class:`l3.Error` if a file is damaged or over a limit, ValueError or TypeError if an argument is wrong, and
    OSError if a file cannot be read.
    """
    single = arguments.is_source(source)
    sources: Sequence[Any] = [source] if single else source  # type: ignore[assignment]
    arguments.one_of("layout", layout, arguments.LAYOUTS)
    wanted = arguments.dtype_name("dtype", dtype)
    means, stds = arguments.numbers("mean", mean), arguments.numbers("std", std)
    if region is not None:
        region = arguments.whole_numbers("region", region, 4, "(x, y, width, height)")
        if 0 in region[2:]:
            raise ValueError(f"region is {tuple(region)!r}, but must have a width and a height of at least 1")
    threads = arguments.whole_number("threads", threads, 0, 1024)
    number = arguments.is_gpu(device)
    address = arguments.stream_address(stream, number) if number is not None else 0
    given = None
    if out is not None:
        given = _output(out, number, address)
        if wanted and wanted != given.dtype:
            raise ValueError(f"out has dtype {given.dtype}, but dtype is {wanted!r}")
        wanted = given.dtype
        if wanted not in arguments.DTYPES:
            raise ValueError(f"out has dtype {wanted}, but must have {arguments.either(arguments.DTYPES)}")
    arguments.check_scaling(wanted, means, stds)

    files = _native.Files([arguments.native_source(each) for each in sources], _native_models(models),
                          arguments.truth("colours", colours), region, _limit("max_pixels", max_pixels),
                          _limit("max_bytes", max_bytes), threads)
    shapes = []
    for height, width, channels, bits in files.shapes():
        arguments.check_channels("mean", means, channels)
        arguments.check_channels("std", stds, channels)
        stored = "uint16" if bits > 8 else "uint8"
        if wanted == "uint8" and bits > 8:
            raise ValueError(f"samples of {bits} bits do not fit dtype 'uint8'")
        shape: tuple[int, ...] = (channels, height, width) if layout == "CHW" else (height, width, channels)
        if layout == "HW":
            if channels != 1:
                raise ValueError(f"layout 'HW' is for images of one channel, but this image has {channels}")
            shape = (height, width)
        shapes.append((shape, wanted or stored))

    how = (wanted, layout == "CHW", arguments.truth("flip", flip), means, stds)
    if given is not None:
        _check_shape(given, [shape for shape, _ in shapes], single)
        if not shapes:
            return out
        if number is not None:
            files.decode_on_gpu([given], *how, number, address)
        else:
            files.decode([given], *how, threads)
        return out
    if number is not None:
        if layout == "HW":
            raise ValueError("layout 'HW' needs out= or device='cpu'")
        tensors = files.decode_on_gpu([], *how, number, address)
        return tensors[0] if single else tensors
    arrays: list[Decoded] = []
    places: list[_native.Tensor] = []
    for shape, name in shapes:
        if name == "bfloat16":
            places.append(_native.allocate_tensor(shape, name))
            arrays.append(places[-1])
        else:
            array = np.empty(shape, name)
            places.append(_native.tensor_of_buffer(array, True))
            arrays.append(array)
    files.decode(places, *how, threads)
    return arrays[0] if single else arrays


def _limit(name: str, value: int | None) -> int:
    return 0 if value is None else arguments.whole_number(name, value, 1, 2**64 - 1)


def _output(out: Any, number: int | None, stream: int) -> _native.Tensor:
    """Returns the memory of `out`, which must be on the requested device."""
    if isinstance(out, np.ndarray):
        if not out.flags.writeable:
            raise ValueError("out is read-only")
        if not out.flags.c_contiguous:
            raise ValueError("out is not C-contiguous")
        if not out.dtype.isnative:
            raise ValueError(f"out has dtype {out.dtype}, which is not in native byte order")
        if out.dtype.name not in arguments.DTYPES:
            raise ValueError(f"out has dtype {out.dtype}, but must have {arguments.either(arguments.DTYPES)}")
        given = _native.tensor_of_buffer(out, True)
    elif isinstance(out, _native.Tensor):
        given = out
    elif hasattr(out, "__dlpack__"):
        try:
            given = _native.tensor_of_dlpack(out, stream)
        except BufferError as error:
            raise ValueError(f"out is {error}") from error
    else:
        raise TypeError(f"out is {type(out).__name__}, but must be a NumPy array or a tensor with __dlpack__")
    device = "cpu" if number is None else f"cuda:{number}"
    if given.device != device:
        raise ValueError(f"out is on {given.device}, but device is {device!r}")
    return given


def _check_shape(given: _native.Tensor, shapes: list[tuple[int, ...]], single: bool) -> None:
    if not single and len(set(shapes)) > 1:
        other = next(i for i, shape in enumerate(shapes) if shape != shapes[0])
        raise ValueError(f"the images have different shapes: {shapes[0]} for image 0, "
                         f"{shapes[other]} for image {other}")
    expected: tuple[int, ...] = shapes[0] if single else (len(shapes), *(shapes[0] if shapes else given.shape[1:]))
    if tuple(given.shape) != expected:
        raise ValueError(f"out has shape {tuple(given.shape)}, but must have {expected}")


# ----------------------------------------------------------------------------------------------------------- encode


@overload
def encode(array: Any, path: None = ..., *, method: str = ..., effort: int = ..., colour: str | None = ...,
           bits: int | None = ..., palette: Any = ..., premultiplied: bool = ...,
           tile: None | int | Sequence[int] = ..., threads: int = ..., layout: str = ...) -> bytes: ...


@overload
def encode(array: Any, path: str | os.PathLike[str], *, method: str = ..., effort: int = ...,
           colour: str | None = ..., bits: int | None = ..., palette: Any = ..., premultiplied: bool = ...,
           tile: None | int | Sequence[int] = ..., threads: int = ..., layout: str = ...) -> None: ...


def encode(array: Any, path: None | str | os.PathLike[str] = None, *, method: str = "auto", effort: int = 5,
           colour: str | None = None, bits: int | None = None, palette: Any = None, premultiplied: bool = False,
           tile: None | int | Sequence[int] = None, threads: int = 0, layout: str = "HWC") -> bytes | None:
    """Encodes an array. Returns bytes, or writes a file, which appears only when it is complete.

    >>> file = l3.encode(np.zeros((480, 640, 3), np.uint8))
    >>> l3.encode(depth, "depth.l3", bits=12)                       # uint16 with values below 4096
    >>> l3.encode(labels, "labels.l3", palette=np.uint8([[0, 0, 0], [128, 64, 128]]))

    array
        uint8 or uint16, of shape (H, W) or (H, W, C) with at most 4 channels (with ``layout="CHW"``: (C, H, W)). A
        NumPy array, or any array on a CPU that NumPy can convert. Or a Pillow image of mode 1, L, LA, RGB, RGBA, I;16
        or P. Mode P keeps its palette and transparency, unless `colour` is ``"gray"``. Other modes keep only their
        samples: if ``image.info`` has a transparent colour, call ``image.convert("RGBA")`` first.
    path
        the file to write. None: return the bytes.
    method, effort
        ``"auto"``: the method with the fewest bytes for each tile. ``"fast"``: quick to encode and decode.
        ``"dense"``: small. The effort is 1 (quickest) to 9 (fewest bytes); decoding takes the same time.
    colour
        ``"gray"``, ``"gray_alpha"``, ``"rgb"``, ``"rgb_alpha"`` or ``"palette"``; None: from the number of channels.
    bits
        bits per sample, 1 to 16; None: 8 or 16, from the type.
    palette
        the colours of indices: uint8 of shape (N, 3) or, with alpha, (N, 4). An index without an entry raises
        ValueError.
    premultiplied
        whether the colours are multiplied by alpha.
    tile
        (width, height) of a tile, or one number for both; multiples of 32. None: 128.
    threads
        the number of threads; 0: one per processor. The bytes do not depend on it.
    """
    arguments.one_of("layout", layout, arguments.LAYOUTS)
    arguments.one_of("method", method, _METHODS)
    effort = arguments.whole_number("effort", effort, 1, 9)
    tile_width, tile_height = (0, 0) if tile is None else arguments.two_edges("tile", tile, "(width, height)")
    mode = arguments.pillow_mode(array)
    if mode is not None:
        layout = "HWC"  # as Pillow has it
        palette = _pillow_palette(array, mode, palette, colour)
        if mode == "1" and bits is None:
            bits = 1
        array = np.asarray(array, np.uint8) if mode == "1" else np.asarray(array)
    pixels = _pixels(array, layout)
    most = 8 * pixels.itemsize
    if bits is None:
        bits = most
    elif not (1 if most == 8 else 9) <= arguments.whole_number("bits", bits, 1, 16) <= most:
        raise ValueError(f"bits is {bits}, but the array has dtype {pixels.dtype}: "
                         + ("uint8 is for 1 to 8 bits" if most == 8 else "uint16 is for 9 to 16 bits"))
    entries, transparency = _palette(palette)
    channels = pixels.shape[2]
    if colour is None:
        colour = "palette" if entries else _COLOURS[channels]
    possible = {_COLOURS[channels]} | ({"palette"} if channels == 1 else set())
    if colour not in possible:
        raise ValueError(f"colour is {colour!r}, but with {channels} channel{'s' if channels != 1 else ''} must be "
                         + arguments.either(sorted(possible)))
    if (colour == "palette") != bool(entries):
        raise ValueError("colour='palette' needs the argument palette, and palette needs colour='palette'")
    if entries and int(pixels.max()) >= len(entries) // 3:
        row, column = np.argwhere(pixels[:, :, 0] >= len(entries) // 3)[0]
        raise ValueError(f"array has index {pixels[row, column, 0]} at row {row}, column {column}, but the palette has "
                         f"{len(entries) // 3} entries")
    file = _native.encode(_native.tensor_of_buffer(pixels, False), colour, bits,
                          arguments.truth("premultiplied", premultiplied), entries, transparency,
                          _METHODS.index(method), effort, tile_width, tile_height,
                          arguments.whole_number("threads", threads, 0, 1024))
    if path is None:
        return file
    _write(os.fsdecode(path), file)
    return None


def _pixels(array: Any, layout: str) -> Array:
    """Returns the array as (height, width, channels), contiguous."""
    if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
        array = np.from_dlpack(array)
    pixels = np.asarray(array)
    if pixels.dtype not in (np.dtype(np.uint8), np.dtype(np.uint16)):
        if pixels.dtype.newbyteorder("=") != np.dtype(np.uint16):
            raise TypeError(f"array has dtype {pixels.dtype}, but must have 'uint8' or 'uint16'")
        pixels = pixels.astype(np.uint16)
    if layout == "HW" and pixels.ndim != 2:
        raise ValueError(f"array has shape {pixels.shape}, but layout 'HW' needs two dimensions")
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    elif pixels.ndim == 3 and layout == "CHW":
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim != 3 or not 1 <= pixels.shape[2] <= 4 or 0 in pixels.shape:
        expected = "(C, H, W)" if layout == "CHW" else "(H, W, C)"
        raise ValueError(f"array has shape {np.shape(array)}, but must have (H, W) or {expected}, with 1 to 4 "
                         "channels")
    return np.ascontiguousarray(pixels)


_PILLOW_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16", "I;16L", "I;16B", "I;16N")
_CONVERTED = {"CMYK": "RGB", "YCbCr": "RGB", "LAB": "RGB", "HSV": "RGB", "RGBX": "RGB", "PA": "RGBA", "RGBa": "RGBA",
              "La": "LA", "I": "I;16"}


def _pillow_palette(image: Any, mode: str, palette: Any, colour: str | None) -> Any:
    """Returns the palette of a Pillow image, unless one is given. Raises ValueError for modes that L3 lacks."""
    if mode not in _PILLOW_MODES:
        write = f"image.convert({_CONVERTED[mode]!r})" if mode in _CONVERTED else "an array of uint8 or uint16"
        clips = ", which clips samples above 65535" if mode == "I" else ""
        raise ValueError(f"L3 has no equivalent of Pillow's mode {mode!r}: encode {write} instead{clips}")
    if mode != "P" or palette is not None or colour not in (None, "palette"):
        return palette
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


def _palette(palette: Any) -> tuple[bytes, bytes]:
    """Returns the entries of a palette, and their alpha or nothing."""
    if palette is None:
        return b"", b""
    table = np.asarray(palette)
    if table.dtype != np.uint8 or table.ndim != 2 or table.shape[1] not in (3, 4) or not 1 <= len(table) <= 256:
        raise ValueError(f"palette has shape {table.shape} and dtype {table.dtype}, but must have (N, 3) or "
                         "(N, 4), N up to 256, and 'uint8'")
    return table[:, :3].tobytes(), table[:, 3].tobytes() if table.shape[1] == 4 else b""


def _write(path: str, file: bytes) -> None:
    """Writes a file that appears only when it is complete."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(file)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
