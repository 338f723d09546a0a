"""Data sets in stores of the caller, and in those of other libraries."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import pickle
import threading
import time
import unittest
from pathlib import Path
from typing import Any, NamedTuple

import l3
import numpy as np
from l3.stores import CqlStore, FsspecStore, ObstoreStore
from support import Sets


class FolderStore:
    """A folder, by functions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def size(self, key: str) -> int:
        return (self.folder / key).stat().st_size

    def read(self, key: str, offset: int, size: int) -> Any:
        with open(self.folder / key, "rb") as file:
            file.seek(offset)
            return file.read(size)


class SlowStore(FolderStore):
    """The same by coroutines, in any order."""

    async def size(self, key: str) -> int:  # type: ignore[override]
        return super().size(key)

    async def read(self, key: str, offset: int, size: int) -> Any:
        await asyncio.sleep((offset // 64) % 7 / 1000)
        return np.frombuffer(super().read(key, offset, size), np.uint8)


class SameAsLocal(Sets):
    def expect_same(self, store: Any) -> None:
        """Compares a store with the folder that it contains."""
        local = self.classes_set()
        with l3.Dataset(store) as data, l3.Dataset(local) as expected:
            self.assertEqual(data.classes, expected.classes)
            self.assertEqual([sample.name for sample in data], [sample.name for sample in expected])
            self.assertEqual(data[3].bytes(), expected[3].bytes())
            np.testing.assert_array_equal(data[5].decode(), expected[5].decode())
            for options in ({"shuffle": True}, {"shuffle": "windows", "crop": 9}, {"shuffle": False, "flip": True}):
                with l3.Loader(data, 4, seed=5, **options) as one, l3.Loader(local, 4, seed=5, **options) as other:
                    for _ in range(2):
                        for found, wanted in zip(one, other):  # noqa: B905 (Python 3.9)
                            np.testing.assert_array_equal(found.ids, wanted.ids)
                            np.testing.assert_array_equal(found.images, wanted.images)
        with l3.Loader(store, 4) as loader:
            self.assertEqual(sum(len(batch.ids) for batch in loader), self.COUNT)


class Stores(SameAsLocal):
    def test_functions_and_coroutines(self) -> None:
        for kind in (FolderStore, SlowStore):
            with self.subTest(kind.__name__):
                self.expect_same(kind(Path(self.classes_set())))

    def test_what_read_may_return(self) -> None:
        for convert in (bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)):
            store = FolderStore(Path(self.classes_set()))
            plain = store.read
            store.read = lambda *which, plain=plain, convert=convert: convert(plain(*which))  # type: ignore[method-assign]
            with l3.Dataset(store) as data:
                self.assertEqual(len(data[0].bytes()), data[0].size)

    def test_faults(self) -> None:
        def broken(answer: Any) -> l3.Dataset:
            store = FolderStore(Path(self.classes_set()))
            data = l3.Dataset(store)
            plain = store.read

            def read(key: str, offset: int, size: int) -> Any:
                return answer(plain(key, offset, size))

            store.read = read  # type: ignore[method-assign]
            return data

        def fail(error: BaseException) -> Any:
            def answer(_: bytes) -> Any:
                raise error
            return answer

        for answer, words in (
            (fail(ValueError("no such thing")), "store: ValueError: no such thing"),
            (fail(PermissionError("closed")), "PermissionError: closed"),
            (fail(TimeoutError()), "TimeoutError"),
            (lambda data: data[:-1], "bytes"),
            (lambda data: data + b"x", "bytes"),
            (lambda _: "text", "must return bytes"),
            (lambda _: None, "None"),
            (lambda data: bytes(len(data)), "check"),
        ):
            with self.subTest(words), broken(answer) as data, self.assertRaises(l3.SampleError) as caught:
                data[0].bytes()
            self.assertIn("FolderStore", str(caught.exception))
            self.assertIn(words, str(caught.exception))
            self.assertIn(".l3s", str(caught.exception))
        with self.assertRaises(FileNotFoundError):
            l3.Dataset(FolderStore(Path(self.folder)))
        both = SlowStore(Path(self.classes_set()))
        both.size = lambda key: 0  # type: ignore[method-assign]
        with self.assertRaisesRegex(TypeError, "async"):
            l3.Dataset(both)
        with self.assertRaisesRegex(TypeError, "l3.Store"):
            l3.Loader(object(), 1)  # type: ignore[arg-type]

    def test_lives(self) -> None:
        before = threading.active_count()
        store = FolderStore(Path(self.classes_set()))
        data = pickle.loads(pickle.dumps(l3.Dataset(store)))
        self.assertEqual(data[1].bytes(), store.read(*self.place_of(data, 1)))
        loader = l3.Loader(data, 2)
        data.close()
        self.assertEqual(sum(len(batch.ids) for batch in loader), self.COUNT)
        loader.close()
        del data, loader
        gc.collect()
        until = time.monotonic() + 5
        while threading.active_count() > before and time.monotonic() < until:
            time.sleep(0.01)
        self.assertLessEqual(threading.active_count(), before)

    def place_of(self, data: l3.Dataset, number: int) -> tuple[str, int, int]:
        sample = data[number]
        raw = sample.bytes()
        for shard in sorted(Path(self.classes_set()).glob("*.l3s")):
            at = shard.read_bytes().find(raw)
            if at >= 0:
                return shard.name, at, len(raw)
        raise AssertionError("the sample is in no shard")

    def test_closing_does_not_wait_for_a_slow_store(self) -> None:
        class Stuck(FolderStore):
            release = threading.Event()

            def read(self, key: str, offset: int, size: int) -> Any:
                if key != "index.json" and size > 64 and threading.current_thread().name.startswith("l3"):
                    self.release.wait(60)
                return super().read(key, offset, size)

        class StuckLater(SlowStore):
            release = threading.Event()

            async def read(self, key: str, offset: int, size: int) -> Any:
                if not self.release.is_set():
                    await asyncio.sleep(60)
                return await super().read(key, offset, size)

        for kind in (Stuck, StuckLater):
            store = kind(Path(self.classes_set()))
            for pause in (0.0, 0.002, 0.02, 0.2, 0.3):
                with self.subTest(kind.__name__, pause=pause):
                    kind.release.set()
                    with l3.Dataset(store) as data:
                        kind.release.clear()
                        self.expect_close(l3.Loader(data, 2), pause)
                        kind.release.set()

    def expect_close(self, loader: l3.Loader, pause: float) -> None:
        """Reads the failures, and closes the loader, while this thread waits for a batch that does not come."""
        began = time.monotonic()
        answered: list[float] = []

        def close() -> None:
            time.sleep(pause)
            _ = loader.failures
            answered.append(time.monotonic())
            loader.close()

        closer = threading.Thread(target=close)
        closer.start()
        with self.assertRaisesRegex(ValueError, "closed"):
            next(iter(loader))
        closer.join()
        self.assertLess(answered[0] - began, 2)
        self.assertLess(time.monotonic() - began, 4)


class Adapters(SameAsLocal):
    def filled(self, put: Any) -> None:
        for path in sorted(Path(self.classes_set()).iterdir()):
            put(path.name, path.read_bytes())

    @unittest.skipUnless(importlib.util.find_spec("fsspec"), "fsspec is not installed")
    def test_fsspec(self) -> None:
        import fsspec

        memory = fsspec.filesystem("memory")
        self.filled(lambda name, data: memory.pipe(f"/set/{name}", data))
        self.addCleanup(memory.rm, "/set", recursive=True)
        self.expect_same(FsspecStore("memory://set"))
        self.expect_same(FsspecStore(memory, "/set"))
        self.expect_same(FsspecStore(f"file://{self.classes_set()}"))
        with self.assertRaises(FileNotFoundError):
            l3.Dataset(FsspecStore("memory://nothing"))

    @unittest.skipUnless(importlib.util.find_spec("obstore"), "obstore is not installed")
    def test_obstore(self) -> None:
        from obstore.store import LocalStore, MemoryStore

        memory = MemoryStore()
        self.filled(lambda name, data: memory.put(f"a/set/{name}", data))
        self.expect_same(ObstoreStore(memory, "a/set"))
        self.expect_same(ObstoreStore(LocalStore(str(self.classes_set()))))
        with self.assertRaises(FileNotFoundError):
            l3.Dataset(ObstoreStore(memory))

    def test_cql(self) -> None:
        session = Session()
        store = CqlStore(session, "sets.train")
        store.CHUNK_BYTES = 1000  # type: ignore[misc]
        store.upload(self.classes_set())
        self.assertGreater(len(session.rows), 20)
        self.expect_same(store)
        session.rows.pop(next(key for key in session.rows if key[0].endswith(".l3s") and key[1] == 5))
        with self.assertRaises((FileNotFoundError, l3.Error)), l3.Dataset(store) as data:
            for sample in data:
                sample.bytes()


class Row(NamedTuple):
    data: bytes


class Session:
    """The part of a session of cassandra-driver that the store uses."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], bytes] = {}

    def prepare(self, statement: str) -> str:
        return statement.split()[0]

    def execute(self, statement: str, values: tuple[Any, ...]) -> Session.Result:
        if statement == "INSERT":
            self.rows[values[0], values[1]] = values[2]
            return Session.Result(None)
        return Session.Result(self.rows.get((values[0], values[1])))

    def execute_async(self, statement: str, values: tuple[Any, ...]) -> Session.Future:
        return Session.Future(self.execute(statement, values))

    class Result(NamedTuple):
        data: bytes | None

        def one(self) -> Row | None:
            return None if self.data is None else Row(self.data)

    class Future(NamedTuple):
        found: Any

        def result(self) -> Any:
            return self.found


if __name__ == "__main__":
    unittest.main()
