"""What writing costs, against torch's count of a real generation."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor

from lmcourse.accounting.counter import count_flops
from lmcourse.accounting.generation import generation_flops
from lmcourse.accounting.parameters import matmul_parameters
from lmcourse.inference.decoding_session import Model
from lmcourse.inference.generate import generate
from lmcourse.models.zoo import find_model
from tests.inference.variants import CONFIGS, build, encoder_decoder, random_tokens


def counted(model: Model, prompts: Tensor, new: int, **others: Any) -> int:
    def run() -> Tensor:
        generate(model, prompts.tolist(), new, **others)
        return prompts

    return count_flops(run).total


@pytest.mark.parametrize("name", CONFIGS)
def test_generating_with_a_cache(name: str) -> None:
    config = CONFIGS[name]
    assert generation_flops(config, 2, 5, 9).total == counted(build(config), random_tokens(2, 5), 9)


def test_an_encoder_decoder_generates() -> None:
    """From one token, as usual: of a longer prompt, `EncoderDecoder.decode` makes logits that nobody reads."""
    model, sources = encoder_decoder(), random_tokens(2, 7).tolist()
    predicted = generation_flops(model.config, 2, 1, 6, source=7).total
    assert predicted == counted(model, random_tokens(2, 1), 6, sources=sources)


def test_without_a_cache_every_pass_reads_everything() -> None:
    config = CONFIGS["gqa"]
    model, tokens = build(config), random_tokens(2, 9)
    passes = [count_flops(lambda end=end: model.head(model.encode(tokens[:, :end])[:, -1])).total for end in (5, 6, 7)]
    assert generation_flops(config, 2, 5, 3, cache=False).total == sum(passes)


def test_a_step_costs_two_n_and_four_widths_per_token_before() -> None:
    """Inventory 14.19 and 17.07: O(d² + t·d), 2N + 4·L·d·t with t tokens in the attention."""
    config = find_model("gpt-2").decoder
    step = generation_flops(config, 1, 500, 2).total - generation_flops(config, 1, 500, 1).total
    assert step == 2 * matmul_parameters(config) + 4 * 12 * 768 * 501


def test_a_cache_saves_a_factor_that_grows_with_the_text() -> None:
    """Inventory 17.05: quadratic work per token becomes linear."""
    config = find_model("gpt-2").decoder
    saved = [
        generation_flops(config, 1, 1, new, cache=False).total / generation_flops(config, 1, 1, new).total
        for new in (10, 100, 1000)
    ]
    assert saved[0] < saved[1] < saved[2]
    # Blocks read 1 + 2 + … + n tokens instead of n; the head reads one per pass in both cases.
    assert 100 < saved[2] < 1000 / 2


def test_nothing_to_write_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one token must be written, not 0"):
        generation_flops(find_model("nano").decoder, 1, 1, 0)
