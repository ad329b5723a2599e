"""Tell a register of WARCs the state of a launch: PUT {url}/{job}/{launch}, a JSON object. Writes to the register.

A PUT replaces what the register had, so one without an answer is sent again. Only 200, 201 and 204 acknowledge it, and
no page for people does, as a proxy sends one with 200.

Stands alone, as a client of another's server.
"""

from __future__ import annotations

from typing import Final

from warcmill.clients import asked
from warcmill.errors import BadInput, Unavailable
from warcmill.model import Launch

SECONDS: Final = 15.0  # of a whole answer
_TAKEN = frozenset({200, 201, 204})
_REFUSED = frozenset({400, 409, 410, 413, 422})


class WarcRegister:
    """A register by its URL. `token`: what the header Authorization has after `Bearer`; '' for none. Close it."""

    def __init__(self, url: str, token: str = "", seconds: float = SECONDS) -> None:
        self.url, self._seconds, self._session = url.rstrip("/"), seconds, asked.session()
        self._what = f"the register {self.url}"
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"

    def close(self) -> None:
        """Close its connections."""
        self._session.close()

    def put(self, launch: Launch, document: bytes) -> None:
        """Replace what it has of a launch. BadInput if it refuses this document, Unavailable for any other answer."""
        url = f"{self.url}/{launch.job}/{launch.id}"
        answer = asked.ask(
            self._session, "PUT", url, document, self._seconds, self._what, Content_Type="application/json"
        )
        if answer.status in _REFUSED:
            raise BadInput(self.url, f"the register refuses {launch} with {answer}; look at its log")
        if answer.status not in _TAKEN or answer.is_page:
            why = f"it answered {answer}, which acknowledges nothing; look at its log, and at [register] in luigi.cfg"
            raise Unavailable(self._what, why)
