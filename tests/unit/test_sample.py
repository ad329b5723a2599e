"""The bundled launch is whole, and its viral WARC is rebuilt where the crawl log says."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import zlib
from pathlib import Path

import pytest
import sample
from warcio.archiveiterator import ArchiveIterator


@pytest.fixture
def laid_out(tmp_path: Path) -> Path:
    return sample.lay_out(tmp_path / "crawl")


def viral_file(folder: Path) -> Path:
    (found,) = (folder / "viral" / "weekly" / "20261121081735").iterdir()
    return found


def test_every_file_is_copied_and_latest_stays_a_link(laid_out: Path) -> None:
    def files(folder: Path) -> set[str]:
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}

    missing = files(laid_out) - files(sample.SAMPLE)
    assert files(sample.SAMPLE) <= files(laid_out)
    assert missing == {str(viral_file(laid_out).relative_to(laid_out))}
    assert (laid_out / "jobs/weekly/latest").readlink() == Path("20261121081735")


def test_the_crawl_log_and_the_warcs_name_each_other(laid_out: Path) -> None:
    """Each line of the crawl log that names a WARC finds its URI at the offset it gives."""
    log = (laid_out / "logs/weekly/20261121081735/crawl.log").read_text()
    warcs = {path.name: path.read_bytes() for path in laid_out.rglob("*.warc.gz")}
    looked_up = 0
    for line in log.splitlines():
        columns = line.split(maxsplit=12)
        tail = json.loads(columns[12])
        if "warcFilename" not in tail:
            continue
        record = zlib.decompressobj(31).decompress(warcs[tail["warcFilename"]][tail["warcFileOffset"] :])
        assert f"WARC-Target-URI: {columns[3]}\r\n".encode() in record
        looked_up += 1
    assert looked_up == 249 + 20, "responses and revisits"
    assert len(warcs) == 2


def test_the_rebuilt_warc_has_the_records_of_the_original(laid_out: Path) -> None:
    records = [
        (record.rec_type, record.content_stream().read())
        for record in ArchiveIterator(io.BytesIO(viral_file(laid_out).read_bytes()), check_digests="raise")
    ]
    assert [kind for kind, _ in records] == ["warcinfo", "response", "request", "metadata"]
    assert records[1][1] == sample.EICAR
    assert len(sample.RESPONSE_HEAD + sample.EICAR) == 210, "contentSize of the crawl log"


def test_the_rebuilt_warc_is_the_same_bytes_everywhere(laid_out: Path) -> None:
    digest = hashlib.sha512(viral_file(laid_out).read_bytes()).hexdigest()
    assert digest.startswith("358b48ab866cc32651e764dca4208392")


def test_a_log_that_is_not_the_samples_is_reported() -> None:
    capture = sample.viral_capture((sample.SAMPLE / "logs/weekly/20261121081735/crawl.log").read_text())
    with pytest.raises(ValueError, match="its digest is sha1:AAAA"):
        sample.viral_warc(capture._replace(digest="sha1:AAAA"))
    with pytest.raises(ValueError, match="cannot be made 100 bytes long"):
        sample.viral_warc(capture._replace(offset=100))


def test_no_file_of_the_project_holds_the_eicar_string() -> None:
    """A scanner that alarms on a clone would have it quarantined."""
    root = Path(sample.__file__).parent.parent
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True).stdout
    for name in listed.decode().split("\0")[:-1]:
        path = root / name
        if path.is_file():
            assert sample.EICAR not in path.read_bytes(), f"{name} holds the EICAR string"
