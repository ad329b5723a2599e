"""The imports of folders of source, and the projects that they need. Judge: `importlib.metadata`, of what is here."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest
from mirroring.package_dumps import DumpedIndex, row, state

from commands.console import imported
from warcmill.errors import BadInput
from warcmill.formats.pypi import modules
from warcmill.formats.pypi.filenames import normalised
from warcmill.pypi.answers import PublishedData
from warcmill.pypi.providers import needed

ROOT = Path(__file__).parents[4]


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (path := folder / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_own_modules_and_those_of_python_are_not_needed(tmp_path: Path) -> None:
    top = written(
        tmp_path / "app",
        {
            "main.py": "import os, yaml, helper, pkg.inner, scripts_only, ext",
            "helper.py": "from . import x\nimport six",
            "ext.cpython-311-x86_64-linux-gnu.so": "",
            "pkg/__init__.py": "",
            "pkg/inner/mod.py": "import pkg, beside, six",
            "pkg/inner/beside.py": "",
            "src/lib/__init__.py": "import main",
            "scripts/run.py": "import scripts_only, lib",
            "scripts/scripts_only.py": "import colorama",
            "tests/broken.py": "print 'old'",
            ".hidden/x.py": "import hidden",
            "env/pyvenv.cfg": "",
            "env/lib/x.py": "import in_environment",
            "data/yaml/readme.txt": "",
        },
    )
    (top / "loop").symlink_to(top)
    found = imported.below(top)
    assert found.names == {"yaml": False, "six": False, "colorama": False, "scripts_only": False}
    assert found.places["scripts_only"] == "main.py:1", "it is beside another file alone"
    assert (found.files, [*found.unread]) == (8, ["tests/broken.py"])
    alone = imported.below(top / "pkg/inner/mod.py")
    assert (alone.names, alone.places) == ({"six": False}, {"six": "mod.py:1"})


def test_an_optional_import_is_needed_where_another_file_needs_it(tmp_path: Path) -> None:
    spared = "try:\n    import yaml, six\nexcept ImportError:\n    pass\n"
    found = imported.below(written(tmp_path, {"a.py": spared, "b.py": "import yaml", "c.py": spared}))
    assert found.names == {"yaml": False, "six": True}


def test_what_has_no_source_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(BadInput):
            imported.below(path)


def test_the_projects_of_this_package_are_those_that_importlib_names(tmp_path: Path) -> None:
    index, by_name = DumpedIndex(tmp_path), {}
    for one in importlib.metadata.distributions():
        files = [str(file) for file in one.files or () if not str(file).startswith("..")]
        name = normalised(one.metadata["Name"])
        if name != "warcmill" and (known := modules.of_wheel(files)):
            by_name[name] = row(name, one.version, *known, requires=tuple(one.requires or ()))
    rows = [by_name[name] for name in sorted(by_name)]
    index.dump(0, 9, rows, [state(one.project, 5, one) for one in rows])
    index.update()
    imports = imported.below(ROOT / "warcmill" / "formats")
    found: Any = needed(PublishedData(index.state.store, index.index), imports.names)
    assert found["unknown"] == []
    judge = importlib.metadata.packages_distributions()
    tops = {name.partition(".")[0] for name in imports.names}
    assert {"msgspec", "packaging", "isal"} <= tops
    assert {one["project"] for one in found["projects"]} == {normalised(judge[top][0]) for top in tops}


def test_a_namespace_is_not_enough_and_what_nothing_gives_is_named(tmp_path: Path) -> None:
    index = DumpedIndex(tmp_path)
    rows = [
        row("google-cloud-storage", "2.0", "google.cloud.storage", "google.cloud.storage.blob"),
        row("numpy", "2.0", "numpy", requires=("six",)),
        row("numpy-fork", "1.0", "numpy"),
        row("six", "1.17", "six"),
    ]
    index.dump(0, 9, rows, [state(one.project, 5, one) for one in rows])
    index.update()
    names = {
        "google.cloud.storage.Client": False, "numpy.array": True, "numpy.random": False, "six.moves.urllib": True,
        "google.cloud.absent": True, "absent.thing": False, "absent": True,
    }  # fmt: skip
    found: Any = needed(PublishedData(index.state.store, index.index), names)
    assert [(one["project"], one["modules"], one["optional"], one["others"]) for one in found["projects"]] == [
        ("google-cloud-storage", ["google.cloud.storage"], False, []),
        ("numpy", ["numpy"], False, ["numpy-fork"]),
        ("six", ["six"], True, []),
    ]
    assert found["unknown"] == [
        {"module": "absent", "optional": False},
        {"module": "google.cloud.absent", "optional": True},
    ]
