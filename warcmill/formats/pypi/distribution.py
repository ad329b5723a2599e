"""The facts of a distribution, read from its file in bounded memory; nothing of it is run or unpacked. Pure.

A wheel needs its tail alone: the zip directory at its end, its METADATA, and a .pth file if it has one. An sdist is
read once, from begin to end.
Facts that a file does not have, or that could not be read, are None, and `why` has the reason for a fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from warcmill.errors import BadInput
from warcmill.formats.pypi import metadata, modules
from warcmill.formats.pypi.filenames import DistributionName, FileForm, normalised
from warcmill.formats.pypi.metadata import MetadataFields, Requirements
from warcmill.formats.pypi.modules import ModulePaths, TooMany
from warcmill.formats.pypi.namespaces import PKG_RESOURCES, InitFiles
from warcmill.formats.pypi.tar_reader import TarReader
from warcmill.formats.pypi.zip_directory import TAIL, TooEarly, ZipDirectory, ZipMember

_METADATA = re.compile(r"([^/]+)\.dist-info/METADATA")
_MOST_METADATA = 100  # in one wheel; it should have one
_LISTED = re.compile(r"[^/]+\.dist-info/namespace_packages\.txt").fullmatch
_MOST_PTH, _LONGEST_PTH = 20, 1 << 16
_IS_CODE = ("-nspkg.pth", "distutils-precedence.pth")  # of setuptools, whose lines are all code
_AT_ONCE = 1 << 14  # bytes


class DistributionFacts(Struct, frozen=True):
    """The known facts of a distribution. None is unknown; `why`: each fault that is the reason for that.

    `name` and `version` are from its metadata, as written there. `metadata`: of a wheel, `MetadataFields.kept`. The
    last four are as `DistributionRow` has them.
    """

    name: str | None = None
    version: str | None = None
    requires: tuple[str, ...] | None = None
    requires_dist: tuple[str, ...] | None = None
    requires_python: str | None = None
    modules: tuple[str, ...] | None = None
    why: tuple[str, ...] = ()
    metadata: tuple[str, ...] | None = None
    import_names: tuple[str, ...] | None = None
    import_namespaces: tuple[str, ...] | None = None
    namespaces: dict[str, str] | None = None
    stubs: tuple[str, ...] | None = None


def read(stream: BinaryIO, name: DistributionName, size: int, begin: int = 0) -> DistributionFacts:
    """The facts of a distribution whose file has `size` bytes; the stream, which can seek, has those from `begin` on.

    Raises TooEarly alone: if the tail of a zip is not enough.
    """
    if name.form is FileForm.NAME_ONLY:
        return DistributionFacts()
    if name.form is FileForm.TAR and begin:
        return DistributionFacts(why=("only the end of the file is there",))
    try:
        if name.form is FileForm.WHEEL:
            return _wheel(ZipDirectory(stream, name.filename, size, begin), name)
        papers = _Papers(name)
        if name.form is FileForm.TAR:
            _read_tar(TarReader(stream, name.filename, name.coding), papers)
        else:
            _read_zip(ZipDirectory(stream, name.filename, size, begin), papers)
    except BadInput as error:
        return DistributionFacts(why=(_reason(error),))
    return papers.facts()


def of_metadata(stream: BinaryIO) -> DistributionFacts:
    """The facts that a METADATA has, as an index has it beside its wheel."""
    header = metadata.header_of(iter(lambda: stream.read(_AT_ONCE), b""))
    if header is None:
        return DistributionFacts(why=(f"the header of its METADATA has more than {metadata.LONGEST:,} bytes",))
    return _with_fields(DistributionFacts(), metadata.read_fields(header))


def modules_alone(stream: BinaryIO, name: DistributionName, size: int, begin: int) -> DistributionFacts:
    """The facts of a wheel that do without its METADATA; none if the bytes from `begin` on do not have them soundly."""
    if name.form is not FileForm.WHEEL:
        return DistributionFacts()
    try:
        return _wheel(ZipDirectory(stream, name.filename, size, begin), name, alone=True)
    except (TooEarly, BadInput):
        return DistributionFacts()


def needed_from(
    stream: BinaryIO, name: DistributionName, size: int, begin: int, *, modules: bool = False
) -> int | None:
    """The offset from which the bytes of a wheel give its facts, or its `modules` alone, if those from `begin` on do
    not; None: they do.

    A wheel whose directory is not there is asked for from a little before it: its METADATA mostly is beside it.
    """
    try:
        directory = ZipDirectory(stream, name.filename, size, begin)
        if directory.offset < begin:
            return max(0, directory.offset - (0 if modules else TAIL))
        _wheel(directory, name, is_wanted=True, alone=modules)
    except TooEarly as early:
        return max(0, early.needed)
    except BadInput:
        return None
    return None


def _reason(error: BadInput) -> str:
    return error.why if error.offset is None else f"{error.why}, at offset {error.offset}"


def _wheel(
    directory: ZipDirectory, name: DistributionName, *, is_wanted: bool = False, alone: bool = False
) -> DistributionFacts:
    """The facts of a wheel. `is_wanted`: TooEarly also for a .pth file; else its modules lack those of its folders.
    `alone`: those without its METADATA."""
    paths, found, why = ModulePaths(), list[ZipMember](), list[str]()
    added, inits, listed = list[ZipMember](), InitFiles(), list[ZipMember]()
    known: tuple[str, ...] | None = None
    declared: dict[str, str] = {}
    try:
        for member in directory:
            path = member.name
            paths.add(path)
            if path.endswith(".py"):
                inits.add(member)
            elif path.endswith(".pth"):
                if "/" not in modules.moved(path) and len(added) < _MOST_PTH and not path.endswith(_IS_CODE):
                    added.append(member)
            elif _METADATA.fullmatch(path) and len(found) < _MOST_METADATA:
                found.append(member)
            elif path.endswith(".txt") and _LISTED(path) and not listed:
                listed.append(member)
        folders = [*_folders(directory, added, why, is_wanted=is_wanted)]
        known = modules.of_wheel(paths, folders)
        tops = [name for one in listed for name in metadata.top_levels(_small(directory, one) or b"")]
        declared = inits.declared(known, tops, lambda member: _small(directory, member))
    except TooMany:
        why.append(_TOO_MANY)
        found = found or [*_with_metadata(directory)]
    fields = None
    try:
        fields = None if alone else _fields_of(directory, _chosen(found, name), name.filename)
    except BadInput as error:
        why.append(_reason(error))
    facts = DistributionFacts(modules=known, why=tuple(why), namespaces=declared or None, stubs=paths.stubs)
    if fields is None:
        return facts
    return _with_fields(facts, fields)


def _with_fields(facts: DistributionFacts, fields: MetadataFields) -> DistributionFacts:
    return replace(
        facts,
        name=fields.name,
        version=fields.version,
        requires=fields.requires,
        requires_dist=fields.requires_dist,
        requires_python=fields.requires_python,
        metadata=fields.kept,
        import_names=fields.import_names,
        import_namespaces=fields.import_namespaces,
    )


def _folders(directory: ZipDirectory, added: list[ZipMember], why: list[str], *, is_wanted: bool) -> Iterator[str]:
    """The folders that .pth files add to the path; `why` gets the reason for one that cannot be read."""
    for member in added:
        try:
            content = b"".join(directory.read(member)) if member.size <= _LONGEST_PTH else b""
        except BadInput as error:
            why.append(_reason(error))
        except TooEarly:
            if is_wanted:
                raise
            why.append(f"{member.name!a} is not in the part that was fetched: modules of its folders are unknown")
        else:
            yield from modules.pth_folders(content)


def _small(directory: ZipDirectory, member: ZipMember) -> bytes | None:
    """The content of a member of a few kB; None if it is longer, damaged, or before what is there."""
    try:
        return b"".join(directory.read(member)) if member.size <= _LONGEST_PTH else None
    except (BadInput, TooEarly):
        return None


_TOO_MANY = f"it has more than {modules.MOST:,} modules, or their names more than {modules.MOST_BYTES:,} bytes"


def _with_metadata(directory: ZipDirectory) -> Iterator[ZipMember]:
    return (member for member in directory if _METADATA.fullmatch(member.name))


def _chosen(found: list[ZipMember], name: DistributionName) -> ZipMember:
    """The METADATA of the wheel's own dist-info; of two with one name the last one, as installers take it."""
    own = [one for one in found if normalised(one.name.rpartition("-")[0].rpartition("-")[0]) == name.project]
    candidates = own or found
    if not candidates:
        raise BadInput(name.filename, "it has no METADATA")
    if len({one.name for one in candidates}) > 1:
        raise BadInput(name.filename, f"it has {len(candidates)} dist-info folders")
    return candidates[-1]


