"""Every name that layout builds, it parses back to the same thing."""

from __future__ import annotations

import re
from datetime import datetime
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill import chain, layout
from warcmill.errors import BadInput
from warcmill.layout import DumpedData, DumpFile, OutputLayout
from warcmill.model import FINAL, Key, Launch, Stage, Window

jobs = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", fullmatch=True)
stamps = st.datetimes(min_value=datetime(1996, 1, 1), max_value=datetime(9999, 12, 31)).map(
    lambda when: when.strftime("%Y%m%d%H%M%S")
)
launches = st.builds(Launch, jobs, stamps)
stages = st.one_of(st.just(FINAL), st.builds(Stage, st.integers(0, 99999), stamps))
digits = st.from_regex(r"[0-9]{20}", fullmatch=True)
hosts = st.from_regex(r"[A-Za-z0-9_-]{1,60}", fullmatch=True)
names = st.binary(min_size=1, max_size=80).filter(lambda raw: b"/" not in raw and b"\0" not in raw)


FIELDS = {
    "job": jobs,
    "launch_id": stamps,
    "stage": stages.map(str),
    "due": stamps,
    "number": st.integers(0, 99999).map("{:05d}".format),
    "finding": st.text().map(layout.finding_id),
}


@st.composite
def keys(draw: st.DrawFn) -> Key:
    """A key of any task, by the fields of its marker's name."""
    row = draw(st.sampled_from(chain.ROWS))
    fields = sorted(set(re.findall(r"{(\w+)}", row.marker)))
    return Key(row.task, tuple((field, draw(FIELDS[field])) for field in fields))


@given(keys())
def test_marker_paths_round_trip(key: Key) -> None:
    path = layout.marker_path(key)
    assert layout.parse_marker_path(path) == key
    assert layout.folder_of(key) == path.rpartition("/")[0]


@given(st.text())
def test_no_other_text_is_a_marker(text: str) -> None:
    key = layout.parse_marker_name(text)
    assert key is None or layout.marker_name(key) == text


@given(keys(), digits, hosts, st.integers(1, 1 << 22))
def test_the_file_of_an_attempt_names_its_step(key: Key, stamp: str, host: str, pid: int) -> None:
    folder, _, name = layout.attempt_path(key, stamp, host, pid).rpartition("/")
    assert layout.parse_attempt_name(name) == key
    assert folder == layout.attempts_folder(layout.folder_of(key))
    assert len(name) <= layout.LONGEST_NAME


def test_what_is_no_file_of_an_attempt_names_none() -> None:
    name = "01.jobs.daily.20161019234428.stopped"
    for other in (name, f"{name}.jsonl", f".{name}.x.tmp", f"{name}.20161019234428.host.1.tmp", "redo.host.1.jsonl"):
        assert layout.parse_attempt_name(other) is None


def test_a_marker_in_another_launch_s_folder_is_none() -> None:
    name = layout.marker_name(layout.key("output.CheckJobStopped", Launch("daily", "20161019234428")))
    assert layout.parse_marker_path(f"2016-10/daily/20161019234429/{name}") is None


@given(names)
def test_stored_names_are_plain_and_can_be_undone(raw: bytes) -> None:
    name = raw.decode("utf-8", "surrogateescape")
    stored = layout.stored_name(name)
    assert unquote_to_bytes(stored) == raw
    assert stored.isascii()
    assert "/" not in stored


def test_composed_and_decomposed_names_stay_apart() -> None:
    assert layout.stored_name("\u00e9.warc.gz") == "%C3%A9.warc.gz"
    assert layout.stored_name("e\u0301.warc.gz") == "e%CC%81.warc.gz"


def test_names_that_cannot_be_published() -> None:
    assert "not UTF-8" in layout.why_unpublishable(b"\xff.warc.gz".decode("utf-8", "surrogateescape"))
    assert "255 is the limit" in layout.why_unpublishable("é" * 50 + ".warc.gz")
    assert layout.why_unpublishable("a b\n.warc.gz") == ""


