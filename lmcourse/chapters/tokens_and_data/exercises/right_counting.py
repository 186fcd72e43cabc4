"""Right ways to merge and update the counts, as learners might write them."""

from __future__ import annotations

from itertools import pairwise


def out_and_in(
    words: list[list[int]],
    times: list[int],
    counts: dict[tuple[int, int], int],
    where: dict[tuple[int, int], set[int]],
    pair: tuple[int, int],
    new: int,
) -> None:
    for i in sorted(where.get(pair, set())):
        old, shorter, j = list(pairwise(words[i])), [], 0
        while j < len(words[i]):
            if j + 1 < len(words[i]) and words[i][j] == pair[0] and words[i][j + 1] == pair[1]:
                shorter.append(new)
                j += 2
            else:
                shorter.append(words[i][j])
                j += 1
        words[i] = shorter
        for each in old:
            counts[each] -= times[i]
            where[each].discard(i)
        for each in pairwise(shorter):
            counts[each] = counts.get(each, 0) + times[i]
            where.setdefault(each, set()).add(i)
        for each in set(old):
            if not where[each]:
                del where[each], counts[each]


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


def collected_first(
    words: list[list[int]],
    times: list[int],
    counts: dict[tuple[int, int], int],
    where: dict[tuple[int, int], set[int]],
    pair: tuple[int, int],
    new: int,
) -> None:
    change: dict[tuple[int, int], int] = {}
    for number in tuple(where.get(pair, [])):
        text = "".join(chr(token) for token in words[number])
        after = [ord(letter) for letter in text.replace(chr(pair[0]) + chr(pair[1]), chr(new))]
        for sign, tokens in ((-1, words[number]), (1, after)):
            for left, right in pairwise(tokens):
                change[left, right] = change.get((left, right), 0) + sign * times[number]
                if sign < 0:
                    where[left, right] = where[left, right] - {number}
                else:
                    where[left, right] = where.get((left, right), set()) | {number}
        words[number] = after
    for each, by in change.items():
        total = counts.pop(each, 0) + by
        if total:
            counts[each] = total
        if not where[each]:
            del where[each]


RIGHT_COUNTING = (out_and_in, at_the_places_only, collected_first)
