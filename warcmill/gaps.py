"""What stands between a launch and a whole archive: every gap by name, why, and the command to type next. Pure."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from warcmill import chain, layout, left_out
from warcmill.attempts import Attempt
from warcmill.chain import Row
from warcmill.model import Item, Json, Key, Launch, Outcome, Stage, is_writer
from warcmill.survey import Survey, texts

# Findings about the crawl itself. No run of a step mends them: an operator takes note of them with `warcmill accept`.
ACCEPTABLE = (
    "refused", "absent", "unnamed", "named again", "absent prefix", "refused prefix", "serial hole", "checkpoint hole",
    "absent log", "uncounted log", "odd", "got nothing",
)  # fmt: skip
# What a file put back, or another run, mends. All else that is no finding is for `warcmill redo`.
MENDED = ("foreign marker", "broken marker", "lacking", "gone", "changed", "unavailable", "unreadable")

_ODD = re.compile(r"(.+): ((?:a link|a folder|not) .+)", re.DOTALL)  # 03 tells of each as `path: why`


@dataclass(frozen=True, order=True, slots=True)
class Gap:
    """One thing that is not as it should be. `todo` is the command to type next."""

    launch: Launch
    stage: str  # '' when it is the launch's as a whole
    kind: str
    name: str
    why: str
    todo: str


def find(seen: Survey) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """The gaps of a launch, and those that an operator has accepted."""
    found: dict[bool, list[Gap]] = {False: [], True: []}
    for gap in _all(seen):
        found[gap.kind in ACCEPTABLE and is_accepted(seen, gap.name)].append(gap)
    return in_order(found[False]), in_order(found[True])


def in_order(found: Iterable[Gap]) -> tuple[Gap, ...]:
    """Gaps as they are best closed: what is mended first, then what is redone, and what is accepted last of all,
    for a redo moves the word of an operator aside with the marker that it rests on."""
    return tuple(sorted(found, key=lambda gap: 0 if gap.kind in MENDED else 2 if gap.kind in ACCEPTABLE else 1))


def is_accepted(seen: Survey, name: str) -> bool:
    """Whether `warcmill accept` has left a marker for the finding of this name."""
    return layout.key("operator.Accept", seen.launch, finding=layout.finding_id(name)) in seen.markers


def _all(seen: Survey) -> Iterator[Gap]:
    yield from _unsound(seen)
    yield from _lacking(seen)
    yield from _left_out(seen)  # before what is stale by it: the redo of the earlier step is for both
    yield from _stale(seen)
    for stage in seen.stages:
        yield from _refused(seen, stage)
        yield from _absent_logs(seen, stage)
        yield from _named(seen, stage)
        yield from _odd(seen, stage)
        yield from _still_carried(seen, stage)
        yield from _not_as_listed(seen, stage)
    yield from _holes(seen)
    yield from _got_nothing(seen)
    yield from _late(seen)


def _gap(seen: Survey, stage: Stage | str | None, kind: str, name: str, why: str, todo: str) -> Gap:
    return Gap(seen.launch, str(stage or ""), kind, name, why, todo)


def _unsound(seen: Survey) -> Iterator[Gap]:
    for name, one in seen.unsound.items():
        key = layout.parse_marker_name(name)
        stage = dict(key.params).get("stage", "") if key else ""
        path = f"{layout.state_folder(seen.launch)}/{name}"
        by_hand = f"look at state:{path}, and move it away by hand"
        todo = by_hand if key is None or key.task == "pulse.Started" or one.kind == "foreign" else _again(key)
        yield _gap(seen, stage, f"{one.kind} marker", name, one.why, todo)


def _lacking(seen: Survey) -> Iterator[Gap]:
    """The first step that is missing of every run of missing steps; those after it wait for it."""
    if not seen.ended and not seen.closed:
        return
    of_launch = [row for row in chain.steps(chain.ROWS) if row.scope == "launch" and seen.due(row.word)]
    yield from _lack(seen, None, [row for row in of_launch if not row.after])
    for stage in sorted(seen.closed):
        rows = chain.of_stage(chain.ROWS)
        yield from _lack(seen, stage, [row for row in rows if seen.due(row.word, stage)])
        tried_in_vain = [row for row in rows if row.due == chain.ASKED and seen.failed(row.word, stage)]
        yield from _lack(seen, stage, tried_in_vain)
    for row in of_launch:
        if row.after and all(seen.marker(row.after, stage) for stage in seen.closed):
            yield from _lack(seen, None, [row])


def _lack(seen: Survey, stage: Stage | None, rows: Iterable[Row]) -> Iterator[Gap]:
    missing = {word: before for word, before in _befores(rows).items() if not seen.marker(word, stage)}
    for word, before in missing.items():
        key = seen.key(word, stage)
        name = layout.marker_name(key)
        if not (before and before[-1] in missing) and name not in seen.unsound:
            waiting = [later for later, needs in missing.items() if word in needs]
            after = f"; after it: {', '.join(waiting)}" if waiting else ""
            yield _gap(seen, stage, "lacking", name, tried(seen.attempts.get(key, ())) + after, _mend(seen, stage, key))


def _befores(rows: Iterable[Row]) -> dict[str, tuple[str, ...]]:
    """Each of some steps with those of them that come before it: the one whose files it works on, or the last one."""
    found: dict[str, tuple[str, ...]] = {}
    last: tuple[str, ...] = ()
    for row in rows:
        found[row.word] = (*found[row.after], row.after) if row.after in found else last
        last = (*found[row.word], row.word)
    return found


def _again(key: Key) -> str:
    """The command that leaves a marker anew: the step's own, for a scan may look at the later ones alone."""
    launch = f"{key['job']} {key['launch_id']}"
    said = {
        "operator.Close": f"warcmill close {launch} --reason TEXT",
        "operator.Accept": f"warcmill accept NAME --launch {launch} --reason TEXT",
    }
    return said.get(key.task) or step(key)


