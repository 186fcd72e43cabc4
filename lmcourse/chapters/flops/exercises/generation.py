"""The exercise on the FLOPs of generation."""

from __future__ import annotations

from fractions import Fraction
from functools import cache as remember
from random import Random

import numpy as np

from lmcourse.chapters.flops.counted import product
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER


@remember
def _weights(d_model: int, vocab_size: int) -> tuple[int, int]:
    """FLOPs of one token with a layer's matrices and with the head."""
    square = product((1, d_model), (d_model, d_model))
    wide = product((1, d_model), (d_model, 4 * d_model)) + product((1, 4 * d_model), (4 * d_model, d_model))
    return 4 * square + wide, product((1, d_model), (d_model, vocab_size))


@remember
def _attention(queries: int, keys: int, d_model: int) -> int:
    return product((queries, d_model), (d_model, keys)) + product((queries, keys), (keys, d_model))


def _generation(prompt: int, new: int, layers: int, d_model: int, vocab_size: int, cache: bool = True) -> int:
    """Let torch count the products, pass by pass. The last written token is never read."""
    token, head = _weights(d_model, vocab_size)
    passes = [(prompt, prompt), *((1 if cache else length, length) for length in range(prompt + 1, prompt + new))]
    return new and sum(
        layers * (queries * token + _attention(queries, keys, d_model)) + head for queries, keys in passes
    )


def _cases(random: Random) -> list[Case]:
    def sizes() -> list[int]:
        # odd numbers, whose total a float32 almost never holds exactly
        return [random.randrange(3, 41, 2), random.randrange(101, 4001, 2), random.randrange(301, 99_999, 2)]

    def text() -> list[int]:
        return [random.randint(2, 300), random.randint(3, 40)]

    return [
        case("a prompt of one token", 1, 1, 2, 8, 11),
        case("a prompt of one token", 1, 4, 2, 8, 11),
        case("without a cache", 1, 4, 2, 8, 11, cache=False),
        case("without a cache", 3, 4, 1, 8, 11, cache=False),
        case("other models and texts", 5, 2, 3, 8, 11),
        *(case("other models and texts", *text(), *sizes()) for _ in range(3)),
        *(case("without a cache", *text(), *sizes(), cache=False) for _ in range(2)),
        case("a prompt of one token", 1, random.randint(3, 40), *sizes()),
        case("one token to write", random.randint(2, 300), 1, *sizes()),
        case("one token to write", random.randint(2, 300), 1, *sizes(), cache=False),
        edge(case("no token to write", random.randint(2, 300), 0, *sizes(), cache=False)),
    ]


generation_flops = Exercise(
    "generation_flops",
    points=3,
    minutes=9,
    difficulty=3,
    reference=_generation,
    cases=[
        case("a prompt of 3, one token to write", 3, 1, 1, 8, 100),
        case("a prompt of 3, 4 tokens to write", 3, 4, 2, 8, 100),
        case("the same without a cache", 3, 4, 2, 8, 100, cache=False),
        case("GPT-2 small, 50 tokens after 100", 100, 50, 12, 768, 50_257),
        case("a prompt of one token, without a cache", 1, 5, 3, 8, 100, cache=False),
        edge(case("no token to write", 3, 0, 2, 8, 100)),
    ],
    hidden_cases=_cases,
    hints=[
        "List the passes: one over the prompt, then new − 1 more. The last token is written and never read.",
        "How many FLOPs does a pass take if its q tokens see k keys each? Count the weights once per token, scores and "
        "values per pair.",
        "A pass takes layers · (24·q·d² + 4·q·k·d), and 2·d·vocab_size for one token's logits. What are q and k in the "
        "pass that reads the first new token?",
    ],
    forbid=NO_COUNTER,
)


@generation_flops.variant
def pass_after_pass(prompt: int, new: int, layers: int, d_model: int, vocab_size: int, cache: bool = True) -> int:
    passes = [(prompt, prompt)][:new]
    for length in range(prompt + 1, prompt + new):
        passes.append((1 if cache else length, length))
    flops = 0
    head = 2 * d_model * vocab_size
    for queries, keys in passes:
        weights = 24 * queries * d_model**2
        pairs = 4 * queries * keys * d_model
        flops += layers * (weights + pairs) + head
    return flops


