"""An edit of a job's papers by its form, or as texts: judged, saved as an edition, undone. Writes as `papers` does.

A page and a verb call the same functions. Of two who edit one job the second, whose form was made of older papers, gets
NewerEdition where both have changed one paper, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256

from msgspec import Struct

from warcmill.crawl.job import file, form, rules
from warcmill.crawl.job.form import JobForm
from warcmill.crawl.policies import scope
from warcmill.errors import BadInput, NewerEdition, NotReady
from warcmill.formats.seeds import SEED_LIST
from warcmill.markers.editions import Edition
from warcmill.markers.papers import JobPapers, read_mark
from warcmill.model import Json

Papers = Mapping[str, bytes]
Change = Callable[[Papers], Papers]
DELETED = "deleted"
OPERATOR = "needs the role operator: it reaches inside addresses, files of this machine, or sites that refuse crawls"


class OpenedPapers(Struct, frozen=True):
    """The papers of a job as somebody begins to edit them. `edition`: the number of the edition that they were last;
    `seen`: a digest of them."""

    files: Papers
    edition: int
    seen: str

    @property
    def form(self) -> JobForm:
        """Their form."""
        return form.of_papers(self.files)


class SavedPapers(Struct, frozen=True):
    """A saved edit: its edition, the papers that are new or changed; the papers and keys that a running crawl takes
    `at_once`, and those for which its next launch `waits`."""

    edition: int
    changed: Sequence[str]
    at_once: Sequence[str]
    waits: Sequence[str]

    def json(self, job: str, said: Sequence[str] = ()) -> dict[str, Json]:
        """The edit of a job for programs; `said`: what became of its schedule, in words."""
        return {
            "at_once": [*self.at_once], "changed": [*self.changed], "edition": self.edition, "job": job,
            "said": [*said], "waits": [*self.waits],
        }  # fmt: skip


def opened(papers: JobPapers) -> OpenedPapers:
    """The papers as they are in the job's folder. Reads only."""
    files, mark = _own(papers), read_mark(papers.folder)
    number = mark.number if mark and mark.job == papers.editions.job else 0
    return OpenedPapers(files, number, _seen(files))


def save(
    papers: JobPapers, change: Change, *, who: str, why: str, base: OpenedPapers | None = None, may_all: bool = True,
    networks: Sequence[str] = (),
) -> SavedPapers:  # fmt: skip
    """Save what `change` makes of the papers `base`, by default of the present ones. `networks`: inside addresses that
    the engine lets in. `base` needs its numbers alone.

    NewerEdition if somebody else has saved the same papers since; BadInput for what cannot be taken. Nothing is
    written then. Without `may_all`, nor for what needs an operator.
    """
    newest, now = papers.settle(), _own(papers)
    number = newest.number if newest else 0
    before, made_from = now, number
    if base and base.seen != _seen(now):
        if not base.edition:
            raise _newer(papers, newest)
        before, made_from = of_edition(papers, base.edition), base.edition
    after = change(before)
    changes = {name: after.get(name) for name in form.PAPERS if after.get(name) != before.get(name)}
    whole = {name: data for name in form.PAPERS if (data := changes.get(name, now.get(name))) is not None}
    check(papers, before, after, whole, may_all=may_all, networks=networks)
    edition = papers.save(changes, who=who, why=why, made_from=made_from)
    return SavedPapers(edition.number, sorted(changes), *form.taken(now, whole))


def rename(
    papers: JobPapers, title: str, *, who: str, may_all: bool = True, networks: Sequence[str] = ()
) -> SavedPapers:  # fmt: skip
    """Give a job another title, for people. Its name stays: launches, WARCs and markers have it."""
    if not title.strip():
        raise BadInput("title", "it is empty")
    change = of_form({"title": " ".join(title.split())})
    return save(papers, change, who=who, why="renamed", may_all=may_all, networks=networks)


def delete(papers: JobPapers, *, who: str) -> Edition | None:
    """Save an edition without any paper: `undo` brings them back. None if the job has none already."""
    newest = papers.settle()
    if newest is None or not newest.papers:
        return None
    return papers.save(dict.fromkeys(newest.papers), who=who, why=DELETED, made_from=newest.number)


