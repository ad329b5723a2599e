"""Check a Heritrix job's configuration, `crawler-beans.cxml`: will its crawls leave what the line and an archive need?

Much of that is off in the engine's own profile. Each fault names the setting,
the value it must have, and why. Pure; DTDs and entities are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from warcmill.formats import recrawl
from warcmill.formats.beans import LARGEST, SPACE, Beans, own_value, property_of

__all__ = ["LARGEST", "faults"]

LAUNCH = "${launchId}"
SIX_HOURS = 360  # minutes
_BY_PREFIX = ("SurtPrefixedDecideRule", "NotSurtPrefixedDecideRule", "OnDomainsDecideRule", "OnHostsDecideRule")


def faults(data: bytes, path: str) -> Iterator[str]:
    """Yield what is wrong in a configuration, one line each. BadInput if it is no configuration of Heritrix."""
    beans = Beans(data, path)
    yield from _logging(beans)
    yield from _checkpoints(beans)
    yield from _resuming(beans)
    yield from recrawl.faults(beans)
    yield from _history(beans)
    yield from _viral(beans)
    yield from _folders(beans)
    if not beans.value("metadata", "operatorContactUrl").startswith(("http://", "https://", "@")):
        yield "metadata.operatorContactUrl must be a URL that tells webmasters who crawls: without it nothing launches"


def _logging(beans: Beans) -> Iterator[str]:
    if beans.value("loggerModule", "logExtraInfo") != "true":
        yield "loggerModule.logExtraInfo must be true: else the crawl log does not say which WARC a URL is in"
    if beans.value("seeds", "sourceTagSeeds") != "true":
        yield "seeds.sourceTagSeeds must be true: else the crawl log does not say from which seed a URL came"
    fetched = _after(beans.chain("fetchProcessors"), "fetchHttp")
    if not any('"ip:"' in beans.text(name) or name in beans.ids_of_class("IpAnnotator") for name in fetched):
        yield "fetchProcessors must have, after fetchHttp, one that annotates each URL with its ip: address"


def _checkpoints(beans: Beans) -> Iterator[str]:
    if beans.value("checkpointService", "forgetAllButLatest") != "false":
        yield "checkpointService.forgetAllButLatest must be false: else each checkpoint deletes the one before"
    minutes = beans.value("checkpointService", "checkpointIntervalMinutes")
    if not (minutes.isascii() and minutes.isdigit() and 0 < int(minutes[:9]) <= SIX_HOURS):
        yield f"checkpointService.checkpointIntervalMinutes must be {SIX_HOURS} or less: so much is lost with an engine"


def _resuming(beans: Beans) -> Iterator[str]:
    """A checkpoint saves only beans of the top level; a launch that resumes from it does not read the seeds again."""
    for rule, outer in beans.nested(*_BY_PREFIX):
        if own_value(rule, "seedsAsSurtPrefixes") != "false":
            name = rule.get("class", "").rpartition(".")[2]
            where = f"bean {outer}" if outer else "a bean without an id"
            yield (
                f"{name} inside {where} must be a bean of the top level, with an id and a <ref> to it (or have"
                " seedsAsSurtPrefixes false): else a resumed launch knows no prefix of the seeds, and takes no links"
            )


def _history(beans: Beans) -> Iterator[str]:
    if LAUNCH in beans.value("bdb", "dir"):
        yield f"bdb.dir must be without {LAUNCH}: else the history and the checkpoints are lost with each launch"


def _viral(beans: Beans) -> Iterator[str]:
    if "warcWriterViral" not in beans.chain("dispositionProcessors"):
        yield "dispositionProcessors must have warcWriterViral: the writer for what is infected"
    if beans.value("warcWriterViral", "enabled") != "false":
        yield "warcWriterViral.enabled must be false: a sheet switches it on"
    sheets = [sheet for sheet in beans.ids_of_class("Sheet") if _switches_to_viral(beans.by_id[sheet])]
    if beans.associated_sheets().isdisjoint(sheets):
        yield "there must be a sheet that switches warcWriter off and warcWriterViral on, and a rule that applies it"
    for writer in ("warcWriter", "warcWriterViral"):
        if property_of(beans.by_id.get(writer), "shouldProcessRule") is not None:
            yield f"{writer}.shouldProcessRule must not be: with a URL history it fails for every duplicate"


def _switches_to_viral(sheet: Element) -> bool:
    entries = {entry.get("key"): entry.get("value") for entry in sheet.iter(f"{SPACE}entry")}
    return (entries.get("warcWriter.enabled"), entries.get("warcWriterViral.enabled")) == ("false", "true")


def _folders(beans: Beans) -> Iterator[str]:
    """Each launch needs folders of its own. By default the engine puts all below the job's `${launchId}`."""
    for bean, name in (("loggerModule", "path"), ("statisticsTracker", "reportsDir")):
        path = beans.value(bean, name)
        if path and not _has_launch(path):
            yield f"{bean}.{name} must have {LAUNCH} in it: else launches share a folder"
    for writer in ("warcWriter", "warcWriterViral"):
        if not all(map(_has_launch, beans.values(writer, "storePaths"))):
            yield f"{writer}.storePaths must have {LAUNCH} in them: else launches share a folder"


def _has_launch(path: str) -> bool:
    """True if a path is the launch's own. `@name@` is a template's: it is filled in with such a path."""
    return LAUNCH in path or (path.startswith("@") and path.endswith("@"))


def _after(chain: list[str], bean: str) -> list[str]:
    return chain[chain.index(bean) + 1 :] if bean in chain else []
