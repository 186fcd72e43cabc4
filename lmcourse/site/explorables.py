"""Make the site's version of a figure with controls: the controls' values, their combinations, and a frame for each."""

from __future__ import annotations

import itertools
import json
import math
from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape
from math import prod
from typing import Any
from urllib.parse import quote

import ipywidgets
from docutils.nodes import make_id

from lmcourse.base.text import code_html
from lmcourse.plots.settings import STOPS, TOGETHER
from lmcourse.plots.style import with_powers
from lmcourse.site.blocks import image
from lmcourse.site.figure_calls import FigureCall
from lmcourse.site.frames import Frame, Picture
from lmcourse.widgets.controls import read

MAX_FREE = dict.fromkeys(range(11, 4, -1), 25) | {4: 36, 3: 81}
"""Largest number of settings of a figure with many controls, by the number of stops per slider. If even three
stops give more settings, only some of them are drawn."""

MANY = 5
"""Number of stops of a slider if not all settings are drawn."""

MAX_ALL = 32
"""Largest number of settings of a figure that is drawn at every value of its controls."""

MAX_CHOICES = 12
"""Largest number of choices of a list; longer lists are shortened."""

FIRST_GOES_BACK = (
    "Here not every setting is drawn: the control that you moved first may go back. In the notebook all move freely."
)
SOME_STOPS = "In the notebook the sliders move freely."

Setting = tuple[int, ...]
"""The index of each control's value."""

_SLIDERS = (ipywidgets.IntSlider, ipywidgets.FloatSlider, ipywidgets.FloatLogSlider, ipywidgets.SelectionSlider)


@dataclass(frozen=True)
class Stops:
    """A control of a figure on the site: the figure, its name, its widget, its values here and those in the notebook.

    Raises ValueError for a value that a slider does not reach.
    """

    figure: str
    name: str
    widget: ipywidgets.Widget
    values: tuple[Any, ...]
    options: list[Any]

    def __post_init__(self) -> None:
        low, high = self.options[0], self.options[-1]
        if isinstance(self.widget, _SLIDERS) and not all(low <= value <= high for value in self.values):
            raise ValueError(f"{self.figure}: {self.name} goes from {low} to {high}, and its stops are {self.values}")

    def index(self, value: Any) -> int:
        """Return the index of a value; raise ValueError if the control does not have it."""
        if value not in self.values:
            raise ValueError(f"{self.figure}: {self.name} is never {value!r}, only {', '.join(map(str, self.values))}")
        return self.values.index(value)

    @property
    def start(self) -> int:
        """The index of the first value that is shown."""
        return self.index(read(self.widget))


def stops_of(draw: Callable[..., Any], controls: dict[str, ipywidgets.Widget]) -> tuple[list[Stops], bool]:
    """Return the stops of all controls of a figure, and True if all combinations are drawn."""
    chosen = ChainMap(*STOPS.get(draw, ()))
    options = {name: _options(widget) for name, widget in controls.items()}

    def stops(each: int) -> list[Stops]:
        values = {name: _values(widget, options[name], chosen.get(name, ()), each) for name, widget in controls.items()}
        return [Stops(draw.__name__, name, controls[name], found, options[name]) for name, found in values.items()]

    if {} in TOGETHER.get(draw, ()) or prod(map(len, options.values())) <= MAX_ALL:
        return stops(MAX_ALL), True
    for each, most in MAX_FREE.items():
        found = stops(each)
        if prod(len(control.values) for control in found) <= most:
            return found, True
    return stops(MANY), False


