"""brozzler's job-conf as the papers of a job of the built-in crawler, and back. Pure.

`papers` keeps the whole file in `imported` of crawl.toml, which no crawl
reads; so `conf` gives the same file back until the papers are edited. Both also return a line for all that the other
crawler would not do.

brozzler takes all below the URL of a seed, and what `accepts` takes. A prefix is read as `http://(org,example,`, as
`org,example)/`, as an `ssurt`, or as a domain. Here it is of both schemes;
there a `surt` is of one, so two are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct

from warcmill.crawl.job import file, values
from warcmill.crawl.job.text import render
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.policies import scope
from warcmill.crawl.policies.quotas import By
from warcmill.crawl.policies.scope import CrawlScope, Patterns, SurtPrefixes
from warcmill.crawl.uri import canonical
from warcmill.errors import BadConfig, BadInput
from warcmill.formats import hosts, surt
from warcmill.formats.job_conf import BrozzlerOptions, BrozzlerScope, BrozzlerSeed, JobConf, ScopeRule
from warcmill.formats.seeds import SEED_LIST
from warcmill.formats.targets import PageReach
from warcmill.model import parse_job

HEAD = "# Imported from brozzler's job-conf. An edit stays, and the next import of this job is refused then.\n"
ALL_HOPS: Final = file.NUMBERS["hops"][1]
_is_bare = re.compile(
    r"\(?([a-z0-9_-]++(?:,[a-z0-9_-]++)*+,?+)((?:\)|:[0-9]++\)).*)?", re.IGNORECASE | re.DOTALL
).fullmatch
_is_ssurt = re.compile(
    r"([a-z0-9_,.\[\]:-]+?)(?://(?:([0-9]+):)?(?:https?:(/.*)?)?)?", re.IGNORECASE | re.DOTALL
).fullmatch
_in_surt = re.compile(r"(https?://\()([^):/]*)(.*)", re.DOTALL).fullmatch
_is_domain = re.compile(r"http://\(((?:[a-z0-9_-]++,)++)").fullmatch
_ESCAPED, _SPECIAL = re.compile(r"\\(.)"), re.compile(r"([\\.^$*+?{}\[\]|()])")
_OURS = re.compile(r"Mozilla/5\.0 \(compatible; warcmill/[^;]*; \+(https?://[^\s)]+)\)").fullmatch
_OLD_RULES = {"STRING_MATCH": "substring", "SURT_MATCH": "surt", "REGEX_MATCH": "regex"}


class ImportedJob(Struct, frozen=True):
    """A job's name and papers, and a line for all that its crawl does not do as brozzler would."""

    name: str
    papers: Mapping[str, bytes]
    lost: tuple[str, ...]


def papers(known: JobConf, path: str, name: str = "") -> ImportedJob:
    """The papers of the job that a job-conf describes. `name`: of one without id. BadInput for an id that no job may
    have, and without a seed that is crawled."""
    return _Import(known, path).made(parse_job(name if known.id is UNSET else str(known.id)))


