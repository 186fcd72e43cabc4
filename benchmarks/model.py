"""How fast our transformer writes and learns, next to Hugging Face's of the same shape.

    python benchmarks/model.py                       # all of it, about ten minutes on two cores
    python benchmarks/model.py decode --rounds 9     # a part

Every round runs each contender once, so that a busy neighbour slows all of them; the ratios are medians over rounds.
Prints a table and, as the last line, one JSON object. Needs `transformers` (the extra `parity`).

What is measured: 6 layers, width 384, 6 heads, fp32, eager. "llama" has RMSNorm, RoPE and SwiGLU of 1,024; "gpt2"
LayerNorm, learned positions, GELU of 1,536 and biases. Both heads are tied. Decoding is greedy: 200 tokens after a
prompt of 16, with a cache. A training step is forward, loss and backward of 12 texts of 256 tokens.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from lmcourse.inference.generate import generate
from lmcourse.models.config import TransformerConfig
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.block import BlockConfig, LayerConfig
from lmcourse.nn.embedding import EmbeddingConfig
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.rotary import RotaryConfig

LAYERS, WIDTH, HEADS = 6, 384, 6
PROMPT, NEW = 16, 200
TEXTS, LENGTH = 12, 256


@dataclass(frozen=True)
class Contest:
    """One row of the table: the same work done by several models.

    Attributes:
        name: of the work.
        tokens: how many it processes.
        run: per contender, a function that does it once. Ours is the first.
    """

    name: str
    tokens: int
    run: dict[str, Callable[[], object]]


def ours(family: str, vocabulary: int) -> Transformer:
    if family == "llama":
        norm = NormConfig("rms")
        layer = LayerConfig(AttentionConfig(HEADS, rotary=RotaryConfig()), FeedForwardConfig(1024))
        embedding = EmbeddingConfig()
    else:
        norm = NormConfig("layer", bias=True)
        attention = AttentionConfig(HEADS, bias=True, out_bias=True)
        layer = LayerConfig(attention, FeedForwardConfig(4 * WIDTH, "gelu_tanh", gated=False, bias=True))
        embedding = EmbeddingConfig(positions="learned", longest=LENGTH)
    config = TransformerConfig(
        vocabulary, WIDTH, (layer,) * LAYERS, BlockConfig(norm), embedding=embedding, final_norm=norm, context=LENGTH
    )
    return Transformer(config)


def theirs(family: str, vocabulary: int) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    no_special_tokens = {"bos_token_id": None, "eos_token_id": None}
    if family == "llama":
        return LlamaForCausalLM(
            LlamaConfig(
                vocab_size=vocabulary,
                hidden_size=WIDTH,
                intermediate_size=1024,
                num_hidden_layers=LAYERS,
                num_attention_heads=HEADS,
                max_position_embeddings=LENGTH,
                tie_word_embeddings=True,
                **no_special_tokens,
            )
        )
    no_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=vocabulary,
            n_positions=LENGTH,
            n_embd=WIDTH,
            n_layer=LAYERS,
            n_head=HEADS,
            **no_dropout,
            **no_special_tokens,
        )
    )


def decoding(family: str, vocabulary: int, batch: int) -> Contest:
    prompts = torch.randint(vocabulary, (batch, PROMPT), generator=torch.Generator().manual_seed(0))
    our, their = ours(family, vocabulary).eval(), theirs(family, vocabulary).eval()

    def hugging_face() -> None:
        mask = torch.ones_like(prompts)
        text = their.generate(prompts, attention_mask=mask, max_new_tokens=NEW, do_sample=False, pad_token_id=0)
        assert text.shape == (batch, PROMPT + NEW)

    run = {"lmcourse": lambda: generate(our, prompts.tolist(), NEW), "transformers": hugging_face}
    return Contest(f"decode {family} V={vocabulary} B={batch}", batch * NEW, run)


def training(vocabulary: int) -> Contest:
    """All four models at once: the goal is the fastest peer, whatever its family."""
    tokens = torch.randint(vocabulary, (TEXTS, LENGTH + 1), generator=torch.Generator().manual_seed(0))
    inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def step(model: nn.Module, logits: Callable[[nn.Module], torch.Tensor]) -> None:
        model.zero_grad(set_to_none=True)
        next_token_loss(logits(model), targets).backward()

    run: dict[str, Callable[[], object]] = {}
    for family in ("llama", "gpt2"):
        our, their = ours(family, vocabulary), theirs(family, vocabulary)
        run[f"lmcourse {family}"] = lambda m=our: step(m, lambda m: m(inputs))
        run[f"transformers {family}"] = lambda m=their: step(m, lambda m: m(inputs, use_cache=False).logits)
    return Contest(f"train V={vocabulary}", TEXTS * LENGTH, run)


def race(contest: Contest, rounds: int) -> dict[str, list[float]]:
    """Seconds of every contender in every round."""
    for run in contest.run.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in contest.run}
    gc.disable()
    for number in range(rounds):
        names = list(contest.run)
        for name in names if number % 2 == 0 else reversed(names):
            gc.collect()
            start = time.perf_counter()
            contest.run[name]()
            times[name].append(time.perf_counter() - start)
    gc.enable()
    return times


def rows(contest: Contest, times: dict[str, list[float]]) -> list[dict[str, object]]:
    first = next(iter(times))
    result = []
    for name, seconds in times.items():
        ratios = [mine / his for mine, his in zip(times[first], seconds, strict=True)]
        rate, best = contest.tokens / statistics.median(seconds), contest.tokens / min(seconds)
        result.append(
            {
                "work": contest.name,
                "who": name,
                "tokens_per_second": round(rate, 1),
                "best": round(best, 1),
                "relative_to_first": round(statistics.median(ratios), 3),
            }
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("part", nargs="?", choices=["decode", "train", "all"], default="all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--vocabulary", type=int, nargs="+", default=[65, 50304])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8], help="for decoding")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)

    contests: list[Callable[[], Contest]] = []
    for vocabulary in arguments.vocabulary:
        if arguments.part in ("decode", "all"):
            for family in ("llama", "gpt2"):
                contests += [lambda f=family, v=vocabulary, b=b: decoding(f, v, b) for b in arguments.batch]
        if arguments.part in ("train", "all"):
            contests.append(lambda v=vocabulary: training(v))

    results = []
    print(f"{'work':28} {'who':20} {'tok/s':>9} {'best':>9} {'relative to the first':>22}", flush=True)
    for make in contests:
        contest = make()
        for row in rows(contest, race(contest, arguments.rounds)):
            work, who, rate, best, relative = row.values()
            print(f"{work:28} {who:20} {rate:9.0f} {best:9.0f} {relative:22.2f}", flush=True)
            results.append(row)
    print(json.dumps({"threads": arguments.threads, "rounds": arguments.rounds, "results": results}))


if __name__ == "__main__":
    main()
