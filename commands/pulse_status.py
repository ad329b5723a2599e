"""warcmill pulse status: what the engines report of their jobs now. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass

from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from commands.printing import err
from commands.show import as_json, console, lines, styled
from tasks.config import engines
from tasks.config.sections import jobs_of
from warcmill.clients.engine import CrawlProgress, Engine
from warcmill.errors import WarcmillError
from warcmill.model import Json

HEADS = ("job", "launch", "state", "done", "queued", "per min", "KiB/s", "alerts")
FIGURES = HEADS[3:]
WIDEST = 1_000  # columns


@dataclass(frozen=True, slots=True)
class ReportedJob:
    """A job as its engine reports it. `progress`: None if the engine has no such job, or if there is an `error`."""

    job: str
    engine: str
    progress: CrawlProgress | None = None
    error: WarcmillError | None = None


def run(job: str | None, json: bool) -> int:
    """Ask each engine and print; return the code of the first error, if any."""
    statuses = list(_ask(job))
    if json:
        print(as_json({"jobs": [_json(status) for status in statuses]}))
    else:
        _show(statuses, alone=bool(job))
    errors = [status.error for status in statuses if status.error]
    for text in dict.fromkeys(map(str, errors)):
        err(text)
    return errors[0].exit_code if errors else 0


def _ask(job: str | None) -> Iterator[ReportedJob]:
    """One job, or all. An engine that does not answer is asked once."""
    if job:
        engines.engine_of(job).close()  # BadConfig if it has none
    for section in [engines.section_of(job)] if job else engines.driven():
        jobs = [job] if job else jobs_of(section)
        try:
            with closing(engines.engine_at(section)) as engine:
                yield from _of_engine(engine, section, jobs)
        except WarcmillError as error:
            yield from (ReportedJob(name, section, error=error) for name in jobs)


def _of_engine(engine: Engine, section: str, jobs: tuple[str, ...] | list[str]) -> list[ReportedJob]:
    return [ReportedJob(name, section, engine.progress(name)) for name in jobs]


def _show(statuses: list[ReportedJob], *, alone: bool) -> None:
    target, table = console(), Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for head in HEADS:
        right = head in FIGURES
        table.add_column(head, header_style="bold", justify="right" if right else "left", no_wrap=True)
    for status in statuses:
        table.add_row(*_row(status))
    if statuses:
        if not target.is_terminal:  # a launch id that was cut could not be used
            target.width = max(
                target.width, Measurement.get(target, target.options.update(max_width=WIDEST), table).maximum
            )
        target.print(table)
    else:
        lines(target, "luigi.cfg has no engine to ask: add an [engine.NAME] with a url")
    for status in statuses:
        if status.progress and (status.progress.running or alone):
            lines(
                target, *(styled(f"{status.job}: the engine said: {text}", "yellow") for text in status.progress.said)
            )


def _row(status: ReportedJob) -> tuple[Text, ...]:
    progress = status.progress
    if progress is None:
        return styled(status.job), Text(""), Text("no answer" if status.error else "unknown to its engine", style="red")
    state = Text(progress.state, style="green" if progress.running else "")
    figures = (progress.done, progress.queued, progress.per_minute, progress.kib_per_second, progress.alerts)
    shown = (Text(f"{figure:,}") for figure in (figures if progress.running else ()))
    return styled(status.job), Text(progress.launch_id), state, *shown


def _json(status: ReportedJob) -> dict[str, Json]:
    """A job that its engine does not know, or of which it reported nothing, has the same keys."""
    progress = status.progress or CrawlProgress(False, "", "", 0, 0, 0, 0, 0)
    error = str(status.error) if status.error else ""
    asked: dict[str, Json] = {
        "job": status.job,
        "engine": status.engine,
        "error": error,
        "known": status.progress is not None,
    }
    return {**asked, **asdict(progress), "said": list(progress.said)}
