#!/usr/bin/env python3
"""Tests epochs from servers on this machine: with delay, faults, wrong credentials, and servers that die.

Every epoch must equal that of the local data set, or end with one clear error in a bounded time. Tests of a store whose
server is not installed are skipped, and say so. Imports the package l3.

Usage: far_test.py --l3 COMMAND --link SLOW_LINK [names of tests, or options of unittest]
"""

from __future__ import annotations

import gc
import http.server
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import l3
from far_servers import (
    S3,
    Http,
    Https,
    HttpWithPassword,
    Redis,
    RedisCluster,
    RedisWithPassword,
    free_port,
)
from far_testing import (
    COUNT,
    DELAYS,
    Epoch,
    FarCase,
    environment,
    epoch_of,
    large_set,
    main,
    many_shards,
    read,
    small_set,
)

IN_FLIGHT = 8 << 20
MOST_GROWTH = 64 << 20  # of the memory, with IN_FLIGHT, one thread, and batches of 4.7 MB
FEW = {"threads": 1, "prefetch": 1, "max_bytes_in_flight": 100_000}  # so that an epoch takes many round trips
QUICK = {"timeout": 2, "attempts": 2}
PATIENT = {"timeout": 5, "attempts": 20}


def count(folder: str) -> int:
    return len(os.listdir(folder))


def status_kb(name: str) -> int:
    fields = Path("/proc/self/status").read_text().split()
    return int(fields[fields.index(name + ":") + 1])


class Epochs(FarCase):
    """What every store delivers."""

    ORDERS: tuple[Any, ...] = (True, "windows", False)
    DELAYS = DELAYS

    def test_epochs_equal_local_ones(self) -> None:
        url = self.published(small_set())
        for delay in self.DELAYS:
            self.set_links(delay=delay)
            for order in self.ORDERS:
                with self.subTest(delay=delay, order=order):
                    near = epoch_of(small_set(), shuffle=order, seed=delay)
                    self.assertEqual(epoch_of(url, shuffle=order, seed=delay), near)
                    self.assertEqual(sorted(number for number, _ in near), list(range(COUNT)))

    def test_ranks_share_an_epoch(self) -> None:
        data = l3.Dataset(self.published(small_set()))
        self.set_links(delay=20)
        for size in (1, 2, 3):
            with self.subTest(size):
                loaders = [l3.Loader(data, 16, rank=rank, world_size=size, last_batch="uneven", seed=size)
                           for rank in range(size)]
                loops = [iter(loader) for loader in loaders]
                found: Epoch = []
                while loops:  # in turn, as training does
                    for loop in list(loops):
                        batch = next(loop, None)
                        if batch is None:
                            loops.remove(loop)
                        else:
                            found += read([batch])
                for loader in loaders:
                    loader.close()
                self.assertEqual(sorted(found), sorted(epoch_of(small_set(), seed=size)))

    def test_resuming_in_the_middle(self) -> None:
        url = self.published(small_set())
        self.set_links(delay=20)
        for order in self.ORDERS:
            with self.subTest(order):
                with l3.Loader(url, 16, shuffle=order) as loader:
                    loop = iter(loader)
                    first = read(next(loop) for _ in range(4))
                    state = loader.state_dict()
                with l3.Loader(url, 24, shuffle=order) as loader:
                    loader.load_state_dict(state)
                    self.assertEqual(first + read(loader), epoch_of(small_set(), shuffle=order))

    def test_any_order_of_batches(self) -> None:
        self.set_links(delay=20, lose=0.02)
        found = epoch_of(self.published(small_set()), ordered=False)
        self.assertEqual(sorted(found), sorted(epoch_of(small_set())))

    def test_crops(self) -> None:
        """Parts of files: the heads, and the tiles of the crops."""
        options = {"crop": (64, 64), "samples": range(48), "seed": 4}
        self.set_links(delay=20)
        self.assertEqual(epoch_of(self.published(large_set()), **options), epoch_of(large_set(), **options))

    def test_nothing_is_left(self) -> None:
        url = self.published(small_set())
        counts = []
        for _ in range(3):
            data = l3.Dataset(url)
            loader = l3.Loader(data, 16)
            loop = iter(loader)
            next(loop)
            loader.close()
            data.close()
            del loader, loop, data
            gc.collect()
            counts.append((count("/proc/self/task"), count("/proc/self/fd")))
        self.assertEqual(counts[1:], counts[:1] * 2)

    def test_samples(self) -> None:
        """Single samples, and a data set that is not there."""
        self.set_links(delay=1)
        with l3.Dataset(self.published(small_set())) as far, l3.Dataset(small_set()) as near:
            self.assertEqual((len(far), far.classes, far.size), (len(near), near.classes, near.size))
            for i in (0, 77, COUNT - 1):
                self.assertEqual(far[i].bytes(), near[i].bytes())
        url = self.server.url("no-such-set", self.links[0].port)
        with self.assertRaises((l3.Error, OSError)) as caught:
            l3.Dataset(url)
        self.assert_plain(caught.exception, url)


