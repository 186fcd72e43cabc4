"""Each wrong setting changes logits by more than the tolerance, so the parity tests detect it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.interop.families import FAMILIES
from lmcourse.models.interop.flat_config import flatten, unflatten
from lmcourse.models.interop.weight_layouts import concatenated
from lmcourse.models.transformer import Transformer
from lmcourse.nn.block import ParallelBlock
from lmcourse.nn.norm import Norm
from lmcourse.nn.position_bias import Alibi, AlibiConfig, RelativePositionBiasConfig
from lmcourse.nn.qk_norm import WidthNorm
from tests.interop.reference import TOLERANCE, batch_for, our_logits, their_logits
from tests.interop.samples import SAMPLES

from .test_parity import EVERY_SAMPLE

pytestmark = pytest.mark.prove

BY_NAME = {sample.name: sample for sample in SAMPLES}
OTHER = {"gelu": "gelu_tanh", "gelu_tanh": "gelu", "silu": "gelu", "relu": "gelu", "relu2": "relu"}


def turned(flat, **changes):
    return replace(flat.rotary, **changes)


# Likely mistakes of readers of papers: the sample, and the wrong fields.
MISTAKES = [
    ("llama2", "theta", lambda f: {"rotary": turned(f, theta=20_000.0)}),
    ("llama2", "interleaved", lambda f: {"rotary": turned(f, layout="interleaved")}),
    ("llama2", "no rotation", lambda f: {"rotary": None}),
    ("llama2", "LayerNorm", lambda f: {"norm": "layer"}),
    ("llama2", "1 + w", lambda f: {"unit_offset": True}),
    ("llama2", "scale 1/d", lambda f: {"scale": 1 / f.d_head}),
    ("llama-linear", "not scaled", lambda f: {"rotary": turned(f, linear_factor=1.0)}),
    ("llama3.1", "not scaled", lambda f: {"rotary": turned(f, scaling=None)}),
    ("llama3.1", "all scaled", lambda f: {"rotary": turned(f, scaling=None, linear_factor=8.0)}),
    ("llama3.1", "band", lambda f: {"rotary": turned(f, scaling=replace(f.rotary.scaling, high_freq_factor=3.0))}),
    ("llama-yarn", "not scaled", lambda f: {"rotary": turned(f, scaling=None)}),
    (
        "llama-yarn",
        "not sharpened",
        lambda f: {"rotary": turned(f, scaling=replace(f.rotary.scaling, attention_factor=1.0))},
    ),
    ("llama-yarn", "not rounded", lambda f: {"rotary": turned(f, scaling=replace(f.rotary.scaling, truncate=False))}),
    (
        "llama-longrope",
        "short for long",
        lambda f: {"rotary": turned(f, scaling=replace(f.rotary.scaling, original_context=40))},
    ),
    ("mistral", "no window", lambda f: {"local_layers": (), "local_span": None}),
    ("mistral", "chunk", lambda f: {"local_kind": "chunk"}),
    ("qwen2-window", "other layers", lambda f: {"local_layers": tuple(not near for near in f.local_layers)}),
    ("gpt2", "position offset", lambda f: {"position_offset": 1, "max_positions": f.max_positions - 1}),
    ("opt", "position offset", lambda f: {"position_offset": 0, "max_positions": f.max_positions + 2}),
    ("qwen3", "norm after turning", lambda f: {"qk_norm_after_rotary": True}),
    ("qwen3", "no norm on q and k", lambda f: {"qk_norm": None}),
    ("qwen2", "no biases", lambda f: {"bias": False}),
    ("gpt2", "no positions", lambda f: {"max_positions": None}),
    ("olmo", "RMS", lambda f: {"norm": "rms"}),
    ("olmo2", "norms before the branches", lambda f: {"placement": "pre"}),
    ("opt-350m", "norms before the branches", lambda f: {"placement": "pre"}),
    ("gemma", "no 1 + w", lambda f: {"unit_offset": False}),
    ("gemma", "no embedding scale", lambda f: {"embedding_scale": 1.0}),
    ("gemma2", "no cap on scores", lambda f: {"soft_cap": None}),
    ("gemma2", "no cap on logits", lambda f: {"logit_cap": None}),
    ("gemma2", "usual scale", lambda f: {"scale": None}),
    ("gemma2", "odd layers local", lambda f: {"local_layers": tuple(not near for near in f.local_layers)}),
    ("gemma3", "one theta", lambda f: {"local_rotary": None}),
    ("gemma3", "four local for one full", lambda f: {"local_layers": tuple((i + 1) % 5 != 0 for i in range(f.layers))}),
    ("gpt-neox", "all turned", lambda f: {"rotary": turned(f, fraction=1.0)}),
    ("gpt-j", "half", lambda f: {"rotary": turned(f, layout="half")}),
    ("gpt-j", "no bias in the head", lambda f: {"head_bias": False}),
    ("falcon-rw", "exact ALiBi", lambda f: {"position_bias": AlibiConfig()}),
    ("bloom", "rounded ALiBi", lambda f: {"position_bias": AlibiConfig(falcon_bf16=True)}),
    ("bloom", "no norm on the embedding", lambda f: {"embedding_norm": False}),
    ("mpt", "no ALiBi", lambda f: {"position_bias": None}),
    ("cohere-plus", "no norm on q and k", lambda f: {"qk_norm": None}),
    ("cohere", "no logit scale", lambda f: {"logit_scale": 1.0}),
    ("cohere", "half", lambda f: {"rotary": turned(f, layout="half")}),
    ("cohere2", "all turned", lambda f: {"rotary_layers": ()}),
    ("cohere2", "two local for one full", lambda f: {"local_layers": tuple((i + 1) % 3 != 0 for i in range(f.layers))}),
    ("smollm3", "all turned", lambda f: {"rotary_layers": ()}),
    ("granite", "no residual scale", lambda f: {"residual_scale": 1.0}),
    ("nanochat", "no norm on the embedding", lambda f: {"embedding_norm": False}),
    ("t5-v1.0", "scaled scores", lambda f: {"scale": None}),
    ("t5-v1.0", "unscaled logits", lambda f: {"logit_scale": 1.0}),
    ("t5-v1.1", "scaled logits", lambda f: {"logit_scale": f.d_model**-0.5}),
    ("t5-v1.1", "max_distance", lambda f: {"position_bias": RelativePositionBiasConfig(12, 26)}),
    ("llama4-dense", "norm before turning", lambda f: {"qk_norm_after_rotary": False}),
    ("llama4-dense", "no temperature", lambda f: {"temperature": None}),
    ("llama4-dense", "window", lambda f: {"local_kind": "window"}),
    ("llama4-dense", "another floor", lambda f: {"temperature": replace(f.temperature, floor_scale=9)}),
]


def off_by(sample, pair, changes) -> float:
    """Return the difference in logits if a model with changed fields gets the same weights."""
    config = unflatten(replace(flatten(pair.ours.config), **changes))
    model = Transformer(config) if flatten(config).encoder_layers is None else EncoderDecoder(config)
    weights = pair.ours.state_dict()
    if changes.get("placement") == "pre":
        # The same norms, one per branch, in another place.
        weights = {
            re.sub(r"\.(output_norm|post_norm)\.", ".input_norm.", name): weight for name, weight in weights.items()
        }
    missing, _ = model.load_state_dict(weights, strict=False)
    assert not missing, "a mistake may leave weights out, but has none of its own"
    return difference(model.eval(), sample, pair)


@torch.no_grad()
def difference(model, sample, pair) -> float:
    batch = batch_for(sample)
    return float((our_logits(model, batch) - their_logits(pair.theirs, batch)).abs().max())


@EVERY_SAMPLE
def test_every_wrong_field_changes_the_logits(sample, pairs) -> None:
    """This includes a window that is off by one, because (N, 0) in flash attention's convention means N + 1 keys."""
    pair = pairs(sample.name)
    flat = flatten(pair.ours.config)
    wrong = {mistake: change(flat) for name, mistake, change in MISTAKES if name == sample.name}
    wrong |= {"epsilon": {"eps": 10 * flat.eps}, "activation": {"activation": OTHER[flat.activation]}}
    if flat.local_span is not None:
        wrong |= {f"span {more:+d}": {"local_span": flat.local_span + more} for more in (-1, 1)}
    assert [mistake for mistake, changes in wrong.items() if off_by(sample, pair, changes) <= TOLERANCE] == []


