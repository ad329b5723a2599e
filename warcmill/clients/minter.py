"""Have ARKs given by a service that answers `?arks=N`, as NOID's and EZID's minters are asked: one ARK a line."""

from __future__ import annotations

import time
from typing import Final
from urllib.parse import urlencode, urlsplit, urlunsplit

import requests
from urllib3.exceptions import HTTPError

from warcmill.errors import BadInput, Mismatch, Unavailable
from warcmill.formats.sip.ark import LONGEST, is_ark

SECONDS: Final = 60
CONNECT_SECONDS: Final = 10
MOST: Final = 10_000  # ARKs that are asked for at a time
_CHUNK: Final = 64 * 1024
_SAID: Final = 60  # characters shown of an answer


def arks(url: str, number: int, seconds: float = SECONDS) -> tuple[str, ...]:
    """Return that many new ARKs. Unavailable when the service fails; BadInput or Mismatch for another answer.

    ARKs of an answer that is refused, or lost on the way, are not used: a service may have gaps in what it gave.
    """
    given: list[str] = []
    while len(given) < number:
        given += _some(url, min(MOST, number - len(given)), seconds)
    if len(set(given)) != number:
        raise Mismatch(f"ARKs of {shown(url)}", f"{number} different ones", f"{len(set(given))}")
    return tuple(given)


def shown(url: str) -> str:
    """Return the service's URL without its user and query, which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _some(url: str, number: int, seconds: float) -> list[str]:
    body = _get(_with_number(url, number), shown(url), (LONGEST + 2) * number + 2, seconds)
    try:
        lines = body.decode("ascii").split()
    except UnicodeDecodeError as error:
        raise BadInput(shown(url), "the minter's answer is not text in ASCII", error.start) from error
    for line in lines:
        if not is_ark(line):
            raise BadInput(shown(url), f"the minter's answer has {line[:_SAID]!a} where an ARK should be")
    if len(lines) != number:
        raise Mismatch(f"the answer of {shown(url)}", f"{number} ARKs", f"{len(lines)}")
    return lines


def _with_number(url: str, number: int) -> str:
    parts = urlsplit(url)
    query = "&".join(filter(None, (parts.query, urlencode({"arks": number}))))
    return urlunsplit(parts._replace(query=query))


def _get(url: str, name: str, most: int, seconds: float) -> bytes:
    deadline, body = time.monotonic() + seconds, bytearray()
    with requests.Session() as session:
        session.trust_env = False
        try:
            timeout = (min(CONNECT_SECONDS, seconds), seconds)
            headers = {"Accept-Encoding": "identity"}
            with session.get(url, headers=headers, timeout=timeout, stream=True, allow_redirects=False) as answer:
                if answer.status_code != requests.codes.ok:
                    raise Unavailable(name, f"the minter answered {answer.status_code}")
                while chunk := answer.raw.read1(_CHUNK):  # what has come: iter_content waits for the whole chunk
                    body += chunk
                    if len(body) > most:
                        raise BadInput(name, f"the minter's answer has more than {most:,} bytes")
                    if time.monotonic() > deadline:
                        raise Unavailable(name, "the minter's answer was not complete when the time was over")
        except (requests.RequestException, HTTPError) as error:
            raise Unavailable(name, f"the minter does not answer: {type(error).__name__}") from None
    return bytes(body)
