"""The exercise on a merge that updates the counts of all pairs, and reads only the words with the pair."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

from lmcourse.chapters.tokens_and_data.exercises.merging import with_a_string as merged  # noqa: F401 - slips use it
from lmcourse.data.corpus_sources import stories
from lmcourse.data.tokenizers.pre_tokenizer import split_words
from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise

Pair = tuple[int, int]
Words = list[list[int]]

_SHOWN = "text.words\ntext.counts\ntext.where\ntext.work"


def _tried(name: str, words: Words, times: list[int], *pairs: Pair) -> Case:
    """A case with several merges, which returns the words, counts and places after each."""
    lines = [
        "from lmcourse.chapters.tokens_and_data.counted_text import CountedText  # in the notebook",
        f"text = CountedText({words}, {times})",
    ]
    for new, pair in enumerate(pairs, start=256):
        lines += [f"text.merge(merge_counted, {pair}, {new})", _SHOWN]
    return script(name, "\n".join(lines))


def _of_stories(count: int, merges: int) -> Case:
    """A case that merges the most frequent pairs of many stories."""
    words = dict(Counter(word for story in stories(count) for word in split_words(story)))
    lines = (
        "from lmcourse.chapters.tokens_and_data.counted_text import CountedText  # in the notebook\n"
        "from lmcourse.data.tokenizers.bpe import learn_merges\n"
        f"merges = learn_merges([word for word, many in words.items() for _ in range(many)], {merges})\n"
        "text = CountedText.of_bytes(words).train(merge_counted, merges)\n"
        f"{_SHOWN}\ntext.looks"
    )
    return script("stories", lines, words=words)


def out_and_in(
    words: list[list[int]],
    times: list[int],
    counts: dict[tuple[int, int], int],
    where: dict[tuple[int, int], set[int]],
    pair: tuple[int, int],
    new: int,
) -> None:
    for number in sorted(where.get(pair, ())):
        old, young, at = words[number], [], 0
        while at < len(old):
            here = tuple(old[at : at + 2]) == pair
            young.append(new if here else old[at])
            at += 2 if here else 1
        words[number] = young
        gone, come = [*pairwise(old)], [*pairwise(young)]
        for each in gone:
            counts[each] = counts.get(each, 0) - times[number]
            where.setdefault(each, set()).discard(number)
        for each in come:
            counts[each] = counts.get(each, 0) + times[number]
            where.setdefault(each, set()).add(number)
        for each in {*gone, *come}:
            if not counts[each]:
                del counts[each]
            if not where[each]:
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
    points=4,
    minutes=12,
    difficulty=3,
    reference=out_and_in,
    cases=[
        _tried("one word", [[5, 1, 2, 6]], [1], (1, 2)),
        _tried("in the middle of a long word", [[3, 4, 5, 1, 2, 6, 7]], [1], (1, 2)),
        _tried("three times", [[5, 1, 2, 6]], [3], (1, 2)),
        _tried("two words hold it, two do not", [[5, 1, 2], [1, 2, 6], [5, 1], [6, 7]], [2, 3, 4, 5], (1, 2)),
        _tried("a neighbour pair is there twice", [[5, 1, 2, 5, 1], [5, 1]], [2, 3], (1, 2)),
        _tried("twice in a word", [[1, 2, 3, 1, 2, 3]], [2], (1, 2)),
        _tried("side by side: two new tokens are neighbours", [[1, 2, 1, 2]], [1], (1, 2)),
        _tried("a run", [[7, 7, 7, 7], [7, 7, 7]], [1, 2], (7, 7)),
        edge(_tried("one merge after another", [[5, 1, 2, 6], [1, 2, 6], [2, 6]], [1, 2, 3], (1, 2), (256, 6))),
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


merge_counted.variant(out_and_in)
merge_counted.slips(
    out_and_in,
    {
        "[*pairwise(old)], [*pairwise(young)] → ([each for each in pairwise(text) if each[1] != pair[0] or each == "
        "pair or new in each] for text in (old, young))": "A pair on the *left* of the merge is gone, and you still "
        "count it.",
        "[*pairwise(old)], [*pairwise(young)] → ([each for each in pairwise(text) if each[0] != pair[1] or each == "
        "pair or new in each] for text in (old, young))": "A pair on the *right* of the merge is gone, and you still "
        "count it.",
        "[*pairwise(old)], [*pairwise(young)] → [each for each in pairwise(old) if each == pair], [each for each in "
        "pairwise(young) if new in each]": "You add the pairs with the new token, and still count the pairs that were "
        "on both sides of the merge.",
        "[*pairwise(old)] → [each for each in pairwise(old) if each != pair]": "You still count the pair that you "
        "merged. It no longer occurs.",
        "- times[number] → - 1 ;; + times[number] → + 1": "You count each word once. A word that occurs three times "
        "changes a count by three.",
        "- times[number] → - 1 ;; + times[number] → + 1 ;; if not counts[each] → if not where[each]": "You change a "
        "count by 1 for each place of a word. A word occurs times[n] times, and so does every pair in it.",
        "            where.setdefault(each, set()).discard(number)\n →  ;; if not where[each] → if "
        "each not in counts": "You take a word out of `where` only when the count of a pair falls to 0. A word leaves "
        "as soon as its own last place of the pair is gone.",
        "            where.setdefault(each, set()).discard(number)\n →  ;;             where.setdefault(each, "
        "set()).add(number)\n →  ;;             if not where[each]:\n                del where[each]\n → ": "You do "
        "not change `where`. New pairs need entries there, and words leave the sets of pairs that they lost.",
        "for number in sorted → words, counts = [*words], dict(counts)\n    where = {each: {*numbers} for each, "
        "numbers in where.items()}\n    for number in sorted": "You give the names `words`, `counts` and `where` to "
        "new objects. Change the old ones, which the caller still holds.",
        "for number in sorted → counts, where = dict(counts), {each: {*numbers} for each, numbers in "
        "where.items()}\n    [*words]\n    for number in sorted": "You give the names `counts` and `where` to new "
        "objects. Change the old ones, which the caller still holds.",
        "for number in sorted(where.get(pair, ())) → counts.pop(pair, None)\n    for number in sorted(where.pop(pair, "
        "()))": "You take the entry of the pair out first, and then subtract its places: a count below 0 stays. Take "
        "it out at the end.",
        "where.get(pair, ()) → where.pop(pair)": "For a pair that is nowhere your answer raises KeyError: `pop` needs "
        "a default, and `del` an entry.",
        "+ times[number] → + 1": "You add 1 for each new pair. Add as many as the word occurs: times[n].",
        "[*pairwise(old)], [*pairwise(young)] → {*pairwise(old)}, {*pairwise(young)} || [*pairwise(old)], "
        "[*pairwise(young)] → {*pairwise(old)}, {*pairwise(young)} ;; if not counts[each] → if not where[each]": "You "
        "count a pair once per word. It may occur twice in one word.",
        "[*pairwise(young)] → []": "You remove the old pairs but do not add the pairs of the merged word.",
        "here = tuple → here = new not in young and tuple": "You merge the pair once per word. Merge it wherever it "
        "occurs.",
        "at += 2 if here else 1 → at += 2 if here and tuple(old[at + 1 : at + 3]) != pair else 1": "In a run such as 7 "
        "7 7 you use the token in the middle twice.",
        "            where.setdefault(each, set()).discard(number)\n →  ;; for each in {*gone, *come}: → for each in "
        "gone:\n            where.setdefault(each, set()).discard(number)\n        for each in {*gone, *come}: ;; del "
        "counts[each]\n            if not where[each]:\n                del where[each] → del counts[each], "
        "where[each] ||             where.setdefault(each, set()).discard(number)\n →  ;; for each in {*gone, *come}: "
        "→ for each in gone:\n            where.setdefault(each, set()).discard(number)\n        for each in {*gone, "
        "*come}:": "`where` loses a word that still holds the pair: first remove the word from its old pairs, then add "
        "it for every pair that it holds now, also for those that stayed.",
        "        words[number] = young\n →  ;; {*gone, *come} → {*gone} ;; del counts[each]\n            if not "
        "where[each]:\n                del where[each] → del counts[each], where[each] ||         words[number] = "
        "young\n → ": "You change the counts but not `words`: store each merged word back in its place.",
        "{*gone, *come} → ()": "You leave entries of 0 in `counts`, and empty sets in `where`. Delete both.",
        "            if not counts[each]:\n                del counts[each]\n → ": "You leave entries of 0 in "
        "`counts`. A pair that is gone has no entry.",
        "            if not where[each]:\n                del where[each]\n → ": "You leave empty sets in `where`. A "
        "pair that is in no word has no entry.",
        "where.setdefault(each, set()).discard(number) → if "
        "each == pair:\n                where[each].discard(number)": "`where` still names words for pairs that they "
        "no longer hold. Remove a word from the sets of pairs that it no longer holds.",
        "            where.setdefault(each, set()).discard(number)\n →  ;; {*gone, *come} → ()": "You delete nothing. "
        "Pairs that are gone have a count of 0 now, and `where` still names their words.",
        "sorted(where.get(pair, ())) → ()": "After your call nothing has changed. `words = …` only binds the name to a "
        "new list: assign to words[number].",
        "for number in sorted → known = {*where}\n    for number in sorted ;; where.setdefault(each, "
        "set()).add(number) → if each in known:\n                where.setdefault(each, set()).add(number) ;; if not "
        "where[each]: → if not where.get(each, {number}):": "You never add the new pairs to `where`, so the next merge "
        "does not find them.",
        "sorted(where.get(pair, ())) → range(len(words))": "The results are right, but you look at all words. Most do "
        "not contain the pair: loop over `where[pair]`.",
        "del where[each] → del where[each]\n    counts.update(dict(counts))": "The results are right, but you write "
        "the counts of all pairs. Write only the counts that change.",
        "sorted(where.get(pair, ())) → where.get(pair, ())": "You change `where[pair]` while you loop over it, and "
        "Python raises an error. Loop over a copy: list(where[pair]).",
        "where.get(pair, ()) → where[pair]": "Reading `where[pair]` of a pair that is nowhere adds an empty set. Use "
        "where.get(pair, ()).",
        "del where[each] → del where[each]\n    return [*list.__iter__(words)]": "You return the words. Change them in "
        "place, and return nothing.",
    },
)


@merge_counted.variant
def at_the_places_only(
    words: list[list[int]],
    times: list[int],
    counts: dict[tuple[int, int], int],
    where: dict[tuple[int, int], set[int]],
    pair: tuple[int, int],
    new: int,
) -> None:
    if pair not in where:
        return

    def add(left: int, right: int, many: int) -> None:
        counts[left, right] = counts.get((left, right), 0) + many
        if counts[left, right] == 0:
            del counts[left, right]

    for number in list(where[pair]):
        word, many = words[number], times[number]
        old = set(pairwise(word))
        at = 0
        while at < len(word) - 1:
            if (word[at], word[at + 1]) == pair:
                add(*pair, -many)
                if at > 0:
                    add(word[at - 1], pair[0], -many)
                    add(word[at - 1], new, many)
                if at + 2 < len(word):
                    add(pair[1], word[at + 2], -many)
                    add(new, word[at + 2], many)
                word[at : at + 2] = [new]
            at += 1
        now = set(pairwise(word))
        for gone in old - now:
            where[gone].remove(number)
            if not where[gone]:
                where.pop(gone)
        for come in now - old:
            where.setdefault(come, set()).add(number)


merge_counted.slips(
    at_the_places_only,
    {
        "for gone in old - now → for gone in set()": "Words stay in `where` of pairs that they no longer hold. Take a "
        "word's number out wherever its pair has gone.",
        "add(*pair, -many) → pass": "The count of `pair` itself stays. All its places are merged, so it has no entry "
        "left.",
        "word[at : at + 2] = [new] → at += 1 ;; now = set(pairwise(word)) → words[number] = word = merged(word, pair, "
        "new)\n        now = set(pairwise(word)) ;; == 0 → <= 0": "Where two merges touch, you count pairs with old "
        "neighbours. There the neighbour is `new` as well, and (new, new) is a pair.",
    },
)
