"""Requirements of the inference tests."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture
def cpp_compiler(in_ci: bool) -> None:
    """Require a C++ compiler, which torch.compile uses for CPU programs."""
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        if in_ci:
            pytest.fail("no C++ compiler: apt-get install g++")
        pytest.skip("no C++ compiler here: install g++ to test compiled decoding")
