"""Make a small archive by another checkout, and record its answers: the data of tests/pipeline/test_old_archive.py.

    .venv/bin/python scripts/old_archive.py CHECKOUT tests/data/archive-X.Y

CHECKOUT is the version whose archive is to be kept, set up. The archive is made in /srv/archive, which must not exist
and stays; its sites and its package index are on loopback. Run it on a host with a name that may be published. An
archive that is kept is never made again: a later version gets a folder of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import sample
from sites.several_hosts import Page, Web, serve

from servers import distributions, pins
from servers.package_index import PackageIndex

PLACE = Path("/srv/archive")
PARTS = ("output", "jobs", "state", "store", "index", "imported", "preservation", "localsettings.py")
DAYS = "2026-11"
OWN, WHOLE, DAMAGED = "museum", "weekly", "damaged"
BYTES = 250_000  # of the WARC of the bundled launch, at most
PATIENCE = 300  # seconds for a crawl
OF_THE_SERVICES = """
[package]
since=2026-11-01
organisation=National Library of Example
naan=12345
destination={place}/preservation

[engine.own]
kind=warcmill
jobs=museum, packages
allow_private=127.0.0.0/8

[pypi]
since=2026-11-01
jobs=packages
index={index}
contact=http://archive.example/
"""
CRAWL = """\
contact = "http://archive.example/"
allow_private = ["127.0.0.0/8"]
resolve = ["museum.example=127.0.0.1", "friends.example=127.0.0.1"]
scope_log = true

[politeness]
factor = 0
least = 1.0
most = 1.0

