"""The exercise on the n-gram model, a fraction of two counts."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _ngram(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    """Count all windows of the context's length plus one."""
    n = len(context)
    windows = Counter(zip(*(text[place:] for place in range(n + 1)), strict=False))
    counts = [windows[(*context, word)] for word in range(vocabulary)]
    if not any(counts):
        raise ValueError(f"nothing was seen after {context}")
    return [count / sum(counts) for count in counts]


TEXT = [0, 1, 2, 0, 1, 0, 0, 1, 2]
RUN = [0, 0, 0, 1, 0, 0, 0]
SOURCE = Random(8)
DRAWN = {words: [SOURCE.randrange(words) for _ in range(80)] for words in (3, 4)}


def _hidden(random: Random) -> list[Case]:
    source = Random(7)
    long = [source.randrange(3) for _ in range(400)]
    cases = [
        case("longer texts", long, [2, 0], 3),
        case("longer texts", long, [], 3),
        case("longer contexts", long, long[100:103], 3),
        case("longer contexts", long, long[:6], 3),
        case("longer contexts", [0, 1, 2, 0, 1, 2, 1], [0, 1, 2, 0, 1, 2], 3),
        case("words that never occur", TEXT, [1], 6),
        case("words that never occur", TEXT, [], 5),
        case("one word in the vocabulary", [0, 0, 0], [0], 1),
        case("one word in the vocabulary", [0], [], 1),
        case("the context at the end", [2, 1, 0, 2], [2], 3),
        case("the context at the end", [1, 2, 0, 1, 2], [1, 2], 3),
        case("overlaps", [1, 0, 1, 0, 1, 0, 1, 1], [1, 0, 1], 2),
        case("overlaps", [0] * 6 + [1], [0, 0], 2),
        case("nothing to count", TEXT, [2, 2], 3),
        case("nothing to count", [0, 1, 2], [2], 3),
        case("nothing to count", [0, 1, 2], [0, 1, 2], 3),
        case("nothing to count", [0, 1], [0, 1, 2, 0], 3),
        case("nothing to count", [], [], 3),
        case("nothing to count", [], [0], 3),
        case("nothing to count", TEXT, [4], 5),
    ]
    for order, words in ((1, 4), (2, 3), (3, 3)):
        # A fixed text with randomly renamed words, so that no mark depends on luck.
        named = random.sample(range(words), words)
        text = [named[each] for each in DRAWN[words]]
        cases.append(case("other texts", text, text[10 : 10 + order], words))
    return cases


ngram = Exercise(
    "ngram",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_ngram,
    cases=[
        case("after 1", TEXT, [1], 3),
        case("after 0 1", TEXT, [0, 1], 3),
        case("after 1 0: the order matters", TEXT, [1, 0], 3),
        case("after 2, which also ends the text", TEXT, [2], 3),
        case("after 0 0, which overlaps itself", RUN, [0, 0], 2),
        case("after nothing", TEXT, [], 3),
        case("after 2 2", TEXT, [2, 2], 3),
    ],
    hidden_cases=_hidden,
    hints=[
        "Go through the text. Wherever the last words are the context, count the word that comes next.",
        "text[start : start + n] == context compares a window with the context; the word after it is text[start + n], "
        "as long as there is one.",
        "Divide each count by the sum of the counts, not by how often the context occurs in the text. If the sum is 0, "
        "raise ValueError.",
    ],
)


for _step in ("-= 1", "+= 2"):
    ngram.equivalent_mutant(
        f"counts[text[place + n]] += 1 → counts[text[place + n]] {_step}",
        "Shares are quotients: another unit of counting cancels.",
    )


def _following(text: list[int], context: list[int], vocabulary: int) -> list[int]:
    n = len(context)
    counts = [0] * vocabulary
    for start in range(len(text) - n):
        if text[start : start + n] == context:
            counts[text[start + n]] += 1
    return counts


def _shared(counts: list[int], total: float | None = None) -> list[float]:
    total = sum(counts) if total is None else total
    if not total or not sum(counts):
        raise ValueError("the context was never seen")
    return [count / total for count in counts]


