"""The exercise on texts that expose three n-gram models with wrong counts."""

from __future__ import annotations

from lmcourse.chapters.language_models.judged import MODELS
from lmcourse.exercises.cases import script
from lmcourse.exercises.exercise import Exercise


def _faults() -> dict[str, tuple[str, str]]:
    return {"model_a": ("xyxzx", "x"), "model_b": ("aaab", "a"), "model_c": ("ab", "")}


_IMPORT = "from lmcourse.chapters.language_models.judged import exposed"

faults = Exercise(
    "faults",
    points=1,
    minutes=6,
    difficulty=2,
    reference=_faults,
    cases=[script(name, f"{_IMPORT}\nexposed(faults(), {name!r})") for name in MODELS],
    hidden_cases=lambda _: [script("all three", f"{_IMPORT}\n[exposed(faults(), name) for name in {list(MODELS)}]")],
    hints=[
        "model_a divides by how often the context occurs. Is there a letter after each of these places?",
        "re.findall continues after the match. Which letters can then never start a context?",
        "pairwise gives each letter with the letter before it. Which letter of a text has no letter before it?",
    ],
)


@faults.misconception("Text and context are swapped: the text comes first.")
def swapped() -> dict[str, tuple[str, str]]:
    return {name: (context, text) for name, (text, context) in _faults().items()}


@faults.misconception(
    "All three models answer your examples correctly. Try the ends of the text, and repeated letters."
)
def no_fault_shows() -> dict[str, tuple[str, str]]:
    return {"model_a": ("abac", "a"), "model_b": ("abac", "a"), "model_c": ("abac", "a")}


@faults.misconception(
    "model_b is right about your text. `re.findall` searches for the next match after the last one. Choose a text "
    "where it misses some, so that the fractions change."
)
def repeated_pairs() -> dict[str, tuple[str, str]]:
    return _faults() | {"model_b": ("ababab", "a")}


@faults.misconception(
    "Only model_a is wrong about your texts. The other two read the end of a text correctly, and have other faults."
)
def only_the_end() -> dict[str, tuple[str, str]]:
    return dict.fromkeys(_faults(), ("aba", "a"))


@faults.misconception(
    "Your text does not show the fault of model_c, which is correct after any letter. Try the empty context, in a text "
    "of at least two different letters."
)
def a_letter_before() -> dict[str, tuple[str, str]]:
    return _faults() | {"model_c": ("abcab", "a")}


@faults.variant
def other_texts() -> dict[str, tuple[str, str]]:
    return {"model_a": ("the cat sat", "t"), "model_b": ("banana nana", "ana"), "model_c": ("mississippi", "")}


@faults.variant
def short_texts() -> dict[str, tuple[str, str]]:
    return {"model_a": ("abcab", "ab"), "model_b": ("oooh", "o"), "model_c": ("aba", "")}


@faults.variant
def overlaps_for_two() -> dict[str, list[str]]:
    return {"model_a": ["aaaab", "aa"], "model_b": ["aaaab", "aa"], "model_c": ["aabbc", ""]}
