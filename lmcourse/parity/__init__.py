"""The proof that the model is right: every family beside `transformers`, number by number.

`python -m lmcourse.parity` prints the table. It needs the `parity` extra.
"""
