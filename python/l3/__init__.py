"""Lossless images that a GPU decodes: read and write L3 files, read data sets, and load batches for training.

>>> import l3
>>> pixels = l3.decode("photo.l3")                      # a NumPy array (height, width, channels)
>>> l3.encode(pixels, "copy.l3")                        # the same samples, to the bit
>>> tensor = l3.decode("photo.l3", device="cuda")       # for torch.from_dlpack(tensor) and others
>>> for images, labels, ids in l3.Loader("set/", 64, crop=(224, 224), dtype="float32"):
...     ...                                             # one epoch
"""

from ._coding import Info, Model, decode, encode, info
from ._dataset import CacheInfo, Dataset, Sample
from ._errors import Error, SampleError
from ._loader import Batch, BatchTimes, Failure, Loader, Request, Sharing
from ._native import Tensor
from ._native import version as _version
from ._store import Store

__version__ = _version()

__all__ = [
    "Batch",
    "BatchTimes",
    "CacheInfo",
    "Dataset",
    "Error",
    "Failure",
    "Info",
    "Loader",
    "Model",
    "Request",
    "Sample",
    "SampleError",
    "Sharing",
    "Store",
    "Tensor",
    "decode",
    "encode",
    "info",
]
