"""Probabilities sum to one for any counts, and counts match a short text by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcourse.models.ngram import NGram

TEXT = [0, 1, 0, 2, 0, 1, 1]
"""a b a c a b b"""


def test_counts_by_hand() -> None:
    unigram, bigram = NGram(1, 3).count(TEXT), NGram(2, 3).count(TEXT)
    assert unigram.probabilities([]).tolist() == pytest.approx([3 / 7, 3 / 7, 1 / 7])
    assert bigram.probabilities([0]).tolist() == pytest.approx([0, 2 / 3, 1 / 3])
    assert bigram.probabilities([2, 1]).tolist() == pytest.approx([1 / 2, 1 / 2, 0])
    assert NGram(3, 3).count(TEXT).probabilities([0, 1]).tolist() == pytest.approx([1 / 2, 1 / 2, 0])


def test_add_one_by_hand() -> None:
    assert NGram(2, 3, add=1).count(TEXT).probabilities([0]).tolist() == pytest.approx([1 / 6, 3 / 6, 2 / 6])
    assert NGram(2, 3, add=1).probabilities([0]).tolist() == pytest.approx([1 / 3] * 3)


def test_an_unseen_context_uses_the_shorter_context() -> None:
    model = NGram(3, 3).count(TEXT)
    assert torch.equal(model.probabilities([2, 1]), NGram(2, 3).count(TEXT).probabilities([1]))
    assert model.probabilities([0, 1, 2]).tolist() == NGram(2, 3).count(TEXT).probabilities([2]).tolist()
    assert NGram(3, 4).probabilities([3, 3]).tolist() == [0.25] * 4


texts = st.lists(st.integers(0, 4), max_size=30)


@given(
    counted=st.lists(texts, max_size=3),
    context=texts,
    order=st.integers(1, 4),
    add=st.sampled_from([0.0, 0.1, 1.0]),
    mixed=st.booleans(),
)
@settings(deadline=None)
def test_probabilities_sum_to_one(
    counted: list[list[int]], context: list[int], order: int, add: float, mixed: bool
) -> None:
    model = NGram(order, 5, add=add, weights=[1 / order] * order if mixed else None)
    for text in counted:
        model.count(text)
    p = model.probabilities(context)
    assert p.sum().item() == pytest.approx(1.0)
    assert (p >= 0).all()
    assert torch.equal(p, model.probabilities(context[-(order - 1) :] if order > 1 else []))


def test_no_ngram_crosses_two_texts() -> None:
    apart = NGram(2, 3).count([0, 1]).count([2, 0])
    assert apart.probabilities([1]).tolist() == NGram(1, 3).count([0, 1, 2, 0]).probabilities([]).tolist()


def test_perplexity_is_exp_of_the_mean_loss() -> None:
    assert NGram(1, 8).perplexity([1, 2, 3]) == pytest.approx(8)
    assert NGram(2, 3).count(TEXT).perplexity([0, 0]) == math.inf
    model = NGram(2, 3).count(TEXT)
    assert model.perplexity([0, 1]) == pytest.approx((3 / 7 * 2 / 3) ** -0.5)
    with pytest.raises(ValueError, match="empty"):
        model.perplexity([])


def test_witten_and_bell_by_hand() -> None:
    """After a came b, c, b: three tokens, two of them different. The text has seven tokens, three of them different."""
    model = NGram(2, 4, witten_bell=True).count(TEXT)
    single = [(count + 3 / 4) / 10 for count in (3, 3, 1, 0)]
    expected = [(count + 2 * p) / 5 for count, p in zip((0, 2, 1, 0), single, strict=True)]
    assert model.probabilities([0]).tolist() == pytest.approx(expected)
    assert model.probabilities([3]).tolist() == pytest.approx(single)
    assert sum(expected) == pytest.approx(1.0)


@pytest.mark.parametrize("witten_bell", [False, True])
def test_losses_of_every_order_match_smaller_models(witten_bell: bool) -> None:
    text, other = [int(x) for x in torch.randint(3, (80,))], [int(x) for x in torch.randint(3, (30,))]
    every = NGram(4, 3, witten_bell=witten_bell).count(text).losses_by_order(other)
    for order in (1, 2, 3, 4):
        model = NGram(order, 3, witten_bell=witten_bell).count(text)
        torch.testing.assert_close(every[order - 1], model.losses(other))
        each = [-model.probabilities(other[:end])[token].log() for end, token in enumerate(other)]
        torch.testing.assert_close(model.losses(other), torch.stack(each))
    assert every.isinf().any() != witten_bell
    assert NGram(2, 3).losses([]).shape == (0,)


def test_generation_follows_the_counts() -> None:
    model, generator = NGram(2, 3).count(TEXT), torch.Generator().manual_seed(0)
    drawn = [model.generate([0], 1, generator)[0] for _ in range(600)]
    assert drawn.count(0) == 0
    assert drawn.count(1) / 600 == pytest.approx(2 / 3, abs=0.06)
    assert len(model.generate([], 9, generator)) == 9


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: NGram(0, 3), "an order and a vocabulary of at least 1"),
        (lambda: NGram(2, 3, add=-1), "no negative counts"),
        (lambda: NGram(2, 3, add=1, witten_bell=True), "not both"),
        (lambda: NGram(2, 3, weights=[1.0]), "an order of 2 needs 2 weights"),
        (lambda: NGram(2, 3, weights=[0.5, 0.6]), "sum to one"),
        (lambda: NGram(2, 3, weights=[1.5, -0.5]), "sum to one"),
    ],
)
def test_invalid_arguments_are_rejected(make: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        make()  # type: ignore[operator]
