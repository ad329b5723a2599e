"""The rows of a launch's window: its targets, pages and facts, joined in sorted order. Writes to nameless files only.

    targets  project -> its last event              pages  project -> files      facts  URL -> what the file has
    past     project -> its events, and lives that are carried over

Memory is bounded, for any number of projects and files. A project whose page is older than its last event, or was not
got, is *lacked*: it has no page. At the third try a page is taken that has all that the events name. A file that was
not got, or is not the one that its page lists, is lacked alone. A project's past is dumped whether it is lacked or not.

Where a page has the digest of the METADATA beside a wheel, the wheel's requirements are those of that; and its modules
may be those of a wheel that differs in its platform alone, of which the row has the name (`modules_of`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from ada_url import join_url
from msgspec import Struct
from msgspec.structs import asdict, replace

from warcmill.base.line_sort import SortedLines
from warcmill.crawl.extract import package_index
from warcmill.crawl.extract.links import Outlinks
from warcmill.crawl.fetch.answer import HeaderFields
from warcmill.errors import BadInput
from warcmill.extracts.distributions import IndexAnswer, answer_of, line_of
from warcmill.formats.pypi import filenames
from warcmill.formats.pypi.distribution import DistributionFacts
from warcmill.formats.pypi.dump import LONGEST_ROW, DistributionRow, HeldFile, ListedFile, ProjectState, row_line
from warcmill.formats.pypi.filenames import METADATA, FileForm
from warcmill.formats.pypi.lives import LifeEvent, ProjectLives
from warcmill.formats.pypi.simple_page import SimplePage
from warcmill.markers.facts.pypi import Lacked
from warcmill.pypi.feed import ProjectTarget
from warcmill.pypi.journal import WaitingList
from warcmill.pypi.lives import shows

MOST_NAMED = 1_000  # unreadable files that a claim names
TRIES = 3  # launches, until a page is taken whose serial lags
Value = TypeVar("Value")
_GONE = (404, 410)
_MOST_OF_PAGE, _MOST_IN_LINE = LONGEST_ROW - 2, LONGEST_ROW // 2  # bytes of a line: no reader of dumps takes more
_IN_MEMORY = 32 << 20  # bytes of lines that are sorted at once
_NOTHING = HeaderFields([])


class _Asked(NamedTuple):
    """A file that a project's page lists and that was wanted; `may_wait`: it is lacked only if there is an answer."""

    project: str
    file: ListedFile
    may_wait: bool = False


class _Kin(Struct):
    """A wheel that was wanted, and the answers for it and for the METADATA beside it."""

    asked: _Asked
    answers: list[IndexAnswer]
    beside: list[IndexAnswer]


