"""Make the site's version of a figure with controls: the controls' values, their combinations, and a frame for each."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from math import prod
from typing import Any

import ipywidgets

from lmcourse.site.blocks import image
from lmcourse.site.figure_calls import NOTES, FigureCall
from lmcourse.site.frames import Frame, Picture
from lmcourse.widgets.controls import read

MAX_FRAMES = 25
"""Largest number of frames of a figure whose sliders have more than four stops each."""

MAX_FREE = {4: 36, 3: 81}
"""Largest number of settings of a figure with many controls, by the number of stops per slider. If even three
stops give more settings, only some of them are drawn."""

MANY = 5
"""Number of stops of a slider if not all settings are drawn."""

MAX_ALL = 32
"""Largest number of settings of a figure that is drawn at every value of its controls."""

TOGETHER = frozenset({"stride_map", "prefetch_timeline", "collective"})
"""Figures that are always drawn in all settings."""

MAX_STOPS = 11
"""Largest number of stops of a slider."""

MAX_CHOICES = 12
"""Largest number of choices of a list; longer lists are shortened."""

TEXTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("token_surprise", "text"): (
        "One owl sleeps in the wood. The owl that many bears fear sleeps.",
        "Colorless green ideas sleep furiously.",
    ),
    ("merge_steps", "text"): ("she sells sea shells by the sea shore",),
    ("token_colours", "text"): ("def softmax(x): return x.exp() / x.exp().sum()", "Übermut tut selten gut. 今日は"),
}
"""Texts that readers can choose in place of a text field in the notebook, by function and parameter."""

STOPS: dict[tuple[str, str], tuple[Any, ...]] = {
    ("softmax_overflow", "logit"): (-30.0, 11.0, 12.0, 89.0, 120.0),
    ("lines_touched", "step"): (1, 2, 4, 8, 12, 16, 20, 24, 28, 32),
    ("gaussian_loss", "sigma"): (0.6, 0.71, 1.0, 1.5, 2.0),
    ("certificate", "scale"): (0.1, 0.4, 0.7, 1.0, 1.3, 1.6, 1.9, 1.95),
    ("cross_entropy_bars", "books"): (0.2, 0.4, 0.6, 0.8),
    ("cross_entropy_bars", "laptops"): (0.1, 0.2, 0.3, 0.5),
    ("ngram_loss", "n"): (1, 2, 3, 4, 5, 6, 8, 10),
    ("work_grid", "prompt"): (1, 4, 7, 10),
    ("work_grid", "new"): (1, 4, 8, 12),
    ("sine_circle", "first"): (0, 3, 28, 50),
    ("sine_circle", "second"): (0, 6, 47, 50),
    ("slopes_by_head", "heads"): (1, 2, 4, 8, 12, 16, 20, 24, 32, 40),
    ("hidden_unit", "unit"): (5, 57, 161, 225, 276, 286),
    ("ratio_trade", "ratio"): (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 16.0, 32.0, 64.0),
    ("memory_budget", "length"): (512, 2048, 4096, 8192, 131072),
    ("memory_budget", "devices"): (1, 2, 4, 8, 16, 32, 64),
    ("training_budget", "mfu"): (0.05, 0.2, 0.4, 0.7),
    ("training_budget", "gpus"): (1, 64, 256, 1024, 4096, 16384, 65536),
    ("training_budget", "dollars_per_gpu_hour"): (0.5, 1.0, 2.0, 3.0, 5.0, 10.0),
    ("gradient_spikes", "clip"): (0.1, 0.5, 1.0, 10.0),
    ("gradient_spikes", "factor"): (1.5, 3.0, 5.0, 10.0, 20.0),
    ("softmax_of_growing_logits", "scale"): (0.5, 1.0, 5.0, 20.0, 200.0),
    ("soft_cap_curve", "logit"): (-150.0, -100.0, -50.0, 0.0, 10.0, 50.0, 100.0, 150.0),
    ("lost_updates", "decay"): (0.01, 0.1, 1.0, 2.0, 10.0),
    ("next_token", "temperature"): (0.1, 1.0, 2.0, 4.0),
    ("next_token", "top_p"): (0.05, 0.5, 0.8, 0.9, 1.0),
    ("next_token", "min_p"): (0.0, 0.05, 0.1, 0.2, 0.5),
    ("decode_step", "batch"): (1, 32, 128, 256, 512, 1024),
    ("decode_step", "context"): (256, 512, 2048, 8192),
    ("collective", "workers"): (3, 4, 8),
    ("collective", "step"): (0, 1, 2, 3, 4, 14),
    ("timing_spread", "disturbed"): (0.0, 0.15, 0.3, 0.5, 0.6),
    ("timing_spread", "runs"): (5, 20, 60),
}
"""Stops of sliders whose even steps would miss values that the text mentions, by function and parameter."""

SETS: dict[str, tuple[dict[str, tuple[Any, ...]], ...]] = {
    "decode_step": ({"batch": (), "context": ()},),
    "descent_path": ({"method": (), "kappa": (), "rotation": ()}, {"method": (), "rate": (), "kappa": ()}),
    "layout_explorer": (
        {"cluster": ("64 devices, 128 texts", "256 devices, 512 texts"), "tensor": (), "pipeline": (), "zero": ()},
    ),
    "memory_budget": ({"model": ("llama-3.1-405b",), "card": ("b200",), "devices": ()},),
    "next_token": tuple({"beginning": (), "temperature": (), rule: ()} for rule in ("top_k", "top_p", "min_p")),
    "training_budget": ({"tokens_in_billions": (), "mfu": ()},),
}
"""For figures with too many settings: controls that the text asks readers to change together, with their values (empty:
all)."""

FIRST_GOES_BACK = (
    "Here not every setting is drawn: the control that you moved first may go back. In the notebook all move freely."
)
SOME_STOPS = "Here the sliders have a few stops; in the notebook they move freely."

Setting = tuple[int, ...]
"""The index of each control's value."""


