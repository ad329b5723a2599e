"""Names and paths: every one is built here and parsed here, without I/O. Markers' names are those of `chain`.

state     {YYYY-MM}/{job}/{launch}/{marker}
store     {kind}/{job}/{launch}/{stored name}
output    kind-first  {kind}/{job}/{launch}/...
          job-first   {job}/{launch}/{kind}/...
jobs      {job}/job.log, {job}/{launch}/...
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from hashlib import sha256
from typing import Literal

from warcmill import chain
from warcmill.errors import BadInput
from warcmill.model import Key, Launch, Stage

Kind = Literal["warcs", "viral", "logs", "reports"]
KINDS: tuple[Kind, ...] = ("warcs", "viral", "logs", "reports")
SENTINEL = ".warcmill.json"
LONGEST_NAME = 255  # bytes: NAME_MAX of every file system that the line meets, and of HDFS
NEVER_A_LAUNCH = re.compile(r"latest|checkpoints|action.*|state|scratch|.*\.orphan")  # engines keep these beside

_JOB, _STAMP = r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", r"[0-9]{14}"
_FIELDS = {
    "job": _JOB,
    "launch_id": _STAMP,
    "stage": rf"(?:final|cp[0-9]{{5}}-{_STAMP})",
    "finding": r"[0-9a-f]{16}",
    "due": _STAMP,
    "number": r"[0-9]{5}",
}


def _parser(pattern: str) -> re.Pattern[str]:
    fields = {name: f"(?P<{name}>{rule})" for name, rule in _FIELDS.items()}
    return re.compile(pattern.replace(".", r"\.").format(**fields))


_STAGE = re.compile(_FIELDS["stage"])


@cache
def _parsers(rows: chain.Rows) -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """What reads names of markers, by the words that a name begins with, up to its job."""
    parsers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for row in rows:
        parsers.setdefault(row.marker.partition("{")[0], []).append((row.task, _parser(row.marker)))
    return parsers


def _pattern(task: str) -> str:
    return chain.by_task(chain.ROWS)[task].marker


def key(task: str, launch: Launch, **more: object) -> Key:
    """The key of a task of this launch: `key("files.Copy", launch, stage=stage)`."""
    params = {"job": launch.job, "launch_id": launch.id, **{name: str(value) for name, value in more.items()}}
    return Key(task, tuple(sorted(params.items())))


def step(word: str, launch: Launch, stage: Stage | str | None = None) -> Key:
    """The key of a step of a launch, or of one of its stages, by the word that operators type."""
    task = chain.by_word(chain.ROWS)[word].task
    return key(task, launch) if stage is None else key(task, launch, stage=stage)


def launch_of(key: Key) -> Launch:
    """The launch a key speaks of."""
    return Launch.parse(key["job"], key["launch_id"])


def due_key(job: str, due: str) -> Key:
    """The key of a due crawl: it is asked for before there is a launch, so its marker lies in the job's folder."""
    return Key("pulse.StartJob", (("due", due), ("job", job)))


def feed_key(job: str, due: str) -> Key:
    """The key of the feed by which a due crawl is crawled."""
    return Key("pulse.CrawlFeed", (("due", due), ("job", job)))


def feed_path(sha512: str) -> str:
    """Where a feed is kept in the state root, by the digest of its bytes."""
    return f"feeds/{sha512}.feed"


def folder_of(key: Key) -> str:
    """Where a key's marker lies in the state root."""
    params = dict(key.params)
    if "launch_id" in params:
        return f"{_month(params['launch_id'])}/{params['job']}/{params['launch_id']}"
    return f"{_month(params['due'])}/{params['job']}"


def state_folder(launch: Launch) -> str:
    """Where a launch's markers lie in the state root."""
    return f"{_month(launch.id)}/{launch.job}/{launch.id}"


def _month(stamp: str) -> str:
    return f"{stamp[:4]}-{stamp[4:6]}"


