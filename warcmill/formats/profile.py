"""A Heritrix job's configuration, `crawler-beans.cxml`: does it leave behind what the line and an archive need?

Much of that is off in the engine's own profile. Each fault names the setting,
what it must be, and why. Pure: bytes in, words out; DTDs and entities are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from warcmill.errors import BadInput

LARGEST = 256 << 20  # bytes; a job of a hundred thousand targets is a tenth of it
LAUNCH = "${launchId}"
SIX_HOURS = 360  # minutes
_BY_PREFIX = ("SurtPrefixedDecideRule", "NotSurtPrefixedDecideRule", "OnDomainsDecideRule", "OnHostsDecideRule")
_SPACE = "{http://www.springframework.org/schema/beans}"


class Beans:
    """The beans of a configuration and their settings, as the engine would see them once it is built."""

    def __init__(self, data: bytes, path: str) -> None:
        self._root = root = _parsed(data, path)
        self._all = list(root.iter(f"{_SPACE}bean"))
        self.by_id = {bean.get("id", ""): bean for bean in self._all}
        self._overrides = dict(_overrides(root))

    def value(self, bean: str, name: str) -> str:
        """A setting: an override wins over the bean's own; '' when neither says anything."""
        return self._overrides.get(f"{bean}.{name}", "") or _own_value(self.by_id.get(bean), name)

    def values(self, bean: str, name: str) -> list[str]:
        """A setting that is a list of texts."""
        return _texts(_property(self.by_id.get(bean), name))

    def laid(self) -> set[str]:
        """The sheets that some association lays over URLs; associations often have no id."""
        return {sheet for bean in self._all for sheet in _texts(_property(bean, "targetSheetNames"))}

    def chain(self, bean: str) -> list[str]:
        """The processors of a chain, by id, in order."""
        found = _property(self.by_id.get(bean), "processors")
        return [one.get("bean", "") for one in found.iter(f"{_SPACE}ref")] if found is not None else []

    def of_class(self, name: str) -> list[str]:
        """The ids of the beans whose class has this simple name."""
        return [key for key, bean in self.by_id.items() if bean.get("class", "").rpartition(".")[2] == name]

    def inside(self, *classes: str) -> Iterator[tuple[Element, str]]:
        """The beans of these classes that lie inside another bean, and the outermost one's id, if it has one."""
        for outer in self._root.findall(f"{_SPACE}bean"):
            found = (one for one in outer.iter(f"{_SPACE}bean") if one is not outer)
            yield from (
                (one, outer.get("id", "")) for one in found if one.get("class", "").rpartition(".")[2] in classes
            )

    def text(self, bean: str) -> str:
        """All text in a bean."""
        found = self.by_id.get(bean)
        return "".join(found.itertext()) if found is not None else ""


def faults(data: bytes, path: str) -> Iterator[str]:
    """What a configuration lacks, a line each. BadInput: it is no configuration."""
    beans = Beans(data, path)
    yield from _logging(beans)
    yield from _checkpoints(beans)
    yield from _resuming(beans)
    yield from _deduplication(beans)
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
    if not any('"ip:"' in beans.text(one) or one in beans.of_class("IpAnnotator") for one in fetched):
        yield "fetchProcessors must have, after fetchHttp, one that annotates each URL with its ip: address"


def _checkpoints(beans: Beans) -> Iterator[str]:
    if beans.value("checkpointService", "forgetAllButLatest") != "false":
        yield "checkpointService.forgetAllButLatest must be false: else each checkpoint deletes the one before"
    minutes = beans.value("checkpointService", "checkpointIntervalMinutes")
    if not (minutes.isascii() and minutes.isdigit() and 0 < int(minutes[:9]) <= SIX_HOURS):
        yield f"checkpointService.checkpointIntervalMinutes must be {SIX_HOURS} or less: so much is lost with an engine"


def _resuming(beans: Beans) -> Iterator[str]:
    """A checkpoint holds beans of the top level alone, and a launch that resumes from it reads no seeds again."""
    for rule, outer in beans.inside(*_BY_PREFIX):
        if _own_value(rule, "seedsAsSurtPrefixes") != "false":
            name = rule.get("class", "").rpartition(".")[2]
            where = f"bean {outer}" if outer else "a bean without an id"
            yield (
                f"{name} inside {where} must be a bean of the top level, with an id and a <ref> to it (or have"
                " seedsAsSurtPrefixes false): else a resumed launch knows no prefix of the seeds, and takes no links"
            )


