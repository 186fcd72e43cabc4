"""`nbgrader release_feedback` for work that did not come through nbgrader's exchange, too."""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback

from lmcourse.grading.intake.files import UnreadableError, read_file
from lmcourse.grading.intake.hand_in_time import TIMESTAMP

SECRET = "submission_secret.txt"
"""What nbgrader's exchange adds to a submission; who knows it may fetch the feedback."""

MAX_SECRET_BYTES = 1_000


class ReleaseFeedback(ExchangeReleaseFeedback):  # type: ignore[misc]
    """nbgrader's own, which stops at the first page of somebody whose work was put into `submitted/` by hand."""

    def copy_files(self) -> None:
        """Release the pages. Those of work that came by hand get a secret of their own, which only the teacher has."""
        by_hand = [folder for folder in self._folders() if _complete(folder)]
        super().copy_files()
        for folder in by_hand:
            self.log.warning(
                "%s was put into submitted/ by hand, so its author cannot fetch the page through the exchange: "
                "send it to them (lmcourse feedback --mail, or the page itself).",
                folder,
            )

    def _folders(self) -> list[Path]:
        pattern = Path(self.src_path)
        found = sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))
        return [folder for folder in found if any(folder.glob("*.html"))]


def copy_secret(submission: Path, folder: Path) -> None:
    """Take a submission's secret along, without which its feedback could not be fetched.

    Args:
        submission: the folder that was collected.
        folder: where the submission is graded.
    """
    with suppress(UnreadableError):
        data = read_file(submission / SECRET)
        if 0 < len(data) <= MAX_SECRET_BYTES:
            (folder / SECRET).write_bytes(data)


def _complete(folder: Path) -> bool:
    """Give a folder of feedback what the exchange would have given it; whether anything was missing."""
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f} UTC"
    missing = {SECRET: secrets.token_hex(32), TIMESTAMP: now}
    missing = {name: text for name, text in missing.items() if not (folder / name).is_file()}
    for name, text in missing.items():
        new = folder / f".{name}.new"
        new.write_text(text)
        new.replace(folder / name)
    return SECRET in missing
