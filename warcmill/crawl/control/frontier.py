"""The verbs of a control socket that ask the frontier: add, suspend, release, remove, get, list, rate, load, dump; and
of a crawl whose hosts have owners: owners, take."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from warcmill.crawl.control.messages import MOST, Subject, target, whole
from warcmill.crawl.control.sites import KeptSites
from warcmill.crawl.fetch import exchange
from warcmill.crawl.frontier import Change, Defer, Frontier, Gate, Intake, Offered, Rate, dump, journal
from warcmill.crawl.policies.owners import FORBIDDEN, OTHERS, OURS, HostOwner, Owners
from warcmill.crawl.uri import FOREVER, Renew, Status, Uri, make, shown
from warcmill.errors import BadInput, NotReady
from warcmill.formats.logs import crawllog
from warcmill.model import Json

_MAY = {"uri": str, "key": str, "hops": str, "source": str, "via": str, "priority": int, "not_before": str}
MOST_NAMED = 100  # URIs of a site that are refused
_are_hops = re.compile(r"[LERXMSI]{0,255}").fullmatch  # without P: what a fetch needs passes all policies


class Policies(Protocol):
    """The policies about what a person offers to a crawl."""

    async def by_hand(self, uris: Sequence[Uri], frontier: Frontier) -> list[Offered]:
        """Offer URIs, as links are; answer for each, in order."""
        ...

    async def against(self, uris: Sequence[Uri]) -> list[str]:
        """Return the reasons of the policies against URIs that wait; '' where they have none."""
        ...


class Anything:
    """No policies: all is taken."""

    async def by_hand(self, uris: Sequence[Uri], frontier: Frontier) -> list[Offered]:
        """Offer URIs."""
        return await frontier.offer(uris)

    async def against(self, uris: Sequence[Uri]) -> list[str]:
        """Nothing."""
        return [""] * len(uris)


class FrontierControl:
    """A part of a crawl's `Controlled`. The policies judge what a person adds, loads or resumes. A rate by hits without
    an `at_once` gets this one. `sites` notes what is asked of a site, if there is such a file."""

    def __init__(
        self, frontier: Frontier, policies: Policies | None = None, at_once: int = 1, sites: KeptSites | None = None
    ) -> None:  # fmt: skip
        self._frontier, self._policies, self._at_once = frontier, policies or Anything(), at_once
        self._sites = sites

    async def add(self, uris: list[Json], crawl: str) -> Json:
        """Offer URIs, each a text or an object; answer for each. One that is refused hinders no other."""
        made = [_made(one, crawl) for one in uris]
        named = [one for one in made if isinstance(one, Uri)]
        answers = iter(await self._policies.by_hand(named, self._frontier))
        found: list[Json] = []
        for asked, one in zip(uris, made, strict=True):
            offered = next(answers) if isinstance(one, Uri) else Offered(Intake.REFUSED, one.why)
            name = one.uri if isinstance(one, Uri) else shown(_name(asked))
            why: dict[str, Json] = {"why": offered.why} if offered.why else {}
            found.append({"uri": name, "answer": str(offered.answer), **why})
        return {"answers": found}

    async def suspend(self, target: Subject) -> Json:
        """Let a URI or a site wait until it is released."""
        return await self._wait(target, FOREVER)

    async def release(self, target: Subject) -> Json:
        """End the wait of a URI or a site. URIs that the policies refuse stay suspended, and are named."""
        if target.site:
            refused = await self._suspend_refused(target)
            if self._sites:
                self._sites.release(target.site)
            await self._frontier.block(Gate(target.site), 0.0)
            return {"changed": 1, **({"refused": [*refused]} if refused else {})}
        page = await self._frontier.list(target.crawl, keys=[target.key])
        uris = [uri for uri in page.uris if uri.status in (Status.SCHEDULED, Status.SUSPENDED)]
        names = _names(uris, await self._policies.against(uris))
        return {"changed": 0, "refused": names} if names else await self._wait(target, 0.0)

    async def _suspend_refused(self, target: Subject) -> Sequence[Json]:
        """Suspend the URIs of a suspended site that the policies refuse; name the first of them."""
        names: Sequence[Json] = ()
        number = after = 0
        if not await self._frontier.suspended([target.site]):
            return names
        while True:
            page = await self._frontier.list(target.crawl, after=after, limit=MOST)
            uris = [uri for uri in page.uris if uri.queue == target.site]
            whys = await self._policies.against(uris)
            refused = [uri for uri, why in zip(uris, whys, strict=True) if why]
            await self._frontier.defer([Defer(uri.crawl, uri.key, FOREVER) for uri in refused])
            number += len(refused)
            names = [*names, *_names(uris, whys)][:MOST_NAMED]
            after = page.next
            if not after:
                return [*names, f"... and {number - len(names):,} more"] if number > len(names) else names

    async def remove(self, target: Subject) -> Json:
        """Remove a URI, or what waits of a site; return how many waited."""
        if not target.site:
            return {"removed": await self._frontier.remove(target.crawl, [target.key])}
        removed, after = 0, 0
        while True:
            page = await self._frontier.list(target.crawl, after=after, limit=MOST)
            keys = [uri.key for uri in page.uris if uri.queue == target.site]
            removed += await self._frontier.remove(target.crawl, keys) if keys else 0
            after = page.next
            if not after:
                return {"removed": removed}

    async def get(self, target: Subject) -> Json:
        """Return what is known of a URI: an empty object when it was never taken."""
        page = await self._frontier.list(target.crawl, keys=[target.key])
        return (await self._shown(page.uris))[0] if page.uris else {}

    async def list(self, crawl: str, after: int, limit: int) -> Json:
        """Return some of the URIs that wait, and where the next call begins; 0: there are no more."""
        if not 1 <= limit <= MOST or after < 0:
            raise BadInput("list", f"'limit' is 1 to {MOST}, 'after' what the last answer has as 'next'")
        page = await self._frontier.list(crawl, after=after, limit=limit)
        return {"uris": [*await self._shown(page.uris)], "next": page.next}

    async def _shown(self, uris: Sequence[Uri]) -> Sequence[Json]:
        """Some URIs as JSON. Of a suspended site none is leased."""
        suspended = await self._frontier.suspended(uri.queue for uri in uris if uri.queue)
        return [as_json(uri, is_site_suspended=uri.queue in suspended) for uri in uris]

    async def rate(self, fields: Mapping[str, Json]) -> Json:
        """Set the rate of a site, or of all sites without a rate of their own; `none` removes the site's own rate."""
        more = {name: value for name, value in fields.items() if name not in ("site", "none")}
        if bool(fields.get("none")) == bool(more):
            raise BadInput("rate", "name hits, window, scale, moderated or at_once; or none, to have none of its own")
        if "hits" in more:
            more.setdefault("at_once", self._at_once)
        found = target("rate", fields)
        site = found.site if found else ""
        if site and self._sites:
            Rate(**more)  # type: ignore[arg-type] # by FIELDS; what is wrong is not kept
            self._sites.rate(site, more or None)
        await self._frontier.set_rate(Gate(site), Rate(**more) if more else None)  # type: ignore[arg-type] # by FIELDS
        return {"site": site}

    async def load(self, uris: Sequence[Json], visited: Sequence[Json]) -> Json:
        """Offer URIs as a dump has them, and note others as visited; count the answers. BadInput for an invalid one."""
        try:
            offered = [dump.uri_of(one) for one in uris]  # type: ignore[arg-type] # TypeError unless it is an object
            done = [_visited(one) for one in visited]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput("load", f"a line of it is none of a dump: {error!r}") from error
        await self._frontier.change(lambda changes: self._note_visits(changes, done))
        answers = await self._policies.by_hand(offered, self._frontier)
        return _loaded(offered, answers, done)

    async def owners(self, fields: Mapping[str, Json]) -> Json:
        """Hear whose hosts are, up to an edition, and for how many seconds that counts; return the edition of what is
        known now. NotReady unless hosts have owners."""
        owners = self._owners()
        hosts = fields.get("hosts", [])
        if not isinstance(hosts, list) or len(hosts) > MOST:
            raise BadInput("owners", f"'hosts' is a list of at most {MOST}")
        told = [_owner(one) for one in hosts]
        if "edition" in fields:
            edition = whole(fields, "edition", 0)
            await asyncio.to_thread(owners.tell, edition, told, anew=bool(fields.get("anew")))
        if "alone" in fields:
            await asyncio.to_thread(owners.hear, whole(fields, "alone", 0))
        await self._have_told(told, anew=bool(fields.get("anew")))
        return {"edition": owners.edition}

    async def take(self, uris: Sequence[Json]) -> Json:
        """Take URIs that other crawls have handed over; pass over those of hosts that are not this one's: whoever has
        a host is given all of it. One that left this frontier is taken again; so is one that was visited, if its line
        has `renew`."""
        owners = self._frontier.owners
        try:
            named = [_handed(one) for one in uris]  # type: ignore[arg-type] # TypeError unless it is an object
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput("take", f"a line of it is none of a dump: {error!r}") from error
        ours = [uri for uri in named if owners is None or owners.is_ours(uri.uri)]
        for crawl in {uri.crawl for uri in ours}:
            some = {uri.key: uri for uri in ours if uri.crawl == crawl}
            for known in (await self._frontier.list(crawl, keys=[*some])).uris:
                if known.status is Status.REMOVED:
                    some[known.key].renew = Renew(force=True)
        answers = await self._frontier.offer(ours)
        whys = [one.why if one.answer is Intake.REFUSED else "" for one in answers]
        taken = sum(one.answer in (Intake.NEW, Intake.RENEWED) for one in answers)
        return {"taken": taken, "passed": len(uris) - len(ours), "refused": _names(ours, whys)}

    async def _have_told(self, told: Sequence[HostOwner], *, anew: bool) -> None:
        """Pass on whose hosts are, where other processes crawl, too."""

    def _owners(self) -> Owners:
        if not isinstance(self._frontier.owners, Owners):
            why = "its crawl began without 'rules' in the [group.NAME] of the job; stop it, and start it again"
            raise NotReady("the owners of hosts", why)
        return self._frontier.owners

    def _note_visits(self, changes: Change, done: Sequence[Uri]) -> None:
        for uri in done:
            changes.visit(uri, b"", by_hand=True)
        if done:
            self._frontier.note([journal.visited(uri, b"") for uri in done])

    async def dump(self, path: str) -> Json:
        """Copy the frontier to a new file, in the form that it has."""
        await self._frontier.snapshot(Path(path))
        return {}

    async def _wait(self, target: Subject, until: float) -> Json:
        if target.site:
            if self._sites:
                self._sites.suspend(target.site)
            await self._frontier.block(Gate(target.site), until)
            return {"changed": 1}
        changed = await self._frontier.defer([Defer(target.crawl, target.key, until)])
        return {"changed": sum(changed)}


