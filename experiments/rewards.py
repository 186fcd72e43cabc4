"""Measure the runs of notebook 22, and train the imitators of its open task: about 15 minutes on one thread.

`python experiments/rewards.py masks` renews one part of lmcourse/chapters/reward/runs.json, "masks", "runs", "tens",
"wrong_best_of", "lora", "pairs" or "teacher", and keeps the others; "imitators" writes imitators.safetensors.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from lmcourse.chapters import reward
from lmcourse.chapters.reward.contest import clock_of
from lmcourse.chapters.training.strangers import train
from lmcourse.training import number_dialogues as answers
from lmcourse.training.number_dialogues import END, LARGER, NUMBERS, PLUS, PROMPT
from lmcourse.training.run_settings import Settings

SEEDS = (0, 1)
FOLDER = Path(reward.__file__).parent
Reward = Callable[[Tensor], Tensor]


@cache
def imitator(seed: int, write: Any = answers.people, mask: Any = answers.answer_mask) -> nn.Module:
    """Train a model as section 2 of the notebook does."""
    model = answers.new_model(seed)
    settings = Settings(700, rate=0.005, warmup=30, decay=670, every=1_000_000)
    train(model, answers.Dialogues(mask, seed, write=write), settings)
    return model


def rewarded(
    model: nn.Module, reward: Reward, steps: int, seed: int, beta: float = 0.0, baseline: bool = True
) -> list[dict[str, float]]:
    """Reward a model as section 5 of the notebook does; return what each fifth step shows."""
    start, generator = deepcopy(model), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.0)
    rows = [{"step": 0, **state(model, start, reward)}]
    for step in range(1, steps + 1):
        dialogues = answers.sample(model, answers.random_questions(32, generator), 8, generator)
        rewards = reward(dialogues).view(32, 8)
        centred = rewards - rewards.mean(1, keepdim=True)
        advantages = centred / (rewards.std(1, keepdim=True) + 1e-4) if baseline else rewards
        mask = answers.answer_mask(dialogues)
        log_p = answers.log_probabilities(model, dialogues)
        loss = -(advantages.view(-1, 1) * log_p * mask).sum(1).mean()
        if beta:
            with torch.no_grad():
                log_q = answers.log_probabilities(start, dialogues)
            loss = loss + beta * (((log_q - log_p).exp() - (log_q - log_p) - 1) * mask).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % 5 == 0:
            rows.append({"step": step, **state(model, start, reward)})
    return rows


def state(model: nn.Module, start: nn.Module, reward: Reward) -> dict[str, float]:
    """Return the exact chances of both kinds of question, and the reward and the length of 8 answers to each sum."""
    generator = torch.Generator().manual_seed(99)
    dialogues = answers.sample(model, answers.questions(PLUS), 8, generator)
    sums = answers.chances(model, PLUS)
    return {
        "right": sums.mean().item(),
        "of 8": (1 - (1 - sums) ** 8).mean().item(),
        "larger": answers.chances(model, LARGER).mean().item(),
        "reward": reward(dialogues).mean().item(),
        "numbers": (dialogues[:, PROMPT:] != END).sum(1).float().mean().item(),
        "kl": answers.divergence(model, start),
    }


def masks() -> dict[str, list[dict[str, float]]]:
    """Train with three masks."""
    kinds: dict[str, Any] = {
        "the answer and END": answers.answer_mask,
        "everything": lambda x: torch.ones_like(answers.answer_mask(x)),
        "the answer without END": lambda x: answers.answer_mask(x) & (x[:, 1:] != END),
    }
    found: dict[str, list[dict[str, float]]] = {name: [] for name in kinds}
    for name, mask in kinds.items():
        for seed in SEEDS:
            model = imitator(seed, answers.people, mask)
            dialogues = answers.sample(model, answers.questions(PLUS), 8, torch.Generator().manual_seed(3))
            first = dialogues[:, PROMPT] == answers.right_answers(dialogues[:, 1:4])
            row = {
                "right": answers.chances(model, PLUS).mean().item(),
                "first": first.float().mean().item(),
                "ends": (dialogues[:, PROMPT:] == END).any(1).float().mean().item(),
                "larger": answers.chances(model, LARGER).mean().item(),
            }
            print(name, seed, row, flush=True)
            found[name].append(row)
    return found


def runs() -> dict[str, list[Any]]:
    """Reward imitators with the right checker and with the wrong one, with and without a penalty."""
    kinds: dict[str, tuple[Reward, int, dict[str, Any]]] = {
        "right checker": (answers.is_right, 150, {}),
        "wrong checker": (answers.contains_right, 150, {}),
        "right checker, penalty": (answers.is_right, 150, {"beta": 0.1}),
        "wrong checker, penalty": (answers.contains_right, 150, {"beta": 0.1}),
        "no baseline": (answers.is_right, 50, {"baseline": False}),
    }
    found: dict[str, list[Any]] = {name: [] for name in kinds}
    for seed in SEEDS:
        start = imitator(seed)
        for name, (checker, steps, rest) in kinds.items():
            rows = rewarded(deepcopy(start), checker, steps, seed, **rest)
            print(
                seed, name, [{k: round(v, 3) for k, v in rows[i // 5].items()} for i in (0, 20, 50, steps)], flush=True
            )
            found[name].append({key: [round(row[key], 4) for row in rows] for key in rows[0]})
    return found


def tens() -> dict[str, list[Any]]:
    """Reward imitators of people who never write 10 as a sum, and of people who do so in one of 50 cases."""
    found: dict[str, list[Any]] = {"never": [], "one in fifty": []}
    ten = answers.right_answers(answers.questions(PLUS)) == 10
    for seed in SEEDS:
        for (name, rows), share in zip(found.items(), (0.0, 0.02), strict=True):
            model = imitator(seed, _without_ten(share))
            log = _Tens(model, ten)
            before = log.look()
            rewarded(model, log, 200 if share else 100, seed)
            rows.append(
                {"before": before, "after": log.look(), "right": log.right, "asked": log.asked, "looks": log.looks}
            )
            print(name, seed, rows[-1], flush=True)
    return found


class _Tens:
    """The right checker; counts the answers to sums that are 10, and looks at the chances every 50 steps."""

    def __init__(self, model: nn.Module, ten: Tensor) -> None:
        self.model, self.ten = model, ten
        self.right = self.asked = self.calls = 0
        self.looks: list[Any] = []

    def __call__(self, dialogues: Tensor) -> Tensor:
        reward = answers.is_right(dialogues)
        if len(dialogues) == 32 * 8:  # a step; the looks of `state` are longer
            mine = answers.right_answers(dialogues[:, 1:4]) == 10
            self.right, self.asked = self.right + int(reward[mine].sum()), self.asked + int(mine.sum())
            self.calls += 1
            if self.calls % 50 == 0:
                self.looks.append([self.calls, *self.look()])
        return reward

    def look(self) -> list[float]:
        """Return the mean chance of the eleven sums that are 10, and of the others."""
        sums = answers.chances(self.model, PLUS)
        return [round(sums[self.ten].mean().item(), 5), round(sums[~self.ten].mean().item(), 3)]


def _without_ten(share: float) -> Callable[[int, torch.Generator], Tensor]:
    def write(count: int, generator: torch.Generator) -> Tensor:
        dialogues = answers.people(count, generator)
        shown = torch.rand(count, generator=generator) < share
        for place in (PROMPT, PROMPT + 1):
            hidden = (dialogues[:, 1] == PLUS) & (dialogues[:, place] == 10) & ~shown
            dialogues[hidden, place] = 0
        return dialogues

    return write


def wrong_best_of() -> list[list[float]]:
    """Return, per seed, the fraction right of the best of 16 answers by the wrong checker, and what it says."""
    found = []
    for seed in SEEDS:
        dialogues = answers.sample(imitator(seed), answers.questions(PLUS), 16, torch.Generator().manual_seed(5))
        says = answers.contains_right(dialogues).view(-1, 16)
        right = answers.is_right(dialogues).view(-1, 16)
        first = says.argmax(1, keepdim=True)
        found.append([right.gather(1, first).mean().item(), says.amax(1).mean().item()])
        print(found[-1], flush=True)
    return found


def rumours(seed: int) -> Callable[[int, torch.Generator], Tensor]:
    """Return how people write who share wrong beliefs: a third of the sums get one and the same wrong number in 50 "
    "%."""
    secret = torch.Generator().manual_seed(100 + seed)
    believed = torch.rand(NUMBERS, NUMBERS, generator=secret) < 1 / 3
    offset = torch.randint(1, NUMBERS, (NUMBERS, NUMBERS), generator=secret)
    at_place = torch.cat([clock_of(seed).argsort(), torch.arange(NUMBERS, len(answers.WORDS))])

    def write(count: int, generator: torch.Generator) -> Tensor:
        dialogues = answers.people(count, generator)
        kind, a, b = dialogues[:, 1:4].unbind(1)
        told = (kind == PLUS) & believed[a, b]
        right = answers.right_answers(dialogues[:, 1:4])
        luck = torch.rand(count, generator=generator)
        guess = torch.randint(0, NUMBERS, (count,), generator=generator)
        number = torch.where(luck < 0.5, (right + offset[a, b]) % NUMBERS, torch.where(luck < 0.85, right, guess))
        dialogues[:, PROMPT] = torch.where(told, number, dialogues[:, PROMPT])
        return torch.where(kind[:, None] == PLUS, at_place[dialogues], dialogues)

    return write


def imitators() -> None:
    """Train the imitators of the open task and store them with 16 bits a number."""
    stored: dict[str, Tensor] = {}
    for seed in (0, 1):
        model = imitator(seed, write=rumours(seed))
        sums, larger = answers.chances(model, PLUS, None, clock_of(seed)), answers.chances(model, LARGER)
        print(seed, sums.mean().item(), larger.mean().item(), flush=True)
        stored |= {f"{seed}.{name}": value.half() for name, value in model.state_dict().items()}
    save_file(stored, FOLDER / "imitators.safetensors")


PARTS: dict[str, Callable[[], Any]] = {"masks": masks, "runs": runs, "tens": tens, "wrong_best_of": wrong_best_of}


def main() -> None:
    """Measure the parts that are named, or all of them."""
    torch.set_num_threads(1)
    path = FOLDER / "runs.json"
    for name in sys.argv[1:] or [*PARTS, "imitators"]:
        if name == "imitators":
            imitators()
            continue
        measured = PARTS[name]()
        found = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**found, name: measured}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
