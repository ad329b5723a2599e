"""The view of people: who has a token, with which role, when it was last used; one is made, or withdrawn.

Made and withdrawn by the functions of `warcmill serve token`, and recorded as actions. A token is shown once, in the
answer to the form that makes it.
"""

from __future__ import annotations

from http import HTTPStatus

from msgspec.structs import replace

from warcmill.base import clock
from warcmill.errors import BadInput, Conflict, NotReady
from warcmill.model import Json
from warcmill.web import access, actions
from warcmill.web.access import ROLES
from warcmill.web.actions import TakenAction
from warcmill.web.request import Answer, Asked, ShownPage
from warcmill.web.served import Served

MAKE, WITHDRAW = "add", "withdraw"  # what a form does, as the verb names it
_FIELDS = {"role": "role", "days": "days", "--days": "days"}  # by what is wrong; else it is the name


def people(served: Served, asked: Asked) -> Answer:
    """The tokens, with the form that makes one; posted, one is made and shown, or withdrawn: whoever has it gets no
    answer from then on, and those under way break off."""
    state, secret, wrong, at = served.state.store, "", None, ""
    if asked.method == "POST":
        try:
            secret = _make(served, asked) if asked.fields.get("act") == MAKE else _withdraw(served, asked)
        except (BadInput, Conflict, NotReady) as error:
            wrong = error
            at = _FIELDS.get(getattr(error, "path", ""), "name") if asked.fields.get("act") == MAKE else ""
    name, role, days = (asked.fields.get(field, "") for field in ("name", "role", "days"))
    answer: dict[str, Json] = {
        **access.as_document(state), "error": str(wrong) if wrong else "", "made": secret,
        "form": served.forms.new(asked.user, asked.path),
    }  # fmt: skip
    typed = {"name": name, "role": role, "days": days} if wrong else {"name": "", "role": "reader", "days": ""}
    shown = {
        "command": actions.command(("serve", "token", MAKE, "NAME", "--role=reader")), "made_for": name,
        "roles": [(one, one) for one in ROLES], "typed": typed, "has_reader": bool(served.access.reader),
        "has_proxies": bool(served.access.proxies.networks), "wrong": {at: wrong.why} if wrong else {},
    }  # fmt: skip
    return ShownPage(answer, shown, HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK)


def _make(served: Served, asked: Asked) -> str:
    name, role, days = (asked.fields.get(field, "").strip() for field in ("name", "role", "days"))
    if role not in ROLES:
        raise BadInput("role", f"it is not one of {', '.join(ROLES)}")
    if days and not (days.isascii() and days.isdigit() and len(days) < 5):
        raise BadInput("days", "it is not a number of days from 1 to 3650")
    secret = access.add_token(served.state.store, name, ROLES[role], int(days) if days else None)
    _keep(served, asked, (MAKE, name, f"--role={role}", *([f"--days={days}"] if days else [])))
    return secret


def _withdraw(served: Served, asked: Asked) -> str:
    name = asked.fields.get("name", "")
    access.withdraw_token(served.state.store, name)
    _keep(served, asked, (WITHDRAW, name))
    return ""


def _keep(served: Served, asked: Asked, words: tuple[str, ...]) -> None:
    now = clock.now()
    done = TakenAction(asked.form, f"token {words[0]}", ("serve", "token", *words), asked.user.name, started=now)
    served.actions.keep(served.state.store, replace(done, finished=now, exit_code=0))
