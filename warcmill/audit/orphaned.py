"""SIPs in the store that no 05 ever named, as the next 05 of their stages lists them: left by runs that were killed."""

from __future__ import annotations

from collections.abc import Iterator

from warcmill.audit.crawl_finding import CrawlFinding
from warcmill.audit.survey import Survey
from warcmill.markers.facts import Packaged
from warcmill.model import Stage

ORPHANED = "orphaned"


def find(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """The orphaned SIPs that the 05 of a stage lists."""
    found = seen.facts.get(seen.key("package", stage))
    how = "a run was killed when it had stored it, or its 05 was lost with the state"
    for path in found.orphaned if isinstance(found, Packaged) else ():
        yield CrawlFinding(stage, ORPHANED, path, f"a SIP that no 05 has named: {how}. Nothing uses it")
