"""A synthetic language from a probabilistic grammar, whose entropy is known exactly: a lower bound on any loss.

`rules` is the machinery (any grammar of a certain form, its texts, their probabilities, its entropy), `stories` the
language that the course trains on, `words` its words.
"""

from __future__ import annotations

from lmcourse.data.grammar.rules import Grammar, Production
from lmcourse.data.grammar.stories import entropy_per_sentence, story_grammar

__all__ = ["Grammar", "Production", "entropy_per_sentence", "story_grammar"]
