"""Draw the frames of figures as WebP, and store each under a hash of its code and arguments.

SVG files, in which letters are outlines, were 3 to 9 times as large as WebP for six figures of five chapters.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import io
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

from lmcourse.base.atomic import write_all
from lmcourse.base.device import usable_cores
from lmcourse.plots.style import alt_text, pixels, take_caption
from lmcourse.site.code_digest import code_digest

LINE_SECONDS = 10.0
"""Largest number of seconds between two lines about frames that are drawn."""
DPI = 192
"""Dots per inch: two for each CSS pixel, so that letters are sharp on a screen with two dots per pixel."""
LEVEL = 17
"""The step between two levels of a colour. A difference of 8 of 255 is invisible, white stays white, and files get
smaller."""
STORED: dict[str, Any] = {"lossless": True, "method": 2, "quality": 40}
"""The settings of WebP."""
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
        said = f"{code_digest(self.module)} {self.module}.{self.function} {self.arguments!r} {LEVEL} {DPI} {STORED}"
        return hashlib.sha256(said.encode()).hexdigest()[:20]


def draw_frames(frames: Mapping[Frame, str], folder: Path) -> dict[Frame, Picture]:
    """Return a picture of each frame; as many processes as there are cores draw those that are not in `folder`.

    A line is printed for each chapter that is done, and every few seconds.

    Args:
        frames: the title of the chapter of each frame.
        folder: where pictures are stored.
    """
    keys = {frame: frame.key for frame in frames}
    missing = {frame: frames[frame] for frame, key in keys.items() if not (folder / f"{key}.json").exists()}
    figures: defaultdict[tuple[str, str], list[tuple[str, Frame]]] = defaultdict(list)
    for frame in missing:
        figures[frame.module, frame.function].append((keys[frame], frame))
    # All frames of a figure go to one process, so that cached results are computed once. The longest jobs come first,
    # so that all processes end at about the same time.
    jobs = sorted(figures.values(), key=len, reverse=True)
    print(f"{len(frames):,} frames, {len(missing):,} of them to draw", flush=True)
    if jobs:
        with ProcessPoolExecutor(min(len(jobs), usable_cores()), mp_context=get_context("spawn")) as pool:
            running = {pool.submit(_draw_job, job, folder) for job in jobs}
            _watch(running, {keys[frame]: title for frame, title in missing.items()}, folder)
    return {frame: read_picture(folder, key) for frame, key in keys.items()}


def _watch(running: set[Future[None]], titles: Mapping[str, str], folder: Path) -> None:
    """Wait for all jobs, and print how far they are with the frames of these keys; raise the error of a job."""
    chapters = Counter(titles.values())
    while running:
        done, running = wait(running, timeout=LINE_SECONDS, return_when=FIRST_COMPLETED)
        for job in done:
            job.result()
        left = Counter(title for key, title in titles.items() if not (folder / f"{key}.json").exists())
        count = f"{len(titles) - left.total():,} of {len(titles):,}"
        finished = [title for title in chapters if not left[title]]
        for title in finished:
            print(f"{title}: {chapters.pop(title):,} frames drawn, {count} in all", flush=True)
        if not finished and not done:
            print(f"{count} frames drawn", flush=True)


def _draw_job(job: list[tuple[str, Frame]], folder: Path) -> None:
    """Draw the frames of one figure."""
    import torch

    torch.set_num_threads(1)  # the other processes use the other cores
    _, first = job[0]
    draw: Callable[..., Figure] = getattr(importlib.import_module(first.module), first.function)
    gc.collect()
    gc.freeze()  # otherwise each garbage collection visits all objects of torch and Matplotlib, a fifth of the time
    for key, frame in job:
        figure = draw(**dict(frame.arguments))
        width = round(figure.get_figwidth() * CSS_PIXELS_PER_INCH)
        caption = take_caption(figure)
        keep_picture(folder, key, Image.fromarray(pixels(figure, DPI)), alt_text(figure), width, caption)


def read_picture(folder: Path, key: str) -> Picture:
    """Return the stored picture of this name."""
    return Picture(**json.loads((folder / f"{key}.json").read_text(encoding="utf-8")))


def keep_picture(folder: Path, key: str, image: Image.Image, alt: str, width: int, caption: str = "") -> None:
    """Store a picture as WebP. Its description is written last, so a description means that the picture is complete."""
    buffer = io.BytesIO()
    few = image.convert("RGB").point([round(value / LEVEL) * LEVEL for value in range(256)] * 3)
    few.save(buffer, "webp", **STORED)
    picture = Picture(f"{key}.webp", alt, width, round(width * image.height / image.width), caption)
    write_all({folder / picture.file: buffer.getvalue(), folder / f"{key}.json": json.dumps(asdict(picture))})
