#!/usr/bin/env python3
"""Tests stores on S3: against a server that verifies signatures, and against moto if it is installed.

Usage: far_s3_test.py --probe STORE_PROBE [names of tests, or options of unittest]
"""

from __future__ import annotations

import http.client
import logging
import sys
import tempfile
import unittest
import urllib.parse
from pathlib import Path

from hostile_http import CONTENT, S3_KEY, SMALL, HostileServer
from store_probing import ARGUMENT, EACCES, ENOENT, FILE, FarTest, main

try:
    import boto3
    from moto.server import ThreadedMotoServer
except ImportError:
    ThreadedMotoServer = None


class Signed(FarTest):
    """Against a server that verifies signatures over the paths as they were sent."""

    def setUp(self) -> None:
        self.server = HostileServer()
        self.addCleanup(self.server.close)
        self.keys = {"AWS_ACCESS_KEY_ID": S3_KEY[0], "AWS_SECRET_ACCESS_KEY": S3_KEY[1]}

    def url(self, prefix: str, **parameters: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"s3://bucket/{prefix}?endpoint_url={self.server.url('signed')}&{query}".rstrip("&")

    def test_keys_of_objects(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bytes"
            file.write_bytes(CONTENT[:70_000])
            for key in ("a b", "a+b", "a=b&c", "~tilde", "grüße/日本", "100%", "a%20b", "quote'\"", "(x)*!@$,;:",
                        "a//../b"):
                with self.subTest(key):
                    self.good(self.url("p+q r"), "put", key, file, env=self.keys)
                    line = self.good(self.url("p+q r"), "tail", key, 100_000, env=self.keys)[0]
                    self.assert_bytes(line, CONTENT[:70_000])
                    self.assertIn("/signed/bucket/p+q r/" + key, map(urllib.parse.unquote, self.server.stored))

    def test_files_and_tokens(self) -> None:
        self.server.stored["/signed/bucket/p/key"] = CONTENT
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "credentials"
            file.write_text(f"[other]\naws_access_key_id={S3_KEY[0]}\naws_secret_access_key={S3_KEY[1]}\n"
                            "aws_session_token=geheim\n")
            env = {"AWS_SHARED_CREDENTIALS_FILE": str(file), "AWS_REGION": "eu-central-1"}
            self.good(self.url("p", profile="other"), "read", "key", 0, 5, env=env)
        headers = self.server.log[-1][2]
        self.assertEqual(headers["x-amz-security-token"], "geheim")
        self.assertIn("/eu-central-1/s3/aws4_request", headers["authorization"])
        self.assertIn("x-amz-security-token", headers["authorization"])
        found = self.fault(self.url("p", profile="other"), "read", "key", 0, 5)
        self.assertEqual(found[0], ARGUMENT)
        self.assertIn("no profile 'other'", found[2])

    def test_reasons(self) -> None:
        region = {"x-amz-bucket-region": "eu-west-1"}
        for problem, text in (((301, "PermanentRedirect", region), "region=eu-west-1"),
                              ((307, "TemporaryRedirect", {"Location": "http://other/"}), "another region"),
                              ((400, "AuthorizationHeaderMalformed", region), "eu-west-1"),
                              ((403, "RequestTimeTooSkewed", {}), "clock"),
                              ((400, "ExpiredToken", {}), "expired")):
            self.server.problem = lambda *request, problem=problem: problem
            found = self.fault(self.url("p"), "read", "key", 0, 5, env=self.keys)
            self.assertEqual(found[:2], (FILE, EACCES))
            self.assertIn(problem[1], found[2])
            self.assertIn(text, found[2])
        self.server.problem = lambda *request: (503, "SlowDown", {})
        found = self.fault("--attempts", 2, self.url("p"), "read", "key", 0, 5, env=self.keys)
        self.assertIn("(sent 2 times)", found[2])

    def test_parts(self) -> None:
        url, path = self.url("p"), "/signed/bucket/p/key"
        upload = "uploadId=an%2Bid%20%26%20more"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bytes"
            file.write_bytes(CONTENT)
            # The first answers to both parts fail.
            busy = (503, "SlowDown", {})
            self.server.problem = lambda _, asked, count: busy if "part" in asked and count < 2 else None
            line = self.good(url, "put", "key", file, env=self.keys)[0]
            self.assertEqual(int(line["sent"]), len(CONTENT))
            self.assertEqual(self.server.stored, {path: CONTENT})
            self.assertEqual(self.server.counts[f"{path}?partNumber=2&{upload}"], 2)
            # An error that comes with 200; nothing is left.
            self.server.log.clear()
            joins = ("POST", f"{path}?{upload}")
            self.server.problem = lambda *request: (200, "InvalidPart", {}) if request[:2] == joins else None
            self.assertIn("InvalidPart", self.fault(url, "put", "key", file, env=self.keys)[2])
            self.assertEqual(self.server.log[-1][:2], ("DELETE", f"{path}?{upload}"))
            # A part that is refused.
            self.server.problem = lambda _, asked, count: (403, "AccessDenied", {}) if "part" in asked else None
            self.assertEqual(self.fault(url, "put", "key", file, env=self.keys)[1], EACCES)
            self.assertEqual(self.server.log[-1][:2], ("DELETE", f"{path}?{upload}"))

    def test_keys_of_a_container(self) -> None:
        self.server.stored["/signed/bucket/p/key"] = CONTENT
        env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": self.server.url("keys/x"),
               "AWS_CONTAINER_AUTHORIZATION_TOKEN": "geheim"}
        self.assert_bytes(self.good(self.url("p"), "read", "key", 0, 5, env=env)[0], CONTENT[:5])
        self.assertEqual(self.server.log[0][2]["authorization"], "geheim")
        self.assertEqual(self.fault(self.url("p"), "read", "key", 0, 5,
                                    env={**env, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "wrong"})[1], EACCES)

    def test_keys_of_a_machine(self) -> None:
        self.server.stored["/signed/bucket/p/key"] = CONTENT
        env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": self.server.url("keys"), "AWS_EC2_METADATA_DISABLED": "false"}
        self.assert_bytes(self.good(self.url("p"), "read", "key", 0, 5, env=env)[0], CONTENT[:5])
        self.assertEqual(self.server.log[1][2]["x-aws-ec2-metadata-token"], "geheim")


@unittest.skipIf(ThreadedMotoServer is None, "moto is not installed")
class Moto(FarTest):
    @classmethod
    def setUpClass(cls) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        cls.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        cls.server.start()
        cls.addClassCleanup(cls.server.stop)
        cls.endpoint = "http://{}:{}".format(*cls.server.get_host_and_port())
        settings = {"endpoint_url": cls.endpoint, "region_name": "us-east-1", "aws_access_key_id": "any",
                    "aws_secret_access_key": "any"}
        iam, sts, cls.s3 = (boto3.client(name, **settings) for name in ("iam", "sts", "s3"))
        iam.create_user(UserName="reader")
        policy = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'
        iam.put_user_policy(UserName="reader", PolicyName="all", PolicyDocument=policy)
        key = iam.create_access_key(UserName="reader")["AccessKey"]
        cls.keys = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
        role = iam.create_role(RoleName="role", AssumeRolePolicyDocument=policy)["Role"]["Arn"]
        iam.put_role_policy(RoleName="role", PolicyName="all", PolicyDocument=policy)
        session = sts.assume_role(RoleArn=role, RoleSessionName="session")["Credentials"]
        cls.session = {"AWS_ACCESS_KEY_ID": session["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": session["SecretAccessKey"],
                       "AWS_SESSION_TOKEN": session["SessionToken"]}
        cls.s3.create_bucket(Bucket="bucket")
        cls.s3.put_object(Bucket="bucket", Key="some folder/object", Body=CONTENT)
        # From now on moto checks signatures and permissions.
        connection = http.client.HTTPConnection(*cls.server.get_host_and_port())
        connection.request("POST", "/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"})
        if connection.getresponse().status != 200:
            raise RuntimeError("moto does not check signatures")
        connection.close()

    def url(self, prefix: str = "", **parameters: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in {"endpoint_url": self.endpoint, **parameters}.items())
        return f"s3://bucket{'/' + prefix if prefix else ''}?{query}"

    def test_reads(self) -> None:
        for keys in (self.keys, self.session):
            line = self.good(self.url("some folder"), "read", "object", 1000, 5000, env=keys)[0]
            self.assert_bytes(line, CONTENT[1000:6000])
        line = self.good(self.url("some folder"), "tail", "object", 5000, env=self.keys)[0]
        self.assert_bytes(line, CONTENT[-5000:])
        self.assertEqual(int(line["object_size"]), len(CONTENT))
        self.good(self.url("some folder"), "many", "object", 100, 5000, env=self.keys)

    def test_keys_of_objects(self) -> None:
        """Few of them, because moto verifies the signatures of decoded paths."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bytes"
            file.write_bytes(SMALL)
            for key in ("a b", "~tilde"):
                self.good(self.url("other folder"), "put", key, file, env=self.keys)
                self.assert_bytes(self.good(self.url("other folder"), "tail", key, 100, env=self.keys)[0], SMALL)

    def test_wrong_keys(self) -> None:
        for keys in ({**self.keys, "AWS_SECRET_ACCESS_KEY": "wrong"}, {**self.keys, "AWS_ACCESS_KEY_ID": "AKIAWRONG"},
                     {**self.session, "AWS_SESSION_TOKEN": "wrong"}):
            found = self.fault(self.url(), "read", "some folder/object", 0, 5, env=keys)
            self.assertEqual(found[:2], (FILE, EACCES))
            self.assertNotIn(keys["AWS_SECRET_ACCESS_KEY"], found[2])
        found = self.fault(self.url(anonymous="true"), "read", "some folder/object", 0, 5, env=self.keys)
        self.assertEqual(found[1], EACCES)
        self.assertIn("anonymous", found[2])
        found = self.fault(self.url(), "read", "some folder/object", 0, 5)
        self.assertIn("AWS_ACCESS_KEY_ID", found[2])
        self.assertIn("anonymous=true", found[2])

    def test_missing(self) -> None:
        found = self.fault(self.url(), "read", "no such key", 0, 5, env=self.keys)
        self.assertEqual(found[:2], (FILE, ENOENT))
        self.assertIn("NoSuchKey", found[2])
        self.assertEqual(self.fault(self.url().replace("bucket", "other"), "tail", "key", 5, env=self.keys)[1], ENOENT)

    def test_parts(self) -> None:
        content = CONTENT * 2 + bytes(1_943_040)  # 40 MiB
        with tempfile.TemporaryDirectory() as folder:
            file, back = Path(folder) / "bytes", Path(folder) / "back"
            file.write_bytes(content)
            line = self.good(self.url("parts"), "put", "a big one", file, env=self.keys)[0]
            self.assertEqual(int(line["sent"]), len(content))
            self.good("--out", back, self.url("parts"), "tail", "a big one", len(content), env=self.keys)
            self.assertEqual(back.read_bytes(), content)
            file.write_bytes(b"")
            self.good(self.url("parts"), "put", "empty", file, env=self.keys)
            other = self.url().replace("bucket", "other")
            self.assertEqual(self.fault(other, "put", "key", file, env=self.keys)[1], ENOENT)


if __name__ == "__main__":
    sys.exit(main(__doc__))
