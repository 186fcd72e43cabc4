# %% [markdown]
# # 12 · The transformer, assembled
#
# **Core · 90 min · 5 exercises · 18 points** · **Further · 114 min · 7 exercises · 17 points**
#
# **Your transformer runs. Is it right, and does it run other people's weights?** A wrong transformer does not crash. It trains, a little worse, and says nothing.
#
# At the end you will have a decoder of your own parts that writes with trained weights, a test that found the slip in twelve wrong models and cleared yours, and a loader for files that come without a manual.
#
# **You need** notebooks 08 to 11. If you skipped one, the course's version takes its place. No GPU.
#
# Stuck? `hint("name_of_the_exercise")` gives a nudge; run it again for the next one.

# %%
import math
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse import CourseError
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.survey import CHOICES, LANGUAGES, languages, published, weight_decay
from lmcourse.base.errors import CourseError
from lmcourse.chapters.transformer import figures
from lmcourse.chapters.transformer.figures.models import MODELS
from lmcourse.chapters.transformer.stranger import FILES, TEXT, Stranger
from lmcourse.data.grammar import story_grammar
from lmcourse.data.help_texts import help_texts
from lmcourse.models.initialize import initialize
from lmcourse.models.interop.hugging_face import saved_llama
from lmcourse.models.interop.published import find_published, read_llama, read_words
from lmcourse.models.parity.parts import decoder_sizes, decoder_weights
from lmcourse.models.parity.suspects import (
    SUSPECTS,
    continued,
    gradients,
    moves_the_logits,
    right,
    small_llama,
    small_model,
    small_text,
    suspect,
)
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.styles import llama_like
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.own_package import load_parts, verdict
from lmcourse.pretrained import load_pretrained

start("12-transformer")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · From tokens to probabilities
#
# A text of $s$ tokens goes in. How many predictions come out? Not one: $s$. Position $t$ has read the tokens $0 \dots t$ and predicts token $t + 1$. All positions are computed at once.
#
# Follow the shapes. Two texts of 3 tokens, 64 features, 4 heads. Then make the text longer, and look at which shape grows twice:

# %%
explore(figures.pipeline, length=(1, 64), heads=[4, 8, 16], kv_heads=[1, 2, 4])

# %% [markdown]
# ## 2 · All of it
#
# Since 2017 nearly every part of a block has been replaced, and the plan has stayed:

# %%
figures.then_and_now()

# %% [markdown]
# Now you write it, from your own parts, named as their exercises:
#
# | part | call | notebook |
# | --- | --- | --- |
# | `rms_norm` | `rms_norm(x, scale, eps)` | 10 |
# | `rope` | `rope(y, positions, theta)`, $y$: (b, h, s, d_head) | 09 |
# | `grouped_query_attention` | `attend(q, k, v)`, (b, h, s, d_head) and (b, g, s, d_head) | 08, Further |
# | `glu_ffn` | `glu_ffn(x, w_gate, w_value, w_down, "swiglu")`, matrices as (in, out) | 11 |
# | `block` | `block(x, attention, feed_forward, norm_1, norm_2, parallel)` | 10, Further |
# | `self_attention` | Exercise 1 | 12 |
#
# The next cell lists whose parts it takes: yours if they are in your saved notebooks, else the course's.

# %% tags=["nbval-ignore-output", "because it shows whose answers are in the notebooks of this folder"]
try:
    loaded = load_parts(["rms_norm", "rope", "grouped_query_attention", "glu_ffn", "block"])
    parts: dict[str, Callable] = {part.name: part.function for part in loaded}
    print("\n".join(map(str, loaded)))
except CourseError as error:
    parts = {name: part for name, part in right.items() if name != "self_attention"}
    print(f"{error}\nSo the course's version replaces all parts.")

# %% [markdown]
# ### Exercise 1 · Attention, between its matrices  (3 points · 13 min · ●●● · differentiable)
#
# Write what comes between the norm and the plus sign. `qkv` has the rows of all query heads, then of all key heads, then of all value heads, each head a block of `d_head` rows. Like all weights here it is (out, in), so that $y = x\,W^\top$. `out` is (d, heads · d_head) and reads the heads side by side. `d_head` is *not always* $d$ / heads: read it off a shape.
#
# Queries and keys are rotated with `rope(y, positions, theta)`, positions from 0, values are not. `attend(q, k, v)` takes heads before tokens, (b, h, s, d_head); it masks, scales, and lets heads share keys. Both are arguments: the check passes simple functions of its own. Gradients pass through everything: the model will be trained.

# %% exercise="self_attention"
def self_attention(
    x: Float[Tensor, "b s d"],
    qkv: Float[Tensor, "n d"],
    out: Float[Tensor, "d m"],
    heads: int,
    kv_heads: int,
    theta: float,
    rope: Callable,
    attend: Callable,
) -> Float[Tensor, "b s d"]:
    """Return what every token gathers: project, cut into heads, rotate, attend, join the heads, project."""
    ### BEGIN SOLUTION
    split = rearrange(x @ qkv.T, "b s (h d) -> b h s d", h=heads + 2 * kv_heads)
    q, k, v = split.split([heads, kv_heads, kv_heads], dim=1)
    positions = torch.arange(x.shape[1], device=x.device)
    mixed = attend(rope(q, positions, theta), rope(k, positions, theta), v)
    return rearrange(mixed, "b h s d -> b s (h d)") @ out.T
    ### END SOLUTION


# %% check="self_attention"

# %% [markdown]
# ### Exercise 2 · All of it  (4 points · 16 min · ●●● · differentiable)
#
# From tokens to logits. `weights` is a dictionary:
#
# | name | shape | |
# | --- | --- | --- |
# | `"embedding"` | (v, d) | |
# | `"blocks"` | a list of dictionaries | `"norm_1"`, `"norm_2"` (d), `"qkv"`, `"out"` as in Exercise 1, `"gate"`, `"up"` (f, d), `"down"` (d, f) |
# | `"norm"` | (d) | the last norm's scale |
# | `"head"` | (v, d) | missing if the model is tied |
#
# `sizes` has `"heads"`, `"kv_heads"`, `"theta"` and `"eps"` (of every norm), `parts` the functions of the table above, with their calls. A block is pre-norm and serial, its feed-forward layer SwiGLU. Call everything through `parts`: the check puts strange functions there. Gradients reach every weight: the model will be trained.

# %% exercise="decoder"
def decoder(
    tokens: Int[Tensor, "b s"], weights: dict[str, Any], sizes: dict[str, Any], parts: dict[str, Callable]
) -> Float[Tensor, "b s v"]:
    """Return the logits of the token after each, from weights and from functions."""
    ### BEGIN SOLUTION
    def norm(scale: Tensor) -> Callable:
        return lambda x: parts["rms_norm"](x, scale, sizes["eps"])

    def attention(layer: dict[str, Tensor]) -> Callable:
        shape = (sizes["heads"], sizes["kv_heads"], sizes["theta"])
        inside = (parts["rope"], parts["grouped_query_attention"])
        return lambda x: parts["self_attention"](x, layer["qkv"], layer["out"], *shape, *inside)

    def feed_forward(layer: dict[str, Tensor]) -> Callable:
        matrices = [layer[name].T for name in ("gate", "up", "down")]
        return lambda x: parts["glu_ffn"](x, *matrices, "swiglu")

    stream = weights["embedding"][tokens]
    for layer in weights["blocks"]:
        branches = attention(layer), feed_forward(layer)
        stream = parts["block"](stream, *branches, norm(layer["norm_1"]), norm(layer["norm_2"]), False)
    head = weights.get("head", weights["embedding"])
    return norm(weights["norm"])(stream) @ head.T
    ### END SOLUTION


