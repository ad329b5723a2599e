"""The table of routes: each row is asked as nobody and in each role, and posted to from elsewhere."""

from __future__ import annotations

import re

import pytest
from launches.engine import LAUNCH, Engine
from msgspec.structs import replace
from operating.job_desk import FolderDesk
from operating.web_site import WebSite
from requesting import script_books

from warcmill.audit.answers.line import JobEngine
from warcmill.web.access import Role
from warcmill.web.routes import GET, POST, ROUTES, Route

PARTS = {"job": LAUNCH.job, "launch_id": LAUNCH.id, "name": "mark.svg", "day": "2016-10-19"}  # any other part is `x`
OF_SCRIPTS = {**PARTS, "name": "shop", "key": "on_start"}
FORMS = [one for one in ROUTES if set(POST) <= set(one.methods)]
OF_OPERATORS = re.compile(r"/(people|scan|scan/\{day\}|redo|accept|close|delete)\Z")  # tokens, steps, deleting
FOREIGN = ("http://evil.example", "http://127.0.0.1:8091", "null", "")


def path_of(route: Route) -> str:
    known = OF_SCRIPTS if "/scripts/" in route.path else PARTS
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: known.get(found[1], "x"), route.path)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> WebSite:
    engine = Engine(tmp_path_factory.mktemp("a line"))
    script_books.leave(engine.folders["jobs"] / LAUNCH.job)
    engines = {LAUNCH.job: JobEngine("engine.own", "warcmill", driven=True)}
    desk = FolderDesk(engine, LAUNCH.job)
    return WebSite(engine, replace(engine.audited, engines=engines), more={"job_desk": desk})


@pytest.mark.parametrize("who", [role.word if role else "" for role in Role])
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.methods[0]} {route.path}")
def test_each_route_answers_those_with_its_role_and_nobody_else(site: WebSite, route: Route, who: str) -> None:
    may = (Role[who.upper()] if who else Role.NOBODY) >= route.role
    statuses = {site.get(path_of(route), fields, role=who).status for fields in ({}, {"format": "json"})}
    if not set(GET) <= set(route.methods):
        assert statuses == {405}
    elif may:
        assert not statuses & {403, 405, 500, 501}
    else:
        assert statuses == {403}
    posted = site.post(path_of(route), {"form": ""}, role=who).status
    assert (posted == 405) is not set(POST).issubset(route.methods)
    if set(POST) <= set(route.methods) and (Role[who.upper()] if who else Role.NOBODY) < route.least("POST"):
        assert posted == 403


def test_operators_alone_have_tokens_steps_and_what_deletes_and_readers_only_look() -> None:
    assert {one.path for one in ROUTES if one.role is Role.OPERATOR} == {
        one.path for one in ROUTES if OF_OPERATORS.search(one.path)
    }
    posted = {one.path for one in FORMS if one.least("POST") < Role.CURATOR}
    assert posted == {"/sign-in", "/sign-out"}


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize("route", FORMS, ids=lambda route: route.path)
def test_a_post_from_elsewhere_is_refused(site: WebSite, route: Route, origin: str) -> None:
    token = {"form": site.form(path_of(route))} if set(GET) <= set(route.methods) else {"form": ""}
    assert site.post(path_of(route), token, origin=origin).status == 400


@pytest.mark.parametrize("route", FORMS, ids=lambda route: route.path)
def test_a_post_is_of_a_form_with_a_token_unless_its_row_says_otherwise(site: WebSite, route: Route) -> None:
    status = site.post(path_of(route), {"form": ""}).status
    assert (status == 400) is route.is_signed
