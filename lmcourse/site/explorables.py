"""Make the site's version of a figure with controls: the controls' values, their combinations, and a frame for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from itertools import product
from math import prod
from typing import Any

import ipywidgets

from lmcourse.site.blocks import image
from lmcourse.site.figure_calls import NOTES, FigureCall
from lmcourse.site.frames import Frame, Picture
from lmcourse.widgets.controls import read

MAX_FRAMES = 16
"""Settings of a figure. Where a slider would keep fewer than four stops, one control moves at a time."""

MAX_FEW = 24
"""Settings of a figure whose controls have so few values that all are drawn, without leaving any out."""

TOGETHER = frozenset({"stride_map", "prefetch_timeline", "cross_entropy_bars", "work_grid"})
"""Figures whose controls make sense only together: all their settings are drawn, however many."""

MAX_STOPS = 11
"""Stops of a slider."""

MAX_CHOICES = 12
"""Choices of a list; of a longer one some are left out."""

TEXTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("token_surprise", "text"): (
        "One owl sleeps in the wood. The owl that many bears fear sleeps.",
        "Colorless green ideas sleep furiously.",
    ),
    ("merge_steps", "text"): ("she sells sea shells by the sea shore",),
    ("token_colours", "text"): (
        "def softmax(x): return x.exp() / x.exp().sum()",
        "Übermut tut selten gut. 今日は",
    ),
}
"""Texts that a reader may choose where the notebook has a field to type in: by function and parameter."""

STOPS: dict[tuple[str, str], tuple[Any, ...]] = {
    ("cross_entropy_bars", "books"): (0.2, 0.4, 0.6, 0.8),
    ("cross_entropy_bars", "laptops"): (0.1, 0.2, 0.3, 0.5),
    ("work_grid", "prompt"): (1, 4, 7, 10),
    ("work_grid", "new"): (1, 4, 8, 12),
}
"""Stops of sliders that move together, where even steps miss what the text asks for: by function and parameter."""

ONE_AT_A_TIME = "Here one control moves at a time, and the others go back; in the notebook all move freely."
SOME_STOPS = "Here the sliders have a few stops; in the notebook they move freely."

Setting = tuple[int, ...]
"""For each control the index of its value."""


_SLIDERS = (ipywidgets.IntSlider, ipywidgets.FloatSlider, ipywidgets.FloatLogSlider, ipywidgets.SelectionSlider)


@dataclass(frozen=True)
class Stops:
    """A control on the site: its name, the widget it stands for, its values, and the index of the first one shown."""

    name: str
    widget: ipywidgets.Widget
    values: tuple[Any, ...]
    start: int


def stops_of(function: str, controls: dict[str, ipywidgets.Widget]) -> tuple[list[Stops], bool]:
    """Return the stops of all controls of a figure, and True if every combination of them is drawn."""
    choices = {name: _choices(function, name, w) for name, w in controls.items() if not isinstance(w, _SLIDERS)}
    sliders = [name for name, widget in controls.items() if isinstance(widget, _SLIDERS)]
    left = MAX_FRAMES // prod(map(len, choices.values()))
    all_values = prod(map(len, choices.values())) * prod(_positions(controls[name]) for name in sliders)
    each = next((n for n in range(MAX_STOPS, 3, -1) if n ** len(sliders) <= left), 0)
    few = all_values <= MAX_FEW or function in TOGETHER
    together = few or (bool(sliders) and each > 0)
    if few:
        each = MAX_FEW
    elif not together:
        each = max(4, min(9, (MAX_FRAMES - sum(map(len, choices.values()))) // max(1, len(sliders))))
    found = []
    for name, widget in controls.items():
        values = choices[name] if name in choices else STOPS.get((function, name)) or _slider_values(widget, each)
        found.append(Stops(name, widget, values, values.index(read(widget))))
    return found, together


def combinations(stops: list[Stops], together: bool) -> list[Setting]:
    """Return the settings to draw; the first one shown is the first."""
    start = tuple(control.start for control in stops)
    if together:
        rest = list(product(*(range(len(control.values)) for control in stops)))
    else:
        rest = [
            (*start[:place], index, *start[place + 1 :])
            for place, control in enumerate(stops)
            for index in range(len(control.values))
        ]
    return list(dict.fromkeys([start, *rest]))


def _choices(function: str, name: str, widget: ipywidgets.Widget) -> tuple[Any, ...]:
    if isinstance(widget, ipywidgets.Checkbox):
        return (False, True)
    if isinstance(widget, ipywidgets.ToggleButtons | ipywidgets.Dropdown):
        return _thinned([value for _, value in widget.options], widget.value, MAX_CHOICES)
    return (read(widget), *TEXTS.get((function, name), ()))


def _positions(widget: ipywidgets.Widget) -> int:
    """Count the values that a slider has in the notebook."""
    if isinstance(widget, ipywidgets.SelectionSlider):
        return len(widget.options)
    positions: int = 1 + round((widget.max - widget.min) / widget.step)
    return positions


def _slider_values(widget: ipywidgets.Widget, count: int) -> tuple[Any, ...]:
    """Return about `count` values in even steps from one end to the other, with the first one shown among them."""
    if isinstance(widget, ipywidgets.SelectionSlider):
        return _thinned(list(widget.options), read(widget), count)
    steps = _positions(widget) - 1
    found = {read(widget)}
    for step in _spread(steps, count):
        found.add(_value_at(widget, widget.max if step == steps else widget.min + step * widget.step))
    return tuple(sorted(found))


def _value_at(widget: ipywidgets.Widget, at: float) -> Any:
    """Return the control's value at a place of its scale, exactly as in the notebook."""
    before = widget.value
    widget.value = widget.base**at if isinstance(widget, ipywidgets.FloatLogSlider) else at
    value = read(widget)
    widget.value = before
    return value


