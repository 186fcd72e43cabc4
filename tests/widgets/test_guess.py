"""A question for a number links a slider and a field, waits for a guess, and shows it beside the answer."""

from __future__ import annotations

import pytest

from lmcourse.widgets import Guess
from lmcourse.widgets.number_scale import NumberScale

HOSTILE = "<script>alert(1)</script>"


SCALE = NumberScale(answer=160, low=0, high=300, unit="<steps>")


@pytest.fixture
def guess() -> Guess:
    return Guess(f"How long {HOSTILE}?", SCALE, f"Count & *see* {HOSTILE}.")


def test_neither_answer_nor_reason_is_shown_before_the_guess(guess: Guess) -> None:
    shown = guess._repr_mimebundle_()
    assert "160" not in shown["text/html"] + shown["text/plain"] + guess.field.value + guess.slider.tooltip
    assert guess.slider.label != "160"
    assert guess.verdict.value == ""
    assert repr(guess).endswith("[ a number from 0 to 300 <steps> ]")


def test_slider_and_field_show_the_same_number(guess: Guess) -> None:
    guess.slider.value = 120
    assert guess.field.value == "120"
    guess.field.value = "87,4"
    assert guess.slider.value == 88
    assert guess.field.value == "87,4", "the slider's nearest stop does not replace what was typed"
    guess.field.value = "ten"
    assert guess.slider.value == 88


def test_the_verdict_shows_the_guess_beside_the_answer(guess: Guess) -> None:
    guess.field.value = "120"
    guess.button.click()
    assert "You guessed 120 &lt;steps&gt;, about 25 % too small. The answer: 160 &lt;steps&gt;." in guess.verdict.value
    assert "Count &amp; <em>see</em>" in guess.verdict.value
    assert 'role="status"' in guess.verdict.value
    assert guess.slider.disabled
    assert not guess.button.disabled, "it would lose the keyboard focus"
    assert HOSTILE not in guess._box.children[0].value + guess.verdict.value + guess._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize("typed", ["", "ten", "301"])
def test_a_guess_that_cannot_be_read_gets_one_line_and_another_try(guess: Guess, typed: str) -> None:
    guess.field.value = typed
    guess.button.click()
    assert "Move the slider, or type a number from 0 to 300 &lt;steps&gt;, in digits." in guess.verdict.value
    assert "160" not in guess.verdict.value
    guess.slider.value = 160
    guess.button.click()
    assert "exactly right" in guess.verdict.value


def test_a_number_that_arrives_after_the_press_counts(guess: Guess) -> None:
    """While the kernel is busy, JupyterLab holds a changed value back, but not the press of a button."""
    guess.slider.value = 10
    guess.button.click()
    guess.slider.value = 158
    assert "You guessed 158 &lt;steps&gt;, within 10 %." in guess.verdict.value


def test_an_earlier_guess_is_shown_and_can_be_made_again() -> None:
    kept: list[str] = []
    guess = Guess("How long?", SCALE, "Count.", earlier="87,4", keep=kept.append)
    assert "You guessed 87.4" in guess.verdict.value
    assert (guess.field.value, guess.slider.value, guess.slider.disabled) == ("87,4", 88, True)
    guess.again.click()
    assert (guess.verdict.value, guess.slider.disabled, guess.field.disabled) == ("", False, False)
    assert guess.again.layout.display == "none"
    guess.field.value = "160"
    guess.button.click()
    assert "exactly right" in guess.verdict.value
    assert kept == ["160"]


@pytest.mark.parametrize("earlier", ["", "301", "many"])
def test_an_earlier_guess_off_the_scale_is_ignored(earlier: str) -> None:
    guess = Guess("How long?", SCALE, "Count.", earlier=earlier)
    assert (guess.verdict.value, guess.field.value, guess.again.layout.display) == ("", "", "none")
