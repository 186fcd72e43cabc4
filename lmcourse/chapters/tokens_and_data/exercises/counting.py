"""The exercise on a merge that updates the counts of all pairs, and reads only the words with the pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

from lmcourse.chapters.tokens_and_data.counted_text import Where
from lmcourse.chapters.tokens_and_data.exercises.merging import first_only, merged, overlapping
from lmcourse.chapters.tokens_and_data.exercises.right_counting import RIGHT_COUNTING
from lmcourse.data.corpus_sources import stories
from lmcourse.data.tokenizers.pre_tokenizer import split_words
from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise

Pair = tuple[int, int]
Words = list[list[int]]
Counts = dict[Pair, int]

_SHOWN = "text.words\ntext.counts\ntext.where\ntext.work"


def _tried(name: str, words: Words, times: list[int], *pairs: Pair) -> Case:
    """A case with several merges, which returns the words, counts and places after each."""
    lines = [
        "from lmcourse.chapters.tokens_and_data.counted_text import CountedText",
        f"text = CountedText({words}, {times})",
    ]
    for new, pair in enumerate(pairs, start=256):
        lines += [f"text.merge(merge_counted, {pair}, {new})", _SHOWN]
    return script(name, "\n".join(lines))


def _of_stories(count: int, merges: int) -> Case:
    """A case that merges the most frequent pairs of many stories."""
    words = dict(Counter(word for story in stories(count) for word in split_words(story)))
    lines = (
        "from lmcourse.chapters.tokens_and_data.counted_text import CountedText\n"
        "from lmcourse.data.tokenizers.bpe import learn_merges\n"
        f"merges = learn_merges([word for word, many in words.items() for _ in range(many)], {merges})\n"
        "text = CountedText.of_bytes(words).train(merge_counted, merges)\n"
        f"{_SHOWN}\ntext.looks"
    )
    return script("stories", lines, words=words)


def _reference(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    """Take the words that hold the pair out of the counts, and put them back merged."""
    holders = sorted(where.get(pair, ()))
    old = [words[number] for number in holders]
    young = [merged(word, pair, new) for word in old]
    for number, word in zip(holders, young, strict=True):
        words[number] = word
    changed: Counter[Pair] = Counter()
    for number, before, after in zip(holders, old, young, strict=True):
        changed.subtract({each: times[number] * many for each, many in Counter(pairwise(before)).items()})
        changed.update({each: times[number] * many for each, many in Counter(pairwise(after)).items()})
        for each in pairwise(before):
            where[each] = where[each] - {number}
        for each in pairwise(after):
            where[each] = where.get(each, set()) | {number}
    for each, by in changed.items():
        counts[each] = counts.get(each, 0) + by
    for each in [each for each in changed if not counts[each]]:
        del counts[each], where[each]
    for each in [each for each in where if not where[each]]:
        del where[each]


def _hidden(random: Random) -> list[Case]:
    cases = [
        _tried("runs", [[7] * 5, [7] * 2, [7], [7] * 8], [1, 2, 4, 8], (7, 7), (256, 256)),
        _tried("both ends", [[1, 2, 9, 1, 2], [9, 1], [2, 9]], [1, 3, 1], (1, 2), (256, 9)),
        _tried("equal words", [[1, 2], [1, 2], [2, 1], [1, 2]], [1, 2, 4, 8], (1, 2)),
        _tried("empty words", [[], [1, 2], [1], []], [5, 6, 7, 8], (1, 2)),
        _tried("a token of the pair beside it", [[1, 1, 2, 2], [2, 1, 2, 1]], [3, 5], (1, 2)),
        _tried("the new token on both sides", [[1, 2, 1, 2, 1, 2]], [10], (1, 2), (256, 256)),
        edge(_tried("a pair that is nowhere", [[1, 2], [2, 2]], [3, 1], (2, 1), (1, 2))),
        _of_stories(600, 100),
    ]
    for _ in range(3):
        words = [[random.randint(1, 3) for _ in range(random.randint(2, 8))] for _ in range(4)]
        # These words expose every known mistake, so that no mark depends on luck.
        words += [[3, 1, 2, 3, 1], [5, 1, 2, 6, 1, 2], [3, 1], [4, 4, 3]]
        times = [random.randint(2, 9) for _ in words]
        cases.append(_tried("other words", words, times, (1, 2), (3, 256), (256, 3)))
    return cases


merge_counted = Exercise(
    "merge_counted",
    points=3,
    minutes=12,
    difficulty=3,
    reference=_reference,
    cases=[
        _tried("one word", [[5, 1, 2, 6]], [1], (1, 2)),
        _tried("three times", [[5, 1, 2, 6]], [3], (1, 2)),
        _tried("two words hold it, two do not", [[5, 1, 2], [1, 2, 6], [5, 1], [6, 7]], [2, 3, 4, 5], (1, 2)),
        _tried("a neighbour pair is there twice", [[5, 1, 2, 5, 1], [5, 1]], [2, 3], (1, 2)),
        _tried("twice in a word", [[1, 2, 3, 1, 2, 3]], [2], (1, 2)),
        _tried("side by side: two new tokens are neighbours", [[1, 2, 1, 2]], [1], (1, 2)),
        _tried("a run", [[7, 7, 7, 7], [7, 7, 7]], [1, 2], (7, 7)),
        _tried("one merge after another", [[5, 1, 2, 6], [1, 2, 6], [2, 6]], [1, 2, 3], (1, 2), (256, 6)),
        edge(_tried("a pair that is nowhere", [[5, 1, 6], [2, 1]], [1, 2], (1, 2))),
    ],
    hidden_cases=_hidden,
    hints=[
        "`where[pair]` has the numbers of the words to look at. Loop over a copy of it, because it changes.",
        "For each of these words: remove all its pairs from `counts` and `where`, merge the word, and add its new "
        "pairs. Most of them cancel.",
        "A pair of the word counts `times[number]` for each of its places, but `where` names the word once: the word "
        "leaves `where[pair]` only if none of its new pairs is that pair.",
        "Counter(pairwise(word)) before and after: for each pair in one of them, add times[number] · (after − before) "
        "to its count. If no word is left in where[pair], delete both entries.",
    ],
    forbid=["tokenizers", "tiktoken"],
    uses=["merge"],
)


Merge = Callable[[list[int], Pair, int], list[int]]


def _keep_count(
    words: Words,
    times: list[int],
    counts: Counts,
    where: Where,
    pair: Pair,
    new: int,
    *,
    merge: Merge = merged,
    tally: Callable[[list[Pair]], Counter[Pair]] = Counter,
    weigh: Callable[[int], int] = lambda many: many,
    kept: Callable[[Pair], bool] = lambda each: False,
    adds: bool = True,
) -> None:
    """Merge in the words that hold the pair; entries of 0 and empty sets stay.

    Args:
        tally: the function that counts the pairs of a word.
        weigh: the function that returns how much a word counts.
        kept: returns True for a pair whose old count is never subtracted.
        adds: whether the merged words' pairs are added.
    """
    for number in sorted(where.get(pair, ())):
        before, words[number] = words[number], merge(words[number], pair, new)
        taken, added = tally([*pairwise(before)]), tally([*pairwise(words[number])])
        for each in taken:
            if each in added or not kept(each):
                counts[each] = counts.get(each, 0) - weigh(times[number]) * taken[each]
                where.setdefault(each, set()).discard(number)
            if kept(each) and each in added:
                counts[each] += weigh(times[number]) * (taken[each] - added[each])
        for each in added if adds else ():
            counts[each] = counts.get(each, 0) + weigh(times[number]) * added[each]
            where.setdefault(each, set()).add(number)


def _clean(counts: Counts, where: Where) -> None:
    """Delete counts of 0 and empty sets."""
    for each in [each for each in counts if not counts[each]]:
        del counts[each]
    for each in [each for each in where if not where[each]]:
        del where[each]


def _mistake(**how: Any) -> Callable[[Words, list[int], Counts, Where, Pair, int], None]:
    def answer(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
        _keep_count(words, times, counts, where, pair, new, **how)
        _clean(counts, where)

    return answer


@merge_counted.misconception("A pair on the *left* of the merge is gone, and you still count it.")
def left_stays(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _mistake(kept=lambda each: each[1] == pair[0] and each != pair)(words, times, counts, where, pair, new)


@merge_counted.misconception("A pair on the *right* of the merge is gone, and you still count it.")
def right_stays(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _mistake(kept=lambda each: each[0] == pair[1] and each != pair)(words, times, counts, where, pair, new)


@merge_counted.misconception(
    "You add the pairs with the new token, and still count the pairs that were on both sides of the merge."
)
def neighbours_stay(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _mistake(kept=lambda each: each != pair)(words, times, counts, where, pair, new)


@merge_counted.misconception("You still count the pair that you merged. It no longer occurs.")
def the_pair_stays(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _mistake(kept=lambda each: each == pair)(words, times, counts, where, pair, new)


@merge_counted.misconception("You count each word once. A word that occurs three times changes a count by three.")
def without_times(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _mistake(weigh=lambda many: 1)(words, times, counts, where, pair, new)


@merge_counted.misconception(
    "You change a count by 1 for each place of a word. A word occurs times[n] times, and so does every pair in it."
)
def without_times_and_gone(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    """Delete the count of a pair that is in no word any more, even if the count is not 0."""
    _keep_count(words, times, counts, where, pair, new, weigh=lambda many: 1)
    for each in [each for each in where if not where[each]]:
        del where[each], counts[each]


@merge_counted.misconception(
    "You take a word out of `where` only when the count of a pair falls to 0. A word leaves as soon as its own last "
    "place of the pair is gone."
)
def places_until_zero(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    before = {each: {*numbers} for each, numbers in where.items()}
    _mistake()(words, times, counts, where, pair, new)
    for each in before.keys() & counts.keys():
        where[each] = where[each] | before[each]


@merge_counted.misconception(
    "You read the neighbours of a merge in the old word; where two merges touch, the neighbour is `new`. And a word "
    "stays in `where` until a pair's count is 0."
)
def old_neighbours(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    def change(each: Pair, number: int, by: int) -> None:
        counts[each] = counts.get(each, 0) + by
        if by > 0:
            where.setdefault(each, set()).add(number)
        if not counts[each]:
            del counts[each]
            where.pop(each, None)

    for number in sorted(where.get(pair, ())):
        word, many, place = words[number], times[number], 0
        while place < len(word):
            if tuple(word[place : place + 2]) != pair:
                place += 1
                continue
            change(pair, number, -many)
            for left in word[place - 1 : place] if place else ():
                change((left, pair[0]), number, -many)
                change((left, new), number, many)
            for right in word[place + 2 : place + 3]:
                change((pair[1], right), number, -many)
                change((new, right), number, many)
            place += 2
        words[number] = merged(word, pair, new)


@merge_counted.misconception(
    "Where two merges touch, you count pairs with old neighbours. There the neighbour is `new` as well, and (new, new) "
    "is a pair."
)
def old_neighbours_of_counts(
    words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int
) -> None:
    """Read neighbours in the old word, but find the places in the merged word."""
    for number in sorted(where.get(pair, ())):
        word, many, place = words[number], times[number], 0
        while place < len(word):
            if tuple(word[place : place + 2]) != pair:
                place += 1
                continue
            changes = [(pair, -many)]
            for left in word[place - 1 : place] if place else ():
                changes += [((left, pair[0]), -many), ((left, new), many)]
            for right in word[place + 2 : place + 3]:
                changes += [((pair[1], right), -many), ((new, right), many)]
            for each, by in changes:
                counts[each] = counts.get(each, 0) + by
                if counts[each] <= 0:
                    del counts[each]
            place += 2
        for each in pairwise(word):
            where[each] = where[each] - {number}
        words[number] = merged(word, pair, new)
        for each in pairwise(words[number]):
            where[each] = where.get(each, set()) | {number}
    _clean(counts, where)


@merge_counted.misconception(
    "You do not change `where`. New pairs need entries there, and words leave the sets of pairs that they lost."
)
def places_not_changed(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    places = {each: {*numbers} for each, numbers in where.items()}
    _mistake()(words, times, counts, where, pair, new)
    where.clear()
    where.update(places)


@merge_counted.misconception(
    "You give the names `words`, `counts` and `where` to new objects. Change the old ones, which the caller still "
    "holds."
)
def new_objects(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _mistake()([*words], times, dict(counts), {each: {*numbers} for each, numbers in where.items()}, pair, new)


@merge_counted.misconception(
    "The merged word is not written back, so the next merge misses pairs that `counts` has lost. Put it into "
    "`words[number]`."
)
def not_written_back(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    """Raise KeyError in a second merge, which looks for the old word's pairs."""
    for number in sorted(where.get(pair, ())):
        for each in pairwise(words[number]):
            counts[each] -= times[number]
            where[each] = where.get(each, set()) - {number}
            _clean(counts, where)
        for each in pairwise(merged(words[number], pair, new)):
            counts[each] = counts.get(each, 0) + times[number]
            where[each] = where.get(each, set()) | {number}


