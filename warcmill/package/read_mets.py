"""What the METS files of a package name: by other code than writes them, to verify a SIP."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, cast
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import ParseError

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from warcmill.base.digests import Readable

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

NAME = "METS.xml"
_METS, _HREF = "{http://www.loc.gov/METS/}", "{http://www.w3.org/1999/xlink}href"
_SHA512 = "SHA-512"


@dataclass(frozen=True, slots=True)
class Named:
    """A file as METS has it."""

    size: str
    sha512: str


@dataclass(slots=True)
class MetsFiles:
    """All files that the METS files of a bag name, by their paths in the bag, and what is wrong in those."""

    named: dict[str, Named] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def read(self, path: str, stream: Readable) -> None:
        """Take up one METS file, at `path` in the bag."""
        folder = posixpath.dirname(path)
        try:
            for _, element in ElementTree.iterparse(cast("BinaryIO", stream), forbid_dtd=True):
                if element.tag in (f"{_METS}file", f"{_METS}mdRef"):
                    self._take(path, folder, element)
                    element.clear()
        except (ParseError, DefusedXmlException, ValueError) as error:
            self.faults.append(f"{path}: not sound XML: {error}")

    def _take(self, mets: str, folder: str, element: Element) -> None:
        located = element.find(f"{_METS}FLocat") if element.tag == f"{_METS}file" else element
        href = (located.get(_HREF) if located is not None else None) or ""
        path = posixpath.normpath(posixpath.join(folder, unquote(href)))
        if not href or urlsplit(href).scheme or href.startswith("/") or path.startswith("../"):
            self.faults.append(f"{mets}: {href or 'an empty reference'} is no file of the bag")
            return
        if element.get("CHECKSUMTYPE") != _SHA512:
            self.faults.append(f"{mets}: {path} has no {_SHA512}")
            return
        found = Named(element.get("SIZE", ""), element.get("CHECKSUM", "").lower())
        if self.named.setdefault(path, found) != found:
            self.faults.append(f"{mets}: {path} is named twice, and not alike")

    def differences(self, folder: str, digests: Mapping[str, bytes], sizes: Mapping[str, int | None]) -> list[str]:
        """What METS and the manifest do not have alike. `folder`: that of the package, in the bag."""
        faults = list(self.faults)
        for path, named in self.named.items():
            listed, size = digests.get(path), sizes.get(path)
            if listed is None:
                faults.append(f"{path}: METS names it, the manifest does not")
            elif (listed.hex(), str(size)) != (named.sha512, named.size):
                faults.append(f"{path}: METS has another digest or length ({named.size} bytes) than the bag ({size})")
        root = f"{folder}/{NAME}"
        unnamed = [path for path in digests if path not in self.named and path != root]
        faults += [f"{path}: the manifest lists it, no METS names it" for path in unnamed]
        return faults if root in digests else [*faults, f"{root}: there is none"]
