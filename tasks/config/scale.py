"""[scale]: the readers of stored WARCs for the index: processes of this machine, or a cluster."""

from __future__ import annotations

from tasks.config import sections
from tasks.config.sections import Section, TextKey
from warcmill.errors import BadConfig
from warcmill.scale.opening import RunOn

_PACKAGES = {RunOn.DASK: "distributed", RunOn.SPARK: "pyspark"}
_WANTED = {RunOn.DASK: "tcp://HOST:8786", RunOn.SPARK: "spark://HOST:7077"}


class scale(Section):  # noqa: N801 - the section has the name of the class
    """[scale]: where the WARCs are read that an index needs. All keys are optional."""

    run_on = TextKey(default="processes", description="processes (of this machine, all cores), dask or spark")
    url = TextKey(default="", description="the Dask scheduler, tcp://HOST:8786, or Spark master")


def run_on() -> tuple[RunOn, str]:
    """Who does it, and the URL of the cluster; or BadConfig, also if the extra is missing."""
    keys = sections.read(scale)
    try:
        chosen = RunOn(str(keys.run_on).strip())
    except ValueError as error:
        raise BadConfig("[scale] run_on", f"is {keys.run_on}; {', '.join(RunOn)}") from error
    url = str(keys.url).strip()
    if chosen is RunOn.PROCESSES:
        if url:
            raise BadConfig("[scale] url", "is set, and run_on is processes, which has none; remove one of them")
        return chosen, url
    if "://" not in url:
        raise BadConfig("[scale] url", f"is {url or 'not set'}; for {chosen}: {_WANTED[chosen]}")
    check_installed(chosen)
    return chosen, url


def check_installed(chosen: RunOn) -> str:
    """The package of the extra, with its version; BadConfig if it is missing."""
    from importlib.metadata import PackageNotFoundError, version

    package = _PACKAGES[chosen]
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError as error:
        why = f"is {chosen}, and {package} cannot be found: pip install 'warcmill[{chosen}]', or remove run_on"
        raise BadConfig("[scale] run_on", why) from error
