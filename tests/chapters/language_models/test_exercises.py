"""The references of notebook 05 against torch, against enumeration and simulation, and against the specification."""

from __future__ import annotations

import math
from itertools import pairwise, product
from random import Random

import pytest
import torch
from torch import Tensor

from lmcourse.chapters.language_models import exercises
from lmcourse.models.loss import next_token_loss
from lmcourse.models.ngram import NGram


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_softmax_is_a_distribution_and_what_is_left_of_one_is_not(dtype: torch.dtype) -> None:
    for seed in range(20):
        scores = 3 * torch.randn(500, generator=torch.Generator().manual_seed(seed))
        p = scores.softmax(0).to(dtype)
        assert exercises.is_distribution.reference(p)
        assert not exercises.is_distribution.reference(p.sort().values[:-1])


@pytest.mark.parametrize("length", [0, 1, 4])
def test_texts_of_one_length_share_a_probability_of_one(length: int) -> None:
    shares = {past: _drawn(Random(str(past)), 3) for size in range(length) for past in product(range(3), repeat=size)}
    every = [
        exercises.text_log_probability.reference(shares.__getitem__, list(text))
        for text in product(range(3), repeat=length)
    ]
    assert math.fsum(map(math.exp, every)) == pytest.approx(1.0, abs=1e-12)


def _drawn(random: Random, words: int) -> list[float]:
    parts = [random.random() for _ in range(words)]
    return [part / sum(parts) for part in parts]


def test_cross_entropy_is_torchs_and_no_less_than_the_entropy() -> None:
    for seed in range(50):
        p, q = _drawn(Random(seed), 5), _drawn(Random(seed + 100), 5)
        expected = torch.nn.functional.cross_entropy(
            torch.tensor([q], dtype=torch.float64).log(), torch.tensor([p], dtype=torch.float64)
        ).item()
        assert exercises.cross_entropy.reference(p, q) == pytest.approx(expected, rel=1e-12)
        assert exercises.cross_entropy.reference(p, q, 2) > exercises.cross_entropy.reference(p, p, 2)


def test_the_examples_of_the_notes_in_both_units() -> None:
    sure = [1.0, 0.0, 0.0, 0.0]
    found = [
        exercises.cross_entropy.reference(sure, q, base)
        for q in ([0.25] * 4, [0.91, 0.03, 0.03, 0.03])
        for base in (2, math.e)
    ]
    assert [round(price, 4) for price in found] == [2.0, 1.3863, 0.1361, 0.0943]


def test_the_loss_is_that_of_the_package() -> None:
    logits, tokens = torch.randn(3, 6, 9), torch.randint(9, (3, 6))
    theirs = next_token_loss(logits[:, :-1], tokens[:, 1:])
    torch.testing.assert_close(exercises.next_token_loss.reference(logits, tokens), theirs)
    assert exercises.first_loss.reference() == pytest.approx(11.7618, abs=1e-4)


def test_counts_are_those_of_the_package() -> None:
    random = Random(0)
    text = [random.randrange(4) for _ in range(300)]
    for order in (1, 2, 3):
        model = NGram(order, 4).count(text)
        for context in product(range(4), repeat=order - 1):
            found = exercises.ngram.reference(text, list(context), 4)
            assert found == pytest.approx(model.probabilities(context).tolist(), abs=1e-12)


SOURCES = {
    (0.6931,): [[0.5, 0.5], [0.5, 0.5]],
    (0.38643,): [[0.9, 0.1], [0.5, 0.5]],
    (0.0,): [[0.0, 1.0], [1.0, 0.0]],
}


@pytest.mark.parametrize(("rate", "rows"), [(rate, rows) for (rate,), rows in SOURCES.items()])
def test_entropy_rates_of_the_specification(rate: float, rows: list[list[float]]) -> None:
    assert exercises.entropy_rate.reference(torch.tensor(rows, dtype=torch.float64)) == pytest.approx(rate, abs=5e-5)


def test_the_entropy_rate_is_what_longer_texts_cost_more() -> None:
    """H(n + 1) − H(n) of all texts of a length, by enumeration, from the shares that the powers of P settle at."""
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


@pytest.mark.parametrize(
    ("loss", "tokens", "text", "bits"),
    [(math.log(2), 4, "abcd", 1.0), (3.2, 250, "word" * 250, 1.15416), (2.0, 3, "café", 1.73123)],
)
def test_bits_per_byte_of_the_specification(loss: float, tokens: int, text: str, bits: float) -> None:
    assert exercises.bits_per_byte.reference(loss, tokens, text) == pytest.approx(bits, abs=1e-5)


def test_bytes_are_counted_as_python_counts_them() -> None:
    for text in ("x", "é", "語", "🙂", "a é 語 🙂 \n"):
        assert exercises.bits_per_byte.reference(1.0, 1, text) == pytest.approx(
            1 / math.log(2) / len(text.encode()), rel=1e-12
        )


def test_analogies_against_torch() -> None:
    for seed in range(20):
        E = torch.randn(15, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        cosines = torch.cosine_similarity(E, E[2] - E[1] + E[3])
        cosines[[1, 2, 3]] = -2
        assert exercises.analogy.reference(E, 1, 2, 3) == cosines.argmax().item()


@pytest.mark.parametrize("reuse", [True, False])
def test_tokens_are_read_as_in_a_simulation(reuse: bool) -> None:
    for prompt, new in product(range(1, 5), range(6)):
        computed: set[int] = set()
        count = 0
        for step in range(new):
            needed = set(range(prompt + step)) - (computed if reuse else set())
            computed |= needed
            count += len(needed)
        assert exercises.tokens_read.reference(prompt, new, reuse) == count
