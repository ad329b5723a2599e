"""The commands that the pages print, and the small world that they are typed in."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import preloaded
import sample
from line import without_dead_seed

from commands.init import PUBLISHED
from warcmill import layout
from warcmill.model import Launch

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
# By their paths, those below docs/ without it: commands.md, decisions/0002-no-replace.md, README.md.
FILES = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))} | {
    path.name: path for path in sorted(ROOT.glob("*.md"))
}
PAGES = {page: path.read_text("utf-8") for page, path in FILES.items()}
PROGRAMS = re.compile(
    r"(warcmill|luigi|luigid|python -m|git|pip|crontab|sudo|useradd|install|systemctl|journalctl|apt-get|mkdir|sed|rm) "
    r"|(\./)?scripts/[a-z]"
)
# Prose may name a program and an action of it, without saying on what: `warcmill redo`, `systemctl stop`.
NAMED = re.compile(r"(warcmill|luigi|systemctl)( [a-z]+)*|scripts/scan")
PLACEHOLDER = re.compile(r"(?<![\w=/])[A-Z]{3,}(?!\w)|…")
CODE = re.compile(r"^```(?P<language>\w*)\n(?P<block>.*?)^```$|`(?P<span>[^`]+)`", re.DOTALL | re.MULTILINE)
DAILY = Launch("daily", "20261121081844")
CHECKPOINT = "cp00001-20261121081902"
DAILY_WARC = "BL-20261121081846123-00000-1283~crawler01~8443.warc.gz"
DEAD = Launch("crashed", "20261121083734")
DEAD_WARCS = (
    "BL-20261121083736394-00000-1283~crawler01~8443.warc.gz",
    "BL-20261121083736395-00001-1283~crawler01~8443.warc.gz",
)

SYSTEM_FOLDERS = (
    "etc/bash_completion.d",
    "etc/fish/completions",
    "usr/local/share/man/man1",
    "usr/local/share/zsh/site-functions",
    "var/lib/prometheus/node-exporter",
)
EVERY_DAY = {"schedules": [{"startDate": "2026-01-01T06:00:00Z", "frequency": "DAILY"}]}
THINGS = "https://www.things.example/"
TARGETS = (
    {"id": 7, "seeds": [THINGS], "loginPageUrl": f"{THINGS}login", **EVERY_DAY},
    {
        "id": 8,
        "seeds": [THINGS, "https://b.example/"],
        "scope": "subdomains",
        "depth": "DEEP",
        **EVERY_DAY,
    },
    {"id": 9, "seeds": ["https://c.example/"], "scope": "host", **EVERY_DAY},
)


@dataclass(frozen=True)
class Printed:
    """A command of a page: as it is printed, and the output that is shown below it."""

    page: str
    text: str
    shown: str = ""

    @property
    def command(self) -> str:
        """Without what follows a `#`."""
        return re.sub(r"\s+#.*", "", self.text)

    @property
    def bare(self) -> str:
        """Without the variables before it."""
        return re.sub(r"^([A-Z_]+=\S+ )+", "", self.command)


def printed(text: str, page: str = "") -> Iterator[Printed]:
    """Every command of a page, in its order: in fenced blocks, and what in prose and tables is a whole command."""
    for found in CODE.finditer(text):
        if found["span"]:
            one = Printed(page, " ".join(found["span"].split()).replace("\\|", "|"))
            whole = not NAMED.fullmatch(one.bare) and not PLACEHOLDER.search(re.sub(r'".*?"', "", one.bare))
            yield from [one] if whole and PROGRAMS.match(one.bare) else []
        elif found["language"] in ("", "sh", "console"):
            yield from (one for one in _of_block(page, found["block"]) if PROGRAMS.match(one.bare))


def _of_block(page: str, block: str) -> Iterator[Printed]:
    """Where a block has prompts: what follows each, with its output; else its lines."""
    for text in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        yield Printed(page, *text.split("\n", 1))
    if not block.startswith("$ "):
        yield from (Printed(page, line.strip()) for line in block.splitlines())


PRINTED = [one for page, text in PAGES.items() for one in printed(text, page)]

# What differs from run to run, or from machine to machine: times, versions, room, the lengths of zips.
VARIES = (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", r"\b3\.\d+\.\d+", r"\d+ GiB free of \d+", r"\b\d{1,3}(,\d{3})+\b")


def plain(text: str) -> str:
    """An output without what varies, and without blanks in a row or at a line's end."""
    for pattern in VARIES:
        text = re.sub(pattern, "~", text)
    return "\n".join(re.sub(" +", " ", line).strip() for line in text.strip().splitlines())


def is_as_shown(output: str, shown: str) -> bool:
    """Whether a page shows this output. A line of dots stands for any lines; nothing shown, for anything."""
    parts = re.split(r"^(?:…|\.\.\.)$", plain(shown), flags=re.MULTILINE)
    return not shown or bool(re.fullmatch(".*".join(map(re.escape, parts)), plain(output), re.DOTALL))


