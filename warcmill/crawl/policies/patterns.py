"""URIs that a job does not want, by regular expressions and by extensions.

The expressions are RE2's, which take time linear in the URI whatever they are; they
match a whole URI, as Heritrix's do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import re2

from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.uri import Uri
from warcmill.errors import BadConfig

MEMORY = 64 << 20  # bytes, for all expressions together


class Patterns:
    """Rejects each URI that one of the expressions matches."""

    name = "patterns"

    def __init__(self, expressions: Iterable[str]) -> None:
        """BadConfig names an expression that RE2 does not know: it has no look-around and no back-references."""
        self._expressions = list(expressions)
        self._all = _compiled(self._expressions)

    def judge(self, uri: Uri) -> Decision | None:
        """Return the first expression that matches a URI."""
        found: Sequence[int] = self._all.Match(uri.uri) if self._expressions else ()
        return Decision(Verdict.REJECT, self.name, f"matches {self._expressions[min(found)]}") if found else None


class Extensions:
    """Rejects each URI whose path ends in one of the extensions, in upper or lower case."""

    name = "extensions"

    def __init__(self, extensions: Iterable[str]) -> None:
        self._unwanted = frozenset(f".{one.lower().lstrip('.')}" for one in extensions)

    def judge(self, uri: Uri) -> Decision | None:
        """Return the extension of a URI that is not wanted."""
        last = uri.uri.partition("?")[0].rpartition("/")[2].lower()
        dot = last.rfind(".")
        if dot < 0 or last[dot:] not in self._unwanted:
            return None
        return Decision(Verdict.REJECT, self.name, f"the extension {last[dot:]} is not wanted")


def _compiled(expressions: Sequence[str]) -> re2.Set:
    options = re2.Options()
    options.max_mem, options.log_errors = MEMORY, False
    found = re2.Set.FullMatchSet(options)
    for expression in expressions:
        try:
            re2.compile(expression, options)  # a set would only log what is wrong
            found.Add(expression)
        except re2.error as error:
            raise BadConfig("patterns", f"{expression!r} is no expression of RE2: {_told(error)}") from error
    found.Compile()
    return found


def _told(error: Exception) -> str:
    why = error.args[0] if error.args else error
    return why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
