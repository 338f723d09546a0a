"""Calls a function of the user for each image, on threads, while the loader goes on."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

_MOST_THREADS = 8
_MOST_TIMES = 4096  # as many as the timeline has


class Transforms:
    """Batches whose images are with the function now, in the order of delivery."""

    def __init__(self, function: Callable[[Any], Any], threads: int, ahead: int) -> None:
        self._function = function
        self._pool = ThreadPoolExecutor(threads or min(os.cpu_count() or 1, _MOST_THREADS), "l3-transform")
        self._ahead = ahead
        # Each with the position after it.
        self._waiting: deque[tuple[Any, list[Future[tuple[Any, int]]], BaseException | None, int]] = deque()
        self._ended = False
        self.position: int | None = None  # after the last batch that was delivered or failed
        self.times: dict[int, int] = {}  # for each batch that was given: the time that its images took, summed

    def clear(self) -> None:
        for _, futures, _, _ in self._waiting:
            for future in futures:
                future.cancel()
        self._waiting.clear()
        self._ended = False
        self.position = None

    def close(self) -> None:
        self.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def next(self, take: Callable[[], Any], position: Callable[[], int]) -> tuple[Any, list[Any], int] | None:
        """Returns a batch, the results of its images, and the time that they took, summed; None after the last one.

        `take` returns the next batch of the loader, or None; `position` is the position after it. An exception of it or
        of the function is raised when the turn of its batch comes; the next call continues with the batch after it. An
        interruption (KeyboardInterrupt) loses nothing: the next call continues with the same batch.
        """
        while not self._ended and len(self._waiting) <= self._ahead:
            try:
                batch = take()
            except Exception as error:
                self._waiting.append((None, [], error, position()))
                continue
            if batch is None:
                self._ended = True
            else:
                self._waiting.append((batch, [], None, position()))
                self._submit(batch, self._waiting[-1][1])
        if not self._waiting:
            self._ended = False
            return None
        batch, futures, fault, _ = self._waiting[0]
        results, spent = [], 0
        try:
            if fault is not None:
                raise fault
            self._submit(batch, futures)
            for future in futures:
                result, nanoseconds = future.result()
                results.append(result)
                spent += nanoseconds
        except Exception as error:
            self.end_first(batch, spent)
            if batch is not None and hasattr(error, "add_note"):  # since Python 3.11
                error.add_note(f"in transform, for the sample {batch.names[len(results)]!r}")
            if isinstance(error, StopIteration):  # it would end the loop over the loader
                raise RuntimeError("transform raised StopIteration") from error
            raise
        return batch, results, spent

    def end_first(self, batch: Any, spent: int) -> None:
        """Must be called when the batch of `next` is delivered. Until then `next` returns it again."""
        self.position = self._waiting.popleft()[3]
        if batch is not None:
            self.times[batch.times.given] = spent
            if len(self.times) > _MOST_TIMES:
                del self.times[next(iter(self.times))]

    def _submit(self, batch: Any, futures: list[Future[tuple[Any, int]]]) -> None:
        """Submits the images that are not yet, because there are none or an interruption came between."""
        if len(futures) < len(batch.ids):
            for image in batch._each()[len(futures):]:
                futures.append(self._pool.submit(self._call, image))

    def _call(self, image: Any) -> tuple[Any, int]:
        begun = time.perf_counter_ns()
        result = self._function(image)
        return result, time.perf_counter_ns() - begun


def together(results: list[Any]) -> Any:
    """Stacks arrays or tensors of equal shape; returns everything else as a list. Mappings become mappings."""
    if not results:
        return results
    first = results[0]
    if isinstance(first, dict) and all(isinstance(one, dict) and one.keys() == first.keys() for one in results):
        return {key: together([one[key] for one in results]) for key in first}
    if isinstance(first, np.ndarray) and all(
            isinstance(one, np.ndarray) and one.shape == first.shape and one.dtype == first.dtype for one in results):
        return np.stack(results)
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(first, torch.Tensor) and all(
            isinstance(one, torch.Tensor) and one.shape == first.shape for one in results):
        return torch.stack(results)
    return results
