"""The exercise on the overlap of a test with a training text."""

from __future__ import annotations

import re  # noqa: F401 - slips use it
from random import Random

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise


def _overlap(passages: list[str], training: list[str], n: int) -> list[float]:
    """Look for each n-gram as words between spaces."""
    documents = [f" {' '.join(document.split())} " for document in training]
    found = []
    for passage in passages:
        words = passage.split()
        grams = {" ".join(words[i : i + n]) for i in range(len(words)) if i + n <= len(words)}
        seen = sum(any(f" {gram} " in document for document in documents) for gram in grams)
        found.append(seen / len(grams) if grams else 0.0)
    return found


_TRAINING = ["the owl sees a bear .", "a bear sleeps in the wood ."]


def _hidden(random: Random) -> list[Case]:
    def text(words: int) -> str:
        return " ".join(random.choice("abc") for _ in range(words))

    return [
        *(case("other texts", [text(9), text(6)], [text(8), text(12)], n) for n in (2, 3)),
        case("other texts", ["x y\nz  x y"], ["x\ty z"], 2),
        case("single words", ["a bear sees the owl"], _TRAINING, 1),
        case("single words", ["an owl"], _TRAINING, 1),
        case("short passages", ["", "owl", "the owl"], _TRAINING, 3),
        case("short passages", ["the owl sees"], ["owl"], 3),
        case("no training text", ["the owl sees"], [], 2),
    ]


overlap = Exercise(
    "overlap",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_overlap,
    cases=[
        case("two passages, three words", ["the owl sees a fish .", "a bear sleeps in the town ."], _TRAINING, 3),
        case("two words", ["the owl sleeps in a bear ."], _TRAINING, 2),
        case("words that come again", ["a bear a bear a bear a fox"], _TRAINING, 2),
        case("across two documents", ["a bear . a bear sleeps"], _TRAINING, 3),
        case("whole words", ["a bear sleep in the woods ."], _TRAINING, 2),
        case("single words", ["the fox sees the owl"], _TRAINING, 1),
        case(
            "spaces, capitals and glue", ["x y\nz  x y", "The owl", "A b", "ab cd"], ["x\ty z a b", "the owl a bcd"], 2
        ),
        edge(case("shorter than n, or empty", ["the owl", ""], _TRAINING, 3)),
        edge(case("no training text", ["the owl sees"], [], 2)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Write a small function first: the set of n-grams of one text. A text of m words has m − n + 1 of them.",
        "Make the set of the training text once, document by document, and not once for each passage.",
        "len(grams & known) / len(grams), with tuples of words as n-grams, and 0.0 if there are none.",
    ],
)


@overlap.variant
def with_sets(passages: list[str], training: list[str], n: int) -> list[float]:
    def grams_of(text: str) -> set[tuple[str, ...]]:
        words = text.split()
        return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}

    known = set().union(*(grams_of(document) for document in training))
    each = [grams_of(passage) for passage in passages]
    return [len(grams & known) / len(grams) if grams else 0.0 for grams in each]


_ACROSS = "You join the documents, so n-grams run from one into the next. No document has them."
_REPEATED = "You count an n-gram as often as it comes. Count each different one once."

overlap.slips(
    with_sets,
    {
        "len(grams & known) / len(grams) → len(grams & known) / max(1, len(known))": "You divide by the n-grams of the "
        "training text, so a longer one lowers the overlap. Divide by those of the passage.",
        "len(grams & known) / len(grams) → len(grams & known) / len(grams | known)": "That is the Jaccard similarity. "
        "Divide by the passage's n-grams alone.",
        "- n + 1)} → - n)}": "You leave out the last n-gram: a text of m words has m − n + 1.",
        "range(len(words) - n + 1) → range(len(words))": "Your last n-grams are shorter than n words.",
        "*(grams_of(document) for document in training) → grams_of(' '.join(training))": _ACROSS,
        "each = [grams_of(passage) for passage in passages] → each = [[tuple(p.split()[i : i + n]) for i in "
        "range(len(p.split()) - n + 1)] for p in passages] ;; len(grams & known) → sum(g in known "
        "for g in grams)": _REPEATED,
        "text.split() → text.lower().split()": "You change capital letters. Words are what `split()` gives.",
        "text.split() → re.findall(r'\\w+', text)": "You drop full stops. They are words: use `split()`.",
        "text.split() → text.split(' ')": "You cut at single spaces. `split()` also cuts at tabs, line breaks and "
        "several spaces.",
        "tuple(words[i : i + n]) → ''.join(words[i : i + n])": "You glue words together, so “ab cd” equals “a bcd”. "
        "Compare tuples.",
        "tuple(words[i : i + n]) → tuple(sorted(words[i : i + n]))": "You forget the order of the words in an n-gram. "
        "It counts.",
        "words = text.split() → words = text": "Your n-grams are of letters. They are of words.",
        "range(len(words) - n + 1) → range(0, len(words) - n + 1, n)": "Your n-grams do not overlap. One begins at "
        "every word.",
        "len(grams & known) / len(grams) → float(bool(grams & known))": "You say 1 for a single shared n-gram. Return "
        "the fraction of them.",
        "len(grams & known) → len(grams - known)": "That is the new part of the passage. Return the known one.",
        "len(grams & known) / len(grams) → len(grams & known)": "You count the shared n-grams. Divide by those of the "
        "passage.",
        "len(grams & known) / → sum(any(' '.join(gram) in text for text in training) for gram in grams) /": "You look "
        "for the letters of an n-gram, so “the owl” is found in “the owls”. Compare whole words.",
        "len(grams & known) / len(grams) → max((len(grams & grams_of(text)) for text in training), default=0) / "
        "len(grams)": "You look in one document at a time and keep the best. An n-gram may come from any of them.",
        " if grams else 0.0 → ": "A passage shorter than n words has no n-gram: its overlap is 0, not 0/0.",
        " if grams else 0.0 → if grams else 1.0": "A passage shorter than n words shares nothing: 0.",
    },
)
