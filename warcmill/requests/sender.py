"""The sender of results: it reads results.jsonl of a job's launches, and posts each as a message. Writes to the bus.

    results-sent.json       {"after": STAGE, "last": ID, "launch": LAUNCH, "offset": OFFSET}
    results-damaged.jsonl   {"found": TIME, "offset": OFFSET, "path": PATH, "why": WHY}, of lines that it passed over

It continues from that place, through the stages of a launch, then through the next launch. A message is sent at least
once: the place is kept after the bus has it, and a repeat has the same `id`. It reads only results that the crawl has
committed, as a kill would cut off others. One process sends; others wait for its end. A worker sends its own.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any, Final, NamedTuple, Self, cast

from warcmill import layout
from warcmill.base import clock, disk
from warcmill.clients.bus import Bus, TooLong
from warcmill.crawl import durable
from warcmill.crawl.books.files import present, recall, recall_from
from warcmill.crawl.control import control
from warcmill.crawl.extract import html
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.crawl.launch import job_log
from warcmill.crawl.launch.folders import CONTROL, Places
from warcmill.crawl.launch.worker import Worker
from warcmill.crawl.uri import canonical
from warcmill.errors import BadInput, NotReady, Unavailable, WarcmillError
from warcmill.formats.text import charset
from warcmill.formats.text.document import is_binary
from warcmill.layout import RESULTS_LOG, split_log_name
from warcmill.model import Json, Launch
from warcmill.requests.serving.results import ITEM, NOTICE, PAGE, PURGED
from warcmill.requests.settings import RequestsPlace, Topics
from warcmill.scutils.log_factory import LogObject
from warcmill.stores import Store

_log = logging.getLogger(__name__)
PLACE: Final = "results-sent.json"
DAMAGED: Final = "results-damaged.jsonl"
BASE64: Final = "base64"
MOST: Final = 100  # results that are sent together
SENT: Final = "Sent page to Kafka"
_LOGGED: Final = ("appid", "attrs", "crawlid", "encoding", "response_url", "timestamp", "url")
_LOOK, _AGAIN = 0.25, 2.0  # seconds between two looks, and until what did not answer is tried again
_MOST_BYTES: Final = 8 << 20
_TEXT: Final = ("text/", "application/json", "application/javascript", "application/xml", "application/xhtml+xml")
_MEDIA: Final = ("image/", "audio/", "video/", "font/")
PLAIN: Final = "cp1252"
"""The encoding of a body that is ASCII and declares no encoding."""

_LARGE: Final = ("body", "links", "response_headers", "request_headers")
"""The values that a message can be without, in the order in which they are left out."""


class _Spot(NamedTuple):
    """A place in the results of a job: `after` is the stage before that of the file, '' for a launch's first; `last` is
    the id of the result that ends at `offset`."""

    launch: str = ""
    after: str = ""
    offset: int = 0
    last: str = ""


class _File(NamedTuple):
    """A file of results; the one that is written now is of the stage `final`, and gets another name later."""

    launch: str
    stage: str
    path: Path


class ResultSource(NamedTuple):
    """Where results are: the `places` of their job, a folder with the names of launches (`launches`), and the one where
    the sender keeps its place. `committed` returns up to where the file of a launch that is written now may be read, by
    that file's size."""

    places: Places
    launches: Path
    kept: Path
    committed: Callable[[str, int], int]

    @classmethod
    def of_job(cls, place: RequestsPlace, places: Places) -> Self:
        """The results of the job's own process."""

        def committed(launch: str, size: int) -> int:
            try:
                state = cast("Mapping[str, Any]", control.ask(places.state(place.job) / CONTROL, "state"))
            except NotReady:  # nobody crawls: a launch that was killed is put in order first
                last = job_log.last(places.job(place.job))
                return 0 if last and last.launch == launch and not last.ended else size
            return min(size, int(state.get("results", 0))) if state["launch"] == launch else size

        return cls(places, places.job(place.job), place.spool.parent, committed)

    @classmethod
    def of_worker(cls, worker: Worker) -> Self:
        """The results of a worker."""
        places, job = worker.places, worker.places.job_name
        return cls(places, places.output / "logs" / job, places.state(job), worker.committed)


