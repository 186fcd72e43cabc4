"""Figures of notebook 15: where FLOPs go, and how long they take."""
