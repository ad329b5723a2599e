"""Report a stage to people and other programs: `….info.json` (this stage), `….package.json` (all up to it).

Reports are not evidence: they are made from markers alone, and rewritten when a
step has learned more. `hashes` holds the files that were read: logs and zip
from the start, WARCs once they have checksums. The package of a resumed launch
begins with the stages of the launch that it continues.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

from warcmill import layout
from warcmill.formats.logs.crawlcounts import TOP_HOSTS
from warcmill.launches.roots import JobRoots
from warcmill.markers.claim import Claim
from warcmill.markers.facts.output import TABLES, Assembled
from warcmill.markers.facts.pulse import Continued
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, FileRef, Item, Launch, Outcome, Stage

Report = dict[str, Any]
_LISTS = ("warcs", "viral", "logs", "zips", "refused", "absent", "unnamed")
_NUMBERS = ("lines", "uris", "bytes", "unread")


def rewrite(state: MarkerStore, roots: JobRoots, launch: Launch, changed: Stage) -> None:
    """Write the info of a stage, and the packages of this stage and of the assembled ones after it.

    The step that changes the report calls it once its marker is published. The next step calls it too, since a kill
    between the two would leave the report as it was.
    """
    reports = _reports(state, roots, launch, FINAL)
    for count, report in enumerate(reports, 1):
        stage = Stage.parse(report["stage"])
        if report["launch_id"] == launch.id and stage == changed:
            _write(state, launch, stage, "info", report)
        if report["launch_id"] == launch.id and stage >= changed:
            _write(state, launch, stage, "package", merge(reports[:count]))


def _reports(state: MarkerStore, roots: JobRoots, launch: Launch, last: Stage) -> list[Report]:
    """Reports of a launch's assembled stages up to `last`, preceded by those of the launch it was resumed from."""
    reports: list[Report] = []
    continued: Continued | None = None
    for stage in sorted(stage for stage in state.stages(launch) if stage <= last):
        assembled = _claim(state, launch, stage, "output.AssembleOutput")
        if assembled:
            checksums = _claim(state, launch, stage, "files.Checksum")
            reports.append(info(state, roots, launch, stage, assembled, checksums))
            continued = continued or Assembled.from_claim(assembled).continues
    if continued and continued.launch < launch:
        return _reports(state, roots, continued.launch, continued.checkpoint) + reports
    return reports


def _claim(state: MarkerStore, launch: Launch, stage: Stage, task: str) -> Claim | None:
    marker = state.read(layout.key(task, launch, stage=stage))
    return marker.claim if marker else None


def info(
    state: MarkerStore, roots: JobRoots, launch: Launch, stage: Stage, assembled: Claim, checksums: Claim | None
) -> Report:
    """The report of one stage, from its 03 and, where it exists, its files.checksums. NotReady without its 02."""
    facts = Assembled.from_claim(assembled)
    packed = layout.key("output.PackageLogs", launch, stage=stage)
    logs = state.require(packed).claim.items
    checked = [item.file for item in (checksums.items if checksums else ())]
    zips = [state.marker_file(packed)]
    warcs = [item for item in assembled.items if item.outcome is Outcome.OK]
    return {
        "job_id": launch.job,
        "launch_id": launch.id,
        "stage": str(stage),
        "start_date": facts.start_date,
        "end_date": facts.end_date,
        "warcs": _paths(item.file for item in warcs if roots.kind_of(item.file) == "warcs"),
        "viral": _paths(item.file for item in warcs if roots.kind_of(item.file) == "viral"),
        "logs": _paths(item.file for item in logs),
        "zips": _paths(zips),
        "refused": sorted({*_refused(assembled.items), *_refused(checksums.items if checksums else ())}),
        "absent": list(facts.absent),
        "unnamed": list(facts.unnamed),
        "hashes": {file.label: f"sha512:{file.sha512}" for file in (*zips, *(item.file for item in logs), *checked)},
        "counts": {**{name: facts.numbers[name] for name in _NUMBERS}, **facts.tables},
        **_prefixes(facts),
        **(facts.continues.facts() if facts.continues else {}),
    }


def merge(reports: list[Report]) -> Report:
    """One report of all stages in `reports`: lists are joined, figures added.

    `by_host_top` adds the stages' tops: it lacks a host that is in none of them.
    """
    last = reports[-1]
    return {
        **{name: last[name] for name in ("job_id", "launch_id", "stage", "end_date")},
        "start_date": reports[0]["start_date"],
        **{name: [entry for report in reports for entry in report[name]] for name in _LISTS},
        "hashes": {path: digest for report in reports for path, digest in report["hashes"].items()},
        "counts": _add([report["counts"] for report in reports]),
        **{name: last[name] for name in ("continues", "absent_prefix", "refused_prefix") if name in last},
    }


def _prefixes(facts: Assembled) -> Report:
    """Prefixes that no WARC has, or can have; empty lists are left out."""
    lists = {"absent_prefix": list(facts.absent_prefix), "refused_prefix": list(facts.refused_prefix)}
    return {name: prefixes for name, prefixes in lists.items() if prefixes}


def _add(counts: list[Report]) -> Report:
    tables: dict[str, Counter[str]]
    tables = {name: sum((Counter(stage[name]) for stage in counts), Counter()) for name in TABLES}
    top = sorted(tables["by_host_top"].items(), key=lambda pair: (-pair[1], pair[0]))[:TOP_HOSTS]
    numbers = {name: sum(stage[name] for stage in counts) for name in _NUMBERS}
    return {**numbers, **{name: dict(table) for name, table in tables.items()}, "by_host_top": dict(top)}


def _paths(files: Iterable[FileRef]) -> list[Report]:
    return [{"path": file.label, "size": file.size} for file in sorted(files)]


def _refused(items: tuple[Item, ...]) -> list[str]:
    return [item.file.label for item in items if item.outcome is Outcome.REFUSED]


def _write(state: MarkerStore, launch: Launch, stage: Stage, kind: Literal["info", "package"], report: Report) -> None:
    text = json.dumps(report, ensure_ascii=False, sort_keys=True, indent=1)
    state.store.replace(layout.report_path(launch, stage, kind), f"{text}\n".encode())
