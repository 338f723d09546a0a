#!/usr/bin/env python3
"""Tests slow_link: its delay, throughput and faults, as a client sees them.

Usage: slow_link_test.py --link PROGRAM [names of tests, or options of unittest]
"""

from __future__ import annotations

import argparse
import http.client
import http.server
import random
import socket
import subprocess
import sys
import threading
import time
import unittest
from typing import Any

from far_servers import SlowLink, free_port

_link = ""


def body(count: int) -> bytes:
    return random.Random(count).randbytes(count)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers /COUNT with that many bytes, and PUT with 201."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        data = body(int(self.path[1:]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, *_: object) -> None:
        """Says nothing of connections that break."""


class LinkTest(unittest.TestCase):
    server: Quiet

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Quiet(("127.0.0.1", 0), Handler)
        threading.Thread(target=cls.server.serve_forever, args=(0.05,), daemon=True).start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.shutdown()
        cls.server.server_close()

    def link(self, **options: object) -> SlowLink:
        link = SlowLink(_link, self.server.server_address[1], **options).__enter__()
        self.addCleanup(link.__exit__)
        return link

    def client(self, link: SlowLink) -> http.client.HTTPConnection:
        client = http.client.HTTPConnection("127.0.0.1", link.port, timeout=20)
        self.addCleanup(client.close)
        return client

    def get(self, client: http.client.HTTPConnection, count: int) -> tuple[int, bytes, http.client.HTTPMessage]:
        client.request("GET", f"/{count}")
        answer = client.getresponse()
        return answer.status, answer.read(), answer.headers

    def seconds(self, client: http.client.HTTPConnection, count: int = 100) -> float:
        begun = time.monotonic()
        self.assertEqual(self.get(client, count)[1], body(count))
        return time.monotonic() - begun


class Times(LinkTest):
    def test_delay(self) -> None:
        link = self.link()
        client = self.client(link)
        bare = min(self.seconds(client) for _ in range(9))
        for delay in (1, 20, 150):
            link.set(delay=delay)
            took = min(self.seconds(client) for _ in range(5))  # other work makes single answers later
            self.assertGreaterEqual(took, delay / 1000)
            self.assertLess(took, bare + delay / 1000 + 0.02)

    def test_a_connection_costs_a_round_trip(self) -> None:
        link = self.link(delay=100, connect_delay=1)
        client = self.client(link)
        first, second = self.seconds(client), self.seconds(client)
        self.assertGreater(first, 0.199)
        self.assertLess(first, 0.3)
        self.assertGreater(second, 0.099)
        self.assertLess(second, 0.15)

    def test_many_connections_at_once(self) -> None:
        link = self.link(delay=150)
        clients = [socket.create_connection(("127.0.0.1", link.port), 20) for _ in range(512)]
        for client in clients:
            self.addCleanup(client.close)
        begun = time.monotonic()
        for client in clients:
            client.sendall(b"GET /64 HTTP/1.1\r\nHost: a\r\n\r\n")
        for client in clients:
            seen = b""
            while not seen.endswith(body(64)):
                part = client.recv(4096)
                self.assertTrue(part)
                seen += part
        self.assertLess(time.monotonic() - begun, 5)
        self.assertEqual(link.counters()["most_open"], 512)

    def test_delay_does_not_limit_throughput(self) -> None:
        """A sink behind 150 ms receives what one connection sends faster than a window in each round trip allows."""
        with socket.create_server(("127.0.0.1", 0)) as sink, \
                SlowLink(_link, sink.getsockname()[1], delay=150, window=64 << 20) as link, \
                socket.create_connection(("127.0.0.1", link.port), 20) as client:
            other, _ = sink.accept()
            part = bytes(1 << 20)
            sender = threading.Thread(target=lambda: [client.sendall(part) for _ in range(64)])
            begun = time.monotonic()
            sender.start()
            left = 64 << 20
            with other:
                while left:
                    left -= len(other.recv(1 << 20))
            sender.join()
            self.assertLess(time.monotonic() - begun, 2)

    def test_rate(self) -> None:
        took = self.seconds(self.client(self.link(rate=1_000_000)), 500_000)
        self.assertGreater(took, 0.45)
        self.assertLess(took, 0.8)

    def test_stalls(self) -> None:
        link = self.link(delay=20, lose=1)
        took = self.seconds(self.client(link))
        self.assertGreater(took, 2 * 0.220)
        self.assertGreaterEqual(link.counters()["stalls"], 2)


