"""Notebook 08, attention: masks, heads, grouped queries, the KV cache."""