class FarEpochs(Epochs):
    """What takes too long with the S3 server of these tests, which answers slowly."""

    FIRST_BATCH_SECONDS = 2.0

    def report(self, text: str) -> None:
        print(f"{type(self).__name__}: {text}", file=sys.stderr)

    def test_time_to_the_first_batch(self) -> None:
        url = self.published(many_shards())
        self.set_links(delay=150)
        begun = time.monotonic()
        with l3.Loader(url, 16) as loader:
            read([next(iter(loader))])
            took = time.monotonic() - begun
        self.report(f"{took:.2f} s to the first batch of 500 shards at 150 ms")
        self.assertLess(took, self.FIRST_BATCH_SECONDS)

    def test_memory(self) -> None:
        url = self.published(large_set())
        self.set_links(delay=150)
        with l3.Loader(url, 8, threads=1, prefetch=2, max_bytes_in_flight=IN_FLIGHT) as loader:
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            before = status_kb("VmRSS")
            for _ in loader:
                pass
            growth = (status_kb("VmHWM") - before) * 1024
        self.report(f"{growth / 2**20:.1f} MiB of memory with {IN_FLIGHT / 2**20:g} MiB in flight at 150 ms")
        self.assertLess(growth, MOST_GROWTH)


class HttpEpochs(FarEpochs):
    SERVER = Http


class HttpsEpochs(FarEpochs):
    SERVER = Https

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.enterClassContext(environment(L3_CERTIFICATES=str(cls.server.authority)))


class RedisEpochs(FarEpochs):
    SERVER = Redis


class RedisClusterEpochs(FarEpochs):
    SERVER = RedisCluster


class S3Epochs(Epochs):
    SERVER = S3
    ORDERS = (True,)
    DELAYS = (1, 20)


