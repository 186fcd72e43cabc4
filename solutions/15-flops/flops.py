# %% [markdown]
# # 15 · FLOPs
#
# **120 min · 11 exercises · 28 points**
#
# Seventy billion parameters, fifteen trillion tokens, 1024 H100s: when will it be done? The answer is one line of arithmetic, and every
# number in it is a trap. By the end of this notebook you will have counted it all yourself, and a machine will agree to the last digit.
#
# **You will be able to**
#
# - count the FLOPs of a product, a model, a training step and a written text, exactly;
# - say what the rule of 6·N·T leaves out, and when that matters;
# - turn FLOPs into days, GPU-hours and money, and a stopwatch into MFU, without falling for the wrong peak.
#
# **You need** matrix products and `einsum` (notebook 02), and what a transformer is made of (12). No GPU.
#
# Each exercise has a cell for your answer and a check below it. The check tells you what differs, and often why. Stuck?
# `hint("name_of_the_exercise")` gives a nudge; run it again for the next one.

# %%
import math
import time
from itertools import pairwise

import torch

from lmcourse.accounting import flops as count
from lmcourse.accounting.accelerators import all_accelerators, find_accelerator
from lmcourse.accounting.counter import count_flops, counted_flops
from lmcourse.accounting.flop_rules import kaplan_forward, palm_training, six_n_d
from lmcourse.accounting.flops import training_flops
from lmcourse.accounting.mfu import Cluster, throughput_mfu
from lmcourse.accounting.parameters import count_parameters, matmul_parameters
from lmcourse.accounting.worked_examples import training_examples
from lmcourse.chapters.flops import figures
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import all_models, find_model
from lmcourse.notebook import check, explore, hint, predict, start
from lmcourse.widgets import Log

start("15-flops")

# %% [markdown]
# ## 1 · An amount or a rate?
#
# A FLOP is one floating-point operation: an addition or a multiplication, say. From there on, the names are a mess.
#
# | written | read | is | like |
# | --- | --- | --- | --- |
# | **FLOPs** | floating-point operations | an *amount* of work | kilometres |
# | **FLOP/s**, also FLOPS | floating-point operations per second | a *rate* | kilometres per hour |
#
# A training run takes FLOPs; a chip does FLOP/s. Divide the first by the second and you have seconds. We always write the slash.

# %%
predict("flops_or_rate")

# %% [markdown]
# > **Spot the slip.** "H100: 1979 teraFLOPs." As an amount it says nothing. The rate, 1979 TFLOP/s, is printed on
# > the data sheet, and comes with an asterisk: it holds for matrices in which two of every four weights are zero (*sparse*). Nobody
# > trains with those. The *dense* rate is half: 989.4 TFLOP/s.
#
# Three rates to remember, all dense (NVIDIA, data sheets of 2021 and 2023):

# %%
for name in ("a100", "h100"):
    chip = find_accelerator(name)
    rates = ", ".join(f"{number} {chip.peak(number) / 1e12:,.1f}" for number in ("fp32", "tf32", "bf16"))
    print(f"{chip.title:24} TFLOP/s: {rates}")

# %% [markdown]
# ## 2 · What does a product cost?
#
# Nearly all work in a model is matrix products. Here is one, in the only way that hides nothing:

# %%
x, w = torch.ones(2, 3), torch.ones(3, 4)
result, operations = torch.zeros(2, 4), 0
for i in range(2):
    for k in range(4):
        for j in range(3):
            result[i, k] += x[i, j] * w[j, k]
            operations += 2  # a multiplication and an addition
print(f"the same as x @ w: {torch.equal(result, x @ w)};  operations: {operations}")

# %% [markdown]
# Every combination of $i$, $j$ and $k$ is visited once.
#
# ### Exercise 1 · A matrix product  (1 point · 3 min · ●)
#
# Return the FLOPs of an $m \times k$ times a $k \times n$ matrix, counted as the loop counts. One of the checks has 16,384 points with
# 32,768 features each, mapped to 8192 outputs.
#
# One rule for this whole notebook: torch can count FLOPs itself (`torch.utils.flop_counter`), and the checks compare with it. Your
# answers do without.

# %% exercise="matmul_flops"
def matmul_flops(m: int, k: int, n: int) -> int:
    """FLOPs of an m × k matrix times a k × n matrix: 48 for 2, 3, 4."""
    ### BEGIN SOLUTION
    return 2 * m * k * n
    ### END SOLUTION


