"""Our index lines beside those of cdxj-indexer and jwarc: equal line by line but for the differences listed here.

cdxj-indexer is AGPL: it runs as a process of its own, and nothing here imports it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from records.captures import FORM, RESPONSE, capture, posted, request, response, typed
from records.urls import sample
from records.warcs import WEEKLY, member, sha1, warc_gz, warcinfo

from servers import judges, packages
from warcmill.formats.index.cdxj import CdxLines, named
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.warc.gate import examine

ORACLE = "cdxj-indexer"
SCHEME = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]*:")  # the peer keeps its case; ours is lower, as RFC 3986 3.1 asks
KEYS = """
import json, sys
from surt import surt
for line in sys.stdin:
    try:
        key = surt(json.loads(line))
    except (ValueError, AttributeError):
        key = None
    print(json.dumps(key))
"""
JSON, TEXT, MULTIPART = "application/json", "text/plain", "multipart/form-data; boundary=B"
PART = b'--B\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'


def corpus() -> list[Path]:
    """The sample's WARC, and every closed one of the folder CORPUS."""
    folder = os.environ.get("CORPUS")
    return [WEEKLY, *(sorted(Path(folder).rglob("*.warc.gz")) if folder else [])]


def theirs(file: Path, *options: str) -> list[str]:
    command = [packages.bin_folder(ORACLE) / ORACLE, *options, file]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line for line in ran.stdout.splitlines() if " {" in line]  # some of its messages are on stdout


def ours(file: Path) -> list[str]:
    lines: list[str] = []
    hearer = CdxLines(lambda line: lines.append(named(line, file.name).decode("ascii").rstrip("\n")))
    with file.open("rb") as stream:
        verdict = examine(stream, file.name, hearers=[hearer])
    hearer.close()
    assert (verdict.ok, verdict.unheard) == (True, ()), (file, verdict)
    return lines


def differences(file: Path) -> dict[str, tuple[str, str]]:
    """Their line and ours, without the offset's record, by the URL of the record; the lines that differ."""
    both = [{_offset(line): line for line in lines} for lines in (theirs(file), ours(file))]
    pairs = [tuple(lines.get(offset, "") for lines in both) for offset in sorted(both[0].keys() | both[1].keys())]
    return {_url(one or other): (one, other) for one, other in pairs if one != other}


def _fields(line: str) -> dict[str, str]:
    fields = json.loads(line.split(" ", 2)[2])
    assert isinstance(fields, dict)
    return fields


def _offset(line: str) -> int:
    return int(_fields(line)["offset"])


def _url(line: str) -> str:
    return _fields(line).get("url", "")


@pytest.mark.parametrize("file", corpus(), ids=lambda file: file.name)
def test_every_line_of_a_crawl_is_equal(file: Path) -> None:
    assert sorted(ours(file)) == sorted(theirs(file))


# jwarc's lines differ by these. It makes none for what is not HTTP, resource or revisit; takes a Content-Type up to the
# semicolon, blanks and all; and escapes the escape of a byte that is not UTF-8.
NO_LINE, OTHER_MIME, OTHER_KEY = "no line", "another MIME type", "another key"


@pytest.mark.parametrize("file", corpus(), ids=lambda file: file.name)
def test_lines_are_those_of_jwarc_but_for_three_kinds(file: Path) -> None:
    java = {int(line.fields["offset"]): line for line in judges.cdxj(file)}
    mine = {_offset(line): line for line in ours(file)}
    assert java.keys() <= mine.keys()
    found = {(_jwarc_difference(mine[offset], java.get(offset)), _url(mine[offset])) for offset in mine}
    kinds = {kind: {url for one, url in found if one == kind} for kind, _ in found if kind}
    assert kinds.keys() <= {NO_LINE, OTHER_MIME, OTHER_KEY}
    assert {url.partition(":")[0] for url in kinds.get(NO_LINE, set())} <= {"dns"}
    assert {url for url in kinds.get(OTHER_MIME, set()) if not url.endswith("/odd/type-spaces")} == set()
    assert {url for url in kinds.get(OTHER_KEY, set()) if "%E9" not in url} == set()


def _jwarc_difference(line: str, java: judges.CdxjLine | None) -> str:
    if java is None:
        return NO_LINE
    (key, date, _), mine = line.split(" ", 2), _fields(line)
    if (date, mine) == (java.timestamp, java.fields):
        return "" if key == java.urlkey else OTHER_KEY
    theirs = {**java.fields, "mime": java.fields["mime"].partition(" ")[0]}
    return OTHER_MIME if (key, date, mine) == (java.urlkey, java.timestamp, theirs) else "unknown"


