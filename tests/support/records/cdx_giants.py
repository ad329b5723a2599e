"""WARCs too large for memory, as streams: many tiny records, a long POST, URLs as long as a header may be."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from records.captures import FORM, REQUEST, capture, response
from records.warcs import END


class Stream:
    """A stream of parts."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._held = parts, b""

    def read(self, size: int, /) -> bytes:
        held, ahead = [self._held], len(self._held)
        while ahead < size and (part := next(self._parts, b"")):
            held.append(part)
            ahead += len(part)
        data = b"".join(held)
        self._held = data[size:]
        return data[:size]


def tiny_records(number: int = 60_000) -> Stream:
    """Captures with a block of one byte each."""
    record = capture("resource", "http://e.x/", b"x", "a/b")
    return Stream(record.replace(b"http://e.x/", b"http://e.x/%d" % at) for at in range(number))


def long_post(megabytes: int = 160) -> Stream:
    """A response, and its request with a body of many megabytes."""
    head = b"POST / HTTP/1.1\r\nContent-Type: " + FORM.encode() + b"\r\nContent-Length: %d" % (megabytes << 20) + END
    length = len(head) + (megabytes << 20)
    record = capture("request", "http://e.x/", b"", REQUEST, WARC_Concurrent_To="<r>")
    record = record.removesuffix(END + END).replace(b"Content-Length: 0", b"Content-Length: %d" % length) + END
    parts = (response("http://e.x/", WARC_Record_ID="<r>"), record, head, *[b"a" * (1 << 20)] * megabytes, END)
    return Stream(iter(parts))


def long_urls(number: int = 40) -> Stream:
    """Captures with a URL of almost a megabyte each, and requests for them."""
    return Stream(response("http://e.x/" + "a" * 900_000 + str(at), WARC_Record_ID=f"<{at}>") for at in range(number))


if __name__ == "__main__":  # for a run at full size: python cdx_giants.py tiny_records 5000000 > giant.warc
    stream = globals()[sys.argv[1]](int(sys.argv[2]))
    while data := stream.read(1 << 20):
        sys.stdout.buffer.write(data)
