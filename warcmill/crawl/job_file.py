"""Read what configures a job of the built-in crawler: crawl.toml, strictly, and the lists beside it.

crawl.toml    how to crawl; each key has a default, and one that is not known is refused by name
seeds.txt     the URLs to begin with, a line each
surts.txt     SURT prefixes of the sites: all of them belongs to the crawl
exclude.txt   SURT prefixes of what is never crawled
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from warcmill.base import disk
from warcmill.crawl import job_settings, job_values
from warcmill.crawl.addresses import Judge
from warcmill.crawl.dns import parse_fixed
from warcmill.crawl.job import Job
from warcmill.crawl.job_values import CONFIGURATION
from warcmill.crawl.policies import own, prefixes
from warcmill.crawl.policies.patterns import Patterns
from warcmill.crawl.policies.quotas import Expiry
from warcmill.crawl.policies.scope import Reach, Scope
from warcmill.crawl.uri import canonical
from warcmill.errors import BadConfig, BadInput, Unavailable
from warcmill.formats.seeds import coding_of

SEEDS, SURTS, EXCLUDE = "seeds.txt", "surts.txt", "exclude.txt"
TABLES = {"limits": "ceilings", "traps": "traps"}
LISTS = ("policies", "patterns", "extensions", "allow_private", "name_servers", "resolve")
NUMBERS = {"workers": (1, 1000), "warc_size": (1, 1 << 40), "checkpoint_hours": (0, 24 * 366), "hops": (0, 255)}
KEYS = (
    "contact", "no_delay", "expires", "pages", "scope_log", *NUMBERS, *LISTS, *TABLES, *job_settings.KEYS,
    job_settings.SHEETS,
)  # fmt: skip


def read(folder: Path, name: str) -> Job:
    """Read the job in a folder; BadConfig for a fault, by name."""
    found = {}
    for file in (CONFIGURATION, SEEDS, SURTS, EXCLUDE):
        try:
            found[file] = (folder / file).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise Unavailable(str(folder / file), disk.reason(error, folder / file)) from error
    return parse(found, name)


def parse(files: Mapping[str, bytes], name: str) -> Job:
    """Return the job that these files describe; BadConfig for a fault, by name."""
    if CONFIGURATION not in files:
        raise BadConfig(CONFIGURATION, f"job {name} has none; 'warcmill crawl URL --job {name}' writes one")
    found = _toml(files[CONFIGURATION])
    job_values.refuse_unknown(CONFIGURATION, found, KEYS)
    seeds = _lines(files, SEEDS)
    if not seeds:
        raise BadConfig(SEEDS, f"job {name} has no seed in it: URLs to begin with, a line each")
    texts = {key: job_values.text_list(found, key) for key in LISTS}
    numbers: dict[str, Any] = {key: job_values.number(found, key, *NUMBERS[key]) for key in NUMBERS if key in found}
    hops = numbers.pop("hops", Scope().hops)
    plain = Job(name, seeds)
    tables = {field: job_values.table(found, key, getattr(plain, field)) for key, field in TABLES.items()}
    ends = job_values.moment(found, "expires")
    job = replace(
        plain,
        contact=job_values.text(found, "contact"),
        scope=Scope(_prefixes(files, SURTS), _prefixes(files, EXCLUDE), _pages(found, seeds), hops),
        policies=texts["policies"],
        patterns=texts["patterns"],
        extensions=texts["extensions"],
        allow_private=texts["allow_private"],
        no_delay=job_values.flag(found, "no_delay"),
        scope_log=job_values.flag(found, "scope_log"),
        resolve=parse_fixed(texts["resolve"]),
        name_servers=tuple(map(_server, texts["name_servers"])),
        expiry=Expiry({} if ends is None else {"": ends}),
        **tables,
        **numbers,
    )
    job = job_settings.read(found, job)
    _check(job)
    return replace(job, sheets=job_settings.sheets(found, job))


def _check(job: Job) -> None:
    """BadConfig for what only its user would refuse, when a launch has begun."""
    Judge(job.allow_private)
    Patterns(job.patterns)
    own.load(job.policies)


def _toml(data: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadConfig(CONFIGURATION, f"it is not TOML: {error}") from error


def _pages(found: Mapping[str, Any], seeds: Iterable[str]) -> dict[str, Reach]:
    """The seeds that are single pages, as seeds.txt writes them, and how far each reaches."""
    value = found.get("pages", {})
    where = f"{CONFIGURATION} [pages]"
    if not isinstance(value, dict):
        raise BadConfig(where, "it is no table of seeds")
    try:
        reaches = {canonical(seed): Reach(word) for seed, word in value.items()}
    except BadInput as error:
        raise BadConfig(f"{where} {error.path}", error.why) from error
    except ValueError as error:
        raise BadConfig(where, f"{error}; a page reaches one of {', '.join(Reach)}") from error
    return {seed: reach for seed in seeds if (reach := reaches.get(_canonical(seed)))}


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


def _lines(files: Mapping[str, bytes], name: str) -> tuple[str, ...]:
    text = _decoded(files.get(name, b""), name)
    lines = (line.strip() for line in text.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))


def _prefixes(files: Mapping[str, bytes], name: str) -> prefixes.Prefixes:
    try:
        return prefixes.read(_decoded(files.get(name, b""), name))
    except BadInput as error:
        raise BadConfig(name, f"{error.path} {error.why}") from error


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode(coding_of(data))  # editors of Windows write UTF-16, or begin a file with U+FEFF
    except UnicodeDecodeError as error:
        coding = error.encoding.upper()
        raise BadConfig(name, f"it is not {coding}: {error.reason} at byte {error.start}") from error
