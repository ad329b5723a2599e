"""The faults of a Heritrix job's `crawler-beans.cxml`: settings without which an archive lacks what it needs. Pure.

Much of that is off in the engine's own profile. Each fault names the setting, the value it must have, and why. `Beans`
has the settings that the engine sees; DTDs and entities are refused.

`history_faults` looks at pages of earlier launches: are they recognized, and those that changed stored? There are two
histories. The history of URLs remembers the last content of each URL; the history of digests remembers each
content under any URL. Either is good alone. Both together lose changed pages, unless a script runs between them:
persistLoad restores the digest history of the URL's old content, and contentDigestHistoryLoader adds to it without
clearing it; so the new content is written as a revisit of the old one, without a body (seen with Heritrix 3.13).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from warcmill.errors import BadInput

__all__ = ["LARGEST", "faults"]

LAUNCH = "${launchId}"
SIX_HOURS = 360  # minutes
_BY_PREFIX = ("SurtPrefixedDecideRule", "NotSurtPrefixedDecideRule", "OnDomainsDecideRule", "OnHostsDecideRule")


def faults(data: bytes, path: str) -> Iterator[str]:
    """Yield what is wrong in a configuration, one line each. BadInput if it is not a configuration of Heritrix."""
    beans = Beans(data, path)
    yield from _logging(beans)
    yield from _checkpoints(beans)
    yield from _resuming(beans)
    yield from history_faults(beans)
    yield from _history(beans)
    yield from _viral(beans)
    yield from _folders(beans)
    if not beans.value("metadata", "operatorContactUrl").startswith(("http://", "https://", "@")):
        yield "metadata.operatorContactUrl must be a URL where webmasters read who crawls: without it nothing launches"


def _logging(beans: Beans) -> Iterator[str]:
    if beans.value("loggerModule", "logExtraInfo") != "true":
        yield "loggerModule.logExtraInfo must be true: else the crawl log does not name the WARC of a URL"
    if beans.value("seeds", "sourceTagSeeds") != "true":
        yield "seeds.sourceTagSeeds must be true: else the crawl log does not name the seed of a URL"
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


LARGEST = 256 << 20  # bytes; a job of a hundred thousand targets is a tenth of it
SPACE = "{http://www.springframework.org/schema/beans}"


class Beans:
    """The beans of a configuration and their settings, as the engine has them once it is built.

    BadInput if `data` is not a configuration of Heritrix; `path` names it in the message.
    """

    def __init__(self, data: bytes, path: str) -> None:
        self._root = root = _parse(data, path)
        self._all = list(root.iter(f"{SPACE}bean"))
        self.by_id = {_id(number, bean): bean for number, bean in enumerate(self._all)}
        self._ids = {bean: key for key, bean in self.by_id.items()}
        self._overrides = dict(_overrides(root))

    def value(self, bean: str, name: str) -> str:
        """A setting: an override wins over the bean's own; '' if neither is set."""
        return self._overrides.get(f"{bean}.{name}", "") or own_value(self.by_id.get(bean), name)

    def values(self, bean: str, name: str) -> list[str]:
        """The values of a setting that is a list."""
        return _texts(property_of(self.by_id.get(bean), name))

    def associated_sheets(self) -> set[str]:
        """The sheets that an association applies to some URLs; associations often have no id."""
        return {sheet for bean in self._all for sheet in _texts(property_of(bean, "targetSheetNames"))}

    def chain(self, bean: str) -> list[str]:
        """The ids of a chain's processors, in order, whether referred to or defined inside the chain."""
        processors = property_of(self.by_id.get(bean), "processors")
        members = processors.findall(f"{SPACE}list/*") if processors is not None else []
        return [self._ids[member] if member in self._ids else member.get("bean", "") for member in members]

    def has_class(self, bean: str, name: str) -> bool:
        """True if a bean's class has this simple name."""
        element = self.by_id.get(bean)
        return element is not None and _class(element) == name

    def ids_of_class(self, name: str) -> list[str]:
        """The ids of the beans whose class has this simple name."""
        return [key for key in self.by_id if self.has_class(key, name)]

    def nested(self, *classes: str) -> Iterator[tuple[Element, str]]:
        """The beans of these classes inside another bean, each with the id of the outermost bean around it, or ''."""
        for outer in self._root.findall(f"{SPACE}bean"):
            inner = (bean for bean in outer.iter(f"{SPACE}bean") if bean is not outer)
            yield from ((bean, outer.get("id", "")) for bean in inner if _class(bean) in classes)

    def text(self, bean: str) -> str:
        """All text in a bean."""
        element = self.by_id.get(bean)
        return "".join(element.itertext()) if element is not None else ""


def _id(number: int, bean: Element) -> str:
    """A bean's id; a number after `#`, which no Spring id begins with, if it has none."""
    return bean.get("id") or f"#{number}"


def _class(bean: Element) -> str:
    """The simple name of a bean's class."""
    return bean.get("class", "").rpartition(".")[2]


def _parse(data: bytes, path: str) -> Element:
    if len(data) > LARGEST:
        raise BadInput(path, f"has {len(data):,} bytes, {LARGEST:,} are the limit")
    try:
        root: Element = defusedxml.ElementTree.fromstring(data, forbid_dtd=True)
    except ParseError as error:
        raise BadInput(path, f"is not XML: {error}") from error
    except DefusedXmlException as error:
        raise BadInput(path, f"has a DTD or an entity, which is refused: {error}") from error
    if root.tag != f"{SPACE}beans":
        raise BadInput(path, f"is not a configuration of Heritrix: its root is {root.tag[:80]}, not <beans>")
    return root


