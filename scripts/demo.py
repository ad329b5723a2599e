"""Run the bundled launch through the whole line: lay it out, scan, transfer, look at the result.

Run by scripts/demo. Each step is a command that an operator would type, printed
before it runs.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import sample

HERE = Path(__file__).resolve().parent.parent
BIN = HERE / ".venv" / "bin"
DAY = "2026-11-21"
PACKAGE = """
[package]
since=2016-01-01
organisation=National Library of Example
naan=12345
destination={destination}
"""


def main(words: list[str]) -> int:
    """Make the folder unless it exists, and bring it up to date; return 0 if the archive reconciles."""
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    if words[:2] == ["--engine", "heritrix"] and len(words) <= 3:
        import demo_heritrix  # noqa: PLC0415 - only this demo needs the servers' code

        return demo_heritrix.main(Path(words[2]).resolve() if words[2:] else demo_heritrix.DEFAULT)
    if len(words) > 1 or any(word.startswith("-") for word in words):
        print("usage: scripts/demo [--engine heritrix] [FOLDER]", file=sys.stderr)
        return 2
    folder = Path(words[0]).resolve() if words else HERE / "demo"
    began = time.monotonic()
    os.environ.pop("LUIGI_CONFIG_PATH", None)  # of another line; Luigi warns if its file does not exist yet
    if not (folder / "luigi.cfg").exists():
        print(f"A crawl of {sample.JOB}, launch {sample.LAUNCH_ID}, as Heritrix left it, goes to {folder}/output")
        if not (folder / "output").exists():
            shutil.rmtree(folder / "output.part", ignore_errors=True)
            sample.lay_out(folder / "output.part").rename(folder / "output")
        run("warcmill", "init", str(folder), "--output", f"{folder}/output", "--jobs", f"{folder}/output/jobs")
    os.environ["LUIGI_CONFIG_PATH"] = str(folder / "luigi.cfg")
    if "\n[package]" not in (folder / "luigi.cfg").read_text():
        _switch_packages_on(folder)
    _line()
    run("warcmill", "status", DAY)
    code = run("warcmill", "reconcile", DAY, may_be=(0, 1))
    import demo_serve  # noqa: PLC0415 - it imports this module

    demo_serve.search(folder)
    _where_to_look(folder, time.monotonic() - began)
    demo_serve.print_how_to_serve(folder)
    return code


def _switch_packages_on(folder: Path) -> None:
    """SIPs for every launch, submitted to a folder."""
    section = PACKAGE.format(destination=folder / "preservation")
    print(f"\n{folder / 'luigi.cfg'} also gets:\n{section}")
    with (folder / "luigi.cfg").open("a") as config:
        config.write(section)
    run("warcmill", "init", "--adopt", "package", "--create")


def _line() -> None:
    run("luigi", "--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY)
    run("luigi", "--module", "tasks.files", "files.ScanForOutputFiles", "--date-interval", DAY)
    run("luigi", "--module", "tasks.package", "package.ScanForPackages", "--date-interval", DAY)


def run(*command: str, may_be: tuple[int, ...] = (0,)) -> int:
    print(f"\n$ {' '.join(command)}", flush=True)
    code = subprocess.run(command, check=False).returncode
    if code not in may_be:
        sys.exit(f"demo: '{' '.join(command)}' ended with exit code {code}")
    return code


def _sip(folder: Path) -> str:
    """The submitted SIP, as its destination has it."""
    return ", ".join(str(path.relative_to(folder)) for path in sorted((folder / "preservation").rglob("*.tar")))


def _where_to_look(folder: Path, seconds: float) -> None:
    launch = f"{sample.JOB}/{sample.LAUNCH_ID}"
    markers = folder / "state" / DAY[:7] / launch
    print(f"""
Done in {seconds:.1f} s. Where to look:
  {markers}
      the markers, one a step: open any; `head -n -1 MARKER | sha512sum` gives its last line
      {sample.JOB}.{sample.LAUNCH_ID}.final.package.json describes the launch in one file
  {folder / "store"}
      the archive: WARCs, the viral WARC apart, the logs in one zip; the SIP, as it was built
  {folder / "preservation"}
      where the SIP was submitted, and verified: {_sip(folder)}
  export LUIGI_CONFIG_PATH={shlex.quote(str(folder / "luigi.cfg"))} PATH={shlex.quote(str(BIN))}:$PATH
  warcmill why {sample.JOB} {sample.LAUNCH_ID}        warcmill files {DAY}        warcmill verify {DAY}
Run it again: it will find nothing left to do.""")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
