"""warcmill doctor: check the cluster that reads WARCs for the index, where [scale] names one."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.config import scale, switches, text
from tasks.config.settings import Settings
from warcmill.audit.health import Check, Level
from warcmill.errors import BadConfig, WarcmillError
from warcmill.scale.opening import RunOn

NAME = "scale"


def check_scale(config: Settings) -> Iterator[Check]:
    """Check [scale]; nothing where processes of this machine do it, or where nothing is indexed."""
    try:
        if not any(switches.read(name) for name in ("index", text.SWITCH)):
            return
        run_on, url = scale.run_on()
    except BadConfig as error:
        yield Check(NAME, Level.FAIL, str(error), "correct luigi.cfg: without it no scan starts")
        return
    if run_on is RunOn.PROCESSES or not config.index:
        return
    try:
        scale.probe(config)
    except WarcmillError as error:
        yield Check(NAME, Level.FAIL, str(error), "put it right; until then nothing is read for the index")
        return
    text_ = (
        f"{scale.check_installed(run_on)}: the workers of {url} have this Warcmill, and reach the store and the index"
    )
    yield Check(NAME, Level.OK, text_)
