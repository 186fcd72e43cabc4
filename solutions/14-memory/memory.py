# %% [markdown]
# # 14 · Memory
#
# **120 min · 10 exercises · 26 points**
#
# GPT-3 has 175 billion parameters. In 16 bits they take 325 GiB, and five cards of 80 GiB can hold them. Training it on
# one single text takes 3,183 GiB: forty cards. What is all the rest? And how would you have known, before renting the
# first card?
#
# **You will be able to**
#
# - predict what a model takes to train, part by part, and the largest model or batch that a card can hold;
# - say what autograd keeps of a forward pass, to the byte, and prove it with hooks;
# - tell what precision, recomputation and more cards do to each part, and find the slips in other people's figures.
#
# **You need** the transformer's parts (notebooks 08 to 12) and what a backward pass is (03). No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run
# it again for the next one.

# %%
from collections import Counter
from functools import partial

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from lmcourse.accounting.activation_rules import (
    activation_bytes_by_layer_kind,
    break_even_batch,
    korthikanti,
    rule_errors,
)
from lmcourse.accounting.memory import training_memory
from lmcourse.accounting.parallel import Layout
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.accounting.saved import saved_tensors
from lmcourse.accounting.worked_examples import activation_examples, state_examples
from lmcourse.chapters.memory import figures
from lmcourse.models.zoo import find_model
from lmcourse.notebook import check, explore, hint, predict, start
from lmcourse.widgets import Log

start("14-memory")

# %% [markdown]
# ## 1 · Four things to keep
#
# What must be in memory at the moment when a training step needs most? Four things, and you can find them by asking who
# will still want to read what:
#
# | what | who reads it | depends on |
# | --- | --- | --- |
# | **parameters** | every forward and backward pass | the model |
# | **gradients**, one per parameter | the optimiser | the model |
# | **optimiser state**, such as Adam's two moments | the next step | the model, the optimiser |
# | **activations**: what the forward pass leaves behind | the backward pass | the model *and the batch* |
#
# The first three are called the **states**: they stay from step to step, whatever you feed the model. Activations come
# and go with each batch.
#
# Start with a model small enough to count on your fingers. Two linear layers of $4 \times 4$ and a last one of
# $4 \times 1$, no biases: $2 \cdot 16 + 4 = 36$ parameters. Two examples go in, and each of the two layers leaves
# $2 \cdot 4 = 8$ numbers, 16 activations. The optimiser is AdaGrad, which keeps one number for each parameter.

# %%
predict("linear_model_memory")

# %%
model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False), nn.Linear(4, 1, bias=False))
optimiser = torch.optim.Adagrad(model.parameters())
x = torch.ones(2, 4)
kept = saved_tensors(lambda: model(x).mean(), model, without=[x])
model(x).mean().backward()
optimiser.step()

measured = {
    "parameters": sum(w.nbytes for w in model.parameters()),
    "gradients": sum(w.grad.nbytes for w in model.parameters()),
    "optimiser": sum(state["sum"].nbytes for state in optimiser.state.values()),
    "activations": kept.total,
}
print(measured, "→", sum(measured.values()), "bytes")

# %% [markdown]
# > **Spot the slip.** `4 * num_parameters + num_activations + num_gradients + num_optimizer_states` makes 232. The 4 is
# > meant for every term. One pair of brackets, and the answer is off by more than half. So we will write every count as
# > *numbers × bytes per number*, term by term.
#
# These letters are used all through the notebook:
#
# | | | | |
# | --- | --- | --- | --- |
# | $N$ | parameters | $B$ | texts in a batch |
# | $L$ | layers | $S$ | tokens of a text |
# | $D$ | width of the model | $p$ | bytes per number |
# | $A$ | heads | $E$ | $d_\text{ff} / D$, usually 4 |
# | $V$ | vocabulary | $T$ | devices that share every matrix |
#
# ## 2 · How many parameters?
#
# The states are so many bytes per parameter, so the first question is how many there are. Nothing has to be built for
# that: every matrix has its shape in the configuration.
#
# By hand, for one layer of a model like GPT-2 with $D = 4$, two heads, $d_\text{ff} = 16$, a vocabulary of 10 and 8
# positions:
#
# | part | shapes | numbers |
# | --- | --- | --- |
# | embedding, positions | $10 \times 4$, $8 \times 4$ | 72 |
# | q, k, v, output | four of $4 \times 4$, biases of 4 | 80 |
# | up, down | $4 \times 16$ and $16 \times 4$, biases of 16 and 4 | 148 |
# | two norms, and a last one | scale and shift of 4 each | 24 |
# | head | the embedding once more (*tied*) | 0 |
#
# Together 324. For wide models one term wins: $q, k, v$ and output have $4D^2$, up and down $8D^2$, so a layer has
# about $12 D^2$ and the model $12\,L\,D^2$: parameters grow as $O(L D^2)$, with depth once, with width twice.
#
# ### Exercise 1 · Count the parameters  (3 points · 10 min · ●●)
#
# `config` is a dict with `layers`, `d_model`, `heads`, `kv_heads` (key and value heads, each as wide as a query head),
# `d_ff`, `vocab_size`, `positions` (learned ones; 0 if there are none), `gated` (a third matrix in the feed-forward
# layer), `biases` and `tied`. With `biases`, every matrix but the embedding and the head has a bias and every norm a
# scale and a shift; without, a norm has a scale only. Each layer has two norms, and one more comes after the last.

# %% exercise="parameter_count"
def parameter_count(config: dict) -> int:
    """The parameters of a model: 324 for the one in the table."""
    ### BEGIN SOLUTION
    d, d_ff, biases = config["d_model"], config["d_ff"], config["biases"]
    kv, inner = d // config["heads"] * config["kv_heads"], 2 if config["gated"] else 1
    norm = 2 * d if biases else d
    layer = 2 * d * d + 2 * d * kv + (inner + 1) * d * d_ff + 2 * norm
    if biases:
        layer += (d + 2 * kv + d) + (inner * d_ff + d)
    ends = config["vocab_size"] * d * (1 if config["tied"] else 2) + config["positions"] * d
    return config["layers"] * layer + norm + ends
    ### END SOLUTION


