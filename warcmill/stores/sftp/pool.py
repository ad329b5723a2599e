"""Keep SFTP sessions with one host, and lend them to threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from warcmill.errors import Unavailable
from warcmill.stores.remote_files import Broken, Budget
from warcmill.stores.sftp.session import Download, SftpRefusal, SftpSession

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_IDLE = 8  # sessions
Value = TypeVar("Value")


class SessionPool:
    """Sessions with one host. Each is used by one thread at a time, and kept for the next."""

    def __init__(self, name: str, connect: Callable[[], SftpSession], budget: Budget) -> None:
        self.name, self.budget = name, budget
        self._connect = connect
        self._idle: list[SftpSession] = []
        self._lock = threading.Lock()

    def take(self) -> SftpSession:
        """Return a session for the caller alone; Broken when no connection is possible."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def give(self, session: SftpSession) -> None:
        """Return a sound session to the pool."""
        with self._lock:
            if len(self._idle) < _IDLE:
                self._idle.append(session)
                return
        session.close()

    @contextmanager
    def session(self) -> Iterator[SftpSession]:
        """Lend a session. When it breaks, the idle ones are closed too: they are as old."""
        session = self.take()
        try:
            yield session
        except SftpRefusal:
            self.give(session)
            raise
        except Broken:
            session.close()
            self.close()
            raise
        except BaseException:  # the caller stopped in the middle of a request
            session.close()
            raise
        self.give(session)

    def close(self) -> None:
        """Close all idle sessions."""
        with self._lock:
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()

    def __del__(self) -> None:
        self.close()

    def ask(self, work: Callable[[SftpSession], Value]) -> Value:
        """Return the result of `work`, which is repeated when the connection breaks."""
        while True:
            try:
                with self.session() as session:
                    result = work(session)
                self.budget.answered()
                return result
            except Broken:
                if not self.budget.wait():
                    raise


class Lent:
    """A download with its own session until it is closed."""

    def __init__(self, pool: SessionPool, path: bytes, start: int, size: int) -> None:
        self._pool, self._session = pool, pool.take()
        self._sound = True
        try:
            self._download = Download(self._session, path, start, size)
        except BaseException:
            self._session.close()
            raise

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        try:
            return self._download.readinto(buffer)
        except Unavailable:
            self._sound = False
            raise

    def close(self) -> None:
        if self._sound:
            self._download.close()
            self._pool.give(self._session)
        else:
            self._session.close()
            self._pool.close()
