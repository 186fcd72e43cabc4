"""The exercise on texts that expose three n-gram models with wrong counts."""

from __future__ import annotations

from lmcourse.chapters.language_models.judged import MODELS
from lmcourse.exercises.cases import script
from lmcourse.exercises.exercise import Exercise


def shortest_texts() -> dict[str, tuple[str, str]]:
    return {"model_a": ("xyxzx", "x"), "model_b": ("aaab", "a"), "model_c": ("ab", "")}


_IMPORT = "from lmcourse.chapters.language_models.judged import exposed"

faults = Exercise(
    "faults",
    points=2,
    minutes=6,
    difficulty=2,
    reference=shortest_texts,
    cases=[script(name, f"{_IMPORT}\nexposed(faults(), {name!r})") for name in MODELS],
    hidden_cases=lambda _: [script("all three", f"{_IMPORT}\n[exposed(faults(), name) for name in {list(MODELS)}]")],
    hints=[
        "model_a divides by how often the context occurs. Is there a letter after each of these places?",
        "re.findall continues after the match. Which letters can then never start a context?",
        "pairwise gives each letter with the letter before it. Which letter of a text has no letter before it?",
    ],
)


faults.variant(shortest_texts)
faults.slips(
    shortest_texts,
    {
        '("xyxzx", "x") → ("x", "xyxzx") ;; ("aaab", "a") → ("a", "aaab") ;; ("ab", "") → ("", "ab")': "Text and "
        "context are swapped: the text comes first.",
        '("xyxzx", "x") → ("abac", "a") ;; ("aaab", "a") → ("abac", "a") ;; ("ab", "") → ("abac", "a")': "All three "
        "models answer your examples correctly. Try the ends of the text, and repeated letters.",
        '"aaab" → "ababab"': "model_b is right about your text. `re.findall` searches for the next match after the "
        "last one. Choose a text where it misses some, so that the fractions change.",
        '("xyxzx", "x") → ("aaa", "aa")': "model_a is right about your text. It divides by `text.count(context)`: "
        "choose a text where that counts one occurrence that no letter follows.",
        '("xyxzx", "x") → ("aabab", "a") ;; ("aaab", "a") → ("xyxzx", "x")': "model_a and model_b are right about your "
        "texts. One reads the end of a text wrongly, the other a context that follows itself: are the two swapped?",
        ', "model_c": ("ab", "") → ': "model_c is missing from your dict. Give a text and a context for each model.",
        '("xyxzx", "x") → ("aba", "a") ;; ("aaab", "a") → ("aba", "a") ;; ("ab", "") → ("aba", "a")': "Only model_a is "
        "wrong about your texts. The other two read the end of a text correctly, and have other faults.",
        '("ab", "") → ("abcab", "a")': "Your text does not show the fault of model_c, which is correct after any "
        "letter. Try the empty context, in a text of at least two different letters.",
    },
)


@faults.variant
def overlaps_for_two() -> dict[str, list[str]]:
    return {"model_a": ["aaaab", "aa"], "model_b": ["aaaab", "aa"], "model_c": ["aabbc", ""]}
