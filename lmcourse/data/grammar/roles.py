"""The topic and role of each word of the stories, to compare with learned word vectors."""

from __future__ import annotations

from lmcourse.data.grammar.stories import TOPICS


def word_roles() -> dict[str, tuple[str, str]]:
    """Map each noun and verb form to its topic and role: "bear" → ("wood", "noun"), "fears" → ("wood", "meets").

    The roles are "noun" and "nouns" for nouns, "acts" and "act" for verbs without an object, and "meets" and "meet" for
    verbs with an object. "acts" and "meets" follow a noun in the singular.
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
