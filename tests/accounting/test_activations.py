"""Predicted saved bytes equal the bytes that autograd keeps, in total and for each part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from lmcourse.accounting.activations import predict_block_bytes, predict_saved_bytes
from lmcourse.accounting.forward_pass import PARTS
from lmcourse.accounting.saved import SavedTensors
from lmcourse.models.config import TransformerConfig
from lmcourse.models.loss import next_token_loss
from lmcourse.nn.attention import AttentionConfig, AttentionTemperatureConfig
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.block import BlockConfig, LayerConfig
from lmcourse.nn.feed_forward import Activation, FeedForwardConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import AlibiConfig, RelativePositionBiasConfig, RelativePositionVectorsConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.nn.rotary import RotaryConfig
from lmcourse.training.activation_checkpointing import apply_activation_checkpointing
from tests.accounting.random_models import LONGEST, transformers
from tests.accounting.saved_by_autograd import (
    build,
    part_of,
    saved_by_block,
    saved_by_model,
)
from tests.models.tiny import SPARSE, architectures

pytestmark = pytest.mark.usefixtures("one_thread")
"""With tiny models several threads cost forty times what they save."""

BATCH, LENGTH, D, HEADS = 3, 7, 24, 4
LAYER_NORM = NormConfig("layer", bias=True)

LAYOUTS: dict[str, dict[str, Any]] = {
    "pre": {},
    "post": {"placement": "post"},
    "double": {"placement": "double"},
    "output": {"placement": "output"},
    "parallel": {"branches": "parallel"},
    "parallel, two norms": {"branches": "parallel_two_norms"},
    "dropout": {"dropout": 0.1},
    "parallel, dropout": {"branches": "parallel", "dropout": 0.1},
}
PRECISIONS: dict[str, dict[str, Any]] = {
    "fp32": {},
    "fp64": {"dtype": torch.float64},
    "bf16": {"dtype": torch.bfloat16},
    "fp16": {"dtype": torch.float16},
    "autocast": {"autocast": True},
}
PATHS: dict[str, tuple[str, dict[str, Any]]] = {
    "fused": ("fused", {}),
    "fused, dropout": ("fused", {"dropout": 0.1}),
    "fused, window": ("fused", {"pattern": AttentionPattern("window", 3)}),
    "fused, seen from both sides": ("fused", {"pattern": AttentionPattern(causal=False)}),
    "readable": ("readable", {}),
    "readable, dropout": ("readable", {"dropout": 0.1}),
    "soft cap": ("fused", {"soft_cap": 20.0}),
    "Shaw": ("fused", {"relative_position_vectors": RelativePositionVectorsConfig(2), "dropout": 0.1}),
    "Shaw, keys only": ("fused", {"relative_position_vectors": RelativePositionVectorsConfig(2, on_values=False)}),
}
QK_TRANSFORMS: dict[str, dict[str, Any]] = {
    "halves": {"rotary": RotaryConfig()},
    "interleaved": {"rotary": RotaryConfig(layout="interleaved")},
    "part of a head": {"rotary": RotaryConfig(fraction=0.34)},
    "part, interleaved": {"rotary": RotaryConfig(fraction=0.34, layout="interleaved")},
    "temperature": {"temperature": AttentionTemperatureConfig(2, 0.1)},
    **{
        f"{norm.kind} norm, over {over}, late {late}": {
            "rotary": RotaryConfig(fraction=0.34),
            "qk_norm": QKNormConfig(norm, over, late),
        }
        for norm in (LAYER_NORM, NormConfig("rms"))
        for over in ("head", "heads", "width")
        for late in (False, True)
    },
}


def one_block(
    attention: dict[str, Any] | None = None,
    block: dict[str, Any] | None = None,
    *,
    norm: NormConfig = NormConfig("rms"),  # noqa: B008  # frozen
    feed_forward: FeedForwardConfig | None = None,
    **model: Any,
) -> TransformerConfig:
    layer = LayerConfig(AttentionConfig(HEADS, **(attention or {})), feed_forward or FeedForwardConfig(20, bias=True))
    return TransformerConfig(53, D, (layer,), BlockConfig(norm, **(block or {})), **model)


def assert_block(config: TransformerConfig, form: str = "fused", batch: int = BATCH, **precision: Any) -> None:
    predicted = predict_block_bytes(config, batch, LENGTH, attention=form, **precision)
    assert_same(predicted.parts, saved_by_block(config, batch, LENGTH, form=form, **precision), **precision)


def assert_same(predicted: Any, kept: SavedTensors, autocast: bool = False, **_: Any) -> None:
    assert sum(predicted.values()) == kept.total
    if not autocast:  # all copies of weights belong to one part, no matter where they were made
        assert dict(predicted) == dict(kept.by(part_of))


CORNERS = [
    *((layout, "fp32", "fused") for layout in LAYOUTS),
    *(("pre", precision, "fused") for precision in PRECISIONS),
    *(("pre", precision, path) for path in PATHS for precision in ("fp32", "bf16", "autocast")),
    ("dropout", "autocast", "fused, dropout"),
    ("parallel, dropout", "bf16", "readable, dropout"),
]


@pytest.mark.parametrize(("layout", "precision", "path"), dict.fromkeys(CORNERS))
def test_every_layout_and_precision_saves_the_predicted_bytes(layout: str, precision: str, path: str) -> None:
    form, attention = PATHS[path]
    assert_block(one_block(attention, LAYOUTS[layout]), form, **PRECISIONS[precision])


@pytest.mark.parametrize(("precision", "form"), [("fp32", "fused"), ("bf16", "readable")])
@pytest.mark.parametrize("qk_transform", QK_TRANSFORMS)
def test_every_qk_transform_saves_the_predicted_bytes(qk_transform: str, precision: str, form: str) -> None:
    for key_heads in (HEADS, 2, 1):
        assert_block(one_block({**QK_TRANSFORMS[qk_transform], "kv_heads": key_heads}), form, **PRECISIONS[precision])


@pytest.mark.parametrize(("form", "dropout"), [("fused", 0.0), ("fused", 0.1), ("readable", 0.1)])
@pytest.mark.parametrize("key_heads", [HEADS, 2, 1])
@pytest.mark.parametrize("batch", [1, 2])
def test_views_with_one_text_or_head_are_not_copied(batch: int, key_heads: int, dropout: float, form: str) -> None:
    attention = {"kv_heads": key_heads, "dropout": dropout}
    for variant in ({}, {"rotary": RotaryConfig()}, {"relative_position_vectors": RelativePositionVectorsConfig(2)}):
        assert_block(one_block({**attention, **variant}), form, batch)
    single = one_block().with_(layers=(LayerConfig(AttentionConfig(1, dropout=dropout), FeedForwardConfig(20)),))
    assert_block(single, form, batch)


POSITION_BIASES = [
    (bias, precision, form)
    for bias in (AlibiConfig(), AlibiConfig(falcon_bf16=True), RelativePositionBiasConfig(8, 16))
    for precision, form in (("fp32", "fused"), ("bf16", "readable"), ("autocast", "fused"))
]


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize(("bias", "precision", "form"), POSITION_BIASES)
def test_position_biases_save_the_predicted_bytes(bias: Any, precision: str, form: str, dropout: float) -> None:
    assert_block(one_block({"dropout": dropout}, position_bias=bias), form, **PRECISIONS[precision])


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("kind", get_args(Activation))
def test_every_activation_saves_the_predicted_bytes(kind: Activation, gated: bool) -> None:
    for precision in (PRECISIONS["bf16"], PRECISIONS["autocast"]):
        assert_block(one_block(feed_forward=FeedForwardConfig(20, kind, gated)), **precision)


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize(("scale", "unit_offset"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("bias", [False, True])
def test_every_norm_saves_the_predicted_bytes(kind: Any, scale: bool, unit_offset: bool, bias: bool) -> None:
    norm = NormConfig(kind, scale=scale, bias=bias, unit_offset=unit_offset)
    for precision in (PRECISIONS["fp32"], PRECISIONS["autocast"]):
        assert_block(one_block(norm=norm), **precision)


@pytest.mark.parametrize(("key_heads", "rotary"), [(HEADS, None), (2, RotaryConfig())])
@pytest.mark.parametrize(
    ("precision", "path"), [*(("fp32", path) for path in PATHS), ("autocast", "fused"), ("autocast", "readable")]
)
def test_value_residuals_save_the_predicted_bytes(
    precision: str, path: str, key_heads: int, rotary: RotaryConfig | None
) -> None:
    form, attention = PATHS[path]
    config = one_block({**attention, "kv_heads": key_heads, "rotary": rotary})
    first = config.layers[0]
    mixing = replace(first, attention=replace(first.attention, value_residual=True))
    config = config.with_(layers=(first, mixing, mixing))
    kept = saved_by_model(config, BATCH, LENGTH, form=form, **PRECISIONS[precision])
    predicted = predict_saved_bytes(config, BATCH, LENGTH, attention=form, **PRECISIONS[precision])
    assert_same(predicted.parts, kept, **PRECISIONS[precision])


TINY = architectures() | SPARSE


@pytest.mark.prove
@pytest.mark.parametrize("name", sorted(TINY))
def test_every_zoo_model_saves_the_predicted_bytes(name: str) -> None:
    predicted = predict_saved_bytes(TINY[name], 2, 21)
    assert_same(predicted.parts, saved_by_model(TINY[name], 2, 21))


@pytest.mark.parametrize("precision", ["fp16", "bf16", "autocast"])
@pytest.mark.parametrize("name", ["opt-350m", "gemma-2-9b"])
def test_whole_models_save_the_predicted_bytes_in_every_precision(name: str, precision: str) -> None:
    kept = saved_by_model(TINY[name], 2, 21, **PRECISIONS[precision])
    assert_same(predict_saved_bytes(TINY[name], 2, 21, **PRECISIONS[precision]).parts, kept, **PRECISIONS[precision])


@pytest.mark.parametrize(("name", "precision"), [("gpt-2", "bf16"), ("bert-base", "fp32"), ("gemma-3-4b", "autocast")])
def test_activation_checkpointing_keeps_block_inputs(name: str, precision: str) -> None:
    config = TINY[name]
    kept = saved_by_model(config, 2, 21, recompute=True, **PRECISIONS[precision])
    predicted = predict_saved_bytes(config, 2, 21, activation_checkpointing="blocks", **PRECISIONS[precision])
    assert predicted.total == kept.total
    width = 2 if precision == "bf16" else 4
    assert predicted["blocks"] == len(config.layers) * 2 * 21 * config.d_model * width


@st.composite
def varied(draw: st.DrawFn) -> TransformerConfig:
    """Draw a random model with dropout, any non-linearity and any rotation."""
    config = draw(transformers())
    share = st.sampled_from([0.0, 0.1])

    def vary(layer: LayerConfig) -> LayerConfig:
        kind = draw(st.sampled_from(get_args(Activation)))
        rotary = layer.attention.rotary and RotaryConfig(layout=draw(st.sampled_from(["half", "interleaved"])))
        attention = replace(layer.attention, dropout=draw(share), rotary=rotary)
        return LayerConfig(attention, replace(layer.feed_forward, activation=kind))

    return config.with_(
        layers=tuple(map(vary, config.layers)),
        block=replace(config.block, dropout=draw(share)),
        embedding=replace(config.embedding, dropout=draw(share)),
    )


@given(
    config=varied(),
    batch=st.integers(1, 3),
    seq_len=st.integers(2, LONGEST),
    form=st.sampled_from(["fused", "readable"]),
    autocast=st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_random_models_save_the_predicted_bytes(
    config: TransformerConfig, batch: int, seq_len: int, form: Any, autocast: bool
) -> None:
    assume(all(layer.attention.head_width(config.d_model) > 1 for layer in config.layers))
    kept = saved_by_model(config, batch, seq_len, form=form, autocast=autocast)
    predicted = predict_saved_bytes(config, batch, seq_len, attention=form, autocast=autocast)
    assert_same(predicted.parts, kept, autocast)
    assert list(predicted.parts) == [part for part in PARTS if part in predicted.parts]


def test_a_learned_bias_is_not_recomputed_with_its_blocks() -> None:
    config = one_block(position_bias=RelativePositionBiasConfig(8, 16))
    patterns = (AttentionPattern(), AttentionPattern("window", 3), AttentionPattern())
    layers = tuple(
        replace(config.layers[0], attention=replace(config.layers[0].attention, pattern=s)) for s in patterns
    )
    config = config.with_(layers=layers)
    predicted = predict_saved_bytes(config, BATCH, LENGTH, activation_checkpointing="blocks")
    assert predicted.total == saved_by_model(config, BATCH, LENGTH, recompute=True).total
    model, tokens = build(config), torch.randint(53, (2, LENGTH))
    next_token_loss(model(tokens), tokens).backward()
    plain = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    apply_activation_checkpointing(model)
    next_token_loss(model(tokens), tokens).backward()
    torch.testing.assert_close([parameter.grad for parameter in model.parameters()], plain)


REFUSED: dict[str, tuple[str, Callable[[], Any]]] = {
    "one token": ("a seq_len of at least 2", lambda: predict_saved_bytes(one_block(), 1, 1)),
    "no text": ("a batch of at least 1", lambda: predict_block_bytes(one_block(), 0, 8)),
    "one feature": ("at least 2 features", lambda: predict_saved_bytes(one_block({"d_head": 1}), 1, 8)),
    "autocast of bf16": (
        "fp32 parameters",
        lambda: predict_saved_bytes(one_block(), 1, 8, dtype=torch.bfloat16, autocast=True),
    ),
    "no form": ("form of attention", lambda: predict_block_bytes(one_block(), 1, 8, attention="flash")),  # type: ignore[arg-type]
    "no checkpointing": (
        "activation_checkpointing",
        lambda: predict_saved_bytes(one_block(), 1, 8, activation_checkpointing="all"),
    ),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_arguments_are_rejected(case: str) -> None:
    message, call = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        call()
