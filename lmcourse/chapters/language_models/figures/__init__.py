"""Figures of notebook 05: distributions, prices, count models, and the tokens that a model reads."""

from lmcourse.chapters.language_models.figures.distributions import probability_tree, your_odds
from lmcourse.chapters.language_models.figures.grids import contexts_seen, similarity, work_grid
from lmcourse.chapters.language_models.figures.prices import cross_entropy_bars
from lmcourse.chapters.language_models.figures.stories import ngram_loss, token_surprise

__all__ = [
    "contexts_seen",
    "cross_entropy_bars",
    "ngram_loss",
    "probability_tree",
    "similarity",
    "token_surprise",
    "work_grid",
    "your_odds",
]
