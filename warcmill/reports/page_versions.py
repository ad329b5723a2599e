"""Two versions of a page: the capture of a launch beside that of the launch before it, and what differs in their words.

Captures are those of the published CDX that are not hidden; words are those of the extracts of text. So it asks neither
the store nor replay. A revisit has the words of its original. Memory and time are bounded, as a text is foreign.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from difflib import SequenceMatcher
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from warcmill import layout
from warcmill.errors import BadInput, NotReady
from warcmill.extracts import text
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.revisits import is_revisit
from warcmill.formats import hosts
from warcmill.formats.index.urlkey import urlkey
from warcmill.launches import crawl_parts, holdings
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch
from warcmill.reports import comparison
from warcmill.stores import LocalStore
from warcmill.versions import cdx, hidden_list
from warcmill.versions.index_inputs import WARCS
from warcmill.versions.publication import hidden_now, open_version

READ = 100_000  # captures of a URL that are read
LONGEST = 1 << 20  # characters of a text that are compared
COMPARED = 1_000  # lines of a text, those that begin and end both left out: longer ones would take too long
SHOWN = 500  # lines of the difference
ADDED, REMOVED, KEPT = "+", "-", " "
_LINE_END = re.compile(r"\n|(?<=[.!?]) ")  # a paragraph is one line: it is compared by sentences
NO_TEXT = "no words were extracted of it"


class PageVersion(Struct, frozen=True):
    """A capture, as its CDX line has it. `warc`: its path below the WARCs of the store. `words`: None without any, and
    then `why` says so."""

    launch_id: str
    time: str
    url: str
    status: str
    type: str
    digest: str
    length: int
    warc: str
    offset: int
    words: str | None = None
    why: str = ""

    def json(self) -> dict[str, Json]:
        """The version for programs, without its words."""
        names = ("launch_id", "time", "url", "status", "type", "digest", "length", "warc", "offset", "why")
        return {name: getattr(self, name) for name in names}


class PageComparison(Struct, frozen=True):
    """Two versions of a URL; None for one that there is not. `before`: the id of the launch before, '' without one.
    `lines`: the difference, each with its mark; `is_cut`: some of it is left out."""

    url: str
    before: str
    now: PageVersion | None
    then: PageVersion | None
    lines: tuple[tuple[str, str], ...]
    is_cut: bool

    @property
    def is_same(self) -> bool:
        """True if both have the same bytes."""
        return bool(self.now and self.then and self.now.digest == self.then.digest)

    def json(self) -> dict[str, Json]:
        """The comparison for programs."""
        return {
            "before": self.before, "cut": self.is_cut, "lines": [[mark, line] for mark, line in self.lines],
            "now": self.now.json() if self.now else None, "then": self.then.json() if self.then else None,
            "url": self.url,
        }  # fmt: skip


def compare(state: MarkerStore, index: LocalStore, launch: Launch, url: str) -> PageComparison:
    """Compare the newest captures of a URL in a launch and in the one before it. NotReady without a published CDX."""
    earlier = comparison.before(state, launch)
    lines = _captures(state, index, url)
    now = _version(state, index, launch, lines)
    then = _version(state, index, earlier, lines) if earlier else None
    differing, is_cut = difference(then.words, now.words) if now and then else ([], False)
    return PageComparison(url, earlier.id if earlier else "", now, then, tuple(differing), is_cut)


def difference(then: str | None, now: str | None) -> tuple[list[tuple[str, str]], bool]:
    """The lines that were removed and added, with one line around them; and whether some are left out."""
    if then is None or now is None:
        return [], False
    old, new = ([*filter(str.strip, _LINE_END.split(words[:LONGEST]))] for words in (then, now))
    begin = _same(old, new)
    end = _same(old[begin:][::-1], new[begin:][::-1])
    old, new = (lines[max(0, begin - 1) : len(lines) - max(0, end - 1)] for lines in (old, new))
    is_cut = max(map(len, (then, now))) > LONGEST or max(map(len, (old, new))) > COMPARED
    found = [*_marked(old[:COMPARED], new[:COMPARED])]
    return found[:SHOWN], is_cut or len(found) > SHOWN


def _same(old: Sequence[str], new: Sequence[str]) -> int:
    """The number of lines with which both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _marked(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    matcher = SequenceMatcher(None, old, new)
    for group in matcher.get_grouped_opcodes(1):
        for word, i, j, k, m in group:
            if word == "equal":
                yield from ((KEPT, line) for line in old[i:j])
            else:
                yield from ((REMOVED, line) for line in old[i:j])
                yield from ((ADDED, line) for line in new[k:m])


def _captures(state: MarkerStore, index: LocalStore, url: str) -> list[bytes]:
    """The lines of the captures of a URL that are not hidden, the oldest first."""
    prefixes = tuple(hidden_now(state.store, index, cdx.NAME).prefixes())
    _, lookup = open_version(index, cdx.NAME)
    with closing(lookup):
        shown = (line for line in lookup.captures(urlkey(hosts.in_url(url)))
                 if not hidden_list.is_hidden(line, prefixes))  # fmt: skip
        return [line for line, _ in zip(shown, range(READ), strict=False)]


def _version(state: MarkerStore, index: LocalStore, launch: Launch, lines: Sequence[bytes]) -> PageVersion | None:
    """The newest capture of a launch, or of those that it continues, with its words."""
    folders = tuple(f"{one.job}/{one.id}/" for one in crawl_parts.of(state, launch).launches)
    found = None
    for line in lines:
        time, fields = _fields(line)
        if str(fields["filename"]).startswith(folders):
            url, status, type_, digest = (str(fields.get(name, "")) for name in ("url", "status", "mime", "digest"))
            length, offset = int(fields.get("length", 0)), int(fields["offset"])
            found = line, PageVersion(
                launch.id, time, url, status, type_, digest, length, str(fields["filename"]), offset
            )  # fmt: skip
    if found is None:
        return None
    line, version = found
    same = (one for one in lines if _fields(one)[1].get("digest") == version.digest and not is_revisit(one))
    source = next(same, line) if is_revisit(line) else line
    words, why = _words(state, index, *_fields(source))
    return replace(version, words=words, why=why)


def _fields(line: bytes) -> tuple[str, dict[str, str]]:
    _, time, about = line.split(b" ", 2)
    return time.decode(), json.loads(about)


def _words(state: MarkerStore, index: LocalStore, time: str, fields: dict[str, str]) -> tuple[str | None, str]:
    """The words of a capture, of its DOM where it was rendered; or None, and why."""
    job, launch_id, _ = fields["filename"].split("/", 2)
    try:
        launch, path = Launch.parse(job, launch_id), WARCS + fields["filename"]
        held = (one for stage in state.stages(launch) if state.holds(layout.step("verify", launch, stage))
                for one in holdings.of_stage(state, launch, stage).holdings)  # fmt: skip
        sha512 = next((str(one.stored.sha512) for one in held if one.stored.path == path), "")
        if not sha512:
            return None, "no marker names its WARC"
        found = None
        for line in text.lines(Extracts(index), sha512):
            if time.encode() in line:
                about = json.loads(line)
                is_it = (str(about["wayback_date"]), about["url"]) == (time, fields["url"])
                if is_it and len(about.get("content", "")) >= len(found or ""):
                    found = str(about.get("content", ""))
        return found, "" if found is not None else NO_TEXT
    except NotReady:
        return None, f"{NO_TEXT} yet: 'warcmill scan' does it, where luigi.cfg has [text]"
    except BadInput as error:
        return None, f"its text cannot be read: {error}"
