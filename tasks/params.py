"""Parameters that the model parses: a bad value is refused on the command line."""

from __future__ import annotations

import luigi

from warcmill.errors import BadInput
from warcmill.model import Launch, Stage, parse_checkpoint, parse_job, parse_number, parse_stamp


class JobParameter(luigi.Parameter):
    """A job's name."""

    def parse(self, text: str) -> str:
        return parse_job(text)


class LaunchParameter(luigi.Parameter):
    """A launch id: 14 digits that are a UTC time."""

    def parse(self, text: str) -> str:
        return parse_stamp(text)


class LaunchesParameter(luigi.Parameter):
    """Launches as JOB/LAUNCH, separated by commas; empty: all."""

    def parse(self, text: str) -> str:
        return ",".join(str(_launch(name)) for name in text.split(",")) if text else ""


class DaysParameter(luigi.Parameter):
    """An interval of days as Luigi writes it, or empty."""

    def parse(self, text: str) -> str:
        return str(luigi.DateIntervalParameter().parse(text)) if text else ""


class StageParameter(luigi.Parameter):
    """A stage: `final`, or a checkpoint such as cp00002-20161020204551."""

    def parse(self, text: str) -> str:
        return str(Stage.parse(text))


class DueParameter(luigi.Parameter):
    """When a crawl is due: 14 digits that are a UTC time."""

    def parse(self, text: str) -> str:
        return parse_stamp(text)


class NumberParameter(luigi.IntParameter):
    """A checkpoint's number: 1 to 99999."""

    def parse(self, text: str) -> int:
        return parse_number(text)


class CheckpointParameter(luigi.Parameter):
    """A checkpoint such as cp00002-20161020204551, or empty."""

    def parse(self, text: str) -> str:
        return parse_checkpoint(text) if text else ""


def _launch(text: str) -> Launch:
    job, slash, launch_id = text.partition("/")
    if not slash:
        raise BadInput(text, "not a launch: a job and a launch id with a slash between them, daily/20161019234428")
    return Launch.parse(job, launch_id)
