"""Notebook 17: references against independent sources, and what its figures show."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from lmcourse import plots
from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.kv_cache import bytes_per_token, cache_bytes
from lmcourse.accounting.latency import forward_operations, roofline_seconds
from lmcourse.accounting.parameters import count_parameters
from lmcourse.chapters.inference import exercises, figures
from lmcourse.chapters.inference.exercises import batch_use
from lmcourse.chapters.inference.figures.serving import REQUESTS, schedule
from lmcourse.chapters.inference.shared_keys import LOSSES, config_of
from lmcourse.inference import sampling
from lmcourse.inference.cache import Cache
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.styles import llama_like
from tests.plots.figures import check_figure, said


def test_filters_match_the_package() -> None:
    logits = torch.randn(20, 30, generator=torch.Generator().manual_seed(1)) * 2
    for k, p, m in ((5, None, None), (None, 0.7, None), (None, None, 0.1), (9, 0.8, 0.05), (30, 1.0, 1.0)):
        rules = sampling.Sampling(1.0, k, p, m)
        torch.testing.assert_close(exercises.filter_logits.reference(logits, k, p, m), rules.logits(logits))
    found = exercises.temperature_probabilities.reference(logits, 0.7)
    torch.testing.assert_close(found, (logits / 0.7).softmax(-1))


class _InOurModel:
    """A cache as in the notebook: the reference in the form that a model uses."""

    def __init__(self, cache: Any) -> None:
        self.cache = cache

    def begin(self, tokens: Tensor, positions: Tensor | None) -> tuple[Tensor, bool]:
        past = len(self.cache)
        return torch.arange(past, past + tokens.shape[1]).expand(tokens.shape), True

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        keys, values = self.cache.append(layer, k, v)
        return keys, values, torch.arange(keys.shape[2]).expand(len(keys), -1)


@torch.no_grad()
def test_a_model_decodes_equally_with_both_caches() -> None:
    torch.manual_seed(0)
    config = llama_like(2, 32, 4, 64, vocab_size=50, context=32, kv_heads=2)
    model = Transformer(config).double().eval()
    text, wrong = torch.randint(50, (2, 12)), torch.randint(50, (2, 3))
    kept, ours = exercises.KVCache.reference(2, 16), Cache(config, 16)
    for part in (text[:, :7], wrong):
        model(part, kv_cache=_InOurModel(kept))
    kept.truncate(7)
    found = [model(part, kv_cache=_InOurModel(kept)) for part in (text[:, 7:8], text[:, 8:])]
    full = model(text)
    model(text, kv_cache=ours)
    torch.testing.assert_close(torch.cat(found, dim=1), full[:, 7:])
    assert kept.nbytes == ours.bytes == cache_bytes(config, 2, 16, precision="fp64").total


def test_a_timed_step_leaves_a_real_cache_at_its_length() -> None:
    torch.manual_seed(0)
    model = Transformer(llama_like(2, 32, 4, 64, vocab_size=50, context=32)).eval()
    kept, looks = exercises.KVCache.reference(2, 6), iter(range(100))
    model(torch.randint(50, (3, 5)), kv_cache=_InOurModel(kept))
    with torch.no_grad():
        seconds = exercises.decode_seconds.reference(
            lambda: model(torch.zeros(3, 1, dtype=torch.long), kv_cache=_InOurModel(kept)),
            kept,
            lambda: None,
            lambda: float(next(looks)),
            past=5,
            repeats=4,
        )
    assert (seconds, len(kept), next(looks)) == (1.0, 5, 10)


def test_throughput_figure_prints_measured_rates_and_knees() -> None:
    predicted = {"fp32": {1: 0.01, 64: 0.08}, "int8": {1: 0.0025, 64: 0.08}}
    knees = {"fp32": 8.0, "int8": 2.0}
    lines = check_figure(figures.tokens_per_second(predicted, knees))
    assert "fp32 predicted 100 tokens per second for 1 and 800 for 64, knee at 8" in said(lines)
    points = check_figure(figures.tokens_per_second(predicted, knees, {"fp32": {1: 0.02}, "int8": {1: 0.004}}))
    assert "int8 measured 250 tokens per second for 1" in said(points)
    dots = [line for line in points.axes[0].lines if line.get_marker() in ("o", "s")]
    assert [list(dot.get_ydata()) for dot in dots] == [[50.0], [250.0]]


def test_decode_step_warns_beyond_the_trained_context() -> None:
    assert "at most 2,048 tokens" in said(figures.decode_step("falcon-40b", context=4096))
    assert "at most" not in said(figures.decode_step("llama-3-8b", context=8192))


def test_two_terms_match_the_roofline_of_all_operators() -> None:
    batch = 32
    chip, config = find_accelerator("h100-sxm"), find_model("llama-3-8b").decoder
    cached = cache_bytes(config, 1, 4096).total
    given = (count_parameters(config).total, cached, batch, 1, chip.peak("bf16"), chip.bandwidth)
    seconds, limit = exercises.pass_seconds.reference(*given)
    whole = roofline_seconds(forward_operations(config, batch, 1, past=4095), chip, "bf16").total
    assert (seconds, limit) == (pytest.approx(whole, rel=0.08), "memory")


def test_static_batch_use_is_one_over_a_harmonic_number() -> None:
    slots = 32
    dice = random.Random(slots)
    lengths = [1 + int(dice.expovariate(1 / 400)) for _ in range(40 * slots)]
    use = exercises.batch_use.reference(lengths, slots, False)
    assert use == pytest.approx(1 / sum(1 / i for i in range(1, slots + 1)), rel=0.1)
    assert exercises.batch_use.reference(lengths, slots, True) > 0.9


def _after(p: list[Fraction], q: list[Fraction], token: int) -> tuple[Fraction, list[Fraction]]:
    """The probability that the reference keeps a token, and the distribution from which it draws otherwise."""
    rows, tokens = torch.tensor([[float(x) for x in p]] * 2, dtype=torch.float64), torch.tensor([token])
    small = torch.tensor([[float(x) for x in q]], dtype=torch.float64)
    ratio = float(min(Fraction(1), p[token] / q[token]))
    answers = [
        exercises.speculate.reference(rows, small, tokens, torch.tensor([chance], dtype=torch.float64))
        for chance in (max(ratio - 1e-9, 0.0), min(ratio + 1e-9, 1 - 1e-9))
    ]
    (below, _), (above, rest) = answers
    if ratio < 1:
        assert (below, above) == (1, 0)
        return Fraction(ratio), [Fraction(x) for x in rest.tolist()]
    assert (below, above) == (1, 1)
    return Fraction(1), []


@pytest.mark.parametrize("seed", [0, 1])
def test_speculative_tokens_have_the_sampled_distribution(seed: int) -> None:
    dice = random.Random(seed)
    p, q = ([Fraction(n, 64) for n in _parts(dice)] for _ in range(2))
    found = [Fraction(0)] * 4
    for token, share in enumerate(q):
        stays, rest = _after(p, q, token)
        found[token] += share * stays
        for other, part in enumerate(rest):
            found[other] += share * (1 - stays) * part
    assert [float(x) for x in found] == pytest.approx([float(x) for x in p], abs=1e-12)


def _parts(dice: random.Random) -> list[int]:
    """Four positive whole numbers with the sum 64."""
    cuts = [0, *sorted(dice.sample(range(1, 64), 3)), 64]
    return [b - a for a, b in pairwise(cuts)]


def test_squaring_step_odds_differs_from_squaring_text_odds() -> None:
    first, then = exercises.best_text.cases[0].args
    assert exercises.best_text.reference(first, then) == ("bc", pytest.approx(0.36))
    texts = [p * q for x, p in first.items() for q in then[x].values()]
    assert round(0.36**2 / math.fsum(t * t for t in texts), 3) == 0.517


SURE, UNSURE = figures.BEGINNINGS


def test_no_fixed_k_fits_both_sure_and_unsure_predictions() -> None:
    kept = {
        (place, rule): int(plots.alt_text(figures.next_token(place, **{rule: number})).split(":")[1].split()[0])
        for place in (SURE, UNSURE)
        for rule, number in (("top_p", 0.9), ("min_p", 0.1), ("top_k", 5))
    }
    assert kept[SURE, "top_k"] == kept[UNSURE, "top_k"] == 5
    assert kept[SURE, "top_p"] <= 4 < 20 < kept[UNSURE, "top_p"]
    assert kept[SURE, "min_p"] < kept[UNSURE, "min_p"]


@pytest.mark.parametrize(("slots", "continuous"), [(3, False), (3, True), (20, True)])
def test_a_timeline_uses_each_slot_once_and_the_exercises_share(continuous: bool, slots: int) -> None:
    placed = schedule(REQUESTS, slots, continuous)
    taken = [(slot, at) for slot, step, length in placed for at in range(step, step + length)]
    assert len(set(taken)) == len(taken) == sum(REQUESTS)
    steps = max(at for _, at in taken) + 1
    assert len(taken) / (slots * steps) == pytest.approx(batch_use.reference(list(REQUESTS), slots, continuous))


def test_two_phases_lie_on_both_sides_of_the_ridge() -> None:
    text = plots.alt_text(figures.two_phases())
    assert "prefill, 2,048 tokens: 2.05e+03 FLOPs per byte" in text
    assert "decoding, 1 text: 0.984 FLOPs per byte, 4.87e+03 µs a token, 99.7% idle" in text


def test_figures_of_texts_have_alt_text_with_the_result() -> None:
    tree = figures.text_tree({"a": 0.6, "b": 0.4}, {"a": {"c": 0.5, "d": 0.5}, "b": {"c": 1.0}})
    assert "greedy is ac, the likeliest bc" in said(tree)
    figure = check_figure(
        figures.calibration({"greedy": (1.0, 2.0), "T = 1": (2.0, 2.0), "T = 2, top-p 0.9": (4.8, 2.1)})
    )
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [dot.get_color() == plots.PALETTE["green"] for dot in dots] == [False, True, False]


def test_models_with_shared_keys_differ_in_nothing_else() -> None:
    configs = {key_heads: config_of(key_heads) for key_heads in LOSSES}
    assert {heads: bytes_per_token(config) for heads, config in configs.items()} == {8: 512, 2: 128, 1: 64}
    assert all(len(found) == 3 for found in LOSSES.values())
    assert {config.d_model for config in configs.values()} == {find_model("nano").decoder.d_model}
