"""A minter that is asked over a real socket: what it gives, and everything else that it may answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from packing.minters import Answer, Minter, serving

from warcmill.clients import minter
from warcmill.errors import BadInput, Mismatch, Unavailable, WarcmillError


@pytest.fixture
def service() -> Iterator[Minter]:
    with serving() as made:
        yield made


def test_it_gives_as_many_as_are_asked_for(service: Minter) -> None:
    assert minter.arks(service.url, 2) == ("ark:12345/x50000000", "ark:12345/x50000001")
    assert service.asked == ["/mint?key=s3cret&arks=2"]
    assert minter.arks(service.url, 0) == ()


def test_many_are_asked_for_in_parts(service: Minter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minter, "MOST", 4)
    assert len(set(minter.arks(service.url, 10))) == 10
    assert [path[-1] for path in service.asked] == ["4", "4", "2"]


@pytest.mark.parametrize(
    ("answer", "status", "error", "why"),
    [
        (lambda _: b"ark:12345/x1\n", 200, Mismatch, "expected 2 ARKs, found 1"),
        (lambda _: b"ark:12345/x1\n" * 2, 200, Mismatch, "expected 2 different ones, found 1"),
        (lambda _: b"ark:12345/x%d " * 3 % (1, 2, 3), 200, Mismatch, "expected 2 ARKs, found 3"),
        (lambda _: b"", 200, Mismatch, "found 0"),
        (lambda _: b"<html>Log in</html>", 200, BadInput, "'<html>Log' where an ARK should be"),
        (lambda _: b"\xff\xfe", 200, BadInput, "not text in ASCII"),
        (lambda _: b"a" * 100_000, 200, BadInput, "more than 516 bytes"),
        (lambda _: b"no", 503, Unavailable, "answered 503"),
        (lambda _: b"", 302, Unavailable, "answered 302"),
    ],
)
def test_another_answer_is_refused_and_its_secret_is_not_shown(
    service: Minter, answer: Answer, status: int, error: type[WarcmillError], why: str
) -> None:
    service.answer, service.status = answer, status
    with pytest.raises(error, match=why) as raised:
        minter.arks(service.url, 2)
    assert "s3cret" not in str(raised.value)
    assert "127.0.0.1" in str(raised.value)


def test_nobody_there_is_an_outage() -> None:
    with pytest.raises(Unavailable, match="does not answer: ConnectionError"):
        minter.arks("http://127.0.0.1:9/mint", 1)


def test_one_that_drips_is_given_up_in_time(service: Minter) -> None:
    service.drip = True
    with pytest.raises(Unavailable, match="was not complete when the time was over"):
        minter.arks(service.url, 1, seconds=0.2)
