"""Draw the pictures in docs/pictures: run the real commands in a temporary folder, and record what they show.

demo.svg        what `warcmill status` and `warcmill reconcile` print of the demo
visualiser.png  luigid's own page, with one launch done and one that failed; needs chromium
replay.png      a page of scripts/windmills, crawled, out of its WACZ, in ReplayWeb.page; needs chromium
search.png      what a reader's search finds in that crawl; served.png, a result in replay; need the same
launch.png      the page of that crawl's launch
watch.png       the page of a crawl of the same museum, while it runs; form.png, the form of its job; need the same
rendered.png    the page of `scripts/demo --render` in replay, whose text and links a script made; needs chromium
engine.png      the same page after `scripts/demo --servers`, as a graph; needs the servers' packages too
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

import sample
from loopback_site import living_museum, windmills
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from servers import browsing, luigid, packages, serving

HERE = Path(__file__).resolve().parent.parent
BIN = HERE / ".venv" / "bin"
PICTURES = HERE / "docs" / "pictures"
DAY = "2026-11-21"
DEAD = {"seeds.txt": b"http://gone.example/\n", "seeds-report.txt": b"-6 NOTCRAWLED http://gone.example/\n"}
SCANS = (("tasks.output", "output.ScanForOutputs"), ("tasks.files", "files.ScanForOutputFiles"))
WIDTH = 108
PORT = 8399
MUSEUM = "windmills.example"
CRAWL = (
    "warcmill", "crawl", f"http://{MUSEUM}/", "--allow-private", "127.0.0.0/8", "--no-delay", "--resolve",
    f"{MUSEUM}=127.0.0.1",
)  # fmt: skip
BROWSER = ("chromium", "chromium-browser", "google-chrome")


def main() -> int:
    """Draw all pictures; without a browser only demo.svg, and return 1."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        draw_demo(base / "demo")
        browser = next(filter(None, map(shutil.which, BROWSER)), None)
        if browser is None:
            print(f"pictures: found none of {', '.join(BROWSER)}; the others stay as they are", file=sys.stderr)
            return 1
        draw_visualiser(base / "luigid", browser)
        draw_site(base / "site")
        draw_desk(base / "desk")
        draw_rendered(base / "rendered")
        draw_engine(base / "archive", browser)
    return 0


def draw_demo(base: Path) -> None:
    """The demo's last two commands, for the bundled launch, as a terminal shows them."""
    config = new_line(base)
    for name, row in DEAD.items():  # one of them is dead, which would be a gap
        for seeds in base.rglob(name):
            seeds.write_bytes(seeds.read_bytes().replace(row, b""))
    run(config, "warcmill", "scan", DAY)
    terminal = Console(record=True, width=WIDTH, file=io.StringIO())
    for verb in ("status", "reconcile"):
        terminal.print(Text.assemble(("$ ", "dim"), (f"warcmill {verb} {DAY}", "bold")))
        shown = run(config, "warcmill", verb, DAY, FORCE_COLOR="1", COLUMNS=str(WIDTH))
        terminal.print(Text.from_ansi(shown.rstrip()), "", sep="\n")
    # Remove fonts from other hosts: the reader's own suffice.
    plain = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = terminal.export_svg(title="./scripts/demo", theme=MONOKAI, code_format=plain, unique_id="demo")
    (PICTURES / "demo.svg").write_text("\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n")


def draw_visualiser(base: Path, browser: str) -> None:
    """Draw a separate luigid with the bundled launch and a copy of it whose WARC is cut after it was listed."""
    config = new_line(base)
    config.write_text(config.read_text().replace("local_scheduler=true", f"scheduler_port={PORT}"))
    (base / "log").mkdir()
    places = ["--logdir", str(base / "log"), "--state-path", str(base / "state.pickle")]
    server = subprocess.Popen([str(BIN / "luigid"), "--address", "127.0.0.1", "--port", str(PORT), *places], cwd=base)
    try:
        time.sleep(5)
        run(config, "luigi", "--module", *SCANS[0], "--date-interval", DAY)
        warc = next((base / "output" / "warcs" / "daily").rglob("*.warc.gz"))
        os.truncate(warc, warc.stat().st_size - 1)
        run(config, "luigi", "--module", *SCANS[1], "--date-interval", DAY, may_be=30)
        photograph(browser, base / "browser", f"http://127.0.0.1:{PORT}/static/visualiser/index.html")
    finally:
        server.terminate()
        server.wait()


def draw_engine(base: Path, browser: str) -> None:
    """Draw luigid's graph of a crawl by a real engine into a real HDFS: what each task of the transfer requires."""
    subprocess.run([HERE / "scripts" / "demo", "--servers", base], check=True)
    scheduler = luigid.at(packages.default_work())
    with urlopen(f"http://127.0.0.1:{scheduler.port}/api/task_list?data=%7B%22status%22:%22DONE%22%7D") as answer:
        tasks = json.load(answer)["response"]
    (scan,) = [name for name in tasks if name.startswith("files.ScanForOutputFiles")]
    page = f"{scheduler.visualiser}#tab=graph&visType=svg&taskId={scan}"
    photograph(browser, base / "browser", page, "engine.png", height=920)


