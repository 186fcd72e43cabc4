"""Make labelled controls from abbreviations like (0, 10).

    (low, high) or (low, high, step)   slider; for integers if all numbers are integers
    Log(low, high)                     slider with equal ratios
    [a, b, c]                          buttons, or a drop-down list for more than six
    True or False                      checkbox
    "text"                             text field
    3 or 0.5                           no control: the value is fixed

All are plain ipywidgets, so they can be reached with Tab and moved with the arrow keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import ipywidgets

_MAX_BUTTONS = 6


@dataclass(frozen=True)
class Log:
    """A logarithmic slider: low, low × base, low × base² ... for integers, fine steps for floats.

    Raises ValueError unless 0 < low < high and base > 1.
    """

    low: float
    high: float
    base: int = 2

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high or self.base <= 1:
            raise ValueError(f"Log needs 0 < low < high and base > 1, not {self.low}, {self.high}, {self.base}")


Control: TypeAlias = "tuple[float, ...] | Log | list[Any] | bool | str | float"


def make_control(name: str, control: Control, default: Any) -> ipywidgets.Widget:
    """Make the widget for an abbreviation, with a label made from the name.

    It starts at `default` if it can take that value, otherwise at its first or lowest value; a checkbox and a text
    field start at the given value. Raises TypeError or ValueError for an invalid abbreviation.
    """
    label = {"description": name.replace("_", " "), "style": {"description_width": "initial"}}
    label["tooltip"] = ""  # ipywidgets would show "null"
    if isinstance(control, bool):
        return ipywidgets.Checkbox(value=control, indent=False, **label)
    if isinstance(control, str):
        return ipywidgets.Text(value=control, continuous_update=False, **label)
    if isinstance(control, int | float):
        return ipywidgets.fixed(control)
    if isinstance(control, list):
        return _choice(name, control, default, label)
    if isinstance(control, Log):
        return _ratio_slider(control, default, label)
    if isinstance(control, tuple):
        return _slider(name, control, default, label)
    raise TypeError(f"{name}={control!r} is not a control: give a tuple, a list, Log(...), a bool, a str or a number")


def read(widget: ipywidgets.Widget) -> Any:
    """Return the value of a control, without the rounding noise of a browser's sliders (-8.9e-16 for 0)."""
    if isinstance(widget, ipywidgets.FloatSlider):
        decimals = 9 - math.floor(math.log10(widget.step))
        return round(widget.value, decimals) + 0.0  # -0.0 becomes 0.0
    if isinstance(widget, ipywidgets.FloatLogSlider):
        return float(f"{widget.value:.12g}")
    return widget.value


def _choice(name: str, options: list[Any], default: Any, label: dict[str, Any]) -> ipywidgets.Widget:
    if not options:
        raise ValueError(f"{name}=[] leaves nothing to choose from")
    kind = ipywidgets.ToggleButtons if len(options) <= _MAX_BUTTONS else ipywidgets.Dropdown
    widget = kind(options=[(str(option), option) for option in options], **label)
    widget.value = default if default in options else options[0]
    if kind is ipywidgets.ToggleButtons:
        widget.style.button_width = "auto"
    return widget


def _slider(name: str, control: tuple[float, ...], default: Any, label: dict[str, Any]) -> ipywidgets.Widget:
    if len(control) not in (2, 3) or not control[0] < control[1]:
        raise ValueError(f"{name}={control!r} is not (low, high) or (low, high, step) with low < high")
    low, high = control[:2]
    value = _within(low, high, default)
    if all(isinstance(number, int) for number in control):
        step = control[2] if len(control) == 3 else 1
        return ipywidgets.IntSlider(value=value, min=low, max=high, step=step, layout=_wide(), **label)
    step = control[2] if len(control) == 3 else _step(low, high, value)
    return ipywidgets.FloatSlider(
        value=value, min=low, max=high, step=step, readout_format=".3g", layout=_wide(), **label
    )


def _ratio_slider(control: Log, default: Any, label: dict[str, Any]) -> ipywidgets.Widget:
    if isinstance(control.low, int) and isinstance(control.high, int):
        steps = math.floor(math.log(control.high / control.low, control.base) + 1e-9)
        options = [control.low * control.base**step for step in range(steps + 1)]
        value = default if default in options else options[0]
        return ipywidgets.SelectionSlider(options=options, value=value, layout=_wide(), **label)
    low, high = math.log10(control.low), math.log10(control.high)
    value = _within(control.low, control.high, default)
    step = _step(low, high, math.log10(value))
    return ipywidgets.FloatLogSlider(
        value=value, min=low, max=high, step=step, readout_format=".3g", layout=_wide(), **label
    )


def _within(low: float, high: float, default: Any) -> float:
    numeric = isinstance(default, int | float) and not isinstance(default, bool)
    return default if numeric and low <= default <= high else low


def _step(low: float, high: float, start: float) -> float:
    """Return a step of about a hundredth of the range, such that the start value is a whole number of steps from the
    lower end.

    A browser rounds a value to the nearest step, so without this rule, displaying the slider would change the value.
    """
    steps_to_start = round(100 * (start - low) / (high - low))
    return (start - low) / steps_to_start if steps_to_start else (high - low) / 100


def _wide() -> ipywidgets.Layout:
    return ipywidgets.Layout(width="32em")
