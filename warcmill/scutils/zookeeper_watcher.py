"""A file in ZooKeeper that is watched, across lost connections and sessions. Reads ZooKeeper; may make the path.

The extra `zookeeper` brings its client. While ZooKeeper is away the last contents stay, and are called not valid.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import RLock
from typing import Any, Final

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import EventType

_log = logging.getLogger(__name__)
_PING_SECONDS: Final = 5
_RETRIES: Final = {"max_tries": -1, "delay": 0.1, "max_delay": 5}  # of a connection, in seconds; for ever


class ZookeeperWatcher:
    """The contents of a file, or of the file that its contents name."""

    INVALID_PATH = "Invalid pointer path"
    INVALID_GET = "Invalid get on file path"
    BAD_CONNECTION = "Connection interrupted with Zookeeper, re-establishing"

    def __init__(
        self,
        hosts: str,
        filepath: str,
        valid_handler: Callable[[bool], object] | None = None,
        config_handler: Callable[[str], object] | None = None,
        error_handler: Callable[[str], object] | None = None,
        pointer: bool | None = False,
        ensure: bool = False,
        valid_init: bool = True,
    ) -> None:
        """Watch `filepath`. The handlers get a new validity, new contents, and what is wrong; later ones in a thread.

        `pointer`: the file holds the path of another one, which is watched as well. `ensure` makes the file if there is
        none. `valid_init` waits for ZooKeeper, KazooTimeoutError after 15 s; else the first contents come later.
        """
        self.hosts, self.my_file, self.pointer, self.ensure = hosts, filepath, bool(pointer), ensure
        self.valid_handler, self.config_handler, self.error_handler = valid_handler, config_handler, error_handler
        self.valid_file, self.old_data, self.old_pointed = False, "", ""
        self._lock = RLock()
        self._wrong = ""  # the error that was reported last: one that stays is reported once
        self.zoo_client = KazooClient(hosts=hosts, connection_retry=dict(_RETRIES))
        self.zoo_client.add_listener(self._state)
        if valid_init:
            self.zoo_client.start()
            self._refresh()
        else:
            self.zoo_client.start_async()

    def is_valid(self) -> bool:
        """Return True while the contents are known to be the current ones."""
        return self.valid_file

    def get_file_contents(self, pointer: bool = False) -> str:
        """Return the contents; with `pointer` those of the file that names the other one."""
        return self.old_pointed if self.pointer and pointer else self.old_data

    def ping(self) -> bool:
        """Return True if ZooKeeper answers now."""
        try:
            self.zoo_client.exists_async("/").get(timeout=_PING_SECONDS)
        except (KazooException, KazooTimeoutError):
            return False
        return True

    def close(self, kill_restart: bool = True) -> None:
        """End the session. With `kill_restart=False` a new session starts, and watches the file."""
        if not kill_restart:
            self.zoo_client.restart()
            return
        self.zoo_client.remove_listener(self._state)
        self.zoo_client.stop()
        self.zoo_client.close()

    def _state(self, state: str) -> None:
        """A listener of the client: it runs in the thread of the connection, so it must not wait for the lock."""
        self.zoo_client.handler.spawn(self._refresh if state == KazooState.CONNECTED else self._lost)

    def _lost(self) -> None:
        with self._lock:
            if not self.zoo_client.connected:
                self._fail(self.BAD_CONNECTION)

    def _changed(self, event: Any) -> None:
        """A watch fires once, so reading again sets the next. The end of a session is an event too."""
        if event.type != EventType.NONE:
            self.zoo_client.handler.spawn(self._refresh)

    def _refresh(self) -> None:
        with self._lock:
            try:
                if self.ensure:
                    self.zoo_client.ensure_path(self.my_file)
                self._take()
            except (KazooException, KazooTimeoutError) as error:
                _log.warning("%s of %s: %r; it is read again once connected", self.my_file, self.hosts, error)
                self._become(valid=False)

    def _take(self) -> None:
        text = self._read(self.my_file)
        if text is None:
            self._fail(self.INVALID_GET)
            return
        if self.pointer:
            self.old_pointed = text
            text = self._read(text) if text.startswith("/") else None
            if text is None:
                self.old_data = ""
                self._fail(self.INVALID_PATH)
                return
        if text != self.old_data:
            self.old_data = text
            self._call(self.config_handler, text)
        self._wrong = ""
        self._become(valid=bool(self.zoo_client.connected))

    def _read(self, path: str) -> str | None:
        """The contents of a file, which is watched from now on; None if the file is missing, or not text."""
        try:
            if self.zoo_client.exists(path, watch=self._changed) is None:
                return None
            return str(self.zoo_client.get(path, watch=self._changed)[0].decode("utf-8"))
        except (NoNodeError, ValueError):  # removed in between; no path, no text
            return None

    def _fail(self, why: str) -> None:
        self._become(valid=False)
        self._report(why)

    def _report(self, why: str) -> None:
        if why != self._wrong:
            self._wrong = why
            self._call(self.error_handler, why)

    def _become(self, *, valid: bool) -> None:
        if valid != self.valid_file:
            self.valid_file = valid
            self._call(self.valid_handler, valid)

    def _call(self, handler: Callable[[Any], object] | None, value: object) -> None:
        if handler is None:
            return
        try:
            handler(value)
        except Exception:  # noqa: BLE001 somebody else's code: it must not end the watch
            _log.exception("a handler of %s failed", self.my_file)
