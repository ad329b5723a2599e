"""The server of `warcmill serve`: the line and its crawls in a browser, search, replay; and its tokens."""

from __future__ import annotations

import argparse
import hmac
import ipaddress
import logging
import shutil
import signal
import sys
import threading
from collections.abc import Iterable
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from commands.console.job_desk import OwnJobs
from commands.console.replaying import replay_sources
from commands.console.script_jobs import script_place
from commands.console.show import as_json, err, out
from tasks import desk, logs
from tasks.audited import audited
from tasks.config import engines, groups
from tasks.config.serve import Serving, program_of, replay_folder, serving
from tasks.config.settings import Settings, settings
from tasks.health import look
from tasks.line import OpenRoots, open_line
from warcmill.audit.answers.health import Asker, Refresher
from warcmill.decisions import folder_import
from warcmill.errors import BadConfig, WarcmillError
from warcmill.formats.pypi.data_sets import DISTRIBUTIONS
from warcmill.markers import locks
from warcmill.model import Json
from warcmill.pypi.answers import PublishedData
from warcmill.pypi.data_sets import PublishedHistory, open_history
from warcmill.replay import pywb
from warcmill.replay.pywb import LOOPBACK, NAME, OFF, NoReplay, Pywb, ReplaySources
from warcmill.stores.opening import check_place, open_folder
from warcmill.versions.publication import Payloads
from warcmill.web import access, server
from warcmill.web.access import ROLES, OneTime, TokenFile, WebAccess
from warcmill.web.actions import Actions
from warcmill.web.app import application
from warcmill.web.archive import NO_INDEX, Archive
from warcmill.web.askers import Askers
from warcmill.web.handover import files
from warcmill.web.rendering import STYLE
from warcmill.web.served import Served

if TYPE_CHECKING:
    from warcmill.scripts.debugger import ScriptDebugger

NOT_WANTED = "Archived pages are not shown: [serve] replay is false, or --no-replay"
_HOUR = 3600.0  # seconds
log = logging.getLogger(__name__)
PROGRAM = (sys.executable, "-P", "-m", "commands.main")  # runs the verb of an action, with our environment


def run(args: argparse.Namespace) -> int:
    """Serve until a signal; or make, list or withdraw a token."""
    if args.what == "token":
        return _TOKENS[args.action](open_line(), args)
    config, asked, line = settings(), _asked(serving(), args), open_line()
    if args.get_replay:
        with locks.alone(line.state, pywb.FOLDER):
            pywb.install(replay_folder(config), err)
    entry = _access(line, asked)
    check_place("store", config.store)
    open_store = cache(config.open_store)  # an error is not kept: a store that was away is opened once it is there
    archive = Archive(
        line.state.store, (lambda: open_folder("index", config.index)) if config.index else None, open_store
    )
    program = _program(config, asked)
    if asked.replay:
        server.check_free(asked.replay_listen, asked.replay_port, "replay_port")
    logs.configure()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    with replay_sources(config, line.state.store, open_store, program) as places:
        replay = _replay(config, program, places, asked)
        refresh, debugger = Refresher(partial(look, Asker())).wanted, _Debugger()
        served = Served(
            *(line.state, archive, replay, entry, lambda: audited(open_line())),
            refresh=refresh,
            actions=Actions(PROGRAM),
            packages=partial(_packages, line),
            package_data=partial(_package_data, line),
            has_walls=engines.has_script_walls,
            script_place=script_place,
            debugger=debugger.opened,
            groups=groups.group_names,
            group_named=groups.group_named,
            desk=partial(desk.opened, line) if config.index else None,
            has_documents=desk.is_on,
            job_desk=OwnJobs(),
            askers=Askers(engines.running_job),
            file_days=asked.wacz_days,
            largest_upload=asked.largest_upload,
            why_no_import=_why_no_import,
        )
        ended = threading.Event()
        threading.Thread(target=_sweep_hourly, args=(served, ended), name="sweep", daemon=True).start()
        try:
            server.serve(application(served), asked.listen, asked.port, partial(_begin, served, replay, asked))
        finally:
            ended.set()
            debugger.close()
            replay.stop()
    return 0


