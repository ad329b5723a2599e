"""The digests of a record, computed by the code of neither reader."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io

import pytest
from records.warcs import chunked, http, record, sha1

from warcmill.errors import BadInput
from warcmill.formats.warc.declared_digests import BLOCK, PAYLOAD, unfit

BODY = b"<p>Hello.</p>" * 9000  # longer than what is inflated at a time
BLOCK_BYTES = http(BODY)
SHA256 = hashlib.sha256(BODY).digest()


@pytest.mark.parametrize(
    "payload",
    [
        sha1(BODY),
        sha1(BODY).lower(),
        "SHA-1:" + hashlib.sha1(BODY, usedforsecurity=False).hexdigest().upper(),
        "md5:" + hashlib.md5(BODY, usedforsecurity=False).hexdigest(),
        "sha256:" + base64.b64encode(SHA256).decode(),
        "sha256:" + base64.b32encode(SHA256).decode(),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_digest_in_any_spelling_is_that_of_the_bytes(payload: str, packed: bool) -> None:
    data = record(block=BLOCK_BYTES, payload=payload, digest=sha1(BLOCK_BYTES))
    assert unfit(io.BytesIO(gzip.compress(data) if packed else data)) == frozenset()


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (record(block=BLOCK_BYTES, payload=sha1(b"x"), digest=sha1(BLOCK_BYTES)), {PAYLOAD}),
        (record(block=BLOCK_BYTES, payload=sha1(BODY), digest=sha1(BODY)), {BLOCK}),
        (record(block=http(chunked(BODY)), payload=sha1(BODY)), {PAYLOAD}),
        (record(block=BLOCK_BYTES, payload=sha1(BODY), length=len(BLOCK_BYTES) + 99), {PAYLOAD}),
        (record("resource", BODY, payload=sha1(BODY), http=False), set[str]()),
        (record(block=http(b""), payload=sha1(b"")), set[str]()),
    ],
)
def test_which_digests_do_not_fit(data: bytes, wrong: set[str]) -> None:
    assert unfit(io.BytesIO(gzip.compress(data))) == wrong


def test_what_follows_the_record_is_not_read() -> None:
    data = record(block=BLOCK_BYTES, payload=sha1(BODY))
    assert unfit(io.BytesIO(gzip.compress(data) + gzip.compress(data))) == frozenset()
    assert unfit(io.BytesIO(data + data)) == frozenset()


@pytest.mark.parametrize(
    "data", [b"", b"WARC/1.0\r\n\r\n", gzip.compress(b"x"), gzip.compress(BODY)[:9] + b"\xff" * 99]
)
def test_no_record(data: bytes) -> None:
    with pytest.raises(BadInput):
        unfit(io.BytesIO(data))


@pytest.mark.parametrize("payload", ["crc99:1", "shake_128:00", "x\xe9:1"])
def test_an_unknown_algorithm_is_left_out(payload: str) -> None:
    data = record(block=BLOCK_BYTES, payload=payload, digest=sha1(b"x"))
    assert unfit(io.BytesIO(data)) == {BLOCK}
