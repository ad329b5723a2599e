"""A host by one rule, as the host parser of the WHATWG URL standard has it: judged by its examples, and ours."""

import pytest
from ada_url import URL
from hypothesis import given
from hypothesis import strategies as st

from warcmill.formats import hosts
from warcmill.formats.index.url_columns import host_columns
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.seeds import comparable

SPELLED = {
    "xn--strae-oqa.example": ["straße.example", "STRAßE.example", "stra%C3%9Fe.example", "STRA\u1e9eE.EXAMPLE"],
    "strasse.example": ["strasse.example", "STRASSE.example"],
    "xn--bcher-kva.example": ["bücher.example", "BÜCHER.example.", "bu\u0308cher.example", "b%c3%bccher\uff0eexample",
                              "xn--bcher-kva.example", "XN--Bcher-KVA.example", "b\u00fccher\u3002example"],
    "example.org": ["Example.ORG", "ex\u00adample.org", "ex%61mple.org", "\uff45xample\uff61org", "example.org."],
    "xn--3xa.example": ["\u03c2.example"],
    "xn--11b2ezcw70k.example": ["\u0915\u094d\u200d\u0937.example"],
    "a_b.example": ["a_b.example", "A_B.example"],
    "r3---sn-4g5e.example": ["r3---sn-4g5e.example"],
    "-a-.example": ["-a-.example"],
    "xn--n3h.example": ["\u2603.example"],
    "1.2.3.4": ["1.2.3.4", "1.2.3.4.", "0x1.0x2.0x3.0x4", "01.02.03.04", "16909060", "0x01020304", "1.2.772",
                "\uff11.\uff12.\uff13.\uff14"],
    "192.168.0.1": ["3232235521", "0300.0250.0.01", "0xC0.0xA8.1"],
    "[2001:db8::1]": ["[2001:DB8::1]", "[2001:db8:0:0::1]", "[2001:0db8:0000::0001]"],
    "[::ffff:102:304]": ["[::ffff:1.2.3.4]"],
}  # fmt: skip
BOTH = [(spelled, host) for host, all_of in SPELLED.items() for spelled in all_of]
NO_HOST = [
    "", ".", " ", "a b.example", "a/b", "a\\b", "a?b", "a#b", "a@b", "a:80", "[::1", "::1", "a%2fb", "a%00b", "a|b",
    "256.1.1.1", "09.1.1.1", "a.0x4g.1.2.3.99999999999", "a\u200db.example", "a\u200cb.example", "%E2%80%8Da.example",
]  # fmt: skip


@pytest.mark.parametrize(("spelled", "host"), BOTH)
def test_a_host_is_written_in_one_way(spelled: str, host: str) -> None:
    assert hosts.canonical(spelled) == host
    assert hosts.in_url(f"HTTP://u@{spelled}:8080/A?b") == f"HTTP://u@{host}:8080/A?b"
    assert comparable(f"https://{spelled}/") == f"https://{host}/"
    assert host_columns(hosts.canonical(spelled))[0] == host


@pytest.mark.parametrize("name", NO_HOST)
def test_a_text_that_is_no_host_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        hosts.canonical(name)


@given(st.text(max_size=30))
def test_it_is_the_host_of_a_browser_and_stable(name: str) -> None:
    try:
        found = hosts.canonical(name)
    except ValueError:
        return
    assert hosts.canonical(found) == found
    assert URL(f"http://{name}/").hostname.rstrip(".") == found
    assert URL(f"http://{name}/x").pathname == "/x"


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        ("http://(example,straße,)/a", "http://(example,xn--strae-oqa,)/a"),
        ("http://(ORG,Example,", "http://(org,example,"),
        ("http://(org,exam", "http://(org,exam"),
        ("https://(example,BÜCHER,www,:8443)/", "https://(example,xn--bcher-kva,www,:8443)/"),
        ("http://(0x7f.1:80)/", "http://(127.0.0.1:80)/"),
        ("http://(127.0", "http://(127.0"),
        ("http://([0:0::1])/", "http://([::1])/"),
        ("example,straße)/private/", "example,xn--strae-oqa)/private/"),
        ("example,straße", "example,xn--strae-oqa"),
        ("1,0,0,127)/", "1,0,0,127)/"),
        ("http://(", "http://("),
    ],
)
def test_a_prefix_has_its_host_so(prefix: str, found: str) -> None:
    assert hosts.in_surt(prefix) == found
    assert hosts.in_surt(found) == found


def test_a_url_of_no_host_stays() -> None:
    for url in ("words", "http://", "http://a b/", "ftp://BÜCHER.example/", "http://a\u200db.example/"):
        assert hosts.in_url(url) == url


def test_the_keys_of_an_index_stay() -> None:
    """They are those of other indexers: who asks converts before."""
    assert urlkey("http://straße.example/") == "example,strasse)/"
    assert urlkey(hosts.in_url("http://straße.example/")) == "example,xn--strae-oqa)/"
