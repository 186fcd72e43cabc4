"""Notebook 05: language models before networks, and how good the best one could be."""
