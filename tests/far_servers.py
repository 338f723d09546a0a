"""Servers on this machine that tests of far stores use: nginx, a server with the interface of S3, Redis, a Redis
cluster, and a slow link to put in front of them.

Each is a context manager. It listens on 127.0.0.1 only, keeps everything in a folder of its own, and ends with the
test. `missing()` says what a machine lacks to run it. A server can be killed and restarted: it keeps its port, and all
but S3 keep their data.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import far_s3

SECONDS = 30  # that a server may take to begin
_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never by way of a proxy


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def cluster_ports(count: int) -> list[int]:
    """Free ports of a cluster: Redis also uses each port plus 10000. They are below those that the system gives."""
    found: list[int] = []
    while len(found) < count:
        port = 20000 + secrets.randbelow(10000)
        with socket.socket() as server, socket.socket() as bus:
            try:
                server.bind(("127.0.0.1", port))
                bus.bind(("127.0.0.1", port + 10000))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


def wait_until(ready: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} takes longer than {seconds} seconds")
        time.sleep(0.02)


def answers_at(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def _end_with_the_test() -> Callable[[], object] | None:
    """What makes a child end when the test crashes. Linux looks at the thread that started it, so only the main one."""
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Server:
    """A process that listens on a port."""

    NEEDS: tuple[str, ...] = ()

    @classmethod
    def missing(cls) -> str:
        absent = [name for name in cls.NEEDS if shutil.which(name) is None]
        return f"{absent[0]} is not installed" if absent else ""

    def __init__(self, port: int = 0) -> None:
        self.port = port or free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.folder = Path()

    def words(self) -> list[str]:
        """The command that starts it."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Writes what the server needs into its folder, once."""

    def is_ready(self) -> bool:
        return answers_at(self.port)

    def environment(self) -> dict[str, str]:
        """What a client needs besides the URL."""
        return {}

    def url(self, name: str, port: int = 0) -> str:
        """The URL of a data set; with `port`, by way of a link that listens there."""
        raise NotImplementedError

    def start(self) -> None:
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(self.words(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, preexec_fn=_end_with_the_test())
        started = self.process

        def ready() -> bool:
            if started.poll() is not None:
                said = (self.folder / "log").read_text(errors="replace")
                raise RuntimeError(f"{self.words()[0]} does not begin: {said}")
            return self.is_ready()

        wait_until(ready, self.words()[0])

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Ends it as a crash does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def __enter__(self) -> Any:
        self.folder = Path(tempfile.mkdtemp(prefix="l3-far-test-"))
        try:
            self.prepare()
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Http(Server):
    """nginx, which stores what is PUT as files below `root`."""

    NEEDS = ("nginx",)
    SCHEME = "http"

    def prepare(self) -> None:
        self.root = self.folder / "root"
        self.root.mkdir()
        user = "user root;" if os.geteuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(f"""
daemon off; master_process off; pid {self.folder}/pid; error_log {self.folder}/error.log; {user}
worker_rlimit_nofile 16384;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_max_body_size 0; client_body_temp_path {self.folder}/body; proxy_temp_path {self.folder}/p;
  fastcgi_temp_path {self.folder}/f; uwsgi_temp_path {self.folder}/u; scgi_temp_path {self.folder}/s;
  sendfile on; tcp_nodelay on; keepalive_requests 1000000; keepalive_timeout 300s;
  server {{
    {self.listen()}
    root {self.root};
    location / {{ dav_methods PUT DELETE; create_full_put_path on; {self.more()} }}
  }}
}}
""")

    def listen(self) -> str:
        return f"listen 127.0.0.1:{self.port} backlog=2048;"

    def more(self) -> str:
        """More directives, such as a password."""
        return ""

    def words(self) -> list[str]:
        return [shutil.which("nginx") or "nginx", "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")]

    def url(self, name: str, port: int = 0) -> str:
        return f"{self.SCHEME}://127.0.0.1:{port or self.port}/{name}"

    def get(self, name: str) -> bytes | None:
        path = self.root / name
        return path.read_bytes() if path.is_file() else None

    def put(self, name: str, data: bytes) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_bytes(data)

    def names(self, name: str) -> list[str]:
        folder = self.root / name
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


class HttpWithPassword(Http):
    USER, PASSWORD = "reader", "correct-horse"

    def prepare(self) -> None:
        super().prepare()
        (self.folder / "passwords").write_text(f"{self.USER}:{{PLAIN}}{self.PASSWORD}\n")

    def more(self) -> str:
        return f'auth_basic "l3"; auth_basic_user_file {self.folder}/passwords;'


class Https(Http):
    """nginx with TLS and HTTP/2. `authority` is the file of the authority that certified it."""

    NEEDS = ("nginx", "openssl")
    SCHEME = "https"

    def prepare(self) -> None:
        self.authority = self.folder / "authority.pem"
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                     "-subj", "/CN=l3 test authority", "-keyout", "authority.key", "-out", "authority.pem")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
                     "-keyout", "server.key", "-out", "server.csr")
        (self.folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        self.openssl("x509", "-req", "-in", "server.csr", "-CA", "authority.pem", "-CAkey", "authority.key",
                     "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem")
        super().prepare()

    def openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True, timeout=30)

    def listen(self) -> str:
        return f"""listen 127.0.0.1:{self.port} ssl http2 backlog=2048; http2_max_concurrent_streams 512;
    ssl_certificate {self.folder}/server.pem; ssl_certificate_key {self.folder}/server.key;"""


