"""Notebook 09, positions: sinusoids, learned and relative ones, ALiBi, T5's buckets, RoPE."""