def _fields_of(directory: ZipDirectory, member: ZipMember, path: str) -> MetadataFields:
    header = metadata.header_of(directory.read(member))
    if header is None:
        raise BadInput(path, f"the header of its METADATA has more than {metadata.LONGEST:,} bytes")
    return metadata.read_fields(header)


class _Paper(NamedTuple):
    """A file that has metadata: its rank, the best is the lowest; and its content, or the reason why there is none."""

    rank: tuple[bool, int]
    folder: str
    content: bytes | str


class _Papers(Struct):
    """The yield of one pass over an sdist or an egg: the paths of modules, and the files that have metadata."""

    name: DistributionName
    paths: ModulePaths = field(default_factory=ModulePaths)
    found: dict[str, _Paper] = field(default_factory=dict)
    too_many: bool = False

    def rank(self, path: str) -> tuple[str, _Paper] | None:
        """The kind of a file that is better than the one that is known, if any, without its content yet."""
        kind, rank, folder = self._kind(path)
        if not kind or (kind in self.found and self.found[kind].rank <= rank):
            return None
        return kind, _Paper(rank, folder, b"")

    def _kind(self, path: str) -> tuple[str, tuple[bool, int], str]:
        folder, _, file = path.rpartition("/")
        depth = path.count("/")
        if file in ("PKG-INFO", "pyproject.toml") and not folder:
            return file, (False, 0), ""
        inner = folder.rpartition("/")[2]
        if file not in ("requires.txt", "top_level.txt", "namespace_packages.txt", "PKG-INFO") or not (
            inner.endswith(".egg-info") or folder == "EGG-INFO"
        ):
            return "", (False, 0), ""
        if modules.is_aside(folder.rpartition("/")[0]):
            return "", (False, 0), ""
        own = folder == "EGG-INFO" or normalised(inner.removesuffix(".egg-info")) == self.name.project
        return (f"egg {file}", (not own, depth), folder) if own or depth <= 2 else ("", (False, 0), "")

    def add(self, path: str) -> None:
        """Take the path of one file, below the distribution's folder."""
        try:
            self.paths.add(path)
        except TooMany:
            self.too_many = True

    def take(self, kind: str, paper: _Paper, content: bytes | str) -> None:
        """Keep the content of a file, or the reason why it could not be read."""
        self.found[kind] = paper._replace(content=content)

    def facts(self) -> DistributionFacts:
        """The facts, by all that was collected."""
        own = self._egg_info()
        info = self._content("PKG-INFO") or self._content("egg PKG-INFO")
        fields = metadata.read_fields(metadata.header_of([info]) or b"") if info is not None else None
        requirements, why = self._requirements(fields, own), [*self._faults()]
        known = self._modules(own)
        return DistributionFacts(
            fields.name if fields else None,
            fields.version if fields else None,
            self._requires(fields),
            requirements.dists,
            requirements.python,
            known,
            (*why, *([_TOO_MANY] if self.too_many else [])),
            import_names=fields.import_names if fields else None,
            import_namespaces=fields.import_namespaces if fields else None,
            namespaces=self._namespaces(own, known or ()),
            stubs=self.paths.stubs,
        )

    def _namespaces(self, egg_info: str | None, known: Iterable[str]) -> dict[str, str] | None:
        paper = self.found.get("egg namespace_packages.txt")
        if paper is None or paper.folder != egg_info or not isinstance(paper.content, bytes):
            return None
        parents = {name for module in known for name in modules.above(module)}
        return dict.fromkeys(sorted(parents.intersection(metadata.top_levels(paper.content))), PKG_RESOURCES) or None

    def _faults(self) -> Iterator[str]:
        return (f"{kind}: {paper.content}" for kind, paper in self.found.items() if isinstance(paper.content, str))

    def _content(self, kind: str) -> bytes | None:
        paper = self.found.get(kind)
        return paper.content if paper and isinstance(paper.content, bytes) else None

    def _egg_info(self) -> str | None:
        """The folder of the best egg-info; None without one."""
        papers = [paper for kind, paper in self.found.items() if kind.startswith("egg ")]
        return min(papers, key=lambda paper: paper.rank).folder if papers else None

    def _requires(self, fields: MetadataFields | None) -> tuple[str, ...] | None:
        if fields is None or (not fields.requires and (not fields.is_static or "requires" in fields.dynamic)):
            return None
        return fields.requires

    def _requirements(self, fields: MetadataFields | None, egg_info: str | None) -> Requirements:
        """PKG-INFO where it is static, else requires.txt, else the static part of pyproject.toml."""
        project = self._content("pyproject.toml")
        static = metadata.of_pyproject(project) if project is not None else Requirements()
        python = static.python
        if fields and (fields.requires_python or (fields.is_static and "requires-python" not in fields.dynamic)):
            python = fields.requires_python
        if fields and fields.is_static and not fields.dynamic & {"requires-dist", "provides-extra"}:
            return Requirements(fields.requires_dist, python)
        paper = self.found.get("egg requires.txt")
        if egg_info is not None and (paper is None or paper.folder != egg_info):
            return Requirements((), python)  # setuptools leaves the file out of an egg without requirements
        if paper is not None:
            return Requirements(
                metadata.of_requires_txt(paper.content) if isinstance(paper.content, bytes) else None, python
            )
        return replace(static, python=python)

    def _modules(self, egg_info: str | None) -> tuple[str, ...] | None:
        if self.too_many:
            return None
        names = self.found.get("egg top_level.txt")
        tops = None
        if names is not None and names.folder == egg_info and isinstance(names.content, bytes):
            tops = metadata.top_levels(names.content)
        if self.name.form is FileForm.EGG:
            found = modules.of_wheel(self.paths)
            return found if tops is None else tuple(one for one in found if one.partition(".")[0] in tops)
        above, slash, _ = (egg_info or "").rpartition("/")
        return modules.of_source(self.paths, tops, self.name.project, above + slash)


