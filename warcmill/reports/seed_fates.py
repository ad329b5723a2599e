"""Judge what became of a seed, by what the crawl logs have of it. Pure.

alive        it was answered 2xx or 304
redirected   it leads to another URL, which was answered so
dead         no address, no connection, robots.txt, 4xx, 5xx, a rule of the crawl; or it leads to what is dead
untried      a quota or the crawl's end came first; or no log has a line of it
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from warcmill.formats.logs.crawllog import host, is_got
from warcmill.formats.seeds import ListedSeed
from warcmill.markers.facts.reports import SeedFate, SeedState
from warcmill.reports.seed_lines import MOST_HOPS, SeedAnswer, SeedLines

REDIRECTS = frozenset({300, 301, 302, 303, 305, 307, 308})
NO_LINE = "no crawl log has a line of it"
UNKNOWN_PLACE = "it redirects, and where to is not known: its record cannot be read"
_UNTRIED = {
    0: "it was never tried", -50: "it waited for what had to come first", -5003: "a quota came first",
    -5004: "the time of the crawl was over", -6000: "a person removed it from the crawl",
    -7000: "the crawler was ended while it fetched it",
}  # fmt: skip
_WHY = {
    -1: "its host has no address", -2: "its host could not be connected to", -3: "its host closed the connection",
    -4: "its host did not answer in time", -5: "the crawler failed at it", -6: "its host has no address",
    -7: "the crawler cannot fetch such a URL", -8: "it was tried too often", -61: "its host gave no robots.txt",
    -404: "the answer was empty", -4000: "it looks like a crawler trap", -5000: "it is out of the crawl's scope",
    -5001: "a rule of the crawl is against it", -5002: "its address may not be fetched from",
    -9998: "robots.txt forbids it",
}  # fmt: skip
_CONNECTION = {-2: "no connection", -3: "the connection was closed", -4: "no answer in time"}


def of(seed: ListedSeed, lines: SeedLines, target: str = "") -> SeedFate:
    """The fate of a seed."""
    answer = lines.of(seed.url)
    if answer is None and (why := lines.refused.get(seed.url)):
        return SeedFate(seed.text, SeedState.DEAD, None, why, "", target, seed.added_from)
    state, code, why, redirect = _judged(answer, seed.url, lines)
    return SeedFate(seed.text, state, code, why, redirect, target, seed.added_from)


def redirected(answer: SeedAnswer | None) -> bool:
    """True if a URL leads to another."""
    return answer is not None and answer.code in REDIRECTS


def _judged(answer: SeedAnswer | None, url: str, lines: SeedLines) -> tuple[SeedState, int | None, str, str]:
    if answer is None:
        return SeedState.UNTRIED, None, NO_LINE, ""
    if not redirected(answer):
        return (*_plain(answer, lines), "")
    last, place = end(url, lines)
    if last is answer and place == url:
        return SeedState.DEAD, answer.code, UNKNOWN_PLACE, ""
    if last is None:
        refused = lines.refused.get(place)
        return SeedState.DEAD, answer.code, f"it redirects to {place}, {refused or 'which was not fetched'}", place
    if redirected(last):
        what = "redirects on and on" if place in lines.leads_to else "redirects, and where to is not known"
        return SeedState.DEAD, answer.code, f"it redirects to {place}, which {what}", place
    state, code, why = _plain(last, lines)
    if state is SeedState.ALIVE:
        return SeedState.REDIRECTED, answer.code, "", last.uri
    return state, answer.code, f"it redirects to {last.uri}, code {code}: {why}", last.uri


def end(url: str, lines: SeedLines) -> tuple[SeedAnswer | None, str]:
    """The last answer that a URL is known to lead to, None without a line, and its URL."""
    place, seen, answer = url, {url}, lines.of(url)
    while redirected(answer) and len(seen) <= MOST_HOPS:
        following = lines.leads_to.get(place)
        if following is None or following in seen:
            break
        seen.add(following)
        place, answer = following, lines.of(following)
    return answer, place


def _plain(answer: SeedAnswer, lines: SeedLines) -> tuple[SeedState, int, str]:
    """The state by a code that is not a redirect, and why."""
    code = answer.code
    if is_got(code):
        return SeedState.ALIVE, code, ""
    state = SeedState.UNTRIED if code in _UNTRIED else SeedState.DEAD
    return state, code, reason(code, answer.annotations, _first(answer, code, lines))


def reason(code: int, annotations: Iterable[str] = (), first: str = "") -> str:
    """The reason, in words, why a URL with this code was not got; `first`: what it needed first, and did not get."""
    if code > 0:
        return f"its server answered {code}{_phrase(code)}"
    named = next((one for one in annotations if ":" in one and code in (-5001, -5003)), "")
    why = _UNTRIED.get(code) or _WHY.get(code, "the crawler's code for it is of a failure")
    return f"{why}{first}{f' ({named})' if named else ''}"


def _first(answer: SeedAnswer, code: int, lines: SeedLines) -> str:
    """The URL that it needed first and did not get, where that is known."""
    what, failed = lines.failed_first.get(host(answer.uri), ("", 0))
    return f" ({_CONNECTION.get(failed, f'code {failed}')})" if code == -61 and what == "robots.txt" else ""


def _phrase(code: int) -> str:
    try:
        return f" {HTTPStatus(code).phrase}"
    except ValueError:
        return ""