class Faults(FarCase):
    """Epochs while something goes wrong."""

    def begin(self, **options: Any) -> tuple[l3.Loader, Any, Epoch, Epoch]:
        """A loader that has delivered three batches, its loop, what it has delivered, and the local epoch."""
        data = l3.Dataset(self.published(small_set()), **options)
        loader = l3.Loader(data, 16, **FEW)
        self.addCleanup(loader.close)
        loop = iter(loader)
        return loader, loop, read(next(loop) for _ in range(3)), epoch_of(small_set())

    def restart(self) -> None:
        if self.server.process.poll() is not None:
            self.server.start()

    def assert_right(self, found: Epoch) -> None:
        self.assertLessEqual(set(found), set(epoch_of(small_set())), "no wrong pixels")
        self.assertEqual(len(set(found)), len(found), "nothing twice")

    def epoch_or_error(self, **options: Any) -> bool:
        """Whether the epoch is complete. If not, what was delivered is right, and the error is clear."""
        data = l3.Dataset(self.published(small_set()), **options)
        self.set_links(**self.faults)
        found: Epoch = []
        with l3.Loader(data, 16) as loader:
            try:
                for batch in loader:
                    found += read([batch])
            except l3.Error as error:
                self.assert_right(found)
                self.assert_plain(error, f":{self.links[0].port}/", "sample")
                return False
        self.assertEqual(found, epoch_of(small_set()))
        return True

    def test_a_server_that_restarts(self) -> None:
        self.set_links(delay=20)
        loader, loop, found, near = self.begin(**PATIENT)
        self.server.kill()
        starter = threading.Timer(1, self.restart)
        starter.start()
        found += read(loop)
        starter.join()
        self.assertEqual(found, near)
        self.assertEqual(loader.failure_count, 0)

    def test_a_server_that_is_gone(self) -> None:
        self.set_links(delay=20)
        loader, loop, found, _ = self.begin(**QUICK)
        self.server.kill()
        self.addCleanup(self.restart)
        self.assert_gone(loader, loop, found)

    def test_a_server_that_hangs(self) -> None:
        self.set_links(delay=20)
        loader, loop, found, _ = self.begin(**QUICK)
        self.server.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.server.process.send_signal, signal.SIGCONT)
        self.assert_gone(loader, loop, found)

    def assert_gone(self, loader: l3.Loader, loop: Any, found: Epoch) -> None:
        begun = time.monotonic()
        with self.assertRaises(l3.SampleError) as caught:
            found += read(loop)
        self.assertLess(time.monotonic() - begun, 25)
        self.assert_right(found)
        self.assert_plain(caught.exception, f":{self.links[0].port}/", "sample ")
        begun = time.monotonic()
        loader.close()
        self.assertLess(time.monotonic() - begun, 3, "closing does not wait for the server")

    def test_a_server_that_hangs_for_a_while(self) -> None:
        self.set_links(delay=20)
        _, loop, found, near = self.begin(timeout=1, attempts=20)
        self.server.process.send_signal(signal.SIGSTOP)
        waker = threading.Timer(2.5, self.server.process.send_signal, (signal.SIGCONT,))
        waker.start()
        found += read(loop)
        waker.join()
        self.assertEqual(found, near)

    def test_an_interrupted_epoch_ends_at_once(self) -> None:
        loader, loop, _, _ = self.begin()
        self.set_links(delay=3000)
        for _ in range(2):
            next(loop, None)
        begun = time.monotonic()
        loader.close()
        self.assertLess(time.monotonic() - begun, 1)

    def test_lost_segments(self) -> None:
        self.faults = {"delay": 20, "lose": 0.02}
        self.assertTrue(self.epoch_or_error())

    def test_cut_connections(self) -> None:
        for after in (10, 300, 4000):
            with self.subTest(after):
                self.faults = {"delay": 2, "cut_every": 9, "cut_after": after}
                self.epoch_or_error(**PATIENT)
                self.assertTrue(any(each["cuts"] for each in self.set_links(cut_every=0)))

    def test_corrupted_answers(self) -> None:
        for every in (2, 30):
            with self.subTest(every):
                self.faults = {"delay": 2, "corrupt_every": every}
                self.epoch_or_error(**PATIENT)
                self.assertTrue(any(each["corrupted"] for each in self.set_links(corrupt_every=0)))

    def test_damage_is_left_out(self) -> None:
        data = l3.Dataset(self.published(small_set()), **PATIENT)
        self.set_links(corrupt_every=2)
        with l3.Loader(data, 16, on_error="skip") as loader:
            found = read(loader)
            self.assertEqual(len(found) + loader.failure_count, COUNT)
        self.assert_right(found)


class HttpFaults(Faults):
    SERVER = Http

    def test_a_busy_server(self) -> None:
        for status in (429, 503):
            with self.subTest(status):
                self.faults = {"status": status, "status_every": 11, "retry_after": 1}
                self.assertTrue(self.epoch_or_error(**PATIENT))
                self.assertGreater(self.set_links(status_every=0)[0]["statuses"], 0)

    def test_a_server_that_is_always_busy(self) -> None:
        _, loop, found, _ = self.begin(**QUICK)
        self.set_links(status=503, status_every=1)
        with self.assertRaises(l3.SampleError) as caught:
            found += read(loop)
        self.assert_plain(caught.exception, "503")
        self.assert_right(found)


class RedisFaults(Faults):
    SERVER = Redis