class _Import:
    def __init__(self, known: JobConf, path: str) -> None:
        self._conf, self._path = known, path
        self._lost: list[str] = []
        self._patterns: list[str] = []

    def made(self, name: str) -> ImportedJob:
        conf, of_job = self._conf, self._conf.scope or BrozzlerScope()
        seeds = [seed for seed in conf.seeds if self._is_kept(seed)]
        if not seeds:
            raise BadInput(self._path, "none of its seeds is an http or https URL")
        alone = len(seeds) == 1
        accepts, blocks = list(of_job.accepted), list(of_job.blocks)
        for seed in seeds:
            own = seed.scope or BrozzlerScope()
            if not alone and own.accepted:
                self._lose(f"seed {seed.url}", "accepts", "they count for every seed of the job")
            if not alone and own.blocks:
                self._lose(f"seed {seed.url}", "blocks", "they count for no seed")
            accepts += own.accepted
            blocks += own.blocks if alone else ()
        first = seeds[0].scope or BrozzlerScope()
        whole = first if alone and first.max_hops is not UNSET else of_job
        sites = [f"+{_below(seed.url)}" for seed in seeds] + [f"+{one}" for one in self._prefixes(accepts, "accepts")]
        excluded = [f"+{one}" for one in self._prefixes(blocks, "blocks")]
        keys: dict[str, Any] = {
            **self._contact(), "hops": self._hops(whole), **_crawled(conf),
            **({"patterns": self._patterns} if self._patterns else {}),
            "pages": self._pages(seeds, of_job, ALL_HOPS if whole.max_hops is UNSET else whole.max_hops),
            "settings": [{"seeds": [seed.url], **own_keys} for seed in seeds if (own_keys := _crawled(seed, conf))],
            file.IMPORTED: msgspec.to_builtins(conf),
        }  # fmt: skip
        self._name_rest()
        written = {
            CONFIGURATION: render({key: value for key, value in keys.items() if value not in ({}, [])}, HEAD).encode(),
            file.SEEDS: _lines(seed.url for seed in seeds), file.SURTS: _lines(sites), file.EXCLUDE: _lines(excluded),
        }  # fmt: skip
        file.parse(written, name)
        return ImportedJob(name, written, tuple(dict.fromkeys(self._lost)))

    def _is_kept(self, seed: BrozzlerSeed) -> bool:
        try:
            canonical(seed.url)
        except BadInput as error:
            self._lose(f"seed {seed.url[:200]!a}", "url", f"it is not crawled: {error.why}")
            return False
        return True

    def _contact(self) -> dict[str, str]:
        agent = self._conf.user_agent or ""
        ours = _OURS(agent)
        if agent and not ours:
            self._lose("the job", "user_agent", "the crawler names itself, and its contact")
        return {"contact": ours[1]} if ours else {}

    def _hops(self, found: BrozzlerScope) -> int:
        hops = ALL_HOPS if found.max_hops is UNSET else found.max_hops
        if not 0 <= hops <= ALL_HOPS:
            self._lose("scope", "max_hops", f"it is at most {ALL_HOPS}")
        return max(0, min(hops, ALL_HOPS))

    def _pages(self, seeds: Sequence[BrozzlerSeed], of_job: BrozzlerScope, hops: int) -> dict[str, str]:
        """The seeds that are single pages: without a hop, or with one to anywhere."""
        pages = {}
        for seed in seeds:
            own = seed.scope or BrozzlerScope()
            most = hops if own.max_hops is UNSET else own.max_hops
            off = (of_job.off or 0) if own.off is UNSET else own.off
            if (most, off) == (1, 1):
                pages[seed.url] = str(PageReach.PLUS1)
            elif most == 0:
                pages[seed.url] = str(PageReach.RESOURCE)
            else:
                if off:
                    self._lose(f"seed {seed.url}", "max_hops_off", "nothing outside the scope is crawled")
                if most != hops:
                    self._lose(f"seed {seed.url}", "max_hops", "a job has one number of hops")
        return pages

    def _prefixes(self, rules: Iterable[ScopeRule], key: str) -> list[str]:
        """The prefixes of the rules that are one; expressions that block are added to `patterns`."""
        found = list[str]()
        for rule in rules:
            match _as_one(rule):
                case ("surt" | "ssurt" | "domain" as kind, text) if prefixes := _read_prefixes(kind, text):
                    found += prefixes
                case ("substring", text) if key == "blocks":
                    self._patterns.append(_containing(text))
                case ("regex", text) if key == "blocks" and _is_pattern(text):
                    self._patterns.append(text)
                case _:
                    self._lose("scope", key, f"a rule that is not kept: {msgspec.json.encode(rule).decode()[:300]}")
        return list(dict.fromkeys(found))

    def _name_rest(self) -> None:
        """Name the options that the crawl does not have. `metadata` changes no crawl, there or here."""
        for where, one in [("the job", self._conf), *((f"seed {seed.url}", seed) for seed in self._conf.seeds)]:
            for key in ("warcprox_meta", "behavior_parameters", "username", "video_capture", "pdfs_only"):
                if getattr(one, key, UNSET):
                    self._lose(where, key, "the crawl has nothing of the kind")
            if one.time_limit and not float(one.time_limit).is_integer():
                self._lose(where, "time_limit", "it is in whole seconds")
            if isinstance(one, BrozzlerSeed) and one.user_agent:
                self._lose(where, "user_agent", "all seeds of a job have one")
            if isinstance(one, BrozzlerSeed) and one.password:
                self._lose(where, "password", "the crawl does not log in; see [render] cookies of crawl.toml")
        if self._conf.max_claimed_sites:
            self._lose("the job", "max_claimed_sites", "the crawl has nothing of the kind")

    def _lose(self, where: str, key: str, why: str) -> None:
        self._lost.append(f"{where}: {key}: {why}")


