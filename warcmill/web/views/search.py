"""The views of readers: search, captures and the way to replay; and the views of every visitor. Reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from markupsafe import Markup, escape
from msgspec.structs import asdict

from warcmill.audit.answers import metrics as figures
from warcmill.base.escapes import printable
from warcmill.errors import BadInput, NotReady
from warcmill.model import Json
from warcmill.replay.pywb import OFF
from warcmill.versions import search as searching
from warcmill.versions.search import MOST, SearchAnswer
from warcmill.web import queries
from warcmill.web.archive import ShownCapture, ShownCaptures
from warcmill.web.queries import PAGES, TYPE_NAMES, Search
from warcmill.web.rendering import STATIC
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, SentBytes, ShownPage
from warcmill.web.served import Served

MARKS = ("\x02", "\x03")  # around a word in a line of text: no page's text keeps them
TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
IN_URLS = "%/:?=&;,@!$'()*+~[]"  # of a captured URL, sent on as they are; # would cut it


SITES = 8  # that results can be narrowed to, by a link


def search(served: Served, asked: Asked) -> Answer:
    """A page of results, by words, or by the URL of a page."""
    wanted = queries.search_of(asked.fields)
    if captures := _captures(served, wanted):
        listed = captures.last[wanted.skipped : wanted.skipped + MOST]
        answer = _answer(wanted, captures.captures, captures.version, [_row(one) for one in listed])
        ways = _ways(wanted, len(captures.last))
        return ShownPage(answer, {"search": wanted, "captures": captures, "ways": ways}, is_of_index=True)
    if wanted.query is None:
        if asked.in_json:
            raise _no_words()
        return ShownPage(_missing(served), {"search": wanted})
    if asked.in_json:
        found = served.archive.search(wanted.query, wanted.skipped, searching.MARKS)
        answer = _answer(wanted, found.captures, found.version, [_row(one) for one in found.best])
        return ShownPage(answer, is_of_index=True)
    found = served.archive.search(wanted.query, wanted.skipped, MARKS)
    shown = {"search": wanted, "by_words": found, "count": count(wanted, found)}
    shown |= {"results": [_result(one) for one in found.best], "narrows": [*_narrows(wanted, found.best)]}
    return ShownPage({}, {**shown, "ways": _ways(wanted, found.captures)}, is_of_index=True)


def _no_words() -> BadInput:
    return BadInput("q", "there are no words in it")


def _missing(served: Served) -> dict[str, Json]:
    return {"missing": [*served.missing()]}


def _captures(served: Served, wanted: Search) -> ShownCaptures | None:
    """The captures of a URL that was typed; None for words, and for what may be words and has no capture."""
    if not wanted.url:
        return None
    try:
        found = served.archive.captures_of(wanted.url, *wanted.times, wanted.type)
    except NotReady:
        if wanted.is_url:
            raise
        return None
    return found if found.captures or wanted.is_url else None


def _answer(wanted: Search, captures: int, version: int, found: list[Json]) -> Mapping[str, Json]:
    return {"captures": captures, "found": found, "page": wanted.page, "version": version}


def _row(one: ShownCapture | searching.FoundDocument) -> Json:
    return {**asdict(one), "capture": way_to(one.time, one.url)}


def _result(one: searching.FoundDocument) -> dict[str, object]:
    return {
        **asdict(one),
        "capture": way_to(one.time, one.url),
        "title": one.title.strip() or one.url,
        "line": marked(one.line),
    }


def _narrows(wanted: Search, found: Iterable[searching.FoundDocument]) -> Iterator[Mapping[str, object]]:
    """The ways to fewer results, or to more: for site, time and type, what is asked for, or links to what could be.

    Sites and years are taken from the results on the page: to count all results would cost more than the search.
    """
    sites = Counter(site for one in found if (site := _site(one.url)))
    names = sorted(site for site, _ in sites.most_common(SITES))
    yield _narrow(wanted, "Site", wanted.site, {"site": ""}, {name: {"site": name} for name in names})
    years = sorted({one.time[:4] for one in found})
    times = " to ".join(dict.fromkeys((wanted.first or "the first", wanted.last or "the last")))
    chosen = times if wanted.first or wanted.last else ""
    yield _narrow(wanted, "Year", chosen, {"from": "", "to": ""}, {year: {"from": year, "to": year} for year in years})
    types = {name: {"type": word} for word, name in TYPE_NAMES.items()}
    yield _narrow(wanted, "Type", TYPE_NAMES.get(wanted.type, ""), {"type": ""}, types)


def _narrow(
    wanted: Search, label: str, chosen: str, without: Mapping[str, str], choices: Mapping[str, Mapping[str, str]]
) -> Mapping[str, object]:
    if chosen:
        return {"label": label, "chosen": chosen, "any": wanted.address(without), "links": ()}
    links = [{"text": text, "href": wanted.address(changed)} for text, changed in choices.items()]
    return {"label": label, "chosen": "", "any": "", "links": links}


def _site(url: str) -> str:
    """The host of a captured URL; '' for one that has none, or none that could be asked for."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return host if queries.is_site(host) else ""


