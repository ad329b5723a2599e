"""SIPs of whole launches, built over a copy of their line, whose files are links."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from launches.corpus import Corpus

from warcmill.extracts.extracts import Extracts
from warcmill.markers.facts.package import Packaged
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.package import build, sips
from warcmill.package.sips import Form, Terms
from warcmill.stores.file import FileStore

KINDS: list[tuple[str, Form]] = [("every", "value"), ("every", "reference"), ("final", "value"), ("final", "reference")]


def terms_of(store: FileStore, form: Form) -> Terms:
    """What a library agrees with its preservation system."""
    return Terms("National Library", form, store.base.as_uri(), "12345", "x5", agreement="SA-7")


@dataclass(frozen=True)
class Built:
    """The SIPs of one launch, in the order in which they were built."""

    launch: Launch
    sips: tuple[Packaged, ...]
    state: MarkerStore
    store: FileStore


def of_corpora(corpora: list[Corpus], stages: str, form: Form, base: Path) -> Iterator[Built]:
    """The SIPs of every launch, of one kind."""
    for number, corpus in enumerate(corpora):
        line = base / str(number)
        shutil.copytree(corpus.base / "line", line, copy_function=os.link, symlinks=True)
        state, store = MarkerStore(FileStore("state", line / "state")), FileStore("store", line / "store")
        extracts = Extracts(FileStore("index", corpus.base / "line" / "index"))
        terms = terms_of(store, form)
        for launch in corpus.launches():
            yield Built(launch, tuple(of_launch(state, store, extracts, launch, terms, stages)), state, store)


def of_launch(
    state: MarkerStore, store: FileStore, extracts: Extracts, launch: Launch, terms: Terms, stages: str
) -> Iterator[Packaged]:
    """Build the SIPs of a launch, and publish their markers."""
    while due := sips.coverage(state, launch).due(final_only=stages == "final"):
        claim = build.build(state, store, extracts, launch, due[0], terms)
        state.publish(claim.key, claim)
        yield Packaged.from_claim(claim)
