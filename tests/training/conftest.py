"""What the tests of runs share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.training import runs


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """One thread for all runs that are compared: sums in another order are other sums."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def whole(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    assert runs.trainer(folder).run() == "steps"
    return folder