@ngram.misconception(
    "You count a context at the very end of the text. No word follows it, so your probabilities do not sum to one."
)
def end_counted(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    n = len(context)
    places = sum(text[start : start + n] == context for start in range(len(text) - n + 1)) if n else len(text)
    return _shared(_following(text, context, vocabulary), places)


@ngram.misconception("Occurrences may overlap: in 0 0 0 the context 0 0 occurs twice.")
def no_overlap(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    n, start, counts = len(context), 0, [0] * vocabulary
    while start < len(text) - n:
        if text[start : start + n] == context:
            counts[text[start + n]] += 1
            start += max(n, 1)
        else:
            start += 1
    return _shared(counts)


@ngram.misconception(
    "You divide by all places, which gives how often context *and* word occur. Return how often the word occurs, "
    "*given* the context."
)
def joint(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    return _shared(_following(text, context, vocabulary), len(text) - len(context))


@ngram.misconception("You look only at the last word of the context.")
def last_word_only(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    return _shared(_following(text, context[-1:], vocabulary))


@ngram.misconception("After the last word you continue with the first. What comes after the last word is unknown.")
def in_a_circle(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    return _shared(_following(text + text[: len(context)], context, vocabulary))


@ngram.misconception("Your context is read backwards.")
def reversed_context(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    return _shared(_following(text, context[::-1], vocabulary))


@ngram.misconception("The order of the context's words matters: 0 1 is not 1 0.")
def any_order(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    n, counts = len(context), [0] * vocabulary
    for start in range(len(text) - n):
        if sorted(text[start : start + n]) == sorted(context):
            counts[text[start + n]] += 1
    return _shared(counts)


@ngram.misconception("You add one to every count. Use the plain counts.")
def add_one(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    counts = _following(text, context, vocabulary)
    _shared(counts)
    return _shared([count + 1 for count in counts])


@ngram.misconception("A context that no word ever follows gives no distribution: raise ValueError.")
def guesses(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    counts = _following(text, context, vocabulary)
    return _shared(counts) if any(counts) else [1 / vocabulary] * vocabulary


@ngram.misconception("You return counts. Divide them by their sum.")
def counts_only(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    counts = _following(text, context, vocabulary)
    _shared(counts)
    return [float(count) for count in counts]


@ngram.misconception("After the empty context every word counts, the first one too.")
def first_word_skipped(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    return _shared(_following(text, context, vocabulary) if context else _following(text[1:], context, vocabulary))


@ngram.misconception("You count the words *before* the context. Count the words after it.")
def words_before(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    return _shared(_following(text[::-1], context[::-1], vocabulary))


@ngram.misconception(
    "You stop one word early. The last word of the text follows a context as well, and you never count it: look at "
    "len(text) − n places."
)
def last_word_never_counted(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    return _shared(_following(text[:-1], context, vocabulary))


@ngram.variant
def with_windows(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    n = len(context) + 1
    windows = [tuple(text[end - n : end]) for end in range(n, len(text) + 1)]
    came = [window[-1] for window in windows if window[:-1] == tuple(context)]
    if not came:
        raise ValueError(f"{context} was never followed by anything")
    return [came.count(word) / len(came) for word in range(vocabulary)]


@ngram.variant
def with_torch(text: list[int], context: list[int], vocabulary: int) -> torch.Tensor | list[float]:
    n = len(context) + 1
    if len(text) < n:
        raise ValueError("the text is too short")
    windows = torch.tensor(text).unfold(0, n, 1)
    fits = (windows[:, :-1] == torch.tensor(context, dtype=torch.int64)).all(dim=1)
    if not fits.any():
        raise ValueError("the context was never seen")
    counts = torch.bincount(windows[fits, -1], minlength=vocabulary).double()
    return (counts / counts.sum()).tolist()


@ngram.variant
def recursively(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    def followers(places: list[int], left: list[int]) -> list[int]:
        """Return the places after those at which the rest of the context occurs."""
        places = [place for place in places if place < len(text)]
        return followers([p + 1 for p in places if text[p] == left[0]], left[1:]) if left else places

    words = [text[place] for place in followers(list(range(len(text))), context)]
    try:
        return [sum(word == each for word in words) / len(words) for each in range(vocabulary)]
    except ZeroDivisionError:
        raise ValueError("the context was never seen") from None


@ngram.variant
def with_numpy(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    tokens, n = np.array(text, dtype=int), len(context)
    counts = np.zeros(vocabulary)
    for i in range(n, len(tokens)):
        if np.array_equal(tokens[i - n : i], context):
            counts[tokens[i]] += 1
    if counts.max() == 0:
        raise ValueError("zero")
    return list(counts / counts.sum())
