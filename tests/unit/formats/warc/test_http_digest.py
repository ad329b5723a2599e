"""formats/digest: labelled digests in each encoding."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.formats.warc import http

ALGORITHMS = ["md5", "sha1", "sha256", "sha384", "sha512"]


@given(st.sampled_from(ALGORITHMS), st.binary())
def test_base32_and_hexadecimal_of_either_case_mean_the_same(algorithm: str, data: bytes) -> None:
    value = hashlib.new(algorithm, data).digest()
    encodings = [base64.b32encode(value), base64.b32encode(value).rstrip(b"="), value.hex().encode()]
    for text in [case for encoded in encodings for case in (encoded, encoded.lower(), encoded.upper())]:
        declared = http.parse(algorithm.encode() + b":" + text)
        assert declared is not None
        assert declared.value == value
        computed = declared.new()
        computed.update(data)
        assert computed.digest() == value


@given(st.sampled_from(ALGORITHMS), st.binary())
def test_base64_means_the_same(algorithm: str, data: bytes) -> None:
    value = hashlib.new(algorithm, data).digest()
    for text in (base64.b64encode(value), base64.b64encode(value).rstrip(b"=")):
        declared = http.parse(algorithm.encode() + b":" + text)
        assert declared is not None
        assert declared.value == value


@pytest.mark.parametrize("label", [b"SHA1", b"sha-1", b"Sha-1"])
def test_labels(label: bytes) -> None:
    declared = http.parse(label + b":" + b"A" * 32)
    assert declared is not None
    assert declared.value == bytes(20)


@given(st.sampled_from(ALGORITHMS), st.binary())
def test_each_way_to_write_a_digest_is_comparable_with_the_others(algorithm: str, data: bytes) -> None:
    value, label = hashlib.new(algorithm, data).digest(), algorithm.encode()
    usual = label + b":" + base64.b32encode(value).rstrip(b"=")
    for text in (base64.b32encode(value).lower(), value.hex().encode(), value.hex().upper().encode()):
        assert http.comparable(label.upper() + b":" + text) == usual
    assert http.comparable(usual) == usual


@pytest.mark.parametrize("text", [b"", b"sha1", b"sha1:x", b"blake3:ABC", b"B" * 32])
def test_what_is_no_known_digest_is_compared_as_it_is(text: bytes) -> None:
    assert http.comparable(text) == text


@pytest.mark.parametrize("text", [b"blake3:abc", b":abc", b"crc32c:00000000"])
def test_unknown_algorithms_are_kept_apart(text: bytes) -> None:
    assert http.parse(text) is None


@pytest.mark.parametrize(
    "text",
    [b"", b"sha1", b"sha1:", b"sha1:" + b"A" * 31, b"sha1:" + b"A" * 33, b"sha1:" + b"a" * 39, b"sha1:" + b"g" * 40]
    + [b"sha1:" + bad + b"A" * 31 for bad in (b"1", b"8", b" ", b"_", b"+", b"-", b"\0", b"\xff")],
)
def test_what_is_no_digest(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 int() and fromhex() speak for themselves
        http.parse(text)
