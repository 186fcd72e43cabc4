"""What tests of inference need of the machine."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture
def cpp_compiler(in_ci: bool) -> None:
    """torch.compile translates its programs for a CPU with the machine's C++ compiler."""
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        if in_ci:
            pytest.fail("no C++ compiler: apt-get install g++")
        pytest.skip("no C++ compiler here: install g++ to test compiled decoding")
