"""warcmill doctor: check that the line can run here. Writes only small files, which it removes again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path

from rich.text import Text

from commands.console.arguments import add_json
from commands.console.show import as_json, counted
from commands.console.terminal import console, lines
from tasks.audited import audited
from tasks.config import engines, sections
from tasks.config import feed as feeds
from tasks.config import pypi as indexes
from tasks.config.folders import config_file
from tasks.config.settings import Settings, check_hardened, settings
from tasks.line import OpenRoots, open_line
from warcmill.audit import health
from warcmill.audit.answers import dues
from warcmill.audit.answers.dues import Dues
from warcmill.audit.due_crawls import NOT_LAUNCHED, JobGap
from warcmill.audit.health import Check, Level, check_jobs, check_profile
from warcmill.audit.reconciliation import NO_BACKUP
from warcmill.base import clock
from warcmill.base.escapes import printable
from warcmill.errors import BadConfig, Unavailable, WarcmillError
from warcmill.launches import discovery
from warcmill.launches.discovery import with_markers
from warcmill.model import Json, stamp_time

SUMMARY = "check that this machine, the configuration and the roots are ready"
EPILOG = """\
examples:
  warcmill doctor
  warcmill doctor --notice
  warcmill doctor --json | jq -r '.checks[] | select(.level != "ok") | .todo'

Checks the configuration; the versions; the roots (present, readable; state, store and
index also writable, with hard links, space and no litter); the clock; roots without
launches, and what they hold instead; symbolic links that are not followed; sections and
keys of luigi.cfg that nothing reads; files of secrets that others can read; whether
several workers can run; luigid and clamd, if configured (clamd's limits by streams at
and over them); where SIPs are submitted and read again, and whether the minter gives new
ARKs (four, which nothing uses); what extracts text, with its Solr, and what writes
columns, where they are on; the cluster of [scale]; the CDX server of [index]; pywb and
what it replays, where there is a [serve]; the Redis of frontiers; the bus of [requests],
who takes them (a warning), and the Redis of monitors (a warning); the source of a feed,
the package index of [pypi]; where notices go; crawls that were due and have no launch;
archived launches and decisions that are in no backup; and the configuration of every job
that an engine of luigi.cfg crawls; if one renders, Chromium opens a page. Never writes to
the engines' roots. In state, store and index it creates a small file and removes it.

What is not ok is printed, then one line with the numbers; --json lists all.

--json: {"checks": [{"name", "level": ok, warn or fail, "text", "todo"}]}

