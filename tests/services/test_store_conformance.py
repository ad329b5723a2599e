"""The conformance suite over a real HDFS, a real sshd and a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from remote_places import InHdfs, OverSsh, work_folder
from store_conformance import *  # noqa: F403 - the tests of every store
from store_conformance import Place


@pytest.fixture(params=["webhdfs", "sftp"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A new root. The file store's own run is among the unit tests."""
    if request.param == "webhdfs":
        return InHdfs(request.getfixturevalue("hdfs"), work_folder(tmp_path))
    return OverSsh(request.getfixturevalue("sshd"), work_folder(tmp_path))
