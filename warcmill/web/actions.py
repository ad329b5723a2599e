"""Actions of people: verbs of `warcmill` that pages start, each as a process of its own. Writes to their folder.

    {state}/web/actions/{id}.json   who started which words, when, and the exit code: null until it has ended
    {state}/web/actions/{id}.log    all that the process printed

An id is the name that the one-time token of a form gives, and a record is created exclusively: a form that is posted
twice acts once. A process that outlives this server runs on; nobody is left to record its end, which stays unknown.
"""

from __future__ import annotations

import json
import logging
import re
import shlex
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from io import BytesIO
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from warcmill.base import clock
from warcmill.errors import BadInput, NotReady, Unavailable, WarcmillError
from warcmill.model import Json
from warcmill.stores import LocalStore

FOLDER = "web/actions"
SHOWN = 65_536  # bytes of an output, its last ones
AT_ONCE = 4  # processes of actions that wait for their turn
LOOKED_AT = 300  # newest records, among which those of one job are looked for
_LARGEST = 1 << 20  # bytes of a record: names that are accepted may be many, and JSON escapes them
_ID = re.compile(r"[0-9]{14}-[0-9a-f]{12}")
_CODES = {
    0: "done, or done already",
    1: "the answer is no; its output has the reason",
    2: "the command was not understood",
    3: "luigi.cfg is wrong",
    4: "a disk or a server did not answer",
    5: "another process is doing this",
    25: "drained, or another process does the rest",
    70: "a fault of Warcmill itself",
}
_FAILED = "a step failed, or it was ended"
log = logging.getLogger(__name__)


class ActionVerb(Struct, frozen=True):
    """A row of the table. `words`: of the verb; `{...}` in one is filled in, and stays in that one word.

    `label`: on the button; `about`: what will happen, for who is about to press it.
    """

    label: str
    words: tuple[str, ...]
    about: str

    def filled(self, **values: str) -> tuple[str, ...]:
        """The words, with these values."""
        return tuple(word.format(**values) for word in self.words)


ACTIONS: Final[Mapping[str, ActionVerb]] = {
    "start": ActionVerb(
        "Start",
        ("pulse", "start", "{job}"),
        "Launches the crawl of the newest due time. A launch that still runs for an earlier one is stopped first.",
    ),
    "start again": ActionVerb(
        "Start",
        ("pulse", "start", "{job}", "--again"),
        "Launches one more crawl, due now, unless one is running.",
    ),
    "crawl": ActionVerb(
        "Archive",
        ("crawl", "--job={job}", "--", "{url}"),
        "Crawls the address and all below its folder, then brings it into the archive.",
    ),
    "checkpoint": ActionVerb(
        "Checkpoint",
        ("pulse", "checkpoint", "{job}"),
        "Takes a checkpoint of the running launch, and assembles the stage that it closes. The crawl goes on.",
    ),
    "stop": ActionVerb(
        "Stop",
        ("pulse", "stop", "{job}"),
        "Ends the running launch. If it has ended already, its end is recorded.",
    ),
    "pause": ActionVerb(
        "Pause",
        ("job", "{job}", "pause"),
        "Begins no more downloads, and lets those under way end. The crawl waits until it is resumed.",
    ),
    "resume": ActionVerb(
        "Resume",
        ("job", "{job}", "resume"),
        "Continues a crawl that is paused.",
    ),
    "delete": ActionVerb(
        "Delete",
        ("job", "{job}", "delete"),
        "Takes the job out of the list, and ends its schedule. All that it has archived stays, and its launches keep"
        " their pages. Its editions stay too: by them it is brought back.",
    ),
    "set": ActionVerb(
        "Set",
        ("job", "{job}", "set"),
        "Sets limits of the running launch, or its pace, at once.",
    ),
    "try": ActionVerb(
        "Try 50 pages",
        ("job", "{job}", "try", "--crawl", "--from={file}", "--id={id}"),
        "Asks for 50 pages at most, as a launch would, and archives nothing.",
    ),
    "retry": ActionVerb(
        "Ask again",
        ("job", "{job}", "retry", "--missed"),
        "Begins a launch that asks for each URL that the newest launch did not get, and no other launch got since.",
    ),
    "pages": ActionVerb(
        "Make the list",
        ("pages", "{job}", "{launch_id}", "--limit=0"),
        "Lists what this launch asked for, from its stored logs. Nothing in the archive is changed.",
    ),
    "wacz": ActionVerb(
        "Make a WACZ",
        ("wacz", "{job}", "{launch_id}", "-o", "{file}"),
        "Writes the launch as one file that replays in a browser, as at replayweb.page. What is hidden is left out. The"
        " file can be downloaded here for some days.",
    ),
    "check": ActionVerb(
        "Check",
        ("quality", "{job}", "{launch_id}"),
        "Opens the seeds and 20 other pages of this launch in replay, in Chromium with the network cut, and names what"
        " each lacks. It takes some seconds for each page. No site is asked.",
    ),
    "patch": ActionVerb(
        "Patch",
        ("quality", "{job}", "{launch_id}", "--patch"),
        "Starts a crawl of what the newest check found missing and a crawl can bring: these URLs, each with its parts."
        " Its job is one of its own, and its launch names this one.",
    ),
    "import": ActionVerb(
        "Import",
        ("import", "--job={job}", "--", "{file}"),
        "Makes a launch of the WARCs in the file. The next scan stores and verifies it, as any other. What was imported"
        " before is not imported again.",
    ),
    "scan": ActionVerb(
        "Scan",
        ("scan",),
        "Brings the last 7 days up to date: runs each step that is missing, then compares disk, packages and archive.",
    ),
    "accept": ActionVerb(
        "Accept",
        ("accept", "--launch", "{job}", "{launch_id}", "--reason={reason}"),
        "Records that you know of these findings and accept them. They are not gaps any more; each file stays as it was"
        " judged.",
    ),
    "hide": ActionVerb(
        "Hide",
        ("versions", "hide", "--reason={reason}", "--", "{entry}"),
        "Takes these captures out of search and replay, now and in each later version of the index. They stay in the"
        " store, and can be shown again.",
    ),
    "run script": ActionVerb(
        "Run",
        ("script", "start", "{job}/{name}"),
        "Has the crawl of the job call the script at its beginning: its method on_start.",
    ),
    "delete script": ActionVerb(
        "Delete",
        ("script", "delete", "{job}/{name}"),
        "Forgets the script, its tasks and its results, now and for ever. Its pages stay in the archive.",
    ),
    "again": ActionVerb(
        "Again",
        ("script", "again", "{job}/{name}", "--", "{key}"),
        "Has the crawl of the job visit the task once more, as soon as the pace of its script and its host allow it.",
    ),
    "close": ActionVerb(
        "Close",
        ("close", "{job}", "{launch_id}", "--reason={reason}"),
        "Records that the launch has ended, when its engine cannot. First make sure that the engine is gone: neither"
        " silence nor age proves it.",
    ),
}