class WindowRows:
    """The rows of one window, in 256 shards or in one. `hear` all answers, and `join` the targets; then read the rows.

    `counts`, `lacked`, `unreadable` and `differing` are valid after `join`; a file is unreadable if its row has less
    than files of its kind mostly have, and the reason is a fault in the file itself; it is differing if the METADATA
    beside it is not the one that its page lists. `has_past`: there are rows of the past.
    """

    def __init__(self, folder: Path, shards: int) -> None:
        self.shards = shards
        self.counts: Counter[str] = Counter(projects=0, removed=0, files=0, rows=0, unreadable=0)
        self.lacked: list[Lacked] = []
        self.unreadable: list[Lacked] = []
        self.differing: list[Lacked] = []
        self._pages, self._facts, self._asked, self._kin, self._rows, self._states, self._lives = (
            SortedLines(folder, _IN_MEMORY) for _ in range(7)
        )
        self.waiting = WaitingList(folder)
        self.has_past, self._has_serials = False, True
        self._order = 0

    def close(self) -> None:
        """Free what it holds."""
        for lines in (self._pages, self._facts, self._asked, self._kin, self._rows, self._states, self._lives):
            lines.close()
        self.waiting.close()

    def hear(self, answers: Iterable[IndexAnswer]) -> None:
        """Take the answers of one WARC."""
        for answer in answers:
            self._order += 1
            project = _project_of(answer)
            if not answer.url.isprintable() or " " in answer.url:
                continue  # no engine of ours asks for such a URL
            key = f"{project}\t{answer.date}\t{self._order:012d}" if project else answer.url
            (self._pages if project else self._facts).add(key.encode() + b"\t" + line_of(answer))

    def join(
        self,
        targets: Iterable[ProjectTarget],
        past: Iterable[ProjectLives] | None = None,
        *,
        newest: bool,
        needed: bool = False,
        has_serials: bool = True,
        is_full: bool = False,
    ) -> None:
        """Join all that was heard with the targets and their past, which are sorted by project. `past` None: none is
        known. `newest`: of each project only the newest release was asked for; `needed`: no sdist of a release that has
        a wheel. Without serials those of pages are of another index, which this one copies. `is_full`: of several
        launches, all that was got counts."""
        self.has_past, self._has_serials = past is not None, has_serials
        self._newest, self._needed, self._is_full = newest, needed, is_full
        pages, known = _InStep(_groups(self._pages)), _InStep(self._keep(past or ()))
        for target in targets:
            lives = known.of(target.project)
            events = (lives.events if lives else None) or ()
            self._take(target, pages.of(target.project) or [], events)
        known.end()
        self._join_files()
        self.counts["lacked"] = len(self.lacked)

    def _keep(self, past: Iterable[ProjectLives]) -> Iterator[tuple[str, ProjectLives]]:
        """Take the rows of the past as they are read, also those of projects without a target."""
        for lives in past:
            digest = hashlib.sha256(lives.project.encode()).hexdigest()
            self._lives.add(self._keyed(digest, lives.project, "", _line_of(lives)))
            self.counts["lives"] += 1
            yield lives.project, lives

    def _take(self, target: ProjectTarget, answers: list[IndexAnswer], events: Iterable[LifeEvent]) -> None:
        answer, why = _chosen(target, answers, events)
        if answer is None:
            self.lacked.append(Lacked(target.project, "", why))
            return
        page = answer.page.page if answer.page else None
        state = ProjectState(target.project, None, removed=True, files=())
        if answer.page and page:
            more = page.status, page.reason, answer.page.etag, answer.page.modified
            serial = page.serial if self._has_serials else None
            state = ProjectState(target.project, serial, False, page.files, *more)
        line = row_line(state)
        if len(line) > _MOST_OF_PAGE:
            why = f"its page has {len(page.files) if page else 0} files, which take {len(line):,} bytes"
            self.lacked.append(Lacked(target.project, "", f"{why}; {_MOST_OF_PAGE:,} are read"))
            return
        self.counts["projects"] += 1
        self.counts["removed"] += state.removed
        self.counts["files"] += len(state.files)
        digest = hashlib.sha256(target.project.encode()).hexdigest()
        self._states.add(self._keyed(digest, target.project, "", line))
        if page:
            self._ask(target, answer, page)
        elif not self._is_full:
            self.waiting.found(target.project, None, 0)

    def _ask(self, target: ProjectTarget, answer: IndexAnswer, page: SimplePage) -> None:
        """Look up the facts of each file that was wanted: the crawler's own rule decides which these are."""
        listed = {
            "meta": {"_last-serial": page.serial},
            "files": [{**file.to_json(), "yanked": file.yanked is not None} for file in page.files],
        }
        data = json.dumps(listed).encode()

        def found(*, newest: bool) -> Outlinks:
            asked = package_index.page(
                target.project, target.files, newest=newest, older=target.older, needed=self._needed, whole=True
            )
            return package_index.find(data, answer.url, 200, _NOTHING, json.dumps(asked))

        links = found(newest=self._newest or target.newest)
        if links.cut:
            self.lacked.append(Lacked(target.project, "", f"its page has {len(page.files)} files, not all were taken"))
        wanted = {link.uri for link in links}
        if target.files is None and not self._is_full:
            older = len(found(newest=False)) - len(links) if target.newest else 0
            self.waiting.found(target.project, page.serial, older)
        for file in page.files:
            url, name = _joined(answer.url, file.url), filenames.parse(file.filename, target.project)
            if url in wanted or (self._is_full and not self._newest and name and name.form is not FileForm.NAME_ONLY):
                about = json.dumps([target.project, asdict(file), url not in wanted], sort_keys=True).encode()
                for place in (url, url + METADATA) if _has_metadata(file) else (url,):
                    self._asked.add(place.encode() + b"\t" + about + b"\n")
            elif name and name.form is FileForm.NAME_ONLY and not self._newest and _is_asked(target, file):
                self._add(_Asked(target.project, file), None)

    def _join_files(self) -> None:
        facts = _InStep(_by_key(self._facts))
        for line in self._asked:
            key, _, about = line.partition(b"\t")
            asked, found = _about(about), facts.of(key) or []
            file = asked.file
            if not _has_metadata(file):
                self._add(asked, found)
                continue
            kin = json.dumps([asked.project, *filenames.kin(file.filename, asked.project)]).encode()
            kept = [about.strip(), *(line_of(answer).strip() for answer in found)]
            is_beside = b"1" if key.endswith(METADATA.encode()) else b"0"
            self._kin.add(b"\t".join([kin, json.dumps(file.filename).encode(), is_beside, *kept]) + b"\n")
        for _, lines in groupby(self._kin, lambda line: line.partition(b"\t")[0]):
            self._add_kin(list(lines))

    def _add_kin(self, lines: list[bytes]) -> None:
        """Add the rows of wheels that differ in their platforms alone, some of which were read for their modules."""
        found: dict[tuple[str, str], _Kin] = {}
        for line in lines:
            _, _, is_beside, about, *answers = line.removesuffix(b"\n").split(b"\t")
            asked = _about(about)
            one = found.setdefault((asked.project, asked.file.filename), _Kin(asked, [], []))
            (one.beside if is_beside == b"1" else one.answers).extend(map(_answer, answers))
        with_modules = ((name, _with_modules(one)) for (_, name), one in sorted(found.items()))
        shared = next(((name, known) for name, known in with_modules if known), None)
        for _, one in sorted(found.items()):
            self._add_with_metadata(one.asked, one, shared)

    def _add_with_metadata(self, asked: _Asked, one: _Kin, shared: tuple[str, DistributionFacts] | None) -> None:
        """Add the row of a wheel that has its METADATA beside it."""
        if asked.may_wait and not one.answers and not one.beside:
            return
        best, why = _best(asked.file, one.answers)
        beside, fault = _best(replace(asked.file, sha256=asked.file.core or None), one.beside)
        fields = beside.file.facts if beside and beside.file else None
        if one.beside and fault and len(self.differing) < MOST_NAMED:
            self.differing.append(Lacked(asked.project, asked.file.filename, f"the METADATA beside it: {fault}"))
        own = best.file.facts if best and best.file else None
        if fields is None or fields.why:
            self._row(asked, best, own, why=why)
        elif known := own or _with_modules(one):
            self._row(asked, best, _joined_facts(fields, known))
        elif shared:
            self._row(asked, None, _joined_facts(fields, shared[1]), of=shared[0])
        else:
            self._row(asked, None, None, why=f"its modules are unknown: {why}")

    def _add(self, asked: _Asked, answers: list[IndexAnswer] | None) -> None:
        """Add the row of a file. `answers` is None for one of which the name alone is read."""
        if asked.may_wait and not answers:
            return
        found, why = (None, "") if answers is None else _best(asked.file, answers)
        self._row(asked, found, found.file.facts if found and found.file else None, why=why)

    def _row(
        self,
        asked: _Asked,
        found: IndexAnswer | None,
        facts: DistributionFacts | None,
        *,
        why: str = "",
        of: str | None = None,
    ) -> None:
        """Add a row; `why`: the file is lacked. `of`: the file that its modules are of, if that is another one."""
        project, file, _ = asked
        name, captured = filenames.parse(file.filename, project), found.file if found else None
        digest = (captured.sha256 if captured else None) or file.sha256
        why = why or ("" if digest else "its page has no SHA-256, and it was not fetched whole")
        if why or name is None or digest is None:
            self.lacked.append(Lacked(project, file.filename, why or "its name is of no distribution"))
            return
        row = DistributionRow(
            filename=file.filename,
            project=project,
            version=name.version or (facts.version if facts else None),
            dist_type=name.dist_type,
            sha256=digest,
            requires=facts.requires if facts else None,
            requires_dist=facts.requires_dist if facts else None,
            requires_python=(facts.requires_python if facts else None) or file.requires_python,
            modules=facts.modules if facts else None,
            metadata=facts.metadata if facts else None,
            import_names=facts.import_names if facts else None,
            import_namespaces=facts.import_namespaces if facts else None,
            namespaces=facts.namespaces if facts else None,
            stubs=facts.stubs if facts else None,
            held=HeldFile(found.warc, found.offset) if found and found.warc and captured and captured.sha256 else None,
            modules_of=of,
        )
        faults, line = facts.why if facts else (), row_line(row)
        if len(line) > _MOST_IN_LINE:
            faults = (*faults, f"its facts take more than {_MOST_IN_LINE:,} bytes")
            line = row_line(row.light())
        self.counts["rows"] += 1
        if faults:
            self.counts["unreadable"] += 1
            if len(self.unreadable) < MOST_NAMED:
                self.unreadable.append(Lacked(project, file.filename, "; ".join(faults)))
        self._rows.add(self._keyed(digest, project, file.filename, line))

    def rows(self) -> Iterator[tuple[int, Iterator[bytes]]]:
        """The lines of the rows: each shard's number, and its lines by project and file. Read them before the next."""
        return _sharded(self._rows)

    def states(self) -> Iterator[tuple[int, Iterator[bytes]]]:
        """The same of the states of projects."""
        return _sharded(self._states)

    def lives(self) -> Iterator[tuple[int, Iterator[bytes]]]:
        """The same of their past."""
        return _sharded(self._lives)

    def _keyed(self, digest: str, project: str, name: str, line: bytes) -> bytes:
        shard = digest[:2] if self.shards > 1 else "00"
        return f"{shard}\t{project}\t{name}\t".encode("utf-8", "backslashreplace") + line + b"\n"


