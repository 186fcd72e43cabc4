"""The trainer: steps, evaluations, metrics and checkpoints, until the run is over.

    folder/metrics.jsonl               a line per step
    folder/checkpoints/step-00000100   see `checkpoint`

A run that was killed goes on with `resume`: on a CPU its losses are, bit for bit, those of a run that was never killed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from lmcourse.data.batch import Batch
from lmcourse.data.loader import Tokens
from lmcourse.errors import CourseError
from lmcourse.training.checkpoints import Checkpoints
from lmcourse.training.config import TrainingConfig
from lmcourse.training.evaluation import evaluate
from lmcourse.training.generators import generator_states, load_generator_states, seed_all
from lmcourse.training.metrics import Metrics, Record
from lmcourse.training.recompute import recompute_blocks
from lmcourse.training.state import Limit, TrainingState
from lmcourse.training.step import NotFiniteError, StepResult, training_step

log = logging.getLogger(__name__)

Listener = Callable[[Record], None]
"""Is told what `metrics.jsonl` is told, after every step: a progress bar, a live plot, a count of MFU."""


class Trainer:
    """Trains one model on one device.

    Args:
        model: from tokens to logits, on the device where it is to be trained; fp32.
        config: the run.
        tokens: the text to learn.
        folder: where metrics and checkpoints go.
        validation: a text to evaluate on, if any.
        listeners: called after every step.

    Attributes:
        state: how far it is; also the optimiser, the loader and the model.

    Raises:
        ValueError: the text is too short, or the model cannot be trained like this.
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
    ) -> None:
        seed_all(config.seed)
        if config.recompute:
            recompute_blocks(model)
        if config.compile:
            model.compile()
        self.state, self.config = TrainingState(model, config, tokens), config
        self.validation, self.listeners, self.folder = validation, listeners, folder
        self.checkpoints = Checkpoints(folder / "checkpoints", config.keep)
        self.schedule = config.make_schedule()
        self._metrics = folder / "metrics.jsonl"
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
        if self._metrics.exists():
            with Metrics(self._metrics) as metrics:
                metrics.cut(self.state.step)
        self._resumed = True
        return self.state.step

    def run(self) -> Limit:
        """Train until the steps are done or a budget is spent; end with an evaluation and a checkpoint.

        Returns:
            What came first.

        Raises:
            CourseError: there is a run in the folder already; or a loss was not finite. Then the state before that step
                is in a checkpoint, and the message says where.
        """
        if self._metrics.exists() and not self._resumed:
            raise CourseError(f"{self.folder} has a run already: resume it, or choose another folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        state = self.state
        state.model.train()
        begin = time.monotonic() - state.seconds
        with Metrics(self._metrics) as metrics, state.loader:
            reason = state.over()
            while reason is None:
                record = self._advance(metrics)
                state.seconds = time.monotonic() - begin
                reason = state.over()
                self._finish(record, metrics, last=reason is not None)
        return reason

    def _advance(self, metrics: Metrics) -> dict[str, Any]:
        """Do a step; return what there is to tell about it."""
        state, begin = self.state, time.perf_counter()
        rate = self.config.learning_rate * self.schedule(state.step)
        for group in state.optimiser.param_groups:
            group["lr"] = rate
        before, generators = state.loader.state_dict(), generator_states()
        batches = [next(state.loader) for _ in range(self.config.accumulate)]
        try:
            result = self._update(batches)
        except NotFiniteError as error:
            windows = f"windows {before['windows']} to {state.loader.state_dict()['windows'] - 1}"
            state.loader.load_state_dict(before)
            load_generator_states(generators)
            place = self._save(metrics)
            raise CourseError(
                f"step {state.step + 1}, {windows}: {error}; the last good checkpoint, of step {state.step}, is {place}"
            ) from None
        state.step += 1
        return {
            "step": state.step,
            "tokens": state.tokens,
            "loss": result.loss,
            "learning_rate": rate,
            "gradient_norm": result.gradient_norm,
            "tokens_per_second": self.config.tokens_per_step / (time.perf_counter() - begin),
            **self._oddities(result),
        }

    def _update(self, batches: list[Batch]) -> StepResult:
        state, config = self.state, self.config
        return training_step(
            state.model, batches, state.optimiser, state.precision, clip=config.clip, z_loss=config.z_loss
        )

    def _oddities(self, result: StepResult) -> dict[str, Any]:
        """What is unusual about a step, which is also reported in a line."""
        step, norm = self.state.step, result.gradient_norm
        spike = self.state.spikes.see(norm)
        if result.skipped:
            log.warning("step %d: gradients overflowed in fp16, so there was no update", step)
            return {"skipped": True}
        if spike is not None:
            log.warning("step %d: the gradient norm is %.3g, %.1f times the usual", step, norm, spike)
            return {"spike": spike}
        return {}

    def _finish(self, record: dict[str, Any], metrics: Metrics, *, last: bool) -> None:
        """What follows a step: evaluate, tell, save; each when it is due."""
        state, config, improved = self.state, self.config, False
        if self.validation is not None and (last or _due(state.step, config.evaluate_every)):
            loss = evaluate(state.model, self.validation, config.batch, config.length, state.precision)
            record["validation_loss"] = loss
            improved = loss < state.best_loss
            if improved:
                state.best_loss, state.best_step = loss, state.step
        metrics.write(record)
        for listener in self.listeners:
            listener(record)
        if last or improved or _due(state.step, config.checkpoint_every):
            self._save(metrics)

    def _save(self, metrics: Metrics) -> Path:
        """Write the checkpoint of this step, if there is none yet."""
        if self._saved != self.state.step:
            metrics.sync()
            self.state.save(self.checkpoints)
            self._saved = self.state.step
        return self.checkpoints.place(self.state.step)


def _due(step: int, every: int | None) -> bool:
    return every is not None and step % every == 0
