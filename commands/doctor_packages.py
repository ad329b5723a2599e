"""warcmill doctor: check where SIPs go, and what builds them, where [package] is used."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.config import package
from warcmill.audit.health import Check, Level
from warcmill.audit.health_destination import check_destination, check_verified_at
from warcmill.clients import minter
from warcmill.errors import BadConfig, Mismatch, WarcmillError
from warcmill.stores.opening import Access

PATIENCE = 10.0  # seconds for an answer of the minter


def check_packages(access: Access) -> Iterator[Check]:
    """Check [package]; nothing where it is not used."""
    try:
        places = package.destination(), package.verified_at()
        terms = package.terms() if package.switch() else None
    except BadConfig as error:
        yield Check("packages", Level.FAIL, str(error), "correct luigi.cfg")
        return
    yield from _places(*places, access)
    if terms:
        yield Check("packages", Level.OK, f"SIPs are built for {terms.organisation}, by {terms.form}")
    if terms and terms.minter:
        yield check_minter(terms.minter)


def _places(destination: str, verified_at: str, access: Access) -> Iterator[Check]:
    if destination:
        yield from check_destination(destination, access)
    if verified_at != destination:
        yield check_verified_at(verified_at, access)


def check_minter(url: str) -> Check:
    """Have ARKs given, twice: only a minter that gives as many as are asked for, and new ones, is known to work."""
    try:
        given = [*minter.arks(url, 2, PATIENCE), *minter.arks(url, 2, PATIENCE)]
        if len(set(given)) != len(given):
            raise Mismatch(f"ARKs of {minter.shown(url)}", "new ones each time", "the same again")
    except WarcmillError as error:
        return Check("minter", Level.FAIL, str(error), "start it, or correct [package] minter")
    return Check("minter", Level.OK, f"{minter.shown(url)} gave {', '.join(given)}, which nothing uses")
