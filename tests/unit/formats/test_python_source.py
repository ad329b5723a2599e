"""The imports of Python source, by its syntax alone."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.errors import BadInput
from warcmill.formats.python_source import imported

SOURCE = b'''# -*- coding: latin-1 -*-
"""caf\xe9"""
from __future__ import annotations
import os.path, yaml, google.cloud.storage as storage
from google.cloud import bigquery, pubsub_v1
from requests import *
from . import own
from .own import thing
from ..own import thing
try:
    import tomllib
except (ImportError, ValueError):
    import tomli
else:
    import always
try:
    import lxml
except ValueError:
    import broken
try:
    import numpy
except:
    pass
with contextlib.suppress(builtins.ImportError):
    import orjson
if typing.TYPE_CHECKING:
    import mypy_extensions
else:
    import real
def later():
    import in_function
    try:
        class A:
            import deep
    except Exception as error:
        raise
"import hidden_in_text"
'''


def test_each_import_with_its_line_and_what_may_lack() -> None:
    found = {one.name: (one.line, one.is_optional) for one in imported(SOURCE, "a.py")}
    assert found == {
        "yaml": (4, False),
        "google.cloud.storage": (4, False),
        "google.cloud.bigquery": (5, False),
        "google.cloud.pubsub_v1": (5, False),
        "requests": (6, False),
        "tomli": (13, True),
        "always": (15, False),
        "lxml": (17, False),
        "broken": (19, False),
        "numpy": (21, True),
        "orjson": (25, True),
        "mypy_extensions": (27, True),
        "real": (29, False),
        "in_function": (31, False),
        "deep": (34, True),
    }


@pytest.mark.parametrize(
    "source",
    [
        b"print 'of Python 2'\n",
        b"a\0b",
        b"# coding: none\n",
        b"\xff\xfe",
        b"(" * 5_000,
        b"x = " + b"-" * 200_000 + b"1",
    ],
    ids=["two", "nul", "coding", "bytes", "nested", "deep"],
)
def test_what_is_not_python_is_refused(source: bytes) -> None:
    with pytest.raises(BadInput, match=r"a\.py: "):
        list(imported(source, "a.py"))


def test_a_file_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.formats.python_source.LONGEST", 10)
    with pytest.raises(BadInput, match="more than 10 bytes"):
        list(imported(b"import yaml\n", "a.py"))


def test_a_chain_that_is_deeper_than_python_calls_is_read() -> None:
    source = b"import yaml\nx = " + b" + ".join([b"1"] * 2_000) + b"\nimport six\n"
    assert {one.name for one in imported(source, "a.py")} == {"yaml", "six"}


@given(st.binary(max_size=60))
def test_no_bytes_crash(source: bytes) -> None:
    with suppress(BadInput):
        list(imported(source, "a.py"))
