"""The packages that extract text. A machine on which one cannot be installed does without `[text]`."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from warcmill.formats.text.document import Kind

EXTRA = "warcmill[text]"
PACKAGES = ("resiliparse", "pypdfium2")


def missing() -> tuple[str, ...]:
    """Those that are not installed."""
    return tuple(package for package in PACKAGES if not _version(package))


@cache
def tool_of(kind: Kind | None) -> str:
    """What reads documents of a kind, and its version, such as `resiliparse 2.0.1`."""
    package = PACKAGES[kind is Kind.PDF]
    return f"{package} {_version(package)}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
