"""One change, one measurement: what makes a training step faster on the machine before you.

Every rung changes one setting of the fastest step so far and is timed in turns with it. A change that does not help is
taken back, so the next one starts from what is known to be best here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from lmcourse.accounting.timing import Stopwatch, compare
from lmcourse.models.config import TransformerConfig
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer

PLAIN = [SDPBackend.MATH]
FUSED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""torch takes the first of these that knows the device, the dtype and the mask."""


@dataclass(frozen=True)
class StepSetup:
    """How a training step is done; the defaults are the slow way.

    Attributes:
        batch: texts per step.
        fused_optimizer: AdamW in one kernel; else several kernels for each parameter tensor.
        fused_attention: without writing the matrix of scores, where torch has a kernel for it.
        bf16: products in bf16 by autocast; weights stay fp32.
        compiled: by torch.compile, which takes most of a minute before the first step.
    """

    batch: int = 1
    fused_optimizer: bool = False
    fused_attention: bool = False
    bf16: bool = False
    compiled: bool = False


Change = Callable[[StepSetup], StepSetup]


@dataclass(frozen=True)
class Rung:
    """One change and what it brought.

    Attributes:
        name: of the change.
        before, after: tokens per second, of the medians, measured in turns.
        setup: the fastest after it.
    """

    name: str
    before: float
    after: float
    setup: StepSetup

    @property
    def ratio(self) -> float:
        """How many times as fast the step became."""
        return self.after / self.before

    @property
    def kept(self) -> bool:
        """Whether the change helped."""
        return self.after > self.before


def changes(batch: int, device: torch.device | str) -> dict[str, Change]:
    """The changes in the order of the ladder. On a CPU nothing is compiled: it would take longer than all the rest."""
    steps: dict[str, Change] = {
        f"{batch} texts at once": lambda setup: replace(setup, batch=batch),
        "fused optimiser": lambda setup: replace(setup, fused_optimizer=True),
        "fused attention": lambda setup: replace(setup, fused_attention=True),
        "bf16": lambda setup: replace(setup, bf16=True),
    }
    if torch.device(device).type != "cpu":
        steps["compiled"] = lambda setup: replace(setup, compiled=True)
    return steps


def climb(
    config: TransformerConfig,
    seq_len: int,
    *,
    batch: int = 8,
    device: torch.device | str = "cpu",
    warmup: int = 1,
    repeats: int = 5,
    stopwatch: Stopwatch | None = None,
) -> list[Rung]:
    """Make the changes one by one.

    Args:
        config: a decoder.
        seq_len: tokens of each text.
        batch: texts per step from the first rung on.
        device, warmup, repeats, stopwatch: as in `lmcourse.accounting.timing.compare`.
    """
    best, rungs = StepSetup(), []
    for name, change in changes(batch, device).items():
        tried = change(best)
        steps = {setup: training_step(config, setup, seq_len, device) for setup in (best, tried)}
        timings = compare(
            {"before": steps[best], "after": steps[tried]},
            warmup=warmup,
            repeats=repeats,
            device=device,
            stopwatch=stopwatch,
        )
        before = best.batch * seq_len / timings["before"].median
        after = tried.batch * seq_len / timings["after"].median
        best = tried if after > before else best
        rungs.append(Rung(name, before, after, best))
    return rungs


def training_step(
    config: TransformerConfig, setup: StepSetup, seq_len: int, device: torch.device | str = "cpu"
) -> Callable[[], Tensor]:
    """A function that does one step on random tokens, always the same, and returns the loss before it."""
    where = torch.device(device)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        model = Transformer(config).to(where)
        tokens = torch.randint(config.vocab_size, (setup.batch, seq_len + 1)).to(where)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False, fused=setup.fused_optimizer)
    forward = torch.compile(model) if setup.compiled else model

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with (
            sdpa_kernel(FUSED if setup.fused_attention else PLAIN, set_priority=True),
            torch.autocast(where.type, torch.bfloat16, enabled=setup.bf16),
        ):
            loss = next_token_loss(forward(tokens[:, :-1]), tokens[:, 1:])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.detach()

    return step
