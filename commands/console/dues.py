"""Lines of the terminal about what is due: crawls without a launch, and backups that could not be looked up. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from commands.console.show import err
from commands.console.terminal import styled
from warcmill.audit.answers.dues import Dues
from warcmill.audit.due_crawls import JobGap, in_groups
from warcmill.base.escapes import printable


def report_away(dues: Dues) -> bool:
    """Report on stderr that the store did not answer; return whether that is so."""
    if dues.away:
        err(f"{dues.away}; it is unknown which backups are in it")
    return dues.away is not None


def texts(gaps: Iterable[JobGap]) -> Iterator[Text]:
    """Each gap of no launch, grouped by kind, cause and remedy, as those of launches are."""
    alike: dict[tuple[str, str, str], list[JobGap]] = {}
    for gap in in_groups(gaps):
        alike.setdefault((gap.kind, gap.why, gap.todo), []).append(gap)
    for (kind, why, todo), group in alike.items():
        yield Text.assemble((f"  {kind}", "bold red"), f": {printable(why)}")
        for gap in group:
            yield Text.assemble("      ", f"{gap.job} " if gap.job else "", (printable(gap.name), "bold"))
        yield styled(f"      -> {todo}", "cyan")
