"""Single images: decode and encode."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Union, overload

import numpy as np

from . import _arguments as arguments
from . import _chunks, _native, _pillow
from ._arguments import Numbers, Source, Writable
from ._chunks import Chunk
from ._files import is_l3
from ._info import Info, info_fields

Array = np.ndarray[Any, np.dtype[Any]]
Sources = Sequence[Source]
Decoded = Union[Array, _native.Tensor]

_COLOURS = {1: "gray", 2: "gray_alpha", 3: "rgb", 4: "rgb_alpha"}
METHODS = ("auto", "fast", "dense")


class Model:
    """A model that files need for decoding: ``l3.decode(files, models=[l3.Model("icons.l3model")])``.

    Opening a model takes longer than decoding a tiny image. Open it once if you decode many.
    """

    def __init__(self, source: Source) -> None:
        self._native = _native.Model.open(bytes(arguments.contents_of(source)[0]))

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


# ----------------------------------------------------------------------------------------------------------- decode


@overload  # a str is a sequence of str too, but it is a path here
def decode(  # type: ignore[overload-overlap]
        source: Source, *, layout: str = ..., dtype: object = ..., mean: Numbers | None = ...,
        std: Numbers | None = ..., region: Sequence[int] | None = ..., colours: bool = ..., flip: bool = ...,
        out: None = ..., device: Literal["cpu"] = ..., stream: object = ..., threads: int = ..., models: object = ...,
        max_pixels: int | None = ..., max_bytes: int | None = ...,
        return_info: Literal[False] = ...) -> Array: ...


@overload
def decode(
        source: Sources, *, layout: str = ..., dtype: object = ..., mean: Numbers | None = ...,
        std: Numbers | None = ..., region: Sequence[int] | None = ..., colours: bool = ..., flip: bool = ...,
        out: None = ..., device: Literal["cpu"] = ..., stream: object = ..., threads: int = ..., models: object = ...,
        max_pixels: int | None = ..., max_bytes: int | None = ...,
        return_info: Literal[False] = ...) -> list[Array]: ...


@overload
def decode(  # type: ignore[overload-overlap]
        source: Source, *, layout: str = ..., dtype: object = ..., mean: Numbers | None = ...,
        std: Numbers | None = ..., region: Sequence[int] | None = ..., colours: bool = ..., flip: bool = ...,
        out: None = ..., device: Literal["cpu"] = ..., stream: object = ..., threads: int = ..., models: object = ...,
        max_pixels: int | None = ..., max_bytes: int | None = ...,
        return_info: Literal[True]) -> tuple[Array, Info]: ...


@overload
def decode(
        source: Sources, *, layout: str = ..., dtype: object = ..., mean: Numbers | None = ...,
        std: Numbers | None = ..., region: Sequence[int] | None = ..., colours: bool = ..., flip: bool = ...,
        out: None = ..., device: Literal["cpu"] = ..., stream: object = ..., threads: int = ..., models: object = ...,
        max_pixels: int | None = ..., max_bytes: int | None = ...,
        return_info: Literal[True]) -> tuple[list[Array], list[Info]]: ...


@overload
def decode(
        source: Source | Sources, *, layout: str = ..., dtype: object = ..., mean: Numbers | None = ...,
        std: Numbers | None = ..., region: Sequence[int] | None = ..., colours: bool = ..., flip: bool = ...,
        out: Any = ..., device: object = ..., stream: object = ..., threads: int = ..., models: object = ...,
        max_pixels: int | None = ..., max_bytes: int | None = ...,
        return_info: bool = ...) -> Any: ...


def decode(source: Source | Sources, *, layout: str = "HWC", dtype: object = None,
           mean: Numbers | None = None, std: Numbers | None = None, region: Sequence[int] | None = None,
           colours: bool = False, flip: bool = False, out: Any = None, device: object = "cpu", stream: object = None,
           threads: int = 0, models: object = (), max_pixels: int | None = None,
           max_bytes: int | None = None, return_info: bool = False) -> Any:
    """Decodes a file or a list of files. Verifies every check.

    >>> l3.decode("a.l3").shape
    (480, 640, 3)
    >>> l3.decode("a.l3", layout="CHW", dtype="float32", mean=0.5, std=0.5)          # from -1 to 1
    >>> l3.decode(["a.l3", "b.l3"], out=batch)                                       # of shape (2, 480, 640, 3)
    >>> l3.decode("a.l3", region=(100, 200, 64, 64), device="cuda")                  # an l3.Tensor
    >>> pixels, info = l3.decode("a.l3", return_info=True)                           # info.palette, info.icc, ...

    source
        bytes, any object with the buffer protocol, a path, or a file object, which is read from its position to its
        end. A single source returns an array, and a list returns a list of arrays. The bytes must not change during the
        call: the pixels would be wrong, or the call would report damage.
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
    return_info
        True: return a tuple of what is returned otherwise and the :class:`l3.Info` of the file, or a list of them for a
        list of sources.

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

    with_info = arguments.truth("return_info", return_info)
    native_sources = [arguments.native_source(each) for each in sources]
    files = _native.Files(native_sources, _native_models(models), arguments.truth("colours", colours), region,
                          _limit("max_pixels", max_pixels), _limit("max_bytes", max_bytes), threads)
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
    decoded: Any
    if given is not None:
        _check_shape(given, [shape for shape, _ in shapes], single)
        if shapes and number is not None:
            files.decode_on_gpu([given], *how, number, address)
        elif shapes:
            files.decode([given], *how, threads)
        decoded = out
    elif number is not None:
        if layout == "HW":
            raise ValueError("layout 'HW' needs out= or device='cpu'")
        tensors = files.decode_on_gpu([], *how, number, address)
        decoded = tensors[0] if single else tensors
    else:
        arrays = _allocated(shapes)
        files.decode([to for _, to in arrays], *how, threads)
        decoded = arrays[0][0] if single else [array for array, _ in arrays]
    if not with_info:
        return decoded
    infos = [_info_of(files, i, source) for i, source in enumerate(native_sources)]
    return decoded, infos[0] if single else infos


