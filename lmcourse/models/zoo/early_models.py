"""Models of 2017 to 2020: the first encoder–decoders, decoders and encoders, and larger ones."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig, repeat_layers
from lmcourse.models.zoo.entry import Entry
from lmcourse.models.zoo.styles import LAYER_NORM, RMS_1E6, gpt_like
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.block import BlockConfig, LayerConfig
from lmcourse.nn.embedding import EmbeddingConfig, HeadConfig
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.position_bias import RelativePositionBiasConfig

BIDIRECTIONAL = AttentionPattern(causal=False)


def original(d_model: int, heads: int, dropout: float) -> EncoderDecoderConfig:
    """The model of "Attention is all you need", Table 3."""
    attention = AttentionConfig(heads, dropout=dropout)
    layer = LayerConfig(attention, FeedForwardConfig(4 * d_model, "relu", gated=False, bias=True))
    decoder = TransformerConfig(
        vocab_size=37_000,
        d_model=d_model,
        layers=repeat_layers([layer], 6),
        block=BlockConfig(LAYER_NORM, "post", dropout=dropout),
        embedding=EmbeddingConfig("sinusoidal", scale=math.sqrt(d_model), dropout=dropout),
    )
    unmasked = replace(layer, attention=replace(attention, pattern=BIDIRECTIONAL))
    return EncoderDecoderConfig(decoder.with_(layers=repeat_layers([unmasked], 6)), decoder)


def t5(layers: int, d_model: int, heads: int, d_head: int, d_ff: int, *, newer: bool = False) -> EncoderDecoderConfig:
    """T5, or with `newer` T5 v1.1: gated feed-forward, untied head, no dropout in pre-training."""
    dropout = 0.0 if newer else 0.1
    attention = AttentionConfig(heads, d_head=d_head, scale=1.0, dropout=dropout)
    wide = FeedForwardConfig(d_ff, "gelu_tanh" if newer else "relu", gated=newer)
    decoder = TransformerConfig(
        vocab_size=32_128,
        d_model=d_model,
        layers=repeat_layers([LayerConfig(attention, wide)], layers),
        block=BlockConfig(RMS_1E6, dropout=dropout),
        embedding=EmbeddingConfig(dropout=dropout),
        head=HeadConfig(tied=False) if newer else HeadConfig(scale=d_model**-0.5),
        position_bias=RelativePositionBiasConfig(),
        final_norm=RMS_1E6,
        context=512,
    )
    unmasked = LayerConfig(replace(attention, pattern=BIDIRECTIONAL), wide)
    encoder = decoder.with_(
        layers=repeat_layers([unmasked], layers), position_bias=RelativePositionBiasConfig(causal=False)
    )
    return EncoderDecoderConfig(encoder, decoder)


def bert(layers: int, d_model: int, heads: int) -> TransformerConfig:
    """BERT's encoder with its output layer."""
    norm = replace(LAYER_NORM, eps=1e-12)
    return gpt_like(
        layers,
        d_model,
        heads,
        vocab_size=30_522,
        context=512,
        norm=norm,
        embedding=EmbeddingConfig("learned", max_positions=512, norm=norm, dropout=0.1),
        head=HeadConfig(bias=True),
        block={"placement": "post"},
        feed_forward={"activation": "gelu"},
        dropout=0.1,
        pattern=BIDIRECTIONAL,
    )


gpt2 = partial(gpt_like, vocab_size=50_257, context=1024, dropout=0.1)
gpt3 = partial(gpt_like, vocab_size=50_257, context=2048)
"""The shapes of GPT-2 and GPT-3, as functions of layers, d_model and heads."""

VASWANI_SOURCE = "Vaswani et al. 2017, Attention is all you need, Table 3"
BERT_SOURCE = "Devlin et al. 2019, BERT, §3"
GPT2_SOURCE = (
    "Radford et al. 2019, Language models are unsupervised multitask learners, Table 2; openai/gpt-2 hparams.json"
)
GPT3_SOURCE = "Brown et al. 2020, Language models are few-shot learners, Table 2.1"
T5_SOURCE = "Raffel et al. 2020, Exploring the limits of transfer learning, §3.7; google-t5 config.json"
T5_V1_1_SOURCE = (
    "google-research/text-to-text-transfer-transformer, released_checkpoints.md, t5.1.1; google/t5-v1_1 config.json"
)

NO_BIASES_NOTE = (
    "The paper's formulas show no biases in attention, so it has none here. The vocab_size is that of English–German."
)
BERT_NOTE = "Left out: segment embeddings, pooler, and the layer before the masked-word head."
BERT_BASE_NOTE = (
    f"{BERT_NOTE} Hugging Face's BertModel has 109,482,240 parameters: with 2 · 768 = 1,536 for segments and "
    "768² + 768 = 590,592 for the pooler, and without our head's bias of 30,522. "
    "109,482,240 − 1,536 − 590,592 + 30,522 = 108,920,634."
)
GPT3_NOTE = "Every other layer was locally banded sparse; its width is not published, so all layers are full here."
T5_NOTE = (
    "The vocab_size of 32,100 is padded to 32,128 in the released weights. Trained on 512 tokens, not limited to them."
)
NOMINAL_SIZE_NOTE = "the published size is a name more than a count"

