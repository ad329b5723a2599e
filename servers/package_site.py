"""The HTTP side of the local package index: pages, files and XML-RPC, as the real index answers. Reads the journal.

Pages by PEP 503, 629, 691, 700 and 714; files with ranges. `python -m servers.package_site FOLDER PORT FILES_PORT`
serves until it is ended. Each request is a line of `requests.jsonl` in the folder.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import threading
import time
import xmlrpc.client
import zipfile
from collections.abc import Mapping
from email.message import Message
from functools import cache
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from packaging.version import InvalidVersion, Version

from servers.package_journal import CREATOR, HostedFile, HostedProject, IndexFault, IndexJournal, RangeFault, normalized
from servers.pins import HOST

API_VERSION = "1.4"
MOST_ROWS = 50_000
REQUESTS = "requests.jsonl"
HTML, HTML_V1, JSON_V1 = "text/html", "application/vnd.pypi.simple.v1+html", "application/vnd.pypi.simple.v1+json"
# As the real index has it: it closes its pages to robots, and its documents offer them to mirrors.
ROBOTS = """User-agent: *
Disallow: /simple/
Disallow: /packages/
Disallow: /*/*.atom
Disallow: /*/*.rss
Disallow: /pypi/*/json
"""
TOO_MANY = "HTTPTooManyRequests: The action could not be performed because there were too many requests by the client."
Answer = tuple[int, dict[str, str], bytes]


class IndexSite:
    """Answers requests from the journal of `folder`; safe for several threads."""

    def __init__(self, folder: Path, files_url: str) -> None:
        self._journal = IndexJournal(folder)
        self._files_url = files_url
        self._log = folder / REQUESTS
        self._lock = threading.Lock()

    def fault(self, path: str) -> IndexFault | None:
        """The fault that this request meets."""
        with self._lock:
            self._journal.refresh()
            return self._journal.take_fault(path)

    def get(self, path: str, headers: Message) -> Answer:
        """Answer a GET."""
        with self._lock:
            self._journal.refresh()
            words = [unquote(word) for word in path.split("/")[1:]]
            if words[0] == "simple":
                return self._simple(words[1:], headers)
            if words[0] == "pypi" and words[-1] == "json" and len(words) == 3:
                return self._project_json(words[1])
        if words[0] == "packages":
            return self._file(path, headers)
        if path == "/robots.txt":
            return HTTPStatus.OK, {"Content-Type": "text/plain"}, ROBOTS.encode()
        return _not_found()

    def call(self, body: bytes) -> bytes:
        """Answer a call by XML-RPC."""
        called = xmlrpc.client.loads(body.decode(), use_builtin_types=True)
        parameters: Any = called[0]
        method = called[1]
        with self._lock:
            self._journal.refresh()
            found = self._journal.take_fault(f"xmlrpc:{method}")
            if found is not None:
                result: Any = xmlrpc.client.Fault(-32500, found.fault)
            elif method == "changelog_last_serial":
                reported = self._journal.reported_serial
                result = (self._journal.serial if reported is None else reported,)
            elif method == "changelog_since_serial":
                result = (self._rows(*parameters),)
            elif method == "list_packages_with_serial":
                result = ({one.name: one.serial for one in self._journal.projects.values()},)
            else:
                result = xmlrpc.client.Fault(-32601, "server error; requested method not found")
        return xmlrpc.client.dumps(result, methodresponse=True, allow_none=True).encode()

    def note(self, line: Mapping[str, Any]) -> None:
        """Add a request to the log."""
        with self._lock, self._log.open("a") as log:
            log.write(json.dumps(line) + "\n")

    def _rows(self, serial: int) -> list[Any]:
        """The rows after `serial`: at most 50,000. Their serials have no hole here, so a row's place is its serial."""
        start = max(0, serial)
        return [list(row) for row in self._journal.rows[start : start + MOST_ROWS]]

    def _simple(self, words: list[str], headers: Message) -> Answer:
        kind = _accepted(headers.get("Accept", ""))
        if words in ([], [""]):
            if not words:
                return _moved("/simple/")
            serial = self._journal.serial
            page = _index_json(self._journal) if kind == JSON_V1 else _index_html(self._journal)
            return self._page(page, kind, serial, headers)
        name = words[0]
        if len(words) > 2 or words[1:] not in ([], [""]):
            return _not_found()
        if name != normalized(name) or len(words) == 1:
            return _moved(f"/simple/{normalized(name)}/")
        project = self._journal.page(name)
        if project is None:
            return _not_found()
        page = _json(self._detail(project)) if kind == JSON_V1 else self._detail_html(project)
        return self._page(page, kind, project.serial, headers)

    def _page(self, body: bytes, kind: str, serial: int, headers: Message) -> Answer:
        fields = {
            "Content-Type": kind if kind == JSON_V1 else f"{kind}; charset=UTF-8",
            "X-PyPI-Last-Serial": str(serial),
            "Vary": "Accept, Accept-Encoding",
            "Cache-Control": "max-age=600, public",
            "ETag": f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"',
        }
        if headers.get("If-None-Match") == fields["ETag"]:
            return HTTPStatus.NOT_MODIFIED, fields, b""
        if "gzip" in headers.get("Accept-Encoding", ""):
            fields["Content-Encoding"] = "gzip"
            body = gzip.compress(body, mtime=0)
        return HTTPStatus.OK, fields, body

    def _detail(self, project: HostedProject) -> dict[str, Any]:
        files = sorted(project.listed, key=lambda one: (_order(one.version), one.filename))
        return {
            "meta": {"api-version": API_VERSION, "_last-serial": project.serial},
            "name": normalized(project.name),
            "project-status": _status(project),
            "versions": list(dict.fromkeys(one.version for one in files)),
            "files": [self._file_row(project, one) for one in files],
        }

    def _file_row(self, project: HostedProject, one: HostedFile) -> dict[str, Any]:
        core = {"sha256": one.metadata_sha256} if one.metadata_sha256 else False
        reason = project.yanked.get(one.version)
        return {
            "filename": one.filename,
            "url": self._url(one),
            "hashes": {"sha256": one.sha256},
            "requires-python": one.requires_python or None,
            "size": one.size,
            "upload-time": _iso(one),
            "yanked": False if reason is None else reason or True,
            "data-dist-info-metadata": core,
            "core-metadata": core,
            "provenance": None,
        }

    def _url(self, one: HostedFile) -> str:
        return f"{self._files_url}/packages/{one.place}/{quote(one.filename)}"

    def _detail_html(self, project: HostedProject) -> bytes:
        detail, links = self._detail(project), []
        for one in detail["files"]:
            fields = [f'href="{escape(one["url"])}#sha256={one["hashes"]["sha256"]}"']
            if one["requires-python"]:
                fields.append(f'data-requires-python="{escape(one["requires-python"])}"')
            if one["yanked"]:
                fields.append(f'data-yanked="{escape(one["yanked"]) if isinstance(one["yanked"], str) else ""}"')
            if one["core-metadata"]:
                fields += [f'data-{word}="sha256={one["core-metadata"]["sha256"]}"' for word in METADATA_FIELDS]
            links.append(f"    <a {' '.join(fields)}>{escape(one['filename'])}</a><br />\n")
        tags = {"status": "pypi:project-status", "reason": "pypi:project-status-reason"}
        head = "".join(
            f'<meta name="{tags[name]}" content="{escape(value)}">\n    ' for name, value in _status(project).items()
        )
        return _html(f"Links for {detail['name']}", "".join(links), project.serial, head, heading=True)

    def _project_json(self, name: str) -> Answer:
        """The page that bandersnatch reads: fields that it or its like need, named as the real one names them."""
        project = self._journal.page(name)
        if project is None or not project.files:
            return _not_found()
        releases: dict[str, list[dict[str, Any]]] = {}
        for one in sorted(project.files.values(), key=lambda one: (_order(one.version), one.filename)):
            releases.setdefault(one.version, []).append(self._release_row(project, one))
        newest = list(releases)[-1]
        requires_python = releases[newest][0]["requires_python"]
        info = {"name": project.name, "version": newest, "requires_python": requires_python, "classifiers": []}
        info |= {"summary": "", "yanked": newest in project.yanked, "license": None, "requires_dist": None}
        roles = {"organization": None, "roles": [{"role": "Owner", "user": CREATOR}]}
        page = {"info": info, "urls": releases[newest], "releases": releases, "vulnerabilities": [], "ownership": roles}
        fields = {"Content-Type": "application/json", "X-PyPI-Last-Serial": str(project.serial)}
        return HTTPStatus.OK, fields, _json({**page, "last_serial": project.serial})

    def _release_row(self, project: HostedProject, one: HostedFile) -> dict[str, Any]:
        kind = "bdist_wheel" if one.filename.endswith(".whl") else "sdist"
        return {
            "filename": one.filename,
            "packagetype": "bdist_egg" if one.filename.endswith(".egg") else kind,
            "python_version": tag_of(one.filename),
            "has_sig": False,
            "comment_text": "",
            "md5_digest": one.md5,
            "digests": {"md5": one.md5, "sha256": one.sha256, "blake2b_256": one.blake2b},
            "core-metadata": {"sha256": one.metadata_sha256} if one.metadata_sha256 else False,
            "size": one.size,
            "downloads": -1,
            "upload_time": _iso(one)[:19],
            "upload_time_iso_8601": _iso(one),
            "url": self._url(one),
            "requires_python": one.requires_python or None,
            "yanked": one.version in project.yanked,
            "yanked_reason": project.yanked.get(one.version) or None,
        }

    def _file(self, path: str, headers: Message) -> Answer:
        place, _, filename = unquote(path).removeprefix("/packages/").rpartition("/")
        wanted = filename.removesuffix(".metadata")
        with self._lock:
            found = [(name, one) for name, project in self._journal.projects.items() for one in project.files.values()]
            faults = dict(self._journal.ranges)
        project, one = next((it for it in found if (it[1].place, it[1].filename) == (place, wanted)), ("", None))
        if one is None or (wanted != filename and not one.metadata_sha256):
            return _not_found()
        body = Path(one.source).read_bytes()
        if wanted != filename:
            return file_answer(metadata_in(one.source), headers)
        return file_answer(body, headers, faults.get(project))


METADATA_FIELDS = ("dist-info-metadata", "core-metadata")


def tag_of(filename: str) -> str:
    """The `python_version` that an upload names: a wheel's tag, `source`, or an egg's version."""
    if filename.endswith(".whl"):
        return filename.split("-")[-3]
    return filename.removesuffix(".egg").rpartition("-py")[2] if filename.endswith(".egg") else "source"


@cache
def metadata_in(wheel: str) -> bytes:
    """The METADATA of a wheel."""
    with zipfile.ZipFile(wheel) as packed:
        (name,) = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        return packed.read(name)


def servers(folder: Path, port: int, files_port: int) -> list[ThreadingHTTPServer]:
    """Servers of pages and of files, which another host has in the real world; not yet running."""
    site = IndexSite(folder, f"http://{HOST}:{files_port}")
    handler = type("Handler", (_Handler,), {"site": site})
    return [_Server((HOST, number), handler) for number in (port, files_port)]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *where: Any) -> None:
        """Print no trace of a client that is gone, as one that was killed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*where)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    site: IndexSite

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self._serve(path, lambda: self.site.get(path, self.headers))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fields = {"Content-Type": "text/xml; charset=UTF-8"}
        path = urlsplit(self.path).path
        known = path.rstrip("/") == "/pypi"
        self._serve(path, lambda: (HTTPStatus.OK, fields, self.site.call(body)) if known else _not_found())

    def log_message(self, *_: object) -> None:
        """Print no line for a request: `requests.jsonl` has it."""

    def _serve(self, path: str, answer: Any) -> None:
        began = time.time()
        fault = self.site.fault(path)
        if fault is not None and fault.seconds:
            time.sleep(fault.seconds)  # the fault: a late answer
        if fault is not None and fault.status:
            status, fields, body = fault.status, dict(fault.headers), fault.body.encode()
        else:
            status, fields, body = answer()
        cut = fault.cut if fault is not None else -1
        sent = body if cut < 0 else body[:cut]
        self.send_response(status)
        for name, value in {**fields, "Content-Length": str(len(body))}.items():
            if status != HTTPStatus.NOT_MODIFIED or name != "Content-Length":
                self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(sent)
        self.close_connection |= len(sent) < len(body)
        line = {"method": self.command, "path": path, "range": self.headers.get("Range", ""), "status": int(status)}
        line |= {"agent": self.headers.get("User-Agent", ""), "accept": self.headers.get("Accept", "")}
        self.site.note({**line, "sent": len(sent), "began": began, "ended": time.time()})


def file_answer(body: bytes, headers: Message, fault: RangeFault | None = None) -> Answer:
    """A file, or the range of it that is asked for: one, as the real index has it (RFC 9110, 14.2)."""
    fields = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes"}
    fields["ETag"] = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
    if headers.get("If-None-Match") == fields["ETag"]:
        return HTTPStatus.NOT_MODIFIED, fields, b""
    asked = headers.get("Range", "")
    unit, _, spec = asked.partition("=")
    first, dash, last = spec.partition("-")
    if unit != "bytes" or not dash or "," in spec or not (first or last) or not (first + last).isdigit():
        return HTTPStatus.OK, fields, body
    if fault and fault.status != HTTPStatus.PARTIAL_CONTENT and (fault.others or not first):
        named = {"Content-Range": f"bytes */{len(body)}"} if fault.status == 416 else {}
        return fault.status, {"Content-Type": "text/plain", **named}, b"Unsupported client Range"
    if fault and not first:
        first = "0"
    start = int(first) if first else max(0, len(body) - int(last))
    end = min(int(last), len(body) - 1) if first and last else len(body) - 1
    if start > end:
        fields["Content-Range"] = f"bytes */{len(body)}"
        return HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, fields, b""
    fields["Content-Range"] = f"bytes {start}-{end}/{len(body)}"
    return HTTPStatus.PARTIAL_CONTENT, fields, body[start : end + 1]


