# %% [markdown]
# # 15 · FLOPs
#
# **150 min · 13 exercises · 31 points**
#
# Seventy billion parameters, fifteen trillion tokens, 1024 H100s: when will it be done? The answer is one line of arithmetic, and every number in it is a trap. By the end of this notebook you will have counted it all yourself, and torch's own counter will agree to the last digit. Then you take real logs and papers, and find out what each of them counted.
#
# **You will be able to**
#
# - count the FLOPs of a product, a model, a training step and generation, exactly;
# - say what the rule of 6·N·T leaves out, and when that matters;
# - turn FLOPs into days, GPU-hours and money, with the right peak;
# - read an MFU in a paper or a log, and say which of four conventions it follows.
#
# **You need** matrix products and `einsum` (notebook 02), the gradients of a product (03), and what a transformer is made of (12). No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run it again for the next one.

# %%
import math
import time
from itertools import pairwise

import torch

from lmcourse.accounting import flops as count
from lmcourse.accounting.accelerators import all_accelerators, find_accelerator
from lmcourse.accounting.counter import count_flops, counted_flops
from lmcourse.accounting.flop_rules import kaplan_forward, six_n_d
from lmcourse.accounting.flops import training_flops
from lmcourse.accounting.mfu import Cluster
from lmcourse.accounting.parameters import count_parameters, matmul_parameters
from lmcourse.chapters.flops import figures
from lmcourse.chapters.flops.runs import PUBLISHED, RUNS
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import all_models, find_model
from lmcourse.notebook import check, explore, hint, predict, start, your
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
# A training run takes FLOPs; a chip does FLOP/s. Divide the first by the second and you have seconds. We always write the slash of a rate.

# %%
predict("flops_or_rate")

# %% [markdown]
# Data sheets print two rates for the same number format. The larger one comes with an asterisk, *with sparsity*: it holds for matrices in which two of every four weights are zero. Training does not use it. Half of it is the *dense* rate, and that is the one to remember (NVIDIA, data sheets of 2021 and 2023):

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
# Return the FLOPs of an $m \times k$ times a $k \times n$ matrix, counted as the loop counts.
#
# Two rules for this whole notebook. Counts are exact, and a whole number may be a float. And torch can count FLOPs itself (`torch.utils.flop_counter`); the checks compare with it, and your answers do without.

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
# (Strictly, $k$ products need only $k-1$ additions, $(2k-1)\,m\,n$ in all. With $k$ in the thousands that makes no difference, and a machine starts from zero anyway.) Move the sizes. The cubes are the combinations:

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
# So we count products and nothing else, as papers do. This holds for *FLOPs*. Element-wise operations can still take much *time*, because they wait for memory (notebooks 11 and 19).

# %% [markdown]
# ## 3 · A product of any two tensors
#
# Attention is full of products with batches and heads. Do we need a new formula for each? Look at the loop of section 2 again. How often did its body run, and how often would it run if both tensors had one more axis, `b`, that stays?
#
# ### Exercise 2 · Any product  (3 points · 8 min · ●●)
#
# `pattern` is written as for einops, with names between spaces: `"b s d, d f -> b s f"`. `first` and `second` are the two shapes. Return the FLOPs. Where nothing is summed there is no matrix product: return 0. Raise `ValueError` if one name has two sizes (1 and 3 are two sizes as well), or a shape more or fewer sizes than names. (An axis that is summed is in both tensors; you need not look for others.)

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
# One rule, whether an axis stays, is summed, or belongs to both tensors:
#
# $$\text{FLOPs} = 2 \cdot \prod_{\text{every axis, once}} \text{size}$$
#
# Torch agrees:

# %%
first, second = (torch.empty(2, 4, length, 8, device="meta") for length in (5, 6))
scores = count_flops(lambda: torch.einsum("bhsd,bhtd->bhst", first, second))
print(f"b h s d, b h t d -> b h s t   torch counts {scores.total:,}   2 · 2 · 4 · 5 · 6 · 8 = {2 * 2 * 4 * 5 * 6 * 8:,}")

# %% [markdown]
# These tensors are on the *meta* device: they have shapes and no numbers. They take no memory, and all you can do with them is count.

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
# Now without the "≈". Take $B$ texts of $S$ tokens, a model of width $D$ with $L$ layers, a feed-forward layer of width $F = E \cdot D$, and a vocabulary of $V$. (These letters keep their meaning to the end. $N$ are parameters, and $T$ all tokens of a training run or of a text that is generated.) These are the weights of a layer:

# %%
explore(figures.layer_drawing, shared_keys=True, gated=True)

# %% [markdown]
# Fill in the last column for yourself, for a layer without a gate and without shared keys:
#
# | part | product | FLOPs per layer |
# | --- | --- | --- |
# | queries, keys, values | three times $(BS, D) \cdot (D, D)$ | $6\,B S D^2$ |
# | scores | every query with every key, in each of $h$ heads of width $D/h$ | ? |
# | values | every weight with every value, in each head | ? |
# | out | $(BS, D) \cdot (D, D)$ | $2\,B S D^2$ |
# | feed-forward | $(BS, D) \cdot (D, F)$, then $(BS, F) \cdot (F, D)$ | ? |
#
# At the end, once, the **head** turns each token's $D$ features into $V$ logits.

