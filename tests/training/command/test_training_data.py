"""Training a tokenizer for a long time prints its progress."""

from __future__ import annotations

import pytest

from lmcourse.training.command.training_data import REPORT_SECONDS, report_merges


def test_learning_byte_pairs_prints_a_line_every_two_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    report = report_merges(512, lambda: now)
    for merges in range(1, 257):
        now += REPORT_SECONDS / 100
        report(merges)
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [f"Learning byte pairs: {made} of 512 tokens" for made in (356, 456)]
    assert printed.out == ""
