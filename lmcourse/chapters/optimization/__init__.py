"""Notebook 04: how far to step, from gradient descent to AdamW and schedules."""