MODULES = {"warcmill": "commands.main", "luigi": "luigi"}


def shell(command: str, folder: Path, config: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; stdout has what a terminal would show. `config` is named once it is there.

    A shell runs it, unless it is one of our two commands and its words, of which the shell would make nothing else.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    named = {"LUIGI_CONFIG_PATH": str(config)} if config.exists() else {}
    env = {**os.environ, **named, "PATH": path, "COLUMNS": "120"}
    program, *words = shlex.split(command)
    unquoted = re.sub(r"'[^']*'" + r'|"[^"$`\\]*"', "", command)
    if program in MODULES and not re.search(r"[^\w ,:=@./+~-]|(?<!\w)~", unquoted):
        return preloaded.run(MODULES[program], *words, env=env, folder=folder, together=True)
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


class World:
    """`/srv/archive`, `/data/heritrix` and what else the pages name, below a folder of the test's own."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.output, self.jobs = base / "data" / "heritrix" / "output", base / "data" / "heritrix" / "jobs"
        self.output.parent.mkdir(parents=True)
        without_dead_seed(sample.lay_out(self.output))
        self._copy(DAILY)
        self._copy(DEAD)
        self._checkpoint(*(self.output / kind / DAILY.job / DAILY.id for kind in ("warcs", "logs")))
        self._kill(*(self.output / kind / DEAD.job / DEAD.id for kind in ("warcs", "logs")))
        (self.output / "jobs").rename(self.jobs)
        for folder in ("srv", *SYSTEM_FOLDERS):
            (base / folder).mkdir(parents=True)
        (base / "targets.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in TARGETS))

    def _copy(self, launch: Launch) -> None:
        """The sample once more, as another launch."""
        for kind in (*layout.KINDS, "jobs"):
            source = self.output / kind / sample.JOB / sample.LAUNCH_ID
            if source.is_dir():
                shutil.copytree(source, self.output / kind / launch.job / launch.id, symlinks=True)
        for log in (self.output / "jobs" / launch.job).rglob("job.log"):
            log.write_text(log.read_text().replace(sample.LAUNCH_ID, launch.id))

    def _checkpoint(self, warcs: Path, logs: Path) -> None:
        """As after a checkpoint: its crawl log names one WARC, that of `final` the other."""
        for log in list(logs.iterdir()):
            log.rename(log.with_name(f"{log.name}.{CHECKPOINT}"))
            log.touch()
        (warc,) = warcs.iterdir()
        warc.rename(warc.with_name(DAILY_WARC))
        earlier = logs / f"crawl.log.{CHECKPOINT}"
        lines = earlier.read_text("utf-8").replace(warc.name, DAILY_WARC).splitlines(True)
        (logs / "crawl.log").write_text("".join(line for line in lines if "BL-VIRAL-" not in line), "utf-8")
        earlier.write_text("".join(line for line in lines if "BL-VIRAL-" in line), "utf-8")

    def _kill(self, warcs: Path, logs: Path) -> None:
        """As a killed engine leaves a launch: no FINISHED, two WARCs still open, one of them cut."""
        for log in (self.output / "jobs" / DEAD.job).rglob("job.log"):
            log.write_text("".join(line for line in log.read_text().splitlines(True) if "FINISHED" not in line))
        (warc,) = warcs.iterdir()
        for number, name in enumerate(DEAD_WARCS):
            (warcs / f"{name}.open").write_bytes(warc.read_bytes()[: [-400_000, None][number]])
        lines = (logs / "crawl.log").read_text("utf-8").splitlines(True)
        named = (line.replace(warc.name, DEAD_WARCS[number % 2]) for number, line in enumerate(lines))
        (logs / "crawl.log").write_text("".join(named), "utf-8")
        warc.unlink()
        os.utime(warcs / f"{DEAD_WARCS[1]}.open", (time.time() + 1,) * 2)  # what was written last

    def here(self, text: str) -> str:
        """A command with the pages' paths put where this world has them."""
        for path in ("/srv/", "/data/heritrix", "/etc/", "/usr/local/share/", "/var/lib/"):
            text = text.replace(path, f"{self.base}{path}")
        return text.replace("/opt/warcmill", str(ROOT))

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """A command as an operator's shell runs it. The line of the pages is not indexed until a page says so."""
        config = self.base / "srv" / "archive" / "luigi.cfg"
        done = shell(self.here(command), self.base, config)
        if command.startswith("warcmill init /srv/archive") and not done.returncode:
            config.write_text(config.read_text().replace(PUBLISHED, ""))
        return done

    def told(self, output: str) -> str:
        """An output with the pages' paths in place of this world's."""
        return output.replace(str(self.base), "")
