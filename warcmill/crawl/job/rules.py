"""The rules of a job that leave addresses out, as a person writes them; and the rule that an address meets. Pure.

    calendar                     a word: each address that has it somewhere
    */print/*                    wildcards: `*` stands for any letters; all of the address is compared
    re: .*[?&]day=[0-9]+.*       an expression of RE2, which takes time linear in the address
    http://(org,example,)/old/   a SURT prefix, a line of exclude.txt

Words and wildcards are in upper or lower case alike. In crawl.toml they are expressions of `patterns`, too: `\\Q` and
`\\E` are around what is meant as it is written, so that each can be read back as the person wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from warcmill.crawl import uri as uris
from warcmill.crawl.extract.links import LINK
from warcmill.crawl.job.job import Job
from warcmill.crawl.policies import scope
from warcmill.crawl.policies.decision import Ask, Decision
from warcmill.crawl.policies.scope import Extensions, Patterns, Traps
from warcmill.crawl.uri import Uri
from warcmill.errors import BadConfig, BadInput
from warcmill.formats import surt as surts
from warcmill.formats.logs.bounds import BOUNDS
from warcmill.formats.targets import PageReach

MOST, LONGEST = 2_000, 2_000  # rules of a job, and letters of one
EXPRESSION = "re:"
_SURT = ("http://(", "https://(")
_OF_KEEPING = ("scope", "part-hops")  # bounds
_ANY, _OPEN, _CLOSE, _CASE = ".*", r"\Q", r"\E", "(?i)"


class LeavingRules(NamedTuple):
    """The rules of a list: the expressions of crawl.toml, and the prefixes of exclude.txt, as they are written."""

    patterns: tuple[str, ...]
    prefixes: tuple[str, ...]


def read(text: str) -> LeavingRules:
    """The rules of a list, a line each. BadInput names the line of an invalid rule."""
    patterns, prefixes = dict[str, None](), dict[str, None]()
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if not line:
            continue
        if len(line) > LONGEST:
            raise BadInput(f"line {number}", f"a rule of {len(line):,} letters; {LONGEST:,} are the most")
        if line.startswith(_SURT):
            prefixes[line] = None
            continue
        try:
            expression = expression_of(line)
            Patterns([expression])
        except (BadConfig, BadInput) as error:
            raise BadInput(f"line {number}", error.why) from error
        patterns[expression] = None
    if len(patterns) + len(prefixes) > MOST:
        raise BadInput("leave out", f"{len(patterns) + len(prefixes):,} rules; {MOST:,} are the most")
    return LeavingRules(tuple(patterns), tuple(prefixes))


def expression_of(rule: str) -> str:
    """The expression of a rule, other than a prefix. BadInput for a word with a backslash: it is in no address."""
    if rule.startswith(EXPRESSION):
        return rule.removeprefix(EXPRESSION).strip()
    if "\\" in rule:
        raise BadInput(rule, f"no address has a backslash; an expression has '{EXPRESSION}' before it")
    text = rule if "*" in rule else f"*{rule}*"
    return _CASE + _ANY.join(f"{_OPEN}{part}{_CLOSE}" if part else "" for part in text.split("*"))


def rule_of(expression: str) -> str:
    """The rule that an expression of crawl.toml is, as a person writes it."""
    parts, rest = [""], expression.removeprefix(_CASE)
    while rest:
        if rest.startswith(_ANY):
            parts, rest = [*parts, ""], rest.removeprefix(_ANY)
        elif rest.startswith(_OPEN) and _CLOSE in rest and not parts[-1]:
            parts[-1], _, rest = rest.removeprefix(_OPEN).partition(_CLOSE)
        else:
            break
    rule = "*".join(parts)
    word = rule[1:-1]
    found = word if rule == f"*{word}*" and word and "*" not in word else rule
    is_same = not rest and found.strip() == found and not found.startswith((EXPRESSION, *_SURT)) and "\\" not in found
    return found if found and is_same and expression_of(found) == expression else f"{EXPRESSION} {expression}"


def named(text: str, *, is_rule: bool) -> str:
    """A rule as a list has it, of what a person names: a rule, or the beginning of URLs. BadInput for another text."""
    if not is_rule:
        return scope.beginning(text)
    try:
        found = read(text)
    except BadInput as error:
        raise BadInput("rule", error.why) from error
    if len(found.patterns) + len(found.prefixes) != 1:
        raise BadInput("rule", "name one rule: a word, wildcards, 're:' and an expression of RE2, or a SURT prefix")
    return rule_of(found.patterns[0]) if found.patterns else scope.prefix(found.prefixes[0])


def hits(rule: str) -> Callable[[str], bool]:
    """The test by which a rule leaves out a canonical address, as at its lease."""
    if rule.startswith(_SURT):
        return lambda address: surts.surt(address).startswith(rule)
    patterns = Patterns([expression_of(rule)])
    return lambda address: patterns.judge(Uri(address, address, "")) is not None


class JudgedAddress(Struct, frozen=True):
    """An address as the rules have it: `rule` is the one that leaves it out, in a person's words; '' for one that is
    taken. `line`: of the list that it was in."""

    line: int
    address: str
    rule: str
    why: str = ""


class RuleBook:
    """The rules of a job that need no network, asked in the order of a crawl."""

    def __init__(self, job: Job) -> None:
        self._seeds = _canonical(job.seeds)
        self._pages: Mapping[str, PageReach] = getattr(job.scope, "pages", {})
        self._traps = Traps(job.traps.length, job.traps.depth, job.traps.repeats, job.traps.queries)
        self._asks: Sequence[Ask] = (
            job.scope.judge, self._traps.judge, Patterns(job.patterns).judge, Extensions(job.extensions).judge,
        )  # fmt: skip

    def against(self, uri: Uri) -> Decision | None:
        """The decision of the first rule that refuses a URI; None if it is taken, and then it is counted."""
        for ask in self._asks:
            if found := ask(uri):
                return found
        self._traps.taken(uri)
        return None

    def linked(self, address: str) -> Uri:
        """An address as one that a seed links to; a seed is itself. BadInput for what cannot be fetched."""
        found = uris.make(address if "://" in address else f"https://{address}")
        seeds = self._seeds
        if found.uri in seeds:
            return uris.make(found.uri, source=seeds[found.uri])
        wide = (one for one in seeds.values() if self._pages.get(one) is PageReach.PLUS1)
        source = next(wide, next(iter(seeds.values()), ""))
        return uris.make(found.uri, hops=LINK, via=source, source=source)


def judged(job: Job, text: str, most: int = 1_000) -> list[JudgedAddress]:
    """Each address of some lines, in or out, and by which rule; as if a seed linked to it. No site is asked."""
    book, found = RuleBook(job), list[JudgedAddress]()
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if not line:
            continue
        if len(found) == most:
            raise BadInput(f"line {number}", f"{most:,} addresses are looked at together; look at the rest afterwards")
        try:
            uri = book.linked(line)
        except BadInput as error:
            found.append(JudgedAddress(number, line, "no address", error.why))
            continue
        against = book.against(uri)
        found.append(JudgedAddress(number, uri.uri, *(in_words(against) if against else ("", ""))))
    return found


def in_words(against: Decision) -> tuple[str, str]:
    """The rule that a decision is of, in the words of who wrote it, and why: the same for all that it leaves out."""
    if against.policy == Patterns.name:
        return rule_of(against.why.removeprefix("matches ")), against.why
    if against.bound == "excluded":
        return against.why.removeprefix("excluded by "), against.why
    if against.policy == Extensions.name:
        return f".{against.why.rpartition(' is not wanted')[0].rpartition('.')[2]}", against.why
    if against.bound not in _OF_KEEPING:
        return f"{BOUNDS[against.bound].key} {against.limit}", against.why
    return "what to keep", against.why


def _canonical(seeds: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for seed in seeds:
        try:
            found.setdefault(uris.canonical(seed), seed.partition("#")[0])
        except BadInput:
            continue
    return found