def _allocated(shapes: list[tuple[tuple[int, ...], str]]) -> list[tuple[Decoded, _native.Tensor]]:
    """Returns new arrays of these shapes and types, and their memory."""
    made: list[tuple[Decoded, _native.Tensor]] = []
    for shape, name in shapes:
        if name == "bfloat16":
            tensor = _native.allocate_tensor(shape, name)
            made.append((tensor, tensor))
        else:
            array = np.empty(shape, name)
            made.append((array, _native.tensor_of_buffer(array, True)))
    return made


def _info_of(files: _native.Files, index: int, source: object) -> Info:
    before_pixels, size = files.before_pixels(index)
    name = source[0] if isinstance(source, tuple) else b""
    return Info(**info_fields(before_pixels, size, name, lambda end: before_pixels))


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
        out = _native.tensor_of_buffer(out, True)
    elif not hasattr(out, "__dlpack__"):
        raise TypeError(f"out is {type(out).__name__}, but must be a NumPy array or a tensor with __dlpack__")
    return _tensor_on(number, stream, "out", out)


def _tensor_on(number: int | None, stream: int, name: str, array: Any) -> _native.Tensor:
    """Returns the memory of a tensor with DLPack, which must be on that device."""
    try:
        given = array if isinstance(array, _native.Tensor) else _native.tensor_of_dlpack(array, stream)
    except BufferError as error:
        raise ValueError(f"{name} is {error}") from error
    device = "cpu" if number is None else f"cuda:{number}"
    if given.device != device:
        raise ValueError(f"{name} is on {given.device}, but device is {device!r}")
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
def encode(array: Any, path: None = ..., *, method: str | None = ..., effort: int = ..., colour: str | None = ...,
           bits: int | None = ..., palette: Any = ..., premultiplied: bool = ...,
           tile: None | int | Sequence[int] = ..., threads: int = ..., layout: str = ...,
           transparent: None | int | Sequence[int] = ..., icc: Any = ..., exif: Any = ...,
           text: Mapping[str, str] | None = ..., chunks: Iterable[Chunk] | None = ...,
           device: Literal["cpu"] = ..., stream: None = ...) -> bytes: ...


@overload
def encode(array: Any, path: str | os.PathLike[str] | Writable, *, method: str | None = ..., effort: int = ...,
           colour: str | None = ..., bits: int | None = ..., palette: Any = ..., premultiplied: bool = ...,
           tile: None | int | Sequence[int] = ..., threads: int = ..., layout: str = ...,
           transparent: None | int | Sequence[int] = ..., icc: Any = ..., exif: Any = ...,
           text: Mapping[str, str] | None = ..., chunks: Iterable[Chunk] | None = ...,
           device: object = ..., stream: object = ...) -> None: ...


