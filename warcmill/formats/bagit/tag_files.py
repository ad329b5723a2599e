"""The tag files of a bag: bytes to values, with what is wrong in them (RFC 8493; earlier drafts since 0.93). Pure.

Nothing raises: a bag is judged to its end, so every fault is collected. A manifest may name any digest that hashlib
has, in any spelling (2.4).
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache

from msgspec import Struct, field

from warcmill.base.digests import CHUNK, Readable
from warcmill.formats.bagit import containers
from warcmill.formats.bagit.findings import FetchLine, Findings

VERSIONS = ("0.93", "0.94", "0.95", "0.96", "0.97", "1.0")
DECLARATION, FETCH = "bagit.txt", "fetch.txt"
_LABELS = ("BagIt-Version", "Tag-File-Character-Encoding")
_BLANKS = " \t"
_LINE_END = re.compile(r"\r\n|\r|\n")  # and no other: str.splitlines knows more
_ELEMENT = re.compile(r"(?P<label>[^:]*?)(?P<before>[ \t]*):(?P<after>[ \t]*)(?P<value>.*?)(?P<end>[ \t]*)", re.DOTALL)
_DIGEST = re.compile(r"(?P<digest>[0-9A-Fa-f]+)[ \t]+(?P<binary>\*?)(?P<path>.+)", re.DOTALL)
_FETCH = re.compile(r"(?P<url>\S+)[ \t]+(?P<length>[0-9]{1,18}|-)[ \t]+(?P<path>.+)", re.DOTALL)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+", re.DOTALL)
# Elements whose form is defined (2.2.2); only Payload-Oxum is compared with the bag.
_FORMS = {
    "bagging-date": (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), "YYYY-MM-DD"),
    "bag-count": (re.compile(r"[0-9]+ of (?:[0-9]+|\?)"), "N of T"),
}
OXUM = re.compile(r"(?P<size>[0-9]{1,18})\.(?P<files>[0-9]{1,18})")


class Declaration(Struct, frozen=True):
    """The declarations of bagit.txt."""

    version: str
    encoding: str

    @property
    def is_strict(self) -> bool:
        """True if RFC 8493 applies; the drafts before it are more lenient."""
        return self.version == "1.0"


class Manifest(Struct, frozen=True):
    """A manifest's digests by path. Without an algorithm it names one that cannot be computed here."""

    name: str
    is_tag: bool
    algorithm: str
    digests: dict[str, bytes] = field(default_factory=dict)


def info_name(version: str) -> str:
    """The file of a bag's metadata, which was renamed in 0.96."""
    return "package-info.txt" if version < "0.96" else "bag-info.txt"


