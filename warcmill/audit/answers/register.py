"""The state of launches as a register of WARCs has it: noted when it changes, sent, and acknowledged. Writes reports
below `status/` of the state, and to the register.

    state   status/{register}/{job}.{launch}          what it has acknowledged: a JSON object
            status/{register}/{job}.{launch}.behind   it may have an older state: written before anything is sent,
                                                      removed after its answer
            status/{register}/away                    why it does not answer, and when it is asked again

A state replaces the one before, so what was missed meanwhile is never sent. The files may be deleted: then each launch
that a scan meets is sent once more. The register that does not answer is left alone for a minute, then for longer.

A file of a launch has all of these `states` that hold, in this order, and `state` is the last one:

    closed stored verified indexed packaged submitted; then viral; then refused
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256, sha512
from typing import Final

from msgspec import Struct

from warcmill.audit import day_summary, survey
from warcmill.audit.inventory import FileState, Inventory
from warcmill.audit.survey import Survey
from warcmill.base import clock
from warcmill.chain import Wanted
from warcmill.clients.register import WarcRegister
from warcmill.errors import BadInput, Busy, NotReady, Unavailable, WarcmillError
from warcmill.launches import holdings
from warcmill.launches.holdings import Holding, HoldingKind
from warcmill.launches.roots import RootMap
from warcmill.markers import locks
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, JsonObject, Launch, Outcome, Stage

log = logging.getLogger(__name__)
BEHIND, AWAY = ".behind", "away"
FIRST_WAIT, LONGEST_WAIT = 60, 3600  # seconds
AT_ONCE: Final = 60.0  # seconds for which one scan sends
_LARGEST = 1 << 16  # bytes of a report
_is_name = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,62})\.([0-9]{14})(?:\.behind)?").fullmatch


def folder_of(url: str) -> str:
    """The folder of a register's acknowledgements: another one for another register."""
    return f"status/register-{sha256(url.rstrip('/').encode()).hexdigest()[:12]}"


class RegisterLag(Struct, frozen=True):
    """The lag of a register: the number of launches whose newest state it may lack, since when, and why it did not
    answer the last time; '' if it did."""

    launches: int
    since: str = ""
    why: str = ""

    def __str__(self) -> str:
        if not self.launches:
            return "it has the state of every launch"
        return f"it is behind by {self.launches:,}, since {self.since}{f': {self.why}' if self.why else ''}"


def lag(state: MarkerStore, url: str) -> RegisterLag:
    """The lag of a register, as it was noted. Nobody is asked."""
    folder = folder_of(url)
    names = [name for name in state.store.names(folder) if name.endswith(BEHIND)]
    since = min((str(_read(state, f"{folder}/{name}").get("since", "")) for name in names), default="")
    return RegisterLag(len(names), since, str(_read(state, f"{folder}/{AWAY}").get("why", "")))


def tell(
    state: MarkerStore, rootmap: RootMap, register: WarcRegister, launches: Iterable[Launch], wanted: Wanted
) -> tuple[str, ...]:
    """Note which of these launches have changed, and send what the register lacks. Returns what went wrong: the next
    scan tries it again. Busy while another process sends."""
    telling = _Telling(state, rootmap, register, wanted)
    if locks.take(state, telling.folder.replace("/", ".")):
        raise Busy(f"telling {register.url}")
    return tuple(telling.run(launches))


