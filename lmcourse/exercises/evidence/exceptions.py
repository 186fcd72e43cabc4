"""Detectors for answers that raise, or that do not raise where they should; what exceptions mean to a beginner."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmcourse.exercises.evidence import Evidence, names
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.trial import Trial


def raises(evidence: Evidence) -> str:
    """What the exceptions of the cases that fail mean, if it is the same for all."""
    failures = [trial.outcome.failure for trial in evidence.failing]
    found = {_meaning(failure) for failure in failures if failure}
    if len(found) != 1 or None in failures:
        return ""
    [sentence] = found
    return sentence or _own_raise(failures) or _always_there(evidence, failures)


def _meaning(failure: Failure) -> str:
    return "" if _raised_on_purpose(failure) else meaning(failure)


def _raised_on_purpose(failure: Failure) -> bool:
    return bool(re.match(r"(.*:\s*)?(raise|assert)\b", failure.line))


def _own_raise(failures: Sequence[Failure | None]) -> str:
    if all(failure and _raised_on_purpose(failure) for failure in failures):
        return "Your own code refuses these inputs, which are allowed: the condition before that line is too wide."
    return ""


def _always_there(evidence: Evidence, failures: Sequence[Failure | None]) -> str:
    places = {(failure.kind, failure.number) for failure in failures if failure and failure.line}
    if len(places) == 1 and len(failures) > 1 and not evidence.passing:
        return "Every case ends in the same line: what comes after it has not run yet."
    return ""


def not_refused(evidence: Evidence) -> str:
    """Bad input that is taken, or refused with another exception."""
    if not all(trial.expected.failure for trial in evidence.failing):
        return ""
    kinds = {trial.expected.failure.kind for trial in evidence.failing if trial.expected.failure}
    wanted = " or ".join(f"`{kind}`" for kind in sorted(kinds))
    others = "Every other case passes. " if evidence.passing else ""
    if not any(trial.outcome.failure for trial in evidence.failing):
        return f"{others}Input that makes no sense has to be refused: `raise` {wanted} in {names(evidence.failing)}."
    if all(_by_accident(trial) for trial in evidence.failing):
        return (
            f"{others}Bad input is met by an exception that happens to occur on the way. Look at the input first, and "
            f"`raise` {wanted}."
        )
    if all(trial.outcome.failure for trial in evidence.failing):
        return f"{others}Bad input is refused, but with another exception than the one asked for: `raise` {wanted}."
    return ""


def _by_accident(trial: Trial) -> bool:
    failure = trial.outcome.failure
    return failure is not None and bool(failure.line) and not _raised_on_purpose(failure)


PRINT_IT = "a `print` of its shape right above the line shows"

MEANINGS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("UnboundLocalError: ",),
        "The line uses a variable that got no value on the way there: often it is set inside an `if` only.",
    ),
    (
        ("NameError: ",),
        "Nothing has that name where the line runs: often a slip in spelling, or it is defined in another function.",
    ),
    (
        ("required positional argument", "unexpected keyword", " positional argument", "multiple values for argument"),
        "A call and the parameters of what it calls do not fit: compare the two.",
    ),
    (
        ("exactly one argument", "At least one of 'min' or 'max'", "takes no keyword arguments", "takes no arguments"),
        "A call and the parameters of what it calls do not fit: compare the two.",
    ),
    (
        (
            *(
                "must match the size",
                "cannot be multiplied",
                "does not broadcast",
                "not broadcastable",
                "expanded size",
            ),
            *("Expected size for", "inconsistent tensor size", "shape mismatch", "size mismatch", "Sizes of tensors"),
            *("stack expects each tensor", "invalid for input of size", "vectors of equal size", "inner product"),
            *("broadcast together", "must match the existing size", "doesn't match the broadcast shape"),
        ),
        "Two shapes in that line do not fit: a `print` of both right above the line shows them.",
    ),
    (("EinopsError",), "The pattern does not fit the shape of the tensor: count its axes and their sizes."),
    (
        (
            *("Dimension out of range", "too many indices", "not enough values to unpack", "dimension specified as"),
            *("number of dims", "0-d tensor", "cannot unpack non-iterable"),
        ),
        f"Something there has fewer axes or items than the line takes for granted: {PRINT_IT} how many.",
    ),
    (
        ("too many values to unpack",),
        f"Something there has more axes or items than the line takes for granted: {PRINT_IT} how many.",
    ),
    (
        ("non-zero size", "zero-dimensional", "empty sequence", "numel() == 0", "requires at least one data point"),
        "Something there is empty: often a slice or a `range` that begins behind its end.",
    ),
    (
        ("upper bound and lower bound inconsistent",),
        "The `arange` runs away from its end: often its arguments have changed places, or the step has the wrong sign.",
    ),
    (
        ("IndexError: ", "is out of bounds", "index out of range"),
        "An index runs past the end: often the end of a `range`, or `<=` where `<` should be.",
    ),
    (("KeyError: ",), "The dict has no such key: often it is spelled in another way, or put in only later."),
    (("ZeroDivisionError", "modulo by zero"), "The line divides by something that is 0 there."),
    (
        ("math domain", "math range", "Numerical result out of range", "int too large", "cannot convert float"),
        "A number left the range that the function takes: often a logarithm or a root of 0 or less, or an overflow.",
    ),
    (
        ("Boolean value of Tensor", "truth value of an array"),
        "One truth value is wanted there, and a tensor holds many: `torch.where`, `&`, `|` and `~` take all of them.",
    ),
    (
        ("cannot be converted to Scalar", "only one element tensors", "only integer tensors of a single element"),
        "One number is wanted there, and a tensor holds several: often a sum, a mean or an index is missing.",
    ),
    (
        (
            *("must have the same dtype", "expected scalar type", "same dtype", "not implemented for", "can't be cast"),
            *(
                "can only be applied",
                "Only Tensors of floating point",
                "boolean tensor",
                "could not infer output dtype",
            ),
            *("Input dtype must be", "Expected tensor for argument", "tensors used as indices must be"),
        ),
        "The line meets a dtype that it cannot work with: `print(x.dtype)` shows which, `.to(...)` changes it.",
    ),
    (
        ("leaf Variable", "does not require grad", "modified by an inplace operation", "grad can be implicitly"),
        "Autograd cannot follow what happens there: often a change in place, a `detach`, or several results.",
    ),
    (("view size is not compatible",), "`view` wants numbers that lie in one piece in memory; `reshape` does not."),
    (
        ("'NoneType'", "not NoneType"),
        "Something there is None: often the result of a function that returns nothing, such as `list.append`.",
    ),
    (
        ("AttributeError: ",),
        "What stands before the dot has nothing of that name: often it is of another type than thought.",
    ),
    (
        ("object is not callable",),
        "Something that is no function is called: often a `*` is missing before a bracket, or a variable has its name.",
    ),
    (
        (
            *("object is not subscriptable", "object is not iterable", "has no len()", "unsupported operand"),
            *("bad operand", "object cannot be interpreted", "not supported between", "unhashable type"),
            *("invalid combination of arguments", "must be Tensor, not", "must be real number", "expected Tensor as"),
            *(
                "must be tuple",
                "must be int",
                "must be str",
                "invalid literal",
                "Tensor type unknown",
                "can only concatenate",
            ),
            *("list indices must be", "string indices must be", "argument must be", "not str", "expected str"),
        ),
        "A value there is of another type than the line can take: often two arguments have changed places, or a call "
        "that converts it is missing.",
    ),
)
"""What an exception says, and what that means."""


def meaning(failure: Failure) -> str:
    """What an exception means, or an empty text."""
    text = f"{failure.kind}: {failure.message}"
    return next((meaning for parts, meaning in MEANINGS if any(part in text for part in parts)), "")
