"""The exercise on smoothing: mix the counts of contexts by the rule of Witten and Bell."""

from __future__ import annotations

from collections import Counter
from random import Random

from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def context_by_context(counts: list[Counter[str]], letter: str) -> float:
    p = 1 / 128
    for seen in counts:
        n, t = sum(seen.values()), len(seen)
        if n > 0:
            p = (seen[letter] + t * p) / (n + t)
    return p


def _asked(name: str, texts: list[str], letter: str) -> Case:
    counters = ", ".join(f"Counter({text!r})" if text else "Counter()" for text in texts)
    return script(name, f"from collections import Counter  # in the notebook\nmixed([{counters}], {letter!r})")


def _hidden(random: Random) -> list[Case]:
    cases = [
        _asked("one context", ["abcabb"], "b"),
        *(_asked("letters that never came", *each) for each in ((["aab", "ab"], "z"), (["aaaa"], "b"))),
        *(_asked("unknown contexts", texts, "a") for texts in (["", "aab", ""], ["", ""])),
        _asked("unknown contexts", ["aabbc", "", "", "b"], "b"),
        _asked("nothing", [], "q"),
    ]
    for length in (3, 5, 8):
        texts = ["".join(random.choice("abcde") for _ in range(2 * (length - k))) for k in range(length)]
        cases.append(_asked("other counts", texts, texts[-1][0]))
    return cases


mixed = Exercise(
    "mixed",
    points=2,
    minutes=7,
    difficulty=2,
    reference=context_by_context,
    cases=[
        _asked("one context", ["aab"], "a"),
        _asked("two contexts", ["abacbaad", "aab"], "a"),
        _asked("three contexts", ["abacbaadbb", "aabb", "b"], "b"),
        _asked("a letter that the special context never had", ["aabbbcc", "aaab"], "c"),
        _asked("a letter that never came", ["aab", "ab"], "z"),
        _asked("an unknown context between two others", ["aabb", "", "aaab"], "a"),
        _asked("the special context is unknown", ["aabc", "ab", ""], "b"),
        edge(_asked("no context", [], "a")),
    ],
    hidden_cases=_hidden,
    hints=[
        "Begin with p = 1 / 128, and go through the counters in their order. Each replaces p by a mean of its own "
        "fraction and p.",
        "For a counter: n = seen.total(), t = len(seen), and seen[letter] is 0 for a letter that it does not have.",
        "p = (seen[letter] + t * p) / (n + t), if n + t is not 0; else p stays.",
    ],
    tolerance=Tolerance(2e-6, 1e-9),  # float32
)


ORDER = "You go from the most special context to the most general, which then decides. Go the other way."
RESET = "An unknown context wipes out what the contexts before it said. It changes nothing."
TOTAL = "t is how many *different* letters followed the context, not how often letters did: that is n."
mixed.variant(context_by_context)
mixed.slips(
    context_by_context,
    {
        "for seen in counts → for seen in counts[::-1]": ORDER,
        "len(seen) → sum(seen.values())": TOTAL,
        "n, t = sum(seen.values()), len(seen) → n, t = len(seen), sum(seen.values())": "n and t are swapped: n is how "
        "often anything followed, t how many different letters did.",
        "t * p) / (n + t) → t / 128) / (n + t)": "Each of your contexts is mixed with 1/128, so only the last one "
        "counts. Mix it with the p of the contexts before it.",
        "(seen[letter] + t * p) / → seen[letter] + t * p /": "You divide only t p by n + t. Divide the count, too.",
        "if n > 0 → if seen[letter]": "You skip a context in which the letter never came. It makes the letter rarer: "
        "skip only contexts that were never seen.",
        "len(seen) → 128": "You take 128 for t. It is how many different letters followed *this* context.",
        "/ (n + t) → / (n + t)\n        else:\n            p = 1 / 128": RESET,
        "/ (n + t) → / (n + t)\n        else:\n            break": "You stop at the first unknown context. Skip only "
        "this one: later ones may be known.",
        "if n > 0 → if True": "You divide 0 by 0 for an unknown context. It changes nothing.",
        "1 / 128 → 0.0": "You begin with 0, so a letter that never came is impossible again. Begin with 1/128.",
        "(seen[letter] + t * p) / (n + t) → seen[letter] / n": "These are plain counts of the last known context. Let "
        "the more general ones help out.",
        "(seen[letter] + t * p) / (n + t) → (seen[letter] + 1) / (n + 128)": "You add one to every count. Here general "
        "contexts help out.",
        "/ (n + t) → / n": "Your probabilities sum to more than one: divide by n + t.",
        "+ t * p → + p": "The general context gets the weight 1. Its weight is t, the number of different letters.",
        "len(seen) → 1": "Your t is 1 for every context. It is how many different letters followed this one.",
        "for seen in counts → for seen in counts[-1:]": "You use the last counter alone, mixed with 1/128. Go through "
        "all of them, each mixed with the p before it.",
        "n, t = sum(seen.values()), len(seen) → n, t = sum(seen.values()), len(counts[0])": "You use one t for all "
        "contexts. Each has its own: how many different letters followed it.",
    },
)
