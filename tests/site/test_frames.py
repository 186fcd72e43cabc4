"""Frames are drawn once, and again if anything changes that they depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from lmcourse.chapters.floating_point import figures
from lmcourse.plots.style import pixels, take_caption
from lmcourse.site import code_digest as digest_module
from lmcourse.site import frames as frames_module
from lmcourse.site.frames import DPI, Frame, draw_frames, keep_picture

FRAMES = [Frame.of(figures.softmax_bars, {"temperature": temperature}) for temperature in (1.0, 2.0)]

FILES = {
    "__init__.py": "",
    "__init__.pyi": "from lmcourse.layers import Layer as Layer\n",
    "figures.py": "from lmcourse import Layer\nfrom lmcourse.style import WIDTH\nMODEL = 'small-model'\n",
    "style.py": "WIDTH = 8\n",
    "layers.py": "class Layer: pass\n",
    "runs.json": "[]",
    "small-model/weights.bin": "0",
    "exercises.py": "",
    "other/data.json": "[]",
}


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Digest the figures of a package with these files, which lies in `tmp_path`."""
    for name, text in FILES.items():
        file = tmp_path / "lmcourse" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(digest_module, "PACKAGE", tmp_path / "lmcourse")

    def forget() -> None:
        for function in (digest_module.code_digest, digest_module._imports, digest_module._tree):
            function.cache_clear()

    def compute() -> str:
        forget()
        return digest_module.code_digest("lmcourse.figures")

    yield compute
    forget()


@pytest.mark.parametrize("name", FILES)
def test_the_digest_follows_imports_and_data(name: str, tmp_path: Path, digest: Callable[[], str]) -> None:
    before = digest()
    assert digest() == before
    with (tmp_path / "lmcourse" / name).open("a") as file:
        file.write(" \n")
    assert (digest() != before) is (name not in ("__init__.pyi", "exercises.py", "other/data.json"))


def test_the_digest_changes_with_a_library(monkeypatch: pytest.MonkeyPatch, digest: Callable[[], str]) -> None:
    before = digest()
    monkeypatch.setattr(digest_module, "version", lambda name: "1000.0")
    assert digest() != before


@pytest.mark.prove
def test_a_frame_is_drawn_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    titles = dict.fromkeys(FRAMES, "01 · Floating point")
    drawn = draw_frames(titles, tmp_path)
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == "2 frames, 2 of them to draw"
    assert last == "01 · Floating point: 2 frames drawn, 2 of 2 in all"
    assert [drawn[frame].alt for frame in FRAMES] == [
        figures.softmax_bars(temperature=temperature).get_label() for temperature in (1.0, 2.0)
    ]
    assert drawn[FRAMES[0]].caption.startswith("The weights are positive, add up to 1")
    bodies = [(tmp_path / drawn[frame].file).read_bytes() for frame in FRAMES]
    assert all(body[:4] == b"RIFF" and body[8:12] == b"WEBP" for body in bodies)
    assert bodies[0] != bodies[1]
    alone = figures.softmax_bars(temperature=2.0)
    take_caption(alone)
    keep_picture(tmp_path, "alone", Image.fromarray(pixels(alone, DPI)), "", 8)
    assert (tmp_path / "alone.webp").read_bytes() == bodies[1], "texts measured once give the same pixels"
    with monkeypatch.context() as patch:
        patch.setattr(frames_module, "ProcessPoolExecutor", None)
        assert draw_frames(titles, tmp_path) == drawn, "nothing was left to draw"
    monkeypatch.setattr(frames_module, "code_digest", lambda module: "changed code")
    again = draw_frames(titles, tmp_path)
    assert {one.file for one in again.values()}.isdisjoint(one.file for one in drawn.values())
