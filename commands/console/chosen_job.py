"""The job of a crawl that a person types: the one with these seeds and this scope, or a name that is free. Reads only.

A job is its seeds and its scope. So another list of URLs, or another scope, on the host of a job is a job beside it,
`host-2`; only `--job` with `--replace` gives a job other seeds or another scope. A job that somebody else writes, as a
feed or an editor does, is never written over.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
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


def chosen(base: str, files: Mapping[str, bytes]) -> ChosenJob:
    """The job of these files on a host whose jobs are `base`, `base-2` and so on; a new one where none has them."""
    wanted, why = identity.of(files, base), ""
    numbers = _numbers(base)
    for number in numbers:
        name = _numbered(base, number)
        known = _known(name)
        if known and known.keeper and known.identity and known.identity.seeds == wanted.seeds:
            raise known.keeper  # a person has given these seeds a scope by hand
        if known and known.identity and not (unlike := known.identity.unlike(wanted, briefly=True)):
            return ChosenJob(name, f"the job with these seeds and this scope, as {why}" if why else "")
        if known and not why:
            why = f"{name} has {unlike}" if known.identity else f"{name} cannot be compared: {known.why}"
    free = next(number for number in range(1, len(numbers) + 2) if not _known(_numbered(base, number)))
    return ChosenJob(_numbered(base, free), f"a new job, as {why}" if free > 1 else "")


def named(name: str, files: Mapping[str, bytes], *, replaced: bool) -> ChosenJob:
    """The job that a person names. Conflict if it has other seeds or another scope, unless they are to be `replaced`.

    The refusal of another's job, whoever confirms.
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


def _numbers(base: str) -> list[int]:
    """The numbers of the names that a host's jobs have, in order; 1 is always among them."""
    listed = {job for section in roots.engines() for job in jobs_of(section)}
    known = {1}
    for name in {*listed, *_folders(), *engines.scheduled(), *feed.jobs(), *pypi.jobs()}:
        match = re.fullmatch(r"(.+)-([1-9][0-9]{0,5})", name)
        if match and _numbered(base, int(match[2])) == name:
            known.add(int(match[2]))
    return sorted(known)


def _folders() -> Iterator[str]:
    """The names in the folder of jobs."""
    with closing(engine_for("")) as engine, suppress(FileNotFoundError):
        yield from (path.name for path in engine.places.jobs.iterdir())