class _Debugger:
    """The debugger of scripts, which begins at its first step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: list[ScriptDebugger] = []

    def opened(self) -> ScriptDebugger:
        """The debugger; BadConfig where what reads pages for scripts is not installed."""
        with self._lock:
            if not self._begun:
                try:
                    from warcmill.scripts.debugger import ScriptDebugger
                except ImportError as error:
                    why = f"{error.name} is missing; pip install 'warcmill[scripts]'"
                    raise BadConfig("scripts", why) from error
                self._begun.append(ScriptDebugger())
            return self._begun[0]

    def close(self) -> None:
        """End its processes."""
        for one in self._begun:
            one.close()


def _asked(configured: Serving, args: argparse.Namespace) -> Serving:
    """[serve] with the options before it. BadConfig if no port is left for replay."""
    asked = replace(configured, replay=configured.replay and not args.no_replay)
    if args.port is None:
        return asked
    if asked.replay and args.port + 1 == 1 << 16:
        raise BadConfig("--port", f"is {args.port}, and replay has the port after it; choose another, or --no-replay")
    return replace(asked, port=args.port, replay_port=args.port + 1)


def _packages(line: OpenRoots) -> PublishedHistory | None:
    """The current history of a package index; None where none is published."""
    if not line.settings.index:
        return None
    index = open_folder("index", line.settings.index)
    found = Payloads(index, DISTRIBUTIONS).current()
    return open_history(line.state.store, index, found) if found else None


def _package_data(line: OpenRoots) -> PublishedData | None:
    """The places of the data sets of a package index; None for a line without an index root."""
    index = line.settings.index
    return PublishedData(line.state.store, open_folder("index", index)) if index else None


def _access(line: OpenRoots, asked: Serving) -> WebAccess:
    """All that gives a role; BadConfig where others than this machine may ask, and no token or proxy names them."""
    state = line.state.store
    usable = (token for token in access.tokens(state) if not token.why and not token.is_over)
    has_some = bool(asked.token or asked.proxies.networks or any(usable))
    if not asked.is_loopback and not has_some:
        why = f"is {asked.listen}, which other machines reach, and there are no tokens: 'warcmill serve token add NAME"
        raise BadConfig("[serve] listen", f"{why} --role operator' makes one, and [serve] proxies names a proxy")
    first = None if has_some else OneTime(access.new_secret())
    return WebAccess(state, f"warcmill-{asked.port}", asked.token, first, asked.proxies)


def _program(config: Settings, asked: Serving) -> Path | str:
    """The program of pywb, or the reason why nothing replays. BadConfig if luigi.cfg names one that is missing."""
    if not asked.replay:
        return NOT_WANTED
    try:
        return program_of(config, asked)
    except BadConfig as error:
        if asked.pywb:
            raise
        why = error.why if shutil.which("wayback") else f"pywb, which shows them, is not installed; {pywb.INSTALL}"
        return f"Archived pages cannot be shown yet: {why}"


def _replay(config: Settings, program: Path | str, places: ReplaySources, asked: Serving) -> Pywb | NoReplay:
    if program == NOT_WANTED:
        return NoReplay(NOT_WANTED, asked.replay_url or f"http://{NAME}", OFF)
    if isinstance(program, str) or not config.index:
        why = program if isinstance(program, str) and config.index else NO_INDEX
        return NoReplay(why, asked.replay_url or f"http://{NAME}")
    name, pages = _name_of_replay(asked), "" if asked.replay_url else f"{_address(asked)}/"  # behind a proxy: not known
    return Pywb(program, places, asked.replay_port, name, STYLE, asked.replay_url, asked.replay_listen, pages)


def _address(asked: Serving) -> str:
    """The address of the pages, as a browser of this machine opens it."""
    listen = ipaddress.ip_address(asked.listen)
    if listen.is_unspecified:
        return f"http://{LOOPBACK}:{asked.port}"
    return f"http://{f'[{listen}]' if listen.version == 6 else listen}:{asked.port}"


def _name_of_replay(asked: Serving) -> str:
    """A name for what is replayed that another site's page cannot guess; no token follows from it."""
    secret = asked.token or access.new_secret()
    return hmac.new(secret.encode(), b"replay", sha256).hexdigest()[:24]


def _begin(served: Served, replay: Pywb | NoReplay, asked: Serving) -> None:
    """Start replay, and print where to begin, and what is missing. A token that the operator knows is not printed."""
    replay.start()
    err(*served.missing())
    threading.Thread(target=_look_for_store, args=(served.archive,), daemon=True).start()
    first = served.access.first
    out(f"{_address(asked)}/sign-in" + (f"?token={first.secret}" if first else ""))
    err("Ctrl-C ends it")


def _look_for_store(archive: Archive) -> None:
    """Print that the store does not answer; a server may need a minute until that is known, and nobody waits for it."""
    try:
        archive.check_store()
    except WarcmillError as error:
        err(f"Nothing can be replayed now: {error}")


def _why_no_import(job: str) -> str:
    """Why `warcmill import` would refuse this job, or all where none is named, by luigi.cfg as it is now; '' if not."""
    try:
        line = open_line()
        line.settings.open_imported()
        return folder_import.why_not(line.rootmap, line.state, job) if job else ""
    except WarcmillError as error:
        return str(error)


def _sweep_hourly(served: Served, ended: threading.Event) -> None:
    """Remove files of pages that are too old, now and once an hour."""
    while True:
        try:
            files.sweep(served.state.store, served.file_days, served.actions.is_running)
        except OSError as error:
            log.error("%s: files that are too old were not removed: %s", error.filename, error.strerror)
        if ended.wait(_HOUR):
            return


def _end(*_: object) -> None:
    sys.exit(0)


def _add(line: OpenRoots, args: argparse.Namespace) -> int:
    out(access.add_token(line.state.store, args.name, ROLES[args.role], args.days))
    return 0


def _list(line: OpenRoots, args: argparse.Namespace) -> int:
    listed = [*access.tokens(line.state.store)]
    if args.json:
        print(as_json(_answer(listed)))
        return 0
    for token in listed:
        if token.why:
            out(f"{token.name}: {token.why}; withdraw it")
        else:
            until = f"until {token.until}" if token.until else "without an end"
            over = ", which is over" if token.is_over else ""
            out(f"{token.name}: {token.role.word}, of {token.made}, {until}{over}")
    if not listed:
        out("there is no token; 'warcmill serve token add NAME --role ROLE' makes one")
    return 0


def _answer(listed: Iterable[TokenFile]) -> dict[str, Json]:
    return {
        "tokens": [
            {"made": one.made, "name": one.name, "role": one.role.word, "until": one.until, "why": one.why}
            for one in listed
        ]
    }


def _withdraw(line: OpenRoots, args: argparse.Namespace) -> int:
    access.withdraw_token(line.state.store, args.name)
    out(f"{args.name}: the token is withdrawn")
    return 0


_TOKENS = {"add": _add, "list": _list, "withdraw": _withdraw}
