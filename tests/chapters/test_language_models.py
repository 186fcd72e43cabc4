"""Notebook 05: references against independent sources, and what its figures show."""

from __future__ import annotations

import inspect
import math
from itertools import pairwise, product
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lmcourse import plots
from lmcourse.chapters.language_models import exercises, figures
from lmcourse.chapters.language_models.exercises.faults import MODELS
from lmcourse.chapters.language_models.figures.prices import TRUTH
from lmcourse.chapters.language_models.figures.stories import losses_by_order
from lmcourse.chapters.language_models.kinds import counted_table, kinds_source, new_text_price, train_table, write
from lmcourse.chapters.language_models.stories import bill, stories
from lmcourse.chapters.language_models.story_contexts import (
    KNOWN,
    LENGTHS,
    START,
    STATE,
    cost_of_new_stories,
    inspect_contexts,
    last_letters,
    measure_contexts,
    overpaid,
)
from lmcourse.chapters.language_models.word_vectors import judge_vectors
from lmcourse.data.grammar import story_grammar
from lmcourse.exercises.open_task import Unfit
from lmcourse.models.loss import next_token_loss
from lmcourse.models.ngram import NGram
from tests.course.chapters import ROOT


def test_texts_of_one_length_share_a_probability_of_one() -> None:
    length = 3
    shares = {past: _drawn(Random(str(past)), 3) for size in range(length) for past in product(range(3), repeat=size)}
    every = [
        exercises.text_log_probability.reference(shares.__getitem__, list(text))
        for text in product(range(3), repeat=length)
    ]
    assert math.fsum(map(math.exp, every)) == pytest.approx(1.0, abs=1e-12)


def _drawn(random: Random, words: int) -> list[float]:
    parts = [random.random() for _ in range(words)]
    return [part / sum(parts) for part in parts]


def test_cross_entropy_matches_torchs_and_exceeds_the_entropy() -> None:
    for seed in range(5):
        p, q = _drawn(Random(seed), 5), _drawn(Random(seed + 100), 5)
        expected = torch.nn.functional.cross_entropy(
            torch.tensor([q], dtype=torch.float64).log(), torch.tensor([p], dtype=torch.float64)
        ).item()
        assert exercises.cross_entropy.reference(p, q) == pytest.approx(expected, rel=1e-12)
        assert exercises.cross_entropy.reference(p, q, 2) > exercises.cross_entropy.reference(p, p, 2)


def test_the_loss_matches_the_package() -> None:
    logits, tokens = torch.randn(3, 6, 9), torch.randint(9, (3, 6))
    theirs = next_token_loss(logits[:, :-1], tokens[:, 1:])
    torch.testing.assert_close(exercises.next_token_loss.reference(logits, tokens), theirs)


def test_counts_match_the_package() -> None:
    random = Random(0)
    text = [random.randrange(4) for _ in range(300)]
    for order in (1, 2, 3):
        model = NGram(order, 4).count(text)
        for context in product(range(4), repeat=order - 1):
            found = exercises.ngram.reference(text, list(context), 4)
            assert found == pytest.approx(model.probabilities(context).tolist(), abs=1e-12)


def test_the_entropy_rate_is_the_cost_of_one_more_byte() -> None:
    """Enumerate H(n + 1) − H(n) for all texts of a length, with word frequencies from high powers of P."""
    P = torch.tensor([[0.2, 0.3, 0.5], [0.6, 0.0, 0.4], [0.1, 0.8, 0.1]], dtype=torch.float64)
    shares = torch.linalg.matrix_power(P, 200)[0]
    costs = [_entropy_of_texts(P, shares, length) for length in (3, 4)]
    assert exercises.entropy_rate.reference(P) == pytest.approx(costs[1] - costs[0], rel=1e-9)


def _entropy_of_texts(P: Tensor, shares: Tensor, length: int) -> float:
    total = 0.0
    for text in product(range(3), repeat=length):
        p = shares[text[0]].item() * math.prod(P[a, b].item() for a, b in pairwise(text))
        total -= p * math.log(p) if p else 0.0
    return total


def test_bits_match_the_bytes_that_python_counts() -> None:
    for text in ("x", "a é 語 🙂 \n"):
        bits = 1 / math.log(2) / len(text.encode())
        assert exercises.bits_per_byte.reference(1.0, 1, text) == pytest.approx(bits, rel=1e-12)


def test_new_text_costs_the_entropy_rate_and_no_table_less() -> None:
    P = kinds_source(12, 3, seed=0)
    torch.testing.assert_close(P.sum(dim=1), torch.ones(12, dtype=torch.float64))
    entropy = new_text_price(P.log(), P)
    assert entropy == pytest.approx(exercises.entropy_rate.reference(P), rel=1e-9)
    text = write(P, 20_000, seed=0)
    first, second = text[:-1], text[1:]
    assert -P.log()[first, second].mean().item() == pytest.approx(entropy, abs=0.02)
    assert entropy < new_text_price(counted_table(text, 12), P) < entropy + 0.01


