"""Findings of the scan for viruses: WARCs with hits, and WARCs with payloads that were not scanned. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from warcmill import chain, layout
from warcmill.audit.crawl_finding import CrawlFinding
from warcmill.audit.survey import Survey
from warcmill.markers.facts import DAMAGED, Hit, Scanned, ScannedFile
from warcmill.model import Key, Outcome, Stage

VIRUS, UNSCANNED = "virus", "not scanned"
SHOWN = 3  # hits that a finding lists; the marker has all of them


def find(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """The findings of one stage; none before it is scanned. A name has the kind before the file's label, for the file
    may be refused too, and each is accepted by its name."""
    found = seen.facts.get(seen.key("viruses", stage))
    files = found.files if isinstance(found, Scanned) else {}
    late = next(_without(seen, stage), None) if any(file.hits for file in files.values()) else None
    for label, item in seen.items("viruses", stage).items():
        file = files[item.made or item.file]
        if file.hits:
            why = _hits(file.hits) + (f"; {late.task} was done before that and has the record" if late else "")
            yield CrawlFinding(stage, VIRUS, f"{VIRUS}:{label}", why, late)
        if why := _not_scanned(file, refused=item.outcome is Outcome.REFUSED):
            yield CrawlFinding(stage, UNSCANNED, f"unscanned:{label}", why)


def _hits(hits: tuple[Hit, ...]) -> str:
    shown = "; ".join(f"{hit.signature} at offset {hit.offset}, {hit.uri}" for hit in hits[:SHOWN])
    more = f"; and {len(hits) - SHOWN} more" if len(hits) > SHOWN else ""
    payloads = "1 payload has" if len(hits) == 1 else f"{len(hits)} payloads have"
    return f"{payloads} a hit, and no index takes the record: {shown}{more}"


def _not_scanned(file: ScannedFile, *, refused: bool) -> str:
    """Why payloads were not scanned. What follows the fault in a refused WARC is reported by that finding."""
    tally = {why: number for why, number in file.not_scanned.items() if not (refused and why == DAMAGED)}
    numbers = ((f"{number} payload{'s' * (number > 1)}", why) for why, number in sorted(tally.items()))
    return ", ".join(map(": ".join, numbers))


def _without(seen: Survey, stage: Stage) -> Iterator[Key]:
    """The steps of later chains that took this stage's WARCs without knowing the hits: they rest on its
    files.verified, and not on its files.scanned."""
    taken, known = (layout.marker_path(seen.key(word, stage)) for word in ("verify", "viruses"))
    scan = chain.by_word(chain.ROWS)["viruses"].scan
    inputs = {key: {source.marker for source in marker.claim.inputs} for key, marker in seen.markers.items()}
    found = sorted(key for key, names in inputs.items() if taken in names and known not in names)
    for row in chain.ROWS:
        if row.scan != scan and not row.logs_only:
            yield from (key for key in found if key.task == row.task)
