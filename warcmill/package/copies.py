"""The SIPs and receipts that were handed over, looked for again; and the launches that were submitted. Reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from warcmill import layout
from warcmill.base import digests
from warcmill.base.progress import Advance, Counted
from warcmill.errors import NotReady, Unavailable, WarcmillError
from warcmill.markers.facts.package import Packaged, Submitted
from warcmill.markers.outside_copies import Lack
from warcmill.markers.state import MarkerStore
from warcmill.model import Key, Launch, Stage
from warcmill.package import sips, submit
from warcmill.package.submit import SUBMIT, Slip, Torn
from warcmill.stores import Store

BY_HAND = "write it by hand: 'When a submission stands' in docs/operate/publishing.md"


class Sent(Struct, frozen=True):
    """A SIP that was handed over: what 06.submitted claims, the size that 05.packaged has, and the key that earlier
    versions wrote into its receipt."""

    launch: Launch
    key: Key
    slip: Submitted
    size: int
    former: str


def sent(state: MarkerStore, launches: Sequence[Launch]) -> tuple[list[Sent], list[Lack]]:
    """The SIPs of these launches that were handed over; a lack for each whose markers cannot be read."""
    found, wrong = list[Sent](), list[Lack]()
    for launch in launches:
        names = state.store.names(layout.state_folder(launch))
        for stage in sorted(map(Stage.parse, layout.stages_with(names, SUBMIT, launch))):
            key = layout.key(SUBMIT, launch, stage=stage)
            try:
                slip = Submitted.from_claim(state.require(key).claim)
                built = state.require(layout.key(sips.BUILD, launch, stage=stage))
                size = Packaged.from_claim(built.claim).sip.size
            except WarcmillError as error:
                todo = f"warcmill why {launch.job} {launch.id}"
                wrong.append(Lack(launch, f"state:{layout.marker_path(key)}", str(error), todo))
            else:
                found.append(Sent(launch, key, slip, size, built.digest))
    return found, wrong


def look(
    todo: Sequence[Sent], at: Store, folder: str, place: str, looked: Counter[str], advance: Advance
) -> Iterator[Lack]:
    """Read each SIP in `folder` of the store `at` again; the rest waits where the store does not answer.

    `place` is how operators write that store.
    """
    for one in todo:
        path = f"{folder}{one.slip.name}"
        name = f"{place}/{path}"
        try:
            why = _differs(at, path, one, advance)
        except NotReady:
            took = "; if the ingesting system took it away, set [package] verified_at to where it puts SIPs"
            yield Lack(one.launch, name, f"it is missing{took if folder else ''}", again=one.key)
        except (Unavailable, OSError) as error:
            yield Lack(None, place, f"{error}; the rest of its SIPs was not looked at", is_away=True)
            return
        else:
            if why:
                yield Lack(one.launch, name, why, again=one.key, remove=(name,))
        looked["SIPs"] += 1


def _differs(at: Store, path: str, one: Sent, advance: Advance) -> str:
    """The difference of a SIP from the one that was submitted; '' if it does not. NotReady if it is not there."""
    there = at.stat(path)
    if there is None or there.kind != "file":
        raise NotReady(path, "it is missing")
    if there.size != one.size:
        return f"it has {there.size} bytes, and the SIP that was submitted {one.size}"
    with at.open(path) as stream:
        _, sha512 = digests.sha512(Counted(stream, advance))
    if sha512 != one.slip.sha512:
        return f"its sha512 is {sha512[:16]}..., and that of the SIP that was submitted {one.slip.sha512[:16]}..."
    return ""


def look_at_receipts(todo: Sequence[Sent], destination: Store, place: str, looked: Counter[str]) -> Iterator[Lack]:
    """Read the receipt of each SIP again."""
    for one in todo:
        path = layout.receipt_path(one.slip.name)
        try:
            lack = _of_receipt(destination, path, one, place)
        except (Unavailable, OSError) as error:
            yield Lack(None, place, f"{error}; the rest of its receipts was not looked at", is_away=True)
            return
        looked["receipts"] += 1
        if lack:
            yield lack


def _of_receipt(destination: Store, path: str, one: Sent, place: str) -> Lack | None:
    found = _slip(destination, path)
    if isinstance(found, Slip) and found.key in (one.slip.key, one.former) and found.sha512 == one.slip.sha512:
        return None
    if found is None:
        why = "the receipt is missing"
    elif isinstance(found, Torn):
        why = f"the receipt cannot be read: {found.why}"
    else:
        why = "the receipt is of another SIP"
    if destination.stat(layout.sending_path(one.slip.name)) is None:
        return Lack(one.launch, f"{place}/{path}", why, BY_HAND)
    return Lack(one.launch, f"{place}/{path}", why, again=one.key, remove=(f"{place}/{path}",) if found else ())


def slips(one: Sent, place: str) -> tuple[str, ...]:
    """The slips of a SIP: without them it is handed over again."""
    return tuple(f"{place}/{path(one.slip.name)}" for path in (layout.receipt_path, layout.sending_path))


def _slip(destination: Store, path: str) -> Slip | Torn | None:
    try:
        with destination.open(path) as file:
            return submit.decode(file.read(submit.LARGEST + 1), sending=False)
    except NotReady:
        return None