class ResultSender:
    """Sends results, at each `step`, until `close`. Without a `bus` it opens the place's.

    A WARC that has left the crawler's disk is read from the store, if it is given.
    """

    def __init__(
        self,
        place: RequestsPlace,
        source: ResultSource,
        bus: Bus | None = None,
        open_store: Callable[[], Store] | None = None,
    ) -> None:
        self._open_store, self._store = open_store, cast("Store | None", None)
        values = place.values()
        self._job, self._source, self._places, self._bus = place.job, source, source.places, bus or place.open_bus()
        self._topics, self._encodes = Topics.of(values), bool(values["KAFKA_BASE_64_ENCODE"])
        self._path = source.kept / PLACE
        self._lock: int | None = None
        self._spot: _Spot | None = None
        self._pages: list[dict[str, Json]] = []  # of the last step, as its log line has them

    def run(self, ended: Event, log: LogObject, *, to_end: bool = False) -> None:
        """Send results until the end is asked for; `to_end`: and then those that are left. While bus, disk or crawl do
        not answer it tries again; Unavailable for what is left then. It names an invalid line, and passes over
        it. Another fault is logged and raised: nobody else would notice that no result is sent."""
        try:
            is_last = False
            while not is_last:
                is_last = ended.is_set()
                try:
                    sent = self.step()
                except Unavailable as error:
                    if is_last and to_end:
                        raise
                    self._store = None
                    log.error(f"{error}; it is tried again")
                    ended.wait(_AGAIN)
                else:
                    for fields in self._pages:
                        log.info(SENT, extra=fields)
                    self._pages = []
                    is_last = is_last and not (to_end and sent)
                    if not sent:
                        ended.wait(_LOOK)
        except WarcmillError as error:
            log.critical(f"{error}; no result is sent until that is corrected")
            raise
        finally:
            self.close()

    def step(self) -> int:
        """Send some results; return how many. 0: nothing is left, or another process sends. Unavailable: the bus, a
        disk or the crawl does not answer, try again."""
        if not self._owns():
            return 0
        try:
            if self._spot is None:
                self._spot = self._checked(_read_spot(self._path))
            return self._send_after(self._spot)
        except FileNotFoundError:  # the crawl has renamed a log meanwhile
            return 0
        except OSError as error:
            raise Unavailable(f"the results of {self._job}", str(error)) from error

    def close(self) -> None:
        """Leave the bus, and let another process send."""
        self._bus.close()
        if self._lock is not None:
            os.close(self._lock)
        self._lock = self._spot = None

    def _owns(self) -> bool:
        if self._lock is not None:
            return True
        path = self._path.with_suffix(".lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise Unavailable(str(path), disk.reason(error, path)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._lock = descriptor
        return True

    def _send_after(self, spot: _Spot) -> int:
        before = _File(spot.launch, spot.after, Path())
        for file in self._files(spot):
            is_same = before.launch == file.launch
            offset = spot.offset if is_same and before.stage == spot.after else 0
            size = file.path.stat().st_size
            end = self._source.committed(file.launch, size) if size > offset and file.stage == "final" else size
            sent, after = self._send_some(file, offset, end)
            if sent:
                self._spot = _Spot(file.launch, before.stage if is_same else "", after, sent[-1])
                durable.replace(self._path, json.dumps(self._spot._asdict(), sort_keys=True).encode("ascii") + b"\n")
                return len(sent)
            if end < size:  # its rest is sent before a later file
                return 0
            before = file
        return 0

    def _files(self, spot: _Spot) -> list[_File]:
        """The files from a place on, in their order."""
        found = []
        for folder in self._source.launches.iterdir() if self._source.launches.exists() else ():
            try:
                launch = Launch.parse(self._job, folder.name)
            except BadInput:
                continue
            logs = self._places.folders(launch).logs
            if launch.id < spot.launch or not logs.is_dir():
                continue
            names = ((split_log_name(path.name), path) for path in logs.iterdir())
            found += [_File(launch.id, stage, path) for (name, stage), path in names if name == RESULTS_LOG]
        return sorted(file for file in found if (file.launch, file.stage) > (spot.launch, spot.after))

    def _send_some(self, file: _File, offset: int, end: int) -> tuple[list[str], int]:
        """Send results from an offset on, up to `end`; return their ids, and the offset behind them."""
        launch = Launch.parse(self._job, file.launch)
        sent: list[str] = []
        pages: list[dict[str, Json]] = []
        by_topic: dict[str, list[tuple[int, dict[str, Json]]]] = {}
        damaged: list[tuple[int, str]] = []  # offsets, and what is wrong there
        size = 0
        for line, after in _lines(file.path, offset, end):
            try:
                result = _read_result(line)
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                damaged.append((offset, f"the line is no result: {error!r:.200}"))
            else:
                message = self._message(result, launch)
                body = message.get("body")
                size += len(body) if isinstance(body, str) else 0
                for topic in self._topics_of(result["kind"], str(message.get("appid", ""))):
                    by_topic.setdefault(topic, []).append((offset, message))
                if result["kind"] in (PAGE, ITEM):
                    fields: dict[str, Json] = {name: message[name] for name in _LOGGED if name in message}
                    pages.append({**fields, "action": "ack", "success": True})
            sent.append(_id_of(line))
            offset = after
            if len(sent) >= MOST or size > _MOST_BYTES:
                break
        for topic, messages in by_topic.items():
            damaged += self._append(topic, messages)
        if damaged:
            self._name(file.path, damaged)
        self._pages = pages
        return sent, offset

    def _name(self, path: Path, damaged: Sequence[tuple[int, str]]) -> None:
        """Name lines that are passed over, durable before that: in the log, and for `warcmill request test`."""
        names = self._path.with_name(DAMAGED)
        data = b""
        for offset, why in damaged:
            _log.critical("%s: byte %d: %s; it is passed over", path, offset, why)
            named = {"found": clock.now(), "offset": offset, "path": str(path), "why": why}
            data += json.dumps(named, sort_keys=True).encode("ascii") + b"\n"
        try:
            durable.replace(names, (names.read_bytes() if names.exists() else b"") + data)
        except OSError as error:
            raise Unavailable(str(names), disk.reason(error, names)) from error

    def _checked(self, spot: _Spot) -> _Spot:
        """A kept place, or the beginning of its file, if another result than the last one ends there."""
        file = next(iter(self._files(spot)), None)
        if not spot.offset or file is None or file.launch != spot.launch:
            return spot
        last = b""
        for line, after in _lines(file.path, 0, file.path.stat().st_size):
            last = line
            if after >= spot.offset:
                break
        if after == spot.offset and _id_of(last) == spot.last:
            return spot
        _log.warning("%s: it is not the file that was read before; all of it is sent again", file.path)
        return spot._replace(offset=0)

    def _topics_of(self, kind: str, appid: str) -> list[str]:
        if kind == PURGED:
            return []
        return self._topics.outbound(appid) if kind == NOTICE else self._topics.crawled(appid)

    def _message(self, result: Mapping[str, Any], launch: Launch) -> dict[str, Json]:
        """The message of a result; a page's has its body, from its record."""
        place: dict[str, Json] = {"name": result["warc"], "offset": result["offset"]}
        message = {**result["value"], "id": result["id"], "warc": place if result["warc"] else None}
        if result["kind"] != PAGE:
            return message
        try:
            uri = canonical(message["url"])  # where it was asked for by another form of it
            answer = self._answer(uri, launch, result["warc"], result["offset"])
        except (BadInput, NotReady) as error:
            _log.warning("%s: %s is sent without its body", error, message["url"])
            return {**message, **dict.fromkeys(("body", "encoding")), "links": _links(message["links"], {})}
        try:
            data, note = exchange.document(answer, FetchLimits())
        finally:
            answer.close()
        headers = dict(message["response_headers"])
        if not note:  # as Scrapy, which has undone it
            headers.pop("Content-Encoding", None)
        mime = answer.fields.first("content-type")
        texts = html.texts(data, uri, mime) if message["links"] else {}
        body, encoding = _body(data, mime, encodes=self._encodes)
        links = _links(message["links"], texts)
        return {**message, "body": body, "encoding": encoding, "links": links, "response_headers": headers}

    def _answer(self, url: str, launch: Launch, name: str, offset: int) -> Exchange:
        """The answer in a record, of the crawler's disk or of the store. BadInput or NotReady if neither has it."""
        scratch = self._places.scratch(self._job)
        if path := present(self._places.folders(launch).warcs / name):
            return recall(url, path, offset, scratch)
        if self._open_store is None:
            raise BadInput(name, "it is not there any more")
        stored = layout.stored_path("warcs", launch, name)
        self._store = self._store or self._open_store()
        with self._store.open(stored, offset) as stream:
            return recall_from(url, stream, f"store:{stored}", offset, scratch)

    def _append(self, topic: str, messages: Sequence[tuple[int, dict[str, Json]]]) -> Iterator[tuple[int, str]]:
        """Append messages; one that is too long for the bus without what it can be without. Yields those that it does
        not take at all, with the reason."""
        try:
            self._bus.append(topic, [_json(message) for _, message in messages])
            return
        except TooLong:
            pass
        for offset, message in messages:
            for number in range(len(_LARGE) + 1):
                try:
                    self._bus.append(topic, [_json({**message, **dict.fromkeys(_LARGE[:number])})])
                    break
                except TooLong as error:
                    if number == len(_LARGE):
                        yield offset, f"the bus does not take it: {error}"
                        break
                    _log.warning("%s: %s is sent without its %s", message["id"], error, _LARGE[number])


def _body(data: bytes, mime: str, *, encodes: bool) -> tuple[str, str]:
    """The body of a page as text, and its encoding, as Scrapy names it; base64 of a body that is not text. `encodes`:
    base64 of any body, whose charset `encoding` then names."""
    if not _is_text(data, mime.partition(";")[0].strip().lower()):
        return base64.b64encode(data).decode("ascii"), BASE64
    name = charset.of_links(data, mime)
    if name.startswith("utf-16-") and charset.label_of(mime.encode()).lower() == "utf-16":
        name = "utf-16"  # its mark says which
    is_plain = data.isascii() and charset.of_links(data + b"\xff", mime) != name
    encoding = PLAIN if is_plain else name
    return (base64.b64encode(data).decode("ascii") if encodes else data.decode(name, "replace")), encoding


def _is_text(data: bytes, kind: str) -> bool:
    """True for a body declared as text, and for one that is text whatever it is declared as."""
    try:
        data.decode()
        is_utf8 = True
    except UnicodeDecodeError:
        is_utf8 = False
    if kind.startswith(_TEXT) or kind.endswith(("+xml", "+json")):
        return is_utf8 or not is_binary(data)
    may_be = is_utf8 or not kind
    return not data or (may_be and not kind.startswith(_MEDIA) and not data.startswith(b"%PDF") and not is_binary(data))


def _links(addresses: Sequence[str], texts: Mapping[str, str]) -> list[Json]:
    return [{"text": texts.get(one, ""), "url": one} for one in addresses]


def _json(message: Mapping[str, Json]) -> bytes:
    return json.dumps(message, sort_keys=True, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _read_result(line: bytes) -> Mapping[str, Any]:
    """The result in a line, with all that a message takes from it. ValueError, KeyError or TypeError: it is invalid."""
    found = json.loads(line)
    value, is_page = found["value"], found["kind"] == PAGE
    types: list[tuple[object, type]] = [(found["id"], str), (found["kind"], str), (value, dict)]
    if is_page:
        types += [(value["url"], str), (value["links"], list), (value["response_headers"], dict)]
    if is_page or found["warc"] is not None:
        types += [(found["warc"], str), (found["offset"], int)]
    if not all(isinstance(one, kind) for one, kind in types):
        raise TypeError("a value is of another type")
    return cast("Mapping[str, Any]", found)


def _id_of(line: bytes) -> str:
    """The id of a result; of an invalid line its digest."""
    try:
        return str(json.loads(line)["id"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return hashlib.sha256(line).hexdigest()


def damaged_lines(place: RequestsPlace) -> list[str]:
    """Return the lines of results that were passed over, each as `PATH: byte OFFSET: WHY`, and once."""
    path = place.spool.parent / DAMAGED
    try:
        found = [json.loads(line) for line in path.read_bytes().splitlines()]
        return [*dict.fromkeys(f"{one['path']}: byte {one['offset']}: {one['why']}" for one in found)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error
    except (ValueError, KeyError, TypeError) as error:
        why = f"it is not a list of damaged lines ({error!r}); look at it, and remove it"
        raise BadInput(str(path), why) from error


def _lines(path: Path, offset: int, end: int) -> Iterator[tuple[bytes, int]]:
    """The whole lines of a file between two offsets, each with the offset behind it."""
    with path.open("rb") as stream:
        stream.seek(offset)
        for line in stream:
            offset += len(line)
            if offset > end or not line.endswith(b"\n"):
                return
            yield line, offset


def _read_spot(path: Path) -> _Spot:
    try:
        found = json.loads(path.read_bytes())
        return _Spot(str(found["launch"]), str(found["after"]), int(found["offset"]), str(found["last"]))
    except FileNotFoundError:
        return _Spot()
    except (ValueError, KeyError, TypeError) as error:
        why = f"it is not a place in results ({error!r}); move it away, and all results are sent again"
        raise BadInput(str(path), why) from error