def _thinned(values: list[Any], shown: Any, count: int) -> tuple[Any, ...]:
    """Return about `count` of the values, in even steps, with the one shown first among them."""
    return tuple(values[index] for index in sorted({*_spread(len(values) - 1, count), values.index(shown)}))


def _spread(last: int, count: int) -> list[int]:
    """Return at most `count` whole numbers from 0 to `last`, evenly spread, with both ends."""
    if last < count:
        return list(range(last + 1))
    return [round(place * last / (count - 1)) for place in range(count)]


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
        """Return the figure with its controls, and the file and alt text of each setting's frame for `site.js`.

        The `name` is unlike that of any other figure on the page.
        """
        inputs = "".join(
            _input(control, place, f"{name}-{place}")
            for place, control in enumerate(self.stops)
            if len(control.values) > 1
        )
        shown = {_key(setting): pictures[frame] for setting, frame in self.frames.items()}
        frames = {key: [picture.file, picture.alt, picture.caption] for key, picture in shown.items()}
        data = json.dumps(frames, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        start, frame = next(iter(self.frames.items()))
        return (
            f'<figure class="explorable" data-start="{_key(start)}"><script type="application/json">{data}</script>'
            f'<div class="controls" role="group" aria-label="Controls of the figure">{inputs}</div>'
            f'{image(pictures[frame])}<div class="spoken" role="status"></div><figcaption><span class="caption">'
            f"{escape(pictures[frame].caption)}</span>{self._note()}</figcaption></figure>"
        )

    def _note(self) -> str:
        """Return the line under a figure that has fewer settings than in the notebook."""
        thinned = any(isinstance(s.widget, _SLIDERS) and len(s.values) < _positions(s.widget) for s in self.stops)
        at_once = (SOME_STOPS if thinned else "") if self.together else ONE_AT_A_TIME
        note = NOTES.get(self.function, at_once)
        return f" <i>{note}</i>" if note else ""


def _input(control: Stops, place: int, name: str) -> str:
    """The input of a control, disabled until a script listens to it."""
    words = escape(control.name.replace("_", " "))
    texts = [escape(label(value), quote=True) for value in control.values]
    common = f'data-place="{place}" disabled'
    if isinstance(control.widget, _SLIDERS):
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


def label(value: Any) -> str:
    """Return a value as text for its control."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if value == round(value) and abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def _key(setting: Setting) -> str:
    return ",".join(map(str, setting))