[retries]
times = 1
"""


class Archive:
    """The archive in PLACE, and the commands of the checkout."""

    def __init__(self, checkout: Path) -> None:
        self.bin = checkout / ".venv" / "bin"
        self.env = {**os.environ, "LUIGI_CONFIG_PATH": str(PLACE / "luigi.cfg")}
        self.env.pop("COLUMNS", None)  # the width of tables

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `warcmill WORDS`, as typed in the folder of the archive."""
        return self._run("warcmill", *words)

    def run(self, *words: str, may_be: Iterable[int] = (0,)) -> str:
        """Run `warcmill WORDS`, which must end with one of these codes; return what it prints."""
        return self._ended(self.ask(*words), may_be)

    def luigi(self, module: str, task: str, *words: str) -> str:
        """Run a task, which must succeed."""
        return self._ended(self._run("luigi", "--module", f"tasks.{module}", task, *words), (0,))

    def _ended(self, done: subprocess.CompletedProcess[str], may_be: Iterable[int]) -> str:
        print(f"exit {done.returncode}\n{done.stdout[-3000:]}", flush=True)
        if done.returncode not in may_be:
            sys.exit(done.stderr)
        return done.stdout

    def _run(self, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        print(f"$ {command} {shlex.join(words)}", flush=True)
        return subprocess.run(
            [self.bin / command, *words], cwd=PLACE.parent, env=self.env, capture_output=True, text=True, check=False
        )


def site() -> Web:
    """A museum of a few pages; one seed that is not there; a friend's page that redirects to it."""
    halls = {f"/hall/{n}": f"Hall {n} has a windmill of the year {1700 + n}." for n in range(1, 8)}
    texts = {"/": "Welcome to the museum of windmills.", **halls, "/private/letters": "Letters of the miller's family."}
    links = "".join(f'<a href="{path}">{path}</a> ' for path in [*texts, "/notes.txt", "/moved"])
    found = {
        ("museum.example", path): Page(f"<!doctype html><title>{text}</title><p>{text}</p>{links}".encode())
        for path, text in texts.items()
    }
    found["museum.example", "/notes.txt"] = Page(b"Notes of a visitor: the sails turn.", "text/plain", etag='"1"')
    found["museum.example", "/moved"] = Page(b"/hall/1", status=301)
    found["friends.example", "/"] = Page(b"<title>Friends of the museum</title><p>We restore sails.")
    return found


def make(archive: Archive) -> None:
    """Crawl, scan, decide: all that is in the archive."""
    index = PackageIndex(PLACE.with_name("package-index"), pins.free(pins.PACKAGE_INDEX))
    archive.run("init", str(PLACE), "--requests")
    _heritrix(PLACE)
    config = PLACE / "luigi.cfg"
    scheduled = config.read_text().partition("# A launch a day\n")[0]  # a due crawl would be a new gap each day
    config.write_text(scheduled + OF_THE_SERVICES.format(place=PLACE, index=index.url))
    archive.run("init", "--adopt", "package", "--create")
    web = dict(site())
    with serve(web) as port, index.running():
        _museum(archive, web, port)
        _packages(archive, index)
        _requests(archive, port)
    archive.run("accept", "--seeds", "--launch", WHOLE, sample.LAUNCH_ID, "--reason", "the host is gone")
    archive.run("versions", "hide", f"example,museum:{port})/private/", "--reason", "the family asked for it")
    archive.run("scan", DAYS, may_be=(1,))
    first = _launches(OWN)[0]
    _retire(archive, OWN, first)
    archive.luigi("state", "state.BackupState", "--date-interval", DAYS)
    archive.run("scan", DAYS, may_be=(1,))


def _heritrix(place: Path) -> None:
    """Two launches of Heritrix: the begin of the bundled one, whole; and again, with its WARC cut within a record.

    Without its viral WARC, which scanners would report in the archive that is kept.
    """
    for job in (WHOLE, DAMAGED):
        bundled = sample.lay_out(place / "sample")
        (warc,), (log,) = bundled.glob("warcs/*/*/*"), bundled.glob("logs/*/*/crawl.log")
        lines = [line for line in log.read_text("utf-8").splitlines() if "BL-VIRAL-" not in line]
        begins = sorted(_offset(line) for line in lines if warc.name in line)
        end = max(one for one in begins if one < BYTES) if job == WHOLE else BYTES // 2
        kept = [line for line in lines if warc.name not in line or _offset(line) < end]
        os.truncate(warc, end)
        log.write_text("".join(f"{line}\n" for line in kept), "utf-8")
        for kind in ("jobs", "logs", "reports", "warcs"):
            root = place / ("jobs" if kind == "jobs" else f"output/{kind}")
            shutil.copytree(bundled / kind / sample.JOB, root / job, symlinks=True)
        shutil.rmtree(bundled)


def _offset(line: str) -> int:
    """Where the record of a line of the crawl log begins."""
    return int(json.loads(line.split(maxsplit=12)[12])["warcFileOffset"])


def _museum(archive: Archive, web: dict[tuple[str, str], Page], port: int) -> None:
    """Two launches of the built-in crawler: with a checkpoint; and with one page that has changed."""
    job = PLACE / "jobs" / OWN
    job.mkdir()
    seeds = [f"http://museum.example:{port}/", f"http://friends.example:{port}/", f"http://friends.example:{port}/gone"]
    (job / "seeds.txt").write_text("".join(f"{seed}\n" for seed in seeds))
    (job / "surts.txt").write_text(f"http://(example,museum,:{port})/\nhttp://(example,friends,:{port})/\n")
    (job / "crawl.toml").write_text(CRAWL)
    archive.run("pulse", "start", OWN, "--again")
    archive.run("pulse", "checkpoint", OWN)
    _wait_for_end(OWN)
    archive.run("scan", DAYS, may_be=(1,))
    web["museum.example", "/hall/2"] = Page(b"<title>Hall 2</title><p>Hall 2 is closed: a storm broke the sails.")
    archive.run("pulse", "start", OWN, "--again")
    _wait_for_end(OWN)


def _packages(archive: Archive, index: PackageIndex) -> None:
    """A package index, crawled in full; then what was uploaded, yanked and removed since."""
    made = index.folder / "made"
    made.mkdir(parents=True, exist_ok=True)
    for name in ("alpha", "beta", "gamma"):
        index.upload(distributions.wheel(made, name, "1.0"))
        index.upload(distributions.sdist(made, name, "1.0", {f"{name}.py": b""}))
    archive.run("pypi", "trigger_full", "packages")
    _wait_for_end("packages")
    archive.run("scan", DAYS, may_be=(1,))
    index.upload(distributions.wheel(made, "delta", "2.0", {"yaml/__init__.py": b""}, ["alpha>=1"]))
    index.yank("beta", "1.0", "it broke the build")
    index.remove_project("gamma")
    archive.run("pypi", "trigger_incremental", "packages")
    _wait_for_end("packages")


def _requests(archive: Archive, port: int) -> None:
    """Two requests of an application: one for a page, one for a page that is not there."""
    papers = PLACE / "jobs" / "ondemand" / "crawl.toml"
    more = 'allow_private = ["127.0.0.0/8"]\nno_delay = true\nresolve = ["museum.example=127.0.0.1"]\n'
    papers.write_text(papers.read_text().replace("\n[retries]", f"\n{more}\n[retries]"))
    archive.run("pulse", "start", "ondemand", "--again")
    with subprocess.Popen([archive.bin / "warcmill", "run", "requests"], env=archive.env, cwd=PLACE.parent) as role:
        for number, path in enumerate(("/hall/3", "/nothing"), 1):
            url = f"http://museum.example:{port}{path}"
            asked = {"url": url, "appid": "catalogue", "crawlid": f"c{number}", "attrs": {"shelf": number}}
            archive.run("request", "feed", json.dumps(asked))
        logs = PLACE / "output" / "logs" / "ondemand"
        _until(lambda: sum(b'"crawlid"' in line for log in logs.rglob("results.jsonl") for line in _lines(log)) >= 2)
        role.send_signal(signal.SIGTERM)
    archive.run("pulse", "stop", "ondemand")


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def _retire(archive: Archive, job: str, launch: str) -> None:
    """Retire the WARCs of a launch, which only a luigi.cfg with `retire=true` may."""
    config = PLACE / "luigi.cfg"
    before = config.read_text()
    config.write_text(before.replace("retire=false", "retire=true"))
    for stage in stages(PLACE, job, launch):
        archive.luigi("files", "files.Retire", "--job", job, "--launch-id", launch, "--stage", stage)
    config.write_text(before)


def stages(place: Path, job: str, launch: str) -> list[str]:
    """The stages of a launch, in their order."""
    markers = (place / "state").glob(f"*/{job}/{launch}/files.verified.*")
    return sorted(marker.name.rpartition(".")[2] for marker in markers)


def launches(place: Path) -> list[tuple[str, str]]:
    """The launches of the archive, by the folders of its state."""
    return sorted(
        (path.parent.name, path.name) for path in (place / "state").glob("2026-11/*/*") if path.name.isdigit()
    )


def _launches(job: str) -> list[str]:
    return [launch for one, launch in launches(PLACE) if one == job]


def _wait_for_end(job: str) -> None:
    log = PLACE / "jobs" / job / "job.log"
    _until(lambda: log.exists() and "discarded" in log.read_text().splitlines()[-1])


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            sys.exit("the crawl does not end")
        time.sleep(0.05)


def questions(place: Path) -> dict[str, list[str]]:
    """What an operator asks of the archive, by the name of its answer."""
    asked = {
        "status": "status 2026-11",
        "status.json": "status 2026-11 --json",
        "status-in-trouble": "status 2026-11 --trouble",
        "reconcile": "reconcile 2026-11",
        "reconcile.json": "reconcile 2026-11 --json",
        "plan": "plan 2026-11",
        "plan.json": "plan 2026-11 --json",
        "files": "files 2026-11",
        "files.json": "files 2026-11 --json",
        "files-lacking-read-back": "files 2026-11 --lacking read-back",
        "verify.json": "verify 2026-11 --json",
        "catalogue": "catalogue query",
        "catalogue.json": "catalogue query --json",
        "search": "search windmill",
        "search.json": "search sails --json",
        "search-for-hidden": "search letters miller",
        "search-in-cut-warc": "search policy --json",
        "versions-cdx": "versions list",
        "versions-cdx.json": "versions list --json",
        "versions-text.json": "versions list --of text --json",
        "versions-modules.json": "versions list --of modules --json",
        "versions-diff": "versions diff 2 3",
        "versions-verify": "versions verify",
        "versions-verify-text": "versions verify --of text",
        "versions-verify-modules": "versions verify --of modules",
        "seeds": f"report {DAMAGED} {sample.LAUNCH_ID} --seeds --csv",
        "why": f"why {DAMAGED} {sample.LAUNCH_ID}",
        "depends.json": f"depends {WHOLE} {sample.LAUNCH_ID} --json",
        "pypi-provides": "pypi provides yaml",
        "pypi-provides.json": "pypi provides alpha --json",
        "pypi-requires.json": "pypi requires delta-2.0-py3-none-any.whl --json",
        "pypi-requires-unknown": "pypi requires none-1.0-py3-none-any.whl",
        "pypi-show": "pypi show beta",
        "pypi-show.json": "pypi show gamma --json",
        "pypi-show-of-old.json": "pypi show gamma --as-of 15 --json",
    }
    for job, launch in launches(place):
        asked[f"report-{job}-{launch}.json"] = f"report {job} {launch} --json"
        asked[f"why-{job}-{launch}.json"] = f"why {job} {launch} --json"
    return {name: words.split() for name, words in asked.items()}


def shown(words: list[str], done: subprocess.CompletedProcess[str], place: Path) -> str:
    """What was typed, its exit code and its output; a document of `--json` in many lines, to compare by them."""
    text = done.stdout.replace(str(place), str(PLACE))
    if "--json" in words and text:
        text = json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
    return f"$ warcmill {shlex.join(words)}\nexit {done.returncode}\n{text}"


def record(archive: Archive, kept: Path) -> None:
    """Keep the archive, its answers, and what reading back and retiring the rest of it claims."""
    asked = questions(PLACE)
    for name, words in asked.items():
        _record(archive, words, kept / "answers" / name)
    for of_a_run in (".locks", "log"):
        shutil.rmtree(PLACE / "state" / of_a_run)
    shutil.copy(PLACE / "luigi.cfg", kept)
    with tarfile.open(kept / "roots.tar.xz", "w:xz", preset=9) as packed:
        for part in PARTS:
            packed.add(PLACE / part, part)
    before = claims(PLACE)
    _record(archive, ["scan", DAYS], kept / "answers-of-changes" / "scan")
    for job, launch in launches(PLACE):
        _retire(archive, job, launch)
    new = {path: claim for path, claim in claims(PLACE).items() if path not in before}
    (kept / "claims.json").write_text(json.dumps(new, indent=1, sort_keys=True) + "\n")
    for name in ("status.json", "reconcile.json", "files.json"):
        _record(archive, asked[name], kept / "answers-of-changes" / f"retired-{name}")


def _record(archive: Archive, words: list[str], place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.with_name(f"{place.name}.txt").write_text(shown(words, archive.ask(*words), PLACE))


def claims(place: Path) -> dict[str, object]:
    """The claim of each marker that reading back and retiring leave, by its path in the state."""
    state = place / "state"
    found = sorted(path for step in ("read-back", "retired") for path in state.glob(f"2026-11/*/*/files.{step}.*"))
    return {str(path.relative_to(state)): json.JSONDecoder().raw_decode(path.read_text())[0]["claim"] for path in found}


def main(words: list[str]) -> int:
    """Make the archive by a checkout, and keep it in a folder."""
    if len(words) != 2:
        print("usage: python scripts/old_archive.py CHECKOUT FOLDER", file=sys.stderr)
        return 2
    if PLACE.exists():
        print(f"{PLACE} exists: it is where the archive is made", file=sys.stderr)
        return 1
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    archive = Archive(Path(words[0]).resolve())
    make(archive)
    record(archive, Path(words[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
