"""One call by which a process touches a folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CHANGES = frozenset(
    {"create", "truncate", "write", "link", "rename", "unlink", "mkdir", "rmdir", "symlink", "chmod", "sql"}
)
NAMELESS = "(nameless)"  # the name of a file that has none
DATABASES = ("index/making", "index/reading")  # LevelDB works there, unseen; what is linked from there is seen
_OWN = re.compile(r"\.\d+\.[0-9a-f]{8}(?:\.tmp)?(?=\.|$)|\.\d{20}(?=\.)|\.\d+\.jsonl$|\.[0-9a-f]{8}$")


@dataclass(frozen=True, slots=True)
class Call:
    """One call: what, on which path under the watched folder, and, for a write, with what bytes.

    `failed`: the system itself answered an error, such as that a file is not there.
    """

    op: str
    path: str
    to: str = ""
    data: bytes = b""
    failed: bool = False

    @property
    def changes(self) -> bool:
        """Whether the folder is another one afterwards. `fsync` changes only what a power cut would leave."""
        return self.op in CHANGES and not self.failed

    def __str__(self) -> str:
        """The call, without what differs from run to run in names: process, random digits, an attempt's microsecond."""
        text = f"{self.op} {_plain(self.path)}"
        return f"{text} -> {_plain(self.to)}" if self.to else text


Do = Callable[[bytes], Any]  # the system's own function
Meet = Callable[[Call, Do], Any]


def _plain(path: str) -> str:
    return "/".join(_OWN.sub("", part) for part in path.split("/"))
