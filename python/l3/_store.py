"""Stores in Python: calls the methods of a store in threads or an event loop, and gives answers to libl3_data."""

from __future__ import annotations

import atexit
import errno
import functools
import inspect
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Union

import numpy as np

from . import _arguments as arguments
from . import _native

# Importing it takes as long as everything else of l3, so functions do that when they need it.
if TYPE_CHECKING:
    import asyncio

Bytes = Union[bytes, bytearray, memoryview, "np.ndarray[Any, Any]"]
_Result = TypeVar("_Result")

# Values of l3_status in l3.h.
_MEMORY, _FILE = 8, 11
# Requests in progress at once, unless the store or the caller says otherwise.
_THREADS, _TASKS = 32, 128
_SECONDS_AT_END = 1.0


class Store(Protocol):
    """Where a data set is: objects with keys such as "index.json" or "shard-00000.l3s", which are its files.

    Any class with these two methods is a store. Both are functions, or both are coroutines (``async def``). Functions
    are called from several threads at once; coroutines run in one event loop, in a thread of its own. An attribute
    ``concurrency`` says how many calls may be in progress, and ``name`` is for messages.

    >>> class Folder:
    ...     def size(self, key):
    ...         return os.path.getsize("set/" + key)
    ...     def read(self, key, offset, size):
    ...         with open("set/" + key, "rb") as file:
    ...             file.seek(offset)
    ...             return file.read(size)
    >>> data = l3.Dataset(Folder())
    """

    def size(self, key: str) -> int | Awaitable[int]:
        """Returns the size of an object in bytes. Raises FileNotFoundError if there is no such object."""

    def read(self, key: str, offset: int, size: int) -> Bytes | Awaitable[Bytes]:
        """Returns `size` bytes of an object, beginning at `offset`: bytes or anything with the buffer protocol. The
        object has that many, unless it was replaced."""


def is_store(value: object) -> bool:
    return callable(getattr(value, "size", None)) and callable(getattr(value, "read", None))


def name_of(store: object) -> str:
    name = getattr(store, "name", None)
    return name if isinstance(name, str) and name else type(store).__name__


class Runner:
    """Answers the requests of one data set. Its threads end with the last user of the data set."""

    def __init__(self, store: Any, connections: int | None) -> None:
        kinds = {inspect.iscoroutinefunction(store.size), inspect.iscoroutinefunction(store.read)}
        if len(kinds) > 1:
            raise TypeError(f"{type(store).__name__} has one method that is async and one that is not: make both size "
                            "and read async, or neither")
        self.store = store
        self.is_async = kinds == {True}
        if connections is None:
            connections = getattr(store, "concurrency", None)
        if connections is None:
            connections = _TASKS if self.is_async else _THREADS
        self.concurrency = arguments.whole_number("concurrency", connections, 1, 4096)
        self.requests = _native.StoreRequests(self.is_async)
        self._renew()
        _runners.add(self)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._is_started = False

    def after_fork(self) -> None:
        """In a child, the threads of the parent do not exist."""
        self.requests.restart()
        self._renew()

    def open(self, options: dict[str, int], cache: bytes) -> _native.DataSet:
        name = name_of(self.store).encode("utf-8", "surrogateescape").replace(b"\0", b"")
        options = {**options, "connections": self.concurrency}
        try:
            return self.run(lambda: _native.DataSet.open_store(self.requests, name, options, cache))
        except BaseException:
            self.requests.close()
            raise

    def run(self, call: Callable[[], _Result]) -> _Result:
        """Makes a call that reads. In the main thread, a signal such as Ctrl-C interrupts it."""
        self.ensure_started()
        if threading.current_thread() is not threading.main_thread():
            return call()
        results: list[_Result] = []
        errors: list[BaseException] = []
        done = threading.Event()

        def work() -> None:
            try:
                results.append(call())
            except BaseException as error:
                errors.append(error)
            finally:
                done.set()

        self._start(work)
        done.wait()
        if errors:
            raise errors.pop()
        return results.pop()

    def ensure_started(self) -> None:
        with self._lock:
            if self._is_started:
                return
            self._is_started = True
        self._start(self._run_tasks if self.is_async else self._work)

    def _start(self, target: Callable[[], None]) -> None:
        # A daemon, because the interpreter would wait for others before it calls _end_all.
        thread = threading.Thread(target=target, name=f"l3 {name_of(self.store)}", daemon=True)
        thread.start()
        with self._lock:
            self._threads = [one for one in self._threads if one.is_alive()]
            self._threads.append(thread)

    def end(self, until: float) -> None:
        """Makes all requests fail, and waits for the threads, but not for a store that does not return."""
        self.requests.close()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    # ------------------------------------------------------------------------------------------------------- threads

    def _work(self) -> None:
        """Answers requests one by one. A thread that sees more requests than threads starts another one."""
        while True:
            taken = self.requests.take()
            if taken is None:
                return
            request, is_short = taken
            if is_short:
                self._grow()
            _answer(self.store, request)
            del request, taken

    def _grow(self) -> None:
        with self._lock:
            if len(self._threads) >= self.concurrency:
                return
        try:
            self._start(self._work)
        except RuntimeError:
            pass  # the system has no more threads: those that are there do the work

    # --------------------------------------------------------------------------------------------------------- tasks

    def _run_tasks(self) -> None:
        import asyncio

        asyncio.run(self._serve())

    async def _serve(self) -> None:
        import asyncio

        loop = asyncio.get_running_loop()
        tasks: dict[int, asyncio.Task[None]] = {}
        ended = asyncio.Event()

        def forget(number: int, _: asyncio.Task[None]) -> None:
            tasks.pop(number, None)

        def wake() -> None:
            requests, cancelled = self.requests.drain()
            for request in requests:
                number = request.number
                task = loop.create_task(_answer_later(self.store, request))
                tasks[number] = task
                task.add_done_callback(functools.partial(forget, number))
            for number in cancelled:
                if number in tasks:
                    tasks[number].cancel()
            if self.requests.closed:
                ended.set()

        loop.add_reader(self.requests.event, wake)
        wake()
        await ended.wait()
        loop.remove_reader(self.requests.event)
        # asyncio.run cancels the tasks that are left.


