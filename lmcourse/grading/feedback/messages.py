"""A message to a learner: points and reasons as text, the feedback page attached."""

from __future__ import annotations

import hashlib
import re
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

from lmcourse.errors import CourseError
from lmcourse.grading.class_report.statistics import title_of
from lmcourse.grading.feedback.recorded import Feedback
from lmcourse.grading.result import SubmissionResult
from lmcourse.text import collapse_whitespace, escape_unprintable, replace_surrogates

UTF_8 = {"charset": "utf-8"}

MAX_NAME_CHARS = 60
"""Characters of a name in a header."""

_CELL_ID = re.compile(rb' id="cell-id=[0-9A-Za-z_-]+"')
"""Some of them are new ones each time that a page is made."""


def message(feedback: Feedback, sender: str, recipient: str) -> EmailMessage:
    """The message with somebody's feedback.

    Its id comes from what it says, so the same feedback is the same message whenever it is made.

    Args:
        feedback: with a page.
        sender, recipient: plain addresses.

    Raises:
        CourseError: the page cannot be read.
    """
    try:
        page = feedback.page.read_bytes()
    except OSError as error:
        raise CourseError(f"The page {feedback.page} cannot be read ({error.strerror}).") from error
    result = feedback.result
    text = body(result)
    says = b"\0".join([sender.encode(), recipient.encode(), text.encode(), _CELL_ID.sub(b"", page)])
    made = EmailMessage(policy=SMTP)
    made["From"] = Address(addr_spec=sender)
    made["To"] = Address(_one_line(result.student), addr_spec=recipient)
    made["Subject"] = _one_line(f"{title_of(result.assignment)}: {result.score:g} of {result.max_score:g} points")
    made["Message-ID"] = f"<{hashlib.sha256(says).hexdigest()[:40]}@lmcourse.invalid>"
    made.set_content(text)
    made.add_attachment(page, maintype="text", subtype="html", filename=feedback.page.name, params=UTF_8)
    return made


def body(result: SubmissionResult) -> str:
    """The text: points by exercise, and why there are not more."""
    width = max(map(len, result.exercises), default=0)
    lines = [f"  {name:{width}}  {points:g}" for name, points in result.exercises.items()]
    text = "\n".join(
        [
            f"Hello {_one_line(result.student)},",
            "",
            f"your work on {title_of(result.assignment)} earned {result.score:g} of {result.max_score:g} points.",
            "",
            *lines,
            "",
            result.reason,
            "",
            "The attached page shows your notebook with what was said of each answer: open it in a browser.",
            "",
        ]
    )
    return replace_surrogates(text)


def _one_line(text: str) -> str:
    """A text that cannot begin another header, neither as it stands nor as an encoded word (RFC 2047)."""
    return escape_unprintable(collapse_whitespace(text).replace("=?", "= ?"), MAX_NAME_CHARS)
