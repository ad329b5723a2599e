"""brozzler's job-conf, a YAML file, as the papers of a job of the built-in crawler, and back. Pure.

    id, seeds, time_limit, ignore_robots, scope, user_agent, metadata
    scope: surt, accepts, blocks, max_hops, max_hops_off
    a seed: url, time_limit, ignore_robots, scope, metadata, username, password, user_agent

A seed's value counts before that of the job. `papers` keeps the whole file in `imported` of crawl.toml, which no crawl
reads; so `conf` gives the same file back until the papers are edited. Both also return a line for all that the other
crawler would not do.

brozzler takes all below the URL of a seed, and what `accepts` takes. A prefix is read as `http://(org,example,`, as
`org,example)/`, as an `ssurt`, or as a domain. Here it is of both schemes;
there a `surt` is of one, so two are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
import yaml
from msgspec import UNSET, Struct, UnsetType

from warcmill.crawl.job import file, values
from warcmill.crawl.job.text import render
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.policies import scope
from warcmill.crawl.policies.quotas import By
from warcmill.crawl.policies.scope import Patterns, SurtPrefixes
from warcmill.crawl.uri import canonical
from warcmill.errors import BadConfig, BadInput
from warcmill.formats import hosts, surt
from warcmill.formats.seeds import SEED_LIST
from warcmill.formats.targets import PageReach
from warcmill.model import parse_job

LARGEST: Final = 1 << 20  # bytes
DEEPEST: Final = 50  # levels

HEAD = "# Written by 'warcmill feed import'. An edit stays, and the next import of this job is refused then.\n"
ALL_HOPS: Final = file.NUMBERS["hops"][1]
_is_variable = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}").fullmatch
_is_bare = re.compile(r"\(?([a-z0-9_-]+(?:,[a-z0-9_-]+)*,?)((?:\)|:[0-9]+\)).*)?", re.IGNORECASE | re.DOTALL).fullmatch
_is_ssurt = re.compile(
    r"([a-z0-9_,.\[\]:-]+?)(?://(?:([0-9]+):)?(?:https?:(/.*)?)?)?", re.IGNORECASE | re.DOTALL
).fullmatch
_in_surt = re.compile(r"(https?://\()([^):/]*)(.*)", re.DOTALL).fullmatch
_is_domain = re.compile(r"http://\(((?:[a-z0-9_-]+,)+)").fullmatch
_OURS = re.compile(r"Mozilla/5\.0 \(compatible; warcmill/[^;]*; \+(https?://[^\s)]+)\)").fullmatch
_OLD_RULES = {"STRING_MATCH": "substring", "SURT_MATCH": "surt", "REGEX_MATCH": "regex"}


class ScopeRule(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A rule: all that it has must be true of a URL. `url_match` and `value` are the old spelling of one condition."""

    surt: str | UnsetType = UNSET
    ssurt: str | UnsetType = UNSET
    domain: str | UnsetType = UNSET
    substring: str | UnsetType = UNSET
    regex: str | UnsetType = UNSET
    parent_url_regex: str | UnsetType = UNSET
    url_match: str | UnsetType = UNSET
    value: str | UnsetType = UNSET


