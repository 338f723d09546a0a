"""Redis servers for tests, on 127.0.0.1: real ones, and hostile ones. Everything that is started here is stopped."""

from __future__ import annotations

import contextlib
import pathlib
import random
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable

SERVER = shutil.which("redis-server") or shutil.which("valkey-server")
PATIENCE = 20.0  # seconds until a server must be ready


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses now, and that a cluster may use."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Client:
    """Sends commands, one at a time."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()

    def call(self, *words: object) -> object:
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
        return self.reply()

    def reply(self) -> object:
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, text = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(text.decode())
        if kind == b"$":
            return None if text == b"-1" else self.file.read(int(text) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(text))]
        return int(text) if kind == b":" else text.decode()


class Server:
    """A process of redis-server."""

    def __init__(self, folder: pathlib.Path, *options: object) -> None:
        assert SERVER
        (self.port,) = free_ports(1)
        self.folder = folder
        self.options = [str(option) for option in options]
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, is_ready: bool = True) -> Server:
        port = [] if "--tls-port" in self.options else ["--port", str(self.port)]
        self.process = subprocess.Popen([str(SERVER), *port, "--bind", "127.0.0.1", "--dir", str(self.folder),
                                         "--save", "", *self.options], stdout=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while is_ready:
            with contextlib.suppress(OSError, RuntimeError), self.client() as client:
                if client.call("PING") == "PONG":
                    break
            if time.monotonic() > end or self.process.poll() is not None:
                self.stop()
                raise RuntimeError("redis-server does not start")
            time.sleep(0.05)
        return self

    def client(self) -> Client:
        return Client(self.port)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def wait_until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.05)


class Cluster:
    """Three masters with a third of the slots each, and a replica of the first."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.servers: list[Server] = []
        buses = free_ports(4)
        try:
            for i, bus in enumerate(buses):
                server = Server(folder / f"node{i}", "--cluster-enabled", "yes", "--cluster-port", bus,
                                "--cluster-node-timeout", 1000, "--cluster-require-full-coverage", "no")
                self.servers.append(server.start())
            self.names = [self.call(i, "CLUSTER", "MYID").decode() for i in range(4)]
            for i in range(3):
                self.call(i, "CLUSTER", "ADDSLOTSRANGE", i * 5462, min(i * 5462 + 5461, 16383))
                self.call(i, "CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            for i in range(1, 4):
                self.call(0, "CLUSTER", "MEET", "127.0.0.1", self.servers[i].port, buses[i])
            wait_until(lambda: all("cluster_known_nodes:4" in self.info(i) and "state:ok" in self.info(i)
                                   for i in range(4)))
            self.call(3, "CLUSTER", "REPLICATE", self.names[0])
            wait_until(lambda: "slave_repl_offset" in self.call(3, "INFO", "replication").decode()
                       and "master_link_status:up" in self.call(3, "INFO", "replication").decode())
        except BaseException:
            self.stop()
            raise

    def call(self, number: int, *words: object) -> object:
        with self.servers[number].client() as client:
            return client.call(*words)

    def info(self, number: int) -> str:
        return self.call(number, "CLUSTER", "INFO").decode()

    def stop(self) -> None:
        for server in self.servers:
            server.stop()


class Hostile:
    """A server that does what it likes with each connection."""

    def __init__(self, behave: Callable[[socket.socket, Hostile], None]) -> None:
        self.behave = behave
        self.connections = 0
        self.ends = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def accept(self) -> None:
        self.listener.settimeout(0.1)
        while not self.ends.is_set():
            with contextlib.suppress(TimeoutError):
                connection = self.listener.accept()[0]
                self.connections += 1
                self.threads.append(threading.Thread(target=self.serve, args=(connection,)))
                self.threads[-1].start()

    def serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(0.5)
            self.behave(connection, self)

    def __enter__(self) -> Hostile:
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.set()
        for thread in self.threads:
            thread.join()
        self.listener.close()


def make_shard(path: pathlib.Path, ranges: pathlib.Path, samples: int) -> bytes:
    """Writes what a store takes for a shard: samples, something like an index, and a footer."""
    some = random.Random(samples)
    shard = bytearray(4096)
    lines = []
    for _ in range(samples):
        size = some.choice([1, 100, 5_000, 40_000, 120_000])
        lines.append(f"{len(shard)} {size}\n")
        shard += some.randbytes(size)
        shard += bytes(-len(shard) % 64)
    index = some.randbytes(80 * samples)
    footer = bytearray(64)
    footer[:8] = b"\x8bL3E\r\n\x1a\n"
    struct.pack_into("<QQ", footer, 16, len(shard), len(index))
    shard += index + footer
    path.write_bytes(shard)
    ranges.write_text("".join(lines))
    return bytes(shard)
