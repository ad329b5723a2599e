"""luigi.cfg, read as Luigi reads it, without Luigi: to import that takes longer than most verbs.

The same files in the same order, the later ones first: those of the machine, of the working folder, and that of
LUIGI_CONFIG_PATH. A name in `${...}` is a variable of the environment. They are read once, or again by `read_again`.
"""

from __future__ import annotations

import os
import re
from configparser import BasicInterpolation, ConfigParser, InterpolationError, NoOptionError, NoSectionError
from functools import cache
from typing import Any

from tasks.config.folders import VARIABLE

FILES = ("/etc/luigi/client.cfg", "/etc/luigi/luigi.cfg", "client.cfg", "luigi.cfg")
_VARIABLE = re.compile(r"\$\{([^}]+)\}")


class MissingVariable(InterpolationError):
    """A value names a variable that the environment has not."""

    def __init__(self, section: str, key: str, text: str, variable: str) -> None:
        what = f"Config refers to a nonexisting environment variable {variable}."
        super().__init__(key, section, f"{what} Section [{section}], option {key}={text}")


class _Interpolation(BasicInterpolation):
    """That of Python, then the variables of the environment."""

    def before_get(self, parser: Any, section: str, option: str, value: str, defaults: Any) -> str:
        def variable(name: re.Match[str]) -> str:
            try:
                return os.environ[name[1]]
            except KeyError:
                raise MissingVariable(section, option, text, name[1]) from None

        text = super().before_get(parser, section, option, value, defaults)
        return _VARIABLE.sub(variable, text)


class Configuration(ConfigParser):
    """The sections and keys of all files. A key may be written with dashes for its underscores."""

    def __init__(self) -> None:
        super().__init__(interpolation=_Interpolation())

    def optionxform(self, optionstr: str) -> str:
        return optionstr  # keys keep their case

    def text(self, section: str, key: str, *, raw: bool = False) -> str | None:
        """The value of a key, None if it is not set; `raw`: without what the names in it stand for."""
        for name in (key.replace("-", "_"), key.replace("_", "-")):
            try:
                return self.get(section, name, raw=raw)
            except (NoOptionError, NoSectionError):
                continue
        return None


def configuration() -> Configuration:
    """The configuration, as the files held it when they were first read."""
    return _at(os.environ.get(VARIABLE, ""), os.getcwd())


def read_again() -> None:
    """Read the files again, as they are now."""
    _at.cache_clear()


@cache
def _at(named: str, _folder: str) -> Configuration:
    """The configuration of a working folder, with that of the file that LUIGI_CONFIG_PATH names."""
    known = Configuration()
    known.read([*FILES, *([named] if named else [])])
    return known
