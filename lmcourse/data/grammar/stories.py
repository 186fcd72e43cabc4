"""The course's own language: little stories that are hard to predict for well-defined reasons.

    Clara is in the wood. One bear that many owls fear sleeps. Now 7 is (2 + (4 + 1)). So Clara goes home.

- A paragraph has a hero, who is named at its beginning and at its end, and a topic that determines its words. So a
  model must look back over whole sentences.
- Verbs agree with their subject, even across any number of nested relative clauses.
- Sums are true, and every bracket is closed.

`story_grammar().entropy_per_byte` is the loss of the best possible model. All text is ASCII, so a byte is a character.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from lmcourse.data.grammar.rules import Grammar, Production

HEROES = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Hugo")


@dataclass(frozen=True)
class Topic:
    """A place in a paragraph's first sentence, and the words that are used only there.

    Nouns are in the singular, the plural adds an s; verbs are in the plural, the singular adds an s.
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


NUMBERS = {"one": "s", "many": ""}
"""Words that determine the number of a noun, each with the ending of the noun's verb."""

PARAGRAPH_END_PROBABILITY, STORY_END_PROBABILITY, SUM_PROBABILITY = 0.2, 0.25, 0.15
"""The probabilities that a paragraph ends after a sentence, that a story ends after a paragraph, and that a sum
replaces a sentence.
"""

RELATIVE_CLAUSE_PROBABILITY = 0.25
"""The probability that a noun gets a relative clause. Then two nouns need verbs, so a probability of ½ or more would
give texts of infinite expected length."""

NESTED_SUM_PROBABILITY = 0.5
"""The probability that a sum opens another bracket."""


@cache
def story_grammar() -> Grammar:
    """Return the grammar of the stories. A symbol's name has a part of the text and what must be remembered for it."""
    rules: dict[str, list[Production]] = {
        "story": _heroes(1.0),
        "next": [Production(STORY_END_PROBABILITY, "\n"), *_heroes(1 - STORY_END_PROBABILITY)],
        "stop": [Production(1.0, ".")],
        "close": [Production(1.0, ")")],
    }
    for hero in HEROES:
        rules[f"opening {hero}"] = [
            Production(1 / len(TOPICS), f" is {topic.place}.", (f"body {hero} {name}",))
            for name, topic in TOPICS.items()
        ]
        rules |= {f"body {hero} {topic}": list(_body(hero, topic)) for topic in TOPICS}
    for topic in TOPICS:
        rules |= _sentence(topic)
    rules |= {f"sum {value}": list(_sum(value)) for value in range(10)}
    return Grammar(rules, "story")


def _heroes(probability: float) -> list[Production]:
    return [Production(p * probability, hero, (f"opening {hero}",)) for hero, p in _ranked(HEROES)]


def _body(hero: str, topic: str) -> Iterator[Production]:
    """Yield the rules for the rest of a paragraph: its end, or one more sentence and the rest."""
    rest = f"body {hero} {topic}"
    yield Production(PARAGRAPH_END_PROBABILITY, f" So {hero} goes home.\n", ("next",))
    for value in range(10):
        yield Production(SUM_PROBABILITY / 10, f" Now {value} is ", (f"sum {value}", "stop", rest))
    for number in NUMBERS:
        then = (f"noun {topic} {number}", f"verb {topic} {number}", "stop", rest)
        yield Production(
            (1 - PARAGRAPH_END_PROBABILITY - SUM_PROBABILITY) / len(NUMBERS), f" {number.capitalize()}", then
        )


def _sentence(topic: str) -> dict[str, list[Production]]:
    words = TOPICS[topic]
    rules: dict[str, list[Production]] = {
        f"object {topic}": [
            Production(1 / len(NUMBERS), f" {number}", (f"noun {topic} {number}",)) for number in NUMBERS
        ]
    }
    for number, ending in NUMBERS.items():
        plural = "" if ending else "s"
        rules[f"noun {topic} {number}"] = [Production(p, f" {noun}{plural}") for noun, p in _ranked(words.nouns)]
        acts = [Production(p, f" {verb}{ending}") for verb, p in _ranked(words.intransitive_verbs)]
        meets = [Production(p, f" {verb}{ending}") for verb, p in _ranked(words.transitive_verbs)]
        meets_whom = [Production(rule.probability, rule.text, (f"object {topic}",)) for rule in meets]
        rules[f"verb {topic} {number}"] = _scaled((1 - RELATIVE_CLAUSE_PROBABILITY) / 2, acts + meets_whom) + _clause(
            topic, number, "verb"
        )
        # Inside a relative clause the object is the noun before it: "many owls that one bear fears".
        rules[f"meets {topic} {number}"] = _scaled(1 - RELATIVE_CLAUSE_PROBABILITY, meets) + _clause(
            topic, number, "meets"
        )
    return rules


def _clause(topic: str, number: str, waiting: str) -> list[Production]:
    """Return the rules for a relative clause: its noun and verb come first, then the verb of the main clause."""
    return [
        Production(
            RELATIVE_CLAUSE_PROBABILITY / len(NUMBERS),
            f" that {inner}",
            (f"noun {topic} {inner}", f"meets {topic} {inner}", f"{waiting} {topic} {number}"),
        )
        for inner in NUMBERS
    ]


def _sum(value: int) -> Iterator[Production]:
    """Yield the rules for a value: the number itself, or a bracket with a part of it and a sum for the rest."""
    yield Production(1 - NESTED_SUM_PROBABILITY if value else 1.0, str(value))
    for part in range(1, value + 1):
        yield Production(NESTED_SUM_PROBABILITY / value, f"({part} + ", (f"sum {value - part}", "close"))


def _ranked(words: Sequence[str]) -> list[tuple[str, float]]:
    total = sum(1 / rank for rank in range(1, len(words) + 1))
    return [(word, 1 / rank / total) for rank, word in enumerate(words, start=1)]


def _scaled(factor: float, rules: list[Production]) -> list[Production]:
    return [Production(factor * rule.probability, rule.text, rule.next_symbols) for rule in rules]
