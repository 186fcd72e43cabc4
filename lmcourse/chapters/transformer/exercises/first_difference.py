"""The exercise that finds the wrong part of a decoder."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise

_IMPORT = "from lmcourse.models.parity.suspects import {}, gradients, right, small_model, suspect\n"


def recorded_and_replayed(
    decoder: Any, tokens: Tensor, weights: Any, sizes: Any, right: Any, suspect: Any, gradients: Any
) -> tuple[str, str] | None:
    """The reference too: the chapter's tests compare what it finds with the slip that each suspect was given."""
    calls = []

    def recorded(name: str) -> Any:
        def call(*given: Any) -> Any:
            result = right[name](*given)
            calls.append((name, given, result))
            return result

        return call

    def differ(a: Tensor, b: Tensor) -> Any:
        return not (a - b).norm() <= 1e-4 * b.norm()

    decoder(tokens, weights, sizes, {name: recorded(name) for name in right})
    recording = list(calls)
    for name, given, result in recording:
        copies = [each.clone() if isinstance(each, Tensor) else each for each in given]
        if differ(suspect[name](*copies), result):
            return name, "result"
        if any(isinstance(each, Tensor) and not torch.equal(each, copies[i]) for i, each in enumerate(given)):
            return name, "input changed"
    for name, given, _ in recording:
        if differ(gradients(suspect[name], given), gradients(right[name], given)):
            return name, "gradient"
    return None


def _ask(name: str, slip: str, seed: int = 0, decoder: str = "decode") -> Case:
    model = f"small_model({seed})" if seed else "small_model()"
    call = f'first_difference({decoder}, *{model}, right, suspect("{slip}"), gradients)'
    return script(name, _IMPORT.format(decoder) + call)


def _hidden(random: Random) -> list[Case]:
    plain = ("key heads in turn", "another base", "gate and value swapped", "second branch reads x")
    return [
        *(_ask("other slips", slip, seed) for seed, slip in enumerate(plain)),
        _ask("other gradients", "scores detached"),
        _ask("other gradients", "norm's scale detached"),
        _ask("another right decoder", "head by head"),
        _ask("another right decoder", "sums in another order", 3),
        _ask("other weights", "branch 0.05 % too large", 1),
        _ask("other weights", "attention under no_grad", 2),
        _ask("other weights", "norm in place", 3),
    ]


first_difference = Exercise(
    "first_difference",
    points=4,
    minutes=15,
    difficulty=3,
    reference=recorded_and_replayed,
    cases=[
        _ask("attention without a mask", "no mask"),
        _ask("a branch 0.05 % too large", "branch 0.05 % too large"),
        _ask("positions from 1", "positions from 1"),
        _ask("the values are detached", "values detached"),
        _ask("self_attention under no_grad", "attention under no_grad"),
        _ask("the norm writes into its input", "norm in place"),
        _ask("a right norm, summed in another order", "sums in another order"),
        _ask("two slips, one part inside the other", "two slips, one inside the other"),
        _ask("two slips, a gradient and a later result", "values detached, and a branch too large"),
        _ask("two slips, an input and a later result", "norm in place, and gate and value swapped"),
        _ask("two slips in one part, its result and its input", "norm in place, and doubled"),
        _ask("attention clears its values afterwards", "values cleared"),
        _ask("three calls, only the second is wrong", "norm without ε", decoder="three_norms"),
        _ask("a single call, 0.015 % too large", "norm 0.015 % too large", decoder="only_norm"),
        _ask("a single call, 0.007 % too large", "norm 0.007 % too large", decoder="only_norm"),
        _ask("a single call, its input detached", "norm's input detached", decoder="only_norm"),
        _ask("a right norm of zeros", "sums in another order", decoder="norm_of_zeros"),
        _ask("a norm that makes NaN of zeros", "norm without ε", decoder="norm_of_zeros"),
    ],
    hidden_cases=_hidden,
    hints=[
        "To record a part, wrap it: a function that calls the part, stores name, arguments and result in a list, and "
        "returns the result. Store after the call, and the list is in the order in which calls end.",
        "Run the decoder once, with six wrapped right parts. Copy the list: your replay may add to it. Then give each "
        "suspect part copies of the recorded tensors.",
        "(a - b).norm() <= 1e-4 * b.norm() is False for NaN, too. After the call, compare your copies with the "
        "recording. Only if nothing differs, start again with `gradients`.",
    ],
)
first_difference.variant(recorded_and_replayed)
first_difference.equivalent_mutant(
    "torch.dist(found, wanted) → torch.dist(wanted, found)", "The distance of two vectors is the same from both sides."
)
first_difference.equivalent_mutant(
    "torch.equal(each, copies[i]) → torch.equal(copies[i], each)", "Equality is the same from both sides."
)
for _swapped in (
    "suspect[name](*copies), result) → differ(result, suspect[name](*copies))",
    "gradients(suspect[name], given), gradients(right[name], given)) → "
    "differ(gradients(right[name], given), gradients(suspect[name], given))",
):
    first_difference.equivalent_mutant(
        f"differ({_swapped}", "At the limit the two lengths differ by 1e-4 of themselves, and the task allows either."
    )


