"""The player: every control leads to the step it says, and the picture follows."""

import pytest

from lmcourse import plots
from lmcourse.autograd import Value, graph_of
from lmcourse.chapters.autograd import figures
from lmcourse.chapters.autograd.figures import GraphPlayer
from lmcourse.widgets.live import image_html


def test_it_starts_before_the_forward_pass_and_its_still_shows_the_end() -> None:
    player = GraphPlayer("linear regression")
    assert (player.slider.value, player.slider.max) == (0, 12)
    assert player.picture.value == image_html(figures.graph_step("linear regression", 0))
    still, _ = player._repr_mimebundle_()
    assert still["text/plain"] == plots.alt_text(figures.computation_graph("linear regression"))
    player.slider.value = 3
    assert player._repr_mimebundle_()[0]["text/plain"] == still["text/plain"]


def test_buttons_move_one_step_and_stop_at_both_ends() -> None:
    player = GraphPlayer("fan-out")
    last = len(player.steps) - 1
    assert (player.back.disabled, player.forward.disabled) == (True, False)
    for step in range(1, last + 1):
        player.forward.click()
        assert player.slider.value == step
        assert player.picture.value == image_html(figures.graph_step("fan-out", step))
    assert (player.back.disabled, player.forward.disabled) == (False, True)
    player.move(1)
    assert player.slider.value == last
    player.back.click()
    assert player.slider.value == last - 1
    player.move(-99)
    assert player.slider.value == 0


def test_each_step_is_said_for_screen_readers() -> None:
    player = GraphPlayer("linear regression")
    player.slider.value = 6
    assert 'role="status"' in player.said.value
    assert player.steps[6].text in player.said.value
    player = GraphPlayer(graph_of(Value(1.0, "<a>") + 1))
    player.slider.value = 1
    assert "&lt;a&gt;" in player.said.value


def test_play_goes_through_the_same_steps() -> None:
    player = GraphPlayer("neuron")
    assert (player.play.min, player.play.max) == (player.slider.min, player.slider.max)


def test_an_unknown_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown graph 'lstm'"):
        GraphPlayer("lstm")
