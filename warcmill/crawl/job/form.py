"""The form of a job: its papers as a curator reads and changes them, field by field, and back. Pure.

Each field is a text, as a person types it. Only what a field changes is written: each other key of crawl.toml, its
order and its comments stay as they are. So a form that nobody has changed gives the very papers that it was made of.
The fields are those of the page, of `warcmill job NAME edit --from FILE`, and of its `--json`.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

import tomlkit
from msgspec import Struct
from msgspec.structs import asdict
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Item

from warcmill.base.escapes import nearest
from warcmill.crawl.job import address_list, file, rules, text
from warcmill.crawl.job.file import EXCLUDE, SEEDS, SURTS
from warcmill.crawl.job.values import ABOUT, CONFIGURATION, toml_of
from warcmill.crawl.render import WHICH
from warcmill.crawl.uri import canonical
from warcmill.errors import BadConfig, BadInput
from warcmill.formats import surt
from warcmill.formats.feed import TargetScope
from warcmill.formats.seeds import SEED_LIST
from warcmill.formats.targets import PageReach, prefixes_of

PAPERS = (CONFIGURATION, SEEDS, SURTS, EXCLUDE)
PAGES, LINKED, FOLDER, HOST, DOMAIN, LISTED = KEEPS = ("pages", "linked", "folder", "host", "domain", "listed")
"""The answers to what is kept: these pages; what they link to, too; their folders, hosts or domains; what a list of
prefixes has."""
SHOWN = 20  # lines of a list that are named in one message
LARGEST = 1 << 18  # bytes of a crawl.toml, without its [pages]
_REACHES = {PAGES: PageReach.RESOURCE, LINKED: PageReach.PLUS1}
_UNITS = {
    "bytes": (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3), ("B", 1)),
    "seconds": (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)),
}
_QUANTITY = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,3}))?\s*([A-Za-z]{0,7})")
_WORDS = {
    "day": "d", "days": "d", "hour": "h", "hours": "h", "m": "min", "minute": "min", "minutes": "min", "second": "s",
    "seconds": "s", "sec": "s",
}  # fmt: skip
_PAGES_HEAD = re.compile(r"^\[pages\][ \t]*(?:#[^\n]*)?\n", re.MULTILINE)
_NEXT_HEAD = re.compile(r"^[ \t]*\[", re.MULTILINE)
_head_of = re.compile(r"\s*+\[\[?+([A-Za-z_.\s]++)\]").match
_BLANKS, _SEPARATORS = re.compile(r"\s"), re.compile(r"[,\n]")
_is_decimal = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?").fullmatch
_LINE_OF_FAULT = re.compile(r"\(at line ([0-9]+), column [0-9]+\)")
_PLACE = re.compile(r"(?:\[\[?+([A-Za-z_]++)\]\]?+)?+(?: ?+([0-9]++))?+(?: ?+\[([a-z_]++)\])?+(?: ?+([a-z_]++))?+")
OF_OPERATORS = (
    "allow_private", "no_delay", "resolve", "name_servers", "policies", "[render] cookies", "[render] behaviors",
    "[render] sandbox",
)  # fmt: skip
"""The keys that only an operator sets: they reach inside addresses, files of this machine, or code."""
WAITING = (
    "contact", "allow_private", "resolve", "name_servers", "workers", "warc_size", "checkpoint_hours", "policies",
    "scope_log", "results_log", "traps", "politeness.at_once",
)  # fmt: skip
"""The keys that a launch reads when it begins; it takes each other one at once."""


class JobForm(Struct, frozen=True):
    """The fields. `addresses`: seeds.txt. `prefixes`: surts.txt, which counts where `keep` is `listed`. `leave_out`:
    rules, as `rules` reads them. `extensions`, `tags` and `allow_private` are lists, separated by commas; the numbers
    and amounts are '' where none is set."""

    title: str = ""
    description: str = ""
    tags: str = ""
    owner: str = ""
    addresses: str = ""
    keep: str = FOLDER
    prefixes: str = ""
    leave_out: str = ""
    extensions: str = ""
    hops: str = ""
    documents: str = ""
    bytes: str = ""
    seconds: str = ""
    render: str = WHICH[0]
    workers: str = ""
    least: str = ""
    contact: str = ""
    robots: str = "obey"
    allow_private: str = ""

    def changed(self, wanted: Mapping[str, str]) -> JobForm:
        """The form with some other fields. BadInput for a field that there is not."""
        known = asdict(self)
        for name in wanted:
            if name not in known:
                meant = nearest(name, known)
                ask = f"did you mean {meant}? There" if meant else "there"
                raise BadInput(name, f"there is no such field; {ask} are {', '.join(known)}")
        return JobForm(**{**known, **wanted})

    def differences(self, other: JobForm) -> list[str]:
        """The names of the fields that are others there."""
        here, there = asdict(self), asdict(other)
        return [name for name in here if here[name] != there[name]]


class _Field(Struct, frozen=True):
    """A field that is one key of crawl.toml: its table, '' for none; how its value is read, and written as a text."""

    table: str
    key: str
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str


# The papers as a form


def of_papers(files: Mapping[str, bytes]) -> JobForm:
    """The form of a job's papers. BadConfig for a crawl.toml that is not TOML, or a value that no field can show."""
    keys = toml_of(files.get(CONFIGURATION, b""))
    fields = {name: _shown(keys, one) for name, one in _FIELDS.items()}
    prefixes = _decoded(files, EXCLUDE)
    patterns = map(rules.rule_of, _texts(keys, "patterns"))
    return JobForm(
        addresses=_decoded(files, SEEDS),
        keep=_keep(keys, files),
        prefixes=_decoded(files, SURTS),
        leave_out="".join(f"{line}\n" for line in (*patterns, *filter(None, map(_plain, prefixes.splitlines())))),
        **{name: shown for name, shown in fields.items() if shown is not None},
    )