def _crawled(one: BrozzlerOptions, base: BrozzlerOptions | None = None) -> dict[str, Any]:
    """The keys of crawl.toml for how long, and whether by robots.txt; of a seed only what `base` has otherwise."""
    keys: dict[str, Any] = {}
    if one.ignore_robots is not UNSET and one.ignore_robots != bool(base and base.ignore_robots):
        keys["robots"] = "ignore" if one.ignore_robots else "obey"
    if one.time_limit is not UNSET and one.time_limit != (base.time_limit if base else 0):
        keys["quotas"] = [{"by": str(By.TARGET), "seconds": int(one.time_limit)}] if one.time_limit else []
    return keys


def _below(url: str) -> str:
    """The prefix of all below a seed, as brozzler takes it: its URL without a query."""
    return surt.surt(canonical(url).partition("?")[0])


def _as_one(rule: ScopeRule) -> tuple[str, str]:
    """The kind and the text of a rule with one condition; '' for another."""
    found = {str(name): str(value) for name, value in msgspec.to_builtins(rule).items()}
    if found.keys() == {"url_match", "value"}:
        return _OLD_RULES.get(found["url_match"], ""), found["value"]
    return next(iter(found.items())) if len(found) == 1 else ("", "")


def _read_prefixes(kind: str, text: str) -> list[str]:
    """The prefixes of a rule; an empty list for an invalid text."""
    try:
        if kind == "domain":
            name = hosts.canonical(text.strip("."))
            return [surt.surt(f"http://{name}/") if surt.is_address(name) else f"http://({_reversed(name)}"]
        if kind == "surt":
            bare = _is_bare(text)
            return [_checked(_with_comma(f"http://({bare[1]}{bare[2] or ''}" if bare else text))]
        parts = _is_ssurt(text)
        if not parts:
            return []
        host, port, path = parts.groups()
        if "//" not in text:
            return [_checked(f"http://({host}")]
        if path is None and not text.endswith(":"):
            return [_checked(f"http://({host})"), _checked(f"http://({host}:")]
        return [_checked(f"http://({host}{f':{port}' if port else ''}){path or ''}")]
    except (BadInput, ValueError):
        return []


def _with_comma(text: str) -> str:
    """A SURT with the comma after its last label, which pywb and others leave out before `)`."""
    parts = _in_surt(text)
    if not parts or not parts[2] or parts[3][:1] not in (")", ":") or surt.is_address(parts[2]):
        return text
    return f"{parts[1]}{parts[2].rstrip(',')},{parts[3]}"


def _checked(prefix: str) -> str:
    scope.prefix(prefix)
    return prefix


def _reversed(host: str) -> str:
    return "".join(f"{label}," for label in reversed(host.split(".")))


def _is_pattern(text: str) -> bool:
    try:
        Patterns([text])
    except BadConfig:
        return False
    return True


_DERIVED = {"id", "url", "seeds", "time_limit", "ignore_robots", "scope", "user_agent"}
_READ = {"contact", "hops", "robots", "quotas", "patterns", "pages", "settings", file.IMPORTED, "defaults", "revisits"}


class ExportedJob(Struct, frozen=True):
    """A job-conf, and a line for all that brozzler does not do as the job's crawl would."""

    conf: JobConf
    lost: tuple[str, ...]


def conf(files: Mapping[str, bytes], name: str) -> ExportedJob:
    """The job-conf of a job: the file that it was imported from, if its papers are still those of the import; else one
    that its papers make, with what that file had besides. BadConfig for papers that cannot be read."""
    found = values.toml_of(files.get(CONFIGURATION, b""))
    file.described(files, name)
    imported = found.get(file.IMPORTED)
    known = None
    if imported is not None:
        try:
            known = msgspec.convert(imported, JobConf)
        except msgspec.ValidationError as error:
            raise BadConfig(f"{CONFIGURATION} {file.IMPORTED}", f"{error}; take it out") from error
        if papers(known, file.IMPORTED, name).papers == {**files, file.EXCLUDE: files.get(file.EXCLUDE, b"")}:
            return ExportedJob(known, ())
    return _Export(found, files, name).made(known)


def is_as_imported(files: Mapping[str, bytes], name: str) -> bool:
    """True if these papers are those of an import, unedited."""
    known = values.toml_of(files.get(CONFIGURATION, b"")).get(file.IMPORTED)
    return known is not None and conf(files, name).conf == msgspec.convert(known, JobConf)


