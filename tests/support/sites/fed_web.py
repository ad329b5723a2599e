"""A web that tells the scopes of a feed apart, and what of it each scope crawls; for any engine."""

from __future__ import annotations

from sites.several_hosts import Page, page

SCOPES = ("resource", "plus1", "root", "subdomains")
ROWS = (*SCOPES, "refresh")
DEPTHS = {"capped": "CAPPED", "large": "CAPPED_LARGE", "deep": "DEEP"}
FILLER, BIG_PAGES = 20_000, 20

# What the front page embeds, over at most two hops, from another host; and a part of a part of a part, which Heritrix
# fetches of a single page alone, and Warcmill always.
EMBEDDED = {f"img.example/H{name}" for name in ("-1.png", ".css", "-more.css", ".html", "-3.png")}
FONT = "img.example/H.woff"
PARTS = EMBEDDED | {FONT}

# Scope, or refresh -> what is crawled of the web that `site_of` makes around the target's host H, images included.
CRAWLED = {
    "resource": PARTS | {"H/news/"},
    "refresh": PARTS | {"H/news/"},
    "plus1": EMBEDDED
    | {
        "H/news/",
        "H/news/a",
        "H/news/deep/b",
        "H/other",
        "www.H/news/w",
        "sub.H/x",
        "far.H/p",
        "img.example/H-2.png",
    },
    "root": EMBEDDED | {"H/news/", "H/news/a", "H/news/c", "H/news/deep/b", "www.H/news/w"},
    "subdomains": EMBEDDED
    | {
        "H/news/",
        "H/news/a",
        "H/news/c",
        "H/news/deep/b",
        "H/other",
        "www.H/news/w",
        "sub.H/x",
    },
}


def site_of(host: str, port: int) -> dict[tuple[str, str], Page]:
    """A page that links in its folder, out of it, to the host's neighbours and away; another image on the page away.
    It has a style sheet that imports another, with a font; and a frame, with an image and a link."""
    there = f":{port}"
    away = f"far-{host}"
    front = [
        "a",
        "deep/b",
        "/other",
        f"http://www.{host}{there}/news/w",
        f"http://sub.{host}{there}/x",
        f"http://{away}{there}/p",
    ]
    styled = (
        f'<link rel=stylesheet href="http://img.example{there}/{host}.css">'
        f'<iframe src="http://img.example{there}/{host}.html"></iframe>'
    )
    return {
        (host, "/news/"): Page(page(front, f"http://img.example{there}/{host}-1.png").body + styled.encode()),
        (host, "/news/a"): page(["c"]),
        (host, "/news/c"): page([]),
        (host, "/news/deep/b"): page([]),
        (host, "/other"): page([]),
        (f"www.{host}", "/news/w"): page([]),
        (f"sub.{host}", "/x"): page([]),
        (away, "/p"): page(["q"], f"http://img.example{there}/{host}-2.png"),
        (away, "/q"): page([]),
        ("img.example", f"/{host}-1.png"): Page(b"\x89PNG 1", "image/png"),
        ("img.example", f"/{host}-2.png"): Page(b"\x89PNG 2", "image/png"),
        ("img.example", f"/{host}.css"): Page(f"@import url({host}-more.css);".encode(), "text/css"),
        ("img.example", f"/{host}-more.css"): Page(f"@font-face {{src: url({host}.woff)}}".encode(), "text/css"),
        ("img.example", f"/{host}.woff"): Page(b"wOFF", "font/woff"),
        ("img.example", f"/{host}.html"): page([f"{host}-none"], f"{host}-3.png"),
        ("img.example", f"/{host}-3.png"): Page(b"\x89PNG 3", "image/png"),
    }


def moved_site(port: int) -> dict[tuple[str, str], Page]:
    """A seed that leads to its www."""
    return {
        ("moved.example", "/"): Page(f"http://www.moved.example:{port}/".encode(), status=301),
        ("www.moved.example", "/"): page(["/inside"]),
        ("www.moved.example", "/inside"): page([]),
    }


def big_site(host: str) -> dict[tuple[str, str], Page]:
    """A page that leads to many larger ones, each of other bytes."""
    numbers = range(1, BIG_PAGES)
    pages = {(host, f"/{number}"): page([], filler=FILLER + number) for number in numbers}
    return {(host, "/"): page([f"/{number}" for number in numbers], filler=FILLER), **pages}
