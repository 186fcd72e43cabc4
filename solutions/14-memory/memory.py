# %% [markdown]
# # 14 · Memory
#
# **165 min · 13 exercises · 33 points**
#
# GPT-3 has 175 billion parameters. In 16 bits they take 325 GiB, and five cards (GPUs) of 80 GiB can hold them. Training it on
# one single text takes forty cards. What is all the rest? And how would you have known, before renting the first card?
#
# **You will be able to**
#
# - predict what a model takes to train, part by part, and the largest model or batch that a card can hold;
# - say what autograd keeps of a forward pass, to the byte, and prove it with hooks;
# - measure the *peak* of a training step, which is what a card runs out at, and say what is in memory at that moment;
# - say what precision, recomputation, a loss in chunks and more cards do to each part.
#
# **You need** the transformer's parts (notebooks 08 to 12) and what a backward pass is (03). No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run
# it again for the next one.

# %%
import math
from collections import Counter
from functools import partial
from itertools import accumulate, chain

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lmcourse.accounting.activation_rules import (
    activation_bytes_by_layer_kind,
    break_even_batch,
    korthikanti,
    rule_errors,
)
from lmcourse.accounting.live import memory_events
from lmcourse.accounting.memory import training_memory
from lmcourse.accounting.parallel import Layout
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.accounting.saved import saved_tensors
from lmcourse.chapters.memory import figures
from lmcourse.models.zoo import find_model
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.widgets import Log

start("14-memory")

# %% [markdown]
# ## 1 · Four things to keep
#
# What does a training step keep in memory? Four things, and you can find them by asking which part of the program reads
# them later:
#
# | what | read by | depends on |
# | --- | --- | --- |
# | **parameters** | every forward and backward pass | the model |
# | **gradients**, one per parameter | the optimizer | the model |
# | **optimizer state**, such as Adam's two moments | the next step | the model, the optimizer |
# | **activations**: what the forward pass leaves behind | the backward pass | the model *and the batch* |
#
# The first three are called the **states**: they stay from step to step, whatever you feed the model. Activations come
# and go with each batch.
#
# Start with a model small enough to count on your fingers. Two linear layers of $4 \times 4$ and a last one of
# $4 \times 1$, no biases: $2 \cdot 16 + 4 = 36$ parameters. Two examples go in, and each of the first two layers leaves
# $2 \cdot 4 = 8$ numbers: 16 activations. The optimizer is AdaGrad, which keeps one number for each parameter.

# %%
predict("linear_model_memory")

# %%
model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False), nn.Linear(4, 1, bias=False))
optimizer = torch.optim.Adagrad(model.parameters())
x = torch.ones(2, 4)
kept = saved_tensors(lambda: model(x).mean(), model, without=[x])
model(x).mean().backward()
optimizer.step()

measured = {
    "parameters": sum(w.nbytes for w in model.parameters()),
    "gradients": sum(w.grad.nbytes for w in model.parameters()),
    "optimizer": sum(state["sum"].nbytes for state in optimizer.state.values()),
    "activations": kept.total,
}
print(measured, "→", sum(measured.values()), "bytes")

# %% [markdown]
# Every count in this notebook is written like this: *numbers × bytes per number*, term by term.
#
# These letters have the same meaning in the whole notebook:
#
# | | | | |
# | --- | --- | --- | --- |
# | $N$ | parameters | $B$ | texts in a batch |
# | $L$ | layers | $S$ | tokens of a text |
# | $D$ | width of the model | $p$ | bytes per number |
# | $A$ | heads | $E$ | $d_\text{ff} / D$, often 4 |
# | $V$ | vocabulary | $T$ | devices that share every matrix |
#
# ## 2 · How many parameters?
#
# The states take a fixed number of bytes per parameter, so the first question is how many parameters there are. You need
# not build the model for that: the configuration gives the shape of every matrix.
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
# | head | the embedding's matrix again (*tied*) | 0 |
#
# Together 324. In wide models the matrices of the layers are nearly everything: $q, k, v$ and output have $4D^2$ numbers, up
# and down $8D^2$. So a layer has about $12 D^2$ and the model $12\,L\,D^2$: twice the depth doubles it, twice the width
# makes it four times as large.
#
# ### Exercise 1 · Count the parameters  (3 points · 10 min · ●●)
#
# `config` is a dict with `layers`, `d_model`, `heads`, `kv_heads` (key and value heads, each as wide as a query head),
# `d_ff`, `vocab_size`, `positions` (learned ones; 0 if there are none), `gated` (a third matrix in the feed-forward
# layer), `biases` and `tied`. With `biases`, every matrix but the embedding and the head has a bias and every norm a
# scale and a shift; without, a norm has a scale only. Each layer has two norms, and one more follows the last layer. (In
# this notebook, a whole number may be a float.)

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
# For which models is the rule of thumb good enough?

# %%
for name in ("gpt-2", "gpt-3", "llama-3-8b", "llama-3.1-405b"):
    config = find_model(name).decoder
    count, rule = count_parameters(config).total, 12 * len(config.layers) * config.d_model**2
    print(f"{name:<15} {count:>15,} parameters   12·L·D² is {rule / count:6.1%} of them")

# %% [markdown]
# In GPT-2, a small model, the embedding is a third of everything. In GPT-3 it is 0.35 %, and $12LD^2$ is enough. Llama's
# layers have a gate (more parameters) and fewer key heads (fewer), so for them the rule is only a guess. (For the 405B both
# differences happen to cancel.)

# %% [markdown]
# ## 3 · What a parameter costs
#
# A parameter has a gradient, and Adam keeps two moments for it (Kingma and Ba, 2015). Ask torch how much that is in
# **fp32**:

# %%
layer = nn.Linear(1000, 1000, bias=False)
optimizer = torch.optim.AdamW(layer.parameters())
layer(torch.ones(1, 1000)).sum().backward()
optimizer.step()