def _overrides(root: Element) -> Iterator[tuple[str, str]]:
    """The `bean.name` and value of every PropertyOverrideConfigurer's line or <prop>."""
    for bean in root.iter(f"{SPACE}bean"):
        if not bean.get("class", "").endswith("PropertyOverrideConfigurer"):
            continue
        for prop in bean.iter(f"{SPACE}prop"):
            yield prop.get("key", ""), (prop.text or "").strip()
        for value in bean.iter(f"{SPACE}value"):
            lines = (line.strip() for line in (value.text or "").splitlines())
            pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
            yield from ((key.strip(), text.strip()) for key, _, text in pairs)


def _texts(prop: Element | None) -> list[str]:
    return [(value.text or "").strip() for value in prop.iter(f"{SPACE}value")] if prop is not None else []


def own_value(bean: Element | None, name: str) -> str:
    """A bean's own setting; '' if it is not set, or there is no bean."""
    prop = property_of(bean, name)
    if prop is None:
        return ""
    return prop.get("value") or (prop.findtext(f"{SPACE}value") or "").strip()


def property_of(bean: Element | None, name: str) -> Element | None:
    """A bean's <property> of this name, or None."""
    if bean is None:
        return None
    return next((prop for prop in bean.findall(f"{SPACE}property") if prop.get("name") == name), None)


LOSS = (
    "persistLoad and contentDigestHistoryLoader together lose each page that has changed: have, right before"
    " contentDigestHistoryLoader, a ScriptedProcessor with"
    ' void process(curi) { curi.getData().remove("content-digest-history"); }'
    " and give both histories another historyDbName, so that what was lost is stored by the next launch"
)
_REMOVES = re.compile(r"""\bremove\s*\(\s*["']content-digest-history["']\s*\)""")
_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", re.DOTALL | re.MULTILINE)
_OF_URLS = ("PersistLoadProcessor", "PersistStoreProcessor")
_OF_DIGESTS = ("ContentDigestHistoryLoader", "ContentDigestHistoryStorer")


def history_faults(beans: Beans) -> Iterator[str]:
    """Yield what is wrong with the histories, one line each."""
    chain = _Chain(beans)
    of_urls, of_digests = chain.has(*_OF_URLS), chain.has(*_OF_DIGESTS)
    if of_urls:
        yield from _of_urls(chain)
    if of_digests:
        yield from _of_digests(chain, beans)
    if not (of_urls or of_digests):
        yield (
            "there must be a history of URLs (persistLoad, fetchHistory, persistStore) or one of digests"
            " (contentDigestHistoryLoader, contentDigestHistoryStorer): else each launch stores everything again"
        )
    if chain.loses_changes():
        yield LOSS


def loss(data: bytes, path: str) -> str:
    """Return how a configuration loses changed pages; '' if it does not. BadInput if it is not a configuration."""
    return LOSS if _Chain(Beans(data, path)).loses_changes() else ""


class _Chain:
    """The enabled processors that each URL goes through, of fetching and of writing."""

    def __init__(self, beans: Beans) -> None:
        processors = [*beans.chain("fetchProcessors"), *beans.chain("dispositionProcessors")]
        self._beans = beans
        self._ids = [name for name in processors if beans.value(name, "enabled") != "false"]

    def has(self, *names: str) -> bool:
        return any(self.first(name) is not None for name in names)

    def first(self, name: str) -> int | None:
        """The place of the first processor with this id or class; None if there is none."""
        places = (place for place, bean in enumerate(self._ids) if bean == name or self._beans.has_class(bean, name))
        return next(places, None)

    def in_order(self, *names: str) -> bool:
        """True if these are all there, in this order."""
        places = [place for place in map(self.first, names) if place is not None]
        return len(places) == len(names) and places == sorted(places)

    def follow(self, name: str, other: str) -> bool:
        """True if the one comes right after the other."""
        place, before = self.first(name), self.first(other)
        return place is not None and before is not None and place == before + 1

    def loses_changes(self) -> bool:
        """True if both histories are loaded, and no script between them clears what the first has restored."""
        loaded, adds = self.first("PersistLoadProcessor"), self.first("ContentDigestHistoryLoader")
        if loaded is None or adds is None:
            return False
        return not any(map(self._clears, self._ids[loaded + 1 : adds]))

    def _clears(self, bean: str) -> bool:
        script = _COMMENTS.sub("", self._beans.text(bean))
        return self._beans.has_class(bean, "ScriptedProcessor") and bool(_REMOVES.search(script))


def _of_urls(chain: _Chain) -> Iterator[str]:
    loaded = chain.in_order("PersistLoadProcessor", "fetchHttp")
    if not loaded or not chain.follow("FetchHistoryProcessor", "fetchHttp"):
        yield "fetchProcessors must have persistLoad before fetchHttp, fetchHistory right after: the history of URLs"
    if not chain.in_order("warcWriter", "PersistStoreProcessor"):
        yield "dispositionProcessors must have persistStore after warcWriter: else the history of URLs is never kept"


def _of_digests(chain: _Chain, beans: Beans) -> Iterator[str]:
    if not chain.in_order("ContentDigestHistoryLoader", "warcWriter"):
        yield "dispositionProcessors must have contentDigestHistoryLoader before warcWriter: else no history of digests"
    if not chain.in_order("warcWriter", "ContentDigestHistoryStorer"):
        yield "dispositionProcessors must have contentDigestHistoryStorer after warcWriter: else no digest is kept"
    if not beans.ids_of_class("BdbContentDigestHistory"):
        yield "there must be a BdbContentDigestHistory: the history of digests"
