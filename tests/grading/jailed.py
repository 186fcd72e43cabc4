"""Attackers for the tests of the jail: pieces of Python that run inside and say on one line what they got."""

from __future__ import annotations

import sys
import textwrap
from typing import Any

import pytest

from lmcourse.grading.jail import Ended, Jail, Limits, run
from lmcourse.grading.jail.isolation import what_hinders
from lmcourse.units import MIB

needs_bubblewrap = pytest.mark.skipif(what_hinders() is not None, reason=str(what_hinders()))
"""For a test that locks somebody in; it is left out only where no jail works at all."""

SMALL = Limits(
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


def inside(code: str, *, jail: Jail | None = None, seconds: float = 20, **options: Any) -> Ended:
    """Run Python in a jail."""
    return run(jail or Jail(limits=SMALL), python(code), seconds=seconds, **options)


def got(code: str, **options: Any) -> str:
    """What a program that ran to its end in a jail printed."""
    return printed(inside(code, **options))


def got_outside(code: str, seconds: float = 20) -> str:
    """The same without a jail: proof that the attack works where nothing stops it."""
    return printed(run(None, python(code), seconds=seconds))


def printed(ended: Ended) -> str:
    assert ended.ok, (ended.reason, ended.errors.decode())
    return ended.output.decode().strip()
