"""A figure whose frames lie in the site, with real inputs to choose among them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

import ipywidgets

from lmcourse.site.figure_calls import FigureCall
from lmcourse.site.frames import Frame, Picture
from lmcourse.site.html import image
from lmcourse.site.stops import Stops, combinations, label, stops_of
from lmcourse.site.widget_figures import NOTES

ONE_AT_A_TIME = "Here one control moves at a time, and the others go back; in the notebook all move freely."
SOME_STOPS = "Here the sliders have a few stops; in the notebook they move freely."

Setting = tuple[int, ...]


@dataclass(frozen=True)
class FramesScript:
    """A script that tells `site.js` the frames of a figure; its name is a digest of what it says."""

    name: str
    text: str


class Explorable:
    """A figure on the site: its controls' stops, and a frame for each setting that is drawn.

    ValueError if its function cannot be found by name, or an argument cannot be told by what is printed of it.
    """

    def __init__(self, call: FigureCall) -> None:
        self.function = call.draw.__name__
        self.stops, self.together = stops_of(self.function, call.controls)
        self.frames: dict[Setting, Frame] = {
            setting: Frame.of(call.draw, {c.name: c.values[i] for c, i in zip(self.stops, setting, strict=True)})
            for setting in combinations(self.stops, self.together)
        }
        if any(" at 0x" in repr(frame.arguments) for frame in self.frames.values()):
            raise ValueError(f"{self.function} has an argument that only the notebook has")

    def html(self, pictures: Mapping[Frame, Picture], name: str) -> str:
        """The figure with its controls.

        Args:
            pictures: of all frames.
            name: unlike that of any other figure on the page.
        """
        shown = [(place, control) for place, control in enumerate(self.stops) if len(control.values) > 1]
        inputs = "".join(_input(control, place, f"{name}-{place}") for place, control in shown)
        start, frame = next(iter(self.frames.items()))
        return (
            f'<figure class="explorable" data-start="{_key(start)}" data-frames="{self.script(pictures).name}">'
            f'<div class="controls" role="group" aria-label="Controls of the figure">{inputs}</div>'
            f'{image(pictures[frame])}<div class="spoken" role="status"></div>{self._note()}</figure>'
        )

    def script(self, pictures: Mapping[Frame, Picture]) -> FramesScript:
        """The file and the alt text of each setting's frame, which a page loads when a reader comes to the figure."""
        frames = {_key(setting): [pictures[f].file, pictures[f].alt] for setting, f in self.frames.items()}
        said = json.dumps(frames, ensure_ascii=False, separators=(",", ":"))
        name = hashlib.sha256(said.encode()).hexdigest()[:20]
        return FramesScript(name, f'registerFrames("{name}",{said});\n')

    def _note(self) -> str:
        if self.function in NOTES:
            note = NOTES[self.function]
        elif not self.together:
            note = ONE_AT_A_TIME
        elif any(control.is_thinned for control in self.stops):
            note = SOME_STOPS
        else:
            return ""
        return f"<figcaption>{note}</figcaption>"


def _input(control: Stops, place: int, name: str) -> str:
    """The input of a control, disabled until a script listens to it."""
    words = escape(control.name.replace("_", " "))
    texts = [escape(label(value), quote=True) for value in control.values]
    common = f'data-place="{place}" disabled'
    if control.is_slider:
        values = escape(json.dumps([label(value) for value in control.values]), quote=True)
        return (
            f'<div class="control"><label for="{name}">{words}</label><input type="range" id="{name}" min="0" '
            f'max="{len(texts) - 1}" value="{control.start}" aria-valuetext="{texts[control.start]}" '
            f'data-values="{values}" {common}><output for="{name}">{texts[control.start]}</output></div>'
        )
    if isinstance(control.widget, ipywidgets.Checkbox):
        checked = " checked" if control.start else ""
        return f'<div class="control"><label><input type="checkbox"{checked} {common}> {words}</label></div>'
    if isinstance(control.widget, ipywidgets.ToggleButtons):
        radios = "".join(
            f'<label><input type="radio" name="{name}" value="{index}"{" checked" if index == control.start else ""} '
            f"{common}><span>{text}</span></label>"
            for index, text in enumerate(texts)
        )
        return f'<fieldset class="control"><legend>{words}</legend><div class="choices">{radios}</div></fieldset>'
    options = "".join(
        f'<option value="{index}"{" selected" if index == control.start else ""}>{text}</option>'
        for index, text in enumerate(texts)
    )
    return (
        f'<div class="control"><label for="{name}">{words}</label><select id="{name}" {common}>{options}</select></div>'
    )


def _key(setting: Setting) -> str:
    return ",".join(map(str, setting))
