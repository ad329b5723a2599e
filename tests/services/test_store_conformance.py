"""The conformance suite over a real HDFS, a real sshd, a real S3 server and a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from storing.remote_places import InHdfs, InS3, OverSsh, work_folder
from storing.store_conformance import *  # noqa: F403 - the tests of every store
from storing.store_conformance import Place


@pytest.fixture(params=["webhdfs", "sftp", "s3"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A new root. The file store's own run is among the unit tests."""
    if request.param == "webhdfs":
        return InHdfs(request.getfixturevalue("hdfs"), work_folder(tmp_path))
    if request.param == "s3":
        return InS3(request.getfixturevalue("versitygw"), work_folder(tmp_path))
    return OverSsh(request.getfixturevalue("sshd"), work_folder(tmp_path))
