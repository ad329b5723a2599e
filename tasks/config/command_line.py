"""Has Luigi take every key of ours on its command line, such as `luigi ... --warcmill-store FOLDER`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import luigi

from tasks.config.sections import ConfigKey, FlagKey, Section, TextKey, WholeKey

_PARAMETERS: dict[type[ConfigKey[Any]], Callable[..., object]] = {
    TextKey: luigi.Parameter,
    WholeKey: luigi.IntParameter,
    FlagKey: partial(luigi.BoolParameter, parsing=luigi.BoolParameter.EXPLICIT_PARSING),
}


def take(section: type[Section]) -> None:
    """Make a section one that Luigi knows."""
    parameters = {key.name: _parameter(key) for key in section.listed()}
    type(section.__name__, (luigi.Config,), {"__module__": section.__module__, **parameters})


def _parameter(key: ConfigKey[Any]) -> object:
    given = {} if key.default is None else {"default": key.default}
    return _PARAMETERS[type(key)](description=key.description, **given)


for known in Section.known:
    take(known)
Section.hearers.append(take)
