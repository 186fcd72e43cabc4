"""The open task of notebook 07: names in seven languages, and what each reader pays for them with a table of merges."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from random import Random

from babel import Locale

from lmcourse.data.tokenizers.bpe import BPETokenizer, learn_merges
from lmcourse.exercises.open_task import Unfit

Pair = tuple[int, int]
Texts = dict[str, str]
Table = Callable[[Texts], list[Pair]]

READERS = {
    "English": "en",
    "Swahili": "sw",
    "Russian": "ru",
    "Ukrainian": "uk",
    "Hindi": "hi",
    "Marathi": "mr",
    "Burmese": "my",
}
MERGES = 256
_NAMES_PER_LINE = 5
_PARTS = 3
_LONGEST = 1000
_MOST_WORSE = 0.05
"""Other swaps change only how ties fall: the dearest's bill for a third of the lines by 2 % at most, as measured."""


def names_in(code: str) -> dict[tuple[str, str], str]:
    """Return the names of territories, languages, currencies and time zones in a language, by their kind and key.

    They are those of Unicode's CLDR, as Babel has them.
    """
    language = Locale.parse(code)
    kinds = {name: getattr(language, name) for name in ("territories", "languages", "currencies")}
    names = {(kind, str(key)): name for kind, of in kinds.items() for key, name in of.items()}
    for key, zone in language.meta_zones.items():
        long = zone.get("long", {})
        if name := long.get("generic") or long.get("standard"):
            names["zones", key] = name
    return names


def names_for_everybody() -> Texts:
    """Return a text for each reader, five names a line; line number i names the same things in all languages."""
    named = {reader: names_in(code) for reader, code in READERS.items()}
    keys = sorted(set.intersection(*(set(names) for names in named.values())))
    Random(7).shuffle(keys)
    lines = [keys[start : start + _NAMES_PER_LINE] for start in range(0, len(keys), _NAMES_PER_LINE)]
    return {
        reader: "\n".join(", ".join(names[key] for key in line) for line in lines) for reader, names in named.items()
    }


def bills(table: Table, texts: Texts) -> dict[str, int]:
    """Return how many tokens each reader pays, if every line is written with a table that never read it."""
    return dict(sum((_bill(table, texts, part) for part in range(_PARTS)), Counter()))


def _bill(table: Table, texts: Texts, part: int) -> Counter[str]:
    """Return what each reader pays for every third line with a table of the other lines."""
    lines = {reader: text.split("\n") for reader, text in texts.items()}
    kept = {reader: [line for at, line in enumerate(of) if at % _PARTS != part] for reader, of in lines.items()}
    encode = BPETokenizer(table({reader: "\n".join(of) for reader, of in kept.items()})).encode
    return Counter({reader: len(encode("\n".join(of[part::_PARTS]))) for reader, of in lines.items()})


def plain_mix(texts: Texts) -> list[Pair]:
    """Return the merges that are learned from all texts together, each as it is."""
    return learn_merges(texts.values(), MERGES)


def swap_letters(texts: Texts, seed: int) -> Texts:
    """Swap letters of one category whose UTF-8 differs in the last byte alone, in all texts in the same way.

    So a table that was written down beforehand fits no text, and one that is learned is as good as before.
    """
    alike: defaultdict[tuple[str, bytes], list[str]] = defaultdict(list)
    for letter in sorted(set("".join(texts.values()))):
        if (category := unicodedata.category(letter))[0] in "LM":
            alike[category, letter.encode()[:-1]].append(letter)
    random = Random(seed)
    to: dict[int, str] = {}
    for letters in alike.values():
        to |= dict(zip(map(ord, letters), random.sample(letters, len(letters)), strict=True))
    return {reader: text.translate(to) for reader, text in texts.items()}


def inspect_table(answer: Table) -> None:
    """Learn tables from the first lines, with letters swapped in two ways; raise `Unfit` if they are none."""
    names = {reader: "\n".join(text.split("\n")[:6]) for reader, text in names_for_everybody().items()}
    texts, others = swap_letters(names, 2), swap_letters(names, 3)
    before = dict(texts)
    merges = valid(answer(texts))
    if texts != before:
        raise Unfit("Your function changes `texts`. Leave the texts as they are.")
    if valid(answer(before)) != merges:
        raise Unfit("Called again with the same texts, your function returns another table. Draw and keep nothing.")
    if len(merges) > 20 and valid(answer(others)) == merges:  # fewer may have no letters
        raise Unfit("Your function returns the same table for other texts. Learn it from the texts that it is given.")


def valid(table: object) -> list[Pair]:
    """Return a table's merges; raise `Unfit` unless they are at most 256 pairs of earlier tokens for new bytes."""
    if not isinstance(table, list | tuple):
        raise Unfit(f"Return a list of pairs of tokens, not {'None' if table is None else type(table).__name__}.")
    if len(table) > MERGES:
        raise Unfit(f"Your table has {len(table)} merges. At most {MERGES} fit into it.")
    pieces = [bytes([byte]) for byte in range(256)]
    for place, pair in enumerate(table):
        if not (isinstance(pair, list | tuple) and len(pair) == 2 and all(type(token) is int for token in pair)):
            raise Unfit(f"Merge {place} of your table is {pair!r:.40}, not a pair of tokens.")
        if wrong := [token for token in pair if not 0 <= token < 256 + place]:
            raise Unfit(
                f"Merge {place} of your table uses token {wrong[0]}: before it there are tokens 0 to {255 + place}."
            )
        piece = pieces[pair[0]] + pieces[pair[1]]
        if len(piece) > _LONGEST:
            raise Unfit(f"Merge {place} of your table makes {len(piece):,} bytes. No word is so long.")
        if piece in pieces:
            raise Unfit(f"Merge {place} of your table makes the same bytes as merge {pieces.index(piece) - 256}.")
        pieces.append(piece)
    return [(left, right) for left, right in table]


def measure_table(answer: Table, seed: int) -> dict[str, float]:
    """Return what each reader pays, and the dearest's ratio to what the dearest pays with the plain mix.

    The letters are swapped by `seed`. Raises `Unfit` if a table of texts with other swaps is much worse: it was not
    learned from them.
    """
    plain = _plain_dearest(seed)

    def table(rest: Texts) -> list[Pair]:
        return valid(answer(rest))

    texts, others = (swap_letters(names_for_everybody(), swaps) for swaps in (seed, seed + 1))
    paid = [_bill(table, texts, part) for part in range(_PARTS)]
    worse = max(_bill(table, others, 0).values()) / max(paid[0].values()) - 1
    if worse > _MOST_WORSE:
        raise Unfit(
            f"With other letters swapped, the dearest reader pays {100 * worse:.0f} % more. Learn from `texts`."
        )
    total = sum(paid, Counter())
    return {**total, "ratio": max(total.values()) / plain}


@lru_cache
def _plain_dearest(seed: int) -> int:
    return max(bills(plain_mix, swap_letters(names_for_everybody(), seed)).values())


def bill_rows(paid: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield a line for each reader with the tokens of every bill, then sums and the ratio to the first bill."""
    first = max(next(iter(paid.values())).values())
    yield f"{'':10}" + "".join(f"  {name}" for name in paid)
    rows = {reader: [f"{bill[reader]:,}" for bill in paid.values()] for reader in READERS}
    rows["all"] = [f"{sum(bill.values()):,}" for bill in paid.values()]
    rows["ratio"] = [f"{max(bill.values()) / first:.3f}" for bill in paid.values()]
    for name, numbers in rows.items():
        yield f"{name:10}" + "".join(f"{number:>{len(of) + 2}}" for of, number in zip(paid, numbers, strict=True))
