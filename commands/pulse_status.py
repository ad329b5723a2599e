"""warcmill pulse status: what the engines say of their jobs, now. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass

from rich.table import Table
from rich.text import Text

from commands.printing import err
from commands.show import as_json, console, lines, styled
from tasks import engines
from tasks.sections import jobs_of
from warcmill.clients.engine import Engine, Progress
from warcmill.errors import WarcmillError
from warcmill.model import Json

HEADS = ("job", "launch", "state", "done", "queued", "per min", "KiB/s", "alerts")
FIGURES = HEADS[3:]


@dataclass(frozen=True, slots=True)
class Told:
    """A job as its engine tells of it: its progress, None when it has no such job; or the error that came instead."""

    job: str
    engine: str
    progress: Progress | None = None
    error: WarcmillError | None = None


def run(job: str | None, json: bool) -> int:
    """Ask each engine, print; the code of the first error, if there was one."""
    told = list(_ask(job))
    if json:
        print(as_json({"jobs": [_json(one) for one in told]}))
    else:
        _show(told, alone=bool(job))
    errors = [one.error for one in told if one.error]
    for text in dict.fromkeys(map(str, errors)):
        err(text)
    return errors[0].exit_code if errors else 0


def _ask(job: str | None) -> Iterator[Told]:
    """One job, or all; an engine that does not answer is asked once."""
    if job:
        engines.engine_of(job).close()  # BadConfig when it has none
    for section in [engines.section_of(job)] if job else engines.driven():
        jobs = [job] if job else jobs_of(section)
        try:
            with closing(engines.engine_at(section)) as engine:
                yield from _of_engine(engine, section, jobs)
        except WarcmillError as error:
            yield from (Told(one, section, error=error) for one in jobs)


def _of_engine(engine: Engine, section: str, jobs: tuple[str, ...] | list[str]) -> list[Told]:
    return [Told(one, section, engine.progress(one)) for one in jobs]


def _show(told: list[Told], *, alone: bool) -> None:
    target, table = console(), Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for head in HEADS:
        right = head in FIGURES
        table.add_column(head, header_style="bold", justify="right" if right else "left", no_wrap=True)
    for one in told:
        table.add_row(*_row(one))
    if told:
        target.print(table)
    else:
        lines(target, "no engine of luigi.cfg can be asked: [engine.NAME] with a url says where one is")
    for one in told:
        if one.progress and (one.progress.running or alone):
            lines(target, *(styled(f"{one.job}: the engine said: {text}", "yellow") for text in one.progress.said))


def _row(one: Told) -> tuple[Text, ...]:
    found = one.progress
    if found is None:
        return styled(one.job), Text(""), Text("no answer" if one.error else "unknown to its engine", style="red")
    state = Text(found.state, style="green" if found.running else "")
    figures = (found.done, found.queued, found.per_minute, found.kib_per_second, found.alerts)
    shown = (Text(f"{figure:,}") for figure in (figures if found.running else ()))
    return styled(one.job), Text(found.launch_id), state, *shown


def _json(one: Told) -> dict[str, Json]:
    """A job that its engine does not know, or of which it said nothing, has the same keys."""
    found = one.progress or Progress(False, "", "", 0, 0, 0, 0, 0)
    error = str(one.error) if one.error else ""
    asked: dict[str, Json] = {"job": one.job, "engine": one.engine, "error": error, "known": one.progress is not None}
    return {**asked, **asdict(found), "said": list(found.said)}
