"""The tensors that attention saves: of the projection, the QK transform, and one of three forms of attention itself.

The QK transform changes queries and keys between the two: QK norm, rotary positions, temperature.
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
"""Bytes of an int64 and of a bool."""

FIRST_VALUES = "values of the first layer"


@dataclass(frozen=True)
class Heads:
    """A tensor [batch, heads, tokens, d] in some memory order, perhaps a view of a larger storage.

    Attributes:
        storage: the tensor whose memory it views.
        count: of heads.
        d: a head's width.
        head_major: whether memory goes head by head. A projection writes token by token, and elementwise operations
            keep that order; most other operations write head by head.
        owns_storage: whether the storage contains only this tensor, not also keys after queries.
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
        """A newly allocated tensor of this shape; by default, in this memory order."""
        order = self.head_major if head_major is None else head_major
        return Heads(TensorSize(self.numbers(setting), width), self.count, self.d, order, owns_storage=True)

    def part(self, count: int) -> Heads:
        """The first or last `count` heads: a view of the same storage."""
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
    """Record what the attention layer keeps, and return its output, which is as wide as its normalised input `x`."""
    config, (*qkv_matrices, out) = group.layer.attention, group.attention
    d = config.head_width(model.d_model)
    rules = _Attention(saved, setting, model, config)
    with saved.part("qkv"):
        qkv = record_linear(saved, setting, x, *qkv_matrices)
    with saved.part("qk transform"):
        q, k = rules.qk_transform(Heads(qkv, config.heads + config.key_heads, d))
    v = Heads(qkv, config.key_heads, d)
    if config.rotary is not None and (config.qk_norm is None or config.qk_norm.after_rotary):
        v = v.new(setting, v.storage.width)  # on its own, so that nothing else of the product is kept
    with saved.part("attention"):
        mixed = rules.attend(q, k, rules.mix_values(v))
    with saved.part("attention out"):
        return record_linear(saved, setting, mixed.merged(setting), out)


def record_learned_bias(saved: SavedTensorList, setting: ActivationSettings, pattern: AttentionPattern) -> None:
    """A learned position bias keeps the bucket of each pair, once for all layers with the same pattern."""

    def keep_buckets() -> bool:
        saved.keep(TensorSize(setting.pairs, INDEX))
        return True

    saved.shared(pattern, keep_buckets)


