"""Describe a package in Dublin Core: from the feed's targets that its launch crawled, and from its markers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from warcmill import layout
from warcmill.formats import feed
from warcmill.formats.dublin_core import Description
from warcmill.formats.feed import Target
from warcmill.formats.targets import SEEDS, seeds, selected
from warcmill.markers.facts import Fed, Started
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Stage, stamp_time
from warcmill.package.terms import Terms


def describe(
    bag: str,
    launch: Launch,
    stages: Sequence[Stage],
    dates: Iterable[tuple[str, str]],
    terms: Terms,
    crawled: Sequence[Target],
    relations: Iterable[str],
    ark: str,
) -> Description:
    """Describe the package of some stages, crawled in the spans of `dates`. It is named by bag and ARK."""
    spans = list(dates)
    first, last = min(begin for begin, _ in spans), max(end for _, end in spans)
    word, names = "stage" if len(stages) == 1 else "stages", ", ".join(map(str, stages))
    return Description(
        title=(f"Web archive of the crawl {launch.job}, launch {launch.id}, {word} {names}",),
        subject=tuple(target.title for target in crawled if target.title),
        publisher=(terms.organisation,),
        date=(f"{first}/{last}",),
        format=("application/warc",),
        identifier=(bag, *([ark] if ark else [])),
        source=tuple(dict.fromkeys(seed for target in crawled for seed in target.seeds)),
        relation=tuple(relations),
        rights=(f"Submission agreement {terms.agreement}",) if terms.agreement else (),
    )


def targets(state: MarkerStore, launch: Launch) -> list[Target]:
    """The targets that a launch crawled, by the feed of its due crawl; none for a launch without a feed.

    The job's frequency selects them. No marker has it: it is the one whose targets give the seeds that 01.started has.
    """
    started = state.read(layout.key("pulse.Started", launch))
    known = Started.from_claim(started.claim) if started else None
    fed = state.read(layout.feed_key(launch.job, known.due)) if known else None
    if known is None or fed is None or SEEDS not in known.files:
        return []
    with state.store.open(Fed.from_claim(fed.claim).kept.path) as file:
        everything = feed.read(file.read(feed.LARGEST + 1), launch.job).targets
    moment = stamp_time(known.due)
    for frequency in dict.fromkeys(schedule.frequency for target in everything for schedule in target.schedules):
        chosen = selected(everything, frequency, moment)
        if hashlib.sha512(seeds(chosen)).hexdigest() == known.files[SEEDS]:
            return chosen
    return []
