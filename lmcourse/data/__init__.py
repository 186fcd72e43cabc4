"""Corpora, tokenizers, token files and data loaders: from text to batches of tokens.

Read `corpora` first (where text comes from; `grammar` makes one whose entropy is known), then `tokenizers`, then
`token_file`, `window_order` and `loader`.
"""