def combinations(draw: Callable[..., Any], stops: list[Stops], all_drawn: bool) -> list[Setting]:
    """Return the settings to draw, starting with the initial setting.

    If there are too many, they are: each control changed alone, any two controls at their ends, and those that
    the figure gives with `drawn_together`.
    """
    start = {control.name: (control.start,) for control in stops}
    every = {control.name: tuple(range(len(control.values))) for control in stops}
    if all_drawn:
        moved = [every]
    else:
        few = {c.name: tuple(sorted({0, c.start, len(c.values) - 1})) for c in stops}
        moved = [{name: every[name]} for name in every]
        moved += [{one: few[one], other: few[other]} for one, other in itertools.combinations(few, 2)]
        for values in TOGETHER.get(draw, ()):
            here = [c for c in stops if c.name in values]
            moved.append({c.name: tuple(map(c.index, values[c.name])) or every[c.name] for c in here})
    settings = itertools.chain.from_iterable(itertools.product(*(start | one).values()) for one in ({}, *moved))
    return list(dict.fromkeys(settings))


def _values(widget: ipywidgets.Widget, options: list[Any], chosen: tuple[Any, ...], each: int) -> tuple[Any, ...]:
    """Return the values of a control: the chosen ones, or for a slider at most `each` of its options, evenly spaced."""
    if isinstance(widget, ipywidgets.Text):
        return (read(widget), *chosen)
    count = each if isinstance(widget, _SLIDERS) else MAX_CHOICES
    return chosen or tuple(options[at] for at in _spread(len(options) - 1, count, options.index(read(widget))))


def _options(widget: ipywidgets.Widget) -> list[Any]:
    """Return all values that a control has in the notebook, in order; of a text field, only its first."""
    if not hasattr(widget, "step"):
        own = [False, True] if isinstance(widget, ipywidgets.Checkbox) else [read(widget)]
        return [option[1] if isinstance(option, tuple) else option for option in getattr(widget, "options", own)]
    first, base = widget.value, getattr(widget, "base", None)
    steps = round((widget.max - widget.min) / widget.step)
    start = round(((math.log(first, base) if base else first) - widget.min) / widget.step)
    found = []
    for at in (*(widget.min + step * widget.step for step in range(steps)), widget.max):
        widget.value = base**at if base else at
        found.append(read(widget))
    widget.value = first
    found[start] = read(widget)
    return found


def _spread(last: int, count: int, start: int) -> list[int]:
    """Return at most `count` integers from 0 to `last`, evenly spaced, including both ends and `start`."""
    if last < count:
        return list(range(last + 1))
    places = [round(place * last / (count - 1)) for place in range(count)]
    if 0 < start < last:
        places[min(range(1, count - 1), key=lambda place: abs(places[place] - start))] = start
    return places


