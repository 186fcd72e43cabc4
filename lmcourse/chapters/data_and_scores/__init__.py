"""Notebook 21: scores of a model and their errors, near copies, and a training text chosen from a dirty pool."""