def test_keys_are_equal() -> None:
    urls = sample(20161019, 20_000)
    python = packages.bin_folder(ORACLE) / "python"
    given = "".join(json.dumps(url) + "\n" for url in urls)
    ran = subprocess.run([python, "-c", KEYS], input=given, capture_output=True, text=True, check=True)
    known = dict(zip(urls, map(json.loads, ran.stdout.splitlines()), strict=True))
    assert len([url for url in urls if known[url]]) > 19_000
    lowered = {url: SCHEME.sub(lambda scheme: scheme[0].lower(), key) for url, key in known.items() if key}
    assert {url: (key, urlkey(url)) for url, key in lowered.items() if key != urlkey(url)} == {}


EQUAL = [
    *map(typed, [b"text/html; charset=utf-8", b"", b";", b"html>", b'a"b', b"a b", b"a/\nb", b"\xff", b"x" * 1024]),
    response("http://e.x/none"),
    response("http://e.x/404", status=b"HTTP/1.1 404"),
    response("http://e.x/blanks", status=b"HTTP/1.1  200 OK"),
    response("http://e.x/folded", b"Content-Type: a\r\n b/c"),
    response("http://e.x/twice", b"Content-Type: a/b", b"Content-Type: c/d"),
    response("http://e.x/blank", b"Content-Type : a/b"),
    response("http://e.x/declared", WARC_Payload_Digest=sha1(b"x")),
    response("http://e.x/chunked", b"Transfer-Encoding: chunked", body=b"1\r\nx\r\n0\r\n\r\n"),
    response("http://e.x/day", WARC_Date="2016-10-19"),
    response("http://e.x/exact", WARC_Date="2016-10-19T23:44:28.123456Z"),
    response("<http://e.x/angle>"),
    response("http://e.x/a b"),
    response(b"http://e.x/\xfc"),
    response("http://e.x/ü"),
    response('http://e.x/q"uote\\'),
    response("http://e.x/" + "a" * 40_000),
    response("http://e.x:abc/port"),
    capture("response", "http://e.x/endless", b"HTTP/1.1 200 OK\r\nContent-Type: a/b", RESPONSE),
    capture("response", "http://e.x/empty", b"", RESPONSE),
    capture("response", "dns:e.x", b"abc", "text/dns"),
    capture("response", "ftp://e.x/", b"abc", "text/plain"),
    capture("revisit", "http://e.x/304", b"HTTP/1.1 304 X\r\n\r\n", RESPONSE),
    capture("revisit", "http://e.x/bare", WARC_Payload_Digest=sha1(b"x"), WARC_Truncated="length"),
    capture("resource", "http://e.x/resource", b"abc", "text/plain; x"),
    capture("metadata", "http://e.x/metadata", b"abc", "text/xml"),
    capture("metadata", "http://e.x/about", b"via: x", "application/warc-fields"),
    capture("metadata", "http://e.x/about-too", b"via: x", "application/warc-fields; x"),
    capture("conversion", "http://e.x/conversion", b"abc", "text/plain"),
]


def test_lines_of_built_records_are_equal(tmp_path: Path) -> None:
    file = tmp_path / "built.warc.gz"
    file.write_bytes(warc_gz(warcinfo(), *EQUAL))
    assert differences(file) == {}


DIFFERENT = {
    # A block that is not an HTTP message is all payload, as the gate reads it; they take what is before its first empty
    # line for a header, and its second word for a status.
    "http://e.x/no-http": capture("response", "http://e.x/no-http", b"foo bar\r\n\r\nx", RESPONSE),
    "http://e.x/status": response("http://e.x/status", status=b"HTTP/1.1 2x0 OK"),
    # They read HTTP only under a scheme in lower case.
    "HTTP://E.X/Up": response("HTTP://E.X/Up", b"Content-Type: a/b"),
    # Nobody can find a capture without a URL.
    "": capture("resource", None, b"x", "a/b"),
    # A payload that is not whole: Common Crawl's indexes have the field, too.
    "http://e.x/cut": response("http://e.x/cut", WARC_Truncated="time"),
}


def test_these_lines_differ(tmp_path: Path) -> None:
    file = tmp_path / "different.warc.gz"
    file.write_bytes(warc_gz(warcinfo(), *DIFFERENT.values()))
    assert differences(file).keys() == DIFFERENT.keys()


@pytest.mark.parametrize(
    ("date", "has_line"), [("bad", False), ("2016-13-01T00:00:00Z", False), ("2016-10-19T23:44:28+01:00", True)]
)
def test_a_bad_date_ends_their_run_and_not_ours(tmp_path: Path, date: str, has_line: bool) -> None:
    """A date with an offset from UTC is converted."""
    file = tmp_path / "date.warc.gz"
    file.write_bytes(warc_gz(warcinfo(), response("http://e.x/bad", WARC_Date=date), response("http://e.x/good")))
    with pytest.raises(subprocess.CalledProcessError):
        theirs(file)
    assert [_url(line) for line in ours(file)] == [*(["http://e.x/bad"] if has_line else []), "http://e.x/good"]


