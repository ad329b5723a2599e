"""Findings about the crawl itself: what its engine did not write, or wrote wrongly. No run of a step closes one. Pure.

An operator takes note of a finding with `warcmill accept`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from warcmill import chain
from warcmill.audit import lost_seeds, orphan_revisits, orphaned, scanned
from warcmill.audit.crawl_finding import CrawlFinding
from warcmill.audit.survey import Survey
from warcmill.markers.facts import Assembled, SipVerified
from warcmill.model import FINAL, Item, Outcome, Stage, is_writer

NOT_IMPORTED, NOT_AS_IMPORTED = "not imported", "not as imported"
SECOND_OPINION = "second opinion"
_UNEXPECTED = re.compile(r"(.+): ((?:a link|a folder|not) .+)", re.DOTALL)  # 03 lists each as `path: why`


def find(seen: Survey) -> Iterator[CrawlFinding]:
    """The findings of a launch, stage by stage, then those about the whole launch."""
    for stage in seen.stages:
        yield from _refused(seen, stage)
        yield from _absent_logs(seen, stage)
        yield from _named(seen, stage)
        yield from _unexpected(seen, stage)
        yield from scanned.find(seen, stage)
        yield from orphaned.find(seen, stage)
        yield from orphan_revisits.find(seen, stage)
        yield from _unread(seen, stage)
    yield from _not_imported(seen)
    yield from _not_as_imported(seen)
    yield from _holes(seen)
    yield from _got_nothing(seen)
    yield from lost_seeds.find(seen)


def refused(seen: Survey, stage: Stage) -> dict[str, Item]:
    """The WARCs of a stage whose bytes, or names, are wrong for good, by label."""
    judges = [row for row in chain.of_stage(chain.ROWS) if row.judges]
    items = {path: item for row in judges for path, item in seen.items(row.word, stage).items()}
    return {path: item for path, item in items.items() if item.outcome is Outcome.REFUSED}


def _refused(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    for path, item in refused(seen, stage).items():
        why = item.why if item.offset is None else f"at offset {item.offset}: {item.why}"
        yield CrawlFinding(stage, "refused", path, why)


def _absent_logs(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """Logs that were not there when the stage's logs were packed. One that has come since is packed by a redo."""
    own = (file for file in (*seen.listing.logs.get(stage, ()), *seen.listing.job_files) if not is_writer(file.root))
    on_disk = {file.name for file in own}
    logs = seen.logs(stage)
    for plain in logs.absent if logs else ():
        name = f"final/{plain}" if stage.is_final else f"{plain}.{stage}"
        why = "it should be among the stage's logs, and was not there when they were packed"
        came = name.removeprefix("final/") in on_disk or (plain == "reports/" and seen.listing.reports)
        if came:
            why += "; it is there now"
        yield CrawlFinding(stage, "absent log", name, why, seen.key("pack", stage) if came else None)


