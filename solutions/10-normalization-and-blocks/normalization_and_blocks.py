# %% [markdown]
# # 10 · Normalization and blocks
#
# **110 min · 10 exercises · 24 points**
#
# A transformer is a long sum. One vector per token runs through the whole model, the **residual stream**, and a hundred layers add to it,
# one after the other. *Why does the sum neither explode nor drown what came first? And why does it matter on which side of the plus
# sign a norm is?*
#
# A norm can decide what a layer gets to *see*, what it may *say*, or what may *survive*. Everything in this notebook is one of these three.
#
# **You will be able to**
#
# - write LayerNorm and RMSNorm that survive 16 bits, and say what each does to a gradient;
# - say what the mean of the stream is good for;
# - write every block that published models use, and split its gradient into the part that passes the branch by and the part that goes through it;
# - test what everybody repeats about norms, with experiments that run on a laptop.
#
# **You need** attention (notebook 08), the floating-point formats (01) and gradients of functions of vectors (03). No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run
# it again for the next one.

# %%
import math
import random
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lmcourse.accounting.parameters import count_parameters
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
from lmcourse.nn.block import Residual
from lmcourse.nn.embedding import HeadConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.notebook import check, explore, hint, predict, start, your

start("10-normalization-and-blocks")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · How large is a number?
#
# A layer was built for features of about 1. Now they arrive 100 times as large, because the layers before it have grown. Nobody told this layer.
#
# A **LayerNorm** (Ba et al., 2016) before it takes the size away. For each token, from *its own* $d$ features alone:
#
# $$\mu = \frac1d\sum_i x_i, \qquad \sigma^2 = \frac1d\sum_i (x_i - \mu)^2, \qquad y = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta$$
#
# with $x$ of shape $(\dots, d)$, and $\gamma$ (scale) and $\beta$ (shift) of shape $(d)$, learned; they start as 1 and 0.
#
# By hand: $(100, 200, 100, 0)$. The mean is 100, the deviations $(0, 100, 0, -100)$, the mean of their squares 5,000, its root 70.71. Result: $(0, 1.414, 0, -1.414)$.

# %%
predict("scale_of_the_gradient")

# %%
torch.manual_seed(0)
SCALES = (0.01, 0.1, 1.0, 10.0, 100.0)
features, matrix = torch.randn(16, 64), torch.randn(64, 32) / 8


def input_gradient(scale: float, normed: bool) -> tuple[Tensor, Tensor]:
    """The input of a layer, and the gradient of half its squared output with respect to it: (16, 64) each."""
    x = (scale * features).requires_grad_()
    read = F.layer_norm(x, (64,), eps=1e-12) if normed else x
    (gradient,) = torch.autograd.grad((read @ matrix).square().sum() / 2, x)
    return x.detach(), gradient


sizes = {
    name: [input_gradient(scale, normed)[1].norm().item() for scale in SCALES]
    for name, normed in (("through a norm", True), ("without a norm", False))
}
for name, (small, *_, large) in sizes.items():
    print(f"{name:14} 10,000 times the input, and {large / small:.2g} times the gradient")

# %%
figures.gradient_by_scale(SCALES, sizes)

# %% [markdown]
# Without a norm, what is large gets a large gradient and grows on: that is how things explode. After a norm it is the other way round, *exactly*: 10,000 times the input, a ten-thousandth of the gradient. Large vectors are hard to turn, small ones easy; a norm is a brake.
#
# > **Spot the slip.** A colleague normalises over the sequence instead of over the features: "each feature gets mean 0 and variance 1 over the text". Another one leaves out $\varepsilon$. Both programs run. What do they do?

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
    print(f"{name}: the last of five tokens changes, and the first one moves by {moved:.2f}")
print("equal features, without ε:", F.layer_norm(torch.full((4,), 3.0), (4,), eps=0.0).tolist())

# %% [markdown]
# Over the sequence, the first word of a text would know about the last: the model would read the future, and its training loss would look wonderful.
#
# ### Exercise 1 · LayerNorm  (2 points · 6 min · ● · differentiable)
#
# Write it, without torch's own norms (`layer_norm`, `rms_norm`, `batch_norm`, `group_norm` and `instance_norm`, as functions and as modules), which would be the whole answer. $x$ has any number of axes; normalise the last one. Gradients must pass. Three rules that a norm should keep:
#
# - **compute in fp32, or in fp64 if $x$ is fp64**; $x$ may be fp16 or bf16;
# - return **the dtype of $x$**, whatever dtype `scale` and `shift` have (fp32 parameters and bf16 features are the usual mixture), and **round once, in the very last step**;
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
# By hand, the same vector: the squares are $10^4\,(1, 4, 1, 0)$, their mean 15,000, the root 122.47. Result: $(0.816, 1.633, 0.816, 0)$. The zero stays zero, the direction stays the direction. RMSNorm puts the vector on a sphere of radius $\sqrt d$. In two dimensions you can look at it:

# %%
explore(figures.norm_circle, kind=["rms", "layer"], eps=[1e-6, 0.0001, 0.01, 0.1, 1.0])

# %% [markdown]
# Did you try `layer`? In two dimensions a LayerNorm leaves just *two* points: without its mean, $(a, b)$ is $(c, -c)$, and $|c|$ is normalised to 1. Every norm throws something away: LayerNorm two numbers of $d$, RMSNorm one.
#
# What does $\varepsilon$ do? It is added to *squares*. Features of 0.001 have squares of $10^{-6}$, and an $\varepsilon$ of $10^{-6}$ doubles what is under the root:

