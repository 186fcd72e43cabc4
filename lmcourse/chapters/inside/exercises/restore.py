"""The exercise on the stream that is put into another run."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _restore(run: Any, other: Tensor, clean: Tensor, layer: int, positions: Tensor) -> float:
    """Blend the two streams by a mask, and write what each run gives into a list."""
    seen: dict[int, Tensor] = {}
    odds = [run(clean, lambda passed, stream: seen.setdefault(passed, stream.clone())), run(other)]
    mask = positions[..., None].double()

    def blended(passed: int, stream: Tensor) -> Tensor:
        return torch.lerp(stream.double(), seen[passed].double(), mask * (passed == layer)).to(stream.dtype)

    return (run(other, blended) - odds[1]) / (odds[0] - odds[1])


def _case(name: str, clean: list[list[int]], first: list[int], layer: int, places: list[list[int]]) -> Case:
    """Return a case in which other texts begin with the words `first`; `places` are the positions, text by text."""
    lines = f"""
from lmcourse.chapters.inside.toy import toy_run
restore_stream(toy_run, other, clean, {layer}, positions)
"""
    texts = torch.tensor(clean)
    other = torch.cat([torch.tensor(first)[:, None], texts[:, 1:]], dim=1)
    positions = torch.zeros(texts.shape, dtype=torch.bool)
    for row, chosen in zip(positions, places, strict=True):
        row[chosen] = True
    return script(name, lines, other=other, clean=texts, positions=positions)


def _drawn(name: str, random: Random, b: int, s: int, layer: int) -> Case:
    clean = [[random.randint(1, 9) for _ in range(s)] for _ in range(b)]
    places = [sorted(random.sample(range(s), random.randint(1, s - 1))) for _ in range(b)]
    return _case(name, clean, [row[0] + random.randint(2, 5) for row in clean], layer, places)


_TWO, _OTHER = [[1, 5, 2, 8], [7, 3, 3, 1]], [4, 2]


def _hidden(random: Random) -> list[Case]:
    return [
        *(_drawn("other texts", random, 2, 5, layer) for layer in (0, 1, 2)),
        _drawn("other texts", random, 3, 3, 1),
        _drawn("one text", random, 1, 4, 1),
        _case("no position", _TWO, _OTHER, 1, [[], []]),
        _case("every position", _TWO, _OTHER, 1, [[0, 1, 2, 3]] * 2),
    ]


restore_stream = Exercise(
    "restore_stream",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_restore,
    cases=[
        _case("the first word, embedded", _TWO, _OTHER, 0, [[0], [0]]),
        _case("the first word, after one block", _TWO, _OTHER, 1, [[0], [0]]),
        _case("the last word, after one block", _TWO, _OTHER, 1, [[3], [3]]),
        _case("the last word, after both blocks", _TWO, _OTHER, 2, [[3], [3]]),
        _case("each text has its own positions", _TWO, _OTHER, 1, [[1], [0, 2]]),
        _case("no position", _TWO, _OTHER, 1, [[], []]),
    ],
    hidden_cases=_hidden,
    tolerance=Tolerance(1e-5, 1e-6),  # the stream of a learner may be float32
    hints=[
        "Three runs: one on `clean` whose edit only writes the streams down, one on `other` without an edit, and one "
        "on `other` with an edit that puts clean numbers in.",
        "To write down: append the stream to a list, and return it. To put in: return the stream if it is not after "
        "`layer` blocks; else a clone with clone[positions] = kept[layer][positions].",
        "The share: (odds with the clean stream − odds of `other`) / (odds of `clean` − odds of `other`).",
    ],
)


@restore_stream.variant
def keep_then_put(run: Any, other: Tensor, clean: Tensor, layer: int, positions: Tensor) -> float:
    kept = []

    def keep(passed: int, stream: Tensor) -> Tensor:
        kept.append(stream)
        return stream

    def put(passed: int, stream: Tensor) -> Tensor:
        if passed == layer:
            stream = stream.clone()
            stream[positions] = kept[layer][positions]
        return stream

    high, low = run(clean, keep), run(other)
    return (run(other, put) - low) / (high - low)


_DESTROYED = (
    "You put the other stream into the run on `clean`: that shows what is *destroyed*. Put the clean stream into the "
    "run on `other`."
)
restore_stream.slips(
    keep_then_put,
    {
        "run(clean, keep), run(other) → run(clean), run(other, keep) ;; (run(other, put) - low) → (high - run(clean, "
        "put))": _DESTROYED,
        "stream[positions] = kept[layer][positions] → stream[:] = kept[layer]": "You put in the whole clean stream. "
        "Only the words of `positions` get it.",
        "stream[positions] = kept[layer][positions] → later = positions.int().cumsum(dim=1) > 0\n            "
        "stream[later] = kept[layer][later]": "The words after `positions` were edited, too. They keep their stream.",
        "stream[positions] = kept[layer][positions] → stream[~positions] = kept[layer][~positions]": "In your "
        "run the words that are *not* in `positions` have the clean stream. Put it in at `positions`, into the run on "
        "`other`.",
        "if passed == layer → if True ;; kept[layer] → kept[passed]": "You put the clean stream in after every block. "
        "`layer` names one place; what comes after it is computed.",
        "if passed == layer → if passed >= layer ;; kept[layer] → kept[passed]": "You put the clean stream in after "
        "`layer` blocks and after all later ones. Later streams are computed from the edited one.",
        "kept[layer][positions] → kept[-1][positions]": "You put in the last stream that you kept. Take that of "
        "`layer`: there is one for each place, in order.",
        "kept[layer][positions] → kept[0][positions]": "You put in the embedded words. Take the stream of `layer`.",
        "if passed == layer → if passed == layer + 1 || if passed == layer → if passed + 1 == layer || if passed == "
        "layer → if passed == layer + 1 ;; kept[layer] → kept[passed] || if passed == layer → if passed + 1 == layer ;;"
        " kept[layer] → kept[passed]": "You edit one place too late or too early. `edit` gets 0 for the embedded "
        "words, 1 after the first block.",
        "stream[positions] = kept[layer][positions] → stream[positions] = 0": "You set the stream to zero. Put in the "
        "clean one.",
        "stream[positions] = kept[layer][positions] → stream[positions] = kept[layer][positions].mean(dim=0)": "You "
        "put in an average over the words. Each word gets its own clean stream.",
        "(run(other, put) - low) / (high - low) → run(other, put)": "You return the odds with the clean stream. Asked "
        "is the share of the gap that comes back.",
        "(run(other, put) - low) / (high - low) → run(other, put) - low": "You return a difference of odds. Divide it "
        "by the gap, the odds of `clean` − the odds of `other`.",
        "(run(other, put) - low) / (high - low) → (run(other, put) - low) / high": "You divide by the odds of `clean`. "
        "Divide by what there is to restore: the odds of `clean` − the odds of `other`.",
        "(run(other, put) - low) / (high - low) → (run(other, put) - low) / low": "You divide by the odds of `other`. "
        "Divide by what there is to restore: the odds of `clean` − the odds of `other`.",
        "(run(other, put) - low) / (high - low) → run(other, put) / high": "You compare with zero. The share is "
        "counted from the odds of `other`, which are far from zero.",
        "(run(other, put) - low) / (high - low) → (high - run(other, put)) / (high - low)": "That is the share which "
        "is still missing.",
        "run(clean, keep), run(other) → run(clean), run(other, keep)": "You put the other text's own stream back into "
        "it, which changes nothing. Keep the streams of `clean`.",
    },
)
