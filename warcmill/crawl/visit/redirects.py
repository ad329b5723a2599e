"""Redirects that lead back into their own chain: cookie walls, bounces by a session, pages that load anew. Pure.

A crawl asks for each URI once. A redirect back to a URI of its own chain is followed all the same, as a browser does,
if what would be sent now differs from what was sent, the cookies above all; at most 20 redirects after each other. That
URI has a key of its own, by how often the chain came there, so that it is compared with the same visit of an earlier
launch. The chain is in the payload of its URIs, as digests:

    {"redirects": {"chain": [["4f1c...", "a3b0..."]], "times": 2}}

First the key of a URI, then what was sent for it. Where a chain has one URI, for which nothing was sent but its
address, the payload is left out: `via` says as much.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from warcmill.crawl.extract.links import REDIRECT, Link
from warcmill.crawl.fetch.exchange import FetchOptions, at_route, read
from warcmill.crawl.policies.scope import REDIRECTS, SITEMAP
from warcmill.crawl.uri import Uri, without_session

LOOP = "redirectLoop"  # noted in the log of an answer that redirects back, where that is not followed
NAME = "redirects"
TOO_MANY = f"it redirects back, after {REDIRECTS} redirects"
MOST = 100  # redirects of one answer that may lead back; a browser follows the first
_BYTES = 8
_PLAIN = FetchOptions()
_LOCATION = "location:"


class RedirectsFollowed(NamedTuple):
    """The links of an answer without those that lead back in vain; `ended` is such a redirect, with the reason."""

    links: Sequence[Link]
    ended: Link | None = None
    why: str = ""


def sent(uri: str, cookies: str, options: FetchOptions = _PLAIN) -> str:
    """A digest of all that a request for a URI has, but for where it was found."""
    return _digest(uri, cookies, options.method, *map(str, options.headers), options.body)


def key_of(key: str, payload: str) -> str:
    """The key of a URI with this payload: one to which its chain has come before is another URI."""
    times = _read(payload).get("times")
    return f"{key} {NAME}={times}" if isinstance(times, int) else key  # no URI has a blank


def followed(page: Uri, sent_for_it: str, links: Sequence[Link], would_send: Callable[[str], str]) -> RedirectsFollowed:
    """The links of an answer, its redirects with the chain; `would_send` gives the digest of a request for a URI."""
    if not any(link.hop == REDIRECT for link in links):
        return RedirectsFollowed(links)
    chain = [*_before(page), [_digest(without_session(page.uri)), sent_for_it]]
    kept, ended, why, number = list[Link](), None, "", 0
    for link in links:
        number += link.hop == REDIRECT
        if link.hop != REDIRECT or link.payload or number > MOST:
            kept.append(link)
            continue
        key = _digest(without_session(link.uri))
        times = sum(one == key for one, _ in chain)
        against = _against(page, link, [key, would_send(link.uri)] in chain) if times else ""
        if not against:
            kept.append(link._replace(payload=_payload(page, chain, times + 1)))
        elif link.context == _LOCATION:
            ended, why = link, against
    return RedirectsFollowed(kept, ended, why)


def _against(page: Uri, link: Link, was_sent: bool) -> str:
    """The reason against following a redirect back; '' if it is followed."""
    if was_sent:
        return "it redirects back, and what would be sent was sent before"
    if len(page.hops) - len(page.hops.rstrip(REDIRECT)) >= REDIRECTS:
        return TOO_MANY
    return "a person sees the page first" if link.is_slow else ""


def _before(page: Uri) -> list[list[str]]:
    """The chain that led to a URI."""
    if not page.hops.endswith(REDIRECT):
        return []
    chain = _read(page.payload).get("chain")
    if isinstance(chain, list) and all(isinstance(one, list) and len(one) == 2 for one in chain):
        return chain[-REDIRECTS:]
    return [[_digest(without_session(page.via)), sent(page.via, "")]]


def _payload(page: Uri, chain: list[list[str]], times: int) -> str:
    """The payload of a redirect's target. It is a sitemap, if what redirects there was named as one; and it has the
    route, as in a browser (Fetch, 4.4)."""
    named: dict[str, Any] = json.loads(f"{{{SITEMAP}}}") if SITEMAP in page.payload else {}
    if '"route"' in page.payload and (route := read(page.payload).route):
        named |= json.loads(at_route(route))
    is_plain = len(chain) == 1 and chain[0][1] == sent(page.uri, "")
    if times > 1:
        named[NAME] = {"chain": chain, "times": times}
    elif not is_plain:
        named[NAME] = {"chain": chain}
    return json.dumps(named, sort_keys=True, separators=(",", ":")) if named else ""


def _read(payload: str) -> dict[str, Any]:
    """The chain and the number of a payload; nothing in it raises."""
    if f'"{NAME}"' not in payload:
        return {}
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    own = found.get(NAME) if isinstance(found, dict) else None
    return own if isinstance(own, dict) else {}


def _digest(*parts: str) -> str:
    return blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=_BYTES).hexdigest()
