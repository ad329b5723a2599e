"""The revisits of a stage whose original is not in its launch: found among extracts, and kept as one.

A revisit is a capture of which only the header was stored, since the engine had seen its payload before. The payload
belongs to an original, known by its digest: in this launch, up to this stage; or in an earlier one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from hashlib import sha512

from warcmill.base.line_sort import SortedLines
from warcmill.extracts import cdx
from warcmill.extracts.extracts import ExtractKind, Extracts
from warcmill.formats.index.cdxj import all_named
from warcmill.formats.warc.http import comparable

REVISITS = ExtractKind("revisits", 1, "cdxj.gz")
Warcs = Sequence[tuple[str, str]]  # the name and the SHA-512 of each
_REVISIT = b'"mime": "warc/revisit"'


def key(claims: Iterable[str]) -> str:
    """The name of the extract: the digest of the claims of index.cdx, of the launch up to this stage."""
    return sha512("".join(f"{one}\n" for one in claims).encode()).hexdigest()


def elsewhere(extracts: Extracts, own: Warcs, earlier: Warcs) -> Iterator[bytes]:
    """The lines of the stage's revisits whose digest no original of the launch has, by digest, named.

    `own`: the WARCs of the stage; `earlier`: those of the launch's stages before.
    """
    with closing(SortedLines(extracts.folder)) as revisits, closing(SortedLines(extracts.folder)) as originals:
        any_ = False
        for name, digest in own:
            for line in cdx.lines(extracts, digest):
                if _REVISIT in line and is_revisit(line):
                    revisits.add(digest_of(line) + b"\0" + all_named(line, name))
                    any_ = True
        if any_:
            for _, digest in (*own, *earlier):
                for line in cdx.lines(extracts, digest):
                    if not is_revisit(line):
                        originals.add(digest_of(line) + b"\n")
            yield from _without(revisits, originals)


def _without(revisits: Iterable[bytes], originals: Iterable[bytes]) -> Iterator[bytes]:
    known = iter(originals)
    at = next(known, None)
    for entry in revisits:
        digest, _, line = entry.partition(b"\0")
        while at is not None and at[:-1] < digest:
            at = next(known, None)
        if not digest or at is None or at[:-1] != digest:
            yield line


def is_revisit(line: bytes) -> bool:
    """True if a line is of a revisit. A URL may hold the same words."""
    return _REVISIT in line and json.loads(line.split(b" ", 2)[2]).get("mime") == "warc/revisit"


def digest_of(line: bytes) -> bytes:
    """The payload digest of a line, to be compared; b"" if it has none."""
    found = json.loads(line.split(b" ", 2)[2]).get("digest", "")
    return comparable(str(found).encode())
