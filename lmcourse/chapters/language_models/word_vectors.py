"""Vectors of words from the words around them, and what they know about the words of the stories."""

from __future__ import annotations

import re
from itertools import permutations
from typing import NamedTuple

import numpy as np

from lmcourse.data.grammar.roles import word_roles

SIZE = 16


class Judged(NamedTuple):
    """Fractions: of the squares of the matrix that the vectors keep, of nearest neighbours with the same topic and with
    the same role, and of plural analogies that come out."""

    kept: float
    topic: float
    role: float
    plurals: float


def judge_vectors(text: str, window: int) -> Judged:
    """Make a vector for each word of some stories, from the words up to `window` places away, and judge them."""
    tokens = re.findall(r"\w+|[^\w\s]", text)
    words = sorted(set(tokens))
    place = {word: index for index, word in enumerate(words)}
    t = np.array([place[token] for token in tokens])
    met = np.zeros((len(words), len(words)))
    for distance in range(1, window + 1):
        np.add.at(met, (t[:-distance], t[distance:]), 1)
    joint = (met + met.T) / (2 * met.sum())
    chance = np.outer(joint.sum(axis=0), joint.sum(axis=0))
    left, strength, _ = np.linalg.svd(np.log(np.maximum(joint / chance, 1)))
    vectors = left[:, :SIZE] * strength[:SIZE]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    roles = word_roles()
    known = [place[word] for word in words if word in roles]
    nearest = (unit[known] @ unit[known].T - 2 * np.eye(len(known))).argmax(axis=1)
    pairs = [(roles[words[i]], roles[words[known[j]]]) for i, j in zip(known, nearest, strict=True)]
    topic, role = (sum(a[part] == b[part] for a, b in pairs) / len(pairs) for part in (0, 1))
    nouns = [word for word in words if roles.get(word, ("", ""))[1] == "noun" and f"{word}s" in place]
    right = []
    for a, c in permutations(nouns, 2):
        score = unit @ (vectors[place[f"{a}s"]] - vectors[place[a]] + vectors[place[c]])
        score[[place[a], place[f"{a}s"], place[c]]] = -np.inf
        right.append(score.argmax() == place[f"{c}s"])
    kept = float((strength[:SIZE] ** 2).sum() / (strength**2).sum())
    return Judged(kept, topic, role, sum(right) / len(right))
