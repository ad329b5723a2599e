"""Judges of web pages: axe-core, for who cannot see or point, and Nu, for HTML; and the width that a page takes.

axe-core runs in the browser (`servers/browsing.py`), at each look of a page: two widths, light and dark. Nu is a Java
program that reads saved pages, all of them in one run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

from servers import packages, pins, process
from servers.browsing import HEIGHT, Scheme

WIDTHS: Final = (320, 1280)
SECONDS: Final = 600
# Dark, nothing but the colours differs; so all other rules are asked once a width.
_RULES: Final[dict[Scheme, str]] = {"light": "", "dark": ", runOnly: ['color-contrast']"}
# A frame of replay has scripts, and is of another host than ours: this warns of frames of one's own.
_OF_FRAMES: Final = "Setting both “allow-scripts” and “allow-same-origin” is not recommended"
TOO_WIDE: Final = "() => Math.max(0, document.documentElement.scrollWidth - innerWidth)"


def faults(page: Page) -> list[str]:
    """The faults of an open page, at each look of it."""
    page.evaluate(f"{(packages.package(pins.AXE, pins.AXE_SHA256) / 'axe.min.js').read_text('utf-8')}; undefined")
    found = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        for scheme, rules in _RULES.items():
            page.emulate_media(color_scheme=scheme)
            found += [f"{page.url} {width} {scheme}: {fault}" for fault in _faults(page, rules)]
    return found


def _faults(page: Page, rules: str) -> list[str]:
    wide = page.evaluate(TOO_WIDE)
    too_wide = [f"{wide} px wider than the window"] if wide else []
    axe = f"axe.run(document, {{resultTypes: ['violations']{rules}}}).then(found => found.violations)"
    return [*too_wide, *(f"{one['id']}: {one['help']}: {_places(one)}" for one in page.evaluate(axe))]


def _places(violation: dict[str, Any]) -> str:
    """The first elements that violate a rule."""
    nodes = violation["nodes"]
    more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
    return ", ".join(f"{node['html'][:200]} ({node['failureSummary']})" for node in nodes[:3]) + more


def nu(*files: Path) -> list[str]:
    """The errors of saved pages and style sheets, whose names end in .html and .css."""
    jar = packages.package(pins.NU, pins.NU_SHA256) / "build/dist/vnu.jar"
    options = ("--also-check-css", "--errors-only", "--format", "json", "--stdout", "--exit-zero-always")
    command: list[str | Path] = [packages.java(), "-Xss8m", "-jar", jar, *options, *files]
    answer = process.run("Nu", files[0].parent, command, SECONDS)
    found = [one for one in json.loads(answer)["messages"] if _OF_FRAMES not in one["message"]]
    return [f"{Path(one['url']).name}:{one.get('lastLine', 0)}: {one['message']}" for one in found]