def _handed(line: Mapping[str, Json]) -> Uri:
    """The URI of a line that is handed over."""
    uri = dump.uri_of(line)
    uri.renew = Renew(force=True) if line.get("renew") else None
    return uri


def _names(uris: Sequence[Uri], whys: Sequence[str]) -> list[Json]:
    """The URIs that are refused, each with the reason."""
    return [f"{shown(uri.uri)}: {why}" for uri, why in zip(uris, whys, strict=True) if why]


def _loaded(offered: Sequence[Uri], answers: Sequence[Offered], done: Sequence[Uri]) -> Json:
    """The answer about a part of a list."""
    whys = [one.why if one.answer is Intake.REFUSED else "" for one in answers]
    refused = _names(offered, whys)
    return {"new": sum(one.answer is Intake.NEW for one in answers), "visited": len(done), "refused": refused}


def _owner(one: Json) -> HostOwner:
    """A host and its owner, as the control has it."""
    if not (isinstance(one, list) and len(one) == 3 and all(isinstance(text, str) for text in one)):
        raise BadInput("owners", "a host is a list: its name, one of + - !, and why it is forbidden")
    host, owner, why = map(str, one)
    if owner not in (OURS, OTHERS, FORBIDDEN) or not host or any(letter.isspace() for letter in host):
        raise BadInput("owners", f"{shown(host)} has an owner that is none of + - !, or is not a host")
    return HostOwner(host, owner, why)