moments = [t for t in optimizer.state[layer.weight].values() if t.shape == layer.weight.shape]
for part, tensors in (("weights", [layer.weight]), ("gradients", [layer.weight.grad]), ("moments", moments)):
    print(f"{part:<10} {sum(t.nbytes for t in tensors) / layer.weight.numel():g} bytes per parameter")

# %% [markdown]
# **Mixed precision** multiplies in 16 bits (notebook 13). You might hope for half of that.

# %%
predict("mixed_states")

# %% [markdown]
# Small updates vanish in 16 bits (notebook 01), so an fp32 copy of the weights stays: the **master weights**. The
# optimizer updates them and copies them into the 16-bit weights. Gradients are usually summed in fp32 too.
#
# ### Exercise 2 · Bytes of the states  (2 points · 8 min · ●●)
#
# Return a dict with the bytes of `weights`, `gradients` and `optimizer`. Master weights belong to the optimizer. Raise
# `ValueError` for any other word than these, in both tables:
#
# | `precision` | |
# | --- | --- |
# | `"fp32"` | everything in fp32 |
# | `"mixed"` | as above: products in 16 bits, gradients in fp32, master weights |
# | `"mixed-16-bit-gradients"` | the same, but gradients stay in 16 bits |
# | `"inference"` | a model in 16 bits that is not trained; `optimizer` may be any word of its table |
#
# | `optimizer` | keeps of every parameter |
# | --- | --- |
# | `"sgd"` | nothing |
# | `"momentum"` | an average of its gradient, in fp32 |
# | `"adamw"` | that and an average of its square, in fp32 |
# | `"adamw-8bit"` | both, in 8 bits each |

# %% exercise="state_bytes"
def state_bytes(parameters: int, precision: str, optimizer: str = "adamw") -> dict[str, int]:
    """Bytes that stay from step to step: 4, 4 and 8 for one parameter in fp32 with AdamW."""
    ### BEGIN SOLUTION
    precisions = {"fp32": (4, 4, 0), "mixed": (2, 4, 4), "mixed-16-bit-gradients": (2, 2, 4), "inference": (2, 0, 0)}
    moments = {"sgd": 0, "momentum": 4, "adamw": 8, "adamw-8bit": 2}
    if precision not in precisions or optimizer not in moments:
        raise ValueError(f"unknown precision or optimizer: {precision!r}, {optimizer!r}")
    weights, gradients, kept = precisions[precision]
    if precision != "inference":
        kept += moments[optimizer]
    return {"weights": weights * parameters, "gradients": gradients * parameters, "optimizer": kept * parameters}
    ### END SOLUTION