def draw_rendered(base: Path) -> None:
    """Draw a chapter of the demo's site by script, in pywb, when the site is down."""
    subprocess.run([HERE / "scripts" / "demo", "--render", base], check=True)
    config = base / "archive" / "luigi.cfg"
    with serving.serving(config, base / "serve.log") as server, browsing.opened() as browser:
        found = run(config, "warcmill", "search", "chapter 3", "--json")
        first = json.loads(found)["found"][0]
        with browsing.window(browser) as page:
            page.goto(server.replay_of(first["url"], first["time"]))
            page.frame_locator("#replay_iframe").get_by_text("Chapter 5").wait_for()
            page.screenshot(path=PICTURES / "rendered.png", clip={"x": 0, "y": 0, "width": 1280, "height": 420})


def draw_site(base: Path) -> None:
    """Draw a site that `warcmill crawl` has archived: a search, a result in replay, and its WACZ in ReplayWeb.page."""
    base.mkdir()
    with windmills(80):
        run(None, *CRAWL, folder=base)
    config, wacz = base / "archive" / "luigi.cfg", base / "museum.wacz"
    run(config, "warcmill", "wacz", MUSEUM.replace(".", "-"), "-o", str(wacz))
    site = serving.served(base / "site", wacz, f"http://{MUSEUM}/")
    with browsing.opened() as browser, browsing.window(browser) as page, site as address:
        serving.open_page(page, address)
        page.screenshot(path=PICTURES / "replay.png")
    photograph_serve(config, base)


def photograph_serve(config: Path, base: Path) -> None:
    """Save what a reader sees of an indexed line, one picture after the other."""
    serving.configure(config)
    with (
        serving.serving(config, base / "serve.log") as server,
        browsing.opened() as browser,
        browsing.window(browser) as page,
    ):
        server.wait()
        page.goto(server.entrance)
        page.locator("main tbody th a").first.click()
        page.screenshot(path=PICTURES / "launch.png")
        page.goto(f"{server.address}search?q=mill")
        page.screenshot(path=PICTURES / "search.png")
        serving.follow(page, "The Windmill Museum")
        page.screenshot(path=PICTURES / "served.png")


def draw_desk(base: Path) -> None:
    """Draw a crawl that is watched, and the form that leaves a calendar out of its job."""
    base.mkdir()
    config, job = base / "archive" / "luigi.cfg", MUSEUM.replace(".", "-")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with living_museum(80), subprocess.Popen([BIN / CRAWL[0], *CRAWL[1:]], cwd=base, **quiet) as crawl:
        while not (base / "archive" / "jobs" / job / "state" / "control.sock").exists():
            time.sleep(0.1)
        serving.configure(config)
        with (
            serving.serving(config, base / "serve.log") as server,
            browsing.opened() as browser,
            browsing.window(browser) as page,
        ):
            page.goto(server.entrance)
            page.goto(f"{server.address}jobs/{job}/watch")
            page.get_by_text("until nothing waits").wait_for()
            page.screenshot(path=PICTURES / "watch.png")
            page.goto(f"{server.address}jobs/{job}/edit")
            page.get_by_label("Leave out", exact=True).fill("calendar")
            addresses = "".join(f"http://{MUSEUM}/{path}\n" for path in ("calendar/2", "visit.html"))
            page.get_by_label("Addresses to look at").fill(addresses)
            page.get_by_role("button", name="Look at them").click()
            page.get_by_label("Leave out", exact=True).evaluate("one => one.closest('p').scrollIntoView()")
            page.screenshot(path=PICTURES / "form.png")
        crawl.send_signal(signal.SIGINT)


def photograph(browser: str, profile: Path, url: str, name: str = "visualiser.png", height: int = 860) -> None:
    """Save a screenshot of a page after its scripts have run."""
    quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic")
    new = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}")
    look = (f"--window-size=1300,{height}", "--virtual-time-budget=8000", f"--screenshot={PICTURES / name}")
    subprocess.run([browser, *new, *quiet, *look, url], check=True, stderr=subprocess.DEVNULL)


def new_line(base: Path) -> Path:
    """Set up a line with the bundled launch and, for luigid, a copy of it as another job's; return its luigi.cfg."""
    output = sample.lay_out(base / "output")
    if base.name == "luigid":
        for kind in ("jobs", "logs", "reports", "warcs", "viral"):
            shutil.copytree(output / kind / sample.JOB, output / kind / "daily")
    run(None, "warcmill", "init", str(base), "--output", str(output), "--jobs", str(output / "jobs"))
    return base / "luigi.cfg"


def run(config: Path | None, *command: str, may_be: int = 0, folder: Path | None = None, **more: str) -> str:
    """Run a command and return its output; exit unless its exit code is `may_be`."""
    environment = {**os.environ, **more, **({"LUIGI_CONFIG_PATH": str(config)} if config else {})}
    words = [str(BIN / command[0]), *command[1:]]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != may_be:
        sys.exit(f"pictures: '{' '.join(command)}' ended with exit code {done.returncode}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
