"""Archive a site: an address, one button. It looks at the address, then begins a crawl as `warcmill crawl` does."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

from warcmill.base import clock
from warcmill.crawl.job import address_list
from warcmill.errors import BadConfig, BadInput, Busy, Conflict, NotReady, Unavailable
from warcmill.model import Json
from warcmill.web import actions
from warcmill.web.access import Role
from warcmill.web.actions import ACTIONS, TakenAction
from warcmill.web.request import Answer, Asked, MovedTo, ShownPage
from warcmill.web.served import Served

BOOKMARK = "javascript:location.href='{}/archive-a-site?url='+encodeURIComponent(location.href)"


def page(served: Served, asked: Asked) -> Answer:
    """The form for an address. Posted, the address is looked at; if nothing is against it, or by `anyway`, its crawl
    begins."""
    typed = asked.fields.get("url", "").strip()
    inside = asked.fields.get("allow_private", "").strip()
    looked: Mapping[str, Json] = {}
    wrong = dict[str, str]()
    if asked.method == "POST":
        try:
            networks = _networks(asked, inside)
            url = _url(typed, networks)
            if not asked.fields.get("anyway"):
                looked = _desk_look(served, url, networks)
            if not looked or not _against(looked):
                return _begun(served, asked, url, networks)
            typed = url
        except BadInput as error:
            wrong = {error.path if error.path in ("url", "allow_private") else "": error.why}
        except (BadConfig, Busy, Conflict, NotReady, Unavailable) as error:
            wrong = {"": str(error)}
    answer: dict[str, Json] = {
        "against": _against(looked), "form": served.forms.new(asked.user, asked.path), "look": {**looked},
        "url": typed, "wrong": {**wrong},
    }  # fmt: skip
    shown: dict[str, object] = {
        "wrong": wrong, "typed": typed, "inside": inside, "looked": looked,
        "is_operator": asked.user.role >= Role.OPERATOR, "bookmark": BOOKMARK.format(asked.base),
        "command": actions.command(("crawl", typed or "URL")), "missing": [*served.missing()],
    }  # fmt: skip
    status = HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK
    return ShownPage(answer, shown, status)


def _begun(served: Served, asked: Asked, url: str, networks: list[str]) -> Answer:
    """Begin the crawl, by its verb, and move to where it is watched."""
    desk = served.job_desk
    if desk is None:
        raise NotReady("the desk", "this server has none")
    settings: dict[str, Json] = {"allow_private": [*networks], "no_delay": True} if networks else {}
    job = desk.reserved(url, settings)
    name, *rest = ACTIONS["crawl"].filled(job=job, url=url)
    options = [f"--allow-private={one}" for one in networks] + (["--no-delay"] if networks else [])
    words = (name, *options, *rest)
    wanted = TakenAction(asked.form, "crawl", words, asked.user.name, job, started=clock.now())
    served.actions.start(served.state.store, wanted)
    return MovedTo(f"/jobs/{job}/watch?action={asked.form}")


def _desk_look(served: Served, url: str, networks: list[str]) -> Mapping[str, Json]:
    if served.job_desk is None:
        raise NotReady("the desk", "this server has none")
    return served.job_desk.look(url, networks)


def _networks(asked: Asked, inside: str) -> list[str]:
    """The inside addresses that are let in: an operator's alone."""
    found = [one for part in inside.split(",") if (one := part.strip())]
    if found and asked.user.role < Role.OPERATOR:
        raise BadInput("allow_private", "this needs the role operator")
    return found


def _url(typed: str, networks: list[str]) -> str:
    """The one address that was typed, in its canonical form. BadInput for none, or several."""
    try:
        found = address_list.read(typed, networks)
    except BadConfig as error:
        raise BadInput("allow_private", error.why) from error
    if found.wrong:
        raise BadInput("url", found.wrong[0].why)
    if found.inside:
        raise BadInput("url", f"{found.inside[0].why}; an operator lets it in, below")
    if len(found.found) != 1:
        raise BadInput("url", "type one address; the form of a job takes many")
    return found.urls[0]


def _against(looked: Mapping[str, Json]) -> list[Json]:
    """The reasons against a crawl of an address, as a first look found them."""
    if not looked:
        return []
    found, status = list[Json](), looked.get("status")
    if not isinstance(status, int) or not status:
        found.append(f"It did not answer: {looked.get('why')}")
    elif not 200 <= status < 300:
        found.append(f"It answered with {status}")
    to = str(looked.get("to") or "")
    if to and _host(to) != _host(str(looked.get("url") or "")):
        found.append("It leads to another host")
    if looked.get("forbidden"):
        found.append(str(looked.get("robots")))
    return found


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")
