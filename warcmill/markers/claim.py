"""Encode and decode a marker's content: a claim and a run.

The claim is deterministic: two honest runs of a step write the same one. The
run (host, times, tools) is not. The last line is the SHA-512 of all bytes
before it, so `head -n -1 MARKER | sha512sum` checks a marker by hand.
docs/markers.md describes the format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha512
from typing import Any, NoReturn

from msgspec import Struct, field

from warcmill.errors import BadInput, Foreign
from warcmill.model import FileRef, Item, Json, Key, Outcome

SCHEMA = 1
LARGEST = 256 << 20  # bytes; enough for a stage of a million WARCs

_OUTCOMES = {str(outcome): outcome for outcome in Outcome}  # asking the enumeration takes four times as long
_UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}  # from an older schema to the next; none yet


class Input(Struct, frozen=True, order=True):
    """A marker that a claim rests on: its path in the state root, and its claim's digest."""

    marker: str
    claim: str


class Claim(Struct, frozen=True):
    """The result of a step: every honest run of it writes the same claim."""

    key: Key
    inputs: tuple[Input, ...] = ()
    outputs: tuple[FileRef, ...] = ()
    items: tuple[Item, ...] = ()
    counts: Mapping[str, Json] = field(default_factory=dict)
    facts: Mapping[str, Json] = field(default_factory=dict)

    @property
    def stored(self) -> tuple[FileRef, ...]:
        """The files of the claim that are in the store: made from its items, or made as a whole."""
        made = (item.made for item in self.items if item.made)
        return (*made, *(file for file in self.outputs if file.root == "store"))


class Run(Struct, frozen=True):
    """Who did it, when and with what: differs from run to run. `by`: the person who states it; '' for a program."""

    host: str
    started: str
    finished: str
    tools: Mapping[str, str]
    by: str = ""


UNKNOWN = Run("", "", "", {})  # of a lost run, and in a zip of logs, whose bytes must follow from its logs alone


class SoundMarker(Struct, frozen=True):
    """The claim and run of a sound marker, as it was read."""

    claim: Claim
    run: Run


class Evidence(SoundMarker, frozen=True):
    """A sound marker that a claim may rest on. `digest` is its claim's SHA-512, in hex."""

    digest: str
    schema: int = SCHEMA


def claim_digest(claim: Claim) -> str:
    """Return the SHA-512, in hex, of the claim's canonical JSON."""
    return _digest(_claim_to_json(claim))


def of(claim: Claim) -> Evidence:
    """Return the evidence that a claim will be once it is published; its run is UNKNOWN."""
    return Evidence(claim, UNKNOWN, claim_digest(claim))


def encode(claim: Claim, run: Run) -> bytes:
    """Return the bytes of a marker."""
    document = {"schema": SCHEMA, "claim": _claim_to_json(claim), "run": run_to_json(run)}
    body = json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1).encode("utf-8") + b"\n"
    return body + sha512(body).hexdigest().encode() + b"\n"


def decode(data: bytes, path: str) -> Evidence:
    """Decode a marker. BadInput when it is cut or altered, Foreign when its schema is newer."""
    end = _end(data, path)
    document = _document(data[:end], path)
    try:
        schema = _upgrade(document, path)
        claim = document["claim"]
        return Evidence(_claim_from_json(claim), run_from_json(document["run"]), _digest(claim), schema)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(path, f"soundly digested, but no marker of schema {SCHEMA}: {error!r}") from error


