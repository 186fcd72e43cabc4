"""Texts for tokenizers."""

from __future__ import annotations

from hypothesis import strategies as st

from lmcourse.data.corpora import find_corpus

ENGLISH = sorted(find_corpus("python-docs").texts(), key=len)[:20]
"""An English text of 40 kB."""

ODD = "It's  4 \n\n cats; 🐈‍⬛ ñ = n + ̃, “東京”\t\r\n\0\x1f\x7f\x80 12345   "
"""A text with contractions, repeated spaces, joined emoji, a combining accent, control characters and a final space."""

EVERY = st.text(st.characters(exclude_categories=["Cs"])) | st.text("ab '1.\n\té🐈", max_size=60)
