"""The exercise on the loop that writes one token after another."""

from __future__ import annotations

from random import Random
from typing import Any

import torch

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise

CYCLE = [3, 0, 1, 2, 4]  # each token, and the token after it


def prompt_first(model: Any, prompt: list[int], new: int, choose: Any, cache: Any = None) -> list[int]:
    written: list[int] = []
    shown = [*prompt] if cache is None else [*prompt][len(cache) :]
    while len(written) < new:
        logits = model(torch.tensor(shown)[None], kv_cache=cache)[:, -1]
        written.append(choose(logits[0]))
        shown = [*prompt, *written] if cache is None else written[-1:]
    return written


SCRIPT = """\
from lmcourse.chapters.inference.recorder import Recorder, TokenCache
model, cache = Recorder({after}), {cache}
{more}write(model, {prompt}, {new}, {choose}, cache)
model.seen"""
GREEDY = "lambda logits: logits.argmax(-1).item()"


def _written(
    name: str, prompt: list[int], new: int, cache: str = "None", picks: list[int] | None = None, after: object = CYCLE
) -> Case:
    """A case with the new tokens, and all that the model was shown; `picks` are "drawn" (and `choose` records)."""
    more, look = (f"picks, given = iter({picks}), []\n", "\ngiven") if picks else ("", "")
    choose = "lambda logits: given.append(logits.exp().tolist()) or next(picks)" if picks else GREEDY
    lines = SCRIPT.format(after=after, cache=cache, prompt=prompt, new=new, choose=choose, more=more)
    return script(name, lines + look)


KEPT = """\
from lmcourse.chapters.inference.recorder import Recorder
model, prompt = Recorder([3, 0, 1, 2, 4]), [4, 2]
write(model, prompt, 2, lambda logits: logits.argmax(-1).item())
prompt"""


def _hidden(random: Random) -> list[Case]:
    after = [(token + random.randint(1, 6)) % 7 for token in range(7)]
    prompt, picks = random.sample(range(7), 4), random.sample(range(7), 5)
    return [
        _written("without a cache", prompt, 3, after=after),
        _written("with a cache", prompt, 4, "TokenCache()", after=after),
        _written("drawn", prompt, 5, "TokenCache()", picks, after),
        _written("drawn", prompt, 5, "None", picks, after),
        _written("a part is read", prompt, 3, f"TokenCache({prompt[:3]})", after=after),
        _written("a part is read", prompt, 1, f"TokenCache({prompt[:1]})", after=after),
        _written("one token", prompt, 1, after=after),
        _written("nothing to write", prompt, 0, "TokenCache()"),
    ]


write = Exercise(
    "write",
    points=3,
    minutes=7,
    difficulty=2,
    reference=prompt_first,
    cases=[
        _written("three tokens, without a cache", [4, 2], 3),
        _written("three tokens, with a cache", [4, 2], 3, "TokenCache()"),
        _written("drawn tokens, with a cache", [4, 2, 2], 3, "TokenCache()", [1, 4, 0]),
        _written("drawn tokens, without a cache", [1, 3], 2, picks=[0, 2]),
        _written("a cache that has read two of three", [4, 4, 2], 3, "TokenCache([4, 4])"),
        _written("a cache that has read one of three", [0, 4, 2], 1, "TokenCache([0])"),
        _written("one token, without a cache", [2, 4, 1], 1),
        _written("nothing to write", [4, 2], 0, "TokenCache()"),
        script("your prompt stays as it is", KEPT),
    ],
    hidden_cases=_hidden,
    hints=[
        "A loop over `new` passes. What is shown to the model is the only thing that depends on the cache.",
        "`unread = text if cache is None else text[len(cache):]`. The model takes a batch: `torch.tensor([unread])`.",
        "The model returns logits of shape (1, s, v), a row for each token that it was shown. The last row, "
        "`logits[0, -1]`, is for the token after the text.",
    ],
)


@write.variant
def one_pass_each(model: Any, prompt: list[int], new: int, choose: Any, cache: Any = None) -> list[int]:
    text = list(prompt)
    for _ in range(new):
        unread = text if cache is None else text[len(cache) :]
        logits = model(torch.tensor([unread]), kv_cache=cache)
        text.append(choose(logits[0, -1]))
    return text[len(prompt) :]


