"""The site of two chapters that link to each other, with placeholder figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmcourse.site import builder
from lmcourse.site import frames as frames_module
from lmcourse.site.builder import CACHE, build_site
from tests.site.placeholders import TWO, stripes


@pytest.fixture(scope="module")
def heavy(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as Sphinx makes it, before its pages are made light."""
    out = tmp_path_factory.mktemp("site") / "out"
    (course / CACHE).mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames_module, "draw_frames", stripes)
        patch.setattr(builder, "lighten", lambda folder: None)
        return build_site(course, out, TWO).folder
