"""The exercise on the whole decoder."""

from __future__ import annotations

from random import Random
from typing import Any

from torch import Tensor

from lmcourse.chapters.transformer.exercises.decoder_cases import PARTS, STRANGE, ask
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.models.parity.parts import decoder as course_decoder


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
        ask("another base", fixed, blocks=2, sizes={"theta": 3000.0}),
        ask("another ε", fixed, blocks=2, sizes={"eps": 2.0}),
        ask("other parts", fixed, blocks=2, lines=STRANGE),
        script(kept.name, PARTS + stays, **kept.kwargs),
        *(ask("other sizes", random, blocks=2, f=f, v=f + 1) for f in random.sample(range(2, 9), 2)),
    ]


decoder = Exercise(
    "decoder",
    points=4,
    minutes=16,
    difficulty=3,
    reference=course_decoder,
    differentiable=True,
    cases=[
        ask("no blocks: in, norm, out", Random(1), blocks=0, d=2, v=3, text=(2, 2)),
        ask("one block", Random(2)),
        ask("two blocks", Random(3), blocks=2),
        ask("tied: no head of its own", Random(4), blocks=1, tied=True),
        ask("four heads, two key heads, a wider feed-forward", Random(5), blocks=1, d=8, heads=4, kv=2, f=12, v=5),
        ask("as many tokens as features, tied", Random(6), blocks=1, tied=True, v=4),
        ask("another base", Random(8), sizes={"theta": 500_000.0}),
        ask("another ε", Random(10), sizes={"eps": 0.5}),
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


@decoder.variant
def layer_by_layer(tokens: Tensor, weights: dict[str, Any], sizes: dict[str, Any], parts: dict[str, Any]) -> Tensor:
    def layer(x: Tensor, w: dict[str, Any]) -> Any:
        def norm(scale: Tensor) -> Any:
            return lambda y: parts["rms_norm"](y, scale, sizes["eps"])

        def attention(y: Tensor) -> Any:
            inner = parts["rope"], parts["grouped_query_attention"]
            return parts["self_attention"](y, w["qkv"], w["out"], heads, kv_heads, theta, *inner)

        def feed_forward(y: Tensor) -> Any:
            return parts["glu_ffn"](y, w["gate"].T, w["up"].T, w["down"].T, "swiglu")

        return parts["block"](x, attention, feed_forward, norm(w["norm_1"]), norm(w["norm_2"]), False)

    heads, kv_heads, theta = (sizes[name] for name in ("heads", "kv_heads", "theta"))
    x: Tensor = weights["embedding"][tokens]
    for w in weights["blocks"]:
        x = layer(x, w)
    x = parts["rms_norm"](x, weights["norm"], sizes["eps"])
    head: Tensor = weights.get("head", weights["embedding"])
    return x @ head.T


decoder.slips(
    layer_by_layer,
    {
        '    x = parts["rms_norm"](x, weights["norm"], sizes["eps"])\n → ': "The norm before the head is missing: the "
        "deeper the model, the larger its first logits.",
        'layer(x, w) → layer(x, weights["blocks"][0])': "All your layers use the weights of the first one.",
        'layer(x, w) → layer(x, weights["blocks"][-1])': "All your layers use the weights of the last one. A function "
        "that is made in a loop reads the loop's variables when it is called, not when it is made.",
        'layer(x, w) → layer(weights["embedding"][tokens], w)': "Only the last block has an effect: each of your "
        "blocks starts again from the embedding.",
        'w["gate"].T, w["up"].T → w["up"].T, w["gate"].T': "The gate and `up` are swapped: SiLU belongs to the gate.",
        'weights.get("head", weights["embedding"]) → weights["embedding"]': "These weights contain a separate head, "
        "but you use the embedding.",
        'weights.get("head", weights["embedding"]) → weights["head"]': 'You read "head" even where the weights have '
        "none. There the embedding is the head.",
        'w["norm_1"] → w["norm_2"] ;; w["norm_2"] → w["norm_1"]': "norm_1 and norm_2 are swapped: the first belongs to "
        "attention.",
        'w["norm_2"] → w["norm_1"]': "You use norm_1 for both branches. Each has its own norm.",
        'scale, sizes["eps"] → scale ;; weights["norm"], sizes["eps"] → weights["norm"]': "`eps` does not reach the "
        'norms. Pass sizes["eps"] to each of them.',
        'scale, sizes["eps"] → scale, 1e-6 ;; weights["norm"], sizes["eps"] → weights["norm"], 1e-6': "You chose ε "
        'yourself. Pass sizes["eps"] to every norm.',
        'parts["self_attention"](y, → parts["self_attention"](norm(w["norm_1"])(y),': "You normalise what attention "
        "reads, and `block` does so again. Leave the norms to `block`.",
        "False → True": "You pass parallel=True. The block is serial.",
        '"swiglu" → "glu"': 'You pass `glu_ffn` another kind than "swiglu".',
        "kv_heads, theta, *inner → heads, theta, *inner": "Your attention has as many key heads as query heads. Pass "
        "`kv_heads` to self_attention.",
        'w["gate"].T, w["up"].T, w["down"].T → w["gate"], w["up"], w["down"]': "You pass the feed-forward weights to "
        "glu_ffn as they are, (out, in). It expects (in, out).",
        "x @ head.T → (x @ head.T).softmax(-1)": "You return probabilities. Return logits: the loss takes their "
        "softmax.",
        "x @ head.T → x[:, -1] @ head.T": "You return the logits of the last token only. Every position predicts its "
        "next token: return (b, s, v).",
        '(x, weights["norm"] → (x.detach(), weights["norm"]': "You detach the stream before the last norm, so nothing "
        "below it would learn.",
        "x @ head.T → (x @ head.T).detach()": "No gradient passes: you compute under `torch.no_grad`, or detach. The "
        "model will be trained with this.",
        'in weights["blocks"] → in weights["blocks"][::-1]': "Your blocks run in reverse: the first of the list reads "
        "the embedding.",
        'in weights["blocks"] → in weights["blocks"][:1]': "Only the first block runs. Each block of the list reads "
        "what the one before it returned.",
        'weights["norm"], sizes["eps"] → weights["norm"]': "`eps` does not reach the last norm. It is the same for "
        "every norm of the model.",
        '[tokens] → [tokens] * weights["embedding"].shape[1] ** 0.5': "You multiply the embedding by √d. Some models "
        "do (Gemma, the original transformer), this one does not.",
        'for w in → x = parts["rms_norm"](x, torch.ones_like(weights["norm"]), sizes["eps"])\n    for w in || for w in '
        '→ x = parts["rms_norm"](x, weights["norm"], sizes["eps"])\n    for w in': "You normalise the embedding before "
        "the first block. Here each branch has its norm, and the head has one.",
        "weights.get → weights.setdefault": "You add a head to the weights that you were given. Read it with `.get`, "
        "and leave the dictionary unchanged.",
        "weights.get → weights.pop": "You take the head out of the weights that you were given. Read it with `.get`, "
        "and leave the dictionary unchanged.",
        "x = layer(x, w) → x = x + layer(x, w)": "You add the stream to what `block` returns. It returns the new "
        "stream, with the old one in it.",
        "(x, attention, feed_forward → (x, feed_forward, attention": "Attention and feed-forward are swapped: `block` "
        "takes attention first.",
        'return parts["block"](x, attention, feed_forward, norm(w["norm_1"]), norm(w["norm_2"]), False) → x = x + '
        'attention(norm(w["norm_1"])(x))\n        return x + feed_forward(norm(w["norm_2"])(x))': "You write the block "
        "yourself. Call "
        '`parts["block"]`, which may be another one.',
        "x @ head.T → (x @ head.T).log_softmax(-1)": "You return log-probabilities. Return logits: the loss takes "
        "their softmax.",
        "kv_heads, theta, *inner → kv_heads, 10_000.0, *inner": "`theta` does not reach attention: yours always has "
        'the base 10,000. Pass sizes["theta"].',
        "heads, kv_heads, theta, *inner → kv_heads, heads, theta, *inner": "`heads` and `kv_heads` are swapped: "
        "self_attention takes the number of query heads first.",
        'w["down"].T → w["down"]': "You pass `down` to glu_ffn as it is, (out, in). It expects (in, out), as for the "
        "other two.",
        'parts["self_attention"](y, → parts["self_attention"](norm(w["norm_1"])(y), ;; parts["glu_ffn"](y, → '
        'parts["glu_ffn"](norm(w["norm_2"])(y),': "You normalise inside the branches, and `block` does so again. "
        "Leave the norms to `block`.",
    },
)