def _deduplication(beans: Beans) -> Iterator[str]:
    fetch, write = beans.chain("fetchProcessors"), beans.chain("dispositionProcessors")
    if "persistLoad" not in _before(fetch, "fetchHttp") or _after(fetch, "fetchHttp")[:1] != ["fetchHistory"]:
        yield "fetchProcessors must have persistLoad before fetchHttp, fetchHistory right after: the history of URLs"
    if "contentDigestHistoryLoader" not in _before(write, "warcWriter"):
        yield "dispositionProcessors must have contentDigestHistoryLoader before warcWriter: else no history of digests"
    if not beans.of_class("BdbContentDigestHistory"):
        yield "there must be a BdbContentDigestHistory: the history of digests"
    if not {"contentDigestHistoryStorer", "persistStore"} <= set(_after(write, "warcWriter")):
        yield "dispositionProcessors must have contentDigestHistoryStorer and persistStore after warcWriter"
    if LAUNCH in beans.value("bdb", "dir"):
        yield f"bdb.dir must be without {LAUNCH}: else the history and the checkpoints are lost with each launch"


def _viral(beans: Beans) -> Iterator[str]:
    if "warcWriterViral" not in beans.chain("dispositionProcessors"):
        yield "dispositionProcessors must have warcWriterViral: the writer for what is infected"
    if beans.value("warcWriterViral", "enabled") != "false":
        yield "warcWriterViral.enabled must be false: a sheet switches it on"
    sheets = [sheet for sheet in beans.of_class("Sheet") if _switches(beans.by_id[sheet])]
    if beans.laid().isdisjoint(sheets):
        yield "there must be a sheet that switches warcWriter off and warcWriterViral on, and a rule that lays it"
    for writer in ("warcWriter", "warcWriterViral"):
        if _property(beans.by_id.get(writer), "shouldProcessRule") is not None:
            yield f"{writer}.shouldProcessRule must not be: with a URL history it fails for every duplicate"


def _switches(sheet: Element) -> bool:
    entries = {entry.get("key"): entry.get("value") for entry in sheet.iter(f"{_SPACE}entry")}
    return (entries.get("warcWriter.enabled"), entries.get("warcWriterViral.enabled")) == ("false", "true")


def _folders(beans: Beans) -> Iterator[str]:
    """Each launch has folders of its own. The engine's own way has all below the job's `${launchId}`."""
    for bean, name in (("loggerModule", "path"), ("statisticsTracker", "reportsDir")):
        found = beans.value(bean, name)
        if found and not _of_launch(found):
            yield f"{bean}.{name} must have {LAUNCH} in it: else launches share a folder"
    for writer in ("warcWriter", "warcWriterViral"):
        if not all(map(_of_launch, beans.values(writer, "storePaths"))):
            yield f"{writer}.storePaths must have {LAUNCH} in them: else launches share a folder"


def _of_launch(path: str) -> bool:
    """`@name@` is a template's: such folders are filled in, each with its launch."""
    return LAUNCH in path or (path.startswith("@") and path.endswith("@"))


def _before(chain: list[str], one: str) -> list[str]:
    return chain[: chain.index(one)] if one in chain else []


def _after(chain: list[str], one: str) -> list[str]:
    return chain[chain.index(one) + 1 :] if one in chain else []


def _parsed(data: bytes, path: str) -> Element:
    if len(data) > LARGEST:
        raise BadInput(path, f"has {len(data):,} bytes, {LARGEST:,} are the limit")
    try:
        root: Element = defusedxml.ElementTree.fromstring(data, forbid_dtd=True)
    except ParseError as error:
        raise BadInput(path, f"is no XML: {error}") from error
    except DefusedXmlException as error:
        raise BadInput(path, f"has a DTD or an entity, which is refused: {error}") from error
    if root.tag != f"{_SPACE}beans":
        raise BadInput(path, f"is no configuration of Heritrix: its root is {root.tag[:80]}, not <beans>")
    return root


def _overrides(root: Element) -> Iterator[tuple[str, str]]:
    """`bean.name=value` of every PropertyOverrideConfigurer, as text or as <prop>."""
    for bean in root.iter(f"{_SPACE}bean"):
        if not bean.get("class", "").endswith("PropertyOverrideConfigurer"):
            continue
        for prop in bean.iter(f"{_SPACE}prop"):
            yield prop.get("key", ""), (prop.text or "").strip()
        for value in bean.iter(f"{_SPACE}value"):
            lines = (line.strip() for line in (value.text or "").splitlines())
            pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
            yield from ((key.strip(), text.strip()) for key, _, text in pairs)


def _texts(found: Element | None) -> list[str]:
    return [(one.text or "").strip() for one in found.iter(f"{_SPACE}value")] if found is not None else []


def _own_value(bean: Element | None, name: str) -> str:
    found = _property(bean, name)
    if found is None:
        return ""
    return found.get("value") or (found.findtext(f"{_SPACE}value") or "").strip()


def _property(bean: Element | None, name: str) -> Element | None:
    if bean is None:
        return None
    return next((one for one in bean.findall(f"{_SPACE}property") if one.get("name") == name), None)
