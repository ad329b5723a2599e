"""Hand documents to W3ACT, the curators' tool of UKWA: a login by its form, then POST /documents. Writes to W3ACT.

The cookie of the login is kept while the client is open. Where W3ACT asks for a login again, which it does by a
redirect or by its form with 200, it is given once more. W3ACT knows a document by its URL and time: the same again
changes it.

Stands alone, as a client of another's server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from warcmill.clients import asked
from warcmill.clients.asked import ServerAnswer
from warcmill.errors import BadInput, Unavailable
from warcmill.model import Json

SECONDS: Final = 30.0  # of a whole answer
_TAKEN = frozenset({200, 201, 204})
_REFUSED = frozenset({400, 409, 413, 422})
_LOGGED_IN = frozenset({200, 302, 303})
_NEXT: Final = "look at its log, and at w3act, user and password_file of [documents]"


class W3act:
    """A W3ACT by its URL, without `/documents`. Without `user` it wants no login. Close it."""

    def __init__(self, url: str, user: str = "", password: str = "", seconds: float = SECONDS) -> None:
        self.url, self._user, self._password, self._seconds = url.rstrip("/"), user, password, seconds
        self._session, self._is_in = asked.session(), False
        self._what = f"W3ACT {self.url}"

    def close(self) -> None:
        """Close its connections."""
        self._session.close()

    def post(self, documents: Sequence[Mapping[str, Json]]) -> None:
        """Hand some documents over. BadInput if it refuses one of them, Unavailable for any other answer."""
        self.log_in()
        answer = self._posted(documents)
        if self._user and _asks_for_login(answer):  # it was started again, or the session is over
            self._is_in = False
            self.log_in()
            answer = self._posted(documents)
        if answer.status in _REFUSED:
            raise BadInput(self.url, f"W3ACT refuses documents with {answer}; {_NEXT}")
        if answer.status not in _TAKEN or answer.is_page:
            raise Unavailable(self._what, f"it answered {answer}, which acknowledges nothing; {_NEXT}")

    def log_in(self) -> None:
        """Log in, unless it has done so. Unavailable if W3ACT does not answer, or takes neither user nor password."""
        if self._is_in or not self._user:
            return
        form = {"email": self._user, "password": self._password}
        self._session.cookies.clear()
        answer = self._ask("/login", form, "application/x-www-form-urlencoded")
        leads_back = answer.headers.get("Location", "").partition("?")[0].rstrip("/").endswith("/login")
        if answer.status not in _LOGGED_IN or leads_back or not self._session.cookies:
            raise Unavailable(self._what, f"it refuses the login of {self._user} with {answer.status}; {_NEXT}")
        self._is_in = True

    def _posted(self, documents: Sequence[Mapping[str, Json]]) -> ServerAnswer:
        data = json.dumps(documents, ensure_ascii=False).encode("utf-8", "replace")
        return self._ask("/documents", data, "application/json")

    def _ask(self, path: str, data: object, kind: str) -> ServerAnswer:
        url = f"{self.url}{path}"
        return asked.ask(self._session, "POST", url, data, self._seconds, self._what, Content_Type=kind)


def _asks_for_login(answer: ServerAnswer) -> bool:
    return answer.status in (302, 303, 401, 403) or (answer.status in _TAKEN and answer.is_page)
