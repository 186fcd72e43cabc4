"""`lmcourse account`: parse its options and compute the cost of a model."""

from __future__ import annotations

import math
from argparse import Namespace
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from lmcourse.accounting.accelerator import Accelerator
from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.account import (
    ModelCost,
    Performance,
    TrainingRun,
    Workload,
    account,
    estimate_performance,
    estimate_training_run,
)
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.parallel import Layout
from lmcourse.accounting.recipes import find_recipe
from lmcourse.errors import CourseError
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo.find import find_model


@dataclass(frozen=True)
class Budget:
    """Options of `lmcourse account`, and the costs: no performance without an accelerator, no run without tokens."""

    model: str
    workload: Workload
    mfu: float
    account: ModelCost
    accelerator: Accelerator | None = None
    performance: Performance | None = None
    run: TrainingRun | None = None

    def to_json(self) -> dict[str, Any]:
        """Whole numbers for bytes and FLOPs, seconds with fractions."""
        workload, layout = self.workload, self.workload.layout
        return {
            "model": self.model,
            "batch": workload.batch,
            "seq_len": workload.seq_len,
            "recipe": workload.recipe.name,
            "activation_checkpointing": workload.activation_checkpointing,
            "layout": _plain(layout) | {"devices": layout.devices},
            "account": _plain(self.account),
            "accelerator": None if self.accelerator is None else self.accelerator.name,
            "memory": None if self.accelerator is None else self.accelerator.memory,
            "performance": _plain(self.performance),
            "mfu": self.mfu,
            "run": _plain(self.run),
        }


def make_budget(options: Namespace) -> Budget:
    """The answer to a command line.

    Raises:
        CourseError: an unknown name, or numbers that do not fit together.
    """
    entry = find_model(options.model)
    if not isinstance(entry.config, TransformerConfig):
        raise CourseError(f"{entry.name} is an encoder–decoder: `account` is for models with one text.")
    if options.gpu is None and options.tokens is not None:
        raise CourseError("How long --tokens take depends on the hardware: add --gpu.")
    accelerator = None if options.gpu is None else find_accelerator(options.gpu)
    try:
        workload = Workload(
            entry.config,
            options.batch,
            (entry.config.context or 2048) if options.seq_len is None else options.seq_len,
            find_recipe(options.recipe),
            "blocks" if options.activation_checkpointing == "blocks" else "nothing",
            _layout(options),
        )
        budget = Budget(entry.name, workload, options.mfu, account(workload), accelerator)
        return budget if accelerator is None else _with_hardware(budget, accelerator, options.tokens)
    except ValueError as error:
        text = str(error)
        raise CourseError(f"{text[:1].upper()}{text[1:]}.") from None


def _layout(options: Namespace) -> Layout:
    """The devices that do not share tensors have copies of the model."""
    if options.gpus < 1 or options.tensor_parallel < 1 or options.gpus % options.tensor_parallel:
        raise ValueError(
            f"{options.gpus} devices do not make groups of {options.tensor_parallel}: "
            "--gpus must be a multiple of --tensor-parallel"
        )
    return Layout(options.gpus // options.tensor_parallel, options.tensor_parallel, zero=options.zero)


def _with_hardware(budget: Budget, accelerator: Accelerator, tokens: float | None) -> Budget:
    workload, performance = budget.workload, estimate_performance(budget.workload, accelerator)
    run = None
    if tokens is not None:
        if not workload.recipe.trains or not 1 <= tokens < math.inf:
            raise ValueError("a training run needs a recipe to train with and at least one token, not infinitely many")
        run = estimate_training_run(workload, accelerator, int(tokens), budget.mfu)
    return Budget(budget.model, workload, budget.mfu, budget.account, accelerator, performance, run)


def _plain(value: Any) -> Any:
    """Dictionaries and numbers, for JSON."""
    if isinstance(value, Breakdown):
        return {**value.parts, "total": value.total}
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value
