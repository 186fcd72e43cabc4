"""The exercise on the n-gram model, a fraction of two counts."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def place_by_place(text: list[int], context: list[int], vocabulary: int) -> list[float]:
    n = len(context)
    counts = [0] * vocabulary
    for start in range(len(text) - n):
        if text[start : start + n] == context:
            counts[text[start + n]] += 1
    total = sum(counts)
    if not total:
        raise ValueError("the context was never seen")
    return [count / total for count in counts]


TEXT = [0, 1, 2, 0, 1, 0, 0, 1, 2]
SOURCE = Random(8)
DRAWN = {words: [SOURCE.randrange(words) for _ in range(80)] for words in (3, 4)}


def _hidden(random: Random) -> list[Case]:
    source = Random(7)
    long = [source.randrange(3) for _ in range(400)]
    cases = [
        *(case("longer texts", long, context, 3) for context in ([2, 0], [])),
        case("longer contexts", long, long[:6], 3),
        case("longer contexts", [0, 1, 2, 0, 1, 2, 1], [0, 1, 2, 0, 1, 2], 3),
        case("words that never occur", TEXT, [1], 6),
        case("one word in the vocabulary", [0], [], 1),
        case("the context at the end", [1, 2, 0, 1, 2], [1, 2], 3),
        case("overlaps", [1, 0, 1, 0, 1, 0, 1, 1], [1, 0, 1], 2),
        *(case("nothing to count", text, context, 3) for text, context in (([0, 1, 2], [2]), ([], []), ([0], [0, 1]))),
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
    minutes=7,
    difficulty=2,
    reference=place_by_place,
    cases=[
        case("after 1", TEXT, [1], 3),
        case("after 0 1, with words that never occur", TEXT, [0, 1], 5),
        case("after 1 0: the order matters", TEXT, [1, 0], 3),
        case("after 2, which also ends the text", TEXT, [2], 3),
        case("after 0 0, which overlaps itself", [0, 0, 0, 1, 0, 0, 0], [0, 0], 2),
        case("after nothing", TEXT, [], 3),
        case("after 2 2", TEXT, [2, 2], 3),
        case("after 1, with words of two digits", [1, 11, 3, 1, 2, 11, 1, 2], [1], 12),
    ],
    hidden_cases=_hidden,
    hints=[
        "Go through the text. Wherever the last words are the context, count the word that comes next.",
        "text[start : start + n] == context compares a window with the context; the word after it is text[start + n], "
        "as long as there is one.",
        "Divide each count by the sum of the counts, not by how often the context occurs in the text. If the sum is 0, "
        "raise ValueError.",
    ],
    tolerance=Tolerance(1e-6),  # float32
)


for _step in ("-= 1", "+= 2"):
    ngram.equivalent_mutant(
        f"counts[text[place + n]] += 1 → counts[text[place + n]] {_step}",
        "Shares are quotients: another unit of counting cancels.",
    )


ngram.variant(place_by_place)
ngram.slips(
    place_by_place,
    {
        "count / total → count / (total + (text[-n:] == context))": "You count a context at the very end of the text. "
        "No word follows it, so your probabilities do not sum to one.",
        "counts = [0] * vocabulary → counts, free = [0] * vocabulary, 0 ;; if text → if start >= free and text ;; += 1 "
        "→ += 1; free = start + n": "Occurrences may overlap: in 0 0 0 the context 0 0 occurs twice.",
        "count / total → count / (len(text) - n)": "You divide by all places, which gives how often context *and* word "
        "occur. Return how often the word occurs, *given* the context.",
        "n = len(context) → context = context[-1:]; n = len(context)": "You look only at the last word of the context.",
        "text[start : start + n] == context → sorted(text[start : start + n]) == sorted(context)": "The order of the "
        "context's words matters: 0 1 is not 1 0.",
        "count / total → (count + 1) / (total + vocabulary)": "You add one to every count. Use the plain counts.",
        'raise ValueError("the context was never seen") → return [1 / vocabulary] * vocabulary': "A context that no "
        "word ever follows gives no distribution: raise ValueError.",
        "count / total → float(count)": "You return counts. Divide them by their sum.",
        "counts = [0] * vocabulary → counts = [0] * (max(text, default=0) + 1)": "Your list ends at the last word that "
        "occurs. Return `vocabulary` numbers: a word that never occurs has the probability 0.",
        "for count in counts] → for count in map(counts.__getitem__, sorted({*text}))]": "Your list has a place for "
        "each word of the text. Give all `vocabulary` words one: a word that never occurs has the probability 0.",
        "for count in counts] → for count in map(counts.__getitem__, dict.fromkeys(text))]": "Your list follows the "
        "order in which words come in the text. Word i has place i, and all `vocabulary` words have one.",
        "for count in counts] → for count in counts if count]": "Your list holds only the words that follow the "
        "context. Give all `vocabulary` words a place: the others have the probability 0.",
        "for count in counts] → for count in counts[: max(word for word in text if counts[word]) + 1]]": "Your list "
        "ends at the last word that follows the context, as `bincount` does without `minlength`. Return `vocabulary` "
        "numbers.",
        "text[start : start + n] == → text[: start + n][-n:] ==": "For the empty context n is 0, and [-0:] takes the "
        "whole list.",
        "if text[start : start + n] == context → if ''.join(map(str, text[start:])).startswith(''.join(map(str, "
        "context)))": "You compare digits: 1 is also the first digit of 11. Compare words.",
        "range(len(text) - n) → range(n == 0, len(text) - n)": "After the empty context every word counts, the first "
        "one too.",
        "n = len(context) → n, text, context = len(context), text[::-1], context[::-1]": "You count the words *before* "
        "the context. Count the words after it.",
        "range(len(text) - n) → range(len(text) - n + 1)": "You look one place too far: no word follows a context at "
        "the very end of the text.",
        "range(len(text) - n) → range(len(text) - n - 1)": "You stop one word early. The last word of the text follows "
        "a context as well, and you never count it: look at len(text) − n places.",
    },
)
