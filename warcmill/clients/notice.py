"""Send one notice a run: what an operator must look at, by mail or as JSON to a webhook.

Only the standard library, and nothing from the environment: a proxy set there would see the webhook's
URL, which is a secret. Nothing is retried or stored: `warcmill reconcile` still reports everything in a
notice that could not be sent.
"""

from __future__ import annotations

import json
import smtplib
import ssl
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from email.message import EmailMessage
from http.client import HTTPException
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import asdict, replace

from warcmill.base.escapes import printable
from warcmill.errors import BadConfig, Unavailable

TIMEOUT = 30  # seconds
TLS = ("none", "starttls", "tls")
SHOWN = 50  # troubles listed in one mail or webhook; the rest are counted


class Trouble(Struct, frozen=True):
    """One thing to look at. `kind` is refused, failed, stale, or unreadable; `name` a file's or a marker's."""

    launch: str
    kind: str
    name: str
    why: str


class Notice(Struct, frozen=True):
    """The news of a scan: the troubles that no notice named yet, and those that were named and have ended. `todo` is
    the command that shows more, `link` the page that does, '' where luigi.cfg has no address of the pages."""

    scan: str
    interval: str
    host: str
    troubles: tuple[Trouble, ...]
    todo: str
    ended: tuple[Trouble, ...] = ()
    link: str = ""


class Channels(Struct, frozen=True):
    """Where notices go: mail, a webhook, both or neither."""

    mail_to: str = ""
    mail_from: str = ""
    smtp_host: str = "localhost"
    smtp_port: int = 25
    smtp_tls: str = "none"
    smtp_user: str = ""
    smtp_password: str = ""
    webhook: str = ""
    proxy: str = ""

    def __repr__(self) -> str:
        return f"Channels({self.mail_to!r})"  # without secrets: a URL may have one too

    @property
    def each(self) -> dict[str, Channels]:
        """Each that is configured alone, by its name."""
        alone = {"mail": replace(self, webhook=""), "webhook": replace(self, mail_to="")}
        return {name: one for name, one in alone.items() if one.mail_to or one.webhook}

    def check(self) -> None:
        """Raise BadConfig for a channel that cannot work, or would reveal a secret."""
        if self.mail_to and not self.mail_from:
            raise BadConfig("[notice] mail_from", "must be set where mail_to is: the address that notices come from")
        for name in ("mail_to", "mail_from"):
            if not getattr(self, name).isprintable():
                raise BadConfig(f"[notice] {name}", "must be one line")
        self._check_login()
        if self.webhook and not _is_url(self.webhook, "http", "https"):
            raise BadConfig("[notice] webhook", "must be a URL that begins with https:// or http://")
        if self.proxy and not _is_url(self.proxy, "http"):
            raise BadConfig("[notice] proxy", "must be http://HOST:PORT")

    def _check_login(self) -> None:
        if self.smtp_tls not in TLS:
            raise BadConfig("[notice] smtp_tls", f"is {self.smtp_tls}; one of {', '.join(TLS)}")
        if bool(self.smtp_user) != bool(self.smtp_password):
            raise BadConfig("[notice] smtp_user", "needs smtp_password or smtp_password_file, and they need it")
        if self.smtp_user and self.smtp_tls == "none":
            raise BadConfig("[notice] smtp_tls", "must be starttls or tls where smtp_user is set: else all can read it")
        if not (self.smtp_user + self.smtp_password).isascii() or not self.smtp_password.isprintable():
            raise BadConfig("[notice] smtp_password", "and smtp_user must be printable ASCII, on one line")


def _is_url(text: str, *schemes: str) -> bool:
    try:
        where = urlsplit(text)
        return where.scheme in schemes and bool(where.hostname) and where.port != 0 and text.isprintable()
    except ValueError:  # for example a port that is not a number
        return False


def subject(notice: Notice) -> str:
    """The notice in one line."""
    kinds = [trouble.kind for trouble in notice.troubles]
    counts = [f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))]
    counts += [f"{len(notice.ended)} ended"] if notice.ended else []
    return f"warcmill: {notice.scan} {notice.interval}: {', '.join(counts)}"


def text(notice: Notice) -> str:
    """The notice as text for people."""
    return "\n".join(_lines(notice)) + "\n"


def _lines(notice: Notice) -> Iterator[str]:
    if notice.troubles:
        yield f"{notice.scan} of {notice.interval} on {notice.host} ended with something to look at."
    else:
        yield f"{notice.scan} of {notice.interval} on {notice.host}: troubles that were named before have ended."
    for trouble in notice.troubles[:SHOWN]:
        yield ""
        yield f"{trouble.launch}: {trouble.kind}: {printable(trouble.name)}"
        yield f"    {printable(trouble.why)}"
    if len(notice.troubles) > SHOWN:
        yield f"\nand {len(notice.troubles) - SHOWN} more"
    for trouble in notice.ended[:SHOWN]:
        yield f"\nended: {trouble.launch}: {trouble.kind}: {printable(trouble.name)}"
    if len(notice.ended) > SHOWN:
        yield f"\nand {len(notice.ended) - SHOWN} more have ended"
    if notice.troubles:
        yield f"\nNext:\n    {notice.todo}"
    if notice.link:
        yield f"\nOr open:\n    {notice.link}"


