"""Corpora, tokenizers, token files and data loaders: from text to batches of tokens.

Read `corpora` first (the sources of text; `grammar` makes a corpus with known entropy), then `tokenizers`, then
`token_file`, `window_order` and `loader`.
"""
