"""Notebook 11: references against independent sources, and what its figures show."""

from __future__ import annotations

import math
import random
import statistics
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from torch import Tensor

from lmcourse import plots
from lmcourse.chapters.feed_forward import exercises, figures, short_runs, units
from lmcourse.models.zoo import find_model
from lmcourse.pretrained import load_pretrained
from tests.plots.figures import said

X = torch.linspace(-9, 9, 1801, dtype=torch.float64)


@pytest.mark.prove
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_activations_match_torch_and_hugging_face(dtype: torch.dtype) -> None:
    from transformers.activations import ACT2FN

    x = X.to(dtype)
    torch.testing.assert_close(exercises.gelu.reference(x), F.gelu(x))
    torch.testing.assert_close(exercises.silu.reference(x), F.silu(x))
    torch.testing.assert_close(exercises.silu.reference(X, beta=1.702), ACT2FN["quick_gelu"](X))


def test_the_gradient_of_silu_is_finite_where_the_plain_formula_gives_nan() -> None:
    at = torch.tensor([-120.0, -90.0, 90.0, 500.0], requires_grad=True)
    exercises.silu.reference(at).sum().backward()
    expected = at.detach().clone().requires_grad_()
    F.silu(expected).sum().backward()
    assert at.grad is not None
    torch.testing.assert_close(at.grad, expected.grad)


@pytest.mark.prove
def test_the_plain_layer_matches_t5_of_hugging_face() -> None:
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5DenseActDense

    theirs = T5DenseActDense(T5Config(d_model=6, d_ff=10, feed_forward_proj="relu", dropout_rate=0.0))
    x, zeros = torch.randn(2, 3, 6), torch.zeros
    ours = exercises.ffn.reference(x, theirs.wi.weight.T, zeros(10), theirs.wo.weight.T, zeros(6))
    torch.testing.assert_close(ours, theirs(x))


@pytest.mark.prove
def test_swiglu_matches_llama_of_hugging_face() -> None:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaMLP

    theirs = LlamaMLP(LlamaConfig(hidden_size=6, intermediate_size=9, hidden_act="silu", num_attention_heads=1))
    weights = (theirs.gate_proj.weight.T, theirs.up_proj.weight.T, theirs.down_proj.weight.T)
    x = torch.randn(2, 3, 6)
    torch.testing.assert_close(exercises.glu_ffn.reference(x, *weights, "swiglu"), theirs(x))


def test_the_glu_matches_torchs() -> None:
    x, eye = torch.randn(5, 4, dtype=torch.float64), torch.eye(3, dtype=torch.float64)
    w_gate, w_value = torch.randn(2, 4, 3, dtype=torch.float64)
    expected = F.glu(torch.cat([x @ w_value, x @ w_gate], dim=-1))
    torch.testing.assert_close(exercises.glu_ffn.reference(x, w_gate, w_value, eye, "glu"), expected)


def test_matched_widths_equal_llamas() -> None:
    for name in ("llama-7b", "llama-13b", "llama-33b", "llama-65b"):
        model = find_model(name).decoder
        assert exercises.matched_d_ff.reference(model.d_model, multiple=256) == model.layers[0].feed_forward.width


@pytest.mark.prove
def test_the_mixture_matches_mixtral_of_hugging_face() -> None:
    from transformers import MixtralConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

    torch.manual_seed(0)
    config = MixtralConfig(hidden_size=6, intermediate_size=5, num_local_experts=4, num_experts_per_tok=2)
    theirs = MixtralSparseMoeBlock(config).double()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(1, 9, 6, dtype=torch.float64)
    w_gate, w_value = theirs.experts.gate_up_proj.mT.chunk(2, dim=-1)
    result, _ = exercises.moe.reference(x[0], theirs.gate.weight.T, w_gate, w_value, theirs.experts.down_proj.mT, 2)
    expected = theirs(x)
    expected = (expected[0] if isinstance(expected, tuple) else expected)[0]
    # the router of transformers takes the softmax in float32
    torch.testing.assert_close(result, expected, rtol=1e-6, atol=1e-6)


def test_balance_ranges_from_one_to_the_number_of_experts() -> None:
    asked = [case.kwargs for case in exercises.moe.hidden if case.name.endswith(": the balance")]
    balances = [exercises.moe.reference(**inputs)[1].item() for inputs in asked]
    assert (min(balances), max(balances)) == pytest.approx((1.0, 4.0), abs=2e-3)


def test_expert_counts_match_the_papers() -> None:
    """Mixtral: 46.7 billion, 12.9 used. DeepSeek-V3: 671 billion, 37 used, with 3 dense layers."""
    attention = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024) + 2 * 32_000 * 4096
    whole, used, _ = exercises.moe_counts.reference(4096, 14_336, 8, 2)
    assert (round((32 * whole + attention) / 1e9, 1), round((32 * used + attention) / 1e9, 1)) == (46.7, 12.9)
    whole, used, flops = exercises.moe_counts.reference(7168, 2048, 256, 8, shared=1)
    assert 650e9 < 58 * whole < 671e9
    assert 58 * used < 37e9
    assert flops == 2 * used


@pytest.mark.prove
def test_the_stored_run_of_experts_is_reproduced() -> None:
    make = partial(short_runs.MixtureOfExperts, exercises.moe.variants[0].answer, 32, 8, 2)
    run = short_runs.train_layers(make, 0, 150, 16, balance=0.01)
    assert run.loss == pytest.approx(short_runs.MEASURED["8 experts, k = 2, balance 0.01"][0][0], abs=0.03)
    assert torch.stack(run.shares).sum(-1) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["silu", "gelu"])
