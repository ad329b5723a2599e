"""Answers that real servers send and no standard has: bytes, and what is to be made of them."""

from __future__ import annotations

import gzip
from dataclasses import dataclass


@dataclass(frozen=True)
class Odd:
    """One answer, after which the server closes. `interim` bytes before it are in no block."""

    name: str
    sent: bytes
    payload: bytes
    status: int = 200
    truncated: str = ""
    method: str = "GET"
    interim: bytes = b""
    annotations: tuple[str, ...] = ()
    beyond: int = 0


OK = b"HTTP/1.1 200 OK\r\n"
CLOSING = OK + b"Connection: close\r\n"
GZIPPED = gzip.compress(b"a page", mtime=0)
LOST = ("disconnectTrunc",)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

ODD = [
    Odd("length", OK + b"Content-Length: 2\r\n\r\nhi", b"hi"),
    Odd("length of zero", OK + b"Content-Length: 0\r\n\r\n", b""),
    Odd("length twice, alike", OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
    Odd("lengths in one line", OK + b"Content-Length: 2, 2\r\n\r\nhi", b"hi"),
    Odd("lengths that differ", OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!?", b"hi!?"),
    Odd("length below zero", OK + b"Content-Length: -2\r\n\r\nhi", b"hi"),
    Odd("length in hex", OK + b"Content-Length: 0x2\r\n\r\nhi", b"hi"),
    Odd("length of 30 digits", OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\nhi", b"hi"),
    Odd("length too long", OK + b"Content-Length: 9\r\n\r\nhi", b"hi", truncated="disconnect", annotations=LOST),
    Odd("beyond the length", OK + b"Content-Length: 2\r\n\r\nhi and more", b"hi", beyond=9),
    Odd("beyond the length, then the end", CLOSING + b"Content-Length: 2\r\n\r\nhi and more", b"hi", beyond=9),
    Odd("neither length nor chunks", OK + b"\r\nhi", b"hi"),
    Odd("HTTP/1.0 until it closes", b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\nhi", b"hi"),
    Odd("chunks", CHUNKED + b"2\r\nhi\r\n1;x=y\r\n!\r\n0\r\n\r\n", b"hi!"),
    Odd("chunks and a trailer", CHUNKED + b"2\r\nhi\r\n0\r\nExpires: 0\r\nX: y\r\n\r\n", b"hi"),
    Odd("chunks by LF", CHUNKED + b"2\nhi\n0\n\n", b"hi"),
    Odd("chunk size with zeros and blanks", CHUNKED + b"0002  \r\nhi\r\n000\r\n\r\n", b"hi"),
    Odd(
        "chunks and a length",
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 99\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        b"hi",
    ),
    Odd("chunks, and more after them", CHUNKED + b"2\r\nhi\r\n0\r\n\r\nmore", b"hi", beyond=4),
    Odd("chunks without the last", CHUNKED + b"2\r\nhi\r\n", b"hi", truncated="disconnect", annotations=LOST),
    Odd("chunks without the last empty line", CHUNKED + b"2\r\nhi\r\n0\r\n", b"hi"),
    Odd("chunk cut", CHUNKED + b"5\r\nhi", b"hi", truncated="disconnect", annotations=LOST),
    Odd("chunk of 10^12", CHUNKED + b"e8d4a51000\r\nhi", b"hi", truncated="disconnect", annotations=LOST),
    Odd("a chunk that is none", CHUNKED + b"2\r\nhi\r\nzz\r\n", b"hi", truncated="disconnect", annotations=LOST),
    Odd("chunked only in name", CHUNKED + b"<html>hi</html>", b"<html>hi</html>"),
    Odd("chunked in capitals", OK + b"TRANSFER-ENCODING: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", b"hi"),
    Odd("coded, then chunked", OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", b"hi"),
    Odd("coded, not chunked", OK + b"Transfer-Encoding: gzip\r\n\r\nhi", b"hi"),
    Odd("lines by LF", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", b"hi"),
    Odd("lines by both", b"HTTP/1.1 200 OK\r\nA: b\nContent-Length: 2\r\n\nhi", b"hi"),
    Odd("folded lines", OK + b"X-Long: a\r\n  b\r\n\tc\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
    Odd("a folded length", OK + b"Content-Length:\r\n 2\r\n\r\nhi", b"hi"),
    Odd("a line without a colon", OK + b"no colon here\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
    Odd("a blank before the colon", OK + b"Content-Length : 2\r\n\r\nhi", b"hi"),
    Odd("no blank after the colon", OK + b"Content-Length:2\r\n\r\nhi", b"hi"),
    Odd("bytes of no charset", OK + b"X: \xff\xfe\x00\r\nContent-Length: 2\r\n\r\n\xff\x00", b"\xff\x00"),
    Odd("no reason", b"HTTP/1.1 404\r\nContent-Length: 2\r\n\r\nhi", b"hi", 404),
    Odd("a status nobody knows", b"HTTP/1.1 799 What\r\nContent-Length: 2\r\n\r\nhi", b"hi", 799),
    Odd("HTTP/2 in words", b"HTTP/2 200\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
    Odd("no version", b"HTTP/ 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
    Odd("HEAD with a length", OK + b"Content-Length: 99\r\n\r\n", b"", method="HEAD"),
    Odd("HEAD with a body", OK + b"Content-Length: 2\r\n\r\nhi", b"", method="HEAD", beyond=2),
    Odd("204", b"HTTP/1.1 204 No Content\r\n\r\n", b"", 204),
    Odd("204 with a body", b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nhi", b"", 204, beyond=2),
    Odd("304", b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 99\r\n\r\n', b"", 304),
    Odd("100 before it", OK + b"Content-Length: 2\r\n\r\nhi", b"hi", interim=CONTINUE),
    Odd("103 and 100 before it", OK + b"Content-Length: 2\r\n\r\nhi", b"hi", interim=HINTS + CONTINUE),
    Odd("101 nobody asked for", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nhi", b"hi", 101),
    Odd("gzip", OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(GZIPPED) + GZIPPED, GZIPPED),
    Odd("a head without an end", OK + b"A: b\r\n", b"", truncated="disconnect", annotations=LOST),
    Odd(
        "a redirect without a body", b"HTTP/1.1 301 Moved\r\nLocation: /a b\xe9\r\nContent-Length: 0\r\n\r\n", b"", 301
    ),
    Odd("two answers in one", (OK + b"Content-Length: 2\r\n\r\nhi") * 2, b"hi", beyond=len(OK) + 23),
    Odd("two answers, then the end", (CLOSING + b"Content-Length: 2\r\n\r\nhi") * 2, b"hi", beyond=len(CLOSING) + 23),
    Odd("large", OK + b"Content-Length: 1500000\r\n\r\n" + b"0123456789" * 150_000, b"0123456789" * 150_000),
    Odd("large, in chunks", CHUNKED + (b"3e8\r\n" + b"x" * 1000 + b"\r\n") * 1500 + b"0\r\n\r\n", b"x" * 1_500_000),
]

# They have no status line that can be read: the record keeps them, and they count as 200, as in browsers.
NOT_HTTP = ("notHttp",)
STATUSLESS = [
    Odd("HTTP/0.9", b"<html>hi</html>", b"<html>hi</html>", annotations=NOT_HTTP),
    Odd("another protocol", b"SSH-2.0-OpenSSH_9.2\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", annotations=NOT_HTTP),
    Odd("an empty line first", b"\r\n" + OK + b"\r\nhi", b"\r\n" + OK + b"\r\nhi", annotations=NOT_HTTP),
    Odd("a status of words", b"HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi", annotations=NOT_HTTP),
    Odd("a status of four digits", b"HTTP/1.1 2000\r\nContent-Length: 2\r\n\r\nhi", b"hi", annotations=NOT_HTTP),
]
