"""stores/promise: what was promised of a source, and asked of a function once."""

from __future__ import annotations

import pytest

from warcmill.errors import Mismatch, Unavailable
from warcmill.stores import Promise


def test_a_digest_is_compared_with_the_length() -> None:
    promise = Promise(3, "abc")
    assert not promise.is_judged
    promise.check("a", 3, "abc")
    for size, sha512 in ((2, "abc"), (3, "abd")):
        with pytest.raises(Mismatch, match=r"^a, while it was copied \(bytes, sha512\): expected \(3, 'abc'\), found"):
            promise.check("a", size, sha512)


def test_a_function_is_asked_once_however_often_the_bytes_are_sent() -> None:
    asked: list[str] = []
    promise = Promise(3, lambda sha512: not asked.append(sha512))  # type: ignore[func-returns-value]
    assert promise.is_judged
    with pytest.raises(Mismatch, match=r"^a, while it was copied \(bytes\): expected 3, found 2$"):
        promise.check("a", 2, "cut")
    promise.check("a", 3, "abc")
    promise.check("a", 3, "abc")
    assert asked == ["abc"]
    with pytest.raises(Mismatch, match=r"while it was copied a second time .*expected abc, found abd"):
        promise.check("a", 3, "abd")
    assert asked == ["abc"]


def test_what_a_function_refuses_is_named_by_its_digest() -> None:
    promise = Promise(3, lambda _: False)
    refused = r"^a, while it was copied \(sha512\): expected one that the caller accepts, found abc, which it refused$"
    with pytest.raises(Mismatch, match=refused):
        promise.check("a", 3, "abc")


def test_a_function_that_failed_has_accepted_nothing() -> None:
    answers = iter((Unavailable("the list", "is away"), True))

    def ask(_: str) -> bool:
        answer = next(answers)
        if isinstance(answer, Unavailable):
            raise answer
        return answer

    promise = Promise(3, ask)
    with pytest.raises(Unavailable):
        promise.check("a", 3, "abc")
    promise.check("a", 3, "abc")
    assert next(answers, None) is None
