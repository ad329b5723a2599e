"""Edits of a job's papers: saved as editions, by two at once, undone; nothing is written of what cannot be taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from warcmill.crawl.job.form import JobForm
from warcmill.errors import BadInput, NewerEdition, NotReady, Unavailable
from warcmill.markers import job_edits
from warcmill.markers.editions import JobEditions
from warcmill.markers.job_edits import SavedPapers, leave_out, of_form, of_texts, opened, save
from warcmill.markers.papers import JobPapers
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

TOML, SEEDS = b"# ours\nhops = 3\n", b"http://a.example/\n"


@pytest.fixture
def papers(tmp_path: Path) -> JobPapers:
    (tmp_path / "jobs/news").mkdir(parents=True)
    sentinel.adopt({"state": tmp_path / "state", "store": tmp_path / "store"})
    (tmp_path / "jobs/news/crawl.toml").write_bytes(TOML)
    (tmp_path / "jobs/news/seeds.txt").write_bytes(SEEDS)
    state = FileStore("state", tmp_path / "state")
    return JobPapers(tmp_path / "jobs/news", JobEditions(state, lambda: FileStore("store", tmp_path / "store"), "news"))


def read(papers: JobPapers) -> bytes:
    return (papers.folder / "crawl.toml").read_bytes()


def numbers(papers: JobPapers) -> list[tuple[object, object]]:
    return [(one.number, one.who) for one in papers.editions.all()]


def test_a_form_is_an_edition_after_what_was_edited_by_hand(papers: JobPapers) -> None:
    saved = save(papers, of_form({"title": "News", "hops": "4"}), who="ada", why="less")
    assert saved == SavedPapers(2, ["crawl.toml"], ["hops"], [])
    assert read(papers) == b'# ours\nhops = 4\n\n[about]\ntitle = "News"\n'
    assert numbers(papers) == [(2, "ada"), (1, "")]
    again = save(papers, of_form({"hops": "4"}), who="ada", why="")
    assert (again.edition, again.changed) == (2, []), "what changes nothing makes no edition"


def test_of_two_who_save_the_second_sees_it_and_nothing_is_written(papers: JobPapers) -> None:
    save(papers, of_form({"hops": "4"}), who="ada", why="")
    first, second = opened(papers), opened(papers)
    save(papers, of_form({"hops": "5"}), who="ada", why="", base=first)
    with pytest.raises(NewerEdition) as caught:
        save(papers, of_form({"hops": "6"}), who="ben", why="", base=second)
    assert (caught.value.number, caught.value.who, read(papers)) == (3, "ada", b"# ours\nhops = 5\n")
    saved = save(
        papers, of_form({"addresses": "http://b.example/\n", "keep": "listed"}), who="ben", why="", base=second
    )
    assert saved.changed == ["seeds.txt", "surts.txt"] or saved.changed == ["seeds.txt"], "they are other papers"
    assert read(papers) == b"# ours\nhops = 5\n"


def test_an_edit_by_hand_meanwhile_is_kept(papers: JobPapers) -> None:
    base = opened(papers)
    (papers.folder / "crawl.toml").write_bytes(b"hops = 9\n")
    with pytest.raises(NewerEdition):
        save(papers, of_form({"hops": "6"}), who="ben", why="", base=base)
    assert read(papers) == b"hops = 9\n"


@pytest.mark.parametrize(
    ("fields", "may_all", "why"),
    [
        ({"hops": "999"}, True, "crawl.toml, line 2: hops"),
        ({"addresses": ""}, True, "seeds.txt"),
        ({"addresses": "http://10.0.0.1/\n"}, True, "line 1: http://10.0.0.1/: an inside address: private"),
        ({"robots": "ignore"}, False, "robots: needs the role operator"),
        ({"allow_private": "10.0.0.0/8"}, False, "allow_private: needs the role operator"),
        ({"nothing": "1"}, True, "there is no such field"),
    ],
)
def test_what_cannot_be_taken_is_not_written(
    papers: JobPapers, fields: dict[str, str], may_all: bool, why: str
) -> None:
    with pytest.raises(BadInput) as caught:
        save(papers, of_form(fields), who="ada", why="", may_all=may_all)
    assert why in str(caught.value)
    assert (read(papers), numbers(papers)) == (TOML, [(1, "")])


def test_an_operator_lets_inside_addresses_in(papers: JobPapers) -> None:
    saved = save(papers, of_form({"addresses": "http://10.0.0.1/\n", "allow_private": "10.0.0.0/8"}), who="ada", why="")
    assert "crawl.toml" in saved.changed
    kept = save(papers, of_form({"hops": "2"}), who="ben", why="", may_all=False)
    assert kept.changed == ["crawl.toml"], "what an operator has set stays"


def test_texts_are_papers_and_an_empty_one_is_taken_away(papers: JobPapers) -> None:
    save(
        papers,
        of_texts({"crawl.toml": "# theirs\r\nhops = 5\r\n", "exclude.txt": "http://(example,a,)/x\n"}),
        who="a",
        why="",
    )
    assert read(papers) == b"# theirs\nhops = 5\n"
    assert (papers.folder / "exclude.txt").exists()
    saved = save(papers, of_texts({"exclude.txt": ""}), who="a", why="")
    assert (saved.changed, (papers.folder / "exclude.txt").exists()) == (["exclude.txt"], False)
    with pytest.raises(BadInput, match=r"crawl\.toml, line 1: it is not TOML"):
        save(papers, of_texts({"crawl.toml": "hops =\n"}), who="a", why="")


def test_undo_is_a_new_edition(papers: JobPapers) -> None:
    with pytest.raises(NotReady):
        job_edits.undo(papers, who="ada", why="")
    save(papers, of_form({"hops": "4"}), who="ada", why="")
    save(papers, of_form({"hops": "5", "leave_out": "x\n"}), who="ada", why="")
    assert job_edits.undo(papers, who="ben", why="", seen=3).number == 4
    assert read(papers) == b"# ours\nhops = 4\n"
    assert job_edits.undo(papers, who="ben", why="", to=1).why == "back to edition 1"
    assert read(papers) == TOML
    with pytest.raises(NewerEdition):
        job_edits.undo(papers, who="ben", why="", seen=4)
    assert numbers(papers)[0] == (5, "ben")


def test_a_new_job_is_its_first_edition(tmp_path: Path, papers: JobPapers) -> None:
    editions = JobEditions(FileStore("state", tmp_path / "state"), lambda: FileStore("store", tmp_path / "store"), "b")
    fresh = JobPapers(tmp_path / "jobs/b", editions)
    saved = save(fresh, of_form({"addresses": "b.example\n", "keep": "host"}), who="ada", why="new")
    assert (saved.edition, saved.changed) == (1, ["crawl.toml", "seeds.txt", "surts.txt"])
    assert opened(fresh).form == JobForm(
        addresses="https://b.example/\n", keep="folder", prefixes="+http://(example,b,)/\n+http://(example,b,www,)/\n"
    ), "the host of an address without a path is its folder"


def test_without_the_store_nothing_is_written(tmp_path: Path, papers: JobPapers) -> None:
    save(papers, of_form({"hops": "4"}), who="ada", why="")
    (tmp_path / "store").rename(tmp_path / "away")
    with pytest.raises(Unavailable):
        save(papers, of_form({"hops": "5"}), who="ada", why="")
    assert read(papers) == b"# ours\nhops = 4\n"


def test_a_title_is_an_edition_and_an_empty_one_is_refused(papers: JobPapers) -> None:
    assert job_edits.rename(papers, " News  of us ", who="ada").changed == ["crawl.toml"]
    assert b'title = "News of us"' in read(papers)
    assert job_edits.rename(papers, "News of us", who="ada").changed == []
    with pytest.raises(BadInput, match="it is empty"):
        job_edits.rename(papers, " ", who="ada")


def test_a_deleted_job_has_no_paper_until_it_is_brought_back(papers: JobPapers) -> None:
    made = job_edits.delete(papers, who="ada")
    assert made
    assert (made.number, made.why, [*made.papers]) == (2, "deleted", [])
    assert {path.name for path in papers.folder.iterdir()} == {"edition.json"}
    assert job_edits.delete(papers, who="ben") is None, "the second of two windows changes nothing"
    job_edits.undo(papers, who="ada", why="")
    assert read(papers) == TOML
    assert numbers(papers) == [(3, "ada"), (2, "ada"), (1, "")]


def test_a_deletion_that_a_kill_cut_short_is_completed(papers: JobPapers) -> None:
    newest = papers.settle()
    assert newest
    papers.editions.save(dict.fromkeys(newest.papers), who="ada", why="deleted", made_from=1)  # no file has changed yet
    assert read(papers) == TOML
    assert job_edits.delete(papers, who="ada") is None
    assert {path.name for path in papers.folder.iterdir()} == {"edition.json"}


def test_nothing_is_deleted_while_the_store_is_away(papers: JobPapers, tmp_path: Path) -> None:
    papers.settle()
    (tmp_path / "store").rename(tmp_path / "away")
    with pytest.raises(Unavailable):
        job_edits.delete(papers, who="ada")
    assert read(papers) == TOML


def test_a_rule_is_left_out_beside_what_others_saved_and_once(papers: JobPapers) -> None:
    begun = opened(papers)
    for rule in ("calendar", "http://(example,a,)/old/", "re: (a+)+$"):
        assert leave_out(papers, rule, who="ada").changed
    assert opened(papers).form.leave_out == "calendar\nre: (a+)+$\nhttp://(example,a,)/old/\n"
    assert not leave_out(papers, "calendar", who="ben").changed
    assert not leave_out(papers, "http://(example,a,)/old/1", who="ben").changed, "a shorter one has it"
    with pytest.raises(NewerEdition):
        save(papers, of_form({"leave_out": "print\n"}), who="ben", why="", base=begun)
    assert [one.why for one in papers.editions.all()][:2] == [
        "leave out re: (a+)+$",
        "leave out http://(example,a,)/old/",
    ]
    with pytest.raises(BadInput):
        leave_out(papers, "re: (", who="ada")


def test_a_job_without_papers_is_named_with_what_writes_them(papers: JobPapers) -> None:
    for name in ("crawl.toml", "seeds.txt"):
        (papers.folder / name).unlink()
    with pytest.raises(NotReady, match="warcmill crawl URL --job news"):
        leave_out(papers, "calendar", who="ada")
