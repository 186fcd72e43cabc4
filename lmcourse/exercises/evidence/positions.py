"""Detectors for right numbers in the wrong order, for results with only one right place, and for NaN and infinity."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torch import Tensor

from lmcourse.exercises.evidence import Evidence, Numbers, distinct

AXES = (-1, -2, -3, -4)


def axis_name(axis: int) -> str:
    """Return an axis, counted from the end, as a phrase: "the last axis", "`dim=-2`"."""
    return "the last axis" if axis == -1 else f"`dim={axis}`"


def wrong_order(evidence: Evidence) -> str:
    """Detect the expected numbers in another order. Two numbers, such as 0 and 1, have no order to speak of."""
    found = [numbers for numbers in evidence.numbers if not numbers.truth and distinct(numbers.expected) > 2]
    if not found or len(found) < len(evidence.numbers):
        return ""
    for numbers in found:
        expected, received = (one.flatten().sort().values for one in (numbers.expected, numbers.received))
        only_rounded = numbers.close(numbers.expected, numbers.received)
        if only_rounded or not numbers.close(expected, received):
            return ""
    return "The numbers are right, but in the wrong order."


def worded(phrase: str, results: Sequence[Tensor]) -> str:
    """Word a phrase about entries along an axis for results that are all vectors, or all matrices."""
    if all(result.ndim == 1 for result in results):
        return re.sub(r" along (the (first|last) axis|`dim=0`)", "", phrase)
    if all(result.ndim == 2 for result in results):
        phrase = re.sub(r"\bentr(y|ies) along (the first axis|`dim=(-2|0)`)", lambda m: PLURALS["row"][m[1]], phrase)
        phrase = re.sub(r"\bentr(y|ies) along the last axis", lambda m: PLURALS["column"][m[1]], phrase)
    return phrase


PLURALS = {word: {"y": word, "ies": f"{word}s"} for word in ("row", "column")}


def only_one_right(evidence: Evidence) -> str:
    """Detect that only the first or only the last index along an axis is right."""
    found = evidence.numbers
    # another part of the result is right
    if not found or len(found) < sum(len(parts or []) for parts in evidence.parts):
        return ""
    for axis in AXES:
        for index, which in ((0, "first"), (-1, "last")):
            if all(_is_only_right(numbers, axis, index) for numbers in found):
                phrase = f"only the {which} entry along {axis_name(axis)} is right"
                return f"Where it fails, {worded(phrase, [numbers.expected for numbers in found])}."
    return ""


def _is_only_right(numbers: Numbers, axis: int, index: int) -> bool:
    """Return True if one index is right and all others, at least two, are wrong."""
    if numbers.expected.ndim < -axis or numbers.expected.shape[axis] < 3:
        return False
    wrong = numbers.wrong.movedim(axis, 0).reshape(numbers.wrong.shape[axis], -1).any(1)
    return not wrong[index] and int(wrong.sum()) == len(wrong) - 1


def not_finite(evidence: Evidence) -> str:
    """Detect NaN or infinities where finite numbers are expected."""
    found = [numbers for numbers in evidence.numbers if not numbers.truth]
    if not found or len(found) < len(evidence.numbers):
        return ""
    expected, received = evidence.entries()
    if not expected.isfinite().all():
        return ""
    if received.isnan().all():
        return "Every wrong number in your result is NaN."
    if received.isinf().all():
        signs = {*received.sign().tolist()}
        return (
            f"Every wrong number in your result is {'infinite' if len(signs) > 1 else f'{signs.pop():+g}'[0] + 'inf'}."
        )
    if not received.isfinite().any():
        return "Every wrong number in your result is NaN or infinite."
    return ""
