"""Who types a verb, as decisions, markers and editions name it. Stands alone, as verbs of all rooms ask."""

from __future__ import annotations

import os
import pwd

from warcmill.markers.editions import MOST_WHO
from warcmill.web.actions import PERSON


def person() -> str:
    """The person of the page that has started this process; else the user of this process."""
    if named := os.environ.get(PERSON, ""):
        return named[:MOST_WHO]
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # as in a container
        return f"uid {os.geteuid()}"
