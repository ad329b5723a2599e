"""Keep what was read of the configuration for as long as that stays the same.

To read a section through Luigi takes a millisecond, and each task of a run needs it several times.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from luigi.cmdline_parser import CmdlineParser
from luigi.configuration import get_config

Value = TypeVar("Value")
Rest = ParamSpec("Rest")
_VARIABLE = re.compile(r"\$\{([^}]+)\}")


def while_unchanged(read: Callable[Rest, Value]) -> Callable[Rest, Value]:
    """Call `read` again only for other arguments, or once the configuration has changed."""
    last: list[tuple[object, Value]] = []

    @wraps(read)
    def kept(*args: Rest.args, **kwargs: Rest.kwargs) -> Value:
        now = (_configuration(), args, kwargs)
        if not last or last[0][0] != now:
            last[:] = [(now, read(*args, **kwargs))]
        return last[0][1]

    return kept


def _configuration() -> list[object]:
    """All texts of the configuration, what the variables in them are, and the command, which may override keys."""
    config = get_config()
    texts = [(name, config.items(name, raw=True)) for name in config.sections()]
    raw = (text for _, items in texts for _, text in items if "${" in text)
    variables = [os.environ.get(name) for text in raw for name in _VARIABLE.findall(text)]
    return [CmdlineParser.get_instance(), texts, variables]
