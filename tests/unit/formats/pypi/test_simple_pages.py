"""Pages of a package index that are made of rows, as the parsers of installers read them."""

from __future__ import annotations

import hashlib
import json
from email import message_from_bytes

import msgspec
import pytest
from packaging.metadata import Metadata

from warcmill.errors import BadInput
from warcmill.formats.pypi.dump import DistributionRow, DistType, ListedFile
from warcmill.formats.pypi.simple_page import read
from warcmill.formats.pypi.simple_pages import OfferedFile, PageKind, index_page, metadata, preferred, project_page

HTML, HTML_V1, JSON_V1 = PageKind
DIGEST = hashlib.sha256(b"").hexdigest()
WHEEL = "a_b-1.0-py3-none-any.whl"
LISTED = ListedFile(WHEEL, f"https://x.example/{WHEEL}", DIGEST, 10, ">=3.8", None, "2026-11-21T08:00:00Z")
ROW = DistributionRow(
    WHEEL, "a-b", "1.0", DistType.WHEEL, DIGEST, (), ("six>=1", "yaml; extra == 'docs'"), ">=3.8", ("a",)
)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", HTML),
        ("*/*", HTML),
        ("image/png", HTML),
        ("text/*", HTML),
        (f"{JSON_V1}, {HTML_V1}; q=0.1, {HTML}; q=0.01", JSON_V1),
        (f"{JSON_V1};q=0.2,{HTML_V1},{HTML};q=0.01", HTML_V1),
        (f"{HTML}, {JSON_V1}", JSON_V1),
        (f"{JSON_V1};q=0, {HTML}", HTML),
        (f"{JSON_V1};q=x", HTML),
        (f"{JSON_V1.upper()}", JSON_V1),
        (";,;q=,\0", HTML),
    ],
)
def test_a_client_gets_the_kind_that_it_prefers(accept: str, kind: PageKind) -> None:
    assert preferred(accept) is kind


def test_a_page_in_json() -> None:
    page = json.loads(project_page(JSON_V1, "a-b", 7, [OfferedFile(LISTED, ROW)]))
    (file,) = page.pop("files")
    assert page == {"meta": {"_last-serial": 7, "api-version": "1.1"}, "name": "a-b", "versions": ["1.0"]}
    core = metadata(ROW)
    assert core
    assert file == {
        "filename": WHEEL,
        "url": f"../../files/a-b/{WHEEL}",
        "hashes": {"sha256": DIGEST},
        "requires-python": ">=3.8",
        "size": 10,
        "upload-time": "2026-11-21T08:00:00Z",
        "yanked": False,
        "core-metadata": {"sha256": hashlib.sha256(core).hexdigest()},
    }


def test_a_page_that_lacks_sizes_is_of_the_older_standard() -> None:
    bare = ListedFile("a b-1.zip", "", None, None, None, "", None)
    page = json.loads(project_page(JSON_V1, "a-b", 7, [OfferedFile(bare)]))
    assert page["meta"]["api-version"] == "1.0"
    assert "versions" not in page
    assert page["files"] == [
        {"filename": "a b-1.zip", "url": "../../files/a-b/a%20b-1.zip", "hashes": {}, "yanked": True,
         "core-metadata": False}
    ]  # fmt: skip


def test_a_page_in_html_escapes_all() -> None:
    odd = msgspec.structs.replace(LISTED, filename='"><script>-1.zip', yanked='<"&', requires_python="<4")
    text = project_page(HTML, "a-b", 7, [OfferedFile(odd, ROW)]).decode()
    assert "<script" not in text
    assert 'data-yanked="&lt;&quot;&amp;"' in text
    assert 'data-requires-python="&lt;4"' in text
    assert f"#sha256={DIGEST}" in text
    assert 'data-core-metadata="sha256=' in text
    assert "<!--SERIAL 7-->" in text


@pytest.mark.parametrize("number", [0, 1, 1_000, 2_001])
def test_the_list_of_projects_comes_in_pieces(number: int) -> None:
    names = [f"p{one}" for one in range(number)]
    found = json.loads(b"".join(index_page(JSON_V1, 7, names)))
    assert [one["name"] for one in found["projects"]] == names
    text = b"".join(index_page(HTML, 7, names)).decode()
    assert text.count("<a href=") == number
    assert text.endswith("<!--SERIAL 7-->\n")


def test_metadata_of_a_row_is_what_an_installer_reads() -> None:
    made = metadata(ROW)
    assert made
    read = Metadata.from_email(made)
    assert (read.name, str(read.version), str(read.requires_python)) == ("a-b", "1.0", ">=3.8")
    assert [str(one) for one in read.requires_dist or ()] == ["six>=1", 'yaml; extra == "docs"']
    assert read.provides_extra == ["docs"]


def test_metadata_of_a_row_that_has_its_fields_is_as_it_was() -> None:
    lines = (
        "Metadata-Version: 2.1",
        "Name: A.b",
        "Version: 1.0",
        "Provides-Extra: bare",
        "Requires-Dist: six; 'x' == extra",
    )
    made = metadata(msgspec.structs.replace(ROW, metadata=lines))
    assert made == "".join(f"{line}\n" for line in lines).encode()
    assert metadata(msgspec.structs.replace(ROW, metadata=())) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"dist_type": DistType.SDIST},
        {"version": None},
        {"requires_dist": None},
        {"requires_dist": ("six\nRequires-Dist: evil",)},
        {"requires_python": ">=3\r\nName: other"},
        {"metadata": ("Name: a-b\x0bRequires-Dist: evil",)},
    ],
)
def test_what_is_not_known_or_would_be_read_otherwise_has_no_metadata(changed: dict[str, object]) -> None:
    assert metadata(msgspec.structs.replace(ROW, **changed)) is None  # type: ignore[arg-type]


def test_a_bad_requirement_is_kept_as_it_is() -> None:
    made = metadata(msgspec.structs.replace(ROW, requires_dist=("six >>> 1", "caf\u00e9", "\ud800")))
    assert made
    assert message_from_bytes(made).get_all("Requires-Dist")[:1] == ["six >>> 1"]  # type: ignore[index]


def test_a_page_of_a_greater_version_is_refused() -> None:
    page = {"meta": {"api-version": "2.0"}, "name": "a-b", "files": []}
    with pytest.raises(BadInput, match=r"of version '2\.0', and 1 is known"):
        read(json.dumps(page).encode(), "https://x.example/simple/a-b/")
    assert read(json.dumps({**page, "meta": {"api-version": "1.9"}}).encode(), "https://x.example/a-b/").files == ()
