"""Test weights in fewer bytes: the rounding, its size, and the effect on the loss."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from lmcourse.data.token_file import TokenFile
from lmcourse.inference.generate import generate
from lmcourse.inference.weight_only import Bf16Linear, Int8Linear, narrow_weights
from lmcourse.pretrained import load_pretrained, pretrained_folder
from lmcourse.training.evaluation import evaluate
from lmcourse.training.precision import MixedPrecision
from tests.inference.variants import CONFIGS, CORNERS, build, encoder_decoder

HALF_STEP_BF16 = 2**-9
"""Largest relative rounding error in bf16, which has 8 significant bits."""


@pytest.fixture
def linear() -> nn.Linear:
    generator = torch.Generator().manual_seed(0)
    layer = nn.Linear(96, 40)
    with torch.no_grad():
        # Rows of very different sizes: with a common scale the small rows would round to 0.
        layer.weight.copy_(torch.randn(40, 96, generator=generator) * torch.logspace(-4, 2, 40)[:, None])
        layer.bias.copy_(torch.randn(40, generator=generator))
    return layer


def inputs(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def test_integers_match_torchs_own_quantizer(linear: nn.Linear) -> None:
    narrow = Int8Linear(linear)
    zeros = torch.zeros(40, dtype=torch.long)
    theirs = torch.quantize_per_channel(linear.weight.detach(), narrow.scale.float(), zeros, 0, torch.qint8)
    assert torch.equal(narrow.weight, theirs.int_repr())
    assert narrow.weight.abs().max() == 127


@pytest.mark.parametrize("shape", [(1, 1, 96), (3, 7, 96), (2, 96)], ids=str)
@pytest.mark.parametrize("kind", [Int8Linear, Bf16Linear])
def test_the_product_matches_the_rounded_weights(kind: type, shape: tuple[int, ...], linear: nn.Linear) -> None:
    narrow, x = kind(linear), inputs(*shape)
    weight = narrow.weight.double() * (narrow.scale.double()[:, None] if kind is Int8Linear else 1)
    exact = x.double() @ weight.T
    # x and the product are rounded; the error of the fp32 sums is much smaller.
    bound = 2.1 * HALF_STEP_BF16 * (x.double().abs() @ weight.abs().T)
    y = narrow(x)
    assert y.dtype == x.dtype
    assert y.shape == (*shape[:-1], 40)
    assert ((y.double() - narrow.bias.double() - exact).abs() <= bound).all()


def test_a_row_of_zero_weights_stays_zero() -> None:
    layer = nn.Linear(8, 2, bias=False)
    nn.init.zeros_(layer.weight)
    assert torch.equal(Int8Linear(layer)(inputs(3, 8)), torch.zeros(3, 2))


@pytest.mark.parametrize("name", CORNERS)
def test_every_model_can_be_narrowed(name: str) -> None:
    model = build(CONFIGS[name])
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    narrow = narrow_weights(model, "int8")
    assert not [module for module in narrow.modules() if type(module) is nn.Linear]
    assert len(generate(narrow, [[1, 2, 3], [4]], 5)[0]) == 5
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_an_encoder_decoder_gives_the_same_results() -> None:
    narrow = narrow_weights(encoder_decoder(), "bf16")
    assert len(generate(narrow, [[1]], 4, sources=[[3, 1, 4]])[0]) == 4


def test_another_format_is_rejected() -> None:
    with pytest.raises(ValueError, match="int4"):
        narrow_weights(nn.Linear(1, 1), "int4")  # type: ignore[arg-type]


@pytest.mark.prove
@pytest.mark.parametrize(("format", "share", "cost"), [("bf16", 0.5, 0.0005), ("int8", 0.26, 0.002)])
def test_narrow_weights_save_bytes_at_little_loss(format: str, share: float, cost: float) -> None:
    """The numbers are in docs/training.md: bytes of the matrices, and nats per token of held-out text."""
    trained = load_pretrained()
    narrow = narrow_weights(trained.model, format)  # type: ignore[arg-type]
    matrices = [module.weight.nbytes for module in trained.model.modules() if type(module) is nn.Linear]
    narrowed = [
        sum(buffer.nbytes for buffer in module.buffers())
        for module in narrow.modules()
        if isinstance(module, (Int8Linear, Bf16Linear))
    ]
    assert sum(narrowed) <= share * sum(matrices)
    settings, precision = trained.run.training, MixedPrecision("fp32", torch.device("cpu"))
    with TokenFile(pretrained_folder() / "validation.tokens") as held_out:
        losses = [
            evaluate(model, held_out, settings.batch, settings.seq_len, precision) for model in (trained.model, narrow)
        ]
    assert abs(losses[1] - losses[0]) <= cost