class BrozzlerScope(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The scope of a job, or of a seed."""

    surt: str | UnsetType = UNSET
    accepts: tuple[ScopeRule, ...] = ()
    blocks: tuple[ScopeRule, ...] = ()
    max_hops: int | UnsetType = UNSET
    max_hops_off: int | UnsetType = UNSET
    max_hops_off_surt: int | UnsetType = UNSET

    @property
    def off(self) -> int | UnsetType:
        """The hops outside, by the newer of two names."""
        return self.max_hops_off_surt if self.max_hops_off is UNSET else self.max_hops_off

    @property
    def accepted(self) -> tuple[ScopeRule, ...]:
        """All that it takes; `surt` is the old spelling of one rule."""
        return self.accepts if self.surt is UNSET else (ScopeRule(surt=self.surt), *self.accepts)


class BrozzlerOptions(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The options that a job and each of its seeds may have."""

    time_limit: int | float | UnsetType = UNSET
    ignore_robots: bool | UnsetType = UNSET
    scope: BrozzlerScope | UnsetType = UNSET
    user_agent: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    warcprox_meta: dict[str, Any] | UnsetType = UNSET
    behavior_parameters: dict[str, Any] | UnsetType = UNSET


class BrozzlerSeed(BrozzlerOptions, frozen=True, omit_defaults=True, kw_only=True):
    """A seed, with what it has of its own."""

    url: str
    username: str | UnsetType = UNSET
    password: str | UnsetType = UNSET
    video_capture: str | UnsetType = UNSET


class JobConf(BrozzlerOptions, frozen=True, omit_defaults=True, kw_only=True):
    """A job-conf."""

    id: str | int | UnsetType = UNSET
    seeds: tuple[BrozzlerSeed, ...]
    max_claimed_sites: int | UnsetType = UNSET
    pdfs_only: bool | UnsetType = UNSET


def read(data: bytes, path: str) -> JobConf:
    """Read a job-conf. BadInput names its first fault, and a password that is not the name of a variable, which it does
    not show."""
    try:
        found = yaml.load(data.decode("utf-8-sig"), _Loader) if len(data) <= LARGEST else None  # noqa: S506 see _Loader
    except UnicodeDecodeError as error:
        raise BadInput(path, f"it is not UTF-8: byte {error.start}; write it as UTF-8") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise BadInput(path, f"it is not YAML as a job-conf has it: {' '.join(str(error).split())[:300]}") from error
    if len(data) > LARGEST:
        raise BadInput(path, f"it has {len(data):,} bytes; a job-conf has at most {LARGEST:,}; divide its seeds")
    for seed in found["seeds"] if isinstance(found, dict) and isinstance(found.get("seeds"), list) else ():
        if isinstance(seed, dict) and not _is_variable(str(seed.get("password", "${A}"))):
            raise BadInput(path, "a seed has a password; put it into the environment, and write password: ${NAME}")
    try:
        known = msgspec.convert(_without_nulls(found), JobConf)
    except msgspec.ValidationError as error:
        raise BadInput(path, f"{error}; see job-conf in brozzler's documentation") from error
    if not known.seeds:
        raise BadInput(path, "seeds: it has none; add at least one url")
    return known


def write(known: JobConf) -> bytes:
    """A job-conf in its canonical form: `id` and `url` are first, and `seeds` last."""
    found = msgspec.to_builtins(known)
    seeds = [{"url": one["url"], **one} for one in found.pop("seeds")]
    whole = {**({"id": found["id"]} if "id" in found else {}), **found, "seeds": seeds}
    text = str(yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=1000))
    if not text.replace("\n", "").isprintable():  # a terminal may obey it
        text = str(yaml.safe_dump(whole, sort_keys=False, width=1000))
    return text.encode()


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """A loader of what JSON has: no aliases, which may grow as they are read, no tags, no key twice, bounded depth."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent) or getattr(self.peek_event(), "tag", None):
            raise yaml.YAMLError(f"an alias or a tag{self.peek_event().start_mark}; write the value itself")
        self.depth += 1
        if self.depth > DEEPEST:
            raise yaml.YAMLError(f"more than {DEEPEST} levels")
        try:
            return cast("yaml.Node | None", super().compose_node(parent, index))
        finally:
            self.depth -= 1

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
            raise yaml.YAMLError(f"the key {twice!s:.80} twice{node.start_mark}")
        return cast("dict[Any, Any]", super().construct_mapping(node, deep=deep))


# A time is a text here, as in JSON: brozzler gives no key one.
_Loader.yaml_implicit_resolvers = {
    first: [one for one in some if one[0] != "tag:yaml.org,2002:timestamp"]
    for first, some in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


class ImportedJob(Struct, frozen=True):
    """A job's name and papers, and a line for all that its crawl does not do as brozzler would."""

    name: str
    papers: Mapping[str, bytes]
    lost: tuple[str, ...]


def papers(known: JobConf, path: str, name: str = "") -> ImportedJob:
    """The papers of the job that a job-conf describes. `name`: of one without id. BadInput for an id that no job may
    have, or a seed that is no URL."""
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
    """The prefixes of a rule; none for a text that is none."""
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


_DERIVED = {"id", "seeds", "time_limit", "ignore_robots", "scope", "user_agent"}
_READ = {"contact", "hops", "robots", "quotas", "patterns", "pages", "settings", file.IMPORTED, "defaults", "revisits"}


class ExportedJob(Struct, frozen=True):
    """A job-conf, and a line for all that brozzler does not do as the job's crawl would."""

    conf: JobConf
    lost: tuple[str, ...]


def conf(files: Mapping[str, bytes], name: str) -> ExportedJob:
    """The job-conf of a job: the file that it was imported from, if its papers are still those of the import; else one
    that its papers make, with what that file had besides. BadConfig for papers that cannot be read."""
    found = file.toml_of(files.get(CONFIGURATION, b""))
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
    known = file.toml_of(files.get(CONFIGURATION, b"")).get(file.IMPORTED)
    return known is not None and conf(files, name).conf == msgspec.convert(known, JobConf)


