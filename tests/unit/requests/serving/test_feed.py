"""The feed of a job that serves requests: each message once, however often it comes; whole lines alone, after kills."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from warcmill.base import clock
from warcmill.crawl.job.job import Job
from warcmill.crawl.uri import make
from warcmill.errors import BadInput, Conflict, Unavailable
from warcmill.requests.serving.feed import DAYS, LONGEST, NAME, FedTarget, RequestFeed
from warcmill.requests.serving.scope import RequestScope
from warcmill.requests.serving.targets import RequestAudience, RequestTargets

FIRST_OF_NOVEMBER = 1_793_491_200


def targets(*places: str) -> list[tuple[str, dict[str, object]]]:
    return [(place, {"url": f"http://a.example/{place}"}) for place in places]


def numbers(feed: RequestFeed) -> list[tuple[int, str]]:
    found, _ = feed.read(0, 100)
    return [(one.number, one.place) for one in found]


def test_targets_are_read_by_their_numbers(tmp_path: Path) -> None:
    feed = RequestFeed(tmp_path / "job")
    assert (feed.read(0, 10), feed.size) == (([], 0), 0)
    assert feed.append(targets("a", "b", "c")) == 3
    found, after = feed.read(0, 2)
    assert [one.place for one in found] == ["a", "b"]
    (last,), end = feed.read(after, 10)
    assert (last.number, last.document, end) == (after, {"url": "http://a.example/c"}, feed.size)
    with pytest.raises(BadInput, match="no target begins there"):
        feed.read(5, 1)


def test_many_targets_are_read_at_once_and_those_that_the_feed_has_lost_are_empty(tmp_path: Path) -> None:
    feed = RequestFeed(tmp_path)
    assert [one.document for one in feed.each([7])] == [{}]
    feed.append([(str(number), {"url": "x" * (number % 7) * 9_000}) for number in range(200)])
    known, end = feed.read(0, 200)
    assert [*feed.each(one.number for one in reversed(known))] == known
    assert [*feed.each([known[150].number, end])] == [known[150], FedTarget(end, "", {})]


def test_a_message_that_comes_again_has_its_line_already(tmp_path: Path) -> None:
    first, second = RequestFeed(tmp_path), RequestFeed(tmp_path)
    assert first.append(targets("a", "b")) == 2
    assert second.append(targets("b", "c")) == 1
    assert first.append(targets("a", "c", "d", "d")) == 1
    assert RequestFeed(tmp_path).append(targets("a", "b", "c", "d")) == 0
    assert [place for _, place in numbers(first)] == ["a", "b", "c", "d"]


def test_a_line_that_a_kill_left_is_cut_off_and_never_read(tmp_path: Path) -> None:
    feed = RequestFeed(tmp_path)
    feed.append(targets("a"))
    whole = (tmp_path / NAME).read_bytes()
    for length in range(1, len(whole)):
        (tmp_path / NAME).write_bytes(whole + whole[:length])
        assert len(numbers(RequestFeed(tmp_path))) == 1
    assert RequestFeed(tmp_path).append(targets("b")) == 1
    assert numbers(feed) == [(0, "a"), (len(whole), "b")]


def test_a_disk_without_room_is_named_and_then_each_target_has_its_line_once(tmp_path: Path) -> None:
    """A limit of the size of files takes what it has room for, as a full disk does: a line, and a part of the next."""
    feed, (soft, hard) = RequestFeed(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    feed.append(targets("a"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (feed.size * 5 // 2, hard))
    try:
        for _ in range(2):
            with pytest.raises(Unavailable, match=f"{NAME} is unavailable: File too large"):
                feed.append(targets("b", "c", "d"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [place for _, place in numbers(feed)] == ["a", "b"]
    assert feed.append(targets("b", "c", "d")) == 2
    assert [place for _, place in numbers(feed)] == ["a", "b", "c", "d"]


@pytest.fixture
def day(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the day on which is appended."""
    return lambda day: monkeypatch.setattr(clock, "stamp", lambda: f"{day}000101")


def cut(folder: Path, day: Callable[[str], None], *names: str) -> RequestFeed:
    """A feed, to which each of these was appended on another day: the first one on the 1st."""
    feed = RequestFeed(folder)
    for number, name in enumerate(names, 1):
        day(f"202611{number:02}")
        assert feed.append(targets(name, *names[:number])) == 1, "what comes again has its line, of whichever day"
        if number == 1:
            os.utime(folder / NAME, (FIRST_OF_NOVEMBER, FIRST_OF_NOVEMBER))
    return feed


