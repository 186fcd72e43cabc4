"""Messages as files in a folder, or over SMTP; what was sent is not sent again."""

from __future__ import annotations

import os
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from pathlib import Path
from typing import Protocol

from lmcourse.errors import CourseError

PASSWORD = "LMCOURSE_SMTP_PASSWORD"
"""The environment's variable with the password: on a command line everybody on the machine could read it."""

TLS_PORT = 465
"""Where TLS begins with the connection; elsewhere a server is asked to begin it (STARTTLS)."""

TIMEOUT = 60
"""Seconds that a server may take for an answer."""

LOCAL = ("localhost", "127.0.0.1", "::1")
"""Servers on this machine, which need neither TLS nor a password."""

SENT = "sent"
"""The folder beside the messages' files to which each goes that was sent."""


@dataclass(frozen=True)
class Server:
    """A mail server.

    Attributes:
        host, port: where it is.
        user: who logs in, with the password in the environment; nobody if empty.
        context: which certificates are good; those of this system by default.
    """

    host: str
    port: int
    user: str = ""
    context: ssl.SSLContext | None = None


class Connection(Protocol):
    """What can send a message: `smtplib.SMTP`."""

    def send_message(self, msg: EmailMessage) -> object:
        """Send it, or raise `smtplib.SMTPException`."""


def parse_server(text: str, user: str = "") -> Server:
    """The server in HOST:PORT.

    Raises:
        CourseError: it is no such thing.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise CourseError(f"{text} is no mail server: write HOST:PORT, as smtp.example.org:587.")
    return Server(host.strip("[]"), int(port), user)


@contextmanager
def connected(server: Server) -> Iterator[Connection]:
    """A connection, in TLS unless the server is on this machine.

    Raises:
        CourseError: there is none, it has no TLS, or the password is missing or wrong.
    """
    where = f"{server.host}:{server.port}"
    password = os.environ.get(PASSWORD, "")
    if server.user and not password:
        raise CourseError(f"There is no password for {server.user}: put it into the environment, as {PASSWORD}.")
    context = server.context or ssl.create_default_context()
    try:
        with _connection(server, context) as connection:
            connection.ehlo()
            if connection.has_extn("starttls"):
                connection.starttls(context=context)
            elif server.port != TLS_PORT and server.host not in LOCAL:
                raise CourseError(f"{where} offers no TLS: learners' marks are not sent in the clear.")
            if server.user:
                connection.login(server.user, password)
            yield connection
    except smtplib.SMTPAuthenticationError as error:
        raise CourseError(f"{where} does not take the password of {server.user}.") from error
    except ssl.SSLError as error:
        raise CourseError(f"{where} cannot be trusted ({error.reason}): is it the right name?") from error
    except (smtplib.SMTPException, OSError) as error:
        raise CourseError(f"{where} does not answer as a mail server should ({_one(error)}).") from error


def _connection(server: Server, context: ssl.SSLContext) -> smtplib.SMTP:
    if server.port == TLS_PORT:
        return smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT, context=context)
    return smtplib.SMTP(server.host, server.port, timeout=TIMEOUT)


def write_message(message: EmailMessage, path: Path) -> None:
    """Write a message into a file, at once.

    Raises:
        CourseError: it cannot be written.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(message.as_bytes())
        new.replace(path)
    except OSError as error:
        raise CourseError(f"{path} cannot be written ({error.strerror}): name another folder.") from error
    finally:
        new.unlink(missing_ok=True)


def was_sent(message: EmailMessage, path: Path) -> bool:
    """Whether just this message is among those that were sent.

    Args:
        message: any.
        path: of its file before it was sent.
    """
    sent = path.parent / SENT / path.name
    return sent.is_file() and message_from_bytes(sent.read_bytes())["Message-ID"] == message["Message-ID"]


def send(message: EmailMessage, path: Path, connection: Connection) -> str:
    """Send a message, and keep it as a file among those that were sent.

    Returns:
        Why the server did not take it; or nothing.
    """
    try:
        connection.send_message(message)
    except (smtplib.SMTPRecipientsRefused, smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
        return _one(error)
    write_message(message, path.parent / SENT / path.name)
    path.unlink(missing_ok=True)
    return ""


def _one(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