def _answer(store: Any, request: _native.StoreRequest) -> None:
    try:
        if request.wants_size:
            request.finish_size(_size_of(store.size(request.key)))
        else:
            request.finish(_bytes_of(store.read(request.key, request.offset, request.size)))
    except BaseException as error:
        _fail(request, error)


async def _answer_later(store: Any, request: _native.StoreRequest) -> None:
    import asyncio

    try:
        if request.wants_size:
            request.finish_size(_size_of(await store.size(request.key)))
        else:
            request.finish(_bytes_of(await store.read(request.key, request.offset, request.size)))
    except asyncio.CancelledError as error:
        _fail(request, error)
        raise
    except BaseException as error:
        _fail(request, error)


def _size_of(size: Any) -> int:
    if isinstance(size, (bool, np.bool_)) or not hasattr(size, "__index__"):
        raise TypeError(f"size returned {_kind(size)}, but must return an int")
    number = int(size.__index__())
    if not 0 <= number < 2**63:
        raise ValueError(f"size returned {number}")
    return number


def _bytes_of(found: Any) -> Any:
    try:
        return memoryview(found).cast("B") if not isinstance(found, bytes) else found
    except TypeError:
        raise TypeError(f"read returned {_kind(found)}, but must return bytes, without gaps between them") from None


def _kind(value: object) -> str:
    if inspect.iscoroutine(value):
        value.close()
        return "a coroutine"
    return "None" if value is None else f"an object of type {type(value).__name__}"


def _fail(request: _native.StoreRequest, error: BaseException) -> None:
    import asyncio

    status, number = _FILE, 0
    if isinstance(error, FileNotFoundError):
        number = errno.ENOENT
    elif isinstance(error, PermissionError):
        number = errno.EACCES
    elif isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        number = errno.ETIMEDOUT
    elif isinstance(error, asyncio.CancelledError):
        number = errno.ECANCELED
    elif isinstance(error, OSError) and isinstance(error.errno, int) and 0 < error.errno < 4096:
        number = error.errno
    elif isinstance(error, MemoryError):
        status = _MEMORY
    try:
        text = str(error)
    except Exception:
        text = ""
    reason = f"store: {type(error).__name__}" + (f": {text}" if text else "")
    request.fail(status, number, reason.encode("utf-8", "surrogateescape").replace(b"\0", b" "))


_runners: weakref.WeakSet[Runner] = weakref.WeakSet()


def _after_fork() -> None:
    for runner in list(_runners):
        runner.after_fork()


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _end_all() -> None:
    until = time.monotonic() + _SECONDS_AT_END
    for runner in list(_runners):
        runner.end(until)
