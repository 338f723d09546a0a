"""Ancillary data: PNG chunks, and the sections of a file that hold them (spec/format.md, section 4).

bridge/ does the same for the l3 command, so both write the same sections and read each other's.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ._errors import Error

MOST_BYTES = 2**26
"""the most that metadata, a profile or a text may have when it is unpacked"""
_MOST_SECTION_BYTES = 2**30
_TEXTS = ("tEXt", "zTXt", "iTXt")
XMP = "XML:com.adobe.xmp"
"""the keyword of a text with XMP, which is an iTXt chunk"""
_ANIMATIONS = ("acTL", "fcTL", "fdAT")
# The parts of the colour space section, in the order of their bits: size of the part and format of its numbers.
_COLOUR_PARTS = {"cICP": (4, "4B"), "gAMA": (4, "I"), "sRGB": (1, "B"), "cHRM": (32, "8I")}
_RECORD = struct.Struct("<4sB3xI")


class Chunk(NamedTuple):
    """An ancillary PNG chunk."""

    tag: str
    """its type, such as 'pHYs'"""
    data: bytes
    place: int = 0
    """0: before the palette, 1: between palette and pixels, 2: after the pixels"""


def chunks_of(section: Callable[[str], bytes]) -> list[Chunk]:
    """Returns all chunks of a file. `section` returns a section by its name, or b"" if there is none."""
    found = []
    colours = section("colour_space")
    at = 1
    for bit, (tag, (size, numbers)) in enumerate(_COLOUR_PARTS.items()):
        if colours and colours[0] >> bit & 1:
            found.append(Chunk(tag, struct.pack(">" + numbers, *struct.unpack_from("<" + numbers, colours, at))))
            at += size
    for tag, name in (("iCCP", "icc"), ("eXIf", "exif")):
        if contents := section(name):
            found.append(Chunk(tag, contents))
    records = section("metadata")
    at = 0
    while at < len(records):
        name_bytes, place, size = _RECORD.unpack_from(records, at)
        at += _RECORD.size
        found.append(Chunk(name_bytes.decode("latin-1"), records[at:at + size], place))
        at += size
    return found


def sections_of(chunks: list[Chunk]) -> dict[str, bytes]:
    """Returns the sections that hold these chunks. What a section could not give back as it was becomes a record."""
    counts = Counter(chunk.tag for chunk in chunks)
    sections: dict[str, bytes] = {}
    colours: dict[str, bytes] = {}
    records = []
    for tag, data, place in chunks:
        alone = counts[tag] == 1 and bool(data)
        if alone and place == 0 and tag in _COLOUR_PARTS and len(data) == _COLOUR_PARTS[tag][0]:
            colours[tag] = data
        elif alone and place == 0 and tag == "iCCP":
            sections["icc"] = data
        elif alone and tag == "eXIf":
            sections["exif"] = data
        else:
            records.append(_RECORD.pack(tag.encode("ascii"), place, len(data)) + data)
    if colours:
        parts = [(bit, numbers, colours[tag]) for bit, (tag, (_, numbers)) in enumerate(_COLOUR_PARTS.items())
                 if tag in colours]
        sections["colour_space"] = bytes([sum(1 << bit for bit, _, _ in parts)]) + b"".join(
            struct.pack("<" + numbers, *struct.unpack(">" + numbers, data)) for _, numbers, data in parts)
    if records:
        sections["metadata"] = b"".join(records)
    for name, contents in sections.items():
        most = MOST_BYTES if name == "metadata" else _MOST_SECTION_BYTES
        if len(contents) > most:
            what = "text and chunks have" if name == "metadata" else f"{name} has"
            raise ValueError(f"{what} {len(contents)} bytes, but must have at most {most}")
    return sections


def given_chunks(chunks: object, icc: object, exif: object, text: object, colour: str) -> list[Chunk]:
    """Returns the chunks that a caller wants to write. `icc`, `exif` and `text` replace those of `chunks`."""
    found = _checked(chunks)
    suggested = [chunk for chunk in found if chunk.tag == "PLTE"]
    if suggested and (colour not in ("rgb", "rgb_alpha") or len(suggested) > 1 or suggested[0].place == 2
                      or len(suggested[0].data) not in range(3, 769, 3)):
        raise ValueError("chunks has 'PLTE', which must be one suggested palette of an image of colour 'rgb' or "
                         "'rgb_alpha', with 3 to 768 bytes, before the pixels: leave it out")
    for value, tags, make in ((icc, ("iCCP",), _profile_chunks), (exif, ("eXIf",), _exif_chunks),
                              (text, _TEXTS, _text_chunks)):
        if value is not None:
            found = [*make(value), *(chunk for chunk in found if chunk.tag not in tags)]
    return found


def _checked(chunks: object) -> list[Chunk]:
    if chunks is None:
        return []
    if not isinstance(chunks, Iterable) or isinstance(chunks, (str, bytes, Mapping)):
        raise TypeError(f"chunks is {type(chunks).__name__}, but must be a list of l3.Chunk")
    found = []
    for each in chunks:
        if not isinstance(each, tuple) or not 2 <= len(each) <= 3 or not isinstance(each[0], str):
            raise TypeError(f"chunks has {each!r}, but must be a list of l3.Chunk: a tag, bytes and a place")
        chunk = Chunk(each[0], _contents("data of a chunk", each[1]), *each[2:])
        tag = chunk.tag
        if chunk.place not in (0, 1, 2):
            raise ValueError(f"chunks has {tag!r} at place {chunk.place!r}, but the place must be 0, 1 or 2")
        if len(tag) != 4 or not tag.isascii() or not tag.isalpha():
            raise ValueError(f"chunks has the tag {tag!r}, but a tag must have four ASCII letters")
        if tag == "tRNS":
            raise ValueError("chunks has 'tRNS': use a palette of shape (N, 4), or the argument transparent")
        if tag in _ANIMATIONS or (tag[0].isupper() and tag != "PLTE"):
            raise ValueError(f"chunks has {tag!r}, but an L3 file holds only ancillary chunks, without animations")
        found.append(chunk)
    return found


def _contents(name: str, value: Any) -> bytes:
    try:
        view = memoryview(value)
    except TypeError:
        raise TypeError(f"{name} is {type(value).__name__}, but must be bytes") from None
    return view.tobytes()


# --------------------------------------------------------------------------------------------- ICC profile and EXIF


def _profile_chunks(profile: Any) -> list[Chunk]:
    if isinstance(profile, str):
        raise TypeError("icc is str, but must be the bytes of a profile: Path(name).read_bytes()")
    if hasattr(profile, "tobytes") and not isinstance(profile, memoryview):
        profile = profile.tobytes()  # PIL.ImageCms.ImageCmsProfile
    contents = _contents("icc", profile)
    # The name that PNG requires, and the number of the method zlib.
    return [Chunk("iCCP", b"ICC profile\0\0" + zlib.compress(contents, 9))] if contents else []


def profile_in(chunk: bytes) -> bytes:
    """Returns the profile in an iCCP chunk."""
    name, separator, rest = chunk.partition(b"\0")
    if not separator or not 1 <= len(name) <= 79 or rest[:1] != b"\0":
        raise Error("the ICC profile is damaged: it does not begin with its name and method")
    return _inflated(rest[1:], "the ICC profile")


def _exif_chunks(exif: Any) -> list[Chunk]:
    if hasattr(exif, "get_ifd"):
        exif = exif.tobytes() if len(exif) else b""  # PIL.Image.Exif
    contents = _contents("exif", exif)
    if contents.startswith(b"Exif\0\0"):  # as in a JPEG, and as Pillow has it
        contents = contents[6:]
    if contents and not contents.startswith((b"II*\0", b"MM\0*")):
        raise ValueError(f"exif begins with {contents[:4]!r}, but must begin with b'II*\\0' or b'MM\\0*', perhaps "
                         "after b'Exif\\0\\0'; exif=b'' writes none")
    return [Chunk("eXIf", contents)] if contents else []


def _inflated(packed: bytes, what: str) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        contents = unpacker.decompress(packed, MOST_BYTES + 1)
    except zlib.error:
        raise Error(f"{what} is damaged: zlib cannot unpack it") from None
    if len(contents) > MOST_BYTES:
        raise Error(f"{what} has more than {MOST_BYTES} bytes when it is unpacked, which is the limit")
    if not unpacker.eof:
        raise Error(f"{what} is damaged: it ends too early")
    return contents


# ------------------------------------------------------------------------------------------------------------- text


def _text_chunks(text: Any) -> list[Chunk]:
    if not isinstance(text, Mapping):
        raise TypeError(f"text is {type(text).__name__}, but must be a dict of str")
    return [_text_chunk(key, value) for key, value in text.items()]


def _text_chunk(key: Any, value: Any) -> Chunk:
    if not isinstance(key, str) or not isinstance(value, str):
        raise TypeError(f"text has {key!r}: {type(value).__name__}, but keys and values must be str")
    try:
        keyword = key.encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError(f"text has the key {key!r}, but keys must be Latin-1, as in a PNG") from None
    if not 1 <= len(keyword) <= 79:
        raise ValueError(f"text has a key of {len(keyword)} characters ({key[:20]!r}), but keys must have 1 to 79")
    if key.strip() != key or "  " in key or any(not c.isprintable() for c in key):
        raise ValueError(f"text has the key {key!r}, but keys must have printable characters, and neither spaces at "
                         "the ends nor two in a row")
    if "\0" in value:
        raise ValueError(f"text has a null character in the value of {key!r}, which PNG does not allow")
    # What Pillow's PngImagePlugin.iTXt remembers of a text.
    language, translated = (getattr(value, name, None) or "" for name in ("lang", "tkey"))
    if not language and not translated and key != XMP:
        try:
            return Chunk("tEXt", keyword + b"\0" + value.encode("latin-1"))
        except UnicodeEncodeError:
            pass
    try:
        parts = [_utf8(language), _utf8(translated), value.encode("utf-8")]
    except UnicodeEncodeError:
        raise ValueError(f"text has a value for {key!r} that UTF-8 cannot encode") from None
    return Chunk("iTXt", keyword + b"\0\0\0" + b"\0".join(parts))


def _utf8(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8")


def text_in(chunks: Iterable[Chunk]) -> dict[str, str]:
    """Returns the texts of tEXt, zTXt and iTXt chunks by their keywords. The last one of equal keywords counts."""
    found = {}
    for tag, data, _ in chunks:
        if tag not in _TEXTS:
            continue
        keyword, separator, rest = data.partition(b"\0")
        key = keyword.decode("latin-1")
        damaged = Error(f"the {tag} chunk {key[:79]!r} is damaged; chunks has its bytes")
        if not separator:
            raise damaged
        if tag == "tEXt":
            found[key] = rest.decode("latin-1")
            continue
        packed = tag == "zTXt"
        if tag == "iTXt":
            head, rest = rest[:2], rest[2:]
            parts = rest.split(b"\0", 2)
            if len(parts) != 3 or len(head) != 2 or head[0] > 1:
                raise damaged
            packed, rest = head[0] == 1, head[1:] + parts[2]
        if packed and rest[:1] != b"\0":
            raise damaged
        contents = rest[1:]
        if packed:
            contents = _inflated(contents, f"the {tag} chunk {key[:79]!r}")
        try:
            found[key] = contents.decode("latin-1" if tag == "zTXt" else "utf-8")
        except UnicodeDecodeError:
            raise damaged from None
    return found
