"""The status of a project through time: by its pages, by the events of a quarantine, and as JSON has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from warcmill.errors import BadInput
from warcmill.formats.pypi import simple_page
from warcmill.formats.pypi.dump import ProjectState, decoder, row_line
from warcmill.formats.pypi.lives import LifeEvent
from warcmill.formats.pypi.projects import ProjectRecord, StatusInterval, read_status, status_json

URL = "https://index.example/simple/six/"


def page(serial: int | None, status: str | None, reason: str | None = None, etag: str | None = None) -> ProjectState:
    return ProjectState("six", serial, False, (), status, reason, etag)


def event(serial: int, action: str) -> LifeEvent:
    return LifeEvent(serial, 0, "", action)


def test_a_status_counts_from_the_window_in_which_a_page_had_it() -> None:
    record = ProjectRecord().carried_on(0, 100, page(40, "active", etag='"a"'), [])
    assert (record.serial, record.etag, record.status_at(99), record.status_at(100)) == (
        40,
        '"a"',
        None,
        StatusInterval(100, "active"),
    )
    record = record.carried_on(100, 120, page(40, "archived", "done"), [])  # no event names it
    assert record.status_at(119) == StatusInterval(100, "active")
    assert record.status_at(120) == StatusInterval(120, "archived", "done")
    assert record.carried_on(120, 130, page(40, None), []).statuses == record.statuses
    assert record.carried_on(120, 130, None, []) == record
    assert ProjectRecord.parse(record.encode()) == record


def test_a_quarantine_begins_and_ends_with_its_events() -> None:
    record = ProjectRecord((StatusInterval(100, "active"),), 90)
    quarantined = record.carried_on(100, 120, page(110, "quarantined", "malware"), [event(110, "project quarantined")])
    assert quarantined.statuses[1:] == (StatusInterval(110, "quarantined", "malware"),)
    cleared = quarantined.carried_on(120, 130, None, [event(125, "project quarantine cleared")])
    assert cleared.statuses[2:] == (StatusInterval(125, "active"),)
    lagging = quarantined.carried_on(120, 130, page(110, "quarantined"), [event(125, "project quarantine cleared")])
    assert lagging.status_at(130) == StatusInterval(125, "active")


@pytest.mark.parametrize(("raw", "found"), [
    (None, ("active", None)), ({}, ("active", None)), ({"status": "deprecated"}, ("deprecated", None)),
    ({"status": "archived", "reason": "use other"}, ("archived", "use other")),
    ({"status": "archived", "reason": 7}, ("archived", None)), ({"status": "frozen", "reason": ""}, ("frozen", None)),
    ({"status": ["archived"]}, (None, None)), ({"status": "<b>"}, (None, None)), ({"status": "a" * 50}, (None, None)),
    ("archived", (None, None)), ([], (None, None)),
])  # fmt: skip
def test_a_status_that_is_none_says_nothing(raw: object, found: tuple[str | None, str | None]) -> None:
    assert read_status(raw) == found
    data = {"meta": {"api-version": "1.4"}, "name": "six", "files": [], "project-status": raw}
    known = simple_page.read(json.dumps(data).encode(), URL)
    assert (known.status, known.reason) == found


@pytest.mark.parametrize("version", ["2.0", "2", 2, 2.0, "x", True, ["1.0"]])
def test_a_page_of_another_major_version_is_refused(version: Any) -> None:
    data = json.dumps({"meta": {"api-version": version}, "name": "six", "files": []}).encode()
    with pytest.raises(BadInput, match="of version"):
        simple_page.read(data, URL)


def test_a_row_has_what_is_known_alone() -> None:
    assert json.loads(row_line(page(1, None))) == {"files": [], "project": "six", "removed": False, "serial": 1}
    whole = page(1, "archived", "half \ud800", 'W/"1"')
    assert decoder(ProjectState)(row_line(whole)) == whole
    record = ProjectRecord().carried_on(0, 5, whole, [])
    assert ProjectRecord.parse(record.encode()).statuses == (StatusInterval(5, "archived", "half ?"),)
    assert status_json(record.status_at(5)) == {"reason": "half \ud800", "status": "archived"}


def test_a_value_that_is_none_is_refused() -> None:
    for value in (b"", b"[]", b'{"serial": NaN}', b'{"statuses": [{"first": "x"}]}'):
        with pytest.raises(BadInput, match="not a project"):
            ProjectRecord.parse(value)
