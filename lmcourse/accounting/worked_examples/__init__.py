"""Worked examples of the source notes, computed again: `python -m lmcourse.accounting.worked_examples` prints them."""

from lmcourse.accounting.worked_examples.inference import hardware_examples, inference_examples
from lmcourse.accounting.worked_examples.memory import activation_examples, state_examples
from lmcourse.accounting.worked_examples.training import training_examples
from lmcourse.accounting.worked_examples.worked_example import AGREE, WorkedExample

__all__ = ["AGREE", "WorkedExample", "all_examples"]


def all_examples() -> list[WorkedExample]:
    """All worked examples, by subject."""
    return training_examples() + state_examples() + activation_examples() + inference_examples() + hardware_examples()
