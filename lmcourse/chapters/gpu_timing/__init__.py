"""Notebook 19: `exercises` and `figures`."""