def test_every_list_of_mistakes_belongs_to_a_sample() -> None:
    assert {name for name, _, _ in MISTAKES} <= BY_NAME.keys()


def serial(self, x, step):
    x = x + self.attention(self.norm(x), step)
    return x + self.feed_forward((self.norm_feed_forward or self.norm)(x))


def with_swapped_norms(self, x, step):
    return x + self.attention(self.norm_feed_forward(x), step) + self.feed_forward(self.norm(x))


def per_head(self, x):
    return F.rms_norm(x, x.shape[-1:], eps=self.norm.eps) * self.norm.weight.view(x.shape[1], 1, -1)


def epsilon_outside_the_root(self, x):
    centered = x - x.mean(dim=-1, keepdim=True) if self.centered else x
    scaled = centered / (centered.square().mean(dim=-1, keepdim=True).sqrt() + self.eps)
    scaled = scaled if self.weight is None else scaled * (self.weight + self.offset)
    return scaled if self.bias is None else scaled + self.bias


def slopes_of_a_power_of_two(self, q, k):
    slopes = 2.0 ** -(8 / 6 * torch.arange(1, 7))
    return -slopes[:, None, None] * (q[:, None, :, None] - k[:, None, None, :])


PARALLEL = ("cohere", "falcon-7b", "falcon-40b", "gpt-j", "gpt-neox", "phi-2")


