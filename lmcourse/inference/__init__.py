"""Generate text: prefill, sample the next token, and decode with a KV cache.

Read `sampling` first, then `generate`; `decoding_session`, `cache` and `cache_layouts` keep earlier tokens; `beam`
searches for the most likely text; `static_cache` and `compiled` make a decoding step fast.
"""
