"""The survey of published models as a table that can be filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import ipywidgets

from lmcourse.chapters.transformer.figures.models import published
from lmcourse.chapters.transformer.figures.survey import SurveyRow, survey_row
from lmcourse.models.zoo.entry import Entry
from lmcourse.widgets.live import WIDGET_MIME

ANY = "any"
NONE = "none"
STILL_ROWS = 12
"""Rows where there is no kernel."""

_CELL = "padding: 1px 10px 1px 0; text-align: left; white-space: nowrap; font-size: 12px;"
_PAPER = "background: var(--jp-layout-color0, white);"

ORDERS: dict[str, Callable[[SurveyRow], Any]] = {
    "newest": lambda row: (-row.year, row.name),
    "oldest": lambda row: (row.year, row.name),
    "largest": lambda row: (-row.parameters, row.name),
    "deepest": lambda row: (row.aspect, row.name),
    "widest": lambda row: (-row.aspect, row.name),
}
COLUMNS: dict[str, Callable[[SurveyRow], str]] = {
    "model": lambda row: row.name,
    "year": lambda row: str(row.year),
    "parameters": lambda row: f"{row.parameters / 1e9:,.2f} B",
    "layers × d": lambda row: f"{row.layers} × {row.d_model:,}",
    "d / L": lambda row: f"{row.aspect:.0f}",
    "norm": lambda row: f"{row.norm}, {row.placement}",
    "positions": lambda row: row.position,
    "attention": lambda row: row.attention,
    "activation": lambda row: row.activation,
    "d_ff / d": lambda row: f"{row.ff_ratio:.2f}",
    "heads / d": lambda row: f"{row.head_ratio:.2f}",
}


class SurveyTable:
    """All published models of the zoo, with a list for each of a few choices, and one for the order.

    Args:
        judge: the names of the rules that a model breaks, from its entry; a column and a list more.
    """

    def __init__(self, judge: Callable[[Entry], Sequence[str]] | None = None) -> None:
        entries = published()
        self._broken = {entry.name: list(judge(entry)) for entry in entries} if judge else {}
        self._rows = [survey_row(entry) for entry in entries]
        rules = sorted({rule for broken in self._broken.values() for rule in broken})
        choices = {
            "norm": _values(row.norm for row in self._rows),
            "positions": _values("RoPE" if "RoPE" in row.position else row.position for row in self._rows),
            "activation": _values(row.activation for row in self._rows),
            **({"breaks": [ANY, NONE, *rules]} if judge else {}),
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
        """What the lists leave, in the order chosen."""
        kept = [row for row in self._rows if self._keeps(row)]
        return sorted(kept, key=ORDERS[self.controls["order"].value])

    def _keeps(self, row: SurveyRow) -> bool:
        chosen = {name: control.value for name, control in self.controls.items()}
        broken = self._broken.get(row.name, [])
        return (
            chosen["norm"] in (ANY, row.norm)
            and (chosen["positions"] == ANY or chosen["positions"] in row.position)
            and chosen["activation"] in (ANY, row.activation)
            and chosen.get("breaks", ANY) in (ANY, *(broken or [NONE]))
        )

    def _show(self, change: object) -> None:
        self.table.value = self._html()

    def _html(self, most: int | None = None) -> str:
        rows = self.rows()
        first, *others = COLUMNS
        names = [first, *(["breaks"] if self._broken else []), *others]
        head = "".join(f'<th style="{_CELL} position: sticky; top: 0; {_PAPER}">{escape(name)}</th>' for name in names)
        body = "".join(f"<tr>{self._cells(row)}</tr>" for row in rows[:most])
        count = f"{len(rows)} of {len(self._rows)} models" + (f", the first {most} of them" if most else "")
        return (
            f'<div role="status">{count}</div><div style="max-height: 26em; overflow: auto; line-height: 1.5;" '
            f'tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )

    def _cells(self, row: SurveyRow) -> str:
        first, *others = (cell(row) for cell in COLUMNS.values())
        verdict = [", ".join(self._broken[row.name]) or "–"] if self._broken else []
        return "".join(f'<td style="{_CELL}">{escape(text)}</td>' for text in (first, *verdict, *others))

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
