"""Notebook 08, attention: masks, heads, caches, shared and latent keys, a backward pass by blocks."""
