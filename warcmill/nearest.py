"""What somebody may have meant who typed a name that is not there."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(typed: str, known: Iterable[str], alike: float = 0.6) -> str:
    """The known name that comes closest; '' when none is at least so much alike, as difflib counts it."""
    from difflib import get_close_matches  # noqa: PLC0415 of use only to who mistyped

    return next(iter(get_close_matches(typed, sorted(set(known)), 1, alike)), "")


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """`; did you mean 'status'?`, when a name that there is comes close; else ''."""
    near = nearest(typed, known)
    return f"; did you mean '{near}'?" if near else ""
