"""Notebook 12, the whole transformer: from tokens to a loss, influence between tokens, initial loss, shapes of
models."""
