"""Measurements of notebook 17: texts of the trained model, tokens a second, and the two phases on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from lmcourse.accounting.kv_cache import cache_bytes
from lmcourse.accounting.machine import matmul_rates
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.timing import make_stopwatch, time_interleaved
from lmcourse.chapters.inference.server import Request, Serve, Work, counted, requests
from lmcourse.data.token_file import TokenFile
from lmcourse.inference.generate import generate
from lmcourse.inference.own_loop import Dice
from lmcourse.models.ngram import NGram
from lmcourse.models.transformer import Transformer
from lmcourse.pretrained import load_pretrained, pretrained_folder
from lmcourse.training.trained_model import TrainedModel

OWN_TIME = make_stopwatch("cpu", time.process_time)
"""The time of this program alone, without others on the machine."""


@cache
def trained_model(precision: torch.dtype = torch.float64) -> TrainedModel:
    """The model that comes with the course. In float64, near-ties are decided the same way on every processor."""
    found = load_pretrained()
    found.model.to(precision).requires_grad_(False)
    return found


@cache
def held_out() -> tuple[int, ...]:
    """The 22,768 tokens of the help texts that the model was not trained on."""
    with TokenFile(pretrained_folder() / "validation.tokens") as tokens:
        return tuple(tokens[:].tolist())


def waiting_requests() -> list[Request]:
    """24 requests whose prompts are pieces of the help texts."""
    return requests(0, text=held_out())


def print_what_stays(text: str) -> None:
    """Print for each layer whether old tokens' vectors stay when a token is added, or when a window moves by one."""
    tokens = trained_model().tokenizer.encode(text)
    old = _vectors(tokens[:-1])
    print(f"{'what reads them:':28}", *(f"layer {layer}" for layer in range(len(old) - 1)), "head")
    for name, dropped in (("one token more", 0), ("a window that drops a token", 1)):
        pairs = zip(old, _vectors(tokens[dropped:]), strict=True)
        gaps = [float((before[dropped:] - after[:-1]).abs().max()) for before, after in pairs]
        print(f"{name:28}", *("same   " if gap < 1e-5 else "new    " for gap in gaps))


def _vectors(tokens: list[int]) -> list[Tensor]:
    """Return what each layer of the trained model reads, a row per token, and at last what the head reads."""
    model, found = trained_model().model, list[Tensor]()
    parts = [*model.blocks, model.head]
    handles = [part.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0][0])) for part in parts]
    model(torch.tensor([tokens]))
    for handle in handles:
        handle.remove()
    return found


class Draft:
    """Guesses the next tokens from counts: how often each token followed two others in the held-out help texts.

    Args:
        probabilities: makes probabilities of rows of logits.
        dice: draw the guesses.
        ahead: the number of guesses.
    """

    def __init__(self, probabilities: Callable[[Tensor], Tensor], dice: Dice, ahead: int) -> None:
        self._rows = cache(lambda context: probabilities(_counted_after(context).log()[None])[0])
        self._dice, self._ahead = dice, ahead

    def __call__(self, text: Sequence[int]) -> tuple[list[int], Tensor]:
        """Return the guessed tokens, and the distribution from which each was drawn."""
        guessed, q = list[int](), list[Tensor]()
        for _ in range(self._ahead):
            q.append(self._rows((*text, *guessed)[-2:]))
            guessed.append(self._dice.draw(q[-1]))
        return guessed, torch.stack(q)


@cache
def _counts() -> NGram:
    return NGram(3, trained_model().tokenizer.vocab_size, witten_bell=True).count(held_out())


@cache
def _counted_after(context: tuple[int, ...]) -> Tensor:
    return _counts().probabilities(context)


def tokens_a_pass(serve: Callable[..., list[list[int]]], orders: Sequence[Request], seeds: int) -> tuple[str, float]:
    """Return the tokens a pass of each seed, and α of the texts: the sum of min(p, q), averaged over all places."""
    model, rates, common = trained_model().model, list[str](), list[Tensor]()
    for seed in range(seeds):
        with counted(model) as work:
            texts = serve(model, orders, seed=seed)
        rates.append(f"{sum(map(len, texts)) / work.passes:.2f}")
        for (prompt, _), new in zip(orders, texts, strict=True):
            text = [*prompt, *new]
            p = model(torch.tensor([text]))[0, 1:].softmax(dim=-1)
            q = torch.stack([_counted_after(tuple(text[i : i + 2])) for i in range(len(text) - 1)])
            common.append(torch.minimum(p, q).sum(dim=-1))
    return ", ".join(rates), torch.cat(common).mean().item()


