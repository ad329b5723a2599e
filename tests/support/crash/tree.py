"""A folder as a value, and what must hold of a line's folder at any moment."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha512
from pathlib import Path

from warcmill import layout
from warcmill.formats.logs import logzip
from warcmill.markers import claim as evidence
from warcmill.markers.claim import Claim
from warcmill.stores import temporary_names

_OF_A_RUN = re.compile(rb' "basis": "[0-9a-f]+",\n|,\n "written": "[^"]+"')
_STAGED = re.compile(rb'"staged": "[^"]+"')
_RANDOM = re.compile(r"\.[0-9a-f]{8}$")
Tree = dict[str, tuple[int, str]]  # path: bytes and sha512; a folder is -1


def read(folder: Path) -> Tree:
    """All that is in a folder."""
    found: Tree = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        while (name := plain(name)) in found:
            name += "+"  # moved aside more than once
        if path.is_symlink():
            found[name] = what(name, os.fsencode(path.readlink()), folder)
        elif path.is_dir():
            found[name] = (-1, "")
        else:
            found[name] = what(name, path.read_bytes(), folder)
    return found


def plain(path: str) -> str:
    """A path without the random digits that what is moved aside bears."""
    return _RANDOM.sub("", path) if "/aside/" in path else path


def what(name: str, data: bytes, folder: Path) -> tuple[int, str]:
    """A file's length and digest, without what differs from folder to folder and from run to run."""
    if name == "luigi.cfg":
        data = data.replace(str(folder).encode(), b"FOLDER")
    elif name.startswith("index/versions/") and name.endswith(("/version", "/inputs.txt")):
        data = data.replace(str(folder).encode(), b"FOLDER")
        data = data.rpartition(b"\n}\n")[0] if name.endswith("/version") else data  # without its seal
    elif name.startswith("store/dumps/") and "/input_lists/" in name:
        data = data.replace(str(folder).encode(), b"FOLDER")
    elif is_summary(name):
        data = _OF_A_RUN.sub(b"", data)
    elif name.startswith("destination/staging/"):
        data = _STAGED.sub(b"", data)  # a name that no other process chooses
    return len(data), sha512(data).hexdigest()


def _keeps(path: str) -> bool:
    return path.startswith("store/") or "/aside/" in path


def is_summary(path: str) -> bool:
    """The summary of a day; its basis is of inodes and times, and it has when it was written."""
    return path.startswith("state/") and path.rpartition("/")[2].startswith("status.") and path.endswith(".json")


def is_litter(path: str) -> bool:
    """Half-made things of a process: its own temporary files, and what is in its scratch."""
    staged = path.startswith("destination/staging/") and not path.endswith(".json")
    return staged or path.endswith(".tmp") or any(temporary_names.is_temporary(part) for part in path.split("/"))


def is_working(path: str) -> bool:
    """What every run may leave of its own: attempts, locks, scratch, and the folders that hold them."""
    parts = path.split("/")
    return (
        "attempts" in parts
        or ("aside" in parts and ".jsonl" in parts[-1])
        or parts[:2] in (["state", ".locks"], ["state", ".scratch"], ["destination", "ingest"])
        or parts[:2] == ["state", "status"]  # when scans ended, and what answered then
        or is_catalogue(path)
        or is_remembered(path)
    )


def is_remembered(path: str) -> bool:
    """What scans and folds keep of folders and markers to know them again: it has inodes and times."""
    parts = path.split("/")
    return parts[:2] == ["index", "looked"] or (parts[:2] == ["index", "versions"] and parts[-1] == "looked")


def is_catalogue(path: str) -> bool:
    """The catalogue, which SQLite writes unseen: it is judged by its rows, as `reconcile` reads them; and the desk of
    documents, which is made anew from a version and decisions."""
    return path.startswith(("index/catalogue.sqlite", "index/documents/desk.sqlite"))


def is_report(path: str) -> bool:
    """What is rewritten, whole, as more is known: also how many documents a Solr has, when a run did only half."""
    is_count = path.startswith("index/sinks/") and path.endswith("/counts")
    is_of_launch = path.startswith("state/") and path.endswith((".info.json", ".package.json"))
    return is_summary(path) or is_count or is_of_launch


def is_moved(path: str) -> bool:
    """What goes from one state to the other at once: the link to the current version, what the last fold saw, and the
    acknowledgements of a server."""
    is_of_version = path.startswith("index/versions/") and path.endswith(("/current", "/seen"))
    return is_of_version or path.startswith("index/sinks/")


def is_unsure(path: str, what: tuple[int, str] | None) -> bool:
    """A fold that could not ask the store notes that it saw nothing, one line end, so that the next one looks again."""
    return path.startswith("index/versions/") and path.endswith("/seen") and what is not None and what[0] == 1