def _line_of(lives: ProjectLives) -> bytes:
    """The line of a project's past. Where it is too long for a reader, lives go without facts: first those of files
    that are there, as the same dump reads them anew."""
    line = row_line(lives)
    for are_all in (False, True):
        if len(line) > _MOST_IN_LINE:
            files = (life.bare() if are_all or life.last is None else life for life in lives.files)
            line = row_line(replace(lives, files=tuple(files)))
    return line


def _project_of(answer: IndexAnswer) -> str:
    """The project whose page an answer is, by its URL; '' if it is not a page."""
    try:
        path = urlsplit(answer.url).path
    except ValueError:
        return ""
    is_page = answer.page is not None or path.endswith("/")
    name = path.rstrip("/").rpartition("/")[2]
    return filenames.normalised(name) if is_page and filenames.is_project(name) else ""


def _chosen(
    target: ProjectTarget, answers: list[IndexAnswer], events: Iterable[LifeEvent]
) -> tuple[IndexAnswer | None, str]:
    """The newest answer that has the page, or says that it is gone; else None, and the reason."""
    sound = [one for one in answers if (one.page and one.page.page) or one.status in _GONE]
    if not answers:
        return None, "its page was not got: there is no answer"
    if not sound:
        last = answers[-1]
        fault = last.page.why if last.page else f"status {last.status}, {last.media_type or 'no type'}"
        return None, f"its page was not got: {fault}"
    answer = sound[-1]
    page = answer.page.page if answer.page else None
    if page and page.project != target.project:
        return None, f"its page is that of {page.project}"
    if page and page.serial is not None and target.serial is not None and page.serial < target.serial:
        state = ProjectState(target.project, page.serial, removed=False, files=page.files)
        if target.tries + 1 >= TRIES and shows(target.project, state, events):
            return answer, ""
        return None, f"its page is of serial {page.serial}, and its last event of {target.serial}"
    return answer, ""


