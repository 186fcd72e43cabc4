"""Pictures in place of figures, because pages work the same with any pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from PIL import Image

from lmcourse.course.chapters import find_chapter
from lmcourse.site.frames import Frame, Picture, keep_picture, read_picture

ALT = "A description of a figure, as long as most of them are. " * 3
TWO = [find_chapter("05"), find_chapter("06")]
"""Two chapters that link to each other."""


def stripes(
    frames: Iterable[Frame], folder: Path, distinct: Callable[[Frame], bool] = lambda frame: True
) -> dict[Frame, Picture]:
    """Return different stripes for each frame that is to be distinct, and one picture for all others."""
    # The name is not the frame's own key: a site that is built later would publish the stripes.
    keys = {frame: frame.key[::-1] if distinct(frame) else "0" * 20 for frame in frames}
    for key in set(keys.values()):
        image = Image.frombytes("L", (20, 1), bytes(17 * int(digit, 16) for digit in key))
        keep_picture(folder, key, image.resize((200, 100), Image.Resampling.NEAREST), ALT, 200, caption=ALT)
    return {frame: read_picture(folder, key) for frame, key in keys.items()}
