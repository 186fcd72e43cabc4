"""Predicted beside measured, on this machine: `bench` a model, `steps` its two kinds of work, `speedups` of a step."""