def _best(file: ListedFile, answers: list[IndexAnswer]) -> tuple[IndexAnswer | None, str]:
    """The answer that suffices to read a file, the last of several; else None, and the reason."""
    fault = ""
    for answer in reversed(answers):
        captured = answer.file
        if captured is None:
            fault = fault or f"it was not got: status {answer.status}"
        elif captured.fault:
            fault = fault or captured.fault
        elif captured.sha256 and file.sha256 and captured.sha256 != file.sha256:
            fault = f"its SHA-256 is {captured.sha256}, and its page has {file.sha256}"
        else:
            return answer, ""
    return None, fault or "it was not got: there is no answer"


def _about(line: bytes) -> _Asked:
    project, listed, may_wait = json.loads(line)
    return _Asked(project, ListedFile(**listed), may_wait)


def _has_metadata(file: ListedFile) -> bool:
    """True if a page has the digest of a wheel, and the index its METADATA."""
    return file.core is not None and filenames.of_metadata(file.filename + METADATA) is not None


def _with_modules(one: _Kin) -> DistributionFacts | None:
    """The facts of a wheel by its own bytes, if they have its modules, also where they lack its METADATA."""
    best, _ = _best(one.asked.file, one.answers)
    ends = (best,) if best else tuple(answer for answer in reversed(one.answers) if answer.file and answer.file.fault)
    known = (answer.file.facts for answer in ends if answer.file)
    return next((facts for facts in known if facts.modules is not None), None)


