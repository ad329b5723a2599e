"""A double of Solr on loopback, for runs that are broken at every call: the tests of Solr itself ask a real one.

It answers what `clients/solr.py` asks: documents are posted and deleted by id or by the value of a field, and queries
see them after a commit. It refuses no document, and has no schema.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Documents = dict[str, dict[str, Any]]  # by id
_TERM = re.compile(r"\{!terms? f=([^}]+)\}(.*)", re.DOTALL)


class Double:
    """`kept` has what was posted, `shown` what queries see, by collection. `on_kept` is called before an answer."""

    def __init__(self) -> None:
        self.kept: dict[str, Documents] = {}
        self.shown: dict[str, Documents] = {}
        self.on_kept: Callable[[], None] = lambda: None
        handler = type("Handler", (_Request,), {"double": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def update(self, collection: str, query: dict[str, list[str]], sent: Any) -> dict[str, Any]:
        """Take documents, or a deletion; commit."""
        kept = self.kept.setdefault(collection, {})
        if isinstance(sent, list):
            kept |= {one["id"]: one for one in sent}
        elif isinstance(gone := sent.get("delete"), list):
            for one in gone:
                kept.pop(one, None)
        elif gone:
            for one in [*_found(kept, [gone["query"]])]:
                del kept[one["id"]]
        if "commit" in query:
            self.shown[collection] = dict(kept)
        self.on_kept()
        return {}

    def select(self, collection: str, query: dict[str, list[str]]) -> dict[str, Any]:
        """Find documents by the values of fields; count them, and the values of another field."""
        asked = [one for one in (*query["q"], *query.get("fq", ())) if one != "*:*"]
        found = [*_found(self.shown.get(collection, {}), asked)]
        answer: dict[str, Any] = {"response": {"numFound": len(found), "docs": found[: int(query["rows"][0])]}}
        if field := query.get("facet.field"):
            counts = Counter(one[field[0]] for one in found if field[0] in one)
            answer["facet_counts"] = {"facet_fields": {field[0]: counts}}
        return answer


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    double: Double

    def do_POST(self) -> None:
        parts, body = urlsplit(self.path), self.rfile.read(int(self.headers["Content-Length"]))
        _, _, collection, action = parts.path.split("/")
        if action == "update":
            answer = self.double.update(unquote(collection), parse_qs(parts.query), json.loads(body))
        else:
            answer = self.double.select(unquote(collection), parse_qs(body.decode()))
        data = json.dumps({"responseHeader": {"status": 0}, **answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def _found(documents: Documents, asked: list[str]) -> Iterator[dict[str, Any]]:
    """The documents in which every field has its value, or the ID is one of those that are asked for."""
    terms = [match.groups() for one in asked if (match := _TERM.fullmatch(one))]
    assert len(terms) == len(asked), asked
    for document in documents.values():
        if all(document.get(field) in (value.split(",") if field == "id" else (value,)) for field, value in terms):
            yield document


@contextmanager
def serving() -> Iterator[Double]:
    """A double that answers."""
    double = Double()
    thread = threading.Thread(target=double.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield double
    finally:
        double.server.shutdown()
        double.server.server_close()
        thread.join()
