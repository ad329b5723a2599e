"""Read the settings of a crawl.toml that may be others for some URIs: for a SURT prefix, or what was found from a seed.

    [[settings]]
    prefixes = ["http://(org,example,"]
    seeds = ["https://www.example.org/"]
    robots = "ignore"
    [settings.politeness]
    least = 10

A key that is not there is as for the whole job. Of the prefixes that a URI has the longest counts, before its seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from warcmill.crawl import extract, job_values
from warcmill.crawl.job import Job, Sheets
from warcmill.crawl.job_values import CONFIGURATION
from warcmill.crawl.policies.prefixes import prefix
from warcmill.crawl.policies.quotas import By, Quota
from warcmill.crawl.policies.recrawl import Adaptive, Age, Calendar, Recrawl
from warcmill.crawl.uri import canonical
from warcmill.errors import BadConfig, BadInput

OBEY = {"obey": True, "ignore": False}
CONDITIONAL = {word: word for word in ("embeds", "all", "none")}
TABLES = {"fetch": "limits", "retries": "retries", "politeness": "politeness"}
KEYS = ("robots", "nofollow", "conditional", "extractors", "quotas", "recrawl", *TABLES)
SHEETS, PREFIXES, SEEDS = "settings", "prefixes", "seeds"


def read(found: Mapping[str, Any], base: Job, where: str = CONFIGURATION) -> Job:
    """Return `base` with what the keys say."""
    changed: dict[str, Any] = {
        field: job_values.table(found, key, getattr(base, field), where) for key, field in TABLES.items()
    }
    if unfit := [one for one in changed["retries"].statuses if not 400 <= one <= 599]:
        raise BadConfig(f"{where} [retries] statuses", f"{unfit[0]} is no status of an error; they are 400 to 599")
    for key in ("robots", "nofollow"):
        if key in found:
            changed[key] = job_values.choice(found, key, OBEY, "", where)
    if "conditional" in found:
        changed["conditional"] = job_values.choice(found, "conditional", CONDITIONAL, "", where)
    if "extractors" in found:
        changed["extractors"] = _extractors(found, where)
    if "quotas" in found:
        changed["quotas"] = tuple(_quota(one, place) for place, one in job_values.tables(found, "quotas", where))
    if "recrawl" in found:
        changed["recrawl"] = _recrawl(found, where)
    return replace(base, **changed)


def sheets(found: Mapping[str, Any], base: Job) -> Sheets:
    """Return the settings of `[[settings]]`. One prefix, or seed, has one of them."""
    by_prefix: dict[str, Job] = {}
    by_seed: dict[str, Job] = {}
    for where, one in job_values.tables(found, SHEETS):
        job_values.refuse_unknown(where, one, (PREFIXES, SEEDS, *KEYS))
        job = read(one, base, where)
        for by, names in ((by_prefix, _prefixes(one, where)), (by_seed, _seeds(one, where))):
            if twice := sorted(by.keys() & set(names)):
                raise BadConfig(where, f"{twice[0]} has settings already; put them together")
            by.update(dict.fromkeys(names, job))
        if not (one.get(PREFIXES) or one.get(SEEDS)):
            raise BadConfig(where, f"it says not for which URIs; add {PREFIXES} or {SEEDS}")
    return Sheets(by_prefix, by_seed)


def _extractors(found: Mapping[str, Any], where: str) -> frozenset[str]:
    names = frozenset(job_values.text_list(found, "extractors", where))
    if unknown := sorted(names - set(extract.NAMES)):
        raise BadConfig(f"{where} extractors", f"{unknown[0]!r} is none of {', '.join(extract.NAMES)}")
    return names or extract.DEFAULT


def _quota(one: Mapping[str, Any], where: str) -> Quota:
    by = job_values.choice(one, "by", {word.value: word for word in By}, "", where)
    counts = {key: value for key, value in one.items() if key != "by"}
    job_values.refuse_unknown(where, counts, ("documents", "bytes", "seconds"))
    return job_values.table({"most": counts}, "most", Quota(by), where)


def _recrawl(found: Mapping[str, Any], where: str) -> Recrawl:
    """One rule: an age, a calendar, or how often a page changes."""
    where = f"{where} [recrawl]"
    table = job_values.as_table(found["recrawl"], where)
    job_values.refuse_unknown(where, table, ("age", "calendar", "share", "least", "most"))
    try:
        match table:
            case {"age": int() | float() as age} if len(table) == 1 and not isinstance(age, bool):
                return Age(age)
            case {"calendar": str() as rule} if len(table) == 1:
                return Calendar(rule)
            case {} if table and table.keys() <= {"share", "least", "most"}:
                return job_values.table({"recrawl": table}, "recrawl", Adaptive(), where.removesuffix(" [recrawl]"))
    except BadConfig as error:
        raise BadConfig(where, error.why) from error
    raise BadConfig(where, "it takes one rule: age in seconds; or calendar, a text; or some of share, least, most")


def _prefixes(one: Mapping[str, Any], where: str) -> tuple[str, ...]:
    try:
        return tuple(map(prefix, job_values.text_list(one, PREFIXES, where)))
    except BadInput as error:
        raise BadConfig(f"{where} {PREFIXES}", f"{error.path} {error.why}") from error


def _seeds(one: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """The seeds, as they are written and as they are fetched: a URI's source may be either."""
    found = job_values.text_list(one, SEEDS, where)
    try:
        return tuple(dict.fromkeys(name for text in found for name in (text, canonical(text))))
    except BadInput as error:
        raise BadConfig(f"{where} {SEEDS} {error.path}", error.why) from error
