"""Recorded counts of published vocabularies, which are too large to ship: how three of them cut one text.

The text is article 1 of the Universal Declaration of Human Rights (1948) in ten of its translations, as the Unicode
Consortium's "UDHR in Unicode" has them (files eng, deu_1996, spa, swh, cmn_hans, jpn, rus, ell_monotonic, hin, mya;
white space reduced to single blanks). Counted on 22 November 2026 with the vocabularies that the npm package
js-tiktoken 1.0.21 holds: gpt2, cl100k_base (GPT-4) and o200k_base (GPT-4o).
"""

from __future__ import annotations

SENTENCE_TOKENS: dict[str, dict[str, int]] = {
    "GPT-2": {
        "English": 33,
        "German": 60,
        "Spanish": 58,
        "Swahili": 49,
        "Chinese": 82,
        "Japanese": 117,
        "Russian": 172,
        "Greek": 218,
        "Hindi": 296,
        "Burmese": 726,
    },
    "GPT-4": {
        "English": 33,
        "German": 44,
        "Spanish": 44,
        "Swahili": 48,
        "Chinese": 52,
        "Japanese": 93,
        "Russian": 74,
        "Greek": 172,
        "Hindi": 182,
        "Burmese": 512,
    },
    "GPT-4o": {
        "English": 33,
        "German": 38,
        "Spanish": 38,
        "Swahili": 36,
        "Chinese": 37,
        "Japanese": 72,
        "Russian": 41,
        "Greek": 71,
        "Hindi": 54,
        "Burmese": 134,
    },
}
"""Tokens of article 1, by vocabulary and language."""

SENTENCE_CHARACTERS: dict[str, int] = {
    "English": 170,
    "German": 164,
    "Spanish": 171,
    "Swahili": 120,
    "Chinese": 43,
    "Japanese": 85,
    "Russian": 160,
    "Greek": 194,
    "Hindi": 189,
    "Burmese": 262,
}
"""Characters (code points) of article 1."""

VOCABULARY_SIZES: dict[str, int] = {"GPT-2": 50_257, "GPT-4": 100_277, "GPT-4o": 200_019}
"""Tokens of each, special ones included."""
