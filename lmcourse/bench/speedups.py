"""Measure the effect of some well-known changes on the speed of a training step on this machine.

The changes are tried one after the other. Each is timed alternately with the fastest step so far, and kept only if it
is faster. This is a greedy search, so the result depends on the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import record_function

from lmcourse.accounting.timing import Stopwatch, synchronise, time_interleaved
from lmcourse.models.config import TransformerConfig
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer

PLAIN = [SDPBackend.MATH]
FUSED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Fused attention kernels. torch uses the first kernel that supports the device, the dtype and the mask."""


@dataclass(frozen=True)
class StepSetup:
    """Settings of a training step; the defaults are the slow baseline.

    Attributes:
        batch: sequences per step.
        fused_optimizer: whether AdamW is one kernel instead of several kernels per parameter tensor.
        fused_attention: whether to use a kernel that does not store the matrix of scores, if torch has one.
        bf16: whether products are in bf16 (autocast); weights stay in fp32.
        compiled: whether to use torch.compile, which takes most of a minute before the first step.
    """

    batch: int = 1
    fused_optimizer: bool = False
    fused_attention: bool = False
    bf16: bool = False
    compiled: bool = False


Optimization = Callable[[StepSetup], StepSetup]


@dataclass(frozen=True)
class Speedup:
    """One change to a training step, and its effect on the speed.

    Attributes:
        name: the name of the change.
        before, after: tokens per second without and with the change, from median times; "without" is the fastest step
            so far.
        setup: the fastest setup so far, including the change if it is kept.
    """

    name: str
    before: float
    after: float
    setup: StepSetup

    @property
    def ratio(self) -> float:
        """The speed after the change divided by the speed before it."""
        return self.after / self.before

    @property
    def kept(self) -> bool:
        """True if the step became faster, so that the next change starts from it."""
        return self.after > self.before


def optimizations(batch: int, device: torch.device | str) -> dict[str, Optimization]:
    """Return the optimizations by name, in the order of trial; without torch.compile on a CPU, where it takes 40 s."""
    steps: dict[str, Optimization] = {
        f"{batch} texts at once": lambda setup: replace(setup, batch=batch),
        "fused optimizer": lambda setup: replace(setup, fused_optimizer=True),
        "fused attention": lambda setup: replace(setup, fused_attention=True),
        "bf16": lambda setup: replace(setup, bf16=True),
    }
    if torch.device(device).type != "cpu":
        steps["compiled"] = lambda setup: replace(setup, compiled=True)
    return steps


def measure_speedups(
    config: TransformerConfig,
    seq_len: int,
    *,
    batch: int = 8,
    device: torch.device | str = "cpu",
    warmup: int = 1,
    repeats: int = 5,
    stopwatch: Stopwatch | None = None,
) -> list[Speedup]:
    """Try the changes one after the other, and keep each only if it makes a step faster.

    Args:
        config: the configuration of a decoder.
        seq_len: tokens per sequence.
        batch: sequences per step after the first change; the baseline has one sequence.
        device, warmup, repeats, stopwatch: as in `lmcourse.accounting.timing.time_interleaved`.
    """
    best, speedups = StepSetup(), []
    for name, change in optimizations(batch, device).items():
        tried = change(best)
        steps = {setup: make_training_step(config, setup, seq_len, device) for setup in (best, tried)}
        timings = time_interleaved(
            {"before": steps[best], "after": steps[tried]},
            warmup=warmup,
            repeats=repeats,
            device=device,
            stopwatch=stopwatch,
        )
        before = best.batch * seq_len / timings["before"].median
        after = tried.batch * seq_len / timings["after"].median
        best = tried if after > before else best
        speedups.append(Speedup(name, before, after, best))
    return speedups


def make_training_step(
    config: TransformerConfig, setup: StepSetup, seq_len: int, device: torch.device | str = "cpu", *, wait: bool = False
) -> Callable[[], Tensor]:
    """Return a function that does a training step on random tokens with a fixed seed, and returns the loss.

    torch.profiler shows its phases as "forward", "backward" and "optimizer". With `wait`, each phase waits until the
    device has finished, so that its time includes all of its work.
    """
    where = torch.device(device)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        model = Transformer(config).to(where)
        tokens = torch.randint(config.vocab_size, (setup.batch, seq_len + 1)).to(where)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False, fused=setup.fused_optimizer)
    forward = torch.compile(model) if setup.compiled else model

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        with record_function(name):
            yield
            if wait:
                synchronise(where)

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with (
            phase("forward"),
            sdpa_kernel(FUSED if setup.fused_attention else PLAIN, set_priority=True),
            torch.autocast(where.type, torch.bfloat16, enabled=setup.bf16),
        ):
            loss = next_token_loss(forward(tokens[:, :-1]), tokens[:, 1:])
        with phase("backward"):
            loss.backward()  # type: ignore[no-untyped-call]
        with phase("optimizer"):
            optimizer.step()
        return loss.detach()

    return step
