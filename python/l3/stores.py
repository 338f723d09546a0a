"""Stores for other libraries, to be passed to :class:`l3.Dataset` and :class:`l3.Loader`.

>>> from l3.stores import FsspecStore, ObstoreStore
>>> loader = l3.Loader(FsspecStore("hf://datasets/me/set"), 64)
>>> loader = l3.Loader(ObstoreStore(obstore.store.GCSStore("bucket"), "set"), 64)

Each needs its library only when it is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

__all__ = ["CqlStore", "FsspecStore", "ObstoreStore"]


def _join(prefix: str, key: str) -> str:
    return f"{prefix.rstrip('/')}/{key}" if prefix else key


class ObstoreStore:
    """A data set in a store of the obstore package, such as Google Cloud Storage or Azure.

    store
        a store of obstore.store.
    prefix
        the folder of the data set in it.
    """

    concurrency = 256

    def __init__(self, store: Any, prefix: str = "") -> None:
        self._store = store
        self._prefix = prefix
        self.name = _join(f"obstore {type(store).__name__}", prefix) if prefix else f"obstore {type(store).__name__}"

    async def size(self, key: str) -> int:
        import obstore  # type: ignore[import-untyped,import-not-found,unused-ignore]
        from obstore.exceptions import NotFoundError  # type: ignore[import-untyped,import-not-found,unused-ignore]

        try:
            return int((await obstore.head_async(self._store, _join(self._prefix, key)))["size"])
        except NotFoundError:
            raise FileNotFoundError(f"no object {_join(self._prefix, key)!r}") from None

    async def read(self, key: str, offset: int, size: int) -> Any:
        import obstore  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return await obstore.get_range_async(self._store, _join(self._prefix, key), start=offset, length=size)


class FsspecStore:
    """A data set in a file system of the fsspec package, such as the Hugging Face hub.

    filesystem
        a file system of fsspec, or a URL that fsspec knows: then `options` are those of the file system, and the URL
        names the folder.
    prefix
        the folder of the data set, below that of the URL.
    """

    concurrency = 64

    def __init__(self, filesystem: Any, prefix: str = "", **options: Any) -> None:
        if isinstance(filesystem, (str, os.PathLike)):
            from fsspec.core import url_to_fs  # type: ignore[import-untyped,import-not-found,unused-ignore]

            filesystem, folder = url_to_fs(os.fspath(filesystem), **options)
            prefix = _join(folder, prefix) if prefix else folder
        self._filesystem = filesystem
        self._prefix = prefix
        protocol = filesystem.protocol
        scheme = protocol if isinstance(protocol, str) else protocol[0]
        self.name = f"fsspec {scheme}: {prefix}"

    def size(self, key: str) -> int:
        return int(self._filesystem.size(_join(self._prefix, key)))

    def read(self, key: str, offset: int, size: int) -> bytes:
        return bytes(self._filesystem.cat_file(_join(self._prefix, key), start=offset, end=offset + size))


class CqlStore:
    """A data set in a table of Cassandra or ScyllaDB, by a session of cassandra-driver or scylla-driver.

    It has met no server yet: its tests have a session of their own.

    Objects are cut into chunks, each a row of its own, so that they spread over the cluster. Chunk -1 has the size::

        CREATE TABLE sets.train (object text, chunk int, data blob, PRIMARY KEY ((object, chunk)))

    session
        a session that is connected.
    table
        the table, with its keyspace.
    """

    CHUNK_BYTES = 256 << 10
    concurrency = 64

    def __init__(self, session: Any, table: str) -> None:
        self._session = session
        self._select = session.prepare(f"SELECT data FROM {table} WHERE object = ? AND chunk = ?")
        self._insert = session.prepare(f"INSERT INTO {table} (object, chunk, data) VALUES (?, ?, ?)")
        self._chunk_bytes: dict[str, int] = {}
        self.name = f"CQL table {table}"

    def _head(self, key: str) -> tuple[int, int]:
        row = self._session.execute(self._select, (key, -1)).one()
        if row is None:
            raise FileNotFoundError(f"no object {key!r}")
        head = json.loads(bytes(row.data))
        self._chunk_bytes[key] = int(head["chunk_bytes"])
        return int(head["size"]), self._chunk_bytes[key]

    def size(self, key: str) -> int:
        return self._head(key)[0]

    def read(self, key: str, offset: int, size: int) -> bytes:
        chunk_bytes = self._chunk_bytes.get(key) or self._head(key)[1]
        first, last = offset // chunk_bytes, (offset + size - 1) // chunk_bytes
        futures = [self._session.execute_async(self._select, (key, chunk)) for chunk in range(first, last + 1)]
        rows = [future.result().one() for future in futures]
        if None in rows:
            raise FileNotFoundError(f"object {key!r} lacks a chunk")
        begin = offset - first * chunk_bytes
        return b"".join(bytes(row.data) for row in rows)[begin:begin + size]

    def upload(self, folder: str | os.PathLike[str]) -> None:
        """Writes the files of a data set into the table, index.json last."""
        names = sorted(os.listdir(folder), key=lambda name: (name == "index.json", name))
        for name in names:
            if name == "index.json" or name.endswith(".l3s"):
                self._upload_file(name, os.path.join(os.fspath(folder), name))

    def _upload_file(self, key: str, path: str) -> None:
        def chunks() -> Iterator[bytes]:
            with open(path, "rb") as file:
                while data := file.read(self.CHUNK_BYTES):
                    yield data

        futures: list[Any] = []
        for number, data in enumerate(chunks()):
            futures.append(self._session.execute_async(self._insert, (key, number, data)))
            if len(futures) == self.concurrency:
                futures.pop(0).result()
        for future in futures:
            future.result()
        head = {"size": os.path.getsize(path), "chunk_bytes": self.CHUNK_BYTES}
        self._session.execute(self._insert, (key, -1, json.dumps(head).encode()))
