"""The logs of a launch that its books do not keep: alerts, errors and progress; and scope.log, if the job has it.

    alerts.log               TIME LEVEL message                 what a person should look at
    uri-errors.log           TIME VIA "message" URI             text on a page that is not a URI
    nonfatal-errors.log      a line of crawl.log, then why      a fetch that failed
    runtime-errors.log       a line of crawl.log, then a traceback
    progress-statistics.log  see `progress`
    scope.log                TIME NUMBER POLICY DECISION URI {"hopPath": ..., "via": ..., "seed": ..., "why": ...}

crawl.log and frontier.recover.gz are the books'. With a checkpoint all get its name as a suffix.

A line of scope.log is a link that a policy rejected or deferred, in the columns of Heritrix's `DecideRuleSequence`.
NUMBER is the place of the policy in the order in which they are asked, from 0; -1 for `nofollow`, which is asked
before. DECISION is REJECT, or DEFER, with `until`. Heritrix's log has accepted URIs too; here crawl.log has those.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from warcmill.crawl.books.files import LOGS
from warcmill.crawl.durable import Appended, failed, is_cut, sync_folder
from warcmill.crawl.logs import progress
from warcmill.crawl.logs.progress import Moment, ProgressStatistics
from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.uri import Uri
from warcmill.errors import Conflict
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.layout import ENGINE_LOGS, split_log_name

ALERTS, NONFATAL, PROGRESS = "alerts.log", "nonfatal-errors.log", "progress-statistics.log"
RUNTIME, URI_ERRORS, SCOPE = "runtime-errors.log", "uri-errors.log", "scope.log"
OURS = tuple(name for name in ENGINE_LOGS if name not in LOGS)
LONGEST = 1 << 16  # bytes of one message: a page must not fill the disk by its faults


class Logs:
    """The logs in `folder`, from `Logs(...)` to `close`. A full disk raises Unavailable, with the file's name.

    `scope`: scope.log is one of them. It stays so from a launch's begin to its end: otherwise a log that is
    missing because a rotation was killed could not be distinguished from one that has just started.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.time, *, scope: bool = False) -> None:
        self._folder, self._now, self._turn = folder, now, threading.RLock()
        self._names = (*OURS, SCOPE) if scope else OURS
        self._progress = ProgressStatistics()
        finish_rotation(folder)
        self._open()
        if not any(split_log_name(path.name)[0] == PROGRESS and path.stat().st_size for path in folder.iterdir()):
            self._write(PROGRESS, progress.heading())

    def alert(self, level: str, text: str) -> None:
        """Report what a person should look at; `level` is WARNING or SEVERE. Any thread may."""
        self._write(ALERTS, f"{crawllog.moment(self._now())} {level} {_flat(text)}")

    def no_uri(self, via: str, text: str, why: str) -> None:
        """Note text on the page `via` that is not a URI."""
        quoted = _flat(why).replace('"', "'")
        self._write(URI_ERRORS, f'{crawllog.moment(self._now())} {_flat(via)} "{quoted}" {_flat(text)}')

    def judged(self, number: int, found: Decision, uri: Uri) -> None:
        """Note what the policy of this number in their order has against a link."""
        self._write(SCOPE, line(self._now(), number, found, uri))

    def nonfatal(self, line: CrawlRecord, why: str) -> None:
        """Note why a fetch failed, under its line of crawl.log."""
        self._write(NONFATAL, _under(line, why))

    def runtime(self, line: CrawlRecord, traceback: str) -> None:
        """Note a bug that a URI has met, under its line of crawl.log."""
        self._write(RUNTIME, _under(line, traceback))

    def progress(self, now: Moment) -> str:
        """Write a row of progress-statistics.log, and return it."""
        row = self._progress.row(now)
        self._write(PROGRESS, row)
        return row

    def event(self, what: str, before: str) -> None:
        """Note in progress-statistics.log what happened to the crawl: `event("PAUSED", "Running")`."""
        self._write(PROGRESS, progress.event(self._now(), what, before))

    def rotate(self, stage: str) -> None:
        """Rename the logs for a stage, after the books have renamed theirs; new ones begin. Conflict when that was
        done already."""
        for name in self._names:
            if (target := self._folder / f"{name}.{stage}").exists():
                raise Conflict(str(target), "is there already; nothing was renamed. A stage's logs are rotated once")
        with self._turn:
            self.close()
            _rename(self._folder, self._names, stage)
            self._open()

    def close(self) -> None:
        """Make the logs durable, and close them."""
        for file in self._files.values():
            file.sync()
            file.close()

    def _open(self) -> None:
        self._files = {name: Appended(self._folder / name) for name in self._names}
        for name, file in self._files.items():
            if is_cut(self._folder / name):
                file.append(b"\n")

    def _write(self, name: str, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        with self._turn:
            self._files[name].append(data[:LONGEST] + (b" ...\n" if len(data) > LONGEST else b"\n"))


def finish_rotation(folder: Path) -> None:
    """Rename the logs for the newest stage, if a kill kept them from it. Call it after the books are open."""
    names = {path.name for path in folder.iterdir()}
    stages = {stage for name in names for _, stage in [split_log_name(name)] if stage != "final"}
    if stages:
        newest = max(stages)
        _rename(folder, (name for name in (*OURS, SCOPE) if f"{name}.{newest}" not in names and name in names), newest)


def _rename(folder: Path, names: Iterable[str], stage: str) -> None:
    for name in names:
        try:
            os.rename(folder / name, folder / f"{name}.{stage}")
        except OSError as error:
            raise failed(folder / name, error) from error
    sync_folder(folder)


def _under(line: CrawlRecord, text: str) -> str:
    """A line of crawl.log and a text below it, indented so that no line of it can be taken for another URI's."""
    first = crawllog.render(line).decode().rstrip("\n")
    return "\n".join([first, *(f" {_flat(one)}" for one in text.splitlines())])


def _flat(text: str) -> str:
    """Text on one line."""
    return "".join(char if char.isprintable() or char == "\t" else " " for char in text)


def line(seconds: float, number: int, found: Decision, uri: Uri) -> str:
    """Return the line of a decision, without its end."""
    policy, text = crawllog.column(found.policy), crawllog.column(uri.uri)
    about = {"hopPath": uri.hops, "via": uri.via, "seed": uri.source, "why": found.why}
    until = {"until": crawllog.moment(found.until)} if found.verdict is Verdict.DEFER else {}
    decision = found.verdict.upper()
    return f"{crawllog.moment(seconds)} {number} {policy} {decision} {text} {json.dumps({**about, **until})}"
