"""Texts to cut into tokens."""

from __future__ import annotations

from hypothesis import strategies as st

from lmcourse.data.corpora import find_corpus

ENGLISH = sorted(find_corpus("python-docs").texts(), key=len)[:20]
"""40 kB of English."""

ODD = "It's  4 \n\n cats; 🐈‍⬛ ñ = n + ̃, “東京”\t\r\n\0\x1f\x7f\x80 12345   "
"""Contractions, runs of spaces, joined emoji, an accent of its own, control characters, a space at the end."""

EVERY = st.text(st.characters(exclude_categories=["Cs"])) | st.text("ab '1.\n\té🐈", max_size=60)