ENTRIES = (
    Entry(
        "transformer-base",
        2017,
        VASWANI_SOURCE,
        original(512, 8, 0.1),
        65_000_000,
        NO_BIASES_NOTE,
        "how 65M was counted is not said; the sizes in the table give 63M",
    ),
    Entry("transformer-big", 2017, VASWANI_SOURCE, original(1024, 16, 0.3), 213_000_000, NO_BIASES_NOTE),
    Entry(
        "gpt-1",
        2018,
        "Radford et al. 2018, Improving language understanding by generative pre-training, §4.1",
        gpt_like(12, 768, 12, vocab_size=40_478, context=512, block={"placement": "post"}, dropout=0.1),
        note="The paper gives no count. 40,478 tokens: 40,000 merges and 478 characters and special tokens.",
    ),
    Entry("bert-base", 2018, BERT_SOURCE, bert(12, 768, 12), 110_000_000, BERT_BASE_NOTE),
    Entry("bert-large", 2018, BERT_SOURCE, bert(24, 1024, 16), 340_000_000, BERT_NOTE, NOMINAL_SIZE_NOTE),
    Entry("gpt-2", 2019, GPT2_SOURCE, gpt2(12, 768, 12), 124_000_000),
    Entry("gpt-2-medium", 2019, GPT2_SOURCE, gpt2(24, 1024, 16), 355_000_000),
    Entry("gpt-2-large", 2019, GPT2_SOURCE, gpt2(36, 1280, 20), 774_000_000),
    Entry("gpt-2-xl", 2019, GPT2_SOURCE, gpt2(48, 1600, 25), 1_558_000_000),
    Entry("gpt-3-small", 2020, GPT3_SOURCE, gpt3(12, 768, 12), 125_000_000, GPT3_NOTE),
    Entry("gpt-3-medium", 2020, GPT3_SOURCE, gpt3(24, 1024, 16), 350_000_000, GPT3_NOTE, NOMINAL_SIZE_NOTE),
    Entry("gpt-3-large", 2020, GPT3_SOURCE, gpt3(24, 1536, 16), 760_000_000, GPT3_NOTE),
    # "XL" and "13B" are left out: their rows in the table are inconsistent (24 heads of 128 in a width of 2048; a width
    # of 5140).
    Entry("gpt-3-2.7b", 2020, GPT3_SOURCE, gpt3(32, 2560, 32), 2_700_000_000, GPT3_NOTE),
    Entry("gpt-3-6.7b", 2020, GPT3_SOURCE, gpt3(32, 4096, 32), 6_700_000_000, GPT3_NOTE),
    Entry("gpt-3", 2020, GPT3_SOURCE, gpt3(96, 12_288, 96), 175_000_000_000, GPT3_NOTE),
    Entry("t5-small", 2019, T5_SOURCE, t5(6, 512, 8, 64, 2048), 60_506_624, T5_NOTE),
    Entry("t5-base", 2019, T5_SOURCE, t5(12, 768, 12, 64, 3072), 222_903_552, T5_NOTE),
    Entry("t5-large", 2019, T5_SOURCE, t5(24, 1024, 16, 64, 4096), 737_668_096, T5_NOTE),
    Entry("t5-3b", 2019, T5_SOURCE, t5(24, 1024, 32, 128, 16_384), 2_851_598_336, T5_NOTE),
    Entry("t5-11b", 2019, T5_SOURCE, t5(24, 1024, 128, 128, 65_536), 11_307_321_344, T5_NOTE),
    Entry("t5-v1.1-small", 2020, T5_V1_1_SOURCE, t5(8, 512, 6, 64, 1024, newer=True), 76_961_152, T5_NOTE),
    Entry("t5-v1.1-base", 2020, T5_V1_1_SOURCE, t5(12, 768, 12, 64, 2048, newer=True), 247_577_856, T5_NOTE),
    Entry("t5-v1.1-large", 2020, T5_V1_1_SOURCE, t5(24, 1024, 16, 64, 2816, newer=True), 783_150_080, T5_NOTE),
    Entry("t5-v1.1-xl", 2020, T5_V1_1_SOURCE, t5(24, 2048, 32, 64, 5120, newer=True), 2_849_757_184, T5_NOTE),
    Entry("t5-v1.1-xxl", 2020, T5_V1_1_SOURCE, t5(24, 4096, 64, 64, 10_240, newer=True), 11_135_332_352, T5_NOTE),
)
