"""Computed FLOPs equal the count of torch's FlopCounterMode, in total and for each part."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import set_checkpoint_early_stop
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.counter import count_flops, counted_flops
from lmcourse.accounting.flops import forward_flops, training_flops
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import all_models, find_model
from lmcourse.models.zoo.entry import Entry
from lmcourse.models.zoo.styles import RMS, gpt_like, llama_like
from lmcourse.nn import attention as attention_module
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import RelativePositionVectorsConfig
from lmcourse.training.activation_checkpointing import apply_activation_checkpointing
from tests.accounting.built import on_cpu, on_meta
from tests.accounting.random_models import LONGEST, encoder_decoders, transformers
from tests.models.tiny import LENGTH, SPARSE, architectures

LENGTHS = st.integers(2, LONGEST)
BATCHES = st.integers(1, 3)
SOURCE = 37


def shortened(config: TransformerConfig) -> TransformerConfig:
    """Keep the first layer of every kind; tests with smaller models cover the sum over layers."""
    return config.with_(layers=tuple(dict.fromkeys(config.layers)))


def assert_counted(
    counted: Breakdown[int],
    config: TransformerConfig | EncoderDecoderConfig,
    batch: int,
    seq_len: int,
    **source: int,
) -> None:
    predicted = training_flops(config, batch, seq_len, **source)
    assert predicted.forward.total == counted["forward"]
    assert predicted.backward.total == counted["backward"]


@pytest.mark.prove
@pytest.mark.parametrize("entry", all_models(), ids=lambda entry: entry.name)
def test_every_zoo_model_matches_torchs_count_at_its_width(entry: Entry) -> None:
    if isinstance(entry.config, EncoderDecoderConfig):
        config: Any = EncoderDecoderConfig(shortened(entry.config.encoder), shortened(entry.config.decoder))
        source = {"source": SOURCE}
    else:
        config, source = shortened(entry.config), {}
    assert_counted(counted_flops(config, 3, 50, backward=True, **source), config, 3, 50, **source)


@pytest.mark.prove
@pytest.mark.parametrize("config", [*architectures().values(), *SPARSE.values()], ids=[*architectures(), *SPARSE])
def test_tiny_models_with_short_windows_match_torchs_count(config: TransformerConfig) -> None:
    assert_counted(count_flops(partial(*on_cpu(config)), backward=True), config, 2, LENGTH)


@settings(max_examples=25, deadline=None)
@given(config=transformers(), batch=BATCHES, seq_len=LENGTHS)
def test_models_of_odd_sizes_match_torchs_count(config: TransformerConfig, batch: int, seq_len: int) -> None:
    counted = count_flops(lambda: Transformer(config)(zeros(batch, seq_len)), backward=True)
    assert_counted(counted, config, batch, seq_len)


@settings(max_examples=8, deadline=None)
@given(config=encoder_decoders(), batch=BATCHES, seq_len=LENGTHS, source=LENGTHS)
def test_encoder_decoders_of_odd_sizes_match_torchs_count(
    config: EncoderDecoderConfig, batch: int, seq_len: int, source: int
) -> None:
    counted = count_flops(lambda: EncoderDecoder(config)(zeros(batch, source), zeros(batch, seq_len)), backward=True)
    assert_counted(counted, config, batch, seq_len, source=source)


def zeros(batch: int, seq_len: int) -> Tensor:
    """Return texts in which every token is token 0."""
    return torch.zeros(batch, seq_len, dtype=torch.long)


PLACES = {
    "embedding.project": "embedding projection",
    "attention.qkv": "attention q, k, v",
    "attention.out": "attention out",
    "cross.q": "cross-attention q",
    "cross.kv": "cross-attention k, v",
    "cross.out": "cross-attention out",
    "feed_forward": "feed-forward",
    "head.project": "head projection",
    "head.linear": "head",
    "attention": "attention itself",
    "cross": "cross-attention itself",
}
"""Modules, with the part to which their products count. The part "attention" excludes the projections."""


def counted_parts(model: nn.Module, *texts: Tensor) -> dict[str, int]:
    """Count the FLOPs of a forward pass by module, with plain attention as in `count_flops`."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(*texts)
    sizes: Counter[str] = Counter()
    for name, counts in counter.get_flop_counts().items():
        steps = name.split(".")[1:]
        path = ".".join(step for step in steps if not step.isdecimal() and step not in ("blocks", "layer", "encoder"))
        if path in PLACES and steps[-1] != "layer":
            sizes[PLACES[path]] += sum(counts.values())
    sizes["attention itself"] -= sizes["attention q, k, v"] + sizes["attention out"]
    sizes["cross-attention itself"] -= sizes["cross-attention q"] + sizes["cross-attention out"]
    return {part: size for part, size in sizes.items() if size}


def predicted_parts(config: TransformerConfig | EncoderDecoderConfig, **source: int) -> dict[str, int]:
    sizes: Counter[str] = Counter()
    itself = {f"attention {part}": "attention itself" for part in ("scores", "values")}
    itself |= {f"cross-{part}": "cross-attention itself" for part in itself} | {
        "relative positions": "attention itself"
    }
    for part, size in forward_flops(config, 2, LENGTH, **source):
        sizes[itself.get(part, part)] += size
    return dict(sizes)


