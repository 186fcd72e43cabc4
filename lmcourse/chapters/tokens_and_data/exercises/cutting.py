"""The exercise on cutting a text into words, before any pair is merged."""

from __future__ import annotations

import re
from random import Random

from lmcourse.data.tokenizers.pre_tokenizer import split_words
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _reference(text: str) -> list[str]:
    """Cut as the package does, then cut its numbers."""
    kinds = ((word, " ?[0-9]{1,3}" if word[-1] in "0123456789" else ".+") for word in split_words(text))
    return [part for word, kind in kinds for part in re.findall(kind, word, re.DOTALL)]


def _hidden(random: Random) -> list[Case]:
    fixed = ["", " ", "\n\n", " 1234 ", "It's 10,000.5 km!  ", "a\n\n  b", "'re'll'd", "‘so’ — §3"]
    pieces = ["we", "'ll", " ", "  ", "\n", "\t", "né", "東京", "7", "1234", " 56789", "x_1", "...", "'s", "(", "0"]
    mixed = [case("mixed texts", "".join(random.choices(pieces, k=30))) for _ in range(4)]
    return [*(case("other texts", text) for text in fixed), *mixed]


cut = Exercise(
    "cut",
    points=2,
    minutes=8,
    difficulty=2,
    reference=_reference,
    cases=[
        case("words and punctuation", "Two words, no more."),
        case("endings", "it's ours, we'll say"),
        case("a quoted word", "a 'name'!"),
        case("numbers", "12345678 and 2023"),
        case("letters and digits", "x1 is 4th"),
        case("two spaces", "a  b"),
        case("a new line before a space", "a\n b\n\n"),
        case("a tab before a word", "a\tb"),
        case("letters of all alphabets", "naïve (東京) 😀!"),
        case("code", "  x_1 = (y+2)**n"),
        case("no text", ""),
    ],
    hidden_cases=_hidden,
    hints=[
        "re.findall(pattern, text) gives all matches of a pattern, one after the other. Join the six kinds with |.",
        "The first alternative that fits is taken. Letters are [A-Za-z\\u0080-\\U0010ffff], and ` ?` may be a space.",
        "White space that leaves its last character to the next word is \\s+(?!\\S). What remains after that is \\s+.",
        "Punctuation is [^\\s…]+ with the letters and the digits in place of the dots. A group is (?:…), not (…).",
    ],
)


@cut.variant
def with_findall(text: str) -> list[str]:
    letter = r"A-Za-z\u0080-\U0010ffff"
    endings = "'(?:[sdmt]|ll|ve|re)"
    words, numbers, others = rf" ?[{letter}]+", " ?[0-9]{1,3}", rf" ?[^\s{letter}0-9]+"
    return re.findall("|".join([endings, words, numbers, others, r"\s+(?!\S)", r"\s+"]), text)


cut.slips(
    with_findall,
    {
        "{1,3} → +": "You keep a number whole. Cut it after every third digit, from the left.",
        "[0-9]{1,3} → [0-9]{1,3}(?=(?:[0-9]{3})*(?![0-9]))": "You group digits from the right. Cut from the left: "
        "1234567 is 123·456·7.",
        '" ?[0-9] → "[0-9]': "You cut the space off a number. It belongs to the number.",
        "[endings, words → [words": "You cut it's into it, ' and s. The endings 's, 'll and the others stay whole.",
        'rf" ?[{letter}]+" → rf"[{letter}]+"': "You cut the space off a word. It belongs to the word.",
        'rf" ?[^ → rf"[^': "You cut the space off punctuation. It belongs to the punctuation.",
        r"[^\s{letter}0-9] → [^\sA-Za-z0-9]": "Your punctuation takes letters beyond ASCII with it. Leave out all "
        "letters.",
        r'words, numbers, others, → r" ?\w+", numbers, r" ?[^\s\w]+",': r"`\w` takes digits and the underscore, too. A "
        r"letter is A to Z, a to z, or anything beyond ASCII.",
        r'words, numbers, others, → r" ?[^\W\d_]+", numbers, r" ?(?:[^\s\w]|_)+",': "You take what Unicode calls a "
        "letter. Here anything beyond ASCII is one, such as 😀.",
        r"\s+(?!\S) → \s+(?=\s)": r"At the end of a text you cut white space in two. It stays whole there: \s+(?!\S) "
        r"fits at the end, too.",
        r"\u0080-\U0010ffff → ": "You take letters beyond ASCII, such as é, for punctuation.",
        r'r"\s+(?!\S)", → ': "Of several spaces before a word, you leave none to the word. Leave it the last one.",
        r', r"\s+(?!\S)", r"\s+" → ': "You lose white space: joined, your words are no longer the text.",
        r', r"\s+"] → ]': "You lose white space that stands before a word and is no space, such as a tab.",
        "(?:[sdmt]|ll|ve|re) → ([sdmt]|ll|ve|re)": "With a group in round brackets, `findall` gives what the group "
        "caught, not the match. Write (?:…).",
        'words, numbers, others, → rf" ?[{letter}0-9]+", others,': "You leave digits and letters together. Cut them.",
        '0-9]+" → 0-9]"': "You cut punctuation into single characters. Neighbours stay together.",
    },
)
