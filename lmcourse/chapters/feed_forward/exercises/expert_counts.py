"""The exercise on the counts of a mixture of experts: all parameters, those that a token uses, and FLOPs."""

from __future__ import annotations

from random import Random

import torch
from torch import nn

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise


def _counts(d_model: int, width: int, experts: int, k: int, shared: int = 0) -> list[int]:
    with torch.device("meta"):
        expert = nn.ModuleList([nn.Linear(d_model, width, bias=False) for _ in range(2)])
        expert.append(nn.Linear(width, d_model, bias=False))
        router = nn.Linear(d_model, experts, bias=False)
    one, routing = (sum(p.numel() for p in module.parameters()) for module in (expert, router))
    used = (shared + k) * one + routing
    return [(shared + experts) * one + routing, used, 2 * used]


def _ask(name: str, *sizes: int, shared: int = 0) -> list[Case]:
    """Three cases, one for each number."""
    line = f"moe_counts({', '.join(map(str, sizes))}{f', shared={shared}' if shared else ''})"
    asked = ("parameters", "parameters that a token uses", "FLOPs")
    return [script(f"{name}: {what}", f"{line}[{place}]") for place, what in enumerate(asked)]


def _count_cases(random: Random) -> list[Case]:
    sizes = [(random.randint(10, 5000), random.randint(10, 9000), random.randint(5, 300)) for _ in range(3)]
    return [
        *_ask("every expert is used", 64, 32, 8, 8),
        *_ask("shared experts", 7168, 2048, 256, 8, shared=1),
        *_ask("shared experts", *sizes[0], random.randint(2, 4), shared=2),
        *_ask("shared experts", *sizes[1], 1, shared=1),
        *_ask("other sizes", *sizes[2], random.randint(2, 4)),
    ]


moe_counts = Exercise(
    "moe_counts",
    points=2,
    minutes=6,
    difficulty=1,
    reference=_counts,
    cases=[
        *_ask("d = 2, two experts of width 3, k = 1", 2, 3, 2, 1),
        *_ask("one layer of Mixtral 8×7B", 4096, 14_336, 8, 2),
        *_ask("four experts, three of them used, and two shared", 16, 10, 4, 3, shared=2),
    ],
    hidden_cases=_count_cases,
    hints=[
        "An expert has three matrices of d_model · width weights. The router has one column per expert.",
        "A token goes through the router, its k experts and all shared experts. Each weight on the way costs 2 FLOPs.",
    ],
)


@moe_counts.variant
def expert_by_expert(d_model: int, width: int, experts: int, k: int, shared: int = 0) -> list[int]:
    expert = 3 * d_model * width
    router = d_model * experts
    total = router + (experts + shared) * expert
    active = router + (k + shared) * expert
    return [total, active, 2 * active]


moe_counts.slips(
    expert_by_expert,
    {
        "d_model * experts → 0": "You leave out the router: d_model · experts weights, which every token uses.",
        "active = router → active = d_model * k": "You count k columns of the router per token. It must score all "
        "experts before it can choose k of them.",
        "active = router + → active =": "You count the router in the parameters, but not in what a token uses.",
        "active, 2 → active - router, 2": "Your FLOPs are right, but what a token uses leaves out the router: every "
        "token uses all its d_model · experts weights.",
        "3 * → 1 *": "Your experts have one matrix. They are gated: gate, value and down.",
        "2 * active → 2 * active - router": "You count one FLOP for each weight of the router. Every weight that a "
        "token uses costs 2.",
        "[total → [total - router": "Your parameters leave out the router. What a token uses is right.",
        "2 * active → 2 * (total - shared * expert) || 2 * active → 2 * total": "You count the FLOPs of all experts. A "
        "token uses only k of them and the shared ones.",
        "[total, active → [active, total": "You swapped the first two numbers: all parameters come first.",
        "3 * → 2 *": "Your experts have two matrices. They are gated: gate, value and down.",
        "experts + shared → experts ;; k + shared → k": "You leave out the shared experts.",
        "k + shared → k": "Your tokens use only k experts. They should also use the shared experts: k + shared.",
        "d_model * experts → d_model * (experts + shared)": "Your router scores the shared experts as well. They are "
        "always used, so they need no score.",
        "2 * active → active": "Your FLOPs equal the number of weights. Each weight takes a multiplication and an "
        "addition: 2 FLOPs.",
        "2 * active → 6 * active": "You count three times as many FLOPs, as for a training step, forward and backward. "
        "One forward pass takes 2 per weight.",
        "d_model * experts → d_model * k": "Your router has k columns. It scores every expert: d_model · experts "
        "weights.",
        "expert = → experts -= shared\n    expert =": "You count the shared experts among `experts`. They come on top, "
        "and the router scores all `experts`.",
        "k + shared → 1 + shared": "Your tokens use one expert, not k.",
        "2 * active → 2 * (active - router)": "Your FLOPs leave out the router: a token uses its d_model · experts "
        "weights, too.",
        "experts + shared → experts": "Your parameters leave out the shared experts. They are stored like the others.",
    },
)
