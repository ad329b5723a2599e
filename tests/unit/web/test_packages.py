"""A package index as it was, at `/as-of/SERIAL/simple/`: its pages, the ways to its files, and what is refused."""

from __future__ import annotations

import hashlib
import io
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from indexing.searchable import Searchable
from mirroring.as_of_pages import JSON, get, served
from mirroring.index_answers import file
from mirroring.package_dumps import DumpedIndex, row, state
from msgspec.structs import replace
from operating.web_client import ask
from records.warcs import warc_gz
from starlette.applications import Starlette

from warcmill.errors import NotReady
from warcmill.formats.pypi.dump import DistributionRow, DistType, HeldFile, ListedFile
from warcmill.formats.pypi.lives import StatusInterval
from warcmill.formats.pypi.projects import ProjectRecord
from warcmill.formats.pypi.simple_pages import OfferedFile
from warcmill.pypi import answers, providers
from warcmill.pypi.answers import PublishedData
from warcmill.versions import hidden_list


def offered(filename: str, version: str, url: str = "https://x.example/f?a=b c") -> OfferedFile:
    row = DistributionRow(filename, "a-b", version, DistType.WHEEL, "0" * 64, None, ("six",), None, None)
    return OfferedFile(ListedFile(filename, url, "0" * 64, 10, None, None, None), row)


@dataclass
class HistoryInMemory:
    """Files by project, each with the serials from and to which it was there."""

    newest: int = 9
    begin: int = 0
    kept: dict[str, list[tuple[int, int, OfferedFile]]] = field(default_factory=dict)
    closed: int = 0

    def projects(self, serial: int) -> Iterator[str]:
        if serial < self.begin:
            raise NotReady(f"the list of projects at serial {serial}", "it is not known")
        return (name for name in sorted(self.kept) if any(self.files(name, serial)))

    def status(self, project: str, serial: int) -> StatusInterval | None:
        known = (StatusInterval(8, "archived", 'left <to> "rest"'),) if project == "a-b" else ()
        return ProjectRecord(known).status_at(serial)

    def files(self, project: str, serial: int) -> Iterator[OfferedFile]:
        return (one for first, last, one in self.kept.get(project, []) if first <= serial <= last)

    def addresses(self, project: str) -> Iterator[tuple[str, str]]:
        return ((one.listed.filename, one.listed.url) for _, _, one in self.kept.get(project, []))

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def history() -> HistoryInMemory:
    first, second = offered("a_b-1-py3-none-any.whl", "1"), offered("a_b-2-py3-none-any.whl", "2")
    return HistoryInMemory(kept={"a-b": [(1, 7, first), (5, 9, second)], "gone": [(1, 2, offered("gone-1.zip", "1"))]})


@pytest.fixture
def archive(tmp_path_factory: pytest.TempPathFactory) -> Searchable:
    return Searchable(tmp_path_factory.mktemp("archive"))


@pytest.fixture
def server(archive: Searchable, history: HistoryInMemory) -> Starlette:
    return served(archive, history)


@pytest.mark.parametrize(
    ("serial", "names"),
    [
        (1, ["a_b-1-py3-none-any.whl"]),
        (5, ["a_b-1-py3-none-any.whl", "a_b-2-py3-none-any.whl"]),
        (8, ["a_b-2-py3-none-any.whl"]),
    ],
)
def test_a_page_has_the_files_of_that_serial(server: Starlette, serial: int, names: list[str]) -> None:
    answer = get(server, f"/as-of/{serial}/simple/a-b/")
    assert answer.header("Content-Type") == JSON
    assert [one["filename"] for one in answer.document["files"]] == names
    html = get(server, f"/as-of/{serial}/simple/a-b/", "text/html")
    assert html.header("Content-Type") == "text/html; charset=utf-8"
    assert html.text.count("<a href=") == len(names)


def test_a_page_has_the_status_of_that_serial(server: Starlette) -> None:
    page = get(server, "/as-of/8/simple/a-b/").document
    assert page["project-status"] == {"status": "archived", "reason": 'left <to> "rest"'}
    html = get(server, "/as-of/8/simple/a-b/", "text/html").text
    assert '<meta name="pypi:project-status" content="archived">' in html
    assert '<meta name="pypi:project-status-reason" content="left &lt;to&gt; &quot;rest&quot;">' in html
    assert "project-status" not in get(server, "/as-of/7/simple/a-b/").document