_SLIDERS = (ipywidgets.IntSlider, ipywidgets.FloatSlider, ipywidgets.FloatLogSlider, ipywidgets.SelectionSlider)


@dataclass(frozen=True)
class Stops:
    """A control on the site: its name, its widget in the notebook, its values, and the index of its first value."""

    name: str
    widget: ipywidgets.Widget
    values: tuple[Any, ...]
    start: int


def stops_of(function: str, controls: dict[str, ipywidgets.Widget]) -> tuple[list[Stops], bool]:
    """Return the stops of all controls of a figure, and True if all combinations are drawn."""

    def stops(each: int) -> list[Stops]:
        values = {name: _values(function, name, widget, each) for name, widget in controls.items()}
        return [Stops(name, controls[name], found, found.index(read(controls[name]))) for name, found in values.items()]

    def settings(found: list[Stops]) -> int:
        return prod(len(control.values) for control in found)

    if function in TOGETHER or prod(map(_positions, controls.values())) <= MAX_ALL:
        return stops(MAX_ALL), True
    for each in range(MAX_STOPS, 2, -1):
        if settings(found := stops(each)) <= MAX_FREE.get(each, MAX_FRAMES):
            return found, True
    return stops(MANY), False


def combinations(function: str, stops: list[Stops], together: bool) -> list[Setting]:
    """Return the settings to draw, starting with the initial setting.

    If there are too many, they are: each control changed alone, any two controls at their ends, and `SETS`.
    """
    start = {control.name: (control.start,) for control in stops}
    every = {control.name: tuple(range(len(control.values))) for control in stops}
    if together:
        moved = [every]
    else:
        few = {c.name: tuple(sorted({0, c.start, len(c.values) - 1})) for c in stops}
        moved = [{name: every[name]} for name in every]
        moved += [{one: few[one], other: few[other]} for one, other in itertools.combinations(few, 2)]
        for together_in_text in SETS.get(function, ()):
            indices = {
                c.name: tuple(map(c.values.index, together_in_text[c.name]))
                for c in stops
                if c.name in together_in_text
            }
            moved.append({name: found or every[name] for name, found in indices.items()})
    settings = itertools.chain.from_iterable(itertools.product(*(start | one).values()) for one in ({}, *moved))
    return list(dict.fromkeys(settings))


