"""Scripts that put no blanks between words: each of their characters is a word of the index, and a word a phrase.

SQLite's tokenizer takes a run of letters for one word, so a Japanese sentence would only be found by all of it. An
invisible character on both sides of each letter parts them (U+200B, ZERO WIDTH SPACE: the tokenizer takes it for a
blank). Whatever is asked for is parted in the same way, and is found wherever it is in a text.
"""

from __future__ import annotations

import re

_PART = "\u200b"
_LETTER = (
    "\u0e01-\u0e4e\u0e81-\u0edf"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17d3"  # Myanmar, Khmer
    "\u3005\u3007\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana, and what repeats a character
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # Han
)
_RUN = re.compile(f"[{_LETTER}]+")


def part(text: str) -> str:
    """Part the letters of such scripts from each other, and from those of others."""
    return text if text.isascii() else _RUN.sub(_parted, text)


def join(text: str) -> str:
    """A text as a reader sees it, without what parts its letters."""
    return text.replace(_PART, "")


def _parted(run: re.Match[str]) -> str:
    return f"{_PART}{_PART.join(run[0])}{_PART}"
