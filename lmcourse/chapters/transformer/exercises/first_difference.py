"""The exercise that finds the wrong part of a decoder."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise

_IMPORT = "from lmcourse.parity.suspects import {}, gradients, right, small_model, suspect\n"


def _by_recording_both_ends(
    decoder: Any, tokens: Tensor, weights: Any, sizes: Any, right: Any, suspect: Any, gradients: Any
) -> tuple[str, str] | None:
    """Compare as soon as a right part returns, and put gradients off."""
    found: list[tuple[str, str]] = []
    later: list[Any] = []

    def close(a: Tensor, b: Tensor) -> bool:
        return (a - b).square().sum().item() <= 1e-8 * b.square().sum().item()

    def watched(name: str) -> Any:
        def call(*given: Any) -> Any:
            result = right[name](*given)
            before = [each.clone() if isinstance(each, Tensor) else each for each in given]
            after = [each.clone() if isinstance(each, Tensor) else each for each in given]
            if not close(suspect[name](*after), result):
                found.append((name, "result"))
            elif any(isinstance(a, Tensor) and not torch.equal(a, b) for a, b in zip(before, after, strict=True)):
                found.append((name, "input changed"))
            later.append((name, before))
            return result

        return call

    decoder(tokens, weights, sizes, {name: watched(name) for name in right})
    for name, given in [] if found else later[:]:
        if not close(gradients(suspect[name], given), gradients(right[name], given)):
            found.append((name, "gradient"))
    return found[0] if found else None


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
    reference=_by_recording_both_ends,
    cases=[
        _ask("attention without a mask", "no mask"),
        _ask("a branch 0.05 % too large", "branch 0.05 % too large"),
        _ask("positions from 1", "positions from 1"),
        _ask("the values are detached", "values detached"),
        _ask("self_attention under no_grad", "attention under no_grad"),
        _ask("the norm writes into its input", "norm in place"),
        _ask("a right norm, summed in another order", "sums in another order"),
        _ask("two slips, one part inside the other", "two slips, one inside the other"),
        _ask("attention clears its values afterwards", "values cleared"),
        _ask("a single call, 0.015 % too large", "norm 0.015 % too large", decoder="only_norm"),
        _ask("a single call, 0.007 % too large", "norm 0.007 % too large", decoder="only_norm"),
        _ask("a single call, its input detached", "norm's input detached", decoder="only_norm"),
        _ask("a right norm of zeros", "sums in another order", decoder="norm_of_zeros"),
    ],
    hidden_cases=_hidden,
    hints=[
        "To record a part, wrap it: a function that calls the part, stores name, arguments and result in a list, and "
        "returns the result. Store after the call, and the list is in the order in which calls end.",
        "Run the decoder once, with six wrapped right parts. Copy the list: your replay may add to it. Then give each "
        "suspect part copies of the recorded tensors.",
        "(a - b).norm() > 1e-4 * b.norm() compares results. After the call, compare your copies with the "
        "recording. Only if nothing differs, start again with `gradients`.",
    ],
)


@first_difference.variant
def recorded_and_replayed(
    decoder: Any, tokens: Tensor, weights: Any, sizes: Any, right: Any, suspect: Any, gradients: Any
) -> tuple[str, str] | None:
    calls = []

    def recorded(name: str) -> Any:
        def call(*given: Any) -> Any:
            result = right[name](*given)
            calls.append((name, given, result))
            return result

        return call

    def differ(a: Tensor, b: Tensor) -> Any:
        return (a - b).norm() > 1e-4 * b.norm()

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


first_difference.equivalent_mutant(
    "torch.dist(found, wanted) → torch.dist(wanted, found)", "The distance of two vectors is the same from both sides."
)
first_difference.equivalent_mutant(
    "torch.equal(each, copies[i]) → torch.equal(copies[i], each)", "Equality is the same from both sides."
)
_NEAR = "At the limit the two lengths differ by 1e-4 of themselves, and the task allows either."
first_difference.equivalent_mutant(
    "differ(suspect[name](*copies), result) → differ(result, suspect[name](*copies))", _NEAR
)
first_difference.equivalent_mutant(
    "gradients(suspect[name], given), gradients(right[name], given) → "
    "gradients(right[name], given), gradients(suspect[name], given)",
    _NEAR,
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
        "> 1e-4 * b.norm() → > 0": "You accuse a right part: sums in another order differ in the last digit. "
        "Allow 1e-4 of the length of the right result.",
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
        "        if False and differ(suspect": "You never compare results. Compare them first, then the inputs, and "
        "gradients at the end.",
    },
)


@first_difference.misconception(
    "You replace one part at a time in a whole decoder, and compare the logits. Some slips do not reach them: record "
    "what each part was given, and compare there."
)
def exchanged(
    decoder: Any, tokens: Tensor, weights: Any, sizes: Any, right: Any, suspect: Any, gradients: Any
) -> tuple[str, str] | None:
    logits = decoder(tokens, weights, sizes, right)
    for name in right:
        moved = decoder(tokens, weights, sizes, right | {name: suspect[name]}) - logits
        if moved.abs().max() > 1e-4 * logits.abs().max():
            return name, "result"
    return None


@first_difference.misconception(
    "You record two decoders, one of them with the suspect parts, and compare call by call. Give each suspect part "
    "what the right one got: then you can look at its inputs and gradients, too."
)
def side_by_side(
    decoder: Any, tokens: Tensor, weights: Any, sizes: Any, right: Any, suspect: Any, gradients: Any
) -> tuple[str, str] | None:
    runs = []
    for parts in (right, suspect):
        calls: list[Any] = []

        def kept(name: str, calls: list[Any] = calls, parts: Any = parts) -> Any:
            return lambda *given: calls.append((name, parts[name](*given))) or calls[-1][1]  # type: ignore[func-returns-value]

        decoder(tokens, weights, sizes, {name: kept(name) for name in right})
        runs.append(calls)
    for (name, a), (_, b) in zip(*runs, strict=True):
        if (a - b).abs().max() > 1e-4 * a.abs().max():
            return name, "result"
    return None