def marker_name(key: Key) -> str:
    """The file name of a key's marker."""
    return _pattern(key.task).format(**dict(key.params))


def marker_path(key: Key) -> str:
    """The path of a key's marker in the state root."""
    return f"{folder_of(key)}/{marker_name(key)}"


def run_path(key: Key) -> str:
    """Where the run of a marker that is a zip lies beside it in the state root."""
    return f"{marker_path(key)}.run.json"


def parse_marker_name(name: str) -> Key | None:
    """The key whose marker is so named; None when the name is no marker's."""
    for begin, some in _parsers(chain.ROWS).items():
        if not name.startswith(begin):
            continue  # a month of launches has tens of thousands of names
        for task, pattern in some:
            if found := pattern.fullmatch(name):
                return Key(task, tuple(sorted(found.groupdict().items())))
    return None


def parse_marker_path(path: str) -> Key | None:
    """The key whose marker lies at this path; None for any other path."""
    found = parse_marker_name(path.rpartition("/")[2])
    return found if found and marker_path(found) == path else None


def stages_with(names: Iterable[str], task: str, launch: Launch) -> set[str]:
    """The stages, as text, of which a launch has a marker of `task`: by the names in its state folder alone."""
    before, after = _pattern(task).format(job=launch.job, launch_id=launch.id, stage="/").split("/")
    ours = (name for name in names if name.startswith(before) and name.endswith(after))
    return {text for name in ours if _STAGE.fullmatch(text := name[len(before) : len(name) - len(after)])}


def report_path(launch: Launch, stage: Stage, kind: Literal["info", "package"]) -> str:
    """The path of a stage's readable report: a file to look at, not evidence."""
    return f"{state_folder(launch)}/{launch.job}.{launch.id}.{stage}.{kind}.json"


def finding_id(name: str) -> str:
    """Sixteen hex digits that stand for a finding's name in a marker's name."""
    return sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]


class OutputLayout(StrEnum):
    """How the engine lays out its output: chosen in configuration, never sniffed."""

    KIND_FIRST = "kind-first"
    JOB_FIRST = "job-first"

    def folder(self, kind: Kind, launch: Launch) -> str:
        """Where files of one kind of a launch lie in the output root."""
        if self is OutputLayout.KIND_FIRST:
            return f"{kind}/{launch.job}/{launch.id}"
        return f"{launch.job}/{launch.id}/{kind}"

    def kind_of(self, path: str) -> Kind:
        """The kind of a file of a launch, from its path in the output root."""
        parts = path.split("/")
        word = parts[0] if self is OutputLayout.KIND_FIRST else parts[2] if len(parts) > 2 else ""
        for kind in KINDS:
            if word == kind:
                return kind
        raise BadInput(path, f"not a path of the {self} layout: one of {', '.join(KINDS)} should stand in it")


_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~=+@-")


def stored_name(name: str) -> str:
    """A file's name in the store: bytes outside A-Z a-z 0-9 . _ ~ = + @ - percent-encoded, so that
    no two names, NFC and NFD included, fold into one. Undone by `urllib.parse.unquote_to_bytes`."""
    raw = name.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in raw)


def shown(name: str) -> str:
    """A name as markers write it: as it is when it is UTF-8, else as it would be stored."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return stored_name(name)
    return name


def stored_path(kind: str, launch: Launch, name: str) -> str:
    """The path of a file in the store; `kind` is warcs, viral, logs, sips or state."""
    return f"{kind}/{launch.job}/{launch.id}/{stored_name(name)}"


def why_unpublishable(name: str) -> str:
    """Why a name cannot be carried into the store; empty when it can."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return f"its name is not UTF-8: {stored_name(name)}"
    length = len(stored_name(name))
    return f"its name is {length} bytes in the store, {LONGEST_NAME} is the limit" if length > LONGEST_NAME else ""


