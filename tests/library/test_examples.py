"""Each public name has an example in its docstring, and each example prints what it says."""

from __future__ import annotations

import doctest
import tempfile
from pathlib import Path

import pytest
import torch

import lmcourse
from lmcourse.site.reference import GROUPS

NAMES = {name: getattr(lmcourse, name) for name in lmcourse.__all__}


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_prints_what_it_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    available = {**NAMES, "torch": torch, "tempfile": tempfile, "Path": Path}
    [example] = doctest.DocTestFinder(recurse=False).find(NAMES[name], name, globs=available)
    assert example.examples
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
    assert not failed, capsys.readouterr().out


def test_the_reference_page_shows_every_public_name() -> None:
    assert sorted(" ".join(GROUPS.values()).split()) == sorted(NAMES)
