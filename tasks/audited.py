"""The line of luigi.cfg as the answers of verbs and pages ask for it."""

from __future__ import annotations

from tasks.config import engines, roots
from tasks.config.sections import jobs_of
from tasks.line import OpenRoots, catalogue_of
from warcmill.audit.answers.line import AuditedLine, JobEngine
from warcmill.stores.opening import open_folder


def audited(line: OpenRoots) -> AuditedLine:
    """The values of an open line; or BadConfig. No root, and no engine, is asked for anything yet."""
    index = line.settings.index
    schedules, wrong = engines.schedules()
    return AuditedLine(
        line.state,
        line.rootmap,
        line.wanted,
        lambda: line.store,
        (lambda: open_folder("index", index)) if index else None,
        (lambda launch: catalogue_of(line).of_launch(launch)) if index else None,
        schedules,
        tuple(wrong),
        _engines(),
    )


def _engines() -> dict[str, JobEngine]:
    driven = engines.driven()
    return {
        job: JobEngine(section, engines.kind_of(section), section in driven)
        for section in roots.engines()
        for job in jobs_of(section)
    }
