"""Stories of the course's grammar, and a model's bill for them: nats above the true price, by kind of choice."""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lmcourse.data.grammar import story_grammar
from lmcourse.data.grammar.roles import word_roles


def stories(count: int, seed: int) -> list[str]:
    """Generate this many stories."""
    source, grammar = random.Random(seed), story_grammar()
    return [grammar.generate(source) for _ in range(count)]


class Item(NamedTuple):
    """One kind of choice on a bill: nats above the true price, per piece and per byte of the text, and the pieces."""

    each: float
    per_byte: float
    pieces: int


def kind(piece: str) -> str:
    """Return the kind of choice that a piece of a story makes."""
    if "goes home" in piece:
        return "the hero comes back"
    if role := word_roles().get(piece.strip()):
        return "a noun" if role[1].startswith("noun") else "a verb"
    return "a sum or bracket" if re.search(r"[\d)]", piece) else "the full stop" if piece == "." else "the rest"


def bill(text: str, losses: Sequence[float]) -> dict[str, Item]:
    """Divide a model's losses on the letters of some stories, above the true price, among the kinds of choices."""
    at, above = 0, defaultdict[str, list[float]](list)
    for rule in story_grammar().parse(text):
        above[kind(rule.text)].append(math.fsum(losses[at : at + len(rule.text)]) + math.log(rule.probability))
        at += len(rule.text)
    items = ((name, math.fsum(each), len(each)) for name, each in sorted(above.items()))
    return {name: Item(nats / count, nats / len(text), count) for name, nats, count in items}


def print_bills(bills: Mapping[str, Mapping[str, Item]], details: str) -> None:
    """Print the nats above the true price of some bills, and how many pieces one of them has, with their shares."""
    sums = {name: math.fsum(item.per_byte for item in items.values()) for name, items in bills.items()}
    print(f"{'nats too much per piece':24}", *(f"{name:>7}" for name in bills), f"  {details}: how many  share")
    for name, (_, per_byte, count) in bills[details].items():
        row = (f"{items[name].each:{max(len(head), 7)}.2f}" for head, items in bills.items())
        print(f"{name:24}", *row, f"{count:{len(details) + 12},}{per_byte / sums[details]:7.0%}")
    print(f"{'nats too much per byte':24}", *(f"{each:{max(len(head), 7)}.3f}" for head, each in sums.items()))
