"""The topic and role of each word of the stories: the truth to compare learned word vectors with."""

from __future__ import annotations

from lmcourse.data.grammar.stories import TOPICS


def word_roles() -> dict[str, tuple[str, str]]:
    """Every noun and verb form → its topic and its role: "bear" → ("wood", "noun"), "fears" → ("wood", "meets").

    The roles are "noun" and "nouns", and for verbs without and with an object "acts", "act", "meets" and "meet": those
    with an s belong to a noun in the singular.
    """
    roles: dict[str, tuple[str, str]] = {}
    for name, topic in TOPICS.items():
        kinds = (
            ("noun", "nouns", topic.nouns),
            ("act", "acts", topic.intransitive_verbs),
            ("meet", "meets", topic.transitive_verbs),
        )
        for bare, with_s, words in kinds:
            for word in words:
                roles |= {word: (name, bare), f"{word}s": (name, with_s)}
    return roles
