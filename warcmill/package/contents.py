"""The contents of a SIP, and its description in Dublin Core, from the markers of the stages that it covers. Reads only.

The description is from the feed's targets that the launch crawled, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from warcmill import __version__, layout
from warcmill.errors import BadInput
from warcmill.extracts import formats
from warcmill.extracts.extracts import Extracts
from warcmill.formats import feed
from warcmill.formats.feed import Target
from warcmill.formats.sip import eark, premis, pronom
from warcmill.formats.sip.eark import Kind, Package, PackageFile
from warcmill.formats.sip.mets import Header
from warcmill.formats.sip.premis import Agent, EventType, Format, Identifier, PremisOutcome
from warcmill.formats.sip.pronom import TypeSample
from warcmill.formats.sip.xml import Description
from warcmill.formats.targets import SEEDS, seeds, selected
from warcmill.launches.holdings import Coverage
from warcmill.markers.claim import Input
from warcmill.markers.facts.operator import Accepted
from warcmill.markers.facts.package import Packaged
from warcmill.markers.facts.pulse import Fed, Started
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Launch, Stage, stamp_time
from warcmill.package import identifiers, sips
from warcmill.package.history import SUCCESS, SipHistory
from warcmill.package.identifiers import ArkFile
from warcmill.package.sips import Proven, Terms
from warcmill.stores import Store

SOFTWARE = "Warcmill"
_KINDS: Mapping[str, Kind] = {kind: kind for kind in eark.KINDS}
_GZIP, _ZIP, _WARC, _ARC = (
    Format("GZIP Format", pronom="x-fmt/266"),
    Format("ZIP Format", pronom="x-fmt/263"),
    Format("WARC", pronom="fmt/289"),
    Format("Internet Archive ARC"),
)

_SUFFIXES = len(".warc.open")  # characters: more of a name's end have nothing to do with its format
_made = tuple.__new__  # a named tuple of all its members, in half the time: a package may have 100,000


class PackedFile(NamedTuple):
    """A file of the archive in a SIP, and its stored file."""

    payload: PackageFile
    stored: FileRef


class SipContents(Struct, frozen=True):
    """All of a SIP but its form: `package` is for the first of its name."""

    launch: Launch
    stage: Stage
    covers: tuple[Stage, ...]
    before: Stage | None
    entries: tuple[PackedFile, ...]
    package: Package
    inputs: tuple[Input, ...]
    time: str

    @property
    def bag(self) -> str:
        """The name of the bag's folder, and the identifier of the package in it."""
        return self.package.header.identifier

    @property
    def renamed(self) -> dict[str, str]:
        """The own names of files that have another name in the bag, by kind and that one: `warcs/NAME`."""
        return {f"{one.kind}/{one.renamed}": one.name for one in self.package.files if one.renamed}


