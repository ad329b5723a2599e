"""Keys of URLs, as the indexers in use make them; tests/services compares many more with one of those."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.formats.index import urlkey as module
from warcmill.formats.index.urlkey import urlkey

SESSION = "0123456789abcdef0123456789ABCDEF"
KNOWN = {
    "http://www.example.com/": "com,example)/",
    "http://www12.Example.com/A/B/": "com,example)/a/b",
    "http://www.www.example.com/": "com,example,www)/",
    "http://ww2.example.com/": "com,example,ww2)/",
    "http://www.com": "com)/",
    "https://example.com:443/": "com,example)/",
    "https://example.com:80/": "com,example:80)/",
    "http://example.com:080/a": "com,example)/a",
    "http://user:pw@example.com/": "com,example)/",
    "http://example.com/a?b=1&a=2&a=1&A=3": "com,example)/a?a=1&a=2&a=3&b=1",
    "http://example.com/?=~b;1&/3;.": "com,example)/?=~b;1&/3;.",
    "http://example.com/a?B=Foo&&c=": "com,example)/a?&b=foo&c=",
    "http://example.com/a/?b": "com,example)/a?b",
    "http://example.com/?": "com,example)/",
    "http://example.com/a//b/./c/../d": "com,example)/a/b/d",
    "http://example.com/..": "com,example)/..",
    "http://example.com/../../a": "com,example)/a",
    "http://example.com/#!x": "com,example)/",
    "http://example.com/%41%7e%zz%2F%25": "com,example)/a~%25zz/%25",
    "http://example.com/%2525252541": "com,example)/a",
    "http://example.com/%e9": "com,example)/%e9",
    "http://example.com/ü": "com,example)/%c3%bc",
    "http://example.com/a\tb\nc\rd": "com,example)/abcd",
    "http://example.com/ a b ": "com,example)/%20a%20b",
    "http://bücher.de/x": "de,xn--bcher-kva)/x",
    "http://straße.de/": "de,strasse)/",
    "http://xn--zzzzzzzü.com/": "com,xn--zzzzzzz%c3%bc)/",
    "http://" + "a" * 70 + ".com/": "com," + "a" * 70 + ")/",
    "http://example..com./": "com,example)/",
    "http://exa mple.com/": "com,exa%20mple)/",
    "http://127.0.0.1:8080/x": "1,0,0,127:8080)/x",
    "http://1.2.3": "3,0,2,1)/",
    "http://2130706433/": "1,0,0,127)/",
    "http://4294967296/": "0,0,0,0)/",
    "http://0177.0.0.1/": "1,0,0,127)/",
    "http://0177.108/": "108,0177)/",
    "http://256.1.1.1/": "1,1,1,256)/",
    "http://0x7f.1/": "1,0x7f)/",
    "http://[2001:db8::1]:80/a": "2001:db8::1)/a",
    f"http://example.com/a?jsessionid={SESSION}": "com,example)/a",
    f"http://example.com/a?x=1&PHPSESSID={SESSION}&y=2": "com,example)/a?x=1&y=2",
    f"http://example.com/a?z&sid={SESSION}": "com,example)/a?&z",
    f"http://example.com/a?sid={SESSION}0": f"com,example)/a?sid={SESSION.lower()}0",
    "http://example.com/a?ASPSESSIONIDAABBCCDD=ABCDEFGHABCDEFGHABCDEFGH&x": "com,example)/a?x",
    "http://example.com/a?x=1&cfid=123&cftoken=456&y": "com,example)/a?x=1&y",
    "http://example.com/(S(abcdefghijklmnopqrstuvwx))/a.aspx": "com,example)/a.aspx",
    "http://example.com/(abcdefghijklmnopqrstuvwx)/a.aspx": "com,example)/a.aspx",
    "http://example.com/(abcdefghijklmnopqrstuvwx)/a.html": "com,example)/(abcdefghijklmnopqrstuvwx)/a.html",
    "http:/example.com": "com,example)/",
    "//example.com/": "com,example)/",
    "example.com/a": "com,example)/a",
    "http://https://e.x/": "x,e)/",
    "ftp://ftp.example.com:21/B": "com,example,ftp:21)/b",
    "dns:www.Example.com": "dns:www.example.com",
    "mailto:?b": "mailto:/?b",
    "urn:isbn:123?b&a": "urn:isbn:123?a&b",
    "URN:ISBN:1": "urn:isbn:1",
    "DNS:www.Example.com": "dns:www.example.com",
    "view-source:http://example.com/": "view-source:http://example.com",
    "file:///etc/passwd": "file:/etc/passwd",
    "filedesc://Foo.arc": "filedesc://Foo.arc",
    "http://a:::/": "a)/",
    ":::?": "http:",
    "http://": "http:",
    "/": "http:/",
    "": "-",
    "http://e.x:abc/badport": "http://e.x:abc/badport",
    "http://e.x:99999/ü": "http://e.x:99999/%c3%bc",
}
LONG = {
    "escapes of escapes": "http://x.y/" + "%25" * 300_000 + "41",
    "letters that are no ASCII in a host": "http://" + "ü" * 300_000 + "/",
    "beginnings of a session": "http://e.x/?" + "cfid=" * 200_000,
    "sessions in a path": "http://e.x/" + "(abcdefghijklmnopqrstuvwx)/" * 30_000 + ".aspx",
    "dot segments": "http://e.x/" + "../a/" * 200_000,
    "empty parts": "http://e.x/?" + "&" * 1_000_000,
    "labels": "http://" + "a." * 300_000 + "x/",
    "numbers": "http://" + "1." * 300_000 + "x/",
    "digits": "http://" + "1" * 900_000,
    "digits in a port": "http://e.x:" + "1" * 900_000 + "/",
    "schemes": "https://" * 100_000,
}


@pytest.mark.parametrize("url", KNOWN)
def test_a_known_key(url: str) -> None:
    assert urlkey(url) == KNOWN[url]


@pytest.mark.parametrize("url", LONG.values(), ids=LONG)
def test_a_url_of_a_megabyte_has_a_key_in_time(url: str) -> None:
    assert len(urlkey(url)) <= 6 * len(url)


@given(st.text())
def test_any_text_has_a_key_of_printable_ascii_without_blanks(url: str) -> None:
    assert re.fullmatch(r"[!-~]+", urlkey(url))


HOSTS = st.sampled_from(["a.b", "www.a.b", "WWW1.A.b", "www.com", "www", "1.2.a", "1.2.3", "x-y.Z_w.co.uk", "a.1b"])
PORTS = st.sampled_from(["", ":", ":0", ":80", ":443", ":8080", ":00443"])
PATHS = st.text("aB1./;=&,-_", max_size=8)


@given(st.tuples(st.sampled_from(["http://", "https://"]), HOSTS, PORTS, st.just("/"), PATHS, st.just("?"), PATHS))
def test_the_fast_way_and_the_slow_way_agree(parts: tuple[str, ...]) -> None:
    url = "".join(parts)
    assert urlkey(url) == module._key(url.encode()).decode()


@given(st.lists(st.sampled_from([*b"%2541305fF", 0xE9])).map(bytes))
def test_escapes_are_undone_alike_in_rounds_and_at_once(text: bytes) -> None:
    assert module._unescaped(text) == module._unescaped_at_once(text)
