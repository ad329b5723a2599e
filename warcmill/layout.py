"""Build and parse every name and path, without I/O. `chain` gives the names of markers.

state     {YYYY-MM}/{job}/{launch}/{marker}
store     {kind}/{job}/{launch}/{stored name}
          dumps/{job}/v{generation}/data_dumps/{data}/{FROM}-{TO}/{data}{number}.json.gz
output    kind-first  {kind}/{job}/{launch}/...
          job-first   {job}/{launch}/{kind}/...
jobs      {job}/job.log, {job}/{launch}/...
destination  ingest/{name}, staging/{name}.sending.json, receipts/{name}.receipt.json
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from datetime import timedelta
from enum import StrEnum
from functools import cache
from hashlib import sha256
from typing import Literal, NamedTuple

from msgspec import Struct

from warcmill import chain
from warcmill.base.clock import digits
from warcmill.errors import BadConfig, BadInput
from warcmill.model import Key, Launch, Root, Stage, Window, is_writer, parse_job, parse_stamp, stamp_time

Kind = Literal["warcs", "viral", "logs", "reports"]
KINDS: tuple[Kind, ...] = ("warcs", "viral", "logs", "reports")
SENTINEL = ".warcmill.json"
INGEST, STAGING, RECEIPTS = "ingest", "staging", "receipts"  # folders of the destination; the first one is watched
ARCHIVE = "state/_archive"  # no job is named so
_ATTEMPT = ".jsonl"
LONGEST_NAME = 255  # bytes: NAME_MAX of every supported file system, and of HDFS
NEVER_A_LAUNCH = re.compile(r"latest|checkpoints|action.*|state|scratch|requests|scripts|.*\.orphan")  # beside launches

_JOB, _STAMP = r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", r"[0-9]{14}"
_FIELDS = {
    "job": _JOB,
    "launch_id": _STAMP,
    "stage": rf"(?:final|cp[0-9]{{5}}-{_STAMP})",
    "finding": r"[0-9a-f]{16}",
    "due": _STAMP,
    "number": r"[0-9]{5}",
}


@cache
def _parser(pattern: str) -> re.Pattern[str]:
    fields = {name: f"(?P<{name}>{rule})" for name, rule in _FIELDS.items()}
    return re.compile(pattern.replace(".", r"\.").format(**fields))


_STAGE = re.compile(_FIELDS["stage"])
_SIP = re.compile(r"(?P<stage>[a-z0-9-]+)(\.(?P<number>[2-9]|[1-9][0-9]{1,8}))?\.tar")


@cache
def _by_first_word(rows: chain.Rows) -> dict[str, list[chain.Row]]:
    """The rows by the first word of their markers' names: a month of launches has tens of thousands of names."""
    found: dict[str, list[chain.Row]] = {}
    for row in rows:
        found.setdefault(row.marker.partition(".")[0], []).append(row)
    return found


def _pattern(task: str) -> str:
    return chain.by_task(chain.ROWS)[task].marker


def key(task: str, launch: Launch, **more: object) -> Key:
    """Return the key of a task of this launch: `key("files.Copy", launch, stage=stage)`."""
    params = {"job": launch.job, "launch_id": launch.id, **{name: str(value) for name, value in more.items()}}
    return Key(task, tuple(sorted(params.items())))


def step(word: str, launch: Launch, stage: Stage | str | None = None) -> Key:
    """Return the key of a step of a launch, or of one of its stages, by the word that operators type."""
    params = (("job", launch.job), ("launch_id", launch.id))
    return Key(chain.by_word(chain.ROWS)[word].task, params if stage is None else (*params, ("stage", str(stage))))


def launch_of(key: Key) -> Launch:
    """Return the launch of a key that has one."""
    return Launch.parse(key["job"], key["launch_id"])


def due_key(job: str, due: str) -> Key:
    """Return the key of a due crawl. Its marker is in the job's folder, as the launch does not exist yet."""
    return Key("pulse.StartJob", (("due", due), ("job", job)))


def feed_key(job: str, due: str) -> Key:
    """Return the key of the feed for a due crawl."""
    return Key("pulse.CrawlFeed", (("due", due), ("job", job)))