exit codes: 0 ready, maybe with warnings, 1 something would fail, 2 usage,
3 configuration: nothing would start
"""
STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}
PYTHONS = ((3, 11), (3, 13))
LUIGI = "3.8."
EVER = date(1970, 1, 1), date(9999, 12, 31)
DAYS = 60  # as many as config/crontab scans and backs up
MOST = 10  # checks of one name that are printed
EVERY = "warcmill doctor --json"
TARGETS = 3  # targets of a frequency that are named
SECRETS = ("password_file", "webhook_file", "key_file", "smtp_password_file", "token_file", "secret_key_file")
NO_CRAWL = "nothing, if no crawl has run yet; else correct the path in luigi.cfg, or mount the disk"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--notice, --json."""
    parser.add_argument("--notice", action="store_true", help="send a test notice to the configured addresses")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run every check; print; the worst decides."""
    from tasks.config import services

    checks, code = list(versions()), 0
    try:
        config = settings()
        config.rootmap()
        check_hardened()
    except BadConfig as error:
        checks.append(Check("configuration", Level.FAIL, str(error), "warcmill init FOLDER writes a correct one"))
        code = 3
    else:
        proved = services.proved(config, send=args.notice)
        checks += [*configured(config), *proved["root"]]
        checks += [*keys(), *secrets(), health.check_workers(), *launches(config), *proved["notice"]]
        checks += [*profiles(config), *proved["engine"], *proved["server"], *check_dues(), *proved["scheduler"]]
    if args.json:
        print(as_json({"checks": [_json(check) for check in checks]}))
    else:
        lines(console(), *_texts(checks))
    return code or int(any(check.level is Level.FAIL for check in checks))


def versions() -> Iterator[Check]:
    """The versions of Python and Luigi."""
    import luigi  # --help does without

    python = sys.version_info[:2]
    level = Level.OK if PYTHONS[0] <= python <= PYTHONS[1] else Level.WARN
    todo = "" if level is Level.OK else "use Python 3.11, 3.12 or 3.13"
    yield Check("python", level, sys.version.split()[0], todo)
    is_known = luigi.__version__.startswith(LUIGI)
    todo = "" if is_known else f"install Luigi {LUIGI}x"
    yield Check("luigi", Level.OK if is_known else Level.WARN, luigi.__version__, todo)


def configured(config: Settings) -> Iterator[Check]:
    """Which file was read, and that it is hardened."""
    yield Check("configuration", Level.OK, f"hardened; {config_file()}")
    if config.retire:
        yield Check("retire", Level.OK, "is on: WARCs are removed from the output root once they are read back")


def profiles(config: Settings) -> Iterator[Check]:
    """The configurations of the jobs that this line starts."""
    try:
        jobs = engines.crawled(engines.HERITRIX)
        own, fed = engines.crawled(engines.WARCMILL), feeds.jobs()
        if set(fed) - set(own):
            yield check_profile(
                "profile", feeds.profile().encode(), feeds.configured().profile or "the shipped profile"
            )
        if fed:
            feeds.source()
        for job in fed:
            recipe = feeds.recipe(config, job)
            if job in own:
                recipe.refuse_faults(job)
        for job in indexes.jobs():
            indexes.refuse_unfit(job)
            indexes.source()
    except WarcmillError as error:
        yield Check("crawls", Level.FAIL, str(error), "correct luigi.cfg")
        return
    for job in jobs:
        try:
            root = config.rootmap().of(job).jobs
        except WarcmillError:
            continue  # reported with the root
        yield from check_jobs(root, [job])


def _texts(checks: list[Check]) -> Iterator[Text]:
    """Each check that is not ok, of a name the first ten; then one line."""
    wrong = [check for check in checks if check.level is not Level.OK]
    width = max((len(check.name) for check in wrong), default=0)
    for name, group in groupby(wrong, key=lambda check: check.name):
        alike = list(group)
        for check in alike[:MOST]:
            yield Text.assemble((f"{check.level:<5}", STYLES[check.level]), f"{name:<{width}}  {printable(check.text)}")
            if check.todo:
                yield Text(f"     {'':<{width}}  -> {printable(check.todo)}", style="cyan")
        if len(alike) > MOST:
            yield Text(f"     {'':<{width}}  and {len(alike) - MOST:,} more: {EVERY}")
    number, total = len(checks) - len(wrong), counted(len(checks), "check", "checks")
    numbers = f"{number} of {total} are ok" if wrong else f"{total}, all ok"
    yield Text(f"{numbers}; all of them: {EVERY}", style="" if wrong else "green")


def _json(check: Check) -> dict[str, Json]:
    return {"name": check.name, "level": str(check.level), "text": check.text, "todo": check.todo}


def keys() -> Iterator[Check]:
    """Sections and keys that nothing reads: they have no effect."""
    from tasks.config import known

    unknown = list(known.unknown())
    for key in unknown:
        level = Level.FAIL if key.is_ours else Level.WARN
        todo = f"did you mean {key.meant}?" if key.meant else "remove it, unless your own tasks read it"
        yield Check("luigi.cfg", level, f"{key.name}: nothing reads it", todo)
    if not unknown:
        yield Check("luigi.cfg", Level.OK, "every section and key is known")


def secrets() -> Iterator[Check]:
    """The files with passwords, keys, or the URL of a webhook."""
    for section in sections.named(""):
        for key in SECRETS:
            if path := sections.value(section, key):
                yield health.check_secret(f"[{section}] {key}", path)


def launches(config: Settings) -> Iterator[Check]:
    """Check that each root holds a launch, and name what is skipped in the roots."""
    try:
        seen = discovery.find(config.rootmap(), *EVER)
    except Unavailable:
        return  # reported with the root
    for bare in seen.bare:
        level = Level.FAIL if bare.misplaced else Level.WARN
        yield Check("launches", level, bare.what, bare.todo or NO_CRAWL)
    if seen.launches and not seen.bare:
        yield Check("launches", Level.OK, f"{len(seen.launches)} found in the roots of luigi.cfg")
    yield from _passed_over(config, seen.unexpected)


def _passed_over(config: Settings, unexpected: Iterable[str]) -> Iterator[Check]:
    """Folders that are not launches, and links, including those inside launches, which only reading them would find."""
    for folder in config.follow_links:
        if not Path(folder).is_dir():
            yield Check("follow_links", Level.FAIL, f"{folder} is not there", "mount its disk, or correct [warcmill]")
    links = list(config.links(config.rootmap()).all())
    skipped = {f"{link.path}: {link.why}" for link in links if link.why}
    for text in sorted(skipped.union(unexpected)):
        yield Check("passed over", Level.WARN, text, "look at it: nothing in it is read")
    followed = sum(not link.why for link in links)
    if followed:
        yield Check("follow_links", Level.OK, f"{followed} symbolic links are followed")


def check_dues() -> Iterator[Check]:
    """Due crawls since each schedule began, decisions, and the backups of the last days' launches."""
    try:
        line = open_line()
        due = dues.of_days(audited(line), *EVER)
    except (Unavailable, BadConfig):
        return  # reported with the root, or with the configuration
    except WarcmillError as error:
        yield Check(
            "due", Level.FAIL, f"{error}; what is due and not backed up is unknown", "look at what is named there"
        )
        return
    yield from _due(due.gaps)
    yield from _unanswered(line)
    yield from _backups(line, due)