@overload
def encode(array: Any, path: None = ..., *, method: str | None = ..., bits: int | None = ...,
           premultiplied: bool = ..., tile: None | int | Sequence[int] = ..., layout: str = ...,
           device: object, stream: object = ...) -> bytes | list[bytes]: ...


def encode(array: Any, path: None | str | os.PathLike[str] | Writable = None, *, method: str | None = None,
           effort: int = 5, colour: str | None = None, bits: int | None = None, palette: Any = None,
           premultiplied: bool = False,
           tile: None | int | Sequence[int] = None, threads: int = 0, layout: str = "HWC",
           transparent: None | int | Sequence[int] = None, icc: Any = None, exif: Any = None,
           text: Mapping[str, str] | None = None, chunks: Iterable[Chunk] | None = None, device: object = "cpu",
           stream: object = None) -> bytes | list[bytes] | None:
    """Encodes an image. Returns bytes, or writes a file, which appears only when it is complete.

    >>> file = l3.encode(np.zeros((480, 640, 3), np.uint8))
    >>> l3.encode(depth, "depth.l3", bits=12)                       # uint16 with values below 4096
    >>> l3.encode(labels, "labels.l3", palette=np.uint8([[0, 0, 0], [128, 64, 128]]))

    array
        uint8 or uint16, of shape (H, W) or (H, W, C) with at most 4 channels (with ``layout="CHW"``: (C, H, W)). A
        NumPy array, or any array on a CPU that NumPy can convert. Or a Pillow image of mode 1, L, LA, RGB, RGBA, I;16
        or P. It keeps its palette (unless `colour` is ``"gray"``), its transparent colour, ICC profile, EXIF, XMP and
        density, and the text of a PNG that Pillow opened. The arguments below replace these. Or the bytes of a PNG or
        another image file that :meth:`l3.DatasetWriter.write` takes, of which everything is kept.
    path
        the file to write, or a file object to write to. None: return the bytes.
    method, effort
        ``"auto"``: the method with the fewest bytes for each tile. ``"fast"``: quick to encode and decode.
        ``"dense"``: small. None: ``"auto"``, and on a GPU ``"fast"``, which is the only one there. The effort is 1
        (quickest) to 9 (fewest bytes); decoding takes the same time.
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
    transparent
        for images without alpha: the gray value, or the red, green and blue, that is fully transparent.
    icc, exif
        the bytes of an ICC profile, and of EXIF data. Empty bytes: none, also if a Pillow image has some.
    text
        a dict of texts. Keys have 1 to 79 characters of Latin-1. ``{}``: none, also if a Pillow image has some.
    chunks
        other PNG chunks, as `chunks` of an :class:`l3.Info` lists them. `icc`, `exif` and `text` replace those in it.
    device, stream
        ``"cuda"`` or ``"cuda:1"``: encode on that GPU. `array` is then a contiguous tensor there (torch, CuPy, JAX or
        any other with DLPack), or a list of them; a tensor of four dimensions is a batch. A list or a batch returns a
        list of bytes. The files are those of a CPU with ``method="fast"``, without palette, metadata and transparent
        colour. The work is ordered after the work in `stream`, as in :func:`l3.decode`.

    The command shows and keeps all of these: ``l3 decode`` writes them to a PNG.

    >>> with l3.open("photo.l3") as image:                          # other pixels, everything else as it is
    ...     l3.encode(255 - image.decode(), "negative.l3", chunks=image.chunks)
    """
    arguments.one_of("layout", layout, arguments.LAYOUTS)
    number = arguments.is_gpu(device)
    if method is None:
        method = "auto" if number is None else "fast"
    arguments.one_of("method", method, METHODS)
    effort = arguments.whole_number("effort", effort, 1, 9)
    tile_width, tile_height = (0, 0) if tile is None else arguments.two_edges("tile", tile, "(width, height)")
    if number is not None:
        for name, value in {"colour": colour, "palette": palette, "transparent": transparent, "icc": icc, "exif": exif,
                            "text": text, "chunks": chunks}.items():
            if value is not None:
                raise ValueError(f"{name} is for device='cpu'")
        if method != "fast":
            raise ValueError(f"method is {method!r}, but a GPU encodes with 'fast' only")
        if path is not None and (isinstance(array, (list, tuple)) or len(getattr(array, "shape", ())) == 4):
            raise ValueError("path is for a single image")
        files = _encode_on_gpu(array, layout, bits, arguments.truth("premultiplied", premultiplied), tile_width,
                               tile_height, number, arguments.stream_address(stream, number))
        if path is None:
            return files
        _put(path, files)  # type: ignore[arg-type]  # not a list
        return None
    how = (METHODS.index(method), effort, tile_width, tile_height, arguments.whole_number("threads", threads, 0, 1024))
    options = {"colour": colour, "bits": bits, "palette": palette, "transparent": transparent, "icc": icc, "exif": exif,
               "text": text, "chunks": chunks}
    if isinstance(array, (bytes, bytearray)):
        for name, value in {**options, "premultiplied": premultiplied or None}.items():
            if value is not None:
                raise ValueError(f"{name} is for arrays, but array is an encoded file")
        if is_l3(array, "array"):
            raise ValueError("array is an L3 file already")
        file, notices = _native.encode_file(array, *how)
        for notice in notices:
            warnings.warn(notice, stacklevel=2)
    else:
        file = _native.encode(*image_to_encode(array, layout=layout, premultiplied=premultiplied, **options), *how)
    if path is None:
        return file
    _put(path, file)
    return None


