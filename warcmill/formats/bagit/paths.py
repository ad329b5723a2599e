"""Paths as the manifests of a bag write them: undo their escapes, and refuse any that leaves the bag.

A path of a manifest or an archive is never opened, joined to another, or followed: it is only compared.
"""

from __future__ import annotations

import re
import unicodedata

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_PARTS = re.compile(r"[\\/]")
_LINE_ENDS = re.compile(r"%0[AaDd]")
_LINE_ENDS_AND_PERCENT = re.compile(r"%(?:0[AaDd]|25)")
_BARE_PERCENT = re.compile(r"%(?!0[AaDd]|25)")
PAYLOAD = "data/"


def decode(written: str, version: str) -> str:
    """Undo the escapes of a path: those of line feed, carriage return and, since 1.0, % (RFC 8493, 2.1.3)."""
    escapes = _LINE_ENDS_AND_PERCENT if version == "1.0" else _LINE_ENDS
    return escapes.sub(lambda escape: chr(int(escape[0][1:], 16)), written)


def has_bare_percent(written: str, version: str) -> bool:
    """True if a path has a % that its version has to be written as %25."""
    return version == "1.0" and _BARE_PERCENT.search(written) is not None


def unsafe(path: str) -> str:
    """Why a path may not be in a bag; '' if it may. Also what another system would take for a way out is refused."""
    if path.startswith(("/", "\\")) or _DRIVE.match(path):
        return "an absolute path: a bag's paths begin in the bag"
    if path.startswith("~"):
        return "a path that begins with '~', which a shell takes for a home folder"
    parts = _PARTS.split(path)
    if ".." in parts:
        return "a path with '..', which leads out of the bag"
    if "\0" in path:
        return "a path with a NUL"
    return "" if "" not in parts and "." not in parts else "not a plain path: it has an empty part, or '.'"


def without_dot(path: str) -> str:
    """The path without the './' before it that some tools write."""
    while path.startswith("./"):
        path = path[2:]
    return path


def composed(path: str) -> str:
    """The path in Unicode's composed form (NFC): some file systems change the form of a name."""
    return path if path.isascii() else unicodedata.normalize("NFC", path)


def folded(path: str) -> str:
    """What stays of a path where neither case nor form of its characters counts."""
    return composed(path).casefold()