POSTED = [
    posted("http://e.x/form", b"b=2&a=1"),
    posted("http://e.x/asked?z=1", b"a=%C3%BC+x", f"{FORM}; charset=utf-8"),
    posted("http://e.x/question?", b"a=1"),
    posted("http://e.x/fragment#x?y", b"a=1"),
    posted("http://e.x/put", b"a=1", method="PUT"),
    posted("http://e.x/patch", b"a=1", method="PATCH"),
    posted("http://e.x/get", b"", method="GET"),
    posted("http://e.x/untyped", b"a=1", None),
    posted("http://e.x/nothing", b"", None),
    posted("http://e.x/badform", b"\xff\xfe=1"),
    posted("http://e.x/escapes", b"a=%FF&b=%ZZ&%26=%3D"),
    posted("http://e.x/long", b"a=" + b"x" * 20_000),
    posted("http://e.x/wide", b"a=" + b"x" * 4093 + "üü".encode()),
    posted("http://e.x/bytes", bytes(range(256)), "application/octet-stream"),
    posted("http://e.x/length", b"a=1&b=2", FORM, b"Content-Length: 3"),
    posted("http://e.x/json-length", b'{"a":"' + b"x" * 12_000 + b'"}', JSON, b"Content-Length: 12008"),
    posted("http://e.x/json-cut", b'{"a":"' + b"x" * 12_000 + b'"}', JSON),
    *(
        posted(f"http://e.x/{kind.replace('/', '-')}{number}", body, kind)
        for kind in (JSON, TEXT)
        for number, body in enumerate(
            [
                b'{"a":1,"b":[1,2,{"c":null}],"d":{"e":true,"f":1.5,"g":"x y&z"}}',
                b'{"a":1,"b":{"a":2},"a.2_":3}',
                b'{"a":"b","x":{"a":"c"}}\n{"a":2}\n',
                b'[{"a":1},{"a":2},["b"]]',
                b'{"a":1e400,"b":-0.0,"c":NaN,"":1,"\\u00fc k":"y","s":"\\ud83d\\ude00"}',
                b'{"a":"\\ud800"}',
                b'\xef\xbb\xbf{"a":1}',
                b"hello world & co",
                b"5",
            ]
        )
    ),
    posted("http://e.x/multi", PART % (b"a", b"x y&z") + PART % (b"a", b"\x00\xc3\xbc\r\n2") + b"--B--\r\n", MULTIPART),
    posted("http://e.x/multi-none", b"--B--\r\n", "multipart/form-data"),
]  # fmt: skip


def _posts(lines: Iterable[str]) -> dict[str, tuple[str, str | None, str | None]]:
    """Key, method and body by URL."""
    return {url: (key, fields.get("method"), fields.get("requestBody")) for url, key, fields in map(_parts, lines)}


def _parts(line: str) -> tuple[str, str, dict[str, str]]:
    return _url(line), line.partition(" ")[0], _fields(line)


def test_keys_methods_and_bodies_of_posts_are_equal(tmp_path: Path) -> None:
    file = tmp_path / "posts.warc.gz"
    file.write_bytes(member(warcinfo()) + b"".join(POSTED))
    found = _posts(ours(file))
    assert len(found) == len(POSTED)
    assert found == _posts(theirs(file, "-p"))


DIFFERENT_POSTS = {
    # They join two records only if these follow each other, and never a revisit to its request.
    "http://e.x/apart": warc_gz(
        response("http://e.x/apart", WARC_Record_ID="<1>"),
        capture("metadata", "http://e.x/apart", b"x", "application/warc-fields"),
        request("http://e.x/apart", b"a=1", WARC_Concurrent_To="<1>"),
    ),
    "http://e.x/before": warc_gz(
        request("http://e.x/before", b"a=1", WARC_Concurrent_To="<2>"),
        response("http://e.x/before", WARC_Record_ID="<2>"),
    ),
    "http://e.x/revisit": warc_gz(
        capture("revisit", "http://e.x/revisit", b"HTTP/1.1 200 OK\r\n\r\n", RESPONSE, WARC_Record_ID="<3>"),
        request("http://e.x/revisit", b"a=1", WARC_Concurrent_To="<3>"),
    ),
    # A method in lower case is another method (RFC 9110, 9.1).
    "http://e.x/lower": posted("http://e.x/lower", b"a=1", method="post"),
    # They decode Flash's own format; a body of it is base64 here.
    "http://e.x/amf": posted("http://e.x/amf", b"\x00\x00", "application/x-amf"),
    # Their body is null, ours is empty.
    "http://e.x/length": posted("http://e.x/length", b"a=1", FORM, b"Content-Length: x"),
}


def test_these_posts_differ(tmp_path: Path) -> None:
    file = tmp_path / "posts.warc.gz"
    file.write_bytes(member(warcinfo()) + b"".join(DIFFERENT_POSTS.values()))
    found, known = _posts(ours(file)), _posts(theirs(file, "-p"))
    assert {url for url in found if found[url] != known[url]} == DIFFERENT_POSTS.keys() == found.keys()
