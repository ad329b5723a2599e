"""Metadata of distributions, against `email`, `importlib.metadata` and `packaging`; and metadata that is wrong."""

from __future__ import annotations

import email
import importlib.metadata
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from warcmill.formats.pypi import metadata
from warcmill.formats.pypi.metadata import Requirements

words = st.from_regex(r"[a-z][a-z0-9]{0,9}", fullmatch=True)
values = st.text(st.characters(min_codepoint=33, max_codepoint=0x24F, blacklist_characters="\x85\xa0\xad"), min_size=1)
requirements = st.builds(
    lambda name, version, url: f"{name} @ https://a.example/{name}.zip" if url else f"{name}>={version}",
    words,
    st.integers(0, 99),
    st.booleans(),
)
markers = st.sampled_from(["", 'python_version < "3.8"', 'sys_platform == "win32" or os_name == "nt"'])


@given(st.lists(values, max_size=4), values, st.sampled_from(["\n", "\r\n"]), st.text(max_size=50))
def test_fields_are_read_as_email_does(dists: list[str], python: str, end: str, description: str) -> None:
    lines = [
        "Metadata-Version: 2.1",
        "Name: x",
        "Version: 1",
        f"Requires-Python: {python}",
        *map("Requires-Dist: {}".format, dists),
    ]
    data = (end.join(lines) + end + end + description).encode()
    header = metadata.header_of([data[:7], data[7:]])
    assert header is not None
    read = metadata.read_fields(header)
    judged = email.message_from_string(end.join(lines))
    assert list(read.requires_dist) == [one for one in judged.get_all("Requires-Dist", []) if one != "UNKNOWN"]
    assert read.requires_python == (None if python == "UNKNOWN" else judged["Requires-Python"])
    assert (read.name, read.version, read.metadata_version) == ("x", "1", "2.1")


def test_old_and_odd_headers() -> None:
    header = (
        b"\xef\xbb\xbfmetadata-version: 1.1\nNAME: caf\xe9\nVersion: UNKNOWN\nRequires: a\nRequires: b (>1)\n"
        b"no field\n: no name\nDescription: two\n        lines\nRequires-Dist: broken\n  ; on >>> (\nDynamic: Version"
    )
    read = metadata.read_fields(header)
    assert (read.metadata_version, read.name, read.version) == ("1.1", "caf\xe9", None)
    assert read.requires == ("a", "b (>1)")
    assert read.requires_dist == ("broken ; on >>> (",), "a bad requirement is kept as it is"
    assert read.dynamic == {"version"}
    assert not read.is_static


def test_fields_that_do_not_describe_are_kept_as_they_were() -> None:
    header = (
        b"Metadata-Version: 2.4\r\nName: Foo.Bar\r\nVersion: 1.0\r\nSummary: long\r\n\tfolded\r\nClassifier: a\r\n"
        b"Provides-Extra: bare\r\nRequires-Dist: six ;\r\n 'bare' == extra\r\nX-New: caf\xc3\xa9\r\n"
        b"requires-python:UNKNOWN"
    )
    assert metadata.read_fields(header).kept == (
        "Metadata-Version: 2.4",
        "Name: Foo.Bar",
        "Version: 1.0",
        "Provides-Extra: bare",
        "Requires-Dist: six ; 'bare' == extra",
        "X-New: caf\u00e9",
        "requires-python: UNKNOWN",
    )


@pytest.mark.parametrize("line", [b"no field", b"Name : y", b": z", b"Sp ace: 1", b"X-Long: " + bytes(1 << 20)])
def test_nothing_is_kept_where_readers_differ(line: bytes) -> None:
    """A parser of mail ends the header at a line that is not a field."""
    header = b"Name: x\n" + line + b"\nRequires-Dist: y"
    assert (metadata.read_fields(header).kept, metadata.read_fields(header).requires_dist) == ((), ("y",))


lines = st.lists(st.sampled_from(["Name", "Requires-Dist", "Provides-Extra", "X-A", "Author"]).flatmap(
    lambda field: values.map(lambda value: f"{field}: {value}")
), max_size=6)  # fmt: skip


