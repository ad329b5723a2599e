"""Which projects give a module, and which require a project: ranked, and found without a walk over the index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mirroring.package_dumps import DumpedIndex, listed, row, state
from msgspec.structs import replace

from warcmill.errors import NotReady
from warcmill.formats.pypi import releases
from warcmill.formats.pypi.data_sets import DISTRIBUTIONS
from warcmill.formats.pypi.dump import DistributionRow, DistType
from warcmill.pypi.answers import PublishedData
from warcmill.pypi.providers import provides, required_by
from warcmill.versions import leveldb
from warcmill.versions.leveldb import Database
from warcmill.versions.publication import Payloads


@pytest.fixture
def index(tmp_path: Path) -> DumpedIndex:
    return DumpedIndex(tmp_path)


def published(index: DumpedIndex, *rows: DistributionRow, after: int = 0) -> PublishedData:
    """The data sets after one more dump, of these rows, each of whose projects has no other file then."""
    by_project: dict[str, list[DistributionRow]] = {}
    for one in rows:
        by_project.setdefault(one.project, []).append(one)
    states = [state(name, after + 1, *some) for name, some in sorted(by_project.items())]
    index.dump(after, after + 10, sorted(rows, key=lambda one: (one.project, one.filename)), states)
    index.update()
    return PublishedData(index.state.store, index.index)


def of(data: PublishedData, module: str) -> dict[str, dict[str, Any]]:
    """The projects of an answer by name, in their order."""
    found: Any = provides(data, module)
    return {one["project"]: one for one in json.loads(json.dumps(found))["projects"]}


def kept(index: DumpedIndex) -> dict[bytes, bytes]:
    """What `distributions` has of newest releases."""
    found = Payloads(index.index, DISTRIBUTIONS).current()
    assert found
    with leveldb.reading(index.index, found) as database:
        return {key: value for key, value in database.since(b"\0\1") if key < b"\0\5"}


CLOUD = [
    replace(row("google-cloud-storage", "2.0", "google.cloud.storage", "google.cloud.storage.blob")),
    replace(row("google-cloud-core", "1.0", "google.cloud.version", "google.cloud.client")),
    replace(row("protobuf", "3.20", "google.protobuf"), namespaces={"google": "pkg_resources"}),
    replace(row("azure-core", "1.0", "azure", "azure.core"), namespaces={"azure": "pkgutil"}),
    replace(row("azure-common", "1.0", "azure", "azure.common"), namespaces={"azure": "pkgutil"}),
    row("numpy", "2.0", "numpy", "numpy.data.deep.file"),
]


def test_a_namespace_lists_the_projects_below_it_with_its_style(index: DumpedIndex) -> None:
    data = published(index, *CLOUD, row("plain", "1", "plain", requires=("google-cloud-core>=1",)))
    found = of(data, "google.cloud")
    assert [*found] == ["google-cloud-core", "google-cloud-storage"], "the one that is required comes first"
    core, storage = found.values()
    assert (core["marks"], core["namespace"], core["gives"]) == (["namespace"], "PEP 420", True)
    assert (storage["below"], core["below"]) == (
        ["google.cloud.storage"],
        ["google.cloud.client", "google.cloud.version"],
    )
    assert {name: one["namespace"] for name, one in of(data, "google").items()} == {
        "google-cloud-core": "PEP 420",
        "google-cloud-storage": "PEP 420",
        "protobuf": "pkg_resources",
    }
    azure = of(data, "azure")
    assert {name: (one["namespace"], one["below"]) for name, one in azure.items()} == {
        "azure-common": ("pkgutil", ["azure.common"]),
        "azure-core": ("pkgutil", ["azure.core"]),
    }
    assert of(data, "google.cloud.storage")["google-cloud-storage"]["own"]
    assert of(data, "numpy.data") == of(data, "google.clou") == of(data, "") == {}, "a folder in a package is not one"


def test_the_best_answer_comes_first(index: DumpedIndex) -> None:
    rows = [
        row("copier", "1.0", "copier", "copier._vendor.yaml", "copier._vendor.yaml.nodes"),
        row("fork", "3.0", "yaml"),
        replace(row("stated", "1.0", "yaml"), import_names=("yaml",)),
        replace(row("liar", "1.0", "other"), import_names=("yaml", "yaml.nodes")),
        replace(row("types-pyyaml", "6.0"), stubs=("yaml",)),
        row("pyyaml", "6.0", "yaml"),
        row("yaml", "0.1", "yaml"),
        row("gone", "1.0", "yaml"),
        row("gone", "1.10", "gone"),
        row("gone", "1.9", "yaml"),
        *(row(f"user{number}", "1", f"user{number}", requires=("PyYAML [fast]",)) for number in range(3)),
    ]
    found = of(published(index, *rows), "yaml")
    assert [*found] == ["yaml", "stated", "pyyaml", "fork", "gone", "copier", "types-pyyaml", "liar"]
    assert (found["yaml"]["own"], found["stated"]["confirmed"], found["pyyaml"]["dependents"]) == (True, True, 3)
    assert (found["gone"]["version"], found["gone"]["newest"], found["gone"]["marks"]) == ("1.9", "1.10", ["old"])
    assert (found["copier"]["copy"], found["copier"]["marks"]) == ("copier._vendor.yaml", ["vendored"])
    assert (found["liar"]["confirmed"], found["liar"]["marks"]) == (False, ["claimed"])
    assert found["types-pyyaml"]["marks"] == ["stub"]
    assert [name for name, one in found.items() if not one["gives"]] == ["copier", "types-pyyaml", "liar"]
    data = PublishedData(index.state.store, index.index)
    assert of(data, "copier._vendor.yaml")["copier"]["marks"] == ["private", "vendored"]
    assert of(data, "yaml.nodes")["liar"]["marks"] == ["claimed"]


def test_the_project_that_was_released_last_comes_first_where_all_else_is_equal(index: DumpedIndex) -> None:
    early, late = row("aa", "2.0", "m"), row("bb", "1.0", "m")
    files = [replace(listed(early), uploaded="2020-01-01T00:00:00Z"), replace(listed(late), uploaded="2026-01-01")]
    index.dump(0, 10, [early, late], [state("aa", 1, files[0]), state("bb", 2, files[1])])
    index.update()
    assert [*of(PublishedData(index.state.store, index.index), "m")] == ["bb", "aa"]


def test_a_project_of_unknown_time_comes_after_its_equals(index: DumpedIndex) -> None:
    unknown, old = row("aa", "1.0", "m"), row("bb", "1.0", "m")
    file = replace(listed(old), uploaded="2001-01-01T00:00:00Z")
    index.dump(0, 10, [unknown, old], [state("aa", 1, unknown), state("bb", 2, file)])
    index.update()
    assert [*of(PublishedData(index.state.store, index.index), "m")] == ["bb", "aa"]


def test_names_that_are_stated_and_private_or_no_names(index: DumpedIndex) -> None:
    names = ("_fast; private", "", " ; private", "a\tb\n", "x" * 2_000, "ns")
    rows = [replace(row("pkg", "1", "_fast", "ns.a"), import_names=names, import_namespaces=("ns",))]
    data = published(index, *rows)
    assert of(data, "_fast")["pkg"]["marks"] == ["private"]
    assert of(data, "_fast")["pkg"]["confirmed"]
    assert (of(data, "ns")["pkg"]["marks"], of(data, "ns")["pkg"]["confirmed"]) == (["namespace"], True)
    assert of(data, "x" * 2_000) == {}


def test_what_requires_a_project(index: DumpedIndex) -> None:
    texts = ("six>=1.9,<2 ; python_version < '3'", "Six[moves]", "six ((", "sixty", "-six", "six@ https://example/six")
    data = published(
        index,
        row("six", "1.17", "six"),
        row("aa", "1.9", "aa", requires=("six==0",)),
        row("aa", "1.10", "aa", requires=texts),
        row("bb", "1.0", "bb", requires=("six",)),
        row("bb", "2.0rc1", "bb", requires=()),
        row("cc", "1.0", "cc", requires=None),
    )
    found: Any = required_by(data, "SIX")
    rows = [tuple(one.values()) for one in found["required_by"]]
    assert rows == [
        ("aa", "1.10", texts[0], "<2,>=1.9", [], 'python_version < "3"'),
        ("aa", "1.10", "Six[moves]", "", ["moves"], None),
        ("aa", "1.10", "six ((", None, None, None),
        ("aa", "1.10", "six@ https://example/six", "", [], None),
        ("bb", "1.0", "six", "", [], None),
    ]
    assert (found["project"], found["serial"]) == ("six", 10)
    assert of(data, "six")["six"]["dependents"] == 2


def test_files_of_one_version_that_is_written_in_two_ways_are_one_release(index: DumpedIndex) -> None:
    wheel = row("aa", "1.0b0", "aa")
    sdist = replace(row("aa", "1.0", "aa", requires=("six",)), filename="aa-1.0-beta.tar.gz", version="1.0-beta")
    bare = replace(wheel, filename="aa-1.0b0-cp311-cp311-win32.whl", requires_dist=None, modules=("ns.aa",))
    data = published(index, bare, wheel, replace(sdist, dist_type=DistType.SDIST))
    assert required_by(data, "six")["required_by"] == [], "the wheels come first"
    assert of(data, "ns")["aa"]["newest"] == "1.0b0"
    assert of(data, "aa")["aa"]["marks"] == []


def test_the_newest_release_is_the_one_that_installers_choose() -> None:
    order = sorted(["1.10", "1.9", "2.0rc1", "1.9.post1", "nonsense", "2.0.dev1", "01.8"], key=releases.order)
    assert order == ["nonsense", "2.0.dev1", "2.0rc1", "01.8", "1.9", "1.9.post1", "1.10"]


def test_an_increment_leaves_the_same_as_a_build_from_nothing(index: DumpedIndex, tmp_path: Path) -> None:
    first = [row("six", "1.17", "six"), row("aa", "1", "ns.aa", requires=("six",)), row("bb", "1", requires=("six",))]
    published(index, *first, row("gone", "1", "gone", requires=("six", "bb")))
    before = kept(index)
    assert before[releases.DEPENDENTS + b"six"] == b"3"
    newer = row("aa", "2", "aa", requires=("bb",))
    yanked = [state("bb", 12, listed(first[2], "broken")), state("gone", 13)]
    index.dump(10, 20, [newer], [state("aa", 11, listed(first[1]), newer), *yanked])
    index.update()
    after = kept(index)
    assert after[releases.DEPENDENTS + b"six"] == b"1"
    assert not [key for key in after if b"gone" in key or b"ns" in key]
    for path in (index.base / "index/versions/distributions").iterdir():
        path.rename(tmp_path / f"gone-{path.name}")
    index.update()
    assert kept(index) == after
    assert after.keys() - before.keys() == {releases.REQUIRED + b"bb\taa"}


def test_a_database_of_an_earlier_schema_is_not_misread_and_made_anew_by_the_next_dump(
    index: DumpedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(releases, "SCHEMA", b"0")
        data = published(index, row("six", "1.17", "six"), row("aa", "1", "ns.aa", requires=("six",)))
    with pytest.raises(NotReady, match="the next dump makes it anew"):
        required_by(data, "six")
    assert (of(data, "six")["six"]["dependents"], of(data, "ns")) == (None, {})
    index.update()
    assert kept(index)[releases.RELEASE] == b"0", "nothing is done while nothing is new"
    published(index, row("bb", "1", "bb"), after=10)
    dependents: Any = required_by(data, "six")["required_by"]
    assert [one["project"] for one in dependents] == ["aa"]
    assert of(data, "six")["six"]["dependents"] == 1


def test_a_question_reads_few_keys_of_an_index(index: DumpedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        row(f"p{number}", f"1.{version}", f"ns.p{number}", f"ns.p{number}.sub", requires=("six",))
        for number in range(300)
        for version in range(3)
    ]
    data = published(index, *rows, row("six", "1", "six"), row("other", "1", "other.one", "other.two"))
    read, walk = 0, Database.beginning_with

    def counted(database: Database, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        nonlocal read
        for pair in walk(database, prefix):
            read += 1
            yield pair

    monkeypatch.setattr(Database, "beginning_with", counted)
    for ask, most in (("six", 1), ("other", 1), ("ns.p7", 3), ("nothing", 0), ("ns", 300)):
        read = 0
        assert bool(of(data, ask)) is (ask != "nothing")
        assert read <= most, ask
    read = 0
    required_by(data, "other")
    assert read == 0
