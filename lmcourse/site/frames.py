"""Draw the frames of figures as WebP, and store each under a hash of its code and arguments.

SVG files, in which letters are outlines, were 3 to 9 times as large as WebP for six figures of five chapters.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import importlib
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

from lmcourse.base.atomic import write_all
from lmcourse.plots.style import DPI, alt_text, pixels, take_caption

PACKAGE = Path(__file__).resolve().parents[1]
PROCESSES = 2
LEVEL = 17
"""The step between two levels of a colour. A difference of 8 of 255 is invisible, white stays white, and files get
smaller."""
CSS_PIXELS_PER_INCH = 96


@dataclass(frozen=True)
class Picture:
    """A picture of the site: its file name, alt text, size in CSS pixels, and a caption that is not part of the
    picture."""

    file: str
    alt: str
    width: int
    height: int
    caption: str = ""


@dataclass(frozen=True)
class Frame:
    """A figure to draw: the module and name of a function in the package, and its arguments."""

    module: str
    function: str
    arguments: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, draw: Callable[..., Any], arguments: dict[str, Any]) -> Frame:
        """Return the frame of a call; raise ValueError if the function cannot be found by its name."""
        module, name = getattr(draw, "__module__", ""), getattr(draw, "__qualname__", "")
        if not module.startswith("lmcourse.") or not name.isidentifier():
            raise ValueError(f"{draw!r} is not a function of the package")
        return cls(module, name, tuple(arguments.items()))

    @property
    def key(self) -> str:
        """The name of the stored picture, which depends on the code and the arguments."""
        said = f"{code_digest(self.module)} {self.module}.{self.function} {self.arguments!r} {LEVEL} {DPI}"
        return hashlib.sha256(said.encode()).hexdigest()[:20]


def draw_frames(frames: Iterable[Frame], folder: Path) -> dict[Frame, Picture]:
    """Return a picture of each frame; two processes draw the frames that are not in `folder`."""
    keys = {frame: frame.key for frame in frames}
    missing = {key: frame for frame, key in keys.items() if not (folder / f"{key}.json").exists()}
    figures: defaultdict[tuple[str, str], list[tuple[str, Frame]]] = defaultdict(list)
    for key, frame in missing.items():
        figures[frame.module, frame.function].append((key, frame))
    # All frames of a figure go to one process, so that cached results are computed once. The longest jobs come first,
    # so that both processes end at about the same time.
    jobs = sorted(figures.values(), key=len, reverse=True)
    if jobs:
        with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
            list(pool.map(_draw_job, jobs, [folder] * len(jobs)))
    return {frame: read_picture(folder, key) for frame, key in keys.items()}


def _draw_job(job: list[tuple[str, Frame]], folder: Path) -> None:
    """Draw the frames of one figure."""
    import torch

    torch.set_num_threads(1)  # the other process uses the other core
    _, first = job[0]
    draw: Callable[..., Figure] = getattr(importlib.import_module(first.module), first.function)
    gc.collect()
    gc.freeze()  # otherwise each garbage collection visits all objects of torch and Matplotlib, a fifth of the time
    for key, frame in job:
        figure = draw(**dict(frame.arguments))
        width = round(figure.get_figwidth() * CSS_PIXELS_PER_INCH)
        caption = take_caption(figure)
        keep_picture(folder, key, Image.fromarray(pixels(figure)), alt_text(figure), width, caption)


def read_picture(folder: Path, key: str) -> Picture:
    """Return the stored picture of this name."""
    return Picture(**json.loads((folder / f"{key}.json").read_text(encoding="utf-8")))


def keep_picture(folder: Path, key: str, image: Image.Image, alt: str, width: int, caption: str = "") -> None:
    """Store a picture as WebP. Its description is written last, so a description means that the picture is complete."""
    buffer = io.BytesIO()
    few = image.convert("RGB").point([round(value / LEVEL) * LEVEL for value in range(256)] * 3)
    few.save(buffer, "webp", lossless=True, method=2, quality=40)
    picture = Picture(f"{key}.webp", alt, width, round(width * image.height / image.width), caption)
    write_all({folder / picture.file: buffer.getvalue(), folder / f"{key}.json": json.dumps(asdict(picture))})


@cache
def code_digest(module: str) -> str:
    """Return the SHA-256 of a module's text and of every module of the package that it imports, directly or not."""
    reached: set[Path] = set()
    todo = list(_files(module))
    while todo:
        path = todo.pop()
        if path not in reached:
            reached.add(path)
            todo += _imports(path)
    digest = hashlib.sha256()
    for path in sorted(reached):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    found: list[Path] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            found += _files(name)
    return tuple(found)


def _files(name: str) -> Iterator[Path]:
    """Yield the file of a module, or of the module that defines a dotted name."""
    parts = name.split(".")
    if parts[0] != PACKAGE.name:
        return
    for length in (len(parts), len(parts) - 1):
        path = PACKAGE.joinpath(*parts[1:length])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                yield file
                return
