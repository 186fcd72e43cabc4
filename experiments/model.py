"""Compare the speed of our transformer in generation and training with other implementations of the same shape.

    python experiments/model.py                       # everything, eager: about ten minutes on two cores
    python experiments/model.py --compile             # also compiled: several more minutes for every model
    python experiments/model.py decode --rounds 9     # only a part

    # one text by the smallest presets, on a busy machine
    PEERS_GPT_FAST=gpt-fast/model.py python experiments/model.py decode --families llama --shapes nano micro \\
        --vocab-size 512 --batch 1 --threads 1 --rounds 9 --compile --cpu-seconds

Every round runs each model once, so that other load slows all of them; the ratios are medians over rounds. Prints a
table and, as the last line, one JSON object. Needs `transformers` (the extra `parity`); `peers` explains how to add
other implementations.

The measured models have 6 layers, width 384 and 6 heads (mini), in fp32; decoding can have other shapes (`--shapes`).
"llama" has RMSNorm, RoPE and SwiGLU of 1,024; "gpt2" LayerNorm, learned positions, GELU of 1,536 and biases. All heads
are tied, except litgpt's in decoding. Decoding is greedy: 200 tokens after a prompt of 16, with a cache; "int8" has
int8 matrices. "read" is only a product of one vector per text and a matrix with as many weights as a step reads. If the
weights do not fit into a cache, no fp32 program can be faster. A training step is forward, loss, backward and AdamW on
12 texts of 256 tokens: ours is the trainer's step, with clipping and reading the loss; the others' is a minimal loop.
Its share is relative to the machine's rate for products of 2048 × 2048 matrices in the same rounds, with 6 N + 12 L d T
FLOPs per token; N excludes embeddings and includes the head. "kept" is the memory in MiB that autograd keeps from the
eager forward pass.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import peers
import torch
from interleaved import Workload, rows, time_workload
from peers import MINI, SHAPES, Shape
from torch import nn

from lmcourse.accounting.saved import saved_tensors
from lmcourse.data.batch import Batch
from lmcourse.inference.compiled import CompiledStep
from lmcourse.inference.generate import generate
from lmcourse.inference.weight_only import narrow_weights
from lmcourse.models.config import TransformerConfig
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.block import BlockConfig, LayerConfig
from lmcourse.nn.embedding import EmbeddingConfig
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.rotary import RotaryConfig
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.step import training_step

PROMPT, NEW = 16, 200
TEXTS, SEQ_LEN = 12, 256


def ours(family: str, shape: Shape, vocab_size: int) -> Transformer:
    if family == "llama":
        norm = NormConfig("rms")
        layer = LayerConfig(AttentionConfig(shape.heads, rotary=RotaryConfig()), FeedForwardConfig(shape.gated_ff))
        embedding = EmbeddingConfig()
    else:
        norm = NormConfig("layer", bias=True)
        attention = AttentionConfig(shape.heads, bias=True, out_bias=True)
        layer = LayerConfig(attention, FeedForwardConfig(4 * shape.width, "gelu_tanh", gated=False, bias=True))
        embedding = EmbeddingConfig(positions="learned", max_positions=SEQ_LEN)
    layers = (layer,) * shape.layers
    return Transformer(
        TransformerConfig(
            vocab_size, shape.width, layers, BlockConfig(norm), embedding=embedding, final_norm=norm, context=SEQ_LEN
        )
    )


def decoding(family: str, shape: str, vocab_size: int, batch: int, compiled: bool) -> Workload:
    prompts = torch.randint(vocab_size, (batch, PROMPT), generator=torch.Generator().manual_seed(0))
    our = ours(family, SHAPES[shape], vocab_size).eval()
    run: dict[str, Callable[[], object]] = {}
    for name, model in {"lmcourse": our, "lmcourse int8": narrow_weights(our, "int8")}.items():
        run[name] = lambda model=model: generate(model, prompts.tolist(), NEW)
        if compiled:
            step = CompiledStep(model)
            run[f"{name} compiled"] = lambda model=model, step=step: generate(
                model, prompts.tolist(), NEW, compiled=step
            )
    for name, decoder in peers.decoders(family, SHAPES[shape], vocab_size, batch, PROMPT + NEW).items():
        if compiled or not name.endswith("compiled"):
            assert decoder(prompts, NEW).shape == (batch, PROMPT + NEW)
            run[name] = lambda decoder=decoder: decoder(prompts, NEW)
    run["read"] = read_weights(our, batch)
    return Workload(f"decode {family} {shape} V={vocab_size} B={batch}", batch * NEW, run)


def read_weights(model: Transformer, batch: int) -> Callable[[], object]:
    """Run the minimum work of `NEW` steps: in each, one product with a matrix of as many weights as a step reads."""
    weights = sum(module.weight.numel() for module in model.modules() if isinstance(module, nn.Linear))
    matrix, x = torch.randn(weights // MINI.width, MINI.width), torch.randn(MINI.width, batch)

    @torch.inference_mode()
    def run() -> None:
        for _ in range(NEW):
            matrix @ x

    return run


def training(vocab_size: int, compiled: bool) -> Workload:
    """Compare all models, because the goal is the fastest implementation of either family."""
    tokens = torch.randint(vocab_size, (TEXTS, SEQ_LEN + 1), generator=torch.Generator().manual_seed(0))
    batch = Batch(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
    run: dict[str, Callable[[], object]] = {}
    kept: dict[str, int] = {}

    for family in ("llama", "gpt2"):
        for name in (f"lmcourse {family}", f"lmcourse {family} compiled")[: 1 + compiled]:
            our = ours(family, MINI, vocab_size)
            kept.setdefault(f"lmcourse {family}", count_kept(our, lambda x, y, m=our: next_token_loss(m(x), y), batch))
            run[name] = trainer_step(our, batch, compiled=name.endswith("compiled"))
    for name, (model, loss) in peers.trainees(vocab_size, SEQ_LEN).items():
        kept[name] = count_kept(model, loss, batch)
        run[name] = bare_step(model, loss, batch)
        if compiled:
            run[f"{name} compiled"] = bare_step(model, torch.compile(loss), batch)
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    # Both families have the same number of weights in a layer.
    weights = MINI.layers * (4 * MINI.width**2 + 3 * MINI.width * MINI.gated_ff) + MINI.width * vocab_size
    matmul_baseline = 6 * weights + 12 * MINI.layers * MINI.width * SEQ_LEN, 2 * 2048**3, lambda: a @ b
    return Workload(f"train V={vocab_size}", TEXTS * SEQ_LEN, run, kept, matmul_baseline)


def trainer_step(model: nn.Module, batch: Batch, compiled: bool) -> Callable[[], object]:
    """Return the trainer's step, which also reads the loss and the gradient norm, and clips."""
    if compiled:
        model.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    precision = MixedPrecision("fp32", torch.device("cpu"))
    return lambda: training_step(model, [batch], optimizer, precision, grad_clip=1.0)


