"""Report sections and keys of luigi.cfg that nothing reads: a misspelt key must not pass for one that is not set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter

import luigi
import luigi.notifications
import luigi.retcodes
import luigi.scheduler
import luigi.worker
from luigi.task_register import Register
from msgspec import Struct

from tasks.config import chains, engines, groups, roots, sections
from tasks.config.sections import CLOSE, own_keys
from tasks.config.source import configuration
from warcmill.base.escapes import nearest
from warcmill.clients.bus import access

NAMED = {roots.ENGINE: roots.ENGINE_KEYS, roots.WRITER: roots.WRITER_KEYS, "job.": engines.JOB_KEYS}
NAMED |= {chains.COLLECTION: chains.COLLECTION_KEYS, access.SETTINGS: access.NAMES, groups.GROUP: groups.GROUP_KEYS}
LUIGIS_OWN = ("resources", "logging", "email", "batch_notifier", "task_history", "execution_summary")


class UnknownKey(Struct, frozen=True):
    """A section or key that nothing reads.

    `name`: `[section]` or `[section] key`. `meant`: the known name closest to it, or ''. `is_ours`: whether
    Warcmill would read that name, rather than Luigi.
    """

    name: str
    meant: str
    is_ours: bool


def unknown() -> Iterator[UnknownKey]:
    """Every section and key of the configuration that nothing reads."""
    ours, luigis = _sections()
    for section in configuration().sections():
        prefix = next((prefix for prefix in NAMED if section.startswith(prefix)), "")
        if section == roots.IMPORTED:
            yield from _keys(section, roots.IMPORTED_KEYS)
        elif prefix:
            yield from _keys(section, NAMED[prefix])
        elif section in ours:
            yield from _keys(section, ours[section])
        elif section in luigis:  # Luigi reads keys that it does not list: report only those close to a listed one
            yield from filter(attrgetter("meant"), _keys(section, luigis[section], is_ours=False))
        elif section not in (*LUIGIS_OWN, *Register.task_names()):
            meant = nearest(section, [*ours, *luigis, *NAMED], CLOSE)
            yield UnknownKey(f"[{section}]", f"[{meant}]" if meant else "", meant in ours or meant in NAMED)


def _sections() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The keys of each section: Warcmill's, then Luigi's."""
    ours = {section.__name__: [key.name for key in section.listed()] for section in sections.every()}
    luigis = {
        str(config.get_task_family()): [name for name, _ in config.get_params()]
        for config in _subclasses(luigi.Config)
        if config.__module__.startswith("luigi.")
    }
    return ours, luigis


def _subclasses(base: type[luigi.Config]) -> Iterator[type[luigi.Config]]:
    for config in base.__subclasses__():
        yield config
        yield from _subclasses(config)


def _keys(section: str, known: Iterable[str], *, is_ours: bool = True) -> Iterator[UnknownKey]:
    names = list(known)
    for key in sorted(own_keys(section)):
        if key.replace("-", "_") not in names:
            meant = nearest(key.replace("-", "_"), names, CLOSE)
            yield UnknownKey(f"[{section}] {key}", meant, is_ours)
