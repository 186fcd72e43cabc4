"""Notebook 17, inference: from choosing a token to serving many texts at once."""
