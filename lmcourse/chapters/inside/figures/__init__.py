"""Figures of notebook 23: odds along a paragraph, who writes them, where they are restored, what a circuit keeps."""

from lmcourse.chapters.inside.figures.circuits import circuit_parts
from lmcourse.chapters.inside.figures.measured import restored_map, written_odds
from lmcourse.chapters.inside.figures.odds import odds_along
from lmcourse.chapters.inside.figures.toy import crowded_features

__all__ = ["circuit_parts", "crowded_features", "odds_along", "restored_map", "written_odds"]
