"""The processes that read office documents: what a Java that has faults costs, and what is not Tika."""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from indexing import faulty_java

from warcmill.base.worker import WorkerLimits
from warcmill.errors import Unavailable
from warcmill.extracts import tika
from warcmill.extracts.tika import LARGEST_FILE, Tika, TikaWorkers
from warcmill.formats.text.document import MOST, Document, Kind

MANIFEST = "Manifest-Version: 1.0\r\nImplementation-Title: Apache Tika application\r\nImplementation-Version: 9.8.7\r\n"
GARBAGE = "its parser answered garbage"


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A jar that is named as Tika's, and a Java with faults."""
    program = tmp_path / "java home" / "bin" / "java"
    program.parent.mkdir(parents=True)
    path = os.pathsep.join(sys.path)
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" "{faulty_java.__file__}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java home"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return _jar(tmp_path / "tika-app.jar", MANIFEST)


def _jar(path: Path, manifest: str) -> str:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("META-INF/MANIFEST.MF", manifest)
    return str(path)


@pytest.fixture
def one(jar: str) -> Iterator[TikaWorkers]:
    with TikaWorkers(Tika(jar), 1, WorkerLimits(wall=120)) as workers:
        yield workers


def ask(workers: TikaWorkers, *words: str) -> list[Document]:
    futures = [workers.submit(Kind.OFFICE, word.encode(), "") for word in words]
    return [future.result(300) for future in futures]


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("exit 3", "its parser died: exit code 3"),
        ("exit 0", "its parser died: exit code 0"),
        ("signal 6", "its parser died: killed by SIGABRT"),
        ("garbage", GARBAGE),
        ("bytes", GARBAGE),
        ("other", GARBAGE),
        ("strange", GARBAGE),
        ("gigabyte", "its text is over the limit"),
        (f"file {LARGEST_FILE + 1}", "its parser died: exit code 1"),
    ],
)
def test_a_java_with_a_fault_costs_one_document(word: str, why: str, one: TikaWorkers) -> None:
    before, found, after = ask(one, "before", word, "after")
    assert (before.text, after.text) == ("words of before", "words of after"), "without control characters"
    assert (found.text, found.why) == ("", why)


def test_one_that_hangs_is_ended(jar: str) -> None:
    with TikaWorkers(Tika(jar), 1, WorkerLimits(wall=2)) as workers:
        found, after = ask(workers, "hang", "after")
    assert (found.why, after.text) == ("timeout: over 2 s", "words of after")


def test_it_gets_no_secret_and_a_folder_of_its_own_which_goes(
    one: TikaWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOLR_PASSWORD", "secret")
    (found,) = ask(one, "environment")
    assert "SOLR_PASSWORD" not in found.text.split()
    assert Path(found.title).is_dir()
    one.__exit__(None, None, None)
    assert not Path(found.title).exists()


def test_its_memory_and_what_it_answers_have_limits(one: TikaWorkers, jar: str) -> None:
    (found,) = ask(one, "options")
    words = found.text.split()
    assert (f"-Xmx{1 << 30}" in words, words[-3:]) == (True, ["30", "120", str(MOST + 1)])
    assert words[words.index("-cp") + 1] == jar


def test_its_name_and_version_are_those_of_the_jar(jar: str) -> None:
    assert Tika(jar).tool() == "tika-app 9.8.7"


@pytest.mark.parametrize(
    "manifest", ["", "Implementation-Title: Apache Tika server\nImplementation-Version: 3", MANIFEST[:80]]
)
def test_another_jar_is_refused(manifest: str, jar: str, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"other\.jar is unavailable: it is another program than tika-app"):
        Tika(_jar(tmp_path / "other.jar", manifest)).tool()


def test_what_is_no_jar_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.jar").write_text("no jar")
    for name in ("text.jar", "missing.jar", "."):
        with pytest.raises(Unavailable, match=r"no tika-app.jar can be read there"):
            Tika(str(tmp_path / name)).tool()


def test_whether_it_is_there_is_known_without_reading_it(jar: str) -> None:
    Tika(jar).check()
    with pytest.raises(Unavailable, match="there is no such file"):
        Tika(f"{jar}.2").check()


def test_without_java_it_says_what_to_install(jar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(Unavailable, match=r"none in JAVA_HOME, /nowhere; .* openjdk-17-jdk-headless"):
        Tika(jar).check()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unavailable, match="none in PATH"):
        TikaWorkers(Tika(jar), 1)


def test_processes_are_kept_until_this_one_ends(jar: str) -> None:
    first = tika.kept(Tika(jar), 1)
    assert tika.kept(Tika(jar), 1) is first
    assert first.submit(Kind.OFFICE, b"word", "").result(300).text == "words of word"
    tika.end()
    assert tika.kept(Tika(jar), 1) is not first
    tika.end()