def _accepted(accept: str) -> str:
    """The kind of page that a client prefers; HTML where it accepts none of them, as the real index answers."""
    weights: dict[str, float] = {}
    for part in accept.split(","):
        kind, *parameters = [word.strip() for word in part.split(";")]
        given = [word.removeprefix("q=") for word in parameters if word.startswith("q=")]
        weights[kind.lower()] = float(given[0]) if given else 1.0
    offers = (HTML, HTML_V1, JSON_V1)

    def weight(kind: str) -> float:
        ranges = (kind, f"{kind.partition('/')[0]}/*", "*/*")
        return next((weights[one] for one in ranges if one in weights), 0.0)

    return max(offers, key=weight)  # the first of equals


def _index_json(journal: IndexJournal) -> bytes:
    named = sorted(journal.projects.items())
    rows = [{"name": one.name, "_last-serial": one.serial} for _, one in named]
    return _json({"meta": {"api-version": API_VERSION, "_last-serial": journal.serial}, "projects": rows})


def _index_html(journal: IndexJournal) -> bytes:
    named = sorted(journal.projects.items())
    links = [f'    <a href="/simple/{name}/">{escape(one.name)}</a>\n' for name, one in named]
    return _html("Simple index", "".join(links), journal.serial)


def _html(title: str, links: str, serial: int, head: str = "", *, heading: bool = False) -> bytes:
    heading_line = f"    <h1>{escape(title)}</h1>\n" if heading else ""
    return f"""<!DOCTYPE html>
<html lang="en">
  <head>
    <meta name="pypi:repository-version" content="{API_VERSION}">
    {head}<title>{escape(title)}</title>
  </head>
  <body>
{heading_line}{links}  </body>
</html>
<!--SERIAL {serial}-->""".encode()


def _json(page: Any) -> bytes:
    return json.dumps(page, separators=(",", ":")).encode() + b"\n"


def _order(version: str) -> tuple[bool, Version | str]:
    """The key that versions sort by: those that no PEP 440 knows come first, as text."""
    try:
        return True, Version(version)
    except InvalidVersion:
        return False, version


def _status(project: HostedProject) -> dict[str, str]:
    if project.is_quarantined:
        return {"status": "quarantined"}
    return {"status": project.status, **({"reason": project.reason} if project.reason else {})}


def _iso(one: HostedFile) -> str:
    return one.time.removesuffix("+00:00") + "Z"


def _moved(path: str) -> Answer:
    return HTTPStatus.MOVED_PERMANENTLY, {"Location": path, "Content-Type": HTML}, b""


def _not_found() -> Answer:
    return HTTPStatus.NOT_FOUND, {"Content-Type": f"{HTML}; charset=UTF-8"}, b"<h1>404 Not Found</h1>\n"


if __name__ == "__main__":
    first, *others = servers(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    for other in others:
        threading.Thread(target=other.serve_forever, daemon=True).start()
    first.serve_forever()
