"""Right ways to learn merges, as learners might write them."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise


def all_in_one(words: dict[str, int], merges: int) -> list[tuple[int, int]]:
    """Count and merge without using earlier answers."""
    texts = {word: list(word.encode("utf-8")) for word in words}
    learned: list[tuple[int, int]] = []
    for new in range(256, 256 + merges):
        counts: dict[tuple[int, int], int] = defaultdict(int)
        for word, text in texts.items():
            for i in range(len(text) - 1):
                counts[text[i], text[i + 1]] += words[word]
        frequent = [(-count, pair) for pair, count in counts.items() if count >= 2]
        if not frequent:
            break
        best = sorted(frequent)[0][1]
        learned.append(best)
        for word, text in texts.items():
            shorter, i = [], 0
            while i < len(text):
                if i + 1 < len(text) and (text[i], text[i + 1]) == best:
                    shorter.append(new)
                    i += 2
                else:
                    shorter.append(text[i])
                    i += 1
            texts[word] = shorter
    return learned


def by_recursion(words: dict[str, int], merges: int) -> list[tuple[int, int]]:
    """Do one merge, then call the function again for the rest."""

    def learn(texts: list[tuple[list[int], int]], left: int, new: int) -> list[tuple[int, int]]:
        counts: Counter[tuple[int, int]] = Counter()
        for text, many in texts:
            for pair in pairwise(text):
                counts[pair] += many
        if left == 0 or not counts or max(counts.values()) < 2:
            return []
        most = max(counts.values())
        best = min(pair for pair, count in counts.items() if count == most)
        shorter = []
        for text, many in texts:
            out: list[int] = []
            fresh = False
            for token in text:
                if fresh and out[-1] == best[0] and token == best[1]:
                    out[-1], fresh = new, False
                else:
                    out.append(token)
                    fresh = True
            shorter.append((out, many))
        return [best, *learn(shorter, left - 1, new + 1)]

    return learn([(list(word.encode()), many) for word, many in words.items()], merges, 256)


def with_strings(words: dict[str, int], merges: int) -> list[tuple[int, int]]:
    """Represent tokens as characters of one string, so that str.replace merges them."""
    texts = ["".join(map(chr, word.encode())) for word in words]
    learned: list[tuple[int, int]] = []
    while len(learned) < merges:
        counts: Counter[str] = Counter()
        for text, many in zip(texts, words.values(), strict=True):
            for left, right in pairwise(text):
                counts[left + right] += many
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if not ranked or ranked[0][1] <= 1:
            return learned
        pair = ranked[0][0]
        texts = [text.replace(pair, chr(256 + len(learned))) for text in texts]
        learned.append((ord(pair[0]), ord(pair[1])))
    return learned


RIGHT_TRAINING = (all_in_one, by_recursion, with_strings)