SHAW = gpt_like(2, 32, 4, vocab_size=53, context=64, relative_position_vectors=RelativePositionVectorsConfig(3))


PARTWISE = {name: architectures()[name] for name in ("gpt-2", "opt-350m", "falcon-7b", "gemma-2-9b")} | {"shaw": SHAW}


@pytest.mark.parametrize("config", PARTWISE.values(), ids=PARTWISE)
def test_every_part_matches_torchs_count(config: TransformerConfig) -> None:
    model, tokens = on_cpu(config)
    assert predicted_parts(config) == counted_parts(model, tokens)


@pytest.mark.parametrize("name", ["transformer-base", "t5-v1.1-small"])
def test_each_part_of_encoder_decoders_matches_torchs_count(name: str) -> None:
    config = find_model(name).config
    assert isinstance(config, EncoderDecoderConfig)
    with torch.device("meta"):
        model = EncoderDecoder(config)
        source, target = (torch.zeros(2, seq_len, dtype=torch.long) for seq_len in (SOURCE, LENGTH))
    assert predicted_parts(config, source=SOURCE) == counted_parts(model, source, target)


@pytest.mark.parametrize("name", ["gpt-2", "opt-350m"])
def test_last_token_logits_take_fewer_flops(name: str) -> None:
    config = find_model(name).decoder
    model, tokens = on_meta(config)
    counted = count_flops(lambda: model.head(model.encode(tokens)[:, -1])).total
    assert forward_flops(config, 2, LENGTH, logits="last").total == counted


TINY = llama_like(1, 8, 2, 8, vocab_size=5, context=64, norm=RMS)
T5 = find_model("t5-small").config


@pytest.mark.parametrize(
    ("config", "arguments", "message"),
    [
        (TINY, {"batch": 0}, "must be positive"),
        (TINY, {"seq_len": 0}, "must be positive"),
        (TINY, {"past": -1}, "must not be negative"),
        (TINY, {"source": 3}, "if and only if"),
        (T5, {}, "`source`, the length"),
        (T5, {"source": 0}, "must be positive"),
        (find_model("bert-base").config, {"past": 1}, "no KV cache"),
        (TINY, {"pairs": "some"}, "there is no choice of pairs 'some'; choose from 'all', 'visible'"),
        (TINY, {"logits": "first"}, "there is no choice of logits 'first'"),
    ],
)
def test_impossible_arguments_are_rejected_in_one_line(config: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        forward_flops(config, **{"batch": 1, "seq_len": 1, **arguments})
    assert "\n" not in str(refusal.value)


def flash(q: Tensor, k: Tensor, v: Tensor, visible: Any, bias: Any = None, *, causal: bool, **others: Any) -> Tensor:
    """Count CUDA's flash-attention operator."""
    result: Tensor = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)[0]
    return result


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_fused_kernels_recompute_the_scores(kv_heads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_module, "attend_fused", flash)
    config = llama_like(3, 64, 4, 96, vocab_size=53, context=64, kv_heads=kv_heads)
    model, tokens = on_meta(config)
    counted = count_flops(partial(model, tokens), backward=True)
    predicted = training_flops(config, 2, LENGTH, recompute="attention")
    assert counted["forward"] == predicted.forward.total
    assert counted["backward"] == predicted.backward.total + predicted.recomputed.total
    attention = predicted.forward["attention scores"] + predicted.forward["attention values"]
    assert 2 * (2 * attention + predicted.recomputed.total) == 5 * attention


def checkpointed(config: TransformerConfig) -> int:
    model, tokens = on_cpu(config)
    apply_activation_checkpointing(model)
    return count_flops(partial(model, tokens), backward=True).total


@pytest.mark.parametrize("name", ["gpt-2", "gemma-2-9b", "falcon-7b", "bert-base"])
def test_checkpointed_blocks_run_forward_twice(name: str) -> None:
    config = architectures()[name]
    with set_checkpoint_early_stop(False):
        counted = checkpointed(config)
    assert training_flops(config, 2, LENGTH, recompute="blocks").hardware.total == counted


def test_torch_may_skip_a_blocks_last_product_when_recomputing() -> None:
    config = architectures()["llama-7b"]
    last = sum(2 * 2 * LENGTH * layer.feed_forward.width * config.d_model for layer in config.layers)
    assert training_flops(config, 2, LENGTH, recompute="blocks").hardware.total == checkpointed(config) + last


@pytest.mark.parametrize(("scale", "left_out"), [(True, 0), (False, 1)])
def test_a_product_with_no_earlier_parameters_has_one_gradient(scale: bool, left_out: int) -> None:
    """A frozen embedding saves the first input gradient only if the norm after it has no parameters, either."""
    config = llama_like(3, 64, 4, 96, vocab_size=53, context=64, norm=NormConfig("rms", scale=scale))
    model, tokens = on_cpu(config)
    model.embedding.requires_grad_(False)
    counted = count_flops(partial(model, tokens), backward=True)
    first = forward_flops(config, 2, LENGTH)["attention q, k, v"] // 3
    assert counted["backward"] == training_flops(config, 2, LENGTH).backward.total - left_out * first


def test_an_unknown_recomputation_is_rejected() -> None:
    with pytest.raises(ValueError, match="there is no recomputation of 'all'"):
        training_flops(find_model("nano").config, 1, 1, recompute="all")  # type: ignore[arg-type]
