"""Addresses and bodies of requests, as a script names them: parameters, forms, files, a command of curl. Pure.

It stands alone, as `pyspider.libs.url` is this module.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import ada_url
import requests

_SILENT = frozenset({
    "-s", "-S", "-sS", "--silent", "--show-error", "-i", "--include", "-v", "--verbose", "-g", "--globoff", "--http1.1",
    "--http2",
})  # fmt: skip
_FLAGS: Mapping[str, tuple[str, object]] = {
    "--compressed": ("use_gzip", True),
    "--insecure": ("validate_cert", False),
    "--location": ("allow_redirects", True),
    "--head": ("method", "HEAD"),
}
_LONG = {
    "-H": "--header", "-d": "--data", "-X": "--request", "-b": "--cookie", "-A": "--user-agent", "-e": "--referer",
    "-x": "--proxy", "-m": "--max-time", "-k": "--insecure", "-L": "--location", "-I": "--head",
}  # fmt: skip
_HEADERS = {"--cookie": "Cookie", "--user-agent": "User-Agent", "--referer": "Referer"}
_BODIES = frozenset({"--data", "--data-raw", "--data-binary", "--data-ascii"})
_ARGUMENTS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "--request": ("method", str),
    "--proxy": ("proxy", str),
    "--max-time": ("timeout", float),
    "--connect-timeout": ("connect_timeout", float),
}
# `$'...'` of a shell, in which browsers copy a body: Bash manual, 3.1.2.4.
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).sub
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|.)", re.DOTALL).sub
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}


def quote_chinese(url: str | bytes, encoding: str = "utf-8") -> str:
    """An address in which all that is not ASCII is percent-encoded."""
    if isinstance(url, str) and url.isascii():
        return url
    raw = url.encode(encoding, "surrogatepass") if isinstance(url, str) else url
    return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in raw)


def build_url(url: str, params: object = None) -> str:
    """An address with a path, a host in ASCII, and parameters at the end of its query."""
    try:
        scheme, host, path, query, fragment = urlsplit(url)
        host = host if host.isascii() else bytes(ada_url.idna.encode(host)).decode("ascii")
    except (ValueError, UnicodeError):
        return url  # the crawler refuses it by name
    if scheme == "data":
        return url
    more = encode_params(params)
    joined = "&".join(part for part in (query, more if isinstance(more, str) else "") if part)
    return urlunsplit((scheme, host, path or "/", joined, fragment))


def encode_params(data: object) -> Any:
    """A form or parameters as a text; a text, bytes or None as they are."""
    if data is None or isinstance(data, str | bytes):
        return data
    pairs = data.items() if isinstance(data, Mapping) else data
    if not isinstance(pairs, Iterable):
        return data
    found: list[tuple[str | bytes, object]] = []
    for name, value in pairs:
        key = name if isinstance(name, bytes) else str(name)
        several = [value] if isinstance(value, str | bytes) or not isinstance(value, Iterable) else value
        found += [(key, one) for one in several if one is not None]
    return urlencode(found)


def encode_files(data: Any, files: Any) -> tuple[str, bytes]:
    """The content type and the body of a form with files, each as `{field: {name: content}}` (RFC 7578)."""
    named = [
        (field, one)
        for field, value in files.items()
        for one in (value.items() if isinstance(value, Mapping) else (value,))
    ]
    made = requests.Request("POST", "http://form.invalid/", data=data or {}, files=named).prepare()
    body = made.body
    return made.headers["Content-Type"], body if isinstance(body, bytes) else str(body or "").encode()


def curl_to_arguments(command: str) -> dict[str, Any]:
    """The arguments of `crawl` for a command of curl, with all its addresses as `urls`. TypeError for an option that
    `crawl` has no argument for, or a command without an address."""
    found, headers = dict[str, Any](), dict[str, str]()
    forms, urls = list[str](), list[str]()
    words = _words(command)[1:]
    while words:
        word = words.pop(0)
        name, value = _option(word, words)
        if not name:
            urls.append(value)
        elif name in _FLAGS:
            argument, found_value = _FLAGS[name]
            found[argument] = found_value
        elif name == "--header":
            field, colon, text = value.partition(":")
            headers |= {field.strip(): text.strip()} if colon else {}
        elif name in _HEADERS:
            headers[_HEADERS[name]] = value
        elif name in _BODIES:
            forms.append(value)
        elif name in _ARGUMENTS:
            argument, kind = _ARGUMENTS[name]
            found[argument] = kind(value)
    if not urls:
        raise TypeError("curl: no URL specified!")
    found |= {"headers": headers} if headers else {}
    found |= {"data": "&".join(forms)} if forms else {}
    return {**found, "urls": urls}


def _option(word: str, words: list[str]) -> tuple[str, str]:
    """The long name of an option and its value, which may be the next of the words; '' for an address."""
    if not word.startswith("-"):
        return "", word
    name, joined, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
    name = "" if name == "--url" else _LONG.get(name, name)
    if word in _SILENT or name in _FLAGS:
        return name, ""
    if name not in {"", "--header", *_HEADERS, *_BODIES, *_ARGUMENTS}:
        raise TypeError(f"Unknown curl option: {word}")
    if not joined and not words:
        raise TypeError(f"curl: {word} has no value")
    return name, value if joined else words.pop(0)


def _words(command: str) -> list[str]:
    """The words of a command, which may go over several lines."""
    joined = command.replace("\\\r\n", " ").replace("\\\n", " ")
    return shlex.split(_ANSI(lambda found: shlex.quote(_ESCAPE(_unescaped, found[1])), joined))


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU" and len(code) > 1:
        return chr(int(code[1:], 16)) if int(code[1:], 16) < 0x110000 else found[0]
    return _LETTERS.get(code, code)
