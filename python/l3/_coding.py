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
    """What a file says of itself; see :func:`info`."""

    width: int
    height: int
    channels: int
    bits: int
    """of a sample: 1 to 16"""
    colour: str
    """'gray', 'gray_alpha', 'rgb', 'rgb_alpha' or 'palette'"""
    premultiplied: bool
    """whether colours are multiplied by alpha"""
    dtype: str
    """of what is decoded: 'uint8' or 'uint16'"""
    tile_width: int
    tile_height: int
    tiles: int
    size: int
    """of the file, in bytes"""
    model: str
    """where the model of its dense tiles is: 'none', 'own' (in the file), 'named' (``models=``) or 'default'"""
    model_name: str | None
    """of a named or default model, in hexadecimal digits"""
    digest: str
    version: int
    """of the format"""

    @property
    def shape(self) -> tuple[int, int, int]:
        """(height, width, channels)"""
        return self.height, self.width, self.channels


class Model:
    """A model that files name, opened: ``l3.decode(files, models=[l3.Model("icons.l3model")])``.

    Opening one takes longer than decoding a tiny image, so who decodes many opens it once.
    """

    def __init__(self, source: Source) -> None:
        if isinstance(source, (str, os.PathLike)):
            with open(source, "rb") as file:
                source = file.read()
        self._native = _native.Model.open(bytes(arguments.native_source(source)))  # type: ignore[call-overload]

    @property
    def name(self) -> str:
        """By which files call it, in hexadecimal digits."""
        return self._native.name.hex()

    def __reduce__(self) -> tuple[type[Model], tuple[bytes]]:
        return Model, (self._native.contents,)

    def __repr__(self) -> str:
        return f"l3.Model({self.name})"


