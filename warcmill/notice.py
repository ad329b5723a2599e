"""One notice a run: what an operator has to look at, by mail or as JSON to a webhook.

Standard library only. Nothing is sent twice and nothing is kept: a notice that
cannot be sent is lost, `warcmill reconcile` still tells all of it.
"""

from __future__ import annotations

import json
import smtplib
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from email.message import EmailMessage
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from warcmill.errors import BadConfig, Unavailable

TIMEOUT = 30  # seconds
SHOWN = 50  # troubles in one mail or webhook: the rest are counted


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing to look at. `kind` is refused, failed, stale, or unreadable; `name` a file's or a marker's."""

    launch: str
    kind: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Notice:
    """What a scan ended with. `todo` is the command that tells more."""

    scan: str
    interval: str
    host: str
    troubles: tuple[Trouble, ...]
    todo: str


@dataclass(frozen=True, slots=True)
class Channels:
    """Where notices go: neither, one or both of mail and webhook."""

    mail_to: str = ""
    mail_from: str = ""
    smtp_host: str = "localhost"
    smtp_port: int = 25
    webhook: str = ""

    def check(self) -> None:
        """BadConfig for what could not be sent to."""
        if self.mail_to and not self.mail_from:
            raise BadConfig("[notice] mail_from", "must be set where mail_to is: the address that notices come from")
        for name in ("mail_to", "mail_from"):
            if not getattr(self, name).isprintable():
                raise BadConfig(f"[notice] {name}", "must be one line")
        where = urlsplit(self.webhook)
        if self.webhook and (
            where.scheme not in ("http", "https") or not where.hostname or not self.webhook.isprintable()
        ):
            raise BadConfig("[notice] webhook", "must be a URL that begins with https:// or http://")


def subject(notice: Notice) -> str:
    """The notice in one line."""
    kinds = [one.kind for one in notice.troubles]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    return f"warcmill: {notice.scan} {notice.interval}: {counts}"


def text(notice: Notice) -> str:
    """The notice for people."""
    return "\n".join(_lines(notice)) + "\n"


def _lines(notice: Notice) -> Iterator[str]:
    yield f"{notice.scan} of {notice.interval} on {notice.host} ended with something to look at."
    for one in notice.troubles[:SHOWN]:
        yield ""
        yield f"{one.launch}: {one.kind}: {_plain(one.name)}"
        yield f"    {_plain(one.why)}"
    if len(notice.troubles) > SHOWN:
        yield f"\nand {len(notice.troubles) - SHOWN} more"
    yield f"\nNext:\n    {notice.todo}"


def _plain(name: str) -> str:
    """Names come from outside: one line each, and nothing that hides."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)


def document(notice: Notice) -> dict[str, Any]:
    """The notice for machines: the fields of Notice, and `counts` by kind, which are of all troubles."""
    kinds = [one.kind for one in notice.troubles]
    counts = {kind: kinds.count(kind) for kind in set(kinds)}
    return {**asdict(notice), "troubles": [asdict(one) for one in notice.troubles[:SHOWN]], "counts": counts}


def send_mail(channels: Channels, notice: Notice) -> None:
    """Hand the notice to the mail server, or Unavailable."""
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = subject(notice), channels.mail_from, channels.mail_to
    mail.set_content(text(notice))
    try:
        with smtplib.SMTP(channels.smtp_host, channels.smtp_port, timeout=TIMEOUT) as server:
            server.send_message(mail)
    except (OSError, smtplib.SMTPException) as error:
        raise Unavailable(f"mail server {channels.smtp_host}:{channels.smtp_port}", str(error)) from error


def send_webhook(channels: Channels, notice: Notice) -> None:
    """POST the notice, or Unavailable. The URL may hold a secret: errors tell its host alone."""
    data = json.dumps(document(notice), ensure_ascii=False, sort_keys=True).encode()
    request = urllib.request.Request(  # noqa: S310 - `check` let only http and https through
        channels.webhook, data, {"Content-Type": "application/json; charset=utf-8"}, method="POST"
    )
    host = urlsplit(channels.webhook).hostname
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT):
            pass  # what it answers is of no use; that it answered 2xx is
    except urllib.error.HTTPError as error:
        error.close()
        raise Unavailable(f"webhook on {host}", f"it answered {error.code}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise Unavailable(f"webhook on {host}", type(error).__name__) from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry what we tell to a place that nobody configured."""

    def redirect_request(self, *_: object) -> None:
        return None
