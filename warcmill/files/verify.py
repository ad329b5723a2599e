"""The store's own digests of a stage's files, compared with ours. It stands alone, as each step of a chain.

Reads only.
"""

from __future__ import annotations

from warcmill import layout
from warcmill.base import digests
from warcmill.errors import Mismatch
from warcmill.files.transfer import as_announced, counts, place, progress, stored
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim
from warcmill.markers.facts.files import Stored
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Launch, Stage
from warcmill.stores import Store


def verify(state: MarkerStore, store: Store, launch: Launch, stage: Stage) -> Claim:
    """The claim of files.verified. Unsettled when a file is missing or differs; nothing is repaired."""
    key = layout.key("files.Verify", launch, stage=stage)
    copied = state.require(layout.key("files.Copy", launch, stage=stage))
    items = {stored(item): item for item in copied.claim.items}
    facts = Stored.from_claim(copied.claim).files
    folders = {copy.path.rpartition("/")[0] for copy in items}
    attempts = Attempts(state, key)
    compared = progress(attempts, items)
    stored_now = {entry.path: entry for folder in folders for entry in store.list(folder)}

    def version(copy: FileRef) -> str:
        return as_announced(copy, stored_now.get(copy.path)).version

    def work(copy: FileRef) -> tuple[Item, ...]:
        algorithm = compare(store, copy, facts[copy].hdfs)
        compared.add(copy.size, copy.name)
        return (items[copy]._replace(facts={**items[copy].facts, "by": algorithm}),)

    verified = run_items(attempts, items, version, work, store.at_once)
    return Claim(key, rests_on(copied), items=verified, counts=counts(verified))


def compare(store: Store, copy: FileRef, hdfs: str = "") -> str:
    """Compare the store's digest of `copy` with the known one; return the algorithm. Mismatch when they differ.

    `hdfs` is the checksum by files.Checksum, `algorithm:hex`. The stored bytes are read instead when the store's
    digest is of a kind that was not computed: of salvaged files, or with another block size.
    """
    digest = store.server_digest(copy.path)
    known = {"sha512": str(copy.sha512), **dict([hdfs.split(":")] if hdfs else [])}
    if digest and digest[0] not in known:
        with store.open(copy.path) as stream:
            digest = "sha512", digests.sha512(stream)[1]
    if digest is None or known[digest[0]] != digest[1]:
        wanted = f"{digest[0]} {known[digest[0]]}" if digest else f"sha512 {copy.sha512}"
        raise Mismatch(f"digest of {place(copy)}", wanted, " ".join(digest) if digest else "no file")
    return digest[0]