def way_to(time: str, url: str) -> str:
    """The address of a capture, below this server."""
    return "capture?" + urlencode({"time": time, "url": url})


def way_to_record(url: str, warc: str, offset: int) -> str:
    """The address of the capture of a record, below this server."""
    return "capture?" + urlencode({"url": url, "warc": warc, "offset": offset})


def marked(line: str) -> Markup:
    """A line of text with its marks as elements; each that is opened is closed."""
    begin, *rest = line.split(MARKS[0])
    return Markup().join([_plain(begin), *map(_mark, rest)])


def _mark(piece: str) -> Markup:
    word, _, after = piece.partition(MARKS[1])
    return Markup("<mark>{}</mark>{}").format(printable(word), _plain(after))


def _plain(text: str) -> Markup:
    return escape(printable(text.replace(MARKS[1], "")))


def _ways(wanted: Search, captures: int) -> dict[str, str]:
    """The addresses of the pages of results before and after; '' where there is none."""
    before = _page(wanted, wanted.page - 1) if wanted.page > 1 else ""
    return {"before": before, "after": _page(wanted, wanted.page + 1) if _goes_on(wanted, captures) else ""}


def _goes_on(wanted: Search, captures: int) -> bool:
    return wanted.skipped + MOST < captures and wanted.page < PAGES


def _page(wanted: Search, page: int) -> str:
    return wanted.address({"page": str(page)})


def count(wanted: Search, answer: SearchAnswer) -> str:
    """The number of results, as a sentence."""
    if not answer.captures:
        return "Nothing was found: no capture has all of these words. Try fewer of them, or no site and no time."
    first, last = wanted.skipped + 1, wanted.skipped + len(answer.best)
    shown = f", {first:,} to {last:,} are shown" if answer.captures > len(answer.best) else ""
    many = f" Only the {answer.ranked:,} that the index has last were compared: add a word, a site or a time."
    found = f"{answer.captures:,} {'capture' if answer.captures == 1 else 'captures'} found{shown}."
    return found + (many if answer.ranked < answer.captures else "")


def capture(served: Served, asked: Asked) -> Answer:
    """The way to the replay of a capture, by its time or its record, or with file=1 to its body; 404 if it is not
    there, or hidden."""
    time, url = queries.capture_of(asked.fields)
    time = time or served.archive.time_of(url, *queries.record_of(asked.fields))
    replayed = served.archive.replayed(time, url) if time else ""
    if not replayed and "warc" in asked.fields:
        why = "the archive shows no capture of this record: it is hidden, or 'warcmill scan' has not indexed it yet"
        return RefusedRequest(HTTPStatus.NOT_FOUND, why)
    if not replayed:
        return RefusedRequest(HTTPStatus.NOT_FOUND, "the archive shows no capture of this URL and time")
    served.archive.check_store()
    if served.replay.missing:
        raise NotReady("replay", served.replay.missing)
    state = served.replay.state()
    if state != "ready":
        raise NotReady("replay", f"its server is {state}; try again in a minute")
    as_it_was = "id_" if asked.fields.get("file") == "1" else ""  # pywb's word for the body alone
    return MovedTo(f"{served.replay.address}{time}{as_it_was}/{quote(replayed, IN_URLS)}")


def sign_in(served: Served, asked: Asked) -> Answer:
    """The form for a token; a token in it, or in the address, becomes the cookie of the browser."""
    secret = asked.fields.get("token", "").strip()
    if secret and (session := served.access.signed_in(secret)):
        return MovedTo("/", served.access.cookie_header(session, secure=asked.is_secure))
    if secret:
        why = "this token opens nothing: it is used up, withdrawn, too old, or not of this server"
        return ShownPage({"why": why}, status=HTTPStatus.FORBIDDEN)
    return ShownPage({"why": ""})


def sign_out(served: Served, asked: Asked) -> Answer:
    """Take the cookie away from the browser."""
    return MovedTo("/sign-in", served.access.cookie_header("", secure=asked.is_secure))


@cache
def _files() -> Mapping[str, bytes]:
    """The files of these pages, by name."""
    return {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in TYPES}


def static(_: Served, asked: Asked) -> Answer:
    """A style sheet, a script or a picture of these pages."""
    name = asked.names["name"]
    data = _files().get(name)
    if data is None:
        return RefusedRequest(HTTPStatus.NOT_FOUND, "there is no such file")
    return SentBytes(data, TYPES[Path(name).suffix], len(data), more={"Cache-Control": "no-cache"})


def metrics(served: Served, _: Asked) -> Answer:
    """Answer Prometheus: the figures in the state folder; those that cannot be read are absent."""
    return SentBytes(figures.read(served.state).encode(), figures.CONTENT_TYPE)


def health(served: Served, _: Asked) -> Answer:
    """Answer a monitor: is all that is served there?"""
    served.archive.check_store()
    versions, replay = served.archive.versions(), served.replay.state()
    is_whole = replay == OFF or (all(versions.values()) and replay == "ready")
    is_whole = is_whole and not served.archive.lost()
    status = HTTPStatus.OK if is_whole else HTTPStatus.SERVICE_UNAVAILABLE
    return ShownPage({"replay": replay, "versions": dict(versions)}, status=status)
