# %% [markdown]
# # 10 · Normalization and blocks
#
# **110 min · 10 exercises · 24 points**
#
# A transformer is a long sum. One vector per token runs through the whole model, the **residual stream**, and a hundred layers add to it,
# one after the other. *Why does the sum neither explode nor drown what came first? And what does it matter on which side of the plus
# sign a norm stands?*
#
# A norm can decide what a layer gets to *see*, what it may *say*, or what may *survive*. Everything in this notebook is one of these three.
#
# **You will be able to**
#
# - write LayerNorm and RMSNorm that survive 16 bits, and say what each does to a gradient;
# - turn a model with LayerNorms into one with RMSNorms, without training and without changing a single logit;
# - write every block that published models use, and predict what each leaves of the first word;
# - say which of the things that everybody repeats about norms are true, from experiments that you can repeat.
#
# **You need** attention (notebook 08) and the floating-point formats (01). Gradients of LayerNorm by hand were in 03. No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run
# it again for the next one.

# %%
import math
import random
from collections.abc import Callable
from contextlib import suppress

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lmcourse.accounting.timing import time_interleaved
from lmcourse.chapters.normalization_and_blocks import figures
from lmcourse.chapters.normalization_and_blocks.figures.models import STEPS, published_norms
from lmcourse.data.grammar import story_grammar
from lmcourse.data.loader import Loader
from lmcourse.models.initialize import initialize
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import all_models, find_model
from lmcourse.models.zoo.styles import gpt_like, llama_like
from lmcourse.nn.embedding import HeadConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.notebook import check, explore, hint, predict, start
from lmcourse.widgets import Log

start("10-normalization-and-blocks")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · How large is a number?
#
# A layer was built for features of about 1. Now they arrive 100 times as large, because the layers before it have grown. Nobody told this layer.
#
# A **LayerNorm** (Ba et al., 2016) in front of it takes the size away. For each token, from *its own* $d$ features alone:
#
# $$\mu = \frac1d\sum_i x_i, \qquad \sigma^2 = \frac1d\sum_i (x_i - \mu)^2, \qquad y = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta$$
#
# with $x$ of shape $(\dots, d)$, and $\gamma$ (scale) and $\beta$ (shift) of shape $(d)$, learned, 1 and 0 at first.
#
# By hand: $(100, 200, 100, 0)$. The mean is 100, the deviations $(0, 100, 0, -100)$, the mean of their squares 5,000, its root 70.71. Result: $(0, 1.414, 0, -1.414)$.

# %%
predict("scale_of_the_gradient")

# %%
torch.manual_seed(0)
SCALES = (0.01, 0.1, 1.0, 10.0, 100.0)
features, matrix = torch.randn(16, 64), torch.randn(64, 32) / 8


def input_gradient(scale: float, normed: bool) -> tuple[Tensor, Tensor]:
    """What comes into a layer, and the gradient of half its squared output with respect to it: (16, 64) each."""
    x = (scale * features).requires_grad_()
    read = F.layer_norm(x, (64,), eps=1e-12) if normed else x
    (gradient,) = torch.autograd.grad((read @ matrix).square().sum() / 2, x)
    return x.detach(), gradient


sizes = {
    name: [input_gradient(scale, normed)[1].norm().item() for scale in SCALES]
    for name, normed in (("behind a norm", True), ("without a norm", False))
}
for name, (small, *_, large) in sizes.items():
    print(f"{name:14} 10,000 times the input, and {large / small:.2g} times the gradient")

# %%
figures.gradient_by_scale(SCALES, sizes)

# %% [markdown]
# Without a norm, what is large gets a large gradient and grows on: that is how things explode. Behind a norm it is the other way round, *exactly*: 10,000 times the input, a ten-thousandth of the gradient. Large vectors are hard to turn, small ones easy; a norm is a brake.
#
# > **Spot the slip.** Two sets of lecture notes say what LayerNorm averages over. One writes "the sequence dimension" and then `nn.LayerNorm(D)`; the other has the formula above without $\varepsilon$. Both run. What do they do?

# %%
x = torch.randn(5, 8)
changed = x.clone()
changed[-1] += 3
ways: dict[str, Callable[[Tensor], Tensor]] = {
    "over the features": lambda tokens: F.layer_norm(tokens, (8,)),
    "over the sequence": lambda tokens: F.layer_norm(tokens.T, (5,)).T,
}
for name, norm in ways.items():
    moved = (norm(x) - norm(changed))[0].abs().max().item()
    print(f"{name}: the last of five tokens changes; does the first one see it? {moved > 0}")
print("features all alike, without ε:", F.layer_norm(torch.full((4,), 3.0), (4,), eps=0.0).tolist())

# %% [markdown]
# Over the sequence, the first word of a text would know about the last: the model would read the future, and its training loss would look wonderful.
#
# ### Exercise 1 · LayerNorm  (2 points · 6 min · ● · differentiable)
#
# Write it, without torch's own norms (`layer_norm`, `rms_norm`, `batch_norm`, `group_norm` and `instance_norm`, as functions and as modules), which would be the whole answer. $x$ has any number of axes; the last one is normalised. Three rules of every norm in production:
#
# - **compute in fp32, or in fp64 if $x$ is fp64**; $x$ may be fp16 or bf16;
# - the result has **the dtype of $x$**, whatever that of `scale` and `shift` is (fp32 parameters and bf16 features are the usual mixture);
# - means and variances of numbers far from zero must come out right: one case has a mean of 10,000.

