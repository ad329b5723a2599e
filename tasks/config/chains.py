"""The sections of the chains' steps: [index], [columns], [documents], [text], [collection.NAME], [viruses], [package].

`since` and `jobs` of a section are the switch of its steps, which not every launch goes through. The rest names the
servers that get the index, the clamd that scans, and how SIPs are built and where they are submitted. Nothing is asked
of any of them here; a client is imported once its section is read, as every verb reads the switches.
"""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from tasks.config import sections
from tasks.config.sections import Section, TextKey, WholeKey
from warcmill.chain import Switch
from warcmill.errors import BadConfig, BadInput, Unavailable
from warcmill.formats.sip.ark import BETANUMERIC, MOST_GIVEN

if TYPE_CHECKING:
    from warcmill.clients.clamd import Clamd
    from warcmill.extracts.tika import Tika
    from warcmill.files.virus_scan import ClamdLimits
    from warcmill.index.sink_solr import Routing, SolrTarget
    from warcmill.package.sips import Form, Terms

COLLECTION, COLLECTION_KEYS = "collection.", ("hosts", "surts")
_COLLECTION_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  # as Solr allows them
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9.-]+")
_SOLR_KEY = "[text] solr"
COLUMNS = "columns"  # as `Row.due` names it
_PYARROW, _COLUMNS_EXTRA = "pyarrow", "warcmill[columns]"
PACKAGE, SUBMISSION, CATALOGUE = "package", "destination", "catalogue"  # as `Row.due` names them
_FORMS, _STAGES = ("value", "reference"), ("final", "every")
_NAAN, _SHOULDER = re.compile(rf"[{BETANUMERIC}]{{5,9}}"), re.compile(rf"[{BETANUMERIC}]+")
SWITCHES = ("viruses", "index", "text", "columns", "pypi", "documents")
TEXT, PYPI, DOCUMENTS = "text", "pypi", "documents"  # as `Row.due` names them


def wanted() -> dict[str, Switch]:
    """The switches that are on, or BadConfig."""
    return {name: switch for name in SWITCHES if (switch := read(name))}


def read(section: str) -> Switch | None:
    """The switch of a section; None when its `since` is not set."""
    since, jobs = sections.value(section, "since"), sections.value(section, "jobs")
    if since:
        return Switch(_day(since, section), frozenset(sections.names(jobs, f"[{section}] jobs")) if jobs else None)
    if jobs:
        raise BadConfig(f"[{section}] jobs", "is set without since, which switches the step on: set it to a day")
    return None