def test_it_is_cut_by_day_and_read_as_one(tmp_path: Path, day: Callable[[str], None]) -> None:
    feed = cut(tmp_path, day, "a", "b", "c")
    line = len((tmp_path / NAME).read_bytes())
    assert sorted(os.listdir(tmp_path / DAYS)) == [f"2026110{2 + n}-{(n + 1) * line:015}.jsonl" for n in range(2)]
    assert feed.append(targets("c", "d")) == 1, "of the same day"
    assert len(os.listdir(tmp_path / DAYS)) == 2
    for one in (feed, RequestFeed(tmp_path)):
        assert numbers(one) == [(0, "a"), (line, "b"), (2 * line, "c"), (3 * line, "d")]
        found, after = one.read(line, 2)
        assert ([target.place for target in found], after) == (["b", "c"], 3 * line)
        assert [target.place for target in one.read(after, 9)[0]] == ["d"]
        assert one.read(one.size, 9) == ([], 4 * line)
        assert [target.place for target in one.each([2 * line, 0, 3 * line, line, 9 * line])] == [*"abcd", ""]
        assert one.document(2 * line) == {"url": "http://a.example/c"}
        with pytest.raises(BadInput, match="no target begins there"):
            one.read(line + 5, 1)
    day("20261102")  # a clock that was set back
    assert feed.append(targets("e")) == 1
    assert len(os.listdir(tmp_path / DAYS)) == 2


def test_a_day_that_was_taken_away_is_lost_alone(tmp_path: Path, day: Callable[[str], None]) -> None:
    cut(tmp_path, day, "a", "b", "c")
    line = len((tmp_path / NAME).read_bytes())
    (tmp_path / DAYS / f"20261102-{line:015}.jsonl").unlink()
    feed = RequestFeed(tmp_path)
    assert [one.place for one in feed.each([0, line, 2 * line])] == ["a", "", "c"]
    assert [one.place for one in feed.read(2 * line, 9)[0]] == ["c"]
    with pytest.raises(BadInput, match="no target begins there"):
        feed.read(line, 9)
    assert feed.append(targets("d")) == 1
    assert [one.place for one in feed.read(2 * line, 9)[0]] == ["c", "d"]


def test_a_line_that_a_kill_left_is_cut_off_before_the_next_day_begins(
    tmp_path: Path, day: Callable[[str], None]
) -> None:
    feed = cut(tmp_path, day, "a")
    whole = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(whole + whole[:9])
    os.utime(tmp_path / NAME, (FIRST_OF_NOVEMBER, FIRST_OF_NOVEMBER))
    day("20261102")
    assert RequestFeed(tmp_path).append(targets("b")) == 1
    assert numbers(feed) == [(0, "a"), (len(whole), "b")]
    (tmp_path / DAYS / f"20261103-{2 * len(whole):015}.jsonl").touch()  # a kill before the first line
    day("20261104")
    assert RequestFeed(tmp_path).append(targets("c")) == 1
    assert numbers(feed)[2:] == [(2 * len(whole), "c")]


def test_what_an_earlier_version_appends_to_the_first_file_is_named(tmp_path: Path, day: Callable[[str], None]) -> None:
    feed = cut(tmp_path, day, "a", "b")
    first = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(2 * first)
    with pytest.raises(Conflict, match=f"{NAME}.*a process of an earlier version.*beyond byte {len(first)}"):
        feed.append(targets("c"))


def test_a_damaged_line_is_an_empty_document_and_the_next_ones_are_read(tmp_path: Path) -> None:
    feed = RequestFeed(tmp_path)
    feed.append(targets("a", "b"))
    data = bytearray((tmp_path / NAME).read_bytes())
    data[0] = 0
    (tmp_path / NAME).write_bytes(data)
    assert [one.document for one in feed.read(0, 9)[0]] == [{}, {"url": "http://a.example/b"}]


def test_a_document_that_is_too_long_is_refused_before_any_is_appended(tmp_path: Path) -> None:
    feed = RequestFeed(tmp_path)
    with pytest.raises(BadInput, match="are the most"):
        feed.append([*targets("a"), ("b", {"url": "x" * LONGEST})])
    assert feed.size == 0
    assert feed.append([("c", {"url": "x" * (LONGEST - 100)})]) == 1
    assert len(numbers(feed)) == 1


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "job")
    with pytest.raises(Unavailable, match="job"):
        RequestFeed(tmp_path / "job").append(targets("a"))


def test_the_uris_of_a_target_that_is_lost_are_refused_and_the_others_are_fetched(tmp_path: Path) -> None:
    feed = RequestFeed(tmp_path)
    document = {
        "url": "http://a.example/", "appid": "testapp", "crawlid": "c", "spiderid": "link", "maxdepth": 0,
        "priority": 1, "expires": 0, "useragent": "me/1", "cookie": None, "attrs": None, "allowed_domains": None,
        "allow_regex": None, "deny_regex": None, "deny_extensions": None,
    }  # fmt: skip
    feed.append([("a", document), ("b", document)])
    (_, second), _ = feed.read(0, 2)
    data = bytearray(feed.path.read_bytes())
    data[0] = 0
    feed.path.write_bytes(data)
    job = Job("ondemand", (), audiences=RequestTargets(feed.document))
    for number, is_there in ((0, False), (second.number, True), (5, False), (10**9, False)):
        uri = make("http://a.example/", source=f"target:{number}")
        found = job.of(uri)
        assert isinstance(audience := found.audience, RequestAudience)
        assert isinstance(found.scope, RequestScope)
        assert (audience.target.judge(uri) is None) is is_there
        assert (audience.target.headers == (("User-Agent", "me/1"),)) is is_there
    assert job.of(make("http://a.example/")) is job
