"""The files that configure a job of the built-in crawler: crawl.toml, read strictly, and its lists. Reads only.

crawl.toml    the crawl; each key has a default, and one that is not known is refused by name
seeds.txt     the URLs to begin with, a line each
seeds.jsonl   more of them, each with a payload if it has one: such a list may be long, and is not read here
surts.txt     SURT prefixes of the sites: all of them belongs to the crawl
exclude.txt   SURT prefixes of URIs that are never crawled

Some URIs may have settings of their own: those of a SURT prefix, or found from a seed.

    [[settings]]
    prefixes = ["http://(org,example,"]
    seeds = ["https://www.example.org/"]
    robots = "ignore"
    [settings.politeness]
    least = 10

A key that is not there is as for the whole job. Of the prefixes that a URI has the longest counts, before its seed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from warcmill.base import disk
from warcmill.crawl import extract
from warcmill.crawl.fetch import login
from warcmill.crawl.fetch.addresses import Judge, parse_fixed
from warcmill.crawl.fetch.exchange import WINDOW
from warcmill.crawl.frontier import GateBy
from warcmill.crawl.job import values
from warcmill.crawl.job.job import DOMAIN, HOST, Job, Sheets
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.policies import decision, scope
from warcmill.crawl.policies.quotas import By, Expiry, Quota
from warcmill.crawl.policies.recrawl import Adaptive, Age, Calendar, Recrawl
from warcmill.crawl.policies.scope import CrawlScope, Patterns, prefix
from warcmill.crawl.render import WHICH, BrowserSettings, RenderSettings, check_browser, read_behavior
from warcmill.crawl.uri import canonical
from warcmill.errors import BadConfig, BadInput, Unavailable
from warcmill.formats.seeds import SEED_LIST, coding_of
from warcmill.formats.targets import PageReach

OBEY = {"obey": True, "ignore": False}
CONDITIONAL = {word: word for word in ("embeds", "all", "none")}
GATES: dict[str, GateBy] = {str(word): word for word in GateBy}
SHEET_TABLES = {"fetch": "limits", "retries": "retries", "politeness": "politeness"}
SHEET_KEYS = ("robots", "nofollow", "conditional", "extractors", "quotas", "recrawl", "render", *SHEET_TABLES)
LONGEST_RENDER = 600  # seconds: a page that is open holds a worker
SHEETS, PREFIXES, SHEET_SEEDS = "settings", "prefixes", "seeds"


SEEDS, SURTS, EXCLUDE = "seeds.txt", "surts.txt", "exclude.txt"
TABLES = {"limits": "ceilings", "traps": "traps"}
LISTS = ("defaults", "policies", "patterns", "extensions", "allow_private", "name_servers", "resolve")
NUMBERS = {"workers": (1, 1000), "warc_size": (1, 1 << 40), "checkpoint_hours": (0, 24 * 366), "hops": (0, 255)}
FLAGS = ("no_delay", "endless", "scope_log", "results_log")
SCRIPTS = "scripts"  # whose results are lines of results.jsonl
IMPORTED = "imported"  # the file of another crawler that the job was made from, which no crawl reads
SERVICES = ("requests", SCRIPTS)  # flags of which one may be set: the room that serves who asks for URIs
KEYS = (
    values.ABOUT, "contact", "queue_by", "gate_by", "expires", "pages", "revisits", *FLAGS, *SERVICES, *NUMBERS, *LISTS,
    *TABLES, *SHEET_KEYS, SHEETS, IMPORTED,
)  # fmt: skip


def read_settings(found: Mapping[str, Any], base: Job, where: str = CONFIGURATION) -> Job:
    """Return `base` with the values of the keys."""
    changed: dict[str, Any] = {
        field: values.table(found, key, getattr(base, field), where) for key, field in SHEET_TABLES.items()
    }
    if unfit := [one for one in changed["retries"].statuses if not 400 <= one <= 599]:
        raise BadConfig(f"{where} [retries] statuses", f"{unfit[0]} is not the status of an error; they are 400 to 599")
    for key in ("robots", "nofollow"):
        if key in found:
            changed[key] = values.choice(found, key, OBEY, "", where)
    if "conditional" in found:
        changed["conditional"] = values.choice(found, "conditional", CONDITIONAL, "", where)
    if "extractors" in found:
        changed["extractors"] = _extractors(found, where)
    if "quotas" in found:
        changed["quotas"] = tuple(_quota(one, place) for place, one in values.tables(found, "quotas", where))
    if "recrawl" in found:
        changed["recrawl"] = _recrawl(found, where)
    if "render" in found:
        changed["render"] = _render(found, base.render, where)
    return replace(base, given=base.given | _given(found, base.defaults), **changed)


def _given(found: Mapping[str, Any], defaults: Collection[str]) -> frozenset[str]:
    """The keys that are set, those of a table after its name: `hops`, `[fetch] body`, `[[quotas]] bytes`."""
    found = {key: value for key, value in found.items() if key not in defaults}
    keys = {key for key, value in found.items() if not isinstance(value, dict)}
    keys |= {f"[{table}] {key}" for table, value in found.items() if isinstance(value, dict) for key in value}
    return frozenset(keys | {f"[[quotas]] {key}" for one in found.get("quotas", ()) for key in one})


def sheets(found: Mapping[str, Any], base: Job) -> Sheets:
    """Return the settings of `[[settings]]`. One prefix, or seed, has one of them."""
    by_prefix: dict[str, Job] = {}
    by_seed: dict[str, Job] = {}
    for where, one in values.tables(found, SHEETS):
        values.refuse_unknown(where, one, (PREFIXES, SHEET_SEEDS, *SHEET_KEYS))
        _refuse_of_job(one, where)
        job = read_settings(one, base, where)
        for by, names in ((by_prefix, _sheet_prefixes(one, where)), (by_seed, _seeds(one, where))):
            if twice := sorted(by.keys() & set(names)):
                raise BadConfig(where, f"{twice[0]} has settings already; put them together")
            by.update(dict.fromkeys(names, job))
        if not (one.get(PREFIXES) or one.get(SHEET_SEEDS)):
            raise BadConfig(where, f"it names no URIs that it is for; add {PREFIXES} or {SHEET_SEEDS}")
    return Sheets(by_prefix, by_seed)


def _refuse_of_job(one: Mapping[str, Any], where: str) -> None:
    """BadConfig for settings that only a whole job may have: a host has one gate, whatever the URI."""
    if "at_once" in values.as_table(one.get("politeness", {}), f"{where} [politeness]"):
        raise BadConfig(f"{where} [politeness] at_once", "it is for the whole job; put it into its [politeness]")


def _extractors(found: Mapping[str, Any], where: str) -> frozenset[str]:
    names = frozenset(values.text_list(found, "extractors", where))
    if unknown := sorted(names - set(extract.NAMES)):
        raise BadConfig(f"{where} extractors", f"{unknown[0]!r} is none of {', '.join(extract.NAMES)}")
    return names or extract.DEFAULT


def _quota(one: Mapping[str, Any], where: str) -> Quota:
    by = values.choice(one, "by", {word.value: word for word in By}, "", where)
    counts = {key: value for key, value in one.items() if key != "by"}
    values.refuse_unknown(where, counts, ("documents", "bytes", "seconds"))
    return values.table({"most": counts}, "most", Quota(by), where)


def _recrawl(found: Mapping[str, Any], where: str) -> Recrawl:
    """One rule: an age, a calendar, or how often a page changes."""
    where = f"{where} [recrawl]"
    table = values.as_table(found["recrawl"], where)
    values.refuse_unknown(where, table, ("age", "calendar", "share", "least", "most"))
    try:
        match table:
            case {"age": int() | float() as age} if len(table) == 1 and not isinstance(age, bool):
                return Age(age)
            case {"calendar": str() as rule} if len(table) == 1:
                return Calendar(rule)
            case {} if table and table.keys() <= {"share", "least", "most"}:
                return values.table({"recrawl": table}, "recrawl", Adaptive(), where.removesuffix(" [recrawl]"))
    except BadConfig as error:
        raise BadConfig(where, error.why) from error
    raise BadConfig(where, "it takes one rule: age in seconds; or calendar, a text; or some of share, least, most")


def _render(found: Mapping[str, Any], base: RenderSettings, where: str) -> RenderSettings:
    """The pages that are opened in a browser, and what one may take. All share the sandbox: there is one
    browser."""
    at = f"{where} [render]"
    table = dict(values.as_table(found["render"], at))
    if where != CONFIGURATION and "sandbox" in table:
        raise BadConfig(f"{at} sandbox", f"all pages have one browser; set it in [render] of {CONFIGURATION}")
    which = values.choice(table, "which", {word: word for word in WHICH}, base.which, at)
    cookies = values.text(table, "cookies", at) if "cookies" in table else base.cookies
    bundle = values.text(table, "behaviors", at) if "behaviors" in table else base.behaviors
    if bundle and not os.path.isabs(bundle):
        raise BadConfig(f"{at} behaviors", f"is {bundle!r}; it takes the path of a file, from / on")
    table = {name: value for name, value in table.items() if name not in ("which", "cookies", "behaviors")}
    render = values.table({"render": table}, "render", base, where)
    for name, least, most in (("width", 1, WINDOW), ("height", 1, WINDOW), ("seconds", 1, LONGEST_RENDER)):
        if not least <= getattr(render, name) <= most:
            raise BadConfig(f"{at} {name}", f"is {getattr(render, name)}; it takes a number from {least} to {most:,}")
    return replace(render, which=which, cookies=cookies, behaviors=bundle)


def _sheet_prefixes(one: Mapping[str, Any], where: str) -> tuple[str, ...]:
    try:
        return tuple(map(prefix, values.text_list(one, PREFIXES, where)))
    except BadInput as error:
        raise BadConfig(f"{where} {PREFIXES}", f"{error.path} {error.why}") from error


def _seeds(one: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """The seeds, as they are written and as they are fetched: a URI's source may be either."""
    found = values.text_list(one, SHEET_SEEDS, where)
    try:
        return tuple(dict.fromkeys(name for text in found for name in (text, canonical(text))))
    except BadInput as error:
        raise BadConfig(f"{where} {SHEET_SEEDS} {error.path}", error.why) from error


