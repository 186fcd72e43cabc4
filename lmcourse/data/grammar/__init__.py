"""A language of our own, whose entropy is known exactly: what no model of it can beat.

`rules` is the machinery (any grammar of a certain form, its texts, their probabilities, its entropy), `stories` the
language that the course trains on, `words` its words.
"""

from __future__ import annotations

from lmcourse.data.grammar.rules import Grammar, Rule
from lmcourse.data.grammar.stories import entropy_per_sentence, story_grammar

__all__ = ["Grammar", "Rule", "entropy_per_sentence", "story_grammar"]
