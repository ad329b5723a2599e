"""A crawl by a feed that people edit here: paused targets, a save that a kill cut short, an edit by hand, an outage."""

from __future__ import annotations

import json
from pathlib import Path

import luigi
import pytest
from configured import configured
from line import Line, line_at

from tasks.config import feed as feeds
from tasks.line import feed_of, open_line
from tasks.pulse import CrawlFeed
from warcmill.errors import Unavailable
from warcmill.pulse import feed, feed_edits

SCHEDULES = [{"startDate": "2026-01-01", "frequency": "DAILY"}]
DUE = "202611{:02}060000"


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    made = line_at(tmp_path)
    targets = ({"id": one, "seeds": [f"http://{one}.example/"], "schedules": SCHEDULES} for one in (1, 2, 3))
    file_of(made).write_text("".join(f"{json.dumps(one)}\n" for one in targets))
    fed = f"[feed]\njobs=daily\nsource={file_of(made)}\ncontact=http://archive.example/\n"
    engine = "[engine.own]\nkind=warcmill\njobs=daily\n[job.daily]\nfrequency=daily\nstart=2026-01-01\n"
    text = made.config.read_text().partition("\n[engine")[0].partition("\n[job.daily]")[0]
    made.config.write_text(f"{text}\n{engine}{fed}")
    configured(monkeypatch, made.config)
    return made


def file_of(line: Line) -> Path:
    return line.config.parent / "feed.jsonl"


def fed(line: Line, day: int) -> str:
    """The seeds of the crawl that is due on a day."""
    crawl = CrawlFeed(job="daily", due=DUE.format(day))
    assert luigi.build([crawl], local_scheduler=True, no_lock=True)
    recipe = feeds.recipe(open_line().settings, "daily")
    files, _ = feed.prepare(line.state, feeds.due_of("daily", crawl.due), recipe)
    return files["seeds.txt"].decode()


def edit(do: str, *ids: str) -> None:
    feed_of_job = feed_of(open_line(), "daily")
    rules = feed_of_job.rules(may_all=True)
    feed_edits.pause(feed_of_job, ids, rules, who="ann", why="", paused=do == "pause")


def test_a_paused_target_is_not_due_until_it_is_resumed(line: Line) -> None:
    assert fed(line, 21).split() == [f"http://{one}.example/" for one in (1, 2, 3)]
    edit("pause", "1", "2")
    assert fed(line, 22) == "http://3.example/\n", "who pauses more than half has not lost them"
    edit("resume", "2")
    assert fed(line, 23).split() == ["http://2.example/", "http://3.example/"]


def test_a_save_that_a_kill_cut_short_is_completed_before_the_crawl(line: Line) -> None:
    edit("pause", "1")
    mark, file = file_of(line).with_name(".feed.jsonl.edition.json"), file_of(line)
    before = mark.read_bytes(), file.read_bytes()
    edit("pause", "2")
    mark.write_bytes(before[0])
    file.write_bytes(before[1])
    assert fed(line, 21) == "http://3.example/\n"
    assert file.read_text().count('"paused": true') == 2


def test_an_edit_by_hand_is_an_edition_of_the_crawl_that_reads_it(line: Line) -> None:
    edit("pause", "1")
    file_of(line).write_text(file_of(line).read_text().replace("2.example", "two.example"))
    assert "http://two.example/" in fed(line, 21)
    newest = next(feed_of(open_line(), "daily").editable().editions.all())
    assert (newest.number, newest.who, newest.why) == (3, "", "edited by hand")


def test_a_feed_that_nobody_edits_here_has_no_editions(line: Line) -> None:
    fed(line, 21)
    assert feed_of(open_line(), "daily").editable().editions.newest() is None
    assert not file_of(line).with_name(".feed.jsonl.edition.json").exists()


def test_while_the_store_is_away_nobody_saves_and_the_crawl_goes_on(line: Line) -> None:
    edit("pause", "1")
    line.folders["store"].rename(line.folders["store"].with_name("away"))
    before = file_of(line).read_bytes()
    done = line.warcmill("feed", "pause", "daily", "2")
    assert (done.returncode, file_of(line).read_bytes()) == (4, before)
    file_of(line).write_bytes(before.replace(b"2.example", b"two.example"))
    assert "http://two.example/" in fed(line, 21)


def test_a_disk_that_is_not_mounted_is_no_edit_of_the_feed_on_it(line: Line) -> None:
    edit("pause", "1")
    file, mark = file_of(line), file_of(line).with_name(".feed.jsonl.edition.json")
    before = file.read_bytes(), mark.read_bytes()
    file.unlink()
    mark.unlink()
    feed_of_job = feed_of(open_line(), "daily").editable()
    with pytest.raises(Unavailable, match="mount the disk"):
        feed_of_job.settle()
    assert not file.exists()
    assert not mark.exists()
    file.write_bytes(before[0])
    mark.write_bytes(before[1])
    newest = feed_of_job.settle()
    assert newest
    assert newest.why != "edited by hand"