def _visited(one: Json) -> Uri:
    """A URI that is named as visited."""
    if not isinstance(one, dict):
        raise TypeError("it is no object")
    key, uri, crawl = (one.get(name, "") for name in ("key", "visited", "crawl"))
    if not (isinstance(uri, str) and isinstance(key, str) and isinstance(crawl, str)):
        raise TypeError("one of its texts is none")
    return Uri(key or uri, uri, "", crawl, status=Status(str(one["status"])))


def as_json(uri: Uri, *, is_site_suspended: bool = False) -> dict[str, Json]:
    """A URI as JSON; what it has not is left out. `suspended` is there where a person has suspended the site."""
    texts = {name: getattr(uri, name) for name in ("crawl", "hops", "via", "source", "payload", "hash", "spider")}
    numbers = {name: getattr(uri, name) for name in ("priority", "http_status", "tries")}
    times = {"not_before": _moment(uri.not_before), "finished": _moment(uri.download_finished)}
    key = uri.key if uri.key != uri.uri else ""
    more = {"key": key, "queue": uri.queue, **texts, **numbers, **times}
    waits = is_site_suspended and uri.status is Status.SCHEDULED
    status = {"status": str(Status.SUSPENDED if waits else uri.status), **({"suspended": "site"} if waits else {})}
    return {"uri": uri.uri, **status, **{name: value for name, value in more.items() if value}}