def _mend(seen: Survey, stage: Stage | None, key: Key) -> str:
    """The scan, unless the last marker that it asks for is there: a scan looks no further than that."""
    by = chain.by_task(chain.ROWS)[key.task].scan
    steps = ((row.word, stage if row.scope == "stage" else None) for row in chain.steps(chain.ROWS) if row.scan == by)
    asked = [one for one in steps if seen.due(*one)]
    return scan(seen.launch, key) if asked and not seen.marker(*asked[-1]) else step(key)


def tried(attempts: tuple[Attempt, ...]) -> str:
    """What the last attempt at a step came to."""
    if not attempts:
        return "it was not run yet"
    if any("again" in line for line in attempts[-1].lines):
        return "an operator has asked for a file of it to be done again"
    return attempts[-1].error or "its last run was cut short, or is going on; the next goes on where that one stopped"


def stale(seen: Survey) -> dict[Key, str]:
    """The markers that rest on a claim which is no longer the current one, and on which."""
    current = {layout.marker_path(key): found.digest for key, found in seen.markers.items()}
    others = [
        (key, one.marker)
        for key, found in seen.markers.items()
        for one in found.claim.inputs
        if current.get(one.marker) != one.claim
    ]
    due = (layout.marker_path(seen.key(*step)) for step in seen.steps() if seen.due(*step)) if others else ()
    missing = set(due) - set(current)
    return {key: marker for key, marker in others if marker not in missing}


def _stale(seen: Survey) -> Iterator[Gap]:
    for key, on in sorted(stale(seen).items()):
        name = layout.marker_name(key)
        why = f"{key.task} was done with another {on.rpartition('/')[2]} than there is now"
        yield _gap(seen, dict(key.params).get("stage"), "stale", name, why, redo(key))


def refused(seen: Survey, stage: Stage) -> dict[str, Item]:
    """The WARCs of a stage whose bytes, or names, are wrong for good."""
    judges = [row for row in chain.of_stage(chain.ROWS) if row.judges]
    items = {path: item for row in judges for path, item in seen.items(row.word, stage).items()}
    return {path: item for path, item in items.items() if item.outcome is Outcome.REFUSED}


