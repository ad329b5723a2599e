"""Read a bag once, in the order in which its files come; again only what could not be digested the first time.

The manifests' names say which digests to compute. So where the tag files come first, as in a tar of ours, one pass
is enough; else a second pass digests what came before its manifest. Memory grows with the number of files alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO

from warcmill.base.digests import Readable, drain
from warcmill.formats.bagit import algorithms, paths
from warcmill.formats.bagit.algorithms import Summed, manifest_of
from warcmill.formats.bagit.containers import Container, Entry
from warcmill.formats.bagit.findings import Findings
from warcmill.formats.bagit.tag_files import DECLARATION, FETCH

TAG_FILE_LIMIT = 1 << 30  # bytes; these are read as a whole
Listener = Callable[[str, Readable], None]  # gets each payload file once: its path, and a stream to read as it likes
_DEFINED = (DECLARATION, FETCH, "bag-info.txt", "package-info.txt")


@dataclass(frozen=True, slots=True)
class Seen:
    """A file that is there, and its digests by these algorithms."""

    size: int
    algorithms: tuple[str, ...]
    digests: tuple[bytes, ...]

    def digest(self, algorithm: str) -> bytes:
        return self.digests[self.algorithms.index(algorithm)]


@dataclass(slots=True)
class Contents:
    """What a bag holds: all that is needed to judge it."""

    findings: Findings = field(default_factory=Findings)
    has_payload_folder: bool = False
    files: dict[str, Seen] = field(default_factory=dict)
    tag_files: dict[str, bytes] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)  # what is there, but may not be

    def wanted(self, path: str) -> tuple[str, ...]:
        """The digests that the manifests seen so far ask of a file."""
        is_tag = not path.startswith(paths.PAYLOAD)
        manifests = filter(None, map(manifest_of, self.tag_files))
        names = {algorithms.known(algorithm) for tag, algorithm in manifests if tag == is_tag}
        return tuple(sorted(names - {""}))


def read(container: Container, listener: Listener | None = None) -> Contents:
    """Read a bag whole. BadInput: the archive cannot be read on."""
    contents = Contents()
    for entry in container.entries():
        _take(contents, entry, listener)
    late = _undigested(contents)
    if late:
        for entry in container.entries():
            if late.get(entry.path) == entry.size and entry.open:
                contents.files[entry.path] = _digested(contents, entry, None)
                del late[entry.path]
    return contents


def _take(contents: Contents, entry: Entry, listener: Listener | None) -> None:
    path = entry.path
    contents.has_payload_folder |= f"{path}/".startswith(paths.PAYLOAD)
    if entry.fault:
        contents.findings.fault(path, entry.fault)
        contents.refused.add(path)
    elif entry.open is None:
        return
    elif path in contents.files:
        contents.findings.fault(path, "twice in the archive")
    elif path in _DEFINED or manifest_of(path):
        _take_tag_file(contents, entry)
    else:
        contents.files[path] = _digested(contents, entry, listener if path.startswith(paths.PAYLOAD) else None)


def _take_tag_file(contents: Contents, entry: Entry) -> None:
    assert entry.open is not None
    contents.files[entry.path] = Seen(entry.size, (), ())
    with entry.open() as stream:
        if entry.size > TAG_FILE_LIMIT:
            contents.findings.fault(entry.path, f"{entry.size} bytes: more than a tag file of its kind may have")
            drain(stream)
            return
        pieces = list(iter(lambda: stream.read(1 << 20), b""))
    contents.tag_files[entry.path] = b"".join(pieces)


def _digested(contents: Contents, entry: Entry, listener: Listener | None) -> Seen:
    """Read a file to its end for the digests that are asked of it, and for who listens."""
    assert entry.open is not None
    wanted = contents.wanted(entry.path)
    with entry.open() as stream:
        summed = Summed(stream, wanted)
        if listener:
            listener(entry.path, summed)
        drain(summed)
    return Seen(summed.size, wanted, summed.digests())


def _undigested(contents: Contents) -> dict[str, int]:
    """The files that lack digests, with their sizes; tag files are digested here."""
    late: dict[str, int] = {}
    wanted = {is_payload: contents.wanted(paths.PAYLOAD if is_payload else "") for is_payload in (True, False)}
    for path, seen in contents.files.items():
        needed = wanted[path.startswith(paths.PAYLOAD)]
        if path in contents.tag_files:
            summed = Summed(BytesIO(contents.tag_files[path]), needed)
            drain(summed)
            contents.files[path] = Seen(seen.size, needed, summed.digests())
        elif seen.algorithms != needed:
            late[path] = seen.size
    return late
