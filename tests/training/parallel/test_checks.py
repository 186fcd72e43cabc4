"""Models and runs that cannot be divided are rejected in one line before training starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from torch import nn

from lmcourse.models.config import TransformerConfig
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import gpt_like, llama_like
from lmcourse.nn.embedding import EmbeddingConfig, HeadConfig
from lmcourse.nn.position_bias import AlibiConfig, RelativePositionBiasConfig, RelativePositionVectorsConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.training.run_config import ModelChanges
from lmcourse.training.training_config import Parallelism, TrainingConfig

TENSOR, SEQUENCE = Parallelism(tensor_parallel=4), Parallelism(tensor_parallel=4, sequence_parallel=True)
STAGES = Parallelism(pipeline_parallel=2)
UNTIED = HeadConfig(tied=False)


def gpt(**changes: Any) -> TransformerConfig:
    sizes = {"layers": 4, "d_model": 32, "heads": 4, "vocab_size": 256, "context": 16} | changes
    return gpt_like(**sizes)


MIXED_VALUES = ModelChanges(value_residual=True).apply(gpt())


def refused(model: nn.Module, parallel: Parallelism, **changes: Any) -> str:
    from lmcourse.training.parallel.parallelize import check_divisible

    config = TrainingConfig(1, 4, 16, grad_accum_steps=4, parallel=parallel)
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the caller looks at the message
        check_divisible(model, replace(config, **changes))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("config", "parallel", "said"),
    [
        (gpt(kv_heads=2), TENSOR, "layer 0: the key heads, 2, cannot be divided among 4 processes"),
        (gpt(vocab_size=255), TENSOR, "the vocabulary, 255, cannot be divided among 4 processes"),
        (gpt(feed_forward={"width": 50}), TENSOR, "layer 0: the feed-forward width, 50, cannot"),
        (gpt(relative_position_vectors=RelativePositionVectorsConfig(4)), TENSOR, "all heads share Shaw's vectors"),
        (gpt(qk_norm=QKNormConfig(over="width")), TENSOR, "a QK-norm must be over 'head'"),
        (gpt(qk_norm=QKNormConfig(over="heads")), TENSOR, "a QK-norm must be over 'head'"),
        (MIXED_VALUES, TENSOR, "layer 1: tensor_parallel divides heads, but all heads share the weight"),
        (MIXED_VALUES, STAGES, "every layer of a value residual needs the first layer's values"),
        (gpt(embedding=EmbeddingConfig(width=16)), TENSOR, "an embedding whose width differs from d_model"),
        (gpt().with_(position_bias=AlibiConfig()), TENSOR, "a position bias covers all of them"),
        (gpt().with_(position_bias=RelativePositionBiasConfig()), STAGES, "a learned position bias is shared"),
        (gpt(layers=1, head=UNTIED), STAGES, "1 layers are too few for 2 stages"),
    ],
)
def test_models_that_cannot_be_divided_are_rejected(
    config: TransformerConfig, parallel: Parallelism, said: str
) -> None:
    assert said in refused(Transformer(config), parallel)


@pytest.mark.parametrize(
    ("parallel", "changes", "said"),
    [
        (SEQUENCE, {"seq_len": 18}, "a seq_len of 18 cannot be divided evenly among 4 processes"),
        (STAGES, {"grad_accum_steps": 1}, "set grad_accum_steps to at least 2, or use gpipe"),
        (TENSOR, {"precision": "fp16"}, "use bf16, or only data_parallel"),
        (Parallelism(fsdp=2), {"precision": "fp16"}, "use bf16, or only data_parallel"),
        (STAGES, {"compile": True}, "leave it out with tensor_parallel or pipeline_parallel"),
    ],
)
def test_runs_that_cannot_be_divided_are_rejected(parallel: Parallelism, changes: dict[str, Any], said: str) -> None:
    assert said in refused(Transformer(gpt(head=UNTIED)), parallel, **changes)


@pytest.mark.parametrize("parallel", [TENSOR, STAGES], ids=str)
def test_other_models_allow_only_data_parallelism(parallel: Parallelism) -> None:
    from lmcourse.training.parallel.parallelize import check_divisible

    model = nn.Linear(4, 4)
    assert "divide a Transformer, not a Linear" in refused(model, parallel)
    check_divisible(model, TrainingConfig(1, 4, 16, parallel=Parallelism(data_parallel=2, fsdp=2)))


@pytest.mark.parametrize(
    ("parallel", "changes"),
    [
        (Parallelism(data_parallel=2), {"precision": "fp16", "compile": True}),
        (Parallelism(pipeline_parallel=2, pipeline_schedule="gpipe"), {"grad_accum_steps": 1}),
        (
            Parallelism(pipeline_parallel=4, tensor_parallel=2, sequence_parallel=True, fsdp=2),
            {"precision": "bf16", "activation_checkpointing": True},
        ),
    ],
)
def test_divisible_runs_are_accepted(parallel: Parallelism, changes: dict[str, Any]) -> None:
    from lmcourse.training.parallel.parallelize import check_divisible

    model = Transformer(llama_like(4, 32, 4, 96, vocab_size=256, context=16, kv_heads=2))
    check_divisible(model, replace(TrainingConfig(1, 4, 16, grad_accum_steps=4, parallel=parallel), **changes))
