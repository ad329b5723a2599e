"""The steps from the store to a SIP in a preservation system: build it, submit it, enter it into the catalogue."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import luigi
from luigi.task_register import Register

from tasks.config import chains as configured
from tasks.files import StoreScan
from tasks.line import OpenRoots, catalogue_of, destination_of, open_line, verified_at
from tasks.step import StageStep
from warcmill import chain
from warcmill.chain import Row, Switch
from warcmill.errors import BadConfig, WarcmillError
from warcmill.launches.view import LaunchView
from warcmill.model import Launch, Stage
from warcmill.package import build, index_sip, sips, submit, verify

log = logging.getLogger(__name__)


class BuildSip(StageStep):
    """Build the SIP of a stage: a bag in a tar, in the store, for all stages up to this one that no SIP covers.

    Requires: Verify of each stage that it covers, and VirusScan where that is switched on; BuildSip of every earlier
              stage that is due.
    Output:   05.packaged.{job}.{launch_id}.{stage}
    Changes:  adds sips/{job}/{launch_id}/{stage}.tar to the store; never replaces one.
    Re-run:   safe; the same markers give the same bytes.
    """

    task_namespace = "package"

    def requires(self) -> list[luigi.Task]:
        line = open_line()
        known = sips.coverage(line.state, self.launch)
        sips.refuse_covered(known, self.launch, self.part)
        final_only = is_final_only(line, self.launch)
        before = known.earlier_due(self.part, final_only=final_only)
        covers = known.to_cover(self.part, final_only=final_only)
        built = [self.clone(stage=str(stage)) for stage in before]
        return [*built, *(proof for stage in covers for proof in _proven(line, self.launch, stage))]

    def work(self, line: OpenRoots) -> None:
        terms = configured.terms(line.settings.store)
        claim = build.build(line.state, line.store, line.extracts, self.launch, self.part, terms)
        line.state.publish(self.key, claim)


class SubmitSip(StageStep):
    """Hand the SIP of a stage over at the destination, once.

    Requires: BuildSip; SubmitSip of the SIP before; and `[package] destination`.
    Output:   06.submitted.{job}.{launch_id}.{stage}
    Changes:  adds the SIP to the watched folder of the destination, with two slips beside that folder.
    Re-run:   safe, also after a kill and by two at once: the destination is asked first whether it has the SIP.
    """

    task_namespace = "package"

    def requires(self) -> list[luigi.Task]:
        line = open_line()
        if not configured.destination():
            raise BadConfig("[package] destination", "is not set; it names the place where SIPs are submitted")
        before = _sip_before(line, self.launch, self.part)
        earlier = [self.clone(stage=str(before))] if before else []
        return [*earlier, BuildSip(job=self.job, launch_id=self.launch_id, stage=self.stage)]

    def work(self, line: OpenRoots) -> None:
        claim = submit.submit(line.state, line.store, destination_of(line), self.launch, self.part)
        line.state.publish(self.key, claim)
        if line.settings.index:
            index_sip.enter_again(line.state, catalogue_of(line), self.launch, self.part)


class VerifySip(StageStep):
    """Read the SIP of a stage again, where the ingesting system has put it, and compare it with what was submitted.

    Requires: SubmitSip.
    Output:   07.verified.{job}.{launch_id}.{stage}
    Changes:  nothing else.
    Re-run:   safe; reads the SIP again. Until it is there, the step fails and a later scan tries again.
    """

    task_namespace = "package"

    def requires(self) -> luigi.Task:
        return SubmitSip(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: OpenRoots) -> None:
        at, folder = verified_at(line)
        line.state.publish(self.key, verify.verify(line.state, line.store, at, folder, self.launch, self.part))
        if line.settings.index:
            index_sip.enter_again(line.state, catalogue_of(line), self.launch, self.part)


class IndexSip(StageStep):
    """Enter the SIP of a stage into the catalogue.

    Requires: VerifySip where there is a destination, else BuildSip; and `[warcmill] index`.
    Output:   08.indexed.{job}.{launch_id}.{stage}
    Changes:  the rows of the SIP in catalogue.sqlite, in the index root.
    Re-run:   safe; its rows are written anew, as the markers are now. A scan asks for it again where the catalogue
              lacks these rows, or has others: after a kill, or without its file.
    """

    task_namespace = "package"

    def requires(self) -> luigi.Task:
        proof = VerifySip if configured.destination() else BuildSip
        return proof(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def complete(self) -> bool:
        """True if its marker is there, and the catalogue has the SIP. An outage counts as 'no', as of a marker."""
        if not super().complete():
            return False
        try:
            return self._is_current(open_line())
        except WarcmillError as error:
            log.error("%s", error)
            return False

    def is_done(self, line: OpenRoots) -> bool:
        return super().is_done(line) and self._is_current(line)

    def _is_current(self, line: OpenRoots) -> bool:
        return index_sip.is_current(line.state, catalogue_of(line), self.launch, self.part)

    def work(self, line: OpenRoots) -> None:
        catalogue = catalogue_of(line)
        if not super().is_done(line):  # else it may rest on another proof, from before there was a destination
            proof = verify.VERIFY if configured.destination() else sips.BUILD
            claim = index_sip.index_sip(line.state, catalogue, self.launch, self.part, proof)
            line.state.publish(self.key, claim)
        # Again after the marker: a rebuild may have begun before it existed, and ended after us.
        index_sip.enter(line.state, catalogue, self.launch, self.part)


def _sip_before(line: OpenRoots, launch: Launch, stage: Stage) -> Stage | None:
    """The stage of the SIP before one: as its 05 has it, or as BuildSip will find it."""
    if built := sips.packaged(line.state, launch, stage):
        return built.before
    known = sips.coverage(line.state, launch)
    due = known.earlier_due(stage, final_only=is_final_only(line, launch))
    return max((*due, *(sip for sip in known.sips if sip < stage)), default=None)


def is_final_only(line: OpenRoots, launch: Launch) -> bool:
    """True if only the final stage of a launch gets a SIP by itself. One that gets none is asked for by stage."""
    switch: Switch | None = line.wanted.get(configured.PACKAGE)
    row = chain.by_task(chain.ROWS)[sips.BUILD]
    return switch is None or switch.final_only or not chain.is_wanted(row, launch, line.wanted)


def _proven(line: OpenRoots, launch: Launch, stage: Stage) -> Iterator[luigi.Task]:
    """The proofs of a stage's files that a SIP rests on: those among them that are switched on."""
    known = chain.by_word(chain.ROWS)
    for row in (known[word] for word in sips.PROOFS if word in known):
        if chain.is_wanted(row, launch, line.wanted):
            yield Register.get_task_cls(row.task)(job=launch.job, launch_id=launch.id, stage=str(stage))


