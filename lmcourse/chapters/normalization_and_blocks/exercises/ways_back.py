"""The exercise on the two parts of a gradient: past a branch, and through the branch."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD
from lmcourse.exercises.inputs import normal64


class _WithPullback(torch.autograd.Function):
    """A function that returns its value and its pullback, for use with autograd."""

    @staticmethod
    def forward(ctx: Any, function: Any, h: Tensor) -> Tensor:
        value, ctx.pullback = function(h)
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, ctx.pullback(gradients[0])


def _by_autograd(x: Tensor, dy: Tensor, f: Any, before: Any, after: Any, placement: str) -> tuple[Tensor, Tensor]:
    """Give each of the two paths its own copy of x, and let autograd compute the gradient of either copy."""

    def run(function: Any, h: Tensor) -> Tensor:
        return _WithPullback.apply(function, h)  # type: ignore[no-untyped-call]

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
UNUSED = (
    NORMS
    + """\
ways_back(x, dy, f, before, None, "pre")
ways_back(x, dy, f, None, after, "output")
"""
)
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
        # half of the cases, and so of the points, belong to "post", where something happens on the straight way
        *(_ask(f'"{placement}"', placement) for placement in PLACEMENTS),
        _ask("post: a branch that adds nothing, and whose pullback is not 0", "post", NORMS + SILENT),
        _ask("post: a branch whose pullback is 0", "post", NORMS + BLOCKED),
        _ask("post: a gradient that the norm ignores", "post", dy=X + X * X),
        _drawn("post: texts of two tokens", Random(3), "post", 2, 2, 3),
        script("norms that a placement does not use", UNUSED, x=2 * X, dy=DY),
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


ways_back.slips(
    with_identities,
    {
        "(before, leave, leave) → (before or leave, after or leave, leave) ;; (leave, leave, after) → (before or "
        "leave, leave, after) ;; (leave, after, leave) → (before or leave, after or leave, leave)": "You call every "
        "norm that is given. `placement` says which of them a block calls, and where.",
    },
)


@ways_back.variant
def with_a_list_of_pullbacks(
    x: Tensor, dy: Tensor, f: Any, before: Any, after: Any, placement: str
) -> tuple[Tensor, Tensor]:
    chains = {"pre": [before, f], "post": [f], "double": [before, f, after], "output": [f, after]}
    if placement not in chains:
        raise ValueError(f"no such placement: {placement}")
    h, pullbacks = x, []
    for function in chains[placement]:
        h, back = function(h)
        pullbacks.append(back)
    straight = dy
    if placement == "post":
        _, norm_back = after(x + h)
        straight = norm_back(dy)
    through = straight
    while pullbacks:
        through = pullbacks.pop()(through)
    return straight, through


ways_back.slips(
    by_match,
    {
        "return g, → return dy,": "In “post” your straight part is dy. The norm comes after the plus sign, so the "
        "straight part goes back through it, too.",
        "f_back(g) → f_back(dy)": "In “post” your branch gets dy. Going back, the norm comes first, and the plus sign "
        "passes its result to both parts.",
        "_, after_back = after(x + added)\n            g = after_back(dy) → g = dy": "In “post” neither part of your "
        "gradient goes through the norm.",
        "after(x + added) → after(added)": "In “post” you pull back through a norm that read f(x). It read the sum, x "
        "+ f(x).",
        "after(x + added) → after(x)": "In “post” you pull back through a norm that read x. It read the sum, x + f(x).",
        "after(x + added) → before(x + added)": "In “post” you use `before`. The norm after the sum is `after`.",
        "after(x + added) → after(added) ;; return g, → return dy,": "In “post” you have the two parts of “output”. "
        "Here the norm takes the sum.",
        "after(added)\n            return dy, f_back(after_back(dy)) → "
        "after(x + added)\n            return (g := after_back(dy)), f_back(g)": "In “output” you have the two parts "
        "of “post”. Here the norm takes what f returns.",
        "after(added)\n            return dy, f_back → after(x + added)\n            return dy, f_back": "In “output” "
        "you pull back through a norm that read x + f(x). It read f(x) alone.",
        "after(added)\n            return dy, before_back → after(x + added)\n            return dy, before_back": "In "
        "“double” your second norm read a sum. It read only the result of f.",
        "before_back(f_back(after_back(dy))) → after_back(f_back(before_back(dy)))": "In “double” your pullbacks come "
        "in the order of the forward pass. Backwards the last function comes first: after, f, before.",
        "before_back(f_back(dy)) → f_back(dy)": "In “pre” your gradient leaves the branch without going through "
        "`before`. The branch read before(x), not x.",
        "before_back(f_back(dy)) → f_back(dy) ;; before_back(f_back(after_back(dy))) → f_back(after_back(dy))": "In "
        "“pre” and “double” your gradient leaves the branch without going through `before`, the first function in it.",
        "_, f_back = f(h) → _, f_back = f(x) ;; added, f_back = f(h) → added, f_back = f(x)": "Your f reads x where it "
        "should read before(x): its pullback belongs to another point.",
        "f_back(g) → g + f_back(g)": "In “post” your second part is the whole gradient. Return only the gradient "
        "through the branch.",
        "return dy, before_back(f_back(dy)) → return before_back(dy), before_back(f_back(dy)) ;; "
        "return dy, before_back(f_back(after → return before_back(dy), before_back(f_back(after": "Your straight part "
        "goes through `before` in “pre” and “double”. That norm is inside the branch: the straight part skips it.",
        "return dy, before_back(f_back(after_back(dy))) → return (g := after_back(dy)), before_back(f_back(g)) ;; "
        "return dy, f_back(after_back(dy)) → return (g := after_back(dy)), f_back(g)": "Your straight part goes "
        "through `after` in “double” and “output”. That norm is inside the branch: the straight part skips it.",
        "return g, → return after_back(dy),": "In “post” you pull dy back through the norm twice. Both parts start "
        "from the same gradient: keep it.",
    },
)


ways_back.slips(
    with_a_list_of_pullbacks,
    {
        "pullbacks.pop() → pullbacks.pop(0)": "Your pullbacks come in the order of the forward pass. Backwards, the "
        "function that was called last comes first.",
        "[before, f, after] → [before, f] ;; [f, after] → [f]": "In “output” and “double” your gradient enters the "
        "branch without going through `after`, the last function in it.",
        "return straight, through → return straight, straight + through": "Your second part is the whole gradient. "
        "Return the two parts separately: their sum is the gradient.",
        "return straight → return x": "Your straight part is x. Return a gradient: the part that reaches x without the "
        "branch.",
        "pullbacks.append(back) → pullbacks += [back] if function is f else []": "In the branch your gradient goes "
        "only through f. Apply the pullbacks of the branch's norms as well.",
        "pullbacks.append(back) → pullbacks += [back] if function is f else [] ;; norm_back(dy) → dy": "Your gradient "
        "goes only through f. Apply the pullback of every norm that was called.",
        "through = straight → through = 1 ;; pullbacks.pop()(through) → through * pullbacks.pop()(straight)": "You "
        "multiply the results of the pullbacks. Chain them: each takes the result of the one before.",
        "return straight, through → return through, straight": "You swapped the two parts: the straight part comes "
        "first.",
        "return straight, through → return straight + through": "You return the sum. Return its two parts, the "
        "straight part first.",
        "pullbacks.append(back) → pullbacks.append(back if function is f else lambda g, norm=function: norm(g)[0]) ;; "
        "norm_back(dy) → after(dy)[0]": "You apply the norms to the gradient. Apply their pullbacks: the second of the "
        "two things that a function returns.",
        "chains = → before, after = after, before\n    chains =": "The two norms are swapped.",
        "function(h) → function(h)[0], function(h)[1] ;; after(x + h) → after(x + h)[0], after(x + h)[1]": "You call "
        "functions twice. Each call does the work again: keep both of the things that it returns.",
        "h, pullbacks = → before(x), after(x)\n    h, pullbacks =": "You call norms that a placement does not use. "
        "Such a norm may be None.",
        'raise ValueError(f"no such placement: {placement}") → placement = "pre"': "You treat an unknown placement as "
        "“pre”. Raise ValueError.",
    },
)
