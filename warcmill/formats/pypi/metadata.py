"""The metadata of distributions: METADATA, PKG-INFO, requires.txt, and the static part of pyproject.toml. Pure.

Requirements are kept as they are written, sound or not. None is unknown, an empty tuple is known to be none.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

LONGEST = 16 << 20  # bytes of the header of a METADATA, of a requires.txt, of a pyproject.toml
_FIELD = re.compile(rb"([A-Za-z][A-Za-z0-9_-]*)([ \t]*):[ \t]?(.*)", re.DOTALL)
_WANTED = frozenset(
    {
        b"metadata-version", b"name", b"version", b"requires", b"requires-dist", b"requires-python", b"dynamic",
        b"import-name", b"import-namespace",
    }
)  # fmt: skip
_DESCRIBING = frozenset(
    b"author author-email classifier description description-content-type download-url home-page keywords license"
    b" license-file maintainer maintainer-email platform project-url summary supported-platform".split()
)  # of use to no installer, and nine tenths of the bytes
_MOST_KEPT = 1 << 20  # bytes of the other fields
_UNKNOWN = "UNKNOWN"  # so distutils wrote a field that it did not have
_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_STATIC = (2, 2)  # from this version of the metadata on, an sdist's fields hold unless `Dynamic` names them


class Requirements(Struct, frozen=True):
    """The requirements of a distribution; `python` is its `Requires-Python`."""

    dists: tuple[str, ...] | None = None
    python: str | None = None


class MetadataFields(Struct, frozen=True):
    """The fields of a METADATA or PKG-INFO that matter here, each as it is written.

    `kept` are all but those that describe, as lines in their order; () where a line is not a field, as readers differ.
    `import_names`, `import_namespaces` (PEP 794) are None without a field; an empty field states that there are none.
    """

    metadata_version: str | None
    name: str | None
    version: str | None
    requires: tuple[str, ...]
    requires_dist: tuple[str, ...]
    requires_python: str | None
    dynamic: frozenset[str]
    kept: tuple[str, ...] = ()
    import_names: tuple[str, ...] | None = None
    import_namespaces: tuple[str, ...] | None = None

    @property
    def is_static(self) -> bool:
        """True if an sdist's missing field means that it has no such value, unless `dynamic` lists the field."""
        parts = _VERSION.fullmatch(self.metadata_version or "")
        return parts is not None and (int(parts[1]), int(parts[2])) >= _STATIC


def header_of(pieces: Iterable[bytes], most: int = LONGEST) -> bytes | None:
    """The header of a METADATA, up to its first blank line, from the pieces of its content; None if it is longer than
    `most`. The description that follows may have any length: it is not read."""
    held = bytearray()
    for piece in pieces:
        begin = max(0, len(held) - 3)
        held += piece
        ends = [place for mark in (b"\n\n", b"\n\r\n", b"\r\r") if (place := held.find(mark, begin)) >= 0]
        if ends:
            return bytes(held[: min(ends)])
        if len(held) > most:
            return None
    return bytes(held)


def read_fields(header: bytes) -> MetadataFields:
    """Read the fields of a header. Raises nothing: it passes over an invalid line. A value is UTF-8, or Latin-1."""
    found: dict[bytes, list[str]] = {}
    kept, size, is_clear = list[str](), 0, True
    for written, value in _fields(header):
        name = written.lower()
        if name in _DESCRIBING:
            continue
        text, size = _text(value), size + len(value)
        is_clear = is_clear and bool(name) and size <= _MOST_KEPT
        if is_clear:
            kept.append(f"{written.decode('ascii')}: {text}")
        if name in _WANTED and text and text != _UNKNOWN:
            found.setdefault(name, []).append(text)
        elif name.startswith(b"import-"):
            found.setdefault(name, [])

    def first(name: bytes) -> str | None:
        return found[name][0] if name in found else None

    return MetadataFields(
        metadata_version=first(b"metadata-version"),
        name=first(b"name"),
        version=first(b"version"),
        requires=tuple(found.get(b"requires", ())),
        requires_dist=tuple(found.get(b"requires-dist", ())),
        requires_python=first(b"requires-python"),
        dynamic=frozenset(name.lower() for name in found.get(b"dynamic", ())),
        kept=tuple(kept) if is_clear else (),
        import_names=tuple(found[b"import-name"]) if b"import-name" in found else None,
        import_namespaces=tuple(found[b"import-namespace"]) if b"import-namespace" in found else None,
    )


