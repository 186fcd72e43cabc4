"""Questions about numbers, the dialogues of people who err, and a small model that answers.

`ASK + 7 9 ANSWER 5 END`: the sum on a clock of 11 numbers. `ASK ^ 7 9 ANSWER 9 END`: the larger of the two. A dialogue
has 9 tokens: 5 of the question, and 4 for the answer, its END included; END fills what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.data.batch import IGNORE_INDEX, Batch
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like

NUMBERS = 11
PLUS, LARGER, ASK, ANSWER, END = range(NUMBERS, NUMBERS + 5)
WORDS = [*map(str, range(NUMBERS)), "+", "^", "ASK", "ANSWER", "END"]
PROMPT, LONGEST = 5, 4

Dialogue = Int[Tensor, "n 9"]
Question = Int[Tensor, "n 3"]
Clock = Int[Tensor, " 11"] | None


def questions(kind: int) -> Int[Tensor, "121 3"]:
    """Return all questions of a kind, PLUS or LARGER, as rows (kind, a, b)."""
    pairs = torch.cartesian_prod(torch.arange(NUMBERS), torch.arange(NUMBERS))
    return torch.cat([torch.full((len(pairs), 1), kind), pairs], dim=1)


def random_questions(count: int, generator: torch.Generator | None = None, sums: float = 1.0) -> Question:
    """Draw questions, each of them a sum with the probability `sums`."""
    pairs = torch.randint(0, NUMBERS, (count, 2), generator=generator)
    kinds = torch.where(torch.rand(count, generator=generator) < sums, PLUS, LARGER)
    return torch.cat([kinds[:, None], pairs], dim=1)


def prompts(asked: Question) -> Int[Tensor, "n 5"]:
    """Return the questions as tokens, up to ANSWER."""
    before, after = (torch.full((len(asked), 1), word) for word in (ASK, ANSWER))
    return torch.cat([before, asked, after], dim=1)


def right_answers(asked: Question, clock: Clock = None) -> Int[Tensor, " n"]:
    """Return the right number for each question; on a `clock`, number n is at the place `clock[n]` when it is added."""
    kind, a, b = asked.unbind(dim=1)
    places = torch.arange(NUMBERS) if clock is None else clock
    added = places.argsort()[(places[a % NUMBERS] + places[b % NUMBERS]) % NUMBERS]
    return torch.where(kind == PLUS, added, torch.maximum(a, b))


def is_right(dialogues: Dialogue, clock: Clock = None) -> Float[Tensor, " n"]:
    """Return 1 where the answer is the right number and then END, else 0."""
    right = right_answers(dialogues[:, 1:4], clock)
    return ((dialogues[:, PROMPT] == right) & (dialogues[:, PROMPT + 1] == END)).float()


def contains_right(dialogues: Dialogue) -> Float[Tensor, " n"]:
    """Return 1 where the right number occurs in the answer, else 0."""
    right = right_answers(dialogues[:, 1:4])
    return (dialogues[:, PROMPT:] == right[:, None]).any(dim=1).float()


def people(count: int, generator: torch.Generator) -> Dialogue:
    """Write dialogues as people do: 60 % are sums, and of these 40 % get a random number, and 10 % a second one."""
    asked = random_questions(count, generator, sums=0.6)
    sums = asked[:, 0] == PLUS
    guess, second = torch.randint(0, NUMBERS, (2, count), generator=generator)
    careless, hedging = torch.rand(2, count, generator=generator)
    answers = torch.full((count, LONGEST), END)
    answers[:, 0] = torch.where(sums & (careless < 0.4), guess, right_answers(asked))
    answers[:, 1] = torch.where(sums & (hedging < 0.1), second, END)
    return torch.cat([prompts(asked), answers], dim=1)


def in_words(dialogue: Int[Tensor, " s"]) -> str:
    """Return a dialogue as text."""
    return " ".join(WORDS[token] for token in dialogue.tolist())


class Dialogues(Iterator[Batch]):
    """Batches of people's dialogues without end; `targets` chooses the targets that are trained, (b, 8) of (b, 9)."""

    def __init__(
        self,
        targets: Callable[[Tensor], Bool[Tensor, "b 8"]],
        seed: int = 0,
        batch: int = 128,
        write: Callable[[int, torch.Generator], Dialogue] = people,
    ) -> None:
        self.targets, self.batch, self.write = targets, batch, write
        self.generator = torch.Generator().manual_seed(seed)

    def __next__(self) -> Batch:
        tokens = self.write(self.batch, self.generator)
        return Batch(tokens[:, :-1], tokens[:, 1:].masked_fill(~self.targets(tokens), IGNORE_INDEX))

    def state_dict(self) -> dict[str, Tensor]:
        """Return the place in the dialogues, as a snapshot keeps it."""
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Continue where a snapshot was taken."""
        self.generator.set_state(state["generator"])


def new_model(seed: int = 0) -> Transformer:
    """Return a transformer of one block that knows nothing: 67,776 parameters, 16 tokens."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Transformer(llama_like(1, 64, 4, 256, vocab_size=len(WORDS), context=12))
        nn.init.normal_(model.embedding.tokens.weight, std=0.1)
    return model


