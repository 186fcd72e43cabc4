"""Attackers for the tests of the sandbox: pieces of Python that run inside and say on one line what they got."""

from __future__ import annotations

import sys
import textwrap
from typing import Any

import pytest
from lmcourse.grading.sandbox.isolation import isolation_problem
from tests.grading.sandbox_runner import Ended, run

from lmcourse.grading.sandbox import ResourceLimits, Sandbox
from lmcourse.units import MIB

needs_bubblewrap = pytest.mark.skipif(isolation_problem() is not None, reason=str(isolation_problem()))
"""For a test that locks somebody in; it is left out only where no sandbox works at all."""

SMALL = ResourceLimits(
    memory=256 * MIB, cpu_seconds=20, processes=16, file_size=MIB, open_files=64, scratch=4 * MIB
)  # small, so that an attack is over soon

PREAMBLE = """
import os, socket, sys, time
def trying(act):
    try:
        return f"DONE {act()!r}"
    except BaseException as failure:
        return type(failure).__name__ + (f" {failure.errno}" if isinstance(failure, OSError) else "")
"""


def python(code: str) -> list[str]:
    """The command for a piece of Python. `trying` in it gives "DONE …", or the error's name and number."""
    return [sys.executable, "-c", PREAMBLE + textwrap.dedent(code)]


def inside(code: str, *, sandbox: Sandbox | None = None, seconds: float = 20, **options: Any) -> Ended:
    """Run Python in a sandbox."""
    return run(sandbox or Sandbox(limits=SMALL), python(code), seconds=seconds, **options)


def got(code: str, **options: Any) -> str:
    """What a program that ran to its end in a sandbox printed."""
    return printed(inside(code, **options))


def got_outside(code: str, seconds: float = 20) -> str:
    """The same without a sandbox: proof that the attack works where nothing stops it."""
    return printed(run(None, python(code), seconds=seconds))


def printed(ended: Ended) -> str:
    assert ended.ok, (ended.reason, ended.errors.decode())
    return ended.output.decode().strip()
