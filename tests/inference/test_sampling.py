"""Compare every rule with brute force on one row and with transformers, and test edge cases."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lmcourse.inference.sampling import Sampling, greedy, min_p, sample, temperature, top_k, top_p

# Few different values, so that ties are common; steps of ½, so that rounding does not matter.
rows = st.lists(st.integers(-6, 6).map(lambda n: n / 2), min_size=1, max_size=9)
shares = st.sampled_from([0.03, 0.11, 0.27, 0.5001, 0.77, 0.93])


def kept(logits: Tensor) -> list[int]:
    return [i for i, x in enumerate(logits.tolist()) if x != -math.inf]


def by_likelihood(row: list[float]) -> list[int]:
    """Return ids by likelihood; among equals the lower id comes first."""
    return sorted(range(len(row)), key=lambda i: (-row[i], i))


def probabilities(row: list[float]) -> list[float]:
    weights = [math.exp(x) for x in row]
    return [w / sum(weights) for w in weights]


@given(rows, st.integers(1, 12))
def test_top_k_by_hand(row: list[float], k: int) -> None:
    logits = top_k(torch.tensor(row), k)
    assert kept(logits) == sorted(by_likelihood(row)[:k])
    assert all(logits[i] == row[i] for i in kept(logits))


@given(rows, shares)
def test_top_p_by_hand(row: list[float], p: float) -> None:
    expected, mass = [], 0.0
    for i in by_likelihood(row):
        if mass >= p:
            break
        expected.append(i)
        mass += probabilities(row)[i]
    assert kept(top_p(torch.tensor(row), p)) == sorted(expected)


@given(rows, shares)
def test_min_p_by_hand(row: list[float], p: float) -> None:
    chances = probabilities(row)
    assert kept(min_p(torch.tensor(row), p)) == [i for i, q in enumerate(chances) if q >= p * max(chances)]


@pytest.mark.prove
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), shares, st.integers(1, 40), st.sampled_from([0.3, 1.0, 1.9]))
def test_the_rules_match_transformers(seed: int, p: float, k: int, t: float) -> None:
    """The random logits have no ties."""
    warpers = pytest.importorskip("transformers.generation.logits_process")
    logits = 3 * torch.randn(4, 40, generator=torch.Generator().manual_seed(seed))
    for ours, theirs in [
        (top_k(logits, k), warpers.TopKLogitsWarper(k)),
        (top_p(logits, p), warpers.TopPLogitsWarper(p)),
        (min_p(logits, p), warpers.MinPLogitsWarper(p)),
        (temperature(logits, t), warpers.TemperatureLogitsWarper(t)),
    ]:
        assert torch.equal(ours, theirs(None, logits))


def test_top_p_stops_at_an_exact_threshold() -> None:
    row = torch.zeros(4)  # four tokens with probability ¼ each
    assert kept(top_p(row, 0.5)) == [0, 1]
    assert kept(top_p(row, 0.25)) == [0]
    assert kept(top_p(torch.tensor([40.0, 0.0, -40.0]), 1.0)) == [0, 1, 2]


def test_equal_logits_go_to_the_lower_id() -> None:
    tie = torch.tensor([1.0, 2.0, 2.0, 2.0])
    assert kept(top_k(tie, 2)) == [1, 2]
    assert kept(top_p(tie, 0.2)) == [1]
    assert kept(min_p(tie, 1.0)) == [1, 2, 3]
    assert greedy(tie[None]).tolist() == [1]
    many = torch.zeros(5000)  # so many that an unstable sort would change their order
    assert kept(top_k(many, 3)) == [0, 1, 2]
    assert kept(top_p(many, 3 / 5000 - 1e-5)) == [0, 1, 2]


def test_rules_keep_tokens_excluded_by_earlier_rules() -> None:
    row = torch.tensor([3.0, -math.inf, 2.0, 1.0])
    assert kept(top_k(row, 3)) == [0, 2, 3]
    assert kept(top_p(row, 0.99)) == [0, 2, 3]
    assert kept(min_p(row, 1e-9)) == [0, 2, 3]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_sampling_rules_keep_the_dtype(dtype: torch.dtype) -> None:
    logits = torch.randn(2, 50, generator=torch.Generator().manual_seed(0)).to(dtype)
    for rule in (
        lambda x: top_k(x, 5),
        lambda x: top_p(x, 0.9),
        lambda x: min_p(x, 0.1),
        lambda x: temperature(x, 2.0),
    ):
        assert rule(logits).dtype == dtype
    assert sample(logits).dtype == torch.long


def test_sampling_does_not_change_its_input() -> None:
    logits = torch.randn(2, 50)
    before = logits.clone()
    Sampling(0.5, 5, 0.9, 0.1)(logits, None)
    assert torch.equal(logits, before)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: temperature(torch.zeros(1), 0.0), "must be positive and finite, not 0"),
        (lambda: top_k(torch.zeros(1), 0), "k must be at least 1, not 0"),
        (lambda: top_p(torch.zeros(1), 1.5), "at most 1, not 1.5"),
        (lambda: min_p(torch.zeros(1), -0.1), "min-p is a fraction"),
        (lambda: Sampling(temperature=-1), "must be positive"),
        (lambda: Sampling(temperature=math.nan), "must be positive and finite, not nan"),
        (lambda: Sampling(0, min_p=2), "min-p is a fraction"),
    ],
)
def test_impossible_sampling_settings_are_rejected_in_one_line(act, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        act()
    assert "\n" not in str(caught.value)


def test_draws_follow_the_probabilities() -> None:
    row, count = torch.tensor([0.6, 0.3, 0.1]).log(), 20_000
    tokens = sample(row.expand(count, 3), torch.Generator().manual_seed(0))
    shares = torch.bincount(tokens, minlength=3) / count
    # Four standard deviations of a fraction are at most 4 · √(¼ / 20000) = 0.014.
    torch.testing.assert_close(shares, torch.tensor([0.6, 0.3, 0.1]), atol=0.014, rtol=0)


def test_sampling_rules_apply_in_the_documented_order() -> None:
    """The temperature comes first, because it changes the nucleus. Of ½, 0.3 and 0.2 the first two reach 0.75; at
    temperature 0.3 the first is enough, and at 3 all three are needed."""
    row = torch.tensor([[0.5, 0.3, 0.2]]).log().expand(500, 3)
    seen = {t: set(Sampling(t, top_p=0.75)(row, torch.Generator().manual_seed(0)).tolist()) for t in (0.3, 1.0, 3.0)}
    assert seen == {0.3: {0}, 1.0: {0, 1}, 3.0: {0, 1, 2}}


def test_temperature_zero_is_greedy() -> None:
    logits = torch.randn(8, 30, generator=torch.Generator().manual_seed(2))
    assert torch.equal(Sampling(temperature=0)(logits), greedy(logits))
