"""An S3 server in memory that does as it should, but for one lie: no server can be found that tells them."""

from __future__ import annotations

import hashlib
import secrets
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

SUM, WRITER = "x-amz-checksum-sha256", "x-amz-meta-writer"


@dataclass
class LyingS3:
    """Its objects by key, each with its headers; and the lie that it tells: a word that the handler asks for."""

    lie: str
    objects: dict[str, tuple[bytes, dict[str, str]]] = field(default_factory=dict)
    uploads: dict[str, tuple[str, dict[str, str], dict[int, bytes]]] = field(default_factory=dict)
    headers_seen: list[str] = field(default_factory=list)
    endpoint: str = ""


def sha256(data: bytes) -> str:
    return b64encode(hashlib.sha256(data).digest()).decode()


class Handler(BaseHTTPRequestHandler):
    """One request. Keys are below the one bucket `archive`."""

    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, *_: object) -> None:
        """Nothing."""

    @property
    def s3(self) -> LyingS3:
        return self.server.s3  # type: ignore[no-any-return]

    def setup(self) -> None:
        super().setup()
        self.key, self.words = "", {}

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        parts = urlsplit(self.path)
        self.key = unquote(parts.path).removeprefix("/archive").lstrip("/")
        self.words = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        self.s3.headers_seen.append(str(self.headers))
        return True

    def answer(self, status: int, data: bytes = b"", headers: dict[str, str] | None = None, length: int = -1) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) if length < 0 else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        if length > len(data):
            self.close_connection = True

    def refuse(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode())

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"] or 0))

    def taken(self) -> bool:
        return self.headers["If-None-Match"] == "*" and self.key in self.s3.objects

    def do_PUT(self) -> None:
        if self.headers["x-amz-copy-source"]:
            return self.copy(unquote(self.headers["x-amz-copy-source"]).removeprefix("archive/"))
        data, kept = self.body(), self.headers[SUM]
        if self.s3.lie == "knows no conditions" and self.headers["If-None-Match"]:
            return self.refuse(501, "NotImplemented")
        if kept != sha256(data) and self.s3.lie != "takes wrong bytes":
            return self.refuse(400, "BadDigest")
        tag = {"ETag": f'"{hashlib.md5(data).hexdigest()}"'}
        if self.s3.lie != "keeps no digest":
            tag[SUM] = kept
        if "uploadId" in self.words:
            self.s3.uploads[self.words["uploadId"]][2][int(self.words["partNumber"])] = data
            return self.answer(200, b"", tag)
        if self.taken() and self.s3.lie != "lets the second win":
            return self.refuse(412, "PreconditionFailed")
        stored = b"other" if self.s3.lie == "stores other bytes" and data == b"first\n" else data
        self.s3.objects[self.key] = stored, {**tag, WRITER: self.headers[WRITER] or ""}
        return self.answer(200, b"", tag)

    def copy(self, source: str) -> None:
        data, headers = self.s3.objects[source]
        self.s3.objects[self.key] = (data[:5] if self.s3.lie == "copies short" else data), headers
        self.answer(200, b"<R><ETag>x</ETag></R>")

    def do_POST(self) -> None:
        data = self.body()
        if "uploads" in self.words:
            upload = secrets.token_hex(8)
            self.s3.uploads[upload] = self.key, {WRITER: self.headers[WRITER] or ""}, {}
            text = f"<R><Bucket>archive</Bucket><Key>{escape(self.key)}</Key><UploadId>{upload}</UploadId></R>"
            return self.answer(200, text.encode())
        if self.taken() and self.s3.lie != "lets a second upload win":
            return self.refuse(412, "PreconditionFailed")
        _, headers, parts = self.s3.uploads.pop(self.words["uploadId"])
        assert ElementTree.fromstring(data).tag.endswith("CompleteMultipartUpload")
        ordered = [parts[number] for number in sorted(parts)]
        whole = sha256(b"".join(b64decode(sha256(part)) for part in ordered))
        kept = {SUM: f"{whole}-{len(ordered)}", "ETag": f'"{secrets.token_hex(8)}-1"'}
        joined = b"".join(ordered[:-1] if self.s3.lie == "loses a part" else ordered)
        if self.s3.lie == "loses a part":
            kept[SUM] = sha256(b"less") + "-1"
        self.s3.objects[self.key] = joined, {**headers, **kept}
        return self.answer(200, b"<R><ETag>x</ETag></R>")

    def do_HEAD(self) -> None:
        if self.path.strip("/") == "archive":
            return self.answer(200)
        if self.key not in self.s3.objects:
            return self.answer(404)
        data, headers = self.s3.objects[self.key]
        return self.answer(200, b"", {**headers, "Last-Modified": formatdate(0, usegmt=True)}, len(data))

    def do_GET(self) -> None:
        if "list-type" in self.words:
            return self.list()
        if self.key not in self.s3.objects or self.s3.lie == "lists what is gone":
            return self.refuse(404, "NoSuchKey")
        data, headers = self.s3.objects[self.key]
        start = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if self.s3.lie == "ignores ranges":
            return self.answer(200, data, headers)
        if self.s3.lie == "ends early" and len(data) - start > 5:
            shown = {**headers, "Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
            return self.answer(206, data[start : start + 5], shown, len(data) - start)
        shown = {**headers, "Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
        return self.answer(206, data[start:], shown)

    def list(self) -> None:
        stored = [] if self.s3.lie == "lists late" else sorted(self.s3.objects)
        keys = [key for key in stored if key.startswith(self.words.get("prefix", ""))]
        endless = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.s3.objects[key][0])}</Size>"
            f"<ETag>{escape(self.s3.objects[key][1]['ETag'])}</ETag>"
            "<LastModified>1970-01-01T00:00:00Z</LastModified></Contents>"
            for key in keys
        )
        end = endless if self.s3.lie == "lists without end" else "<IsTruncated>false</IsTruncated>"
        if self.s3.lie == "answers no XML":
            return self.answer(200, b"<<<not XML")
        count = "" if self.s3.lie == "counts no keys" else f"<KeyCount>{len(keys)}</KeyCount>"
        return self.answer(200, f"<R>{end}{count}{found}</R>".encode())

    def do_DELETE(self) -> None:
        if "uploadId" in self.words:
            self.s3.uploads.pop(self.words["uploadId"], None)
        else:
            self.s3.objects.pop(self.key, None)
        self.answer(204)


@contextmanager
def lying(lie: str) -> Iterator[LyingS3]:
    """A server that tells this lie, on a port of its own."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.s3 = LyingS3(lie, endpoint=f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.s3  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()
