"""A package index as PyPI is one: its last serial, its changelog in pages, the list of its projects. Reads only.

    {url}/pypi      XML-RPC: changelog_last_serial, changelog_since_serial
    {url}/simple/   the list of projects (PEP 691, or HTML), each with the serial of its last event; and their pages

A serial numbers an event, and only grows. An index answers at most so many events at once, so the changelog is asked
for again from the last one on. All of it is hostile: answers are bounded, XML is read as it comes, without DTDs, and
an event of another shape is passed over with a fault. An index that is busy (429, 503) is asked again a few times.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import NamedTuple, Self
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element
from xmlrpc.client import dumps

import msgspec
import requests
from defusedxml import DefusedXmlException, ElementTree

from warcmill import __version__
from warcmill.clients.feed_source import shown
from warcmill.errors import BadConfig, BadInput, Unavailable
from warcmill.formats.pypi import simple_page
from warcmill.formats.pypi.simple_page import SimplePage
from warcmill.model import Window

LARGEST = 256 << 20  # bytes of an answer: PyPI's list of projects has 40 MB, 50,000 events have 25
MOST_AT_ONCE = 200_000  # events of an answer
MOST_EVENTS = 20_000_000  # in one window; PyPI has had that many in fifteen years
_TIMES, _LONGEST_WAIT = 4, 120.0  # tries of a request; seconds
_PATIENCE = (10.0, 120.0)  # seconds: to connect, and between two pieces
_BUSY, _UNCHANGED, _GONE = frozenset([429, 502, 503, 504]), frozenset([304]), frozenset([404, 410])
_PACE = 0.1  # seconds before each page that is asked for
_WITHOUT = "; of an index without XML-RPC set [pypi] changes=simple"
_TOO_MANY = "TooManyRequests"  # in the fault that PyPI answers then, with 200
_LONGEST_TEXT, _DIGITS = 2_000, 19


class IndexEvent(NamedTuple):
    """An event of a changelog: the project, its release or '', what happened, its serial, and its time in seconds since
    1970; 0: unknown."""

    project: str
    version: str
    action: str
    serial: int
    time: int = 0


class IndexedProject(NamedTuple):
    """A project that an index lists, and the serial of its last event; 0: the index does not give it."""

    name: str
    serial: int


class ProjectList(NamedTuple):
    """All projects of an index; the last serial when the list was made, 0: the index does not give it; and its ETag."""

    serial: int
    projects: list[IndexedProject]
    etag: str = ""


class AskedPage(NamedTuple):
    """The answer of a project's page; None: it has not changed since, or it is gone."""

    page: SimplePage | None
    is_gone: bool = False


class _ProjectEntry(msgspec.Struct):
    name: str
    serial: object = msgspec.field(name="_last-serial", default=0)


class _Meta(msgspec.Struct):
    serial: object = msgspec.field(name="_last-serial", default=0)
    version: str = msgspec.field(name="api-version", default="1.0")


class _Projects(msgspec.Struct):
    projects: list[object]
    meta: _Meta = msgspec.field(default_factory=_Meta)