class TakenAction(Struct, frozen=True):
    """An action as its record has it. `exit_code`: None while it runs, or if its end is unknown. Times are UTC text.

    `why`: the fault of a record that is broken; '' for a sound one.
    """

    id: str
    action: str = ""
    words: tuple[str, ...] = ()
    who: str = ""
    job: str = ""
    launch_id: str = ""
    started: str = ""
    finished: str = ""
    exit_code: int | None = None
    is_running: bool = False
    why: str = ""

    @property
    def command(self) -> str:
        """The words as they are typed; each of them is one line."""
        return command(self.words)

    @property
    def ending(self) -> str:
        """The end in words."""
        return "" if self.exit_code is None else f"exit code {self.exit_code}: {_CODES.get(self.exit_code, _FAILED)}"

    def json(self) -> dict[str, Json]:
        """The action in its record."""
        return {**self.record(), "id": self.id, "running": self.is_running, "why": self.why}

    def record(self) -> dict[str, Json]:
        """The action in its file."""
        texts = {name: getattr(self, name) for name in _TEXTS}
        return {**texts, "exit_code": self.exit_code, "words": list(self.words)}


_TEXTS = ("action", "who", "job", "launch_id", "started", "finished")


class Actions:
    """The actions of this server. `program`: the words that come before those of a verb."""

    def __init__(self, program: tuple[str, ...] = ("warcmill",)) -> None:
        self.program = program
        self._running: set[str] = set()
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(AT_ONCE)

    def start(self, state: LocalStore, wanted: TakenAction, *, in_turn: bool = False) -> None:
        """Start the process of an action, and record it; nothing happens if its id has a record already.

        Returns at once. Unavailable if the record cannot be written: then nothing was started. `in_turn`: one of many,
        whose process begins when others of these have ended.
        """
        if any("\0" in word for word in wanted.words):
            raise BadInput("the form", "no command takes a word with NUL in it")
        data = _record(wanted)
        with self._lock:
            if wanted.id in self._running:
                return
            self._running.add(wanted.id)
        try:
            if not state.commit_new(_path(wanted.id), BytesIO(data), len(data), lambda _: True):
                self._running.discard(wanted.id)
                return
            waiting = partial(self._in_turn, state, wanted)
            if not in_turn:
                waiting = partial(self._wait, state, wanted, self._process(state, wanted))
        except BaseException:
            self._running.discard(wanted.id)
            raise
        threading.Thread(target=waiting, name=f"action {wanted.id}", daemon=True).start()

    def _in_turn(self, state: LocalStore, wanted: TakenAction) -> None:
        """Start the process once it is its turn, and wait until it has ended."""
        with self._turns:
            self._wait(state, wanted, self._process(state, wanted))

    def _process(self, state: LocalStore, wanted: TakenAction) -> subprocess.Popen[bytes] | None:
        """The process, which outlives this one, and prints to a file; None if it could not be started."""
        path = state.real(f"{FOLDER}/{wanted.id}.log")
        try:
            with path.open("xb", buffering=0) as output:
                try:
                    return subprocess.Popen(  # noqa: S603 - the words of the table, never a shell
                        [*self.program, *wanted.words],
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                except OSError as error:
                    output.write(f"warcmill: {self.program[0]} does not run: {error.strerror}\n".encode())
        except OSError as error:
            log.error("%s: %s", path, error.strerror)
        return None

    def _wait(self, state: LocalStore, wanted: TakenAction, process: subprocess.Popen[bytes] | None) -> None:
        """Wait until the process has ended, and record that."""
        code = process.wait() if process else Unavailable.exit_code
        ended = replace(wanted, finished=clock.now(), exit_code=code if code >= 0 else 128 - code)
        try:
            state.replace(_path(wanted.id), _record(ended))
        except WarcmillError as error:
            log.error("action %s ended with %d, which was not recorded: %s", wanted.id, ended.exit_code, error)
        finally:
            self._running.discard(wanted.id)

    def is_running(self, action_id: str) -> bool:
        """True while the process of an action runs that this server has started."""
        return action_id in self._running

    def read(self, state: LocalStore, action_id: str) -> TakenAction | None:
        """An action; None if there is none of this id."""
        if not _ID.fullmatch(action_id):
            return None
        is_running = action_id in self._running  # asked first: its record is written before it leaves this set
        try:
            found = _parsed(action_id, state.read(_path(action_id), _LARGEST))
        except NotReady:
            return None
        except (Unavailable, ValueError, TypeError, KeyError, RecursionError) as error:
            return TakenAction(action_id, why=f"its record is broken: {error}")
        return replace(found, is_running=is_running and found.exit_code is None)

    def newest(self, state: LocalStore, most: int, job: str = "") -> list[TakenAction]:
        """The newest actions, the newest first: of any job, or of one."""
        names = sorted(state.names(FOLDER), reverse=True)
        ids = (name.removesuffix(".json") for name in names if name.endswith(".json"))
        found = (self.read(state, one) for one in islice(ids, LOOKED_AT))
        fit = (one for one in found if one and job in ("", one.job))
        return sorted(fit, key=lambda one: one.started or one.id, reverse=True)[:most]  # a form may have waited


def output_of(state: LocalStore, action_id: str) -> tuple[str, int]:
    """The last lines that an action has printed, and the number of all its bytes."""
    with suppress(NotReady):
        data, size = state.read_end(f"{FOLDER}/{action_id}.log", SHOWN)
        if size > len(data):
            data = data.partition(b"\n")[2] or data
        return data.decode("utf-8", "replace"), size
    return "", 0


def command(words: Sequence[str]) -> str:
    """Words as they are typed into a shell."""
    return " ".join(["warcmill", *map(_quoted, words)])


def _quoted(word: str) -> str:
    """A word for a shell; an option keeps its name outside the quotes, as people type it."""
    name, equals, value = word.partition("=")
    return f"{name}={shlex.quote(value)}" if equals and name.startswith("--") else shlex.quote(word)


def _path(action_id: str) -> str:
    return f"{FOLDER}/{action_id}.json"


def _record(action: TakenAction) -> bytes:
    return f"{json.dumps(action.record(), sort_keys=True)}\n".encode()


def _parsed(action_id: str, data: bytes) -> TakenAction:
    """The action in a record; ValueError, TypeError or KeyError for a broken one."""
    record = json.loads(data)
    texts, words, code = {name: record[name] for name in _TEXTS}, record["words"], record["exit_code"]
    if not isinstance(words, list) or not all(isinstance(text, str) for text in (*texts.values(), *words)):
        raise TypeError("a value that is not text")
    if not (code is None or type(code) is int):
        raise TypeError("an exit code that is not a number")
    return TakenAction(action_id, words=tuple(words), exit_code=code, **texts)
