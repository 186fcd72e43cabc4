"""What the tests of grading share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lmcourse.grading.batch import Pool, open_pool


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """One worker for all runs of a module in this process: it loads torch twice, which takes longer than a class."""
    with open_pool(workers=1) as pool:
        yield pool
