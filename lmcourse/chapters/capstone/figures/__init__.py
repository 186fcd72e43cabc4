"""The figures of notebook 20, and the parts of the chapter that its text uses: the recipe, the measured runs, the
claims."""

from lmcourse.chapters.capstone.after import after, recipe_model
from lmcourse.chapters.capstone.claims import show_claims
from lmcourse.chapters.capstone.figures.budget import budget_card, iso_flop, law_check, rate_by_width
from lmcourse.chapters.capstone.figures.law import EXPONENTS, Law, fitted_law, nearest_times_trend, trend
from lmcourse.chapters.capstone.measured import ENTROPY, STEPS_BY_BATCH, small_runs
from lmcourse.chapters.capstone.recipe import (
    BATCH,
    BATCHES,
    DEPTHS,
    GIVEN,
    LENGTH,
    ORDER,
    SMALL_RECIPE,
    WIDTHS,
    Design,
    Purse,
    Recipe,
    hand_over,
    known_words,
    loss_on,
    texts,
    train,
    write,
)

__all__ = [
    "BATCH",
    "BATCHES",
    "DEPTHS",
    "ENTROPY",
    "EXPONENTS",
    "GIVEN",
    "LENGTH",
    "ORDER",
    "SMALL_RECIPE",
    "STEPS_BY_BATCH",
    "WIDTHS",
    "Design",
    "Law",
    "Purse",
    "Recipe",
    "after",
    "budget_card",
    "fitted_law",
    "hand_over",
    "iso_flop",
    "known_words",
    "law_check",
    "loss_on",
    "nearest_times_trend",
    "rate_by_width",
    "recipe_model",
    "show_claims",
    "small_runs",
    "texts",
    "train",
    "trend",
    "write",
]