# %%
predict("head_share")

# %% [markdown]
# ### Exercise 3 · A forward pass  (3 points · 10 min · ●●)
#
# Return a dict with the FLOPs of the six parts, `"qkv"`, `"scores"`, `"values"`, `"out"`, `"ffn"` and `"head"`, of all layers together. `d_kv` is the width of all key heads together, as in the drawing; `None` means that no keys are shared. All $S^2$ pairs of tokens count, even those that a causal mask hides: that is what torch counts and most papers report.

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
# Do not believe a formula, count. Torch runs whole models on the meta device and adds up every product that is really computed, backward as well. Beside it, the package's own count from the configuration, and the rule of thumb:

# %%
counted = {}
print("model          tokens       torch counts          predicted           2·tokens·N, N with head")
for name, length in (("gpt-2", 1024), ("pythia-160m", 2048), ("llama-3.2-1b", 2048)):
    model = find_model(name).decoder
    counted[name] = counted_flops(model, 1, length, backward=True)
    forward = counted[name]["forward"]
    rule = 2 * length * matmul_parameters(model)
    print(f"{name:13} {length:7,}  {forward:17,}  {count.forward_flops(model, 1, length).total:17,}  {rule:17,} ({rule / forward - 1:+.1%})")

# %% [markdown]
# The rule leaves out scores and values: they are products of activations, and no weight stands for them. Slide the length, and watch the two oranges grow (beyond what some of these models can read; the arithmetic still holds). In which models is the head a large part?

# %%
explore(figures.flops_by_part, length=Log(128, 131072), pairs=["all", "visible"])

# %% [markdown]
# With `visible` in the figure, only pairs that the causal mask lets through count. Fused kernels skip most of the others (Dao, 2023, §3.1), so *time* is closer to that. Section 11 shows what this does to one and the same run.

# %% [markdown]
# A colleague's formula for a step has $4\,BSDV$ for the vocabulary, not $2\,BSDV$: "one product at each end of the model". What does a forward pass do at the other end?

# %%
for name, length in (("gpt-2", 1024), ("gpt-3", 2048)):
    whole = count.forward_flops(find_model(name).decoder, 1, length)
    one, two = whole["head"] / whole.total, 2 * whole["head"] / (whole.total + whole["head"])
    print(f"{name}: the head is {one:.2%} of a forward pass; with a second product of that size the two are {two:.2%}")

# %% [markdown]
# The embedding is a look-up: no product, no FLOPs. In a large model the mistake is invisible, in a small one it makes a quarter of the work look like nearly half.

# %% [markdown]
# ## 5 · The way back
#
# Two layers and a loss: $h_1 = x w_1$, $h_2 = h_1 w_2$, with $B$ rows in $x$. Forward, that is two products. And back?

# %%
predict("two_layers_back")

# %% [markdown]
# A product $z = x\,w$ has two gradients, $dw = x^\top dz$ and $dx = dz\,w^\top$, each a product itself (notebook 03). Write down their shapes. How many FLOPs does each take? And is there a gradient in the two layers above that is never used?
#
# ### Exercise 4 · The way back  (3 points · 8 min · ●●)
#
# A batch of `batch` rows passes a chain of linear layers; `widths` are the widths from input to output, so `[128, 128, 32]` are two layers. All weights are trained. Return the FLOPs of the backward pass alone. `input_grad` says whether the gradient of the input is needed, too.

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
# Both gradients take as many FLOPs as $z$ itself. So backward takes twice the forward, with one exception: the gradient of something that is not learned, and has nothing learned before it, is left out. An activation between two layers changes nothing; multiplying with $\varphi'$ is element-wise.
#
# **In real models.** What a language model reads is looked up in a table that is learned. So is the first layer's $dx$ needed? Torch has counted both passes of three models in section 4:

# %%
for name, parts in counted.items():
    print(f"{name:13} backward / forward = {parts['backward'] / parts['forward']}")

# %% [markdown]
# Twice, exactly. The ratio falls when you fine-tune: weights that are frozen have no $dw$, but the gradient still passes through them.

# %% [markdown]
# ## 6 · Six N T
#
# Forward 2, backward 4. So training a model of $N$ parameters on $T$ tokens takes
#
# $$C \approx 6 \cdot N \cdot T \quad\text{FLOPs}$$
#
# (Kaplan et al., 2020, §2.1). Papers call it $6ND$, with $D$ for the tokens, as in *data*; here $D$ is the width. It is the most useful line of this notebook. What does it give?

