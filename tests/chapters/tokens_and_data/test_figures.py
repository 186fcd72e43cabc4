"""The figures of notebook 07: what they show, read from the artists, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

from lmcourse import plots
from lmcourse.chapters.tokens_and_data import figures
from lmcourse.chapters.tokens_and_data.figures.boxes import course_tokenizer, shown
from lmcourse.chapters.tokens_and_data.figures.timeline import LOOPS, one_ahead
from lmcourse.chapters.tokens_and_data.figures.words import types_after, words_of
from lmcourse.data.recorded_tokens import SENTENCE_CHARACTERS, SENTENCE_TOKENS, VOCABULARY_SIZES
from tests.plots.figures import check_figure

ODD = '  東京 naïve\n\tdef f(x):\r return "😀" + 12345678 $x^2$ ' * 3
TIMES_3 = "\u00d7 3"
DRAWINGS: list[Callable[..., Figure]] = [
    figures.token_colours,
    partial(figures.token_colours, "", 256),
    partial(figures.token_colours, ODD, 2048),
    partial(figures.token_colours, "x" * 500, 256),
    partial(figures.token_colours, "\u6771\ud800" * 500, 256),
    figures.merge_steps,
    partial(figures.merge_steps, step=12),
    partial(figures.merge_steps, "", 3),
    partial(figures.merge_steps, ODD, 5),
    partial(figures.merge_steps, " ".join(f"word{i}" for i in range(99)), 12),
    partial(figures.new_words, "Add 0.01 a thousand times, and add it again."),
    partial(figures.vocabulary_trade, {256: 1.0, 512: 2.1, 1024: 2.9}),
    figures.sentence_price,
    partial(figures.sentence_price, "Burmese"),
    partial(figures.loss_by_position, [2.0, 0.7, 0.5, 0.4], 0.35),
    partial(figures.output_rows, {"came": [0.1, -0.2, 0.5], "never came": [0.9, 0.95]}),
    *(
        partial(figures.prefetch_timeline, copy, step, loop)
        for loop in LOOPS
        for copy, step in ((1.0, 20.0), (20.0, 1.0))
    ),
    figures.prefetch_timeline,
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=range(len(DRAWINGS)))
@pytest.mark.filterwarnings("error")
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


def test_the_boxes_are_the_tokens_of_the_text() -> None:
    text = "the token of notebook 12"
    tokenizer = course_tokenizer(700)
    drawn = [box.get_text() for box in figures.token_colours(text, 700).axes[0].texts]
    assert drawn == [tokenizer.decode([token]).replace(" ", "·") for token in tokenizer.encode(text)]
    assert [shown(raw) for raw in (b" a\n", "é".encode(), b"\xc3", "東".encode(), b"\x00")] == [
        "·a↵",
        "é",
        "C3",
        "E6 9D B1",
        "00",
    ]
    for size in (255, 2049):
        with pytest.raises(ValueError, match="256 to 2048"):
            figures.token_colours(text, size)


def test_the_player_counts_and_merges_as_the_text_says() -> None:
    counts = [bar.get_width() for bar in figures.merge_steps().axes[1].patches]  # type: ignore[attr-defined]
    names = [label.get_text() for label in figures.merge_steps().axes[1].get_yticklabels()]
    assert dict(zip(names, counts, strict=True)) == {
        "e+s": 9,
        "s+t": 9,
        "w+e": 8,
        "l+o": 7,
        "o+w": 7,
        "e+w": 6,
        "n+e": 6,
    }
    assert "After 2 merges" in plots.alt_text(figures.merge_steps(step=2))
    assert [box.get_text() for box in figures.merge_steps(step=2).axes[0].texts][-4:] == ["w", "i", "d", "est", "× 3"][
        1:
    ]
    assert "the end" in plots.alt_text(figures.merge_steps("ab cd", 4))


def test_words_are_counted_once() -> None:
    assert types_after(words_of("A b, a c; B d")) == [1, 2, 2, 3, 3, 4]


def test_prices_are_the_recorded_ones() -> None:
    assert {len(table) for table in SENTENCE_TOKENS.values()} == {10} == {len(SENTENCE_CHARACTERS)}
    assert SENTENCE_TOKENS.keys() == VOCABULARY_SIZES.keys()
    widths = [bar.get_width() for bar in figures.sentence_price().axes[0].patches]  # type: ignore[attr-defined]
    expected = [count / table["English"] for table in SENTENCE_TOKENS.values() for count in table.values()]
    assert widths == pytest.approx(expected)
    with pytest.raises(ValueError, match="no 'Latin'"):
        figures.sentence_price("Latin")


@pytest.mark.parametrize(("copy", "step"), [(2.0, 10.0), (12.0, 10.0), (10.0, 10.0)])
def test_time_is_what_the_longer_one_takes(copy: float, step: float) -> None:
    copies, steps = one_ahead(copy, step, 100)
    assert steps[-1].end == pytest.approx(copy + 99 * max(copy, step) + step)
    assert LOOPS["copy, then train"](copy, step, 100)[1][-1].end == pytest.approx(100 * (copy + step))
    for lane in (copies, steps):
        assert all(a.end <= b.start for a, b in pairwise(lane)), "one at a time"
    assert all(a.end <= b.start for a, b in zip(copies, steps, strict=True)), "copied before it is trained on"


def test_the_notes_loop_never_trains_on_the_last_batch() -> None:
    for batches in (2, 3, 6):
        trained = [work.batch for work in LOOPS["i + 2"](4, 10, batches)[1]]
        assert trained == [*range(batches - 1), batches - 2]
    with pytest.raises(ValueError, match="there is no loop"):
        figures.prefetch_timeline(loop="two ahead")


def test_the_mean_is_drawn_where_it_is() -> None:
    lines = figures.loss_by_position([2.0, 1.0, 0.0], 0.3).axes[0].lines
    assert [float(np.asarray(line.get_ydata())[0]) for line in lines] == [1.0, 0.3]