class ScanForPackages(StoreScan):
    """Build the SIPs of some days, and do every switched-on step after it.

    Requires: the switched-on steps of SIPs, for each stage that is due.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing. Stages that are not assembled are left to output.ScanForOutputs.
    """

    task_namespace = "package"

    def missing(self, line: OpenRoots, view: LaunchView) -> Iterator[luigi.Task]:
        launch, wanted = view.launch, line.wanted
        asked = tuple(
            row for row in chain.ROWS if row.scan == self.task_family and chain.is_wanted(row, launch, wanted)
        )
        if not asked:
            return
        known = sips.coverage(line.state, launch)
        own = sorted({*known.due(final_only=is_final_only(line, launch)), *known.sips})
        for row in _ends(asked):
            for stage in own:
                task = Register.get_task_cls(row.task)(job=launch.job, launch_id=launch.id, stage=str(stage))
                if not task.complete():
                    yield task


def _ends(asked: tuple[Row, ...]) -> list[Row]:
    """The steps that ask for all others. The last one of a submission is asked for too: a SIP that is in the catalogue
    since before there was a destination still has to be submitted."""
    submission = tuple(row for row in asked if row.due == configured.SUBMISSION)
    return list(dict.fromkeys((*chain.ends(submission), *chain.ends(asked))))