# %% check="decoder"

# %% [markdown]
# Does it compute what the course's model computes? First with random weights, in LLaMA 3's layout, scaled down: 2 blocks of 64 features, 8 heads that share 2 key heads.

# %% tags=["nbval-ignore-output", "because the last digits differ between processors"]
def own_logits(tokens: Tensor, weights: dict[str, Any], sizes: dict[str, Any]) -> Tensor:
    """Return the logits of your decoder with your parts."""
    return decoder(tokens, weights, sizes, parts | {"self_attention": self_attention})


def distance(found: Tensor, expected: Tensor) -> str:
    """Return the largest difference, relative to the largest logit."""
    return f"{((found - expected).abs().max() / expected.abs().max()).item():.0e}"


with your("self_attention", "decoder"), torch.no_grad():
    found = own_logits(*small_model())
    print("random weights: relative difference", distance(found, small_llama()(small_text())))

# %% [markdown]
# fp32 keeps seven digits, so anything up to 10⁻⁵ is rounding. Then the *trained* weights that ship with the course: 870,000 parameters in 4 blocks, trained on Python's documentation. Your decoder writes with them, always the most likely token:

# %% tags=["nbval-ignore-output", "because the last digits differ between processors"]
trained = load_pretrained()
model, tokenizer, sizes = trained.model, trained.tokenizer, decoder_sizes(trained.model)
text = help_texts()[1][None, TEXT]  # 128 tokens that the model has not seen in training
prompt = tokenizer.encode("Return the ")
with your("self_attention", "decoder"), torch.no_grad():
    print("trained weights: relative difference", distance(own_logits(text, decoder_weights(model), sizes), model(text)))
    print("Return the", tokenizer.decode(continued(own_logits, prompt, decoder_weights(model), sizes)))

# %% [markdown]
# ## 3 · Which part is it?
#
# And if the model had been wrong? Finite numbers, right shapes: one wrong part makes *everything* after it wrong, so the logits do not say which. The cure: give every part what the right model gives its own at that place, and compare there.
#
# When is a number wrong, and not just rounded?

# %%
predict("another_order_of_sums")

# %% [markdown]
# ### Exercise 3 · The first difference  (4 points · 15 min · ●●●)
#
# `right` and `suspect` are dictionaries with the six parts of the table. Find the first part of `suspect` that differs from the right one.
#
# 1. *Record.* Run `decoder` once with the right parts, each wrapped, so that every call leaves name, arguments and result in a list, in the order in which the calls *end*: an inner part comes before the part that calls it.
# 2. *Replay.* Go through the recording, and give each suspect part the recorded arguments (copies of the tensors). Its result $a$ is wrong if it is NaN somewhere, or if $\lVert a - b \rVert > 10^{-4} \lVert b \rVert$ for the recorded $b$ (lengths of all numbers, as one vector): return `(name, "result")`. If afterwards one of the copies has changed, return `(name, "input changed")`.
# 3. *Backward.* Only if there is none: go through the recording again, and compare `gradients(part, arguments)`, suspect against right, in the same way: `(name, "gradient")`.
#
# If nothing differs, return `None`. `gradients` is given: it sends a random direction back through a part, and returns what arrives at the float tensors, in one vector. Arguments may be functions; pass them on.

# %% exercise="first_difference"
def first_difference(
    decoder: Callable,
    tokens: Int[Tensor, "b s"],
    weights: dict[str, Any],
    sizes: dict[str, Any],
    right: dict[str, Callable],
    suspect: dict[str, Callable],
    gradients: Callable,
) -> tuple[str, str] | None:
    """Return the first suspect part that differs, and where: "result", "input changed" or "gradient"."""
    ### BEGIN SOLUTION
    calls = []

    def recorded(name: str) -> Callable:
        def call(*given: Any) -> Tensor:
            result = right[name](*given)
            calls.append((name, given, result))
            return result

        return call

    def differ(found: Tensor, wanted: Tensor) -> bool:
        return not torch.dist(found, wanted) <= 1e-4 * wanted.norm()  # True for NaN

    decoder(tokens, weights, sizes, {name: recorded(name) for name in right})
    recording = list(calls)  # a replay of a part that calls others adds to the list
    for name, given, result in recording:
        copies = [each.clone() if isinstance(each, Tensor) else each for each in given]
        if differ(suspect[name](*copies), result):
            return name, "result"
        if any(isinstance(each, Tensor) and not torch.equal(each, copies[i]) for i, each in enumerate(given)):
            return name, "input changed"
    for name, given, _ in recording:
        if differ(gradients(suspect[name], given), gradients(right[name], given)):
            return name, "gradient"
    return None
    ### END SOLUTION


# %% check="first_difference"

# %% [markdown]
# Twelve models, each with one slip of a kind that has cost people weeks. The obvious test (middle column) is shorter than yours: put one suspect part into a right decoder, and see whether the logits move. How good is it?

# %%
predict("positions_from_one")

# %%
predict("found_by_logits")

# %%
with your("decoder", "first_difference"):
    for name in SUSPECTS:
        found = first_difference(decoder, *small_model(), right, suspect(name), gradients)
        print(f"{name:25}{moves_the_logits(decoder, name):25}{', '.join(found or ['nothing'])}")

# %% [markdown]
# Five have right logits. The last four would train, and learn less. Counted from 1, the positions are wrong and the model is right: a score knows distances only. And the norm that writes into its input returns the right numbers, but normalises the stream itself.
#
# Now the same question about *your* model.

# %% tags=["nbval-ignore-output", "because it is about the answers in the notebooks of this folder"]
with your("self_attention", "decoder", "first_difference"):
    whole = parts | {"self_attention": self_attention}
    found = first_difference(decoder, *small_model(), right, whole, gradients)
    print(verdict(found, whole | {"decoder": decoder}))

# %% [markdown]
# ## 4 · The order of features
#
# One step was hidden in `decoder_weights`. Your `rope` rotates *neighbours*, feature $2i$ with $2i + 1$, as the paper has it. Nearly all published files are for code that rotates $i$ with $i + d_{head}/2$. A score does not depend on the order of a head's features, as long as queries and keys agree. So one reorders the *rows* of the matrices, once, when loading.

# %% [markdown]
# ### Exercise 4 · Neighbours  (2 points · 6 min · ●●)
#
# `weight` has (heads · d_head) rows, one head after the other. Reorder the rows of each head so that the pairs $(i,\; i + d_{head}/2)$ become neighbours: pair 0 first, then pair 1, and so on; within a pair the order stays. Raise `ValueError` if `d_head` is odd, or rows are left over.