# %% exercise="layer_norm"
def layer_norm(
    x: Float[Tensor, "*batch d"], scale: Float[Tensor, "d"], shift: Float[Tensor, "d"], eps: float = 1e-5
) -> Float[Tensor, "*batch d"]:
    """(x − mean) / √(variance + eps), feature by feature times scale plus shift; in the dtype of x."""
    ### BEGIN SOLUTION
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = wide - wide.mean(dim=-1, keepdim=True)
    root = (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return (centred / root * scale + shift).to(x.dtype)
    ### END SOLUTION


# %% check="layer_norm"
check(layer_norm)
### BEGIN HIDDEN TESTS
check(layer_norm, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · Only the length
#
# Which of the two does the work, subtracting the mean or dividing by the size? **RMSNorm** (Zhang & Sennrich, 2019) only divides:
#
# $$y = \gamma \odot \frac{x}{\sqrt{\frac1d\sum_i x_i^2 + \varepsilon}}$$
#
# By hand, the same vector: the squares are $10^4\,(1, 4, 1, 0)$, their mean 15,000, the root 122.47. Result: $(0.816, 1.633, 0.816, 0)$. The zero stays zero, the direction stays the direction. What was done is to put the vector on a sphere of radius $\sqrt d$. In two dimensions one can look at it:

# %%
explore(figures.norm_circle, kind=["rms", "layer"], eps=Log(1e-6, 1.0))

# %% [markdown]
# Did you try `layer`? In two dimensions a LayerNorm leaves just *two* points: after the mean is gone, $(a, b)$ is $(c, -c)$, and $|c|$ is normalised to 1. Every norm throws something away: LayerNorm two numbers of $d$, RMSNorm one.
#
# What does $\varepsilon$ do? It stands beside *squares*. Features of 0.001 have squares of $10^{-6}$: there a usual $\varepsilon$ halves the mean square.

# %%
predict("twice_as_large_in_fp16")

# %%
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    x = torch.tensor([200.0, 400.0, 200.0, 0.0], dtype=dtype)
    square = x * x
    result = [round(number, 3) for number in (x / square.mean().sqrt()).tolist()]
    print(f"{dtype!s:15} squares {square.tolist()}\n{'':15} result {result}")

# %% [markdown]
# Zeros, without a warning, for numbers that fp16 holds with ease. bf16 does not overflow, it just has three digits. That is why norms compute in fp32 even in models that do everything else in 16 bits.
#
# ### Exercise 2 · RMSNorm  (2 points · 6 min · ● · differentiable)
#
# The same rules as in Exercise 1: the last axis, in fp32 or fp64, the dtype of $x$ at the end, without torch's norms.

# %% exercise="rms_norm"
def rms_norm(x: Float[Tensor, "*batch d"], scale: Float[Tensor, "d"], eps: float = 1e-6) -> Float[Tensor, "*batch d"]:
    """x / √(mean square + eps), feature by feature times scale; in the dtype of x."""
    ### BEGIN SOLUTION
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    root = (wide.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return (wide / root * scale).to(x.dtype)
    ### END SOLUTION


# %% check="rms_norm"
check(rms_norm)
### BEGIN HIDDEN TESTS
check(rms_norm, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Both norms do not notice a factor: $N(cx) = N(x)$. Two things follow for the gradient, by the chain rule. It is proportional to $1/c$, as you measured; and moving along $x$ itself changes nothing, so the gradient is **at a right angle to $x$**, whatever comes after:

# %%
for scale in (0.01, 1.0, 100.0):
    x, gradient = input_gradient(scale, normed=True)
    cosines = F.cosine_similarity(x, gradient, dim=-1).abs()
    print(f"input × {scale:<5} gradient and input at a right angle, to 10⁻⁵: {bool((cosines < 1e-5).all())}")

# %% [markdown]
# ## 3 · What the mean was good for
#
# Today nearly everybody takes RMSNorm. Was the mean good for anything? Here is a question that decides it.

# %%
predict("from_layer_to_rms")

# %% [markdown]
# Think of the stream as a sum. A pre-norm model reads it only through norms, and every LayerNorm begins by subtracting the mean. So the mean of the stream is something that is carried along through all layers and that *nobody ever reads*. Could it be 0 from the start?
#
# By hand: a layer that writes $W h$ into the stream, with $W = \begin{pmatrix}1&2\\3&4\end{pmatrix}$ and $h = (1, 1)$. It writes $(3, 7)$, whose mean is 5; what a LayerNorm would leave of it is $(-2, 2)$. The mean can be taken away beforehand, for *every* $h$, by another matrix: $\begin{pmatrix}-1&-1\\1&1\end{pmatrix}$ writes $(-2, 2)$ at once.
#
# And if every vector in the sum has mean 0, so has the sum, at every layer. Then the variance *is* the mean square, and LayerNorm and RMSNorm are one and the same function.
#
# ### Exercise 3 · Centre the writers  (3 points · 10 min · ●●●)
#
# `weights` holds the tensors of a pre-norm model with LayerNorms, by name. Matrices are (out, in), as in `nn.Linear`, and act as $Wh + b$; a table has a row per token or position.
#
# | name | shape | what it does |
# | --- | --- | --- |
# | `embedding`, `positions` | (v, d), (t, d) | a row of each, added, is the start of the stream |
# | `qkv.0`, `qkv_bias.0` | (3d, d), (3d) | reads the stream, through a norm |
# | `out.0`, `out_bias.0` | (d, d), (d) | the output of attention |
# | `up.0`, `up_bias.0` | (f, d), (f) | the input of the feed-forward layer |
# | `down.0`, `down_bias.0` | (d, f), (d) | its output |
# | `qkv.1` … | | the next block; there may be any number |
# | `head` | (v, d) | the logits, from the stream through the last norm |
#
# A model may lack positions or biases. Return a new dictionary with all names, in which the mean of the stream is gone and nothing else, so that all LayerNorms may be replaced by RMSNorms (with the same scale and shift). Leave the tensors that you were given as they are.

# %% exercise="centre_writers"
def centre_writers(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a model that computes the same, and whose residual stream has mean 0 everywhere."""
    ### BEGIN SOLUTION
    centred = {}
    for name, weight in weights.items():
        kind = name.split(".")[0]
        if kind in ("embedding", "positions"):
            weight = weight - weight.mean(dim=-1, keepdim=True)
        elif kind in ("out", "out_bias", "down", "down_bias"):
            weight = weight - weight.mean(dim=0)
        centred[name] = weight
    return centred
    ### END SOLUTION


# %% check="centre_writers"
check(centre_writers)
### BEGIN HIDDEN TESTS
check(centre_writers, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Does it hold for a real architecture? A GPT-2 of three blocks with random weights *and random biases* in double precision; its tensors by our names, your function, and a second model with RMSNorms:

# %%
KINDS = {"attention.layer.qkv": "qkv", "attention.layer.out": "out", "feed_forward.layer.up": "up", "feed_forward.layer.down": "down"}


def table_names(model: Transformer) -> dict[str, str]:
    """For each tensor of the model that is no part of a norm, its name in the table above."""
    names = {"embedding.tokens.weight": "embedding", "embedding.positions.weight": "positions", "head.linear.weight": "head"}
    for index in range(len(model.blocks)):
        for layer, kind in KINDS.items():
            names[f"blocks.{index}.{layer}.weight"] = f"{kind}.{index}"
            names[f"blocks.{index}.{layer}.bias"] = f"{kind}_bias.{index}"
    return names


def small_gpt2(norm: NormConfig) -> Transformer:
    """A GPT-2 of three blocks in float64, every number of it random; the head is a matrix of its own."""
    config = gpt_like(3, 32, 4, vocab_size=50, context=16, norm=norm, head=HeadConfig(tied=False))
    model = Transformer(config).double()
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, mean=0.1, std=0.3, generator=generator)
    return model


with_layer_norm, with_rms_norm = small_gpt2(NormConfig("layer", bias=True)), small_gpt2(NormConfig("rms", bias=True))
names = table_names(with_layer_norm)
tensors = with_layer_norm.state_dict()
text = torch.randint(50, (4, 16))


def difference_of_logits() -> float:
    """The largest difference between the logits of the two models."""
    with torch.no_grad():
        return (with_layer_norm(text) - with_rms_norm(text)).abs().max().item()


print("RMSNorms put in, and nothing else: logits differ by more than 1:  ", difference_of_logits() > 1)
with suppress(NotImplementedError):  # until Exercise 3 is solved
    centred = centre_writers({ours: tensors[theirs] for theirs, ours in names.items()})
    with_rms_norm.load_state_dict(tensors | {theirs: centred[ours] for theirs, ours in names.items()})
    print("RMSNorms put in, writers centred: logits differ by less than 10⁻¹²:", difference_of_logits() < 1e-12)

# %% [markdown]
# To the last digits. The mean was never a feature of the model: it is one direction of the stream, out of $d$, that can be written and not be read. RMSNorm gives that direction back.
#
# The second step of the same surgery removes the scale and shift. A norm's $\gamma$ and $\beta$ stand right in front of a matrix, and two linear maps in a row are one.
#
# ### Exercise 4 · Fold the norm  (2 points · 6 min · ●●)
#
# A linear layer reads $\gamma \odot \hat x + \beta$. Return weight and bias of the layer that reads $\hat x$ itself and computes the same. `bias` may be `None`, as in most models today; a new bias is needed all the same.

# %% exercise="fold_norm"
def fold_norm(
    scale: Float[Tensor, "d"],
    shift: Float[Tensor, "d"],
    weight: Float[Tensor, "n d"],
    bias: Float[Tensor, "n"] | None,
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n"]]:
    """Weight and bias of a layer that does on x̂ what this one does on scale · x̂ + shift."""
    ### BEGIN SOLUTION
    moved = weight @ shift
    return weight * scale, moved if bias is None else moved + bias
    ### END SOLUTION


# %% check="fold_norm"
check(fold_norm)
### BEGIN HIDDEN TESTS
check(fold_norm, hidden=True)
### END HIDDEN TESTS

# %%
gamma, beta, x = torch.tensor([2.0, 0.5, -1.0]), torch.tensor([1.0, 0.0, 3.0]), torch.randn(4, 3)
layer = nn.Linear(3, 2)
normed = F.layer_norm(x, (3,))
with suppress(NotImplementedError):  # until Exercise 4 is solved
    folded = fold_norm(gamma, beta, layer.weight.detach(), layer.bias.detach())
    same = torch.allclose(F.linear(normed, *folded), layer(gamma * normed + beta), atol=1e-5)
    print("the folded layer computes the same:", same)

# %% [markdown]
# **In real models.** SliceGPT (Ashkboos et al., 2024) does both to published models before it cuts features away: without means and scales the stream may be turned like any vector, and the least important directions cut off. Who uses which norm you can count in the zoo:

# %%
kinds = [entry.decoder.block.norm.kind for entry in all_models() if "norm" not in entry.survey_overrides]
print(f"of {len(all_models())} entries: RMSNorm {kinds.count('rms')}, LayerNorm {kinds.count('layer')}, not said {len(all_models()) - len(kinds)}")

# %% [markdown]
# PaLM is disputed: its paper (Chowdhery et al., 2022) writes LayerNorm, and lectures list it under RMSNorm. The zoo goes by the paper.

# %% [markdown]
# ## 4 · What a norm costs
#
# RMSNorm does 4 operations on each number where LayerNorm does 7. Does that matter? Look at the bytes as well:

# %%
explore(figures.norm_costs, kernels=["fused", "one by one"])

# %% [markdown]
# A multiplication is far quicker than fetching the number that is multiplied (notebook 19). What counts is how often the features travel through the memory, and a **fused** kernel needs one trip for either norm.

# %%
predict("faster_norm")

# %% tags=["nbval-ignore-output", "because it is a clock"]
x, ones, zeros = torch.randn(2048, 4096), torch.ones(4096), torch.zeros(4096)
candidates: dict[str, Callable[[], object]] = {
    "copy": lambda: x.clone(),
    "F.layer_norm": lambda: F.layer_norm(x, (4096,), ones, zeros),
    "F.rms_norm": lambda: F.rms_norm(x, (4096,), ones),
}
yours: dict[str, Callable[[], object]] = {
    "your layer_norm": lambda: layer_norm(x, ones, zeros),
    "your rms_norm": lambda: rms_norm(x, ones),
}
for functions in (candidates, yours):
    with suppress(NotImplementedError):  # until Exercises 1 and 2 are solved
        for name, timing in time_interleaved(functions, repeats=5).items():
            print(f"{name:16} {1000 * timing.median:5.0f} ms")

# %% [markdown]
# On the processors we tried, torch's LayerNorm costs little more than copying, and its RMSNorm, which does less, takes more than twice as long: nobody wrote a fused kernel of it for CPUs. Compare your two: *written out*, both lose to the fused kernel, and the one with fewer steps makes fewer trips. So "RMSNorm is faster" is a statement about kernels, not about formulas.
#
# How much is there to win? In a BERT on a GPU, normalisations were 0.17 % of the FLOPs and 25.5 % of the time (Ivanov et al., 2021); notebook 19 asks what follows from it. What a large comparison of transformers really measured (Narang et al., 2021): 3.50 steps per second with LayerNorm, 3.68 with RMSNorm, and a slightly better loss.
#
# ### Exercise 5 · How much faster?  (1 point · 3 min · ●)
#
# Give two shares: by how much more steps are done in the same time (`faster`), and which share of a run's time is saved (`time_saved`).

# %% exercise="narang_gain"
narang_gain = None  # {"faster": ..., "time_saved": ...} in place of None
### BEGIN SOLUTION
narang_gain = {"faster": 3.68 / 3.5 - 1, "time_saved": 1 - 3.5 / 3.68}
### END SOLUTION

# %% check="narang_gain"
check(narang_gain=narang_gain)
### BEGIN HIDDEN TESTS
check(narang_gain=narang_gain, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# **Biases** go the same way. LLaMA's linear layers have none, and neither do its norms. How much of GPT-3 were they?

# %%
gpt3 = find_model("gpt-3")
d, blocks = gpt3.decoder.d_model, len(gpt3.decoder.layers)
biases = 9 * blocks * d  # 3 of queries, keys and values, 1 of out, 4 of up, 1 of down
print(f"{biases / 1e6:.1f} million of {gpt3.parameters / 1e9:.0f} billion parameters: {biases / gpt3.parameters:.3%}")

# %% [markdown]
# Nobody drops them to save parameters. They are one more trip through the memory, and large models trained more stably without (Chowdhery et al., 2022).

# %% [markdown]
# ## 5 · The stream
#
# Every branch adds to the stream, and no branch of a pre-norm model replaces anything. With $a_\ell$ and $m_\ell$ for what attention and feed-forward layer of block $\ell$ add to the embedding $e$:
#
# $$h = e + \sum_{\ell=1}^{L} (a_\ell + m_\ell)$$
#
# (One set of notes prints $\sum a_\ell + m_\ell$ without the brackets: then only the last $m$ would be left.) That it is true can be seen with hooks, in a model that has learned to write stories for a moment:

# %%
stories, source = story_grammar(), random.Random(0)
written = torch.tensor(list("".join(stories.generate(source) for _ in range(1500)).encode()))[:40_000]


def tiny_llama(blocks: int, placement: str, seed: int) -> Transformer:
    """A LLaMA-like model that reads bytes, with fan-in weights and its norms in another place."""
    torch.manual_seed(seed)
    config = llama_like(blocks, 32, 2, 64, vocab_size=128, context=32, block={"placement": placement})
    model = Transformer(config.with_(final_norm=None) if placement == "post" else config)
    initialize(model, "fan_in")
    return model


def train(model: Transformer, seed: int, steps: int = 60, warmup: int = 1) -> list[float]:
    """Train in place on stories, AdamW at 0.005; the loss of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), 0.005, betas=(0.9, 0.95), weight_decay=0.0)
    losses = []
    with Loader(written, batch=8, seq_len=32, seed=seed, prefetch=0) as batches:
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = 0.005 * min(1.0, (step + 1) / warmup)
            batch = next(batches)
            loss = next_token_loss(model(batch.inputs), batch.targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


writer = tiny_llama(2, "pre", seed=0)
train(writer, seed=0, steps=200)
prompt = torch.tensor([list(b"The dog saw the ")])
parts: dict[str, Tensor] = {}


def listen(name: str) -> Callable:
    """A hook that keeps what a module returns for the last token."""
    return lambda module, inputs, output: parts.__setitem__(name, output[0, -1].detach())


writer.embedding.register_forward_hook(listen("embedding"))
for number, each in enumerate(writer.blocks, start=1):
    each.attention.layer.register_forward_hook(listen(f"block {number}, attention"))
    each.feed_forward.layer.register_forward_hook(listen(f"block {number}, feed-forward"))
streams: list[Tensor] = []
writer.norm.register_forward_pre_hook(lambda module, inputs: streams.append(inputs[0][0, -1].detach()))
with torch.no_grad():
    logits = writer(prompt)[0, -1]
print("parts:", ", ".join(parts))
print("their sum is the stream:", torch.allclose(torch.stack(list(parts.values())).sum(dim=0), streams[-1], atol=1e-5))

# %% [markdown]
# So a logit, too, is a sum: the head reads the stream through a norm, and multiplies with a token's row. Whoever asks "which layer wanted this word?" can be answered with numbers. There is one catch, and it is the norm.
#
# ### Exercise 6 · Who made the logit?  (3 points · 8 min · ●●●)
#
# `parts[0]` is the embedding of one token, the other rows are what each branch has added to it. The head reads an RMSNorm (`scale`, `eps`) of their sum; `row` is the row of the head that belongs to the token in question. What does each part add to its logit? The answers have to add up to the logit.

# %% exercise="contributions"
def contributions(
    parts: Float[Tensor, "n d"], scale: Float[Tensor, "d"], row: Float[Tensor, "d"], eps: float = 1e-6
) -> Float[Tensor, "n"]:
    """What each part of the stream adds to the logit of the token whose row of the head is `row`."""
    ### BEGIN SOLUTION
    root = (parts.sum(dim=0).square().mean() + eps).sqrt()
    return parts @ (scale * row) / root
    ### END SOLUTION


# %% check="contributions"
check(contributions)
### BEGIN HIDDEN TESTS
check(contributions, hidden=True)
### END HIDDEN TESTS

# %% tags=["nbval-ignore-output", "because the digits of a trained model differ between processors"]
best = int(logits.argmax())
try:
    added = contributions(torch.stack(list(parts.values())), writer.norm.weight.detach(), writer.head.linear.weight[best].detach(), eps=1e-5)
except NotImplementedError:  # until Exercise 6 is solved
    added = torch.zeros(len(parts))
figures.contribution_bars(dict(zip(parts, added.tolist(), strict=True)), f"“{chr(best)}” after “{bytes(prompt[0].tolist()).decode()}”")

# %%
print("the contributions add up to the logit:", torch.allclose(added.sum(), logits[best], atol=1e-4))

# %% [markdown]
# Such sums are the everyday tool of those who look into models. Elhage et al. (2021) call the stream a channel: every layer reads from some of its directions and writes into others, and layers that are far apart can talk, since in between nothing is overwritten.

# %% [markdown]
# ## 6 · One plus sign, four places
#
# A branch $f$ (attention, or a feed-forward layer), a norm $N$, and a plus sign: published models put them together in four ways.
#
# | placement | the stream after the branch | used by |
# | --- | --- | --- |
# | post | $N(x + f(x))$ | the original transformer, GPT-1, BERT |
# | pre | $x + f(N(x))$ | GPT-2 and nearly all since |
# | double | $x + N'(f(N(x)))$ | Gemma 2 and 3 |
# | output | $x + N'(f(x))$ | OLMo 2 |
#
# Where the stream is never normalised (all but post), one more norm stands before the head. A student asks in a lecture: *why not put the norm after the feed-forward layer?* Of course one can. It is called "output", or, with one before as well, "double". (Notes print these two with LayerNorm; Gemma 2 and OLMo 2 have RMSNorm.)
#
# ### Exercise 7 · Four placements  (4 points · 10 min · ●● · differentiable)
#
# Write all four as one function. `f`, `before` and `after` are functions of a tensor: the branch, a norm that stands before it, and a norm that stands behind it or behind the sum. "pre" uses `before` only, "post" and "output" use `after` only, "double" both; a norm that a placement does not use may be `None`. Call `f` once: it is expensive. Leave $x$ as it is, and raise `ValueError` for any other placement.

# %% exercise="residual"
def residual(
    x: Float[Tensor, "*batch d"], f: Callable, before: Callable | None, after: Callable | None, placement: str
) -> Float[Tensor, "*batch d"]:
    """The stream after a branch f with its norms: "pre", "post", "double" or "output"."""
    ### BEGIN SOLUTION
    if placement == "pre":
        return x + f(before(x))
    if placement == "post":
        return after(x + f(x))
    if placement == "double":
        return x + after(f(before(x)))
    if placement == "output":
        return x + after(f(x))
    raise ValueError(f"a norm's placement is pre, post, double or output, not {placement!r}")
    ### END SOLUTION


# %% check="residual"
check(residual)
### BEGIN HIDDEN TESTS
check(residual, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.block_wiring, placement=["pre", "post", "double", "output"], branches=["serial", "parallel", "parallel_two_norms"])

# %% [markdown]
# Follow the thick line: in three of the four it meets nothing but plus signs. ("parallel" belongs to section 10.)

# %% [markdown]
# ## 7 · What is left of the first word?
#
# *Why is a norm* in *the stream bad?* is a student's question in the same lecture. Start with what it does to what is already there. By hand: the stream is a vector of length 1, a branch adds another one of length 1 that has nothing to do with it. The sum is $\sqrt2$ long (Pythagoras), and the post-norm takes it back to 1. The old vector in it is now $1/\sqrt2$ long.

# %%
predict("left_after_12_blocks")

# %% [markdown]
# ### Exercise 8 · What is left  (2 points · 6 min · ●●)
#
# Return the cosine between the embedding and the stream after so many blocks, of *two* branches each, when every branch adds a vector at a right angle to all others: with "post" one as long as the stream that it joins, otherwise one as long as the embedding. In "double" and "output" the norm stands on the branch. For an unknown placement, or fewer than 0 blocks, raise `ValueError`.

# %% exercise="embedding_share"
def embedding_share(blocks: int, placement: str) -> float:
    """The cosine of the embedding with the stream after so many blocks."""
    ### BEGIN SOLUTION
    if placement not in ("pre", "post", "double", "output") or blocks < 0:
        raise ValueError(f"no model has {blocks} blocks with norms {placement!r}")
    return 0.5**blocks if placement == "post" else (1 + 2 * blocks) ** -0.5
    ### END SOLUTION


# %% check="embedding_share"
check(embedding_share)
### BEGIN HIDDEN TESTS
check(embedding_share, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.stream_share, placement=["pre", "post", "double", "output"], blocks=(1, 96))

# %% [markdown]
# Random vectors of 8,192 features are nearly at right angles. Do they agree?

# %%
torch.manual_seed(0)
embedding = F.normalize(torch.randn(8192), dim=0)
for placement, predicted in (("pre", 0.2), ("post", 2**-12)):
    stream = embedding
    for _ in range(24):
        stream = stream + F.normalize(torch.randn(8192), dim=0)
        stream = F.normalize(stream, dim=0) if placement == "post" else stream
    cosine = F.cosine_similarity(stream, embedding, dim=0).item()
    print(f"{placement:4} cosine within 0.05 of the prediction for 12 blocks: {abs(cosine - predicted) < 0.05}")

# %% [markdown]
# In a pre-norm model the first word is still a fifth of everything after 12 blocks. In a post-norm model each layer has to write the word anew, or it is gone. Gradients go the same way back: on the straight path each post-norm divides them by as much.
#
# The other side of the coin: the pre-norm stream *grows*, like $\sqrt{1 + 2L}$, while what each branch adds does not. The 90th block adds to a vector 13 times as long as itself. Late blocks change little, and that is why deep pre-norm models can often do without some of them.

# %% [markdown]
# ## 8 · Gradients, measured
#
# Everybody has learned that post-norm gradients vanish. Has anybody looked? Xiong et al. (2020) have, and said something else: *at initialisation, near the output*, the gradients of a post-norm model are large, whatever its depth, and those of a pre-norm model fall like $1/\sqrt L$. That is why post-norm wants a warm-up. What happens towards the first blocks?

# %%
predict("post_norm_gradients")

# %%
DEPTHS = (2, 6, 12, 24, 48)


def block_gradients(blocks: int, placement: str, seed: int = 0, rule: str = "fan_in") -> list[float]:
    """The norm of the gradient of each block's `down` matrix, at initialisation."""
    torch.manual_seed(seed)
    config = llama_like(blocks, 64, 4, 128, vocab_size=128, context=32, block={"placement": placement})
    model = Transformer(config.with_(final_norm=None) if placement == "post" else config)
    initialize(model, rule)
    tokens = torch.randint(128, (8, 33))
    next_token_loss(model(tokens[:, :-1]), tokens[:, 1:]).backward()
    return [each.feed_forward.layer.down.weight.grad.norm().item() for each in model.blocks]


profiles = {p: {blocks: block_gradients(blocks, p) for blocks in DEPTHS} for p in ("pre", "post", "double", "output")}
last = {placement: [by_depth[blocks][-1] for blocks in DEPTHS] for placement, by_depth in profiles.items()}
print("last block, 2 → 48 blocks:  pre falls to less than a quarter:", last["pre"][-1] < last["pre"][0] / 4)
print("                            post stays within a factor of 2: ", max(last["post"]) < 2 * min(last["post"]))
for placement in profiles:
    first, *_, end = profiles[placement][48]
    print(f"{placement:6} 48 blocks: the first block's gradient is more than 50 times the last one's: {first > 50 * end}")

# %%
figures.gradient_by_block(profiles)

# %% [markdown]
# The claim about the last block holds. The folklore does not: with SwiGLU and fan-in weights the post-norm gradient *explodes* towards the input, and with output norms, whose stream nothing holds back and whose branches read it raw, even more so. A long product of factors vanishes or explodes, and which of the two depends on the activation and on the weights:

# %%
for rule in ("fan_in", "gpt2"):
    for placement in ("post", "output"):
        first, *_, end = block_gradients(48, placement, rule=rule)
        print(f"{placement:6} initialised by {rule:6}: first more than 50 times the last: {first > 50 * end}")

# %% [markdown]
# With GPT-2's small weights (0.02, and less for what writes into the stream) nothing explodes. Placement and initialisation are *one* decision: OLMo 2, whose norms stand at the outputs, starts all weights at 0.02 (OLMo Team, 2025).
#
# > **Spot the slip.** "Training with pre-norm … you would see a lot more loss spikes", says a lecture about such curves, and in the next sentence that the post-norm ones are generally higher. Which word is wrong in the first?

# %% [markdown]
# ## 9 · Shake the weights
#
# A gradient looks at infinitely small steps. Optimizers take real ones. So change every weight of all blocks by 1 %, at random, and see how far the output moves (the idea is that of Liu et al., 2020, who found that it is not small or large gradients that break a post-norm model but that small changes are amplified from layer to layer).

# %%
def shaken(blocks: int, placement: str, seed: int, noise: float = 0.01) -> float:
    """The relative change of the last hidden states when every weight of the blocks is multiplied by 1 + noise."""
    model = tiny_llama(blocks, placement, seed)
    tokens, generator = written[:256].view(8, 32), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        before = model.encode(tokens)
        for parameter in model.blocks.parameters():
            if parameter.ndim == 2:
                parameter *= 1 + noise * torch.randn(parameter.shape, generator=generator)
        return ((model.encode(tokens) - before).norm() / before.norm()).item()


jitter = {
    placement: {blocks: sum(shaken(blocks, placement, seed) for seed in range(3)) / 3 for blocks in (2, 4, 8, 16, 32)}
    for placement in ("pre", "post", "double", "output")
}
for placement, by_depth in jitter.items():
    print(f"{placement:6} 2 blocks: less than 5 %: {by_depth[2] < 0.05}   32 blocks: more than 30 %: {by_depth[32] > 0.3}")

# %% tags=["nbval-ignore-output", "because the last digit of a percentage may differ between processors"]
figures.weight_jitter(jitter, 0.01)

# %% [markdown]
# Shallow, the post-norm model is the *calmest* of the four. Deep, 1 % of noise makes it nearly another function, while the pre-norm model does not even notice that it is deep: each branch is a small part of a long sum. Does that decide how they learn?

# %%
predict("deep_post_norm")

# %%
runs = {
    blocks: {placement: [train(tiny_llama(blocks, placement, seed), seed) for seed in (0, 1)] for placement in ("pre", "post")}
    for blocks in (2, 16)
}
ends = {(b, p): sum(sum(losses[-10:]) / 10 for losses in seeds) / 2 for b, by in runs.items() for p, seeds in by.items()}
frequencies = torch.bincount(written).double() / len(written)
byte_entropy = -torch.special.xlogy(frequencies, frequencies).sum().item()
print(f"knowing only how frequent each byte is: {byte_entropy:.1f} nats")
print(" 2 blocks: post-norm is better than pre-norm by more than 0.1 nats:", ends[2, "post"] < ends[2, "pre"] - 0.1)
print("16 blocks: pre-norm has learned something, below 2.6 nats:        ", ends[16, "pre"] < 2.6)
print("16 blocks: post-norm has not, above 2.9 nats:                     ", ends[16, "post"] > 2.9)
warmed = train(tiny_llama(16, "post", seed=0), seed=0, warmup=30)
print("16 blocks: post-norm with a warm-up of 30 steps, above 2.9 nats:  ", sum(warmed[-10:]) / 10 > 2.9)

# %% tags=["nbval-ignore-output", "because losses of runs differ in the last digits between processors"]
figures.depth_runs(runs, byte_entropy)

# %% [markdown]
# Both halves are known from large models: post-norm is the better one in models of six layers or fewer, and fails in ones of ten or more (Takase et al., 2022). "Pre-norm is better" is true of *deep* models, and everybody builds deep ones. The warm-up of 30 steps that saves many a run does not save this one. (Notebook 04 has two-layer models with and without warm-up, 16 what makes runs diverge.)

# %% [markdown]
# ## 10 · Side by side
#
# In the usual, **serial** block, attention comes first, and the feed-forward layer reads what the stream is *after* it: two pre-norm branches in a row, each with a norm of its own. GPT-J (Wang & Komatsuzaki, 2021) put them **in parallel**: both branches read one and the same normalised $x$, and what they return is added to $x$ together.
#
# > **Spot the slip.** PaLM's paper prints the serial block as $y = x + M(N(x + A(N(x))))$, and lecture notes copy it. Let attention find something that the feed-forward layer does not care about, so that $M$ is 0. What is in $y$?
#
# ### Exercise 9 · Serial and parallel  (3 points · 8 min · ●● · differentiable)
#
# Write both blocks as one function. `attention`, `feed_forward`, `norm_1` and `norm_2` are functions of a tensor of shape (b, s, d). The parallel block has one norm, `norm_1`, and `norm_2` may be `None`. Call each function at most once, and leave $x$ as it is.

# %% exercise="block"
def block(
    x: Float[Tensor, "b s d"],
    attention: Callable,
    feed_forward: Callable,
    norm_1: Callable,
    norm_2: Callable | None,
    parallel: bool,
) -> Float[Tensor, "b s d"]:
    """The stream after a pre-norm block, serial or parallel."""
    ### BEGIN SOLUTION
    normed = norm_1(x)
    added = attention(normed)
    if parallel:
        return x + added + feed_forward(normed)
    stream = x + added
    return stream + feed_forward(norm_2(stream))
    ### END SOLUTION


# %% check="block"
check(block)
### BEGIN HIDDEN TESTS
check(block, hidden=True)
### END HIDDEN TESTS

# %%
predict("parallel_flops")

# %%
explore(figures.block_timeline, branches=["serial", "parallel"])

# %% [markdown]
# The multiplications are the same. But four products that wait for each other become two: matrices that read the same input can be laid on top of each other, and matrices that are added can be laid side by side.

# %%
torch.manual_seed(0)
n, v_in, up = torch.randn(5, 8).double(), torch.randn(8, 8).double(), torch.randn(32, 8).double()
out, down = torch.randn(8, 8).double(), torch.randn(8, 32).double()
apart = (n @ v_in.T) @ out.T + (n @ up.T).relu() @ down.T  # attention to oneself only, to keep it short
values, hidden = (n @ torch.cat([v_in, up]).T).split([8, 32], dim=-1)
fused = torch.cat([values, hidden.relu()], dim=-1) @ torch.cat([out, down], dim=1).T
print("fused into two products, it computes the same:", torch.allclose(apart, fused, rtol=1e-12, atol=1e-12))
zoo_parallel = [entry for entry in all_models() if entry.decoder.block.branches != "serial"]
layer_norms = sum(entry.decoder.block.norm.kind == "layer" for entry in zoo_parallel)
print(f"parallel blocks in the zoo: {len(zoo_parallel)}, of them with LayerNorm: {layer_norms}")

# %% [markdown]
# *Which of the two is more efficient?* asks a student. The parallel one: about 15 % faster training at PaLM's scale, where larger products keep the hardware busy, with a small loss of quality at 8 billion parameters and none at 62 billion (Chowdhery et al., 2022). The serial one is more *expressive*: its feed-forward layer can react to what attention found in the same block. Models with parallel blocks in the zoo are GPT-J, PaLM, GPT-NeoX, Pythia, Falcon, Phi and Command, whose latest is of 2025.
#
# ### How many parameters are norms?
#
# > **Spot the slip.** A set of notes counts $2D$ parameters for the two LayerNorms of a layer. What has it left out?
#
# ### Exercise 10 · Count them  (2 points · 5 min · ●)
#
# Return how many numbers all norms of a serial model have. `kind` is "layer" (scale and shift) or "rms" (scale), `placement` one of the four. Every norm has parameters of its own, and the norm before the head counts where there is one. QK-norms do not. A model may have no block at all: `layers` is 0 or more. Another kind or placement: `ValueError`.

# %% exercise="norm_parameters"
def norm_parameters(layers: int, d_model: int, kind: str, placement: str) -> int:
    """The numbers in all norms of a model."""
    ### BEGIN SOLUTION
    per_block = {"pre": 2, "post": 2, "double": 4, "output": 2}
    per_norm = {"layer": 2 * d_model, "rms": d_model}
    if placement not in per_block or kind not in per_norm:
        raise ValueError(f"no model has {kind!r} norms placed {placement!r}")
    norms = layers * per_block[placement] + (placement != "post")
    return norms * per_norm[kind]
    ### END SOLUTION


# %% check="norm_parameters"
check(norm_parameters)
### BEGIN HIDDEN TESTS
check(norm_parameters, hidden=True)
### END HIDDEN TESTS

# %%
for name, kind, placement in (("gpt-3", "layer", "pre"), ("llama-3.1-405b", "rms", "pre"), ("gemma-2-9b", "rms", "double")):
    entry = find_model(name)
    with suppress(NotImplementedError):  # until Exercise 10 is solved
        count = norm_parameters(len(entry.decoder.layers), entry.decoder.d_model, kind, placement)
        print(f"{name:15} {count:9,} numbers in norms: {count / entry.parameters:.5%} of the model")

# %% [markdown]
# ## 11 · What to take along
#
# **In real models.** The rule is pre-norm, and few models break it. "Only two" of a lecture's list have post-norm, it says, and then names three: the original transformer, GPT and BERT. Look for yourself, and find the late one.

# %%
figures.norm_placement_grid()

# %%
print("post-norm:", ", ".join(f"{e.name} ({e.year})" for e in all_models() if e.decoder.block.placement == "post"))

# %% [markdown]
# OPT-350M (Zhang et al., 2022) is the odd one out of its own family: all its sisters are pre-norm.
#
# *What of all this will still be true in five years?* a student asks. Four lessons, each of which comes back elsewhere in this course:
#
# | lesson | here | and again |
# | --- | --- | --- |
# | keep a path on which nothing happens | the stream | the LSTM's cell (06) |
# | normalise what is read | pre-norm | QK-norm, z-loss (16) |
# | let one thing gate another | SwiGLU in the blocks above (11) | the LSTM's gates (06) |
# | think of the machine | fused norms, parallel blocks | FlashAttention's idea (19), GQA (08) |
#
# ## What to keep
#
# | | LayerNorm | RMSNorm |
# | --- | --- | --- |
# | formula | $\gamma \odot (x - \mu)/\sqrt{\sigma^2 + \varepsilon} + \beta$ | $\gamma \odot x/\sqrt{\overline{x^2} + \varepsilon}$ |
# | $(100, 200, 100, 0)$ | $(0, 1.414, 0, -1.414)$ | $(0.816, 1.633, 0.816, 0)$ |
# | parameters | $2d$ | $d$ |
# | in a pre-norm model | the same function as RMSNorm, once the writers are centred | |
#
# | placement | stream | the embedding after 12 blocks | deep, without warm-up |
# | --- | --- | --- | --- |
# | post | $N(x + f(x))$ | 0.024 % | learns nothing here |
# | pre | $x + f(N(x))$ | 20 % | learns |
# | double | $x + N(f(N(x)))$ | 20 % | calm |
# | output | $x + N(f(x))$ | 20 % | needs small weights |
#
# ## Check yourself
#
# 1. Why is the gradient behind a norm at a right angle to its input?
# 2. A model in fp16 writes nothing but zeros after a norm. Where do you look first?
# 3. Why can a post-norm model *not* be turned into one with RMSNorms by centring its writers? (Where does the stream get its mean from?)
# 4. A pre-norm model lacks its final norm. What do the logits do as it gets deeper?
# 5. You remove block 80 of 96 from a pre-norm model and it hardly gets worse. Which figure of this notebook said so?
# 6. Which of the three verbs (see, say, survive) belongs to which placement?
#
# ### Slips
#
# What sources of this notebook say, and what is right: LayerNorm "over the sequence dimension" (over the features) · no $\varepsilon$ (a constant vector is 0/0) · $\sum a + m$ (brackets) · double and output norms with LayerNorm (RMSNorm) · "pre-norm … a lot more loss spikes" (post-norm) · "only two models" naming three · the serial block without attention's own addition · $2D$ for two LayerNorms ($4D$).
#
# ## Further reading
#
# - Ba, Kiros & Hinton (2016), *Layer normalization*; Zhang & Sennrich (2019), *Root mean square layer normalization*.
# - Xiong et al. (2020), *On layer normalization in the transformer architecture*; Liu et al. (2020), *Understanding the difficulty of training transformers*.
# - Ashkboos et al. (2024), *SliceGPT*; Kim et al. (2025), *Peri-LN*, on norms on both sides; Elhage et al. (2021), *A mathematical framework for transformer circuits*.
# - Zhu et al. (2025), *Transformers without normalization*, replaces norms by a tanh. In `lmcourse/nn`, `norm.py` and `block.py` are what this notebook wrote.

# %% tags=["hide-input"]
assert f"{100 / math.sqrt(15_000):.3f} {200 / math.sqrt(15_000):.3f}" == "0.816 1.633"
assert f"{math.sqrt(5_000):.2f} {math.sqrt(15_000):.2f} {math.sqrt(2):.3f}" == "70.71 122.47 1.414"
assert (f"{0.5**12:.3%}", (1 + 2 * 12) ** -0.5, f"{(1 + 2 * 90) ** 0.5:.0f}") == ("0.024%", 0.2, "13")
assert [len(steps) for steps in STEPS.values()] == [7, 4]
assert sum(published_norms().values()) == len(all_models()) - 5  # four of the course's own, and one that does not say
assert f"{3.68 / 3.5 - 1:.3f}" == "0.051"
assert min(jitter, key=lambda placement: jitter[placement][2]) == "post"
assert max(jitter["pre"].values()) < 3 * min(jitter["pre"].values())
assert {e.name for e in all_models() if e.name.startswith("opt") and e.decoder.block.placement == "post"} == {"opt-350m"}
assert max(entry.year for entry in zoo_parallel) == find_model("command-a").year == 2025