@pytest.mark.parametrize(
    ("name", "layer", "wrong"),
    [
        *(
            (name, ParallelBlock, serial)
            for name in ("cohere", "falcon-7b", "falcon-40b", "gpt-j", "gpt-neox", "phi-2")
        ),
        *((name, ParallelBlock, with_swapped_norms) for name in ("falcon-40b", "gpt-neox")),
        ("olmo2", WidthNorm, per_head),
        ("bloom", Alibi, slopes_of_a_power_of_two),
        *((name, Norm, epsilon_outside_the_root) for name in ("llama2", "gpt2")),
    ],
)
def test_a_layer_with_another_formula_is_detected(name, layer, wrong, pairs, monkeypatch) -> None:
    pair = pairs(name)
    monkeypatch.setattr(layer, "forward", wrong)
    assert difference(pair.ours, BY_NAME[name], pair) > TOLERANCE


def test_bidirectional_buckets_in_the_decoder_are_detected(pairs) -> None:
    pair = pairs("t5-v1.1")
    config = pair.ours.config
    model = EncoderDecoder(replace(config, decoder=config.decoder.with_(position_bias=config.encoder.position_bias)))
    model.load_state_dict(pair.ours.state_dict())
    assert difference(model.eval(), BY_NAME["t5-v1.1"], pair) > TOLERANCE


QKV, OUT, GATE_UP = "blocks.*.attention.qkv", "blocks.*.attention.out", "blocks.*.feed_forward.gate_up"


def swapped(first, second, *rest):
    """Swap key and value if q, k, v have unequal heights, otherwise gate and up."""
    return concatenated(first, rest[0], second) if rest else concatenated(second, first)


@pytest.mark.parametrize(
    ("name", "ours", "layout"),
    [
        ("gpt2", OUT, lambda stored: stored),  # GPT-2 stores in × out, and a square matrix fits either way
        *((name, QKV, lambda fused: fused) for name in ("bloom", "gpt-neox", "falcon-rw", "falcon-40b")),
        ("olmo", QKV, swapped),
        ("olmo", GATE_UP, swapped),
        ("nanochat", QKV, concatenated),  # rotates in the opposite direction
    ],
)
def test_weights_in_another_layout_are_detected(name, ours, layout, pairs) -> None:
    pair, sample = pairs(name), BY_NAME[name]
    right = FAMILIES[sample.model_type]
    wrong = replace(right, weights={**right.weights, ours: layout(*right.weights[ours].parts)})
    weights = wrong.to_ours(pair.ours, dict(pair.theirs.named_parameters()))
    model = Transformer(pair.ours.config)
    model.load_state_dict({**pair.ours.state_dict(), **weights})
    assert difference(model.eval(), sample, pair) > TOLERANCE
