"""All that changes while a model is trained, and how it goes into a checkpoint and back."""

from __future__ import annotations

import json
import logging
import math
from dataclasses import asdict, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from lmcourse.data.loader import Loader, Tokens
from lmcourse.training.checkpoint import load_state, load_weights, write_checkpoint
from lmcourse.training.checkpoints import Checkpoints
from lmcourse.training.config import TrainingConfig, changes
from lmcourse.training.generators import generator_states, load_generator_states, seed_all
from lmcourse.training.moments import get_moments, set_moments
from lmcourse.training.param_groups import parameter_groups
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.spikes import SpikeWatch
from lmcourse.training.team import ALONE, Team

log = logging.getLogger(__name__)

Limit = Literal["steps", "tokens", "time"]
"""What ends a run: its steps are done, or a budget is spent."""


class TrainingState:
    """A run at one moment. The learning rate is a function of the step and needs no state.

    Args:
        model: on the device where it is trained.
        config: the run.
        tokens: the text to learn.
        team: who trains the model; `model` is then this process's part of it.

    Attributes:
        step: how many steps are done.
        skipped: how many of the last ones had no update, one after the other.
        seconds: how long they took, with evaluations and checkpoints.
        best_loss, best_step: the lowest validation loss, in nats per token, and after which step it was measured.
        optimiser, precision, loader, spikes: the parts that remember something themselves.

    Raises:
        ValueError: the text is shorter than one window.
    """

    def __init__(self, model: nn.Module, config: TrainingConfig, tokens: Tokens, team: Team = ALONE) -> None:
        self.model, self.config, self.team = model, config, team
        self.step, self.seconds, self.skipped = 0, 0.0, 0
        self.best_loss = math.inf
        self.best_step: int | None = None
        device = next(model.parameters()).device
        batch, rank, world_size = config.batch // team.readers, team.reader, team.readers
        self.loader = Loader(
            tokens, batch, config.seq_len, seed=config.seed, rank=rank, world_size=world_size, device=device
        )
        self.precision = MixedPrecision(config.precision, device)
        groups = [
            {**group, "params": parameters}
            for group in parameter_groups(model, config.weight_decay)
            for parameters in team.lists(group["params"])
        ]
        self.optimiser = torch.optim.AdamW(groups, config.learning_rate, config.betas, config.eps, fused=True)
        self.spikes = SpikeWatch(config.spike_factor)

    @property
    def tokens(self) -> int:
        """How many tokens were learned from."""
        return self.loader.state_dict()["windows"] * self.config.seq_len

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
            "scaler": self.precision.scaler.state_dict(),
            "loader": self.loader.state_dict(),
            "generators": self.team.gather(generator_states()),
            "norms": list(self.spikes.norms),
            "progress": {name: getattr(self, name) for name in ("seconds", "best_loss", "best_step", "skipped")},
        }
        facts = {"step": self.step, "training": asdict(self.config), "model": _describe(self.model)}
        checkpoints.save(self.step, partial(self._write, state, facts), self.best_step)

    def _write(self, state: dict[str, Any], facts: dict[str, Any], place: Path) -> None:
        if self.team is ALONE:
            write_checkpoint(place, self.model, {**state, "optimiser": get_moments(self.optimiser, self.model)}, facts)
        else:
            from lmcourse.training.parallel.sharded_checkpoint import write_sharded

            write_sharded(place, self.model, self.optimiser, state, facts, self.team)

    def load(self, place: Path, facts: dict[str, Any]) -> None:
        """Take over the state of a checkpoint. If it was made with other settings, a line says with which.

        Raises:
            CourseError: it is of another model, or its text was read in another order.
        """
        if facts["model"] != json.loads(json.dumps(_describe(self.model))):
            raise self.team.stop(f"{place} is of another model: build the one that its checkpoint.json describes")
        if changed := changes(facts["training"], json.loads(json.dumps(asdict(self.config)))):
            log.warning("%s was made with other settings: %s", place, changed)
        state = load_state(place)
        try:
            self.loader.load_state_dict(state["loader"])
        except ValueError as error:
            raise self.team.stop(f"{place}: {error}") from None
        self._load_tensors(place, state)
        if state["scaler"]:  # empty unless the precision was fp16
            self.precision.scaler.load_state_dict(state["scaler"])
        self.spikes = SpikeWatch(self.config.spike_factor, state["norms"])
        self.step = facts["step"]
        for name, value in state["progress"].items():
            setattr(self, name, value)
        self._load_generators(place, state["generators"])

    def _load_tensors(self, place: Path, state: dict[str, Any]) -> None:
        """Weights, and what the optimiser remembers: it stays with the settings of this run."""
        if self.team is ALONE and "optimiser" in state:
            load_weights(place, self.model)
            set_moments(self.optimiser, self.model, state["optimiser"])
            return
        from lmcourse.training.parallel.sharded_checkpoint import load_sharded, load_together

        if self.team is ALONE:
            load_sharded(place, self.model, self.optimiser)
        else:
            load_together(place, self.model, self.optimiser, self.team)

    def _load_generators(self, place: Path, states: list[dict[str, Any]]) -> None:
        """Each process goes on with its own random numbers, if there are as many processes as there were."""
        if len(states) == len(self.team.gather(None)):
            load_generator_states(states[self.team.rank])
        else:
            log.warning("%s was made by %d processes: dropout, if there is any, draws anew", place, len(states))
            seed_all(self.config.seed, self.team.stream, self.step)


def _describe(model: nn.Module) -> dict[str, Any] | None:
    """The model's configuration as plain values, if it has one."""
    config = getattr(model, "config", None)
    return asdict(config) if is_dataclass(config) and not isinstance(config, type) else None
