"""The text of the files that configure a job of the built-in crawler, for `file` to read. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from typing import Any

from warcmill.crawl.job.file import SEEDS, SURTS
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.errors import BadConfig
from warcmill.formats.feed import Depth, TargetScope
from warcmill.formats.targets import Caps, Plan, Policy, prefixes_of

OF_FEED = ("contact", "defaults", "pages", "quotas", "settings")
"""The keys that a feed decides."""
FED = "# Written from the feed before each launch. To change it, change the feed, or [feed] settings of luigi.cfg.\n"
HEAD = "# Written by 'warcmill crawl', and written anew by the next. To keep your own, take this line away.\n"


def files(settings: Mapping[str, Any], seeds: Sequence[str], scope: TargetScope) -> dict[str, bytes]:
    """The files of a job that begins with these canonical URLs, and crawls what a feed's target of this scope does.

    BadConfig for pages among its further keys that differ from those of the scope.
    """
    pages = dict.fromkeys(seeds, scope.value) if scope in (TargetScope.RESOURCE, TargetScope.PLUS1) else {}
    if settings.get("pages", pages) != pages:
        raise BadConfig("--config pages", f"--scope decides it, which is {scope}; take it out of the file")
    return {
        CONFIGURATION: render({**settings, **({"pages": pages} if pages else {})}).encode(),
        SEEDS: _lines(seeds),
        SURTS: _lines(f"+{prefix}" for seed in seeds for prefix in prefixes_of(seed.partition("#")[0], scope)),
    }


def of_plan(settings: Mapping[str, Any], plan: Plan, contact: str, caps: Caps) -> dict[str, bytes]:
    """The files of a job that crawls what a feed's targets ask for. `settings` are its further keys.

    BadConfig for one of those that the feed decides.
    """
    if known := sorted(set(settings) & set(OF_FEED)):
        raise BadConfig(f"[feed] settings, {known[0]}", "the feed decides it; take it out of the file")
    keys = {
        "contact": contact,
        **({} if caps.are_set else {"defaults": ["quotas"]}),
        **settings,
        "pages": {seed: page.reach.value for seed, page in sorted(plan.pages.items())},
        "quotas": _quotas(Depth.CAPPED, caps),
        "settings": [*_alike("prefixes", plan.sites, caps), *_alike("seeds", _policies(plan), caps)],
    }
    return {CONFIGURATION: render(keys, FED).encode(), **plan.lists(), SEEDS: _lines(sorted(plan.routed or plan.seeds))}


def _policies(plan: Plan) -> dict[str, Policy]:
    return {seed: page.policy for seed, page in plan.pages.items()}


def _alike(key: str, policies: Mapping[str, Policy], caps: Caps) -> Iterator[dict[str, Any]]:
    """The settings of all prefixes, or seeds, that are crawled alike: one for each way."""
    for policy in sorted(set(policies.values())):
        members = sorted(name for name, one in policies.items() if one == policy)
        robots = "ignore" if policy.ignore_robots else "obey"
        yield {key: members, "robots": robots, "quotas": _quotas(policy.depth, caps)}


def _quotas(depth: Depth, caps: Caps) -> list[dict[str, Any]]:
    most = {Depth.CAPPED: caps.capped, Depth.CAPPED_LARGE: caps.capped_large}.get(depth)
    return [{"by": "host", "bytes": most}] if most else []


def render(settings: Mapping[str, Any], head: str = HEAD) -> str:
    """A crawl.toml with these keys: texts, numbers, times, lists, tables of them, and lists of tables."""
    parts = {name: _tables(name, value) for name, value in settings.items()}
    plain = [_line(name, settings[name]) for name, tables in parts.items() if tables is None]
    tables = [text for some in parts.values() if some for text in some]
    return "".join([head, *plain, *tables])


def _tables(name: str, value: object) -> list[str] | None:
    """A table, or a list of tables, each under its head; None for what is neither."""
    if isinstance(value, Mapping):
        return [_table(f"[{name}]", value)]
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        return [_table(f"[[{name}]]", one) for one in value]
    return None


def _table(head: str, value: Mapping[str, Any]) -> str:
    return "".join([f"\n{head}\n", *(_line(key, one) for key, one in value.items())])


def _line(name: str, value: object) -> str:
    return f"{_key(name)} = {_value(value)}\n"


def _value(value: object) -> str:
    match value:
        case date() | time():  # a datetime is a date
            return value.isoformat()
        case float():
            return repr(value)  # inf and nan as TOML has them
        case Mapping():
            return "{ " + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items()) + " }"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
    # A text in JSON is one in TOML, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").isalnum() else json.dumps(name)


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in dict.fromkeys(lines)).encode()