def test_at_the_minimum_torchs_slope_is_zero_and_its_value_lowest(kind: str) -> None:
    scale = 1.702
    function = F.silu if kind == "silu" else F.gelu

    def f(x: Tensor) -> Tensor:
        return function(scale * x) / scale

    place, value = exercises.activation_minimum.reference(kind, scale)
    x = torch.tensor(place, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(f(x), x)
    assert abs(slope.item()) < 1e-12
    assert f(x).item() == pytest.approx(value, abs=1e-14)
    assert value <= f(X).min().item()


def test_minima_match_published_numbers() -> None:
    assert exercises.activation_minimum.reference("gelu") == pytest.approx([-0.7518, -0.16997], abs=5e-5)
    assert exercises.activation_minimum.reference("silu") == pytest.approx([-1.2785, -0.27846], abs=5e-5)


def test_z_has_deviation_one_without_a_real_difference() -> None:
    """Use tables of scores that differ only by chance."""
    runs = 4
    source = random.Random(0)
    zs = []
    for _ in range(4000):
        means = [statistics.fmean(source.gauss(80, 0.5) for _ in range(runs)) for _ in range(2)]
        scores = dict(zip(("old", "new"), means, strict=True))
        zs.append(exercises.glue_significance.reference(scores, "old", 0.5, runs)["new"])
    assert statistics.stdev(zs) == pytest.approx(1, abs=4 / math.sqrt(2 * 4000))
    assert statistics.fmean(zs) == pytest.approx(0, abs=4 / math.sqrt(4000))


def test_z_of_shazeers_table_matches_a_hand_calculation() -> None:
    scores = {"ReLU": 83.80, "ReGLU": 84.67, "SwiGLU": 84.36, "Bilinear": 83.79}
    z = exercises.glue_significance.reference(scores, "ReLU", 0.235)
    assert {name: round(value, 2) for name, value in z.items()} == {"ReGLU": 2.62, "SwiGLU": 1.69, "Bilinear": -0.03}


def lines(axes: Axes) -> dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """The labelled curves."""
    return {str(line.get_label()): (line.get_xdata(), line.get_ydata()) for line in axes.lines}  # type: ignore[misc]


def test_without_activation_the_fit_is_the_best_straight_line() -> None:
    width = 64
    x = np.linspace(-3, 3, 601)
    slope, start = np.polyfit(x, np.sin(2 * x) + x / 3, 1)
    beyond, fit = lines(figures.universal_fit(width, "identity").axes[0])["the network"]
    np.testing.assert_allclose(fit, slope * np.asarray(beyond) + start, atol=1e-9)


def test_ratios_match_the_papers() -> None:
    alt = plots.alt_text(figures.width_ratios())
    published = {
        "transformer-base": 2048 / 512,
        "gpt-3": 49_152 / 12_288,
        "t5-11b": 65_536 / 1024,
        "t5-v1.1-xxl": 10_240 / 4096,
        "llama-7b": 11_008 / 4096,
        "llama-2-70b": 28_672 / 8192,
        "gemma-2-9b": 14_336 / 3584,
        "gemma-2-27b": 36_864 / 4608,
        "llama-3.1-405b": 53_248 / 16_384,
    }
    for name, ratio in published.items():
        assert f"{name} {ratio:.3g}" in alt
    assert alt.count("(plain)") == 4


def test_shapes_of_published_models_match_the_papers() -> None:
    alt = {choice: plots.alt_text(figures.model_shapes(choice)) for choice in ("all heads", "aspect", "vocabulary")}
    assert f"t5-11b {128 * 128 / 1024:g}" in alt["all heads"]
    assert f"qwen3-0.6b {16 * 128 / 1024:g}" in alt["all heads"]
    assert f"bloom-176b {14_336 / 70:.3g}" in alt["aspect"]
    assert "llama-7b 32" in alt["vocabulary"]
    with pytest.raises(ValueError, match="unknown choice"):
        figures.model_shapes("depth")


def test_a_hidden_unit_detects_li_and_makes_its_endings_likelier() -> None:
    alt = said(figures.hidden_unit(1, 225))
    waits, says = alt.split("; at ")[1].split("; raises ")
    assert all(place.endswith("li") for place in waits.split(", "))
    assert says.startswith("ter, st, ")
    with pytest.raises(ValueError, match="layer must be from 0 to 3 and unit from 0 to 351, not 0 and 352"):
        figures.hidden_unit(0, 352)


def test_gelu_intensities_match_a_hand_calculation() -> None:
    intensity = exercises.elementwise_intensity.reference
    assert (intensity([[8, 1, 1]], 2), intensity([[1, 1, 1]] * 8, 2)) == (2.0, 0.25)


def test_a_layer_of_the_course_leaves_the_trained_model_as_it_is() -> None:
    text = units.windows()[:2]
    loss = units.TextLoss(text)
    with torch.no_grad():
        torch.testing.assert_close(loss.model(text), load_pretrained().model(text))
        numbers = units.hidden_numbers(loss)
        off = loss(units.without([(1, 225)]))
        numbers[1, ..., 225] = 0
        put_in = loss(lambda layer, hidden: numbers[layer] if layer == 1 else hidden)
    torch.testing.assert_close(off, put_in)


def test_the_three_parts_of_the_help_texts_have_no_window_in_common() -> None:
    parts = [{tuple(window) for window in units.windows(part).tolist()} for part in units.PARTS]
    assert [len(part) for part in parts] == [60, 60, 60]
    assert len(set.union(*parts)) == 180
    with pytest.raises(ValueError, match="unknown part 'all'"):
        units.windows("all")
    with pytest.raises(ValueError, match="unknown kind 'comma'"):
        units.of_kind(units.windows(), "comma")
