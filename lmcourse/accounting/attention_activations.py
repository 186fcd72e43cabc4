"""Predict the tensors that attention saves, in the projection, the QK transform and three forms of attention.

The QK transform comes between projection and attention: QK norm, rotary positions, temperature.
"""

from __future__ import annotations

from dataclasses import dataclass

from lmcourse.accounting.layer_activations import (
    STATISTIC,
    ActivationSettings,
    SavedTensorList,
    TensorSize,
    cast,
    record_dropout,
    record_linear,
    record_norm,
    record_weight_copy,
)
from lmcourse.models.config import TransformerConfig
from lmcourse.models.matrices import LayerMatrices
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.position_bias import RelativePositionBiasConfig, RelativePositionVectorsConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.nn.rotary import RotaryConfig

INDEX, FLAG = 8, 1
"""Bytes of an index (int64) and of a bool."""

FIRST_VALUES = "values of the first layer"


@dataclass(frozen=True)
class Heads:
    """A tensor [batch, heads, tokens, d] in some memory order, perhaps a view of a larger storage.

    Attributes:
        storage: the tensor whose memory it views.
        count: the number of heads.
        d: a head's width.
        head_major: whether memory is ordered by heads. A projection writes token by token, and elementwise operations
            keep this order; most other operations write head by head.
        owns_storage: whether the storage contains only this tensor, and not, for example, both queries and keys.
    """

    storage: TensorSize
    count: int
    d: int
    head_major: bool = False
    owns_storage: bool = False

    def numbers(self, setting: ActivationSettings) -> int:
        """The number of elements of the tensor, without the rest of its storage."""
        return setting.tokens * self.count * self.d

    def new(self, setting: ActivationSettings, width: int, *, head_major: bool | None = None) -> Heads:
        """Return a newly allocated tensor of this shape; by default with the same memory order."""
        order = self.head_major if head_major is None else head_major
        return Heads(TensorSize(self.numbers(setting), width), self.count, self.d, order, owns_storage=True)

    def part(self, count: int) -> Heads:
        """Return the first or last `count` heads, a view of the same storage."""
        return Heads(self.storage, count, self.d, self.head_major)

    def merged(self, setting: ActivationSettings) -> TensorSize:
        """Reshape to [batch, tokens, heads · d] for a linear layer; a copy if memory is ordered by heads."""
        return self._copy_unless(self.count == 1 or not self.head_major, setting)

    def stacked(self, setting: ActivationSettings) -> TensorSize:
        """Reshape to [batch · heads, tokens, d] for a batched product; a copy if the axes are not contiguous."""
        return self._copy_unless(1 in (setting.batch, self.count) or (self.head_major and self.owns_storage), setting)

    def flat(self, setting: ActivationSettings) -> TensorSize:
        """Reshape to [batch · heads · tokens, d]; a copy if the axes are not contiguous."""
        if self.head_major:
            return self._copy_unless(self.owns_storage or setting.batch == 1, setting)
        return self._copy_unless(self.count == 1, setting)

    def spread(self, setting: ActivationSettings, heads: int) -> TensorSize:
        """Repeat each head for all queries that share it, then stack. Only stacking copies the repeats."""
        if heads == self.count:
            return self.stacked(setting)
        if self.count == setting.batch == 1:
            return self.storage
        return TensorSize(setting.tokens * heads * self.d, self.storage.width)

    def _copy_unless(self, view: bool, setting: ActivationSettings) -> TensorSize:
        return self.storage if view else TensorSize(self.numbers(setting), self.storage.width)


def record_attention(
    saved: SavedTensorList, setting: ActivationSettings, model: TransformerConfig, group: LayerMatrices, x: TensorSize
) -> TensorSize:
    """Record the tensors that an attention layer keeps for the input `x`, and return its output."""
    config, (*qkv_matrices, out) = group.layer.attention, group.attention
    d = config.head_width(model.d_model)
    rules = _Attention(saved, setting, model, config)
    with saved.part("qkv"):
        qkv = record_linear(saved, setting, x, *qkv_matrices)
    with saved.part("qk transform"):
        q, k = rules.qk_transform(Heads(qkv, config.heads + config.key_heads, d))
    v = Heads(qkv, config.key_heads, d)
    if config.rotary is not None and (config.qk_norm is None or config.qk_norm.after_rotary):
        v = v.new(setting, v.storage.width)  # v is a copy, so that the other parts of the product are not kept
    with saved.part("attention"):
        mixed = rules.attend(q, k, rules.mix_values(v))
    with saved.part("attention out"):
        return record_linear(saved, setting, mixed.merged(setting), out)


