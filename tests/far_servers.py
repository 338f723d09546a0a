"""Servers on this machine that tests of far stores use: nginx, a server with the interface of S3, and Redis.

Each is a context manager. It listens on 127.0.0.1 only, keeps everything in a folder of its own, and ends with the
test. `missing()` says what a machine lacks to run it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

SECONDS = 30  # that a server may take to begin


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


class Server:
    """A process that listens on a port."""

    NEEDS = ""

    @classmethod
    def missing(cls) -> str:
        return "" if shutil.which(cls.NEEDS) else f"{cls.NEEDS} is not installed"

    def __init__(self) -> None:
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def words(self) -> list[str]:
        """The command that starts it."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """What a client needs besides the URL."""
        return {}

    def url(self, name: str) -> str:
        raise NotImplementedError

    def __enter__(self) -> Server:
        self.folder = Path(tempfile.mkdtemp(prefix="l3-far-test-"))
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(self.words(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    said = (self.folder / "log").read_text(errors="replace")
                    self.__exit__(None, None, None)
                    raise RuntimeError(f"{self.words()[0]} does not begin: {said}") from None
                time.sleep(0.02)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Http(Server):
    """nginx, which stores what is PUT as files below `root`."""

    NEEDS = "nginx"

    def words(self) -> list[str]:
        self.root = self.folder / "root"
        self.root.mkdir()
        user = "user root;" if os.geteuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(f"""
daemon off; master_process off; pid {self.folder}/pid; error_log {self.folder}/error.log; {user}
events {{}}
http {{
  access_log off; client_max_body_size 0; client_body_temp_path {self.folder}/body; proxy_temp_path {self.folder}/p;
  fastcgi_temp_path {self.folder}/f; uwsgi_temp_path {self.folder}/u; scgi_temp_path {self.folder}/s;
  server {{
    listen 127.0.0.1:{self.port}; root {self.root};
    location / {{ dav_methods PUT DELETE; create_full_put_path on; }}
  }}
}}
""")
        return [shutil.which("nginx") or "nginx", "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")]

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    def get(self, name: str) -> bytes | None:
        path = self.root / name
        return path.read_bytes() if path.is_file() else None

    def put(self, name: str, data: bytes) -> None:
        (self.root / name).write_bytes(data)

    def names(self, name: str) -> list[str]:
        folder = self.root / name
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


class S3(Server):
    """moto, with one bucket."""

    NEEDS = "moto"
    BUCKET = "bucket"
    KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true"}

    @classmethod
    def missing(cls) -> str:
        absent = [name for name in ("moto", "flask", "boto3") if importlib.util.find_spec(name) is None]
        return f"Python has no {absent[0]}" if absent else ""

    def words(self) -> list[str]:
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]

    def environment(self) -> dict[str, str]:
        return {**self.KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}

    def __enter__(self) -> S3:
        super().__enter__()
        import boto3  # type: ignore[import-not-found]
        from botocore.config import Config  # type: ignore[import-not-found]

        self.client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{self.port}", region_name="us-east-1",
                                   aws_access_key_id="testing", aws_secret_access_key="testing",
                                   config=Config(s3={"addressing_style": "path"}))
        self.client.create_bucket(Bucket=self.BUCKET)
        return self

    def url(self, name: str) -> str:
        return f"s3://{self.BUCKET}/{name}"

    def get(self, name: str) -> bytes | None:
        try:
            return bytes(self.client.get_object(Bucket=self.BUCKET, Key=name)["Body"].read())
        except self.client.exceptions.NoSuchKey:
            return None

    def put(self, name: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.BUCKET, Key=name, Body=data)

    def names(self, name: str) -> list[str]:
        found = self.client.list_objects_v2(Bucket=self.BUCKET, Prefix=name + "/").get("Contents", [])
        return sorted(each["Key"].removeprefix(name + "/") for each in found)


class Redis(Server):
    """redis-server, which keeps everything in memory."""

    NEEDS = "redis-server"

    def words(self) -> list[str]:
        return [shutil.which("redis-server") or "redis-server", "--bind", "127.0.0.1", "--port", str(self.port),
                "--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", str(self.folder)]

    def url(self, name: str) -> str:
        return f"redis://127.0.0.1:{self.port}/{name}"