class ExpiredToken(http.server.BaseHTTPRequestHandler):
    """S3, to a client whose session has expired."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        text = (b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>ExpiredToken</Code><Message>The provided token '
                b"has expired.</Message><Token-0>" + self.headers["x-amz-security-token"].encode() +
                b"</Token-0></Error>")
        self.send_response(400)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


class Refused(FarCase):
    """What is refused says why, with the URL and without secrets."""

    def assert_refused(self, url: str, *parts: str, secrets: tuple[str, ...] = (), seconds: float = 20,
                       **options: Any) -> str:
        begun = time.monotonic()
        with self.assertRaises((l3.Error, OSError)) as caught:
            l3.Dataset(url, **QUICK, **options)
        self.assertLess(time.monotonic() - begun, seconds)
        return self.assert_plain(caught.exception, *parts, secrets=secrets)

    def assert_quiet(self, url: str, secret: str) -> None:
        """The data set can be read, and says nothing of the secret."""
        with l3.Dataset(url) as data, l3.Loader(data, 16, shuffle=False) as loader:
            self.assertEqual(read(loader), epoch_of(small_set(), shuffle=False))
            self.assertNotIn(secret, repr(data) + repr(loader) + repr(data[0]))


class HttpPasswords(Refused):
    SERVER = HttpWithPassword

    def upload(self, data: Path, url: str) -> None:
        for path in data.iterdir():
            self.server.put(f"{data.name}/{path.name}", path.read_bytes())

    def test_wrong_passwords(self) -> None:
        url = self.published(small_set())
        self.assert_refused(url, url, "401")
        wrong = url.replace("://", "://reader:battery-staple@")
        self.assert_refused(wrong, url, "401", secrets=("battery-staple", "YmF0dGVye"))
        self.assert_quiet(url.replace("://", f"://reader:{self.server.PASSWORD}@"), self.server.PASSWORD)

    def test_secret_queries(self) -> None:
        url = self.published(small_set())
        self.assert_refused(url + "?token=battery-staple", url, "401", secrets=("battery-staple",))

    def test_servers_that_are_not_there(self) -> None:
        for scheme, rest in (("http", "set"), ("https", "set"), ("redis", "set"), ("rediss", "set")):
            with self.subTest(scheme):
                self.assert_refused(f"{scheme}://user:battery-staple@nonexistent.invalid/{rest}",
                                    "nonexistent.invalid", secrets=("battery-staple",), seconds=60)
                self.assert_refused(f"{scheme}://127.0.0.1:{free_port()}/{rest}", "127.0.0.1:")

    def test_a_server_without_tls(self) -> None:
        self.assert_refused(f"https://127.0.0.1:{self.server.port}/small", f"https://127.0.0.1:{self.server.port}/")

    def test_a_server_that_says_nothing(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            for scheme in ("http", "https", "redis", "rediss"):
                with self.subTest(scheme):
                    port = silent.getsockname()[1]
                    self.assert_refused(f"{scheme}://127.0.0.1:{port}/set", f":{port}/", seconds=15)


class HttpsRefused(Refused):
    SERVER = Https

    def upload(self, data: Path, url: str) -> None:
        with environment(L3_CERTIFICATES=str(self.server.authority)):
            super().upload(data, url)

    def test_certificates(self) -> None:
        url = self.published(small_set())
        self.assert_refused(url, url, "certificate")
        with l3.Dataset(url, certificates=self.server.authority) as data:
            self.assertEqual(len(data), COUNT)
        # The certificate is not for this name of the same machine.
        other = url.replace("127.0.0.1", "127.0.0.2")
        with socket.create_server(("127.0.0.2", 0)):
            self.assert_refused(other, other, certificates=self.server.authority)


class RedisPasswords(Refused):
    SERVER = RedisWithPassword

    def test_wrong_passwords(self) -> None:
        url = self.published(small_set())
        self.assert_quiet(url, self.server.PASSWORD)
        with environment(REDISCLI_AUTH=""):
            self.assert_refused(url, url)
            self.assert_quiet(url.replace("://", f"://:{self.server.PASSWORD}@"), self.server.PASSWORD)
            self.assert_refused(url.replace("://", "://:battery-staple@"), url, secrets=("battery-staple",))
        self.assert_refused(url.replace("redis:", "rediss:"), url.replace("redis:", "rediss:"),
                            secrets=(self.server.PASSWORD,))


class S3Keys(Refused):
    SERVER = S3

    def test_wrong_keys(self) -> None:
        url = self.published(small_set())
        self.assert_quiet(url, os.environ["AWS_SECRET_ACCESS_KEY"])
        with environment(AWS_SECRET_ACCESS_KEY="battery-staple"):
            self.assert_refused(url, url, "403", secrets=("battery-staple",))
        with environment(AWS_ACCESS_KEY_ID="AKIAXXXXXXXXXXXXXXXX", AWS_SECRET_ACCESS_KEY="battery-staple"):
            self.assert_refused(url, url, "403", secrets=("battery-staple",))

    def test_an_expired_session(self) -> None:
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), ExpiredToken) as server:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            with environment(AWS_SESSION_TOKEN="battery-staple",
                             AWS_ENDPOINT_URL=f"http://127.0.0.1:{server.server_address[1]}"):
                secret = os.environ["AWS_SECRET_ACCESS_KEY"]
                self.assert_refused("s3://bucket/small", "s3://bucket/small", "expired",
                                    secrets=("battery-staple", secret, "Signature"), seconds=5)
            server.shutdown()

    def test_a_service_that_is_not_there(self) -> None:
        with environment(AWS_ENDPOINT_URL="http://nonexistent.invalid"):
            self.assert_refused("s3://bucket/small", "s3://bucket/small", seconds=60)


del FarCase, Epochs, FarEpochs, Faults, Refused  # unittest would run them as well

if __name__ == "__main__":
    main()
