"""Using a model: remember what it has read, choose the next token, go on.

Read `sampling` first, then `generate`; `reader`, `cache` and `slots` say how earlier tokens are kept, `beam` searches
for the likeliest text; `settled` and `compiled` make a decoding step fast.
"""
