"""The command `lmcourse bench`: predict and measure a model's speed on this machine.

Matrix products and copies are measured first. From their rates the roofline predicts the least time of a training step
and of a decoding step (Williams et al., 2009). Then both steps are run. The difference shows what the roofline leaves
out: kernel launches, norms, the optimizer, Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from lmcourse.accounting.accelerators import Accelerator, present_gpu
from lmcourse.accounting.activations import predict_saved_bytes
from lmcourse.accounting.flops import forward_flops, training_flops
from lmcourse.accounting.formats import BYTES_PER_NUMBER, DTYPES, Format
from lmcourse.accounting.latency import forward_operations, roofline_seconds
from lmcourse.accounting.live import memory_events
from lmcourse.accounting.machine import MEASURED_FORMATS, has_units, measure_machine, title_and_memory
from lmcourse.accounting.memory import training_memory
from lmcourse.accounting.mfu import mfu
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import PrecisionRecipe
from lmcourse.accounting.saved import saved_tensors
from lmcourse.accounting.timing import Stopwatch, Timing, time_it
from lmcourse.base import device as hardware
from lmcourse.base.errors import CourseError
from lmcourse.inference.decoding_session import DecodingSession
from lmcourse.models.config import TransformerConfig
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.entry import Entry
from lmcourse.training.run_config import find_decoder

Watch = Callable[[Callable[[], object]], Timing]
"""A function that times another function: first WARMUP runs, then the timed runs."""

WARMUP = 2
ADAM_TRAFFIC = 7
"""Numbers that AdamW reads (weight, gradient, two moments) and writes (weight, two moments) per parameter."""


@dataclass(frozen=True)
class StepMeasurement:
    """Predicted and measured time of one training or decoding step.

    Attributes:
        tokens: number of tokens per step.
        flops: model FLOPs; attention counts all pairs of tokens.
        moved: number of bytes that the step must read and write.
        predicted: seconds predicted by the roofline.
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
        """Predicted / measured time: the reached fraction of the roofline's speed, or above 1 with data in a cache."""
        return self.predicted / self.measured.median


def predict_training(
    config: TransformerConfig, batch: int, seq_len: int, machine: Accelerator, precision: Format
) -> tuple[int, float]:
    """Return moved bytes and seconds of a training step: three forward passes, and AdamW at the memory bandwidth."""
    operations = forward_operations(config, batch, seq_len, precision=precision, logits="all")
    update = int(ADAM_TRAFFIC * BYTES_PER_NUMBER[precision] * count_parameters(config).total)
    moved = 3 * sum(operation.moved for operation in operations.values()) + update
    return moved, 3 * roofline_seconds(operations, machine, precision).total + update / machine.bandwidth


def measure_training_step(
    network: Transformer, tokens: Int[Tensor, "b s"], machine: Accelerator, precision: Format, watch: Watch
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
    network: Transformer, tokens: Int[Tensor, "b s"], machine: Accelerator, precision: Format, watch: Watch, steps: int
) -> StepMeasurement:
    """Predict and measure a decoding step: one more token for each text of a batch.

    A prompt is read first, so that the texts have `tokens` tokens after all steps. The prediction is for the cache in
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


def measure_peak(network: Transformer, tokens: Int[Tensor, "b s"]) -> int | None:
    """Return the peak of allocated bytes in a training step with its states; None if PyTorch does not count them."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-5, fused=True)

    def step() -> None:
        next_token_loss(network(tokens), tokens).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    step()  # this step creates gradients and moments
    if tokens.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(tokens.device)
        step()
        return torch.cuda.max_memory_allocated(tokens.device)
    if tokens.device.type != "cpu":
        return None
    states = TRAINING_TENSORS * sum(weight.nbytes for weight in network.parameters())
    return states + max(accumulate(memory_events(step)))


TRAINING_TENSORS = 4
"""Tensors per parameter in training: weight, gradient and two moments."""


@dataclass(frozen=True)
class Bench:
    """The result of `lmcourse bench`.

    Attributes:
        machine: the measured peaks and bandwidth.
        known_accelerator: the accelerator's entry in the table; None for a CPU, or if it was not recognised.
        notes: warnings about the accelerator, such as a lowered power limit, to print.
        model, batch, seq_len, precision: the name of the model, sequences per batch, tokens per sequence, number
            format.
        training, decoding: a training step with AdamW, and a decoding step with one new token per sequence.
        saved_predicted, saved_counted: predicted and counted bytes that autograd keeps from the forward pass.
        peak_predicted, peak_measured: peak memory of a training step in bytes; None if it is not counted.
        mfu: MFU of the training step, relative to the measured peak.
        bandwidth_share: fraction of the measured bandwidth that decoding reaches.
        peak_shares: measured peaks as fractions of the table's peaks, by format; empty if there is no table entry.
    """

    machine: Accelerator
    known_accelerator: Accelerator | None
    notes: tuple[str, ...]
    model: str
    batch: int
    seq_len: int
    precision: Format
    training: StepMeasurement
    decoding: StepMeasurement
    saved_predicted: int
    saved_counted: int
    peak_predicted: int
    peak_measured: int | None
    mfu: float
    bandwidth_share: float
    peak_shares: dict[Format, float]

    def to_json(self) -> dict[str, Any]:
        """Return plain numbers, texts and lists, in FLOPs, bytes and seconds."""
        result = asdict(self)
        for name, work in (("training", self.training), ("decoding", self.decoding)):
            first, third = work.measured.quartiles
            result[name] |= {"median": work.measured.median, "quartiles": [first, third], "share": work.share}
            result[name] |= {"tokens_per_second": work.tokens_per_second, "measured": list(work.measured.seconds)}
        return result


