"""The scope of a group: read from a folder, and written into the papers of a job."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from warcmill.clusters import scopes
from warcmill.errors import BadConfig, BadInput, NotReady, Unavailable, WarcmillError

SURTS = "+http://(org,example,\n"
OWN = """\
# of ours
endless = true
hops = 3
expires = 2030-01-01T00:00:00Z

[[settings]]
prefixes = ["http://(org,example,"]
robots = "ignore"
[settings.politeness]
least = 10
"""


def papers(folder: Path, surts: str | None = SURTS, exclude: str | None = None, toml: str | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in (("surts.txt", surts), ("exclude.txt", exclude), ("crawl.toml", toml)):
        if text is not None:
            (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"surts": None}, "surts.txt: is not there; it has the SURT prefixes"),
        ({"surts": "nonsense\n"}, "surts.txt: 'nonsense' is not a SURT prefix"),
        ({"surts": "# none\n"}, "surts.txt: has no SURT prefix in it"),
        ({"exclude": "x\n"}, "exclude.txt: 'x' is not a SURT prefix"),
        ({"toml": "hopps = 3\n"}, "crawl.toml hopps: there is no such key"),
        ({"toml": 'patterns = ["("]\n'}, "patterns"),
        ({"toml": "hops = 300\n"}, "crawl.toml hops: is 300"),
        ({"toml": "[traps]\nwidth = 1\n"}, "crawl.toml [traps] width: there is no such key"),
        ({"toml": "nonsense"}, "crawl.toml: it is not TOML"),
    ],
)
def test_a_scope_that_no_job_could_be_crawled_by_is_refused_by_name(
    tmp_path: Path, texts: dict[str, str], words: str
) -> None:
    with pytest.raises((BadInput, BadConfig)) as error:
        scopes.read_folder(papers(tmp_path / "scope", **texts))
    assert words in str(error.value)
    assert str(tmp_path / "scope") in str(error.value)


def test_a_paper_that_is_too_large_is_refused_by_name(tmp_path: Path) -> None:
    with papers(tmp_path / "scope").joinpath("exclude.txt").open("wb") as file:
        file.truncate(scopes.LARGEST + 1)
    with pytest.raises(BadInput, match=r"exclude\.txt: is larger than"):
        scopes.read_folder(tmp_path / "scope")


def test_only_keys_of_the_scope_are_taken_and_all_others_of_the_job_stay(tmp_path: Path) -> None:
    scope = scopes.read_folder(papers(tmp_path / "scope", toml='workers = 7\npatterns = ["a"]\n[traps]\ndepth = 5\n'))
    assert scope.keys == {"patterns": ["a"], "traps": {"depth": 5}}
    job = papers(tmp_path / "job", toml=OWN)
    assert scopes.put(job, "daily", scope) == ["crawl.toml.before"]
    found, before = (tomllib.loads(text) for text in ((job / "crawl.toml").read_text(), OWN))
    del before["hops"]  # it has its default for all
    assert found == {**before, "patterns": ["a"], "traps": {"depth": 5}}
    assert (job / "crawl.toml.before").read_text() == OWN
    assert scopes.put(job, "daily", scope) == []


def test_what_a_person_has_edited_is_kept_each_time_and_what_the_centre_has_is_not(tmp_path: Path) -> None:
    first = scopes.read_folder(papers(tmp_path / "scope"))
    second = scopes.read_folder(papers(tmp_path / "scope", surts=f"{SURTS}+http://(org,example2,\n"))
    job = papers(tmp_path / "job", toml="endless = true\n")
    assert scopes.put(job, "daily", first) == []
    assert scopes.put(job, "daily", second, first) == []
    for text, name in (("a", "surts.txt.before"), ("b", "surts.txt.2.before"), ("a", "surts.txt.before")):
        (job / "surts.txt").write_text(f"{SURTS}# {text}\n")
        assert scopes.put(job, "daily", second, second) == [name]
        assert (job / "surts.txt").read_bytes() == second.surts
    assert sorted(path.name for path in job.iterdir()) == [
        "crawl.toml", "surts.txt", "surts.txt.2.before", "surts.txt.before",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("toml", "error"), [(None, NotReady), ("nonsense", BadConfig), ("hopps = 1\n", BadConfig)], ids=str
)
def test_nothing_is_written_into_a_job_that_could_not_be_crawled(
    tmp_path: Path, toml: str | None, error: type[WarcmillError]
) -> None:
    scope = scopes.read_folder(papers(tmp_path / "scope", exclude="http://(org,example,)/a\n"))
    job = papers(tmp_path / "job", surts="+http://(org,other,\n", toml=toml)
    with pytest.raises(error):
        scopes.put(job, "daily", scope)
    assert (job / "surts.txt").read_text() == "+http://(org,other,\n"
    assert not (job / "exclude.txt").exists()


def test_a_disk_that_takes_nothing_is_named_and_the_paper_stays(tmp_path: Path) -> None:
    scope = scopes.read_folder(papers(tmp_path / "scope"))
    job = papers(tmp_path / "job", surts="+http://(org,other,\n", toml="endless = true\n")
    (job / ".surts.txt.before.tmp").mkdir()
    with pytest.raises(Unavailable, match=r"surts\.txt\.before"):
        scopes.put(job, "daily", scope)
    assert (job / "surts.txt").read_text() == "+http://(org,other,\n"