def test_the_list_has_the_projects_of_that_serial(server: Starlette, history: HistoryInMemory) -> None:
    assert [one["name"] for one in get(server, "/as-of/1/simple/").document["projects"]] == ["a-b", "gone"]
    assert [one["name"] for one in get(server, "/as-of/9/simple/").document["projects"]] == ["a-b"]
    assert get(server, "/as-of/0/simple/").document["projects"] == []
    assert history.closed == 3


def test_a_name_that_is_not_normal_leads_to_the_page(server: Starlette) -> None:
    answer = get(server, "/as-of/5/simple/A._b/")
    assert (answer.status, answer.header("Location")) == (303, "/as-of/5/simple/a-b/")


def test_a_file_leads_to_where_the_index_had_it(server: Starlette) -> None:
    path = "/as-of/5/files/a-b/a_b-1-py3-none-any.whl"
    answer = get(server, path)
    assert (answer.status, answer.header("Location")) == (303, "https://x.example/f?a=b%20c")
    metadata = get(server, f"{path}.metadata")
    assert (metadata.status, "Requires-Dist: six\n" in metadata.text) == (200, True)
    for absent in (path.replace("/5/", "/8/"), f"{path}.metadata".replace("-1-", "-3-"), path.replace("a-b", "c")):
        assert get(server, absent).status == 404


def held(archive: Searchable, name: str, content: bytes) -> OfferedFile:
    """A file that a WARC of the store has whole, and the index has no more."""
    data, path = warc_gz(file(name, content)), "warcs/held.warc.gz"
    assert archive.store.commit_new(path, io.BytesIO(data), len(data), hashlib.sha512(data).hexdigest())
    digest = hashlib.sha256(content).hexdigest()
    row = DistributionRow(name, "a-b", "1", DistType.SDIST, digest, None, (), None, (), held=HeldFile(path, 0))
    return OfferedFile(ListedFile(name, "https://x.example/gone", digest, None, None, None, None), row)


@pytest.mark.parametrize(
    ("part", "status", "begin", "end"),
    [
        ("", 200, 0, 100),
        ("bytes=0-9", 206, 0, 10),
        ("bytes=90-", 206, 90, 100),
        ("bytes=90-999", 206, 90, 100),
        ("bytes=-7", 206, 93, 100),
        ("bytes=-999", 206, 0, 100),
        ("bytes=100-", 416, 0, 0),
        ("bytes=-0", 416, 0, 0),
        ("bytes=0-1,5-6", 200, 0, 100),
        ("bytes=-", 200, 0, 100),
        ("lines=1-2", 200, 0, 100),
        ("bytes=\xb2-3", 200, 0, 100),
    ],
)
def test_a_file_that_the_archive_holds_whole_is_sent(
    archive: Searchable, server: Starlette, history: HistoryInMemory, part: str, status: int, begin: int, end: int
) -> None:
    content = bytes(range(100))
    history.kept["a-b"] = [(1, 9, held(archive, "a_b-1.tar.gz", content))]
    sent = {"authorization": "Bearer the-token-of-anna", **({"range": part} if part else {})}
    answer = ask(server, "/as-of/5/files/a-b/a_b-1.tar.gz", headers=sent)
    assert (answer.status, answer.body) == (status, content[begin:end])
    assert answer.header("Content-Length") == str(end - begin)
    assert answer.header("Accept-Ranges") == "bytes"
    range_ = {200: "", 206: f"bytes {begin}-{end - 1}/100", 416: "bytes */100"}[status]
    assert answer.header("Content-Range") == range_
    assert list(archive.state.store.base.glob("scratch/*")) == []


def test_a_held_file_is_hidden_as_its_address_is(
    archive: Searchable, server: Starlette, history: HistoryInMemory
) -> None:
    history.kept["a-b"] = [(1, 9, held(archive, "a_b-1.tar.gz", b"content"))]
    entry = hidden_list.entry_of("https://x.example/gone")
    hidden_list.decide(archive.state.store, lambda: archive.store, entry, "order of a court", hides=True)
    assert get(server, "/as-of/5/files/a-b/a_b-1.tar.gz").status == 404
    assert get(server, "/as-of/5/simple/a-b/").status == 404


