"""URLs made at random of what URLs are made of: for comparisons with other people's keys."""

from __future__ import annotations

from random import Random

ASKED = "abcABC123.-_~/?&=%#:;@!$'()*+,[]{}|\\^`<>\" "
SESSIONS = ["0123456789abcdef0123456789abcdef", "abcdefghijklmnopqrstuvwx", "(abcdefghijklmnopqrstuvwx)/", "x.aspx"]
PIECES = [
    "http://", "https://", "HTTP://", "ftp://", "http:", "http:/", "dns:", "mailto:", "urn:", "javascript:", "data:",
    "www.", "www1.", "example.com", "Example.COM", "co.uk", "xn--", "xn--bcher-kva", "ü", "ß", "☃",
    "\u3002", "\uff0e", "İ",
    "/", "//", "..", "/../", "/./", "?", "&", "#", "a=1", "b=2", "A=",
    "%", "%25", "%2541", "%41", "%2f", "%2e", "%E4", "%c3%bc", "sid=", "jsessionid=", "PHPSESSID=", "cfid=1&cftoken=2",
    "aspsessionidABCDEFGH=", *SESSIONS,
    "(S(abcdefghijklmnopqrstuvwx))/", ":80", ":443", ":8080", ":0", ":", "@", "user:pw@", "127.0.0.1", "1.2", "0177.1",
    "[::1]", "2130706433", "0x7f.1", "256.256.256.256",
    "\t", "\n", " ", "\x00", "\x7f", "\x80", "\u2028", "\u00a0", *ASKED,
]  # fmt: skip
HOSTS = [
    "www.", "www2.", "a", "b.c", "Example.com", "ex-a_b.org", "xn--bcher-kva.de", "ü.com", "localhost",
    "a..b", ".a", "a.",
    "127.0.0.1", "10", "1.2.3", "%41.com", "a%2eb",
]  # fmt: skip
NUMBERS = ["0", "00", "01", "07", "1", "7", "10", "17", "0177", "0377", "0400", "255", "256", "65536", "4294967296"]


def sample(seed: int, number: int) -> list[str]:
    """Different URLs, the same for the same seed; none is blank."""
    random = Random(seed)
    found: dict[str, None] = {}
    while len(found) < number:
        url = random.choice((_likely, _likely, _path, _query, _pieces, _number))(random)
        if url.strip():
            found[url] = None
    return list(found)


def _likely(random: Random) -> str:
    scheme = random.choice(["http://", "https://", "http://", "ftp://", "HTTP://", "//", ""])
    host = "".join(random.choice(HOSTS) for _ in range(random.randint(1, 2)))
    port = random.choice(["", "", "", ":80", ":443", ":8080", ":"])
    path = "/" + _some(random, 6) if random.random() < 0.9 else ""
    query = "?" + _some(random, 8) if random.random() < 0.5 else ""
    return scheme + random.choice(["", "", "", "u@", "u:p@"]) + host + port + path + query


def _path(random: Random) -> str:
    return "http://example.com/" + "".join(random.choice(ASKED) for _ in range(random.randint(0, 20)))


def _query(random: Random) -> str:
    return "http://example.com/a?" + "".join(random.choice(PIECES) for _ in range(random.randint(0, 9)))


def _pieces(random: Random) -> str:
    return "".join(random.choice(PIECES) for _ in range(random.randint(1, 7)))


def _number(random: Random) -> str:
    return "http://" + ".".join(random.choice(NUMBERS) for _ in range(random.randint(1, 5))) + "/"


def _some(random: Random, most: int) -> str:
    return "".join(random.choice(PIECES if random.random() < 0.5 else ASKED) for _ in range(random.randint(0, most)))
