"""The names of distributions, against `packaging`, and against names that PyPI has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

from warcmill.formats.pypi import filenames
from warcmill.formats.pypi.dump import DistType
from warcmill.formats.pypi.filenames import FileForm

projects = st.from_regex(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,20}[A-Za-z0-9])?", fullmatch=True)
versions = st.from_regex(r"[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}(?:(?:a|b|rc)[0-9])?(?:\.post[0-9])?", fullmatch=True)


@given(projects)
def test_names_are_compared_as_packaging_does(name: str) -> None:
    assert filenames.normalised(name) == canonicalize_name(name)
    assert filenames.is_project(name)


@given(projects, versions, st.sampled_from([".tar.gz", ".zip"]))
def test_sdists_are_named_as_packaging_reads_them(project: str, version: str, end: str) -> None:
    name = f"{project}-{version}{end}"
    read = filenames.parse(name, project)
    judged, judged_version = parse_sdist_filename(name)
    assert read is not None
    assert read.dist_type is DistType.SDIST
    if judged == canonicalize_name(project):
        assert (read.project, read.version) == (judged, version)
        assert str(judged_version)


@given(projects.map(lambda name: name.replace("-", "_")), versions, st.sampled_from(["", "-1", "-2build"]))
def test_wheels_are_named_as_packaging_reads_them(project: str, version: str, build: str) -> None:
    name = f"{project}-{version}{build}-cp311-abi3-manylinux_2_17_x86_64.whl"
    read = filenames.parse(name)
    try:
        judged, _, judged_build, tags = parse_wheel_filename(name)
    except ValueError:
        return  # such a name as `_-1.0`
    assert read is not None
    assert read.form is FileForm.WHEEL
    assert (read.project, read.version, bool(read.build)) == (judged, version, bool(judged_build))
    assert {(tag.interpreter, tag.abi, tag.platform) for tag in tags} == {(read.python, read.abi, read.platform)}


@pytest.mark.parametrize(
    ("name", "project", "version", "kind", "form"),
    [
        ("PyYAML-3.10.win32-py2.7.exe", "pyyaml", "3.10", "BDIST", "name only"),
        ("PyYAML-3.10.win-amd64-py2.7.exe", "pyyaml", "3.10", "BDIST", "name only"),
        ("pywin32-223.win32-py3.6.exe", "pywin32", "223", "BDIST", "name only"),
        ("Twisted-13.0.0.win32-py2.6.msi", "twisted", "13.0.0", "BDIST", "name only"),
        ("ZODB3-3.4.0-1.noarch.rpm", "zodb3", "3.4.0", "BDIST", "name only"),
        ("bzr-2.0.linux-x86_64.tar.gz", "bzr", "2.0", "BDIST", "name only"),
        ("foo_1.0-1_all.deb", "foo", None, "BDIST", "name only"),
        ("setuptools-0.6c11-py2.6.egg", "setuptools", "0.6c11", "BDIST", "egg"),
        ("zope.interface-4.0-py2.7-win32.egg", "zope-interface", "4.0", "BDIST", "egg"),
        ("python-dateutil-1.5.tar.gz", "python-dateutil", "1.5", "SDIST", "tar"),
        ("foo-1.0-beta-2.tar.bz2", "foo", "1.0-beta-2", "SDIST", "tar"),
        ("pytz-2004b.tar.Z", "pytz", "2004b", "SDIST", "name only"),
        ("foo.zip", "foo", None, "SDIST", "zip"),
        ("x-dev.tgz", "x", "dev", "SDIST", "tar"),
    ],
)
def test_old_names(name: str, project: str, version: str | None, kind: str, form: str) -> None:
    read = filenames.parse(name, project)
    assert read is not None
    assert (read.project, read.version, read.dist_type, read.form) == (project, version, kind, form)


@pytest.mark.parametrize("name", ["", "x", "x.tar.lzma", "a/b-1.tar.gz", "..\\x-1.zip", "x-1\0.zip", "x-1\n.whl"])
def test_what_is_no_distribution(name: str) -> None:
    assert filenames.parse(name) is None


@given(st.text(max_size=60), st.text(max_size=10))
def test_no_name_raises(name: str, project: str) -> None:
    for end in ("", ".whl", ".egg", ".tar.gz", ".exe", ".rpm", ".zip", ".deb"):
        filenames.parse(name + end, project)
