"""Whole models: configurations, the transformer in its three forms, published models by name, and other libraries'
weights."""
