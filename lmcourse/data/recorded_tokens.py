"""Recorded token counts of one text for three published vocabularies, which are too large to ship.

The text is article 1 of the Universal Declaration of Human Rights (1948) in ten of its translations, from the Unicode
Consortium's "UDHR in Unicode" (files eng, deu_1996, spa, swh, cmn_hans, jpn, rus, ell_monotonic, hin, mya; white space
reduced to single blanks). The tokens were counted on 22 November 2026 with the vocabularies in the npm package
js-tiktoken 1.0.21: gpt2, cl100k_base (GPT-4) and o200k_base (GPT-4o).
"""

from __future__ import annotations

VOCABULARY_SIZES: dict[str, int] = {"GPT-2": 50_257, "GPT-4": 100_277, "GPT-4o": 200_019}
"""Vocabulary sizes, including special tokens."""

_COUNTS = {
    "English": (170, 33, 33, 33),
    "German": (164, 60, 44, 38),
    "Spanish": (171, 58, 44, 38),
    "Swahili": (120, 49, 48, 36),
    "Chinese": (43, 82, 52, 37),
    "Japanese": (85, 117, 93, 72),
    "Russian": (160, 172, 74, 41),
    "Greek": (194, 218, 172, 71),
    "Hindi": (189, 296, 182, 54),
    "Burmese": (262, 726, 512, 134),
}
"""For each language, the number of characters (code points) of article 1, then its tokens in each vocabulary."""

SENTENCE_CHARACTERS = {language: counts[0] for language, counts in _COUNTS.items()}
"""Number of characters of article 1, by language."""

SENTENCE_TOKENS = {
    name: {language: counts[place] for language, counts in _COUNTS.items()}
    for place, name in enumerate(VOCABULARY_SIZES, start=1)
}
"""Number of tokens of article 1, by vocabulary and language."""
