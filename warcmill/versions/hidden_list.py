"""Entries that must not be shown: SURT prefixes, and captures of one key and second.

    org,example             the domain and all of its subdomains, on any port
    org,example)/private/   keys that begin so
    org,example)/ 2016      captures of this one key, of times that begin so; with a blank alone, of all times

To hide a domain, or all of a host, is to hide its DNS records too, whose keys are `dns:` and the host. To hide a page
is to hide what crawlers that render it keep beside it, its text or picture: their keys are words, and the page's URL,
such as `urn:text:http://example.org/private/`.

Each decision is a file of its own (`markers.decisions`, kind `access`). The list of hidden entries follows from all of
them in their order. Hidden captures stay in the store, and in every list of a version.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha512

from msgspec import Struct

from warcmill.errors import BadInput, Conflict
from warcmill.formats import hosts
from warcmill.formats.index.urlkey import urlkey
from warcmill.markers import decisions as made
from warcmill.model import Json
from warcmill.stores import LocalStore, Store
from warcmill.versions.inputs import Hiding

_ENTRY = re.compile(r"[!-~]{1,4000}( [0-9]{0,14})?")
_HOST = re.compile(r"(?:[\w-]+\.)+[\w-]+(?:[:/?].*)?", re.DOTALL)  # as people write one, or a page of it
DNS = b"dns:"
# Of browsertrix-crawler (urn:text:, urn:view:, urn:pageinfo:) and brozzler (the others).
OF_PAGES = (b"screenshot:", b"thumbnail:", b"urn:", b"youtube-dl:")
_OF_PAGE = re.compile(rb"(?:screenshot|thumbnail|urn|youtube-dl):(?:[^/? ]*:)?(https?://[^ ]*)")
_WWW = re.compile(rb"\Awww\d*\.")  # as keys of pages are without it
_DOMAIN = re.compile(r"[a-z0-9_-]+(?:,[a-z0-9_-]+)*")


class AccessDecision(Struct, frozen=True):
    """A person's decision: to hide something, or to show it again. `by`: '' in one of an older Warcmill."""

    number: int
    hides: bool
    surt: str
    reason: str
    time: str
    by: str = ""


class Hidden(Struct, frozen=True):
    """The entries that are hidden after some decisions, with the reason of each entry."""

    decisions: int
    entries: Mapping[str, str]

    @property
    def hiding(self) -> Hiding:
        """As a version's list names it."""
        text = "".join(f"{entry}\n" for entry in sorted(self.entries))
        return Hiding(self.decisions, sha512(text.encode()).hexdigest())

    def prefixes(self) -> dict[bytes, str]:
        """The beginnings of hidden lines, and the entry of each; without those that a shorter one covers."""
        found: dict[bytes, str] = {}
        pairs = sorted((prefix, entry) for entry in self.entries for prefix in prefixes_of(entry))
        for prefix, entry in pairs:
            if not (found and prefix.startswith(next(reversed(found)))):
                found[prefix] = entry
        return found


def parse_entry(text: str) -> str:
    """Return an entry as it is kept, or raise BadInput."""
    if "://" in text:
        raise BadInput(text, "not a SURT but a URL; 'warcmill surt URL' prints its key")
    if not _ENTRY.fullmatch(text):
        raise BadInput(text, "not a SURT prefix such as org,example or org,example)/private/, with a time or without")
    return text


def entry_of(text: str) -> str:
    """The entry that a person means by a URL, or by an entry; or raise BadInput. A URL means its page alone: a prefix
    would hide /10.html with /1."""
    if _HOST.fullmatch(text):
        raise BadInput(text, f"a URL without its scheme; type https://{text}, or a SURT such as org,example")
    if "://" not in text:
        with suppress(ValueError):
            text = hosts.in_surt(text)
        return parse_entry(text)
    key = urlkey(hosts.in_url(text))
    if ")" not in key:
        raise BadInput(text, "not a URL with a host")
    return parse_entry(f"{key} ")


def prefixes_of(entry: str) -> tuple[bytes, ...]:
    """The beginnings of the lines that an entry means. A domain means its subdomains, and never a longer name."""
    if _DOMAIN.fullmatch(entry):
        return tuple(f"{entry}{end}".encode() for end in "),:")
    return (entry.encode(),)


def visible(lines: Iterable[bytes], prefixes: Mapping[bytes, str], met: set[str]) -> Iterator[bytes]:
    """The lines that are not hidden. `met` gets the entries that hide one."""
    starts = list(prefixes)
    for line in lines:
        for text in (line, *_of_what(line)):
            at = bisect_right(starts, text)
            if at and text.startswith(starts[at - 1]):
                met.add(prefixes[starts[at - 1]])
                break
        else:
            yield line


def is_hidden(line: bytes, prefixes: tuple[bytes, ...]) -> bool:
    """True if a line is hidden by prefixes, as `Hidden.prefixes` has them."""
    return any(text.startswith(prefixes) for text in (line, *_of_what(line)))


