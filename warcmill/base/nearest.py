"""Suggest a known name for a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(typed: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return the most similar known name; '' if none reaches the similarity `alike` (difflib's ratio, 0 to 1)."""
    from difflib import get_close_matches  # noqa: PLC0415 needed only after a typing error

    return next(iter(get_close_matches(typed, sorted(set(known)), 1, alike)), "")


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'status'?` if a known name is similar; else ''."""
    suggestion = nearest(typed, known)
    return f"; did you mean '{suggestion}'?" if suggestion else ""