def check(
    papers: JobPapers, before: Papers, after: Papers, whole: Papers, *, may_all: bool, networks: Sequence[str] = ()
) -> None:
    """BadInput for papers by which the job could not be crawled, or that only an operator may write. `whole`: all that
    the job would have."""
    is_listed = {SEED_LIST: b""} if (papers.folder / SEED_LIST).exists() else {}
    form.check({**whole, **is_listed}, papers.editions.job)
    if not may_all and (keys := form.needs_operator(before, after)):
        raise BadInput(keys[0], OPERATOR)
    filled = form.of_papers(after)
    known = {one.url for one in form.check_addresses(form.of_papers(before), networks).found} if before else set()
    inside = [one for one in form.check_addresses(filled, networks).inside if one.text not in known]
    if inside:
        lines = "; ".join(one.words for one in inside[: form.SHOWN])
        raise BadInput("addresses", f"{lines}; an operator lets it in by 'allow_private'")


def undo(papers: JobPapers, *, who: str, why: str, to: int = 0, seen: int = 0) -> Edition:
    """Save the papers of an earlier edition once more, as the newest one: of number `to`, by default the one before.

    NewerEdition if there is a newer one than `seen`, where that is given. NotReady if there is none before.
    """
    newest = papers.settle()
    number = to or (newest.number - 1 if newest else 0)
    if newest is None or not 0 < number < newest.number:
        raise NotReady(f"an edition of {papers.editions.job} to go back to", "there is none before; see its history")
    if seen and newest.number != seen:
        raise _newer(papers, newest)
    old = papers.editions.read(number)
    changes = {
        name: papers.editions.text(number, name) if old.digest(name) else None
        for name in newest.places
        if old.digest(name) != newest.digest(name)
    }
    return papers.save(changes, who=who, why=why or f"back to edition {number}", made_from=newest.number)


def leave_out(papers: JobPapers, rule: str, *, who: str, may_all: bool = True) -> SavedPapers:
    """Add a rule, as `rules.named` has it, to what a job leaves out: nothing where it does so already.

    NotReady for a job without papers; NewerEdition, and nothing is written, if somebody else saves meanwhile.
    """
    if not _own(papers):
        job = papers.editions.job
        raise NotReady(f"job {job}", f"it has no files yet: 'warcmill crawl URL --job {job}' writes them")

    def changed(before: Papers) -> Papers:
        known = form.of_papers(before).leave_out
        prefixes = scope.read("\n".join(rules.read(known).prefixes))
        is_known = rule in known.splitlines() or prefixes.covering(rule) is not None
        return before if is_known else of_form({"leave_out": f"{known}{rule}\n"})(before)

    return save(papers, changed, who=who, why=f"leave out {rule}", may_all=may_all)


def of_form(wanted: Mapping[str, str]) -> Change:
    """The change of some fields of the form."""
    return lambda before: form.papers((form.of_papers(before) if before else JobForm()).changed(wanted), before)


def of_texts(texts: Mapping[str, str]) -> Change:
    """The change of some papers as texts; an empty one is taken away, but for crawl.toml and seeds.txt."""

    def changed(before: Papers) -> Papers:
        new = {name: text.replace("\r\n", "\n").encode() for name, text in texts.items()}
        kept = {**before, **{name: data for name, data in new.items() if not _is_same(data, before.get(name))}}
        return {name: data for name, data in kept.items() if data or name in form.PAPERS[:2]}

    return changed


def _is_same(new: bytes, old: bytes | None) -> bool:
    """True for the same text: a browser sends no CR, and no mark of UTF-16."""
    return old is not None and new == old.replace(b"\r\n", b"\n")


def history(job: str, editions: Iterable[Edition]) -> dict[str, Json]:
    """Editions of a job as a document: who, when, why, and the papers that are new in each."""
    rows: list[Json] = [
        {
            "made_from": one.made_from, "number": one.number, "papers": [*one.changed], "time": one.time,
            "who": one.who, "why": one.why,
        }
        for one in editions
    ]  # fmt: skip
    return {"editions": rows, "job": job}


def undone(edition: Edition) -> dict[str, Json]:
    """The edition that went back to an earlier one, as a document."""
    return {"changed": [*edition.changed], "edition": edition.number, "job": edition.job}


def _own(papers: JobPapers) -> dict[str, bytes]:
    found = file.files_in(papers.folder)
    return {name: found[name] for name in form.PAPERS if name in found}


def of_edition(papers: JobPapers, number: int) -> dict[str, bytes]:
    """The papers that describe a job, as an edition has them."""
    edition = papers.editions.read(number)
    return {name: papers.editions.text(number, name) for name in form.PAPERS if edition.digest(name)}


def _newer(papers: JobPapers, newest: Edition | None) -> NewerEdition:
    number, who, time = (newest.number, newest.who, newest.time) if newest else (0, "", "")
    return NewerEdition(papers.editions.job, number, who, time)


def _seen(files: Papers) -> str:
    digest = sha256()
    for name in form.PAPERS:
        data = files.get(name)
        digest.update(b"-" if data is None else sha256(data).digest())
    return digest.hexdigest()
