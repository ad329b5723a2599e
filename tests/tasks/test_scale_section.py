"""[scale]: wrong values stop a scan before it begins, by name; what the index reads is read by a runner."""

from __future__ import annotations

from pathlib import Path

import pytest
from operating.typed import warcmill

WRONG = {
    "run_on=ray": "[scale] run_on: is ray; processes, dask, spark",
    "url=tcp://10.0.0.5:8786": "[scale] url: is set, and run_on is processes, which has none",
    "run_on=dask": "[scale] url: is not set; for dask: tcp://HOST:8786",
    "run_on=spark\nurl=master": "[scale] url: is master; for spark: spark://HOST:7077",
    "run_on=dask\nurl=tcp://h:8786": "distributed cannot be found: pip install 'warcmill[dask]', or remove run_on",
    "run_on=spark\nurl=spark://h:7077": "pyspark cannot be found: pip install 'warcmill[spark]', or remove run_on",
}


@pytest.mark.parametrize("keys", WRONG)
def test_a_wrong_value_is_named_and_a_missing_extra_too(line: Path, keys: str) -> None:
    with (line / "luigi.cfg").open("a") as file:
        file.write(f"\n[index]\nsince=2026-11-01\n\n[scale]\n{keys}\n")
    code, printed = warcmill("status", "2026-11-21")
    assert (code, WRONG[keys] in printed) == (3, True), printed
    code, printed = warcmill("doctor")
    assert (code, WRONG[keys] in printed) == (1, True), printed


def test_without_an_index_it_has_no_effect(line: Path) -> None:
    with (line / "luigi.cfg").open("a") as file:
        file.write("\n[scale]\nrun_on=spark\nurl=spark://h:7077\n")
    assert warcmill("status", "2026-11-21")[0] == 0
