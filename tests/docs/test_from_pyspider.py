"""Every name of pyspider has its row on the page for who comes from there, and what is kept is in the code.

`tests/data/scripts/names.txt` has these names, a line each: the kind, a tab, the name. They were read from the source
and the documentation of its last version.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from commands.console import script_jobs, scripts
from warcmill.scripts.api import handler
from warcmill.scripts.api.handler import FETCH, PROCESS, SCHEDULE, ScriptHandler
from warcmill.scripts.api.response import Response
from warcmill.scripts.folder import ScriptRow, ScriptStatus

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "from-pyspider.md").read_text("utf-8")
NAMES = (ROOT / "tests" / "data" / "scripts" / "names.txt").read_text("utf-8").splitlines()
HEADINGS = {
    "Commands": "command", "Options": "option", "Arguments of self.crawl": "parameter",
    "Attributes of a response": "response", "Parts of a script": "handler", "Settings of a project": "project",
    "Pages of the web UI": "page", "Components": "component",
}  # fmt: skip
ROW = re.compile(r"\| (`[^|]+`) \| (kept|mapped|declined) \| ([^|]+) \|")


def rows() -> dict[tuple[str, str], list[str]]:
    """The verdicts of the page, by kind and name. A row without a verdict or a text does not count."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for part in PAGE.partition("\n## Every name\n")[2].split("\n### ")[1:]:
        heading, _, text = part.partition("\n")
        for line in text.splitlines():
            if row := ROW.fullmatch(line):
                for name in row[1].strip("`").split("`, `"):
                    found[HEADINGS[heading], name].append(row[2])
    return found


def kept(kind: str) -> set[str]:
    return {name for (one, name), verdicts in rows().items() if one == kind and verdicts == ["kept"]}


def test_each_name_has_one_row_and_each_row_is_of_a_name() -> None:
    names = [(kind, name) for kind, name in (line.split("\t") for line in NAMES)]
    assert len(names) == len(set(names)) > 200
    found = rows()
    assert set(found) == set(names)
    assert {key: verdicts for key, verdicts in found.items() if len(verdicts) != 1} == {}


def test_kept_arguments_are_those_that_crawl_takes() -> None:
    of_crawl = {"url", "params", "files", "taskid"}
    taken = {*SCHEDULE, *FETCH, *PROCESS} - {"last_modifed"}
    names = {name for (kind, name) in rows() if kind == "parameter"}
    assert names == taken | of_crawl
    assert names - kept("parameter") == {"connect_timeout", "validate_cert", "robots_txt", "proxy"}


def test_kept_attributes_and_parts_are_in_the_code() -> None:
    response = Response(status_code=200, url="http://a.example/")
    assert {name for name in kept("response") if not hasattr(response, name.removesuffix("()"))} == set()
    names = {name.removeprefix("self.").removeprefix("@") for name in kept("handler")}
    elsewhere = {"on_start", "__handler_cls__", "projects", "curl"}  # what a script defines, or imports
    assert names - elsewhere - {*dir(ScriptHandler), *dir(handler)} == set()
    assert kept("project") == {*ScriptStatus, "group", "status", "rate", "burst"}
    assert {"group", "status", "rate", "burst"} < {*ScriptRow.__struct_fields__}


def test_actions_that_the_page_names_are_those_of_the_command() -> None:
    actions = {*scripts.ACTIONS, *script_jobs.ACTIONS}
    assert set(re.findall(r"`warcmill script (\w+)", PAGE)) <= actions
    assert actions - set(re.findall(r"warcmill script (\w+)", PAGE)) == set()
