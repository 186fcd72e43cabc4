"""The trainer: steps, evaluations, metrics and checkpoints, until the run is over.

    folder/metrics.jsonl               a line per step
    folder/checkpoints/step-00000100   see `checkpoint`

A run that was killed goes on with `resume`: on a CPU its losses are, bit for bit, those of a run that was never killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from lmcourse.data.batch import Batch
from lmcourse.data.loader import Tokens
from lmcourse.training.activation_checkpointing import apply_activation_checkpointing
from lmcourse.training.checkpoints import Checkpoints
from lmcourse.training.config import TrainingConfig
from lmcourse.training.evaluation import evaluate
from lmcourse.training.generators import generator_states, load_generator_states, seed_all
from lmcourse.training.metrics import Record
from lmcourse.training.oddities import MOST_SKIPPED, oddities, why_stuck
from lmcourse.training.report import Report
from lmcourse.training.state import Limit, TrainingState
from lmcourse.training.step import NotFiniteError, StepResult, training_step
from lmcourse.training.team import assemble

Listener = Callable[[Record], None]
"""Is told what `metrics.jsonl` is told, after every step: a progress bar, a live plot, TensorBoard."""

Meter = Callable[[float], Record]
"""What the tokens per second of a step are worth, to be told with it: `lmcourse.training.utilisation`."""


class Trainer:
    """Trains one model: on one device, or on as many as `config.parallel` says.

    For the latter, every process makes its own trainer of the same model, inside of `parallel.processes`. All get the
    same results; the first one writes and tells.

    Args:
        model: from tokens to logits, on the device where it is to be trained; fp32. It is changed if it is divided.
        config: the run.
        tokens: the text to learn.
        folder: where metrics and checkpoints go.
        validation: a text to evaluate on, if any.
        listeners: called after every step.
        meter: adds the MFU to what is told of a step, if any.

    Attributes:
        state: how far it is; also the optimiser, the loader and the model, of which it may have a part only.
        model: what a step calls: the model, or what divides it.

    Raises:
        ValueError: the text is too short, or the model cannot be trained or divided like this.
        CourseError: another number of processes was started than the run is for.
    """

    def __init__(
        self,
        model: nn.Module,
        config: TrainingConfig,
        tokens: Tokens,
        folder: Path,
        *,
        validation: Tokens | None = None,
        listeners: Sequence[Listener] = (),
        meter: Meter | None = None,
    ) -> None:
        self.team = assemble(config.parallel, next(model.parameters()).device)
        seed_all(config.seed, self.team.stream)
        if config.activation_checkpointing:
            apply_activation_checkpointing(model)
        part, self.model = self.team.divide(model, config)
        if config.compile:
            self.model.compile()
        self.state, self.config = TrainingState(part, config, tokens, self.team), config
        self.validation, self.listeners, self.folder = validation, listeners, folder
        self.meter = meter
        self.checkpoints = Checkpoints(folder / "checkpoints", config.keep_checkpoints, self.team)
        self.schedule = config.make_schedule()
        self._report = Report(folder / "metrics.jsonl", self.team)
        self._resumed = False
        self._saved: int | None = None

    def resume(self) -> int:
        """Go on after the newest checkpoint that is whole, or at the start if there is none; later metrics are dropped.

        Returns:
            The step of that checkpoint.

        Raises:
            CourseError: all checkpoints are damaged, or they are of another model, text or format.
        """
        newest = self.checkpoints.newest()
        if newest is not None:
            self.state.load(*newest)
            self._saved = self.state.step
        self._report.cut(self.state.step)
        self._resumed = True
        return self.state.step

    def run(self) -> Limit:
        """Train until the steps are done or a budget is spent; end with an evaluation and a checkpoint.

        Returns:
            What came first.

        Raises:
            CourseError: there is a run in the folder already; or a loss was not finite, or fp16 overflowed without end.
                Then the last good state is in a checkpoint, and the message says where.
        """
        if self._report.exists() and not self._resumed:
            raise self.team.stop(f"{self.folder} has a run already: resume it, or choose another folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        state = self.state
        self.model.train()
        begin = time.monotonic() - state.seconds
        with self._report, state.loader:
            reason = state.over()
            while reason is None:
                record = self._advance()
                state.seconds = self.team.decide(time.monotonic() - begin)
                reason = state.over()
                self._finish(record, last=reason is not None)
        return reason

    def _advance(self) -> dict[str, Any]:
        """Do a step; return what there is to tell about it."""
        state, begin = self.state, time.perf_counter()
        rate = self.config.learning_rate * self.schedule(state.step)
        for group in state.optimiser.param_groups:
            group["lr"] = rate
        before, generators = state.loader.state_dict(), generator_states()
        batches = [next(state.loader) for _ in range(self.config.grad_accum_steps)]
        try:
            result = self._update(batches)
        except NotFiniteError as error:
            windows = f"windows {before['windows']} to {state.loader.state_dict()['windows'] - 1}"
            state.loader.load_state_dict(before)
            load_generator_states(generators)
            place = self._save()
            raise self.team.stop(
                f"step {state.step + 1}, {windows}: {error}; the last good checkpoint, of step {state.step}, is {place}"
            ) from None
        state.step += 1
        state.skipped = state.skipped + 1 if result.skipped else 0
        speed = self.config.tokens_per_step / (time.perf_counter() - begin)
        return {
            "step": state.step,
            "tokens": state.tokens,
            "loss": result.loss,
            "learning_rate": rate,
            "gradient_norm": result.gradient_norm,
            "tokens_per_second": speed,
            **(self.meter(speed) if self.meter else {}),
            **oddities(state.step, result, state.spikes),
        }

    def _update(self, batches: list[Batch]) -> StepResult:
        optimiser, precision = self.state.optimiser, self.state.precision
        grad_clip, z_loss = self.config.grad_clip, self.config.z_loss
        return training_step(
            self.model, batches, optimiser, precision, grad_clip=grad_clip, z_loss=z_loss, team=self.team
        )

    def _finish(self, record: dict[str, Any], *, last: bool) -> None:
        """What follows a step: evaluate, tell, save; each when it is due."""
        state, config, improved = self.state, self.config, False
        if self.validation is not None and (last or _due(state.step, config.evaluate_every)):
            loss = evaluate(self.model, self.validation, config.batch, config.seq_len, state.precision, self.team)
            record["validation_loss"] = loss
            improved = loss < state.best_loss
            if improved:
                state.best_loss, state.best_step = loss, state.step
        self._report.tell(record, self.listeners)
        if last or improved or _due(state.step, config.checkpoint_every):
            self._save()
        if state.skipped >= MOST_SKIPPED:
            raise self.team.stop(why_stuck(state.step, self._save()))

    def _save(self) -> Path:
        """Write the checkpoint of this step, if there is none yet."""
        if self._saved != self.state.step:
            self._report.sync()
            self.state.save(self.checkpoints)
            self._saved = self.state.step
        return self.checkpoints.place(self.state.step)


def _due(step: int, every: int | None) -> bool:
    return every is not None and step % every == 0
