"""CDXJ lines as a table of Common Crawl's columns, and the Parquet file of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import BytesIO
from itertools import product

import pytest
from pyarrow import parquet

from warcmill.errors import BadInput
from warcmill.formats.index import columns
from warcmill.formats.index.columns import SCHEMA, CaptureNotes

FIELDS = {"url": "http://www.gov.example/", "length": "12", "offset": "34", "filename": "daily/1/a.warc.gz"}


def line(key: str = "example,gov)/", date: str = "20161019234428", **fields: str) -> bytes:
    return f"{key} {date} {json.dumps(FIELDS | fields)}\n".encode()


def read(file: BytesIO) -> list[dict[str, object]]:
    """The rows of a Parquet file; its checksums are compared."""
    return parquet.ParquetFile(file, page_checksum_verification=True).read().to_pylist()


def rows(*lines: bytes, known: dict[int, CaptureNotes] | None = None) -> list[dict[str, object]]:
    """What is read again of lines that were written; columns without a value are left out."""
    file = BytesIO()
    assert columns.write([lines], "final", lambda _, offset: (known or {}).get(offset, CaptureNotes()), file) == len(
        lines
    )
    return [{name: value for name, value in row.items() if value is not None} for row in read(file)]


def test_a_capture_has_every_column_that_its_line_knows() -> None:
    url = "HTTPS://me:pass@WWW.Gov.Example:8443/a/b?q=1&r#top"
    more = {"mime": "text/html", "status": "200", "digest": "sha1:MQTF", "truncated": "length", "offset": "5000000000"}
    (row,) = rows(line(url=url, **more), known={5_000_000_000: CaptureNotes(77, "Eicar")})
    assert row == {
        "url_surtkey": "example,gov)/",
        "url": url,
        "url_host_name": "www.gov.example",
        "url_host_tld": "example",
        "url_host_2nd_last_part": "gov",
        "url_host_3rd_last_part": "www",
        "url_host_name_reversed": "example.gov.www",
        "url_protocol": "https",
        "url_port": 8443,
        "url_path": "/a/b",
        "url_query": "q=1&r",
        "fetch_time": datetime(2016, 10, 19, 23, 44, 28, tzinfo=UTC),
        "fetch_status": 200,
        "content_digest": "MQTF",
        "content_mime_type": "text/html",
        "content_truncated": "length",
        "warc_filename": "daily/1/a.warc.gz",
        "warc_record_offset": 5_000_000_000,
        "warc_record_length": 12,
        "warc_segment": "final",
        "text_length": 77,
        "virus_hit": "Eicar",
    }


def test_a_capture_that_is_no_http_has_its_scheme_and_path() -> None:
    (row,) = rows(line("dns:docs.example", url="dns:docs.example"))
    assert (row["url_protocol"], row["url_path"], row.get("url_host_name")) == ("dns", "docs.example", None)


@pytest.mark.parametrize(
    ("date", "time"),
    [
        ("20160230000000", datetime(2016, 3, 1, tzinfo=UTC)),
        ("20161231235960", datetime(2017, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_day_or_second_that_is_none_is_the_next_one(date: str, time: datetime) -> None:
    assert rows(line(date=date))[0]["fetch_time"] == time


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://a.example/\ud800", "http://a.example/\ufffd"),
        ("http://a.example/\U0001f600\\ud800", "http://a.example/\U0001f600\\ud800"),
        ('http://a.example/"\x00\n\t', 'http://a.example/"\x00\n\t'),
        ("http://a.example:99999999/", "http://a.example:99999999/"),
        ("http://[::1", "http://[::1"),
        ("no URL at all", "no URL at all"),
        ("", ""),
        ("http://" + "a" * 100_000, "http://" + "a" * 100_000),
    ],
)
def test_any_text_of_a_url_is_kept(url: str, shown: str) -> None:
    assert rows(line(url=url), line())[0]["url"] == shown


ODD_URLS = (
    "HTTP://H.example/", "http://u:p@h.example:80/a", "http://h.example", "http://h.example?q=/", "http://h/a?#x",
    "http://h/?", "http://h/a#b?c", "http://[::1]:8080/x?y#z", "http://[a/b]/c", "http://1.2.3.4:70000/", "http://h:/p",
    "http://h:x/p", "https://a.co.uk/?a?b", "mailto:a@b", "no url", "", "http:///p", "abcdefg:/p", "abcdefg://h/",
    'http://h/"', "http://h/\xe4", "http://h./p",
)  # fmt: skip


def test_lines_and_urls_of_all_forms_are_read_side_by_side_as_each_alone() -> None:
    usual = {"mime": "text/html", "status": "200", "digest": "sha1:A", "length": "1", "offset": "2", "filename": "f"}
    forms = [
        usual,
        {**usual, "digest": "md5:A"},
        {**usual, "truncated": "length"},
        {name: value for name, value in usual.items() if name != "mime"} | {"truncated": "time"},
        {name: value for name, value in usual.items() if name != "status"},
        dict(reversed(usual.items())),
    ]
    lines = [
        f"example)/{number:03} 20161019234428 {json.dumps({'url': url} | form)}\n".encode()
        for number, (url, form) in enumerate(product(("http://a.example/b?c", *ODD_URLS), forms))
    ]
    assert rows(*lines) == [row for one in lines for row in rows(one)]
    few = [one for one in lines if b"\\" not in one and b"truncated" not in one and b"filename" in one[-22:]]
    assert rows(*few) == [row for one in few for row in rows(one)]


@pytest.mark.parametrize("lines", [[b"one two {\n"], [b"a 1 {} {}\n"], [line(), b"a 20161019234428 []\n"]])
def test_what_is_no_line_is_refused(lines: list[bytes]) -> None:
    with pytest.raises(BadInput, match="CDXJ"):
        rows(*lines)


def test_a_file_is_sorted_in_groups_with_statistics_and_the_same_bytes_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "GROUP", 2)
    files = [BytesIO(), BytesIO()]
    for file in files:
        columns.write([[*map(line, "abc")], [*map(line, "de")]], "final", None, file)
    assert files[0].getvalue() == files[1].getvalue()
    found = parquet.ParquetFile(files[0])
    groups = [found.metadata.row_group(number) for number in range(found.num_row_groups)]
    assert [(group.column(0).statistics.min, group.column(0).statistics.max) for group in groups] == [
        ("a", "b"),
        ("c", "d"),
        ("e", "e"),
    ]
    assert {group.column(0).compression for group in groups} == {"ZSTD"}
    assert groups[0].sorting_columns[0].column_index == 0


def test_a_damaged_page_is_found() -> None:
    file = BytesIO()
    columns.write([[*map(line, "abc")]], "final", None, file)
    data = bytearray(file.getvalue())
    start = parquet.ParquetFile(file).metadata.row_group(0).column(0).data_page_offset
    data[start + 40] ^= 1
    with pytest.raises(OSError, match=r"(?i)checksum|corrupt|crc"):
        read(BytesIO(data))


def test_a_stage_without_captures_is_a_file_without_rows() -> None:
    assert rows() == []
    file = BytesIO()
    columns.write([], "final", None, file)
    assert parquet.ParquetFile(file).schema_arrow.names == SCHEMA.names
