"""Parity checks: every model family against its implementation in `transformers`, logits and gradients.

`python -m lmcourse.parity` prints the table. It needs the `parity` extra.
"""
