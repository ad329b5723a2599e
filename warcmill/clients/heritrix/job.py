"""Make the files of a Heritrix job from what a feed's targets ask for (`formats/targets`).

    crawler-beans.cxml   the profile, filled in; its sheets define how each target is crawled
    seeds.txt            the URLs to begin with
    surts.txt            prefixes of the sites
    exclude.txt          prefixes that are never crawled

From the feed only canonical URLs get into the XML, never a title or an id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from warcmill.clients.heritrix import sheets
from warcmill.errors import BadConfig
from warcmill.formats.targets import Caps, Plan

CONFIGURATION: Final = "crawler-beans.cxml"
TARGETS_HERE: Final = "<!--@targets@-->"


def files(plan: Plan, profile: str, values: Mapping[str, str], caps: Caps) -> dict[str, bytes]:
    """All files of the job: name -> bytes. `values` replace the profile's `@name@`.

    BadConfig for a profile that cannot be used.
    """
    beans = sheets.beans(plan.sites, plan.pages, caps)
    values = {**values, "capped_kb": str(caps.capped // 1024)}
    return {CONFIGURATION: filled(profile, values, beans).encode(), **plan.lists()}


def filled(profile: str, values: Mapping[str, str], beans: str) -> str:
    """The profile with each `@name@` replaced by its escaped value, and with the targets' beans inserted.

    BadConfig unless it has exactly one place for them.
    """
    if profile.count(TARGETS_HERE) != 1:
        raise BadConfig("[feed] profile", f"must have {TARGETS_HERE} once, where the targets' sheets go")
    for name, value in values.items():
        profile = profile.replace(f"@{name}@", sheets.xml(value))
    return profile.replace(TARGETS_HERE, beans)