def parse_declaration(data: bytes, findings: Findings) -> Declaration | None:
    """bagit.txt: two lines, always in UTF-8 without a byte order mark (2.1.1)."""
    if data.startswith(codecs.BOM_UTF8):
        findings.fault(DECLARATION, "begins with a byte order mark")
        return None
    try:
        lines = _LINE_END.split(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        findings.fault(DECLARATION, f"not UTF-8, at offset {error.start}")
        return None
    declared = [_ELEMENT.fullmatch(line) for line in lines[:2]]
    labels = [element["label"] if element else "" for element in declared]
    if labels != list(_LABELS) or any(lines[2:]):
        findings.fault(DECLARATION, f"its two lines have to be '{_LABELS[0]}: M.N' and '{_LABELS[1]}: ENCODING'")
        return None
    return _declaration([element for element in declared if element], findings)


def _declaration(elements: list[re.Match[str]], findings: Findings) -> Declaration | None:
    version, encoding = (element["value"] for element in elements)
    if version not in VERSIONS:
        findings.fault(DECLARATION, f"version {version!r} is none of {', '.join(VERSIONS)}")
        return None
    if not _is_text_encoding(encoding):
        findings.fault(DECLARATION, f"unknown encoding {encoding!r} of the tag files")
        return None
    spaces = {(element["before"], element["after"], element["end"]) for element in elements}
    if version == "1.0" and spaces != {("", " ", "")}:
        findings.fault(DECLARATION, "white space other than the one space after each colon")
    return Declaration(version, encoding)


def _is_text_encoding(name: str) -> bool:
    try:
        b"x".decode(name)
    except UnicodeError:  # of another width
        return True
    except (LookupError, ValueError):  # unknown, or from bytes to bytes; not a name at all
        return False
    return True


def decode(path: str, data: bytes, encoding: str, findings: Findings) -> str:
    """A tag file's text; '' with a fault if it is not in the declared encoding."""
    codec = codecs.lookup(encoding).name
    if codec == "utf-8" and data.startswith(codecs.BOM_UTF8):
        findings.warn(path, "begins with a byte order mark")
        data = data[len(codecs.BOM_UTF8) :]
    if codec == "utf-16" and not data.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)):
        codec = "utf-16-be"  # RFC 2781, 4.3
    try:
        return data.decode(codec)
    except UnicodeError as error:
        at = f", at offset {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        findings.fault(path, f"not in {encoding}, the encoding that bagit.txt declares{at}")
        return ""


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers."""
    return ((number, line) for number, line in enumerate(_LINE_END.split(text), 1) if line.strip(_BLANKS))


def parse_manifest(name: str, text: str, declared: Declaration, findings: Findings) -> Manifest:
    """A manifest, or tag manifest: a digest and a path on each line (2.1.3, 2.2.1)."""
    is_tag, written = manifest_of(name) or (False, "")
    manifest = Manifest(name, is_tag, known(written))
    if not manifest.algorithm:
        findings.fault(name, f"nothing can be checked by it: no digest called {written!r} is known here")
        return manifest
    for number, line in _numbered(text):
        match = _DIGEST.fullmatch(line)
        digest = bytes.fromhex(match["digest"]) if match and len(match["digest"]) % 2 == 0 else b""
        if match is None or not fits(manifest.algorithm, digest):
            findings.fault(name, f"line {number} is not a {manifest.algorithm} digest in hex, white space and a path")
            continue
        if match["binary"]:
            findings.count(name, "an asterisk before the path, as md5sum writes it")
        path = _listed(name, number, match["path"], declared, findings, is_tag=is_tag)
        if path and _is_new(manifest, path, digest, declared, findings):
            manifest.digests[path] = digest
    return manifest


def _listed(name: str, number: int, written: str, declared: Declaration, findings: Findings, *, is_tag: bool) -> str:
    """The path of a line; '' with a fault if it is not a path of this bag."""
    path = containers.without_dot(containers.decode(written, declared.version))
    why = containers.unsafe(path)
    if not why and not is_tag and not path.startswith(containers.PAYLOAD):
        why = "not a payload file: it is not in data/"
    if why:
        findings.fault(name, f"line {number}: {written}: {why}")
        return ""
    if written.startswith("./"):
        findings.count(name, "'./' before the path")
    if containers.has_bare_percent(written, declared.version):
        findings.count(name, "a % that is not written %25")
    return path


def _is_new(manifest: Manifest, path: str, digest: bytes, declared: Declaration, findings: Findings) -> bool:
    before = manifest.digests.get(path)
    if before is None:
        return True
    if before != digest:
        findings.fault(manifest.name, f"{path} is listed twice, with two digests")
    else:
        findings.judge(manifest.name, f"{path} is listed twice", is_fault=declared.is_strict)
    return False


def parse_fetch(text: str, declared: Declaration, findings: Findings) -> dict[str, FetchLine]:
    """fetch.txt: URL, length or '-', and path on each line (2.2.3)."""
    wanted: dict[str, FetchLine] = {}
    for number, line in _numbered(text):
        match = _FETCH.fullmatch(line)
        if match is None or not _URL.fullmatch(match["url"]):
            findings.fault(FETCH, f"line {number} is not a URL, a length or '-', and a path")
            continue
        path = _listed(FETCH, number, match["path"], declared, findings, is_tag=False)
        if path in wanted:
            findings.fault(FETCH, f"line {number}: {path} is listed twice")
        elif path:
            length = None if match["length"] == "-" else int(match["length"])
            wanted[path] = FetchLine(match["url"], length, path)
    return wanted


def parse_info(name: str, text: str, declared: Declaration, findings: Findings) -> list[tuple[str, str]]:
    """The elements of bag-info.txt in their order; a line that begins with white space continues one (2.2.2)."""
    elements: list[tuple[str, str]] = []
    for number, line in _numbered(text):
        match = _ELEMENT.fullmatch(line)
        if line[0] in _BLANKS and elements:
            label, value = elements[-1]
            elements[-1] = label, f"{value} {line.strip(_BLANKS)}"
        elif match is None or not match["label"] or line[0] in _BLANKS:
            findings.fault(name, f"line {number} has no label and colon")
        else:
            if match["before"]:
                findings.judge(name, f"line {number}: white space before the colon", is_fault=declared.is_strict)
            elements.append((match["label"], match["value"]))
    for label, value in elements:
        form, shown = _FORMS.get(label.lower(), (None, ""))
        if form and not form.fullmatch(value):
            findings.warn(name, f"{label} is {value!r}, not {shown}")
    return elements


_ANY_LENGTH = 64  # bytes of a digest that has no length of its own (SHAKE): a shorter one is its begin
_MANIFEST = re.compile(r"(?P<tag>tag)?manifest-(?P<algorithm>[^/]+)\.txt")


@cache
def _spellings() -> Mapping[str, str]:
    """hashlib's names by what a manifest calls them: lower case, letters and digits alone."""
    return {_bare(name): name for name in sorted(hashlib.algorithms_available, reverse=True)}


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def manifest_of(path: str) -> tuple[bool, str] | None:
    """Is this a tag manifest, and its algorithm; None if the path is not a manifest's."""
    match = _MANIFEST.fullmatch(path)
    return (bool(match["tag"]), match["algorithm"]) if match else None


@cache
def known(written: str) -> str:
    """hashlib's name for an algorithm that a manifest is named for; '' if it cannot be computed here."""
    name = _spellings().get(_bare(written), "")
    try:
        hashlib.new(name, usedforsecurity=False)
    except ValueError:
        return ""
    return name


def fits(algorithm: str, digest: bytes) -> bool:
    """True if a digest has a length that its algorithm gives."""
    size = hashlib.new(algorithm, usedforsecurity=False).digest_size
    return len(digest) == size if size else 16 <= len(digest) <= _ANY_LENGTH


class Summed:
    """A stream that counts the bytes that are read from it, and computes their digests."""

    def __init__(self, stream: Readable, algorithms: tuple[str, ...]) -> None:
        self._read = stream.read
        self._digests = [hashlib.new(name, usedforsecurity=False) for name in algorithms]
        self.size = 0

    def read(self, size: int = CHUNK, /) -> bytes:
        data = self._read(size)
        self.size += len(data)
        for digest in self._digests:
            digest.update(data)
        return data

    def digests(self) -> tuple[bytes, ...]:
        """The digests, in the order of the algorithms."""
        return tuple(_value(digest) for digest in self._digests)


def _value(digest: hashlib._Hash) -> bytes:
    if digest.digest_size:
        return digest.digest()
    return digest.digest(_ANY_LENGTH)  # type: ignore[call-arg]  # SHAKE


def agrees(computed: bytes, listed: bytes) -> bool:
    """True if a computed digest is the listed one: SHAKE's is computed longer than most list it."""
    return computed[: len(listed)] == listed
