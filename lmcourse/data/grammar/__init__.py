"""A synthetic language from a probabilistic grammar. Its exact entropy is known: a lower bound on any loss.

`rules` has the general part: grammars of a certain form, their texts, probabilities and entropy. `stories` has the
language that the course trains on.
"""

from __future__ import annotations

from lmcourse.data.grammar.rules import Grammar as Grammar
from lmcourse.data.grammar.rules import Production as Production
from lmcourse.data.grammar.stories import story_grammar as story_grammar
