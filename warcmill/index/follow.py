"""Send what a running launch has crawled to a CDX server, and take it away again once the index has the launch."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from warcmill import layout
from warcmill.errors import Busy, Unavailable, WarcmillError
from warcmill.index import followed
from warcmill.index.crawled_lines import crawled
from warcmill.index.followed import Followed
from warcmill.index.sink_cdx import LINES, CdxSink
from warcmill.launches.roots import JobRoots
from warcmill.markers import locks
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Launch
from warcmill.stores import LocalStore
from warcmill.versions import cdx, hidden
from warcmill.versions.lookup import hidden_now

log = logging.getLogger(__name__)


def is_indexed(state: MarkerStore, launch: Launch) -> bool:
    """True if the next fold has all of a launch."""
    return state.holds(layout.step("cdx", launch, FINAL))


def follow(state: MarkerStore, index: LocalStore, roots: JobRoots, sink: CdxSink, launch: Launch) -> int:
    """Send what is new in a launch's crawl logs; return how many captures. Of an indexed launch, nothing.

    What is hidden is not sent, nor what the current version has. Busy while another process follows the launch.
    """
    _take(state, sink, launch)
    if is_indexed(state, launch):
        return 0
    known, sent = Followed(index, sink.name, launch), 0
    for name in known.begun():
        sent += sink.post_provisional(known.lines(name))
        known.done(name)
    prefixes = tuple(hidden_now(state.store, index, cdx.NAME).prefixes())
    for first, end, lines in _parts(roots, launch, known.place()):
        shown = [line for line in lines if not hidden.is_hidden(line, prefixes)]
        name = known.begin(first, end, shown)
        sent += sink.post_provisional(shown)
        known.done(name)
    return sent


def _take(state: MarkerStore, sink: CdxSink, launch: Launch) -> None:
    if locks.take(state, f"follow.{sink.name}.{launch.job}.{launch.id}"):
        raise Busy(f"following {launch}")


def _parts(roots: JobRoots, launch: Launch, start: int) -> Iterator[tuple[int, int, list[bytes]]]:
    """The new lines for one POST each: where they begin and end in the logs."""
    lines, first, last = list[bytes](), start, start
    for end, line in crawled(roots, launch, start):
        if end < last:  # the logs are others than those of before: all is taken again
            first = 0
        last = end
        lines += [line] if line else []
        if len(lines) >= LINES:
            yield first, last, lines
            lines, first = [], last
    if last > first:
        yield first, last, lines


def settle(state: MarkerStore, index: LocalStore, sink: CdxSink) -> Iterator[str]:
    """Delete what is provisional of launches that the index has, and what is hidden of others.

    Yields what went wrong; the next run tries it again.
    """
    hiding = hidden_now(state.store, index, cdx.NAME)
    for launch in followed.launches(index, sink.name):
        known = Followed(index, sink.name, launch)
        try:
            _take(state, sink, launch)
            if is_indexed(state, launch):
                sink.delete(known.all_lines())
                sink.prove_none(known.all_lines())
                known.forget()
                log.info("%s: nothing provisional is left of %s", sink.place, launch)
            elif not known.is_without(hiding.hiding.sha512):
                prefixes = tuple(hiding.prefixes())
                sink.delete(line for line in known.all_lines() if hidden.is_hidden(line, prefixes))
                known.note_without(hiding.hiding.sha512)
        except Unavailable as error:
            yield str(error)
            return
        except WarcmillError as error:
            yield f"{sink.place}: {launch}: {error}"
