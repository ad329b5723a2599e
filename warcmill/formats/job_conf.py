"""brozzler's job-conf: a YAML file with the seeds of a job, their limits and their scope. Pure.

    id, seeds, time_limit, ignore_robots, scope, user_agent, metadata
    scope: surt, accepts, blocks, max_hops, max_hops_off
    a seed: url, time_limit, ignore_robots, scope, metadata, username, password, user_agent

A seed's value counts before that of the job. The file comes from outside: its length and its depth are bounded, and it
has neither aliases nor tags.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, cast

import msgspec
import yaml
from msgspec import UNSET, Meta, Struct, UnsetType

from warcmill.errors import BadInput

LARGEST: Final = 1 << 20  # bytes
DEEPEST: Final = 50  # levels
LONGEST: Final = 10**9  # seconds
_is_variable = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}").fullmatch


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

    time_limit: Annotated[int, Meta(ge=0, le=LONGEST)] | Annotated[float, Meta(ge=0, le=LONGEST)] | UnsetType = UNSET
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
