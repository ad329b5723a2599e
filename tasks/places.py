"""Which folders serve which job: [warcmill], [engine.NAME] and [writer.NAME] of luigi.cfg."""

from __future__ import annotations

from tasks import sections
from warcmill.errors import BadConfig, BadInput
from warcmill.layout import OutputLayout
from warcmill.model import Root, writer_root
from warcmill.sites import Open, Site, Sites, WriterSite

ENGINE, WRITER = "engine.", "writer."
WRITER_KEYS = ("root", "jobs", "layout")
ENGINE_KEYS = (
    *("kind", "url", "user", "password", "password_file", "certificate", "jobs"),
    *("output", "job_files", "output_layout", "engine_output"),
)
_PREFIX = "prefix"


def sites(default: Site, open_root: Open) -> Sites:
    """The sites as luigi.cfg has them, or BadConfig. `default` is [warcmill]'s; nothing is opened."""
    by_job: dict[str, Site] = {}
    for section in sections.named(ENGINE):
        site = site_of(section, default)
        for job in sections.jobs_of(section):
            if job in by_job:
                raise BadConfig(
                    f"[{section}] jobs", f"job '{job}' is among those of {by_job[job].section} too; keep one"
                )
            by_job[job] = site
    return Sites(default, by_job, tuple(writer_of(section) for section in sections.named(WRITER)), open_root)


def site_of(section: str, default: Site) -> Site:
    """The roots of an engine: those that its section names, and for the others the default's."""
    sections.refuse_unknown(section, ENGINE_KEYS)
    layout = _layout(section, "output_layout", str(default.layout), [*OutputLayout])
    return Site(
        f"[{section}]",
        _place(section, "output") or default.output,
        _place(section, "job_files") or default.jobs,
        OutputLayout(layout),
    )


def writer_of(section: str) -> WriterSite:
    """A writer's root, or BadConfig."""
    sections.refuse_unknown(section, WRITER_KEYS)
    try:
        root = writer_root(section.removeprefix(WRITER))
    except BadInput as error:
        raise BadConfig(f"[{section}]", error.why) from error
    sections.needed(section, "root")
    sections.needed(section, "layout")
    word = _layout(section, "layout", "", [*OutputLayout, _PREFIX])
    layout = None if word == _PREFIX else OutputLayout(word)
    return WriterSite(root, _place(section, "root"), sections.jobs_of(section), layout)


def named() -> list[str]:
    """The sections that may name roots of their own."""
    return [*sections.named(ENGINE), *sections.named(WRITER)]


def roots_of(section: str) -> dict[str, list[Root]]:
    """The roots that a section itself names, by place, or BadConfig."""
    if section not in named():
        known = ", ".join(named()) or "none"
        raise BadConfig(f"[{section}]", f"luigi.cfg has no such section; there are of engines and writers: {known}")
    if section.startswith(WRITER):
        writer = writer_of(section)
        return {writer.place: [writer.root]}
    found: dict[str, list[Root]] = {}
    keys: dict[Root, str] = {"jobs": "job_files", "output": "output"}
    for root, key in keys.items():
        if place := _place(section, key):
            found.setdefault(place, []).append(root)
    return found


def _layout(section: str, key: str, default: str, known: list[str]) -> str:
    found = sections.value(section, key) or default
    if found not in known:
        raise BadConfig(f"[{section}] {key}", f"is {found}; one of {', '.join(known)}")
    return found


def _place(section: str, key: str) -> str:
    found = sections.value(section, key)
    if found and not found.startswith(("/", "sftp://")):
        raise BadConfig(f"[{section}] {key}", f"'{found}' is neither an absolute path nor sftp://...")
    return found.rstrip("/")