# %%
features_of_0001 = torch.tensor([0.001, -0.001, 0.001, -0.001])
for name, small in (("RMSNorm", F.rms_norm(features_of_0001, (4,), eps=1e-6)), ("LayerNorm", F.layer_norm(features_of_0001, (4,), eps=1e-5))):
    print(f"{name:9} with its usual ε makes of ±0.001 not ±1, but ±{small[0]:.2f}")

# %%
predict("twice_as_large_in_fp16")

# %%
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    x = torch.tensor([200.0, 400.0, 200.0, 0.0], dtype=dtype)
    square = x * x
    result = [round(number, 3) for number in (x / square.mean().sqrt()).tolist()]
    print(f"{dtype!s:15} squares {square.tolist()}\n{'':15} result {result}")

# %% [markdown]
# Zeros, without a warning, for numbers that fp16 holds with ease. bf16 does not overflow: it has the range of fp32. But it has 8 bits of significand, 2.4 decimal digits. Is that enough? LayerNorm once more, of features that spread by 1 around a mean, with every step in bf16:

# %%
generator = torch.Generator().manual_seed(0)
spread, scale_16, shift_16 = (torch.randn(*shape, generator=generator) for shape in ((8, 64), (64,), (64,)))


def layer_norm_in(dtype: torch.dtype, x: Tensor) -> Tensor:
    """LayerNorm with every step in one dtype."""
    wide, scale, shift = x.to(dtype), (1 + 0.3 * scale_16).to(dtype), shift_16.to(dtype)
    centred = wide - wide.mean(dim=-1, keepdim=True)
    return centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * scale + shift


print("mean   all in bf16: off by at most   all in fp32, rounded once: off by at most")
for mean in (0, 3, 10, 30, 100):
    x = (spread + mean).bfloat16()
    exact = layer_norm_in(torch.float64, x).bfloat16()
    off = [(layer_norm_in(dtype, x).bfloat16() - exact).abs().max().item() for dtype in (torch.bfloat16, torch.float32)]
    print(f"{mean:4} {off[0]:28.2f} {off[1]:42.2f}")

# %% [markdown]
# The further the features are from zero, the fewer of bf16's digits are left for what makes them different. That is why norms compute in fp32 even in models that do everything else in 16 bits.
#
# ### Exercise 2 · RMSNorm  (2 points · 6 min · ● · differentiable)
#
# The same rules as in Exercise 1: the last axis, computed in fp32 or fp64, rounded once to the dtype of $x$ at the very end, gradients pass, without torch's norms. (The LLaMA of Hugging Face's `transformers` rounds twice, before the scale and after it. The difference is one last digit in every fourth number; here it counts.)

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
# Neither norm notices a factor: $N(cx) = N(x)$. Two things follow for the gradient, by the chain rule. It is proportional to $1/c$, as you measured; and moving along $x$ itself changes nothing, so the gradient is **at a right angle to $x$**, whatever comes after:

# %%
for scale in (0.01, 1.0, 100.0):
    x, gradient = input_gradient(scale, normed=True)
    cosines = F.cosine_similarity(x, gradient, dim=-1).abs()
    print(f"input × {scale:<5} largest cosine of input and gradient: {cosines.max():.5f}")

# %% [markdown]
# ## 3 · What the mean was good for
#
# Most models of today have RMSNorm. Was the mean good for anything? One question decides it.

# %%
predict("from_layer_to_rms")

# %% [markdown]
# GPT-2 is **pre-norm**: every layer reads the stream through a norm and adds its result to the stream (section 6 has the other ways). Every LayerNorm begins by subtracting the mean. So the mean of the stream is carried along through all layers, and *no layer ever reads it*. Could it be 0 from the start?
#
# By hand: a layer that writes $W h$ into the stream, with $W = \begin{pmatrix}1&2\\3&4\end{pmatrix}$ and $h = (1, 1)$. It writes $(3, 7)$, whose mean is 5; what a LayerNorm would leave of it is $(-2, 2)$. Another matrix takes the mean away before it is written, for *every* $h$: $\begin{pmatrix}-1&-1\\1&1\end{pmatrix}$ writes $(-2, 2)$ at once.
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
# Every model has an embedding; any of the others may be missing. Return a new dictionary with all names, in which the mean of the stream is gone and nothing else, so that all LayerNorms may be replaced by RMSNorms (with the same scale and shift). Leave the tensors that you were given as they are.

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


print(f"RMSNorms put in, and nothing else: the logits differ by up to {difference_of_logits():.1f}")
with your("centre_writers"):
    centred = centre_writers({ours: tensors[theirs] for theirs, ours in names.items()})
    with_rms_norm.load_state_dict(tensors | {theirs: centred[ours] for theirs, ours in names.items()})
    print(f"RMSNorms put in, writers centred:  the logits differ by up to {difference_of_logits():.12f}")

# %% [markdown]
# To the last digits. The mean was never a feature of the model: it is one direction of the stream, out of $d$, that layers can write and cannot read. RMSNorm gives that direction back.
#
# The second step of the same surgery removes the scale and shift. A norm's $\gamma$ and $\beta$ come right before a matrix, and two linear maps in a row are one.
#
# ### Exercise 4 · Fold the norm  (2 points · 6 min · ●●)
#
# A linear layer reads $\gamma \odot \hat x + \beta$. Return weight and bias of the layer that reads $\hat x$ itself and computes the same. `bias` may be `None`, as in most models today; return a new bias all the same.

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
with your("fold_norm"):
    folded = fold_norm(gamma, beta, layer.weight.detach(), layer.bias.detach())
    apart = (F.linear(normed, *folded) - layer(gamma * normed + beta)).abs().max().item()
    print(f"the folded layer on x̂ and the old one after the norm differ by up to {apart:.5f}")

