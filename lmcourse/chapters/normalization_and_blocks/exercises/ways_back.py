"""The exercise on the two parts of a gradient: past a branch, and through the branch."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD
from lmcourse.exercises.inputs import normal64

Parts = tuple[Tensor, Tensor]


class _WithPullback(torch.autograd.Function):
    """A function that returns its value and its pullback, for use with autograd."""

    @staticmethod
    def forward(ctx: Any, function: Any, h: Tensor) -> Tensor:
        value, ctx.pullback = function(h)
        return value  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, ctx.pullback(gradients[0])


def _by_autograd(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any, placement: str) -> Parts:
    """Give each of the two paths its own copy of x, and let autograd compute the gradient of either copy."""

    def run(function: Any, h: Tensor) -> Tensor:
        return _WithPullback.apply(function, h)  # type: ignore[no-any-return, no-untyped-call]

    if placement not in ("pre", "post", "double", "output"):
        raise ValueError(placement)
    with torch.enable_grad():
        past, read = (x.clone().requires_grad_() for _ in range(2))
        added = run(f, run(before, read) if placement in ("pre", "double") else read)
        added = run(after, added) if placement in ("double", "output") else added
        y = run(after, past + added) if placement == "post" else past + added
        straight, through = torch.autograd.grad(y, (past, read), dy)
    return straight, through


NORMS = """\
f = lambda h: (h * h, lambda g: 2 * h * g)
before = lambda h: (h - h.mean(-1, keepdim=True), lambda g: g - g.mean(-1, keepdim=True))
after = lambda h: (h / h.norm(), lambda g: (g - h * (h * g).sum() / h.norm() ** 2) / h.norm())
"""
"""Simple functions of one vector: squaring, subtracting the mean, and scaling to length 1."""

LAYERS = """\
f = lambda h: ((h @ w).tanh(), lambda g: (g * (1 - (h @ w).tanh() ** 2)) @ w.mT)
rms = lambda h: h.square().mean(-1, keepdim=True).sqrt()
back = lambda h, g: (g - h * (h * g).mean(-1, keepdim=True) / rms(h) ** 2) / rms(h)
before = lambda h: (h / rms(h), lambda g: back(h, g))
after = lambda h: (3 * (h - 1) / rms(h - 1), lambda g: 3 * back(h - 1, g))
"""
"""A nonlinear branch and two different norms, for any number of axes."""

SILENT = "f = lambda h: (0 * h, lambda g: 3 * g)\n"
BLOCKED = "f = lambda h: (h * h, lambda g: 0 * g)\n"
COUNTED = """\
calls = []
f = lambda h: calls.append("f") or (h * h, lambda g: calls.append("f back") or 2 * h * g)
before = lambda h: calls.append("before") or (h - 1, lambda g: calls.append("before back") or 1.0 * g)
after = lambda h: calls.append("after") or (h / 2, lambda g: calls.append("after back") or g / 2)
"""
PLACEMENTS = ("pre", "post", "double", "output")


def _t(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


X, DY = _t(1.0, 2.0, 6.0), _t(1.0, -2.0, 3.0)


def _ask(
    name: str,
    placement: str,
    lines: str = NORMS,
    before: str = "before",
    after: str = "after",
    x: Tensor = X,
    dy: Tensor = DY,
    **inputs: Tensor,
) -> Case:
    call = f"ways_back(x, dy, f, {before}, {after}, {placement!r})"
    return script(name, lines + call, x=x, dy=dy, **inputs)


def _drawn(name: str, random: Random, placement: str, *shape: int) -> Case:
    x, dy, w = normal64(random, *shape), normal64(random, *shape), normal64(random, shape[-1], shape[-1])
    return _ask(name, placement, LAYERS, x=x, dy=dy, w=w)


def _counted(name: str, placement: str) -> Case:
    lines = f"{COUNTED}parts = ways_back(x, dy, f, before, after, {placement!r})\nsorted(calls)\nparts"
    return script(name, lines, x=X, dy=DY)


def _hidden(random: Random) -> list[Case]:
    seen = Random(7)
    return [
        *(_drawn("a batch of texts", seen, placement, 2, 3, 4) for placement in PLACEMENTS),
        *(_drawn("a single vector", seen, placement, 5) for placement in PLACEMENTS),
        *(_ask("a branch that adds nothing", placement, NORMS + SILENT) for placement in ("pre", "post")),
        *(_ask("a branch that passes no gradient", placement, NORMS + BLOCKED) for placement in PLACEMENTS),
        _ask("no gradient", "post", dy=0 * DY),
        _ask("norms that are not there", "pre", after="None", x=X - 3),
        *(_ask("norms that are not there", placement, before="None", x=X - 3) for placement in ("post", "output")),
        *(edge(_ask("unknown names", name)) for name in ("", "PRE", "none", "pre-norm", "doubled")),
        *(_counted("how often each is called", placement) for placement in PLACEMENTS),
        *(_ask("single precision", placement, x=X.float(), dy=DY.float()) for placement in ("post", "double")),
        *(
            _drawn("other shapes", random, placement, random.randint(2, 4), random.randint(2, 4), random.randint(2, 6))
            for placement in PLACEMENTS
        ),
    ]


ways_back = Exercise(
    "ways_back",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_by_autograd,
    cases=[
        *(_ask(f'"{placement}"', placement) for placement in PLACEMENTS),
        _ask("a branch that adds nothing, and whose pullback is not 0", "post", NORMS + SILENT),
        _ask("a branch whose pullback is 0", "post", NORMS + BLOCKED),
        _ask('"pre" needs no norm after', "pre", after="None", x=2 * X),
        _ask('"output" needs no norm before', "output", before="None", x=2 * X),
        edge(_counted("post: each function and each pullback is called once", "post")),
        edge(_counted("double: each function and each pullback is called once", "double")),
        edge(_ask("a misspelt name", "Pre")),
    ],
    hidden_cases=_hidden,
    hints=[
        "First run the block forwards and keep the pullback of each function. Then start with dy at the end, and call "
        "the pullback of each function that you meet on the way back.",
        "At a plus sign the gradient is copied: one copy is the straight part, the other one enters the branch. In "
        "“post” the norm comes after the plus sign, so on the way back it comes first, for both copies.",
        "A pullback belongs to the point at which the function was called: what did the norm of “post” read? Through "
        "the branch of “double” the pullbacks come in the order after, f, before.",
    ],
    forbid=NO_AUTOGRAD,
)


@ways_back.variant
def by_match(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any, placement: str) -> tuple[Tensor, Tensor]:
    match placement:
        case "pre":
            h, before_back = before(x)
            _, f_back = f(h)
            return dy, before_back(f_back(dy))
        case "double":
            h, before_back = before(x)
            added, f_back = f(h)
            _, after_back = after(added)
            return dy, before_back(f_back(after_back(dy)))
        case "output":
            added, f_back = f(x)
            _, after_back = after(added)
            return dy, f_back(after_back(dy))
        case "post":
            added, f_back = f(x)
            _, after_back = after(x + added)
            g = after_back(dy)
            return g, f_back(g)
    raise ValueError(placement)


@ways_back.variant
def with_a_list_of_pullbacks(
    x: Tensor, dy: Tensor, f: Any, before: Any, after: Any, placement: str
) -> tuple[Tensor, Tensor]:
    chains = {"pre": [before, f], "post": [f], "double": [before, f, after], "output": [f, after]}
    if placement not in chains:
        raise ValueError(f"no such placement: {placement}")
    h, pullbacks = x, []
    for function in chains[placement]:
        h, pullback = function(h)
        pullbacks.append(pullback)
    straight = after(torch.add(x, h))[1](dy) if placement == "post" else dy.clone()
    through = straight
    while pullbacks:
        through = pullbacks.pop()(through)
    return straight, through


@ways_back.variant
def with_identities(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any, placement: str) -> list[Tensor]:
    def leave(h: Tensor) -> tuple[Tensor, Any]:
        return h, lambda g: g

    places = {
        "pre": (before, leave, leave),
        "post": (leave, leave, after),
        "double": (before, after, leave),
        "output": (leave, after, leave),
    }
    try:
        reads, writes, keeps = places[placement]
    except KeyError:
        raise ValueError("placement") from None
    read, read_back = reads(x)
    value, f_back = f(read)
    written, written_back = writes(value)
    straight = keeps(x + written)[1](dy)
    return [straight, read_back(f_back(written_back(straight)))]


Rule = Callable[[Tensor, Tensor, Any, Any, Any], Parts]


def _pre(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
    read, before_back = before(x)
    return dy, before_back(f(read)[1](dy))


def _post(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
    value, f_back = f(x)
    g = after(x + value)[1](dy)
    return g, f_back(g)


def _double(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
    read, before_back = before(x)
    value, f_back = f(read)
    return dy, before_back(f_back(after(value)[1](dy)))


def _output(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
    value, f_back = f(x)
    return dy, f_back(after(value)[1](dy))


RULES: dict[str, Rule] = {"pre": _pre, "post": _post, "double": _double, "output": _output}


def _rules(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any, placement: str, **changed: Rule) -> Parts:
    """The four right answers, some of them replaced."""
    if placement not in RULES:
        raise ValueError(placement)
    return (RULES | changed)[placement](x, dy, f, before, after)


@ways_back.misconception(
    "In “post” your straight part is dy. The norm comes after the plus sign, so the straight part goes back through "
    "it, too."
)
def post_straight_is_dy(*args: Any) -> Parts:
    return _rules(*args, post=lambda x, dy, *functions: (dy, _post(x, dy, *functions)[1]))


@ways_back.misconception(
    "In “post” your branch gets dy. Going back, the norm comes first, and the plus sign passes its result to both "
    "parts."
)
def post_through_without_the_norm(*args: Any) -> Parts:
    return _rules(*args, post=lambda x, dy, f, *norms: (_post(x, dy, f, *norms)[0], f(x)[1](dy)))


@ways_back.misconception("In “post” neither part of your gradient goes through the norm.")
def post_without_the_norm(*args: Any) -> Parts:
    return _rules(*args, post=lambda x, dy, f, before, after: (dy, f(x)[1](dy)))


def _post_at(point: Callable[[Tensor, Tensor], Tensor]) -> Rule:
    def rule(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
        value, f_back = f(x)
        g = after(point(x, value))[1](dy)
        return g, f_back(g)

    return rule


@ways_back.misconception("In “post” you pull back through a norm that read f(x). It read the sum, x + f(x).")
def post_norm_of_the_branch(*args: Any) -> Parts:
    return _rules(*args, post=_post_at(lambda x, value: value))


@ways_back.misconception("In “post” you pull back through a norm that read x. It read the sum, x + f(x).")
def post_norm_of_x(*args: Any) -> Parts:
    return _rules(*args, post=_post_at(lambda x, value: x))


@ways_back.misconception("In “post” you have the two parts of “output”. Here the norm takes the sum.")
def post_as_output(*args: Any) -> Parts:
    return _rules(*args, post=_output)


@ways_back.misconception("In “output” you have the two parts of “post”. Here the norm takes what f returns.")
def output_as_post(*args: Any) -> Parts:
    return _rules(*args, output=_post)


def _output_of_the_sum(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
    value, f_back = f(x)
    return dy, f_back(after(x + value)[1](dy))


@ways_back.misconception("In “output” you pull back through a norm that read x + f(x). It read f(x) alone.")
def output_norm_of_the_sum(*args: Any) -> Parts:
    return _rules(*args, output=_output_of_the_sum)


def _double_of_the_sum(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
    read, before_back = before(x)
    value, f_back = f(read)
    return dy, before_back(f_back(after(x + value)[1](dy)))


@ways_back.misconception("In “double” your second norm read a sum. It read only the result of f.")
def double_norm_of_the_sum(*args: Any) -> Parts:
    return _rules(*args, double=_double_of_the_sum)


def _double_forwards(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
    read, before_back = before(x)
    value, f_back = f(read)
    return dy, after(value)[1](f_back(before_back(dy)))


def _pre_forwards(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
    read, before_back = before(x)
    return dy, f(read)[1](before_back(dy))


def _output_forwards(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
    value, f_back = f(x)
    return dy, after(value)[1](f_back(dy))


@ways_back.misconception(
    "In “double” your pullbacks come in the order of the forward pass. Backwards the last function comes first: after, "
    "f, before."
)
def double_forwards(*args: Any) -> Parts:
    return _rules(*args, double=_double_forwards)


@ways_back.misconception(
    "Your pullbacks come in the order of the forward pass. Backwards, the function that was called last comes first."
)
def forwards(*args: Any) -> Parts:
    return _rules(*args, pre=_pre_forwards, double=_double_forwards, output=_output_forwards)


@ways_back.misconception(
    "In “pre” your gradient leaves the branch without going through `before`. The branch read before(x), not x."
)
def pre_before_forgotten(*args: Any) -> Parts:
    return _rules(*args, pre=lambda x, dy, f, before, after: (dy, f(before(x)[0])[1](dy)))


def _double_without_before(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
    value, f_back = f(before(x)[0])
    return dy, f_back(after(value)[1](dy))


@ways_back.misconception(
    "In “pre” and “double” your gradient leaves the branch without going through `before`, the first function in it."
)
def before_forgotten(*args: Any) -> Parts:
    return _rules(
        *args, pre=lambda x, dy, f, before, after: (dy, f(before(x)[0])[1](dy)), double=_double_without_before
    )


@ways_back.misconception(
    "In “output” and “double” your gradient enters the branch without going through `after`, the last function in it."
)
def after_forgotten(*args: Any) -> Parts:
    return _rules(*args, double=_pre, output=lambda x, dy, f, before, after: (dy, f(x)[1](dy)))


def _pre_at_x(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
    return dy, before(x)[1](f(x)[1](dy))


def _double_at_x(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
    value, f_back = f(x)
    return dy, before(x)[1](f_back(after(value)[1](dy)))


@ways_back.misconception("Your f reads x where it should read before(x): its pullback belongs to another point.")
def f_at_x(*args: Any) -> Parts:
    return _rules(*args, pre=_pre_at_x, double=_double_at_x)


@ways_back.misconception(
    "Your second part is the whole gradient. Return the two parts separately: their sum is the gradient."
)
def through_is_the_whole(*args: Any) -> Parts:
    straight, through = _rules(*args)
    return straight, straight + through


@ways_back.misconception(
    "In “post” your second part is the whole gradient. Return only the gradient through the branch."
)
def post_through_is_the_whole(*args: Any) -> Parts:
    def rule(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
        straight, through = _post(x, dy, f, before, after)
        return straight, straight + through

    return _rules(*args, post=rule)


@ways_back.misconception(
    "Your straight part goes through `before` in “pre” and “double”. That norm is inside the branch: the straight part "
    "skips it."
)
def straight_through_before(*args: Any) -> Parts:
    def past(rule: Rule) -> Rule:
        return lambda x, dy, f, before, after: (before(x)[1](dy), rule(x, dy, f, before, after)[1])

    return _rules(*args, pre=past(_pre), double=past(_double))


def _straight_through_after(rule: Rule) -> Rule:
    def changed(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
        passed = dy

        def keeping(h: Tensor) -> Any:
            value, after_back = after(h)

            def back(g: Tensor) -> Tensor:
                nonlocal passed
                passed = after_back(g)
                return passed  # type: ignore[no-any-return]

            return value, back

        through = rule(x, dy, f, before, keeping)[1]
        return passed, through

    return changed


@ways_back.misconception(
    "Your straight part goes through `after` in “double” and “output”. That norm is inside the branch: the straight "
    "part skips it."
)
def straight_through_after(*args: Any) -> Parts:
    return _rules(*args, double=_straight_through_after(_double), output=_straight_through_after(_output))


@ways_back.misconception("Your straight part is x. Return a gradient: the part that reaches x without the branch.")
def straight_is_x(*args: Any) -> Parts:
    return args[0], _rules(*args)[1]


@ways_back.misconception(
    "In the branch your gradient goes only through f. Apply the pullbacks of the branch's norms as well."
)
def norms_of_the_branch_forgotten(*args: Any) -> Parts:
    return _rules(
        *args,
        pre=lambda x, dy, f, before, after: (dy, f(before(x)[0])[1](dy)),
        double=lambda x, dy, f, before, after: (dy, f(before(x)[0])[1](dy)),
        output=lambda x, dy, f, before, after: (dy, f(x)[1](dy)),
    )


@ways_back.misconception("Your gradient goes only through f. Apply the pullback of every norm that was called.")
def all_norms_forgotten(*args: Any) -> Parts:
    return _rules(
        *args,
        pre=lambda x, dy, f, before, after: (dy, f(before(x)[0])[1](dy)),
        double=lambda x, dy, f, before, after: (dy, f(before(x)[0])[1](dy)),
        output=lambda x, dy, f, before, after: (dy, f(x)[1](dy)),
        post=lambda x, dy, f, before, after: (dy, f(x)[1](dy)),
    )


@ways_back.misconception(
    "You multiply the results of the pullbacks. Chain them: each takes the result of the one before."
)
def pullbacks_multiplied(*args: Any) -> Parts:
    def double(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
        read, before_back = before(x)
        value, f_back = f(read)
        return dy, before_back(dy) * f_back(dy) * after(value)[1](dy)

    def pre(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
        read, before_back = before(x)
        return dy, before_back(dy) * f(read)[1](dy)

    def output(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
        value, f_back = f(x)
        return dy, f_back(dy) * after(value)[1](dy)

    return _rules(*args, pre=pre, double=double, output=output)


@ways_back.misconception("You swapped the two parts: the straight part comes first.")
def swapped(*args: Any) -> Parts:
    straight, through = _rules(*args)
    return through, straight


@ways_back.misconception("You return the sum. Return its two parts, the straight part first.")
def added_up(*args: Any) -> Tensor:
    straight, through = _rules(*args)
    return straight + through


@ways_back.misconception(
    "You apply the norms to the gradient. Apply their pullbacks: the second of the two things that a function returns."
)
def norm_of_the_gradient(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any, placement: str) -> Parts:
    def applied(norm: Any) -> Any:
        return lambda h: (norm(h)[0], lambda g: norm(g)[0])

    first, second = (norm and applied(norm) for norm in (before, after))
    return _rules(x, dy, f, first, second, placement)


@ways_back.misconception("The two norms are swapped.")
def norms_swapped(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any, placement: str) -> Parts:
    return _rules(x, dy, f, after, before, placement)


@ways_back.misconception(
    "You call functions twice. Each call does the work again: keep both of the things that it returns."
)
def called_twice(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any, placement: str) -> Parts:
    def twice(function: Any) -> Any:
        return lambda h: (function(h)[0], function(h)[1])

    branch, first, second = (function and twice(function) for function in (f, before, after))
    return _rules(x, dy, branch, first, second, placement)


@ways_back.misconception(
    "In “post” you pull dy back through the norm twice. Both parts start from the same gradient: keep it."
)
def post_pulled_back_twice(*args: Any) -> Parts:
    def rule(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any) -> Parts:
        value, f_back = f(x)
        _, after_back = after(x + value)
        return after_back(dy), f_back(after_back(dy))

    return _rules(*args, post=rule)


@ways_back.misconception("You call norms that a placement does not use. Such a norm may be None.")
def both_norms_called(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any, placement: str) -> Parts:
    before(x), after(x)
    return _rules(x, dy, f, before, after, placement)


@ways_back.misconception("You treat an unknown placement as “pre”. Raise ValueError.")
def anything_goes(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any, placement: str) -> Parts:
    return _rules(x, dy, f, before, after, placement if placement in RULES else "pre")
