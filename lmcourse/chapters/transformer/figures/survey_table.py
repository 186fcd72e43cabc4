"""The survey of published models as a table that can be filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

import ipywidgets

from lmcourse.chapters.transformer.figures.models import published
from lmcourse.chapters.transformer.figures.survey import SurveyRow, survey_row
from lmcourse.widgets.live import WIDGET_MIME

ANY = "any"
STILL_ROWS = 12
"""Number of rows shown without a kernel."""

_CELL = "padding: 1px 10px 1px 0; text-align: left; white-space: nowrap; font-size: 12px;"
_PAPER = "background: var(--jp-layout-color0, white);"
_HEAD = f"{_CELL} {_PAPER} position: sticky; top: 0; vertical-align: bottom;"
_PINNED = " left: 0; z-index: 1;"
_NAME = f"{_CELL} {_PAPER} position: sticky; left: 0;"

ORDERS: dict[str, Callable[[SurveyRow], Any]] = {
    "newest": lambda row: (-row.year, row.name),
    "oldest": lambda row: (row.year, row.name),
    "largest": lambda row: (-row.parameters, row.name),
    "deepest": lambda row: (row.aspect, row.name),
    "widest": lambda row: (-row.aspect, row.name),
    "largest vocabulary": lambda row: (-row.vocabulary, row.name),
}
COLUMNS: dict[str, Callable[[SurveyRow], str]] = {
    "model": lambda row: row.name,
    "year": lambda row: str(row.year),
    "parameters (10⁹)": lambda row: f"{row.parameters / 1e9:,.2f}",
    "layers × d": lambda row: f"{row.layers} × {row.d_model:,}",
    "d / L": lambda row: f"{row.aspect:.0f}",
    "vocabulary (tokens)": lambda row: f"{row.vocabulary:,}",
    "context (tokens)": lambda row: "no limit" if row.context is None else f"{row.context:,}",
    "norm": lambda row: f"{row.norm}, {row.placement}",
    "positions": lambda row: row.position,
    "attention": lambda row: row.attention,
    "activation": lambda row: row.activation,
    "d_ff / d": lambda row: f"{row.ff_ratio:.2f}",
    "heads · d_head / d": lambda row: f"{row.head_ratio:.2f}",
    "query heads per key head": lambda row: f"{row.sharing}",
    "QK-norm": lambda row: "yes" if row.qk_norm else "–",
    "soft caps, z-loss": lambda row: row.caps,
    "biases": lambda row: row.biases,
    "tied": lambda row: "yes" if row.tied else "–",
    "weight decay": lambda row: row.weight_decay,
    "dropout": lambda row: f"{row.dropout:g}",
}


class SurveyTable:
    """All published models of the zoo, with drop-down lists to filter and sort them."""

    def __init__(self) -> None:
        self._rows = [survey_row(entry) for entry in published()]
        choices = {
            "norm": _values(row.norm for row in self._rows),
            "positions": _values("RoPE" if "RoPE" in row.position else row.position for row in self._rows),
            "activation": _values(row.activation for row in self._rows),
            "biases": _values(row.biases for row in self._rows),
            "weight decay": _values(row.weight_decay for row in self._rows),
            "order": list(ORDERS),
        }
        self.controls = {
            name: ipywidgets.Dropdown(options=options, description=name, layout=ipywidgets.Layout(width="18em"))
            for name, options in choices.items()
        }
        for control in self.controls.values():
            control.observe(self._show, names="value")
        self.table = ipywidgets.HTML(self._html())
        row = ipywidgets.HBox(list(self.controls.values()), layout=ipywidgets.Layout(flex_flow="row wrap"))
        self._box = ipywidgets.VBox([row, self.table])

    def rows(self) -> list[SurveyRow]:
        """Return the rows that match the drop-down lists, in the order chosen."""
        kept = [row for row in self._rows if self._keeps(row)]
        return sorted(kept, key=ORDERS[self.controls["order"].value])

    def _keeps(self, row: SurveyRow) -> bool:
        chosen = {name: control.value for name, control in self.controls.items()}
        return (
            chosen["norm"] in (ANY, row.norm)
            and (chosen["positions"] == ANY or chosen["positions"] in row.position)
            and chosen["activation"] in (ANY, row.activation)
            and chosen["biases"] in (ANY, row.biases)
            and chosen["weight decay"] in (ANY, row.weight_decay)
        )

    def _show(self, change: object) -> None:
        self.table.value = self._html()

    def _html(self, most: int | None = None) -> str:
        rows = self.rows()
        head = "".join(f'<th style="{_HEAD}{_PINNED * (not n)}">{escape(name)}</th>' for n, name in enumerate(COLUMNS))
        body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows[:most])
        count = f"{len(rows)} of {len(self._rows)} models" + (f", the first {most} of them" if most else "")
        return (
            f'<div role="status">{count}. “–”: none; for weight decay and z-loss, none that we found.</div>'
            f'<div style="max-height: 26em; max-width: 100%; overflow: auto; line-height: 1.5;" tabindex="0">'
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def __repr__(self) -> str:
        return f"{len(self.rows())} of {len(self._rows)} models, {self.controls['order'].value} first"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {
            WIDGET_MIME: self._box._repr_mimebundle_()[WIDGET_MIME],
            "text/html": self._html(STILL_ROWS),
            "text/plain": repr(self),
        }


def _values(found: Iterable[str]) -> list[str]:
    return [ANY, *sorted(set(found), key=str.casefold)]


def _cells(row: SurveyRow) -> str:
    name, *others = (escape(cell(row)) for cell in COLUMNS.values())
    return f'<td style="{_NAME}">{name}</td>' + "".join(f'<td style="{_CELL}">{text}</td>' for text in others)