class _Export:
    def __init__(self, found: Mapping[str, Any], files: Mapping[str, bytes], name: str) -> None:
        self._found, self._files, self._name = found, files, name
        self._job = file.described(files, name)

    def made(self, before: JobConf | None) -> ExportedJob:
        lost = [f"{CONFIGURATION}: {key}: brozzler has nothing of the kind" for key in self._found if key not in _READ]
        job, seeds = self._job, list[BrozzlerSeed]()
        sheets = [one for _, one in values.tables(self._found, "settings")]
        lost += [
            f"{CONFIGURATION}: settings of prefixes: only seeds have some" for one in sheets if one.get("prefixes")
        ]
        if SEED_LIST in self._files:
            lost.append(f"{SEED_LIST}: its seeds: they are not read here")
        known = {seed.url: seed for seed in before.seeds} if before else {}
        for url in job.seeds:
            own = next((one for one in sheets if canonical(url) in map(canonical, one.get("seeds", ()))), {})
            lost += self._strange(f"seed {url}", own)
            rest = {
                key: value for key, value in msgspec.to_builtins(known.get(url, UNSET)).items() if key not in _DERIVED
            } if url in known else {}  # fmt: skip
            reach = cast("Any", job.scope).pages.get(url)
            seeds.append(msgspec.convert({**rest, "url": url, **_options(own), **_of_page(reach)}, BrozzlerSeed))
        lost += self._strange(CONFIGURATION, self._found)
        implied = SurtPrefixes(_below(seed) for seed in job.seeds)
        accepts = [rule for one in cast("Any", job.scope).sites if not implied.covering(one) for rule in _rules(one)]
        blocks = [rule for one in job.scope.excluded for rule in _rules(one)]
        blocks += [_of_pattern(text) for text in job.patterns]
        hops = cast("Any", job.scope).hops
        limits = {"max_hops": hops} if hops < ALL_HOPS else {}
        scope = {"accepts": accepts, "blocks": blocks, **limits}
        kept = {k: v for k, v in msgspec.to_builtins(before).items() if k not in _DERIVED} if before else {}
        whole = {
            "id": self._name, **_options(self._found), "scope": {key: one for key, one in scope.items() if one != []},
            **({"user_agent": job.user_agent} if job.contact else {}), **kept, "seeds": seeds,
        }  # fmt: skip
        found = msgspec.convert({key: one for key, one in whole.items() if one != {}}, JobConf)
        return ExportedJob(found, tuple(lost))

    def _strange(self, where: str, keys: Mapping[str, Any]) -> Iterator[str]:
        """The settings that are no limit of time of a target, or of a seed and not for brozzler."""
        for one in keys.get("quotas", ()):
            if one.get("by") != By.TARGET or one.keys() - {"by", "seconds"}:
                yield f"{where}: quotas: only seconds by target are kept"
        if where != CONFIGURATION:
            yield from (f"{where}: {key}: seeds have nothing of the kind"
                        for key in keys if key not in ("seeds", "prefixes", "robots", "quotas"))  # fmt: skip


def _options(keys: Mapping[str, Any]) -> dict[str, Any]:
    limits = [one.get("seconds", 0) for one in keys.get("quotas", ()) if one.get("by") == By.TARGET]
    found: dict[str, Any] = (
        {"time_limit": min(filter(None, limits), default=0)} if limits or keys.get("quotas") == [] else {}
    )
    return {**found, **({"ignore_robots": keys["robots"] == "ignore"} if "robots" in keys else {})}


def _of_page(reach: PageReach | None) -> dict[str, Any]:
    if reach is None:
        return {}
    return {"scope": {"max_hops": 1, "max_hops_off": 1} if reach is PageReach.PLUS1 else {"max_hops": 0}}


def _rules(prefix: str) -> list[dict[str, str]]:
    """The rules of a prefix: a domain, or a `surt` for each scheme."""
    if domain := _is_domain(prefix):
        return [{"domain": ".".join(reversed(domain[1].rstrip(",").split(",")))}]
    return [{"surt": prefix}, {"surt": scope.HTTPS + prefix.removeprefix(scope.HTTP)}]


def _of_pattern(text: str) -> dict[str, str]:
    """A rule that blocks by an expression, or by a text if it is `.*TEXT.*`."""
    inner = text.removeprefix(".*").removesuffix(".*")
    plain = re.sub(r"\\(.)", r"\1", inner)
    return {"substring": plain} if _containing(plain) == text else {"regex": text}


def _containing(text: str) -> str:
    """The expression of all URLs that have a text in them."""
    return ".*" + re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text) + ".*"


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in dict.fromkeys(lines)).encode()
