"""Figures of notebook 17: choosing tokens, the time of a pass, batches and drafts."""

from lmcourse.chapters.inference.figures.choosing import BEGINNINGS, next_token, text_tree
from lmcourse.chapters.inference.figures.drafts import speculation
from lmcourse.chapters.inference.figures.serving import batch_timeline, decode_step, two_phases

__all__ = [
    "BEGINNINGS",
    "batch_timeline",
    "decode_step",
    "next_token",
    "speculation",
    "text_tree",
    "two_phases",
]
