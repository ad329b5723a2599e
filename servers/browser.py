"""A real browser for tests and pictures: Debian's Chromium without a window, driven by Selenium."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from servers import packages

SIZE = (1280, 900)
# The browser's maker is never reached from a closed network; each attempt would only be one more refused connection.
QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
)
# As root, which a build machine is, Chromium has no sandbox; containers have a small /dev/shm.
AS_ROOT = ("--no-sandbox", "--disable-dev-shm-usage")


@contextmanager
def opened(folder: Path) -> Iterator[Chrome]:
    """A browser whose profile and driver's log are in `folder`; it ends with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ChromeOptions()
    options.binary_location = str(packages.program("chromium", "chromium"))
    look = ("--headless=new", "--disable-gpu", "--hide-scrollbars", f"--window-size={SIZE[0]},{SIZE[1]}")
    for one in (*look, *QUIET, *AS_ROOT, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(one)
    driver = str(packages.program("chromedriver", "chromium-driver"))
    browser = Chrome(options, Service(driver, log_output=str(folder / "chromedriver.log")))
    try:
        yield browser
    finally:
        browser.quit()
