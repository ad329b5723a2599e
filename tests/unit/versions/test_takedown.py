"""What is taken down stays down: a state that lost decisions publishes, finds and sends nothing that they hide."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from indexing.searchable import Searchable
from indexing.text_archive import ONE, TWO, warc

from warcmill.backup import archive as backup
from warcmill.errors import BadInput, Conflict, NotReady, Unavailable, WarcmillError
from warcmill.extracts.text_workers import TextWorkers
from warcmill.layout import archived_path
from warcmill.stores import Store
from warcmill.stores.file import FileStore
from warcmill.versions import fold, hidden_list
from warcmill.versions.search import Query, search
from warcmill.web.archive import Archive as Pages

FIRST, SECOND = "decisions/access/000001.json", "decisions/access/000002.json"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Searchable]:
    """Version 2 of both indexes hides b.example; a third launch waits for its fold."""
    made = Searchable(tmp_path)
    with TextWorkers(1) as made.workers:
        made.add(ONE, {"a.warc.gz": warc({"a.example/": "x", "b.example/": "x"})})
        made.fold()
        hide(made, "example,b")
        made.fold()
        backup.back_up(made.state.store, made.store)
        made.add(TWO, {"c.warc.gz": warc({"c.example/": "x", "b.example/more": "x"})})
        yield made


def hide(archive: Searchable, surt: str) -> None:
    hidden_list.decide(archive.state.store, lambda: archive.store, surt, "order of a court", hides=True)


def urls(archive: Searchable) -> list[str]:
    return [one.url for one in search(archive.state.store, archive.index, Query(("x",))).best]


def remove(*paths: Path) -> None:
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def cut(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-200])


def lose_decisions(archive: Searchable) -> None:
    remove(archive.state.store.real("decisions"))


def lose_decisions_and_lists(archive: Searchable) -> None:
    remove(archive.state.store.real("decisions"), archive.state.store.real("versions"))


def lose_them_in_both(archive: Searchable) -> None:
    remove(archive.state.store.real("decisions"), archive.store.real(archived_path("decisions")))


def cut_one(archive: Searchable) -> None:
    cut(archive.state.store.real(FIRST))


def cut_the_store_s(archive: Searchable) -> None:
    cut(archive.store.real(archived_path(FIRST)))


def lose_the_first_of_two(archive: Searchable) -> None:
    hide(archive, "example,zzz")
    remove(archive.state.store.real(FIRST))


def lose_the_last_of_two(archive: Searchable) -> None:
    hide(archive, "example,zzz")
    remove(archive.state.store.real(SECOND))


def have_two_of_one_number(archive: Searchable) -> None:
    remove(archive.state.store.real("decisions"))
    base = archive.store.base
    base.rename(archive.base / "away")
    with pytest.raises(Unavailable):
        hide(archive, "example,y")
    (archive.base / "away").rename(base)


LOSSES: list[tuple[Callable[[Searchable], None], type[WarcmillError], str]] = [
    (lose_decisions, Conflict, f"state:{FIRST}: .*decision 1, which is not there: run 'warcmill restore'"),
    (lose_them_in_both, Conflict, f"state:{FIRST}: .*decision 1, which is not there: run 'warcmill restore'"),
    (lose_decisions_and_lists, Conflict, f"store:state/_archive/{FIRST}: the state lacks this decision"),
    (cut_one, BadInput, f"state:{FIRST}.*cut or altered; move it out of the state, then bring it back"),
    (cut_the_store_s, Conflict, f"state:{FIRST}: the store has another decision of this number"),
    (lose_the_first_of_two, BadInput, f"state:{FIRST}: it is missing, and decision 2 is there: bring it back"),
    (lose_the_last_of_two, Conflict, f"store:state/_archive/{SECOND}: the state lacks this decision"),
    (have_two_of_one_number, Conflict, "the first 1 decisions hide something else"),
]


@pytest.mark.parametrize(("lose", "kind", "why"), LOSSES)
def test_no_version_is_published_without_its_decisions(
    archive: Searchable, lose: Callable[[Searchable], None], kind: type[WarcmillError], why: str
) -> None:
    shown = archive.keys()
    lose(archive)
    for base in (False, True):
        with pytest.raises(kind, match=why):
            archive.fold(base=base)
    assert archive.keys() == shown == ["example,a)/"]
    assert archive.payloads.current().number == 2  # type: ignore[union-attr]


@pytest.mark.parametrize("lose", [lose_decisions, lose_decisions_and_lists, cut_one, lose_the_first_of_two])
def test_no_search_shows_what_a_lost_decision_hides(archive: Searchable, lose: Callable[[Searchable], None]) -> None:
    lose(archive)
    with pytest.raises(WarcmillError):
        urls(archive)
    pages = Pages(archive.state.store, lambda: archive.index, lambda: archive.store)
    with pytest.raises((Unavailable, Conflict, NotReady)):
        pages.replayed("20161019234428", "http://a.example/")


def test_restored_decisions_hide_again(archive: Searchable) -> None:
    lose_decisions_and_lists(archive)
    done = backup.restore(archive.state.store, archive.store)
    assert done.copied == (FIRST, "versions/cdx/000001.list", "versions/cdx/000002.list",
                           "versions/text/000001.list", "versions/text/000002.list")  # fmt: skip
    archive.fold()
    assert archive.keys() == ["example,a)/", "example,c)/"]
    assert urls(archive) == ["http://a.example/", "http://c.example/"]


def test_the_index_lost_too_is_made_again_without_what_is_hidden(archive: Searchable) -> None:
    lose_decisions_and_lists(archive)
    remove(archive.index.real("versions"))
    with pytest.raises(Conflict, match="the state lacks this decision"):
        archive.fold()
    backup.restore(archive.state.store, archive.store)
    archive.fold()
    assert archive.keys() == ["example,a)/", "example,c)/"]
    assert urls(archive) == ["http://a.example/", "http://c.example/"]


def test_with_the_store_away_it_is_taken_down_and_the_fold_says_what_it_does_not_know(archive: Searchable) -> None:
    archive.fold()
    data, base = archive.data, archive.store.base
    base.rename(archive.base / "away")

    def open_store() -> Store:
        return FileStore("store", base)

    with pytest.raises(Unavailable, match="Decision 2 stands in the state"):
        hidden_list.decide(archive.state.store, open_store, "example,c", "order of a court", hides=True)
    done = fold.fold(archive.state, open_store, archive.index, data, "file:///archive/warcs")
    assert (done.number, done.new) == (4, True)
    assert archive.keys() == ["example,a)/"]
    assert "nobody knows if the store has a decision that the state lacks" in done.troubles[0]
    lose_decisions_and_lists(archive)
    with pytest.raises(Unavailable, match="root 'store'"):
        fold.fold(archive.state, open_store, archive.index, data, "file:///archive/warcs")
    assert archive.keys() == ["example,a)/"]
