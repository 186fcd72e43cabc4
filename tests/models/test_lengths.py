"""A text that is longer than the learned positions is rejected in one line, in every way of counting."""

from __future__ import annotations

import pytest
import torch

from lmcourse.inference.cache import Cache
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import gpt_like
from lmcourse.nn.attention_pattern import PADDING_POSITION, AttentionPattern
from tests.models.tiny import tokens

TOLD = "^a text of 9 tokens is longer than the 8 learned positions$"


def config(pattern: AttentionPattern | None = None) -> TransformerConfig:
    return gpt_like(2, 16, 2, vocab_size=53, context=8, pattern=pattern or AttentionPattern())


def test_a_text_longer_than_the_positions_is_rejected() -> None:
    model = Transformer(config())
    model(tokens(length=8))
    for call in (
        lambda: model(tokens(length=9)),
        lambda: model(tokens(length=1), torch.full((2, 1), 8)),
        lambda: model(tokens(length=9), kv_cache=Cache(model.config)),
    ):
        with pytest.raises(ValueError, match=TOLD):
            call()


def test_a_growing_text_is_rejected_at_the_limit() -> None:
    model = Transformer(config()).eval()
    cache = Cache(model.config)
    model(tokens(length=7), kv_cache=cache)
    model(tokens(length=1), kv_cache=cache)
    with pytest.raises(ValueError, match=TOLD):
        model(tokens(length=1), kv_cache=cache)


def test_padding_and_restarted_positions_do_not_count() -> None:
    """There are nine columns, but no text has more than eight tokens."""
    model = Transformer(config())
    left = torch.arange(9) - 1
    assert left[0] == PADDING_POSITION
    twice = torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 3])
    model(tokens(length=9), torch.stack([left, twice]))


def test_the_length_is_checked_on_the_meta_device() -> None:
    """The meta device has no numbers to read, and on a GPU the check does not wait."""
    with torch.device("meta"):
        model = Transformer(config())
        model(torch.zeros(2, 8, dtype=torch.long))
        with pytest.raises(ValueError, match=TOLD):
            model(torch.zeros(2, 9, dtype=torch.long))


def test_encoder_and_decoder_check_the_length() -> None:
    model = EncoderDecoder(EncoderDecoderConfig(config(AttentionPattern(causal=False)), config()))
    model(tokens(length=8), tokens(length=8))
    for source, target in ((9, 8), (8, 9)):
        with pytest.raises(ValueError, match=TOLD):
            model(tokens(length=source), tokens(length=target))


@pytest.mark.prove
def test_the_length_check_compiles_without_graph_breaks() -> None:
    model = Transformer(config()).eval()
    whole = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(whole(tokens(length=8)), model(tokens(length=8)))