class Scoreboard:
    """Runs ways to serve the same requests, and prints the tokens a second of each."""

    def __init__(self, model: Transformer, orders: Sequence[Request]) -> None:
        self.model, self.orders, self.texts = model, list(orders), list[list[int]]()
        self.rows: dict[str, tuple[float, Work]] = {}

    def run(self, ways: Mapping[str, Serve], repeats: int = 2) -> None:
        """Run each way `repeats` times, alternately, and print its best."""
        for repeat in range(repeats):
            for name, serve in ways.items():
                with counted(self.model) as work, torch.inference_mode():
                    start = time.process_time()
                    texts = serve(self.model, deepcopy(self.orders))
                    seconds = time.process_time() - start
                self.texts = self.texts or texts
                best = min(seconds, self.rows[name][0]) if repeat else seconds
                self.rows[name] = best, work
                if repeat == repeats - 1:
                    same, read = sum(map(list.__eq__, texts, self.texts)), f"{work.passes:5,} passes, {work.tokens:6,}"
                    print(f"{name:34}{self.rate(name):6,.0f} tokens/s, {read} tokens read; {same} texts the same")

    def rate(self, name: str) -> float:
        """The tokens that a way writes in a second."""
        return sum(new for _, new in self.orders) / self.rows[name][0]

    def print_cost(self, rows: int) -> None:
        """Fit the cost of a pass and of a token in it to the ways whose passes read less than 50 tokens."""
        found = [(seconds, work) for seconds, work in self.rows.values() if work.tokens < 50 * work.passes]
        weighted = torch.tensor([[work.passes / s, work.tokens / s] for s, work in found], dtype=torch.float64)
        ones = torch.full((len(found), 1), 1e3, dtype=torch.float64)
        a_pass, a_token = torch.linalg.lstsq(weighted, ones).solution[:, 0].tolist()
        times = (a_pass + rows * a_token) / (a_pass + a_token)
        print(
            f"fitted: {a_pass:.2f} ms a pass, {a_token:.2f} ms a token; {rows} rows take {times:.1f} times as long as 1"
        )

    def bars(self) -> None:
        """Print a bar for each way."""
        for name in self.rows:
            print(f"{name:34}{self.rate(name):6,.0f}  {'█' * max(1, round(self.rate(name) / 50))}")


def in_batches(size: int) -> Serve:
    """Return a server with batches of this size, in the order of the requests; each runs to its longest text."""

    def written(model: Any, orders: list[Request]) -> list[list[int]]:
        texts = list[list[int]]()
        for start in range(0, len(orders), size):
            prompts, lengths = zip(*orders[start : start + size], strict=True)
            batch = generate(model, prompts, max(lengths))
            texts += [text[:new] for text, new in zip(batch, lengths, strict=True)]
        return texts

    return written


def print_phases(
    model: Transformer, prompt: int, make_cache: Callable[[], Any], pass_seconds: Callable[..., tuple[float, str]]
) -> dict[str, float]:
    """Time a prefill and a decoding step after it, print both beside `pass_seconds`; return peak and bandwidth.

    Args:
        make_cache: returns an empty cache for `prompt` tokens and one more.
    """
    tokens, kept = torch.randint(512, (1, prompt + 1)), make_cache()
    table, vector = torch.ones(5000, 5000), torch.ones(5000)

    def read(first: int, last: int) -> None:
        kept.truncate(first)
        model(tokens[:, first:last], kv_cache=kept)

    read(0, prompt)
    ways: dict[str, Callable[[], object]] = {
        "prefill": partial(read, 0, prompt),
        "decode": partial(read, prompt, prompt + 1),
        "": lambda: table @ vector,
    }
    timings = time_interleaved(ways, warmup=1, repeats=3, stopwatch=OWN_TIME)
    prefill, decode, reading = (timing.fastest for timing in timings.values())
    peak = max(matmul_rates("fp32", (512, 1024), seconds=0.1, stopwatch=OWN_TIME).values())
    machine = {"peak": peak, "bandwidth": table.nbytes / reading}
    print(f"this machine, one thread: {peak / 1e9:.0f} GFLOP/s, {machine['bandwidth'] / 1e9:.1f} GB/s")
    size, cached = count_parameters(model.config).total, cache_bytes(model.config, 1, prompt, precision="fp32").total
    for name, seconds, new in (("prefill", prefill, prompt), ("decode", decode, 1)):
        least, limit = pass_seconds(size, cached, 1, new, **machine, width=4)
        each = f"{1e3 * seconds:7.1f} ms, {1e3 * seconds / new:6.2f} ms a token"
        print(f"{name:8}{each}; at least {1e3 * least:7.1f} ms, by {limit}")
    print(f"a written token takes {decode / prefill * prompt:.0f} times as long as a read one", end="; ")
    print(f"without a cache, token {prompt + 1} would take {prefill / decode:.0f} times as long as with it")
    return machine
