"""Read the beans of a Heritrix job, `crawler-beans.cxml`, with the settings that the engine sees. DTDs are refused."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from warcmill.errors import BadInput

LARGEST = 256 << 20  # bytes; a job of a hundred thousand targets is a tenth of it
SPACE = "{http://www.springframework.org/schema/beans}"


class Beans:
    """The beans of a configuration and their settings, as the engine has them once it is built.

    BadInput if `data` is no configuration of Heritrix; `path` names it in the message.
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
        raise BadInput(path, f"is no XML: {error}") from error
    except DefusedXmlException as error:
        raise BadInput(path, f"has a DTD or an entity, which is refused: {error}") from error
    if root.tag != f"{SPACE}beans":
        raise BadInput(path, f"is no configuration of Heritrix: its root is {root.tag[:80]}, not <beans>")
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
