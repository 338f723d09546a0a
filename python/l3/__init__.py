"""Lossless images that a GPU decodes: read and write L3 files, read data sets, and load batches for training.

>>> import l3
>>> pixels = l3.decode("photo.l3")                      # a NumPy array (height, width, channels)
>>> l3.encode(pixels, "copy.l3")                        # the same samples, to the bit
>>> tensor = l3.decode("photo.l3", device="cuda")       # for torch.from_dlpack(tensor) and others
>>> for images, labels, ids in l3.Loader("set/", 64, crop=(224, 224), dtype="float32"):
...     ...                                             # one epoch
"""

from ._batch import Batch
from ._chunks import Chunk
from ._coding import Model, decode, encode
from ._dataset import CacheInfo, Dataset, Names, Sample, Samples
from ._errors import Error, SampleError
from ._image import Image, open
from ._info import Info, info
from ._loader import Loader
from ._native import Tensor
from ._native import version as _version
from ._reports import BatchTimes, Explanation, Failure, Request, Sharing
from ._store import Store
from ._webdataset import webdataset_decoder
from ._writer import DatasetWriter

__version__ = _version()

__all__ = [
    "Batch",
    "BatchTimes",
    "CacheInfo",
    "Chunk",
    "Dataset",
    "DatasetWriter",
    "Error",
    "Explanation",
    "Failure",
    "Image",
    "Info",
    "Loader",
    "Model",
    "Names",
    "Request",
    "Sample",
    "SampleError",
    "Samples",
    "Sharing",
    "Store",
    "Tensor",
    "decode",
    "encode",
    "info",
    "open",
    "webdataset_decoder",
]
