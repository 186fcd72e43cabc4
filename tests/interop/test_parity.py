"""Every family gives the same results as its published implementation."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lmcourse.models.interop import from_hugging_face
from lmcourse.models.interop.families import FAMILIES
from tests.interop.__main__ import parity_table
from tests.interop.reference import (
    TOLERANCE,
    batch_for,
    build_reference,
    gradients,
    our_greedy,
    our_logits,
    their_greedy,
    their_logits,
)
from tests.interop.samples import SAMPLES, SEQ_LEN

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


TABLE = {"max_position_embeddings": 110_000}
FAR_SETTINGS = {
    **{"gpt2": TABLE, "gpt-j": TABLE, "opt": TABLE, "opt-350m": TABLE},
    # Without a cache, theirs tunes by the number of tokens instead of their positions.
    "llama4-dense": {"attn_temperature_tuning": False},
}
"""Settings with which these samples read far positions as we do: a larger table of positions, and no tuning."""
KINDS = {"full": "full_attention", "window": "sliding_attention", "chunk": "chunked_attention"}
PLACED = [each for each in SAMPLES if each.model_type not in ("bloom", "mpt", "t5") and each.name != "falcon-rw"]
"""The samples whose models read positions; the others, with a bias on scores, count tokens themselves."""


@pytest.mark.parametrize("sample", PLACED, ids=lambda sample: sample.name)
def test_logits_match_transformers_at_far_positions(sample) -> None:
    """The last bit of a frequency counts where the second half of a text lies 10,000 or 100,000 tokens later."""
    theirs = build_reference(replace(sample, settings=sample.settings | FAR_SETTINGS.get(sample.name, {})))
    ours, tokens = from_hugging_face(theirs), batch_for(sample).tokens
    patterns = {layer.attention.pattern for layer in ours.config.layers}
    for far in (10_000, 100_000):
        positions = torch.arange(SEQ_LEN)[None].expand_as(tokens).clone()
        positions[:, SEQ_LEN // 2 :] += far
        # With masks of their own, their models would count tokens, and take a text with a gap for two texts.
        seen = {pattern.kind: pattern.visible(positions, positions)[:, None] for pattern in patterns}
        masks = {KINDS[kind]: torch.zeros(mask.shape).masked_fill(~mask, -1e9) for kind, mask in seen.items()}
        mask = masks if getattr(theirs.config, "layer_types", None) else masks.popitem()[1]
        with torch.no_grad():
            expected = theirs(input_ids=tokens, position_ids=positions, attention_mask=mask, use_cache=False).logits
            torch.testing.assert_close(ours(tokens, positions), expected, rtol=0, atol=2e-5)


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
