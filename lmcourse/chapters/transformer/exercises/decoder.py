"""The exercise on the whole decoder."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.transformer.exercises.decoder_cases import PARTS, STRANGE, Sizes, Weights, ask
from lmcourse.chapters.transformer.exercises.right_decoder import RIGHT_DECODERS
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise

Parts = dict[str, Any]


class _Layer:
    """A block as an object with four methods, as in libraries."""

    def __init__(self, weights: Weights, sizes: Sizes, parts: Parts) -> None:
        self.weights, self.sizes, self.parts = weights, sizes, parts

    def norm_1(self, x: Tensor) -> Tensor:
        return self.parts["rms_norm"](x, self.weights["norm_1"], self.sizes["eps"])  # type: ignore[no-any-return]

    def norm_2(self, x: Tensor) -> Tensor:
        return self.parts["rms_norm"](x, self.weights["norm_2"], self.sizes["eps"])  # type: ignore[no-any-return]

    def attention(self, x: Tensor) -> Tensor:
        heads, kv_heads, theta = self.sizes["heads"], self.sizes["kv_heads"], self.sizes["theta"]
        inner = self.parts["rope"], self.parts["grouped_query_attention"]
        qkv, out = self.weights["qkv"], self.weights["out"]
        return self.parts["self_attention"](x, qkv, out, heads, kv_heads, theta, *inner)  # type: ignore[no-any-return]

    def feed_forward(self, x: Tensor) -> Tensor:
        matrices = [self.weights[name].T for name in ("gate", "up", "down")]
        return self.parts["glu_ffn"](x, *matrices, "swiglu")  # type: ignore[no-any-return]


def _by_layers(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    x = torch.nn.functional.embedding(tokens, weights["embedding"])
    for each in weights["blocks"]:
        layer = _Layer(each, sizes, parts)
        x = parts["block"](x, layer.attention, layer.feed_forward, layer.norm_1, layer.norm_2, False)
    x = parts["rms_norm"](x, weights["norm"], sizes["eps"])
    return torch.einsum("bsd,vd->bsv", x, weights.get("head", weights["embedding"]))


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    stays = "y = decoder(tokens, weights, sizes, parts)\nweights\ntokens\ny"
    kept = ask("inputs stay", fixed, blocks=2, tied=True)
    return [
        ask("other sizes", fixed, blocks=2, d=6, heads=3, kv=3, f=7, v=9),
        ask("other sizes", fixed, blocks=3, d=4, kv=1, width=4, f=10, v=3, text=(1, 5)),
        ask("tied", fixed, blocks=2, tied=True, v=4),
        ask("tied", fixed, blocks=1, tied=True, v=6, text=(3, 4)),
        ask("one token", fixed, blocks=2, text=(1, 1)),
        ask("no blocks", fixed, blocks=0, tied=True),
        ask("no blocks", fixed, blocks=0),
        ask("another base and ε", fixed, blocks=2, sizes={"theta": 3.0, "eps": 2.0}),
        ask("other parts", fixed, blocks=2, lines=STRANGE),
        script(kept.name, PARTS + stays, **kept.kwargs),
        *(ask("other sizes", random, blocks=2, f=f, v=f + 1) for f in random.sample(range(2, 9), 2)),
    ]


decoder = Exercise(
    "decoder",
    points=4,
    minutes=20,
    difficulty=3,
    reference=_by_layers,
    differentiable=True,
    cases=[
        ask("no blocks: in, norm, out", Random(1), blocks=0, d=2, v=3, text=(2, 2)),
        ask("one block", Random(2)),
        ask("two blocks", Random(3), blocks=2),
        ask("tied: no head of its own", Random(4), blocks=1, tied=True),
        ask("four heads, two key heads, a wider feed-forward", Random(5), blocks=1, d=8, heads=4, kv=2, f=12, v=5),
        ask("as many tokens as features, tied", Random(6), blocks=1, tied=True, v=4),
        ask("another base and ε", Random(8), sizes={"theta": 2.0, "eps": 0.5}),
        ask("another block and another norm", Random(9), blocks=2, lines=STRANGE),
    ],
    hidden_cases=_hidden,
    hints=[
        "The stream starts with one row of the embedding per token. `block` returns the new stream for each layer. "
        "Then come norm and head.",
        "`block` takes four functions of the stream alone. Make them with lambda: norm_1 = lambda x: "
        'parts["rms_norm"](x, layer["norm_1"], sizes["eps"]).',
        "glu_ffn of notebook 11 takes matrices (in, out), but the weights are (out, in): transpose all three.",
        'The head is a row per token: logits = normed @ head.T. Without "head" among the weights it is the embedding.',
    ],
)

for right_answer in RIGHT_DECODERS:
    decoder.variant(right_answer)


def _changed(weights: Weights, **renamed: str) -> Weights:
    """The weights after exchanging the names of tensors in every block."""
    return weights | {"blocks": [layer | {a: layer[b] for a, b in renamed.items()} for layer in weights["blocks"]]}


@decoder.misconception("The norm before the head is missing: the deeper the model, the larger its first logits.")
def no_final_norm(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    norm, final = parts["rms_norm"], weights["norm"]
    skip = lambda x, scale, eps: x if scale is final else norm(x, scale, eps)  # noqa: E731
    return _by_layers(tokens, weights, sizes, parts | {"rms_norm": skip})


@decoder.misconception("All your layers use the weights of the first one.")
def first_block_again(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    blocks = weights["blocks"][:1] * len(weights["blocks"])
    return _by_layers(tokens, weights | {"blocks": blocks}, sizes, parts)


@decoder.misconception(
    "All your layers use the weights of the last one. A function that is made in a loop reads the loop's variables "
    "when it is called, not when it is made."
)
def last_block_again(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    blocks = weights["blocks"][-1:] * len(weights["blocks"])
    return _by_layers(tokens, weights | {"blocks": blocks}, sizes, parts)


@decoder.misconception("Only the last block has an effect: each of your blocks starts again from the embedding.")
def last_block_only(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    return _by_layers(tokens, weights | {"blocks": weights["blocks"][-1:]}, sizes, parts)


@decoder.misconception("The gate and `up` are swapped: SiLU belongs to the gate.")
def gate_and_up_swapped(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    return _by_layers(tokens, _changed(weights, gate="up", up="gate"), sizes, parts)


@decoder.misconception("These weights contain a separate head, but you use the embedding.")
def always_tied(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    return _by_layers(tokens, {name: w for name, w in weights.items() if name != "head"}, sizes, parts)


@decoder.misconception('You read "head" even where the weights have none. There the embedding is the head.')
def never_tied(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    return _by_layers(tokens, weights | {"head": weights["head"]}, sizes, parts)


@decoder.misconception("norm_1 and norm_2 are swapped: the first belongs to attention.")
def norms_swapped(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    return _by_layers(tokens, _changed(weights, norm_1="norm_2", norm_2="norm_1"), sizes, parts)


@decoder.misconception("You use norm_1 for both branches. Each has its own norm.")
def one_norm(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    return _by_layers(tokens, _changed(weights, norm_2="norm_1"), sizes, parts)


@decoder.misconception("`eps` does not reach the norms: yours use their default.")
def default_eps(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    norm = parts["rms_norm"]
    return _by_layers(tokens, weights, sizes, parts | {"rms_norm": lambda x, scale, eps: norm(x, scale)})


@decoder.misconception("You pass parallel=True. The block is serial.")
def in_parallel(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    block = parts["block"]
    return _by_layers(tokens, weights, sizes, parts | {"block": lambda *given: block(*given[:-1], True)})


@decoder.misconception('Your feed-forward layer has the gate of "glu", a sigmoid. Pass the kind "swiglu".')
def sigmoid_gate(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    ffn = parts["glu_ffn"]
    return _by_layers(tokens, weights, sizes, parts | {"glu_ffn": lambda *given: ffn(*given[:-1], "glu")})


@decoder.misconception("Your attention has as many key heads as query heads. Pass `kv_heads` to self_attention.")
def as_many_keys(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    return _by_layers(tokens, weights, sizes | {"kv_heads": sizes["heads"]}, parts)


@decoder.misconception("You pass the feed-forward weights to glu_ffn as they are, (out, in). It expects (in, out).")
def not_transposed(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    ffn = parts["glu_ffn"]

    def turned(x: Tensor, gate: Tensor, up: Tensor, down: Tensor, kind: str) -> Tensor:
        return ffn(x, gate.T, up.T, down.T, kind)  # type: ignore[no-any-return]

    return _by_layers(tokens, weights, sizes, parts | {"glu_ffn": turned})


@decoder.misconception("You return probabilities. Return logits: the loss takes their softmax.")
def probabilities(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    return _by_layers(tokens, weights, sizes, parts).softmax(-1)


@decoder.misconception(
    "You return the logits of the last token only. Every position predicts its next token: return (b, s, v)."
)
def last_token_only(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    return _by_layers(tokens, weights, sizes, parts)[:, -1]


@decoder.misconception("You detach the stream before the last norm, so nothing below it would learn.")
def detached_before_the_last_norm(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    norm, final = parts["rms_norm"], weights["norm"]
    cut = lambda x, scale, eps: norm(x.detach() if scale is final else x, scale, eps)  # noqa: E731
    return _by_layers(tokens, weights, sizes, parts | {"rms_norm": cut})


@decoder.misconception(
    "No gradient passes: you compute under `torch.no_grad`, or detach. The model will be trained with this."
)
def without_a_graph(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    with torch.no_grad():
        return _by_layers(tokens, weights, sizes, parts)


@decoder.misconception("Your blocks run in reverse: the first of the list reads the embedding.")
def blocks_in_reverse(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    return _by_layers(tokens, weights | {"blocks": weights["blocks"][::-1]}, sizes, parts)


@decoder.misconception("Only the first block runs. Each block of the list reads what the one before it returned.")
def first_block_only(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    return _by_layers(tokens, weights | {"blocks": weights["blocks"][:1]}, sizes, parts)


@decoder.misconception("`eps` does not reach the last norm. It is the same for every norm of the model.")
def default_eps_at_the_end(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    norm, final = parts["rms_norm"], weights["norm"]
    last = lambda x, scale, eps: norm(x, scale) if scale is final else norm(x, scale, eps)  # noqa: E731
    return _by_layers(tokens, weights, sizes, parts | {"rms_norm": last})


@decoder.misconception(
    "You multiply the embedding by √d. Some models do (Gemma, the original transformer), this one does not."
)
def embedding_scaled(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    table = weights["embedding"]
    scaled = weights | {"embedding": table * table.shape[1] ** 0.5, "head": weights.get("head", table)}
    return _by_layers(tokens, scaled, sizes, parts)


@decoder.misconception(
    "You normalise the embedding before the first block. Here each branch has its norm, and the head has one."
)
def embedding_normalised(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    table = weights["embedding"]
    normed = parts["rms_norm"](table, torch.ones_like(table[0]), sizes["eps"])
    return _by_layers(tokens, weights | {"embedding": normed, "head": weights.get("head", table)}, sizes, parts)


@decoder.misconception(
    "You add a head to the weights that you were given. Read it with `.get`, and leave the dictionary unchanged."
)
def head_added(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    weights.setdefault("head", weights["embedding"])
    return _by_layers(tokens, weights, sizes, parts)


@decoder.misconception(
    "You take the head out of the weights that you were given. Read it with `.get`, and leave the dictionary unchanged."
)
def head_taken(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    head = weights.pop("head", weights["embedding"])
    return _by_layers(tokens, weights | {"head": head}, sizes, parts)


@decoder.misconception("You add the stream to what `block` returns. It returns the new stream, with the old one in it.")
def stream_added_again(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    block = parts["block"]
    return _by_layers(tokens, weights, sizes, parts | {"block": lambda x, *rest: x + block(x, *rest)})


@decoder.misconception("Attention and feed-forward are swapped: `block` takes attention first.")
def branches_swapped(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    block = parts["block"]
    swapped = lambda x, attention, feed_forward, *rest: block(x, feed_forward, attention, *rest)  # noqa: E731
    return _by_layers(tokens, weights, sizes, parts | {"block": swapped})


@decoder.misconception('You write the block yourself. Call `parts["block"]`, which may be another one.')
def own_block(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    def block(x: Tensor, attention: Any, feed_forward: Any, norm_1: Any, norm_2: Any, parallel: bool) -> Tensor:
        x = x + attention(norm_1(x))
        return x + feed_forward(norm_2(x))  # type: ignore[no-any-return]

    return _by_layers(tokens, weights, sizes, parts | {"block": block})


@decoder.misconception("You return log-probabilities. Return logits: the loss takes their softmax.")
def log_probabilities(tokens: Tensor, weights: Weights, sizes: Sizes, parts: Parts) -> Tensor:
    return _by_layers(tokens, weights, sizes, parts).log_softmax(-1)