generation_flops.slips(
    pass_after_pass,
    {
        "[:new] → ": "You read the prompt although no token is asked for. With `new` = 0 there is no pass.",
        "layers * (weights → (weights": "You count one layer. Every layer does all of this.",
        "prompt + new → prompt + new + 1": "You count one pass too many. The last token is written but never read.",
        "1 if cache else length → length": "Each of your passes reads the whole text again. With a cache, a pass "
        "reads one new token.",
        "1 if cache else length → 1": "Without a cache each pass reads the whole text so far. Your passes read one "
        "token.",
        "+ head → + queries * head": "You compute the logits of every token of a pass. Only the last token's logits "
        "are needed.",
        "[(prompt, prompt)] → []": "The prompt has to be read, too: your count starts with the first new token.",
        "else length, length → else length, length - cache": "Your new tokens do not see themselves, if there is a "
        "cache. With t tokens before it, a new one has t + 1 keys.",
        "else length, length → else length, length - 1": "You count one key too few in every pass after the first. "
        "Each token that is read also sees itself: with t tokens so far, there are t keys.",
        " + head → ": "You leave out the logits. Each pass computes them for its last token: 2 · d · vocab_size.",
        "[(prompt, prompt)] → [(1, length + 1) for length in range(prompt)] if cache else [(prompt, prompt)] ;; + "
        "head → + (head if keys >= prompt else 0)": "You read the prompt token by token, each with the tokens before "
        "it. It is one pass, in which all pairs count.",
        "[(prompt, prompt)] → [(1, length + 1) for length in range(prompt)] if cache else [(prompt, prompt)]": "You "
        "read the prompt token by token, and compute logits for each. It is one pass, with one token's logits.",
        " + head →  ;; return flops → return flops + head": "You count the logits once. Every pass computes them for "
        "its last token.",
        "pairs) + head → pairs + head)": "You count logits in every layer. The head is at the end of the model, once "
        "per pass.",
        "queries * keys → (queries * keys - queries * (queries - 1) // 2)": "You count the pairs that a causal mask "
        "lets through. All pairs of a pass count: q tokens with k keys make q · k.",
        "24 → 8": "You leave out the feed-forward layers: 16 of the 24·d² FLOPs of a token and layer.",
        "[(prompt, prompt)] → [(1 if cache else prompt, prompt)]": "Your first pass reads one token. It reads the "
        "whole prompt.",
        "4 * queries * keys → 4 * keys": "In your passes one token asks. A pass that reads q tokens asks with all of "
        "them.",
        "prompt + new → prompt + new + 1 ;; + head → + (head if keys > prompt else 0)": "You give the prompt a pass "
        "that writes no token. The pass over the prompt writes the first one.",
        " + pairs → ": "You leave out scores and values: that is 2·N for every token that is read.",
        "pairs = 4 → pairs = 2": "You count scores without values. Each key costs two products: 4·d, not 2·d.",
        "queries * keys → queries * queries": "You let a pass see only the tokens that it reads. With a cache the new "
        "token sees all tokens before it: q · k pairs, not q².",
        "range(prompt + 1, prompt + new) → range(prompt, prompt + new)": "You count one pass too many: the pass over "
        "the prompt gives the first new token, so `new` − 1 passes follow.",
        "range(prompt + 1, prompt + new) → range(prompt, prompt + new - 1)": "You count one key too few in each pass "
        "after the first. The pass that reads the first new token sees the prompt and this token.",
        "range(prompt + 1, prompt + new) → range(prompt + 1, prompt + new - 1)": "You count one pass too few. Every "
        "token but the last is read.",
        "range(prompt + 1, prompt + new) → range(1, new)": "Your later passes do not see the prompt. A new token sees "
        "all tokens before it.",
        "else length, length → else length, length + 1": "You count one key too many in each pass after the first. "
        "With t tokens so far, the newest included, there are t keys.",
        "1 if cache else length, length → length if cache else 1, length": "You inverted `cache`.",
        "[(prompt, prompt)] → [(prompt, prompt + new)]": "In your first pass the prompt sees the tokens that come "
        "later. It sees itself: prompt² pairs.",
        "head = 2 → head = 1": "In the logits you count a multiplication and its addition as one FLOP.",
        "24 * queries → 12 * queries ;; pairs = 4 → pairs = 2": "In the layers you count a multiplication and its "
        "addition as one FLOP.",
        "queries * keys → keys * keys": "All tokens so far ask in each of your passes. With a cache only the newest "
        "token does.",
        "24 * queries → 24 * keys": "All tokens so far pass the matrices in each of your passes. With a cache only "
        "the newest token does.",
        "layers * (weights + pairs) → layers * weights + pairs": "You count scores and values of one layer. Every "
        "layer has them.",
        "return flops → return flops - head": "You leave out the logits of one pass. Every pass computes them for its "
        "last token.",
        "return flops → return flops + head": "You compute logits once too often: there are `new` passes.",
        "return flops → return 3 * flops": "You count a training step, three times as much. Generation has no "
        "backward pass.",
        "[(prompt, prompt)] → [] ;; range(prompt + 1, prompt + new) → range(prompt + 1, prompt + new + 1)": "Your "
        "count starts with the first new token and ends with the last. The prompt is read in a first pass, and the "
        "last token is never read.",
        "[(prompt, prompt)] → [] ;; range(prompt + 1, prompt + new) → range(1, new + 1)": "You leave out the prompt. "
        "It is read in the first pass, and every later token sees it.",
        "24 * queries → 16 * queries": "You leave out attention's four projections: 8 of the 24·d² FLOPs of a token "
        "and layer.",
        "+ head → + keys * head": "You compute the logits of all tokens so far in every pass. Only the last token's "
        "logits are needed.",
        "[(prompt, prompt)] → [(prompt, (prompt + 1) / 2)]": "In the first pass you count only the pairs that a "
        "causal mask lets through. All pairs of a pass count: prompt².",
    },
)


@generation_flops.variant
def in_closed_form(prompt: int, new: int, layers: int, d_model: int, vocab_size: int, cache: bool = True) -> Fraction:
    last = prompt + new - 1

    def first(n: int) -> Fraction:
        return Fraction(n * (n + 1), 2)

    def squares(n: int) -> Fraction:
        return Fraction(n * (n + 1) * (2 * n + 1), 6)

    if not new:
        return Fraction(0)
    if cache:
        tokens, pairs = Fraction(last), prompt**2 + first(last) - first(prompt)
    else:
        tokens, pairs = first(last) - first(prompt - 1), squares(last) - squares(prompt - 1)
    return layers * (24 * tokens * d_model**2 + 4 * pairs * d_model) + new * 2 * d_model * vocab_size


@generation_flops.variant
def arrays_of_passes(prompt: int, new: int, layers: int, d_model: int, vocab_size: int, cache: bool = True) -> float:
    keys = np.arange(prompt, prompt + new, dtype=np.float64)
    queries = np.where((keys > prompt) & cache, 1.0, keys)
    layer = (24 * queries * d_model**2 + 4 * queries * keys * d_model).sum()
    return float(layers * layer) + new * 2.0 * d_model * vocab_size