def _refused(seen: Survey, stage: Stage) -> Iterator[Gap]:
    for path, item in refused(seen, stage).items():
        why = item.why if item.offset is None else f"at offset {item.offset}: {item.why}"
        yield _gap(seen, stage, "refused", path, why, accept(seen.launch, path))


def _left_out(seen: Survey) -> Iterator[Gap]:
    for one in left_out.find(seen.markers):
        yield _gap(seen, one.key["stage"], one.kind, one.path, one.why, redo(one.key))


def _absent_logs(seen: Survey, stage: Stage) -> Iterator[Gap]:
    own = (file for file in (*seen.listing.logs.get(stage, ()), *seen.listing.job_files) if not is_writer(file.root))
    there = {file.name for file in own}
    for plain in texts(seen.marker("pack", stage), "absent"):
        name = f"final/{plain}" if stage.is_final else f"{plain}.{stage}"
        why = "it should be among the stage's logs, and was not there when they were packed"
        came = name.removeprefix("final/") in there or (plain == "reports/" and seen.listing.reports)
        if came:
            why += "; it is there now"
        todo = redo(seen.key("pack", stage)) if came else accept(seen.launch, name)
        yield _gap(seen, stage, "absent log", name, why, todo)


def _odd(seen: Survey, stage: Stage) -> Iterator[Gap]:
    for text in texts(seen.marker("assemble", stage), "odd"):
        found = _ODD.fullmatch(text)
        name, why = found.groups() if found else (text, "nothing that the line knows")
        why = f"it lies in a folder of the launch, and is in no package: {why}"
        yield _gap(seen, stage, "odd", name, why, accept(seen.launch, name))


def _still_carried(seen: Survey, stage: Stage) -> Iterator[Gap]:
    """Before `final` a stage may leave a WARC that is open to the next; once that is assembled, it is some stage's."""
    later = [seen.marker("assemble", one) for one in seen.stages if one > stage]
    if not all(later) or not seen.marker("assemble", seen.stages[-1]):
        return  # it may yet come; a marker that is missing is a gap of its own
    told = {layout.closed_name(path.rpartition("/")[2]) for one in seen.stages for path in seen.items("assemble", one)}
    told.update(name for found in later for fact in ("absent", "named_again", "carried") for name in texts(found, fact))
    for name in sorted(set(texts(seen.marker("assemble", stage), "carried")) - told):
        why = "this stage left it to the next, for it was open, and no later stage has it"
        yield _gap(seen, stage, "carried", name, why, redo(seen.key("assemble", stage)))


def _named(seen: Survey, stage: Stage) -> Iterator[Gap]:
    found = seen.marker("assemble", stage)
    words = {
        "absent": "the crawl log names it, and it is not on disk",
        "unnamed": "it is on disk, and no crawl log of the launch names it",
        "named_again": "the crawl log names it, and an earlier stage has it already",
        "absent_prefix": "the crawl log names it as a warcPrefix, and no WARC of the launch has it",
        "refused_prefix": "the crawl log names it as a warcPrefix, and it cannot be one",
        "uncounted_log": "it is packed; its lines are not counted, and WARCs that it alone names are called unnamed",
    }
    for fact, why in words.items():
        for name in texts(found, fact):
            yield _gap(seen, stage, fact.replace("_", " "), name, why, accept(seen.launch, name))


def _not_as_listed(seen: Survey, stage: Stage) -> Iterator[Gap]:
    on_disk = seen.warcs()
    safe = seen.items("verify", stage)
    for path, item in seen.items("assemble", stage).items():
        found = on_disk.get(path)
        if path in safe or (found and found.size == item.file.size):
            continue
        state = f"has {found.size} bytes on disk" if found else "is gone from disk"
        why = f"it had {item.file.size} bytes when it was listed, {state}, and no verified copy is in the store"
        key = seen.key("assemble", stage)
        todo = f"put the file back as it was; if it is right as it is: {redo(key)}"
        yield _gap(seen, stage, "changed" if found else "gone", path, why, todo)


