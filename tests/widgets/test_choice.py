"""A question waits for an answer, shows the explanation, and has a text form without buttons."""

from __future__ import annotations

import pytest

from lmcourse.widgets import Choice

HOSTILE = "<script>alert(1)</script>"


def question(answer: str = "4") -> Choice:
    return Choice(f"2 + 2 {HOSTILE}?", ["3", "4", "5"], answer, f"Count & see {HOSTILE}.")


def press(choice: Choice, option: str) -> None:
    next(button for button in choice.buttons if button.description == option).click()


def test_the_answer_is_hidden_before_the_reader_chooses() -> None:
    choice = question()
    assert choice.verdict.value == ""
    assert {button.button_style for button in choice.buttons} == {""}
    assert not any(button.disabled for button in choice.buttons)
    shown = choice._repr_mimebundle_()
    assert "Count" not in shown["text/html"] + shown["text/plain"]


@pytest.mark.parametrize(
    ("pressed", "word", "marks"),
    [("4", "Yes.", ["", "check", ""]), ("3", "You chose “3”. The answer: 4.", ["times", "check", ""])],
)
def test_the_verdict_comes_with_the_reason(pressed: str, word: str, marks: list[str]) -> None:
    choice = question()
    press(choice, pressed)
    assert word in choice.verdict.value
    assert "Count &amp; see" in choice.verdict.value
    assert 'role="status"' in choice.verdict.value
    assert [button.icon for button in choice.buttons] == marks


def test_a_choice_cannot_be_changed() -> None:
    choice = question()
    press(choice, "3")
    press(choice, "4")
    assert "You chose “3”." in choice.verdict.value
    assert [button.icon for button in choice.buttons] == ["times", "check", ""]


def test_an_earlier_choice_is_shown_and_can_be_made_again() -> None:
    kept: list[str] = []
    choice = Choice("2 + 2?", ["3", "4", "5"], "4", "Count.", earlier="3", keep=kept.append)
    assert "You chose “3”." in choice.verdict.value
    assert [button.icon for button in choice.buttons] == ["times", "check", ""]
    choice.again.click()
    assert choice.verdict.value == ""
    assert {button.icon for button in choice.buttons} == {""}
    assert choice.again.layout.display == "none"
    press(choice, "4")
    assert "Yes." in choice.verdict.value
    assert kept == ["4"]


@pytest.mark.parametrize("earlier", ["", "6"])
def test_an_earlier_choice_that_is_no_option_is_ignored(earlier: str) -> None:
    choice = Choice("2 + 2?", ["3", "4", "5"], "4", "Count.", earlier=earlier)
    assert (choice.verdict.value, choice.again.layout.display) == ("", "none")


def test_options_are_escaped_in_html() -> None:
    choice = question()
    press(choice, "3")
    asked = choice._box.children[0].value
    assert HOSTILE not in asked + choice.verdict.value + choice._repr_mimebundle_()["text/html"]
    assert "&lt;script&gt;" in asked


def test_the_text_names_the_options() -> None:
    assert repr(question()).endswith("[ 3 | 4 | 5 ]")
    assert question()._repr_mimebundle_()["text/html"].count("<li>") == 3


def test_an_answer_that_is_not_an_option_is_rejected() -> None:
    with pytest.raises(ValueError, match="'6' is not among the options"):
        question("6")


def test_emphasis_and_code_are_rendered_except_on_buttons() -> None:
    choice = Choice("Is *all* of `x` read?", ["yes", "no"], "no", "Only *some* of it.")
    press(choice, "yes")
    assert "Is <em>all</em> of <code>x</code> read?" in choice._box.children[0].value
    assert "Only <em>some</em> of it." in choice.verdict.value
