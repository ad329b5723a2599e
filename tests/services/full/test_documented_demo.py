"""`./scripts/demo --servers`, as the pages print it, into a folder of ours; its servers end with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from operating.documented import ROOT

from servers import packages

DEMO = ("scripts/demo", "--servers")


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """One in which servers have a folder of their own, and the packages that are fetched already."""
    work, fetched = tmp_path / "services", packages.default_work() / "packages"
    work.mkdir()
    fetched.mkdir(parents=True, exist_ok=True)
    (work / "packages").symlink_to(fetched)
    found = {**os.environ, "WARCMILL_SERVICES": str(work)}
    yield found
    subprocess.run([ROOT / "scripts" / "services", "down"], env=found, check=True)


def test_the_demo_with_real_servers_reconciles(environment: dict[str, str], tmp_path: Path) -> None:
    command = [*DEMO, str(tmp_path / "demo")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no gap" in done.stdout
    page = r"^http://\S+    (\d+) captures found\nhttp://localhost:.*\n    200 OK: Page \d+$"
    found = re.search(page, done.stdout, re.MULTILINE)
    assert found, done.stdout
    address = re.search(r"^  (http:\S+/select\?q=page) ", done.stdout, re.MULTILINE)
    assert address
    with urlopen(address[1]) as answer:
        assert json.load(answer)["response"]["numFound"] == int(found[1]), "Solr has what the search finds"
    assert "Traceback" not in done.stdout + done.stderr
