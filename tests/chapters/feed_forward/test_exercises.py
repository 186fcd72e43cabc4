"""The references of notebook 11 against torch, Hugging Face's layers, published widths and plain chance."""

from __future__ import annotations

import math
import random
import statistics

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.chapters.feed_forward import exercises
from lmcourse.models.zoo import find_model

X = torch.linspace(-9, 9, 1801, dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_gelu_is_torchs(dtype: torch.dtype) -> None:
    x = X.to(dtype)
    torch.testing.assert_close(exercises.gelu.reference(x), F.gelu(x))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_silu_is_torchs(dtype: torch.dtype) -> None:
    x = X.to(dtype)
    torch.testing.assert_close(exercises.silu.reference(x), F.silu(x))


def test_silu_with_a_sharpness_is_hugging_faces_quick_gelu() -> None:
    from transformers.activations import ACT2FN

    torch.testing.assert_close(exercises.silu.reference(X, beta=1.702), ACT2FN["quick_gelu"](X))


def test_squared_relu_is_hugging_faces() -> None:
    from transformers.activations import ACT2FN

    assert torch.equal(exercises.squared_relu.reference(X), ACT2FN["relu2"](X))


@pytest.mark.parametrize("x", [-120.0, -90.0, 90.0, 500.0])
def test_the_gradient_of_silu_is_finite_where_the_plain_formula_gives_nan(x: float) -> None:
    at = torch.tensor([x], requires_grad=True)
    exercises.silu.reference(at).backward()
    expected = torch.tensor([x], requires_grad=True)
    F.silu(expected).backward()
    assert at.grad is not None
    torch.testing.assert_close(at.grad, expected.grad)


def test_the_plain_layer_is_hugging_faces_t5() -> None:
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5DenseActDense

    theirs = T5DenseActDense(T5Config(d_model=6, d_ff=10, feed_forward_proj="relu", dropout_rate=0.0))
    x, zeros = torch.randn(2, 3, 6), torch.zeros
    ours = exercises.ffn.reference(x, theirs.wi.weight.T, zeros(10), theirs.wo.weight.T, zeros(6))
    torch.testing.assert_close(ours, theirs(x))


def test_the_plain_layer_with_biases_is_torchs_sequential() -> None:
    theirs = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 5))
    (w1, b1), (w2, b2) = ((layer.weight, layer.bias) for layer in (theirs[0], theirs[2]))
    x = torch.randn(4, 5)
    torch.testing.assert_close(exercises.ffn.reference(x, w1.T, b1, w2.T, b2), theirs(x))


def test_swiglu_is_hugging_faces_llama() -> None:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaMLP

    theirs = LlamaMLP(LlamaConfig(hidden_size=6, intermediate_size=9, hidden_act="silu", num_attention_heads=1))
    weights = (theirs.gate_proj.weight.T, theirs.up_proj.weight.T, theirs.down_proj.weight.T)
    x = torch.randn(2, 3, 6)
    torch.testing.assert_close(exercises.glu_ffn.reference(x, *weights, "swiglu"), theirs(x))


def test_geglu_is_hugging_faces_t5_with_the_exact_gelu() -> None:
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5DenseGatedActDense

    config = T5Config(d_model=6, d_ff=9, feed_forward_proj="gated-gelu", dropout_rate=0.0)
    config.dense_act_fn = "gelu"
    theirs = T5DenseGatedActDense(config)
    weights = (theirs.wi_0.weight.T, theirs.wi_1.weight.T, theirs.wo.weight.T)
    x = torch.randn(2, 3, 6)
    torch.testing.assert_close(exercises.glu_ffn.reference(x, *weights, "geglu"), theirs(x))


def test_the_glu_is_torchs() -> None:
    x, eye = torch.randn(5, 4, dtype=torch.float64), torch.eye(3, dtype=torch.float64)
    w_gate, w_value = torch.randn(2, 4, 3, dtype=torch.float64)
    expected = F.glu(torch.cat([x @ w_value, x @ w_gate], dim=-1))
    torch.testing.assert_close(exercises.glu_ffn.reference(x, w_gate, w_value, eye, "glu"), expected)


