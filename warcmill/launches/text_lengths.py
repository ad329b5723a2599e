"""How long the text of each document of a WARC is, by the offset of its record, in little memory."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left

from warcmill.errors import BadInput
from warcmill.launches import text_extracts
from warcmill.launches.extracts import Extracts


class TextLengths:
    """The lengths of a WARC's texts, in characters."""

    def __init__(self, extracts: Extracts, sha512: str) -> None:
        """Read them. NotReady if the extract of text is missing, BadInput if it is damaged."""
        try:
            known = sorted(map(_length, text_extracts.lines(extracts, sha512)))
        except ValueError as error:  # what a damaged one gives before its end is reached
            raise BadInput(text_extracts.best(extracts, sha512).path(sha512), f"not JSON Lines: {error}") from error
        self._offsets = array("q", (offset for offset, _ in known))
        self._lengths = array("q", (length for _, length in known))

    def at(self, offset: int) -> int | None:
        """The length of the text of the record at an offset; None if it is no document, or has no text."""
        at = bisect_left(self._offsets, offset)
        there = at < len(self._offsets) and self._offsets[at] == offset
        return self._lengths[at] if there and self._lengths[at] >= 0 else None


def _length(line: bytes) -> tuple[int, int]:
    """Where a document is, and how long its text is; -1: it has none."""
    return text_extracts.offset(line), json.loads(line).get("content_text_length", -1)
