"""The job of a crawl that a person types: the one with these seeds and this scope, or a name that is free. Reads only.

A job is its seeds and its scope. So another list of URLs, or another scope, on the host of a job is a job beside it,
`host-2`; only `--job` with `--replace` gives a job other seeds or another scope. A job that somebody else writes, as a
feed or an editor does, is never written over.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

from commands.console.luigi_cfg import LONGEST, engine_for
from tasks.config import engines, feed, pypi, roots
from tasks.config.sections import jobs_of
from warcmill.crawl.job import file, identity
from warcmill.crawl.job.identity import JobIdentity
from warcmill.crawl.job.text import HEAD
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.launch import job_log
from warcmill.crawl.launch.folders import STATE
from warcmill.errors import BadConfig, Conflict, WarcmillError

_DIGITS = 6  # of a job's number


class ChosenJob(NamedTuple):
    """The name of a job, and why it is this one, in words; '' where it is the first that anybody would think of."""

    name: str
    why: str = ""


class _KnownJob(NamedTuple):
    """A job of some name. `identity` None: `why` it cannot be compared. `keeper`: the refusal where another writes its
    files."""

    identity: JobIdentity | None
    why: str = ""
    keeper: WarcmillError | None = None


def chosen(bases: Sequence[str], files: Mapping[str, bytes]) -> ChosenJob:
    """The job of these files among those of some hosts, of each `base`, `base-2` and so on; a new one of the first host
    where none has them."""
    first, why = bases[0], ""
    wanted, names = identity.of(files, first), _names()
    for name in _of_hosts(bases, {*names, first}):
        known = _known(name)
        if known and known.keeper and known.identity and known.identity.seeds == wanted.seeds:
            raise known.keeper  # a person has given these seeds a scope by hand
        if known and known.identity and not (unlike := known.identity.unlike(wanted, briefly=True)):
            return ChosenJob(name, f"the job with these seeds and this scope, as {why}" if why else "")
        if known and not why:
            why = f"{name} has {unlike}" if known.identity else f"{name} cannot be compared: {known.why}"
    free = next(number for number in count(1) if not _known(_numbered(first, number)))
    return ChosenJob(_numbered(first, free), f"a new job, as {why}" if free > 1 else "")


def named(name: str, files: Mapping[str, bytes], *, replaced: bool) -> ChosenJob:
    """The job that a person names. Conflict if it has other seeds or another scope, unless they are to be `replaced`.

    A job that a feed, another engine or a person by hand writes is refused, even with `replaced`.
    """
    known = _known(name)
    if known is None:
        return ChosenJob(name)
    if known.keeper:
        raise known.keeper
    unlike = known.identity.unlike(identity.of(files, name)) if known.identity else known.why
    if not unlike:
        return ChosenJob(name)
    what = f"it has {unlike}" if known.identity else f"it cannot be compared: {unlike}"
    if replaced:
        return ChosenJob(name, f"its seeds and scope are replaced; until now {what}")
    todo = f"choose another --job, or give it these seeds and this scope: warcmill {shlex.join(sys.argv[1:])} --replace"
    raise Conflict(f"job {name}", f"{what}. Nothing was written; {todo}")


def _known(name: str) -> _KnownJob | None:
    """The job of a name; None for a name that is free."""
    section = engines.section_of(name)
    if section and engines.kind_of(section) != engines.WARCMILL:
        why = f"job {name} is another engine's; choose a name by --job"
        return _KnownJob(None, "another engine crawls it", BadConfig(f"[{section}] kind", why))
    for key, is_written in (("[feed] jobs", feed.is_fed(name)), ("[pypi] jobs", pypi.mirrors(name))):
        if is_written:
            why = f"has job {name}, whose seeds are its feed's; choose another --job"
            return _KnownJob(None, f"its seeds are those of {key}", BadConfig(key, why))
    with closing(engine_for(name)) as engine:
        folder = engine.places.job(name)
    if not folder.is_dir() or not any(path.name != STATE for path in folder.iterdir()):
        return _KnownJob(None, "it is scheduled, and has no files") if name in engines.scheduled() else None
    return _in_folder(folder, name)


def _in_folder(folder: Path, name: str) -> _KnownJob | None:
    files = file.files_in(folder)
    if not files and job_log.last(folder) is None:
        return None  # another command is about to write them; or nobody has
    text, keeper = files.get(CONFIGURATION), None
    if text is not None and not text.startswith(HEAD.encode()):
        why = f"job {name} has one of its own; 'warcmill pulse start {name} --again' crawls it, or choose another --job"
        keeper = BadConfig(str(folder / CONFIGURATION), why)
    try:
        if text is None:
            raise BadConfig(CONFIGURATION, f"it is not in {folder}")
        return _KnownJob(identity.of(files, name), keeper=keeper)
    except BadConfig as error:
        if text is not None and keeper is None and job_log.last(folder) is None:
            return None  # a command was killed while it wrote a new job
        return _KnownJob(None, str(error), keeper)


def _numbered(base: str, number: int) -> str:
    end = f"-{number}" if number > 1 else ""
    return base[: LONGEST - len(end)] + end


def _of_hosts(bases: Sequence[str], names: Iterable[str]) -> list[str]:
    """The names that jobs of these hosts have: those of the first host before the others, each host's in order."""
    places = dict[str, int]()
    for place, base in reversed([*enumerate(bases)]):  # a long one is cut where a number follows
        places |= {base[: LONGEST - more]: place for more in range(_DIGITS + 2)}
    found = list[tuple[int, int, str]]()
    for name in names:
        base, _, number = name.rpartition("-")
        if name in places:
            found.append((places[name], 1, name))
        elif base in places and number.isdecimal() and len(number) <= _DIGITS:
            found.append((places[base], int(number), name))
    return [name for _, _, name in sorted(found)]


def _names() -> set[str]:
    """The names that jobs have: in luigi.cfg, and in the folder of jobs."""
    listed = {job for section in roots.engines() for job in jobs_of(section)}
    return {*listed, *_folders(), *engines.scheduled(), *feed.jobs(), *pypi.jobs()}


def _folders() -> Iterator[str]:
    """The names in the folder of jobs."""
    with closing(engine_for("")) as engine, suppress(FileNotFoundError):
        yield from (path.name for path in engine.places.jobs.iterdir())
