"""The open task: write the texts of 24 requests with as little work as possible."""

from __future__ import annotations

from typing import Any

import torch

from lmcourse.chapters.inference import server as task
from lmcourse.chapters.inference.server import LESS, PASSES, TOKENS
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NOT_MEASURED
from lmcourse.exercises.open_task import Band, OpenTask
from lmcourse.inference.row_cache import RowCache

LIBRARY = ("generate", "beam", "decoding_session", "compiled", "cache_layouts", "static_cache", "cache")

serve = Exercise(
    "serve",
    points=6,
    minutes=9,
    difficulty=3,
    reference=task.inspect_server,
    seconds=60.0,
    may_use_package=True,  # RowCache
    cases=[case("set 0", seed=0)],
    hidden_cases=lambda _: [case("set 1", seed=1)],
    hints=[
        "Begin with one batch of 8 requests that start together: pad the prompts on the right, make one pass, "
        "`truncate` each row to its prompt. Take row i's token at the end of its prompt.",
        "Then decode: one pass over the last token of each row. When a text is complete, `keep` the other rows. Print "
        "how many rows your passes have, while requests still wait.",
        "A free row costs nothing if it is filled at once. Read new prompts in a pass with a `RowCache` of their own, "
        "and `join` it. In which order would you take the requests?",
    ],
    forbid=[
        *NOT_MEASURED,
        *(f"lmcourse.inference.{name}" for name in LIBRARY),
        "lmcourse.models",
        "lmcourse.pretrained",
    ],
    task=OpenTask(
        inspect=task.inspect_server,
        measure=task.measure_server,
        baseline={
            "one after the other": {PASSES: 965, TOKENS: 1403, LESS: 1.0},
            "batches of 8, each runs to its longest text": {PASSES: 351, TOKENS: 3688, LESS: 1.54},
        },
        finish={LESS: 3.0},
        bands=[Band(2, "the same texts"), Band(2, at_least={LESS: 2.0}), Band(2, at_least={LESS: 3.0})],
    ),
)


@serve.idea(6)
def slots_filled_at_once(model: Any, requests: Any) -> list[list[int]]:
    texts = [list(prompt) for prompt, _ in requests]
    ends = [len(prompt) + new for prompt, new in requests]
    waiting, rows = sorted(range(len(texts)), key=lambda i: requests[i][1]), list[int]()
    cache = RowCache(len(model.blocks), max(ends))
    while waiting or rows:
        joining = [waiting.pop() for _ in range(min(8 - len(rows), len(waiting)))]
        if joining:
            sizes = [len(texts[i]) for i in joining]
            padded = [texts[i] + [0] * (max(sizes) - len(texts[i])) for i in joining]
            fresh = RowCache(len(model.blocks), max(ends))
            logits = model(torch.tensor(padded), kv_cache=fresh)[range(len(sizes)), [size - 1 for size in sizes]]
            fresh.truncate(sizes)
            cache.join(fresh)
            rows += joining
        else:
            logits = model(torch.tensor([texts[i][-1:] for i in rows]), kv_cache=cache)[:, -1]
        for i, token in zip(joining or rows, logits.argmax(-1).tolist(), strict=False):
            texts[i].append(token)
        left = [row for row, i in enumerate(rows) if len(texts[i]) < ends[i]]
        cache.keep(left)
        rows = [rows[row] for row in left]
    return [text[len(prompt) :] for text, (prompt, _) in zip(texts, requests, strict=True)]


_IN_ORDER = "sorted(range(len(texts)), key=lambda i: requests[i][1]), → [*range(len(texts))][::-1],"
_BATCHES = "min(8 - len(rows), len(waiting)) → 0 if rows else min(8, len(waiting))"
serve.edited_ideas(
    slots_filled_at_once,
    {
        "one after the other": (2, "min(8 → min(1"),
        "8 slots, in order": (6, _IN_ORDER),
        "batches of 8, in order, finished rows dropped": (4, f"{_IN_ORDER} ;; {_BATCHES}"),
    },
)

_ROOMY = (
    "max(ends))\n    while → 500)\n    while ;; model.blocks), max(ends))\n            logits → model.blocks), 500)"
    "\n            logits"
)
serve.slips(
    slots_filled_at_once,
    {
        "[range(len(sizes)), [size - 1 for size in sizes]] → [:, -1]": task.FIRST.format(wrong=3, all=4),
        f"            fresh.truncate(sizes)\n →  ;; {_ROOMY}": task.SECOND.format(wrong=3, all=4),
        f"{_IN_ORDER} ;; cache.keep(left) → cache.keep(range(len(left)))": task.LATER.format(number=2, place=1),
        f"rows += joining → rows = joining + rows ;; {_ROOMY}": task.LATER.format(number=0, place=2),
        "text[len(prompt) :] for → text for": task.LENGTH.format(number=0, yours=20, right=3),
        "return [ → return [][:0] + [*reversed([ ;; requests, strict=True)] → requests, strict=True)])]": task.MIXED,
        "min(8 - len(rows) → min(24 - len(rows)": task.WIDE.format(rows=12, most=8),
        "return [text[len(prompt) :] for → return [len(text) for": task.FORM,
    },
)
