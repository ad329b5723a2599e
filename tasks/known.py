"""Sections and keys of luigi.cfg that nothing reads. A key that is misspelt must not pass for one that is not set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter

import luigi
import luigi.notifications
import luigi.retcodes
import luigi.scheduler
import luigi.worker
from luigi.configuration import get_config
from luigi.task_register import Register

from tasks import engines, places
from tasks.sections import CLOSE
from warcmill.nearest import nearest

NAMED = {places.ENGINE: places.ENGINE_KEYS, places.WRITER: places.WRITER_KEYS, "job.": engines.JOB_KEYS}
LUIGIS_OWN = ("resources", "logging", "email", "batch_notifier", "task_history", "execution_summary")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A section, or a key of one, as it stands in brackets; what was meant, or ''; whether it was meant for us."""

    name: str
    meant: str
    is_ours: bool


def unknown() -> Iterator[Unknown]:
    """Every section and key of the configuration that nothing reads."""
    ours, luigis = _sections()
    for section in get_config().sections():
        prefix = next((one for one in NAMED if section.startswith(one)), "")
        if prefix:
            yield from _keys(section, NAMED[prefix])
        elif section in ours:
            yield from _keys(section, ours[section])
        elif section in luigis:  # Luigi reads more keys than it lists: only what looks like one of those is told
            yield from filter(attrgetter("meant"), _keys(section, luigis[section], is_ours=False))
        elif section not in (*LUIGIS_OWN, *Register.task_names()):
            meant = nearest(section, [*ours, *luigis, *NAMED], CLOSE)
            yield Unknown(f"[{section}]", f"[{meant}]" if meant else "", meant in ours or meant in NAMED)


def _sections() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The sections that are read as a whole, with their keys: ours, and Luigi's."""
    found: tuple[dict[str, list[str]], dict[str, list[str]]] = {}, {}
    for config in _below(luigi.Config):
        names = [name for name, _ in config.get_params()]
        if config.__module__.startswith("tasks."):
            found[0][str(config.get_task_family())] = names
        elif config.__module__.startswith("luigi."):
            found[1][str(config.get_task_family())] = names
    return found


def _below(base: type[luigi.Config]) -> Iterator[type[luigi.Config]]:
    for one in base.__subclasses__():
        yield one
        yield from _below(one)


def _keys(section: str, known: Iterable[str], *, is_ours: bool = True) -> Iterator[Unknown]:
    names = list(known)
    for key in sorted(set(get_config().options(section)) - set(get_config().defaults())):
        if key.replace("-", "_") not in names:
            meant = nearest(key.replace("-", "_"), names, CLOSE)
            yield Unknown(f"[{section}] {key}", meant, is_ours)
