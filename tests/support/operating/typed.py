"""Tasks and verbs as a person types them, on the line that LUIGI_CONFIG_PATH names."""

from __future__ import annotations

import os

import preloaded

DAY = ("--date-interval", "2026-11-21")  # of the sample's launch


def luigi(module: str, task: str, *arguments: str) -> tuple[int, str]:
    """Exit code, and what was printed; without arguments, of the sample's day."""
    words = ("--module", f"tasks.{module}", f"{module}.{task}", *(arguments or DAY))
    done = preloaded.run("luigi", *words, env=os.environ)
    return done.returncode, done.stdout + done.stderr


def warcmill(*words: str) -> tuple[int, str]:
    """Exit code, and what was printed."""
    done = preloaded.run("commands.main", *words, env=os.environ)
    return done.returncode, done.stdout + done.stderr
