"""The open task: what the next letter of a story depends on."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from lmcourse.chapters.language_models import story_contexts as task
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.open_task import Band, OpenTask


def start(past: str) -> list[Any]:
    return [past[len(past) - k :] for k in (0, 1, 2, 3, 6, 12) if k <= len(past)]


COST, GAIN = "nats per byte", "less than the start"

contexts = Exercise(
    "contexts",
    points=5,
    minutes=16,
    difficulty=3,
    reference=start,
    seconds=60.0,
    cases=[case("fifty stories, three times", seeds=[0, 1, 2])],
    hidden_cases=lambda _: [case("other stories", seeds=[3, 4, 5])],
    hints=[
        "Read the dearest lines of the bill. What in the story decides such a piece, and how far back is it?",
        '`past[past.rfind("\\n") + 1 :]` is the paragraph so far. A key may be a tuple of a name and what you compute '
        "from it.",
        "A key that is too special was never seen. A key that tells apart what is alike halves its counts. Your cell "
        "prints which pieces became dearer: leave the key out where they are written.",
    ],
    forbid=["sys", "inspect", "gc", "traceback", "random"],
    task=OpenTask(
        inspect=task.inspect_contexts,
        measure=task.measure_contexts,
        baseline={
            "the start": {COST: 0.381, GAIN: 0.0},
            "the start, counted in 500 stories": {COST: 0.302, GAIN: 0.080},
            "our best": {COST: 0.282, GAIN: 0.099},
        },
        finish={GAIN: 0.05},
        bands=[
            Band(1, "a list of keys, the same for the same story so far"),
            Band(1, at_least={GAIN: 0.008}),
            Band(1, at_least={GAIN: 0.036}),
            Band(2, at_least={GAIN: 0.05}),
        ],
        digits=3,
    ),
)

contexts.idea(1)(start)


@contexts.idea(5)
def the_place_and_the_hero(past: str) -> list[Any]:
    keys: list[Any] = [past[len(past) - k :] for k in (0, 1, 2, 3, 6, 12) if k <= len(past)]
    paragraph = past[past.rfind("\n") + 1 :]
    sentence = paragraph[paragraph.rfind(".") + 1 :]
    place = re.search(r"is (\w+ the \w+)\.", paragraph)
    if place and not sentence.startswith(" Now"):
        keys += [(place[1], key) for key in keys[1:]]
    if sentence.startswith(" So ") and " " not in sentence[4:]:
        keys.append(("hero", paragraph.split(" ")[0], sentence))
    return keys


_HERO = 'keys.append(("hero", paragraph.split(" ")[0], sentence)) → '
_NO_PLACE = "keys += [(place[1], key) for key in keys[1:]] → pass"
contexts.edited_ideas(
    the_place_and_the_hero,
    {
        "the hero alone": (2, _NO_PLACE),
        "the place but not in sums": (3, f"{_HERO}pass"),
    },
)

contexts.slips(
    the_place_and_the_hero,
    {
        '("hero", paragraph.split(" ")[0], sentence) → paragraph[len(sentence) - 4 :][:1]': task.SHARED.format("E"),
        "return keys → return keys[::-1]": task.ORDER,
        "[past[len(past) - k :] for k in (0, 1, 2, 3, 6, 12) if k <= len(past)] → [past[-k:] for k in range(8)]"
        "": task.WHOLE,
        "return keys → return tuple(keys)": task.NO_LIST,
        "return keys → return [list(keys)]": task.NO_KEY,
        "return keys → return [*keys, *keys]": task.TOO_MANY,
        "(past: str) → (past: str, before: list = []) ;; return keys → before.append(past)\n    return [*keys, "
        '("calls", len(before))]': task.STATE,
    },
)


@contexts.idea(5)
def the_verb_that_is_due(past: str) -> list[Any]:
    keys: list[Any] = [past[len(past) - k :] for k in (0, 1, 2, 3, 6, 12) if k <= len(past)]
    paragraph = past[past.rfind("\n") + 1 :]
    sentence = paragraph[paragraph.rfind(".") + 1 :].lower()
    place = re.search(r"is (\w+ the \w+)\.", paragraph)
    if place and sentence and not sentence.startswith((" now", " so ")):
        *done, part = sentence.split(" ")
        waiting: list[str] = []
        for before, word in pairwise(done):
            if before in ("one", "many"):
                waiting.append(before)
            elif word not in ("one", "many", "that"):
                waiting.pop()
        after = done[-1] if done[-1:] and done[-1] in ("one", "many", "that") else "word"
        keys = [*keys[:2], (after, part), (after, *waiting[-1:], part), (place[1], after, *waiting[-1:], part)]
    return keys
