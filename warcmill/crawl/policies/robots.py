"""The rules of a robots.txt (RFC 9309), and its crawl-delay, which is not a standard but is kept. Pure.

The crawl fetches it, and follows it over at most REDIRECTS; the meaning of its status is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from urllib.parse import quote

from msgspec import Struct, field

PRODUCT = "warcmill"
"""The name that a robots.txt, and a page, calls this crawler by."""

LIMIT = 500 << 10  # bytes that are read (2.5)
REDIRECTS = 5  # that are followed (2.3.1.2)
KEPT = 86_400.0  # seconds (2.4)
PATH = "/robots.txt"
_TOO_MANY = 429
_USUAL = 32  # letters of a rule
_TOKEN = re.compile(r"[A-Za-z_-]+")
_DELAY = re.compile(r"\d{1,6}(?:\.\d{0,3})?", re.ASCII)
_STARS = re.compile(r"\*++")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_is_plain = re.compile(r"[!-$&-~]*+").fullmatch  # nothing to escape, and nothing escaped
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Standing(StrEnum):
    """The standing of a host by the fetch of its robots.txt."""

    RULES = "its rules count"
    ALLOWED = "it has none: all is allowed"
    DEFERRED = "not known: nothing is fetched until it is"


def standing(status: int) -> Standing:
    """The standing of a host by the last status of its robots.txt (2.3.1); below zero there was no answer.

    429 means "later", not "there is none". A redirect that is left was one too many.
    """
    if 200 <= status < 300:
        return Standing.RULES
    if 300 <= status < 500 and status != _TOO_MANY:
        return Standing.ALLOWED
    return Standing.DEFERRED


class RobotsVerdict(Struct, frozen=True):
    """A path may be fetched or not, by the line that rules it; '' when none does."""

    allowed: bool
    rule: str = ""


class _Rule(Struct, frozen=True):
    """A pattern in parts, between which anything may be; `ends`: the last part is the end of the path."""

    allows: bool
    written: str
    parts: tuple[str, ...]
    ends: bool

    def matches(self, path: str) -> bool:
        """True if the pattern matches: in time linear in the path, whatever the pattern."""
        first, *others = self.parts
        if not path.startswith(first):
            return False
        at = len(first)
        for part in others[:-1] if self.ends else others:
            at = path.find(part, at)
            if at < 0:
                return False
            at += len(part)
        if not self.ends:
            return True
        return at == len(path) if not others else path.endswith(others[-1]) and len(path) - len(others[-1]) >= at


class Rules(Struct, frozen=True):
    """The rules of one crawler at one host, those that win first; `delay` in seconds, 0 without one. `size`: how many
    rules of a usual length they are; `wild`: how many have a `*`."""

    rules: tuple[_Rule, ...] = ()
    delay: float = 0.0
    size: int = 0
    wild: int = 0

    def work(self, path: str) -> int:
        """The most letters that are compared to judge a path."""
        return self.size * _USUAL + self.wild * len(path)

    def judge(self, path: str) -> RobotsVerdict:
        """Judge a path with its query, as in the URI. The robots.txt itself is always allowed."""
        path = _plain(path).replace("*", "%2A").replace("$", "%24")  # as a rule writes these letters (2.2.3)
        best = next((rule for rule in self.rules if rule.matches(path)), None)
        if best is None or path == PATH:
            return RobotsVerdict(True)
        return RobotsVerdict(best.allows, f"{'Allow' if best.allows else 'Disallow'}: {best.written}")


def rules_for(data: bytes, token: str) -> Rules:
    """Read the rules of the crawler with this product token; those of `*` when none names it (2.2.1).

    Several groups for one crawler are one. Whatever is not a rule is passed over.
    """
    ours, anyones = _Group(token.lower()), _Group("*")
    current: list[_Group] = []
    naming = False
    for name, value in _lines(data):
        if name == "user-agent":
            agent = _agent(value)
            current = [group for group in (ours, anyones) if group.agent == agent or (naming and group in current)]
            naming = True
            for group in current:
                group.is_named = True
        elif name in ("allow", "disallow"):
            naming = False
            for group in current if value else ():
                group.rules.append(_rule(value, allows=name == "allow"))
        elif name == "crawl-delay":
            naming = False
            if delay := _DELAY.fullmatch(value):
                for group in current:
                    group.delay = float(delay[0])
    chosen = ours if ours.is_named else anyones
    rules = tuple(sorted(chosen.rules, key=_rank, reverse=True))
    size, wild = sum(1 + len(rule.written) // _USUAL for rule in rules), sum(len(rule.parts) > 1 for rule in rules)
    return Rules(rules, chosen.delay, size, wild)


class _Group(Struct, eq=False):
    """The part of a robots.txt for one crawler."""

    agent: str
    is_named: bool = False
    rules: list[_Rule] = field(default_factory=list)
    delay: float = 0.0


def _rank(rule: _Rule) -> tuple[int, bool]:
    """The longest pattern wins, in escaped octets; of two as long, the one that allows (2.2.2)."""
    return sum(map(len, rule.parts)) + len(rule.parts) - 1 + rule.ends, rule.allows


def _lines(data: bytes) -> Iterator[tuple[str, str]]:
    """The lines that have a name and a value, without comments."""
    text = data[:LIMIT].decode("utf-8", "replace").removeprefix("\ufeff").replace("\r", "\n")
    pairs = (line.partition("#")[0].partition(":") for line in text.split("\n"))
    return ((name.strip().lower(), value.strip()) for name, colon, value in pairs if colon)


def _agent(value: str) -> str:
    if value.startswith("*"):
        return "*"
    token = _TOKEN.match(value)
    return token[0].lower() if token else ""


def _rule(value: str, *, allows: bool) -> _Rule:
    ends = value.endswith("$")
    pattern = _STARS.sub("*", _plain(value.removesuffix("$")).replace("$", "%24"))
    return _Rule(allows, value, tuple(pattern.split("*")), ends)


def _plain(path: str) -> str:
    """A path or pattern so that two spellings of one are equal: only what must be escaped is (2.2.2)."""
    if _is_plain(path):
        return path
    escaped = quote(path, safe="".join(map(chr, range(0x21, 0x7F))))
    return _ESCAPE.sub(_unescaped, escaped)


def _unescaped(match: re.Match[str]) -> str:
    char = chr(int(match[1], 16))
    return char if char in _UNRESERVED else match[0].upper()