# %% exercise="pair_neighbours"
def pair_neighbours(weight: Float[Tensor, "n d"], d_head: int) -> Float[Tensor, "n d"]:
    """Return the matrix with the rows of each head in another order: i and i + d_head/2 become neighbours."""
    ### BEGIN SOLUTION
    if d_head % 2 or len(weight) % d_head:
        raise ValueError(f"{len(weight)} rows are no heads of {d_head} features in pairs")
    halves = weight.unflatten(0, (-1, 2, d_head // 2))
    return rearrange(halves, "head two pair d -> (head pair two) d")
    ### END SOLUTION


# %% check="pair_neighbours"

# %% [markdown]
# The trained model's file is such a file. What if you do not reorder?

# %%
predict("rows_as_in_the_file")

# %% tags=["nbval-ignore-output", "because the last digits differ between processors"]
with your("self_attention", "decoder", "pair_neighbours"), torch.no_grad():
    for how, order in {"with `pair_neighbours`": pair_neighbours, "rows as in the file": lambda rows, d_head: rows}.items():
        weights = decoder_weights(model, order)
        loss = F.cross_entropy(own_logits(text[:, :-1], weights, sizes)[0], text[0, 1:])
        print(f"{how}: loss {loss:.2f}\n   Return the {tokenizer.decode(continued(own_logits, prompt, weights, sizes))!r}")

# %% [markdown]
# No error, and half-broken words. (Guessing has 6.24 nats.) *Published* files have queries, keys and values apart. If `transformers` is installed, it writes such a folder of random numbers, and computes the logits.

# %% tags=["nbval-ignore-output", "because it depends on whether transformers is installed"]
def from_folder(folder: Path, order: Callable) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the weights of a folder in LLaMA's format as `decoder` takes them, and its sizes."""
    weights, sizes = read_llama(folder)  # the names of `decoder`, but queries, keys and values apart
    for layer in weights["blocks"]:
        q, k, v = (layer.pop(name) for name in "qkv")
        layer["qkv"] = torch.cat([order(q, sizes["d_head"]), order(k, sizes["d_head"]), v])
    return weights, sizes


try:
    with saved_llama() as (folder, tokens, logits), your("self_attention", "decoder", "pair_neighbours"):
        ours = own_logits(tokens, *from_folder(folder, pair_neighbours))
        print("transformers' LLaMA: relative difference", distance(ours, logits))
except CourseError as error:
    print(error)

# %% [markdown]
# The same lines load a trained model: SmolLM2, 135 million parameters in 30 blocks. It is not part of the course; if it is on your machine, your decoder writes 30 tokens with it. Do not expect wisdom.

# %% tags=["nbval-ignore-output", "because it depends on whether the model is on this machine"]
download = False  # True: fetch it once, 270 MB
smol = find_published("HuggingFaceTB/SmolLM2-135M", download)
if smol:
    encode, decode = read_words(smol)
    with your("self_attention", "decoder", "pair_neighbours"):
        print(decode(continued(own_logits, encode("A transformer is"), *from_folder(smol, pair_neighbours), 30)))

# %% [markdown]
# ## 5 · A file without a manual
#
# Somebody sends you the weights of our trained model. The shapes fit, and the text is nonsense. Each of these habits may be there or not:
#
# | habit | in the file | as in |
# | --- | --- | --- |
# | halves | a head's features $i$ and $i + d_{head}/2$ form a pair, in queries and keys (Exercise 4) | nearly all |
# | group by group | `qkv` has the queries, the key and the value of one key head, then those of the next | Falcon, GPT-NeoX |
# | transposed | `out`, which is square, stands as (in, out) | GPT-2 |
# | swapped | `gate` and `up` have each other's names | |
# | minus 1 | the scales of all norms are stored minus 1 | Gemma |
#
# (Applied in this order, so undo the last one first.) No shape tells. But a text does.

# %% [markdown]
# ### Exercise 5 · Decipher  (5 points · 12 min · ●●●)
#
# `file` has the names of Exercise 2 in a stranger's habits, and `sizes` has `"heads"`, `"kv_heads"` and `"d_head"`. `loss(weights)` returns the loss of the decoder with these weights on a text, in nats a token; guessing has 6.24, the right weights 1.92, and any other reading more than 3.5. Return the weights as your decoder takes them, and leave `file` as it is. A file *speaks* if all your numbers are right.
#
# The readers are quick to write. What you design is the *search*: which readings to try, in which order, and when to stop. The finish line is all eight files with at most 15 calls of `loss` a file on average; trying all readings until one is right takes 16.5. (In each file, the stream's features and the embedding's rows are in a secret order that only `loss` knows, so you cannot return your trained model. What does not depend on that order, you may use.)

# %% exercise="decipher"
def decipher(file: dict[str, Any], sizes: dict[str, int], loss: Callable[[dict[str, Any]], float]) -> dict[str, Any]:
    """Return the weights of a file with unknown habits, as `decoder` takes them."""
    ### BEGIN SOLUTION
    width, heads, groups = sizes["d_head"], sizes["heads"], sizes["kv_heads"]

    def each(change: Callable) -> Callable:
        return lambda read: read | {"blocks": [layer | change(layer) for layer in read["blocks"]]}

    def neighbours(layer: dict[str, Tensor]) -> dict[str, Tensor]:
        rotated, values = layer["qkv"].split([(heads + groups) * width, groups * width])
        return {"qkv": torch.cat([pair_neighbours(rotated, width), values])}

    def in_order(layer: dict[str, Tensor]) -> dict[str, Tensor]:
        parts = layer["qkv"].unflatten(0, (groups, -1)).split([heads // groups * width, width, width], dim=1)
        return {"qkv": torch.cat([part.flatten(0, 1) for part in parts])}

    def add_1(part: dict[str, Any]) -> dict[str, Tensor]:
        return {name: part[name] + 1 for name in ("norm_1", "norm_2", "norm") if name in part}

    readers = [lambda read: each(add_1)(read) | add_1(read), each(lambda layer: {"gate": layer["up"], "up": layer["gate"]})]
    readers += [each(lambda layer: {"out": layer["out"].T}), each(in_order), each(neighbours)]

    def read(chosen: list[int]) -> dict[str, Any]:
        weights = file
        for number in sorted(chosen):
            weights = readers[number](weights)
        return weights

    chosen, least = [], loss(file)
    for _ in readers:  # what helps most now, again and again, until nothing helps
        losses = {number: loss(read([*chosen, number])) for number in range(5) if number not in chosen}
        best = min(losses, key=losses.get)
        if losses[best] >= least:
            break
        chosen, least = [*chosen, best], losses[best]
    return read(chosen)
    ### END SOLUTION


# %%
with your("self_attention", "decoder", "pair_neighbours", "decipher"):
    for number in (*FILES, 1):  # the last has one habit: so is the file that the course ships
        stranger = Stranger(number, lambda tokens, weights, sizes, _: own_logits(tokens, weights, sizes))
        weights = decipher(stranger.file, stranger.sizes, stranger.loss)
        calls, loss = stranger.calls, stranger.loss(weights)
        print(f"file {number:2}: {calls:2} calls, loss {loss:.2f}", stranger.told(weights), sep="\n  ")

# %% check="decipher"

# %% [markdown]
# Habits hide each other: with two unread, undoing one often does not help, or even harms. So a test of one habit alone says little. (One batch by heart, in Further, says the same of gradients.)
#
# ## What to keep
#
# | question | right answer | what finds a wrong one |
# | --- | --- | --- |
# | the right model? | logits equal to $10^{-5}$ of the largest | a second implementation |
# | which part is wrong? | the first that differs on what the right one got | recorded and replayed |
# | right logits, so right? | no: values, inputs *and* gradients | the same, backward |
# | a published file? | its habits read, all of them | the loss on a text, of all readings together |
#
# ## Check yourself
#
# 1. Why does the order of a head's features not matter for its scores, and why does it matter for loading?
# 2. Our file reads with a loss of 2.0 instead of 1.92 on the text above. Which habits have you ruled out?
#
# <details><summary>Answers</summary>
#
# 1. A score is a sum over features, and a sum has no order. But RoPE rotates features in pairs, by their place in the head.
# 2. The five of this notebook: each costs more than a nat there. Something smaller is left: ε, a base a little off, weights rounded to 8 bits.
#
# </details>

# %% tags=["hide-input"]
assert 860_000 < sum(parameter.numel() for parameter in model.parameters()) < 880_000 and len(text[0]) == 128

# %% [markdown]
# ## Further
#
# Each block needs the core, and no other block. Read them in any order. (Blocks A and D use the next two functions.)

# %%
def untrained(blocks: int, v: int = 256, tied: bool = False, rule: str | None = "fan_in", norm: bool = True, seed: int = 0) -> Transformer:
    """A LLaMA of 64 features with random weights; without a rule, torch's own."""
    torch.manual_seed(seed)
    config = llama_like(blocks, 64, 4, 128, vocab_size=v, context=64, tied=tied)
    model = Transformer(config if norm else config.with_(final_norm=None))
    if rule is not None:
        initialize(model, rule)
    return model.eval()


@torch.no_grad()
def first_step(model: Transformer) -> tuple[float, float, float]:
    """Spread of the logits, loss, and how often the likeliest next token is the one just read; random texts."""
    tokens = torch.randint(model.config.vocab_size, (8, 33), generator=torch.Generator().manual_seed(1))
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).item()
    return logits.std().item(), loss, (logits.argmax(dim=-1) == tokens[:, :-1]).float().mean().item()


# %% [markdown]
# ### A · In and out  (23 min)
#
# The **embedding** $E$ of shape $(v, d)$ has a row for each token. A one-hot vector times $E$ is a row of $E$; real code looks up the row (notebook 05). But as it *is* a product, its gradient is known (notebook 03).
#
# Positions may have such a table as well: GPT-2 starts the stream with $x = E_{\text{token}} + P_{\text{position}}$. LLaMA has no such table; it rotates queries and keys in every block.
#
# The other end of the model is the **head**: a logit for each token of the vocabulary, and so a matrix $(v, d)$ as well. It may be the same matrix. Such a model is **tied**.

# %% [markdown]
# ### Exercise 6 · Which rows learn?  (1 point · 4 min · ●)
#
# A model reads the tokens $0 \dots s-2$ of each text and predicts the tokens $1 \dots s-1$. Return the sorted indices of the embedding rows that receive a gradient. If it is `tied`, the same matrix is the head. `vocabulary` is at least 2, and a text may have one token only.

# %% exercise="rows_with_gradient"
def rows_with_gradient(tokens: Int[Tensor, "b s"], vocabulary: int, tied: bool) -> list[int]:
    """Return the rows of an embedding that get a gradient in a step on these texts, in order."""
    ### BEGIN SOLUTION
    read = set(tokens[:, :-1].flatten().tolist())
    if tied and read:
        return list(range(vocabulary))
    return sorted(read)
    ### END SOLUTION


# %% check="rows_with_gradient"

# %% [markdown]
# In an untied model the row of a rare word waits for thousands of steps, until the word occurs. Until then, its gradient is 0.

# %%
predict("rare_word")

# %%
row = torch.ones(4, requires_grad=True)
row.grad = torch.zeros(4)
optimizer = torch.optim.AdamW([row], lr=1e-3, weight_decay=0.1)
for _ in range(1000):
    optimizer.step()
waiting = row[0].item()
print(f"a row of ones after 1,000 steps without a gradient: {waiting:.3f}")

# %% [markdown]
# (Many runs leave the embeddings out of weight decay. OLMo 2's configuration says `decay_embeddings: false`.)
#
# > **Spot the slip.** A colleague writes: "The embeddings of tokens and positions add about $(v + s)\,d$ parameters per layer." For GPT-3, $(50{,}257 + 2{,}048) \cdot 12{,}288$ is 642.7 million. What is wrong with two words of the sentence?

# %%
gpt3 = find_model("gpt-3")
ends = (50_257 + 2_048) * gpt3.decoder.d_model
print(f"once:      {ends / 1e6:9,.1f} million, {ends / gpt3.published_parameters:.2%} of the model")
print(f"per layer: {96 * ends / 1e6:9,.1f} million, {96 * ends / gpt3.published_parameters:.0%} of it")

# %% [markdown]
# At the other end stands one product, and a norm before it:
#
# $$p = \operatorname{softmax}\big(W_U\, N(h)\big), \qquad h: (d), \quad W_U: (v, d), \quad p: (v)$$
#
# $h$ is what the last block leaves of one position. By hand: $h = (3, 4)$, RMSNorm without a scale: the mean square is 12.5, its root 3.54, $N(h) = (0.849, 1.131)$. A head of unit rows gives just that as logits, so the second token gets $1 / (1 + e^{-0.283}) = 0.57$.
#
# (All weights here are (out, in). If $v = d$, the product with the transposed head runs too, and is wrong.) And the norm? The blocks have norms already. What can one more do before training?

# %%
predict("without_the_final_norm")

# %%
first_losses: dict[tuple[int, bool], list[float]] = {}
for blocks in (2, 8, 32):
    for norm in (True, False):
        steps = [first_step(untrained(blocks, norm=norm, seed=seed)) for seed in range(3)]
        first_losses[blocks, norm] = [loss for _, loss, _ in steps]
        spreads = ", ".join(f"{spread:.1f}" for spread, _, _ in steps)
        losses = ", ".join(f"{loss:.1f}" for loss in first_losses[blocks, norm])
        print(f"{blocks:2} blocks, {'with' if norm else 'no  '} norm, three seeds: spread of the logits {spreads}; loss {losses}")

# %% [markdown]
# The stream grows with every block (notebook 10), and without the norm so do the logits. At 32 blocks the model is *sure* of its random guesses, and pays for it. With the norm, depth makes no difference.
#
# Because the head reads a norm, it can read *any* vector of this width: also the stream of an earlier block. That is the **logit lens** (nostalgebraist, 2020): what would the model predict if it had to stop here?

# %% [markdown]
# ### Exercise 7 · The logit lens  (3 points · 9 min · ●●)
#
# `states` is a list of streams, each of shape (b, s, d). For each, return the mean loss in nats if the final norm (an RMSNorm with this `scale` and $\varepsilon = 10^{-5}$) and the `head` (v, d) read it and have to predict `targets`: `targets[:, t]` belongs to position `t`, so nothing is shifted here.

# %% exercise="logit_lens"
def logit_lens(
    states: list[Float[Tensor, "b s d"]], scale: Float[Tensor, "d"], head: Float[Tensor, "v d"], targets: Int[Tensor, "b s"]
) -> list[float]:
    """Return the mean loss in nats if the final norm and the head read the stream at each of these points."""
    ### BEGIN SOLUTION
    losses = []
    for state in states:
        logits = F.rms_norm(state, scale.shape, scale, 1e-5) @ head.T
        losses.append(F.cross_entropy(logits.flatten(0, 1), targets.flatten()).item())
    return losses
    ### END SOLUTION


# %% check="logit_lens"

# %% [markdown]
# Now your decoder with the trained weights. Its `block` is replaced by one that keeps the stream after each branch, or skips a branch: what that adds is then 0.

# %%
def streams(skipped: str = "") -> tuple[dict[str, Tensor], float]:
    """Return the stream after each part of the trained model, and the loss at the end, if one part adds nothing."""
    states = {"embedding": read["embedding"][text[:, :-1]]}

    def block(x: Tensor, attention: Callable, feed_forward: Callable, norm_1: Callable, norm_2: Callable, parallel: bool) -> Tensor:
        number = len(states) // 2
        for name, branch, norm in (("attention", attention, norm_1), ("feed-forward", feed_forward, norm_2)):
            x = x if f"{name} {number}" == skipped else x + branch(norm(x))
            states[f"{name} {number}"] = x
        return x

    with torch.no_grad():
        logits = decoder(text[:, :-1], read, sizes, parts | {"self_attention": self_attention, "block": block})
    return states, F.cross_entropy(logits[0], text[0, 1:]).item()


read = decoder_weights(model)

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
with your("self_attention", "decoder", "logit_lens"):
    states, _ = streams()
    lenses = logit_lens(list(states.values()), read["norm"], read["embedding"], text[:, 1:])
    print("loss in nats      if the head reads here   at the end, without this part")
    for name, read_here in zip(states, lenses, strict=True):
        print(f"{name:17} {read_here:10.1f} {'' if name == 'embedding' else format(streams(name)[1], '25.2f')}")

# %% [markdown]
# Read the first number twice. Right after the embedding, this model is *worse than guessing* by far, where $\ln 512 = 6.2$. (Block D asks why.) The first feed-forward layer takes most of it away. And compare the two measurements. On five texts of this kind, attention 0 takes 3 to 4 nats off, and without it the end loses 0.2 to 0.6. Attention 3 takes 0.3 off, and costs 0.4 to 0.9. The lens shows what can be *read* after a part; a part may also prepare what a later one uses.
#
# ### B · The loss, and a run  (16 min)
#
# In notebook 05 you wrote this loss for whole texts: the mean of −ln p over all next tokens. Real batches are padded, and some of a text may not count (a prompt, say). By hand: tokens (1, 2, 0), two predictions. Logits $(0, 0, 0, 0)$ for the first: token 2 has $p = 1/4$, 1.386 nats. Logits $(\ln 2, 0, 0, 0)$ for the second: token 0 has $p = 2/5$, 0.916 nats. The loss is their mean, 1.151.
#
# A text of 1,024 tokens gives 1,023 examples in one pass. A recurrent model (notebook 06) has the same 1,023 examples, but it cannot compute the positions at the same time.
#
# A colleague minimises the mean of $\operatorname{softmax}(z_t)$ at the next token, without a logarithm and without a sign. What does that model learn? (Answer: to make its own training text unlikely.)

# %% [markdown]
# ### Exercise 8 · The loss  (3 points · 10 min · ●● · differentiable)
#
# `logits[:, t]` predicts `tokens[:, t + 1]`. Targets that are equal to `ignored` (such as padding) do not count, wherever they are. `ignored` may be any number, even one that is no token. Average over all targets that count, of all texts at once; if none counts, the loss is 0.
#
# - Compute in fp32, or in fp64 if the logits are fp64. Logits may be fp16 or bf16, and as large as you like.
# - Return a tensor without axes, in the format you computed in, *with its graph*: the model will be trained with it. Where nothing counts, the gradients are 0.
# - Do without torch's ready-made `cross_entropy` and `nll_loss`: they are the whole answer. `logsumexp` and `log_softmax` are allowed.

# %% exercise="causal_lm_loss"
def causal_lm_loss(
    logits: Float[Tensor, "b s v"], tokens: Int[Tensor, "b s"], ignored: int = -100
) -> Float[Tensor, ""]:
    """Return the mean of −ln p(next token) over all targets but `ignored`, with its graph."""
    ### BEGIN SOLUTION
    predicted = logits[:, :-1].to(torch.promote_types(logits.dtype, torch.float32))
    targets = tokens[:, 1:]
    counts = targets != ignored
    index = torch.where(counts, targets, 0)[..., None]
    losses = predicted.logsumexp(dim=-1) - predicted.gather(-1, index).squeeze(-1)
    return losses[counts].sum() / counts.sum().clamp(min=1)
    ### END SOLUTION


# %% check="causal_lm_loss"

# %% [markdown]
# Forget the shift, and training looks wonderful: a model that repeats what it reads has a loss of 0.
#
# Now what you have built it for. Your decoder, your loss, and the little stories of notebook 05, letter by letter: 2 blocks of 32 features, batches of 16 × 64 letters. (At the end it cannot be better than the entropy of the stories, 0.222 nats a letter.) The run takes about ten seconds.

# %% tags=["nbval-ignore-output", "because losses differ between processors"]
grammar, source = story_grammar(), random.Random(0)
stories = "".join(grammar.generate(source) for _ in range(200))
alphabet = sorted(set(stories))
letters = torch.tensor([alphabet.index(letter) for letter in stories])
torch.manual_seed(0)
scribe = Transformer(llama_like(2, 32, 4, 64, vocab_size=len(alphabet), context=64, kv_heads=2))
initialize(scribe, "fan_in")
learned, scribe_sizes = decoder_weights(scribe), decoder_sizes(scribe)
outer = {name: each for name, each in learned.items() if name != "blocks"}
leaves = [each.requires_grad_() for layer in [outer, *learned["blocks"]] for each in layer.values()]


@torch.no_grad()
def story(count: int = 90) -> str:
    """Return what your decoder writes after a new line, each letter drawn from its probabilities."""
    text, chance = [alphabet.index("\n")], torch.Generator().manual_seed(0)
    for _ in range(count):
        logits = own_logits(torch.tensor([text[-64:]]), learned, scribe_sizes)[0, -1]
        text.append(int(torch.multinomial(logits.softmax(dim=-1), 1, generator=chance)))
    return "".join(alphabet[each] for each in text[1:]).replace("\n", "¶")


with your("self_attention", "decoder", "causal_lm_loss"):
    optimizer, chance = torch.optim.AdamW(leaves, 0.01), torch.Generator().manual_seed(0)
    for step in range(241):
        if step in (0, 60, 240):
            print(f"step {step:3}: {story()}")
        optimizer.param_groups[0]["lr"] = 0.01 * min(1.0, step / 20, (241 - step) / 60)
        windows = letters[torch.randint(len(letters) - 64, (16, 1), generator=chance) + torch.arange(64)]
        loss = causal_lm_loss(own_logits(windows, learned, scribe_sizes), windows)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(leaves, 1.0)
        optimizer.step()
    print(f"loss of the last batch: {loss.item():.2f} nats a letter")

# %% [markdown]
# Your own model speaks. Notebook 13 does the same with everything that a real run needs.
#
# ### C · Who reads whom?  (16 min)
#
# LLaMA is published, so you could compare. For a new model there is nothing to compare with. So ask it questions whose right answers are known beforehand. Three are on the best-known list (Karpathy, 2019): "use backprop to chart dependencies" (this block), "verify loss @ init" (D) and "overfit one batch" (E).
#
# Replace one token, and see which outputs change. Output $i$ of a decoder must not change when a token after $i$ is replaced.

# %%
predict("two_windows")

# %% [markdown]
# ### Exercise 9 · Who reads whom?  (3 points · 10 min · ●●)
#
# `model` is a function from tokens (b, s) to outputs (b, s, v). Return a table of truth values: `[i, j]` is true if output $i$ changes, by more than $10^{-6}$ in any of its numbers, when *some* other token of the vocabulary takes place $j$ of the text. Smaller differences are rounding: kernels differ in their last digits.

# %% exercise="influence"
def influence(model: Callable, tokens: Int[Tensor, "s"], vocabulary: int) -> Bool[Tensor, "s s"]:
    """Return a table: [i, j] is true if output i changes by more than 1e-6 when another token takes place j."""
    ### BEGIN SOLUTION
    before = model(tokens[None])
    columns = []
    for place in range(len(tokens)):
        texts = tokens.repeat(vocabulary, 1)
        texts[:, place] = torch.arange(vocabulary)
        columns.append((model(texts) - before).abs().amax(dim=(0, 2)) > 1e-6)
    return torch.stack(columns, dim=1)
    ### END SOLUTION


# %% check="influence"

# %%
torch.manual_seed(0)
look, mixing = torch.randn(6, 4).double(), torch.rand(6, 6).double().tril()  # an attention of random weights
window = (torch.ones(6, 6).tril() - torch.ones(6, 6).tril(-2)).double() / 2
both_ways = torch.rand(6, 6).double()
with_prompt = mixing.clone()
with_prompt[:3, :3] = both_ways[:3, :3]  # the first three tokens are a prompt, read both ways
suspects: dict[str, Callable] = {
    "decoder": lambda t: mixing @ look[t],
    "encoder": lambda t: both_ways @ look[t],
    "prefix of 3": lambda t: with_prompt @ look[t],
    "two windows of 2": lambda t: window @ (window @ look[t]).tanh(),
    "norm over tokens": lambda t: mixing @ F.layer_norm(look[t].mT, (6,)).mT,
}

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
with your("influence"):
    tables = {name: influence(suspect, torch.tensor([3, 0, 2, 5, 1, 4]), 6) for name, suspect in suspects.items()}
    reading = figures.readers(tables)
reading

# %% [markdown]
# The first three are architectures. Change who sees whom, and a **decoder** (GPT, 2018), which writes, becomes an **encoder** (BERT, 2018), which reads for search and classification, or a **prefix decoder** (studied with T5 by Raffel et al., 2020), which reads its prompt both ways. An encoder–decoder (T5) is the second and the first, joined: the decoder's *cross*-attention reads the encoder's output.
#
# The last one is "causal": its mask is right. But a norm that averages over the tokens (notebook 10) carries the future past the mask. Its training loss would look wonderful.
#
# ### D · The first loss  (15 min)
#
# Nothing is learned, so nothing is known: if all $v$ logits are equal, the loss is $\ln v$, 5.55 nats for bytes, 10.82 for GPT-2's tokens. But the logits of a random model are not equal. Let them be independent and normal with standard deviation $\sigma$. Then
#
# $$\mathcal{L} = \mathbb{E}\Big[\ln \sum_j e^{z_j} - z_y\Big] \approx \ln\big(v \, \mathbb{E}\,e^{z}\big) - 0$$

# %% [markdown]
# ### Exercise 10 · The first loss  (2 points · 6 min · ●●)
#
# Finish it: you need the mean of $e^z$ for a normal $z$. (For a large vocabulary the sum is nearly $v$ times the mean; take that as exact.) Raise `ValueError` for less than one token or a spread below 0.

# %% exercise="initial_loss"
def initial_loss(vocabulary: int, spread: float = 0.0) -> float:
    """Return the expected loss in nats of random logits: normal, independent, mean 0, this standard deviation."""
    ### BEGIN SOLUTION
    if vocabulary < 1 or spread < 0:
        raise ValueError("a model needs a token, and a spread is not negative")
    return math.log(vocabulary) + spread**2 / 2
    ### END SOLUTION


# %% check="initial_loss"

# %%
predict("untrained_and_tied")

# %%
WAYS = {
    "untied, torch's own": (False, None),
    "untied, small (gpt2)": (False, "gpt2"),
    "tied, torch's own N(0, 1)": (True, None),
    "tied, small (gpt2)": (True, "gpt2"),
}
starts = {
    name: {v: first_step(untrained(4, v, tied, rule, seed=v)) for v in (256, 1000, 8192)} for name, (tied, rule) in WAYS.items()
}
with your("initial_loss"):
    for name, by_v in starts.items():
        formula = ", ".join(f"{initial_loss(v, spread):.0f}" for v, (spread, _, _) in by_v.items())
        measured, repeats = ", ".join(f"{loss:.0f}" for _, loss, _ in by_v.values()), min(each[2] for each in by_v.values())
        print(f"{name:26} formula {formula:11} measured {measured:11} repeats the token just read: {repeats:.0%}")

# %% [markdown]
# Three of the four are where arithmetic puts them. The third starts near 60 nats, whatever the vocabulary. Its logits are neither small nor independent.
#
# The formula has a limit, too: it needs $v$ much larger than $e^{\sigma^2}$, or the sum is not near its mean. In a model of 32 blocks without the final norm (block A), $\sigma$ is 5.3: the formula says 19.6 nats for bytes, and the loss is 14 to 16.
#
# Why does an untrained tied model repeat what it has read, nearly everywhere? The stream is a sum (notebook 10), and its first term is the row of that token. The head multiplies the stream with *all* rows, and no row is as similar to that one as itself: $E_t \cdot E_t = |E_t|^2$. With entries from $N(0, 1)$ that is $d$, and stays near $\sqrt{d} \cdot \sqrt{d}$ after the norm: the logit of the token just read is about 64 here. So the loss is about 60; at $d = 256$ it would be about four times that. That explains the first number of the lens in block A, too: right after the embedding, a tied model can only repeat, even a trained one.
#
# **In real models.** There are four remedies: start with small embeddings (GPT-2: 0.02; then the branches soon outgrow them), multiply by $\sqrt d$ on the way in only (Gemma), divide by it on the way out (T5), or have two matrices (LLaMA; a speed-run of nanoGPT got from 12.0 to 10.8 minutes by untying, 2024). Tied since Press & Wolf (2017), to save parameters. How many?

# %%
predict("untying_llama")

# %%
explore(figures.parameters_by_part, model=list(MODELS))

# %% [markdown]
# ### E · One batch by heart  (17 min)
#
# A model with enough parameters must be able to learn *one* batch by heart, even a batch of random tokens. If it cannot, the gradient does not arrive somewhere. Is that test enough? Take four decoders whose logits are right, each with one gradient that is cut:
#
# - *norm*: `.detach()` on the stream before the last norm;
# - *values*: `v.detach()` before attention;
# - *scores*: `q.detach()` and `k.detach()` before attention;
# - *part*: the whole of `self_attention` under `torch.no_grad()`.

# %%
predict("cuts_noticed")

# %% [markdown]
# ### Exercise 11 · One batch by heart  (3 points · 10 min · ●●)
#
# Train `decoder(tokens, weights, sizes, parts)` on the batch `tokens` for `steps` steps of `torch.optim.AdamW` with the learning rate `rate`, everything else at its default. `loss(logits, tokens)` is the number to minimise. Return the losses as numbers, one for each step, each from *before* that step.
#
# Train a copy: the weights that you were given stay as they are. (They may be tensors that require gradients already.) They are nested as in Exercise 2, and the model may be tied. Parts whose names are in `frozen` (some of `"embedding"`, `"blocks"`, `"norm"`, `"head"`) still require gradients, but are not passed to the optimizer.

# %% exercise="by_heart"
def by_heart(
    decoder: Callable,
    loss: Callable,
    weights: dict[str, Any],
    sizes: dict[str, Any],
    parts: dict[str, Callable],
    tokens: Int[Tensor, "b s"],
    steps: int,
    rate: float,
    frozen: tuple[str, ...] = (),
) -> list[float]:
    """Return the losses of a decoder that is trained on one batch, one for each step, from before the step."""
    ### BEGIN SOLUTION
    trained: list[Tensor] = []

    def copied(part: Any, learns: bool) -> Any:
        if isinstance(part, list):
            return [copied(each, learns) for each in part]
        if isinstance(part, dict):
            return {name: copied(each, learns) for name, each in part.items()}
        leaf = part.detach().clone().requires_grad_()
        trained.extend([leaf] if learns else [])
        return leaf

    own = {name: copied(part, name not in frozen) for name, part in weights.items()}
    optimizer = torch.optim.AdamW(trained, rate)
    losses = []
    for _ in range(steps):
        current = loss(decoder(tokens, own, sizes, parts), tokens)
        optimizer.zero_grad()
        current.backward()
        optimizer.step()
        losses.append(current.item())
    return losses
    ### END SOLUTION


# %% check="by_heart"

# %% [markdown]
# Now your decoder, whole and with each of the four cuts (the last three are parts of section 3): 2 blocks of 32 features, 64 tokens in the vocabulary, 4 random texts of 17. A head alone goes far on a batch as small as this one, so in the second column only the blocks are trained. The last column needs no training: with the same weights and the same loss, it compares the gradient of every tensor with that of the whole decoder, and shows the largest relative difference.

# %%
def cut_before_the_head(tokens: Tensor, weights: dict, sizes: dict, parts: dict) -> Tensor:
    """Your decoder, with the stream detached before its last norm."""
    norm, last = parts["rms_norm"], weights["norm"]
    cut = {"rms_norm": lambda x, scale, eps: norm(x.detach() if scale is last else x, scale, eps)}
    return decoder(tokens, weights, sizes, parts | cut)


def next_loss(logits: Tensor, tokens: Tensor) -> Tensor:
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def all_gradients(version: Callable, own: dict[str, Callable]) -> list[Tensor]:
    """Return the gradient of every tensor of the weights, for the loss on the batch."""
    layers = [{name: each.clone().requires_grad_() for name, each in layer.items()} for layer in start_weights["blocks"]]
    outer = {name: each.clone().requires_grad_() for name, each in start_weights.items() if name != "blocks"}
    loss = next_loss(version(cut_batch, outer | {"blocks": layers}, tiny_sizes, own), cut_batch)
    tensors = [each for layer in [outer, *layers] for each in layer.values()]
    return list(torch.autograd.grad(loss, tensors, allow_unused=True, materialize_grads=True))


torch.manual_seed(0)
tiny = Transformer(llama_like(2, 32, 4, 64, vocab_size=64, context=32, kv_heads=2)).double()
initialize(tiny, "fan_in")
cut_batch = torch.randint(64, (4, 17), generator=torch.Generator().manual_seed(2))
start_weights, tiny_sizes = decoder_weights(tiny), decoder_sizes(tiny)

# %%
with your("self_attention", "decoder", "by_heart"):
    own = parts | {"self_attention": self_attention}
    wanted = all_gradients(decoder, own)
    print("        all weights: loss 0, 15, 29   blocks only: loss 0, 15, 29   largest error of a gradient")
    versions = {"whole": (decoder, own), "norm": (cut_before_the_head, own)}
    names = {"values": "values detached", "scores": "scores detached", "part": "attention under no_grad"}
    versions |= {name: (decoder, own | SUSPECTS[slip]) for name, slip in names.items()}
    for name, (version, with_parts) in versions.items():
        rows = []
        for frozen in ((), ("embedding", "norm", "head")):
            losses = by_heart(version, next_loss, start_weights, tiny_sizes, with_parts, cut_batch, 30, 0.01, frozen)
            rows.append("  ".join(f"{losses[step]:5.2f}" for step in (0, 15, 29)))
        pairs = zip(all_gradients(version, with_parts), wanted, strict=True)
        error = max(((a - b).norm() / b.norm()).item() for a, b in pairs)
        print(f"{name:8}{rows[0]:>27}{rows[1]:>30}{error:>20.2f}")

# %% [markdown]
# So one batch by heart notices a gradient that is cut *outside of all blocks*: clearly if the head is frozen (4.79, for ever), otherwise only because it is slow (1.03 against 0.01, and still falling). Inside a part it notices none. "It cannot learn one batch" means that something is wrong. "It can" does *not* mean that all is right. The last column is the test that finds all four. It needs a second implementation to compare with, and a minute.
#
# (With a frozen norm and head the logits are bounded, so even the whole decoder does not reach 0 in the middle column.)
#
# ### F · To the last digit  (12 min)
#
# In a block of GPT-3's kind, attention has four matrices of $d \times d$, and the feed-forward layer two of $d \times 4d$: $12 d^2$, and $N \approx 12 L d^2$. For the whole model one adds $2vd$ if it is untied.

# %%
predict("rule_of_thumb_405b")

# %% [markdown]
# ### Exercise 12 · Llama 3.1 405B  (2 points · 8 min · ●●)
#
# Llama 3.1 405B (2024) has 126 blocks, $d$ = 16,384, $d_{ff}$ = 53,248 with a gate, 128 query heads and 8 key heads of 128 features, no biases, RMSNorms (two a block, one before the head), and an untied head. The paper's table says 128,000 tokens; the released model has 128,256: take these.
#
# Count to the last digit. Give a dictionary with exactly these six keys: `"embedding"` (the table alone), `"queries"` and `"keys"` (the matrices that make them, of all blocks), `"feed_forward"`, `"norms"` and `"total"`.

# %% exercise="llama_405b"
llama_405b = None  # a dictionary in place of None
### BEGIN SOLUTION
d, d_ff, layers = 16_384, 53_248, 126
embedding, queries, keys = 128_256 * d, layers * d * d, layers * d * 8 * 128
feed_forward, norms = layers * 3 * d * d_ff, (2 * layers + 1) * d
llama_405b = {
    "embedding": embedding,
    "queries": queries,
    "keys": keys,
    "feed_forward": feed_forward,
    "norms": norms,
    "total": 2 * embedding + 2 * queries + 2 * keys + feed_forward + norms,
}
### END SOLUTION

# %% check="llama_405b"

# %%
big = find_model("llama-3.1-405b")
L, width = len(big.decoder.layers), big.decoder.d_model
counted = count_parameters(big.config)
rule = 12 * L * width**2
in_blocks = {
    "attention": counted["attention q"] + counted["attention k"] + counted["attention v"] + counted["attention out"],
    "feed-forward": counted["feed-forward"],
}
print(f"12·L·d² = {rule:,}: {rule / counted.total - 1:+.3%} of {counted.total:,}")
for name, count in in_blocks.items():
    print(f"{name:13} {count / (L * width**2):6.3f} L·d²")

# %% [markdown]
# Two errors cancel: shared keys make attention cheaper (2.125 instead of 4), the gate makes the feed-forward layer more expensive (9.75 instead of 8). Together that is 11.875, and embedding and head happen to be what is missing. Of every rule that fits too well, ask *why*.
#
# ### G · What others chose  (9 min)
#
# Every source has its own letters. This is how they translate:
#
# | here | | nanoGPT | T5's, LLaMA's papers | papers on cost |
# | --- | --- | --- | --- | --- |
# | $b$ | texts in a batch | `B` | batch | $B$ |
# | $s$ | tokens in a text | `T` | $n$ | $S$ |
# | $d$ | width of the stream | `C` | $d_{model}$ | $D$ |
# | $h$ | heads | `n_head` | $h$ | $A$ |
# | $L$ | blocks | `n_layer` | $N$ | $L$ |
# | $v$ | tokens in the vocabulary | `V` | $V$ | $V$ |
#
# Papers on cost drop terms "because $V \gg D$". Each such line has a condition, and it fails for some model:
#
# | because | one drops | Llama 3 8B | fails for |
# | --- | --- | --- | --- |
# | $V \gg D$ | at the head, what is $bsd$ (the stream) beside $bsv$ (the logits) | $v/d = 31$ | bytes: $v = 256$ |
# | $S \gg L$ | per layer, what does not grow with the text: norms' $2d$ numbers beside $sd$ | $s/L = 256$ | decoding, one token at a time |
# | $S \lesssim D$ | in a block, the scores' FLOPs, $4sd$ a token, beside $24 d^2$ of the matrices | $s/d = 2$: a third | long texts: equal at $s = 6d$ |
#
# What did others build?

# %%
predict("least_agreed")

# %%
explore(figures.feature_timeline, choice=list(CHOICES))

# %% [markdown]
# LayerNorm to RMSNorm, learned positions to RoPE, ReLU and GELU to SwiGLU, biases to none: within eight years most models became very similar. Dropout, which sets some features to 0 at random in training, is against *overfitting*, and a model that sees each token once can hardly overfit (notebook 13 has runs with and without). Weight decay stayed, for other reasons (notebook 04). And vocabularies grew. Is that the years, or the languages? The last lines take models since 2022 alone:

# %%
for first, last in ((2017, 2021), (2022, 2023), (2024, 2026)):
    of_then = [entry for entry in published() if first <= entry.year <= last]
    sizes_then = sorted(entry.decoder.vocab_size for entry in of_then)
    decays = [weight_decay(entry.name) for entry in of_then if weight_decay(entry.name)]
    print(
        f"{first}–{last}: {len(of_then)} models, {sum(entry.decoder.block.dropout > 0 for entry in of_then):2} with dropout; "
        f"median vocabulary {sizes_then[len(of_then) // 2]:,}; "
        f"weight decay published for {len(decays)}: {', '.join(sorted(set(decays)))}"
    )
since_2022 = {
    kind: {entry.name: entry.decoder.vocab_size for entry in published() if entry.year >= 2022 and languages(entry.name) == kind}
    for kind in LANGUAGES
}
for kind, found in since_2022.items():
    print(f"since 2022, {kind}: {len(found)} models, median vocabulary {statistics.median(found.values()):,.0f}, from {min(found.values()):,} to {max(found.values()):,}")

# %% [markdown]
# It is mostly the languages: the second median is more than four times the first. But not only: Gemma 1 and 2 read mostly English and have 256,000 tokens, because they took their tokenizer from Gemini (Gemma Team, 2024). And a larger model can afford more rows (Tao et al., 2024).

# %% [markdown]
# **Deep or wide?** Most models have an aspect $d / L$ from 60 to 160 (notebook 11). Is the optimum so sharp?

# %%
predict("deep_or_wide")

# %%
SHAPES = {"1 × 96": (0.399, 0.402, 0.405), "2 × 64": (0.384, 0.394, 0.396)}
SHAPES |= {"4 × 48": (0.396, 0.400, 0.384), "8 × 32": (0.411, 0.401, 0.421)}
for shape, ends_of_runs in SHAPES.items():
    print(f"{shape} blocks × width: losses of three runs {ends_of_runs}, mean {statistics.fmean(ends_of_runs):.3f}")

# %% [markdown]
# From an aspect of 96 to one of 4, the mean loss moves by 5 %. In Kaplan et al. (2020, §3.1, Fig. 5) a model of 6 layers, 4,288 wide, came within 3 % of the loss of one of 48 layers, 1,600 wide. So other reasons decide. Blocks wait for each other, and depth cannot be computed in parallel. And with nearly the same loss, deep and narrow models did better after fine-tuning (Tay et al., 2022).
#
# **Pictures.** Cut into patches, they become tokens: vectors of a ready-made vision encoder, projected to width $d$ (*late* fusion, LLaVA), or numbers of a codebook, with rows of their own in the embedding that are learned together with the text (*early* fusion, Chameleon, 2024). The decoder stays as it is. Stability needs care: Chameleon needed norms on queries and keys (notebook 16).
#
# **Your own package.** `lmcourse package`, in a terminal, makes a package of your answers: plain PyTorch, with a module for each notebook that holds what you wrote there, and the trained weights. `python -m my_transformer --prompt "Return the "` runs it without the course.
#
# ### Check yourself
#
# 1. (B, C) A loss of 0.01 after 100 steps on new text. Which two slips would you look for first?
# 2. (A) Which rows of a tied embedding does weight decay shrink that no gradient touches?
# 3. (D) Your model starts at 9 nats with a vocabulary of 256. What do you measure next?
# 4. (A) A colleague counts $4bsvd$ FLOPs forward for the vocabulary: $2bsvd$ for the head, and as much for the embedding. Why is the second half 0? (Notebook 15 counts.)
# 5. (C) What would `influence` show for an encoder–decoder's decoder, in its own text?
# 6. (F) 12·L·d² for Gemma 3 1B: will it be too much or too little, and why?
# 7. (G) Kaplan et al. found the best aspect near 100 at 50 million, 274 million and 1.5 billion parameters. What does that say about the rule, and what shape has a model of 1.5 billion by it?
#
# <details><summary>Answers</summary>
#
# 1. A loss without the shift: the model repeats what it reads. And a future that leaks, past the mask or through a norm over tokens.
# 2. None. The head gives every row a gradient at every step.
# 3. The spread of the logits. By $\ln v + \sigma^2/2$ it is 2.6, as without the final norm in 8 blocks.
# 4. A row is looked up, not computed. Only a product with one-hot vectors would have these FLOPs.
# 5. A lower triangle. Its cross-attention reads another text.
# 6. Too little: 414 million of one billion. The table alone is 302 million, and gated layers of width $6d$ have $18\,d^2$ weights instead of $8\,d^2$.
# 7. The best aspect does not move with size, so depth and width grow together, like $N^{1/3}$. With $d = 100 L$, $12 L d^2 = 1.5 \cdot 10^9$ gives $L = 23$ and $d = 2{,}300$.
#
# </details>
#
# ### Further reading
#
# - Karpathy (2019), *A recipe for training neural networks*; nanoGPT, a decoder in one file.
# - Press & Wolf (2017), *Using the output embedding to improve language models*; nostalgebraist (2020), *Interpreting GPT: the logit lens*.
# - Kaplan et al. (2020), *Scaling laws*, §3.1 on shape; Tay et al. (2022), *Scale efficiently*; Bhojanapalli et al. (2020), *Low-rank bottleneck*.
# - Tao et al. (2024), *Scaling laws with vocabulary*; Chameleon Team (2024). `lmcourse/models/transformer.py` is what you have built, for every variant.

# %% tags=["hide-input"]
assert f"{ends / 1e6:.1f} {ends / gpt3.published_parameters:.2%}" == "642.7 0.37%"
assert f"{3 / math.sqrt(12.5):.3f} {4 / math.sqrt(12.5):.3f} {1 / (1 + math.exp(-1 / math.sqrt(12.5))):.2f}" == "0.849 1.131 0.57"
assert f"{math.log(4):.3f} {math.log(2.5):.3f} {(math.log(4) + math.log(2.5)) / 2:.3f}" == "1.386 0.916 1.151"
assert f"{math.log(256):.2f} {math.log(50_257):.2f} {math.log(512):.1f}" == "5.55 10.82 6.2"
assert f"{waiting:.3f}" == "0.905"
assert all(5.5 < loss < 6.6 for (_, norm), losses in first_losses.items() if norm for loss in losses)
assert all(14 < loss < 16.5 for loss in first_losses[32, False])
assert min(copied for name in ("tied, torch's own N(0, 1)", "tied, small (gpt2)") for _, _, copied in starts[name].values()) > 0.98
assert all(55 < loss < 70 for _, loss, _ in starts["tied, torch's own N(0, 1)"].values())
assert abs(rule / counted.total - 1) < 1e-4
assert len({languages(entry.name) for entry in published()}) == 3
english, many = (statistics.median(found.values()) for found in since_2022.values())
assert 4 < many / english < 5
assert {name[:6] for name, v in since_2022["mostly English"].items() if v > 110_000} == {"gemma-"}
means = [statistics.fmean(each) for each in SHAPES.values()]
assert round(max(means) / min(means), 2) == 1.05
assert round(12 * 26 * 1152**2 / 1e6) == 414 and f"{math.sqrt(2 * (9 - math.log(256))):.1f}" == "2.6"
assert round((1.5e9 / 12 / 100**2) ** (1 / 3)) == 23 and f"{math.log(256) + 5.3**2 / 2:.1f}" == "19.6"
eight = find_model("llama-3-8b").decoder
assert round(eight.vocab_size / eight.d_model) == 31 and (eight.context / len(eight.layers), eight.context / eight.d_model) == (256, 2)