def image_to_encode(array: Any, *, layout: str = "HWC", colour: str | None = None, bits: int | None = None,
                    palette: Any = None, premultiplied: bool = False,
                    transparent: None | int | Sequence[int] = None, icc: Any = None, exif: Any = None,
                    text: Mapping[str, str] | None = None, chunks: Iterable[Chunk] | None = None
                    ) -> tuple[_native.Tensor, str, int, bool, dict[str, bytes]]:
    """Returns an image of :func:`encode` as the extension takes it: pixels, colour, bits, premultiplied, sections."""
    arguments.one_of("layout", layout, arguments.LAYOUTS)
    mode = arguments.pillow_mode(array)
    if mode is not None:
        layout = "HWC"  # as Pillow has it
        _pillow.check_mode(mode)
        if mode == "P" and palette is None and colour in (None, "palette"):
            palette = _pillow.palette_of(array)
        if mode == "1" and bits is None:
            bits = 1
        if transparent is None and palette is None:
            transparent = _pillow.transparent_of(array, mode, bits or (16 if mode.startswith("I;16") else 8))
        given = icc, exif, text, chunks
        icc, exif, text, chunks = (its if mine is None else mine  # noqa: B905 (Python 3.9)
                                   for mine, its in zip(given, _pillow.metadata_of(array)))
        array = np.asarray(array, np.uint8) if mode == "1" else np.asarray(array)
    pixels = _pixels(array, layout)
    bits = _bits_of(pixels.dtype.name, bits)
    table = _palette(palette)
    channels = pixels.shape[2]
    if colour is None:
        colour = "palette" if table is not None else _COLOURS[channels]
    possible = {_COLOURS[channels]} | ({"palette"} if channels == 1 else set())
    if colour not in possible:
        if table is not None and channels != 1:
            raise ValueError(f"palette is for indices, which have one channel, but the array has {channels} channels; "
                             "leave palette out")
        raise ValueError(f"colour is {colour!r}, but with {channels} channel{'s' if channels != 1 else ''} must be "
                         + arguments.either(sorted(possible)))
    if (colour == "palette") != (table is not None):
        raise ValueError("colour='palette' needs the argument palette, and palette needs colour='palette'")
    sections = _chunks.sections_of(_chunks.given_chunks(chunks, icc, exif, text, colour))
    if table is not None:
        _check_indices(pixels, bits, table)
        sections["palette"] = table[:, :3].tobytes()
        if table.shape[1] == 4:
            sections["transparency"] = table[:, 3].tobytes()
    if transparent is not None:
        sections["transparency"] = _transparency(transparent, colour, bits)
    return (_native.tensor_of_buffer(pixels, False), colour, bits, arguments.truth("premultiplied", premultiplied),
            sections)


