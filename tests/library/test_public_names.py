"""The public names: few, documented, typed, and loaded only when they are used."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import lmcourse
from lmcourse.models.interop import FAMILIES

PACKAGES = ("lmcourse", "lmcourse.accounting", "lmcourse.models", "lmcourse.nn", "lmcourse.training")


def test_the_library_has_at_most_twenty_public_names() -> None:
    assert len(lmcourse.__all__) <= 20


def test_library_page_uses_every_public_name(course: Path) -> None:
    page = (course / "docs" / "library.md").read_text(encoding="utf-8")
    assert [name for name in lmcourse.__all__ if not re.search(rf"\b{name}\b", page)] == []
    assert f"reads {len(FAMILIES)} families" in page


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_load_and_no_module_hides_one(package: str) -> None:
    module = import_module(package)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert not isinstance(getattr(module, name), ModuleType), name
        assert not any((Path(folder) / name).with_suffix(".py").exists() for folder in module.__path__), name


def test_a_wrong_name_raises_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'lmcourse' has no attribute 'Transformr'"):
        _ = lmcourse.Transformr  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'Transformr'"):
        from lmcourse import Transformr  # type: ignore[attr-defined]  # noqa: F401


@pytest.mark.prove
def test_importing_the_packages_imports_no_torch() -> None:
    program = f"import sys, {', '.join(PACKAGES)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