def info(source: Source) -> Info:
    """What a file says of itself. Reads its head, and verifies that alone.

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


@overload  # a text is a sequence of texts too, and is a path here
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
    """Decodes a file, or a list of them. Every check is verified.

    >>> l3.decode("a.l3").shape
    (480, 640, 3)
    >>> l3.decode("a.l3", layout="CHW", dtype="float32", mean=0.5, std=0.5)          # from -1 to 1
    >>> l3.decode(["a.l3", "b.l3"], out=batch)                                       # of shape (2, 480, 640, 3)
    >>> l3.decode("a.l3", region=(100, 200, 64, 64), device="cuda")                  # an l3.Tensor

    source
        bytes or anything with the buffer protocol, or a path. One gives an array; a list gives a list of arrays. The
        bytes must not change meanwhile: pixels would be wrong, or an error would say that the file is damaged.
    layout
        ``"HWC"`` or ``"CHW"``: three dimensions, so that one channel has shape (H, W, 1) or (1, H, W). ``"HW"``: two,
        for images of one channel, as ``PIL.Image.fromarray`` and matplotlib want them.
    dtype
        None: as stored, uint8 up to 8 bits and uint16 above (with ``out``: its type). ``"float16"``, ``"float32"`` and
        ``"bfloat16"`` are samples divided by the largest one that their bits allow, from 0 to 1, then
        ``(value - mean) / std``. NumPy has no bfloat16: that comes as an :class:`l3.Tensor`.
    mean, std
        a number, or one for each channel.
    region
        (x, y, width, height), all inside the image.
    colours
        palette images become red, green, blue (and alpha where there is transparency). Otherwise they are indices, as
        label maps are wanted.
    flip
        mirrors left to right.
    out
        an array to decode into, without gaps, of the right shape and type: NumPy's, or a tensor with DLPack. With a
        list of sources a batch, (N, ...). It is returned. It must not share memory with a source.
    device, stream
        ``"cuda"`` or ``"cuda:1"`` decodes there and gives an :class:`l3.Tensor`, in the order of `stream`: the address
        of a stream or an object that has one; None is torch's current one if torch is loaded, else the default one.
    threads
        that decode; 0: one for each processor.
    models
        that files name: :class:`l3.Model`, or what one is made of.
    max_pixels, max_bytes
        of each image; None: 2^28 pixels, 2^30 bytes.
    """
    single = arguments.is_source(source)
    sources: Sequence[Any] = [source] if single else source  # type: ignore[assignment]
    arguments.one_of("layout", layout, arguments.LAYOUTS)
    wanted = arguments.dtype_name("dtype", dtype)
    means, stds = arguments.numbers("mean", mean), arguments.numbers("std", std)
    if region is not None:
        region = arguments.whole_numbers("region", region, 4, "(x, y, width, height)")
        if 0 in region[2:]:
            raise ValueError(f"region is {tuple(region)!r}, and must have a width and a height of at least 1")
    threads = arguments.whole_number("threads", threads, 0, 1024)
    number = arguments.is_gpu(device)
    address = arguments.stream_address(stream, number) if number is not None else 0
    given = None
    if out is not None:
        given = _output(out, number, address)
        if wanted and wanted != given.dtype:
            raise ValueError(f"out has the type {given.dtype}, and dtype is {wanted!r}")
        wanted = given.dtype
        if wanted not in arguments.DTYPES:
            raise ValueError(f"out has the type {wanted}, and must have {arguments.either(arguments.DTYPES)}")
    arguments.check_scaling(wanted, means, stds)

    files = _native.Files([arguments.native_source(each) for each in sources], arguments.native_models(models),
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
                raise ValueError(f"layout 'HW' is for images of one channel, and this one has {channels}")
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
            raise ValueError("layout 'HW' needs out=, or device 'cpu'")
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
    """The memory of `out`, which must be on the device that is wanted."""
    if isinstance(out, np.ndarray):
        if not out.flags.writeable:
            raise ValueError("out may only be read")
        if not out.flags.c_contiguous:
            raise ValueError("out has gaps, or its dimensions are not in their order (C)")
        if not out.dtype.isnative:
            raise ValueError(f"out has the type {out.dtype}, whose bytes are not in this machine's order")
        if out.dtype.name not in arguments.DTYPES:
            raise ValueError(f"out has the type {out.dtype}, and must have {arguments.either(arguments.DTYPES)}")
        given = _native.tensor_of_buffer(out, True)
    elif isinstance(out, _native.Tensor):
        given = out
    elif hasattr(out, "__dlpack__"):
        try:
            given = _native.tensor_of_dlpack(out, stream)
        except BufferError as error:
            raise ValueError(f"out is {error}") from error
    else:
        raise TypeError(f"out is {type(out).__name__}, and must be a NumPy array or a tensor that has __dlpack__")
    device = "cpu" if number is None else f"cuda:{number}"
    if given.device != device:
        raise ValueError(f"out is on {given.device}, and device is {device!r}")
    return given


def _check_shape(given: _native.Tensor, shapes: list[tuple[int, ...]], single: bool) -> None:
    if not single and len(set(shapes)) > 1:
        other = next(i for i, shape in enumerate(shapes) if shape != shapes[0])
        raise ValueError(f"the images have different shapes: {shapes[0]}, and {shapes[other]} of number {other}")
    expected: tuple[int, ...] = shapes[0] if single else (len(shapes), *(shapes[0] if shapes else given.shape[1:]))
    if tuple(given.shape) != expected:
        raise ValueError(f"out has the shape {tuple(given.shape)}, and must have {expected}")


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
    """Encodes an array, to bytes or to a file, which then appears at once and whole.

    >>> file = l3.encode(np.zeros((480, 640, 3), np.uint8))
    >>> l3.encode(depth, "depth.l3", bits=12)                       # uint16 with values below 4096
    >>> l3.encode(labels, "labels.l3", palette=np.uint8([[0, 0, 0], [128, 64, 128]]))

    array
        uint8 or uint16, of shape (H, W) or (H, W, C) with up to 4 channels (with ``layout="CHW"``: (C, H, W)): NumPy's,
        or anything on a CPU that NumPy takes. Or an image of Pillow's of mode 1, L, LA, RGB, RGBA, I;16 or P. Mode P
        keeps its palette and its transparency, unless `colour` is ``"gray"``. Of the other modes only samples are
        kept: where ``image.info`` has a transparent colour, ``image.convert("RGBA")`` makes it samples.
    path
        of the file to write. Without one the bytes are returned.
    method, effort
        ``"auto"``: for each tile what takes the fewest bytes; ``"fast"``; ``"dense"``. Efforts are 1 to 9.
    colour
        ``"gray"``, ``"gray_alpha"``, ``"rgb"``, ``"rgb_alpha"`` or ``"palette"``; None: as the number of channels says.
    bits
        of a sample, 1 to 16; None: 8 or 16, as the type says.
    palette
        of indices: an array of (N, 3) or, with alpha, (N, 4) bytes. An index that has no entry is a ValueError.
    premultiplied
        whether colours are multiplied by alpha.
    tile
        width and height of tiles, multiples of 32, or a number for both; None: 128.
    threads
        that encode; 0: one for each processor. The bytes never depend on it.
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
        raise ValueError(f"bits is {bits}, and the array's type is {pixels.dtype}: "
                         + ("uint8 has 1 to 8 bits" if most == 8 else "uint16 has 9 to 16 bits"))
    entries, transparency = _palette(palette)
    channels = pixels.shape[2]
    if colour is None:
        colour = "palette" if entries else _COLOURS[channels]
    possible = {_COLOURS[channels]} | ({"palette"} if channels == 1 else set())
    if colour not in possible:
        raise ValueError(f"colour is {colour!r}, and with {channels} channel{'s' if channels != 1 else ''} must be "
                         + arguments.either(sorted(possible)))
    if (colour == "palette") != bool(entries):
        raise ValueError("colour 'palette' and the argument palette need each other")
    if entries and int(pixels.max()) >= len(entries) // 3:
        row, column = np.argwhere(pixels[:, :, 0] >= len(entries) // 3)[0]
        raise ValueError(f"array has the index {pixels[row, column, 0]} at row {row}, column {column}, and the palette "
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
    """The array as (height, width, channels) without gaps."""
    if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
        array = np.from_dlpack(array)
    pixels = np.asarray(array)
    if pixels.dtype not in (np.dtype(np.uint8), np.dtype(np.uint16)):
        if pixels.dtype.newbyteorder("=") != np.dtype(np.uint16):
            raise TypeError(f"array has the type {pixels.dtype}, and must have 'uint8' or 'uint16'")
        pixels = pixels.astype(np.uint16)
    if layout == "HW" and pixels.ndim != 2:
        raise ValueError(f"array has the shape {pixels.shape}, and with layout 'HW' must have two dimensions")
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    elif pixels.ndim == 3 and layout == "CHW":
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim != 3 or not 1 <= pixels.shape[2] <= 4 or 0 in pixels.shape:
        expected = "(C, H, W)" if layout == "CHW" else "(H, W, C)"
        raise ValueError(f"array has the shape {np.shape(array)}, and must have (H, W) or {expected}, with 1 to 4 "
                         "channels")
    return np.ascontiguousarray(pixels)


_PILLOW_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16", "I;16L", "I;16B", "I;16N")
_CONVERTED = {"CMYK": "RGB", "YCbCr": "RGB", "LAB": "RGB", "HSV": "RGB", "RGBX": "RGB", "PA": "RGBA", "RGBa": "RGBA",
              "La": "LA", "I": "I;16"}


def _pillow_palette(image: Any, mode: str, palette: Any, colour: str | None) -> Any:
    """The palette of an image of Pillow's, if it has one and none is given. ValueError for modes that L3 lacks."""
    if mode not in _PILLOW_MODES:
        write = f"image.convert({_CONVERTED[mode]!r})" if mode in _CONVERTED else "an array of uint8 or uint16"
        clips = ", which clips samples above 65535" if mode == "I" else ""
        raise ValueError(f"L3 files have no mode {mode!r}: encode {write} instead{clips}")
    if mode != "P" or palette is not None or colour not in (None, "palette"):
        return palette
    indices = np.asarray(image)
    given = np.asarray(image.getpalette("RGBA") or [], np.uint8).reshape(-1, 4)
    # Pillow leaves out what it thinks unused, and takes it for black.
    entries = np.zeros((max(len(given), int(indices.max(initial=0)) + 1), 4), np.uint8)
    entries[:, 3] = 255
    entries[:len(given)] = given
    # Alpha is in the palette, or beside it. A GIF may name an entry that it does not have, and that no pixel uses.
    transparency = image.info.get("transparency")
    if isinstance(transparency, bytes):
        count = min(len(transparency), len(entries))
        entries[:count, 3] = np.frombuffer(transparency, np.uint8)[:count]
    elif transparency is not None and transparency < len(entries):
        entries[transparency, 3] = 0
    return entries if np.any(entries[:, 3] != 255) else entries[:, :3]


def _palette(palette: Any) -> tuple[bytes, bytes]:
    """Entries, and their alpha or nothing."""
    if palette is None:
        return b"", b""
    table = np.asarray(palette)
    if table.dtype != np.uint8 or table.ndim != 2 or table.shape[1] not in (3, 4) or not 1 <= len(table) <= 256:
        raise ValueError(f"palette has the shape {table.shape} and the type {table.dtype}, and must have (N, 3) or "
                         "(N, 4), N up to 256, and 'uint8'")
    return table[:, :3].tobytes(), table[:, 3].tobytes() if table.shape[1] == 4 else b""


def _write(path: str, file: bytes) -> None:
    """Writes a file that is never there in part."""
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