def test_a_held_file_whose_warc_is_away_or_has_other_bytes_is_no_absence(
    archive: Searchable, server: Starlette, history: HistoryInMemory
) -> None:
    one = held(archive, "a_b-1.tar.gz", b"content")
    assert one.row
    for changed in (replace(one.row, sha256="0" * 64), replace(one.row, held=HeldFile("warcs/none.warc.gz", 0))):
        history.kept["a-b"] = [(1, 9, replace(one, row=changed))]
        assert get(server, "/as-of/5/files/a-b/a_b-1.tar.gz").status == 503


def test_of_a_file_that_is_held_in_part_the_answer_says_so(server: Starlette, history: HistoryInMemory) -> None:
    one = offered("a_b-1-py3-none-any.whl", "1", "")
    assert one.row
    for known, says in ((replace(one.row, modules=("a",)), "has the end of it alone"), (None, "has none of it")):
        history.kept["a-b"] = [(1, 9, replace(one, row=known))]
        answer = get(server, "/as-of/5/files/a-b/a_b-1-py3-none-any.whl")
        assert (answer.status, says in answer.text) == (404, True)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "", "file:///etc/passwd", "//x.example/"])
def test_an_address_that_is_none_leads_nowhere(server: Starlette, history: HistoryInMemory, url: str) -> None:
    one = offered("a_b-1-py3-none-any.whl", "1", url)
    history.kept["a-b"] = [(1, 9, replace(one, row=None))]
    assert get(server, "/as-of/5/files/a-b/a_b-1-py3-none-any.whl").status == 404
    assert get(server, "/as-of/5/files/a-b/a_b-1-py3-none-any.whl.metadata").status == 404


@pytest.mark.parametrize("path", ["/as-of/x/simple/", "/as-of/-1/simple/a-b/",
    f"/as-of/{'9' * 30}/simple/", "/as-of/5/simple/none/", "/as-of/5/simple"])  # fmt: skip
def test_what_is_not_there_is_404(server: Starlette, history: HistoryInMemory, path: str) -> None:
    assert get(server, path).status == 404
    assert history.closed <= 1


def test_a_serial_that_is_not_published_yet_is_no_absence(server: Starlette, history: HistoryInMemory) -> None:
    for path in ("/as-of/10/simple/", "/as-of/10/simple/a-b/", "/as-of/10/files/a-b/a_b-1-py3-none-any.whl"):
        answer = get(server, path)
        assert (answer.status, "10 of data set distributions" in answer.text) == (503, True)
        assert "the last one that is published is 9" in answer.text
    assert history.closed == 3


def test_a_list_that_is_not_known_is_no_empty_page(server: Starlette, history: HistoryInMemory) -> None:
    history.begin = 5
    answer = get(server, "/as-of/4/simple/")
    assert (answer.status, "the list of projects at serial 4" in answer.text) == (503, True)
    assert get(server, "/as-of/5/simple/").status == 200
    assert history.closed == 2