def _moment(seconds: float) -> str:
    """A time as text; '' without one, and for one that never comes."""
    return f"{crawllog.moment(seconds)[:19]}Z" if 0 < seconds < FOREVER else ""


def _made(asked: Json, crawl: str) -> Uri | BadInput:
    """The URI that is asked for, or why it cannot be."""
    try:
        fields = _fields(asked)
        payload, until = _payload(fields.pop("payload", "")), _seconds(str(fields.pop("not_before", "")))
        if not _are_hops(str(fields.get("hops", ""))):
            raise BadInput(_name(asked), "'hops' has a letter that leads from no page to another, or too many")
        uri = make(str(fields.pop("uri")), crawl=crawl, payload=payload, not_before=until, **fields)  # type: ignore[arg-type] # by _MAY
        if uri.uri.startswith("dns:"):
            raise BadInput(shown(uri.uri), "the crawler asks for names itself, before it visits their hosts")
        exchange.read(uri.payload, uri.uri)  # a fault in it is named now, not at the visit
        return uri
    except BadInput as error:
        return error


def _fields(asked: Json) -> dict[str, Json]:
    if isinstance(asked, str):
        return {"uri": asked}
    if not isinstance(asked, dict) or not isinstance(asked.get("uri"), str):
        raise BadInput("URI", "it is neither a text nor an object with 'uri'")
    for name, value in asked.items():
        if name != "payload" and not (name in _MAY and type(value) is _MAY[name]):
            raise BadInput(_name(asked), f"'{shown(name)}' is not known, or of the wrong type")
    return dict(asked)


def _seconds(moment: str) -> float:
    if not moment:
        return 0.0
    try:
        found = datetime.fromisoformat(moment)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise BadInput("not_before", f"'{shown(moment)}' is no time such as 2026-11-21T08:17:37Z") from error


def _payload(payload: Json) -> str:
    return payload if payload == "" else json.dumps(payload, sort_keys=True, separators=(",", ":"))


def _name(asked: Json) -> str:
    return str(asked.get("uri", "")) if isinstance(asked, dict) else str(asked)
