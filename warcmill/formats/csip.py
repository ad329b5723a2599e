"""Words that E-ARK CSIP and SIP 2.2.0 fix, and those that this line adds where they leave it open."""

from __future__ import annotations

from typing import Final

PROFILE: Final = "https://earksip.dilcis.eu/profile/E-ARK-SIP-v2-2-0.xml"  # SIP2
TYPE: Final = "Websites"  # CSIP2, of the vocabulary of content categories
CONTENT_INFORMATION_TYPE: Final = "warcmill_webarchive_v1_0"  # docs/content-information-type.md
CONTENT_TYPE: Final = (  # CSIP4, CSIP5
    f'csip:CONTENTINFORMATIONTYPE="OTHER" csip:OTHERCONTENTINFORMATIONTYPE="{CONTENT_INFORMATION_TYPE}"'
)
REPLACES: Final = "REPLACES"  # type of altRecordID: the specification has none for a package made instead of another
DESCRIPTIVE: Final = 'MDTYPE="DC" MDTYPEVERSION="1.1"'
PRESERVATION: Final = 'MDTYPE="PREMIS" MDTYPEVERSION="3.0"'

# The schema that knows all the others: METS, xlink and the two extensions.
SCHEMA: Final = "warcmill-sip.xsd"
_NAMESPACES: Final = (
    'xmlns="http://www.loc.gov/METS/" xmlns:xlink="http://www.w3.org/1999/xlink"'
    ' xmlns:csip="https://DILCIS.eu/XML/METS/CSIPExtensionMETS" xmlns:sip="https://DILCIS.eu/XML/METS/SIPExtensionMETS"'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
)


def namespaces(schemas: str) -> str:
    """Return the declarations of a METS root whose schemas lie in the folder `schemas`, relative to it."""
    located = f"http://www.loc.gov/METS/ {schemas}mets.xsd http://www.w3.org/1999/xlink {schemas}xlink.xsd"
    return f'{_NAMESPACES}\n    xsi:schemaLocation="{located}"'
