"""The job that patches a launch; stands alone, as it is pure, and its start belongs to the verb.

A job is its seeds and its scope, so a patch is a job beside the one that it mends: its seeds are what that lacks, its
scope is each of them with its parts. It has the manners of that job: its contact, its pace, robots.txt, the networks
that it may reach. It has none of its rules: they have left these parts out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warcmill.crawl.job import file, values
from warcmill.crawl.job.text import files
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.errors import BadInput
from warcmill.formats.feed import TargetScope
from warcmill.model import Launch
from warcmill.quality.judgement import asked_again
from warcmill.quality.reports import QualityReport

_END, _LONGEST = "-patch", 63
_KEPT = (
    "contact", "queue_by", "gate_by", "no_delay", "allow_private", "name_servers", "resolve", "robots", "render",
    *file.SHEET_TABLES,
)  # fmt: skip
_ABOUT = "Asks for what {} lacks, by its check {}"


def job_of(launch: Launch) -> str:
    """The name of the job that patches the launches of a job."""
    return f"{launch.job[: _LONGEST - len(_END)]}{_END}"


def papers_of(report: QualityReport, of_job: Mapping[str, bytes], networks: Sequence[str]) -> dict[str, bytes | None]:
    """The papers of a patch. `of_job`: those of the job that is mended, empty where they are not ours. `networks`: the
    inside addresses that its engine lets in. BadInput if a patch would ask for nothing."""
    urls = [*asked_again(report.pages)]
    if not urls:
        raise BadInput(str(report.launch), f"check {report.number} names nothing that a crawl could bring")
    found = values.toml_of(of_job[CONFIGURATION]) if CONFIGURATION in of_job else {}
    kept = {name: found[name] for name in _KEPT if name in found}
    if inside := list(dict.fromkeys([*kept.get("allow_private", ()), *networks])):
        kept["allow_private"] = inside
    about = {"title": f"Patch of {report.launch}", "description": _ABOUT.format(report.launch, report.number)}
    return {**files({**kept, values.ABOUT: about}, urls, TargetScope.RESOURCE), file.EXCLUDE: None}


def is_patch(papers: Mapping[str, bytes]) -> bool:
    """True if a job was made to patch launches: its papers may be written anew."""
    about = values.toml_of(papers[CONFIGURATION]).get(values.ABOUT, {}) if CONFIGURATION in papers else {}
    return isinstance(about, dict) and str(about.get("description", "")).startswith(_ABOUT.partition("{}")[0])
