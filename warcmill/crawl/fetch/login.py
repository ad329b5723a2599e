"""The cookies of a login, from a file of Netscape's format (`cookies.txt`), as browsers' extensions and curl write it.

    .example.org  TRUE  /  TRUE  1798761600  session  5f2c…

Seven fields with tabs between them: the domain, if its subdomains get the cookie, the path, if TLS is needed, the end
in seconds since 1970 (0: with the browser's session), name and value. `#HttpOnly_` before a domain hides a cookie from
scripts. Whoever has the file is signed in: so it has one reader, its owner, and lies in no root of the archive. No
message has a value of it. Reads only.
"""

from __future__ import annotations

import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from warcmill.base import clock, disk
from warcmill.crawl.fetch.cookies import NEVER, Cookie, Jar, is_shared
from warcmill.errors import BadConfig
from warcmill.formats import hosts
from warcmill.layout import SENTINEL

LARGEST = 4 << 20  # bytes
KEPT_BACK = ("cookie", "authorization")
"""The fields of a request that has such cookies which are in no record."""
_HTTP_ONLY = "#HttpOnly_"
_FIELDS, _NO_VALUE = 7, 6  # some leave out the tab before an empty value
_is_whole = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]+)?", re.ASCII).fullmatch
_unfit = re.compile(r"[\x00-\x20\x7f;,]").search
_unfit_value = re.compile(r"[\x00-\x08\x0a-\x1f\x7f;]").search
_EXPORT = "export it anew as cookies.txt, in Netscape's format"


class _ReadFile(NamedTuple):
    """The cookies of a file that was changed then."""

    changed: int
    cookies: Jar


_read: dict[str, _ReadFile] = {}


def jar(path: str) -> Jar | None:
    """The cookies of a file that was read before, once more if it has changed since; None without one. While a changed
    file cannot be used, those of before stay."""
    if not path:
        return None
    if (known := _read.get(path)) is None:
        return read(path)
    with suppress(OSError, BadConfig):
        if Path(path).stat().st_mtime_ns != known.changed:
            return read(path)
    return known.cookies


def read(path: str, where: str = "cookies") -> Jar:
    """Return the cookies of a file; BadConfig for one that is not such a file, that others may read, or that is kept in
    the archive."""
    file = Path(path)
    if not file.is_absolute():
        raise BadConfig(where, f"{path!r} is not the whole path of a file, from / on")
    try:
        about = file.stat()
        data = file.read_bytes() if stat.S_ISREG(about.st_mode) and about.st_size <= LARGEST else None
    except OSError as error:
        raise BadConfig(where, f"{path}: {disk.reason(error, file)}") from error
    if data is None:
        raise BadConfig(where, f"{path} is not a file of at most {LARGEST >> 20} MiB")
    if about.st_mode & 0o077:
        raise BadConfig(where, f"{path} may be read by others, who are signed in with it; chmod 600 {path}")
    if root := next((one for one in file.resolve().parents if (one / SENTINEL).exists()), None):
        raise BadConfig(where, f"{path} is in {root}, which belongs to the archive; keep it elsewhere")
    cookies = parse(data, f"{where} {path}", about.st_mtime)
    if not any(one.expires > clock.steady() for one in cookies):
        why = "all of its cookies have expired" if cookies else "there is no cookie in it"
        raise BadConfig(f"{where} {path}", f"{why}; log in, and {_EXPORT}")
    found = Jar(cookies)
    _read[path] = _ReadFile(about.st_mtime_ns, found)
    return found


def parse(data: bytes, where: str, made: float) -> list[Cookie]:
    """Return the cookies of a file that was `made` then; BadConfig, with the line, for one of another format."""
    if data.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] in (b"[", b"{"):
        raise BadConfig(where, f"it is JSON; {_EXPORT}")
    if b"\0" in data:
        raise BadConfig(where, f"it is not plain text; {_EXPORT}")
    text = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")  # a value is sent as it came
    lines = enumerate((line.rstrip("\r") for line in text.split("\n")), 1)
    kept = ((number, line.removeprefix(_HTTP_ONLY)) for number, line in lines if line.strip())
    return [_cookie(line, f"{where}, line {number}", made) for number, line in kept if not line.startswith("#")]


def _cookie(line: str, where: str, made: float) -> Cookie:
    fields = line.split("\t")
    if len(fields) == _NO_VALUE:
        fields.append("")
    if len(fields) != _FIELDS:
        raise BadConfig(where, f"it has {len(fields)} fields, not {_FIELDS} with tabs between them; {_EXPORT}")
    domain, for_subdomains, path, secure, ends, name, value = fields
    if {for_subdomains, secure} - {"TRUE", "FALSE"} or not path.startswith("/") or not _is_whole(ends):
        raise BadConfig(where, f"its fields are not domain, TRUE or FALSE, path, TRUE or FALSE, time, name; {_EXPORT}")
    if not name or _unfit(name) or _unfit_value(value):
        raise BadConfig(where, f"no cookie has such a name, or such a value; {_EXPORT}")
    try:
        host = hosts.canonical(domain.removeprefix(".").encode("latin-1").decode())
    except (ValueError, UnicodeDecodeError) as error:
        raise BadConfig(where, f"{domain[:80]!a} is not a host") from error
    is_wide = (for_subdomains == "TRUE" or domain.startswith(".")) and not is_shared(host)
    expires = float(ends) if float(ends) > 0 else NEVER
    return Cookie(host, path, name, value, expires, made, not is_wide, secure == "TRUE")


def unsigned(sent: bytes) -> tuple[bytes, tuple[str, ...]]:
    """A request as its record has it, without what signs it in; and the names of the fields that were left out."""
    head, end, body = sent.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    names = [line.partition(b":")[0].decode("latin-1") for line in lines]
    left_out = [name for name in names[1:] if name.lower() in KEPT_BACK]
    kept = [line for line, name in zip(lines, names, strict=True) if name.lower() not in KEPT_BACK]
    return b"\r\n".join(kept) + end + body, tuple(dict.fromkeys(left_out))
