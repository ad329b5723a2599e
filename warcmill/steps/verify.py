"""Compare every stored file of a stage with its checksum, by the store's own account of what it holds."""

from __future__ import annotations

from dataclasses import replace

from warcmill import fixity, layout
from warcmill.errors import Mismatch
from warcmill.evidence import Claim
from warcmill.ledger import Ledger, settle
from warcmill.model import FileRef, Item, Launch, Stage
from warcmill.state import State
from warcmill.steps.transfer import as_announced, counts, place, progress, rests_on, stored
from warcmill.stores import Store


def verify(state: State, store: Store, launch: Launch, stage: Stage) -> Claim:
    """The claim of files.verified. Unsettled when a file is missing or differs; nothing is repaired."""
    key = layout.key("files.Verify", launch, stage=stage)
    copied = state.need(layout.key("files.Copy", launch, stage=stage))
    items = {stored(item): item for item in copied.claim.items}
    folders = {made.path.rpartition("/")[0] for made in items}
    ledger = Ledger(state, key)
    compared = progress(ledger, items)
    there = {entry.path: entry for folder in folders for entry in store.list(folder)}

    def version(made: FileRef) -> str:
        return as_announced(made, there.get(made.path)).version

    def work(made: FileRef) -> tuple[Item, ...]:
        algorithm = compare(store, made, str(items[made].facts.get("hdfs", "")))
        compared.add(made.size, made.name)
        return (replace(items[made], facts={**items[made].facts, "by": algorithm}),)

    verified = settle(ledger, items, version, work, store.at_once)
    return Claim(key, rests_on(copied), items=verified, counts=counts(verified))


def compare(store: Store, made: FileRef, hdfs: str = "") -> str:
    """The algorithm by which the store says that it holds `made`; Mismatch when it holds something else.

    `hdfs` is the checksum that files.Checksum computed, `algorithm:hex`. When a store's own digest is of a kind
    that was not computed (salvaged files, another block size) the stored bytes are read instead.
    """
    found = store.server_digest(made.path)
    known = {"sha512": str(made.sha512), **dict([hdfs.split(":")] if hdfs else [])}
    if found and found[0] not in known:
        with store.open(made.path) as stream:
            found = "sha512", fixity.sha512(stream)[1]
    if found is None or known[found[0]] != found[1]:
        wanted = f"{found[0]} {known[found[0]]}" if found else f"sha512 {made.sha512}"
        raise Mismatch(f"digest of {place(made)}", wanted, " ".join(found) if found else "no file")
    return found[0]
