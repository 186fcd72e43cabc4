"""Training configuration: every setting that changes the result of a run, its limits, and how processes share it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from lmcourse.nn.checks import check_choice
from lmcourse.training.precision import Precision
from lmcourse.training.schedules import Constant, Cosine, Schedule, WarmupStableDecay

MOST_TOKENS_PER_STEP = 2**28
"""Largest allowed number of tokens per step: several times the largest of published runs. All batches of a step are in
memory together."""

OptimizerName = Literal["adamw", "muon"]
ScheduleName = Literal["constant", "cosine", "wsd"]
PipelineSchedule = Literal["gpipe", "1f1b"]

PARALLEL_DIMS = ("pipeline_parallel", "data_parallel", "fsdp", "tensor_parallel")
"""The dimensions of the device mesh, which are fields of `Parallelism`. Processes along the last dimension communicate
most; their ranks are consecutive, so that they are on the same machine."""


@dataclass(frozen=True)
class Parallelism:
    """The sizes of the parallel dimensions, whose product is the number of processes.

    Attributes:
        data_parallel: copies of the model that see different windows (DDP)
        fsdp: processes that see different windows and divide weights, gradients and optimizer state among them: FSDP2,
            which is ZeRO's stage 3 (Rajbhandari et al., 2020)
        tensor_parallel: processes that divide every matrix (Shoeybi et al., 2019)
        sequence_parallel: let the processes that divide the matrices also divide the activations between the
            matrices, along the tokens (Korthikanti et al., 2022)
        pipeline_parallel: stages, each with some of the blocks (Huang et al., 2019)
        pipeline_schedule: the order in which the stages work: "gpipe", or "1f1b" (Narayanan et al., 2021), which keeps
            fewer activations

    Raises:
        ValueError: a number is out of range.
    """

    data_parallel: int = 1
    fsdp: int = 1
    tensor_parallel: int = 1
    sequence_parallel: bool = False
    pipeline_parallel: int = 1
    pipeline_schedule: PipelineSchedule = "1f1b"

    def __post_init__(self) -> None:
        check_choice("pipeline_schedule", self.pipeline_schedule, PipelineSchedule)
        for name in PARALLEL_DIMS:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.sequence_parallel and self.tensor_parallel == 1:
            raise ValueError(
                "sequence parallelism works only together with tensor parallelism: set tensor_parallel above 1"
            )

    @property
    def world_size(self) -> int:
        """The number of processes: the product of all dimensions."""
        return math.prod(getattr(self, name) for name in PARALLEL_DIMS)

    @property
    def dp_size(self) -> int:
        """The number of data-parallel processes, which see different windows: DDP × FSDP2."""
        return self.data_parallel * self.fsdp


ONE_PROCESS = Parallelism()


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a training run. A step is one update of the weights.

    Attributes:
        steps: updates of the weights
        batch: windows per micro-batch; data-parallel processes divide them evenly, so a run gives the same result on
            any number of them
        seq_len: tokens per window, which is the longest text that the model will read
        grad_accum_steps: micro-batches per step; their gradients are summed
        seed: random seed of the weights, the order of the windows and dropout
        optimizer: "adamw", or "muon" for the matrices of the blocks, with AdamW for the rest
        learning_rate: AdamW's learning rate at the peak of the schedule
        muon_learning_rate: Muon's learning rate at the peak of the schedule
        muon_momentum: Muon's momentum
        muon_iterations: Newton-Schulz iterations in each step of Muon
        schedule: how the learning rate falls: "constant", "cosine" or "wsd" (warm-up, stable, decay), see
            `lmcourse.training.schedules`
        warmup_steps: steps until the peak of the schedule
        decay_steps: steps at the end in which the rate of "wsd" falls
        min_lr_ratio: learning rate at the end of "cosine" and "wsd", as a fraction of the peak
        weight_decay: λ of AdamW and Muon, for matrices only (`lmcourse.training.param_groups`)
        betas: AdamW's β₁ and β₂
        eps: AdamW's ε
        grad_clip: largest norm of the gradient; a larger one is scaled down; None does not clip
        z_loss: factor of (log Z)² in the loss
        precision: number format of matrix products: "fp32", "bf16" or "fp16"; weights stay in fp32
        activation_checkpointing: compute every block a second time in the backward pass instead of keeping its
            activations (Chen et al., 2016), to save memory
        compile: let torch compile the model, which takes a minute and then makes steps faster
        spike_factor: report a spike if the norm of a gradient is this many times the usual one
        evaluate_every: steps between evaluations on the validation text; None evaluates only at the end
        checkpoint_every: steps between checkpoints; None saves at the end and at each new best validation loss
        keep_checkpoints: number of newest checkpoints to keep, besides the one with the best validation loss
        max_seconds: stop after the step in which the run, over all sessions, has used this time
        max_tokens: stop before the step that would read more tokens than this
        parallel: how processes share the work

    Raises:
        ValueError: a setting is out of range.

    Example:
        >>> config = TrainingConfig(steps=1000, batch=8, seq_len=256, schedule="wsd", warmup_steps=50, decay_steps=200)
        >>> config.learning_rate, config.optimizer
        (0.001, 'adamw')
    """

    steps: int
    batch: int
    seq_len: int
    grad_accum_steps: int = 1
    seed: int = 0
    optimizer: OptimizerName = "adamw"
    learning_rate: float = 1e-3
    muon_learning_rate: float = 0.02
    muon_momentum: float = 0.95
    muon_iterations: int = 5
    schedule: ScheduleName = "cosine"
    warmup_steps: int = 0
    decay_steps: int = 0
    min_lr_ratio: float = 0.0
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    grad_clip: float | None = 1.0
    z_loss: float = 0.0
    precision: Precision = "fp32"
    activation_checkpointing: bool = False
    compile: bool = False
    spike_factor: float = 5.0
    evaluate_every: int | None = None
    checkpoint_every: int | None = None
    keep_checkpoints: int = 2
    max_seconds: float | None = None
    max_tokens: int | None = None
    parallel: Parallelism = ONE_PROCESS

    def __post_init__(self) -> None:
        check_choice("optimizer", self.optimizer, OptimizerName)
        check_choice("schedule", self.schedule, ScheduleName)
        check_choice("precision", self.precision, Precision)
        for name in (
            "steps",
            "batch",
            "seq_len",
            "grad_accum_steps",
            "keep_checkpoints",
            "evaluate_every",
            "checkpoint_every",
            "muon_iterations",
        ):
            self._check(name, 1)
        for name in ("seed", "weight_decay", "z_loss", "muon_momentum"):
            self._check(name, 0)
        for name in ("learning_rate", "muon_learning_rate", "eps", "grad_clip", "spike_factor", "max_seconds"):
            self._check(name, 0, above=True)
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be at least 0 and below 1, not {self.betas}")
        if self.muon_momentum >= 1 or self.muon_iterations >= 100:
            raise ValueError(
                f"muon_momentum must be below 1 and muon_iterations below 100, "
                f"not {self.muon_momentum} and {self.muon_iterations}"
            )
        if self.decay_steps and self.schedule != "wsd":
            raise ValueError(f"decay_steps is only for the schedule 'wsd', not for {self.schedule!r}")
        if self.max_tokens is not None and self.max_tokens < self.tokens_per_step:
            raise ValueError(f"max_tokens {self.max_tokens} is less than the {self.tokens_per_step} tokens of one step")
        if self.tokens_per_step > MOST_TOKENS_PER_STEP:
            raise ValueError(
                f"a step of {self.tokens_per_step:,} tokens (batch · seq_len · grad_accum_steps) is more than the "
                f"limit of {MOST_TOKENS_PER_STEP:,}"
            )
        if self.batch % self.parallel.dp_size:
            processes = self.parallel.dp_size
            raise ValueError(f"a batch of {self.batch} cannot be divided evenly among {processes} processes")
        self.make_schedule()

    def _check(self, name: str, least: float, *, above: bool = False) -> None:
        """Reject a number that is too small or infinite; `not >=` rejects NaN, too."""
        value = getattr(self, name)
        if value == math.inf:
            raise ValueError(f"{name} must be finite, not {value}")
        if value is not None and not (value > least if above else value >= least):
            raise ValueError(f"{name} must be {'above' if above else 'at least'} {least}, not {value}")

    @property
    def tokens_per_step(self) -> int:
        """Tokens that one update learns from."""
        return self.grad_accum_steps * self.batch * self.seq_len

    @property
    def most_steps(self) -> int:
        """The number of steps, if no time limit ends the run earlier."""
        return self.steps if self.max_tokens is None else min(self.steps, self.max_tokens // self.tokens_per_step)

    def make_schedule(self) -> Schedule:
        """Return the factor of `learning_rate` at every step, or raise ValueError if the phases do not fit the run."""
        if self.schedule == "constant":
            return Constant(self.warmup_steps)
        if self.schedule == "cosine":
            return Cosine(self.steps, self.warmup_steps, self.min_lr_ratio)
        return WarmupStableDecay(self.steps, self.warmup_steps, self.decay_steps, min_lr_ratio=self.min_lr_ratio)


def changes(before: dict[str, object], after: dict[str, object]) -> str:
    """Return the settings that differ, as "learning_rate 0.1 → 0.2, parallel.fsdp 1 → 2"; "" if all are equal."""
    was, now = _flat(before), _flat(after)
    return ", ".join(f"{name} {was.get(name)} → {value}" for name, value in now.items() if was.get(name) != value)


def _flat(settings: dict[str, object]) -> dict[str, object]:
    """Return the settings by name, with each setting of `parallel` as a separate entry."""
    flat: dict[str, object] = {}
    for name, value in settings.items():
        flat |= {f"{name}.{part}": each for part, each in value.items()} if isinstance(value, dict) else {name: value}
    return flat
