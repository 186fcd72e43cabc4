"""What hostile HTML costs whoever draws a page, counted in calls and characters: no clock is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from lmcourse.grading.cells import new_markdown_cell, new_notebook
from lmcourse.grading.pages import display
from lmcourse.grading.pages.display import CleanForDisplay
from lmcourse.grading.pages.html import clean_html

LENGTH = 5_000
TABLE = "<table><tr><td>1</td><td><b>x</b> <i>y</i></td></tr></table>\n"


def repeated(piece: str) -> str:
    return (piece * (LENGTH // len(piece.format(999)) + 1)).format(*range(LENGTH))[:LENGTH]


HOSTILE = {
    "open": repeated("<b title={}><p>x"),
    "items": repeated("<li><b title={}></li>"),
    "tables": repeated("<table><b title={}>"),
    "cells": "<table><tr>" + repeated("<b title={}><td></b></td>"),
    "behind a table": repeated("<b title={}><table></b></table>")[: LENGTH // 2] + "<p>x" * (LENGTH // 8),
    "behind a comment": repeated("<b title={}><!--</b>-->")[: LENGTH // 2] + "<p>x" * (LENGTH // 8),
    "behind an attribute": repeated("<b title={}><i title='</b>'></i>")[: LENGTH // 2] + "<p>x" * (LENGTH // 8),
    "behind no comment": repeated("<b title={}></ </b>")[: LENGTH // 2] + "<p>x" * (LENGTH // 8),
    "behind what is taken out": repeated("<b title={}><textarea></b></textarea>"),
    "at the limit": "".join(f"<b title={n}>" for n in range(8)) + "<p>x" * (LENGTH // 4),
    "deep": "<div>" * (LENGTH // 5),
    "deep at the limit": "<div>" * 49 + "<p>x" * (LENGTH // 4),
    "crossed": repeated("<b><i></b></i>"),
    "paragraphs": repeated("<b title={}><p></b>"),
}


def calls(act: Callable[[], object]) -> int:
    """How many calls and returns of functions something takes."""
    number = 0

    def count(*_: object) -> None:
        nonlocal number
        number += 1

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return number


def per_character(html: str) -> float:
    return calls(lambda: clean_html(html)) / len(html)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_html_costs_much_more_than_a_table(name: str) -> None:
    honest = per_character(TABLE * 100)
    assert honest > 10  # it is counted
    assert per_character(HOSTILE[name]) < 4 * honest
    assert len(clean_html(HOSTILE[name])) < 5 * len(HOSTILE[name])


def test_html_as_people_write_it_is_drawn() -> None:
    table = f"<div><details><summary>x</summary>{TABLE}</details></div>"
    assert clean_html(table).count("<td>") == 2
    sloppy = "<ul><li>a<li>b <b><i>c</b></i></ul><p>d<p>e"
    assert clean_html(sloppy).count("<li>") == 2
    assert clean_html("<b>" * 8 + "x") == "<b>" * 8 + "x" + "</b>" * 8
    assert clean_html("<b>" * 9 + "x") == f"<pre>{'&lt;b&gt;' * 9}x</pre>"


def test_a_page_has_room_for_so_much_markdown() -> None:
    cells = [new_markdown_cell("# x" + " x" * 2_498) for _ in range(display.MAX_MARKDOWN_CHARS // 5_000 + 10)]
    page, _ = CleanForDisplay().preprocess(new_notebook(cells=cells), {})
    drawn = [cell for cell in page.cells if cell.source.startswith("#")]
    assert 0 <= display.MAX_MARKDOWN_CHARS - sum(len(cell.source) for cell in drawn) < 5_000
    assert {cell.source[:5] for cell in page.cells if cell not in drawn} == {"    #"}
