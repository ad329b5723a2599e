"""A double of OutbackCDX on loopback, over a real socket: it keeps the contract of a live one, with its traps.

- It makes its own keys, which are not always ours (`%e9`). The key that is sent counts for nothing.
- Its index has one record for a key and second (index version 3), or also by WARC and offset (version 5).
- A POST is kept whole or not at all. A bad line, or in version 3 a field that it does not know, refuses all.
- `Added` and `Deleted` count lines, not records. A deletion by one line deletes what has its key and second.
- A digest with its scheme is kept mangled.

`fault` has it answer as no sound server does: see `FAULTS`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from warcmill.formats.index.urlkey import urlkey

FAULTS = ("html", "lie", "killed before", "killed after", "cut", "loading", "drip")
_KNOWN = {"url", "mime", "status", "digest", "length", "offset", "filename", "redirect", "robotflags"}
_INFERRED = {"method", "requestBody"}
Key = tuple[str, ...]


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    double: Double

    def do_GET(self) -> None:
        self.double.get(self)

    def do_POST(self) -> None:
        self.double.post(self)

    def log_message(self, *_: object) -> None:
        pass


class Double:
    """The double: `collections` has what it keeps, by collection and key. From the POST `fault_at` on it fails."""

    def __init__(self, index_version: int = 3) -> None:
        self.index_version = index_version
        self.collections: dict[str, dict[Key, dict[str, str]]] = {}
        self.posts: list[tuple[str, int]] = []
        self.fault, self.fault_at = "", 0
        self.on_kept: Callable[[], None] = lambda: None  # what it does before it answers that a POST is kept
        handler = type("Handler", (_Request,), {"double": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def get(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if self.fault:
            self._fail(request)
        elif parts.path == "/api/collections":
            _answer(request, 200, json.dumps(sorted(self.collections)))
        elif parts.path[1:] not in self.collections:
            _answer(request, 404, f"Collection {parts.path[1:]} does not exist")
        else:
            _answer(request, 200, "".join(self._found(parts.path[1:], query)))

    def _found(self, collection: str, query: dict[str, str]) -> Iterator[str]:
        assert query["matchType"] == "exact"
        key = _key({field: query[field] for field in ("url", "method", "requestBody") if field in query})
        for (known, second, *_), fields in sorted(self.collections[collection].items()):
            if known == key and query["from"] <= second <= query["to"]:
                row = {**fields, "timestamp": second}
                yield " ".join(row[field] for field in query["fl"].split(",")) + "\n"

    def post(self, request: BaseHTTPRequestHandler) -> None:
        collection, _, action = urlsplit(request.path).path[1:].partition("/")
        body = request.rfile.read(int(request.headers["Content-Length"]))
        lines = body.decode().splitlines()
        self.posts.append((action or "add", len(lines)))
        fails = self.fault and len(self.posts) > self.fault_at
        if fails and self.fault != "killed after":
            self._fail(request, len(lines))
            return
        if action and collection not in self.collections:
            _answer(request, 404, f"Collection {collection} does not exist")
            return
        records = {}
        for line in lines:
            try:
                records |= self._record(line)
            except (ValueError, KeyError, IndexError) as error:
                _answer(request, 400, f"At line: {line}\njava.lang.RuntimeException: {error}\n\tat outbackcdx.Webapp")
                return
        kept = self.collections.setdefault(collection, {})
        for key, fields in records.items():
            if action:
                kept.pop(key, None)
            else:
                kept[key] = fields
        self.on_kept()
        if fails:
            self._fail(request)
        else:
            _answer(request, 200, f"{'Deleted' if action else 'Added'} {len(lines)} records\n")

    def _record(self, line: str) -> dict[Key, dict[str, str]]:
        _, second, text = line.split(" ", 2)
        fields = json.loads(text)
        if len(second) > 14 or not second.isdigit() or " " in fields["url"]:
            raise ValueError("not a line")
        if self.index_version < 5 and not fields.keys() <= _KNOWN | _INFERRED:
            raise ValueError("Can't encode capture with extra (CDXJ) fields in index version < 5")
        if "digest" in fields:
            fields["digest"] = fields["digest"].replace("sha1:", "SHA") if ":" in fields["digest"] else fields["digest"]
        key = (_key(fields), second.ljust(14, "0"))
        return {(*key, fields["filename"], fields["offset"]) if self.index_version > 3 else key: fields}

    def _fail(self, request: BaseHTTPRequestHandler, lines: int = 0) -> None:
        if self.fault == "html":
            _answer(request, 200, "<html><title>It works!</title></html>", "text/html")
        elif self.fault == "lie":
            _answer(request, 200, f"Added {lines + 1} records\n")
        elif self.fault == "loading":
            _answer(request, 503, "loading")
        elif self.fault == "cut":
            _answer(request, 200, "20161019234428 a.warc.gz 1\nwarning: output may be incomplete, error occurred\n")
        elif self.fault == "drip":
            self._drip(request)
        else:  # killed
            request.close_connection = True
            request.connection.close()

    def _drip(self, request: BaseHTTPRequestHandler) -> None:
        """An answer that never ends, though it always says something."""
        request.send_response(200)
        request.end_headers()
        request.close_connection = True
        with suppress(OSError):  # the client gave up
            while not self.server_is_down.wait(0.02):
                request.wfile.write(b"A")

    server_is_down = threading.Event()


def _key(fields: dict[str, str]) -> str:
    """Its own key: as ours but for one detail, as is so of a live one."""
    url = fields["url"]
    if fields.get("method") in ("POST", "PUT"):
        url += f"{'&' if '?' in url else '?'}__wb_method={fields['method']}&{fields.get('requestBody', '')}"
    return unquote(urlkey(url), "latin-1") if "%e9" in url.lower() else urlkey(url)


def _answer(request: BaseHTTPRequestHandler, status: int, text: str, content_type: str = "text/plain") -> None:
    body = text.encode()
    with suppress(OSError):  # the client gave up
        request.send_response(status)
        request.send_header("Content-Type", content_type)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


@contextmanager
def serving(index_version: int = 3) -> Iterator[Double]:
    """A double that answers."""
    made = Double(index_version)
    made.server_is_down = threading.Event()
    made.server.daemon_threads = True
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.server_is_down.set()
        made.server.shutdown()
        thread.join()
        made.server.server_close()
