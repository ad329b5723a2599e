"""The views of a package index as it was, and of what its packages give and require. Reads only.

pip and uv read them, at `/as-of/SERIAL/simple/`. A file that the archive holds whole is sent; the address of another
leads on to where the index had it. The METADATA that an installer resolves by is made of the row of a wheel.
Questions across projects are answered as `warcmill pypi --json` does, by the same functions: 404 where its exit is 1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http import HTTPStatus
from typing import cast
from urllib.parse import quote

from warcmill.errors import NotReady
from warcmill.extracts.held_files import take_out
from warcmill.formats.pypi.data_sets import DISTRIBUTIONS
from warcmill.formats.pypi.dump import HeldFile
from warcmill.formats.pypi.filenames import METADATA, normalised
from warcmill.formats.pypi.simple_pages import OfferedFile, index_page, metadata, preferred, project_page
from warcmill.model import Json, JsonObject
from warcmill.pypi import answers, providers
from warcmill.pypi.answers import PublishedData
from warcmill.versions.publication import Payloads
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, SentBytes, ShownPage
from warcmill.web.served import PackageHistory, Served
from warcmill.web.warcs import part_of, pieces

NOT_PUBLISHED = (
    "no packages are published yet: 'warcmill scan' publishes those of a mirrored package index, where luigi.cfg has"
    " [pypi] since"
)
_LOST = "its versions are not in the index root: 'warcmill scan' makes them again"
_SERIAL = re.compile(r"[0-9]{1,18}")
_FILE = "application/octet-stream"
_IN_URLS = ":/?#[]@!$&'()*+,;=%-._~"
_VARY = {"Vary": "Accept"}


def all_projects(served: Served, asked: Asked) -> Answer:
    """All projects that had a file then."""
    found = _opened(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    history, serial = found
    with ExitStack() as opened:
        opened.enter_context(closing(history))
        kind, names = preferred(asked.accept), history.projects(serial)
        return SentBytes(_closing(opened.pop_all(), index_page(kind, serial, names)), kind.type, more=_VARY)


def project(served: Served, asked: Asked) -> Answer:
    """The files that a project had then; 404 if it had none."""
    name = asked.names["project"]
    if name != normalised(name):
        return MovedTo(quote(asked.path.removesuffix(f"{name}/")) + f"{quote(normalised(name), '')}/")
    found = _opened(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    history, serial = found
    with closing(history):
        files, status = [*_files(asked, history, name, serial)], history.status(name, serial)
    if not files:
        return _absent(f"no project {name} had a file at serial {serial}")
    kind = preferred(asked.accept)
    return SentBytes(project_page(kind, name, serial, files, status), kind.type, more=_VARY)


def file(served: Served, asked: Asked) -> Answer:
    """A file, if the archive holds it whole, or the way to it, as the index had it; or the METADATA of a wheel, at its
    address and `.metadata`."""
    name, filename = asked.names["project"], asked.names["filename"]
    found = _opened(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    history, serial = found
    with closing(history):
        files = {one.listed.filename: one for one in _files(asked, history, name, serial)}
    if filename not in files and filename.endswith(METADATA):
        return _metadata(files.get(filename.removesuffix(METADATA)))
    if filename not in files:
        return _absent(f"no project {name} had a file {filename} at serial {serial}")
    listed, row = files[filename].listed, files[filename].row
    if row and row.held:
        return _sent(served, asked, row.held, row.sha256)
    if not listed.url.startswith(("http://", "https://")):
        held = "the end of it alone" if row and row.modules is not None else "none of it"
        return _absent(f"of {filename} the archive has {held}, and no address is known that leads to it")
    return MovedTo(quote(listed.url, _IN_URLS))


def _sent(served: Served, asked: Asked, held: HeldFile, sha256: str) -> Answer:
    """A file, or a range of it, once its digest was compared."""
    with served.state.scratch() as folder:
        stream, size = take_out(served.archive.open_store(), held, sha256, folder)
    part = part_of(asked.range, size) if asked.method == "GET" else None
    first, last = part or (0, size - 1)
    headers = {"Accept-Ranges": "bytes"}
    if part:
        headers["Content-Range"] = f"bytes {first}-{last}/{size}" if first <= last else f"bytes */{size}"
    if part and first > last:
        stream.close()
        return SentBytes(b"", _FILE, 0, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers)
    stream.seek(first)
    status, length = HTTPStatus.PARTIAL_CONTENT if part else HTTPStatus.OK, last - first + 1
    return SentBytes(pieces(stream, length), _FILE, length, status, headers)


def provides(served: Served, asked: Asked) -> Answer:
    """The projects that give a module, the best first."""
    found = providers.provides(_data(served), asked.names["module"])
    if asked.hidden and not asked.sees_hidden:
        found = _without_hidden(served, asked, found)
    is_given = any(one["gives"] for one in cast("list[JsonObject]", found["projects"]))
    return ShownPage(found, status=HTTPStatus.OK if is_given else HTTPStatus.NOT_FOUND)


def requires(served: Served, asked: Asked) -> Answer:
    """The requirements of a file; `project`, a field, is its project where its name is ambiguous."""
    filename = asked.names["filename"]
    found = answers.requires(_data(served), filename, asked.fields.get("project", ""))
    if found is None or filename in _hidden(served, asked, str(found["project"])):
        return ShownPage({"error": f"{filename} is not known here"}, status=HTTPStatus.NOT_FOUND)
    return ShownPage(found)


def required_by(served: Served, asked: Asked) -> Answer:
    """The projects whose newest releases require a project."""
    found = providers.required_by(_data(served), asked.names["project"])
    return ShownPage(found, status=HTTPStatus.OK if found["required_by"] else HTTPStatus.NOT_FOUND)


def _data(served: Served) -> PublishedData:
    """The data sets, where a line has an index root; fails as `_opened` where none is published."""
    data = served.package_data() if served.package_data else None
    if data is None or Payloads(data.index, DISTRIBUTIONS).current() is None:
        raise _not_ready(served)
    return data


def _not_ready(served: Served) -> NotReady:
    return NotReady(f"data set {DISTRIBUTIONS}", _LOST if DISTRIBUTIONS in served.archive.lost() else NOT_PUBLISHED)


def _without_hidden(served: Served, asked: Asked, found: JsonObject) -> JsonObject:
    """An answer of `provides` without the files whose addresses are hidden, and the projects that have no other."""
    files, projects = cast("list[JsonObject]", found["files"]), cast("list[JsonObject]", found["projects"])
    hidden = {str(one["project"]): _hidden(served, asked, str(one["project"])) for one in projects}
    left = [one for one in files if one["filename"] not in hidden[str(one["project"])]]
    numbers = Counter(one["project"] for one in left)
    kept: list[Json] = [
        {**one, "files": numbers[one["project"]]}
        | ({"version": None, "filename": None} if one["filename"] in hidden[str(one["project"])] else {})
        for one in projects
        if not one["files"] or one["project"] in numbers
    ]
    return {**found, "files": list[Json](left), "projects": kept}


def _hidden(served: Served, asked: Asked, project: str) -> set[str]:
    """The files of a project whose addresses readers may not have."""
    if not asked.hidden or asked.sees_hidden:
        return set()
    if served.packages is None or (history := served.packages()) is None:
        raise _not_ready(served)
    with closing(history):
        return {filename for filename, url in history.addresses(project) if asked.hidden.are_in(url)}


def _files(asked: Asked, history: PackageHistory, name: str, serial: int) -> Iterator[OfferedFile]:
    """The files of a project; without those whose address is hidden, for readers."""
    for one in history.files(name, serial):
        if asked.sees_hidden or not asked.hidden.are_in(one.listed.url):
            yield one


def _metadata(found: OfferedFile | None) -> Answer:
    data = metadata(found.row) if found else None
    return SentBytes(data, "text/plain; charset=utf-8", len(data)) if data else _absent("its metadata is not known")


def _opened(served: Served, asked: Asked) -> tuple[PackageHistory, int] | RefusedRequest:
    """The history, to be closed, and the serial that is asked for; or why there is none."""
    if served.packages is None or (history := served.packages()) is None:
        raise _not_ready(served)
    text, newest = asked.names["serial"], history.newest
    if _SERIAL.fullmatch(text) and int(text) <= newest:
        return history, int(text)
    history.close()
    if _SERIAL.fullmatch(text):  # nothing is absent then: an installer has to ask again, not to look elsewhere
        raise NotReady(f"serial {text} of data set {DISTRIBUTIONS}", f"the last one that is published is {newest}")
    return _absent("the serial in the address is not a number")


def _closing(opened: ExitStack, pieces: Iterator[bytes]) -> Iterator[bytes]:
    with opened:
        yield from pieces


def _absent(why: str) -> RefusedRequest:
    return RefusedRequest(HTTPStatus.NOT_FOUND, why)
