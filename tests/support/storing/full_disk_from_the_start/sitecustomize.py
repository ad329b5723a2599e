"""Every Python that has this folder in its path has a disk that may become full."""

import full_disk

full_disk.install()