_LOG_SUFFIX = re.compile(r"(?P<log>.+)\.(?P<stage>cp[0-9]{5}-[0-9]{14})")
_WARC = re.compile(r".+\.w?arc(\.gz)?(\.open)?", re.DOTALL | re.IGNORECASE)
_OPEN = re.compile(r"\.open\Z", re.IGNORECASE)
_SERIAL = re.compile(
    r"(?P<prefix>.+)-(?P<time>[0-9]{14}|[0-9]{17})-(?P<serial>[0-9]{5,})-(?P<writer>[^-].*)\.w?arc(\.gz)?(\.open)?",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~=+@-]{3,199}")
_TIME = re.compile(r"(?<![0-9])([0-9]{14})(?:[0-9]{3})?(?![0-9])")
ENGINE_LOGS = (
    "alerts.log",
    "crawl.log",
    "frontier.recover.gz",
    "nonfatal-errors.log",
    "progress-statistics.log",
    "runtime-errors.log",
    "uri-errors.log",
)


def split_log_name(name: str) -> tuple[str, str]:
    """A log's plain name and the text of its stage: `crawl.log.cp00001-...` or `crawl.log` of `final`."""
    found = _LOG_SUFFIX.fullmatch(name)
    if not found:
        return name, "final"
    try:
        Stage.parse(found["stage"])
    except BadInput:
        return name, "final"  # a time that no calendar knows
    return found["log"], found["stage"]


_CRAWL_LOG = re.compile(r"crawl\.log(?:\.(?:(?P<stamp>[0-9]{14})|(?P<number>[0-9]{1,3})))?(?P<gz>\.gz)?")


def crawl_log_order(plain: str) -> tuple[int, str, int, bool] | None:
    """Where a crawl log stands among those of its stage, by its plain name: oldest first. None: its lines do not count.

    Rotated ones are stamped, or numbered from the newest; the one without either is written last.
    """
    found = _CRAWL_LOG.fullmatch(plain)
    if not found:
        return None
    stamp, number = found["stamp"] or "", int(found["number"] or -1)
    return (0 if stamp else 1, stamp, -number, not found["gz"])


def is_crawl_log(plain: str) -> bool:
    """Whether a log's plain name begins as a crawl log's does; `crawl_log_order` tells whether its lines count."""
    return plain.startswith("crawl.log")


def is_log_name(name: str) -> bool:
    """Locks and leftovers in a log folder are not logs."""
    return not name.endswith((".lck", ".orphan"))


def is_warc_name(name: str) -> bool:
    """`*.warc` or `*.arc`, also `.gz`, also still `.open`, in any case."""
    return _WARC.fullmatch(name) is not None


def is_prefix(text: str) -> bool:
    """Whether a crawl log's `warcPrefix` can be one: 4 to 200 letters, digits and . _ ~ = + @ -."""
    return _PREFIX.fullmatch(text) is not None


def prefixes_of(name: str, known: Collection[str]) -> list[str]:
    """Which of the known prefixes a name begins with. A prefix ends before a dash, an underscore or a dot."""
    ends = (place for place, char in enumerate(name) if char in "-_.")
    return [name[:end] for end in ends if name[:end] in known]


def name_time(name: str) -> str:
    """The first time in a name, 14 digits or 17, as 14; '' when there is none."""
    found = _TIME.search(name)
    return found[1] if found else ""


def closed_name(name: str) -> str:
    """The name a WARC has, or will have, once closed: as crawl logs always give it."""
    return _OPEN.sub("", name)


@dataclass(frozen=True, order=True, slots=True)
class Serial:
    """The counting parts of a WARC's name: `prefix-time-serial-pid~host~port.warc.gz`."""

    prefix: str
    writer: str
    number: int


def warc_serial(name: str) -> Serial | None:
    """The serial in a WARC's name; None for names of another make."""
    found = _SERIAL.fullmatch(name)
    return Serial(found["prefix"], found["writer"], int(found["serial"])) if found else None