write.variant(prompt_first)
write.slips(
    one_pass_each,
    {
        "choose(logits[0, -1]) → choose(logits[:, -1])": "You give `choose` a row of the shape (1, v). It takes the "
        "shape (v,): `logits[0, -1]`.",
        "choose(logits[0, -1]) → choose(logits[0, -1].softmax(-1))": "You give `choose` probabilities. It "
        "takes logits.",
        "torch.tensor([unread]) → torch.tensor(unread)": "You show the model a tensor with one axis. It takes a batch "
        "of one text, of the shape (1, s): `torch.tensor([unread])`.",
        "text[len(cache) :] → text[len(cache) - 1 :]": "You begin at len(cache) − 1: at the last token if the cache is "
        "empty, else at one that it holds. Begin at `len(cache)`.",
        "return text[len(prompt) :] → return text[-new:]": "With `new` = 0, `text[-new:]` is the whole text. Begin at "
        "`len(prompt)`.",
        "    for _ in →     if cache is not None and len(text) - len(cache) > 1:\n        model(torch.tensor([text["
        "len(cache) : -1]]), kv_cache=cache)\n    for _ in": "You read the prompt in a pass of its own. The pass that "
        "reads its last token predicts the first new one: read all of it there.",
        "text if cache is None else text[len(cache) :] → text": "You show the whole text in each pass, also with a "
        "cache, so the cache holds tokens twice. Show what it has not read: `text[len(cache):]`.",
        "text[len(cache) :] → text[-1:]": "With a cache you show only the last token, so the rest of the prompt is "
        "never read. Show all that the cache has not read.",
        "text if cache is None else text[len(cache) :] → text[-1:]": "You show only the last token, so the rest of "
        "the prompt is never read. Without a cache show the whole text, with one all that it has not read.",
        "text if cache is None else → text[-1:] if cache is None else": "Without a cache you show only the last "
        "token. Nothing remembers the others: show the whole text.",
        "text[len(cache) :] → text[max(len(cache) - 1, 0) :]": "Each pass reads a token that the cache holds "
        "already. Show `text[len(cache):]`.",
        "text[len(cache) :] → text[len(cache) : -1] or text[-1:]": "The last token of the prompt is not in your "
        "first pass, whose logits then predict that token instead of the next one.",
        "text[len(cache) :] → text if len(text) == len(prompt) else text[-1:]": "Your first pass shows the whole "
        "prompt, though the cache may have read a part of it already. Begin at `len(cache)`.",
        "text[len(cache) :] → text ;; kv_cache=cache → kv_cache=None": "You do not pass the cache to the model, "
        "which reads the whole text each time.",
        ", kv_cache=cache → ": "You do not pass the cache to the model: `kv_cache=cache`.",
        "return text[len(prompt) :] → return text": "You return the prompt, too. Return only the new tokens.",
        "logits[0, -1] → logits[0]": "You give `choose` the rows of all tokens. It takes the last row alone.",
        "if cache is None → if not cache ;; kv_cache=cache → kv_cache=cache or None": "An empty cache is falsy: `if "
        "cache` never passes it to the model. Ask `if cache is not None`.",
        "range(new) → range(new - len(prompt))": "You count the prompt's tokens as new ones: `new` are to follow it.",
        "logits[0, -1] → logits[0, 0]": "You take the first row of the logits. The last row, `logits[0, -1]`, is for "
        "the token after the text.",
        "return text → if new:\n        model(torch.tensor([text[-1:] if cache is not None else text]), "
        "kv_cache=cache)\n    return text": "You make a pass too many: the last new token need not be read.",
        "for _ in range(new): → for _ in range(max(new, 1)): ;; return text[len(prompt) :] → return text[len(prompt) "
        ":][:new]": "With `new` = 0 you make a pass. There is nothing to write, so there is nothing to read.",
        "range(new) → range(new + 1)": "You write a token too many.",
        "range(new) → range(new - 1)": "You write a token too few. The first pass, over the prompt, gives a token, "
        "too.",
        "text = list(prompt) → text = prompt ;; text[len(prompt) :] → text[len(prompt) - "
        "new :]": "You append to the list that you were given, so the caller's prompt grows. Work on a copy: "
        "`list(prompt)`.",
        "text = list(prompt) → text = prompt": "You append to the list that you were given, and then `len(prompt)` "
        "grows with it. Work on a copy: `list(prompt)`.",
        "choose(logits[0, -1]) → int(logits[0, -1].argmax())": "You always take the likeliest token. Call `choose`, "
        "which may draw one.",
    },
)

write.slips(
    prompt_first,
    {
        "        shown = [*prompt, *written] if cache is None else written[-1:] →         "
        "shown = [*prompt, *written]": "After the first pass you show the whole text again, though the cache holds "
        "it. Show the new token only.",
        "[*prompt] if cache is None else [*prompt][len(cache) :] → [*prompt]": "Your first pass shows the whole "
        "prompt, though the cache may have read a part of it already. Begin at `len(cache)`.",
        "[*prompt] if cache is None else [*prompt][len(cache) :] → [*prompt][:-1]": "The last token of the prompt is "
        "not in your first pass, whose logits then predict that token instead of the next one.",
        "shown = [*prompt, *written] if cache is None else written[-1:] → shown = "
        "written[-1:]": "Without a cache you show only the last token after the first pass. Nothing remembers the "
        "others: show the whole text.",
        "while len(written) < new:\n        logits → logits = model(torch.tensor(shown)[None], kv_cache=cache)[:, "
        "-1]\n    while len(written) < new:\n        written.append(choose(logits[0]))\n        shown = [*prompt, "
        "*written] if cache is None else written[-1:]\n        logits ;; [:, -1]\n        "
        "written.append(choose(logits[0]))\n        shown = [*prompt, *written] if cache is None else written[-1:] → "
        "[:, -1]": "You make a pass too many: the last new token need not be read.",
    },
)

write.equivalent_mutant(
    "text.append(choose(logits[0, -1])) → text.append(choose(logits[-1, -1]))", "The batch has a single text."
)