def bench(
    model: str | None = None,
    *,
    batch: int = 4,
    seq_len: int = 256,
    steps: int = 5,
    precision: Format | None = None,
    device: torch.device | str | None = None,
    machine: Accelerator | None = None,
    stopwatch: Stopwatch | None = None,
) -> Bench:
    """Measure this machine, then a training step and a decoding step of a model on it.

    Args:
        model: a model of the zoo; by default a small model on a CPU, and a model of GPT-2's size on a GPU.
        batch: sequences per batch.
        seq_len: tokens per sequence in training, and at the end of decoding.
        steps: number of timed steps; WARMUP steps run before them.
        precision: format of weights and activations; by default bf16 on NVIDIA GPUs and fp32 on other devices.
        device: the device; by default the best available.
        machine: the machine's peaks and bandwidth, if they have already been measured.
        stopwatch: as in `time_it`.

    Raises:
        CourseError: the model is not in the zoo, is not a decoder, has a shorter context or is too large for this
            machine; the machine does not support the format; or a size is impossible.
    """
    where = torch.device(device) if device is not None else hardware.best_device()
    entry = find_model(model or ("mini" if where.type == "cpu" else "course-124m"))
    config = _check(entry, batch, seq_len, steps)
    precision = _check_format(where, precision)
    title, memory = (machine.title, machine.memory) if machine else title_and_memory(where)
    size = BYTES_PER_NUMBER[precision]
    recipe = PrecisionRecipe(precision, "AdamW", size, size, 0, 2 * size, precision, precision)
    peak_predicted = training_memory(config, batch, seq_len, recipe).total
    if peak_predicted > memory:
        raise CourseError(
            f"A training step of {entry.name} on {batch} × {seq_len} tokens needs {hardware.gib(peak_predicted)}; "
            f"{title} has {hardware.gib(memory)}. Use a smaller model, --batch or --seq-len."
        )
    measured = machine or measure_machine(device=where)
    network = Transformer(config).to(where, DTYPES[precision])
    tokens = torch.randint(config.vocab_size, (batch, seq_len), device=where)
    watch = partial(time_it, warmup=WARMUP, repeats=steps, device=where, stopwatch=stopwatch)
    saved = saved_tensors(lambda: next_token_loss(network(tokens), tokens), network, without=[tokens]).total
    training = measure_training_step(network, tokens, measured, precision, watch)
    peak = measure_peak(network, tokens)
    decoding = measure_decoding_step(network, tokens, measured, precision, watch, steps)
    try:
        share = mfu(training.flops, training.measured.median, measured, precision)
    except ValueError as error:
        raise CourseError(str(error)) from None
    known_accelerator, notes = present_gpu(where) if where.type == "cuda" else (None, ())
    listed = known_accelerator.peaks if known_accelerator else {}
    return Bench(
        machine=measured,
        known_accelerator=known_accelerator,
        notes=notes,
        model=entry.name,
        batch=batch,
        seq_len=seq_len,
        precision=precision,
        training=training,
        decoding=decoding,
        saved_predicted=predict_saved_bytes(config, batch, seq_len, dtype=DTYPES[precision]).total,
        saved_counted=saved,
        peak_predicted=peak_predicted,
        peak_measured=peak,
        mfu=share,
        bandwidth_share=decoding.moved / decoding.measured.median / measured.bandwidth,
        peak_shares={name: peak / listed[name] for name, peak in measured.peaks.items() if name in listed},
    )


def _check(entry: Entry, batch: int, seq_len: int, steps: int) -> TransformerConfig:
    config = find_decoder(entry.name)
    if batch < 1 or steps < 1 or seq_len <= WARMUP + steps:
        raise CourseError(
            f"--steps and --batch must be at least 1, not {steps} and {batch}, and --seq-len must be above "
            f"{WARMUP} + steps = {WARMUP + steps}, not {seq_len}."
        )
    if config.context is not None and seq_len > config.context:
        raise CourseError(
            f"{entry.name} has a context of {config.context} tokens, not {seq_len}: use a smaller --seq-len."
        )
    return config


def _check_format(device: torch.device, precision: Format | None) -> Format:
    usable = [name for name in MEASURED_FORMATS[device.type] if name in DTYPES and has_units(name, device)]
    if precision is None:
        return "bf16" if device.type == "cuda" and "bf16" in usable else "fp32"
    if precision not in usable:
        raise CourseError(f"{precision} is not measured on a {device.type} device: use one of {', '.join(usable)}.")
    return precision