class Collector:
    """Collects a SIP's contents stage by stage: the markers of one stage at a time are in memory."""

    def __init__(
        self, state: MarkerStore, store: Store, extracts: Extracts | None, launch: Launch, terms: Terms
    ) -> None:
        self.state, self.store, self.extracts, self.launch, self.terms = state, store, extracts, launch, terms
        self.entries: dict[Kind, dict[str, PackedFile]] = {kind: {} for kind in eark.KINDS}
        self.inputs: list[Input] = []
        self.times: list[str] = []
        self.dates: list[tuple[str, str]] = []
        self.relations: list[str] = []
        self.formats: dict[str, TypeSample] = {}

    def collect(self, known: Coverage, stage: Stage) -> SipContents:
        """The contents of the SIP of a stage, as its coverage is now."""
        covers, before = known.covers(stage), known.before(stage)
        bag = f"{self.launch.job}.{self.launch.id}.{stage}"
        organisation = Agent(Identifier("local", self.terms.organisation), self.terms.organisation, "organization")
        history = SipHistory(eark.package_identifier(bag), organisation, self._accepted())
        for one in covers:
            self._add(sips.read(self.state, self.launch, one), bag, history)
        self._follow(before)
        time = max(self.times)
        self._end(history, bag, covers, before, time)
        every = [named[name] for _, named in sorted(self.entries.items()) for name in sorted(named)]
        payloads = eark.placed(entry.payload for entry in every)
        entries = tuple(_made(PackedFile, (one, entry.stored)) for one, entry in zip(payloads, every, strict=True))
        ark = identifiers.of_sip(self.state, self.launch, stage, bag, self._named(), self.terms)
        header = Header(bag, time, SOFTWARE, __version__, self.terms.organisation, agreement=self.terms.agreement)
        crawled = targets(self.state, self.launch)
        about = bag, self.launch, covers, self.dates, self.terms, crawled, self.relations, ark
        described = describe(*about)
        agents = [organisation, *history.agents.values()]
        package = Package(header, described, payloads, history.events, agents, ark)
        return SipContents(self.launch, stage, covers, before, entries, package, tuple(self.inputs), time)

    def _add(self, proven: Proven, bag: str, history: SipHistory) -> None:
        self.inputs += rests_on(*proven.inputs)
        self.times += [marker.run.finished for marker in proven.inputs]
        known = proven.assembled
        self.dates.append((known.start_date, known.end_date))
        if known.continues:
            one = f"continues the launch {known.continues.launch} from checkpoint {known.continues.checkpoint}"
            self.relations += [one] if one not in self.relations else []
        added = self._files(proven)
        files = {entry.stored.path: entry.payload for entry in added}
        history.add(proven, partial(_identifier, bag, files), self.state.read(layout.step("process", self.launch)))
        of_warcs = (formats.of(self.store, self.extracts, one) for one in proven.holds.holdings)
        self.formats = pronom.merged([self.formats, *of_warcs])

    def _files(self, proven: Proven) -> list[PackedFile]:
        """Add a stage's files; a file that is there already, with the same bytes, is the same one."""
        holds = proven.holds
        named = [ArkFile(one.name, one.stored) for one in holds.holdings]
        named += [ArkFile(file.name, file) for file in holds.logs]
        arks = identifiers.of_files(self.state, self.launch, proven.stage, named, self.terms)
        created = proven.markers["checksum"].run.finished
        entries = [_entry(one, created, arks[one.stored.path]) for one in named]
        for entry in entries:
            there = self.entries[entry.payload.kind].setdefault(entry.payload.name, entry)
            if there.payload.sha512 != entry.payload.sha512:
                why = f"another file of the same name is in this SIP too, stored as {there.stored.path}"
                raise BadInput(f"store:{entry.stored.path}", why)
        return entries

    def _named(self) -> list[ArkFile]:
        every = (entry for known in self.entries.values() for entry in known.values())
        return [ArkFile(entry.payload.name, entry.stored) for entry in every]

    def _follow(self, before: Stage | None) -> None:
        """Rest on the SIP before this one, if there is one."""
        if before is None:
            return
        marker = self.state.require(layout.key(sips.BUILD, self.launch, stage=before))
        self.inputs += rests_on(marker)
        self.times.append(marker.run.finished)
        self.relations.append(f"follows {Packaged.from_claim(marker.claim).bag}")

    def _accepted(self) -> Mapping[str, Accepted]:
        """The accepted findings of the launch, by name. Other markers are not read: they may be large."""
        names = sorted(self.state.store.names(layout.state_folder(self.launch)))
        keys = (key for name in names if (key := layout.parse_marker_name(name)) and key.task == "operator.Accept")
        found = (Accepted.from_claim(marker.claim) for key in keys if (marker := self.state.read(key)))
        return {one.name: one for one in found}

    def _end(self, history: SipHistory, bag: str, covers: tuple[Stage, ...], before: Stage | None, time: str) -> None:
        """Add the last two events: the formats, and the packaging itself."""
        looked_at = f"of each type the first {pronom.LOOKED_AT} of a WARC named by PRONOM"
        detail = f"payloads counted by declared type; {looked_at}"
        counted = PremisOutcome(
            SUCCESS, tuple(_counted(declared, seen) for declared, seen in sorted(self.formats.items()))
        )
        identified = Identifier("local", f"{bag}#formats"), EventType.FORMAT_IDENTIFICATION, time, detail
        history.add_own(*identified, (counted,), pronom.tools())

        place = f"after the SIP of stage {before}" if before else "the first SIP"
        detail = f"stages {', '.join(map(str, covers))}; {place}"
        packed = PremisOutcome(SUCCESS, (f"{sum(map(len, self.entries.values()))} files",))
        packaged = Identifier("local", f"{bag}#packaging"), EventType.PACKAGING, time, detail
        history.add_own(*packaged, (packed, *history.leftover()), {SOFTWARE.lower(): __version__})