class _Telling:
    def __init__(self, state: MarkerStore, rootmap: RootMap, register: WarcRegister, wanted: Wanted) -> None:
        self._state, self._rootmap, self._register, self._wanted = state, rootmap, register, wanted
        self.folder = folder_of(register.url)

    def run(self, launches: Iterable[Launch]) -> Iterator[str]:
        self._state.store.sweep(self.folder)
        for launch in launches:
            self._note(launch)
        away = _read(self._state, f"{self.folder}/{AWAY}")
        if clock.now() < str(away.get("again", "")) <= _after(LONGEST_WAIT):  # not where the clock was set back
            return
        end, due = time.monotonic() + AT_ONCE, self._behind()
        for done, launch in enumerate(due):
            try:
                self._send(launch)
            except Unavailable as error:
                self._wait(error, away)
                yield f"{error}; {len(due) - done} launches wait"
                return
            except WarcmillError as error:
                yield f"{self._register.url}: {launch}: {error}"
            if time.monotonic() > end:
                break
        self._remove(AWAY)

    def _note(self, launch: Launch) -> None:
        """Note that the state of a launch may be another one than the register has. It costs a stat."""
        known, name = _read(self._state, self._path(launch)), f"{self._path(launch)}{BEHIND}"
        if known.get("basis") != self._basis(launch) and self._state.store.stat(name) is None:
            self._state.store.replace(name, _json({"since": clock.now()}))

    def _behind(self) -> list[Launch]:
        names = sorted(name for name in self._state.store.names(self.folder) if name.endswith(BEHIND))
        return [Launch(match[1], match[2]) for name in names if (match := _is_name(name))]

    def _send(self, launch: Launch) -> None:
        basis = self._basis(launch)  # before it is read: what changes meanwhile is sent again
        data = _json(document(survey.look(self._state, self._rootmap, launch, self._wanted)))
        digest = sha512(data).hexdigest()
        if _read(self._state, self._path(launch)).get("sha512") != digest:
            self._register.put(launch, data)
        self._state.store.replace(self._path(launch), _json({"basis": basis, "sha512": digest, "told": clock.now()}))
        self._remove(f"{launch.job}.{launch.id}{BEHIND}")

    def _wait(self, error: Unavailable, before: JsonObject) -> None:
        """Ask again after a minute, or twice as long as the last time, up to an hour."""
        waited = before.get("wait")
        wait = min(LONGEST_WAIT, 2 * waited) if isinstance(waited, int) else FIRST_WAIT
        kept: JsonObject = {"again": _after(wait), "wait": wait, "why": error.why}
        self._state.store.replace(f"{self.folder}/{AWAY}", _json(kept))

    def _basis(self, launch: Launch) -> str:
        return day_summary.basis(self._state, [launch], self._wanted)

    def _path(self, launch: Launch) -> str:
        return f"{self.folder}/{launch.job}.{launch.id}"

    def _remove(self, name: str) -> None:
        found = self._state.store.stat(f"{self.folder}/{name}")
        if found:
            self._state.store.remove(found.path, found)


def document(seen: Survey) -> JsonObject:
    """The state of a launch: the files of its stages, as `warcmill files` lists them."""
    found = {str(stage): _StageState(seen, stage) for stage in seen.stages}
    files: list[Json] = [found[one.stage].of(one) for one in Inventory(seen).states() if one.stage]
    return {"job": seen.launch.job, "launch_id": seen.launch.id, "ended": seen.ended, "files": files}


class _StageState:
    """The states of the files of a stage."""

    def __init__(self, seen: Survey, stage: Stage) -> None:
        self._holdings = _holdings(seen, stage)
        self._is_indexed = seen.marker("cdx", stage) is not None
        self._sip = [
            word for word, step in (("packaged", "package"), ("submitted", "submit")) if seen.proof(step, stage)
        ]

    def of(self, one: FileState) -> Json:
        states: list[Json] = [*self._states(one)]
        return {
            "stage": one.stage, "root": one.file.root, "path": one.file.path, "size": one.file.size,
            "sha512": one.file.sha512 or "", "stored": one.stored, "state": states[-1], "states": states,
            "why": one.why,
        }  # fmt: skip

    def _states(self, one: FileState) -> Iterator[str]:
        holding = self._holdings.get(one.stored)
        yield "closed"
        if one.stored:
            yield "stored"
        if one.steps.get("verify") == Outcome.OK:
            yield "verified"
        if self._is_indexed and holding and holding.is_indexed:
            yield "indexed"
        if one.stored:
            yield from self._sip
        if holding and (holding.word is HoldingKind.VIRAL or holding.hits):
            yield "viral"
        if Outcome.REFUSED in one.steps.values():
            yield "refused"


def _holdings(seen: Survey, stage: Stage) -> dict[str, Holding]:
    """The WARCs of a stage by their paths in the store; none before they are verified."""
    assembled, verified, scanned = (seen.marker(word, stage) for word in ("assemble", "verify", "viruses"))
    if assembled is None or verified is None:
        return {}
    found = holdings.of_claims(assembled.claim, verified.claim, scanned.claim if scanned else None)
    return {one.stored.path: one for one in found.holdings}


def _read(state: MarkerStore, path: str) -> JsonObject:
    """A report; empty if it is missing or damaged: then its launch is sent once more."""
    try:
        found = json.loads(state.store.read(path, _LARGEST))
    except (NotReady, BadInput, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _after(seconds: int) -> str:
    return clock.text(datetime.now(UTC) + timedelta(seconds=seconds))


def _json(value: JsonObject) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8", "backslashreplace")
