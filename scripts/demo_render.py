"""Crawl a site whose links exist only after a script has run, with a browser; archive it, and open a page in replay.

Run by `scripts/demo --render`. It needs Chromium, and what drives it comes with
the development packages. The site is down before anything is replayed.
"""

from __future__ import annotations

import os
from pathlib import Path

import demo_serve
from demo import port_before, run
from loopback_site import by_script

JOB, HOST = "by-script", "127.0.0.1"
SETTINGS = "[render]\nscreenshot = true\n"
AS_ROOT = "sandbox = false\n"  # Chromium has none as root, which a build machine is


def main(folder: Path) -> int:
    """Crawl, look, and open a page; return 0 if the archive reconciles."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.pop("LUIGI_CONFIG_PATH", None)  # of another line; Luigi warns if its file does not exist yet
    os.chdir(folder)
    settings = folder / "render.toml"
    settings.write_text(SETTINGS + (AS_ROOT if not os.geteuid() else ""))
    with by_script(port_before(folder / "archive" / "jobs", JOB)) as port:
        words = ["--job", JOB, "--render", "pages", "--allow-private", f"{HOST}/32", "--no-delay"]
        run("warcmill", "crawl", f"http://{HOST}:{port}/", *words, "--config", str(settings))
    code = run("warcmill", "reconcile", may_be=(0, 1))
    config = folder / "archive" / "luigi.cfg"
    os.environ["LUIGI_CONFIG_PATH"] = str(config)
    run("warcmill", "search", "chapter 3")
    demo_serve.open_page(config, "chapter 3")
    return code
