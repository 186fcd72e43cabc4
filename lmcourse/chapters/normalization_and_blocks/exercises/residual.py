"""The exercise on the four places for a norm around a branch."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal
from lmcourse.nn.block import BlockConfig, Residual
from lmcourse.nn.norm import NormConfig, identity

Function = Callable[[Tensor], Tensor]


class _Layer(nn.Module):
    """A function as a layer."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.forward = function


def _by_the_package(x: Tensor, f: Function, before: Function | None, after: Function | None, placement: str) -> Tensor:
    """The package's Residual, with these functions in place of its norms."""
    branch = Residual(_Layer(f), BlockConfig(NormConfig(), placement), x.shape[-1])  # type: ignore[arg-type]
    if branch.input_norm is not identity:
        branch.input_norm = _Layer(before)  # type: ignore[arg-type]
    if branch.output_norm is not identity:
        branch.output_norm = _Layer(after)  # type: ignore[arg-type]
    if branch.post_norm is not identity:
        branch.post_norm = _Layer(after)  # type: ignore[arg-type]
    result: Tensor = branch(x)
    return result


NORMS = """\
f = lambda v: 2 * v + 1
before = lambda v: v - v.mean(-1, keepdim=True)
after = lambda v: v / v.abs().amax(-1, keepdim=True)
"""
RMS = """\
f = lambda v: v @ w
before = lambda v: v / v.square().mean(-1, keepdim=True).sqrt()
after = lambda v: 3 * before(v)
"""
COUNTED = """\
calls = []
f = lambda v: calls.append(len(calls)) or 2 * v
before = lambda v: v - 1
after = lambda v: v / 2
"""
X = torch.tensor([[1.0, 2.0, 6.0]])


def _ask(
    name: str, placement: str, lines: str = NORMS, before: str = "before", after: str = "after", **inputs: Tensor
) -> Case:
    call = f"residual(x, f, {before}, {after}, {placement!r})"
    return script(name, f"{lines}{call}", **inputs)


def _square(name: str, random: Random, placement: str, *shape: int) -> Case:
    d = shape[-1]
    return _ask(name, placement, RMS, x=normal(random, *shape), w=normal(random, d, d))


PLACEMENTS = ("pre", "post", "double", "output")


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    grads = "x = x.clone().requires_grad_()\n" + NORMS
    sum_of = "residual(x, f, before, after, 'double').sum().backward()\nx.grad"
    return [
        *(_square("a batch of texts", fixed, placement, 2, 3, 4) for placement in PLACEMENTS),
        *(_square("a single vector", fixed, placement, 5) for placement in ("pre", "post")),
        _ask("norms that are not there", "pre", after="None", x=X - 3),
        *(_ask("norms that are not there", placement, before="None", x=X - 3) for placement in ("post", "output")),
        *(_ask("unknown names", name, x=X) for name in ("", "PRE", "none", "pre-norm", "doubled")),
        *(
            script(
                "how often f is called",
                f"{COUNTED}y = residual(x, f, before, after, {placement!r})\nlen(calls)\ny",
                x=X,
            )
            for placement in PLACEMENTS
        ),
        script("x is still needed", f"{NORMS}y = residual(x, f, before, after, 'pre')\nx\ny", x=X + 1),
        script("the gradient", grads + sum_of, x=X),
        *(
            _square("other shapes", random, placement, random.randint(2, 4), random.randint(2, 4), random.randint(2, 6))
            for placement in PLACEMENTS
        ),
    ]


residual = Exercise(
    "residual",
    points=4,
    minutes=10,
    difficulty=2,
    reference=_by_the_package,
    differentiable=True,
    cases=[
        *(_ask(f'"{placement}"', placement, x=X) for placement in PLACEMENTS),
        _ask('"pre" needs no norm after', "pre", after="None", x=2 * X),
        _ask('"output" needs no norm before', "output", before="None", x=2 * X),
        script("f is called once", f'{COUNTED}y = residual(x, f, before, after, "double")\nlen(calls)\ny', x=X),
        script("x is still needed", f'{NORMS}y = residual(x, f, before, after, "output")\nx\ny', x=X),
        _ask("a misspelt name", "Pre", x=X),
    ],
    hidden_cases=_hidden,
    hints=[
        "One line of the formulas for each placement. In three of the four, x itself is added last and touched by "
        "nothing.",
        "Only for “post” is the sum an argument of a norm: after(x + f(x)).",
        "pre: x + f(before(x)). double: x + after(f(before(x))). output: x + after(f(x)). Anything else: raise "
        "ValueError.",
    ],
)


@residual.variant
def by_match(
    x: Tensor,
    f: Callable[[Tensor], Tensor],
    before: Callable[[Tensor], Tensor] | None,
    after: Callable[[Tensor], Tensor] | None,
    placement: str,
) -> Tensor:
    match placement, before, after:
        case "pre", norm, _:
            return x + f(norm(x))  # type: ignore[misc]
        case "double", first, second:
            return x + second(f(first(x)))  # type: ignore[misc]
        case "output", _, norm:
            return x + norm(f(x))  # type: ignore[misc]
        case "post", _, norm:
            return norm(f(x) + x)  # type: ignore[misc]
    raise ValueError(placement)