def record_learned_bias(saved: SavedTensorList, setting: ActivationSettings, pattern: AttentionPattern) -> None:
    """Record the buckets of a learned position bias, which are kept once for all layers with the same pattern."""
    saved.keep(saved.shared(pattern, lambda: TensorSize(setting.pairs, INDEX)))


class _Attention:
    """The rules for one attention layer: each method records what an operation keeps; most return its output."""

    def __init__(
        self, saved: SavedTensorList, setting: ActivationSettings, model: TransformerConfig, config: AttentionConfig
    ) -> None:
        self.saved, self.setting, self.model, self.config = saved, setting, model, config

    def qk_transform(self, both: Heads) -> tuple[Heads, Heads]:
        """Record QK norm, rotary positions and temperature. The rotation makes one storage for queries and keys."""
        config, setting = self.config, self.setting
        if config.qk_norm is not None and not config.qk_norm.after_rotary:
            for part in self.split(both):
                self.normalize(config.qk_norm, part)
            # queries and keys are joined again, which makes a copy
            both = both.new(setting, both.storage.width, head_major=True)
        if config.rotary is not None:
            both = self.rotate(config.rotary, both)
        q, k = self.split(both)
        if config.qk_norm is not None and config.qk_norm.after_rotary:
            q, k = self.normalize(config.qk_norm, q), self.normalize(config.qk_norm, k)
        if config.temperature is not None:
            self.saved.keep(TensorSize(setting.tokens, STATISTIC))
            q = q.new(setting, q.storage.width)
        return q, k

    def split(self, both: Heads) -> tuple[Heads, Heads]:
        """Return queries and keys as views of their common storage."""
        return both.part(self.config.heads), both.part(self.config.key_heads)

    def normalize(self, config: QKNormConfig, x: Heads) -> Heads:
        """Record QK norm over each head, or over all heads at once."""
        tokens, features = self.setting.tokens, x.count * x.d
        if config.over == "width":
            y = record_norm(self.saved, self.setting, config.norm, x.merged(self.setting), tokens, features)
            return Heads(y, x.count, x.d)
        scales = features if config.over == "heads" else None
        y = record_norm(self.saved, self.setting, config.norm, x.storage, tokens * x.count, x.d, scales)
        return Heads(y, x.count, x.d, head_major=True, owns_storage=True)

    def rotate(self, config: RotaryConfig, x: Heads) -> Heads:
        """Record x ⊙ cos + partner ⊙ sin, which keeps only the two fp32 tables, once for all layers."""
        width = config.width(x.d)
        size = self.setting.seq_len * width
        tables = self.saved.shared((config, width), lambda: [TensorSize(size, STATISTIC) for _ in range(2)])
        self.saved.keep(*tables)
        partial = width < x.d  # joining the rotated features and the other features writes head by head
        return x.new(self.setting, x.storage.width, head_major=x.head_major or partial)

    def mix_values(self, v: Heads) -> Heads:
        """Record a value residual: this layer's values, the first layer's and, under autocast, a copy of the share."""
        if not self.config.value_residual:
            self.saved.shared(FIRST_VALUES, lambda: v)
            return v
        width = v.storage.width
        first = self.saved.shared(FIRST_VALUES, lambda: v.new(self.setting, width))
        self.saved.keep(v.storage, first.storage)
        if self.setting.autocast:
            self.saved.keep(TensorSize(1, width))
        return v.new(self.setting, width)

    def attend(self, q: Heads, k: Heads, v: Heads) -> Heads:
        """Record attention itself in the form that torch runs: readable, fused or unfused."""
        learned = isinstance(self.model.position_bias, RelativePositionBiasConfig)
        fusible = self.config.soft_cap is None and self.config.relative_position_vectors is None
        if self.setting.materialized_attention or not fusible:
            return self.readable(q, k, v)
        # PyTorch's fused CPU kernel supports neither dropout nor a bias with a gradient.
        return self.unfused(q, k, v) if self.config.dropout or learned else self.flash(q, k, v)

    def bias(self) -> TensorSize | None:
        """Return the position bias: a learned bias has the model's format, a computed one is in fp32."""
        if self.model.position_bias is None:
            return None
        if isinstance(self.model.position_bias, RelativePositionBiasConfig):
            record_learned_bias(self.saved, self.setting, self.config.pattern)
            return TensorSize(self.setting.pairs * self.config.heads, self.setting.param_bytes)
        return TensorSize(self.setting.pairs * self.config.heads, STATISTIC)

    def mask(self, width: int) -> TensorSize | None:
        """Return the mask of a fused kernel, if any: one number per pair and, with a bias, per head."""
        bias = self.bias()
        if bias is None:
            causal = self.config.pattern.is_causal_within(self.setting.seq_len)
            return None if causal else TensorSize(self.setting.pairs, width)
        if isinstance(self.model.position_bias, RelativePositionBiasConfig):
            self.saved.keep(TensorSize(self.setting.pairs, FLAG))  # masked_fill keeps the mask
        return TensorSize(bias.numbers, width if self.setting.autocast else bias.width)

    def flash(self, q: Heads, k: Heads, v: Heads) -> Heads:
        """Record the inputs, the output and one normaliser per query; the fused kernel recomputes the weights."""
        mask = self.mask(q.storage.width)
        if mask is not None:
            self.saved.keep(mask)
        normalisers = TensorSize(self.setting.tokens * q.count, max(q.storage.width, STATISTIC))
        mixed = q.new(self.setting, q.storage.width)
        self.saved.keep(q.storage, k.storage, v.storage, normalisers, mixed.storage)
        return mixed

    def unfused(self, q: Heads, k: Heads, v: Heads) -> Heads:
        """Record PyTorch's fallback without a fused kernel, in at least fp32. It scales both q and k by √scale, so it
        copies them even if they are in fp32."""
        setting, width = self.setting, max(q.storage.width, STATISTIC)
        shared = q.count != k.count
        self.mask(width)  # the mask is added, and a sum keeps nothing
        # shared heads are repeated
        k, v = (q.new(setting, x.storage.width, head_major=True) if shared else x for x in (k, v))
        self.saved.keep(k.new(setting, width).stacked(setting), q.new(setting, width).stacked(setting))
        weights = self.weights(q, width)
        values = v if v.storage.width == width else v.new(setting, width)
        self.saved.keep(values.stacked(setting), weights)
        return q.new(setting, q.storage.width, head_major=True)

    def weights(self, q: Heads, width: int) -> TensorSize:
        """Record what softmax and dropout keep, and return the weights that multiply the values."""
        weights = TensorSize(self.setting.pairs * q.count, width)
        self.saved.keep(weights)
        return record_dropout(self.saved, weights, self.config.dropout)

    def readable(self, q: Heads, k: Heads, v: Heads) -> Heads:
        """Record readable attention: scores, soft cap, mask, softmax and dropout, and the product with the values."""
        saved, setting, width = self.saved, self.setting, q.storage.width
        bias, vectors = self.bias(), self.config.relative_position_vectors
        if vectors is not None:
            self.shaw_scores(vectors, q)
        saved.keep(q.stacked(setting), k.spread(setting, q.count))
        if self.config.soft_cap is not None:
            saved.keep(TensorSize(setting.pairs * q.count, width))  # tanh keeps its output
        saved.keep(TensorSize(setting.pairs, FLAG))  # masking keeps the mask
        weights = self.weights(q, width if bias is None else max(width, bias.width))
        saved.keep(cast(weights, setting.matmul_bytes), v.spread(setting, q.count))
        if vectors is not None and vectors.on_values:
            self.shaw_product(vectors, self.shaw_sums(vectors, q, weights.width))
        return q.new(setting, width, head_major=True)

    def shaw_scores(self, config: RelativePositionVectorsConfig, q: Heads) -> None:
        """Record q·a for every vector a (Shaw et al., 2018), and the index that selects one per pair."""
        self.shaw_product(config, q.flat(self.setting))
        self.saved.keep(self.shaw_sums(config, q, q.storage.width), TensorSize(self.setting.pairs, INDEX))

    def shaw_sums(self, config: RelativePositionVectorsConfig, q: Heads, width: int) -> TensorSize:
        """Return a tensor with one number for each query and relative position vector."""
        return TensorSize(self.setting.tokens * q.count * (2 * config.max_distance + 1), width)

    def shaw_product(self, config: RelativePositionVectorsConfig, factor: TensorSize) -> None:
        """Record a matrix product with the relative position vectors, which keeps its other factor."""
        self.saved.keep(cast(factor, self.setting.matmul_bytes))
        width = self.config.head_width(self.model.d_model)
        record_weight_copy(self.saved, self.setting, (2 * config.max_distance + 1) * width)
