"""The shortest possible time of a forward pass by the roofline, one operator group after another.

An operator needs at least the time of its arithmetic, FLOPs / peak, and at least the time of its memory traffic, bytes
/ bandwidth. A GPU does both at once, so the operator's time is the larger of the two, not their sum (Williams et al.,
2009). The FLOPs per byte are the operator's arithmetic intensity; if they are below the accelerator's ridge point,
memory is the limit.

The bytes assume that every operator reads its inputs and writes its outputs once, and that attention keeps its scores
on the chip (Dao et al., 2022). The start of kernels, sampling and waiting for the network are left out. So real passes
take longer; `bench` measures how much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lmcourse.accounting.accelerators import Accelerator
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.flops import Logits, Pairs, forward_flops, num_key_slots
from lmcourse.accounting.formats import BYTES_PER_NUMBER, Format
from lmcourse.models.config import TransformerConfig
from lmcourse.models.matrices import LayerMatrices, LinearShape
from lmcourse.nn.block import LayerConfig

Limit = Literal["arithmetic", "memory"]

GROUPS = {
    "embedding projection": "ends",
    "attention q, k, v": "projections",
    "attention out": "projections",
    "attention scores": "attention",
    "attention values": "attention",
    "relative positions": "attention",
    "feed-forward": "feed-forward",
    "head projection": "ends",
    "head": "ends",
}
"""Maps the parts of `forward_flops` to groups of operators that run in the same way."""


@dataclass(frozen=True)
class Operation:
    """FLOPs of a group of operators, and the number of bytes that it reads or writes."""

    flops: int
    moved: int

    @property
    def intensity(self) -> float:
        """The arithmetic intensity: FLOPs per byte."""
        return self.flops / self.moved

    def seconds(self, accelerator: Accelerator, precision: Format) -> float:
        """Return the seconds that it takes: the larger of FLOPs / peak and bytes / bandwidth."""
        return max(self.flops / accelerator.peak(precision), self.moved / accelerator.bandwidth)

    def limit(self, accelerator: Accelerator, precision: Format) -> Limit:
        """Return the part that takes longer: "arithmetic" or "memory"."""
        return "arithmetic" if self.intensity > accelerator.ridge(precision) else "memory"


def forward_operations(
    config: TransformerConfig,
    batch: int,
    seq_len: int,
    *,
    past: int = 0,
    precision: Format = "bf16",
    logits: Logits = "last",
    pairs: Pairs = "visible",
) -> dict[str, Operation]:
    """Return FLOPs and moved bytes of a forward pass, by group of operators.

    The group "elementwise" has norms, sums and non-linearities, each a separate kernel. Their FLOPs are not counted,
    because their bytes determine the time.

    Args:
        config, batch, seq_len, past, logits, pairs: as in `forward_flops`, for decoders and encoders. Prefill has no
            past; a decoding step has length 1. Without a cache every new token needs a prefill. Fused kernels skip
            hidden pairs.
        precision: the format of weights, activations and the KV cache.
    """
    flops: Counter[str] = Counter()
    for part, count in forward_flops(config, batch, seq_len, past=past, pairs=pairs, logits=logits):
        flops[GROUPS[part]] += count
    tokens, outputs = batch * seq_len, batch * seq_len if logits == "all" else batch
    matrices = config.matrices
    moved: Counter[str] = Counter()
    for group in matrices.layers:
        for part, numbers in _layer_moved(config, group, batch, seq_len, past).items():
            moved[part] += group.times * numbers
    moved["ends"] += sum(_product([matrix], tokens) for matrix in matrices.embedding)
    moved["ends"] += sum(_product([matrix], outputs) for matrix in matrices.head)
    return {
        group: Operation(flops[group], int(numbers * BYTES_PER_NUMBER[precision])) for group, numbers in moved.items()
    }


def roofline_seconds(operations: dict[str, Operation], accelerator: Accelerator, precision: Format) -> Breakdown[float]:
    """Return the shortest possible time of each group, in seconds; the groups run one after the other."""
    return Breakdown({group: work.seconds(accelerator, precision) for group, work in operations.items()})


def roofline_mfu(
    config: TransformerConfig, batch: int, seq_len: int, accelerator: Accelerator, precision: Format = "bf16"
) -> float:
    """Return the highest MFU in training that the roofline allows.

    A backward pass takes twice the FLOPs and bytes of a forward pass. All pairs of queries and keys count. Published
    runs reach 0.3 to 0.6.
    """
    operations = forward_operations(config, batch, seq_len, precision=precision, logits="all", pairs="all")
    seconds = roofline_seconds(operations, accelerator, precision).total
    return sum(work.flops for work in operations.values()) / (seconds * accelerator.peak(precision))


def _layer_moved(
    config: TransformerConfig, group: LayerMatrices, batch: int, seq_len: int, past: int
) -> dict[str, int]:
    """Return how many numbers one layer reads and writes. Attention reads q, writes its result, and reads every key and
    value once per key head."""
    tokens, attention = batch * seq_len, group.layer.attention
    *up, down = group.feed_forward
    heads = tokens * attention.heads + batch * num_key_slots(attention.pattern, seq_len, past) * attention.key_heads
    return {
        "projections": _product(group.attention[:3], tokens) + _product(group.attention[3:], tokens),
        "attention": 2 * attention.head_width(config.d_model) * heads,
        "feed-forward": _product(up, tokens) + _product([down], tokens),
        "elementwise": tokens * _elementwise(config, group.layer),
    }


def _elementwise(config: TransformerConfig, layer: LayerConfig) -> int:
    """Return the numbers read and written per token: a norm reads and writes one vector; a sum or a gate reads two
    vectors and writes one."""
    norms = {"serial": 2, "parallel": 1, "parallel_two_norms": 2}[config.block.branches]
    norms *= 2 if config.block.placement == "double" else 1
    return config.d_model * (2 * norms + 2 * 3) + layer.feed_forward.width * (3 if layer.feed_forward.gated else 2)


def _product(matrices: Sequence[LinearShape], tokens: int) -> int:
    """Return how many numbers a product reads and writes; matrices with the same input count as one product."""
    outputs = sum(matrix.outputs for matrix in matrices)
    return tokens * (matrices[0].inputs + outputs) + sum(matrix.parameters for matrix in matrices)


def matmul_intensity(tokens: int, inputs: int, outputs: int, precision: Format = "bf16") -> float:
    """Return the FLOPs per byte of a product of tokens × inputs with inputs × outputs, if all is read or written once.

    For a square matrix of width D and n tokens this is (2/p) · n·D/(2n + D) at p bytes per number: about 2n/p for few
    tokens, as in decoding, and at most D/p for many, as in training.
    """
    moved = tokens * inputs + inputs * outputs + tokens * outputs
    return 2 * tokens * inputs * outputs / (BYTES_PER_NUMBER[precision] * moved)


def elementwise_intensity(operations: float, precision: Format = "bf16") -> float:
    """Return the FLOPs per byte of C operations on each number, which is read and written once: C/(2p). Memory is
    always the limit, so it pays to combine several operations in one kernel (fusion)."""
    return operations / (2 * BYTES_PER_NUMBER[precision])


def decode_attention_intensity(sharing: int, precision: Format = "bf16") -> float:
    """Return the FLOPs per byte of attention in decoding, 2 · sharing / p, which does not depend on the batch.

    A key and its value are read once for all query heads that share them (`sharing` = heads / kv_heads); each of these
    heads multiplies both once.
    """
    return 2 * sharing / BYTES_PER_NUMBER[precision]


def compute_bound_tokens(width: int, accelerator: Accelerator, precision: Format = "bf16") -> float:
    """Return the number of tokens above which arithmetic limits a product with a square matrix; infinity if it never
    does.

    (2/p) · n·D/(2n + D) = λ, so n = λ·p·D/(2·(D − λ·p)), where λ is the accelerator's ridge point.
    """
    bound = accelerator.ridge(precision) * BYTES_PER_NUMBER[precision]
    return bound * width / (2 * (width - bound)) if width > bound else float("inf")
