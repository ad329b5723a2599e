"""Links of playlists, by which a player loads a film piece by piece: HLS (RFC 8216) and DASH (ISO/IEC 23009-1). Pure.

All that a playlist names is embedded: its other playlists, keys and segments, of each quality. Of DASH most segments
have no name of their own: a template, a number or a time, and a duration make them. Of what is still being sent, no
more is known than what is listed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from warcmill.crawl.extract import xml
from warcmill.crawl.extract.links import EMBED, ENDLESS, LIMITS, LONGEST, SEGMENTS, LinkCollector, LinkLimits, Outlinks
from warcmill.formats.text import charset

_SHOWS = 1 << 16  # bytes that show if a list of songs is a film
TYPES = frozenset(["application/vnd.apple.mpegurl", "application/x-mpegurl", "application/mpegurl"])
AUDIO_TYPES = frozenset(["audio/mpegurl", "audio/x-mpegurl"])  # also of lists of radio stations, which never end

_DASH_ROOT = re.compile(rb"<(?:[\w.-]+:)?MPD[\s>]")
_LINE = re.compile(r"[^\r\n]+")
_URI = re.compile(r'[:,\s]URI="([^"]++)"')
_is_number = re.compile(r"-?\d{1,18}").fullmatch
_DURATION = re.compile(r"P(?:(\d{1,6})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?")
_IN_TEMPLATE = re.compile(r"\$(?:(RepresentationID|Number|Bandwidth|Time)(?:%0(\d{1,2})d)?)?\$")
_NAMING = frozenset(["segmentlist", "segmenturl", "initialization", "representationindex"])
_HOLDERS = frozenset(["mpd", "period", "adaptationset", "representation"])


def is_hls(begin: bytes) -> bool:
    """True if this is the beginning of an HLS playlist, whatever its type is."""
    return begin.startswith((b"#EXTM3U", b"\xef\xbb\xbf#EXTM3U")) and b"#EXT-X-" in begin[:_SHOWS]


def is_dash(begin: bytes) -> bool:
    """True if this is the root of a DASH presentation."""
    return _DASH_ROOT.match(begin) is not None


def links(data: bytes, uri: str, content_type: str = "", limits: LinkLimits = LIMITS) -> Outlinks:
    """The links of a playlist."""
    found, text = LinkCollector(uri, limits=limits, by=SEGMENTS), charset.text(data, content_type)
    if text.lstrip().startswith("#EXTM3U"):
        _hls(text, found)
    else:
        _dash(text, found)
    return found.all()


def _hls(text: str, found: LinkCollector) -> None:
    for match in _LINE.finditer(text):
        line = match[0].strip()
        if not line.startswith("#"):
            found.add(line, EMBED, "m3u8")
        elif line.startswith("#EXT"):
            for written in _URI.findall(line):
                found.add(written, EMBED, "m3u8/URI")
        if found.cut:
            break


class _Holder(Struct):
    """An element that has segments, or whose children have. `known`: its attributes and those around it; `around`: the
    base around it; `timeline`: first time, duration, how many more. `is_listed`: its segments have names of their own;
    `is_file`: its base is a file."""

    depth: int
    name: str
    known: dict[str, str]
    base: str
    around: str = ""
    seconds: float = 0.0
    template: dict[str, str] = field(default_factory=dict)
    timeline: list[tuple[int | None, int, int]] | None = None
    is_listed: bool = False
    is_file: bool = False


def _dash(text: str, found: LinkCollector) -> None:
    """Add what a presentation names. An element inherits from those around it, its own wins."""
    periods = iter(_periods(text, found.limits.segments))
    holders = [_Holder(0, "", {}, found.base, found.base)]
    for depth, (name, attributes, content) in xml.nested(text):
        while depth <= holders[-1].depth:
            _end(holders.pop(), found)
        if found.cut:
            return
        outer = holders[-1]
        if name in _HOLDERS and len(holders) <= len(_HOLDERS):
            seconds = next(periods, 0.0) if name == "period" else outer.seconds
            known = outer.known | attributes
            inner = replace(outer, depth=depth, name=name, known=known, seconds=seconds, around=outer.base)
            holders.append(inner)
        elif name == "baseurl":
            _rebase(outer, content, found)
        else:
            _describe(outer, name, attributes, found)
    while holders:
        _end(holders.pop(), found)


def _rebase(holder: _Holder, content: str, found: LinkCollector) -> None:
    """Take the first base of an element; the others are the same elsewhere."""
    if content and holder.base == holder.around and len(content) <= LONGEST:
        found.rebase(holder.around)
        found.rebase(content)
        holder.base, holder.is_file = found.base, holder.name in ("adaptationset", "representation")


def _describe(holder: _Holder, name: str, attributes: dict[str, str], found: LinkCollector) -> None:
    """Take what describes the segments of an element, or names them."""
    if name == "segmenttemplate":
        holder.template, holder.timeline = {**holder.template, **attributes}, None
    elif name == "segmenttimeline":
        holder.timeline = []
    elif name == "s" and holder.timeline is not None and len(holder.timeline) <= found.limits.segments:
        begin = _number(attributes["t"]) if "t" in attributes else None
        holder.timeline.append((begin, _number(attributes.get("d", "")), _number(attributes.get("r", "0"), -1)))
    elif name in _NAMING:
        holder.is_listed = holder.is_listed or name.startswith("segment")
        for attribute in ("media", "index", "sourceURL"):
            _add(attributes.get(attribute, ""), holder, found)


def _end(holder: _Holder, found: LinkCollector) -> None:
    """Add the segments of a representation that has ended."""
    if holder.name != "representation":
        return
    template = holder.template
    if not template:
        if holder.is_file and not holder.is_listed:
            _add(holder.base, holder, found)
        return
    for name in ("initialization", "index"):
        _add(_filled(template.get(name, ""), holder, 0, 0), holder, found)
    media = template.get("media", "")
    has_many = "$Number" in media or "$Time" in media
    for number, time in islice(_segments(holder, found), found.limits.segments + 1) if has_many else [(0, 0)]:
        _add(_filled(media, holder, number, time), holder, found)
        if found.cut:
            return


def _segments(holder: _Holder, found: LinkCollector) -> Iterator[tuple[int, int]]:
    """The numbers and times of the segments. Without a timeline, or an end, their number is not known."""
    template = holder.template
    number, scale = _number(template.get("startNumber", "1")), _number(template.get("timescale", "1")) or 1
    end = holder.seconds * scale
    if holder.timeline is not None:
        time = 0
        for place, (begin, duration, more) in enumerate(holder.timeline):
            time = time if begin is None else begin
            times = more + 1
            if more < 0:
                after = next((one[0] for one in holder.timeline[place + 1 : place + 2]), None)
                last = end if after is None else after
                times = math.ceil((last - time) / duration) if duration and last > time else 1
            for _ in range(times):
                yield number, time
                number, time = number + 1, time + duration
        return
    duration = _number(template.get("duration", ""))
    if not duration or not end:
        found.leave_out(ENDLESS)
        return
    for place in range(math.ceil(end / duration)):
        yield number + place, place * duration


def _add(written: str, holder: _Holder, found: LinkCollector) -> None:
    if written:
        found.rebase(holder.base)
        found.add(written, EMBED, "mpd")


def _filled(template: str, holder: _Holder, number: int, time: int) -> str:
    values: dict[str, Any] = {
        "RepresentationID": holder.known.get("id", ""), "Bandwidth": holder.known.get("bandwidth", ""),
        "Number": number, "Time": time,
    }  # fmt: skip

    def value(match: re.Match[str]) -> str:
        return str(values[match[1]]).rjust(int(match[2] or 0), "0") if match[1] else "$"

    return _IN_TEMPLATE.sub(value, template[:LONGEST])


def _periods(text: str, most: int) -> list[float]:
    """The seconds that each period has; 0 if that is not known."""
    total, starts, durations = 0.0, list[float | None](), list[float]()
    for name, attributes, _ in xml.tags(text) if "eriod" in text else ():
        if name == "mpd":
            total = _seconds(attributes.get("mediaPresentationDuration", ""))
        elif name == "period" and len(starts) <= most:
            starts.append(_seconds(attributes["start"]) if "start" in attributes else None)
            durations.append(_seconds(attributes.get("duration", "")))
    at, found = 0.0, list[float]()
    for place, (start, duration) in enumerate(zip(starts, durations, strict=True)):
        begin = at if start is None else start
        after = starts[place + 1] if place + 1 < len(starts) else total
        seconds = duration or max(0.0, (after or 0.0) - begin)
        found.append(seconds)
        at = begin + seconds
    return found


def _seconds(text: str) -> float:
    match = _DURATION.fullmatch(text)
    days, hours, minutes, seconds = (float(part) for part in match.groups("0")) if match else (0.0,) * 4
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _number(text: str, least: int = 0) -> int:
    """A number of an attribute; the least one for another text."""
    return max(least, int(text)) if _is_number(text) else max(0, least)