class _Attention:
    """The rules for one attention layer: each method records what an operation keeps; most return its output."""

    def __init__(
        self, saved: SavedTensorList, setting: ActivationSettings, model: TransformerConfig, config: AttentionConfig
    ) -> None:
        self.saved, self.setting, self.model, self.config = saved, setting, model, config

    def qk_transform(self, both: Heads) -> tuple[Heads, Heads]:
        """Queries and keys with QK norm, rotary positions and temperature. Rotating makes one storage for both."""
        config, setting = self.config, self.setting
        if config.qk_norm is not None and not config.qk_norm.after_rotary:
            for part in self.split(both):
                self.normalize(config.qk_norm, part)
            both = both.new(setting, both.storage.width, head_major=True)  # joined again, which copies
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
        """Queries and keys as views of their common storage."""
        return both.part(self.config.heads), both.part(self.config.key_heads)

    def normalize(self, config: QKNormConfig, x: Heads) -> Heads:
        """QK norm: over each head, or over all heads at once."""
        tokens, features = self.setting.tokens, x.count * x.d
        if config.over == "width":
            y = record_norm(self.saved, self.setting, config.norm, x.merged(self.setting), tokens, features)
            return Heads(y, x.count, x.d)
        scales = features if config.over == "heads" else None
        y = record_norm(self.saved, self.setting, config.norm, x.storage, tokens * x.count, x.d, scales)
        return Heads(y, x.count, x.d, head_major=True, owns_storage=True)

    def rotate(self, config: RotaryConfig, x: Heads) -> Heads:
        """x ⊙ cos + partner ⊙ sin keeps the two tables, in fp32, once for all layers; x only if they were learned."""
        width = config.width(x.d)

        def tables() -> tuple[TensorSize, TensorSize]:
            return TensorSize(self.setting.seq_len * width, STATISTIC), TensorSize(
                self.setting.seq_len * width, STATISTIC
            )

        self.saved.keep(*self.saved.shared((config, width), tables))
        partial = width < x.d  # joining the rotated features and the others writes head by head
        return x.new(self.setting, x.storage.width, head_major=x.head_major or partial)

    def mix_values(self, v: Heads) -> Heads:
        """A value residual keeps a layer's values and the first layer's, and under autocast a copy of the share."""
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
        """Scores, softmax and mixing of values, in the form that torch runs: readable, fused, or unfused."""
        learned = isinstance(self.model.position_bias, RelativePositionBiasConfig)
        if (
            self.setting.materialized_attention
            or self.config.soft_cap is not None
            or self.config.relative_position_vectors is not None
        ):
            return self.readable(q, k, v)
        # PyTorch's fused kernel for CPUs takes neither dropout nor a bias with a gradient.
        return self.unfused(q, k, v) if self.config.dropout or learned else self.flash(q, k, v)

    def bias(self) -> TensorSize | None:
        """The position bias: learned ones in the model's format, computed ones in fp32."""
        if self.model.position_bias is None:
            return None
        if isinstance(self.model.position_bias, RelativePositionBiasConfig):
            record_learned_bias(self.saved, self.setting, self.config.pattern)
            return TensorSize(self.setting.pairs * self.config.heads, self.setting.param_bytes)
        return TensorSize(self.setting.pairs * self.config.heads, STATISTIC)

    def mask(self, width: int) -> TensorSize | None:
        """The mask of a fused kernel: a number per pair, for each head if there is a bias; None if it needs none."""
        bias = self.bias()
        if bias is None:
            causal = self.config.pattern.is_causal_within(self.setting.seq_len)
            return None if causal else TensorSize(self.setting.pairs, width)
        if isinstance(self.model.position_bias, RelativePositionBiasConfig):
            self.saved.keep(TensorSize(self.setting.pairs, FLAG))  # filling in where nothing is seen keeps the mask
        return TensorSize(bias.numbers, width if self.setting.autocast else bias.width)

    def flash(self, q: Heads, k: Heads, v: Heads) -> Heads:
        """The fused kernel keeps its inputs, its output, and a normaliser per query: the weights are computed anew."""
        mask = self.mask(q.storage.width)
        if mask is not None:
            self.saved.keep(mask)
        normalisers = TensorSize(self.setting.tokens * q.count, max(q.storage.width, STATISTIC))
        mixed = q.new(self.setting, q.storage.width)
        self.saved.keep(q.storage, k.storage, v.storage, normalisers, mixed.storage)
        return mixed

    def unfused(self, q: Heads, k: Heads, v: Heads) -> Heads:
        """PyTorch's way where no fused kernel fits, in at least fp32: q and k are scaled by √scale each, so even
        fp32 ones are copied."""
        setting, width = self.setting, max(q.storage.width, STATISTIC)
        shared = q.count != k.count
        self.mask(width)  # is added, and a sum keeps nothing
        k, v = (q.new(setting, x.storage.width, head_major=True) if shared else x for x in (k, v))  # repeated
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
        """Attention written out: scores, soft cap, mask, softmax and dropout, and the product with the values."""
        saved, setting, width = self.saved, self.setting, q.storage.width
        bias = self.bias()
        if self.config.relative_position_vectors is not None:
            self.shaw_scores(self.config.relative_position_vectors, q)
        saved.keep(q.stacked(setting), k.spread(setting, q.count))
        if self.config.soft_cap is not None:
            saved.keep(TensorSize(setting.pairs * q.count, width))  # tanh keeps its output
        saved.keep(TensorSize(setting.pairs, FLAG))  # ... and masking the mask
        weights = self.weights(q, width if bias is None else max(width, bias.width))
        saved.keep(cast(weights, setting.matmul_bytes), v.spread(setting, q.count))
        if self.config.relative_position_vectors is not None and self.config.relative_position_vectors.on_values:
            self.shaw_product(
                self.config.relative_position_vectors,
                self.shaw_sums(self.config.relative_position_vectors, q, weights.width),
            )
        return q.new(setting, width, head_major=True)

    def shaw_scores(self, config: RelativePositionVectorsConfig, q: Heads) -> None:
        """q·a for every relative position vector a (Shaw et al., 2018); taking one per pair keeps all and the index."""
        self.shaw_product(config, q.flat(self.setting))
        self.saved.keep(self.shaw_sums(config, q, q.storage.width), TensorSize(self.setting.pairs, INDEX))

    def shaw_sums(self, config: RelativePositionVectorsConfig, q: Heads, width: int) -> TensorSize:
        """A tensor with a number per query and relative position vector."""
        return TensorSize(self.setting.tokens * q.count * (2 * config.max_distance + 1), width)

    def shaw_product(self, config: RelativePositionVectorsConfig, factor: TensorSize) -> None:
        """A matrix product with the relative position vectors: keeps its other factor."""
        self.saved.keep(cast(factor, self.setting.matmul_bytes))
        record_weight_copy(
            self.saved, self.setting, (2 * config.max_distance + 1) * self.config.head_width(self.model.d_model)
        )
