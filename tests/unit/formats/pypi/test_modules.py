"""The modules of distributions. Judge: Python's own finders, over the unpacked files of a wheel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mirroring.python_finders import EXTENSIONS, found_by_finders

from warcmill.formats.pypi import modules
from warcmill.formats.pypi.modules import ModulePaths

stems = st.sampled_from(["a", "b", "c", "__init__", "__main__", "x-y", "1a", "a.b", "é"])
folders = st.lists(st.sampled_from(["a", "b", "c", "d-e", "a.libs", "x-1.data", "purelib"]), max_size=3)
ends = st.sampled_from([".py", ".pyc", ".pyi", ".txt", ".so.1", *EXTENSIONS])
files = st.builds(lambda parts, stem, end: "/".join([*parts, stem + end]), folders, stems, ends)


@given(st.lists(files, max_size=12, unique=True))
def test_a_wheel_has_the_modules_that_finders_find_and_no_other(some: list[str]) -> None:
    kept = [one for one in some if not any(other.startswith(f"{one}/") for other in some)]
    assert set(modules.of_wheel(kept)) == found_by_finders(kept)


def test_folders_that_are_no_packages() -> None:
    assert modules.of_wheel(["google/cloud/storage/__init__.py", "google/x.py"]) == ("google.cloud.storage", "google.x")
    assert modules.of_wheel(["foo.py", "foo/bar.py"]) == ("foo",), "the module hides the folder"
    assert modules.of_wheel(["foo/__init__.py", "foo.py", "foo/bar.py"]) == ("foo", "foo.bar")
    assert modules.of_wheel(["__init__.py", "../x.py", "/y.py", "a\0.py", "a//b.py", "./c.py"]) == ()
    assert modules.of_wheel(["x-1.0.data/purelib/x.py", "x-1.0.data/scripts/y.py"]) == ("x",)


def test_a_top_level_txt_decides() -> None:
    paths = ["src/foo/__init__.py", "src/foo/a.py", "tests/__init__.py", "bar.py", "setup.py"]
    assert modules.of_source(paths, ["foo"], "foo") == ("foo", "foo.a")
    assert modules.of_source(paths, ["foo", "bar"], "foo") == ("bar", "foo", "foo.a")
    assert modules.of_source(paths, ["_c"], "foo") == ("_c",), "a module in C has no file in Python"
    assert modules.of_source(paths, [], "foo") == ()
    assert modules.of_source(["lib/ns/a/__init__.py"], ["ns"], "ns-a") == ("ns.a",)
    assert modules.of_source(paths, ["../foo", "a b"], "foo") == ()


def test_the_folder_of_the_egg_info_has_the_modules_and_no_example_does() -> None:
    lib = ["examples/pygments/yaml.py", "lib/yaml/__init__.py", "lib/yaml/loader.py", "lib3/yaml/__init__.py"]
    assert modules.of_source(lib, ["yaml"], "pyyaml", "lib/") == ("yaml", "yaml.loader")
    assert modules.of_source(lib, ["yaml"], "pyyaml", "lib3/") == ("yaml",)
    assert modules.of_source(lib, ["yaml"], "pyyaml") is None, "lib and lib3 differ"
    assert modules.of_source(lib[:3], ["yaml"], "pyyaml") == ("yaml", "yaml.loader")
    assert modules.of_source(["a.py", "x/a/__init__.py", "x/a/b.py"], ["a"], "a") == ("a",), "beside the egg-info"
    assert modules.of_source(["y/a.py", "x/y/a/__init__.py"], ["a"], "a") == ("a",)
    assert modules.of_source(["y/a.py", "x/y/a/__init__.py", "x/y/a/b.py"], ["a"], "a") == ("a", "a.b"), "a package"
    assert modules.of_source(["tests/__init__.py", "docs/a.py"], ["tests", "a"], "a") == ("a", "tests")
    assert modules.of_source(["examples/a/__init__.py", "examples/a/b.py"], ["a"], "a") == ("a",), "it may be in C"


@pytest.mark.parametrize(
    ("paths", "project", "known"),
    [
        (["src/foo/__init__.py", "foo_tests/__init__.py", "setup.py"], "foo", ("foo",)),
        (["src/ns/foo/__init__.py"], "ns-foo", ("ns.foo",)),
        (["foo/__init__.py", "foo/b.py", "tests/__init__.py", "docs/conf.py", "setup.py"], "foo", ("foo", "foo.b")),
        (["foo/tests/__init__.py", "foo/__init__.py"], "foo", ("foo", "foo.tests")),
        (["foo.py", "setup.py", "examples/a.py", "conftest.py"], "foo", ("foo",)),
        (["ns/foo/__init__.py", "scripts/x/__init__.py"], "ns.foo", ("ns.foo",)),
        (["foo.py", "test_foo.py", "setup.py"], "foo", ("foo",)),
        (["foo/__init__.py", "helper.py", "setup.py"], "foo", ("foo",)),
        (["src/foo/__init__.py", "src/bar/__init__.py", "src/tests/__init__.py"], "foo", ("bar", "foo")),
        (["foo/__init__.py", "src/generate.py"], "foo", ("foo",)),
        (["foo/__init__.py", "bar/__init__.py"], "foo", None),
        (["foo.py", "helper.py", "setup.py"], "foo", None),
        (["examples/foo/__init__.py", "docs/foo.py"], "foo", None),
        (["README", "foo.c"], "foo", None),
        (["setup.py", "tests/__init__.py"], "foo", None),
        ([], "foo", None),
    ],
)
def test_without_it_the_layout_does(paths: list[str], project: str, known: tuple[str, ...] | None) -> None:
    assert modules.of_source(paths, None, project) == known


def test_paths_are_collected_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "MOST_BYTES", 10)
    paths = modules.ModulePaths()
    for path in ("a.txt" * 100, "ab.py", "ab.py", "cd.py"):
        paths.add(path)
    assert set(paths) == {"ab.py", "cd.py"}
    with pytest.raises(modules.TooMany):
        paths.add("e.py")


def installed(folder: Path, some: dict[str, bytes], *names: str) -> list[str]:
    """Those of some modules that Python imports where the files are in a site-packages: the judge of .pth files."""
    for name, content in some.items():
        (path := folder / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    code = (
        "import importlib.util, site, sys; site.addsitedir(sys.argv[1])\n"
        "for name in sys.argv[2:]:\n"
        "    try:\n"
        "        spec = importlib.util.find_spec(name)\n"
        "    except ImportError:\n"
        "        spec = None\n"
        "    if spec and spec.loader and spec.origin: print(name)"
    )
    command = [sys.executable, "-I", "-S", "-c", code, str(folder), *names]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_folders_of_a_pth_file_are_searched_as_site_does(tmp_path: Path) -> None:
    lines = (
        b"# a comment\nlib\n\n./deep/er \nother/../lib2\nimport evil_code\nimport\tevil_code\n../outside\n/absolute\n"
    )
    folders = [*modules.pth_folders(lines)]
    assert folders == ["lib/", "deep/er/", "lib2/"]
    paths = ["lib/a.py", "lib/p/__init__.py", "lib/p/q.py", "deep/er/b.py", "lib2/c.py", "outside/d.py", "evil_code.py"]
    files = {**dict.fromkeys([*paths, "other/x.py"], b""), "own.pth": lines.replace(b"import evil_code", b"import re")}
    found = modules.of_wheel(files, folders)
    names = ["a", "b", "c", "d", "p", "p.q", "evil_code", "q", "er", "lib", "lib.a", "lib.p.q", "deep.er.b"]
    files["own.pth"] = files["own.pth"].replace(b"import\tevil_code", b"import re")
    assert installed(tmp_path, files, *names) == [name for name in names if name in found]


def test_lines_of_a_pth_file_that_are_foreign_name_no_folder() -> None:
    of_windows = b"\xef\xbb\xbfwin32\r\nwin32\\lib\r\nPythonwin\r\n"
    assert [*modules.pth_folders(of_windows)] == ["win32/", "win32/lib/", "Pythonwin/"]
    assert [*modules.pth_folders(b"..\n.\na/..\n../b\na/../..\n/c\nC:/d\nc:\\d\n\\\\host\\share\n")] == []
    assert [*modules.pth_folders(b"\xff\n\0\n")] == ["\ufffd/", "\0/"]


def test_stubs_are_modules_whose_types_alone_are_there() -> None:
    paths = ModulePaths()
    for path in ("yaml-stubs/__init__.pyi", "yaml-stubs/nodes.pyi", "google-stubs/protobuf/any.pyi", "six/moves.pyi"):
        paths.add(path)
    assert paths.stubs == ("google.protobuf.any", "yaml")
    assert modules.of_wheel(paths) == ()
