"""Lists of URIs: a dump has all that a request carries, in one line."""

from __future__ import annotations

from pathlib import Path

from warcmill.crawl.books import uri_list
from warcmill.crawl.books.uri_list import LONGEST, ListRead
from warcmill.crawl.frontier import LONGEST_PAYLOAD, dump
from warcmill.crawl.uri import make


def test_the_longest_payload_is_read_from_a_dump(tmp_path: Path) -> None:
    uri = make("http://a.example/", spider="shelf")
    uri.payload = '"' + "ü" * (LONGEST_PAYLOAD // 2 - 1) + '"'  # a spider's may have more than others
    dump.write([{"dump": 1, "launch": ""}, dump.line_of(uri)], tmp_path / "list")
    found = ListRead()
    (line,) = uri_list.read(tmp_path / "list", found)
    assert (dump.uri_of(line).payload, found.bad) == (uri.payload, [])


def test_a_line_beyond_that_is_named_and_the_next_is_read(tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"x" * (LONGEST + 5) + b"\nhttp://a.example/\n")
    found = ListRead()
    assert [line["uri"] for line in uri_list.read(tmp_path / "list", found)] == ["http://a.example/"]
    assert found.bad == [(1, f"it is longer than {LONGEST} bytes")]
