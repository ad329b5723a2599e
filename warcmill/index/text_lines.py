"""The documents of a WARC, as a version of the text index has them: which of them it shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from warcmill.errors import Mismatch
from warcmill.formats.urlkey import urlkey
from warcmill.launches.extracts import Extracts
from warcmill.launches.text_extracts import kind_of
from warcmill.versions import hidden
from warcmill.versions.inputs import Input

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Shown:
    """Which documents are shown: none at some offsets of the WARC, none with a key that is hidden."""

    left_out: tuple[int, ...]
    prefixes: Mapping[bytes, str]

    def has(self, line: Line) -> bool:
        """True if a document is shown."""
        if line["source_file_offset"] in self.left_out:
            return False
        return next(hidden.visible([key_of(line)], self.prefixes, set()), None) is not None


def key_of(line: Line) -> bytes:
    """The key of a document, a blank, and its time: entries of the hidden list, and routes, are beginnings of it."""
    return f"{urlkey(line['url'])} {line['wayback_date']}".encode()


def lines_of(extracts: Extracts, one: Input) -> Iterator[Line]:
    """The documents of a WARC. Mismatch, at the end, if its extract is not the one that a version lists."""
    digest, kind = hashlib.sha512(), kind_of(one.generation)
    for number, line in enumerate(extracts.lines(kind, one.sha512)):
        digest.update(line)
        if number:  # the first line counts them
            yield json.loads(line)
    if one.extract and digest.hexdigest() != one.extract:
        raise Mismatch(f"index:{kind.path(one.sha512)}", one.extract, digest.hexdigest())
