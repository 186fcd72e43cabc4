"""Notebook 05: language models before neural networks, and the best possible loss."""
