"""Notebook 14: `exercises` and `figures`."""
