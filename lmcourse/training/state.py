"""The training state: everything that changes during a run, saved to and loaded from checkpoints."""

from __future__ import annotations

import json
import logging
import math
import random
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from lmcourse.base.errors import CourseError
from lmcourse.data.loader import Loader, Tokens
from lmcourse.training.checkpoint_format import (
    is_of_model,
    load_optimizer,
    load_state,
    load_weights,
    reporting_damage,
    write_checkpoint,
)
from lmcourse.training.distributed_context import SINGLE_PROCESS, DistributedContext
from lmcourse.training.param_groups import make_optimizer
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.spike_detector import SpikeDetector
from lmcourse.training.training_config import TrainingConfig, changes

log = logging.getLogger(__name__)

StopReason = Literal["steps", "tokens", "time"]
"""The reason why a run ends: its steps are done, or a budget is used up."""


class TrainingState:
    """The state of a run between two steps. The learning rate is a function of the step, so it needs no state.

    If there are several processes, `model` is this process's part.

    Attributes:
        step: number of steps done.
        skipped: number of successive steps without an update, up to the last step.
        seconds: duration of all steps, including evaluations and checkpoints.
        best_loss, best_step: the lowest validation loss, in nats per token, and the step after which it was measured.
        optimizer, precision, loader, spikes: the parts that have their own state.
    """

    def __init__(
        self, model: nn.Module, config: TrainingConfig, tokens: Tokens, distributed: DistributedContext = SINGLE_PROCESS
    ) -> None:
        self.model, self.config, self.distributed = model, config, distributed
        self.step, self.seconds, self.skipped = 0, 0.0, 0
        self.best_loss = math.inf
        self.best_step: int | None = None
        device = next(model.parameters()).device
        batch, rank, world_size = config.batch // distributed.dp_size, distributed.dp_rank, distributed.dp_size
        self.loader = Loader(
            tokens, batch, config.seq_len, seed=config.seed, rank=rank, world_size=world_size, device=device
        )
        self.precision = MixedPrecision(config.precision, device)
        self.optimizer = make_optimizer(model, config, distributed)
        self.spikes = SpikeDetector(config.spike_factor)

    @property
    def tokens(self) -> int:
        """Number of tokens that the run has read so far."""
        return self.loader.state_dict()["windows"] * self.config.seq_len

    def stop_reason(self) -> StopReason | None:
        """Return the reason to end the run before another step, or None to continue."""
        config = self.config
        if self.step >= config.steps:
            return "steps"
        if config.max_tokens is not None and self.tokens + config.tokens_per_step > config.max_tokens:
            return "tokens"
        if config.max_seconds is not None and self.seconds >= config.max_seconds:
            return "time"
        return None

    def save(self, path: Path) -> None:
        """Write a checkpoint; every process must call this."""
        state = {
            "scaler": self.precision.scaler.state_dict(),
            "loader": self.loader.state_dict(),
            "rng": self.distributed.all_gather(rng_states()),
            "norms": list(self.spikes.norms),
            "seconds": self.seconds,
            "skipped": self.skipped,
            "best": None if self.best_step is None else [self.best_loss, self.best_step],
        }
        manifest = {"step": self.step, "training": asdict(self.config), "model": _describe(self.model)}
        write_checkpoint(path, self.model, self.optimizer, state, manifest, self.distributed)

    def load(self, path: Path, manifest: dict[str, Any]) -> None:
        """Load the state of a checkpoint. If its settings differ, log the differences.

        A checkpoint of another model, or one whose text was read in another order, raises CourseError.
        """
        if not is_of_model(manifest["model"], _describe(self.model)):
            raise self.distributed.make_error(
                f"{path} belongs to a different model: build the model described in its checkpoint.json"
            )
        if (before := manifest["training"].get("optimizer", "adamw")) != self.config.optimizer:
            raise self.distributed.make_error(
                f"{path} has the state of {before}, which {self.config.optimizer} cannot use: pass --optimizer {before}"
            )
        if changed := changes(manifest["training"], json.loads(json.dumps(asdict(self.config)))):
            log.warning("%s was made with other settings: %s", path, changed)
        problem = None
        try:
            with reporting_damage(path):
                self._load(path, manifest["step"], load_state(path))
        except CourseError as error:
            problem = str(error)
        problem = self.distributed.first(problem)
        if problem is not None:
            raise self.distributed.make_error(problem)

    def _load(self, path: Path, step: int, state: dict[str, Any]) -> None:
        position = {name: int(value) for name, value in state["loader"].items()}
        try:
            self.loader.load_state_dict(position)
        except ValueError as error:
            raise CourseError(f"{path}: {error}") from None
        load_weights(path, self.model, self.distributed)
        load_optimizer(path, self.model, self.optimizer, self.distributed)
        if state["scaler"]:  # the scaler's state is empty unless the precision was fp16
            self.precision.scaler.load_state_dict(state["scaler"])
        self.spikes = SpikeDetector(self.config.spike_factor, map(float, state["norms"]))
        self.step, self.seconds, self.skipped = step, float(state["seconds"]), int(state["skipped"])
        if state["best"] is not None:
            self.best_loss, self.best_step = float(state["best"][0]), int(state["best"][1])
        self._load_rng(path, state["rng"])

    def _load_rng(self, path: Path, states: list[dict[str, Any]]) -> None:
        """Restore each process's random generators if the number of processes is the same as before."""
        if len(states) == self.distributed.world_size:
            set_rng_states(states[self.distributed.rank])
        else:
            log.warning("%s was made by %d processes: dropout, if used, draws different numbers", path, len(states))
            seed_all(self.config.seed, self.distributed.rng_stream, self.step)


def _describe(model: nn.Module) -> dict[str, Any] | None:
    """Return the model's configuration as plain values, if it has one."""
    config = getattr(model, "config", None)
    return asdict(config) if is_dataclass(config) and not isinstance(config, type) else None


def seed_all(seed: int, *more: int) -> None:
    """Seed the random generators of Python, NumPy and torch (on every device).

    Different numbers in `more` give different random numbers; if all are 0, only the seed counts.
    """
    if any(more):
        seed = int(np.random.SeedSequence([seed, *more]).generate_state(1, np.uint64)[0]) >> 1
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def rng_states() -> dict[str, Any]:
    """Return the states of all generators as JSON values; of all GPUs, only the current one is included."""
    drawn = np.random.get_state(legacy=False)
    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return {
        "python": random.getstate(),
        "numpy": {**drawn, "state": {**drawn["state"], "key": drawn["state"]["key"].tolist()}},
        "torch": bytes(torch.get_rng_state().numpy()).hex(),
        "cuda": bytes(torch.cuda.get_rng_state().numpy()).hex() if in_use else None,
    }


def set_rng_states(states: dict[str, Any]) -> None:
    """Restore all generators. A GPU's generator is restored only if a GPU is in use now and was in use then.

    Other values raise ValueError, TypeError or LookupError.
    """
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))
    drawn = states["numpy"]
    np.random.set_state({**drawn, "state": {**drawn["state"], "key": np.array(drawn["state"]["key"], np.uint32)}})
    try:
        torch.set_rng_state(_bytes(states["torch"]))
        if torch.cuda.is_available() and states["cuda"] is not None:
            torch.cuda.set_rng_state(_bytes(states["cuda"]))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def _bytes(digits: str) -> Tensor:
    return torch.frombuffer(bytearray.fromhex(digits), dtype=torch.uint8)
