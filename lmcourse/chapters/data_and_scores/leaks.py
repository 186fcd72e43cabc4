"""Training texts with test paragraphs in them, or with few paragraphs that come again, and the losses they lead to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from lmcourse.chapters.data_and_scores.letters import held_out_loss, loss_on, trained_on
from lmcourse.chapters.data_and_scores.pool import CLEAN, HELD_OUT, paragraphs, place
from lmcourse.chapters.data_and_scores.task import BUDGET
from lmcourse.data.grammar.stories import TOPICS


def within(documents: Sequence[str], budget: int = BUDGET) -> list[str]:
    """Return the documents up to the first that does not fit into the budget; they begin again at the end."""
    found: list[str] = []
    for document in cycle(documents):
        budget -= len(document)
        if budget < 0:
            return found
        found.append(document)
    return found


def leaked_losses(name: str, seed: int) -> tuple[float, float, float]:
    """Return the losses on all test paragraphs, on the first 60, and on the others: of model B, which read the 60
    three times, or of model A, which did not."""
    test = paragraphs(HELD_OUT, 260)
    leaked = test[:60] * 3 if name == "B" else ()
    model = trained_on(within([*leaked, *paragraphs(CLEAN, 2000)]), seed)
    return loss_on(model, test), loss_on(model, test[:60]), loss_on(model, test[60:])


def repeated_losses(count: int, seeds: Sequence[int] = (0, 1, 2)) -> list[float]:
    """Return the losses after 60,000 letters made of `count` clean paragraphs of each place, again and again."""
    clean = paragraphs(CLEAN, 2000)
    by_place = [[text for text in clean if place(text) == name] for name in TOPICS]
    text = within([each for turn in zip(*by_place, strict=False) for each in turn][: len(TOPICS) * count])
    return [held_out_loss(trained_on(text, seed)) for seed in seeds]
