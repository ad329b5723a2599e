"""The copies outside, looked at again: handed-over SIPs, captures and documents; the lacks, and the date of the look.

For `warcmill verify --outside`. Writes that date to the state, where `last_look` finds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing

from msgspec import Struct, field
from msgspec.structs import replace

from commands.console.last_look import verdict
from commands.console.progress import bytes_done
from commands.console.show import as_json, counted
from commands.console.terminal import console, lines, styled
from tasks import sinks
from tasks.config import chains
from tasks.config import chains as configured
from tasks.config.chains import cdx_server
from tasks.line import OpenRoots, destination_of, verified_at
from warcmill import layout
from warcmill.audit import remedies
from warcmill.base import clock
from warcmill.clients.solr import Solr
from warcmill.decisions import redo
from warcmill.errors import Unavailable
from warcmill.index import copies as indexed
from warcmill.index.sink_solr import SolrSink
from warcmill.markers import outside_copies
from warcmill.markers.outside_copies import Lack, LastLook
from warcmill.model import Json, Key, Launch
from warcmill.package import copies
from warcmill.package.copies import Sent
from warcmill.stores.opening import open_folder

_KEY = "[package] destination"
_WHERE_SUBMITTED = f"set {_KEY} to the place where they were submitted"


class _Look(Struct):
    """One look: the numbers looked at, what is not set, and what is missing or differs."""

    line: OpenRoots
    launches: Sequence[Launch]
    looked: Counter[str] = field(default_factory=Counter)
    not_set: list[str] = field(default_factory=list)

    def run(self) -> Iterator[Lack]:
        yield from self._sips()
        yield from self._served()

    def _sips(self) -> Iterator[Lack]:
        todo, wrong = copies.sent(self.line.state, self.launches)
        yield from wrong
        place = configured.destination()
        if not place:
            self.not_set.append(_KEY)
            yield from (Lack(one.launch, one.slip.name, f"{_KEY} is not set", _WHERE_SUBMITTED) for one in todo)
            return
        yield from map(self._with_redo(todo, place), self._read(todo, place))

    def _read(self, todo: Sequence[Sent], place: str) -> Iterator[Lack]:
        where = configured.verified_at()
        total = sum(one.size for one in todo)
        with bytes_done("reading SIPs", total) as advance:
            try:
                at, folder = verified_at(self.line)
                yield from copies.look(todo, at, folder, _shown(where), self.looked, advance)
            except Unavailable as error:
                yield Lack(None, _shown(where), f"{error}; its SIPs were not looked at", is_away=True)
        try:
            yield from copies.look_at_receipts(todo, destination_of(self.line), _shown(place), self.looked)
        except Unavailable as error:
            yield Lack(None, _shown(place), f"{error}; its receipts were not looked at", is_away=True)

    def _with_redo(self, todo: Sequence[Sent], place: str) -> _Remedy:
        return _Remedy(self.line, {one.key: one for one in todo}, _shown(place))

    def _served(self) -> Iterator[Lack]:
        """Captures and documents."""
        url, solr = cdx_server(), chains.solr()
        self.not_set += (["[index] cdx_server"] if not url else []) + (["[text] solr"] if not solr else [])
        if not (url or solr):
            return
        if not self.line.settings.index:
            self.not_set.append("[warcmill] index")
            return
        try:
            index = open_folder("index", self.line.settings.index)
        except Unavailable as error:
            yield Lack(None, "the index root", f"{error}; captures and documents were not looked at", is_away=True)
            return
        state = self.line.state.store
        with sinks.of_cdx(self.line, index) as servers:
            for server in servers:
                yield from indexed.of_cdx(state, index, server, self.launches, self.looked)
        if solr:
            with closing(Solr(solr.server)) as client:
                sink = SolrSink(state, index, client, solr)
                yield from indexed.of_solr(state, index, sink, solr, self.launches, self.looked)


class _Remedy(Struct):
    """The command that hands a SIP, or its receipt, over again."""

    line: OpenRoots
    sent: dict[Key, Sent]
    place: str

    def __call__(self, lack: Lack) -> Lack:
        if lack.again is None:
            return lack
        is_receipt = lack.name.endswith(".receipt.json")
        away = lack.remove if is_receipt else (*lack.remove, *copies.slips(self.sent[lack.again], self.place))
        known = redo.markers(self.line.state, layout.launch_of(lack.again))
        outward = redo.outward([*redo.descendants(known, lack.again), lack.again], frozenset())
        also = "".join(f" --also {name}" for name in outward)
        first = f"move away {', '.join(away)}; then: " if away else ""
        day = layout.launch_of(lack.again).day
        return replace(lack, todo=f"{first}{remedies.redo(lack.again)}{also} && warcmill scan {day}")


def _shown(place: str) -> str:
    """A place without a user and a query, which may be secret."""
    scheme, mark, rest = place.partition("://")
    return f"{scheme}{mark}{rest.partition('?')[0].rpartition('@')[2]}".rstrip("/") if mark else place.rstrip("/")


def run(line: OpenRoots, launches: Sequence[Launch], scope: str, *, as_answer: bool) -> int:
    """Look at the copies of these launches; print what is missing when it is found; the worst decides."""
    look, target, lacks = _Look(line, launches), console(), list[Lack]()
    for lack in look.run():
        lacks.append(lack)
        if not as_answer:
            lines(target, styled(_name(lack), "bold red"), f"    {lack.why}")
            if lack.todo:
                lines(target, styled(f"    -> {lack.todo}", "cyan"))
    away = sum(lack.is_away for lack in lacks)
    if lacks or look.looked:
        last = LastLook(clock.stamp_text(clock.stamp()), scope, dict(look.looked), len(lacks) - away, away)
        outside_copies.write(line.state.store, last)
    if as_answer:
        print(as_json(_json(look, lacks)))
    else:
        lines(target, *(f"{key} is not set: nothing of it was looked at" for key in look.not_set))
        of = counted(len(launches), "launch", "launches")
        lines(target, styled(f"{of}: {verdict(look.looked, len(lacks) - away, away)}", "red" if lacks else "green"))
    return 4 if away else int(bool(lacks))


def _name(lack: Lack) -> str:
    return f"{lack.launch}: {lack.name}" if lack.launch else lack.name


def _json(look: _Look, found: list[Lack]) -> dict[str, Json]:
    findings: list[Json] = [
        {
            "job": lack.launch.job if lack.launch else "",
            "launch_id": lack.launch.id if lack.launch else "",
            "name": lack.name,
            "why": lack.why,
            "todo": lack.todo,
            "unavailable": lack.is_away,
        }
        for lack in found
    ]
    return {"looked_at": dict(look.looked), "not_set": [*look.not_set], "findings": findings}
