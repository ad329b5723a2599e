"""The Heritrix client against a real engine: a job's whole life, and the days on which something is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from faults.tally import FaultLog
from loopback_site import site

from servers.heritrix import HeritrixServer as Server
from warcmill.clients.heritrix.http import EngineHttp, fingerprint
from warcmill.clients.heritrix.rest import CONFIGURATION, Heritrix
from warcmill.clients.heritrix.xml import JobState
from warcmill.errors import BadConfig, BadInput, Conflict, Mismatch, NotReady, Unavailable
from warcmill.formats.profile import faults

PROFILE = (Path(__file__).parent.parent / "data" / "heritrix" / "profile.cxml").read_text("utf-8")
NUMBERS = count(1)
PAUSED = frozenset({JobState.PAUSED})
FINISHED = frozenset({JobState.FINISHED})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with site() as serving:
        yield serving


@pytest.fixture(scope="module", autouse=True)
def names(heritrix: Server) -> None:
    heritrix.resolve("site.example")


def client(server: Server, **more: float) -> Heritrix:
    return Heritrix(
        EngineHttp(server.url, server.user, server.password, server.certificate), **{"patience": 60, **more}
    )


@pytest.fixture
def engine(heritrix: Server) -> Iterator[Heritrix]:
    one = client(heritrix)
    yield one
    one.close()


@pytest.fixture
def job(engine: Heritrix, port: int) -> Iterator[str]:
    """A configured job, unbuilt; whatever the test leaves it in, it is taken down afterwards."""
    name = f"job{next(NUMBERS)}"
    assert engine.create(name)
    configure(engine, name, port)
    yield name
    found = engine.job(name)
    if found is not None and found.state not in (JobState.UNBUILT, JobState.READY):
        engine.terminate(name)
    engine.teardown(name)


def configure(engine: Heritrix, job: str, port: int, *, delay: int = 30) -> None:
    profile = PROFILE.replace("{job}", job).replace("{delay}", str(delay))
    engine.put(job, CONFIGURATION, profile.encode())
    engine.put(job, "seeds.txt", f"http://site.example:{port}/\n".encode())


def running(engine: Heritrix, job: str) -> str:
    launch = engine.launch(job)
    engine.wait(job, PAUSED)
    engine.unpause(job)
    return launch


def crawled(engine: Heritrix, job: str, pages: int) -> None:
    """Wait until that many documents are fetched."""
    engine._until(job, f"fetch {pages} documents", lambda seen: seen if seen.downloaded >= pages else None)


def state(engine: Heritrix, job: str) -> JobState:
    found = engine.job(job)
    assert found is not None
    return found.state


def test_an_engine_reports_its_version_heap_and_jobs(engine: Heritrix, job: str) -> None:
    seen = engine.engine()
    assert seen.version == "3.13.0"
    assert 0 < seen.heap_used < seen.heap_max
    assert job in seen.jobs


def test_a_jobs_whole_life(heritrix: Server, engine: Heritrix, job: str) -> None:
    assert not engine.create(job), "it is there already"
    assert engine.launch_id(job) is None
    assert engine.build(job).state is JobState.READY
    assert engine.build(job).state is JobState.READY, "built already: success"

    launch = engine.launch(job)
    assert engine.launch_id(job) == launch
    assert (heritrix.jobs / job / launch).is_dir()
    assert engine.wait(job, PAUSED).launches == 1
    assert engine.pause(job).state is JobState.PAUSED, "paused already: success"
    assert engine.unpause(job).state is JobState.RUNNING
    crawled(engine, job, 10)
    checkpoint = engine.checkpoint(job)
    assert (heritrix.jobs / job / "checkpoints" / checkpoint / "valid").exists()
    assert engine.pause(job).state is JobState.PAUSED
    assert engine.script(job, "rawOut.print(job.shortName)") == job
    ended = engine.terminate(job)
    assert (ended.state, ended.exit_status) == (JobState.FINISHED, "ABORTED")
    assert engine.terminate(job).state is JobState.FINISHED, "ended already: success"
    assert engine.teardown(job).state is JobState.UNBUILT
    assert engine.teardown(job).state is JobState.UNBUILT, "torn down already: success"
    assert engine.launch_id(job) == launch, "still known once the job is unbuilt"


def test_a_launch_resumes_from_a_checkpoint(engine: Heritrix, job: str) -> None:
    first = running(engine, job)
    crawled(engine, job, 20)
    engine.pause(job)
    taken = engine.checkpoint(job)
    done = engine.job(job)
    engine.terminate(job)
    engine.teardown(job)
    assert taken in engine.build(job).checkpoints

    second = engine.launch(job, taken)
    resumed = engine.wait(job, PAUSED)
    assert second > first
    assert resumed.resumed_from == taken
    assert done is not None
    assert resumed.downloaded >= done.downloaded >= 20


def test_a_rule_by_seeds_inside_the_scope_is_empty_once_resumed_as_doctor_says(
    heritrix: Server, engine: Heritrix, job: str
) -> None:
    profile = (heritrix.jobs / job / CONFIGURATION).read_text("utf-8")
    inside = '<bean id="inside" class="org.archive.modules.deciderules.surt.SurtPrefixedDecideRule"/>'
    profile = profile.replace('<ref bean="acceptSurts"/>', f'<ref bean="acceptSurts"/>{inside}')
    assert any("inside bean scope must be" in fault for fault in faults(profile.encode(), job))
    engine.put(job, CONFIGURATION, profile.encode())
    running(engine, job)
    crawled(engine, job, 5)
    sizes = "rawOut.print([1, 2].collect { appCtx.getBean('scope').rules[it].surtPrefixes.size() })"
    assert engine.script(job, sizes) == "[1, 1]"
    taken = engine.checkpoint(job)
    engine.terminate(job)
    engine.teardown(job)
    engine.launch(job, taken)
    engine.wait(job, PAUSED)
    assert engine.script(job, sizes) == "[1, 0]"


def test_a_crawl_that_ends_by_itself(engine: Heritrix, job: str, port: int) -> None:
    engine.put(job, "seeds.txt", f"http://site.example:{port}/399\n".encode())
    running(engine, job)
    ended = engine.wait(job, FINISHED)
    assert ended.exit_status == "FINISHED"
    assert ended.downloaded == 4  # the name, robots.txt, the page, favicon.ico


def test_a_finished_job_is_never_paused_nor_checkpointed(heritrix: Server, engine: Heritrix, job: str) -> None:
    running(engine, job)
    engine.terminate(job)
    log = (heritrix.jobs / job / "job.log").read_bytes()
    for action in (engine.pause, engine.unpause, engine.checkpoint, engine.launch, engine.build):
        with pytest.raises(Conflict, match=r"it is FINISHED .*Nothing was changed"):
            action(job)
    assert (heritrix.jobs / job / "job.log").read_bytes() == log
    assert state(engine, job) is JobState.FINISHED


def test_a_job_that_finishes_between_look_and_action_is_not_paused(engine: Heritrix, job: str) -> None:
    running(engine, job)
    engine.terminate(job)
    with pytest.raises(Conflict, match="it is FINISHED by now, no longer RUNNING"):
        engine._request_pause(job)
    found = engine.job(job)
    assert found is not None
    assert found.description == "Finished: ABORTED"


def test_a_crawl_that_is_paused_as_soon_as_it_continues_is_paused(engine: Heritrix, job: str) -> None:
    running(engine, job)
    for _ in range(20):
        assert engine.pause(job).state is JobState.PAUSED
        assert engine.unpause(job).state is JobState.RUNNING
    assert engine.pause(job).state is JobState.PAUSED


def test_a_crawl_that_was_paused_too_soon_by_hand_is_paused_after_all(engine: Heritrix, job: str) -> None:
    engine.launch(job)
    engine.wait(job, PAUSED)
    both = "job.crawlController.requestCrawlResume(); job.crawlController.requestCrawlPause()"
    for _ in range(5):
        engine.script(job, both)
        assert engine.pause(job).state is JobState.PAUSED


def test_a_job_that_was_paused_by_hand_after_its_end_still_counts_as_finished(engine: Heritrix, job: str) -> None:
    running(engine, job)
    engine.terminate(job)
    engine._wire.post(f"/job/{job}", {"action": "pause"})
    found = engine.job(job)
    assert found is not None
    assert (found.state, found.description) == (JobState.FINISHED, "Finished: WAITING_FOR_PAUSE")
    assert engine.teardown(job).state is JobState.UNBUILT


def test_launching_twice_starts_one(engine: Heritrix, job: str, fault_log: FaultLog) -> None:
    launch = engine.launch(job)
    with pytest.raises(Conflict, match=f"it is PAUSED .*launch {launch}; to launch it must be READY or UNBUILT"):
        engine.launch(job)
    fault_log.injected("Heritrix, job running already")
    assert engine.launch_id(job) == launch
    found = engine.job(job)
    assert found is not None
    assert found.launches == 1


def test_a_crawl_that_continues_is_not_torn_down(engine: Heritrix, job: str) -> None:
    running(engine, job)
    with pytest.raises(Conflict, match="to teardown it must be FINISHED or READY or UNBUILT"):
        engine.teardown(job)
    assert state(engine, job) is JobState.RUNNING


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("</beans>", "", r"Line \d+ in XML document .* is invalid"),
        ("minDelayMs=30", "minDelayMs=soon", "soon"),
        ("org.archive.bdb.BdbModule", "org.archive.bdb.NoSuchModule", "NoSuchModule"),
    ],
)
def test_a_broken_configuration_is_refused_with_the_engines_own_words(
    heritrix: Server, engine: Heritrix, job: str, old: str, new: str, reason: str
) -> None:
    written = (heritrix.jobs / job / CONFIGURATION).read_text("utf-8")
    assert old in written
    engine.put(job, CONFIGURATION, written.replace(old, new).encode())
    with pytest.raises(BadInput, match=f"(?s)the engine could not build it: .*{reason}"):
        engine.launch(job)
    assert state(engine, job) is JobState.UNBUILT
    assert any(re.search(reason, line) for line in engine.last_words(job))


def test_a_launch_that_the_engine_discards_is_refused_with_its_words(
    heritrix: Server, engine: Heritrix, job: str
) -> None:
    written = (heritrix.jobs / job / CONFIGURATION).read_text("utf-8")
    engine.put(job, CONFIGURATION, written.replace("http://archive.example/", "ENTER_AN_URL").encode())
    with pytest.raises(BadInput, match="operatorContactUrl"):
        engine.launch(job)
    assert engine.launch_id(job) is None


def test_a_checkpoint_that_is_not_offered_starts_nothing(
    heritrix: Server, engine: Heritrix, job: str, fault_log: FaultLog
) -> None:
    running(engine, job)
    crawled(engine, job, 5)
    taken = engine.checkpoint(job)
    engine.terminate(job)
    engine.teardown(job)
    (heritrix.jobs / job / "checkpoints" / taken / "valid").unlink()  # as a checkpoint cut half-way lacks it
    launch = engine.launch_id(job)
    with pytest.raises(NotReady, match=f"checkpoint {taken} is not ready: .* offers none"):
        engine.launch(job, taken)
    fault_log.injected("Heritrix, half-done checkpoint")
    assert engine.launch_id(job) == launch


def test_a_second_checkpoint_without_progress_is_reported(engine: Heritrix, job: str) -> None:
    running(engine, job)
    crawled(engine, job, 5)
    engine.pause(job)
    engine.checkpoint(job)
    with pytest.raises(NotReady, match="none if nothing happened since the last"):
        engine.checkpoint(job)


def test_a_script_that_fails_is_quoted(engine: Heritrix, job: str) -> None:
    with pytest.raises(Conflict, match="it is UNBUILT"):
        engine.script(job, "rawOut.print(1)")
    engine.build(job)
    with pytest.raises(BadInput, match="Division by zero"):
        engine.script(job, "rawOut.print(1 / 0)")


def test_a_job_that_is_not_there(engine: Heritrix) -> None:
    assert engine.job("nobody") is None
    for action in (engine.build, engine.launch, engine.pause, engine.checkpoint, engine.terminate, engine.teardown):
        with pytest.raises(NotReady, match="no such job"):
            action("nobody")


@pytest.mark.parametrize("name", ["../engine", "a/b", "", "a b", "x" * 64, "a?action=teardown"])
def test_no_name_leads_elsewhere(engine: Heritrix, name: str) -> None:
    with pytest.raises(BadInput, match="not a job name"):
        engine.job(name)


def test_files_are_written_whole_and_only_into_the_jobs_folder(heritrix: Server, engine: Heritrix, job: str) -> None:
    body = bytes(range(256)) * 4000
    engine.put(job, "surts.txt", body)
    assert (heritrix.jobs / job / "surts.txt").read_bytes() == body
    for file in ("../seeds.txt", "a/b", "", ".hidden", "a b"):
        with pytest.raises(BadInput, match="not a name for a file of a job"):
            engine.put(job, file, b"")


def test_alerts_are_quoted(heritrix: Server, engine: Heritrix, job: str) -> None:
    running(engine, job)
    assert engine.alerts(job) == ()
    severe = "java.util.logging.Logger.getLogger('test').severe('java.lang.OutOfMemoryError: Java heap space')"
    engine.script(job, f"def thread = new Thread(job.alertThreadGroup, {{ {severe} }}); thread.start(); thread.join()")
    assert any("OutOfMemoryError" in line for line in engine.alerts(job))
    assert any("OutOfMemoryError" in line for line in engine.last_words(job))


def test_a_wrong_password_changes_nothing(heritrix: Server, job: str, fault_log: FaultLog) -> None:
    stranger = Heritrix(EngineHttp(heritrix.url, heritrix.user, "wrong", heritrix.certificate))
    for action in (stranger.launch, stranger.job, stranger.create):
        with pytest.raises(BadConfig, match="user, password"):
            action(job)
        fault_log.injected("Heritrix, wrong password")
    stranger.close()
    assert not list((heritrix.jobs / job).glob("2*"))


def test_the_very_certificate_is_demanded(heritrix: Server, engine: Heritrix, fault_log: FaultLog) -> None:
    pin = fingerprint(heritrix.certificate)
    by_fingerprint = Heritrix.at(
        heritrix.url.replace("127.0.0.1", "localhost"), heritrix.user, heritrix.password, pin.upper()
    )
    assert by_fingerprint.engine().version == "3.13.0"
    by_fingerprint.close()
    other = Heritrix.at(heritrix.url, heritrix.user, heritrix.password, "00" * 32)
    with pytest.raises(Mismatch, match=f"expected {'00' * 32}, found {pin}"):
        other.engine()
    fault_log.injected("Heritrix, another certificate")
    other.close()


@pytest.mark.parametrize("pin", ["", "12:34", "zz" * 32])
def test_a_pin_that_is_none_is_refused(heritrix: Server, pin: str) -> None:
    with pytest.raises(BadConfig, match="certificate"):
        Heritrix.at(heritrix.url, heritrix.user, heritrix.password, pin)


def test_no_other_address_than_https_is_taken(heritrix: Server) -> None:
    for url in ("http://127.0.0.1/engine", "https:///engine", "https://admin:secret@127.0.0.1/engine", "engine"):
        with pytest.raises(BadConfig, match="url"):
            Heritrix.at(url, heritrix.user, heritrix.password, heritrix.certificate)


def test_an_action_whose_answer_came_too_late_is_done_all_the_same(
    heritrix: Server, engine: Heritrix, job: str, fault_log: FaultLog
) -> None:
    hasty = client(heritrix, answer_seconds=0.001)
    hasty.build(job)
    launch = hasty.launch(job)
    assert engine.launch_id(job) == launch
    hasty.wait(job, PAUSED)
    hasty.unpause(job)
    crawled(engine, job, 5)
    taken = hasty.checkpoint(job)
    assert (heritrix.jobs / job / "checkpoints" / taken / "valid").exists()
    hasty.pause(job)
    assert hasty.terminate(job).exit_status == "ABORTED"
    hasty.teardown(job)
    fault_log.injected("Heritrix, an action timed out, but done", 7)
    hasty.close()
    found = engine.job(job)
    assert found is not None
    assert (found.state, found.launches) == (JobState.UNBUILT, 1)


# The engine dies. Last, for each starts it anew.


def unbuilt(engine: Heritrix, job: str) -> None:
    """Nothing to do: that is what it is."""


def ready(engine: Heritrix, job: str) -> None:
    engine.build(job)


def paused(engine: Heritrix, job: str) -> None:
    engine.launch(job)


def finished(engine: Heritrix, job: str) -> None:
    running(engine, job)
    engine.terminate(job)


# Daily a few of them, as each starts the engine anew; `scripts/test full` tries them all.
KILLS: dict[str, tuple[list[object], list[object]]] = {
    "come_to": ([running, finished], [unbuilt, ready, paused]),
    "action": (["launch", "checkpoint", "terminate"], ["build", "unpause", "pause", "teardown"]),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, (daily, others) in KILLS.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, daily + others if metafunc.config.getoption("--every-point") else daily)


def test_an_engine_killed_is_unavailable_and_the_job_can_be_launched_anew(
    heritrix: Server, engine: Heritrix, job: str, come_to: object, fault_log: FaultLog
) -> None:
    assert callable(come_to)
    come_to(engine, job)
    before = engine.launch_id(job)
    heritrix.kill()
    fault_log.injected("Heritrix, killed")
    try:
        actions = (engine.build, engine.launch, engine.pause, engine.checkpoint, engine.terminate, engine.teardown)
        for action in (*actions, engine.create, engine.job, engine.launch_id, engine.last_words):
            with pytest.raises(Unavailable, match="Connection refused"):
                action(job)
    finally:
        heritrix.start()
    assert state(engine, job) is JobState.UNBUILT
    assert engine.launch_id(job) == before
    launch = engine.launch(job)
    assert launch != before


def test_an_engine_killed_in_the_midst_of_an_action(
    heritrix: Server, engine: Heritrix, job: str, action: str, fault_log: FaultLog
) -> None:
    if action not in ("build", "launch"):
        running(engine, job)
        crawled(engine, job, 5)
    if action == "unpause":
        engine.pause(job)
    if action == "teardown":
        engine.terminate(job)
    send = engine._wire.post

    def send_and_kill(path: str, fields: dict[str, str], seconds: float = 60) -> object:
        answer = send(path, fields, seconds)
        heritrix.kill()
        fault_log.injected("Heritrix, killed")
        return answer

    engine._wire.post = send_and_kill  # type: ignore[method-assign,assignment]
    try:
        with pytest.raises(Unavailable, match="the engine at"):
            getattr(engine, action)(job)
    finally:
        engine._wire.post = send  # type: ignore[method-assign]
        heritrix.start()
    assert state(engine, job) is JobState.UNBUILT


def test_a_changed_certificate_is_refused_before_anything_is_said(
    heritrix: Server, engine: Heritrix, fault_log: FaultLog
) -> None:
    pin = fingerprint(heritrix.certificate)
    heritrix.change_certificate()
    with pytest.raises(Mismatch, match=f"if it was renewed, pin the new one.*expected {pin}, found"):
        engine.engine()
    fault_log.injected("Heritrix, another certificate")
    renewed = client(heritrix)
    assert renewed.engine().version == "3.13.0"
    renewed.close()