def document(notice: Notice) -> dict[str, Any]:
    """The notice for programs: the fields of Notice with at most SHOWN troubles of each list, and `counts` of the new
    ones by kind."""
    kinds = [trouble.kind for trouble in notice.troubles]
    counts = {kind: kinds.count(kind) for kind in set(kinds)}
    listed = [asdict(trouble) for trouble in notice.troubles[:SHOWN]]
    ended = [asdict(trouble) for trouble in notice.ended[:SHOWN]]
    return {**asdict(notice), "troubles": listed, "ended": ended, "counts": counts}


def send(channels: Channels, notice: Notice) -> None:
    """Send the notice by each configured channel; after all were tried, raise Unavailable for those that failed."""
    failed = []
    for configured, send_by in ((channels.mail_to, send_mail), (channels.webhook, send_webhook)):
        try:
            if configured:
                send_by(channels, notice)
        except Unavailable as error:
            failed.append(error)
    if failed:
        what, why = "; ".join(map(str, failed[:-1])), failed[-1].why
        raise Unavailable(f"{what}; {failed[-1].what}" if what else failed[-1].what, why)


def send_mail(channels: Channels, notice: Notice) -> None:
    """Send the notice to the mail server; Unavailable if that fails."""
    what = f"mail server {channels.smtp_host}:{channels.smtp_port}"
    try:
        mail = EmailMessage()
        mail["Subject"], mail["From"], mail["To"] = subject(notice), channels.mail_from, channels.mail_to
        mail.set_content(text(notice))
        with _mail_server(channels) as server:
            if channels.smtp_tls == "starttls":
                server.starttls(context=ssl.create_default_context())
            if channels.smtp_user:
                server.login(channels.smtp_user, channels.smtp_password)
            server.send_message(mail)
    except smtplib.SMTPAuthenticationError as error:  # its text may repeat the password
        why = f"it refused the login of {channels.smtp_user} with {error.smtp_code}"
        raise Unavailable(what, why) from None
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise Unavailable(what, str(error)) from error


def _mail_server(channels: Channels) -> smtplib.SMTP:
    host, port = channels.smtp_host, channels.smtp_port
    if channels.smtp_tls == "tls":
        return smtplib.SMTP_SSL(host, port, timeout=TIMEOUT, context=ssl.create_default_context())
    return smtplib.SMTP(host, port, timeout=TIMEOUT)


def send_webhook(channels: Channels, notice: Notice) -> None:
    """POST the notice; Unavailable if that fails. The URL may hold a secret: errors name only its host."""
    data = json.dumps(document(notice), ensure_ascii=False, sort_keys=True).encode("utf-8", "backslashreplace")
    request = urllib.request.Request(  # noqa: S310 - `check` let only http and https through
        channels.webhook, data, {"Content-Type": "application/json; charset=utf-8"}, method="POST"
    )
    if channels.proxy:
        _by_proxy(request, channels.proxy)
    host = urlsplit(channels.webhook).hostname
    try:
        with _opener().open(request, timeout=TIMEOUT):
            pass  # only its status counts: others than 2xx raise
    except urllib.error.HTTPError as error:
        error.close()
        raise Unavailable(f"webhook on {host}", f"it answered {error.code}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise Unavailable(f"webhook on {host}", _why(error)) from None


def _opener() -> urllib.request.OpenerDirector:
    """An opener that ignores the environment's proxies and verifies certificates."""
    secure = urllib.request.HTTPSHandler(context=ssl.create_default_context())
    return urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}), secure)


def _by_proxy(request: urllib.request.Request, proxy: str) -> None:
    """Send a request through this proxy, which sees only the host of an https URL."""
    user, _, place = urlsplit(proxy).netloc.rpartition("@")
    if user:
        encoded = b64encode(unquote(user).encode()).decode()
        request.add_unredirected_header("Proxy-Authorization", f"Basic {encoded}")
    request.set_proxy(place, "http")


def _why(error: Exception) -> str:
    """Why a webhook was not reached, in words that cannot contain its URL."""
    cause = getattr(error, "reason", error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not good: {cause.verify_message}"
    return cause.strerror or type(cause).__name__ if isinstance(cause, OSError) else type(error).__name__


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuse redirects: one would send the notice to a place that nobody configured."""

    def redirect_request(self, *_: object) -> None:
        return None
