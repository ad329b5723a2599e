"""Someone at a browser who has no mouse: presses, types and waits; without scripts by loading a page again."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import nullcontext

from playwright.sync_api import Page, expect

from servers import browsing

LAUNCH = "20261124170213"  # stands in the pages of docs for the id of a launch, whatever it is
PATIENCE = 60_000  # milliseconds
_PRESSED = "a, button, summary"


class Keyboard:
    """The keyboard of a window."""

    def __init__(self, page: Page, *, scripts: bool) -> None:
        self.page, self.scripts = page, scripts

    def press(self, *names: str) -> None:
        """Press each of these links and buttons in turn, each on the page that the one before has opened."""
        for name in names:
            browsing.press_to(self.page, name)
            with self.page.expect_navigation():
                self.page.keyboard.press("Enter")

    def await_and_press(self, name: str, *, leads_on: bool = True) -> None:
        """Press a link or button that may come only later; one that `leads_on` to a page, or to a file."""
        text = re.compile(rf"^\s*{re.escape(name).replace(LAUNCH, '[0-9]{14}')}\s*$")
        found = self.page.locator(_PRESSED).filter(has_text=text).first
        self._until(lambda: found.count() > 0, lambda: expect(found).to_be_visible(timeout=PATIENCE))
        browsing.press_to(self.page, found.inner_text().strip() if LAUNCH in name else name)
        with self.page.expect_navigation() if leads_on else nullcontext():
            self.page.keyboard.press("Enter")

    def type(self, text: str, label: str) -> None:
        """Type into a field, in place of what it has; the end of a line is one."""
        browsing.press_to(self.page, label)
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.type(text)

    def wait_for(self, *texts: str) -> None:
        """Wait until the page shows one of some texts: by itself, or, without scripts, when it is loaded again."""
        main, one = self.page.locator("main"), re.compile("|".join(map(re.escape, texts)))
        self._until(
            lambda: bool(one.search(main.inner_text())),
            lambda: expect(main).to_contain_text(one, timeout=PATIENCE),
        )

    def act(self, *names: str) -> None:
        """Take an action by its button, and wait for its good end."""
        self.press(*names)
        self.wait_for("exit code")
        expect(self.page.locator("#action")).to_contain_text("exit code 0: done")

    def _until(self, is_so: Callable[[], bool], followed: Callable[[], None]) -> None:
        """Wait for the page to follow, where it can; else load it again until it is so."""
        if self.scripts:
            followed()
        until = time.monotonic() + PATIENCE / 1000
        while not is_so():
            assert time.monotonic() < until, f"{self.page.url}: {self.page.locator('main').inner_text()}"
            time.sleep(0.3)
            self.page.reload()
