"""Every slider of the playground moves the vector that it says, and the picture follows."""

from __future__ import annotations

import pytest

from lmcourse import plots
from lmcourse.chapters.attention import figures
from lmcourse.chapters.attention.figures import AttentionPlayground
from lmcourse.chapters.attention.figures.look import PRESETS, SENTENCE
from lmcourse.widgets.live import image_html


@pytest.mark.parametrize("role", ["queries", "keys", "values"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_slider_moves_one_number_of_the_chosen_token(role: str, number: int) -> None:
    playground = AttentionPlayground(token="Tom")
    before = playground.hand
    playground.sliders[role][number].value = -1.3
    for other in ("queries", "keys", "values"):
        for token, (old, new) in enumerate(zip(getattr(before, other), getattr(playground.hand, other), strict=True)):
            expected = list(old)
            if (other, token) == (role, 2):
                expected[number] = -1.3
            assert list(new) == expected
    assert playground.picture.value == image_html(figures.attention_playground(playground.hand, 2))


def test_choosing_a_token_shows_its_numbers_and_changes_none() -> None:
    playground = AttentionPlayground()
    playground.token.value = "thanked"
    assert playground.query_index == 1
    assert playground.hand == PRESETS["he finds Tom"]
    assert [slider.value for slider in playground.sliders["keys"]] == list(playground.hand.keys[1])
    assert playground.picture.value == image_html(figures.attention_playground(playground.hand, 1))


@pytest.mark.parametrize("preset", PRESETS)
def test_a_starting_point_sets_everything_again(preset: str) -> None:
    playground = AttentionPlayground(preset="nobody asks" if preset != "nobody asks" else "he finds Tom")
    playground.sliders["values"][0].value = 3.9
    playground.presets.value = preset
    assert playground.hand == PRESETS[preset]
    assert [slider.value for slider in playground.sliders["queries"]] == pytest.approx(PRESETS[preset].queries[4])


def test_all_numbers_fit_the_sliders() -> None:
    for hand in PRESETS.values():
        for role in ("queries", "keys", "values"):
            assert len(getattr(hand, role)) == len(SENTENCE)
            assert all(abs(number) <= 4 for point in getattr(hand, role) for number in point)


def test_the_still_figure_is_the_first_state() -> None:
    data, _ = AttentionPlayground()._repr_mimebundle_()
    assert data["text/plain"] == plots.alt_text(figures.attention_playground())


@pytest.mark.parametrize("name", ["divide", "hide_future"])
def test_a_switch_changes_the_weights_and_nothing_else(name: str) -> None:
    playground = AttentionPlayground(token="thanked", divide=True, hide_future=False)
    hand, switch = playground.hand, playground.switches[name]
    switch.value = not switch.value
    assert playground.hand == hand
    expected = figures.attention_playground(hand, 1, **{name: switch.value})
    assert playground.picture.value == image_html(expected)
    assert plots.alt_text(expected) != plots.alt_text(figures.attention_playground(hand, 1))


def test_there_is_a_switch_only_where_one_is_asked_for() -> None:
    assert not AttentionPlayground().switches
    assert [*AttentionPlayground(hide_future=True).switches] == ["hide_future"]