def feed_path(sha512: str) -> str:
    """Return the path of a feed in the state root, by the SHA-512 of its bytes."""
    return f"feeds/{sha512}.feed"


def folder_of(key: Key) -> str:
    """Return the folder of a key's marker in the state root."""
    params = dict(key.params)
    if "launch_id" in params:
        return f"{_month(params['launch_id'])}/{params['job']}/{params['launch_id']}"
    return f"{_month(params['due'])}/{params['job']}"


def next_launch_id(now: str, known: Iterable[str]) -> str:
    """Return the id of a job's next launch, from the time in 14 digits and the ids of those before: it is later than
    each of them, even when the clock was set back. Texts in `known` that are not ids do not count."""
    newest = max((text for text in known if _is_stamp(text)), default="")
    if now > newest:
        return now
    return digits(stamp_time(newest) + timedelta(seconds=1))


def _is_stamp(text: str) -> bool:
    try:
        return bool(parse_stamp(text))
    except BadInput:
        return False


def state_folder(launch: Launch) -> str:
    """Return the folder of a launch's markers in the state root."""
    return f"{_month(launch.id)}/{launch.job}/{launch.id}"


def _month(stamp: str) -> str:
    return f"{stamp[:4]}-{stamp[4:6]}"


def marker_name(key: Key) -> str:
    """Return the file name of a key's marker."""
    return _pattern(key.task).format(**dict(key.params))


def marker_path(key: Key) -> str:
    """Return the path of a key's marker in the state root."""
    return f"{folder_of(key)}/{marker_name(key)}"


def run_path(key: Key) -> str:
    """Return the path of the run beside a marker that is a zip, in the state root."""
    return f"{marker_path(key)}.run.json"


def parse_marker_name(name: str) -> Key | None:
    """Return the key whose marker has this name; None when it is not a marker's name."""
    for row in _by_first_word(chain.ROWS).get(name.partition(".")[0], ()):
        if match := _parser(row.marker).fullmatch(name):
            return Key(row.task, tuple(sorted(match.groupdict().items())))
    return None


def parse_marker_path(path: str) -> Key | None:
    """Return the key whose marker has this path; None for any other path."""
    key = parse_marker_name(path.rpartition("/")[2])
    return key if key and marker_path(key) == path else None


def stages_with(names: Iterable[str], task: str, launch: Launch) -> set[str]:
    """Return the stages, as text, that have a marker of `task`, from the names in the launch's state folder alone."""
    before, after = _pattern(task).format(job=launch.job, launch_id=launch.id, stage="/").split("/")
    ours = (name for name in names if name.startswith(before) and name.endswith(after))
    return {text for name in ours if _STAGE.fullmatch(text := name[len(before) : len(name) - len(after)])}


def attempts_folder(folder: str) -> str:
    """Return the folder of the attempts at the steps whose markers are in `folder`."""
    return f"{folder}/attempts"


def attempt_path(key: Key, stamp: str, host: str, pid: int) -> str:
    """Return the path of the file of one attempt at a step, in the state root."""
    return f"{attempts_folder(folder_of(key))}/{marker_name(key)}.{stamp}.{host}.{pid}{_ATTEMPT}"


def parse_attempt_name(name: str) -> Key | None:
    """Return the key of the step that an attempt's file belongs to; None when it is not an attempt's name."""
    marker, *rest = name.rsplit(".", 4)  # time, host, process, suffix
    return parse_marker_name(marker) if len(rest) == 4 and name.endswith(_ATTEMPT) else None


def report_path(launch: Launch, stage: Stage, kind: Literal["info", "package"]) -> str:
    """Return the path of a stage's report: for people to read, not evidence."""
    return f"{state_folder(launch)}/{launch.job}.{launch.id}.{stage}.{kind}.json"


def finding_id(name: str) -> str:
    """Return the 16 hex digits that stand for a finding's name in a marker's name."""
    return sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]


