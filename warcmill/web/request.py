"""A request as a view gets it, and the answers that a view gives. Pure. Everything in a request is hostile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from urllib.parse import quote, urlencode

from msgspec import Struct, field

from warcmill.model import Json
from warcmill.web.access import Role, User
from warcmill.web.hidden import HiddenNames

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
# Nothing is loaded, run or framed but our own style sheet and script, and no other site gets the address of a page.
GUARDS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with none at all, a browser sends the Origin of a form as null
    "X-Content-Type-Options": "nosniff",
}


SLOWLY = "warcmill.slowly"  # of a scope's extensions: has the server bound a body by its rate, not by 30 seconds


class Asked(Struct, frozen=True):
    """A request. `names` are those in the route's path, `fields` those of the address, or of the form that was posted.
    `lists` has all values of a field that comes several times, in their order; `fields` has the last one.

    `form`: the name that the form's one-time token gives to what is done; '' for what is not posted.
    `base`: the address of this server as the browser has it. `is_from_elsewhere`: a link of another site leads here, as
    those above an archived page do, and a browser keeps our cookie back. `accept`, `range`: the headers of
    these names. `has_groups`: there are groups of clusters; `has_documents`: crawls are searched for documents.

    `document`: what a program has posted in place of a form; None without one. `once`: the header Idempotency-Key, by
    which it names what is done once. `files`: those of a form that takes files, by field. `upload`: the path in the
    state of the file that came with a form for an upload; '' without one.
    """

    method: str
    path: str
    names: Mapping[str, str]
    fields: Mapping[str, str]
    user: User
    form: str = ""
    base: str = ""
    is_secure: bool = False
    is_from_elsewhere: bool = False
    accept: str = ""
    range: str = ""
    hidden: HiddenNames = field(default_factory=HiddenNames)
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    has_groups: bool = False
    has_documents: bool = False
    document: bytes | None = None
    once: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    upload: str = ""

    @property
    def sees_hidden(self) -> bool:
        """True for who gets what is hidden, marked; readers get nothing of it."""
        return self.user.role > Role.READER

    @property
    def address(self) -> str:
        """The path with its fields."""
        fields = {**self.fields, **self.lists}
        return f"{quote(self.path)}?{urlencode(fields, doseq=True)}" if fields else quote(self.path)

    @property
    def in_json(self) -> bool:
        """True if the answer is for a program."""
        is_asked = self.accept.partition(",")[0].partition(";")[0].strip().lower() == "application/json"
        return self.fields.get("format") == "json" or is_asked or self.document is not None


class ShownPage(Struct, frozen=True):
    """An answer; as a page, it is shown by the route's template, which gets `shown` besides. Keys are names.

    `is_of_index`: it has captures alone, of which those that are hidden are left out by their keys. A text of a page
    that is shown may name a page that is hidden.
    """

    answer: Mapping[str, Json]
    shown: Mapping[str, object] = field(default_factory=dict)
    status: HTTPStatus = HTTPStatus.OK
    is_of_index: bool = False


class MovedTo(Struct, frozen=True):
    """The way to another address, which is plain ASCII. `cookie`: a Set-Cookie header."""

    to: str
    cookie: str = ""


class RefusedRequest(Struct, frozen=True):
    """Why there is no answer, and what to do. `what` is wrong; a program gets it apart."""

    status: HTTPStatus
    why: str
    what: str = "the request"


class RefusedBody(Exception):
    """A body that is not taken: a document, or the file of a form. `answer` has why."""

    def __init__(self, status: HTTPStatus, why: str, what: str = "the document") -> None:
        super().__init__(why)
        self.answer = RefusedRequest(status, why, what)


class SentBytes(Struct, frozen=True):
    """Bytes of a type of their own. `length`: of all of them, None where it is not known."""

    pieces: bytes | Iterator[bytes]
    type: str
    length: int | None = None
    status: HTTPStatus = HTTPStatus.OK
    more: Mapping[str, str] = field(default_factory=dict)


Answer = ShownPage | MovedTo | RefusedRequest | SentBytes
