"""The last look at the copies outside, in words: its date and what it found, or that there was none. Reads only.

It stands alone: `status` prints it, and needs none of the clients by which `outside` looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commands.console.show import counted
from tasks.config import chains
from tasks.config.chains import cdx_server
from tasks.line import OpenRoots
from warcmill.base.escapes import printable
from warcmill.errors import BadInput, Unavailable
from warcmill.markers import outside_copies
from warcmill.markers.outside_copies import MOST_ASKED, UNASKED
from warcmill.model import Launch
from warcmill.stores.opening import open_folder

NEVER = "copies outside: never looked at again since they were handed over"


def last_time(line: OpenRoots, launches: Sequence[Launch]) -> str:
    """When the copies outside were last looked at, in words; '' where nothing was handed over. `launches`: those of
    which it is asked whether a SIP was submitted."""
    try:
        last = outside_copies.read(line.state.store)
    except BadInput as error:
        return f"copies outside: {printable(str(error))}; run warcmill verify --outside again"
    if last:
        found = verdict(last.looked_at, last.lacks, last.away)
        return f"copies outside: last looked at {last.time}, {last.scope}: {found}"
    return NEVER if _is_handed_over(line, launches) else ""


def _is_handed_over(line: OpenRoots, launches: Sequence[Launch]) -> bool:
    if any(outside_copies.was_submitted(line.state, launch) for launch in launches):
        return True
    url, solr = cdx_server(), chains.solr()
    names = []
    if url:
        from warcmill.index.sink_cdx import name_of  # a client, which few lines need

        names.append(name_of(url))
    names += [solr.name] if solr else []
    if not (names and line.settings.index):
        return False
    try:
        index = open_folder("index", line.settings.index)
        return any(index.names(f"sinks/{name}") for name in names)
    except Unavailable:
        return True  # nobody knows, and the server that has them was never asked


def verdict(looked: Mapping[str, int], lacks: int, away: int) -> str:
    """The result of a look: the copies by their number, the lacks, and the places that do not answer."""
    asked = [(word, number) for word, number in looked.items() if number and word != UNASKED]
    numbers = ", ".join(f"{number:,} {word[:-1] if number == 1 else word}" for word, number in asked)
    found = f"{lacks} missing or different" if lacks else "" if away else "all as they were handed over"
    gone = f"{counted(away, 'place does', 'places do')} not answer" if away else ""
    if not numbers and not lacks and not away:
        return "nothing of them was handed over, so nothing was looked at"
    unasked = looked.get(UNASKED, 0)
    rest = f"{unasked:,} more captures, of WARCs with over {MOST_ASKED:,}, not asked for" if unasked else ""
    return f"{numbers or 'nothing'} looked at: {'; '.join(filter(None, (found, gone, rest)))}"