def _fields(header: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The names and the values of fields; folded lines (RFC 5322, 2.2.3) are joined. '' for a line that is not one, or
    for some readers alone, as with a blank before its colon."""
    name, value, is_read = b"", b"", False
    for line in header.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        if line[:1] in (b" ", b"\t"):
            if is_read:  # a folded description may have megabytes
                value += b"\n" + line
            continue
        if name:
            yield name, value
        match = _FIELD.fullmatch(line)
        name, value = (match[1], match[3]) if match else (b"", b"")
        is_read = name.lower() not in _DESCRIBING
        if line and (not match or match[2]):
            yield b"", b""
    if name:
        yield name, value


def _text(raw: bytes) -> str:
    """One line of a value: the blanks at its ends, and the ends of folded lines, do not count."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return " ".join(part.strip() for part in text.split("\n")).strip()


def of_requires_txt(data: bytes) -> tuple[str, ...]:
    """The requirements of a requires.txt of setuptools, each with its marker, as `importlib.metadata` gives them."""
    found, marker = list[str](), ""
    for line in _lines(data):
        if line.startswith("[") and line.endswith("]"):
            marker = _marker_of(line[1:-1])
        else:
            space = " " if marker and "@" in line else ""  # the marker would be of the URL
            found.append(f"{line}{space}{marker}")
    return tuple(found)


def _marker_of(section: str) -> str:
    extra, _, marker = section.partition(":")
    conditions = [f"({marker})" if extra and marker else marker, f'extra == "{extra}"' if extra else ""]
    joined = " and ".join(filter(None, conditions))
    return f"; {joined}" if joined else ""


def top_levels(data: bytes) -> tuple[str, ...]:
    """The names of a top_level.txt."""
    return tuple(_lines(data))


def _lines(data: bytes) -> Iterator[str]:
    """The lines of a text, without blanks around them; no empty ones, no comments."""
    text = data.removeprefix(b"\xef\xbb\xbf")
    try:
        lines = text.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        lines = text.decode("latin-1").splitlines()
    yield from (line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))


def of_pyproject(data: bytes) -> Requirements:
    """The requirements that the `[project]` of a pyproject.toml gives statically. Unknown: there is none, they are
    dynamic, or it is not TOML."""
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return Requirements()
    project = document.get("project")
    if not isinstance(project, dict) or not isinstance(project.get("name"), str):
        return Requirements()
    dynamic = project.get("dynamic", [])
    names = set(filter(lambda name: isinstance(name, str), dynamic)) if isinstance(dynamic, list) else set()
    python = project.get("requires-python")
    known = python if isinstance(python, str) and python and "requires-python" not in names else None
    if names & {"dependencies", "optional-dependencies"}:
        return Requirements(None, known)
    return Requirements(_dependencies(project), known)


def _dependencies(project: Mapping[str, Any]) -> tuple[str, ...] | None:
    always, extras = project.get("dependencies", []), project.get("optional-dependencies", {})
    if not isinstance(extras, dict):
        return None
    lists = [always, *extras.values()]
    if not all(isinstance(one, list) and all(isinstance(text, str) for text in one) for one in lists):
        return None
    return (*always, *(_with_extra(text, str(extra)) for extra, texts in extras.items() for text in texts))


def _with_extra(requirement: str, extra: str) -> str:
    """A requirement of an extra, as a METADATA has it. In one with a URL a blank is before its marker."""
    at = requirement.find(" ;") if "@" in requirement else requirement.find(";")
    if at < 0:
        space = " " if "@" in requirement else ""
        return f'{requirement}{space}; extra == "{extra}"'
    name, marker = requirement[:at].rstrip(), requirement[at:].lstrip(" ;").strip()
    space = " " if "@" in requirement else ""
    return f'{name}{space}; ({marker}) and extra == "{extra}"'
