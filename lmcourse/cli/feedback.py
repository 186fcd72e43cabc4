"""`lmcourse feedback`: nbgrader's pages on what is recorded, and a message to each learner."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lmcourse.errors import CourseError
from lmcourse.paths import typed_path
from lmcourse.root import find_root

if TYPE_CHECKING:
    from lmcourse.grading.feedback.recorded import Feedback, RecordedAssignment
    from lmcourse.grading.feedback.sending import Connection

EPILOG = "For what `lmcourse grade --record` or `nbgrader autograde` recorded. docs/teaching.md says more."

MAIL_FOLDER = "mail"
"""In the course's folder: where messages are written, a folder for each assignment."""


def add_feedback(parser: ArgumentParser) -> None:
    """The flags of `lmcourse feedback`."""
    parser.add_argument("assignment", help="its id, as 08-attention")
    parser.add_argument("--student", action="append", default=[], metavar="NAME", help="this one only; again for more")
    parser.add_argument("--db", metavar="URL", help="the gradebook; by default the one of nbgrader's configuration")
    mail = parser.add_argument_group("messages")
    add = mail.add_argument
    add("--mail", action="store_true", help="write a message to each, with the page attached: files that end in .eml")
    add("--from", dest="sender", metavar="ADDRESS", help="who writes them")
    add("--addresses", type=typed_path, metavar="CSV", help="a table of student,email; by default the gradebook's")
    add("--folder", type=typed_path, metavar="FOLDER", help=f"where to write them; by default {MAIL_FOLDER}/ASSIGNMENT")
    add("--smtp", metavar="HOST:PORT", help="send them, with TLS; the password is LMCOURSE_SMTP_PASSWORD's")
    add("--user", default="", metavar="NAME", help="who logs in at the mail server")
    add("--dry-run", action="store_true", help="only say who would get what: nothing is made, written or sent")


def feedback(options: Namespace) -> int:
    """Make feedback pages, and messages."""
    _check(options)
    root = find_root(options.course)
    from lmcourse.grading.feedback.recorded import RecordedAssignment

    assignment = RecordedAssignment(options.assignment, root, options.db)
    found = assignment.feedback(options.student)
    addresses = _addresses(options, assignment, found) if options.mail else {}
    if options.dry_run:
        for each in found:
            to = f" → {addresses.get(each.result.student, 'no address')}" if options.mail else ""
            print(f"{each.result.student}: {each.result.score:g} of {each.result.max_score:g} points{to}")
        return 0
    missing = [each.result.student for each in found if not assignment.make_page(each)]
    for student in missing:
        print(f"{student}: nbgrader could not make a page. Grade their work again, with --record.")
    made = [each for each in found if each.result.student not in missing]
    print(f"Pages: {len(made)}, in {found[0].page.parents[2]}")
    problems = _mail(options, made, addresses, options.folder or root / MAIL_FOLDER / options.assignment)
    return 1 if missing or problems else 0


def _check(options: Namespace) -> None:
    """Raises CourseError: flags that make no sense together."""
    from lmcourse.grading.feedback.addresses import is_address

    about_mail = {
        "--from": options.sender,
        "--addresses": options.addresses,
        "--folder": options.folder,
        "--smtp": options.smtp,
        "--user": options.user,
    }
    if not options.mail and (given := [flag for flag, value in about_mail.items() if value]):
        raise CourseError(f"{given[0]} is about messages: add --mail.")
    if options.mail and not is_address(options.sender or ""):
        raise CourseError("Say who writes the messages: --from you@school.org.")
    if options.user and not options.smtp:
        raise CourseError("--user is for a mail server: add --smtp HOST:PORT.")


def _addresses(options: Namespace, assignment: RecordedAssignment, found: Sequence[Feedback]) -> Mapping[str, str]:
    """Where to write to by student; who has no address is told."""
    from lmcourse.grading.feedback.addresses import addresses_in, is_address

    known = addresses_in(options.addresses) if options.addresses else assignment.emails()
    addresses = {}
    for each in found:
        student = each.result.student
        if student not in known:
            print(f"{student}: no address; they get no message.")
        elif not is_address(known[student]):
            print(f"{student}: {known[student]!a} is no plain address; they get no message.")
        else:
            addresses[student] = known[student]
    return addresses


def _mail(options: Namespace, found: Sequence[Feedback], addresses: Mapping[str, str], folder: Path) -> int:
    """Write or send the messages; how many were not taken."""
    if not options.mail:
        return 0
    from lmcourse.grading.feedback.messages import message
    from lmcourse.grading.feedback.sending import send, was_sent, write_message

    done = already = problems = 0
    with _connection(options) as connection:
        for each in found:
            student = each.result.student
            if student not in addresses:
                continue
            made, path = message(each, options.sender, addresses[student]), folder / f"{student}.eml"
            if was_sent(made, path):
                already += 1
                continue
            write_message(made, path)
            if connection is not None and (problem := send(made, path, connection)):
                print(f"{student}: the mail server did not take it ({problem}). It is in {path}.")
                problems += 1
                continue
            done += 1
    print(f"Messages: {done} {'sent' if options.smtp else f'written, in {folder}'}")
    if already:
        print(f"{already} were sent already, and say nothing new.")
    return problems


@contextmanager
def _connection(options: Namespace) -> Iterator[Connection | None]:
    if not options.smtp:
        yield None
        return
    from lmcourse.grading.feedback.sending import connected, parse_server

    with connected(parse_server(options.smtp, options.user)) as connection:
        yield connection