# %%
for name, tokens in (("gpt-3", 300e9), ("llama-3-8b", 15e12), ("llama-3.1-405b", 15.6e12)):
    N = count_parameters(find_model(name).config).total
    print(f"{name:15}  6 · {N / 1e9:6.1f}e9 · {tokens:.3g} = {six_n_d(N, int(tokens)):.2e} FLOPs")

# %% [markdown]
# Brown et al. (2020, appendix D) report 3.14e23 for GPT-3; Grattafiori et al. (2024) report 3.8e25 for the largest Llama 3.1.
#
# In a **mixture of experts** (notebook 11) $N$ are the *active* parameters: what a token does not pass costs it no FLOPs. DeepSeek-V3 has 671 billion, 37 of them active (DeepSeek-AI, 2024): on 14.8 trillion tokens that is 3.3e24 FLOPs, a twelfth of Llama 3.1 405B's.
#
# ### What is $N$?
#
# Kaplan et al. leave both ends of the model out. Their $N$ are the weights of the layers: in each of `layers` layers three matrices from `d_model` to `d_attn`, one back, and the two of a feed-forward layer of `d_ff`. Their compute is forward, per *token*. Count scores and values in it: under a causal mask a query sees half of the `context` on average.
#
# ### Exercise 5 · Size and compute  (1 point · 4 min · ●)
#
# Return Kaplan's two numbers, `[parameters, flops]`: $N$, and the forward FLOPs of a token.