class _Export:
    def __init__(self, found: Mapping[str, Any], files: Mapping[str, bytes], name: str) -> None:
        self._found, self._job = found, file.described(files, name)
        self._scope = cast("CrawlScope", self._job.scope)
        self._sheets = [one for _, one in values.tables(found, file.SHEETS)]
        self._lost = [f"{CONFIGURATION}: {key}: brozzler has nothing of the kind" for key in found if key not in _READ]
        if any(one.get(file.PREFIXES) for one in self._sheets):
            self._lost.append(f"{CONFIGURATION}: settings of prefixes: only seeds have some")
        if SEED_LIST in files:
            self._lost.append(f"{SEED_LIST}: its seeds: they are not read here")

    def made(self, before: JobConf | None) -> ExportedJob:
        job, before_seeds = self._job, {seed.url: seed for seed in before.seeds} if before else {}
        whole = {
            "id": job.name, **self._options(CONFIGURATION, self._found), "scope": self._rules(),
            **({"user_agent": job.user_agent} if job.contact else {}), **_besides(before),
            "seeds": [{"url": url, **_besides(before_seeds.get(url)), **self._of_seed(url)} for url in job.seeds],
        }  # fmt: skip
        return ExportedJob(msgspec.convert({key: one for key, one in whole.items() if one != {}}, JobConf), self.lost)

    @property
    def lost(self) -> tuple[str, ...]:
        return tuple(self._lost)

    def _of_seed(self, url: str) -> dict[str, Any]:
        where, reach = f"seed {url}", self._scope.pages.get(url.partition("#")[0])
        own = next((one for one in self._sheets if canonical(url) in map(canonical, one.get("seeds", ()))), {})
        for key in own:
            if key not in (file.SHEET_SEEDS, file.PREFIXES, "robots", "quotas"):
                self._lose(where, key, "seeds have nothing of the kind")
        if reach is PageReach.PLUS1:
            return {**self._options(where, own), "scope": {"max_hops": 1, "max_hops_off": 1}}
        if reach:
            return {**self._options(where, own), "scope": {"max_hops": 0}}
        if not self._scope.sites.covering(_below(url)):
            self._lost.append(f"{where}: it is of no site: brozzler takes all below its URL")
        return self._options(where, own)

    def _options(self, where: str, keys: Mapping[str, Any]) -> dict[str, Any]:
        """The limit of time and the use of robots.txt; other quotas are named."""
        found: dict[str, Any] = {"time_limit": 0} if keys.get("quotas") == [] else {}
        for one in keys.get("quotas", ()):
            if one.keys() == {"by", "seconds"} and one["by"] == By.TARGET:
                found["time_limit"] = one["seconds"]
            else:
                self._lose(where, "quotas", "only seconds by target are kept")
        return {**found, **({"ignore_robots": keys["robots"] == "ignore"} if "robots" in keys else {})}

    def _rules(self) -> dict[str, Any]:
        """The scope, without what the seeds imply."""
        implied = SurtPrefixes(map(_below, self._job.seeds))
        accepts = [rule for one in self._scope.sites if not implied.covering(one) for rule in _rules(one)]
        blocks = [rule for one in self._scope.excluded for rule in _rules(one)]
        blocks += map(_of_pattern, self._job.patterns)
        hops = {"max_hops": self._scope.hops} if self._scope.hops < ALL_HOPS else {}
        return {key: some for key, some in {"accepts": accepts, "blocks": blocks, **hops}.items() if some != []}

    def _lose(self, where: str, key: str, why: str) -> None:
        self._lost.append(f"{where}: {key}: {why}")


def _besides(known: BrozzlerOptions | None) -> dict[str, Any]:
    """The options that the papers do not make."""
    found = msgspec.to_builtins(known) if known else {}
    return {key: value for key, value in found.items() if key not in _DERIVED}


def _rules(prefix: str) -> list[dict[str, str]]:
    """The rules of a prefix: a domain, or a `surt` for each scheme."""
    if domain := _is_domain(prefix):
        return [{"domain": ".".join(reversed(domain[1].rstrip(",").split(",")))}]
    return [{"surt": prefix}, {"surt": scope.HTTPS + prefix.removeprefix(scope.HTTP)}]


def _of_pattern(text: str) -> dict[str, str]:
    """A rule that blocks by an expression, or by a text if it is `.*TEXT.*`."""
    inner = text.removeprefix(".*").removesuffix(".*")
    plain = _ESCAPED.sub(r"\1", inner)
    return {"substring": plain} if _containing(plain) == text else {"regex": text}


def _containing(text: str) -> str:
    """The expression of all URLs that have a text in them."""
    return ".*" + _SPECIAL.sub(r"\\\1", text) + ".*"


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in dict.fromkeys(lines)).encode()
