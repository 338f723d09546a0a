"""What far_servers.py needs for S3: a Python with moto, its first user, and signed requests."""

from __future__ import annotations

import datetime
import functools
import hashlib
import hmac
import json
import re
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request

Keys = tuple[str, str]  # access key and secret


@functools.cache
def python_with_moto() -> str:
    """This interpreter, or the first of the path, if it has moto and Flask; "" if neither has."""
    for python in (sys.executable, shutil.which("python3")):
        if python and subprocess.run([python, "-c", "import flask, moto.s3, moto.server"], capture_output=True,
                                     timeout=60).returncode == 0:
            return python
    return ""


def set_up(http: urllib.request.OpenerDirector, port: int, region: str, bucket: str) -> Keys:
    """Makes a user who may do everything with S3, and the bucket. From then on moto verifies signatures."""
    root = f"http://127.0.0.1:{port}"

    def ask_iam(action: str, **fields: str) -> str:
        data = urllib.parse.urlencode({"Action": action, "Version": "2010-05-08", **fields}).encode()
        headers = {"Authorization": f"AWS4-HMAC-SHA256 Credential=none/20260101/{region}/iam/aws4_request"}
        request = urllib.request.Request(root, data, headers)
        with http.open(request, timeout=30) as answer:
            return str(answer.read().decode())

    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
    ask_iam("CreateUser", UserName="reader")
    ask_iam("PutUserPolicy", UserName="reader", PolicyName="all", PolicyDocument=json.dumps(policy))
    answer = ask_iam("CreateAccessKey", UserName="reader")
    found = [re.search(rf"<{name}>([^<]+)</{name}>", answer) for name in ("AccessKeyId", "SecretAccessKey")]
    key, secret = (match[1] for match in found if match)
    verify = urllib.request.Request(f"{root}/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"})
    with http.open(verify, timeout=30):
        pass
    send(http, port, region, (key, secret), "PUT", f"/{bucket}", "", b"")
    return key, secret


def keys_in(listing: bytes) -> list[str]:
    return sorted(urllib.parse.unquote(key) for key in re.findall("<Key>([^<]*)</Key>", listing.decode()))


def send(http: urllib.request.OpenerDirector, port: int, region: str, keys: Keys, method: str, path: str, query: str,
         data: bytes) -> bytes:
    """Sends a request to S3 with a signature of version 4, and returns the body of the answer."""
    key, secret = keys
    host = f"127.0.0.1:{port}"
    time = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    body_hash = hashlib.sha256(data).hexdigest()
    headers = {"host": host, "x-amz-content-sha256": body_hash, "x-amz-date": time}
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    canonical = "\n".join([method, urllib.parse.quote(path), query, lines, names, body_hash])
    scope = f"{time[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", time, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    signing = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        signing = hmac.new(signing, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(signing, text.encode(), hashlib.sha256).hexdigest()
    headers["authorization"] = f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, " \
                               f"Signature={signature}"
    headers["content-type"] = "application/octet-stream"
    url = f"http://{host}{urllib.parse.quote(path)}" + (f"?{query}" if query else "")
    request = urllib.request.Request(url, data if method == "PUT" else None, headers, method=method)
    with http.open(request, timeout=30) as answer:
        return bytes(answer.read())
