"""A disk that is full for every process of a command while a file exists, but for what a crawl's ballast made room.

No disk is filled: to mount a small one needs root. The calls by which Python writes to it fail as they then do.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE = "WARCMILL_TEST_FULL_DISK"


def install() -> None:
    """Have writes of this process fail from when the file that the variable names is there."""
    full = Path(os.environ.get(VARIABLE, "/none"))
    freed: list[str] = []
    unlink = os.unlink

    def freeing(path: Any, **more: Any) -> None:
        unlink(path, **more)
        freed.extend([str(path)] if str(path).endswith("/ballast") else [])

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if full.exists() and not freed:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*args)

        return call

    os.unlink = freeing
    os.write, os.pwrite = failing(os.write), failing(os.pwrite)
