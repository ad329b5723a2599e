"""The response that a callback gets: its text, its tree, its JSON, and whether it is one. Pure.

It stands alone, as `pyspider.libs.response` is this module. A page that a strict reader would refuse (an empty one, a
declaration of XML in a text, an address that cannot be joined) has a tree all the same: it costs no page.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any
from urllib.parse import urljoin

import lxml.etree
import lxml.html
from charset_normalizer import from_bytes
from pyquery import PyQuery
from requests import HTTPError
from requests.structures import CaseInsensitiveDict

logging.getLogger("charset_normalizer").setLevel(logging.WARNING)  # the log is the script's
NO_ANSWER = 599
_GUESSED = 4096  # bytes by which an encoding is guessed
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE).search
_XML = re.compile(rb"\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]+)", re.IGNORECASE).search
_META = re.compile(rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE).search
_LINKS = (("a", "href"), ("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("form", "action"))
_LABELS = {
    "x-sjis": "cp932", "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "ms_kanji": "cp932",
    "windows-31j": "cp932", "x-euc-jp": "euc_jp", "x-gbk": "gb18030", "ks_c_5601-1987": "cp949", "euc-kr": "cp949",
    "windows-949": "cp949", "x-x-big5": "big5", "unicode-1-1-utf-8": "utf-8", "x-cp1250": "cp1250",
    "x-cp1251": "cp1251", "x-cp1252": "cp1252", "x-mac-cyrillic": "mac_cyrillic", "x-user-defined": "latin-1",
}  # fmt: skip
"""The codecs of labels that pages have and Python does not know, or reads otherwise (WHATWG Encoding, 4.2)."""
_AS_THEY_ARE = ("tel:", "callto:", "sms:", "javascript:", "mailto:", "data:")


class Response:
    """An answer, or why there is none: then its status is 599."""

    def __init__(
        self, status_code: int = NO_ANSWER, url: str = "", orig_url: str = "", headers: Mapping[str, str] | None = None,
        content: bytes | str = b"", cookies: Mapping[str, str] | None = None, error: str | None = None,
        traceback: str | None = None, save: Any = None, js_script_result: Any = None, time: float = 0,
    ) -> None:  # fmt: skip
        self.status_code, self.url, self.orig_url = status_code, url, orig_url or url
        self.headers = CaseInsensitiveDict(headers or {})
        self.content, self.cookies, self.error = content, dict(cookies or {}), error
        self.traceback, self.save, self.js_script_result, self.time = traceback, save, js_script_result, time
        self._encoding: str | None = None
        self._text: str | None = None

    def __repr__(self) -> str:
        return f"<Response [{self.status_code}]>"

    def __bool__(self) -> bool:
        return self.ok

    @property
    def ok(self) -> bool:
        """True without an error, and with a status that is not one."""
        try:
            self.raise_for_status()
        except HTTPError:
            return False
        return True

    def isok(self) -> bool:
        """True as `ok`."""
        return self.ok

    @property
    def encoding(self) -> str:
        """The encoding of the content: as it was set, as the header or the page names it, or guessed."""
        if self._encoding is None:
            if isinstance(self.content, str):
                return "unicode"
            found = get_encoding(self.headers, self.content) or _guessed(self.content)
            self._encoding = "gb18030" if found.lower() == "gb2312" else found
        return self._encoding

    @encoding.setter
    def encoding(self, value: str | None) -> None:
        self._encoding, self._text = value, None
        for name in ("etree", "doc", "json"):
            self.__dict__.pop(name, None)

    @property
    def text(self) -> str:
        """The content as a text; what its encoding has no letter for is replaced."""
        if isinstance(self.content, str):
            return self.content
        if self._text is None:
            try:
                self._text = self.content.decode(_LABELS.get(self.encoding.lower(), self.encoding), "replace")
            except (LookupError, UnicodeError):  # a name that no encoding of texts has
                self._text = self.content.decode("utf-8", "replace")
        return self._text

    @cached_property
    def json(self) -> Any:
        """The value that the content is in JSON; None for other content."""
        try:
            return json.loads(self.text.removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            return None

    @cached_property
    def etree(self) -> Any:
        """The tree of the page, by lxml. It is made of the text: lxml stops at a byte that its encoding does not have,
        and knows fewer encodings."""
        parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)
        try:
            found = lxml.html.fromstring(self.text.encode("utf-8", "replace"), parser=parser)
        except (lxml.etree.ParserError, lxml.etree.XMLSyntaxError, ValueError):
            found = lxml.html.Element("html")
        return found

    @cached_property
    def doc(self) -> PyQuery:
        """The page for CSS selectors, with absolute links."""
        _absolute(self.etree, self.url)
        return PyQuery(self.etree)

    def raise_for_status(self, allow_redirects: bool = True) -> None:
        """Raise HTTPError for an error, and for a status of one."""
        code = self.status_code
        if code == 304:
            return
        if self.error:
            why = str(self.error)
        elif 300 <= code < 400 and not allow_redirects:
            why = f"{code} Redirection"
        elif 400 <= code < 500:
            why = f"{code} Client Error"
        elif 500 <= code < 600:
            why = f"{code} Server Error"
        else:
            return
        error = HTTPError(why)
        error.response = self
        raise error


def rebuild_response(fields: Mapping[str, Any]) -> Response:
    """The response of these fields."""
    known = ("status_code", "url", "orig_url", "headers", "content", "cookies", "error", "traceback", "save",
             "js_script_result", "time")  # fmt: skip
    return Response(**{name: fields[name] for name in known if name in fields})


def get_encoding(headers: Mapping[str, str], content: bytes | str) -> str | None:
    """The encoding that a header or the beginning of a page names."""
    named = _CHARSET(headers.get("content-type") or headers.get("Content-Type") or "")
    if named:
        return named[1]
    begin = (content.encode("utf-8", "replace") if isinstance(content, str) else content)[:_GUESSED]
    found = _META(begin) or _XML(begin)
    return found[1].decode("ascii", "replace") if found else None


def _guessed(content: bytes) -> str:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        best = from_bytes(content[:_GUESSED]).best()
        return best.encoding if best else "utf-8"
    return "utf-8"


def _absolute(tree: Any, url: str) -> None:
    """Join the links of a page with its address, or with the one that its `base` names."""
    named = next((element.get("href") for element in tree.iter("base") if element.get("href")), "")
    base = _joined(url, named.strip())
    if not base.startswith(("http:", "https:")) or _joined(base, "x") == "x":
        base = url
    for tag, name in _LINKS:
        for element in tree.iter(tag):
            link = element.get(name)
            if link is not None and not link.strip().lower().startswith(_AS_THEY_ARE):
                element.set(name, _joined(base, link.strip()))


def _joined(base: str, link: str) -> str:
    try:
        return urljoin(base, link)
    except ValueError:
        return link
