"""What an attack on the rule of an exercise is."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

FIRST = "import math\nimport torch"
"""The first cell of a notebook with an attack."""

HELD = (
    "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\npool.submit(len, '').result()\n"
)
"""A thread that began before anybody watched."""


@dataclass(frozen=True)
class RuleAttack:
    """One attacker of a rule.

    Attributes:
        kind: by which kind of way: "private kernels".
        number: of the notebook.
        exercise: whose rule.
        what: what is tried, in one line.
        code: of the cell.
        right: whether it would be right if nothing were refused; a guess is not.
        sandboxed: whether it is the sandbox that refuses it.
    """

    kind: str
    number: str
    exercise: str
    what: str
    code: str
    right: bool = True
    sandboxed: bool = False

    @property
    def name(self) -> str:
        """For tests: "01 stable_softmax: a private kernel in plain text"."""
        return f"{self.number} {self.exercise}: {self.what}"


def rule_attack(
    kind: str, place: str, what: str, code: str, *, right: bool = True, sandboxed: bool = False
) -> RuleAttack:
    """An attack; `place` is a notebook's number and an exercise: "01 ulp"."""
    number, exercise = place.split()
    return RuleAttack(kind, number, exercise, what, dedent(code).strip(), right, sandboxed)
