"""A web server for tests that misbehaves as its paths say: /BEHAVIOUR/... or /BEHAVIOUR-NUMBER/..."""

from __future__ import annotations

import random
import re
import socket
import socketserver
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator

CONTENT = random.Random(24).randbytes(3_000_000)
SMALL = CONTENT[:50]
LIMIT = 20  # seconds that a behaviour may take


class Handler(socketserver.BaseRequestHandler):
    """One connection. A behaviour returns False to close it."""

    server: HostileServer

    def handle(self) -> None:
        self.request.settimeout(LIMIT)
        self.rest = b""
        try:
            while self.answer():
                pass
        except OSError:
            pass

    def read_head(self) -> bytes | None:
        while b"\r\n\r\n" not in self.rest:
            more = self.request.recv(65536)
            if not more:
                return None
            self.rest += more
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        return head

    def answer(self) -> bool:
        head = self.read_head()
        if head is None:
            return False
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.path, _ = lines[0].split(" ")
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        self.count = self.server.note(self)
        name, _, number = self.path.split("/")[1].partition("-")
        self.number = int(number or 0)
        self.content = SMALL if self.path.split("?")[0].endswith("small") else CONTENT
        return getattr(self, "do_" + name)()

    def asked(self) -> tuple[int, int] | None:
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("range", ""))
        if found is None:
            return None
        size = len(self.content)
        if not found[1]:
            return max(0, size - int(found[2])), size
        return int(found[1]), min(size, int(found[2]) + 1)

    def send(self, status: str, headers: dict[str, object], body: bytes = b"", close: bool = False) -> bool:
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items())]
        self.request.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        return not close

    def head_of(self, first: int, end: int, **changes: object) -> dict[str, object]:
        headers: dict[str, object] = {"Content-Range": f"bytes {first}-{end - 1}/{len(self.content)}",
                                      "Content-Length": end - first, "ETag": '"one"'}
        headers.update({name.replace("_", "-"): value for name, value in changes.items()})
        return {name: value for name, value in headers.items() if value is not None}

    def send_part(self, status: str = "206 Partial Content", **changes: object) -> bool:
        asked = self.asked()
        if asked is None or asked[0] >= asked[1]:
            return self.send("416 Range Not Satisfiable", {"Content-Range": f"bytes */{len(self.content)}",
                                                           "Content-Length": 0})
        return self.send(status, self.head_of(*asked, **changes), self.content[slice(*asked)])

    def chunks(self, pieces: Iterator[bytes]) -> bool:
        first, end = self.asked() or (0, 1)
        self.send("206 Partial Content", self.head_of(first, end, Content_Length=None, Transfer_Encoding="chunked"))
        for piece in pieces:
            self.request.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.request.sendall(b"0\r\n\r\n")
        return True

    def until_limit(self, piece: bytes, pause: float = 0) -> Iterator[bytes]:
        end = time.monotonic() + LIMIT
        while time.monotonic() < end and not self.server.ends.wait(pause):
            yield piece

    # ----------------------------------------------------------------------------------------------- behaviours

    def do_good(self) -> bool:
        return self.send_part()

    def do_private(self) -> bool:
        if self.headers.get("authorization") == "Basic dXNlcjpwYXNzd29yZA==":  # user:password
            return self.send_part()
        return self.do_status()

    def do_status(self) -> bool:
        status = self.number or 403
        text = b"<Error><Code>Odd\x1b[31m</Code><Message>" + self.headers.get("authorization", "").encode() + b"</Message>"
        return self.send(f"{status} Odd", {"Content-Length": len(text)}, text)

    def do_chunked(self) -> bool:
        first, end = self.asked() or (0, 1)
        return self.chunks(self.content[at:min(at + 1000, end)] for at in range(first, end, 1000))

    def do_endless(self) -> bool:
        return self.chunks(self.until_limit(bytes(65536)))

    def do_longer(self) -> bool:  # more bytes than the range, one chunk
        first, end = self.asked() or (0, 1)
        return self.chunks(iter([self.content[first:end], b"!"]))

    def do_plus(self) -> bool:  # Content-Length is larger than the range
        first, end = self.asked() or (0, 1)
        return self.send("206 Partial Content", self.head_of(first, end, Content_Length=end - first + 1),
                         self.content[first:end + 1])

    def do_minus(self) -> bool:
        first, end = self.asked() or (0, 1)
        return self.send("206 Partial Content", self.head_of(first, end, Content_Length=end - first - 1),
                         self.content[first:end - 1])

    def do_shifted(self) -> bool:
        first, end = self.asked() or (0, 1)
        return self.send("206 Partial Content", self.head_of(first - 1, end - 1), self.content[first - 1:end - 1])

    def do_twice(self) -> bool:
        return self.send_part(content_range="bytes 0-0/1")

    def do_unnamed(self) -> bool:
        return self.send_part(Content_Range=None)

    def do_whole(self) -> bool:
        return self.send("200 OK", {"Content-Length": len(self.content)}, self.content)

    def do_unbounded(self) -> bool:  # 200 without any length
        return self.send("200 OK", {"Connection": "close"}, self.content, close=True)

    def do_explicit(self) -> bool:  # no ranges from the end
        return self.do_whole() if self.headers.get("range", "").startswith("bytes=-") else self.send_part()

    def do_empty(self) -> bool:
        self.content = b""
        return self.send_part()

    def do_gzip(self) -> bool:
        return self.send_part(Content_Encoding="gzip")

    def do_nothing(self) -> bool:
        return self.send("204 No Content", {})

    def do_redirect(self) -> bool:
        to = {1: "../good/big", 2: f"http://127.0.0.1:{self.server.other_port}/good/big", 3: "file:///etc/passwd",
              4: self.path, 5: "/private/big", 6: f"http://user:password@127.0.0.1:{self.server.server_address[1]}/good/big",
              7: "http://[bad", 8: "//secret-password.example/"}[self.number]
        return self.send("302 Found", {"Location": to, "Content-Length": 3}, b"abc")

    def do_heads(self) -> bool:
        self.request.sendall(b"HTTP/1.1 206 Partial Content\r\n")
        for line in self.until_limit(b"X-Line: " + b"a" * 1000 + b"\r\n"):
            self.request.sendall(line)
        return False

    def do_line(self) -> bool:
        self.request.sendall(b"HTTP/1.1 206 Partial Content\r\nX-Line: ")
        for piece in self.until_limit(b"a" * 1000):
            self.request.sendall(piece)
        return False

    def do_interim(self) -> bool:
        for line in self.until_limit(b"HTTP/1.1 100 Continue\r\n\r\n" * 100):
            self.request.sendall(line)
        return False

    def do_errors(self) -> bool:
        self.send("403 Forbidden", {"Content-Length": 10**12})
        for piece in self.until_limit(b"<Error><Code>Endless</Code>" * 1000):
            self.request.sendall(piece)
        return False

    def do_garbage(self) -> bool:
        self.request.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" * 10)
        return False

    def do_busy(self) -> bool:  # the first answers to this path, with Retry-After
        if self.count > self.number:
            return self.send_part()
        return self.send("503 Slow Down", {"Content-Length": 0, "Retry-After": 1})

    def do_fails(self) -> bool:
        if self.count > self.number:
            return self.send_part()
        return self.send(("500", "502", "429", "504", "408")[self.count % 5] + " Odd", {"Content-Length": 0})

    def do_cut(self) -> bool:  # after so many bytes
        first, end = self.asked() or (0, 1)
        self.send("206 Partial Content", self.head_of(first, end), self.content[first:end][:self.number])
        return self.number >= end - first

    def do_changed(self) -> bool:  # cut, and then another object
        first, end = self.asked() or (0, 1)
        self.send("206 Partial Content", self.head_of(first, end, ETag=f'"{self.count}"'), self.content[first:end][:100])
        return False

    def do_silent(self) -> bool:
        self.server.ends.wait(LIMIT)
        return False

    def do_stalls(self) -> bool:
        first, end = self.asked() or (0, 1)
        self.send("206 Partial Content", self.head_of(first, end), self.content[first:first + 10])
        return self.do_silent()

    def do_trickle(self) -> bool:
        first, end = self.asked() or (0, 1)
        self.send("206 Partial Content", self.head_of(first, end))
        for piece in self.until_limit(b"a", 0.1):
            self.request.sendall(piece)
        return False

    def do_drops(self) -> bool:  # closes after any answer, without saying so
        return self.send_part() and random.random() < 0.5

    def do_slow(self) -> bool:  # every so many requests one is slow
        if self.count % self.number == 0:
            time.sleep(1)
        else:
            time.sleep(0.005)
        return self.send_part()

    def do_store(self) -> bool:  # takes uploads
        if self.method == "GET":
            self.content = self.server.stored.get(self.path, b"")
            return self.send_part()
        size = int(self.headers["content-length"])
        while len(self.rest) < size:
            more = self.request.recv(1 << 20)
            if not more:
                return False
            self.rest += more
        if self.count <= self.number:
            self.rest = b""
            return self.send("503 Slow Down", {"Content-Length": 0})
        self.server.stored[self.path], self.rest = self.rest[:size], self.rest[size:]
        return self.send("201 Created", {"Content-Length": 0})

    def do_loses(self) -> bool:  # says that it stored what it did not
        if self.method == "GET":
            return self.send_part()
        self.rest = b""
        return self.send("201 Created", {"Content-Length": 0}, close=True)


class HostileServer(socketserver.ThreadingTCPServer):
    """Serves from when it is made until close()."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.context = context
        self.other_port = 0
        self.ends = threading.Event()
        self.lock = threading.Lock()
        self.log: list[tuple[str, str, dict[str, str]]] = []
        self.counts: Counter[str] = Counter()
        self.connections = 0
        self.stored: dict[str, bytes] = {}
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        self.connections += 1
        if self.context is not None:
            connection.settimeout(5)
            connection = self.context.wrap_socket(connection, server_side=True)
        return connection, address

    def handle_error(self, request: object, client_address: object) -> None:
        """Broken connections are what this is for."""

    def note(self, handler: Handler) -> int:
        with self.lock:
            self.log.append((handler.method, handler.path, handler.headers))
            self.counts[handler.path] += 1
            return self.counts[handler.path]

    def ranges(self, path: str) -> list[str]:
        return [headers.get("range", "") for _, asked, headers in self.log if asked == path]

    def url(self, path: str) -> str:
        return f"http{'s' if self.context else ''}://127.0.0.1:{self.server_address[1]}/{path}"

    def close(self) -> None:
        self.ends.set()
        self.shutdown()
        self.server_close()
        self.thread.join(5)
