"""Reads L3 files in tars of WebDataset."""

from __future__ import annotations

from typing import Any

from ._coding import decode


def webdataset_decoder(key: str, data: bytes, **options: Any) -> Any:
    """Decodes the `.l3` members of a tar for WebDataset, and leaves the other members to the next decoder.

    >>> data = webdataset.WebDataset("set.tar").decode(l3.webdataset_decoder).to_tuple("l3", "cls")
    >>> planes = functools.partial(l3.webdataset_decoder, layout="CHW", dtype="float32")

    Takes the options of :func:`l3.decode`. Without `threads` it uses one thread, because workers decode side by side.
    ``l3 export --tar --as l3`` writes such tars.
    """
    if not key.lower().endswith(".l3"):
        return None
    return decode(data, **{"threads": 1, **options})
