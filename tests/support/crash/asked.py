"""What siegfried answers: its process touches no folder of the line, and starts once for a sweep, not for each run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warcmill.formats.sip import pronom

answers: dict[bytes, dict[str, Any]] = {}
Ask = Callable[[bytes], dict[str, Any]]


def remember() -> None:
    """Answer what was asked before from `answers`, and keep there what is asked from now on."""
    pronom.ask, pronom.ask_once = _known(pronom.ask), _known(pronom.ask_once)


def _known(ask: Ask) -> Ask:
    def known(sample: bytes) -> dict[str, Any]:
        if sample not in answers:
            answers[sample] = ask(sample)
        return answers[sample]

    return known