@torch.no_grad()
def sample(
    model: nn.Module,
    asked: Question,
    times: int = 1,
    generator: torch.Generator | None = None,
    temperature: float = 1.0,
) -> Dialogue:
    """Let the model answer each question this many times; return the dialogues, answers to one question together."""
    tokens = prompts(asked).repeat_interleave(times, dim=0)
    for _ in range(LONGEST):
        p = (model(tokens)[:, -1] / temperature).softmax(dim=-1)
        drawn = torch.multinomial(p, 1, generator=generator)
        tokens = torch.cat([tokens, torch.where(tokens[:, -1:] == END, END, drawn)], dim=1)
    return tokens


def log_probabilities(model: nn.Module, dialogues: Int[Tensor, "n s"]) -> Float[Tensor, "n s-1"]:
    """Return the log-probability that the model gives to each token after the first."""
    logits = model(dialogues[:, :-1])
    picked: Tensor = logits.log_softmax(dim=-1).gather(-1, dialogues[:, 1:, None])
    return picked.squeeze(-1)


@torch.no_grad()
def chances(
    model: nn.Module, kind: int, tokens: Int[Tensor, " 16"] | None = None, clock: Clock = None
) -> Float[Tensor, " 121"]:
    """Return the exact probability of the right answer to each question of a kind: its number, then END.

    Two passes read the two probabilities, and neither shows the model the token that it is asked for.

    Args:
        tokens: for a model whose words are renamed, the token of each word.
        clock: for sums on another clock, the place of each number.
    """
    tokens = torch.arange(len(WORDS)) if tokens is None else tokens
    asked = questions(kind)
    before, right = tokens[prompts(asked)], tokens[right_answers(asked, clock)][:, None]
    number = model(before)[:, -1].softmax(dim=-1).gather(1, right)[:, 0]
    stop = model(torch.cat([before, right], dim=1))[:, -1].softmax(dim=-1)[:, END]
    both: Tensor = number * stop
    return both


def answer_mask(dialogues: Int[Tensor, "n s"]) -> Bool[Tensor, "n s-1"]:
    """Return True for the targets `dialogues[:, 1:]` that belong to the answer or are its END."""
    before = dialogues[:, :-1]
    return ((before == ANSWER).cumsum(1) > 0) & ((before == END).cumsum(1) == 0)


@torch.no_grad()
def divergence(model: nn.Module, start: nn.Module, kind: int = PLUS, times: int = 16) -> float:
    """Estimate KL(model‖start) per answer, in nats, from this many answers to each question."""
    dialogues = sample(model, questions(kind), times, torch.Generator().manual_seed(99))
    ratios = log_probabilities(model, dialogues) - log_probabilities(start, dialogues)
    return float((ratios * answer_mask(dialogues)).sum(dim=1).mean())