# %% check="matmul_flops"
check(matmul_flops)
### BEGIN HIDDEN TESTS
check(matmul_flops, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# So the product of an $m \times k$ and a $k \times n$ matrix takes
#
# $$2 \cdot m \cdot k \cdot n \quad\text{FLOPs.}$$
#
# (To be pedantic: $k$ products need only $k-1$ additions, $(2k-1)\,m\,n$ in all. With $k$ in the thousands nobody cares, and a machine
# starts from zero anyway.) Move the sizes. The cubes are the combinations:

# %%
explore(figures.matmul_cube, m=(1, 8), k=(1, 8), n=(1, 8))

# %% [markdown]
# ### And everything else?
#
# An activation, a norm or a sum of two tensors does a few operations *per number*. A product does thousands per number of its result.
# Take a feed-forward layer: its activation works on $4d$ numbers per token, and the products before and after take
# $2 \cdot d \cdot 4d + 2 \cdot 4d \cdot d = 16 d^2$ FLOPs. Even a GELU, at twenty operations each, comes to $80\,d$.

# %%
explore(figures.elementwise_share, operations=(1, 60))

# %% [markdown]
# So we count products and nothing else, as everybody does. Keep in mind that this is a statement about *FLOPs*. Element-wise operations
# can still take much *time*, because they wait for memory (notebooks 11 and 19).

# %% [markdown]
# ## 3 · A product of any two tensors
#
# Attention is full of products with batches and heads. Do we need a new formula for each? Look at the loop again: how often did its body
# run? Once for every combination of all axes, each axis taken once, wherever it stands. That is all there is to it:
#
# $$\text{FLOPs} = 2 \cdot \prod_{\text{every axis}} \text{size}$$
#
# for axes that stay, axes that are summed, and axes that both tensors share. Put differently: a tensor that is multiplied with an
# $I \times J$ matrix takes $2 \cdot I \cdot J$ for each vector in it, that is $2 \cdot (\text{all other axes}) \cdot I J$. Torch agrees:

# %%
first, second = (torch.empty(2, 4, length, 8, device="meta") for length in (5, 6))
scores = count_flops(lambda: torch.einsum("bhsd,bhtd->bhst", first, second))
print(f"b h s d, b h t d -> b h s t   torch counts {scores.total:,}   2 · 2 · 4 · 5 · 6 · 8 = {2 * 2 * 4 * 5 * 6 * 8:,}")

# %% [markdown]
# These tensors live on the *meta* device: they have shapes and no numbers, so they weigh nothing, and counting is all one can do with
# them.
#
# ### Exercise 2 · Any product  (3 points · 8 min · ●●)
#
# `pattern` is written as for einops, with names between spaces: `"b s d, d f -> b s f"`. `first` and `second` are the two shapes. Return
# the FLOPs. Where nothing is summed there is no matrix product: return 0. Raise `ValueError` if one name has two sizes (1 and 3 are two
# sizes as well), or a shape more or fewer sizes than names. (An axis that is summed stands in both tensors; you need not look for others.)

# %% exercise="einsum_flops"
def einsum_flops(pattern: str, first: list[int], second: list[int]) -> int:
    """FLOPs of a product of two tensors: 48 for "m k, k n -> m n", [2, 3], [3, 4]."""
    ### BEGIN SOLUTION
    inputs, result = pattern.split("->")
    left, right = inputs.split(",")
    sizes: dict[str, int] = {}
    for axis, size in [*zip(left.split(), first, strict=True), *zip(right.split(), second, strict=True)]:
        if sizes.setdefault(axis, size) != size:
            raise ValueError(f"{axis} is {sizes[axis]} and {size}")
    if set(sizes) == set(result.split()):
        return 0
    return 2 * math.prod(sizes.values())
    ### END SOLUTION


# %% check="einsum_flops"
check(einsum_flops)
### BEGIN HIDDEN TESTS
check(einsum_flops, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · Forward through a model
#
# You know what one product costs. What is a whole model made of, and what grows how fast when it gets larger?

# %%
predict("twice_as_wide")

# %% [markdown]
# A linear layer with $n$ weights takes $2n$ FLOPs for each token that passes: every weight multiplies once and adds once. Add up all
# layers and you have the first rule of thumb:
#
# $$\text{forward} \approx 2 \cdot \text{tokens} \cdot N.$$
#
# Now without the "≈". Take $B$ texts of $S$ tokens, a model of width $D$ with $L$ layers, a feed-forward layer of width $F = E \cdot D$,
# and a vocabulary of $V$. (These letters keep their meaning to the end. $N$ are parameters, and $T$ all tokens of a training run or of a
# text that is written.) Every layer does this:
#
# | part | product | FLOPs per layer |
# | --- | --- | --- |
# | queries, keys, values | three times $(BS, D) \cdot (D, D)$ | $6\,B S D^2$ |
# | scores | every query with every key | $2\,B S^2 D$ |
# | values | every weight with every value | $2\,B S^2 D$ |
# | out | $(BS, D) \cdot (D, D)$ | $2\,B S D^2$ |
# | feed-forward | $(BS, D) \cdot (D, F)$, $(BS, F) \cdot (F, D)$ | $4\,B S D F = 4\,E\,B S D^2$ |
#
# and once, at the end, the head: $2\,B S D V$. How many heads attention has does not matter: $h$ heads of width $D/h$ make
# $h \cdot S^2 \cdot D/h$. With *shared* key heads (GQA) the matrices for keys and values are only $D_{kv}$ wide. A *gated* feed-forward
# layer has three matrices of $D \cdot F$.

# %%
predict("head_share")

# %% [markdown]
# > **Spot the slip.** One can read $3\,\big(b\,l\,(24 s h^2 + 4 s^2 h) + 4\,b s v h\big)$ for forward and backward, with
# > width $h$, $l$ layers and a vocabulary of $v$. The layers are right: with $E = 4$ our table adds up to $24\,BSD^2 + 4\,BS^2D$. The
# > vocabulary is not. The logits are one product, $2\,bsvh$. The other $2\,bsvh$ would be the embedding as a product with one-hot
# > vectors, and it is a *look-up*. For GPT-3 that is 0.69 % in place of 0.34 %; for GPT-2 small 43 % in place of 27 %.
#
# ### Exercise 3 · A forward pass  (3 points · 10 min · ●●)
#
# Return a dict with the FLOPs of the six parts, `"qkv"`, `"scores"`, `"values"`, `"out"`, `"ffn"` and `"head"`, of all layers together.
# `d_kv` is the width of all key heads together; `None` means `d_model`. All $S^2$ pairs of tokens count, also those that a causal mask
# hides: that is what torch counts and most papers report.

# %% exercise="forward_flops"
def forward_flops(
    batch: int,
    length: int,
    layers: int,
    d_model: int,
    d_ff: int,
    vocab_size: int,
    d_kv: int | None = None,
    gated: bool = False,
) -> dict[str, int]:
    """FLOPs of a forward pass, by part."""
    ### BEGIN SOLUTION
    tokens = batch * length
    d_kv = d_model if d_kv is None else d_kv
    pairs = 2 * batch * length**2 * d_model
    return {
        "qkv": layers * 2 * tokens * d_model * (d_model + 2 * d_kv),
        "scores": layers * pairs,
        "values": layers * pairs,
        "out": layers * 2 * tokens * d_model**2,
        "ffn": layers * 2 * tokens * d_model * d_ff * (3 if gated else 2),
        "head": 2 * tokens * d_model * vocab_size,
    }
    ### END SOLUTION


# %% check="forward_flops"
check(forward_flops)
### BEGIN HIDDEN TESTS
check(forward_flops, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Do not believe the formula, count. Torch runs whole models on the meta device and adds up every product that is really made. Beside it,
# the package's own count from the configuration, and the rule of thumb:

# %%
print("model           tokens      torch counts          predicted             2·tokens·N, N with head")
for name, length in (("gpt-2", 1024), ("llama-3.2-1b", 2048), ("llama-3-8b", 2048)):
    model = find_model(name).decoder
    counted = counted_flops(model, 1, length).total
    predicted = count.forward_flops(model, 1, length).total
    rule = 2 * length * matmul_parameters(model)
    print(f"{name:13}  {length:7,}  {counted:20,}  {predicted:20,}  {rule:20,} ({rule / counted - 1:+.1%})")

# %% [markdown]
# What is missing to the rule is scores and values: they are products of activations, and no weight stands for them. Slide the length, and
# watch red and orange grow (past what some of these models can read; the arithmetic does not mind). Which models does the head weigh on?

# %%
explore(figures.flops_by_part, length=Log(128, 131072), pairs=["all", "visible"])

# %% [markdown]
# With `visible`, only pairs that the causal mask lets through count. Fused kernels skip the others, nearly (Dao, 2023, §3.1), so *time*
# is closer to that; published FLOPs mostly count all pairs. When you compare two numbers, ask which.
#
# On eight devices with tensor parallelism each does an eighth of these FLOPs. (Sequence parallelism, often named in the same breath,
# divides activations and not one weight.)

# %% [markdown]
# ## 5 · The way back
#
# Two layers and a loss: $h_1 = x w_1$, $h_2 = h_1 w_2$, with $B$ rows in $x$ of shape $(B, D)$, $w_1$ of $(D, D)$ and $w_2$ of $(D, K)$. Forward is
# easy by now: $2BD^2 + 2BDK$. And back?

# %%
predict("two_layers_back")

# %% [markdown]
# A product $z = x\,w$ has two gradients, each a product itself (notebook 03):
#
# $$\underbrace{dw}_{(D, K)} = \underbrace{x^\top}_{(D, B)} \underbrace{dz}_{(B, K)} \qquad\qquad \underbrace{dx}_{(B, D)} = \underbrace{dz}_{(B, K)} \underbrace{w^\top}_{(K, D)}$$
#
# Both take $2BDK$ FLOPs, exactly as many as $z$ did. The first updates $w$, the second goes on to the layer before. So backward takes
# twice the forward, with one exception: nobody needs the gradient of something that is not learned and has nothing learned before it. For
# the first layer on raw data, $dx$ is left out.
#
# > **Spot the slip.** Somebody writes $dw_2$ as a loop, the first one below, sees "4 operations in three nested loops", and concludes:
# > $4BDK$ for one weight matrix. The count and the loop are both wrong. Let us run it, with $B=3$, $D=5$, $K=2$:

# %%
torch.manual_seed(0)
B, D, K = 3, 5, 2
h1, dh2 = torch.randn(B, D), torch.randn(B, K)

printed, steps = torch.zeros(D, K), 0
try:
    for b in range(B):
        for k in range(K):
            for d in range(printed.shape[1]):  # this is K
                printed[b, d] += dh2[b, k] * h1[b, d]
                steps += 1
except IndexError as error:
    print(error)
right = torch.zeros(D, K)
for b in range(B):
    for k in range(K):
        for d in range(right.shape[0]):  # this is D
            right[d, k] += dh2[b, k] * h1[b, d]
print(f"as printed: {steps} of {B * D * K} steps, equal to h1ᵀ dh2: {torch.allclose(printed, h1.T @ dh2)}")
print(f"corrected:  {B * D * K} steps, equal to h1ᵀ dh2: {torch.allclose(right, h1.T @ dh2)}")

# %% [markdown]
# The corrected loop makes $2BDK$ operations, a multiplication and an addition per step. That is $dw_2$ alone. The other $2BDK$ belong to
# $dh_1 = dh_2\,w_2^\top$, which the loop does not show; and $x$ needs no gradient, so $w_1$ costs $2BD^2$ and not $4BD^2$.
#
# An activation in between, $h_1 = \varphi(x w_1)$, changes nothing: the incoming gradient and $\varphi'$ have the same shape, and
# multiplying them is element-wise:

# %%
x, w = (torch.empty(*shape, device="meta", requires_grad=True) for shape in ((64, 256), (256, 256)))
two = count_flops(lambda: torch.relu(x @ w), backward=True)
print(f"forward {two['forward']:,}   backward {two['backward']:,}   ratio {two['backward'] / two['forward']:.3f}")

# %% [markdown]
# ### Exercise 4 · The way back  (3 points · 8 min · ●●)
#
# A batch of `batch` rows passes a chain of linear layers; `widths` are the widths from input to output, so `[128, 128, 32]` are two
# layers. All weights are trained. Return the FLOPs of the backward pass alone. `input_grad` says whether the gradient of the input is
# wanted, too.

# %% exercise="backward_flops"
def backward_flops(batch: int, widths: list[int], input_grad: bool = False) -> int:
    """FLOPs of the way back through a chain of linear layers."""
    ### BEGIN SOLUTION
    products = [2 * batch * inputs * outputs for inputs, outputs in pairwise(widths)]
    weights, inputs = sum(products), sum(products[0 if input_grad else 1 :])
    return weights + inputs
    ### END SOLUTION


# %% check="backward_flops"
check(backward_flops)
### BEGIN HIDDEN TESTS
check(backward_flops, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.backward_bars, batch=Log(1, 1024), width=Log(16, 4096), outputs=Log(16, 4096), input_grad=False)

# %% [markdown]
# **In real models.** A language model's "raw data" is a look-up in a table that is learned, so the first layer's $dx$ is needed, and
# backward is twice the forward *exactly*. Torch's counter says so for every model of this course. The ratio falls when you fine-tune:
# weights that are frozen have no $dw$, but the gradient still passes through them.

# %% [markdown]
# ## 6 · Six N T
#
# Forward 2, backward 4. So training a model of $N$ parameters on $T$ tokens takes
#
# $$C \approx 6 \cdot N \cdot T \quad\text{FLOPs}$$
#
# (Kaplan et al., 2020, §2.1). Papers call it $6ND$, with $D$ for the tokens, as in *data*; here $D$ is the width. It is the most useful
# line of this notebook. What does it give?

# %%
for name, tokens in (("gpt-3", 300e9), ("llama-3-8b", 15e12), ("llama-3.1-405b", 15.6e12)):
    N = count_parameters(find_model(name).config).total
    print(f"{name:15}  6 · {N / 1e9:6.1f}e9 · {tokens:.3g} = {six_n_d(N, int(tokens)):.2e} FLOPs")

# %% [markdown]
# The first is what Brown et al. (2020, appendix D) report, 3.14e23; the last is what Grattafiori et al. (2024) do, 3.8e25.
#
# In a **mixture of experts** a token passes only some of the feed-forward layers. What it does not pass costs it no FLOP, so $N$ are the
# *active* parameters: 37 billion of DeepSeek-V3's 671 (DeepSeek-AI, 2024). On 14.8 trillion tokens that is 3.3e24 FLOPs, a twelfth of
# Llama 3.1 405B's. In memory all 671 billion have to be (notebook 14).
#
# ### The table behind it
#
# What exactly is $N$? Kaplan et al. printed a table, per **token**, for a model of `layers` layers of width $d$, with all heads together
# $d_{attn}$ wide, a feed-forward layer of $d_{ff}$ and a context of $n_{ctx}$ tokens:
#
# | row | parameters | forward FLOPs per token |
# | --- | --- | --- |
# | `embed` | a vector of $d$ for each of $n_{vocab}$ tokens and $n_{ctx}$ positions | $4d$: a look-up and an addition, and nobody minds the 4 |
# | `qkv` | in each layer three matrices from $d$ to $d_{attn}$ | 2 per parameter |
# | `mask` | none | scores and values, for the keys that a query sees on average |
# | `project` | in each layer one matrix from $d_{attn}$ to $d$ | 2 per parameter |
# | `ffn` | in each layer one from $d$ to $d_{ff}$, one back | 2 per parameter |
# | `de-embed` | none: the head uses the embedding's | 2 per weight of the head |
# | `total` | all but the two ends | all but the two ends |
#
# > **Spot the slip.** In the paper `mask` is $2 \cdot n_{ctx} \cdot d_{attn}$ per layer, and one can read that this is $QK^\top$ alone,
# > with $A V$ "disregarded". Count with a causal mask:

# %%
context, width = 2048, 1600
both = sum(4 * width * (query + 1) for query in range(context)) / context
print(f"scores and values of a token, causal mean {both:,.0f}; the table's 2·n_ctx·d {2 * context * width:,}")

# %% [markdown]
# Scores and values take $4\,d_{attn}$ per pair, and a query sees $(n_{ctx}+1)/2$ keys on average. So `mask` holds *both*, for the half of
# the pairs that a causal mask lets through. (Our count of section 4, all pairs, is twice as much.)
#
# ### Exercise 5 · Kaplan's table  (3 points · 9 min · ●●)
#
# Return the table as a dict from the seven row names to lists `[parameters, flops_per_token]`.

# %% exercise="kaplan_table"
def kaplan_table(
    layers: int, d_model: int, d_attn: int, d_ff: int, context: int, vocab_size: int
) -> dict[str, list[int]]:
    """Parameters and forward FLOPs per token, row by row, of Kaplan et al. (2020), table 1."""
    ### BEGIN SOLUTION
    weights = {
        "qkv": layers * d_model * 3 * d_attn,
        "project": layers * d_attn * d_model,
        "ffn": layers * 2 * d_model * d_ff,
    }
    mask, N = 2 * layers * context * d_attn, sum(weights.values())
    return {
        "embed": [(vocab_size + context) * d_model, 4 * d_model],
        **{row: [size, 2 * size] for row, size in weights.items()},
        "mask": [0, mask],
        "de-embed": [0, 2 * d_model * vocab_size],
        "total": [N, 2 * N + mask],
    }
    ### END SOLUTION


# %% check="kaplan_table"
check(kaplan_table)
### BEGIN HIDDEN TESTS
check(kaplan_table, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# The last row, `total`, is what scaling laws call model size and compute: $N = 2\,d \cdot layers \cdot (2\,d_{attn} + d_{ff})$
# parameters, and $2N + 2 \cdot layers \cdot n_{ctx} \cdot d_{attn}$ FLOPs per token.
#
# When may one forget `mask`? With $d_{attn} = d$ and $d_{ff} = 4d$ we have $2N = 24 \cdot layers \cdot d^2$, so `mask` is
# $n_{ctx} / (12\,d)$ of it: more than ten per cent once the context is longer than $1.2\,d$. For GPT-3, 2048 tokens and $d = 12{,}288$,
# it is 1.4 %.
#
# ### How good is the rule?
#
# Hoffmann et al. (2022, appendix F) counted every product of their Chinchilla models and found 6·N·T close enough. Here are all decoders
# of the zoo. What $N$ is matters as much as the rule: try all three.

# %%
explore(figures.six_n_gap, length=Log(128, 131072), N=["all parameters", "layers only", "layers and head"])

# %% [markdown]
# Large models on short texts: within a few per cent. Small models: the head, and attention, are too large to be left out. With "all
# parameters" two mistakes sometimes cancel: an embedding that is counted although it is only looked up, and scores that are not counted
# although they are computed.

# %% [markdown]
# ## 7 · A training step, to the last digit
#
# Add up the table of section 4, and think of the way back. What comes out are the **model FLOPs** of a step: what has to be computed,
# whatever the implementation does.
#
# ### Exercise 6 · Model FLOPs  (3 points · 7 min · ●●)
#
# Return the model FLOPs of a training step on `batch` texts of `length` tokens, with all pairs counted, and with the head. `expansion` is
# $E$.

# %% exercise="model_flops"
def model_flops(batch: int, length: int, layers: int, d_model: int, expansion: int, vocab_size: int) -> int:
    """FLOPs of forward and backward for a whole batch."""
    ### BEGIN SOLUTION
    blocks = 12 * batch * d_model * layers * length * (length + (2 + expansion) * d_model)
    return blocks + 6 * batch * length * d_model * vocab_size
    ### END SOLUTION


# %% check="model_flops"
check(model_flops)
### BEGIN HIDDEN TESTS
check(model_flops, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# With $F = E \cdot D$ the layers make
#
# $$12 \cdot B D L S \cdot \big(S + (2 + E)\,D\big), \qquad\text{and the head}\qquad 6 \cdot B S D V.$$
#
# Take $D \gg S$, and $12 (2 + E) L D^2$ is six times the weights of the layers: the rule of 6·N·T is the first term, and the correction
# is of the order $S/D$.
#
# ### When does the square matter?

# %%
predict("as_long_as_wide")

# %% [markdown]
# "Attention is quadratic" is true and says little: what matters is how large the factor is. One often reads that attention is negligible
# for $S \lesssim D$.
#
# ### Exercise 7 · Attention's share  (2 points · 5 min · ●●)
#
# Return the share (0 to 1) of a layer's forward FLOPs that goes into scores and values. Count all pairs, and leave out the head. Then ask
# it: at which $S$ is the share one half?

# %% exercise="attention_share"
def attention_share(length: int, d_model: int, expansion: int = 4) -> float:
    """Scores and values among all products of a layer: 1/7 for a text as long as the model is wide."""
    ### BEGIN SOLUTION
    return length / (length + (2 + expansion) * d_model)
    ### END SOLUTION


# %% check="attention_share"
check(attention_share)
### BEGIN HIDDEN TESTS
check(attention_share, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# The share is one half at $S = (2 + E)\,D$, with $E = 4$ at $S = 6D$:

# %%
explore(figures.attention_by_length, length=Log(128, 1048576), pairs=["all", "visible"])

# %% [markdown]
# So the crossover lies at 4608 tokens for GPT-2 small, at 24,576 for a width of 4096, and at 73,728 for GPT-3. Wide models can read long
# texts before attention is what they pay for.
#
# ### Computed twice
#
# To save memory, activations are often thrown away and computed again on the way back (notebooks 13 and 14). What is done then are
# **hardware FLOPs**, more than the model FLOPs; a run's HFU counts them, its MFU does not (Chowdhery et al., 2022, appendix B).
# Recomputing every layer is a second forward pass: 8 in place of 6, but for the head.

# %%
explore(figures.recompute_bars, model=["gpt-2", "llama-3-8b", "gpt-3"], length=Log(512, 131072))

# %% [markdown]
# Fused attention always computes its scores again, because it never stored them (Dao et al., 2022). On long texts that is what you see in
# the middle bar.

# %% [markdown]
# ## 8 · How long, and what does it cost?
#
# We can answer the question from the start. Before you do, look at how a whole fleet's work is put together:
#
# $$\underbrace{\text{GPUs} \cdot \text{peak} \cdot \text{MFU}}_{\text{model FLOP/s}} \cdot \;\text{time} \;=\; 6 \cdot N \cdot T$$
#
# **MFU** is the share of the peak that becomes model FLOPs; section 10 measures it. The recipe in five steps: (1) the FLOPs in all; (2)
# the peak of a GPU, in the right format, dense; (3) MFU; (4) the FLOPs of all GPUs on one day, 86,400 s; (5) divide.
#
# ### Exercise 8 · The question from the start  (2 points · 5 min · ●●)
#
# 70 billion parameters, 15 trillion tokens, 1024 H100 SXM, bf16, an MFU of 0.5. How many days? Half a per cent is near enough.

# %% exercise="training_days"
training_days = None  # a number in place of None
### BEGIN SOLUTION
training_days = 6 * 70e9 * 15e12 / (1024 * 989.4e12 * 0.5 * 86_400)
### END SOLUTION

# %% check="training_days"
check(training_days=training_days)
### BEGIN HIDDEN TESTS
check(training_days=training_days, hidden=True)
### END HIDDEN TESTS

# %%
predict("more_gpus")

# %% [markdown]
# ### Exercise 9 · GPU-hours  (2 points · 5 min · ●)
#
# What is paid for is hours of *one* GPU, times their number. Return the GPU-hours of a training run by 6·N·T; `peak` is that of one GPU,
# dense, in FLOP/s. Raise `ValueError` unless $0 < \text{mfu} \le 1$.

# %% exercise="gpu_hours"
def gpu_hours(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> float:
    """Hours of a single GPU that a training run takes."""
    ### BEGIN SOLUTION
    if not 0 < mfu <= 1:
        raise ValueError(f"MFU is a share, above 0 and at most 1, not {mfu}")
    return 6 * parameters * tokens / (peak * mfu) / 3600
    ### END SOLUTION


# %% check="gpu_hours"
check(gpu_hours)
### BEGIN HIDDEN TESTS
check(gpu_hours, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# A reality check. Touvron et al. (2023, table 15) report 82,432 A100-hours for LLaMA 7B on a trillion tokens. With 6·N·T that is an MFU
# of 0.44, right where good runs lie. And GPT-3, at an MFU of 0.4, would be 29,100 GPU-days on A100s or 9,200 on H100s.
#
# Here is a whole budget, with models of the zoo and GPUs of the table. It counts scores and values, too. Which costs more: ten times the
# tokens, or half the MFU? How many GPUs do you need to be done within a month?

# %%
explore(
    figures.training_budget,
    model=[entry.name for entry in all_models() if isinstance(entry.config, TransformerConfig)],
    accelerator=[chip.name for chip in all_accelerators() if {"bf16", "fp16"} & set(chip.peaks)],
    gpus=Log(1, 65536),
    tokens_in_billions=[1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 15_000, 30_000],
    mfu=(0.05, 0.7, 0.01),
    dollars_per_gpu_hour=(0.5, 10.0, 0.1),
)

# %% [markdown]
# Prices change by the month; slide to yours. The other way round works as well: so many days on so many GPUs are
# $\text{days} \cdot 86{,}400 \cdot \text{GPUs} \cdot \text{peak} \cdot \text{MFU} / 6N$ tokens.

# %%
cluster = Cluster(find_accelerator("h100"), devices=64, mfu=0.4)
tokens = cluster.tokens(days=30, flops_per_token=6 * 1e9)
print(f"a month of 64 H100s at MFU 0.4 takes a model of 1B parameters through {tokens / 1e12:.1f} trillion tokens")

# %% [markdown]
# Where do published models lie? The scale has a factor of ten between two lines.

# %%
explore(figures.training_landmarks, accelerator=["a100-sxm-80gb", "h100-sxm", "b200"], gpus=Log(1, 65536), mfu=(0.05, 0.7, 0.01))

# %% [markdown]
# GPT-4 is drawn differently, because 2e25 is a guess from outside, although it is often printed like a fact.

# %% [markdown]
# ## 9 · Writing a text
#
# Reading is one pass over all tokens. Writing is a pass *per token*: each needs the one before. What does step $t$ cost?
#
# With a KV cache (notebooks 08 and 17) only the new token passes the matrices, $24 d^2$ per layer with a feed-forward layer of $4d$, and
# its query meets $t$ keys and values, $4\,t\,d$. Over a text of $T$ tokens:
#
# $$\sum_{t=1}^{T} L\,\big(24\,d^2 + 4\,t\,d\big) \;\approx\; L\,\big(24\,T d^2 + 2\,T^2 d\big).$$

# %%
predict("writing_a_text")

# %% [markdown]
# > **Spot the slip.** "Quadratic runtime, linear memory: at most $O(T)$." The cache takes $O(T d)$ *per layer*, and all of it has a
# > factor $L$. And the quadratic part is rarely the large one.
#
# Without a cache, step $t$ reads all $t$ tokens again: $24\,t\,d^2 + 4\,t^2 d$ per layer.

# %%
explore(figures.generation_cost, d_model=Log(256, 16384), tokens=Log(128, 131072))

# %% [markdown]
# The crossover is the old one: at $t = 6d$ a new token pays as much for looking back as for everything else.
#
# ### Exercise 10 · A text, token by token  (3 points · 9 min · ●●●)
#
# A model of `layers` layers, width `d_model`, feed-forward layers of $4d$ (not gated) and its own keys for every head reads a prompt and
# writes `new` tokens. Return the FLOPs.
#
# - The first pass reads the whole prompt and gives the first new token. Every later pass reads the token that was just written. The last
#   token is never read.
# - A token that is read sees itself. All pairs of a pass count.
# - Logits are only needed for the *last* token of each pass.
# - Without `cache`, every pass reads prompt and all new tokens so far.

# %% exercise="generation_flops"
def generation_flops(prompt: int, new: int, layers: int, d_model: int, vocab_size: int, cache: bool = True) -> int:
    """FLOPs of reading a prompt and writing new tokens behind it."""
    ### BEGIN SOLUTION
    total = 0
    for length in range(prompt, prompt + new):
        queries = 1 if cache and length > prompt else length
        layer = 24 * queries * d_model**2 + 4 * queries * length * d_model
        total += layers * layer + 2 * d_model * vocab_size
    return total
    ### END SOLUTION


# %% check="generation_flops"
check(generation_flops)
### BEGIN HIDDEN TESTS
check(generation_flops, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# **In real models.** Writing takes few FLOPs, and is slow all the same: a step uses every weight once for a single token, so the GPU
# spends its time fetching weights (notebook 17). FLOPs say how much work there is, not what it waits for.

# %% [markdown]
# ## 10 · How much of the peak?
#
# **Model FLOPs utilisation** is model FLOP/s achieved, divided by the peak (Chowdhery et al., 2022). So take a stopwatch, perhaps like
# this:
#
# ```python
# def run():
#     a @ b
#     if torch.cuda.is_available():
#         torch.cuda.synchronize()
#
# actual_time = timeit.timeit(run, number=5) / 5
# mfu = 2 * B * D * K / actual_time / 67e12  # FP32 Promised flop/s for H100
# ```
#
# > **Spot the slip.** It gets the hard part right: a GPU takes orders and returns at once, so without `synchronize` you time the
# > ordering. But the first run, which loads and sets up, is averaged in; and what comes out is how well *one product* uses the *fp32*
# > peak, not the MFU of a model.

# %%
explore(figures.timing_mistakes, synchronise=False, warm_up=False)

# %% [markdown]
# Here is a stopwatch to keep. It times a product of two 512 × 512 matrices on your processor; add a cell with `rate / 1e9` below it, and
# you see the GFLOP/s that your machine does in fp32:

# %%
def seconds_per_run(run, device: str = "cpu", warm_up: int = 2, runs: int = 5) -> float:
    """Warm up, wait for the device, time, wait again; the middle one of several runs."""
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    times = []
    for number in range(warm_up + runs):
        wait()
        begin = time.perf_counter()
        run()
        wait()
        if number >= warm_up:
            times.append(time.perf_counter() - begin)
    return sorted(times)[runs // 2]


a, b = torch.randn(2, 512, 512)
rate = 2 * 512**3 / seconds_per_run(lambda: a @ b)
assert 0 < rate < 1e15

# %%
predict("which_is_faster")

# %% [markdown]
# A rule of thumb says that an MFU of 0.5 or more is good, and that it tends to be lower in bf16, whose promised rate is the more
# optimistic one. Both are shares of *a* peak, so ask which. One and the same rate, against every peak of the data sheet:

# %%
explore(figures.utilisation_by_peak, tflops=(10, 1200, 10), accelerator=["a100-sxm-80gb", "h100-sxm", "rtx-4090"])

# %% [markdown]
# Whoever divides a bf16 rate by the fp32 peak finds more than 100 %, and that is lucky, because they notice. Dividing by the sparse peak
# halves the result, and nobody notices.
#
# Logs of training runs print tokens per second, $\tau$. Then
#
# > **Spot the slip.** With $C$ the model FLOPs of a *step* on $B$ texts of $S$ tokens, one can read
# > $\text{MFU} = C \cdot \tau / (\text{GPUs} \cdot \text{peak})$. Check the units: FLOPs per step times tokens per second. For a 7B model
# > at $10^5$ tokens per second on 32 A100s, in batches of 32 texts of 2048, that is an MFU of 27,569.
#
# ### Exercise 11 · MFU  (3 points · 6 min · ●●)
#
# Return MFU as a share. `tokens_per_second` is of all GPUs together, `peak` of one. If the share is above 1, somebody counted wrongly:
# raise `ValueError`.

# %% exercise="mfu"
def mfu(step_flops: float, step_tokens: int, tokens_per_second: float, gpus: int, peak: float) -> float:
    """The share of the peak that becomes model FLOPs."""
    ### BEGIN SOLUTION
    share = step_flops / step_tokens * tokens_per_second / (gpus * peak)
    if share > 1:
        raise ValueError(f"{share:.0%} of the peak cannot be")
    return share
    ### END SOLUTION


# %% check="mfu"
check(mfu)
### BEGIN HIDDEN TESTS
check(mfu, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# What belongs above the line are the FLOPs of a *token*, $C / BS$, about $6N$.
#
# **In real models.** From what papers say about speed, MFU can be computed again:

# %%
palm, llama = find_model("palm-540b").decoder, find_model("llama-65b").decoder
per_token = palm_training(palm, 1, 2048) / 2048
share = throughput_mfu(238_300, per_token, find_accelerator("tpu-v4"), "bf16", devices=6144)
print(f"PaLM 540B, 238,300 tokens/s on 6144 TPU v4:     {share:.1%}")
per_token = six_n_d(count_parameters(llama).total, 1)
share = throughput_mfu(380 * 2048, per_token, find_accelerator("a100"), "bf16", devices=2048)
print(f"LLaMA 65B, 380 tokens/s on each of 2048 A100s:  {share:.1%}")

# %% [markdown]
# The first is the 46.2 % that Chowdhery et al. (2022, table 3) report; in the same table stand 21.3 % for GPT-3, 32.5 % for Gopher and
# 30.2 % for Megatron-Turing NLG. LLaMA's rate is from Touvron et al. (2023, §2.4). Llama 3 405B reached 38 to 43 % on up to 16,384 H100s
# (Grattafiori et al., 2024, table 4). If your own number is far above these, look for a mistake; if it is far below, there is something
# to gain, and notebook 19 shows where.

# %% [markdown]
# ### Slips
#
# This course began with other people's notes, whose figures it computes again. You may meet them elsewhere, so here are the ones on
# training time, beside what comes out:

# %%
for example in training_examples():
    print(f"{example.name:42}  notes: {example.published:15}  computed: {example}")

# %% [markdown]
# And in words:
#
# | read | right |
# | --- | --- |
# | the way back through an $I \times J$ layer with an activation takes $5BIJ$, "slightly more than double" | $4BIJ$: the fifth is element-wise |
# | the first layer's takes $4BD^2$, on raw data too | $2BD^2$: its input needs no gradient |
# | "FLOPs = 6 · B · parameters", for any network on $B$ points | less where the input has no gradient |
# | Kaplan's `qkv` are "3 matrices per token" | per layer: all tokens share them |
# | the $4d$ of `embed` are two products with one-hot vectors | each of these would take $2\,n_{vocab}\,d$ |
# | with a cache, time is dominated by "the $O(td^2)$ portion" | $O(Td^2)$: $t$ was the index of the sum |
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what does a product take? | $2mkn$; in general 2 times the product of all axes, each once |
# | a forward pass? | $2 \cdot \text{tokens} \cdot N$, and $4\,B S^2 D$ per layer for scores and values |
# | a backward pass? | twice the forward; less only if the input needs no gradient |
# | training? | $6 \cdot N \cdot T$ on $T$ tokens, with the active parameters; exactly $12BDLS(S + (2+E)D) + 6BSDV$ |
# | when does attention's square matter? | half of a layer at $S = 6D$, a seventh at $S = D$ |
# | what is computed twice? | hardware FLOPs: with whole blocks 8 for 6 |
# | how many days? | FLOPs / (GPUs · dense peak · MFU · 86,400) |
# | what is paid? | GPU-hours: they depend on MFU, not on how many GPUs there are |
# | writing token $t$? | $L\,(24 d^2 + 4 t d)$ with a cache |
# | MFU from a log? | FLOPs per *token* · tokens/s / (GPUs · peak); never above 1 |
#
# ## Check yourself
#
# 1. A colleague trains with LoRA: all weights of the model are frozen, small ones are added. About how many FLOPs per weight and token
#    are left of the 6?
# 2. GPT-3 was trained on texts of 2048 tokens. By how much would a training token get more expensive with 8192, all pairs counted?
# 3. A paper reports an HFU of 0.60 and recomputes all layers. What is its MFU, about?
# 4. You have 30 days and 512 A100s at an MFU of 0.45. On how many tokens can you train a 13B model?
# 5. A vocabulary grows from 50,000 to 200,000. Which model of section 4's figure feels it, and why hardly the others?
#
# <details><summary>Answers</summary>
#
# 1. About 4: forward 2, and 2 for the gradient that passes through. The 2 for the weights' own gradients are gone.
# 2. Per token and layer, scores and values grow from $4 \cdot 2048 \cdot d$ to $4 \cdot 8192 \cdot d$ beside $24 d^2$ with
#    $d = 12{,}288$: from 2.8 to 11.1 per cent of the matrices. So 8 % more.
# 3. About 0.45, six eighths of it.
# 4. $30 \cdot 86{,}400 \cdot 512 \cdot 312 \cdot 10^{12} \cdot 0.45 / (6 \cdot 13 \cdot 10^9)$ = 2.4 trillion tokens.
# 5. GPT-2: its head is a quarter of the work already. The head grows with $D$, the layers with $L D^2$, so in large models it is a small
#    part.
#
# </details>
#
# ## Further reading
#
# - Kaplan et al., 2020, *Scaling laws for neural language models*, §2.1 and table 1.
# - Hoffmann et al., 2022, *Training compute-optimal large language models*, appendix F.
# - Chowdhery et al., 2022, *PaLM*, appendix B: what MFU is, and what it is not.
# - Narayanan et al., 2021, *Efficient large-scale language model training on GPU clusters using Megatron-LM*, §5.1 and appendix: the
#   formula with recomputation.
# - Korthikanti et al., 2022, *Reducing activation recomputation in large transformer models*: model and hardware FLOPs.
# - In this package: `lmcourse/accounting/`, and `lmcourse account --model llama-3-8b --gpu h100` on the command line.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you like.)

# %% tags=["hide-input"]
h100, a100 = find_accelerator("h100"), find_accelerator("a100")
assert (a100.peak("bf16"), h100.peak("bf16"), h100.peak("fp32")) == (312e12, 989.4e12, 67e12)
assert round(3e18 / 312e12) == 9615 and 2 * h100.peak("bf16") == 1978.8e12
assert 2 * 16_384 * 32_768 * 8192 == 8_796_093_022_208


def shares(name: str, length: int) -> tuple[float, float]:
    """The head's share of a forward pass, and the one with the embedding as a product."""
    whole = count.forward_flops(find_model(name).decoder, 1, length)
    return whole["head"] / whole.total, 2 * whole["head"] / (whole.total + whole["head"])


assert [f"{share:.0%}" for share in shares("gpt-2", 1024)] == ["27%", "43%"]
assert [f"{share:.2%}" for share in shares("gpt-3", 2048)] == ["0.34%", "0.69%"]
assert (4 * 32 + 2 * 128) / (2 * 32 + 2 * 128) == 1.2
small = find_model("gpt-2").decoder
assert counted_flops(small, 1, 64, backward=True)["backward"] == 2 * counted_flops(small, 1, 64).total
assert f"{six_n_d(count_parameters(find_model('gpt-3').config).total, 300 * 10**9):.2e}" == "3.14e+23"
assert f"{six_n_d(count_parameters(find_model('llama-3.1-405b').config).total, 156 * 10**11):.1e}" == "3.8e+25"
assert f"{six_n_d(37 * 10**9, 148 * 10**11):.1e}" == "3.3e+24" and round(3.8e25 / 3.29e24) == 12
table = kaplan_forward(find_model("gpt-3").decoder, 2048)
assert f"{table['mask'] / (table['qkv'] + table['project'] + table['feed-forward']):.1%}" == "1.4%"
assert [6 * width for width in (768, 4096, 12_288)] == [4608, 24_576, 73_728]
step = training_flops(find_model("gpt-3").decoder, 1, 2048, recompute="blocks")
assert 1.33 < step.hardware.total / step.model.total < 8 / 6
days = Cluster(h100, 1024, 0.5).days(six_n_d(70 * 10**9, 15 * 10**12))
assert round(days) == 144 and round(days / 2 * 0.5 / 0.4) == 90
hours = 6 * count_parameters(find_model("llama-7b").config).total * 1e12 / 312e12 / 3600
assert round(hours / 82_432, 2) == 0.44
gpt_days = {example.name: example.computed for example in training_examples()}
assert [round(gpt_days[f"GPT-3 on {chip} at MFU 0.4"], -2) for chip in ("A100", "H100")] == [29_100, 9200]
T, d = 2048, 4096
assert round(4 * d * T * (T + 1) / 2 / (24 * d**2 * T + 4 * d * T * (T + 1) / 2) * 100) == 4
assert [round(0.7 * 67), round(0.35 * 989.4), round(0.35 * 989.4 / (0.7 * 67))] == [47, 346, 7]
assert round(6 * 7e9 * 32 * 2048 * 1e5 / (32 * 312e12)) == 27_569
before, after = 4 * 2048 / (24 * 12_288), 4 * 8192 / (24 * 12_288)
assert [f"{before:.1%}", f"{after:.1%}", f"{(1 + after) / (1 + before) - 1:.0%}"] == ["2.8%", "11.1%", "8%"]
assert round(30 * 86_400 * 512 * 312e12 * 0.45 / (6 * 13e9) / 1e12, 1) == 2.4