@given(lines)
def test_a_parser_of_mail_reads_the_same_of_the_kept_fields(some: list[str]) -> None:
    kept = metadata.read_fields("\n".join(some).encode()).kept
    judged = email.message_from_string("\n".join(some)).items()
    assert email.message_from_string("\n".join(kept)).items() == [one for one in judged if one[0] != "Author"]


@given(st.binary(max_size=300))
def test_no_header_raises(data: bytes) -> None:
    read = metadata.read_fields(metadata.header_of([data]) or b"")
    assert all(text for text in read.requires_dist)
    metadata.of_pyproject(data)
    metadata.of_requires_txt(data)
    metadata.top_levels(data)


@pytest.mark.parametrize(
    ("version", "static"), [("2.1", False), ("2.2", True), ("2.10", True), ("x", False), ("", False)]
)
def test_metadata_is_static_from_2_2_on(version: str, static: bool) -> None:
    assert metadata.read_fields(f"Metadata-Version: {version}".encode()).is_static is static


def test_a_description_of_100_mb_is_not_read() -> None:
    def pieces():  # type: ignore[no-untyped-def]
        yield b"Name: x\nRequires-Dist: y\n\n" + bytes(1_000)
        pytest.fail("more was asked for")

    header = metadata.header_of(pieces())
    assert header is not None
    assert metadata.read_fields(header).requires_dist == ("y",)
    assert metadata.header_of([b"Description: "] + [b" x\n" * (1 << 18)] * 100, most=1 << 20) is None


sections = st.tuples(st.sampled_from(["", "test", "docs"]), markers, st.lists(requirements, min_size=1, max_size=3))


@given(st.lists(requirements, max_size=3), st.lists(sections, max_size=4))
def test_a_requires_txt_is_read_as_importlib_does(first: list[str], more: list[tuple[str, str, list[str]]]) -> None:
    text = "\n".join(first)
    for extra, marker, lines in more:
        if extra or marker:
            text += f"\n\n[{extra}{':' if marker else ''}{marker}]\n" + "\n".join(lines)
    read = metadata.of_requires_txt(text.encode())
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder) / "x.egg-info"
        info.mkdir()
        (info / "PKG-INFO").write_text("Name: x\n")
        (info / "requires.txt").write_text(text)
        judged = [one.rstrip() for one in importlib.metadata.PathDistribution(info).requires or []]
    assert list(read) == judged
    for one in read:
        Requirement(one)


def test_the_static_part_of_a_pyproject() -> None:
    text = """
        [project]
        name = "x"
        requires-python = ">=3.9"
        dependencies = ["a>=1", "b; os_name == 'nt'", "c @ https://a.example/c;x.zip"]
        [project.optional-dependencies]
        test = ["d", "e>1; os_name == 'nt' or os_name == 'x'", "f @ https://a.example/f.zip"]
    """
    read = metadata.of_pyproject(text.encode())
    assert read.python == ">=3.9"
    assert read.dists == (
        "a>=1",
        "b; os_name == 'nt'",
        "c @ https://a.example/c;x.zip",
        'd; extra == "test"',
        "e>1; (os_name == 'nt' or os_name == 'x') and extra == \"test\"",
        'f @ https://a.example/f.zip ; extra == "test"',
    )
    for one in read.dists:
        Requirement(one)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("", Requirements()),
        ("[tool.poetry]\nname = 'x'", Requirements()),
        ("[project]\nname = 'x'", Requirements((), None)),
        ("[project]\nname = 'x'\ndynamic = ['dependencies']\nrequires-python = '>=3'", Requirements(None, ">=3")),
        ("[project]\nname = 'x'\ndynamic = ['optional-dependencies']", Requirements()),
        ("[project]\nname = 'x'\ndynamic = ['requires-python']", Requirements((), None)),
        ("[project]\nname = 'x'\ndependencies = 'y'", Requirements()),
        ("[project]\nname = 'x'\ndependencies = [1]", Requirements()),
        ("[project]\nname = 'x'\noptional-dependencies = []", Requirements()),
        ("[project]\nname = 1", Requirements()),
        ("[project", Requirements()),
        ("a = " + "[" * 100_000, Requirements()),
    ],
)
def test_what_is_dynamic_or_wrong_is_unknown(text: str, known: Requirements) -> None:
    assert metadata.of_pyproject(text.encode()) == known
