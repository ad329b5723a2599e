"""Solr 9 by HTTP: post and delete documents, commit, count, and read documents again. A collection is a core, too.

Documents go by the update chain `tolerant-chain` of config/solr: it keeps the good ones of a batch, and answers 200
with the errors of the others. Without it Solr answers 400 to a batch with a bad one, and keeps those before it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote, urlsplit

import requests
from urllib3.exceptions import HTTPError

from warcmill.errors import Unavailable

CHAIN: Final = "tolerant-chain"
Values = Mapping[str, Any]
_CONNECT_SECONDS, _SECONDS = 10, 600  # a hard commit of a large index takes minutes
_MOST_DOCUMENTS, _MOST_BYTES = 500, 8 << 20  # of one POST
_MOST_ANSWER = 256 << 20  # bytes
_CHUNK = 1 << 16
_SAID = 300  # characters shown of an answer
_AT_ONCE = 200  # ids in one question


class RefusedDocument(NamedTuple):
    """A document that Solr did not take, and its message."""

    id: str
    why: str


class Solr:
    """The collections of one Solr: `url` ends in `/solr`. Leave the block to close its connections."""

    def __init__(self, url: str, seconds: float = _SECONDS) -> None:
        self._url, self._seconds = url.rstrip("/"), seconds
        self._session = requests.Session()
        self._session.trust_env = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._session.close()

    def name(self, collection: str) -> str:
        """The URL of a collection without user and password, for messages."""
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}/{collection}"

    def post(self, collection: str, documents: Iterable[Values]) -> list[RefusedDocument]:
        """Post documents; return those that were refused. Queries see the others after a commit.

        Unavailable leaves it open which documents were taken: post them again. The same id replaces a document.
        """
        refused: list[RefusedDocument] = []
        for batch in _batches(documents):
            refused += self._update(collection, batch)
        return refused

    def delete(self, collection: str, ids: Iterable[str]) -> None:
        """Delete documents by id, whether they are there or not."""
        wanted = list(ids)
        for at in range(0, len(wanted), _AT_ONCE):
            self._deleted(collection, json.dumps({"delete": wanted[at : at + _AT_ONCE]}).encode())

    def delete_all(self, collection: str, field: str, value: str) -> None:
        """Delete the documents in which a field has this value."""
        self._deleted(collection, json.dumps({"delete": {"query": _term(field, value)}}).encode())

    def commit(self, collection: str) -> None:
        """Make all that was posted and deleted durable, and let queries see it."""
        self._ask(collection, "update", {"commit": "true", "waitSearcher": "true"}, b"{}")

    def count(self, collection: str, **fields: str) -> int:
        """The number of documents that queries find, all or those in which these fields have these values."""
        return self._found(collection, self._select(collection, fields, {"rows": "0"}))[0]

    def facet(self, collection: str, of: str, **fields: str) -> dict[str, int]:
        """The documents that each value of a field has, among those in which other fields have these values."""
        options = {"rows": "0", "facet": "true", "facet.field": of, "facet.limit": "-1", "facet.mincount": "1"}
        answer = self._select(collection, fields, {**options, "json.nl": "map"})
        try:
            return {str(value): int(number) for value, number in answer["facet_counts"]["facet_fields"][of].items()}
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise self._odd(collection, f"no facet of {of}: {answer}") from error

    def documents(self, collection: str, ids: Sequence[str]) -> dict[str, Values]:
        """The stored fields of documents, by id; without those that are not there."""
        found: dict[str, Values] = {}
        for at in range(0, len(ids), _AT_ONCE):
            part = ids[at : at + _AT_ONCE]
            query = {"q": f"{{!terms f=id}}{','.join(part)}", "rows": str(len(part)), "wt": "json"}
            answer = self._ask(collection, "select", {}, query)
            found |= {str(one["id"]): one for one in self._found(collection, answer)[1]}
        return found

    def fields(self, collection: str) -> dict[str, Values]:
        """The fields of the schema, by name."""
        answer = self._ask(collection, "schema/fields", {"showDefaults": "true"})
        try:
            return {str(field["name"]): field for field in answer["fields"]}
        except (KeyError, TypeError) as error:
            raise self._odd(collection, f"no list of fields: {answer}") from error

    def check_chain(self, collection: str) -> None:
        """Unavailable unless documents can be posted by the update chain. Changes nothing."""
        self._ask(collection, "update", {"update.chain": CHAIN}, b"{}")

    def _update(self, collection: str, batch: bytes) -> Iterator[RefusedDocument]:
        answer = self._ask(collection, "update", {"update.chain": CHAIN}, batch)
        try:
            for error in answer["responseHeader"].get("errors", ()):
                yield RefusedDocument(str(error["id"]), str(error["message"])[:_SAID])
        except (KeyError, TypeError, AttributeError) as error:
            raise self._odd(collection, f"errors of another form: {answer}") from error

    def _deleted(self, collection: str, body: bytes) -> None:
        for refused in self._update(collection, body):
            raise self._odd(collection, f"it did not delete {refused.id}: {refused.why}")

    def _select(self, collection: str, fields: Mapping[str, str], options: Mapping[str, str]) -> Values:
        filters = [_term(field, value) for field, value in fields.items()]
        return self._ask(collection, "select", {}, {"q": "*:*", "fq": filters, "wt": "json", **options})

    def _found(self, collection: str, answer: Values) -> tuple[int, list[Values]]:
        try:
            found = answer["response"]
            return int(found["numFound"]), list(found["docs"])
        except (KeyError, TypeError, ValueError) as error:
            raise self._odd(collection, f"no documents: {answer}") from error

    def _ask(
        self, collection: str, path: str, query: Mapping[str, str], body: bytes | Mapping[str, object] | None = None
    ) -> Values:
        """Ask for JSON: by GET, by POST of JSON, or by POST of a form. Unavailable for any other answer."""
        url = f"{self._url}/{quote(collection, safe='')}/{path}"
        headers = {"Accept-Encoding": "identity"}
        if isinstance(body, bytes):
            headers["Content-Type"] = "application/json"
        method, timeout = "GET" if body is None else "POST", (_CONNECT_SECONDS, self._seconds)
        options: dict[str, Any] = {"params": query, "data": body, "headers": headers, "timeout": timeout}
        try:
            with self._session.request(method, url, stream=True, allow_redirects=False, **options) as answer:
                return self._parsed(collection, answer, self._read(collection, answer))
        except (requests.RequestException, HTTPError) as error:
            raise Unavailable(self.name(collection), f"Solr does not answer: {type(error).__name__}") from None

    def _read(self, collection: str, answer: requests.Response) -> bytes:
        deadline, body = time.monotonic() + self._seconds, bytearray()
        for chunk in answer.iter_content(_CHUNK):
            body += chunk
            if len(body) > _MOST_ANSWER:
                raise self._odd(collection, f"more than {_MOST_ANSWER:,} bytes")
            if time.monotonic() > deadline:
                raise Unavailable(self.name(collection), "Solr's answer was not complete when the time was over")
        return bytes(body)

    def _parsed(self, collection: str, answer: requests.Response, body: bytes) -> Values:
        """The answer as JSON. Its status and type come first: errors are often HTML."""
        try:
            said = json.loads(body) if "json" in answer.headers.get("Content-Type", "") else None
        except ValueError as error:
            raise self._odd(collection, f"JSON that ends early, or is none: {body[-80:]!a}") from error
        if answer.status_code != requests.codes.ok:
            raise Unavailable(self.name(collection), _refusal(answer.status_code, said))
        header = said.get("responseHeader") if isinstance(said, dict) else None
        if not isinstance(said, dict) or not isinstance(header, dict):
            raise self._odd(collection, f"{body[:80]!a}; is another server at this address?")
        if header.get("status") != 0:
            raise self._odd(collection, f"status {header.get('status')}: {said.get('error')}")
        return said

    def _odd(self, collection: str, what: str) -> Unavailable:
        return Unavailable(self.name(collection), f"Solr gave an odd answer: {what[:_SAID]}")


def _refusal(status: int, said: object) -> str:
    """The error that an answer other than 200 means."""
    error = said.get("error") if isinstance(said, dict) else None
    message = str(error.get("msg", ""))[:_SAID] if isinstance(error, dict) else ""
    if status == requests.codes.not_found:
        return "there is no such collection (404); make it with the configuration in config/solr"
    if status == requests.codes.service_unavailable:
        return "Solr is loading it, or is overloaded (503); the next scan asks again"
    return f"Solr answered {status}{': ' if message else ''}{message}"


def _term(field: str, value: str) -> str:
    """A query for exactly this value: no character of it has a meaning."""
    return f"{{!term f={field}}}{value}"


def _batches(documents: Iterable[Values]) -> Iterator[bytes]:
    """JSON arrays of documents, none of them too large."""
    held, size = list[bytes](), 0
    for one in documents:
        data = json.dumps(one, ensure_ascii=False).encode("utf-8", "replace")
        if held and (len(held) == _MOST_DOCUMENTS or size + len(data) > _MOST_BYTES):
            yield b"[" + b",".join(held) + b"]"
            held, size = [], 0
        held.append(data)
        size += len(data)
    if held:
        yield b"[" + b",".join(held) + b"]"
