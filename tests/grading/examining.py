"""Examining a few cells, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from lmcourse.exercises import Exercise, Report
from lmcourse.grading.examination import Patience, PlainHost, examine
from lmcourse.grading.examination.host import Host
from lmcourse.grading.examined import Examined


def examined(
    texts: Sequence[str],
    exercises: Sequence[Exercise],
    seed: int = 1,
    host: Host | None = None,
    patience: Patience | None = None,
) -> Examined:
    """The whole examination, in a plain process unless another host is given."""
    return examine(texts, exercises, seed, host or PlainHost(), patience)


def reports_of(
    texts: Sequence[str],
    exercises: Sequence[Exercise],
    seed: int = 1,
    host: Host | None = None,
    patience: Patience | None = None,
) -> dict[str, Report]:
    """The reports alone."""
    return examined(texts, exercises, seed, host, patience).reports
