"""Predicted beside measured, on the machine before you: `bench` runs a model, `steps` knows its two kinds of work."""
