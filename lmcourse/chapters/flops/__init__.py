"""Notebook 15, FLOPs: of a product, a layer, a model, its training and generation; GPU hours and MFU."""
