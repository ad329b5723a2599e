"""[columns]: the launches whose captures are written as Parquet files."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import luigi

from warcmill.errors import BadConfig

SWITCH = "columns"  # as `Row.due` names it
_PACKAGE, _EXTRA = "pyarrow", "warcmill[columns]"


class columns(luigi.Config):  # noqa: N801 - Luigi names the section after the class
    """[columns]: Parquet files of captures; off unless `since` is set. It needs `[warcmill] index`, and the extra."""

    since = luigi.Parameter(default="", description="write the launches from this day on, by their ids; empty: off")
    jobs = luigi.Parameter(default="", description="write only these jobs, separated by commas; empty: all")


def check_installed() -> str:
    """The package that writes Parquet, with its version; BadConfig if it is missing."""
    try:
        return f"{_PACKAGE} {version(_PACKAGE)}"
    except PackageNotFoundError as error:
        how = f"pip install '{_EXTRA}', or empty it"
        raise BadConfig("[columns] since", f"is set, and {_PACKAGE} cannot be found: {how}") from error
