"""Figures of notebook 04."""
