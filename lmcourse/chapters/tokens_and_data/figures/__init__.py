"""Figures of notebook 07: words, tokens as coloured boxes, prices, positions, timelines."""

from lmcourse.chapters.tokens_and_data.figures.boxes import merge_steps, token_colours
from lmcourse.chapters.tokens_and_data.figures.losses import loss_by_position, output_rows
from lmcourse.chapters.tokens_and_data.figures.prices import sentence_price
from lmcourse.chapters.tokens_and_data.figures.timeline import prefetch_timeline
from lmcourse.chapters.tokens_and_data.figures.words import new_words

__all__ = [
    "loss_by_position",
    "merge_steps",
    "new_words",
    "output_rows",
    "prefetch_timeline",
    "sentence_price",
    "token_colours",
]
