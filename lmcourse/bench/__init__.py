"""Predict and measure speed on this machine: of models, training and decoding steps, and optimizations."""
