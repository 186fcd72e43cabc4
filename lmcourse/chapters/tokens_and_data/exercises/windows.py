"""The exercise on inputs and targets from a long text."""

from __future__ import annotations

from random import Random

import torch
from jaxtyping import Int
from torch import Tensor

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise

TEN = torch.tensor([50, 51, 52, 53, 54, 55, 56, 57, 58, 59])


def with_slices(tokens: Tensor, starts: list[int], length: int) -> tuple[Tensor, Tensor]:
    if any(not 0 <= start < len(tokens) - length for start in starts):
        raise ValueError("a window does not fit into the text")
    if not starts:
        return torch.zeros(0, length).long(), torch.zeros(0, length).long()
    text = tokens.long()
    inputs = [text[start : start + length] for start in starts]
    targets = [text[start + 1 : start + length + 1] for start in starts]
    return torch.stack(inputs), torch.stack(targets)


def _text(random: Random, count: int, high: int) -> Tensor:
    return torch.tensor([random.randrange(high) for _ in range(count)])


def _dtypes(name: str, kind: str) -> Case:
    lines = (
        f"import torch\ntokens = torch.tensor([5, 6, 7, 8], dtype=torch.{kind})\n"
        "inputs, targets = batch_at(tokens, [0, 1], 2)\ntorch.as_tensor(inputs).dtype, torch.as_tensor(targets).dtype"
    )
    return script(name, lines)


def _hidden(random: Random) -> list[Case]:
    text = _text(Random(7), 30, 60_000)
    cases = [
        case("a window as long as the text allows", text, [0], 29),
        case("a window as long as the text", text, [0], 30),
        case("windows of one token", text, [0, 28, 5], 1),
        case("the last window that fits", text, [22, 0], 7),
        case("one too far", text, [0, 23], 7),
        case("no windows", text, [], 4),
        *(case("a start below zero", text, starts, 4) for starts in ([-1], [3, -30])),
        case("two bytes a token", text.to(torch.uint16), [3, 12], 5),
        case("one byte a token", text.to(torch.uint8), [9, 1], 5),
        case("large tokens", (text + 5_500).to(torch.uint16), [0, 20], 8),
        case("large tokens", torch.tensor([128_255, 70_000, 2**24 + 1, 2**31, 2**40 + 1, -3]), [1, 0], 4),
        case("a text of one token", text[:1], [0], 1),
        *(_dtypes("the kind of numbers", kind) for kind in ("uint16", "uint8", "int64")),
    ]
    for _ in range(3):
        length, count = random.randint(2, 6), random.randint(20, 40)
        # the first start is the largest, so the starts are never in order
        starts = [count - length - 1, *random.sample(range(count - length - 1), random.randint(1, 4))]
        cases.append(case("other texts", _text(random, count, 1000), starts, length))
    return cases


batch_at = Exercise(
    "batch_at",
    points=3,
    minutes=6,
    difficulty=2,
    reference=with_slices,
    cases=[
        case("one window of three", TEN, [2], 3),
        case("two windows", TEN, [5, 0], 4),
        case("the last that fits", TEN, [6], 3),
        case("one further", TEN, [7], 3),
        case("a start below zero", TEN, [-1], 3),
        case("one in the middle does not fit", TEN, [0, 8, 2], 3),
        case("tokens above 32,767", torch.tensor([7, 40_000, 65_535, 8]), [0, 1], 2),
        case("tokens of four bytes", TEN.int(), [0, 1], 2),
        case("no windows", TEN, [], 3),
        _dtypes("what an embedding takes", "int32"),
    ],
    hidden_cases=_hidden,
    hints=[
        "A window of `length` inputs and its targets together are length + 1 tokens of the text.",
        "Make an empty int64 tensor of shape (len(starts), length + 1) and fill it row by row. The inputs are all of "
        "its columns but the last, the targets all but the first.",
        "A slice that reaches beyond the end is cut short without an error: check start + length < len(tokens) "
        "yourself, and start >= 0.",
    ],
)


