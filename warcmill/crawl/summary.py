"""What a launch came to, for who began it: `summary.json` in its folder among the job's. A report, no evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from warcmill.crawl import durable
from warcmill.crawl.figures import Figures
from warcmill.crawl.offers import Refusals
from warcmill.errors import Unavailable
from warcmill.model import Json

NAME = "summary.json"


def figures(
    found: Figures, refused: Refusals, failed_first: str, policies_failed: Mapping[str, int]
) -> dict[str, Json]:
    """The numbers of what was fetched, failed, was cut by limits or refused by policies, each with a first URI and why;
    and how often policies of others failed."""
    return {
        "documents": found.documents,
        "failed": found.failed,
        "failed_first": failed_first,
        "statuses": dict(found.answers),
        "cut": dict(found.cut),
        "cut_first": dict(found.cut_first),
        "refused": dict(refused.counts),
        "refused_first": dict(refused.first),
        "policies_failed": dict(policies_failed),
    }


def write(own: Path, end: str, found: Mapping[str, Json]) -> None:
    """Keep it."""
    durable.replace(own / NAME, json.dumps({"end": end, **found}, sort_keys=True, indent=1).encode() + b"\n")


def read(own: Path) -> Mapping[str, Json]:
    """Return it; an empty one for a launch that was put in order by another process."""
    try:
        return cast("Mapping[str, Json]", json.loads((own / NAME).read_bytes()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Unavailable(str(own / NAME), str(error)) from error