def _encode_on_gpu(array: Any, layout: str, bits: int | None, premultiplied: bool, tile_width: int, tile_height: int,
                   number: int, stream: int) -> bytes | list[bytes]:
    several = isinstance(array, (list, tuple))
    tensors = []
    for given in array if several else [array]:
        if not hasattr(given, "__dlpack__"):
            raise TypeError(f"array is {type(given).__name__}, but must be a tensor with __dlpack__ on a GPU")
        tensor = _tensor_on(number, stream, "array", given)
        if tensor.dtype not in ("uint8", "uint16"):
            raise TypeError(f"array has dtype {tensor.dtype!r}, but must have 'uint8' or 'uint16'")
        tensors.append(tensor)
    planar = layout == "CHW"
    shapes, depths = [], []
    for tensor in tensors:
        shape = tuple(tensor.shape)
        if len(shape) == 2:
            shape = (1, *shape) if planar else (*shape, 1)
        if (layout == "HW" and len(tensor.shape) != 2) or len(shape) not in (3, 4) or 0 in shape:
            expected = {"CHW": "(C, H, W)", "HWC": "(H, W, C)", "HW": "(H, W)"}[layout]
            raise ValueError(f"array has shape {tuple(tensor.shape)}, but must have {expected}"
                             + ("" if layout == "HW" else " or a dimension before these"))
        channels = shape[-3 if planar else -1]
        if channels > 4:
            raise ValueError(f"array has shape {tuple(tensor.shape)}, which is {channels} channels, but at most 4 are "
                             f"possible; layout is {layout!r}")
        if premultiplied and channels % 2 != 0:
            raise ValueError("premultiplied is for images with alpha")
        shapes.append(shape)
        depths.append(_bits_of(tensor.dtype, bits))
    files = _native.encode_on_gpu(tensors, shapes, planar, depths, premultiplied, tile_width, tile_height, number,
                                  stream)
    return files if several or any(len(shape) == 4 for shape in shapes) else files[0]


def _bits_of(dtype: str, bits: int | None) -> int:
    """Returns the bits of a sample, which must fit the type."""
    least, most = (1, 8) if dtype == "uint8" else (9, 16)
    if bits is None:
        return most
    if not least <= arguments.whole_number("bits", bits, 1, 16) <= most:
        raise ValueError(f"bits is {bits}, but the array has dtype {dtype}: {dtype} is for {least} to {most} bits")
    return bits


def _put(path: str | os.PathLike[str] | Writable, file: bytes) -> None:
    if arguments.is_path(path) or isinstance(path, bytes):
        _write(os.fsdecode(path), file)  # type: ignore[arg-type]
    else:
        arguments.write_stream(path, file)


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


def _palette(palette: Any) -> Array | None:
    """Returns a palette as an array."""
    if palette is None:
        return None
    table = np.asarray(palette)
    if table.dtype != np.uint8 or table.ndim != 2 or table.shape[1] not in (3, 4) or not 1 <= len(table) <= 256:
        raise ValueError(f"palette has shape {table.shape} and dtype {table.dtype}, but must have (N, 3) or "
                         "(N, 4), N up to 256, and 'uint8'")
    return table


def _check_indices(pixels: Array, bits: int, table: Array) -> None:
    """Raises ValueError if the image cannot have this palette."""
    if pixels.dtype != np.uint8:
        raise ValueError("palette is for indices of dtype uint8: use array.astype('uint8')")
    if len(table) > 2**bits:
        raise ValueError(f"palette has {len(table)} entries, but with bits={bits} can have {2**bits}")
    if int(pixels.max()) >= len(table):
        row, column = np.argwhere(pixels[:, :, 0] >= len(table))[0]
        raise ValueError(f"array has index {pixels[row, column, 0]} at row {row}, column {column}, but the palette has "
                         f"{len(table)} entries")


def _transparency(transparent: int | Sequence[int], colour: str, bits: int) -> bytes:
    """Returns the section for a transparent colour."""
    most = 2**bits - 1
    if colour == "rgb":
        key = arguments.whole_numbers("transparent", transparent, 3, "(red, green, blue)")
    elif colour == "gray":
        key = [arguments.whole_number("transparent", transparent)]
    else:
        instead = "a palette of shape (N, 4)" if colour == "palette" else "its alpha"
        raise ValueError(f"transparent is for images of colour 'gray' or 'rgb', but this one is {colour!r}: use "
                         + instead)
    for number in key:
        if number > most:
            raise ValueError(f"transparent is {transparent!r}, but samples of {bits} bits are at most {most}")
    return np.asarray(key, "<u2").tobytes()


def _write(path: str, file: bytes) -> None:
    """Writes a file that appears only when it is complete."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(file)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
