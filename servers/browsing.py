"""A real browser for tests and pictures: Debian's Chromium without a window, driven by Playwright.

A window has cookies of its own, a width, a light or a dark look, and JavaScript or not. `focused` and `press_to` are
for who has a keyboard alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from playwright.sync_api import Browser, Page, expect, sync_playwright

from servers import packages
from warcmill.errors import Unavailable

Scheme = Literal["light", "dark"]
SECONDS = 300  # a loaded machine needs minutes for what takes a blink of an eye
HEIGHT = 900
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

# A field has the words of its label. It runs also in a window whose pages may run no script.
NAME_OF_FOCUS = """() => {
  const one = document.activeElement;
  return one.getAttribute("aria-label") ?? one.labels?.[0]?.textContent ?? one.textContent;
}"""


@contextmanager
def opened() -> Iterator[Browser]:
    """A browser; it ends with the block."""
    expect.set_options(timeout=SECONDS * 1000)
    with sync_playwright() as driver:
        chromium = packages.program("chromium", "chromium")
        browser = driver.chromium.launch(executable_path=chromium, args=[*QUIET, *AS_ROOT], timeout=SECONDS * 1000)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def window(
    browser: Browser, width: int = 1280, scheme: Scheme = "light", *, scripts: bool = True, token: str = ""
) -> Iterator[Page]:
    """A new window, which sends `token` with each request if there is one; it is closed with the block."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHT},
        color_scheme=scheme,
        java_script_enabled=scripts,
        extra_http_headers=headers,
    )
    context.set_default_timeout(SECONDS * 1000)
    try:
        yield context.new_page()
    finally:
        context.close()


def focused(page: Page) -> str:
    """The name of what has the keyboard, as a screen reader reads it; '' where it has none."""
    return str(page.evaluate(NAME_OF_FOCUS)).strip()


def press_to(page: Page, name: str, most: int = 300) -> None:
    """Press Tab until what has this name has the keyboard, as who has no mouse does; `Unavailable` if nothing has."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if focused(page) == name:
            return
    raise Unavailable(page.url, f"{most} presses of Tab do not reach {name!r}")