@pytest.mark.parametrize("name", ["llama-7b", "llama-13b", "llama-33b", "llama-65b"])
def test_the_matched_width_is_llamas(name: str) -> None:
    model = find_model(name).decoder
    assert exercises.matched_d_ff.reference(model.d_model, multiple=256) == model.layers[0].feed_forward.width


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("d_model", "d_ff"), [(8, 32), (32, 8), (6, 7)])
def test_parameters_are_those_of_hugging_faces_llama(d_model: int, d_ff: int, bias: bool) -> None:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaMLP

    layer = LlamaMLP(LlamaConfig(hidden_size=d_model, intermediate_size=d_ff, mlp_bias=bias, num_attention_heads=1))
    counted = sum(parameter.numel() for parameter in layer.parameters())
    assert exercises.ffn_parameters.reference(d_model, d_ff, gated=True, bias=bias) == counted


def test_parameters_of_a_plain_layer_are_those_of_torch() -> None:
    layer = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 5))
    counted = sum(parameter.numel() for parameter in layer.parameters())
    assert exercises.ffn_parameters.reference(5, 7, bias=True) == counted
    assert exercises.ffn_parameters.reference(5, 7) == 2 * 5 * 7


@pytest.mark.parametrize("scale", [0.3, 1.0, 1.702, 5.0])
@pytest.mark.parametrize("kind", ["silu", "gelu"])
def test_at_the_minimum_torchs_slope_is_zero_and_its_value_lowest(kind: str, scale: float) -> None:
    function = F.silu if kind == "silu" else F.gelu

    def f(x: Tensor) -> Tensor:
        return function(scale * x) / scale

    place, value = exercises.activation_minimum.reference(kind, scale)
    x = torch.tensor(place, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(f(x), x)
    assert abs(slope.item()) < 1e-12
    assert f(x).item() == pytest.approx(value, abs=1e-14)
    assert value <= f(X).min().item()


def test_the_published_minima() -> None:
    assert exercises.activation_minimum.reference("gelu") == pytest.approx([-0.7518, -0.16997], abs=5e-5)
    assert exercises.activation_minimum.reference("silu") == pytest.approx([-1.2785, -0.27846], abs=5e-5)


def test_intensity_of_a_fused_and_of_a_split_gelu() -> None:
    one, eight = [[8, 1, 1]], [[1, 1, 1]] * 8
    intensity = exercises.elementwise_intensity.reference
    assert (intensity(one, 2), intensity(eight, 2)) == (2.0, 0.25)


@pytest.mark.parametrize("runs", [1, 4])
def test_without_a_difference_z_has_deviation_one(runs: int) -> None:
    """Tables of scores that differ by chance alone."""
    source = random.Random(0)
    zs = []
    for _ in range(4000):
        means = [statistics.fmean(source.gauss(80, 0.5) for _ in range(runs)) for _ in range(2)]
        scores = dict(zip(("old", "new"), means, strict=True))
        zs.append(exercises.glue_significance.reference(scores, "old", 0.5, runs)["new"])
    assert statistics.stdev(zs) == pytest.approx(1, abs=4 / math.sqrt(2 * 4000))
    assert statistics.fmean(zs) == pytest.approx(0, abs=4 / math.sqrt(4000))


def test_shazeers_table_worked_by_hand() -> None:
    scores = {"ReLU": 83.80, "ReGLU": 84.67, "SwiGLU": 84.36, "Bilinear": 83.79}
    z = exercises.glue_significance.reference(scores, "ReLU", 0.235)
    assert {name: round(value, 2) for name, value in z.items()} == {"ReGLU": 2.62, "SwiGLU": 1.69, "Bilinear": -0.03}
