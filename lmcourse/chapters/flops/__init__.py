"""Notebook 15: `exercises` and `figures`."""