@residual.variant
def step_by_step(x: Tensor, f: Any, before: Any, after: Any, placement: str) -> Tensor:
    if placement not in {"pre", "post", "double", "output"}:
        raise ValueError(f"no such placement: {placement}")
    y = x
    if placement in ("pre", "double"):
        y = before(y)
    y = f(y)
    if placement in ("double", "output"):
        y = after(y)
    y = y + x
    return after(y) if placement == "post" else y  # type: ignore[no-any-return]


@residual.variant
def from_a_table(x: Tensor, f: Any, before: Any, after: Any, placement: str) -> Tensor:
    def leave(v: Tensor) -> Tensor:
        return v

    table = {
        "pre": (before, leave, leave),
        "post": (leave, leave, after),
        "double": (before, after, leave),
        "output": (leave, after, leave),
    }
    try:
        reads, writes, keeps = table[placement]
    except KeyError:
        raise ValueError("placement") from None
    return keeps(torch.add(x, writes(f(reads(x)))))  # type: ignore[no-any-return]


Rule = Callable[[Tensor, Any, Any, Any], Tensor]
RULES: dict[str, Rule] = {
    "pre": lambda x, f, before, after: x + f(before(x)),
    "post": lambda x, f, before, after: after(x + f(x)),
    "double": lambda x, f, before, after: x + after(f(before(x))),
    "output": lambda x, f, before, after: x + after(f(x)),
}


def _rules(x: Tensor, f: Any, before: Any, after: Any, placement: str, **changed: Rule) -> Tensor:
    """The four formulas, some of them changed."""
    if placement not in RULES:
        raise ValueError(placement)
    return (RULES | changed)[placement](x, f, before, after)


@residual.misconception("For “post” the norm takes the *sum*: nothing in the stream escapes it. Yours is “output”.")
def post_is_output(*args: Any) -> Tensor:
    return _rules(*args, post=RULES["output"])


@residual.misconception("For “output” only what the layer adds is normalised. Yours is “post”.")
def output_is_post(*args: Any) -> Tensor:
    return _rules(*args, output=RULES["post"])


@residual.misconception("The copy of x that passes the layer by is normalised too: no straight path is left.")
def stream_normalised(*args: Any) -> Tensor:
    return _rules(
        *args,
        pre=lambda x, f, before, after: before(x) + f(before(x)),
        double=lambda x, f, before, after: before(x) + after(f(before(x))),
    )


@residual.misconception("x itself is missing from the sum: there is no residual connection.")
def no_residual(*args: Any) -> Tensor:
    return _rules(
        *args,
        pre=lambda x, f, before, after: f(before(x)),
        double=lambda x, f, before, after: after(f(before(x))),
        output=lambda x, f, before, after: after(f(x)),
        post=lambda x, f, before, after: after(f(x)),
    )


@residual.misconception("Your second norm of “double” takes the sum. It takes what the layer returns.")
def double_outside(*args: Any) -> Tensor:
    return _rules(*args, double=lambda x, f, before, after: after(x + f(before(x))))


@residual.misconception("In “double” the layer reads normalised features too: there is a norm on both of its sides.")
def double_once(*args: Any) -> Tensor:
    return _rules(*args, double=RULES["output"])


@residual.misconception("The two norms have exchanged places.")
def norms_swapped(x: Tensor, f: Any, before: Any, after: Any, placement: str) -> Tensor:
    return _rules(x, f, after, before, placement)


@residual.misconception("A misspelt placement is taken for “pre”. Raise ValueError, or a typo trains another model.")
def anything_goes(x: Tensor, f: Any, before: Any, after: Any, placement: str) -> Tensor:
    return _rules(x, f, before, after, placement if placement in RULES else "pre")


@residual.misconception("You call both norms whatever the placement. One that is not needed may be None.")
def both_norms_called(x: Tensor, f: Any, before: Any, after: Any, placement: str) -> Tensor:
    before(x), after(x)
    return _rules(x, f, before, after, placement)


@residual.misconception("f is called more than once. It is a layer, and the most expensive thing here: call it once.")
def all_four_computed(x: Tensor, f: Any, before: Any, after: Any, placement: str) -> Tensor:
    if before is not None and after is not None:
        results = {name: rule(x, f, before, after) for name, rule in RULES.items()}
        if placement not in results:
            raise ValueError(placement)
        return results[placement]
    return _rules(x, f, before, after, placement)


@residual.misconception("You change x itself. Add into a new tensor: other parts of the model still need it.")
def in_place(x: Tensor, f: Any, before: Any, after: Any, placement: str) -> Tensor:
    y = _rules(x, f, before, after, placement)
    return x.copy_(y)