# %% [markdown]
# **In real models.** SliceGPT (Ashkboos et al., 2024) does both to published models before it cuts features away: without means and scales you may rotate the stream like any vector, and cut off the least important directions. Count in the zoo which models use which norm:

# %%
kinds = [entry.decoder.block.norm.kind for entry in all_models() if "norm" not in entry.survey_overrides]
print(f"of {len(all_models())} entries: RMSNorm {kinds.count('rms')}, LayerNorm {kinds.count('layer')}, not said {len(all_models()) - len(kinds)}")

# %% [markdown]
# ## 4 · What a norm costs
#
# RMSNorm does 4 operations on each number where LayerNorm does 7. Does that matter? Look at the bytes as well:

# %%
explore(figures.norm_costs, kernels=["fused", "one by one"])

# %% [markdown]
# A multiplication is far quicker than fetching the number that is multiplied (notebook 19). What counts is how often the features are read from memory and written back, and a **fused** kernel does it once for either norm.

# %%
predict("faster_norm")

# %% tags=["nbval-ignore-output", "because it is a clock"]
x, ones, zeros = torch.randn(2048, 4096), torch.ones(4096), torch.zeros(4096)
with your("layer_norm", "rms_norm"):
    functions: dict[str, Callable[[], object]] = {
        "F.layer_norm": lambda: F.layer_norm(x, (4096,), ones, zeros),
        "F.rms_norm": lambda: F.rms_norm(x, (4096,), ones),
        "layer_norm": lambda: layer_norm(x, ones, zeros),
        "rms_norm": lambda: rms_norm(x, ones),
    }
    timings = time_interleaved(functions | {"copy": x.clone}, repeats=5)
    for name in functions:
        print(f"{name:16} takes {timings[name].median / timings['copy'].median:4.1f} times as long as a copy of x")

# %% [markdown]
# On the processors we tried, torch's LayerNorm costs little more than copying, and its RMSNorm takes more than twice as long. Compare your two: *written out*, both lose to the fused kernel, and the one with fewer steps reads and writes less. So "RMSNorm is faster" is a statement about kernels, not about formulas.
#
# How much is there to win? In a BERT on a GPU, LayerNorms and softmaxes together were 0.17 % of the FLOPs and 25.5 % of the time (Ivanov et al., 2021). A large comparison of transformers (Narang et al., 2021) measured 3.50 steps per second with LayerNorm and 3.68 with RMSNorm, at a slightly better loss.
#
# ### Exercise 5 · How much faster?  (1 point · 4 min · ●●)
#
# Two numbers, as fractions (0.1 for 10 %), to three decimals. `faster`: new kernels save 30 % of the time of all LayerNorms and softmaxes in that BERT. How many more steps does the model do in the same time? `norms_saved`: suppose that norms alone took 25.5 % of the time in the comparison. Which fraction of *the norms'* time did RMSNorm save?

# %% exercise="norm_gain"
norm_gain = None  # {"faster": ..., "norms_saved": ...} in place of None
### BEGIN SOLUTION
norm_gain = {"faster": 1 / (1 - 0.3 * 0.255) - 1, "norms_saved": (1 - 3.5 / 3.68) / 0.255}
### END SOLUTION

