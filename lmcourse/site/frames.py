"""Draw the frames of figures as WebP, once: they are kept by what they were drawn from.

Why WebP: of six figures from five chapters, each was 3 to 9 times as large as SVG, whose letters are outlines.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from lmcourse.plots.style import alt_text
from lmcourse.site.code_digest import code_digest
from lmcourse.site.drawing import FrameDrawing

PROCESSES = 2
COLOURS = 64
"""Of a frame: enough for the anti-aliased letters and lines of a diagram, and half the bytes of all colours."""
CSS_PIXELS_PER_INCH = 96
_WHITE = 0xFFFFFFFF


@dataclass(frozen=True)
class Picture:
    """A picture of the site: its file's name, its alt text, and its size in CSS pixels."""

    file: str
    alt: str
    width: int
    height: int


@dataclass(frozen=True)
class Frame:
    """A figure to be drawn: a function of the package by its module and name, and its arguments."""

    module: str
    function: str
    arguments: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, draw: Callable[..., Any], arguments: dict[str, Any]) -> Frame:
        """The frame of a call. ValueError for a function that cannot be found by its name."""
        module, name = getattr(draw, "__module__", ""), getattr(draw, "__qualname__", "")
        if not module.startswith("lmcourse.") or not name.isidentifier():
            raise ValueError(f"{draw!r} is no function of the package")
        return cls(module, name, tuple(arguments.items()))

    @property
    def key(self) -> str:
        """The name under which it is kept; another code or another argument gives another one."""
        said = f"{code_digest(self.module)} {self.module}.{self.function} {self.arguments!r} {COLOURS}"
        return hashlib.sha256(said.encode()).hexdigest()[:20]


def draw_frames(frames: Iterable[Frame], folder: Path) -> dict[Frame, Picture]:
    """A picture of each frame; those that `folder` does not hold are drawn, by two processes."""
    keys = {frame: frame.key for frame in frames}
    missing = {key: frame for frame, key in keys.items() if not (folder / f"{key}.json").exists()}
    folder.mkdir(parents=True, exist_ok=True)
    figures: defaultdict[tuple[str, str], list[tuple[str, Frame]]] = defaultdict(list)
    for key, frame in missing.items():
        figures[frame.module, frame.function].append((key, frame))
    # What a figure computes once, one process computes; the longest first, so that both end at about the same time.
    jobs = sorted(figures.values(), key=len, reverse=True)
    if jobs:
        with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
            list(pool.map(_draw_job, jobs, [folder] * len(jobs)))
    return {frame: read_picture(folder, key) for frame, key in keys.items()}


def read_picture(folder: Path, key: str) -> Picture:
    """The picture that is kept under a name."""
    return Picture(**json.loads((folder / f"{key}.json").read_text(encoding="utf-8")))


def keep_picture(folder: Path, key: str, image: Image.Image, alt: str, width: int) -> None:
    """Keep a picture as WebP; its description is written last, so a picture with one is whole."""
    buffer = io.BytesIO()
    few_colours(image).save(buffer, "webp", lossless=True, method=2, quality=40)
    picture = Picture(f"{key}.webp", alt, width, round(width * image.height / image.width))
    for name, data in ((picture.file, buffer.getvalue()), (f"{key}.json", json.dumps(asdict(picture)).encode())):
        new = folder / f".{name}.new"
        new.write_bytes(data)
        new.replace(folder / name)


def few_colours(image: Image.Image) -> Image.Image:
    """The colours that median cut chooses, and white: most of a figure is white, and is passed over."""
    pixels = np.array(image.convert("RGBA")).view(np.uint32)[..., 0]
    inked = pixels != _WHITE
    if inked.any():
        strip = Image.fromarray(pixels[inked].view(np.uint8).reshape(1, -1, 4)).convert("RGB")
        pixels[inked] = np.array(strip.quantize(COLOURS - 1).convert("RGBA")).view(np.uint32)[0, :, 0]
    return Image.fromarray(pixels.view(np.uint8).reshape(*pixels.shape, 4)).convert("RGB")


def _draw_job(job: list[tuple[str, Frame]], folder: Path) -> None:
    """Draw the frames of one figure."""
    import torch

    torch.set_num_threads(1)  # the other core has a process of its own
    _, first = job[0]
    draw: Callable[..., Figure] = getattr(importlib.import_module(first.module), first.function)
    gc.collect()
    gc.freeze()  # or each collection of figures walks through all of torch and Matplotlib: a fifth of the time
    drawing = FrameDrawing()
    for key, frame in job:
        figure = draw(**dict(frame.arguments))
        image = Image.fromarray(drawing.pixels(figure))
        width = round(figure.get_figwidth() * CSS_PIXELS_PER_INCH)
        keep_picture(folder, key, image, alt_text(figure), width)
