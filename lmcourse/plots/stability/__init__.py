"""Figures of notebook 16: softmax under attack, gradients that grow, runs side by side."""
