"""Notebook 01: `exercises` and `figures`."""
