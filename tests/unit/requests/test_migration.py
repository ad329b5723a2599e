"""Rates and bans of a file, as messages: an invalid file changes nothing."""

from __future__ import annotations

import pytest

from warcmill.errors import BadInput
from warcmill.requests.accounts import DomainPolicy, DomainRate
from warcmill.requests.migration import policy_messages

KNOWN = DomainPolicy({"a.example": DomainRate(60, 60, 1.0)}, frozenset({"b.example"}))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "all would be removed"),
        (b"\xff\xfe", "all would be removed"),
        (b"domains: [\n", "it is not YAML"),
        (b"text\n", "no 'domains' and no 'blacklist'"),
        (b"domains: [a.example]\n", "not a table of domains"),
        (b"domains:\n  c.example: {hits: 5, window: 60}\n  a.example:\n", "a.example has no rate"),
        (b"domains:\n  a.example: {hits: 60}\n", "a.example has no rate"),
        (b"domains:\n  a.example: {hits: x, window: 60}\n", "a.example has no rate"),
        (b"domains:\n  a.example: {hits: 0, window: 60}\n", "a.example has no rate"),
        (b"domains:\n  a.example: {hits: 1, window: 2026-11-27}\n", "a.example has no rate"),
        (b"domains:\n  a.example: {hits: 1, window: 60, scale: .inf}\n", "a.example has no rate"),
        (b"domains:\n  a.example: {window: 60, hits: 0x%b}\n" % (b"f" * 5_000), "a.example has no rate"),
        (b"domains:\n  a.example: {window: 60, hits: &a [*a]}\n", "a.example has no rate"),
        (b"domains:\n  ? 0x%b\n  : {hits: 1, window: 60}\n" % (b"f" * 5_000), "a domain that is not text"),
        (b"blacklist: [0x%b]\n" % (b"f" * 5_000), "a domain that is not text"),
    ],
)
def test_a_file_that_is_no_policy_is_refused_whole(text: bytes, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        list(policy_messages(text, "rates.yml", KNOWN))


def test_a_file_that_says_so_removes_all() -> None:
    found = [(one["action"], one["domain"]) for one in policy_messages(b"domains: {}\n", "rates.yml", KNOWN)]
    assert found == [("domain-remove", "a.example"), ("blacklist-remove", "b.example")]
