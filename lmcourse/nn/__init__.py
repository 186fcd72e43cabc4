"""The layers of a transformer, one idea a file.

Read them in the order of a forward pass: `embedding`, `norm`, `attention` (with `attend` and `attention_pattern`; for
positions, `rotary`, `position_bias` and `relative_position_vectors`), `feed_forward`, `block`.
"""
