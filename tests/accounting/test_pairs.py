"""Compare numbers of query–key pairs with masks, and with the keys that a real cache returns."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmcourse.accounting.counter import count_flops
from lmcourse.accounting.flops import count_pairs, forward_flops
from lmcourse.inference.cache import Cache
from lmcourse.nn.attention_pattern import AttentionPattern
from tests.accounting.random_models import patterns
from tests.inference.variants import CONFIGS, build, encoder_decoder, random_tokens

LENGTHS = st.integers(1, 40)


def drawn(pattern: AttentionPattern, seq_len: int, past: int = 0) -> int:
    """Count the True entries of the mask."""
    keys = torch.arange(past + seq_len)[None]
    return int(pattern.visible(keys[:, past:], keys).sum())


@given(pattern=patterns(causal=True), seq_len=LENGTHS, past=st.integers(0, 30))
def test_visible_pairs_match_a_causal_mask(pattern: AttentionPattern, seq_len: int, past: int) -> None:
    assert count_pairs(pattern, seq_len, past, "visible") == drawn(pattern, seq_len, past)


@given(pattern=patterns(causal=False), seq_len=LENGTHS)
def test_visible_pairs_match_any_mask(pattern: AttentionPattern, seq_len: int) -> None:
    assert count_pairs(pattern, seq_len, 0, "visible") == drawn(pattern, seq_len)


@pytest.mark.parametrize(
    "name", ["gqa", "window of one", "chunk", "strided", "two windows", "shaw window", "soft cap window"]
)
def test_decoding_flops_with_a_cache_match_torchs_count(name: str) -> None:
    """The passes are a prompt, single tokens until every window is full, and then several tokens at once."""
    config, past = CONFIGS[name], 0
    model, cache = build(config), Cache(config)
    for seq_len in (3, 1, 1, 1, 1, 1, 1, 4, 1, 2, 1):
        counted = count_flops(partial(model, random_tokens(2, seq_len), kv_cache=cache)).total
        assert forward_flops(config, 2, seq_len, past=past).total == counted, (seq_len, past)
        past += seq_len


def test_an_encoder_decoder_decodes_with_a_cache() -> None:
    """The first pass reads the source; later passes do not."""
    model = encoder_decoder()
    source, target = random_tokens(2, 9), random_tokens(2, 6)
    cache = Cache(model.config.decoder)
    with torch.inference_mode():
        memory = model.encode(source)
    first = count_flops(lambda: model.decode(target[:, :3], model.encode(source), kv_cache=cache)).total
    assert forward_flops(model.config, 2, 3, source=9).total == first
    for past in (3, 4, 5):
        step = count_flops(lambda past=past: model.decode(target[:, past : past + 1], memory, kv_cache=cache)).total
        assert forward_flops(model.config, 2, 1, source=9, past=past).total == step
