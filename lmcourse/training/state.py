"""The training state: everything that changes during a run, saved to and loaded from checkpoints."""

from __future__ import annotations

import json
import logging
import math
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, Literal

from torch import nn

from lmcourse.data.loader import Loader, Tokens
from lmcourse.training.checkpoint_format import is_of_model, load_state
from lmcourse.training.checkpoint_io import load_checkpoint, write_checkpoint
from lmcourse.training.checkpoint_manager import CheckpointManager
from lmcourse.training.config import TrainingConfig, changes
from lmcourse.training.distributed_context import SINGLE_PROCESS, DistributedContext
from lmcourse.training.make_optimizer import make_optimizer
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.rng import rng_states, seed_all, set_rng_states
from lmcourse.training.spike_detector import SpikeDetector

log = logging.getLogger(__name__)

StopReason = Literal["steps", "tokens", "time"]
"""What ends a run: its steps are done, or a budget is spent."""


class TrainingState:
    """A run at one moment. The learning rate is a function of the step and needs no state.

    Args:
        model: on the device where it is trained.
        config: the run.
        tokens: the text to learn.
        distributed: the context of this process; on several, `model` is this process's part.

    Attributes:
        step: how many steps are done.
        skipped: how many of the last ones had no update, one after the other.
        seconds: how long they took, with evaluations and checkpoints.
        best_loss, best_step: the lowest validation loss, in nats per token, and after which step it was measured.
        optimizer, precision, loader, spikes: the parts with a state of their own.

    Raises:
        ValueError: the text is shorter than one window.
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
        """Tokens trained on so far."""
        return self.loader.state_dict()["windows"] * self.config.seq_len

    def stop_reason(self) -> StopReason | None:
        """Which limit leaves no room for another step, if one does."""
        config = self.config
        if self.step >= config.steps:
            return "steps"
        if config.max_tokens is not None and self.tokens + config.tokens_per_step > config.max_tokens:
            return "tokens"
        if config.max_seconds is not None and self.seconds >= config.max_seconds:
            return "time"
        return None

    def save(self, checkpoints: CheckpointManager) -> None:
        """Write a checkpoint."""
        state = {
            "scaler": self.precision.scaler.state_dict(),
            "loader": self.loader.state_dict(),
            "rng": self.distributed.all_gather(rng_states()),
            "norms": list(self.spikes.norms),
            "progress": {name: getattr(self, name) for name in ("seconds", "best_loss", "best_step", "skipped")},
        }
        manifest = {"step": self.step, "training": asdict(self.config), "model": _describe(self.model)}

        def write(path: Path) -> None:
            write_checkpoint(path, self.model, self.optimizer, state, manifest, self.distributed)

        checkpoints.save(self.step, write, self.best_step)

    def load(self, path: Path, manifest: dict[str, Any]) -> None:
        """Take over the state of a checkpoint. If it was made with other settings, a line says with which.

        Raises:
            CourseError: it is of another model, or its text was read in another order.
        """
        if not is_of_model(manifest["model"], _describe(self.model)):
            raise self.distributed.make_error(
                f"{path} is of another model: build the one that its checkpoint.json describes"
            )
        if (before := manifest["training"].get("optimizer", "adamw")) != self.config.optimizer:
            raise self.distributed.make_error(
                f"{path} has the state of {before}, with which {self.config.optimizer} cannot go on: "
                f"use --optimizer {before}"
            )
        if changed := changes(manifest["training"], json.loads(json.dumps(asdict(self.config)))):
            log.warning("%s was made with other settings: %s", path, changed)
        state = load_state(path)
        try:
            self.loader.load_state_dict(state["loader"])
        except ValueError as error:
            raise self.distributed.make_error(f"{path}: {error}") from None
        load_checkpoint(path, self.model, self.optimizer, state, self.distributed)
        if state["scaler"]:  # empty unless the precision was fp16
            self.precision.scaler.load_state_dict(state["scaler"])
        self.spikes = SpikeDetector(self.config.spike_factor, state["norms"])
        self.step = manifest["step"]
        for name, value in state["progress"].items():
            setattr(self, name, value)
        self._load_rng(path, state["rng"])

    def _load_rng(self, path: Path, states: list[dict[str, Any]]) -> None:
        """Each process goes on with its own random numbers, if there are as many processes as there were."""
        if len(states) == len(self.distributed.all_gather(None)):
            set_rng_states(states[self.distributed.rank])
        else:
            log.warning("%s was made by %d processes: dropout, if there is any, draws anew", path, len(states))
            seed_all(self.config.seed, self.distributed.rng_stream, self.step)


def _describe(model: nn.Module) -> dict[str, Any] | None:
    """The model's configuration as plain values, if it has one."""
    config = getattr(model, "config", None)
    return asdict(config) if is_dataclass(config) and not isinstance(config, type) else None
