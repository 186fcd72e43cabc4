"""The trainer: steps, evaluations, metrics and checkpoints, until the run ends.

    folder/metrics.jsonl               a line per step
    folder/checkpoints/step-00000100   see `checkpoint`

`resume` continues a run that was killed: on a CPU its losses match an uninterrupted run bit for bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from lmcourse.data.loader import Tokens
from lmcourse.nn.checks import check_type
from lmcourse.training.activation_checkpointing import apply_activation_checkpointing
from lmcourse.training.checkpoint_manager import CheckpointManager
from lmcourse.training.evaluation import evaluate
from lmcourse.training.metrics import MetricsFile, Record
from lmcourse.training.parallel.process_group import make_context
from lmcourse.training.spike_detector import MAX_SKIPPED_STEPS, anomalies
from lmcourse.training.state import StopReason, TrainingState, rng_states, seed_all, set_rng_states
from lmcourse.training.step import NotFiniteError, training_step
from lmcourse.training.training_config import TrainingConfig

Callback = Callable[[Record], None]
"""A function that is called with the record of every step, as in `metrics.jsonl`: a progress bar, a live plot,
TensorBoard."""

Meter = Callable[[float], Record]
"""A function that converts the tokens per second of a step into values for its record."""


class Trainer:
    """Train a model on one device, or on several as set in `TrainingConfig.parallel`.

    On several devices every process creates its own trainer for the same model, inside `parallel.process_group`. All
    get the same results; rank 0 writes them. Raises TypeError if `model` or `config` has the wrong type, and ValueError
    if the text is too short, or the model cannot be trained or divided like this, and CourseError if the number of
    started processes differs from the run's.

    Args:
        model: maps tokens to logits; in fp32, on the device where it will be trained. Dividing it among processes
            changes it in place.
        config: the settings of the run.
        tokens: the text to learn.
        folder: the folder for metrics and checkpoints.
        validation: a text to evaluate on, if any.
        callbacks: functions to call after every step, in the process that passes them.
        make_meter: makes a meter from model and config; `mfu_meter.make_mfu_meter` adds the MFU to every record.

    Attributes:
        state: the state of the run, with the optimizer, the loader and the model, or this process's part of the model.
        model: the module that a step calls: the model, or a module around it that divides the work.

    Example:
        >>> model = Transformer(llama_like(1, 16, 2, 32, vocab_size=256, context=16))
        >>> tokens = torch.tensor(ByteTokenizer().encode("To be, or not to be. " * 20))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trainer = Trainer(model, TrainingConfig(steps=3, batch=2, seq_len=8), tokens, folder)
        ...     trainer.run()  # why the run ended
        ...     sorted(path.name for path in Path(folder).iterdir())
        'steps'
        ['checkpoints', 'metrics.jsonl']
    """

    def __init__(
        self,
        model: nn.Module,
        config: TrainingConfig,
        tokens: Tokens,
        folder: str | Path,
        *,
        validation: Tokens | None = None,
        callbacks: Sequence[Callback] = (),
        make_meter: Callable[[nn.Module, TrainingConfig], Meter | None] = lambda model, config: None,
    ) -> None:
        check_type("model", model, nn.Module, "such as Transformer(config)")
        check_type("config", config, TrainingConfig, "such as TrainingConfig(steps=100, batch=8, seq_len=64)")
        folder = Path(folder)
        self.meter = make_meter(model, config)  # before the generators are seeded, because measuring draws numbers
        self.distributed = make_context(config.parallel, next(model.parameters()).device)
        seed_all(config.seed, self.distributed.rng_stream)
        if config.activation_checkpointing:
            apply_activation_checkpointing(model)
        part, self.model = self.distributed.parallelize(model, config)
        if config.compile:
            self.model.compile()
        self.state, self.config = TrainingState(part, config, tokens, self.distributed), config
        self.validation, self.callbacks, self.folder = validation, callbacks, folder
        self.checkpoints = CheckpointManager(folder / "checkpoints", config.keep_checkpoints, self.distributed)
        self.schedule = config.make_schedule()
        self._metrics = MetricsFile(folder / "metrics.jsonl", self.distributed)
        self._resumed = False
        self._saved: int | None = None

    def resume(self) -> int:
        """Resume from the newest undamaged checkpoint, or from the start if there is none, and return its step.

        Later metrics are removed. CourseError is raised if all checkpoints are damaged, or if they belong to another
        model or text, or have another format.
        """
        latest = self.checkpoints.latest()
        if latest is not None:
            self.state.load(*latest)
            self._saved = self.state.step
        self._metrics.truncate(self.state.step)
        self._resumed = True
        return self.state.step

    def run(self) -> StopReason:
        """Train until the steps are done or a budget is used up, and return which it is.

        A run ends with an evaluation and a checkpoint. Raises CourseError if the folder already has a run, if
        a loss was not finite, or if fp16 kept overflowing; the last two name the last good checkpoint.
        """
        if self.distributed.broadcast(self._metrics.path.exists()) and not self._resumed:
            raise self.distributed.make_error(f"{self.folder} already has a run: resume it, or choose another folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        state = self.state
        self.model.train()
        begin = time.monotonic() - state.seconds
        with self._metrics, state.loader:
            reason = state.stop_reason()
            while reason is None:
                record = self._advance()
                state.seconds = self.distributed.broadcast(time.monotonic() - begin)
                reason = state.stop_reason()
                self._finish(record, last=reason is not None)
        return reason

    def _advance(self) -> dict[str, Any]:
        """Do a step; return its record."""
        state, begin = self.state, time.perf_counter()
        factor = self.schedule(state.step)
        for group in state.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * factor
        before, generators = state.loader.state_dict(), rng_states()
        batches = [next(state.loader) for _ in range(self.config.grad_accum_steps)]
        try:
            result = training_step(
                self.model,
                batches,
                state.optimizer,
                state.precision,
                grad_clip=self.config.grad_clip,
                z_loss=self.config.z_loss,
                distributed=self.distributed,
            )
        except NotFiniteError as error:
            windows = f"windows {before['windows']} to {state.loader.state_dict()['windows'] - 1}"
            state.loader.load_state_dict(before)
            set_rng_states(generators)
            checkpoint = self.save()
            raise self.distributed.make_error(
                f"step {state.step + 1}, {windows}: {error}; "
                f"the last good checkpoint, of step {state.step}, is {checkpoint}"
            ) from None
        state.step += 1
        state.skipped = state.skipped + 1 if result.skipped else 0
        speed = self.config.tokens_per_step / (time.perf_counter() - begin)
        return {
            "step": state.step,
            "tokens": state.tokens,
            "loss": result.loss,
            "learning_rate": self.config.learning_rate * factor,
            "gradient_norm": result.gradient_norm,
            "tokens_per_second": speed,
            **(self.meter(speed) if self.meter else {}),
            **anomalies(state.step, result, state.spikes),
        }

    def _finish(self, record: dict[str, Any], *, last: bool) -> None:
        """Evaluate, log and save, each if it is due."""
        state, config, improved = self.state, self.config, False
        if self.validation is not None and (last or _due(state.step, config.evaluate_every)):
            text, precision = self.validation, state.precision
            loss = evaluate(self.model, text, config.batch, config.seq_len, precision, self.distributed)
            record["validation_loss"] = loss
            improved = loss < state.best_loss
            if improved:
                state.best_loss, state.best_step = loss, state.step
        self._metrics.log(record, self.callbacks)
        if last or improved or _due(state.step, config.checkpoint_every):
            self.save()
        if state.skipped >= MAX_SKIPPED_STEPS:
            raise self.distributed.make_error(
                f"step {state.step}: gradients overflowed in fp16 {MAX_SKIPPED_STEPS} times in a row; the checkpoint "
                f"is {self.save()}: continue with bf16 or fp32, or with a lower learning rate"
            )

    def save(self) -> Path:
        """Write the checkpoint of this step, if it does not exist, and remove old ones; return its folder."""
        state, path = self.state, self.checkpoints.path_of(self.state.step)
        if self._saved != state.step:
            self._metrics.sync()
            state.save(path)
            self.checkpoints.remove_old(state.step, state.best_step)
            self._saved = state.step
        return path


def _due(step: int, every: int | None) -> bool:
    return every is not None and step % every == 0
