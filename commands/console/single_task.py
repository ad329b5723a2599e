"""One task, run by luigi for a verb that acts once: unless its marker is there, which is then what is reported."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from commands.console.show import err, out
from tasks.line import OpenRoots
from warcmill import layout
from warcmill.base import clock
from warcmill.markers.claim import Evidence
from warcmill.model import Key

TICK = 0.1  # seconds between two looks at the clock


def do(
    line: OpenRoots, key: Key, words: list[str], describe: Callable[[Evidence], str], module: str = "tasks.pulse"
) -> int:
    """Run the task, unless its marker exists; return luigi's exit code."""
    if marker := line.state.read(key):
        out(f"{key['job']}: {describe(marker)}; this was done already, at {marker.run.finished}")
        return 0
    # luigi prints on stdout as well, which is not our result
    code = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-P", "-m", "tasks.luigis", "--module", module, *words], stdout=sys.stderr, check=False
    ).returncode
    if code == 0:
        out(f"{key['job']}: {describe(line.state.require(key))}")
    else:
        err(f"{key['job']}: {words[0]} ended with {code}; its error is above, and in the attempt's file")
    return code


def free_moment(line: OpenRoots, name: str) -> str:
    """Now, as a due time. If a crawl was due in this very second, the next one: this start would be taken for that."""
    while line.state.holds(layout.due_key(name, moment := clock.stamp())):
        time.sleep(TICK)
    return moment
