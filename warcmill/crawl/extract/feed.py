"""Links of RSS (0.9 to 2.0), Atom (RFC 4287) and JSON feeds."""

from __future__ import annotations

import json
import re

from warcmill.crawl.extract import charset
from warcmill.crawl.extract.links import EMBED, LINK, Found, Links
from warcmill.crawl.extract.rel import hop_of
from warcmill.crawl.extract.xml import tags

_ROOT = re.compile(rb"<(?:[\w.-]+:)?(?:rss|feed|rdf)[\s>]", re.IGNORECASE)
_ROOTS = ("rss", "feed", "rdf")
_TEXTS = {"link": LINK, "comments": LINK, "url": EMBED, "icon": EMBED, "logo": EMBED, "origlink": LINK, "uri": LINK}
_SOURCES = ("enclosure", "content", "thumbnail", "player", "image")  # by @url, @src or @href
_JSON = {"home_page_url": LINK, "url": LINK, "external_url": LINK, "next_url": LINK, "icon": EMBED, "image": EMBED}
_JSON |= {"favicon": EMBED, "banner_image": EMBED}


def is_feed(data: bytes) -> bool:
    """True if the root of an XML document is that of a feed."""
    return _ROOT.search(data[:4096]) is not None


def links(data: bytes, uri: str, content_type: str = "") -> Found:
    """The links of a feed: of its items, and what they embed."""
    found = Links(uri)
    text = charset.text(data, content_type)
    if text.lstrip()[:1] == "{":
        _json(text, found)
        return found.all()
    for name, attributes, content in tags(text):
        if found.cut:
            break
        if name in _ROOTS:
            found.rebase(attributes.get("xml:base", ""))
        elif name == "link" and "href" in attributes:
            _atom_link(attributes, found)
        elif name == "guid" and attributes.get("isPermaLink", "true") == "true":
            found.add(content if content.startswith("http") else "", LINK, name)
        elif name in _SOURCES:
            found.add(attributes.get("url") or attributes.get("src") or attributes.get("href"), EMBED, name)
        elif hop := _TEXTS.get(name):
            found.add(content, hop, name)
    return found.all()


def _atom_link(attributes: dict[str, str], found: Links) -> None:
    rel = attributes.get("rel", "alternate")
    hop = EMBED if rel == "enclosure" else hop_of(rel)
    if hop:
        found.add(attributes["href"], hop, "link/@href")


def _json(text: str, found: Links) -> None:
    try:
        feed = json.loads(text)
    except (ValueError, RecursionError):
        return
    items = feed.get("items") if isinstance(feed, dict) else None
    objects = [feed, *(items if isinstance(items, list) else [])]
    for one in objects:
        for name, value in one.items() if isinstance(one, dict) else ():
            if name in _JSON and isinstance(value, str):
                found.add(value, _JSON[name], name)
            elif name == "attachments" and isinstance(value, list):
                _attached(value, found)


def _attached(attachments: list[object], found: Links) -> None:
    for one in attachments:
        if isinstance(one, dict) and isinstance(url := one.get("url"), str):
            found.add(url, EMBED, "attachments")
