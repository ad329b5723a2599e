"""The bags among the files of `warcmill check`: which they are, how they are read, and what is printed of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from warcmill.base.digests import Readable
from warcmill.formats.bagit import bag
from warcmill.formats.bagit.algorithms import manifest_of
from warcmill.formats.bagit.archives import Tar, Zip, gunzipped
from warcmill.formats.bagit.containers import Container, Folder
from warcmill.formats.bagit.findings import Result, Verdict
from warcmill.model import Json

OK, INCOMPLETE, REFUSED, UNREADABLE = "ok", "incomplete", "refused", "unreadable"
_TARS, _GZIPPED, _ZIPS = (".tar",), (".tar.gz", ".tgz"), (".zip",)
_SIGNS = ("bagit.txt", "bag-info.txt", "data")  # of a bag that has lost the first
_RESULTS = {Result.VALID: OK, Result.INCOMPLETE: INCOMPLETE, Result.INVALID: REFUSED}
SHOWN = 50  # faults, and as many files to be fetched, of one bag; --json has all

Watch = Callable[[BinaryIO], Readable]


@dataclass(frozen=True, slots=True)
class CheckedBag:
    """The result for one bag. Without a verdict it could not be read, and `why` says why."""

    file: str
    verdict: Verdict | None
    why: str = ""

    @property
    def result(self) -> str:
        return _RESULTS[self.verdict.result] if self.verdict else UNREADABLE


def is_bag(path: Path) -> bool:
    """True if a file or folder is to be judged as a bag: by its name, a folder by what is in it."""
    if path.is_dir():
        return any((path / sign).exists() for sign in _SIGNS)
    return path.name.lower().endswith(_TARS + _GZIPPED + _ZIPS)


@contextmanager
def opened(path: Path, watch: Watch) -> Iterator[Container]:
    """The bag at a path, to be read with `watch` on all that is read of it."""
    name = path.name.lower()
    if path.is_dir():
        yield Folder(path, watch)
    elif name.endswith(_ZIPS):
        with path.open("rb") as stream:
            yield Zip(path.name, stream)
    else:
        yield Tar(path.name, lambda: _tar_stream(path, watch, gzipped=name.endswith(_GZIPPED)))


@contextmanager
def _tar_stream(path: Path, watch: Watch, *, gzipped: bool) -> Iterator[Readable]:
    with ExitStack() as stack:
        stream = watch(stack.enter_context(path.open("rb")))
        inner: AbstractContextManager[Readable] | None = gunzipped(path.name, stream) if gzipped else None
        yield stack.enter_context(inner) if inner else stream


def check(path: Path, watch: Watch) -> CheckedBag:
    """Judge one bag; OSError is its result."""
    try:
        with opened(path, watch) as container:
            return CheckedBag(str(path), bag.examine(container))
    except OSError as error:
        where = f"{error.filename}: " if error.filename and error.filename != str(path) else ""
        return CheckedBag(str(path), None, f"{where}{error.strerror or error}")


def name_inside(path: Path, inner: str) -> str:
    """How a file of a bag is called: a folder's by its own path, an archive's after a colon."""
    return str(path / inner) if path.is_dir() else f"{path}:{inner}"


def as_lines(checked: CheckedBag) -> Iterator[str]:
    """One bag's result for people: its line, then what is wrong, to be fetched, or unusual."""
    verdict = checked.verdict
    if verdict is None:
        yield f"{checked.result:<10} {checked.file}: {checked.why}"
        return
    yield f"{checked.result:<10} {checked.file}: {'; '.join(_parts(verdict))}"
    fetched = [f"{fetch.path}, from {fetch.url}" for fetch in verdict.to_fetch]
    for word, found in (("fault", verdict.faults), ("to fetch", fetched), ("warning", verdict.warnings)):
        yield from _shown(word, checked.file, found)


def _parts(verdict: Verdict) -> Iterator[str]:
    if verdict.version:
        manifests = [found[1] for found in map(manifest_of, verdict.manifests) if found and not found[0]]
        yield f"BagIt {verdict.version}, {', '.join(manifests) or 'without a manifest'}"
        yield f"{verdict.files} payload files, {verdict.size} bytes"
    if verdict.faults:
        yield f"{len(verdict.faults)} faults"
    if verdict.to_fetch:
        yield f"{len(verdict.to_fetch)} files to be fetched"


def _shown(word: str, file: str, found: Sequence[object]) -> Iterator[str]:
    for one in found[:SHOWN]:
        yield f"{word:<10} {file}: {one}"
    if len(found) > SHOWN:
        yield f"{word:<10} {file}: and {len(found) - SHOWN} more; --json lists them all"


def as_json(checked: CheckedBag) -> dict[str, Json]:
    """One bag's result for machines."""
    result: dict[str, Json] = {"file": checked.file, "result": checked.result}
    verdict = checked.verdict
    if verdict is None:
        return result | {"why": checked.why}
    return result | {
        "bagit": verdict.version,
        "encoding": verdict.encoding,
        "manifests": list(verdict.manifests),
        "files": verdict.files,
        "bytes": verdict.size,
        "faults": [asdict(fault) for fault in verdict.faults],
        "warnings": [asdict(warning) for warning in verdict.warnings],
        "to_fetch": [asdict(fetch) for fetch in verdict.to_fetch],
    }
