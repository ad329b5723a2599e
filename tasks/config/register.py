"""A register of WARCs: [register] of luigi.cfg."""

from __future__ import annotations

from tasks.config import sections
from tasks.config.sections import Section, TextKey
from warcmill.errors import BadConfig

SECTION = "register"


class register(Section):  # noqa: N801 - the section has the name of the class
    """[register]: who gets the state of each launch at the end of each scan; nobody by default."""

    url = TextKey(default="", description="URL of a register that takes PUT {url}/{job}/{launch}; empty: none")
    token = TextKey(default="", description="secret that it wants, as ${NAME}, a variable of the environment")
    token_file = TextKey(default="", description="file with that secret as its only line")


def place() -> tuple[str, str]:
    """The URL of the register and the secret that it wants, or BadConfig; '' twice if there is none."""
    url, token = str(sections.read(register).url).strip(), sections.secret(SECTION, "token")
    if not url:
        if token:
            raise BadConfig("[register] url", "is not set, and token is; set both, or neither")
        return "", ""
    from warcmill.clients import asked

    if not asked.is_url(url):
        raise BadConfig("[register] url", "is not a URL such as https://register.example/warcs, without user or query")
    return url, token
