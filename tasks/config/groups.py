"""[group.NAME]: the clusters that one PostgreSQL sees."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tasks.config import engines, sections
from tasks.config.sections import jobs_of, needed, value
from tasks.config.settings import settings
from warcmill.base import disk
from warcmill.base.escapes import did_you_mean
from warcmill.clients.postgresql import read_place
from warcmill.clusters.following import ClusterJournals, Committed, JobJournals
from warcmill.clusters.group import Group
from warcmill.clusters.owning import RulesPlace
from warcmill.crawl.fetch.addresses import Resolver, read_hosts
from warcmill.crawl.job import file
from warcmill.crawl.launch import folders
from warcmill.crawl.policies import owners
from warcmill.errors import BadConfig, BadInput, Busy, NotReady, Unavailable
from warcmill.model import parse_job
from warcmill.stores.opening import is_remote

GROUP = "group."
GROUP_KEYS = ("centre", "password", "password_file", "jobs", "rules", "countries", "alone")
ALONE = 24.0  # hours


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
    return Group(name, centre, jobs_of(section), _rules_of(section))


def _rules_of(section: str) -> RulesPlace | None:
    """The files of a group's rules; None where its hosts have no owners."""
    rules, found, text = value(section, "rules"), value(section, "countries"), value(section, "alone")
    if not rules:
        if found or text:
            raise BadConfig(f"[{section}] rules", "is not there, and 'countries' and 'alone' need it")
        return None
    try:
        alone = float(text or ALONE)
    except ValueError as error:
        raise BadConfig(f"[{section}] alone", f"'{text}' is not a number of hours") from error
    if not 0 < alone <= 24 * 365:
        raise BadConfig(f"[{section}] alone", f"{text} hours: it is more than 0, and a year at most")
    return RulesPlace(Path(rules), Path(found) if found else None, alone)


def is_here(job: str) -> bool:
    """True if the folder of a job is on this machine."""
    return bool(engines.section_of(job)) and engines.is_here(job)


def resolver_of(job: str) -> Resolver:
    """Return a resolver that looks hosts up as the crawl of a job does."""
    found = file.read(engines.own_engine(engines.section_of(job) or "").places.job(job), job)
    return Resolver(found.resolve, read_hosts(), found.name_servers)


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


def journals_of(job: str) -> ClusterJournals:
    """The journals of a job of the built-in crawler on this machine, and of its workers; BadConfig for another's, or a
    root of a worker that is not on this machine; NotReady elsewhere."""
    section = engines.section_of(job)
    if not section:
        raise NotReady(f"job {job}", "no engine of this luigi.cfg lists it; its updater runs beside its crawl")
    if engines.kind_of(section) != engines.WARCMILL:
        raise BadConfig("[group.NAME] jobs", f"job '{job}' is of no engine with kind={engines.WARCMILL}, so no cluster")
    if not engines.is_here(job):
        raise NotReady(f"job {job}", "its folder is not on this machine; its updater runs beside its crawl")
    places, committed = engines.own_engine(section).places, Committed(engines.running_job(job))
    workers = list[JobJournals]()
    for one in settings().rootmap().writers:
        if one.layout and job in one.jobs:
            if is_remote(one.place):
                why = f"{one.place} is on another machine; the updater reads journals from a folder: mount it here"
                raise BadConfig(f"[{one.root}] root", f"{why}, such as by NFS, and name that")
            root = replace(places, output=Path(one.place), layout=one.layout)
            workers.append(JobJournals(places, job, committed, one.root, root))
    return ClusterJournals(JobJournals(places, job, committed), workers, committed)


def forget_owners(job: str) -> None:
    """Have the crawl of a job on this machine begin without hosts of its own, until its updater gives them. Busy while
    it runs."""
    state = engines.own_engine(engines.section_of(job) or "").places.state(job)
    if found := folders.holder(state):
        raise Busy(f"the crawl of {job}, by pid {found.pid},", f"end it first: warcmill pulse stop {job}")
    path = state / owners.NAME
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error
