"""The command that closes each gap, as `todo` of gaps and findings has it. Pure.

Each function returns text for a shell; its docstring describes the command.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from warcmill import chain, layout
from warcmill.model import Key, Launch, Stage

if TYPE_CHECKING:
    from warcmill.audit.survey import Survey, Unsound

DOCTOR = "warcmill doctor"
LOOK = "look at what is named there; 'warcmill doctor' checks the disks"
ROOT = "mount its disk, or correct luigi.cfg; for a new line: warcmill init FOLDER"  # a root that is not there


def step(key: Key) -> str:
    """Run one step."""
    options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in key.params)
    return f"luigi --module tasks.{key.task.partition('.')[0]} {key.task} {options}"


def scan(launch: Launch, key: Key) -> str:
    """Run the scan that asks for a step, over the day of the launch."""
    task = chain.by_task(chain.ROWS)[key.task].scan
    return f"luigi --module tasks.{task.partition('.')[0]} {task} --date-interval {launch.day}"


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
    return scan(seen.launch, key) if due and not seen.marker(*due[-1]) else step(key)


def replace_unsound(key: Key | None, unsound: Unsound, path: str) -> str:
    """Replace a marker that is not sound. `key` is None where the marker's name is of no step."""
    if key and unsound.unfit:
        return redo(key)
    by_hand = key is None or key.task == "pulse.Started" or unsound.kind == "foreign"
    return f"look at state:{path}, and move it away by hand" if by_hand or key is None else _publish_again(key)


def _publish_again(key: Key) -> str:
    """By the step itself: its scan may look only at later markers."""
    launch = f"{key['job']} {key['launch_id']}"
    by_operator = {
        "operator.Close": f"warcmill close {launch} --reason TEXT",
        "operator.Import": import_again(layout.launch_of(key)),
        "operator.Accept": f"warcmill accept NAME --launch {launch} --reason TEXT",
    }
    return by_operator.get(key.task) or step(key)