def read(folder: Path, name: str) -> Job:
    """Read the job in a folder; BadConfig for a fault, by name."""
    return parse(files_in(folder), name)


def files_in(folder: Path) -> dict[str, bytes]:
    """The files that configure the job in a folder; those that it has. Of seeds.jsonl only the name counts."""
    found = {}
    for file in (CONFIGURATION, SEEDS, SURTS, EXCLUDE):
        try:
            found[file] = (folder / file).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise Unavailable(str(folder / file), disk.reason(error, folder / file)) from error
    if (folder / SEED_LIST).exists():
        found[SEED_LIST] = b""
    return found


def lacks_seeds(files: Mapping[str, bytes]) -> bool:
    """True if these files have no URI to begin with, serve nobody who asks for some, and end: an endless job may be
    given its URIs by others."""
    found = values.toml_of(files[CONFIGURATION])
    has_others = _service(found) or values.flag(found, "endless")
    return not _lines(files, SEEDS) and SEED_LIST not in files and not has_others


def parse(files: Mapping[str, bytes], name: str) -> Job:
    """Return the job that these files describe; BadConfig for a fault, by name. Of seeds.jsonl only the name counts."""
    job = described(files, name)
    _check(job)
    return job


def described(files: Mapping[str, bytes], name: str) -> Job:
    """The same job, unchecked: its policies, its browser or its login may be missing here."""
    if CONFIGURATION not in files:
        raise BadConfig(CONFIGURATION, f"job {name} has none; 'warcmill crawl URL --job {name}' writes one")
    found = values.toml_of(files[CONFIGURATION])
    values.refuse_unknown(CONFIGURATION, found, KEYS)
    seeds = _lines(files, SEEDS)
    service = _service(found)
    values.as_table(found.get(IMPORTED, {}), f"{CONFIGURATION} [{IMPORTED}]")
    if lacks_seeds(files):
        raise BadConfig(SEEDS, f"job {name} has no seed in it: URLs to begin with, a line each")
    texts = {key: values.text_list(found, key) for key in LISTS}
    numbers: dict[str, Any] = {key: values.number(found, key, *NUMBERS[key]) for key in NUMBERS if key in found}
    hops = numbers.pop("hops", CrawlScope().hops)
    flags: dict[str, Any] = {key: values.flag(found, key) for key in FLAGS}
    flags["results_log"] |= service == SCRIPTS
    plain = Job(name, seeds)
    tables = {field: values.table(found, key, getattr(plain, field)) for key, field in TABLES.items()}
    ends = values.moment(found, "expires")
    values.about(found)
    job = replace(
        plain,
        contact=values.text(found, "contact"),
        scope=CrawlScope(_prefixes(files, SURTS), _prefixes(files, EXCLUDE), _pages(found, seeds), hops),
        defaults=texts["defaults"],
        policies=texts["policies"],
        patterns=texts["patterns"],
        extensions=texts["extensions"],
        allow_private=texts["allow_private"],
        queue_by=values.choice(found, "queue_by", {word: word for word in (HOST, DOMAIN)}, HOST),
        revisits=values.flag(found, "revisits", default=True),
        gate_by=values.choice(found, "gate_by", GATES, str(GateBy.QUEUE)),
        resolve=parse_fixed(texts["resolve"]),
        name_servers=tuple(map(_server, texts["name_servers"])),
        expiry=Expiry({} if ends is None else {"": ends}),
        **flags,
        service=service,
        **tables,
        **numbers,
    )
    job = read_settings(found, job)
    return replace(job, sheets=sheets(found, job))


