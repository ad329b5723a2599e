"""Parameters whose parse() is the model's: a bad value never gets past the command line."""

from __future__ import annotations

import luigi

from warcmill.model import Stage, parse_job, parse_stamp


class JobParameter(luigi.Parameter):
    """A job's name."""

    def parse(self, text: str) -> str:
        return parse_job(text)


class LaunchParameter(luigi.Parameter):
    """A launch id: 14 digits that are a UTC time."""

    def parse(self, text: str) -> str:
        return parse_stamp(text)


class StageParameter(luigi.Parameter):
    """A stage: `final`, or a checkpoint such as cp00002-20161020204551."""

    def parse(self, text: str) -> str:
        return str(Stage.parse(text))