@merge_counted.misconception("You add 1 for each new pair. Add as many as the word occurs: times[n].")
def added_once(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    for number in sorted(where.get(pair, ())):
        for each in pairwise(words[number]):
            counts[each] -= times[number]
            where[each] = where[each] - {number}
        words[number] = merged(words[number], pair, new)
        for each in pairwise(words[number]):
            counts[each] = counts.get(each, 0) + 1
            where[each] = where.get(each, set()) | {number}
    _clean(counts, where)


@merge_counted.misconception("You count a pair once per word. It may occur twice in one word.")
def once_a_word(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _mistake(tally=lambda pairs: Counter(set(pairs)))(words, times, counts, where, pair, new)


@merge_counted.misconception("You remove the old pairs but do not add the pairs of the merged word.")
def nothing_added(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _mistake(adds=False)(words, times, counts, where, pair, new)


@merge_counted.misconception("You merge the pair once per word. Merge it wherever it occurs.")
def one_place(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _mistake(merge=first_only)(words, times, counts, where, pair, new)


@merge_counted.misconception("In a run such as 7 7 7 you use the token in the middle twice.")
def used_twice(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _mistake(merge=overlapping)(words, times, counts, where, pair, new)


@merge_counted.misconception("You leave entries of 0 in `counts`, and empty sets in `where`. Delete both.")
def zeros_left(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _keep_count(words, times, counts, where, pair, new)


@merge_counted.misconception("You leave entries of 0 in `counts`. A pair that is gone has no entry.")
def zero_counts_left(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _keep_count(words, times, counts, where, pair, new)
    _clean({}, where)


@merge_counted.misconception("You leave empty sets in `where`. A pair that is in no word has no entry.")
def empty_sets_left(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _keep_count(words, times, counts, where, pair, new)
    _clean(counts, {})


@merge_counted.misconception(
    "`where` still names words for pairs that they no longer hold. Remove a word from the sets of pairs that it no "
    "longer holds."
)
def places_stay(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    before = {each: {*numbers} for each, numbers in where.items() if each != pair}
    _mistake()(words, times, counts, where, pair, new)
    for each, numbers in before.items():
        where[each] = where.get(each, set()) | numbers


@merge_counted.misconception(
    "You delete the merged pair only. Other pairs of these words are gone, too: their counts are 0, and `where` still "
    "names the words."
)
def merged_pair_only(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _left_behind(words, times, counts, where, pair, new)
    where.pop(pair, None)
    counts.pop(pair, None)


@merge_counted.misconception(
    "You delete nothing. Pairs that are gone have a count of 0 now, and `where` still names their words."
)
def nothing_deleted(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _left_behind(words, times, counts, where, pair, new)


def _left_behind(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    before = {each: {*numbers} for each, numbers in where.items()}
    _keep_count(words, times, counts, where, pair, new)
    for each, numbers in before.items():
        where[each] = where[each] | numbers


@merge_counted.misconception(
    "After your call nothing has changed. `words = …` only binds the name to a new list: assign to words[number]."
)
def nothing_changes(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    """Work only on copies, so that the inputs stay unchanged."""


@merge_counted.misconception(
    "You fail on a pair with the new token, which has no entry yet. Start its count from 0: counts.get(each, 0), and "
    "its entry in `where` from an empty set."
)
def no_first_count(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    for number in sorted(where.get(pair, ())):
        for each in pairwise(merged(words[number], pair, new)):
            counts[each] += times[number]


@merge_counted.misconception(
    "`where` loses a word that still holds the pair: first remove the word from its old pairs, then add it for every "
    "pair that it holds now, also for those that stayed."
)
def places_lost(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    held = [(number, set(pairwise(words[number]))) for number in where.get(pair, ())]
    _mistake()(words, times, counts, where, pair, new)
    for number, old in held:
        for each in old & where.keys():
            where[each].discard(number)
    _clean({}, where)


@merge_counted.misconception("You never add the new pairs to `where`, so the next merge does not find them.")
def places_not_added(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    known = {*where}
    _mistake()(words, times, counts, where, pair, new)
    for each in where.keys() - known:
        del where[each]


@merge_counted.misconception("You change the counts but not `words`: store each merged word back in its place.")
def words_stay(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    old = {number: words[number] for number in where.get(pair, ())}
    _mistake()(words, times, counts, where, pair, new)
    for number, word in old.items():
        words[number] = word


@merge_counted.misconception(
    "The results are right, but you look at all words. Most do not contain the pair: loop over `where[pair]`."
)
def all_words(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    counts.clear()
    where.clear()
    for number, word in enumerate(words):
        words[number] = merged(word, pair, new)
        for each in pairwise(words[number]):
            counts[each] = counts.get(each, 0) + times[number]
            where.setdefault(each, set()).add(number)


@merge_counted.misconception(
    "The results are right, but you write the counts of all pairs. Write only the counts that change."
)
def all_counts(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    _mistake()(words, times, counts, where, pair, new)
    counts.update(dict(counts))


@merge_counted.misconception(
    "You recount only the words that contain the pair, and lose the counts of all other words."
)
def other_words_lost(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    numbers = sorted(where.get(pair, ()))
    if numbers:
        counts.clear()
        where.clear()
    for number in numbers:
        words[number] = merged(words[number], pair, new)
        for each in pairwise(words[number]):
            counts[each] = counts.get(each, 0) + times[number]
            where.setdefault(each, set()).add(number)


@merge_counted.misconception(
    "You change `where[pair]` while you loop over it, and Python raises an error. Loop over a copy: list(where[pair])."
)
def walked_while_changed(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    for number in where.get(pair, set()):
        for each in pairwise(words[number]):
            counts[each] -= times[number]
            where[each].discard(number)
        words[number] = merged(words[number], pair, new)
        for each in pairwise(words[number]):
            counts[each] = counts.get(each, 0) + times[number]
            where.setdefault(each, set()).add(number)
    _clean(counts, where)


@merge_counted.misconception(
    "You raise an error for a pair that does not occur. It has no entry in `where`: change nothing."
)
def fails_on_nothing(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> None:
    assert where[pair]
    _mistake()(words, times, counts, where, pair, new)


@merge_counted.misconception("You return the words. Change them in place, and return nothing.")
def returns_words(words: Words, times: list[int], counts: Counts, where: Where, pair: Pair, new: int) -> Words:
    _mistake()(words, times, counts, where, pair, new)
    return [*list.__iter__(words)]


for right_answer in RIGHT_COUNTING:
    merge_counted.variant(right_answer)