class S3(Server):
    """moto, with one bucket. It verifies signatures."""

    BUCKET = "bucket"
    REGION = "us-east-1"

    @classmethod
    def missing(cls) -> str:
        return "" if far_s3.python_with_moto() else "no Python here has moto[s3] and Flask"

    def words(self) -> list[str]:
        return [far_s3.python_with_moto(), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]

    def start(self) -> None:
        super().start()
        self.keys = far_s3.set_up(_HTTP, self.port, self.REGION, self.BUCKET)

    def environment(self) -> dict[str, str]:
        key, secret = self.keys
        return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": self.REGION,
                "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}

    def url(self, name: str, port: int = 0) -> str:
        """With a link, AWS_ENDPOINT_URL must name its port."""
        return f"s3://{self.BUCKET}/{name}"

    def request(self, method: str, path: str, query: str = "", data: bytes = b"") -> bytes:
        return far_s3.send(_HTTP, self.port, self.REGION, self.keys, method, f"/{self.BUCKET}{path}", query, data)

    def get(self, name: str) -> bytes | None:
        try:
            return self.request("GET", f"/{name}")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def put(self, name: str, data: bytes) -> None:
        self.request("PUT", f"/{name}", data=data)

    def names(self, name: str) -> list[str]:
        keys = far_s3.keys_in(self.request("GET", ""))  # moto refuses good signatures of encoded prefixes
        return [key.removeprefix(name + "/") for key in keys if key.startswith(name + "/")]


class Redis(Server):
    """redis-server. What it was given is there again after a restart."""

    NEEDS = ("redis-server", "redis-cli")
    PASSWORD = ""

    def words(self) -> list[str]:
        return [shutil.which("redis-server") or "redis-server", "--bind", "127.0.0.1", "--port", str(self.port),
                "--save", "", "--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0",
                "--daemonize", "no", "--dir", str(self.folder), "--maxclients", "4000",
                *(["--requirepass", self.PASSWORD] if self.PASSWORD else [])]

    def is_ready(self) -> bool:
        return self.ask("PING") == "PONG"

    def ask(self, *words: object) -> str:
        done = subprocess.run(["redis-cli", "-h", "127.0.0.1", "-p", str(self.port), *map(str, words)],
                              env={**os.environ, "REDISCLI_AUTH": self.PASSWORD}, capture_output=True, timeout=10)
        return done.stdout.decode(errors="replace").strip()

    def url(self, name: str, port: int = 0) -> str:
        return f"redis://127.0.0.1:{port or self.port}/{name}"


class RedisWithPassword(Redis):
    PASSWORD = "correct-horse"

    def environment(self) -> dict[str, str]:
        return {"REDISCLI_AUTH": self.PASSWORD}


class RedisNode(Redis):
    def words(self) -> list[str]:
        return [*super().words(), "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
                "--cluster-node-timeout", "2000"]


class RedisCluster:
    """Three nodes without replicas."""

    missing = RedisNode.missing

    def __init__(self) -> None:
        self.nodes = [RedisNode(port) for port in cluster_ports(3)]

    def environment(self) -> dict[str, str]:
        return {}

    def url(self, name: str, port: int = 0) -> str:
        return self.nodes[0].url(name, port)

    def announce(self, ports: list[int]) -> None:
        """Makes clients reach each node at another port: that of a link."""
        for node, port in zip(self.nodes, ports, strict=True):
            node.ask("CONFIG", "SET", "cluster-announce-port", port)
        wanted = {str(port) for port in ports}
        wait_until(lambda: all(wanted <= set(node.ask("CLUSTER", "SLOTS").split()) for node in self.nodes),
                   "announcing the ports")

    def __enter__(self) -> RedisCluster:
        self.entered: list[RedisNode] = []
        try:
            for node in self.nodes:
                node.__enter__()
                self.entered.append(node)
            addresses = [f"127.0.0.1:{node.port}" for node in self.nodes]
            subprocess.run(["redis-cli", "--cluster", "create", *addresses, "--cluster-yes"], check=True,
                           capture_output=True, timeout=60)
            wait_until(lambda: all("cluster_state:ok" in node.ask("CLUSTER", "INFO") for node in self.nodes),
                       "the cluster")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.entered:
            node.__exit__(None, None, None)


class SlowLink:
    """tests/slow_link in front of a server: `SlowLink(program, server.port, delay=20)`. It listens at `port`.

    Options are those of the program, with `_` instead of `-`. `set()` changes them, and returns the counters.
    """

    def __init__(self, program: str | os.PathLike[str], to: int, **options: object) -> None:
        self.words = [os.fspath(program), "--listen", "0", "--to", f"127.0.0.1:{to}", *self._words(options)]
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @staticmethod
    def _words(options: dict[str, object]) -> list[str]:
        return [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), str(value))]

    def __enter__(self) -> SlowLink:
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = self._line()["port"]
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()

    def _line(self) -> dict[str, int]:
        assert self.process is not None and self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], SECONDS)[0]:
            raise RuntimeError("the slow link does not answer")
        return dict(json.loads(self.process.stdout.readline()))

    def set(self, **options: object) -> dict[str, int]:
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.write(" ".join(self._words(options)).encode() + b"\n")
        self.process.stdin.flush()
        return self._line()

    def counters(self) -> dict[str, int]:
        return self.set()