def decode_record(data: bytes, path: str) -> SoundMarker:
    """Decode a marker that no claim will rest on. Raises as `decode` does, but takes no digest of the claim."""
    end = _end(data, path)
    document = _document(data[:end], path)
    try:
        _upgrade(document, path)
        return SoundMarker(_claim_from_json(document["claim"]), run_from_json(document["run"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(path, f"soundly digested, but no marker of schema {SCHEMA}: {error!r}") from error


def decode_head(data: bytes, path: str) -> tuple[Key, Run]:
    """Decode whose marker it is, and its run. Raises as `decode` does, but is faster: scans read thousands."""
    end = _end(data, path)
    document = _document(data[:end], path)
    try:
        _upgrade(document, path)
        return _key_from_json(document["claim"]), run_from_json(document["run"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(path, f"soundly digested, but no marker of schema {SCHEMA}: {error!r}") from error


def _end(data: bytes, path: str) -> int:
    """Return where the last line begins, once it is known to be the digest of all bytes before it."""
    if not data:
        raise BadInput(path, "the marker is empty")
    end = data.rfind(b"\n", 0, -1) + 1
    if data[end:] != sha512(memoryview(data)[:end]).hexdigest().encode() + b"\n":
        raise BadInput(path, "the marker's last line is not the SHA-512 of the lines before it: cut or altered", end)
    return end


def _document(body: bytes, path: str) -> dict[str, Any]:
    try:
        document = _DECODER.decode(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadInput(path, "not a JSON object")
    return document


def _no_float(text: str) -> NoReturn:
    raise ValueError(f"{text} is no integer; markers hold no floats")


# Made once: a month of launches has tens of thousands of markers.
_DECODER = json.JSONDecoder(parse_float=_no_float, parse_constant=_no_float)
_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _upgrade(document: dict[str, Any], path: str) -> int:
    written = document["schema"]
    if not isinstance(written, int) or written > SCHEMA:
        raise Foreign(path, f"written with schema {written}, this Warcmill reads up to {SCHEMA}; use the newer one")
    for schema in range(written, SCHEMA):
        document.update(_UPGRADES[schema](document))
    return written


def _digest(claim: Mapping[str, Any]) -> str:
    return sha512(_CANONICAL.encode(claim).encode("utf-8")).hexdigest()


def _claim_to_json(claim: Claim) -> dict[str, Any]:
    return {
        "task": claim.key.task,
        "params": dict(claim.key.params),
        "inputs": [{"marker": marker.marker, "claim": marker.claim} for marker in sorted(claim.inputs)],
        "outputs": [file_to_json(file) for file in sorted(claim.outputs, key=_place)],
        "items": [item_to_json(item) for item in sorted(claim.items, key=_item_place)],
        "counts": dict(claim.counts),
        "facts": dict(claim.facts),
    }


def _place(file: FileRef) -> tuple[str, str]:
    return file.root, file.path


def _item_place(item: Item) -> tuple[str, ...]:
    return (*_place(item.file), *(_place(item.made) if item.made else ()))


def _claim_from_json(data: dict[str, Any]) -> Claim:
    return Claim(
        key=_key_from_json(data),
        inputs=tuple(Input(marker["marker"], marker["claim"]) for marker in data["inputs"]),
        outputs=tuple(map(file_from_json, data["outputs"])),
        items=tuple(map(item_from_json, data["items"])),
        counts=data["counts"],
        facts=data["facts"],
    )


def _key_from_json(data: dict[str, Any]) -> Key:
    return Key(data["task"], tuple(sorted(data["params"].items())))


def run_to_json(run: Run) -> dict[str, Any]:
    """Return a run as markers, and the file beside a zip, contain it."""
    data = {"host": run.host, "started": run.started, "finished": run.finished, "tools": dict(run.tools)}
    return {**data, "by": run.by} if run.by else data


def run_from_json(data: Mapping[str, Any]) -> Run:
    """Return the run in a marker's JSON, or in the file beside a zip."""
    return Run(data["host"], data["started"], data["finished"], data["tools"], data.get("by", ""))


def file_to_json(file: FileRef) -> dict[str, Any]:
    """Return a file as markers and attempt files contain it."""
    data: dict[str, Any] = {"root": file.root, "path": file.path, "size": file.size}
    return data if file.sha512 is None else {**data, "sha512": file.sha512}


def file_from_json(data: dict[str, Any]) -> FileRef:
    """Return the file in a marker's JSON."""
    return FileRef(data["root"], data["path"], int(data["size"]), data.get("sha512"))


def item_to_json(item: Item) -> dict[str, Any]:
    """Return an item as markers and attempt files contain it; empty members are left out."""
    data: dict[str, Any] = {"file": file_to_json(item.file), "outcome": str(item.outcome)}
    made = {"made": file_to_json(item.made)} if item.made else {}
    rest = {"why": item.why or None, "offset": item.offset, "facts": dict(item.facts) or None}
    return data | made | {name: value for name, value in rest.items() if value is not None}


def item_from_json(data: dict[str, Any]) -> Item:
    """Return the item in a marker's JSON."""
    get, outcome = data.get, data["outcome"]
    made = get("made")
    return Item(
        file_from_json(data["file"]),
        _OUTCOMES.get(outcome) or Outcome(outcome),
        file_from_json(made) if made else None,
        get("why", ""),
        get("offset"),
        get("facts", {}),
    )
