"""A synthetic language from a probabilistic grammar, whose entropy is known exactly: a lower bound on any loss.

`rules` is the machinery (any grammar of a certain form, its texts, their probabilities, its entropy), `stories` the
language that the course trains on.
"""

from __future__ import annotations

from lmcourse.data.grammar.rules import Grammar, Production
from lmcourse.data.grammar.stories import story_grammar

__all__ = ["Grammar", "Production", "story_grammar"]