def _values(function: str, name: str, widget: ipywidgets.Widget, each: int) -> tuple[Any, ...]:
    """Return the values of a control; for a slider at most `each` values, or those that the text needs."""
    if not isinstance(widget, _SLIDERS):
        return _choices(function, name, widget)
    return STOPS.get((function, name)) or _slider_values(widget, each)


def _choices(function: str, name: str, widget: ipywidgets.Widget) -> tuple[Any, ...]:
    if isinstance(widget, ipywidgets.Checkbox):
        return (False, True)
    if isinstance(widget, ipywidgets.ToggleButtons | ipywidgets.Dropdown):
        return _thinned([value for _, value in widget.options], widget.value, MAX_CHOICES)
    return (read(widget), *TEXTS.get((function, name), ()))


def _positions(widget: ipywidgets.Widget) -> int:
    """Return the number of values that a control has in the notebook; 1 for a text field."""
    if isinstance(widget, ipywidgets.Checkbox):
        return 2
    if not isinstance(widget, _SLIDERS) or isinstance(widget, ipywidgets.SelectionSlider):
        return len(getattr(widget, "options", " "))
    positions: int = 1 + round((widget.max - widget.min) / widget.step)
    return positions


def _slider_values(widget: ipywidgets.Widget, count: int) -> tuple[Any, ...]:
    """Return at most `count` values of a slider in even steps, including both ends and the initial value."""
    if isinstance(widget, ipywidgets.SelectionSlider):
        return _thinned(list(widget.options), read(widget), count)
    steps, start = _positions(widget) - 1, _position(widget)
    places = {step: widget.max if step == steps else widget.min + step * widget.step for step in range(steps + 1)}
    return tuple(read(widget) if at == start else _value_at(widget, places[at]) for at in _spread(steps, count, start))


def _position(widget: ipywidgets.Widget) -> int:
    """Return the number of steps from a slider's lower end to its value."""
    at = math.log(widget.value, widget.base) if isinstance(widget, ipywidgets.FloatLogSlider) else widget.value
    steps: int = round((at - widget.min) / widget.step)
    return steps


def _value_at(widget: ipywidgets.Widget, at: float) -> Any:
    """Return a control's value after this number of steps, exactly as in the notebook."""
    before = widget.value
    widget.value = widget.base**at if isinstance(widget, ipywidgets.FloatLogSlider) else at
    value = read(widget)
    widget.value = before
    return value


def _thinned(values: list[Any], shown: Any, count: int) -> tuple[Any, ...]:
    """Return at most `count` of the values, evenly spaced, including the initial value."""
    return tuple(values[index] for index in _spread(len(values) - 1, count, values.index(shown)))


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
        self.function = call.draw.__name__
        self.stops, self.together = stops_of(self.function, call.controls)
        self.frames: dict[Setting, Frame] = {
            setting: Frame.of(call.draw, {c.name: c.values[i] for c, i in zip(self.stops, setting, strict=True)})
            for setting in combinations(self.function, self.stops, self.together)
        }
        if any(" at 0x" in repr(frame.arguments) for frame in self.frames.values()):
            raise ValueError(f"{self.function} has an argument that exists only in the notebook")

    def html(self, pictures: Mapping[Frame, Picture], name: str) -> str:
        """Return the figure with its controls, and the file and alt text of each setting's frame for `site.js`.

        The `name` must be unique on the page.
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
        """Return the line below a figure that has fewer settings than in the notebook."""
        thinned = any(isinstance(s.widget, _SLIDERS) and len(s.values) < _positions(s.widget) for s in self.stops)
        at_once = (SOME_STOPS if thinned else "") if self.together else FIRST_GOES_BACK
        note = NOTES.get(self.function, at_once)
        return f" <i>{note}</i>" if note else ""


def _input(control: Stops, place: int, name: str) -> str:
    """Return the HTML input of a control, which is disabled until a script enables it."""
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