# %% exercise="kaplan_total"
def kaplan_total(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[int]:
    """Non-embedding parameters and forward FLOPs per token, as Kaplan et al. (2020) count them."""
    ### BEGIN SOLUTION
    N = layers * (4 * d_model * d_attn + 2 * d_model * d_ff)
    return [N, 2 * N + 2 * layers * context * d_attn]
    ### END SOLUTION


# %% check="kaplan_total"
check(kaplan_total)
### BEGIN HIDDEN TESTS
check(kaplan_total, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# In the paper's table, the row `mask` is $2 \cdot n_{ctx} \cdot d_{attn}$ per layer. A colleague reads it as $QK^\top$ for all pairs, "with $AV$ left out". Your function has the same number. What is in it?

# %%
context, width = 2048, 1600
both = sum(4 * width * (query + 1) for query in range(context)) / context
print(f"scores and values of a token, causal mean {both:,.0f}; the table's 2·n_ctx·d {2 * context * width:,}")
gpt3 = kaplan_forward(find_model("gpt-3").decoder, 2048)
print(f"GPT-3: {gpt3['mask'] / (gpt3['qkv'] + gpt3['project'] + gpt3['feed-forward']):.1%} of 2N")

# %% [markdown]
# Both products, for the pairs that a causal mask lets through. (The paper does not say which of the two it means.) Our count of section 4, all pairs, is twice as much.
#
# ### How good is the rule?
#
# Hoffmann et al. (2022, appendix F) counted every product of their Chinchilla models and found 6·N·T close enough. Here are all decoders
# of the zoo. What $N$ is matters as much as the rule: try all three.

# %%
explore(figures.six_n_gap, length=Log(128, 131072), N=["all parameters", "layers only", "layers and head"])

# %% [markdown]
# Large models on short texts: within a few percent. Small models: the head, and attention, are too large to be left out. With "all parameters" two mistakes sometimes cancel: an embedding that is counted although it is only looked up, and scores that are not counted although they are computed.

# %% [markdown]
# ## 7 · A training step, to the last digit
#
# Add up your table of section 4, and think of the way back. What comes out are the **model FLOPs** of a step: what has to be computed, whatever the implementation does.
#
# ### Exercise 6 · Model FLOPs  (3 points · 7 min · ●●)
#
# Return the model FLOPs of a training step on `batch` texts of `length` tokens, with all pairs counted, and with the head. `expansion` is $E$.

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
# Take $D \gg S$, and $12 (2 + E) L D^2$ is six times the weights of the layers: the rule of 6·N·T is the first term, and the correction is of the order $S/D$.
#
# ### When does the square matter?

# %%
predict("as_long_as_wide")

# %% [markdown]
# "Attention is quadratic" is true and says little: what matters is how large the factor is.
#
# ### Exercise 7 · Attention's share  (2 points · 5 min · ●●)
#
# Return the share (0 to 1) of a layer's forward FLOPs that goes into scores and values. Count all pairs, and leave out the head. Then ask your function: at which $S$ is the share one half?

# %% exercise="attention_share"
def attention_share(length: int, d_model: int, expansion: int = 4) -> float:
    """Scores and values among all products of a layer: 0.25 for 8 tokens in a model of width 4."""
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
# So the crossover is at 4608 tokens for GPT-2 small, at 24,576 for a width of 4096, and at 73,728 for GPT-3. Wide models can read long texts before attention costs more than the rest.
#
# ### Computed twice
#
# To save memory, activations are often thrown away and computed again on the way back (notebooks 03 and 14). With them a step has more **hardware FLOPs** than model FLOPs. The share of the peak that becomes model FLOPs is a run's **MFU** (*model FLOPs utilisation*; Chowdhery et al., 2022, appendix B); with hardware FLOPs it is the **HFU**. Recomputing every layer is a second forward pass of everything but the head: nearly 8 in place of 6.

# %%
explore(figures.recompute_bars, model=["gpt-2", "llama-3-8b", "gpt-3"], length=Log(512, 131072))

# %% [markdown]
# The middle bar is what a fused kernel does: it never stores the scores, so its backward pass computes that one product again (Dao et al., 2022). Whether an account lists this is a choice. `lmcourse account` and notebook 14 count a fused kernel as "nothing again".

# %% [markdown]
# ## 8 · How long, and what does it cost?
#
# We can answer the question from the start. All GPUs together do
#
# $$\underbrace{\text{GPUs} \cdot \text{peak} \cdot \text{MFU}}_{\text{model FLOP/s}} \cdot \;\text{time} \;=\; 6 \cdot N \cdot T$$
#
# Three things go wrong here: the wrong format's peak, the sparse one, and a percentage in place of a share.
#
# ### Exercise 8 · The question from the start  (2 points · 5 min · ●●)
#
# 70 billion parameters, 15 trillion tokens, 1024 H100 SXM, bf16, an MFU of 0.5. How many days? Half a percent is near enough.

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
# What is paid for is hours of *one* GPU, times their number.
#
# ### Exercise 9 · The cheapest of four  (2 points · 7 min · ●●)
#
# You have a model to train on `tokens` tokens within `days`, and four offers. `offers` maps each name to `[gpus, price, peak, mfu]`: how many GPUs you may rent, dollars for one GPU-hour, dense FLOP/s of one GPU, and the MFU that you expect there. All GPUs of an offer work together, from start to end. Return `[name, dollars]` of the cheapest offer that is done in time, by 6·N·T; one that takes exactly `days` is in time. Raise `ValueError` if none is.

# %% exercise="cheapest_offer"
def cheapest_offer(
    parameters: float, tokens: float, days: float, offers: dict[str, list[float]]
) -> list[str | float]:
    """Name and bill of the cheapest offer that is done in time."""
    ### BEGIN SOLUTION
    bills = {}
    for name, (gpus, price, peak, mfu) in offers.items():
        gpu_hours = 6 * parameters * tokens / (peak * mfu) / 3600
        if gpu_hours / gpus <= 24 * days:
            bills[name] = gpu_hours * price
    if not bills:
        raise ValueError(f"no offer is done within {days} days")
    name = min(bills, key=bills.get)
    return [name, bills[name]]
    ### END SOLUTION


# %% check="cheapest_offer"
check(cheapest_offer)
### BEGIN HIDDEN TESTS
check(cheapest_offer, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# A reality check. Touvron et al. (2023, table 15) report 82,432 A100-hours for LLaMA 7B on a trillion tokens.

# %%
flops = six_n_d(count_parameters(find_model("llama-7b").config).total, 10**12)
print(f"LLaMA 7B: {flops:.2e} FLOPs in 82,432 hours of an A100 are an MFU of {flops / (82_432 * 3600 * 312e12):.2f}")

# %% [markdown]
# Here is a whole budget, with models of the zoo and GPUs of the table. It counts scores and values, too. Which costs more: ten times the tokens, or half the MFU? How many GPUs do you need to be done within a month?

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
# Prices change by the month; slide to yours. The other way round, your days and GPUs pay for
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
# GPT-4 is drawn differently, because 2e25 is a guess from outside. OPT read its corpus of 180 billion tokens more than once, 300 billion tokens in all.

# %% [markdown]
# ## 9 · Generation
#
# Reading is one pass over all tokens. Generation is a pass *per token*: each needs the one before. With a KV cache (notebooks 08 and 17) only the newest token passes the matrices, and its query meets all keys so far. Without one, every pass reads everything again.

# %%
predict("writing_a_text")

# %% [markdown]
# ### Exercise 10 · Token by token  (3 points · 9 min · ●●●)
#
# A model of `layers` layers, width `d_model`, feed-forward layers of $4d$ (not gated) and its own keys for every head reads a prompt and generates `new` tokens. Return the FLOPs.
#
# - The first pass reads the whole prompt and gives the first new token. Every later pass reads the token that the pass before gave. The last token is never read. With `new` = 0 there is no pass.
# - A token that is read sees itself. All pairs of a pass count.
# - Logits are only needed for the *last* token of each pass.
# - Without `cache`, every pass reads the prompt and all new tokens so far.

# %% exercise="generation_flops"
def generation_flops(prompt: int, new: int, layers: int, d_model: int, vocab_size: int, cache: bool = True) -> int:
    """FLOPs of reading a prompt and generating new tokens after it."""
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
# With a cache, step $t$ takes $24\,d^2 + 4\,t\,d$ FLOPs per layer. Over a text of $T$ tokens:
#
# $$\sum_{t=1}^{T} L\,\big(24\,d^2 + 4\,t\,d\big) \;\approx\; L\,\big(24\,T d^2 + 2\,T^2 d\big).$$
#
# Slide the length. With a cache, from which length on does attention take as much as the matrices? And how does the work grow without one?

# %%
explore(figures.generation_cost, d_model=Log(256, 16384), tokens=Log(128, 131072))

# %% [markdown]
# The crossover is the old one: at $t = 6d$ a new token pays as much for looking back as for everything else. (The whole text has paid as much at $T = 12d$.) Without a cache the work grows with the square from the start.
#
# **In real models.** A step with a cache uses every weight once for a single token, so the GPU spends its time fetching weights. What bounds the *time* depends on how many FLOPs there are per byte that is moved (notebooks 17 and 19):

# %%
weights = matmul_parameters(find_model("llama-3-8b").decoder)
chip = find_accelerator("h100")
print(f"token 2048 of Llama 3 8B, H100, at best: without a cache {2 * weights * 2048 / chip.peak('bf16') * 1000:.1f} ms of arithmetic,")
print(f"with one {2 * weights / chip.peak('bf16') * 1000:.3f} ms of arithmetic and {2 * weights / chip.bandwidth * 1000:.1f} ms to fetch the weights")

# %% [markdown]
# A new chip has four times the peak and the same memory. Which of these six products does it help? Decide, then move `faster`.

# %%
explore(figures.products_on_the_roof, accelerator=["a100-sxm-80gb", "h100-sxm", "b200"], faster=(1.0, 8.0, 1.0))

# %% [markdown]
# Only products under the flat roof, and only until they reach the slope. In training and prefill the scores are on the slope because they are written to memory; a fused kernel, which keeps them on the chip, moves them to the right. In decoding all keys and values are read for a single query, and no kernel changes that.

# %% [markdown]
# ## 10 · How much of the peak?
#
# An MFU needs a rate and a peak. First the rate: how many GFLOP/s of fp32 products does the processor do that runs this notebook? Change the guess, then run the cell.

# %% tags=["nbval-ignore-output", "because it shows a rate"]
my_guess = 100  # GFLOP/s


def seconds_per_run(run, warm_up: int = 2, runs: int = 5) -> float:
    """Warm up, then return the median of several runs. (On a GPU, synchronise before each look at the clock.)"""
    times = []
    for number in range(warm_up + runs):
        begin = time.perf_counter()
        run()
        if number >= warm_up:
            times.append(time.perf_counter() - begin)
    return sorted(times)[runs // 2]


a, b = torch.randn(2, 512, 512)
rate = 2 * 512**3 / seconds_per_run(lambda: a @ b)
print(f"guessed {my_guess} GFLOP/s, measured {rate / 1e9:.3g}; an H100 is rated at {chip.peak('fp32') / 1e9:,.0f} in fp32")

# %% [markdown]
# Notebook 19 measures with care. Now a rate against a peak:

# %%
predict("which_is_faster")

# %% [markdown]
# One and the same rate, against every peak of the data sheet. Which of these shares would you notice to be wrong?

# %%
explore(figures.utilisation_by_peak, tflops=(10, 1200, 10), accelerator=["a100-sxm-80gb", "h100-sxm", "rtx-4090"])

# %% [markdown]
# A bf16 rate divided by the fp32 peak gives more than 100 %, and you notice. Divided by the sparse peak it gives half of the truth, and that looks plausible.
#
# > **Spot the slip.** Logs of training runs print tokens per second, $\tau$. With $C$ the model FLOPs of a step on $B$ texts of $S$ tokens, a colleague computes $\text{MFU} = C \cdot \tau / (\text{GPUs} \cdot \text{peak})$. For a 7B model at $10^5$ tokens per second on 32 A100s, in batches of 32 texts of 2048 tokens, she finds an MFU of 27,569. Where is the mistake?
#
# ### Exercise 11 · MFU  (2 points · 5 min · ●●)
#
# Return MFU as a share. `tokens_per_second` is of all GPUs together, and above 0; `peak` is that of one GPU. If the share is above 1, something was counted wrongly: raise `ValueError`.

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
# ## 11 · Which MFU is it?
#
# In May 2024 a program in C and CUDA trained GPT-2 small again on one A100, and its log was published (Karpathy, *llm.c*, discussion 481). Each line is a step of 524,288 tokens:
#
# ```text
# step 80/18865 | ... | 2950.68 ms | 49.0% A100 fp16 MFU
# ```
#
# Is that much? A week later the program's formula was changed, and the same 2950.68 ms would print 45.8 %. By 6·N·T it is 42.5 %. None of these is a mistake: they are **conventions**. Four are in use:
#
# | convention | counts for a token |
# | --- | --- |
# | `6N` | six FLOPs for each of $N$ parameters |
# | `all pairs` | and scores and values, forward and backward, with every query meeting all $S$ keys of its text (PaLM's formula) |
# | `causal` | the same with half of the keys |
# | `hardware` | `all pairs`, and what is computed a second time |
#
# ### Exercise 12 · One run, four shares  (4 points · 15 min · ●●●)
#
# Return a dict with the shares of the peak (0 to 1) under these four names.
#
# - `parameters` is $N$ as a paper gives it. It contains the head's `vocab_size` × `d_model` weights.
# - `d_attn` is the width of all query heads of a layer together. Not every model has `d_attn` = `d_model`.
# - `tokens_per_second` is of all devices together, `peak` the FLOP/s of one.
# - `recompute` says what is computed a second time: `"nothing"`; `"scores"`, which means both products, scores and values; or `"blocks"`, which means the forward pass of everything but the head.
# - If any of the four shares is above 1, raise `ValueError`.

# %% exercise="four_shares"
def four_shares(
    layers: int,
    d_model: int,
    d_attn: int,
    vocab_size: int,
    parameters: int,
    context: int,
    tokens_per_second: float,
    devices: int,
    peak: float,
    recompute: str,
) -> dict[str, float]:
    """The shares of the peak of a run under four conventions: "6N", "all pairs", "causal" and "hardware"."""
    ### BEGIN SOLUTION
    pairs = 4 * layers * d_attn * context  # forward
    again = {"nothing": 0, "scores": pairs, "blocks": 2 * (parameters - vocab_size * d_model) + pairs}
    model = 6 * parameters + 3 * pairs
    flops = {
        "6N": 6 * parameters,
        "all pairs": model,
        "causal": model - 3 * pairs / 2,
        "hardware": model + again[recompute],
    }
    shares = {name: count * tokens_per_second / (devices * peak) for name, count in flops.items()}
    if max(shares.values()) > 1:
        raise ValueError(f"{max(shares.values()):.0%} of the peak cannot be")
    return shares
    ### END SOLUTION


# %% check="four_shares"
check(four_shares)
### BEGIN HIDDEN TESTS
check(four_shares, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now real runs. `RUNS` holds what `four_shares` needs of each, from papers and logs: PaLM on 6144 TPU v4 (Chowdhery et al., 2022, table 3), LLaMA 65B on 2048 A100s (Touvron et al., 2023, §2.4), the log line above, a 175B model on 64 A100s with two ways of recomputing (Korthikanti et al., 2022, table 5), GPT-3 on 10,000 V100s (Patterson et al., 2021) and OPT-175B on 1024 A100s (closing note of its team, January 2022). The last two publish no share but a total, 3.14e23 and "4.30E+23 FLOPs" for 300 billion tokens; the share that this amounts to is in the last column. (`recompute` is "nothing" unless the source says what was computed again. So some hardware shares come out too small: PaLM's paper gives 57.8 % for its own.)

# %%
print(f"{'':20}      6N  all pairs  causal  hardware   published")
with your("four_shares"):
    shares_of = {name: four_shares(**run) for name, run in RUNS.items()}
for name, shares in shares_of.items():
    row = "  ".join(f"{100 * share:7.1f}" for share in shares.values())
    print(f"{name:20} {row}   {f'{100 * PUBLISHED[name]:9.1f}' if name in PUBLISHED else '        –'}")

# %% [markdown]
# ### Exercise 13 · Which one did they use?  (2 points · 5 min · ●●)
#
# Give the convention of each published number: `"6N"`, `"all pairs"`, `"causal"` or `"hardware"`. Where two fit, take the first in the table. `"GPT-2 124M, later"` is the same log line with the 45.8 % of the program's later formula. (GPT-3's 3.14e23 is rounded, so its share agrees to 0.1 only.)

# %% exercise="which_convention"
which_convention = None  # a dict in place of None, with the six names below
# "GPT-3", "PaLM 540B", "GPT-2 124M", "GPT-2 124M, later", "175B, scores again", "OPT-175B"
### BEGIN SOLUTION
which_convention = {
    "GPT-3": "6N",
    "PaLM 540B": "all pairs",
    "GPT-2 124M": "all pairs",
    "GPT-2 124M, later": "causal",
    "175B, scores again": "all pairs",
    "OPT-175B": "hardware",
}
### END SOLUTION

# %% check="which_convention"
check(which_convention=which_convention)
### BEGIN HIDDEN TESTS
check(which_convention=which_convention, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# LLaMA's paper gives a speed and no MFU; by 6·N·T it is 47.7 %. Beside PaLM's published 46.2 % that looks like 1.5 more. Counted in the same way, the distance is larger: 49.7 and 46.2 by PaLM's formula, 47.7 and 45.7 by 6·N·T.
#
# OPT's total is 37 % more than 6·N·T. It is what the GPUs compute if every block goes forward twice:

# %%
opt, tokens = RUNS["OPT-175B"], 300e9
pairs = opt["layers"] * opt["d_attn"] * opt["context"]
print(f"OPT-175B: 6NT = {6 * opt['parameters'] * tokens:.2e}   8NT + 16·L·d·S·T = {(8 * opt['parameters'] + 16 * pairs) * tokens:.2e}")

# %% [markdown]
# ### What MFU is for
#
# Korthikanti et al. trained the same 175B model on the same 64 GPUs twice. The step that recomputes all blocks takes 18.13 s, the step that recomputes only scores and values 13.75 s.

# %%
predict("recompute_less")

# %%
for name in ("175B, blocks again", "175B, scores again"):
    shares = shares_of[name]
    print(f"{name}: MFU (all pairs) {100 * shares['all pairs']:.1f} %, HFU {100 * shares['hardware']:.1f} %")

# %% [markdown]
# HFU asks how busy the machine is, MFU how fast you get where you want to go. A run that computes everything twice has a fine HFU.
#
# One number is left. For the second run your function gives an HFU of 51.8 %. The paper prints 52.8 %.

# %%
predict("their_factor")

# %%
for size, layers, d_model, texts, seconds, printed in (
    ("22B", 48, 6144, 4, 1.10, 43.7),
    ("175B", 96, 12_288, 64, 13.75, 52.8),
    ("530B", 105, 20_480, 280, 37.83, 57.0),
    ("1T", 128, 25_600, 512, 71.49, 57.0),
):
    gpus = max(8, texts)
    matrices = 6 * (12 * layers * d_model**2 + 51_200 * d_model)
    pairs = 12 * layers * d_model * 2048
    found = [100 * (matrices + factor * pairs) * texts * 2048 / seconds / (gpus * 312e12) for factor in (1, 4 / 3, 2)]
    print(f"{size:5} MFU {found[0]:.1f}   HFU with 4/3 {found[1]:.1f}, with 2 {found[2]:.1f}   printed {printed}")

# %% [markdown]
# All four of the paper's models agree with a factor of 2 (the first within the rounding of its 1.10 s): for the HFU, scores and values are counted as if their recomputation were a whole training step. You have found what looks like a slip in a paper, from the paper's own table.
#
# **In real models.** Chowdhery et al. (2022, table 3) give 21.3 % for GPT-3, 32.5 % for Gopher and 30.2 % for Megatron-Turing NLG, all in PaLM's convention. Llama 3 405B reached 38 to 43 % on up to 16,384 H100s (Grattafiori et al., 2024, table 4). If your own number is far above these, look for a mistake. If it is far below, there is something to gain, and notebook 19 shows where. Whichever you report, write the formula beside it.

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what does a product take? | $2mkn$; in general 2 times the product of all axes, each once |
# | a forward pass? | $2 \cdot \text{tokens} \cdot N$, and $4\,B S^2 D$ per layer for scores and values |
# | a backward pass? | twice the forward; less only if an input needs no gradient |
# | training? | $6 \cdot N \cdot T$ on $T$ tokens, with the active parameters; exactly $12BDLS(S + (2+E)D) + 6BSDV$ |
# | when does attention's square matter? | half of a layer at $S = 6D$, a seventh at $S = D$ |
# | what is computed twice? | hardware FLOPs: with whole blocks nearly 8 for 6 |
# | how many days? | FLOPs / (GPUs · dense peak · MFU · 86,400) |
# | what is paid? | GPU-hours: they depend on MFU, not on how many GPUs there are |
# | token $t$ of a text that is generated? | $L\,(24 d^2 + 4 t d)$ with a cache |
# | MFU from a log? | FLOPs per *token* · tokens/s / (GPUs · peak); never above 1 |
# | whose MFU? | 6N, all pairs, causal or hardware: one run had 42.5, 49.0 and 45.8 |
#
# ## Check yourself
#
# 1. A colleague trains with LoRA: all weights of the model are frozen, small ones are added. About how many FLOPs per weight and token
#    are left of the 6?
# 2. GPT-3 was trained on texts of 2048 tokens. By how much would a training token get more expensive with 8192, all pairs counted?
# 3. A paper reports an HFU of 0.60 and recomputes all blocks. What is its MFU, about?
# 4. You have 30 days and 512 A100s at an MFU of 0.45. On how many tokens can you train a 13B model?
# 5. A vocabulary grows from 50,000 to 200,000. Which model of section 4's figure gets much more expensive, and why do the others not?
# 6. A log prints an MFU of 55 % for a context of 32,768 tokens; with 2048 tokens the same program printed 48 %. Is it faster now?
#
# <details><summary>Answers</summary>
#
# 1. About 4: forward 2, and 2 for the gradient that passes through. The 2 for the weights' own gradients are gone.
# 2. Per token and layer, scores and values grow from $4 \cdot 2048 \cdot d$ to $4 \cdot 8192 \cdot d$ beside $24 d^2$ with
#    $d = 12{,}288$: from 2.8 to 11.1 % of the matrices. So 8 % more.
# 3. About 0.45, six eighths of it.
# 4. $30 \cdot 86{,}400 \cdot 512 \cdot 312 \cdot 10^{12} \cdot 0.45 / (6 \cdot 13 \cdot 10^9)$ = 2.4 trillion tokens.
# 5. GPT-2: its head is a quarter of the work already. The head grows with $D$, the layers with $L D^2$, so in large models it is a small part.
# 6. Perhaps not. With all pairs counted, scores and values are a larger part of the FLOPs, and a causal kernel skips half of them. Ask for the tokens per second.
#
# </details>
#
# ## Further reading
#
# - Kaplan et al., 2020, *Scaling laws for neural language models*, §2.1 and table 1.
# - Hoffmann et al., 2022, *Training compute-optimal large language models*, appendix F.
# - Chowdhery et al., 2022, *PaLM*, appendix B: where MFU was defined.
# - Narayanan et al., 2021, *Efficient large-scale language model training on GPU clusters using Megatron-LM*, §5.1 and appendix: the
#   formula with recomputation.
# - Korthikanti et al., 2022, *Reducing activation recomputation in large transformer models*: table 5, and the appendix on FLOPs.
# - Zhang et al., 2022, *175B training run completed*, in the logbook of OPT: 33 days, and 90 restarts.
# - In this package: `lmcourse/accounting/`, and `lmcourse account --model llama-3-8b --gpu h100` on the command line.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you like.)

# %% tags=["hide-input"]
h100, a100 = find_accelerator("h100"), find_accelerator("a100")
assert (a100.peak("bf16"), h100.peak("bf16"), h100.peak("fp32")) == (312e12, 989.4e12, 67e12)
assert round(3e18 / 312e12) == 9615
assert 2 * 16_384 * 32_768 * 8192 == 8_796_093_022_208


def head_shares(name: str, length: int) -> tuple[float, float]:
    """The head's share of a forward pass, and the one with the embedding as a product."""
    whole = count.forward_flops(find_model(name).decoder, 1, length)
    return whole["head"] / whole.total, 2 * whole["head"] / (whole.total + whole["head"])


assert [f"{share:.0%}" for share in head_shares("gpt-2", 1024)] == ["27%", "43%"]
assert (4 * 32 + 2 * 128) / (2 * 32 + 2 * 128) == 1.2
assert [parts["backward"] / parts["forward"] for parts in counted.values()] == [2, 2, 2]
assert f"{six_n_d(count_parameters(find_model('gpt-3').config).total, 300 * 10**9):.2e}" == "3.14e+23"
assert f"{six_n_d(count_parameters(find_model('llama-3.1-405b').config).total, 156 * 10**11):.1e}" == "3.8e+25"
assert f"{six_n_d(37 * 10**9, 148 * 10**11):.1e}" == "3.3e+24" and round(3.8e25 / 3.29e24) == 12
assert [6 * width for width in (768, 4096, 12_288)] == [4608, 24_576, 73_728]
step = training_flops(find_model("gpt-3").decoder, 1, 2048, recompute="blocks")
assert 1.33 < step.hardware.total / step.model.total < 8 / 6
assert 60 / 2 * 0.5 / 0.4 == 37.5
T, d = 2048, 4096
assert round(4 * d * T * (T + 1) / 2 / (24 * d**2 * T + 4 * d * T * (T + 1) / 2) * 100) == 4
assert [round(0.7 * 67), round(0.35 * 989.4), round(0.35 * 989.4 / (0.7 * 67))] == [47, 346, 7]
assert round(6 * 7e9 * 32 * 2048 * 1e5 / (32 * 312e12)) == 27_569
shown = {name: {key: round(100 * share, 1) for key, share in shares.items()} for name, shares in shares_of.items()}
assert list(shown["GPT-2 124M"].values()) == [42.5, 49.0, 45.8, 49.0]
assert (shown["PaLM 540B"]["6N"], shown["PaLM 540B"]["all pairs"]) == (45.7, 46.2)
assert (shown["LLaMA 65B"]["6N"], shown["LLaMA 65B"]["all pairs"]) == (47.7, 49.7)
assert [shown[f"175B, {what} again"]["hardware"] for what in ("blocks", "scores")] == [51.9, 51.8]
assert [shown[f"175B, {what} again"]["all pairs"] for what in ("blocks", "scores")] == [39.0, 51.4]
assert shown["OPT-175B"]["hardware"] == round(100 * PUBLISHED["OPT-175B"], 1) == 47.2
assert round(6 * 124_475_904 * 524_288 / 2.95068 / 312e12, 3) == 0.425
assert round(4.30e23 / (6 * RUNS["OPT-175B"]["parameters"] * 300e9) - 1, 2) == 0.37
before, after = 4 * 2048 / (24 * 12_288), 4 * 8192 / (24 * 12_288)
assert [f"{before:.1%}", f"{after:.1%}", f"{(1 + after) / (1 + before) - 1:.0%}"] == ["2.8%", "11.1%", "8%"]
assert round(30 * 86_400 * 512 * 312e12 * 0.45 / (6 * 13e9) / 1e12, 1) == 2.4