def test_trained_tables_beat_the_entropy_only_on_their_training_text() -> None:
    P = kinds_source(80, 6, seed=3)
    curves = train_table(P, write(P, 2_401, seed=3), rank=4)
    entropy = new_text_price(P.log(), P)
    assert curves.train[-1] < entropy - 0.1
    assert min(curves.new) > entropy
    assert curves.new[curves.stopped] < curves.new[-1] - 0.2


def test_faulty_models_match_the_notebook() -> None:
    notebook = (ROOT / "solutions/05-language-models/language_models.py").read_text()
    for model in MODELS.values():
        signature, body = inspect.getsource(model).replace("Odds", "dict[str, float]").split("\n", 1)
        assert signature in notebook
        assert body in notebook


@pytest.mark.parametrize("reuse", [True, False])
def test_tokens_are_read_as_in_a_simulation(reuse: bool) -> None:
    for prompt, new in ((1, 0), (1, 5), (4, 3)):
        computed: set[int] = set()
        count = 0
        for step in range(new):
            needed = set(range(prompt + step)) - (computed if reuse else set())
            computed |= needed
            count += len(needed)
        assert exercises.tokens_read.reference(prompt, new, reuse) == count


def test_the_price_is_the_entropy_plus_a_difference() -> None:
    unit, base = "bits", 2.0
    bill = figures.cross_entropy_bars(0.2, 0.5, unit).axes[1]
    entropy, difference = (bar.get_width() for bar in bill.patches)  # type: ignore[attr-defined]
    assert entropy == pytest.approx(-sum(p * math.log(p, base) for p in TRUTH))
    q = (0.2, 0.5, 0.3)
    assert difference == pytest.approx(sum(p * math.log(p / model, base) for p, model in zip(TRUTH, q, strict=True)))
    assert "0.000 difference" in plots.alt_text(figures.cross_entropy_bars(*TRUTH[:2], unit))
    dearest = figures.cross_entropy_bars(0.01, 0.01, unit).axes[1]
    assert sum(bar.get_width() for bar in dearest.patches) < dearest.get_xlim()[1]  # type: ignore[attr-defined]


def test_no_ngram_is_below_the_entropy_on_new_text() -> None:
    floor = story_grammar().entropy_per_byte
    for count in (5,):
        seen, new, impossible = losses_by_order(count)
        assert (seen.diff() < 0).all()
        assert seen[9] < floor < new.min()
        assert (impossible.diff() >= 0).all()
    line = figures.ngram_loss(3, 5).axes[0].lines[2]
    np.testing.assert_allclose(np.asarray(line.get_ydata()), losses_by_order(5)[1].numpy())


start = last_letters(*LENGTHS)


def test_stored_costs_of_the_start_are_measured() -> None:
    assert cost_of_new_stories(start, 0) == pytest.approx(START[0], abs=1e-5)


def test_the_open_task_prices_as_the_ngram_model() -> None:
    model = NGram(8, 128, witten_bell=True)
    for text in stories(50, 0):
        model.count(text.encode())
    losses = [loss for text in stories(50, 1000) for loss in model.losses(text.encode()).tolist()]
    found = cost_of_new_stories(last_letters(*range(8)), 0)
    assert found == pytest.approx(math.fsum(losses) / len(losses), abs=1e-9)


HERO = "the hero comes back"


def test_a_bill_adds_up_to_the_loss_above_the_language() -> None:
    text = "".join(stories(3, 5))
    items = bill(text, [0.5] * len(text)).values()
    above = 0.5 + story_grammar().log_probability(text) / len(text)
    assert sum(item.per_byte for item in items) == pytest.approx(above)
    assert sum(item.each * item.pieces for item in items) / len(text) == pytest.approx(above)
    assert overpaid(start, [text], [text]).keys() <= {
        "a noun",
        "a verb",
        "a sum or bracket",
        "the full stop",
        "the rest",
        HERO,
    }


def test_contexts_that_know_the_new_stories_are_refused() -> None:
    new = stories(50, 1000)

    def looked_up(past: str) -> list[Any]:
        following = {text[len(past)] for text in new if text.startswith(past) and len(text) > len(past)}
        return [*start(past), ("next", *sorted(following))]

    inspect_contexts(looked_up)
    with pytest.raises(Unfit) as refused:
        measure_contexts(looked_up, [0])
    assert str(refused.value) == KNOWN


def test_contexts_that_change_after_the_inspection_are_refused() -> None:
    calls = 0

    def changing(past: str) -> list[Any]:
        nonlocal calls
        calls += 1
        return [*start(past), ("call", calls if calls > 20_000 else 0)]

    inspect_contexts(changing)
    with pytest.raises(Unfit) as refused:
        measure_contexts(changing, [0])
    assert str(refused.value) == STATE


def test_word_vectors_know_topics_but_no_plurals() -> None:
    judged = judge_vectors("".join(stories(200, 0)), window=2)
    assert judged.topic > 0.9
    assert judged.plurals < 0.2
