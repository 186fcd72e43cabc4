"""Notebook 04: the size of a step, from gradient descent to AdamW and schedules."""
