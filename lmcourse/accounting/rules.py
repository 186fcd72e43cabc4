"""Rules of thumb for FLOPs, and how far each is from the exact count.

Each rule is written as its source has it, whatever the model looks like. So its error on a model tells what it leaves
out: 2ND attention's scores, the others key heads that are shared, gates, or the causal half.
"""

from __future__ import annotations

from dataclasses import dataclass

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.flops import forward_flops
from lmcourse.accounting.pairs import Pairs
from lmcourse.accounting.parameters import matmul_parameters
from lmcourse.accounting.training_flops import training_flops
from lmcourse.models.config import TransformerConfig

ATTENTION = ("attention scores", "attention values")


def two_n_d(parameters: int, tokens: int) -> int:
    """Forward FLOPs ≈ 2 · N · D: a product and a sum per weight and token (Kaplan et al., 2020, §2.1).

    Args:
        parameters: N. With `matmul_parameters`, all that is left out is attention's scores and values.
        tokens: D.
    """
    return 2 * parameters * tokens


def six_n_d(parameters: int, tokens: int) -> int:
    """Training FLOPs ≈ 6 · N · D: forward, and twice as much backward (Kaplan et al., 2020, §2.1)."""
    return 3 * two_n_d(parameters, tokens)


def kaplan_parameters(config: TransformerConfig) -> int:
    """N = Σ 2 · d_model · (2 · d_attn + d_ff) over the layers: without embeddings, head, biases and norms (Kaplan et
    al., 2020, equation 2.1). It knows neither shared key heads nor gates."""
    d_model = config.d_model
    return sum(2 * d_model * (2 * attention + wide) for attention, wide in _widths(config))


def kaplan_forward(config: TransformerConfig, seq_len: int) -> Breakdown[int]:
    """Forward FLOPs per token, row by row of Kaplan et al. (2020), Table 1.

    Their total, C = 2N + 2 · n_layer · n_ctx · d_attn, is that of the rows but "embed" and "de-embed".

    "embed" is 4 · d_model: an addition or so per feature, as it is a look-up (a product with one-hot vectors would take
    2 · n_vocab · d_model). "mask" holds scores and values: 4 · d_attn per visible pair, and a causal query sees half of
    the text on average, (n_ctx + 1)/2 tokens; without a mask it would be twice as much.
    """
    d_model, widths = config.d_model, _widths(config)
    all_heads = sum(attention for attention, _ in widths)
    rows = {
        "embed": 4 * d_model,
        "qkv": 2 * d_model * 3 * all_heads,
        "mask": 2 * seq_len * all_heads,
        "project": 2 * all_heads * d_model,
        "feed-forward": sum(2 * 2 * d_model * wide for _, wide in widths),
        "de-embed": 2 * d_model * config.vocab_size,
    }
    return Breakdown(rows)


def megatron_training(config: TransformerConfig, batch: int, seq_len: int) -> int:
    """Training FLOPs 12·B·D·L·S·(S + (2 + E)·D) + 6·B·S·D·V for a feed-forward of E·D.

    With E = 4 these are 72·B·L·S·D²·(1 + S/6D + V/12LD), which Narayanan et al. (2021), equation 3, print with 96 and
    V/16LD, because they recompute all blocks. All pairs count; key heads of their own and two matrices in the
    feed-forward are taken for granted.
    """
    B, S, D, V = batch, seq_len, config.d_model, config.vocab_size
    blocks = sum(12 * B * D * S * (S + 2 * D + wide) for _, wide in _widths(config))
    return blocks + 6 * B * S * D * V


def palm_training(config: TransformerConfig, batch: int, seq_len: int) -> int:
    """Training FLOPs D·(6N + 12·L·H·Q·T), L layers with H heads of width Q on T tokens (Chowdhery et al., 2022,
    appendix B): 6ND and attention, all pairs counted. With N of `matmul_parameters` it is exact."""
    tokens = batch * seq_len
    attention = sum(12 * all_heads * seq_len for all_heads, _ in _widths(config))
    return six_n_d(matmul_parameters(config), tokens) + attention * tokens


def attention_share(config: TransformerConfig, seq_len: int, *, pairs: Pairs = "all") -> float:
    """Which share of the forward FLOPs goes into scores and values: what 2ND leaves out."""
    count = forward_flops(config, 1, seq_len, pairs=pairs)
    return count.only(*ATTENTION).total / count.total


@dataclass(frozen=True)
class RuleError:
    """FLOPs by a rule of thumb, and by the exact count.

    Attributes:
        rule: its name.
        predicted, exact: FLOPs.
    """

    rule: str
    predicted: int
    exact: int

    @property
    def relative(self) -> float:
        """(predicted − exact) / exact: below 0 the rule says too little."""
        return self.predicted / self.exact - 1


def rule_errors(config: TransformerConfig, batch: int, seq_len: int) -> list[RuleError]:
    """Every rule for a decoder beside the exact count, head included.

    All pairs count but for Kaplan's table, which is about a causal mask and is held against the visible ones.
    """
    parameters, tokens = matmul_parameters(config), batch * seq_len
    visible = forward_flops(config, batch, seq_len, pairs="visible").total
    training = training_flops(config, batch, seq_len)
    forward, both = training.forward.total, training.model.total
    table = kaplan_forward(config, seq_len)
    return [
        RuleError("2ND", two_n_d(parameters, tokens), forward),
        RuleError("Kaplan et al., table", (table.total - table["embed"]) * tokens, visible),
        RuleError("6ND", six_n_d(parameters, tokens), both),
        RuleError("6ND, N without head", six_n_d(kaplan_parameters(config), tokens), both),
        RuleError("Narayanan et al.", megatron_training(config, batch, seq_len), both),
        RuleError("Chowdhery et al.", palm_training(config, batch, seq_len), both),
    ]


def _widths(config: TransformerConfig) -> list[tuple[int, int]]:
    """Per layer the width of all query heads together, and of the feed-forward."""
    return [
        (layer.attention.heads * layer.attention.head_width(config.d_model), layer.feed_forward.width)
        for layer in config.layers
    ]
