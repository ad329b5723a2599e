"""A store for a folder that belongs to another system: read only, without a sentinel, for nothing may be put there."""

from __future__ import annotations

from warcmill.errors import Unavailable
from warcmill.stores.file import FileStore


class OtherFolder(FileStore):
    """The folder `base` of another system. Without a sentinel, an empty mount point looks like an empty folder."""

    def _check_sentinel(self) -> None:
        if not self.base.is_dir():
            raise Unavailable(
                f"{self.root} ({self.base})", "there is no such folder; mount its disk, or correct the key"
            )
