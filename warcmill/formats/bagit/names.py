"""Names that some file system takes for one: they would overwrite each other where the bag is unpacked."""

from __future__ import annotations

from collections.abc import Iterable

from warcmill.formats.bagit import paths
from warcmill.formats.bagit.findings import Findings


def alike(names: Iterable[str], findings: Findings) -> None:
    """Warn of each name that differs from an earlier one only in case, or in the form of its characters."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(paths.folded(name), name)
        if other == name:
            continue
        if paths.composed(other) == paths.composed(name):
            findings.warn(name, f"differs from {other} only in the form of its characters (Unicode's NFC and NFD)")
        else:
            findings.warn(name, f"differs from {other} only in case")