def _joined_facts(fields: DistributionFacts, known: DistributionFacts) -> DistributionFacts:
    """Facts of the METADATA beside a wheel, and those of the bytes of one."""
    return replace(fields, modules=known.modules, namespaces=known.namespaces, stubs=known.stubs, why=known.why)


def _is_asked(target: ProjectTarget, file: ListedFile) -> bool:
    return target.files is None or file.filename in target.files


def _joined(page: str, url: str) -> str:
    try:
        return join_url(page, url).partition("#")[0]
    except ValueError:
        return ""


class _InStep(Generic[Value]):
    """Sorted pairs, read in step with sorted keys."""

    def __init__(self, pairs: Iterator[tuple[Any, Value]]) -> None:
        self._pairs = pairs
        self._at = next(pairs, None)

    def of(self, key: object) -> Value | None:
        """The value of a key, which is not before the last one; None without it."""
        while self._at is not None and self._at[0] < key:
            self._at = next(self._pairs, None)
        return self._at[1] if self._at is not None and self._at[0] == key else None

    def end(self) -> None:
        """Read the rest."""
        while self._at is not None:
            self._at = next(self._pairs, None)


def _sharded(lines: SortedLines) -> Iterator[tuple[int, Iterator[bytes]]]:
    for shard, some in groupby(lines, lambda line: line[:2]):
        yield int(shard, 16), (line.split(b"\t", 3)[3].removesuffix(b"\n") for line in some)


def _by_key(lines: SortedLines) -> Iterator[tuple[bytes, list[IndexAnswer]]]:
    """The answers for each URL, in the order in which they were heard but for their text."""
    for key, some in groupby(lines, lambda line: line.partition(b"\t")[0]):
        yield key, [_answer(line.partition(b"\t")[2]) for line in some]


def _groups(lines: SortedLines) -> Iterator[tuple[str, list[IndexAnswer]]]:
    """The answers for each project's page, the oldest first."""
    for key, some in groupby(lines, lambda line: line.partition(b"\t")[0]):
        yield key.decode(), [_answer(line.split(b"\t", 3)[3]) for line in some]


def _answer(line: bytes) -> IndexAnswer:
    try:
        return answer_of(line, "scratch")
    except BadInput as error:
        raise AssertionError("it was written by this module") from error