class Faults(LinkTest):
    def raw(self, link: SlowLink, count: int) -> tuple[bytes, bool]:
        """What arrives of an answer, and whether the connection was reset."""
        with socket.create_connection(("127.0.0.1", link.port), 20) as client:
            client.sendall(b"GET /%d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % count)
            seen = b""
            try:
                while part := client.recv(65536):
                    seen += part
            except ConnectionResetError:
                return seen, True
            return seen, False

    def test_cuts(self) -> None:
        for delay in (0, 5):
            link = self.link(cut_every=2, cut_after=20_000, delay=delay)
            seen = [self.raw(link, 100_000) for _ in range(8)]
            for i, (data, reset) in enumerate(seen):
                whole = i % 2 == 0
                self.assertEqual(len(data) > 100_000, whole, (i, len(data)))
                self.assertEqual(reset, i % 4 == 3)
                if not whole and not reset:
                    self.assertEqual(len(data), 20_000)
            self.assertEqual(link.counters()["cuts"], 4)

    def test_corruption(self) -> None:
        flips = []
        for _ in range(2):
            link = self.link(corrupt_every=3, seed=5)
            client = self.client(link)
            for i in range(9):
                data = self.get(client, 70_000)[1]
                wrong = [at for at, pair in enumerate(zip(data, body(70_000), strict=True)) if pair[0] != pair[1]]
                self.assertEqual(len(wrong), int(i % 3 == 2))
                flips.append(wrong)
            self.assertEqual(link.counters()["corrupted"], 3)
        self.assertEqual(flips[:9], flips[9:], "the seed decides")

    def test_status(self) -> None:
        link = self.link(status_every=3, status=429, retry_after=7, delay=30)
        client = self.client(link)
        begun = time.monotonic()
        statuses = []
        for _ in range(6):
            status, data, headers = self.get(client, 50)
            statuses.append(status)
            self.assertEqual(headers["Retry-After"], "7" if status == 429 else None)
            self.assertEqual(data, b"" if status == 429 else body(50))
        self.assertEqual(statuses, [200, 200, 429] * 2)
        self.assertGreater(time.monotonic() - begun, 6 * 0.03)
        counters = link.counters()
        self.assertEqual((counters["connections"], counters["requests"], counters["statuses"]), (1, 6, 2))

    def test_status_of_an_upload(self) -> None:
        link = self.link(status_every=2)
        statuses = []
        for _ in range(4):
            client = self.client(link)
            client.request("PUT", "/a", body=bytes(300_000))
            statuses.append(client.getresponse().status)
            client.close()
        self.assertEqual(statuses, [201, 503] * 2)

    def test_uploads_arrive(self) -> None:
        client = self.client(self.link(delay=10))
        client.request("PUT", "/a", body=bytes(3_000_000))
        self.assertEqual(client.getresponse().status, 201)

    def test_no_server(self) -> None:
        with SlowLink(_link, free_port(), delay=10) as link:
            with socket.create_connection(("127.0.0.1", link.port), 20) as client:
                with self.assertRaises(ConnectionResetError):
                    client.recv(1)

    def test_a_server_that_dies(self) -> None:
        """What it sent before still arrives."""
        with socket.create_server(("127.0.0.1", 0)) as server, \
                SlowLink(_link, server.getsockname()[1], delay=50) as link, \
                socket.create_connection(("127.0.0.1", link.port), 20) as client:
            other, _ = server.accept()
            other.sendall(b"last words")
            time.sleep(0.01)
            other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            other.close()
            seen = b""
            with self.assertRaises(ConnectionResetError):
                while part := client.recv(100):
                    seen += part
            self.assertEqual(seen, b"last words")

    def test_half_closed(self) -> None:
        with socket.create_connection(("127.0.0.1", self.link(delay=20).port), 20) as client:
            client.sendall(b"GET /3000 HTTP/1.1\r\nHost: a\r\n\r\n")
            client.shutdown(socket.SHUT_WR)
            seen = b""
            while part := client.recv(65536):
                seen += part
            self.assertTrue(seen.endswith(body(3000)))


class Program(LinkTest):
    def test_connections_are_forgotten(self) -> None:
        link = self.link(delay=1)
        for _ in range(50):
            client = self.client(link)
            self.get(client, 10)
            client.close()
        deadline = time.monotonic() + 5
        while (counters := link.counters())["open"] and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual((counters["connections"], counters["open"]), (50, 0))

    def test_ends(self) -> None:
        words = [_link, "--listen", "0", "--to", "127.0.0.1:9"]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            said, _ = process.communicate(timeout=10)
            self.assertEqual(said.count(b"\n"), 2)
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
            process.stdout.readline()  # type: ignore[union-attr]
            process.terminate()
            self.assertIn(b'"connections": 0', process.communicate(timeout=10)[0])
            self.assertEqual(process.returncode, 0)

    def test_wrong_options(self) -> None:
        for words in (["--to", "nobody"], ["--to", "127.0.0.1:99999"], ["--delay", "x"], ["--speed", "1"], ["--rate"]):
            done = subprocess.run([_link, *words], capture_output=True, timeout=10, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 1)
            self.assertTrue(done.stderr.startswith(b"slow_link: --"))


def main() -> Any:
    global _link
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--link", required=True, help="the program to test")
    options, rest = parser.parse_known_args()
    _link = options.link
    return unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