# %% check="norm_gain"
check(norm_gain=norm_gain)
### BEGIN HIDDEN TESTS
check(norm_gain=norm_gain, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# **Biases** go the same way. LLaMA's linear layers have none, and neither do its norms. How much of GPT-3 were they?

# %%
gpt3 = find_model("gpt-3")
d, blocks = gpt3.decoder.d_model, len(gpt3.decoder.layers)
biases = 9 * blocks * d  # 3 of queries, keys and values, 1 of out, 4 of up, 1 of down
total = count_parameters(gpt3.config).total
print(f"{biases / 1e6:.1f} million of {total / 1e9:.0f} billion parameters: {biases / total:.3%}")

# %% [markdown]
# Nobody drops them to save parameters. But a bias is one more thing to read from memory, and large models trained more stably without (Chowdhery et al., 2022).

# %% [markdown]
# ## 5 · The stream
#
# Every branch adds to the stream, and no branch of a pre-norm model replaces anything. Attention and feed-forward layer of block $\ell$ add $a_\ell$ and $m_\ell$ to the embedding $e$:
#
# $$h = e + \sum_{\ell=1}^{L} (a_\ell + m_\ell)$$
#
# Hooks show that it is true, in a model that has learned to write stories for a moment:

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


def train(model: Transformer, seed: int, steps: int = 60, warmup: int = 1) -> tuple[list[float], list[float]]:
    """Train in place on stories, AdamW at 0.005: by step, the loss and the gradient's norm at the first block's `down`."""
    optimizer = torch.optim.AdamW(model.parameters(), 0.005, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    losses, gradients = [], []
    with Loader(written, batch=8, seq_len=32, seed=seed, prefetch=0) as batches:
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = 0.005 * min(1.0, (step + 1) / warmup)
            batch = next(batches)
            loss = next_token_loss(model(batch.inputs), batch.targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            gradients.append(model.blocks[0].feed_forward.layer.down.weight.grad.norm().item())
    return losses, gradients


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
print(f"their sum differs from the stream by up to {(torch.stack(list(parts.values())).sum(dim=0) - streams[-1]).abs().max():.5f}")

# %% [markdown]
# So a logit, too, is a sum: the head reads the stream through a norm, and multiplies with a token's row. *Which layer wanted this word?* has an answer in numbers. There is one catch, and it is the norm.
#
# ### Exercise 6 · Who made the logit?  (3 points · 8 min · ●●●)
#
# `parts[0]` is the embedding of one token, the other rows are what each branch has added to it. The head reads an RMSNorm (`scale`, `eps`) of their sum; `row` is the row of the head for one token of the vocabulary. How much of that token's logit does each part add in this stream, divided as it is by the norm? The results add up to the logit.

# %% exercise="contributions"
def contributions(
    parts: Float[Tensor, "n d"], scale: Float[Tensor, "d"], row: Float[Tensor, "d"], eps: float = 1e-6
) -> Float[Tensor, "n"]:
    """The contribution of each part of the stream to the logit of the token whose row of the head is `row`."""
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
with your("contributions"):
    added = contributions(torch.stack(list(parts.values())), writer.norm.weight.detach(), writer.head.linear.weight[best].detach(), eps=1e-5)
bars = figures.contribution_bars(dict(zip(parts, added.tolist(), strict=True)), f"“{chr(best)}” after “{bytes(prompt[0].tolist()).decode()}”")
bars

# %% tags=["nbval-ignore-output", "because the digits of a trained model differ between processors"]
print(f"the contributions add up to {added.sum():.3f}, and the logit is {logits[best]:.3f}")

# %% [markdown]
# Such sums are an everyday tool for looking into models. Elhage et al. (2021) call the stream a channel: every layer reads from some of its directions and writes into others, and layers that are far apart can talk, since nothing in between is overwritten.

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
# Where the stream is never normalised (all but post), one more norm comes before the head. As code, and compared with the package's branches:

# %%
def residual(x: Tensor, f: Callable, before: Callable | None, after: Callable | None, placement: str) -> Tensor:
    """The stream after a branch f; `before` is the norm before it, `after` the norm after it or after the sum."""
    if placement == "pre":
        return x + f(before(x))
    if placement == "post":
        return after(x + f(x))
    if placement == "double":
        return x + after(f(before(x)))
    if placement == "output":
        return x + after(f(x))
    raise ValueError(f"a norm's placement is pre, post, double or output, not {placement!r}")


PLACEMENTS = ("pre", "post", "double", "output")
for placement in PLACEMENTS:
    branch = Transformer(llama_like(1, 32, 2, 64, vocab_size=128, context=32, block={"placement": placement})).blocks[0].feed_forward
    after = branch.post_norm if placement == "post" else branch.output_norm
    x = torch.randn(3, 32)
    apart = (residual(x, branch.layer, branch.input_norm, after, placement) - branch(x)).abs().max().item()
    print(f"{placement:6} differs from the package by {apart}")

# %%
explore(figures.block_wiring, placement=["pre", "post", "double", "output"], branches=["serial", "parallel", "parallel_two_norms"])

# %% [markdown]
# Follow the thick line: in three of the four it meets nothing but plus signs. ("parallel" belongs to section 10.)
#
# What does a loss see of $x$? A change of $x$ reaches the stream after the branch in two ways: straight to the plus sign, and through the branch. So the gradient that comes back to $x$ has two parts. By hand: one number, $x = 3$, no norm, $f(h) = h^2$. The gradient 1 of $y = x + x^2$ comes back as 1 on the straight way, and as 6 through the branch. *With norms in place: which part is larger, and which decides?*
#
# A function that can be used backwards returns its value *and its* **pullback**, another function, which takes the gradient with respect to the value and returns the gradient with respect to $h$:

# %%
def square(h: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The squares of h, and their pullback at h."""
    return h * h, lambda g: 2 * h * g


value, back = square(torch.tensor(3.0))
print("value:", value.item(), " gradient 1 comes back as", back(torch.tensor(1.0)).item())

# %% [markdown]
# ### Exercise 7 · Two ways back  (4 points · 12 min · ●●●)
#
# `dy` is the gradient with respect to what `residual` returns. Return the two parts of the gradient with respect to $x$: `straight`, which did not go through `f`, and `through`, which did. `f`, `before` and `after` return a value and its pullback, as `square` does; a norm that a placement does not use may be `None`. Call each function and each pullback once, do without autograd, and leave `x` and `dy` as they are. Another placement: `ValueError`.

# %% exercise="ways_back"
def ways_back(
    x: Float[Tensor, "*batch d"],
    dy: Float[Tensor, "*batch d"],
    f: Callable,
    before: Callable | None,
    after: Callable | None,
    placement: str,
) -> tuple[Float[Tensor, "*batch d"], Float[Tensor, "*batch d"]]:
    """The parts of the gradient at x that came straight and through the branch."""
    ### BEGIN SOLUTION
    if placement not in ("pre", "post", "double", "output"):
        raise ValueError(f"a norm's placement is pre, post, double or output, not {placement!r}")
    h, pullbacks = x, []
    if placement in ("pre", "double"):
        h, back = before(h)
        pullbacks.append(back)
    h, back = f(h)
    pullbacks.append(back)
    if placement in ("double", "output"):
        h, back = after(h)
        pullbacks.append(back)
    straight = after(x + h)[1](dy) if placement == "post" else dy
    through = straight
    for back in reversed(pullbacks):
        through = back(through)
    return straight, through
    ### END SOLUTION


# %% check="ways_back"
check(ways_back)
### BEGIN HIDDEN TESTS
check(ways_back, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# In three placements the straight part is `dy` itself, untouched. In "post" even that part passes a norm.

# %% [markdown]
# ## 7 · What is left of the first word?
#
# *Why is a norm* in *the stream bad?* a student asks. Start with what it does to what is already there. By hand: the stream is a vector of length 4, and a branch adds one of length 3 at a right angle to it. The sum has length 5 (Pythagoras), and a post-norm takes it back to the old length. What is the length of the old vector then?

# %%
predict("left_after_12_blocks")

# %% [markdown]
# ### Exercise 8 · What is left  (2 points · 6 min · ●●)
#
# Return the cosine between the embedding and the stream after a number of blocks, of *two* branches each. Every branch adds a vector at a right angle to all others. With "post" it is `ratio` times as long as the stream that it joins, with the other placements `ratio` times as long as the embedding. In "double" and "output" the norm is on the branch. For an unknown placement, or fewer than 0 blocks, raise `ValueError`.

# %% exercise="embedding_share"
def embedding_share(blocks: int, placement: str, ratio: float) -> float:
    """The cosine of the embedding with the stream after this many blocks, whose branches add vectors of this relative length."""
    ### BEGIN SOLUTION
    if placement not in ("pre", "post", "double", "output") or blocks < 0:
        raise ValueError(f"no model has {blocks} blocks with norms {placement!r}")
    return (1 + ratio**2) ** -blocks if placement == "post" else (1 + 2 * blocks * ratio**2) ** -0.5
    ### END SOLUTION


# %% check="embedding_share"
check(embedding_share)
### BEGIN HIDDEN TESTS
check(embedding_share, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.stream_share, placement=["pre", "post", "double", "output"], blocks=(1, 96))

# %% [markdown]
# Branches as long as the stream leave $2^{-12}$ = 0.024 % of it after 12 post-norm blocks, and one fifth where no norm is in the stream. Random vectors of 65,536 features are nearly at right angles. Do they agree?

# %%
torch.manual_seed(0)
embedding = F.normalize(torch.randn(65_536), dim=0)
for placement, predicted in (("pre", 0.2), ("post", 2**-12)):
    stream = embedding
    for _ in range(24):
        stream = stream + F.normalize(torch.randn(65_536), dim=0)
        stream = F.normalize(stream, dim=0) if placement == "post" else stream
    cosine = F.cosine_similarity(stream, embedding, dim=0).item()
    print(f"{placement:4} 12 blocks: cosine {cosine:.3f}, predicted {predicted:.3f}")

# %% [markdown]
# (Two unrelated vectors of 65,536 features have a cosine of about $1/\sqrt{65536}$ = 0.004: that is the precision of this experiment.) In a post-norm model each layer has to write the first word again, or it is gone. Gradients take the same way back: on the straight path each post-norm divides them by as much. Section 8 measures what the branch gives back.
#
# The other side of the coin: the pre-norm stream *grows*, like $\sqrt{1 + 2L}$, while what each branch adds does not. After 90 blocks each branch adds to a vector 13 times as long as its own. Late blocks change little, and that is why deep pre-norm models can often do without some of them.

# %% [markdown]
# ## 8 · Gradients, measured
#
# Many people have learned that post-norm gradients vanish. Xiong et al. (2020) looked, and found something else: *at initialisation, near the output*, the gradients of a post-norm model are large, whatever its depth, and those of a pre-norm model fall like $1/\sqrt L$. That is why post-norm wants a warm-up. What happens towards the first blocks?

# %%
predict("post_norm_gradients")

# %% tags=["nbval-ignore-output", "because the digits of large gradients differ between processors"]
DEPTHS = (2, 6, 12, 24, 48)


def untrained(blocks: int, placement: str, seed: int = 0, rule: str = "fan_in") -> tuple[Transformer, Tensor]:
    """A LLaMA-like model of width 64 with its norms in this place, and random tokens for it."""
    torch.manual_seed(seed)
    config = llama_like(blocks, 64, 4, 128, vocab_size=128, context=32, block={"placement": placement})
    model = Transformer(config.with_(final_norm=None) if placement == "post" else config)
    initialize(model, rule)
    return model, torch.randint(128, (8, 33))


def block_gradients(blocks: int, placement: str, seed: int = 0) -> list[float]:
    """The norm of the gradient of each block's `down` matrix, at initialisation."""
    model, tokens = untrained(blocks, placement, seed)
    next_token_loss(model(tokens[:, :-1]), tokens[:, 1:]).backward()
    return [each.feed_forward.layer.down.weight.grad.norm().item() for each in model.blocks]


profiles = {p: {blocks: block_gradients(blocks, p) for blocks in DEPTHS} for p in PLACEMENTS}
for placement in ("pre", "post"):
    ends = ", ".join(f"{by_block[-1]:.2f}" for by_block in profiles[placement].values())
    print(f"{placement:6} last block, {', '.join(map(str, DEPTHS))} blocks: {ends}")
seeds = (0, 1, 2)
quotients = {p: [profiles[p][48][0] / profiles[p][48][-1]] + [(g := block_gradients(48, p, s))[0] / g[-1] for s in seeds[1:]] for p in PLACEMENTS}
for placement, of_seed in quotients.items():
    print(f"{placement:6} 48 blocks, first block over last, three seeds: {', '.join(f'{q:.2g}' for q in of_seed)}")

# %%
figures.gradient_by_block(profiles)

# %% [markdown]
# The claim about the last block holds. The folklore does not: with SwiGLU and fan-in weights (of size 1/√inputs, notebook 13) the post-norm gradient *explodes* towards the input, and with output norms even more so. But did section 7 not say that each post-norm *divides*? Your `ways_back` can tell. First a guess:

# %%
predict("straight_alone")

# %% [markdown]
# Now run each model forwards and backwards once, note what every branch read and which gradient arrived at its end, and split that gradient:

# %% tags=["nbval-ignore-output", "because the digits of large gradients differ between processors"]
def with_pullback(function: Callable, *context: object) -> Callable:
    """The function, so that it returns its value and its pullback."""

    def call(h: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        with torch.enable_grad():
            h = h.detach().requires_grad_()
            value = function(h, *context)
        return value.detach(), lambda g: torch.autograd.grad(value, h, g)[0]

    return call


def two_ways(placement: str, rule: str, seed: int = 0) -> tuple[Tensor, list[float]]:
    """For each branch of 48 blocks but the first two: straight part, part through the branch, and both, over dy, (94, 3).

    Also the norm of the gradient of each block's `down` matrix.
    """
    model, tokens = untrained(48, placement, seed, rule)
    seen: list[tuple[Residual, Tensor, tuple, Tensor]] = []

    def note(module: Residual, inputs: tuple, output: Tensor) -> None:
        output.retain_grad()
        seen.append((module, inputs[0].detach(), inputs[1:], output))

    for module in model.modules():
        if isinstance(module, Residual):
            module.register_forward_hook(note)
    next_token_loss(model(tokens[:, :-1]), tokens[:, 1:]).backward()
    rows = []
    for module, x, context, output in seen[2:]:
        after = module.post_norm if placement == "post" else module.output_norm
        functions = (with_pullback(module.layer, *context), with_pullback(module.input_norm), with_pullback(after))
        straight, through = ways_back(x, output.grad, *functions, placement)
        rows.append([(part.norm() / output.grad.norm()).item() for part in (straight, through, straight + through)])
    return torch.tensor(rows), [each.feed_forward.layer.down.weight.grad.norm().item() for each in model.blocks]


RUNS = [(p, "fan_in") for p in PLACEMENTS] + [("post", "gpt2"), ("output", "gpt2")]
with your("ways_back"):
    split = {run: two_ways(*run) for run in RUNS}
    print("                     through attention       through SwiGLU         product of 94 branches     `down` of the")
    print("                  straight  branch  both   straight  branch  both    straight        both    first / last block")
    for (placement, rule), (parts_of_gradient, down) in split.items():
        means = [f"{number:8.3f}" for half in (0, 1) for number in parts_of_gradient[half::2].log().mean(dim=0).exp()]
        straight_only, _, everything = parts_of_gradient.double().prod(dim=0).tolist()
        print(f"{placement:6} {rule:7} {''.join(means)} {straight_only:11.1e} {everything:11.1e} {down[0] / down[-1]:12.2g}")

# %% [markdown]
# (Geometric means over the branches; 1 is the gradient that arrived at the branch's end. The first two branches are left out, because the embedding that they read has another size.)
#
# That is the mechanism. *On the straight path* a post-norm does divide, and 94 of them leave a billionth: section 7 is right. But the branch gives back as much as the norm has taken away (attention), or more (SwiGLU: it multiplies two functions of its input, so its Jacobian is larger than its gain). The two parts are nearly at right angles, so Pythagoras adds them: through attention, √(0.733² + 0.702²) = 1.015. Factors of 1.02 and 1.12 look harmless, and 94 of them explode. In "pre" a branch adds 2 to 3 %. In "output" the branches read a raw stream that keeps growing, and attention alone adds 18 %.
#
# The start decides as much as the placement. With GPT-2's small weights (0.02, and less for what writes into the stream) a post-norm model keeps its gradient: each branch is tiny beside the stream, and the norm has nothing to take away. With output norms the gradient of the *stream* still grows several hundred times, while the `down` matrices see *smaller* gradients at the input than at the end. Placement and initialisation are *one* decision: OLMo 2, whose norms are at the outputs, starts all weights at 0.02 (OLMo Team, 2025).

# %% [markdown]
# ## 9 · Shake the weights
#
# A gradient looks at infinitely small steps. Optimizers take real ones. So change every weight of all blocks by 1 %, at random, and see how far the output moves. The idea comes from Liu et al. (2020): a post-norm model breaks not because its gradients are small or large, they found, but because small changes are amplified from layer to layer.

# %% tags=["nbval-ignore-output", "because the last digit of a percentage may differ between processors"]
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
    for placement in PLACEMENTS
}
for placement, by_depth in jitter.items():
    print(f"{placement:6} " + "   ".join(f"{blocks} blocks: {change:5.1%}" for blocks, change in by_depth.items()))

# %% tags=["nbval-ignore-output", "because the last digit of a percentage may differ between processors"]
figures.weight_jitter(jitter, 0.01)

# %% [markdown]
# With 2 blocks, the post-norm model is the *calmest* of the four. With 32, 1 % of noise makes it nearly another function. The pre-norm model moves by 6 % then, only twice as far as with 2 blocks: each branch is a small part of a long sum. Does that decide how they learn?

# %%
predict("deep_post_norm")

# %%
def run_twice(blocks: int, placement: str) -> list[tuple[list[float], list[float]]]:
    """Two runs, which differ in their seed."""
    return [train(tiny_llama(blocks, placement, seed), seed) for seed in (0, 1)]


shallow = {placement: run_twice(2, placement) for placement in ("pre", "post")}

# %%
deep = {"pre": run_twice(16, "pre")}

# %%
deep["post"] = run_twice(16, "post")

# %%
warmed = [train(tiny_llama(16, "post", seed=0), seed=0, warmup=30)]

# %% tags=["nbval-ignore-output", "because losses of runs differ in the last digits between processors"]
frequencies = torch.bincount(written).double() / len(written)
byte_entropy = -torch.special.xlogy(frequencies, frequencies).sum().item()


def end(run: tuple[list[float], list[float]]) -> float:
    """The mean loss of the last ten steps."""
    return sum(run[0][-10:]) / 10


print(f"Loss at the end, in nats per byte, a number for each seed. Knowing only how frequent each byte is: {byte_entropy:.1f}")
for blocks, by_placement in ((2, shallow), (16, deep), (16, {"post, warm-up of 30 steps": warmed})):
    for placement, each in by_placement.items():
        print(f"{blocks:2} blocks, {placement:25} {', '.join(f'{end(run):.2f}' for run in each)}")

# %% tags=["nbval-ignore-output", "because losses of runs differ in the last digits between processors"]
losses = {b: {p: [run[0] for run in each] for p, each in by.items()} for b, by in ((2, shallow), (16, deep))}
figures.depth_runs(losses, byte_entropy)

# %% [markdown]
# Large models show both halves: post-norm is better in models of six layers or fewer, and its training "is often unstable" with ten or more (Takase et al., 2022). "Pre-norm is better" is true of *deep* models, and everybody builds deep ones. The warm-up of 30 steps that saves many a run does not save this one. Why not? Look at the first block's gradient, step by step:

# %% tags=["nbval-ignore-output", "because losses of runs differ in the last digits between processors"]
figures.gradients_by_step({"pre": [run[1] for run in deep["pre"]], "post": [run[1] for run in deep["post"]], "post, warm-up of 30 steps": [run[1] for run in warmed]})

# %% [markdown]
# So folklore comes true after all, a few steps later. At the start the post-norm gradient is the largest of all: that is the explosion of section 8. Each step changes a weight by up to 0.005, which is 3 % of its usual size, and after a few steps the gradient *vanishes* on its way back: the first block learns nothing any more. A warm-up only delays the end. (Notebook 04 has two-layer models with and without warm-up, 16 what makes runs diverge.)

# %% [markdown]
# ## 10 · Side by side
#
# In the usual, **serial** block, attention comes first, and the feed-forward layer reads what the stream is *after* it: two pre-norm branches in a row, each with its own norm. GPT-J (Wang & Komatsuzaki, 2021) put them **in parallel**: both branches read one and the same normalised $x$, and what they return is added to $x$ together.
#
# A colleague writes the serial block in one line, $y = x + M(N(x + A(N(x))))$, with $A$ for attention and $M$ for the feed-forward layer. It looks right. Let attention find something that the feed-forward layer does not care about, so that $M$ is 0. What is in $y$?
#
# ### Exercise 9 · Serial and parallel  (3 points · 8 min · ●● · differentiable)
#
# Write both blocks as one function. `attention`, `feed_forward`, `norm_1` and `norm_2` are functions of a tensor of shape (b, s, d). The parallel block has one norm, `norm_1`, and `norm_2` may be `None`. Call each function at most once, and leave `x` as it is.

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
# Four products in a row become two: stack matrices that read the same input on top of each other, and put matrices whose results are added side by side.

# %%
torch.manual_seed(0)
n, v_in, up = torch.randn(5, 8).double(), torch.randn(8, 8).double(), torch.randn(32, 8).double()
out, down = torch.randn(8, 8).double(), torch.randn(8, 32).double()
apart = (n @ v_in.T) @ out.T + (n @ up.T).relu() @ down.T  # attention to oneself only, to keep it short
values, hidden = (n @ torch.cat([v_in, up]).T).split([8, 32], dim=-1)
fused = torch.cat([values, hidden.relu()], dim=-1) @ torch.cat([out, down], dim=1).T
print(f"four products and two differ by up to {(apart - fused).abs().max():.12f}, in numbers up to {apart.abs().max():.0f}")
zoo_parallel = [entry for entry in all_models() if entry.decoder.block.branches != "serial"]
layer_norms = sum(entry.decoder.block.norm.kind == "layer" for entry in zoo_parallel)
print(f"parallel blocks in the zoo: {len(zoo_parallel)}, of them with LayerNorm: {layer_norms}")

# %% [markdown]
# *Which of the two is more efficient?* asks a student. The parallel one: about 15 % faster training at PaLM's scale, where larger products keep the hardware busy, with a small loss of quality at 8 billion parameters and none at 62 billion (Chowdhery et al., 2022). The serial one is more *expressive*: its feed-forward layer can react to what attention found in the same block. Models with parallel blocks in the zoo are GPT-J, PaLM, GPT-NeoX, Pythia, Falcon, Phi and Command, whose latest is from 2025.
#
# ### Exercise 10 · Count them  (2 points · 5 min · ●)
#
# Return how many numbers all norms of a serial model have. `kind` is "layer" or "rms", `placement` one of the four. Every norm has its own parameters, and the norm before the head counts where there is one. QK-norms do not count. A model may have no block at all: `layers` is 0 or more. Another kind or placement: `ValueError`.

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
with your("norm_parameters"):
    for name, kind, placement in (("gpt-3", "layer", "pre"), ("llama-3.1-405b", "rms", "pre"), ("gemma-2-9b", "rms", "double")):
        entry = find_model(name)
        count = norm_parameters(len(entry.decoder.layers), entry.decoder.d_model, kind, placement)
        share = count / count_parameters(entry.config).total
        print(f"{name:15} {count:9,} numbers in norms: {share:.5%} of the model")

# %% [markdown]
# ## 11 · What models chose
#
# **In real models.** The rule is pre-norm, and few models break it. Find the late one with post-norm:

# %%
figures.norm_placement_grid()

# %%
print("post-norm:", ", ".join(f"{e.name} ({e.year})" for e in all_models() if e.decoder.block.placement == "post"))

# %% [markdown]
# OPT-350M (Zhang et al., 2022) is the odd one out of its own family: all its sisters are pre-norm.
#
# *Which of all this will still be true in five years?* a student asks. Four lessons, each of which comes back elsewhere in this course:
#
# | lesson | here | and again |
# | --- | --- | --- |
# | keep a path on which nothing happens | the stream | the LSTM's cell (06) |
# | normalise what is read | pre-norm | QK-norm, z-loss (16) |
# | let one thing gate another | SwiGLU in the blocks above (11) | the LSTM's gates (06) |
# | think of the machine | fused norms, parallel blocks | FlashAttention and GQA (08) |
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
# | placement | stream | the embedding after 12 blocks | straight part of the gradient | deep, without warm-up |
# | --- | --- | --- | --- | --- |
# | post | $N(x + f(x))$ | 0.024 % | passes every norm | learns only how frequent bytes are |
# | pre | $x + f(N(x))$ | 20 % | untouched | learns |
# | double | $x + N'(f(N(x)))$ | 20 % | untouched | not trained here; its output moves little (section 9) |
# | output | $x + N'(f(x))$ | 20 % | untouched | not trained here; wants small weights (section 8) |
#
# ## Check yourself
#
# 1. Why can a post-norm model *not* be turned into one with RMSNorms by centring its writers? (Where does its stream get a mean from?)
# 2. A pre-norm model lacks its final norm. What do the logits do as it gets deeper?
# 3. You remove block 80 of 96 from a pre-norm model and it hardly gets worse. Which figure of this notebook said so?
# 4. A norm decides what a layer *sees*, what it may *say*, or what *survives*. Which placement does which?
#
# <details><summary>Answers</summary>
#
# 1. Each norm in the stream multiplies by its scale and adds its shift, feature by feature. That gives the stream a new mean, which no writer has written.
# 2. They grow like the stream, with the square root of the number of blocks (notebook 12 measures what that costs).
# 3. The fractions of the stream in section 7: after 80 blocks one block is a small part of a long sum.
# 4. Pre: what it sees. Output: what it says. Double: both. Post: what survives.
#
# </details>
#
# ## Further reading
#
# - Ba, Kiros & Hinton (2016), *Layer normalization*; Zhang & Sennrich (2019), *Root mean square layer normalization*.
# - Xiong et al. (2020), *On layer normalization in the transformer architecture*; Liu et al. (2020), *Understanding the difficulty of training transformers*.
# - Ashkboos et al. (2024), *SliceGPT*; Kim et al. (2025), *Peri-LN*, on norms on both sides; Elhage et al. (2021), *A mathematical framework for transformer circuits*.
# - Zhu et al. (2025), *Transformers without normalization*, replaces norms by a tanh. In `lmcourse/nn`, `norm.py` and `block.py` have the norms and placements of this notebook.

# %% tags=["hide-input"]
assert f"{100 / math.sqrt(15_000):.3f} {200 / math.sqrt(15_000):.3f}" == "0.816 1.633"
assert f"{math.sqrt(5_000):.2f} {math.sqrt(15_000):.2f} {math.sqrt(2):.3f}" == "70.71 122.47 1.414"
assert (f"{0.5**12:.3%}", (1 + 2 * 12) ** -0.5, f"{(1 + 2 * 90) ** 0.5:.0f}") == ("0.024%", 0.2, "13")
assert (4**2 + 3**2) ** 0.5 == 5 and f"{math.hypot(0.733, 0.702):.3f} {0.005 * 32**0.5:.0%}" == "1.015 3%" and f"{65_536**-0.5:.3f}" == "0.004"
assert [len(steps) for steps in STEPS.values()] == [7, 4]
assert sum(published_norms().values()) == len(all_models()) - 5  # four of the course's own, and one that does not say
assert f"{8 * math.log10(2):.1f}" == "2.4"  # the digits of bf16
for placement, bounds in {"pre": (5, 30), "post": (60, 1000), "double": (5, 50), "output": (3e3, 1e5)}.items():
    assert all(bounds[0] < quotient < bounds[1] for quotient in quotients[placement]), placement
assert profiles["pre"][48][-1] < profiles["pre"][2][-1] / 4
assert max(by_block[-1] for by_block in profiles["post"].values()) < 2 * min(by_block[-1] for by_block in profiles["post"].values())
both = {run: found[0][:, 2].double() for run, found in split.items()}
assert split["post", "fan_in"][0][:, 0].double().prod() < 1e-8 and both["post", "fan_in"].prod() > 50
assert 0.95 < both["post", "gpt2"].prod() < 1.02 and both["output", "gpt2"].prod() > 200
assert split["output", "gpt2"][1][0] < split["output", "gpt2"][1][-1] / 10
assert (split["pre", "fan_in"][0][:, 0] == 1).all()
rounded = {run: [f"{size:.2f}" for half in (0, 1) for size in found[0][half::2].log().mean(dim=0).exp()] for run, found in split.items()}
assert rounded["post", "fan_in"] == ["0.73", "0.70", "1.02", "0.87", "0.71", "1.12"]
assert rounded["pre", "fan_in"][2::3] == ["1.02", "1.03"] and rounded["output", "fan_in"][2] == "1.18"
assert min(jitter, key=lambda placement: jitter[placement][2]) == "post"
assert 1.5 < jitter["pre"][32] / jitter["pre"][2] < 2.5 and f"{jitter['pre'][32]:.0%}" in ("5%", "6%") and jitter["post"][32] > 0.5
assert all(end(post) < end(pre) - 0.1 for pre, post in zip(shallow["pre"], shallow["post"], strict=True))
assert all(end(run) < 2.6 for run in deep["pre"]) and all(end(run) > 2.9 for run in (*deep["post"], *warmed))
for run in (*deep["post"], *warmed):  # large at first, nothing in the end
    assert run[1][0] > max(each[1][0] for each in deep["pre"]) and run[1][-1] < 0.01 < 0.1 < min(each[1][-1] for each in deep["pre"])
assert {e.name for e in all_models() if e.name.startswith("opt") and e.decoder.block.placement == "post"} == {"opt-350m"}
assert max(entry.year for entry in zoo_parallel) == find_model("command-a").year == 2025
