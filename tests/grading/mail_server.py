"""A real mail server on this machine, which keeps what it is given."""

from __future__ import annotations

import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

PASSWORD = "mail password of a test"


@dataclass
class MailServer:
    """What came: who it is for, and what it says. Who is in `refused` gets nothing."""

    refused: tuple[str, ...] = ()
    port: int = 0
    received: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        message = cast(EmailMessage, message_from_bytes(envelope.content, policy=default))
        self.received.append((list(envelope.rcpt_tos), message))
        self.encrypted.append(session.ssl is not None)
        return "250 OK"


@contextmanager
def mail_server(server: MailServer, certificate: Path | None = None) -> Iterator[MailServer]:
    """Run it on a free port; with a certificate it asks for TLS and a password."""
    options: dict[str, Any] = {}
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)

        def check(smtp: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
            good = isinstance(data, LoginPassword) and (data.login, data.password) == (b"teacher", PASSWORD.encode())
            return AuthResult(success=good, handled=False)

        options = {"tls_context": context, "require_starttls": True, "authenticator": check, "auth_required": True}
    with socket.create_server(("127.0.0.1", 0)) as free:
        server.port = free.getsockname()[1]
    controller = Controller(server, hostname="127.0.0.1", port=server.port, **options)
    controller.start()
    try:
        yield server
    finally:
        controller.stop()


def self_signed(folder: Path) -> Path:
    """A certificate for localhost, and its key, in one file."""
    path = folder / "certificate.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(path), "-out", str(folder / "public.pem")]
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    path.write_text(path.read_text() + (folder / "public.pem").read_text())
    return path
