"""Run the line over real launches by two checkouts; compare every claim and every line of `--json`, byte for byte.

    .venv/bin/python scripts/same_claims.py BEFORE [CORPUS]

BEFORE is another checkout of the project, set up. CORPUS is a folder with `kind-first/` or `job-first/`; the bundled
launch is always compared. The two checkouts work in one folder, one after the other, so that the paths in what they
write are equal. Of a marker the claim is compared, as its `run` holds times; of every other
file of the state and of the store all but times. Prints each difference, and exits with 1 if there is one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import sample

HERE = Path(__file__).resolve().parent.parent
DAYS = "1996-01-01-2100-01-01"
OF_THE_LINE = (f"status {DAYS}", f"files {DAYS}", f"reconcile {DAYS}", f"plan {DAYS}", "versions list")
OF_A_LAUNCH = ("report {}", "why {}", "depends {}")
OVER_TIMES = re.compile(r'\n[0-9a-f]{128}\n?\Z| "basis": .*\n')
STILL = "from warcmill.base import clock\nclock.now = lambda: '2026-11-21T12:00:00Z'\n"  # a SIP holds the times of runs
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)?")
PACKAGE = "\n[package]\nsince=1996-01-01\norganisation=National Library of Example\nnaan=12345\ndestination={}\n"

Texts = dict[str, str]


class Line:
    """The line of a checkout, in `base`, over a copy of the launches in `source`."""

    def __init__(self, checkout: Path, base: Path, source: Path) -> None:
        self._warcmill = str(checkout / ".venv" / "bin" / "warcmill")
        self._base, self._layout = base, source.name
        config = str(base / "line" / "luigi.cfg")
        self._environment = {**os.environ, "LUIGI_CONFIG_PATH": config, "PYTHONPATH": str(base / "clock")}
        (base / "clock").mkdir(parents=True)
        (base / "clock" / "sitecustomize.py").write_text(STILL)  # Python imports it at its start
        shutil.copytree(source, base / "engine", symlinks=True, copy_function=shutil.copyfile)
        for folder, _, _ in os.walk(base):
            Path(folder).chmod(0o755)  # a corpus may be read-only

    def work(self) -> Texts:
        """Set the line up, close what no log ends, scan; return what was printed, claimed and written."""
        line, jobs = self._base / "line", self._base / "engine" / "jobs"
        of_jobs = ["--jobs", str(jobs)] if jobs.is_dir() else []
        self._run("init", str(line), "--output", str(self._base / "engine"), "--layout", self._layout, *of_jobs)
        with (line / "luigi.cfg").open("a") as config:
            config.write(PACKAGE.format(self._base / "preservation"))
        self._run("init", "--adopt", "package", "--create")
        first = self._run("scan", DAYS)
        rows = json.loads(self._run("files", DAYS, "--json").partition("\n")[2])["files"]
        launches = sorted({(row["job"], row["launch_id"]) for row in rows})
        closed = [self._run("close", *launch, "--reason", "its engine was killed") for launch in launches]
        texts = {"scan": first, "close": "".join(closed), "second scan": self._run("scan", DAYS)}
        asked = [*OF_THE_LINE, *(each.format(" ".join(launch)) for launch in launches for each in OF_A_LAUNCH)]
        return (
            texts | {f"warcmill {words} --json": self._run(*words.split(), "--json") for words in asked} | self._files()
        )

    def _run(self, *words: str) -> str:
        command, folder = [self._warcmill, *words], self._base  # elsewhere `python -m` would find this checkout
        ran = subprocess.run(command, cwd=folder, env=self._environment, capture_output=True, text=True, check=False)
        return MOMENT.sub("TIME", f"exit {ran.returncode}\n{ran.stdout}")

    def _files(self) -> Texts:
        """The claim of each marker, and all of each other file of the state and of the store, by path."""
        texts = {}
        for path in sorted(path for root in ("state", "store") for path in (self._base / "line" / root).rglob("*")):
            is_of_a_run = {".locks", "log", "attempts"} & set(path.parts) or path.name.endswith(".run.json")
            if path.is_file() and not is_of_a_run:
                texts[str(path.relative_to(self._base))] = _lasting(path.read_bytes())
        return texts


def _lasting(data: bytes) -> str:
    """All of a file but times, and the digests over times that some have at the end or as their basis."""
    try:
        text = data.decode()
        marker = json.JSONDecoder().raw_decode(text)[0] if text.startswith("{") else {}
    except ValueError:
        return hashlib.sha256(data).hexdigest()
    return json.dumps(marker["claim"]) if "claim" in marker else OVER_TIMES.sub("", MOMENT.sub("TIME", text))


def compare(name: str, before: Texts, after: Texts) -> int:
    """Print what differs; return how much does."""
    different = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
    asked = sum(" --json" in key for key in after)
    print(
        f"{name}: {len(after) - asked} files and scans, {asked} documents of --json; {len(different)} differ",
        flush=True,
    )
    for key in different:
        print(f"  {key}\n    before: {before.get(key, '(none)')[:2000]}\n    after:  {after.get(key, '(none)')[:2000]}")
    return len(different)


def main(words: list[str]) -> int:
    """Compare the checkout BEFORE with this one."""
    if not 1 <= len(words) <= 2:
        print("usage: python scripts/same_claims.py BEFORE [CORPUS]", file=sys.stderr)
        return 2
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        sources = [sample.lay_out(Path(folder) / "kind-first")]
        sources += [Path(word) / layout for word in words[1:] for layout in ("kind-first", "job-first")]
        for source in sources:
            both = []
            for checkout in (Path(words[0]).resolve(), HERE):
                both.append(Line(checkout, Path(folder) / "work", source).work())
                shutil.rmtree(Path(folder) / "work")
            different += compare(str(source), *both)
    return min(different, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
