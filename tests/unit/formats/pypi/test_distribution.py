"""Whole distributions: those that are installed here, packed again, and made-up ones. Judges: pkginfo, importlib."""

from __future__ import annotations

import importlib.metadata
import io
import tarfile
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import pkginfo
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mirroring.python_finders import found_by_finders

from warcmill.formats.pypi import distribution, filenames, metadata
from warcmill.formats.pypi.distribution import DistributionFacts
from warcmill.formats.pypi.zip_directory import TAIL, TooEarly

INFO = (
    b"Metadata-Version: 2.1\nName: Foo.Bar\nVersion: 1.0\nRequires-Python: >=3.8\n"
    b"Requires-Dist: a>=1\nRequires-Dist: ((\n\nText"
)
STATIC = INFO.replace(b"2.1", b"2.4")
INSTALLED = ["luigi", "requests", "rich", "hypothesis", "python-dateutil", "pyyaml", "brotli", "cffi", "jinja2"]


def wheel(some: dict[str, bytes], stored: tuple[str, ...] = ()) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a name that is there twice
        for name, content in some.items():
            archive.writestr(name, content, zipfile.ZIP_STORED if name in stored else None)
    return file.getvalue()


def sdist(some: dict[str, bytes], folder: str = "foo_bar-1.0/") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in some.items():
            info = tarfile.TarInfo(folder + name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def read(data: bytes, filename: str, project: str = "foo-bar", begin: int = 0) -> DistributionFacts:
    name = filenames.parse(filename, project)
    assert name is not None
    return distribution.read(io.BytesIO(data[begin:]), name, len(data), begin)


WHEEL, SDIST, EGG = "foo_bar-1.0-py3-none-any.whl", "foo_bar-1.0.tar.gz", "foo_bar-1.0-py3.8.egg"


@pytest.mark.parametrize("project", INSTALLED)
def test_real_wheels_are_read_as_pkginfo_and_the_finders_do(project: str, tmp_path: Path) -> None:
    files = importlib.metadata.files(project)
    version = importlib.metadata.version(project)
    kept = {str(file): Path(str(file.locate())) for file in files or () if ".." not in file.parts}
    name = f"{filenames.normalised(project).replace('-', '_')}-{version}-py3-none-any.whl"
    contents = {path: file.read_bytes() for path, file in kept.items() if file.is_file()}
    data = wheel(contents)
    facts = read(data, name, project)
    (tmp_path / name).write_bytes(data)
    judged = pkginfo.Wheel(str(tmp_path / name))
    assert facts.why == ()
    assert list(facts.requires_dist or ()) == [*judged.requires_dist]
    assert (facts.name, facts.version, facts.requires_python) == (judged.name, judged.version, judged.requires_python)
    assert facts.modules == tuple(sorted(found_by_finders(list(contents))))
    assert facts.modules


def test_a_wheel() -> None:
    some = {"foo/__init__.py": b"", "foo/b.py": b"", "foo_bar-1.0.dist-info/METADATA": INFO}
    assert read(wheel(some), WHEEL) == DistributionFacts(
        "Foo.Bar", "1.0", (), ("a>=1", "(("), ">=3.8", ("foo", "foo.b"), (), tuple(INFO.decode().split("\n")[:-2])
    )


@given(st.integers(0, 200_000), st.integers(0, 200_000), st.booleans())
def test_each_part_of_a_wheel_suffices_or_names_the_bytes_that_it_needs(before: int, after: int, first: bool) -> None:
    info = {"foo_bar-1.0.dist-info/METADATA": INFO}
    large = {"foo/__init__.py": bytes(before), "foo/data.bin": bytes(after)}
    data = wheel(info | large if first else large | info, stored=tuple(large))
    name = filenames.parse(WHEEL, "foo-bar")
    assert name is not None
    begin, asked = max(0, len(data) - TAIL), 1
    while (needed := distribution.needed_from(io.BytesIO(data[begin:]), name, len(data), begin)) is not None:
        with pytest.raises(TooEarly):
            read(data, WHEEL, begin=begin)
        assert needed < begin
        begin, asked = needed, asked + 1
    assert asked <= 3
    assert read(data, WHEEL, begin=begin) == read(data, WHEEL)


@pytest.mark.parametrize(
    ("some", "why"),
    [
        ({"foo.py": b""}, "it has no METADATA"),
        ({"a-1.dist-info/METADATA": INFO, "b-1.dist-info/METADATA": INFO, "foo.py": b""}, "it has 2 dist-info folders"),
    ],
)
def test_a_wheel_without_its_metadata_has_its_modules(some: dict[str, bytes], why: str) -> None:
    facts = read(wheel(some), WHEEL)
    assert facts == DistributionFacts(modules=("foo",), why=(why,))


IMPORTS = INFO.replace(b"2.1", b"2.5").replace(b"\n\n", b"\nImport-Name: ns.own\nImport-Name: _x ; private\n\n")
EXTENDED = b"__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"


def test_a_wheel_states_the_names_that_it_gives() -> None:
    some = {"ns/own/__init__.py": b"", "foo_bar-1.0.dist-info/METADATA": IMPORTS}
    found = read(wheel(some), WHEEL)
    assert (found.import_names, found.import_namespaces) == (("ns.own", "_x ; private"), None)
    none = IMPORTS.partition(b"Import-Name")[0] + b"Import-Name:\nImport-Namespace: ns\n\n"
    found = read(wheel({**some, "foo_bar-1.0.dist-info/METADATA": none}), WHEEL)
    assert (found.import_names, found.import_namespaces) == ((), ("ns",))
    assert read(sdist({"PKG-INFO": IMPORTS}), SDIST).import_names == ("ns.own", "_x ; private")


def test_the_folders_of_a_wheels_pth_file_are_searched_and_no_code_of_it_is_run() -> None:
    some = {
        "own.pth": b"pthlib\nimport antigravity\n",
        "foo-nspkg.pth": b"import sys, types\n",
        "pthlib/hidden.py": b"",
        "foo_bar-1.0.data/platlib/other.pth": b"deep\\er",
        "foo_bar-1.0.data/platlib/deep/er/low.pyd": b"",
        "pthlib/not_here.pth": b"sub\n",
        "pthlib/sub/x.py": b"",
        "foo_bar-1.0.dist-info/METADATA": INFO,
    }
    names = ("deep.er.low", "hidden", "low", "pthlib.hidden", "pthlib.sub.x", "sub.x")
    data = wheel(some)
    assert read(data, WHEEL).modules == names
    begin = data.index(b"foo-nspkg.pth")
    name = filenames.parse(WHEEL)
    assert name
    assert distribution.needed_from(io.BytesIO(data[begin:]), name, len(data), begin) == 0
    assert distribution.needed_from(io.BytesIO(data), name, len(data), 0) is None
    part = read(data, WHEEL, begin=begin)
    assert (part.modules, part.version) == (tuple(one for one in names if one not in ("hidden", "sub.x")), "1.0")
    assert part.why == ("'own.pth' is not in the part that was fetched: modules of its folders are unknown",)


def test_the_styles_of_namespaces() -> None:
    declared = b"__import__('pkg_resources').declare_namespace(__name__)"
    some = {
        "old/__init__.py": declared,
        "old/inner/__init__.py": b"# ours\n" + EXTENDED,
        "old/inner/leaf/__init__.py": b"",
        "plain/__init__.py": b"x = 'extend_path'",
        "plain/sub/__init__.py": EXTENDED,
        "plain/sub/leaf.py": b"",
        "alone/__init__.py": EXTENDED,
        "pep/leaf.py": b"",
        "listed/leaf.py": b"",
        "foo_bar-1.0.dist-info/namespace_packages.txt": b"listed\nabsent\n",
        "foo_bar-1.0.dist-info/METADATA": INFO,
    }
    data = wheel(some)
    styles = {"old": "pkg_resources", "old.inner": "pkgutil", "listed": "pkg_resources"}
    assert read(data, WHEEL).namespaces == styles
    begin = data.index(b"alone/")
    assert read(data, WHEEL, begin=begin).namespaces == {"old": "pkg_resources", "listed": "pkg_resources"}
    egg = {"ns/a.py": b"", "foo_bar.egg-info/namespace_packages.txt": b"ns\n", "foo_bar.egg-info/top_level.txt": b"ns"}
    assert read(sdist(egg), SDIST).namespaces == {"ns": "pkg_resources"}


def test_a_wheel_takes_its_own_metadata_and_the_last_of_two() -> None:
    other = INFO.replace(b"a>=1", b"other")
    some = {"vendored-2.dist-info/METADATA": other, "foo_bar-1.0.dist-info/METADATA": INFO}
    assert read(wheel(some), WHEEL).requires_dist == ("a>=1", "((")


def test_metadata_of_100_mb_is_not_held() -> None:
    description = {"foo_bar-1.0.dist-info/METADATA": INFO + b"x" * (100 << 20)}
    header = {"foo_bar-1.0.dist-info/METADATA": b"Name: x\nDescription: " + b" x\n" * (100 << 18)}
    for some, why in ((description, ()), (header, ("the header of its METADATA has more than 16,777,216 bytes",))):
        data = wheel(some)
        tracemalloc.start()
        try:
            facts = read(data, WHEEL)
            assert tracemalloc.get_traced_memory()[1] < 64 << 20
        finally:
            tracemalloc.stop()
        assert facts.why == why
        assert facts.requires_dist == (None if why else ("a>=1", "(("))


def test_a_wheel_with_names_beyond_the_limit_has_its_requirements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.formats.pypi.modules.MOST_BYTES", 20)
    some = {"a.py": b"", "b" * 30 + ".py": b"", "foo_bar-1.0.dist-info/METADATA": INFO}
    facts = read(wheel(some), WHEEL)
    assert (facts.modules, facts.requires_dist) == (None, ("a>=1", "(("))
    assert "or their names more than" in facts.why[0]


@pytest.mark.parametrize(
    ("some", "dists", "python", "found"),
    [
        # PKG-INFO, where it is static; an empty one means no requirements.
        ({"PKG-INFO": STATIC, "foo.py": b""}, ("a>=1", "(("), ">=3.8", ("foo",)),
        ({"PKG-INFO": b"Metadata-Version: 2.4\nName: x\nVersion: 1"}, (), None, None),
        # Not where it is dynamic or old: then requires.txt.
        (
            {
                "PKG-INFO": STATIC.replace(b"\n\n", b"\nDynamic: Requires-Dist\n\n"),
                "src/foo_bar.egg-info/requires.txt": b"b\n\n[x]\nc\n",
                "src/foo_bar.egg-info/top_level.txt": b"foo\n",
                "src/foo/__init__.py": b"",
                "tests/__init__.py": b"",
            },
            ("b", 'c; extra == "x"'),
            ">=3.8",
            ("foo",),
        ),
        # The modules are beside the egg-info, not in an example; those of tests and examples do not count.
        (
            {
                "examples/foo.py": b"",
                "examples/a.egg-info/top_level.txt": b"a\n",
                "lib/foo/__init__.py": b"",
                "lib/foo/loader.py": b"",
                "lib/foo_bar.egg-info/top_level.txt": b"foo\n",
            },
            (),
            None,
            ("foo", "foo.loader"),
        ),
        ({"tests/a.egg-info/top_level.txt": b"a\n", "tests/a.egg-info/requires.txt": b"b\n"}, None, None, None),
        # Setuptools leaves out an empty requires.txt.
        ({"PKG-INFO": INFO, "foo_bar.egg-info/top_level.txt": b"foo\n"}, (), ">=3.8", ("foo",)),
        # Else the static part of pyproject.toml.
        (
            {
                "PKG-INFO": b"Metadata-Version: 1.0\nName: x",
                "pyproject.toml": b"[project]\nname='x'\ndependencies=['d']\n",
            },
            ("d",),
            None,
            None,
        ),
        # Else nothing is known: Requires-Dist of an old PKG-INFO is not.
        ({"PKG-INFO": INFO}, None, ">=3.8", None),
        ({"setup.py": b""}, None, None, None),
        # Vendored projects do not count.
        ({"PKG-INFO": INFO, "foo/_vendor/deep/other.egg-info/requires.txt": b"z"}, None, ">=3.8", None),
    ],
)
@pytest.mark.parametrize(
    "pack", [sdist, lambda some: wheel({f"foo_bar-1.0/{name}": data for name, data in some.items()})]
)
def test_sdists(some, dists, python, found, pack) -> None:  # type: ignore[no-untyped-def]
    facts = read(pack(some), SDIST if pack is sdist else "foo_bar-1.0.zip")
    assert (facts.requires_dist, facts.requires_python, facts.modules, facts.why) == (dists, python, found, ())


def test_requires_of_old_metadata() -> None:
    old = b"Metadata-Version: 1.1\nName: x\nVersion: 1\nRequires: sys\nRequires: re\n"
    assert read(sdist({"PKG-INFO": old}), SDIST).requires == ("sys", "re")
    assert read(sdist({"PKG-INFO": old.replace(b"Requires", b"X")}), SDIST).requires is None
    assert read(sdist({"PKG-INFO": STATIC}), SDIST).requires == ()


def test_an_egg() -> None:
    some = {
        "EGG-INFO/PKG-INFO": INFO,
        "EGG-INFO/requires.txt": b"a\n\n[:python_version<'3']\nb",
        "EGG-INFO/top_level.txt": b"foo\n",
        "foo/__init__.pyc": b"",
        "tests/__init__.py": b"",
    }
    facts = read(wheel(some), EGG)
    assert facts == DistributionFacts("Foo.Bar", "1.0", None, ("a", "b; python_version<'3'"), ">=3.8", ("foo",), ())


@pytest.mark.parametrize("name", ["x-1.win32.exe", "x-1-1.noarch.rpm", "x-1.linux-x86_64.tar.gz", "x-1.msi"])
def test_of_an_installer_the_name_alone_is_read(name: str) -> None:
    assert read(b"anything", name, "x") == DistributionFacts()


@pytest.mark.parametrize("name", [WHEEL, EGG, SDIST, "foo_bar-1.0.zip", "foo_bar-1.0.tar.bz2", "foo_bar-1.0.tar.xz"])
@pytest.mark.parametrize(
    "data", [b"", b"<html>404</html>", bytes(100_000), b"PK\5\6" + bytes(18), b"\x1f\x8b\x08" + bytes(40)]
)
def test_what_is_no_distribution_has_a_reason(name: str, data: bytes) -> None:
    facts = read(data, name)
    assert facts.requires_dist is None
    assert facts.requires is None
    if not data.startswith(b"PK"):
        assert facts.modules is None
        assert facts.why


def test_a_tail_of_an_sdist_is_not_read() -> None:
    assert read(sdist({"PKG-INFO": INFO}), SDIST, begin=5).why == ("only the end of the file is there",)


@given(st.data())
def test_no_damage_raises(data: st.DataObject) -> None:
    some = {"foo/__init__.py": b"x" * 400, "PKG-INFO": INFO, "foo_bar.egg-info/requires.txt": b"a"}
    name = data.draw(st.sampled_from([WHEEL, SDIST, EGG]))
    pack = sdist(some) if name == SDIST else wheel(some | {"foo_bar-1.0.dist-info/METADATA": INFO})
    damaged = bytearray(pack)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    read(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]), name)


def test_a_paper_that_is_too_long_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "LONGEST", 300)
    for pack, name in (
        (sdist, SDIST),
        (lambda some: wheel({f"x/{one}": data for one, data in some.items()}), "foo_bar-1.0.zip"),
    ):
        facts = read(pack({"PKG-INFO": INFO, "foo_bar.egg-info/requires.txt": b"a\n" * 200}), name)
        assert facts.requires_dist is None
        assert facts.why == (f"egg requires.txt: {distribution._TOO_LONG}",)