def _named(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    assembled = seen.assembled(stage)
    for kind, names, why in _lists(assembled) if assembled else ():
        for name in names:
            yield CrawlFinding(stage, kind, name, why)


def _lists(assembled: Assembled) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The lists of names that 03 has, each with the kind of its findings and what is wrong."""
    yield "absent", assembled.absent, "the crawl log names it, and it is not on disk"
    yield "unnamed", assembled.unnamed, "it is on disk, and no crawl log of the launch names it"
    yield "named again", assembled.named_again, "the crawl log names it, and an earlier stage has it already"
    no_warc = "the crawl log names it as a warcPrefix, and no WARC of the launch has it"
    yield "absent prefix", assembled.absent_prefix, no_warc
    yield "refused prefix", assembled.refused_prefix, "the crawl log names it as a warcPrefix, and it cannot be one"
    uncounted = "it is packed; its lines are not counted, and WARCs that it alone names are called unnamed"
    yield "uncounted log", assembled.uncounted_log, uncounted


def _unexpected(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    assembled = seen.assembled(stage)
    for text in assembled.unexpected if assembled else ():
        match = _UNEXPECTED.fullmatch(text)
        name, why = match.groups() if match else (text, "nothing that the line knows")
        yield CrawlFinding(stage, "odd", name, f"it lies in a folder of the launch, and is in no package: {why}")


def _not_imported(seen: Survey) -> Iterator[CrawlFinding]:
    """What may have been a WARC of an imported folder, and could not be taken."""
    imported = seen.imported()
    for text in imported.missing if imported else ():
        name, _, why = text.rpartition(": ")
        yield CrawlFinding(
            None, NOT_IMPORTED, name, f"it lay in the folder that was imported, and was not taken: {why}"
        )


def _not_as_imported(seen: Survey) -> Iterator[CrawlFinding]:
    """WARCs that were gone, or had other bytes, when the line first read what was imported."""
    marker, listed = seen.marker("import"), seen.items("assemble", FINAL)
    checked = seen.items("checksum", FINAL)
    for item in marker.claim.items if marker and seen.marker("assemble", FINAL) else ():
        path = item.file.label
        if path not in listed:
            why = "it was imported, and was gone when the launch was assembled"
            yield CrawlFinding(None, NOT_AS_IMPORTED, path, why)
        elif path in checked and checked[path].file.sha512 != item.file.sha512:
            why = f"its bytes were no longer those that were imported, of sha512 {item.file.sha512}"
            yield CrawlFinding(None, NOT_AS_IMPORTED, path, why)


def _unread(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """WARCs of a submitted SIP that the gate finds whole, and a second reader cannot read."""
    found = seen.facts.get(seen.key("verify-sip", stage))
    for name, why in found.unread if isinstance(found, SipVerified) else ():
        whole = "the gate finds it whole, and others may not be able to read it"
        yield CrawlFinding(
            stage, SECOND_OPINION, f"{SECOND_OPINION}:{name}", f"{why}. It is as it was crawled: {whole}"
        )


def _holes(seen: Survey) -> Iterator[CrawlFinding]:
    complete = seen.complete()
    if complete is None:
        return
    for name in complete.serial_holes:
        yield CrawlFinding(None, "serial hole", name, "WARCs with serials below and above it are there")
    there = [stage.number for stage in seen.stages if stage.number is not None]
    for number in complete.stage_holes:
        between = there and min(there) < number < max(there)
        source = "checkpoints below and above it are there" if between else "job.log says that it was taken"
        yield CrawlFinding(None, "checkpoint hole", f"cp{number:05d}", f"{source}, and none of its logs is there")


def _got_nothing(seen: Survey) -> Iterator[CrawlFinding]:
    """A complete launch that archived no page: all its seeds failed, or it was never started."""
    complete = seen.complete()
    stages = [assembled for stage in seen.stages if (assembled := seen.assembled(stage))]
    if complete is None or not stages or complete.continues:
        return  # all pages of a resumed launch may lie before the checkpoint
    warcs, lines = (sum(assembled.numbers[name] for assembled in stages) for name in ("warcs", "lines"))
    statuses = Counter[str]()
    for assembled in stages:
        statuses.update(assembled.tables["by_status"])
    if warcs and (not statuses or any(map(_is_success, statuses))):
        return  # WARCs without a crawl log: nothing more is known of them
    codes = ", ".join(f"{code} ({number})" for code, number in statuses.most_common(3)) or "none"
    why = f"{warcs} WARCs, and of {lines} lines of the crawl log none is of a page that was got; statuses: {codes}"
    yield CrawlFinding(None, "got nothing", "crawl", why)


def _is_success(code: str) -> bool:
    """True if the status is of a page: HTTP or FTP without an error, or whois (1001). 1 is a DNS lookup, no page."""
    number = int(code) if code.isdecimal() else 0
    return 200 <= number < 400 or number > 1000
