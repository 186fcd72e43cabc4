"""What rules cover among the functions of libraries, as modules are loaded."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from lmcourse.grading.restrictions.library_functions import LibraryFunctions


def load(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> ModuleType:
    """A module of this name and text, among those that are loaded."""
    module = ModuleType(name)
    exec(text, vars(module))
    monkeypatch.setitem(sys.modules, name, module)
    return module


def test_a_family_covers_what_is_loaded_after_it_was_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a rule that was asked for before, and by another of the same family."""
    first = load(monkeypatch, "torch.first", "def fast_silu(): pass\ndef other(): pass")
    known = LibraryFunctions()
    known.index_modules()
    assert first.fast_silu in known.covered(".silu")
    later = load(monkeypatch, "torch.later", "def sigmoid_of_two(): pass\ndef other(): pass")
    in_family = load(monkeypatch, "torch.swish", "def other(): pass")
    known.index_modules()
    for rule in (".silu", ".sigmoid"):
        covered = known.covered(rule)
        assert {first.fast_silu, later.sigmoid_of_two, in_family.other} <= {*covered}
        assert not {first.other, later.other} & {*covered}
