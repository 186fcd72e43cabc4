"""Our use of torch's counter counts everything, including operators that torch's counter alone skips."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.accounting.counter import count_flops, counted_flops, flop_counter
from lmcourse.accounting.flops import forward_flops
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.styles import gpt_like, llama_like
from tests.models.tiny import LENGTH


def test_two_linear_layers_have_the_flops_of_the_notes() -> None:
    """Errata E0-33: backward takes 1.2 times the forward pass if the input needs no gradient, otherwise twice."""
    x, first, second = torch.randn(64, 128), nn.Linear(128, 128, bias=False), nn.Linear(128, 32, bias=False)
    run: Callable[[], Tensor] = lambda: second(first(x))  # noqa: E731
    assert count_flops(run, backward=True).parts == {"forward": 2_621_440, "backward": 3_145_728}
    x.requires_grad_()
    assert count_flops(run, backward=True)["backward"] == 5_242_880


def test_torchs_counter_skips_fused_attention_on_a_cpu() -> None:
    """This is why `count_flops` uses the plain form of attention."""
    config = llama_like(2, 64, 4, 96, vocab_size=53, context=64)
    model, tokens = Transformer(config), torch.zeros(2, LENGTH, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        model(tokens)
    predicted = forward_flops(config, 2, LENGTH)
    lost = predicted.only("attention scores", "attention values").total
    assert predicted.total - counter.get_total_flops() == lost
    assert count_flops(partial(model, tokens)).total == predicted.total


def test_products_added_in_place_are_counted() -> None:
    """Torch's counter sees 0 of them: a step that saves memory would seem to cost nothing."""
    a, b, total = torch.ones(4, 3), torch.ones(3, 5), torch.zeros(4, 5)
    batch, sums = torch.ones(2, 4, 3), torch.zeros(2, 4, 5)
    with FlopCounterMode(display=False) as torchs, flop_counter() as ours:
        total.addmm_(a, b)
        sums.baddbmm_(batch, b.expand(2, 3, 5))
    assert (torchs.get_total_flops(), ours.get_total_flops()) == (0, 3 * 2 * 4 * 3 * 5)


def test_einsum_over_a_single_number_is_not_a_matrix_product() -> None:
    """With one token, readable attention has one weight, so torch uses no matrix product and counts 0."""
    config = gpt_like(1, 8, 2, vocab_size=5, context=8, soft_cap=20.0)
    predicted = forward_flops(config, 1, 1)
    assert predicted.total - counted_flops(config, 1, 1).total == predicted["attention values"]


def test_counting_an_encoder_decoder_needs_a_source() -> None:
    with pytest.raises(ValueError, match="pass its length as `source`"):
        counted_flops(find_model("t5-small").config, 1, 1)
