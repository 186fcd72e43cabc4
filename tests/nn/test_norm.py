"""Compare norms with torch's in full and in half precision."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lmcourse.nn.norm import Norm, NormConfig


def randomised(config: NormConfig, *shape: int) -> Norm:
    norm = Norm(config, *shape)
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.normal_()
    return norm


@given(
    kind=st.sampled_from(["layer", "rms"]),
    scale=st.booleans(),
    bias=st.booleans(),
    unit_offset=st.booleans(),
    eps=st.sampled_from([1e-12, 1e-6, 1e-5, 0.1]),
    size=st.sampled_from([1e-4, 1.0, 300.0]),
)
@settings(deadline=None)
def test_every_norm_matches_torchs(
    kind: str, scale: bool, bias: bool, unit_offset: bool, eps: float, size: float
) -> None:
    if unit_offset and not scale:
        return
    norm = randomised(NormConfig(kind, eps, scale, bias, unit_offset), 10)  # type: ignore[arg-type]
    x = (size * (torch.randn(3, 4, 10) + 0.5)).requires_grad_()
    weight = None if norm.weight is None else norm.weight + unit_offset
    if kind == "layer":
        theirs = F.layer_norm(x, (10,), weight, norm.bias, eps)
    else:
        theirs = F.rms_norm(x, (10,), weight, eps)
        theirs = theirs if norm.bias is None else theirs + norm.bias
    ours = norm(x)
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)
    inputs: list[Tensor] = [x, *norm.parameters()]
    upstream = torch.randn_like(ours)
    expected = torch.autograd.grad(theirs, inputs, upstream)
    for got, wanted in zip(torch.autograd.grad(ours, inputs, upstream), expected, strict=True):
        assert (got - wanted).abs().max() <= 1e-4 * wanted.abs().max() + 1e-6


def test_new_norms_only_normalise() -> None:
    for config in (NormConfig("rms", bias=True), NormConfig("rms", unit_offset=True), NormConfig("layer", bias=True)):
        y = Norm(config, 64)(7 * torch.randn(5, 64))
        torch.testing.assert_close(y.square().mean(-1), torch.ones(5), atol=1e-3, rtol=0)


@pytest.mark.parametrize(("kind", "module"), [("layer", nn.LayerNorm), ("rms", nn.RMSNorm)])
def test_bf16_is_computed_in_fp32(kind: str, module: type[nn.Module]) -> None:
    """The result is within one rounding step of the exact one; a norm computed in bf16 would be off by several."""
    x = (3 + torch.randn(200, 512)).bfloat16()
    ours = Norm(NormConfig(kind), 512).bfloat16()(x)  # type: ignore[arg-type]
    assert ours.dtype == torch.bfloat16
    exact = module(512, eps=1e-5, dtype=torch.float64)(x.double())
    assert ((ours.double() - exact).abs() <= 2**-8 * exact.abs() + 1e-6).all()


def test_doubles_stay_double() -> None:
    norm = randomised(NormConfig("layer", bias=True), 6).double()
    x = torch.randn(2, 6, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(norm(x), F.layer_norm(x, (6,), norm.weight, norm.bias, 1e-5), rtol=1e-12, atol=1e-12)
    assert torch.autograd.gradcheck(norm, [x])


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_qk_norm_can_have_a_scale_and_a_bias_per_head(kind: str) -> None:
    norm = randomised(NormConfig(kind, bias=True), 3, 1, 8)  # type: ignore[arg-type]
    x = torch.randn(2, 3, 5, 8)
    plain = F.layer_norm(x, (8,), eps=1e-5) if kind == "layer" else F.rms_norm(x, (8,), eps=1e-5)
    torch.testing.assert_close(norm(x), plain * norm.weight + norm.bias)


def test_norms_accept_fp32_inputs_with_bf16_parameters() -> None:
    norm = randomised(NormConfig("rms", bias=True), 8).bfloat16()
    x = torch.randn(2, 8)
    torch.testing.assert_close(norm(x), F.rms_norm(x, (8,), norm.weight.float(), 1e-5) + norm.bias.float())


def test_norm_of_zeros_is_not_nan() -> None:
    for kind in ("layer", "rms"):
        x = torch.zeros(2, 4, requires_grad=True)
        Norm(NormConfig(kind), 4)(x).sum().backward()  # type: ignore[arg-type]
        assert x.grad is not None
        assert x.grad.isfinite().all()