class Explorable:
    """A figure on the site: its controls' stops, and a frame for each setting that is drawn.

    Raises ValueError if its function cannot be found by name, or if the printed form of an argument does not identify
    it.
    """

    def __init__(self, call: FigureCall) -> None:
        self.function, self.note = call.draw.__name__, call.note
        self.stops, self.all_drawn = stops_of(call.draw, call.controls)
        self.frames: dict[Setting, Frame] = {
            setting: Frame.of(call.draw, {c.name: c.values[i] for c, i in zip(self.stops, setting, strict=True)})
            for setting in combinations(call.draw, self.stops, self.all_drawn)
        }
        if any(" at 0x" in repr(frame.arguments) for frame in self.frames.values()):
            raise ValueError(f"{self.function} has an argument that exists only in the notebook")

    def html(self, pictures: Mapping[Frame, Picture], name: str) -> str:
        """Return the figure with its controls, and the file and alt text of each setting's frame for `figures.js`.

        The `name` must be unique on the page: links to the figure end with it.
        """
        movable = {place: control for place, control in enumerate(self.stops) if len(control.values) > 1}
        inputs = "".join(_input(control, place, f"{name}.{place}") for place, control in movable.items())
        shown = self._described(pictures)
        frames = {key: [picture.file, picture.alt, code_html(picture.caption)] for key, picture in shown.items()}
        names = {place: (control.name, [*map(in_address, control.values)]) for place, control in movable.items()}
        data = json.dumps({"frames": frames, "names": names}, ensure_ascii=False, separators=(",", ":"))
        data = data.replace("<", "\\u003c")
        start, first = next(iter(shown.items()))
        tallest = max(picture.height / picture.width for picture in shown.values())
        first = replace(first, height=round(first.width * tallest))
        longest = max((picture.caption for picture in shown.values()), key=len)
        room = f'<span class="room" aria-hidden="true">{code_html(longest)}{self._note()}</span>'
        return (
            f'<figure class="explorable" id="{name}" data-start="{start}">'
            f'<script type="application/json">{data}</script>'
            f'<div class="controls" role="group" aria-label="Controls of the figure">{inputs}'
            f'<a class="link" href="#{name}">link</a></div>'
            f'{image(first)}<div class="spoken" role="status"></div><figcaption><span><span class="caption">'
            f"{code_html(first.caption)}</span>{self._note()}</span>"
            f"{room if longest != first.caption else ''}</figcaption></figure>"
        )

    def _described(self, pictures: Mapping[Frame, Picture]) -> dict[str, Picture]:
        """Return each setting's picture; if several have the same alt text, it also says the values that differ."""
        alike: defaultdict[str, list[Setting]] = defaultdict(list)
        for setting, frame in self.frames.items():
            alike[pictures[frame].alt].append(setting)
        found = {}
        for setting, frame in self.frames.items():
            alt = pictures[frame].alt
            values = zip(self.stops, setting, zip(*alike[alt], strict=True), strict=True)
            said = [f"{_words(one.name)} {label(one.values[at])}" for one, at, all_at in values if len({*all_at}) > 1]
            found[",".join(map(str, setting))] = replace(pictures[frame], alt="; ".join([alt, *said]))
        return found

    def _note(self) -> str:
        """Return the line below a figure that has fewer settings than in the notebook."""
        thinned = any(isinstance(s.widget, _SLIDERS) and len(s.values) < len(s.options) for s in self.stops)
        note = self.note or ((SOME_STOPS if thinned else "") if self.all_drawn else FIRST_GOES_BACK)
        return f" <i>{note}</i>" if note else ""


def _input(control: Stops, place: int, name: str) -> str:
    """Return the HTML input of a control, which is disabled until a script enables it."""
    words = escape(_words(control.name))
    texts = [escape(label(value), quote=True) for value in control.values]
    common = f'data-place="{place}" disabled'
    if isinstance(control.widget, _SLIDERS):
        values = escape(json.dumps([label(value) for value in control.values]), quote=True)
        return (
            f'<div class="control"><label for="{name}">{words}</label><span class="slider">'
            f'<input type="range" id="{name}" min="0" max="{len(texts) - 1}" value="{control.start}" '
            f'aria-valuetext="{texts[control.start]}" data-values="{values}" {common}>'
            f'<output for="{name}">{texts[control.start]}</output></span></div>'
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


def _words(name: str) -> str:
    return name.replace("_", " ")


def label(value: Any) -> str:
    """Return a value as text for its control."""
    if isinstance(value, int | float) and abs(value) >= 1000:
        return f"{value:,.0f}"
    return with_powers(_plain(value)) if isinstance(value, float) else _plain(value)


def in_address(value: Any) -> str:
    """Return a value as it is named in the address of a figure's setting: readable, and without spaces."""
    return quote(_plain(value).strip("“”").replace(" ", "_"), safe="!$'()*,:@/?~")


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def anchors(figures: Mapping[int, Explorable], headings: Iterable[str]) -> dict[int, str]:
    """Return the last part of each figure's address: its function's name, with a number if that is taken."""
    found: dict[int, str] = {}
    taken = {make_id(heading) for heading in headings}
    for place, figure in figures.items():
        name = figure.function.replace("_", "-")
        numbered = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
        found[place] = next(one for one in numbered if one not in taken)
        taken.add(found[place])
    return found
