"""The figures of notebook 20, and what its text takes from the chapter: the recipe, what was measured, the claims."""

from lmcourse.chapters.capstone.claims import show_claims
from lmcourse.chapters.capstone.figures.budget import budget_card, iso_flop, law_check
from lmcourse.chapters.capstone.figures.defence import (
    consensus,
    predicted_and_measured,
    rate_by_width,
    slips_by_source,
)
from lmcourse.chapters.capstone.measured import ENTROPY, measured_loss, measured_runs
from lmcourse.chapters.capstone.recipe import BATCH, LENGTH, WIDTHS, Design, texts, train
from lmcourse.chapters.capstone.sources import CLAIMS, PAPERS

__all__ = [
    "BATCH",
    "CLAIMS",
    "ENTROPY",
    "LENGTH",
    "PAPERS",
    "WIDTHS",
    "Design",
    "budget_card",
    "consensus",
    "iso_flop",
    "law_check",
    "measured_loss",
    "measured_runs",
    "predicted_and_measured",
    "rate_by_width",
    "show_claims",
    "slips_by_source",
    "texts",
    "train",
]
