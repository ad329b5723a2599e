"""Every command that a page prints is run as it is printed, with the page's folders in a folder of the test's own:
here, or by the test that is named beside it, or by hand alone, for the reason that is given. Its output is compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from operating.documented import PRINTED, ROOT, Printed, World, is_as_shown

PULSE = ("tests/services/test_documented_pulse.py", "PRINTED")
# Run elsewhere, by how they begin: the file that runs them, and its words.
ELSEWHERE = {
    "warcmill schedule": ("tests/pipeline/test_schedule_command.py", 'run(crawled, JOB, "daily", "--install")'),
    "warcmill crawl": ("tests/pipeline/test_crawl_command.py", "process, terminal = begun(tmp_path, *words)"),
    "warcmill job": ("tests/tasks/test_job_command.py", 'typed(capsys, "state")'),
    "warcmill documents": ("tests/pipeline/test_documents_command.py", '"documents", '),
    "warcmill feed add": ("tests/pipeline/test_feed_targets.py", 'feed(base, "add", "daily"'),
    "warcmill feed pause": ("tests/pipeline/test_feed_targets.py", 'feed(base, "pause", "daily"'),
    "warcmill feed export": ("tests/pipeline/test_feed_exchange.py", '(base, "export", "--to", "brozzler"'),
    "warcmill feed import": ("tests/pipeline/test_feed_exchange.py", '(base, "import", "--from", "brozzler"'),
    "warcmill pulse": PULSE,
    "warcmill pypi": ("tests/pipeline/test_index_crawls.py", 'line.warcmill("pypi", "trigger_full", JOB)'),
    "luigi --module tasks.pulse": PULSE,
    "warcmill catalogue": ("tests/pipeline/test_submission.py", '"catalogue", "query", "--warc"'),
    "warcmill init --adopt package": ("tests/pipeline/test_submission.py", '"init", "--adopt", "package"'),
    "luigi --module tasks.package": ("tests/pipeline/test_submission.py", '"package.SubmitSip"'),
    "luigi --module tasks.pypi": ("tests/pipeline/test_index_dumps.py", '"pypi.ProcessDistributions"'),
    "luigi --module tasks.files files.VirusScan": ("tests/services/test_clamd_line.py", '"files.VirusScan"'),
    "luigi --module tasks.index index.FollowCrawl": ("tests/tasks/test_index_sinks.py", '"FollowCrawl", LAUNCH'),
    "luigid": ("tests/pipeline/test_luigid.py", "PRINTED"),
    "warcmill serve": ("tests/services/test_serve.py", "serving.serving(config"),
    "warcmill quality": ("tests/services/test_quality.py", '"quality", '),
    "warcmill run spider": ("tests/support/requesting/scrapy_runs.py", '"run", "spider"'),
    "warcmill script": ("tests/pipeline/test_scripts.py", '"commands.main", "script", *words'),
    "warcmill run worker": ("tests/support/crawls/redis_crawls.py", '"run", "worker"'),
    "warcmill request": ("tests/pipeline/test_request_command.py", '"commands.main", "request"'),
    "warcmill run updater": ("tests/support/crawls/clustered.py", '"run", "updater"'),
    "warcmill group": ("tests/services/test_clusters_updater.py", '"group", GROUP'),
    "warcmill uri": ("tests/services/test_clusters_orders.py", '"uri", GROUP'),
    "warcmill run rest": ("tests/pipeline/test_request_command.py", '"run", "rest", "--port"'),
    "warcmill run requests": ("tests/support/requesting/requests_line.py", '"commands.main", "run", "requests"'),
    "warcmill run results": ("tests/pipeline/test_run_results.py", '"run", "results", JOB, "--worker"'),
    "warcmill render serve": ("tests/support/crawls/render_service.py", '"render", "serve", "--root"'),
    "scripts/check": ("scripts/test", "    run scripts/check\n"),
    "scripts/demo --servers": ("tests/services/full/test_documented_demo.py", '"scripts/demo", "--servers"'),
    "scripts/demo": ("tests/services/test_demo.py", '"scripts" / "demo"'),
    "scripts/packages": (".ci/run", "suite ./scripts/packages"),
    "scripts/services up": ("tests/services/test_servers.py", '"up"'),
    "scripts/setup": ("scripts/test", "\nscripts/setup\n"),
    "scripts/test services": (".ci/run", "suite ./scripts/test services"),
    "scripts/test sweep": ("scripts/test", "        tests $side_by_side --every-point --timeout 0\n"),
    "scripts/test": (".ci/run", "suite ./scripts/test "),
    "python -m benchmarks.books_sweep": ("tests/unit/crawl/books/test_books_killed.py", "sweep"),
    "python -m benchmarks.cdxj fuzz": ("tests/services/test_cdxj_peers.py", "urls = sample("),
    "python -m benchmarks.crash_sweep": ("tests/pipeline/test_crash.py", "sweep"),
    "python -m benchmarks.crawl_sweep": ("tests/unit/crawl/test_spider_killed.py", "sweep("),
    "python -m benchmarks.crowd": ("tests/unit/crawl/test_crowd.py", "crowd.crawl("),
    "python -m benchmarks.script_tasks": ("tests/unit/scripts/test_script_tasks.py", "script_tasks.main("),
    "python -m benchmarks.fault_sweep": ("tests/services/test_fault_sweep.py", "sweep"),
}
# No test runs these. What needs root changes the machine itself: users, units, packages.
BY_HAND = {
    "apt-get install": "needs root; scripts/packages, which does the same, is run by .ci/run",
    "crontab config/crontab": "changes its user's crontab; its lines are run by tests/services/full/test_week.py",
    "git clone": "names a repository of the reader's own",
    "install": "needs root; tests/services/test_installed.py holds what is installed to be sound",
    "journalctl": "needs the units to be installed",
    "pip install": "fetches packages into an environment of the reader's own",
    "python -m benchmarks.crawl_profile": "measures for long, as scripts/bench does",
    "python -m benchmarks.watchers": "measures for long, as scripts/bench does",
    "scripts/bench": "measures for long, and needs a machine with nothing else to do; it proves nothing",
    "scripts/editor": "fetches packages; .ci/run runs it with --check, tests/unit/test_project.py holds it to its lock",
    "scripts/lock": "fetches newest versions, and changes the lock; tests/unit/test_project.py holds it to setup.cfg",
    "scripts/pictures": "needs a browser; the page's pictures are compared by eye",
    "scripts/test full": "takes hours; .ci/run runs its checks and tests, and smaller numbers of its sweeps",
    "sudo": "needs root; the command behind it is run by tests/docs as `warcmill init`",
    "systemctl": "needs root; the units are verified, and what they run is run, by tests/services/test_installed.py",
    "useradd": "needs root",
}

INIT = "warcmill init /srv/archive --output /data/heritrix/output --jobs /data/heritrix/jobs"
CLOSE = "warcmill close crashed 20261121083734 --reason 'its engine was killed'"
SCAN = "warcmill scan 2026-11"
HIDE = "mv /srv/archive/state/2026-11 /srv/archive/hidden"
SHOW = "rm -rf /srv/archive/state/2026-11; mv /srv/archive/hidden /srv/archive/state/2026-11"
FORGET = "rm -r /srv/archive/state/2026-11/crashed /srv/archive/store/logs/crashed"
UNDO = "rm -r /srv/archive /data/heritrix/jobs/.warcmill.json"
SECOND = (
    "mkdir -p /data/heritrix/second/jobs; "
    "printf '[engine.second]\\noutput=%s\\njobs=events\\n' /data/heritrix/second >> /srv/archive/luigi.cfg"
)
NO_INDEX = "sed -i /^index=/d /srv/archive/luigi.cfg; rm -r /srv/archive/index"
INDEX = "printf 'index=%s\\n' /srv/archive/index >> /srv/archive/luigi.cfg"
# The sample's crawl runs for ever: the older the sample, the longer its engine has been silent.
QUIET = "printf '[notice]\\nsilent_hours=0\\n' >> /srv/archive/luigi.cfg"
LOUD = "sed -i '/^.notice.$/d; /^silent_hours=0$/d' /srv/archive/luigi.cfg"
RETIRE = "sed -i s/retire=false/retire=true/ /srv/archive/luigi.cfg"
BAG = (
    "mkdir -p /data/bags/changed/data; cd /data/bags/changed; echo hello > data/foo; echo more > data/bar; "
    "printf 'BagIt-Version: 0.97\\nTag-File-Character-Encoding: UTF-8\\n' > bagit.txt; "
    "echo '2202bb7507601fd62f281a5b5a068ea5  data/foo' > manifest-md5.txt"
)
OLD = (
    "mkdir -p /srv/old; cp -r '/opt/warcmill/tests/data/wget' /srv/old/elections; "
    "chmod 755 /srv/old/elections; chmod 644 /srv/old/elections/*"
)
INDEXED = (
    "printf '[index]\\nsince=2026-01-01\\n[text]\\nsince=2026-01-01\\n' >> /srv/archive/luigi.cfg",
    "luigi --module tasks.index index.ScanForIndexing --date-interval 2026-11",
)
# Pages that begin in an empty folder, with a site to crawl: tests/pipeline/test_start_pages.py follows them; that with
# a package index tests/services/test_mirror_page.py, that with workers test_workers_page.py beside it, that with a
# spider tests/pipeline/test_run_spider.py, that with requests tests/pipeline/test_ask_for_pages.py, that with
# scripts test_follow_a_site.py beside it.
FOLLOWED = (
    "start/archive-a-site.md",
    "start/one-article.md",
    "start/what-was-missed.md",
    "start/mirror-a-package-index.md",
    "start/scrapy-spider.md",
    "start/crawl-with-many-machines.md",
    "start/ask-for-pages.md",
    "start/follow-a-site.md",
)
# What the page's story has done before it begins, or before one of its commands.
BEFORE = {
    ("commands.md", ""): (INIT,),
    ("commands.md", "warcmill init --adopt index"): (NO_INDEX,),
    ("commands.md", "warcmill doctor"): (INDEX,),
    ("commands.md", "warcmill status 2026-11-21"): (CLOSE, SCAN),
    ("commands.md", "warcmill why weekly 20261121081735"): (HIDE,),
    ("commands.md", "warcmill why crashed 20261121083734"): (SHOW,),
    ("commands.md", "warcmill plan 2026-11-21"): (HIDE, QUIET),
    ("commands.md", "warcmill files crashed 20261121083734"): (SHOW, LOUD),
    ("commands.md", "warcmill close crashed 20261121083734"): (FORGET,),
    ("commands.md", "warcmill import /srv/old/elections --job elections --launch-id"): (OLD,),
    ("commands.md", "warcmill accept"): (SCAN,),
    ("commands.md", "warcmill check /data/bags"): (BAG,),
    ("commands.md", "warcmill search"): INDEXED,
    ("commands.md", "warcmill restore"): (
        "luigi --module tasks.state state.BackupState --date-interval 2026-11",
        "rm -r /srv/archive/state",
    ),
    ("configuration.md", ""): (INIT,),
    ("operate/containers.md", ""): (INIT,),
    ("operate/every-day.md", ""): (INIT, CLOSE, SCAN),
    ("operate/growing.md", ""): (INIT, CLOSE, SCAN),
    ("operate/growing.md", "warcmill init --adopt engine.second"): ("mkdir -p /data/heritrix/second/jobs", SECOND),
    ("operate/growing.md", "warcmill check /srv/old/elections"): (OLD,),
    ("operate/publishing.md", ""): (INIT, CLOSE, SCAN),
    ("operate/trouble.md", ""): (INIT, "rm -r /data/heritrix/output/reports/crashed", CLOSE, SCAN),
    ("operate/trouble.md", "warcmill redo daily 20261121081844 checksum final --downstream --file"): (SCAN,),
    ("operate/trouble.md", "warcmill close"): (FORGET,),
    ("operate/trouble.md", "warcmill accept final/reports/"): (SCAN,),
    ("start/heritrix.md", "warcmill init /srv/archive --output /data/heritrix/jobs --layout job-first"): (UNDO,),
    ("start/heritrix.md", "warcmill doctor"): (UNDO, INIT),
    ("takedown.md", ""): (INIT, CLOSE, SCAN, *INDEXED),
    ("tasks.md", ""): (INIT,),
    ("tasks.md", "luigi --module tasks.files files.Retire"): (RETIRE,),
    ("tasks.md", "luigi --module tasks.index index.VerifyCdx"): (
        "luigi --module tasks.index index.FoldCdx --date-interval 2026-11-21",
    ),
    ("tasks.md", "luigi --module tasks.index index.VerifySolr"): (
        "luigi --module tasks.index index.FoldText --date-interval 2026-11-21",
    ),
    ("why.md", ""): (INIT,),
}
# What is printed when the answer is no: the exit code is 1 then, and 0 else.
NO = re.compile(
    r"^ +(lacking|refused): |^(refused|differs|fail) |^\d+ (gaps?|faults?)$|nothing was moved| [1-9]\d* refused,",
    re.MULTILINE,
)


def begins(command: Printed, start: str) -> bool:
    return command.bare.removeprefix("./").startswith(start)


def is_here(command: Printed) -> bool:
    return command.page not in FOLLOWED and not any(begins(command, start) for start in [*ELSEWHERE, *BY_HAND])


HERE = [command for command in PRINTED if is_here(command)]


def test_the_pages_print_commands() -> None:
    assert len(HERE) > 60
    assert {command.bare.split()[0] for command in HERE} == {"warcmill", "luigi", "mkdir", "sed", "rm"}


@pytest.mark.parametrize("start", sorted({**ELSEWHERE, **BY_HAND}))
def test_what_is_not_run_here_is_printed_and_what_is_run_elsewhere_is_there(start: str) -> None:
    assert any(begins(command, start) for command in PRINTED)
    file, words = ELSEWHERE.get(start, ("setup.cfg", ""))
    assert words in (ROOT / file).read_text("utf-8")


@pytest.mark.parametrize("page", sorted({command.page for command in HERE}))
def test_the_commands_of_a_page_run_as_printed(page: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    prepare(world, page, "")
    for command in (one for one in HERE if one.page == page):
        prepare(world, page, command.command)
        done = world.run(command.command)
        told = world.told(done.stdout)
        assert done.returncode == (1 if NO.search(told) else 0), f"{command.text}\n{told}"
        assert "Traceback" not in told, f"{command.text}\n{told}"
        assert is_as_shown(told, command.shown), f"{command.text}\n{told}\nThe page:\n{command.shown}"


def prepare(world: World, page: str, command: str) -> None:
    """Do what the page's story has done before a command."""
    for (where, start), steps in BEFORE.items():
        if where == page and (command.startswith(start) if start else not command):
            for step in steps:
                done = world.run(step)
                assert done.returncode in (0, 1), f"{step}\n{done.stdout}"