def _day(text: str, section: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise BadConfig(f"[{section}] since", f"is {text!r}; a day such as 2016-10-19, of the launches' ids") from error


class index(Section):  # noqa: N801 - the section has the name of the class
    """[index]: CDXJ lines of stored WARCs; off unless `since` is set. It needs `[warcmill] index`, their folder."""

    since = TextKey(default="", description="index the launches from this day on, by their ids; empty: off")
    jobs = TextKey(default="", description="index only these jobs, separated by commas; empty: all")
    cdx_server = TextKey(
        default="", description="OutbackCDX that gets the lines as well, http://HOST:PORT/COLLECTION; empty: none"
    )


def cdx_server() -> str:
    """The URL of the collection of a CDX server; '' if none is set. Or BadConfig."""
    url = str(sections.read(index).cdx_server).strip()
    if not url:
        return ""
    from warcmill.clients import cdx_server as clients

    if not clients.is_url(url):
        why = f"is {clients.shown(url)}; it must be http://HOST:PORT/COLLECTION, or https, without a user or a query"
        raise BadConfig("[index] cdx_server", why)
    return url


class columns(Section):  # noqa: N801 - the section has the name of the class
    """[columns]: Parquet files of captures; off unless `since` is set. It needs `[warcmill] index`, and the extra."""

    since = TextKey(default="", description="write the launches from this day on, by their ids; empty: off")
    jobs = TextKey(default="", description="write only these jobs, separated by commas; empty: all")


class documents(Section):  # noqa: N801 - the section has the name of the class
    """[documents]: new publications in stored WARCs; off unless `since` is set. It needs `[warcmill] index`, and the
    extra of text."""

    since = TextKey(default="", description="look through the launches from this day on, by their ids; empty: off")
    jobs = TextKey(default="", description="look through only these jobs, separated by commas; empty: all")
    watched = TextKey(default="", description="path of a list of targets, as a feed has them; empty: the newest feed")
    solr = TextKey(default="", description="URL of a Solr's core that gets the documents too; empty: none")
    w3act = TextKey(default="", description="URL of a W3ACT that gets the documents of targets; empty: none")
    user = TextKey(default="", description="email of a user of W3ACT; empty: it wants no login")
    password = TextKey(default="", description="its password, as ${NAME}, a variable of the environment")
    password_file = TextKey(default="", description="file with that password as its only line")


class W3actLogin(Struct, frozen=True):
    """A W3ACT by its URL, and the login that it wants."""

    url: str
    user: str
    password: str


def documents_solr() -> tuple[str, str]:
    """The Solr that gets the documents, and its core, or BadConfig; '' twice if there is none."""
    url = sections.value(DOCUMENTS, "solr").rstrip("/")
    server, _, core = url.rpartition("/")
    parts = urlsplit(server)
    if url and (parts.scheme not in ("http", "https") or len(parts.path) < 2 or not _COLLECTION_NAME.fullmatch(core)):
        raise BadConfig("[documents] solr", "is not the URL of a core, such as http://127.0.0.1:8983/solr/documents")
    return server, core


def w3act() -> W3actLogin | None:
    """The W3ACT that gets the documents, or BadConfig; None if there is none."""
    keys, password = sections.read(documents), sections.secret(DOCUMENTS, "password")
    if not keys.w3act:
        if keys.user or password:
            raise BadConfig("[documents] w3act", "is not set, and its login is; set both, or neither")
        return None
    from warcmill.clients import asked

    if not asked.is_url(keys.w3act):
        raise BadConfig("[documents] w3act", "is not a URL such as https://w3act.example/act, without user or query")
    if bool(keys.user) != bool(password):
        raise BadConfig("[documents] user", "it takes user and password_file, or neither")
    return W3actLogin(keys.w3act, keys.user, password)


def check_columns_installed() -> str:
    """The package that writes Parquet, with its version; BadConfig if it is missing."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{_PYARROW} {version(_PYARROW)}"
    except PackageNotFoundError as error:
        how = f"pip install '{_COLUMNS_EXTRA}', or empty it"
        raise BadConfig("[columns] since", f"is set, and {_PYARROW} cannot be found: {how}") from error


class text(Section):  # noqa: N801 - the section has the name of the class
    """[text]: the words of stored documents; off unless `since` is set. It needs `[warcmill] index`, and the extra."""

    since = TextKey(default="", description="extract the launches from this day on, by their ids; empty: off")
    jobs = TextKey(default="", description="extract only these jobs, separated by commas; empty: all")
    tika = TextKey(default="", description="path of tika-app's jar, for office documents; empty: not extracted")
    solr = TextKey(default="", description="URL of a Solr's collection that gets the text too; empty: none")


def check_text_installed() -> None:
    """BadConfig if a package of the extra is missing, or what extracts office documents."""
    check_readers_installed(TEXT)
    tika()


def check_readers_installed(section: str) -> None:
    """BadConfig if a package that reads documents is missing."""
    from warcmill.formats.text import document

    if missing := document.missing():
        how = f"pip install '{document.EXTRA}', or empty it"
        raise BadConfig(f"[{section}] since", f"is set, and {' and '.join(missing)} cannot be found: {how}")


def tika() -> Tika | None:
    """The Tika that is configured, or BadConfig; None if there is none. It is not started."""
    path = sections.value(TEXT, "tika")
    if not path:
        return None
    from warcmill.extracts.tika import Tika

    found = Tika(os.path.abspath(path))
    try:
        found.check()
    except Unavailable as error:
        raise BadConfig("[text] tika", f"is set, and {error}") from error
    return found


def solr() -> SolrTarget | None:
    """The configured Solr, or BadConfig; None if there is none. It is not asked for anything."""
    url = sections.value("text", "solr").rstrip("/")
    named = sections.named(COLLECTION)
    if not url:
        if named:
            raise BadConfig(_SOLR_KEY, f"is not set, and [{named[0]}] routes to one of its collections")
        return None
    from warcmill.index.sink_solr import SolrTarget

    server, _, default = url.rpartition("/")
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or len(parts.path) < 2 or not _COLLECTION_NAME.fullmatch(default):
        raise BadConfig(_SOLR_KEY, "is not the URL of a collection, such as http://127.0.0.1:8983/solr/discovery")
    place = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    return SolrTarget(server, _routing(default, named), f"solr-{_NOT_IN_A_NAME.sub('-', place)}")


def _routing(default: str, named: list[str]) -> Routing:
    from warcmill.index.sink_solr import routing

    tables = {}
    for section in named:
        name = section.removeprefix(COLLECTION)
        if not _COLLECTION_NAME.fullmatch(name):
            raise BadConfig(f"[{section}]", "its name is not that of a collection of Solr")
        sections.refuse_unknown(section, COLLECTION_KEYS)
        tables[name] = (_list(section, "hosts"), _list(section, "surts"))
        if not any(tables[name]):
            raise BadConfig(f"[{section}]", "routes nothing: set hosts or surts")
    try:
        return routing(default, tables)
    except BadInput as error:
        section = next((section for section in named if error.path in _entries(section)), named[0])
        raise BadConfig(f"[{section}]", str(error)) from error


def _entries(section: str) -> tuple[str, ...]:
    return (*_list(section, "hosts"), *_list(section, "surts"))


def _list(section: str, key: str) -> tuple[str, ...]:
    """Entries by blanks or the ends of lines: SURTs have commas in them. Hosts may be separated by commas too."""
    return tuple(filter(None, re.split(r"[,\s]+" if key == "hosts" else r"\s+", sections.value(section, key))))


class viruses(Section):  # noqa: N801 - the section has the name of the class
    """[viruses]: the scan of stored WARCs; off unless `since` is set."""

    clamd = TextKey(default="", description="where clamd listens: the path of its socket, or HOST:PORT")
    since = TextKey(default="", description="scan the launches from this day on, by their ids; empty: off")
    jobs = TextKey(default="", description="scan only these jobs, separated by commas; empty: all")
    stream_max_length = WholeKey(default=100 << 20, description="bytes; StreamMaxLength of clamd.conf")
    max_file_size = WholeKey(default=100 << 20, description="bytes; MaxFileSize of clamd.conf")


class VirusScanner(Struct, frozen=True):
    """A clamd, and the limits that it is configured with."""

    clamd: Clamd
    limits: ClamdLimits


def scanner() -> VirusScanner:
    """The configured clamd, or BadConfig. It is not asked for anything."""
    from warcmill.clients import clamd
    from warcmill.files.virus_scan import ClamdLimits

    keys = sections.read(viruses)
    try:
        address = clamd.parse(sections.needed("viruses", "clamd"))
    except ValueError as error:
        raise BadConfig("[viruses] clamd", str(error)) from error
    for key, limit in (("stream_max_length", keys.stream_max_length), ("max_file_size", keys.max_file_size)):
        if limit < 1:
            raise BadConfig(f"[viruses] {key}", f"is {limit}; bytes, as in clamd.conf, where there must be a limit")
    return VirusScanner(clamd.Clamd(address), ClamdLimits(keys.stream_max_length, keys.max_file_size))


class package(Section):  # noqa: N801 - the section has the name of the class
    """[package]: SIPs of archived launches; none without `since`."""

    since = TextKey(default="", description="day, 2026-11-21: launches from then on get SIPs; empty: none")
    jobs = TextKey(default="", description="the jobs whose launches get SIPs, separated by commas; empty: all")
    stages = TextKey(default="final", description="final: one SIP a launch; every: one SIP a stage")
    form = TextKey(default="value", description="value: WARCs are in the SIP; reference: fetch.txt lists them")
    locate = TextKey(default="", description="URL before stored paths in fetch.txt; default: the store's own")
    naan = TextKey(default="", description="NAAN of your ARKs; empty: no ARKs, unless there is a minter")
    shoulder = TextKey(default="", description="shoulder of the ARKs below the NAAN")
    minter = TextKey(default="", description="URL of a service that gives ARKs, asked with ?arks=N")
    agreement = TextKey(default="", description="identifier of the submission agreement, for METS")
    organisation = TextKey(default="", description="name of the archive that submits; a must with since")
    destination = TextKey(default="", description="where SIPs are submitted: a folder, sftp:// or webhdfs://")
    verified_at = TextKey(default="", description="where the ingesting system puts SIPs; else destination")


def switches(*, has_index: bool) -> dict[str, Switch]:
    """The switches of the steps of SIPs that are on, or BadConfig. The catalogue is in the index."""
    sips = switch()
    known = {PACKAGE: sips, SUBMISSION: submission(), CATALOGUE: sips if has_index else None}
    return {name: switch for name, switch in known.items() if switch}


def switch() -> Switch | None:
    """For which launches SIPs are due; None when `since` is not set. Or BadConfig."""
    keys, since = sections.read(package), read("package")
    if since is None:
        return None
    terms()
    return replace(since, final_only=_one_of("stages", keys.stages, _STAGES) == "final")


def submission() -> Switch | None:
    """For which launches SIPs are submitted, too; None when there is no destination. Or BadConfig."""
    return switch() if destination() else None


def terms(store: str = "") -> Terms:
    """The terms on which SIPs are built, or BadConfig. `store`: its folder or URL, which SIPs by reference name."""
    from warcmill.package.sips import Terms

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
