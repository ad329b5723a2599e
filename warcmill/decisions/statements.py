"""Record an operator's statement on a launch: a claim with a reason, where no program can decide.

The claim leaves out who and when: person, host and time are in the marker's run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warcmill import layout
from warcmill.audit import findings, gaps
from warcmill.audit.gaps import Gap
from warcmill.audit.remedies import import_again
from warcmill.audit.survey import Survey
from warcmill.errors import BadInput, NotReady
from warcmill.launches.roots import JobRoots
from warcmill.launches.view import is_own, way_to_end
from warcmill.markers.claim import Claim
from warcmill.markers.state import rests_on
from warcmill.model import Key, Launch, Stage


def is_known(roots: JobRoots, launch: Launch) -> bool:
    """True if any root of engines and writers has a folder of this launch, of any kind."""
    folders = [(store, known.folder(kind, launch)) for store, known in roots.sources() for kind in layout.KINDS]
    folders.append((roots.jobs, f"{launch.job}/{launch.id}"))
    return any(entry is not None and entry.kind == "folder" for store, path in folders for entry in [store.stat(path)])


def close(roots: JobRoots, launch: Launch, reason: str) -> Claim:
    """The claim of 01.closed; BadInput when no folder of the launch exists."""
    if roots.is_imported:
        raise BadInput(str(launch), f"it is imported: what ends it is its import. {import_again(launch)}")
    if not is_known(roots, launch):
        raise BadInput(str(launch), "no engine has a folder of this launch; look at the job's name and the 14 digits")
    return Claim(layout.key("operator.Close", launch), facts={"reason": reason})


def refuse_own(roots: JobRoots, launch: Launch) -> None:
    """BadInput for a launch of the built-in crawler that has no end: its files are not in order before its own stop
    has cut them to its books."""
    if is_own(roots, launch):
        how = way_to_end(roots, launch)
        raise BadInput(str(launch), f"the built-in crawler puts it in order and ends it, also when it died: {how}")


def acceptable(seen: Survey) -> list[Gap]:
    """The findings of a launch that an operator may accept, or has accepted already."""
    return [gap for group in gaps.find(seen) for gap in group if gap.kind in gaps.ACCEPTABLE]


def accept_all(seen: Survey, names: Iterable[str], reason: str) -> list[Claim]:
    """The claim of each name, which accepts all findings under it; its inputs are the markers that report them.

    BadInput when there is no finding of a name. NotReady while files.Checksum has not read the file: it may report
    more. The findings are looked up once.
    """
    known: dict[str, list[Gap]] = {}
    for gap in acceptable(seen):
        known.setdefault(gap.name, []).append(gap)
    return [_claim(seen, name, known.get(name, []), reason) for name in names]


def _claim(seen: Survey, name: str, alike: list[Gap], reason: str) -> Claim:
    if not alike:
        raise BadInput(name, f"nothing is found under this name in {seen.launch}")
    markers = sorted({key for gap in alike for key in _sources(seen, gap)})
    inputs = rests_on(*(seen.markers[key] for key in markers))
    key = layout.key("operator.Accept", seen.launch, finding=layout.finding_id(name))
    kinds = ", ".join(sorted({gap.kind for gap in alike}))
    return Claim(key, inputs, facts={"name": name, "kind": kinds, "reason": reason})


_REPORTED_BY = {
    **dict.fromkeys(("absent log", findings.LOST_VISITS), "pack"),
    **dict.fromkeys((findings.DAMAGED_RESULTS, findings.DEFAULT_BOUND, findings.NOT_RENDERED), "crawl-report"),
    findings.ORPHANED: "package",
    findings.SECOND_OPINION: "verify-sip",
    **dict.fromkeys((findings.ORPHAN, findings.UNRESOLVED), "verify-cdx"),
    **dict.fromkeys((findings.VIRUS, findings.UNSCANNED), "viruses"),
    **dict.fromkeys((findings.UNINDEXED, findings.ODD_DATES), "cdx"),
}  # the steps that report findings of a stage; 03 reports the others


def _sources(seen: Survey, gap: Gap) -> Iterator[Key]:
    """The markers that report a finding."""
    if not gap.stage:
        of_import = gap.kind in (findings.NOT_IMPORTED, findings.NOT_AS_IMPORTED)
        of_seeds = gap.kind in (*findings.KINDS, *findings.OF_REPORTS)
        yield seen.key("import" if of_import else findings.WORD if of_seeds else "process")
        return
    stage = Stage.parse(gap.stage)
    if word := _REPORTED_BY.get(gap.kind):
        yield seen.key(word, stage)
        return
    yield seen.key("assemble", stage)
    if gap.name in seen.items("assemble", stage):  # a file on disk
        if not seen.marker("checksum", stage):
            raise NotReady(
                f"{seen.launch} {stage}", f"files.Checksum has not read {gap.name} yet; accept it after that"
            )
        yield seen.key("checksum", stage)
