"""A dirty pool of documents, made of stories, copies, noise and help texts; and clean paragraphs to compare with.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache

from lmcourse.data.corpus_sources import stories
from lmcourse.data.grammar.stories import TOPICS
from lmcourse.data.help_texts import help_texts
from lmcourse.pretrained import load_pretrained

LETTERS = "abcdefghijklmnopqrstuvwxyz"
RARE = ("wood", "town", "space")
HELD_OUT, CLEAN, TRUSTED = 999, 555, 777
"""Seeds of the paragraphs that are held out, of clean text to train on, and of the trusted ones. Pools use others."""


@cache
def paragraphs(seed: int, count: int) -> tuple[str, ...]:
    """Return paragraphs of the stories of notebook 05, each with its line break."""
    found: list[str] = []
    for story in stories(count, seed):
        found += [f"{line}\n" for line in story.split("\n") if line]
        if len(found) >= count:
            break
    return tuple(found[:count])


def place(document: str) -> str:
    """Return the place that a document's first sentence names: "sea", "wood", "town", "space", or "" for none."""
    first = document.split(".")[0]
    return next((name for name, topic in TOPICS.items() if topic.place in first), "")


@cache
def trusted() -> tuple[str, ...]:
    """Return twenty clean paragraphs, five of each place."""
    each = paragraphs(TRUSTED, 200)
    return tuple(p for name in TOPICS for p in [p for p in each if place(p) == name][:5])


@cache
def pool(seed: int = 0, rare: bool = False) -> tuple[str, ...]:
    """Return the documents of a pool, in random order. If `rare`, the copied ones are of the rare places."""
    return tuple(document for document, _ in _documents(seed, rare))


@cache
def kinds(seed: int = 0, rare: bool = False) -> dict[str, str]:
    """Return the kind of each document of a pool."""
    return dict(_documents(seed, rare))


@cache
def _documents(seed: int, rare: bool) -> list[tuple[str, str]]:
    source = random.Random(1000 + seed)
    by_place: dict[str, list[str]] = {name: [] for name in TOPICS}
    for p in paragraphs(17 * seed + 1, 4000):
        by_place[place(p)].append(p)
    if rare:
        copied = [p for name in RARE for p in by_place[name][400:404]]
        misspelt = [p for name in RARE for p in by_place[name][410:414]]
    else:
        copied, misspelt = by_place["sea"][400:412], by_place["sea"][420:432]
    made = {
        **{f"true, {name}": by_place[name][: 40 if name in RARE else 360] for name in TOPICS},
        "copies": [p for p in copied for _ in range(25)],
        "near copies": [_with_typos(p, source) for p in misspelt for _ in range(25)],
        "false sums": [_false(p, source) for p in by_place["wood"][500:] if "Now" in p][:80],
        "shuffled": [_shuffled(p, source) for p in by_place["town"][500:620]],
        "shuffled after a start": [
            p[: p.index(".") + 2] + _shuffled(p[p.index(".") + 2 :], source)
            for name in RARE
            for p in by_place[name][700:780]
        ],
        "help": _help_pieces(source, 250),
    }
    documents = [(document, kind) for kind, each in made.items() for document in each]
    source.shuffle(documents)
    return documents


def _with_typos(text: str, source: random.Random) -> str:
    letters = list(text)
    for _ in range(max(1, len(text) // 60)):
        letters[source.randrange(len(text) - 1)] = source.choice(LETTERS)
    return "".join(letters)


def _false(text: str, source: random.Random) -> str:
    return re.sub(r"Now (\d)", lambda found: f"Now {(int(found[1]) + source.randint(1, 9)) % 10}", text)


def _shuffled(text: str, source: random.Random) -> str:
    words = text.split()
    source.shuffle(words)
    return f"{' '.join(words)}\n"


@cache
def _help() -> str:
    """Return the beginning of Python's help texts, without letters that are not ASCII."""
    text = load_pretrained().tokenizer.decode(help_texts()[0][:40_000].tolist())
    return re.sub(r"[^\x20-\x7e\n]", "", text).replace("\n", " ")


def _help_pieces(source: random.Random, count: int) -> list[str]:
    text = _help()
    starts = (source.randrange(len(text) - 800) for _ in range(count))
    return [f"{text[start : start + source.randint(200, 800)]}\n" for start in starts]


def letters_of(documents: Sequence[str]) -> int:
    """Return the length of documents, all together."""
    return sum(map(len, documents))


def made_of(chosen: Sequence[str], seed: int = 0) -> dict[str, int]:
    """Return the letters of each kind in documents chosen from the first pool of a seed."""
    named, found = kinds(seed), dict[str, int]()
    for document in chosen:
        found[named[document]] = found.get(named[document], 0) + len(document)
    return dict(sorted(found.items()))
