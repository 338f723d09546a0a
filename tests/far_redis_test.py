#!/usr/bin/env python3
"""Tests the Redis store with servers on this machine: one alone, with passwords, with TLS, a cluster.

Usage: far_redis_test.py --probe REDIS_PROBE [unittest arguments]
"""

from __future__ import annotations

import errno
import shutil
import subprocess
import time
import unittest

from redis_testing import (
    ARGUMENT,
    FILE,
    LIMIT,
    PROBE,
    SAMPLES,
    SERVER,
    TRUNCATED,
    UNSUPPORTED,
    Cluster,
    Result,
    Server,
    Test,
    main,
    probe,
    wait_until,
)

SECRET = "ge%40heim"  # "ge@heim" in a URL


@unittest.skipUnless(SERVER, "redis-server is not installed")
class Alone(Test):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.server = Server(cls.folder / "server").start()
        cls.addClassCleanup(cls.server.stop)
        cls.url = f"redis://127.0.0.1:{cls.server.port}/some/set"

    def test_samples(self) -> None:
        self.put(self.url)
        self.compare(self.url)
        self.compare(self.url, 3, "fork")
        self.compare(self.url, 3, "cancel")
        self.compare(self.url, 1, options=("--connections", 1))
        offset, size = self.places[5]
        part = self.good(probe(self.url, "sample", "a.l3s", 5, offset + size // 2, size - size // 2, offset, size))
        self.assertEqual(part.output, self.bytes[offset + size // 2:offset + size])
        self.bad(probe(self.url, "sample", "a.l3s", SAMPLES, 0, 1, 0, 1), FILE, errno.ENOENT)
        self.bad(probe(self.url, "sample", "a.l3s", SAMPLES, 0, 1, 0, 2), FILE, errno.ENOENT)
        self.bad(probe(self.url, "sample", "a.l3s", 5, 0, size + 1, 0, size + 1), TRUNCATED, 0)
        self.bad(probe(self.url, "sample", "a.l3s", 5, size + 9, 1, 0, size + 10), TRUNCATED, 0)
        self.bad(probe(self.url, "sample", "a.l3s", 5, 0, size - 1, 0, size - 1), FILE, errno.EPROTO)
        self.bad(probe(self.url, "read", "a.l3s", 0, 64), UNSUPPORTED, 0)

    def test_layout(self) -> None:
        self.put(self.url + "/layout")
        with self.server.client() as client:
            self.assertEqual(len(client.call("KEYS", "some/set/layout/*")), SAMPLES + 1)
            offset, size = self.places[7]
            self.assertEqual(client.call("GET", "some/set/layout/a.l3s/7"), self.bytes[offset:offset + size])
            index = len(self.bytes) - 64 - 80 * SAMPLES
            self.assertEqual(client.call("GET", "some/set/layout/a.l3s/index"), self.bytes[index:])

    def test_index(self) -> None:
        self.put(self.url)
        whole = 64 + 80 * SAMPLES
        for size in (64, 100, whole, whole + 1, 1 << 20):
            tail = self.good(probe(self.url, "tail", "a.l3s", size))
            self.assertEqual(tail.output, self.bytes[-min(size, whole):])
            self.assertEqual(tail.text, f"size {len(self.bytes)}\n")
        self.bad(probe(self.url, "tail", "b.l3s", 64), FILE, errno.ENOENT)
        with self.server.client() as client:
            client.call("SET", "some/set/c.l3s/index", "x" * 100)
            client.call("SET", "some/set/d.l3s/index", self.bytes[-whole - 1:])
        self.bad(probe(self.url, "tail", "c.l3s", 64), FILE, errno.EPROTO)
        self.bad(probe(self.url, "tail", "d.l3s", 64), FILE, errno.EPROTO)

    def test_other_objects(self) -> None:
        text = self.folder / "text"
        text.write_bytes(b"0123456789")
        self.good(probe(self.url, "put", "index.json", text))
        self.assertEqual(self.good(probe(self.url, "read", "index.json", 2, 3)).output, b"234")
        self.assertEqual(self.good(probe(self.url, "sized", "index.json", 2, 8, 10)).output, b"23456789")
        self.bad(probe(self.url, "sized", "index.json", 2, 8, 11), FILE, 0)
        for size in (4, 10, 1 << 20):
            tail = self.good(probe(self.url, "tail", "index.json", size))
            self.assertEqual((tail.output, tail.text), (b"0123456789"[-size:], "size 10\n"))
        short = self.bad(probe(self.url, "read", "index.json", 8, 3), TRUNCATED, 0)
        self.assertEqual(short.fault[2], 10)
        self.bad(probe(self.url, "read", "index.json", 100, 3), TRUNCATED, 0)
        for command in (("read", "none", 0, 3), ("tail", "none", 3), ("sized", "none", 0, 3, 3)):
            self.bad(probe(self.url, *command), FILE, errno.ENOENT)
        with self.server.client() as client:
            client.call("LPUSH", "some/set/list", "a")
        self.assertIn("WRONGTYPE", self.bad(probe(self.url, "read", "list", 0, 3), FILE, errno.EIO).text)

    def test_long_objects(self) -> None:
        long = self.folder / "long"
        block = bytes(range(251)) * 1000
        content = block * (150_000_000 // len(block))
        long.write_bytes(content)
        self.good(probe(self.url, "put", "long", long))
        long.unlink()
        self.assertEqual(self.good(probe(self.url, "read", "long", 9, len(content) - 10)).output, content[9:-1])
        for size in (len(content) - 7, len(content) + 20_000_000):
            self.assertEqual(self.good(probe(self.url, "tail", "long", size)).output, content[-size:])
        self.bad(probe(self.url, "read", "long", 1 << 30, 1), LIMIT, 0)
        with self.server.client() as client:
            client.call("DEL", "some/set/long")

    def test_databases(self) -> None:
        text = self.folder / "text3"
        text.write_bytes(b"in 3")
        url = f"redis://127.0.0.1:{self.server.port}/3/deep"
        self.good(probe(url, "put", "x", text))
        self.assertEqual(self.good(probe(url, "read", "x", 0, 4)).output, b"in 3")
        self.assertEqual(self.good(probe(url, "name")).output.decode(), url + "\n")
        with self.server.client() as client:
            self.assertEqual(client.call("EXISTS", "deep/x"), 0)
            client.call("SELECT", 3)
            self.assertEqual(client.call("EXISTS", "deep/x"), 1)
        self.bad(probe(f"redis://127.0.0.1:{self.server.port}/99/deep", "read", "x", 0, 4), FILE, errno.EIO)

    def test_what_is_no_shard(self) -> None:
        text = self.folder / "text4"
        text.write_bytes(b"x" * 1000)
        self.bad(probe(self.url, "put", "no.l3s", text), ARGUMENT, 0)
        self.bad(probe(self.url, "put", "no.shard", self.shard, self.ranges), UNSUPPORTED, 0)

    def test_full(self) -> None:
        server = Server(self.folder / "full", "--maxmemory", "2mb", "--maxmemory-policy", "noeviction").start()
        self.addCleanup(server.stop)
        url = f"redis://127.0.0.1:{server.port}/n"
        self.bad(probe(url, "put", "a.l3s", self.shard, self.ranges), FILE, errno.ENOSPC)
        with server.client() as client:
            self.assertEqual(client.call("EXISTS", "n/a.l3s/index"), 0)


@unittest.skipUnless(SERVER, "redis-server is not installed")
class Breaks(Test):
    def test_restart(self) -> None:
        server = Server(self.folder / "server", "--appendonly", "yes", "--appendfsync", "always").start()
        self.addCleanup(server.stop)
        url = f"redis://127.0.0.1:{server.port}/set"
        self.put(url)
        command = [PROBE[0], url, "compare", "a.l3s", str(self.shard), str(self.ranges), "100"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reads:
            self.addCleanup(reads.kill)
            for _ in range(3):
                reads.stdout.readline()
            server.stop()
            time.sleep(1)
            server.start()
            output, text = reads.communicate(timeout=100)
        self.assertEqual(reads.returncode, 0, text.decode())
        self.assertTrue(output.endswith(b"round 99\n"))
        repeated = [line for line in text.decode().splitlines() if not line.endswith("repeated 0")]
        self.assertTrue(repeated, "the server was stopped too late")

    def test_clients_that_are_killed(self) -> None:
        server = Server(self.folder / "kills").start()
        self.addCleanup(server.stop)
        url = f"redis://127.0.0.1:{server.port}/set"
        self.put(url)
        command = [PROBE[0], url, "compare", "a.l3s", str(self.shard), str(self.ranges), "60"]
        reads = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with reads, server.client() as client:
            self.addCleanup(reads.kill)
            while reads.stdout.readline():
                client.call("CLIENT", "KILL", "TYPE", "normal")
            text = reads.stderr.read().decode()
        self.assertEqual(reads.returncode, 0, text)

    def test_nobody_there(self) -> None:
        server = Server(self.folder / "never")
        begin = time.monotonic()
        self.bad(probe(f"redis://127.0.0.1:{server.port}/n", "read", "x", 0, 1), FILE, errno.ECONNREFUSED)
        self.assertLess(time.monotonic() - begin, 10)

    def test_busy(self) -> None:
        server = Server(self.folder / "busy", "--busy-reply-threshold", "50").start()
        self.addCleanup(server.stop)
        with server.client() as client, server.client() as other:
            client.call("SET", "n/x", "abc")
            client.socket.sendall(b"*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n")
            time.sleep(0.3)
            url = f"redis://127.0.0.1:{server.port}/n"
            self.bad(probe(url, "read", "x", 0, 3, options=("--attempts", 2)), FILE, errno.EBUSY)
            with subprocess.Popen([PROBE[0], url, "read", "x", "0", "3"], stdout=subprocess.PIPE) as read:
                self.addCleanup(read.kill)
                time.sleep(0.5)
                other.call("SCRIPT", "KILL")
                self.assertEqual(read.communicate(timeout=60)[0], b"abc")


@unittest.skipUnless(SERVER, "redis-server is not installed")
class Passwords(Test):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.server = Server(cls.folder / "server", "--user", "reader", "on", ">ge@heim", "~set/*", "+@read",
                            "+select", "--requirepass", "other")
        cls.server.start(is_ready=False)
        cls.addClassCleanup(cls.server.stop)

        def is_up() -> bool:
            try:
                with cls.server.client() as client:
                    client.call("AUTH", "other")
                    client.call("SET", "set/x", "abc")
                return True
            except OSError:
                return False

        wait_until(is_up)
        cls.place_of = f"127.0.0.1:{cls.server.port}"

    def denied(self, result: Result) -> None:
        self.bad(result, FILE, errno.EACCES)
        for secret in ("ge@heim", SECRET, "falsch", "reader"):
            self.assertNotIn(secret, result.text)

    def test_passwords(self) -> None:
        read = ("read", "x", 0, 3)
        for good in ("reader:" + SECRET, ":other", "default:other"):
            self.assertEqual(self.good(probe(f"redis://{good}@{self.place_of}/set", *read)).output, b"abc")
        for bad in ("reader:falsch", ":falsch", "nobody:" + SECRET):
            begin = time.monotonic()
            self.denied(probe(f"redis://{bad}@{self.place_of}/set", *read))
            self.assertLess(time.monotonic() - begin, 2)  # at once
        self.denied(probe(f"redis://{self.place_of}/set", *read))
        for user, secret in (("", "other"), ("reader@", "ge@heim")):
            given = probe(f"redis://{user}{self.place_of}/set", *read, environment={"REDISCLI_AUTH": secret})
            self.assertEqual(self.good(given).output, b"abc")

    def test_permissions(self) -> None:
        url = f"redis://reader:{SECRET}@{self.place_of}"
        self.denied(probe(url + "/other", "read", "x", 0, 3))
        self.denied(probe(url + "/set", "put", "a.l3s", self.shard, self.ranges))
        self.assertEqual(self.good(probe(url + "/set", "name")).output.decode(), f"redis://{self.place_of}/set\n")

    def test_password_where_none_is_needed(self) -> None:
        server = Server(self.folder / "open").start()
        self.addCleanup(server.stop)
        self.denied(probe(f"redis://:{SECRET}@127.0.0.1:{server.port}/set", "read", "x", 0, 3))


@unittest.skipUnless(SERVER and shutil.which("openssl"), "redis-server or openssl is not installed")
class Secure(Test):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        keys = cls.folder / "keys"
        keys.mkdir()

        def make(*words: object) -> None:
            subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)

        new = ("req", "-newkey", "rsa:2048", "-nodes")
        for name in ("ca", "other"):
            make(*new, "-x509", "-days", 2, "-subj", "/CN=tests", "-keyout", keys / f"{name}.key", "-out",
                 keys / f"{name}.pem")
        make(*new, "-subj", "/CN=localhost", "-keyout", keys / "server.key", "-out", keys / "server.csr")
        (keys / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        make("x509", "-req", "-in", keys / "server.csr", "-CA", keys / "ca.pem", "-CAkey", keys / "ca.key",
             "-CAcreateserial", "-days", 2, "-extfile", keys / "names", "-out", keys / "server.pem")
        cls.keys = keys
        cls.server = Server(cls.folder / "server")
        cls.server.options = ["--port", "0", "--tls-port", str(cls.server.port), "--tls-cert-file",
                              str(keys / "server.pem"), "--tls-key-file", str(keys / "server.key"),
                              "--tls-ca-cert-file", str(keys / "ca.pem"), "--tls-auth-clients", "no"]
        cls.server.start(is_ready=False)
        cls.addClassCleanup(cls.server.stop)
        time.sleep(1)
        if cls.server.process.poll() is not None:
            raise unittest.SkipTest("redis-server has no TLS")
        cls.url = f"rediss://127.0.0.1:{cls.server.port}/set"

    def test_samples(self) -> None:
        trust = ("--ca", self.keys / "ca.pem")
        self.put(self.url, options=trust)
        self.compare(self.url, 3, options=trust)
        self.compare(self.url, 2, "cancel", options=trust)
        self.compare(self.url, 1, "fork", options=trust)
        self.compare(self.url.replace("127.0.0.1", "localhost"), 1, options=trust)

    def test_certificates(self) -> None:
        for trust in ((), ("--ca", self.keys / "other.pem"), ("--ca", self.keys / "none.pem")):
            begin = time.monotonic()
            result = probe(self.url, "read", "x", 0, 1, options=trust)
            self.assertEqual((result.code, result.fault[0]), (1, FILE), result.text)
            self.assertLess(time.monotonic() - begin, 5)
        result = probe(self.url.replace("127.0.0.1", "127.0.0.2"), "read", "x", 0, 1,
                       options=("--ca", self.keys / "ca.pem", "--attempts", 1))
        self.assertEqual(result.code, 1)

    def test_no_tls(self) -> None:
        result = probe(self.url.replace("rediss", "redis"), "read", "x", 0, 1, options=("--attempts", 2))
        self.assertEqual(result.code, 1)


@unittest.skipUnless(SERVER, "redis-server is not installed")
class InCluster(Test):
    def setUp(self) -> None:
        self.cluster = Cluster(self.folder / "cluster")
        self.addCleanup(shutil.rmtree, self.folder / "cluster", ignore_errors=True)
        self.addCleanup(self.cluster.stop)
        self.url = f"redis://127.0.0.1:{self.cluster.servers[1].port}/set"

    def test_slots_that_move(self) -> None:
        self.put(self.url)
        self.compare(self.url)
        self.compare(self.url, 2, "cancel")
        for i in range(3):  # keys are spread
            self.assertGreater(self.cluster.call(i, "DBSIZE"), SAMPLES // 6)
        # A sample's slot moves from the node that has it to the next one.
        key = "set/a.l3s/7"
        slot = self.cluster.call(0, "CLUSTER", "KEYSLOT", key)
        old = min(slot // 5462, 2)
        new = (old + 1) % 3
        names = self.cluster.names
        self.cluster.call(new, "CLUSTER", "SETSLOT", slot, "IMPORTING", names[old])
        self.cluster.call(old, "CLUSTER", "SETSLOT", slot, "MIGRATING", names[new])
        self.cluster.call(old, "MIGRATE", "127.0.0.1", self.cluster.servers[new].port, key, 0, 5000)
        with self.assertRaisesRegex(RuntimeError, "ASK"):
            self.cluster.call(old, "GET", key)
        self.compare(self.url)
        self.cluster.call(new, "CLUSTER", "SETSLOT", slot, "NODE", names[new])
        self.cluster.call(old, "CLUSTER", "SETSLOT", slot, "NODE", names[new])
        with self.assertRaisesRegex(RuntimeError, "MOVED"):
            self.cluster.call(old, "GET", key)
        self.compare(self.url)

    def test_tails_while_slots_move(self) -> None:
        # A tail takes two commands: both must ask.
        self.put(self.url)
        key = "set/a.l3s/index"
        slot = self.cluster.call(0, "CLUSTER", "KEYSLOT", key)
        old = min(slot // 5462, 2)
        new = (old + 1) % 3
        self.cluster.call(new, "CLUSTER", "SETSLOT", slot, "IMPORTING", self.cluster.names[old])
        self.cluster.call(old, "CLUSTER", "SETSLOT", slot, "MIGRATING", self.cluster.names[new])
        self.cluster.call(old, "MIGRATE", "127.0.0.1", self.cluster.servers[new].port, key, 0, 5000)
        self.assertEqual(self.good(probe(self.url, "tail", "a.l3s", 100)).output, self.bytes[-100:])

    def test_failover(self) -> None:
        self.put(self.url)
        replica = self.cluster.servers[3]
        with self.cluster.servers[0].client() as client:
            client.call("WAIT", 1, 5000)
        command = [PROBE[0], self.url, "compare", "a.l3s", str(self.shard), str(self.ranges), "40"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reads:
            self.addCleanup(reads.kill)
            for _ in range(3):
                reads.stdout.readline()
            self.cluster.servers[0].stop()
            text = reads.communicate(timeout=100)[1].decode()
        self.assertEqual(reads.returncode, 0, text)
        with replica.client() as client:
            self.assertIn("role:master", client.call("INFO", "replication").decode())


if __name__ == "__main__":
    main()
