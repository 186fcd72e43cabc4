"""Notebook 23: cut, read and push the parts of a small model that reads stories."""
