"""The files of a launch: its WARCs, crawl.log and the journal, and the register of how long each is. Writes to disk.

A launch that serves requests has results.jsonl besides. After a kill they are cut to what the register knows, and
nothing is thrown away: what came after it is set aside.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import BinaryIO, NamedTuple

from warcmill.crawl.durable import Appended, cut, set_aside, sync_folder, unavailable
from warcmill.crawl.fetch.answer import AnswerReader, AnswerSpool, mime_of
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.frontier import journal
from warcmill.crawl.frontier.register import Register
from warcmill.errors import BadInput, Conflict, Mismatch, NotReady
from warcmill.formats.index.cdxj import DOM
from warcmill.formats.logs.bounds import BoundTally
from warcmill.formats.warc import header as warc
from warcmill.formats.warc.reader import MemberReader
from warcmill.formats.warc.records import Record
from warcmill.formats.warc.writer import OPEN, RecordPlace, WarcFiles, close_name
from warcmill.layout import RESULTS_LOG, final_name, is_warc_name, split_log_name

CRAWL_LOG = "crawl.log"
LOGS = (CRAWL_LOG, journal.NAME)
_ALL = (*LOGS, RESULTS_LOG)
SCRIPT_VALUE, _CONCURRENT = "renderScriptValue", b"WARC-Concurrent-To"


class Folders(NamedTuple):
    """The folders that a launch has its WARCs and its logs in; `earlier`: of the WARCs of the launches that it
    continues."""

    warcs: Path
    logs: Path
    earlier: tuple[Path, ...] = ()


class BookFiles:
    """The open files of a launch. Its calls are made on the thread of the register, one after the other.

    `results`: results.jsonl is one of them; it stays so until the launch ends.
    """

    def __init__(self, folders: Folders, register: Register, warcs: WarcFiles, *, results: bool = False) -> None:
        self._folders, self._register, self._warcs = folders, register, warcs
        has_some = results or any(path.name.startswith(RESULTS_LOG) for path in folders.logs.iterdir())
        self._names = _ALL if has_some else LOGS
        self.left_out = register.left_out()
        self._open_logs()

    def append(self, records: Sequence[Record]) -> tuple[RecordPlace, ...]:
        """Append records to a WARC; return their places. Mismatch for one that does not fit its header."""
        return tuple(self._warcs.append(records)) if records else ()

    def end_group(
        self, log: Sequence[bytes], lines: Sequence[str], places: Sequence[RecordPlace], results: Sequence[bytes] = ()
    ) -> None:
        """Make records durable, then results and lines of crawl.log, then those of the journal; note the lengths of
        all. NotReady for a result where the launch has no log of them."""
        self._warcs.sync()
        if results:
            if RESULTS_LOG not in self._logs:
                raise NotReady(RESULTS_LOG, "the launch has none, as its job had no 'results_log = true' at its begin")
            self._append(RESULTS_LOG, results)
        if log:
            self._append(CRAWL_LOG, log)
        self.note(lines, places)

    def keep_places(self, places: Mapping[bytes, RecordPlace], gone: Collection[bytes] = ()) -> None:
        """Note where the records of URIs are, by their digests, so that `find` finds them; it finds the `gone` no
        more."""
        self._register.keep_places(places, gone)

    def leave_out(self, tallies: Sequence[BoundTally]) -> BoundTally:
        """Add what bounds have left out to all that they have in this launch, `left_out`; return that."""
        if tallies:
            self.left_out = reduce(BoundTally.joined, tallies, self.left_out)
            self._register.keep_left_out(self.left_out)
        return self.left_out

    def find(self, uri: bytes) -> tuple[Path, int] | None:
        """Return the WARC that has the record of a URI, and where it begins there; None without one, or when its WARC
        was taken away."""
        place = self._register.place(uri)
        if place is None:
            return None
        found = (present(folder / place.name) for folder in (self._folders.warcs, *self._folders.earlier))
        path = next(filter(None, found), None)
        return (path, place.offset) if path else None

    def note(self, lines: Sequence[str], places: Sequence[RecordPlace] = ()) -> None:
        """Make lines of the journal durable, and note the lengths of the files with these records."""
        warcs = {place.name: place.offset + place.length for place in places}
        if self._warcs.name:
            warcs[self._warcs.name] = self._warcs.length  # with its warcinfo alone, too
        lengths = {name: log.length for name, log in self._logs.items() if name != journal.NAME}
        self._append(journal.NAME, [journal.group(lines, {**lengths, **warcs}, self._register.next_group())])
        self._register.put("warcs", warcs)
        self._note_logs()

    def rotate(self, stage: str) -> None:
        """Close the WARC, and rename the logs for a stage; new ones begin. Conflict when there is one of this stage."""
        for target in (self._folders.logs / f"{name}.{stage}" for name in self._names):
            if target.exists():  # its lines and those of the next would be mixed
                raise Conflict(str(target), "is there already; nothing was renamed. A stage's logs are rotated once")
        self._close()
        self._register.begin_rotation(stage)
        _finish_rotation(self._register, self._folders.logs, stage)
        self._open_logs()

    @property
    def results_length(self) -> int:
        """The length of results.jsonl in bytes; 0 where there is none."""
        return self._logs[RESULTS_LOG].length if RESULTS_LOG in self._logs else 0

    @property
    def journal_length(self) -> int:
        """The length of the journal in bytes."""
        return self._logs[journal.NAME].length

    def close(self) -> None:
        """Close all; the WARC gets its final name."""
        self._close()
        self._register.close()

    def _append(self, name: str, lines: Sequence[bytes]) -> None:
        self._logs[name].append(b"".join(lines))
        self._logs[name].sync()

    def _open_logs(self) -> None:
        self._logs = {name: Appended(self._folders.logs / name) for name in self._names}
        self._note_logs()

    def _note_logs(self) -> None:
        self._register.put("logs", {name: log.length for name, log in self._logs.items()})

    def _close(self) -> None:
        self._warcs.sync()
        self._warcs.close()
        for log in self._logs.values():
            log.close()


def recover(register: Register, folders: Folders) -> list[str]:
    """Cut a launch's files to their lengths, close its WARCs, and set aside what the register does not know; return
    what was cut and set aside.

    Mismatch when a file is shorter than known, or gone. Safe to repeat.
    """
    if stage := register.rotating:
        _finish_rotation(register, folders.logs, stage)
    known, done = register.files(), []
    for name, folder, length in known:
        path = _present(getattr(folders, folder) / name, length)
        if path and (orphan := cut(path, length)):
            done.append(f"{path.name} was cut to {length} bytes, what came after is in {orphan.name}")
        if path and path.name == name + OPEN:
            close_name(path.parent, name)
    names = {file.name for file in known if file.folder == "warcs"}
    for path in sorted(folders.warcs.iterdir()):
        if is_warc_name(path.name) and final_name(path.name) not in names:
            orphan = set_aside(path, final_name(path.name))
            done.append(f"{path.name} holds nothing that the books know, it is {orphan.name} now")
    return done


def present(path: Path) -> Path | None:
    """Return the file under its final name, or as `.open`; None when there is none."""
    return next((name for name in (path, path.with_name(path.name + OPEN)) if name.exists()), None)


def _present(path: Path, length: int) -> Path | None:
    """Return a file; None when there is none, and none is needed."""
    file = present(path)
    if length and file is None:
        raise Mismatch(f"the length of {path} by the crawl's books", length, "no file")
    return file


def complete_rotation(logs: Path) -> None:
    """Rename the logs for their newest stage, where a kill kept them from it and the register is lost."""
    stages = {stage for name, stage in map(split_log_name, os.listdir(logs)) if name in _ALL and stage != "final"}
    if stages:
        _rename(logs, max(stages))


def _finish_rotation(register: Register, logs: Path, stage: str) -> None:
    """Rename the logs for a stage, and note their names. Safe to repeat."""
    _rename(logs, stage)
    register.end_rotation({name: f"{name}.{stage}" for name in _ALL})


def _rename(logs: Path, stage: str) -> None:
    """Rename the logs for a stage, as far as that was not done."""
    for name in _ALL:
        source, target = logs / name, logs / f"{name}.{stage}"
        try:
            if source.exists() and not target.exists():
                os.rename(source, target)
        except OSError as error:
            raise unavailable(source, error) from error
    sync_folder(logs)


def recall(uri: str, path: Path, offset: int, scratch: Path, *, with_request: bool = False) -> Exchange:
    """Read the answer to a GET of a URI from its WARC, as it was when it came; `close` it. A long one is in a scratch
    file again. BadInput when no record of it is there. `with_request`: it has its request as well."""
    try:
        with _opened(path) as stream:
            stream.seek(offset)
            reader = MemberReader(stream, str(path))
            answer = _recalled(uri, reader, offset, scratch)
            try:
                return answer._replace(sent=_request(reader)) if with_request else answer
            except BaseException:
                answer.close()
                raise
    except OSError as error:
        raise unavailable(path, error) from error


def recall_from(uri: str, stream: BinaryIO, name: str, offset: int, scratch: Path) -> Exchange:
    """Read the answer like `recall`, from a stream that is at its record; `name` and `offset` are for messages."""
    return _recalled(uri, MemberReader(stream, name), offset, scratch)


class RenderedRecord(NamedTuple):
    """A page as a browser had it, its type, and the value of its script as JSON; '' without one."""

    dom: bytes
    content_type: str
    script_value: str = ""


def recall_rendered(uri: str, path: Path, offset: int) -> RenderedRecord | None:
    """Read how a browser had the page whose answer is at this offset, from the records after it; None if none has
    opened it."""
    found, value = None, ""
    try:
        with _opened(path) as stream:
            stream.seek(offset)
            reader = MemberReader(stream, str(path))
            fields = answer = _begin(reader)
            while fields and (fields is answer or fields.get(_CONCURRENT) == answer.get(warc.RECORD_ID)):
                block = b"".join(map(bytes, reader.take(warc.content_length(fields, reader.bad))))
                if fields.get(warc.TYPE) == b"metadata":
                    lines = (line.partition(b": ") for line in block.split(b"\r\n"))
                    value = next((text.decode() for name, _, text in lines if name == SCRIPT_VALUE.encode()), "")
                elif fields.get(b"WARC-Target-URI") == f"{DOM}{uri}".encode():
                    found = RenderedRecord(block, fields.get(b"Content-Type", b"").decode())
                if not reader.end_after(0, warc.END_OF_RECORD):
                    raise reader.bad("a record does not end where it should")
                fields = _begin(reader)
    except OSError as error:
        raise unavailable(path, error) from error
    return found and found._replace(script_value=value)


def _recalled(uri: str, reader: MemberReader, offset: int, scratch: Path) -> Exchange:
    fields = _begin(reader)
    if fields.get(warc.TYPE) != b"response" or fields.get(b"WARC-Target-URI") != uri.encode():
        raise BadInput(reader.path, f"the books know a record of {uri} there, and it is another", offset)
    return _exchange(uri, fields, reader, scratch)


def _request(reader: MemberReader) -> bytes:
    """The request that comes after the answer at whose end the reader is; b"" if it is not there."""
    if not reader.end_after(0, warc.END_OF_RECORD):
        return b""
    fields = _begin(reader)
    if fields.get(warc.TYPE) != b"request":
        return b""
    return b"".join(map(bytes, reader.take(warc.content_length(fields, reader.bad))))


def _begin(reader: MemberReader) -> warc.Fields:
    """The header of the next record; none at the end of the file."""
    if not reader.begin():
        return {}
    return warc.parse_header(reader.through(warc.END_OF_HEADER, warc.HEADER_LIMIT), reader.bad, _pass_over)


def _opened(path: Path) -> BinaryIO:
    """A WARC, which may have got its final name since it was found."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        return path.with_name(final_name(path.name)).open("rb")


def _exchange(uri: str, fields: warc.Fields, reader: MemberReader, scratch: Path) -> Exchange:
    spool = AnswerSpool(scratch)
    answer = AnswerReader("GET", spool, warc.HEADER_LIMIT)
    try:
        for piece in reader.take(warc.content_length(fields, reader.bad)):
            answer.feed(bytes(piece))
    except BaseException:
        spool.close()
        raise
    answer.end()
    if (head := answer.head) is None:
        raise reader.bad(f"the record of {uri} is empty")
    return Exchange(
        uri, "GET", "", datetime.fromisoformat(fields[warc.DATE].decode()), 0, b"", spool, head.status, head.fields,
        mime_of(head.fields.first("content-type")), answer.head_length, (), answer.payload_length,
        answer.payload_sha1, answer.payload_sha256, answer.chunked, fields.get(b"WARC-Truncated", b"").decode(),
        extra=answer.extra, record_id=fields.get(warc.RECORD_ID, b"").decode(),
    )  # fmt: skip


def _pass_over(_: str) -> None:
    """Our own header warns of nothing."""
