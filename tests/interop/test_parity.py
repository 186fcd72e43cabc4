"""Every family gives the same results as its published implementation."""

from __future__ import annotations

import pytest
import torch

from lmcourse.models.interop import from_hugging_face
from lmcourse.models.interop.families import FAMILIES
from lmcourse.parity.__main__ import parity_table
from lmcourse.parity.reference import (
    TOLERANCE,
    batch_for,
    gradients,
    our_greedy,
    our_logits,
    their_greedy,
    their_logits,
)
from lmcourse.parity.samples import SAMPLES

pytestmark = pytest.mark.prove

EVERY_SAMPLE = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)


def test_every_family_has_a_sample() -> None:
    assert {sample.model_type for sample in SAMPLES} == set(FAMILIES)


@EVERY_SAMPLE
def test_logits_and_gradients_match_transformers(sample, pairs) -> None:
    pair, batch = pairs(sample.name), batch_for(sample)
    expected, found = their_logits(pair.theirs, batch), our_logits(pair.ours, batch)
    assert expected.detach().abs().max() > 0.5, "logits so small that the tolerance hides mistakes"
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE)
    # The table for weights also converts gradients, which shows gradients at the wrong place.
    theirs = FAMILIES[sample.model_type].to_ours(pair.ours, gradients(pair.theirs, expected, batch))
    ours = gradients(pair.ours, found, batch)
    assert ours.keys() == theirs.keys()
    for name, gradient in ours.items():
        largest = theirs[name].abs().max()
        assert largest > 0, f"{name} has no gradient: the comparison says nothing about it"
        difference = (gradient - theirs[name]).abs().max()
        assert difference < min(TOLERANCE, 1e-3 * largest), f"{name}: off by {difference:.1e}, largest {largest:.1e}"


@EVERY_SAMPLE
def test_greedy_tokens_match_transformers(sample, pairs) -> None:
    """Ours reads one batch of uneven prompts with a cache, beyond every window; theirs reads single prompts."""
    pair, batch = pairs(sample.name), batch_for(sample)
    assert our_greedy(pair.ours, batch, 20) == their_greedy(pair.theirs, batch, 20)


def test_tied_weights_stay_one_tensor(pairs) -> None:
    for name in ("gpt2", "t5-v1.0"):
        model = pairs(name).ours
        embedding = getattr(model, "encoder", model).embedding.tokens.weight
        assert model.head.linear.weight is embedding is model.get_parameter("embedding.tokens.weight")
    model = pairs("t5-v1.1").ours
    assert model.head.linear.weight is not model.embedding.tokens.weight


def test_a_converted_model_shares_no_memory_with_the_original(pairs) -> None:
    pair = pairs("gpt2")
    theirs = {parameter.data_ptr() for parameter in pair.theirs.parameters()}
    assert not theirs & {parameter.data_ptr() for parameter in pair.ours.parameters()}


def test_converting_a_model_draws_no_random_numbers(pairs) -> None:
    theirs = pairs("gpt2").theirs
    before = torch.get_rng_state()
    from_hugging_face(theirs)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_table_has_a_row_for_each_sample() -> None:
    table, agree = parity_table(SAMPLES[:2])
    assert agree
    assert table.row_count == 2