def _holes(seen: Survey) -> Iterator[Gap]:
    complete = seen.marker("process")
    for name in texts(complete, "serial_holes"):
        why = "WARCs with serials below and above it are there"
        yield _gap(seen, None, "serial hole", name, why, accept(seen.launch, name))
    there = [stage.number for stage in seen.stages if stage.number is not None]
    for number in map(int, texts(complete, "stage_holes")):
        name = f"cp{number:05d}"
        between = there and min(there) < number < max(there)
        said = "checkpoints below and above it are there" if between else "job.log says that it was taken"
        why = f"{said}, and none of its logs is there"
        yield _gap(seen, None, "checkpoint hole", name, why, accept(seen.launch, name))


def _got_nothing(seen: Survey) -> Iterator[Gap]:
    """A launch that is whole, and archived no page: all its seeds failed, or it was never let off."""
    complete = seen.marker("process")
    stages = [found for stage in seen.stages if (found := seen.marker("assemble", stage))]
    if complete is None or not stages or ("continues" in complete.claim.facts):
        return  # of a resumed launch the pages may all lie before the checkpoint
    warcs, lines = (sum(_number(one.claim.counts.get(name)) for one in stages) for name in ("warcs", "lines"))
    statuses = Counter[str]()
    for one in stages:
        tally = one.claim.counts.get("by_status")
        statuses.update({code: _number(number) for code, number in (tally if isinstance(tally, dict) else {}).items()})
    if warcs and (not statuses or any(map(_is_success, statuses))):
        return  # of WARCs without a crawl log nothing is known but that they are there
    seen_codes = ", ".join(f"{code} ({number})" for code, number in statuses.most_common(3)) or "none"
    why = f"{warcs} WARCs, and of {lines} lines of the crawl log none is of a page that was got; statuses: {seen_codes}"
    yield _gap(seen, None, "got nothing", "crawl", why, accept(seen.launch, "crawl"))


def _number(found: Json) -> int:
    return found if isinstance(found, int) else 0


def _is_success(code: str) -> bool:
    """An answer that is no error, of HTTP or FTP, or whois' (1001); 1 is a name that was looked up, no page."""
    number = int(code) if code.isdecimal() else 0
    return 200 <= number < 400 or number > 1000


def _late(seen: Survey) -> Iterator[Gap]:
    """What came after 04 had said that all was there."""
    complete = seen.marker("process")
    if complete is None:
        return
    todo = redo(seen.key("assemble", seen.stages[-1]))
    known = texts(complete, "stages")
    for stage in sorted(set(map(str, seen.listing.logs)) - set(known)):
        why = "its logs appeared after the launch's last stage was packed"
        yield _gap(seen, stage, "late stage", stage, why, todo)
    if not all(seen.marker("assemble", Stage.parse(stage)) for stage in known):
        return  # whose WARCs these are is told by a marker that is not to be had
    for path in sorted(set(seen.warcs()) - listed(seen)):
        yield _gap(seen, None, "late", path, "it appeared after the launch was assembled, and no step has it", todo)


def listed(seen: Survey) -> set[str]:
    """The paths of all WARCs that some stage of the launch has."""
    return {path for stage in seen.stages for path in seen.items("assemble", stage)}


def step(key: Key) -> str:
    """The command that runs one step."""
    words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in key.params)
    return f"luigi --module tasks.{key.task.partition('.')[0]} {key.task} {words}"


def scan(launch: Launch, key: Key) -> str:
    """The command that does what a launch lacks."""
    task = chain.by_task(chain.ROWS)[key.task].scan
    return f"luigi --module tasks.{task.partition('.')[0]} {task} --date-interval {launch.day}"


def redo(key: Key) -> str:
    """The command that has a step, and all that came of it, done again."""
    params = dict(key.params)
    row = chain.by_task(chain.ROWS)[key.task]
    step = f"{row.word} {params.get('stage', '')}".strip() if row.head else layout.marker_name(key)
    return f"warcmill redo {params['job']} {params['launch_id']} {step} --downstream"


def accept(launch: Launch, name: str) -> str:
    """The command that takes note of a finding."""
    return f"warcmill accept {shlex.quote(name)} --launch {launch.job} {launch.id} --reason TEXT"
