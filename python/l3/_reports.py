"""What a loader reports: times, requests, failures, and what it did to an image."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchTimes:
    """When the steps of a batch happened, in nanoseconds since the loader was made; 0 if a step did not happen."""

    begun: int
    """its files were requested"""
    fetched: int
    """the last file had arrived"""
    copy_begun: int
    """the copy to a GPU began"""
    copied: int
    """the copy to a GPU ended"""
    decode_begun: int
    """decoding of the first image began"""
    decoded: int
    """decoding of the last image ended"""
    asked: int
    """the loop asked for the batch"""
    given: int
    """the loop received the batch; ``given - asked`` is the time for which it waited"""
    reading: int
    """time that threads spent reading, summed"""
    decoding: int
    """time that threads spent decoding, summed"""
    converting: int
    """the part of it that made values of the wanted type of the samples"""
    bytes_read: int
    """bytes of files"""
    bytes_out: int
    """bytes of arrays"""
    transforming: int = 0
    """time that threads spent in `transform`, summed"""


@dataclass(frozen=True)
class Request:
    """A read from a store. Times are in nanoseconds since the loader was made; 0 if a step did not happen."""

    batch: int
    """the number of its batch"""
    sample: int
    """the number of its sample in the data set"""
    offset: int
    """in the sample"""
    bytes: int
    queued: int
    """the loader asked for it"""
    sent: int
    """it was sent; the last time if it was repeated"""
    answered: int
    """the first byte arrived"""
    finished: int
    attempts: int
    """how often it was sent"""
    shared: int
    """how many other reads the same request served"""
    hedged: bool
    """it was slow, so a second one was sent"""
    failed: bool
    cached: bool
    """a cache answered it"""


@dataclass(frozen=True)
class Sharing:
    """What became of sharing batches (``share``) since the loader was made."""

    jobs: int
    """how many loaders are attached now, with this one"""
    from_other_jobs: int
    """batches that came from another loader"""
    prepared_for_all: int
    """batches that this loader prepared for all"""
    prepared_alone: int
    """batches that this loader prepared for itself, because they did not come"""


@dataclass(frozen=True)
class Explanation:
    """What happens to a sample in an epoch. Sizes are (height, width), boxes (x, y, width, height)."""

    orientation: int
    """of EXIF, 1 to 8; 1 without ``orient``"""
    box: tuple[int, int, int, int]
    """of the upright image"""
    resized: tuple[int, int]
    """what the box becomes"""
    crop: tuple[int, int, int, int]
    """of the resized box"""
    padding: tuple[int, int]
    """to the left of the crop, and above it"""
    size: tuple[int, int]
    """of the result"""
    flip: bool
    flip_vertical: bool
    turns: int
    """by 90 degrees, counterclockwise"""
    brightness: float
    contrast: float
    saturation: float
    hue: float


@dataclass(frozen=True)
class Failure:
    """A unit that could not be read or decoded."""

    epoch: int
    sample: int | None
    name: str | None
    reason: str
    file: str | None
    offset: int | None
