"""The stories of notebook 05 as words: paragraphs that end with "So", the same with another hero, and training rows."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmcourse.data.batch import Batch
from lmcourse.data.grammar import story_grammar
from lmcourse.data.grammar.stories import HEROES

LENGTH = 64
_PLACES = ("sea", "wood", "town", "stars")


def split_words(text: str) -> list[str]:
    """Return the words, digits, marks and ends of lines of a text."""
    return re.findall(r"[A-Za-z]+|\d|[^\sA-Za-z\d]|\n", text)


@cache
def vocabulary() -> tuple[str, ...]:
    """Return the 145 words, digits and marks of the stories, sorted. A token is a place in this list."""
    rules = story_grammar().rules.values()
    return tuple(sorted({word for choices in rules for rule in choices for word in split_words(rule.text)}))


def encoded(words: list[str]) -> Int[Tensor, " s"]:
    """Return the tokens of some words."""
    return torch.tensor([vocabulary().index(word) for word in words])


@dataclass(frozen=True)
class Paragraphs:
    """Paragraphs up to their "So", where the hero must be named again. After it they are filled up with line ends.

    Attributes:
        texts: the tokens. The first word is the hero, who is named nowhere else.
        others: the same texts with another hero.
        ends: the place of "So" in each text.
        hero, other: the heroes of `texts` and of `others`, from 0 to 7.
        place: where the paragraph happens, from 0 to 3.
    """

    texts: Int[Tensor, "b s"]
    others: Int[Tensor, "b s"]
    ends: Int[Tensor, " b"]
    hero: Int[Tensor, " b"]
    other: Int[Tensor, " b"]
    place: Int[Tensor, " b"]

    def __getitem__(self, rows: slice | Int[Tensor, " n"]) -> Paragraphs:
        """Return some of the paragraphs."""
        return Paragraphs(**{name: values[rows] for name, values in vars(self).items()})

    @property
    def so(self) -> Bool[Tensor, "b s"]:
        """True at "So"."""
        return torch.arange(self.texts.shape[1]) == self.ends[:, None]

    @property
    def places(self) -> dict[str, Bool[Tensor, "b s"]]:
        """Masks of five groups of words: "Anna | is | in the wood | . One bear … | So"."""
        at, marks = torch.arange(self.texts.shape[1]), self.texts == vocabulary().index(".")
        stop = marks.int().argmax(dim=1, keepdim=True)
        between = (at >= stop) & (at < self.ends[:, None])
        groups = {"first word": at == 0, "is": at == 1, "place": (at > 1) & (at < stop), "between": between}
        return {name: mask.expand(self.texts.shape) for name, mask in groups.items()} | {"So": self.so}

    def at_so(self, values: Float[Tensor, "b s *rest"]) -> Float[Tensor, b * rest]:
        """Return the values at "So"."""
        return values[torch.arange(len(self.ends)), self.ends]

    def odds(self, logits: Float[Tensor, "b s v"]) -> Float[Tensor, " b"]:
        """Return for each text by how much the logit of its hero is above that of the other hero, after "So"."""
        heroes = self.at_so(logits)[:, hero_tokens()]
        right, wrong = (heroes.gather(1, one[:, None])[:, 0] for one in (self.hero, self.other))
        return right - wrong


@cache
def hero_tokens() -> Int[Tensor, 8]:
    """Return the tokens of the eight heroes."""
    return encoded([*HEROES])


@cache
def paragraphs(seed: int, count: int) -> Paragraphs:
    """Return this many paragraphs of 12 to 40 words from new stories, those of this seed."""
    drawn = random.Random(seed)
    texts: list[list[str]] = []
    while len(texts) < count:
        for line in story_grammar().generate(drawn).splitlines():
            words = split_words(line)
            end = words.index("So") + 1 if "So" in words else 0  # the line between two stories has none
            if 12 <= end <= 40:
                texts.append(words[:end])
    texts = texts[:count]
    ends = torch.tensor([len(words) - 1 for words in texts])
    tokens = torch.full((count, int(ends.max()) + 1), vocabulary().index("\n"))
    for row, words in zip(tokens, texts, strict=True):
        row[: len(words)] = encoded(words)
    hero = torch.tensor([HEROES.index(words[0]) for words in texts])
    other = (hero + torch.randint(1, 8, (count,), generator=torch.Generator().manual_seed(seed))) % 8
    place = torch.tensor([next(i for i, one in enumerate(_PLACES) if one in words[:6]) for words in texts])
    others = torch.cat([hero_tokens()[other][:, None], tokens[:, 1:]], dim=1)
    return Paragraphs(tokens, others, ends, hero, other, place)


class StoryRows(Iterator[Batch]):
    """An endless loader of rows of 65 words, each from the beginning of a paragraph: 3,000 stories, in random order.

    Args:
        seed: the seed of the order.
        batch: rows in a batch.
    """

    def __init__(self, seed: int, batch: int = 32) -> None:
        self.batch, self._drawn = batch, torch.Generator().manual_seed(seed)
        self._words = _story_tokens()
        starts = torch.cat([torch.tensor([0]), (self._words == vocabulary().index("\n")).nonzero()[:, 0] + 1])
        self._starts = starts[starts < len(self._words) - LENGTH - 1]

    def __next__(self) -> Batch:
        first = self._starts[torch.randint(len(self._starts), (self.batch,), generator=self._drawn)]
        rows = self._words[first[:, None] + torch.arange(LENGTH + 1)]
        return Batch(rows[:, :-1], rows[:, 1:])

    def state_dict(self) -> dict[str, Tensor]:
        """Return where the loader is, for a snapshot."""
        return {"drawn": self._drawn.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go to where another loader was."""
        self._drawn.set_state(state["drawn"])


@cache
def _story_tokens() -> Int[Tensor, " n"]:
    drawn, number = random.Random(0), {word: i for i, word in enumerate(vocabulary())}
    stories = (split_words(story_grammar().generate(drawn)) for _ in range(3000))
    return torch.tensor([number[word] for story in stories for word in story])
