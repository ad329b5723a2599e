"""The keys and values of the data sets of a package index. Pure.

    modules         module, project, version, filename: nothing, or the file whose modules were read in its place
    depgraph        project, version, type, requires_python, platform, abi, build, python tag, filename:
                    32 bytes of the file's SHA-256, then the requirements
    distributions   project, filename: JSON, a `lives.DistributionLife`

The parts of a key, and requirements, are joined by tabs; control characters in them are replaced. Unknown parts of
a key are empty; requirements that are unknown are one zero byte, none at all are nothing. Other keys begin with a zero
byte: `\\0 project TAB filename` has what a file put there, `\\0` alone the number of keys;
`\\0 \\0 project TAB filename` marks a file that one page did not list, `\\0 \\0` has the first serial that is known;
`\\0 \\0 \\0 project` has a project's JSON, a `projects.ProjectRecord`; those from `\\0 \\1` on are of `releases`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Self

from msgspec import Struct

from warcmill.errors import BadInput
from warcmill.formats.pypi import filenames
from warcmill.formats.pypi.dump import DistributionRow

MODULES, DEPGRAPH, DISTRIBUTIONS = "modules", "depgraph", "distributions"
NAMES = (MODULES, DEPGRAPH, DISTRIBUTIONS)
TAB, UNKNOWN = b"\t", b"\0"
COUNT, FIRST = b"\0", b"\1"  # the key of the number of keys; those that are a reader's begin here
BEGIN = b"\0\0"
RECORDS = b"\0\0\0"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
Pairs = dict[bytes, bytes]


def joined(*parts: str | None) -> bytes:
    """A key, or the begin of one, of these parts."""
    text = "\t".join([part or "" for part in parts])
    if text.isascii() and text.replace("\t", "").isprintable() and text.count("\t") == len(parts) - 1:
        return text.encode("ascii")  # nearly all are so
    return TAB.join(_CONTROL.sub("\ufffd", part or "").encode("utf-8", "replace") for part in parts)


def parts_of(key: bytes) -> list[str]:
    """The parts of a key."""
    return [part.decode("utf-8", "replace") for part in key.split(TAB)]


def owner(project: str, filename: str) -> bytes:
    """The key that has what a file put into a data set."""
    return COUNT + joined(project, filename)


def missed(project: str, filename: str) -> bytes:
    """The key that marks a file which the last page of its project did not list."""
    return BEGIN + joined(project, filename)


def record(project: str) -> bytes:
    """The key of a project's record."""
    return RECORDS + joined(project)


def owned(keys: Iterable[bytes]) -> bytes:
    """The value of that key: no key has the end of a line in it."""
    return b"\n".join(keys)


def of_modules(row: DistributionRow) -> Pairs:
    """The pairs of a row in `modules`."""
    if not row.modules:
        return {}
    rest = TAB + joined(row.project, row.version, row.filename)
    value = joined(row.modules_of)
    return dict.fromkeys([module + rest for module in joined(*row.modules).split(TAB)], value)


def of_depgraph(row: DistributionRow) -> Pairs:
    """The pair of a row in `depgraph`."""
    name = filenames.parse(row.filename, row.project)
    tags = (name.platform, name.abi, name.build, name.python) if name else ("", "", "", "")
    key = joined(row.project, row.version, str(row.dist_type), row.requires_python, *tags, row.filename)
    try:
        digest = bytes.fromhex(row.sha256)
    except ValueError:
        digest = b""
    return {key: digest.rjust(32, b"\0")[:32] + _requirements(row.requires_dist)}


def _requirements(texts: tuple[str, ...] | None) -> bytes:
    return UNKNOWN if texts is None else joined(*texts)


class Dependencies(Struct, frozen=True):
    """A pair of `depgraph`. `requires_dist` None: unknown; texts that were unknown are ''."""

    project: str
    version: str
    dist_type: str
    requires_python: str
    platform: str
    abi: str
    build: str
    python: str
    filename: str
    sha256: str
    requires_dist: tuple[str, ...] | None

    @classmethod
    def parse(cls, key: bytes, value: bytes) -> Self:
        """Read a pair; BadInput if it is invalid."""
        parts = parts_of(key)
        if len(parts) != 9 or len(value) < 32:
            raise BadInput(f"the key {key[:200]!r}", f"is none of {DEPGRAPH}: {len(parts)} parts, {len(value)} bytes")
        rest = value[32:]
        known = None if rest == UNKNOWN else tuple(parts_of(rest)) if rest else ()
        project, version, dist_type, requires_python, platform, abi, build, python, filename = parts
        tags = platform, abi, build, python
        return cls(project, version, dist_type, requires_python, *tags, filename, value[:32].hex(), known)
