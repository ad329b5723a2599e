"""What somebody may have meant who typed a name that is not there."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """`; did you mean 'status'?`, when a name that there is comes close; else ''."""
    from difflib import get_close_matches  # noqa: PLC0415 of use only to who mistyped

    near = get_close_matches(typed, sorted(set(known)), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""