def is_begun(path: str) -> bool:
    """Whether it notes that something was about to be sent to a server; in the end there must be none."""
    return path.startswith("index/sinks/") and path.endswith(".begun")


def proofs(tree: Tree) -> Tree:
    """What counts: markers, reports, archive, the engines' files, configuration."""
    return {path: what for path, what in tree.items() if what[0] >= 0 and not is_litter(path) and not is_working(path)}


@dataclass(frozen=True)
class Reference:
    """An undisturbed run: the folder before and after, and for each marker what must be there if it is."""

    before: Tree
    after: Tree
    needs: Mapping[str, Tree] = field(default_factory=dict)

    @classmethod
    def of(cls, before: Tree, needs: Mapping[str, Tree], folder: Path) -> Reference:
        return cls(before, proofs(read(folder)), {**needs, **needs_of(folder)})

    def moment(self, tree: Tree) -> Iterator[str]:
        """What is wrong with a folder whose run was broken off just now."""
        for path, what in proofs(tree).items():
            if is_report(path) or is_begun(path) or is_unsure(path, what) or self.before.get(path) == what:
                continue
            if self.after.get(path) != what:
                why = "not what an undisturbed run leaves" if path in self.after else "should not be"
                yield f"{path}: {why}: {what}"
        yield from self._lost(tree)
        yield from self._false(tree)

    def end(self, tree: Tree, but_summaries: bool = False) -> Iterator[str]:
        """What is wrong with a folder whose run came to its end, and that was swept."""
        found = proofs(tree)
        if but_summaries:
            found |= {path: what for path, what in self.after.items() if is_summary(path)}
        yield from (f"{path}: missing in the end" for path in sorted(self.after.keys() - found.keys()))
        yield from (f"{path}: should not be, in the end" for path in sorted(found.keys() - self.after.keys()))
        for path in sorted(found.keys() & self.after.keys()):
            if found[path] != self.after[path]:
                yield f"{path}: in the end {found[path]}, undisturbed {self.after[path]}"
        yield from (f"{path}: litter that no sweep removes" for path in tree if is_litter(path))
        yield from self._false(tree)

    def _lost(self, tree: Tree) -> Iterator[str]:
        for path, what in self.before.items():
            moved = is_moved(path) and (tree.get(path) == self.after.get(path) or is_unsure(path, tree.get(path)))
            gone = tree.get(path) != what and not moved and not (is_report(path) and path in tree)
            if gone and path in self.after:
                yield f"{path}: lost"
            elif gone and what[0] > 0 and not any(what == tree[one] for one in tree if _keeps(one)):
                yield f"{path}: removed, and neither in the store nor aside"

    def _false(self, tree: Tree) -> Iterator[str]:
        for marker, needs in self.needs.items():
            if marker in tree:
                for path, what in needs.items():
                    if tree.get(path) != what:
                        yield f"{marker}: falsely complete: it rests on {path}, which is {tree.get(path)}"


def markers(folder: Path) -> Iterator[tuple[str, Claim]]:
    """Every marker of a line's folder, by path; one that is not sound is an error here."""
    state = folder / "state"
    for path in sorted((*state.glob("*/*/*"), *state.glob("*/*/*/*"))):  # a feed is above the folders of launches
        key = layout.parse_marker_path(str(path.relative_to(state)))
        if key:
            with path.open("rb") as file:
                data = logzip.evidence(file) if path.suffix == ".zip" else file.read()
            found = evidence.decode(data, str(path))
            assert found.claim.key == key, path
            yield str(path.relative_to(folder)), found.claim


def needs_of(folder: Path) -> dict[str, Tree]:
    """For each marker, what must be there while it is."""
    now = proofs(read(folder))
    return {path: dict(_needs(folder, path, claim, now)) for path, claim in markers(folder)}


def _needs(folder: Path, marker: str, claim: Claim, after: Tree) -> Iterator[tuple[str, tuple[int, str]]]:
    """The markers a claim rests on, and the files that its step made."""
    sound = dict(markers(folder))
    for one in claim.inputs:
        path = f"state/{one.marker}"
        assert evidence.claim_digest(sound[path]) == one.claim, f"{marker} rests on another {path}"
        yield path, after[path]
    for file in claim.stored:
        path, said = f"store/{file.path}", (file.size, str(file.sha512))
        assert after[path] == said, f"{marker} says {said} of {path}, which is {after[path]}"
        yield path, said


def settled_twice(folder: Path) -> Iterator[str]:
    """Work that was done again although an attempt had settled it."""
    seen: Counter[tuple[str, str, str]] = Counter()
    for path in sorted(folder.glob("state/*/*/*/attempts/*.jsonl")):
        step = path.name.rsplit(".", 4)[0]
        for line in path.read_bytes().splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if "items" in found:
                seen[step, found["file"]["path"], found["version"]] += 1
    yield from (f"{step}: {path} settled {count} times" for (step, path, _), count in seen.items() if count > 1)