@batch_at.variant
def with_places(
    tokens: Int[Tensor, " n"], starts: list[int], length: int
) -> tuple[Int[Tensor, "b s"], Int[Tensor, "b s"]]:
    if any(not 0 <= start < len(tokens) - length for start in starts):
        raise ValueError("a window does not fit into the text")
    text = tokens.long()
    places = torch.tensor(starts, dtype=torch.int64)[:, None] + torch.arange(length)
    return text[places], text[places + 1]


batch_at.slips(
    with_places,
    {
        "places + 1 → places": "Your targets equal the inputs. They are the same text one token later.",
        "places + 1 → (places + 2).clamp(max=len(text) - 1)": "Your targets are two tokens later than the inputs. They "
        "are one token later.",
        "len(tokens) - length → len(tokens) - length + 1": "You check that the inputs lie inside the text. The last "
        "target is one token further, and must lie inside, too.",
        '    if any(not 0 <= start < len(tokens) - length for start in starts):\n        raise ValueError("a window '
        'does not fit into the text")\n → ': "You leave the borders to the index: beyond the end it raises IndexError, "
        "and below zero it counts from the end. Check each start, and raise ValueError.",
        "text[places], text[places + 1] → text[places + 1], text[places]": "Your targets are one token *before* the "
        "inputs. They are one token after.",
        "text[places + 1] → text[places].roll(-1, dims=1)": "Your last target is the window's own first token: rolling "
        "wraps round.",
        "len(tokens) - length → len(tokens) - length - 1": "You reject the last window that fits. Its last target is "
        "the text's last token.",
        "torch.tensor(starts, dtype=torch.int64)[:, None] + torch.arange(length) → torch.tensor(starts, "
        "dtype=torch.int64) + torch.arange(length)[:, None]": "Your windows are columns. Return a row for each window: "
        "shape (B, S).",
        "text[places + 1] → text[places[:, -1] + 1]": "You return one target for each window. Each of its inputs has a "
        "target.",
        "places + 1 → (places + length) % len(text)": "Your targets are the next window. They are this window, one "
        "token later.",
        "text[places], text[places + 1] → text[places].to(tokens.dtype), text[places + 1].to(tokens.dtype)": "Your "
        "windows are not int64. Return int64, which an embedding takes.",
        "not 0 <= start → not start": "You let a start below zero count from the end. Raise ValueError.",
        "starts, dtype=torch.int64 → starts": "`torch.tensor([])` holds floats, which cannot be an index: give it "
        "dtype=torch.int64.",
        "[:, None] → [:, None] * length % max(len(text) - length, 1)": "You treat the starts as window numbers. They "
        "are places in the text.",
        "tokens.long() → tokens.short().long()": "Your tokens pass through int16, which ends at 32,767. Convert them "
        "to int64 at once.",
    },
)


batch_at.variant(with_slices)
batch_at.slips(
    with_slices,
    {
        "not 0 <= start < len(tokens) - length → start < 0 ;; start + length] → start + length + 1] ;; "
        "torch.stack(inputs), torch.stack(targets) → torch.stack(inputs)[:, :-1], torch.stack(inputs)[:, 1:]": "You "
        "return a shorter window where one does not fit. Raise ValueError.",
        'raise ValueError("a window does not fit into the text") → pass': "You leave the borders to slices: beyond the "
        "end a slice is cut short, and below zero it counts from the end. Check each start, and raise ValueError.",
        "< len(tokens) → <= len(tokens)": "You let a window through whose last target is past the text. It needs "
        "`length` + 1 tokens.",
        "    if not starts:\n        return torch.zeros(0, length).long(), torch.zeros(0, length).long()\n → ": "Your "
        "answer fails without windows. Return 0 rows of `length` columns.",
        "torch.zeros(0, length).long(), torch.zeros(0, length).long() → torch.zeros(0).long(), torch.zeros(0)"
        ".long()": "Without windows your tensors have one axis. Return 0 rows of `length` columns.",
        "length for start in starts): → length for start in [*starts[:1], *starts[-1:]]):": "You check the first and "
        "the last start only. Starts are in no order: check each.",
    },
)