@given(launches, st.sampled_from(list(OutputLayout)), st.sampled_from(layout.KINDS))
def test_the_kind_of_a_file_is_known_from_its_path(launch: Launch, output: OutputLayout, kind: layout.Kind) -> None:
    assert output.kind_of(f"{output.folder(kind, launch)}/a.warc.gz") == kind


def test_a_path_of_the_other_layout_is_refused() -> None:
    with pytest.raises(BadInput):
        OutputLayout.JOB_FIRST.kind_of("warcs/daily/20161019234428/a.warc.gz")


@given(st.sampled_from(layout.ENGINE_LOGS), stages)
def test_log_names_split_into_log_and_stage(log: str, stage: Stage) -> None:
    name = log if stage.is_final else f"{log}.{stage}"
    assert layout.split_log_name(name) == (log, str(stage))


@pytest.mark.parametrize(
    ("name", "is_warc"),
    [
        ("a.warc", True),
        ("a.warc.gz", True),
        ("a.warc.gz.open", True),
        ("a.arc.gz", True),
        ("a.ARC", True),
        ("a.WARC.GZ.OPEN", True),
        ("a\nb.warc.gz", True),
        (".warc.gz", False),
        ("a.warc.gz.lck", False),
        ("a.cdx", False),
        ("awarc", False),
    ],
)
def test_what_is_named_as_a_warc(name: str, is_warc: bool) -> None:
    assert layout.is_warc_name(name) is is_warc


def test_the_serial_is_read_from_heritrix_s_names() -> None:
    serial = layout.warc_serial("BL-VIRAL-20261121081918590-00003-32386~crawler01~8443.warc.gz.open")
    assert serial == layout.Serial("BL-VIRAL", "32386~crawler01~8443", 3)
    assert layout.warc_serial("BL-20261121081918590-00003-1~a~8443.WARC.GZ") == layout.Serial("BL", "1~a~8443", 3)
    assert layout.warc_serial("rec-1.warc.gz") is None


@pytest.mark.parametrize("name", ["a.warc.gz.open", "a.warc.gz.OPEN", "a.warc.gz"])
def test_the_name_that_a_warc_has_once_closed(name: str) -> None:
    assert layout.final_name(name) == "a.warc.gz"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("final.tar", (FINAL, 1)),
        ("final.2.tar", (FINAL, 2)),
        ("cp00001-20161020000000.12.tar", (Stage.parse("cp00001-20161020000000"), 12)),
        *((name, None) for name in ("final.1.tar", "final.0.tar", "final.02.tar", "final", "x.tar", ".final.tar")),
    ],
)
def test_a_sip_s_file_is_known_by_its_name(name: str, known: tuple[Stage, int] | None) -> None:
    assert layout.parse_sip_name(name) == known


windows = st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)).map(sorted).map(lambda ends: Window(*ends))
dump_files = st.builds(DumpFile, jobs, st.integers(1, 999), st.sampled_from(DumpedData), windows, st.integers(0, 9999))


@given(dump_files)
def test_the_file_of_a_dump_is_known_by_its_path(file: DumpFile) -> None:
    assert layout.parse_dump_path(file.path) == file
    assert Window.parse(str(file.window)) == file.window


@pytest.mark.parametrize(
    "path",
    [
        "dumps/pypi/v1/data_dumps/python_distribution_data/0-9/python_distribution_state0000.json.gz",
        "dumps/pypi/v1/data_dumps/python_distribution_data/9-0/python_distribution_data0000.json.gz",
        "dumps/pypi/v0/data_dumps/python_distribution_data/0-9/python_distribution_data0000.json.gz",
        "dumps/pypi/v1/data_dumps/python_distribution_data/00-9/python_distribution_data0000.json.gz",
        "dumps/pypi/v1/data_dumps/python_distribution_data/0-9/../0-9/python_distribution_data0000.json.gz",
        "dumps/pypi/v1/modules/input_lists/00001",
    ],
)
def test_no_other_path_is_the_file_of_a_dump(path: str) -> None:
    assert layout.parse_dump_path(path) is None