def _shown(keys: Mapping[str, Any], one: _Field) -> str | None:
    """The text of a key; None where it is not set."""
    table = keys.get(one.table, {}) if one.table else keys
    value = table.get(one.key) if isinstance(table, dict) else None
    if value is None:
        return None
    try:
        return one.write(value)
    except (TypeError, ValueError) as error:
        where = f"[{one.table}] {one.key}" if one.table else one.key
        raise BadConfig(f"{CONFIGURATION} {where}", f"is {value!r}, which this form cannot show") from error


def _keep(keys: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    """The answer to what is kept; `listed` where the prefixes are none that the seeds give."""
    seeds, surts = _seeds(_decoded(files, SEEDS)), {*filter(None, map(_plain, _decoded(files, SURTS).splitlines()))}
    pages = keys.get("pages", {})
    for keep in KEEPS[:-1] if seeds else ():
        if surts == {*_prefixes(seeds, keep)} and pages == _pages(seeds, keep):
            return keep
    return LISTED


def _plain(line: str) -> str:
    """A prefix of surts.txt or exclude.txt; '' for a comment."""
    line = line.strip()
    return "" if line.startswith("#") else line.removeprefix("+").strip()


def _decoded(files: Mapping[str, bytes], name: str) -> str:
    return address_list.decoded(files.get(name, b""), name) if len(files.get(name, b"")) else ""


def _seeds(addresses: str) -> list[str]:
    """The addresses of a seeds.txt, as prefixes and pages are made of them; an invalid one has none."""
    found = dict[str, None]()
    for line in map(str.strip, addresses.splitlines()):
        if line and not line.startswith("#"):
            with suppress(BadInput):  # the crawl names it in uri-errors.log
                found[canonical(line)] = None
    return [*found]


def _prefixes(seeds: Sequence[str], keep: str) -> list[str]:
    found = dict[str, None]()
    for seed in seeds:
        with suppress(ValueError):  # one that the crawl names in uri-errors.log
            found |= dict.fromkeys(_PREFIXES[keep](seed))
    return [*found]


def _of_host(seed: str) -> list[str]:
    root = seed.partition("://")[0] + "://" + seed.partition("://")[2].partition("/")[0] + "/"
    return [surt.folder_prefix(url) for url in surt.with_and_without_www(root)]


_PREFIXES: Mapping[str, Callable[[str], list[str]]] = {
    PAGES: lambda _: [],
    LINKED: lambda _: [],
    FOLDER: partial(prefixes_of, scope=TargetScope.ROOT),
    HOST: _of_host,
    DOMAIN: partial(prefixes_of, scope=TargetScope.SUBDOMAINS),
}


def _pages(seeds: Sequence[str], keep: str) -> dict[str, str]:
    return dict.fromkeys(seeds, _REACHES[keep].value) if keep in _REACHES else {}


# A form as papers


def papers(form: JobForm, before: Mapping[str, bytes]) -> dict[str, bytes]:
    """The papers of a form that was made of those `before`. All that no field has changed keeps its bytes.

    BadInput names the field of what cannot be taken, and its line in a list. The first line by which `warcmill crawl`
    marks a crawl.toml as its own goes with the first change.
    """
    old = of_papers(before) if before else JobForm()
    changed = {*form.differences(old)}
    if before and not changed:
        return dict(before)
    files = {name: data for name, data in before.items() if name in PAPERS}
    edits: dict[tuple[str, str], Any] = {
        (one.table, one.key): value(name, getattr(form, name)) for name, one in _FIELDS.items() if name in changed
    }
    if "leave_out" in changed:
        try:
            left_out = rules.read(form.leave_out)
        except BadInput as error:
            raise BadInput("leave_out", f"{error.path}: {error.why}") from error
        if "".join(f"{rules.rule_of(one)}\n" for one in left_out.patterns) != _patterns(old):
            edits["", "patterns"] = [*left_out.patterns] or None
        files[EXCLUDE] = _with_prefixes(_decoded(before, EXCLUDE), left_out.prefixes).encode()
    if "addresses" in changed:
        files[SEEDS] = (addresses := _written(form.addresses)).encode()
    else:
        addresses = form.addresses
    if form.keep not in KEEPS:
        raise BadInput("keep", f"{form.keep!r} is none of {', '.join(KEEPS)}")
    pages: dict[str, str] | None = None
    if {"addresses", "keep", "prefixes"} & changed:
        if form.keep == LISTED:
            files[SURTS] = form.prefixes.replace("\r\n", "\n").encode()
        else:
            seeds = _seeds(addresses)
            files[SURTS], pages = _lines(f"+{one}" for one in _prefixes(seeds, form.keep)), _pages(seeds, form.keep)
    written = files.get(CONFIGURATION, b"").decode("utf-8-sig").removeprefix(text.HEAD)
    files[CONFIGURATION] = edited(written, edits, pages).encode()
    return {name: data for name, data in files.items() if data or name in (CONFIGURATION, SEEDS)}


def _written(typed: str) -> str:
    """A seeds.txt of the addresses of a list; comments and empty lines stay. BadInput names each line without one."""
    found = address_list.read(typed)
    if found.wrong:
        more = f"; and {len(found.wrong) - SHOWN:,} more" if len(found.wrong) > SHOWN else ""
        raise BadInput("addresses", "; ".join(one.words for one in found.wrong[:SHOWN]) + more)
    urls = {one.line: one.url for one in found.found}
    lines = (
        urls.get(number) if (plain := line.strip()) and not plain.startswith("#") else plain
        for number, line in enumerate(typed.splitlines(), start=1)
    )
    return "".join(f"{line}\n" for line in lines if line is not None)


def _with_prefixes(before: str, wanted: Sequence[str]) -> str:
    """An exclude.txt with these prefixes; the lines of those that it has stay, and its comments."""
    lines = [line for line in before.splitlines(keepends=True) if not (plain := _plain(line)) or plain in wanted]
    known = {*map(_plain, lines)}
    text_before = "".join(lines)
    end = "\n" if text_before and not text_before.endswith("\n") else ""
    return text_before + end + "".join(f"{one}\n" for one in wanted if one not in known)


def _patterns(form: JobForm) -> str:
    return "".join(
        f"{line}\n" for line in form.leave_out.splitlines() if not line.startswith(("http://(", "https://("))
    )


def _lines(lines: Any) -> bytes:
    return "".join(f"{line}\n" for line in dict.fromkeys(lines)).encode()


def value(name: str, typed: str) -> Any:
    """The value of a field as crawl.toml has it; None takes the key away. BadInput names the field."""
    typed = typed.strip()
    if not typed:
        return None
    try:
        return _FIELDS[name].read(typed)
    except ValueError as error:
        raise BadInput(name, str(error)) from error


def edited(written: str, edits: Mapping[tuple[str, str], Any], pages: Mapping[str, str] | None = None) -> str:
    """A crawl.toml with some other values: by table, '' for none, and key; None takes a key away. `pages`: its
    [pages], None to leave them. Comments and order stay.

    BadConfig, and nothing is done, for a file that is written so that more would change.
    """
    wanted = toml_of(written.encode())
    is_whole = pages is None and len(written) <= LARGEST
    body, own_pages = (written, "") if is_whole else _without_pages(written, wanted)
    if len(body) > LARGEST:
        raise BadConfig(CONFIGURATION, f"it has {len(body):,} letters besides its pages; {LARGEST:,} are the most here")
    try:
        document = tomlkit.parse(body)
        for (table, key), value in sorted(edits.items(), key=lambda one: one[1] is None):  # so no table is empty
            _set(document, wanted, table, key, value)
        body = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise BadConfig(CONFIGURATION, f"edit it by hand, it is unusual: {error}") from error
    if pages is None:
        after = f"{body.rstrip()}\n\n{own_pages}".lstrip("\n") if own_pages else body
    else:
        wanted = {key: one for key, one in wanted.items() if key != "pages"} | ({"pages": {**pages}} if pages else {})
        if "pages" in toml_of(body.encode()):
            raise BadConfig(CONFIGURATION, "its [pages] are written in an unusual way; edit them by hand")
        shown = text.render({"pages": {**pages}}, "").lstrip("\n") if pages else ""
        after = f"{body.rstrip()}\n\n{shown}".lstrip("\n") if shown else body
    if toml_of(after.encode()) != wanted:
        raise BadConfig(CONFIGURATION, "more would change than this form says; edit it by hand, as it is unusual")
    return after


def _without_pages(written: str, keys: Mapping[str, Any]) -> tuple[str, str]:
    """A crawl.toml without its table [pages], which may be very long, and that table; all of it where the table is
    not one by itself."""
    heads = [*_PAGES_HEAD.finditer(written)]
    if len(heads) == 1:
        begin = heads[0].start()
        following = _NEXT_HEAD.search(written, heads[0].end())
        end = following.start() if following else len(written)
        body = written[:begin] + written[end:]
        try:
            found = tomllib.loads(body)
        except tomllib.TOMLDecodeError:
            return written, ""
        if found == {key: one for key, one in keys.items() if key != "pages"}:
            return body, written[begin:end]
    return written, ""


def _set(document: tomlkit.TOMLDocument, wanted: dict[str, Any], table: str, key: str, value: Any) -> None:
    """Set a key, or take it away; a table that is empty then goes too. `wanted`: the same, as plain values."""
    place = cast("dict[str, Any]", wanted.setdefault(table, {}) if table else wanted)
    if not isinstance(place, dict):
        raise BadConfig(f"{CONFIGURATION} [{table}]", "it is not a table; edit it by hand")
    if value is not None:
        place[key] = value
        if table and table not in document:
            document[table] = tomlkit.table()
        (cast("Any", document[table]) if table else document)[key] = _item(value)
    elif key in place:
        del place[key]
        (cast("Any", document[table]) if table else document).remove(key)
    if table and not place:
        del wanted[table]
        if table in document:
            document.remove(table)


def _item(value: Any) -> Item:
    item = tomlkit.item(value)
    return item.multiline(True) if isinstance(item, tomlkit.items.Array) and len(value) > 3 else item


# What is checked


def check(files: Mapping[str, bytes], name: str) -> None:
    """BadInput for papers by which the job could not be crawled; for a fault of crawl.toml with its line."""
    try:
        file.parse(files, name)
    except BadConfig as error:
        paper = next((one for one in PAPERS if error.key.startswith(one)), CONFIGURATION)
        line = line_of(files.get(paper, b"").decode("utf-8", "replace"), error) if paper == CONFIGURATION else 0
        where = f"{paper}, line {line}" if line else paper
        rest = error.key.removeprefix(paper).strip()
        raise BadInput(where, f"{rest}: {error.why}" if rest else error.why) from error


def line_of(written: str, error: BadConfig) -> int:
    """The line of a crawl.toml that an error is about; 0 where it is about none."""
    if found := _LINE_OF_FAULT.search(error.why):
        return int(found[1])
    place = _PLACE.match(error.key.removeprefix(CONFIGURATION).strip())
    table, number, inner, key = place.groups() if place else (None, None, None, None)
    wanted = [name for name in (table, inner, key) if name]
    section, heads, nearest_line = "", Counter[str](), 0
    for line_number, line in enumerate(written.splitlines(), start=1):
        if head := _head_of(line):
            section = _BLANKS.sub("", head[1])
            heads[section] += 1
            here = section.split(".")
        else:
            name = line.partition("=")[0].strip().strip('"') if "=" in line else ""
            here = [*filter(None, section.split(".")), *filter(None, map(str.strip, name.split(".")))] if name else []
        if not here or (number and heads[here[0]] != int(number)):
            continue
        if here == wanted:
            return line_number
        if here == wanted[: len(here)]:
            nearest_line = line_number
    return nearest_line


def check_addresses(form: JobForm, own_networks: Sequence[str] = ()) -> address_list.AddressList:
    """The addresses of a form, each judged by its line. BadInput for more than a list may have."""
    allowed = [one for part in form.allow_private.split(",") if (one := part.strip())]
    try:
        return address_list.read(form.addresses, (*allowed, *own_networks))
    except BadConfig as error:
        raise BadInput("allow_private", error.why) from error


def needs_operator(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    """The keys by which some papers reach further than those before, and which only an operator may set so."""
    old, new = (_for_operators(toml_of(files.get(CONFIGURATION, b""))) for files in (before, after))
    return sorted({name for name, value in new.items() if old.get(name) != value})


def _for_operators(keys: Mapping[str, Any], where: str = "") -> dict[str, str]:
    found = dict[str, str]()
    for key, value in keys.items():
        if key == "robots" and value == "ignore":
            found[f"{where}robots"] = "ignore"
        if key in OF_OPERATORS:
            found[f"{where}{key}"] = repr(value)
        if key == "render" and isinstance(value, dict):
            of_render = {f"[render] {name}": repr(one) for name, one in value.items()}
            found |= {f"{where}{name}": one for name, one in of_render.items() if name in OF_OPERATORS}
        if key == file.SHEETS and isinstance(value, list):
            for number, one in enumerate(value, start=1):
                found |= _for_operators(one, f"[[settings]] {number} ") if isinstance(one, dict) else {}
    return found


def taken(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[list[str], list[str]]:
    """The papers and keys that a running crawl takes at once, and those that wait for its next launch."""
    old, new = (toml_of(files.get(CONFIGURATION, b"")) for files in (before, after))
    keys = sorted(key for key in {*old, *new} if old.get(key) != new.get(key) and key != ABOUT)
    at_once = [*keys, *(name for name in (SURTS, EXCLUDE) if before.get(name) != after.get(name))]
    waits = [SEEDS] if before.get(SEEDS) != after.get(SEEDS) else []
    for key in keys:
        if key in WAITING or (key == "politeness" and _at_once(old) != _at_once(new)):
            waits.append(key if key in WAITING else "politeness.at_once")
            if key in WAITING or {**old.get(key, {}), "at_once": 0} == {**new.get(key, {}), "at_once": 0}:
                at_once.remove(key)
    return at_once, waits


def _at_once(keys: Mapping[str, Any]) -> Any:
    table = keys.get("politeness", {})
    return table.get("at_once") if isinstance(table, dict) else None


def is_written_elsewhere(files: Mapping[str, bytes]) -> bool:
    """True for the papers of a feed, which writes them before each launch, and for a long list of seeds."""
    return SEED_LIST in files or files.get(CONFIGURATION, b"").startswith(text.FED.partition("\n")[0].encode())


# The values of fields


def _text(typed: str) -> str:
    if not typed.isprintable():
        raise ValueError("it is not a text on one line")
    return typed


def _prose(typed: str) -> str:
    return typed.replace("\r\n", "\n")


def _list(typed: str) -> list[str]:
    return [*dict.fromkeys(one for part in _SEPARATORS.split(typed) if (one := _text(part.strip())))]


def _joined(value: Any) -> str:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError
    return ", ".join(value)


def _whole(typed: str) -> int:
    digits = typed.replace(",", "").replace(" ", "")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 15:
        raise ValueError(f"{typed[:40]!r} is not a whole number")
    return int(digits)


def _number(typed: str) -> float | int:
    if not _is_decimal(typed):
        raise ValueError(f"{typed[:40]!r} is not a number, such as 3 or 0.5")
    return float(typed) if "." in typed else int(typed)


def in_words(name: str, value: Any) -> str:
    """A value of crawl.toml as a field has it; '' for none."""
    return _FIELDS[name].write(value) if value else ""


def _amount(kind: str, typed: str) -> int:
    found = _QUANTITY.fullmatch(typed)
    units = {name.lower(): size for name, size in _UNITS[kind]}
    unit = _WORDS.get(found[3].lower(), found[3].lower()) if found else ""
    if not found or unit not in {"", *units}:
        *names, last = (name for name, _ in _UNITS[kind])
        raise ValueError(f"{typed[:40]!r} is not an amount: a number and {', '.join(names)} or {last}")
    size = units[unit] if unit else 1
    return int(found[1]) * size + (int(found[2]) * size // 10 ** len(found[2]) if found[2] else 0)


def _amount_in_words(kind: str, value: Any) -> str:
    if type(value) is not int:
        raise TypeError
    name, size = next((name, size) for name, size in _UNITS[kind] if value % size == 0 and (value or size == 1))
    return f"{value // size} {name}"


def _choice(words: Sequence[str], typed: str) -> str:
    if typed not in words:
        raise ValueError(f"{typed[:40]!r} is none of {', '.join(words)}")
    return typed


def _plain_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _plain_number(value: Any) -> str:
    if type(value) not in (int, float):
        raise TypeError
    return repr(value)


_FIELDS: Mapping[str, _Field] = {
    "title": _Field("about", "title", _text, _plain_text),
    "description": _Field("about", "description", _prose, _plain_text),
    "tags": _Field("about", "tags", _list, _joined),
    "owner": _Field("about", "owner", _text, _plain_text),
    "extensions": _Field("", "extensions", _list, _joined),
    "hops": _Field("", "hops", _whole, _plain_number),
    "documents": _Field("limits", "documents", _whole, _plain_number),
    "bytes": _Field("limits", "bytes", partial(_amount, "bytes"), partial(_amount_in_words, "bytes")),
    "seconds": _Field("limits", "seconds", partial(_amount, "seconds"), partial(_amount_in_words, "seconds")),
    "render": _Field("render", "which", partial(_choice, WHICH), _plain_text),
    "workers": _Field("", "workers", _whole, _plain_number),
    "least": _Field("politeness", "least", _number, _plain_number),
    "contact": _Field("", "contact", _text, _plain_text),
    "robots": _Field("", "robots", partial(_choice, ("obey", "ignore")), _plain_text),
    "allow_private": _Field("", "allow_private", _list, _joined),
}


def _texts(keys: Mapping[str, Any], key: str) -> list[str]:
    value = keys.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadConfig(f"{CONFIGURATION} {key}", f"is {value!r}; it takes a list of texts")
    return value
