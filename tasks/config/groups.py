"""[group.NAME]: the clusters that one PostgreSQL sees."""

from __future__ import annotations

from tasks.config import engines, sections
from tasks.config.sections import jobs_of, needed
from tasks.config.settings import settings
from warcmill.base.escapes import did_you_mean
from warcmill.clients.postgresql import read_place
from warcmill.clusters.following import JobJournals
from warcmill.clusters.group import Group
from warcmill.errors import BadConfig, BadInput, NotReady
from warcmill.model import parse_job

GROUP = "group."
GROUP_KEYS = ("centre", "password", "password_file", "jobs")


def group_named(name: str) -> Group:
    """A group, or BadConfig."""
    section = f"{GROUP}{name}"
    if section not in sections.named(GROUP):
        hint = did_you_mean(name, (one.removeprefix(GROUP) for one in sections.named(GROUP)))
        raise BadConfig(f"[{section}]", f"there is no such section; it has the centre and the jobs of a group{hint}")
    sections.refuse_unknown(section, GROUP_KEYS)
    try:
        parse_job(name)
    except BadInput as error:
        raise BadConfig(f"[{section}]", error.why) from error
    centre = read_place(f"[{section}] centre", needed(section, "centre"), sections.secret(section, "password"))
    return Group(name, centre, jobs_of(section))


def group_names() -> list[str]:
    """The names of all groups, sorted."""
    return sorted(section.removeprefix(GROUP) for section in sections.named(GROUP))


def group_of(job: str) -> Group:
    """The group that a job is a cluster of; BadConfig if it is of none, or of two."""
    found = [section for section in sections.named(GROUP) if job in jobs_of(section)]
    if len(found) != 1:
        why = f"job '{job}' is listed in {' and in '.join(found)}; keep one" if found else f"none lists job '{job}'"
        raise BadConfig("[group.NAME] jobs", why)
    return group_named(found[0].removeprefix(GROUP))


def journals_of(job: str) -> JobJournals:
    """The journals of a job of the built-in crawler on this machine; BadConfig for another's, NotReady elsewhere."""
    section = engines.section_of(job)
    if not section or engines.kind_of(section) != engines.WARCMILL:
        raise BadConfig("[group.NAME] jobs", f"job '{job}' is of no engine with kind={engines.WARCMILL}, so no cluster")
    workers = [one.root for one in settings().rootmap().writers if one.layout and job in one.jobs]
    if workers:
        why = f"job '{job}' has workers, [{'] ['.join(workers)}], whose journals no updater reads yet; crawl it by one"
        raise BadConfig("[group.NAME] jobs", f"{why} process")
    if not engines.is_here(job):
        raise NotReady(f"job {job}", "its folder is not on this machine; its updater runs beside its crawl")
    return JobJournals(engines.own_engine(section).places, job, engines.running_job(job))
