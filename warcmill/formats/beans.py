"""The beans of a Heritrix job, `crawler-beans.cxml`: their settings as the engine sees them. DTDs are refused."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from warcmill.errors import BadInput

LARGEST = 256 << 20  # bytes; a job of a hundred thousand targets is a tenth of it
SPACE = "{http://www.springframework.org/schema/beans}"


class Beans:
    """The beans of a configuration and their settings, as the engine would see them once it is built."""

    def __init__(self, data: bytes, path: str) -> None:
        self._root = root = _parsed(data, path)
        self._all = list(root.iter(f"{SPACE}bean"))
        self.by_id = {_id(number, bean): bean for number, bean in enumerate(self._all)}
        self._ids = {bean: key for key, bean in self.by_id.items()}
        self._overrides = dict(_overrides(root))

    def value(self, bean: str, name: str) -> str:
        """A setting: an override wins over the bean's own; '' when neither says anything."""
        return self._overrides.get(f"{bean}.{name}", "") or own_value(self.by_id.get(bean), name)

    def values(self, bean: str, name: str) -> list[str]:
        """A setting that is a list of texts."""
        return _texts(property_of(self.by_id.get(bean), name))

    def laid(self) -> set[str]:
        """The sheets that some association lays over URLs; associations often have no id."""
        return {sheet for bean in self._all for sheet in _texts(property_of(bean, "targetSheetNames"))}

    def chain(self, bean: str) -> list[str]:
        """The processors of a chain, by id, in order: those it refers to, and those that stand in it."""
        found = property_of(self.by_id.get(bean), "processors")
        members = found.findall(f"{SPACE}list/*") if found is not None else []
        return [self._ids[one] if one in self._ids else one.get("bean", "") for one in members]

    def is_of(self, bean: str, name: str) -> bool:
        """Whether a bean's class has this simple name."""
        found = self.by_id.get(bean)
        return found is not None and found.get("class", "").rpartition(".")[2] == name

    def of_class(self, name: str) -> list[str]:
        """The ids of the beans whose class has this simple name."""
        return [key for key in self.by_id if self.is_of(key, name)]

    def inside(self, *classes: str) -> Iterator[tuple[Element, str]]:
        """The beans of these classes that lie inside another bean, and the outermost one's id, if it has one."""
        for outer in self._root.findall(f"{SPACE}bean"):
            found = (one for one in outer.iter(f"{SPACE}bean") if one is not outer)
            yield from (
                (one, outer.get("id", "")) for one in found if one.get("class", "").rpartition(".")[2] in classes
            )

    def text(self, bean: str) -> str:
        """All text in a bean."""
        found = self.by_id.get(bean)
        return "".join(found.itertext()) if found is not None else ""


def _id(number: int, bean: Element) -> str:
    """A bean without an id has a number, which no id of Spring's looks like."""
    return bean.get("id") or f"#{number}"


def _parsed(data: bytes, path: str) -> Element:
    if len(data) > LARGEST:
        raise BadInput(path, f"has {len(data):,} bytes, {LARGEST:,} are the limit")
    try:
        root: Element = defusedxml.ElementTree.fromstring(data, forbid_dtd=True)
    except ParseError as error:
        raise BadInput(path, f"is no XML: {error}") from error
    except DefusedXmlException as error:
        raise BadInput(path, f"has a DTD or an entity, which is refused: {error}") from error
    if root.tag != f"{SPACE}beans":
        raise BadInput(path, f"is no configuration of Heritrix: its root is {root.tag[:80]}, not <beans>")
    return root


def _overrides(root: Element) -> Iterator[tuple[str, str]]:
    """`bean.name=value` of every PropertyOverrideConfigurer, as text or as <prop>."""
    for bean in root.iter(f"{SPACE}bean"):
        if not bean.get("class", "").endswith("PropertyOverrideConfigurer"):
            continue
        for prop in bean.iter(f"{SPACE}prop"):
            yield prop.get("key", ""), (prop.text or "").strip()
        for value in bean.iter(f"{SPACE}value"):
            lines = (line.strip() for line in (value.text or "").splitlines())
            pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
            yield from ((key.strip(), text.strip()) for key, _, text in pairs)


def _texts(found: Element | None) -> list[str]:
    return [(one.text or "").strip() for one in found.iter(f"{SPACE}value")] if found is not None else []


def own_value(bean: Element | None, name: str) -> str:
    """A bean's own setting; '' when it says nothing."""
    found = property_of(bean, name)
    if found is None:
        return ""
    return found.get("value") or (found.findtext(f"{SPACE}value") or "").strip()


def property_of(bean: Element | None, name: str) -> Element | None:
    """A bean's property of this name."""
    if bean is None:
        return None
    return next((one for one in bean.findall(f"{SPACE}property") if one.get("name") == name), None)
