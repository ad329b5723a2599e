"""The launch that the WARCs of a folder become, and the claim of its marker."""

from __future__ import annotations

from collections.abc import Callable

from warcmill import layout
from warcmill.base.clock import stamp_text
from warcmill.decisions.foreign import Found
from warcmill.decisions.import_order import TASK, Order, why_never_found
from warcmill.decisions.import_taking import Taking
from warcmill.decisions.take_in import Taken
from warcmill.errors import BadInput
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Item, Json, Launch, Outcome
from warcmill.stores.file import FileStore
from warcmill.stores.source_folder import SourceFolder


def launch_of(state: MarkerStore, root: FileStore, source: SourceFolder, order: Order, taking: Taking) -> Launch:
    """The launch that these WARCs become; BadInput when no record has a date, no scan could find it, or it exists."""
    dates = [taken.first for taken in taking.new.values() if taken.first]
    if not order.launch_id and not dates:
        why = "no whole record in it has a date that could name the launch; name it: --launch-id 14 digits"
        raise BadInput(str(source.base), why)
    launch = Launch.parse(order.job, order.launch_id or min(dates))
    if why := why_never_found(launch.id):
        why = f"the earliest date of its records is {stamp_text(launch.id)}, and {why}; name it: --launch-id 14 digits"
        raise BadInput(str(source.base), why)
    if root.stat(str(launch)) or state.store.names(layout.state_folder(launch)) - {"aside", "attempts"}:
        why = "there is such a launch already, with other files; give this one an id of its own: --launch-id 14 digits"
        raise BadInput(str(launch), why)
    return launch


def claim_of(launch: Launch, order: Order, source: SourceFolder, found: Found, taking: Taking) -> Claim:
    items = tuple(
        sorted((_item(launch, taking.names[path], path, taken) for path, taken in taking.new.items()), key=_path)
    )
    known = [f"{path}: imported already, {where}" for path, where in taking.known.items()]
    facts: dict[str, Json] = {
        "by": order.by,
        "source": layout.shown(str(source.base)),
        "layout": order.layout.name,
        "first": _date(min, launch, taking, "first"),
        "last": _date(max, launch, taking, "last"),
        "missing": list(found.missing),
        "left_out": [*sorted([*found.left_out, *taking.doubles, *known])],
    }
    return Claim(layout.key(TASK, launch), items=items, counts=_counts(items), facts=facts)


def _path(item: Item) -> str:
    return item.file.path


def _item(launch: Launch, name: str, path: str, taken: Taken) -> Item:
    place = f"{layout.OutputLayout.JOB_FIRST.folder('warcs', launch)}/{name}"
    file = FileRef("output", place, taken.size, taken.sha512)
    outcome = Outcome.OK if taken.ok else Outcome.REFUSED
    return Item(file, outcome, why=taken.why, offset=taken.offset, facts={"origin": layout.shown(path)})


def _date(choose: Callable[[list[str]], str], launch: Launch, taking: Taking, name: str) -> str:
    """The earliest or latest date of a record as text; the launch's own where no record has one."""
    dates = [date for taken in taking.new.values() if (date := str(getattr(taken, name)))]
    return stamp_text(choose(dates) if dates else launch.id)


def _counts(items: tuple[Item, ...]) -> dict[str, Json]:
    refused = sum(item.outcome is Outcome.REFUSED for item in items)
    total = sum(item.file.size for item in items)
    return {"files": len(items), "bytes": total, "ok": len(items) - refused, "refused": refused}
