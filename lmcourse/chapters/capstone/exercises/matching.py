"""The exercises on who wrote what, and on names as a speech recogniser heard them."""

from __future__ import annotations

import re

from lmcourse.chapters.capstone.sources import CLAIMS, HEARD
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain, format_value

Names = dict[str, str]

PAPER_OF = {
    "a": "shazeer-2020",
    "b": "su-2021",
    "c": "xiong-2020",
    "d": "ivanov-2021",
    "e": "press-2022",
    "f": "child-2019",
    "g": "ainslie-2023",
    "h": "kaplan-2020",
    "i": "hoffmann-2022",
    "j": "dangelo-2024",
    "k": "narang-2021",
    "l": "korthikanti-2022",
}

NAME_OF = {
    "POM": "PaLM",
    "P5": "T5",
    "Command Day": "Command A",
    "Small LM": "SmolLM",
    "5.4": "Phi-4",
    "Quent": "Qwen",
    "Degani": "Dehghani",
    "Edith Feekes": "Idefics",
    "low jets": "logits",
    "emit bias": "omit bias",
    "gamma": "Gemma",
    "Cellu": "SeLU",
}

ALSO_RIGHT = {"gamma": "Gemma 2", "emit bias": "omit bias in all layers"}
"""The same names with what stood beside them."""


def _plain(text: Plain) -> str:
    """Letters and digits alone: spelling with hyphens, blanks or capitals is a matter of taste."""
    return re.sub("[^a-z0-9]", "", text.lower()) if isinstance(text, str) else ""


def _entry(asked: Case, value: Plain) -> Plain:
    """Describe an answer's entry for the key that names the case: whether it is right, never the right name."""
    if not isinstance(value, dict):
        return "a dict is asked for"
    given = value.get(asked.name)
    if not isinstance(given, str):
        return f"{format_value(given)} is no name"
    right = (PAPER_OF | NAME_OF)[asked.name]
    in_full = ALSO_RIGHT.get(asked.name, right)
    return f"{asked.name} is right" if _plain(given) in map(_plain, (right, in_full)) else _plain(given)


papers = Exercise(
    "papers",
    points=3,
    minutes=10,
    difficulty=1,
    reference=lambda: dict(PAPER_OF),
    cases=[case(key) for key in CLAIMS],
    hints=[
        "Begin with those of which you used the formula: ALiBi, RoPE, grouped queries, 6ND.",
        "Two authors come up with two years or more. The lecture has a few years wrong: 10 and 15 name the right ones.",
    ],
    view=_entry,
)

names = Exercise(
    "names",
    points=2,
    minutes=6,
    difficulty=1,
    reference=lambda: dict(NAME_OF),
    cases=[case(heard) for heard in HEARD],
    hints=[
        "Say them aloud, fast.",
        "Eight are names of models, one is an activation, one a person, and two are words of the trade.",
    ],
    view=_entry,
)


def _paper_slip(sentence: str, changes: Names) -> None:
    """A wrong answer that differs from the right one in these entries."""

    def answer() -> Names:
        return PAPER_OF | changes

    answer.__name__ = "_".join(changes.values()).replace("-", "_")
    papers.misconception(sentence)(answer)


_paper_slip("It appeared in 2020 and at MLSys in 2021: the lecture's 2023 is a slip.", {"d": "ivanov-2023"})
_paper_slip("The large comparison is of 2021: the lecture's 2020 is a slip.", {"k": "narang-2020"})
_paper_slip(
    "6 FLOPs a parameter are Kaplan's, 20 tokens a parameter are Hoffmann's.",
    {"h": "hoffmann-2022", "i": "kaplan-2020"},
)
_paper_slip(
    "One key head for all was Shazeer's, in 2019. Groups, and the conversion, are Ainslie's.", {"g": "shazeer-2019"}
)
_paper_slip("GPT-J made rotation known. Su and others invented it.", {"b": "wang-2021"})
_paper_slip(
    "In 2017 the norm stood behind the addition. What it does in front was studied later.", {"c": "vaswani-2017"}
)
_paper_slip("ALiBi is the penalty that grows with distance, RoPE the rotation.", {"b": "press-2022", "e": "su-2021"})


def _name_slip(sentence: str, changes: Names) -> None:
    """A wrong answer that differs from the right one in these entries."""

    def answer() -> Names:
        return NAME_OF | changes

    answer.__name__ = "_".join(changes.values()).replace("-", "_").replace(" ", "_").replace(".", "_")
    names.misconception(sentence)(answer)


_name_slip("It begins with an s: the scaled exponential linear unit, not the Gaussian one.", {"Cellu": "GELU"})
_name_slip("Read the point as nothing and the 5 as “fie”: it is no GPT.", {"5.4": "GPT-4"})
_name_slip("A P for a T, and no GPT at all.", {"P5": "GPT-5"})
_name_slip("Cohere is who made it. What is it called?", {"Command Day": "Cohere"})
_name_slip("Not ideas: a model that sees pictures, named after the dog of Obelix.", {"Edith Feekes": "ideas"})
_name_slip("They are what a head returns before the softmax.", {"low jets": "low gets"})
_name_slip("A model made smaller, whose name is misspelt on purpose.", {"Small LM": "small language model"})


@names.misconception("These are the names as they were heard. What was said?")
def as_heard() -> Names:
    return {heard: heard for heard in HEARD}
