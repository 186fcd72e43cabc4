"""The exercise on a learned filter: the trusted text's bigrams against the pool's."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _log_ratio(documents: list[str], trusted: str, pool: str) -> list[float]:
    """Count with str.count at each place."""

    def log_p(text: str, a: str, b: str) -> float:
        pairs = sum(text[i : i + 2] == a + b for i in range(len(text)))
        return math.log((pairs + 0.1) / (text[:-1].count(a) + 12.8))

    def mean(document: str) -> float:
        pairs = [*itertools.pairwise(document)]
        return math.fsum(log_p(trusted, *pair) - log_p(pool, *pair) for pair in pairs) / len(pairs)

    return [mean(document) for document in documents]


def _hidden(random: Random) -> list[Case]:
    def text(letters: int) -> str:
        return "".join(random.choice("abc ") for _ in range(letters))

    return [
        *(case("other texts", [text(5), text(8)], text(length), text(20)) for length in (15, 30)),
        case("unseen letters", ["xyz", "ab"], text(12), text(9)),
        case("the shortest documents", ["ab", "ba", "aa"], "aabab", "abba"),
    ]


log_ratio = Exercise(
    "log_ratio",
    points=2,
    minutes=8,
    difficulty=2,
    reference=_log_ratio,
    cases=[
        case("one pair", ["ab"], "abab", "bbaa"),
        case("two documents", ["abcab", "ccb"], "abcabcab", "bacbbcccaac"),
        case("unseen letters", ["xab"], "abab", "axbb"),
    ],
    hidden_cases=_hidden,
    tolerance=Tolerance(1e-6, 1e-6),
    hints=[
        "Count once per text: the pairs, and the letters that have a successor. collections.Counter does both.",
        "ln (p / q) = ln p − ln q. Both have the same form, with other counts.",
        "A document of m letters has m − 1 pairs: divide the sum by that.",
    ],
)


@log_ratio.variant
def with_counters(documents: list[str], trusted: str, pool: str) -> list[float]:
    def log_p(text: str) -> dict[tuple[str, str], float]:
        pairs, firsts = Counter(itertools.pairwise(text)), Counter(text[:-1])
        letters = set("".join(documents))
        return {(a, b): math.log((pairs[a, b] + 0.1) / (firsts[a] + 12.8)) for a in letters for b in letters}

    p, q = log_p(trusted), log_p(pool)
    found = []
    for document in documents:
        ratios = [p[pair] - q[pair] for pair in itertools.pairwise(document)]
        found.append(sum(ratios) / len(ratios))
    return found


log_ratio.slips(
    with_counters,
    {
        "p[pair] - q[pair] → p[pair]": "You leave out the pool: that is a likelihood, not a ratio.",
        "p[pair] - q[pair] → q[pair] - p[pair]": "Your sign is reversed: the trusted text comes above the line.",
        "p[pair] - q[pair] → math.exp(p[pair] - q[pair])": "You average ratios. Average their logarithms.",
        "p[pair] - q[pair] → p[pair] / q[pair]": "You divide logarithms. The logarithm of a ratio is their difference.",
        "sum(ratios) / len(ratios) → sum(ratios)": "You return the sum. Divide it by the number of pairs.",
        "len(ratios) → len(document)": "You divide by the letters. There is one pair less.",
        "firsts[a] + 12.8 → len(text) + 12.8 || firsts[a] + 12.8 → len(text) - 1 + "
        "12.8": "You divide by the length of the text. Divide by how often the first letter has a successor.",
        "Counter(text[:-1]) → Counter(text)": "You count the last letter, which has no successor.",
        "firsts[a] + → firsts[b] +": "You divide by the counts of the second letter. The first one is given.",
        "+ 0.1) → )": "Pairs that a text has never shown get ln 0. Add 0.1 to each count.",
        "firsts[a] + 12.8 → firsts[a] + 0.1": "You add 0.1 below the line. It is 0.1 for each of 128 letters: 12.8.",
        "(pairs[a, b] + 0.1) → max(pairs[a, b], 0.1)": "You put 0.1 in place of zero counts only. Add it to all "
        "counts.",
        "pairs[a, b] → pairs[b, a]": "You count the pairs backwards: N(ab) is how often b follows a.",
        "firsts[a] + 12.8 → firsts[a] + 0.1 * len(firsts)": "You add 0.1 for each letter that the text shows. There "
        "are 128, whatever it shows: 12.8.",
        "+ 0.1) → + 1) ;; + 12.8 → + 128": "You add 1 to each count. Here it is 0.1, and 12.8 below the line.",
        "pairs[a, b] → text.count(a + b)": "`str.count` skips overlaps: “aaa” has the pair “aa” twice.",
        "math.log((pairs[a, b] + 0.1) / (firsts[a] + 12.8)) → (pairs[a, b] + 0.1) / (firsts[a] + 12.8)": "You take the "
        "difference of two probabilities. Take that of their logarithms.",
        "/ (firsts[a] + 12.8) → / max(firsts[a], 1) + 12.8": "You divide before you add 12.8: put N(a) + 12.8 in "
        "brackets.",
        "itertools.pairwise(document)] → set(itertools.pairwise(document))]": "You count each different pair of a "
        "document once. A pair that comes again counts again.",
        "p, q = log_p(trusted), log_p(pool) → p, q = log_p(trusted), log_p(pool + trusted)": "You count the trusted "
        "text in the pool's bigrams, too.",
        "math.log( → math.log2(": "You take the logarithm to base 2. Nats use math.log.",
    },
)
