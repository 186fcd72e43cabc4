"""Test all functions for safe text at their limits and with control characters."""

from __future__ import annotations

import json

import pytest

from lmcourse.base.text import (
    code_html,
    collapse_whitespace,
    escape_unprintable,
    one_line,
    prose_html,
    question_html,
    replace_surrogates,
    replace_unprintable,
    shorten,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("plain", "plain"), (json.loads(r'"a\ud83dz"'), "a?z"), ("😀", "😀"), ("", "")],
)
def test_halves_of_surrogate_pairs_are_replaced(text: str, expected: str) -> None:
    assert replace_surrogates(text) == expected
    replace_surrogates(text).encode()


def test_unprintable_characters_become_spaces() -> None:
    assert replace_unprintable("a\x1b[31mb\n\u202e") == "a [31mb  "
    assert replace_unprintable("a\n\tb\r", keep="\n\t") == "a\n\tb "


def test_unprintable_characters_are_escaped() -> None:
    assert escape_unprintable("a\u202eb\n", 80) == r"a\u202eb\u000a"
    assert escape_unprintable("\x00" * 5, 10) == r"\u0000\u0" + "…"
    assert escape_unprintable("Zoë", 80) == "Zoë"


def test_whitespace_is_collapsed_and_direction_marks_are_kept() -> None:
    assert collapse_whitespace(" a\r\n\x00 b\u2028c\x85 ") == "a b c"
    assert collapse_whitespace("a\u200db") == "a\u200db"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("short", "short"),
        ("two\nlines", "two ⏎ lin…"),
        ("a\nb", "a ⏎ b"),
        ("\x1b[2Jx", " [2Jx"),
        ("x" * 10, "x" * 10),
        ("x" * 11, "x" * 9 + "…"),
        ("\n" * 30, " ⏎  ⏎  ⏎ "[:9] + "…"),
    ],
)
def test_one_line_shows_line_breaks_as_arrows(text: str, expected: str) -> None:
    assert one_line(text, 10) == expected
    assert len(one_line(text, 10)) <= 10


def test_shorten_counts_the_ellipsis_as_a_character() -> None:
    assert shorten("abcd", 4) == "abcd"
    assert shorten("abcde", 4) == "abc…"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the *sum* of *all* <b>", "the <em>sum</em> of <em>all</em> &lt;b&gt;"),
        ("(*two words*), *p*.", "(<em>two words</em>), <em>p</em>."),
        ("`*args` and `a *b* c`", "<code>*args</code> and <code>a *b* c</code>"),
        ("2 * 3 * 4, a*b*c, **kwargs, *x, *y", "2 * 3 * 4, a*b*c, **kwargs, *x, *y"),
        ("* one\n* two", "* one\n* two"),
    ],
)
def test_backticks_and_asterisks_become_html(text: str, expected: str) -> None:
    assert prose_html(text) == expected


def test_an_index_of_one_letter_is_set_below_it() -> None:
    shown = "z&#x27;<sub>dj</sub> = φ(Σ<sub>i</sub> W<sub>ij</sub>), <code>w_q</code>, d_model"
    assert question_html("z'_dj = φ(Σ_i W_ij), `w_q`, d_model") == shown


def test_code_html_keeps_asterisks() -> None:
    assert code_html("`a` *b* <i>", "color: red") == '<code style="color: red">a</code> *b* &lt;i&gt;'
