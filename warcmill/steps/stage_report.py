"""A stage told to people and other programs: `….info.json` (this stage), `….package.json` (all up to it).

Reports, not evidence: made from markers alone, and rewritten whenever a step
has learned more. `hashes` holds what has been read: logs and zip from the
start, WARCs once their checksums are known. The package of a resumed launch begins
with the stages of the launch that it continues.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from warcmill import layout
from warcmill.evidence import Claim
from warcmill.formats.crawlcounts import TOP_HOSTS
from warcmill.launches import Engines
from warcmill.model import FINAL, FileRef, Item, Launch, Outcome, Stage
from warcmill.state import State
from warcmill.steps import continued

Report = dict[str, Any]
_LISTS = ("warcs", "viral", "logs", "zips", "refused", "absent", "unnamed")
_NUMBERS = ("lines", "uris", "bytes", "unread")
_TABLES = ("by_status", "by_mime", "by_host_top")


def rewrite(state: State, engines: Engines, launch: Launch, claim: Claim) -> None:
    """Write the reports of a claim's stage, and the packages of the stages after it that are assembled.

    `claim` is about to be published, as 03 or as files.checksums; all others are read.
    """
    stage = Stage.parse(claim.key["stage"])
    reports = _reports(state, engines, launch, FINAL, claim)
    for place, report in enumerate(reports, 1):
        one = Stage.parse(report["stage"])
        if report["launch_id"] == launch.id and one == stage:
            _write(state, launch, one, "info", report)
        if report["launch_id"] == launch.id and one >= stage:
            _write(state, launch, one, "package", merge(reports[:place]))


def _reports(state: State, engines: Engines, launch: Launch, last: Stage, fresh: Claim | None = None) -> list[Report]:
    """The assembled stages of a launch up to `last`; before them those of the launch that it was resumed from."""
    known = {*state.stages(launch), *([Stage.parse(fresh.key["stage"])] if fresh else [])}
    reports: list[Report] = []
    for one in sorted(stage for stage in known if stage <= last):
        assembled = _claim(state, launch, one, "output.AssembleOutput", fresh)
        if assembled:
            checksums = _claim(state, launch, one, "files.Checksum", fresh)
            reports.append(info(state, engines, launch, one, assembled, checksums))
    told = next((found for report in reports if (found := continued.in_facts(launch, report))), None)
    if told and told.launch < launch:
        return _reports(state, engines, told.launch, told.checkpoint) + reports
    return reports


def _claim(state: State, launch: Launch, stage: Stage, task: str, fresh: Claim | None) -> Claim | None:
    key = layout.key(task, launch, stage=stage)
    if fresh and key == fresh.key:
        return fresh
    found = state.read(key)
    return found.claim if found else None


def info(
    state: State, engines: Engines, launch: Launch, stage: Stage, assembled: Claim, checksums: Claim | None
) -> Report:
    """The report of one stage."""
    packed = layout.key("output.PackageLogs", launch, stage=stage)
    logs = state.need(packed).claim.items
    read = [item.file for item in (checksums.items if checksums else ())]
    zips = [state.marker_file(packed)]
    warcs = [item for item in assembled.items if item.outcome is Outcome.OK]
    return {
        "job_id": launch.job,
        "launch_id": launch.id,
        "stage": str(stage),
        "start_date": assembled.facts["start_date"],
        "end_date": assembled.facts["end_date"],
        "warcs": _paths(item.file for item in warcs if engines.kind_of(item.file) == "warcs"),
        "viral": _paths(item.file for item in warcs if engines.kind_of(item.file) == "viral"),
        "logs": _paths(item.file for item in logs),
        "zips": _paths(zips),
        "refused": sorted({*_refused(assembled.items), *_refused(checksums.items if checksums else ())}),
        "absent": assembled.facts["absent"],
        "unnamed": assembled.facts["unnamed"],
        "hashes": {file.label: f"sha512:{file.sha512}" for file in (*zips, *(item.file for item in logs), *read)},
        "counts": {name: assembled.counts[name] for name in (*_NUMBERS, *_TABLES)},
        **_told(assembled.facts),
    }


def merge(reports: list[Report]) -> Report:
    """All stages up to the last of `reports` as one, a resumed launch's earlier ones too: lists joined, figures added.

    `by_host_top` adds the stages' tops: a host that is in none of them is not in it.
    """
    last = reports[-1]
    return {
        **{name: last[name] for name in ("job_id", "launch_id", "stage", "end_date")},
        "start_date": reports[0]["start_date"],
        **{name: [entry for report in reports for entry in report[name]] for name in _LISTS},
        "hashes": {path: digest for report in reports for path, digest in report["hashes"].items()},
        "counts": _add([report["counts"] for report in reports]),
        **_told(last),
    }


def _told(told: Mapping[str, Any]) -> Report:
    """What most launches have nothing of: one that they were resumed from, prefixes that no WARC has."""
    return {name: told[name] for name in ("continues", "absent_prefix", "refused_prefix") if name in told}


def _add(counts: list[Report]) -> Report:
    tables: dict[str, Counter[str]] = {name: sum((Counter(one[name]) for one in counts), Counter()) for name in _TABLES}
    top = sorted(tables["by_host_top"].items(), key=lambda pair: (-pair[1], pair[0]))[:TOP_HOSTS]
    numbers = {name: sum(one[name] for one in counts) for name in _NUMBERS}
    return {**numbers, **{name: dict(table) for name, table in tables.items()}, "by_host_top": dict(top)}


def _paths(files: Iterable[FileRef]) -> list[Report]:
    return [{"path": file.label, "size": file.size} for file in sorted(files)]


def _refused(items: tuple[Item, ...]) -> list[str]:
    return [item.file.label for item in items if item.outcome is Outcome.REFUSED]


def _write(state: State, launch: Launch, stage: Stage, kind: Literal["info", "package"], report: Report) -> None:
    text = json.dumps(report, ensure_ascii=False, sort_keys=True, indent=1)
    state.store.replace(layout.report_path(launch, stage, kind), f"{text}\n".encode())