# %% check="state_bytes"
check(state_bytes)
### BEGIN HIDDEN TESTS
check(state_bytes, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# With AdamW in mixed precision that is
#
# $$\underbrace{2N}_{\text{weights, 16 bits}} + \underbrace{4N}_{\text{gradients, fp32}} + \underbrace{4N + 8N}_{\text{master weights, moments}} = 18N,$$
#
# and the optimizer is six times as large as the model that you multiply with. Trainers that keep gradients in 16 bits as well
# need $16N$ (Rajbhandari et al., 2020, §3.1). In all notebooks *mixed precision* means 18, and `mixed-16-bit-gradients` is
# the name of the 16.

# %%
figures.memory_states()

# %% [markdown]
# **In real models.** Llama 3 was trained in bf16 with gradients summed in fp32 (Grattafiori et al., 2024, §3.3). DeepSeek-V3
# keeps master weights and gradients in fp32, but both moments in bf16 (DeepSeek-AI, 2024, §3.3), which saves 4 of the
# 18 bytes. Dettmers et al. (2022) store moments in 8 bits, with a scale for each block of 2048 numbers, and their models train
# just as well.

# %% [markdown]
# ## 4 · How large a model fits?
#
# Now the other way round: divide the memory by the bytes per parameter.

# %%
predict("train_or_write")

# %% [markdown]
# That is why training needs so much more than inference, before any arithmetic: 18 bytes per parameter instead of 2.
#
# Mind the unit (notebook 01). Cards are *sold* in GB and *report* GiB, and manufacturers differ in what they mean. In the course's table a card of "80 GB" has 80 GiB; the exercise
# takes the word literally: $80 \cdot 10^9$.
#
# ### Exercise 3 · The largest model  (2 points · 4 min · ●)
#
# `devices` cards of `gigabytes` GB ($10^9$ bytes) each share one model, trained with AdamW; leave activations out. How many
# parameters can it have, at most? Precisions are those of `state_bytes`, which you may use.

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
# Eight cards of 80 GB hold 40 billion parameters in fp32, and fewer in mixed precision: 35.6 billion. These are upper limits,
# with no byte left for a single activation.

# %%
explore(figures.memory_fits, card=["rtx-4090", "a100-sxm-40gb", "h100-sxm", "h200", "b200", "mi300x"], cards=Log(1, 64))

# %% [markdown]
# ## 5 · What does a backward pass need?
#
# Now the fourth part, the one that depends on the batch. Autograd keeps a tensor if some backward step will read it. So go
# operation by operation and ask: which numbers does its derivative need?

# %%
predict("keeps_nothing")

# %% [markdown]
# Take $x$ with $2 \cdot 3 \cdot 4 = 24$ numbers in fp32, 96 bytes, and measure. `saved_tensors` counts what autograd keeps,
# without parameters; you will write your own in section 9.

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
# Two rules follow. *Sums are free*: the residual stream keeps nothing itself, in a model of any depth. And *a product keeps
# its inputs, not its result*: what a layer returns is kept only if the next operation needs it.

# %% [markdown]
# ## 6 · One attention layer
#
# Follow the token vectors through attention and write down each tensor that a backward step will read. Numbers take $p$
# bytes; **dropout** multiplies by a mask, whose numbers take 1 byte in any precision. We count a layer as Korthikanti et
# al. (2022, §4.1) do: as many key heads as query heads, dropout on the weights and on the result, nothing fused.
#
# | operation | keeps | bytes |
# | --- | --- | --- |
# | $q, k, v = xW_q, xW_k, xW_v$ | their input, *once* for all three | $p \cdot BSD$ |
# | scores $q k^\top$ | $q$ and $k$ | $2p \cdot BSD$ |
# | division by $\sqrt{d}$ | nothing: its factor is a constant | 0 |
# | softmax | ? | ? |
# | dropout of the weights | ? | ? |
# | weights $\cdot\, v$ | ? | ? |
# | output matrix | ? | ? |
# | dropout of the result | ? | ? |
#
# There are two kinds of tensors: those with a number for each token and feature, $B \cdot S \cdot D$ (all heads together
# are as wide as the model), and those with a number for each head and *pair* of tokens, $A \cdot B \cdot S^2$.
#
# ### Exercise 4 · Activations of attention  (3 points · 8 min · ●●)
#
# Fill in the table, and add it up: return the bytes that one attention layer keeps, without its norm.

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
# The other half is shorter: $\text{dropout}(\text{down}(\text{GELU}(\text{up}(x))))$. The token vectors are $D$ wide, the
# hidden layer is $d_\text{ff}$ wide. A **gated** layer has one matrix more:
# $\text{dropout}(\text{down}(f(\text{gate}(x)) \odot \text{up}(x)))$. Which tensors does each of the two keep?
#
# ### Exercise 5 · Activations of the feed-forward layer  (2 points · 6 min · ●●)
#
# Return the bytes that one feed-forward layer keeps, without its norm. $f$ keeps its input, as GELU does.

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
# With a gate there are four hidden tensors instead of two. With the same number of parameters, a gated layer is
# $\tfrac83 D$ wide instead of $4D$ (notebook 11). So it keeps $4 \cdot \tfrac83 = 10.7$ numbers per feature instead of $2 \cdot 4 = 8$: you pay for SwiGLU's better loss
# in memory.
#
# Each of the two **norms** keeps its input, $p \cdot BSD$, and two numbers per token, which we leave out. Here is all that a
# layer keeps:

# %%
explore(figures.memory_saved_tensors, length=Log(256, 32768), number=["16 bits", "32 bits"], feed_forward=["GELU, 4 d", "SwiGLU, 8/3 d"])

# %% [markdown]
# Move the length. Which bars grow faster than the others?

# %% [markdown]
# ## 8 · The whole model
#
# Attention, a feed-forward layer and two norms make a layer, and $L$ layers a model. (The two ends are left out; the head
# gets section 13.) The **scores** are the three tensors that have a number for each head and pair of tokens.
#
# ### Exercise 6 · When scores take over  (2 points · 8 min · ●●)
#
# Return the smallest length $S$ at which the scores take *more than half* of all that the layers keep. The hidden layer is
# $E \cdot D$ wide, without a gate. You may use your functions from above.

# %% exercise="scores_take_over"
def scores_take_over(D: int, A: int, E: int = 4, p: int = 2) -> int:
    """The smallest number of tokens at which scores are more than half of all activations."""
    ### BEGIN SOLUTION
    scores = A * (2 * p + 1)
    rest = attention_activations(1, 1, D, A, p) - scores + mlp_activations(1, 1, D, E * D, p) + 2 * p * D
    return rest // scores + 1
    ### END SOLUTION


# %% check="scores_take_over"
check(scores_take_over)
### BEGIN HIDDEN TESTS
check(scores_take_over, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Neither $L$ nor $B$ matters, because they multiply everything. All that the layers keep, sorted by how it grows:
#
# $$\underbrace{2\,BLSD\,\big(p\,(E + 4) + 1\big)}_{O(BLSD)} + \underbrace{ABLS^2\,(2p + 1)}_{O(BALS^2)}$$
#
# With $E = 4$ and $p = 2$ that is $BLS\,(34\,D + 5\,AS)$, the formula you will meet most often (Korthikanti et al.,
# 2022, equation 1).
#
# > **Spot the slip.** For fp32, $p = 4$, a colleague writes $BLS\,(66\,D + 15\,AS)$. One of the two coefficients does not
# > follow from the formula. Which one? (Section 9 measures it.)

# %%
predict("twice_the_length")

# %%
explore(figures.memory_growth, model=["gpt-2", "gpt-2-xl", "gpt-3-6.7b", "gpt-neox-20b", "gpt-3"], number=["16 bits", "32 bits"])

# %% [markdown]
# For short texts memory grows with the length, for long ones with its square. **Fused attention** removes the square: it
# never stores the scores, and computes them again in the backward pass (Dao et al., 2022). With it, and without dropout, all
# of $5\,AS$ is gone.

# %% [markdown]
# ## 9 · Predicted and measured
#
# Formulas for memory are easy to get wrong: a tensor is forgotten, a mask counted at $p$ bytes, a product said to keep its
# result. So do not believe them, measure. Here is a block as the formulas assume it. Its dropout keeps a mask of one
# byte per number, as on a GPU. (On a CPU, `nn.Dropout` keeps its noise in the format of its input.)

# %%
def drop(x: Tensor) -> Tensor:
    """Dropout that keeps a mask of one byte per number."""
    return x * (torch.rand_like(x) > 0.1) / 0.9


class Block(nn.Module):
    """A block as the formulas assume it: nothing fused, as many key heads as query heads."""

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
# `torch.autograd.graph.saved_tensors_hooks(pack, unpack)` (notebook 03) calls `pack(tensor)` for each tensor that autograd keeps, and
# `unpack` when the backward pass needs it. Three things can go wrong when you add the sizes up. The same tensor may be kept
# twice, but its memory exists once. A kept tensor may be a *view*, and then the whole storage behind it stays alive. And some
# of the kept tensors are parameters, which are in memory anyway.
#
# ### Exercise 7 · Measure it  (4 points · 12 min · ●●●)
#
# Run `block(x)` and return how many bytes autograd keeps, by dtype: `{"torch.float32": ..., "torch.bool": ...}`. Count
# every storage once and as a whole, under the dtype of the tensor through which it was kept first. Leave out the
# block's parameters and buffers, and all views of their storage, such as the $W^\top$ of a linear layer, which is no
# `nn.Parameter`; a copy of a parameter has its own storage, and counts. The input `x` counts if it is kept. A block that
# keeps nothing gives `{}`. You build `saved_tensors` here, so do not use it.
#
# One warning: PyTorch uses an address again as soon as its tensor is gone. Keep the tensors that the hook gives you until
# you have counted them.

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
# Now compare, with the course's counter (yours should print the same). Two texts of 48 tokens, width 64, four heads:

# %%
B, S, D, A = 2, 48, 64, 4
for dtype, formula in ((torch.float32, B * S * (66 * D + 9 * A * S)), (torch.bfloat16, B * S * (34 * D + 5 * A * S))):
    block, x = Block(D, A).to(dtype), torch.ones(B, S, D, dtype=dtype, requires_grad=True)
    measured = saved_tensors(partial(block, x), block)
    statistics = sum(tensor.size for tensor in measured if tensor.shape == (B, S, 1))
    print(f"{dtype}: measured {measured.total:,} bytes, of them {statistics:,} statistics of the norms; formula {formula:,}")
print(f"with 15·A·S in fp32 it would be {B * S * (66 * D + 15 * A * S):,}")

# %% [markdown]
# Predicted equals measured, except for the mean and spread that each norm keeps per token. The 15 is wrong. And are the
# powers of $S$ right? Make the text four times as long, again and again, and see by how much the measured bytes grow:

# %%
block, before = Block(64, 4), 0
for S in (8, 32, 128, 512, 2048):
    x = torch.ones(1, S, 64, requires_grad=True)
    bytes_kept = saved_tensors(partial(block, x), block).total
    growth = f"   × {bytes_kept / before:.1f} for four times the length" if before else ""
    print(f"S = {S:>4}: {bytes_kept:>11,} bytes{growth}")
    before = bytes_kept

# %% [markdown]
# The factor goes from near 4 towards 16: from $S$ to $S^2$, as the formula says.
#
# **In real models.** Few models are built just as the formula assumes. Compare it with what PyTorch's CPU kernels keep of the
# blocks of published models, in bf16 and with unfused attention, for 1024 tokens:

# %%
for name in ("gpt-2", "gpt-3", "llama-3-8b"):
    error = rule_errors(find_model(name).decoder, 1, 1024)["Korthikanti et al., 34 + 5as/h"]
    print(f"{name:<11} BLS·(34·D + 5·A·S) is {abs(error):.0%} too {'large' if error > 0 else 'small'}")

# %% [markdown]
# Each gap has its reasons. GPT-2 has dropout, whose noise takes two bytes a number on a CPU, not one; and the package's
# LayerNorm works in fp32, and keeps its input so. GPT-3 is counted without dropout, so two of the three tensors of $A \cdot S^2$ do not exist. In Llama the
# gate and RMSNorm add about as much as the missing dropout and the shared key heads take away: the formula is right by luck.
# Use it to think with. For a budget that must hold, count tensors as `lmcourse account` does. And count the *peak*, which is
# higher than all that is kept: section 13.

# %% [markdown]
# ## 10 · When does mixed precision save memory?
#
# It costs 2 bytes more for each parameter, and halves the activations except for the masks. So it pays from some batch on. A
# layer's matrices have $4D^2$ parameters in attention and $2ED^2$ in the feed-forward layer.
#
# ### Exercise 8 · The break-even batch  (2 points · 6 min · ●●●)
#
# Return the batch, as a real number, at which mixed precision (18 bytes per parameter, $p = 2$) takes as much as fp32
# (16 bytes, $p = 4$), for any $E$. Count the layers' matrices only; one layer is enough. Why?

# %% exercise="min_batch_for_mixed"
def min_batch_for_mixed(D: int, A: int, S: int, E: int = 4) -> float:
    """The batch from which on mixed precision takes less memory: 0.61 for GPT-NeoX-20B and 2048 tokens."""
    ### BEGIN SOLUTION
    def text(p: int) -> int:
        return attention_activations(1, S, D, A, p) + mlp_activations(1, S, D, E * D, p) + 2 * p * S * D

    more = (18 - 16) * (4 + 2 * E) * D**2
    return more / (text(4) - text(2))
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
# That is 0.61 texts for GPT-NeoX-20B and 1.5 for GPT-3, at 2048 tokens. With any usual batch mixed precision takes less
# memory. The main reason to use it is a different one: matrix products in 16 bits are many times faster.

# %% [markdown]
# ## 11 · Many devices
#
# **Tensor parallelism** cuts every matrix in $T$ parts (Shoeybi et al., 2019). Each device has $A/T$ heads and
# $d_\text{ff}/T$ hidden numbers, so the states shrink to $18N/T$. And the activations?

# %%
predict("eight_devices")

# %% [markdown]
# Only what is *inside* a half of the layer is divided. Before and after it, every device has the whole token vectors:
#
# | | tensors of a layer |
# | --- | --- |
# | whole on each device | inputs of two norms, inputs of both halves, two masks |
# | shared | $q, k, v$, the input of the output matrix, two hidden tensors |
# | shared, by heads | the three tensors of scores |
#
# You know the width of each, and the bytes of its numbers, from sections 6 and 7.
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
# 24 are shared.

# %%
explore(figures.memory_tensor_parallel, batch=Log(1, 64), length=Log(256, 8192), sequence_parallel=False)

# %% [markdown]
# Tick *sequence parallel*: norms and dropout work on each token alone, so the devices can share the tokens there, and
# the 10 becomes $10/T$ (Korthikanti et al., 2022). What it costs in traffic is the subject of notebook 18.
#
# **In real models.** Llama 3.1 405B was trained with $T = 8$, the cards of one machine; with 16 groups of layers, one after
# the other; and with 128 copies of all that, which share their states (Grattafiori et al., 2024, table 4). None of these
# alone would have been enough.

# %% [markdown]
# ## 12 · GPT-3
#
# Now a model of full size: $L = 96$, $D = 12{,}288$, $A = 96$, $V = 50{,}257$, 2048 learned positions. Count $12LD^2$ and both
# embeddings: $N$ is 174.6 billion.

# %%
predict("batch_of_gpt3")

# %% [markdown]
# ### Exercise 10 · GPT-3  (2 points · 6 min · ●●)
#
# Return the GiB of `weights`, `gradients`, `optimizer` and `activations` on each of `T` devices, in mixed precision,
# for `B` texts of `S` tokens. Everything is shared as in exercise 9, embeddings included. Before you run the check, compare
# one of your numbers with an estimate in your head, to one digit. That finds most mistakes in any budget.

# %% exercise="gpt3_case"
def gpt3_case(B: int, S: int, T: int = 1) -> dict[str, float]:
    """What GPT-3 takes to train on each of T devices, in GiB."""
    ### BEGIN SOLUTION
    L, D, A, V, positions = 96, 12_288, 96, 50_257, 2048
    N = 12 * L * D**2 + (V + positions) * D
    sizes = {part: size / T for part, size in state_bytes(N, "mixed").items()}
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
# Per token, GPT-3 keeps $34\,DL = 40.1$ million bytes, and the scores. One text of 2048 tokens is 256.5 GiB of activations
# beside 2,927 GiB of states. With $T = 8$ each device holds 366 GiB of states and 52 GiB of activations: the activations
# shrink less than the states do.

# %% [markdown]
# ## 13 · The peak
#
# All that you have counted so far is what training *keeps*. But a card does not run out of memory at an average moment. It
# runs out at the worst one, the **peak**, and a backward pass makes tensors of its own. PyTorch can record every allocation
# and every release. Here are those of a small expression; a release has a minus:

# %%
x = torch.ones(1000)  # 4000 bytes
print(memory_events(lambda: x.exp().sin().cos()))

# %% [markdown]
# Three results of 4000 bytes are allocated, but at no time are all three in memory. How many are?
#
# ### Exercise 11 · Find the peak  (2 points · 6 min · ●)
#
# From the sizes of such a record, return two numbers: the most bytes in use at once, and the index of the event after which
# it is reached for the first time. The first event is an allocation. Later ones may release memory that was allocated before
# the record began.

# %% exercise="peak_and_moment"
def peak_and_moment(events: list[int]) -> tuple[int, int]:
    """The most bytes in use at once, and the index of the event that reaches it: (12, 1) for [8, 4, -8, -4]."""
    ### BEGIN SOLUTION
    in_use = list(accumulate(events))
    peak = max(in_use)
    return peak, in_use.index(peak)
    ### END SOLUTION


# %% check="peak_and_moment"
check(peak_and_moment)
### BEGIN HIDDEN TESTS
check(peak_and_moment, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now the last layer of the model: the **head** multiplies every token vector by a matrix with a row for each word of the
# vocabulary. Its result, the **logits**, has $B \cdot S \cdot V$ numbers, and so has what the loss keeps.

# %%
predict("logits_in_a_variable")

# %% [markdown]
# Measure it: two of the blocks from section 9, a head for a vocabulary of 8192, one text of 512 tokens. `measured_step` records
# the three phases of a training step. It does not keep the logits in a variable, unless you ask for that.


# %%
def measured_step(blocks, head, x, y, recompute: bool = False, keep_logits: bool = False) -> list[list[int]]:
    """Sizes of all allocations and releases in three phases: the blocks forward, head and loss, the backward pass."""
    held = {}

    def forward() -> None:
        held["h"] = x
        for block in blocks:
            held["h"] = checkpoint(block, held["h"], use_reentrant=False) if recompute else block(held["h"])

    def loss() -> None:
        logits = head(held.pop("h")).flatten(0, 1)
        held["loss"] = F.cross_entropy(logits, y)
        if keep_logits:
            held["logits"] = logits

    return [memory_events(phase) for phase in (forward, loss, lambda: held["loss"].backward())]


torch.manual_seed(0)
S, D, V = 512, 64, 8192
blocks, head = [Block(D, 4), Block(D, 4)], nn.Linear(D, V, bias=False)
x, y = torch.randn(1, S, D), torch.randint(V, (S,))
measured_step(blocks, head, x, y)  # the first step also allocates the gradients
phases = measured_step(blocks, head, x, y)
figures.memory_measured(phases, 4 * S * V)

# %% [markdown]
# How many copies of the logits are that, with and without the variable? Your function counts:

# %% tags=["nbval-ignore-output", "because other versions of torch keep other tensors"]
with your("peak_and_moment"):
    for keep in (False, True):
        phases = measured_step(blocks, head, x, y, keep_logits=keep)
        peak, moment = peak_and_moment([*chain(*phases)])
        above = (peak - sum(phases[0])) / (4 * S * V)
        begin = len(phases[0]) + len(phases[1])
        print(f"logits in a variable: {keep!s:<5}  peak {peak / 2**20:5.1f} MiB, {above:.2f} copies more than the blocks keep,")
        print(f"    at event {moment}; the backward pass begins at event {begin}")

# %% [markdown]
# The peak comes at the very start of the backward pass, and most of it is the loss. When is that not so? Below, `activations`
# is what the blocks have left at the end of the forward pass, and `block` the most that one block uses when it is run forward
# and backward alone. **Recomputation** (Chen et al., 2016) keeps the input of each block only, and runs a block again
# when the backward pass arrives there. Look for a rule behind the last column.

# %%
def block_alone(block: Block, x: Tensor) -> int:
    """The most bytes in use while a block runs forward and backward."""
    x = x.clone().requires_grad_()
    block(x).sum().backward()
    return max(accumulate(memory_events(lambda: block(x).sum().backward())))


S, settings = 256, [(4096, False), (4096, True), (128, True)]
x, rows = torch.randn(1, S, D), []
for V, recompute in settings:
    head, y = nn.Linear(D, V, bias=False), torch.randint(V, (S,))
    for keep in (False, True):
        measured_step(blocks, head, x, y, recompute, keep)
        phases = measured_step(blocks, head, x, y, recompute, keep)
        sizes = sum(phases[0]), 1, S, V, block_alone(blocks[0], x)
        rows.append((sizes, recompute, keep, max(accumulate(chain(*phases)))))

print("in MiB    V  recompute  variable  activations  block  one copy of the logits   peak")
for (activations, B, S, V, block), recompute, keep, peak in rows:
    sizes = f"{activations / 2**20:11.2f} {block / 2**20:6.2f} {4 * B * S * V / 2**20:23.2f} {peak / 2**20:6.2f}"
    print(f"     {V:>6}  {recompute!s:<9}  {keep!s:<8}  {sizes}")

# %% [markdown]
# ### Exercise 12 · Predict the peak  (3 points · 10 min · ●●●)
#
# Return the bytes in use at the peak of a step in fp32. `activations` and `block` are as above; with `recompute` the
# activations are the inputs of the blocks. With `keep_logits` a variable holds the logits until the end of the step. List
# the moments that can be the worst, say what is in memory at each, and take the largest. (Without recomputation, take the
# moment of the loss.)

# %% exercise="step_peak"
def step_peak(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    """The bytes that a step adds at its worst moment to weights, gradients and optimizer."""
    ### BEGIN SOLUTION
    logits = 4 * B * S * V
    worst = max(3 * logits, block) if recompute else 3 * logits
    return activations + worst + (logits if keep_logits else 0)
    ### END SOLUTION


# %% check="step_peak"
check(step_peak)
### BEGIN HIDDEN TESTS
check(step_peak, hidden=True)
### END HIDDEN TESTS

# %% tags=["nbval-ignore-output", "because other versions of torch keep other tensors"]
with your("step_peak"):
    for sizes, recompute, keep, peak in rows:
        predicted = step_peak(*sizes, recompute=recompute, keep_logits=keep)
        print(f"V {sizes[3]:>5}  predicted {predicted / 2**20:6.2f} MiB  measured {peak / 2**20:6.2f}  ratio {predicted / peak:.3f}")

# %% [markdown]
# At the loss, three tensors of $4\,BSV$ bytes are in memory: the log-probabilities that the loss has kept, their gradient,
# and the gradient of the logits. All three are gone when the blocks' backward pass begins, so the larger of the two moments
# is the peak. (With a tiny vocabulary and nothing recomputed, the peak comes later, when the last block makes its gradients:
# add `(128, False)` to `settings`.)
#
# The loss is computed in fp32 even when the model computes in 16 bits, so the three are as large there. For Llama 3, with $V = 128{,}256$, one
# text of 8192 tokens makes 3.9 GiB of logits, and so 11.7 GiB at the peak. With blocks recomputed, that is five times as much
# as all else that this text leaves in memory:

# %%
llama, recipe = find_model("llama-3-8b").decoder, find_recipe("mixed")
for recompute in ("nothing", "blocks"):
    for attention in ("readable", "fused"):
        memory = training_memory(llama, 1, 8192, recipe, activation_checkpointing=recompute, attention=attention)
        parts = ", ".join(f"{part} {size / 2**30:.1f} GiB" for part, size in memory if part not in recipe.memory(1).parts)
        print(f"recompute {recompute:<8} attention {attention:<9} {parts}")

# %% [markdown]
# "logits" is what head and loss keep: the 3.9 GiB, and 0.1 for the input of the head. "loss backward" is what their
# backward pass adds.
#
# The cure is to recompute the loss as well, a few rows at a time. In notebook 03 you wrote its backward pass yourself; with
# `checkpoint` it is three lines. Each chunk throws its logits away, and makes them again in the backward pass, one chunk
# after the other:

# %%
h, W = torch.randn(1024, 64, requires_grad=True), torch.randn(8_000, 64, requires_grad=True)
y = torch.randint(8_000, (1024,))


def summed_loss(h: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(h @ W.T, y, reduction="sum")


def loss_in_chunks(rows: int) -> Tensor:
    chunks = zip(h.split(rows), y.split(rows), strict=True)
    return sum(checkpoint(summed_loss, *chunk, use_reentrant=False) for chunk in chunks) / len(h)


summed_loss(h, y).backward()  # allocates the gradients of h and W
print(f"one copy of the logits: {4 * 1024 * 8_000 / 2**20:.1f} MiB")
for rows in (1024, 256, 64):
    events = memory_events(lambda rows=rows: loss_in_chunks(rows).backward())
    print(f"chunks of {rows:>4} rows: peak {max(accumulate(events)) / 2**20:6.1f} MiB")

# %% [markdown]
# ### One block at a time?
#
# So far every block was recomputed alone. Chen et al. cut $L$ layers into **segments** of $s$. The forward pass keeps one unit
# of memory, the input, for each segment. Inside a segment, each layer makes one unit; these are thrown away when the next
# segment begins. The backward pass computes the inside of a segment again from its input, and all of it stays until the
# gradient has passed. Then the inside *and* the input of the segment are gone. The last segment was never thrown away.
#
# By hand, for nine layers and $s = 3$: at the end of the forward pass there are three inputs, and three units inside the last
# segment, so six. On the way back, the middle segment has two inputs and three units, so five. Six layers are computed twice.
#
# ### Exercise 13 · Compute it twice  (3 points · 9 min · ●●)
#
# Return the most units in memory at any moment, and the number of layers that are computed a second time. The last segment
# may be shorter. Raise `ValueError` for less than one layer, or segments of less than one layer.

# %% exercise="compute_twice"
def compute_twice(layers: int, every: int) -> tuple[int, int]:
    """The most units in memory at any moment, and how many layers are computed a second time."""
    ### BEGIN SOLUTION
    if every < 1:
        raise ValueError(f"a segment has at least one layer, not {every}")
    lengths = [min(every, layers - start) for start in range(0, layers, every)]
    most = max(number + length for number, length in enumerate(lengths, start=1))
    return most, layers - lengths[-1]
    ### END SOLUTION


# %% check="compute_twice"
check(compute_twice)
### BEGIN HIDDEN TESTS
check(compute_twice, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.memory_segments, layers=(4, 128, 1))

# %% [markdown]
# Few long segments keep a lot inside, many short ones keep many inputs. In between, near $s = \sqrt L$, the peak is about
# $2\sqrt L$: 19 units instead of 96, for not quite one more forward pass.

# %% [markdown]
# ## 14 · Your own budget
#
# Now you can read any budget, and change it. Which size is worth attacking? The figure halves each one, and leaves the others
# as they are. Start at 128 tokens, and go up.

# %%
explore(figures.memory_halving, model=["gpt-2", "gpt-2-xl", "gpt-3-6.7b", "gpt-neox-20b", "gpt-3"], length=Log(128, 65536))

# %% [markdown]
# Half the batch always means half the activations, and so do half as many layers. Half the length does better, because the
# scores depend on it twice. The number of heads matters only there.
#
# And when in a step is the memory fullest? Follow it through forward pass, loss, backward pass and optimizer.

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
# In the backward pass of the loss, when all layers have left their activations and the logits are there three times. Gradients
# come while activations go, so the two do not add up, unless gradients are there already, from an earlier batch of the same
# step: tick *accumulated*. With *recompute blocks* the top may be elsewhere: at a recomputed block, or at the end of the
# backward pass, when all gradients are there.
#
# Two more ways need more cards or more time. **Copies** of a model (data parallelism) read different texts, and they need
# not all keep the same states: **ZeRO** divides the optimizer among them (stage 1), gradients too (2), weights too (3;
# Rajbhandari et al., 2020). Activations stay as they are: each copy has its own texts. And **gradient accumulation** reads
# several batches, one after the other, before the optimizer steps. The activations of a batch are gone when the next one
# comes, so a step can be as large as you like. Only the gradients stay in memory between two batches. (The budget always
# counts them.)
#
# The budget puts all of it together, for published models and cards of the course's table. It counts tensor by tensor, at the
# peak, as PyTorch's CPU kernels need them. (A GPU keeps less for RMSNorm and dropout. It also needs memory that no tensor
# explains: for the driver, and for gaps between tensors that the allocator cannot fill.) The list has no mixture of experts:
# its states would count all experts, its activations only those that a token passes.
#
# It opens with Llama 3 8B and one text of 8192 tokens on two cards, and does not fit. Find at least three single changes that make it fit. Then: how many B200s does
# Llama 3.1 405B need for such a text, if all of them share every matrix?

# %%
explore(
    figures.memory_budget,
    model=["gpt-2", "smollm2-1.7b", "llama-3.2-1b", "llama-3-8b", "qwen3-32b", "llama-3-70b", "gpt-3", "llama-3.1-405b"],
    card=["rtx-4090", "a100-sxm-40gb", "a100-sxm-80gb", "h100-sxm", "h200", "b200", "mi300x"],
    precision=["fp32", "autocast", "mixed", "mixed-16-bit-gradients", "bf16", "adam-8bit", "momentum", "sgd"],
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
# It fits with recomputed blocks (74 GiB a card), on four cards (50), on H200s (100 of 141), with texts of 2048 tokens (75), and
# with everything in bf16 (62). It does not fit with texts of 4096 tokens (84), with SGD in fp32 (81), or with
# `mixed-16-bit-gradients` (92). Llama 3.1 405B takes 64 B200s, with 127 of 180 GiB on each: 48 would have enough memory, but
# 48 does not divide its 128 heads. Its 8 key heads are fewer than the devices, so each is on 8 of them: the copies take 8
# of the 127 GiB.
#
# </details>
#
# `lmcourse account --model llama-3-8b --gpu h100 --seq-len 8192` prints such a budget on the command line, with FLOPs and
# times, which are the subject of the next notebook.
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what fills the memory? | weights, gradients, optimizer; and activations, which grow with the batch |
# | what does a parameter take? | 16 bytes in fp32 with Adam; 18 in mixed precision; 2 for inference |
# | how many parameters? | $12\,LD^2$ and the ends; for the exact number count each matrix |
# | what does autograd keep? | what a derivative needs: inputs of products, the result of softmax, masks; nothing for sums |
# | what does a layer keep? | $BS\,(34D + 5AS)$ bytes in 16 bits; the second term goes with fused attention |
# | what is the peak? | the backward pass of the loss: activations and $3 \cdot 4\,BSV$; or one recomputed block |
# | when does mixed precision take less? | from a batch of about one text on |
# | what do $T$ devices share? | all states, and what is inside attention and feed-forward; 10 of 34 stay whole |
# | GB or GiB? | $10^9$ or $2^{30}$; say which |
#
# ## Check yourself
#
# 1. You swap AdamW for SGD without momentum, in fp32. What happens to the states, and what to the activations?
# 2. A layer computes `y = x + dropout(f(x))`. Who keeps `x`, if $f$ begins with a LayerNorm?
# 3. Why does a ReLU before the last matrix of a feed-forward layer cost less memory than a GELU?
# 4. A colleague finds that twice the batch takes 1.2 times the memory. What does that say about their run?
# 5. 64 devices are to share a model with 96 heads. What goes wrong, and what would you do?
# 6. $T$ devices share every matrix, and the tokens of norms and dropout as well (sequence parallelism). How does the break-even
#    batch of section 10 depend on $T$?
# 7. Your run is out of memory by 2 GiB, at the loss. The loop says `logits = model(x)`. What do you try first?
#
# <details><summary>Answers</summary>
#
# 1. The states fall from 16 to 8 bytes per parameter: weights and gradients. The activations stay as they are; the optimizer never sees them.
# 2. The LayerNorm keeps it, as its input. The sum keeps nothing, and dropout keeps only a mask.
# 3. ReLU keeps its *result*, and that is the input of the last matrix, which is kept anyway: one tensor for both. GELU keeps its *input*, a second
#    tensor of $d_\text{ff}$ numbers per token.
# 4. With states $M$ and activations $a$ per batch, $(M + 2a) = 1.2\,(M + a)$, so $a = M/4$: a fifth of their memory is
#    activations. They can use a much larger batch.
# 5. 64 does not divide 96: some devices would get two heads, some one. 48 or 32 devices share evenly. Use the others for
#    more copies, or divide the model between layers.
# 6. Not at all. Both sides, the 2 bytes more per parameter and all that a text saves, are divided by $T$.
# 7. Do not hold the logits in a variable during the backward pass: that is one copy of four. Then a loss in chunks.
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
# - In this package: `docs/accounting.md`; `lmcourse/accounting/activations.py` predicts to the byte what autograd keeps of any model of the zoo, and `moments.py` the peak of a step.

# %% [markdown]
# This cell checks the numbers in the text each time the notebook is built. (It is folded; open it if you like.)

# %% tags=["hide-input"]
GIB, gpt3 = 2**30, find_model("gpt-3").decoder
blocks = 12 * 96 * 12_288**2
N = blocks + (50_257 + 2048) * 12_288
assert 4 * (36 + 16 + 36 + 36) == 496
assert f"{N / 1e9:.1f}" == "174.6" and f"{50_257 * 12_288 / N:.2%}" == "0.35%" and 72 + 80 + 148 + 24 == 324
assert 0.3 < 50_257 * 768 / count_parameters(find_model("gpt-2").decoder).total < 0.34
assert [round(per * N / GIB) for per in (1, 2, 4, 12, 18)] == [163, 325, 650, 1951, 2927] and 325 / 80 <= 5
assert 39 < (18 * N + korthikanti(gpt3, 1, 2048) + 3 * 4 * 2048 * 50_257) / GIB / 80 < 40
assert find_recipe("fp32").per_parameter == 16 and find_recipe("mixed").per_parameter == 18
assert find_recipe("mixed-16-bit-gradients").per_parameter == 16 and find_recipe("sgd").per_parameter == 8
assert round((GIB / 1e9 - 1) * 100, 1) == 7.4 and f"{80e9 / 18:.2g}" == "4.4e+09" and 80e9 / 2 == 40e9
assert round(4 * 8 / 3, 1) == 10.7 and round(34 * 12_288 / (5 * 96)) == 870
lines, squares = 34 * 12_288, 5 * 96 * 2048
assert f"{2 * (lines + 2 * squares) / (lines + squares):.1f}" == "3.4" and f"{squares / (lines + squares):.0%}" == "70%"
assert 34 * 12_288 * 96 == 40_108_032
text = korthikanti(gpt3, 1, 2048) / GIB
assert f"{text:.1f}" == "256.5" and f"{18 * N / GIB / text:.1f}" == "11.4"
assert 640e9 / 16 == 40e9 and f"{640e9 / 18 / 1e9:.1f}" == "35.6"
assert squares / 12_288 == 80 and f"{(10 + 24 / 8 + 80 / 8) / 114:.2f}" == "0.20"
assert round(18 * N / 8 / GIB) == 366 and round(korthikanti(gpt3, 1, 2048, tensor=8) / GIB) == 52
assert min(max(k + min(s, 96 - (k - 1) * s) for k in range(1, -(-96 // s) + 1)) for s in range(1, 97)) == 19
assert f"{break_even_batch(find_model('gpt-neox-20b').decoder, 2048):.2f}" == "0.61"
assert f"{break_even_batch(gpt3, 2048):.1f}" == "1.5"
logits = training_memory(find_model("llama-3-8b").decoder, 1, 8192, find_recipe("mixed"))["logits"]
recomputed = training_memory(
    find_model("llama-3-8b").decoder,
    1,
    8192,
    find_recipe("mixed"),
    activation_checkpointing="blocks",
)
assert f"{recomputed['activations'] / GIB:.1f}" == "2.3" and 5 * recomputed["activations"] < 12 * 8192 * 128_256
assert 0 < recomputed["loss backward"] + recomputed["logits"] - 12 * 8192 * 128_256 < 0.1 * GIB
assert 0 <= logits - (4 * 8192 * 128_256 + 2 * 8192 * 4096) < 100 and f"{logits / GIB:.1f}" == "4.0"
assert f"{4 * 8192 * 128_256 / GIB:.1f}" == "3.9" and f"{3 * 4 * 8192 * 128_256 / GIB:.1f}" == "11.7" and (16 + 4) / 4 / 4 == 1.25 and 0.25 / 1.25 == 0.2
assert activation_bytes_by_layer_kind(gpt3, 1, 2048, width=2).total == korthikanti(gpt3, 1, 2048)


def on_each(model: str, devices: int, length: int = 8192, precision: str = "mixed", **rest: str) -> int:
    layout, config = Layout(tensor=devices), find_model(model).decoder
    return round(training_memory(config, 1, length, find_recipe(precision), layout=layout, **rest).total / GIB)


assert on_each("llama-3-8b", 2) == 100 and on_each("llama-3-8b", 2, activation_checkpointing="blocks") == 74
assert on_each("llama-3-8b", 4) == 50 and [on_each("llama-3-8b", 2, S) for S in (4096, 2048)] == [84, 75]
assert [on_each("llama-3-8b", 2, precision=name) for name in ("sgd", "mixed-16-bit-gradients", "bf16")] == [81, 92, 62]
assert on_each("llama-3.1-405b", 64) == 127 and on_each("llama-3.1-405b", 48) < 180 and 128 % 48
assert 127 - round(on_each("llama-3.1-405b", 8) / 8) == 8