class OutputLayout(StrEnum):
    """The layout of an engine's output: set in the configuration, never guessed."""

    KIND_FIRST = "kind-first"
    JOB_FIRST = "job-first"

    def folder(self, kind: Kind, launch: Launch) -> str:
        """Return the folder of one kind of a launch's files in the output root."""
        if self is OutputLayout.KIND_FIRST:
            return f"{kind}/{launch.job}/{launch.id}"
        return f"{launch.job}/{launch.id}/{kind}"

    def kind_of(self, path: str) -> Kind:
        """Return the kind of a launch's file, from its path in the output root; BadInput when it has none."""
        parts = path.split("/")
        word = parts[0] if self is OutputLayout.KIND_FIRST else parts[2] if len(parts) > 2 else ""
        for kind in KINDS:
            if word == kind:
                return kind
        raise BadInput(path, f"not a path of the {self} layout: one of {', '.join(KINDS)} should stand in it")


def check_sentinel(root: Root, data: bytes, where: str) -> None:
    """Raise BadConfig unless `data`, the file at `where`, marks its folder as this root."""
    try:
        named = [_named(name) for name in json.loads(data)["roots"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadConfig(root, f"{where} is not the file that 'warcmill init' writes: {error!r}") from error
    if root_word(root) not in named:
        raise BadConfig(root, f"{where} marks this folder as '{_AND.join(named)}', not '{root}': correct luigi.cfg")


def root_word(root: Root) -> str:
    """Return a sentinel's word for a root: the same for all writers, so that a writer can be renamed."""
    return "writer" if is_writer(root) else root


def _named(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{name!r} is not a name of a root")
    return name


_AND = "' and '"
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~=+@-")


def stored_name(name: str) -> str:
    """Return a file's name in the store: bytes outside A-Z a-z 0-9 . _ ~ = + @ - are percent-encoded, so that
    no two names become one, not even NFC and NFD. `urllib.parse.unquote_to_bytes` decodes it."""
    raw = name.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in raw)


def shown(name: str) -> str:
    """Return a name as markers write it: unchanged when it is UTF-8, else as it would be stored."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return stored_name(name)
    return name


def stored_path(kind: str, launch: Launch, name: str) -> str:
    """Return the path of a file in the store; `kind` is warcs, viral, logs, sips or state."""
    return f"{kind}/{launch.job}/{launch.id}/{stored_name(name)}"


class DumpedData(StrEnum):
    """The data of a package index that a launch dumps: what distributions have, which files projects list, and the
    lives of files: events, and what was carried over from the generation before."""

    DISTRIBUTIONS = "python_distribution_data"
    STATE = "python_distribution_state"
    LIVES = "python_distribution_lives"


class DumpFile(NamedTuple):
    """One file of a dump."""

    job: str
    generation: int
    data: DumpedData
    window: Window
    number: int

    @property
    def path(self) -> str:
        """Its path in the store."""
        folder = f"{dumps_folder(self.job, self.generation)}/data_dumps/{self.data}/{self.window}"
        return f"{folder}/{self.data}{self.number:04d}.json.gz"


_DUMP_FILE = re.compile(
    rf"dumps/(?P<job>{_JOB})/v(?P<generation>[1-9][0-9]{{0,8}})/data_dumps/(?P<data>{'|'.join(DumpedData)})"
    r"/(?P<window>[0-9]+-[0-9]+)/(?P=data)(?P<number>[0-9]{4})\.json\.gz"
)


def dumps_folder(job: str, generation: int) -> str:
    """Return the folder in the store of a generation of a package index's dumps."""
    return f"dumps/{job}/v{generation}"


def parse_dump_path(path: str) -> DumpFile | None:
    """Return the parts of the path of a dump's file in the store; None for any other path."""
    parts = _DUMP_FILE.fullmatch(path)
    try:
        return (
            DumpFile(
                parse_job(parts["job"]),
                int(parts["generation"]),
                DumpedData(parts["data"]),
                Window.parse(parts["window"]),
                int(parts["number"]),
            )
            if parts
            else None
        )
    except BadInput:
        return None


def archived_path(path: str) -> str:
    """Return the path in the store of a state file that is of no launch: a list of a version, a decision."""
    return f"{ARCHIVE}/{path}"


def sip_name(launch: Launch, path: str) -> str:
    """Return the name of a SIP's file at the destination, from its path in the store."""
    return f"{launch.job}.{launch.id}.{path.rpartition('/')[2]}"


def parse_sip_name(name: str) -> tuple[Stage, int] | None:
    """Return the stage and the number of a SIP's file in the store; None when it is not a SIP's name."""
    match = _SIP.fullmatch(name)
    try:
        return (Stage.parse(match["stage"]), int(match["number"] or 1)) if match else None
    except BadInput:
        return None


def ingest_path(name: str) -> str:
    """Return the path in the destination where the ingesting system finds a SIP."""
    return f"{INGEST}/{name}"


def sending_path(name: str) -> str:
    """Return the path in the destination of the slip that a SIP is about to be handed over."""
    return f"{STAGING}/{name}.sending.json"


def receipt_path(name: str) -> str:
    """Return the path in the destination of the slip that a SIP has been handed over."""
    return f"{RECEIPTS}/{name}.receipt.json"


def why_unpublishable(name: str) -> str:
    """Return why a name cannot be used in the store; empty when it can."""
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
RESULTS_LOG = "results.jsonl"
"""A log of launches that serve requests: see `warcmill.requests.serving.results`."""


def split_log_name(name: str) -> tuple[str, str]:
    """Return a log's plain name and its stage as text: `crawl.log.cp00001-...`, or `crawl.log` for `final`."""
    parts = _LOG_SUFFIX.fullmatch(name)
    if not parts:
        return name, "final"
    try:
        Stage.parse(parts["stage"])
    except BadInput:
        return name, "final"  # digits that are not a real time
    return parts["log"], parts["stage"]


_CRAWL_LOG = re.compile(r"crawl\.log(?:\.(?:(?P<stamp>[0-9]{14})|(?P<number>[0-9]{1,3})))?(?P<gz>\.gz)?")


def crawl_log_order(plain: str) -> tuple[int, str, int, bool] | None:
    """Return the sort key of a crawl log in its stage, oldest first, by its plain name. None: its lines do not count.

    Rotated logs have a stamp, or a number counted from the newest; the one with neither is the newest.
    """
    parts = _CRAWL_LOG.fullmatch(plain)
    if not parts:
        return None
    stamp, number = parts["stamp"] or "", int(parts["number"] or -1)
    return (0 if stamp else 1, stamp, -number, not parts["gz"])


def is_crawl_log(plain: str) -> bool:
    """True if a log's plain name begins like a crawl log's. `crawl_log_order` decides whether its lines count."""
    return plain.startswith("crawl.log")


def is_log_name(name: str) -> bool:
    """True if a file in a log folder is a log: locks and leftovers are not."""
    return not is_leftover(name)


def is_leftover(name: str) -> bool:
    """True if it is an engine's lock, or what the built-in crawler cut off after a kill: its books know none of it."""
    return name.endswith((".lck", ".orphan"))


def is_warc_name(name: str) -> bool:
    """True if a name is `*.warc` or `*.arc`, with or without `.gz` and `.open`, in upper or lower case."""
    return _WARC.fullmatch(name) is not None


def is_prefix(text: str) -> bool:
    """True if a crawl log's `warcPrefix` is valid: 4 to 200 letters, digits and . _ ~ = + @ -."""
    return _PREFIX.fullmatch(text) is not None


def prefixes_of(name: str, known: Collection[str]) -> list[str]:
    """Return the known prefixes that a name begins with. A prefix ends before a dash, an underscore or a dot."""
    ends = (place for place, char in enumerate(name) if char in "-_.")
    return [name[:end] for end in ends if name[:end] in known]


def name_time(name: str) -> str:
    """Return the first time in a name, of 14 or 17 digits, as 14 digits; '' when there is none."""
    time = _TIME.search(name)
    return time[1] if time else ""


def final_name(name: str) -> str:
    """Return a WARC's final name, without `.open`, as crawl logs always give it."""
    return _OPEN.sub("", name)


class Serial(Struct, frozen=True, order=True):
    """The parts of a WARC's name that number it: `prefix-time-serial-pid~host~port.warc.gz`."""

    prefix: str
    writer: str
    number: int


def warc_serial(name: str) -> Serial | None:
    """Return the serial in a WARC's name; None for a name of another form."""
    parts = _SERIAL.fullmatch(name)
    return Serial(parts["prefix"], parts["writer"], int(parts["serial"])) if parts else None
