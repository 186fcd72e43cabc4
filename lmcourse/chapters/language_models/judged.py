"""Descriptions of answers, in words that the checks of `faults` and `learn` compare.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.language_models.kinds import counted_table, new_text_price

ALLOWED = 0.8
"""Largest excess of a table's loss over the entropy, as a fraction of the excess of counting."""
Found = dict[str, Any]
Odds = dict[str, float]


def model_a(text: str, context: str) -> Odds:
    return {letter: text.count(context + letter) / text.count(context) for letter in sorted(set(text))}


def model_b(text: str, context: str) -> Odds:
    after = re.findall(re.escape(context) + "(.)", text)
    return {letter: after.count(letter) / len(after) for letter in sorted(set(text))}


def model_c(text: str, context: str) -> Odds:
    after = [following for before, following in pairwise(text) if context in ("", before)]
    return {letter: after.count(letter) / len(after) for letter in sorted(set(text))}


MODELS: dict[str, Callable[[str, str], Odds]] = {"model_a": model_a, "model_b": model_b, "model_c": model_c}
"""The three models, as the notebook prints them."""


def _truth(text: str, context: str) -> Odds | None:
    after = Counter(text[end] for end in range(len(context), len(text)) if text[:end].endswith(context))
    total = sum(after.values())
    return {letter: after[letter] / total for letter in sorted(set(text))} if total else None


def exposed(found: dict[str, tuple[str, str]], name: str) -> str:
    """Describe how a model does on the text and the context that the answer gives for it."""
    if name not in found:
        return f"{name} is missing"
    text, context = found[name]
    right = _truth(text, context)
    if right is None and _truth(context, text) is not None:
        return "the text and the context are swapped"
    if right is None:
        return f"“{context}” is never followed by a letter in “{text}”"
    if name == "model_c" and len(context) > 1:
        return "model_c is for contexts of at most one letter"
    try:
        given = MODELS[name](text, context)
    except ZeroDivisionError:
        return f"{name} is wrong there"
    is_right = all(abs(given[letter] - right[letter]) < 1e-9 for letter in right)
    return f"{name} is right there" if is_right else f"{name} is wrong there"


def compare_with_counts(found: dict[str, tuple[str, str]], ngram: Callable[..., list[float]]) -> None:
    """Print what each faulty model says on the text that exposes it, beside the counts of a right one."""
    for name, (text, context) in found.items():
        letters = sorted(set(text))
        counted = ngram([letters.index(x) for x in text], [letters.index(x) for x in context], len(letters))
        try:
            given = "  ".join(f"{letter} {p:.2f}" for letter, p in MODELS[name](text, context).items())
        except ZeroDivisionError:
            given = "0 / 0"
        told = "  ".join(f"{letter} {p:.2f}" for letter, p in zip(letters, counted, strict=True))
        print(f"{name} in {text!r} after {context!r}: {given}   ngram: {told}")


def _sums_to_one(p: Tensor, dim: int) -> bool:
    return bool(((p.sum(dim=dim) - 1).abs() < 1e-3).all() and (p >= 0).all())


def rows(found: Found, v: int) -> str:
    """Describe the kind of numbers in the rows of the table."""
    log_p = torch.as_tensor(found["log_p"]).detach()
    if log_p.shape != (v, v):
        return f"a table of shape {tuple(log_p.shape)}"
    if _sums_to_one(log_p.exp(), 1):
        return "log-probabilities"
    if _sums_to_one(log_p, 1):
        return "probabilities"
    return "a distribution in each column" if _sums_to_one(log_p.exp(), 0) else "rows that do not sum to one"


def _table(found: Found, v: int) -> Tensor:
    """Log-probabilities, converted if the table holds something else: that mistake costs one group's points."""
    log_p = torch.as_tensor(found["log_p"]).detach().double()
    if (kind := rows(found, v)) == "probabilities":
        return log_p.log()
    return log_p.T if kind.endswith("column") else log_p.log_softmax(dim=1)


def pairs_of(text: Tensor) -> tuple[Tensor, Tensor, int]:
    """Return the first words and the second words of all pairs, and how many of the pairs are held out."""
    return text[:-1], text[1:], (len(text) - 1) // 10


def told(found: Found, text: Tensor, v: int) -> list[str]:
    """Describe the quantities that the answer gives as `train` and `held_out`."""
    first, second, kept = pairs_of(text)
    log_p = _table(found, v)
    forwards, backwards = -log_p[first, second], -log_p[second, first]
    names = []
    for name, part in (("train", slice(None, -kept)), ("held_out", slice(-kept, None))):
        right = forwards[part].mean().item()
        known = {
            f"nats per word on the {'first nine tenths' if name == 'train' else 'last tenth'}": right,
            "bits per word": right / math.log(2),
            "a sum over words": right * len(forwards[part]),
            "nats per word on the whole text": forwards.mean().item(),
            "the price of the words before": backwards[part].mean().item(),
        }
        number = float(found[name])
        fits = [label for label, value in known.items() if math.isclose(number, value, rel_tol=0.002)]
        nearly = "nearly the nats per word of log_p, but of other pairs or of another table"
        factor = number / right
        names.append(fits[0] if fits else nearly if abs(factor - 1) < 0.25 else f"{factor:.2f} times the nats of log_p")
    return names


def fresh(found: Found, text: Tensor, P: Tensor) -> str:
    """Describe whether the last tenth is new text for the table: its loss should be as high as on all new text."""
    first, second, kept = pairs_of(text)
    log_p = _table(found, len(P))
    above = (P.log() - log_p)[first[-kept:], second[-kept:]].mean().item()
    is_new = above > 0.35 * (new_text_price(log_p, P) - new_text_price(P.log(), P))
    return "the last tenth is new to the table" if is_new else "the table was trained on the last tenth, too"


def against_single_words(found: Found, text: Tensor, P: Tensor) -> str:
    """Compare with a table in which every row is the word frequencies of the text."""
    counts = torch.bincount(text, minlength=len(P)).double() + 0.1
    alone = (counts / counts.sum()).log().expand(len(P), len(P))
    difference = new_text_price(_table(found, len(P)), P) - new_text_price(alone, P)
    how = "as expensive as" if abs(difference) < 0.05 else "cheaper than" if difference < 0 else "more expensive than"
    return f"{how} without the word before"


def _is_symmetric(log_p: Tensor) -> bool:
    """Return True if the logits of two words are the same in both orders, but for a bias of each word."""
    turned = log_p - log_p.T
    column = turned.mean(dim=0)
    return bool((turned - (column - column[:, None])).abs().max() < 1e-3 and log_p.std(dim=0).max() > 1e-2)


def against_counting(found: Found, text: Tensor, P: Tensor) -> str:
    """Compare what a table and smoothed counts overpay on new text; describe a worse table's training, and rank."""
    log_p = _table(found, len(P))
    table, counts, entropy = (new_text_price(each, P) for each in (log_p, counted_table(text, len(P)), P.log()))
    if table - entropy <= ALLOWED * (counts - entropy):
        return f"at most {ALLOWED} of what counting overpays"
    first, second, kept = pairs_of(text)
    above = (P.log() - log_p)[first[:-kept], second[:-kept]].mean()
    own = "less" if above < 0 else "more"
    rank = "full" if torch.linalg.matrix_rank(log_p, rtol=1e-4) > len(P) / 2 else "low"
    rank = "symmetric, low" if rank == "low" and _is_symmetric(log_p) else rank
    return f"more than {ALLOWED} of it; {own} than the source on the text it trains on; {rank} rank"
