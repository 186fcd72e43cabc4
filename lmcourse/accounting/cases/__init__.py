"""Worked examples of the source notes, computed again: `python -m lmcourse.accounting.cases` prints them."""

from lmcourse.accounting.cases.case import AGREE, Case
from lmcourse.accounting.cases.inference import hardware_cases, inference_cases
from lmcourse.accounting.cases.memory import activation_cases, state_cases
from lmcourse.accounting.cases.training import training_cases

__all__ = ["AGREE", "Case", "all_cases"]


def all_cases() -> list[Case]:
    """All worked examples, by subject."""
    return training_cases() + state_cases() + activation_cases() + inference_cases() + hardware_cases()
