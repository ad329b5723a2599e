"""The frontier of a job as a whole, for `warcmill job`: dump, load, rebuild, check, ask again. Talks to Redis, and to a
crawl."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from commands.console.show import as_json, err, out
from tasks.config import engines
from tasks.config.roots import WRITER
from tasks.config.settings import settings
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.extract.links import LINK
from warcmill.crawl.frontier import journal
from warcmill.crawl.job import file
from warcmill.crawl.job.job import Job
from warcmill.crawl.launch import folders, intake
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.launch.intake import Retried
from warcmill.crawl.launch.past import Comparison, JournalSource, compare, read, rebuild
from warcmill.crawl.uri import canonical
from warcmill.errors import BadConfig, Busy, NotReady
from warcmill.formats.seeds import comparable
from warcmill.launches.roots import RootMap, WriterSection
from warcmill.model import Json, Launch

MOST_SHOWN = 100  # bad lines


def add_arguments(choices: Mapping[str, argparse.ArgumentParser]) -> None:
    """The arguments of each action."""
    choices["dump"].add_argument("file", type=Path, metavar="FILE", help="a new file; packed when its name ends .gz")
    choices["load"].add_argument(
        "file", type=Path, metavar="FILE", help="a dump, a list of URLs, or a frontier.recover.gz"
    )
    asked = choices["retry"].add_mutually_exclusive_group(required=True)
    asked.add_argument("uris", nargs="*", default=[], metavar="URL", help="what to ask for again")
    asked.add_argument("--missed", action="store_true", help="all that the newest launch did not get")
    choices["load"].add_argument("--dry-run", action="store_true", help="read it, and load nothing")


def _engine(job: str) -> WarcmillEngine:
    engine = engines.engine_of(job)
    engine.close()
    if not isinstance(engine, WarcmillEngine):
        raise BadConfig("kind", f"job {job} is crawled by {engine.kind}; only the built-in crawler has such a frontier")
    return engine


def _places(job: str) -> Places:
    return _engine(job).places


def _dump(args: argparse.Namespace) -> int:
    counts = intake.dump_to(_places(args.job), args.job, args.file)
    text = f"{args.file}: {counts['waiting']:,} URIs wait, {counts['visited']:,} were visited"
    _show(args, {"file": str(args.file), **counts}, text)
    return 0


def _load(args: argparse.Namespace) -> int:
    with closing(engines.running_job(args.job)) as job:
        listed, answers = intake.load(job, args.file, args.dry_run)
    lines = [f"{args.file}, line {number}: {why}" for number, why in listed.bad[:MOST_SHOWN]]
    lines += [f"... and {len(listed.bad) - MOST_SHOWN:,} more"] if len(listed.bad) > MOST_SHOWN else []
    lines += [f"refused {one}" for one in answers.refused[:MOST_SHOWN]]
    lines += [f"... and {more:,} more" for more in [len(answers.refused) - MOST_SHOWN] if more > 0]
    lines += [f"{number:,} lines are left out: {why}" for why, number in sorted(listed.left_out.items())]
    if args.dry_run:
        counts = f"{listed.waiting:,} URIs to load, {listed.visited:,} visited, {len(listed.bad):,} bad lines"
        lines.append(f"{counts}; nothing done")
    else:
        words = ("new", "seen", "refused", "visited")
        lines += [", ".join(f"{answers.counts[word]:,} {word}" for word in words) + f", {len(listed.bad):,} bad lines"]
    found: dict[str, Json] = {
        "lines": listed.number, "waiting": listed.waiting, "visited": listed.visited,
        "bad": [{"line": number, "why": why} for number, why in listed.bad], "left_out": dict(listed.left_out),
        "answers": dict(answers.counts), "refused": [*answers.refused],
    }  # fmt: skip
    _show(args, found, *lines)
    return int(bool(listed.bad or answers.refused))


def _retry(args: argparse.Namespace) -> int:
    """Begin a launch that asks again for some URLs, and for what waits: it follows the newest one."""
    from commands.console import pulse
    from tasks.line import open_line
    from warcmill.reports import missed

    engine = _engine(args.job)
    launch, folder = _ended(engine, args.job), engine.places.job(args.job)
    job = file.read(folder, args.job)
    asked, seeds = RetryList(job), {comparable(seed) for seed in job.seeds}
    if args.missed:
        line = open_line()
        try:
            with missed.of_launch(line.state, line.store, launch) as every:
                found = (Retried(one.url, one.referrer, one.hops, one.source) for one in every)
                number = intake.write_retry(folder, asked.within_scope(found))
        except NotReady as error:
            why = f"what it missed is known once its logs are in the archive: warcmill scan {launch.day}"
            raise NotReady(str(launch), why) from error
    else:
        urls = dict.fromkeys(map(canonical, args.uris))
        found = (Retried(one, "", "" if comparable(one) in seeds else LINK, one) for one in urls)
        number = intake.write_retry(folder, asked.within_scope(found))
    answer: dict[str, Json] = {"asked": number, "out_of_scope": asked.refused, "out_of_scope_first": asked.first}
    if asked.refused:
        err(f"{args.job}: {asked.refused:,} out of the crawl's scope, and not asked for; first {asked.first}")
    if not number:
        _show(args, answer, f"{args.job}: there is nothing to ask for again")
        return int(bool(asked.refused))
    with redirect_stdout(sys.stderr) if args.json else nullcontext():
        code = pulse.start(args.job, again=True, retries=True)
    if code:
        (folder / folders.RETRY).unlink(missing_ok=True)
        return code
    urls_word = "1 URL is" if number == 1 else f"{number:,} URLs are"
    _show(args, answer, f"{args.job}: {urls_word} asked for again; to see how far: warcmill job {args.job} watch")
    return 0


def _ended(engine: WarcmillEngine, name: str) -> Launch:
    """The newest launch of a job, which must have ended."""
    if engine.places.frontier:
        why = f"that of job {name} is in Redis, which forgets no visits; to crawl it again: warcmill pulse start {name}"
        raise BadConfig("frontier", f"{why} --again")
    seen = engine.look(name)
    if seen.running:
        raise Busy(f"job {name}, launch {seen.launch_id},")
    if seen.died:
        raise NotReady(f"job {name}", f"{seen.words}; first: warcmill pulse stop {name}")
    if not seen.launch_id:
        raise NotReady(f"job {name}", f"it was never launched: warcmill pulse start {name} --again")
    return Launch.parse(name, seen.launch_id)


class RetryList:
    """The URLs that are asked for again, without those that are out of the scope of the job, which are counted."""

    def __init__(self, job: Job) -> None:
        self._job, self.refused, self.first = job, 0, ""

    def within_scope(self, some: Iterable[Retried]) -> Iterator[Retried]:
        """Those that may be asked for."""
        for one in some:
            if why := intake.judged(self._job, one):
                self.refused += 1
                self.first = self.first or f"{one.uri}: {why}"
            else:
                yield one


def _rebuild(args: argparse.Namespace) -> int:
    past, changes = rebuild(_places(args.job), args.job, _workers(args.job))
    done = f"Redis has heard {changes:,} changes" if changes else "Redis has all, and nothing was done"
    found: dict[str, Json] = {"launch": past.launch, "changes": changes, "unread": [*past.unread]}
    _show(args, found, *map(_unread, past.unread), f"launch {past.launch}: {done}")
    return int(bool(past.unread))


def _books(args: argparse.Namespace) -> int:
    places = _places(args.job)
    is_idle = folders.holder(places.state(args.job)) is None
    past = read(places, args.job, _workers(args.job))
    with TemporaryDirectory() as folder, intake.current(places, args.job, Path(folder)) as lines:
        found = compare(past, lines)
    _show(args, _answer(found, is_idle), *_compared(found, is_idle))
    return int(is_idle and found.differs)


def _answer(found: Comparison, is_idle: bool) -> dict[str, Json]:
    counts: list[Json] = [
        {"crawl": crawl, "status": status, "journals": found.journals[name], "frontier": found.frontier[name]}
        for name in sorted(found.journals.keys() | found.frontier.keys())
        for crawl, status in (name,)
    ]
    return {
        "launch": found.launch, "idle": is_idle, "counts": counts, "unread": [*found.unread],
        "miscounted": [*found.miscounted], "differences": [one._asdict() for one in found.differences],
    }  # fmt: skip


def _compared(found: Comparison, is_idle: bool) -> Iterator[str]:
    for name in sorted(found.journals.keys() | found.frontier.keys()):
        crawl, status = name
        there = f"{found.journals[name]} in the journals, {found.frontier[name]} in the frontier"
        yield f"crawl '{crawl}': {status}: {there}"
    for one in found.differences:
        there = f"{one.journals or 'nothing'} in the journals, {one.frontier or 'nothing'} in the frontier"
        yield f"{one.uri}{f' of {one.crawl}' if one.crawl else ''}: {there}"
    yield from found.miscounted
    yield from map(_unread, found.unread)
    if found.differs and not is_idle:
        yield "a crawl runs: what is under way may differ"


def _unread(worker: str) -> str:
    return f"the journal could not be read of worker {worker}"


def _workers(job: str) -> list[JournalSource]:
    """The workers of a job, by the sections that name their roots."""
    roots = settings().rootmap()
    sections = [one for one in roots.writers if one.layout and job in one.jobs]
    return [JournalSource(one.root.removeprefix(WRITER), partial(_journals, roots, one)) for one in sections]


def _journals(roots: RootMap, section: WriterSection, launch: Launch) -> Iterator[tuple[str, Callable[[], BinaryIO]]]:
    store = roots.open(section.root, section.place)
    assert section.layout is not None
    for entry in store.list(section.layout.folder("logs", launch)):
        if entry.kind == "file" and entry.name.startswith(journal.NAME):
            yield entry.name, partial(store.open, entry.path)


def _show(args: argparse.Namespace, answer: Mapping[str, Json], *lines: str) -> None:
    if args.json:
        print(as_json(dict(answer)))
    else:
        out(*lines)


ACTIONS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "dump": _dump, "load": _load, "rebuild": _rebuild, "books": _books, "retry": _retry,
}  # fmt: skip
"""Each action, which returns the exit code."""