def test_only_readers_get_it_and_nothing_is_there_until_it_is_published(
    server: Starlette, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert ask(server, "/as-of/5/simple/").status == 403
    answer = get(served(Searchable(tmp_path_factory.mktemp("none")), None), "/as-of/5/simple/")
    assert (answer.status, "distributions is not ready: no packages are published yet" in answer.text) == (503, True)


def test_packages_whose_files_are_lost_are_not_healthy(archive: Searchable, history: HistoryInMemory) -> None:
    index = DumpedIndex(archive.state.store.base.parent)
    server = served(archive, history, index.index)
    wheel = row("six", "1.17", "six")
    assert ask(server, "/healthz").status == 200
    index.dump(0, 9, [wheel], [state("six", 7, wheel)])
    index.update()
    assert ask(server, "/healthz").status == 200
    shutil.rmtree(index.index.base / "versions/distributions")
    assert ask(server, "/healthz").status == 503
    answer = get(served(archive, None, index.index), "/as-of/9/simple/six/")
    assert (answer.status, "its versions are not in the index root" in answer.text) == (503, True)
    index.update()
    assert ask(server, "/healthz").status == 200


@pytest.fixture
def data(tmp_path: Path) -> PublishedData:
    """Data sets in which `b-c` requires `a-b`, and both have the module `m`."""
    index = DumpedIndex(tmp_path)
    rows = [row("a-b", "1", "m", "ns.a"), row("b-c", "1", "m", requires=("A_B[x] >=1",))]
    index.dump(0, 9, rows, [state(one.project, 5, one) for one in rows])
    index.update()
    return PublishedData(index.state.store, index.index)


def test_questions_across_projects_are_answered_as_the_command_does(
    archive: Searchable, history: HistoryInMemory, data: PublishedData
) -> None:
    server = served(archive, history, data=data)
    provided = get(server, "/packages/provides/m")
    assert (provided.status, provided.header("Content-Type")) == (200, "application/json")
    assert provided.document == providers.provides(data, "m")
    assert [one["project"] for one in provided.document["projects"]] == ["a-b", "b-c"]
    assert get(server, "/packages/provides/ns").document == providers.provides(data, "ns")
    none = get(server, "/packages/provides/nothing")
    assert (none.status, none.document["projects"]) == (404, [])
    assert get(server, "/packages/required-by/A.B").document == providers.required_by(data, "a-b")
    assert get(server, "/packages/required-by/b-c").status == 404
    name = "b_c-1-py3-none-any.whl"
    assert get(server, f"/packages/requires/{name}").document == answers.requires(data, name)
    of_project = get(server, f"/packages/requires/{name}", fields={"project": "b-c"})
    assert of_project.document["requires_dist"] == ["A_B[x] >=1"]
    assert get(server, "/packages/requires/unknown-1.zip").status == 404
    for odd in ("\u202e", "a\tb", "\0", "\0\1", "m\n", "<script>", "é", "." * 2_000):
        for path in ("provides", "required-by", "requires"):
            assert get(server, f"/packages/{path}/{odd}").status == 404, odd


def test_questions_across_projects_are_too_early_while_nothing_is_published(server: Starlette) -> None:
    for path in ("provides/m", "requires/m-1.zip", "required-by/m"):
        answer = get(server, f"/packages/{path}")
        assert (answer.status, "no packages are published yet" in answer.text) == (503, True)


@pytest.mark.parametrize("last", [9, 5], ids=["there", "in quarantine"])
def test_a_reader_gets_no_file_whose_address_is_hidden(
    archive: Searchable, history: HistoryInMemory, data: PublishedData, last: int
) -> None:
    server = served(archive, history, data=data)
    kept = offered("a_b-1-py3-none-any.whl", "1", "https://x.example/gone")
    history.kept["a-b"] = [(1, last, kept)]
    entry = hidden_list.entry_of(kept.listed.url)
    hidden_list.decide(archive.state.store, lambda: archive.store, entry, "order of a court", hides=True)
    found = get(server, "/packages/provides/m").document
    assert [one["project"] for one in found["projects"]] == ["b-c"] == [one["project"] for one in found["files"]]
    assert get(server, "/packages/requires/a_b-1-py3-none-any.whl").status == 404
    assert get(server, "/packages/requires/b_c-1-py3-none-any.whl").status == 200


def test_of_a_project_with_a_hidden_file_the_others_are_counted(
    archive: Searchable, history: HistoryInMemory, tmp_path: Path
) -> None:
    index = DumpedIndex(tmp_path)
    rows = [row("a-b", version, "m") for version in ("1", "2")]
    index.dump(0, 9, rows, [state("a-b", 5, *rows)])
    index.update()
    server = served(archive, history, data=PublishedData(index.state.store, index.index))
    newest = offered("a_b-2-py3-none-any.whl", "2", "https://x.example/gone")
    history.kept["a-b"] = [(1, 9, newest)]
    entry = hidden_list.entry_of(newest.listed.url)
    hidden_list.decide(archive.state.store, lambda: archive.store, entry, "order of a court", hides=True)
    (one,) = get(server, "/packages/provides/m").document["projects"]
    assert (one["files"], one["filename"], one["version"]) == (1, None, None)


def test_where_it_is_not_known_what_is_hidden_the_answer_is_too_early(archive: Searchable, data: PublishedData) -> None:
    server = served(archive, None, data=data)
    paths = ("/packages/provides/m", "/packages/requires/a_b-1-py3-none-any.whl")
    assert [get(server, path).status for path in paths] == [200, 200]
    entry = hidden_list.entry_of("https://x.example/gone")
    hidden_list.decide(archive.state.store, lambda: archive.store, entry, "order of a court", hides=True)
    assert [get(server, path).status for path in paths] == [503, 503]
