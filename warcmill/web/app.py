"""The server of `warcmill serve`, by WSGI: each request is parsed, its role is looked up, its route answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from warcmill.errors import BadInput, NotReady, WarcmillError
from warcmill.model import Json
from warcmill.versions import search as searching
from warcmill.web import http, pages
from warcmill.web.archive import Archive, ShownCaptures
from warcmill.web.http import CSS, PageAnswer, PageRequest, Token, in_json, moved

log = logging.getLogger(__name__)
Start = Callable[[str, list[tuple[str, str]]], Any]
_IN_URLS = "%/:?=&;,@!$'()*+~[]"  # of a captured URL, sent on as they are; # would cut it


class Replay(Protocol):
    """Where captures are replayed."""

    @property
    def address(self) -> str:
        """The address before the time and the URL of a capture."""
        ...

    @property
    def missing(self) -> str:
        """Why there is none, and what installs it; '' where there is one."""
        ...

    def state(self) -> str:
        """`ready`, or what it is instead."""
        ...


@dataclass(frozen=True)
class App:
    """A WSGI application. It keeps nothing between requests."""

    archive: Archive
    replay: Replay
    token: Token

    def __call__(self, environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
        answer = self.answer(environ)
        start(answer.line, answer.headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [answer.body]

    def answer(self, environ: Mapping[str, Any]) -> PageAnswer:
        """The answer to a request, whatever is wrong with it."""
        try:
            request = http.parse(environ)
        except BadInput as error:
            return _refusal(HTTPStatus.BAD_REQUEST, str(error))
        refused = self._refused(request)
        return refused or self._routed(request)

    def _refused(self, request: PageRequest) -> PageAnswer | None:
        """Why a request is not answered; None if it is."""
        if request.method not in http.METHODS:
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED, "this server is only read: GET and HEAD", request)
        if request.path not in _ANSWERS:
            return _refusal(HTTPStatus.NOT_FOUND, "this address is not one of this server", request)
        if http.host_name(request.host) == urlsplit(self.replay.address).hostname:
            why = "this name is that of replay, which must not get the cookie; open the address that serve printed"
            return _refusal(HTTPStatus.MISDIRECTED_REQUEST, why, request)
        if http.may(http.role_of(request, self.token), request.path):
            return None
        if self.token.is_in_url(request):
            return moved("./", self.token.cookie_header(secure=self.replay.address.startswith("https:")))
        why = "the token is missing, or is not that of this server; open the address that 'warcmill serve' printed"
        return _refusal(HTTPStatus.FORBIDDEN, why, request)

    def _routed(self, request: PageRequest) -> PageAnswer:
        try:
            return _ANSWERS[request.path](self, request)
        except BadInput as error:
            return _refusal(HTTPStatus.BAD_REQUEST, str(error), request)
        except NotReady as error:
            return _refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error), request)
        except WarcmillError as error:
            log.error("%s: %s", request.path, error)
            why = "the archive does not answer; the log of this server has the reason"
            return _refusal(HTTPStatus.SERVICE_UNAVAILABLE, why, request)

    def missing(self) -> list[str]:
        """The parts that are not there to be searched or replayed, each with the command that brings it."""
        return [*dict.fromkeys(filter(None, (*self.archive.missing(), self.replay.missing)))]

    def home(self, request: PageRequest) -> PageAnswer:
        """The form. A token that is still in the URL is taken out of it."""
        if "token" in request.fields:
            return moved("./")
        return _html(pages.home(http.search_of({}), self.missing()))

    def search(self, request: PageRequest) -> PageAnswer:
        """A page of results, or the same in JSON."""
        search = http.search_of(request.fields)
        captures = self._captures(search)
        if request.in_json:
            return self._captures_in_json(search, captures) if captures else self._in_json(search)
        if captures:
            return _html(pages.captures(search, captures))
        if search.query is None:
            return _html(pages.home(search, self.missing()))
        return _html(pages.results(search, self.archive.search(search.query, search.skipped, pages.MARKS)))

    def _captures(self, search: http.Search) -> ShownCaptures | None:
        """The captures of a URL that was typed; None for words, and for what may be words and has no capture."""
        if not search.url:
            return None
        try:
            found = self.archive.captures_of(search.url, *search.times)
        except NotReady:
            if search.is_url:
                raise
            return None
        return found if found.captures or search.is_url else None

    def _captures_in_json(self, search: http.Search, found: ShownCaptures) -> PageAnswer:
        shown = found.last[search.skipped : search.skipped + searching.MOST]
        listed: list[Json] = [{**asdict(one), "capture": pages.way_to(one.time, one.url)} for one in shown]
        return in_json({"captures": found.captures, "found": listed, "page": search.page, "version": found.version})

    def _in_json(self, search: http.Search) -> PageAnswer:
        if search.query is None:
            raise BadInput("q", "there are no words in it")
        found = self.archive.search(search.query, search.skipped, searching.MARKS)
        best: list[Json] = [{**asdict(one), "capture": pages.way_to(one.time, one.url)} for one in found.best]
        return in_json({"captures": found.captures, "found": best, "page": search.page, "version": found.version})

    def capture(self, request: PageRequest) -> PageAnswer:
        """The way to the replay of a capture; 404 if it is not there, or hidden."""
        time, url = http.capture_of(request.fields)
        replayed = self.archive.replayed(time, url)
        if not replayed:
            return _refusal(HTTPStatus.NOT_FOUND, "the archive shows no capture of this URL and time", request)
        self.archive.check_store()
        if self.replay.missing:
            raise NotReady("replay", self.replay.missing)
        state = self.replay.state()
        if state != "ready":
            raise NotReady("replay", f"its server is {state}; try again in a minute")
        return moved(f"{self.replay.address}{time}/{quote(replayed, _IN_URLS)}")

    def style(self, _: PageRequest) -> PageAnswer:
        """The style sheet."""
        return PageAnswer(HTTPStatus.OK, pages.STYLE.encode(), CSS)

    def health(self, _: PageRequest) -> PageAnswer:
        """Answer a monitor: is all that is served there?"""
        self.archive.check_store()
        versions, replay = self.archive.versions(), self.replay.state()
        status = HTTPStatus.OK if all(versions.values()) and replay == "ready" else HTTPStatus.SERVICE_UNAVAILABLE
        return in_json({"replay": replay, "versions": dict(versions)}, status)


def _html(page: str) -> PageAnswer:
    return PageAnswer(HTTPStatus.OK, page.encode("utf-8", "replace"))


def _refusal(status: HTTPStatus, why: str, request: PageRequest | None = None) -> PageAnswer:
    if request and request.in_json:
        return in_json({"error": why}, status)
    page = pages.problem(status.phrase, why, reader=status is not HTTPStatus.FORBIDDEN)
    return PageAnswer(status, page.encode("utf-8", "replace"))


_ANSWERS: Mapping[str, Callable[[App, PageRequest], PageAnswer]] = {
    "/": App.home,
    "/search": App.search,
    "/capture": App.capture,
    "/style.css": App.style,
    "/healthz": App.health,
}
