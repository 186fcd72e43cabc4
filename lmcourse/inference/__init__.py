"""Generating text: prefill, sample the next token, decode on with a KV cache.

Read `sampling` first, then `generate`; `decoding_session`, `cache` and `cache_layouts` say how earlier tokens are kept,
`beam` searches for the likeliest text; `static_cache` and `compiled` make a decoding step fast.
"""
