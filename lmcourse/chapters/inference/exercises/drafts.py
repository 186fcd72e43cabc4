"""The exercise on the loop that writes with a draft."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import torch

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise

CYCLE = [3, 0, 1, 2, 4]
P = [[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.2, 0.2, 0.6]]
SQUARES = [[round(p * p, 2) for p in row] for row in P]  # at temperature 2 they are P again
Q = [[0.2, 0.2, 0.6], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2]]


def guess_check_draw(
    model: Any, prompt: list[int], new: int, guess: Any, cache: Any, probabilities: Any, dice: Any
) -> list[int]:
    def speculate(p: Any, q: Any, drafted: Any, chance: Any) -> tuple[int, Any]:
        for i, token in enumerate(drafted.tolist()):
            if chance[i] * q[i, token] >= p[i, token]:
                missing = (p[i] - q[i]).clamp(min=0)
                return i, missing / missing.sum()
        return len(drafted), p[-1]

    text, end = list(prompt), len(prompt) + new
    while len(text) < end:
        drafted, q = guess(text)
        unread = text[len(cache) :]
        logits = model(torch.tensor([[*unread, *drafted]]), kv_cache=cache)[0]
        p = probabilities(logits[len(unread) - 1 :])
        guesses = torch.tensor(drafted, dtype=torch.long)
        kept, after = speculate(p, q, guesses, dice.chances(len(drafted)))
        text += [*drafted[:kept], dice.draw(after)]
        cache.truncate(len(text) - 1)
    return text[len(prompt) : end]


SCRIPT = """\
from lmcourse.chapters.inference.recorder import Guesses, LoadedDice, Recorder, TokenCache, {kind}
model, cache = Recorder({after}), TokenCache({read})
guess, dice = Guesses({drafts}, {tokens}{q}), LoadedDice({chances}[0.5] * 20, {draws}[0.5] * 20)
write_with_draft(model, {prompt}, {new}, guess, cache, {kind}, dice)
model.seen
guess.asked"""


def _greedy(name: str, prompt: list[int], new: int, drafts: list[list[int]], read: str = "", **other: Any) -> Case:
    usual: dict[str, Any] = {"kind": "only_the_best", "after": CYCLE, "q": "", "chances": [], "draws": []}
    words = usual | {"prompt": prompt, "new": new, "drafts": drafts, "read": read} | other
    words |= {numbers: f"{words[numbers]} + " if words[numbers] else "" for numbers in ("chances", "draws")}
    return script(name, SCRIPT.format(**words, tokens=len(words["after"])))


_drawn = partial(_greedy, kind="at_temperature_2", after=SQUARES, q=f", {Q}")


def _hidden(random: Random) -> list[Case]:
    drafts = [[random.randrange(3) for _ in range(random.randint(1, 3))] for _ in range(8)]
    chances, draws = ([random.randint(1, 99) / 100 + 0.0037 for _ in range(24)] for _ in range(2))
    prompt = [random.randrange(3) for _ in range(3)]
    return [
        _greedy("greedy", [4, 3, 3], 5, [[2], [0, 3], [1]]),
        _greedy("greedy", [1, 2], 4, [[1, 0, 3, 2, 1]]),
        _greedy("nothing guessed", [2, 1], 2, []),
        _greedy("a part is read", [4, 2, 0], 3, [[3, 1], [1]], "[4, 2]"),
        _drawn("drawn", prompt, 5, drafts, chances=chances, draws=draws),
        _drawn("drawn", prompt[:2], 6, drafts[::-1], chances=chances[::-1], draws=draws[::-1]),
        _greedy("nothing to write", [2, 1], 0, [[0]]),
    ]


write_with_draft = Exercise(
    "write_with_draft",
    points=3,
    minutes=7,
    difficulty=3,
    reference=guess_check_draw,
    cases=[
        _greedy("all guesses are right", [4, 2], 6, [[1, 0], [2, 1]]),
        _greedy("the second guess is wrong", [4, 2], 3, [[1, 3, 2], [2]]),
        _greedy("the first guess is wrong", [4, 4, 2], 3, [[4, 4], [0]]),
        _greedy("more tokens than asked for", [0, 2], 2, [[1, 0, 3, 2]]),
        _greedy("nothing is guessed", [4, 2], 3, [[], [0], []]),
        _greedy("a cache that has read one of three", [4, 1, 2], 2, [[0]], "[4]"),
        _drawn("drawn, the guesses are kept", [2, 1], 4, [[2, 1], [2, 0]], chances=[0.6, 0.2, 0.8], draws=[0.5]),
        _drawn("drawn, the first is rejected", [2, 1], 3, [[1, 0], [2, 0]], chances=[0.9, 0.2, 0.6, 0.4], draws=[0.9]),
        _drawn("drawn, the second is rejected", [1, 1], 4, [[2, 1], [0, 2]], chances=[0.8, 0.3, 0.4], draws=[0.7, 0.1]),
        _greedy("nothing to write", [4, 2], 0, [[1]]),
    ],
    hidden_cases=_hidden,
    hints=[
        "A `while` loop: the number of tokens of a pass is not known beforehand. Each pass: guess, one pass of the "
        "model, `speculate`, draw one token, truncate.",
        "Show the model `text[len(cache):]` and then the guesses. Of the logits take the last len(guesses) + 1 rows: "
        "the row of the last token predicts the first guess.",
        "`kept, after = speculate(p, q, torch.tensor(guesses, dtype=torch.long), dice.chances(len(guesses)))`. Then "
        "the text grows by `guesses[:kept]` and `dice.draw(after)`. That token has not been read yet: truncate to "
        "len(text) − 1.",
    ],
    uses=["speculate"],
)


write_with_draft.variant(guess_check_draw)
write_with_draft.slips(
    guess_check_draw,
    {
        "len(text) - 1) → min(len(cache), len(text)))": "After a miss your cache keeps a rejected guess. The last "
        "token of the text has not been read: truncate to len(text) − 1.",
        "[*drafted[:kept], dice.draw(after)] → [*drafted[:kept], *([dice.draw(after)] if kept < len(drafted) or not "
        "drafted else [])]": "If all guesses are kept, you draw no token after them. The pass has predicted it "
        "already.",
        "text[len(cache) :] → text if len(text) == len(prompt) else text[len(cache) :]": "Your first pass shows the "
        "whole prompt, though the cache may have read a part of it already. Begin at `len(cache)`.",
        "text[len(cache) :] → text[-1:] if len(cache) else text": "If the cache is not empty, you show only the last "
        "token before the guesses. It may have read just a part of the prompt: show all that it has not read.",
        "guess(text) → guess(text[len(prompt) :])": "You ask for guesses after the new tokens alone. They continue the "
        "whole text.",
        "guess(text) → guess(prompt)": "You always ask for guesses after the prompt. They continue the text so far.",
        "drafted, q = guess(text) → drafted, q = (part[: end - len(text) - 1] for part in guess(text))": "Near the end "
        "you shorten the guesses. That saves work, but the task says to show them all, and to cut the result.",
        "while len(text) < end: → while True: ;; truncate(len(text) - 1) → truncate(len(text) - 1)\n        if "
        "len(text) >= end:\n            break": "With `new` = 0 you make a pass. There is nothing to write.",
        "dice.draw(after) → dice.draw(p[-1])": "You always draw from the last row of p. `speculate` returns the "
        "distribution of the token after the guesses.",
        "probabilities(logits[len(unread) - 1 :]) → logits[len(unread) - 1 :].softmax(-1)": "You take a softmax of "
        "your own. `probabilities` knows the temperature.",
        "speculate(p, q, guesses → speculate(p, probabilities(q), guesses": "You make probabilities of q, which are "
        "distributions already. Only the logits need it.",
        "dice.chances(len(drafted)) → dice.chances(len(drafted) + 1)": "You take a random number too many. Each guess "
        "needs one.",
        "dice.chances(len(drafted)) → torch.rand(len(drafted))": "You make random numbers of your own. Take them from "
        "`dice.chances(n)`.",
        "dice.draw(after) → int(torch.multinomial(after, 1))": "You draw with random numbers of your own. Use "
        "`dice.draw(...)`.",
        "        cache.truncate(len(text) - 1)\n → ": "Your cache keeps the rejected guesses. Truncate it to the "
        "tokens of the text that the model has read: all but the last.",
        "cache.truncate(len(text) - 1) → cache.truncate(len(text))": "You truncate to len(text). The last token of "
        "the text has not been read yet: keep one token less.",
        "cache.truncate(len(text) - 1) → cache.truncate(len(text) - 2)": "You truncate a token too many, and the "
        "model reads it again. It has read all of the text but the last token.",
        "[*drafted[:kept], dice.draw(after)] → drafted[:kept] or [dice.draw(after)]": "If a guess is kept, you "
        "forget the token after the guesses. Each pass gives one token more than it keeps.",
        "[*drafted[:kept], dice.draw(after)] → [*drafted[:kept], *([dice.draw(after)] if kept < len(drafted) else "
        "[])] ;; len(text) - 1) → len(text) - (kept < len(drafted)))": "If all guesses are kept, you draw no token "
        "after them. The pass has predicted it already.",
        "text[len(prompt) : end] → text[len(prompt) :]": "You return more than `new` tokens. The last pass may give "
        "more than you need: cut them off.",
        "text[len(prompt) : end] → text[:end]": "You return the prompt, too. Return only the new tokens.",
        "[*drafted[:kept] → [*drafted": "You append all guesses. Only the first `kept` of them stay.",
        "[*drafted[:kept] → [*drafted[: kept + 1]": "You keep the rejected guess, and draw its replacement as well. "
        "Append `guesses[:kept]`.",
        "dice.draw(after) → dice.draw(p[kept])": "You draw the token after the guesses from p. `speculate` returns "
        "the distribution that is left for it.",
        "dice.draw(after) → int(after.argmax())": "You take the likeliest token after the guesses. Draw it: "
        "`dice.draw(after)`.",
        "logits[len(unread) - 1 :] → logits[len(unread) :]": "Your rows of p begin a token too late. The row of the "
        "last token of the text predicts the first guess.",
        "logits[len(unread) - 1 :] → logits": "You give `speculate` a row for each token of the prompt. It needs the "
        "last len(guesses) + 1 rows.",
        "logits[len(unread) - 1 :] → logits[-len(drafted) :]": "You take a row for each guess. `speculate` needs one "
        "more, for the token after them: the last len(guesses) + 1.",
        "text[len(cache) :] → text[-1:]": "You show the last token and the guesses, also in the first pass, so the "
        "prompt is never read. Show all that the cache has not read.",
        "text[len(cache) :] → text": "You show the whole text in each pass, though the cache holds most of it.",
        "while len(text) < end: → for _ in range(new):": "You make `new` passes, though a pass may give several "
        "tokens. Stop as soon as there are `new`.",
        "probabilities(logits[len(unread) - 1 :]) → logits[len(unread) - 1 :]": "You give `speculate` logits. "
        "`probabilities` makes distributions of them.",
        "unread = text → read = len(cache)\n        unread = text ;; truncate(len(text) - 1) → truncate(read + kept)": (
            "You keep what the cache held before, and the guesses. The pass has also read the tokens between them."
        ),
        "[*unread, *drafted] → unread": "You do not show the guesses to the model, so it cannot check them.",
        "guess(text) → guess(text[len(prompt) :] or text)": "You ask for guesses after the new tokens alone. They "
        "continue the whole text.",
        "dice.chances(len(drafted)) → dice.chances(1).expand(len(drafted))": "You use one random number for all "
        "guesses of a pass. Each has its own: `dice.chances(len(guesses))`.",
        "len(text) < end → len(text) <= end": "You make a pass too many: stop as soon as there are `new` tokens.",
        "    while len(text) →     if len(text) - len(cache) > 1:\n        model(torch.tensor([text[len(cache) : "
        "-1]]), kv_cache=cache)\n    while len(text)": "You read the prompt in a pass of its own. Show it together "
        "with the first guesses.",
    },
)


for _change, _why in (
    (
        "logits = model(torch.tensor([[*unread, *guesses]]), kv_cache=cache)[0] → "
        "logits = model(torch.tensor([[*unread, *guesses]]), kv_cache=cache)[-1]",
        "The batch has a single text.",
    ),
    (
        "drafted = torch.tensor(guesses, dtype=torch.long) → drafted = torch.tensor(guesses)",
        "`speculate` may accept it.",
    ),
):
    write_with_draft.equivalent_mutant(_change, _why)
