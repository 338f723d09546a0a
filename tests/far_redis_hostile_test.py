#!/usr/bin/env python3
"""Tests the Redis store with servers that break the protocol, lie, or say nothing.

Usage: far_redis_hostile_test.py --probe REDIS_PROBE [unittest arguments]
"""

from __future__ import annotations

import binascii
import errno
import socket
import time
from collections.abc import Callable

from redis_testing import FILE, Hostile, Result, Test, main, probe

Behaviour = Callable[[socket.socket, Hostile], None]


class FromHostile(Test):
    def meet(self, behave: Behaviour, error: int, *, seconds: float = 8, url: str = "redis://127.0.0.1:{}/n") -> Result:
        with Hostile(behave) as server:
            begin = time.monotonic()
            result = probe(url.format(server.port), "read", "x", 0, 10, options=("--timeout", 300, "--attempts", 2))
            self.assertLess(time.monotonic() - begin, seconds)
        self.bad(result, FILE, error)
        self.assertNotIn("geheim", result.text)
        self.assertLess(len(result.text), 400)
        return result

    def answer(self, *pieces: bytes, forever: bool = False) -> Behaviour:
        def behave(connection: socket.socket, server: Hostile) -> None:
            connection.recv(4096)
            for piece in pieces:
                connection.sendall(piece)
            while forever and not server.ends.is_set():
                connection.sendall(pieces[-1])
            server.ends.wait()

        return behave

    def test_broken_replies(self) -> None:
        for reply in (b"$-5\r\n", b"$11\r\n", b"$9223372036854775807\r\n", b"$99999999999999999999999\r\n", b"$x\r\n",
                      b"\0" * 100, b"*1\r\n$1\r\na\r\n", b"*1\r\n" * 10000, b"+OK\r\n", b":5\r\n",
                      b"HTTP/1.1 400 Bad\r\n\r\n",
                      b"$10\r\n0123456789ab", b"$3\r\nabcdef\r\n", b"%1\r\n+a\r\n+b\r\n", b"+" + b"a" * 70000):
            with self.subTest(reply[:20]):
                self.meet(self.answer(reply), errno.EPROTO)

    def test_endless(self) -> None:
        for begin, more in ((b"+", b"a" * 65536), (b"$10\r\n", b"a" * 65536), (b"$", b"1" * 65536),
                            (b"*1\r\n", b"*1\r\n" * 999), (b"-", b"\r" * 65536)):
            with self.subTest(begin):
                self.meet(self.answer(begin, more, forever=True), errno.EPROTO)

    def test_silence(self) -> None:
        self.meet(self.answer(), errno.ETIMEDOUT)
        self.meet(self.answer(b"$10\r\n01234"), errno.ETIMEDOUT)
        self.meet(self.answer(), errno.ETIMEDOUT, url="redis://:geheim@127.0.0.1:{}/n")
        self.meet(self.answer(), errno.ETIMEDOUT, url="rediss://127.0.0.1:{}/n")

    def test_drops(self) -> None:
        def drip(connection: socket.socket, server: Hostile) -> None:
            connection.recv(4096)
            connection.sendall(b"+")
            while not server.ends.wait(0.05):
                connection.sendall(b"a")

        self.meet(drip, errno.ETIMEDOUT)

    def test_closes(self) -> None:
        self.meet(lambda connection, server: None, errno.ECONNRESET)
        self.meet(lambda connection, server: connection.sendall(b"$10\r\n0123"), errno.ECONNRESET)

    def test_secrets_in_errors(self) -> None:
        for url in ("redis://:geheim@127.0.0.1:{}/n", "redis://geheim:geheim@127.0.0.1:{}/n"):
            for text in (b"-ERR unknown command 'AUTH', with args 'geheim'\r\n", b"-geheim\r\n", b"-GEHEIM geheim\r\n"):
                self.meet(self.answer(text), errno.EACCES, url=url)
            self.meet(self.answer(b"+geheim\r\n"), errno.EPROTO, url=url)
        after = self.meet(self.answer(b"+OK\r\n-ERR geheim\r\n"), errno.EIO, url="redis://:geheim@127.0.0.1:{}/n")
        self.assertIn("ERR", after.text)
        self.meet(self.answer(b"-ERR \x1b[31m\r\n"), errno.EIO)

    def test_unasked(self) -> None:
        def denies(connection: socket.socket, server: Hostile) -> None:
            connection.sendall(b"-DENIED Redis is running in protected mode\r\n")
            server.ends.wait()

        self.meet(denies, errno.EACCES)

    def test_redirections(self) -> None:
        def around(kind: bytes) -> Behaviour:
            def behave(connection: socket.socket, server: Hostile) -> None:
                while connection.recv(4096):
                    connection.sendall(kind + b" %d 127.0.0.1:%d\r\n" % (slot, server.port))

            return behave

        slot = binascii.crc_hqx(b"n/x", 0) % 16384
        self.meet(around(b"-MOVED"), errno.EPROTO)
        for where in (b"nowhere", b"99999 127.0.0.1:1", b"%d 127.0.0.1:0" % slot, b"%d a/b:1" % slot, b"1 127.0.0.1:1"):
            self.meet(self.answer(b"-MOVED " + where + b"\r\n"), errno.EPROTO)
        self.meet(self.answer(b"-MOVED %d 127.0.0.1:1\r\n" % slot), errno.ECONNREFUSED)

    def test_hostile_slots(self) -> None:
        # Without the slots, reads go on where MOVED leads to.
        moved = []

        def behave(connection: socket.socket, server: Hostile) -> None:
            while data := connection.recv(4096):
                if b"CLUSTER" in data:
                    connection.sendall(b"*262144\r\n" + b"*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\na\r\n:1\r\n" * 100000)
                elif moved:
                    connection.sendall(b"$10\r\n0123456789\r\n")
                else:
                    moved.append(True)
                    slot = binascii.crc_hqx(b"n/x", 0) % 16384
                    connection.sendall(b"-MOVED %d 127.0.0.1:%d\r\n" % (slot, server.port))

        with Hostile(behave) as server:
            result = probe(f"redis://127.0.0.1:{server.port}/n", "read", "x", 0, 10, options=("--timeout", 300))
        self.assertEqual(self.good(result).output, b"0123456789")

    def test_early_answer_to_a_value(self) -> None:
        def behave(connection: socket.socket, server: Hostile) -> None:
            connection.recv(10)
            connection.sendall(b"+OK\r\n" * 3)
            server.ends.wait(2)

        big = self.folder / "big"
        big.write_bytes(bytes(30_000_000))
        with Hostile(behave) as server:
            result = probe(f"redis://127.0.0.1:{server.port}/n", "put", "x", big,
                           options=("--timeout", 300, "--attempts", 2))
        self.bad(result, FILE, errno.EIO)


if __name__ == "__main__":
    main()
