"""Messages with feedback: what they say, that no name adds a header, and a real mail server that takes them."""

from __future__ import annotations

import shutil
import ssl
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import cast

import pytest

from lmcourse.errors import CourseError
from lmcourse.grading.feedback import sending
from lmcourse.grading.feedback.addresses import addresses_in, is_address
from lmcourse.grading.feedback.messages import message
from lmcourse.grading.feedback.recorded import Feedback
from lmcourse.grading.feedback.sending import Server, connected, parse_server, send, was_sent, write_message
from lmcourse.grading.result import SubmissionResult
from tests.grading.mail_server import PASSWORD, MailServer, mail_server, self_signed

PAGE = "<p>attention_weights: right ✓</p>"


def feedback(folder: Path, student: str = "Zoë O'Neill") -> Feedback:
    page = folder / "attention.html"
    page.write_text(PAGE, encoding="utf-8")
    points = {"attention_weights": 2.0, "causal_mask": 1.5}
    reason = "1 of 2 exercises earn all their points. causal_mask: every second row is “upside down”."
    return Feedback(SubmissionResult(student, "08-attention", 3.5, 4.0, points, reason), page)


def parsed(made: EmailMessage) -> EmailMessage:
    return cast(EmailMessage, message_from_bytes(made.as_bytes(), policy=default))


def test_a_message_says_points_and_reasons_and_has_the_page(tmp_path: Path) -> None:
    read = parsed(message(feedback(tmp_path), "teacher@example.org", "zoe@example.org"))
    assert read["To"] == "Zoë O'Neill <zoe@example.org>"
    assert read["From"] == "teacher@example.org"
    assert read["Subject"] == "08 · Attention: 3.5 of 4 points"
    text = read.get_body(("plain",))
    assert text is not None
    content = text.get_content().replace("\r\n", "\n")
    assert "  attention_weights  2\n  causal_mask        1.5\n" in content
    assert "causal_mask: every second row is “upside down”." in content
    (attached,) = read.iter_attachments()
    assert (attached.get_content_type(), attached.get_filename()) == ("text/html", "attention.html")
    assert attached.get_content() == PAGE


@pytest.mark.parametrize(
    "name",
    [
        "Eve\r\nBcc: all@example.org",
        "Eve\nBcc: all@example.org\n\nHello",
        "Eve\x0bBcc: all@example.org",
        "Eve\u2028Bcc: all@example.org",
        "Eve <all@example.org>, x",
        'Eve" <all@example.org>, "x',
        "=?utf-8?q?Eve=0ABcc:_all@example.org?=",
        "\u202eeve " + "x" * 300,
        "\udcff",
    ],
)
def test_a_name_adds_no_header_and_no_recipient(name: str, tmp_path: Path) -> None:
    made = message(feedback(tmp_path, name), "teacher@example.org", "eve@example.org")
    for read in (made, parsed(made)):
        assert [key.lower() for key in read] == [
            *("from", "to", "subject", "message-id", "mime-version", "content-type"),
        ]
        assert [address.addr_spec for address in read["To"].addresses] == ["eve@example.org"]
        assert len(read["To"].addresses[0].display_name) <= 62
    assert b"\nBcc" not in made.as_bytes()


@pytest.mark.parametrize(
    "text",
    ["", "x", "a@b@c", "a b@c.d", "A <a@c.d>", "a@c.d,b@c.d", "a@c.d\r\nBcc: x@y.z", "ä@c.d", '"a"@c.d', "(x)a@c.d"],
)
def test_what_is_no_plain_address(text: str) -> None:
    assert not is_address(text)
    assert is_address("ada.b+c@example.org")


def test_addresses_from_a_table(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\ufeffEmail address;Full name\nada@example.org;Ada\n;Bob\n", encoding="utf-8")
    assert addresses_in(path) == {"Ada": "ada@example.org"}
    path.write_text("student,mail\n")
    with pytest.raises(CourseError, match="has no column email"):
        addresses_in(path)
    path.write_text("student,email\nAda,a@b.c\nAda,b@b.c\n")
    with pytest.raises(CourseError, match="has Ada twice"):
        addresses_in(path)


def test_the_server_takes_messages_once(tmp_path: Path) -> None:
    made = message(feedback(tmp_path), "teacher@example.org", "zoe@example.org")
    path = tmp_path / "mail" / "zoe.eml"
    refused = message(feedback(tmp_path, "bob"), "teacher@example.org", "bob@example.org")
    with (
        mail_server(MailServer(refused=("bob@example.org",))) as server,
        connected(Server("127.0.0.1", server.port)) as connection,
    ):
        write_message(made, path)
        assert not was_sent(made, path)
        assert send(made, path, connection) == ""
        assert "no such mailbox" in send(refused, tmp_path / "mail" / "bob.eml", connection)
        assert send(message(feedback(tmp_path, "Cy"), "teacher@example.org", "c@d.e"), path, connection) == ""
    assert [to for to, _ in server.received] == [["zoe@example.org"], ["c@d.e"]]
    assert server.received[0][1]["Message-ID"] == made["Message-ID"]
    (attached,) = server.received[0][1].iter_attachments()
    assert attached.get_content() == PAGE
    assert not path.exists()
    assert not was_sent(made, path)  # what is there now is Cy's
    assert not (tmp_path / "mail" / "sent" / "bob.eml").exists()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="a certificate is made with openssl")
def test_a_server_with_tls_and_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = self_signed(tmp_path)
    trusting = ssl.create_default_context(cafile=str(certificate))
    made = message(feedback(tmp_path), "teacher@example.org", "zoe@example.org")
    with mail_server(MailServer(), certificate) as server:
        for context, password, told in (
            (trusting, None, "There is no password for teacher: put it into the environment, as LMCOURSE_SMTP_PASSW"),
            (trusting, "wrong", "does not take the password of teacher"),
            (None, PASSWORD, "cannot be trusted"),
        ):
            monkeypatch.delenv(sending.PASSWORD, raising=False)
            if password:
                monkeypatch.setenv(sending.PASSWORD, password)
            tried = Server("localhost", server.port, "teacher", context)
            with pytest.raises(CourseError, match=told), connected(tried):
                pass
        with connected(Server("localhost", server.port, "teacher", trusting)) as connection:
            assert send(made, tmp_path / "zoe.eml", connection) == ""
    assert server.encrypted == [True]


def test_marks_are_not_sent_in_the_clear_and_a_dead_server_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server(MailServer()) as server:
        monkeypatch.setattr(sending, "LOCAL", ())
        with pytest.raises(CourseError, match="offers no TLS"), connected(Server("127.0.0.1", server.port)):
            pass
    with pytest.raises(CourseError, match="does not answer"), connected(Server("127.0.0.1", server.port)):
        pass


@pytest.mark.parametrize("text", ["smtp.example.org", ":25", "x:y", "x:0", "x:65536"])
def test_what_is_no_server(text: str) -> None:
    with pytest.raises(CourseError, match="is no mail server: write HOST:PORT"):
        parse_server(text)
    assert parse_server("smtp.example.org:587", "me") == Server("smtp.example.org", 587, "me")
