#!/usr/bin/env python3
"""Tests stores on HTTP against a server on this machine that misbehaves in every way.

Usage: far_http_test.py --probe STORE_PROBE [names of tests, or options of unittest]
"""

from __future__ import annotations

import re
import ssl
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

from hostile_http import CONTENT, SMALL, HostileServer
from store_probing import ARGUMENT, EACCES, ECONNREFUSED, ENOENT, EPROTO, ETIMEDOUT, FILE, TRUNCATED, FarTest, main, run


class Http(FarTest):
    def setUp(self) -> None:
        self.server = HostileServer()
        self.addCleanup(self.server.close)

    def url(self, path: str = "") -> str:
        return self.server.url(path).rstrip("/")

    def refused(self, behaviour: str, *words: object, key: str = "big") -> str:
        """The reason why a read fails with EPROTO, at once and without a second attempt."""
        began = time.monotonic()
        status, error, reason = self.fault(self.url(behaviour), "read", key, 1000, 500, *words)
        self.assertEqual((status, error), (FILE, EPROTO), reason)
        self.assertLess(time.monotonic() - began, 3, reason)
        self.assertEqual(self.server.counts[f"/{behaviour}/{key}"], 1)
        return reason

    # ---------------------------------------------------------------------------------------------------- reads

    def test_reads(self) -> None:
        for behaviour in ("good", "chunked"):
            line = self.good(self.url(behaviour), "read", "big", 1000, 100_000)[0]
            self.assert_bytes(line, CONTENT[1000:101_000])
            self.assertEqual(line["attempts"], "1")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bytes"
            self.good("--out", file, self.url("good"), "read", "big", len(CONTENT) - 1_000_000, 1_000_000)
            self.assertEqual(file.read_bytes(), CONTENT[-1_000_000:])
        line = self.good("--object-size", len(CONTENT), self.url("good"), "read", "big", 0, 1)[0]
        self.assert_bytes(line, CONTENT[:1])

    def test_reads_from_the_end(self) -> None:
        for behaviour in ("good", "explicit"):
            line = self.good(self.url(behaviour), "tail", "big", 70_000)[0]
            self.assert_bytes(line, CONTENT[-70_000:])
            self.assertEqual(int(line["object_size"]), len(CONTENT))
        for behaviour in ("good", "explicit", "whole"):
            line = self.good(self.url(behaviour), "tail", "small", 1000)[0]
            self.assert_bytes(line, SMALL)
            self.assertEqual(int(line["object_size"]), len(SMALL))
        line = self.good(self.url("empty"), "tail", "big", 10)[0]
        self.assertEqual((line["size"], line["object_size"]), ("0", "0"))
        self.assertIn("does not support ranges", self.fault(self.url("whole"), "tail", "big", 10)[2])
        self.assertIn("how large", self.fault(self.url("unbounded"), "tail", "small", 100)[2])

    def test_neighbours_share_a_request(self) -> None:
        places = [(50_000, 3000), (10_000, 2000), (53_000, 10), (50_000, 3000), (500_000, 5), (12_001, 9),
                  (51_000, 500)]
        words = [f"{at}:{size}" for at, size in places]
        lines = self.good("--connections", 1, self.url("good"), "parts", "big", *words)
        for line, (at, size) in zip(lines, places, strict=True):
            self.assert_bytes(line, CONTENT[at:at + size])
        self.assertEqual([line["shared"] for line in lines], ["5", "5", "5", "5", "0", "5", "5"])
        self.assertEqual(self.server.ranges("/good/big"), ["bytes=10000-53009", "bytes=500000-500004"])

    def test_many(self) -> None:
        for count in (150, 5000):  # far apart, and all in few requests
            expected = 0
            for i in range(count):
                at = (i * 2654435761 + 12345) % (len(CONTENT) - 2000 + 1)
                expected = zlib.crc32(CONTENT[at:at + 2000], expected)
            for behaviour in ("good", "drops"):
                line = self.good(self.url(behaviour), "many", "big", count, 2000)[0]
                self.assertEqual((int(line["crc32"]), line["ordered"]), (expected, "1"))

    def test_connections_are_kept(self) -> None:
        self.good("--connections", 4, self.url("good"), "many", "big", 100, 1000)
        self.assertLessEqual(self.server.connections, 4)

    def test_truncated(self) -> None:
        end = len(CONTENT)
        for offset in (end - 10, end, end + 100):
            status, _, reason = self.fault(self.url("good"), "read", "big", offset, 20)
            self.assertEqual(status, TRUNCATED)
            self.assertIn(f"ends after {end} bytes", reason)
        status, text = run(self.url("good"), "parts", "big", f"{end - 20}:20", f"{end - 10}:20")
        self.assertEqual(status, 1)
        self.assertIn(f"crc32={zlib.crc32(CONTENT[-20:])} ", text)
        self.assertIn("fault status=5", text)
        self.assertEqual(self.fault("--object-size", end + 1, self.url("good"), "read", "big", 0, 5)[0], TRUNCATED)
        self.assertEqual(self.fault("--object-size", end - 1, self.url("good"), "read", "big", 0, 5)[0], FILE)

    def test_denied_and_missing(self) -> None:
        for status, expected in ((401, EACCES), (403, EACCES), (404, ENOENT), (410, ENOENT)):
            found = self.fault(self.url(f"status-{status}"), "read", "big", 0, 5)
            self.assertEqual(found[:2], (FILE, expected))
            self.assertIn(f"answered {status}", found[2])

    def test_passwords_in_a_file(self) -> None:
        with tempfile.TemporaryDirectory() as home:
            (Path(home) / ".netrc").write_text("machine 127.0.0.1 login user password password\n")
            line = self.good(self.url("private"), "read", "big", 0, 5, env={"HOME": home})[0]
            self.assert_bytes(line, CONTENT[:5])
        self.assertEqual(self.fault(self.url("private"), "read", "big", 0, 5)[1], EACCES)

    def test_secrets_stay_secret(self) -> None:
        address = self.url("private/folder").replace("http://", "http://user:password@") + "?token=geheim"
        self.assert_bytes(self.good(address, "read", "a key", 0, 5)[0], CONTENT[:5])
        self.assertEqual(self.server.log[-1][1], "/private/folder/a%20key?token=geheim")
        name = run(address, "name", "a key")[1]
        self.assertIn(f"object={self.url('private/folder')}/a%20key\n", name)
        wrong = run(address.replace("private", "status-403"), "read", "key", 0, 5)[1]
        redirected = run(address.replace("private", "redirect-8"), "read", "key", 0, 5)[1]
        for text in (name, wrong, redirected):
            self.assertNotRegex(text, "password|geheim|dXNlcjpwYXNzd29yZA|\x1b")

    # --------------------------------------------------------------------------------------------- hostile answers

    def test_lying_lengths(self) -> None:
        self.assertIn("more bytes", self.refused("endless"))
        self.assertIn("more bytes", self.refused("longer"))
        self.assertIn("announces 501 bytes for a range of 500", self.refused("plus"))
        self.assertIn("announces 499 bytes for a range of 500", self.refused("minus"))

    def test_other_ranges(self) -> None:
        self.assertIn("other bytes", self.refused("shifted"))
        self.assertIn("contradicts itself", self.refused("twice"))
        self.assertIn("which bytes", self.refused("unnamed"))
        self.assertIn("does not support ranges", self.refused("whole"))
        self.assertIn("does not support ranges", self.refused("unbounded"))
        self.assertIn("compresses", self.refused("gzip"))
        self.assertIn("answered 204", self.refused("nothing"))

    def test_large_heads_and_errors(self) -> None:
        self.assertIn("head of the answer is too large", self.refused("heads"))
        self.refused("line")
        self.assertIn("head of the answer is too large", self.refused("interim"))
        self.refused("garbage")
        self.assertEqual(self.fault(self.url("errors"), "read", "big", 0, 5)[:2], (FILE, EACCES))

    def test_redirects(self) -> None:
        other = HostileServer()
        self.addCleanup(other.close)
        self.server.other_port = other.server_address[1]
        self.assert_bytes(self.good(self.url("redirect-1"), "read", "big", 7, 9)[0], CONTENT[7:16])
        self.assert_bytes(self.good(self.url("redirect-6"), "read", "big", 7, 9)[0], CONTENT[7:16])
        with_password = self.url("redirect-5").replace("http://", "http://user:password@")
        self.assert_bytes(self.good(with_password, "read", "big", 7, 9)[0], CONTENT[7:16])
        self.assertIn(f"redirects to http://127.0.0.1:{other.server_address[1]},", self.refused("redirect-2"))
        self.assertIn("redirects to file:", self.refused("redirect-3"))
        self.assertIn("malformed", self.refused("redirect-7"))
        self.assertEqual(other.connections, 0)
        self.assertIn("again and again", self.fault(self.url("redirect-4"), "read", "big", 0, 5)[2])
        self.assertEqual(self.server.counts["/redirect-4/big"], 6)

    # ---------------------------------------------------------------------------------------------------- retries

    def test_busy_server(self) -> None:
        began = time.monotonic()
        line = self.good(self.url("busy-2"), "read", "big", 5, 1000)[0]
        self.assert_bytes(line, CONTENT[5:1005])
        self.assertEqual(line["attempts"], "3")
        self.assertGreater(time.monotonic() - began, 2)  # as Retry-After says
        line = self.good("--attempts", 6, self.url("fails-5"), "read", "big", 5, 1000)[0]
        self.assertEqual(line["attempts"], "6")
        reason = self.fault("--attempts", 3, self.url("fails-9"), "read", "other", 5, 1000)[2]
        self.assertIn("(sent 3 times)", reason)
        self.assertEqual(self.server.counts["/fails-9/other"], 3)

    def test_resumes_where_an_answer_broke(self) -> None:
        line = self.good(self.url("cut-1000"), "read", "big", 100, 3500)[0]
        self.assert_bytes(line, CONTENT[100:3600])
        self.assertEqual(line["attempts"], "4")
        self.assertEqual(self.server.ranges("/cut-1000/big"), [f"bytes={at}-3599" for at in (100, 1100, 2100, 3100)])
        self.good("--attempts", 2, self.url("cut-1000"), "tail", "tail", 1500)
        rest = f"bytes={len(CONTENT) - 500}-{len(CONTENT) - 1}"
        self.assertEqual(self.server.ranges("/cut-1000/tail"), ["bytes=-1500", rest])
        # Of a shared request, reads that are done are not asked for again.
        lines = self.good("--connections", 1, self.url("cut-1000"), "parts", "two", "0:600", "600:600")
        self.assert_bytes(lines[0], CONTENT[:600])
        self.assert_bytes(lines[1], CONTENT[600:1200])
        self.assertEqual([line["attempts"] for line in lines], ["1", "2"])
        self.assertIn("(sent 2 times)", self.fault("--attempts", 2, self.url("cut-0"), "read", "big", 0, 5)[2])
        self.assertIn("changed", self.fault("--attempts", 2, self.url("changed"), "read", "big", 0, 500)[2])

    def test_silent_servers(self) -> None:
        for behaviour in ("silent", "stalls"):
            began = time.monotonic()
            found = self.fault("--timeout", 300, "--attempts", 2, self.url(behaviour), "read", "big", 0, 500)
            self.assertEqual(found[:2], (FILE, ETIMEDOUT))
            self.assertIn("no progress for 300 ms (sent 2 times)", found[2])
            self.assertLess(time.monotonic() - began, 2)

    def test_trickle(self) -> None:
        began = time.monotonic()
        found = self.fault("--timeout", 500, "--attempts", 1, self.url("trickle"), "read", "big", 0, 30_000)
        self.assertEqual(found[:2], (FILE, ETIMEDOUT))
        self.assertIn("too slow", found[2])
        self.assertLess(time.monotonic() - began, 6)

    def test_no_server(self) -> None:
        url = self.url("good")
        self.server.close()
        found = self.fault("--attempts", 2, url, "read", "big", 0, 500)
        self.assertEqual(found[:2], (FILE, ECONNREFUSED))
        found = self.fault("--attempts", 2, "http://no-such-host.invalid/", "read", "big", 0, 500)
        self.assertIn("cannot be resolved", found[2])

    def test_hedges(self) -> None:
        words = ("--object-size", len(CONTENT), "--connections", 8, self.url("slow-25"), "many")
        line = self.good("--hedge", *words, "big", 200, 5000)[0]
        self.assertLess(float(line["seconds"]), 0.9)
        self.assertGreater(int(line["hedged"]), 1)
        slow = self.good(*words, "other", 200, 5000)[0]
        self.assertEqual(slow["crc32"], line["crc32"])
        self.assertGreater(float(slow["seconds"]), 0.9)

    def test_cancel(self) -> None:
        status, text = run("--object-size", len(CONTENT), self.url("silent"), "cancel", "big", 500, 100_000, 300)
        self.assertEqual(status, 1)
        self.assertIn("faults=500 reason=the read was cancelled", text)
        self.assertLess(float(re.search(r"seconds=([\d.]+)", text)[1]), 1)

    def test_forks_and_ends(self) -> None:
        lines = self.good(self.url("good"), "fork", "big", 1000)
        self.assertEqual(len(lines), 3)
        for line in lines:
            self.assert_bytes(line, CONTENT[-1000:])
        self.assertEqual(self.good(self.url("good"), "close", "big", 1000)[1], {"descriptors": "0", "threads": "0"})

    # ------------------------------------------------------------------------------------------- uploads and TLS

    def test_put(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bytes"
            uploads = (("store", "a b", CONTENT), ("store-2", "c", CONTENT), ("store", "none", b""))
            for behaviour, key, content in uploads:
                file.write_bytes(content)
                line = self.good(self.url(behaviour), "put", key, file)[0]
                self.assertEqual(line["sent"], line["size"])
                self.assertEqual(self.server.stored[f"/{behaviour}/{key.replace(' ', '%20')}"], content)
            self.assertIn("instead of 0", self.fault(self.url("loses"), "put", "key", file)[2])
            for content in (b"", CONTENT):  # the server answers before it has all of it
                file.write_bytes(content)
                self.assertEqual(self.fault(self.url("status-403"), "put", "key", file)[1], EACCES)

    def test_certificates(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = Path(folder) / "key.pem", Path(folder) / "certificate.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                            "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                            "subjectAltName=IP:127.0.0.1"], check=True, stderr=subprocess.DEVNULL)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            server = HostileServer(context)
            self.addCleanup(server.close)
            url = server.url("good")
            found = self.fault(url, "read", "big", 0, 500)
            self.assertEqual(found[:2], (FILE, EPROTO))
            self.assertIn("certificate", found[2])
            self.assert_bytes(self.good("--certificates", certificate, url, "read", "big", 0, 500)[0], CONTENT[:500])
            line = self.good(url, "read", "big", 0, 500, env={"SSL_CERT_FILE": str(certificate)})[0]
            self.assert_bytes(line, CONTENT[:500])
            other_name = url.replace("127.0.0.1", "localhost")
            self.assertIn("certificate", self.fault("--certificates", certificate, other_name, "read", "big", 0, 5)[2])
            self.assertEqual(self.fault("--certificates", "/nonexistent", url, "read", "big", 0, 5)[0], ARGUMENT)
            line = self.good("--certificates", certificate, url, "many", "big", 300, 20_000)[0]
            self.assertEqual(line["ordered"], "1")


if __name__ == "__main__":
    sys.exit(main(__doc__))
