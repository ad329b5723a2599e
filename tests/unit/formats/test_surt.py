"""URLs and SURTs: spelled as Heritrix 3.13 was seen to spell them (each line was asked of the engine's own classes)."""

from __future__ import annotations

import re
import socket
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.formats import surt

# URL, canonical, the engine's prefix of its folder, the engine's SURT.
SEEN = """\
http://example.org                        http://example.org/                       http://(org,example,)/                        http://(org,example,)/
http://example.org/a                      http://example.org/a                      http://(org,example,)/                        http://(org,example,)/a
https://www.Example.org:443/a/B/c?d=e     https://www.example.org/a/B/c?d=e         http://(org,example,www,)/a/b/                http://(org,example,www,)/a/b/c?d=e
http://example.org:8080/a/b               http://example.org:8080/a/b               http://(org,example,:8080)/a/                 http://(org,example,:8080)/a/b
http://EXAMPLE.org:0080/a/                http://example.org/a/                     http://(org,example,)/a/                      http://(org,example,)/a/
http://b\u00fccher.example/x              http://xn--bcher-kva.example/x            http://(example,xn--bcher-kva,)/              http://(example,xn--bcher-kva,)/x
http://stra\u00dfe.example/               http://xn--strae-oqa.example/              http://(example,xn--strae-oqa,)/               http://(example,xn--strae-oqa,)/
http://\u65e5\u672c.example/              http://xn--wgv71a.example/                http://(example,xn--wgv71a,)/                 http://(example,xn--wgv71a,)/
http://example.org./a                     http://example.org/a                      http://(org,example,)/                        http://(org,example,)/a
http://example.org:/x/                    http://example.org/x/                     http://(org,example,)/x/                      http://(org,example,)/x/
http://127.0.0.1:80/x/                    http://127.0.0.1/x/                       http://(127.0.0.1)/x/                         http://(127.0.0.1)/x/
http://127.0.0.1:8080/x/                  http://127.0.0.1:8080/x/                  http://(127.0.0.1:8080)/x/                    http://(127.0.0.1:8080)/x/
http://a_b.example/                       http://a_b.example/                       http://(example,a_b,)/                        http://(example,a_b,)/
http://example.org/a{b}|c;d$e"f<g>        http://example.org/a%7Bb%7D|c;d$e%22f%3Cg%3E  http://(org,example,)/                    http://(org,example,)/a%7bb%7d|c;d$e%22f%3cg%3e
http://example.org/%7euser/%41/../x       http://example.org/%7euser/x              http://(org,example,)/%7euser/                http://(org,example,)/%7euser/x
http://example.org/a/./b/../c/            http://example.org/a/c/                   http://(org,example,)/a/c/                    http://(org,example,)/a/c/
http://example.org/a//b/                  http://example.org/a//b/                  http://(org,example,)/a//b/                   http://(org,example,)/a//b/
http://example.org/a\\b/c                 http://example.org/a/b/c                  http://(org,example,)/a/b/                    http://(org,example,)/a/b/c
http://example.org/..                     http://example.org/                       http://(org,example,)/                        http://(org,example,)/
http://example.org/\u00c4%C3%84/          http://example.org/%C3%84%C3%84/          http://(org,example,)/%c3%84%c3%84/           http://(org,example,)/%c3%84%c3%84/
http://example.org/a#b/c                  http://example.org/a                      http://(org,example,)/                        http://(org,example,)/a
http://example.org/?a[]=^|1               http://example.org/?a[]=^|1               http://(org,example,)/                        http://(org,example,)/?a[]=^|1
http://example.org/?q                     http://example.org/?q                     http://(org,example,)/                        http://(org,example,)/?q
"""  # noqa: E501


@pytest.mark.parametrize("line", SEEN.splitlines())
def test_it_is_spelled_as_the_engine_does(line: str) -> None:
    url, canonical, folder, whole = line.split()
    assert surt.canonical(url) == canonical
    assert surt.folder_prefix(canonical) == folder
    assert surt.surt(canonical) == whole


def test_braces_are_escaped_although_the_engine_leaves_them_in_queries() -> None:
    assert surt.canonical("http://example.org/?a=${launchId}") == "http://example.org/?a=$%7BlaunchId%7D"


def test_a_slash_in_a_query_is_no_folder() -> None:
    assert surt.folder_prefix("http://example.org/a?b/c") == "http://(org,example,)/"


@pytest.mark.parametrize(
    ("url", "prefix"),
    [
        ("http://www.example.org/x/", "http://(org,example,"),
        ("http://sub.example.org:8080/", "http://(org,example,sub,"),
        ("https://www.gov.uk/", "http://(uk,gov,www,"),
        ("https://www.gub.uy/", "http://(uy,gub,www,"),
        ("https://www.uk/", "http://(uk,www,"),
        ("https://www.anything.ck/", "http://(ck,anything,www,"),
        ("https://www.ck/", "http://(ck,"),
        ("https://www.blogspot.com/", "http://(com,blogspot,www,"),
        ("https://www.ministry.gub.uy/", "http://(uy,gub,ministry,"),
        ("https://www.parliament.uk/", "http://(uk,parliament,"),
        ("https://www.xn--55qx5d.cn/", "http://(cn,xn--55qx5d,www,"),
        ("https://www.intranet/", "http://(intranet,"),
        ("https://www.example.gov.uk/", "http://(uk,gov,example,"),
        ("http://127.0.0.1:8080/x/", "http://(127.0.0.1:8080)/"),
    ],
)
def test_a_domain_s_prefix(url: str, prefix: str) -> None:
    assert surt.domain_prefix(url) == prefix


def test_every_suffix_of_two_levels_under_a_country_keeps_its_www() -> None:
    listed = [name for name in surt.suffixes().tlds if re.fullmatch(r"[a-z0-9-]+\.[a-z]{2}", name)]
    assert len(listed) > 3000
    assert [name for name in listed if not surt.domain_prefix(f"http://www.{name}/").endswith(",www,")] == []


def test_the_list_of_suffixes_is_read_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, forbidden)
    surt.suffixes.cache_clear()
    assert surt.domain_prefix("https://www.gub.uy/") == "http://(uy,gub,www,"


def test_the_list_of_suffixes_costs_nothing_until_it_is_asked() -> None:
    code = "import sys, warcmill.formats.surt; sys.exit('tldextract' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_twin_of_a_host() -> None:
    assert surt.with_and_without_www("http://www.a.example/www.a.example")[1] == "http://a.example/www.a.example"
    assert surt.with_and_without_www("http://a.example:81/")[1] == "http://www.a.example:81/"
    assert surt.with_and_without_www("http://127.0.0.1/")[1] == "http://127.0.0.1/"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org/",
        "http://",
        "http:///x",
        "http://u:p@example.org/",
        "http://u@example.org/",
        "http://[::1]/",
        "http://a..b/",
        "http://a b.example/",
        "http://example.org:99999/",
        "http://example.org:x/",
        f"http://{'a' * 64}.example/",
        f"http://{'a.' * 127}example/",
        'http://a"b.example/',
        "http://(a,b,)/",
    ],
)
def test_what_the_engine_would_not_take_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        surt.canonical(url)


@given(st.text(max_size=60))
def test_a_canonical_url_is_stable_and_needs_no_escaping(tail: str) -> None:
    try:
        found = surt.canonical(f"http://Example.ORG/{tail}")
    except ValueError:
        return
    assert surt.canonical(found) == found
    assert found.isascii()
    assert found.isprintable()
    assert not set(found) & set(' "#<>{}\\`')
    assert surt.surt(found).startswith(surt.folder_prefix(found))
