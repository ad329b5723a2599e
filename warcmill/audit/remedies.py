"""The command that closes each gap, as `todo` of gaps and findings has it. Pure.

Each function returns text for a shell; its docstring describes the command.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from warcmill import chain, layout
from warcmill.base import clock
from warcmill.model import Key, Launch, Stage

if TYPE_CHECKING:
    from warcmill.audit.survey import Survey, Unsound

DOCTOR = "warcmill doctor"
LOOK = "look at what is named there; 'warcmill doctor' checks the disks"
# Of a root that is not there: a new line brings nothing back.
ROOT = "mount its disk, then: warcmill doctor; if it has moved, correct its path in luigi.cfg"


def step(key: Key) -> str:
    """Publish one marker, by its step or by the verb that makes it."""
    params = dict(key.params)
    job, started = params.get("job", ""), params.get("launch_id") or params.get("due", "")
    match key.task:
        case "operator.Close":
            return f"warcmill close {job} {started} --reason TEXT"
        case "operator.Import":
            return f"warcmill import FOLDER --job {job}"
        case "operator.Accept":
            return f"warcmill accept NAME --launch {job} {started} --reason TEXT"
        case "pulse.Started":
            return f"warcmill pulse start {job} --again"
        case "package.GiveArks":  # a SIP is built with its identifiers
            return step(Key("package.BuildSip", key.params))
        case "state.Backup" | "state.BackupDue":
            return f"warcmill backup {clock.stamp_text(started)[:10]}"
    return f"warcmill make {layout.marker_name(key)}"


def scan(launch: Launch) -> str:
    """Run the scans over the day of the launch."""
    return f"warcmill scan {launch.day}"


def redo(key: Key) -> str:
    """Redo a step, and every step that rests on its marker."""
    params = dict(key.params)
    row = chain.by_task(chain.ROWS)[key.task]
    redone = f"{row.word} {params.get('stage', '')}".strip() if row.head else layout.marker_name(key)
    return f"warcmill redo {params['job']} {params['launch_id']} {redone} --downstream"


def replace_stored(redo: str) -> str:
    """Replace a stored file that is not what was stored, which the store never does: a step finds a Conflict."""
    return f"move it away by hand; while its source is still there: {redo}"


def fetch_again(launch: Launch, name: str) -> str:
    """Let the next launch of a package index ask for what a dump lacks; it asks for all of it."""
    return f"once the index has it: warcmill pypi trigger_incremental {launch.job}; else: {accept(launch, name)}"


def raise_bound(launch: Launch, key: str, name: str) -> str:
    """Have the next launch of a job take what a bound has left out of this one."""
    return f"raise {key} of job {launch.job}, then: {crawl_again(launch)}; else: {accept(launch, name)}"


def accept(launch: Launch, name: str) -> str:
    """Accept the finding of this name. The name is quoted for the shell."""
    return f"warcmill accept {shlex.quote(name)} --launch {launch.job} {launch.id} --reason TEXT"


def accept_seeds(launch: Launch) -> str:
    """Accept all lost seeds of a launch."""
    return f"warcmill accept --seeds --launch {launch.job} {launch.id} --reason TEXT"


def crawl_again(launch: Launch) -> str:
    """Crawl the job once more: its site was down, or was not asked."""
    return f"warcmill pulse start {launch.job} --again"


def go_on(seen: Survey) -> str:
    """Continue a crawl that was cut short, from its last checkpoint; without one, crawl once more."""
    taken = max((str(stage) for stage in seen.stages if not stage.is_final), default="")
    if taken and seen.cut and seen.cut.waiting:
        return f"{crawl_again(seen.launch)} --checkpoint {taken}"
    return crawl_again(seen.launch)


def retry_missed(launch: Launch) -> str:
    """Ask again for the URLs that the newest launch of a job missed."""
    return f"warcmill job {launch.job} retry --missed"


def report_missed(launch: Launch) -> str:
    """List the URLs that a launch missed."""
    return f"warcmill report {launch.job} {launch.id} --missed"


def report_seeds(launch: Launch) -> str:
    """List what became of each seed of a launch."""
    return f"warcmill report {launch.job} {launch.id} --seeds"


def import_again(launch: Launch) -> str:
    """Complete an import that was cut short."""
    return f"warcmill import FOLDER --job {launch.job}"


def why(launch: Launch) -> str:
    """List the gaps of one launch."""
    return f"warcmill why {launch.job} {launch.id}"


def publish_missing(seen: Survey, stage: Stage | None, key: Key) -> str:
    """Publish a marker that is missing.

    By the scan of its step. A scan stops where the last marker that it asks for exists: then by the step itself.
    """
    by = chain.by_task(chain.ROWS)[key.task].scan
    steps = ((row.word, stage if row.scope == "stage" else None) for row in chain.steps(chain.ROWS) if row.scan == by)
    due = [step for step in steps if seen.due(*step)]
    return scan(seen.launch) if due and not seen.marker(*due[-1]) else step(key)


def replace_unsound(key: Key | None, unsound: Unsound, path: str) -> str:
    """Replace a marker that is not sound. `key` is None where the marker's name is of no step."""
    if key and unsound.unfit:
        return redo(key)
    by_hand = key is None or key.task == "pulse.Started" or unsound.kind == "foreign"
    # Else by the step itself: its scan may look only at later markers.
    return f"look at state:{path}, and move it away by hand" if by_hand or key is None else step(key)
