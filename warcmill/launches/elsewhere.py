"""Have extracts made by other processes or machines: each WARC is a piece of work of `per_warc`."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from warcmill.errors import Unavailable
from warcmill.formats.text import tools
from warcmill.launches import cdx_extracts, text_extracts
from warcmill.launches.extracts import Extracts, Kind
from warcmill.launches.per_warc import NOWHERE, Order, Place, What, make, reach
from warcmill.scale import Ready, Runner
from warcmill.scale.work import Work, versions


class Elsewhere:
    """Extracts are made by the workers of a runner, which reach the same store and index root."""

    def __init__(self, runner: Runner, place: Place, extracts: Extracts) -> None:
        self._runner, self._place, self._extracts = runner, place, extracts
        self._versions = versions(tools.PACKAGES)
        self._ready = Ready(1)

    @property
    def has_office(self) -> bool:
        return self._place.tika is not None

    def at_once(self, number: int) -> int:
        """As the runner can. Raises what keeps a worker from the work, before any is begun."""
        if number:
            probe = Work("what workers need", reach, self._place, self._versions)
            self._ready = self._runner.ready(number, probe)
        return self._ready.at_once

    def cdx(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> cdx_extracts.Tally:
        tally: cdx_extracts.Tally = self._make(What.CDX, (cdx_extracts.CDXJ,), path, sha512, offsets)
        return tally

    def text(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> text_extracts.Tally:
        tally: text_extracts.Tally = self._make(What.TEXT, text_extracts.KINDS, path, sha512, offsets)
        return tally

    def _make(self, what: What, kinds: Sequence[Kind], path: str, sha512: str, offsets: Set[int]) -> Any:
        order = Order(what, self._place, path, sha512, frozenset(offsets), self._ready.cores)
        tally = self._runner.do(Work(f"store:{path}", make, order, self._versions))
        if not any(self._extracts.has(kind, sha512) for kind in kinds):
            why = f"a worker made it, and it is not here: share the folder {self._place.index} with all workers"
            raise Unavailable(f"index:{kinds[-1].path(sha512)}", why)
        return tally
