"""Names are parsed whole, once, and print as they were read."""

from __future__ import annotations

import pytest

from warcmill.errors import BadInput
from warcmill.model import FINAL, Launch, Stage, parse_job


@pytest.mark.parametrize("name", ["daily", "dc2019_test", "0", "a" * 63, "A-b_c"])
def test_good_job_names(name: str) -> None:
    assert parse_job(name) == name


@pytest.mark.parametrize("name", ["", "-a", "_a", "a" * 64, "a b", "a\n", "../a", "a.b", "é", "a/b", "a\0"])
def test_bad_job_names(name: str) -> None:
    with pytest.raises(BadInput):
        parse_job(name)


NO_TIMES = ["2016101923442", "20161319234428", "20160230000000", "20161019234428\n", "2016101923442\u0668"]
NO_STAGES = ["cp1-20161020204551", "cp00001-2016102020455", "Final", "", "cp00001", "cp000001-20161020204551"]


@pytest.mark.parametrize("text", NO_TIMES)
def test_a_launch_id_is_a_real_time(text: str) -> None:
    with pytest.raises(BadInput):
        Launch.parse("daily", text)


def test_a_launch_belongs_to_the_day_of_its_id() -> None:
    assert Launch.parse("daily", "20161019234428").day.isoformat() == "2016-10-19"


@pytest.mark.parametrize("text", NO_STAGES)
def test_bad_stages(text: str) -> None:
    with pytest.raises(BadInput):
        Stage.parse(text)


def test_stages_sort_by_number_and_final_comes_last() -> None:
    texts = ["final", "cp00010-20161020204551", "cp00002-20161020204551", "cp00002-20161019000000"]
    ordered = [str(stage) for stage in sorted(map(Stage.parse, texts))]
    assert ordered == ["cp00002-20161019000000", "cp00002-20161020204551", "cp00010-20161020204551", "final"]
    assert Stage.parse("final") is FINAL
