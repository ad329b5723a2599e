"""Pages of an index in HTML: the files, the status and the projects that they name, and what is not such a page."""

from __future__ import annotations

from typing import Any

import pytest

from warcmill.errors import BadInput
from warcmill.formats.pypi import simple_page

URL = "https://index.example/pypi/repo/simple/six/"
DIGEST = "a" * 64


def page(body: str, head: str = "<title>Links for six</title>") -> dict[str, Any]:
    return simple_page.html_page(f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>".encode(), URL)


def test_a_page_is_read_as_that_in_json() -> None:
    body = f"""<a href="../../files/six-1.0.tar.gz#sha256={DIGEST}" data-yanked="bad &amp; worse">six-1.0.tar.gz</a>
<A HREF='six-1.1-py3-none-any.whl#md5=0123456789abcdef0123456789abcdef' data-yanked
  data-requires-python="&gt;=3.8" data-core-metadata="sha256={DIGEST}" data-dist-info-metadata=false>x</A>
<a rel="homepage" href="https://six.example/six-9.9.tar.gz">home</a> <a href="../">up</a> <a>none</a>
<!-- <a href="six-7.tar.gz">hidden</a> --><a href=six-1.2.zip>plain</a><!--SERIAL 31-->"""
    head = '<meta name="pypi:repository-version" content="1.4"><meta name="pypi:project-status" content="archived">'
    head += '<meta name="pypi:project-status-reason" content="done">'
    found = page(body, head)
    assert found["meta"] == {"api-version": "1.4", "_last-serial": 31}
    assert found["files"] == [
        {
            "filename": "six-1.0.tar.gz",
            "url": "https://index.example/pypi/repo/files/six-1.0.tar.gz",
            "hashes": {"sha256": DIGEST},
            "yanked": "bad & worse",
        },
        {
            "filename": "six-1.1-py3-none-any.whl",
            "url": f"{URL}six-1.1-py3-none-any.whl",
            "hashes": {"md5": "0123456789abcdef0123456789abcdef"},
            "yanked": True,
            "requires-python": ">=3.8",
            "core-metadata": {"sha256": DIGEST},
        },
        {"filename": "six-1.2.zip", "url": f"{URL}six-1.2.zip", "hashes": {}, "yanked": False},
    ]
    data = f"<head>{head}</head>{body}".encode()
    read = simple_page.read(data, URL, "text/html; charset=UTF-8")
    assert (read.project, read.serial, read.status, read.reason, read.unfit) == ("six", 31, "archived", "done", 0)
    assert [(file.filename, file.sha256, file.yanked) for file in read.files] == [
        ("six-1.0.tar.gz", DIGEST, "bad & worse"),
        ("six-1.1-py3-none-any.whl", None, ""),
        ("six-1.2.zip", None, None),
    ]


def test_a_base_counts_and_a_page_without_files_is_one_if_it_is_of_an_index() -> None:
    found = page('<a href="six-1.0.zip">x</a>', '<base href="/f/"><base href="/g/">')
    assert found["files"][0]["url"] == "https://index.example/f/six-1.0.zip"
    assert page("")["files"] == []
    assert page("", '<meta name="pypi:repository-version" content="1.0">')["files"] == []


@pytest.mark.parametrize("body", ["", "<h1>Please wait</h1>", '<a href="/login">in</a>', '<a href="other-1.zip">x</a>',
    '{"name": "six"}', "<!DOCTYPE", "\0" * 100])  # fmt: skip
def test_another_page_is_not_one_without_files(body: str) -> None:
    with pytest.raises(BadInput, match="not a page of an index"):
        page(body, "<title>503</title>")


def test_a_page_of_another_major_version_is_refused() -> None:
    data = b'<meta name="pypi:repository-version" content="2.0"><a href="six-1.zip">x</a>'
    with pytest.raises(BadInput, match=r"of version '2\.0'"):
        simple_page.read(data, URL, "text/html")


def test_a_list_names_its_projects() -> None:
    data = b'<title>Simple index</title><a href="../">up</a><a href="six/">six</a><a href="/pypi/repo/simple/Foo.Bar">'
    found = simple_page.project_list(data + b"<!--SERIAL 9-->", URL.removesuffix("six/"))
    assert [one["name"] for one in found["projects"]][-2:] == ["six", "Foo.Bar"]
    assert found["meta"]["_last-serial"] == 9
    with pytest.raises(BadInput, match="not the list"):
        simple_page.project_list(b"<h1>gone</h1>", URL)


@pytest.mark.parametrize("piece", ["<a ", '<a x="', "<a x='", "<!--", "<!", "<a href=", "<a/", "<meta ", '<a x="y" ',
    "<title ", "<a x=y", "&", "<a \t\n", '="', "<!--SERIAL 1", "<base href=//["])  # fmt: skip
def test_hostile_pages_take_linear_time(piece: str) -> None:
    """Each would take hours otherwise, and the run ends such a test."""
    data = (piece * (500_000 // len(piece))).encode()
    with pytest.raises(BadInput):
        simple_page.html_page(data, URL)
