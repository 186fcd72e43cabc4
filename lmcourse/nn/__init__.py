"""The layers of a transformer, one idea a file.

Read them in the order of a token's way: `embedding`, `norm`, `attention` (with `rotary`, `bias`, `shaw`, `sight` and
`attend`), `feed_forward`, `block`.
"""
