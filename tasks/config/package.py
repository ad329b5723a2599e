"""[package] of luigi.cfg: from which day on, for which jobs and how SIPs are built, and where they are submitted."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import luigi

from tasks.config import sections
from tasks.config.switches import read as read_switch
from warcmill.chain import Switch
from warcmill.errors import BadConfig
from warcmill.formats.ark import BETANUMERIC, MOST_GIVEN
from warcmill.package.terms import Form, Terms

SWITCH, SUBMISSION, CATALOGUE = "package", "destination", "catalogue"  # as `Row.due` names them
_FORMS, _STAGES = ("value", "reference"), ("final", "every")
_NAAN, _SHOULDER = re.compile(rf"[{BETANUMERIC}]{{5,9}}"), re.compile(rf"[{BETANUMERIC}]+")


class package(luigi.Config):  # noqa: N801 - Luigi names the section after the class
    """[package]: SIPs of archived launches; none without `since`."""

    since = luigi.Parameter(default="", description="day, 2026-11-21: launches from then on get SIPs; empty: none")
    jobs = luigi.Parameter(default="", description="the jobs whose launches get SIPs, separated by commas; empty: all")
    stages = luigi.Parameter(default="final", description="final: one SIP a launch; every: one SIP a stage")
    form = luigi.Parameter(default="value", description="value: WARCs are in the SIP; reference: fetch.txt lists them")
    locate = luigi.Parameter(default="", description="URL before stored paths in fetch.txt; default: the store's own")
    naan = luigi.Parameter(default="", description="NAAN of your ARKs; empty: no ARKs, unless there is a minter")
    shoulder = luigi.Parameter(default="", description="shoulder of the ARKs below the NAAN")
    minter = luigi.Parameter(default="", description="URL of a service that gives ARKs, asked with ?arks=N")
    agreement = luigi.Parameter(default="", description="identifier of the submission agreement, for METS")
    organisation = luigi.Parameter(default="", description="name of the archive that submits; a must with since")
    destination = luigi.Parameter(default="", description="where SIPs are submitted: a folder, sftp:// or webhdfs://")
    verified_at = luigi.Parameter(default="", description="where the ingesting system puts SIPs; else destination")


def switches(*, has_index: bool) -> dict[str, Switch]:
    """The switches of the steps of SIPs that are on, or BadConfig. The catalogue is in the index."""
    sips = switch()
    known = {SWITCH: sips, SUBMISSION: submission(), CATALOGUE: sips if has_index else None}
    return {name: one for name, one in known.items() if one}


def switch() -> Switch | None:
    """For which launches SIPs are due; None when `since` is not set. Or BadConfig."""
    keys, since = sections.read(package), read_switch("package")
    if since is None:
        return None
    terms()
    return replace(since, final_only=_one_of("stages", keys.stages, _STAGES) == "final")


def submission() -> Switch | None:
    """For which launches SIPs are submitted, too; None when there is no destination. Or BadConfig."""
    return switch() if destination() else None


def terms(store: str = "") -> Terms:
    """How SIPs are built, or BadConfig. `store`: the store's folder or URL, where SIPs by reference say files are."""
    keys = sections.read(package)
    if not keys.organisation:
        raise BadConfig("[package] organisation", "is not set; the name of the archive, which every SIP states")
    if keys.minter and (keys.naan or keys.shoulder):
        raise BadConfig("[package] minter", "is set beside naan or shoulder; keep the minter, or those two")
    if keys.shoulder and not keys.naan:
        raise BadConfig("[package] naan", "is not set, and shoulder is; a shoulder is below a NAAN")
    if len(keys.naan + keys.shoulder) > MOST_GIVEN:
        raise BadConfig("[package] shoulder", f"is too long: with the naan at most {MOST_GIVEN} characters")
    form: Form = "reference" if _one_of("form", keys.form, _FORMS) == "reference" else "value"
    return Terms(
        keys.organisation,
        form,
        _url("locate", keys.locate) or _of_store(store),
        _fits("naan", keys.naan, _NAAN),
        _fits("shoulder", keys.shoulder, _SHOULDER),
        _url("minter", keys.minter, ("http", "https")),
        keys.agreement,
    )


def destination() -> str:
    """Where SIPs are submitted; '' when they are not. Or BadConfig."""
    return _place("destination", sections.read(package).destination)


def verified_at() -> str:
    """Where submitted SIPs are read again; '' when they are not submitted. Or BadConfig."""
    keys = sections.read(package)
    if keys.verified_at and not keys.destination:
        raise BadConfig("[package] verified_at", "is set without destination, and nothing is submitted without one")
    return _place("verified_at", keys.verified_at) or destination()


def _of_store(store: str) -> str:
    """The URL of the store: a folder's as file://, another's without its query."""
    return Path(store).as_uri() if store.startswith("/") else store.partition("?")[0]


def _one_of(key: str, text: str, words: tuple[str, ...]) -> str:
    if text not in words:
        raise BadConfig(f"[package] {key}", f"is {text}; {' or '.join(words)}")
    return text


def _fits(key: str, text: str, pattern: re.Pattern[str]) -> str:
    if text and not pattern.fullmatch(text):
        why = f"is {text}; digits and letters without vowels and l: {BETANUMERIC}; a NAAN has 5 to 9"
        raise BadConfig(f"[package] {key}", why)
    return text


def _url(key: str, text: str, schemes: tuple[str, ...] = ()) -> str:
    parts = urlsplit(text)
    if text and (not parts.scheme or (schemes and parts.scheme not in schemes) or not text.isascii() or " " in text):
        raise BadConfig(f"[package] {key}", f"is {text}; a URL, such as https://archive.example/")
    return text


def _place(key: str, text: str) -> str:
    if text and not text.startswith(("/", "sftp://", "webhdfs://")):
        raise BadConfig(f"[package] {key}", f"is {text}; an absolute path, sftp:// or webhdfs://")
    return text.rstrip("/")
