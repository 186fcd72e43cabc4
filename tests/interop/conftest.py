"""The compared models, each built once."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch import nn

# These tests must not contact the hub.
os.environ["HF_HUB_OFFLINE"] = "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without transformers these tests have no reference: skip them, or fail in CI."""
    if importlib.util.find_spec("transformers") or os.environ.get("CI", "").lower() in ("1", "true"):
        return
    for item in items:
        if "tests/interop" in item.path.as_posix():
            item.add_marker(pytest.mark.skip(reason="transformers is not installed: pip install 'lmcourse[parity]'"))


@dataclass(frozen=True)
class Pair:
    """A model of `transformers` and our converted model."""

    theirs: nn.Module
    ours: nn.Module


@pytest.fixture(scope="session")
def pairs():  # type: ignore[no-untyped-def]
    """Return a function from a sample's name to its pair; tests must not change pairs."""
    from lmcourse.models.interop import from_hugging_face
    from tests.interop.reference import build_reference
    from tests.interop.samples import SAMPLES

    by_name = {sample.name: sample for sample in SAMPLES}

    @cache
    def pair(name: str) -> Pair:
        theirs = build_reference(by_name[name])
        return Pair(theirs, from_hugging_face(theirs))

    return pair


@pytest.fixture(autouse=True)
def _one_thread():  # type: ignore[no-untyped-def]
    """Use one thread, because threads slow tiny models down and change the order of sums."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