def hidden_lines(look_up: Callable[[bytes], Iterable[bytes]], prefixes: tuple[bytes, ...]) -> Iterator[bytes]:
    """The lines that these prefixes hide, each once; `look_up` gives those that begin with some bytes."""
    for prefix in prefixes:
        yield from look_up(prefix)
    if prefixes:
        yield from (line for line in beside(look_up) if is_hidden(line, prefixes) and not line.startswith(prefixes))


def beside(look_up: Callable[[bytes], Iterable[bytes]]) -> Iterator[bytes]:
    """The lines of DNS records, and of records beside pages: their keys begin otherwise than those of pages."""
    for word in (DNS, *OF_PAGES):
        yield from look_up(word)


def _of_what(line: bytes) -> Iterator[bytes]:
    """Keys compared besides its own: of a DNS record with its host, and the host's first page of no time;
    what is kept beside a page with the page, of the same time.
    """
    if match := _OF_PAGE.match(line):
        yield urlkey(match[1].decode("ascii")).encode() + line[match.end() :]
    elif line.startswith(DNS):
        name = _WWW.sub(b"", line[len(DNS) :].partition(b" ")[0].partition(b"?")[0].strip(b"."))
        host = b",".join(reversed(name.split(b"."))) + b")"
        yield host
        yield host + b"/"


def decisions(state: LocalStore) -> list[AccessDecision]:
    """All decisions, in order. BadInput for a damaged one: nobody knows what it hides."""
    return [_of(one) for one in made.read(state, made.ACCESS)]


def rules(state: LocalStore) -> dict[str, AccessDecision]:
    """The entries that are hidden now, each with the decision that hides it, in the order of these."""
    return _ruling(decisions(state))


def is_about(entry: str, url: str) -> bool:
    """True if an entry hides captures of a URL."""
    key, prefixes = f"{urlkey(hosts.in_url(url))} ".encode(), prefixes_of(entry)
    return is_hidden(key, prefixes) or any(one.startswith(key) for one in prefixes)


def read(state: LocalStore, upto: int | None = None) -> Hidden:
    """The list of hidden prefixes now, or after `upto` decisions."""
    return _after([one for one in decisions(state) if upto is None or one.number <= upto])


def at(state: LocalStore, hiding: Hiding) -> Hidden:
    """The hidden list as a version was made. Conflict if the decisions that its list names are not there."""
    return _vouched(decisions(state), hiding)


def now(state: LocalStore, hiding: Hiding) -> Hidden:
    """The list now. Conflict if the decisions that a version's list names are not there: what they hide would be
    shown again."""
    known = decisions(state)
    _vouched(known, hiding)
    return _after(known)


def _vouched(known: Sequence[AccessDecision], hiding: Hiding) -> Hidden:
    first = f"state:{made.path_of(made.ACCESS, len(known) + 1)}"
    if len(known) < hiding.decisions:
        more = f" to {hiding.decisions}" if hiding.decisions > len(known) + 1 else ""
        why = (
            f"a version of the index names decision {len(known) + 1}{more}, which is not there: run 'warcmill restore'"
        )
        raise Conflict(first, why)
    found = _after(known[: hiding.decisions])
    if found.hiding.sha512 != hiding.sha512:
        why = f"the first {hiding.decisions} decisions hide something else than a version of the index names: they were"
        raise Conflict("state:decisions/access", f"{why} made anew; move this folder away, then run 'warcmill restore'")
    return found


def decide(
    state: LocalStore, open_store: Callable[[], Store], surt: str, reason: str, *, hides: bool, by: str = ""
) -> AccessDecision:
    """Record a decision, in the state and in the store, as `markers.decisions.make` does. Where the same is in force,
    return the decision that made it so."""
    facts: dict[str, Json] = {"hides": hides, "reason": reason, "surt": parse_entry(surt)}

    def in_force(known: Sequence[made.RecordedDecision]) -> made.RecordedDecision | None:
        newest = next((one for one in reversed(known) if one.facts.get("surt") == surt), None)
        return newest if newest and newest.facts.get("hides") is hides else None

    return _of(made.make(state, open_store, made.ACCESS, facts, by=by, unless=in_force))


def _after(ruled: Sequence[AccessDecision]) -> Hidden:
    entries = {surt: one.reason for surt, one in _ruling(ruled).items()}
    return Hidden(ruled[-1].number if ruled else 0, entries)


def _ruling(ruled: Sequence[AccessDecision]) -> dict[str, AccessDecision]:
    entries: dict[str, AccessDecision] = {}
    for one in ruled:
        entries.pop(one.surt, None)
        if one.hides:
            entries[one.surt] = one
    return entries


def _of(one: made.RecordedDecision) -> AccessDecision:
    match one.facts:
        case {"hides": bool(hides), "surt": str(surt), "reason": str(reason)} if _ENTRY.fullmatch(surt):
            return AccessDecision(one.number, hides, surt, reason, one.time, str(one.facts.get(made.BY, "")))
    raise BadInput(f"state:{one.path}", f"no decision to hide something or to show it again; {made.BACK}")