class IndexClient:
    """The index at a URL such as https://pypi.org. `contact`: a URL for its operators, in each request. `html`: its
    list and pages may be in HTML, too."""

    def __init__(
        self, url: str, contact: str, sleep: Callable[[float], object] = time.sleep, *, html: bool = False
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise BadConfig("[pypi] index", f"{shown(url)} is not an http or https URL of a package index")
        self.url, self._sleep = url.rstrip("/"), sleep
        self._simple = self.url if parts.path.rstrip("/").endswith(("/simple", "/+simple")) else f"{self.url}/simple"
        self._accepted = {"Accept": simple_page.accepted(html=html)}
        self._has_html = html
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["User-Agent"] = f"Warcmill/{__version__} (+{contact})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def page(self, project: str) -> str:
        """The URL of a project's page, by its normalised name."""
        return f"{self._simple}/{project}/"

    def last_serial(self) -> int:
        """The serial of the newest event."""
        found = next(iter(self._call("changelog_last_serial", depth=1)), None)
        if isinstance(found, int) and found >= 0:
            return found
        raise BadInput(shown(self._rpc), f"its last serial is not a whole number: {str(found)[:100]!a}")

    def changes(self, window: Window) -> Iterator[IndexEvent | BadInput]:
        """Yield the events of a window, in the order of the index; a fault for each row that is not an event.

        Unavailable if they end before the window does, as in an answer that lags: they would never be asked for again.
        """
        begin, number = window.after, 0
        while begin < window.up_to:
            newest, is_beyond = begin, False
            for event in (_event(value, self._rpc) for value in self._call("changelog_since_serial", begin, depth=2)):
                number += 1
                if number > MOST_EVENTS:
                    raise BadInput(shown(self._rpc), f"it has more than {MOST_EVENTS:,} events in {window}")
                if isinstance(event, BadInput):
                    yield event
                    continue
                if event.serial > window.up_to:  # of the next window: this one has ended
                    is_beyond = True
                    continue
                newest = max(newest, event.serial)
                if window.after < event.serial:
                    yield event
            if newest == begin and is_beyond:
                return
            if newest == begin:
                why = f"its changelog ends at serial {newest}, and its last serial is {window.up_to}: it lags, or its"
                raise Unavailable(shown(self._rpc), f"{why} newest events cannot be read; nothing is asked for")
            begin = newest

    def projects(self, note: Callable[[BadInput], object] = lambda _fault: None) -> ProjectList:
        """All projects, as the index names them. BadInput for an invalid list; `note` gets each row that is invalid."""
        found = self.changed_projects("", note)
        assert found is not None, "no validator was sent"
        return found

    def changed_projects(self, etag: str, note: Callable[[BadInput], object]) -> ProjectList | None:
        """The same; None for a list that still has an ETag."""
        place, also = f"{self._simple}/", _UNCHANGED if etag else frozenset[int]()
        with self._asked("GET", place, {**self._accepted, **_conditions(etag, "")}, also) as answer:
            if answer.status_code in also:
                return None
            data, headers = _Bounded(answer, place).read(), answer.headers
        try:
            is_html = self._has_html and simple_page.is_html(headers.get("Content-Type", ""))
            raw = simple_page.project_list(data, place) if is_html else json.loads(data)
            found = msgspec.convert(raw, _Projects)  # msgspec's own reader refuses all of it for one NaN
        except (ValueError, RecursionError) as error:
            raise BadInput(shown(place), f"it is not a list of projects in JSON (PEP 691): {error}") from error
        if found.meta.version.partition(".")[0] != "1":
            why = f"it is of version {found.meta.version[:40]!a}, and 1 is known (PEP 691)"
            raise BadInput(shown(place), why)
        rows = [*filter(None, (_listed(row, shown(place), note) for row in found.projects))]
        if found.projects and not rows:
            raise BadInput(shown(place), "it is not a list of projects in JSON (PEP 691): no row names one")
        serial = _serial(found.meta.serial, shown(place), note)
        text = headers.get("X-PyPI-Last-Serial", "")
        return ProjectList(serial or (int(text) if _is_number(text) else 0), rows, headers.get("ETag", ""))

    def project_page(self, project: str, etag: str | None = None, modified: str | None = None) -> AskedPage:
        """The page of a project, by its normalised name, if it has changed since it had these validators. BadInput for
        one that is invalid."""
        place, also = self.page(project), _GONE | (_UNCHANGED if etag or modified else frozenset())
        self._sleep(_PACE)
        with self._asked("GET", place, {**self._accepted, **_conditions(etag, modified)}, also) as answer:
            if answer.status_code in also:
                return AskedPage(None, answer.status_code in _GONE)
            data = _Bounded(answer, place, simple_page.LARGEST).read()
        kind = answer.headers.get("Content-Type", "") if self._has_html else simple_page.MEDIA_TYPE
        page = simple_page.read(data, place, kind)
        if page.project != project:
            raise BadInput(shown(place), f"it is the page of {page.project}")
        return AskedPage(page)

    @property
    def _rpc(self) -> str:
        return f"{self.url}/pypi"

    def _call(self, method: str, *words: int, depth: int) -> list[object]:
        """The values of an answer; asked again where the index answers that there are too many calls."""
        body = dumps(words, method).encode()
        for number in range(1, _TIMES + 1):
            with self._asked("POST", self._rpc, {"Content-Type": "text/xml"}, body=body) as answer:
                try:
                    return _values(_Bounded(answer, self._rpc), self._rpc, depth)
                except _Fault as fault:
                    why = fault.why
            if _TOO_MANY not in why or number == _TIMES:
                break
            self._sleep(2.0**number)
        raise Unavailable(shown(self._rpc), f"{method} is answered with a fault: {why}")

    @contextmanager
    def _asked(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        also: Set[int] = frozenset(),
        *,
        body: bytes | None = None,
    ) -> Iterator[requests.Response]:
        """One request, answered with 200, or `also` these. Unavailable if it is not, after some tries."""
        for number in range(1, _TIMES + 1):
            try:
                answer = self._session.request(
                    method, url, headers=headers, data=body, timeout=_PATIENCE, stream=True, allow_redirects=False
                )
            except requests.RequestException as error:
                why, asked = type(error).__name__, 0.0
            else:
                if answer.status_code == requests.codes.ok or answer.status_code in also:
                    with answer:
                        try:
                            yield answer
                        except (requests.RequestException, OSError) as error:
                            raise Unavailable(shown(url), f"its answer broke off: {type(error).__name__}") from error
                    return
                answer.close()
                why, asked = f"it was answered {answer.status_code}", _seconds(answer.headers.get("Retry-After", ""))
                if answer.status_code not in _BUSY:
                    raise Unavailable(shown(url), why + (_WITHOUT if url == self._rpc else ""))
            if number == _TIMES or asked > _LONGEST_WAIT:
                raise Unavailable(shown(url), f"{why}, {number} times" if number > 1 else why)
            self._sleep(asked or 2.0**number)
        raise AssertionError("the last try returns or raises")


class _Bounded:
    """The decoded body of an answer, of so many bytes at most."""

    def __init__(self, answer: requests.Response, where: str, most: int = 0) -> None:
        self._pieces, self._where = answer.iter_content(1 << 16), where
        self._most = most or LARGEST
        self._held, self._left = bytearray(), self._most

    def read(self, size: int = -1, /) -> bytes:
        while size < 0 or len(self._held) < size:
            piece = next(self._pieces, b"")
            if not piece:
                break
            self._left -= len(piece)
            if self._left < 0:
                raise BadInput(shown(self._where), f"it has more than {self._most:,} bytes")
            self._held += piece
        found = bytes(self._held if size < 0 else self._held[:size])
        del self._held[: len(found)]
        return found


class _Fault(Exception):
    """A fault that an index answers."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _values(stream: _Bounded, where: str, depth: int) -> list[object]:
    """The values of an XML-RPC answer: 1 is the one that it has, 2 those of the array that that is.

    BadInput for what is not an answer.
    """
    inside, is_fault, root, found = 0, False, "", list[object]()
    try:
        for event, element in ElementTree.iterparse(stream, events=("start", "end"), forbid_dtd=True):
            root = root or element.tag
            if event == "start":
                inside += element.tag == "value"
                is_fault = is_fault or element.tag == "fault"
            elif element.tag == "fault":
                raise _Fault(" ".join(" ".join(element.itertext()).split())[:_LONGEST_TEXT])
            elif element.tag == "value":
                if inside == depth and not is_fault:
                    found.append(_value(element))
                    element.clear()
                inside -= 1
            if len(found) > MOST_AT_ONCE:
                raise BadInput(shown(where), f"it answers with more than {MOST_AT_ONCE:,} values at once")
    except (ElementTree.ParseError, DefusedXmlException, RecursionError) as error:
        raise BadInput(shown(where), f"its answer is not XML-RPC: {str(error) or type(error).__name__}") from error
    if root != "methodResponse":
        raise BadInput(shown(where), f"its answer is not XML-RPC, but {root[:_LONGEST_TEXT]!r}")
    return found


def _value(element: Element) -> object:
    """A value: a text, a whole number, None, or a list of them; any other is None."""
    inner = next(iter(element), None)
    if inner is None:
        return element.text or ""
    text = inner.text or ""
    if inner.tag == "string":
        return text
    if inner.tag in ("int", "i4", "i8"):
        return int(text) if _is_number(text) else None
    data = inner.find("data") if inner.tag == "array" else None
    return None if data is None else [_value(one) for one in data]


def _listed(row: object, where: str, note: Callable[[BadInput], object]) -> IndexedProject | None:
    """The project of a row of the list."""
    try:
        entry = msgspec.convert(row, _ProjectEntry)
    except msgspec.ValidationError as error:
        note(BadInput(where, f"a row that is not a project: {str(row)[:200]!a} ({error})"))
        return None
    return IndexedProject(entry.name, _serial(entry.serial, f"{where}, {entry.name[:100]!a}", note))


def _serial(value: object, where: str, note: Callable[[BadInput], object]) -> int:
    """A serial; 0 for what is not one, or is not there, and a note of the first."""
    if type(value) is int and 0 <= value < 10**_DIGITS:
        return value
    if value is not None:
        note(BadInput(where, f"its serial is not a whole number: {str(value)[:100]!a}"))
    return 0


def _conditions(etag: str | None, modified: str | None) -> dict[str, str]:
    """The headers by which a page is sent only if it has changed (RFC 9110, 13.1.2): an ETag wins over a time."""
    if etag:
        return {"If-None-Match": etag}
    return {"If-Modified-Since": modified} if modified else {}


def _event(value: object, where: str) -> IndexEvent | BadInput:
    match value:
        case [str() as project, str() | None as version, time, str() as action, int() as serial] if (
            project and serial > 0
        ):
            if max(len(project), len(version or ""), len(action)) <= _LONGEST_TEXT:
                known = time if isinstance(time, int) and time > 0 else 0
                return IndexEvent(project, version or "", action, serial, known)
    return BadInput(shown(where), f"an event that is none: {str(value)[:200]!a}")


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) < _DIGITS


def _seconds(text: str) -> float:
    """The seconds of a Retry-After that has them; 0 for a date, and without one."""
    return float(text) if _is_number(text) and text[0] != "-" else 0.0
