"""Where the controls of a figure can stand on the site, and in which combinations: few enough to draw them all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import ipywidgets

from lmcourse.widgets.controls import read

MAX_FRAMES = 16
"""Settings of a figure. Where a slider would keep fewer than four stops, one control moves at a time."""

MAX_FEW = 24
"""Settings of a figure whose controls have so few values that all are drawn, without leaving any out."""

MAX_STOPS = 11
"""Of a slider."""

MAX_CHOICES = 12
"""Of a list; of a longer one some are left out."""

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
"""What a reader may try where the notebook has a field to type in: by function and parameter."""

STARTS: dict[tuple[str, str], Any] = {("layout_budget", "data"): 8}
"""Where one control moves at a time, and at the figure's own start another one would change nothing."""


@dataclass(frozen=True)
class Stops:
    """A control on the site: its name, the widget it stands for, its values, and the index of the first one shown."""

    name: str
    widget: ipywidgets.Widget
    values: tuple[Any, ...]
    start: int

    @property
    def is_slider(self) -> bool:
        """Whether the values lie in an order."""
        return isinstance(self.widget, _SLIDERS)

    @property
    def is_thinned(self) -> bool:
        """Whether the notebook has values in between."""
        return self.is_slider and len(self.values) < _positions(self.widget)


_SLIDERS = (ipywidgets.IntSlider, ipywidgets.FloatSlider, ipywidgets.FloatLogSlider, ipywidgets.SelectionSlider)


def stops_of(function: str, controls: dict[str, ipywidgets.Widget]) -> tuple[list[Stops], bool]:
    """The stops of all controls of a figure, and whether they move together: every combination is drawn."""
    choices = {name: _choices(function, name, w) for name, w in controls.items() if not isinstance(w, _SLIDERS)}
    sliders = [name for name, widget in controls.items() if isinstance(widget, _SLIDERS)]
    room = MAX_FRAMES // prod(map(len, choices.values()))
    all_values = prod(map(len, choices.values())) * prod(_positions(controls[name]) for name in sliders)
    each = next((n for n in range(MAX_STOPS, 3, -1) if n ** len(sliders) <= room), 0)
    together = all_values <= MAX_FEW or (bool(sliders) and each > 0)
    if all_values <= MAX_FEW:
        each = MAX_FEW
    elif not together:
        each = max(4, min(9, (MAX_FRAMES - sum(map(len, choices.values()))) // max(1, len(sliders))))
    found = []
    for name, widget in controls.items():
        values = choices[name] if name in choices else _slider_values(widget, each)
        found.append(Stops(name, widget, values, values.index(STARTS.get((function, name), read(widget)))))
    return found, together


def combinations(stops: list[Stops], together: bool) -> list[tuple[int, ...]]:
    """The settings to draw, as the index of each control's value; the first one shown is the first."""
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


def label(value: Any) -> str:
    """A value as a reader sees it beside its control."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if value == round(value) and abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def _choices(function: str, name: str, widget: ipywidgets.Widget) -> tuple[Any, ...]:
    if isinstance(widget, ipywidgets.Checkbox):
        return (False, True)
    if isinstance(widget, ipywidgets.ToggleButtons | ipywidgets.Dropdown):
        values = [value for _, value in widget.options]
        kept = _spread(len(values) - 1, MAX_CHOICES) if len(values) > MAX_CHOICES else range(len(values))
        return tuple(values[index] for index in sorted({*kept, values.index(widget.value)}))
    return (read(widget), *TEXTS.get((function, name), ()))


def _positions(widget: ipywidgets.Widget) -> int:
    """How many values a slider has in the notebook."""
    if isinstance(widget, ipywidgets.SelectionSlider):
        return len(widget.options)
    steps: int = round((widget.max - widget.min) / widget.step)
    return 1 + steps


def _slider_values(widget: ipywidgets.Widget, count: int) -> tuple[Any, ...]:
    """About `count` values in even steps from one end to the other, with the first one shown among them."""
    start = read(widget)
    if isinstance(widget, ipywidgets.SelectionSlider):
        options = list(widget.options)
        kept = sorted({*_spread(len(options) - 1, count), options.index(start)})
        return tuple(options[index] for index in kept)
    steps = round((widget.max - widget.min) / widget.step)
    found = {start}
    for step in _spread(steps, count):
        at = widget.max if step == steps else widget.min + step * widget.step
        found.add(_value_at(widget, at))
    return tuple(sorted(found))


def _value_at(widget: ipywidgets.Widget, at: float) -> Any:
    """What the control gives at a place of its scale: exactly what it gives in the notebook."""
    before = widget.value
    widget.value = widget.base**at if isinstance(widget, ipywidgets.FloatLogSlider) else at
    value = read(widget)
    widget.value = before
    return value


def _spread(last: int, count: int) -> list[int]:
    """At most `count` whole numbers from 0 to `last`, evenly spread, with both ends."""
    if last < count:
        return list(range(last + 1))
    return [round(place * last / (count - 1)) for place in range(count)]
