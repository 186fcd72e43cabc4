"""Notebook 11: `exercises` and `figures`."""