_INPUTS = """\
        if any(isinstance(each, Tensor) and not torch.equal(each, copies[i]) for i, each in enumerate(given)):
            return name, "input changed"
"""
_GRADIENTS = """\
    for name, given, _ in recording:
        if differ(gradients(suspect[name], given), gradients(right[name], given)):
            return name, "gradient"
"""
_IN_ONE_LOOP = _GRADIENTS.partition("\n")[2]
_BY_NUMBER = (
    "You compare number by number. Where a sum is nearly 0, rounding is more than 1e-4 of it: compare the lengths of "
    "whole vectors."
)
first_difference.slips(
    recorded_and_replayed,
    {
        "[each.clone() if isinstance(each, Tensor) else each for each in given] → list(given)": "Your replay spoils "
        "the recording: a part that writes into its input changes what later parts are given. Pass copies.",
        "            result = right[name](*given)\n            calls.append((name, given, result)) →             "
        "calls.append(None)\n            place = len(calls) - 1\n            result = right[name](*given)\n"
        "            calls[place] = name, given, result": "You replay in the order in which calls began. A part that "
        "calls others ends after them: go by the ends, and the inner part comes first.",
        f"{_INPUTS} → ": "You do not look at the inputs after a call. A part may return the right result and write "
        "into the tensors that it was given.",
        f"{_GRADIENTS} → ": "You compare results only. A part may return the right result and send back a wrong "
        "gradient, or none.",
        "<= 1e-4 * b.norm() → <= 0": "You accuse a right part: sums in another order differ in the last digit. "
        "Allow 1e-4 of the length of the right result.",
        "enumerate(given)) → enumerate(given[:1]))": "You look only at the first input after a call. A part may write "
        "into any of them: compare all.",
        "not torch.equal(each, copies[i]) → differ(copies[i], each)": "You compare the inputs as you compare results. "
        "Positions are integers, and have no `norm`: compare inputs with `torch.equal`.",
        "{name: recorded(name) for name in right} → {name: lambda *given: recorded(name)(*given) for name in right}": (
            "Your wrappers look up the part's name when they are called, and then all find the last name of the loop. "
            "Bind it: a function that takes the name and returns the wrapper."
        ),
        "not (a - b).norm() <= 1e-4 * b.norm() → not torch.allclose(a, b, atol=1e-4)": "Your limit is too strict: you "
        "accuse a norm that is 0.007 % too large. Allow 1e-4 of the length of the whole result, not of each number.",
        "not (a - b).norm() <= → (a - b).norm() >": "A part that returns NaN passes: a comparison with NaN is False. "
        "Ask whether the distance is *within* the limit.",
        "1e-4 → 1e-2": "Your tolerance is too coarse: a branch that is 0.05 % too large passes. Allow 1e-4 of the "
        "length of the right result.",
        "{name: recorded(name) for name in right} → {name: recorded(name) for name in right} | suspect": "You run the "
        "decoder with the suspect parts, and your recording stays empty. Record the right parts, then replay.",
        "right[name](*given)\n → suspect[name](*given)\n": "You record the suspect parts and compare them with "
        "themselves. Record the right ones.",
        'return name, "result" → return recording.index((name, given, result)), "result"': "You return the number of "
        "the call. Return the name of the part.",
        "return None → return recording[0][0], None": "You accuse a part even if none differs. Return None then.",
        "        if differ(suspect → "
        "        if False and differ(suspect": "You find no wrong result before a gradient: you compare results not at "
        "all or too late, or you recorded the suspect parts. Record the right ones, and compare results first.",
        f"{_INPUTS} → {_INPUTS}{_IN_ONE_LOOP} ;; {_GRADIENTS} → ": "You compare gradients before all results are "
        "compared. A wrong result comes first, even that of a later call: go through the recording twice.",
        f"{_INPUTS} →  ;; {_GRADIENTS} →     for name, given, result in recording:\n        copies = [each.clone() if "
        f"isinstance(each, Tensor) else each for each in given]\n        suspect[name](*copies)\n"
        f"{_INPUTS}{_GRADIENTS}": "You compare all results before you look at an input. Look at both after each call: "
        "the first call counts.",
        '        if differ(suspect[name](*copies), result):\n            return name, "result"\n →         found = '
        f"suspect[name](*copies)\n{_INPUTS}        if differ(found, result):\n            return name, "
        f'"result"\n ;; {_INPUTS} → ': "You look at the inputs before the result. If a part spoils both, the result "
        "counts.",
        "recording = list(calls) → recording = sorted(calls, key=lambda each: [*right].index(each[0]))": "You go part "
        "by part. The first difference is in the first *call*: go through the recording in its order.",
        "recording = list(calls) → recording = list({each[0]: each for each in calls}.values())": "You keep one call "
        "of each part. Keep them all: a part may be wrong in one call and right in the next.",
        "1e-4 * b.norm() → 1e-4": "Your limit is the same for all parts. What counts as rounding grows with the "
        "result: allow 1e-4 of its length.",
        "not (a - b).norm() <= 1e-4 * b.norm() → not torch.allclose(a, b, rtol=1e-4)": _BY_NUMBER,
        "not (a - b).norm() <= 1e-4 * b.norm() → ((a - b).abs() > 1e-4 * b.abs()).any()": _BY_NUMBER,
        f"suspect[name](*copies), result) → decoder(tokens, weights, sizes, right | {{name: suspect[name]}}), "
        f"decoder(tokens, weights, sizes, right)) ;; {_INPUTS} →  ;; {_GRADIENTS} → ": "You replace one part at a time "
        "in a whole decoder, and compare the logits. Some slips do not reach them: record what each part was given, "
        "and compare there.",
        "for name, given, result in recording → for name in right ;;         copies = [each.clone() if isinstance(each"
        ", Tensor) else each for each in given]\n →  ;; suspect[name](*copies), result) → decoder(tokens, weights, "
        f"sizes, right | {{name: suspect[name]}}), decoder(tokens, weights, sizes, right)) ;; {_INPUTS} → "
        f" ;; {_GRADIENTS} → ": (
            "You replace one part at a time in a whole decoder, and compare the logits. Some slips do not reach them: "
            "record what each part was given, and compare there."
        ),
        "recorded(name: str) → recorded(name: str, parts: Any = right) ;; right[name](*given)\n → parts[name](*given)\n"
        " ;; recording = list(calls)\n → recording = list(calls)\n    decoder(tokens, weights, sizes, {name: "
        "recorded(name, suspect) for name in right})\n    for (name, _, b), (_, _, a) in zip(recording, "
        'calls[len(recording) :]):\n        if differ(a, b):\n            return name, "result"\n    return '
        "None\n": "You record two decoders, one of them with the suspect parts, and compare call by call. Give each "
        "suspect part what the right one got: then you can look at its inputs and gradients, too.",
    },
)
