"""The open task of notebook 05: count and price the next letter after keys that the learner makes from a story so far.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from random import Random
from statistics import fmean
from typing import Any

from lmcourse.chapters.language_models.stories import Item, bill, stories
from lmcourse.data.grammar import story_grammar
from lmcourse.exercises.open_task import Unfit

Keys = list[Any]
Contexts = Callable[[str], Keys]
Sample = list[tuple[str, Keys]]

MOST_KEYS = 20
LENGTHS = (0, 1, 2, 3, 6, 12)
"""The numbers of last letters at which the start looks. No other lengths that we tried cost less."""
START = {0: 0.37338, 1: 0.3894, 2: 0.38088, 3: 0.36872, 4: 0.3676, 5: 0.3716}
"""The price of new stories with these lengths, in nats per byte, by the seed of the counted ones."""
_CHANCE = 10.0
"""By as many nats a model falls below the price of the language with a probability of at most e⁻¹⁰."""
_SAMPLED = 61

NO_LIST = "`contexts` must return a list of keys."
TOO_MANY = f"Your list has more than {MOST_KEYS} keys. The kit looks up at most {MOST_KEYS}."
NO_KEY = "A key is a text, a number, `None`, or a tuple of these."
STATE = "For the same story so far, your keys differ from call to call. Only `past` may decide."
SHARED = (
    "Two things share the key {!r}: it is the end of the story so far, and something else. Make one of them a tuple "
    "with a name."
)
WHOLE = (
    "Your first key, the most general one, is the whole story so far. If you wrote `past[-k:]`: for k = 0 this is all "
    "of `past`."
)
ORDER = "Your keys go from the most special to the most general, which then decides. Go the other way."
KNOWN = "Your model pays less for new stories than their language costs. Nothing that is new can be known so well."


def inspect_contexts(contexts: Contexts) -> None:
    """Raise Unfit if an answer breaks a rule of the task in a few stories."""
    pasts = [text[:at] for text in stories(4, 77) for at in range(len(text))]
    found = [(past, _valid(contexts(past))) for past in pasts]
    ends, others, turned = dict[str, int](), dict[str, int](), 0
    for past, keys in found:
        for place, key in enumerate(keys):
            if isinstance(key, str):
                (ends if past.endswith(key) else others).setdefault(key, place)
        lengths = [len(key) for key in keys if isinstance(key, str) and past.endswith(key)]
        turned += lengths[:1] > lengths[-1:]
    if 2 * turned > len(found):
        raise Unfit(WHOLE if lengths[:1] == [len(pasts[-1])] and lengths[1:] == sorted(lengths[1:]) else ORDER)
    if shared := [key for key, place in others.items() if ends.get(key, place) != place]:
        raise Unfit(SHARED.format(shared[0]))
    _ask_again(contexts, found)


def measure_contexts(contexts: Contexts, seeds: Sequence[int]) -> dict[str, float]:
    """Return the mean cost of new stories in nats per byte, and how much less it is than at the start."""
    costs = [cost_of_new_stories(contexts, seed) for seed in seeds]
    gain = fmean(START[seed] for seed in seeds) - fmean(costs)
    return {"nats per byte": fmean(costs), "less than the start": round(gain, 5) + 0.0}


def last_letters(*lengths: int) -> Contexts:
    """Return contexts that are the last letters of the story so far, of these lengths."""
    return lambda past: [past[len(past) - k :] for k in lengths if k <= len(past)]


def overpaid(contexts: Contexts, counted: Sequence[str], new: Sequence[str]) -> dict[str, Item]:
    """Return the bill for new stories of a model that has counted others after these contexts."""
    return bill("".join(new), _losses(contexts, counted, new, []))


def cost_of_new_stories(contexts: Contexts, seed: int) -> float:
    """Count in fifty stories, and return nats per byte of fifty others.

    Raises Unfit if the answer keeps something between its calls, or knows the new stories.
    """
    sample: Sample = []
    new = stories(50, 1000 * (seed + 1))
    losses = _losses(contexts, stories(50, seed), new, sample)
    _ask_again(contexts, sample)
    if math.fsum(losses) < -math.fsum(map(story_grammar().log_probability, new)) - _CHANCE:
        raise Unfit(KNOWN)
    return fmean(losses)


def _losses(contexts: Contexts, counted: Sequence[str], new: Sequence[str], sample: Sample) -> list[float]:
    """Count in some stories, and return what each letter of others costs, in nats; some keys go into the sample."""
    seen: defaultdict[Any, Counter[str]] = defaultdict(Counter)
    for letter, keys in _asked(contexts, counted, sample):
        for key in keys:
            seen[key][letter] += 1
    known = {key: (counts, len(counts), counts.total()) for key, counts in seen.items()}
    losses = []
    for letter, keys in _asked(contexts, new, sample):
        p = 1 / 128
        for key in keys:
            if key in known:
                counts, different, times = known[key]
                p = (counts.get(letter, 0) + different * p) / (times + different)
        losses.append(-math.log(p))
    return losses


def _asked(contexts: Contexts, texts: Sequence[str], sample: Sample) -> Iterator[tuple[str, Keys]]:
    """Yield each letter and the keys before it; put some of the keys into the sample."""
    for text in texts:
        for at, letter in enumerate(text):
            keys = contexts(text[:at])
            if at % _SAMPLED == 0:
                sample.append((text[:at], list(_valid(keys))))
            yield letter, keys


def _ask_again(contexts: Contexts, found: Sample) -> None:
    """Raise Unfit if the keys are others when they are asked for in another order."""
    if any(contexts(past) != keys for past, keys in Random(0).sample(found, len(found))):
        raise Unfit(STATE)


def _valid(keys: Keys) -> Keys:
    if not isinstance(keys, list):
        raise Unfit(NO_LIST)
    if len(keys) > MOST_KEYS:
        raise Unfit(TOO_MANY)
    if not all(map(_is_key, keys)):
        raise Unfit(NO_KEY)
    return keys


def _is_key(key: Any) -> bool:
    return all(map(_is_key, key)) if type(key) is tuple else type(key) in (str, int, float, bool, type(None))