# %% check="parameter_count"
check(parameter_count)
### BEGIN HIDDEN TESTS
check(parameter_count, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# How far does the rule of thumb carry?

# %%
for name in ("gpt-2", "gpt-3", "llama-3-8b", "llama-3.1-405b"):
    config = find_model(name).decoder
    count, rule = count_parameters(config).total, 12 * len(config.layers) * config.d_model**2
    print(f"{name:<15} {count:>15,} parameters   12·L·D² is {rule / count:6.1%} of them")

# %% [markdown]
# In a small model the embedding is a third of everything. In GPT-3 it is 0.35 %, and $12LD^2$ is all you need. Llama's layers have a gate (more) and shared key heads (fewer), so for them the rule is only a
# guess. (For the 405B both changes happen to cancel.)

# %% [markdown]
# ## 3 · What every parameter brings along
#
# In **fp32** with Adam: 4 bytes for the parameter, 4 for its gradient, $2 \cdot 4$ for the two moments (Kingma and Ba,
# 2015). So $4N + 4N + 8N = 16N$. Some notes call this the *4P rule*: four numbers of 4 bytes for each of $P$
# parameters. See it in torch:

# %%
layer = nn.Linear(1000, 1000, bias=False)
optimiser = torch.optim.AdamW(layer.parameters())
layer(torch.ones(1, 1000)).sum().backward()
optimiser.step()

moments = [t for t in optimiser.state[layer.weight].values() if t.shape == layer.weight.shape]
for part, tensors in (("weights", [layer.weight]), ("gradients", [layer.weight.grad]), ("moments", moments)):
    print(f"{part:<10} {sum(t.nbytes for t in tensors) / layer.weight.numel():g} bytes per parameter")

# %% [markdown]
# **Mixed precision** multiplies in 16 bits (notebook 13). One might hope for half of that.

# %%
predict("mixed_states")

# %% [markdown]
# Small updates vanish in 16 bits (notebook 01), so an fp32 copy of the weights stays, the **master weights**. The
# optimiser owns it, together with both moments:
#
# $$\underbrace{2N}_{\text{weights, 16 bits}} + \underbrace{4N}_{\text{gradients, fp32}} + \underbrace{4N + 8N}_{\text{master weights, moments}} = 18N.$$
#
# The optimiser is six times as large as the model. Trainers that keep gradients in 16 bits as well arrive at $16N$
# (Rajbhandari et al., 2020, §3.1); we sum gradients in fp32 and count 18.
#
# ### Exercise 2 · Bytes of the states  (2 points · 5 min · ●)
#
# Return a dict with the bytes of `weights`, `gradients` and `optimiser` for a `precision` of `"fp32"`, `"mixed"` (as
# above) or `"inference"`: a model in 16 bits that only writes. Raise `ValueError` for any other word.

# %% exercise="state_bytes"
def state_bytes(parameters: int, precision: str) -> dict[str, int]:
    """Bytes that stay from step to step: 4, 4 and 8 for one parameter in fp32."""
    ### BEGIN SOLUTION
    sizes = {"fp32": (4, 4, 8), "mixed": (2, 4, 12), "inference": (2, 0, 0)}
    if precision not in sizes:
        raise ValueError(f"precision is one of {', '.join(sizes)}, not {precision!r}")
    weights, gradients, optimiser = sizes[precision]
    return {"weights": weights * parameters, "gradients": gradients * parameters, "optimiser": optimiser * parameters}
    ### END SOLUTION


# %% check="state_bytes"
check(state_bytes)
### BEGIN HIDDEN TESTS
check(state_bytes, hidden=True)
### END HIDDEN TESTS

# %%
figures.memory_states()

# %% [markdown]
# **In real models.** Llama 3 was trained in bf16 with gradients summed in fp32 (Llama Team, 2024, §3.3). DeepSeek-V3
# keeps master weights and gradients in fp32, but both moments in bf16 (DeepSeek-AI, 2024, §3.3), which saves 4 of the
# 18 bytes. Moments in 8 bits, with a scale for each block of 2048, train as well in the experiments of Dettmers et al.
# (2022).

# %% [markdown]
# ## 4 · How large a model fits?
#
# Turn the question round: memory divided by bytes per parameter.

# %%
predict("train_or_write")

# %% [markdown]
# That is why training costs so much more than writing, long before any arithmetic: 18 bytes per parameter in place of 2.
#
# One trap is in the unit. A **GB** is $10^9$ bytes, a **GiB** $2^{30}$, 7.4 % more. Cards are *sold* in GB and *report*
# GiB, and makers differ in what they mean. A card that says 80 GB holds 80 GiB in the course's table; the exercise
# takes the word literally: $80 \cdot 10^9$.
#
# ### Exercise 3 · The largest model  (2 points · 4 min · ●)
#
# `devices` cards of `gigabytes` GB ($10^9$ bytes) each share one model and no activations. How many parameters can it
# have, at most? Precisions as in `state_bytes`, which you may use.

# %% exercise="largest_model"
def largest_model(gigabytes: int, devices: int, precision: str) -> int:
    """How many parameters fit: 40,000,000,000 into 8 cards of 80 GB, in fp32."""
    ### BEGIN SOLUTION
    per_parameter = sum(state_bytes(1, precision).values())
    return gigabytes * devices * 10**9 // per_parameter
    ### END SOLUTION


# %% check="largest_model"
check(largest_model)
### BEGIN HIDDEN TESTS
check(largest_model, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# For eight cards of 80 GB and AdamW one often reads $640 \cdot 10^9 / 16$, 40 billion parameters. That is right, in fp32.
# In mixed precision it is fewer, 35.6 billion. All these are upper limits, with no byte left for a single activation.

# %%
explore(figures.memory_fits, card=["rtx-4090", "a100-sxm-40gb", "h100-sxm", "h200", "b200", "mi300x"], cards=Log(1, 64))

# %% [markdown]
# ## 5 · What does a backward pass need?
#
# Now the fourth part, the one that depends on the batch. Autograd keeps a tensor if some backward step will ask for it.
# So go operation by operation, and ask of each: which numbers stand in its derivative?

# %%
predict("keeps_nothing")

# %% [markdown]
# Take $x$ with $2 \cdot 3 \cdot 4 = 24$ numbers in fp32, 96 bytes, and ask torch (`saved_tensors` counts what autograd
# keeps, without parameters; you will write your own in section 9):

# %%
x, y = torch.ones(2, 3, 4, requires_grad=True), torch.ones(2, 3, 4, requires_grad=True)
mask, linear = torch.ones(2, 3, 4, dtype=torch.bool), nn.Linear(4, 16)
operations = {
    "x + y": (lambda: x + y, "nothing"),
    "x · y": (lambda: x * y, "both: each is the other's derivative"),
    "ReLU(x)": (lambda: x.relu(), "its result: where was it positive?"),
    "GELU(x)": (lambda: F.gelu(x), "its input"),
    "softmax(x)": (lambda: x.softmax(-1), "its result"),
    "LayerNorm(x)": (lambda: F.layer_norm(x, (4,)), "its input, and a mean and a spread per token"),
    "linear(x)": (lambda: linear(x), "its input, whatever the width of the result"),
    "x · mask": (lambda: x * mask, "the mask, one byte per number"),
}
for name, (operation, what) in operations.items():
    print(f"{name:<13} {saved_tensors(operation, linear).total:>4} bytes   {what}")

# %% [markdown]
# Two rules follow. *Sums are free*: the residual stream, however deep, keeps nothing of its own. And *a product keeps its
# input, not its result*: what a layer returns is kept only if the next operation wants it.

# %% [markdown]
# ## 6 · One attention layer
#
# Follow one token vector through attention and note each tensor that a backward step will ask for. Numbers take $p$
# bytes; **dropout** keeps a mask, which takes 1 byte per number in any precision. We count a layer as Korthikanti et
# al. (2022, §4.1) do: as many key heads as query heads, dropout on the weights and on the result, nothing fused.
#
# | operation | keeps | bytes |
# | --- | --- | --- |
# | $q, k, v = xW_q, xW_k, xW_v$ | their input, *once* for all three | $p \cdot BSD$ |
# | scores $q k^\top$ | $q$ and $k$ | $2p \cdot BSD$ |
# | softmax | its result | $p \cdot ABS^2$ |
# | dropout of the weights | a mask | $1 \cdot ABS^2$ |
# | weights $\cdot\, v$ | both factors: the weights after dropout, and $v$ | $p \cdot ABS^2 + p \cdot BSD$ |
# | output matrix | its input | $p \cdot BSD$ |
# | dropout of the result | a mask | $1 \cdot BSD$ |
#
# Two kinds of tensors: those with a number for each token and feature, $B \cdot S \cdot D$ (all heads together are as
# wide as the model), and those with a number for each head and *pair* of tokens, $A \cdot B \cdot S^2$. Dividing by
# $\sqrt{d}$ keeps nothing: its factor is a constant.
#
# ### Exercise 4 · Activations of attention  (3 points · 8 min · ●●)
#
# Add the table up: the bytes that one attention layer keeps, without its norm.

# %% exercise="attention_activations"
def attention_activations(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    """Bytes that attention keeps of B texts of S tokens: 16 for one token, one number wide, with one head."""
    ### BEGIN SOLUTION
    stream, pairs = B * S * D, A * B * S**2
    return (5 * p + 1) * stream + (2 * p + 1) * pairs
    ### END SOLUTION


# %% check="attention_activations"
check(attention_activations)
### BEGIN HIDDEN TESTS
check(attention_activations, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · One feed-forward layer, and the norms
#
# The other half is shorter. **Up** keeps its input ($D$ wide), the **non-linearity** its input and **down** its own
# ($d_\text{ff} = E \cdot D$ wide, each), and dropout a mask ($D$ wide).
#
# A **gated** layer, $\text{down}(f(\text{gate}) \odot \text{up})$, needs more. $f$ keeps its input; the product $\odot$
# keeps both of its factors; down keeps the product. That makes four hidden tensors in place of two. At equal parameters
# the hidden layer is $\tfrac83 D$ wide instead of $4D$ (notebook 11), so it is $4 \cdot \tfrac83 = 10.7$ instead of
# $2 \cdot 4 = 8$ numbers per feature: SwiGLU's better loss is paid for in memory.
#
# Each of the two **norms** keeps its input, $p \cdot BSD$, and two numbers per token, which we leave out. The sums of
# the residual stream keep nothing.
#
# ### Exercise 5 · Activations of the feed-forward layer  (2 points · 6 min · ●●)
#
# The bytes that one feed-forward layer keeps, without its norm. The hidden layer is `d_ff` wide.

# %% exercise="mlp_activations"
def mlp_activations(B: int, S: int, D: int, d_ff: int, p: int = 2, gated: bool = False) -> int:
    """Bytes that a feed-forward layer keeps of B texts of S tokens: 19 for one token with D = 1 and d_ff = 4."""
    ### BEGIN SOLUTION
    hidden = 4 if gated else 2
    return B * S * (p * D + hidden * p * d_ff + D)
    ### END SOLUTION


# %% check="mlp_activations"
check(mlp_activations)
### BEGIN HIDDEN TESTS
check(mlp_activations, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# With $d_\text{ff} = E \cdot D$ and no gate that is
#
# $$BSD\,\big(\underbrace{p}_{\text{input of up}} + \underbrace{2Ep}_{\text{two hidden tensors}} + \underbrace{1}_{\text{mask}}\big) = (2Ep + p + 1)\,BSD.$$

# %%
explore(figures.memory_saved_tensors, length=Log(256, 32768), number=["16 bits", "32 bits"], feed_forward=["GELU, 4 d", "SwiGLU, 8/3 d"])

# %% [markdown]
# At which length do the scores of GPT-3's attention outgrow everything else? And what would be left of the picture if
# nobody kept the three bars of $A \cdot S^2$?

# %% [markdown]
# ## 8 · The whole model
#
# Three parts make a layer, and $L$ layers a model:
#
# | part of a layer | keeps |
# | --- | --- |
# | attention | `attention_activations(B, S, D, A, p)` |
# | feed-forward | `mlp_activations(B, S, D, E * D, p)` |
# | two norms | their inputs |
#
# The two ends of the model are left out: we come back to the head in section 13.
#
# ### Exercise 6 · Activations of all layers  (2 points · 5 min · ●●)
#
# Return the bytes that `L` layers keep, norms included. You may use your functions from above.

# %% exercise="total_activations"
def total_activations(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    """Bytes that all layers keep: 39 for one layer, one token and one number wide."""
    ### BEGIN SOLUTION
    layer = attention_activations(B, S, D, A, p) + mlp_activations(B, S, D, E * D, p)
    norms = 2 * p * B * S * D
    return L * (layer + norms)
    ### END SOLUTION


# %% check="total_activations"
check(total_activations)
### BEGIN HIDDEN TESTS
check(total_activations, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Your sum, sorted by how it grows:
#
# $$\underbrace{2\,BLSD\,\big(p\,(E + 4) + 1\big)}_{O(BLSD)} + \underbrace{ABLS^2\,(2p + 1)}_{O(BALS^2)}$$
#
# With $E = 4$ and $p = 2$ that is $BLS\,(34\,D + 5\,AS)$, the formula you will meet most often (Korthikanti et al.,
# 2022, equation 1).
#
# > **Spot the slip.** For fp32, $p = 4$, one can read $BLS\,(66\,D + 15\,AS)$. One of these two coefficients does not
# > follow from the formula. Which? Your function knows.

# %%
predict("twice_the_length")

# %%
explore(figures.memory_growth, model=["gpt-2", "gpt-2-xl", "gpt-3-6.7b", "gpt-neox-20b", "gpt-3"], number=["16 bits", "32 bits"])

# %% [markdown]
# The two parts are equal where $34\,D = 5\,AS$, at $S = 34D/5A$: 870 tokens for GPT-3. Below, memory grows with the
# length; above, with its square. The square has a way out: **fused attention** never writes the scores down, and
# computes them anew in the backward pass (Dao et al., 2022). With it, and without dropout, all of $5\,AS$ is gone.
#
# Some count numbers instead of bytes, without masks, and find fewer of them.

# %%
predict("fourteen_or_sixteen")

# %% [markdown]
# The inputs of the two norms are the purple bars in the figure of section 7. With states and activations beside each
# other, training in fp32 takes $(48\,L D^2 + BL\,(2 A S^2 + 16\,S D)) \cdot 4$ bytes without masks. The first term is the
# 4P rule: four numbers for each of $12\,LD^2$ parameters. Divide one by the other, and you see what decides which is
# larger: parameters grow with $D^2$ and know nothing of the batch; activations grow with $B$ and $S$, and with $D$ once.

# %% [markdown]
# ## 9 · Predicted and measured
#
# Formulas for memory are easy to get wrong: a tensor forgotten, a mask counted at $p$ bytes, a product that keeps its
# result. So do not believe them, measure. Here is a block as the formulas assume it. Its dropout keeps a mask of one
# byte per number, as a GPU's does. (On a CPU `nn.Dropout` keeps its noise in the numbers' own format.)

# %%
def drop(x: Tensor) -> Tensor:
    """Dropout that keeps a mask of one byte per number."""
    return x * (torch.rand_like(x) > 0.1) / 0.9


class Block(nn.Module):
    """A block as the formulas have it: nothing fused, as many key heads as query heads."""

    def __init__(self, D: int, A: int) -> None:
        super().__init__()
        self.A = A
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def attention(self, x: Tensor) -> Tensor:
        q, k, v = (rearrange(linear(x), "b s (a d) -> b a s d", a=self.A) for linear in (self.q, self.k, self.v))
        weights = drop((q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1))
        return self.out(rearrange(weights @ v, "b a s d -> b s (a d)"))

    def forward(self, x: Tensor) -> Tensor:
        x = x + drop(self.attention(self.norm1(x)))
        return x + drop(self.down(F.gelu(self.up(self.norm2(x)))))


# %% [markdown]
# `torch.autograd.graph.saved_tensors_hooks(pack, unpack)` calls `pack(tensor)` for each tensor that autograd keeps, and
# `unpack` when the backward pass asks for it. Three things can go wrong when you add the sizes up. The same tensor may
# be kept twice, but its memory is there once. What is kept may be a *view*, and then the whole storage behind it stays
# alive. And some of what is kept are parameters, which are there anyway.
#
# ### Exercise 7 · Measure it  (4 points · 12 min · ●●●)
#
# Run `block(x)` and return how many bytes autograd keeps, by dtype: `{"torch.float32": ..., "torch.bool": ...}`. Count
# every storage once and as a whole, under the dtype of the tensor through which it was kept first. Leave out the
# block's parameters and buffers, and whatever shows a part of their storage; a copy of them is not theirs, and counts. The
# input `x` counts, if it is kept. A block that keeps nothing gives `{}`. `saved_tensors` from above is what you build
# here, so do without it.
#
# One warning: an address is given away again as soon as its tensor is gone. Hold on to what the hook hands you until you
# have counted.

# %% exercise="measured_activations"
def measured_activations(block: nn.Module, x: Tensor) -> dict[str, int]:
    """Bytes that autograd keeps of block(x), by dtype."""
    ### BEGIN SOLUTION
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        block(x)
    seen = {tensor.untyped_storage().data_ptr() for tensor in (*block.parameters(), *block.buffers())}
    sizes: Counter[str] = Counter()
    for tensor in kept:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            sizes[str(tensor.dtype)] += storage.nbytes()
    return sizes
    ### END SOLUTION


# %% check="measured_activations"
check(measured_activations)
### BEGIN HIDDEN TESTS
check(measured_activations, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now compare, with the course's own counter (yours should say the same). Two texts of 48 tokens, width 64, four heads:

# %%
B, S, D, A = 2, 48, 64, 4
for dtype, formula in ((torch.float32, B * S * (66 * D + 9 * A * S)), (torch.bfloat16, B * S * (34 * D + 5 * A * S))):
    block, x = Block(D, A).to(dtype), torch.ones(B, S, D, dtype=dtype, requires_grad=True)
    measured = saved_tensors(partial(block, x), block)
    statistics = sum(tensor.size for tensor in measured if tensor.shape == (B, S, 1))
    print(f"{dtype}: measured {measured.total:,} bytes, of them {statistics:,} statistics of the norms; formula {formula:,}")
print(f"with 15·A·S in fp32 it would be {B * S * (66 * D + 15 * A * S):,}")

# %% [markdown]
# Predicted equals measured, but for the mean and spread that each norm keeps per token. The 15 is refuted. And do the
# powers hold? Make the text four times as long, again and again, and see by how much the measured bytes grow:

# %%
block, before = Block(64, 4), 0
for S in (8, 32, 128, 512, 2048):
    x = torch.ones(1, S, 64, requires_grad=True)
    bytes_kept = saved_tensors(partial(block, x), block).total
    growth = f"   × {bytes_kept / before:.1f} for four times the length" if before else ""
    print(f"S = {S:>4}: {bytes_kept:>11,} bytes{growth}")
    before = bytes_kept

# %% [markdown]
# From near 4 towards 16: from $S$ to $S^2$, as the formula says.
#
# **In real models.** Few are built just as the formula assumes. Here it is beside what PyTorch's CPU kernels keep of the
# blocks of real configurations, in bf16 and with unfused attention, 1024 tokens:

# %%
for name in ("gpt-2", "gpt-3", "llama-3-8b"):
    error = rule_errors(find_model(name).decoder, 1, 1024)["Korthikanti et al., 34 + 5as/h"]
    print(f"{name:<11} BLS·(34·D + 5·A·S) is {abs(error):.0%} too {'large' if error > 0 else 'small'}")

# %% [markdown]
# Each gap has its reasons. GPT-2 has dropout, whose noise takes two bytes a number on a CPU, not one; and LayerNorm keeps
# its input in fp32. GPT-3 is counted without dropout, so that two of the three tensors of $A \cdot S^2$ are not there. In
# Llama the gate and RMSNorm add about as much as the missing dropout and the shared key heads take away: the formula is
# right by luck. Use it to think with. For a budget that has to hold, count tensors, as `lmcourse account` does.

# %% [markdown]
# ## 10 · When does mixed precision save memory?
#
# It costs 2 bytes more for each parameter, and halves the numbers among the activations. So it pays from some batch on.
# A layer's matrices have $4D^2$ parameters in attention and $2ED^2$ in the feed-forward layer.
#
# ### Exercise 8 · The break-even batch  (2 points · 6 min · ●●●)
#
# Return the batch, as a real number, at which mixed precision (18 bytes per parameter, $p = 2$) takes as much as fp32
# (16 bytes, $p = 4$), for any $E$. Count the layers' matrices only; one layer is enough. Why?

# %% exercise="min_batch_for_mixed"
def min_batch_for_mixed(D: int, A: int, S: int, E: int = 4) -> float:
    """The batch from which on mixed precision takes less memory: 0.61 for GPT-NeoX-20B and 2048 tokens."""
    ### BEGIN SOLUTION
    more = (18 - 16) * (4 + 2 * E) * D**2
    saved = total_activations(1, 1, S, D, A, E, p=4) - total_activations(1, 1, S, D, A, E, p=2)
    return more / saved
    ### END SOLUTION


# %% check="min_batch_for_mixed"
check(min_batch_for_mixed)
### BEGIN HIDDEN TESTS
check(min_batch_for_mixed, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.memory_break_even, model=["gpt-2", "gpt-2-xl", "gpt-3-6.7b", "gpt-neox-20b", "gpt-3"], length=Log(256, 16384))

# %% [markdown]
# With $E = 4$ a layer has $12D^2$ parameters, and a text saves $S\,(66D + 9AS) - S\,(34D + 5AS) = S\,(32D + 4AS)$ bytes:
#
# $$B_\text{min} = \frac{2 \cdot 12 D^2}{32\,DS + 4\,AS^2} = \frac{6D^2}{8\,DS + AS^2}$$
#
# That is 0.61 texts for GPT-NeoX-20B and 1.5 for GPT-3, at 2048 tokens: about one. With any real batch mixed precision takes less
# memory. The main reason to use it is another one: matrix products in 16 bits are many times faster.

# %% [markdown]
# ## 11 · Many devices
#
# **Tensor parallelism** cuts every matrix in $T$ parts (Shoeybi et al., 2019). Each device has $A/T$ heads and
# $d_\text{ff}/T$ hidden numbers, so the states shrink to $18N/T$. Do activations shrink as much?

# %%
predict("eight_devices")

# %% [markdown]
# Only what lies *inside* a half is divided. Before and after it, every device has the whole token vectors:
#
# | | tensors of a layer |
# | --- | --- |
# | whole on each device | inputs of two norms, inputs of both halves, two masks |
# | shared | $q, k, v$, the input of the output matrix, two hidden tensors |
# | shared, by heads | the three tensors of scores |
#
# How wide each is, and how many bytes its numbers take, you know from sections 6 and 7.
#
# ### Exercise 9 · One of T devices  (3 points · 8 min · ●●●)
#
# $T$ devices share a model of $N$ parameters in mixed precision, with $p = 2$ and $E = 4$. Return a dict with the bytes
# of `states` and `activations` on each, not rounded. Raise `ValueError` if the heads cannot be shared evenly.

# %% exercise="tensor_parallel_bytes"
def tensor_parallel_bytes(T: int, N: int, L: int, B: int, S: int, D: int, A: int) -> dict[str, float]:
    """Bytes on each of T devices that share every matrix."""
    ### BEGIN SOLUTION
    if A % T:
        raise ValueError(f"{T} devices cannot share {A} heads evenly")
    whole, shared = 10 * D, 24 * D + 5 * A * S
    return {"states": 18 * N / T, "activations": L * B * S * (whole + shared / T)}
    ### END SOLUTION


# %% check="tensor_parallel_bytes"
check(tensor_parallel_bytes)
### BEGIN HIDDEN TESTS
check(tensor_parallel_bytes, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Of the 34 bytes per token and feature 10 stay whole, 4 for the norms, 4 for the inputs of both halves and 2 for the masks;
# 24 are shared. In general, with $p$ and $E$, each device keeps
#
# $$2\,BLSD\,\Big(p\,\big(2 + \tfrac{E + 2}{T}\big) + 1\Big) + \frac{ABLS^2\,(2p + 1)}{T}.$$

# %%
explore(figures.memory_tensor_parallel, batch=Log(1, 64), length=Log(256, 8192), sequence_parallel=False)

# %% [markdown]
# Tick *sequence parallel*: norms and dropout work on each token alone, so the devices can share the tokens there, and
# the 10 becomes $10/T$ (Korthikanti et al., 2022). What it costs in traffic is the subject of notebook 18.
#
# **In real models.** Llama 3.1 405B was trained with $T = 8$, the cards of one machine; 16 groups of layers one behind
# the other; and 128 copies of all that, which share their states (Llama Team, 2024, table 4). No way of
# sharing alone would do.

# %% [markdown]
# ## 12 · GPT-3
#
# Now a case of full size: $L = 96$, $D = 12{,}288$, $A = 96$, $V = 50{,}257$, 2048 learned positions.
# $N = 12LD^2 + (V + 2048)\,D$ is 174.6 billion.
#
# > **Spot the slip.** Somebody arrives at 162 TiB for its weights, 325 TiB for gradients and 975 TiB for the optimiser. Can
# > that be? 174.6 billion times 2 bytes is 349 *billion* bytes: a third of a TiB. The unit is wrong, it must be GiB. And the
# > numbers? They are what 1, 2 and 6 bytes per parameter take, not 2, 4 and 12. A factor of 2 is missing everywhere. A check
# > like this one, in your head and to one digit, finds most slips in any budget.
#
# How large is the part of the activations in it, do you think?

# %%
predict("activations_of_gpt3")

# %% [markdown]
# ### Exercise 10 · GPT-3  (3 points · 8 min · ●●)
#
# Return the GiB of `weights`, `gradients`, `optimiser` and `activations` on each of `T` devices, in mixed precision,
# for `B` texts of `S` tokens. Everything is shared as in exercise 9, embeddings included.

# %% exercise="gpt3_case"
def gpt3_case(B: int, S: int, T: int = 1) -> dict[str, float]:
    """What GPT-3 takes to train on each of T devices, in GiB."""
    ### BEGIN SOLUTION
    L, D, A, V, positions = 96, 12_288, 96, 50_257, 2048
    N = 12 * L * D**2 + (V + positions) * D
    sizes = {"weights": 2 * N / T, "gradients": 4 * N / T, "optimiser": 12 * N / T}
    sizes["activations"] = tensor_parallel_bytes(T, N, L, B, S, D, A)["activations"]
    return {part: size / 2**30 for part, size in sizes.items()}
    ### END SOLUTION


# %% check="gpt3_case"
check(gpt3_case)
### BEGIN HIDDEN TESTS
check(gpt3_case, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.memory_gpt3, batch=Log(1, 64), devices=[1, 2, 4, 8, 16, 32])

# %% [markdown]
# Per token, GPT-3 keeps $34\,DL = 40.1$ million bytes and a share for the scores: $0.0374\,(1 + S/870)$ GiB. Beside the
# states of the blocks, 2,916 GiB, that is $0.088\,B$ at 2048 tokens. With $T = 8$ each device holds 366 GiB, and
# $0.0143\,BS + 5.4 \cdot 10^{-6}\,BS^2$ GiB of activations.

# %% [markdown]
# ## 13 · Your own budget
#
# Now you can read any budget, and change it. First: which size is worth attacking? The figure halves each, with the
# others left alone. Start at 128 tokens, and go up.

# %%
explore(figures.memory_halving, model=["gpt-2", "gpt-2-xl", "gpt-3-6.7b", "gpt-neox-20b", "gpt-3"], length=Log(128, 65536))

# %% [markdown]
# The batch always halves them; so do fewer layers. Length does better than half, because it counts twice in the scores.
# Heads count only there.
#
# Two more ways do not change the model at all. **Recomputation** (gradient checkpointing, notebook 13) keeps only the
# input of each block, $p \cdot BSD$ in place of some twenty times as much, and runs the block again when the backward
# pass arrives there: a third more arithmetic (Chen et al., 2016). **Fused attention** drops the scores.
#
# And one part that we have neglected: the **head**. The loss needs a number for every token and every word of the
# vocabulary, in fp32: $4\,BSV$ bytes. For Llama 3, with $V = 128{,}256$, one text of 8192 tokens makes 3.9 GiB. With what
# the head itself keeps, its input in 16 bits, these are the 4.0 GiB of logits below, more than the rest of the model keeps
# once blocks are recomputed.

# %%
llama, recipe = find_model("llama-3-8b").decoder, find_recipe("mixed-fp32-gradients")
for recompute in ("nothing", "blocks"):
    for attention in ("readable", "fused"):
        memory = training_memory(llama, 1, 8192, recipe, activation_checkpointing=recompute, attention=attention)
        told = ", ".join(f"{part} {size / 2**30:.1f} GiB" for part, size in memory if part not in recipe.memory(1).parts)
        print(f"recompute {recompute:<8} attention {attention:<9} {told}")

# %% [markdown]
# The backward pass of the loss needs two more such tensors for a moment: the gradient of the log-probabilities, and that
# of the logits. While blocks are computed anew, all three are gone already, so the larger of the two moments counts.
#
# When in a step is the memory fullest? Follow it: forward, backward, optimiser.

# %%
explore(
    figures.memory_timeline,
    model=["gpt-2", "llama-3.2-1b", "llama-3-8b", "llama-3-70b"],
    batch=Log(1, 64),
    length=Log(512, 131072),
    recompute_blocks=False,
    accumulated=False,
)

# %% [markdown]
# In the backward pass of the loss, when all layers have left their activations and the logits are there three times.
# Gradients come while activations go, so their tops do not meet, unless gradients are there already, from an earlier batch
# of the same step: tick *accumulated*.
#
# Two last ways need more cards or more time. **Copies** of a model (data parallelism) read different texts, and they need
# not all keep the same states: **ZeRO** divides the optimiser among them (stage 1), gradients too (2), weights too (3;
# Rajbhandari et al., 2020). Activations stay as they are, each copy has its own texts. And **gradient accumulation** reads
# several batches, one after the other, before the optimiser steps. Each batch's activations are gone when the next one
# comes, so the step gets as large as you like, for no more than the gradients that wait meanwhile. (The budget counts them
# in any case.)
#
# The budget puts all of it together, for models of the zoo and cards of the course's table, counted tensor by tensor as
# PyTorch keeps them. It opens with Llama 3 8B and one text of 8192 tokens on two cards, and it does not fit. Find at least
# three single changes that make it fit. Then: how many B200s does Llama 3.1 405B need for such a text, if all of them share
# every matrix?

# %%
explore(
    figures.memory_budget,
    model=["gpt-2", "smollm2-1.7b", "llama-3.2-1b", "llama-3-8b", "qwen3-32b", "llama-3-70b", "gpt-3", "llama-3.1-405b"],
    card=["rtx-4090", "a100-sxm-40gb", "a100-sxm-80gb", "h100-sxm", "h200", "b200", "mi300x"],
    precision=["fp32", "autocast", "mixed", "mixed, 16-bit gradients", "bf16", "adam-8bit", "momentum", "sgd"],
    batch=Log(1, 64),
    length=Log(512, 131072),
    devices=Log(1, 64),
    recompute_blocks=False,
    fused_attention=True,
    copies=Log(1, 64),
    zero=[0, 1, 2, 3],
    accumulate=Log(1, 64),
)

# %% [markdown]
# <details><summary>Some answers</summary>
#
# Recomputing blocks fits (74 GiB a card), and so do four cards (50), H200s (100 of 141), texts of 2048 tokens (75), and
# all in bf16 (62). Half the length does not: 4096 tokens still need 84. Nor does SGD in fp32 (81), nor a precision with
# 16 bytes per parameter (92). Llama 3.1 405B takes 64 B200s, with 119 of 180 GiB on each: 48 would have enough memory, but 48 does not divide its
# 128 heads.
#
# </details>
#
# `lmcourse account --model llama-3-8b --gpu h100 --seq-len 8192 --recipe mixed-fp32-gradients` prints such a budget on the
# command line, with FLOPs and times, which are the subject of the next notebook. (Its own "mixed" has 16-bit gradients.)
#
# ### Slips
#
# This course began with other people's notes, whose figures it computes again. You may meet them elsewhere, so here are the
# ones on memory, beside what comes out:

# %%
print(f"{'':<47} {'the notes':>15}   computed")
for found in (*state_examples(), *activation_examples()):
    print(f"{found.name:<47} {found.published:>15}   {found}")

# %% [markdown]
# Where they differ by more than rounding: a pair of brackets got lost (232 bytes), GPT-3's states are half of what they
# are and in TiB where GiB are meant, so that the share of the activations comes out about twice too large, and in fp32 the
# scores take $2p + 1 = 9$ bytes, not 15. With eight devices the notes leave the embeddings whole on each, against their
# own plan. Two more slips stand in no row: the formula of section 8, with its $L$, is called "per layer", and the one for
# $T$ devices has lost its $L$.
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what fills the memory? | weights, gradients, optimiser; and activations, which grow with the batch |
# | what does a parameter take? | 16 bytes in fp32 with Adam; 18 in mixed precision; 2 to write |
# | how many parameters? | $12\,LD^2$ and the ends; exactly, matrix by matrix |
# | what does autograd keep? | what a derivative needs: inputs of products, results of softmax, masks; nothing of sums |
# | what does a layer keep? | $BS\,(34D + 5AS)$ bytes in 16 bits; the second term goes with fused attention |
# | when does mixed precision take less? | from a batch of about one text on |
# | what do $T$ devices share? | all states, and what lies inside attention and feed-forward; 10 of 34 stay whole |
# | GB or GiB? | $10^9$ or $2^{30}$; say which |
#
# ## Check yourself
#
# 1. You swap AdamW for SGD without momentum, in fp32. What happens to the states, and what to the activations?
# 2. A layer computes `y = x + dropout(f(x))`. Who keeps `x`, if $f$ begins with a LayerNorm?
# 3. Why does a ReLU before the last matrix of a feed-forward layer cost less memory than a GELU?
# 4. A colleague finds that twice the batch takes 1.2 times the memory. What does that say about their run?
# 5. A model with 96 heads shall be shared by 64 devices. What goes wrong, and what would you do?
#
# <details><summary>Answers</summary>
#
# 1. States fall from 16 to 8 bytes per parameter: weights and gradients. The activations stay as they are; the optimiser never sees them.
# 2. The LayerNorm keeps it, as its input. The sum keeps nothing, and dropout keeps a mask only.
# 3. ReLU keeps its *result*, and that is the input of the last matrix, which is kept anyway: one tensor for both. GELU keeps its *input*, a second
#    tensor of $d_\text{ff}$ numbers per token.
# 4. With states $M$ and activations $a$ per batch, $(M + 2a) = 1.2\,(M + a)$, so $a = M/4$: a fifth of their memory is
#    activations. They can raise the batch a good deal.
# 5. 64 does not divide 96: some devices would get two heads, some one. 48 or 32 devices share evenly; use the others for
#    further copies, or cut the model between layers.
#
# </details>
#
# ## Further reading
#
# - Korthikanti et al., 2022, *Reducing activation recomputation in large transformer models*: the formulas of sections 6 to 8 and 11.
# - Rajbhandari et al., 2020, *ZeRO: memory optimizations toward training trillion parameter models*: states, and how to share them among copies.
# - Chen et al., 2016, *Training deep nets with sublinear memory cost*: recomputation.
# - Dao et al., 2022, *FlashAttention: fast and memory-efficient exact attention with IO-awareness*.
# - Micikevicius et al., 2018, *Mixed precision training*: why there are master weights.
# - In this package: `docs/accounting.md`; `lmcourse/accounting/activations/` predicts to the byte what autograd keeps of any model of the zoo.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you like.)

# %% tags=["hide-input"]
GIB, gpt3 = 2**30, find_model("gpt-3").decoder
blocks = 12 * 96 * 12_288**2
N = blocks + (50_257 + 2048) * 12_288
assert 4 * 36 + 16 + 36 + 36 == 232 and 4 * (36 + 16 + 36 + 36) == 496
assert f"{N / 1e9:.1f}" == "174.6" and f"{50_257 * 12_288 / N:.2%}" == "0.35%" and 72 + 80 + 148 + 24 == 324
assert 0.3 < 50_257 * 768 / count_parameters(find_model("gpt-2").decoder).total < 0.34
assert [round(per * N / GIB) for per in (1, 2, 4, 12, 18)] == [163, 325, 650, 1951, 2927] and 325 / 80 <= 5
assert round((18 * N + korthikanti(gpt3, 1, 2048)) / GIB) == 3183 and 3183 / 80 < 40 and round(2 * N / 1e9) == 349
assert find_recipe("fp32").per_parameter == 16 and find_recipe("mixed-fp32-gradients").per_parameter == 18
assert find_recipe("mixed").per_parameter == 16 and find_recipe("sgd").per_parameter == 8
assert round((GIB / 1e9 - 1) * 100, 1) == 7.4 and f"{80e9 / 18:.2g}" == "4.4e+09" and 80e9 / 2 == 40e9
assert round(4 * 8 / 3, 1) == 10.7 and round(34 * 12_288 / (5 * 96)) == 870
lines, squares = 34 * 12_288, 5 * 96 * 2048
assert f"{2 * (lines + 2 * squares) / (lines + squares):.1f}" == "3.4" and f"{squares / (lines + squares):.0%}" == "70%"
assert 34 * 12_288 * 96 == 40_108_032 and f"{40_108_032 / GIB:.3g}" == "0.0374"
text = korthikanti(gpt3, 1, 2048) / GIB
assert f"{text:.1f}" == "256.5" and round(18 * blocks / GIB) == 2916 and f"{text / (18 * blocks / GIB):.3f}" == "0.088"
assert 640e9 / 16 == 40e9 and f"{640e9 / 18 / 1e9:.1f}" == "35.6"
assert 11 * text < 18 * blocks / GIB < 12 * text
assert squares / 12_288 == 80 and f"{(10 + 24 / 8 + 80 / 8) / 114:.2f}" == "0.20"
assert f"{(10 + 24 / 8) * 12_288 * 96 / GIB:.3g}" == "0.0143" and f"{5 * 96 * 96 / 8 / GIB:.1e}" == "5.4e-06"
assert round(18 * N / 8 / GIB) == 366 and round((9 * blocks / 8 + 9 * (N - blocks)) / GIB) == 188
assert f"{break_even_batch(find_model('gpt-neox-20b').decoder, 2048):.2f}" == "0.61"
assert f"{break_even_batch(gpt3, 2048):.1f}" == "1.5"
logits = training_memory(find_model("llama-3-8b").decoder, 1, 8192, find_recipe("mixed-fp32-gradients"))["logits"]
assert 0 <= logits - (4 * 8192 * 128_256 + 2 * 8192 * 4096) < 100 and f"{logits / GIB:.1f}" == "4.0"
assert f"{4 * 8192 * 128_256 / GIB:.1f}" == "3.9" and (16 + 4) / 4 / 4 == 1.25 and 0.25 / 1.25 == 0.2
assert activation_bytes_by_layer_kind(gpt3, 1, 2048, width=2).total == korthikanti(gpt3, 1, 2048)


def on_each(model: str, devices: int, length: int = 8192, precision: str = "mixed-fp32-gradients", **rest: str) -> int:
    layout, config = Layout(tensor=devices), find_model(model).decoder
    return round(training_memory(config, 1, length, find_recipe(precision), layout=layout, **rest).total / GIB)


assert on_each("llama-3-8b", 2) == 100 and on_each("llama-3-8b", 2, activation_checkpointing="blocks") == 74
assert on_each("llama-3-8b", 4) == 50 and [on_each("llama-3-8b", 2, S) for S in (4096, 2048)] == [84, 75]
assert [on_each("llama-3-8b", 2, precision=name) for name in ("sgd", "mixed", "bf16")] == [81, 92, 62]
assert on_each("llama-3.1-405b", 64) == 119 and on_each("llama-3.1-405b", 48) < 180 and 128 % 48
