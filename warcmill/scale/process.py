"""A process of `processes`: it does what it is sent, until its starter ends.

python -m warcmill.scale.process      # `processes` starts it; its input is a socket
"""

from __future__ import annotations

import signal
from multiprocessing.connection import Connection

from warcmill.scale.work import answer


def serve(starter: Connection) -> None:
    """Answer until the starter has ended."""
    while True:
        try:
            starter.send(answer(starter.recv()))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve(Connection(0))
