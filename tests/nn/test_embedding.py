"""Test embedding and head: from tokens to vectors, and from vectors to logits."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.nn.attention_pattern import PADDING_POSITION
from lmcourse.nn.embedding import Embedding, EmbeddingConfig, Head, HeadConfig, sinusoidal
from lmcourse.nn.norm import NormConfig

V, D = 11, 6
TOKENS = torch.tensor([[3, 0, 10], [1, 1, 7]])
AT = torch.tensor([[0, 1, 2], [4, 5, 6]])


def built(config: EmbeddingConfig) -> Embedding:
    torch.manual_seed(0)
    return Embedding(config, V, D)


def test_learned_positions_start_at_the_offset() -> None:
    embedding = built(EmbeddingConfig("learned", max_positions=7, position_offset=2))
    assert embedding.positions is not None
    assert embedding.positions.weight.shape == (9, D)
    expected = embedding.tokens.weight[TOKENS] + embedding.positions.weight[AT + 2]
    torch.testing.assert_close(embedding(TOKENS, AT), expected)
    with pytest.raises(ValueError, match=r"^a text of 8 tokens is longer than the 7 learned positions$"):
        embedding(TOKENS, AT + 1)


def test_a_token_outside_the_vocabulary_is_named() -> None:
    with pytest.raises(ValueError, match=rf"token {int(TOKENS.max()) + 8} is not in the model's vocabulary"):
        built(EmbeddingConfig("learned", max_positions=7))(TOKENS + 8, AT)


def test_the_original_embedding_matches_the_formula() -> None:
    embedding = built(EmbeddingConfig("sinusoidal", scale=D**0.5))
    expected = embedding.tokens.weight[TOKENS] * D**0.5 + sinusoidal(AT, D)
    torch.testing.assert_close(embedding(TOKENS, AT), expected)


def test_embedding_applies_norm_and_projection() -> None:
    embedding = built(EmbeddingConfig(width=4, scale=3.0, norm=NormConfig("layer", bias=True)))
    assert embedding.tokens.weight.shape == (V, 4)
    projected = 3 * embedding.tokens.weight[TOKENS] @ embedding.project.weight.T
    torch.testing.assert_close(embedding(TOKENS, AT), F.layer_norm(projected, (D,)))


def test_dropout_is_active_only_in_training() -> None:
    embedding = built(EmbeddingConfig(dropout=0.5))
    clean = embedding.tokens.weight[TOKENS]
    assert torch.equal(embedding.eval()(TOKENS, AT), clean)
    dropped = embedding.train()(TOKENS, AT)
    assert ((dropped == 0) | torch.isclose(dropped, 2 * clean)).all()
    assert (dropped == 0).any()


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_padding_has_no_position(positions: str) -> None:
    embedding = built(EmbeddingConfig(positions, max_positions=7 if positions == "learned" else None))  # type: ignore[arg-type]
    assert embedding(TOKENS, torch.full_like(AT, PADDING_POSITION)).isfinite().all()


def logits(config: HeadConfig, width: int | None = None) -> tuple[Head, Embedding, Tensor]:
    embedding = built(EmbeddingConfig(width=width))
    head = Head(config, embedding, D)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_()
    return head, embedding, torch.randn(2, 3, D)


def test_a_tied_head_shares_its_tensor_with_the_embedding() -> None:
    head, embedding, x = logits(HeadConfig())
    assert head.linear.weight is embedding.tokens.weight
    torch.testing.assert_close(head(x), x @ embedding.tokens.weight.T)
    head.double()
    embedding.load_state_dict(embedding.state_dict())
    assert head.linear.weight is embedding.tokens.weight
    untied, embedding, _ = logits(HeadConfig(tied=False))
    assert untied.linear.weight is not embedding.tokens.weight


def test_head_applies_bias_scale_and_soft_cap() -> None:
    head, _, x = logits(HeadConfig(tied=False, bias=True, scale=0.25, soft_cap=2.0))
    plain = (x @ head.linear.weight.T + head.linear.bias) * 0.25
    torch.testing.assert_close(head(x), 2 * torch.tanh(plain / 2))
    assert head(1000 * x).abs().max() <= 2


def test_a_narrow_tied_head_projects_first() -> None:
    head, embedding, x = logits(HeadConfig(), width=4)
    torch.testing.assert_close(head(x), x @ head.project.weight.T @ embedding.tokens.weight.T)
