"""Detectors for answers that raise an exception, or fail to raise one; and explanations of exceptions."""

from __future__ import annotations

import re

from lmcourse.exercises.evidence import NEW_TENSORS, Evidence, names
from lmcourse.exercises.failure import NOT_PLAIN, Failure


def raises(evidence: Evidence) -> str:
    """Detect that all failing cases raise exceptions with the same meaning, and explain it."""
    failures = [trial.outcome.failure for trial in evidence.failing if trial.outcome.failure]
    if len(failures) < len(evidence.failing):
        return ""
    name = evidence.exercise.name
    if all(failure.kind == "TypeError" and _called_wrongly(failure, name) for failure in failures):
        call = f" `{evidence.exercise.call}`" if evidence.exercise.call else ""
        return f"Your `{name}` has other parameters than the notebook's{call}."
    if all(map(_raised_on_purpose, failures)):
        return "The exception comes from a `raise` or an `assert` of your own, and these inputs are allowed."
    found = {"" if _raised_on_purpose(failure) else meaning(failure) for failure in failures}
    return found.pop() if len(found) == 1 else ""


def _called_wrongly(failure: Failure, name: str) -> bool:
    """Return True if the call of an answer itself fails, before any line of it runs."""
    return not failure.line and bool(re.match(rf"([\w.<>]+\.)?{name}(\.__init__)?\(\) ", failure.message))


def _raised_on_purpose(failure: Failure) -> bool:
    """Return True if a line is a `raise` or an `assert`; after a condition in the same line, only if the message is the
    learner's own, because the condition can fail as well."""
    if found := re.match(r"(.*:\s*)?(raise|assert)\b(.*)", failure.line):
        return not found[1] or failure.message in found[3]
    return False


def not_refused(evidence: Evidence) -> str:
    """Detect invalid input that is accepted, or rejected with the wrong exception."""
    kinds = {trial.expected.failure.kind for trial in evidence.failing if trial.expected.failure}
    failures = [trial.outcome.failure for trial in evidence.failing]
    raised = [failure is not None and failure.kind != NOT_PLAIN for failure in failures]
    wanted = " or ".join(f"`{kind}`" for kind in sorted(kinds))
    if not any(raised):
        returned = all(failure and failure.message.startswith("returned an exception") for failure in failures)
        what = "your answer returns the exception: `raise` it" if returned else "your answer returns a result"
        return f"In {names(evidence.failing)} {wanted} must be raised, but {what}."
    if not all(raised):
        return ""
    if all(failure and _raised_on_purpose(failure) for failure in failures):
        return f"Your exception has the wrong type: `raise` {wanted}."
    others = " or ".join(sorted({f"`{failure.kind}`" for failure in failures if failure}))
    return f"In {names(evidence.failing)} {wanted} must be raised, but a line of your answer fails with {others}."


PRINT_IT = "a `print` of its shape right above the line shows"

MEANINGS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("SystemExit: ",), "The line would end Python: `return` ends only the function."),
    (
        ("EOF when reading a line", "StdinNotImplementedError: "),
        "The line asks for `input`, but the inputs are the arguments.",
    ),
    (
        ("changed size during iteration",),
        "The loop adds to the set or dict that it runs over, or takes from it: run over a copy, `list(...)`.",
    ),
    (("UnboundLocalError: ",), "The line uses a variable that has no value yet."),
    (("MemoryError: ",), "The line needs more memory than the check allows: make fewer numbers at once."),
    (("NameError: ",), "No variable of that name exists where the line runs."),
    (
        (
            *("required positional argument", "unexpected keyword", " positional argument", "multiple values for"),
            *("exactly one argument", "At least one of 'min' or 'max'", "takes no keyword", "takes no arguments"),
        ),
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
    (("'NoneType'", "not NoneType", "non-iterable NoneType"), "Something in the line is None."),
    (
        (
            *("Dimension out of range", "too many indices", "not enough values to unpack", "dimension specified as"),
            *("number of dims", "0-d tensor", "cannot unpack non-iterable"),
        ),
        f"Something there has fewer axes or items than the line expects: {PRINT_IT} how many.",
    ),
    (
        ("too many values to unpack",),
        f"Something there has more axes or items than the line expects: {PRINT_IT} how many.",
    ),
    (
        ("non-zero size", "zero-dimensional", "empty sequence", "numel() == 0", "requires at least one data point"),
        "Something in the line is empty.",
    ),
    (("upper bound and lower bound inconsistent",), "The step of the `arange` leads away from its end."),
    (
        ("The shape of the mask", "boolean index did not match"),
        "A mask has another shape than what it selects from: a `print` of both right above the line shows them.",
    ),
    (
        ("tensors used as indices must be", "must be of integer (or boolean) type"),
        "An index there holds floats, as `torch.tensor([])` does: give it `dtype=torch.int64`.",
    ),
    (("IndexError: ", "is out of bounds", "index out of range"), "An index is out of range."),
    (
        ("LookupError: your result has no part",),
        "The parts of your result have other names than the exercise's, or it has no parts.",
    ),
    (("KeyError: ",), "The dict or set there does not hold that key."),
    (("ZeroDivisionError", "modulo by zero"), "The line divides by something that is 0 there."),
    (
        ("math range", "Numerical result out of range", "int too large"),
        "A number in the line is too large for a float: e⁷¹⁰ is, for example.",
    ),
    (
        ("math domain", "cannot convert float"),
        "A number is outside of the range that the function takes.",
    ),
    (
        ("Boolean value of Tensor", "truth value of an array"),
        "The line needs one truth value, but a tensor holds many: `torch.where`, `&`, `|` and `~` take all of them.",
    ),
    (
        ("cannot be converted to Scalar", "only one element tensors", "only integer tensors of a single element"),
        "The line needs one number, but the tensor holds several.",
    ),
    (
        (
            *("Float and Double", "Double and Float", "(Float) and source (Double)", "Double but found Float"),
            *("Float but found Double", "float for `end` but got dtype double", "float != double", "double != float"),
        ),
        f"Float32 meets float64 in that line: {NEW_TENSORS}",
    ),
    (
        (
            *(
                "must have the same dtype",
                "must have the same scalar type",
                "dtype for `end`",
                "expected scalar type",
                "same dtype",
                "not implemented for",
                "can't be cast",
            ),
            *(
                "can only be applied",
                "Only Tensors of floating point",
                "boolean tensor",
                "could not infer output dtype",
            ),
            *("Input dtype must be", "Expected tensor for argument"),
        ),
        "A dtype in the line does not work there: `print(x.dtype)` shows which, `.to(...)` changes it.",
    ),
    (
        ("does not require grad",),
        "Autograd has no graph there: no tensor with `requires_grad` leads to that value, or one was detached.",
    ),
    (("grad can be implicitly",), "A backward pass begins at one number, or gets the gradient at the tensor as well."),
    (
        ("backward through the graph a second time",),
        "A backward pass frees its graph, and another one needs it: take all gradients in one call.",
    ),
    (("leaf Variable", "modified by an inplace operation"), "Autograd cannot follow what happens there."),
    (("view size is not compatible",), "`view` needs numbers that are contiguous in memory; `reshape` does not."),
    (("AttributeError: ",), "The object before the dot has no attribute of that name."),
    (("object is not callable",), "The line calls something that is not a function."),
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
        "A value in the line has a type that the line cannot use.",
    ),
)


def meaning(failure: Failure) -> str:
    """Return the meaning of an exception, or "" if it is not in the list."""
    text = f"{failure.kind}: {failure.message}"
    return next((meaning for parts, meaning in MEANINGS if any(part in text for part in parts)), "")
