"""Namespace packages that a distribution declares, by its files; those of PEP 420 need no declaration. Pure.

    pkgutil        the __init__.py has `__path__ = __import__("pkgutil").extend_path(__path__, __name__)`
    pkg_resources  it has `__import__("pkg_resources").declare_namespace(__name__)`, or namespace_packages.txt lists it

Such an __init__.py is nearly always one of a few texts. By their lengths and CRC-32 the directory of a zip is enough to
recognise them, where the tail of a wheel does not have the file itself.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import product

from warcmill.formats.pypi.modules import above, moved
from warcmill.formats.pypi.zip_directory import ZipMember

PKGUTIL, PKG_RESOURCES = "pkgutil", "pkg_resources"
LONGEST = 2_000  # bytes of an __init__.py that is read: one of a namespace has nothing else in it
MOST = 1_000  # of them in a wheel
_PKGUTIL = re.compile(rb"^[ \t]*__path__[ \t]*=[^\n]{0,80}\bextend_path[ \t]*\([ \t]*__path__", re.MULTILINE).search
_PKG_RESOURCES = re.compile(rb"\bdeclare_namespace[ \t]*\([ \t]*__name__").search
_FILE = "/__init__.py"


class InitFiles:
    """Collects the files of a wheel that may declare a namespace."""

    def __init__(self) -> None:
        self._found: dict[str, ZipMember] = {}

    def add(self, member: ZipMember) -> None:
        """Take a member."""
        if member.name.endswith(_FILE) and 0 < member.size <= LONGEST and len(self._found) < MOST:
            self._found[moved(member.name).removesuffix(_FILE).replace("/", ".")] = member

    def declared(
        self, modules: Iterable[str], listed: Iterable[str], read: Callable[[ZipMember], bytes | None]
    ) -> dict[str, str]:
        """The style of each namespace that has a module of the wheel below it. `listed`: by namespace_packages.txt;
        `read`: the content of a member, None where it is not there."""
        parents = {name for module in modules for name in above(module)}
        found = dict.fromkeys(parents.intersection(listed), PKG_RESOURCES)
        for name in sorted(parents.intersection(self._found)):
            if all(parent in found or parent not in self._found for parent in above(name)):
                member = self._found[name]
                style = _known().get((member.size, member.crc)) or style_of(read(member) or b"")
                found.update({name: style} if style else {})
        return found


def style_of(content: bytes) -> str:
    """The style in which an __init__.py declares a namespace; '' if it does not."""
    if _PKG_RESOURCES(content):
        return PKG_RESOURCES
    return PKGUTIL if _PKGUTIL(content) else ""


@cache
def _known() -> Mapping[tuple[int, int], str]:
    """The style of each usual text, by its length and CRC-32."""
    found = {}
    for quote, end, last in product(("'", '"'), ("\n", "\r\n"), (0, 1, 2)):
        plugin = f"__import__({quote}pkgutil{quote}).extend_path(__path__, __name__)"
        declared = f"__import__({quote}pkg_resources{quote}).declare_namespace(__name__)"
        lines = {
            PKGUTIL: (
                [f"__path__ = {plugin}"],
                [f"__path__ = {plugin}  # type: ignore"],
                ["from pkgutil import extend_path", "__path__ = extend_path(__path__, __name__)"],
                ["from pkgutil import extend_path", "", "__path__ = extend_path(__path__, __name__)"],
            ),
            PKG_RESOURCES: (
                [declared],
                [f"{declared}  # pragma: no cover"],
                ["try:", f"    {declared}", "except ImportError:", f"    __path__ = {plugin}"],
            ),
        }
        for style, texts in lines.items():
            for text in texts:
                data = (end.join(text) + end * last).encode()
                found[len(data), zlib.crc32(data)] = style
    return found
