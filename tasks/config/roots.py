"""The folders that serve each job: [warcmill], [engine.NAME] and [writer.NAME] of luigi.cfg."""

from __future__ import annotations

from tasks.config import sections
from warcmill.errors import BadConfig, BadInput
from warcmill.launches.roots import EngineSection, Open, RootMap, WriterSection
from warcmill.layout import OutputLayout
from warcmill.model import Root, writer_root

ENGINE, WRITER = "engine.", "writer."
IMPORTED, IMPORTED_KEYS = "engine.imported", ("output",)
WRITER_KEYS = ("root", "jobs", "layout")
ENGINE_KEYS = (
    *("kind", "url", "user", "password", "password_file", "certificate", "jobs"),
    *("output", "job_files", "output_layout", "engine_output", "allow_private", "frontier", "frontier_password_file"),
    *("leads_only", "checkpoint_wait"),
)
_PREFIX = "prefix"


def rootmap(default: EngineSection, open_root: Open) -> RootMap:
    """The roots of every job, or BadConfig. `default` is [warcmill]'s section; nothing is opened."""
    by_job: dict[str, EngineSection] = {}
    for section in engines():
        site = site_of(section, default)
        for job in sections.jobs_of(section):
            if job in by_job:
                raise BadConfig(f"[{section}] jobs", f"job '{job}' is listed in {by_job[job].name} too; keep one")
            by_job[job] = site
    writers = tuple(writer_of(section) for section in sections.named(WRITER))
    return RootMap(default, by_job, writers, open_root, imported())


def engines() -> list[str]:
    """The sections of engines: [engine.imported] is not one of them."""
    return [section for section in sections.named(ENGINE) if section != IMPORTED]


def imported() -> EngineSection | None:
    """The root of WARCs that the line imported, which is laid out as an engine's; None without one. Or BadConfig."""
    if IMPORTED not in sections.named(ENGINE):
        return None
    sections.refuse_unknown(IMPORTED, IMPORTED_KEYS)
    sections.needed(IMPORTED, "output")
    place = _place(IMPORTED, "output")
    if not place.startswith("/"):
        raise BadConfig(f"[{IMPORTED}] output", f"'{place}' is not an absolute path; it is a folder of this host")
    return EngineSection(f"[{IMPORTED}]", place, place, OutputLayout.JOB_FIRST)


def site_of(section: str, default: EngineSection) -> EngineSection:
    """The roots of an engine: those that its section sets, else the default's. Or BadConfig."""
    sections.refuse_unknown(section, ENGINE_KEYS)
    layout = _layout(section, "output_layout", str(default.layout), [*OutputLayout])
    return EngineSection(
        f"[{section}]",
        _place(section, "output") or default.output,
        _place(section, "job_files") or default.jobs,
        OutputLayout(layout),
    )


def writer_of(section: str) -> WriterSection:
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
    return WriterSection(root, _place(section, "root"), sections.jobs_of(section), layout)


def named() -> list[str]:
    """The sections that may set roots of their own."""
    return [*sections.named(ENGINE), *sections.named(WRITER)]


def roots_of(section: str) -> dict[str, list[Root]]:
    """The roots that a section itself sets, by place, or BadConfig."""
    if section not in named():
        known = ", ".join(named()) or "none"
        raise BadConfig(f"[{section}]", f"luigi.cfg has no such section; its engines and writers: {known}")
    if section.startswith(WRITER):
        writer = writer_of(section)
        return {writer.place: [writer.root]}
    if section == IMPORTED and (site := imported()):
        return {site.output: ["jobs", "output"]}
    by_place: dict[str, list[Root]] = {}
    keys: dict[Root, str] = {"jobs": "job_files", "output": "output"}
    for root, key in keys.items():
        if place := _place(section, key):
            by_place.setdefault(place, []).append(root)
    return by_place


def _layout(section: str, key: str, default: str, known: list[str]) -> str:
    layout = sections.value(section, key) or default
    if layout not in known:
        raise BadConfig(f"[{section}] {key}", f"is {layout}; one of {', '.join(known)}")
    return layout


def _place(section: str, key: str) -> str:
    place = sections.value(section, key)
    if place and not place.startswith(("/", "sftp://")):
        raise BadConfig(f"[{section}] {key}", f"'{place}' is neither an absolute path nor sftp://...")
    return place.rstrip("/")
