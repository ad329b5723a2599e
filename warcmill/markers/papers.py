"""The papers of a job in its folder, beside their editions: saved here, edited by hand, or found as a kill left them.

    jobs/JOB/crawl.toml ... scripts/NAME.py     the papers
    jobs/JOB/edition.json                       the edition that these files were at last: number, SHA-256 of each paper

An edition is durable, in the state and the store, before a file changes. After a kill between the two, a file that is
still as edition.json has it takes the newer text; any other one was edited by hand, and becomes an edition. So neither
text is lost. Writes the files of the job, the state and the store.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from warcmill.base import disk
from warcmill.crawl import durable
from warcmill.crawl.launch.folders import EDITION, PAPERS
from warcmill.errors import BadInput, Conflict, NewerEdition, Unavailable
from warcmill.markers.editions import Edition, JobEditions

MARK = EDITION
SCRIPTS = "scripts"  # the folder
LONGEST = 1 << 20  # bytes of a script
_is_name = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}").fullmatch
BY_HAND = "edited by hand"
FOUND = "as it was found"
_TRIES = 3


class PlacedEdition(Struct, frozen=True):
    """The edition that the files of a job were at last, and the SHA-256 of each paper."""

    job: str
    number: int
    papers: dict[str, str]


class JobPapers:
    """The papers of a job: its folder and its editions. `mark`: the name of the mark there."""

    mark = MARK

    def __init__(self, folder: Path, editions: JobEditions) -> None:
        self.folder, self.editions = folder, editions

    def settle(self) -> Edition | None:
        """The newest edition, once the files are what it says: a save that a kill cut short is completed, and what was
        edited by hand is an edition. None if the job has no paper and never had one. Without either, nothing is written
        and no store is asked. Unavailable: the store is away, and no file has changed."""
        if not self.folder.is_dir():
            return self.editions.newest()  # somebody who removes a folder edits nothing
        with self._alone():
            return self._settle()

    def save(self, changes: Mapping[str, bytes | None], *, who: str, why: str, made_from: int) -> Edition:
        """Save papers as an edition, then as files; None removes one. Without a change there is no new edition.

        NewerEdition if one of them is another one than in the edition `made_from`, saved or edited by hand meanwhile; 0
        where it is to be new. Unavailable where the store is away. Either way no file has changed. In a folder that is
        gone all papers are written again.
        """
        for name, data in changes.items():
            self.check(name, data)
        if not self.folder.is_dir():
            self._place(PlacedEdition(self.editions.job, 0, {}))
        with self._alone():
            if self._settle() is None:  # so that a kill after the first edition leaves one that is to be completed
                self._place(PlacedEdition(self.editions.job, 0, {}))
            edition = self.editions.save(changes, who=who, why=why, made_from=made_from)
            self._settle()  # writes the files as after a kill: not over one that was edited by hand meanwhile
            return edition

    def read(self) -> dict[str, bytes]:
        """The papers as they are, by name."""
        return read_papers(self.folder)

    def path(self, name: str) -> Path:
        """Where a paper is."""
        return self.folder / name

    def check(self, name: str, data: bytes | None) -> None:
        """BadInput for a paper that it cannot have."""
        _check(name, data)

    def _settle(self) -> Edition | None:
        for _ in range(_TRIES):
            newest, mark = self.editions.newest(), self._mark()
            number = newest.number if newest else 0
            if mark and mark.number > number:
                why = f"edition {mark.number} of {self.editions.job} is missing: bring it back: 'warcmill restore'"
                raise Conflict(f"state:editions/{self.editions.job}", why)
            if newest and mark and mark.number < number:
                self._complete(newest, mark)
            found = self.read()
            names = {*found, *(newest.papers if newest else ())}
            edited = {
                name: found.get(name)
                for name in names
                if _digest(found.get(name)) != (newest.digest(name) if newest else "")
            }
            if edited:
                why = BY_HAND if newest else FOUND
                try:
                    newest = self.editions.save(edited, who="", why=why, made_from=number)
                except NewerEdition:
                    continue  # a process of another machine was first
            if newest and (edited or mark is None or mark.number != newest.number):
                self._placed(newest)
            return newest
        raise Unavailable(f"the papers of {self.editions.job}", "others save them all the time; try again")

    def _complete(self, newest: Edition, mark: PlacedEdition) -> None:
        """Write what a kill left unwritten: the files that are still as they were before."""
        self.editions.copy()
        found = self.read()
        behind = [name for name in newest.places if newest.digest(name) != mark.papers.get(name, "")]
        untouched = [name for name in behind if _digest(found.get(name)) == mark.papers.get(name, "")]
        texts = {name: self.editions.text(newest.number, name) if newest.digest(name) else None for name in untouched}
        self._write(texts)

    def _write(self, changes: Mapping[str, bytes | None]) -> None:
        for name, data in changes.items():
            path = self.path(name)
            if data is None:
                path.unlink(missing_ok=True)
            else:
                durable.make_folder(path.parent)
                durable.replace(path, data)

    def _placed(self, edition: Edition) -> None:
        papers = {name: place.sha256 for name, place in edition.papers.items()}
        self._place(PlacedEdition(edition.job, edition.number, papers))

    def _place(self, mark: PlacedEdition) -> None:
        durable.make_folder(self.folder)
        durable.replace(self.folder / self.mark, msgspec.json.encode(mark, order="sorted") + b"\n")

    def _mark(self) -> PlacedEdition | None:
        """The mark of the folder; None where there is none, or that of a folder which was copied from another job."""
        mark = read_mark(self.folder, self.mark)
        return mark if mark and mark.job == self.editions.job else None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let no other process of this host settle or save meanwhile; an edition is made exclusively without it too."""
        try:
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Unavailable(str(self.folder), disk.reason(error, self.folder)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def script_paper(name: str) -> str:
    """The name of a script as a paper."""
    return f"{SCRIPTS}/{name}.py"


def read_papers(folder: Path) -> dict[str, bytes]:
    """The papers in the folder of a job, by name: not a file of scripts/ that cannot be a script; who lists them says
    why.

    Nor seeds.jsonl: it is a feed's, and may have gigabytes. Nor scripts.toml: it says what runs now, and at which rate;
    an edition that brought an old one back would start what was stopped.
    """
    found = {}
    for path in [*(folder / name for name in PAPERS), *sorted((folder / SCRIPTS).glob("*.py"))]:
        name = str(path.relative_to(folder))
        try:
            data = path.read_bytes()
            _check(name, data)
        except (FileNotFoundError, IsADirectoryError):
            continue
        except BadInput:
            if path.parent.name == SCRIPTS:
                continue
            raise
        except OSError as error:
            raise Unavailable(str(path), disk.reason(error, path)) from error
        found[name] = data
    return found


def read_mark(folder: Path, name: str = MARK) -> PlacedEdition | None:
    """The edition that the files of a job were at last; None if nothing, or nothing that can be read, says so."""
    try:
        return msgspec.json.decode((folder / name).read_bytes(), type=PlacedEdition)
    except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    except OSError as error:
        raise Unavailable(str(folder / name), disk.reason(error, folder / name)) from error


def check_name(name: str, where: str) -> None:
    """BadInput for a name that no script may have."""
    if not _is_name(name):
        raise BadInput(
            where, f"{name!r} cannot be imported; a script's name has letters, digits and _, and no digit first"
        )


def _check(name: str, data: bytes | None) -> None:
    """BadInput for a name that a job has no paper of, or a script that could not run."""
    if name in PAPERS:
        return
    head, _, last = name.partition("/")
    if head != SCRIPTS or not last.endswith(".py"):
        raise BadInput(name, f"a job has no such paper: {', '.join(PAPERS)}, {SCRIPTS}/NAME.py")
    check_name(last.removesuffix(".py"), name)
    if data is None:
        return
    if len(data) > LONGEST:
        raise BadInput(name, f"it has {len(data)} bytes; a script has at most {LONGEST}")
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(name, f"it is not UTF-8: byte {error.start}") from error


def _digest(data: bytes | None) -> str:
    return "" if data is None else sha256(data).hexdigest()