def replacing(package: Package, number: int) -> Package:
    """The package as the SIP of this number: from 2 on it replaces the one before."""
    if number == 1:
        return package
    first = package.header.identifier
    replaced = first if number == 2 else f"{first}.{number - 1}"
    header = replace(package.header, identifier=f"{first}.{number}", replaces=replaced)
    about = replace(
        package.description,
        identifier=(header.identifier, *package.description.identifier[1:]),
        relation=(*package.description.relation, f"replaces {replaced}"),
    )
    return replace(package, header=header, description=about)


def _entry(one: ArkFile, created: str, ark: str) -> PackedFile:
    kind: Kind = _kind(one.stored)
    assert one.stored.sha512 is not None
    format_ = _format(one.name[-_SUFFIXES:])
    payload = _made(PackageFile, (kind, one.name, one.stored.size, one.stored.sha512, created, format_, ark, ""))
    return _made(PackedFile, (payload, one.stored))


def _kind(stored: FileRef) -> Kind:
    try:
        return _KINDS[stored.path.partition("/")[0]]
    except KeyError:
        raise BadInput(f"store:{stored.path}", "not a file of warcs, viral or logs") from None


@lru_cache(maxsize=256)  # most files of a package end alike
def _format(end: str) -> Format:
    """The format of a file, by the end of its name."""
    plain = layout.final_name(end).lower()
    for suffix, known in ((".gz", _GZIP), (".zip", _ZIP), (".warc", _WARC), (".arc", _ARC)):
        if plain.endswith(suffix):
            return known
    return premis.Format("unknown")


def _identifier(bag: str, files: Mapping[str, PackageFile], stored: FileRef) -> Identifier:
    return eark.file_identifier(bag, files[stored.path])


def _counted(declared: str, seen: TypeSample) -> str:
    found = ", ".join(f"{name} ({number})" for name, number in sorted(seen.formats.items())) or "none looked at"
    return f"{declared}: {seen.payloads} payloads; {found}"


def describe(
    bag: str,
    launch: Launch,
    stages: Sequence[Stage],
    dates: Iterable[tuple[str, str]],
    terms: Terms,
    crawled: Sequence[Target],
    relations: Iterable[str],
    ark: str,
) -> Description:
    """Describe the package of some stages, crawled in the spans of `dates`. It is named by bag and ARK."""
    spans = list(dates)
    first, last = min(begin for begin, _ in spans), max(end for _, end in spans)
    word, names = "stage" if len(stages) == 1 else "stages", ", ".join(map(str, stages))
    return Description(
        title=(f"Web archive of the crawl {launch.job}, launch {launch.id}, {word} {names}",),
        subject=tuple(target.title for target in crawled if target.title),
        publisher=(terms.organisation,),
        date=(f"{first}/{last}",),
        format=("application/warc",),
        identifier=(bag, *([ark] if ark else [])),
        source=tuple(dict.fromkeys(seed for target in crawled for seed in target.seeds)),
        relation=tuple(relations),
        rights=(f"Submission agreement {terms.agreement}",) if terms.agreement else (),
    )


def targets(state: MarkerStore, launch: Launch) -> list[Target]:
    """The targets that a launch crawled, by the feed of its due crawl; none for a launch without a feed.

    The job's frequency selects them. No marker has it: it is the one whose targets give the seeds that 01.started has.
    """
    started = state.read(layout.key("pulse.Started", launch))
    known = Started.from_claim(started.claim) if started else None
    fed = state.read(layout.feed_key(launch.job, known.due)) if known else None
    if known is None or fed is None or SEEDS not in known.files:
        return []
    with state.store.open(Fed.from_claim(fed.claim).kept.path) as file:
        everything = feed.read(file.read(feed.LARGEST + 1), launch.job).targets
    moment = stamp_time(known.due)
    for frequency in dict.fromkeys(schedule.frequency for target in everything for schedule in target.schedules):
        chosen = selected(everything, frequency, moment)
        if hashlib.sha512(seeds(chosen)).hexdigest() == known.files[SEEDS]:
            return chosen
    return []