def bare_step(model: nn.Module, loss: peers.Loss, batch: Batch) -> Callable[[], object]:
    """Return a minimal training step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(batch.inputs, batch.targets).backward()
        optimizer.step()

    return step


def count_kept(model: nn.Module, loss: peers.Loss, batch: Batch) -> int:
    """Return the bytes that autograd keeps for the backward pass of a step."""
    known = (batch.inputs, batch.targets)
    return saved_tensors(lambda: loss(*known), model, without=known).total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("part", nargs="?", choices=["decode", "train", "all"], default="all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--families", nargs="+", default=["llama", "gpt2"], help="for decoding")
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=["mini"], help="for decoding")
    parser.add_argument("--vocab-size", type=int, nargs="+", default=[65, 50304])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8], help="for decoding")
    parser.add_argument(
        "--cpu-seconds", action="store_true", help="not those of the wall: on a busy machine; one thread"
    )
    parser.add_argument("--compile", action="store_true", help="time compiled models as well")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)

    workloads: list[Callable[[], Workload]] = []
    for vocab_size in arguments.vocab_size:
        if arguments.part in ("decode", "all"):
            workloads += [
                lambda f=family, s=shape, v=vocab_size, b=batch: decoding(f, s, v, b, arguments.compile)
                for family in arguments.families
                for shape in arguments.shapes
                for batch in arguments.batch
            ]
        if arguments.part in ("train", "all"):
            workloads.append(lambda v=vocab_size: training(v, arguments.compile))

    clock = time.process_time if arguments.cpu_seconds else time.perf_counter
    results = []
    print(
        f"{'work':36} {'who':28} {'tok/s':>9} {'best':>9} {'relative to the first':>22} {'share':>6} {'kept':>7}",
        flush=True,
    )
    for make in workloads:
        workload = make()
        for row in rows(workload, time_workload(workload, arguments.rounds, clock)):
            work, who, rate, best, relative, share, kept = row.values()
            shown = "" if share is None else f"{share:6.0%}", "" if kept is None else f"{kept / 2**20:7.1f}"
            line = f"{work:36} {who:28} {rate:9.0f} {best:9.0f} {relative:13.2f} {shown[0]:>6} {shown[1]:>7}"
            print(line, flush=True)
            results.append(row)
    print(json.dumps({"threads": arguments.threads, "rounds": arguments.rounds, "results": results}))


if __name__ == "__main__":
    main()