def _read_tar(tar: TarReader, papers: _Papers) -> None:
    for member in tar:
        if not member.is_file:
            continue
        path = _below(member.name)
        papers.add(path)
        if ranked := papers.rank(path):
            content = tar.read(metadata.LONGEST + 1)
            papers.take(*ranked, content if len(content) <= metadata.LONGEST else _TOO_LONG)


_TOO_LONG = f"it has more than {metadata.LONGEST:,} bytes"


def _below(name: str) -> str:
    """The path of a member below the folder that an sdist has all files in."""
    return name.removeprefix("./").partition("/")[2]


def _read_zip(directory: ZipDirectory, papers: _Papers) -> None:
    below: Callable[[str], str] = str if papers.name.form is FileForm.EGG else _below
    chosen: dict[str, tuple[_Paper, ZipMember]] = {}
    for member in directory:
        path = below(member.name)
        papers.add(path)
        if ranked := papers.rank(path):
            kind, paper = ranked
            papers.take(kind, paper, b"")
            chosen[kind] = paper, member
    for kind, (paper, member) in chosen.items():
        try:
            content = _joined(directory.read(member))
        except BadInput as error:
            content = _reason(error)
        papers.take(kind, paper, content)


def _joined(pieces: Iterable[bytes]) -> bytes | str:
    held = bytearray()
    for piece in pieces:
        held += piece
        if len(held) > metadata.LONGEST:
            return _TOO_LONG
    return bytes(held)
