"""All that changes while a model is trained, and how it goes into a checkpoint and back."""

from __future__ import annotations

import json
import logging
import math
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from lmcourse.data.loader import Loader, Tokens
from lmcourse.errors import CourseError
from lmcourse.training.checkpoint import load_state, load_weights
from lmcourse.training.checkpoints import Checkpoints
from lmcourse.training.config import TrainingConfig, changes
from lmcourse.training.decay import parameter_groups
from lmcourse.training.generators import generator_states, load_generator_states
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.spikes import SpikeWatch

log = logging.getLogger(__name__)

Limit = Literal["steps", "tokens", "time"]
"""What ends a run: its steps are done, or a budget is spent."""


class TrainingState:
    """A run at one moment. The learning rate is a function of the step and needs no state.

    Args:
        model: on the device where it is trained.
        config: the run.
        tokens: the text to learn.

    Attributes:
        step: how many steps are done.
        seconds: how long they took, with evaluations and checkpoints.
        best_loss, best_step: the lowest validation loss, in nats per token, and after which step it was measured.
        optimiser, precision, loader, spikes: the parts that remember something themselves.

    Raises:
        ValueError: the text is shorter than one window.
    """

    def __init__(self, model: nn.Module, config: TrainingConfig, tokens: Tokens) -> None:
        self.model, self.config = model, config
        self.step, self.seconds = 0, 0.0
        self.best_loss = math.inf
        self.best_step: int | None = None
        device = next(model.parameters()).device
        self.loader = Loader(tokens, config.batch, config.length, seed=config.seed, device=device)
        self.precision = MixedPrecision(config.precision, device)
        groups = parameter_groups(model, config.weight_decay)
        self.optimiser = torch.optim.AdamW(groups, config.learning_rate, config.betas, config.eps, fused=True)
        self.spikes = SpikeWatch(config.spike)

    @property
    def tokens(self) -> int:
        """How many tokens were learned from."""
        return self.loader.state_dict()["windows"] * self.config.length

    def over(self) -> Limit | None:
        """Which limit leaves no room for another step, if one does."""
        config = self.config
        if self.step >= config.steps:
            return "steps"
        if config.max_tokens is not None and self.tokens + config.tokens_per_step > config.max_tokens:
            return "tokens"
        if config.max_seconds is not None and self.seconds >= config.max_seconds:
            return "time"
        return None

    def save(self, checkpoints: Checkpoints) -> None:
        """Write a checkpoint."""
        state = {
            "optimiser": self.optimiser.state_dict()["state"],
            "scaler": self.precision.scaler.state_dict(),
            "loader": self.loader.state_dict(),
            "generators": generator_states(),
            "norms": list(self.spikes.norms),
            "progress": {name: getattr(self, name) for name in ("seconds", "best_loss", "best_step")},
        }
        facts = {"training": asdict(self.config), "model": _describe(self.model)}
        checkpoints.save(self.step, self.model, state, facts, self.best_step)

    def load(self, place: Path, facts: dict[str, Any]) -> None:
        """Take over the state of a checkpoint. If it was made with other settings, a line says with which.

        Raises:
            CourseError: it is of another model, or its text was read in another order.
        """
        if facts["model"] != json.loads(json.dumps(_describe(self.model))):
            raise CourseError(f"{place} is of another model: build the one that its checkpoint.json describes")
        if changed := changes(facts["training"], json.loads(json.dumps(asdict(self.config)))):
            log.warning("%s was made with other settings: %s", place, changed)
        state = load_state(place)
        try:
            self.loader.load_state_dict(state["loader"])
        except ValueError as error:
            raise CourseError(f"{place}: {error}") from None
        load_weights(place, self.model)
        # Its settings are those of this run, which may decay weights otherwise than the one that was saved.
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": state["optimiser"]})
        if state["scaler"]:  # empty unless the precision was fp16
            self.precision.scaler.load_state_dict(state["scaler"])
        load_generator_states(state["generators"])
        self.spikes = SpikeWatch(self.config.spike, state["norms"])
        self.step = facts["step"]
        for name, value in state["progress"].items():
            setattr(self, name, value)


def _describe(model: nn.Module) -> dict[str, Any] | None:
    """The model's configuration as plain values, if it has one."""
    config = getattr(model, "config", None)
    return asdict(config) if is_dataclass(config) and not isinstance(config, type) else None