def _check(job: Job) -> None:
    """BadConfig for what only its user would refuse, when a launch has begun."""
    Judge(job.allow_private)
    Patterns(job.patterns)
    decision.load(job.policies)
    for path in {one.render.cookies for one in job.each()} - {""}:
        login.read(path, f"{CONFIGURATION} [render] cookies")
    if job.renders:
        check_browser(BrowserSettings(sandbox=job.render.sandbox))
        if job.render.behaviors:
            read_behavior(Path(job.render.behaviors))


def _pages(found: Mapping[str, Any], seeds: Iterable[str]) -> dict[str, PageReach]:
    """The seeds that are single pages, as seeds.txt writes them, and how far each reaches."""
    value = found.get("pages", {})
    where = f"{CONFIGURATION} [pages]"
    if not isinstance(value, dict):
        raise BadConfig(where, "it is not a table of seeds")
    try:
        reaches = {canonical(seed): PageReach(word) for seed, word in value.items()}
    except BadInput as error:
        raise BadConfig(f"{where} {error.path}", error.why) from error
    except ValueError as error:
        raise BadConfig(where, f"{error}; a page reaches one of {', '.join(PageReach)}") from error
    plain = (name for seed in seeds for name in (seed, seed.partition("#")[0]))  # a source has no route
    return {seed: reach for seed in plain if (reach := reaches.get(_canonical(seed)))}


