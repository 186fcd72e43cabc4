"""A training step and a decoding step: time predicted by the roofline, and measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from lmcourse.accounting.accelerators import Accelerator
from lmcourse.accounting.flops import forward_flops, training_flops
from lmcourse.accounting.formats import BYTES_PER_NUMBER, Format
from lmcourse.accounting.latency import forward_operations, roofline_seconds
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.timing import Timing
from lmcourse.inference.decoding_session import DecodingSession
from lmcourse.models.config import TransformerConfig
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer

Watch = Callable[[Callable[[], object]], Timing]
"""Times a function: WARMUP runs first, then the timed ones."""

WARMUP = 2
ADAM_TRAFFIC = 7
"""Numbers that AdamW reads (weight, gradient, two moments) and writes (weight, two moments) per parameter."""


@dataclass(frozen=True)
class StepMeasurement:
    """Predicted and measured time of one training or decoding step.

    Attributes:
        tokens: processed per step.
        flops: model FLOPs, all pairs of tokens counted.
        moved: bytes that the step must read and write.
        predicted: seconds by the roofline.
        measured: seconds of each run.
    """

    tokens: int
    flops: int
    moved: int
    predicted: float
    measured: Timing

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second of the median run."""
        return self.tokens / self.measured.median

    @property
    def share(self) -> float:
        """Share of the speed that the roofline allows: predicted / measured.

        Above 1 if data was in a cache, which is faster than memory.
        """
        return self.predicted / self.measured.median


def predict_training(
    config: TransformerConfig, batch: int, seq_len: int, machine: Accelerator, precision: Format
) -> tuple[int, float]:
    """Bytes moved and seconds of a training step: the forward pass three times, and AdamW at the memory bandwidth."""
    operations = forward_operations(config, batch, seq_len, precision=precision, logits="all")
    update = int(ADAM_TRAFFIC * BYTES_PER_NUMBER[precision] * count_parameters(config).total)
    moved = 3 * sum(operation.moved for operation in operations.values()) + update
    return moved, 3 * roofline_seconds(operations, machine, precision).total + update / machine.bandwidth


def measure_training_step(
    network: Transformer,
    tokens: Int[Tensor, "b s"],
    machine: Accelerator,
    precision: Format,
    watch: Watch,
) -> StepMeasurement:
    """Predict and measure a training step: forward, loss, backward and AdamW on one batch."""
    batch, seq_len = tokens.shape
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-5, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        next_token_loss(network(tokens), tokens).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    moved, seconds = predict_training(network.config, batch, seq_len, machine, precision)
    flops = training_flops(network.config, batch, seq_len).model.total
    return StepMeasurement(batch * seq_len, flops, moved, seconds, watch(step))


def measure_decoding_step(
    network: Transformer,
    tokens: Int[Tensor, "b s"],
    machine: Accelerator,
    precision: Format,
    watch: Watch,
    steps: int,
) -> StepMeasurement:
    """Predict and measure a decoding step: one more token for each text of a batch.

    A prompt is read first, so that with all steps the texts get as long as `tokens`. The prediction is for the cache of
    the middle step.
    """
    batch, seq_len = tokens.shape
    prompt = seq_len - WARMUP - steps
    session = DecodingSession(network.eval(), seq_len)
    session.next_logits(tokens[:, :prompt])
    measured = watch(lambda: session.next_logits(tokens[:, :1]))
    past = prompt + WARMUP + steps // 2
    operations = forward_operations(network.config, batch, 1, past=past, precision=precision)
    return StepMeasurement(
        tokens=batch,
        flops=forward_flops(network.config, batch, 1, past=past).total,
        moved=sum(operation.moved for operation in operations.values()),
        predicted=roofline_seconds(operations, machine, precision).total,
        measured=measured,
    )
