"""The words of the stories. The commonest stands first: the word of rank r is drawn with a probability ∝ 1/r (Zipf)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

HEROES = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Hugo")


@dataclass(frozen=True)
class Topic:
    """A place and the words that are used only there.

    Attributes:
        place: what a paragraph opens with.
        nouns: in the singular; the plural adds an s.
        intransitive_verbs: verbs without an object, in the plural; the singular adds an s.
        transitive_verbs: verbs with an object, in the plural; the singular adds an s.
    """

    place: str
    nouns: Sequence[str]
    intransitive_verbs: Sequence[str]
    transitive_verbs: Sequence[str]


TOPICS: Mapping[str, Topic] = {
    "sea": Topic(
        "at the sea",
        ("sailor", "gull", "whale", "crab", "diver", "seal"),
        ("swim", "float", "sink", "drift"),
        ("hear", "follow", "greet"),
    ),
    "wood": Topic(
        "in the wood",
        ("hunter", "bear", "owl", "badger", "beetle", "squirrel"),
        ("sleep", "hide", "wait", "climb"),
        ("chase", "fear", "see"),
    ),
    "town": Topic(
        "in the town",
        ("baker", "driver", "student", "singer", "painter", "judge"),
        ("work", "talk", "dance", "rest"),
        ("know", "help", "pay"),
    ),
    "space": Topic(
        "among the stars",
        ("robot", "comet", "pilot", "planet", "rocket", "moon"),
        ("turn", "shine", "land", "glow"),
        ("guide", "signal", "orbit"),
    ),
}
