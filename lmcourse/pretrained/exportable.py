"""Which changes of a preset stand in the way of an export, and with which flags to train instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import combinations

from lmcourse.errors import CourseError
from lmcourse.models.config import TransformerConfig
from lmcourse.models.interop.convert import family_for
from lmcourse.training.command.model_changes import UNCHANGED, ModelChanges
from lmcourse.training.command.run_config import RunConfig


def how_to_train_for_export(run: RunConfig, vocab_size: int) -> str:
    """The end of a line: the fewest flags to train without, and the family that has such models; "" if none helps."""
    changed = [field.name for field in fields(ModelChanges) if getattr(run.model, field.name) != field.default]
    for count in range(1, len(changed) + 1):
        for names in combinations(changed, count):
            without = replace(run.model, **{name: getattr(UNCHANGED, name) for name in names})
            family = _family(replace(run, model=without).model_config(vocab_size))
            if family is not None:
                return f"; train {_flags(names)}, and it is written as {family}"
    return ""


def _family(config: TransformerConfig) -> str | None:
    try:
        return family_for(config).name
    except CourseError:
        return None


def _flags(names: Sequence[str]) -> str:
    """What to type: a recipe may have said yes, so a yes or no is named with its no."""
    told = [
        f"with --no-{name}" if isinstance(getattr(UNCHANGED, name), bool) else f"without --{name}" for name in names
    ]
    return " and ".join(told).replace("_", "-")
