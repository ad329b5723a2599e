"""Records of captures for tests of the index: of any type, URL, header and block; requests with a body."""

from __future__ import annotations

import uuid

from records.warcs import END, member

RESPONSE, REQUEST = "application/http; msgtype=response", "application/http; msgtype=request"
FORM = "application/x-www-form-urlencoded"
DATE = "2016-10-19T23:44:28Z"


def capture(kind: str, url: str | bytes | None, block: bytes = b"", content_type: str = "", **more: str) -> bytes:
    """One record. `more` are header fields, `_` for `-`; an ID of its own follows from all of it."""
    record_id = uuid.uuid5(uuid.NAMESPACE_URL, repr((kind, url, block, content_type, more))).urn
    fields = {"WARC-Type": kind, "WARC-Date": DATE, "WARC-Record-ID": f"<{record_id}>"}
    fields |= {name.replace("_", "-"): value for name, value in more.items()}
    if content_type:
        fields["Content-Type"] = content_type
    lines = [b"WARC/1.0", *(f"{name}: {value}".encode() for name, value in fields.items())]
    if url is not None:
        lines.append(b"WARC-Target-URI: " + (url if isinstance(url, bytes) else url.encode()))
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(block)]) + END + block + END


def response(
    url: str | bytes, *headers: bytes, body: bytes = b"x", status: bytes = b"HTTP/1.1 200 OK", **more: str
) -> bytes:
    """A response with these HTTP headers."""
    return capture("response", url, b"\r\n".join([status, *headers]) + END + body, RESPONSE, **more)


def revisit(url: str, digest: str = "", **more: str) -> bytes:
    """A revisit: the header of a response, whose payload has this digest."""
    fields = {"WARC_Payload_Digest": digest} if digest else {}
    return capture("revisit", url, b"HTTP/1.1 200 OK" + END, RESPONSE, **fields, **more)


def typed(content_type: bytes) -> bytes:
    """A response of this Content-Type."""
    return response("http://e.x/", b"Content-Type: " + content_type)


def request(
    url: str, body: bytes = b"", content_type: str | None = FORM, *headers: bytes, method: str = "POST", **more: str
) -> bytes:
    """A request with a body."""
    lines = [f"{method} /x HTTP/1.1".encode(), *headers]
    if content_type is not None:
        lines.append(b"Content-Type: " + content_type.encode())
    return capture("request", url, b"\r\n".join(lines) + END + body, REQUEST, **more)


def posted(url: str, body: bytes, content_type: str | None = FORM, *headers: bytes, method: str = "POST") -> bytes:
    """A response and its request after it, each a gzip member, as Heritrix writes them."""
    name = f"<{uuid.uuid5(uuid.NAMESPACE_URL, repr((url, body, content_type, headers, method))).urn}>"
    after = request(url, body, content_type, *headers, method=method, WARC_Concurrent_To=name)
    return member(response(url, WARC_Record_ID=name)) + member(after)
