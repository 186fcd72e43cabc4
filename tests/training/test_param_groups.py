"""Compare the decaying parameters of every zoo architecture with the rule of transformers' Trainer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lmcourse.models.config import TransformerConfig
from lmcourse.models.transformer import Transformer
from lmcourse.nn.embedding import Embedding, Head
from lmcourse.nn.norm import Norm, NormConfig
from lmcourse.training.optimizers.rules import AdamW
from lmcourse.training.param_groups import matrix_groups, parameter_groups
from tests.models.tiny import architectures


def on_meta(config: TransformerConfig) -> Transformer:
    with torch.device("meta"):
        return Transformer(config)


@pytest.mark.prove
def test_matrices_of_every_architecture_decay_as_in_transformers() -> None:
    """Trainer's rule excludes norms and parameters called bias. Biases of attention scores do not count as biases."""
    from transformers.trainer_pt_utils import get_parameter_names

    for name, config in architectures().items():
        model = on_meta(config)
        decaying, others = parameter_groups(model, 0.1)
        assert (decaying["weight_decay"], others["weight_decay"]) == (0.1, 0.0)
        both = [*decaying["params"], *others["params"]]
        assert len(both) == len(set(both)), name
        assert set(both) == set(model.parameters()), name
        named = dict(model.named_parameters(remove_duplicate=False))
        theirs = get_parameter_names(model, [Norm], [r"(^|\.)bias$"])
        assert {id(p) for p in decaying["params"]} == {id(named[key]) for key in theirs}, name
        assert all(p.dim() >= 2 for p in decaying["params"]), name


def test_a_tied_matrix_is_in_the_optimizer_once() -> None:
    model = nn.ModuleDict({"embedding": nn.Embedding(5, 3), "head": nn.Linear(3, 5)})
    model["head"].weight = model["embedding"].weight
    decaying, others = parameter_groups(model, 0.1)
    assert [p.shape for p in decaying["params"]] == [(5, 3)]
    assert [p.shape for p in others["params"]] == [(5,)]
    AdamW([decaying, others])  # raises an error for parameters that occur twice


def test_scales_of_heads_do_not_decay() -> None:
    norm = Norm(NormConfig(kind="layer", bias=True), 4, 8)
    decaying, others = parameter_groups(nn.Sequential(norm, nn.Linear(8, 8)), 0.1)
    assert [p.shape for p in decaying["params"]] == [(8, 8)]
    assert [p.shape for p in others["params"]] == [(4, 8), (4, 8), (8,)]


def test_muon_gets_the_matrices_of_the_blocks() -> None:
    """They do not include embeddings, heads and norms; fused matrices have the rows of their parts."""
    for name in ("gpt-2", "bloom-560m", "falcon-7b", "qwen3-8b", "gemma-3-1b", "nano"):
        config = architectures()[name]
        model = on_meta(config)
        groups = matrix_groups(model)
        weights = [p for group in groups for p in group["params"]]
        assert len(weights) == len(set(weights)), name
        others = [m for m in model.modules() if isinstance(m, Embedding | Head | Norm | nn.Embedding)]
        assert not set(weights) & {p for module in others for p in module.parameters()}, name
        matrices = {id(m.weight) for m in model.blocks.modules() if isinstance(m, nn.Linear)}
        assert {id(p) for p in weights} == matrices, name
        assert all(sum(group["rows"]) == len(p) for group in groups if group["rows"] for p in group["params"]), name
        attention = config.layers[0].attention
        width = attention.head_width(config.d_model)
        parts = (attention.heads * width, attention.key_heads * width, attention.key_heads * width)
        assert parts in {group["rows"] for group in groups}, name


def test_muon_rejects_a_model_without_blocks() -> None:
    with pytest.raises(ValueError, match="muon is for the matrices of blocks, and a Linear has none: use adamw"):
        matrix_groups(nn.Linear(2, 2))
