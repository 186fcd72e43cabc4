"""Computed bytes of the KV cache equal the bytes of a real cache's tensors."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcourse.accounting.kv_cache import batch_where_cache_exceeds_weights, bytes_per_token, cache_bytes
from lmcourse.accounting.parameters import count_parameters
from lmcourse.inference.cache import Cache
from lmcourse.models.config import TransformerConfig
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from tests.accounting.random_models import LONGEST, transformers


def real_bytes(config: TransformerConfig, batch: int, seq_len: int) -> int:
    """Return the bytes of a cache after a model has read a whole text."""
    cache = Cache(config, capacity=seq_len)
    with torch.no_grad():
        Transformer(config)(torch.zeros(batch, seq_len, dtype=torch.long), kv_cache=cache)
    return cache.bytes


@settings(max_examples=40, deadline=None)
@given(transformers(), st.integers(1, 3), st.integers(1, LONGEST))
def test_random_caches_have_the_predicted_bytes(config: TransformerConfig, batch: int, seq_len: int) -> None:
    if all(layer.attention.pattern.causal for layer in config.layers):
        assert cache_bytes(config, batch, seq_len, precision="fp32").total == real_bytes(config, batch, seq_len)
    else:
        with pytest.raises(ValueError, match="sees later tokens"):
            cache_bytes(config, batch, seq_len)


@pytest.mark.parametrize(
    ("name", "size"), [("llama-3-8b", 131_072), ("llama-3.1-405b", 516_096), ("llama-2-7b", 524_288)]
)
def test_bytes_per_token_match_published_numbers(name: str, size: int) -> None:
    config = find_model(name).decoder
    assert bytes_per_token(config) == size
    assert cache_bytes(config, 3, 100).parts == {"full": 300 * size}


def test_a_window_limits_the_cache() -> None:
    mistral = find_model("mistral-7b").decoder
    assert cache_bytes(mistral, 1, 4096).total == cache_bytes(mistral, 1, 100_000).total
    assert list(cache_bytes(mistral, 1, 1).parts) == ["window 4096"]
    assert set(cache_bytes(find_model("llama-4-scout-dense").decoder, 1, 9000).parts) == {"full", "chunk 8192"}


@pytest.mark.parametrize("name", ["llama-3-8b", "mistral-7b", "gpt-3"])
def test_the_batch_is_the_smallest_whose_cache_exceeds_weights(name: str) -> None:
    config = find_model(name).decoder
    weights = 2 * count_parameters(find_model(name).config).total
    batch = batch_where_cache_exceeds_weights(config, 8192)
    assert cache_bytes(config, batch, 8192).total > weights
    assert batch == 1 or cache_bytes(config, batch - 1, 8192).total <= weights


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        cache_bytes(find_model("nano").decoder, 0, 1)