def _canonical(seed: str) -> str:
    try:
        return canonical(seed)
    except BadInput:  # the crawl names it in uri-errors.log
        return ""


def _server(text: str) -> tuple[str, int]:
    """A name server: ADDRESS or ADDRESS:PORT."""
    address, _, port = text.rpartition(":") if text.count(":") == 1 else (text, "", "53")
    try:
        ip_address(address)
        return address, int(port)
    except ValueError as error:
        raise BadConfig(f"{CONFIGURATION} name_servers", f"{text!r} is not ADDRESS or ADDRESS:PORT") from error


def _service(found: Mapping[str, Any]) -> str:
    return next((key for key in SERVICES if values.flag(found, key)), "")


def _lines(files: Mapping[str, bytes], name: str) -> tuple[str, ...]:
    text = _decoded(files.get(name, b""), name)
    lines = (line.strip() for line in text.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))


def _prefixes(files: Mapping[str, bytes], name: str) -> scope.SurtPrefixes:
    try:
        return scope.read(_decoded(files.get(name, b""), name))
    except BadInput as error:
        raise BadConfig(name, f"{error.path} {error.why}") from error


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode(coding_of(data))  # editors of Windows write UTF-16, or begin a file with U+FEFF
    except UnicodeDecodeError as error:
        coding = error.encoding.upper()
        raise BadConfig(name, f"it is not {coding}: {error.reason} at byte {error.start}") from error