def _due(gaps: list[JobGap]) -> Iterator[Check]:
    jobs = groupby((gap for gap in gaps if gap.kind == NOT_LAUNCHED), key=lambda gap: gap.job)
    for job, of_job in jobs:
        missed = list(of_job)
        first, last = (clock.stamp_text(gap.name) for gap in (missed[0], missed[-1]))
        span = f"the one due {last}" if len(missed) == 1 else f"{len(missed)} that were due, {first} to {last},"
        verb = "was" if len(missed) == 1 else "were"
        text = f"{span} {verb} not launched: {missed[-1].why}"
        yield Check(f"due {job}", Level.WARN, text, missed[-1].todo)
    for gap in gaps:
        if gap.kind != NOT_LAUNCHED:
            yield Check(
                {NO_BACKUP: "backup", dues.SET_BACK: "index"}.get(gap.kind, "due"),
                Level.WARN,
                f"{gap.name}: {gap.why}",
                gap.todo,
            )


def _unanswered(line: OpenRoots) -> Iterator[Check]:
    """Targets of the newest good feed that no job of [feed] ever crawls: none is due as often as they are."""
    from warcmill.pulse import feed

    try:
        unanswered = feed.unanswered(line.state, [feeds.due_of(job, clock.stamp()) for job in feeds.jobs()])
    except BadConfig:
        return  # reported with the configuration
    except WarcmillError as error:
        yield Check("feed", Level.FAIL, f"{error}; the schedules of its targets are unknown", "look at what is named")
        return
    for frequency, targets in sorted(unanswered.items(), key=str):
        more = f" and {len(targets) - TARGETS} more" if len(targets) > TARGETS else ""
        those = f"{counted(len(targets), 'target', 'targets')} of the feed: {', '.join(targets[:TARGETS])}{more}"
        todo = f"add a job to [feed] jobs whose [job.NAME] has frequency={frequency}"
        yield Check("feed", Level.WARN, f"no job crawls {frequency}, as is asked for {those}", todo)


def _backups(line: OpenRoots, due: Dues) -> Iterator[Check]:
    today = stamp_time(clock.stamp()).date()
    launches = sorted(with_markers(line.state, today - timedelta(days=DAYS), today + timedelta(days=1)))
    unkept = due.unkept(audited(line), launches)
    if due.away:
        return  # reported with the root
    if unkept:
        those = counted(len(unkept), "archived launch", "archived launches")
        text = f"{those} of the last {DAYS} days, first {unkept[0].launch}: {unkept[0].why}"
        yield Check("backup", Level.WARN, text, unkept[0].todo)
    else:
        yield Check("backup", Level.OK, f"what was archived in the last {DAYS} days is in one, or is not a day old")
